/* testing_memory.h -- SQLite's memory with a trap: one of its requests fails, those after it do not. For
 * tests only.
 *
 * hd_sqlite_memory() before anything else asks SQLite; then hd_sqlite_fail(n) makes its n-th request from now
 * on fail (0: none), and hd_sqlite_failed() says whether that came to pass. Threads: one. */
#ifndef HD_DRIVER_TESTING_MEMORY_H
#define HD_DRIVER_TESTING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/db.h"

static sqlite3_mem_methods hd_sqlite_real;
static uint64_t hd_sqlite_trap, hd_sqlite_asked;

static void *hd_sqlite_take(int bytes) { return ++hd_sqlite_asked == hd_sqlite_trap ? NULL :
	hd_sqlite_real.xMalloc(bytes); }
static void *hd_sqlite_grow(void *at, int bytes) { return ++hd_sqlite_asked == hd_sqlite_trap ? NULL :
	hd_sqlite_real.xRealloc(at, bytes); }

static inline bool hd_sqlite_memory(void)
{
	if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &hd_sqlite_real))
		return false;
	sqlite3_mem_methods trapped = hd_sqlite_real;
	trapped.xMalloc = hd_sqlite_take;
	trapped.xRealloc = hd_sqlite_grow;
	return !sqlite3_config(SQLITE_CONFIG_MALLOC, &trapped);
}

static inline void hd_sqlite_fail(uint64_t n)
{
	hd_sqlite_asked = 0;
	hd_sqlite_trap = n;
}

static inline bool hd_sqlite_failed(void) { return hd_sqlite_trap && hd_sqlite_asked >= hd_sqlite_trap; }

#endif
