#include "planner/suggest.h"

#include <string.h>

#include "base/bits.h"
#include "plan/tree.h"

static uint32_t list(struct hd_suggestion *out, uint64_t batch, uint32_t own)
{
	uint32_t n = 0;

	for (uint64_t b = 1;; b *= 2) {
		uint64_t vns = hd_ceil_div(batch, b), before = b > 1 ? hd_ceil_div(batch, b / 2) : UINT64_MAX;
		if (own > vns && own < before)
			out[n++] = (struct hd_suggestion){ .vns = own };
		if (vns <= HD_MAX_VNS)
			out[n++] = (struct hd_suggestion){ .vns = (uint32_t)vns };
		if (vns == 1)
			break;
	}
	for (uint32_t i = 0; i < n; i++) {
		out[i].vn_size = hd_ceil_div(batch, out[i].vns);
		out[i].own = out[i].vns == own;
	}
	return n;
}

/* HD_OK also where nothing fits: the suggestion says it. */
static enum hd_err judge(struct hd_suggestion *s, const struct hd_suggest_ask *ask, struct hd_arena *work,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_plan_ask how = ask->plan;
	struct hd_profile profile;
	struct hd_cuts cuts;
	struct hd_cut_sums sums;
	struct hd_job_plan plan;
	struct hd_diag why = { "" };
	enum hd_err err = ask->profile(ask->user, s->vn_size, &profile, work, diag);

	err = err ? err : hd_cuts_make(&cuts, &profile, ask->cuts, "the job", work, diag);
	err = err ? err : hd_cut_sums_make(&sums, &profile, &cuts, work, diag);
	if (err)
		return err;
	how.sums = &sums;
	how.vns = s->vns;
	how.spans = false;
	err = hd_job_plan_make(&plan, ask->planner, &how, work, &why);
	if (err && err != HD_E_INVAL)
		return hd_fail(diag, err, "%s", why.text);
	const char *what = err ? why.text : plan.why.at;
	s->what = hd_arena_text(arena, what, strcspn(what, "\n"));
	if (!s->what)
		return hd_fail(diag, HD_E_NOMEM, "no memory for suggestions");
	if (err)
		return HD_OK;
	s->fits = true;
	s->step_s = hd_job_plan_step_s(&plan);
	s->samples_s = s->step_s > 0 ? (double)ask->batch / s->step_s : 0;
	for (uint32_t r = 0; r < plan.schedule.nranks; r++)
		s->peak = plan.sim.rank[r].peak > s->peak ? plan.sim.rank[r].peak : s->peak;
	return HD_OK;
}

enum hd_err hd_suggest(struct hd_suggestion out[HD_SUGGEST_MOST], uint32_t *n,
	const struct hd_suggest_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_arena work;
	struct hd_suggestion *best = NULL;
	const char *own = "";
	enum hd_err err = HD_OK;

	hd_arena_init(&work, 0);
	*n = list(out, ask->batch, ask->plan.vns);
	for (uint32_t i = 0; i < *n && !err; i++) {
		err = judge(&out[i], ask, &work, arena, diag);
		hd_arena_reset(&work);
		if (!err && out[i].fits && (!best || out[i].step_s < best->step_s))
			best = &out[i];
		if (!err && out[i].own)
			own = out[i].what;
	}
	hd_arena_finish(&work);
	if (!err && best)
		best->best = true;
	return err || best ? err : hd_fail(diag, HD_E_INVAL,
		"no size of virtual nodes has a plan; with the job's own: %s", own);
}
