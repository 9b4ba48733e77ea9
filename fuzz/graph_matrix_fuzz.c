/* Matrices of other programs: what comes out keeps the rules of data/graph_matrix.h and data/graph_npz.h. The
 * first byte says which parser. */
#include <math.h>
#include <stdlib.h>

#include "data/graph_matrix.h"
#include "data/graph_npz.h"
#include "data/prepared.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { VERTICES = 3 };

static enum hd_err edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	(void)user, (void)both, (void)diag;
	if (from >= VERTICES || to >= VERTICES)
		abort();
	return HD_OK;
}

static enum hd_err vertex(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	uint64_t *next = user;

	(void)diag;
	if (row->vertex != (*next)++ || row->label != -1)
		abort();
	for (uint32_t i = 0; i < row->n; i++)
		if (!isfinite(row->value[i]) || (row->column && (row->column[i] >= row->width ||
			(i && row->column[i] <= row->column[i - 1]))))
			abort();
	return HD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_edge_sink edges = { NULL, edge };
	uint64_t next = 0;
	struct hd_vertex_sink vertices = { &next, vertex };
	int32_t label[VERTICES];
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;

	if (!len)
		return 0;
	switch (bytes[0] % 8) {
	case 0: err = hd_edge_mtx(bytes + 1, len - 1, "input", VERTICES, &edges, &diag); break;
	case 1: err = hd_edge_npy(bytes + 1, len - 1, "input", VERTICES, &edges, &diag); break;
	case 2: err = hd_edge_pairs(bytes + 1, len - 1, "input", VERTICES, &edges, &diag); break;
	case 3: err = hd_vertex_npy(bytes + 1, len - 1, "input", &vertices, &diag); break;
	case 4: err = hd_vertex_csv(bytes + 1, len - 1, "input", &vertices, &diag); break;
	case 5: err = hd_label_npy(bytes + 1, len - 1, "input", VERTICES, label, &diag); break;
	case 6: err = hd_edge_npz(bytes + 1, len - 1, "input", VERTICES, &edges, &diag); break;
	default: err = hd_vertex_npz(bytes + 1, len - 1, "input", &vertices, &diag); break;
	}
	if (err && !*diag.text)
		abort();
	return 0;
}
