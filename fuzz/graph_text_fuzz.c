/* Text of a graph: what comes out keeps the rules of data/graph_text.h. The first byte says which parser. */
#include <math.h>
#include <stdlib.h>

#include "data/graph_text.h"
#include "data/prepared.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { VERTICES = 50 };

static enum hd_err edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	(void)user, (void)diag;
	if (from >= VERTICES || to >= VERTICES || both)
		abort();
	return HD_OK;
}

static enum hd_err vertex(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	uint64_t *next = user;

	(void)diag;
	if (row->vertex != (*next)++ || row->label < -1 || row->label >= HD_PREPARED_CLASSES_CAP)
		abort();
	for (uint32_t i = 0; i < row->n; i++)
		if (row->column[i] >= HD_COLUMNS_CAP || (i && row->column[i] <= row->column[i - 1]) ||
			!isfinite(row->value[i]))
			abort();
	return HD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_edge_sink edges = { NULL, edge };
	uint64_t next = 0;
	struct hd_vertex_sink vertices = { &next, vertex };
	uint8_t mask[VERTICES] = { 0 };
	int32_t label[VERTICES];
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;

	if (!len)
		return 0;
	switch (bytes[0] % 5) {
	case 0: err = hd_edge_text(bytes + 1, len - 1, "input", VERTICES, &edges, &diag); break;
	case 1: err = hd_vertex_text(bytes + 1, len - 1, "input", &vertices, &diag); break;
	case 2: err = hd_split_text(bytes + 1, len - 1, "input", VERTICES, mask, &diag); break;
	case 3: err = hd_label_text(bytes + 1, len - 1, "input", VERTICES, label, &diag); break;
	default: err = hd_split_ids(bytes + 1, len - 1, "input", VERTICES, HD_GRAPH_TEST, mask, &diag); break;
	}
	if (err && !*diag.text)
		abort();
	for (int v = 0; v < VERTICES; v++)
		if (mask[v] > HD_GRAPH_TEST)
			abort();
	return 0;
}
