/* Records of values of two runs, parted by a line "--": refused with a reason, or compared alike from both
 * sides; a run says nothing against itself but what it says of itself. */
#define _GNU_SOURCE        /* of the C library: memmem */
#include <stdlib.h>
#include <string.h>

#include "sys/file_sim.h"
#include "run/value_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void put(struct hd_fs *fs, const char *folder, const char *path, const uint8_t *bytes, size_t len)
{
	must(!hd_fs_mkdirs(fs, folder, NULL) && !hd_file_write_atomic(fs, path, bytes, len, NULL));
}

static enum hd_err diff(struct hd_fs *fs, const char *a, const char *b, struct hd_value_difference *d)
{
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, 64u << 20);
	const enum hd_err err = hd_value_diff(fs, a, b, &arena, d, &diag);
	must(!err == !*diag.text);
	hd_arena_finish(&arena);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char PARTS[] = "\n--\n";
	const uint8_t *cut = memmem(bytes, len, PARTS, sizeof PARTS - 1);
	struct hd_value_difference ab, ba, aa;
	struct hd_fs_sim sim;

	if (!cut)
		return 0;
	const uint8_t *rest = cut + sizeof PARTS - 1;
	hd_fs_sim_init(&sim);
	/* the first part has its line end */
	put(&sim.fs, "/a/values", "/a/values/0.ndjson", bytes, (size_t)(cut - bytes) + 1);
	put(&sim.fs, "/b/values", "/b/values/3.ndjson", rest, (size_t)(bytes + len - rest));
	const enum hd_err err = diff(&sim.fs, "/a", "/b", &ab);
	must(!err == !diff(&sim.fs, "/b", "/a", &ba));
	if (!err) {
		must(ab.found == ba.found && ab.compared == ba.compared && ab.step == ba.step);
		must(ab.alone[0] == ba.alone[1] && ab.alone[1] == ba.alone[0]);
		must(!diff(&sim.fs, "/a", "/a", &aa) && (!aa.found || aa.within));
		must(!aa.alone[0] && !aa.alone[1] && aa.torn[0] == ab.torn[0]);
	}
	hd_fs_sim_finish(&sim);
	return 0;
}
