/* The partitioner against all partitions there are, on small problems, and its two searches against each
 * other. */
#include "planner/partition.h"

#include <math.h>
#include <string.h>

#include "planner/partition/cost.h"
#include "tests/planning.h"
#include "tests/check.h"

enum { CUTS_MOST = 48 };

/* Cuts as a random order that is not only a chain: i precedes j with chance, and transitively. */
struct made { struct hd_cuts cuts; int64_t time[CUTS_MOST], param[CUTS_MOST], act[CUTS_MOST], out[CUTS_MOST];
	uint64_t pred[CUTS_MOST];
	const char *name[CUTS_MOST]; };

static void make(struct made *m, struct hd_dice *d, uint32_t n, uint32_t size, bool chain)
{
	*m = (struct made){ .cuts = { .n = n, .nnodes = n, .time_ns = m->time, .param = m->param,
		.act = m->act, .out = m->out, .pred = m->pred, .words = 1,
		.name = m->name } };
	for (uint32_t j = 0; j < n; j++) {
		m->name[j] = "cut";
		for (uint32_t i = 0; i < j; i++)
			if (i + 1 == j ? chain || hd_roll(d, 3) : hd_roll(d, 2))
				m->pred[j] |= UINT64_C(1) << i;
		for (uint32_t i = 0; i < j; i++)
			if (m->pred[j] >> i & 1)
				m->pred[j] |= m->pred[i];
		if (j == n - 1)
			m->pred[j] = (UINT64_C(1) << j) - 1;
		for (uint32_t i = 0; i < j; i++)      /* sums grow along the order */
			if (m->pred[j] >> i & 1) {
				m->time[j] = m->time[i] > m->time[j] ? m->time[i] : m->time[j];
				m->param[j] = m->param[i] > m->param[j] ? m->param[i] : m->param[j];
				m->act[j] = m->act[i] > m->act[j] ? m->act[i] : m->act[j];
			}
		m->time[j] += hd_roll(d, size) * INT64_C(1000000000);
		m->param[j] += hd_roll(d, size);
		m->out[j] = hd_roll(d, size);
		m->act[j] += m->out[j];
	}
}

/* All partitions, last stage first. */
struct brute {
	const struct made *m;
	const struct hd_part_how *how;
	uint32_t level, row, total, n;            /* total: machines to be used, exactly; n stages so far */
	struct { uint32_t k, m; } stage[CUTS_MOST];
	double limit, best;                       /* limit < 0: look for the best time, else for the split */
	struct { uint32_t n; int64_t out; struct { uint32_t k, m; } stage[CUTS_MOST]; } pick;
};

static bool before(const struct made *m, uint32_t k, uint32_t j) { return m->pred[j] >> k & 1; }

static double brute_time(const struct made *m, const struct hd_part_how *how, uint32_t level, uint32_t i,
	uint32_t j);

static double range_time(const struct brute *b, uint32_t i, uint32_t j)
{
	if (b->level > 0)
		return brute_time(b->m, b->how, b->level - 1, i, j);
	return (double)(b->m->time[j] - (i ? b->m->time[i - 1] : 0)) / 1e9;
}

/* A stage i..j of x machines, `used` with those before it; k: the cut before it, or none (first). */
static double term(const struct brute *b, uint32_t i, uint32_t j, double x, double used, bool first)
{
	const struct hd_part_how *h = b->how;
	double t = range_time(b, i, j), w = (double)(b->m->param[j] - (i ? b->m->param[i - 1] : 0)),
		B = h->level[b->level].bytes_per_s;
	double u = b->level ? h->level[b->level - 1].machines : 1,
		memory = (double)(b->m->act[j] - (i ? b->m->act[i - 1] : 0)) + w, v;

	double copies = ceil((h->level[b->level].machines - used) / x);

	if (h->variant != HD_PART_CODE && copies < 1)
		copies = 1;                                      /* the program counts none at the end */
	if ((h->straight && x > 1) || (h->memory_bytes > 0 && copies * memory > h->memory_bytes))
		return INFINITY;
	if (h->variant == HD_PART_CODE) {
		v = first ? (t + 4 * (x - 1) * w / (B * x) / u) / x : (t + 4 * (x - 1) * w / (B * x)) / x;
		if (!first && h->activations > 0)
			v = fmax(v, 2 * (double)b->m->out[i - 1] / (B * x) / h->activations);
		if (!first && h->activations > 0 && j < b->m->cuts.n - 1)
			v = fmax(v, 2 * (double)b->m->out[j] / (B * x) / h->activations);
		return v;
	}
	v = fmax(t, h->variant == HD_PART_PRINTED ? 2 * (x - 1) * w / B : 2 * (x - 1) * w / (B * x)) / x;
	return first ? v : fmax(v, 2 * (double)b->m->out[i - 1] / B);
}

static int compare(const struct brute *b, int64_t out)
{
	if (b->n != b->pick.n)
		return b->n < b->pick.n ? -1 : 1;
	if (out != b->pick.out)
		return out < b->pick.out ? -1 : 1;
	for (uint32_t s = 0; s < b->n; s++)
		if (b->stage[s].k != b->pick.stage[s].k || b->stage[s].m != b->pick.stage[s].m)
			return b->stage[s].k < b->pick.stage[s].k ||
				(b->stage[s].k == b->pick.stage[s].k && b->stage[s].m < b->pick.stage[s].m) ?
				-1 : 1;
	return 0;
}

static void done(struct brute *b, double worst, int64_t out)
{
	if (b->limit < 0) {
		b->best = fmin(b->best, worst);
		return;
	}
	if (worst > b->limit || (b->pick.n && compare(b, out) >= 0))
		return;
	b->pick.n = b->n;
	b->pick.out = out;
	memcpy(b->pick.stage, b->stage, sizeof b->pick.stage);
}

static void all(struct brute *b, uint32_t j, uint32_t x, double worst, int64_t out)
{
	b->stage[b->n].k = b->row;
	b->stage[b->n++].m = x;
	done(b, fmax(worst, term(b, b->row, j, x, x, true)), out);
	b->n--;
	for (uint32_t k = b->row; k < j; k++) {
		if (!before(b->m, k, j) || (b->row && b->how->variant != HD_PART_CODE &&
			!before(b->m, b->row - 1, k)))
			continue;
		for (uint32_t m = 1; m < x; m++) {
			b->stage[b->n].k = k;
			b->stage[b->n++].m = m;
			all(b, k, x - m, fmax(worst, term(b, k + 1, j, m, x, false)), out + b->m->out[k]);
			b->n--;
		}
	}
}

static double brute_run(struct brute *b, uint32_t j, uint32_t total, double limit)
{
	b->limit = limit;
	b->best = INFINITY;
	all(b, j, total, -INFINITY, 0);
	return b->best;
}

/* Idle machines come after all stages. Of one cut alone none are. */
static double brute_best(struct brute *b, uint32_t j, uint32_t *total)
{
	uint32_t machines = b->how->level[b->level].machines;
	double best = brute_run(b, j, machines, -1);

	*total = machines;
	for (uint32_t x = 1; x < machines && b->how->fewer && j > b->row; x++)
		best = fmin(best, brute_run(b, j, x, -1));
	for (uint32_t x = 1; x < machines && b->how->fewer && j > b->row && *total == machines; x++)
		if (brute_run(b, j, x, -1) <= best)
			*total = x;
	return best;
}

static double brute_time(const struct made *m, const struct hd_part_how *how, uint32_t level, uint32_t i,
	uint32_t j)
{
	struct brute b = { .m = m, .how = how, .level = level, .row = i };
	uint32_t total;

	return brute_best(&b, j, &total);
}

static void check_split(const struct made *m, const struct hd_part_how *how, uint32_t level, uint32_t i,
	uint32_t j, const struct hd_part_split *split,
	const char *what)
{
	struct brute b = { .m = m, .how = how, .level = level, .row = i };
	uint32_t total, used = 0;
	double best = brute_best(&b, j, &total);

	CHECK(split->time_s == best, "%s: level %u, cuts %u-%u: %.17g, not %.17g", what, level, i, j,
		split->time_s, best);
	(void)brute_run(&b, j, total, best);
	CHECK(split->nstages == b.pick.n, "%s: level %u, cuts %u-%u: %u stages, not %u", what, level, i, j,
		split->nstages, b.pick.n);
	for (uint32_t s = 0; s < split->nstages; s++) {
		const struct hd_part_stage *have = &split->stage[split->nstages - 1 - s];
		uint32_t first = s + 1 == b.pick.n ? i : b.pick.stage[s].k + 1;
		CHECK(have->first == first && have->replicas == b.pick.stage[s].m,
			"%s: level %u, stage %u from the end: cut %u x%u, not %u x%u", what,
			level, s, have->first,
			have->replicas, first, b.pick.stage[s].m);
		used += have->replicas;
		if (level > 0)
			check_split(m, how, level - 1, have->first, have->last, have->split, what);
	}
	assert_int_equal(used, total);
}

static const struct { const char *name; uint32_t machines[2]; bool straight, fewer; double c, memory;
	} options[] = {
	{ "plain",            { 4 },    false, false, 0,   0 },
	{ "one machine",      { 1 },    false, false, 0,   0 },
	{ "five",             { 5 },    false, false, 1,   0 },
	{ "ratio",            { 4 },    false, false, 2,   0 },
	{ "straight",         { 3 },    true,  false, 1,   0 },
	{ "fewer",            { 4 },    false, true,  1,   0 },
	{ "memory",           { 4 },    false, false, 1,   9 },
	{ "two levels",       { 2, 2 }, false, false, 1,   0 },
	{ "three by two",     { 3, 2 }, false, false, 0,   0 },
	{ "levels, fewer",    { 2, 2 }, false, true,  1,   0 },
	{ "levels, memory",   { 2, 2 }, false, false, 1,   14 },
	{ "levels, straight", { 2, 2 }, true,  false, 1,   0 },
};
enum { NOPTIONS = sizeof options / sizeof *options };

static struct hd_part_how how_of(uint32_t i, enum hd_part_variant variant, struct hd_dice *d)
{
	struct hd_part_how how = { .variant = variant, .straight = options[i].straight,
		.fewer = options[i].fewer, .memory_bytes = options[i].memory };

	how.activations = variant == HD_PART_CODE ? options[i].c : 0;
	for (uint32_t l = 0; l < 2 && options[i].machines[l]; l++)
		how.level[how.nlevels++] = (struct hd_part_level){ options[i].machines[l],
			0.5 + hd_roll(d, 12) };
	return how;
}

static void on_small_problems_time_and_split_are_the_best_of_all_partitions(void **state)
{
	struct hd_dice d = { 7 };
	struct made m;
	uint32_t none = 0;
	(void)state;

	for (uint32_t round = 0; round < DRAWS(40); round++)
		for (uint32_t i = 0; i < NOPTIONS; i++)
			for (uint32_t v = 0; v < HD_NPART_VARIANTS; v++) {
				struct hd_part_how how = how_of(i, (enum hd_part_variant)v, &d);
				struct hd_partition part;
				struct hd_diag diag = { "" };
				uint32_t n = (how.straight ? 3 : 1) + hd_roll(&d, how.nlevels > 1 ? 4 : 6),
					total;
				make(&m, &d, n, 5, round % 2);
				struct brute b = { .m = &m, .how = &how, .level = how.nlevels - 1 };
				enum hd_err err = hd_part_solve(&part, &m.cuts, &how, &arena, &diag);
				if (isfinite(brute_best(&b, n - 1, &total))) {
					CHECK(err == HD_OK, "%s, %s: %s", options[i].name,
						hd_part_variant_name(how.variant), diag.text);
					check_split(&m, &how, how.nlevels - 1, 0, n - 1, &part.top,
						options[i].name);
				} else {
					CHECK(err == HD_E_INVAL && strstr(diag.text, "no partition"),
						"%s: %d %s", options[i].name, err, diag.text);
					none++;
				}
				hd_arena_reset(&arena);
			}
	CHECK(none > 0, "no problem was without an answer: the memory limit of this test is too wide");
}

static void solve_both(const struct made *m, struct hd_part_how how, struct hd_text text[2], double time[2],
	enum hd_err err[2])
{
	struct hd_partition part;

	for (int i = 0; i < 2; i++) {
		how.search = i ? HD_PART_BOUND : HD_PART_RECURRENCE;
		hd_text_init(&text[i], &arena);
		err[i] = hd_part_solve(&part, &m->cuts, &how, &arena, NULL);
		time[i] = err[i] ? 0 : part.time_s;
		if (!err[i])
			hd_part_print(&part, how.nlevels, &text[i]);
	}
}

static void asking_for_a_bound_gives_what_the_recurrence_gives(void **state)
{
	static const double bandwidths[] = { 0.03, 0.5, 3, 40, 1e6 };
	struct hd_dice d = { 11 };
	struct made m;
	(void)state;

	for (uint32_t round = 0; round < DRAWS(600); round++) {
		uint32_t kind = hd_roll(&d, 4), n = 1 + (hd_roll(&d, 8) ? hd_roll(&d, CUTS_MOST - 1) : 0),
			machines = 1 + hd_roll(&d, kind == 1 ? n : 130);
		struct hd_part_how how = { .variant = (enum hd_part_variant)hd_roll(&d, HD_NPART_VARIANTS),
			.nlevels = 1, .straight = kind == 1,
			.fewer = kind == 2 };
		struct hd_text text[2];
		double time[2];
		enum hd_err err[2];
		how.level[0] = (struct hd_part_level){ machines, bandwidths[hd_roll(&d, 5)] };
		how.activations = how.variant == HD_PART_CODE ? hd_roll(&d, 3) : 0;
		make(&m, &d, n, hd_roll(&d, 2) ? 4 : 1000, round % 3);
		solve_both(&m, how, text, time, err);
		CHECK(err[0] == err[1] && time[0] == time[1] && !strcmp(text[0].at, text[1].at),
			"round %u, %s, %u cuts, %u machines: %d %.17g %s; %d %.17g %s", round,
			hd_part_variant_name(how.variant), n, machines, err[0], time[0], text[0].at, err[1],
			time[1], text[1].at);
		hd_arena_reset(&arena);
	}
}

static double time_of(const struct made *m, const struct hd_part_how *how, char text[400])
{
	struct hd_partition part;
	struct hd_text out;
	struct hd_diag diag = { "" };

	CHECK(hd_part_solve(&part, &m->cuts, how, &arena, &diag) == HD_OK, "%s", diag.text);
	hd_text_fixed(&out, text, 400);
	hd_part_print(&part, how->nlevels, &out);
	return part.time_s;
}

static void laws_of_machines_bandwidth_variants_and_scale(void **state)
{
	struct hd_dice d = { 3 };
	struct made m;
	char text[400], again[400];
	(void)state;

	for (uint32_t round = 0; round < DRAWS(60); round++) {
		struct hd_part_how how = { .variant = (enum hd_part_variant)(round % HD_NPART_VARIANTS),
			.nlevels = 1, .fewer = true };
		uint32_t n = 6 + hd_roll(&d, 10);
		double before = INFINITY;
		make(&m, &d, n, 100, true);
		how.level[0].bytes_per_s = 20;
		for (how.level[0].machines = 1; how.level[0].machines <= 12; how.level[0].machines++) {
			double time = time_of(&m, &how, text);
			CHECK(time <= before, "%u machines are slower than one less", how.level[0].machines);
			before = time;
		}
		how.level[0].machines = 5;
		how.level[0].bytes_per_s = 40;
		double fast = time_of(&m, &how, text);
		how.level[0].bytes_per_s = 20;
		CHECK(fast <= time_of(&m, &how, text), "more bandwidth is slower");
		how.fewer = false;
		how.variant = HD_PART_PRINTED;
		double printed = time_of(&m, &how, text);
		how.variant = HD_PART_PAPER;
		double paper = time_of(&m, &how, text);
		CHECK(paper <= printed, "the paper's volume is slower than the printed formula");
		how.straight = true;
		CHECK(time_of(&m, &how, again) >= paper, "straight is faster than what may do as it likes");
		how.straight = false;
		for (uint32_t j = 0; j < n; j++) {
			m.time[j] *= 8;
			m.param[j] *= 8;
			m.act[j] *= 8;
			m.out[j] *= 8;
		}
		paper *= 8;
		CHECK(time_of(&m, &how, again) == paper,
			"eight times the costs are not eight times the time");
		(void)time_of(&m, &how, text);
		assert_string_equal(text, again);
	}
}

static void a_split_that_lies_is_found_out(void **state)
{
	struct hd_dice d = { 5 };
	struct made m;
	struct hd_part_how how = { .variant = HD_PART_PAPER, .nlevels = 1, .level = { { 4, 2 } } };
	struct hd_part_stage stages[] = { { 0, 2, 2, NULL }, { 3, 5, 2, NULL } };
	struct hd_part_split split = { 2, 0, stages };
	(void)state;

	make(&m, &d, 6, 9, true);
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5) > 0);
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 4) < 0);       /* a cut too many */
	stages[1].first = 4;
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5) < 0);       /* a gap */
	stages[1].first = 3;
	stages[1].replicas = 3;
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5) < 0);       /* five machines of four */
	stages[1].replicas = 0;
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5) < 0);
	stages[0].replicas = 3;
	stages[1].replicas = 1;
	assert_true(isfinite(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5)));
	/* one machine behind three: a copy of the first stage */
	how.memory_bytes = 0.5;
	assert_true(hd_part_cost(&split, &m.cuts, &how, 0, 0, 5) == INFINITY);
	/* nothing behind: a copy all the same, but for the program */
	how.level[0].machines = 1;
	for (how.variant = 0; how.variant < HD_NPART_VARIANTS; how.variant++) {
		struct hd_partition part;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_part_solve(&part, &m.cuts, &how, &arena, &diag);
		hd_arena_reset(&arena);
		CHECK(how.variant == HD_PART_CODE ? err == HD_OK : err == HD_E_INVAL &&
			strstr(diag.text, "keeps to the memory limit"), "%s: %s",
			hd_part_variant_name(how.variant), diag.text);
	}
}

static void bad_requests_are_refused_with_their_reason(void **state)
{
	static const struct { struct hd_part_how how; const char *says; } cases[] = {
		{ { .nlevels = 0 }, "from 1 to 4 levels" },
		{ { .nlevels = 1, .level = { { 0, 1 } } }, "level 1 has 0 machines" },
		{ { .nlevels = 1, .level = { { HD_PART_MACHINES + 1, 1 } } }, "level 1 has 4097 machines" },
		{ { .nlevels = 2, .level = { { 2, 1 }, { 2, 0 } } }, "the bandwidth of level 2 is 0" },
		{ { .nlevels = 3, .level = { { 4096, 1 }, { 4096, 1 }, { 4096, 1 } } }, "more than can be counted" },
		{ { .nlevels = 1, .level = { { 2, 1 } }, .activations = -1 }, "not negative" },
		{ { .nlevels = 1, .level = { { 2, 1 } }, .activations = 1, .variant = HD_PART_PAPER }, "always counts activations" },
		{ { .nlevels = 1, .level = { { 2, 1 } }, .fewer = true, .memory_bytes = 1 }, "neither with a memory limit" },
		{ { .nlevels = 1, .level = { { 7, 1 } }, .straight = true }, "straight needs a cut per machine: 7 machines, 6 cuts" },
	};
	struct hd_dice d = { 5 };
	struct made m;
	(void)state;

	make(&m, &d, 6, 9, true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_partition part;
		struct hd_diag diag = { "" };
		enum hd_err err = hd_part_solve(&part, &m.cuts, &cases[i].how, &arena, &diag);
		CHECK(err == HD_E_INVAL && strstr(diag.text, cases[i].says),
			"case %zu: %d '%s' should hold '%s'", i, err, diag.text, cases[i].says);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			on_small_problems_time_and_split_are_the_best_of_all_partitions,
			make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(asking_for_a_bound_gives_what_the_recurrence_gives,
		make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(laws_of_machines_bandwidth_variants_and_scale, make_arena,
		drop_arena),
		cmocka_unit_test_setup_teardown(a_split_that_lies_is_found_out, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(bad_requests_are_refused_with_their_reason, make_arena,
		drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
