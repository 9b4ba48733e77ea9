/* micro.inc.h -- the innermost loop of products (gemm.inc.h): a tile of results in registers, a term or pair
 * of terms at a time. One source for all paths; a shape of tile is a function, found in a table. */
#ifndef HD_DEVICE_CPU_MICRO_INC_H
#define HD_DEVICE_CPU_MICRO_INC_H

#include "device/cpu/gemm_parts.h"

/* The innermost loop: h x v registers of results. h, v and `rows` are constants after inlining. Element (i,
 * k) of a at a[k*step + i], a packed panel has its height there; by rows at a[i*step + k]. */
HD_INLINE void micro(const int h, const int v, const bool rows, const float *a, int64_t step, const float *b,
	int64_t depth, const struct gemm_out *c, const struct gemm_adds *adds, struct ahead *ahead)
{
	part acc[GEMM_HEIGHT][GEMM_VECS];
	/* by rows: every third has a pointer, the others are one and two steps behind it */
	const float *third[(GEMM_HEIGHT + 2) / 3];
	/* every loop over acc is unrolled, or it would live in memory */
	bool whole = c->m >= h && c->n >= v * HD_WIDTH;
	const char *fetch = ahead->fetch;
	int64_t fetch_step = ahead->now->step, left = ahead->left, k = 0;

#define EACH_ROW _Pragma("GCC unroll 14") for (int i = 0; i < h; i++)
#define EACH_PART _Pragma("GCC unroll 2") for (int j = 0; j < v; j++)
#define PART_AT (c->at + i * c->step + j * HD_WIDTH)
#define PART_LEN ((size_t)min64(c->n - j * HD_WIDTH, HD_WIDTH))
	if (!c->more) {
		EACH_ROW EACH_PART acc[i][j] = part_set(0.0f);
	} else if (whole) {
		EACH_ROW EACH_PART acc[i][j] = part_load(PART_AT);
	} else {
		EACH_ROW EACH_PART acc[i][j] = i < c->m && j * HD_WIDTH < c->n ? part_load_n(PART_AT,
			PART_LEN) : part_set(0.0f);
	}
	if (rows) {
		_Pragma("GCC unroll 5") for (int i = 0; i < (h + 2) / 3; i++) third[i] = a + 3 * i * step;
	}
/* Pointers move from term to term, and the compiler does not see by how much: it would keep a register for
 * each sum of a pointer and an offset, and has too few. Nor may it load for the next term before this one is
 * done: all registers hold results. */
#define TERM \
	do { \
		part bk[GEMM_VECS]; \
		EACH_PART bk[j] = part_load(b + j * HD_WIDTH); \
		EACH_ROW { \
			part ai = part_set(rows ? third[i / 3][i % 3 * step] : a[i]); \
			EACH_PART acc[i][j] = lane_fma(ai, bk[j], acc[i][j]); \
		} \
		b += v * HD_WIDTH; \
		if (!rows) { \
			a += step; \
		} else { \
			_Pragma("GCC unroll 5") for (int i = 0; i < (h + 2) / 3; i++) { \
				third[i]++; \
				__asm__("" : "+r"(third[i])); \
			} \
		} \
		__asm__ volatile("" ::: "memory"); \
	} while (0)
	for (; k + 8 <= depth; k += 8) {
		TERM;
		TERM;
		TERM;
		TERM;
		__builtin_prefetch(fetch, 0, 2);
		TERM;
		TERM;
		TERM;
		TERM;
		__builtin_prefetch(fetch + GEMM_LINE, 0, 2);
		fetch += fetch_step;
		if (__builtin_expect(--left == 0, 0)) {
			ahead->now++;
			fetch = ahead->now->at;
			fetch_step = ahead->now->step;
			left = ahead->now->n;
		}
	}
	ahead->fetch = fetch;
	ahead->left = left;
	for (; k < depth; k++)
		TERM;
	if (whole) {
		for (uint32_t n = 0; adds && n < adds->n; n++) {
			const float *from = adds->of[n].at;
			EACH_ROW EACH_PART acc[i][j] = part_load(from + i * adds->of[n].step + j * HD_WIDTH) +
				acc[i][j];
		}
		EACH_ROW EACH_PART part_store(PART_AT, acc[i][j]);
	} else {
		EACH_ROW EACH_PART {
			if (i >= c->m || j * HD_WIDTH >= c->n)
				continue;
			for (uint32_t n = 0; adds && n < adds->n; n++)
				acc[i][j] = part_load_n(adds->of[n].at + i * adds->of[n].step + j * HD_WIDTH,
					PART_LEN) + acc[i][j];
			part_store_n(PART_AT, acc[i][j], PART_LEN);
		}
	}
#undef EACH_ROW
#undef EACH_PART
#undef PART_AT
#undef PART_LEN
#undef TERM
}

#define X(h) MICRO(h, 1) MICRO(h, 2)
HD_HEIGHTS(X)
#undef X

/* By height / GEMM_STEP - 1 and registers - 1. */
#define X(h) { micro_##h##x1, micro_##h##x2 },
static micro_fn *const micros[GEMM_HEIGHT / 2][GEMM_VECS] = { HD_HEIGHTS(X) };
#undef X
#define X(h) { micro_rows_##h##x1, micro_rows_##h##x2 },
static micro_fn *const micros_rows[GEMM_HEIGHT / 2][GEMM_VECS] = { HD_HEIGHTS(X) };
#undef X
#define X(h) { micro_add_##h##x1, micro_add_##h##x2 },
static micro_add_fn *const micro_adds[GEMM_HEIGHT / 2][GEMM_VECS] = { HD_HEIGHTS(X) };
#undef X

#endif
