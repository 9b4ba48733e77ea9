/* tie.h -- processes that end with another one, however that ends.
 *
 * A tie is a pipe of which its holder alone has the end that is written to. A process that is started with it
 * (hd_spawn.tie) has the other end as its input.
 *
 * 1. Cut by its holder, or because that is gone, a tie ends the processes that follow it by SIGKILL: those
 *    that are stopped, and those of other sessions, too.
 * 2. What such a process starts is tied likewise, unless it is given another tie or an input.
 *    So is a process that detaches itself from its terminal.
 * 3. A process follows its tie once it has called hd_tie_follow(): the first thing that it does.
 *
 * Ownership: open/cut; zeroed, there is none. Threads: any, one at a time. */
#ifndef HD_SYS_TIE_H
#define HD_SYS_TIE_H

#include <stdbool.h>

#include "base/err.h"

/* in the environment of a process that is tied: "1" */
#define HD_TIE_VARIABLE "HEDDLE_TIED"

struct hd_tie { int in, hold; };          /* descriptors above 2; in: for those that follow */

HD_MUST_USE enum hd_err hd_tie_open(struct hd_tie *tie, struct hd_diag *diag);
void hd_tie_cut(struct hd_tie *tie);      /* takes zeroed ones */
/* Is this process tied? */
bool hd_tied(void);
/* Follows the tie, if there is one. HD_E_INVAL: the variable is set, and the input is no tie. */
HD_MUST_USE enum hd_err hd_tie_follow(struct hd_diag *diag);

#endif
