/* live.h -- what the verbs that speak to a run share: finding its coordinator and asking it.
 *
 * RUN is a run directory. Its coordinator answers on the socket in it (driver/control.h). If there is none,
 * but a process that begins to coordinate, or workers that will start one, the verb waits for it, and says so
 * after 5 s. */
#ifndef HD_CMD_RUN_LIVE_H
#define HD_CMD_RUN_LIVE_H

#include "driver/control.h"
#include "driver/live.h"
#include "cmd/verbs.h"

/* `ask`: a JSON object with the member "do". The answer lies in the arena of the call.
 * HD_E_NOTFOUND: no process coordinates this run, and none will. HD_E_PEERLOST: no coordinator came; or it
 * ended while a question was with it that must not be asked twice ("by"). */
HD_MUST_USE enum hd_err hd_live_ask(struct hd_cmd *cmd, const char *run, const char *ask,
	const struct hd_json **answer);

/* Where a run stands (driver/live.h), whose coordinator need not be there: what its folder says, where no
 * one answers. Texts lie in the arena of the call. */
HD_MUST_USE enum hd_err hd_live_look(struct hd_cmd *cmd, const char *run, struct hd_live *live);
/* The process of a run that was started without workers and goes on; 0: there is none, or not on this
 * machine. */
int hd_live_alone(struct hd_cmd *cmd, const char *run);
/* For a verb that asks again and again: a coordinator that ended between the question and its answer is no
 * error yet; the next question finds another one, or none. Two in a row are. */
struct hd_live_misses { uint32_t in_a_row; };
bool hd_live_missed(struct hd_live_misses *misses, enum hd_err err);
/* As `status` and `top` print it. */
void hd_live_print(const struct hd_live *live, FILE *to);

#endif
