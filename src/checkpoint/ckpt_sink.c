#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "sys/failpoint.h"
#include "graph/safetensors.h"
#include "checkpoint/ckpt_int.h"

enum { BUFFER_BYTES = 1 << 20, NMETA = 4 };

enum hd_err hd_sink_open(struct hd_sink *sink, struct hd_fs *fs, const char *path, bool points,
	struct hd_diag *diag)
{
	enum hd_err err;

	*sink = (struct hd_sink){ .points = points, .buffer = hd_alloc(BUFFER_BYTES) };
	if (!sink->buffer)
		return hd_fail(diag, HD_E_NOMEM, "no memory to write %s", path);
	err = hd_sha256_begin(&sink->hash, diag);
	if (!err)
		err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &sink->file,
			diag);
	if (err)
		hd_sink_finish(sink);
	return err;
}

/* The failpoint of a file holds its first piece; it works on the buffer, after the hash
 * was taken: never on the state, and never unseen. */
static enum hd_err flush(struct hd_sink *sink, struct hd_diag *diag)
{
	size_t len = sink->used;
	int error = 0;

	sink->used = 0;
	if (sink->points && !sink->began)
		error = HD_FAILPOINT_BYTES(CKPT_WRITE_BEFORE, sink->buffer, &len);
	sink->began = true;
	if (error)
		return hd_fail_errno(diag, error, "write", sink->file.name);
	return len ? hd_file_write(&sink->file, sink->buffer, len, diag) : HD_OK;
}

enum hd_err hd_sink_put(void *context, const void *bytes, uint64_t len, struct hd_diag *diag)
{
	struct hd_sink *sink = context;
	const uint8_t *from = bytes;
	enum hd_err err = hd_sha256_add(&sink->hash, bytes, len, diag);

	sink->len_bytes += len;
	while (len && !err) {
		size_t room = BUFFER_BYTES - sink->used, n = len < room ? len : room;
		memcpy(sink->buffer + sink->used, from, n);
		sink->used += n;
		from += n;
		len -= n;
		if (sink->used == BUFFER_BYTES)
			err = flush(sink, diag);
	}
	return err;
}

static enum hd_err sync_file(struct hd_sink *sink, struct hd_diag *diag)
{
	int error = sink->points ? HD_FAILPOINT(CKPT_WRITE_AFTER) : 0;

	if (error)
		return hd_fail_errno(diag, error, "write", sink->file.name);
	error = sink->points ? HD_FAILPOINT(CKPT_FSYNC) : 0;
	return error ? hd_fail_errno(diag, error, "sync", sink->file.name) : hd_file_sync(&sink->file, diag);
}

enum hd_err hd_sink_end(struct hd_sink *sink, struct hd_ckpt_sum *sum, struct hd_diag *diag)
{
	struct hd_ckpt_sum made = { .len_bytes = sink->len_bytes };
	enum hd_err err = flush(sink, diag);

	if (!err)
		err = hd_sha256_end(&sink->hash, &made.sha256, diag);
	if (!err)
		err = sync_file(sink, diag);
	if (!err)
		err = hd_file_close(&sink->file, diag);
	hd_sink_finish(sink);
	if (!err)
		*sum = made;
	return err;
}

void hd_sink_finish(struct hd_sink *sink)
{
	hd_sha256_finish(&sink->hash);
	if (hd_file_close(&sink->file, NULL))
		sink->file.fs = NULL;        /* the file is given up anyhow */
	hd_free(sink->buffer);
	sink->buffer = NULL;
}

/* Exact: the memory holds numbers of bf16 only. */
static enum hd_err halve(struct hd_st_tensor *t, struct hd_arena *arena, struct hd_diag *diag)
{
	uint64_t n = t->len_bytes / sizeof(float);
	uint16_t *half = hd_arena_take(arena, n + 1, sizeof *half);
	const float *from = t->at;

	if (!half)
		return hd_fail(diag, HD_E_NOMEM, "no memory to write '%s'", t->name);
	for (uint64_t i = 0; i < n; i++)
		half[i] = hd_bf16_of_f32(from[i]);
	t->dtype = HD_ST_BF16;
	t->at = half;
	t->len_bytes = n * sizeof *half;
	return HD_OK;
}

static uint32_t gather(const struct hd_state *state, uint8_t group, struct hd_st_tensor *tensor,
	struct hd_arena *arena, struct hd_diag *diag,
	enum hd_err *err)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < state->nentries && !*err; i++) {
		const struct hd_state_entry *e = &state->entry[i];
		if (e->group != group)
			continue;
		struct hd_st_tensor *t = &tensor[n++];
		*t = (struct hd_st_tensor){ .name = e->name, .rank = e->rank, .at = e->at,
			.len_bytes = e->len_bytes };
		for (int k = 0; k < e->rank; k++)
			t->dim[k] = (uint64_t)e->dim[k];
		if (!hd_st_dtype_from((enum hd_dtype)e->dtype, &t->dtype))
			*err = hd_fail(diag, HD_E_BUG,
				"state entry '%s' has a type that safetensors does not know", e->name);
		else if (e->bf16)
			*err = halve(t, arena, diag);
	}
	return n;
}

enum hd_err hd_ckpt_tensors_write(const struct hd_state *state, uint8_t group,
	const struct hd_ckpt_info *info, struct hd_sink *sink,
	struct hd_diag *diag)
{
	char step[24], job[HD_HASH_HEX];
	struct hd_arena arena;
	enum hd_err err = HD_OK;

	hd_arena_init(&arena, 0);
	struct hd_st_tensor *tensor = hd_arena_take(&arena, (size_t)state->nentries + 1, sizeof *tensor);
	if (!tensor) {
		err = hd_fail(diag, HD_E_NOMEM, "no memory to write %u tensors", state->nentries);
		goto out;
	}
	uint32_t n = gather(state, group, tensor, &arena, diag, &err);
	struct hd_text text;
	hd_text_fixed(&text, step, sizeof step);
	hd_text_addf(&text, "%llu", (unsigned long long)info->step);
	hd_hash_hex(info->job_hash, job);
	const struct hd_st_meta meta[NMETA] = { { "format", "pt" }, { "job_hash", job },
		{ "model", info->model }, { "step", step } };
	if (!err)
		err = hd_safetensors_write(tensor, n, meta, NMETA, &arena, hd_sink_put, sink, diag);
out:
	hd_arena_finish(&arena);
	return err;
}
