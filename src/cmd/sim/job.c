#include "cmd/sim/full.h"

#include "cmd/plan/planning.h"
#include "cmd/plan/schedule.h"

/* What a job, its profile and its plan say themselves. */
static const enum hd_opt of_schedules[] = { HD_OPT_RANKS, HD_OPT_VNS, HD_OPT_CHUNKS, HD_OPT_GROUP,
	HD_OPT_REPLICAS, HD_OPT_CAP, HD_OPT_COSTS, HD_OPT_COMM,
	HD_OPT_PERIODS, HD_OPT_CUTS, HD_OPT_REPEAT };

enum hd_err hd_cmd_simulate_job(struct hd_cmd *cmd)
{
	struct hd_planning *p = NULL;

	for (size_t i = 0; i < sizeof of_schedules / sizeof *of_schedules; i++)
		if (cmd->args.has[of_schedules[i]])
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s belongs to bare schedules; %s is a job, which its plan follows",
				hd_opts[of_schedules[i]].name, cmd->args.pos[0]);
	enum hd_err err = hd_cmd_planning(cmd, &p);
	if (err)
		return err;
	struct hd_sim_setting set = { .costs = &p->plan.costs, .per_ps = 1, .cluster = &p->in.cluster,
		.device = p->plan.device,
		.transport = HD_TRANSPORT_BUFFERED };
	err = hd_cmd_sim_ways(cmd, &set);
	err = err ? err : hd_cmd_shadows(cmd, &p->plan.schedule, &set);
	return err ? err : hd_cmd_simulate_on(cmd, &p->plan.schedule, &set, true, p->plan.planner);
}
