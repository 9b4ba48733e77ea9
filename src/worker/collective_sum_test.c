/* Several members in one thread, each with its own hub, over Unix sockets. */
#include "worker/collective_sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/check.h"

enum { MOST = 9, TRIES = 400000, FIRST_ID = 40, ROUNDS = 2, BUCKET = 96 };

struct one {
	struct hd_loop loop;
	struct hd_hub hub;
	struct hd_collective_sum sum;
	float *values;
	uint32_t nup;
	enum hd_err err;
	struct hd_diag diag;
};

struct world {
	uint32_t n, turn;
	uint64_t len;
	enum hd_collective kind;
	struct hd_collective_shape shape;
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
	enum hd_err err = hd_collective_sum_arrived(&o->sum, arrival, &o->diag);
	o->err = o->err ? o->err : err;
}
static void on_sent(void *self, const struct hd_sent *sent)
{
	struct one *o = self;
	enum hd_err err = hd_collective_sum_sent(&o->sum, sent, &o->diag);
	o->err = o->err ? o->err : err;
}

static bool all_up(const struct world *w, const struct one *o) { return o->nup == w->n - 1; }
static bool is_summed(const struct world *w, const struct one *o)
{
	(void)w;
	return hd_collective_sum_done(&o->sum);
}

/* Which members get ahead of others changes with `turn`. */
static void poll_one(struct world *w, struct one *o)
{
	struct hd_loop_event event;
	bool more = true;
	size_t n;

	CHECK(!hd_hub_poll(&o->hub, hd_clock_now_ns(&w->clock), &event, 1, &n, &o->diag) && !o->err, "%s: %s",
		hd_collective_word(w->kind), o->diag.text);
	for (uint32_t i = 0; more && i < 1 + w->turn % 3; i++)
		CHECK(!hd_collective_sum_turn(&o->sum, &more, &o->diag), "%s", o->diag.text);
}

static void run_until(struct world *w, bool (*is)(const struct world *w, const struct one *o))
{
	uint32_t left = 1;

	for (int i = 0; left && i < TRIES; i++, w->turn++) {
		left = 0;
		for (uint32_t m = 0; m < w->n; m++)
			if ((w->turn / 16 + m) % 4 || w->turn % 5 == 0)
				poll_one(w, &w->one[m]);
		for (uint32_t m = 0; m < w->n; m++)
			left += !is(w, &w->one[m]);
	}
	CHECK(!left, "%s: %u of %u members do not get there", hd_collective_word(w->kind), left, w->n);
}

static void enter_one(struct world *w, uint32_t m)
{
	struct one *o = &w->one[m];
	struct hd_hub_config config = { .worker = m, .role = HD_ROLE_WORKER, .detect_ms = 60000,
		.peers_cap = w->n, .streams_cap = 4096 };
	struct hd_wire_events events = { o, on_up, on_lost, on_suspect, on_message, on_arrived, on_sent,
		on_epoch,
		on_epoch, on_probed };

	o->values = calloc(w->len, sizeof *o->values);
	assert_non_null(o->values);
	assert_int_equal(hd_loop_init(&o->loop, &w->clock, &o->diag), HD_OK);
	CHECK(!hd_hub_init(&o->hub, &config, &events, &o->loop, &w->net, &o->diag), "%s", o->diag.text);
	snprintf(w->addr[m], HD_ADDR_CAP, "unix:%s/%u", w->folder, m);
	CHECK(!hd_hub_listen(&o->hub, "unix", w->addr[m], &o->diag), "%s", o->diag.text);
	hd_hub_epoch(&o->hub, 1, (struct hd_hash){ "sum" });
	CHECK(!hd_collective_sum_init(&o->sum, &(struct hd_collective_sum_spec){ &o->hub, m, w->kind,
		w->shape,
		o->values, w->len, BUCKET, FIRST_ID }, &o->diag), "%s", o->diag.text);
	for (uint32_t to = 0; to < m; to++)
		CHECK(!hd_hub_connect(&o->hub, to, "unix", w->addr[to], &o->diag), "%s", o->diag.text);
}

static void open_one(struct world *w, uint32_t m)
{
	struct one *o = &w->one[m];
	static struct hd_transfer in[8192], out[8192];

	for (uint32_t peer = 0; peer < w->n; peer++)
		if (peer != m) {
			size_t nin = hd_collective_sum_rows(&o->sum, peer, false, in),
				nout = hd_collective_sum_rows(&o->sum, peer, true, out);
			CHECK(!hd_hub_channel(&o->hub, peer, in, nin, out, nout, &o->diag), "%s",
				o->diag.text);
		}
	assert_true(hd_collective_sum_streams(&o->sum) <= 4096);
}

static struct world *enter(enum hd_collective kind, struct hd_collective_shape shape, uint64_t len)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	shape.fast = true;
	w->kind = kind;
	w->shape = shape;
	w->n = shape.p;
	w->len = len;
	memcpy(w->folder, "/tmp/hd_prim.XXXXXX", 20);
	assert_non_null(mkdtemp(w->folder));
	hd_clock_real(&w->clock);
	hd_net_real(&w->net);
	for (uint32_t m = 0; m < w->n; m++)
		enter_one(w, m);
	run_until(w, all_up);
	for (uint32_t m = 0; m < w->n; m++)
		open_one(w, m);
	return w;
}

static void leave(struct world *w)
{
	for (uint32_t m = 0; m < w->n; m++) {
		hd_hub_finish(&w->one[m].hub);
		hd_loop_finish(&w->one[m].loop);
		hd_collective_sum_finish(&w->one[m].sum);
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

static float canonical(uint32_t low, uint32_t end, uint64_t k, uint32_t round)
{
	uint32_t half = 1;

	if (end - low == 1)
		return term(low, k, round);
	while (2 * half < end - low)
		half *= 2;
	return canonical(low, low + half, k, round) + canonical(low + half, end, k, round);
}

/* Part i of the ring begins with rank i's values, and each rank on the way adds its own. */
static float by_ring(uint32_t p, uint64_t len, uint64_t k, uint64_t at, uint32_t round)
{
	uint32_t part = 0;

	while (len * (part + 1) / p <= at)
		part++;
	float sum = term(part, k, round);
	for (uint32_t i = 1; i < p; i++)
		sum += term((part + i) % p, k, round);
	return sum;
}

static float by_tree(uint32_t p, uint32_t rank, uint64_t k, uint32_t round)
{
	float sum = term(rank, k, round);

	for (uint32_t child = 2 * rank + 1; child <= 2 * rank + 2 && child < p; child++)
		sum += by_tree(p, child, k, round);
	return sum;
}

static float expected(const struct world *w, uint64_t k, uint32_t round)
{
	uint64_t b = k / BUCKET, len = w->len - b * BUCKET < BUCKET ? w->len - b * BUCKET : BUCKET;

	if (w->kind == HD_COLLECTIVE_RING)
		return by_ring(w->n, len, k, k % BUCKET, round);
	return w->kind == HD_COLLECTIVE_TREE ? by_tree(w->n, 0, k, round) : canonical(0, w->n, k, round);
}

static void sum_once(struct world *w, uint32_t round)
{
	for (uint32_t m = 0; m < w->n; m++) {
		struct one *o = &w->one[m];
		for (uint64_t k = 0; k < w->len; k++)
			o->values[k] = term(m, k, round);
		CHECK(!hd_collective_sum_prepare(&o->sum, &o->diag), "%s", o->diag.text);
	}
	/* some begin while others have only prepared */
	for (uint32_t m = 0; m < w->n; m++) {
		CHECK(!hd_collective_sum_begin(&w->one[m].sum, &w->one[m].diag), "%s", w->one[m].diag.text);
		for (uint32_t i = 0; i < 3; i++)
			poll_one(w, &w->one[(m * 5 + i) % w->n]);
	}
	run_until(w, is_summed);
	for (uint32_t m = 0; m < w->n; m++)
		for (uint64_t k = 0; k < w->len; k++) {
			float want = expected(w, k, round);
			CHECK(!memcmp(&want, &w->one[m].values[k], sizeof want),
				"%s, %u members, %llu floats, round %u: element %llu at member %u is %.9g, "
				"not %.9g",
				hd_collective_word(w->kind), w->n, (unsigned long long)w->len, round,
				(unsigned long long)k, m, (double)w->one[m].values[k], (double)want);
		}
}

static void run(enum hd_collective kind, struct hd_collective_shape shape, uint64_t len)
{
	struct world *w = enter(kind, shape, len);

	for (uint32_t round = 0; round < ROUNDS; round++)
		sum_once(w, round);
	leave(w);
}

static void every_primitive_makes_its_sum_bit_for_bit(void **state)
{
	static const uint64_t lens[] = { 1, BUCKET + 5, 7 * BUCKET };

	(void)state;
	for (uint32_t p = 2; p <= MOST; p += p < 5 ? 1 : 2)
		for (uint32_t l = p % 3; l < 3; l += 2)
			for (uint32_t kind = 0; kind < HD_COLLECTIVE_COUNT; kind++)
				if (kind != HD_COLLECTIVE_HIERARCHICAL)
					run((enum hd_collective)kind, (struct hd_collective_shape){ .p = p,
						.segments = kind == HD_COLLECTIVE_TREE ? 1 + p % 4 : 0 },
							lens[l]);
	for (uint32_t p = 4; p <= 8; p += 4)
		run(HD_COLLECTIVE_HIERARCHICAL, (struct hd_collective_shape){ .p = p, .node = p / 2 }, 5 *
			BUCKET);
	run(HD_COLLECTIVE_HIERARCHICAL, (struct hd_collective_shape){ .p = 8, .node = 2 }, 3);
	run(HD_COLLECTIVE_OWNER, (struct hd_collective_shape){ .p = 5, .owners = 2 }, 3 * BUCKET + 1);
}

static void what_no_rule_allows_is_refused(void **state)
{
	struct world *w = enter(HD_COLLECTIVE_DIRECT, (struct hd_collective_shape){ .p = 2 }, BUCKET + 2);
	struct hd_collective_sum *sum = &w->one[0].sum;
	struct hd_diag diag;

	(void)state;
	assert_int_equal(hd_collective_sum_prepare(sum, &diag), HD_OK);
	uint32_t part = FIRST_ID + sum->moves[0].in[0].number;
	const struct hd_arrival bad[] = {
		{ .worker = 1, .transfer = part, .step = 2 },                     /* of the round to come */
		{ .worker = 1, .transfer = part, .step = 0 },
		{ .worker = 0, .transfer = part, .step = 1 },                     /* of another */
		{ .worker = 1, .transfer = FIRST_ID + sum->moves[0].out[0].number, .step = 1 },
		{ .worker = 1, .transfer = FIRST_ID + hd_collective_sum_ids(sum), .step = 1 },
		{ .worker = 1, .transfer = FIRST_ID - 1, .step = 1 },
	};
	for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(hd_collective_sum_arrived(sum, &bad[i], &diag) == HD_E_PROTOCOL, "arrival %u", i);
	const struct hd_arrival good = { .worker = 1, .transfer = part, .step = 1 };
	assert_int_equal(hd_collective_sum_arrived(sum, &good, &diag), HD_OK);
	assert_int_equal(hd_collective_sum_arrived(sum, &good, &diag), HD_E_PROTOCOL);    /* twice */
	assert_int_equal(hd_collective_sum_sent(sum, &(struct hd_sent){ .worker = 1, .err = HD_E_STALE },
		&diag),
		HD_E_STALE);
	leave(w);
}

/* Whole vectors are sent from where the sum is made. */
static void nothing_is_added_to_what_is_still_being_sent(void **state)
{
	struct world *w = enter(HD_COLLECTIVE_DOUBLING, (struct hd_collective_shape){ .p = 2 }, 3);
	struct hd_collective_sum *sum = &w->one[0].sum;
	const struct hd_arrival part = { .worker = 1, .transfer = FIRST_ID + sum->moves[1].in[0].number,
		.step = 1 };
	struct hd_diag diag;
	bool more = true;

	(void)state;
	w->one[0].values[0] = 7;
	assert_int_equal(hd_collective_sum_prepare(sum, &diag), HD_OK);
	*(float *)sum->block.at = 5;
	assert_int_equal(hd_collective_sum_turn(sum, &more, &diag), HD_OK);       /* it has not begun */
	assert_int_equal(hd_collective_sum_begin(sum, &diag), HD_OK);
	assert_int_equal(hd_collective_sum_arrived(sum, &part, &diag), HD_OK);
	assert_int_equal(hd_collective_sum_turn(sum, &more, &diag), HD_OK);
	assert_true(!more && !hd_collective_sum_done(sum) && w->one[0].values[0] < 8);
	assert_int_equal(hd_collective_sum_sent(sum, &(struct hd_sent){ .worker = 1 }, &diag), HD_OK);
	assert_int_equal(hd_collective_sum_turn(sum, &more, &diag), HD_OK);
	assert_true(hd_collective_sum_done(sum) && w->one[0].values[0] > 11);
	leave(w);
}

static void a_sum_is_not_done_while_what_it_lent_is_away(void **state)
{
	struct world *w = enter(HD_COLLECTIVE_DIRECT, (struct hd_collective_shape){ .p = 2 }, 4);
	struct hd_collective_sum *sum = &w->one[0].sum;
	const struct hd_member_moves *moves = &sum->moves[1];
	struct hd_diag diag;
	bool more = true;

	(void)state;
	assert_int_equal(hd_collective_sum_prepare(sum, &diag), HD_OK);
	assert_int_equal(hd_collective_sum_begin(sum, &diag), HD_OK);
	for (uint32_t i = 0; i < moves->nin; i++)
		assert_int_equal(hd_collective_sum_arrived(sum, &(struct hd_arrival){ .worker = 1,
			.transfer = FIRST_ID + moves->in[i].number, .step = 1 }, &diag), HD_OK);
	for (uint32_t i = 0; i <= moves->nout; i++) {
		for (int turn = 0; turn < 3; turn++)
			assert_int_equal(hd_collective_sum_turn(sum, &more, &diag), HD_OK);
		assert_int_equal(hd_collective_sum_done(sum), i == moves->nout);
		if (i < moves->nout)
			assert_int_equal(hd_collective_sum_sent(sum, &(struct hd_sent){ .worker = 1,
				.token = i },
				&diag), HD_OK);
	}
	leave(w);
}

static void sums_that_cannot_be_are_refused(void **state)
{
	struct hd_collective_sum sum;
	struct hd_collective_sum_spec spec = { .kind = HD_COLLECTIVE_DIRECT, .shape = { .p = 2 }, .len = 5 };
	struct hd_diag diag;

	(void)state;
	static const struct { struct hd_collective_sum_spec spec; enum hd_err err; } rows[] = {
		{ { .shape = { .p = 1 }, .len = 5 }, HD_E_INVAL }, { { .shape = { .p = 17 }, .len = 5 }, HD_E_INVAL },
		{ { .shape = { .p = 2 }, .me = 2, .len = 5 }, HD_E_INVAL }, { { .shape = { .p = 2 } }, HD_E_INVAL },
		{ { .kind = HD_COLLECTIVE_RING, .shape = { .p = 2 }, .len = 5 }, HD_E_BADPLAN },
		{ { .kind = HD_COLLECTIVE_TREE, .shape = { .p = 3, .segments = 40, .fast = true }, .len = 500 },
			HD_E_INVAL },
	};
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK(hd_collective_sum_init(&sum, &rows[i].spec, &diag) == rows[i].err, "row %u: %s", i,
			diag.text);
		hd_collective_sum_finish(&sum);
	}
	enum hd_err err;
	EACH_PIECE_REFUSED(err, (hd_collective_sum_finish(&sum), hd_collective_sum_init(&sum, &spec, &diag)));
	hd_collective_sum_finish(&sum);
	hd_collective_sum_finish(&sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_primitive_makes_its_sum_bit_for_bit),
		cmocka_unit_test(what_no_rule_allows_is_refused),
		cmocka_unit_test(nothing_is_added_to_what_is_still_being_sent),
		cmocka_unit_test(a_sum_is_not_done_while_what_it_lent_is_away),
		cmocka_unit_test(sums_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
