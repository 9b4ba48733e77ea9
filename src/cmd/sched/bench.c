/* heddle sched bench: how long policies take over states that are drawn, and what their programs looked
 * like. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clustersim/drawn_state.h"
#include "cmd/json_line.h"

enum { REPEAT = 3, MOST_REPEATS = 1000 };

/* A row a case; `against`: the row's policy again without POP, whose least share it is held against, or its
 * objective where shares are whole. `large`: one job of so many is a gang of three fifths of a type. */
static const struct bench_case { const char *name, *policy; uint32_t njobs, ntypes;
	enum hd_drawn_jobs jobs; const char *against; uint32_t large; } cases[] = {
	{ "max-min",            "las",          2000,  3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "max-min",            "las",          10000, 8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "max-min, pairs",     "las-packed",   100,   3, HD_DRAWN_PAIRS,    NULL, 0 },
	{ "max-min, pairs",     "las-packed",   300,   3, HD_DRAWN_PAIRS,    NULL, 0 },
	{ "max-min, by kinds",  "las-kinds",    300,   3, HD_DRAWN_PAIRS,    NULL, 0 },
	{ "makespan",           "makespan",     2000,  3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "throughput",         "sum",          2000,  3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "cost",               "cost",         2000,  3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "makespan",           "makespan",     10000, 8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "throughput",         "sum",          10000, 8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "finish times",       "ftf",          10000, 8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "product",            "nash",         300,   3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "product",            "nash",         300,   8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "equal parts",        "isolated",     10000, 8, HD_DRAWN_RIGID,    NULL, 0 },
	{ "max-min in 4 parts", "pop:4:las",    1024,  3, HD_DRAWN_RIGID,    "las", 0 },
	{ "plan",               "heddle",       800,   3, HD_DRAWN_RIGID,    "pop:1:heddle", 0 },
	{ "plan, sizes",        "heddle",       500,   3, HD_DRAWN_ELASTIC,  "pop:1:heddle", 0 },
	{ "plan, pairs",        "heddle-packed", 400,  3, HD_DRAWN_PAIRS,    "pop:1:heddle-packed", 0 },
	{ "plan, a gang",       "heddle",       800,   3, HD_DRAWN_RIGID,    "pop:1:heddle", 800 },
	{ "plan, gangs",        "heddle",       800,   3, HD_DRAWN_RIGID,    "pop:1:heddle", 80 },
	{ "sizes, gangs",       "heddle",       500,   3, HD_DRAWN_ELASTIC,  "pop:1:heddle", 50 },
	{ "pairs, gangs",       "heddle-packed", 400,  3, HD_DRAWN_PAIRS,    "pop:1:heddle-packed", 40 },
	{ "plan",               "heddle",       2000,  3, HD_DRAWN_RIGID,    NULL, 0 },
	{ "plan, sizes",        "heddle",       2000,  3, HD_DRAWN_ELASTIC,  NULL, 0 },
	{ "plan, pairs",        "heddle-packed", 2000, 3, HD_DRAWN_PAIRS,    NULL, 0 },
	{ "plan, gangs",        "heddle",       2000,  3, HD_DRAWN_RIGID,    NULL, 100 },
	{ "sizes, gangs",       "heddle",       2000,  3, HD_DRAWN_ELASTIC,  NULL, 100 },
	{ "pairs, gangs",       "heddle-packed", 2000, 3, HD_DRAWN_PAIRS,    NULL, 100 },
	{ "goodput",            "goodput",      200,   3, HD_DRAWN_LEARNING, NULL, 0 },
	{ "goodput",            "goodput",      2000,  3, HD_DRAWN_LEARNING, NULL, 0 },
};

struct measured { double seconds, least, objective, gap; uint32_t programs, iterations; bool gave_up, cut; };

static int up(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double least_share(const struct hd_sched_state *s, const struct hd_shares *out)
{
	double least = INFINITY;

	for (uint32_t i = 0; i < s->njobs; i++)
		if (!hd_sched_absent(s, i))
			least = fmin(least, out->z[i] * s->jobs[i].scale / s->jobs[i].weight);
	return least;
}

/* The middle of the repeats, each from an empty memory. */
static enum hd_err measure(struct hd_cmd *cmd, const char *name, const struct hd_sched_state *state,
	uint64_t repeats, struct measured *to)
{
	double seconds[MOST_REPEATS];
	enum hd_err err = HD_OK;

	for (uint64_t k = 0; k < repeats && !err; k++) {
		struct hd_policy_setting set = { .fidelity = HD_FIDELITY_EXACT };
		struct hd_policy *policy = NULL;
		struct hd_arena call;
		struct hd_shares out;
		hd_arena_init(&call, (size_t)1 << 32);
		err = hd_policy_parse(&set, name, &cmd->diag);
		if (!err)
			err = hd_policy_create(&policy, &set, &cmd->diag);
		int64_t begin = hd_clock_now_ns(&cmd->clock);
		if (!err)
			err = hd_policy_allocate(policy, state, &call, &out, &cmd->diag);
		seconds[k] = (double)(hd_clock_now_ns(&cmd->clock) - begin) * 1e-9;
		if (!err)
			*to = (struct measured){ .least = least_share(state, &out),
				.objective = out.objective, .gap = out.gap, .programs = out.nlps,
				.iterations = out.iterations, .gave_up = out.kept, .cut = out.cut };
		hd_policy_destroy(policy);
		hd_arena_finish(&call);
	}
	qsort(seconds, (size_t)repeats, sizeof *seconds, up);
	to->seconds = seconds[repeats / 2];
	return err;
}

/* `full`: of the whole, where the row is held against it. */
static void print_row(struct hd_cmd *cmd, const struct bench_case *c, const struct measured *m,
	const struct measured *full)
{
	struct hd_json_line line;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%-20s %-13s %6u %5u %10.4f %9" PRIu32 " %10" PRIu32 " %9.1e", c->name, c->policy,
			c->njobs, c->ntypes, m->seconds, m->programs,
			m->iterations, m->gap);
		if (m->cut)
			printf("   objective %.6g, tries ran out", m->objective);
		if (c->against && full->least > 0)
			printf("   least share %.4f of the whole's", m->least / full->least);
		else if (c->against)
			printf("   objective %.4f of the whole's, which takes %.3f s",
				m->objective / full->objective, full->seconds);
		printf("%s\n", m->gave_up ? "   the solver gave up: equal parts" : "");
		return;
	}
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	hd_json_put_text(w, "case", c->name);
	hd_json_put_text(w, "policy", c->policy);
	hd_json_put_i64(w, "jobs", c->njobs);
	hd_json_put_i64(w, "types", c->ntypes);
	hd_json_put_f64(w, "seconds", m->seconds);
	hd_json_put_i64(w, "programs", m->programs);
	hd_json_put_i64(w, "iterations", m->iterations);
	hd_json_put_f64(w, "gap", m->gap);
	hd_json_put_bool(w, "gave_up", m->gave_up);
	hd_json_put_bool(w, "cut", m->cut);
	hd_json_put_f64(w, "objective", m->objective);
	hd_json_put_f64(w, "least_share", m->least);
	if (c->against && full->least > 0)
		hd_json_put_f64(w, "of_whole", m->least / full->least);
	if (c->against && !(full->least > 0)) {
		hd_json_put_f64(w, "objective_of_whole", m->objective / full->objective);
		hd_json_put_f64(w, "seconds_of_whole", full->seconds);
	}
	hd_json_line_print(&line);
}

static bool built(const char *name)
{
	struct hd_policy_setting set = { 0 };

	return !hd_policy_parse(&set, name, NULL) && (!(set.policy->powers & HD_POLICY_LP) ||
		hd_policy_has_lp());
}

static enum hd_err verb_sched_bench(struct hd_cmd *cmd)
{
	uint64_t repeats = hd_args_count(&cmd->args, HD_OPT_REPEAT, REPEAT);
	uint64_t most = hd_args_count(&cmd->args, HD_OPT_COUNT_, UINT64_MAX);
	uint32_t seed = (uint32_t)cmd->args.count[HD_OPT_SEED], nrows = 0;
	const char *only = cmd->args.text[HD_OPT_SCHED_POLICY];
	enum hd_err err = HD_OK;

	if (!repeats || repeats > MOST_REPEATS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--repeat %" PRIu64 ": 1 to %d", repeats,
			MOST_REPEATS);
	if (!cmd->args.has[HD_OPT_JSON])
		printf("%-20s %-13s %6s %5s %10s %9s %10s %9s\n", "case", "policy", "jobs", "types",
			"seconds", "programs", "iterations", "gap");
	for (size_t k = 0; k < sizeof cases / sizeof *cases && !err; k++) {
		struct bench_case c = cases[k];
		struct measured m = { 0 }, whole = { 0 };
		struct hd_drawn_state drawn;
		c.njobs = most < c.njobs ? (uint32_t)most : c.njobs;
		if (only && strcmp(only, c.policy) != 0)
			continue;
		nrows++;
		if (!built(c.policy)) {
			if (!cmd->args.has[HD_OPT_JSON])
				printf("%-20s %-13s not in this build: no solver of linear programs\n",
					c.name, c.policy);
			continue;
		}
		err = hd_drawn_state_make(&drawn, &(struct hd_drawn_setting){ .njobs = c.njobs,
			.ntypes = c.ntypes, .jobs = c.jobs, .large = c.large, .seed = seed }, &cmd->arena,
			&cmd->diag);
		if (!err)
			err = measure(cmd, c.policy, &drawn.state, repeats, &m);
		if (!err && c.against)
			err = measure(cmd, c.against, &drawn.state, 1, &whole);
		if (!err)
			print_row(cmd, &c, &m, &whole);
	}
	return err || nrows ? err : hd_fail(&cmd->diag, HD_E_INVAL,
		"--policy %.60s: no row is of that policy; without --policy all are made", only);
}

const struct hd_verb hd_verb_sched_bench = {
	.name = "sched bench", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "how long policies take to decide over thousands of random jobs",
	.more =
		"Seconds of one decision from an empty memory (the middle of --repeat, default 3), "
		"linear programs and pivots, and the largest gap of their certificates. --count N: at "
		"most so many jobs in each case; --policy NAME: its cases alone.",
	.opts = HD_OPTS(HD_OPT_SCHED_POLICY, HD_OPT_REPEAT, HD_OPT_COUNT_, HD_OPT_SEED),
	.run = verb_sched_bench, .test = "program_sched_replay.sh",
};
