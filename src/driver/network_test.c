#include "driver/network.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job/sets.h"
#include "driver/driver.h"
#include "tests/check.h"

static const char yaml[] =
	"model: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 16}\njob: {steps: 5}\n";

struct desk {
	struct hd_arena arena;
	struct hd_fs fs;
	struct hd_clock clock;
	struct hd_job job;
	char dir[64], key[80];
	struct hd_network net;
	struct hd_diag diag;
};

static int enter(void **state)
{
	static struct desk d;

	memset(&d, 0, sizeof d);
	hd_arena_init(&d.arena, 0);
	hd_fs_real(&d.fs);
	hd_clock_real(&d.clock);
	snprintf(d.dir, sizeof d.dir, "/tmp/hd_network_test.%d", (int)getpid());
	snprintf(d.key, sizeof d.key, "%s/run.key", d.dir);
	assert_int_equal(hd_fs_mkdirs(&d.fs, d.dir, NULL), HD_OK);
	assert_int_equal(hd_key_make(d.key, &d.diag), HD_OK);
	*state = &d;
	return 0;
}

static int leave(void **state)
{
	struct desk *d = *state;

	hd_arena_finish(&d->arena);
	return hd_fs_remove_tree(&d->fs, d->dir, NULL);
}

/* A job with these keys set by -s; NULL ends them. */
static const struct hd_job *job_with(struct desk *d, const char *const *words)
{
	struct hd_job_sets sets;
	struct hd_text warnings;

	hd_text_init(&warnings, &d->arena);
	assert_int_equal(hd_job_sets_init(&sets, 4, &d->arena, &d->diag), HD_OK);
	for (; *words; words++)
		assert_int_equal(hd_job_sets_word(&sets, *words, &d->diag), HD_OK);
	CHECK(!hd_job_parse(&d->job, "job.yaml", yaml, sizeof yaml - 1, sets.set, sets.n, &d->arena, &d->diag,
		&warnings), "%s", d->diag.text);
	return &d->job;
}

static void host_and_port_are_an_address_and_paths_are_not(void **state)
{
	static const struct { const char *text; bool is; } cases[] = {
		{ "10.0.0.1:7000", true }, { "[fd00::1]:7000", true }, { "host:1", true },
		{ "runs/mlp", false }, { "/a:1", false }, { "./a:1", false }, { "mlp", false }, { ":7000", false },
		{ "host:", false }, { "host:70a", false }, { "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_network_is_address(cases[i].text) == cases[i].is, "%s", cases[i].text);
}

static void a_job_that_does_not_listen_opens_nothing(void **state)
{
	static const struct hd_network nothing;
	struct desk *d = *state;

	assert_int_equal(hd_network_of(&d->net, job_with(d, (const char *const[]){ NULL }), &d->fs, d->dir,
		&d->diag), HD_OK);
	assert_memory_equal(&d->net, &nothing, sizeof nothing);
}

static void a_run_that_listens_needs_a_key_or_says_that_it_has_none(void **state)
{
	struct desk *d = *state;
	char with_key[100];

	snprintf(with_key, sizeof with_key, "net.key=%s", d->key);
	assert_int_equal(hd_network_of(&d->net, job_with(d,
		(const char *const[]){ "net.listen=127.0.0.1:7000",
		NULL }), &d->fs, d->dir, &d->diag), HD_E_INVAL);
	assert_non_null(strstr(d->diag.text, "--new-key"));

	assert_int_equal(hd_network_of(&d->net, job_with(d,
		(const char *const[]){ "net.listen=127.0.0.1:7000",
		with_key, NULL }), &d->fs, d->dir, &d->diag), HD_OK);
	assert_true(d->net.listens && d->net.has_key && !d->net.plaintext);
	assert_string_equal(d->net.coordinator, "tls tcp:127.0.0.1:7000");
	assert_string_equal(d->net.workers, "tls tcp:127.0.0.1:0");
	struct hd_hash realm = d->net.realm;
	hd_network_wipe(&d->net);
	assert_false(d->net.has_key);
	for (size_t i = 0; i < sizeof d->net.key.byte; i++)
		assert_int_equal(d->net.key.byte[i], 0);

	assert_int_equal(hd_network_of(&d->net, job_with(d,
		(const char *const[]){ "net.listen=127.0.0.1:7000",
		"net.insecure_plaintext=true", NULL }), &d->fs, d->dir, &d->diag), HD_OK);
	assert_true(d->net.listens && !d->net.has_key && d->net.plaintext);
	assert_string_equal(d->net.coordinator, "tcp tcp:127.0.0.1:7000");
	assert_false(hd_hash_same(d->net.realm, realm));
}

static void what_is_no_address_of_this_machine_is_refused(void **state)
{
	static const struct { const char *listen, *says; } cases[] = {
		{ "net.listen=here", "write HOST:PORT" },
		{ "net.listen=0.0.0.0:7000", "every address" },
		{ "net.listen=[::]:7000", "every address" },
	};
	struct desk *d = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *words[] = { cases[i].listen, "net.insecure_plaintext=true", NULL };
		d->diag.text[0] = '\0';
		assert_int_equal(hd_network_of(&d->net, job_with(d, words), &d->fs, d->dir, &d->diag),
			HD_E_INVAL);
		CHECK(strstr(d->diag.text, cases[i].says), "%s: %s", cases[i].listen, d->diag.text);
	}
}

static void the_next_coordinator_listens_at_the_same_port(void **state)
{
	static const char *const any[] = { "net.listen=127.0.0.1:0", "net.insecure_plaintext=true", NULL };
	struct desk *d = *state;
	char path[100];

	assert_int_equal(hd_network_of(&d->net, job_with(d, any), &d->fs, d->dir, &d->diag), HD_OK);
	assert_string_equal(d->net.coordinator, "tcp tcp:127.0.0.1:0");
	snprintf(path, sizeof path, "%s/" HD_DRIVER_ADDRESS, d->dir);
	assert_int_equal(hd_file_write_atomic(&d->fs, path, "127.0.0.1:7321", 14, NULL), HD_OK);
	assert_int_equal(hd_network_of(&d->net, job_with(d, any), &d->fs, d->dir, &d->diag), HD_OK);
	assert_string_equal(d->net.coordinator, "tcp tcp:127.0.0.1:7321");
	assert_string_equal(d->net.workers, "tcp tcp:127.0.0.1:0");      /* a worker's own is its own */
	static const char *const own[] = { "net.listen=127.0.0.1:7000", "net.insecure_plaintext=true", NULL };
	assert_int_equal(hd_network_of(&d->net, job_with(d, own), &d->fs, d->dir, &d->diag), HD_OK);
	/* a port that was asked for */
	assert_string_equal(d->net.coordinator, "tcp tcp:127.0.0.1:7000");
	assert_int_equal(hd_file_write_atomic(&d->fs, path, "127.0.0.2:7321", 14, NULL), HD_OK);
	assert_int_equal(hd_network_of(&d->net, job_with(d, any), &d->fs, d->dir, &d->diag), HD_OK);
	/* of another host: of another time */
	assert_string_equal(d->net.coordinator, "tcp tcp:127.0.0.1:0");
}

static void a_worker_from_elsewhere_needs_the_key(void **state)
{
	struct desk *d = *state;
	struct hd_network_call call = { .where = "127.0.0.1:7000" };

	assert_int_equal(hd_network_join(&d->net, &call, &d->diag), HD_E_INVAL);
	assert_non_null(strstr(d->diag.text, "--key FILE"));
	call.key = d->key;
	call.listen = "127.0.0.3:0";
	assert_int_equal(hd_network_join(&d->net, &call, &d->diag), HD_OK);
	assert_string_equal(d->net.coordinator, "tls tcp:127.0.0.1:7000");
	assert_string_equal(d->net.workers, "tls tcp:127.0.0.3:0");
	call.listen = "nowhere";
	assert_int_equal(hd_network_join(&d->net, &call, &d->diag), HD_E_INVAL);
	assert_false(d->net.has_key);                     /* wiped where it failed */
	call = (struct hd_network_call){ .where = "127.0.0.1:7000", .plaintext = true };
	assert_int_equal(hd_network_join(&d->net, &call, &d->diag), HD_OK);
	assert_true(d->net.plaintext);
	assert_string_equal(d->net.workers, "tcp tcp:127.0.0.1:0");      /* the address that it calls from */
}

/* Of net.* alone; the rest of the file stays what it was. */
static void what_a_resumed_run_says_of_the_network_is_kept(void **state)
{
	struct desk *d = *state;
	const struct hd_job *plain = job_with(d, (const char *const[]){ NULL });
	struct hd_text before;
	struct hd_rundir dir;
	char folder[100], key[HD_PATH_CAP], path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_text_init(&before, &d->arena);
	hd_job_json(plain, false, &before);
	snprintf(folder, sizeof folder, "%s/run", d->dir);
	assert_int_equal(hd_rundir_create(&dir, &d->fs, &d->clock, d->dir, folder, "mlp", yaml,
		sizeof yaml - 1,
		&d->diag), HD_OK);
	assert_int_equal(hd_rundir_put(&dir, "job.resolved.json", before.at, before.len, &d->diag), HD_OK);
	hd_rundir_path(&dir, "job.resolved.json", path, sizeof path);

	assert_int_equal(hd_network_keep(&dir, plain, &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_file_read_all(&d->fs, path, &d->arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	assert_int_equal(len, before.len);
	assert_memory_equal(bytes, before.at, len);       /* nothing was said: not a byte */

	static const char *const said[] = { "net.listen=127.0.0.1:7000", "net.key=rel.key", "job.steps=99",
		NULL };
	assert_int_equal(hd_network_keep(&dir, job_with(d, said), &d->arena, &d->diag), HD_OK);
	assert_int_equal(hd_file_read_all(&d->fs, path, &d->arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	assert_int_equal(hd_job_parse(&d->job, path, (const char *)bytes, len, NULL, 0, &d->arena, &d->diag,
		&before), HD_OK);
	assert_string_equal(hd_job_text(&d->job, HD_JOB_NET_LISTEN), "127.0.0.1:7000");
	assert_non_null(getcwd(key, sizeof key - 10));
	strcat(key, "/rel.key");
	assert_string_equal(hd_job_text(&d->job, HD_JOB_NET_KEY), key);
	assert_int_equal(hd_job_int(&d->job, HD_JOB_STEPS), 5);
	hd_rundir_close(&dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(host_and_port_are_an_address_and_paths_are_not, enter, leave),
		cmocka_unit_test_setup_teardown(a_job_that_does_not_listen_opens_nothing, enter, leave),
		cmocka_unit_test_setup_teardown(a_run_that_listens_needs_a_key_or_says_that_it_has_none,
			enter, leave),
		cmocka_unit_test_setup_teardown(what_is_no_address_of_this_machine_is_refused, enter, leave),
		cmocka_unit_test_setup_teardown(the_next_coordinator_listens_at_the_same_port, enter, leave),
		cmocka_unit_test_setup_teardown(a_worker_from_elsewhere_needs_the_key, enter, leave),
		cmocka_unit_test_setup_teardown(what_a_resumed_run_says_of_the_network_is_kept, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
