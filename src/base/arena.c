#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

/* Under AddressSanitizer what was not given out is poisoned: a piece that is overrun
 * into its neighbour's padding is caught although both lie in one block. */
#if defined(__SANITIZE_ADDRESS__)
#define HD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HD_ASAN 1
#endif
#endif
#ifdef HD_ASAN
#include <sanitizer/asan_interface.h>
#define HIDE(at, len) ASAN_POISON_MEMORY_REGION(at, len)
#define SHOW(at, len) ASAN_UNPOISON_MEMORY_REGION(at, len)
#else
#define HIDE(at, len) ((void)(at), (void)(len))
#define SHOW(at, len) ((void)(at), (void)(len))
#endif

enum { FIRST_BYTES = 16 * 1024, MOST_BYTES = 1024 * 1024 };      /* blocks double from the one to the other */

struct hd_arena_block {
	struct hd_arena_block *next;
	size_t used, cap;
	_Alignas(HD_ALIGN) uint8_t at[];
};

void hd_arena_init(struct hd_arena *arena, size_t budget_bytes)
{
	*arena = (struct hd_arena){ .budget_bytes = budget_bytes };
}

void hd_arena_finish(struct hd_arena *arena)
{
	for (struct hd_arena_block *block = arena->first, *next; block; block = next) {
		next = block->next;
		SHOW(block->at, block->cap);
		hd_free(block);
	}
	*arena = (struct hd_arena){ .budget_bytes = arena->budget_bytes };
}

void hd_arena_reset(struct hd_arena *arena)
{
	for (struct hd_arena_block *block = arena->first; block; block = block->next) {
		block->used = 0;
		HIDE(block->at, block->cap);
	}
	arena->now = arena->first;
	arena->used_bytes = 0;
}

static bool fits(const struct hd_arena_block *block, size_t need) { return block->cap - block->used >= need; }

static struct hd_arena_block *block_create(const struct hd_arena *arena, size_t need)
{
	size_t cap = arena->now ? arena->now->cap * 2 : FIRST_BYTES;
	size_t bytes;

	cap = cap > MOST_BYTES ? MOST_BYTES : cap;
	cap = cap < need ? need : cap;
	if (!hd_add_size(cap, sizeof(struct hd_arena_block), &bytes))
		return NULL;
	struct hd_arena_block *block = hd_alloc(bytes);
	if (!block)
		return NULL;
	*block = (struct hd_arena_block){ .cap = cap };
	HIDE(block->at, cap);
	return block;
}

/* Makes arena->now a block with room. Kept blocks that are too small stay behind it in
 * the list, so that the same sequence of takes after a reset meets the same blocks. */
static bool advance(struct hd_arena *arena, size_t need)
{
	struct hd_arena_block **link = arena->now ? &arena->now->next : &arena->first;
	struct hd_arena_block **from = link, *block;

	while (*from && !fits(*from, need))
		from = &(*from)->next;
	block = *from;
	if (block)
		*from = block->next;
	else if (!(block = block_create(arena, need)))
		return false;
	block->next = *link;
	*link = block;
	arena->now = block;
	return true;
}

void *hd_arena_take(struct hd_arena *arena, size_t n, size_t size)
{
	size_t len, need, used;

	if (!hd_mul_size(n, size, &len) || !hd_add_size(len, HD_ALIGN - 1 + (len == 0), &need))
		return NULL;
	need = need / HD_ALIGN * HD_ALIGN;
	if (!hd_add_size(arena->used_bytes, need, &used) || (arena->budget_bytes && used > arena->budget_bytes))
		return NULL;
	if ((!arena->now || !fits(arena->now, need)) && !advance(arena, need))
		return NULL;
	uint8_t *at = arena->now->at + arena->now->used;
	arena->now->used += need;
	arena->used_bytes = used;
	SHOW(at, len);
	return memset(at, 0, len);
}

char *hd_arena_text(struct hd_arena *arena, const char *text, size_t len)
{
	size_t bytes;

	if (!hd_add_size(len, 1, &bytes))
		return NULL;
	char *copy = hd_arena_take(arena, bytes, 1);
	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}
