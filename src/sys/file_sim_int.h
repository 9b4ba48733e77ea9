/* file_sim_int.h -- the inside of the files in memory: file_sim.c makes the calls, file_crash.c the crash.
 *
 * Private to the room. The invariants are those of file_sim.h. */
#ifndef HD_SYS_FILE_SIM_INT_H
#define HD_SYS_FILE_SIM_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/file_sim.h"

enum { HD_FS_NAME = 128, HD_FS_ROOT = 0, HD_FS_NOWHERE = -1 };

/* A file's content as written and as the disk has it; folders have none. */
struct hd_fs_node {
	bool folder;
	uint8_t *bytes, *durable;         /* owned */
	size_t len, cap, durable_len;
	int64_t changed_wall_ns;
};

struct hd_fs_entry { int folder, node; char name[HD_FS_NAME]; };

/* from.folder HD_FS_NOWHERE: nothing is taken away; to.node HD_FS_NOWHERE: nothing is put. */
struct hd_fs_change { struct hd_fs_entry from, to; };

/* shared: so it is locked */
struct hd_fs_handle { int node; bool open, append, writes, locked, shared; size_t position; };

/* Room for one more element in *(T **)array; false: out of memory. */
bool hd_fs_sim_grow(void *array, size_t n, size_t *cap, size_t size);
/* Room for the entry was made before: a crash cannot run out of memory. */
void hd_fs_tree_apply(struct hd_fs_tree *tree, const struct hd_fs_change *change);
int hd_fs_change_folder(const struct hd_fs_change *change);         /* whose sync makes it durable */
int hd_fs_node_resize(struct hd_fs_node *node, size_t len);         /* new bytes are 0; 0 or -ENOMEM */
int hd_fs_node_sync(struct hd_fs_node *node);                       /* 0 or -ENOMEM */

#endif
