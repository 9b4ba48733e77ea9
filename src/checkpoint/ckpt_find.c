#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "sys/failpoint.h"
#include "checkpoint/ckpt_int.h"

enum { DIGITS = 9, NAME_CAP = 64 };

/* A folder that by its name is a checkpoint; whether it is whole is another question. */
struct ckpt_folder { uint64_t step; bool old; char name[NAME_CAP]; };

void hd_ckpt_join(char *out, size_t cap, const char *folder, const char *name)
{
	struct hd_text text;

	hd_text_fixed(&text, out, cap);
	if (folder)
		hd_text_addf(&text, "%s/", folder);
	hd_text_add(&text, name);
	if (text.full)
		*out = 0;
}

bool hd_ckpt_folder_parse(const char *name, uint64_t *step, bool *old)
{
	char digits[24];
	size_t n;

	if (strncmp(name, HD_CKPT_FOLDER, sizeof HD_CKPT_FOLDER - 1))
		return false;
	name += sizeof HD_CKPT_FOLDER - 1;
	n = strspn(name, "0123456789");
	*old = !strcmp(name + n, HD_CKPT_OLD);
	if (n < DIGITS || n >= sizeof digits || (n > DIGITS && name[0] == '0') || (name[n] && !*old))
		return false;
	memcpy(digits, name, n);
	digits[n] = 0;
	const char *first = digits + strspn(digits, "0");
	return hd_num_u64(*first ? first : "0", INT64_MAX, step, NULL) == HD_OK;
}

/* Newest first; of one step the one that replaced the other. */
static int newest_first(const void *a, const void *b)
{
	const struct ckpt_folder *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? 1 : -1;
	return (x->old > y->old) - (x->old < y->old);
}

static enum hd_err scan(struct hd_fs *fs, const char *parent, struct hd_arena *arena,
	struct ckpt_folder **out,
	uint32_t *nfound, struct hd_diag *diag)
{
	struct ckpt_folder *found;
	uint32_t n = 0;
	char **names;
	size_t nnames;
	enum hd_err err = hd_fs_list(fs, parent, arena, &names, &nnames, diag);

	if (err)
		return err;
	found = hd_arena_take(arena, nnames + 1, sizeof *found);
	if (!found)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %zu names in %s", nnames, parent);
	for (size_t i = 0; i < nnames; i++) {
		struct ckpt_folder *f = &found[n];
		if (!hd_ckpt_folder_parse(names[i], &f->step, &f->old))
			continue;
		assert(strlen(names[i]) < NAME_CAP);
		snprintf(f->name, sizeof f->name, "%s", names[i]);
		n++;
	}
	qsort(found, n, sizeof *found, newest_first);
	*out = found;
	*nfound = n;
	return HD_OK;
}

/* HD_E_NOTFOUND: no manifest, so there is no checkpoint here. */
static enum hd_err manifest_at(struct hd_fs *fs, const char *folder)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	hd_ckpt_join(path, sizeof path, folder, HD_CKPT_MANIFEST);
	return hd_fs_stat(fs, path, &stat, NULL);
}

enum hd_err hd_ckpt_list(struct hd_fs *fs, const char *parent, struct hd_arena *arena,
	struct hd_ckpt_info **list, uint32_t *n, struct hd_diag *diag)
{
	struct hd_ckpt_info *infos;
	struct ckpt_folder *found;
	uint32_t nfound, good = 0;
	enum hd_err err = scan(fs, parent, arena, &found, &nfound, diag);

	if (err)
		return err;
	infos = hd_arena_take(arena, (size_t)nfound + 1, sizeof *infos);
	if (!infos)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %u checkpoints in %s", nfound, parent);
	for (uint32_t i = 0; i < nfound; i++) {
		char folder[HD_PATH_CAP];
		struct hd_manifest manifest;
		hd_ckpt_join(folder, sizeof folder, parent, found[i].name);
		err = hd_ckpt_manifest_read(fs, folder, arena, &manifest, NULL);
		if (err == HD_E_NOMEM)
			return hd_fail(diag, err, "no memory for the manifest of %s", folder);
		if (err == HD_OK)
			infos[good++] = manifest.info;
	}
	*list = infos;
	*n = good;
	return HD_OK;
}

/* By checkpoint.dir of the resolved job. A folder that is no run has none, nor a run that wrote none yet. */
static void dir_of_run(struct hd_fs *fs, const char *path, char *parent, size_t cap)
{
	const struct hd_json *job, *ckpt;
	const char *dir = "ckpt";
	char name[HD_PATH_CAP];
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	hd_ckpt_join(name, sizeof name, path, "job.resolved.json");
	if (!hd_file_read_all(fs, name, &arena, HD_JSON_BYTES, &bytes, &len, NULL) &&
	    !hd_json_parse(&arena, name, (const char *)bytes, len, &job, NULL) &&
	    (ckpt = hd_json_find(job, "checkpoint")))
		(void)!hd_json_get_text(ckpt, "dir", &dir, NULL);
	if (hd_ckpt_place(fs, path, dir, parent, cap, NULL))
		hd_ckpt_join(parent, cap, NULL, path);
	hd_arena_finish(&arena);
}

enum hd_err hd_ckpt_parent(struct hd_fs *fs, const char *path, char *parent, size_t cap, struct hd_diag *diag)
{
	struct hd_stat stat;
	enum hd_err err = hd_fs_stat(fs, path, &stat, diag);

	if (err)
		return err;
	if (stat.kind != HD_FILE_FOLDER)
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s is a file: give a run directory or a checkpoint folder", path);
	dir_of_run(fs, path, parent, cap);
	if (!*parent)
		return hd_fail(diag, HD_E_INVAL, "the path %.100s... is too long", path);
	if (hd_fs_stat(fs, parent, &stat, NULL) == HD_E_NOTFOUND)
		snprintf(parent, cap, "%s", path);
	return HD_OK;
}

enum hd_err hd_ckpt_folders(struct hd_fs *fs, const char *path, struct hd_arena *arena, const char ***out,
	uint32_t *n, struct hd_diag *diag)
{
	bool itself = manifest_at(fs, path) == HD_OK;
	char parent[HD_PATH_CAP], folder[HD_PATH_CAP];
	struct ckpt_folder *found = NULL;
	uint32_t nfound = 1;
	enum hd_err err = HD_OK;

	if (!itself)
		err = hd_ckpt_parent(fs, path, parent, sizeof parent, diag);
	if (!itself && !err)
		err = scan(fs, parent, arena, &found, &nfound, diag);
	if (err)
		return err;
	if (!nfound)
		return hd_fail(diag, HD_E_NOTFOUND, "%s holds no checkpoint", parent);
	const char **folders = hd_arena_take(arena, nfound, sizeof *folders);
	for (uint32_t i = 0; folders && i < nfound; i++) {
		if (!itself)
			hd_ckpt_join(folder, sizeof folder, parent, found[i].name);
		const char *one = itself ? path : folder;
		folders[i] = hd_arena_text(arena, one, strlen(one));
		if (!folders[i])
			return hd_fail(diag, HD_E_NOMEM, "no memory for the names of the checkpoints in %s",
				path);
	}
	if (!folders)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the %u checkpoints in %s", nfound, path);
	*out = folders;
	*n = nfound;
	return HD_OK;
}

enum hd_err hd_ckpt_find(struct hd_fs *fs, const char *path, uint64_t from, struct hd_ckpt_info *info,
	void (*bad)(void *user, const char *folder, const char *why), void *user, struct hd_diag *diag)
{
	char parent[HD_PATH_CAP], folder[HD_PATH_CAP];
	struct hd_arena arena;
	struct ckpt_folder *found;
	uint32_t nfound = 0, nbad = 0;
	enum hd_err err;

	if (manifest_at(fs, path) == HD_OK)
		return hd_ckpt_verify(fs, path, info, diag);
	hd_arena_init(&arena, 0);
	err = hd_ckpt_parent(fs, path, parent, sizeof parent, diag);
	if (!err)
		err = scan(fs, parent, &arena, &found, &nfound, diag);
	for (uint32_t i = 0; i < nfound; i++) {
		struct hd_diag why = { "" };
		if (from != UINT64_MAX && found[i].step != from)
			continue;
		hd_ckpt_join(folder, sizeof folder, parent, found[i].name);
		if (manifest_at(fs, folder) == HD_E_NOTFOUND)
			continue;
		if (hd_ckpt_verify(fs, folder, info, &why) == HD_OK)
			goto out;
		nbad++;
		if (bad)
			bad(user, folder, why.text);
	}
	if (nbad)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s: none of its %u checkpoints is whole", parent, nbad);
	if (!err && from != UINT64_MAX)
		err = hd_fail(diag, HD_E_NOTFOUND, "%s holds no checkpoint of step %llu", parent,
			(unsigned long long)from);
	if (!err)
		err = hd_fail(diag, HD_E_NOTFOUND, "%s holds no checkpoint", parent);
out:
	hd_arena_finish(&arena);
	return err;
}

/* Out of sight first, so that a crash leaves no half checkpoint behind. */
static enum hd_err remove_one(struct hd_fs *fs, const char *parent, const struct ckpt_folder *f,
	struct hd_diag *diag)
{
	char from[HD_PATH_CAP], to[HD_PATH_CAP], name[2 * NAME_CAP];
	struct hd_stat stat;
	enum hd_err err = HD_OK;

	hd_ckpt_join(from, sizeof from, parent, f->name);
	snprintf(name, sizeof name, HD_CKPT_TMP "gone-%s", f->name);
	hd_ckpt_join(to, sizeof to, parent, name);
	int error = HD_FAILPOINT(CKPT_GC);
	if (error)
		return hd_fail_errno(diag, error, "remove", from);
	if (hd_fs_stat(fs, to, &stat, NULL) == HD_OK)
		err = hd_fs_remove_tree(fs, to, diag);
	if (!err)
		err = hd_fs_rename(fs, from, to, diag);
	return err ? err : hd_fs_remove_tree(fs, to, diag);
}

/* Is it the first whole one? Until that is met every folder is looked at in full. */
static bool spared(struct hd_fs *fs, const char *parent, const struct ckpt_folder *f, const char *known_whole,
	bool *met)
{
	char folder[HD_PATH_CAP];
	struct hd_ckpt_info info;

	hd_ckpt_join(folder, sizeof folder, parent, f->name);
	if (known_whole && !strcmp(folder, known_whole))
		return *met = true;
	if (known_whole || *met || hd_ckpt_verify(fs, folder, &info, NULL))
		return false;
	return *met = true;
}

bool hd_ckpt_owns(const struct hd_ckpt_info *mine, const struct hd_ckpt_info *there)
{
	return hd_hash_same(mine->job_hash, there->job_hash) || there->lineage < mine->lineage;
}

/* One whose manifest does not say whose it is counts as another's. */
static void leave_others(struct hd_fs *fs, const char *parent, struct ckpt_folder *found, uint32_t *n,
	struct hd_arena *arena, const struct hd_ckpt_info *mine)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *n; i++) {
		char folder[HD_PATH_CAP];
		struct hd_manifest manifest;
		hd_ckpt_join(folder, sizeof folder, parent, found[i].name);
		if (hd_ckpt_manifest_read(fs, folder, arena, &manifest, NULL) == HD_OK &&
			hd_ckpt_owns(mine, &manifest.info))
			found[kept++] = found[i];
	}
	*n = kept;
}

/* `mine`: only folders it owns; the folder it names is known to be whole. NULL: all. */
static enum hd_err collect(struct hd_fs *fs, const char *parent, uint32_t keep,
	const struct hd_ckpt_info *mine, const char *known_whole,
	uint32_t *nremoved, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct ckpt_folder *found;
	uint32_t n = 0, kept = 0, removed = 0;
	bool met = false;
	enum hd_err err;

	hd_arena_init(&arena, 0);
	err = scan(fs, parent, &arena, &found, &n, diag);
	if (!err && mine)
		leave_others(fs, parent, found, &n, &arena, mine);
	for (uint32_t i = 0; !err && i < n; i++) {
		bool spare = spared(fs, parent, &found[i], known_whole, &met);
		if (spare || kept + !met < keep) {        /* a place is held for the whole one */
			kept++;
			continue;
		}
		err = remove_one(fs, parent, &found[i], diag);
		removed += !err;
	}
	if (!err && nremoved)
		*nremoved = removed;
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_ckpt_gc(struct hd_fs *fs, const char *parent, uint32_t keep, const char *known_whole,
	uint32_t *nremoved, struct hd_diag *diag)
{
	return collect(fs, parent, keep, NULL, known_whole, nremoved, diag);
}

enum hd_err hd_ckpt_gc_own(struct hd_fs *fs, const char *parent, uint32_t keep,
	const struct hd_ckpt_info *written, struct hd_diag *diag)
{
	return collect(fs, parent, keep, written, written->folder, NULL, diag);
}

/* As its manifest says, and no more of it is read: what is removed need not be whole to be wrong, and the
 * caller may have peers that wait for it. */
static bool newest_of(struct hd_fs *fs, const char *parent, const struct ckpt_folder *found, uint32_t n,
	struct hd_arena *arena, struct hd_ckpt_info *newest)
{
	for (uint32_t i = 0; i < n; i++) {
		char folder[HD_PATH_CAP];
		struct hd_manifest manifest;
		hd_ckpt_join(folder, sizeof folder, parent, found[i].name);
		if (hd_ckpt_manifest_read(fs, folder, arena, &manifest, NULL))
			continue;
		*newest = manifest.info;
		return true;
	}
	return false;
}

static enum hd_err drop_below(struct hd_fs *fs, const char *parent, uint64_t step, uint32_t *nremoved,
	struct hd_diag *diag)
{
	struct hd_arena arena;
	struct ckpt_folder *found;
	struct hd_ckpt_info newest;
	uint32_t n = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = scan(fs, parent, &arena, &found, &n, diag);
	err = err == HD_E_NOTFOUND ? HD_OK : err;         /* then n is 0 */
	if (n && newest_of(fs, parent, found, n, &arena, &newest))
		leave_others(fs, parent, found, &n, &arena, &newest);
	else
		n = 0;
	for (uint32_t i = 0; !err && i < n; i++) {
		if (found[i].step <= step)
			continue;
		err = remove_one(fs, parent, &found[i], diag);
		*nremoved += !err;
	}
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_ckpt_drop_after(struct hd_fs *fs, const char *path, uint64_t step, uint32_t *nremoved,
	struct hd_diag *diag)
{
	char parent[HD_PATH_CAP], best[HD_PATH_CAP];

	*nremoved = 0;
	enum hd_err err = hd_ckpt_parent(fs, path, parent, sizeof parent, diag);
	if (err)
		return err == HD_E_NOTFOUND ? HD_OK : err;
	hd_ckpt_join(best, sizeof best, parent, HD_CKPT_BEST);
	err = drop_below(fs, parent, step, nremoved, diag);
	return err || !*best ? err : drop_below(fs, best, step, nremoved, diag);
}
