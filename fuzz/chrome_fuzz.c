/* Any bytes are refused as a trace of another program, or give a timeline that keeps its promises. */
#include <stdlib.h>

#include "timeline/import.h"
#include "timeline/validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_tl_foreign foreign;
	struct hd_timeline timeline;
	struct hd_arena arena;

	hd_arena_init(&arena, 256 << 20);
	if (hd_tl_import(&arena, "input", bytes, len, &timeline, &foreign, NULL) == HD_OK &&
		hd_tl_validate(&timeline, NULL))
		abort();
	hd_arena_finish(&arena);
	return 0;
}
