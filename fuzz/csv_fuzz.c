/* Whatever is accepted reads back: each field, quoted and written again, gives the same fields. */
#include <stdlib.h>
#include <string.h>

#include "data/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static size_t write_field(const struct hd_csv *csv, uint8_t *out)
{
	size_t n = 0;

	out[n++] = '"';
	for (size_t i = 0; i < csv->len; i++) {
		if (csv->text[i] == '"')
			out[n++] = '"';
		out[n++] = (uint8_t)csv->text[i];
	}
	out[n++] = '"';
	out[n++] = csv->last ? '\n' : ',';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct hd_csv a, b;
	uint8_t *again = malloc(4 * len + 16);
	size_t n = 0;
	bool good = true;

	if (!again)
		return 0;
	hd_csv_init(&a, bytes, len, "input");
	while (good && hd_csv_more(&a)) {
		good = hd_csv_next(&a, NULL) == HD_OK;
		if (good)
			n += write_field(&a, again + n);
		if (a.at > a.end || a.len > HD_CSV_FIELD || a.text[a.len] != 0)
			abort();
		/* a comma at the very end opens one more field, which is empty */
		if (good && !a.last && !hd_csv_more(&a)) {
			good = hd_csv_next(&a, NULL) == HD_OK && a.len == 0 && a.last;
			if (!good)
				abort();
			n += write_field(&a, again + n);
		}
	}
	hd_csv_init(&a, bytes, len, "input");
	hd_csv_init(&b, again, n, "again");
	while (good && hd_csv_more(&b))
		if (hd_csv_next(&a, NULL) || hd_csv_next(&b, NULL) || a.len != b.len || a.last != b.last ||
			memcmp(a.text, b.text, a.len) != 0)
			abort();
	free(again);
	return 0;
}
