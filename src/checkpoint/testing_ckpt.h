/* testing_ckpt.h -- a state as small as one can be and checkpoints of it in simulated files (for the tests
 * of ckpt_*.c). */
#ifndef HD_CHECKPOINT_TESTING_CKPT_H
#define HD_CHECKPOINT_TESTING_CKPT_H

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "checkpoint/ckpt_int.h"
#include "tests/check.h"

#define PARENT "/run/ckpt"

/* Every group and type: 2 parameters, 1 slot, 2 counters. */
struct tiny {
	struct hd_arena arena;
	struct hd_state state;
	float w[6], b[3], m[6];
	int64_t step;
	double loss;
};

static inline void tiny_fill(struct tiny *t, int64_t step)
{
	for (int i = 0; i < 6; i++) {
		t->w[i] = (float)(step + 1) / (float)(3 + i);
		t->m[i] = -1e-30f * (float)(step * i);
	}
	for (int i = 0; i < 3; i++)
		t->b[i] = (float)(step - i);
	t->step = step;
	t->loss = 0.1 * (double)step;
}

static inline void tiny_add(struct tiny *t, const char *name, enum hd_dtype dtype, int64_t rows, int64_t cols,
	enum hd_state_group group, void *at)
{
	struct hd_state_entry e = { .name = name, .dtype = (uint8_t)dtype, .rank = cols ? 2 : 1,
		.dim = { rows, cols },
		.group = (uint8_t)group, .at = at, .len_bytes = (uint64_t)(rows * (cols ? cols : 1)) *
		hd_dtype_bytes(dtype) };
	assert_int_equal(hd_state_add(&t->state, &e, NULL), HD_OK);
}

/* `skip`: this entry is left out (-1: none); `more`: one that the others do not have. */
static inline void tiny_init_without(struct tiny *t, int64_t step, int skip, bool more)
{
	memset(t, 0, sizeof *t);
	hd_arena_init(&t->arena, 0);
	hd_state_init(&t->state, &t->arena);
	if (skip != 0)
		tiny_add(t, "a.weight", HD_F32, 2, 3, HD_STATE_MODEL, t->w);
	if (skip != 1)
		tiny_add(t, "a.bias", HD_F32, 3, 0, HD_STATE_MODEL, t->b);
	if (skip != 2)
		tiny_add(t, "a.weight.m", HD_F32, 2, 3, HD_STATE_OPTIM, t->m);
	if (skip != 3)
		tiny_add(t, "run.step", HD_I64, 1, 0, HD_STATE_RUN, &t->step);
	if (skip != 4)
		tiny_add(t, "run.loss", HD_F64, 1, 0, HD_STATE_RUN, &t->loss);
	if (more)
		tiny_add(t, "b.bias", HD_F32, 3, 0, HD_STATE_MODEL, t->b);
	tiny_fill(t, step);
}

static inline void tiny_init(struct tiny *t, int64_t step) { tiny_init_without(t, step, -1, false); }
static inline void tiny_finish(struct tiny *t) { hd_arena_finish(&t->arena); }

static inline struct hd_ckpt_info info_of(uint64_t step)
{
	return (struct hd_ckpt_info){ .step = step, .samples = 10 * step, .job_hash = { { 1, 2, 3 } },
		.data_hash = { { 4 } },
		.fingerprint = { { 5 } }, .data_count = 60, .kernels = "portable", .model = "builtin:mlp" };
}

static inline enum hd_err put_step(struct hd_fs *fs, int64_t step, uint32_t keep, struct hd_diag *diag)
{
	struct hd_ckpt_info info = info_of((uint64_t)step);
	struct tiny t;

	tiny_init(&t, step);
	enum hd_err err = hd_ckpt_write(fs, PARENT, &t.state, &info, keep, false, diag);
	tiny_finish(&t);
	return err;
}

static inline void must_put(struct hd_fs *fs, int64_t step, uint32_t keep)
{
	struct hd_diag diag = { "" };
	CHECK(put_step(fs, step, keep, &diag) == HD_OK, "step %lld: %s", (long long)step, diag.text);
}

/* Is what `folder` holds bit for bit the tiny state of `step`? */
static inline bool holds(struct hd_fs *fs, const char *folder, int64_t step)
{
	struct hd_ckpt_info info;
	struct tiny got, want;

	tiny_init(&got, -7);
	tiny_init(&want, step);
	bool same = hd_ckpt_read(fs, folder, &got.state, &info, NULL) == HD_OK &&
		info.step == (uint64_t)step &&
		!memcmp(got.w, want.w, sizeof got.w) && !memcmp(got.b, want.b, sizeof got.b) &&
		!memcmp(got.m, want.m, sizeof got.m) &&
		got.step == want.step && !memcmp(&got.loss, &want.loss, sizeof got.loss);
	tiny_finish(&got);
	tiny_finish(&want);
	return same;
}

/* All bytes of a file, for changing them. */
static inline uint8_t *slurp(struct hd_fs *fs, const char *path, struct hd_arena *arena, size_t *len)
{
	uint8_t *bytes;
	assert_int_equal(hd_file_read_all(fs, path, arena, 2 << 20, &bytes, len, NULL), HD_OK);
	return bytes;
}

static inline void spill(struct hd_fs *fs, const char *path, const uint8_t *bytes, size_t len)
{
	struct hd_file file = { 0 };
	assert_int_equal(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		NULL), HD_OK);
	assert_int_equal(hd_file_write(&file, bytes, len, NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
}

#endif
