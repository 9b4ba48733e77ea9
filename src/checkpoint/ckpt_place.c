#include <stdio.h>
#include <string.h>

#include "checkpoint/ckpt_int.h"

/* Where the checkpoints of a run lie. A folder outside the run directory may serve several
 * runs, of one name too, and runs are moved: so each takes a folder of its own in it, once,
 * and keeps the address in its run directory. */

#define ELSEWHERE "ckpt/elsewhere"        /* one line: the folder taken */

enum { MOST_SAME_NAME = 10000 };

/* HD_E_NOTFOUND: none was taken yet, or in another place than `dir`. */
static enum hd_err taken(struct hd_fs *fs, const char *run, const char *dir, char *parent, size_t cap,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	uint8_t *bytes = NULL;
	size_t len = 0, dir_len = strlen(dir);

	hd_arena_init(&arena, 0);
	hd_ckpt_join(path, sizeof path, run, ELSEWHERE);
	enum hd_err err = hd_file_read_all(fs, path, &arena, cap, &bytes, &len, diag);
	if (!err) {
		const char *line = (const char *)bytes;
		len = strcspn(line, "\n");
		if (len >= cap || strncmp(line, dir, dir_len) || line[dir_len] != '/')
			err = hd_fail(diag, HD_E_NOTFOUND, "%s names no folder in %s", path, dir);
		else
			snprintf(parent, cap, "%.*s", (int)len, line);
	}
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_ckpt_place(struct hd_fs *fs, const char *run, const char *dir, char *parent, size_t cap,
	struct hd_diag *diag)
{
	if (dir[0] == '/')
		return taken(fs, run, dir, parent, cap, diag);
	hd_ckpt_join(parent, cap, run, dir);
	return *parent ? HD_OK : hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", run);
}

/* The last name of the path, where it has one that tells runs apart. */
static void name_of(const char *run, char name[HD_MAX_NAME])
{
	size_t end = strlen(run), at;

	while (end && run[end - 1] == '/')
		end--;
	for (at = end; at && run[at - 1] != '/'; at--)
		;
	snprintf(name, HD_MAX_NAME, "%.*s", (int)(end - at < HD_MAX_NAME / 2 ? end - at : HD_MAX_NAME / 2),
		run + at);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		snprintf(name, HD_MAX_NAME, "run");
}

/* mkdir decides: two runs that begin together get two folders. */
static enum hd_err take(struct hd_fs *fs, const char *run, const char *dir, char *parent, size_t cap,
	struct hd_diag *diag)
{
	char name[HD_MAX_NAME], numbered[HD_MAX_NAME + 16];
	enum hd_err err = hd_fs_mkdirs(fs, dir, diag);

	name_of(run, name);
	for (uint32_t n = 1; !err && n < MOST_SAME_NAME; n++) {
		snprintf(numbered, sizeof numbered, n > 1 ? "%s-%u" : "%s", name, n);
		hd_ckpt_join(parent, cap, dir, numbered);
		if (!*parent)
			return hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", dir);
		err = hd_fs_mkdir(fs, parent, NULL);
		if (err != HD_E_EXISTS)
			return err ? hd_fs_mkdir(fs, parent, diag) : hd_fs_sync_folder(fs, dir, diag);
		err = HD_OK;
	}
	return err ? err : hd_fail(diag, HD_E_REFUSED,
		"%s holds checkpoints of %d runs named %s: remove some", dir, MOST_SAME_NAME, name);
}

enum hd_err hd_ckpt_claim(struct hd_fs *fs, const char *run, const char *dir, char *parent, size_t cap,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	enum hd_err err = hd_ckpt_place(fs, run, dir, parent, cap, NULL);

	if (err != HD_E_NOTFOUND)
		return err ? hd_ckpt_place(fs, run, dir, parent, cap, diag) : HD_OK;
	hd_ckpt_join(path, sizeof path, run, "ckpt");
	err = hd_fs_mkdirs(fs, path, diag);
	if (!err)
		err = take(fs, run, dir, parent, cap, diag);
	hd_ckpt_join(path, sizeof path, run, ELSEWHERE);
	return err ? err : hd_file_write_atomic(fs, path, parent, strlen(parent), diag);
}
