/* MANIFEST.json and state.json: what is accepted prints back to the same bytes; what is
 * refused says why. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/ckpt_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 64 << 20 };

static void must_be(const struct hd_text *text, const uint8_t *bytes, size_t len)
{
	if (text->full || text->len != len || memcmp(text->at, bytes, len) != 0)
		abort();
}

static void try_manifest(struct hd_arena *arena, const uint8_t *bytes, size_t len)
{
	struct hd_manifest manifest;
	struct hd_diag diag = { "" };
	struct hd_text text;

	enum hd_err err = hd_manifest_parse(&manifest, arena, "fuzz", (const char *)bytes, len, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
	if (err != HD_OK)
		return;
	hd_text_init(&text, arena);
	if (hd_manifest_print(&manifest, &text, NULL) == HD_OK)
		must_be(&text, bytes, len);
}

/* Entries come back sorted and white space goes, so what is compared is the second printing with the
 * first. */
static void try_state(struct hd_arena *arena, const uint8_t *bytes, size_t len)
{
	struct hd_ckpt_info info = { 0 };
	struct hd_diag diag = { "" };
	struct hd_state state, again;
	struct hd_text first, second;

	hd_state_init(&state, arena);
	hd_state_init(&again, arena);
	enum hd_err err = hd_ckpt_state_parse(&state, "fuzz", (const char *)bytes, len, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
	hd_text_init(&first, arena);
	hd_text_init(&second, arena);
	if (err != HD_OK || hd_ckpt_state_print(&state, &info, &first, NULL) != HD_OK)
		return;
	err = hd_ckpt_state_parse(&again, "again", first.at, first.len, NULL);
	if (err != HD_OK && err != HD_E_NOMEM)
		abort();
	if (err == HD_OK && hd_ckpt_state_print(&again, &info, &second, NULL) == HD_OK)
		must_be(&second, (const uint8_t *)first.at, first.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;

	hd_arena_init(&arena, BUDGET_BYTES);
	try_manifest(&arena, bytes, len);
	try_state(&arena, bytes, len);
	hd_arena_finish(&arena);
	return 0;
}
