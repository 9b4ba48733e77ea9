/* Any sections of a trace, beside any slots of a flight file, are refused, or give a timeline that keeps its
 * promises and a merged file that is read back to the same bytes, tightened clocks among them.
 *
 * Input: sections, each u8 type, u16 length, that many bytes; hashes are put right here. Of a PROCESS the
 * bytes are what counts of a header: 8 of the section, 160 of its fields, 96 of the directory. Type 15 ends
 * the file and begins another. */
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/text.h"
#include "timeline/build.h"
#include "timeline/merge.h"
#include "timeline/tighten.h"
#include "timeline/validate.h"

enum { NEXT_FILE = 15, FILES = 3, FIELDS = 160, DIRECTORY = 1024, ENTRIES = 96, HEAD = 3 };

static size_t put_section(uint8_t *to, uint32_t type, const uint8_t *bytes, size_t len)
{
	uint8_t *raw = to + HD_HDT_SECTION_BYTES;
	size_t n = len;

	if (type == HD_HDT_PROCESS) {
		n = HD_HDT_PROCESS_BYTES;
		memset(raw, 0, n);
		memcpy(raw, bytes, len < 8 ? len : 8);
		if (len > 8)
			memcpy(raw + 8, bytes + 8, len - 8 < FIELDS ? len - 8 : FIELDS);
		if (len > 8 + FIELDS)
			memcpy(raw + 8 + DIRECTORY, bytes + 8 + FIELDS, len - 8 - FIELDS < ENTRIES ?
				len - 8 - FIELDS : ENTRIES);
		memcpy(raw + 8, "HDFLIGHT", 8);
	} else if (len)
		memcpy(raw, bytes, len);
	hd_hdt_section(to, (enum hd_hdt_type)type, 0, raw, n, n);
	return HD_HDT_SECTION_BYTES + n;
}

static enum hd_err take(void *text, const void *bytes, size_t len, struct hd_diag *diag)
{
	(void)diag;
	hd_text_put(text, bytes, len);
	return ((struct hd_text *)text)->full ? HD_E_NOMEM : HD_OK;
}

static void check(struct hd_arena *arena, const struct hd_tl_input *input, uint32_t n)
{
	struct hd_tl_clock *clock;
	struct hd_tl_lives lives;
	struct hd_timeline timeline;
	uint32_t reference, nkept;
	struct hd_timeline outline;
	struct hd_text text, again;

	if (hd_tl_collect(arena, input, n, &lives, NULL) ||
		hd_tl_align(arena, &lives, &clock, &reference, NULL) ||
		(lives.tightened && hd_tl_tighten(arena, &lives, clock, &nkept, NULL)) ||
		hd_tl_build_of(arena, &lives, clock, reference, &timeline, NULL))
		return;
	if (hd_tl_validate(&timeline, NULL))
		abort();
	if (hd_tl_outline_of(arena, &lives, clock, reference, &outline, NULL))
		return;
	if (outline.nevents != timeline.nevents || outline.nsteps != timeline.nsteps || outline.nlost !=
		timeline.nlost || outline.begin != timeline.begin || outline.end != timeline.end)
		abort();
	hd_text_init(&text, arena);
	hd_text_init(&again, arena);
	if (hd_tl_merge(arena, &lives, clock, &(struct hd_tl_sink){ take, &text }, NULL))
		return;
	const struct hd_tl_input merged = { "merged", (const uint8_t *)text.at, text.len };
	if (hd_tl_collect(arena, &merged, 1, &lives, NULL) ||
		hd_tl_align(arena, &lives, &clock, &reference, NULL) ||
		(lives.tightened && hd_tl_tighten(arena, &lives, clock, &nkept, NULL)) ||
		hd_tl_merge(arena, &lives, clock, &(struct hd_tl_sink){ take, &again }, NULL))
		return;
	if (text.len != again.len || memcmp(text.at, again.at, text.len) != 0)
		abort();
}

/* Of all that is put, at most. */
static size_t room(const uint8_t *bytes, size_t len)
{
	size_t n = len + HD_HDT_MAGIC_BYTES;

	for (size_t at = 0; at + HEAD <= len; at += HEAD + hd_get16(bytes + at + 1))
		n += HD_HDT_SECTION_BYTES + ((bytes[at] & 15) == HD_HDT_PROCESS ?
			(size_t)HD_HDT_PROCESS_BYTES : 0);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_tl_input input[FILES] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
	struct hd_arena arena;
	uint8_t *file = NULL;
	uint32_t n = 0;

	hd_arena_init(&arena, 256 << 20);
	for (size_t at = 0; at + HEAD <= len && n < FILES;) {
		size_t rest = len - at - HEAD, want = hd_get16(bytes + at + 1),
			take = want < rest ? want : rest;
		uint32_t type = bytes[at] & 15;
		if (!file) {
			file = hd_arena_take(&arena, room(bytes + at, len - at), 1);
			if (!file)
				break;
			hd_hdt_magic(file);
			input[n].bytes = file;
			input[n++].len = HD_HDT_MAGIC_BYTES;
		}
		if (type == NEXT_FILE)
			file = NULL;
		else
			input[n - 1].len += put_section(file + input[n - 1].len, type, bytes + at + HEAD,
				take);
		at += HEAD + take;
	}
	check(&arena, input, n);
	hd_arena_finish(&arena);
	return 0;
}
