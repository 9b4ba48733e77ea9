#include "engine/param_rates.h"

#include <string.h>

#include "graph/names.h"
#include "graph/slices.h"

static enum hd_err no_such(const struct hd_job *job, enum hd_job_key key, const struct hd_job_arg *arg,
	struct hd_diag *diag)
{
	const struct hd_job_value *v = &job->value[key];
	const bool own = arg->line && v->line;

	return hd_fail(diag, HD_E_INVAL,
		"%s:%u:%u: optim.%s: \"%s\" names no parameter of the model; `heddle model show` lists them",
		job->file, own ? arg->line : v->line, own ? arg->column : v->column, hd_job_keys[key].key,
		arg->text);
}

static bool is_vector(const struct hd_graph *g, uint32_t p) { return hd_whole_value(g, p).rank <= 1; }

static bool names(const struct hd_job_arg *arg, const struct hd_graph *g, uint32_t p, bool words)
{
	return (words && !strcmp(arg->text, HD_JOB_NORMS_AND_BIASES)) ? is_vector(g, p) :
		hd_name_matches(arg->text, hd_whole_name(g, p));
}

static bool one_names(const struct hd_job_arg *arg, uint32_t n, const struct hd_graph *g, uint32_t p,
	bool words)
{
	for (uint32_t i = 0; i < n; i++)
		if (names(&arg[i], g, p, words))
			return true;
	return false;
}

static enum hd_err all_name(const struct hd_job *job, enum hd_job_key key, const struct hd_job_arg *arg,
	uint32_t n, const struct hd_graph *g, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = 0;
		while (p < g->nparams && !names(&arg[i], g, p, key == HD_JOB_NO_DECAY))
			p++;
		if (p == g->nparams)
			return no_such(job, key, &arg[i], diag);
	}
	return HD_OK;
}

static const struct hd_job_group *group_of(const struct hd_job *job, const struct hd_graph *g, uint32_t p)
{
	const struct hd_job_value *v = &job->value[HD_JOB_GROUPS];

	for (uint32_t i = 0; i < v->ngroups; i++)
		if (one_names(v->group[i].params, v->group[i].nparams, g, p, false))
			return &v->group[i];
	return NULL;
}

enum hd_err hd_param_rates_freeze(const struct hd_job *job, struct hd_graph *g, struct hd_diag *diag)
{
	const struct hd_job_value *v = &job->value[HD_JOB_GROUPS];
	bool has[HD_JOB_MAX_GROUPS] = { false };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < v->ngroups && !err; i++)
		err = all_name(job, HD_JOB_GROUPS, v->group[i].params, v->group[i].nparams, g, diag);
	for (uint32_t p = 0; p < g->nparams && !err && v->ngroups; p++) {
		const struct hd_job_group *group = group_of(job, g, p);
		if (!group)
			continue;
		has[group - v->group] = true;
		g->param[p].frozen |= group->freeze;
	}
	for (uint32_t i = 0; i < v->ngroups && !err; i++)
		if (!has[i])
			err = hd_fail(diag, HD_E_INVAL, "%s:%u:%u: optim.groups: every parameter of group "
				"%u is "
				"in a group before it, and the first that matches counts: put it first, or "
				"leave it out", job->file, v->group[i].line ? v->group[i].line : v->line,
				v->group[i].line ? v->group[i].column : v->column, i + 1);
	return err;
}

static struct hd_param_rate rate_of(const struct hd_job *job, const struct hd_graph *g, uint32_t p)
{
	const struct hd_job_value *decay = &job->value[HD_JOB_DECAY], *spare = &job->value[HD_JOB_NO_DECAY];
	const struct hd_job_group *group = group_of(job, g, p);
	struct hd_param_rate r = { 1, (float)hd_job_num(job, HD_JOB_WEIGHT_DECAY) };

	if ((decay->nargs && !one_names(decay->arg, decay->nargs, g, p, false)) ||
		one_names(spare->arg, spare->nargs, g, p, true))
		r.decay = 0;
	if (group && group->has_decay)
		r.decay = (float)group->decay;
	if (group && group->has_lr)
		r.lr_scale = (float)(group->lr / hd_job_num(job, HD_JOB_LR));
	else if (group && group->has_lr_scale)
		r.lr_scale = (float)group->lr_scale;
	return r;
}

enum hd_err hd_param_rates_make(const struct hd_param_rate **out, const struct hd_job *job,
	const struct hd_graph *g,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_job_value *decay = &job->value[HD_JOB_DECAY], *spare = &job->value[HD_JOB_NO_DECAY];
	const struct hd_param_rate plain = { 1, (float)hd_job_num(job, HD_JOB_WEIGHT_DECAY) };
	enum hd_err err = all_name(job, HD_JOB_DECAY, decay->arg, decay->nargs, g, diag);
	bool all = true;

	*out = NULL;
	err = err ? err : all_name(job, HD_JOB_NO_DECAY, spare->arg, spare->nargs, g, diag);
	if (err)
		return err;
	struct hd_param_rate *rate = hd_arena_take(arena, g->nparams + 1u, sizeof *rate);
	if (!rate)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u parameters", g->nparams);
	for (uint32_t p = 0; p < g->nparams; p++) {
		rate[p] = rate_of(job, g, p);
		all &= hd_param_rate_same(rate[p], plain);
	}
	*out = all ? NULL : rate;
	return HD_OK;
}

void hd_param_rates_print(const struct hd_param_rate *rate, const struct hd_graph *g, float decay,
	struct hd_text *text)
{
	enum { MOST = 8 };
	struct { struct hd_param_rate rate; uint32_t n; } kind[MOST] = { 0 };
	uint32_t n = 0, more = 0;

	for (uint32_t p = 0; p < g->nparams; p++) {
		const struct hd_param_rate r = rate ? rate[p] : (struct hd_param_rate){ 1, decay };
		uint32_t k = 0;
		if (g->param[p].frozen)
			continue;
		while (k < n && !hd_param_rate_same(kind[k].rate, r))
			k++;
		if (k == MOST) {
			more++;
			continue;
		}
		kind[k].rate = r;
		kind[k].n++;
		n = k == n ? n + 1 : n;
	}
	for (uint32_t k = 0; k < n; k++)
		hd_text_addf(text, "%s%u at %g times the rate, decay %g", k ? "; " : "", kind[k].n,
			(double)kind[k].rate.lr_scale, (double)kind[k].rate.decay);
	if (more)
		hd_text_addf(text, "; %u others", more);
}
