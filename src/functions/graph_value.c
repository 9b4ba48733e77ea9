#include "functions/graph_value.h"

#include <math.h>
#include <string.h>

#define FLOAT 4.0                                 /* bytes of a column */
#define EDGES_OF_INTERVAL 1e6
enum { INTERVALS_LEAST = 16, INTERVALS_MOST = 4096, CALLS_MOST = 1 << 30 };

const char *const hd_gval_models[] = { "gcn", "gat" };

#define REDDIT_SMALL { "reddit-small", 232.9e3, 114.8e6, { 602, 128, 41 } }
#define REDDIT_LARGE { "reddit-large", 1.1e6, 1.3e9, { 301, 128, 50 } }
#define AMAZON       { "amazon", 9.2e6, 313.9e6, { 300, 64, 25 } }
#define FRIENDSTER   { "friendster", 65.6e6, 3.6e9, { 32, 48, 50 } }
/* links: what they carry all the time */
#define C5_2  { "c5.2xlarge", 8, 0.34, 2.5e9 / 8 }
#define C5N_2 { "c5n.2xlarge", 8, 0.432, 10e9 / 8 }
#define C5N_4 { "c5n.4xlarge", 16, 0.864, 15e9 / 8 }

const struct hd_gval_run hd_gval_runs[] = {
	{ HD_GVAL_GCN, REDDIT_SMALL, C5_2, 2, 1005.4, 0.19, 860.6, 0.20, 1.11 },
	{ HD_GVAL_GCN, REDDIT_LARGE, C5N_2, 12, 1290.5, 1.85, 1020.1, 1.69, 1.38 },
	{ HD_GVAL_GCN, AMAZON, C5N_2, 8, 710.2, 0.68, 512.7, 0.79, 1.19 },
	{ HD_GVAL_GCN, FRIENDSTER, C5N_4, 32, 1990.8, 15.3, 1133.3, 13.8, 1.95 },
	{ HD_GVAL_GAT, REDDIT_SMALL, C5_2, 10, 1270.4, 1.20, 496.3, 1.15, 2.67 },
	{ HD_GVAL_GAT, AMAZON, C5N_2, 12, 2092.7, 3.01, 853.4, 2.67, 2.76 },
	{ .graph = { .name = NULL } },
};

/* ---- phases */

struct gval_making { struct hd_gval_phase *phase; uint32_t n; };

static void add_edges(struct gval_making *m, bool waits, double plain, double weighted, double softmax)
{
	m->phase[m->n++] = (struct hd_gval_phase){ .kind = HD_GVAL_EDGES, .waits = waits, .plain = plain,
		.weighted = weighted, .softmax = softmax };
}

static void add_send(struct gval_making *m, uint32_t columns)
{
	m->phase[m->n++] = (struct hd_gval_phase){ .kind = HD_GVAL_SEND, .sent = columns };
}

/* Dense work after dense work is one phase: what lies between them is not sent, `joined` columns more are. */
static void add_dense(struct gval_making *m, double flops, uint32_t in, uint32_t joined, uint32_t out)
{
	struct hd_gval_phase *last = m->n ? &m->phase[m->n - 1] : NULL;

	if (!last || last->kind != HD_GVAL_DENSE) {
		last = &m->phase[m->n++];
		*last = (struct hd_gval_phase){ .kind = HD_GVAL_DENSE, .in = in };
	} else {
		last->in += joined;
	}
	last->flops += flops;
	last->out = out;
}

/* The product goes first where it makes rows narrower. */
static void gcn_forward(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b)
{
	const double flops = 2.0 * a * b;

	if (b < a) {
		add_dense(m, flops, a, 0, b);
		add_send(m, b);
		add_edges(m, true, b, 0, 0);
		return;
	}
	if (layer)
		add_send(m, a);
	add_edges(m, layer > 0, a, 0, 0);
	add_dense(m, flops, a, 0, b);
}

static void gcn_backward(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b)
{
	const double flops = 2.0 * a * b * (layer ? 2 : 1);

	if (b < a) {
		add_send(m, b);
		add_edges(m, true, b, 0, 0);
		add_dense(m, flops, a + b, a, layer ? a : 0);
		return;
	}
	/* beside the loss the gathered rows are there already */
	add_dense(m, flops, a + b, layer + 1 == HD_GVAL_LAYERS ? 0 : a, layer ? a : 0);
	if (layer) {
		add_send(m, a);
		add_edges(m, true, a, 0, 0);
	}
}

/* With s and t of the weights; back go t, the maximum, the sum and c of each target. */
static void gat_forward(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b)
{
	(void)layer;
	add_dense(m, 2.0 * a * b + 4.0 * b, a, 0, b + 2);
	add_send(m, b + 1);
	add_edges(m, true, 0, b, 1);
}

static void gat_backward(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b)
{
	add_edges(m, false, 0, b, 1);
	add_send(m, b + 4);
	add_edges(m, true, 0, b, 2);
	add_dense(m, 2.0 * a * b * (layer ? 2 : 1) + 8.0 * b, a + b, 0, layer ? a : 0);
}

static const struct {
	void (*forward)(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b);
	void (*backward)(struct gval_making *m, uint32_t layer, uint32_t a, uint32_t b);
} layers_of[HD_GVAL_NMODELS] = { { gcn_forward, gcn_backward }, { gat_forward, gat_backward } };

uint32_t hd_gval_phases(enum hd_gval_model model, const uint32_t width[], struct hd_gval_phase *phase)
{
	struct gval_making m = { phase, 0 };
	const uint32_t classes = width[HD_GVAL_LAYERS];

	for (uint32_t l = 0; l < HD_GVAL_LAYERS; l++)
		layers_of[model].forward(&m, l, width[l], width[l + 1]);
	add_dense(&m, 0, classes, 0, classes);
	for (uint32_t l = HD_GVAL_LAYERS; l-- > 0;)
		layers_of[model].backward(&m, l, width[l], width[l + 1]);
	return m.n;
}

/* ---- one epoch of a machine */

struct playing {
	const struct hd_gval_task *task;
	uint32_t ntasks, intervals, cores, slots;
	double core[HD_GVAL_CORES], slot[HD_GVAL_SLOTS], link;    /* free from then on */
	uint32_t *next;                   /* phase of each interval */
	double *ready;
	uint32_t done[HD_GVAL_PHASES];
	double last[HD_GVAL_PHASES];      /* when the last interval has it */
};

/* Where a task would be, and when. */
struct chance { double begin, end; uint32_t interval, phase; bool call; };

static uint32_t first_free(const double *at, uint32_t n)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < n; i++)
		if (at[i] < at[least])
			least = i;
	return least;
}

static bool may(const struct playing *p, uint32_t i, double core, double slot, struct chance *c)
{
	const uint32_t phase = p->next[i];
	const struct hd_gval_task *t = &p->task[phase];

	if (phase == p->ntasks || (t->waits && phase && p->done[phase - 1] < p->intervals))
		return false;
	const double ready = t->waits && phase ? p->last[phase - 1] : p->ready[i];
	const double begin = fmax(ready, t->kind == HD_GVAL_SEND ? p->link : core);
	*c = (struct chance){ begin, begin + t->here, i, phase, false };
	if (t->kind == HD_GVAL_DENSE && p->slots) {
		const double called = fmax(ready, fmax(slot, p->link));
		const double end = called + t->invoke + t->call;
		if (end < c->end)
			*c = (struct chance){ called, end, i, phase, true };
	}
	return true;
}

static bool before(const struct playing *p, const struct chance *a, const struct chance *b)
{
	const bool a_dense = p->task[a->phase].kind == HD_GVAL_DENSE;
	const bool b_dense = p->task[b->phase].kind == HD_GVAL_DENSE;

	if (a->begin < b->begin || b->begin < a->begin)
		return a->begin < b->begin;
	if (a_dense != b_dense)
		return b_dense;
	return a->phase < b->phase;
}

static void take(struct playing *p, const struct chance *c, uint32_t core, uint32_t slot,
	struct hd_gval_played *played)
{
	const struct hd_gval_task *t = &p->task[c->phase];

	if (c->call) {
		p->slot[slot] = c->end;
		p->link = c->begin + t->rows;
		played->calls[c->phase]++;
	} else if (t->kind == HD_GVAL_SEND) {
		p->link = c->end;
	} else {
		p->core[core] = c->end;
		played->core_s += t->here;
		played->dense_s += t->kind == HD_GVAL_DENSE ? t->here : 0;
	}
	p->next[c->interval]++;
	p->ready[c->interval] = c->end;
	p->done[c->phase]++;
	p->last[c->phase] = fmax(p->last[c->phase], c->end);
	played->seconds = fmax(played->seconds, c->end);
}

enum hd_err hd_gval_play(const struct hd_gval_task *task, uint32_t ntasks, uint32_t intervals, uint32_t cores,
	uint32_t slots, struct hd_arena *arena, struct hd_gval_played *played, struct hd_diag *diag)
{
	struct playing p = { .task = task, .ntasks = ntasks, .intervals = intervals, .cores = cores,
		.slots = slots };

	if (ntasks > HD_GVAL_PHASES || !cores || cores > HD_GVAL_CORES || slots > HD_GVAL_SLOTS ||
		!intervals ||
		intervals > INTERVALS_MOST)
		return hd_fail(diag, HD_E_INVAL, "%u phases of %u intervals on %u cores and %u slots: at "
			"most "
			"%d, %d, %d and %d can be played", ntasks, intervals, cores, slots, HD_GVAL_PHASES,
			INTERVALS_MOST, HD_GVAL_CORES, HD_GVAL_SLOTS);
	p.next = hd_arena_take(arena, intervals, sizeof *p.next);
	p.ready = hd_arena_take(arena, intervals, sizeof *p.ready);
	if (!p.next || !p.ready)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u intervals", intervals);
	*played = (struct hd_gval_played){ .seconds = 0 };
	memset(p.next, 0, intervals * sizeof *p.next);
	for (uint32_t i = 0; i < intervals; i++)
		p.ready[i] = 0;
	for (uint64_t left = (uint64_t)ntasks * intervals; left; left--) {
		const uint32_t core = first_free(p.core, cores), slot = first_free(p.slot, slots);
		struct chance best = { .begin = INFINITY }, c;
		for (uint32_t i = 0; i < intervals; i++)
			if (may(&p, i, p.core[core], p.slot[slot], &c) && before(&p, &c, &best))
				best = c;
		take(&p, &best, core, slot, played);
	}
	return HD_OK;
}

/* ---- a published run */

double hd_gval_ghosts(const struct hd_gval_graph *g, uint32_t machines, double cut)
{
	const double degree = g->edges / g->vertices;

	return machines < 2 ? 0 : (g->vertices - g->vertices / machines) *
		(1 - pow(1 - cut / machines, degree));
}

/* Of one machine: the job's number is a power of two. */
static uint32_t intervals_of(const struct hd_gval_run *run)
{
	const double wanted = exp2(ceil(log2(run->graph.edges / EDGES_OF_INTERVAL)));
	const double all = fmin(fmax(wanted, INTERVALS_LEAST), INTERVALS_MOST);

	return (uint32_t)ceil(all / run->machines);
}

static struct hd_gval_task task_of(const struct hd_gval_run *run, const struct hd_gval_phase *f,
	const struct hd_gval_rates *r, uint32_t intervals)
{
	const double share = 1.0 / ((double)run->machines * intervals);
	const double rows = run->graph.vertices * share, edges = run->graph.edges * share;
	const double bytes = rows * (f->in + f->out) * FLOAT, link = run->machine.link;
	struct hd_gval_task t = { .kind = f->kind, .waits = f->waits };

	if (f->kind == HD_GVAL_SEND) {
		t.here = hd_gval_ghosts(&run->graph, run->machines,
			r->cut) / intervals * f->sent * FLOAT / link;
	} else if (f->kind == HD_GVAL_EDGES) {
		t.here = edges * (f->plain / r->gather_per_s + f->weighted / r->weighted_per_s +
			f->softmax / r->softmax_per_s);
	} else {
		t.here = rows * f->flops / r->flops_per_s;
		t.invoke = r->invoke_ms * 1e-3;
		t.rows = bytes / link;
		t.call = r->call_ms * 1e-3 + bytes / fmin(r->function_bytes_s, link) +
			t.here * 1769 / r->memory_mb;
	}
	return t;
}

static enum hd_err price_of(const struct hd_gval_run *run, const struct hd_gval_task *task, uint32_t ntasks,
	const struct hd_gval_rates *r, const struct hd_fn_price *price, const struct hd_gval_played *played,
	struct hd_gval_priced *out, struct hd_diag *diag)
{
	double ms_mb = 0, calls = 0;

	for (uint32_t p = 0; p < ntasks; p++) {
		const double n = (double)played->calls[p] * run->machines;
		calls += n;
		if (n > 0 && task[p].call < 1e6)
			ms_mb += n * (double)hd_fn_billed_ms(price, (int64_t)(task[p].call * 1e9)) *
				r->memory_mb;
		else if (n > 0)
			calls = CALLS_MOST;
	}
	const int64_t nano = calls < CALLS_MOST && ms_mb < 9e18 ?
		hd_fn_price_nano(price, (int64_t)ms_mb, (int64_t)calls) : -1;
	if (nano < 0)
		return hd_fail(diag, HD_E_INVAL, "%s: calls of functions are too long to be priced; look at "
			"the "
			"rates", run->graph.name);
	out->seconds = played->seconds;
	out->calls = calls;
	out->usd = played->seconds * run->machines * run->machine.usd_h / 3600 + (double)nano * 1e-9;
	return HD_OK;
}

static double value_of(const struct hd_gval_priced *p) { return 1 / (p->seconds * p->usd); }

enum hd_err hd_gval_answer(const struct hd_gval_run *run, const struct hd_gval_rates *r,
	const struct hd_fn_price *price, struct hd_arena *arena, struct hd_gval_answer *a,
		struct hd_diag *diag)
{
	struct hd_gval_phase phase[HD_GVAL_PHASES];
	struct hd_gval_task task[HD_GVAL_PHASES];
	struct hd_gval_played played;
	const uint32_t n = hd_gval_phases(run->model, run->graph.width, phase), intervals = intervals_of(run);
	enum hd_err err = HD_OK;

	*a = (struct hd_gval_answer){ .ratio = 0 };
	double call = 0, core = 0;
	for (uint32_t p = 0; p < n; p++) {
		task[p] = task_of(run, &phase[p], r, intervals);
		call += task[p].invoke + task[p].call;
		core += task[p].kind == HD_GVAL_DENSE ? task[p].here : 0;
	}
	a->call_over_core = call / core;
	for (uint32_t slots = 0; slots <= HD_GVAL_SLOTS && !err; slots = slots ? 2 * slots : 1) {
		struct hd_gval_priced now = { .slots = slots };
		if (slots > 1 && (double)slots * run->machines > r->concurrent)
			break;
		err = hd_gval_play(task, n, intervals, run->machine.cores, slots, arena, &played, diag);
		err = err ? err : price_of(run, task, n, r, price, &played, &now, diag);
		if (err)
			return err;
		if (!slots)
			a->cpu = now, a->dense = played.dense_s / played.core_s;
		else if (slots == 1 || value_of(&now) > value_of(&a->functions))
			a->functions = now;
	}
	a->ratio = value_of(&a->functions) / value_of(&a->cpu);
	return err;
}

enum hd_err hd_gval_pays_from(const struct hd_gval_run *run, const struct hd_gval_rates *rates,
	const struct hd_fn_price *price, struct hd_arena *arena, uint32_t *slower, struct hd_diag *diag)
{
	struct hd_gval_answer answer;
	struct hd_gval_rates r = *rates;
	enum hd_err err = HD_OK;

	*slower = 0;
	for (uint32_t by = 1; by <= HD_GVAL_SLOWER && !*slower && !err; by *= 2) {
		r.flops_per_s = rates->flops_per_s / by;
		err = hd_gval_answer(run, &r, price, arena, &answer, diag);
		if (!err && answer.ratio > 1)
			*slower = by;
	}
	return err;
}
