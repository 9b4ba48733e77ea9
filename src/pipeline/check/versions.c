/* Walks each rank's list once with the state of its stages: which versions are there, which gradients
 * have joined, what was reduced, tied, normed. Rules K12 - K21; ranks meet only where run.c says so.
 *
 * A version is there while it is the newest, or pinned. Lists without any update are skeletons: their
 * updates are implied, each directly after the last gradient of its stage on the rank. */
#include <stdio.h>
#include <string.h>

#include "pipeline/check/int.h"

#define NEVER UINT32_MAX

/* One version of a stage on a rank: pins, and where it went. */
struct version { int32_t number; uint32_t pins, gone_at; };

struct stage_state {
	uint32_t of_rank;                         /* whose it is (+ 1); others' is forgotten */
	bool eager;                               /* `made` is not confirmed yet */
	int32_t made;
	uint32_t made_at;                         /* NEVER: at the start */
	uint32_t grad_at, grad_vn;                /* the last gradient */
	uint32_t nbuckets, red_at, red_first;     /* reduced for the update to come */
	uint32_t nversions;                       /* room of `version` */
	struct version *version;                  /* of number n: n modulo the room */
};

struct version_walk {
	const struct hd_lists *l;
	const struct hd_schedule_job *job;
	const struct hd_stage_rule *rule;
	struct stage_state *state;                      /* [stages] */
	uint32_t *tie_at, *nties, *tie_rank;      /* [ntied] of the rank at hand */
	uint32_t *here, nhere;                    /* stages of the rank at hand */
	uint32_t *held;                           /* [stages] the last rank (+ 1) with a forward of it */
	uint32_t rank, at;
	/* [nnamed] where no job says what is tied: TIE (+ 1) of the rank that no update followed yet */
	uint32_t *open_tie, nnamed;
	uint32_t nnorms, norm_at, nvals, val_at, nopen;
	bool implied, together;                   /* together: all stages are updated at once */
	bool norms;                               /* the rank at hand takes a norm somewhere */
};

#define HERE(w, rule, ...) hd_lists_say((w)->l, rule, (w)->rank, (w)->at, __VA_ARGS__)
#define HERE_AND(w, rule, other, ...) \
	hd_lists_say_both((w)->l, rule, (w)->rank, (w)->at, (w)->rank, other, __VA_ARGS__)

/* Its own place, or where a version that stays longer has pushed it; where it is nowhere, one that may be
 * had for it: K14 leaves one. */
static struct version *version_of(const struct stage_state *st, int32_t number)
{
	struct version *own = &st->version[(uint32_t)number % st->nversions], *may = own;

	if (own->number == number)
		return own;
	for (uint32_t i = 0; i < st->nversions; i++) {
		struct version *v = &st->version[i];
		if (v->number == number)
			return v;
		if (may->pins && !v->pins)
			may = v;
	}
	return may;
}

static bool is_pinned(const struct stage_state *st, int32_t number)
{
	const struct version *v = version_of(st, number);

	return v->number == number && v->pins;
}

static bool is_there(const struct stage_state *st, int32_t number) { return number == st->made ||
	is_pinned(st, number); }

static struct stage_state *state_of(struct version_walk *w, uint32_t stage)
{
	struct stage_state *st = &w->state[stage];

	if (st->of_rank == w->rank + 1)
		return st;
	st->of_rank = w->rank + 1;
	st->eager = false;
	st->made = 0;
	st->made_at = st->grad_at = st->red_at = NEVER;
	st->nbuckets = 0;
	for (uint32_t i = 0; i < st->nversions; i++)
		st->version[i] = (struct version){ (int32_t)i, 0, NEVER };
	w->here[w->nhere++] = stage;
	return st;
}

static int32_t rule_of(const struct version_walk *w, const struct hd_ins *x)
{
	int32_t u = (int32_t)(x->vn / w->rule[x->stage].every) - (int32_t)w->rule[x->stage].delay;

	return u > 0 ? u : 0;
}

static uint32_t updates_of(const struct version_walk *w,
	uint32_t stage) { return w->l->s->nvns / w->rule[stage].every; }

/* ---- versions */

/* Where the list goes on to make version u, for a finding. */
static uint32_t find_update(const struct version_walk *w, uint32_t stage, int32_t u)
{
	const struct hd_ilist *list = &w->l->s->list[w->rank];
	int32_t made = w->state[stage].made;

	for (uint32_t at = w->at; w->l->report->total < HD_MAX_FINDINGS && at < list->len; at++)
		if (list->at[at].op == HD_INS_STEP && list->at[at].stage == stage && ++made == u)
			return at;
	return NEVER;
}

static void say_not_made(const struct version_walk *w, uint32_t stage, int32_t u, uint32_t other)
{
	const struct hd_schedule *s = w->l->s;
	char more[120] = "";

	if (w->l->update == HD_UPDATE_2BW && w->l->step_vns < s->nranks)
		snprintf(more, sizeof more,
			"; 2bw needs m >= p; m = %u, p = %u; the nearest that works: m = %u",
			w->l->step_vns, s->nranks, s->nranks);
	if (other == NEVER)
		HERE(w, "K13", "version %d of stage %u is not made yet: its update comes after #%u%s", u,
			stage, w->at, more);
	else
		HERE_AND(w, "K13", other,
			"version %d of stage %u is not made yet: its update comes after #%u%s", u, stage,
			w->at, more);
}

static void need_version(const struct version_walk *w, const struct stage_state *st, uint32_t stage,
	int32_t u)
{
	if (u < 0)
		HERE(w, "K13", "version %d of stage %u is older than the first", u, stage);
	else if (u > st->made)
		say_not_made(w, stage, u, find_update(w, stage, u));
	else if (!is_there(st, u)) {
		const struct version *v = version_of(st, u);
		uint32_t gone = v->number == u ? v->gone_at : st->made_at;
		HERE_AND(w, "K15", gone, "version %d of stage %u is used after its release at #%u", u, stage,
			gone);
	}
}

/* The update of version u would stand after the last gradient of its virtual nodes on this rank. */
static void need_implied(const struct version_walk *w, uint32_t stage, int32_t u)
{
	uint32_t every = w->rule[stage].every;

	for (uint32_t k = (uint32_t)u * every; u > 0 && k-- > (uint32_t)(u - 1) * every;) {
		const struct hd_done *d = hd_done_of(w->l, stage, k);
		const struct hd_at *grad = d->seen & HD_DID_W ? &d->w : &d->b;
		if (grad->rank != w->rank)
			continue;
		if (grad->at > w->at)
			say_not_made(w, stage, u, grad->at);
		return;
	}
}

static void use_version(struct version_walk *w, const struct hd_ins *x, const struct stage_state *st)
{
	int32_t want = rule_of(w, x);

	if (x->flags & HD_INS_VERSIONED && hd_ver_value(x->ver) != want) {
		HERE(w, "K12", "virtual node %u must use version %d of stage %u, the list uses %d", x->vn,
			want, x->stage, hd_ver_value(x->ver));
		return;
	}
	if (w->implied) {
		need_implied(w, x->stage, want);
		return;
	}
	need_version(w, st, x->stage, want);
	if (st->eager && want == st->made)
		HERE_AND(w, "K21", st->made_at, "version %d of stage %u is used before it is validated", want,
			x->stage);
}

static void pin(struct version_walk *w, const struct hd_ins *x, struct stage_state *st, bool keep)
{
	int32_t u = hd_ver_value(x->ver);

	if (x->ver == HD_VER_RULE)
		HERE(w, "K15", "which version? write %s%u@VERSION", hd_ins_row(x->op)->text, x->stage);
	else if (w->implied && u > st->made && u <= (int32_t)updates_of(w, x->stage))
		need_implied(w, x->stage, u);
	else
		need_version(w, st, x->stage, u);
	if (x->ver == HD_VER_RULE || u < 0 || w->l->report->total)
		return;
	struct version *v = version_of(st, u);
	if (keep) {
		if (v->number != u)
			*v = (struct version){ u, 0, NEVER };
		v->pins++;
	} else if (v->number != u || !v->pins)
		HERE(w, "K15", "version %d of stage %u is released and not pinned", u, x->stage);
	else if (!--v->pins)
		v->gone_at = w->at;
}

static void make_version(struct version_walk *w, struct stage_state *st, uint32_t stage, bool eager)
{
	uint32_t live = 1, allowed = w->rule[stage].delay + 1 + eager;
	struct version *old = version_of(st, st->made);

	if (old->number != st->made)
		*old = (struct version){ st->made, 0, NEVER };
	if (!old->pins)
		old->gone_at = w->at;
	st->made++;
	st->made_at = w->at;
	st->eager = eager;
	for (uint32_t i = 0; i < st->nversions; i++)
		live += st->version[i].pins && st->version[i].number != st->made;
	if (live > allowed)
		HERE(w, "K14", "stage %u would keep %u versions at #%u, the job allows %u", stage, live,
			w->at, allowed);
}

/* ---- gradients and what is done with them */

static void gradient(struct version_walk *w, const struct hd_ins *x, struct stage_state *st)
{
	uint32_t u = x->vn / w->rule[x->stage].every + 1;           /* the update that it belongs to */

	st->grad_at = w->at;
	st->grad_vn = x->vn;
	if (w->implied)
		return;
	if ((int32_t)u <= st->made) {
		hd_lists_say_both(w->l, "K16", w->rank, st->made_at, w->rank, w->at,
			"update %d of stage %u happens before the gradient of virtual node %u",
			st->made, x->stage, x->vn);
		return;
	}
	if ((int32_t)u == st->made + 1 && st->nbuckets)
		hd_lists_say_both(w->l, "K16", w->rank, st->red_at, w->rank, w->at,
			"the reduction of stage %u must stand between its last gradient (#%u) and its update",
			x->stage, w->at);
	for (uint32_t g = 0; g < w->job->ntied; g++)
		if (w->job->tied[g].holds[x->stage] && w->tie_rank[g] == w->rank + 1 && w->nties[g] >= u)
			hd_lists_say_both(w->l, "K19", w->rank, w->tie_at[g], w->rank, w->at,
				"%s is summed before the gradient of virtual node %u", w->job->tied[g].name,
				x->vn);
	if (w->together && w->nvals >= u)
		hd_lists_say_both(w->l, "K21", w->rank, w->val_at, w->rank, w->at,
			"version %u is validated before the gradient of virtual node %u", u, x->vn);
	if (w->together && w->nnorms >= u)
		hd_lists_say_both(w->l, "K20", w->rank, w->norm_at, w->rank, w->at,
			"the norm is taken before the gradient of virtual node %u", x->vn);
}

static void reduce(struct version_walk *w, const struct hd_ins *x, struct stage_state *st)
{
	uint32_t u = (uint32_t)st->made + 1, n = hd_buckets_of(w->job, x->stage);

	if (u > updates_of(w, x->stage)) {
		HERE_AND(w, "K16", st->made_at,
			"the reduction of stage %u must stand between its last gradient (#%u) and its "
			"update (#%u)",
			x->stage, st->grad_at, st->made_at);
		return;
	}
	if (st->nbuckets == n)
		HERE_AND(w, "K18", st->red_at, "stage %u is reduced twice for update %u", x->stage, u);
	else if (x->slot >= n)
		HERE(w, "K4", "bucket %u of stage %u does not exist (there are %u)", x->slot, x->stage, n);
	else if (x->slot != st->nbuckets)
		HERE(w, "K18", "bucket %u of stage %u comes next, not %u", st->nbuckets, x->stage, x->slot);
	st->red_at = w->at;
	st->nbuckets++;
	for (uint32_t g = 0; g < w->job->ntied; g++)
		if (w->job->tied[g].holds[x->stage] && w->tie_rank[g] == w->rank + 1 && w->nties[g] >= u)
			hd_lists_say_both(w->l, "K19", w->rank, w->tie_at[g], w->rank, w->at,
				"%s is summed before stage %u is reduced", w->job->tied[g].name, x->stage);
	if (w->together && w->nnorms >= u)
		hd_lists_say_both(w->l, "K20", w->rank, w->norm_at, w->rank, w->at,
			"the norm is taken before stage %u is reduced", x->stage);
}

/* No job says which stages a group has: it is summed once, after gradients, before an update. */
static void tie_unnamed(struct version_walk *w, uint32_t g)
{
	bool graded = false;

	for (uint32_t i = 0; i < w->nhere; i++) {
		const struct stage_state *st = &w->state[w->here[i]];
		graded |= st->grad_at != NEVER && (st->made_at == NEVER || st->grad_at > st->made_at);
	}
	if (w->open_tie[g])
		HERE_AND(w, "K19", w->open_tie[g] - 1, "tied group %u is summed twice", g);
	else if (!graded)
		HERE(w, "K19", "tied group %u is summed before any gradient of the update", g);
	w->nopen += !w->open_tie[g];
	w->open_tie[g] = w->at + 1;
}

static void close_ties(struct version_walk *w, bool updated)
{
	for (uint32_t g = 0; w->nopen && g < w->nnamed; g++) {
		if (!w->open_tie[g])
			continue;
		if (!updated)
			hd_lists_say(w->l, "K19", w->rank, w->open_tie[g] - 1,
				"no update follows the sum of tied group %u", g);
		w->open_tie[g] = 0;
		w->nopen--;
	}
}

static void tie(struct version_walk *w, const struct hd_ins *x)
{
	uint32_t g = x->stage;
	bool member = false;

	if (!w->job->ntied) {
		tie_unnamed(w, g);
		return;
	}
	if (g >= w->job->ntied) {
		HERE(w, "K4", "tied group %u does not exist (there are %u)", g, w->job->ntied);
		return;
	}
	for (uint32_t s = 0; s < w->l->s->nstages; s++)
		member |= w->job->tied[g].holds[s] && w->held[s] == w->rank + 1;
	if (!member)
		HERE(w, "K3", "no stage of %s lives here", w->job->tied[g].name);
	if (w->tie_rank[g] != w->rank + 1) {
		w->tie_rank[g] = w->rank + 1;
		w->nties[g] = 0;
	}
	for (uint32_t s = 0; s < w->l->s->nstages; s++)
		if (w->job->tied[g].holds[s] && w->nties[g] == updates_of(w, s)) {
			HERE_AND(w, "K19", w->tie_at[g], "%s is summed twice", w->job->tied[g].name);
			return;
		}
	w->nties[g]++;
	w->tie_at[g] = w->at;
	if (w->together && w->nnorms >= w->nties[g])
		hd_lists_say_both(w->l, "K20", w->rank, w->norm_at, w->rank, w->at,
			"the norm is taken before %s is summed", w->job->tied[g].name);
}

/* Names two stages of a group, the one at hand among them. */
static void say_untied(const struct version_walk *w, const struct hd_tied_group *group, uint32_t stage)
{
	uint32_t other = stage;

	for (uint32_t s = 0; s < w->l->s->nstages; s++)
		other = group->holds[s] && other == stage ? s : other;
	HERE(w, "K19", "%s is shared by stages %u and %u but no TIE joins them", group->name,
		other < stage ? other : stage, other < stage ? stage : other);
}

static void update(struct version_walk *w, const struct hd_ins *x, struct stage_state *st)
{
	bool eager = x->flags & HD_INS_EAGER;
	int32_t u = x->ver == HD_VER_RULE ? st->made + 1 : hd_ver_value(x->ver);

	if (u <= st->made || u > (int32_t)updates_of(w, x->stage)) {
		if (u <= 0)
			HERE(w, "K17", "version %d is made before version %d", u, u - 1);
		else if (u > st->made && x->ver != HD_VER_RULE)
			HERE(w, "K17", "version %d is made before version %d", u, u - 1);
		else
			HERE_AND(w, "K16", st->made_at, "update %d of stage %u happens twice",
				u <= st->made ? u : st->made, x->stage);
		return;
	}
	if (u > st->made + 1) {
		HERE(w, "K17", "version %d is made before version %d", u, u - 1);
		return;
	}
	uint32_t nholders = w->l->holders ? w->l->holders[x->stage] : 1, n = hd_buckets_of(w->job, x->stage);
	if ((nholders > 1 || w->job->npipelines > 1) && st->nbuckets == 0)
		HERE(w, "K18", "stage %u has %u replicas and no RED", x->stage,
			nholders > 1 ? nholders : w->job->npipelines);
	else if (st->nbuckets && st->nbuckets < n)
		HERE_AND(w, "K18", st->red_at, "only %u of the %u buckets of stage %u are reduced",
			st->nbuckets, n, x->stage);
	else if (st->nbuckets && nholders == 1 && w->job->npipelines == 1)
		HERE_AND(w, "K18", st->red_at, "stage %u has one holder: there is nothing to reduce",
			x->stage);
	for (uint32_t g = 0; g < w->job->ntied; g++)
		if (w->job->tied[g].holds[x->stage] && (w->tie_rank[g] != w->rank + 1 ||
			w->nties[g] < (uint32_t)u))
			say_untied(w, &w->job->tied[g], x->stage);
	if (w->job->clips && !eager && w->nnorms < (uint32_t)u)
		HERE(w, "K20", "the job clips gradients but no NORM (or VAL) precedes the commit");
	else if (w->norms && w->together && !eager && w->nnorms < (uint32_t)u)
		HERE(w, "K20", "update %d of stage %u happens before its NORM", u, x->stage);
	if (eager && w->together && w->nvals >= (uint32_t)u)
		HERE_AND(w, "K21", w->val_at, "version %d is validated before stage %u makes it", u,
			x->stage);
	if (st->eager)
		hd_lists_say_both(w->l, "K21", w->rank, st->made_at, w->rank, w->at,
			"STEP! of version %d is never validated", st->made);
	if (eager && !is_pinned(st, st->made))
		HERE(w, "K15", "an eager update must be able to go back: pin version %d of stage %u",
			st->made, x->stage);
	make_version(w, st, x->stage, eager);
	st->nbuckets = 0;
	close_ties(w, true);
}

static void validate(struct version_walk *w, const struct hd_ins *x)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < w->nhere; i++) {
		struct stage_state *st = &w->state[w->here[i]];
		if (!st->eager || (x->ver != HD_VER_RULE && hd_ver_value(x->ver) != st->made))
			continue;
		found++;
		st->eager = false;
		if (!is_there(st, st->made - 1)) {
			uint32_t gone = version_of(st, st->made - 1)->gone_at;
			HERE_AND(w, "K15", gone, "version %d of stage %u is used after its release at #%u",
				st->made - 1, w->here[i], gone);
		}
	}
	w->nvals++;
	w->val_at = w->at;
	if (!found)
		HERE(w, "K21", "it finds no STEP! to validate");
}

static void norm(struct version_walk *w)
{
	if (w->together && w->nnorms == updates_of(w, 0))
		HERE_AND(w, "K20", w->norm_at, "the norm of an update is taken twice");
	w->nnorms++;
	w->norm_at = w->at;
}

/* ---- a rank */

static void visit(struct version_walk *w, const struct hd_ins *x)
{
	bool of_stage = hd_ins_uses(x->op, 's') && x->op != HD_INS_BAR && x->op != HD_INS_TIE;

	if (of_stage && w->held[x->stage] != w->rank + 1) {
		if (!hd_ins_uses(x->op, 'v'))
			HERE(w, "K3", "stage %u lives on rank %u, not here", x->stage,
				w->l->s->place[x->stage]);
		return;
	}
	struct stage_state *st = of_stage ? state_of(w, x->stage) : NULL;
	switch (x->op) {
	case HD_INS_F: case HD_INS_I: case HD_INS_R: use_version(w, x, st); break;
	case HD_INS_B: case HD_INS_W: gradient(w, x, st); use_version(w, x, st); break;
	case HD_INS_PIN: pin(w, x, st, true); break;
	case HD_INS_REL: pin(w, x, st, false); break;
	case HD_INS_STEP: update(w, x, st); break;
	case HD_INS_RED: reduce(w, x, st); break;
	case HD_INS_TIE: tie(w, x); break;
	case HD_INS_NORM: norm(w); break;
	case HD_INS_VAL: validate(w, x); break;
	default: break;
	}
}

static void end_of_list(struct version_walk *w)
{
	const struct hd_lists *l = w->l;

	close_ties(w, false);
	for (uint32_t i = 0; i < w->nhere; i++) {
		const struct stage_state *st = &w->state[w->here[i]];
		uint32_t s = w->here[i];
		if (!w->implied && st->made < (int32_t)updates_of(w, s))
			hd_lists_say_drawn(l, "K16", w->rank, st->grad_at, w->rank, HD_NOWHERE,
				"rank %u: update %d of stage %u never happens", w->rank,
				st->made + 1, s);
		if (st->eager)
			hd_lists_say(l, "K21", w->rank, st->made_at, "STEP! of version %d is never validated",
				st->made);
		for (uint32_t v = 0; v < st->nversions; v++)
			if (st->version[v].pins)
				hd_lists_say_all(l, "K15",
					"rank %u: version %d of stage %u is never released", w->rank,
					st->version[v].number, s);
	}
}

/* NORM and VAL are meetings of all ranks that hold a stage: each has as many. */
static void compare_meetings(const struct version_walk *w, uint32_t *nnorms, uint32_t *nvals)
{
	if (!w->nhere)
		return;
	if (*nnorms != NEVER && *nnorms != w->nnorms)
		hd_lists_say_all(w->l, "K20", "rank %u has %u NORM, others have %u: it is a meeting of all",
			w->rank, w->nnorms, *nnorms);
	else if (*nvals != NEVER && *nvals != w->nvals)
		hd_lists_say_all(w->l, "K21", "rank %u has %u VAL, others have %u: it is a meeting of all",
			w->rank, w->nvals, *nvals);
	*nnorms = w->nnorms;
	*nvals = w->nvals;
}

static uint32_t next_red(const struct hd_ilist *list, uint32_t at)
{
	while (at < list->len && list->at[at].op != HD_INS_RED)
		at++;
	return at;
}

static bool reduces(const struct hd_ilist *list, const struct hd_ins *what)
{
	uint32_t at = next_red(list, 0);

	while (at < list->len && (list->at[at].stage != what->stage || list->at[at].slot != what->slot))
		at = next_red(list, at + 1);
	return at < list->len;
}

/* Each rank beside the first holder of what it reduces first: where both reduce two buckets, they do it in
 * one order. */
static void compare_reductions(const struct hd_lists *l)
{
	for (uint32_t r = 0; r < l->s->nranks; r++) {
		const struct hd_ilist *mine = &l->s->list[r];
		uint32_t at = next_red(mine, 0), lead = at < mine->len ? l->s->place[mine->at[at].stage] : r;
		if (lead == r || lead >= l->s->nranks)
			continue;
		const struct hd_ilist *first = &l->s->list[lead];
		uint32_t other = next_red(first, 0);
		while (at < mine->len && other < first->len && mine->at[at].stage == first->at[other].stage &&
			mine->at[at].slot == first->at[other].slot) {
			at = next_red(mine, at + 1);
			other = next_red(first, other + 1);
		}
		if (at < mine->len && other < first->len && reduces(mine, &first->at[other]) &&
			reduces(first, &mine->at[at]))
			hd_lists_say_both(l, "K18", r, at, lead, other,
				"replicas reduce buckets in different order: rank %u starts with stage %u, "
				"rank %u with stage %u",
				lead, first->at[other].stage, r, mine->at[at].stage);
	}
}

static bool has_updates(const struct hd_schedule *s)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			switch (s->list[r].at[i].op) {
			case HD_INS_STEP: case HD_INS_RED: case HD_INS_TIE: case HD_INS_NORM:
			case HD_INS_VAL: return true;
			default: break;
			}
	return false;
}

/* One more than the highest number of a TIE. */
static uint32_t highest_tie(const struct hd_schedule *s)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (s->list[r].at[i].op == HD_INS_TIE && s->list[r].at[i].stage >= n)
				n = s->list[r].at[i].stage + 1u;
	return n;
}

static bool take(struct version_walk *w, struct hd_arena *arena)
{
	const struct hd_schedule *s = w->l->s;

	w->state = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *w->state);
	w->here = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *w->here);
	w->held = hd_arena_take(arena, (size_t)s->nstages + 1, sizeof *w->held);
	w->tie_at = hd_arena_take(arena, (size_t)w->job->ntied + 1, sizeof *w->tie_at);
	w->nties = hd_arena_take(arena, (size_t)w->job->ntied + 1, sizeof *w->nties);
	w->tie_rank = hd_arena_take(arena, (size_t)w->job->ntied + 1, sizeof *w->tie_rank);
	w->nnamed = w->job->ntied ? 0 : highest_tie(s);
	w->open_tie = hd_arena_take(arena, (size_t)w->nnamed + 1, sizeof *w->open_tie);
	if (!w->state || !w->here || !w->held || !w->tie_at || !w->nties || !w->tie_rank || !w->open_tie)
		return false;
	for (uint32_t k = 0; k < s->nstages; k++) {
		/* one more than may live, and one for where the last went */
		uint32_t most = updates_of(w, k) + 1;
		w->state[k].nversions = w->rule[k].delay + 3 < most ? w->rule[k].delay + 3 : most;
		if (!(w->state[k].version = hd_arena_take(arena, w->state[k].nversions,
			sizeof *w->state[k].version)))
			return false;
	}
	return true;
}

/* Clipping takes one norm of all gradients of an update. */
static void check_together(struct version_walk *w)
{
	w->together = true;
	for (uint32_t s = 1; s < w->l->s->nstages; s++) {
		if (w->rule[s].every == w->rule[0].every)
			continue;
		w->together = false;
		if (w->job->clips)
			hd_lists_say_all(w->l, "K20",
				"the job clips gradients, so all stages are updated together: stage 0 is "
				"every %u virtual nodes, stage %u every %u",
				w->rule[0].every, s, w->rule[s].every);
		return;
	}
}

enum hd_err hd_lists_versions(const struct hd_lists *l, struct hd_diag *diag)
{
	static const struct hd_schedule_job nothing = { 0 };
	struct version_walk w = { .l = l, .job = l->job ? l->job : &nothing, .rule = l->rule };
	uint32_t nnorms = NEVER, nvals = NEVER;

	w.implied = !w.job->whole && !has_updates(l->s);
	if (!take(&w, l->arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to check a schedule");
	check_together(&w);
	for (w.rank = 0; w.rank < l->s->nranks; w.rank++) {
		const struct hd_ilist *list = &l->s->list[w.rank];
		w.nhere = w.nnorms = w.nvals = 0;
		w.norms = false;
		for (uint32_t i = 0; i < list->len; i++) {
			if (list->at[i].op == HD_INS_F)
				w.held[list->at[i].stage] = w.rank + 1;
			w.norms |= list->at[i].op == HD_INS_NORM;
		}
		for (w.at = 0; w.at < list->len; w.at++)
			visit(&w, &list->at[w.at]);
		end_of_list(&w);
		compare_meetings(&w, &nnorms, &nvals);
	}
	if (!l->report->total)
		compare_reductions(l);
	return HD_OK;
}
