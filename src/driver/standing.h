/* standing.h -- what a run's folder says about its processes when no coordinator answers.
 *
 * A coordinator may be gone for a moment only: verbs that talk to it ask here whether another one can be
 * expected. Each local worker listens on a socket in the folder. The socket of a dead worker stays until a
 * coordinator sweeps.
 *
 * 1. A worker counts as alive while its socket accepts a connection, also when it is stopped or busy.
 * 2. Swept are sockets of this machine that refuse a connection and whose process is gone; the name has both.
 *    A folder may be shared by several machines: a socket of another one always refuses here.
 *
 * Threads: any. Never blocks. */
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
/* With live workers the lock is not looked at: one of them is about to take it. `held` is then
 * HD_HOLD_NONE. */
HD_MUST_USE enum hd_err hd_standing_look(struct hd_fs *fs, const char *dir, struct hd_standing *standing,
	struct hd_diag *diag);

#endif
