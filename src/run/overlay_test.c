#include "run/overlay_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "sys/file_sim.h"
#include "tests/check.h"

enum { BINS = 60 };

/* A series against all its values, kept: whatever is cut and added again. */
static void bins_have_what_was_added(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < DRAWS(40); seed++) {
		struct hd_overlay_bin bin[BINS] = { 0 };
		struct hd_overlay_series s = { .bin = bin };
		static double value[5000];
		uint64_t n = 0;
		for (uint32_t i = 0; i < 4000; i++) {
			const uint32_t draw = hd_philox((uint32_t[4]){ i, 0, 0, 0 }, hd_philox_key(seed,
				HD_RNG_USER)).word[0];
			/* back to the begin of a bin: what is left is whole */
			if (n > 200 && draw % 500 == 0) {
				n = n / 2 / s.width * s.width;
				hd_overlay_cut(&s, n);
			}
			value[n] = (double)(draw >> 8) / 65536 - 100;
			hd_overlay_add(&s, BINS, (struct hd_overlay_at){ n, 8 * n, (double)n / 4 }, value[n]);
			n++;
		}
		double least = INFINITY, greatest = -INFINITY;
		for (uint64_t b = 0; b * s.width < n; b++) {
			double sum = 0, low = INFINITY, high = -INFINITY;
			uint64_t end = (b + 1) * s.width < n ? (b + 1) * s.width : n;
			for (uint64_t i = b * s.width; i < end; i++) {
				sum += value[i];
				low = fmin(low, value[i]);
				high = fmax(high, value[i]);
			}
			CHECK(bin[b].n == end - b * s.width && bin[b].low == low && bin[b].high == high &&
				fabs(bin[b].sum - sum) < 1e-6, "seed %u, bin %u", (unsigned)seed,
					(unsigned)b);
			CHECK(bin[b].step == (double)(end - 1) && bin[b].samples == 8 * bin[b].step &&
				bin[b].t_s ==
				bin[b].step / 4, "seed %u, bin %u", (unsigned)seed, (unsigned)b);
			least = fmin(least, low);
			greatest = fmax(greatest, high);
		}
		CHECK(s.n == n && s.last == value[n - 1] && s.least == least && s.greatest == greatest,
			"seed %u", (unsigned)seed);
		assert_true(s.width * BINS >= n && s.used == (n + s.width - 1) / s.width);
	}
}

static void what_is_no_number_is_counted(void **state)
{
	(void)state;
	struct hd_overlay_bin bin[BINS] = { 0 };
	struct hd_overlay_series s = { .bin = bin };

	hd_overlay_add(&s, BINS, (struct hd_overlay_at){ .step = 3 }, NAN);
	hd_overlay_add(&s, BINS, (struct hd_overlay_at){ .step = 4 }, INFINITY);
	assert_true(s.nonfinite == 2 && s.n == 0 && s.used == 0);
	hd_overlay_add(&s, BINS, (struct hd_overlay_at){ .step = 5 }, 2);
	assert_true(s.n == 1 && s.least_step == 5 && s.used == 6 && bin[5].n == 1);
}

/* ---- folders ---- */

#define DIGEST "0000000000000000000000000000000"

static struct hd_fs_sim sim;
static struct hd_clock_sim clock_;

static void make(const char *run)
{
	struct hd_rundir dir;

	assert_int_equal(hd_rundir_create(&dir, &sim.fs, &clock_.clock, "/", run, "n", "{}", 2, NULL), HD_OK);
	hd_rundir_close(&dir);
}

/* ' stands for " */
static void put(const char *run, const char *name, const char *text)
{
	char path[64], bytes[1000];
	size_t n = 0;

	for (; text[n]; n++)
		bytes[n] = text[n] == '\'' ? '"' : text[n];
	assert_true(n < sizeof bytes);
	snprintf(path, sizeof path, "%s/%s", run, name);
	assert_int_equal(hd_file_write_atomic(&sim.fs, path, bytes, n, NULL), HD_OK);
}

static int make_runs(void **state)
{
	(void)state;
	hd_fs_sim_init(&sim);
	hd_clock_sim(&clock_, 0, 0);
	make("/a");
	put("/a", "job.resolved.json", "{'optim':{'lr':0.1,'groups':[{'lr':1},{}]},'job':{'name':'x'}}");
	/* two processes; it went back to step 1; its last line is half written */
	put("/a", "metrics.ndjson",
		"{'v':1,'step':0,'t':1,'samples':8,'loss':4,'digest':'" DIGEST "1'}\n"
		"{'v':1,'step':1,'t':2,'samples':16,'loss':3}\n"
		"{'v':1,'step':2,'t':4,'samples':24,'loss':1}\n"
		"{'v':1,'step':1,'t':0.5,'samples':16,'loss':2.5,'digest':'" DIGEST "2'}\n"
		"{'v':1,'step':2,'t':1,'samples':24,'loss':null}\n"
		"{'v':1,'step':3,'t':2,'sam");
	put("/a", "events.ndjson",
		"{'v':1,'t':1,'kind':'eval','step':2,'split':'valid','loss':9,'rows':3}\n"
		"{'v':1,'t':1,'kind':'eval','step':2,'split':'valid','loss':5,'rows':3}\n"
		"{'v':1,'t':1,'kind':'plan','step':2}\n");
	make("/b");
	put("/b", "job.resolved.json", "{'optim':{'lr':0.1,'groups':[{'lr':2},{}]},'new':true,"
		"'job':{'name':'x'}}");
	put("/b", "metrics.ndjson",
		"{'v':1,'step':0,'t':1,'samples':8,'loss':4,'gnorm':1,'digest':'" DIGEST "1'}\n"
		"{'v':1,'step':1,'t':2,'samples':16,'loss':3,'digest':'" DIGEST "3'}\n");
	put("/b", "events.ndjson", "");
	return 0;
}

static int remove_runs(void **state)
{
	(void)state;
	hd_fs_sim_finish(&sim);
	return 0;
}

static const struct hd_overlay_series *find(const struct hd_overlay *o, uint32_t run, const char *name)
{
	for (uint32_t i = 0; i < o->run[run].nseries; i++)
		if (strcmp(o->name[o->run[run].series[i].name], name) == 0)
			return &o->run[run].series[i];
	return NULL;
}

static void runs_are_read_whatever_happened_to_them(void **state)
{
	(void)state;
	static const char *const path[] = { "/a/", "/b" };
	struct hd_overlay o;
	struct hd_overlay_difference *d;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	struct hd_text text;
	size_t n;

	hd_arena_init(&arena, 0);
	CHECK(!hd_overlay_read(&o, &sim.fs, &clock_.clock, path, 2, &arena, &diag), "%s", diag.text);
	assert_string_equal(o.run[0].name, "a");
	const struct hd_overlay_series *loss = find(&o, 0, "loss"), *valid = find(&o, 0, "valid loss");
	assert_true(loss && valid && !find(&o, 0, "gnorm") && find(&o, 1, "gnorm"));
	/* 4, 2.5 at 4 s of the first process and 0.5 of the second; the third is none */
	assert_true(loss->n == 2 && loss->last == 2.5 && loss->nonfinite == 1 && loss->bin[1].t_s == 4.5);
	assert_true(loss->least == 2.5 && loss->greatest == 4 && loss->greatest_step == 0);
	assert_true(valid->n == 1 && valid->last == 5 && valid->bin[2].samples == 16);
	assert_true(o.run[0].unreadable == 1 && o.run[0].samples == 24 && o.run[0].t_s == 5);
	assert_true(o.run[1].from_first.known && o.run[1].from_first.step == 1);
	assert_int_equal(hd_overlay_differences(&o, &arena, &d, &n, &diag), HD_OK);
	assert_int_equal(n, 2);
	assert_string_equal(d[0].key, "new");
	assert_true(!d[0].value[0] && strcmp(d[0].value[1], "true") == 0);
	assert_string_equal(d[1].key, "optim.groups.0.lr");
	assert_true(strcmp(d[1].value[0], "1") == 0 && strcmp(d[1].value[1], "2") == 0);
	hd_text_init(&text, &arena);
	assert_int_equal(hd_overlay_page(&o, &text, &arena, &diag), HD_OK);
	assert_non_null(strstr(text.at, "\"differ_at\":1"));
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_have_what_was_added),
		cmocka_unit_test(what_is_no_number_is_counted),
		cmocka_unit_test_setup_teardown(runs_are_read_whatever_happened_to_them, make_runs,
			remove_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
