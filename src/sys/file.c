#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

/* What a user can do about an errno, and the code of the error table. */
static const struct { int error; enum hd_err code; const char *advice; } reasons[] = {
	{ ENOENT,       HD_E_NOTFOUND, "check the path" },
	{ ENOTDIR,      HD_E_NOTFOUND, "a part of the path is not a folder" },
	{ EEXIST,       HD_E_EXISTS,   "remove it or choose another name" },
	{ ENOTEMPTY,    HD_E_EXISTS,   "remove what it holds first" },
	{ ENOSPC,       HD_E_REFUSED,  "free space on that disk" },
	{ EDQUOT,       HD_E_REFUSED,  "free space within your quota" },
	{ EFBIG,        HD_E_REFUSED,  "raise the file size limit (ulimit -f)" },
	{ EACCES,       HD_E_REFUSED,  "check owner and permissions" },
	{ EPERM,        HD_E_REFUSED,  "check owner and permissions" },
	{ EROFS,        HD_E_REFUSED,  "choose a folder on a writable file system" },
	{ EMFILE,       HD_E_REFUSED,  "raise the limit of open files (ulimit -n)" },
	{ ENFILE,       HD_E_REFUSED,  "the machine has too many open files" },
	{ EADDRINUSE,   HD_E_REFUSED,  "choose another address, or end the process that uses it" },
	{ EXDEV,        HD_E_REFUSED,  "the name leads out of its folder or file system" },
	{ ELOOP,        HD_E_REFUSED,  "the name leads through a symbolic link" },
	{ ENAMETOOLONG, HD_E_INVAL,    "choose a shorter path" },
	{ EINVAL,       HD_E_INVAL,    "the system does not take this request" },
	{ EISDIR,       HD_E_INVAL,    "it is a folder, a file is needed" },
	{ ENOMEM,       HD_E_NOMEM,    "free memory, or raise the limit" },
	{ EWOULDBLOCK,  HD_E_AGAIN,    "try again later" },
	{ EIO,          HD_E_IO,       "the disk may be failing: look into the system log" },
};

/* What a full file system is called, and what is left of it; a file that could not be made has a folder. */
static void find_space(const char *path, char *text, size_t cap)
{
	struct hd_fs_space space;
	struct hd_fs real;

	*text = '\0';
	hd_fs_real(&real);
	if (!hd_fs_space(&real, path, &space) && *space.at)
		snprintf(text, cap, " (%s has %llu KiB left)", space.at,
			(unsigned long long)(space.free_bytes >> 10));
}

enum hd_err hd_fail_errno(struct hd_diag *diag, int error, const char *verb, const char *path)
{
	char text[100];
	const char *reason = strerror_r(error, text, sizeof text);

	char space[240] = "";

	if (error == ENOSPC || error == EDQUOT)
		find_space(path, space, sizeof space);
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].error == error)
			return hd_fail(diag, reasons[i].code, "cannot %s %s: %s; %s%s", verb, path, reason,
				reasons[i].advice, space);
	return hd_fail(diag, HD_E_IO, "cannot %s %s: %s", verb, path, reason);
}

static const struct hd_file_ops *ops_of(const struct hd_file *file)
{
	assert(file->fs);
	return &file->fs->ops->file;
}

/* ---- open files ---- */

static enum hd_err open_at(struct hd_fs *fs, const char *beneath, const char *path, unsigned how,
	struct hd_file *file,
			   struct hd_diag *diag)
{
	int id;

	do {
		id = fs->ops->open(fs, beneath, path, how);
	} while (id == -EINTR);
	if (id < 0)
		return hd_fail_errno(diag, -id, how & HD_OPEN_CREATE ? "create" : "open", path);
	size_t len = strlen(path);
	file->fs = fs;
	file->id = id;
	if (len < sizeof file->name)
		memcpy(file->name, path, len + 1);
	else
		snprintf(file->name, sizeof file->name, "...%s", path + len - (sizeof file->name - 4));
	return HD_OK;
}

enum hd_err hd_file_open(struct hd_fs *fs, const char *path, unsigned how, struct hd_file *file,
	struct hd_diag *diag)
{
	return open_at(fs, NULL, path, how, file, diag);
}

/* Rows guard against links; here is what can be said of the text alone, for all rows. */
static bool name_is_tame(const char *name)
{
	if (!*name || *name == '/' || strlen(name) >= HD_PATH_CAP)
		return false;
	for (const char *at = name; *at; ) {
		size_t len = strcspn(at, "/");
		if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += len;
		if (*at == '/' && !*++at)
			return false;
	}
	return true;
}

enum hd_err hd_file_open_beneath(struct hd_fs *fs, const char *folder, const char *name, unsigned how,
				 struct hd_file *file, struct hd_diag *diag)
{
	if (!name_is_tame(name))
		return hd_fail(diag, HD_E_INPUT,
			"\"%.100s\" is not a name inside %s: it is empty, absolute, "
			"or holds \".\" or \"..\"; do not trust the file it comes from", name, folder);
	return open_at(fs, folder, name, how, file, diag);
}

static enum hd_err read_at(const struct hd_file *file, uint8_t *bytes, size_t len, int64_t offset,
	size_t *got, struct hd_diag *diag)
{
	size_t done = 0;

	while (done < len) {
		int64_t n = ops_of(file)->read(file->fs, file->id, bytes + done, len - done,
			offset < 0 ? -1 : offset + (int64_t)done);
		if (n == -EINTR)
			continue;
		if (n < 0)
			return hd_fail_errno(diag, (int)-n, "read", file->name);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*got = done;
	return HD_OK;
}

static enum hd_err write_at(const struct hd_file *file, const uint8_t *bytes, size_t len, int64_t offset,
	struct hd_diag *diag)
{
	size_t done = 0;

	while (done < len) {
		int64_t n = ops_of(file)->write(file->fs, file->id, bytes + done, len - done,
			offset < 0 ? -1 : offset + (int64_t)done);
		if (n == -EINTR)
			continue;
		if (n <= 0)        /* a write of nothing would be repeated for ever */
			return hd_fail_errno(diag, n ? (int)-n : EIO, "write", file->name);
		done += (size_t)n;
	}
	return HD_OK;
}

enum hd_err hd_file_read(struct hd_file *file, void *bytes, size_t len, size_t *got, struct hd_diag *diag)
{
	return read_at(file, bytes, len, -1, got, diag);
}

enum hd_err hd_file_pread(const struct hd_file *file, void *bytes, size_t len, int64_t offset, size_t *got,
	struct hd_diag *diag)
{
	int64_t end;

	if (offset < 0 || len > INT64_MAX || !hd_add_i64(offset, (int64_t)len, &end))
		return hd_fail(diag, HD_E_INVAL, "cannot read %s: bytes %lld to +%zu do not exist",
			file->name, (long long)offset, len);
	return read_at(file, bytes, len, offset, got, diag);
}

enum hd_err hd_file_write(struct hd_file *file, const void *bytes, size_t len, struct hd_diag *diag)
{
	return write_at(file, bytes, len, -1, diag);
}

enum hd_err hd_file_pwrite(const struct hd_file *file, const void *bytes, size_t len, int64_t offset,
	struct hd_diag *diag)
{
	int64_t end;

	if (offset < 0 || len > INT64_MAX || !hd_add_i64(offset, (int64_t)len, &end))
		return hd_fail(diag, HD_E_INVAL, "cannot write %s: bytes %lld to +%zu cannot exist",
			file->name, (long long)offset, len);
	return write_at(file, bytes, len, offset, diag);
}

enum hd_err hd_file_sync(const struct hd_file *file, struct hd_diag *diag)
{
	int r;

	do {
		r = ops_of(file)->sync(file->fs, file->id);
	} while (r == -EINTR);
	return r ? hd_fail_errno(diag, -r, "sync", file->name) : HD_OK;
}

enum hd_err hd_file_truncate(const struct hd_file *file, int64_t size_bytes, struct hd_diag *diag)
{
	int r;

	do {
		r = ops_of(file)->truncate(file->fs, file->id, size_bytes);
	} while (r == -EINTR);
	return r ? hd_fail_errno(diag, -r, "cut", file->name) : HD_OK;
}

static enum hd_err take_lock(const struct hd_file *file, bool shared, struct hd_diag *diag)
{
	int r;

	do {
		r = ops_of(file)->lock(file->fs, file->id, shared);
	} while (r == -EINTR);
	if (r == -EWOULDBLOCK)
		return hd_fail(diag, HD_E_AGAIN, "%s is in use by another process", file->name);
	return r ? hd_fail_errno(diag, -r, "lock", file->name) : HD_OK;
}

enum hd_err hd_file_lock(const struct hd_file *file, struct hd_diag *diag) { return take_lock(file, false,
	diag); }
enum hd_err hd_file_lock_shared(const struct hd_file *file,
	struct hd_diag *diag) { return take_lock(file, true, diag); }

enum hd_err hd_file_close(struct hd_file *file, struct hd_diag *diag)
{
	if (!file->fs)
		return HD_OK;
	int r = ops_of(file)->close(file->fs, file->id);
	file->fs = NULL;
	/* Linux has freed the descriptor even when it answers EINTR: a repetition could close another's. */
	return r && r != -EINTR ? hd_fail_errno(diag, -r, "close", file->name) : HD_OK;
}

enum hd_err hd_file_map(const struct hd_file *file, struct hd_map *map, struct hd_diag *diag)
{
	int r = ops_of(file)->map(file->fs, file->id, map);
	return r ? hd_fail_errno(diag, -r, "map", file->name) : HD_OK;
}

void hd_file_unmap(struct hd_fs *fs, struct hd_map *map)
{
	if (map->bytes)
		fs->ops->file.unmap(fs, map);
	*map = (struct hd_map){ 0 };
}

/* ---- names ---- */

static enum hd_err answer(int r, const char *verb, const char *path, struct hd_diag *diag)
{
	return r ? hd_fail_errno(diag, -r, verb, path) : HD_OK;
}

enum hd_err hd_fs_rename(struct hd_fs *fs, const char *from, const char *to, struct hd_diag *diag)
{
	int r = fs->ops->rename(fs, from, to);

	if (!r)
		return HD_OK;
	char both[HD_FILE_NAME * 2];
	snprintf(both, sizeof both, "%.190s to %.190s", from, to);
	return hd_fail_errno(diag, -r, "rename", both);
}

enum hd_err hd_fs_mkdir(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	return answer(fs->ops->mkdir(fs, path), "make folder", path, diag);
}

enum hd_err hd_fs_mkdirs(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	char part[HD_PATH_CAP];
	struct hd_stat stat;
	size_t len = strlen(path);

	if (!len || len >= sizeof part)
		return hd_fail_errno(diag, len ? ENAMETOOLONG : ENOENT, "make folder", path);
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if ((part[i] != '/' && part[i]) || part[i - 1] == '/')
			continue;
		part[i] = 0;
		int r = fs->ops->mkdir(fs, part);
		/* A parent may be there and yet refuse to be made (read-only mounts, "/"): what counts is
		 * that it is a folder. */
		if (r && (fs->ops->stat(fs, part, true, &stat) || stat.kind != HD_FILE_FOLDER))
			return answer(r, "make folder", part, diag);
		part[i] = path[i];
	}
	return HD_OK;
}

enum hd_err hd_fs_unlink(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	return answer(fs->ops->remove(fs, path, false), "remove", path, diag);
}

enum hd_err hd_fs_rmdir(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	return answer(fs->ops->remove(fs, path, true), "remove folder", path, diag);
}

enum hd_err hd_fs_stat(struct hd_fs *fs, const char *path, struct hd_stat *stat, struct hd_diag *diag)
{
	return answer(fs->ops->stat(fs, path, true, stat), "look at", path, diag);
}

enum hd_err hd_fs_sync_folder(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	struct hd_file folder = { 0 };

	enum hd_err err = hd_file_open(fs, path, HD_OPEN_FOLDER, &folder, diag);
	if (err)
		return err;
	err = hd_file_sync(&folder, diag);
	enum hd_err closed = hd_file_close(&folder, diag);
	return err ? err : closed;
}

/* Names of a folder, in heap memory while they are being counted. */
struct name_list { char **at; size_t n, cap; };

static int gather(void *user, const char *name)
{
	struct name_list *names = user;

	if (names->n == HD_LIST_CAP)
		return -EMFILE;
	if (names->n == names->cap) {
		size_t cap = names->cap ? names->cap * 2 : 64;
		char **at = hd_alloc(cap * sizeof *at);
		if (!at)
			return -ENOMEM;
		for (size_t i = 0; i < names->n; i++)
			at[i] = names->at[i];
		hd_free(names->at);
		names->at = at;
		names->cap = cap;
	}
	size_t len = strlen(name) + 1;
	char *copy = hd_alloc(len);
	if (!copy)
		return -ENOMEM;
	names->at[names->n++] = memcpy(copy, name, len);
	return 0;
}

static void names_finish(struct name_list *names)
{
	for (size_t i = 0; i < names->n; i++)
		hd_free(names->at[i]);
	hd_free(names->at);
}

enum hd_err hd_fs_space(struct hd_fs *fs, const char *path, struct hd_fs_space *space)
{
	char at[HD_PATH_CAP];
	struct hd_fs_space found = { 0 };

	if (strlen(path) >= sizeof at || !strncmp(path, "...", 3))
		return HD_E_NOTFOUND;
	memcpy(at, path, strlen(path) + 1);
	for (;;) {
		int r = fs->ops->space(fs, *at ? at : ".", &found);
		if (!r) {
			*space = found;
			return HD_OK;
		}
		char *slash = strrchr(at, '/');
		if (r != -ENOENT || !*at)
			return HD_E_NOTFOUND;
		if (slash == at && at[1])
			at[1] = '\0';
		else
			*(slash ? slash : at) = '\0';
	}
}

enum hd_err hd_fs_has_space(struct hd_fs *fs, const char *path, uint64_t need_bytes, const char *what,
	struct hd_diag *diag)
{
	struct hd_fs_space space;

	if (hd_fs_space(fs, path, &space) || space.free_bytes >= need_bytes)
		return HD_OK;
	return hd_fail(diag, HD_E_REFUSED,
		"the disk of %s is full: %s needs %.1f MiB, and the file system at %s has %.1f MiB left; "
		"free at least %.1f MiB there",
		path, what, (double)need_bytes / 0x1p20, *space.at ? space.at : path,
		(double)space.free_bytes / 0x1p20,
		(double)(need_bytes - space.free_bytes + (1u << 20) - 1) / 0x1p20);
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

enum hd_err hd_fs_list(struct hd_fs *fs, const char *path, struct hd_arena *arena, char ***names, size_t *n,
	struct hd_diag *diag)
{
	struct name_list found = { 0 };
	char **sorted = NULL;

	enum hd_err err = answer(fs->ops->list(fs, path, gather, &found), "list", path, diag);
	if (err)
		goto out;
	if (found.n)
		qsort(found.at, found.n, sizeof *found.at, by_bytes);
	sorted = hd_arena_take(arena, found.n + 1, sizeof *sorted);
	for (size_t i = 0; sorted && i < found.n; i++)
		if (!(sorted[i] = hd_arena_text(arena, found.at[i], strlen(found.at[i]))))
			sorted = NULL;
	if (!sorted) {
		err = hd_fail(diag, HD_E_NOMEM, "out of memory for the %zu names in %s", found.n, path);
		goto out;
	}
	*names = sorted;
	*n = found.n;
out:
	names_finish(&found);
	return err;
}

static enum hd_err remove_below(struct hd_fs *fs, const char *path, int depth, struct hd_diag *diag)
{
	struct name_list found = { 0 };
	struct hd_stat stat;
	char below[HD_PATH_CAP];

	enum hd_err err = answer(fs->ops->stat(fs, path, false, &stat), "remove", path, diag);
	if (err)
		return err;
	if (stat.kind != HD_FILE_FOLDER)
		return hd_fs_unlink(fs, path, diag);
	if (depth == HD_TREE_DEPTH)
		return hd_fail(diag, HD_E_REFUSED,
			"cannot remove %s: folders are nested deeper than %d; remove it by hand", path,
			HD_TREE_DEPTH);
	err = answer(fs->ops->list(fs, path, gather, &found), "list", path, diag);
	for (size_t i = 0; !err && i < found.n; i++) {
		int len = snprintf(below, sizeof below, "%s/%s", path, found.at[i]);
		err = len >= (int)sizeof below ? hd_fail_errno(diag, ENAMETOOLONG, "remove", path) :
			remove_below(fs, below, depth + 1, diag);
	}
	names_finish(&found);
	return err ? err : hd_fs_rmdir(fs, path, diag);
}

enum hd_err hd_fs_remove_tree(struct hd_fs *fs, const char *path, struct hd_diag *diag)
{
	return remove_below(fs, path, 0, diag);
}

/* ---- whole files ---- */

static enum hd_err read_whole(struct hd_file *file, int64_t size_bytes, struct hd_arena *arena,
	size_t limit_bytes, uint8_t **bytes,
			      size_t *len, struct hd_diag *diag)
{
	size_t got;

	if (size_bytes < 0 || (uint64_t)size_bytes > limit_bytes)
		return hd_fail(diag, HD_E_INPUT, "%s has %lld bytes, more than the %zu allowed", file->name,
			(long long)size_bytes, limit_bytes);
	size_t space = (size_t)size_bytes;
	uint8_t *at = space == SIZE_MAX ? NULL : hd_arena_take(arena, space + 1, 1);
	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for the %zu bytes of %s", space, file->name);
	/* One byte more than its size: a file that grows meanwhile is not taken for whole. */
	enum hd_err err = hd_file_pread(file, at, space + 1, 0, &got, diag);
	if (err)
		return err;
	if (got > space)
		return hd_fail(diag, HD_E_INPUT,
			"%s grew beyond %zu bytes while it was read; let its writer finish", file->name,
			space);
	*bytes = at;
	*len = got;
	return HD_OK;
}

enum hd_err hd_file_read_all(struct hd_fs *fs, const char *path, struct hd_arena *arena, size_t limit_bytes,
			     uint8_t **bytes, size_t *len, struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	struct hd_stat stat;

	enum hd_err err = hd_fs_stat(fs, path, &stat, diag);
	if (err)
		return err;
	if (stat.kind != HD_FILE_REGULAR)
		return hd_fail(diag, HD_E_INPUT, "%s is not a regular file", path);
	err = hd_file_open(fs, path, HD_OPEN_READ, &file, diag);
	if (err)
		return err;
	err = read_whole(&file, stat.size_bytes, arena, limit_bytes, bytes, len, diag);
	enum hd_err closed = hd_file_close(&file, diag);
	return err ? err : closed;
}

/* The folder that holds `path`. */
static void folder_of(const char *path, char folder[HD_PATH_CAP])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	snprintf(folder, HD_PATH_CAP, "%.*s", (int)len, path);
	if (!len)
		snprintf(folder, HD_PATH_CAP, "%s", slash ? "/" : ".");
}

static enum hd_err write_synced(struct hd_fs *fs, const char *path, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	struct hd_file file = { 0 };

	enum hd_err err = hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		diag);
	if (err)
		return err;
	err = hd_file_write(&file, bytes, len, diag);
	if (!err)
		err = hd_file_sync(&file, diag);
	enum hd_err closed = hd_file_close(&file, diag);
	return err ? err : closed;
}

enum hd_err hd_file_write_atomic(struct hd_fs *fs, const char *path, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	char temporary[HD_PATH_CAP], folder[HD_PATH_CAP];

	if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
		return hd_fail_errno(diag, ENAMETOOLONG, "create", path);
	enum hd_err err = write_synced(fs, temporary, bytes, len, diag);
	if (!err)
		err = hd_fs_rename(fs, temporary, path, diag);
	if (err) {
		/* The first failure is what the user hears of; what remains is overwritten next time. */
		(void)fs->ops->remove(fs, temporary, false);
		return err;
	}
	folder_of(path, folder);
	return hd_fs_sync_folder(fs, folder, diag);
}
