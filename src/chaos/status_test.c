#include "chaos/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tests/check.h"

static const char *const members[] = { "\"pid\":41", "\"step\":7", "\"membership\":3", "\"term\":2",
	"\"members\":4", "\"target\":5", "\"loss\":0.5", "\"step_ms\":12.5",
	("\"workers\":[{\"id\":0,\"pid\":50,\"state\":\"member\",\"virtual_nodes\":6},"
	"{\"id\":3,\"pid\":0,\"state\":\"standby\",\"virtual_nodes\":0}]") };
enum { MEMBERS = sizeof members / sizeof *members };

/* Without member `left_out`, with `more`. */
static enum hd_err read(struct hd_arena *arena, size_t left_out, const char *more, struct hd_status *status)
{
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "{\"name\":\"x\"%s", more);
	for (size_t i = 0; i < MEMBERS; i++)
		if (i != left_out)
			hd_text_addf(&text, ",%s", members[i]);
	hd_text_add(&text, "}");
	CHECK(hd_json_parse(arena, "answer", text.at, text.len, &json, &diag) == HD_OK, "%s", diag.text);
	return hd_status_read(json, status, &diag);
}

static void an_answer_is_read(void **state)
{
	struct hd_status s = { .step = 99 };
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	assert_int_equal(read(&arena, MEMBERS, "", &s), HD_OK);
	assert_true(s.coordinator == 41 && s.step == 7 && s.epoch == 3 && s.term == 2);
	assert_true(s.members == 4 && s.target == 5 && s.loss == 0.5 && s.step_ms == 12.5);
	assert_int_equal(s.nworkers, 2);
	assert_true(s.worker[0].id == 0 && s.worker[0].pid == 50 && s.worker[0].virtual_nodes == 6 &&
		s.worker[0].member);
	assert_true(s.worker[1].id == 3 && s.worker[1].pid == 0 && s.worker[1].virtual_nodes == 0 &&
		!s.worker[1].member);
	hd_arena_finish(&arena);
}

static void an_answer_that_lacks_a_member_changes_nothing(void **state)
{
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < MEMBERS; i++) {
		struct hd_status s = { .step = 99, .nworkers = 1 };
		CHECK(read(&arena, i, "", &s) != HD_OK, "%s", members[i]);
		assert_true(s.step == 99 && s.nworkers == 1 && s.coordinator == 0);
	}
	hd_arena_finish(&arena);
}

static void workers_beyond_the_room_are_not_read(void **state)
{
	struct hd_status s;
	struct hd_arena arena;
	struct hd_text more;
	(void)state;

	hd_arena_init(&arena, 0);
	hd_text_init(&more, &arena);
	hd_text_add(&more, ",\"workers\":[");
	for (int i = 0; i < HD_STATUS_WORKERS + 2; i++)
		hd_text_addf(&more, "%s{\"id\":%d,\"pid\":%d,\"state\":\"member\",\"virtual_nodes\":1}",
			i ? "," : "", i, i + 1);
	hd_text_add(&more, "]");
	assert_int_equal(read(&arena, MEMBERS - 1, more.at, &s), HD_OK);
	assert_int_equal(s.nworkers, HD_STATUS_WORKERS);
	assert_int_equal(s.worker[HD_STATUS_WORKERS - 1].id, HD_STATUS_WORKERS - 1);
	hd_arena_finish(&arena);
}

/* One of five members computes nothing, one was lost and has no row, two have not joined: what is counted is
 * what is listed. */
static void members_and_their_virtual_nodes_come_from_one_list(void **state)
{
	const struct hd_status s = { .members = 5, .nworkers = 6,
		.worker = { { .virtual_nodes = 4, .member = true }, { .virtual_nodes = 12, .member = true },
		{ .id = 9 }, { .member = true }, { .id = 10 }, { .virtual_nodes = 1, .member = true } } };
	char text[32];
	(void)state;

	assert_int_equal(hd_status_split(&s, text, sizeof text), 4);
	assert_string_equal(text, "4/12/0/1");
	assert_int_equal(hd_status_split(&s, text, 4), 4);        /* no room for "4/12" and the rest */
	assert_string_equal(text, "4");
	assert_int_equal(hd_status_split(&(struct hd_status){ .members = 5 }, text, sizeof text), 0);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_read),
		cmocka_unit_test(an_answer_that_lacks_a_member_changes_nothing),
		cmocka_unit_test(workers_beyond_the_room_are_not_read),
		cmocka_unit_test(members_and_their_virtual_nodes_come_from_one_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
