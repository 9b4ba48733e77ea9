#include "driver/reshape.h"

#include <stdio.h>
#include <string.h>

#include "balance/arrange.h"

static const double alpha = 0.1;

void hd_reshape_init(struct hd_reshape *r, uint32_t nvns, int64_t gradient_bytes, bool act)
{
	*r = (struct hd_reshape){ .nvns = nvns, .gradient_bytes = gradient_bytes, .act = act };
	hd_arena_init(&r->arena, 0);
	hd_arena_init(&r->scratch, 0);
}

void hd_reshape_finish(struct hd_reshape *r)
{
	hd_arena_finish(&r->arena);
	hd_arena_finish(&r->scratch);
}

void hd_reshape_seal(struct hd_reshape *r, uint32_t worker, uint64_t step, const struct hd_step_news *news,
	const struct hd_view *view)
{
	hd_pace_seal(&r->pace, worker, step, news, view);
}

/* ---- the solver's question ---- */

struct gain_question {
	struct hd_vn_cost type;
	struct hd_solve_device device[HD_VIEW_RANKS];
	struct hd_solve_worker link[HD_MAX_MEMBERS];
	double slow[HD_VIEW_RANKS];
	struct hd_solve_ask ask;
};

static enum hd_err profile_of(const struct hd_reshape *r, uint64_t vn_ps, struct hd_vn_cost *type,
	struct hd_arena *arena)
{
	const struct hd_wave_time wave = { .vns = 1, .ps = (int64_t)vn_ps };
	const struct hd_vn_profile profile = { .type = "worker", .c0_ps = (int64_t)r->own_ps, .wave = &wave,
		.nwaves = 1 };

	return hd_vn_cost_make(type, &profile, r->nvns, arena, NULL);
}

/* ---- maps ---- */

/* Ranks in the order of the map, those of a worker side by side; ones without virtual nodes count for
 * nothing where they stand. */
static bool put_ranks(struct hd_view *view, uint32_t nvns, const uint32_t *ndevices, const uint32_t *count,
	struct hd_arena *arena)
{
	uint32_t total[HD_MAX_MEMBERS] = { 0 }, from[HD_MAX_MEMBERS], order[HD_MAX_MEMBERS], at = 0;
	struct hd_arranged arranged;

	for (uint32_t i = 0; i < view->nmembers; i++) {
		from[i] = at;
		for (uint32_t d = 0; d < ndevices[i]; d++)
			total[i] += count[at++];
	}
	if (hd_arrange(nvns, 0, total, view->nmembers, order, &arranged, arena, NULL))
		return false;
	view->nranks = 0;
	for (uint32_t k = 0; k < view->nmembers; k++)
		for (uint32_t d = 0; d < ndevices[order[k]]; d++)
			view->rank[view->nranks++] = (struct hd_vrank){ view->member[order[k]],
				count[from[order[k]] + d] };
	return true;
}

/* Counts of the devices, members in the order of their ids; false: the view's ranks are not those devices. */
static bool counts_of(const struct hd_view *view, const struct hd_reshape *r, uint32_t *count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nmembers; i++)
		for (uint32_t k = 0; k < view->nranks; k++)
			if (view->rank[k].worker == r->member[i] && n < HD_VIEW_RANKS)
				count[n++] = view->rank[k].nvns;
	return n == r->ndevices;
}

static bool is_watched(const struct hd_reshape *r, const uint32_t *member, const uint32_t *ndevices,
	uint32_t n)
{
	uint32_t d = 0;

	if (!r->watching || n != r->nmembers || memcmp(member, r->member, n * sizeof *member) != 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < ndevices[i]; k++, d++)
			if (d >= r->ndevices || r->device[d].worker != member[i])
				return false;
	return d == r->ndevices;
}

/* ---- other members: the solver at once ---- */

static bool solve(struct hd_reshape *r, struct hd_view *view, const struct hd_member_info *info,
	const uint32_t *ndevices, uint64_t median_ps)
{
	struct gain_question *q = hd_arena_take(&r->scratch, 1, sizeof *q);
	uint32_t nd = 0, n = view->nmembers, even = 0;
	struct hd_solve solved;
	struct hd_solve_ask ask;
	struct hd_text words;

	if (!q || profile_of(r, median_ps, &q->type, &r->scratch))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_pace_worker *w = hd_pace_of(&r->pace, view->member[i]);
		double slow = w && w->vn_ps ? (double)w->vn_ps / (double)median_ps : 1;
		even += slow > 0.95 && slow < 1.05;
		for (uint32_t d = 0; d < info[i].ndevices && nd < HD_VIEW_RANKS; d++, nd++) {
			q->device[nd] = (struct hd_solve_device){ 0, i };
			q->slow[nd] = slow;
		}
	}
	if (even == n)
		return false;
	for (uint32_t i = 0, d = 0; i < n; d += ndevices[i++])
		r->made.planned[i] = (struct hd_reshape_planned){ view->member[i],
			q->slow[d] * (double)median_ps };
	q->ask = (struct hd_solve_ask){ .nvns = r->nvns, .type = &q->type, .ntypes = 1, .device = q->device,
		.ndevices = nd, .worker = q->link, .nworkers = n,
		.gradient_bytes = r->gradient_bytes, .error_ppm = r->error_ppm, .nerrors = r->nerrors };
	for (uint32_t i = 0; i < n && r->nmembers > 1; i++)
		q->link[i].bytes_per_s = r->link[0].bytes_per_s;
	if (hd_solve_slowed(&ask, &q->ask, q->slow, &r->scratch, NULL) ||
		hd_solve(&solved, &ask, &r->scratch, NULL) ||
	    !put_ranks(view, r->nvns, ndevices, solved.plan.count, &r->scratch))
		return false;
	r->made.nmembers = n;
	r->made.predicted_ps = solved.plan.step_ps;
	r->made.view = *view;
	hd_text_fixed(&words, r->made.why, sizeof r->made.why);
	hd_solve_print(&solved, &ask, &words);
	return true;
}

bool hd_reshape_plan(void *self, struct hd_view *view, const struct hd_member_info *info, uint32_t n)
{
	struct hd_reshape *r = self;
	uint32_t ndevices[HD_MAX_MEMBERS];

	for (uint32_t i = 0; i < n; i++)
		ndevices[i] = info[i].ndevices;
	if (!r->act)
		return false;
	hd_arena_reset(&r->scratch);
	if (is_watched(r, view->member, ndevices, n))
		return put_ranks(view, r->nvns, ndevices, r->asked ? r->count : r->drift.count, &r->scratch);
	uint64_t median = hd_pace_median(&r->pace, view->member, n);
	r->made.nmembers = 0;
	return n > 1 && median && solve(r, view, info, ndevices, median);
}

/* ---- members that stay: drift ---- */

/* What a step took beyond the longest share. False: not all of its members are known, or it was no
 * ordinary step. */
static bool measure(struct hd_reshape *r, uint64_t step, const struct hd_view *view, int64_t *vn_ps,
	int64_t *step_ps)
{
	double longest = 0, own = 0, whole = 0;
	uint32_t d = 0;

	for (uint32_t i = 0; i < r->nmembers; i++) {
		const struct hd_pace_worker *w = hd_pace_of(&r->pace, r->member[i]);
		const struct hd_pace_step *s = w ? hd_pace_at(w, step) : NULL;
		if (!s || s->redone)
			return false;
		double mine = (double)s->step_ns - (double)s->wait_ns - (double)s->compute_ns;
		own = i && own < mine ? own : mine > 0 ? mine : 0;
		longest = (double)s->compute_ns > longest ? (double)s->compute_ns : longest;
		whole = (double)s->step_ns > whole ? (double)s->step_ns : whole;
		for (; d < r->ndevices && r->device[d].worker == r->member[i]; d++)
			vn_ps[d] = (int64_t)hd_pace_vn_ps(s, view, r->member[i]);
	}
	double rest = whole - longest - own;
	double by = r->nexchange ? alpha : 1;
	r->own_ps += by * (own * 1e3 - r->own_ps);
	r->exchange_ps += by * ((rest > 0 ? rest : 0) * 1e3 - r->exchange_ps);
	r->nexchange++;
	*step_ps = (int64_t)(whole * 1e3);
	return true;
}

static void forget(struct hd_reshape *r, const struct hd_view *view)
{
	r->watching = r->asked = false;
	r->used.nmembers = 0;
	r->used.predicted_ps = 0;
	r->used.why[0] = '\0';
	if (r->made.nmembers && hd_view_same_map(&r->made.view, view))
		r->used = r->made;
	r->nmembers = view->nmembers;
	memcpy(r->member, view->member, view->nmembers * sizeof *view->member);
	r->nexchange = r->ndevices = 0;
	for (uint32_t i = 0; i < r->nmembers; i++)
		for (uint32_t k = 0; k < view->nranks; k++)
			if (view->rank[k].worker == r->member[i])
				r->device[r->ndevices++].worker = r->member[i];
}

/* The rate at which the exchange of such a map would take what was measured. */
static void set_links(struct hd_reshape *r, const uint32_t *count)
{
	uint32_t total[HD_MAX_MEMBERS] = { 0 }, order[HD_MAX_MEMBERS], members = 0;
	struct hd_arranged arranged = { 0 };
	uint64_t rate = 0;

	for (uint32_t d = 0; d < r->ndevices; d++)
		total[r->of[d].worker] += count[d];
	for (uint32_t i = 0; i < r->nmembers; i++)
		members += total[i] > 0;
	if (members > 1 && r->exchange_ps >= 1 && !hd_arrange(r->nvns, 0, total, r->nmembers, order,
		&arranged, &r->scratch, NULL))
		rate = (uint64_t)((double)(arranged.most + 1) * (double)r->gradient_bytes *
			(members - 1) / members / (r->exchange_ps * 1e-12));
	for (uint32_t i = 0; i < r->nmembers; i++)
		r->link[i].bytes_per_s = rate;
}

static double planned_ps(const struct hd_reshape *r, uint32_t worker)
{
	for (uint32_t i = 0; i < r->used.nmembers; i++)
		if (r->used.planned[i].worker == worker)
			return r->used.planned[i].vn_ps;
	return 0;
}

static bool watch(struct hd_reshape *r, const struct hd_view *view)
{
	uint64_t median = hd_pace_median(&r->pace, r->member, r->nmembers);

	if (!median || !counts_of(view, r, r->count))
		return false;
	for (uint32_t i = 0, d = 0; i < r->nmembers; i++)
		for (; d < r->ndevices && r->device[d].worker == r->member[i]; d++)
			r->of[d] = (struct hd_solve_device){ 0, i };
	hd_arena_reset(&r->arena);
	hd_arena_reset(&r->scratch);
	r->ask = (struct hd_solve_ask){ .nvns = r->nvns, .type = &r->type, .ntypes = 1, .device = r->of,
		.ndevices = r->ndevices, .worker = r->link,
		.nworkers = r->nmembers, .gradient_bytes = r->gradient_bytes, .error_ppm = r->error_ppm,
		.nerrors = r->nerrors };
	set_links(r, r->count);
	if (profile_of(r, median, &r->type, &r->arena) || hd_drift_init(&r->drift, &r->ask, r->count,
		&r->arena, NULL))
		return false;
	for (uint32_t d = 0; d < r->ndevices; d++) {
		double ps = planned_ps(r, r->device[d].worker);
		if (ps > 0)
			/* a device without virtual nodes keeps it */
			r->drift.device[d].made_for = r->drift.device[d].slow = ps / (double)median;
	}
	return true;
}

bool hd_reshape_if(struct hd_reshape *r, uint32_t worker, double vn_ps, int64_t *step_ps)
{
	struct hd_solve_plan plan;
	struct hd_solve_ask ask;

	if (!r->watching)
		return false;
	hd_arena_reset(&r->scratch);
	double *slow = hd_arena_take(&r->scratch, r->ndevices, sizeof *slow);
	uint64_t median = hd_pace_median(&r->pace, r->member, r->nmembers);
	if (!slow || !median)
		return false;
	for (uint32_t d = 0; d < r->ndevices; d++)
		slow[d] = vn_ps > 0 && r->device[d].worker == worker ? vn_ps / (double)median :
			r->drift.device[d].slow;
	set_links(r, r->drift.count);
	if (hd_solve_slowed(&ask, &r->ask, slow, &r->scratch, NULL) ||
		hd_solve_least(&plan, &ask, NULL, NULL, &r->scratch, NULL))
		return false;
	*step_ps = plan.step_ps;
	return true;
}

static void say(struct hd_reshape *r, struct hd_reshape_said *said, const char *kind,
	const struct hd_drift_answer *a)
{
	said->kind = kind;
	snprintf(said->text, sizeof said->text, "%s", a->why);
	snprintf(r->used.why, sizeof r->used.why, "%s", a->why);
}

/* The view of what was asked for has come, or another one. */
static void entered(struct hd_reshape *r, const struct hd_view *view)
{
	uint32_t now[HD_VIEW_RANKS];
	bool same = r->watching && view->nmembers == r->nmembers &&
		!memcmp(view->member, r->member, view->nmembers * sizeof *view->member) &&
		counts_of(view, r, now);

	r->epoch = view->epoch;
	r->nsteps = 0;
	if (same && r->asked && !memcmp(now, r->count, r->ndevices * sizeof *now)) {
		hd_drift_adopt(&r->drift, &r->answer);
		r->used.predicted_ps = r->answer.predicted_ps;
		r->asked = false;
	} else if (!same || memcmp(now, r->drift.count, r->ndevices * sizeof *now) != 0) {
		forget(r, view);
	}
}

static void remember_errors(struct hd_reshape *r)
{
	r->nerrors = r->drift.nerrors;
	memcpy(r->error_ppm, r->drift.error_ppm, sizeof r->error_ppm);
}

bool hd_reshape_step(struct hd_reshape *r, uint64_t step, const struct hd_view *view,
	struct hd_reshape_said *said)
{
	int64_t vn_ps[HD_VIEW_RANKS] = { 0 }, step_ps = 0;
	struct hd_drift_answer answer;

	*said = (struct hd_reshape_said){ .kind = "" };
	if (!view || !r->act)
		return false;
	if (view->epoch != r->epoch)
		entered(r, view);
	if (++r->nsteps <= HD_PACE_FIRST || !measure(r, step, view, vn_ps, &step_ps) || r->nmembers < 2)
		return false;
	if (!r->watching) {
		r->watching = r->nexchange >= HD_RESHAPE_LEARN && watch(r, view);
		return false;
	}
	hd_drift_on_step(&r->drift, vn_ps, step_ps);
	if (r->asked)
		return r->nsteps % 16 == 0;       /* it was overtaken by something: again */
	hd_arena_reset(&r->scratch);
	set_links(r, r->drift.count);
	if (hd_drift_decide(&r->drift, &answer, &r->scratch, NULL))
		return false;
	if (answer.judged) {
		remember_errors(r);
		say(r, said, "plan_judged", &answer);
	} else if (answer.act == HD_DRIFT_STAY && answer.why[0]) {
		say(r, said, "plan_kept", &answer);
	}
	if (answer.act == HD_DRIFT_STAY)
		return false;
	static const char *const kinds[] = { [HD_DRIFT_CHANGE] = "plan", [HD_DRIFT_BACK] = "plan_back",
		[HD_DRIFT_TRY] = "straggler" };
	say(r, said, kinds[answer.act], &answer);
	memcpy(r->count, answer.count, r->ndevices * sizeof *r->count);
	r->answer = answer;
	r->answer.count = r->count;
	return r->asked = true;
}
