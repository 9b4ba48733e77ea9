#include "data/graph_input.h"

#include <string.h>

#include "base/pack.h"

enum { UNPACKED_SHIFT = 36 };             /* a larger file is no graph but a bomb */

enum hd_err hd_graph_input_open(struct hd_graph_input *input, struct hd_fs *fs, const char *path,
	struct hd_diag *diag)
{
	struct hd_graph_input got = { .name = path, .fs = fs };
	struct hd_file file = { 0 };
	struct hd_stat stat;
	enum hd_err err = hd_fs_stat(fs, path, &stat, diag);

	hd_arena_init(&got.arena, 0);
	if (!err && stat.kind != HD_FILE_REGULAR)
		err = hd_fail(diag, HD_E_INPUT, "%s is not a file", path);
	if (!err)
		err = hd_file_open(fs, path, HD_OPEN_READ, &file, diag);
	if (err)
		return err;
	err = hd_file_map(&file, &got.map, diag);
	enum hd_err closed = hd_file_close(&file, err ? NULL : diag);
	err = err ? err : closed;
	got.bytes = got.map.bytes;
	got.len = got.map.len;
	if (!err && hd_gzip_is(got.bytes, got.len)) {
		uint8_t *unpacked = NULL;
		err = hd_gzip_unpack(&got.arena, path, got.map.bytes, got.map.len,
			(size_t)1 << UNPACKED_SHIFT,
			&unpacked, &got.len, diag);
		got.bytes = unpacked;
		hd_file_unmap(fs, &got.map);
		got.map = (struct hd_map){ 0 };
	}
	if (!err && !got.len)
		err = hd_fail(diag, HD_E_INPUT, "%s is empty", path);
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

enum hd_err hd_graph_edges(const struct hd_graph_input *input, uint64_t nvertices,
	const struct hd_edge_sink *sink, struct hd_diag *diag)
{
	return hd_edge_text(input->bytes, input->len, input->name, nvertices, sink, diag);
}

enum hd_err hd_graph_vertices(const struct hd_graph_input *input, const struct hd_vertex_sink *sink,
	struct hd_diag *diag)
{
	return hd_vertex_text(input->bytes, input->len, input->name, sink, diag);
}

enum hd_err hd_graph_labels(const struct hd_graph_input *input, uint64_t nvertices, int32_t *label,
	struct hd_diag *diag)
{
	return hd_label_text(input->bytes, input->len, input->name, nvertices, label, diag);
}

enum hd_err hd_graph_sets(const struct hd_graph_input *input, uint64_t nvertices, uint8_t *mask,
	struct hd_diag *diag)
{
	return hd_split_text(input->bytes, input->len, input->name, nvertices, mask, diag);
}
