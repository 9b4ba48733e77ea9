#include "engine/recorder_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sys/process.h"

static bool is_far(const char *folder)
{
#ifdef HD_FAILPOINTS
	if (getenv("HD_TRACE_FAR"))
		return true;
#endif
	return hd_fs_is_far(folder);
}

/* A folder of the user; else a new one among those of all, which another user cannot have made before. */
static enum hd_err elsewhere(char place[HD_RECORDER_PATH], const char *folder, struct hd_diag *diag)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
	char hex[HD_HASH_HEX], what[HD_RECORDER_PATH + 64];
	struct hd_proc_self self;
	struct hd_fs fs;

	hd_fs_real(&fs);
	hd_proc_self(&self);
	const int len = snprintf(what, sizeof what, "%.900s %" PRIu32 " %" PRIu64, folder, self.pid,
		hd_clock_raw_ns());
	hd_hash_hex(hd_hash(what, (size_t)len), hex);
	if (runtime && *runtime) {
		snprintf(place, HD_RECORDER_PATH, "%.900s/heddle/flight-%.16s", runtime, hex);
		return hd_fs_mkdirs(&fs, place, diag);
	}
	snprintf(place, HD_RECORDER_PATH, "%.900s/heddle-flight-%.16s",
		temporary && *temporary ? temporary : "/tmp", hex);
	return hd_fs_mkdir(&fs, place, diag);
}

enum hd_err hd_recorder_place(struct hd_recorder *r, const char *folder, struct hd_diag *diag)
{
	r->moved = is_far(folder);
	if (r->moved)
		return elsewhere(r->folder, folder, diag);
	snprintf(r->folder, sizeof r->folder, "%.900s", folder);
	return HD_OK;
}

const char *hd_recorder_moved_to(const struct hd_recorder *r) { return r && r->moved ? r->folder : NULL; }
