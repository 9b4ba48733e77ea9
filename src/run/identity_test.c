/* What a run began with: printed and parsed, compared with what is here now. */
#include "run/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static const char five_rows[] = "a,b,y\n0,0,0\n0.5,0.25,1\n1,0.5,2\n0.25,1,0\n0.75,0.5,1\n";

struct test_place { struct hd_arena arena; struct hd_fs fs; struct hd_clock clock; char root[64];
	struct hd_rundir dir; };

static void put(struct test_place *p, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", p->root, name);
	CHECK(!hd_file_write_atomic(&p->fs, path, text, strlen(text), NULL), "%s", path);
}

static int enter(void **state)
{
	static struct test_place p;
	struct hd_diag diag = { "" };

	memset(&p, 0, sizeof p);
	hd_arena_init(&p.arena, 0);
	hd_fs_real(&p.fs);
	hd_clock_real(&p.clock);
	strncpy(p.root, "/tmp/hd_identity_test.XXXXXX", sizeof p.root - 1);
	assert_non_null(mkdtemp(p.root));
	put(&p, "rows.csv", five_rows);
	char run[128];
	snprintf(run, sizeof run, "%s/run", p.root);
	CHECK(!hd_rundir_create(&p.dir, &p.fs, &p.clock, ".", run, "x", "job: {}\n", 8, &diag), "%s",
		diag.text);
	*state = &p;
	return 0;
}

static int leave(void **state)
{
	struct test_place *p = *state;

	hd_rundir_close(&p->dir);
	CHECK(!hd_fs_remove_tree(&p->fs, p->root, NULL), "%s", p->root);
	hd_arena_finish(&p->arena);
	return 0;
}

/* `data`: NULL for rows.csv. */
static struct hd_task *task_of_data(struct test_place *p, uint64_t seed, const char *data)
{
	struct hd_job *job = hd_arena_take(&p->arena, 1, sizeof *job);
	struct hd_diag diag = { "" };
	struct hd_task *task;
	char yaml[512], rows[200];

	snprintf(rows, sizeof rows, "kind: csv, path: %s/rows.csv, split: {train: 1, valid: 0}", p->root);
	snprintf(yaml, sizeof yaml,
		"job: {seed: %llu, steps: 9}\nmodel: {use: \"builtin:mlp\", args: {input: [2], hidden: [3], "
		"classes: 3}}\n"
		"data: {%s}\nbatch: {global: 2, virtual_nodes: 2}\n", (unsigned long long)seed,
		data ? data : rows);
	CHECK(hd_job_parse(job, "test.yaml", yaml, strlen(yaml), NULL, 0, &p->arena, &diag, NULL) == HD_OK,
		"%s", diag.text);
	CHECK(hd_task_create(&task, job, &p->fs, &diag) == HD_OK, "%s", diag.text);
	return task;
}

static struct hd_task *task_of(struct test_place *p, uint64_t seed) { return task_of_data(p, seed, NULL); }

static enum hd_err join(struct test_place *p, uint64_t seed, struct hd_diag *diag)
{
	struct hd_task *task = task_of(p, seed);

	*diag = (struct hd_diag){ "" };
	enum hd_err err = hd_identity_join(&p->fs, p->dir.path, task, diag);
	hd_task_destroy(task);
	return err;
}

static void begin(struct test_place *p)
{
	struct hd_task *task = task_of(p, 1);
	struct hd_diag diag = { "" };

	CHECK(hd_identity_keep(&p->dir, task, &diag) == HD_OK && !diag.text[0], "%s", diag.text);
	hd_task_destroy(task);
}

static void what_is_printed_is_parsed(void **state)
{
	const struct hd_data_file file[2] = { { .name = "a \"b\"\n", .size_bytes = INT64_MAX,
		.changed_wall_ns = -5, .inode = UINT64_MAX,
		.sample = { { 1, 2 } } }, { .name = "" } };
	const struct hd_identity one = { .job = { { 7 } }, .data = { { 9, 8 } }, .count = 12, .file = file,
		.nfiles = 2 };
	struct test_place *p = *state;
	struct hd_identity back;
	struct hd_text first, second;
	struct hd_diag diag = { "" };

	hd_text_init(&first, &p->arena);
	hd_text_init(&second, &p->arena);
	CHECK(!hd_identity_print(&one, &first, &diag) && !hd_identity_parse(&back, &p->arena, "x", first.at,
		first.len, &diag), "%s", diag.text);
	CHECK(!hd_identity_print(&back, &second, &diag) && second.len == first.len &&
		!memcmp(first.at, second.at, first.len), "%s\n%s", first.at, second.at);
	CHECK(first.len > 2 && !strcmp(first.at + first.len - 2, "}\n"), "%s", first.at);
	assert_int_equal(back.nfiles, 2);
	assert_string_equal(back.file[0].name, file[0].name);
	assert_true(back.file[0].inode == UINT64_MAX && back.file[0].changed_wall_ns == -5);
}

/* The identity of now, with a blank before it. */
static void begin_again(struct test_place *p, const char *path)
{
	char text[4000] = " ";
	uint8_t *bytes;
	size_t len;

	assert_int_equal(hd_fs_unlink(&p->fs, path, NULL), HD_OK);
	begin(p);
	assert_int_equal(hd_file_read_all(&p->fs, path, &p->arena, sizeof text - 2, &bytes, &len, NULL),
		HD_OK);
	memcpy(text + 1, bytes, len);
	assert_int_equal(hd_rundir_put(&p->dir, HD_IDENTITY_NAME, text, len + 1, NULL), HD_OK);
}

#define HASH "\"000102030405060708090a0b0c0d0e0f\""

static void what_is_not_understood_is_refused(void **state)
{
	static const char *const bad[] = { "", "[]", "{}", "{\"v\":2}",
		"{\"v\":1,\"job\":\"00\",\"data\":{}}",
		"{\"v\":1,\"job\":" HASH ",\"data\":{\"count\":1,\"hash\":" HASH ",\"files\":[1]}}",
		"{\"v\":1,\"job\":" HASH ",\"data\":{\"count\":-1,\"hash\":" HASH ",\"files\":[]}}",
		"{\"v\":1,\"job\":" HASH ",\"data\":{\"count\":1,\"hash\":" HASH ",\"files\":[]},\"x\":1}" };
	struct test_place *p = *state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hd_identity out;
		struct hd_diag diag = { "" };
		CHECK(hd_identity_parse(&out, &p->arena, "x", bad[i], strlen(bad[i]), &diag) == HD_E_INPUT &&
			diag.text[0], "%zu: %s", i, bad[i]);
	}
}

static const char good[] =
	"{\"v\":1,\"job\":" HASH ",\"data\":{\"count\":3,\"hash\":" HASH ",\"files\":[{\"name\":\"a\","
	"\"size\":1,\"changed\":2,"
	"\"inode\":4,\"sample\":" HASH "}]}}";

/* Every field by itself: another type or range, another name, left out. Nothing of it is taken. */
static void each_field_is_asked_for(void **state)
{
	static const struct { const char *is, *becomes; } cases[] = {
		{ "\"v\":1", "\"v\":\"1\"" }, { "\"v\":1", "\"v\":0" }, { "\"v\":1", "\"v\":2" }, { "\"v\":1", "\"w\":1" }, { "\"v\":1,", "" },
		{ "\"v\":1", "\"v\":1,\"x\":1" }, { "\"job\":" HASH, "\"job\":1" }, { "\"job\":" HASH, "\"job\":\"abc\"" }, { "\"job\"", "\"jobs\"" },
		{ "\"data\":{", "\"data\":[{" }, { "\"data\"", "\"datum\"" }, { "\"count\":3", "\"count\":-3" }, { "\"count\":3", "\"count\":\"x\"" },
		{ "\"count\":3", "\"counts\":3" }, { "\"count\":3,", "" }, { "\"count\":3", "\"count\":3,\"x\":1" },
		{ "\"hash\":" HASH, "\"hash\":\"\"" }, { "\"hash\":" HASH, "\"hash\":null" }, { "\"hash\"", "\"hush\"" },
		{ "\"files\":[", "\"files\":7,\"x\":[" }, { "\"files\"", "\"filed\"" }, { "[{", "[[],{" }, { "[{", "[1,{" },
		{ "\"name\":\"a\"", "\"name\":1" }, { "\"name\"", "\"nome\"" }, { "\"name\":\"a\",", "" }, { "\"name\":\"a\"", "\"name\":\"a\",\"x\":1" },
		{ "\"size\":1", "\"size\":-1" }, { "\"size\":1", "\"size\":\"1\"" }, { "\"size\"", "\"sized\"" },
		{ "\"changed\":2", "\"changed\":2.5" }, { "\"changed\"", "\"change\"" }, { "\"inode\":4", "\"inode\":-4" }, { "\"inode\"", "\"node\"" },
		{ "\"sample\":" HASH, "\"sample\":\"xx\"" }, { "\"sample\"", "\"simple\"" },
	};
	struct test_place *p = *state;
	struct hd_identity out;

	assert_int_equal(hd_identity_parse(&out, &p->arena, "x", good, strlen(good), NULL), HD_OK);
	assert_true(out.count == 3 && out.nfiles == 1 && out.file[0].size_bytes == 1 &&
		out.file[0].inode == 4);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *at = strstr(good, cases[i].is);
		struct hd_diag diag = { "" };
		char text[600];
		assert_non_null(at);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, cases[i].becomes,
			at + strlen(cases[i].is));
		out = (struct hd_identity){ .count = 99 };
		CHECK(hd_identity_parse(&out, &p->arena, "x", text, strlen(text), &diag) == HD_E_INPUT &&
			diag.text[0], "%zu: %s", i, text);
		CHECK(out.count == 99 && !out.file, "%zu: something of it was taken", i);
	}
}

static void more_files_than_can_be_are_refused(void **state)
{
	struct test_place *p = *state;
	struct hd_identity out;
	struct hd_text text;
	struct hd_arena little;

	for (int n = 4096; n <= 4097; n++) {
		struct hd_diag diag = { "" };
		hd_text_init(&text, &p->arena);
		hd_text_add(&text,
			"{\"v\":1,\"job\":" HASH ",\"data\":{\"count\":3,\"hash\":" HASH ",\"files\":[");
		for (int i = 0; i < n; i++)
			hd_text_addf(&text,
				"%s{\"name\":\"a\",\"size\":1,\"changed\":2,\"inode\":4,\"sample\":" HASH "}",
				i ? "," : "");
		hd_text_add(&text, "]}}");
		CHECK(hd_identity_parse(&out, &p->arena, "x", text.at, text.len,
			&diag) == (n > 4096 ? HD_E_INPUT : HD_OK), "%s", diag.text);
		assert_true(n == 4096 || strstr(diag.text, "4097 members, more than 4096"));
	}
	/* memory ends at each place in turn */
	enum hd_err err = HD_E_NOMEM;
	for (size_t bytes = 64; err; bytes += 16) {
		hd_arena_init(&little, bytes);
		err = hd_identity_parse(&out, &little, "x", good, strlen(good), NULL);
		CHECK(!err || err == HD_E_NOMEM, "%zu bytes: %d", bytes, err);
		hd_arena_finish(&little);
	}
	const struct hd_identity one = { .count = 12 };
	char room[20];
	hd_text_fixed(&text, room, sizeof room);
	assert_int_equal(hd_identity_print(&one, &text, NULL), HD_E_NOMEM);
}

/* Rule 1: the content decides; what is said names the file by its size, else by its sample, else by its
 * time or inode. */
static void what_differs_is_named(void **state)
{
	const struct hd_data_file a = { .name = "a", .size_bytes = 5, .changed_wall_ns = 7, .inode = 9,
		.sample = { { 1 } } };
	struct hd_data_file longer = a, sampled = a, later = a, moved = a;
	longer.name = "longer"; longer.size_bytes = 6;
	sampled.name = "sampled"; sampled.sample.byte[0] = 2;
	later.name = "later"; later.changed_wall_ns = 8;
	moved.name = "moved"; moved.inode = 10;
	const struct { struct hd_data_file file[3]; uint32_t n; uint64_t count; uint8_t hash;
		const char *says; } cases[] = {
		{ { a, a, a }, 3, 4, 1, NULL },
		{ { longer, sampled, later }, 3, 4, 1, NULL },           /* the same content */
		{ { a, a, a }, 3, 5, 1, "5 samples in 3 files instead of 4 in 3, or other content" },
		{ { a, a, a }, 3, 4, 2, "4 samples in 3 files instead of 4 in 3, or other content" },
		{ { a, a, longer }, 2, 4, 2, "4 samples in 2 files instead of 4 in 3, or other content" },
		{ { longer, sampled, a }, 2, 4, 2, "4 samples in 2 files instead of 4 in 3, or other content" },
		{ { a, sampled, longer }, 3, 4, 2, "longer has 6 bytes instead of 5" },
		{ { later, moved, sampled }, 3, 4, 2, "sampled has as many bytes and other content" },
		{ { a, later, moved }, 3, 4, 2, "later has as many bytes and other content" },
		{ { a, a, moved }, 3, 4, 2, "moved has as many bytes and other content" },
	};
	const struct hd_data_file old[3] = { a, a, a };
	const struct hd_identity was = { .data = { { 1 } }, .count = 4, .file = old, .nfiles = 3 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct hd_identity is = { .data = { { cases[i].hash } }, .count = cases[i].count,
			.file = cases[i].file, .nfiles = cases[i].n };
		struct hd_diag diag = { "" };
		CHECK(hd_identity_data(&was, &is, &diag) == (cases[i].says ? HD_E_INTEGRITY : HD_OK),
			"case %zu", i);
		CHECK(!cases[i].says || strstr(diag.text, cases[i].says), "case %zu: %s", i, diag.text);
	}
}

/* An identity that cannot be read is neither trusted nor overwritten; one that holds is not written
 * again. */
static void what_lies_there_stays(void **state)
{
	static const char broken[] = "{\"v\":1}";
	struct test_place *p = *state;
	struct hd_diag diag = { "" };
	struct hd_task *task = task_of(p, 1);
	uint8_t *bytes;
	size_t len;

	assert_int_equal(hd_rundir_put(&p->dir, HD_IDENTITY_NAME, broken, strlen(broken), NULL), HD_OK);
	assert_int_equal(hd_identity_keep(&p->dir, task, &diag), HD_E_INPUT);
	assert_non_null(strstr(diag.text, "members instead of 3"));
	assert_int_equal(join(p, 1, &diag), HD_E_INPUT);
	assert_true(diag.text[0]);
	struct hd_diag other = { "" };
	assert_int_equal(hd_identity_take(&p->fs, p->dir.path, task, &other, &diag), HD_E_INPUT);
	char path[600];
	snprintf(path, sizeof path, "%s/" HD_IDENTITY_NAME, p->dir.path);
	assert_int_equal(hd_file_read_all(&p->fs, path, &p->arena, 1 << 16, &bytes, &len, NULL), HD_OK);
	assert_int_equal(len, strlen(broken));
	begin_again(p, path);
	assert_int_equal(hd_identity_keep(&p->dir, task, &diag), HD_OK);
	assert_int_equal(hd_file_read_all(&p->fs, path, &p->arena, 1 << 16, &bytes, &len, NULL), HD_OK);
	assert_int_equal(bytes[0], ' ');                          /* ours, with a mark */
	assert_int_equal(hd_identity_take(&p->fs, "/tmp/no run of that name", task, &other, &diag), HD_OK);
	assert_string_equal(other.text, "");
	hd_task_destroy(task);
	task = task_of(p, 2);
	assert_int_equal(hd_identity_take(&p->fs, p->dir.path, task, &other, &diag), HD_E_INVAL);
	hd_task_destroy(task);
}

static void who_joins_proves_its_data(void **state)
{
	static const struct { const char *rows, *says; } other[] = {
		{ "a,b,y\n0,0,0\n0.5,0.25,1\n1,0.5,2\n0.25,1,0\n0.75,0.6,1\n", "rows.csv has as many bytes and other content" },
		{ "a,b,y\n0,0,0\n0.5,0.25,1\n1,0.5,2\n0.25,1,0\n", "rows.csv has 40 bytes instead of 51" },
	};
	struct test_place *p = *state;
	struct hd_diag diag;

	assert_int_equal(join(p, 1, &diag), HD_OK);              /* a run of before there were identities */
	begin(p);
	assert_int_equal(join(p, 1, &diag), HD_OK);
	/* another file of another time, and the same content */
	put(p, "rows.csv", five_rows);
	assert_int_equal(join(p, 1, &diag), HD_OK);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		put(p, "rows.csv", other[i].rows);
		assert_int_equal(join(p, 1, &diag), HD_E_INTEGRITY);
		CHECK(strstr(diag.text, other[i].says) && strstr(diag.text, "put the old data back"), "%s",
			diag.text);
	}
	put(p, "rows.csv", five_rows);
	assert_int_equal(join(p, 1, &diag), HD_OK);
	assert_int_equal(join(p, 2, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "what fixes the result differs"), "%s", diag.text);
}

static void who_goes_on_keeps_the_data_and_may_have_another_job(void **state)
{
	struct test_place *p = *state;
	struct hd_diag diag = { "" };

	begin(p);
	struct hd_task *other = task_of(p, 2);
	assert_int_equal(hd_identity_keep(&p->dir, other, &diag), HD_OK);        /* another lineage */
	hd_task_destroy(other);
	assert_int_equal(join(p, 2, &diag), HD_OK);
	assert_int_equal(join(p, 1, &diag), HD_E_INVAL);
	put(p, "rows.csv", "a,b,y\n1,1,0\n0.5,0.25,1\n1,0.5,2\n0.25,1,0\n0.75,0.5,1\n");
	other = task_of(p, 2);
	diag.text[0] = '\0';
	assert_int_equal(hd_identity_keep(&p->dir, other, &diag), HD_E_INTEGRITY);
	hd_task_destroy(other);
}

static struct hd_identity kept(struct test_place *p)
{
	struct hd_identity at;
	struct hd_diag diag = { "" };

	CHECK(hd_identity_read(&at, &p->arena, &p->fs, p->dir.path, &diag) == HD_OK, "%s", diag.text);
	return at;
}

/* Data that are made up follow the job, and go on with another one as what that makes of them. Where there
 * are files on either side, or the job is the same, other data are refused and what is kept stays. */
static void data_made_up_follow_their_job(void **state)
{
	static const char made[] = "kind: synthetic, count: 60";
	static const struct { const char *was; bool same_job; const char *is; enum hd_err err; } cases[] = {
		{ made, false, made, HD_OK }, { made, true, made, HD_E_INTEGRITY }, { NULL, false, made, HD_E_INTEGRITY },
		{ made, false, NULL, HD_E_INTEGRITY },
	};
	struct test_place *p = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_task *was = task_of_data(p, 1, cases[i].was),
			*is = task_of_data(p, cases[i].same_job ? 1 : 2, cases[i].is);
		struct hd_identity first = hd_identity_of(was);
		struct hd_text text;
		struct hd_diag diag = { "" };
		hd_text_init(&text, &p->arena);
		first.data.byte[0] ^= 1;                          /* in each case other data */
		assert_int_equal(hd_identity_print(&first, &text, NULL), HD_OK);
		assert_int_equal(hd_rundir_put(&p->dir, HD_IDENTITY_NAME, text.at, text.len, NULL), HD_OK);
		CHECK(hd_identity_keep(&p->dir, is, &diag) == cases[i].err, "case %zu: %s", i, diag.text);
		CHECK(!diag.text[0] == !cases[i].err, "case %zu: %s", i, diag.text);
		const struct hd_identity now = hd_identity_of(is), at = kept(p),
			*want = cases[i].err ? &first : &now;
		CHECK(hd_hash_same(at.job, want->job) && hd_hash_same(at.data, want->data),
			"case %zu: another one is kept", i);
		hd_task_destroy(was);
		hd_task_destroy(is);
	}
}

static void who_takes_over_speaks_for_the_old_data(void **state)
{
	struct test_place *p = *state;
	struct hd_diag diag = { "" }, says = { "" };

	begin(p);
	struct hd_task *task = task_of(p, 1);
	struct hd_hash was = task->data->hash;
	assert_int_equal(hd_identity_take(&p->fs, p->dir.path, task, &says, &diag), HD_OK);
	assert_string_equal(says.text, "");
	hd_task_destroy(task);
	put(p, "rows.csv", "a,b,y\n1,1,0\n0.5,0.25,1\n1,0.5,2\n0.25,1,0\n0.75,0.5,1\n");
	task = task_of(p, 1);
	assert_int_equal(hd_identity_take(&p->fs, p->dir.path, task, &says, &diag), HD_OK);
	CHECK(strstr(says.text, "rows.csv has ") && !diag.text[0], "%s, %s", says.text, diag.text);
	assert_true(hd_hash_same(task->data->hash, was));
	hd_task_destroy(task);
	/* fewer: the steps of an epoch are others */
	put(p, "rows.csv", "a,b,y\n1,1,0\n0.5,0.25,1\n1,0.5,2\n");
	task = task_of(p, 1);
	assert_int_equal(hd_identity_take(&p->fs, p->dir.path, task, &says, &diag), HD_E_INTEGRITY);
	hd_task_destroy(task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_printed_is_parsed, enter, leave),
		cmocka_unit_test_setup_teardown(what_is_not_understood_is_refused, enter, leave),
		cmocka_unit_test_setup_teardown(each_field_is_asked_for, enter, leave),
		cmocka_unit_test_setup_teardown(more_files_than_can_be_are_refused, enter, leave),
		cmocka_unit_test_setup_teardown(what_differs_is_named, enter, leave),
		cmocka_unit_test_setup_teardown(what_lies_there_stays, enter, leave),
		cmocka_unit_test_setup_teardown(who_joins_proves_its_data, enter, leave),
		cmocka_unit_test_setup_teardown(who_goes_on_keeps_the_data_and_may_have_another_job, enter,
		leave),
		cmocka_unit_test_setup_teardown(data_made_up_follow_their_job, enter, leave),
		cmocka_unit_test_setup_teardown(who_takes_over_speaks_for_the_old_data, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
