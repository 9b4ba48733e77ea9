#include "base/alloc.h"

#include <stdlib.h>

/* Thread-local, so that arming needs no lock and affects no other thread. */
static _Thread_local struct { uint64_t count, fail_from, pieces; } trap;

void hd_alloc_arm(uint64_t n)
{
	trap.count = 0;
	trap.fail_from = n;
}

uint64_t hd_alloc_count(void) { return trap.count; }

uint64_t hd_alloc_arm_piece(uint64_t n)
{
	uint64_t left = trap.pieces;

	trap.pieces = n;
	return left;
}

bool hd_alloc_refuses_piece(void) { return trap.pieces && !--trap.pieces; }

void *hd_alloc(size_t bytes)
{
	trap.count++;
	if (trap.fail_from && trap.count >= trap.fail_from)
		return NULL;
	if (bytes > SIZE_MAX - HD_ALIGN)
		return NULL;
	size_t whole = (bytes + (bytes == 0) + HD_ALIGN - 1) / HD_ALIGN * HD_ALIGN;
	return aligned_alloc(HD_ALIGN, whole);
}

void hd_free(void *memory) { free(memory); }
