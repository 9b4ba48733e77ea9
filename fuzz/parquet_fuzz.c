/* Whatever is accepted gives rows whose cells hold what they say, as many as the footer has, or an error. */
#include <stdlib.h>
#include <string.h>

#include "data/parquet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { WANTED = 8, ROWS = 4096 };

static void look(const struct hd_row_cell *c)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < c->rank; d++) {
		if (c->dim[d] < 0)
			abort();
		n *= (uint64_t)c->dim[d];
	}
	if (c->kind == HD_ROW_TEXT ? c->text[c->len] != 0 : c->kind == HD_ROW_NONE ? c->n != 0 : c->n != n)
		abort();
	volatile int64_t sum = 0;
	for (uint64_t i = 0; i < c->n; i++)
		sum = sum ^ c->number[i].whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct hd_row_cell cells[WANTED];
	const char *wanted[WANTED];
	struct hd_parquet file;
	struct hd_parquet_rows rows;
	struct hd_arena arena;
	uint32_t n = 0;

	hd_arena_init(&arena, 64 << 20);
	if (!hd_parquet_open(&file, &arena, bytes, len, "input", NULL)) {
		for (uint32_t i = 0; i < file.nleaves && n < WANTED; i++)
			if (!file.leaf[i].refused)
				wanted[n++] = file.leaf[i].path;
		enum hd_err err = n ? hd_parquet_rows_begin(&rows, &file, wanted, n, NULL) : HD_E_INPUT;
		while (!err && hd_parquet_more(&rows) && rows.row < ROWS) {
			err = hd_parquet_next(&rows, cells, NULL);
			for (uint32_t i = 0; i < n && !err; i++)
				look(&cells[i]);
		}
		if (n)
			hd_parquet_rows_finish(&rows);
	}
	hd_arena_finish(&arena);
	return 0;
}
