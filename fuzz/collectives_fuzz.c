/* Any bytes are refused with a place, or are a table of costs that prints, reads back and prints to the same
 * bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/collective_cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_collective_table table, again;
	struct hd_diag diag = { "" };
	static char one[1 << 15], two[1 << 15];
	struct hd_text text;

	enum hd_err err = hd_collective_table_parse(&table, (const char *)bytes, len, "f", &diag);
	if (err) {
		if (!diag.text[0])
			abort();
		return 0;
	}
	hd_text_fixed(&text, one, sizeof one);
	hd_collective_table_print(&table, &text);
	if (text.full || hd_collective_table_parse(&again, one, text.len, "f", NULL))
		abort();
	hd_text_fixed(&text, two, sizeof two);
	hd_collective_table_print(&again, &text);
	if (text.full || strcmp(one, two) != 0)
		abort();
	return 0;
}
