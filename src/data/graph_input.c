#include "data/graph_input.h"

#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "data/graph_matrix.h"
#include "data/graph_npz.h"
#include "data/prepared.h"

enum { UNPACKED_SHIFT = 36 };             /* a larger file is no graph but a bomb */

bool hd_graph_is_folder(struct hd_fs *fs, const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(fs, path, &stat, NULL) && stat.kind == HD_FILE_FOLDER;
}

/* The path itself; of a folder the role's file in it, plain or gzipped. */
static enum hd_err find_file(struct hd_fs *fs, const char *path, enum hd_graph_role role,
	char found[HD_PATH_CAP], struct hd_diag *diag)
{
	static const char *const names[] = {
#define X(id, name) name,
		HD_GRAPH_ROLES(X)
#undef X
	};
	static const char *const ends[] = { "", ".gz" };
	struct hd_stat stat;
	bool folder = hd_graph_is_folder(fs, path);

	for (size_t i = 0; i < 2; i++) {
		int len = folder ? snprintf(found, HD_PATH_CAP, "%s/%s%s", path, names[role], ends[i]) :
			snprintf(found, HD_PATH_CAP, "%s", path);
		if (len < 0 || len >= HD_PATH_CAP)
			return hd_fail(diag, HD_E_INVAL, "a path is longer than %d bytes", HD_PATH_CAP - 1);
		if (!folder || !hd_fs_stat(fs, found, &stat, NULL))
			return HD_OK;
	}
	return hd_fail(diag, HD_E_NOTFOUND, "the folder %s has no %s, plain or gzipped: name a file, or a "
		"folder in "
		"OGB's layout", path, names[role]);
}

static enum hd_err map_file(struct hd_graph_input *input, struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	struct hd_stat stat;
	enum hd_err err = hd_fs_stat(input->fs, input->name, &stat, diag);

	if (!err && stat.kind != HD_FILE_REGULAR)
		err = hd_fail(diag, HD_E_INPUT, "%s is not a file", input->name);
	if (!err)
		err = hd_file_open(input->fs, input->name, HD_OPEN_READ, &file, diag);
	if (err)
		return err;
	err = hd_file_map(&file, &input->map, diag);
	enum hd_err closed = hd_file_close(&file, err ? NULL : diag);
	input->bytes = input->map.bytes;
	input->len = input->map.len;
	return err ? err : closed;
}

static enum hd_err unpack(struct hd_graph_input *input, struct hd_diag *diag)
{
	uint8_t *unpacked = NULL;
	enum hd_err err = hd_gzip_unpack(&input->arena, input->name, input->map.bytes, input->map.len,
		(size_t)1 << UNPACKED_SHIFT, &unpacked, &input->len, diag);

	input->bytes = unpacked;
	hd_file_unmap(input->fs, &input->map);
	input->map = (struct hd_map){ 0 };
	return err;
}

static bool has_end(const char *name, size_t len, const char *end)
{
	size_t want = strlen(end);

	return len >= want && !memcmp(name + len - want, end, want);
}

/* Sets of a folder that a graph may do without. */
static bool may_be_empty(enum hd_graph_role role)
{
	return role == HD_GRAPH_IS_VALID || role == HD_GRAPH_IS_TEST;
}

enum hd_err hd_graph_input_open(struct hd_graph_input *input, struct hd_fs *fs, const char *path,
	enum hd_graph_role role, struct hd_diag *diag)
{
	struct hd_graph_input got = { .fs = fs };
	char found[HD_PATH_CAP];
	enum hd_err err = find_file(fs, path, role, found, diag);

	hd_arena_init(&got.arena, 0);
	if (!err && !(got.name = hd_arena_text(&got.arena, found, strlen(found))))
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a path");
	if (!err)
		err = map_file(&got, diag);
	/* bytes of an ".u32" are numbers, whatever they begin with */
	if (!err && hd_gzip_is(got.bytes, got.len) && !has_end(got.name, strlen(got.name), ".u32"))
		err = unpack(&got, diag);
	if (!err && !got.len && !may_be_empty(role))
		err = hd_fail(diag, HD_E_INPUT, "%s is empty", got.name);
	if (err)
		hd_graph_input_close(&got);
	else
		*input = got;
	return err;
}

void hd_graph_input_close(struct hd_graph_input *input)
{
	if (input->fs)
		hd_file_unmap(input->fs, &input->map);
	hd_arena_finish(&input->arena);
	*input = (struct hd_graph_input){ 0 };
}

/* ---- forms: the first row whose end the name has */

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name);

	return has_end(name, has_end(name, len, ".gz") ? len - 3 : len, end);
}

static const struct {
	const char *end;
	enum hd_err (*parse)(const uint8_t *bytes, size_t len, const char *name, uint64_t nvertices,
		const struct hd_edge_sink *sink, struct hd_diag *diag);
} edge_forms[] = {
	{ ".mtx", hd_edge_mtx }, { ".npz", hd_edge_npz }, { ".npy", hd_edge_npy }, { ".u32", hd_edge_pairs },
	{ "", hd_edge_text },
};

static const struct {
	const char *end;
	enum hd_err (*parse)(const uint8_t *bytes, size_t len, const char *name,
		const struct hd_vertex_sink *sink, struct hd_diag *diag);
} vertex_forms[] = {
	{ ".npz", hd_vertex_npz }, { ".npy", hd_vertex_npy }, { ".csv", hd_vertex_csv }, { "", hd_vertex_text },
};

enum hd_err hd_graph_edges(const struct hd_graph_input *input, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	size_t i = 0;

	while (!ends_in(input->name, edge_forms[i].end))
		i++;
	return edge_forms[i].parse(input->bytes, input->len, input->name, nvertices, sink, diag);
}

enum hd_err hd_graph_vertices(const struct hd_graph_input *input, const struct hd_vertex_sink *sink,
	struct hd_diag *diag)
{
	size_t i = 0;

	while (!ends_in(input->name, vertex_forms[i].end))
		i++;
	return vertex_forms[i].parse(input->bytes, input->len, input->name, sink, diag);
}

enum hd_err hd_graph_labels(const struct hd_graph_input *input, uint64_t nvertices, int32_t *label,
	struct hd_diag *diag)
{
	return (ends_in(input->name, ".npy") ? hd_label_npy : hd_label_text)(input->bytes, input->len,
		input->name,
		nvertices, label, diag);
}

/* ---- splits */

static enum hd_err folder_sets(struct hd_fs *fs, const char *path, uint64_t nvertices, uint8_t *mask,
	struct hd_diag *diag)
{
	static const struct { enum hd_graph_role role; uint8_t which; } sets[] = {
		{ HD_GRAPH_IS_TRAIN, HD_GRAPH_TRAIN }, { HD_GRAPH_IS_VALID, HD_GRAPH_VALID },
		{ HD_GRAPH_IS_TEST, HD_GRAPH_TEST },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof sets / sizeof sets[0] && !err; i++) {
		struct hd_graph_input input = { 0 };
		err = hd_graph_input_open(&input, fs, path, sets[i].role, diag);
		if (!err && input.len)
			err = hd_split_ids(input.bytes, input.len, input.name, nvertices, sets[i].which, mask,
				diag);
		hd_graph_input_close(&input);
	}
	return err;
}

enum hd_err hd_graph_sets(struct hd_fs *fs, const char *path, uint64_t nvertices, uint8_t *mask,
	struct hd_diag *diag)
{
	struct hd_graph_input input = { 0 };
	enum hd_err err;

	if (hd_graph_is_folder(fs, path))
		return folder_sets(fs, path, nvertices, mask, diag);
	err = hd_graph_input_open(&input, fs, path, HD_GRAPH_IS_TRAIN, diag);
	if (!err)
		err = hd_split_text(input.bytes, input.len, input.name, nvertices, mask, diag);
	hd_graph_input_close(&input);
	return err;
}
