/* scheduler.h -- what the verbs that speak to a scheduler share: asking it, and showing what it answers.
 *
 * A scheduler is `heddle serve --dir DIR`; --dir names it, else it is that of the current folder. It is
 * asked by daemon/http_client.h. */
#ifndef HD_CMD_JOBS_SCHEDULER_H
#define HD_CMD_JOBS_SCHEDULER_H

#include "base/json.h"
#include "base/json_writer.h"
#include "daemon/answers.h"
#include "cmd/verbs.h"

const char *hd_scheduler_dir(const struct hd_cmd *cmd);
/* The answer lies in the arena of the call. `target` as in daemon/rest_routes.c; `body` JSON or NULL. */
HD_MUST_USE enum hd_err hd_scheduler_ask(struct hd_cmd *cmd, const char *method, const char *target,
	const char *body, const struct hd_json **answer);
/* "/v1/jobs/NAME" and what follows, of a job's id or name as a user wrote it. */
HD_MUST_USE enum hd_err hd_scheduler_target(struct hd_cmd *cmd, const char *job, const char *rest,
	char target[200]);

/* Objects of an answer (daemon/answers.h) as a table: the line of heads, lines of values. */
void hd_scheduler_head(struct hd_cmd *cmd, const struct hd_fields *fields);
void hd_scheduler_line(struct hd_cmd *cmd, const struct hd_fields *fields, const void *from);

/* An answer as it came, on a line. */
HD_MUST_USE enum hd_err hd_scheduler_print(struct hd_cmd *cmd, const struct hd_json *json);

/* `heddle status` and `heddle top` without a RUN. */
HD_MUST_USE enum hd_err hd_scheduler_status(struct hd_cmd *cmd, bool again, bool clear);

#endif
