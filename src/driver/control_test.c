#include "driver/control.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/thread.h"
#include "tests/check.h"

static struct hd_clock clock_;
static struct hd_net net;
static struct hd_loop loop;
static struct hd_control control;
static char addr[HD_ADDR_CAP];
static int asked;

static enum hd_err reply(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	int64_t n = 0;

	(void)self;
	asked++;
	if (strcmp(what, "scale") != 0)
		return hd_fail(diag, HD_E_INVAL, "a run does not %s", what);
	enum hd_err err = hd_json_get_i64(ask, "workers", 1, 64, &n, diag);
	hd_json_put_i64(w, "target", n);
	hd_json_open_array(w, "ids");
	hd_json_put_i64(w, NULL, 1);
	return err;
}

static int open_all(void **state)
{
	(void)state;
	hd_clock_real(&clock_);
	hd_net_real(&net);
	snprintf(addr, sizeof addr, "unix:/tmp/hd_control_test.%d", (int)getpid());
	control = (struct hd_control){ .answer = reply, .tag = 100 };
	asked = 0;
	return hd_loop_init(&loop, &clock_, NULL) || hd_control_open(&control, addr, &loop, &net, NULL);
}

static int close_all(void **state)
{
	(void)state;
	hd_control_close(&control);
	hd_loop_finish(&loop);
	return 0;
}

struct control_question { const char *ask; struct hd_arena arena; const struct hd_json *answer;
	struct hd_diag diag;
	enum hd_err err; atomic_bool done; };

static void put_question(void *user)
{
	struct control_question *q = user;

	q->err = hd_control_ask(addr, q->ask, INT64_C(3000000000), &q->arena, &q->answer, &q->diag);
	atomic_store(&q->done, true);
}

static void turn(int64_t for_ns)
{
	struct hd_loop_event event[8];
	size_t n;

	assert_int_equal(hd_loop_poll(&loop, hd_clock_now_ns(&clock_) + for_ns, event, 8, &n, NULL), HD_OK);
	for (size_t i = 0; i < n; i++)
		if (event[i].tag >= control.tag && event[i].tag < control.tag + HD_CONTROL_TAGS)
			hd_control_event(&control, &event[i]);
}

static void ask(struct control_question *q, const char *text)
{
	struct hd_thread thread = { 0 };

	*q = (struct control_question){ .ask = text };
	hd_arena_init(&q->arena, 0);
	assert_int_equal(hd_thread_start(&thread, "ask", -1, put_question, q, NULL), HD_OK);
	for (int i = 0; i < 1000 && !atomic_load(&q->done); i++)
		turn(10000000);
	hd_thread_join(&thread);
}

static void a_request_is_answered_with_what_it_asked_for(void **state)
{
	struct control_question q;
	int64_t n = 0;

	(void)state;
	for (int64_t i = 1; i < 40; i++) {        /* more than there are places: each is given back */
		char text[64];
		snprintf(text, sizeof text, "{\"do\":\"scale\",\"workers\":%d}", (int)i);
		ask(&q, text);
		assert_int_equal(q.err, HD_OK);
		assert_int_equal(hd_json_get_i64(q.answer, "target", 0, 99, &n, NULL), HD_OK);
		assert_int_equal(n, i);
		hd_arena_finish(&q.arena);
	}
}

static void a_refusal_arrives_with_its_code_and_sentence(void **state)
{
	static const struct { const char *ask; enum hd_err err; const char *says; } row[] = {
		{ "{\"do\":\"dance\"}", HD_E_INVAL, "does not dance" },
		{ "{\"do\":\"scale\",\"workers\":65}", HD_E_INPUT, "workers" },
		{ "{\"do\":7}", HD_E_INPUT, "do" },
		{ "{}", HD_E_INPUT, "do" },
		{ "nonsense", HD_E_INPUT, "request" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct control_question q;
		ask(&q, row[i].ask);
		assert_int_equal(q.err, row[i].err);
		assert_non_null(strstr(q.diag.text, row[i].says));
		hd_arena_finish(&q.arena);
	}
}

static void who_says_nothing_or_too_much_is_closed(void **state)
{
	struct hd_sock idle = { 0 }, loud = { 0 };
	char byte, flood[1024];
	size_t n;

	(void)state;
	memset(flood, 'x', sizeof flood);
	assert_int_equal(hd_sock_connect(&net, addr, &idle, NULL), HD_OK);
	assert_int_equal(hd_sock_connect(&net, addr, &loud, NULL), HD_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(hd_sock_write(&loud, flood, sizeof flood, &n, NULL), HD_OK);
	for (int i = 0; i < 5; i++)
		turn(1000000);
	enum hd_err err = hd_sock_read(&loud, &byte, 1, &n, NULL);
	assert_true(err == HD_E_PEERLOST || (err == HD_OK && n == 0));
	assert_int_equal(hd_sock_read(&idle, &byte, 1, &n, NULL), HD_E_AGAIN);
	hd_control_tick(&control, hd_clock_now_ns(&clock_) + HD_CONTROL_WAIT_NS + 1);
	err = hd_sock_read(&idle, &byte, 1, &n, NULL);
	assert_true(err == HD_E_PEERLOST || (err == HD_OK && n == 0));
	assert_int_equal(asked, 0);
	hd_sock_close(&idle);
	hd_sock_close(&loud);
}

/* In the place of a coordinator: never a whole line, and always more of it. */
struct flood { struct hd_sock listener; atomic_bool done; };

static void send_without_end(void *user)
{
	struct flood *f = user;
	struct hd_sock to = { 0 };
	char bytes[4096];
	size_t n;

	memset(bytes, 'x', sizeof bytes);
	while (!to.net && !atomic_load(&f->done))
		(void)!hd_sock_accept(&f->listener, &to, NULL);
	for (uint64_t sent = 0; !atomic_load(&f->done) && sent < UINT64_C(64) << 20; sent += n) {
		n = 0;
		enum hd_err err = hd_sock_write(&to, bytes, sizeof bytes, &n, NULL);
		if (err && err != HD_E_AGAIN)
			break;
	}
	hd_sock_close(&to);
}

static void an_answer_without_end_is_not_taken(void **state)
{
	struct control_question q = { .ask = "{}" };
	struct flood flood = { .listener.net = NULL };
	struct hd_thread thread = { 0 };

	(void)state;
	hd_control_close(&control);
	assert_int_equal(hd_sock_listen(&net, addr, &flood.listener, NULL), HD_OK);
	assert_int_equal(hd_thread_start(&thread, "flood", -1, send_without_end, &flood, NULL), HD_OK);
	hd_arena_init(&q.arena, 8 << 20);
	put_question(&q);
	atomic_store(&flood.done, true);
	hd_thread_join(&thread);
	assert_int_equal(q.err, HD_E_PROTOCOL);
	assert_non_null(strstr(q.diag.text, "it is no coordinator"));
	hd_arena_finish(&q.arena);
	hd_sock_close(&flood.listener);
}

static void nobody_there_is_said_so(void **state)
{
	const struct hd_json *answer;
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	hd_control_close(&control);
	assert_int_equal(hd_control_ask(addr, "{}", 1000000000, &arena, &answer, &diag), HD_E_NOTFOUND);
	assert_non_null(strstr(diag.text, "no coordinator answers"));
	hd_arena_finish(&arena);
}

static void a_path_too_long_for_a_socket_has_another_place(void **state)
{
	char out[HD_ADDR_CAP], folder[300] = "/tmp/";

	(void)state;
	assert_int_equal(hd_control_path("runs/tiny", "run.sock", out, NULL), HD_OK);
	assert_string_equal(out, "unix:runs/tiny/run.sock");
	memset(folder + 5, 'a', 200);
	struct hd_fs fs;
	hd_fs_real(&fs);
	assert_int_equal(hd_fs_mkdirs(&fs, folder, NULL), HD_OK);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(hd_control_path(folder, "run.sock", out, NULL), HD_E_REFUSED);
	setenv("XDG_RUNTIME_DIR", "/tmp", 1);
	assert_int_equal(hd_control_path(folder, "run.sock", out, NULL), HD_OK);
	assert_true(strlen(out) < 108 && !strncmp(out, "unix:/tmp/heddle/", 17));
	assert_int_equal(hd_fs_rmdir(&fs, folder, NULL), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_request_is_answered_with_what_it_asked_for, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_refusal_arrives_with_its_code_and_sentence, open_all,
		close_all),
		cmocka_unit_test_setup_teardown(who_says_nothing_or_too_much_is_closed, open_all, close_all),
		cmocka_unit_test_setup_teardown(an_answer_without_end_is_not_taken, open_all, close_all),
		cmocka_unit_test_setup_teardown(nobody_there_is_said_so, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_path_too_long_for_a_socket_has_another_place, open_all,
		close_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
