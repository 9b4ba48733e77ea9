/* Accounts of a live scheduler are entities of its policy: its shares against those of a state file that says
 * the same, which the simulator and `heddle sched solve` read. */
#include "base/json.h"
#include "base/text.h"
#include "scheduler/dispatch/testing_dispatch.h"

enum { ACCOUNTS = 3, NJOBS = 9 };
struct setting { double weight[ACCOUNTS]; bool fifo; };

static const char *const names[ACCOUNTS] = { "blue", "green", "red" };

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
			.entity = { .weight = set->weight[account_of(i)], .fifo = set->fifo },
			.rate = { { 2 * (1 + i % 2), -1, HD_RATE_ASKED }, { 1 + i % 2, -1,
				HD_RATE_ASKED } } };
		snprintf(row.entity.name, sizeof row.entity.name, "%s", names[account_of(i)]);
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
	static const struct setting sets[] = { { { 1, 1, 1 }, false }, { { 1, 3, 1 }, false },
		{ { 1, 2, 6 }, false }, { { 1, 2, 1 }, true } };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(accounts_share_as_the_entities_of_a_state_file_do, set_within),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
