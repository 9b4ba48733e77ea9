#include "data/zip.h"

#include <string.h>

#include "base/le.h"
#include "base/pack.h"

/* Signatures and lengths of the records, from PKWARE's APPNOTE. */
enum { END = 0x06054b50, ENTRY = 0x02014b50, LOCAL = 0x04034b50, END_BYTES = 22, ENTRY_BYTES = 46,
	LOCAL_BYTES = 30, COMMENT_CAP = 65535, STORED = 0, DEFLATED = 8, ENCRYPTED = 1, GZIP_HEAD = 10,
	GZIP_TAIL = 8 };

struct zip_entry { const uint8_t *row; uint32_t method, flags, crc, packed, unpacked, local; };

static enum hd_err bad(const char *name, const char *why, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s is no zip file that can be read: %s", name, why);
}

/* The record at the file's end, before a comment at most. */
static const uint8_t *find_end(const uint8_t *bytes, size_t len)
{
	for (size_t back = END_BYTES; back <= len && back <= END_BYTES + COMMENT_CAP; back++)
		if (hd_get32(bytes + len - back) == END && hd_get16(bytes + len - back + 20) ==
			back - END_BYTES)
			return bytes + len - back;
	return NULL;
}

static enum hd_err find_entry(const uint8_t *bytes, size_t len, const char *name, const char *member,
	struct zip_entry *entry, struct hd_diag *diag)
{
	const uint8_t *end = find_end(bytes, len);
	size_t want = strlen(member);

	if (!end)
		return bad(name, "its directory is missing", diag);
	size_t at = hd_get32(end + 16), stop = (size_t)(end - bytes);
	for (uint32_t left = hd_get16(end + 10); left; left--) {
		if (at > stop || stop - at < ENTRY_BYTES || hd_get32(bytes + at) != ENTRY)
			return bad(name, "its directory is damaged, or it has 4 GiB and more", diag);
		const uint8_t *row = bytes + at;
		size_t text = hd_get16(row + 28), more = hd_get16(row + 30) + hd_get16(row + 32);
		if (stop - at - ENTRY_BYTES < text + more)
			return bad(name, "its directory is damaged", diag);
		at += ENTRY_BYTES + text + more;
		if (text != want || memcmp(row + ENTRY_BYTES, member, want) != 0)
			continue;
		*entry = (struct zip_entry){ row, hd_get16(row + 10), hd_get16(row + 8), hd_get32(row + 16),
			hd_get32(row + 20), hd_get32(row + 24), hd_get32(row + 42) };
		return HD_OK;
	}
	return HD_E_NOTFOUND;
}

/* Deflated bytes with the head and the tail of a gzip file around them: one unpacker for both. */
static enum hd_err inflate_entry(const struct zip_entry *entry, const uint8_t *packed, const char *name,
	size_t max_bytes, struct hd_arena *arena, struct hd_zip_member *found, struct hd_diag *diag)
{
	static const uint8_t head[GZIP_HEAD] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
	size_t len = (size_t)entry->packed + GZIP_HEAD + GZIP_TAIL;
	uint8_t *whole = hd_arena_take(arena, len, 1), *out;

	if (!whole)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to unpack %u bytes", name, entry->packed);
	memcpy(whole, head, sizeof head);
	if (entry->packed)
		memcpy(whole + GZIP_HEAD, packed, entry->packed);
	hd_put32(whole + len - 8, entry->crc);
	hd_put32(whole + len - 4, entry->unpacked);
	enum hd_err err = hd_gzip_unpack(arena, name, whole, len, max_bytes, &out, &found->len, diag);
	if (!err)
		found->bytes = out;
	return err;
}

enum hd_err hd_zip_find(const uint8_t *bytes, size_t len, const char *name, const char *member,
	size_t max_bytes, struct hd_arena *arena, struct hd_zip_member *found, struct hd_diag *diag)
{
	struct zip_entry entry = { 0 };
	enum hd_err err = find_entry(bytes, len, name, member, &entry, diag);

	if (err)
		return err;
	if (entry.local > len || len - entry.local < LOCAL_BYTES || hd_get32(bytes + entry.local) != LOCAL)
		return bad(name, "a member is not where its directory says", diag);
	size_t at = entry.local + (size_t)LOCAL_BYTES + hd_get16(bytes + entry.local + 26) +
		hd_get16(bytes + entry.local + 28);
	if (at > len || entry.packed > len - at)
		return bad(name, "it is cut off, or a member has 4 GiB and more", diag);
	if (entry.flags & ENCRYPTED || (entry.method != STORED && entry.method != DEFLATED))
		return bad(name, "a member is encrypted, or compressed otherwise than deflated", diag);
	if (entry.method == DEFLATED)
		return inflate_entry(&entry, bytes + at, name, max_bytes, arena, found, diag);
	if (entry.packed != entry.unpacked)
		return bad(name, "a stored member has two lengths", diag);
	*found = (struct hd_zip_member){ bytes + at, entry.packed };
	return HD_OK;
}

/* What a local header and a row of the directory have alike: from the version that is needed to the name. */
static void put_common(uint8_t *at, const struct hd_zip_part *p)
{
	enum { VERSION = 20, FIRST_DAY = 1 << 5 | 1 };        /* 2.0; 1980-01-01 */

	memset(at, 0, 26);
	hd_put16(at, VERSION);
	hd_put16(at + 4, STORED);
	hd_put16(at + 8, FIRST_DAY);
	hd_put32(at + 10, hd_crc32(p->of.bytes, p->of.len));
	hd_put32(at + 14, (uint32_t)p->of.len);
	hd_put32(at + 18, (uint32_t)p->of.len);
	hd_put16(at + 22, (uint32_t)strlen(p->name));
}

static uint8_t *put_local(uint8_t *at, const struct hd_zip_part *p)
{
	size_t name = strlen(p->name);

	hd_put32(at, LOCAL);
	put_common(at + 4, p);
	memcpy(at + LOCAL_BYTES, p->name, name);
	memcpy(at + LOCAL_BYTES + name, p->of.bytes, p->of.len);
	return at + LOCAL_BYTES + name + p->of.len;
}

static uint8_t *put_entry(uint8_t *at, const struct hd_zip_part *p, uint32_t local)
{
	enum { MADE_ON_UNIX = 3 << 8 | 20, REGULAR = 0100000 };
	size_t name = strlen(p->name);

	memset(at, 0, ENTRY_BYTES);
	hd_put32(at, ENTRY);
	hd_put16(at + 4, MADE_ON_UNIX);
	put_common(at + 6, p);
	hd_put32(at + 38, (REGULAR | p->mode) << 16);
	hd_put32(at + 42, local);
	memcpy(at + ENTRY_BYTES, p->name, name);
	return at + ENTRY_BYTES + name;
}

enum hd_err hd_zip_write(const struct hd_zip_part *part, size_t n, struct hd_arena *arena,
	struct hd_zip_member *file, struct hd_diag *diag)
{
	uint64_t total = END_BYTES;

	for (size_t i = 0; i < n; i++)
		total += LOCAL_BYTES + ENTRY_BYTES + 2 * strlen(part[i].name) + part[i].of.len;
	if (n > UINT16_MAX || total > UINT32_MAX)
		return hd_fail(diag, HD_E_INVAL, "a zip file of %zu members and %llu bytes: the format has "
			"room for 65535 and 4 GiB", n, (unsigned long long)total);
	uint8_t *bytes = hd_arena_take(arena, total, 1), *at = bytes;
	if (!bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a zip file of %llu bytes",
			(unsigned long long)total);
	for (size_t i = 0; i < n; i++)
		at = put_local(at, &part[i]);
	const uint8_t *directory = at, *local = bytes;
	for (size_t i = 0; i < n; i++) {
		at = put_entry(at, &part[i], (uint32_t)(local - bytes));
		local += LOCAL_BYTES + strlen(part[i].name) + part[i].of.len;
	}
	memset(at, 0, END_BYTES);
	hd_put32(at, END);
	hd_put16(at + 8, (uint32_t)n);
	hd_put16(at + 10, (uint32_t)n);
	hd_put32(at + 12, (uint32_t)(at - directory));
	hd_put32(at + 16, (uint32_t)(directory - bytes));
	*file = (struct hd_zip_member){ bytes, (size_t)total };
	return HD_OK;
}
