#include "functions/event.h"

#include <stdio.h>
#include <string.h>

#include "tests/check.h"

static struct hd_fn_event event(void)
{
	struct hd_fn_event e = { .ticket = { .attempt = 2, .deadline_ms = 1700000000123 }, .host = "10.0.0.7",
		.port = 4000, .tls = true, .kernels = "avx2" };

	e.ticket.task = hd_hash("task", 4);
	assert_int_equal(hd_fn_token("key", 3, &e.ticket, &e.token, NULL), HD_OK);
	return e;
}

static enum hd_err read_text(const char *text, struct hd_fn_event *e, struct hd_diag *diag)
{
	struct hd_arena arena;

	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_fn_event_read(text, strlen(text), &arena, e, diag);
	hd_arena_finish(&arena);
	return err;
}

static void an_event_reads_back_and_is_short(void **state)
{
	static const char *const hosts[] = { "10.0.0.7", "::1", "unix:/tmp/a/owner" };
	char bytes[2048];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct hd_fn_event e = event(), back = { .port = 1 };
		struct hd_text text;
		snprintf(e.host, sizeof e.host, "%s", hosts[i]);
		e.port = i == 2 ? 0 : 4000;
		e.tls = i != 2;
		hd_text_fixed(&text, bytes, sizeof bytes);
		hd_fn_event_write(&e, &text);
		assert_true(text.len < HD_FN_EVENT_BYTES);
		assert_int_equal(read_text(text.at, &back, NULL), HD_OK);
		assert_true(hd_hash_same(back.ticket.task, e.ticket.task));
		assert_int_equal(back.ticket.attempt, 2);
		assert_int_equal(back.ticket.deadline_ms, e.ticket.deadline_ms);
		assert_string_equal(back.host, e.host);
		assert_string_equal(back.kernels, "avx2");
		assert_int_equal(back.port, e.port);
		assert_int_equal(back.tls, e.tls);
		assert_true(hd_sha256_same(&back.token, &e.token));
	}
}

static void other_events_are_refused(void **state)
{
	static const struct { const char *was, *is; } edits[] = {
		{ "\"v\":1", "\"v\":2" }, { "\"attempt\":2", "\"attempt\":0" }, { "\"10.0.0.7\"", "\"a.example\"" },
		{ "\"port\":4000", "\"port\":0" }, { "\"10.0.0.7\"", "\"unix:/a\"" }, { "\"10.0.0.7\"", "\"unix:a\"" },
		{ "\"port\":4000", "\"port\":65536" }, { "\"kernel_set\":\"avx2\"", "\"kernel_set\":\"\"" },
		{ "\"kernel_set\":\"avx2\"", "\"kernel_set\":\"avx 2\"" }, { "\"v\":1", "\"v\":1,\"x\":1" },
		{ "\"task\":\"", "\"task\":\"g" }, { "\"token\":\"", "\"token\":\"0" },
		{ "\"deadline_ms\":1", "\"deadline_ms\":-1" }, { ",\"kernel_set\":\"avx2\"", "" }, { "}", "} {}" },
	};
	struct hd_fn_event e = event(), back;
	char bytes[1024], other[1200];
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_event_write(&e, &text);
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		struct hd_diag diag = { "" };
		const char *at = strstr(text.at, edits[i].was);
		assert_non_null(at);
		snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text.at), text.at, edits[i].is,
			at + strlen(edits[i].was));
		CHECK(read_text(other, &back, &diag) == HD_E_INPUT && diag.text[0], "%s", other);
	}
	memset(other, ' ', HD_FN_EVENT_BYTES);
	other[HD_FN_EVENT_BYTES] = '\0';
	assert_int_equal(read_text(other, &back, NULL), HD_E_INPUT);
}

static void a_token_is_of_one_task_attempt_and_deadline(void **state)
{
	struct hd_fn_event e = event();
	struct hd_fn_ticket other[3] = { e.ticket, e.ticket, e.ticket };
	struct hd_sha256 token;

	(void)state;
	other[0].task.byte[15] ^= 1;
	other[1].attempt ^= 1;
	other[2].deadline_ms ^= 1;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_fn_token("key", 3, &other[i], &token, NULL), HD_OK);
		assert_false(hd_sha256_proves(&token, &e.token));
	}
	assert_int_equal(hd_fn_token("kez", 3, &e.ticket, &token, NULL), HD_OK);
	assert_false(hd_sha256_proves(&token, &e.token));
	/* by Python: hmac.new(b"key", b"heddle function 1\0" + bytes(16) + pack("<IQ", 1, 1000), sha256) */
	const struct hd_fn_ticket zero = { .attempt = 1, .deadline_ms = 1000 };
	char hex[HD_SHA256_HEX];
	assert_int_equal(hd_fn_token("key", 3, &zero, &token, NULL), HD_OK);
	hd_sha256_hex(&token, hex);
	assert_string_equal(hex, "bff521e9b4f156622ae94352e8cf52acfaba25cfcc9993a47e28f1f917dd0d7a");
}

static enum hd_err read_answer(const char *text, struct hd_fn_answer *a)
{
	struct hd_arena arena;

	hd_arena_init(&arena, 1 << 20);
	enum hd_err err = hd_fn_answer_read(text, strlen(text), &arena, a, NULL);
	hd_arena_finish(&arena);
	return err;
}

static void answers_read_back(void **state)
{
	struct hd_fn_answer a = { .reply = HD_FN_ALREADY, .busy_ms = 1.5 }, back;
	char bytes[1024];
	struct hd_text text;

	(void)state;
	hd_text_fixed(&text, bytes, sizeof bytes);
	hd_fn_answer_write(&a, &text);
	assert_string_equal(text.at, "{\"ok\":true,\"busy_ms\":1.5,\"reply\":\"already\"}");
	assert_int_equal(read_answer(text.at, &back), HD_OK);
	assert_int_equal(back.error, HD_FN_ERROR_NONE);
	assert_int_equal(back.reply, HD_FN_ALREADY);
	for (int e = HD_FN_ERROR_NONE + 1; e < HD_FN_NERRORS; e++) {
		a = (struct hd_fn_answer){ .error = (enum hd_fn_error)e, .message = "why" };
		hd_text_fixed(&text, bytes, sizeof bytes);
		hd_fn_answer_write(&a, &text);
		assert_int_equal(read_answer(text.at, &back), HD_OK);
		assert_int_equal(back.error, e);
		assert_string_equal(back.message, "why");
	}
	static const char *const bad[] = { "{}", "[]", "{\"ok\":true}", "{\"ok\":false}", "{\"ok\":1}", "",
		"{\"ok\":true,\"busy_ms\":-1,\"reply\":\"stale\"}",
			"{\"ok\":true,\"busy_ms\":1,\"reply\":\"x\"}",
		"{\"ok\":false,\"error\":\"none\"}" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(read_answer(bad[i], &back) == HD_E_INPUT, "%s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_reads_back_and_is_short),
		cmocka_unit_test(other_events_are_refused),
		cmocka_unit_test(a_token_is_of_one_task_attempt_and_deadline),
		cmocka_unit_test(answers_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
