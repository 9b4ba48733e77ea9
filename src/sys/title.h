/* title.h -- the name of a process, as ps and top show it.
 *
 * cmd names what stays: "heddle: worker 3 of RUN". The name is put before the original arguments,
 * so `pgrep -f` and /proc/PID/cmdline still find all of them. The short name, what top and `ps -e` show,
 * becomes `brief`.
 *
 * 1. The first set() moves the arguments into memory of their own, beside space for the name. It comes before
 *    the process has a second thread, else the line stays as it is, for good. Arguments and environment
 *    themselves are not written to.
 * 2. A system that moves no arguments (Linux without CONFIG_CHECKPOINT_RESTORE) shows them alone; the short
 *    name is set there too.
 * 3. A later name has HD_TITLE_GROWS bytes more than the first; what is longer is cut. Blanks stand between
 *    name and arguments.
 * 4. Of a job of Slurm the short name has '-' in the place of blanks: one that finds processes by
 *    /proc/PID/stat
 *    (proctrack/linuxproc, 22.05) passes over a name with a blank, so that neither its SIGTERM nor its
 *    SIGKILL
 *    reached a worker.
 *
 * Ownership: the memory stays until the process ends; a fork has it too. Threads: one at a time, any. */
#ifndef HD_SYS_TITLE_H
#define HD_SYS_TITLE_H

#include <stdbool.h>
#include <stddef.h>

enum { HD_TITLE_BRIEF = 15, HD_TITLE_GROWS = 16 };        /* characters, which is what Linux keeps; bytes */

struct hd_title {
	bool tried;
	char *at;                         /* of the name; NULL: the line is not ours */
	size_t space;                      /* bytes, the end's NUL among them */
};

__attribute__((format(printf, 3, 4))) void hd_title_set(struct hd_title *title, const char *brief,
	const char *fmt, ...);

#endif
