/* The gradient of a table, folded by its kernel: against leaves made whole and moved one after the other, bit
 * for bit, on every path. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/cpu/cpu_isa.h"
#include "device/device.h"
#include "tests/check.h"

enum { PARTS = 8, PENDING = 3, LEAD = 3 };                /* LEAD: elements before the tensor */

/* `per`: positions of a row of a part; a call takes `wave` of the PARTS parts of `rows` rows at most. */
struct fold_case { int64_t table, cols, per; uint32_t rows, wave; };

struct scene {
	const struct fold_case *p;
	int32_t *id;
	float *dy, *leaf, *got[PENDING], *want[PENDING];
	uint32_t rows[PARTS];
	size_t len;                                       /* of a flat buffer */
	struct { uint32_t n; struct { uint32_t dst, src; bool add; } of[PENDING + 1]; } moves[PARTS];
	uint8_t temp[PENDING];                            /* its number, 0: none */
};

static uint32_t draw(uint32_t *seed) { return (*seed = *seed * 1664525u + 1013904223u) >> 8; }

static float *garbage(size_t n)
{
	float *at = malloc(n * sizeof *at);

	assert_non_null(at);
	memset(at, 0xff, n * sizeof *at);
	return at;
}

/* The tree of PARTS leaves: an even one pends, an odd one is added to it, and sums of equal size are added. A
 * buffer that never pends when a wave ends is temporary. */
static void make_moves(struct scene *s)
{
	uint32_t npending = 0, ntemps = 0;
	bool stays[PENDING] = { false };

	for (uint32_t v = 0; v < PARTS; v++) {
		uint32_t n = 1;
		npending += v % 2 == 0;
		s->moves[v].of[0].dst = npending - 1;
		s->moves[v].of[0].add = v % 2;
		for (uint32_t done = v + 1; done % 4 == 0; done /= 2, n++, npending--) {
			s->moves[v].of[n].src = npending - 1;
			s->moves[v].of[n].dst = npending - 2;
			s->moves[v].of[n].add = true;
		}
		s->moves[v].n = n;
		for (uint32_t i = 0; i < npending; i++)
			if ((v + 1) % s->p->wave == 0 || v + 1 == PARTS)
				stays[i] = true;
	}
	for (uint32_t i = 0; i < PENDING; i++)
		s->temp[i] = stays[i] ? 0 : (uint8_t)++ntemps;
}

/* Few rows of the table are named, some twice, some out of range; gradients hold zeros of both signs. A part
 * is short, and one is empty. */
static void make(struct scene *s, const struct fold_case *p)
{
	size_t n = (size_t)p->rows * (size_t)p->per * PARTS;
	uint32_t seed = 1;

	*s = (struct scene){ .p = p, .len = (size_t)(p->table * p->cols) + LEAD };
	s->id = malloc(n * sizeof *s->id);
	assert_non_null(s->id);
	s->dy = garbage(n * (size_t)p->cols);
	s->leaf = garbage(s->len);
	for (size_t i = 0; i < n; i++)
		s->id[i] = (int32_t)(draw(&seed) % (uint32_t)(p->table + 2)) - 1;
	for (size_t i = 0; i < n * (size_t)p->cols; i++)
		s->dy[i] = draw(&seed) % 5 ? ((float)draw(&seed) * 0x1p-22f - 2.0f) / (float)(1 + i % 7) :
			draw(&seed) % 2 ? 0.0f : -0.0f;
	for (uint32_t i = 0; i < PENDING; i++) {
		s->got[i] = garbage(s->len);
		s->want[i] = garbage(s->len);
	}
	for (uint32_t i = 0; i < PARTS; i++)
		s->rows[i] = i == 3 ? p->rows - 1 : i == 5 ? 0 : p->rows;
	make_moves(s);
}

static void finish(struct scene *s)
{
	for (uint32_t i = 0; i < PENDING; i++)
		free(s->got[i]), free(s->want[i]);
	free(s->id), free(s->dy), free(s->leaf);
}

static void define(const struct scene *s)
{
	const struct fold_case *p = s->p;

	for (uint32_t v = 0; v < PARTS; v++) {
		size_t first = (size_t)v * p->rows * (size_t)p->per, n = (size_t)s->rows[v] * (size_t)p->per;
		for (size_t i = 0; i < s->len; i++)
			s->leaf[i] = 0.0f;
		for (size_t i = first; i < first + n; i++)
			for (int64_t c = 0; s->id[i] >= 0 && s->id[i] < p->table && c < p->cols; c++)
				s->leaf[LEAD + s->id[i] * p->cols + c] += s->dy[(int64_t)i * p->cols + c];
		for (uint32_t k = 0; k < s->moves[v].n; k++) {
			float *dst = s->want[s->moves[v].of[k].dst];
			const float *src = k ? s->want[s->moves[v].of[k].src] : s->leaf;
			for (size_t i = LEAD; i < s->len; i++)
				dst[i] = s->moves[v].of[k].add ? dst[i] + src[i] : src[i];
		}
	}
}

static struct hd_operand operand(const void *at, int64_t rows, int64_t cols, uint8_t dtype)
{
	return (struct hd_operand){ .at = (void *)(uintptr_t)at, .dim = { rows, cols }, .rank = 2,
		.dtype = dtype, .elems = (uint64_t)(rows * cols) };
}

static uint32_t bind_moves(const struct scene *s, uint32_t v, struct hd_fold *fold)
{
	for (uint32_t k = 0; k < s->moves[v].n; k++) {
		uint32_t dst = s->moves[v].of[k].dst, src = s->moves[v].of[k].src;
		fold[k] = (struct hd_fold){ .add = s->moves[v].of[k].add };
		fold[k].dst_temp = s->temp[dst];
		fold[k].dst = s->temp[dst] ? NULL : s->got[dst];
		fold[k].src_temp = k ? s->temp[src] : 0;
		fold[k].src = k && !s->temp[src] ? s->got[src] : NULL;
	}
	return s->moves[v].n;
}

static void compute_wave(const struct scene *s, const struct hd_fold_kernel *kernel, uint32_t first)
{
	const struct fold_case *p = s->p;
	const int64_t n = (int64_t)p->rows * p->per;
	struct hd_call call = { .op = HD_OP_EMBED_DW, .nin = 3, .nout = 1 };
	struct hd_fold fold[PARTS][PENDING + 1];
	struct hd_part part[PARTS];
	struct hd_fold_job job = { .part = part, .rows = p->rows, .at = LEAD,
		.step_bytes = { (uint64_t)(n * p->cols) * sizeof(float), (uint64_t)n * sizeof(int32_t) } };

	call.in[0] = operand(s->dy + (int64_t)first * n * p->cols, n, p->cols, HD_F32);
	call.in[1] = operand(s->id + (int64_t)first * n, p->rows, p->per, HD_I32);
	call.in[2] = operand(NULL, p->table, p->cols, HD_F32);
	call.out[0] = operand(NULL, p->table, p->cols, HD_F32);
	for (uint32_t v = first; v < first + p->wave && v < PARTS; v++)
		part[job.nparts++] = (struct hd_part){ s->rows[v], v, bind_moves(s, v, fold[v]), fold[v] };
	assert_true(kernel->takes(&call));
	size_t bytes = kernel->scratch(&call, p->wave);
	void *scratch = hd_alloc(bytes);
	assert_non_null(scratch);
	for (uint32_t tile = kernel->ntiles(&call); tile-- > 0; ) {
		memset(scratch, 0xff, bytes);
		kernel->tile(&call, &job, tile, scratch);
	}
	hd_free(scratch);
}

static void check(const struct fold_case *p, const char *path)
{
	const struct hd_fold_kernel *kernel = hd_cpu_isa_of(path)->rows[HD_OP_EMBED_DW].kernel.fold;
	struct scene s;

	make(&s, p);
	define(&s);
	for (uint32_t first = 0; first < PARTS; first += p->wave)
		compute_wave(&s, kernel, first);
	CHECK(memcmp(s.got[0] + LEAD, s.want[0] + LEAD, (s.len - LEAD) * sizeof(float)) == 0,
		"%s: a table of %lld x %lld, %u x %lld positions, waves of %u", path, (long long)p->table,
		(long long)p->cols, p->rows, (long long)p->per, p->wave);
	CHECK(memcmp(s.got[0], s.want[0], LEAD * sizeof(float)) == 0, "%s: what lies before", path);
	finish(&s);
}

static void rows_that_are_named_are_folded_as_whole_leaves_are(void **state)
{
	static const struct fold_case shape[] = {
		{ 300, 20, 7, 3, 0 }, { 5, 4, 1, 4, 0 }, { 41, 16, 5, 2, 0 }, { 2, 33, 3, 1, 0 },
		{ 9, 70000, 2, 2, 0 }, { 4000, 37, 4, 2, 0 },
	};
	static const char *const path[] = { "avx512", "avx2", "portable" };

	(void)state;
	for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++)
		for (uint32_t wave = 1; wave <= PARTS; wave++)
			for (uint32_t k = 0; k < 3; k++) {
				struct fold_case p = shape[i];
				p.wave = wave;
				if (hd_cpu_path(path[k]))
					check(&p, path[k]);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_are_named_are_folded_as_whole_leaves_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
