#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "scheduler/dispatch/int.h"
#include "scheduler/sched_why.h"

/* What the policy is asked, within a step or apart, and what becomes of its answer. */

enum { POLICY_BYTES = 1 << 30 };

size_t dispatch_policy_bytes(const struct hd_dispatch *d) { return d->set.policy_bytes ?
	d->set.policy_bytes : POLICY_BYTES; }

/* Times the speed of one device; virtual nodes are shared out evenly, so 5 on 4 devices take two turns. */
static const struct hd_sched_elastic *elastic(const struct live_part *p, struct hd_arena *arena,
	const struct hd_dispatch_job *row)
{
	/* no policy plans with more than its quota; what needs more waits for another one */
	uint32_t most = dispatch_most(p, row), least = row->scale > row->min ? row->scale : row->min;
	uint32_t max = row->max < most ? row->max : most > least ? most : least;
	struct hd_sched_elastic *e = row->max ? hd_arena_take(arena, 1, sizeof *e) : NULL;
	double *speedup = e ? hd_arena_take(arena, max + 1u, sizeof *speedup) : NULL;

	for (uint32_t k = 1; speedup && k <= max; k++)
		speedup[k] = row->nvns ? (double)row->nvns / ceil((double)row->nvns / k) : k;
	if (speedup)
		*e = (struct hd_sched_elastic){ .min = row->min, .max = max, .nvns = row->nvns,
			.speedup = speedup, .resize_s = 1 };
	return speedup ? e : NULL;
}

static struct hd_sched_job seen(const struct hd_dispatch *d, const struct live_part *p,
	struct hd_arena *arena,
	const struct hd_dispatch_job *row, double now_s)
{
	double *rate = hd_arena_take(arena, HD_DISPATCH_TYPES, sizeof *rate);

	if (rate)
		dispatch_steps_s(d, row, rate);
	return (struct hd_sched_job){ .id = row->id, .kind = "", .ikind = HD_SCHED_NONE, .scale = row->scale,
		.weight = row->weight,
		.steps_left = row->steps > row->done ? (double)(row->steps - row->done) : 1,
		.age_s = now_s - row->submitted_s,
		.deadline_s = isfinite(row->deadline_s) ? row->deadline_s - now_s : INFINITY,
		.entity = HD_SCHED_NONE, .rate = rate,
		.elastic = elastic(p, arena, row) };
}

enum hd_err dispatch_arrive(struct hd_dispatch *d, const struct live *j, struct hd_diag *diag)
{
	double rate[HD_DISPATCH_TYPES];
	const struct hd_sched_job job = { .id = j->row.id, .scale = j->row.scale, .rate = rate };

	dispatch_steps_s(d, &j->row, rate);
	enum hd_err err = hd_rounds_arrive(dispatch_part(d, j)->rounds, &job, d->set.move_s, diag);
	return err ? err : dispatch_tell_quotas(d, j, diag);
}

static enum hd_err take_entities(const struct hd_dispatch *d, struct hd_arena *arena,
	struct hd_sched_state *state, struct hd_diag *diag)
{
	struct hd_sched_entity *e = d->nentities ? hd_arena_take(arena, d->nentities, sizeof *e) : NULL;
	bool good = !d->nentities || e;

	for (uint32_t i = 0; i < d->nentities && good; i++) {
		const struct hd_dispatch_entity *of = &d->entity[i].is;
		e[i] = (struct hd_sched_entity){ .name = hd_arena_text(arena, of->name, strlen(of->name)),
			.weight = of->weight, .kind = of->fifo ? HD_ENTITY_FIFO : HD_ENTITY_FAIRNESS,
			.within = d->entity[i].within };
		good = e[i].name != NULL;
	}
	state->entities = e;
	state->nentities = d->nentities;
	return good ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for %u accounts", d->nentities);
}

/* What the policy is asked about, in an arena that is empty. */
static enum hd_err take_state(const struct hd_dispatch *d, const struct live_part *p, double now_s,
	struct hd_arena *arena, struct hd_sched_state *state, struct hd_diag *diag)
{
	uint32_t n = 0;
	struct hd_sched_type *types = hd_arena_take(arena, d->set.ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(arena, d->njobs + 1, sizeof *jobs);

	if (!types || !jobs)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the state of %u jobs", d->njobs);
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		types[t] = p->sched[t];
		/* a question outlives the machine */
		types[t].name = hd_arena_text(arena, p->sched[t].name, strlen(p->sched[t].name));
		types[t].n = hd_rounds_usable(p->rounds, t);
		if (!types[t].name)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the state of %u jobs", d->njobs);
	}
	const bool queue = d->nquotas && d->policy_set.policy->powers & HD_POLICY_QUEUE;
	const bool *in = queue ? dispatch_quota_queue(d, p, arena) : NULL;
	if (queue && !in)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the state of %u jobs", d->njobs);
	for (uint32_t i = 0; i < d->njobs; i++)
		if (dispatch_is_here(d->job[i]) && dispatch_part(d, d->job[i]) == p && (!in || in[i])) {
			jobs[n] = seen(d, p, arena, &d->job[i]->row, now_s);
			jobs[n].entity = d->job[i]->entity;
			if (!jobs[n].rate || (d->job[i]->row.max && !jobs[n].elastic))
				return hd_fail(diag, HD_E_NOMEM, "no memory for the state of %u jobs",
					d->njobs);
			n++;
		}
	*state = (struct hd_sched_state){ .ntypes = d->set.ntypes, .njobs = n, .types = types, .jobs = jobs };
	return take_entities(d, arena, state, diag);
}

enum hd_err hd_dispatch_snapshot(const struct hd_dispatch *d, const char *partition, double now_s,
	struct hd_arena *arena, struct hd_policy_setting *setting, struct hd_sched_state *state,
	struct hd_diag *diag)
{
	uint32_t at = dispatch_part_named(d, partition);

	*setting = d->policy_set;
	return at < d->nparts ? take_state(d, &d->part[at], now_s, arena, state, diag) :
		hd_fail(diag, HD_E_INVAL, "there is no partition \"%.64s\"", partition);
}

static enum hd_err share(struct hd_dispatch *d, struct live_part *p, const struct hd_shares *shares,
	struct hd_diag *diag)
{
	enum hd_err err = hd_rounds_adopt(p->rounds, d->now_s, &p->state, shares, diag);

	bool news = shares->kept && !p->gave_up;
	p->shared |= !err;
	p->gave_up = shares->kept;
	return err || !news ? err : dispatch_note(d, 0, "policy",
		"%sit gave up (%.200s): jobs keep the shares they had, new ones get an equal part",
		dispatch_part_text(p).text, shares->kept_why);
}

/* The shares that there are stay, or, before there were any, the leases; asked again at the next boundary. */
static enum hd_err refused(struct hd_dispatch *d, struct live_part *p, enum hd_err err,
	const struct hd_diag *why)
{
	p->waits = !p->shared;
	hd_rounds_stale(p->rounds);
	p->state = (struct hd_sched_state){ 0 };
	p->shares = (struct hd_shares){ 0 };
	return dispatch_note(d, 0, "policy", "%s%.300s%s", dispatch_part_text(p).text, why->text,
		err == HD_E_NOMEM ? ": the answer takes more memory than there is for it; what was "
		"decided last stays. Choose another policy (POST /v1/policy)" : "");
}

enum hd_err dispatch_solve(struct hd_dispatch *d, struct live_part *p, struct hd_diag *diag)
{
	struct hd_diag why = { "" };

	hd_arena_reset(&p->call);
	p->shares = (struct hd_shares){ 0 };
	enum hd_err err = take_state(d, p, d->now_s, &p->call, &p->state, diag);
	if (err)
		return err;
	if ((err = hd_policy_allocate(d->question->of[p - d->part].policy, &p->state, &p->call, &p->shares,
		&why)))
		return refused(d, p, err, &why);
	p->solved = d->newest;
	return share(d, p, &p->shares, diag);
}

/* ---- apart ---- */

enum hd_err dispatch_lay_by(struct hd_dispatch *d, struct live_part *p, struct hd_diag *diag)
{
	struct ask *a = &d->question->of[p - d->part];

	hd_arena_reset(&a->at);
	enum hd_err err = take_state(d, p, d->now_s, &a->at, &a->state, diag);
	if (err)
		return err;
	hd_rounds_ask(p->rounds);
	a->shares = (struct hd_shares){ 0 };
	a->why.text[0] = 0;
	a->open = true;
	d->question->solved = false;
	d->asked.newest = d->newest;
	d->asked.open = p->waits = true;
	d->decided = true;
	return HD_OK;
}

struct hd_dispatch_question *hd_dispatch_asks(const struct hd_dispatch *d)
{
	return d->asked.open && !d->question->solved ? d->question : NULL;
}

void hd_dispatch_solve(struct hd_dispatch_question *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (q->of[i].open)
			q->of[i].err = hd_policy_allocate(q->of[i].policy, &q->of[i].state, &q->of[i].at,
				&q->of[i].shares, &q->of[i].why);
	q->solved = true;
}

void hd_dispatch_stop(struct hd_dispatch_question *q) { atomic_store(&q->stop, true); }
void hd_dispatch_hold(struct hd_dispatch_question *q) { q->nholds++; }

void hd_dispatch_release(struct hd_dispatch_question *q)
{
	if (!q || --q->nholds)
		return;
	for (uint32_t i = 0; i < q->n; i++) {
		hd_policy_destroy(q->of[i].policy);
		hd_arena_finish(&q->of[i].at);
	}
	hd_free(q);
}

enum hd_err dispatch_new_question(struct hd_dispatch *d, struct hd_diag *diag)
{
	size_t bytes = sizeof(struct hd_dispatch_question) + d->nparts * sizeof(struct ask);
	struct hd_dispatch_question *q = hd_alloc(bytes);
	struct hd_policy_setting set = d->policy_set;
	enum hd_err err = HD_OK;

	if (!q)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a question");
	memset(q, 0, bytes);
	q->nholds = 1;
	set.stop = &q->stop;
	for (; q->n < d->nparts && !err; q->n++) {
		hd_arena_init(&q->of[q->n].at, dispatch_policy_bytes(d));
		err = hd_policy_create(&q->of[q->n].policy, &set, diag);
	}
	if (err) {
		hd_dispatch_release(q);
		return err;
	}
	hd_dispatch_release(d->question);
	d->question = q;
	return HD_OK;
}

/* Before the first shares a job keeps its lease, as while they are awaited. */
enum hd_err dispatch_give_up(struct hd_dispatch *d, const char *text, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < d->nparts; i++) {
		if (!d->question->of[i].open)
			continue;
		d->part[i].waits = !d->part[i].shared;
		d->part[i].due = false;
		hd_rounds_stale(d->part[i].rounds);
	}
	enum hd_err err = dispatch_new_question(d, diag);

	d->asked.open = false;
	return err ? err : dispatch_note(d, 0, "policy", "%.350s", text);
}

/* Shares of those that are still here. */
static enum hd_err valid_shares(const struct hd_dispatch *d, struct ask *a, struct hd_shares *valid,
	struct hd_diag *diag)
{
	struct hd_shape *shape = hd_arena_take(&a->at, a->shares.nshapes + 1u, sizeof *shape);
	double *x = hd_arena_take(&a->at, a->shares.nshapes + 1u, sizeof *x);

	if (!shape || !x)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u shares", a->shares.nshapes);
	*valid = a->shares;
	valid->nshapes = 0;
	for (uint32_t i = 0; i < a->shares.nshapes; i++) {
		bool here = true;
		for (uint8_t m = 0; m < a->shares.shape[i].nmembers; m++) {
			const struct live *j = dispatch_find(d,
				a->state.jobs[a->shares.shape[i].member[m]].id);
			here &= j && dispatch_is_here(j);
		}
		if (!here)
			continue;
		shape[valid->nshapes] = a->shares.shape[i];
		x[valid->nshapes++] = a->shares.x[i];
	}
	valid->shape = shape;
	valid->x = x;
	return HD_OK;
}

static enum hd_err take_up(struct hd_dispatch *d, struct live_part *p, struct ask *a, struct hd_diag *diag)
{
	struct hd_arena was = p->call;
	struct hd_shares valid;

	if (a->err)
		return refused(d, p, a->err, &a->why);
	enum hd_err err = valid_shares(d, a, &valid, diag);
	if (err)
		return err;
	p->call = a->at;
	a->at = was;
	p->state = a->state;
	p->shares = a->shares;
	p->solved = d->asked.newest;
	return share(d, p, &valid, diag);
}

enum hd_err dispatch_take_up(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	d->asked.open = d->asked.answered = false;
	for (uint32_t i = 0; i < d->nparts && !err; i++) {
		struct ask *a = &d->question->of[i];
		if (!a->open)
			continue;
		a->open = d->part[i].waits = false;
		d->part[i].due = true;
		err = take_up(d, &d->part[i], a, diag);
	}
	return err;
}

/* What a policy refuses of a cluster it refuses of an empty one. */
enum hd_err dispatch_try(struct hd_dispatch *d, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < d->nparts && !err; i++) {
		const struct hd_sched_state empty = { .ntypes = d->set.ntypes, .types = d->part[i].sched };
		struct hd_shares shares = { 0 };
		err = hd_policy_allocate(d->question->of[i].policy, &empty, &d->part[i].call, &shares, diag);
	}
	return err;
}

enum hd_err hd_dispatch_fits(const struct hd_dispatch *d, const struct hd_dispatch_job *row, double now_s,
	const atomic_bool *stop, struct hd_diag *diag)
{
	uint32_t at = dispatch_part_named(d, row->partition);
	const struct live_part *p = &d->part[at];
	struct hd_policy_setting set = d->policy_set;
	struct hd_dispatch_job one = *row;
	struct hd_policy *policy = NULL;
	struct hd_shares shares = { 0 };
	struct hd_diag why = { "" };
	struct hd_arena arena;

	if (at == d->nparts)
		return hd_fail(diag, HD_E_INVAL, "it is of partition \"%.64s\", which there is not",
			row->partition);
	set.stop = stop;
	one.submitted_s = now_s;
	dispatch_guess(d, &one);
	hd_arena_init(&arena, dispatch_policy_bytes(d));
	struct hd_sched_job job = seen(d, p, &arena, &one, now_s);
	const struct hd_sched_state alone = { .ntypes = d->set.ntypes, .njobs = 1, .types = p->sched,
		.jobs = &job };
	enum hd_err err = !job.rate || (one.max && !job.elastic) ? hd_fail(diag, HD_E_NOMEM,
		"no memory for the state of a job")
		: hd_policy_create(&policy, &set, diag);
	if (!err && (err = hd_policy_allocate(policy, &alone, &arena, &shares, &why)))
		err = hd_fail(diag, err == HD_E_NOMEM ? err : HD_E_INVAL, "policy %s refuses it: %.300s",
			d->policy_name, why.text);
	hd_policy_destroy(policy);
	hd_arena_finish(&arena);
	return err;
}

bool hd_dispatch_unrunnable(const struct hd_dispatch *d, const struct hd_dispatch_job *row,
	char text[HD_DISPATCH_WHY])
{
	uint32_t at = dispatch_part_named(d, row->partition);
	const struct live_part *p = &d->part[at];
	uint32_t need = dispatch_least(d, row), most = 0;

	text[0] = 0;
	if (at == d->nparts)
		return false;
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		uint32_t n = row->rate[t].steps_s != 0 ? p->sched[t].n : 0;      /* below 0: to be guessed */
		most = n > most ? n : most;
	}
	if (most >= need)
		return false;
	int len = snprintf(text, HD_DISPATCH_WHY, "%s: %s", hd_why_name(HD_WHY_UNRUNNABLE),
		dispatch_part_text(p).text);
	if (!most)
		snprintf(text + len, HD_DISPATCH_WHY - (size_t)len,
			"its rate is 0 on every type of device that is served");
	else if (row->min > most)
		snprintf(text + len, HD_DISPATCH_WHY - (size_t)len,
			"it needs %u devices of one type, and none that it can use has more "
			"than %u: serve larger pools, or submit it with a smaller workers.min", need, most);
	else
		snprintf(text + len, HD_DISPATCH_WHY - (size_t)len,
			"it needs %u devices of one type, and none that it can use has more than %u: submit "
			"it for %u, serve larger pools, or choose a policy that resizes", need, most, most);
	return true;
}
