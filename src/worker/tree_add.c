#include "worker/tree_add.h"

#include <string.h>

/* floats that are added through all levels at once: a few of them fit the first cache */
enum { BLOCK = 2048 };

/* The part of leaves [low, end); `out` is none of the operands. Levels: 16 leaves have 4. */
static void add_tree(const float *const *at, uint32_t low, uint32_t end, uint64_t from, uint32_t n,
	float *restrict out)
{
	float right[BLOCK];
	uint32_t half = 1;

	while (2 * half < end - low)
		half *= 2;
	const float *restrict a = at[low] + from, *restrict b = at[low + half] + from;
	if (half > 1) {
		add_tree(at, low, low + half, from, n, out);
		a = out;
	}
	if (end - low - half > 1) {
		add_tree(at, low + half, end, from, n, right);
		b = right;
	}
	for (uint32_t i = 0; i < n; i++)
		out[i] = a[i] + b[i];
}

static void add_into(float *restrict to, const float *restrict other, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		to[i] += other[i];
}

void hd_tree_add(const float *const *at, uint32_t n, float *to, uint64_t len)
{
	float block[BLOCK];

	if (n == 2 && (to == at[0] || to == at[1])) {
		add_into(to, at[to == at[0]], len);
		return;
	}
	for (uint64_t from = 0; from < len; from += BLOCK) {
		uint32_t k = (uint32_t)(len - from < BLOCK ? len - from : BLOCK);
		add_tree(at, 0, n, from, k, block);
		memcpy(to + from, block, k * sizeof *to);
	}
}
