#include "run/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

static struct hd_fs fs;
static struct hd_arena arena;

static int open_world(void **state)
{
	(void)state;
	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	return 0;
}

static int close_world(void **state) { (void)state; hd_arena_finish(&arena); return 0; }

static char path[] = "/tmp/hd_curve_test.XXXXXX";

static void put(const char *text, size_t len)
{
	assert_int_equal(hd_file_write_atomic(&fs, path, text, len, NULL), HD_OK);
}

static size_t add_line(char *to, int64_t step, int width)
{
	return (size_t)snprintf(to, 4096, "{\"v\":1,\"step\":%lld,\"t\":%g,\"loss\":%g,\"lr\":0.5,"
		"\"workers\":%lld,"
		"\"step_ms\":2,\"pad\":\"%*s\"}\n", (long long)step, 0.25 * (double)step,
		1 / (1.0 + (double)step), (long long)(1 + step % 3), width, "");
}

static void check_points(const struct hd_loss_point *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		CHECK((!i || p[i].step > p[i - 1].step) && p[i].t == 0.25 * (double)p[i].step &&
			fabs(p[i].loss * (1 + (double)p[i].step) - 1) < 1e-4 &&
			p[i].workers == 1 + p[i].step % 3 && p[i].lr == 0.5 && p[i].step_ms == 2,
			"point %u: step %lld, loss %g", i, (long long)p[i].step, p[i].loss);
}

static uint32_t read_back(uint32_t most, const struct hd_loss_point **p)
{
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	CHECK(hd_curve_read(&fs, path, most, &arena, p, &n, &diag) == HD_OK, "%s", diag.text);
	check_points(*p, n);
	return n;
}

/* Lines of any width, from none to many more than points. */
static void a_file_is_there_whole_or_evenly(void **state)
{
	static const int64_t lines[] = { 0, 1, 2, 3, 7, 100, 5000 };
	char *text = malloc(8 << 20);
	(void)state;

	for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
		for (int width = 1; width < 1200; width = width * 5 + 3) {
			const struct hd_loss_point *p = NULL;
			size_t len = 0;
			for (int64_t step = 0; step < lines[k]; step++)
				len += add_line(text + len, step, width + (int)(step % 7));
			put(text, len);
			for (uint32_t most = 2; most <= 1600; most = 3 * most + 1) {
				uint32_t n = read_back(most, &p);
				CHECK(n <= most && (!lines[k] || (p[0].step == 0 &&
					p[n - 1].step == lines[k] - 1)), "%lld lines, at most %u: %u",
					(long long)lines[k], most, n);
				CHECK(n == lines[k] || most < 3 * lines[k], "%u of %lld lines, at most %u", n,
					(long long)lines[k], most);
				for (uint32_t i = 1; i < n && lines[k] == 5000; i++)
					CHECK(p[i].step - p[i - 1].step <= 2 * 5000 / (int64_t)most + 2,
						"%lld, then %lld", (long long)p[i - 1].step,
						(long long)p[i].step);
			}
		}
	free(text);
}

static void steps_that_were_done_again_stand_there_once(void **state)
{
	static char text[1 << 20];
	const struct hd_loss_point *p = NULL;
	size_t len = 0;
	(void)state;

	for (int64_t step = 0; step < 300; step++)
		len += add_line(text + len, step, 9);
	for (int64_t step = 120; step < 200; step++)
		len += add_line(text + len, step, 9);
	put(text, len);
	for (uint32_t most = 2; most < 1000; most += 37) {
		uint32_t n = read_back(most, &p);
		CHECK(p[n - 1].step == 199, "ends with %lld", (long long)p[n - 1].step);
	}
}

/* What a death or another program left between whole lines. */
static void what_is_not_a_line_of_a_step_is_left_out(void **state)
{
	static const char text[] = "{\"v\":1,\"st\n\n{}\n[1]\n"
		"{\"step\":1,\"loss\":2}\n{\"step\":-1,\"loss\":2}\n"
		"{\"step\":2,\"loss\":\"nan\",\"workers\":\"x\",\"t\":1}\nstep 7\n{\"step\":3,\"loss\":1}";
	const struct hd_loss_point *p = NULL;
	struct hd_diag diag = { "" };
	uint32_t n = 0;
	(void)state;

	put(text, sizeof text - 1);
	assert_int_equal(hd_curve_read(&fs, path, 500, &arena, &p, &n, &diag), HD_OK);
	CHECK(n == 2 && p[0].step == 1 && p[0].loss == 2 && p[1].step == 2 && isnan(p[1].loss) &&
		p[1].workers == 0 && p[1].t == 1, "%u points", n);
	assert_int_equal(hd_curve_read(&fs, "/tmp/hd_curve_test.none", 500, &arena, &p, &n, &diag),
		HD_E_NOTFOUND);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_there_whole_or_evenly),
		cmocka_unit_test(steps_that_were_done_again_stand_there_once),
		cmocka_unit_test(what_is_not_a_line_of_a_step_is_left_out),
	};
	int made = mkstemp(path);

	if (made < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, open_world, close_world);
	remove(path);
	return failed;
}
