/* cgroup.h -- the control groups this process is in, for memory.c, cores.c and
 * usage.c.
 *
 * 1. A limit holds if any ancestor sets it: the walk visits the group itself and all above
 *    it, up to the mount, v2 and v1 alike.
 * 2. Inside a container the mount shows the container's group as the root, while
 *    /proc/self/cgroup may name a path that is not visible: missing folders are skipped.
 *
 * Private to the room. Threads: any. */
#ifndef HD_SYS_CGROUP_H
#define HD_SYS_CGROUP_H

#include <stdbool.h>

enum { HD_CGROUP_TEXT = 64 };             /* of the limits we read */

void hd_cgroup_walk(const char *controller, void (*visit)(void *user, const char *folder, bool v2),
	void *user);
/* The same below another root, out of the text of /proc/self/cgroup. */
void hd_cgroup_walk_text(const char *root, const char *membership, const char *controller,
			 void (*visit)(void *user, const char *folder, bool v2), void *user);
/* false: not there */
bool hd_cgroup_text(const char *folder, const char *file, char text[HD_CGROUP_TEXT]);

/* A small file of /proc or /sys into text[cap], 0 added; false: not readable, or longer. */
bool hd_proc_text(const char *path, char *text, unsigned cap);

#endif
