/* Any bytes are refused with a place, or are a cluster that prints, reads back and prints to the same
 * bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cost/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* As in yaml_fuzz.c: the library loses a buffer of a refused file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;
	struct hd_cluster c, again;
	struct hd_diag diag = { "" };
	struct hd_text one, two;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_cluster_parse(&c, (const char *)bytes, len, "f", &arena, &diag);
	if (err && !diag.text[0])
		abort();
	if (!err) {
		hd_text_init(&one, &arena);
		hd_text_init(&two, &arena);
		hd_cluster_print(&c, &one);
		if (one.full || hd_cluster_parse(&again, one.at, one.len, "f", &arena, NULL))
			abort();
		hd_cluster_print(&again, &two);
		if (two.full || one.len != two.len || memcmp(one.at, two.at, one.len) != 0)
			abort();
	}
	hd_arena_finish(&arena);
	return 0;
}
