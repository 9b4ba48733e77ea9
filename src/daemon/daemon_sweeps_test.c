/* Sweeps of a folder, listed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "daemon/daemon_int.h"
#include "tests/check.h"

enum { N = 6, FILL = 1 << 20 };

static void put_table(const char *dir, int i)
{
	char path[120], *fill = hd_alloc(FILL + 1);

	assert_non_null(fill);
	memset(fill, 'x', FILL);
	fill[FILL] = '\0';
	snprintf(path, sizeof path, "%s/sweeps/s%d", dir, i);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/sweeps/s%d/table.json", dir, i);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "{\"name\":\"s%d\",\"method\":\"%s\",\"metric\":\"loss\",\"goal\":\"min\",\"over\":true,"
		"\"best\":0,\"steps\":3,\"exhaustive\":9,\"trials\":[{},{}]}\n", i, fill);
	fclose(f);
	hd_free(fill);
}

/* A table may be of 4 MiB, and there may be hundreds: they are in memory one after the other. */
static void tables_are_not_in_memory_at_once(void **state)
{
	char dir[] = "/tmp/hd_daemon_sweeps_test.XXXXXX", path[80];
	struct hd_fs fs;
	const struct hd_daemon_spec spec = { .fs = &fs, .dir = dir };
	static struct hd_daemon d;
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_text text;
	struct hd_diag diag = { "" };
	(void)state;

	hd_fs_real(&fs);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/sweeps", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < N; i++)
		put_table(dir, i);
	d = (struct hd_daemon){ .spec = &spec, .fs = &fs };
	hd_arena_init(&d.scratch, FILL);          /* one has no room in it */
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	CHECK(!daemon_show_sweeps(&d, NULL, &w, &diag), "%s", diag.text);
	hd_json_close(&w);
	for (int i = 0; i < N; i++) {
		char name[24];
		snprintf(name, sizeof name, "\"name\":\"s%d\"", i);
		CHECK(strstr(text.at, name), "sweep %d is not listed", i);
	}
	hd_arena_finish(&d.scratch);
	hd_arena_finish(&arena);
	assert_int_equal(hd_fs_remove_tree(&fs, dir, NULL), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_not_in_memory_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
