#include "checkpoint/export.h"

#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "checkpoint/ckpt_int.h"

enum { NMETA = 4 };

struct export_run {
	const struct hd_export *how;
	struct hd_arena *arena;
	struct hd_st_tensor *tensor;
	struct hd_st_meta *meta;
	uint32_t n, nmeta;
	struct hd_diag *diag;
};

static enum hd_err no_memory(const struct export_run *o) { return hd_fail(o->diag, HD_E_NOMEM,
	"no memory for the tensors to write"); }

const struct hd_family *hd_export_family(const char *model)
{
	const char *colon = strchr(model, ':');

	return hd_family_of(colon && !strncmp(model, "builtin:", (size_t)(colon - model) + 1) ? colon + 1 :
		"");
}

static enum hd_err turn(const struct export_run *o, struct hd_st_tensor *t)
{
	float *to = hd_arena_take(o->arena, t->len_bytes + 1, 1);
	const float *from = t->at;
	uint64_t rows = t->dim[0], cols = t->dim[1];

	if (!to)
		return no_memory(o);
	for (uint64_t i = 0; i < rows * cols; i++)
		to[i] = from[i % rows * cols + i / rows];
	t->at = to;
	t->dim[0] = cols;
	t->dim[1] = rows;
	return HD_OK;
}

static enum hd_err halve(const struct export_run *o, struct hd_st_tensor *t)
{
	uint64_t n = t->len_bytes / sizeof(float);
	uint16_t *to = hd_arena_take(o->arena, n + 1, sizeof *to);
	const float *from = t->at;

	if (!to)
		return no_memory(o);
	for (uint64_t i = 0; i < n; i++)
		to[i] = hd_bf16_of_f32(from[i]);
	*t = (struct hd_st_tensor){ .name = t->name, .dtype = HD_ST_BF16, .rank = t->rank, .at = to,
		.len_bytes = n * sizeof *to,
		.dim = { t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->dim[4], t->dim[5] } };
	return HD_OK;
}

static enum hd_err copy_name(const struct export_run *o, const char *name, const char **copy)
{
	*copy = hd_arena_text(o->arena, name, strlen(name));
	return *copy ? HD_OK : no_memory(o);
}

static enum hd_err set_before(const struct export_run *o, const char *prefix, const char **name)
{
	char full[HD_MAX_NAME + 32];

	if ((size_t)snprintf(full, sizeof full, "%s%s", prefix, *name) >= sizeof full)
		return hd_fail(o->diag, HD_E_INVAL, "the public name of '%s' is too long", *name);
	return copy_name(o, full, name);
}

static enum hd_err add_ties(struct export_run *o, const struct hd_state *state, const struct hd_st_tensor *of,
	const char *ours)
{
	for (const struct hd_name_tie *tie = o->how->family->tied; tie->theirs; tie++) {
		/* the latter: not tied in this model */
		if (strcmp(tie->ours, ours) != 0 || hd_state_find(state, tie->theirs)
		    || (tie->with && !hd_state_find(state, tie->with)))
			continue;
		if (o->how->both) {
			o->tensor[o->n] = *of;
			o->tensor[o->n++].name = tie->theirs;
		} else {
			o->meta[o->nmeta++] = (struct hd_st_meta){ tie->theirs, of->name };
		}
	}
	return HD_OK;
}

static enum hd_err add_counter(struct export_run *o, const char *theirs, const int64_t *updates)
{
	const struct hd_name_counter *counter = &o->how->family->counter;
	size_t n = strlen(theirs), end = counter->of ? strlen(counter->of) : 0;
	char name[HD_MAX_NAME + 64];

	if (!end || n <= end || strcmp(theirs + n - end, counter->of) != 0)
		return HD_OK;
	snprintf(name, sizeof name, "%.*s%s", (int)(n - end), theirs, counter->theirs);
	struct hd_st_tensor *t = &o->tensor[o->n++];
	*t = (struct hd_st_tensor){ .dtype = HD_ST_I64, .rank = 0, .at = updates,
		.len_bytes = sizeof *updates };
	return copy_name(o, name, &t->name);
}

/* One of ours that is several of theirs (names.h, 8). */
static enum hd_err add_parts(struct export_run *o, const struct hd_state_entry *e)
{
	const uint32_t n = (uint32_t)e->dim[0];
	enum hd_err err = HD_OK;
	struct hd_theirs theirs;

	for (uint32_t i = 0; i < n && !err; i++) {
		struct hd_st_tensor *t = &o->tensor[o->n++];
		*t = (struct hd_st_tensor){ .dtype = HD_ST_F32, .rank = e->rank - 1u,
			.at = (const uint8_t *)e->at + e->len_bytes / n * i, .len_bytes = e->len_bytes / n };
		for (int k = 1; k < e->rank; k++)
			t->dim[k - 1] = (uint64_t)e->dim[k];
		if (!hd_name_part_to_theirs(o->how->family, e->name, i, &theirs))
			return hd_fail(o->diag, HD_E_INVAL, "the public name of '%s' is too long", e->name);
		err = copy_name(o, theirs.name, &t->name);
		if (!err && o->how->prefix)
			err = set_before(o, o->how->prefix, &t->name);
		if (!err && o->how->bf16)
			err = halve(o, t);
	}
	return err;
}

static bool is_stack(const struct export_run *o, const struct hd_state_entry *e)
{
	struct hd_theirs theirs = { .stacked = false };

	return o->how->family && e->group == HD_STATE_MODEL && e->dtype == HD_F32 && e->rank > 1 &&
		hd_name_to_theirs(o->how->family, e->name, &theirs) && theirs.stacked;
}

static enum hd_err add_entry(struct export_run *o, const struct hd_state *state,
	const struct hd_state_entry *e,
	const int64_t *updates)
{
	if (is_stack(o, e))
		return add_parts(o, e);
	struct hd_theirs theirs = { .turned = false };
	struct hd_st_tensor *t = &o->tensor[o->n++];
	enum hd_err err = HD_OK;

	*t = (struct hd_st_tensor){ .name = e->name, .rank = e->rank, .at = e->at,
		.len_bytes = e->len_bytes };
	for (int k = 0; k < e->rank; k++)
		t->dim[k] = (uint64_t)e->dim[k];
	if (!hd_st_dtype_from((enum hd_dtype)e->dtype, &t->dtype))
		return hd_fail(o->diag, HD_E_BUG,
			"state entry '%s' has a type that safetensors does not know", e->name);
	if (o->how->family) {
		if (!hd_name_to_theirs(o->how->family, e->name, &theirs))
			return hd_fail(o->diag, HD_E_INVAL, "the public name of '%s' is too long", e->name);
		err = copy_name(o, theirs.name, &t->name);
		if (!err && o->how->prefix && !hd_name_is_second(o->how->family, t->name))
			err = set_before(o, o->how->prefix, &t->name);
	}
	if (!err && theirs.turned)
		err = turn(o, t);
	if (!err && o->how->bf16 && t->dtype == HD_ST_F32)
		err = halve(o, t);
	if (!err && o->how->family)
		err = add_ties(o, state, t, e->name);
	return err || !o->how->family ? err : add_counter(o, t->name, updates);
}

static enum hd_err gather(struct export_run *o, const struct hd_state *state)
{
	static const int64_t none = 0;
	const struct hd_state_entry *updates = hd_state_find(state, "run.updates");
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < state->nentries && !err; i++)
		if (state->entry[i].group == HD_STATE_MODEL)
			err = add_entry(o, state, &state->entry[i], updates ? updates->at : &none);
	return err;
}

enum hd_err hd_export_tensors(struct hd_fs *fs, const struct hd_st_tensor *tensor, uint32_t n,
	const struct hd_st_meta *meta,
	uint32_t nmeta, const char *path, struct hd_diag *diag)
{
	char tmp[HD_PATH_CAP];
	struct hd_ckpt_sum unused;
	struct hd_arena arena;
	struct hd_sink sink;

	if ((size_t)snprintf(tmp, sizeof tmp, "%s.tmp", path) >= sizeof tmp)
		return hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", path);
	enum hd_err err = hd_sink_open(&sink, fs, tmp, false, diag);
	if (err)
		return err;
	hd_arena_init(&arena, 0);
	err = hd_safetensors_write(tensor, n, meta, nmeta, &arena, hd_sink_put, &sink, diag);
	hd_arena_finish(&arena);
	if (!err)
		err = hd_sink_end(&sink, &unused, diag);
	else
		hd_sink_finish(&sink);
	if (!err)
		err = hd_fs_rename(fs, tmp, path, diag);
	if (err && hd_fs_unlink(fs, tmp, NULL))
		return err;          /* what cannot be removed was never made */
	return err;
}

enum hd_err hd_export_state(struct hd_fs *fs, const struct hd_state *state, const struct hd_ckpt_info *info,
	const struct hd_export *how, const char *path, struct hd_diag *diag)
{
	struct hd_arena arena;
	char step[24], job[HD_HASH_HEX];
	enum hd_err err = HD_OK;

	hd_arena_init(&arena, 0);
	/* an entry has at most all second names and one count beside it */
	size_t ntensors = 2 * (size_t)state->nentries + HD_NAME_TIES + how->nmore;
	const size_t nmeta = NMETA + HD_NAME_TIES + how->nmeta;
	struct export_run o = { .how = how, .arena = &arena, .diag = diag };
	for (uint32_t i = 0; i < state->nentries; i++)
		ntensors += is_stack(&o, &state->entry[i]) ? (size_t)state->entry[i].dim[0] : 0;
	o.tensor = hd_arena_take(&arena, ntensors + 1, sizeof *o.tensor);
	o.meta = hd_arena_take(&arena, nmeta, sizeof *o.meta);
	if (!o.tensor || !o.meta) {
		err = no_memory(&o);
		goto out;
	}
	snprintf(step, sizeof step, "%llu", (unsigned long long)info->step);
	hd_hash_hex(info->job_hash, job);
	o.meta[o.nmeta++] = (struct hd_st_meta){ "format", "pt" };
	o.meta[o.nmeta++] = (struct hd_st_meta){ "job_hash", job };
	o.meta[o.nmeta++] = (struct hd_st_meta){ "model", info->model };
	o.meta[o.nmeta++] = (struct hd_st_meta){ "step", step };
	for (uint32_t i = 0; i < how->nmeta; i++)
		o.meta[o.nmeta++] = how->meta[i];
	err = gather(&o, state);
	for (uint32_t i = 0; i < how->nmore && !err; i++)
		o.tensor[o.n++] = how->more[i];
	if (!err)
		err = hd_export_tensors(fs, o.tensor, o.n, o.meta, o.nmeta, path, diag);
out:
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_export_fit(struct hd_fs *fs, const struct hd_weights *weights, const struct hd_graph *graph,
	const struct hd_weight_source *fit, struct hd_arena *arena, const char *path, struct hd_diag *diag)
{
	uint32_t most = hd_fit_count(graph), n = 0;
	struct hd_st_tensor *tensor = hd_arena_take(arena, (size_t)most + 1, sizeof *tensor);

	for (uint32_t i = 0; i < most; i++) {
		const struct hd_value *v = hd_fit_value(graph, i);
		uint64_t elems = hd_value_elems(v, 1);
		float *at = tensor && fit[i].from ? hd_arena_take(arena, elems, sizeof *at) : NULL;
		if (!tensor || (fit[i].from && !at))
			return hd_fail(diag, HD_E_NOMEM, "no memory for the tensors of %s", weights->path);
		if (!at)
			continue;
		hd_fit_put(&fit[i], at);
		tensor[n] = (struct hd_st_tensor){ .name = hd_graph_text_of(graph, v->name),
			.dtype = HD_ST_F32, .rank = v->rank, .at = at, .len_bytes = elems * sizeof *at };
		for (int k = 0; k < v->rank; k++)
			tensor[n].dim[k] = (uint64_t)v->dim[k];
		n++;
	}
	return hd_export_tensors(fs, tensor, n, weights->meta, weights->nmeta, path, diag);
}
