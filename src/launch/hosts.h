/* hosts.h -- a file of hosts, one a line, for ssh: HOST, or HOST slots=N as MPI's files have it (pure).
 *
 * What follows # is a remark; empty lines count as nothing. HOST is what ssh takes: a name, user@name, an
 * alias
 * of its configuration. No host begins with -, so none is an option.
 *
 * Plain values; texts are borrowed from the arena. Threads: any. */
#ifndef HD_LAUNCH_HOSTS_H
#define HD_LAUNCH_HOSTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_HOSTS = 256, HD_HOST_SLOTS = 64 };

struct hd_launch_host { const char *name; uint32_t slots; };
struct hd_launch_hosts { struct hd_launch_host *at; uint32_t n, slots; };  /* slots: of all */

/* HD_E_INPUT: which line, and what is wrong with it. `file`: its name, for messages. */
HD_MUST_USE enum hd_err hd_launch_hosts_parse(struct hd_launch_hosts *hosts, const char *file, const char
	*text,
	size_t len, struct hd_arena *arena, struct hd_diag *diag);

#endif
