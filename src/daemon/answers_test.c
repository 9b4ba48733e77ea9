/* Every golden text is an answer of the scheduler from before there were tables of fields. */
#include "daemon/answers.h"

#include <math.h>

#include "tests/fields_check.h"

#define CHECK_ANSWER(name, golden, ...) \
	check_written(&hd_answer_##name##_fields, 0, &(struct hd_answer_##name){ __VA_ARGS__ }, golden)

#define RUNNING "{\"id\":1,\"name\":\"a\",\"user\":\"\",\"state\":\"running\",\"step\":3433," \
	"\"steps\":200000,\"priority\":1,\"scale\":1,\"devices_n\":1,\"type\":\"fast\"," \
	"\"rate\":724.1200348936667,\"submitted_s\":2.9701122040000003,\"started_s\":2.991546671," \
	"\"ended_s\":-1,\"deadline_s\":-1,\"exit\":-1,\"held\":true,\"array\":7," \
	"\"index\":2,\"after\":\"5:ok:met\",\"limit_s\":3600,\"expected_s\":60,\"took_s\":1.5," \
	"\"expected_error\":\"nan\",\"partition\":\"day\",\"account\":\"red\",\"why\":\"\""
static const struct hd_answer_job running = { .id = 1, .name = "a", .user = "", .state = "running",
	.step = 3433, .steps = 200000, .priority = 1, .scale = 1, .devices_n = 1, .type = "fast",
	.rate = 724.1200348936667, .submitted_s = 2.9701122040000003, .started_s = 2.991546671,
	.ended_s = -1, .deadline_s = -1, .exit = -1, .held = true,
	.array = 7, .index = 2, .after = "5:ok:met", .limit_s = 3600, .expected_s = 60, .took_s = 1.5,
	.expected_error = NAN, .partition = "day", .account = "red", .why = "" };

static void jobs_are_written_as_before(void **state)
{
	static const struct hd_answer_rate rates[] = { { "fast", 864.233261320667, "measured" },
		{ "slow", 324.068034530277, "guessed" } };
	static const char *const devices[] = { "fast-0" };
	(void)state;

	check_written(&hd_answer_job_fields, 0, &running, RUNNING "}");
	CHECK_ANSWER(jobs, "{\"jobs\":[" RUNNING "}],\"more\":true}", .jobs = { .at = &running, .n = 1 },
		.more = true);
	CHECK_ANSWER(job_whole, RUNNING ",\"devices\":[\"fast-0\"],\"on\":[],\"lease\":\"held\",\"rates\":["
		"{\"type\":\"fast\",\"steps_s\":864.233261320667,\"from\":\"measured\"},"
		"{\"type\":\"slow\",\"steps_s\":324.068034530277,\"from\":\"guessed\"}],\"failures\":0,"
		"\"leases\":1,\"run\":\"/tmp/d/runs/1-tiny\",\"digest\":\"\",\"paid_ms\":36,\"useful_ms\":1,"
		"\"redundant_ms\":2,\"bubble_ms\":3,\"pause_ms\":4,\"redo_ms\":5,\"rebuild_ms\":6,"
		"\"waiting_ms\":7,\"boot_ms\":8,\"paid_nano_usd\":9}", .job = running,
		.devices = { devices, 1 }, .lease = "held", .rates = { .at = rates, .n = 2 }, .leases = 1,
		.run = "/tmp/d/runs/1-tiny", .digest = "", .paid = { 36, 9, { 1, 2, 3, 4, 5, 6, 7, 8 } });
	CHECK_ANSWER(submitted, "{\"id\":4,\"name\":\"made-up\",\"run\":\"/tmp/d/runs/4-made-up\","
		"\"state\":\"queued\",\"tasks\":3,\"account\":\"red\",\"why\":\"\"}", .tasks = 3, .id = 4,
		.name = "made-up", .account = "red", .run = "/tmp/d/runs/4-made-up", .state = "queued",
		.why = "");
	CHECK_ANSWER(state, "{\"id\":3,\"state\":\"cancelled\",\"tasks\":1}", .id = 3, .state =
		"cancelled", .tasks = 1);
	CHECK_ANSWER(priority, "{\"id\":2,\"priority\":2.5}", .id = 2, .priority = 2.5);
}

static void a_reason_is_written_as_before(void **state)
{
	static const struct hd_answer_job_type types[] = { { "fast", 1, 0, 2, 0, 0, 0, 0 } };
	static const char *const more[] = { "with 2 more fast it would have a share" };
	(void)state;

	CHECK_ANSWER(why, "{\"id\":3,\"name\":\"c\",\"state\":\"queued\",\"code\":\"UNRUNNABLE\","
		"\"text\":\"job 3 "
		"cannot run: no type that it has a speed on has 2 devices\",\"more\":[\"with 2 more fast it "
		"would have a share\"],\"boundary_s\":8.970112204,\"types\":[{\"type\":\"fast\","
		"\"devices\":1,"
		"\"free\":0,\"steps_s\":2,\"share\":0,\"received_s\":0,\"due_s\":0,\"priority\":0}]}",
		.id = 3, .name = "c", .state = "queued", .code = "UNRUNNABLE",
		.text = "job 3 cannot run: no type that it has a speed on has 2 devices", .more = { more, 1 },
		.boundary_s = 8.970112204, .types = { .at = types, .n = 1 });
}

#define SLOW "{\"host\":\"10.0.0.4\",\"jobs\":7,\"judged\":6,\"slow_jobs\":5,\"slow\":true," \
	"\"cause\":\"data\",\"times\":1.5,\"share\":0.75,\"since_s\":2.5,\"text\":\"a sentence\"}"

static void the_cluster_is_written_as_before(void **state)
{
	static const struct hd_answer_host host = { "10.0.0.4", 7, 6, 5, true, "data", 1.5, 0.75, 2.5,
		"a sentence" };
	static const struct hd_fields_count counts[] = { { "queued", 1 }, { "starting", 0 }, { "running", 2 },
		{ "draining", 0 }, { "done", 0 }, { "failed", 0 }, { "cancelled", 0 } };
	static const struct hd_answer_type types[] = { { "fast", 1, 1, 0, 0, 0, 1 },
		{ "slow", 1, 1, 0, 0, 0, 0.5 } };
	static const struct hd_answer_partition day = { "day", true, 2, "night", 3, 1, 1, 1, 4, "60 s" };
	static const struct hd_answer_account red = { "red", "lab", 1, 2.5, 3, 4, 1, -1, 7, 20 };
	static const struct hd_answer_pool pools[] = {
		{ "slow", 1, 0.5, 0, "CPU quota (control group, version 1)" } };
	static const struct hd_answer_device devices[] = { { 1, "slow-0", "slow", "busy", 2, "fans",
		"new ones", "k1, Slurm job 7_1" } };
	static const struct hd_answer_lent lent[] = { { "k80", 4, 2, 1, "Resources (1)" } };
	(void)state;

	CHECK_ANSWER(status, "{\"pid\":7172,\"dir\":\"/tmp/d\",\"policy\":\"fifo\",\"asked_s\":-1,"
		"\"late\":\"\","
		"\"round_s\":1,\"now_s\":8.436666758000001,\"boundary_s\":8.970112204,\"since_s\":0,"
		"\"counts\":{\"queued\":1,\"starting\":0,\"running\":2,\"draining\":0,\"done\":0,"
		"\"failed\":0,"
		"\"cancelled\":0},\"types\":[{\"type\":\"fast\",\"devices\":1,\"busy\":1,\"free\":0,"
		"\"lost\":0,"
		"\"price_usd_h\":0,\"speed\":1},{\"type\":\"slow\",\"devices\":1,\"busy\":1,\"free\":0,"
		"\"lost\":0,\"price_usd_h\":0,\"speed\":0.5}],\"running\":[" RUNNING "}],\"slow\":[" SLOW
		"],\"windows\":[],\"lent\":[{\"type\":\"k80\",\"wanted\":4,\"running\":2,\"waiting\":1,"
		"\"why\":\"Resources (1)\"}],\"partitions\":[{\"name\":\"day\",\"standard\":true,"
		"\"priority\":2,"
		"\"preempt\":\"night\",\"devices\":3,\"busy\":1,\"free\":1,\"running\":1,\"waiting\":4,"
		"\"limits\":\"60 s\"}],\"partitions_wrong\":\"\",\"accounts\":[{\"name\":\"red\","
		"\"parent\":\"lab\",\"level\":1,\"weight\":2.5,\"devices\":3,\"devices_most\":4,"
		"\"running\":1,\"running_most\":-1,\"waiting\":7,\"queued_most\":20}]}", .pid = 7172,
		.lent = { .at = lent, .n = 1 },
		.dir = "/tmp/d", .policy = "fifo", .asked_s = -1, .late = "", .round_s = 1,
		.now_s = 8.436666758000001, .boundary_s = 8.970112204, .counts = { counts, 7 },
		.types = { .at = types, .n = 2 }, .running = { .at = &running, .n = 1 },
		.slow = { .at = &host, .n = 1 }, .partitions = { .at = &day, .n = 1 },
		.partitions_wrong = "", .accounts = { .at = &red, .n = 1 });
	CHECK_ANSWER(hosts, "{\"hosts\":[" SLOW "],\"left_out\":3}", .hosts = { .at = &host, .n = 1 },
		.left_out = 3);
	CHECK_ANSWER(pools, "{\"pools\":[{\"type\":\"slow\",\"devices\":1,\"speed\":0.5,\"price_usd_h\":0,"
		"\"means\":\"CPU quota (control group, version 1)\"}],\"devices\":[{\"id\":1,"
		"\"name\":\"slow-0\",\"type\":\"slow\",\"state\":\"busy\",\"job\":2,"
		"\"window\":\"fans\",\"kept\":\"new ones\",\"on\":\"k1, Slurm job 7_1\"}]}",
		.pools = { .at = pools, .n = 1 }, .devices = { .at = devices, .n = 1 });
	CHECK_ANSWER(backup, "{\"folder\":\"/b\",\"program\":\"heddle 0.1.0\",\"t\":1795551140.5,\"jobs\":41,"
		"\"last\":43,\"event\":44,\"size_bytes\":73728,\"store\":2,\"sha256\":\"ab\"}",
		.folder = "/b", .program = "heddle 0.1.0", .t = 1795551140.5, .jobs = 41, .last = 43,
		.event = 44, .size_bytes = 73728, .store = 2, .sha256 = "ab");
	CHECK_ANSWER(usable, "{\"device\":\"slow-0\",\"usable\":true}", .device = "slow-0", .usable = true);
}

static void policies_and_changes_are_written_as_before(void **state)
{
	static const char *const variants[] = { "hetero", "plain", "packed" };
	static const struct hd_answer_built built[] = { { "makespan", "the earliest end of all jobs",
		"seconds", true, { variants, 3 } } };
	(void)state;

	CHECK_ANSWER(policy, "{\"policy\":\"fifo\",\"round_s\":1}", .policy = "fifo", .round_s = 1);
	CHECK_ANSWER(policies, "{\"policies\":[{\"name\":\"makespan\","
		"\"about\":\"the earliest end of all jobs\","
		"\"measure\":\"seconds\",\"built\":true,\"variants\":[\"hetero\",\"plain\",\"packed\"]}]}",
		.policies = { .at = built, .n = 1 });
	CHECK_ANSWER(whatif, "{\"policy\":\"fifo\",\"policy_then\":\"fifo\",\"jobs\":3,\"affected\":[]}",
		.policy = "fifo", .policy_then = "fifo", .jobs = 3);
	CHECK_ANSWER(affected, "{\"id\":1,\"name\":\"a\",\"share\":1,\"share_then\":0.5,\"steps_s\":2,"
		"\"steps_s_then\":1,\"left_s\":10,\"left_s_then\":-1}", 1, "a", 1, 0.5, 2, 1, 10, -1);
}

static void events_and_errors_are_written_as_before(void **state)
{
	static const struct hd_answer_event events[] = { { 2, 2.9916150110000004, 1795551140.697, "start", 1,
		"on fast-0" } };
	(void)state;

	CHECK_ANSWER(events, "{\"events\":[{\"number\":2,\"at_s\":2.9916150110000004,\"t\":1795551140.697,"
		"\"kind\":\"start\",\"job\":1,\"text\":\"on fast-0\"}],\"last\":5}",
		.events = { .at = events, .n = 1 }, .last = 5);
	CHECK_ANSWER(error,
		"{\"error\":\"there is no job with the name \\\"nope\\\"\",\"code\":-103,\"exit\":3}",
		.error = "there is no job with the name \"nope\"", .code = -103, .exit = 3);
}

/* A table is written, or is part of one that is; docs/fields.md has those that users read. */
static void the_document_has_the_tables(void **state)
{
	(void)state;
	check_document(&hd_answer_status_fields, 0, "`heddle status --json`");
	check_document(&hd_answer_job_fields, 0, "`heddle jobs --json`");
	check_document(&hd_answer_why_fields, 0, "`heddle explain --json`");
	check_document(&hd_answer_job_whole_fields, 0, "`GET /v1/jobs/{job}`");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_written_as_before),
		cmocka_unit_test(a_reason_is_written_as_before),
		cmocka_unit_test(the_cluster_is_written_as_before),
		cmocka_unit_test(policies_and_changes_are_written_as_before),
		cmocka_unit_test(events_and_errors_are_written_as_before),
		cmocka_unit_test(the_document_has_the_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
