/* file_sim.h -- files in memory that crash, tear, fail and remember: the twin of hd_fs_real.
 *
 * Crash-consistency tests write a checkpoint into it, end the world after every call,
 * and open what is left.
 *
 * 1. Each file has what was written and what is durable. hd_fs_sim_crash() keeps what is
 *    durable, and for every 512-byte sector written since asks `keep`: each may survive
 *    or not, in any combination (a torn write). A file size not synced counts as one
 *    more sector.
 * 2. Names (create, rename, remove, mkdir) are durable after a sync of their folder.
 *    Before, `keep` is asked once per name operation, in order; the first that is lost
 *    takes the later ones of the same folder with it (journals keep order). A rename
 *    belongs to the folder of its target, and waits for the changes of its source.
 * 3. Calls are numbered from 1 in the order they are made. The n-th may be armed to fail
 *    with an errno, from then on or once; a failed call has no effect, except that a
 *    write armed with ENOSPC writes half first, as disks do.
 * 4. No links, no permissions, no "..". "/a" and "a" are the same: everything hangs on one
 *    root. What a mapping shows does not change with the file.
 *
 * Ownership: hd_fs_sim_init/finish; open handles die with a crash.
 * Threads: one at a time. */
#ifndef HD_SYS_FILE_SIM_H
#define HD_SYS_FILE_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/file.h"

enum { HD_SECTOR_BYTES = 512 };

/* The calls that are counted, failed and logged. */
#define HD_FS_CALLS(X) \
	X(OPEN, "open") X(READ, "read") X(WRITE, "write") X(SYNC, "sync") X(TRUNCATE, "truncate") \
	X(LOCK, "lock") \
	X(CLOSE, "close") X(MAP, "map") X(RENAME, "rename") X(MKDIR, "mkdir") X(REMOVE, "remove") X(STAT, "stat") X(LIST, "list")
enum hd_fs_call {
#define X(id, text) HD_FS_##id,
	HD_FS_CALLS(X)
#undef X
	HD_FS_CALL_COUNT
};

struct hd_fs_record {
	enum hd_fs_call call;
	char path[128];                   /* cut at the front if need be; a rename's source */
	int64_t offset, len;              /* of a read or write, else 0 */
	int64_t result;                   /* 0, a count, or -errno */
};

/* Which name in which folder leads to which node; nodes are numbered, 0 is the root. */
struct hd_fs_entry;
struct hd_fs_tree { struct hd_fs_entry *at; size_t n, cap; };

struct hd_fs_sim {
	struct hd_fs fs;                  /* hand out &sim->fs */
	struct hd_fs_node *nodes;         /* owned, as all below; they live until finish */
	size_t n_nodes, nodes_cap;
	int64_t n_touched;                /* contents written or cut */
	struct hd_fs_tree now, durable;
	struct hd_fs_change *changes;     /* name operations not durable yet, oldest first */
	size_t n_changes, changes_cap;
	struct hd_fs_handle *handles;     /* by id */
	size_t n_handles, handles_cap;
	struct hd_fs_record *log;
	size_t n_log, log_cap;
	uint64_t calls, transfers;
	uint64_t fail_at;                 /* 0: none */
	int fail_errno;
	bool fail_on;                     /* and all calls after it */
	uint64_t free_bytes;              /* what hd_fs_space() answers, of "/sim"; 0: not known */
	size_t short_bytes;               /* 0: none; else no transfer is longer than this */
	uint32_t interrupt_every;         /* 0: none; else (from 2) every k-th transfer answers EINTR */
};

/* an empty root; shorts and interrupts are set by the test */
void hd_fs_sim_init(struct hd_fs_sim *sim);
void hd_fs_sim_finish(struct hd_fs_sim *sim);
/* the call-th from now on; 0 disarms */
void hd_fs_sim_fail(struct hd_fs_sim *sim, uint64_t call, int error, bool on);
const char *hd_fs_call_text(enum hd_fs_call call);

/* How many yes/no questions a crash would ask now. */
size_t hd_fs_sim_unsynced(const struct hd_fs_sim *sim);
/* Handles are gone, calls keep counting, arming is cleared. keep(user, i), i = 0, 1, ... in the
 * order of invariants 1 and 2 (names first); NULL keeps nothing. What survives is durable. */
void hd_fs_sim_crash(struct hd_fs_sim *sim, bool (*keep)(void *user, size_t i), void *user);

#endif
