#include "pipeline/schedule_job.h"

/* r_s: ranks on which F of the stage appears. Marks [stages] with the last rank seen. */
static void count_holders(struct hd_stage_rule *holders, const struct hd_schedule *s)
{
	for (uint32_t k = 0; k < s->nstages; k++)
		holders[k] = (struct hd_stage_rule){ 0, UINT32_MAX };
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *x = &s->list[r].at[i];
			if (x->op == HD_INS_F && x->stage < s->nstages && holders[x->stage].delay != r) {
				holders[x->stage].every++;
				holders[x->stage].delay = r;
			}
		}
}

/* PipeDream: replicas take turns, and a stage runs ahead by the ranks behind it, divided over its
 * replicas. */
static void stash(struct hd_stage_rule *rule, const struct hd_schedule *s)
{
	uint32_t before = 0;

	count_holders(rule, s);
	for (uint32_t k = 0; k < s->nstages; k++) {
		uint32_t n = rule[k].every ? rule[k].every : 1;
		rule[k] = (struct hd_stage_rule){ n, s->nranks > before ? (s->nranks - 1 - before) / n : 0 };
		before += n;
	}
}

enum hd_err hd_stage_rules(struct hd_stage_rule *rule, const struct hd_schedule *s,
	const struct hd_schedule_job *job, struct hd_diag *diag)
{
	static const struct hd_stage_rule of_update[] = { [HD_UPDATE_FLUSH] = { 0, 0 },
		[HD_UPDATE_2BW] = { 0, 1 } };

	if (!(job && job->rule) && s->update == HD_UPDATE_STASH)
		stash(rule, s);
	for (uint32_t k = 0; k < s->nstages; k++) {
		if (job && job->rule)
			rule[k] = job->rule[k];
		else if (s->update == HD_UPDATE_VSYNC)
			rule[k] = (struct hd_stage_rule){ 1, s->nstages - 1 };
		else if (s->update != HD_UPDATE_STASH)
			rule[k] = of_update[s->update];
		rule[k].every = rule[k].every ? rule[k].every : s->nvns;
		if (rule[k].every == 0 || s->nvns % rule[k].every)
			return hd_fail(diag, HD_E_BADPLAN,
				"stage %u is updated every %u virtual nodes, which do not divide the step's "
				"m = %u", k,
				rule[k].every, s->nvns);
	}
	return HD_OK;
}
