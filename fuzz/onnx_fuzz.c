/* ONNX: whatever the bytes are, the importer answers with a verified graph or one sentence. What is
 * accepted with a loss differentiates or says why not, and what is exported of it is read again. */
#include <stdlib.h>
#include <string.h>

#include "graph/autodiff.h"
#include "graph/onnx.h"
#include "graph/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 256 << 20 };

static enum hd_err beside(void *user, const char *name, struct hd_onnx_bytes *bytes, struct hd_diag *diag)
{
	static const uint8_t data[64] = { 1 };
	(void)user, (void)name, (void)diag;

	*bytes = (struct hd_onnx_bytes){ data, sizeof data };
	return HD_OK;
}

static enum hd_err import(struct hd_arena *arena, struct hd_graph *graph, const struct hd_onnx_opts *opts,
	const uint8_t *bytes, size_t len,
	struct hd_onnx_values *values)
{
	struct hd_diag diag = { "" };

	hd_graph_init(graph, arena);
	enum hd_err err = hd_onnx_import(graph, "fuzz", bytes, len, opts, values, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
	if (err != HD_OK && err != HD_E_INPUT && err != HD_E_NOMEM)
		abort();
	if (err == HD_OK && hd_graph_verify(graph, 1, NULL) != HD_OK)
		abort();
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct hd_model_opts loss = { .loss = HD_LOSS_CROSS_ENTROPY,
		.normalize = HD_NORMALIZE_SAMPLE };
	static const struct hd_onnx_opts train = { .loss = &loss, .data = beside }, whole = { .as_is = true };
	struct hd_onnx_values values;
	struct hd_arena arena;
	struct hd_graph graph, again;
	struct hd_onnx_tensor tensor;
	uint8_t *made;
	uint64_t n;

	hd_arena_init(&arena, BUDGET_BYTES);
	if (import(&arena, &graph, &whole, bytes, len, NULL) == HD_OK && graph.nvalues > HD_MAX_NODES)
		abort();
	if (import(&arena, &graph, &train, bytes, len, &values) == HD_OK &&
		hd_onnx_export(&graph, &values, &arena, &made, &n, NULL) == HD_OK)
		(void)import(&arena, &again, &train, made, n, NULL);
	(void)!hd_onnx_tensor_read(&tensor, &arena, "fuzz", bytes, len, NULL);
	hd_arena_finish(&arena);
	return 0;
}
