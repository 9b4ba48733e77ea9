/* heddle sched bench: how long policies take over states that are drawn, and what their programs looked like. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "cluster/sched_policy.h"
#include "cmd/json_line.h"

enum { KINDS = 26, REPEAT = 3, MOST_REPEATS = 1000 };

/* A row a case; `against`: the row's policy again without POP, whose least share it is held against. */
static const struct bench_case { const char *name, *policy; uint32_t njobs, ntypes; bool pairs; const char *against; } cases[] = {
	{ "max-min",            "las",          2000,  3, false, NULL },
	{ "max-min",            "las",          10000, 8, false, NULL },
	{ "max-min, pairs",     "las-packed",   100,   3, true,  NULL },
	{ "max-min, pairs",     "las-packed",   300,   3, true,  NULL },
	{ "max-min, by kinds",  "las-kinds",    300,   3, true,  NULL },
	{ "makespan",           "makespan",     2000,  3, false, NULL },
	{ "throughput",         "sum",          2000,  3, false, NULL },
	{ "cost",               "cost",         2000,  3, false, NULL },
	{ "makespan",           "makespan",     10000, 8, false, NULL },
	{ "throughput",         "sum",          10000, 8, false, NULL },
	{ "finish times",       "ftf",          10000, 8, false, NULL },
	{ "product",            "nash",         300,   3, false, NULL },
	{ "product",            "nash",         300,   8, false, NULL },
	{ "equal parts",        "isolated",     10000, 8, false, NULL },
	{ "max-min in 4 parts", "pop:4:las",    1024,  3, false, "las" },
};

struct drawn { struct hd_sched_state state; struct hd_pair_table table; };
struct measured { double seconds, least, objective, gap; uint32_t programs, iterations; bool gave_up; };

static double draw(uint32_t seed, uint32_t what, uint32_t i)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ HD_RNG_CLUSTER_KIND, what, i, 77 }, hd_philox_key(seed, HD_RNG_CLUSTER));

	return ((double)x.word[0] + 0.5) * 0x1p-32;
}

enum draws { KIND_SIZE, KIND_SPEED, KIND_LOSS, JOB_KIND, JOB_SCALE, JOB_STEPS, JOB_WEIGHT, JOB_SPEED };

/* 26 kinds that like types differently, as measured tables have it, each job measured apart (of pairs each kind); jobs of 1, 2, 4 and 8 devices (7 : 1 : 1.5 : .5) where there are no pairs. */
static enum hd_err draw_state(struct hd_cmd *cmd, const struct bench_case *c, uint32_t seed, struct drawn *to)
{
	static const char *const names[] = { "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7" };
	struct hd_sched_type *types = hd_arena_take(&cmd->arena, c->ntypes, sizeof *types);
	struct hd_sched_job *jobs = hd_arena_take(&cmd->arena, c->njobs, sizeof *jobs);
	double *rate = hd_arena_take(&cmd->arena, (size_t)KINDS * c->ntypes, sizeof *rate);
	double *pair = hd_arena_take(&cmd->arena, (size_t)KINDS * KINDS * c->ntypes * 2, sizeof *pair);

	if (!types || !jobs || !rate || !pair)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u jobs", c->njobs);
	for (uint32_t t = 0; t < c->ntypes; t++)
		types[t] = (struct hd_sched_type){ .name = names[t], .n = c->njobs / c->ntypes / 2 + 8, .price_usd_h = 0.1 * (1 << t) };
	for (uint32_t k = 0; k < KINDS; k++)
		for (uint32_t t = 0; t < c->ntypes; t++)
			rate[k * c->ntypes + t] = exp(5 * draw(seed, KIND_SIZE, k)) * pow(1.2 + 1.6 * draw(seed, KIND_SPEED, k), t);
	for (uint32_t a = 0; a < KINDS; a++)
		for (uint32_t b = 0; b < KINDS; b++)
			for (uint32_t t = 0; t < c->ntypes; t++) {
				double *both = &pair[(((size_t)a * KINDS + b) * c->ntypes + t) * 2];
				both[0] = rate[a * c->ntypes + t] * (0.35 + 0.6 * draw(seed, KIND_LOSS, b));
				both[1] = rate[b * c->ntypes + t] * (0.35 + 0.6 * draw(seed, KIND_LOSS, a));
			}
	for (uint32_t i = 0; i < c->njobs; i++) {
		uint32_t kind = (uint32_t)(KINDS * draw(seed, JOB_KIND, i));
		double u = draw(seed, JOB_SCALE, i), *own = &rate[kind * c->ntypes];
		for (uint32_t t = 0; t < c->ntypes && !c->pairs; t++) {
			if (t == 0 && !(own = hd_arena_take(&cmd->arena, c->ntypes, sizeof *own)))
				return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u jobs", c->njobs);
			own[t] = rate[kind * c->ntypes + t] * (0.95 + 0.1 * draw(seed, JOB_SPEED, i * c->ntypes + t));
		}
		jobs[i] = (struct hd_sched_job){ .id = i, .kind = "", .ikind = kind, .scale = c->pairs || u < 0.7 ? 1 : u < 0.8 ? 2 : u < 0.95 ? 4 : 8,
			.weight = 1 + floor(4 * draw(seed, JOB_WEIGHT, i)), .steps_left = 1e4 * exp(6 * draw(seed, JOB_STEPS, i)),
			.deadline_s = INFINITY, .entity = HD_SCHED_NONE, .rate = own };
	}
	to->table = (struct hd_pair_table){ KINDS, pair };
	to->state = (struct hd_sched_state){ .ntypes = c->ntypes, .njobs = c->njobs, .types = types, .jobs = jobs, .table = c->pairs ? &to->table : NULL };
	return HD_OK;
}

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
static enum hd_err measure(struct hd_cmd *cmd, const char *name, const struct hd_sched_state *state, uint64_t repeats, struct measured *to)
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
			*to = (struct measured){ .least = least_share(state, &out), .objective = out.objective, .gap = out.gap, .programs = out.nlps,
				.iterations = out.iterations, .gave_up = out.kept };
		hd_policy_destroy(policy);
		hd_arena_finish(&call);
	}
	qsort(seconds, (size_t)repeats, sizeof *seconds, up);
	to->seconds = seconds[repeats / 2];
	return err;
}

static void print_row(struct hd_cmd *cmd, const struct bench_case *c, const struct measured *m, double of_full)
{
	struct hd_json_line line;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%-20s %-12s %6u %5u %10.4f %9" PRIu32 " %10" PRIu32 " %9.1e", c->name, c->policy, c->njobs, c->ntypes, m->seconds, m->programs,
			m->iterations, m->gap);
		if (c->against)
			printf("   least share %.4f of the whole's", of_full);
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
	hd_json_put_f64(w, "objective", m->objective);
	hd_json_put_f64(w, "least_share", m->least);
	if (c->against)
		hd_json_put_f64(w, "of_whole", of_full);
	hd_json_line_print(&line);
}

static bool built(const char *name)
{
	struct hd_policy_setting set = { 0 };

	return !hd_policy_parse(&set, name, NULL) && (!(set.policy->powers & HD_POLICY_LP) || hd_policy_has_lp());
}

enum hd_err hd_cmd_sched_bench(struct hd_cmd *cmd)
{
	uint64_t repeats = cmd->args.has[HD_OPT_REPEAT] ? cmd->args.count[HD_OPT_REPEAT] : REPEAT;
	uint64_t most = cmd->args.has[HD_OPT_COUNT_] ? cmd->args.count[HD_OPT_COUNT_] : UINT64_MAX;
	uint32_t seed = (uint32_t)cmd->args.count[HD_OPT_SEED];
	enum hd_err err = HD_OK;

	if (!repeats || repeats > MOST_REPEATS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--repeat %" PRIu64 ": 1 to %d", repeats, MOST_REPEATS);
	if (!cmd->args.has[HD_OPT_JSON])
		printf("%-20s %-12s %6s %5s %10s %9s %10s %9s\n", "case", "policy", "jobs", "types", "seconds", "programs", "iterations", "gap");
	for (size_t k = 0; k < sizeof cases / sizeof *cases && !err; k++) {
		struct bench_case c = cases[k];
		struct measured m = { 0 }, whole = { 0 };
		struct drawn drawn;
		c.njobs = most < c.njobs ? (uint32_t)most : c.njobs;
		if (!built(c.policy)) {
			if (!cmd->args.has[HD_OPT_JSON])
				printf("%-20s %-12s not in this build: no solver of linear programs\n", c.name, c.policy);
			continue;
		}
		err = draw_state(cmd, &c, seed, &drawn);
		if (!err)
			err = measure(cmd, c.policy, &drawn.state, repeats, &m);
		if (!err && c.against)
			err = measure(cmd, c.against, &drawn.state, 1, &whole);
		if (!err)
			print_row(cmd, &c, &m, whole.least > 0 ? m.least / whole.least : NAN);
	}
	return err;
}
