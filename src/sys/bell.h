/* bell.h -- wakes the loop of another process (or thread) that watches it for reading.
 *
 * An event counter of the system: many rings before a look are one. Its id may be given to another
 * process (hd_sock_give).
 *
 * Ownership: make/close; an id that was taken from a socket is closed the same way. Threads: any. */
#ifndef HD_SYS_BELL_H
#define HD_SYS_BELL_H

#include "base/err.h"

struct hd_bell { int id; };               /* -1: none */

HD_MUST_USE enum hd_err hd_bell_make(struct hd_bell *bell, struct hd_diag *diag);
void hd_bell_ring(struct hd_bell *bell);          /* never blocks */
void hd_bell_hush(struct hd_bell *bell);          /* after it was seen; never blocks, takes silent ones */
void hd_bell_close(struct hd_bell *bell);         /* takes closed ones */

#endif
