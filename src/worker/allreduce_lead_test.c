/* The leader, against members that say what a test tells them. */
#include "worker/testing_allreduce.h"

static struct job *led(struct world *w, uint32_t first, uint32_t n)
{
	struct job *lead = start(w, LEADER);
	char addr[HD_ADDR_CAP];

	UNTIL(w, w->nspawned == w->bench.n);
	hd_allreduce_leader_addr(&w->bench, addr);
	for (uint32_t m = 0; m < n; m++) {
		struct party *p = join(w, m, first + m);
		assert_int_equal(hd_hub_connect(&p->hub, HD_ALLREDUCE_LEADER, "unix", addr, NULL), HD_OK);
		UNTIL(w, heard(p, HD_SAYS_START) == 1);
	}
	return lead;
}

static void what_a_member_says_it_says_once_and_in_order(void **state)
{
	static const struct {
		const char *name;
		uint32_t worker;
		struct { uint32_t id; size_t len; } say[3];
	} bad[] = {
		{ "an address twice", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_ADDR, HD_ADDR_CAP } } },
		{ "a short address", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP - 1 } } },
		{ "times before an address", 0, { { HD_SAYS_RESULT, ROUNDS * 8 } } },
		{ "times twice", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_RESULT, ROUNDS * 8 },
			{ HD_SAYS_RESULT, ROUNDS * 8 } } },
		{ "too few times", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP }, { HD_SAYS_RESULT, ROUNDS * 8 - 8 } } },
		{ "what is not for it", 0, { { HD_SAYS_READY, HD_ADDR_CAP } } },
		{ "what is not for it, later", 0, { { HD_SAYS_ADDR, HD_ADDR_CAP },
			{ HD_SAYS_READY, ROUNDS * 8 } } },
		{ "an address of a stranger", 5, { { HD_SAYS_ADDR, HD_ADDR_CAP } } },
		{ "times of a stranger", 5, { { HD_SAYS_RESULT, ROUNDS * 8 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct world *w = enter(2);
		struct job *lead = led(w, bad[i].worker, 1);
		char text[40];
		for (int k = 0; k < 3 && bad[i].say[k].id; k++)
			say(&w->party[0], HD_ALLREDUCE_LEADER, bad[i].say[k].id, 0, bad[i].say[k].len);
		snprintf(text, sizeof text, "member %u said", bad[i].worker);
		w->name = bad[i].name;
		ends(lead, HD_E_PROTOCOL, text);
		assert_true(!w->times.checked && w->nkills == 2);
		leave(w);
	}
}

static void addresses_are_told_when_all_are_here_and_times_are_the_slowest(void **state)
{
	static const uint64_t ns[2][ROUNDS] = { { 5000000, 1000000 }, { 2000000, 7000000 } };
	struct world *w = enter(2);
	struct job *lead = led(w, 0, 1);
	char addr[HD_ADDR_CAP];
	uint8_t bytes[ROUNDS * 8];

	(void)state;
	for (uint32_t m = 0; m < 2; m++) {        /* member 1 comes when 0 has said all */
		struct party *p = &w->party[m];
		w->late[m] = 0;
		if (m) {
			p = join(w, 1, 1);
			hd_allreduce_leader_addr(&w->bench, addr);
			assert_int_equal(hd_hub_connect(&p->hub, HD_ALLREDUCE_LEADER, "unix", addr, NULL),
				HD_OK);
			UNTIL(w, p->nups == 1);
		}
		snprintf(addr, sizeof addr, "address of %u", m);
		assert_int_equal(hd_hub_tell(&p->hub, HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, addr, sizeof addr,
			NULL), HD_OK);
		for (int r = 0; r < ROUNDS; r++)
			hd_put64(bytes + 8 * r, ns[m][r]);
		if (m)
			UNTIL(w, heard(&w->party[0], HD_SAYS_PEERS) && heard(&w->party[1], HD_SAYS_PEERS));
		assert_int_equal(hd_hub_tell(&p->hub, HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, bytes,
			sizeof bytes, NULL), HD_OK);
	}
	for (uint32_t m = 0; m < 2; m++) {
		const struct said *said = &w->party[m].said[1];
		assert_true(said->id == HD_SAYS_PEERS && said->len == 2 * HD_ADDR_CAP);
		assert_string_equal((const char *)said->bytes, "address of 0");
		assert_string_equal((const char *)said->bytes + HD_ADDR_CAP, "address of 1");
	}
	ends(lead, HD_OK, "");
	assert_true(w->times.checked && w->ms[0] > 4.99 && w->ms[0] < 5.01 && w->ms[1] > 6.99 &&
		w->ms[1] < 7.01);
	leave(w);
}

/* Both members have said all; then they are waited for, one after the other. */
static void members_are_waited_for_when_all_is_summed(void **state)
{
	static const struct { int late[2]; enum hd_err err; const char *text; uint32_t nwaits; } cases[] = {
		{ { 0, 0 }, HD_OK, "", 2 },
		{ { 4, 0 }, HD_E_WORKERS, "member 0 of 2 ended with exit code 4 after all was summed", 1 },
		{ { 0, 4 }, HD_E_WORKERS, "member 1 of 2 ended with exit code 4 after all was summed", 2 },
		{ { -1, 0 }, HD_E_WORKERS, "member 0 of 2 has not ended 60 s after all was summed", 1 },
		{ { LOST, 0 }, HD_E_IO, "no such process", 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = enter(2);
		for (int m = 0; m < 2; m++)
			w->late[m] = cases[i].late[m];
		struct job *lead = led(w, 0, 2);
		for (int m = 0; m < 2; m++) {
			say(&w->party[m], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
			say(&w->party[m], HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, ROUNDS * 8);
		}
		ends(lead, cases[i].err, cases[i].text);
		CHECK(w->times.checked == !cases[i].err && w->nwaits >= cases[i].nwaits, "case %zu", i);
		leave(w);
	}
}

static void a_member_that_is_lost_is_told_of_by_what_it_did(void **state)
{
	static const struct { enum hd_close why; int early; enum hd_err err; const char *text; } cases[] = {
		{ HD_CLOSE_FRAME, -1, HD_E_PROTOCOL, "member 0: " },
		{ HD_CLOSE_CHECKSUM, -1, HD_E_PROTOCOL, "member 0: " },
		{ HD_CLOSE_DONE, 3, HD_E_WORKERS, "member 0 of 2 ended with exit code 3 before" },
		{ HD_CLOSE_GONE, 0, HD_E_WORKERS, "member 0 of 2 ended with exit code 0 before" } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		struct job *lead = led(w, 0, 1);
		hd_hub_drop(&w->party[0].hub, HD_ALLREDUCE_LEADER, cases[i].why, "for the test");
		UNTIL(w, w->party[0].nlosts || lead->ended);
		w->early[0] = cases[i].early;
		ends(lead, cases[i].err, cases[i].text);
		/* it does not wait for those that it kills as for those that go */
		assert_int_equal(w->nwaits, w->nkills);
		leave(w);
	}
}

static void a_member_that_ends_early_ends_all_with_its_own_words(void **state)
{
	struct world *w = enter(2);

	(void)state;
	struct job *lead = led(w, 0, 1);
	w->early[1] = hd_err_exit(HD_E_INTEGRITY);
	ends(lead, HD_E_INTEGRITY, "member 1 of 2");
	leave(w);
	w = enter(2);
	w->one_after_another = true;
	lead = led(w, 0, 1);
	w->early[0] = 3;
	/* not those of one that ended after it */
	ends(lead, HD_E_WORKERS, "member 0 of 2 ended with exit code 3 before");
	leave(w);
}

static void the_leader_does_not_wait_for_ever(void **state)
{
	struct world *w = enter(2);
	struct job *lead = led(w, 0, 2);

	(void)state;
	say(&w->party[0], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
	say(&w->party[0], HD_ALLREDUCE_LEADER, HD_SAYS_RESULT, 0, ROUNDS * 8);
	say(&w->party[1], HD_ALLREDUCE_LEADER, HD_SAYS_ADDR, 0, HD_ADDR_CAP);
	UNTIL(w, heard(&w->party[0], HD_SAYS_PEERS));
	w->ahead_ns += (LAST + 1) * HD_ALLREDUCE_PATIENCE_NS;
	ends(lead, HD_E_WORKERS, "1 of 2 members have not finished in time");
	leave(w);
	w = enter(2);
	lead = led(w, 0, 1);
	hd_signal_stop_set(HD_STOP_INTERRUPT);
	ends(lead, HD_E_INTERRUPT, "ended by");
	hd_signal_stop_set(HD_STOP_NONE);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_member_says_it_says_once_and_in_order),
		cmocka_unit_test(addresses_are_told_when_all_are_here_and_times_are_the_slowest),
		cmocka_unit_test(members_are_waited_for_when_all_is_summed),
		cmocka_unit_test(a_member_that_is_lost_is_told_of_by_what_it_did),
		cmocka_unit_test(a_member_that_ends_early_ends_all_with_its_own_words),
		cmocka_unit_test(the_leader_does_not_wait_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
