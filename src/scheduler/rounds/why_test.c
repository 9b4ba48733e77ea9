/* Explanations of random clusters, round after round: one code a job, and what it names as the way out is
 * one. */
#include "scheduler/rounds_why.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check.h"

#define LL(id) ((unsigned long long)(id))

enum { TYPES = 3, JOBS = 24, ROUNDS = 30, SEEDS = SANITIZED ? 9 : 36, NCODES = HD_WHY_OUTRANKED + 1 };

static const char *const names[TYPES] = { "k80", "p100", "v100" };
static uint64_t drawn;
static unsigned long long seed_now;

static double unit(void)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (double)(drawn >> 11) * 0x1p-53;
}

struct world {
	struct hd_sched_type type[TYPES];
	struct hd_sched_job job[JOBS];
	double rate[JOBS][TYPES];
	struct hd_sched_state state;
	struct hd_policy_setting set;
	struct hd_shares shares;
	struct hd_rounds *rounds;
	struct hd_round round;
	struct hd_arena arena;
	uint64_t next_id, fresh;                  /* fresh: the job that came after the boundary; 0: none */
	double now;
};

static void add_job(struct world *w)
{
	uint32_t i = w->state.njobs++;
	struct hd_diag diag = { "" };

	w->job[i] = (struct hd_sched_job){ .id = w->next_id++, .kind = "", .ikind = HD_SCHED_NONE,
		.scale = unit() < 0.6 ? 1 : 1 + (uint32_t)(unit() * 4),
		.weight = unit() < 0.7 ? 1 : 0.1 + 5 * unit(), .steps_left = 1e5,
		.deadline_s = unit() < 0.3 ? 100 + 3000 * unit() : INFINITY,
		.entity = HD_SCHED_NONE, .rate = w->rate[i] };
	for (uint32_t t = 0; t < TYPES; t++)
		w->rate[i][t] = unit() < 0.2 ? 0 : 0.5 + 3 * unit();
	CHECK(hd_rounds_arrive(w->rounds, &w->job[i], 5 + 40 * unit(), &diag) == HD_OK, "%s", diag.text);
}

static void remove_job(struct world *w, uint32_t i)
{
	hd_rounds_leave(w->rounds, w->job[i].id);
	for (; i + 1 < w->state.njobs; i++) {
		w->job[i] = w->job[i + 1];
		memcpy(w->rate[i], w->rate[i + 1], sizeof w->rate[i]);
		w->job[i].rate = w->rate[i];
	}
	w->state.njobs--;
}

static void open_world(struct world *w, uint64_t seed, const char *policy)
{
	seed_now = seed;
	drawn = seed * 77 + 5;
	*w = (struct world){ .state = { .ntypes = TYPES, .types = w->type, .jobs = w->job }, .next_id = 1 };
	hd_arena_init(&w->arena, 0);
	for (uint32_t t = 0; t < TYPES; t++)
		w->type[t] = (struct hd_sched_type){ .name = names[t], .n = 1 + (uint32_t)(unit() * 5),
			.price_usd_h = 0.2 + t };
	struct hd_rounds_setting setting = { .round_s = 60, .min_reset_s = 30 };
	struct hd_diag diag = { "" };
	CHECK(hd_policy_parse(&w->set, policy, &diag) == HD_OK, "%s", diag.text);
	w->set.deadlines = true;
	w->set.phi = -1;                                  /* of cost: no job has a floor */
	setting.queue = w->set.policy->powers & HD_POLICY_QUEUE;
	assert_int_equal(hd_rounds_create(&w->rounds, &setting, TYPES, w->type, NULL, NULL), HD_OK);
	for (uint32_t n = 3 + (uint32_t)(unit() * 12); n; n--)
		add_job(w);
}

static void close_world(struct world *w)
{
	hd_rounds_destroy(w->rounds);
	hd_arena_finish(&w->arena);
}

/* As the live scheduler does: shares if they are stale, the round; arrivals, departures and lost devices
 * before it. */
static void next_round(struct world *w, struct hd_policy *policy, bool quiet)
{
	struct hd_diag diag = { "" };

	for (uint32_t i = 0; i < w->round.nruns; i++)
		hd_rounds_ran(w->rounds, &w->round.run[i], 60);
	w->now += 60;
	if (!quiet && unit() < 0.25 && w->state.njobs < JOBS)
		add_job(w);
	if (!quiet && unit() < 0.15 && w->state.njobs > 2)
		remove_job(w, (uint32_t)(unit() * w->state.njobs));
	if (!quiet && unit() < 0.1)
		hd_rounds_device(w->rounds, (uint32_t)(unit() * (w->type[0].n + w->type[1].n + w->type[2].n)),
			unit() < 0.6);
	if (!quiet && hd_rounds_due(w->rounds, w->now)) {
		CHECK(hd_policy_allocate(policy, &w->state, &w->arena, &w->shares, &diag) == HD_OK, "%s",
			diag.text);
		CHECK(hd_rounds_adopt(w->rounds, w->now, &w->state, &w->shares, &diag) == HD_OK, "%s",
			diag.text);
	}
	CHECK(hd_rounds_next(w->rounds, &w->round, &diag) == HD_OK, "%s", diag.text);
	w->fresh = 0;
	if (!quiet && unit() < 0.15 && w->state.njobs < JOBS) {
		w->fresh = w->next_id;
		add_job(w);
		if (unit() < 0.5) {
			CHECK(hd_policy_allocate(policy, &w->state, &w->arena, &w->shares, &diag) == HD_OK,
				"%s", diag.text);
			CHECK(hd_rounds_adopt(w->rounds, w->now, &w->state, &w->shares, &diag) == HD_OK, "%s",
				diag.text);
		}
		CHECK(hd_rounds_offer(w->rounds, &w->round, &diag) == HD_OK, "%s", diag.text);
	}
}

static bool runs(const struct hd_round *round, uint64_t id)
{
	for (uint32_t i = 0; i < round->nruns; i++)
		for (uint8_t m = 0; m < round->run[i].nmembers; m++)
			if (round->run[i].id[m] == id)
				return true;
	return false;
}

/* The code that the policy's answer to a changed state gives. */
static enum hd_why_code code_with(struct world *w, uint32_t job, const struct hd_why *why)
{
	struct hd_sched_job jobs[JOBS];
	struct hd_sched_type types[TYPES];
	struct hd_sched_state other = w->state;
	struct hd_policy *policy;
	struct hd_shares shares;
	struct hd_why now;

	memcpy(jobs, w->job, sizeof jobs);
	memcpy(types, w->type, sizeof types);
	other.jobs = jobs;
	other.types = types;
	if (why->fix == HD_FIX_WEIGHT)
		jobs[job].weight *= why->value / jobs[job].weight;
	if (why->fix == HD_FIX_ADD)
		types[why->fix_type].n += (uint32_t)why->value;
	if (why->fix == HD_FIX_PRICE)
		assert_true(why->value < types[why->fix_type].price_usd_h);
	if (why->fix == HD_FIX_PRICE)
		types[why->fix_type].price_usd_h = why->value;
	assert_int_equal(hd_policy_create(&policy, &w->set, NULL), HD_OK);
	assert_int_equal(hd_policy_allocate(policy, &other, &w->arena, &shares, NULL), HD_OK);
	hd_policy_destroy(policy);
	hd_sched_why_code(&w->set, &other, &shares, job, &now);
	return now.code;
}

/* Walk codes: what the numbers say of the round itself, counted again. */
static void check_walk(struct world *w, uint32_t job, const struct hd_wait *wait)
{
	struct hd_cell_view view;
	uint64_t id = w->job[job].id;

	if (wait->type == HD_SCHED_NONE || wait->share <= 0)
		return;
	CHECK(hd_rounds_view(w->rounds, id, wait->type, &view) && view.x == wait->share &&
		view.priority == wait->priority, "job %llu", LL(id));
	for (uint32_t t = 0; t < TYPES; t++)
		CHECK(!hd_rounds_view(w->rounds, id, t, &view) || !(view.x > 0) ||
			view.priority <= wait->priority, "job %llu: %s leads", LL(id),
			names[t]);
	if (wait->code == HD_WHY_SHARE_PAID)
		CHECK(wait->received_s >= wait->due_s, "%g %g", wait->received_s, wait->due_s);
	if (wait->code == HD_WHY_OUTRANKED)
		CHECK(wait->free == 0 && wait->received_s < wait->due_s, "free %u", wait->free);
	if (wait->code == HD_WHY_GANG_NO_FIT)
		CHECK(wait->free > 0 && wait->free < wait->need, "free %u of %u", wait->free, wait->need);
	for (uint32_t k = 0; k < wait->nahead; k++)
		CHECK(runs(&w->round, wait->ahead[k].id), "job %llu is said to be ahead and does not run",
			(unsigned long long)wait->ahead[k].id);
}

/* Patience: the same rounds go on without arrivals and ends. */
static void check_patience(struct world *w, struct hd_policy *policy, uint64_t id, uint32_t rounds)
{
	for (uint32_t k = 1; k <= rounds; k++) {
		next_round(w, policy, true);
		CHECK(runs(&w->round, id) == (k == rounds),
			"seed %llu: job %llu was to run in %u rounds, not in %u", seed_now,
			LL(id), rounds, k);
	}
}

static bool sees_own(void *user, uint64_t job) { return *(uint64_t *)user == job; }
static bool sees_even(void *user, uint64_t job) { (void)user; return job % 2 == 0; }

/* Of jobs that may not be seen neither number nor priority, but how many they are. */
static void check_hidden(struct world *w, uint64_t id, const struct hd_wait *wait, uint32_t *nhidden)
{
	static hd_may_see *const eyes[] = { sees_own, sees_even };
	struct hd_diag diag = { "" };

	for (size_t k = 0; k < sizeof eyes / sizeof *eyes; k++) {
		struct hd_explain e = { &w->set, &w->state, &w->shares, w->rounds, w->now, w->now + 60,
			false, eyes[k], &id };
		struct hd_why why;
		uint32_t hidden = 0;
		char part[64];
		CHECK(hd_rounds_explain(&e, id, &w->arena, &why, &diag) == HD_OK, "%s", diag.text);
		bool lists = why.code == HD_WHY_OUTRANKED || why.code == HD_WHY_GANG_NO_FIT ||
			why.code == HD_WHY_HELD_BACK;
		for (uint32_t i = 0; i < wait->nahead && lists; i++) {
			bool may = eyes[k](&id, wait->ahead[i].id);
			hidden += !may;
			snprintf(part, sizeof part, " %llu (priority", (unsigned long long)wait->ahead[i].id);
			CHECK((strstr(why.text, part) != NULL) == may, "of job %llu: %s",
				LL(wait->ahead[i].id),
				why.text);
		}
		snprintf(part, sizeof part, "%u job%s of others", hidden, hidden == 1 ? "" : "s");
		CHECK((strstr(why.text, hidden ? part : "of others") != NULL) == (hidden > 0),
			"%u hidden: %s",
			hidden, why.text);
		*nhidden += hidden;
	}
}

static uint32_t count[NCODES], helped[NCODES], nhidden;

static void explain_all(struct world *w, struct hd_policy *policy, bool *went_on)
{
	struct hd_diag diag = { "" };

	for (uint32_t i = 0; i < w->state.njobs; i++) {
		struct hd_explain e = { &w->set, &w->state, &w->shares, w->rounds, w->now, w->now + 60,
			true, NULL, NULL };
		struct hd_why why, fast;
		struct hd_wait wait;
		uint64_t id = w->job[i].id;

		CHECK(hd_rounds_explain(&e, id, &w->arena, &why, &diag) == HD_OK, "%s", diag.text);
		e.ask = false;
		CHECK(hd_rounds_explain(&e, id, &w->arena, &fast, &diag) == HD_OK && fast.code == why.code,
			"%s", diag.text);
		CHECK(hd_rounds_why(w->rounds, w->now, id, &wait, &diag) == HD_OK, "%s", diag.text);
		CHECK((why.code == HD_WHY_RUNS) == runs(&w->round, id), "seed %llu, job %llu: %s", seed_now,
			LL(id), why.text);
		CHECK(why.text[0], "seed %llu, job %llu: %s without a sentence", seed_now, LL(id),
			hd_why_name(why.code));

					CHECK(id != w->fresh || why.code == HD_WHY_RUNS ||
						why.code == HD_WHY_QUEUED_NEW ||
						why.code == HD_WHY_UNRUNNABLE ||
			why.code == HD_WHY_DRAINING, "seed %llu, job %llu: %s", seed_now, LL(id), why.text);
		count[why.code]++;
		if (why.code == HD_WHY_RUNS)
			continue;
		check_walk(w, i, &wait);
		check_hidden(w, id, &wait, &nhidden);
		helped[why.code] += why.fix != HD_FIX_NONE;
		switch (why.code) {
		case HD_WHY_UNRUNNABLE: case HD_WHY_DEADLINE_SHORT: case HD_WHY_LEFT_IDLE:
		case HD_WHY_TOO_DEAR: case HD_WHY_QUEUED: case HD_WHY_NO_SHARE:
			CHECK(!why.fix || code_with(w, i, &why) == HD_WHY_RUNS,
				"seed %llu, job %llu: %s, and \"%s\" does not help", seed_now, LL(id),
				why.text, why.help);
			break;
		case HD_WHY_SHARE_PAID: case HD_WHY_GANG_NO_FIT: case HD_WHY_OUTRANKED: case HD_WHY_HELD_BACK:
			if (wait.rounds && wait.rounds <= 12 && !*went_on && i % 5 == seed_now % 5) {
				check_patience(w, policy, id, wait.rounds);
				*went_on = true;
				return;
			}
			break;
		case HD_WHY_RUNS: case HD_WHY_OVER: case HD_WHY_DRAINING: case HD_WHY_QUEUED_NEW:
			break;
		}
	}
}

static void every_waiting_job_has_one_code_and_its_way_out_is_one(void **state)
{
	static const char *const policies[] = { "las", "las-plain", "cost", "fifo", "isolated", "sjf",
		"makespan", "sum", "cost" };
	(void)state;

	memset(count, 0, sizeof count);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = &(struct world){ 0 };
		struct hd_policy *policy;
		struct hd_diag diag = { "" };
		bool went_on = false;
		const char *name = policies[seed % (sizeof policies / sizeof *policies)];
		open_world(w, seed, name);
		if (w->set.policy->powers & HD_POLICY_LP && !hd_policy_has_lp()) {
			close_world(w);
			continue;
		}
		assert_int_equal(hd_policy_create(&policy, &w->set, &diag), HD_OK);
		for (uint32_t k = 0; k < ROUNDS && !went_on; k++) {
			next_round(w, policy, false);
			explain_all(w, policy, &went_on);
		}
		hd_policy_destroy(policy);
		close_world(w);
	}
	for (int c = 0; c < NCODES; c++)
		print_message("%-14s %5u, with a way out %5u\n", hd_why_name((enum hd_why_code)c), count[c],
			helped[c]);
	CHECK(nhidden > 10, "%u jobs were hidden", nhidden);
	/* a test of codes that never come would show nothing */
	static const enum hd_why_code met[] = { HD_WHY_RUNS, HD_WHY_UNRUNNABLE, HD_WHY_DRAINING,
		HD_WHY_QUEUED_NEW, HD_WHY_QUEUED, HD_WHY_HELD_BACK,
		HD_WHY_SHARE_PAID, HD_WHY_GANG_NO_FIT, HD_WHY_OUTRANKED, HD_WHY_NO_SHARE, HD_WHY_LEFT_IDLE,
		HD_WHY_TOO_DEAR, HD_WHY_DEADLINE_SHORT };
	for (size_t i = 0; i < sizeof met / sizeof *met - (hd_policy_has_lp() ? 0 : 4); i++)
		CHECK(count[met[i]], "no job was ever %s", hd_why_name(met[i]));
}

/* Two jobs on one device: the cases that can be worked out by hand. */
static void by_hand(uint32_t ndevices, const uint32_t *scale, const double *x, uint32_t njobs,
	const struct hd_rounds_setting *setting, uint32_t nrounds,
	struct hd_wait wait[])
{
	static const double ones[1] = { 1 };
	struct hd_sched_type type = { .name = "cpu", .n = ndevices };
	struct hd_sched_job job[4];
	struct hd_shape shape[4];
	struct hd_rounds *r;
	struct hd_round round = { 0 };

	assert_int_equal(hd_rounds_create(&r, setting, 1, &type, NULL, NULL), HD_OK);
	for (uint32_t i = 0; i < njobs; i++) {
		job[i] = (struct hd_sched_job){ .id = i + 1, .scale = scale[i], .weight = 1,
			.steps_left = 100, .rate = ones };
		shape[i] = (struct hd_shape){ .nmembers = 1, .nneeds = 1, .member = { i }, .rate = { 1 },
			.need = { { 0, scale[i] } } };
		assert_int_equal(hd_rounds_arrive(r, &job[i], 30, NULL), HD_OK);
	}
	const struct hd_sched_state state = { .ntypes = 1, .njobs = njobs, .types = &type, .jobs = job };
	const struct hd_shares shares = { .nshapes = njobs, .shape = shape, .x = x };
	assert_int_equal(hd_rounds_adopt(r, 0, &state, &shares, NULL), HD_OK);
	for (uint32_t k = 0; k < nrounds; k++) {
		for (uint32_t i = 0; i < round.nruns; i++)
			hd_rounds_ran(r, &round.run[i], 60);
		assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
	}
	for (uint32_t i = 0; i < njobs; i++)
		assert_int_equal(hd_rounds_why(r, 60.0 * (nrounds - 1), i + 1, &wait[i], NULL), HD_OK);
	hd_rounds_destroy(r);
}

static void cases_that_can_be_told_by_hand(void **state)
{
	const struct hd_rounds_setting setting = { .round_s = 60, .kappa = -1, .queue = true };
	struct hd_wait w[4];
	(void)state;

	/* equal shares of one device: the first round is job 1's; job 2 has had nothing and is due nothing
	 * yet: at time 0 that is its share */
	by_hand(1, (uint32_t[]){ 1, 1 }, (double[]){ 0.5, 0.5 }, 2, &setting, 1, w);
	assert_int_equal(w[0].code, HD_WHY_RUNS);
	assert_int_equal(w[1].code, HD_WHY_SHARE_PAID);
	assert_int_equal(w[1].rounds, 1);
	/* the second round is job 2's; job 1 had 60 s and was due 30 */
	by_hand(1, (uint32_t[]){ 1, 1 }, (double[]){ 0.5, 0.5 }, 2, &setting, 2, w);
	assert_int_equal(w[0].code, HD_WHY_SHARE_PAID);
	CHECK(w[0].received_s == 60 && w[0].due_s == 30 && w[1].code == HD_WHY_RUNS, "%g %g", w[0].received_s,
		w[0].due_s);
	/* the small share goes last again: due 6 of 60 s, received none; one more device and both run */
	by_hand(1, (uint32_t[]){ 1, 1 }, (double[]){ 0.9, 0.1 }, 2, &setting, 2, w);
	CHECK(w[1].code == HD_WHY_OUTRANKED && w[1].nahead == 1 && w[1].ahead[0].id == 1 && w[1].add == 1,
		"%s", hd_why_name(w[1].code));
	/* three devices, gangs of two: one is left over */
	by_hand(3, (uint32_t[]){ 2, 2 }, (double[]){ 0.8, 0.2 }, 2, &setting, 2, w);
	CHECK(w[1].code == HD_WHY_GANG_NO_FIT && w[1].free == 1 && w[1].need == 2 && w[1].add == 1, "%s %u",
		hd_why_name(w[1].code), w[1].free);
	/* no share, and a share without devices for it */
	by_hand(1, (uint32_t[]){ 1, 2, 1 }, (double[]){ 1, 0, 0 }, 3, &setting, 1, w);
	assert_int_equal(w[1].code, HD_WHY_UNRUNNABLE);
	assert_int_equal(w[2].code, HD_WHY_NO_SHARE);
	/* a dear switch: job 2 leads in the second round (share 0.5, nothing received), and job 1 keeps
	 * the device */
	const struct hd_rounds_setting sticky = { .round_s = 60, .kappa = 8, .queue = true };
	by_hand(1, (uint32_t[]){ 1, 1 }, (double[]){ 0.5, 0.5 }, 2, &sticky, 2, w);
	CHECK(w[0].code == HD_WHY_RUNS && w[1].code == HD_WHY_HELD_BACK && w[1].rounds > 0, "%s",
		hd_why_name(w[1].code));
}

static void a_what_if_tells_who_gains_and_who_loses(void **state)
{
	static const double rate[2] = { 1, 1 };
	struct hd_sched_type type = { .name = "cpu", .n = 1, .price_usd_h = 1 };
	const struct hd_sched_job one = { .id = 7, .kind = "", .scale = 1, .weight = 1, .steps_left = 10,
		.deadline_s = INFINITY, .entity = HD_SCHED_NONE,
		.rate = rate };
	struct hd_sched_job job[2] = { one, one };
	const struct hd_sched_state s = { .ntypes = 1, .njobs = 2, .types = &type, .jobs = job };
	struct hd_policy_setting set = { 0 }, then = { 0 };
	const struct hd_what_if *rows;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	uint32_t n;
	(void)state;

	if (!hd_policy_has_lp())
		SKIP("las needs a solver of linear programs");
	job[1].id = 9;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_policy_parse(&set, "las", NULL), HD_OK);
	/* weights 1 and 3: a quarter and three quarters */
	CHECK(hd_sched_what_if(&set, NULL, &s, &(struct hd_change){ HD_CHANGE_WEIGHT, 1, 3 }, 1, &arena,
		&rows, &n, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(n, 2);
	CHECK(rows[0].job == 0 && fabs(rows[0].share[0] - 0.5) < 1e-7 && fabs(rows[0].share[1] - 0.25) < 1e-7,
		"%g", rows[0].share[1]);
	CHECK(rows[1].job == 1 && fabs(rows[1].share[1] - 0.75) < 1e-7, "%g", rows[1].share[1]);
	/* one more device: everybody all the time */
	CHECK(hd_sched_what_if(&set, NULL, &s, &(struct hd_change){ HD_CHANGE_ADD, 0, 1 }, 1, &arena, &rows,
		&n, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 2 && fabs(rows[0].share[1] - 1) < 1e-7 && fabs(rows[1].rate[1] - 1) < 1e-7, "%u", n);
	/* a gang of two does not fit one device: it loses all, the other gains */
	CHECK(hd_sched_what_if(&set, NULL, &s, &(struct hd_change){ HD_CHANGE_SCALE, 0, 2 }, 1, &arena, &rows,
		&n, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 2 && rows[0].job == 0 && rows[0].share[1] == 0 && fabs(rows[1].share[1] - 1) < 1e-7, "%u",
		n);
	/* ... on two devices it is as fast again, half the time: as many steps as the other */
	const struct hd_change both[] = { { HD_CHANGE_ADD, 0, 1 }, { HD_CHANGE_SCALE, 0, 2 } };
	CHECK(hd_sched_what_if(&set, NULL, &s, both, 2, &arena, &rows, &n, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 2 && fabs(rows[0].rate[1] - 1) < 1e-6 && fabs(rows[0].share[1] - 0.5) < 1e-6 &&
		fabs(rows[1].rate[1] - 1) < 1e-6, "%g", rows[0].rate[1]);
	/* the price of the only type changes nothing under las */
	CHECK(hd_sched_what_if(&set, NULL, &s, &(struct hd_change){ HD_CHANGE_PRICE, 0, 5 }, 1, &arena, &rows,
		&n, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(n, 0);
	/* without the first the other has all */
	CHECK(hd_sched_what_if(&set, NULL, &s, &(struct hd_change){ HD_CHANGE_REMOVE, 0, 0 }, 1, &arena,
		&rows, &n, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 2 && rows[0].job == 0 && rows[0].share[1] == 0 && fabs(rows[1].share[1] - 1) < 1e-7, "%u",
		n);
	/* another policy: first come, first served */
	assert_int_equal(hd_policy_parse(&then, "fifo", NULL), HD_OK);
	CHECK(hd_sched_what_if(&set, &then, &s, NULL, 0, &arena, &rows, &n, &diag) == HD_OK, "%s", diag.text);
	CHECK(n == 2 && rows[0].share[1] == 0 && rows[1].share[1] == 1, "%u", n);
	static const struct hd_change bad[] = { { HD_CHANGE_WEIGHT, 0, 0 }, { HD_CHANGE_SCALE, 0, 1.5 },
		{ HD_CHANGE_ADD, 0, -2 }, { HD_CHANGE_PRICE, 0, -1 },
		{ HD_CHANGE_WEIGHT, 0, NAN } };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_sched_what_if(&set, NULL, &s, &bad[i], 1, &arena, &rows, &n, NULL) == HD_E_INVAL,
			"case %zu", i);
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_waiting_job_has_one_code_and_its_way_out_is_one),
		cmocka_unit_test(cases_that_can_be_told_by_hand),
		cmocka_unit_test(a_what_if_tells_who_gains_and_who_loses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
