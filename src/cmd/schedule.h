/* schedule.h -- the schedules that a command line asks for; used by `plan show|check|draw` and `simulate`.
 *
 * One by its name (--schedule NAME -p P -m M ...), or all of a file.
 *
 * Ownership: everything lies in the arena of the call. */
#ifndef HD_CMD_SCHEDULE_H
#define HD_CMD_SCHEDULE_H

#include "plan/simulate.h"
#include "cmd/verbs.h"

enum { HD_SCHEDULE_FILE_BYTES = 256 << 20 };

HD_MUST_USE enum hd_err hd_cmd_schedules(struct hd_cmd *cmd, struct hd_schedules *out);
HD_MUST_USE enum hd_err hd_cmd_sim_ask(struct hd_cmd *cmd, struct hd_sim_ask *out);           /* --costs, --comm, --periods */
/* A plan's text, not a schedule's: the first word of a plan file is a directive that no schedule has. */
bool hd_cmd_is_plan(const char *text);
/* --schedule help was asked for and has been printed. */
bool hd_cmd_schedule_help(const struct hd_cmd *cmd);

#endif
