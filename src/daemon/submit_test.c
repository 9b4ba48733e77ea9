/* Orders before they are stored: how many jobs there may be, and what an order costs that is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_int.h"
#include "tests/check.h"

enum { ADA = 54321, BOB = 54322, MOST = HD_DAEMON_QUEUED_OF_USER };

static char dir[] = "/tmp/hd_submit_test.XXXXXX";
static struct hd_fs fs;
static struct hd_clock clock_;
static struct hd_pools pools;
static struct daemon_users users;
static struct hd_daemon_spec spec = { .fs = &fs, .dir = dir, .pools = &pools };
static struct hd_daemon d = { .spec = &spec, .fs = &fs, .users = &users, .clock = &clock_ };
static struct hd_arena arena;

static const char text[] = "users:\n  ada: {uid: 54321, queued: 3}\n  bob: {uid: 54322, role: admin}\n";

static uint32_t no_account(const char *name) { (void)name; return HD_NO_UID; }

static int begin(void **state)
{
	struct hd_dispatch_setting set = { .policy = "fifo", .ntypes = 1, .began_s = -1 };
	char path[80];
	(void)state;

	hd_fs_real(&fs);
	hd_clock_real(&clock_);
	hd_arena_init(&arena, 0);
	if (!mkdtemp(dir) || hd_pools_add(&pools, "a:2", NULL) || hd_pools_open(&pools, &fs, NULL))
		return 1;
	snprintf(path, sizeof path, "%s/jobs.sqlite", dir);
	set.type = pools.type;
	return hd_jobs_open(&d.jobs, path, pools.type, 1, NULL) ||
		hd_dispatch_create(&d.dispatch, &set, NULL, NULL) ||
		hd_renewer_create(&d.renewer, &clock_, NULL) || daemon_open_partitions(&d, NULL) ||
		hd_users_read(&users.now, "users.yaml", text, sizeof text - 1, no_account, &arena, NULL);
}

static int end(void **state)
{
	(void)state;
	daemon_close_partitions(&d);
	hd_renewer_destroy(d.renewer);
	hd_dispatch_destroy(d.dispatch);
	hd_jobs_close(d.jobs);
	hd_arena_finish(&arena);
	return hd_fs_remove_tree(&fs, dir, NULL) != HD_OK;
}

static void store_jobs(uint32_t uid, uint32_t n)
{
	struct hd_diag diag = { "" };
	uint64_t last = hd_jobs_last(d.jobs);

	CHECK(!hd_jobs_begin(d.jobs, &diag), "%s", diag.text);
	for (uint64_t id = last + 1; id <= last + n; id++) {
		const struct hd_jobs_card card = { .id = id, .name = "j", .user = "u", .uid = uid };
		const struct hd_dispatch_job row = { .id = id, .scale = 1, .weight = 1, .steps = 1,
			.deadline_s = INFINITY };
		CHECK(!hd_jobs_put_card(d.jobs, &card, &diag) && !hd_jobs_put_row(d.jobs, &row, &diag), "%s",
			diag.text);
	}
	CHECK(!hd_jobs_commit(d.jobs, &diag), "%s", diag.text);
}

/* The one that sends an order may be an admin; the tasks of an array are as many. */
static void a_users_jobs_are_counted_with_those_that_come(void **state)
{
	const struct hd_jobs_card ada = { .uid = ADA, .user = "ada" }, bob = { .uid = BOB, .user = "bob" },
		root = { .uid = 0, .user = "root" };
	struct hd_diag diag = { "" };
	(void)state;

	store_jobs(ADA, MOST - 5);
	CHECK(!daemon_check_queued(&d, &ada, 5, &diag), "%s", diag.text);
	CHECK(daemon_check_queued(&d, &ada, 6, &diag) == HD_E_REFUSED && strstr(diag.text,
		"user ada has 19995 jobs that are not over"), "%s", diag.text);
	CHECK(!daemon_check_queued(&d, &bob, MOST, &diag), "%s", diag.text);
	assert_int_equal(daemon_check_queued(&d, &bob, MOST + 1, NULL), HD_E_REFUSED);
	CHECK(!daemon_check_queued(&d, &root, MOST + 1, &diag), "%s", diag.text);
	diag.text[0] = '\0';
	CHECK(daemon_check_queued(&d, &root, HD_DAEMON_QUEUED + 1, &diag) == HD_E_REFUSED &&
		strstr(diag.text, "no room for 100001 more"), "%s", diag.text);
}

static enum hd_err order(const struct hd_caller *by, const char *array, struct hd_diag *diag)
{
	static const char job[] = "job: {name: tiny, seed: 1, steps: 9}\\n"
		"model: {use: 'builtin:mlp', args: {input: [1, 6, 6], hidden: [8], classes: 4}}\\n"
		"data: {kind: synthetic, count: 64}\\nbatch: {global: 8, virtual_nodes: 2}\\n"
		"optim: {kind: sgd, lr: 1e-3}\\n";
	struct hd_daemon_taken taken;
	const struct hd_json *ask;
	char body[1000];

	snprintf(body, sizeof body, "{\"job\":\"%s\",\"folder\":\"%s\",\"array\":\"%s\"}", job, dir, array);
	CHECK(!hd_json_parse(&arena, "ask", body, strlen(body), &ask, diag), "%s", diag->text);
	d.by = by;
	d.what = "submit";
	d.took_in = 0;
	d.answer_ns = INT64_MAX;
	diag->text[0] = '\0';
	return daemon_take_jobs(&d, ask, &arena, &taken, diag);
}

/* Its quota is 3 that wait: the fourth task is refused, and folders of three were made for nothing. */
static void an_array_that_fails_at_its_last_task_costs_as_many_jobs(void **state)
{
	struct hd_caller ada;
	struct hd_diag diag = { "" };
	(void)state;

	CHECK(!hd_users_by_name(&users.now, "ada", &ada, &diag), "%s", diag.text);
	ada.gid = 0;
	CHECK(order(&ada, "0-3", &diag) == HD_E_REFUSED && strstr(diag.text, "QUOTA"), "%s", diag.text);
	assert_int_equal(d.took_in, 3);
	CHECK(!order(&ada, "0-2", &diag), "%s", diag.text);
	assert_int_equal(d.took_in, 3);
	store_jobs(ADA, 3);                       /* 19998: room for two */
	CHECK(order(&ada, "0-2", &diag) == HD_E_REFUSED && strstr(diag.text, "no room for 3 more"), "%s",
		diag.text);
	assert_int_equal(d.took_in, 0);
	CHECK(!order(&ada, "0-1", &diag), "%s", diag.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_users_jobs_are_counted_with_those_that_come),
		cmocka_unit_test(an_array_that_fails_at_its_last_task_costs_as_many_jobs),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
