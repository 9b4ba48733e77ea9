#include "wire/close.h"

#include <stddef.h>

static const struct close_row { uint32_t number; const char *name, *text; enum hd_blame blame; } rows[] = {
#define X(id, no, blame, text) { no, #id, text, HD_BLAME_##blame },
	HD_CLOSES(X)
#undef X
};

/* Unknown numbers read as the last row. */
static const struct close_row *row_of(uint32_t number)
{
	size_t i = 0;

	while (i + 1 < sizeof rows / sizeof *rows && rows[i].number != number)
		i++;
	return &rows[i];
}

const char *hd_close_text(enum hd_close why) { return row_of(why)->text; }
const char *hd_close_name(enum hd_close why) { return row_of(why)->name; }
enum hd_blame hd_close_blame(enum hd_close why) { return row_of(why)->blame; }
enum hd_close hd_close_from(uint32_t number) { return (enum hd_close)row_of(number)->number; }
