/* A window that is accepted keeps to the bounds of the header, and reads back to its bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/fair_text.h"
#include "data/ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char room[HD_FAIR_TEXT];
	struct hd_fair_part part, again;
	struct hd_text text;

	if (hd_fair_parse((const char *)bytes, len, &part, NULL))
		return 0;
	if (!part.depth || part.depth > HD_RANGES_DEPTH || !(part.demanded >= 0) || !isfinite(part.waited_s))
		abort();
	hd_text_fixed(&text, room, sizeof room);
	hd_fair_put(&part, &text);
	if (text.full || hd_fair_parse(room, text.len, &again, NULL) || again.demanded != part.demanded ||
		again.knee != part.knee)
		abort();
	return 0;
}
