/* scheduler.h -- what the verbs that speak to a scheduler share: asking it, reading what it says of jobs,
 * telling it.
 *
 * A scheduler is `heddle serve --dir DIR`; --dir names it, else it is that of the current folder. It is
 * asked by daemon/http_client.h. */
#ifndef HD_CMD_SCHEDULER_H
#define HD_CMD_SCHEDULER_H

#include "base/json.h"
#include "base/json_writer.h"
#include "cmd/verbs.h"

const char *hd_scheduler_dir(const struct hd_cmd *cmd);
/* The answer lies in the arena of the call. `target` as in daemon/rest_routes.c; `body` JSON or NULL. */
HD_MUST_USE enum hd_err hd_scheduler_ask(struct hd_cmd *cmd, const char *method, const char *target,
	const char *body, const struct hd_json **answer);
/* "/v1/jobs/NAME" and what follows, of a job's id or name as a user wrote it. */
HD_MUST_USE enum hd_err hd_scheduler_target(struct hd_cmd *cmd, const char *job, const char *rest,
	char target[200]);

/* A job as lists show it; texts lie in the answer. */
struct hd_scheduled {
	int64_t id, step, steps, scale, devices, exit;
	const char *name, *user, *state, *type, *why;
	double priority, rate, submitted_s, started_s, ended_s, deadline_s;
};
HD_MUST_USE enum hd_err hd_scheduled_read(const struct hd_json *item, struct hd_scheduled *job,
	struct hd_diag *diag);
void hd_scheduled_head(FILE *to);
void hd_scheduled_print(const struct hd_scheduled *job, FILE *to);

/* An answer as it came, on a line. */
HD_MUST_USE enum hd_err hd_scheduler_print(struct hd_cmd *cmd, const struct hd_json *json);

/* `heddle status` and `heddle top` without a RUN. */
HD_MUST_USE enum hd_err hd_scheduler_status(struct hd_cmd *cmd, bool again, bool clear);

#endif
