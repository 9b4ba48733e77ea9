#include "run/samples.h"

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "tests/check.h"

enum { NVNS = 3, MOST = 64 };

struct rig { struct hd_fs_sim sim; struct hd_samples_law law; };

static void open_rig(struct rig *rig, uint64_t count, uint64_t batch, uint64_t nsteps, enum hd_last last)
{
	*rig = (struct rig){ .law = { .count = count, .batch = batch, .nsteps = nsteps, .nvns = NVNS,
		.last = last } };
	hd_fs_sim_init(&rig->sim);
	assert_int_equal(hd_fs_mkdir(&rig->sim.fs, "/run", NULL), HD_OK);
}

/* One pass over all steps by the law's words, not by the sampler: sample k of data epoch e is (k + e) mod
 * D. */
static uint64_t rows_of(const struct hd_samples_law *l, uint64_t step, struct hd_sample row[MOST])
{
	uint64_t per = l->last == HD_LAST_DROP ? l->count / l->batch : (l->count + l->batch - 1) / l->batch,
		n = 0;

	for (uint64_t i = 0; i < l->batch; i++) {
		uint64_t at = l->last == HD_LAST_WRAP ? step * l->batch + i : step % per * l->batch + i;
		uint64_t epoch = l->last == HD_LAST_WRAP ? at / l->count : step / per;
		if (l->last == HD_LAST_WRAP)
			at %= l->count;
		if (at < l->count)
			row[n++] = (struct hd_sample){ epoch, (at + epoch) % l->count };
	}
	return n;
}

static void put_vn(struct hd_samples *s, const struct hd_samples_law *law, uint64_t step, uint32_t vn)
{
	struct hd_sample row[MOST];
	uint64_t per_vn = (law->batch + NVNS - 1) / NVNS, n = rows_of(law, step, row), first, end;

	hd_vn_rows(per_vn, n, vn, &first, &end);
	hd_samples_put(s, step, vn, row + first, end - first);
}

/* Worker 1 has virtual nodes below `cut`, worker 2 the others. */
static void record(struct rig *rig, uint32_t cut, uint64_t nsteps)
{
	for (uint32_t worker = 1; worker <= 2; worker++) {
		struct hd_samples s;
		assert_int_equal(hd_samples_open(&s, &rig->sim.fs, "/run", worker, NVNS, rig->law.batch,
			NULL), HD_OK);
		for (uint64_t step = 0; step < nsteps; step++) {
			for (uint32_t v = worker == 1 ? 0 : cut; v < (worker == 1 ? cut : NVNS); v++)
				put_vn(&s, &rig->law, step, v);
			assert_int_equal(hd_samples_write(&s, NULL), HD_OK);
		}
		hd_samples_close(&s);
	}
}

static void add(struct rig *rig, const char *name, const char *text)
{
	struct hd_file file = { 0 };
	char path[64];

	snprintf(path, sizeof path, "/run/samples/%s", name);
	assert_int_equal(hd_file_open(&rig->sim.fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_APPEND,
		&file, NULL), HD_OK);
	assert_int_equal(hd_file_write(&file, text, strlen(text), NULL), HD_OK);
	assert_int_equal(hd_file_close(&file, NULL), HD_OK);
}

static enum hd_err check(struct rig *rig, struct hd_samples_found *found, struct hd_diag *diag)
{
	*diag = (struct hd_diag){ "" };
	return hd_samples_check(&rig->sim.fs, "/run", &rig->law, found, diag);
}

static void check_whole(uint64_t count, uint64_t batch, uint64_t nsteps, enum hd_last last)
{
	const uint64_t each = last == HD_LAST_DROP ? count / batch * batch : count;
	struct hd_samples_found found;
	struct hd_sample row[MOST];
	struct hd_diag diag;
	uint64_t rows = 0;
	struct rig rig;

	open_rig(&rig, count, batch, nsteps, last);
	record(&rig, 1, nsteps + 1);              /* a step too many does not count */
	CHECK(check(&rig, &found, &diag) == HD_OK, "D %d, B %d, last %d, %d steps: %s", (int)count,
		(int)batch, (int)last, (int)nsteps, diag.text);
	for (uint64_t s = 0; s < nsteps; s++)
		rows += rows_of(&rig.law, s, row);
	CHECK(found.epochs * each + found.rest == rows && found.rest < each && found.epoch == each &&
		!found.again && !found.torn,
		"D %d, B %d, last %d, %d steps: %d data epochs and %d", (int)count, (int)batch, (int)last,
		(int)nsteps, (int)found.epochs, (int)found.rest);
	hd_fs_sim_finish(&rig.sim);
}

static void data_epochs_are_whole_for_every_size_and_end(void **state)
{
	(void)state;
	for (uint64_t count = 1; count <= 13; count++)
		for (uint64_t batch = 3; batch <= 9; batch += 2)
			for (int last = HD_LAST_RAGGED; last <= HD_LAST_WRAP; last++)
				for (uint64_t nsteps = 1; nsteps <= 9 &&
					(last != HD_LAST_DROP || count >= batch); nsteps += 2)
					check_whole(count, batch, nsteps, (enum hd_last)last);
}

static void steps_that_no_run_can_have_are_refused(void **state)
{
	static const uint64_t steps[] = { UINT64_MAX, UINT64_MAX / 3, UINT64_C(1) << 62, UINT64_C(1) << 40 };
	struct hd_samples_found found;
	struct hd_diag diag;
	struct rig rig;

	(void)state;
	open_rig(&rig, 10, 3, 4, HD_LAST_RAGGED);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		rig.law.nsteps = steps[i];
		assert_int_equal(check(&rig, &found, &diag), HD_E_INTEGRITY);
		assert_non_null(strstr(diag.text, "no run gets there"));
	}
	hd_fs_sim_finish(&rig.sim);
}

static void what_was_computed_again_counts_once(void **state)
{
	struct hd_samples_found found;
	struct hd_samples s;
	struct hd_diag diag;
	struct rig rig;

	(void)state;
	open_rig(&rig, 10, 4, 7, HD_LAST_RAGGED);
	record(&rig, 2, 7);
	assert_int_equal(hd_samples_open(&s, &rig.sim.fs, "/run", 3, NVNS, 4, NULL), HD_OK);
	put_vn(&s, &rig.law, 5, 1);
	put_vn(&s, &rig.law, 0, 2);
	put_vn(&s, &rig.law, 8, 2);               /* not committed */
	assert_int_equal(hd_samples_write(&s, NULL), HD_OK);
	hd_samples_close(&s);
	add(&rig, "3.ndjson", "{\"step\":6,\"vn\":0,\"took\":[[2,[");     /* killed while it wrote */
	CHECK(check(&rig, &found, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(found.again, 2);
	assert_int_equal(found.torn, 1);
	assert_int_equal(found.epochs, 2);
	assert_int_equal(found.rest, 4);
	/* whoever writes on there begins a line of its own */
	assert_int_equal(hd_samples_open(&s, &rig.sim.fs, "/run", 3, NVNS, 4, NULL), HD_OK);
	put_vn(&s, &rig.law, 6, 0);
	assert_int_equal(hd_samples_write(&s, NULL), HD_OK);
	hd_samples_close(&s);
	CHECK(check(&rig, &found, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(found.again, 3);
	hd_fs_sim_finish(&rig.sim);
}

static void expect_broken(uint32_t missing_worker, const char *line, const char *says)
{
	struct hd_samples_found found;
	struct hd_diag diag;
	struct rig rig;
	char path[64];

	/* sample k of data epoch e is (k + e) mod 10; two rows a virtual node */
	open_rig(&rig, 10, 4, 6, HD_LAST_RAGGED);
	record(&rig, 2, 6);
	snprintf(path, sizeof path, "/run/samples/%u.ndjson", missing_worker);
	if (missing_worker)
		assert_int_equal(hd_fs_unlink(&rig.sim.fs, path, NULL), HD_OK);
	if (line)
		add(&rig, "9.ndjson", line);
	CHECK(check(&rig, &found, &diag) == HD_E_INTEGRITY && strstr(diag.text, says), "%s: \"%s\"", says,
		diag.text);
	hd_fs_sim_finish(&rig.sim);
}

static void what_breaks_the_law_is_named(void **state)
{
	struct hd_samples_found found;
	struct hd_diag diag;
	struct rig rig;

	(void)state;
	expect_broken(1, NULL,
		"data epoch 0 has 0 of 10 samples: sample 0 is the first that is not recorded");
	expect_broken(0, "{\"step\":1,\"vn\":0,\"took\":[[0,[4,6]]]}\n",
		"step 1, virtual node 0 was computed twice, from other samples");
	expect_broken(0, "{\"step\":1,\"vn\":2,\"took\":[[0,[4]]]}\n",
		"step 1, virtual node 2 was computed twice, from other samples");
	expect_broken(1, "{\"step\":1,\"vn\":1,\"took\":[[0,[3,3]]]}\n",
		"sample 3 was taken before in data epoch 0");
	expect_broken(1, "{\"step\":1,\"vn\":1,\"took\":[[0,[10]]]}\n",
		"sample 10 of data epoch 0, where there are 10 samples");
	expect_broken(1, "{\"step\":1,\"vn\":1,\"took\":[[2,[1]]]}\n",
		"sample 1 of data epoch 2, where there are 10 samples and 2");
	open_rig(&rig, 10, 4, 6, HD_LAST_RAGGED);
	assert_int_equal(check(&rig, &found, &diag), HD_E_NOTFOUND);
	CHECK(strstr(diag.text, "trace.samples=true"), "%s", diag.text);
	hd_fs_sim_finish(&rig.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_epochs_are_whole_for_every_size_and_end),
		cmocka_unit_test(steps_that_no_run_can_have_are_refused),
		cmocka_unit_test(what_was_computed_again_counts_once),
		cmocka_unit_test(what_breaks_the_law_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
