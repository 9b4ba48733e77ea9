#include "base/arena.h"

#include <assert.h>
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

static struct hd_arena_block *block_create(size_t cap)
{
	size_t bytes;

	if (!hd_add_size(cap, sizeof(struct hd_arena_block), &bytes))
		return NULL;
	struct hd_arena_block *block = hd_alloc(bytes);
	if (!block)
		return NULL;
	*block = (struct hd_arena_block){ .cap = cap };
	HIDE(block->at, cap);
	return block;
}

/* Of the list that begins there all but `kept`. */
static void destroy_all_but(struct hd_arena_block *first, const struct hd_arena_block *kept)
{
	for (struct hd_arena_block *block = first, *next; block; block = next) {
		next = block->next;
		if (block == kept)
			continue;
		SHOW(block->at, block->cap);
		hd_free(block);
	}
}

void hd_arena_finish(struct hd_arena *arena)
{
	destroy_all_but(arena->first, NULL);
	*arena = (struct hd_arena){ .budget_bytes = arena->budget_bytes };
}

/* A list of blocks would keep, of needs that grow slowly, every block that was too small by a little:
 * memory with the square of the need. */
void hd_arena_reset(struct hd_arena *arena)
{
	struct hd_arena_block *largest = arena->first;
	size_t used = arena->used_bytes;

	for (struct hd_arena_block *block = arena->first; block; block = block->next)
		largest = block->cap > largest->cap ? block : largest;
	if (largest && largest->cap < used) {
		/* first: the system need not have both at once */
		destroy_all_but(arena->first, NULL);
		/* space: or each need that is larger by a piece asks the heap again */
		arena->first = block_create(used + used / 4);
	} else if (largest) {
		destroy_all_but(arena->first, largest);
		*largest = (struct hd_arena_block){ .cap = largest->cap };
		HIDE(largest->at, largest->cap);
		arena->first = largest;
	}
	arena->now = arena->first;
	arena->used_bytes = 0;
	assert(!arena->first || (!arena->first->next && arena->first->used == 0));
}

size_t hd_arena_kept_bytes(const struct hd_arena *arena)
{
	size_t kept = 0;

	for (const struct hd_arena_block *block = arena->first; block; block = block->next)
		kept += sizeof *block + block->cap;
	return kept;
}

static bool fits(const struct hd_arena_block *block, size_t need) { return block->cap - block->used >= need; }

static size_t next_cap(const struct hd_arena *arena, size_t need)
{
	size_t cap = !arena->now ? FIRST_BYTES : arena->now->cap < MOST_BYTES / 2 ? arena->now->cap * 2 :
		MOST_BYTES;

	return cap < need ? need : cap;
}

/* Makes arena->now a block with space: behind it there is none. */
static bool advance(struct hd_arena *arena, size_t need)
{
	struct hd_arena_block *block = block_create(next_cap(arena, need));

	if (!block)
		return false;
	assert(!arena->now || !arena->now->next);
	*(arena->now ? &arena->now->next : &arena->first) = block;
	arena->now = block;
	return true;
}

void *hd_arena_take(struct hd_arena *arena, size_t n, size_t size)
{
	size_t len, need, used;

	if (hd_alloc_refuses_piece() || !hd_mul_size(n, size, &len) || !hd_add_size(len, HD_ALIGN - 1 +
		(len == 0), &need))
		return NULL;
	need = need / HD_ALIGN * HD_ALIGN;
	if (!hd_add_size(arena->used_bytes, need, &used) ||
		(arena->budget_bytes && used > arena->budget_bytes))
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
