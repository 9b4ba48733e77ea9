#include "functions/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "functions/dense.h"
#include "functions/link.h"
#include "functions/trial.h"
#include "tests/check.h"

#define DONE "{\"ok\":true,\"busy_ms\":1,\"reply\":\"accepted\"}"
#define LEASE_NS INT64_C(600000000000)

/* An owner with one task, calls that go nowhere, and workers played by hand over a Unix socket. */
struct bench {
	struct hd_clock_sim clock;        /* no turn of these tests waits */
	struct hd_fn_owner owner;
	struct hd_fn_work work;
	float x[8], y[8];
	void *at[2];
	struct hd_fn_job job;
	char dir[32], event[HD_FN_EVENT_BYTES];
	struct hd_fn_event last;          /* that was called with */
	uint32_t ncalls;
	bool fails;                       /* calls end without an answer at the next tick */
	bool refuses;                     /* and that is for lack of a slot */
	struct hd_fn_called called;
	uint32_t nended;
};

static enum hd_err keep_event(void *self, uint64_t call, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct bench *b = self;
	struct hd_arena arena;

	(void)deadline_ns;
	b->called = (struct hd_fn_called){ .call = call, .end = HD_FN_DIED, .took_ns = -1 };
	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_fn_event_read(event, len, &arena, &b->last, diag);
	hd_arena_finish(&arena);
	b->ncalls++;
	return err;
}

static void no_event(void *self, const struct hd_loop_event *event) { (void)self, (void)event; }
static int64_t no_tick(void *self, int64_t now_ns)
{
	struct bench *b = self;

	(void)now_ns;
	b->nended = b->fails;
	if (b->refuses) {
		b->called.end = HD_FN_REFUSED_CALL;
		snprintf(b->called.why, sizeof b->called.why, "status 503: full");
	}
	b->fails = false;
	return INT64_MAX;
}

static bool next_end(void *self, struct hd_fn_called *called)
{
	struct bench *b = self;

	*called = b->called;
	return b->nended && b->nended--;
}

static void turn(struct bench *b)
{
	uint32_t here;

	assert_int_equal(hd_fn_owner_turn(&b->owner, 0, false, &here, NULL), HD_OK);
}

static struct bench *begin(void)
{
	static const struct hd_fn_invoker_ops ops = { "kept", keep_event, no_event, no_tick, next_end };
	static const char text[] = "graph t\ninput x f32 [*,4]\n%0 = act x act=relu\noutput y %0\n";
	static struct bench b;
	char listen[64];

	memset(&b, 0, sizeof b);
	snprintf(b.dir, sizeof b.dir, "/tmp/heddle-owner-XXXXXX");
	assert_non_null(mkdtemp(b.dir));
	snprintf(listen, sizeof listen, "unix:%s/o", b.dir);
	hd_clock_sim(&b.clock, HD_NS_PER_S, INT64_C(1700000000) * HD_NS_PER_S);
	const struct hd_fn_owner_spec spec = { .clock = &b.clock.clock, .listen = listen, .ntasks = 4,
		.slots = 2, .lease_ns = LEASE_NS, .price = { .ntiers = 1, .granularity_ms = 1 } };
	assert_int_equal(hd_fn_owner_open(&b.owner, &spec, NULL), HD_OK);
	const struct hd_fn_invoker invoker = { &ops, &b };
	hd_fn_owner_calls(&b.owner, &invoker);
	b.work = (struct hd_fn_work){ .kernels = "portable", .rows = 2, .ntensors = 2, .text = text,
		.text_len = sizeof text - 1 };
	b.work.tensor[0] = (struct hd_fn_tensor){ .name = "x", .dtype = HD_F32, .rank = 2, .dim = { 2, 4 } };
	b.work.tensor[1] = (struct hd_fn_tensor){ .name = "y", .is_output = true, .dtype = HD_F32, .rank = 2,
		.dim = { 2, 4 } };
	b.at[0] = b.x;
	b.at[1] = b.y;
	b.job = (struct hd_fn_job){ &b.work, b.at, 0 };
	for (int i = 0; i < 8; i++)
		b.y[i] = -7;
	assert_int_equal(hd_fn_owner_submit(&b.owner, &b.job, 1, NULL), HD_OK);
	turn(&b);
	assert_int_equal(b.ncalls, 1);
	return &b;
}

static void end(struct bench *b)
{
	hd_fn_owner_close(&b->owner);
	assert_int_equal(rmdir(b->dir), 0);
}

static void answer_call(struct bench *b, const char *body)
{
	b->called.end = HD_FN_ANSWERED;
	b->called.len = strlen(body);
	snprintf(b->called.body, sizeof b->called.body, "%s", body);
	b->fails = true;
	turn(b);
}

/* ---- a worker by hand ---- */

static struct hd_sock call_owner(struct bench *b)
{
	struct hd_sock sock = { 0 };

	assert_int_equal(hd_sock_connect(&b->owner.net, b->owner.listener.addr, &sock, NULL), HD_OK);
	return sock;
}

static void send_bytes(struct bench *b, struct hd_sock *sock, const void *bytes, size_t len)
{
	size_t put = 0;

	assert_int_equal(hd_sock_write(sock, bytes, len, &put, NULL), HD_OK);
	assert_int_equal(put, len);
	for (int i = 0; i < 3; i++)
		turn(b);
}

static void send_one(struct bench *b, struct hd_sock *sock, enum hd_fn_frame_type type, const void *payload,
	size_t len)
{
	uint8_t bytes[HD_FN_FRAME + HD_FN_HELLO_BYTES];

	hd_fn_frame_put(type, payload, len, bytes);
	memcpy(bytes + HD_FN_FRAME, payload, len);
	send_bytes(b, sock, bytes, HD_FN_FRAME + len);
}

static void hello_as(struct bench *b, struct hd_sock *sock, const struct hd_fn_event *event)
{
	const struct hd_fn_hello hello = { .task = event->ticket.task, .attempt = event->ticket.attempt,
		.token = event->token };
	char bytes[HD_FN_HELLO_BYTES];
	struct hd_text text;

	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_hello_put(&hello, &text);
	send_one(b, sock, HD_FN_HELLO, text.at, text.len);
}

/* The type of the first frame that came, and of a REPLY what it says; 0: it is ended, -1: nothing came. */
static int heard(struct hd_sock *sock, int *reply)
{
	uint8_t bytes[4096];
	struct hd_fn_frame frame;
	size_t got = 0;
	enum hd_err err = hd_sock_read(sock, bytes, sizeof bytes, &got, NULL);

	if (err == HD_E_AGAIN)
		return -1;
	if (err || !got)
		return 0;
	assert_int_equal(hd_fn_frame_get(bytes, &frame, NULL), HD_OK);
	*reply = frame.type == HD_FN_REPLY ? bytes[HD_FN_FRAME] : 0;
	return (int)frame.type;
}

static void send_result(struct bench *b, struct hd_sock *sock, const float y[8])
{
	uint8_t bytes[12 + 32];
	const struct hd_fn_rows rows = { .tensor = 1, .first = 0, .n = 2 };

	hd_fn_rows_put(&rows, bytes);
	memcpy(bytes + 12, y, 32);
	send_one(b, sock, HD_FN_RESULT, bytes, sizeof bytes);
}

static void send_commit(struct bench *b, struct hd_sock *sock, const float y[8])
{
	const struct hd_fn_commit commit = { hd_hash(y, 32), 1 };
	uint8_t bytes[24];

	hd_fn_commit_put(&commit, bytes);
	send_one(b, sock, HD_FN_COMMIT, bytes, sizeof bytes);
}

static void outputs_are_written_at_the_commit_and_once(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b), again = call_owner(b);
	int reply = 0;

	(void)state;
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	hello_as(b, &again, &b->last);            /* the token is used */
	assert_int_equal(heard(&again, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_REFUSED);
	assert_int_equal(heard(&again, &reply), 0);
	send_result(b, &sock, y);
	assert_true(b->y[0] < 0 && hd_fn_owner_left(&b->owner) == 1);
	send_commit(b, &sock, y);
	assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_ACCEPTED);
	assert_memory_equal(b->y, y, sizeof y);
	assert_int_equal(hd_fn_owner_left(&b->owner), 0);
	assert_int_equal(b->owner.refused, 1);
	hd_sock_close(&sock);
	hd_sock_close(&again);
	end(b);
}

static void commit_by(struct bench *b, struct hd_sock *sock, const float y[8])
{
	int reply = 0;

	hello_as(b, sock, &b->last);
	assert_int_equal(heard(sock, &reply), HD_FN_WORK);
	send_result(b, sock, y);
	send_commit(b, sock, y);
	assert_int_equal(heard(sock, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_ACCEPTED);
}

static void submit_next(struct bench *b)
{
	answer_call(b, DONE);
	assert_int_equal(hd_fn_owner_submit(&b->owner, &b->job, 1, NULL), HD_OK);
	turn(b);
	assert_int_equal(hd_fn_owner_left(&b->owner), 1);
}

/* Each task by its own token, once; the one before serves no more. */
static void a_connection_serves_task_after_task(void **state)
{
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	struct hd_fn_event before = b->last;
	int reply = 0;

	(void)state;
	for (int k = 0; k < 3; k++) {
		const float y[8] = { 1, 2, 3, 4, 5, 6, 7, (float)k };
		before = b->last;
		commit_by(b, &sock, y);
		assert_memory_equal(b->y, y, sizeof y);
		assert_int_equal(heard(&sock, &reply), -1);
		submit_next(b);
	}
	assert_int_equal(b->owner.connections, 1);
	assert_int_equal(b->owner.board.count.accepted, 3);
	hello_as(b, &sock, &before);
	assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_REFUSED);
	assert_int_equal(heard(&sock, &reply), 0);
	assert_int_equal(hd_fn_owner_left(&b->owner), 1);
	hd_sock_close(&sock);
	end(b);
}

/* At rest it is a stranger: wrong tokens, frames before a HELLO, and time end it. */
static void a_connection_at_rest_is_a_stranger(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct bench *b = begin();
		struct hd_sock sock = call_owner(b);
		int reply = 0;
		commit_by(b, &sock, y);
		submit_next(b);
		struct hd_fn_event forged = b->last;
		switch (k) {
		case 0: send_commit(b, &sock, y); break;
		case 1: send_result(b, &sock, y); break;
		case 2: forged.token.byte[31] ^= 1; hello_as(b, &sock, &forged); break;
		case 3: hd_clock_sim_advance(&b->clock, HD_FN_REST_END_NS); turn(b); turn(b); break;
		default: hd_clock_sim_advance(&b->clock, HD_FN_REST_END_NS - 1); turn(b); break;
		}
		if (k == 2) {
			assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
			assert_int_equal(reply, HD_FN_REFUSED);
		}
		assert_int_equal(heard(&sock, &reply), k == 4 ? -1 : 0);
		assert_int_equal(hd_fn_owner_left(&b->owner), 1);
		hd_sock_close(&sock);
		end(b);
	}
}

/* What comes with a COMMIT, before its answer, is no HELLO of the next task, however long it is. */
static void more_than_a_commit_ends_the_connection(void **state)
{
	static uint8_t bytes[HD_FN_FRAME + 24 + 4 * HD_FN_HELLO_BYTES];
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	const struct hd_fn_commit commit = { hd_hash(y, 32), 1 };

	(void)state;
	for (size_t more = 1; more <= 4 * HD_FN_HELLO_BYTES; more += 4 * HD_FN_HELLO_BYTES - 1) {
		struct bench *b = begin();
		struct hd_sock sock = call_owner(b);
		int reply = 0;
		hello_as(b, &sock, &b->last);
		assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
		send_result(b, &sock, y);
		hd_fn_commit_put(&commit, bytes + HD_FN_FRAME);
		hd_fn_frame_put(HD_FN_COMMIT, bytes + HD_FN_FRAME, 24, bytes);
		send_bytes(b, &sock, bytes, HD_FN_FRAME + 24 + more);
		assert_int_equal(heard(&sock, &reply), 0);
		assert_memory_equal(b->y, y, sizeof y);   /* it came */
		hd_sock_close(&sock);
		end(b);
	}
}

/* With all connections taken, one at rest makes room; it alone. */
static void a_connection_at_rest_gives_its_place(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static struct hd_sock others[HD_FN_CONNECTIONS];
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	int reply = 0;

	(void)state;
	commit_by(b, &sock, y);
	submit_next(b);
	for (size_t i = 1; i < HD_FN_CONNECTIONS; i++) {
		others[i] = call_owner(b);
		turn(b);
	}
	assert_int_equal(heard(&sock, &reply), -1);
	others[0] = call_owner(b);
	hello_as(b, &others[0], &b->last);
	assert_int_equal(heard(&others[0], &reply), HD_FN_WORK);
	assert_int_equal(heard(&sock, &reply), 0);
	hd_sock_close(&sock);
	sock = call_owner(b);
	for (int i = 0; i < 3; i++)
		turn(b);
	assert_int_equal(heard(&sock, &reply), 0);        /* nothing rests */
	hd_sock_close(&sock);
	for (size_t i = 0; i < HD_FN_CONNECTIONS; i++)
		hd_sock_close(&others[i]);
	end(b);
}

/* Whatever is wrong with a token, no work and no input is given out. */
static void forged_tokens_get_no_work(void **state)
{
	(void)state;
	for (int k = 0; k < 4; k++) {
		struct bench *b = begin();
		struct hd_fn_event forged = b->last;
		struct hd_sock sock = call_owner(b);
		int reply = 0;
		if (k == 0) forged.token.byte[31] ^= 1;
		if (k == 1) forged.ticket.attempt++;
		if (k == 2) forged.ticket.task.byte[0] ^= 1;
		if (k == 3) forged.ticket.task.byte[8] ^= 1;
		hello_as(b, &sock, &forged);
		assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
		assert_int_equal(reply, HD_FN_REFUSED);
		assert_int_equal(heard(&sock, &reply), 0);
		hd_sock_close(&sock);
		end(b);
	}
}

static void a_digest_of_other_bytes_is_refused(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, z[8] = { 1, 2, 3, 4, 5, 6, 7, 9 };
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	int reply = 0;

	(void)state;
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	send_result(b, &sock, y);
	send_commit(b, &sock, z);
	assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_REFUSED);
	assert_true(b->y[0] < 0);
	assert_int_equal(hd_fn_owner_left(&b->owner), 1);
	hd_sock_close(&sock);
	end(b);
}

/* Frames that are not due, cut or no frames end the connection; nothing is written. */
static void what_is_not_due_ends_the_connection(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct bench *b = begin();
		struct hd_sock sock = call_owner(b);
		int reply = 0;
		if (k > 1) {
			hello_as(b, &sock, &b->last);
			assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
		}
		switch (k) {
		case 0: send_bytes(b, &sock, "GET / HTTP/1.1\r\n\r\n", 18); break;
		case 1: send_commit(b, &sock, y); break;
		case 2: send_commit(b, &sock, y); break;          /* before its rows */
		case 3: send_result(b, &sock, y); send_result(b, &sock, y); break;
		default: hello_as(b, &sock, &b->last); break;
		}
		assert_int_equal(heard(&sock, &reply), 0);
		assert_true(b->y[0] < 0);
		hd_sock_close(&sock);
		end(b);
	}
}

static void a_forgotten_task_is_stale(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	int reply = 0;

	(void)state;
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	assert_int_equal(hd_fn_owner_submit(&b->owner, &b->job, 1, NULL), HD_OK);
	send_result(b, &sock, y);
	assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
	assert_int_equal(reply, HD_FN_STALE);
	assert_true(b->y[0] < 0);
	hd_sock_close(&sock);
	end(b);
}

/* A call that ended in the invoker's turn is one that failed before the owner looks at what is due. */
static void a_call_that_failed_is_made_again_in_the_same_turn(void **state)
{
	struct bench *b = begin();

	(void)state;
	b->fails = true;
	turn(b);
	assert_int_equal(b->ncalls, 2);
	assert_int_equal(b->owner.calling, 1);
	end(b);
}

/* It is no failed one, but its words are kept for those that wait. */
static void a_call_that_is_refused_says_why(void **state)
{
	struct bench *b = begin();

	(void)state;
	b->fails = b->refuses = true;
	turn(b);
	assert_int_equal(b->owner.board.count.throttled, 1);
	assert_int_equal(b->owner.board.count.failures, 0);
	assert_string_equal(b->owner.last_error, "status 503: full");
	end(b);
}

/* Of calls that hang, fail, answer what is no answer or without a result; until one is right. */
static void calls_are_silent_until_one_ends_well(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct bench *b = begin();
	int reply = 0;

	(void)state;
	hd_clock_sim_advance(&b->clock, 4 * HD_NS_PER_S);
	turn(b);
	assert_int_equal(hd_fn_owner_silent_ns(&b->owner), 4 * HD_NS_PER_S);
	b->fails = true;
	turn(b);
	hd_clock_sim_advance(&b->clock, HD_NS_PER_S);
	answer_call(b, "<html>no\ngateway</html>");
	assert_string_equal(b->owner.last_error, "it answers what no function worker says: "
		"<html>no?gateway</html>");
	answer_call(b, DONE);
	CHECK(strstr(b->owner.last_error, "no result came: its worker must reach unix:"), "%s",
		b->owner.last_error);
	assert_int_equal(hd_fn_owner_silent_ns(&b->owner), 5 * HD_NS_PER_S);
	assert_true(hd_fn_board_is_away(&b->owner.board));        /* three in a row */
	assert_int_equal(hd_fn_owner_submit(&b->owner, &b->job, 1, NULL), HD_OK);
	turn(b);
	struct hd_sock sock = call_owner(b);
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	send_result(b, &sock, y);
	send_commit(b, &sock, y);
	assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
	answer_call(b, DONE);
	hd_clock_sim_advance(&b->clock, HD_NS_PER_S);
	assert_int_equal(hd_fn_owner_silent_ns(&b->owner), 0);
	assert_false(hd_fn_board_is_away(&b->owner.board));
	hd_sock_close(&sock);
	end(b);
}

static uint32_t here_now(struct bench *b)
{
	uint32_t here;

	assert_int_equal(hd_fn_owner_turn(&b->owner, 0, true, &here, NULL), HD_OK);
	return here;
}

/* The device has run the task of a call that is late. */
static void run_late_one(struct bench *b)
{
	b->owner.board.shares = true;
	hd_clock_sim_advance(&b->clock, HD_FN_FIRST_NS);
	assert_int_equal(here_now(b), 0);
	hd_fn_owner_ran(&b->owner, 0, b->at, 1);
	assert_int_equal(hd_fn_owner_left(&b->owner), 0);
}

/* "done" of a service whose workers never come is a failed call, though the task was done here meanwhile, or
 * is forgotten; ten of them close the circuit. */
static void done_without_a_worker_is_a_failed_call(void **state)
{
	(void)state;
	for (int forgotten = 0; forgotten < 2; forgotten++) {
		struct bench *b = begin();
		for (uint32_t i = 1; i <= HD_FN_CIRCUIT; i++) {
			run_late_one(b);
			if (forgotten)
				assert_int_equal(hd_fn_owner_submit(&b->owner, NULL, 0, NULL), HD_OK);
			answer_call(b, DONE);
			CHECK(b->owner.board.failed_in_row == i % HD_FN_CIRCUIT, "%u of %d: %u in a row", i,
				forgotten, b->owner.board.failed_in_row);
			CHECK(strstr(b->owner.last_error, "no result came"), "%s", b->owner.last_error);
			assert_int_equal(hd_fn_owner_submit(&b->owner, &b->job, 1, NULL), HD_OK);
			turn(b);
		}
		assert_int_equal(b->owner.board.count.closed, 1);
		assert_int_equal(b->ncalls, HD_FN_CIRCUIT);
		assert_true(hd_fn_owner_silent_ns(&b->owner) >= HD_FN_CIRCUIT * HD_FN_FIRST_NS);
		end(b);
	}
}

/* The same of one whose worker came, and was late: it hears that, and its call has ended well. */
static void a_worker_that_comes_late_is_no_failed_call(void **state)
{
	const float y[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	(void)state;
	for (int k = 0; k < 5; k++) {
		struct bench *b = begin();
		struct hd_sock sock = call_owner(b);
		struct hd_fn_event event = b->last;
		int reply = 0, is = k == 3 ? HD_FN_ALREADY : k == 2 ? HD_FN_STALE : HD_FN_REFUSED;
		b->owner.board.failed_in_row = 2;
		event.token.byte[0] ^= k == 4;            /* anybody can come */
		if (k == 2 || k == 3) {
			hello_as(b, &sock, &event);
			assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
		}
		run_late_one(b);
		b->owner.board.failed_in_row = 2;
		if (k == 1 || k == 2)
			assert_int_equal(hd_fn_owner_submit(&b->owner, NULL, 0, NULL), HD_OK);
		if (k == 2 || k == 3)
			send_result(b, &sock, y);
		else
			hello_as(b, &sock, &event);
		if (k == 3)
			send_commit(b, &sock, y);
		assert_int_equal(heard(&sock, &reply), HD_FN_REPLY);
		assert_int_equal(reply, is);
		answer_call(b, DONE);
		CHECK(b->owner.board.failed_in_row == (k == 4 ? 3 : 0), "%d: %u in a row", k,
			b->owner.board.failed_in_row);
		hd_sock_close(&sock);
		end(b);
	}
}

/* A worker that took the work, and is gone without a result. */
static void a_worker_without_a_result_is_a_failed_call(void **state)
{
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	int reply = 0;

	(void)state;
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	hd_sock_close(&sock);
	run_late_one(b);
	answer_call(b, DONE);
	assert_int_equal(b->owner.board.failed_in_row, 1);
	assert_int_equal(b->owner.board.count.failures, 1);
	end(b);
}

/* A worker that is gone without a word holds its connection until its event's deadline, not for ever. */
static void a_connection_ends_with_the_time_of_its_event(void **state)
{
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b);
	int reply = 0;

	(void)state;
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	hd_clock_sim_advance(&b->clock, LEASE_NS + HD_NS_PER_S);
	turn(b);
	assert_int_equal(heard(&sock, &reply), -1);
	hd_clock_sim_advance(&b->clock, HD_NS_PER_S);
	turn(b);
	assert_int_equal(heard(&sock, &reply), 0);
	hd_sock_close(&sock);
	end(b);
}

/* What a stranger said is read before its time is looked at: the owner may have computed for long. */
static void a_hello_that_was_not_read_in_time_counts(void **state)
{
	struct bench *b = begin();
	struct hd_sock sock = call_owner(b), silent = call_owner(b);
	int reply = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		turn(b);
	hd_clock_sim_advance(&b->clock, HD_FN_STRANGER_NS);
	hello_as(b, &sock, &b->last);
	assert_int_equal(heard(&sock, &reply), HD_FN_WORK);
	assert_int_equal(heard(&silent, &reply), 0);
	hd_sock_close(&sock);
	hd_sock_close(&silent);
	end(b);
}

/* ---- tasks that are none ---- */

static void only_dense_graphs_of_inputs_and_outputs_are_tasks(void **state)
{
	static const struct { const char *text; enum hd_err err; } at[] = {
		{ "graph t\ninput x f32 [*,4]\n%0 = act x act=relu\noutput y %0\n", HD_OK },
		{ "graph t\ninput x f32 [*,4]\n%0 = act x act=relu\n", HD_E_INPUT },
		{ "graph t\ninput x f32 [*,4]\nparam w f32 [4,2] zeros\n%0 = matmul x w\noutput y %0\n", HD_E_INPUT },
		{ "graph t\ninput x f32 [*,4]\n%0 = nothing x\noutput y %0\n", HD_E_INPUT },
		{ "", HD_E_INPUT },
	};
	static struct hd_fn_work work;

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct hd_dense dense;
		work = (struct hd_fn_work){ .kernels = "portable", .rows = 2, .text = at[i].text,
			.text_len = strlen(at[i].text) };
		CHECK(hd_dense_open(&dense, &work, NULL) == at[i].err, "%s", at[i].text);
		if (at[i].err)
			continue;
		assert_int_equal(hd_dense_tensors(&dense, &work, NULL), HD_OK);
		assert_int_equal(hd_dense_fits(&dense, &work, NULL), HD_OK);
		float x[8] = { -1, 2, -3, 4, -5, 6, -7, 8 }, y[8];
		void *tensors[2] = { x, y };
		struct hd_clock_sim clock;
		hd_clock_sim(&clock, 100, 0);
		assert_int_equal(hd_dense_run(&dense, &work, tensors, &clock.clock, 101, NULL), HD_OK);
		for (int k = 0; k < 8; k++)
			assert_true(y[k] >= (x[k] > 0 ? x[k] : 0) && y[k] <= (x[k] > 0 ? x[k] : 0));
		assert_int_equal(hd_dense_run(&dense, &work, tensors, &clock.clock, 100, NULL), HD_E_AGAIN);
		work.tensor[0].dim[1] = 3;
		assert_int_equal(hd_dense_fits(&dense, &work, NULL), HD_E_INPUT);
		hd_dense_close(&dense);
	}
	work.text = at[0].text;
	work.text_len = strlen(work.text);
	struct hd_dense dense;
	snprintf(work.kernels, sizeof work.kernels, "avx3");
	assert_int_equal(hd_dense_open(&dense, &work, NULL), HD_E_INVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outputs_are_written_at_the_commit_and_once),
		cmocka_unit_test(a_connection_serves_task_after_task),
		cmocka_unit_test(a_connection_at_rest_is_a_stranger),
		cmocka_unit_test(more_than_a_commit_ends_the_connection),
		cmocka_unit_test(a_connection_at_rest_gives_its_place),
		cmocka_unit_test(forged_tokens_get_no_work),
		cmocka_unit_test(a_digest_of_other_bytes_is_refused),
		cmocka_unit_test(what_is_not_due_ends_the_connection),
		cmocka_unit_test(a_forgotten_task_is_stale),
		cmocka_unit_test(a_call_that_failed_is_made_again_in_the_same_turn),
		cmocka_unit_test(a_call_that_is_refused_says_why),
		cmocka_unit_test(calls_are_silent_until_one_ends_well),
		cmocka_unit_test(done_without_a_worker_is_a_failed_call),
		cmocka_unit_test(a_worker_that_comes_late_is_no_failed_call),
		cmocka_unit_test(a_worker_without_a_result_is_a_failed_call),
		cmocka_unit_test(a_connection_ends_with_the_time_of_its_event),
		cmocka_unit_test(a_hello_that_was_not_read_in_time_counts),
		cmocka_unit_test(only_dense_graphs_of_inputs_and_outputs_are_tasks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
