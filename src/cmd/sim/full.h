/* full.h -- `heddle simulate` with devices, links, transports or a profile: the full simulator
 * (pipeline/sim_plan.h). */
#ifndef HD_CMD_SIM_FULL_H
#define HD_CMD_SIM_FULL_H

#include "base/json_writer.h"
#include "pipeline/sim_plan.h"
#include "cmd/verbs.h"

/* Something is asked for, or stands in the schedule (lockstep), that only the full simulator answers. */
bool hd_cmd_sim_is_full(const struct hd_cmd *cmd, const struct hd_schedule *schedule);
/* Costs, cluster, transport and the rest from the options; `costs` are used where there is no profile. All
 * but --what-if. */
HD_MUST_USE enum hd_err hd_cmd_sim_setting(struct hd_cmd *cmd, const struct hd_schedule *schedule,
	const struct hd_sim_ask *costs,
	struct hd_sim_setting *setting);
/* The part of both outputs that says why ranks stand still: a line a rank, or members "idle" and
 * "warnings"; warnings to stderr. */
void hd_cmd_print_idle(struct hd_cmd *cmd, const struct hd_sim_plan *sim);
void hd_cmd_put_idle(struct hd_json_writer *writer, const struct hd_sim_plan *sim);
/* A time of the simulation as it is shown: in seconds by a profile (`seconds`), else in units of --costs. */
double hd_cmd_sim_time(const struct hd_sim_plan *sim, bool seconds, int64_t ticks);
/* Of the setting what --transport, --credits, --steps, --periods and --seed say. */
HD_MUST_USE enum hd_err hd_cmd_sim_ways(struct hd_cmd *cmd, struct hd_sim_setting *setting);
/* Simulates, --what-if too, prints and writes the trace. `planner`: of the schedule; NULL: none
 * did. */
HD_MUST_USE enum hd_err hd_cmd_simulate_on(struct hd_cmd *cmd, const struct hd_schedule *schedule,
	struct hd_sim_setting *setting, bool seconds,
	const char *planner);
HD_MUST_USE enum hd_err hd_cmd_simulate_full(struct hd_cmd *cmd, const struct hd_schedule *schedule,
	const struct hd_sim_ask *ask);
/* Plans the job that the verb names and simulates that. */
HD_MUST_USE enum hd_err hd_cmd_simulate_job(struct hd_cmd *cmd);

#endif
