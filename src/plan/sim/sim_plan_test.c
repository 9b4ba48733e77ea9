/* The full simulator: against the fast one on every family, against a clock that ticks and keeps no queue (an oracle that shares no
 * code), and by hand where a figure is known. */
#include "plan/sim_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/sim/int.h"
#include "tests/check.h"

static struct hd_arena arena;

static int make_arena(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int drop_arena(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

#define U HD_UNIT_PS



static struct hd_sim_plan run(const struct hd_schedule *s, const struct hd_sim_setting *set)
{
	struct hd_sim_plan sim = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_sim_plan(&sim, s, set, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	for (uint32_t r = 0; r < s->nranks; r++) {
		int64_t sum = sim.rank[r].busy;
		for (int k = 0; k < HD_NIDLES; k++) {
			CHECK(sim.rank[r].idle[k] >= 0, "%s: rank %u, %s %lld", s->heading, r, hd_idle_names[k], (long long)sim.rank[r].idle[k]);
			sum += sim.rank[r].idle[k];
		}
		CHECK(sum == sim.makespan, "%s: rank %u: work and idle times are %lld, the makespan %lld", s->heading, r, (long long)sum,
			(long long)sim.makespan);
		sum = 0;
		for (int k = 0; k < HD_NMEMORIES; k++)
			sum += sim.rank[r].at_peak[k];
		CHECK(sum == sim.rank[r].peak, "%s: rank %u: parts of its peak", s->heading, r);
	}
	return sim;
}

/* ---- the fast simulator */

static void agree(const struct hd_schedule *s, const struct hd_rank_costs *costs, uint32_t steps)
{
	struct hd_sim fast;
	struct hd_stage_costs even;
	struct hd_diag diag = { "" };
	const struct hd_sim_ask ask = { .costs = *costs, .steps = steps };

	CHECK(hd_simulate(&fast, s, &ask, &arena, &diag) == HD_OK, "%s: %s", s->heading, diag.text);
	CHECK(hd_stage_costs_even(&even, costs, fast.ran.nstages, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < even.nstages; k++)
		even.stage[k].saved = even.stage[k].saved_w = 1;       /* a byte a chunk */
	const struct hd_sim_setting set = { .costs = &even, .per_ps = fast.per_ps, .hop = costs->hop * fast.per_ps, .steps = steps };
	struct hd_sim_plan full = run(s, &set);
	CHECK(full.makespan == fast.makespan && full.span_idle == fast.span_idle && full.busiest == fast.busiest && full.nins == fast.nins,
		"%s: %lld, the fast one %lld; idle %lld, %lld", s->heading, (long long)full.makespan, (long long)fast.makespan, (long long)full.span_idle,
		(long long)fast.span_idle);
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct hd_sim_rank *want = &fast.rank[r];
		const struct hd_sim_share *have = &full.rank[r];
		CHECK(have->first == want->first && have->last == want->last && have->busy == want->busy, "%s: rank %u", s->heading, r);
		CHECK(have->peak == want->peak, "%s: rank %u: %lld chunks, the fast one says %u", s->heading, r, (long long)have->peak, want->peak);
	}
	for (uint32_t k = 0; k < fast.steps; k++)
		CHECK(full.steps == fast.steps && (fast.steps == 1 || full.step_end[k] == fast.step_end[k]), "%s: step %u", s->heading, k);
}

static void both_simulators_agree_on_every_family(void **state)
{
	static const struct hd_rank_costs costs[] = { { U, U, U, 0 }, { U, U, U, U / 10 }, { U, 2 * U, U / 2, U / 3 }, { 3 * U, U, 5 * U, U } };
	uint32_t compared = 0;

	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 5; p++)
			for (uint32_t m = p; m <= 3 * p; m += p > 2 ? p - 1 : 1)
				for (uint32_t v = k->vmin; v <= k->vmax && v <= 3; v++) {
					struct hd_schedule s;
					struct hd_diag diag = { "" };
					const struct hd_schedule_ask ask = { .name = k->name, .p = p, .m = m, .v = v };
					if (!strcmp(k->name, "zb-auto") && p > 3)
						continue;                    /* seconds of search */
					if (hd_schedule_make(&s, &ask, &arena, &diag))
						continue;                    /* what the kind cannot do */
					for (size_t c = 0; c < sizeof costs / sizeof *costs; c++, compared++)
						agree(&s, &costs[c], 0);
				}
	CHECK(compared > 1000, "%u were compared", compared);
}

static void both_simulators_agree_on_the_stored_schedules(void **state)
{
	const char *data = getenv("HEDDLE_SHARED");
	char path[512], *bytes = hd_arena_take(&arena, 1 << 16, 1);
	struct hd_schedules all;
	FILE *file = NULL;

	(void)state;
	if (data) {
		snprintf(path, sizeof path, "%s/data/schedules.txt", data);
		file = fopen(path, "rb");
	}
	if (!file) {
		SKIP("HEDDLE_SHARED names no folder with data/schedules.txt");
	}
	size_t len = fread(bytes, 1, (1 << 16) - 1, file);
	fclose(file);
	assert_int_equal(hd_schedules_parse(&all, bytes, len, "schedules.txt", &arena, NULL), HD_OK);
	for (uint32_t i = 0; i < all.len; i++) {
		agree(&all.at[i], &(struct hd_rank_costs){ U, U, U, 0 }, 0);
		agree(&all.at[i], &(struct hd_rank_costs){ U, U, U, U / 10 }, 0);
	}
}

/* ---- the clock that ticks: one tick at a time, everything looked at in each. A byte takes a tick alone. */

enum { T_RANKS = 3, T_STAGES = 12, T_VNS = 12, T_FLOWS = 2 * T_STAGES * T_VNS + 64 };

struct t_flow {
	uint32_t out, in;                         /* ports, a bit a rank */
	double left;
	long handed, there;                       /* -1: not yet */
	bool moving, moved;
	int stage, vn, grad;                      /* of a tensor; grad 2: a sum of gradients */
	int from, to, nth;
	bool used;
};

struct t_rank { uint32_t at, nred; long end, free, busy; long idle[HD_NIDLES]; bool computes, ended, posted, worked; int64_t peak; };

static struct ticker {
	const struct hd_schedule *s;
	const struct hd_stage_costs *costs;
	const double *speed;
	enum hd_transport transport;
	uint32_t credits;
	long hop, now;
	bool shared, explicit, stuck;
	struct t_flow flow[T_FLOWS];
	int nflows;
	struct t_rank rank[T_RANKS];
	int state[T_STAGES][T_VNS];	/* 1 F begun, 2 F done, 4 R begun, 8 I done, 16 B or W begun, 32 B or W done, 64 checkpoint, 128 I or B done */
	int where[T_STAGES][T_VNS];
	int stands[T_STAGES][T_VNS][2];           /* 1 sender, 2 receiver; of activation and gradient */
	int sum[T_STAGES], came[T_STAGES];        /* flow of its RED, members that have come */
	bool summed[T_RANKS][T_STAGES], stepped[T_RANKS][T_STAGES];
} tk;

static int t_holders(int stage)
{
	int n = 0;

	for (uint32_t r = 0; r < tk.s->nranks; r++) {
		bool has = false;
		for (uint32_t i = 0; i < tk.s->list[r].len; i++)
			has |= tk.s->list[r].at[i].op == HD_INS_RED && tk.s->list[r].at[i].stage == stage;
		n += has;
	}
	return n;
}

static int t_rank_of(int stage, int vn, int op1, int op2)
{
	for (uint32_t r = 0; r < tk.s->nranks; r++)
		for (uint32_t i = 0; i < tk.s->list[r].len; i++) {
			const struct hd_ins *x = &tk.s->list[r].at[i];
			if ((x->op == op1 || x->op == op2) && x->stage == stage && (int)x->vn == vn)
				return (int)r;
		}
	return -1;
}

static struct t_flow *t_find(int stage, int vn, int grad)
{
	for (int i = 0; i < tk.nflows; i++)
		if (tk.flow[i].stage == stage && tk.flow[i].vn == vn && tk.flow[i].grad == grad)
			return &tk.flow[i];
	return NULL;
}

/* The rank that uses a tensor. */
static int t_user(int stage, int vn, int grad) { return grad ? t_rank_of(stage - 1, vn, HD_INS_B, HD_INS_I) : t_rank_of(stage + 1, vn, HD_INS_F, HD_INS_F); }

static void t_send(int stage, int vn, int grad, int from)
{
	int to = t_user(stage, vn, grad), nth = 0;

	if (to < 0 || to == from)
		return;
	for (int i = 0; i < tk.nflows; i++)
		nth += tk.flow[i].from == from && tk.flow[i].to == to && tk.flow[i].grad == grad;
	tk.flow[tk.nflows++] = (struct t_flow){ 1u << from, 1u << to, tk.shared ? (double)(grad ? tk.costs->stage[stage].in : tk.costs->stage[stage].out) : 0,
		tk.now, -1, false, false, stage, vn, grad, from, to, nth, false };
}

/* When a tensor is on the rank; -1: it is not under way. */
static long t_there(int stage, int vn, int grad, int rank)
{
	int maker = grad ? t_rank_of(stage, vn, HD_INS_B, HD_INS_I) : t_rank_of(stage, vn, HD_INS_F, HD_INS_F);
	struct t_flow *f = t_find(stage, vn, grad);

	if (maker == rank)
		return tk.state[stage][vn] & (grad ? 128 : 2) ? 0 : -1;
	return f ? f->there : -1;
}

static enum hd_idle t_why(int stage, int vn, int grad)
{
	const struct t_flow *f = t_find(stage, vn, grad);

	return f && f->handed <= tk.now ? HD_IDLE_TRANSFER : HD_IDLE_DEPENDENCY;
}

/* A tensor that is not there: *why. */
static bool t_misses(int stage, int vn, int grad, int rank, enum hd_idle *why)
{
	long there = t_there(stage, vn, grad, rank);

	if (there >= 0 && there <= tk.now)
		return false;
	*why = t_why(stage, vn, grad);
	return true;
}

/* Partial sums of the leaves [low, low + size) whose gradients are on the rank. */
static int t_partials(int rank, int stage, int low, int size)
{
	bool all = true;

	if (low >= (int)tk.s->nvns)
		return 0;
	for (int v = low; v < low + size && v < (int)tk.s->nvns; v++)
		all &= tk.where[stage][v] == rank && tk.state[stage][v] & 32;
	return all ? 1 : size == 1 ? 0 : t_partials(rank, stage, low, size / 2) + t_partials(rank, stage, low + size / 2, size / 2);
}

static bool t_blocked(struct t_rank *r, int rank, const struct hd_ins *x, enum hd_idle *why)
{
	int s = x->stage, v = (int)x->vn, last = (int)tk.s->nstages - 1;
	bool grad = x->op == HD_INS_SG || x->op == HD_INS_RG, send = x->op == HD_INS_SA || x->op == HD_INS_SG;

	*why = HD_IDLE_DEPENDENCY;
	if (x->op == HD_INS_F)
		return s > 0 && t_misses(s - 1, v, 0, rank, why);
	if (x->op == HD_INS_B || x->op == HD_INS_I)
		return s < last && t_misses(s + 1, v, 1, rank, why);
	if (x->op == HD_INS_RED) {
		if (!r->posted && ++tk.came[s] == t_holders(s)) {
			int64_t n = t_holders(s), partials = 0;
			uint32_t all = 0;
			for (uint32_t k = 0; k < tk.s->nranks; k++)
				for (uint32_t i = 0; i < tk.s->list[k].len; i++)
					all |= tk.s->list[k].at[i].op == HD_INS_RED && tk.s->list[k].at[i].stage == s ? 1u << k : 0;
			for (int k = 0; k < (int)tk.s->nranks; k++)
				partials = t_partials(k, s, 0, 16) > partials ? t_partials(k, s, 0, 16) : partials;
			tk.sum[s] = tk.nflows;
			double left = tk.shared ? (double)(tk.costs->stage[s].param * (n - 1) * (partials + 1) / n) : 0;
			tk.flow[tk.nflows++] = (struct t_flow){ all, all, left, tk.now, -1, false, false, s, -1, 2, -1, -1, 0, false };
		}
		r->posted = tk.transport == HD_TRANSPORT_RENDEZVOUS;
		if (!r->posted)
			return false;
		*why = tk.came[s] == t_holders(s) ? HD_IDLE_TRANSFER : HD_IDLE_DEPENDENCY;
		return tk.came[s] < t_holders(s) || tk.flow[tk.sum[s]].there < 0 || tk.flow[tk.sum[s]].there > tk.now;
	}
	if (x->op == HD_INS_STEP && t_holders(s)) {
		*why = tk.came[s] == t_holders(s) ? HD_IDLE_TRANSFER : HD_IDLE_DEPENDENCY;
		return tk.came[s] < t_holders(s) || tk.flow[tk.sum[s]].there < 0 || tk.flow[tk.sum[s]].there > tk.now;
	}
	if (!send && x->op != HD_INS_RA && x->op != HD_INS_RG)
		return false;
	int maker = send ? s : grad ? s + 1 : s - 1;
	if (tk.transport == HD_TRANSPORT_EAGER || tk.transport == HD_TRANSPORT_BUFFERED) {
		if (!send)
			return t_misses(maker, v, grad, rank, why);
		uint32_t open = 0;
		for (int i = 0; i < tk.nflows; i++)
			open += tk.flow[i].from == rank && tk.flow[i].to == t_user(s, v, grad) && tk.flow[i].grad == (int)grad && !tk.flow[i].used;
		*why = HD_IDLE_CREDIT;
		return tk.transport == HD_TRANSPORT_BUFFERED && open >= tk.credits;
	}
	/* both sides stand at it; under grouped, at all up to the next work */
	const struct hd_ilist *list = &tk.s->list[rank];
	uint32_t end = r->at + 1;
	while (tk.transport == HD_TRANSPORT_GROUPED && end < list->len && list->at[end].op >= HD_INS_SA && list->at[end].op <= HD_INS_RG)
		end++;
	bool missing = false;
	for (uint32_t k = r->at; k < end; k++) {
		const struct hd_ins *y = &list->at[k];
		bool g = y->op == HD_INS_SG || y->op == HD_INS_RG, out = y->op == HD_INS_SA || y->op == HD_INS_SG;
		int from = out ? y->stage : g ? y->stage + 1 : y->stage - 1;
		int *stands = &tk.stands[from][y->vn][g];
		if (!(*stands & (out ? 1 : 2)) && (*stands |= out ? 1 : 2) == 3)
			t_send(from, (int)y->vn, g, g ? t_rank_of(from, (int)y->vn, HD_INS_B, HD_INS_I) : t_rank_of(from, (int)y->vn, HD_INS_F, HD_INS_F));
		struct t_flow *f = t_find(from, (int)y->vn, g);
		if (!f || f->there < 0 || f->there > tk.now) {
			missing = true;
			*why = f ? HD_IDLE_TRANSFER : HD_IDLE_DEPENDENCY;
		}
	}
	if (!missing)
		r->at = end - 1;
	return missing;
}

static long t_cost(int rank, const struct hd_ins *x)
{
	const struct hd_stage_cost *c = &tk.costs->stage[x->stage];
	int64_t t = x->op == HD_INS_F ? c->f : x->op == HD_INS_I ? c->i : x->op == HD_INS_W ? c->w : x->op == HD_INS_B ? c->i + c->w :
		x->op == HD_INS_R ? c->r :
		x->op == HD_INS_STEP ? c->step : 0;

	return (long)((double)t / tk.speed[rank]);
}

static void t_finish(int rank, const struct hd_ins *x)
{
	int s = x->stage, v = (int)x->vn;

	if (x->op == HD_INS_STEP)
		tk.stepped[rank][s] = true;
	if (x->op == HD_INS_SA || x->op == HD_INS_SG) {
		if (tk.transport == HD_TRANSPORT_EAGER || tk.transport == HD_TRANSPORT_BUFFERED)
			t_send(s, v, x->op == HD_INS_SG, rank);
		return;
	}
	if (x->op != HD_INS_F && x->op != HD_INS_B && x->op != HD_INS_I && x->op != HD_INS_W)
		return;
	bool f = x->op == HD_INS_F;
	tk.state[s][v] |= f ? 2 : x->op == HD_INS_I ? 8 | 128 : x->op == HD_INS_B ? 32 | 128 : 32;
	if (x->op == HD_INS_W)
		return;
	struct t_flow *in = f ? s ? t_find(s - 1, v, 0) : NULL : t_find(s + 1, v, 1);
	if (in)
		in->used = true;
	if (!tk.explicit)
		t_send(s, v, !f, rank);
}

static bool t_step_rank(int rank)
{
	struct t_rank *r = &tk.rank[rank];
	enum hd_idle why;
	bool moved = false;

	if (r->ended)
		return false;
	const struct hd_ilist *list = &tk.s->list[rank];
	if (r->computes) {
		if (r->end > tk.now)
			return false;
		r->computes = false;
		t_finish(rank, &list->at[r->at++]);
		moved = true;
	}
	if (r->at == list->len) {
		r->ended = true;
		return true;
	}
	const struct hd_ins *x = &list->at[r->at];
	if (t_blocked(r, rank, x, &why))
		return moved;
	x = &list->at[r->at];
	r->posted = false;
	r->computes = true;
	r->end = tk.now + t_cost(rank, x);
	r->busy += t_cost(rank, x);
	r->worked |= t_cost(rank, x) > 0;
	if (x->op == HD_INS_F)
		tk.state[x->stage][x->vn] |= 1 | (x->flags & HD_INS_CHECKPOINT ? 64 : 0);
	else if (x->op == HD_INS_R)
		tk.state[x->stage][x->vn] |= 4;
	else if (x->op == HD_INS_B || x->op == HD_INS_W)
		tk.state[x->stage][x->vn] |= 16;
	return true;
}

static bool t_step_flows(void)
{
	bool changed = false;

	for (int i = 0; i < tk.nflows; i++) {
		struct t_flow *f = &tk.flow[i];
		bool first = !f->moving && !f->moved;
		for (int k = 0; k < i && first; k++)
			first = tk.flow[k].moved || tk.flow[k].grad != f->grad || tk.flow[k].from != f->from || tk.flow[k].to != f->to ||
				(f->grad == 2 && !(tk.flow[k].in & f->in));
		if (first)
			changed = f->moving = true;
		if (f->moving && f->left <= 1e-6) {
			f->moving = false;
			changed = f->moved = true;
			f->there = tk.now + (f->grad == 2 ? 2 * tk.hop * (__builtin_popcount(f->in) > 2 ? 2 : 1) : tk.hop);
		}
	}
	return changed;
}

static int t_on(uint32_t mask, bool in)
{
	int most = 1;

	for (uint32_t r = 0; r < T_RANKS; r++) {
		int n = 0;
		for (int i = 0; i < tk.nflows; i++)
			n += tk.flow[i].moving && ((in ? tk.flow[i].in : tk.flow[i].out) >> r & 1);
		if (mask >> r & 1 && n > most)
			most = n;
	}
	return most;
}

static int64_t t_memory(int rank)
{
	int64_t sum = 0;

	for (int s = 0; s < (int)tk.s->nstages; s++) {
		const struct hd_stage_cost *c = &tk.costs->stage[s];
		bool holds = false;
		int partials = tk.stepped[rank][s] ? 0 : t_partials(rank, s, 0, 16);
		if (t_holders(s) && tk.came[s] == t_holders(s) && tk.flow[tk.sum[s]].there >= 0 && tk.flow[tk.sum[s]].there <= tk.now && !tk.stepped[rank][s])
			partials = partials > 1 ? 1 : partials;
		for (int v = 0; v < (int)tk.s->nvns; v++) {
			if (tk.where[s][v] != rank)
				continue;
			int st = tk.state[s][v];
			holds = true;
			partials += (st & 16) && !(st & 32);
			if (st & 1 && !(st & 32))
				sum += (st & 64 && !(st & 4) ? c->kept : c->saved + (st & 64 ? c->in : 0)) - (st & 8 ? c->saved - c->saved_w : 0);
		}
		sum += holds ? c->param + c->opt : 0;
		sum += partials * c->param;
	}
	/* receive slots */
	for (int from = 0; from < (int)tk.s->nranks; from++)
		for (int grad = 0; grad < 2; grad++) {
			uint32_t used = 0, nth = 0;
			for (int i = 0; i < tk.nflows; i++)
				used += tk.flow[i].from == from && tk.flow[i].to == rank && tk.flow[i].grad == grad && tk.flow[i].used;
			for (uint32_t i = 0; i < tk.s->list[from].len; i++) {
				const struct hd_ins *x = &tk.s->list[from].at[i];
				bool sends = tk.explicit ? x->op == (grad ? HD_INS_SG : HD_INS_SA) : !grad ? x->op == HD_INS_F :
					x->op == HD_INS_B || x->op == HD_INS_I;
				if (!sends || (grad ? x->stage == 0 : x->stage + 1u == tk.s->nstages) || t_user(x->stage, (int)x->vn, grad) != rank ||
				    from == rank)
					continue;
				const struct t_flow *f = t_find(x->stage, (int)x->vn, grad);
				bool open = tk.explicit && tk.transport == HD_TRANSPORT_BUFFERED ? nth < used + tk.credits : f != NULL;
				if (tk.explicit && tk.transport >= HD_TRANSPORT_RENDEZVOUS)
					open = tk.stands[x->stage][x->vn][grad] & 2;
				sum += open && !(f && f->used) ? grad ? tk.costs->stage[x->stage].in : tk.costs->stage[x->stage].out : 0;
				nth++;
			}
		}
	return sum;
}

static void t_tick(void)
{
	double rate[T_FLOWS];

	for (uint32_t r = 0; r < tk.s->nranks; r++) {
		struct t_rank *k = &tk.rank[r];
		enum hd_idle why = HD_IDLE_DRAIN;
		int64_t bytes = t_memory((int)r);
		k->peak = bytes > k->peak ? bytes : k->peak;
		if (!k->ended && !k->computes && t_blocked(k, (int)r, &tk.s->list[r].at[k->at], &why) && !k->worked)
			why = HD_IDLE_WARM_UP;
		k->idle[why] += !k->computes;
	}
	for (int i = 0; i < tk.nflows; i++) {
		int out = t_on(tk.flow[i].out, false), in = t_on(tk.flow[i].in, true);
		rate[i] = 1.0 / (out > in ? out : in);
	}
	for (int i = 0; i < tk.nflows; i++)
		tk.flow[i].left -= tk.flow[i].moving ? rate[i] : 0;
	tk.now++;
}

static void tick_through(const struct hd_schedule *s, const struct hd_sim_setting *set)
{
	bool changed, all, alive;

	memset(&tk, 0, sizeof tk);
	tk.s = s;
	tk.costs = set->costs;
	tk.speed = set->speed;
	tk.transport = set->transport;
	tk.credits = set->credits;
	tk.shared = set->cluster != NULL;
	tk.hop = (long)(set->cluster ? set->cluster->level[0].latency_ps : set->hop);
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *x = &s->list[r].at[i];
			tk.explicit |= x->op == HD_INS_SA || x->op == HD_INS_SG;
			if (x->op == HD_INS_F)
				tk.where[x->stage][x->vn] = (int)r;
		}
	do {
		do {
			changed = t_step_flows();
			for (uint32_t r = 0; r < s->nranks; r++)
				changed |= t_step_rank((int)r);
		} while (changed);
		all = true;
		for (uint32_t r = 0; r < s->nranks; r++)
			all &= tk.rank[r].ended;
		alive = false;
		for (uint32_t r = 0; r < s->nranks; r++)
			alive |= tk.rank[r].computes;
		for (int i = 0; i < tk.nflows; i++) {
			all &= tk.flow[i].there >= 0 && tk.flow[i].there <= tk.now;
			alive |= tk.flow[i].moving || tk.flow[i].there > tk.now;
		}
		if (!all && alive)
			t_tick();
	} while (!all && alive);
	tk.stuck = !all;
}

/* ---- both against each other on random costs, links and transports */

static uint32_t dice(uint32_t below)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 33) % below;
}

static struct hd_cluster small_cluster(uint32_t n, int64_t latency)
{
	struct hd_cluster c = { 0 };
	struct hd_diag diag = { "" };
	const struct hd_cluster_level level = { "net", n, 1e12, latency };

	CHECK(hd_cluster_make(&c, &level, 1, (struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag) == HD_OK, "%s", diag.text);
	return c;
}

static void dice_costs(struct hd_stage_costs *costs, uint32_t nstages)
{
	*costs = (struct hd_stage_costs){ .nstages = nstages, .ovl = 1, .comm_tax = 1, .stage = hd_arena_take(&arena, nstages, sizeof *costs->stage) };
	for (uint32_t s = 0; s < nstages; s++) {
		int64_t saved = 20 + dice(50);
		costs->stage[s] = (struct hd_stage_cost){ .f = 60 * (1 + dice(6)), .i = 60 * (1 + dice(6)), .w = 60 * (1 + dice(6)), .r = 60 * (1 + dice(3)),
			.saved = saved, .saved_w = saved / 3, .param = 60 * dice(5), .opt = dice(9), .step = 60 * dice(3) };
	}
	for (uint32_t s = 0; s + 1 < nstages; s++)
		costs->stage[s].out = costs->stage[s + 1].in = 60 * (1 + dice(5));
	for (uint32_t s = 0; s < nstages; s++)
		costs->stage[s].kept = costs->stage[s].in + (int64_t)dice(5);
}

static struct hd_schedule dice_schedule(void)
{
	static const struct { const char *name; uint32_t v; } kinds[] = {
		{ "gpipe", 1 }, { "1f1b", 1 }, { "interleaved", 2 }, { "zb-h1", 1 }, { "zb-v", 2 }, { "1f1b-rr", 1 }, { "v-half", 2 }, { "data-parallel", 1 },
	};
	static const uint32_t replicas[] = { 2, 1 };
	uint32_t k = dice(sizeof kinds / sizeof *kinds), p = 2 + dice(2), m = p + dice(4);
	struct hd_schedule s = { 0 }, out;
	struct hd_diag diag = { "" };
	struct hd_schedule_ask ask = { .name = kinds[k].name, .p = p, .m = m, .v = kinds[k].v };

	if (!strcmp(ask.name, "1f1b-rr")) {
		ask.p = 3;
		ask.replicas = replicas;
		ask.nreplicas = 2;
	}
	CHECK(hd_schedule_make(&s, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	if (dice(2)) {
		bool *again = hd_arena_take(&arena, s.nstages, sizeof *again);
		for (uint32_t i = 0; i < s.nstages; i++)
			again[i] = dice(2);
		CHECK(hd_schedule_recompute(&out, &s, again, &arena, &diag) == HD_OK, "%s", diag.text);
		s = out;
	}
	if (dice(2)) {
		CHECK(hd_schedule_updates(&out, &s, NULL, &arena, &diag) == HD_OK, "%s", diag.text);
		s = out;
	}
	return s;
}

static void compare(const struct hd_schedule *s, const struct hd_sim_setting *set, const char *what)
{
	struct hd_sim_plan sim = { 0 };
	struct hd_schedule lists = *s;
	struct hd_diag diag = { "" };

	if (set->transport != HD_TRANSPORT_EAGER)
		CHECK(hd_schedule_comms(&lists, s, &arena, &diag) == HD_OK, "%s", diag.text);
	tick_through(&lists, set);
	enum hd_err err = hd_sim_plan(&sim, s, set, &arena, &diag);
	CHECK((err == HD_E_BADPLAN) == tk.stuck, "%s: %s %s", what, s->heading, err ? diag.text : "ends, the clock does not");
	if (err)
		return;
	/* costs are such that even what shares a port ends on whole ticks */
	CHECK(sim.makespan == tk.now, "%s: %s: makespan %lld, the clock says %ld", what, s->heading, (long long)sim.makespan, tk.now);
	(void)run(s, set);
	for (uint32_t r = 0; r < s->nranks; r++) {
		const struct t_rank *k = &tk.rank[r];
		const struct hd_sim_share *have = &sim.rank[r];
		CHECK(have->busy == k->busy, "%s: %s: rank %u busy %lld, the clock says %ld", what, s->heading, r, (long long)have->busy, k->busy);
		/* of a group's tensors the one that came last says why: the clock looks at them one by one */
		for (int i = 0; i < HD_NIDLES; i++)
			CHECK((set->transport == HD_TRANSPORT_GROUPED && i >= HD_IDLE_DEPENDENCY) || have->idle[i] == k->idle[i],
				"%s: %s: rank %u %s %lld, the clock says %ld", what, s->heading, r, hd_idle_names[i],
				(long long)have->idle[i], k->idle[i]);
		if (!set->cluster)
			CHECK(have->peak == k->peak, "%s: %s: rank %u peak %lld at #%u, the clock says %lld", what, s->heading, r, (long long)have->peak,
				have->peak_at, (long long)k->peak);
	}
}

static void it_agrees_with_a_clock_that_ticks(void **state)
{
	uint32_t stuck = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct hd_schedule s = dice_schedule();
		struct hd_stage_costs costs;
		double speed[T_RANKS] = { 1, dice(2) ? 1 : 0.5, dice(2) ? 1 : 2 };
		char what[64];
		dice_costs(&costs, s.nstages);
		struct hd_cluster cluster = small_cluster(s.nranks, 60 * (int64_t)dice(3));
		struct hd_sim_setting set = { .costs = &costs, .cluster = round % 2 ? &cluster : NULL, .hop = 60 * (int64_t)dice(4), .speed = speed,
			.transport = (enum hd_transport)dice(HD_NTRANSPORTS), .credits = 1 + dice(3) };
		snprintf(what, sizeof what, "round %d, %s %u%s", round, hd_transport_names[set.transport], set.credits, set.cluster ? ", links" : "");
		compare(&s, &set, what);
		stuck += tk.stuck;
		hd_arena_reset(&arena);
	}
	CHECK(stuck > 5 && stuck < 150, "%u of 300 end in a circle", stuck);
}

/* ---- laws, with a fixed time a hop */

static void slower_parts_and_stricter_transports_never_help(void **state)
{
	static const enum hd_transport order[] = { HD_TRANSPORT_EAGER, HD_TRANSPORT_BUFFERED, HD_TRANSPORT_RENDEZVOUS };
	uint32_t met = 0;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct hd_schedule s = dice_schedule();
		struct hd_stage_costs costs;
		int64_t before = 0;
		dice_costs(&costs, s.nstages);
		struct hd_sim_setting set = { .costs = &costs, .hop = 60 * (int64_t)dice(4), .credits = 2 };
		for (int t = 0; t < 3; t++) {
			struct hd_sim_plan sim;
			set.transport = order[t];
			enum hd_err err = hd_sim_plan(&sim, &s, &set, &arena, NULL);
			if (err == HD_E_BADPLAN)
				break;                               /* it ends in a circle */
			assert_int_equal(err, HD_OK);
			CHECK(sim.makespan >= before, "round %d: %s: %s takes %lld, the one before %lld", round, s.heading, hd_transport_names[order[t]],
				(long long)sim.makespan, (long long)before);
			before = sim.makespan;
			met += t == 2;
		}
		set.transport = HD_TRANSPORT_EAGER;
		before = run(&s, &set).makespan;
		struct hd_stage_cost *one = &costs.stage[dice(s.nstages)];
		int64_t *const part[] = { &one->f, &one->i, &one->w, &one->r, &one->step, &set.hop };
		*part[dice(6)] += 1 + dice(200);
		CHECK(run(&s, &set).makespan >= before, "round %d: %s: faster with a slower part", round, s.heading);
		hd_arena_reset(&arena);
	}
	CHECK(met > 20, "%u ended under rendezvous", met);
}

/* ---- by hand */

static struct hd_schedule named(const char *name, uint32_t p, uint32_t m)
{
	struct hd_schedule s = { .heading = name };
	struct hd_diag diag = { "" };

	CHECK(hd_schedule_make(&s, &(struct hd_schedule_ask){ .name = name, .p = p, .m = m }, &arena, &diag) == HD_OK, "%s: %s", name, diag.text);
	return s;
}

static struct hd_schedule lists(const char *text)
{
	struct hd_schedules all;
	struct hd_diag diag = { "" };

	CHECK(hd_schedules_parse(&all, text, strlen(text), "lists", &arena, &diag) == HD_OK, "%s", diag.text);
	return all.at[0];
}

/* Stages of 100 forward, 60 and 40 backward, 50 again; 1000 bytes of weights, 300 of activations (90 for W), 20 of input. */
static struct hd_stage_costs plain(uint32_t nstages)
{
	struct hd_stage_costs c = { .nstages = nstages, .ovl = 1, .comm_tax = 1, .stage = hd_arena_take(&arena, nstages, sizeof *c.stage) };

	for (uint32_t s = 0; s < nstages; s++)
		c.stage[s] = (struct hd_stage_cost){ .f = 100, .i = 60, .w = 40, .r = 50, .saved = 300, .saved_w = 90, .kept = 20, .in = s ? 20 : 0,
			.out = s + 1 < nstages ? 20 : 0, .param = 1000, .opt = 70, .work = 5, .step = 8 };
	return c;
}

static struct hd_cluster two_servers(double inner, double outer, int64_t latency)
{
	const struct hd_cluster_level level[] = { { "server", 2, inner, 0 }, { "net", 2, outer, latency } };
	struct hd_cluster c = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_cluster_make(&c, level, 2, (struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag) == HD_OK, "%s", diag.text);
	return c;
}

static void sums_go_over_the_slowest_level_beside_compute(void **state)
{
	/* four holders: 1000 bytes * 3/4 * 2 over the network at 0.1 byte a tick: 15000; and 2 * 2 latencies of 7 */
	struct hd_schedule s = lists("0: F0.0 B0.0 RED0 F0.4 STEP0\n"
		"1: F0.1 B0.1 RED0 F0.5 STEP0\n2: F0.2 B0.2 RED0 F0.6 STEP0\n3: F0.3 B0.3 RED0 F0.7 STEP0\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_cluster c = two_servers(1e12, 1e11, 7);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &c, .spans = true };

	(void)state;
	struct hd_sim_plan sim = run(&s, &set);
	assert_int_equal(sim.span[0][2].start, 200);
	assert_int_equal(sim.span[0][2].end, 200 + 15000 + 28);
	assert_int_equal(sim.span[0][3].end, 300);                   /* F1 does not wait */
	assert_int_equal(sim.makespan, 200 + 15028 + 8);
	assert_int_equal(sim.rank[0].idle[HD_IDLE_TRANSFER], 15228 - 300);
	assert_int_equal(sim.nlinks, 2);                             /* a port out of each server */
	assert_int_equal(sim.link[0].bytes, 1500);
	assert_int_equal(sim.link[0].busy, 15000);
	/* weights, optimizer and workspace, one buffer of the sum, and its own activations */
	assert_int_equal(sim.rank[0].peak, 1075 + 1000 + 300);
	/* two buckets go one after the other, half each */
	struct hd_schedule b = lists("0: F0.0 B0.0 RED0#1 RED0#2 STEP0\n1: F0.1 B0.1 RED0#1 RED0#2 STEP0\n");
	costs = plain(1);
	struct hd_cluster two = small_cluster(2, 0);
	const struct hd_sim_setting bucket = { .costs = &costs, .cluster = &two, .spans = true };
	sim = run(&b, &bucket);
	assert_int_equal(sim.span[1][2].end, 200 + 500);
	assert_int_equal(sim.span[1][3].start, 700);
	assert_int_equal(sim.makespan, 200 + 1000 + 8);
}

static void a_sum_leaves_one_buffer(void **state)
{
	/* each rank holds every other virtual node: no two of its sums join */
	struct hd_schedule s = lists("0: F0.0 B0.0 F0.2 B0.2 RED0 NORM F0.4 F0.6\n1: F0.1 B0.1 F0.3 B0.3 RED0 NORM F0.5 F0.7\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_cluster two = small_cluster(2, 0);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &two, .spans = true };

	(void)state;
	costs.stage[0].param = 100;
	struct hd_sim_plan sim = run(&s, &set);
	assert_int_equal(sim.rank[0].peak, 100 + 75 + 600 + 100);
	assert_int_equal(sim.span[0][4].end, 400 + 100 * 3 / 2);      /* two sums over, one back, half of each */
}

static void norms_ties_and_barriers_wait_for_all(void **state)
{
	struct hd_schedule s = lists("0: F0.0 B0.0 TIE0 NORM STEP0\n1: F1.0 B1.0 TIE0 NORM STEP1\n");
	struct hd_stage_costs costs = plain(2);
	struct hd_tied_group tied = { "words", 400, 2, NULL };
	struct hd_cluster c = small_cluster(2, 5);
	const struct hd_sim_setting set = { .costs = &costs, .cluster = &c, .spans = true };

	(void)state;
	costs.stage[0].out = costs.stage[1].in = 0;
	costs.tied = &tied;
	costs.ntied = 1;
	struct hd_sim_plan sim = run(&s, &set);
	/* F0, hop 5, F1, B1, hop 5, B0; then 400 bytes * 1/2 * 2 and 2 latencies; NORM 2 latencies; STEP */
	assert_int_equal(sim.span[1][2].start, 100 + 5 + 200 + 5 + 100);
	assert_int_equal(sim.span[1][2].end, 410 + 400 + 10);
	assert_int_equal(sim.span[1][3].end, 820 + 10);
	assert_int_equal(sim.makespan, 830 + 8);
}

static void offloaded_activations_leave_and_come_back(void **state)
{
	struct hd_schedule s = lists("0: F0.0 OFF0.0 F0.1 ON0.0 B0.0 B0.1\n");
	struct hd_stage_costs costs = plain(1);
	struct hd_sim_setting set = { .costs = &costs, .host_bytes_per_s = 1e13, .spans = true };

	(void)state;
	costs.stage[0].param = 10;
	/* 300 bytes take 30: off from 100 to 130, on from 200 to 230 */
	struct hd_sim_plan sim = run(&s, &set);
	assert_int_equal(sim.makespan, 200 + 30 + 200);
	assert_int_equal(sim.rank[0].idle[HD_IDLE_TRANSFER] + sim.rank[0].idle[HD_IDLE_DEPENDENCY], 30);
	/* at most: both activations and the gradient while B0.0 runs */
	assert_int_equal(sim.rank[0].peak, 85 + 600 + 10);
	set.host_bytes_per_s = 1e11;                                 /* 3000 each way: B0.0 waits for both */
	sim = run(&s, &set);
	assert_int_equal(sim.makespan, 100 + 3000 + 3000 + 200);
	/* the rank does not stand at ON: another forward runs first */
	struct hd_schedule later = lists("0: F0.0 OFF0.0 ON0.0 F0.1 B0.0 B0.1\n");
	sim = run(&later, &set);
	assert_int_equal(sim.span[0][3].end, 200);
	assert_int_equal(sim.makespan, 100 + 3000 + 3000 + 200);
	assert_int_equal(sim.rank[0].peak, 85 + 900);
}

static void pinned_versions_are_kept(void **state)
{
	struct hd_schedule s = lists("0: PIN0@0 F0.0 B0.0 STEP0@1 PIN0@1 F0.1 REL0@0 B0.1 STEP0@2 REL0@1\n");
	struct hd_stage_costs costs = plain(1);
	const struct hd_stage_rule rule = { 1, 1 };
	const struct hd_schedule_job job = { .rule = &rule };
	const struct hd_sim_setting set = { .costs = &costs, .job = &job };

	(void)state;
	struct hd_sim_plan sim = run(&s, &set);
	/* version 0 is beside 1 while F0.1 runs; version 1 beside 2 for no time; a gradient while B runs */
	assert_int_equal(sim.rank[0].peak, 1075 + 300 + 1000);
	assert_true(sim.rank[0].at_peak[HD_MEMORY_VERSIONS] + sim.rank[0].at_peak[HD_MEMORY_PARTIALS] == 1000);
	/* without pins: as many as the rule keeps */
	struct hd_schedule bare = lists("0: F0.0 B0.0 F0.1 B0.1\n");
	assert_int_equal(run(&bare, &set).rank[0].at_peak[HD_MEMORY_VERSIONS], 1000);
}

static void pairs_overlap_and_transfers_tax_compute(void **state)
{
	struct hd_schedule pair = lists("0: F0.0 (F0.1&B0.0) B0.1\n"), far = lists("0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n");
	struct hd_stage_costs costs = plain(1), two = plain(2);
	struct hd_cluster c = small_cluster(2, 0);

	(void)state;
	costs.ovl = 0.75;
	assert_int_equal(run(&pair, &(struct hd_sim_setting){ .costs = &costs }).makespan, 100 + 150 + 100);
	/* F0.0 ends at 100; while its 50 bytes go, F0.1 takes twice its time: 50 ticks do 25, then 75 more */
	two.comm_tax = 2;
	two.stage[0].out = two.stage[1].in = 50;
	struct hd_sim_plan sim = run(&far, &(struct hd_sim_setting){ .costs = &two, .cluster = &c, .spans = true });
	assert_int_equal(sim.span[0][1].end, 100 + 50 + 75);
	/* F1.0 from 150; the second tensor goes from 225: of F1.0 75 are done, of the other 25 half while it goes, until 275 */
	assert_int_equal(sim.span[1][0].end, 225 + 50);
}

static void steps_repeat_and_give_a_rate(void **state)
{
	struct hd_schedule s = named("1f1b", 2, 4);
	struct hd_stage_costs costs = plain(2);
	const struct hd_sim_setting set = { .costs = &costs, .steps = 6 };

	(void)state;
	costs.stage[0].out = costs.stage[1].in = 0;
	struct hd_sim_plan sim = run(&s, &set);
	assert_int_equal(sim.steps, 6);
	/* a step is 4 virtual nodes of 200 ticks, and one more stage to fill */
	assert_int_equal(sim.step_end[5] - sim.step_end[1], 4 * 1000);
	CHECK(hd_sim_plan_rate(&sim) > 3.99e9 && hd_sim_plan_rate(&sim) < 4.01e9, "%g", hd_sim_plan_rate(&sim));
}

static void noise_follows_the_seed_alone(void **state)
{
	struct hd_schedule s = named("1f1b", 3, 40);
	struct hd_stage_costs costs = plain(3);
	struct hd_sim_setting set = { .costs = &costs, .noise = true, .seed = 7 };
	int64_t quiet = run(&s, &(struct hd_sim_setting){ .costs = &costs }).makespan;

	(void)state;
	for (uint32_t k = 0; k < 3; k++) {
		costs.stage[k].f *= 1000000;
		costs.stage[k].of_f = (struct hd_spread){ costs.stage[k].f, costs.stage[k].f / 10 };
	}
	quiet = run(&s, &(struct hd_sim_setting){ .costs = &costs }).makespan;
	int64_t one = run(&s, &set).makespan, again = run(&s, &set).makespan;
	set.seed = 8;
	int64_t other = run(&s, &set).makespan;
	assert_true(one == again && one != other && one != quiet);
	CHECK(one > quiet * 9 / 10 && one < quiet * 13 / 10, "%lld, %lld without noise", (long long)one, (long long)quiet);
	/* the mean of many draws is the mean, their deviation the deviation */
	double sum = 0, square = 0;
	for (uint32_t i = 0; i < 4000; i++) {
		double d = (double)(hd_sim_draw(3, 1, 2, i, 0, &(struct hd_spread){ 100000, 1000 }) - 100000) / 1000;
		sum += d;
		square += d * d;
	}
	CHECK(sum / 4000 < 0.06 && sum / 4000 > -0.06 && square / 4000 > 0.92 && square / 4000 < 1.08, "mean %g, variance %g", sum / 4000, square / 4000);
}

static void what_is_odd_is_warned_of(void **state)
{
	struct hd_schedule s = lists("p 3\n0: F0.0 B0.0\n1: F1.0 B1.0\n2: BAR0\n");
	struct hd_stage_costs costs = plain(2);
	struct hd_sim_warning w[HD_SIM_WARNINGS];
	const struct hd_stage_rule rule[] = { { 1, 9 }, { 1, 0 } };
	const struct hd_schedule_job job = { .rule = rule };

	(void)state;
	costs.stage[0].f = 900;
	struct hd_sim_plan sim = run(&s, &(struct hd_sim_setting){ .costs = &costs, .job = &job });
	assert_int_equal(hd_sim_plan_warnings(&sim, w, HD_SIM_WARNINGS), 3);
	assert_string_equal(w[0].text, "the slowest rank works 67 % longer than the mean of all: other cuts would balance the stages");
	assert_string_equal(w[1].text, "rank 2 has no work");
	assert_string_equal(w[2].text, "rank 0: older versions of weights are 9000 of its 11395 bytes at most");
	assert_int_equal(hd_sim_plan_warnings(&sim, w, 1), 1);
	s = named("gpipe", 4, 2);
	costs = plain(4);
	sim = run(&s, &(struct hd_sim_setting){ .costs = &costs });
	assert_int_equal(hd_sim_plan_warnings(&sim, w, HD_SIM_WARNINGS), 1);
	assert_string_equal(w[0].text, "the bubble is 150 % of the busiest rank's work: more virtual nodes a step, or fewer ranks, make it smaller");
}

/* 2^62 ticks, or told: no time is taken for none. */
static void slower_links_take_longer_or_are_refused(void **state)
{
	static const double slower[] = { 1e15, 1e12, 1e9, 1e6, 1e5, 1e4, 1e3, 100, 10, 1 };
	const struct { const char *lists; uint32_t nstages; int64_t moved; } cases[] = {
		{ "0: F0.0 F0.1 B0.0 B0.1\n1: F1.0 B1.0 F1.1 B1.1\n", 2, 20 * 2 },             /* a way at least */
		{ "0: F0.0 B0.0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", 1, 1000 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (int64_t larger = 1; larger <= 1000000000; larger *= 1000) {
			struct hd_schedule s = lists(cases[k].lists);
			struct hd_stage_costs costs = plain(cases[k].nstages);
			struct hd_sim_plan sim, before = { 0 };
			bool refused = false;
			for (uint32_t i = 0; i < costs.nstages; i++) {
				costs.stage[i].in *= larger;
				costs.stage[i].out *= larger;
				costs.stage[i].param *= larger;
			}
			for (size_t b = 0; b < sizeof slower / sizeof *slower; b++) {
				const struct hd_cluster_level level = { "net", 2, slower[b], 0 };
				struct hd_cluster c;
				struct hd_diag diag = { "" };
				assert_int_equal(hd_cluster_make(&c, &level, 1, (struct hd_cluster_kind){ "any", 1, 0 }, &arena, &diag), HD_OK);
				const struct hd_sim_setting set = { .costs = &costs, .cluster = &c };
				double least = (double)(cases[k].moved * larger) * 1e12 / slower[b];
				enum hd_err err = hd_sim_plan(&sim, &s, &set, &arena, &diag);
				CHECK(err == HD_OK || (err == HD_E_INVAL && least > 0x1p58), "case %zu: %lld times at %g B/s: %s", k, (long long)larger,
					slower[b], diag.text);
				CHECK(!err || strstr(diag.text, "raise bytes_per_s"), "%s", diag.text);
				CHECK(err || (!refused && sim.makespan >= before.makespan && (double)sim.makespan >= least),
					"case %zu: %lld times at %g B/s: %lld", k, (long long)larger, slower[b], (long long)sim.makespan);
				refused |= err != HD_OK;
				before = err ? before : sim;
			}
			CHECK(refused == (larger > 1000), "case %zu: %lld times", k, (long long)larger);
		}
}

static void what_cannot_be_simulated_is_refused(void **state)
{
	struct hd_stage_costs costs = plain(2);
	struct hd_stage_costs long_work = plain(2), long_sums = plain(1);
	struct hd_cluster c = small_cluster(2, 0);
	const uint32_t device[] = { 0, 5 };
	const double speed[] = { 1, 0 }, slow[] = { 1, 1e-18 };
	const struct { const char *lists; struct hd_sim_setting set; const char *says; } cases[] = {
		{ "0: F0.0 B0.0\n1: B1.0 F1.0\n", { .costs = &costs }, "it never ends: rank 0 waits at #1 B0.0, rank 1 at #0 B1.0" },
		{ "0: F0.0 B0.0 F0.0\n1: F1.0 B1.0\n", { .costs = &costs }, "forward of stage 0, virtual node 0 stands twice, on ranks 0 and 0" },
		{ "0: F0.0 B0.0\n", { .costs = &costs }, "costs of 2 stages for a schedule of 1" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .cluster = &c, .device = device }, "rank 1 is on device 5; the cluster has 2" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .speed = speed }, "rank 1 has speed 0; it is above 0" },
		{ "0: F0.0 RA0.0<1 B0.0\n1: F1.0 B1.0\n", { .costs = &costs }, "rank 0, #1: stage 0 has nothing to receive" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &long_work }, "(2^62 ticks), the most that is simulated: lower the costs" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .speed = slow }, "4.61e+06 s (2^62 ticks), the most that is simulated" },
		{ "0: F0.0 B0.0\n1: F1.0 B1.0\n", { .costs = &costs, .hop = INT64_MAX }, "(2^62 ticks), the most that is simulated" },
		{ "0: F0.0 B0.0 RED0 STEP0\n1: F0.1 B0.1 RED0 STEP0\n", { .costs = &long_sums, .cluster = &c }, "(2^62 ticks), the most that is" },
		{ "0: F0.0 OFF0.0 ON0.0 B0.0\n", { .costs = &long_sums, .host_bytes_per_s = 1e-20 }, "raise the bytes per second between" },
		{ "0: F0.0 RED0 B0.0 RED1\n1: F1.0 RED1 B1.0 RED0\n", { .costs = &costs }, "RED0 never begins: it stands behind another on rank 1" },
	};

	(void)state;
	long_work.stage[0].f = long_work.stage[1].i = INT64_MAX;
	long_sums.stage[0].add = INT64_MAX;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct hd_schedule s = lists(cases[k].lists);
		struct hd_sim_plan sim = { 0 };
		struct hd_diag diag = { "" };
		enum hd_err err = hd_sim_plan(&sim, &s, &cases[k].set, &arena, &diag);
		CHECK(err != HD_OK && strstr(diag.text, cases[k].says), "case %zu: %s", k, diag.text);
		assert_null(sim.rank);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_simulators_agree_on_every_family, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(both_simulators_agree_on_the_stored_schedules, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(it_agrees_with_a_clock_that_ticks, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(slower_parts_and_stricter_transports_never_help, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(sums_go_over_the_slowest_level_beside_compute, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(a_sum_leaves_one_buffer, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(norms_ties_and_barriers_wait_for_all, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(offloaded_activations_leave_and_come_back, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(pinned_versions_are_kept, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(pairs_overlap_and_transfers_tax_compute, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(steps_repeat_and_give_a_rate, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(noise_follows_the_seed_alone, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_is_odd_is_warned_of, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(slower_links_take_longer_or_are_refused, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_cannot_be_simulated_is_refused, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
