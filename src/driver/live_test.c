#include "driver/live.h"

#include <math.h>
#include <string.h>

#include "tests/fields_check.h"

static struct hd_live running(void)
{
	return (struct hd_live){ .coordinator = 55, .name = "tiny", .state = "running",
		.why = "membership is changing", .plan_why = "2 workers\njoined \"x\"", .autoscale = "curve",
		.autoscale_why = "one more pays", .step = 12, .steps = 40, .epoch = 3, .term = 2, .plan = 4,
		.members = 2, .virtual_nodes = 16, .unrecorded = 5, .copies = 1, .given_up = 6,
		.redundancy = "lazy", .resilience = "by-notice, on", .saving = "auto, 9 s apart",
		.best = "val_loss 0.5 at step 9", .single = 2,
		.functions = "3 tasks", .functions_nano_usd = 21,
		.paid = { 36, 9, { 1, 2, 3, 4, 5, 6, 7, 8 } }, .asked = 7,
		.target = 8, .goes_on = true, .exit = -1, .loss = 1.25, .step_ms = 31.2, .wait_ms = 2.5,
		.detect_ms = 400, .predicted_ms = 28.125, .listen = "10.0.0.1:9", .nworkers = 2,
		.worker = {
			{ .id = 0, .worker = 0, .pid = 101, .devices = 1, .virtual_nodes = 9, .stages = 2, .redone = 3,
			  .follows = "",
			  .state = "member", .notice = "", .zone = "eu-1a",
			  .address = "/tmp/a", .step_ms = 30.5,
			  .wait_ms = 1.5,
			  .compute_ms = 29, .vn_ms = 3.25, .speed = 1.125 },
			{ .id = 1000001, .worker = 1000001, .remote = true, .devices = 2, .virtual_nodes = 7,
			  .state = "standby", .follows = "stage 1",
			  .notice = "ec2: stop", .zone = "", .address = "10.0.0.1:7",
			  .step_ms = 0.1 } } };
}

/* Both were written by `heddle status --json` when it named each member itself. */
static const char golden_running[] =
	"{\"name\":\"tiny\",\"state\":\"running\",\"why\":\"membership is changing\",\"exit\":null,"
	"\"step\":12,\"steps\":40,\"loss\":1.25,\"step_ms\":31.2,\"wait_ms\":2.5,\"membership\":3,\"term\":2,"
	"\"plan\":4,\"members\":2,\"target\":8,\"asked\":7,\"virtual_nodes\":16,\"autoscale\":\"curve\","
	"\"autoscale_why\":\"one more pays\",\"plan_why\":\"2 workers\\njoined \\\"x\\\"\","
	"\"predicted_ms\":28.125,\"unrecorded\":5,\"copies\":1,"
	"\"redundancy\":\"lazy\",\"resilience\":\"by-notice, on\","
	"\"saving\":\"auto, 9 s apart\",\"best\":\"val_loss 0.5 at step 9\","
	"\"functions\":\"3 tasks\",\"functions_nano_usd\":21,\"single\":2,\"given_up\":6,"
	"\"paid_ms\":36,\"useful_ms\":1,\"redundant_ms\":2,\"bubble_ms\":3,"
	"\"pause_ms\":4,\"redo_ms\":5,\"rebuild_ms\":6,\"waiting_ms\":7,\"boot_ms\":8,\"paid_nano_usd\":9,"
	"\"workers\":[{\"id\":0,"
	"\"worker\":0,\"state\":\"member\",\"pid\":101,\"devices\":1,\"virtual_nodes\":9,\"stages\":2,"
	"\"follows\":\"\",\"step_ms\":30.5,"
	"\"wait_ms\":1.5,\"compute_ms\":29,\"vn_ms\":3.25,\"speed\":1.125,\"redone_vn\":3,"
	"\"notice\":\"\",\"zone\":\"eu-1a\",\"address\":\"/tmp/a\"},"
	"{\"id\":1000001,\"worker\":1000001,\"state\":\"standby\",\"pid\":0,"
	"\"devices\":2,\"virtual_nodes\":7,\"stages\":0,"
	"\"follows\":\"stage 1\",\"step_ms\":0.1,\"wait_ms\":0,\"compute_ms\":0,\"vn_ms\":0,"
	"\"speed\":0,\"redone_vn\":0,\"notice\":\"ec2: stop\",\"zone\":\"\",\"address\":\"10.0.0.1:7\"}]}";
static const char golden_failed[] =
	"{\"name\":\"a\\u003cb\",\"state\":\"failed\",\"why\":\"\",\"exit\":4,\"pid\":77,\"step\":3,"
	"\"steps\":0,\"loss\":\"nan\",\"step_ms\":0,\"wait_ms\":0,\"membership\":0,\"term\":0,\"plan\":0,"
	"\"members\":0,\"target\":0,\"asked\":0,\"virtual_nodes\":0,\"autoscale\":\"off\","
	"\"autoscale_why\":\"\",\"plan_why\":\"\",\"predicted_ms\":0,\"unrecorded\":0,"
	"\"copies\":0,\"redundancy\":\"none\",\"resilience\":\"given\",\"saving\":\"60 s\","
	"\"best\":\"none\",\"functions\":\"none\",\"functions_nano_usd\":0,\"single\":0,"
	"\"given_up\":0,\"paid_ms\":0,\"useful_ms\":0,\"redundant_ms\":0,\"bubble_ms\":0,"
	"\"pause_ms\":0,\"redo_ms\":0,\"rebuild_ms\":0,\"waiting_ms\":0,\"boot_ms\":0,\"paid_nano_usd\":0,"
	"\"workers\":[]}";

static struct hd_arena arena;

static const char *written(const struct hd_live *live, unsigned where)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_live_put(live, where, &w);
	hd_json_close(&w);
	return text.at;
}

static void json_is_that_of_before(void **state)
{
	struct hd_live a = running(), b = { .name = "a<b", .state = "failed", .why = "", .plan_why = "",
		.autoscale = "off", .redundancy = "none", .resilience = "given", .saving = "60 s",
		.best = "none", .functions = "none",
		.autoscale_why = "", .exit = 4, .alone = 77, .step = 3, .loss = NAN };
	(void)state;

	assert_string_equal(written(&a, HD_LIVE_JSON), golden_running);
	assert_string_equal(written(&b, HD_LIVE_JSON), golden_failed);
}

/* What the socket carries is all that --json shows of a run that goes on. */
static void an_answer_that_is_read_shows_the_same(void **state)
{
	static struct hd_live a, b;
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	(void)state;

	a = running();
	const char *answer = written(&a, HD_LIVE_SOCKET);
	assert_non_null(strstr(answer, "{\"pid\":55,"));
	assert_non_null(strstr(answer, "\"remote\":true"));
	assert_int_equal(hd_json_parse(&arena, "answer", answer, strlen(answer), &json, &diag), HD_OK);
	CHECK(hd_live_read(json, &b, &diag) == HD_OK, "%s", diag.text);
	assert_string_equal(written(&b, HD_LIVE_JSON), golden_running);
	assert_true(b.goes_on && b.detect_ms >= 400 && b.detect_ms <= 400);
	a.single = -1;                    /* not known */
	answer = written(&a, HD_LIVE_SOCKET);
	assert_int_equal(hd_json_parse(&arena, "answer", answer, strlen(answer), &json, &diag), HD_OK);
	CHECK(hd_live_read(json, &b, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(b.single, -1);
}

static void an_answer_that_lacks_something_is_refused(void **state)
{
	static struct hd_live a, b;
	const struct hd_json *json;
	struct hd_diag diag = { "" };
	(void)state;

	a = running();
	char *answer = strdup(written(&a, HD_LIVE_SOCKET)), *at = strstr(answer, "\"vn_ms\"");
	assert_non_null(at);
	memcpy(at, "\"xx_ms\"", 7);
	assert_int_equal(hd_json_parse(&arena, "answer", answer, strlen(answer), &json, &diag), HD_OK);
	assert_int_not_equal(hd_live_read(json, &b, &diag), HD_OK);
	assert_non_null(strstr(diag.text, "vn_ms"));
	free(answer);
}

static void the_document_has_the_table(void **state)
{
	(void)state;
	check_document(&hd_live_fields, HD_LIVE_JSON, "`heddle status RUN --json`");
}

static int begin(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_that_of_before),
		cmocka_unit_test(an_answer_that_is_read_shows_the_same),
		cmocka_unit_test(an_answer_that_lacks_something_is_refused),
		cmocka_unit_test(the_document_has_the_table),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
