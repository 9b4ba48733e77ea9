/* identity.json: what is accepted prints and parses to the same bytes; what is refused says why. */
#include <stdlib.h>
#include <string.h>

#include "run/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 64 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_identity identity, again;
	struct hd_diag diag = { "" };
	struct hd_text first, second;
	struct hd_arena arena;

	hd_arena_init(&arena, BUDGET_BYTES);
	hd_text_init(&first, &arena);
	hd_text_init(&second, &arena);
	enum hd_err err = hd_identity_parse(&identity, &arena, "fuzz", (const char *)bytes, len, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
	if (err == HD_OK && hd_identity_print(&identity, &first, NULL) == HD_OK) {
		err = hd_identity_parse(&again, &arena, "again", first.at, first.len, NULL);
		if (err != HD_OK && err != HD_E_NOMEM)
			abort();
		if (err == HD_OK && hd_identity_print(&again, &second, NULL) == HD_OK &&
		    (first.len != second.len || memcmp(first.at, second.at, first.len) != 0))
			abort();
	}
	hd_arena_finish(&arena);
	return 0;
}
