/* file.h -- files and folders, behind a table that a test can replace.
 *
 * Data readers, checkpoints and the run directory reach the disk only through here.
 * Rows: the system's files (hd_fs_real) and files in memory that fail, tear and crash
 * on demand (sys/file_sim.h).
 *
 * 1. A read that returns fewer bytes than asked has met the end of the file; a write
 *    writes all or fails. EINTR and short transfers end here.
 * 2. Every message names the path and the system's reason. Codes: missing is
 *    HD_E_NOTFOUND, present HD_E_EXISTS, no space, permission, descriptors, read-only
 *    HD_E_REFUSED, out of memory HD_E_NOMEM, all else HD_E_IO.
 * 3. What is written survives a crash only after hd_file_sync(); a name made, renamed
 *    or removed survives only after hd_fs_sync_folder() on the folder that holds it.
 * 4. hd_file_write_atomic() leaves the old file or the new one, never a mixture.
 * 5. A name that comes from data (a manifest, an archive) is opened by
 *    hd_file_open_beneath() and nothing else.
 * 6. Files are opened close-on-exec.
 *
 * Ownership: hd_file_open() fills the caller's struct, hd_file_close() ends it; maps
 * outlive the file they came from. A file borrows its fs.
 * Threads: the real fs any; one file handle one thread at a time, except hd_file_pread
 * and hd_file_pwrite, which any number may call at once. All may block on the disk. */
#ifndef HD_SYS_FILE_H
#define HD_SYS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum hd_open {
	HD_OPEN_READ     = 0,
	HD_OPEN_WRITE    = 1 << 0,        /* reading stays allowed */
	HD_OPEN_CREATE   = 1 << 1,        /* make it if it is missing (mode 0666 less umask) */
	HD_OPEN_NEW      = 1 << 2,        /* with CREATE: HD_E_EXISTS if it is there */
	HD_OPEN_TRUNCATE = 1 << 3,
	HD_OPEN_APPEND   = 1 << 4,        /* every write goes to the end */
	HD_OPEN_FOLDER   = 1 << 5,        /* only a folder, only for syncing and locking */
};

enum hd_file_kind { HD_FILE_REGULAR, HD_FILE_FOLDER, HD_FILE_OTHER };

struct hd_stat {
	enum hd_file_kind kind;
	int64_t size_bytes;
	int64_t changed_wall_ns;          /* last change of the content */
	uint64_t inode;                   /* another one under the same path is another file */
	uint64_t device;                  /* the file system's: inodes are numbers in one */
};

struct hd_fs_space {                       /* of a file system */
	uint64_t free_bytes;              /* for this user */
	char at[200];                     /* where it is mounted; "" if that is not known */
};

struct hd_fs;

enum { HD_PATH_CAP = 4096,                /* with the final 0 */
       HD_FILE_NAME = 200 };              /* how much of a path a handle keeps for its messages */

struct hd_file {
	struct hd_fs *fs;                 /* borrowed; NULL: not open */
	int id;
	char name[HD_FILE_NAME];          /* the path, or its end after "..." */
};

struct hd_map { const uint8_t *bytes; size_t len; };      /* read-only; len 0: bytes is NULL */

/* What a row provides about open files. All slots return a count or 0, or -errno, and may
 * be short or answer -EINTR: the functions below do the repeating. */
struct hd_file_ops {
	/* offset -1: the file's own position */
	int64_t (*read)(struct hd_fs *fs, int id, void *bytes, size_t len, int64_t offset);
	int64_t (*write)(struct hd_fs *fs, int id, const void *bytes, size_t len, int64_t offset);
	int (*sync)(struct hd_fs *fs, int id);
	int (*truncate)(struct hd_fs *fs, int id, int64_t size_bytes);
	/* never blocks; -EWOULDBLOCK: another holds it */
	int (*lock)(struct hd_fs *fs, int id, bool shared);
	/* the id is gone whatever it answers; never repeated */
	int (*close)(struct hd_fs *fs, int id);
	int (*map)(struct hd_fs *fs, int id, struct hd_map *map);
	void (*unmap)(struct hd_fs *fs, const struct hd_map *map);
};

/* ... and about names. `beneath` NULL: path as it stands; otherwise path is looked up
 * inside that folder and may not leave it. */
struct hd_fs_ops {
	const char *name;
	struct hd_file_ops file;
	/* the id */
	int (*open)(struct hd_fs *fs, const char *beneath, const char *path, unsigned how);
	int (*rename)(struct hd_fs *fs, const char *from, const char *to);
	int (*mkdir)(struct hd_fs *fs, const char *path);
	int (*remove)(struct hd_fs *fs, const char *path, bool folder);
	int (*stat)(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *stat);
	/* Calls `each` for every name but "." and ".."; a non-zero answer ends the list and is returned. */
	int (*list)(struct hd_fs *fs, const char *path, int (*each)(void *user, const char *name),
		void *user);
	/* path exists; -ENOSYS: unknown */
	int (*space)(struct hd_fs *fs, const char *path, struct hd_fs_space *space);
};

struct hd_fs { const struct hd_fs_ops *ops; };

void hd_fs_real(struct hd_fs *fs);

/* open files */
HD_MUST_USE enum hd_err hd_file_open(struct hd_fs *fs, const char *path, unsigned how, struct hd_file *file,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_open_beneath(struct hd_fs *fs, const char *folder, const char *name,
	unsigned how,
					     struct hd_file *file, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_read(struct hd_file *file, void *bytes, size_t len, size_t *got,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_pread(const struct hd_file *file, void *bytes, size_t len, int64_t offset,
	size_t *got, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_write(struct hd_file *file, const void *bytes, size_t len,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_pwrite(const struct hd_file *file, const void *bytes, size_t len,
	int64_t offset, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_sync(const struct hd_file *file, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_file_truncate(const struct hd_file *file, int64_t size_bytes,
	struct hd_diag *diag);
/* Until close; HD_E_AGAIN: another open file holds it. On shared file systems (NFS) the file must be open
 * for writing. */
HD_MUST_USE enum hd_err hd_file_lock(const struct hd_file *file, struct hd_diag *diag);
/* The same, but any number may hold it so: for looking whether the one above is held. Open for
 * reading is enough. */
HD_MUST_USE enum hd_err hd_file_lock_shared(const struct hd_file *file, struct hd_diag *diag);
/* takes zeroed and closed ones */
HD_MUST_USE enum hd_err hd_file_close(struct hd_file *file, struct hd_diag *diag);
/* the whole file */
HD_MUST_USE enum hd_err hd_file_map(const struct hd_file *file, struct hd_map *map, struct hd_diag *diag);
/* takes zeroed ones */
void hd_file_unmap(struct hd_fs *fs, struct hd_map *map);

/* names */
HD_MUST_USE enum hd_err hd_fs_rename(struct hd_fs *fs, const char *from, const char *to,
	struct hd_diag *diag);
/* mode 0700: what a run writes is its owner's */
HD_MUST_USE enum hd_err hd_fs_mkdir(struct hd_fs *fs, const char *path, struct hd_diag *diag);
/* with parents; fine if it is there */
HD_MUST_USE enum hd_err hd_fs_mkdirs(struct hd_fs *fs, const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_fs_unlink(struct hd_fs *fs, const char *path, struct hd_diag *diag);
/* an empty one */
HD_MUST_USE enum hd_err hd_fs_rmdir(struct hd_fs *fs, const char *path, struct hd_diag *diag);
/* links are removed, not followed; at most HD_TREE_DEPTH deep */
HD_MUST_USE enum hd_err hd_fs_remove_tree(struct hd_fs *fs, const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_fs_stat(struct hd_fs *fs, const char *path, struct hd_stat *stat,
	struct hd_diag *diag);
/* Does that folder of the system lie on another machine, or with a program (FUSE)? There a file that is
 * mapped may stall the process that stores to it, or lose what it stored. */
bool hd_fs_is_far(const char *path);
HD_MUST_USE enum hd_err hd_fs_sync_folder(struct hd_fs *fs, const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_fs_list(struct hd_fs *fs, const char *path, struct hd_arena *arena, char ***names,
	size_t *n,
				   /* sorted by bytes */
				   struct hd_diag *diag);
/* Of the file system that `path` lies on, or will: its nearest folder that exists counts. HD_E_NOTFOUND:
 * not known. */
HD_MUST_USE enum hd_err hd_fs_space(struct hd_fs *fs, const char *path, struct hd_fs_space *space);
/* The space for `need_bytes` more. HD_E_REFUSED names the file system, and how much is missing; where
 * it is unknown. */
HD_MUST_USE enum hd_err hd_fs_has_space(struct hd_fs *fs, const char *path, uint64_t need_bytes,
	const char *what, struct hd_diag *diag);
enum { HD_TREE_DEPTH = 8,                 /* our trees are three deep */
       HD_LIST_CAP = 1 << 20 };           /* names in a folder: beyond it something is wrong */

/* whole files; `limit` bounds what is read: a longer file is HD_E_INPUT. One 0 byte is added after `len`. */
HD_MUST_USE enum hd_err hd_file_read_all(struct hd_fs *fs, const char *path, struct hd_arena *arena,
	size_t limit_bytes,
					 uint8_t **bytes, size_t *len, struct hd_diag *diag);
/* Temporary name (path + ".tmp"), sync, rename, sync of the folder. One writer per path. */
HD_MUST_USE enum hd_err hd_file_write_atomic(struct hd_fs *fs, const char *path, const void *bytes,
	size_t len, struct hd_diag *diag);

/* The code for an errno and the message "cannot <verb> <path>: <reason>; <what to do>": for other files of
 * this room. */
enum hd_err hd_fail_errno(struct hd_diag *diag, int error, const char *verb, const char *path);

#endif
