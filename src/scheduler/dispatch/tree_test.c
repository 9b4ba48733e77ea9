/* Quotas of accounts that lie within one another, of random trees, under random jobs, crashes and policies:
 * at each record on the disk no account, however far out, has more than its quota. What an account has is
 * added up here along the tree that was drawn, and not by the limits that the jobs carry. */
#include "scheduler/dispatch/testing_dispatch.h"

enum { ACCOUNTS = 9, DEEP = HD_DISPATCH_WITHIN + 1 };

struct tree {
	uint32_t up[ACCOUNTS];                    /* an earlier one; itself: within none */
	uint32_t devices[ACCOUNTS], running[ACCOUNTS];
	uint32_t of[JOBS + 1];                    /* account of each job */
	uint32_t most[ACCOUNTS], tight;           /* devices it had; times that a quota was used up */
};

static uint32_t depth_of(const struct tree *t, uint32_t a)
{
	uint32_t n = 1;

	for (; t->up[a] != a; a = t->up[a])
		n++;
	return n;
}

static void draw_tree(struct world *w, struct tree *t)
{
	memset(t, 0, sizeof *t);
	for (uint32_t a = 0; a < ACCOUNTS; a++) {
		t->up[a] = a && draw(w, 5) ? (uint32_t)draw(w, a) : a;
		while (depth_of(t, a) > DEEP)
			t->up[a] = t->up[t->up[a]];
		t->devices[a] = draw(w, 3) ? 1 + (uint32_t)draw(w, 4) : UINT32_MAX;
		t->running[a] = draw(w, 3) ? UINT32_MAX : 1 + (uint32_t)draw(w, 3);
	}
}

static struct hd_dispatch_entity entity(uint32_t a)
{
	struct hd_dispatch_entity e = { .weight = 1 + a % 3, .fifo = a % 4 == 1 };

	snprintf(e.name, sizeof e.name, "a%u", a);
	return e;
}

/* As the daemon does: limits from its own account outward, entities from the outermost inward. */
static void submit_in(struct world *w, struct tree *t, uint64_t steps, uint32_t scale, uint32_t account)
{
	struct hd_dispatch_job row = { .id = w->njobs + 1, .scale = scale, .weight = 1 + account % 2,
		.deadline_s = INFINITY, .steps = steps, .min = strcmp(w->policy, "wfs") ? 0 : 1,
		.max = strcmp(w->policy, "wfs") ? 0 : 3, .nvns = 16,
		.rate = { { -1, -1, HD_RATE_GUESSED }, { -1, -1, HD_RATE_GUESSED } },
		.nwithin = depth_of(t, account) - 1, .entity = entity(account) };
	uint32_t a = account;

	for (uint32_t i = 0; i <= row.nwithin; i++, a = t->up[a]) {
		struct hd_dispatch_limit *l = &row.limit[row.nlimits++];
		*l = (struct hd_dispatch_limit){ .devices = t->devices[a], .running = t->running[a] };
		snprintf(l->name, sizeof l->name, "account a%u", a);
		if (i)
			row.within[row.nwithin - i] = entity(a);
	}
	t->of[row.id] = account;
	do
		(void)step(w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .row = &row });
	while (w->njobs < row.id);
}

static void check_tree(const struct world *w, struct tree *t)
{
	uint32_t devices[ACCOUNTS] = { 0 }, jobs[ACCOUNTS] = { 0 };

	for (uint64_t id = 1; id <= w->njobs; id++)
		for (uint32_t a = t->of[id]; w->lease[id].state != HD_LEASE_RELEASED; a = t->up[a]) {
			devices[a] += w->lease[id].n;
			jobs[a]++;
			if (t->up[a] == a)
				break;
		}
	for (uint32_t a = 0; a < ACCOUNTS; a++) {
		CHECK(devices[a] <= t->devices[a] && jobs[a] <= t->running[a],
			"account %u has %u devices of %u, %u jobs of %u", a, devices[a], t->devices[a],
			jobs[a], t->running[a]);
		t->tight += devices[a] == t->devices[a];
		t->most[a] = devices[a] > t->most[a] ? devices[a] : t->most[a];
	}
}

static void no_account_of_a_tree_exceeds_its_quota_and_every_job_ends(void **state)
{
	static const char *const policies[] = { "fifo", "hierarchy", "fifo", "wfs" };
	uint32_t tight = 0, crashes = 0, deepest = 0;
	(void)state;

	for (uint64_t seed = 0; seed < DRAWS(12); seed++) {
		struct world w;
		struct tree t;
		begin(&w, hd_policy_has_lp() ? policies[seed % 4] : "fifo", seed + 100);
		draw_tree(&w, &t);
		for (uint32_t a = 0; a < ACCOUNTS; a++)
			deepest = depth_of(&t, a) > deepest ? depth_of(&t, a) : deepest;
		for (int i = 0; i < 60; i++) {
			if (w.njobs < JOBS && !draw(&w, 3))
				submit_in(&w, &t, 20 + draw(&w, 60), 1, (uint32_t)draw(&w, ACCOUNTS));
			if (!draw(&w, 8))
				w.crash_at = w.point + (int)draw(&w, 6);
			pass(&w, 0.5);
			check_tree(&w, &t);
		}
		w.crash_at = -1;
		for (int i = 0; i < 8000 && !is_over(&w); i++) {
			pass(&w, 0.5);
			check_tree(&w, &t);
		}
		CHECK(is_over(&w), "seed %llu: a job does not end", (unsigned long long)seed);
		check_done(&w);
		tight += t.tight;
		crashes += w.crashes;
		struct hd_text again;
		struct hd_diag diag = { "" };
		hd_text_init(&again, &w.arena);
		CHECK(!hd_dispatch_replay("log", w.log.at, w.log.len, &w.arena, &again, &diag), "%s",
			diag.text);
		CHECK(again.len == w.log.len && !memcmp(again.at, w.log.at, w.log.len),
			"seed %llu: the log of its decisions is another one", (unsigned long long)seed);
		finish(&w);
	}
	/* they are used up, far down, or the test shows nothing */
	CHECK(tight > 10 && (SANITIZED || (crashes > 3 && deepest == DEEP)), "%u looks, %u crashes, %u deep",
		tight, crashes, deepest);
}

static void an_account_that_lies_within_itself_is_refused(void **state)
{
	struct hd_dispatch_outs outs;
	struct hd_diag diag = { "" };
	struct world w;
	(void)state;

	begin(&w, "fifo", 1);
	for (int how = 0; how < 3; how++) {
		struct hd_dispatch_job row = { .id = 1, .scale = 1, .weight = 1, .deadline_s = INFINITY,
			.steps = 5, .nwithin = 2, .entity = entity(1), .within = { entity(2), entity(3) } };
		if (how == 0)
			row.within[1] = entity(1);
		if (how == 1)
			row.within[0] = entity(3);
		if (how == 2)
			row.within[0].weight = 0;
		CHECK(hd_dispatch_step(w.d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT,
			.row = &row }, 1, &outs, &diag) == HD_E_INVAL, "way %d is taken", how);
	}
	finish(&w);
}

/* A reservation for an account is for those within it, too. */
static void a_reservation_for_an_account_serves_those_within_it(void **state)
{
	const struct hd_kept window = { .name = "r", .kind = HD_WINDOW_RESERVED, .account = "a0",
		.until_s = INFINITY, .ndevices = DEVICES, .device = { 0, 1, 2, 3, 4, 5 } };
	struct world w;
	struct tree t;
	(void)state;

	begin(&w, "fifo", 1);
	memset(&t, 0, sizeof t);
	for (uint32_t a = 0; a < ACCOUNTS; a++) {
		t.up[a] = a == 2 || a == 1 ? a - 1 : a;
		t.devices[a] = t.running[a] = UINT32_MAX;
	}
	(void)step(&w, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_WINDOW, .window = &window,
		.ok = true });
	submit_in(&w, &t, 100000, 1, 3);
	submit_in(&w, &t, 100000, 1, 2);
	for (int i = 0; i < 100; i++)
		pass(&w, 0.5);
	const struct hd_dispatch_lease *of = hd_dispatch_lease(w.d, 2);
	CHECK(of && of->n == 1 && !hd_dispatch_lease(w.d, 1), "the job within has %u devices, the other %s",
		of ? of->n : 0, hd_dispatch_lease(w.d, 1) ? "some" : "none");
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_account_of_a_tree_exceeds_its_quota_and_every_job_ends, set_within),
		cmocka_unit_test(an_account_that_lies_within_itself_is_refused),
		cmocka_unit_test(a_reservation_for_an_account_serves_those_within_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
