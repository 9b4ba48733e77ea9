/* Every policy that has an answer to compare on every state of shared/data/gavel: 4 job sets and 72
 * hierarchical states. Half of them have no stored answer: testing_oracle.h finds it, and where one is
 * stored the oracle must find the stored one. Prints what was compared and how far off. */
#include "scheduler/policy/testing_oracle.h"

enum { NSETS = 4, NGROUPS = NSETS + 4, RANDOM = NGROUPS };       /* RANDOM: in no table */
static const char *const groups[NGROUPS] = { "A_three_single", "B_six_single", "C_multi", "D_thirty",
	"fairness_random", "fairness_measured", "fifo_random",
	"fifo_measured" };

static double *each(const struct hd_sched_state *s, double (*of)(const struct hd_sched_state *s, uint32_t i))
{
	double *v = hd_arena_take(&arena, s->njobs, sizeof *v);

	for (uint32_t i = 0; i < s->njobs; i++)
		v[i] = of(s, i);
	return v;
}

static double one(const struct hd_sched_state *s, uint32_t i) { return (void)s, (void)i, 1; }
static double steps(const struct hd_sched_state *s, uint32_t i) { return s->jobs[i].steps_left; }
static double weight_z(const struct hd_sched_state *s, uint32_t i)
{
	return s->jobs[i].weight / oracle_p(s, ORACLE_HETERO, i);
}

static double *prices(const struct hd_sched_state *s, double scale, bool over)
{
	double *v = hd_arena_take(&arena, s->ntypes, sizeof *v);

	for (uint32_t j = 0; j < s->ntypes; j++)
		v[j] = over ? 1 / s->types[j].price_usd_h : s->types[j].price_usd_h * scale;
	return v;
}

/* ---- promises of one figure ---- */

struct oracle_question { enum oracle_rates as; bool pairs, published; double slo; bool parts; };

static double least_z(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, a->as), .pairs = a->pairs, .parts = a->parts };
	double *g = hd_arena_take(&arena, s->njobs, sizeof *g);

	for (uint32_t i = 0; i < s->njobs; i++)
		g[i] = s->jobs[i].weight / s->jobs[i].scale * oracle_p(s, a->as, i);
	o.g = g;
	return oracle_best(&o);
}

static double all_end(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, a->as), .pairs = a->pairs, .parts = a->parts,
		.g = each(s, steps) };

	return 1 / oracle_best(&o);
}

/* Bisection: rho can be had if e_i >= n_i / (rho D_i - a_i) can. First call: nothing is remembered. */
static double latest_rho(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, a->as), .pairs = a->pairs, .parts = a->parts };
	double low = 0, high = 1, *d = hd_arena_take(&arena, s->njobs, sizeof *d),
		*lo = hd_arena_take(&arena, s->njobs, sizeof *lo), x[HD_SCHED_TYPES];
	bool bounded = false;
	uint32_t n = 0;

	o.lo = lo;
	for (uint32_t i = 0; i < s->njobs; i++)
		n += !hd_sched_absent(s, i);
	/* of each type N_j / n / s_i, a row at most 1 */
	for (uint32_t i = 0; i < s->njobs; i++) {
		double sum = 0, iso = 0;
		for (uint32_t j = 0; j < s->ntypes; j++)
			sum += x[j] = a->parts || is_whole(s, i, j) ?
				(double)s->types[j].n / n / s->jobs[i].scale : 0;
		for (uint32_t j = 0; j < s->ntypes; j++)
			iso += x[j] / fmax(1, sum) * o.rate[i * s->ntypes + j];
		d[i] = s->jobs[i].steps_left / iso * (a->published ? 1 : s->jobs[i].weight);
	}
	/* up until it can be had, then between: to a millionth of what is compared below */
	for (int turn = 0; turn < 90 && !(bounded && high - low <= 1e-12 * high); turn++) {
		double rho = bounded ? (low + high) / 2 : high;
		bool can = true;
		for (uint32_t i = 0; can && i < s->njobs; i++) {
			can = hd_sched_absent(s, i) || rho * d[i] > s->jobs[i].age_s;
			lo[i] = hd_sched_absent(s, i) ? 0 :
				s->jobs[i].steps_left / (rho * d[i] - s->jobs[i].age_s);
		}
		can = can && !isnan(oracle_best(&o));
		*(can ? &high : &low) = rho;
		bounded |= can;
		high = bounded ? high : 2 * rho;
	}
	return high;
}

static double most_steps(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, a->as), .pairs = a->pairs, .parts = a->parts };

	o.worth = a->published ? each(s, one) : each(s, weight_z);
	return oracle_best(&o);
}

/* Of slo times what the job takes on v100, of all of them or none. */
static double most_for_money(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, ORACLE_HETERO), .worth = each(s, one),
		.per = prices(s, 1, true) };
	double *lo = hd_arena_take(&arena, s->njobs, sizeof *lo), best;
	const double *v100 = oracle_rates(s, ORACLE_V100);

	o.parts = a->parts;
	for (uint32_t i = 0; a->slo > 0 && i < s->njobs; i++)
		for (uint32_t j = 0; j < s->ntypes; j++)
			lo[i] = fmax(lo[i], v100[i * s->ntypes + j] / a->slo);
	o.lo = lo;
	best = oracle_best(&o);
	o.lo = NULL;
	return isnan(best) ? oracle_best(&o) : best;
}

/* Ours: steps at 1.25 of what they cost where they are cheapest, less the devices, less 5 times that for
 * what is below a quarter of an equal part. */
static double most_money(const struct hd_sched_state *s, const struct oracle_question *a)
{
	struct oracle o = { .s = s, .rate = oracle_rates(s, ORACLE_HETERO),
		.price = prices(s, 1 / 3600.0, false) };
	double *worth = hd_arena_take(&arena, s->njobs, sizeof *worth),
		*need = hd_arena_take(&arena, s->njobs, sizeof *need);
	double *usd = hd_arena_take(&arena, s->njobs, sizeof *usd);
	uint32_t n = 0;

	(void)a;
	for (uint32_t i = 0; i < s->njobs; i++)
		n += !hd_sched_absent(s, i);
	for (uint32_t i = 0; i < s->njobs; i++) {
		double least = INFINITY, sum = 0, iso = 0;
		for (uint32_t j = 0; j < s->ntypes; j++) {
			double rate = is_whole(s, i, j) ? s->jobs[i].rate[j] : 0,
				part = is_whole(s, i, j) ? (double)s->types[j].n / n / s->jobs[i].scale : 0;
			least = rate > 0 && s->types[j].n ? fmin(least,
				o.price[j] * s->jobs[i].scale / rate) : least;
			sum += part;
			iso += part * rate;
		}
		if (!isfinite(least))                     /* no type runs it */
			continue;
		worth[i] = 1.25 * least;
		need[i] = 0.25 * iso / fmax(1, sum);
		usd[i] = 5 * least;
	}
	o.worth = worth;
	o.need[0] = need;
	o.usd[0] = usd;
	return oracle_best(&o);
}

/* `stored`: what it is called under exact_optimum of answers/allocations.json. */
static const struct promise {
	const char *policy;
	double (*best)(const struct hd_sched_state *s, const struct oracle_question *a);
	struct oracle_question question;
	const char *stored;
	bool least, priced;                       /* whether less is better; needs prices */
} promises[] = {
	{ "max_min_fairness", least_z, { .as = ORACLE_ONE }, "max_min_fairness (on T=1)", false, false },
	{ "las-plain", least_z, { .as = ORACLE_ONE }, "max_min_fairness (on T=1)", false, false },
	{ "max_min_fairness_perf", least_z, { 0 }, "max_min_fairness_perf", false, false },
	{ "max_min_fairness_packed", least_z, { .pairs = true }, "max_min_fairness_packed", false, false },
	{ "las", least_z, { 0 }, "max_min_fairness_perf", false, false },
	{ "las-packed", least_z, { .pairs = true }, "max_min_fairness_packed", false, false },
	{ "min_total_duration", all_end, { .as = ORACLE_V100 }, "min_total_duration (on T_v100)", true, false },
	{ "min_total_duration_perf", all_end, { 0 }, "min_total_duration_perf", true, false },
	{ "min_total_duration_packed", all_end, { .pairs = true }, "min_total_duration_packed", true, false },
	{ "makespan", all_end, { 0 }, "min_total_duration_perf", true, false },
	{ "finish_time_fairness", latest_rho, { .as = ORACLE_V100, .published = true }, "finish_time_fairness (on T_v100)", true, false },
	{ "finish_time_fairness_perf", latest_rho, { .published = true }, "finish_time_fairness_perf", true, false },
	{ "finish_time_fairness_packed_unweighted", latest_rho, { .pairs = true, .published = true }, "finish_time_fairness_packed_unweighted", true, false },
	{ "ftf", latest_rho, { 0 }, NULL, true, false },
	{ "ftf-packed", latest_rho, { .pairs = true }, NULL, true, false },
	{ "max_sum_throughput_perf", most_steps, { .published = true }, "max_sum_throughput_perf", false, false },
	{ "max_sum_throughput_packed", most_steps, { .pairs = true, .published = true }, NULL, false, false },
	{ "sum", most_steps, { 0 }, NULL, false, false },
	{ "sum-packed", most_steps, { .pairs = true }, NULL, false, false },
	{ "max_sum_throughput_normalized_by_cost_perf", most_for_money, { 0 }, "max_sum_throughput_normalized_by_cost_perf", false, true },
	{ "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=3x_v100_time", most_for_money, { .slo = 3 },
		"max_sum_throughput_normalized_by_cost_perf_SLOs_slo=3x_v100_time", false, true },
	{ "max_sum_throughput_normalized_by_cost_perf_SLOs_slo=20x_v100_time", most_for_money, { .slo = 20 },
		"max_sum_throughput_normalized_by_cost_perf_SLOs_slo=20x_v100_time", false, true },
	{ "cost", most_money, { 0 }, NULL, false, true },
};
enum { NPROMISES = sizeof promises / sizeof *promises };

/* ---- promises of a whole vector: z, of plain ones time ---- */

static const struct vector {
	const char *policy;
	enum oracle_rates as;
	bool pairs, entities;
	int kind;                                 /* as in struct hd_policy_setting */
	const char *of_set, *of_state;            /* names of stored vectors */
} vectors[] = {
	{ "max_min_fairness_water_filling", ORACLE_ONE, false, false, 0, "water_filling_agnostic_exact_time_share", NULL },
	{ "max_min_fairness_water_filling_perf", ORACLE_HETERO, false, false, 0, "water_filling_perf_exact_normalized", NULL },
	{ "max_min_fairness_water_filling_packed", ORACLE_HETERO, true, false, 0, "water_filling_packed_exact_normalized", NULL },
	{ "hierarchical_fairness", ORACLE_HETERO, false, true, 1 + HD_ENTITY_FAIRNESS,
		"hierarchical_entities_mod3_weights123_fairness_exact_normalized", NULL },
	{ "hierarchical_fifo", ORACLE_HETERO, false, true, 1 + HD_ENTITY_FIFO, "hierarchical_entities_mod3_weights123_fifo_exact_normalized", NULL },
	{ "hierarchy", ORACLE_HETERO, false, true, 0, NULL, "exact_normalized" },
	{ "hierarchy-plain", ORACLE_ONE, false, true, 0, NULL, "exact_time_share_agnostic" },
	{ "hierarchy-packed", ORACLE_HETERO, true, true, 0, NULL, NULL },
};
enum { NVECTORS = sizeof vectors / sizeof *vectors };

/* ---- the walk ---- */

/* compared, of them with a stored answer; the worst by which it is worse */
struct tally { uint32_t states, stored; double off; };

struct covered_walk {
	struct tally cell[NPROMISES + NVECTORS][NGROUPS + 1];
	const struct hd_json *answer;             /* of the state; NULL */
	uint32_t group;
	const char *name;
	struct hd_sched_state s;
};

/* Rule 1 of sched_policy.h, counted here again. */
static void check_feasible(const struct covered_walk *w, const char *policy, const struct hd_shares *out)
{
	double *time = hd_arena_take(&arena, w->s.njobs, sizeof *time), used[HD_SCHED_TYPES] = { 0 };

	for (uint32_t k = 0; k < out->nshapes; k++) {
		for (int m = 0; m < out->shape[k].nmembers; m++)
			CHECK((time[out->shape[k].member[m]] += out->x[k]) <= 1 + 1e-9, "%s, %s: time",
				w->name, policy);
		used[out->shape[k].need[0].type] += out->x[k] * out->shape[k].need[0].n;
	}
	for (uint32_t j = 0; j < w->s.ntypes; j++)
		CHECK(used[j] <= w->s.types[j].n * (1 + 1e-9), "%s, %s: %.12g of %u devices", w->name, policy,
			used[j], w->s.types[j].n);
	CHECK(!out->kept && !out->cut && out->gap <= 1e-7, "%s, %s: gap %g", w->name, policy, out->gap);
}

static void promise_is_kept(struct covered_walk *w, uint32_t row)
{
	const struct promise *p = &promises[row];
	struct tally *cell = &w->cell[row][w->group];
	struct hd_shares out;
	struct oracle_question asked = p->question, published = p->question;
	double stored = 0, want, theirs;

	published.parts = true;
	for (uint32_t j = 0; p->priced && j < w->s.ntypes; j++)
		if (!(w->s.types[j].price_usd_h > 0))
			return;
	want = p->best(&w->s, &asked);
	theirs = has_parts(&w->s) ? p->best(&w->s, &published) : want;
	if (p->stored && w->answer && w->group < NSETS && hd_json_find(hd_json_find(w->answer,
		"exact_optimum"), p->stored)) {
		assert_int_equal(hd_json_get_f64(hd_json_find(w->answer, "exact_optimum"), p->stored, &stored,
			NULL), HD_OK);
		CHECK(fabs(theirs - stored) <= 1e-6 * fabs(stored),
			"%s, %s: the oracle says %.12g, stored is %.12g", w->name, p->policy, theirs, stored);
		cell->stored++;
	}
	for (int fidelity = 0; fidelity < 2; fidelity++) {
		bool bisected = fidelity && p->best == all_end;
		if (fidelity && !p->question.published && (p->best == most_steps || p->best == most_money))
			continue;                         /* ours has an objective of its own */
		ask(p->policy, (struct hd_policy_setting){ .fidelity = (enum hd_fidelity)fidelity }, &w->s,
			&arena, &out);
		check_feasible(w, p->policy, &out);
		double best = fidelity ? theirs : want, worse = (p->least ? out.objective - best :
			best - out.objective) / fabs(best);
		CHECK(bisected ? worse > -1e-6 && (out.objective < 110 || worse <= 0.05) :
			fabs(worse) <= 1e-6,
			"%s, %s, fidelity %d: %.12g, the best is %.12g", w->name, p->policy, fidelity,
			out.objective, best);
		cell->off = bisected ? cell->off : fmax(cell->off, fabs(worse));
	}
	cell->states++;
}

static void vector_is_the_best(struct covered_walk *w, uint32_t row)
{
	const struct vector *v = &vectors[row];
	struct tally *cell = &w->cell[NPROMISES + row][w->group];
	const struct hd_json *stored = w->answer && w->group < NSETS ? hd_json_find(w->answer,
		"exact_optimum") : w->answer;
	const char *key = w->group < NSETS ? v->of_set : v->of_state;
	struct hd_shares out;
	double *want, *theirs, *got, is = 0;

	/* the state says of what kind its entities are */
	if (v->kind && w->group >= NSETS && w->group < NGROUPS)
		return;
	want = theirs = oracle_filled(&w->s, v->as, v->pairs, false, v->entities, v->kind);
	if (has_parts(&w->s) && stored && key)
		theirs = oracle_filled(&w->s, v->as, v->pairs, true, v->entities, v->kind);
	stored = stored && key ? hd_json_find(stored, key) : NULL;
	cell->stored += stored != NULL;
	for (uint32_t i = 0; stored && i < w->s.njobs; i++) {
		assert_int_equal(hd_json_as_f64(hd_json_item(stored, i), &is, NULL), HD_OK);
		CHECK(fabs(theirs[i] - is) <= 1e-5, "%s, %s: job %u: the oracle says %.9g, stored is %.9g",
			w->name, v->policy, i, theirs[i], is);
	}
	ask(v->policy, (struct hd_policy_setting){ 0 }, &w->s, &arena, &out);
	check_feasible(w, v->policy, &out);
	got = hd_arena_take(&arena, w->s.njobs, sizeof *got);
	for (uint32_t i = 0; i < w->s.njobs; i++)
		got[i] = out.z[i];
	for (uint32_t k = 0; v->as == ORACLE_ONE && k < out.nshapes; k++)
		got[out.shape[k].member[0]] = 0;
	for (uint32_t k = 0; v->as == ORACLE_ONE && k < out.nshapes; k++)
		got[out.shape[k].member[0]] += out.x[k];
	for (uint32_t i = 0; i < w->s.njobs; i++) {
		CHECK(fabs(got[i] - want[i]) <= 1e-5, "%s, %s: job %u: %.9g, not %.9g", w->name, v->policy, i,
			got[i], want[i]);
		cell->off = fmax(cell->off, fabs(got[i] - want[i]));
	}
	cell->states++;
}

/* Under a sanitizer one hierarchical state of each group: nearly all of its time is the solver's own
 * memory. */
enum { EACH = 18 };

static void walk(struct covered_walk *w, const char *sets, const char *answers, uint32_t *nstates,
	uint32_t *taken)
{
	struct hd_arena files;

	hd_arena_init(&files, 0);
	const struct hd_json *file = shared_json(sets, &files), *stored = shared_json(answers, &files);

	for (uint32_t k = 0; k < hd_json_count(file); k++, ++*nstates) {
		struct hd_diag diag = { "" };
		w->name = hd_json_key(file, k);
		for (w->group = 0; w->group < NGROUPS && strncmp(w->name, groups[w->group],
			strlen(groups[w->group])); w->group++)
			;
		CHECK(w->group < NGROUPS, "%s is a state of no group", w->name);
		if (SANITIZED && w->group >= NSETS && k % EACH != EACH / 2)
			continue;
		++*taken;
		w->answer = hd_json_find(stored, w->name);
		CHECK(hd_sched_read(&w->s, file, w->name, &arena, &diag) == HD_OK, "%s", diag.text);
		for (uint32_t r = 0; r < NPROMISES; r++)
			promise_is_kept(w, r);
		for (uint32_t r = 0; r < NVECTORS; r++)
			vector_is_the_best(w, r);
		hd_arena_reset(&arena);
	}
	hd_arena_finish(&files);
}

static void every_policy_on_every_state_is_as_good_as_the_best(void **state)
{
	static struct covered_walk w;
	uint32_t nstates = 0, taken = 0, compared = 0;
	(void)state;
	need_lp();
	if (!shared_json("data/gavel/job_sets.json", &arena))
		SKIP("data/gavel is neither in HEDDLE_SHARED nor in tests");
	walk(&w, "data/gavel/job_sets.json", "data/gavel/answers/allocations.json", &nstates, &taken);
	walk(&w, "data/gavel/hierarchical_states.json", "data/gavel/answers/hierarchical.json", &nstates,
		&taken);
	for (uint32_t r = 0; r < NPROMISES + NVECTORS; r++) {
		printf("| `%s` |", r < NPROMISES ? promises[r].policy : vectors[r - NPROMISES].policy);
		for (uint32_t g = 0; g < NGROUPS; g++) {
			const struct tally *c = &w.cell[r][g];
			compared += c->states;
			if (c->states)
				printf(" %u (%u), %.0e |", c->states, c->stored, c->off);
			else
				printf(" |");
		}
		printf("\n");
	}
	CHECK(nstates == 76 && taken == (SANITIZED ? NSETS + 72 / EACH : 76) &&
		compared >= taken * (NPROMISES - 4), "%u of %u states, %u comparisons",
		taken, nstates, compared);
}

/* Random clusters in which some gang is larger than some type: a share of it there would count in the
 * program and never run. */
static void no_objective_counts_what_no_round_could_give(void **state)
{
	static struct covered_walk w;
	uint32_t tried = 0;
	(void)state;
	need_lp();
	w = (struct covered_walk){ .group = RANDOM };
	for (uint32_t seed = 0; seed < 60 && (!SANITIZED || tried < 2); seed++) {
		char name[32];
		snprintf(name, sizeof name, "seed %u", seed);
		w.name = name;
		random_state(&w.s, seed, 1 + seed * 7 % 8, 2 + seed % 4, &arena);
		if (!has_parts(&w.s)) {
			hd_arena_reset(&arena);
			continue;
		}
		tried++;
		for (uint32_t r = 0; r < NPROMISES; r++)
			/* not every cluster has it */
			if (promises[r].question.as != ORACLE_V100 && !(promises[r].question.slo > 0))
				promise_is_kept(&w, r);
		for (uint32_t r = 0; r < NVECTORS; r++)
			vector_is_the_best(&w, r);
		hd_arena_reset(&arena);
	}
	CHECK(tried >= (SANITIZED ? 2 : 8), "%u", tried);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_on_every_state_is_as_good_as_the_best),
		cmocka_unit_test(no_objective_counts_what_no_round_could_give),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
