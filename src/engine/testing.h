/* testing.h -- a worker with everything around it, for tests of this room: included by
 * *_test.c only.
 *
 * hd_rig_open() makes arena, job, task, worker and plan out of a few words; failures end
 * the test. A rig may look at the data through `mask`: a reader that hides labels.
 *
 * Ownership: open/close. */
#ifndef HD_ENGINE_TESTING_H
#define HD_ENGINE_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/part_int.h"
#include "engine/forward.h"
#include "engine/reading_int.h"
#include "engine/worker_int.h"
#include "tests/check.h"

static const char hd_rig_mlp[]   =
	"model: {use: builtin:mlp, args: {hidden: [33, 17]}}\ndata: {kind: synthetic, count: 61}\n";
__attribute__((unused))
static const char hd_rig_lenet[] = "model: {use: builtin:lenet}\ndata: {kind: synthetic, count: 61}\n";
__attribute__((unused))
static const char hd_rig_gpt[]   =
	"model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 24, dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 61}\n";

/* A small convolutional net with norms over the batch, of images and of rows. Valid until the next call. */
__attribute__((unused))
static const char *hd_rig_bn(void)
{
	const char *source = getenv("SOURCE_DIR");
	static char text[700];

	snprintf(text, sizeof text,
		"model: {use: \"graph:%s/tests/torch/fixtures/bn/model.graph\"}\ndata: {kind: synthetic, "
		"count: 61}\n",
		source ? source : ".");
	return text;
}

struct hd_rig {
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_job *job;
	struct hd_task *task;
	struct hd_worker *worker;
	struct hd_plan plan;
};

/* `model` holds the sections model and data, `more` the rest (NULL: none). */
static inline struct hd_job *hd_rig_job(const char *model, uint32_t batch, uint32_t vns, const char *more,
	struct hd_arena *arena)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_diag diag = { "" };
	char yaml[2048];

	snprintf(yaml, sizeof yaml,
		"job: {seed: 17, steps: 60}\n%sbatch: {global: %u, virtual_nodes: %u}\n%s\n", model, batch,
		vns, more ? more : "");
	CHECK(hd_job_parse(job, "test.yaml", yaml, strlen(yaml), NULL, 0, arena, &diag, NULL) == HD_OK, "%s",
		diag.text);
	return job;
}

static inline void hd_rig_begin(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more)
{
	memset(rig, 0, sizeof *rig);
	hd_fs_real(&rig->fs);
	hd_arena_init(&rig->arena, 0);
	rig->job = hd_rig_job(model, batch, vns, more, &rig->arena);
}

static inline void hd_rig_go(struct hd_rig *rig, const struct hd_worker_spec *spec)
{
	struct hd_diag diag = { "" };

	CHECK(hd_task_create(&rig->task, rig->job, &rig->fs, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_create(&rig->worker, rig->task, spec, &diag) == HD_OK, "%s", diag.text);
	struct hd_plan_job pj = hd_worker_plan_job(rig->worker);
	CHECK(hd_plan_data(&rig->plan, &pj, spec->ndevices, NULL, &rig->arena, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_worker_adopt(rig->worker, &rig->plan, &diag) == HD_OK, "%s", diag.text);
}

static inline void hd_rig_open_on(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more,
	const struct hd_worker_spec *spec)
{
	hd_rig_begin(rig, model, batch, vns, more);
	hd_rig_go(rig, spec);
}

static inline void hd_rig_open_sliced(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	uint32_t slices, uint32_t ndevices)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };

	hd_rig_begin(rig, model, batch, vns, NULL);
	rig->job->value[HD_JOB_SLICES].i = slices;
	hd_rig_go(rig, &spec);
}

static inline void hd_rig_open(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more, uint32_t ndevices)
{
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };

	hd_rig_open_on(rig, model, batch, vns, more, &spec);
}

static inline void hd_rig_close(struct hd_rig *rig)
{
	hd_worker_destroy(rig->worker);
	hd_task_destroy(rig->task);
	hd_arena_finish(&rig->arena);
}

/* Ends the threads that read ahead: a test changes what a reader looks at only between this
 * and the next hd_worker_rewind(), which a step that follows a failed one does by itself. */
static inline void hd_rig_hush(struct hd_rig *rig)
{
	hd_prefetch_destroy(rig->worker->reading->prefetch);
	rig->worker->reading->prefetch = NULL;
}

static inline struct hd_step_record hd_rig_step(struct hd_rig *rig)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_step(rig->worker, true, &record, &diag) == HD_OK, "%s", diag.text);
	return record;
}

/* The parameters, as the devices see them. */
static inline float *hd_rig_params(const struct hd_rig *rig)
{
	return hd_param_store_at(rig->worker->store, HD_VEC_PARAMS, 0, 0);
}

/* A copy of the table's bytes; entry `without` (HD_NONE: none) stays as it is when they are put back. */
struct hd_rig_bytes { uint8_t *at[256]; uint32_t n; };

static inline void hd_rig_copy(struct hd_rig *rig, struct hd_rig_bytes *bytes, struct hd_arena *arena)
{
	const struct hd_state *s = hd_worker_state(rig->worker);

	assert_true(s->nentries <= 256);
	for (bytes->n = 0; bytes->n < s->nentries; bytes->n++) {
		bytes->at[bytes->n] = hd_arena_take(arena, s->entry[bytes->n].len_bytes, 1);
		hd_state_get(&s->entry[bytes->n], 0, s->entry[bytes->n].len_bytes /
			hd_dtype_bytes((enum hd_dtype)s->entry[bytes->n].dtype), bytes->at[bytes->n]);
	}
}

static inline void hd_rig_paste(struct hd_rig *rig, const struct hd_rig_bytes *bytes, uint32_t without)
{
	struct hd_state *s = hd_worker_state(rig->worker);
	struct hd_diag diag = { "" };

	assert_int_equal(s->nentries, bytes->n);
	for (uint32_t i = 0; i < bytes->n; i++)
		if (i != without)
			hd_state_put(&s->entry[i], 0, s->entry[i].len_bytes /
				hd_dtype_bytes((enum hd_dtype)s->entry[i].dtype), bytes->at[i]);
	CHECK(hd_worker_rewind(rig->worker, &diag) == HD_OK, "%s", diag.text);
}

#endif
