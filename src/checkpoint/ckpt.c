#include "checkpoint/ckpt.h"

#include <stdio.h>
#include <string.h>

#include "hd_version.h"
#include "sys/failpoint.h"
#include "checkpoint/ckpt_int.h"

/* What one call of hd_ckpt_write() works on. */
struct writing {
	struct hd_fs *fs;
	const char *parent;
	const struct hd_state *state;
	struct hd_manifest manifest;
	struct hd_arena arena;
	char tmp[HD_PATH_CAP], final[HD_PATH_CAP], old[HD_PATH_CAP];
	struct hd_diag *diag;
};

static enum hd_err point(int error, const char *verb, const char *path, struct hd_diag *diag)
{
	return error ? hd_fail_errno(diag, error, verb, path) : HD_OK;
}

static enum hd_err paths(struct writing *w)
{
	unsigned long long step = w->manifest.info.step;
	int longest = snprintf(w->old, sizeof w->old, "%s/" HD_CKPT_FOLDER "%09llu" HD_CKPT_OLD, w->parent,
		step);

	snprintf(w->final, sizeof w->final, "%s/" HD_CKPT_FOLDER "%09llu", w->parent, step);
	snprintf(w->tmp, sizeof w->tmp, "%s/" HD_CKPT_TMP "%09llu", w->parent, step);
	if ((size_t)longest + HD_MAX_NAME >= sizeof w->old ||
		(size_t)longest >= sizeof w->manifest.info.folder)
		return hd_fail(w->diag, HD_E_INVAL, "the path of a checkpoint below %.200s... is too long",
			w->parent);
	return HD_OK;
}

/* What a crash left behind. Failing to remove it harms nothing: where it is in the way,
 * the call that meets it says so. */
static void clean(struct writing *w)
{
	char path[HD_PATH_CAP], plain[HD_PATH_CAP];
	char **names;
	size_t n;

	if (hd_fs_list(w->fs, w->parent, &w->arena, &names, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t step;
		bool old = false;
		hd_ckpt_join(path, sizeof path, w->parent, names[i]);
		bool left = !strncmp(names[i], HD_CKPT_TMP, sizeof HD_CKPT_TMP - 1);
		/* one that was replaced goes once its successor stands */
		if (!left && hd_ckpt_folder_parse(names[i], &step, &old) && old) {
			hd_ckpt_join(plain, sizeof plain, NULL, path);
			plain[strlen(plain) - (sizeof HD_CKPT_OLD - 1)] = 0;
			left = hd_ckpt_verify(w->fs, plain, &(struct hd_ckpt_info){ 0 }, NULL) == HD_OK;
		}
		if (left && hd_fs_remove_tree(w->fs, path, NULL))
			continue;
	}
}

static enum hd_err write_counters(struct writing *w, struct hd_sink *sink)
{
	struct hd_text text;

	hd_text_init(&text, &w->arena);
	enum hd_err err = hd_ckpt_state_print(w->state, &w->manifest.info, &text, w->diag);
	return err ? err : hd_sink_put(sink, text.at, text.len, w->diag);
}

static enum hd_err write_file(struct writing *w, int i)
{
	char path[HD_PATH_CAP];
	struct hd_sink sink;
	enum hd_err err;

	hd_ckpt_join(path, sizeof path, w->tmp, hd_ckpt_files[i].name);
	err = hd_sink_open(&sink, w->fs, path, true, w->diag);
	if (err)
		return err;
	err = hd_ckpt_files[i].group == HD_STATE_RUN ? write_counters(w, &sink)
		: hd_ckpt_tensors_write(w->state, hd_ckpt_files[i].group, &w->manifest.info, &sink, w->diag);
	if (!err)
		return hd_sink_end(&sink, &w->manifest.file[i], w->diag);
	hd_sink_finish(&sink);
	return err;
}

static enum hd_err write_manifest(struct writing *w)
{
	char path[HD_PATH_CAP];
	struct hd_ckpt_sum unused;
	struct hd_sink sink;
	struct hd_text text;
	enum hd_err err;

	for (int i = 0; i < HD_CKPT_NFILES; i++)
		w->manifest.info.len_bytes += w->manifest.file[i].len_bytes;
	hd_text_init(&text, &w->arena);
	err = hd_manifest_print(&w->manifest, &text, w->diag);
	if (err)
		return err;
	hd_ckpt_join(path, sizeof path, w->tmp, HD_CKPT_MANIFEST);
	size_t len = text.len;
	err = point(HD_FAILPOINT_BYTES(CKPT_MANIFEST_BEFORE, text.at, &len), "write", path, w->diag);
	if (!err)
		err = hd_sink_open(&sink, w->fs, path, false, w->diag);
	if (err)
		return err;
	err = hd_sink_put(&sink, text.at, len, w->diag);
	if (!err)
		err = hd_sink_end(&sink, &unused, w->diag);
	else
		hd_sink_finish(&sink);
	return err ? err : point(HD_FAILPOINT(CKPT_MANIFEST_AFTER), "write", path, w->diag);
}

static enum hd_err write_folder(struct writing *w)
{
	enum hd_err err = point(HD_FAILPOINT(CKPT_BEGIN), "make folder", w->tmp, w->diag);

	if (!err)
		err = hd_fs_mkdir(w->fs, w->tmp, w->diag);
	for (int i = 0; i < HD_CKPT_NFILES && !err; i++)
		err = write_file(w, i);
	if (!err)
		err = write_manifest(w);
	return err ? err : hd_fs_sync_folder(w->fs, w->tmp, w->diag);
}

/* A folder of that step may stand there: written before a fall-back, or by another lineage.
 * It is renamed to a name that readers still accept, so that at every moment one of the
 * two can be loaded. */
static enum hd_err put_in_place(struct writing *w)
{
	struct hd_stat stat;
	bool replaces = hd_fs_stat(w->fs, w->final, &stat, NULL) == HD_OK;
	enum hd_err err = point(HD_FAILPOINT(CKPT_RENAME_BEFORE), "rename", w->tmp, w->diag);

	if (!err && replaces && hd_fs_stat(w->fs, w->old, &stat, NULL) == HD_OK)
		err = hd_fs_remove_tree(w->fs, w->old, w->diag);
	if (!err && replaces)
		err = hd_fs_rename(w->fs, w->final, w->old, w->diag);
	if (!err)
		err = hd_fs_rename(w->fs, w->tmp, w->final, w->diag);
	if (!err)
		err = point(HD_FAILPOINT(CKPT_RENAME_AFTER), "rename", w->final, w->diag);
	if (!err)
		err = point(HD_FAILPOINT(CKPT_DIRSYNC), "sync", w->parent, w->diag);
	if (!err)
		err = hd_fs_sync_folder(w->fs, w->parent, w->diag);
	if (!err && replaces && hd_fs_remove_tree(w->fs, w->old, NULL))
		return HD_OK;        /* the next write removes it */
	return err;
}

static bool stands_already(struct writing *w)
{
	const struct hd_ckpt_info *info = &w->manifest.info;
	struct hd_ckpt_info there;

	return hd_ckpt_verify(w->fs, w->final, &there, NULL) == HD_OK &&
		hd_hash_same(there.digest, info->digest) &&
		hd_hash_same(there.job_hash, info->job_hash) &&
		hd_hash_same(there.fingerprint, info->fingerprint) && there.lineage == info->lineage;
}

static enum hd_err refuse_others(struct writing *w)
{
	struct hd_manifest there;

	if (hd_ckpt_manifest_read(w->fs, w->final, &w->arena, &there, NULL) ||
		hd_ckpt_owns(&w->manifest.info, &there.info))
		return HD_OK;
	return hd_fail(w->diag, HD_E_INVAL,
		"%s is a checkpoint of another job and is not replaced; give each run a checkpoint.dir of "
		"its own", w->final);
}

static enum hd_err write_new(struct writing *w, bool read_back)
{
	struct hd_ckpt_info read;
	struct hd_stat stat;
	enum hd_err err = refuse_others(w);

	if (err)
		return err;
	err = write_folder(w);
	if (!err && read_back)
		err = hd_ckpt_verify(w->fs, w->tmp, &read, w->diag);
	if (!err)
		err = put_in_place(w);
	if (err && hd_fs_stat(w->fs, w->tmp, &stat, NULL) == HD_OK && hd_fs_remove_tree(w->fs, w->tmp, NULL))
		return err;          /* the next write removes it */
	return err;
}

enum hd_err hd_ckpt_write(struct hd_fs *fs, const char *parent, const struct hd_state *state,
	struct hd_ckpt_info *info, uint32_t keep,
	bool read_back, struct hd_diag *diag)
{
	struct writing w = { .fs = fs, .parent = parent, .state = state, .manifest.info = *info,
		.diag = diag };
	enum hd_err err;

	hd_arena_init(&w.arena, 0);
	w.manifest.info.digest = hd_state_digest(state);
	w.manifest.info.len_bytes = 0;
	if (!*w.manifest.info.program)
		snprintf(w.manifest.info.program, sizeof w.manifest.info.program, "heddle %s", HD_VERSION);
	err = paths(&w);
	if (!err)
		err = hd_fs_mkdirs(fs, parent, diag);
	if (err)
		goto out;
	clean(&w);
	if (stands_already(&w))
		err = hd_ckpt_verify(fs, w.final, &w.manifest.info, diag);
	else
		err = write_new(&w, read_back);
	if (err)
		goto out;
	hd_ckpt_join(w.manifest.info.folder, sizeof w.manifest.info.folder, NULL, w.final);
	*info = w.manifest.info;
	/* What was written is whole; an old one that cannot be removed costs space, and is tried again. */
	if (keep && hd_ckpt_gc_own(fs, parent, keep, info, NULL))
		err = HD_OK;
out:
	hd_arena_finish(&w.arena);
	return err;
}
