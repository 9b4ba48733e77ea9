/* One member, against a leader and members that say what a test tells them. */
#include "worker/testing_allreduce.h"

/* Member `me` of two, or of `n`, with the key; the test is the leader. */
static struct job *with_key(struct world *w, uint32_t me)
{
	struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
	struct job *member = start(w, me);

	UNTIL(w, leader->nups == 1);
	say(leader, me, HD_SAYS_START, 0, HD_ALLREDUCE_KEY);
	UNTIL(w, heard(leader, HD_SAYS_ADDR) == 1);
	return member;
}

/* And the other member too: they are connected, with the channel of one bucket, which is member 0's. */
static struct job *met(struct world *w, uint32_t me)
{
	static const struct hd_transfer root = { PART, 0, LEN * sizeof(float) },
		sum = { SUM, 1, LEN * sizeof(float) };
	struct job *member = with_key(w, me);
	struct party *leader = &w->party[LEADER], *other = join(w, 1 - me, 1 - me);
	char addrs[2 * HD_ADDR_CAP] = "";

	for (int m = 0; m < 2; m++)
		snprintf(addrs + m * HD_ADDR_CAP, HD_ADDR_CAP, "unix:%s/%d", w->folder, m);
	assert_int_equal(hd_hub_tell(&leader->hub, me, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL), HD_OK);
	if (!me)
		assert_int_equal(hd_hub_connect(&other->hub, 0, "unix", addrs, NULL), HD_OK);
	UNTIL(w, other->nups == 1);
	assert_int_equal(me ? hd_hub_channel(&other->hub, 1, &root, 1, &sum, 1,
		NULL) : hd_hub_channel(&other->hub, 0, &sum, 1, &root, 1, NULL), HD_OK);
	assert_int_equal(me ? hd_hub_post(&other->hub, 1, PART, other->part, NULL) : hd_hub_post(&other->hub,
		0, SUM, other->sum, NULL), HD_OK);
	return member;
}

/* What member 0 has to add, by its sum with zeros; it ends, as that is not the sum that should be. */
static void learn(float values[LEN])
{
	static const float zeros[LEN];
	struct world *w = enter(2);
	struct job *member = met(w, 0);
	struct party *other = &w->party[1];

	say(other, 0, HD_SAYS_READY, 1, 0);
	UNTIL(w, heard(other, HD_SAYS_GO));
	assert_int_equal(hd_hub_send(&other->hub, 0, &(struct hd_send){ .transfer = PART, .step = 1,
		.bytes = zeros, .len = sizeof zeros }, NULL), HD_OK);
	UNTIL(w, other->nsums == 1);
	memcpy(values, other->sum, sizeof other->sum);
	ends(member, HD_E_INTEGRITY, "element 0 of the sum at member 0");
	leave(w);
}

/* Member 0 plays with member 1: right sums, but in round `wrong`. */
static void play(struct world *w, const float values[LEN], uint32_t wrong, uint32_t rounds)
{
	struct party *zero = &w->party[0];
	static float sum[LEN];

	for (uint32_t r = 1; r <= rounds; r++) {
		UNTIL(w, heard(zero, HD_SAYS_READY) == r);
		assert_true(zero->said[zero->nsaid - 1].step == r);
		say(zero, 1, HD_SAYS_GO, r, 0);
		UNTIL(w, zero->nparts == r);
		for (int k = 0; k < LEN; k++)
			sum[k] = r == wrong && k == LEN - 1 ? 0.0f : values[k] + zero->part[k];
		assert_int_equal(hd_hub_send(&zero->hub, 1, &(struct hd_send){ .transfer = SUM, .step = r,
			.bytes = sum, .len = sizeof sum }, NULL), HD_OK);
		turn(w);
		if (r == wrong && w->job[1].ended)
			return;
	}
}

static void the_first_round_and_the_last_are_compared(void **state)
{
	static const uint32_t wrongs[] = { 0, 1, 3, LAST };
	float values[LEN];

	(void)state;
	learn(values);
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		struct job *member = met(w, 1);
		struct party *leader = &w->party[LEADER];
		bool bad = wrongs[i] == 1 || wrongs[i] == LAST;
		play(w, values, wrongs[i], bad ? wrongs[i] : LAST);
		if (bad) {
			ends(member, HD_E_INTEGRITY, "element 4 of the sum at member 1");
			assert_int_equal(heard(leader, HD_SAYS_RESULT), 0);
		/* after it has reported its times a member may go, and the leader ends it */
		} else {
			UNTIL(w, heard(leader, HD_SAYS_RESULT) == 1);
			const struct said *said = &leader->said[leader->nsaid - 1];
			assert_int_equal(said->len, ROUNDS * 8);
			assert_true(hd_get64(said->bytes) > 0 && hd_get64(said->bytes + 8) > 0);
			part(&w->party[0]);
			hd_hub_probe(&leader->hub, 1);
			turn(w);
			assert_false(member->ended);
			part(leader);
			ends(member, HD_OK, "");
		}
		leave(w);
	}
}

static void what_is_told_is_told_once_and_by_whom_it_should(void **state)
{
	static const struct { const char *name; uint32_t me; bool meets; uint32_t by,
		id; uint64_t step; size_t len; int times; } bad[] = {
		{ "a key again", 1, false, LEADER, HD_SAYS_START, 0, HD_ALLREDUCE_KEY, 1 },
		{ "addresses that are too few", 1, false, LEADER, HD_SAYS_PEERS, 0, HD_ADDR_CAP, 1 },
		{ "what is said to it alone, as long as a key", 1, false, LEADER, HD_SAYS_RESULT, 0,
			HD_ALLREDUCE_KEY, 1 },
		{ "what is said to it alone, as long as addresses", 1, false, LEADER, HD_SAYS_ADDR, 0,
			2 * HD_ADDR_CAP, 1 },
		{ "the word to begin, of the leader", 1, false, LEADER, HD_SAYS_GO, 1, 0, 1 },
		{ "readiness, of the leader", 0, false, LEADER, HD_SAYS_READY, 1, 0, 1 },
		{ "addresses again", 1, true, LEADER, HD_SAYS_PEERS, 0, 2 * HD_ADDR_CAP, 1 },
		{ "a key by a member", 1, true, 0, HD_SAYS_START, 0, HD_ALLREDUCE_KEY, 1 },
		{ "addresses by a member", 1, true, 0, HD_SAYS_PEERS, 0, 2 * HD_ADDR_CAP, 1 },
		{ "the word for a later round", 1, true, 0, HD_SAYS_GO, 2, 0, 1 },
		{ "the word for no round", 1, true, 0, HD_SAYS_GO, 0, 0, 1 },
		{ "the word again", 1, true, 0, HD_SAYS_GO, 1, 0, 2 },
		{ "readiness, unasked", 1, true, 0, HD_SAYS_READY, 1, 0, 1 },
		{ "readiness for a later round", 0, true, 1, HD_SAYS_READY, 2, 0, 1 },
		{ "the word, to its sender", 0, true, 1, HD_SAYS_GO, 1, 0, 1 },
		{ "readiness again", 0, true, 1, HD_SAYS_READY, 1, 0, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct world *w = enter(2);
		struct job *member = bad[i].meets ? met(w, bad[i].me) : with_key(w, bad[i].me);
		w->name = bad[i].name;
		if (bad[i].meets && bad[i].me)
			UNTIL(w, heard(&w->party[0], HD_SAYS_READY));
		for (int k = 0; k < bad[i].times; k++)
			say(&w->party[bad[i].by], bad[i].me, bad[i].id, bad[i].step, bad[i].len);
		ends(member, HD_E_PROTOCOL, "has no place here");
		leave(w);
	}
}

static void what_is_said_before_its_time_is_refused(void **state)
{
	static const struct { uint32_t id; size_t len; } keys[] = { { HD_SAYS_START, HD_ALLREDUCE_KEY - 1 },
		{ HD_SAYS_RESULT, HD_ALLREDUCE_KEY } };
	char addr[HD_ADDR_CAP];
	struct job *member;
	struct world *w;

	(void)state;
	for (int i = 0; i < 2; i++) {             /* before it has a key */
		w = enter(2);
		struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
		member = start(w, 1);
		UNTIL(w, leader->nups == 1);
		say(leader, 1, keys[i].id, 0, keys[i].len);
		ends(member, HD_E_PROTOCOL, "has no place here");
		leave(w);
	}
	w = enter(2);                             /* addresses by a member, before the leader's */
	member = with_key(w, 0);
	struct party *other = join(w, 1, 1);
	snprintf(addr, sizeof addr, "unix:%s/0", w->folder);
	assert_int_equal(hd_hub_connect(&other->hub, 0, "unix", addr, NULL), HD_OK);
	UNTIL(w, other->nups == 1);
	say(other, 0, HD_SAYS_PEERS, 0, 2 * HD_ADDR_CAP);
	ends(member, HD_E_PROTOCOL, "has no place here");
	leave(w);
}

/* Three members: with 0 there, 1 is not ready for another. */
static void member_zero_waits_for_each_of_the_others(void **state)
{
	struct world *w = enter(3);
	struct job *member = with_key(w, 0);
	struct party *leader = &w->party[LEADER];
	char addrs[3 * HD_ADDR_CAP] = "";

	(void)state;
	snprintf(addrs, sizeof addrs, "unix:%s/0", w->folder);
	assert_int_equal(hd_hub_tell(&leader->hub, 0, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL), HD_OK);
	for (uint32_t m = 1; m < 3; m++) {
		struct party *p = join(w, m, m);
		assert_int_equal(hd_hub_connect(&p->hub, 0, "unix", addrs, NULL), HD_OK);
		UNTIL(w, p->nups == 1);
	}
	say(&w->party[1], 0, HD_SAYS_READY, 1, 0);
	say(&w->party[2], 0, HD_SAYS_READY, 1, 0);
	UNTIL(w, heard(&w->party[1], HD_SAYS_GO) == 1 && heard(&w->party[2], HD_SAYS_GO) == 1);
	/* of the next round, before this one is over there */
	say(&w->party[2], 0, HD_SAYS_READY, 2, 0);
	say(&w->party[2], 0, HD_SAYS_READY, 2, 0);
	ends(member, HD_E_PROTOCOL, "has no place here");
	leave(w);
}

static void who_is_lost_before_the_end_ends_a_member(void **state)
{
	static const char *const texts[] = { "lost the leader, 16", "lost member 0" };

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		struct world *w = enter(2);
		struct job *member = met(w, 1);
		say(&w->party[0], 1, HD_SAYS_GO, 1, 0);
		UNTIL(w, w->party[0].nparts == 1);
		part(&w->party[lost ? 0 : LEADER]);
		ends(member, HD_E_PEERLOST, texts[lost]);
		leave(w);
	}
}

/* Time goes by: a member that is waited for hears a ping, looks at the clock, and ends with the name of what
 * it waited for. */
static void a_member_does_not_wait_for_ever(void **state)
{
	static const char *const texts[] = { "waited 60 s for the leader", "for the addresses of the others",
		"for the word to begin", "for the sums of a round" };

	(void)state;
	for (int what = 0; what < 4; what++) {
		struct world *w = enter(2);
		struct party *leader = &w->party[LEADER];
		struct job *member;
		if (what) {
			member = what == 1 ? with_key(w, 1) : met(w, 1);
			if (what >= 2)
				UNTIL(w, heard(&w->party[0], HD_SAYS_READY));
			if (what == 3) {
				say(&w->party[0], 1, HD_SAYS_GO, 1, 0);
				UNTIL(w, w->party[0].nparts == 1);
			}
		} else {
			leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
			member = start(w, 1);
			UNTIL(w, leader->nups == 1);
		}
		for (int i = 0; i < 20; i++)
			turn(w);
		assert_false(member->ended);
		w->ahead_ns += HD_ALLREDUCE_PATIENCE_NS + HD_NS_PER_S;
		hd_hub_probe(&leader->hub, 1);
		ends(member, HD_E_PEERLOST, texts[what]);
		leave(w);
	}
}

static void members_listen_where_their_transport_can_be_reached(void **state)
{
	static const struct { const char *transport, *at; } cases[] = {
		{ "unix", "unix:/tmp/" }, { "shm", "unix:/tmp/" },
		{ "tcp", "tcp:127.0.0.1:" }, { "tls", "tcp:127.0.0.1:" } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world *w = enter(2);
		w->bench.transport = cases[i].transport;
		struct job *member = with_key(w, 1);
		const struct said *said = &w->party[LEADER].said[0];
		CHECK(!strncmp((const char *)said->bytes, cases[i].at, strlen(cases[i].at)), "%s: %s",
			cases[i].transport, (const char *)said->bytes);
		part(&w->party[LEADER]);
		ends(member, HD_E_PEERLOST, "lost the leader");
		leave(w);
	}
}

/* Where it would listen somebody listens; one of two to be called has an address that is none. */
static void a_member_that_cannot_listen_or_call_says_so(void **state)
{
	struct world *w = enter(2);
	struct party *leader = join(w, LEADER, HD_ALLREDUCE_LEADER);
	char addrs[3 * HD_ADDR_CAP] = "nowhere";

	(void)state;
	join(w, 1, 1);
	struct job *member = start(w, 1);
	UNTIL(w, leader->nups == 1);
	say(leader, 1, HD_SAYS_START, 0, HD_ALLREDUCE_KEY);
	ends(member, HD_E_REFUSED, "/1");
	leave(w);
	w = enter(3);
	member = with_key(w, 2);
	join(w, 1, 1);
	snprintf(addrs + HD_ADDR_CAP, HD_ADDR_CAP, "unix:%s/1", w->folder);
	assert_int_equal(hd_hub_tell(&w->party[LEADER].hub, 2, HD_SAYS_PEERS, 0, addrs, sizeof addrs, NULL),
		HD_OK);
	ends(member, HD_E_INVAL, "nowhere");
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_round_and_the_last_are_compared),
		cmocka_unit_test(what_is_told_is_told_once_and_by_whom_it_should),
		cmocka_unit_test(what_is_said_before_its_time_is_refused),
		cmocka_unit_test(member_zero_waits_for_each_of_the_others),
		cmocka_unit_test(who_is_lost_before_the_end_ends_a_member),
		cmocka_unit_test(a_member_does_not_wait_for_ever),
		cmocka_unit_test(members_listen_where_their_transport_can_be_reached),
		cmocka_unit_test(a_member_that_cannot_listen_or_call_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
