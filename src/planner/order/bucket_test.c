#include "planner/bucket.h"

#include "base/json.h"
#include "tests/planning.h"

/* Against stored answers (shared/data/timed), against all ways to cut a line of gradients in runs, against
 * all compute orders. */

enum { OPS = 9 };

static int64_t time_of(const struct hd_bucket_problem *p, int64_t bytes) { return p->alpha +
	(int64_t)(p->beta * (double)bytes + 0.5); }

static struct hd_bucketing buckets(const struct hd_bucket_problem *p, const uint32_t *order,
	enum hd_bucket_rule rule, int64_t most)
{
	struct hd_bucketing out = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_buckets_make(&out, p, order, rule, most, &arena, &diag) == HD_OK, "%s", diag.text);
	return out;
}

static uint32_t *greedy(const struct hd_bucket_problem *p)
{
	uint32_t *order = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_compute_greedy(&order, p, &arena, &diag) == HD_OK, "%s", diag.text);
	return order;
}

static uint32_t *declared(const struct hd_bucket_problem *p)
{
	uint32_t *order = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_compute_declared(&order, p, &arena, &diag) == HD_OK, "%s", diag.text);
	return order;
}

static void is_an_order(const struct hd_bucket_problem *p, const uint32_t *order, const char *which)
{
	bool done[64] = { false };

	for (uint32_t k = 0; k < p->graph.nops; k++) {
		const struct hd_order_op *op = &p->graph.op[order[k]];
		CHECK(order[k] < p->graph.nops && !done[order[k]], "%s: op %u twice", which, order[k]);
		for (uint32_t i = 0; i < op->ninputs; i++)
			CHECK(done[p->graph.input[op->first + i] - p->graph.nrecvs],
				"%s: op %u before what it needs", which, order[k]);
		done[order[k]] = true;
	}
}

struct random_line { int64_t ready[OPS], bytes[OPS], compute_end; uint32_t n; };

static struct random_line line_of(const struct hd_bucket_problem *p, const uint32_t *order)
{
	struct random_line l = { .n = 0 };

	for (uint32_t k = 0; k < p->graph.nops; k++) {
		l.compute_end += p->graph.op[order[k]].time;
		if (p->bytes[order[k]] > 0) {
			l.ready[l.n] = l.compute_end;
			l.bytes[l.n++] = p->bytes[order[k]];
		}
	}
	return l;
}

/* The least end of all ways to cut the gradients in runs: bit k of `cuts` ends a bucket behind gradient k. */
static int64_t best_cut(const struct hd_bucket_problem *p, const struct random_line *l, int64_t most)
{
	int64_t best = INT64_MAX;

	for (uint32_t cuts = 0; cuts < 1u << (l->n ? l->n - 1 : 0); cuts++) {
		int64_t free = 0, sum = 0;
		bool fits = true;
		for (uint32_t k = 0; k < l->n; k++) {
			sum += l->bytes[k];
			fits &= !most || sum <= most;
			if (k + 1 < l->n && !(cuts >> k & 1))
				continue;
			free = (free > l->ready[k] ? free : l->ready[k]) + time_of(p, sum);
			sum = 0;
		}
		best = fits && free < best ? free : best;
	}
	return l->n == 0 || best < l->compute_end ? l->compute_end : best;
}

/* f of rule 2 in its words, and by its tie rules how many buckets. */
struct f { int64_t end; uint32_t buckets, from; };

static struct f f_of(const struct hd_bucket_problem *p, const struct random_line *l, int64_t most, uint32_t j)
{
	struct f best = { INT64_MAX, 0, 0 };
	int64_t bytes = 0;

	if (j == 0)
		return (struct f){ 0, 0, 0 };
	for (uint32_t i = j; i-- > 0;) {
		struct f before = f_of(p, l, most, i);
		bytes += l->bytes[i];
		int64_t end = (before.end > l->ready[j - 1] ? before.end : l->ready[j - 1]) + time_of(p,
			bytes);
		if (most && bytes > most)
			break;
		if (end < best.end || (end == best.end && before.buckets + 1 < best.buckets))
			best = (struct f){ end, before.buckets + 1, i };
	}
	return best;
}

static struct hd_bucket_problem dice_problem(struct hd_dice *d, bool zeros)
{
	struct hd_bucket_problem p = { .graph = { .name = "", .nops = 1 + hd_roll(d, OPS), .unit = 1,
		.measured = true }, .alpha = hd_roll(d, 6),
		.beta = hd_roll(d, 4) };
	struct hd_diag diag = { "" };

	p.graph.op = hd_arena_take(&arena, OPS, sizeof *p.graph.op);
	p.graph.input = hd_arena_take(&arena, OPS * OPS, sizeof *p.graph.input);
	p.bytes = hd_arena_take(&arena, OPS, sizeof *p.bytes);
	for (uint32_t o = 0; o < p.graph.nops; o++) {
		p.graph.op[o] = (struct hd_order_op){ .name = "o", .time = hd_roll(d, 5) + !zeros,
			.first = p.graph.ninputs };
		p.bytes[o] = hd_roll(d, 3) ? hd_roll(d, 7) : 0;
		for (uint32_t i = 0; i < o; i++)
			if (!hd_roll(d, 3))
				p.graph.input[p.graph.ninputs++] = i;
		p.graph.op[o].ninputs = p.graph.ninputs - p.graph.op[o].first;
	}
	CHECK(hd_order_settle(&p.graph, &arena, &diag) == HD_OK, "%s", diag.text);
	return p;
}

static void buckets_are_the_best_of_all_runs(void **state)
{
	struct hd_dice d = { 3 };

	(void)state;
	for (int n = 0; n < 4000; n++) {
		struct hd_bucket_problem p = dice_problem(&d, false);
		const uint32_t *order = n % 2 ? greedy(&p) : declared(&p);
		int64_t most = n % 3 ? 0 : 7;                   /* no gradient is larger: nothing is cut */
		struct random_line l = line_of(&p, order);
		struct hd_bucketing b = buckets(&p, order, HD_BUCKETS_EXACT, most);
		int64_t want = best_cut(&p, &l, most), free = 0;
		is_an_order(&p, order, n % 2 ? "greedy" : "declared");
		CHECK(b.end == want, "problem %d: %lld, not %lld", n, (long long)b.end, (long long)want);
		for (uint32_t j = l.n, k = b.nbuckets; j; j = f_of(&p, &l, most, j).from)
			CHECK(k && b.bucket[--k].first == f_of(&p, &l, most, j).from,
				"problem %d: bucket %u begins elsewhere", n, k);
		uint32_t at = 0;
		for (uint32_t k = 0; k < b.nbuckets; k++) {
			CHECK(b.bucket[k].first == at && b.bucket[k].n &&
				(!most || b.bucket[k].bytes <= most), "problem %d: bucket %u", n, k);
			at += b.bucket[k].n;
			CHECK(b.bucket[k].start == (free > b.bucket[k].ready ? free : b.bucket[k].ready)
				&& b.bucket[k].end == b.bucket[k].start + time_of(&p, b.bucket[k].bytes),
					"problem %d: times of bucket %u", n, k);
			free = b.bucket[k].end;
		}
		CHECK(at == b.ngradients, "problem %d: %u of %u gradients", n, at, b.ngradients);
		CHECK(buckets(&p, order, HD_BUCKETS_EACH, 0).end >= b.end || most,
			"problem %d: one each is better", n);
		CHECK(buckets(&p, order, HD_BUCKETS_ONE, 0).end >= b.end || most,
			"problem %d: one for all is better", n);
		hd_arena_reset(&arena);
	}
}

/* Rule 1 in its words: what each gradient still needs, found by asking all ops. */
static void needs(const struct hd_bucket_problem *p, uint32_t op, const bool *done, bool *in)
{
	if (done[op] || in[op])
		return;
	in[op] = true;
	for (uint32_t i = 0; i < p->graph.op[op].ninputs; i++)
		needs(p, p->graph.input[p->graph.op[op].first + i], done, in);
}

static void run(const struct hd_bucket_problem *p, uint32_t op, bool *done, uint32_t *order, uint32_t *n)
{
	if (done[op])
		return;
	for (uint32_t i = 0; i < p->graph.op[op].ninputs; i++)
		run(p, p->graph.input[p->graph.op[op].first + i], done, order, n);
	done[op] = true;
	order[(*n)++] = op;
}

static void greedy_is_what_its_rule_says(void **state)
{
	struct hd_dice d = { 5 };

	(void)state;
	for (int k = 0; k < 4000; k++) {
		struct hd_bucket_problem p = dice_problem(&d, true);
		const uint32_t *order = greedy(&p);
		bool done[OPS] = { false };
		uint32_t want[OPS], n = 0;
		for (;;) {
			double best = 0;
			uint32_t which = UINT32_MAX;
			for (uint32_t o = 0; o < p.graph.nops; o++) {
				bool in[OPS] = { false };
				int64_t time = 0;
				needs(&p, o, done, in);
				for (uint32_t i = 0; i < p.graph.nops; i++)
					time += in[i] ? p.graph.op[i].time : 0;
				if (p.bytes[o] > 0 && !done[o] &&
					(which == UINT32_MAX || (double)time / (double)p.bytes[o] < best)) {
					which = o;
					best = (double)time / (double)p.bytes[o];
				}
			}
			if (which == UINT32_MAX)
				break;
			run(&p, which, done, want, &n);
		}
		for (uint32_t o = 0; o < p.graph.nops; o++)
			run(&p, o, done, want, &n);
		CHECK(!memcmp(order, want, n * sizeof *want), "problem %d: another order", k);
		hd_arena_reset(&arena);
	}
}

/* Graphs of a size at which the rule in its words takes a while: the order walked again for every choice,
 * the recurrence without a shortcut. */
enum { MANY = 120 };

static struct hd_bucket_problem many_ops(struct hd_dice *d)
{
	struct hd_bucket_problem p = { .graph = { .name = "", .nops = 1 + hd_roll(d, MANY), .unit = 1,
		.measured = true }, .alpha = hd_roll(d, 9),
		.beta = hd_roll(d, 3) ? hd_roll(d, 4) : 0.25 };
	uint32_t far = 2 + hd_roll(d, MANY), few = 1 + hd_roll(d, 9);
	struct hd_diag diag = { "" };

	p.graph.op = hd_arena_take(&arena, MANY + 1, sizeof *p.graph.op);
	p.graph.input = hd_arena_take(&arena, (size_t)MANY * MANY, sizeof *p.graph.input);
	p.bytes = hd_arena_take(&arena, MANY + 1, sizeof *p.bytes);
	for (uint32_t o = 0; o < p.graph.nops; o++) {
		p.graph.op[o] = (struct hd_order_op){ .name = "o", .time = hd_roll(d, 4) ? hd_roll(d, 50) : 0,
			.first = p.graph.ninputs };
		p.bytes[o] = hd_roll(d, 3) ? hd_roll(d, 30) : 0;
		for (uint32_t i = o > far ? o - far : 0; i < o; i++)
			if (!hd_roll(d, few))
				p.graph.input[p.graph.ninputs++] = i;
		if (o && !hd_roll(d, 20))
			p.graph.input[p.graph.ninputs++] = o - 1;       /* twice, perhaps */
		p.graph.op[o].ninputs = p.graph.ninputs - p.graph.op[o].first;
	}
	CHECK(hd_order_settle(&p.graph, &arena, &diag) == HD_OK, "%s", diag.text);
	return p;
}

static void walked_anew(const struct hd_bucket_problem *p, uint32_t *want)
{
	bool done[MANY] = { false };
	uint32_t n = 0;

	for (;;) {
		uint32_t which = UINT32_MAX;
		int64_t best = 0;
		for (uint32_t o = 0; o < p->graph.nops; o++) {
			bool in[MANY] = { false };
			int64_t time = 0;
			if (p->bytes[o] <= 0 || done[o])
				continue;
			needs(p, o, done, in);
			for (uint32_t i = 0; i < p->graph.nops; i++)
				time += in[i] ? p->graph.op[i].time : 0;
			if (which == UINT32_MAX || time * p->bytes[which] < best * p->bytes[o]) {
				which = o;
				best = time;
			}
		}
		if (which == UINT32_MAX)
			break;
		run(p, which, done, want, &n);
	}
	for (uint32_t o = 0; o < p->graph.nops; o++)
		run(p, o, done, want, &n);
}

/* Where the buckets begin, by the recurrence as it stands in the header. */
static void recurrence(const struct hd_bucket_problem *p, const struct hd_bucketing *b, const int64_t *ready,
	int64_t most, uint32_t *from)
{
	static int64_t f[MANY + 1];
	static uint32_t count[MANY + 1];

	for (uint32_t j = 1; j <= b->ngradients; j++) {
		int64_t bytes = 0;
		f[j] = INT64_MAX;
		for (uint32_t i = j; i-- > 0;) {
			bytes += b->piece[i];
			if (most && bytes > most)
				break;
			int64_t end = (f[i] > ready[j - 1] ? f[i] : ready[j - 1]) + time_of(p, bytes);
			if (end < f[j] || (end == f[j] && count[i] + 1 < count[j])) {
				f[j] = end;
				count[j] = count[i] + 1;
				from[j] = i;
			}
		}
	}
}

static void large_graphs_have_the_same_answers(void **state)
{
	struct hd_dice d = { 7 };

	(void)state;
	for (int k = 0; k < 120; k++) {
		struct hd_bucket_problem p = many_ops(&d);
		const uint32_t *order = greedy(&p);
		int64_t at[MANY] = { 0 }, ready[MANY] = { 0 }, now = 0,
			most = k % 2 ? 0 : 30 + hd_roll(&d, 60);
		uint32_t want[MANY], from[MANY + 1] = { 0 };
		walked_anew(&p, want);
		CHECK(!memcmp(order, want, p.graph.nops * sizeof *want), "problem %d: another order", k);
		for (uint32_t o = 0; o < p.graph.nops; o++)
			at[order[o]] = now += p.graph.op[order[o]].time;
		struct hd_bucketing b = buckets(&p, order, HD_BUCKETS_EXACT, most);
		for (uint32_t i = 0; i < b.ngradients; i++)
			ready[i] = at[b.gradient[i]];
		recurrence(&p, &b, ready, most, from);
		uint32_t n = b.nbuckets;
		for (uint32_t j = b.ngradients; j; j = from[j])
			CHECK(n && b.bucket[--n].first == from[j], "problem %d: bucket %u begins elsewhere",
				k, n);
		CHECK(n == 0, "problem %d: %u buckets too many", k, n);
		hd_arena_reset(&arena);
	}
}

/* As many gradients as are allowed, each behind a chain of what flows back: what is missing of one is a
 * difference of prefix sums. */
static void the_most_gradients_are_ordered_by_their_prefixes(void **state)
{
	enum { N = HD_BUCKET_GRADIENTS };
	struct hd_dice d = { 11 };
	struct hd_bucket_problem p = { .graph = { .name = "", .nops = 2 * N, .unit = 1, .measured = true },
		.alpha = 3, .beta = 1 };
	static int64_t upto[N + 1], own[N];
	static bool taken[N];
	struct hd_diag diag = { "" };

	(void)state;
	p.graph.op = hd_arena_take(&arena, 2 * N, sizeof *p.graph.op);
	p.graph.input = hd_arena_take(&arena, 2 * N, sizeof *p.graph.input);
	p.bytes = hd_arena_take(&arena, 2 * N, sizeof *p.bytes);
	for (uint32_t k = 0; k < N; k++) {                        /* flow k, then gradient k of it */
		int64_t flow = hd_roll(&d, 9);
		own[k] = hd_roll(&d, 5000);
		upto[k + 1] = upto[k] + flow;
		p.graph.op[2 * k] = (struct hd_order_op){ "i", flow, p.graph.ninputs, k > 0 };
		if (k > 0)
			p.graph.input[p.graph.ninputs++] = 2 * k - 2;
		p.graph.op[2 * k + 1] = (struct hd_order_op){ "w", own[k], p.graph.ninputs, 1 };
		p.graph.input[p.graph.ninputs++] = 2 * k;
		p.bytes[2 * k + 1] = 1 + hd_roll(&d, 5000);
	}
	CHECK(hd_order_settle(&p.graph, &arena, &diag) == HD_OK, "%s", diag.text);
	const uint32_t *order = greedy(&p);
	uint32_t at = 0, flowed = 0;
	for (uint32_t n = 0; n < N; n++) {
		uint32_t best = N;
		int64_t best_time = 0;
		for (uint32_t k = 0; k < N; k++) {
			int64_t time = own[k] + (k < flowed ? 0 : upto[k + 1] - upto[flowed]);
			if (!taken[k] && (best == N || time * p.bytes[2 * best + 1] < best_time *
				p.bytes[2 * k + 1])) {
				best = k;
				best_time = time;
			}
		}
		for (; flowed <= best; flowed++)
			CHECK(order[at++] == 2 * flowed, "place %u", at - 1);
		CHECK(order[at++] == 2 * best + 1, "place %u", at - 1);
		taken[best] = true;
	}
	assert_int_equal(at, 2 * N);
	assert_true(buckets(&p, order, HD_BUCKETS_EXACT, 0).nbuckets > 1);
}

static void a_unit_of_time_may_be_as_small_as_one_likes(void **state)
{
	const char *text =
		"{\"ops\": {\"a\": {\"time\": 50, \"inputs\": []}}, \"gradient_size\": {\"a\": 4}, "
		"\"alpha\": 1, \"beta\": 250}";
	struct hd_bucket_problem *p = NULL;
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	(void)state;
	CHECK(hd_bucket_read(&p, &n, text, strlen(text), "f", &arena, &diag) == HD_OK && n == 1, "%s",
		diag.text);
	assert_true(buckets(p, declared(p), HD_BUCKETS_EXACT, 0).end == (int64_t)(1051 * HD_ORDER_TICKS));
}

static void a_large_gradient_is_cut_and_ends_no_later_than_a_bucket_allows(void **state)
{
	struct hd_bucket_problem p = { .graph = { .name = "", .nops = 2,
		.op = (struct hd_order_op[]){ { "a", 5, 0, 0 }, { "b", 5, 0, 0 } } },
		.bytes = (int64_t[]){ 25, 10 }, .alpha = 1, .beta = 1 };
	uint32_t *order = declared(&p);
	struct hd_bucketing b = buckets(&p, order, HD_BUCKETS_EXACT, 10);
	static const struct { uint32_t gradient; int64_t bytes, start, end; } want[] = { { 0, 10, 5, 16 },
		{ 0, 10, 16, 27 }, { 0, 5, 27, 33 },
		{ 1, 10, 33, 44 } };
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(b.nbuckets, 4);
	for (uint32_t k = 0; k < 4; k++)
		CHECK(b.bucket[k].n == 1 && b.gradient[k] == want[k].gradient &&
			b.bucket[k].bytes == want[k].bytes && b.bucket[k].start == want[k].start
			&& b.bucket[k].end == want[k].end, "bucket %u: %lld bytes from %lld to %lld", k,
				(long long)b.bucket[k].bytes,
			(long long)b.bucket[k].start, (long long)b.bucket[k].end);
	CHECK(b.end == 44 && b.compute_end == 10, "%lld", (long long)b.end);
	p.bytes[0] = (int64_t)HD_BUCKET_PIECES * 10;
	CHECK(hd_buckets_make(&b, &p, order, HD_BUCKETS_EXACT, 10, &arena, &diag) == HD_E_INVAL &&
		strstr(diag.text, "16384 are the most"), "%s", diag.text);
}

/* ---- stored answers */

static int64_t best_of_orders(const struct hd_bucket_problem *p, uint32_t *order, bool *done, uint32_t k)
{
	int64_t best = INT64_MAX;

	if (k == p->graph.nops)
		return buckets(p, order, HD_BUCKETS_EXACT, 0).end;
	for (uint32_t o = 0; o < p->graph.nops; o++) {
		bool may = !done[o];
		for (uint32_t i = 0; i < p->graph.op[o].ninputs; i++)
			may &= done[p->graph.input[p->graph.op[o].first + i]];
		if (!may)
			continue;
		done[o] = true;
		order[k] = o;
		int64_t one = best_of_orders(p, order, done, k + 1);
		best = one < best ? one : best;
		done[o] = false;
	}
	return best;
}

static double stored(const struct hd_json *from, const char *what, const char *key)
{
	double x = -1;

	assert_int_equal(hd_json_get_f64(hd_json_find(from, what), key, &x, NULL), HD_OK);
	return x * HD_ORDER_TICKS;
}

static void stored_cases_have_their_answers(void **state)
{
	struct hd_bucket_problem *p = NULL;
	struct hd_diag diag = { "" };
	const struct hd_json *root = NULL;
	uint32_t n = 0;
	const char *text = hd_shared_text("timed/bucket_cases.json");

	(void)state;
	if (!text)
		SKIP("data/timed is neither in HEDDLE_SHARED nor in tests");
	CHECK(hd_bucket_read(&p, &n, text, strlen(text), "bucket_cases.json", &arena, &diag) == HD_OK &&
		n == 2, "%s", diag.text);
	CHECK(hd_json_parse(&arena, "bucket_cases.json", text, strlen(text), &root, &diag) == HD_OK, "%s",
		diag.text);
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_json *from = hd_json_item(hd_json_find(root, "cases"), i),
			*list = hd_json_find(hd_json_find(from, "greedy_start_boundary"),
			"compute_order");
		uint32_t *order = greedy(&p[i]), *plain = declared(&p[i]), any[OPS];
		bool done[OPS] = { false };
		for (uint32_t k = 0; k < p[i].graph.nops; k++) {
			const char *name = NULL;
			assert_int_equal(hd_json_as_text(hd_json_item(list, k), &name, NULL), HD_OK);
			CHECK(!strcmp(name, p[i].graph.op[order[k]].name), "%s, place %u: %s, stored is %s",
				p[i].graph.name, k,
				p[i].graph.op[order[k]].name, name);
		}
		CHECK((double)buckets(&p[i], order, HD_BUCKETS_EXACT, 0).end == stored(from,
			"greedy_start_boundary", "iteration_time"), "%s: greedy",
			p[i].graph.name);
		CHECK((double)buckets(&p[i], plain, HD_BUCKETS_EXACT, 0).end == stored(from, "declared_order",
			"best_batching"), "%s: declared",
			p[i].graph.name);
		CHECK((double)buckets(&p[i], plain, HD_BUCKETS_EACH, 0).end == stored(from, "declared_order",
			"unbatched"), "%s: one each", p[i].graph.name);
		CHECK((double)buckets(&p[i], plain, HD_BUCKETS_ONE, 0).end == stored(from, "declared_order",
			"one_batch"), "%s: one", p[i].graph.name);
		CHECK((double)best_of_orders(&p[i], any, done, 0) == stored(from, "optimum",
			"iteration_time"), "%s: optimum", p[i].graph.name);
	}
}

static void what_is_no_problem_is_refused_with_its_place(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "{\"ops\": {}, \"gradient_size\": {\"g\": 1}, \"alpha\": 1, \"beta\": 1}", "f: .gradient_size.g: there is no op of that name" },
		{ "{\"ops\": {}, \"gradient_size\": {}, \"beta\": 1}", "alpha is missing" },
		{ "{\"ops\": {}, \"gradient_size\": {}, \"alpha\": -1, \"beta\": 1}", "f: .alpha: a time is from 0" },
		{ "{\"ops\": {}, \"gradient_size\": {}, \"alpha\": 1, \"beta\": \"nan\"}", "f: .beta: what a byte takes is a number from 0" },
		{ "{\"ops\": {}, \"gradient_size\": {}, \"alpha\": 1, \"beta\": -0.5}", "f: .beta: what a byte takes is a number from 0" },
		{ "{\"ops\": {\"a\": {\"time\": 1, \"inputs\": []}}, \"gradient_size\": {\"a\": 1000000000000}, \"alpha\": 1, \"beta\": 3}",
		  "f: .beta: all gradients together take 3e+12; 2.30584e+12 is the most" },
		{ "{\"ops\": {}, \"gradient_size\": {}, \"alpha\": 1}", "beta" },
		{ "{\"ops\": {\"a\": {\"time\": 1, \"inputs\": []}}, \"gradient_size\": {\"a\": -1}, \"alpha\": 1, \"beta\": 0}", "f: .gradient_size.a" },
		{ "{\"ops\": {\"a\": {\"time\": 1, \"inputs\": [\"a\"]}}, \"gradient_size\": {}, \"alpha\": 1, \"beta\": 0}", "a cycle" },
		{ "{\"ops\": {}, \"alpha\": 1, \"beta\": 0}", "gradient_size" },
		{ "{\"cases\": 1}", "cases" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_bucket_problem *p = NULL;
		struct hd_diag diag = { "" };
		uint32_t n = 0;
		CHECK(hd_bucket_read(&p, &n, cases[i].text, strlen(cases[i].text), "f", &arena,
			&diag) == HD_E_INPUT, "case %zu is read", i);
		CHECK(strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

/* A chain of three, the first and last tied: I and W backwards, W of the tied weights with the first node;
 * two devices send all once each way. */
static void the_backward_pass_of_a_profile(void **state)
{
	static const struct { const char *name; int64_t ns, bytes; } want[] = { { "I n2", 30, 0 },
		{ "W n2", 300, 0 }, { "I n1", 20, 0 },
		{ "W n1", 200, 2000 }, { "I n0", 10, 0 }, { "W n0", 100, 1000 } };
	struct hd_profile p = hd_chain_profile(3);
	struct hd_bucket_problem made;
	struct hd_diag diag = { "" };

	(void)state;
	for (uint32_t v = 0; v < 3; v++) {
		p.node[v].param = 1000 * (v + 1);
		p.node[v].i.p50_ns = 10 * (v + 1);
		p.node[v].w.p50_ns = 100 * (v + 1);
	}
	p.node[0].tied = p.node[2].tied = "wte";
	CHECK(hd_bucket_of_profile(&made, &p, 2, 1e9, 7, &arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(made.graph.nops, 6);
	for (uint32_t o = 0; o < 6; o++)
		CHECK(!strcmp(made.graph.op[o].name, want[o].name) &&
			made.graph.op[o].time == 1000 * want[o].ns && made.bytes[o] == want[o].bytes,
			"op %u: %s, %lld ps, %lld bytes", o, made.graph.op[o].name,
			(long long)made.graph.op[o].time, (long long)made.bytes[o]);
	CHECK(made.graph.op[5].ninputs == 1 && made.graph.input[made.graph.op[5].first] == 2 &&
		made.graph.op[0].ninputs == 0, "W n0 needs another op");
	CHECK(made.alpha == 14 && made.beta == 1000, "%lld ps and %g a byte", (long long)made.alpha,
		made.beta);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(buckets_are_the_best_of_all_runs, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(greedy_is_what_its_rule_says, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(large_graphs_have_the_same_answers, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(the_most_gradients_are_ordered_by_their_prefixes, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_unit_of_time_may_be_as_small_as_one_likes, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(
			a_large_gradient_is_cut_and_ends_no_later_than_a_bucket_allows,
			make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(stored_cases_have_their_answers, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(what_is_no_problem_is_refused_with_its_place, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(the_backward_pass_of_a_profile, make_arena, drop_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
