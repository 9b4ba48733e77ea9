#include "planner/ways/ways_int.h"

#include <stdlib.h>
#include <string.h>

const char *const hd_way_fate_texts[HD_NWAY_FATES] = {
#define X(id, text) [HD_WAY_##id] = text,
	HD_WAY_FATES(X)
#undef X
};

static enum hd_err judge_family(struct ways_search *s, uint32_t of, const struct hd_job_planner *planner,
	struct hd_diag *diag);

/* What it becomes with fewer stages. Grids have fewer ranks each time, so this ends. */
static enum hd_err judge_fewer(struct ways_search *s, const struct ways_shape *x,
	const struct hd_job_planner *planner, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t least = 1; least <= WAYS_LEASTS && least <= x->d && !err; least++) {
		struct ways_fewer f = { .m = 0 };
		while (!err && ways_next_fewer(s, x->d, x->p, least, &f)) {
			const uint32_t i = ways_with_fewer(s, x, &f);
			if (i != WAYS_NONE && !s->shape[i].judged)
				err = judge_family(s, i, planner, diag);
		}
	}
	return err;
}

/* Those with fewer pipelines first. */
static enum hd_err judge_family(struct ways_search *s, uint32_t of, const struct hd_job_planner *planner,
	struct hd_diag *diag)
{
	uint32_t at = of;
	enum hd_err err = HD_OK;

	for (uint32_t d = 1; d <= s->shape[of].d && !err; d++) {
		for (at = of; s->shape[at].d > d && s->shape[at].below != WAYS_NONE;)
			at = s->shape[at].below;
		if (s->shape[at].judged)
			continue;
		s->shape[at].judged = true;
		err = judge_fewer(s, &s->shape[at], planner, diag);
		ways_see_depth(s, s->shape[of].p);
		bool may = true;
		err = err ? err : ways_may_be_the_choice(s, &s->shape[at], &may, diag);
		s->out.nhopeless += !may;
		if (!err && may)
			err = ways_judge(s, &s->shape[at], planner, diag);
		hd_arena_reset(s->work);
	}
	return err;
}

static void drop_helpers(struct ways_search *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nlisted; i++)
		for (uint32_t k = 0; s->shape[i].helper && k < s->shape[i].nways; k++)
			s->out.way[s->shape[i].first + k].schedule = NULL;
	for (uint32_t i = 0; i < s->out.n; i++)
		if (s->out.way[i].schedule)
			s->out.way[n++] = s->out.way[i];
	s->out.n = n;
}

static int best_first(const void *x, const void *y)
{
	const struct hd_way *a = x, *b = y;

	if (a->value.allowed != b->value.allowed)
		return a->value.allowed ? -1 : 1;
	if (a->value.value < b->value.value || a->value.value > b->value.value)
		return a->value.value > b->value.value ? -1 : 1;
	if (a->value.strategy != b->value.strategy)
		return a->value.strategy < b->value.strategy ? -1 : 1;
	if (a->value.spares != b->value.spares)
		return a->value.spares < b->value.spares ? -1 : 1;
	if (a->ranks != b->ranks || a->pipelines != b->pipelines)
		return a->ranks != b->ranks ? (a->ranks < b->ranks ? -1 : 1) : a->pipelines < b->pipelines ?
		-1 : 1;
	return a->chunks != b->chunks ? (a->chunks < b->chunks ? -1 : 1) : strcmp(a->schedule, b->schedule);
}

/* Which of the factors of a value is worst beside the choice's. */
static enum hd_way_fate why_it_lost(const struct hd_way *choice, const struct hd_way *w)
{
	const struct hd_spot_value *c = &choice->value, *v = &w->value;
	const double away = (c->value / choice->alone) / (v->value / w->alone);
	const double step = v->step_s / c->step_s, over = (1 + v->overhead) / (1 + c->overhead),
		losses = (1 + v->losses_h / 3600 * v->stall_s) / (1 + c->losses_h / 3600 * c->stall_s);

	if (v->value >= 0.99 * c->value)
		return v->strategy == c->strategy && v->spares == c->spares ? HD_WAY_NEAR : HD_WAY_EQUAL;
	if (away > step && away > over && away > losses)
		return HD_WAY_ABSENT;
	return step >= over && step >= losses ? HD_WAY_STEP : over >= losses ? HD_WAY_OVERHEAD :
		HD_WAY_LOSSES;
}

static enum hd_err choose(struct ways_search *s, struct hd_diag *diag)
{
	struct hd_ways *out = &s->out;
	struct hd_spot_value *value = hd_arena_take(s->work, (size_t)out->n + 1, sizeof *value);

	if (!value)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u ways through losses", out->n);
	qsort(out->way, out->n, sizeof *out->way, best_first);
	for (uint32_t i = 0; i < out->n; i++)
		value[i] = out->way[i].value;
	out->chosen = hd_spot_choose(out->n, value);
	for (uint32_t i = 0; i < out->n && out->chosen < out->n; i++)
		if (out->way[i].value.allowed)
			out->way[i].fate = i == out->chosen ? HD_WAY_CHOSEN :
				why_it_lost(&out->way[out->chosen], &out->way[i]);
	return HD_OK;
}

enum hd_err hd_ways_find(struct hd_ways *ways, const struct hd_ways_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_arena work;
	struct ways_search s = { .ask = ask, .arena = arena, .work = &work };
	const struct hd_job_planner *planner = NULL;
	enum hd_err err = hd_job_planner_find(&planner, ask->plan.meetings ? "data" : "auto", diag);

	if (!err && ask->plan.tensor > 1)
		return hd_fail(diag, HD_E_INVAL, "ways through losses are judged for D pipelines of P "
		"stages, each "
			"on a device, not for tensor groups of %u: leave parallel.tensor out",
			ask->plan.tensor);
	if (!err && !ask->steps && (ask->market->deadline_s > 0 || ask->market->budget_usd > 0))
		return hd_fail(diag, HD_E_INVAL, "a bound on time or money needs the job's length: say "
		"job.steps");
	err = err ? err : ways_list(&s, diag);
	if (err)
		return err;
	hd_arena_init(&work, 0);
	for (uint32_t i = 0; i < s.nlisted && !err; i++) {
		if (s.shape[s.order[i]].helper)
			continue;
		if (ask->said)
			ask->said(ask->user, i, s.nlisted);
		if (!ask->all && s.shape[s.order[i]].bound < 0.99 * s.best)
			s.out.nhopeless += !s.shape[s.order[i]].judged;
		else
			err = judge_family(&s, s.order[i], planner, diag);
	}
	drop_helpers(&s);
	if (!err && !s.out.nplans)
		err = s.out.nrefused ? hd_fail(diag, HD_E_INVAL, "%s", s.out.refused[0].why) :
			hd_fail(diag, HD_E_INVAL, "no grid of %u devices is what the job asks for: "
				"parallel.stages, "
				"chunks, replicas and schedule leave none", ask->plan.cluster->ndevices);
	err = err ? err : choose(&s, diag);
	hd_arena_finish(&work);
	if (!err)
		*ways = s.out;
	return err;
}
