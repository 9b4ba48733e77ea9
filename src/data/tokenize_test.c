#include "data/tokenize.h"

#include <stdlib.h>

#include "sys/signal.h"
#include "data/token_write.h"
#include "data/tokens.h"
#include "tests/data_files.h"

static struct hd_fs_sim sim;
static struct hd_tokenizer *tokenizer;

static const char file[] = "{\"added_tokens\": [], \"pre_tokenizer\": {\"type\": \"Whitespace\"}, "
	"\"model\": {\"type\": "
	"\"WordLevel\", \"unk_token\": \"w0\", \"vocab\": {\"w0\": 0, \"w1\": 1, \"w2\": 2, \"w3\": 3}}}";

static int set_up(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "d");
	CHECK(!hd_tokenizer_create(&tokenizer, "t.json", file, sizeof file - 1, &diag), "%s", diag.text);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hd_tokenizer_destroy(tokenizer);
	hd_signal_stop_set(HD_STOP_NONE);
	hd_fs_sim_finish(&sim);
	return 0;
}

static bool exists(const char *path)
{
	struct hd_stat stat;

	return !hd_fs_stat(&sim.fs, path, &stat, NULL);
}

static size_t read_back(const char *path, uint8_t *bytes, size_t cap)
{
	struct hd_file f;
	size_t len;

	assert_int_equal(hd_file_open(&sim.fs, path, HD_OPEN_READ, &f, NULL), HD_OK);
	assert_int_equal(hd_file_read(&f, bytes, cap, &len, NULL), HD_OK);
	assert_int_equal(hd_file_close(&f, NULL), HD_OK);
	return len;
}

/* ---- the writer ---- */

static void a_file_appears_when_it_is_whole(void **state)
{
	static struct hd_token_out out;
	static const uint32_t ids[] = { 7, 65535, 9 };
	uint8_t bytes[2048];
	const uint8_t *at;
	uint64_t n;
	uint32_t width;

	(void)state;
	assert_int_equal(hd_token_out_begin(&out, &sim.fs, "d/o.bin", "d/o.at", 2, NULL), HD_OK);
	assert_int_equal(hd_token_out_add(&out, ids, 2, NULL), HD_OK);
	assert_int_equal(hd_token_out_add(&out, ids + 2, 1, NULL), HD_OK);
	assert_true(!exists("d/o.bin") && !exists("d/o.at") && exists("d/o.bin.tmp"));
	assert_int_equal(hd_token_out_end(&out, true, NULL), HD_OK);
	assert_true(exists("d/o.bin") && exists("d/o.at") && !exists("d/o.bin.tmp") && !exists("d/o.at.tmp"));
	const size_t len = read_back("d/o.bin", bytes, sizeof bytes);
	assert_int_equal(hd_tokens_parse(bytes, len, "o", &at, &n, &width, NULL), HD_OK);
	assert_true(n == 3 && width == 2 && at[0] == 7 && at[2] == 255 && at[3] == 255 && at[4] == 9);
	assert_int_equal(read_back("d/o.at", bytes, sizeof bytes), 24);
	assert_true(bytes[0] == 0 && bytes[8] == 2 && bytes[16] == 3);
}

static void what_is_given_up_leaves_nothing_and_the_old_file(void **state)
{
	static struct hd_token_out out;
	uint8_t bytes[16];

	(void)state;
	put_text(&sim.fs, "d/o.bin", "old");
	assert_int_equal(hd_token_out_begin(&out, &sim.fs, "d/o.bin", "d/o.at", 4, NULL), HD_OK);
	assert_int_equal(hd_token_out_end(&out, false, NULL), HD_OK);
	assert_true(!exists("d/o.bin.tmp") && !exists("d/o.at.tmp") && !exists("d/o.at"));
	assert_int_equal(read_back("d/o.bin", bytes, sizeof bytes), 3);
}

/* What a killed one left is longer than what comes. */
static void what_a_killed_one_left_is_taken_over(void **state)
{
	static struct hd_token_out out;
	static uint8_t bytes[8192];

	(void)state;
	put_file(&sim.fs, "d/o.bin.tmp", bytes, sizeof bytes);
	assert_int_equal(hd_token_out_begin(&out, &sim.fs, "d/o.bin", NULL, 2, NULL), HD_OK);
	assert_int_equal(hd_token_out_end(&out, true, NULL), HD_OK);
	assert_int_equal(read_back("d/o.bin", bytes, sizeof bytes), HD_TOKENS_HEADER_BYTES);
}

static void two_at_once_do_not_write_one_file(void **state)
{
	static struct hd_token_out one, two;
	struct hd_diag diag = { "" };

	(void)state;
	assert_int_equal(hd_token_out_begin(&one, &sim.fs, "d/o.bin", NULL, 2, NULL), HD_OK);
	assert_int_equal(hd_token_out_begin(&two, &sim.fs, "d/o.bin", NULL, 2, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "d/o.bin is being written by another process"), "%s", diag.text);
	assert_int_equal(hd_token_out_end(&two, false, NULL), HD_OK);
	assert_true(exists("d/o.bin.tmp"));
	assert_int_equal(hd_token_out_end(&one, true, NULL), HD_OK);
	assert_true(exists("d/o.bin"));
}

/* ---- texts to tokens ---- */

static const char *const texts[] = { "d/a", "d/b" };

static struct hd_tokenize how_of(uint32_t nthreads)
{
	return (struct hd_tokenize){ .tokenizer = tokenizer, .texts = texts, .ntexts = 2, .lines = true,
		.out = "d/o.bin",
		.bos = HD_TOKEN_NONE, .eos = 3, .nthreads = nthreads };
}

static void any_number_of_threads_writes_the_same(void **state)
{
	static char text[60000];
	static uint8_t first[1 << 18], bytes[1 << 18];
	struct hd_tokenize_report report;
	struct hd_diag diag = { "" };
	size_t at = 0, len = 0;

	(void)state;
	for (uint32_t i = 0; at + 40 < sizeof text; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "w%u w%u%s\n", i % 4, i * 7 % 5, i % 3 ?
			"" : " w1 w2");
	put_file(&sim.fs, "d/a", text, at);
	put_text(&sim.fs, "d/b", "w2");
	for (uint32_t n = 1; n <= 5; n++) {
		struct hd_tokenize how = how_of(n);
		CHECK(!hd_tokenize(&how, &sim.fs, &report, &diag), "%s", diag.text);
		const size_t got = read_back("d/o.bin", n == 1 ? first : bytes, sizeof bytes);
		len = n == 1 ? got : len;
		assert_true(got == len && (n == 1 || !memcmp(first, bytes, len)));
	}
	assert_true(report.bytes > 50000 && report.width_bytes == 2 && report.tokens == (len - 1024) / 2);
}

/* The first document that has an error names it, however many threads there are. */
static void an_error_is_that_of_the_first_document(void **state)
{
	struct hd_tokenize_report report;

	(void)state;
	put_text(&sim.fs, "d/a", "{\"t\": \"w1\"}\n{\"t\": 3}\n{\"q\": 1}\n[\n");
	put_text(&sim.fs, "d/b", "");
	for (uint32_t n = 1; n <= 4; n++) {
		struct hd_tokenize how = how_of(n);
		struct hd_diag diag = { "" };
		how.field = "t";
		assert_int_equal(hd_tokenize(&how, &sim.fs, &report, &diag), HD_E_INPUT);
		CHECK(strstr(diag.text, "d/a line 2"), "%s", diag.text);
		assert_true(!exists("d/o.bin") && !exists("d/o.bin.tmp"));
	}
}

static void a_request_to_stop_leaves_nothing(void **state)
{
	struct hd_tokenize how = how_of(2);
	struct hd_tokenize_report report;
	struct hd_diag diag = { "" };

	(void)state;
	put_text(&sim.fs, "d/a", "w1\nw2\n");
	put_text(&sim.fs, "d/b", "w1\n");
	how.boundaries = "d/o.at";
	hd_signal_stop_set(HD_STOP_INTERRUPT);
	assert_int_equal(hd_tokenize(&how, &sim.fs, &report, &diag), HD_E_INTERRUPT);
	CHECK(strstr(diag.text, "d/o.bin is not written"), "%s", diag.text);
	assert_true(!exists("d/o.bin") && !exists("d/o.bin.tmp") && !exists("d/o.at.tmp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_appears_when_it_is_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_given_up_leaves_nothing_and_the_old_file, set_up,
		tear_down),
		cmocka_unit_test_setup_teardown(what_a_killed_one_left_is_taken_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_at_once_do_not_write_one_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(any_number_of_threads_writes_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_error_is_that_of_the_first_document, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_request_to_stop_leaves_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
