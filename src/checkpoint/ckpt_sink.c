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

/* What does not lie in memory as it stands in the file: slices of a tensor, numbers of bf16. */

static void get_natural(const void *user, uint64_t first, uint64_t len, void *to)
{
	hd_state_get(user, first / sizeof(float), len / sizeof(float), to);
}

/* Exact: the memory holds numbers of bf16 only. */
static void get_halves(const void *user, uint64_t first, uint64_t len, void *to)
{
	enum { N = 1024 };
	const uint64_t n = len / sizeof(uint16_t);
	float wide[N];

	for (uint64_t done = 0; done < n; done += N) {
		const uint64_t count = n - done < N ? n - done : N;
		hd_state_get(user, first / sizeof(uint16_t) + done, count, wide);
		for (uint64_t i = 0; i < count; i++) {
			const uint16_t half = hd_bf16_of_f32(wide[i]);
			memcpy((uint8_t *)to + (done + i) * sizeof half, &half, sizeof half);
		}
	}
}

static enum hd_err add_source(struct hd_st_tensor *t, const struct hd_state_entry *e, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_st_source *source = hd_arena_take(arena, 1, sizeof *source);

	if (!source)
		return hd_fail(diag, HD_E_NOMEM, "no memory to write '%s'", t->name);
	*source = (struct hd_st_source){ e->bf16 ? get_halves : get_natural, e };
	t->source = source;
	t->dtype = e->bf16 ? HD_ST_BF16 : t->dtype;
	t->len_bytes /= e->bf16 ? 2 : 1;
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
		else if (e->bf16 || e->slices)
			*err = add_source(t, e, arena, diag);
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
