#include "data/graph_matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/graph_npz.h"
#include "tests/data_files.h"

struct seen { char text[600]; size_t n; };

static enum hd_err see_edge(void *user, uint32_t from, uint32_t to, bool both, struct hd_diag *diag)
{
	struct seen *seen = user;

	(void)diag;
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "%u%s%u ", from,
		both ? "-" : ">", to);
	return HD_OK;
}

static enum hd_err see_vertex(void *user, const struct hd_vertex_row *row, struct hd_diag *diag)
{
	struct seen *seen = user;

	(void)diag;
	assert_int_equal(row->label, -1);
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "%d",
		(int)row->vertex);
	for (uint32_t i = 0; i < row->n; i++) {
		if (row->column)
			seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, " "
				"%u:%g",
				row->column[i], (double)row->value[i]);
		else
			seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, " %g",
				(double)row->value[i]);
	}
	seen->n += (size_t)snprintf(seen->text + seen->n, sizeof seen->text - seen->n, "; ");
	return HD_OK;
}

/* What is seen of bytes, or what the message says. */
static void check(size_t i, enum hd_err err, const struct seen *seen, const char *want, const char *says,
	const struct hd_diag *diag)
{
	CHECK(err == (says ? HD_E_INPUT : HD_OK), "case %zu: %d, '%s'", i, (int)err, diag->text);
	if (says)
		CHECK(strstr(diag->text, says), "case %zu: '%s' should hold '%s'", i, diag->text, says);
	else
		CHECK(!strcmp(seen->text, want), "case %zu: '%s', not '%s'", i, seen->text, want);
}

#define BANNER "%%MatrixMarket matrix coordinate "

static void matrix_market_counts_from_one(void **state)
{
	static const struct { const char *text, *want, *says; } cases[] = {
		{ BANNER "pattern general\n% by hand\n5 5 3\n1 2\n5 1\n\n3 3\n", "0>1 4>0 2>2 ", NULL },
		{ BANNER "real symmetric\n5 5 2\n2 1 0.5\n5 3 -1e+02\n", "1-0 4-2 ", NULL },
		{ BANNER "pattern general\n5 5 0\n", "", NULL },
		{ BANNER "real general\n5 5 2\n1 2 -1e300\n2 3 4e38\n", "0>1 1>2 ", NULL },
		{ BANNER "real general\n5 5 1\n1 2 nan\n", NULL, "f:3: wanted an entry: row, column" },
		{ BANNER "complex general\n5 5 0\n", NULL, "f:1: wanted \"%%MatrixMarket" },
		{ BANNER "real skew-symmetric\n5 5 0\n", NULL, "f:1: wanted" },
		{ "1 2\n", NULL, "f:1: wanted \"%%MatrixMarket" },
		{ "", NULL, "wanted \"%%MatrixMarket" },
		{ BANNER "pattern general\n5 5\n", NULL, "f:2: wanted rows, columns and how many" },
		{ BANNER "pattern general\n5 4 1\n1 1\n", NULL, "a matrix of 5 rows and 4 columns" },
		{ BANNER "pattern general\n5 5 2\n1 1\n", NULL, "f has 1 entries, its head says 2: it is cut off" },
		{ BANNER "pattern general\n5 5 1\n1 1\n2 2\n", NULL, "f:4: wanted no more entries" },
		{ BANNER "pattern general\n5 5 1\n0 1\n", NULL, "f:3: wanted an entry: row and column, from 1" },
		{ BANNER "pattern general\n5 5 1\n6 1\n", NULL, "f:3: row or column 6" },
		{ BANNER "real general\n5 5 1\n1 2 3 4\n", NULL, "f:3: wanted an entry: row, column and at most one" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_edge_sink sink = { &seen, see_edge };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_edge_mtx((const uint8_t *)cases[i].text, strlen(cases[i].text), "f", 5,
			&sink,
			&diag);
		check(i, err, &seen, cases[i].want, cases[i].says, &diag);
	}
}

static void numpy_edges_are_two_rows_or_two_columns(void **state)
{
	static const int64_t wide[] = { 0, 1, 4, 2, 2, 3 };
	static const struct { const char *dict, *want, *says; } cases[] = {
		{ "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", "0>2 1>2 4>3 ", NULL },
		{ "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }", "0>1 4>2 2>3 ", NULL },
		{ "{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }", NULL, "f: edges are integers of shape" },
		{ "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", NULL, "f: edges are integers" },
	};
	uint8_t bytes[300];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (uint64_t nvertices = 5; nvertices > 3; nvertices--) {
			struct seen seen = { "", 0 };
			struct hd_edge_sink sink = { &seen, see_edge };
			struct hd_diag diag = { "" };
			size_t len = make_npy(bytes, cases[i].dict, wide, sizeof wide);
			enum hd_err err = hd_edge_npy(bytes, len, "f", nvertices, &sink, &diag);
			check(i, err, &seen, cases[i].want, nvertices == 4 && !cases[i].says ?
				"but the features are of 4 vertices" : cases[i].says, &diag);
		}
}

static void pairs_are_two_numbers_of_four_bytes(void **state)
{
	static const uint8_t bytes[] = { 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0 };
	static const struct { size_t len; uint64_t nvertices; const char *want, *says; } cases[] = {
		{ 8, 5, "1>4 ", NULL }, { 16, 257, "1>4 0>256 ", NULL }, { 12, 5, NULL, "f has 12 bytes" },
		{ 16, 256, NULL, "edge 1, from 0 to 256" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct seen seen = { "", 0 };
		struct hd_edge_sink sink = { &seen, see_edge };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_edge_pairs(bytes, cases[i].len, "f", cases[i].nvertices, &sink, &diag);
		check(i, err, &seen, cases[i].want, cases[i].says, &diag);
	}
}

static void dense_features_are_a_matrix_or_a_table(void **state)
{
	static const float numbers[] = { 0, 0.5f, -2, 3, 1e30f, 0 };
	static const struct { const char *text, *want, *says; } tables[] = {
		{ "0,0.5,-2\n3,1e+30,0.000000000000000000e+00\r\n", "0 0 0.5 -2; 1 3 1e+30 0; ", NULL },
		{ "1,2\n3\n", NULL, "f:2: 1 numbers; each line has as many as the first (2)" },
		{ "1,2\n\n", NULL, "f:2: 0 numbers" }, { "1,nan\n", NULL, "f:1: wanted finite numbers" },
		{ "a\n", NULL, "f:1: wanted finite numbers" },
	};
	struct seen seen = { "", 0 };
	struct hd_vertex_sink sink = { &seen, see_vertex };
	struct hd_diag diag = { "" };
	uint32_t infinite = 0x7f800000;
	uint8_t bytes[300];

	(void)state;
	size_t len = make_npy(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", numbers,
		sizeof numbers);
	enum hd_err err = hd_vertex_npy(bytes, len, "f", &sink, &diag);
	check(0, err, &seen, tables[0].want, NULL, &diag);
	memcpy(bytes + len - 4, &infinite, 4);
	err = hd_vertex_npy(bytes, len, "f", &sink, &diag);
	check(1, err, &seen, NULL, "feature 2 of vertex 1 is not finite", &diag);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		seen = (struct seen){ "", 0 };
		diag = (struct hd_diag){ "" };
		err = hd_vertex_csv((const uint8_t *)tables[i].text, strlen(tables[i].text), "f", &sink,
			&diag);
		check(i, err, &seen, tables[i].want, tables[i].says, &diag);
	}
}

static void numpy_labels_are_as_many_as_vertices(void **state)
{
	static const int32_t numbers[] = { 4, -1, 0 };
	struct hd_diag diag = { "" };
	uint8_t bytes[300];
	int32_t label[3];

	(void)state;
	size_t len = make_npy(bytes, "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 1), }", numbers,
		sizeof numbers);
	assert_int_equal(hd_label_npy(bytes, len, "f", 3, label, &diag), HD_OK);
	assert_memory_equal(label, numbers, sizeof label);
	assert_int_equal(hd_label_npy(bytes, len, "f", 4, label, &diag), HD_E_INPUT);
	bytes[len - 8] = 0xfe;
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_label_npy(bytes, len, "f", 3, label, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "label -2 of vertex 1"));
}

/* ---- npz: a zip file made by hand */

struct zip { uint8_t at[8192], directory[2048]; size_t n, ndirectory, count; };

static uint32_t crc_of(const uint8_t *bytes, size_t len)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

/* Stored, or deflated as one block that is stored (RFC 1951). */
static void zip_add(struct zip *z, const char *name, const uint8_t *bytes, size_t len, bool deflate)
{
	uint8_t *head = z->at + z->n, *row = z->directory + z->ndirectory;
	size_t nname = strlen(name), packed = len + (deflate ? 5 : 0);
	uint8_t common[26] = { 20, 0, 0, 0, (uint8_t)(deflate ? 8 : 0), 0 };

	store_le(common + 10, crc_of(bytes, len), 4);
	store_le(common + 14, packed, 4);
	store_le(common + 18, len, 4);
	store_le(common + 22, nname, 2);
	store_le(head, 0x04034b50, 4);
	memcpy(head + 4, common, 26);
	memcpy(head + 30, name, nname);
	uint8_t *data = head + 30 + nname;
	if (deflate) {
		data[0] = 1;
		store_le(data + 1, len, 2);
		store_le(data + 3, ~len, 2);
		data += 5;
	}
	memcpy(data, bytes, len);
	memset(row, 0, 46);
	store_le(row, 0x02014b50, 4);
	memcpy(row + 6, common, 26);
	store_le(row + 42, z->n, 4);
	memcpy(row + 46, name, nname);
	z->n += 30 + nname + packed;
	z->ndirectory += 46 + nname;
	z->count++;
}

static void zip_array(struct zip *z, const char *name, const char *dict, const void *bytes, size_t len,
	bool deflate)
{
	uint8_t npy[600];

	zip_add(z, name, npy, make_npy(npy, dict, bytes, len), deflate);
}

static void zip_end(struct zip *z)
{
	size_t at = z->n;

	memcpy(z->at + z->n, z->directory, z->ndirectory);
	z->n += z->ndirectory;
	memset(z->at + z->n, 0, 22);
	store_le(z->at + z->n, 0x06054b50, 4);
	store_le(z->at + z->n + 8, z->count, 2);
	store_le(z->at + z->n + 10, z->count, 2);
	store_le(z->at + z->n + 12, z->ndirectory, 4);
	store_le(z->at + z->n + 16, at, 4);
	z->n += 22;
}

/* [[0, 2, 0], [0, 0, 0.5], [1, 0, 3]] with the last row's indices turned round. */
static void make_matrix(struct zip *z, const char *format, bool deflate)
{
	static const int32_t start[] = { 0, 1, 2, 4 }, index[] = { 1, 2, 2, 0 }, row[] = { 0, 1, 2, 2 };
	static const int64_t shape[] = { 3, 3 };
	static const double value[] = { 2, 0.5, 3, 1 };
	bool coo = !strcmp(format, "coo");

	memset(z, 0, sizeof *z);
	zip_array(z, coo ? "col.npy" : "indices.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': "
		"(4,), }",
		index, sizeof index, deflate);
	if (coo)
		zip_array(z, "row.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }", row,
			sizeof row,
			deflate);
	else
		zip_array(z, "indptr.npy", "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }", start,
			sizeof start, deflate);
	zip_array(z, "format.npy", "{'descr': '|S3', 'fortran_order': False, 'shape': (), }", format, 3,
		deflate);
	zip_array(z, "shape.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", shape,
		sizeof shape,
		deflate);
	zip_array(z, "data.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", value,
		sizeof value,
		deflate);
	zip_end(z);
}

static void scipy_matrices_are_edges_or_features(void **state)
{
	static const struct { const char *format, *edges; } cases[] = {
		{ "csr", "0>1 1>2 2>2 2>0 " }, { "csc", "1>0 2>1 2>2 0>2 " }, { "coo", "0>1 1>2 2>2 2>0 " },
	};
	static struct zip z;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int deflate = 0; deflate < 2; deflate++) {
			struct seen seen = { "", 0 };
			struct hd_edge_sink edges = { &seen, see_edge };
			struct hd_vertex_sink vertices = { &seen, see_vertex };
			struct hd_diag diag = { "" };
			make_matrix(&z, cases[i].format, deflate);
			enum hd_err err = hd_edge_npz(z.at, z.n, "f", 3, &edges, &diag);
			check(i, err, &seen, cases[i].edges, NULL, &diag);
			seen = (struct seen){ "", 0 };
			err = hd_vertex_npz(z.at, z.n, "f", &vertices, &diag);
			check(i, err, &seen, "0 1:2; 1 2:0.5; 2 0:1 2:3; ", i ? "features are csr" : NULL,
				&diag);
			assert_int_equal(hd_edge_npz(z.at, z.n, "f", 4, &edges, NULL), HD_E_INPUT);
		}
}

/* Cut anywhere, a byte turned anywhere: refused, or read; never anything else. Deflated bytes are guarded by
 * their CRC. */
static void damaged_matrices_are_refused(void **state)
{
	static struct zip z;
	size_t nrefused = 0;

	(void)state;
	make_matrix(&z, "csr", true);
	for (size_t len = 0; len < z.n; len++) {
		struct seen seen = { "", 0 };
		struct hd_edge_sink edges = { &seen, see_edge };
		uint8_t *exact = malloc(len + 1);
		memcpy(exact, z.at, len);
		assert_int_equal(hd_edge_npz(exact, len, "f", 3, &edges, NULL), HD_E_INPUT);
		free(exact);
	}
	for (size_t at = 0; at < z.n; at++) {
		struct seen seen = { "", 0 };
		struct hd_edge_sink edges = { &seen, see_edge };
		z.at[at] ^= 0x41;
		enum hd_err err = hd_edge_npz(z.at, z.n, "f", 3, &edges, NULL);
		CHECK(err == HD_E_INPUT || (err == HD_OK && !strcmp(seen.text, "0>1 1>2 2>2 2>0 ")), "byte "
			"%zu: %d, %s",
			at, (int)err, seen.text);
		nrefused += err != HD_OK;
		z.at[at] ^= 0x41;
	}
	assert_true(nrefused > z.n / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrix_market_counts_from_one),
		cmocka_unit_test(numpy_edges_are_two_rows_or_two_columns),
		cmocka_unit_test(pairs_are_two_numbers_of_four_bytes),
		cmocka_unit_test(dense_features_are_a_matrix_or_a_table),
		cmocka_unit_test(numpy_labels_are_as_many_as_vertices),
		cmocka_unit_test(scipy_matrices_are_edges_or_features),
		cmocka_unit_test(damaged_matrices_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
