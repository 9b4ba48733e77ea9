/* schedule.h -- the schedules that a command line asks for; used by `plan show|check|draw` and `simulate`.
 *
 * One by its name (--schedule NAME -p P -m M ...), or all of a file; with --redundancy MODE each of them gets
 * its shadow stages, placed by --costs and --comm.
 *
 * Ownership: everything lies in the arena of the call. */
#ifndef HD_CMD_PLAN_SCHEDULE_H
#define HD_CMD_PLAN_SCHEDULE_H

#include "plan/check.h"
#include "pipeline/schedule_check.h"
#include "pipeline/sim_plan.h"
#include "cmd/verbs.h"

#define HD_SCHEDULE_OPTS HD_OPT_SCHEDULE, HD_OPT_RANKS, HD_OPT_VNS, HD_OPT_CHUNKS, HD_OPT_GROUP, \
	HD_OPT_REPLICAS, HD_OPT_CAP, HD_OPT_COSTS, HD_OPT_COMM, HD_OPT_REDUNDANCY, HD_OPT_SHADOWS

enum { HD_SCHEDULE_FILE_BYTES = 256 << 20 };

/* *plan: where the file is one; else NULL. */
HD_MUST_USE enum hd_err hd_cmd_schedules(struct hd_cmd *cmd, struct hd_schedules *out,
	const struct hd_plan **plan);
/* For verbs that run them: what `plan check` refuses of a file, lists under the same --transport or a plan,
 * is reported as it does, HD_E_BADPLAN; so is --periods where a schedule has none. */
HD_MUST_USE enum hd_err hd_cmd_schedules_sound(struct hd_cmd *cmd, struct hd_schedules *out);
/* What --redundancy and --shadows ask for, placed by these costs. */
HD_MUST_USE enum hd_err hd_cmd_shadows(struct hd_cmd *cmd, struct hd_schedule *s,
	const struct hd_sim_setting *set);
/* --costs, --comm, --periods */
HD_MUST_USE enum hd_err hd_cmd_sim_ask(struct hd_cmd *cmd, struct hd_sim_ask *out);
/* A plan's text, not a schedule's: the first word of a plan file is a directive that no schedule has. */
bool hd_cmd_is_plan(const char *text);
/* A job's: YAML that begins with a key, or JSON. Lists begin with a number or a directive. */
bool hd_cmd_is_job(const char *text);
/* What --transport and --credits say, of what is not said the checker's own. */
struct hd_schedule_rules hd_cmd_rules(const struct hd_cmd *cmd);
/* Findings, as `plan check` prints them. */
void hd_cmd_print_refused(struct hd_cmd *cmd, const char *what, const struct hd_report *report);
/* --schedule help was asked for and has been printed. */
bool hd_cmd_schedule_help(struct hd_cmd *cmd);

#endif
