/* One connection from greeting to end, over a scripted transport. */
#include "wire/testing_peer.h"

#include <errno.h>

#include "base/alloc.h"
#include "sys/failpoint.h"

static const struct hd_hash zeros = { { 0 } }, other = { { 9 } };
static const struct hd_transfer channel[] = { { 3, 1, 4 } };

/* ---- greetings ---- */

/* A greeting that differs from the proper one, to a hub that differs from the usual one; the reason that
 * closes, NONE: it comes up. */
struct greeting_case {
	const char *name;
	enum hd_close why;
	void (*change)(struct hd_greeting_payload *greeting);
	void (*at)(struct peer_world *w);
};

#define SET(name, ...) static void name(struct hd_greeting_payload *g) { __VA_ARGS__; }
SET(as_it_is, (void)g)
SET(other_job, g->job = other)
SET(other_hash, g->job_hash = other)
SET(no_hash, g->job_hash = zeros)
SET(no_id, g->worker = HD_WORKER_NONE)
SET(nobody_other_hash, g->worker = HD_WORKER_NONE; g->job_hash = other)
SET(nobody_no_hash, g->worker = HD_WORKER_NONE; g->job_hash = zeros)
SET(nobody_coordinates_no_hash,
	g->worker = HD_WORKER_NONE; g->job_hash = zeros; g->role = HD_ROLE_COORDINATOR)
SET(coordinator, g->role = HD_ROLE_COORDINATOR)
SET(coordinator_other_hash, g->role = HD_ROLE_COORDINATOR; g->job_hash = other)
SET(coordinator_other_kernels, g->role = HD_ROLE_COORDINATOR; g->kernels = other)
SET(other_kernels, g->kernels = other)
SET(function_other_kernels, g->role = HD_ROLE_FUNCTION; g->kernels = other)
SET(later_versions, g->least = HD_WIRE_VERSION + 1; g->greatest = HD_WIRE_VERSION + 2)
SET(older_versions, g->least = 4; g->greatest = HD_WIRE_VERSION - 1)
SET(also_later_versions, g->greatest = HD_WIRE_VERSION + 1)
SET(also_older_versions, g->least = 1)
SET(our_id, g->worker = 0)
SET(fourth_id, g->worker = 4)
SET(last_id, g->worker = HD_WORKER_GUEST - 1)
SET(first_guest, g->worker = HD_WORKER_GUEST)
SET(last_guest, g->worker = HD_WORKER_NONE - 1)
SET(other_nonce, g->nonce = other)

static void usual(struct peer_world *w) { (void)w; }
static void coordinates(struct peer_world *w) { w->peers.config.role = HD_ROLE_COORDINATOR; }
static void knows_no_job(struct peer_world *w) { w->peers.config.job_hash = zeros; }
static void has_no_id(struct peer_world *w) { w->peers.config.worker = HD_WORKER_NONE; }
static void proves_five(struct peer_world *w) { w->row.powers = HD_WIRE_PROVES | HD_WIRE_WORLD; }
static void proves_four(struct peer_world *w)
{
	w->row.powers = HD_WIRE_PROVES | HD_WIRE_WORLD;
	w->proven = 4;
}
static void says_four(struct peer_world *w) { w->proven = 4; }
static void is_full(struct peer_world *w) { w->admits = HD_CLOSE_CROWDED; }

static const struct greeting_case incoming[] = {
	{ "a proper greeting", HD_CLOSE_NONE, as_it_is, usual },
	{ "another job", HD_CLOSE_JOB, other_job, usual },
	{ "another hash of the job", HD_CLOSE_JOB, other_hash, usual },
	{ "another hash, to a coordinator", HD_CLOSE_JOB, other_hash, coordinates },
	{ "no hash, to a worker", HD_CLOSE_JOB, no_hash, usual },
	{ "no hash and no id, to a worker", HD_CLOSE_JOB, nobody_no_hash, usual },
	{ "no hash and no id, of a coordinator to a worker", HD_CLOSE_JOB, nobody_coordinates_no_hash,
		usual },
	{ "no hash, but an id, to a coordinator", HD_CLOSE_JOB, no_hash, coordinates },
	{ "another hash and no id, to a coordinator", HD_CLOSE_JOB, nobody_other_hash, coordinates },
	{ "a coordinator's, to one that knows no job", HD_CLOSE_JOB, coordinator, knows_no_job },
	{ "no hash and no id, to a coordinator", HD_CLOSE_NONE, nobody_no_hash, coordinates },
	{ "no id, to a coordinator", HD_CLOSE_NONE, no_id, coordinates },
	{ "no id, to a worker", HD_CLOSE_NONE, no_id, usual },
	{ "no id, to one without an id", HD_CLOSE_NONE, no_id, has_no_id },
	{ "later versions", HD_CLOSE_VERSION, later_versions, usual },
	{ "older versions", HD_CLOSE_VERSION, older_versions, usual },
	{ "later versions too", HD_CLOSE_NONE, also_later_versions, usual },
	{ "older versions too", HD_CLOSE_NONE, also_older_versions, usual },
	{ "other kernels", HD_CLOSE_KERNELS, other_kernels, usual },
	{ "other kernels, of a function", HD_CLOSE_KERNELS, function_other_kernels, usual },
	{ "other kernels, of a coordinator", HD_CLOSE_NONE, coordinator_other_kernels, usual },
	{ "other kernels, to a coordinator", HD_CLOSE_NONE, other_kernels, coordinates },
	{ "our own id", HD_CLOSE_IDENTITY, our_id, usual },
	{ "an id of guests", HD_CLOSE_IDENTITY, first_guest, usual },
	{ "the last id of guests", HD_CLOSE_IDENTITY, last_guest, usual },
	{ "the last id of workers", HD_CLOSE_NONE, last_id, usual },
	{ "the id that was proven", HD_CLOSE_NONE, as_it_is, proves_five },
	{ "another id than was proven", HD_CLOSE_IDENTITY, as_it_is, proves_four },
	{ "an id that a way without proof has no word about", HD_CLOSE_NONE, as_it_is, says_four },
	{ "to a hub that has enough", HD_CLOSE_CROWDED, as_it_is, is_full },
};

/* A refused peer that may know why reads one BYE; an accepted one reads one WELCOME. */
static void who_greets_us_as_it_should_comes_up_and_nobody_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof incoming / sizeof *incoming; i++) {
		const struct greeting_case *c = &incoming[i];
		struct peer_world *w = enter(0);
		struct hd_greeting_payload hello = proper(), welcome;
		struct hd_frame frame;
		c->at(w);
		c->change(&hello);
		accepted(w);
		move(w);
		greet(w, HD_FRAME_HELLO, &hello);
		move(w);
		const uint8_t *payload = said(w, 0, &frame);
		CHECK(frame.type == (c->why ? HD_FRAME_BYE : HD_FRAME_WELCOME) &&
			!(frame.flags & HD_FRAME_CRC), "%s: answered by %s", c->name,
			hd_frame_name(frame.type));
		CHECK(w->peer.state == (c->why ? HD_PEER_CLOSING : HD_PEER_UP), "%s: state %d", c->name,
			(int)w->peer.state);
		CHECK(w->heard.n_ups == !c->why && w->n_admits == (!c->why || c->why == HD_CLOSE_CROWDED),
			"%s: %u ups, %u asked for", c->name, w->heard.n_ups,
			w->n_admits);
		if (c->why)
			CHECK(hd_get32(payload) == (uint32_t)c->why, "%s: refused for %s", c->name,
				hd_close_name(hd_close_from(hd_get32(payload))));
		else {
			uint32_t id = hello.worker == HD_WORKER_NONE ? HD_WORKER_GUEST : hello.worker;
			assert_int_equal(hd_greeting_get(payload, &welcome, &w->diag), HD_OK);
			CHECK(welcome.least == HD_WIRE_VERSION && welcome.greatest == HD_WIRE_VERSION &&
				hd_hash_same(welcome.nonce, hello.nonce), "%s: the welcome", c->name);
			CHECK(w->heard.ups[0].worker == id && !w->heard.ups[0].outgoing, "%s: it is %u",
				c->name, w->heard.ups[0].worker);
			assert_int_equal(w->unacked_ms, T_MS);
		}
		check_losts(w, c->name, 0, HD_CLOSE_NONE);
		leave(w);
	}
}

/* We call worker 5. */
static const struct greeting_case outgoing[] = {
	{ "a proper welcome", HD_CLOSE_NONE, as_it_is, usual },
	{ "another job", HD_CLOSE_JOB, other_job, usual },
	{ "another hash of the job", HD_CLOSE_JOB, other_hash, usual },
	{ "another hash, of a coordinator", HD_CLOSE_JOB, coordinator_other_hash, usual },
	{ "of a coordinator, to one that knows no job", HD_CLOSE_NONE, coordinator, knows_no_job },
	{ "of a worker, to one that knows no job", HD_CLOSE_JOB, as_it_is, knows_no_job },
	{ "no hash and no id, to a coordinator", HD_CLOSE_JOB, nobody_no_hash, coordinates },
	{ "later versions", HD_CLOSE_VERSION, later_versions, usual },
	{ "more versions than one", HD_CLOSE_ORDER, also_later_versions, usual },
	{ "another nonce", HD_CLOSE_ORDER, other_nonce, usual },
	{ "other kernels", HD_CLOSE_KERNELS, other_kernels, usual },
	{ "another worker", HD_CLOSE_IDENTITY, fourth_id, usual },
	{ "of a full hub, which is not asked", HD_CLOSE_NONE, as_it_is, is_full },
};

static void whom_we_call_comes_up_if_it_answers_as_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof outgoing / sizeof *outgoing; i++) {
		const struct greeting_case *c = &outgoing[i];
		struct peer_world *w = enter(0);
		struct hd_greeting_payload hello, welcome = proper();
		struct hd_frame frame;
		c->at(w);
		called(w);
		move(w);
		const uint8_t *payload = said(w, 0, &frame);
		assert_int_equal(frame.type, HD_FRAME_HELLO);
		assert_int_equal(hd_greeting_get(payload, &hello, &w->diag), HD_OK);
		assert_true(hello.least == HD_WIRE_VERSION && hello.greatest == HD_WIRE_VERSION &&
			hd_hash_same(hello.job_hash, w->peers.config.job_hash));
		welcome.nonce = hello.nonce;
		c->change(&welcome);
		greet(w, HD_FRAME_WELCOME, &welcome);
		move(w);
		(void)said(w, 0, &frame);         /* nothing more than the HELLO, whatever it answered */
		CHECK(w->peer.state == (c->why ? HD_PEER_DOWN : HD_PEER_UP) && w->heard.n_ups == !c->why &&
			!w->n_admits, "%s: state %d", c->name,
			(int)w->peer.state);
		CHECK(!c->why || w->peers.closed[c->why] == 1, "%s: counted for another reason", c->name);
		check_losts(w, c->name, !!c->why, c->why);
		CHECK(c->why || w->heard.ups[0].outgoing, "%s", c->name);
		leave(w);
	}
}

static void two_callers_draw_other_nonces(void **state)
{
	struct hd_greeting_payload hello[2];
	struct hd_frame frame;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct peer_world *w = enter(0);
		called(w);
		move(w);
		assert_int_equal(hd_greeting_get(said(w, 0, &frame), &hello[i], &w->diag), HD_OK);
		leave(w);
	}
	assert_false(hd_hash_same(hello[0].nonce, hello[1].nonce) || hd_hash_same(hello[0].nonce, zeros));
}

/* What comes in the place of the greeting: one case each for incoming and outgoing. */
static void a_welcome(struct peer_world *w)
{
	struct hd_greeting_payload g = proper();

	g.nonce = w->peer.nonce;
	greet(w, HD_FRAME_WELCOME, &g);
}
static void a_bye(struct peer_world *w)
{
	uint8_t bytes[8] = { HD_CLOSE_CROWDED };
	say_checked(w, HD_FRAME_BYE, bytes, 8);
}
static void of_a_later_bye(struct peer_world *w)
{
	uint8_t bytes[8] = { 200 };
	say_checked(w, HD_FRAME_BYE, bytes, 8);
}
static void a_broken_header(struct peer_world *w) { a_hello(w); w->in[9] ^= 1; }
static void half_a_header_of_noise(struct peer_world *w) { memset(w->in, 7, 40); w->in_len = 40; }
static void a_hello_of_no_role(struct peer_world *w)
{
	struct hd_greeting_payload g = proper();

	g.role = 9;
	greet(w, HD_FRAME_HELLO, &g);
}
static void other_checks(struct peer_world *w, enum hd_frame_type type)
{
	struct hd_greeting_payload g = proper();
	uint8_t bytes[hd_greeting_len];

	g.nonce = w->peer.nonce;
	hd_greeting_put(&g, bytes);
	w->row.powers ^= HD_WIRE_OPEN;
	say_checked(w, type, bytes, sizeof bytes);
	w->row.powers ^= HD_WIRE_OPEN;
}
static void a_hello_of_other_checks(struct peer_world *w) { other_checks(w, HD_FRAME_HELLO); }
static void a_welcome_of_other_checks(struct peer_world *w) { other_checks(w, HD_FRAME_WELCOME); }
static void a_flipped_hello(struct peer_world *w) { a_hello(w); w->in[w->in_len - 1] ^= 1; }
static void a_flipped_welcome(struct peer_world *w) { a_welcome(w); w->in[w->in_len - 1] ^= 1; }
static void the_end(struct peer_world *w) { w->ended = true; }
static void half_and_the_end(struct peer_world *w) { a_hello(w); w->in_len -= 20; w->ended = true; }
static void nothing(struct peer_world *w) { (void)w; }

static const struct {
	const char *name;
	bool outgoing;
	unsigned powers;
	void (*what)(struct peer_world *w);
	enum hd_close why;
} firsts[] = {
	{ "a ping", false, 0, a_ping, HD_CLOSE_ORDER },
	{ "a ping as an answer", true, 0, a_ping, HD_CLOSE_ORDER },
	{ "a welcome", false, 0, a_welcome, HD_CLOSE_ORDER },
	{ "a hello as an answer", true, 0, a_hello, HD_CLOSE_ORDER },
	{ "a good-bye", false, 0, a_bye, HD_CLOSE_ORDER },
	{ "a good-bye as an answer", true, 0, a_bye, HD_CLOSE_CROWDED },
	{ "a later reason", true, 0, of_a_later_bye, HD_CLOSE_OTHER },
	{ "a broken header", false, 0, a_broken_header, HD_CLOSE_FRAME },
	{ "half a header", false, 0, half_a_header_of_noise, HD_CLOSE_NONE },
	{ "no such role", false, 0, a_hello_of_no_role, HD_CLOSE_FRAME },
	{ "a checksum on a private way", false, 0, a_hello_of_other_checks, HD_CLOSE_FRAME },
	{ "no checksum on an open way", false, HD_WIRE_OPEN, a_hello_of_other_checks, HD_CLOSE_FRAME },
	{ "an answer without a checksum", true, HD_WIRE_OPEN, a_welcome_of_other_checks, HD_CLOSE_FRAME },
	{ "a wrong checksum", false, HD_WIRE_OPEN, a_flipped_hello, HD_CLOSE_CHECKSUM },
	{ "a wrong checksum of an answer", true, HD_WIRE_OPEN, a_flipped_welcome, HD_CLOSE_CHECKSUM },
	{ "the end", false, 0, the_end, HD_CLOSE_GONE },
	{ "the end of an outgoing one", true, 0, the_end, HD_CLOSE_GONE },
	{ "half a greeting and the end", false, 0, half_and_the_end, HD_CLOSE_GONE },
	{ "nothing yet", false, 0, nothing, HD_CLOSE_NONE },
	{ "no answer yet", true, 0, nothing, HD_CLOSE_NONE },
};

static void what_comes_first_is_a_greeting_and_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
		for (int bytewise = 0; bytewise < 2; bytewise++) {
			struct peer_world *w = enter(firsts[i].powers);
			struct hd_frame frame;
			enum hd_close why = firsts[i].why;
			w->piece = bytewise ? 1 : w->piece;
			(firsts[i].outgoing ? called : accepted)(w);
			move(w);
			firsts[i].what(w);
			move(w);
			CHECK(w->peer.state == (why ? HD_PEER_DOWN : HD_PEER_GREETING), "%s: state %d",
				firsts[i].name, (int)w->peer.state);
			CHECK(!why || w->peers.closed[why] == 1, "%s: counted for another reason",
				firsts[i].name);
			check_losts(w, firsts[i].name, why && firsts[i].outgoing, why);
			if (firsts[i].outgoing) {
				(void)said(w, 0, &frame);
				CHECK(!(frame.flags & HD_FRAME_CRC) == !firsts[i].powers,
					"%s: our hello's checksum", firsts[i].name);
			} else
				CHECK(!w->out_len, "%s: answered", firsts[i].name);
			leave(w);
		}
}

static void a_refusal_is_told_with_its_words(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	called(w);
	move(w);
	a_bye(w);
	move(w);
	assert_int_equal(w->heard.losts[0].worker, OTHER);
	assert_non_null(strstr(w->heard.losts[0].text, "worker 5 refuses: too many connections"));
	leave(w);
}

/* What lies behind a greeting is the stream's; greetings may come and go byte by byte, on open ways and on
 * others. */
static void a_greeting_may_come_and_go_in_pieces(void **state)
{
	(void)state;
	for (unsigned powers = 0; powers <= HD_WIRE_OPEN; powers++) {
		struct peer_world *w = enter(powers);
		struct hd_greeting_payload hello = proper(), welcome;
		struct hd_frame frame;
		w->piece = 1;
		w->space = 0;
		accepted(w);
		move(w);
		greet(w, HD_FRAME_HELLO, &hello);
		say_checked(w, HD_FRAME_PING, "12345678", 8);
		move(w);
		assert_int_equal(w->peer.state, HD_PEER_UP);
		assert_true(w->peer.interest & HD_LOOP_WRITE);        /* the welcome is not out */
		for (int i = 0; i < HD_FRAME_HEADER + hd_greeting_len; i++) {
			assert_int_equal(w->out_len, i);
			w->space = 1;
			move(w);
		}
		assert_int_equal(hd_greeting_get(said(w, 0, &frame), &welcome, &w->diag), HD_OK);
		assert_int_equal(frame.type, HD_FRAME_WELCOME);
		assert_int_equal(frame.flags, powers ? HD_FRAME_CRC : 0);
		assert_true(!powers || frame.payload_crc == hd_crc32c(0, w->out + HD_FRAME_HEADER,
			hd_greeting_len));
		size_t at = w->out_len;
		w->space = BYTES;
		move(w);
		(void)said(w, at, &frame);
		assert_int_equal(frame.type, HD_FRAME_PONG);
		assert_false(w->peer.interest & HD_LOOP_WRITE);
		leave(w);
	}
}

/* ---- refusing ---- */

/* A peer that may not know the reason is closed without a word; another one gets it, and nothing that it
 * sends after that is looked at. */
static void who_may_know_is_told_why_it_is_refused(void **state)
{
	static const struct {
		unsigned powers;
		void (*change)(struct hd_greeting_payload *g);
		bool answered;
		enum hd_close why;
	} cases[] = {
		{ 0, other_job, true, HD_CLOSE_JOB },
		{ HD_WIRE_OPEN, other_job, false, HD_CLOSE_JOB },
		{ HD_WIRE_OPEN, other_hash, true, HD_CLOSE_JOB },
		{ HD_WIRE_OPEN, later_versions, true, HD_CLOSE_VERSION },
		{ 0, later_versions, true, HD_CLOSE_VERSION } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct peer_world *w = enter(cases[i].powers);
		struct hd_greeting_payload hello = proper();
		struct hd_frame frame;
		const char *text = hd_close_text(cases[i].why);
		cases[i].change(&hello);
		accepted(w);
		greet(w, HD_FRAME_HELLO, &hello);
		move(w);
		CHECK(w->peer.state == (cases[i].answered ? HD_PEER_CLOSING : HD_PEER_DOWN), "case %zu", i);
		if (cases[i].answered) {
			const uint8_t *payload = said(w, 0, &frame);
			CHECK(frame.type == HD_FRAME_BYE && hd_get32(payload) == (uint32_t)cases[i].why,
				"case %zu", i);
			CHECK(frame.len == 4 + strlen(text) && !memcmp(payload + 4, text, strlen(text)),
				"case %zu: the words", i);
			CHECK(frame.flags == (cases[i].powers ? HD_FRAME_CRC : 0) &&
				(!cases[i].powers || frame.payload_crc == hd_crc32c(0, payload, frame.len)),
					"case %zu: the checksum", i);
		} else
			CHECK(!w->out_len, "case %zu: answered", i);
		CHECK(!w->heard.n_losts && !w->heard.n_ups &&
			w->peers.closed[cases[i].why] == !cases[i].answered, "case %zu", i);
		leave(w);
	}
}

static struct peer_world *refused(size_t space)
{
	struct peer_world *w = enter(0);
	struct hd_greeting_payload hello = proper();

	hello.job = other;
	w->space = space;
	accepted(w);
	greet(w, HD_FRAME_HELLO, &hello);
	move(w);
	assert_int_equal(w->peer.state, HD_PEER_CLOSING);
	return w;
}

static void one_that_was_refused_is_listened_to_no_more(void **state)
{
	struct peer_world *w = refused(BYTES);
	struct hd_frame frame;

	(void)state;
	move(w);
	assert_true(w->peer.state == HD_PEER_CLOSING && w->peer.interest == HD_LOOP_READ);
	for (int i = 0; i < 3; i++)
		a_hello(w);
	move(w);
	assert_true(w->peer.state == HD_PEER_CLOSING && w->in_at == w->in_len);
	(void)said(w, 0, &frame);
	w->ended = true;
	move(w);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_JOB] == 1 && !w->heard.n_losts);
	leave(w);
	w = refused(BYTES);
	w->reads = HD_E_PEERLOST;
	move(w);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_JOB] == 1);
	leave(w);
}

static void a_refusal_goes_out_whole_before_the_end_is_looked_for(void **state)
{
	struct peer_world *w = refused(10);
	struct hd_frame frame;

	(void)state;
	w->ended = true;
	move(w);
	assert_true(w->peer.state == HD_PEER_CLOSING && w->peer.interest & HD_LOOP_WRITE && w->out_len == 10);
	w->space = BYTES;
	move(w);
	(void)said(w, 0, &frame);
	move(w);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_JOB] == 1);
	leave(w);
	w = refused(10);
	w->writes = HD_E_PEERLOST;
	move(w);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_GONE] == 1);
	leave(w);
}

static void one_that_was_refused_and_stays_is_closed_after_t(void **state)
{
	struct peer_world *w = refused(BYTES);

	(void)state;
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T);
	later(w, T - 1);
	hd_peer_tick(&w->peer);
	assert_int_equal(w->peer.state, HD_PEER_CLOSING);
	later(w, 1);
	hd_peer_tick(&w->peer);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_JOB] == 1 && w->n_closes == 1);
	hd_peer_tick(&w->peer);           /* of a place that is free */
	assert_int_equal(hd_peer_due_ns(&w->peer), INT64_MAX);
	leave(w);
}

/* ---- what the transport says ---- */

static void an_error_of_the_transport_is_a_reason(void **state)
{
	static const struct { enum hd_err err; enum hd_close why; } errs[] = {
		{ HD_E_REFUSED, HD_CLOSE_KEY },
		{ HD_E_PROTOCOL, HD_CLOSE_FRAME },
		{ HD_E_PEERLOST, HD_CLOSE_GONE } };
	enum { READY, READ, WRITE, READ_UP, WRITE_UP, PLACES };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int where = 0; where < PLACES; where++) {
			struct peer_world *w = enter(0);
			if (where < READ_UP)
				called(w);
			else
				up(w);
			if (where == READY)
				w->ready = errs[i].err;
			else if (where == READ || where == READ_UP)
				w->reads = errs[i].err;
			else
				w->writes = errs[i].err;
			if (where == WRITE_UP)
				hd_stream_ping(w->peer.stream);
			move(w);
			CHECK(w->peer.state == HD_PEER_DOWN && w->peers.closed[errs[i].why] == 1 && w->closed,
				"%d at %d: state %d", (int)errs[i].err, where,
				(int)w->peer.state);
			check_losts(w, "error", 1, errs[i].why);
			CHECK(strstr(w->heard.losts[0].text, "not "), "%d at %d: %s", (int)errs[i].err, where,
				w->heard.losts[0].text);
			leave(w);
		}
}

static void nothing_is_greeted_before_the_transport_is_ready(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	w->ready = HD_E_AGAIN;
	called(w);
	a_hello(w);
	move(w);
	assert_true(w->peer.state == HD_PEER_CONNECTING && !w->out_len && !w->in_at);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + T);        /* to connect */
	w->ready = HD_OK;
	later(w, T / 2);
	w->in_at = w->in_len;
	move(w);
	assert_true(w->peer.state == HD_PEER_GREETING && w->out_len == HD_FRAME_HEADER + hd_greeting_len);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + 5 * T);    /* in all */
	hd_peer_tick(&w->peer);
	assert_int_equal(w->peer.state, HD_PEER_GREETING);
	later(w, 5 * T - T / 2);
	hd_peer_tick(&w->peer);
	check_losts(w, "an answer that did not come", 1, HD_CLOSE_GONE);
	leave(w);
	w = enter(0);
	accepted(w);
	assert_int_equal(hd_peer_due_ns(&w->peer), BEGAN + 5 * T);
	later(w, 5 * T);
	hd_peer_tick(&w->peer);
	assert_true(w->peer.state == HD_PEER_DOWN && w->peers.closed[HD_CLOSE_LATE] == 1 &&
		!w->heard.n_losts);
	leave(w);
}

static void the_end_without_a_good_bye_is_said(void **state)
{
	struct peer_world *w = enter(0);

	(void)state;
	up(w);
	w->ended = true;
	move(w);
	check_losts(w, "the end", 1, HD_CLOSE_GONE);
	assert_int_equal(w->heard.losts[0].worker, OTHER);
	leave(w);
}

/* A frame that breaks a rule, and one that a turn finds: both close for it, once. */
static void what_the_stream_refuses_closes(void **state)
{
	static const struct hd_hash other_plan = { { 8 } };

	(void)state;
	for (int by_turn = 0; by_turn < 2; by_turn++) {
		struct peer_world *w = enter(0);
		if (by_turn)
			w->peers.next = 1;
		up(w);
		say(w, (struct hd_frame){ .type = by_turn ? HD_FRAME_EPOCH : HD_FRAME_HELLO,
			.epoch = (uint32_t)by_turn, .len = by_turn ? 16 : 80 },
			(uint8_t[80]){ 4 });
		move(w);
		if (by_turn) {
			assert_int_equal(w->peer.state, HD_PEER_UP);
			hd_stream_epoch(w->peer.stream, 1, other_plan);
			assert_int_equal(hd_stream_channel(w->peer.stream, channel, 1, channel, 1, &w->diag),
				HD_OK);
			move(w);
		}
		check_losts(w, by_turn ? "another plan" : "a second hello", 1,
			by_turn ? HD_CLOSE_PLAN : HD_CLOSE_ORDER);
		leave(w);
	}
}

/* The welcome is not out when the connection ends: nothing is written to one that is closed. */
static void one_that_ends_before_its_welcome_is_out_is_left_alone(void **state)
{
	struct peer_world *w = enter(0);
	struct hd_greeting_payload hello = proper();

	(void)state;
	w->space = 10;
	accepted(w);
	greet(w, HD_FRAME_HELLO, &hello);
	move(w);
	assert_int_equal(w->peer.state, HD_PEER_UP);
	w->space = BYTES;
	w->ended = true;
	move(w);
	assert_true(w->peer.state == HD_PEER_DOWN && w->out_len == 10);
	leave(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_greets_us_as_it_should_comes_up_and_nobody_else),
		cmocka_unit_test(whom_we_call_comes_up_if_it_answers_as_it_should),
		cmocka_unit_test(two_callers_draw_other_nonces),
		cmocka_unit_test(what_comes_first_is_a_greeting_and_whole),
		cmocka_unit_test(a_refusal_is_told_with_its_words),
		cmocka_unit_test(a_greeting_may_come_and_go_in_pieces),
		cmocka_unit_test(who_may_know_is_told_why_it_is_refused),
		cmocka_unit_test(one_that_was_refused_is_listened_to_no_more),
		cmocka_unit_test(a_refusal_goes_out_whole_before_the_end_is_looked_for),
		cmocka_unit_test(one_that_was_refused_and_stays_is_closed_after_t),
		cmocka_unit_test(an_error_of_the_transport_is_a_reason),
		cmocka_unit_test(nothing_is_greeted_before_the_transport_is_ready),
		cmocka_unit_test(the_end_without_a_good_bye_is_said),
		cmocka_unit_test(what_the_stream_refuses_closes),
		cmocka_unit_test(one_that_ends_before_its_welcome_is_out_is_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
