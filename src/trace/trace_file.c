#include "trace/trace_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"

static const char magic[HD_HDT_MAGIC_BYTES] = { 'H', 'D', 'T', 'R', 'A', 'C', 'E', '1' };

static const char *const types[] = {
#define X(id, number, text) [HD_HDT_##id] = (text),
	HD_HDT_TYPES(X)
#undef X
};

const char *hd_hdt_type_text(uint32_t type) { return type < sizeof types / sizeof types[0] ? types[type] :
	NULL; }

void hd_hdt_magic(uint8_t to[HD_HDT_MAGIC_BYTES]) { memcpy(to, magic, sizeof magic); }

void hd_hdt_section(uint8_t to[HD_HDT_SECTION_BYTES], enum hd_hdt_type type, uint32_t flags,
	const void *stored, uint64_t stored_bytes, uint64_t raw_bytes)
{
	hd_hdt_section_of(to, type, stored_bytes, hd_hash64(stored, stored_bytes));
	hd_put32(to + 4, flags);
	hd_put64(to + 16, raw_bytes);
}

void hd_hdt_section_of(uint8_t to[HD_HDT_SECTION_BYTES], enum hd_hdt_type type, uint64_t stored_bytes,
	uint64_t hash)
{
	hd_put32(to, (uint32_t)type);
	hd_put32(to + 4, 0);
	hd_put64(to + 8, stored_bytes);
	hd_put64(to + 16, stored_bytes);
	hd_put64(to + 24, hash);
}

void hd_hdt_names(uint8_t to[HD_HDT_NAMES_BYTES], uint32_t process, uint32_t offset)
{
	hd_put32(to, process);
	hd_put32(to + 4, offset);
}

void hd_hdt_rings(uint8_t to[HD_HDT_RINGS_BYTES], const struct hd_hdt_rings *rings)
{
	hd_put32(to, rings->process);
	hd_put32(to + 4, rings->ring);
	hd_put64(to + 8, rings->first);
	hd_put64(to + 16, rings->nlost);
}

void hd_hdt_process(uint8_t to[HD_HDT_PROCESS_BYTES], uint32_t process,
	const uint8_t header[HD_FLIGHT_HEADER_BYTES])
{
	hd_put32(to, process);
	hd_put32(to + 4, 0);
	memcpy(to + 8, header, HD_FLIGHT_HEADER_BYTES);
}

enum hd_err hd_hdt_begin(struct hd_hdt_reader *reader, const uint8_t *bytes, size_t len, const char *name,
	struct hd_diag *diag)
{
	if (len < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is not a trace: it does not begin with HDTRACE1", name);
	*reader = (struct hd_hdt_reader){ .bytes = bytes, .len = len, .at = sizeof magic, .name = name };
	return HD_OK;
}

enum hd_err hd_hdt_next(struct hd_hdt_reader *reader, struct hd_hdt_section *section, struct hd_diag *diag)
{
	const uint8_t *at = reader->bytes + reader->at;
	size_t left = reader->len - reader->at;
	uint64_t stored = left < HD_HDT_SECTION_BYTES ? 0 : hd_get64(at + 8);

	if (left < HD_HDT_SECTION_BYTES || stored > left - HD_HDT_SECTION_BYTES) {
		reader->cut = left > 0;
		*section = (struct hd_hdt_section){ .type = 0 };
		return HD_OK;
	}
	struct hd_hdt_section got = { .type = hd_get32(at), .flags = hd_get32(at + 4),
		.stored = at + HD_HDT_SECTION_BYTES, .stored_bytes = stored, .raw_bytes = hd_get64(at + 16) };
	if (!got.type || (!(got.flags & HD_HDT_ZSTD) && got.raw_bytes != stored))
		return hd_fail(diag, HD_E_INPUT, "%s: the section at byte %zu is damaged (type %u, %" PRIu64
			" of %" PRIu64 " bytes)", reader->name, reader->at, got.type, stored, got.raw_bytes);
	if (hd_hash64(got.stored, stored) != hd_get64(at + 24))
		return hd_fail(diag, HD_E_INPUT, "%s: the section at byte %zu is damaged: its hash is wrong",
			reader->name, reader->at);
	reader->at += HD_HDT_SECTION_BYTES + (size_t)stored;
	*section = got;
	return HD_OK;
}

/* A header that can be, of a type that there is, and whose hash is right. */
static bool is_whole(struct hd_hdt_reader *r, size_t at)
{
	const uint8_t *h = r->bytes + at;
	const size_t left = r->len - at;

	if (left < HD_HDT_SECTION_BYTES || !hd_hdt_type_text(hd_get32(h)) || hd_get32(h + 4) > HD_HDT_ZSTD)
		return false;
	const uint64_t stored = hd_get64(h + 8);
	if (stored > left - HD_HDT_SECTION_BYTES || (!hd_get32(h + 4) && hd_get64(h + 16) != stored))
		return false;
	r->tried += (size_t)stored;
	return hd_hash64(h + HD_HDT_SECTION_BYTES, stored) == hd_get64(h + 24);
}

bool hd_hdt_resume(struct hd_hdt_reader *r, size_t *skipped)
{
	for (size_t at = r->at + 1; r->len - r->at > 1 && at < r->len; at++) {
		if (r->tried / HD_HDT_TRIES > r->len)
			return false;
		if (!is_whole(r, at))
			continue;
		*skipped = at - r->at;
		r->at = at;
		r->cut = false;
		return true;
	}
	return false;
}

bool hd_hdt_names_get(const uint8_t *raw, uint64_t len, uint32_t *process, uint32_t *offset)
{
	if (len < HD_HDT_NAMES_BYTES)
		return false;
	*process = hd_get32(raw);
	*offset = hd_get32(raw + 4);
	return true;
}

bool hd_hdt_rings_get(const uint8_t *raw, uint64_t len, struct hd_hdt_rings *rings, uint64_t *nslots)
{
	if (len < HD_HDT_RINGS_BYTES || (len - HD_HDT_RINGS_BYTES) % HD_SLOT_BYTES)
		return false;
	*rings = (struct hd_hdt_rings){ .process = hd_get32(raw), .ring = hd_get32(raw + 4),
		.first = hd_get64(raw + 8), .nlost = hd_get64(raw + 16) };
	*nslots = (len - HD_HDT_RINGS_BYTES) / HD_SLOT_BYTES;
	return true;
}

enum hd_err hd_hdt_process_get(const uint8_t *raw, uint64_t len, const char *name, uint32_t *process,
	struct hd_flight_info *info, enum hd_flight_state *state, struct hd_diag *diag)
{
	if (len != HD_HDT_PROCESS_BYTES)
		return hd_fail(diag, HD_E_INPUT, "%s: a process of %" PRIu64 " bytes, not %d", name, len,
			HD_HDT_PROCESS_BYTES);
	*process = hd_get32(raw);
	return hd_flight_parse_info(raw + 8, name, info, state, diag);
}
