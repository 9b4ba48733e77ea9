#include "sys/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file.h"
#include "tests/check.h"

struct visits { char text[1024]; };

static void note(void *user, const char *folder, bool v2)
{
	struct visits *visits = user;
	size_t at = strlen(visits->text);
	snprintf(visits->text + at, sizeof visits->text - at, "%s%s ", folder, v2 ? "(2)" : "(1)");
}

static void a_walk_visits_the_group_and_all_above_it(void **state)
{
	static const struct { const char *membership, *want; } cases[] = {
		{ "0::/a/b\n", "/r/a/b(2) /r/a(2) /r(2) " },
		{ "0::/\n", "/r(2) " },
		{ "0::/a", "/r/a(2) /r(2) " },
		{ "4:cpu,cpuacct:/x\n3:memory:/m\n", "/r/cpu,cpuacct/x(1) /r/cpu,cpuacct(1) /r/cpu/x(1) /r/cpu(1) " },
		{ "5:cpuset:/x\n1:name=systemd:/y\n", "" },
		{ "nonsense\n\n:\n", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct visits visits = { "" };
		hd_cgroup_walk_text("/r", cases[i].membership, "cpu", note, &visits);
		CHECK(!strcmp(visits.text, cases[i].want), "%s: %s", cases[i].membership, visits.text);
	}
}

static void small_texts_are_read_and_others_are_not_there(void **state)
{
	char folder[] = "/tmp/hd_cgroup_test.XXXXXX", path[64], text[HD_CGROUP_TEXT];
	char big[HD_CGROUP_TEXT];
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/cpu.max", folder);
	assert_int_equal(hd_file_write_atomic(&fs, path, "max 100000\n", 11, NULL), HD_OK);
	assert_true(hd_cgroup_text(folder, "cpu.max", text));
	assert_string_equal(text, "max 100000\n");
	assert_false(hd_cgroup_text(folder, "memory.max", text));
	memset(big, 'x', sizeof big);
	assert_int_equal(hd_file_write_atomic(&fs, path, big, sizeof big, NULL), HD_OK);
	assert_false(hd_cgroup_text(folder, "cpu.max", text));
	assert_int_equal(hd_fs_remove_tree(&fs, folder, NULL), HD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_visits_the_group_and_all_above_it),
		cmocka_unit_test(small_texts_are_read_and_others_are_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
