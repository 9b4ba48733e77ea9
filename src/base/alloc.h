/* alloc.h -- the only access to the heap for what lies below arenas, with a seam for tests.
 *
 * Arenas, the parsers and the inflater take memory here and nowhere else, so that a
 * test can make the n-th request fail for every n and see that nothing leaks, nothing
 * crashes and the error says "out of memory".
 *
 * 1. Memory is aligned to 64 bytes and not zeroed; hd_free() takes NULL.
 * 2. Counter and trap belong to the calling thread: a test arms its own thread only.
 *    They are the one mutable state of the room.
 *
 * Threads: any. Memory may be freed by another thread than the one that took it. */
#ifndef HD_BASE_ALLOC_H
#define HD_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HD_ALIGN = 64 };                          /* a cache line, and the widest vector register */

void *hd_alloc(size_t bytes);                    /* NULL when there is none; 0 bytes are taken as 1 */
void hd_free(void *memory);

/* Of this thread, from now on: the n-th request (1 is the next) fails, and all after
 * it until it is armed again; 0 disarms. Sets the counter to 0. */
void hd_alloc_arm(uint64_t n);
uint64_t hd_alloc_count(void);                   /* requests since the last arming */

/* The same of what arenas give: of this thread the n-th piece from now on is refused, that one alone, so that
 * each place that asks for several is seen to look at each. 0 disarms. What was left to count: 0, if it has
 * struck. */
uint64_t hd_alloc_arm_piece(uint64_t n);
bool hd_alloc_refuses_piece(void);               /* base/arena.c asks for each piece */

#endif
