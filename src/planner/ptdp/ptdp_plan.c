#include "planner/ptdp_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/simulate.h"

/* 2 p m v of a schedule that is still simulated: 4 million, half a second */
enum { SIMULATED_INS = 1 << 22 };

static const char *textf(struct hd_arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *textf(struct hd_arena *arena, const char *fmt, ...)
{
	char line[400];
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	const char *text = hd_arena_text(arena, line, len < (int)sizeof line ? (size_t)len : sizeof line - 1);
	return text ? text : "";
}

static void choose(struct hd_ptdp_plan *plan, const char *what, const char *why)
{
	if (plan->nchoices < HD_PTDP_CHOICES)
		plan->choice[plan->nchoices++] = (struct hd_ptdp_choice){ what, why };
}

static double gb(int64_t bytes) { return (double)bytes / 1e9; }
static uint32_t at_most(uint32_t a, uint32_t b) { return a < b ? a : b; }
static int64_t limit(const struct hd_ptdp_ask *ask) { return ask->site.memory ? ask->site.memory :
	ask->site.device->memory; }
static uint32_t layers_of(const struct hd_ptdp_model *model, uint32_t p) { return (model->layers + p - 1) / p;
	}

static enum hd_err check_ask(const struct hd_ptdp_ask *ask, struct hd_diag *diag)
{
	if (ask->ndevices < 1 || ask->ndevices > HD_PTDP_DEVICES)
		return hd_fail(diag, HD_E_INVAL, "%u devices: from 1 to %d", ask->ndevices, HD_PTDP_DEVICES);
	if (ask->batch < 1 || ask->batch > HD_PTDP_BATCH)
		return hd_fail(diag, HD_E_INVAL, "a batch of %u samples: from 1 to %d", ask->batch,
			HD_PTDP_BATCH);
	if (ask->site.memory >= HD_PTDP_MOST)
		return hd_fail(diag, HD_E_INVAL,
			"a memory of %lld bytes: devices of less than 2^62 are planned for",
			(long long)ask->site.memory);
	if (ask->b > ask->batch)
		return hd_fail(diag, HD_E_INVAL, "a virtual node of %u samples is more than the batch of %u",
			ask->b, ask->batch);
	return hd_ptdp_model_check(&ask->model, diag);
}

static bool may_split(const struct hd_ptdp_ask *ask, uint32_t t)
{
	return t <= ask->ndevices && ask->site.device->per_server % t == 0 && ask->model.heads % t == 0
		&& !(ask->site.sequence && ask->model.seq % t);
}

static enum hd_err check_split(const struct hd_ptdp_ask *ask, const struct hd_ptdp_split *s,
	struct hd_diag *diag)
{
	const struct hd_ptdp_model *model = &ask->model;

	if (s->t < 1 || s->p < 1 || s->d < 1 || s->b < 1 || s->v < 1)
		return hd_fail(diag, HD_E_INVAL, "t, p, d, b and v are 1 or more");
	if ((uint64_t)s->t * s->p * s->d > ask->ndevices)
		return hd_fail(diag, HD_E_INVAL, "t=%u p=%u d=%u takes %llu devices; there are %u", s->t,
			s->p, s->d,
			(unsigned long long)s->t * s->p * s->d, ask->ndevices);
	if (model->heads % s->t)
		return hd_fail(diag, HD_E_INVAL, "heads %u cannot be split in %u shards", model->heads, s->t);
	if (ask->site.sequence && model->seq % s->t)
		return hd_fail(diag, HD_E_INVAL, "a sequence of %u cannot be split in %u shards", model->seq,
			s->t);
	if (s->t > ask->site.device->per_server)
		return hd_fail(diag, HD_E_INVAL,
			"t=%u: a tensor group lies inside a server, which has %u devices", s->t,
			ask->site.device->per_server);
	if (ask->site.device->per_server % s->t)
		return hd_fail(diag, HD_E_INVAL,
			"t=%u does not divide the %u devices of a server: a tensor group would lie across "
			"two", s->t,
			ask->site.device->per_server);
	if ((uint64_t)s->p * s->v > model->layers)
		return hd_fail(diag, HD_E_INVAL, "p=%u v=%u: %u layers make no %llu stages", s->p, s->v,
			model->layers, (unsigned long long)s->p * s->v);
	if (s->v > 1 && (s->p == 1 || model->layers % (s->p * s->v)))
		return hd_fail(diag, HD_E_INVAL,
			"v=%u: chunks need p of 2 or more and p v that divides the %u layers", s->v,
			model->layers);
	if (s->d > ask->batch || s->b > (ask->batch + s->d - 1) / s->d)
		return hd_fail(diag, HD_E_INVAL,
			"d=%u b=%u: a batch of %u samples has not that many for each pipeline", s->d, s->b,
			ask->batch);
	return HD_OK;
}

static uint32_t vns_of(const struct hd_ptdp_ask *ask, uint32_t d, uint32_t b)
{
	return ((ask->batch + d - 1) / d + b - 1) / b;
}

/* Nothing that was counted as HD_PTDP_MOST is printed as if it were that. */
static enum hd_err check_counted(const struct hd_ptdp_plan *plan, struct hd_diag *diag)
{
	const struct hd_ptdp_split *s = &plan->split;

	if (plan->cost.step_ps >= HD_PTDP_MOST)
		return hd_fail(diag, HD_E_INVAL,
			"at t=%u p=%u d=%u b=%u a step takes more than 2^62 ps (53 days), which is as far "
			"as times are counted: give "
			"more devices or a smaller batch", s->t, s->p, s->d, s->b);
	if (plan->cost.need.total >= HD_PTDP_MOST)
		return hd_fail(diag, HD_E_INVAL, "at t=%u p=%u d=%u b=%u a device needs more than 2^62 bytes",
			s->t, s->p, s->d, s->b);
	return HD_OK;
}

/* The step as the exact simulator has it: ranks of equal cost, transfers inside the costs. The formula
 * where that is too long. */
static enum hd_err simulate(struct hd_ptdp_plan *plan, struct hd_diag *diag)
{
	const struct hd_ptdp_split *s = &plan->split;
	struct hd_schedule_ask how = { .name = s->v > 1 ? "interleaved" : "1f1b", .p = s->p,
		.m = plan->cost.m, .v = s->v };
	struct hd_sim_ask ask = { .costs = { .f = plan->cost.forward_ps,
		.i = plan->cost.backward_ps - plan->cost.backward_ps / 2,
		.w = plan->cost.backward_ps / 2 } };
	struct hd_schedule schedule;
	struct hd_arena arena;
	struct hd_sim sim;
	enum hd_err err = check_counted(plan, diag);

	if (err)
		return err;
	plan->schedule = how.name;
	plan->step_ps = plan->cost.step_ps;
	plan->simulated = 2 * (uint64_t)s->p * s->v * plan->cost.m <= SIMULATED_INS && s->p > 1;
	if (!plan->simulated)
		return HD_OK;
	hd_arena_init(&arena, 0);
	err = hd_schedule_make(&schedule, &how, &arena, diag);
	if (!err)
		err = hd_simulate(&sim, &schedule, &ask, &arena, diag);
	if (!err)
		plan->step_ps = (sim.makespan + sim.per_ps - 1) / sim.per_ps + plan->cost.after_ps;
	hd_arena_finish(&arena);
	return err;
}

static struct hd_ptdp_plan plan_of(const struct hd_ptdp_ask *ask, const struct hd_ptdp_split *split)
{
	return (struct hd_ptdp_plan){
		.split = *split, .cost = hd_ptdp_cost(&ask->model, split, ask->batch, &ask->site),
		.idle = ask->ndevices - split->t * split->p * split->d, .more = ask->batch % split->d,
	};
}

enum hd_err hd_ptdp_judge(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask,
	const struct hd_ptdp_split *split,
	struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = check_ask(ask, diag);

	if (!err)
		err = check_split(ask, split, diag);
	if (err)
		return err;
	*plan = plan_of(ask, split);
	if (split->v > 1 && plan->cost.m < split->p)
		return hd_fail(diag, HD_E_INVAL, "v=%u needs m >= p; m = %u, p = %u", split->v, plan->cost.m,
			split->p);
	choose(plan, "given",
		textf(arena, "t=%u p=%u d=%u b=%u v=%u, recomputation %s: asked for, not chosen", split->t,
		split->p, split->d,
		split->b, split->v, hd_ptdp_recompute_names[split->recompute]));
	return simulate(plan, diag);
}

/* ---- search ---- */

struct ptdp_candidate { struct hd_ptdp_split split; int64_t step_ps; };

struct ptdp_search {
	const struct hd_ptdp_ask *ask;
	/* fastest first; equals in the order they came, fewer devices first */
	struct ptdp_candidate best[HD_PTDP_FINALISTS]; uint32_t nbest;
	uint64_t nsplits, nfit;
	int64_t least; struct hd_ptdp_split least_split;          /* memory of the split that needs least */
};

static uint64_t devices(const struct hd_ptdp_split *s) { return (uint64_t)s->t * s->p * s->d; }

static bool before(const struct ptdp_candidate *a, const struct ptdp_candidate *b)
{
	return a->step_ps != b->step_ps ? a->step_ps < b->step_ps : devices(&a->split) < devices(&b->split);
}

static void keep(struct ptdp_search *x, struct ptdp_candidate found)
{
	uint32_t at = x->nbest;

	while (at > 0 && before(&found, &x->best[at - 1]))
		at--;
	if (at == HD_PTDP_FINALISTS)
		return;
	if (x->nbest < HD_PTDP_FINALISTS)
		x->nbest++;
	memmove(&x->best[at + 1], &x->best[at], (x->nbest - 1 - at) * sizeof *x->best);
	x->best[at] = found;
}

static void try_split(struct ptdp_search *x, const struct hd_ptdp_split *split)
{
	const struct hd_ptdp_ask *ask = x->ask;
	int64_t need = hd_ptdp_need(&ask->model, split, vns_of(ask, split->d, split->b), &ask->site).total;

	x->nsplits++;
	if (need < x->least) {
		x->least = need;
		x->least_split = *split;
	}
	if (need > limit(ask))
		return;
	x->nfit++;
	keep(x, (struct ptdp_candidate){ *split, hd_ptdp_cost(&ask->model, split, ask->batch,
		&ask->site).step_ps });
}

static void try_chunks(struct ptdp_search *x, struct hd_ptdp_split s, uint32_t m)
{
	for (s.v = 1; s.v <= HD_PTDP_MAX_CHUNKS; s.v++) {
		if (s.v > 1 && (s.p == 1 || m < s.p || x->ask->model.layers % (s.p * s.v)))
			continue;
		for (uint32_t r = 0; r < HD_NPTDP_RECOMPUTES; r++) {
			s.recompute = (enum hd_ptdp_recompute)r;
			try_split(x, &s);
		}
	}
}

/* Of all d with equally many virtual nodes a pipeline the least is fastest: it has fewer replicas to sum
 * over. */
static void try_widths(struct ptdp_search *x, uint32_t t, uint32_t p, uint32_t b)
{
	uint32_t most = at_most(x->ask->ndevices / (t * p), x->ask->batch), d = 1;

	while (d <= most) {
		uint32_t m = vns_of(x->ask, d, b);
		if (b <= (x->ask->batch + d - 1) / d)
			try_chunks(x, (struct hd_ptdp_split){ .t = t, .p = p, .d = d, .b = b }, m);
		if (m == 1)
			break;
		/* the most a pipeline may have to need one less */
		uint64_t samples = (uint64_t)(m - 1) * b;
		d = (uint32_t)((x->ask->batch + samples - 1) / samples);
	}
}

static void try_all(struct ptdp_search *x)
{
	const struct hd_ptdp_ask *ask = x->ask;

	for (uint32_t t = 1; t <= ask->site.device->per_server; t++) {
		if (!may_split(ask, t))
			continue;
		for (uint32_t p = 1; p <= at_most(ask->model.layers, ask->ndevices / t); p++) {
			if (ask->b) {
				try_widths(x, t, p, ask->b);
				continue;
			}
			for (uint32_t b = 1; b <= at_most(HD_PTDP_MAX_B, ask->batch); b *= 2)
				try_widths(x, t, p, b);
		}
	}
}

static enum hd_err nothing_fits(const struct hd_ptdp_ask *ask, int64_t least, const struct hd_ptdp_split *s,
	struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL,
		"no split of %u devices fits: the smallest need is %lld bytes "
		"(%.1f GB) at t=%u p=%u d=%u b=%u, recomputation %s; a device has %lld",
		ask->ndevices, (long long)least, gb(least), s->t, s->p, s->d, s->b,
		hd_ptdp_recompute_names[s->recompute], (long long)limit(ask));
}

static double seconds(int64_t ps) { return (double)ps / 1e12; }

/* The step of the chosen split with one thing changed, as words: "33.1 s without", or why that cannot be. */
static const char *instead(const struct hd_ptdp_ask *ask, struct hd_ptdp_split s, struct hd_arena *arena)
{
	struct hd_diag why = { "" };

	if (check_split(ask, &s, &why))
		return textf(arena, "not possible (%s)", why.text);
	struct hd_ptdp_cost cost = hd_ptdp_cost(&ask->model, &s, ask->batch, &ask->site);
	if (cost.need.total > limit(ask))
		return textf(arena, "needs %.1f GB", gb(cost.need.total));
	return textf(arena, "%.4g s", seconds(cost.step_ps));
}

static void explain_search(struct hd_ptdp_plan *plan, const struct ptdp_search *x, struct hd_arena *arena)
{
	const struct hd_ptdp_ask *ask = x->ask;
	const struct hd_ptdp_split *s = &plan->split;
	struct hd_ptdp_split half = *s, more = *s, other = *s;

	half.t = s->t / 2 ? s->t / 2 : 1;
	half.d = (uint32_t)at_most(ask->ndevices / (half.t * s->p), ask->batch);
	choose(plan, textf(arena, "t=%u", s->t), s->t == 1 ? textf(arena,
		"no sums between the members of a tensor group")
		: textf(arena, "a server has %u devices, the heads are %u; with t=%u d=%u: %s",
			ask->site.device->per_server, ask->model.heads, half.t, half.d,
			instead(ask, half, arena)));
	more.p = s->p == 1 ? 2 : s->p / 2;
	more.v = 1;
	more.d = at_most(ask->ndevices / (s->t * more.p), ask->batch);
	if (more.d == 0)
		more.d = 1;
	choose(plan, textf(arena, "p=%u", s->p), textf(arena,
		"%u layers a stage at most, bubble %.1f %%; with p=%u d=%u: %s", layers_of(&ask->model, s->p),
		100 * hd_ptdp_bubble(plan->cost.m, s->p, s->v), more.p, more.d, instead(ask, more, arena)));
	choose(plan, textf(arena, "d=%u", s->d), textf(arena,
		"%u of %u devices used; %u virtual nodes of %u samples a pipeline%s",
		ask->ndevices - plan->idle,
		ask->ndevices, plan->cost.m, s->b, plan->more ? textf(arena,
		", %u pipelines have a sample more", plan->more) : ""));
	other.b = s->b > 1 ? s->b / 2 : 2;
	choose(plan, textf(arena, "b=%u", s->b), ask->b ? "asked for" : textf(arena, "with b=%u: %s", other.b,
		instead(ask, other, arena)));
	other = *s;
	other.v = s->v == 1 ? 2 : 1;
	choose(plan, textf(arena, "v=%u", s->v), textf(arena, "with v=%u: %s", other.v,
		instead(ask, other, arena)));
	other = *s;
	other.recompute = s->recompute == HD_PTDP_NONE ? HD_PTDP_FULL :
		(enum hd_ptdp_recompute)(s->recompute - 1);
	choose(plan, textf(arena, "recompute=%s", hd_ptdp_recompute_names[s->recompute]),
		textf(arena, "%.1f of %.1f GB needed; with %s: %s",
		gb(plan->cost.need.total), gb(limit(ask)), hd_ptdp_recompute_names[other.recompute],
		instead(ask, other, arena)));
	choose(plan, "fastest",
		textf(arena, "of %llu splits, %llu fit; the %u fastest were judged by their schedule",
		(unsigned long long)x->nsplits,
		(unsigned long long)x->nfit, x->nbest));
}

enum hd_err hd_ptdp_search(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct ptdp_search x = { .ask = ask, .least = INT64_MAX }, judged = { .ask = ask };
	struct hd_ptdp_plan best;
	enum hd_err err = check_ask(ask, diag);

	if (err)
		return err;
	try_all(&x);
	if (!x.nbest)
		return nothing_fits(ask, x.least, &x.least_split, diag);
	for (uint32_t i = 0; i < x.nbest && (i == 0 || x.best[i].step_ps < HD_PTDP_MOST); i++) {
		struct hd_ptdp_plan one = plan_of(ask, &x.best[i].split);
		err = simulate(&one, diag);
		if (err)
			return err;
		keep(&judged, (struct ptdp_candidate){ one.split, one.step_ps });
	}
	best = plan_of(ask, &judged.best[0].split);
	err = simulate(&best, diag);
	if (err)
		return err;
	if (judged.nbest > 1) {
		best.next = judged.best[1].split;
		best.next_ps = judged.best[1].step_ps;
	}
	explain_search(&best, &x, arena);
	*plan = best;
	return HD_OK;
}

/* ---- rules ---- */

static int64_t need_of(const struct hd_ptdp_ask *ask, const struct hd_ptdp_split *s)
{
	return hd_ptdp_need(&ask->model, s, vns_of(ask, s->d, s->b), &ask->site).total;
}

static uint32_t width(const struct hd_ptdp_ask *ask, uint32_t t, uint32_t p)
{
	uint32_t d = at_most(ask->ndevices / (t * p), ask->batch);
	/* every pipeline has a whole virtual node */
	uint32_t most = ask->batch / (ask->b ? ask->b : 1);

	return at_most(d, most);
}

/* Rule 1. */
static enum hd_err choose_room(struct hd_ptdp_plan *plan, struct hd_ptdp_split *s,
	const struct hd_ptdp_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const char *why_t = "it fits without a split", *why_p = "it fits in one stage";
	uint32_t per_server = ask->site.device->per_server;
	int64_t least = INT64_MAX;
	struct hd_ptdp_split least_split = *s;

	for (;;) {
		s->d = width(ask, s->t, s->p);
		int64_t need = need_of(ask, s);
		if (need < least) {
			least = need;
			least_split = *s;
		}
		if (need <= limit(ask))
			break;
		uint32_t t = s->t + 1;
		while (t <= per_server && !may_split(ask, t))
			t++;
		if (t <= per_server) {
			why_t = textf(arena, "a server has %u devices and it needs %.1f GB at t=%u",
				per_server, gb(need), s->t);
			s->t = t;
			continue;
		}
		if (s->p + 1 > at_most(ask->model.layers, ask->ndevices / s->t))
			return nothing_fits(ask, least, &least_split, diag);
		why_p = textf(arena, "t=%u is the most here, and it needs %.1f GB at p=%u", s->t, gb(need),
			s->p);
		s->p++;
	}
	choose(plan, textf(arena, "t=%u", s->t), why_t);
	choose(plan, textf(arena, "p=%u", s->p), textf(arena, "%s%s", why_p,
		ask->model.layers % s->p ? textf(arena, "; stages of %u or %u layers",
		ask->model.layers / s->p, layers_of(&ask->model, s->p)) : ""));
	return HD_OK;
}

/* Rule 3. */
static enum hd_err choose_chunks(struct hd_ptdp_plan *plan, struct hd_ptdp_split *s,
	const struct hd_ptdp_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t m = vns_of(ask, s->d, s->b), v = HD_PTDP_MAX_CHUNKS;

	while (v > 1 && (s->p == 1 || m < s->p || ask->model.layers % (s->p * v)))
		v--;
	if (v == 1) {
		choose(plan, "v=1", s->p == 1 ? "one stage" : m < s->p ? textf(arena,
			"m = %u is less than p = %u", m, s->p)
			: textf(arena, "%u layers have no 2 to %d chunks for each of %u ranks",
				ask->model.layers, HD_PTDP_MAX_CHUNKS, s->p));
		return HD_OK;
	}
	struct hd_ptdp_split chunked = *s;
	chunked.v = v;
	struct hd_ptdp_plan one = plan_of(ask, s), many = plan_of(ask, &chunked);
	enum hd_err err = simulate(&one, diag);
	if (!err)
		err = simulate(&many, diag);
	if (err)
		return err;
	bool fits = many.cost.need.total <= limit(ask), faster = many.step_ps < one.step_ps;
	if (fits && faster)
		s->v = v;
	choose(plan, textf(arena, "v=%u", s->v), textf(arena,
		"%u chunks take %.4g s and %.1f GB, one takes %.4g s", v, seconds(many.step_ps),
		gb(many.cost.need.total), seconds(one.step_ps)));
	return HD_OK;
}

/* Rule 4: the least repetition that fits. */
static void choose_recompute(struct hd_ptdp_plan *plan, struct hd_ptdp_split *s,
	const struct hd_ptdp_ask *ask, struct hd_arena *arena)
{
	const char *why = "all activations fit";

	for (uint32_t r = 0; r < HD_NPTDP_RECOMPUTES; r++) {
		s->recompute = (enum hd_ptdp_recompute)r;
		int64_t need = need_of(ask, s);
		if (need <= limit(ask))
			break;
		why = textf(arena, "%s needs %.1f GB, a device has %.1f", hd_ptdp_recompute_names[r],
			gb(need), gb(limit(ask)));
	}
	choose(plan, textf(arena, "recompute=%s", hd_ptdp_recompute_names[s->recompute]), why);
}

enum hd_err hd_ptdp_rules(struct hd_ptdp_plan *plan, const struct hd_ptdp_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_ptdp_split s = { .t = 1, .p = 1, .d = 1, .v = 1, .b = ask->b ? ask->b : 1,
		.recompute = HD_PTDP_FULL };
	struct hd_ptdp_plan whys = { 0 };
	enum hd_err err = check_ask(ask, diag);

	if (!err)
		err = choose_room(&whys, &s, ask, arena, diag);
	if (err)
		return err;
	choose(&whys, textf(arena, "d=%u", s.d), textf(arena,
		"%u devices make %u groups of t p = %u; %u stay idle%s", ask->ndevices, s.d, s.t * s.p,
		ask->ndevices - s.t * s.p * s.d, ask->batch % s.d ? textf(arena,
		"; %u of the pipelines have a sample more", ask->batch % s.d) : ""));
	err = choose_chunks(&whys, &s, ask, arena, diag);
	if (err)
		return err;
	choose_recompute(&whys, &s, ask, arena);
	choose(&whys, "places",
		textf(arena, "tensor groups inside a server, pipelines across servers, data outermost"));
	*plan = plan_of(ask, &s);
	memcpy(plan->choice, whys.choice, sizeof whys.choice);
	plan->nchoices = whys.nchoices;
	return simulate(plan, diag);
}
