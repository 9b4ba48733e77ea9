/* reach.h -- finding the coordinator of a run by its folder and asking it, whether it is there at the moment
 * or not.
 *
 * The coordinator answers on the socket in the folder (control.h). It may be gone for a moment: a worker of
 * this machine starts the next one.
 *
 * 1. While a process of this machine is about to coordinate, or to start one that does, a question waits for
 *    it, a minute at most; `waits` says so after 5 s and each 5 s from then on.
 * 2. HD_E_NOTFOUND: no process coordinates this run, and none will; the text says where to ask, what goes on
 *    with the run, or that the folder is no run directory. HD_E_PEERLOST: no coordinator came; or it ended
 *    while a question was with it that must not be asked twice (one with the member "by").
 * 3. A request to stop (sys/signal.h) ends the wait.
 *
 * Ownership: answers and texts lie in the arena. Threads: any, one at a time on a reach. */
#ifndef HD_DRIVER_REACH_H
#define HD_DRIVER_REACH_H

#include "driver/control.h"
#include "driver/live.h"

struct hd_reach {
	struct hd_fs *fs;
	struct hd_clock *clock;
	struct hd_arena *arena;
	void (*waits)(const char *text);          /* a line; NULL: is not said */
};

/* `ask`: a JSON object with the member "do". */
HD_MUST_USE enum hd_err hd_reach_ask(const struct hd_reach *reach, const char *run, const char *ask,
	const struct hd_json **answer, struct hd_diag *diag);

/* Where a run stands, whose coordinator need not be there: what its folder says, where none answers. */
HD_MUST_USE enum hd_err hd_reach_look(const struct hd_reach *reach, const char *run, struct hd_live *live,
	struct hd_diag *diag);

/* The process of a run that was started without workers and goes on; 0: there is none, or not on this
 * machine. */
int hd_reach_alone(const struct hd_reach *reach, const char *run);

/* For a question that is asked again and again: a coordinator that ended between question and answer is no
 * error yet; the next question finds another one, or none. Two in a row are. True: this one is no error. */
struct hd_reach_misses { uint32_t in_a_row; };
bool hd_reach_missed(struct hd_reach_misses *misses, enum hd_err err);

#endif
