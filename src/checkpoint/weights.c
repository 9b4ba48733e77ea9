#include "checkpoint/weights.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/half.h"
#include "base/json.h"
#include "graph/lora.h"
#include "graph/names.h"
#include "checkpoint/ckpt.h"

enum { MAX_SHARDS = 1000, INDEX_BYTES = 32 << 20, SAID = 4 };
#define MAX_FILE_BYTES ((uint64_t)1 << 40)      /* of belief: what is read must fit into memory anyway */

static const char index_end[] = ".safetensors.index.json", index_name[] = "model.safetensors.index.json",
	file_name[] = "model.safetensors";

/* ---- reading */

static enum hd_err no_memory(const char *path, struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"%s: no memory for its tensors", path); }

static enum hd_err add_tensors(struct hd_weights *w, const struct hd_st_tensor *tensor, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_st_tensor *all = hd_arena_take(&w->arena, (size_t)w->ntensors + n + 1, sizeof *all);

	if (!all)
		return no_memory(w->path, diag);
	if (w->ntensors)
		memcpy(all, w->tensor, w->ntensors * sizeof *all);
	if (n)
		memcpy(all + w->ntensors, tensor, n * sizeof *all);
	w->tensor = all;
	w->ntensors += n;
	return HD_OK;
}

static enum hd_err add_file(struct hd_weights *w, struct hd_fs *fs, const char *path,
	struct hd_safetensors *read, struct hd_diag *diag)
{
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(fs, path, &w->arena, MAX_FILE_BYTES, &bytes, &len, diag);

	if (!err)
		err = hd_safetensors_read(read, &w->arena, path, bytes, len, diag);
	return err ? err : add_tensors(w, read->tensor, read->ntensors, diag);
}

/* The name of a shard comes from a file: one folder entry, and nothing that leads elsewhere. */
static enum hd_err read_shard(struct hd_weights *w, struct hd_fs *fs, const char *index, const char *name,
	struct hd_safetensors *read,
	struct hd_diag *diag)
{
	const char *slash = strrchr(index, '/');
	char path[HD_PATH_CAP];

	if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		return hd_fail(diag, HD_E_INPUT, "%s: \"%.80s\" is no name of a file beside it", index, name);
	if ((size_t)snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - index) + 1 : 0, index,
		name) >= sizeof path)
		return hd_fail(diag, HD_E_INPUT, "%s: the path of its shard %.80s is too long", index, name);
	return add_file(w, fs, path, read, diag);
}

static enum hd_err read_shards(struct hd_weights *w, struct hd_fs *fs, const char *index,
	const struct hd_json *map, struct hd_diag *diag)
{
	const char *seen[MAX_SHARDS], *name = NULL;
	struct hd_safetensors *shard = hd_arena_take(&w->arena, MAX_SHARDS, sizeof *shard);
	uint32_t n = 0;
	enum hd_err err = shard ? HD_OK : no_memory(index, diag);

	for (size_t i = 0; i < hd_json_count(map) && !err; i++) {
		uint32_t k = 0;
		err = hd_json_as_text(hd_json_item(map, i), &name, diag);
		while (!err && k < n && strcmp(seen[k], name) != 0)
			k++;
		if (!err && k == n && n == MAX_SHARDS)
			err = hd_fail(diag, HD_E_INPUT, "%s names more than %d files", index, MAX_SHARDS);
		if (!err && k == n) {
			seen[n++] = name;
			err = read_shard(w, fs, index, name, &shard[k], diag);
		}
		if (!err && !hd_safetensors_find(&shard[k], hd_json_key(map, i)))
			err = hd_fail(diag, HD_E_INPUT, "%s: tensor '%s' is not in %s", index,
				hd_json_key(map, i), name);
	}
	if (!err && w->ntensors != hd_json_count(map))
		err = hd_fail(diag, HD_E_INPUT, "%s lists %zu tensors, its files hold %u", index,
			hd_json_count(map), w->ntensors);
	return err;
}

static enum hd_err from_index(struct hd_weights *w, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	const struct hd_json *json, *map;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_file_read_all(fs, path, &w->arena, INDEX_BYTES, &bytes, &len, diag);

	if (!err)
		err = hd_json_parse(&w->arena, path, (const char *)bytes, len, &json, diag);
	if (!err)
		err = hd_json_get(json, "weight_map", HD_JSON_OBJECT, &map, diag);
	return err ? err : read_shards(w, fs, path, map, diag);
}

static enum hd_err from_run(struct hd_weights *w, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	struct hd_ckpt_info info;
	struct hd_state state;
	enum hd_err err = hd_ckpt_find(fs, path, UINT64_MAX, &info, NULL, NULL, diag);

	if (!err)
		err = hd_ckpt_load(fs, info.folder, &w->arena, &state, &info, diag);
	for (uint32_t i = 0; !err && i < state.nentries; i++) {
		const struct hd_state_entry *e = &state.entry[i];
		struct hd_st_tensor t = { .name = e->name, .rank = e->rank, .at = e->at,
			.len_bytes = e->len_bytes };
		for (int k = 0; k < e->rank; k++)
			t.dim[k] = (uint64_t)e->dim[k];
		if (e->group == HD_STATE_MODEL && hd_st_dtype_from((enum hd_dtype)e->dtype, &t.dtype))
			err = add_tensors(w, &t, 1, diag);
	}
	return err;
}

static enum hd_err from_file(struct hd_weights *w, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	struct hd_safetensors read = { .nmeta = 0 };
	enum hd_err err = add_file(w, fs, path, &read, diag);

	w->meta = read.meta;
	w->nmeta = read.nmeta;
	return err;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Ways to read a folder, tried in this order; a file that is there decides. */
typedef enum hd_err reader(struct hd_weights *w, struct hd_fs *fs, const char *path, struct hd_diag *diag);

static const struct { const char *holds; bool is_run; reader *read; } folders[] = {
	{ "MANIFEST.json",     true,  from_run },
	{ "job.resolved.json", true,  from_run },
	{ "ckpt",              true,  from_run },
	{ index_name,          false, from_index },
	{ file_name,           false, from_file },
};

static enum hd_err from_folder(struct hd_weights *w, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	char inside[HD_PATH_CAP];
	struct hd_stat stat;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		if ((size_t)snprintf(inside, sizeof inside, "%s/%s", path, folders[i].holds) >= sizeof inside)
			return hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", path);
		if (!hd_fs_stat(fs, inside, &stat, NULL))
			return folders[i].read(w, fs, folders[i].is_run ? path : inside, diag);
	}
	/* a folder of checkpoints, or a message that says what it is not */
	return from_run(w, fs, path, diag);
}

static int by_name(const void *a, const void *b)
{
	const struct hd_st_tensor *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void add_u64(struct hd_hasher *hasher, uint64_t n)
{
	uint8_t byte[8];

	for (int i = 0; i < 8; i++)
		byte[i] = (uint8_t)(n >> 8 * i);
	hd_hasher_add(hasher, byte, sizeof byte);
}

static void take_digest(struct hd_weights *w)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < w->ntensors; i++) {
		const struct hd_st_tensor *t = &w->tensor[i];
		const uint8_t kind[2] = { (uint8_t)t->dtype, (uint8_t)t->rank };
		struct hd_hash bytes = hd_hash(t->at, t->len_bytes);
		hd_hasher_add(&hasher, t->name, strlen(t->name) + 1);
		hd_hasher_add(&hasher, kind, sizeof kind);
		for (uint32_t k = 0; k < t->rank; k++)
			add_u64(&hasher, t->dim[k]);
		hd_hasher_add(&hasher, bytes.byte, sizeof bytes.byte);
	}
	w->digest = hd_hasher_end(&hasher);
}

static enum hd_err settle(struct hd_weights *w, struct hd_diag *diag)
{
	qsort(w->tensor, w->ntensors, sizeof *w->tensor, by_name);
	for (uint32_t i = 1; i < w->ntensors; i++)
		if (!strcmp(w->tensor[i - 1].name, w->tensor[i].name))
			return hd_fail(diag, HD_E_INPUT, "%s: tensor '%s' stands in two of its files",
				w->path, w->tensor[i].name);
	if (!w->ntensors)
		return hd_fail(diag, HD_E_INPUT, "%s holds no tensors", w->path);
	take_digest(w);
	return HD_OK;
}

enum hd_err hd_weights_open(struct hd_weights **out, struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	struct hd_weights *w = hd_alloc(sizeof *w);
	struct hd_stat stat;

	if (!w)
		return no_memory(path, diag);
	*w = (struct hd_weights){ .ntensors = 0 };
	hd_arena_init(&w->arena, 0);
	w->path = hd_arena_text(&w->arena, path, strlen(path));
	enum hd_err err = w->path ? hd_fs_stat(fs, path, &stat, diag) : no_memory(path, diag);
	if (!err)
		err = stat.kind == HD_FILE_FOLDER ? from_folder(w, fs, path, diag)
			: ends_with(path, index_end) ? from_index(w, fs, path, diag) : from_file(w, fs, path,
				diag);
	if (!err)
		err = settle(w, diag);
	if (err)
		hd_weights_close(w);
	else
		*out = w;
	return err;
}

static enum hd_err copy_tensors(struct hd_weights *w, const struct hd_st_tensor *tensor, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_st_tensor *copy = hd_arena_take(&w->arena, n ? n : 1, sizeof *copy);

	for (uint32_t i = 0; copy && i < n; i++) {
		void *at = hd_arena_take(&w->arena, tensor[i].len_bytes ? tensor[i].len_bytes : 1, 1);
		copy[i] = tensor[i];
		copy[i].name = hd_arena_text(&w->arena, tensor[i].name, strlen(tensor[i].name));
		if (!at || !copy[i].name)
			return no_memory(w->path, diag);
		memcpy(at, tensor[i].at, tensor[i].len_bytes);
		copy[i].at = at;
	}
	return copy ? add_tensors(w, copy, n, diag) : no_memory(w->path, diag);
}

enum hd_err hd_weights_of(struct hd_weights **out, const char *path, const struct hd_st_tensor *tensor,
	uint32_t n, struct hd_diag *diag)
{
	struct hd_weights *w = hd_alloc(sizeof *w);

	if (!w)
		return no_memory(path, diag);
	*w = (struct hd_weights){ .ntensors = 0 };
	hd_arena_init(&w->arena, 0);
	w->path = hd_arena_text(&w->arena, path, strlen(path));
	enum hd_err err = w->path ? copy_tensors(w, tensor, n, diag) : no_memory(path, diag);
	if (!err)
		err = settle(w, diag);
	if (err)
		hd_weights_close(w);
	else
		*out = w;
	return err;
}

void hd_weights_close(struct hd_weights *w)
{
	if (!w)
		return;
	hd_arena_finish(&w->arena);
	hd_free(w);
}

/* ---- fitting */

uint32_t hd_fit_count(const struct hd_graph *graph) { return graph->nparams + graph->nbuffers; }

const struct hd_value *hd_fit_value(const struct hd_graph *graph, uint32_t i)
{
	return &graph->value[i < graph->nparams ? graph->param[i].value :
		graph->buffer[i - graph->nparams].value];
}

/* What is wrong, by kind; all of it, so that one look is enough. */
enum wrong { MISSING, UNKNOWN, SHAPED, TYPED, NWRONG };
static const char *const wrong_text[NWRONG] = { "missing", "not of this model", "of another shape",
	"not to be taken as f32" };

struct fitting {
	struct hd_weights *w;
	const struct hd_graph *graph;
	const struct hd_family *family;
	const char *const *skip;
	uint32_t nskip, nwrong[NWRONG];
	struct hd_weight_source *fit;
	struct hd_text text[NWRONG];
};

static bool is_skipped(const struct fitting *f, const char *name)
{
	for (uint32_t i = 0; i < f->nskip; i++)
		if (hd_name_matches(f->skip[i], name))
			return true;
	return false;
}

static void shape_text(const struct hd_st_tensor *t, struct hd_text *text)
{
	hd_text_addf(text, "%s [", hd_st_dtype_text(t->dtype));
	for (uint32_t k = 0; k < t->rank; k++)
		hd_text_addf(text, "%s%llu", k ? "," : "", (unsigned long long)t->dim[k]);
	hd_text_add(text, "]");
}

static struct hd_text *complain(struct fitting *f, enum wrong wrong, const char *name)
{
	hd_text_addf(&f->text[wrong], "%s%s ", f->nwrong[wrong]++ ? ", " : "", name);
	return &f->text[wrong];
}

static bool same_shape(const struct hd_st_tensor *t, bool turned, const struct hd_value *v)
{
	if (t->rank != v->rank || (turned && t->rank != 2))
		return false;
	for (uint32_t k = 0; k < t->rank; k++)
		if (t->dim[turned ? 1 - k : k] != (uint64_t)v->dim[k])
			return false;
	return true;
}

/* NULL: f32 holds them all. */
static const char *unfit_type(const struct hd_st_tensor *t)
{
	if (t->dtype == HD_ST_F32 || t->dtype == HD_ST_F16 || t->dtype == HD_ST_BF16)
		return NULL;
	if (t->dtype != HD_ST_F64)
		return "(no floating numbers)";
	for (uint64_t i = 0; i < t->len_bytes / sizeof(double); i++) {
		double x;
		memcpy(&x, (const char *)t->at + i * sizeof x, sizeof x);
		if (isfinite(x) && !isfinite((float)x))
			return "(a number beyond f32)";
	}
	return NULL;
}

const char *hd_fit_unfit(const struct hd_st_tensor *t, bool turned, const struct hd_value *v)
{
	return same_shape(t, turned, v) ? unfit_type(t) : "(of another shape)";
}

static uint32_t find(const struct hd_graph *graph, const char *name)
{
	uint32_t p = hd_graph_find_param(graph, name), b = p == HD_NONE ? hd_graph_find_buffer(graph, name) :
		HD_NONE;

	return p != HD_NONE ? p : b != HD_NONE ? graph->nparams + b : HD_NONE;
}

/* One of several that make a tensor of ours. */
static void take_part(struct fitting *f, const struct hd_st_tensor *t, uint32_t part, uint32_t p)
{
	const struct hd_value *v = hd_fit_value(f->graph, p);
	struct hd_weight_source *fit = &f->fit[p];
	bool fits = t->rank + 1u == v->rank;

	for (uint32_t k = 0; k < t->rank && fits; k++)
		fits = t->dim[k] == (uint64_t)v->dim[k + 1];
	if (fit->from && !fit->part) {
		shape_text(t, complain(f, UNKNOWN, t->name));
		hd_text_addf(&f->text[UNKNOWN], " (beside %s, which has all of them)", fit->from->name);
		return;
	}
	if (!fit->part && v->dim[0] > 0) {
		fit->part = hd_arena_take(&f->w->arena, (size_t)v->dim[0], sizeof *fit->part);
		fit->nparts = fit->part ? (uint32_t)v->dim[0] : 0;
	}
	if (part >= fit->nparts || fit->part[part]) {
		shape_text(t, complain(f, UNKNOWN, t->name));
	} else if (!fits) {
		shape_text(t, complain(f, SHAPED, t->name));
		hd_text_addf(&f->text[SHAPED], " for one of %s", hd_value_shape(v).at);
	} else if (unfit_type(t)) {
		shape_text(t, complain(f, TYPED, t->name));
		hd_text_addf(&f->text[TYPED], " %s", unfit_type(t));
	}
	if (part >= fit->nparts)
		return;
	fit->part[part] = t;
	fit->from = t;
}

static void miss_parts(struct fitting *f, uint32_t p, const char *name)
{
	struct hd_theirs theirs;

	for (uint32_t i = 0; i < f->fit[p].nparts; i++)
		if (!f->fit[p].part[i])
			complain(f, MISSING, hd_name_part_to_theirs(f->family, name, i, &theirs) ?
				theirs.name : name);
}

/* A second name of a tensor that is there already must hold the same bytes: an untied one is another
 * model. */
static void take(struct fitting *f, const struct hd_st_tensor *t, const struct hd_ours *ours)
{
	uint32_t p = find(f->graph, ours->name);

	if (is_skipped(f, ours->name) || is_skipped(f, t->name))
		return;
	if (p == HD_NONE && hd_name_is_surplus(f->family, t->name)) {
		if (f->w->nsurplus < SAID)
			hd_text_addf(&f->w->surplus, "%s%s", f->w->nsurplus ? ", " : "", t->name);
		else if (f->w->nsurplus == SAID)
			hd_text_add(&f->w->surplus, ", ...");
		f->w->nsurplus++;
		return;
	}
	if (p == HD_NONE) {
		shape_text(t, complain(f, UNKNOWN, t->name));
		return;
	}
	const struct hd_value *v = hd_fit_value(f->graph, p);
	if (ours->stacked && v->rank > 1) {
		take_part(f, t, ours->part, p);
		return;
	}
	const char *unfit = unfit_type(t);
	struct hd_weight_source *fit = &f->fit[p];
	if (!same_shape(t, ours->turned, v)) {
		shape_text(t, complain(f, SHAPED, t->name));
		hd_text_addf(&f->text[SHAPED], " for %s", hd_value_shape(v).at);
	} else if (unfit) {
		shape_text(t, complain(f, TYPED, t->name));
		hd_text_addf(&f->text[TYPED], " %s", unfit);
	} else if (fit->from && (fit->from->len_bytes != t->len_bytes ||
		memcmp(fit->from->at, t->at, t->len_bytes) != 0)) {
		shape_text(t, complain(f, UNKNOWN, t->name));
		hd_text_addf(&f->text[UNKNOWN], " (not equal to %s)", fit->from->name);
	}
	if (!fit->from)
		*fit = (struct hd_weight_source){ .from = t, .turned = ours->turned };
}

static enum hd_err conclude(struct fitting *f, struct hd_text *full, struct hd_diag *diag)
{
	struct hd_text said;
	const char *before = "";

	hd_text_init(&said, &f->w->arena);
	hd_text_addf(&said, "%s does not fit the model %s: ", f->w->path,
		hd_graph_text_of(f->graph, f->graph->name));
	for (int i = 0; i < NWRONG; i++) {
		if (!f->nwrong[i])
			continue;
		hd_text_addf(&said, "%s%u %s: %s", before, f->nwrong[i], wrong_text[i], f->text[i].at);
		before = "; ";
	}
	if (!*before)
		return HD_OK;
	if (full)
		hd_text_add(full, said.at);
	return hd_fail(diag, HD_E_INPUT, "%s", said.at);
}

enum hd_err hd_weights_fit(struct hd_weights *w, const struct hd_graph *graph, const char *const *skip,
	uint32_t nskip,
	struct hd_weight_source **fit, struct hd_text *full, struct hd_diag *diag)
{
	struct fitting f = { .w = w, .graph = graph, .family = hd_family_of(hd_graph_text_of(graph,
		graph->name)), .skip = skip, .nskip = nskip,
		.fit = hd_arena_take(&w->arena, hd_fit_count(graph) + 1, sizeof *f.fit) };
	struct hd_ours ours;

	if (!f.fit)
		return no_memory(w->path, diag);
	for (int i = 0; i < NWRONG; i++)
		hd_text_init(&f.text[i], &w->arena);
	w->nsurplus = 0;
	hd_text_init(&w->surplus, &w->arena);
	hd_text_add(&w->surplus, "");
	for (int tied = 0; tied < 2; tied++)      /* second names after the first */
		for (uint32_t i = 0; i < w->ntensors; i++) {
			if (!hd_name_from_theirs(f.family, w->tensor[i].name, &ours))
				ours.name[0] = 0;         /* too long to be one of ours */
			if (ours.kind == HD_NAME_TIED && hd_graph_find_param(graph, ours.second) != HD_NONE) {
				ours.kind = HD_NAME_OURS;
				snprintf(ours.name, sizeof ours.name, "%s", ours.second);
			}
			if (ours.kind != HD_NAME_NOTHING && (ours.kind == HD_NAME_TIED) == tied)
				take(&f, &w->tensor[i], &ours);
		}
	for (uint32_t p = 0; p < hd_fit_count(graph); p++) {
		const struct hd_value *v = hd_fit_value(graph, p);
		const char *name = hd_graph_text_of(graph, v->name);
		if (!f.fit[p].from && !is_skipped(&f, name) && !hd_lora_is_adapter(name))
			hd_text_add(complain(&f, MISSING, name), hd_value_shape(v).at);
		else if (f.fit[p].part)
			miss_parts(&f, p, name);
	}
	enum hd_err err = conclude(&f, full, diag);
	if (!err)
		*fit = f.fit;
	return err;
}

static float element(const struct hd_st_tensor *t, uint64_t i)
{
	uint16_t half;
	double x;

	switch (t->dtype) {
	case HD_ST_F16:
	case HD_ST_BF16:
		memcpy(&half, (const char *)t->at + i * sizeof half, sizeof half);
		return t->dtype == HD_ST_F16 ? hd_f32_of_f16(half) : hd_f32_of_bf16(half);
	case HD_ST_F64:
		memcpy(&x, (const char *)t->at + i * sizeof x, sizeof x);
		return (float)x;
	case HD_ST_F32: case HD_ST_I64: case HD_ST_I32: case HD_ST_I16: case HD_ST_I8: case HD_ST_U8:
	case HD_ST_BOOL: case HD_ST_NDTYPES:
		break;
	}
	float f;
	/* fitting lets no other dtype through */
	memcpy(&f, (const char *)t->at + i * sizeof f, sizeof f);
	return f;
}

static uint64_t elems_of(const struct hd_st_tensor *t)
{
	uint64_t n = 1;

	for (uint32_t k = 0; k < t->rank; k++)
		n *= t->dim[k];
	return n;
}

void hd_fit_get(const struct hd_weight_source *fit, uint64_t first, uint64_t n, float *out)
{
	const struct hd_st_tensor *t = fit->from;
	const uint64_t each = elems_of(t);
	for (uint64_t i = first; fit->part && i < first + n; i++)
		out[i - first] = element(fit->part[i / each], i % each);
	if (fit->part)
		return;
	const uint64_t rows = fit->turned && t->dim[1] ? t->dim[1] : 1, cols = elems_of(t) / rows;

	for (uint64_t i = first; i < first + n; i++)
		out[i - first] = element(t, fit->turned ? i % cols * rows + i / cols : i);
}

void hd_fit_put(const struct hd_weight_source *fit, float *out)
{
	hd_fit_get(fit, 0, elems_of(fit->from) * (fit->part ? fit->nparts : 1), out);
}
