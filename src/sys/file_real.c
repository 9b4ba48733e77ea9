#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/account.h"
#include "sys/file_lost.h"

/* The kernel moves at most this much in one call; longer requests are short by design. */
enum { TRANSFER_MAX = 0x7ffff000 };

static int flags_of(unsigned how)
{
	int flags = O_CLOEXEC | O_NOCTTY | (how & HD_OPEN_WRITE ? O_RDWR : O_RDONLY);

	return flags | (how & HD_OPEN_CREATE ? O_CREAT : 0) | (how & HD_OPEN_NEW ? O_EXCL : 0) |
		(how & HD_OPEN_TRUNCATE ? O_TRUNC : 0) |
	       (how & HD_OPEN_APPEND ? O_APPEND : 0) | (how & HD_OPEN_FOLDER ? O_DIRECTORY : 0);
}

/* Where openat2 is missing or forbidden (old kernels, some sandboxes): part by part, following
 * no link at all, which is stricter. The name holds no "..": file.c has looked. */
static int open_by_parts(int folder, const char *name, int flags)
{
	char part[NAME_MAX + 1];
	int at = folder, error = 0;

	for (;;) {
		size_t len = strcspn(name, "/");
		if (len > NAME_MAX)
			error = ENAMETOOLONG;
		else
			snprintf(part, sizeof part, "%.*s", (int)len, name);
		bool last = !name[len];
		int next = error ? -1 : openat(at, part, last ? flags | O_NOFOLLOW :
			O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (next < 0 && !error)
			error = errno;
		if (at != folder)
			close(at);
		if (next < 0)
			return -error;
		if (last)
			return next;
		at = next;
		name += len + 1;
	}
}

static int open_beneath(const char *folder, const char *name, int flags)
{
	struct open_how how = { .flags = (unsigned)flags, .mode = flags & O_CREAT ? 0666u : 0u,
				.resolve = (uint64_t)(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS) };

	int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	int id = (int)syscall(SYS_openat2, at, name, &how, sizeof how);
	int r = id < 0 ? -errno : id;
	if (r == -ENOSYS || r == -EPERM)
		r = open_by_parts(at, name, flags);
	close(at);
	return r;
}

/* The highest folder of the way to it that is on the same device. */
static void find_mount(const char *path, char *at, size_t cap)
{
	char full[HD_PATH_CAP];
	struct stat st;
	dev_t device;

	*at = '\0';
	if (!realpath(path, full) || stat(full, &st))
		return;
	device = st.st_dev;
	for (;;) {
		char *slash = strrchr(full, '/'), kept = slash[1];
		if (!kept)
			break;            /* the root itself */
		slash[slash == full] = '\0';
		if (stat(full, &st) || st.st_dev != device) {
			slash[slash == full] = slash == full ? kept : '/';
			break;
		}
	}
	if (strlen(full) < cap)
		memcpy(at, full, strlen(full) + 1);
}

static int real_space(struct hd_fs *fs, const char *path, struct hd_fs_space *space)
{
	struct statvfs st;

	(void)fs;
	if (statvfs(path, &st))
		return -errno;
	space->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	find_mount(path, space->at, sizeof space->at);
	return 0;
}

/* By the numbers of statfs(2). */
bool hd_fs_is_far(const char *path)
{
	static const uint32_t far[] = {
		0x6969 /* NFS */, 0x517b /* SMB */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB 2 */,
		0x65735546 /* FUSE */, 0x01021997 /* 9P */, 0x00c36400 /* Ceph */, 0x5346414f /* AFS */,
		0x6b414653 /* kAFS */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */, 0x73757245 /* Coda */,
		0x7461636f /* OCFS2 */, 0x01161970 /* GFS2 */, 0x19830326 /* BeeGFS */,
		0xaad7aaea /* PanFS */,
	};
	struct statfs st;

	if (statfs(path, &st))
		return false;
	for (size_t i = 0; i < sizeof far / sizeof *far; i++)
		if ((uint32_t)st.f_type == far[i])
			return true;
	return false;
}

static int real_open(struct hd_fs *fs, const char *beneath, const char *path, unsigned how)
{
	(void)fs;
	if (beneath)
		return open_beneath(beneath, path, flags_of(how));
	/* what lies there is another account's: it may have put a pipe under the name */
	int id = open(path, flags_of(how) | (hd_account_is_lent() ? O_NONBLOCK : 0), 0666);
	return id < 0 ? -errno : id;
}

static int64_t real_read(struct hd_fs *fs, int id, void *bytes, size_t len, int64_t offset)
{
	(void)fs;
	if (len > TRANSFER_MAX)
		len = TRANSFER_MAX;
	ssize_t n = offset < 0 ? read(id, bytes, len) : pread(id, bytes, len, offset);
	return n < 0 ? -errno : n;
}

static int64_t real_write(struct hd_fs *fs, int id, const void *bytes, size_t len, int64_t offset)
{
	(void)fs;
	if (len > TRANSFER_MAX)
		len = TRANSFER_MAX;
	ssize_t n = offset < 0 ? write(id, bytes, len) : pwrite(id, bytes, len, offset);
	return n < 0 ? -errno : n;
}

static int real_sync(struct hd_fs *fs, int id) { (void)fs; return fsync(id) ? -errno : 0; }
static int real_truncate(struct hd_fs *fs, int id, int64_t size_bytes) { (void)fs;
	return ftruncate(id, size_bytes) ? -errno : 0; }

static int real_lock(struct hd_fs *fs, int id, bool shared)
{
	(void)fs;
	return flock(id, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) ? -errno : 0;
}

static int real_close(struct hd_fs *fs, int id) { (void)fs; return close(id) ? -errno : 0; }

static int real_map(struct hd_fs *fs, int id, struct hd_map *map)
{
	struct stat st;

	(void)fs;
	if (fstat(id, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (!st.st_size) {
		*map = (struct hd_map){ 0 };
		return 0;
	}
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, id, 0);
	if (at == MAP_FAILED)
		return -errno;
	*map = (struct hd_map){ at, (size_t)st.st_size };
	hd_lost_watch(id, at, map->len);
	return 0;
}

static void real_unmap(struct hd_fs *fs, const struct hd_map *map)
{
	(void)fs;
	hd_lost_forget(map->bytes);
	munmap((void *)(uintptr_t)map->bytes, map->len);
}

static int real_rename(struct hd_fs *fs, const char *from, const char *to) { (void)fs;
	return rename(from, to) ? -errno : 0; }
static int real_mkdir(struct hd_fs *fs, const char *path) { (void)fs; return mkdir(path, 0700) ? -errno : 0; }

static int real_remove(struct hd_fs *fs, const char *path, bool folder)
{
	(void)fs;
	return unlinkat(AT_FDCWD, path, folder ? AT_REMOVEDIR : 0) ? -errno : 0;
}

static int real_stat(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *out)
{
	struct stat st;

	(void)fs;
	if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW))
		return -errno;
	out->kind = S_ISREG(st.st_mode) ? HD_FILE_REGULAR : S_ISDIR(st.st_mode) ? HD_FILE_FOLDER :
		HD_FILE_OTHER;
	out->size_bytes = st.st_size;
	out->changed_wall_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	out->inode = st.st_ino;
	out->device = st.st_dev;
	return 0;
}

static int real_list(struct hd_fs *fs, const char *path, int (*each)(void *user, const char *name),
	void *user)
{
	int r = 0;

	(void)fs;
	DIR *folder = opendir(path);
	if (!folder)
		return -errno;
	while (!r) {
		errno = 0;
		struct dirent *entry = readdir(folder);
		if (!entry) {
			r = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			r = each(user, entry->d_name);
	}
	closedir(folder);
	return r;
}

static const struct hd_fs_ops real_ops = {
	.name = "real",
	.file = { .read = real_read, .write = real_write, .sync = real_sync, .truncate = real_truncate,
	.lock = real_lock,
		  .close = real_close, .map = real_map, .unmap = real_unmap },
	.open = real_open, .rename = real_rename, .mkdir = real_mkdir, .remove = real_remove,
	.stat = real_stat, .list = real_list,
	.space = real_space,
};

void hd_fs_real(struct hd_fs *fs) { fs->ops = &real_ops; }
