/* A file of scalars, read back by a reader of its own: lengths, checksums by the definition of CRC-32C, and
 * the fields of each message. */
#include "run/tensorboard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "run/rundir.h"
#include "tests/check.h"

static uint32_t crc_of(const uint8_t *at, size_t len)
{
	uint32_t crc = ~UINT32_C(0);

	for (size_t i = 0; i < len * 8; i++) {
		uint32_t bit = (crc ^ (uint32_t)at[i / 8] >> i % 8) & 1;
		crc = crc >> 1 ^ (bit ? UINT32_C(0x82f63b78) : 0);
	}
	crc = ~crc;
	return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static uint32_t u32_at(const uint8_t *at) { uint32_t v; memcpy(&v, at, 4); return v; }

/* Length of the record at `at`; its checksums are right. */
static size_t record_at(const uint8_t *at, size_t left)
{
	uint64_t len;

	assert_true(left >= 16);
	memcpy(&len, at, 8);
	assert_true(len <= left - 16);
	assert_int_equal(u32_at(at + 8), crc_of(at, 8));
	assert_int_equal(u32_at(at + 12 + len), crc_of(at + 12, len));
	return len;
}

static float scalar_of(const uint8_t *at, size_t len, const char *tag)
{
	size_t n = strlen(tag);

	for (size_t i = 2; i + n + 5 <= len; i++)
		if (at[i - 2] == 10 && at[i - 1] == n && !memcmp(at + i, tag, n) && at[i + n] == 21) {
			float v;
			memcpy(&v, at + i + n + 1, 4);
			return v;
		}
	fail_msg("no %s", tag);
	return 0;
}

static void records_hold_what_the_run_said(void **state)
{
	const struct hd_step_record record = { .step = 300, .samples = 4096, .loss_sum = 10, .weight = 4,
		.gnorm = 2, .lr = 0.25f };
	const struct hd_step_times times = { .step_ms = 12.5, .workers = 3 };
	static const char metrics[] = "{\"split\":\"test\",\"loss\":0.5,\"accuracy\":0.5,\"f1-macro\":0.25,"
		"\"rows\":6}";
	const struct hd_json *eval;
	struct hd_arena arena;
	struct hd_clock_sim clock;
	struct hd_fs_sim fs;
	struct hd_tensorboard tb;
	struct hd_diag diag = { "" };
	struct hd_file file;
	uint8_t bytes[4096];
	size_t got, at = 0, n = 0, len[8];

	(void)state;
	hd_clock_sim(&clock, 1, INT64_C(1700000000000000000));
	hd_fs_sim_init(&fs);
	CHECK(!hd_fs_mkdirs(&fs.fs, "/run", &diag), "%s", diag.text);
	CHECK(!hd_tensorboard_open(&tb, &fs.fs, &clock.clock, "/run", 299, &diag), "%s", diag.text);
	hd_tensorboard_step(&tb, &record, &times);
	hd_arena_init(&arena, 0);
	CHECK(!hd_json_parse(&arena, "eval", metrics, sizeof metrics - 1, &eval, &diag), "%s", diag.text);
	hd_tensorboard_eval(&tb, 300, eval);
	hd_arena_finish(&arena);
	char path[HD_TENSORBOARD_PATH];
	snprintf(path, sizeof path, "%s", tb.path);
	hd_tensorboard_close(&tb);
	CHECK(!hd_file_open(&fs.fs, path, HD_OPEN_READ, &file, &diag), "%s", diag.text);
	CHECK(!hd_file_pread(&file, bytes, sizeof bytes, 0, &got, &diag), "%s", diag.text);
	for (; at < got; at += len[n++] + 16)
		len[n] = record_at(bytes + at, got - at);
	assert_int_equal(at, got);
	assert_int_equal(n, 4);
	const uint8_t *step = bytes + len[0] + len[1] + 2 * 16 + 12;
	assert_int_equal(scalar_of(step, len[2], "loss") * 100, 250);
	assert_int_equal(scalar_of(step, len[2], "lr") * 100, 25);
	assert_int_equal(scalar_of(step, len[2], "workers"), 3);
	const uint8_t *last = step + len[2] + 16;
	assert_int_equal(scalar_of(last, len[3], "eval_test/loss") * 10, 5);
	assert_int_equal(scalar_of(last, len[3], "eval_test/accuracy") * 10, 5);
	assert_int_equal(scalar_of(last, len[3], "eval_test/f1-macro") * 100, 25);
	for (size_t i = 0; i + 4 <= len[3]; i++)
		assert_memory_not_equal(last + i, "rows", 4);
	(void)!hd_file_close(&file, NULL);
	hd_fs_sim_finish(&fs);
}

/* A full disk: what was half written goes, and the file goes on once there is room. */
static void a_record_that_is_lost_leaves_the_file_whole(void **state)
{
	const struct hd_step_record record = { .step = 300, .weight = 1 };
	const struct hd_step_times times = { .step_ms = 1, .workers = 1 };
	struct hd_clock_sim clock;
	struct hd_fs_sim fs;
	struct hd_tensorboard tb;
	struct hd_diag diag = { "" };
	struct hd_file file;
	uint8_t bytes[4096];
	char path[HD_TENSORBOARD_PATH];
	size_t got, at = 0, n = 0;

	(void)state;
	hd_clock_sim(&clock, 1, INT64_C(1700000000000000000));
	hd_fs_sim_init(&fs);
	CHECK(!hd_fs_mkdirs(&fs.fs, "/run", &diag), "%s", diag.text);
	CHECK(!hd_tensorboard_open(&tb, &fs.fs, &clock.clock, "/run", 0, &diag), "%s", diag.text);
	hd_tensorboard_step(&tb, &record, &times);
	hd_fs_sim_fail(&fs, 1, ENOSPC, false);
	hd_tensorboard_step(&tb, &record, &times);
	assert_int_equal(tb.lost, 1);
	hd_tensorboard_step(&tb, &record, &times);
	snprintf(path, sizeof path, "%s", tb.path);
	hd_tensorboard_close(&tb);
	CHECK(!hd_file_open(&fs.fs, path, HD_OPEN_READ, &file, &diag), "%s", diag.text);
	CHECK(!hd_file_pread(&file, bytes, sizeof bytes, 0, &got, &diag), "%s", diag.text);
	for (; at < got; n++)
		at += record_at(bytes + at, got - at) + 16;
	assert_int_equal(at, got);
	assert_int_equal(n, 4);
	(void)!hd_file_close(&file, NULL);
	hd_fs_sim_finish(&fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(records_hold_what_the_run_said),
		cmocka_unit_test(a_record_that_is_lost_leaves_the_file_whole) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
