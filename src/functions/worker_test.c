#include "functions/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/signal.h"
#include "functions/lambda.h"
#include "functions/owner.h"
#include "tests/check.h"

enum { INPUTS = HD_FN_HAVE + 1, WIDTH = 4 };

/* An owner of one task, the sum of more inputs than a worker keeps, and a worker in a thread beside it. */
struct bench {
	struct hd_clock clock;
	struct hd_fn_owner owner;
	struct hd_fn_worker worker, *by;  /* by: it has the next task */
	struct hd_fn_work work;
	struct hd_fn_job job;
	char dir[32], text[2048], event[HD_FN_EVENT_BYTES];
	size_t event_len;
	float in[INPUTS][WIDTH], out[WIDTH];
	void *at[INPUTS + 1];
	struct hd_fn_answer answer;
	atomic_bool is_done;
};

static enum hd_err keep_event(void *self, uint64_t call, const char *event, size_t len, int64_t deadline_ns,
	struct hd_diag *diag)
{
	struct bench *b = self;

	(void)call, (void)deadline_ns, (void)diag;
	memcpy(b->event, event, len);
	b->event_len = len;
	return HD_OK;
}

static void no_event(void *self, const struct hd_loop_event *event) { (void)self, (void)event; }
static int64_t no_tick(void *self, int64_t now_ns) { (void)self, (void)now_ns; return INT64_MAX; }
static bool no_end(void *self, struct hd_fn_called *called) { (void)self, (void)called; return false; }

static void open_owner(struct bench *b, bool tls)
{
	static const struct hd_fn_invoker_ops ops = { "kept", keep_event, no_event, no_tick, no_end };
	char listen[64];

	snprintf(listen, sizeof listen, "unix:%s/o", b->dir);
	const struct hd_fn_owner_spec spec = { .clock = &b->clock, .listen = listen, .ntasks = 1, .slots = 8,
		.tls = tls, .lease_ns = INT64_C(600000000000),
		.price = { .ntiers = 1, .granularity_ms = 1 } };
	assert_int_equal(hd_fn_owner_open(&b->owner, &spec, NULL), HD_OK);
	const struct hd_fn_invoker invoker = { &ops, b };
	hd_fn_owner_calls(&b->owner, &invoker);
}

static void begin(struct bench *b, bool tls)
{
	size_t len = 0;

	memset(b, 0, sizeof *b);
	snprintf(b->dir, sizeof b->dir, "/tmp/heddle-worker-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	hd_clock_real(&b->clock);
	open_owner(b, tls);
	assert_int_equal(hd_fn_worker_init(&b->worker, &b->clock, NULL), HD_OK);
	b->by = &b->worker;
	b->work = (struct hd_fn_work){ .kernels = "portable", .rows = 1, .ntensors = INPUTS + 1,
		.text = b->text };
	len = (size_t)snprintf(b->text, sizeof b->text, "graph t\n");
	for (int i = 0; i < INPUTS; i++)
		len += (size_t)snprintf(b->text + len, sizeof b->text - len, "input a%d f32 [*,%d]\n", i,
			WIDTH);
	len += (size_t)snprintf(b->text + len, sizeof b->text - len, "%%0 = add a0 a1\n");
	for (int i = 2; i < INPUTS; i++)
		len += (size_t)snprintf(b->text + len, sizeof b->text - len, "%%%d = add %%%d a%d\n", i - 1,
			i - 2, i);
	b->work.text_len = len + (size_t)snprintf(b->text + len, sizeof b->text - len, "output y %%%d\n",
		INPUTS - 2);
	for (int i = 0; i <= INPUTS; i++) {
		struct hd_fn_tensor *t = &b->work.tensor[i];
		*t = (struct hd_fn_tensor){ .is_output = i == INPUTS, .dtype = HD_F32, .rank = 2,
			.dim = { 1, WIDTH } };
		snprintf(t->name, sizeof t->name, i == INPUTS ? "y" : "a%d", i);
		b->at[i] = i == INPUTS ? b->out : b->in[i];
	}
	b->job = (struct hd_fn_job){ &b->work, b->at, 0 };
}

static void end(struct bench *b)
{
	hd_fn_worker_finish(&b->worker);
	hd_fn_owner_close(&b->owner);
	assert_int_equal(rmdir(b->dir), 0);
}

static void *work(void *self)
{
	struct bench *b = self;

	hd_fn_worker_do(b->by, b->event, b->event_len, "", INT64_MAX, &b->answer);
	atomic_store(&b->is_done, true);
	return NULL;
}

/* One task, its inputs with their digests. */
static void run_task(struct bench *b)
{
	pthread_t thread;
	uint32_t here;

	for (int i = 0; i < INPUTS; i++)
		b->work.tensor[i].digest = hd_hash(b->in[i], sizeof b->in[i]);
	memset(b->out, 0, sizeof b->out);
	assert_int_equal(hd_fn_owner_submit(&b->owner, &b->job, 1, NULL), HD_OK);
	assert_int_equal(hd_fn_owner_turn(&b->owner, 0, false, &here, NULL), HD_OK);
	atomic_store(&b->is_done, false);
	assert_int_equal(pthread_create(&thread, NULL, work, b), 0);
	while (!atomic_load(&b->is_done))
		assert_int_equal(hd_fn_owner_turn(&b->owner, hd_clock_now_ns(&b->clock) + HD_NS_PER_MS, false,
			&here, NULL), HD_OK);
	pthread_join(thread, NULL);
}

static void do_task(struct bench *b)
{
	run_task(b);
	CHECK(b->answer.error == HD_FN_ERROR_NONE && b->answer.reply == HD_FN_ACCEPTED, "%s",
		b->answer.message);
	for (int k = 0; k < WIDTH; k++) {
		float sum = 0;
		for (int i = 0; i < INPUTS; i++)
			sum += b->in[i][k];       /* whole numbers: exact in any order */
		CHECK(!memcmp(&b->out[k], &sum, sizeof sum), "y[%d] is %g, not %g", k, (double)b->out[k],
			(double)sum);
	}
}

/* ---- connections ---- */

/* Another process at the same address. */
static void reopen_owner(struct bench *b, bool tls)
{
	hd_fn_owner_close(&b->owner);
	open_owner(b, tls);
}

/* A warm worker keeps its connection from task to task; where it ended meanwhile, whoever ended it, or rested
 * too long by either clock, the task goes by one new connection, at its first attempt, once. */
static void a_connection_serves_tasks_until_it_ended(void **state)
{
	static struct bench b;

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		begin(&b, tls);
		for (int k = 0; k < 8; k++) {
			/* new, again, owner again, cut, rested, again, frozen, again */
			static const uint32_t connections[8] = { 1, 1, 1, 2, 3, 3, 4, 4 };
			switch (k) {
			case 2: reopen_owner(&b, tls); break;
			case 3: assert_int_equal(shutdown(b.worker.link.sock.id, SHUT_RDWR), 0); break;
			case 4: b.worker.rested_ns -= HD_FN_REST_NS; break;
			case 6: b.worker.rested_wall_ns -= HD_FN_REST_NS; break;
			default: break;
			}
			for (int i = 0; i < INPUTS; i++)
				b.in[i][0] = (float)(100 * i + k);
			do_task(&b);
			CHECK(b.owner.connections == connections[k], "%d: %u", k,
				(unsigned)b.owner.connections);
			const struct hd_fn_counts *c = &b.owner.board.count;
			uint64_t tasks = (uint64_t)(k < 2 ? k + 1 : k - 1);
			assert_true(c->accepted == tasks && c->attempts == tasks && !c->already &&
				!c->failures && !b.owner.refused);
		}
		end(&b);
	}
}

static void read_event(struct bench *b, struct hd_fn_event *event)
{
	struct hd_arena arena;

	hd_arena_init(&arena, 1 << 20);
	assert_int_equal(hd_fn_event_read(b->event, b->event_len, &arena, event, NULL), HD_OK);
	hd_arena_finish(&arena);
}

/* The answer to a HELLO with this proof, on the connection of a worker that rests. */
static int greet_by(struct bench *b, struct hd_fn_worker *worker, const struct hd_fn_ticket *ticket,
	const struct hd_sha256 *proof)
{
	const struct hd_fn_hello hello = { .task = ticket->task, .attempt = ticket->attempt,
		.token = *proof };
	uint8_t head[HD_FN_FRAME];
	char bytes[HD_FN_HELLO_BYTES];
	struct hd_fn_frame frame;
	struct hd_text text;
	uint32_t here;

	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_hello_put(&hello, &text);
	hd_fn_frame_put(HD_FN_HELLO, text.at, text.len, head);
	assert_int_equal(hd_fn_link_send(&worker->link, head, sizeof head, INT64_MAX, NULL), HD_OK);
	assert_int_equal(hd_fn_link_send(&worker->link, text.at, text.len, INT64_MAX, NULL), HD_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(hd_fn_owner_turn(&b->owner, 0, false, &here, NULL), HD_OK);
	assert_int_equal(hd_fn_link_recv(&worker->link, head, sizeof head, INT64_MAX, NULL), HD_OK);
	assert_int_equal(hd_fn_frame_get(head, &frame, NULL), HD_OK);
	return (int)frame.type;
}

/* On a connection that rests, over TLS, the token itself is no proof of it, nor is a proof that was made for
 * another connection, nor one by the token of the task before: a process that stands between two
 * connections gets nothing. */
static void a_proof_is_of_its_connection_and_its_task(void **state)
{
	static struct bench b;
	static struct hd_fn_worker other;

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct hd_fn_event event[2];
		struct hd_sha256 proof;
		uint32_t here;
		begin(&b, true);
		do_task(&b);
		assert_int_equal(hd_fn_worker_init(&other, &b.clock, NULL), HD_OK);
		b.by = &other;
		do_task(&b);
		assert_int_equal(b.owner.connections, 2);
		read_event(&b, &event[0]);
		assert_int_equal(hd_fn_owner_submit(&b.owner, &b.job, 1, NULL), HD_OK);
		assert_int_equal(hd_fn_owner_turn(&b.owner, 0, false, &here, NULL), HD_OK);
		read_event(&b, &event[1]);
		assert_int_equal(hd_fn_proof_again(&(k == 1 ? &other : &b.worker)->link.tls, true,
			&event[k != 2].token, &proof, NULL), HD_OK);
		assert_int_equal(greet_by(&b, &b.worker, &event[1].ticket, k ? &proof : &event[1].token),
			k == 3 ? HD_FN_WORK : HD_FN_REPLY);
		assert_int_equal(b.owner.refused, k != 3);
		hd_fn_worker_finish(&other);
		end(&b);
	}
}

/* More inputs than are kept; then one of those that are, with others in place of all the rest. */
static void an_input_that_the_task_uses_is_not_dropped(void **state)
{
	static struct bench b;

	(void)state;
	begin(&b, false);
	for (int i = 0; i < INPUTS; i++)
		for (int k = 0; k < WIDTH; k++)
			b.in[i][k] = (float)(100 * i + k + 1);
	do_task(&b);
	assert_int_equal(b.worker.nkept, HD_FN_HAVE);
	for (int i = 1; i < INPUTS; i++)
		for (int k = 0; k < WIDTH; k++)
			b.in[i][k] = (float)(1000 * i + k + 7);
	do_task(&b);
	assert_int_equal(b.worker.nkept, HD_FN_HAVE);
	assert_true(hd_hash_same(b.worker.kept[0].digest, b.work.tensor[0].digest));
	assert_int_equal(b.worker.kept_bytes, HD_FN_HAVE * sizeof b.in[0]);
	do_task(&b);
	end(&b);
}

/* Kernels of another version say so before any input comes, and each time; with those of the owner it goes
 * on. */
static void other_kernels_are_met_before_any_input(void **state)
{
	static struct bench b;
	struct hd_hash proof;

	(void)state;
	begin(&b, false);
	assert_int_equal(hd_dense_proof(&b.work, &b.clock, INT64_MAX, &proof, NULL), HD_OK);
	assert_false(hd_fn_no_digest(proof));
	for (int k = 0; k < 4; k++) {
		b.work.proof = proof;
		b.work.proof.byte[5] ^= k < 2;
		run_task(&b);
		CHECK(b.answer.error == (k < 2 ? HD_FN_ERROR_KERNEL_SET : HD_FN_ERROR_NONE), "%d: %s", k,
			b.answer.message);
		CHECK(k >= 2 || strstr(b.answer.message, "kernels portable have other bits"), "%s",
			b.answer.message);
		assert_int_equal(b.worker.nkept, k < 2 ? 0 : HD_FN_HAVE);
	}
	assert_true(hd_hash_same(b.worker.dense[0].proof, proof));
	end(&b);
}

static struct hd_hash proof_of(const char *kernels, uint64_t rows, const char *text)
{
	struct hd_fn_work *w = calloc(1, sizeof *w);
	struct hd_hash proof;
	struct hd_clock clock;

	assert_non_null(w);
	hd_clock_real(&clock);
	*w = (struct hd_fn_work){ .rows = rows, .text = text, .text_len = strlen(text) };
	snprintf(w->kernels, sizeof w->kernels, "%s", kernels);
	assert_int_equal(hd_dense_proof(w, &clock, INT64_MAX, &proof, NULL), HD_OK);
	free(w);
	return proof;
}

/* A graph of 10^9 rows is asked as one of few, which any machine has memory for. */
static void a_proof_is_of_few_rows_and_of_no_kernels_name(void **state)
{
	static const char text[] = "graph t\ninput x f32 [*,33]\ninput w f32 [33,17]\n%0 = matmul x w\n"
		"%1 = act %0 act=tanh\n%2 = matmul x %1 ta=1\noutput y %1\noutput dw %2\n",
		other[] = "graph t\ninput x f32 [*,33]\ninput w f32 [33,17]\n%0 = matmul x w\n"
		"%1 = act %0 act=sigmoid\n%2 = matmul x %1 ta=1\noutput y %1\noutput dw %2\n";
	const struct hd_hash few = proof_of("portable", 1, text);

	(void)state;
	assert_true(hd_hash_same(proof_of("portable", 1000000000, text), few));
	assert_false(hd_hash_same(proof_of("portable", 1, other), few));
	if (!hd_dense_has_kernels("avx2", NULL))
		assert_true(hd_hash_same(proof_of("avx2", 64, text), few));
}

/* 900 s pass between the first look and all others. */
struct leap { struct hd_clock clock; bool looked; };

static int64_t leap_now(struct hd_clock *clock)
{
	struct leap *leap = (struct leap *)clock;
	bool looked = leap->looked;

	leap->looked = true;
	return looked ? 1000 * HD_NS_PER_S : 100 * HD_NS_PER_S;
}

static int64_t leap_wall(struct hd_clock *clock) { (void)clock; return 0; }
static void leap_wait(struct hd_clock *clock, int64_t at_ns) { (void)clock, (void)at_ns; }

/* An owner that says nothing holds a worker no longer than a function may run, whatever its event says. */
static void a_deadline_of_ages_is_one_of_minutes(void **state)
{
	static const char far[] = "{\"v\":1,\"task\":\"00000000000000000000000000000000\",\"attempt\":1,"
		"\"host\":\"127.0.0.1\",\"port\":%u,\"token\":\"%064d\",\"deadline_ms\":1125899906842624,"
		"\"kernel_set\":\"portable\",\"tls\":false}";
	struct hd_sock listener = { 0 };
	struct hd_fn_worker worker;
	struct hd_fn_answer answer;
	char event[HD_FN_EVENT_BYTES];
	static const struct hd_clock_ops ops = { "leap", leap_now, leap_wall, leap_wait };
	struct leap leap = { .clock = { &ops } };
	struct hd_net net;
	unsigned port = 0;

	(void)state;
	hd_net_real(&net);
	assert_int_equal(hd_sock_listen(&net, "tcp:127.0.0.1:0", &listener, NULL), HD_OK);
	assert_int_equal(sscanf(strrchr(listener.addr, ':'), ":%u", &port), 1);
	assert_int_equal(hd_fn_worker_init(&worker, &leap.clock, NULL), HD_OK);
	int len = snprintf(event, sizeof event, far, port, 0);
	alarm(60);
	hd_fn_worker_do(&worker, event, (size_t)len, "", INT64_MAX, &answer);
	alarm(0);
	CHECK(answer.error == HD_FN_ERROR_DEADLINE, "%s", answer.message);
	hd_fn_worker_finish(&worker);
	hd_sock_close(&listener);
}

/* 100 s pass with each look. */
struct hours { struct hd_clock clock; int64_t now_ns; };
static int64_t hours_now(struct hd_clock *clock)
{
	return ((struct hours *)clock)->now_ns += 100 * HD_NS_PER_S;
}

/* A runtime API: gives out one event, takes in the answer, and is gone. */
struct api { struct hd_sock listener; struct hd_net net; bool took; };

static void *serve_one(void *self)
{
	static const char next[] = "HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: a\r\n"
		"Lambda-Runtime-Deadline-Ms: 1\r\nContent-Length: 2\r\n\r\n{}";
	struct api *api = self;
	struct hd_sock sock = { 0 };
	char bytes[4096] = "";
	size_t n = 0, got;

	while (hd_sock_accept(&api->listener, &sock, NULL))
		sched_yield();
	while (hd_sock_read(&sock, bytes, sizeof bytes, &got, NULL))
		sched_yield();
	assert_int_equal(hd_sock_write(&sock, next, sizeof next - 1, &got, NULL), HD_OK);
	while (!strstr(bytes, "response")) {
		enum hd_err err = hd_sock_read(&sock, bytes, sizeof bytes - 1, &n, NULL);
		if (!err && !n)
			break;
		bytes[err ? 0 : n] = '\0';
		sched_yield();
	}
	api->took = n > 0;
	hd_sock_close(&sock);
	return NULL;
}

/* The trainer that a local pool belongs to may compute for minutes before it takes an answer in. */
static void a_worker_of_a_pool_waits_for_its_trainer(void **state)
{
	static const struct hd_clock_ops ops = { "hours", hours_now, leap_wall, leap_wait };
	struct hours hours = { .clock = { &ops } };
	char dir[] = "/tmp/heddle-pool-XXXXXX", listen[64];
	struct hd_diag diag = { "" };
	struct api api = { .took = false };
	pthread_t thread;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(listen, sizeof listen, "unix:%s/f", dir);
	hd_net_real(&api.net);
	assert_int_equal(hd_sock_listen(&api.net, listen, &api.listener, NULL), HD_OK);
	assert_int_equal(pthread_create(&thread, NULL, serve_one, &api), 0);
	alarm(60);
	enum hd_err err = hd_fn_serve_runtime(listen, &hours.clock, &diag);
	alarm(0);
	pthread_join(thread, NULL);
	CHECK(err == HD_E_PEERLOST && api.took, "%d: %s", err, diag.text);
	hd_sock_close(&api.listener);
	assert_int_equal(rmdir(dir), 0);
}

/* A request to stop that came before the wait ends it, though nothing wakes the poll. */
static void a_request_to_stop_ends_a_wait_that_is_not_begun(void **state)
{
	struct hd_sock listener = { 0 };
	struct hd_fn_link link;
	struct hd_clock clock;
	struct hd_net net;
	uint8_t byte;
	size_t got;

	(void)state;
	hd_clock_real(&clock);
	hd_net_real(&net);
	assert_int_equal(hd_sock_listen(&net, "tcp:127.0.0.1:0", &listener, NULL), HD_OK);
	assert_int_equal(hd_fn_link_open(&link, &clock, listener.addr, NULL, NULL, INT64_MAX, NULL), HD_OK);
	hd_signal_stop_set(HD_STOP_PREEMPT);
	link.stops = true;
	alarm(60);
	assert_int_equal(hd_fn_link_some(&link, &byte, 1, &got, INT64_MAX, NULL), HD_E_INTERRUPT);
	alarm(0);
	hd_signal_stop_set(HD_STOP_NONE);
	hd_fn_link_close(&link);
	hd_sock_close(&listener);
}

/* Whichever piece of memory is not there: what was opened half closes. */
static void no_memory_is_an_error_and_no_crash(void **state)
{
	static const char *const argv[] = { "none", NULL };
	const struct hd_fn_instances_spec spec = { .argv = argv, .slots = 1, .memory_mb = 128 };
	struct hd_clock clock;
	struct hd_loop loop;

	(void)state;
	hd_clock_real(&clock);
	assert_int_equal(hd_loop_init(&loop, &clock, NULL), HD_OK);
	for (uint64_t n = 1; n <= 2; n++) {
		struct hd_fn_instances all = { .nended = 0 };
		struct hd_fn_lambda lambda = { .function = "f" };
		hd_alloc_arm(n);
		assert_int_equal(hd_fn_instances_open(&all, &spec, &loop, NULL), HD_E_NOMEM);
		hd_alloc_arm(n);
		assert_int_equal(hd_fn_lambda_open(&lambda, "http://127.0.0.1:1", 1, &loop, NULL),
			HD_E_NOMEM);
		hd_alloc_arm(0);
		hd_fn_instances_close(&all);
		hd_fn_lambda_close(&lambda);
	}
	hd_loop_finish(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_serves_tasks_until_it_ended),
		cmocka_unit_test(a_proof_is_of_its_connection_and_its_task),
		cmocka_unit_test(an_input_that_the_task_uses_is_not_dropped),
		cmocka_unit_test(other_kernels_are_met_before_any_input),
		cmocka_unit_test(a_proof_is_of_few_rows_and_of_no_kernels_name),
		cmocka_unit_test(a_deadline_of_ages_is_one_of_minutes),
		cmocka_unit_test(a_worker_of_a_pool_waits_for_its_trainer),
		cmocka_unit_test(a_request_to_stop_ends_a_wait_that_is_not_begun),
		cmocka_unit_test(no_memory_is_an_error_and_no_crash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
