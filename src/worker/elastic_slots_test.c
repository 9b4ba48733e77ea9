/* Slots of sharded state between workers: a holder answers once; a member that lacks them asks until
 * they are here. This file plays what the file under test calls (it is linked in place of the
 * library's): the state of a member, the calls of a hub, slots of so many bytes. Each test sets that,
 * calls, and looks at what was done. */
#include "worker/elastic_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "tests/check.h"

enum { B = 20, ME = 3, EPOCH = 5, T = 1000, LOG = 256 };

static struct hd_elastic e;
static struct hd_elastic_spec spec;
static struct hd_clock_sim sim;
static struct hd_exchange exchange;
static uint64_t chain[B];

/* ---- the member */
static uint64_t at;
static bool has[B];
static uint32_t holds[8], nholds;         /* of every bucket */

static bool saves;
bool hd_member_saves(const struct hd_member *member) { (void)member; return saves; }
uint64_t hd_member_at(const struct hd_member *member) { (void)member; return at; }
uint32_t hd_member_epoch(const struct hd_member *member) { (void)member; return EPOCH; }
bool hd_member_has_slots(const struct hd_member *member, uint32_t bucket) { (void)member;
	assert_true(bucket < B); return has[bucket]; }
const struct hd_exchange *hd_member_exchange(const struct hd_member *member) { (void)member; return &exchange;
	}

uint32_t hd_member_holders(const struct hd_member *member, uint32_t bucket, uint32_t worker[HD_MAX_MEMBERS])
{
	(void)member;
	assert_true(bucket < B);
	memcpy(worker, holds, sizeof holds);
	return nholds;
}

/* ---- the worker: the last bucket has no slots */
static uint8_t slots[B][8 + B];
static enum hd_err put_err;
static uint32_t nput;

uint64_t hd_dist_slot_bytes(const struct hd_worker *worker, uint32_t bucket) { (void)worker;
	return bucket == B - 1 ? 0 : 8 + bucket; }

void hd_dist_slot_get(struct hd_worker *worker, uint32_t bucket,
	uint8_t *bytes) { memcpy(bytes, slots[bucket], hd_dist_slot_bytes(worker, bucket)); }

static bool put_borrowed;
enum hd_err hd_dist_slot_put(struct hd_worker *worker, uint32_t bucket, const uint8_t *bytes, uint64_t len,
	bool borrowed, struct hd_diag *diag)
{
	(void)worker;
	put_borrowed = borrowed;
	assert_true(len == 8 + bucket);
	nput++;
	memcpy(slots[bucket], bytes, len);
	return put_err ? hd_fail(diag, put_err, "played") : HD_OK;
}

/* ---- the hub */
static bool down[16];
static enum hd_err tell_err, expect_err, answer_err;
static struct { uint32_t worker, bucket; uint64_t step, request; } asked[LOG];
static struct { uint32_t worker; uint64_t request, cap; uint8_t *buffer; } expected[LOG];
static struct { uint32_t worker; uint64_t request, len, token; uint8_t first; } answered[LOG];
static uint32_t nasked, nexpected, nanswered;

bool hd_hub_is_up(const struct hd_hub *hub, uint32_t worker) { (void)hub; return !down[worker]; }

enum hd_err hd_hub_tell(struct hd_hub *hub, uint32_t worker, uint32_t id, uint64_t step, const void *bytes,
	size_t len, struct hd_diag *diag)
{
	const uint8_t *b = bytes;

	assert_true(hub == &e.hub && id == HD_ASK_SLOTS_ID && len == 20 && hd_get64(b) == step &&
		nasked < LOG);
	if (tell_err)
		return hd_fail(diag, tell_err, "played");
	asked[nasked].worker = worker;
	asked[nasked].step = step;
	asked[nasked].request = hd_get64(b + 8);
	asked[nasked++].bucket = hd_get32(b + 16);
	return HD_OK;
}

enum hd_err hd_hub_expect(struct hd_hub *hub, uint32_t worker, uint64_t request, void *buffer, uint64_t cap,
	struct hd_diag *diag)
{
	(void)hub;
	assert_true(nexpected < LOG && buffer);
	if (expect_err)
		return hd_fail(diag, expect_err, "played");
	expected[nexpected].worker = worker;
	expected[nexpected].request = request;
	expected[nexpected].cap = cap;
	expected[nexpected++].buffer = buffer;
	return HD_OK;
}

enum hd_err hd_hub_answer(struct hd_hub *hub, uint32_t worker, const struct hd_answer *answer,
	struct hd_diag *diag)
{
	(void)hub;
	assert_true(nanswered < LOG && answer->len > 0);
	if (answer_err)
		return hd_fail(diag, answer_err, "played");
	answered[nanswered].worker = worker;
	answered[nanswered].request = answer->request;
	answered[nanswered].len = answer->len;
	answered[nanswered].token = answer->token;
	answered[nanswered++].first = *(const uint8_t *)answer->bytes;
	return HD_OK;
}

static uint32_t ndropped, dropped;
void hd_hub_drop(struct hd_hub *hub, uint32_t worker, enum hd_close reason,
	const char *why)
{
	assert_true(hub == &e.hub && reason == HD_CLOSE_DROPPED && *why);
	dropped = worker;
	ndropped++;
}

/* ---- the machine and the compute thread */
static enum hd_err give_err, failed;
static struct hd_member_event fed[LOG];
static struct hd_command given[LOG];
static uint32_t nfed, ngiven;

void hd_elastic_feed(struct hd_elastic *of, const struct hd_member_event *event) { assert_true(of == &e &&
	nfed < LOG); fed[nfed++] = *event; }
static char noted[96];
void hd_elastic_note(struct hd_elastic *of, const char *kind, const char *text)
{
	assert_true(of == &e && !strcmp(kind, "fetched"));
	snprintf(noted, sizeof noted, "%s", text);
}
void hd_elastic_fail(struct hd_elastic *of, enum hd_err err,
	const struct hd_diag *diag) { assert_true(of == &e && diag->text[0]); failed = err; }

enum hd_err hd_commands_give(struct hd_commands *commands, const struct hd_command *command,
	struct hd_diag *diag)
{
	assert_true(commands == &e.commands && ngiven < LOG);
	if (give_err)
		return hd_fail(diag, give_err, "played");
	given[ngiven++] = *command;
	return HD_OK;
}

/* ---- */

static int begin(void **state)
{
	(void)state;
	memset(&e, 0, sizeof e);
	memset(has, 0, sizeof has);
	memset(down, 0, sizeof down);
	memset(chain, 0, sizeof chain);
	memset(slots, 0, sizeof slots);
	hd_clock_sim(&sim, 1000000, 0);
	spec = (struct hd_elastic_spec){ .clock = &sim.clock };
	exchange = (struct hd_exchange){ .me = 2, .chain = chain };
	e.spec = &spec;
	e.nbuckets = B;
	e.copies = 1;
	e.partial = true;
	e.detect_ns = T;
	e.self = ME;
	at = 7;
	saves = true;
	holds[0] = 4;
	nholds = 1;
	put_err = tell_err = expect_err = answer_err = give_err = failed = HD_OK;
	nasked = nexpected = nanswered = nfed = ngiven = nput = 0;
	noted[0] = '\0';
	return hd_elastic_slots_init(&e, NULL);
}

static int end(void **state)
{
	(void)state;
	hd_elastic_slots_finish(&e);
	return 0;
}

/* ---- the holder */

static void ask_len(uint32_t worker, uint64_t step, uint64_t request, uint32_t bucket, uint32_t len)
{
	uint8_t bytes[24] = { 0 };

	hd_put64(bytes, step);
	hd_put64(bytes + 8, request);
	hd_put32(bytes + 16, bucket);
	hd_elastic_slots_asked(&e, worker, bytes, len);
}

static void ask(uint32_t worker, uint64_t step, uint64_t request,
	uint32_t bucket) { ask_len(worker, step, request, bucket, 20); }

static bool went(uint64_t token, enum hd_err err) { return hd_elastic_slots_sent(&e,
	&(struct hd_sent){ .token = token, .err = err }); }

/* Its slots, of this step; else one byte says that they are not here. */
static void what_is_held_is_answered(void **state)
{
	static const struct { uint64_t step; uint32_t bucket; uint64_t len; } cases[] = {
		{ 7, 2, 10 }, { 7, 3, 1 }, { 6, 2, 1 }, { 7, B, 1 }, { 7, UINT32_MAX, 1 }, { 7, B - 1, 1 },
	};

	(void)state;
	has[2] = has[B - 1] = true;
	memset(slots[2], 0x77, sizeof slots[2]);
	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		ask(4, cases[i].step, 100 + i, cases[i].bucket);
		CHECK(nanswered == i + 1 && answered[i].worker == 4 && answered[i].request == 100 + i,
			"case %u", i);
		CHECK(answered[i].len == cases[i].len && answered[i].first == (cases[i].len > 1 ? 0x77 : 0),
			"case %u", i);
	}
	ask_len(4, 7, 200, 2, 19);
	ask_len(4, 7, 200, 2, 21);
	assert_int_equal(nanswered, sizeof cases / sizeof *cases);
}

/* One question has one answer: while it is on its way, and when all of it went out. One that did not is
 * given again. */
static void a_question_is_answered_once(void **state)
{
	(void)state;
	ask(0, 7, 0, 2);                                   /* also the first number of the first worker */
	ask(0, 7, 0, 2);
	assert_int_equal(nanswered, 1);
	ask(0, 7, 1, 2);                                   /* others' are others */
	ask(4, 7, 0, 2);
	assert_int_equal(nanswered, 3);
	assert_false(went(12345, HD_OK));                  /* something else was sent */
	assert_true(went(answered[1].token, HD_E_STALE));
	assert_true(went(answered[0].token, HD_OK));
	assert_false(went(answered[0].token, HD_OK));
	ask(0, 7, 0, 2);
	assert_int_equal(nanswered, 3);
	ask(0, 7, 1, 2);
	ask(4, 7, 0, 2);                                   /* is on its way still */
	assert_int_equal(nanswered, 4);
	assert_true(went(answered[2].token, HD_OK));
	assert_true(went(answered[3].token, HD_OK));
	ask(5, 7, 0, 2);
	ask(4, 7, 1, 2);
	assert_int_equal(nanswered, 6);
	assert_null(e.slots.out->next->next);
}

/* They share one place: the next is made when the one before it was sent, or will not be; in the order in
 * which they were asked, each as of then. What says "not here" needs no place. */
static void one_answer_with_slots_is_on_its_way_at_a_time(void **state)
{
	(void)state;
	has[2] = has[3] = has[4] = has[5] = true;
	memset(slots[2], 0x22, sizeof *slots);
	memset(slots[3], 0x33, sizeof *slots);
	memset(slots[4], 0x44, sizeof *slots);
	ask(4, 7, 0, 2);
	ask(5, 7, 0, 3);
	ask(4, 7, 1, 4);
	ask(6, 7, 0, 5);
	ask(5, 7, 0, 3);
	hd_elastic_slots_later(&e);
	assert_int_equal(nanswered, 1);
	assert_int_equal(e.slots.nlater, 3);
	ask(5, 7, 1, 6);
	assert_true(nanswered == 2 && answered[1].len == 1 && answered[1].first == 0);
	assert_true(went(answered[1].token, HD_OK));
	hd_elastic_slots_later(&e);
	assert_int_equal(nanswered, 2);
	assert_true(went(answered[0].token, HD_OK));
	hd_elastic_slots_later(&e);
	assert_true(nanswered == 3 && answered[2].worker == 5 && answered[2].first == 0x33);
	has[4] = false;
	assert_true(went(answered[2].token, HD_E_PEERLOST));
	hd_elastic_slots_lost(&e, 6);
	hd_elastic_slots_later(&e);
	assert_true(nanswered == 4 && answered[3].worker == 4 && answered[3].request == 1 &&
		answered[3].len == 1);
	assert_int_equal(e.slots.nlater, 0);
	ask(7, 7, 0, 3);                                   /* that one uses no place */
	assert_true(nanswered == 5 && answered[4].first == 0x33);
}

/* The last of them are remembered, no more. */
/* Whoever was a member and is none any more, and does not take its answer, holds up no other. */
static void an_answer_to_a_worker_that_was_lost_is_dropped(void **state)
{
	static const struct { uint32_t to; bool was, is, drops; } rows[] = {
		{ 5, true, false, true }, { 5, true, true, false },
		{ 5, false, false, false },       /* a joiner */ { 5, false, true, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_view was = { .nmembers = 2, .member = { ME, rows[i].was ? 5 : 4 } },
			now = { .nmembers = 2, .member = { ME, rows[i].is ? 5 : 4 } };
		end(state);
		begin(state);
		ndropped = 0;
		has[2] = true;
		hd_elastic_slots_view(&e, &was, &now);
		assert_int_equal(ndropped, 0);
		ask(5, 7, 1, 3);                  /* of one that is not here: one byte */
		hd_elastic_slots_view(&e, &was, &now);
		assert_int_equal(ndropped, 0);
		ask(5, 7, 2, 2);
		ask(4, 7, 3, 2);                  /* it waits for that */
		assert_int_equal(nanswered, 2);
		hd_elastic_slots_view(&e, &was, &now);
		CHECK(ndropped == rows[i].drops && (!ndropped || dropped == 5), "row %zu: %u", i, ndropped);
		if (!ndropped)
			continue;
		hd_elastic_slots_sent(&e, &(struct hd_sent){ .token = answered[1].token,
			.err = HD_E_PEERLOST });
		hd_elastic_slots_later(&e);
		CHECK(nanswered == 3 && answered[2].worker == 4 && answered[2].request == 3, "%u", nanswered);
	}
}

static void old_answers_are_forgotten(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= HD_SLOTS_LATER; i++) {
		ask(4, 7, i, 2);
		assert_true(went(answered[i].token, HD_OK));
	}
	assert_int_equal(nanswered, HD_SLOTS_LATER + 1);
	for (uint32_t i = HD_SLOTS_LATER; i > 0; i--)
		ask(4, 7, i, 2);
	assert_int_equal(nanswered, HD_SLOTS_LATER + 1);
	ask(4, 7, 0, 2);
	assert_int_equal(nanswered, HD_SLOTS_LATER + 2);
}

static void what_could_not_be_answered_is_answered_when_asked_again(void **state)
{
	(void)state;
	has[2] = true;
	answer_err = HD_E_PEERLOST;
	ask(4, 7, 1, 2);
	assert_null(e.slots.out);
	answer_err = HD_OK;
	hd_alloc_arm(1);
	ask(4, 7, 1, 2);
	hd_alloc_arm(0);
	assert_int_equal(nanswered, 0);
	ask(4, 7, 1, 2);
	assert_int_equal(nanswered, 1);
}

static void who_is_ahead_waits_until_this_one_is_there(void **state)
{
	(void)state;
	has[2] = true;
	ask(4, 8, 1, 2);
	ask(4, 8, 1, 2);
	ask(4, 9, 2, 2);
	ask(5, 8, 1, 2);
	hd_elastic_slots_later(&e);
	assert_int_equal(nanswered, 0);
	assert_int_equal(e.slots.nlater, 3);
	at = 8;
	hd_elastic_slots_later(&e);
	assert_true(went(answered[0].token, HD_OK));
	hd_elastic_slots_later(&e);
	assert_true(went(answered[1].token, HD_OK));
	assert_int_equal(nanswered, 2);
	assert_true(answered[0].worker == 4 && answered[0].request == 1 && answered[0].len == 10 &&
		answered[1].worker == 5);
	at = 9;
	hd_elastic_slots_later(&e);
	hd_elastic_slots_later(&e);
	assert_int_equal(nanswered, 3);
	assert_int_equal(answered[2].request, 2);
	assert_true(went(answered[2].token, HD_OK));
	ask(6, 10, 1, 2);
	ask(7, 10, 1, 2);
	hd_elastic_slots_lost(&e, 6);                      /* asks again when it is back */
	at = 10;
	hd_elastic_slots_later(&e);
	assert_int_equal(nanswered, 4);
	assert_int_equal(answered[3].worker, 7);
}

/* A request that finds no place to wait is refused at once; one that has a place keeps it. */
static void as_many_wait_as_there_are_places(void **state)
{
	(void)state;
	has[2] = true;
	for (uint32_t i = 0; i < HD_SLOTS_LATER; i++)
		ask(4, 8, i, 2);
	assert_int_equal(nanswered, 0);
	ask(4, 8, 7, 2);
	assert_int_equal(nanswered, 0);
	ask(4, 8, HD_SLOTS_LATER, 2);
	assert_int_equal(nanswered, 1);
	assert_true(answered[0].request == HD_SLOTS_LATER && answered[0].len == 1);
	assert_int_equal(e.slots.nlater, HD_SLOTS_LATER);
}

/* ---- the member that lacks them */

static void chained(uint32_t bucket) { chain[bucket] |= 1u << exchange.me; }

/* The answer to an ask comes: all of it, or as `len` and `err` say. */
static bool comes_as(uint32_t i, uint64_t len, enum hd_err err)
{
	memset(expected[i].buffer, 0x55, len);
	return hd_elastic_slots_here(&e, &(struct hd_arrival){ .worker = expected[i].worker,
		.request = expected[i].request, .len = len, .err = err });
}

static bool comes(uint32_t i) { return comes_as(i, expected[i].cap, HD_OK); }

/* Those of its chain that are not here and that there are. */
static void a_fetch_asks_for_what_the_chain_lacks(void **state)
{
	(void)state;
	chained(1); chained(2); chained(B - 1); chained(5);
	chain[4] = ~(UINT64_C(1) << exchange.me);          /* others' */
	has[2] = true;
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nasked, 2);
	assert_true(asked[0].worker == 4 && asked[0].step == 7 && asked[0].bucket == 1 &&
		asked[1].bucket == 5);
	assert_true(asked[0].request == expected[0].request && asked[1].request != asked[0].request);
	assert_true(expected[0].cap == 9 && expected[1].cap == 13 &&
		expected[0].buffer != expected[1].buffer);
	assert_true(comes(1));
	assert_false(comes(1));                            /* it was here */
	assert_int_equal(nfed, 0);
	assert_true(comes(0));
	assert_int_equal(nput, 2);
	assert_int_equal(slots[5][12], 0x55);
	assert_int_equal(nfed, 1);
	assert_true(fed[0].kind == HD_IN_FETCHED && fed[0].epoch == EPOCH && fed[0].step == 7);
	assert_int_equal(e.slots.now, HD_SLOTS_IDLE);
	for (uint32_t i = 0; i < 2; i++)                   /* that memory is the system's again */
		assert_true(expected[i].buffer[0] == 0 && expected[i].buffer[8] == 0);
	assert_string_equal(noted, "22 bytes of state came before step 7");
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 2);
}

static void a_fetch_of_nothing_ends_at_once(void **state)
{
	(void)state;
	hd_elastic_slots_fetch(&e, 9, false);
	assert_int_equal(nasked, 0);
	assert_int_equal(nfed, 1);
	assert_true(fed[0].step == 9 && fed[0].epoch == EPOCH);
	assert_string_equal(noted, "");
}

static void an_answer_is_of_who_was_asked(void **state)
{
	struct hd_arrival other = { .len = 9 };

	(void)state;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	other.worker = 5;
	other.request = expected[0].request;
	assert_false(hd_elastic_slots_here(&e, &other));
	other.worker = 4;
	other.request++;
	assert_false(hd_elastic_slots_here(&e, &other));
	assert_int_equal(nput, 0);
	assert_true(comes(0));
	assert_int_equal(nput, 1);
}

/* "Not here", or cut off: it is asked for again, with another number. */
static void what_did_not_come_is_asked_for_again(void **state)
{
	static const struct { uint64_t len; enum hd_err err; } cases[] = { { 1, HD_OK }, { 9, HD_E_STALE } };

	(void)state;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(comes_as(i, cases[i].len, cases[i].err));
		assert_int_equal(nput, 0);
		assert_int_equal(nasked, i + 1);
		hd_elastic_slots_ask(&e);
		assert_int_equal(nasked, i + 2);
		assert_true(asked[i + 1].bucket == 1 && asked[i + 1].request != asked[i].request);
	}
	assert_true(comes(2));
	assert_int_equal(nfed, 1);
}

/* Some at a time, each once: the next when one is here. */
static void many_are_asked_for_some_at_a_time(void **state)
{
	bool seen[B] = { false };

	(void)state;
	for (uint32_t b = 0; b < B - 1; b++)
		chained(b);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS);
	for (uint32_t i = 0; i < B - 1; i++) {
		assert_true(comes(i));
		CHECK(nasked == (i + 1 + HD_ELASTIC_SLOTS < B - 1 ? i + 1 + HD_ELASTIC_SLOTS : B - 1),
			"%u: %u", i, nasked);
	}
	for (uint32_t i = 0; i < B - 1; i++) {
		assert_false(seen[asked[i].bucket]);
		seen[asked[i].bucket] = true;
	}
	assert_int_equal(nfed, 1);
}

static void holders_take_turns_and_those_that_are_away_none(void **state)
{
	uint32_t times[16] = { 0 };

	(void)state;
	nholds = 4;
	memcpy(holds, (const uint32_t[]){ ME, 4, 5, 6 }, 4 * sizeof *holds);
	down[5] = true;
	for (uint32_t b = 0; b < 8; b++)
		chained(b);
	hd_elastic_slots_fetch(&e, 7, false);
	for (uint32_t i = 0; i < 8; i++) {
		times[asked[i].worker]++;
		assert_true(comes(i));
	}
	assert_int_equal(nasked, 8);
	assert_true(times[4] > 1 && times[6] > 1 && times[4] + times[6] == 8);
}

static void who_holds_them_may_come_later(void **state)
{
	(void)state;
	chained(1);
	down[4] = true;
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nexpected, 0);
	down[4] = false;
	expect_err = HD_E_PEERLOST;
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 0);
	expect_err = HD_OK;
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 1);
	nholds = 0;
	hd_elastic_slots_lost(&e, 4);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 1);
	assert_int_equal(nfed, 0);
}

/* After T the same request again; not where the link is down, nor to a worker that answered. */
static void a_question_is_repeated(void **state)
{
	(void)state;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_clock_sim_advance(&sim, T - 1);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 1);
	hd_clock_sim_advance(&sim, 1);
	down[4] = true;
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 1);
	down[4] = false;
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 2);
	assert_true(asked[1].request == asked[0].request && asked[1].bucket == 1);
	assert_int_equal(nexpected, 1);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 2);                        /* T counts from then */
	assert_true(comes(0));
	hd_clock_sim_advance(&sim, 2 * T);
	hd_elastic_slots_ask(&e);
	hd_elastic_slots_again(&e, 4);
	assert_int_equal(nasked, 2);
}

static void a_question_that_did_not_go_out_is_asked_with_the_next_look(void **state)
{
	(void)state;
	chained(1);
	tell_err = HD_E_AGAIN;
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nexpected, 1);
	tell_err = HD_OK;
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 1);
	assert_int_equal(nexpected, 1);
}

/* It dropped something: what it is asked for now is asked again at once, and nothing else. */
static void who_dropped_it_is_asked_again(void **state)
{
	(void)state;
	nholds = 2;
	holds[1] = 5;
	chained(1); chained(2); chained(3);
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS);
	uint32_t of_four = 0;
	for (uint32_t i = 0; i < HD_ELASTIC_SLOTS; i++)
		of_four += asked[i].worker == 4;
	assert_true(of_four > 0 && of_four < HD_ELASTIC_SLOTS);
	hd_elastic_slots_again(&e, 4);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS + of_four);
	for (uint32_t i = HD_ELASTIC_SLOTS; i < nasked; i++)
		assert_int_equal(asked[i].worker, 4);
	hd_elastic_slots_void(&e);
	hd_elastic_slots_again(&e, 4);                     /* of a round that is over */
	assert_int_equal(nasked, HD_ELASTIC_SLOTS + of_four);
}

/* What was asked for a step that began again is not taken for this one's; its place is free when it came,
 * or its link is lost. */
static void an_earlier_round_is_void(void **state)
{
	(void)state;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_void(&e);
	assert_true(comes_as(0, 9, HD_OK));
	assert_int_equal(nput, 0);
	assert_int_equal(nfed, 0);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_void(&e);
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nasked, 3);                        /* again, beside the one that is open */
	assert_true(comes(1));
	assert_int_equal(nput, 0);
	assert_true(comes(2));
	assert_int_equal(nput, 1);
	assert_int_equal(nfed, 1);
}

static void places_of_earlier_rounds_are_used_again_when_they_are_free(void **state)
{
	(void)state;
	for (uint32_t b = 0; b < HD_ELASTIC_SLOTS; b++)
		chained(b);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_void(&e);
	hd_elastic_slots_fetch(&e, 7, false);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS);
	assert_true(comes(HD_ELASTIC_SLOTS - 1));
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS + 1);
	hd_elastic_slots_lost(&e, 5);                      /* nothing of it */
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS + 1);
	hd_elastic_slots_lost(&e, 4);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 2 * HD_ELASTIC_SLOTS + 1);
}

static void slots_that_do_not_fit_end_this_worker(void **state)
{
	(void)state;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	put_err = HD_E_INTEGRITY;
	assert_true(comes(0));
	assert_int_equal(failed, HD_E_BUG);
	assert_int_equal(nfed, 0);
}

/* ---- a checkpoint writer's */

static struct hd_command boundary(uint64_t step) { return (struct hd_command){ .kind = HD_COMMAND_BOUNDARY,
	.step = step, .number = 11 }; }

/* All, of whosever chain; then the command again, with what was here before. */
static void a_gathering_gets_all_and_gives_the_command_again(void **state)
{
	const struct hd_command command = boundary(7), old = boundary(6);

	(void)state;
	hd_elastic_slots_gather(&e, &old);                 /* all began again meanwhile */
	assert_int_equal(nasked, 0);
	for (uint32_t b = 0; b < B; b++)
		has[b] = b > 1 && b != 5;
	chained(5);
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, HD_ELASTIC_SLOTS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(ngiven, 0);
		assert_true(comes(i));
	}
	assert_true(asked[0].bucket == 0 && asked[1].bucket == 1 && asked[2].bucket == 5 &&
		asked[0].step == 7);
	assert_int_equal(ngiven, 1);
	assert_true(given[0].kind == HD_COMMAND_BOUNDARY && given[0].number == 11 && given[0].gathered &&
		given[0].own == e.slots.keep);
	for (uint32_t b = 0; b < B; b++)
		assert_int_equal(given[0].own[b], has[b]);
	assert_int_equal(nfed, 0);
	hd_elastic_slots_fetch(&e, 8, false);                     /* waits until that is saved */
	assert_int_equal(nfed, 0);
	hd_elastic_slots_saved(&e);
	assert_int_equal(nasked, 4);                        /* what was gathered is not kept */
	assert_true(asked[3].bucket == 5 && asked[3].step == 8);
	assert_true(comes(3));
	assert_int_equal(nfed, 1);
	assert_int_equal(fed[0].step, 8);
	hd_elastic_slots_saved(&e);
	assert_int_equal(nfed, 1);
}

/* Another member saves now. What is gathered is given up, or not begun; that command is done without. */
static void a_gathering_ends_where_another_member_saves(void **state)
{
	const struct hd_command command = boundary(7);

	(void)state;
	hd_elastic_slots_unsaved(&e);
	assert_int_equal(ngiven, 0);
	for (uint32_t b = 0; b < B; b++)
		has[b] = b > 1;
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, 2);
	hd_elastic_slots_fetch(&e, 7, false);              /* waits for it */
	saves = false;
	hd_elastic_slots_unsaved(&e);
	assert_int_equal(ngiven, 1);
	assert_true(given[0].kind == HD_COMMAND_BOUNDARY && !given[0].flag && given[0].gathered &&
		given[0].own == e.slots.keep);
	assert_true(comes(0));
	assert_int_equal(nput, 0);
	hd_elastic_slots_saved(&e);
	assert_int_equal(nfed, 1);
	/* the command was on its way to the compute thread */
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, 2);
	assert_int_equal(ngiven, 2);
	assert_true(!given[1].flag && !given[1].gathered);
	hd_elastic_slots_unsaved(&e);
	assert_int_equal(ngiven, 2);
}

static void a_fetch_and_a_gathering_take_turns(void **state)
{
	const struct hd_command command = boundary(7);

	(void)state;
	for (uint32_t b = 0; b < B; b++)
		has[b] = b > 1;
	chained(1);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, 1);
	assert_true(comes(0));
	has[1] = true;
	assert_int_equal(nfed, 1);
	assert_int_equal(nasked, 3);                        /* 1 was not here by what the member knows */
	assert_true(comes(1) && comes(2));
	assert_int_equal(ngiven, 1);
	assert_int_equal(e.slots.now, HD_SLOTS_SAVE);
}

/* The compute thread does not take it: this worker must go. */
static void a_command_that_is_not_taken_ends_this_worker(void **state)
{
	const struct hd_command command = boundary(7);

	(void)state;
	memset(has, true, sizeof has);
	give_err = HD_E_NOSPACE;
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(failed, HD_E_BUG);
}

/* A step that begins again ends a fetch, begun or due, and no gathering; all is forgotten where the state
 * comes from elsewhere. */
static void what_is_void_does_not_come(void **state)
{
	const struct hd_command command = boundary(7);

	(void)state;
	for (uint32_t b = 0; b < B; b++)
		has[b] = b > 0;
	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, 1);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_void(&e);
	assert_true(comes(0));
	assert_int_equal(ngiven, 1);                       /* the gathering goes on */
	hd_elastic_slots_void(&e);
	assert_int_equal(e.slots.now, HD_SLOTS_SAVE);
	hd_elastic_slots_saved(&e);
	assert_int_equal(nfed, 0);                         /* and the fetch was forgotten */

	hd_elastic_slots_gather(&e, &command);
	assert_int_equal(nasked, 2);
	hd_elastic_slots_forget(&e);
	assert_int_equal(e.slots.now, HD_SLOTS_IDLE);
	assert_true(comes(1));
	assert_int_equal(nput, 1);
	assert_int_equal(ngiven, 1);

	chained(0);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_gather(&e, &command);                /* due */
	hd_elastic_slots_forget(&e);
	assert_int_equal(e.slots.now, HD_SLOTS_IDLE);
	hd_elastic_slots_ask(&e);
	assert_int_equal(nasked, 3);
	assert_int_equal(ngiven, 1);
	assert_int_equal(nfed, 0);
}

/* A fetch that was void has room for the gathering that waited. */
static void a_gathering_that_waited_begins_when_the_fetch_is_void(void **state)
{
	const struct hd_command command = boundary(7);

	(void)state;
	for (uint32_t b = 0; b < B; b++)
		has[b] = b > 0;
	chained(0);
	hd_elastic_slots_fetch(&e, 7, false);
	hd_elastic_slots_gather(&e, &command);
	hd_elastic_slots_void(&e);
	assert_int_equal(e.slots.now, HD_SLOTS_GATHER);
	assert_int_equal(nasked, 2);
	assert_true(comes(1));
	assert_int_equal(ngiven, 1);
	assert_int_equal(nfed, 0);
}

/* ---- memory */

static void memory_that_ends_is_said(void **state)
{
	enum hd_err err = HD_E_NOMEM;

	(void)state;
	for (uint64_t n = 1; err; n++) {
		struct hd_diag diag = { "" };
		hd_elastic_slots_finish(&e);
		memset(&e.slots, 0, sizeof e.slots);
		hd_alloc_arm(n);
		err = hd_elastic_slots_init(&e, &diag);
		hd_alloc_arm(0);
		CHECK((err == HD_E_NOMEM && strstr(diag.text, "no memory")) ||
			(!err && n == 6), "request %d: %d", (int)n, err);
	}
	hd_elastic_slots_finish(&e);
	memset(&e.slots, 0, sizeof e.slots);
	e.copies = 0;
	e.partial = false;                                 /* replicated: nothing is ever asked for */
	assert_int_equal(hd_elastic_slots_init(&e, NULL), HD_OK);
	assert_null(e.slots.memory.at);
	for (uint32_t b = 0; b < B; b++)
		assert_int_equal(e.slots.want[b], 0);
}

int main(void)
{
#define T_(name) cmocka_unit_test_setup_teardown(name, begin, end)
	static const struct CMUnitTest tests[] = {
		T_(what_is_held_is_answered), T_(a_question_is_answered_once), T_(old_answers_are_forgotten),
		T_(an_answer_to_a_worker_that_was_lost_is_dropped),
		T_(one_answer_with_slots_is_on_its_way_at_a_time),
		T_(what_could_not_be_answered_is_answered_when_asked_again),
		T_(who_is_ahead_waits_until_this_one_is_there),
		T_(as_many_wait_as_there_are_places), T_(a_fetch_asks_for_what_the_chain_lacks),
		T_(a_fetch_of_nothing_ends_at_once),
		T_(an_answer_is_of_who_was_asked), T_(what_did_not_come_is_asked_for_again),
		T_(many_are_asked_for_some_at_a_time),
		T_(holders_take_turns_and_those_that_are_away_none), T_(who_holds_them_may_come_later),
		T_(a_question_is_repeated),
		T_(a_question_that_did_not_go_out_is_asked_with_the_next_look),
		T_(who_dropped_it_is_asked_again), T_(an_earlier_round_is_void),
		T_(places_of_earlier_rounds_are_used_again_when_they_are_free),
		T_(slots_that_do_not_fit_end_this_worker),
		T_(a_gathering_gets_all_and_gives_the_command_again),
		T_(a_gathering_ends_where_another_member_saves), T_(a_fetch_and_a_gathering_take_turns),
		T_(a_command_that_is_not_taken_ends_this_worker), T_(what_is_void_does_not_come),
		T_(a_gathering_that_waited_begins_when_the_fetch_is_void), T_(memory_that_ends_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
