/* Accounts of a live scheduler are entities of its policy: its shares against those of a state file that says
 * the same, which the simulator and `heddle sched solve` read. */
#include "base/json.h"
#include "base/text.h"
#include "scheduler/dispatch/testing_dispatch.h"

enum { ACCOUNTS = 5, NJOBS = 9 };
/* within: 1 + the account; jobs are of the first three */
struct setting { double weight[ACCOUNTS]; bool fifo; uint32_t within[ACCOUNTS]; };

static const char *const names[ACCOUNTS] = { "blue", "green", "red", "lab", "org" };

/* The account of a job and its weight: of the first account one job, of the second three,
	of the last five. */
static uint32_t account_of(uint32_t i) { return i == 0 ? 0 : i < 4 ? 1 : 2; }
static double weight_of(uint32_t i) { return 1 + i % 3; }

static void write_state(struct hd_text *text, const struct setting *set)
{
	hd_text_add(text, "{\"jobs\":[");
	for (uint32_t i = 0; i < NJOBS; i++)
		hd_text_addf(text, "%s{\"id\":%u,\"scale_factor\":%u,\"priority\":%g,\"steps_remaining\":%u,"
			"\"throughput\":{\"fast\":%u,\"slow\":%u}}", i ? "," : "", i + 1, 1 + i % 2,
			weight_of(i), 1000 * (i + 1), 2 * (1 + i % 2), 1 + i % 2);
	hd_text_add(text, "],\"cluster\":{\"fast\":3,\"slow\":3},\"entities\":{");
	for (uint32_t a = 0; a < ACCOUNTS; a++) {
		hd_text_addf(text, "%s\"%s\":[", a ? "," : "", names[a]);
		for (uint32_t i = 0, n = 0; i < NJOBS; i++)
			if (account_of(i) == a)
				hd_text_addf(text, "%s%u", n++ ? "," : "", i + 1);
		hd_text_add(text, "]");
	}
	hd_text_add(text, "},\"entity_weights\":{");
	for (uint32_t a = 0; a < ACCOUNTS; a++)
		hd_text_addf(text, "%s\"%s\":%g", a ? "," : "", names[a], set->weight[a]);
	hd_text_add(text, "},\"entity_parents\":{");
	for (uint32_t a = 0, n = 0; a < ACCOUNTS; a++)
		if (set->within[a])
			hd_text_addf(text, "%s\"%s\":\"%s\"", n++ ? "," : "", names[a],
				names[set->within[a] - 1]);
	hd_text_addf(text, "},\"entity_kind\":\"%s\"}", set->fifo ? "fifo" : "fairness");
}

/* steps/s of each job, by the file */
static void solve_file(const struct setting *set, double rate[NJOBS])
{
	struct hd_policy_setting policy_set = { 0 };
	struct hd_policy *policy = NULL;
	const struct hd_json *json;
	struct hd_sched_state state;
	struct hd_shares shares;
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	write_state(&text, set);
	CHECK(!hd_json_parse(&arena, "state", text.at, text.len, &json, &diag) &&
		!hd_sched_read(&state, json, NULL, &arena, &diag), "%s", diag.text);
	CHECK(!hd_policy_parse(&policy_set, "hierarchy", &diag) &&
		!hd_policy_create(&policy, &policy_set, &diag) &&
		!hd_policy_allocate(policy, &state, &arena, &shares, &diag), "%s", diag.text);
	for (uint32_t i = 0; i < NJOBS; i++)
		rate[i] = shares.e[i];
	hd_policy_destroy(policy);
	hd_arena_finish(&arena);
}

static struct hd_dispatch_entity account(const struct setting *set, uint32_t a)
{
	struct hd_dispatch_entity e = { .weight = set->weight[a], .fifo = set->fifo };

	snprintf(e.name, sizeof e.name, "%s", names[a]);
	return e;
}

/* From the outermost to its own. */
static void put_path(const struct setting *set, uint32_t a, struct hd_dispatch_job *row)
{
	uint32_t up[ACCOUNTS], n = 0;

	for (uint32_t at = set->within[a]; at; at = set->within[at - 1])
		up[n++] = at - 1;
	row->entity = account(set, a);
	while (n)
		row->within[row->nwithin++] = account(set, up[--n]);
}

static struct hd_dispatch *begin_live(const struct setting *set)
{
	const struct hd_dispatch_setting setting = { .policy = "hierarchy", .ntypes = 2, .type = types,
		.began_s = -1 };
	struct hd_dispatch *d = NULL;
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };

	CHECK(!hd_dispatch_create(&d, &setting, NULL, &diag), "%s", diag.text);
	for (uint32_t i = 0; i < NJOBS; i++) {
		struct hd_dispatch_job row = { .id = i + 1, .scale = 1 + i % 2, .weight = weight_of(i),
			.deadline_s = INFINITY, .steps = 1000 * (i + 1),
			.rate = { { 2 * (1 + i % 2), -1, HD_RATE_ASKED }, { 1 + i % 2, -1,
				HD_RATE_ASKED } } };
		put_path(set, account_of(i), &row);
		CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
			.row = &row }, 1, &outs, &diag), "%s", diag.text);
	}
	CHECK(!hd_dispatch_step(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_TICK }, 1, &outs,
		&diag),
		"%s", diag.text);
	return d;
}

static void accounts_share_as_the_entities_of_a_state_file_do(void **state)
{
	static const struct setting sets[] = { { { 1, 1, 1, 1, 1 }, false, { 0 } },
		{ { 1, 3, 1, 1, 1 }, false, { 0 } }, { { 1, 2, 6, 1, 1 }, false, { 0 } },
		{ { 1, 2, 1, 1, 1 }, true, { 0 } },
		/* blue and green in the lab, red beside it; all in the org, red's jobs beside green's */
		{ { 1, 2, 6, 2, 1 }, false, { 4, 4, 0 } }, { { 1, 2, 3, 2, 5 }, false, { 4, 3, 5, 5 } },
		{ { 1, 2, 3, 2, 5 }, true, { 4, 3, 5, 5 } } };
	double first[NJOBS] = { 0 };
	(void)state;

	if (!hd_policy_has_lp())
		SKIP("no solver of linear programs in this build (coinor-libclp-dev)");
	for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
		struct hd_dispatch *d = begin_live(&sets[s]);
		const struct hd_dispatch_ask ask = { .now_s = 1 };
		struct hd_dispatch_why why;
		struct hd_diag diag = { "" };
		double rate[NJOBS], moved = 0;
		solve_file(&sets[s], rate);
		for (uint32_t i = 0; i < NJOBS; i++) {
			CHECK(!hd_dispatch_explain(d, i + 1, &ask, &why, &diag), "%s", diag.text);
			double live = why.type[0].share * why.type[0].steps_s + why.type[1].share *
				why.type[1].steps_s;
			CHECK(fabs(live - rate[i]) < 1e-6,
				"setting %zu, job %u: %g steps/s, %g by the file", s,
				i + 1, live, rate[i]);
			moved += fabs(rate[i] - first[i]);
			first[i] = rate[i];
		}
		CHECK(moved > 0.1, "setting %zu: weights change nothing", s);
		hd_dispatch_destroy(d);
	}
}

/* ---- random trees on a device that is never enough ---- */

enum { TREE = 9, TREE_JOBS = 16 };

struct random_tree {
	struct hd_sched_entity e[TREE];
	struct hd_sched_job job[TREE_JOBS];
	double part[TREE_JOBS];                   /* of the device, as it should be */
};

static uint64_t next_draw(uint64_t *rng)
{
	*rng = *rng * 6364136223846793005u + 1442695040888963407u;
	return *rng >> 33;
}

static bool has_jobs(const struct random_tree *t, uint32_t e)
{
	for (uint32_t i = 0; i < TREE_JOBS; i++)
		for (uint32_t at = t->job[i].entity + 1; at; at = t->e[at - 1].within)
			if (at - 1 == e)
				return true;
	return false;
}

static uint32_t oldest_of(const struct random_tree *t, uint32_t e)
{
	for (uint32_t i = 0; i < TREE_JOBS; i++)
		for (uint32_t at = t->job[i].entity + 1; at; at = t->e[at - 1].within)
			if (at - 1 == e)
				return i;
	return TREE_JOBS;
}

/* From the top: what an entity has is dealt to what lies in it. */
static void deal(struct random_tree *t, uint32_t e, double part)
{
	const bool fifo = t->e[e].kind == HD_ENTITY_FIFO;
	const uint32_t first = oldest_of(t, e);
	double sum = 0;

	for (uint32_t i = 0; i < TREE_JOBS; i++)
		sum += t->job[i].entity == e ? t->job[i].weight : 0;
	for (uint32_t k = 0; k < TREE; k++)
		sum += t->e[k].within == e + 1 && has_jobs(t, k) ? t->e[k].weight : 0;
	for (uint32_t i = 0; i < TREE_JOBS; i++)
		if (t->job[i].entity == e)
			t->part[i] = fifo ? (i == first ? part : 0) : part * t->job[i].weight / sum;
	for (uint32_t k = 0; k < TREE; k++)
		if (t->e[k].within == e + 1 && has_jobs(t, k))
			deal(t, k, fifo ? (oldest_of(t, k) == first ? part : 0) : part * t->e[k].weight /
				sum);
}

static void draw_tree(struct random_tree *t, uint64_t *rng, const double *rate)
{
	static const char *const name[TREE] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	double sum = 0;

	for (uint32_t e = 0; e < TREE; e++)       /* within a later one: as the file may have it */
		t->e[e] = (struct hd_sched_entity){ name[e], 1 + (double)(next_draw(rng) % 5),
			next_draw(rng) % 4 ? HD_ENTITY_FAIRNESS : HD_ENTITY_FIFO,
			e + 1 < TREE && next_draw(rng) % 3 ? 2 + e + (uint32_t)(next_draw(rng) %
			(TREE - e - 1)) : 0 };
	for (uint32_t i = 0; i < TREE_JOBS; i++)
		t->job[i] = (struct hd_sched_job){ .id = i + 1, .kind = "", .ikind = HD_SCHED_NONE,
			.scale = 1, .weight = 1 + (double)(next_draw(rng) % 4), .steps_left = 1e6,
			.deadline_s = INFINITY, .entity = (uint32_t)(next_draw(rng) % TREE), .rate = rate };
	for (uint32_t e = 0; e < TREE; e++)
		sum += !t->e[e].within && has_jobs(t, e) ? t->e[e].weight : 0;
	for (uint32_t e = 0; e < TREE; e++)
		if (!t->e[e].within && has_jobs(t, e))
			deal(t, e, t->e[e].weight / sum);
}

static void shares_of_random_trees_are_dealt_from_the_top(void **state)
{
	static const double rate[] = { 2 };
	static const struct hd_sched_type device[] = { { "a", 1, 0, 0 } };
	struct hd_policy_setting set = { 0 };
	uint64_t rng = 5;
	(void)state;

	if (!hd_policy_has_lp())
		SKIP("no solver of linear programs in this build (coinor-libclp-dev)");
	for (int trial = 0; trial < DRAWS(40); trial++) {
		struct random_tree t;
		struct hd_policy *policy = NULL;
		struct hd_shares shares;
		struct hd_diag diag = { "" };
		struct hd_arena arena;
		draw_tree(&t, &rng, rate);
		struct hd_sched_state s = { .ntypes = 1, .njobs = TREE_JOBS, .nentities = TREE,
			.types = device, .jobs = t.job, .entities = t.e };
		hd_arena_init(&arena, 0);
		enum hd_err err = hd_sched_order(&s, &arena, &diag);
		if (err == HD_E_INVAL && strstr(diag.text, "more than 8 deep")) {
			hd_arena_finish(&arena);
			continue;
		}
		CHECK(!err && !hd_policy_parse(&set, "hierarchy", &diag) &&
			!hd_policy_create(&policy, &set, &diag) &&
			!hd_policy_allocate(policy, &s, &arena, &shares, &diag), "%s", diag.text);
		for (uint32_t i = 0; i < TREE_JOBS; i++)
			CHECK(fabs(shares.e[i] / 2 - t.part[i]) < 1e-6,
				"trial %d, job %u: %g of the device, %g if it is dealt from the top", trial,
				i, shares.e[i] / 2, t.part[i]);
		hd_policy_destroy(policy);
		hd_arena_finish(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(accounts_share_as_the_entities_of_a_state_file_do, set_within),
		cmocka_unit_test(shares_of_random_trees_are_dealt_from_the_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
