/* arena.h -- memory with one lifetime: taken piece by piece, given back at once.
 *
 * Lifetimes form a tree (process > job > membership epoch > step); each has an
 * arena. Everything that a graph, a plan or a parsed file needs lies in the arena
 * its maker was handed, so that nothing of it is freed singly.
 *
 * 1. Memory is zeroed and aligned to 64 bytes.
 * 2. A budget bounds the arena: a hostile file can exhaust its own arena only.
 * 3. hd_arena_reset() keeps one block, large enough for all that was taken: a step's arena asks the system no
 *    more once its need is known. What is kept is 5/4 of the most that was ever taken, or 1 MiB, at most.
 *
 * Ownership: the caller owns the struct; finish() frees all it gave out.
 * Threads: one thread at a time. */
#ifndef HD_BASE_ARENA_H
#define HD_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hd_arena_block;

struct hd_arena {
	struct hd_arena_block *first, *now;       /* owned */
	size_t used_bytes, budget_bytes;          /* budget 0: none */
};

void hd_arena_init(struct hd_arena *arena, size_t budget_bytes);
void hd_arena_finish(struct hd_arena *arena);       /* takes zeroed and finished ones too */
void hd_arena_reset(struct hd_arena *arena);
size_t hd_arena_kept_bytes(const struct hd_arena *arena);       /* of the system, given out or not */

/* n objects of `size` bytes (checked multiply); NULL when memory or the budget is exhausted. */
void *hd_arena_take(struct hd_arena *arena, size_t n, size_t size);
char *hd_arena_text(struct hd_arena *arena, const char *text, size_t len);      /* a copy, 0 added */

#endif
