/* Every row of the table keeps the contract of launcher.h: against programs of a batch system, and an ssh,
 * that
 * are scripts in a folder of the test. */
#include "launch/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "launch/testing_slurmrestd.h"
#include "tests/check.h"

/* Pauses between questions are part of the contract, and long: a second here is eight to a launcher. */
static int64_t faster = 8;
static int64_t fast_now_ns(struct hd_clock *clock);
static int64_t fast_wall_ns(struct hd_clock *clock);
static void fast_wait(struct hd_clock *clock, int64_t at_ns);
static const struct hd_clock_ops fast = { "fast", fast_now_ns, fast_wall_ns, fast_wait };

static struct hd_fs fs;
static struct hd_clock real, clock_ = { &fast };
static struct hd_host host;
static char dir[64], said[4000], worker[HD_PATH_CAP], hosts[HD_PATH_CAP];
static struct hd_launcher_settings settings;
static char path_[2][4096 + 200], rest[100];      /* PATH without the programs, and with them */
static int64_t ahead_ns;
static const char *argv_[] = { worker, "worker", "it's", NULL };

static int64_t fast_now_ns(struct hd_clock *clock)
{
	(void)clock;
	return faster * hd_clock_now_ns(&real) + ahead_ns;
}
static int64_t fast_wall_ns(struct hd_clock *clock)
{
	(void)clock;
	return hd_clock_wall_ns(&real);
}
static void fast_wait(struct hd_clock *clock, int64_t at_ns)
{
	(void)clock;
	hd_clock_wait_until(&real, (at_ns - ahead_ns) / faster);
}

static void put(const char *name, const char *text, unsigned mode)
{
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(hd_file_write_atomic(&fs, path, text, strlen(text), NULL), HD_OK);
	assert_int_equal(chmod(path, mode), 0);
}

static void no_file(const char *name)
{
	char path[HD_PATH_CAP];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

/* A worker goes on until a file `go` is there, and ends with what stands in it. */
static int folder(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_clock_real(&real);
	hd_host_real(&host);
	snprintf(dir, sizeof dir, "/tmp/hd_launcher_test.%d", (int)getpid());
	snprintf(worker, sizeof worker, "%s/worker", dir);
	snprintf(hosts, sizeof hosts, "%s/hosts", dir);
	assert_int_equal(hd_fs_mkdirs(&fs, dir, NULL), HD_OK);
	put("worker", "#!/bin/sh\ncd \"${0%/*}\"\necho \"$@\" >words.$$\n"
		"until [ -s go ]; do sleep 0.02; done\nexit $(cat go)\n", 0700);
	put("hosts", "127.0.0.1 slots=2\n127.0.0.2\n", 0600);
	/* ssh -o X -o Y HOST -- COMMAND: a shell reads the command, as there */
	put("ssh", "#!/bin/sh\nexec sh -c \"$7\"\n", 0700);
	put("sinfo", "#!/bin/sh\nfor n in a b c; do echo \"$n|127.0.0.1|idle\"; done\n", 0700);
	put("sbatch", "#!/bin/sh\ncd \"${0%/*}\"\nid=$(($(cat last 2>/dev/null || echo 0) + 1))\necho $id "
		">last\n"
		"for i in $(seq 0 ${2##*-}); do (setsid sh \"$3\" >/dev/null 2>&1 </dev/null &\n"
		"echo $! >job.${id}_$i); done\necho $id\n", 0700);
	put("squeue", "#!/bin/sh\ncd \"${0%/*}\"\nfor j in job.*; do [ -e \"$j\" ] || continue\n"
		"if kill -0 $(cat $j) 2>/dev/null; then echo \"${j#job.}|RUNNING|0|0|a|None|\"\n"
		"else echo \"${j#job.}|FAILED|$(($(cat go 2>/dev/null || echo 15) * 256))|0|a|None|\"; "
			"fi; done\n", 0700);
	put("scancel", "#!/bin/sh\ncd \"${0%/*}\"\n[ \"$2\" = --state=PENDING ] || for j in job.*; do\n"
		"kill $(cat $j) 2>/dev/null; rm -f $j; done; true\n", 0700);
	snprintf(path_[0], sizeof path_[0], "%.4000s", getenv("PATH"));
	snprintf(path_[1], sizeof path_[1], "%s:%.4000s", dir, getenv("PATH"));
	snprintf(rest, sizeof rest, "%s/rest", dir);
	setenv("PATH", path_[1], 1);
	settings = (struct hd_launcher_settings){ .ssh = { .hosts = hosts, .command = "" },
		.slurm = { .partition = "", .account = "", .time = "" } };
	return 0;
}

static int no_folder(void **state)
{
	(void)state;
	return hd_fs_remove_tree(&fs, dir, NULL);
}

static void say(void *user, const char *kind, const char *text)
{
	(void)user;
	snprintf(said + strlen(said), sizeof said - strlen(said), "%s: %s\n", kind, text);
}

static struct hd_launcher *opened(const struct hd_launcher_ops *ops)
{
	const struct hd_launcher_spec spec = { .host = &host, .fs = &fs, .clock = &clock_, .dir = dir, .name =
		"t",
		.mark = "heddle-t-1", .argv = argv_, .settings = &settings };
	struct hd_launcher *l = NULL;
	struct hd_diag diag = { "" };

	said[0] = '\0';
	CHECK(ops->open(&spec, &l, &diag) == HD_OK, "%s: %s", ops->name, diag.text);
	l->said = say;
	return l;
}

static void look(struct hd_launcher *l)
{
	struct hd_diag diag = { "" };

	CHECK(l->ops->look(l, &diag) == HD_OK, "%s: %s", l->ops->name, diag.text);
	hd_clock_wait_until(&real, hd_clock_now_ns(&real) + 10000000);
}

static void await_running(struct hd_launcher *l, uint32_t n)
{
	struct hd_launcher_count count = { .running = 99 };

	while (count.running != n || count.waiting) {
		look(l);
		l->ops->count(l, &count);
	}
}

static void begins_as_many(const struct hd_launcher_ops *ops)
{
	char own[HD_ADDR_CAP] = "unset";
	struct hd_launcher *l = opened(ops);
	struct hd_launcher_count count = { .running = 9 };

	assert_ptr_equal(hd_launcher_find(l->ops->name), l->ops);
	assert_int_equal(l->ops->check(l, 3, own, NULL), HD_OK);
	assert_string_equal(own, l->ops->net ? "127.0.0.1" : "");
	l->ops->want(l, 2);
	await_running(l, 2);
	l->ops->want(l, 3);
	await_running(l, 3);
	assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
	l->ops->count(l, &count);
	assert_int_equal(count.running, 0);
	l->ops->close(l);
}

static void as_many_as_are_wanted_begin_and_none_is_left(void **state)
{
	(void)state;
	for (size_t i = 0; hd_launchers[i]; i++)
		begins_as_many(hd_launchers[i]);
}

static void replaces_one_that_ends(const struct hd_launcher_ops *ops)
{
	struct hd_launcher *l = opened(ops);
	struct hd_launcher_end end = { .code = -1 };

	l->ops->want(l, 1);
	await_running(l, 1);
	put("go", "3", 0600);
	while (!l->ops->ended(l, &end))
		look(l);
	CHECK(end.code == 3 && end.alike == 1 && end.name[0], "%s: %d, %u alike", l->ops->name, end.code,
		end.alike);
	no_file("go");
	await_running(l, 1);
	assert_false(l->ops->ended(l, &end));
	assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
	l->ops->close(l);
}

static void one_that_ends_is_named_once_and_another_takes_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; hd_launchers[i]; i++)
		replaces_one_that_ends(hd_launchers[i]);
}

/* ---- slurmrestd */

static uint32_t submitted(void)
{
	struct hd_arena arena;
	uint8_t *bytes;
	char path[HD_PATH_CAP];
	size_t len;

	hd_arena_init(&arena, 0);
	snprintf(path, sizeof path, "%s/last", dir);
	assert_int_equal(hd_file_read_all(&fs, path, &arena, 20, &bytes, &len, NULL), HD_OK);
	const uint32_t n = (uint32_t)strtoul((char *)bytes, NULL, 10);
	hd_arena_finish(&arena);
	return n;
}

static uint32_t times_said(const char *what)
{
	uint32_t n = 0;

	for (const char *at = said; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* The commands are not to be found meanwhile. */
static void over_a_socket_slurm_does_the_same(void **state)
{
	const struct hd_launcher_ops *slurm = hd_launcher_find("slurm");
	const pid_t pid = slurmrestd_begin(dir);

	(void)state;
	settings.slurm.socket = rest;
	setenv("PATH", path_[0], 1);
	begins_as_many(slurm);
	replaces_one_that_ends(slurm);
	setenv("PATH", path_[1], 1);
	settings.slurm.socket = NULL;
	slurmrestd_end(pid);
}

/* Whatever happens to it, what is wanted begins, once; and it is asked again a minute later. */
static void where_the_socket_fails_the_commands_are_asked(void **state)
{
	static const struct { const char *does, *says; } cases[] = {
		{ "500", "answer 500" }, { "half", "the answer ended in its middle" }, { "deny", "SLURM_JWT" },
		{ "gone", "Connection refused" },
		{ "leave", "the connection ended without an answer" }, { "slow", "has not answered for 60 s" },
	};
	const struct hd_launcher_ops *slurm = hd_launcher_find("slurm");
	struct hd_launcher_count count;
	char log[HD_PATH_CAP];

	(void)state;
	snprintf(log, sizeof log, "%s/rest.log", dir);
	settings.slurm.socket = rest;
	faster = 1;                       /* a busy machine is not to look like a server that is silent */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		pid_t pid = slurmrestd_begin(dir);
		const bool gone = !strcmp(cases[i].does, "gone"), slow = !strcmp(cases[i].does, "slow");
		put("rest.does", "", 0600);
		struct hd_launcher *l = opened(slurm);
		if (gone)
			slurmrestd_end(pid);
		put("rest.does", cases[i].does, 0600);
		const uint32_t before = submitted();
		l->ops->want(l, 1);
		for (uint32_t k = 0; slow && k < 13; k++) {
			ahead_ns += INT64_C(5000000000);
			look(l);
		}
		await_running(l, 1);
		CHECK(submitted() == before + 1, "%s: %u submissions", cases[i].does, submitted() - before);
		CHECK(times_said(cases[i].says) == 1 && times_said("slurmrestd at") == 1, "%s: %s",
			cases[i].does, said);
		CHECK(times_said("has not answered for 5 s") || !slow, "%s: %s", cases[i].does, said);
		if (gone)
			pid = slurmrestd_begin(dir);
		put("rest.does", "", 0600);
		put("rest.log", "", 0600);
		ahead_ns += INT64_C(60000000000);
		for (struct stat st = { 0 }; !st.st_size; stat(log, &st))
			look(l);
		l->ops->count(l, &count);
		assert_int_equal(count.running, 1);
		assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
		l->ops->close(l);
		slurmrestd_end(pid);
	}
	faster = 8;
	settings.slurm.socket = NULL;
}

/* What a shell on the other side makes of the words is what they were. */
static void words_reach_a_worker_as_they_are(void **state)
{
	char **names;
	size_t n, found = 0;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_fs_list(&fs, dir, &arena, &names, &n, NULL), HD_OK);
	for (size_t i = 0; i < n; i++) {
		char path[HD_PATH_CAP];
		uint8_t *bytes;
		size_t len;
		if (strncmp(names[i], "words.", 6) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		assert_int_equal(hd_file_read_all(&fs, path, &arena, 100, &bytes, &len, NULL), HD_OK);
		assert_memory_equal(bytes, "worker it's\n", len);
		found++;
	}
	CHECK(found >= 3 * 4, "%zu workers said their words", found);
	hd_arena_finish(&arena);
}

static void hosts_are_taken_by_their_free_slots(void **state)
{
	struct hd_launcher *l = opened(hd_launcher_find("ssh"));
	char own[HD_ADDR_CAP];
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(l->ops->check(l, 4, own, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "has 3 slots"));
	l->ops->want(l, 3);
	await_running(l, 3);
	assert_string_equal(said, "place: worker 0 is started on 127.0.0.1\n"
		"place: worker 1 is started on 127.0.0.1\nplace: worker 2 is started on 127.0.0.2\n");
	assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
	l->ops->close(l);
}

static void a_machine_without_slurm_is_named(void **state)
{
	struct hd_launcher *l;
	char own[HD_ADDR_CAP];
	struct hd_diag diag = { "" };

	(void)state;
	put("sinfo", "#!/bin/sh\necho 'sinfo: fatal: Unable to process configuration file' >&2\nexit 1\n",
		0700);
	l = opened(hd_launcher_find("slurm"));
	assert_int_equal(l->ops->check(l, 1, own, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text, "this machine knows no cluster"));
	put("sinfo", "#!/bin/sh\n", 0700);
	diag.text[0] = '\0';
	assert_int_equal(l->ops->check(l, 1, own, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "sinfo -s"));
	l->ops->close(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_are_wanted_begin_and_none_is_left),
		cmocka_unit_test(one_that_ends_is_named_once_and_another_takes_its_place),
		cmocka_unit_test(words_reach_a_worker_as_they_are),
		cmocka_unit_test(over_a_socket_slurm_does_the_same),
		cmocka_unit_test(where_the_socket_fails_the_commands_are_asked),
		cmocka_unit_test(hosts_are_taken_by_their_free_slots),
		cmocka_unit_test(a_machine_without_slurm_is_named),
	};
	return cmocka_run_group_tests(tests, folder, no_folder);
}
