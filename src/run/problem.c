#include "run/problem.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "sys/memory.h"
#include "data/step_rows.h"
#include "checkpoint/export.h"

struct batches {
	const struct hd_task *task;
	struct hd_arena *arena;
	struct hd_memory memory;          /* rows, step after step, field after field */
	struct hd_st_tensor *tensor;      /* [steps x fields] */
	uint32_t n;
};

static enum hd_err take_memory(struct batches *b, uint64_t nsteps, struct hd_diag *diag)
{
	const struct hd_dataset *data = b->task->data;
	uint64_t rows = 0, bytes = 0, sample_bytes = 0;

	for (uint32_t f = 0; f < data->nfields; f++)
		sample_bytes += data->field[f].sample_bytes;
	for (uint64_t s = 0; s < nsteps && rows <= HD_PROBLEM_BYTES; s++)
		rows += hd_sampler_rows(&b->task->sampler, s);
	if (!hd_mul_u64(rows, sample_bytes, &bytes) || bytes > HD_PROBLEM_BYTES)
		return hd_fail(diag, HD_E_INVAL,
			"the batches of %llu steps, of %llu bytes a sample, are more than the %d MiB that "
			"are written at most: "
			"use fewer steps or smaller batches", (unsigned long long)nsteps,
			(unsigned long long)sample_bytes, HD_PROBLEM_BYTES >> 20);
	b->tensor = hd_arena_take(b->arena, nsteps * data->nfields + 1, sizeof *b->tensor);
	if (!b->tensor)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the batches of %llu steps",
			(unsigned long long)nsteps);
	return hd_memory_take(bytes, HD_MEMORY_LAZY, &b->memory, diag);
}

static enum hd_err describe(struct batches *b, uint64_t step, uint64_t rows, const struct hd_field *field,
	uint8_t *at, struct hd_diag *diag)
{
	struct hd_st_tensor *t = &b->tensor[b->n++];
	char name[64];
	int len = snprintf(name, sizeof name, "step%llu.%s", (unsigned long long)step, field->name);

	*t = (struct hd_st_tensor){ .rank = field->rank + 1u, .dim = { rows }, .at = at,
		.len_bytes = rows * field->sample_bytes };
	for (uint8_t d = 0; d < field->rank; d++)
		t->dim[d + 1] = (uint64_t)field->dim[d];
	if (!hd_st_dtype_from((enum hd_dtype)field->dtype, &t->dtype))
		return hd_fail(diag, HD_E_BUG, "field \"%s\" has a type that safetensors does not know",
			field->name);
	t->name = hd_arena_text(b->arena, name, (size_t)len);
	return t->name ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the name of a batch");
}

static enum hd_err read_step(struct batches *b, uint64_t step, uint8_t **at, struct hd_diag *diag)
{
	const struct hd_dataset *data = b->task->data;
	uint64_t rows = hd_sampler_rows(&b->task->sampler, step);
	const uint64_t spare = hd_step_spare_bytes(data);
	struct hd_step_rows all = { .set = data, .sampler = &b->task->sampler, .step = step, .end = rows };
	enum hd_err err = HD_OK;

	for (uint32_t f = 0; f < data->nfields && !err; f++) {
		all.out[f] = *at;
		*at += rows * data->field[f].sample_bytes;
		err = describe(b, step, rows, &data->field[f], all.out[f], diag);
	}
	if (!err && spare && !(all.spare = hd_alloc(spare)))
		err = hd_fail(diag, HD_E_NOMEM, "no memory to read a step");
	err = err ? err : hd_step_rows_read(&all, diag);
	hd_free(all.spare);
	return err;
}

enum hd_err hd_problem_write(struct hd_fs *fs, const struct hd_task *task, const struct hd_state *state,
	uint64_t nsteps, const char *path,
	struct hd_diag *diag)
{
	const char *model = hd_job_text(task->job, HD_JOB_MODEL);
	struct hd_ckpt_info info = { .job_hash = task->job_hash };
	struct hd_text job;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	hd_text_init(&job, &arena);
	hd_job_json(task->job, false, &job);
	struct batches b = { .task = task, .arena = &arena };
	enum hd_err err = job.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the text of a job") :
		take_memory(&b, nsteps, diag);
	uint8_t *at = b.memory.at;
	for (uint64_t s = 0; s < nsteps && !err; s++)
		err = read_step(&b, s, &at, diag);
	if (!err) {
		const struct hd_st_meta meta = { "job", job.at };
		struct hd_export how = { .family = hd_export_family(model), .both = true, .more = b.tensor,
			.nmore = b.n, .meta = &meta, .nmeta = 1 };
		snprintf(info.model, sizeof info.model, "%s", model);
		err = hd_export_state(fs, state, &info, &how, path, diag);
	}
	hd_memory_give(&b.memory);
	hd_arena_finish(&arena);
	return err;
}
