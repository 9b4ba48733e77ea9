#include "timeline/analyze/reorder.h"

#include <math.h>

#include "base/philox.h"
#include "plan/xfer.h"
#include "timeline/testing.h"

/* The oracle: a training whose clock goes on by ticks. In each every port gives its flows the same little
 * more until it is full; a message is looked at when it is its turn. It records what happens, in one order;
 * the truth of another order is the same training in that. */

enum { WORKERS = 3, MOST_BUCKETS = 8, CHUNKS = 128, STEPS = 6, TICK = 5000, CHUNK = HD_TL_REORDER_CHUNK,
       PARTS = 24, IDS = 3 * MOST_BUCKETS * WORKERS };

struct drawn {
	uint32_t nb, bytes[MOST_BUCKETS], order[2][MOST_BUCKETS];
	double fore, rest[STEPS][WORKERS], back, delay, last;
	double gap;                       /* from the end of a step to the begin of the next one */
	double rate[2];                   /* bytes a ns */
	double depth;                     /* bytes that the transport takes between two */
	bool wants[2];
};

static uint32_t draw(uint64_t seed, uint32_t *i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ (*i)++, 1, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

static struct drawn draw_training(uint64_t seed)
{
	struct drawn d = { .fore = 4e6, .back = 6e6, .delay = 50000, .last = 200000,
		.gap = 400000, .rate = { 0.1, 0.1 } };
	uint32_t i = 0;

	d.nb = 4 + draw(seed, &i, MOST_BUCKETS - 3);
	for (uint32_t b = 0; b < d.nb; b++)
		d.bytes[b] = 20000 + draw(seed, &i, 300000);
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t b = 0; b < d.nb; b++)
			d.order[k][b] = b;
		for (uint32_t b = d.nb; b-- > 1;) {
			const uint32_t to = draw(seed, &i, b + 1), was = d.order[k][b];
			d.order[k][b] = d.order[k][to];
			d.order[k][to] = was;
		}
		d.wants[k] = draw(seed, &i, 2);
	}
	for (uint32_t s = 0; s < STEPS; s++)
		for (uint32_t w = 0; w < WORKERS; w++)
			d.rest[s][w] = 3e6 + draw(seed, &i, 1000000);
	return d;
}

struct letter {
	uint8_t kind;
	uint32_t bucket, from, to, id;
	double ready, first, handed, came;        /* below 0: not yet */
	double given, sent, bytes;        /* to the transport, to the other worker, all */
};

static uint32_t id_of(uint8_t kind, uint32_t bucket, uint32_t from, uint32_t to)
{
	return kind == HD_XFER_PARTIAL ? bucket * WORKERS + from : kind == HD_XFER_SUM ?
		(MOST_BUCKETS + bucket) * WORKERS + to : (2 * MOST_BUCKETS + from) * WORKERS + to;
}

static uint32_t list_letters(struct letter *t, const struct drawn *d)
{
	uint32_t n = 0;

	for (uint32_t a = 0; a < WORKERS; a++)
		for (uint32_t b = 0; b < WORKERS; b++)
			for (uint32_t k = 0; k <= d->nb && a != b; k++) {
				const bool end = k == d->nb, owns = k % WORKERS == a;
				if (!end && !owns && k % WORKERS != b)
					continue;
				const uint8_t kind = end ? HD_XFER_METRICS : owns ? HD_XFER_SUM :
					HD_XFER_PARTIAL;
				t[n++] = (struct letter){ .kind = kind, .bucket = end ? 0 : k,
					.from = a, .to = b, .id = id_of(kind, k, a, b), .ready = -1,
					.first = -1, .handed = -1, .came = -1,
					.bytes = end ? 40 : d->bytes[k] };
			}
	return n;
}

static uint32_t urgency_of(const struct letter *t, const struct drawn *d, int k, const uint32_t *lacked)
{
	const bool wanted = lacked[t->to] == t->bucket && d->wants[k];

	return t->kind == HD_XFER_METRICS || wanted ? 0 : 1 + 2 * d->order[k][t->bucket] +
		(t->kind == HD_XFER_SUM);
}

/* One tick of the wire: what each two workers get that have something on its way. */
static void fill(double got[WORKERS][WORKERS], double way[WORKERS][WORKERS], double rate)
{
	double out[WORKERS] = { 0 }, in[WORKERS] = { 0 };

	memset(got, 0, sizeof(double[WORKERS][WORKERS]));
	for (uint32_t k = 0; k < PARTS; k++)
		for (uint32_t a = 0; a < WORKERS; a++)
			for (uint32_t b = 0; b < WORKERS; b++)
				if (way[a][b] > 0 && out[a] < rate - 1e-9 && in[b] < rate - 1e-9) {
					got[a][b] += rate / PARTS;
					out[a] += rate / PARTS;
					in[b] += rate / PARTS;
				}
}

struct world {
	const struct drawn *d;
	struct tl_maker *m;               /* NULL: nothing is recorded */
	int k;
	uint32_t lane[WORKERS][2];
	double end[WORKERS], open[WORKERS], ahead[WORKERS];
	uint64_t flow;
};

static void record(struct world *w, const struct letter *t)
{
	static const char *const name[HD_XFER_KINDS] = { [HD_XFER_PARTIAL] = "root", [HD_XFER_SUM] = "sum",
		[HD_XFER_METRICS] = "metrics" };
	if (!w->m)
		return;
	w->flow++;
	struct hd_tl_event *e = tl_event(w->m, w->lane[t->from][1], HD_EVENT_SEND, HD_TL_SEND,
		(int64_t)t->ready, (int64_t)t->handed, name[t->kind]);
	e->first = (int64_t)t->first;
	e->arg = (uint64_t)t->bytes;
	e->flow = w->flow;
	e->instr = t->id;
	e->priority_class = HD_XFER_PLANNED;
	e->peer = t->to;
	e = tl_event(w->m, w->lane[t->to][1], HD_EVENT_RECV, HD_TL_RECEIVE, (int64_t)t->first,
		(int64_t)t->came, name[t->kind]);
	e->arg = (uint64_t)t->bytes;
	e->flow = w->flow;
	e->instr = t->id;
	e->peer = t->from;
}

static void work(struct world *w, uint32_t p, const char *name, enum hd_tl_class class, double t0, double t1)
{
	if (w->m && t1 > t0)
		tl_event(w->m, w->lane[p][0], HD_EVENT_OP, class, (int64_t)t0, (int64_t)t1, name);
}

/* A step that goes on. */
struct stepping {
	struct world *w;
	struct letter t[IDS];
	uint32_t n, node[WORKERS], lacked[WORKERS];
	/* chunks with the transport, first to last; bytes of all */
	struct { struct letter *of; double bytes; } chunk[WORKERS][WORKERS][CHUNKS];
	uint32_t first[WORKERS][WORKERS], end[WORKERS][WORKERS];
	double way[WORKERS][WORKERS];
	double begin[WORKERS], pass[WORKERS], node_end[WORKERS], made[MOST_BUCKETS], now;
};

static void pass(struct stepping *x, uint32_t s)
{
	struct world *w = x->w;
	const struct drawn *d = w->d;

	x->now = 1e18;
	for (uint32_t p = 0; p < WORKERS; p++) {
		x->begin[p] = w->open[p];
		const double from = x->begin[p], f = from + d->fore - w->ahead[p];
		x->pass[p] = f + d->rest[s][p] + d->back;
		work(w, p, "F", HD_TL_FORWARD, from, f);
		work(w, p, "B", HD_TL_BACKWARD, f, x->pass[p]);
		work(w, p, "RED", HD_TL_SUM, x->pass[p], x->pass[p] + 100);
		x->node_end[p] = -1;
		x->now = fmin(x->now, x->begin[p]);
	}
	for (uint32_t b = 0; b < d->nb; b++)
		x->made[b] = -1;
	for (uint32_t i = 0; i < x->n; i++) {
		struct letter *t = &x->t[i];
		const double before = t->kind == HD_XFER_PARTIAL ? d->back * t->bucket / d->nb : 0;
		t->ready = t->kind == HD_XFER_SUM ? -1 : x->pass[t->from] - before;
	}
}

static void make_sums(struct stepping *x)
{
	const struct drawn *d = x->w->d;

	for (uint32_t b = 0; b < d->nb; b++) {
		double all = x->pass[b % WORKERS];
		bool whole = x->made[b] < 0;
		for (uint32_t i = 0; i < x->n; i++)
			if (x->t[i].kind == HD_XFER_PARTIAL && x->t[i].bucket == b) {
				whole &= x->t[i].came >= 0;
				all = fmax(all, x->t[i].came);
			}
		if (!whole)
			continue;
		x->made[b] = all + d->delay;
		for (uint32_t i = 0; i < x->n; i++)
			if (x->t[i].kind == HD_XFER_SUM && x->t[i].bucket == b)
				x->t[i].ready = x->made[b];
	}
}

/* Node b reads bucket b. */
static void run_nodes(struct stepping *x)
{
	const struct drawn *d = x->w->d;

	for (uint32_t p = 0; p < WORKERS; p++) {
		const uint32_t node = x->node[p];
		double from = fmax(x->pass[p], x->node_end[p]);
		bool here = x->made[node % d->nb] >= 0 && x->made[node % d->nb] <= x->now;
		for (uint32_t i = 0; i < x->n; i++) {
			const struct letter *t = &x->t[i];
			if (t->to == p && t->kind == HD_XFER_METRICS)
				from = t->came < 0 ? 1e18 : fmax(from, t->came);
			if (t->to == p && t->kind == HD_XFER_SUM && t->bucket == node)
				here = t->came >= 0;
		}
		x->lacked[p] = UINT32_MAX;
		if (node == d->nb || x->now < from)
			continue;
		if (!here) {
			x->lacked[p] = node;
			continue;
		}
		x->node_end[p] = x->now + d->fore / d->nb;
		work(x->w, p, "forward ahead", HD_TL_FORWARD, x->now, x->node_end[p]);
		x->node[p]++;
	}
}

static struct letter *most_urgent(struct stepping *x, uint32_t a, uint32_t b)
{
	const struct drawn *d = x->w->d;
	struct letter *best = NULL;

	for (uint32_t i = 0; i < x->n; i++) {
		struct letter *t = &x->t[i];
		if (t->from != a || t->to != b || t->ready < 0 || t->ready > x->now || t->given >= t->bytes)
			continue;
		if (!best || urgency_of(t, d, x->w->k, x->lacked) < urgency_of(best, d, x->w->k, x->lacked))
			best = t;
	}
	return best;
}

/* What each worker gives the transport to each other one: chunks of the most urgent, while there is room. */
static void take_turns(struct stepping *x)
{
	for (uint32_t at = 0; at < WORKERS * WORKERS; at++) {
		const uint32_t a = at / WORKERS, b = at % WORKERS;
		for (struct letter *t; a != b && (t = most_urgent(x, a, b));) {
			const double bytes = fmin(CHUNK, t->bytes - t->given);
			if (x->way[a][b] > 0 && x->way[a][b] + bytes > x->w->d->depth)
				break;
			assert_in_range(x->end[a][b], 0, CHUNKS - 1);
			x->chunk[a][b][x->end[a][b]].of = t;
			x->chunk[a][b][x->end[a][b]++].bytes = bytes;
			x->way[a][b] += bytes;
			t->first = t->first < 0 ? x->now : t->first;
			t->given += bytes;
			t->handed = x->now;
		}
	}
}

/* How many came. */
static uint32_t carry(struct stepping *x)
{
	double got[WORKERS][WORKERS];
	uint32_t came = 0;

	fill(got, x->way, x->w->d->rate[x->w->k]);
	for (uint32_t at = 0; at < WORKERS * WORKERS; at++) {
		const uint32_t a = at / WORKERS, b = at % WORKERS;
		double left = got[a][b] * TICK;
		for (; left > 0 && x->first[a][b] < x->end[a][b];) {
			struct letter *t = x->chunk[a][b][x->first[a][b]].of;
			double *bytes = &x->chunk[a][b][x->first[a][b]].bytes;
			const double some = fmin(left, *bytes);
			left -= some;
			*bytes -= some;
			x->way[a][b] -= some;
			t->sent += some;
			x->first[a][b] += *bytes <= 0;
			if (t->sent < t->bytes - 1e-3)
				continue;
			t->came = x->now + TICK;
			record(x->w, t);
			came++;
		}
		if (x->first[a][b] == x->end[a][b])
			x->way[a][b] = 0;
	}
	return came;
}

/* Nodes that begin before `limit` have all that they read, and none is broken off. */
static double run_until(struct stepping *x, uint32_t p, double from, double limit)
{
	const struct drawn *d = x->w->d;

	for (; x->node[p] < d->nb && from < limit; from = x->node_end[p], x->node[p]++) {
		x->node_end[p] = from + d->fore / d->nb;
		work(x->w, p, "forward ahead", HD_TL_FORWARD, from, x->node_end[p]);
	}
	return fmax(from, limit);
}

/* It ends at each worker by itself; the next one begins when it has at all. */
static void end_step(struct stepping *x, uint32_t s)
{
	struct world *w = x->w;
	const struct drawn *d = w->d;
	double all = 0;

	for (uint32_t p = 0; p < WORKERS; p++) {
		w->end[p] = run_until(x, p, fmax(x->now, x->node_end[p]), x->now + d->last);
		all = fmax(all, w->end[p]);
		if (w->m)
			tl_step(w->m, p, s, (int64_t)x->begin[p], (int64_t)w->end[p], true);
	}
	for (uint32_t p = 0; p < WORKERS; p++) {
		w->open[p] = run_until(x, p, w->end[p], all + d->gap);
		w->ahead[p] = x->node[p] * d->fore / d->nb;
	}
}

static void run_step(struct world *w, uint32_t s)
{
	static struct stepping x;
	uint32_t left;

	x = (struct stepping){ .w = w };

	left = x.n = list_letters(x.t, w->d);
	pass(&x, s);
	for (; left; x.now += TICK) {
		make_sums(&x);
		run_nodes(&x);
		take_turns(&x);
		left -= carry(&x);
	}
	end_step(&x, s);
}

/* ns that it takes */
static double train(const struct drawn *d, int k, struct tl_maker *m)
{
	struct world w = { .d = d, .k = k, .m = m };

	for (uint32_t p = 0; p < WORKERS && m; p++) {
		const uint32_t process = tl_process(m, "worker", p);
		w.lane[p][0] = tl_lane(m, process, HD_LANE_DEVICE, "dev 0");
		w.lane[p][1] = tl_lane(m, process, HD_LANE_TRANSFER, "io");
	}
	for (uint32_t s = 0; s < STEPS; s++)
		run_step(&w, s);
	return fmax(fmax(w.end[0], w.end[1]), w.end[2]);
}

struct table {
	struct hd_tl_row row[IDS];
	struct hd_tl_node node[MOST_BUCKETS];
	uint32_t reads[MOST_BUCKETS];
	struct hd_tl_order order;
};

static void make_table(struct table *t, const struct drawn *d)
{
	struct letter letter[IDS];

	memset(t, 0, sizeof *t);
	for (uint32_t i = 0, n = list_letters(letter, d); i < n; i++) {
		const uint32_t sum = letter[i].kind == HD_XFER_SUM, b = letter[i].bucket;
		t->row[letter[i].id] = (struct hd_tl_row){ letter[i].kind, b, 1 + 2 * d->order[0][b] + sum,
			1 + 2 * d->order[1][b] + sum };
	}
	for (uint32_t b = 0; b < d->nb; b++) {
		t->node[b] = (struct hd_tl_node){ 1.0 / d->nb, b, 1 };
		t->reads[b] = b;
	}
	t->order = (struct hd_tl_order){ .row = t->row, .nrows = IDS, .nbuckets = d->nb, .node = t->node,
		.nnodes = d->nb, .reads = t->reads, .wants_was = d->wants[0], .wants_now = d->wants[1] };
}

static enum hd_err ask(struct tl_maker *m, const struct table *t, const struct hd_tl_whatif *whatif,
	struct hd_tl_range *range, struct hd_tl_replayed *now, struct hd_tl_replayed *then,
	struct hd_diag *diag)
{
	struct hd_tl_causes causes;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	assert_int_equal(hd_tl_causes_make(&causes, tl_end(m), &arena, NULL), HD_OK);
	const enum hd_err err = hd_tl_reorder(&causes, range, &t->order, whatif, &arena, now, then, diag);
	hd_arena_finish(&arena);
	return err;
}

static void another_order_comes_out_as_if_run(void **state)
{
	(void)state;
	static struct tl_maker m;
	static struct table t;
	/* all of them: the means are of these */
	const uint32_t n = 24;
	double off = 0, worst = 0, moved = 0, missed = 0;

	for (uint64_t seed = 0; seed < n; seed++) {
		struct drawn d = draw_training(seed);
		struct hd_tl_whatif whatif = hd_tl_as_recorded();
		struct hd_tl_range range = { 0, STEPS - 1 };
		struct hd_tl_replayed now, then;
		struct hd_diag diag = { "" };
		whatif.bandwidth = seed % 4 == 3 ? 2 : 1;
		d.depth = seed % 3 == 1 ? 300000 : 0;
		d.rate[1] *= whatif.bandwidth;
		tl_begin(&m);
		const double was = train(&d, 0, &m), truth = train(&d, 1, NULL);
		make_table(&t, &d);
		const enum hd_err err = ask(&m, &t, &whatif, &range, &now, &then, &diag);
		CHECK(!err && range.first == 0, "seed %u: %s", (unsigned)seed, diag.text);
		tl_free(&m);
		const double by = fabs((double)then.replayed - truth) / truth;
		off += by / n;
		worst = fmax(worst, by);
		moved += fabs(truth / was - 1) / n;
		missed = fmax(missed, fabs((double)now.replayed / (double)now.recorded - 1));
		CHECK(fabs((double)now.recorded - was) < 2, "seed %u: %lld ns", (unsigned)seed,
			(long long)now.recorded);
	}
	CHECK(moved > 0.02, "orders differ by %g", moved);
	CHECK(missed < 0.01, "the recorded order is off by %g", missed);
	CHECK(off < 0.015 && worst < 0.08, "off by %g on average, %g at worst; orders differ by %g", off,
		worst, moved);
}

/* A day of steps and of pauses: so late a double does not tell what the rest of a chunk takes. */
static void a_long_recording_on_fast_links_comes_to_an_end(void **state)
{
	(void)state;
	static struct tl_maker m;
	static struct table t;
	struct drawn d = draw_training(1);
	struct hd_tl_whatif whatif = hd_tl_as_recorded();
	struct hd_tl_range range = { 0, STEPS - 1 };
	struct hd_tl_replayed now, then;
	struct hd_diag diag = { "" };

	d.gap = 2e13;
	whatif.bandwidth = 1e6;
	tl_begin(&m);
	const double was = train(&d, 0, &m);
	make_table(&t, &d);
	const enum hd_err err = ask(&m, &t, &whatif, &range, &now, &then, &diag);
	tl_free(&m);
	CHECK(!err && (double)then.replayed < was && (double)then.replayed > (STEPS - 1) * d.gap,
		"%lld of %g ns: %s", (long long)then.replayed, was, diag.text);
}

/* ---- what is not whole ---- */

static void lose_sums(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)t;
	for (uint64_t i = 0; i < m->nevents; i++)
		if (!strcmp(m->name[m->event[i].name], "RED") && m->event[i].t0 >= m->step[step].begin)
			m->event[i].name = tl_name(m, "NORM");
}

static void lose_transfers(struct tl_maker *m, struct table *t, uint32_t step)
{
	uint64_t n = 0;

	(void)t;
	for (uint64_t i = 0; i < m->nevents; i++)
		if (m->event[i].kind != HD_EVENT_RECV || m->event[i].t1 > m->step[step].end)
			m->event[n++] = m->event[i];
	m->nevents = n;
}

static void lose_all(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)step;
	lose_transfers(m, t, 3 * STEPS - 1);
}

static void lose_row(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)m, (void)step;
	t->row[id_of(HD_XFER_SUM, 0, 0, 1)].kind = 0;
}

static void rename_row(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)m, (void)step;
	t->row[id_of(HD_XFER_SUM, 0, 0, 1)].kind = HD_XFER_PARTIAL;
}

static void lose_number(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)m, (void)step;
	t->order.nrows = 5;
}

/* Rows of steps are listed by step, of three workers each. */
static void lose_worker(struct tl_maker *m, struct table *t, uint32_t step)
{
	(void)t;
	m->step[step].committed = false;
}

static void what_is_not_whole_is_left_out_or_refused(void **state)
{
	(void)state;
	static struct tl_maker m;
	static struct table t;
	static const struct {
		const char *what;
		void (*lose)(struct tl_maker *m, struct table *t, uint32_t step);
		uint32_t step;            /* row of a step */
		enum hd_err err;
		uint64_t first;
	} row[] = {
		{ "sums of step 4", lose_sums, 3 * 4, HD_E_REFUSED, 0 },
		{ "transfers until step 2 ends", lose_transfers, 3 * 2, HD_OK, 3 },
		{ "all transfers", lose_all, 0, HD_E_REFUSED, 0 },
		{ "a row", lose_row, 0, HD_E_REFUSED, 0 }, { "a kind", rename_row, 0, HD_E_REFUSED, 0 },
		{ "a number", lose_number, 0, HD_E_REFUSED, 0 },
		{ "worker 1 in step 2", lose_worker, 3 * 2 + 1, HD_OK, 3 },
		{ "worker 2 in the last step", lose_worker, 3 * STEPS - 1, HD_OK, 0 },
	};
	const struct hd_tl_whatif none = hd_tl_as_recorded();

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		const struct drawn d = draw_training(1);
		struct hd_tl_range range = { 0, STEPS - 1 };
		struct hd_tl_replayed now, then;
		struct hd_diag diag = { "" };
		tl_begin(&m);
		train(&d, 0, &m);
		make_table(&t, &d);
		row[i].lose(&m, &t, row[i].step);
		const enum hd_err err = ask(&m, &t, &none, &range, &now, &then, &diag);
		tl_free(&m);
		CHECK(err == row[i].err && (err || range.first == row[i].first) && (!err || *diag.text),
			"%s: %d from step %llu, %s", row[i].what, err, (unsigned long long)range.first,
			diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_order_comes_out_as_if_run),
		cmocka_unit_test(a_long_recording_on_fast_links_comes_to_an_end),
		cmocka_unit_test(what_is_not_whole_is_left_out_or_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
