#include "checkpoint/onnx_model.h"

#include <stdio.h>
#include <string.h>

struct maps {
	struct hd_fs *fs;
	char folder[HD_PATH_CAP];
	struct { char name[256]; struct hd_map map; } file[HD_ONNX_MAX_FILES];
	uint32_t n;
};

static enum hd_err map_file(struct hd_fs *fs, struct hd_file *file, struct hd_map *map, struct hd_diag *diag)
{
	enum hd_err err = hd_file_map(file, map, diag);
	enum hd_err closed = hd_file_close(file, err ? NULL : diag);

	if (!err && closed)
		hd_file_unmap(fs, map);
	return err ? err : closed;
}

static enum hd_err beside(void *user, const char *name, struct hd_onnx_bytes *bytes, struct hd_diag *diag)
{
	struct maps *m = user;
	struct hd_file file;
	uint32_t at = 0;

	while (at < m->n && strcmp(m->file[at].name, name) != 0)
		at++;
	if (at == m->n) {
		if (at == HD_ONNX_MAX_FILES || strlen(name) >= sizeof m->file[at].name)
			return hd_fail(diag, HD_E_INPUT,
				"%s: more than %d files of external data, or a name that is too long",
				m->folder, HD_ONNX_MAX_FILES);
		enum hd_err err = hd_file_open_beneath(m->fs, m->folder, name, HD_OPEN_READ, &file, diag);
		if (!err)
			err = map_file(m->fs, &file, &m->file[at].map, diag);
		if (err)
			return err;
		snprintf(m->file[at].name, sizeof m->file[at].name, "%s", name);
		m->n++;
	}
	*bytes = (struct hd_onnx_bytes){ m->file[at].map.bytes, m->file[at].map.len };
	return HD_OK;
}

/* Parameters, then buffers: the order of hd_fit_value(). */
static enum hd_err copy_weights(const struct hd_graph *g, const struct hd_onnx_values *values,
	const char *path, struct hd_arena *arena,
	struct hd_weights **weights, struct hd_diag *diag)
{
	uint32_t n = hd_fit_count(g);
	struct hd_st_tensor *t = hd_arena_take(arena, n + 1, sizeof *t);

	if (!t)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its tensors", path);
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_value *v = hd_fit_value(g, i);
		const struct hd_onnx_weight *w = i < g->nparams ? &values->param[i] :
			&values->buffer[i - g->nparams];
		t[i] = (struct hd_st_tensor){ .name = hd_graph_text_of(g, v->name), .dtype = HD_ST_F32,
			.rank = v->rank, .at = w->at,
			.len_bytes = w->len_bytes };
		for (uint32_t d = 0; d < v->rank; d++)
			t[i].dim[d] = (uint64_t)v->dim[d];
	}
	return hd_weights_of(weights, path, t, n, diag);
}

enum hd_err hd_onnx_model(struct hd_fs *fs, const char *path, const struct hd_onnx_opts *opts,
	struct hd_arena *arena, struct hd_graph *graph,
	struct hd_weights **weights, struct hd_diag *diag)
{
	struct maps *maps = hd_arena_take(arena, 1, sizeof *maps);
	struct hd_onnx_opts own = *opts;
	struct hd_onnx_values values;
	const char *slash = strrchr(path, '/');
	struct hd_file file;
	struct hd_map map = { 0 };

	if (!maps)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory", path);
	if (strlen(path) >= sizeof maps->folder)
		return hd_fail(diag, HD_E_INPUT, "%.60s...: the path is too long", path);
	maps->fs = fs;
	snprintf(maps->folder, sizeof maps->folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1,
		slash ? path : ".");
	own.data = beside;
	own.user = maps;
	hd_graph_init(graph, arena);
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_READ, &file, diag);
	if (!err)
		err = map_file(fs, &file, &map, diag);
	if (!err)
		err = hd_onnx_import(graph, path, map.bytes, map.len, &own, &values, diag);
	if (!err && weights)
		err = copy_weights(graph, &values, path, arena, weights, diag);
	hd_file_unmap(fs, &map);
	for (uint32_t i = 0; i < maps->n; i++)
		hd_file_unmap(fs, &maps->file[i].map);
	return err;
}
