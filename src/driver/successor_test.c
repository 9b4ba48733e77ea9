#include "driver/successor.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "driver/driver.h"
#include "tests/check.h"

static const char *const argv_[] = { "heddle", "serve", "--job", "run", NULL };

struct desk {
	struct hd_fs_sim files;
	struct hd_host_sim host;
	struct hd_successor s;
	uint32_t nreports, n;
	int code;
};

static void failing(void *user, uint32_t n, int code)
{
	struct desk *d = user;

	d->nreports++;
	d->n = n;
	d->code = code;
}

static void put(struct desk *d, const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "run/%s", name);
	assert_int_equal(hd_file_write_atomic(&d->files.fs, path, "{}", 2, NULL), HD_OK);
}

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_fs_sim_init(&d.files);
	hd_host_sim_init(&d.host);
	assert_int_equal(hd_fs_mkdirs(&d.files.fs, "run/log", NULL), HD_OK);
	d.s = (struct hd_successor){ .host = &d.host.host, .fs = &d.files.fs, .dir = "run", .argv = argv_,
		.failing = failing, .user = &d };
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	hd_fs_sim_finish(&((struct desk *)*state)->files);
	return 0;
}

static void one_at_a_time(void **state)
{
	struct desk *d = *state;
	struct hd_stat stat;

	put(d, "job.resolved.json");
	put(d, HD_DRIVER_STORE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hd_successor_start(&d->s, NULL), HD_OK);
	assert_int_equal(d->host.n, 1);
	assert_string_equal(d->host.proc[0].args, "heddle serve --job run");
	assert_int_equal(hd_fs_stat(&d->files.fs, "run/" HD_SUCCESSOR_LOG, &stat, NULL), HD_OK);
	hd_host_sim_end(&d->host, 1, 0);
	assert_int_equal(hd_successor_start(&d->s, NULL), HD_OK);
	assert_int_equal(d->host.n, 2);
}

static void nothing_is_started_where_it_could_keep_nothing(void **state)
{
	struct desk *d = *state;
	struct hd_diag diag = { "" };

	assert_int_equal(hd_successor_start(&d->s, &diag), HD_E_NOTFOUND);
	assert_non_null(strstr(diag.text, "the run's folder run is gone"));
	put(d, "job.resolved.json");
	assert_int_equal(hd_successor_start(&d->s, &diag), HD_OK);       /* no store: it has begun nothing */
	assert_int_equal(d->host.n, 0);
}

static void ends(struct desk *d, int code)
{
	assert_int_equal(hd_successor_start(&d->s, NULL), HD_OK);
	hd_host_sim_end(&d->host, (int)d->host.n, code);
}

static void those_that_fail_alike_are_reported_once(void **state)
{
	struct desk *d = *state;

	put(d, "job.resolved.json");
	put(d, HD_DRIVER_STORE);
	for (int i = 0; i < HD_SUCCESSOR_TRIES - 1; i++)
		ends(d, 3);
	ends(d, 4);                       /* another failure: counted from one */
	for (int i = 0; i < HD_SUCCESSOR_TRIES; i++)
		ends(d, 3);
	assert_int_equal(d->nreports, 0);
	ends(d, 3);                       /* judges the one before */
	assert_int_equal(d->nreports, 1);
	assert_int_equal(d->n, HD_SUCCESSOR_TRIES);
	assert_int_equal(d->code, 3);
	for (int i = 0; i < 3; i++)
		ends(d, 3);
	assert_int_equal(d->nreports, 1);
}

static void one_that_finds_another_coordinator_has_not_failed(void **state)
{
	struct desk *d = *state;

	put(d, "job.resolved.json");
	put(d, HD_DRIVER_STORE);
	for (int i = 0; i < 3 * HD_SUCCESSOR_TRIES; i++)
		ends(d, hd_err_exit(HD_E_AGAIN));
	assert_int_equal(d->nreports, 0);
}

static void a_log_that_cannot_be_opened_leaves_the_run_to_its_next_try(void **state)
{
	struct desk *d = *state;

	put(d, "job.resolved.json");
	put(d, HD_DRIVER_STORE);
	assert_int_equal(hd_fs_remove_tree(&d->files.fs, "run/log", NULL), HD_OK);
	/* not NOTFOUND: that ends a worker */
	assert_int_equal(hd_successor_start(&d->s, NULL), HD_E_IO);
	assert_int_equal(d->host.n, 0);
	assert_int_equal(hd_fs_mkdirs(&d->files.fs, "run/log", NULL), HD_OK);
	d->host.refuse = HD_E_NOTFOUND;
	assert_int_equal(hd_successor_start(&d->s, NULL), HD_E_IO);
	d->host.refuse = HD_OK;
	assert_int_equal(hd_successor_start(&d->s, NULL), HD_OK);
	assert_int_equal(d->host.n, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_at_a_time, enter, leave),
		cmocka_unit_test_setup_teardown(nothing_is_started_where_it_could_keep_nothing, enter, leave),
		cmocka_unit_test_setup_teardown(those_that_fail_alike_are_reported_once, enter, leave),
		cmocka_unit_test_setup_teardown(one_that_finds_another_coordinator_has_not_failed, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_log_that_cannot_be_opened_leaves_the_run_to_its_next_try,
			enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
