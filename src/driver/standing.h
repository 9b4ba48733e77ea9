/* standing.h -- what a run's folder tells of its processes when nobody answers for it.
 *
 * A coordinator may be gone for a moment: verbs that speak to it ask here whether another one can be
 * expected. Each worker of the run's machine listens on a socket of the folder; that of a worker which died
 * stays, until a coordinator sweeps.
 *
 * 1. A worker counts while its socket takes a connection: also one that is stopped or busy.
 * 2. What is swept are sockets that refuse one, of this machine, whose process is gone: their names say both.
 *    The folder may be shared by several machines, and what another one owns refuses here while it lives
 *    there.
 *
 * Threads: any. Does not wait for anybody. */
#ifndef HD_DRIVER_STANDING_H
#define HD_DRIVER_STANDING_H

#include "sys/socket.h"
#include "run/rundir.h"

enum { HD_POST_NAME = 32 };

/* The socket of worker process `pid` of this machine in its run's folder, as hd_control_path() takes it:
 * "w1234-5e6f.sock", where the digits behind the '-' are drawn from the machine's name. */
void hd_post_name(uint32_t pid, char name[HD_POST_NAME]);
/* How many workers of this machine listen there. `sweep`: sockets of those that are gone are removed. */
HD_MUST_USE enum hd_err hd_posts_look(struct hd_fs *fs, const char *dir, bool sweep, uint32_t *living,
	struct hd_diag *diag);

struct hd_standing { struct hd_held held; uint32_t workers; };
/* While workers live the lock is left alone: one of them is about to take it. So nobody may be said to
 * hold it where there are some. */
HD_MUST_USE enum hd_err hd_standing_look(struct hd_fs *fs, const char *dir, struct hd_standing *standing,
	struct hd_diag *diag);

#endif
