/* Storms: everything that two owners may ask for, in any order, over writes and reads of any length. By seed.
 *
 * HD_TEST_STORMS=N storms from HD_TEST_SEED on, for a hunt. */
#include "wire/stream.h"

#include "wire/stream_int.h"
#include "wire/testing_stream.h"

enum { ROWS = 7, STORMS = 60, TURNS = 1500, SENDS = 160, POSTS = 1024, ANSWERS = 60, EPOCHS = 4 };

static const struct hd_transfer plan_rows[ROWS] = { { 1, 1, 1 }, { 2, 2, 100 }, { 4, 0, 5000 },
	{ 5, 1, 70000 }, { 7, 2, 140000 }, { 9, 0, 40000 }, { 11, 1, 210000 } };

/* Of a send or an answer: its token is its place here. */
struct storm_send { uint8_t *bytes; uint64_t len; uint32_t epoch, row, sents, arrivals; int32_t priority;
	enum hd_err end; bool bulk, refused; };
struct storm_post { uint8_t *bytes; uint64_t len; uint32_t row; bool there, void_; };

/* One end: what it sends, and where it receives. */
struct storm_end {
	struct storm_send send[SENDS];
	struct storm_post post[POSTS];
	uint32_t nsends, nposts, nanswers, ntold, nheard, epoch;
};

struct storm {
	struct stream_pair *p;
	struct storm_end end[2];
	uint32_t seed, seen_sents[2], seen_arrivals[2], seen_messages[2];
	bool calm;                        /* no priority changes */
};

static uint32_t dice(struct storm *w, uint32_t n) { return (uint32_t)(pair_random(w->p) % n); }

/* ---- what comes back ---- */

static void see_sent(struct storm *w, int i, const struct hd_sent *sent)
{
	struct storm_send *s = &w->end[i].send[sent->token];

	CHECK(sent->token < w->end[i].nsends && !s->sents++, "seed %u: token %u ended twice", w->seed,
		(unsigned)sent->token);
	s->end = sent->err;
	CHECK(sent->len == s->len, "seed %u: its length", w->seed);
	memset(s->bytes, 0xdd, s->len);                   /* the buffer is the owner's again */
}

static void see_arrival(struct storm *w, int i, const struct hd_arrival *a)
{
	struct storm_end *to = &w->end[i], *from = &w->end[1 - i];
	const uint64_t token = a->kind == HD_KIND_BULK ? a->request : a->step;
	struct storm_send *s = &from->send[token];
	uint8_t *want = malloc(s->len);
	uint32_t at = 0;

	CHECK(token < from->nsends && !s->arrivals++ && !s->refused, "seed %u: %u came again", w->seed,
		(unsigned)token);
	while (at < to->nposts && to->post[at].bytes != a->buffer)
		at++;
	CHECK(at < to->nposts && !to->post[at].there && !to->post[at].void_,
		"seed %u: into no buffer that was posted", w->seed);
	to->post[at].there = true;
	if (a->kind == HD_KIND_PLANNED)
		CHECK(!a->err && s->epoch == to->epoch && a->transfer == plan_rows[s->row].id &&
			to->post[at].row == s->row, "seed %u: of another epoch or row", w->seed);
	fill(want, s->len, token * 2 + (uint64_t)i);
	CHECK(a->err || (a->len == s->len && !memcmp(a->buffer, want, s->len)), "seed %u: bytes of %u differ",
		w->seed, (unsigned)token);
	free(want);
}

static void see(struct storm *w)
{
	for (int i = 0; i < 2; i++) {
		struct wire_heard *h = &w->p->heard[i];
		CHECK(!w->p->closed[i], "seed %u: closed: %s", w->seed, w->p->diag[i].text);
		while (w->seen_arrivals[i] < h->n_arrivals)
			see_arrival(w, i, &h->arrivals[w->seen_arrivals[i]++]);
		while (w->seen_messages[i] < h->n_messages) {
			const struct hd_message *m = &h->messages[w->seen_messages[i]++].message;
			CHECK(m->step > w->end[i].nheard, "seed %u: messages out of order", w->seed);
			w->end[i].nheard = (uint32_t)m->step;
		}
		while (w->seen_sents[i] < h->n_sents)
			see_sent(w, i, &h->sents[w->seen_sents[i]++]);
	}
}

/* ---- what owners do ---- */

static struct storm_send *new_send(struct storm *w, int i, uint64_t len)
{
	struct storm_end *e = &w->end[i];
	struct storm_send *s = &e->send[e->nsends];

	*s = (struct storm_send){ .bytes = malloc(len), .len = len, .epoch = e->epoch,
		.priority = (int32_t)dice(w, 6) };
	fill(s->bytes, len, e->nsends * 2 + (uint64_t)(1 - i));
	return s;
}

static void keep(struct storm *w, int i, enum hd_err err)
{
	struct storm_end *e = &w->end[i];

	CHECK(err == HD_OK || err == HD_E_AGAIN, "seed %u: %s", w->seed, w->p->diag[i].text);
	if (err)
		free(e->send[e->nsends].bytes);
	else
		e->nsends++;
}

static void send_one(struct storm *w, int i)
{
	struct storm_end *e = &w->end[i];
	const uint32_t row = dice(w, ROWS);

	if (e->nsends == SENDS || !e->epoch)
		return;
	struct storm_send *s = new_send(w, i, plan_rows[row].bytes);
	s->row = row;
	keep(w, i, send(w->p, i, plan_rows[row].id, s->priority, e->nsends, s->bytes, s->len, e->nsends));
}

static uint8_t *new_post(struct storm *w, int i, uint32_t row, uint64_t len)
{
	struct storm_end *e = &w->end[i];
	struct storm_post *post = &e->post[e->nposts++];

	assert_true(e->nposts < POSTS);
	*post = (struct storm_post){ .bytes = malloc(len), .len = len, .row = row };
	return post->bytes;
}

static void post_one(struct storm *w, int i, uint32_t row)
{
	struct storm_end *e = &w->end[i];
	uint8_t *at = new_post(w, i, row, plan_rows[row].bytes);
	enum hd_err err = hd_stream_post(w->p->stream[i], plan_rows[row].id, at, w->p->now, &w->p->diag[i]);

	CHECK(err == HD_OK || err == HD_E_AGAIN, "seed %u: %s", w->seed, w->p->diag[i].text);
	if (err)
		free(e->post[--e->nposts].bytes);
}

/* The asker and the one that answers at once; a message that asks is none of this test. */
static void answer_one(struct storm *w, int i)
{
	struct storm_end *e = &w->end[i];
	const uint64_t len = 1 + dice(w, 3) * dice(w, 60000);

	if (e->nsends == SENDS || e->nanswers == ANSWERS)
		return;
	e->nanswers++;
	struct storm_send *s = new_send(w, i, len);
	s->bulk = true;
	uint8_t *into = new_post(w, 1 - i, ROWS, len);
	if (hd_stream_expect(w->p->stream[1 - i], e->nsends, into, len, w->p->now, NULL)) {
		free(w->end[1 - i].post[--w->end[1 - i].nposts].bytes);
		free(s->bytes);
		return;
	}
	keep(w, i, hd_stream_answer(w->p->stream[i], &(struct hd_answer){ .request = e->nsends,
		.priority = s->priority, .bytes = s->bytes, .len = len, .token = e->nsends }, w->p->now,
		&w->p->diag[i]));
}

static void refuse_one(struct storm *w, int i)
{
	struct storm_end *from = &w->end[1 - i];
	const uint32_t token = dice(w, SENDS);

	if (token >= from->nsends || !from->send[token].bulk || from->send[token].arrivals)
		return;
	hd_stream_refuse(w->p->stream[i], token);
	from->send[token].refused = true;
}

static void tell_one(struct storm *w, int i)
{
	static const uint8_t bytes[70000];
	struct storm_end *e = &w->end[i];

	if (!hd_stream_tell(w->p->stream[i], 20, e->ntold + 1, bytes, dice(w, 3) ? dice(w, 200) :
		dice(w, sizeof bytes), NULL))
		e->ntold++;
}

static void next_epoch(struct storm *w, int i)
{
	struct storm_end *e = &w->end[i];
	struct hd_stream *s = w->p->stream[i];

	for (int k = 0; k < 2; k++)
		hd_stream_decided(w->p->stream[k], e->epoch + 1 > w->end[k].epoch ? e->epoch + 1 :
			w->end[k].epoch);
	hd_stream_epoch(s, ++e->epoch, plan_a);
	for (uint32_t k = 0; k < e->nposts; k++)
		if (e->post[k].row < ROWS && !e->post[k].there) {
			e->post[k].void_ = true;
			memset(e->post[k].bytes, 0xee, e->post[k].len);
		}
	assert_int_equal(hd_stream_channel(s, plan_rows, ROWS, plan_rows, ROWS, &w->p->diag[i]), HD_OK);
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t k = 0; k < plan_rows[row].grants; k++)
			post_one(w, i, row);
}

static void act(struct storm *w, int i)
{
	struct hd_stream *s = w->p->stream[i];
	const uint32_t what = dice(w, 100);

	if (what < 30)
		send_one(w, i);
	else if (what < 55 && w->end[i].epoch)
		post_one(w, i, dice(w, ROWS));
	else if (what < 65)
		answer_one(w, i);
	else if (what < 70)
		tell_one(w, i);
	else if (what < 75)
		hd_stream_cancel(s, dice(w, SENDS));
	else if (what < 80)
		refuse_one(w, i);
	else if (what < 90 && !w->calm)
		hd_stream_want(s, plan_rows[dice(w, ROWS)].id);
	else if (what < 96 && !w->calm)
		hd_stream_rank(s, dice(w, SENDS), (int32_t)dice(w, 12) - 4);
	else if (what >= 99 && w->end[i].epoch < EPOCHS && w->end[i].epoch <= w->end[1 - i].epoch &&
		dice(w, 6) == 0)
		next_epoch(w, i);
}

static void move(struct storm *w, int i)
{
	const size_t most = dice(w, 5) ? 1 + dice(w, 60000) : 1 + dice(w, 3);

	if (dice(w, 2))
		pair_write(w->p, i, most);
	else
		pair_read(w->p, i, most);
	if (!w->p->closed[i])
		w->p->closed[i] = hd_stream_turn(w->p->stream[i], w->p->now, &w->p->diag[i]);
	w->p->now += 1 + dice(w, 300000);
	see(w);
}

/* ---- what holds ---- */

/* All goes out and comes in; what waits for a buffer gets it. */
static void settle(struct storm *w)
{
	while (w->end[0].epoch != w->end[1].epoch)
		next_epoch(w, w->end[0].epoch > w->end[1].epoch);
	for (int k = 0; k < 3 * SENDS; k++) {
		pair_run(w->p);
		see(w);
		bool waits = false;
		for (int i = 0; i < 2; i++)
			for (uint32_t t = 0; t < w->end[i].nsends; t++)
				waits |= !w->end[i].send[t].sents;
		if (!waits)
			return;
		for (int i = 0; i < 2; i++)
			for (uint32_t row = 0; row < ROWS; row++)
				post_one(w, i, row);
	}
	fail_msg("seed %u: something is never sent", w->seed);
}

static void check_ends(struct storm *w)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t t = 0; t < w->end[i].nsends; t++) {
			const struct storm_send *s = &w->end[i].send[t];
			CHECK(s->sents == 1, "seed %u: token %u of %d ended %u times",
				w->seed, t, i, s->sents);
			if (s->end == HD_OK && !s->bulk && s->epoch == w->end[0].epoch)
				CHECK(s->arrivals == 1, "seed %u: token %u of %d did not come", w->seed,
					t, i);
			CHECK(s->end == HD_OK || s->end == HD_E_STALE, "seed %u: token %u", w->seed, t);
		}
}

/* Nothing under way: each byte of credit and each grant is at one of the two ends. */
static void check_conserved(struct storm *w)
{
	static const uint64_t window[HD_CLASSES] = { HD_CREDIT_CONTROL, 0, HD_CREDIT_BULK };

	for (int i = 0; i < 2; i++) {
		const struct hd_stream *out = w->p->stream[i], *in = w->p->stream[1 - i];
		for (uint8_t class = 0; class < HD_CLASSES; class += 2)
			CHECK(out->credit[class] + in->owed_credit[class] == window[class] &&
				in->window[class] == out->credit[class], "seed %u: credit of class %u",
				w->seed, class);
		for (uint32_t r = 0; r < ROWS && w->end[0].epoch; r++) {
			const struct out_row *a = &out->out_rows[r];
			const struct in_row *b = &in->in_rows[r];
			CHECK(a->granted == b->granted && !b->owed && b->n_posts >= b->granted &&
				!b->under_way && a->opened == b->opened, "seed %u: grants of row %u",
				w->seed, r);
		}
		for (uint32_t k = 0; k < w->end[i].nposts; k++)
			for (uint64_t b = 0; w->end[i].post[k].void_ && b < w->end[i].post[k].len; b++)
				CHECK(w->end[i].post[k].bytes[b] == 0xee, "seed %u: a void buffer",
					w->seed);
	}
}

/* No transfer began while a more urgent one could, and no chunk went so. */
static void check_order(const struct storm *w)
{
	for (int i = 0; i < 2; i++) {
		const struct wire_heard *h = &w->p->heard[i];
		struct hd_hub_stats stats = { 0 };
		hd_stream_stats(w->p->stream[i], &stats);
		CHECK(!stats.inverted, "seed %u: %u chunks out of order", w->seed, (unsigned)stats.inverted);
		for (uint32_t x = 0; w->calm && x < h->n_sents; x++)
			for (uint32_t y = 0; y < h->n_sents; y++) {
				const struct hd_sent *a = &h->sents[x], *b = &h->sents[y];
				CHECK(a->kind != b->kind || !a->first_ns || !b->first_ns ||
					w->end[i].send[a->token].priority >=
					w->end[i].send[b->token].priority ||
					a->gate_ns >= b->first_ns || b->first_ns >= a->first_ns,
					"seed %u: %u began before %u", w->seed, (unsigned)b->token,
					(unsigned)a->token);
			}
	}
}

static void lose(struct storm *w)
{
	for (int i = 0; i < 2; i++) {
		hd_stream_lost(w->p->stream[i]);
		struct wire_heard *h = &w->p->heard[i];
		while (w->seen_sents[i] < h->n_sents)
			see_sent(w, i, &h->sents[w->seen_sents[i]++]);
		for (uint32_t t = 0; t < w->end[i].nsends; t++)
			CHECK(w->end[i].send[t].sents == 1, "seed %u: token %u lost %u times", w->seed, t,
				w->end[i].send[t].sents);
	}
}

static void storm(uint32_t seed)
{
	struct storm *w = calloc(1, sizeof *w);

	w->p = pair_make(true, seed % 2, seed);
	w->p->most = seed % 5 == 0 ? 1 + seed % 50 : 1 + (size_t)dice(w, PIPE);
	w->seed = seed;
	w->calm = seed % 3 == 0;
	for (uint32_t k = 0; k < TURNS; k++) {
		if (dice(w, 3) == 0)
			act(w, (int)dice(w, 2));
		move(w, (int)dice(w, 2));
		if (seed % 4 == 1 && k > TURNS / 2 && dice(w, TURNS / 2) == 0)
			break;
	}
	if (seed % 4 == 1)
		lose(w);
	else {
		settle(w);
		pair_run(w->p);
		see(w);
		check_ends(w);
		check_conserved(w);
		check_order(w);
	}
	for (int i = 0; i < 2; i++) {
		for (uint32_t t = 0; t < w->end[i].nsends; t++)
			free(w->end[i].send[t].bytes);
		for (uint32_t k = 0; k < w->end[i].nposts; k++)
			free(w->end[i].post[k].bytes);
	}
	pair_free(w->p);
	free(w);
}

static void storms_change_no_byte_and_lose_no_grant(void **state)
{
	const char *n = getenv("HD_TEST_STORMS"), *first = getenv("HD_TEST_SEED");
	const uint32_t from = first ? (uint32_t)atol(first) : 1,
		storms = n ? (uint32_t)atol(n) : DRAWS(STORMS);

	(void)state;
	for (uint32_t seed = from; seed < from + storms; seed++)
		storm(seed);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms_change_no_byte_and_lose_no_grant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
