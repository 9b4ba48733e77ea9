/* Several members in one thread, each with its own hub, over Unix sockets. */
#include "worker/allreduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

enum { MOST = 5, BUCKET = HD_ALLREDUCE_BUCKET / 4, TRIES = 200000 };

struct one {
	struct hd_loop loop;
	struct hd_hub hub;
	struct hd_allreduce sum;
	float *values;
	uint32_t nup;
	enum hd_err err;
	struct hd_diag diag;
};

struct world {
	uint32_t n;
	uint64_t len;
	char folder[32], addr[MOST][HD_ADDR_CAP];
	struct hd_clock clock;
	struct hd_net net;
	struct one one[MOST];
};

static void on_up(void *self, const struct hd_peer_info *peer) { (void)peer; ((struct one *)self)->nup++; }
static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct one *o = self;
	o->err = hd_fail(&o->diag, HD_E_PEERLOST, "lost %u: %s (%d)", worker, text, (int)why);
}
static void on_suspect(void *self, uint32_t worker, int64_t ms) { (void)self, (void)worker, (void)ms; }
static void on_message(void *self, const struct hd_message *message) { (void)self, (void)message; }
static void on_epoch(void *self, uint32_t worker, uint32_t epoch) { (void)self, (void)worker, (void)epoch; }
static void on_probed(void *self, const struct hd_probe *probe) { (void)self, (void)probe; }
static void on_arrived(void *self, const struct hd_arrival *arrival)
{
	struct one *o = self;
	enum hd_err err = hd_allreduce_arrived(&o->sum, arrival, &o->diag);
	o->err = o->err ? o->err : err;
}
static void on_sent(void *self, const struct hd_sent *sent)
{
	struct one *o = self;
	enum hd_err err = hd_allreduce_sent(&o->sum, sent, &o->diag);
	o->err = o->err ? o->err : err;
}

static bool all_up(const struct world *w, const struct one *o) { return o->nup == w->n - 1; }
static bool is_summed(const struct world *w, const struct one *o) { (void)w;
	return hd_allreduce_done(&o->sum); }

static void run_until(struct world *w, bool (*is)(const struct world *w, const struct one *o))
{
	uint32_t left = 1;

	for (int i = 0; left && i < TRIES; i++) {
		left = 0;
		for (uint32_t m = 0; m < w->n; m++) {
			struct one *o = &w->one[m];
			struct hd_loop_event event;
			bool more = true;
			size_t n;
			CHECK(!hd_hub_poll(&o->hub, hd_clock_now_ns(&w->clock), &event, 1, &n, &o->diag) &&
				!o->err, "member %u: %s", m, o->diag.text);
			while (more)
				CHECK(!hd_allreduce_turn(&o->sum, &more, &o->diag), "member %u: %s", m,
					o->diag.text);
			left += !is(w, o);
		}
	}
	CHECK(!left, "%u of %u members do not get there", left, w->n);
}

static struct world *enter(uint32_t n, uint64_t len)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->n = n;
	w->len = len;
	memcpy(w->folder, "/tmp/hd_sum.XXXXXX", 19);
	assert_non_null(mkdtemp(w->folder));
	hd_clock_real(&w->clock);
	hd_net_real(&w->net);
	for (uint32_t m = 0; m < n; m++) {
		struct one *o = &w->one[m];
		struct hd_hub_config config = { .worker = m, .role = HD_ROLE_WORKER, .detect_ms = 60000,
			.peers_cap = n,
			.streams_cap = hd_allreduce_streams(len, n) };
		struct hd_wire_events events = { o, on_up, on_lost, on_suspect, on_message, on_arrived,
			on_sent, on_epoch, on_epoch, on_probed };
		o->values = calloc(len, sizeof *o->values);
		assert_non_null(o->values);
		assert_int_equal(hd_loop_init(&o->loop, &w->clock, &o->diag), HD_OK);
		CHECK(!hd_hub_init(&o->hub, &config, &events, &o->loop, &w->net, &o->diag), "%s",
			o->diag.text);
		snprintf(w->addr[m], HD_ADDR_CAP, "unix:%s/%u", w->folder, m);
		CHECK(!hd_hub_listen(&o->hub, "unix", w->addr[m], &o->diag), "%s", o->diag.text);
		hd_hub_epoch(&o->hub, 1, (struct hd_hash){ "sum" });
		CHECK(!hd_allreduce_init(&o->sum, &(struct hd_allreduce_spec){ &o->hub, m, n, o->values,
			len }, &o->diag), "%s", o->diag.text);
		for (uint32_t to = 0; to < m; to++)
			CHECK(!hd_hub_connect(&o->hub, to, "unix", w->addr[to], &o->diag), "%s",
				o->diag.text);
	}
	run_until(w, all_up);
	for (uint32_t m = 0; m < n; m++)
		CHECK(!hd_allreduce_open(&w->one[m].sum, &w->one[m].diag), "%s", w->one[m].diag.text);
	return w;
}

static void leave(struct world *w)
{
	for (uint32_t m = 0; m < w->n; m++) {
		hd_hub_finish(&w->one[m].hub);
		hd_loop_finish(&w->one[m].loop);
		hd_allreduce_finish(&w->one[m].sum);
		free(w->one[m].values);
	}
	rmdir(w->folder);
	free(w);
}

/* Sums of these differ with the order of adding: the terms cancel, and what is left is what was rounded. */
static float term(uint32_t member, uint64_t k, uint32_t round)
{
	static const float big[] = { 16777216.0f, -16777215.0f, 3.25f, 0.3f, -0.7f };
	return big[(member + k + round) % 5] * (float)(1 + (k * 7 + member * 3 + round) % 11);
}

/* The orders as they are written in plan/tree.h, spelled out. */
static float expected(uint32_t n, uint64_t k, uint32_t round)
{
	float t[MOST] = { 0 };

	for (uint32_t m = 0; m < n; m++)
		t[m] = term(m, k, round);
	switch (n) {
	case 2: return t[0] + t[1];
	case 3: return (t[0] + t[1]) + t[2];
	case 4: return (t[0] + t[1]) + (t[2] + t[3]);
	default: return ((t[0] + t[1]) + (t[2] + t[3])) + t[4];
	}
}

static void begin(struct world *w, uint32_t m) { CHECK(!hd_allreduce_begin(&w->one[m].sum, &w->one[m].diag),
	"%s", w->one[m].diag.text); }

static void rounds(struct world *w, uint32_t nrounds)
{
	for (uint32_t r = 1; r <= nrounds; r++) {
		for (uint32_t m = 0; m < w->n; m++)
			for (uint64_t k = 0; k < w->len; k++)
				w->one[m].values[k] = term(m, k, r);
		for (uint32_t m = 0; m < w->n; m++)
			begin(w, m);
		run_until(w, is_summed);
		for (uint32_t m = 0; m < w->n; m++)
			for (uint64_t k = 0; k < w->len; k++) {
				float want = expected(w->n, k, r);
				if (memcmp(&want, &w->one[m].values[k], sizeof want) != 0)
					fail_msg("%u members, %llu floats, round %u: element %llu at member "
						"%u is %.9g, not %.9g", w->n,
						(unsigned long long)w->len, r, (unsigned long long)k, m,
						(double)w->one[m].values[k], (double)want);
			}
	}
}

static void all_members_have_the_sum_in_the_order_of_the_tree(void **state)
{
	static const uint64_t lens[] = { 1, 5, BUCKET - 1, BUCKET + 1, 2 * BUCKET, 9 * BUCKET + 3 };

	(void)state;
	for (uint32_t n = 2; n <= MOST; n += SANITIZED ? 3 : 1)
		for (size_t i = 0; i < sizeof lens / sizeof *lens - (SANITIZED && n > 2 ? 2 : 0); i++) {
			struct world *w = enter(n, lens[i]);
			rounds(w, 3);
			leave(w);
		}
}

static void turn_all(struct world *w, int times)
{
	for (int i = 0; i < times; i++)
		for (uint32_t m = 0; m < w->n; m++) {
			struct one *o = &w->one[m];
			struct hd_loop_event event;
			bool more;
			size_t n;
			CHECK(!hd_hub_poll(&o->hub, hd_clock_now_ns(&w->clock), &event, 1, &n, &o->diag),
				"%s", o->diag.text);
			CHECK(!hd_allreduce_turn(&o->sum, &more, &o->diag) && !o->err, "%s", o->diag.text);
		}
}

/* Member 1 stands still while the others go as far as they can: parts come to it before it has begun, in
 * the first round and later. */
static void a_member_that_lags_a_round_behind_loses_nothing(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < 2; before++) {
		struct world *w = enter(3, 3 * BUCKET);
		uint32_t r = before + 1;
		rounds(w, before);
		for (uint32_t m = 0; m < 3; m++)
			for (uint64_t k = 0; k < w->len; k++)
				w->one[m].values[k] = term(m, k, r);
		begin(w, 0);
		begin(w, 2);
		turn_all(w, 2000);
		assert_false(hd_allreduce_done(&w->one[0].sum));
		for (uint64_t k = 0; k < w->len; k++)
			CHECK(w->one[1].values[k] == term(1, k, r),
				"element %llu changed before the round began", (unsigned long long)k);
		begin(w, 1);
		run_until(w, is_summed);
		for (uint32_t m = 0; m < 3; m++)
			for (uint64_t k = 0; k < w->len; k++)
				CHECK(w->one[m].values[k] == expected(3, k, r), "element %llu at member %u",
					(unsigned long long)k, m);
		leave(w);
	}
}

/* ---- one rule after the other: what arrives is said to have arrived, no bytes travel ---- */

/* Rows of the table of n members and b buckets, as protocol/transfers.h counts them: parts by (from, ordinal,
 * bucket) with n ordinals, sums by (bucket, from, to), metrics of n virtual nodes, the table. */
#define PART_ROW(n, b, from, bucket) (((from) * (n)) * (b) + (bucket))
#define SUM_ROW(n, b, from, to, bucket) ((n) * (n) * (b) + (bucket) * (n) * (n) + (from) * (n) + (to))
/* of 3 members and 6 buckets; sums to member 0 */
#define P(from, bucket) PART_ROW(3u, 6u, from, bucket)
#define S(from, bucket) SUM_ROW(3u, 6u, from, 0u, bucket)
enum { METRICS = 2 * 54, TABLE = METRICS + 3 * 9, END = TABLE + 9 };

static enum hd_err arrives(struct world *w, uint32_t at, uint32_t from, uint32_t transfer, uint64_t step,
	float *buffer)
{
	struct hd_arrival arrival = { .worker = from, .transfer = transfer, .step = step, .buffer = buffer };
	return hd_allreduce_arrived(&w->one[at].sum, &arrival, &w->one[at].diag);
}

static bool adds(struct world *w, uint32_t at)
{
	bool more;
	uint32_t before = w->one[at].sum.nadded;

	CHECK(!hd_allreduce_turn(&w->one[at].sum, &more, &w->one[at].diag), "%s", w->one[at].diag.text);
	return w->one[at].sum.nadded != before;
}

/* Of 3 members and 6 buckets each owns two: 0 has 0 and 1, 1 has 2 and 3, 2 has 4 and 5. */
static void what_no_rule_allows_is_refused(void **state)
{
	static const struct { const char *name; uint32_t from, transfer; uint64_t step; } bad[] = {
		{ "no such round", 1, P(1, 0), 0 }, { "rounds ahead", 1, P(1, 0), 5 },
		{ "the round before", 1, P(1, 0), 1 }, { "one more than there are buffers for", 1, P(1, 0), 4 },
		{ "a sum of a round that is not begun", 1, S(1, 2), 3 }, { "a sum of the round before", 1, S(1, 2), 1 },
		{ "beyond the table", 1, END, 2 }, { "far beyond", 1, UINT32_MAX, 2 }, { "the last row", 1, END - 1, 2 },
		{ "another kind", 1, METRICS + 3, 2 }, { "the last kind", 1, TABLE + 3, 2 },
		{ "a part of a bucket of others", 1, P(1, 4), 2 }, { "its own part of its own bucket", 1, P(1, 2), 2 },
		{ "the same, as if of our last", 1, P(1, 5), 1 }, { "a part before our first", 1, P(1, 2), 1 },
		{ "a sum of ours", 1, S(1, 0), 2 }, { "a sum of another's bucket", 1, S(1, 4), 2 },
		{ "the same, from below", 2, S(2, 3), 2 }, { "a sum to another member", 1, S(1, 2) + 2, 2 },
		{ "a part of another's row", 2, P(1, 0), 2 }, { "a sum of another's row", 2, S(1, 2), 2 },
		{ "a part of our own", 0, P(0, 0), 2 }, { "a sum of our own", 0, S(0, 1), 2 },
		{ "a member that there is not", 3, P(1, 0), 2 }, { "one beyond all members", 16, P(1, 0), 2 },
		{ "its sum", 3, S(2, 5), 2 }, { "an ordinal", 1, P(1, 0) + 6, 2 },
	};
	struct world *w = enter(3, 6 * BUCKET);

	(void)state;
	rounds(w, 1);
	begin(w, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(arrives(w, 0, bad[i].from, bad[i].transfer, bad[i].step,
			w->one[0].values) == HD_E_PROTOCOL, "%s is taken", bad[i].name);
	for (uint32_t row = METRICS; row < END; row++)          /* what no all-reduce sends, by anybody */
		for (uint32_t from = 0; from < 4; from++)
			CHECK(arrives(w, 0, from, row, 2, w->one[0].values) == HD_E_PROTOCOL,
				"row %u of member %u is taken",
				row, from);
	leave(w);
	/* member 1's first bucket is 2: what is below is not its, in any round */
	w = enter(3, 6 * BUCKET);
	begin(w, 1);
	/* in round 2 its number would be that of an own one in round 1 */
	for (uint32_t bucket = 0; bucket < 2; bucket++)
		assert_int_equal(arrives(w, 1, 0, P(0, bucket), 2, w->one[1].values), HD_E_PROTOCOL);
	for (uint64_t step = 1; step < 4; step++)
		for (uint32_t bucket = 0; bucket < 6; bucket++) {
			bool own = bucket == 2 || bucket == 3, room = step < 3;
			CHECK(!arrives(w, 1, 0, P(0, bucket), step, w->one[1].values) == (own && room),
				"bucket %u, round %u", bucket, (unsigned)step);
		}
	leave(w);
}

static void sizes_that_cannot_be_summed_are_refused(void **state)
{
	static const struct { struct hd_allreduce_spec spec; enum hd_err err; } cases[] = {
		{ { .n = 1, .len = 1 }, HD_E_INVAL }, { { .n = 17, .len = 1 }, HD_E_INVAL }, { { .me = 2, .n = 2, .len = 1 }, HD_E_INVAL },
		{ { .n = 2 }, HD_E_INVAL }, { { .n = 2, .len = HD_ALLREDUCE_MOST / 4 + 1 }, HD_E_INVAL },
		{ { .me = 15, .n = 16, .len = HD_ALLREDUCE_MOST / 4 }, HD_OK }, { { .me = 1, .n = 2, .len = 1 }, HD_OK } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_allreduce made;
		CHECK(hd_allreduce_init(&made, &cases[i].spec, &(struct hd_diag){ "" }) == cases[i].err,
			"case %zu", i);
		CHECK(cases[i].spec.len > 1 || !made.block.at, "case %zu: room for parts of no bucket", i);
		hd_allreduce_finish(&made);
	}
}

/* Member 0 owns two buckets of six: it adds the first when both others' parts are here, not when one came
 * twice. */
static void a_part_that_comes_again_does_not_stand_for_another(void **state)
{
	static float part[2][BUCKET];
	struct world *w = enter(3, 6 * BUCKET);

	(void)state;
	for (uint32_t m = 1; m < 3; m++)
		assert_int_equal(arrives(w, 0, m, P(m, 1), 1, part[0]), HD_OK);
	assert_int_equal(arrives(w, 0, 1, P(1, 0), 1, part[0]), HD_OK);
	assert_false(adds(w, 0));         /* it waits for the round to begin, and for its turn */
	begin(w, 0);
	assert_int_equal(arrives(w, 0, 1, P(1, 0), 1, part[0]), HD_E_PROTOCOL);
	assert_false(adds(w, 0));
	/* of the next round, whose place is another */
	assert_int_equal(arrives(w, 0, 1, P(1, 0), 2, part[0]), HD_OK);
	assert_false(adds(w, 0));
	assert_int_equal(arrives(w, 0, 2, P(2, 0), 1, part[1]), HD_OK);
	assert_true(adds(w, 0));
	assert_int_equal(arrives(w, 0, 2, P(2, 0), 1, part[1]), HD_E_PROTOCOL);       /* it is added */
	leave(w);
	w = enter(3, 3 * BUCKET);         /* all parts of an own bucket are here before the round */
	for (uint32_t m = 1; m < 3; m++)
		assert_int_equal(arrives(w, 0, m, PART_ROW(3, 3, m, 0), 1, part[0]), HD_OK);
	assert_false(adds(w, 0));
	leave(w);
}

static void sent(struct world *w, uint32_t at)
{
	CHECK(!hd_allreduce_sent(&w->one[at].sum, &(struct hd_sent){ .worker = 1 }, &w->one[at].diag), "%s",
		w->one[at].diag.text);
}

/* Done: all sums of others, once each, all own buckets added, and all that was lent is back. */
static void a_round_is_done_when_nothing_of_it_is_left(void **state)
{
	static float part[BUCKET];

	(void)state;
	for (int missing = 0; missing < 4; missing++) {
		/* 0 and 1 are of member 0, 2 and 3 of member 1 */
		struct world *w = enter(2, 4 * BUCKET);
		struct hd_allreduce *sum = &w->one[0].sum;
		begin(w, 0);
		for (uint32_t b = 0; b < 2 - (missing == 1); b++) {
			assert_int_equal(arrives(w, 0, 1, PART_ROW(2, 4, 1, b), 1, part), HD_OK);
			assert_true(adds(w, 0));
		}
		for (uint32_t b = 2; b < 4 - (missing == 2); b++)
			assert_int_equal(arrives(w, 0, 1, SUM_ROW(2, 4, 1, 0, b), 1,
			w->one[0].values + b * BUCKET), HD_OK);
		for (uint32_t i = sum->nunsent; i > (missing == 3); i--)
			sent(w, 0);
		CHECK(hd_allreduce_done(sum) == !missing, "without %d", missing);
		if (missing == 2) {               /* one that comes again is not the other */
			assert_int_equal(arrives(w, 0, 1, SUM_ROW(2, 4, 1, 0, 2), 1,
				w->one[0].values + 2 * BUCKET), HD_E_PROTOCOL);
			assert_false(hd_allreduce_done(sum));
		}
		leave(w);
	}
}

static void a_send_that_fails_is_said_and_not_over(void **state)
{
	struct world *w = enter(2, 2 * BUCKET);
	struct hd_allreduce *sum = &w->one[0].sum;

	(void)state;
	begin(w, 0);
	uint32_t unsent = sum->nunsent;
	assert_int_equal(hd_allreduce_sent(sum, &(struct hd_sent){ .worker = 1, .err = HD_E_STALE },
		&(struct hd_diag){ "" }), HD_E_STALE);
	assert_int_equal(sum->nunsent, unsent);
	assert_int_equal(hd_allreduce_sent(sum, &(struct hd_sent){ .worker = 1 }, &(struct hd_diag){ "" }),
		HD_OK);
	assert_int_equal(sum->nunsent, unsent - 1);
	leave(w);
}

/* Member 1 is gone, member 2 is there: what fails with the first is not forgotten over the second. */
static void an_error_with_one_member_is_not_forgotten_over_the_next(void **state)
{
	static float part[BUCKET];
	struct hd_diag diag = { "" };
	struct world *w = enter(3, 3 * BUCKET);
	struct hd_allreduce *sum = &w->one[0].sum;
	bool more;

	(void)state;
	assert_int_equal(hd_allreduce_open(sum, &diag), HD_E_EXISTS);         /* once */
	begin(w, 0);
	hd_hub_drop(&w->one[0].hub, 1, HD_CLOSE_DONE, "for the test");
	for (uint32_t m = 1; m < 3; m++)
		assert_int_equal(arrives(w, 0, m, PART_ROW(3, 3, m, 0), 1, part), HD_OK);
	assert_int_equal(hd_allreduce_turn(sum, &more, &diag), HD_E_PEERLOST);
	leave(w);
	w = enter(3, 3 * BUCKET);
	hd_hub_drop(&w->one[0].hub, 1, HD_CLOSE_DONE, "for the test");
	assert_int_equal(hd_allreduce_begin(&w->one[0].sum, &diag), HD_E_PEERLOST);
	assert_int_equal(hd_allreduce_open(&w->one[0].sum, &diag), HD_E_PEERLOST);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_rule_allows_is_refused),
		cmocka_unit_test(sizes_that_cannot_be_summed_are_refused),
		cmocka_unit_test(a_part_that_comes_again_does_not_stand_for_another),
		cmocka_unit_test(a_round_is_done_when_nothing_of_it_is_left),
		cmocka_unit_test(a_send_that_fails_is_said_and_not_over),
		cmocka_unit_test(an_error_with_one_member_is_not_forgotten_over_the_next),
		cmocka_unit_test(all_members_have_the_sum_in_the_order_of_the_tree),
		cmocka_unit_test(a_member_that_lags_a_round_behind_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
