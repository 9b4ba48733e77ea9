#include "functions/pack.h"

#include <string.h>

#include "base/le.h"

/* Of the ELF-64 object file format. */
enum { HEAD_BYTES = 64, SEGMENT_BYTES = 56, SEGMENTS = 128, LOADED = 1, LOADER = 3 };

static const struct { uint32_t machine; const char *arch; } machines[] = {
	{ 62, "x86_64" }, { 183, "arm64" } };

static enum hd_err check(const char *name, const uint8_t *bytes, size_t len, const char **arch,
	struct hd_diag *diag)
{
	static const uint8_t magic[] = { 0x7f, 'E', 'L', 'F', 2, 1 };

	if (len < HEAD_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is no executable of 64 bits", name);
	uint32_t type = hd_get16(bytes + 16), machine = hd_get16(bytes + 18), n = hd_get16(bytes + 56);
	uint64_t at = hd_get64(bytes + 32);
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		if (machines[i].machine == machine)
			*arch = machines[i].arch;
	if (!*arch || (type != 2 && type != 3))
		return hd_fail(diag, HD_E_INPUT, "%s is no executable of x86-64 or arm64", name);
	if (!n || n > SEGMENTS || hd_get16(bytes + 54) != SEGMENT_BYTES || at > len ||
		(len - at) / SEGMENT_BYTES < n)
		return hd_fail(diag, HD_E_INPUT, "%s is a damaged executable", name);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *segment = bytes + at + (uint64_t)i * SEGMENT_BYTES;
		uint64_t from = hd_get64(segment + 8), held = hd_get64(segment + 32);
		if (hd_get32(segment) == LOADED && (from > len || held > len - from))
			return hd_fail(diag, HD_E_INPUT, "%s is cut short: it lacks what its header names; "
				"build or copy it again", name);
		if (hd_get32(segment) == LOADER)
			return hd_fail(diag, HD_E_REFUSED,
				"%s needs a loader and libraries, which Lambda does not have: a static "
				"one is right, as heddle-function of a build on Debian", name);
	}
	return HD_OK;
}

enum hd_err hd_fn_pack(const char *name, const uint8_t *bytes, size_t len, struct hd_arena *arena,
	struct hd_fn_pack *pack, struct hd_diag *diag)
{
	const struct hd_zip_part part = { "bootstrap", 0755, { bytes, len } };
	struct hd_fn_pack p = { .arch = NULL };

	enum hd_err err = check(name, bytes, len, &p.arch, diag);
	if (!err)
		err = hd_zip_write(&part, 1, arena, &p.file, diag);
	if (!err && p.file.len > HD_FN_PACK_BYTES)
		err = hd_fail(diag, HD_E_REFUSED, "%s: Lambda takes zip files of at most %d bytes, this is "
			"one of %zu", name, HD_FN_PACK_BYTES, p.file.len);
	if (!err)
		*pack = p;
	return err;
}
