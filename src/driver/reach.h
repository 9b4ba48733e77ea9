/* reach.h -- finds the coordinator of a run by the run's folder and asks it a question, also while one
 * coordinator is gone and the next has not come yet.
 *
 * A question is a line of JSON on the socket in the folder (control.h). When a coordinator ends, a worker on
 * this machine starts the next one.
 *
 * 1. While a process of this machine is about to coordinate, or may start a coordinator, the question is
 *    asked again, for at most a minute. After 5 s, and then each 5 s, `waits` gets a line for the user.
 * 2. HD_E_NOTFOUND: no process coordinates this run, and none will; the text says where to ask, which command
 *    continues the run, or that the folder is no run directory. HD_E_PEERLOST: no coordinator answered in
 *    time; or one ended after it was asked to change the number of workers *by* some (JSON key "by"), which
 *    must not be asked twice.
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
	void (*waits)(const char *text);          /* a line for the user; NULL: none */
};

/* `ask`: a JSON object with the key "do". */
HD_MUST_USE enum hd_err hd_reach_ask(const struct hd_reach *reach, const char *run, const char *ask,
	const struct hd_json **answer, struct hd_diag *diag);

/* Where a run stands (live.h): by its coordinator's answer or, if there is none, by the run's folder. */
HD_MUST_USE enum hd_err hd_reach_look(const struct hd_reach *reach, const char *run, struct hd_live *live,
	struct hd_diag *diag);

/* The process id of a run that trains in one process, without workers; 0: this machine has none. */
int hd_reach_alone(const struct hd_reach *reach, const char *run);

/* For a caller that polls: a coordinator that ended between question and answer is no error the first time,
 * since the next question finds another one, or none; two in a row are. True: ignore `err`. */
struct hd_reach_misses { uint32_t in_a_row; };
bool hd_reach_missed(struct hd_reach_misses *misses, enum hd_err err);

#endif
