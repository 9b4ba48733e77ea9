#include "graph/onnx/file.h"

#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "graph/onnx/wire.h"

enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, TENSOR_RAW = 9 };      /* field numbers of onnx.proto */

static bool find_field(const uint8_t *bytes, uint64_t len, uint32_t id, struct hd_wire_field *found,
	uint32_t *count)
{
	struct hd_wire wire = { bytes, len, 0 };
	struct hd_wire_field field;

	*count = 0;
	while (hd_wire_next(&wire, &field) > 0)
		if (field.id == id && field.type == 2) {
			*found = field;
			++*count;
		}
	return *count > 0;
}

static const char *entry(const Onnx__TensorProto *tensor, const char *key)
{
	for (size_t i = 0; i < tensor->n_external_data; i++)
		if (tensor->external_data[i]->key && tensor->external_data[i]->value &&
			!strcmp(tensor->external_data[i]->key, key))
			return tensor->external_data[i]->value;
	return NULL;
}

static enum hd_err external(const struct hd_onnx_file *file, const struct hd_onnx_opts *opts,
	struct hd_onnx_init *init, struct hd_diag *diag)
{
	const Onnx__TensorProto *t = init->tensor;
	const char *location = entry(t, "location"), *offset = entry(t, "offset"),
		*length = entry(t, "length");
	const char *name = t->name ? t->name : "";
	struct hd_onnx_bytes data;
	int64_t from = 0, len = -1;

	if (!location || !hd_name_valid(location))
		return hd_fail(diag, HD_E_INPUT,
			"%s: tensor '%s' lies in the file '%s': only a bare name in the same folder is "
			"followed", file->name, name,
			location ? location : "");
	if (!opts->data)
		return hd_fail(diag, HD_E_INPUT,
			"%s: tensor '%s' lies in another file ('%s'), which cannot be read here", file->name,
			name, location);
	if ((offset && hd_num_i64(offset, 0, INT64_MAX, &from, NULL)) ||
		(length && hd_num_i64(length, 0, INT64_MAX, &len, NULL)))
		return hd_fail(diag, HD_E_INPUT,
			"%s: tensor '%s': offset '%s' and length '%s' are not both numbers from 0",
			file->name, name,
			offset ? offset : "", length ? length : "");
	enum hd_err err = opts->data(opts->user, location, &data, diag);
	if (err)
		return err;
	if ((uint64_t)from > data.len || (len >= 0 && (uint64_t)len > data.len - (uint64_t)from))
		return hd_fail(diag, HD_E_INPUT,
			"%s: tensor '%s': bytes %lld and on lie outside '%s', which has %llu", file->name,
			name, (long long)from,
			location, (unsigned long long)data.len);
	init->raw = data.at + from;
	init->raw_len = len < 0 ? data.len - (uint64_t)from : (uint64_t)len;
	return HD_OK;
}

enum hd_err hd_onnx_init_read(struct hd_onnx_file *file, const uint8_t *bytes, uint64_t len,
	const struct hd_onnx_opts *opts,
	struct hd_onnx_init *init, struct hd_diag *diag)
{
	struct hd_wire_field raw = { 0 };
	uint32_t count;
	bool large = find_field(bytes, len, TENSOR_RAW, &raw, &count) && raw.len > HD_ONNX_INLINE;
	enum hd_err err = hd_wire_unpack(&onnx__tensor_proto__descriptor, file->name, bytes, len,
		large ? TENSOR_RAW : 0, &file->arena,
		(ProtobufCMessage **)&init->tensor, diag);

	if (err)
		return err;
	if (large) {
		init->raw = raw.bytes;
		init->raw_len = raw.len;
	} else if (init->tensor->has_raw_data) {
		init->raw = init->tensor->raw_data.data ? init->tensor->raw_data.data : (const uint8_t *)"";
		init->raw_len = init->tensor->raw_data.len;
	}
	if (init->tensor->has_data_location && init->tensor->data_location ==
		ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
		return external(file, opts, init, diag);
	return HD_OK;
}

static enum hd_err read_inits(struct hd_onnx_file *file, const struct hd_wire_field *graph, uint32_t count,
	const struct hd_onnx_opts *opts,
	struct hd_diag *diag)
{
	struct hd_wire wire = { graph->bytes, graph->len, 0 };
	struct hd_wire_field field;
	enum hd_err err = HD_OK;

	file->init = hd_arena_take(&file->arena, count ? count : 1, sizeof *file->init);
	if (!file->init)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u initializers", count);
	while (!err && hd_wire_next(&wire, &field) > 0)
		if (field.id == GRAPH_INITIALIZER && field.type == 2)
			err = hd_onnx_init_read(file, field.bytes, field.len, opts,
				&file->init[file->ninit++], diag);
	return err;
}

static enum hd_err check(struct hd_onnx_file *file, struct hd_diag *diag)
{
	const Onnx__ModelProto *m = file->model;

	file->opset = 0;
	for (size_t i = 0; i < m->n_opset_import; i++)
		if (!m->opset_import[i]->domain || !*m->opset_import[i]->domain ||
			!strcmp(m->opset_import[i]->domain, "ai.onnx"))
			file->opset = m->opset_import[i]->version;
	if (m->n_functions)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the model defines functions of its own; export it with them inlined",
			file->name);
	if (m->n_training_info)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the model holds training info; Heddle takes the graph alone", file->name);
	if (file->graph->n_sparse_initializer)
		return hd_fail(diag, HD_E_INPUT, "%s: sparse initializers are not supported", file->name);
	if (!file->opset)
		return hd_fail(diag, HD_E_INPUT,
			"%s: names no opset of ai.onnx, without which its ops have no meaning", file->name);
	if (file->opset < 1 || file->opset > HD_ONNX_OPSET_MAX)
		return hd_fail(diag, HD_E_INPUT,
			"%s: opset %lld; Heddle reads %d to %d: export with opset_version=17", file->name,
			(long long)file->opset, HD_ONNX_OPSET_MIN, HD_ONNX_OPSET_MAX);
	return HD_OK;
}

enum hd_err hd_onnx_file_open(struct hd_onnx_file *file, const char *name, const void *bytes, uint64_t len,
	const struct hd_onnx_opts *opts,
	struct hd_diag *diag)
{
	struct hd_wire_field graph = { 0 }, last;
	uint32_t ngraphs, ninits;

	*file = (struct hd_onnx_file){ .name = name };
	hd_arena_init(&file->arena, HD_ONNX_MEMORY);
	enum hd_err err = hd_wire_walk(&onnx__model_proto__descriptor, name, bytes, len, diag);
	if (err)
		return err;
	if (!find_field(bytes, len, MODEL_GRAPH, &graph, &ngraphs) || ngraphs != 1)
		return hd_fail(diag, HD_E_INPUT, "%s: %u graphs; an ONNX model has one", name, ngraphs);
	file->graph_bytes = graph.bytes;
	file->graph_len = graph.len;
	find_field(graph.bytes, graph.len, GRAPH_INITIALIZER, &last, &ninits);
	err = hd_wire_unpack(&onnx__model_proto__descriptor, name, bytes, len, MODEL_GRAPH, &file->arena,
		(ProtobufCMessage **)&file->model, diag);
	if (!err)
		err = hd_wire_unpack(&onnx__graph_proto__descriptor, name, graph.bytes, graph.len,
			GRAPH_INITIALIZER, &file->arena,
			(ProtobufCMessage **)&file->graph, diag);
	if (!err)
		err = check(file, diag);
	return err ? err : read_inits(file, &graph, ninits, opts, diag);
}

void hd_onnx_file_close(struct hd_onnx_file *file)
{
	hd_arena_finish(&file->arena);
}
