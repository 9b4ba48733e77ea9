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
#include "tests/check.h"

/* Pauses between questions are part of the contract, and long: a second here is eight to a launcher. */
enum { FASTER = 8 };
static int64_t fast_now_ns(struct hd_clock *clock);
static int64_t fast_wall_ns(struct hd_clock *clock);
static void fast_wait(struct hd_clock *clock, int64_t at_ns);
static const struct hd_clock_ops fast = { "fast", fast_now_ns, fast_wall_ns, fast_wait };

static struct hd_fs fs;
static struct hd_clock real, clock_ = { &fast };
static struct hd_host host;
static char dir[64], said[4000], worker[HD_PATH_CAP], hosts[HD_PATH_CAP];
static struct hd_launcher_settings settings;
static const char *argv_[] = { worker, "worker", "it's", NULL };

static int64_t fast_now_ns(struct hd_clock *clock)
{
	(void)clock;
	return FASTER * hd_clock_now_ns(&real);
}
static int64_t fast_wall_ns(struct hd_clock *clock)
{
	(void)clock;
	return hd_clock_wall_ns(&real);
}
static void fast_wait(struct hd_clock *clock, int64_t at_ns)
{
	(void)clock;
	hd_clock_wait_until(&real, at_ns / FASTER);
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
	char path[4096 + 200];

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
	snprintf(path, sizeof path, "%s:%.4000s", dir, getenv("PATH"));
	setenv("PATH", path, 1);
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

static void as_many_as_are_wanted_begin_and_none_is_left(void **state)
{
	(void)state;
	for (size_t i = 0; hd_launchers[i]; i++) {
		char own[HD_ADDR_CAP] = "unset";
		struct hd_launcher *l = opened(hd_launchers[i]);
		assert_ptr_equal(hd_launcher_find(l->ops->name), l->ops);
		assert_int_equal(l->ops->check(l, 3, own, NULL), HD_OK);
		assert_string_equal(own, l->ops->net ? "127.0.0.1" : "");
		l->ops->want(l, 2);
		await_running(l, 2);
		l->ops->want(l, 3);
		await_running(l, 3);
		assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
		struct hd_launcher_count count = { .running = 9 };
		l->ops->count(l, &count);
		assert_int_equal(count.running, 0);
		l->ops->close(l);
	}
}

static void one_that_ends_is_named_once_and_another_takes_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; hd_launchers[i]; i++) {
		struct hd_launcher *l = opened(hd_launchers[i]);
		struct hd_launcher_end end = { .code = -1 };
		l->ops->want(l, 1);
		await_running(l, 1);
		put("go", "3", 0600);
		while (!l->ops->ended(l, &end))
			look(l);
		CHECK(end.code == 3 && end.alike == 1 && end.name[0], "%s: %d, %u alike", l->ops->name,
			end.code,
			end.alike);
		no_file("go");
		await_running(l, 1);
		assert_false(l->ops->ended(l, &end));
		assert_int_equal(l->ops->stop(l, 0, NULL), HD_OK);
		l->ops->close(l);
	}
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
		cmocka_unit_test(hosts_are_taken_by_their_free_slots),
		cmocka_unit_test(a_machine_without_slurm_is_named),
	};
	return cmocka_run_group_tests(tests, folder, no_folder);
}
