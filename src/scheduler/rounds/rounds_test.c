#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "scheduler/rounds.h"
#include "tests/check.h"

/* Random clusters with shares that fit: what the rounds make of them is checked from outside, by counting. */

enum { JOBS = 24, TYPES = 3, SHAPES = JOBS * TYPES };

static uint32_t draws;

static double unit(void)
{
	struct hd_philox x = hd_philox((uint32_t[4]){ draws++, 7, 0, 0 }, 11);

	return x.word[0] / 4294967296.0;
}

struct world {
	struct hd_sched_type type[TYPES];
	struct hd_sched_job job[JOBS];
	double rate[JOBS][TYPES], x[SHAPES];
	struct hd_shape shape[SHAPES];
	struct hd_sched_state state;
	struct hd_shares shares;
	uint32_t ndevices;
};

static const char *const names[TYPES] = { "k80", "p100", "v100" };

/* Everybody the same part of every type; zeros in the rates, gangs if `gangs`. */
static void make_world(struct world *w, uint32_t njobs, bool gangs)
{
	*w = (struct world){ .state = { .ntypes = TYPES, .njobs = njobs, .types = w->type, .jobs = w->job } };
	for (uint32_t t = 0; t < TYPES; t++) {
		w->type[t] = (struct hd_sched_type){ .name = names[t], .n = 1 + (uint32_t)(unit() * 8) };
		w->ndevices += w->type[t].n;
	}
	for (uint32_t i = 0; i < njobs; i++) {
		w->job[i] = (struct hd_sched_job){ .id = 10 + 3 * i,
			.scale = gangs ? 1u << (uint32_t)(unit() * 3) : 1, .weight = 1, .rate = w->rate[i] };
		double sum = 0;
		for (uint32_t t = 0; t < TYPES; t++) {
			w->rate[i][t] = unit() < 0.15 ? 0 : 0.5 + unit();
			sum += (double)w->type[t].n / njobs / w->job[i].scale;
		}
		for (uint32_t t = 0; t < TYPES; t++)
			if (w->rate[i][t] > 0 && w->type[t].n >= w->job[i].scale) {
				w->shape[w->shares.nshapes] = (struct hd_shape){ .nmembers = 1, .nneeds = 1,
					.member = { i }, .rate = { w->rate[i][t] },
					.need = { { t, w->job[i].scale } } };
				w->x[w->shares.nshapes++] =
					(double)w->type[t].n / njobs / w->job[i].scale / fmax(1, sum);
			}
	}
	w->shares.shape = w->shape;
	w->shares.x = w->x;
	w->shares.work_conserving = true;
}

static struct hd_rounds *open_world(struct world *w, const struct hd_rounds_setting *setting,
	const uint32_t *host)
{
	struct hd_rounds *r;

	assert_int_equal(hd_rounds_create(&r, setting, TYPES, w->type, host, NULL), HD_OK);
	for (uint32_t i = 0; i < w->state.njobs; i++)
		assert_int_equal(hd_rounds_arrive(r, &w->job[i], 20, NULL), HD_OK);
	assert_int_equal(hd_rounds_adopt(r, 0, &w->state, &w->shares, NULL), HD_OK);
	return r;
}

/* No job twice, no device twice, devices of the type that was meant, as many as needed, none that is lost. */
static void check_round(const struct world *w, const struct hd_round *round, const bool *lost)
{
	bool taken[64] = { false }, seen[JOBS] = { false };

	for (uint32_t i = 0; i < round->nruns; i++) {
		const struct hd_round_run *run = &round->run[i];
		uint32_t job = (uint32_t)(run->id[0] - 10) / 3, have[TYPES] = { 0 };
		assert_true(run->nmembers == 1 && job < w->state.njobs && !seen[job]);
		seen[job] = true;
		for (uint32_t d = 0; d < run->ndevices; d++) {
			uint32_t device = round->device[run->first + d], type = 0, above = w->type[0].n;
			assert_true(device < w->ndevices && !taken[device] && !(lost && lost[device]));
			taken[device] = true;
			while (device >= above)
				above += w->type[++type].n;
			have[type]++;
		}
		for (uint8_t k = 0; k < run->nneeds; k++) {
			assert_true(w->rate[job][run->need[k].type] > 0);
			assert_int_equal(have[run->need[k].type], run->need[k].n);
			have[run->need[k].type] = 0;
		}
		for (uint32_t t = 0; t < TYPES; t++)
			assert_int_equal(have[t], 0);
	}
}

static void rounds_keep_to_devices_in_both_fidelities(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < 60; c++) {
		struct world w;
		struct hd_round round;
		bool lost[64] = { false };
		uint32_t host[64];
		make_world(&w, 1 + c % JOBS, true);
		for (uint32_t d = 0; d < w.ndevices; d++)
			host[d] = d / 3;
		const struct hd_rounds_setting setting = { .fidelity = c % 2 ? HD_FIDELITY_GAVEL :
			HD_FIDELITY_EXACT, .blind = c % 4 == 1, .seed = c };
		struct hd_rounds *r = open_world(&w, &setting, c % 3 ? NULL : host);
		for (uint32_t k = 0; k < 40; k++) {
			if (k == 20)
				hd_rounds_device(r, w.ndevices / 2, !(lost[w.ndevices / 2] = true));
			assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
			check_round(&w, &round, lost);
			for (uint32_t i = 0; i < round.nruns; i++)
				hd_rounds_ran(r, &round.run[i], 60);
		}
		hd_rounds_destroy(r);
	}
}

/* 3.6's long-run law: received / elapsed is within 1.5 R (jobs + 1) / elapsed of X, with one device a job
 * and no switching charged. */
static void what_is_received_approaches_the_share(void **state)
{
	enum { ROUNDS = 200 };
	(void)state;

	for (uint32_t c = 0; c < 40; c++) {
		struct world w;
		struct hd_round round;
		double got[JOBS][TYPES] = { { 0 } };
		make_world(&w, 3 + c % (JOBS - 3), false);
		w.shares.work_conserving = false;
		const struct hd_rounds_setting setting = { .fidelity = c % 2 ? HD_FIDELITY_GAVEL :
			HD_FIDELITY_EXACT, .round_s = 60, .kappa = -1,
			.queue = true };
		struct hd_rounds *r = open_world(&w, &setting, NULL);
		for (uint32_t k = 0; k < ROUNDS; k++) {
			assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
			for (uint32_t i = 0; i < round.nruns; i++) {
				got[(round.run[i].id[0] - 10) / 3][round.run[i].need[0].type] += 60;
				hd_rounds_ran(r, &round.run[i], 60);
			}
		}
		double bound = 1.5 * (w.state.njobs + 1) / ROUNDS, time[JOBS] = { 0 }, share[JOBS] = { 0 },
			steps[JOBS] = { 0 }, due[JOBS] = { 0 };
		for (uint32_t k = 0; k < w.shares.nshapes; k++) {
			uint32_t job = w.shape[k].member[0], type = w.shape[k].need[0].type;
			double part = got[job][type] / (60.0 * ROUNDS);
			time[job] += part;
			share[job] += w.x[k];
			steps[job] += part * w.rate[job][type];
			due[job] += w.x[k] * w.rate[job][type];
		}
		/* Which type it was is another matter where types have room for all: gavel takes the first
		 * in its order, exact the faster. */
		for (uint32_t i = 0; i < w.state.njobs; i++) {
			CHECK(time[i] > share[i] - bound, "world %u: job %u ran %.3f of the time, due %.3f",
				c, i, time[i], share[i]);
			CHECK(setting.fidelity == HD_FIDELITY_GAVEL || steps[i] > due[i] - 1.5 * bound,
				"world %u: job %u did %.3f steps/s, due %.3f", c, i,
				steps[i], due[i]);
		}
		hd_rounds_destroy(r);
	}
}

static uint32_t changes(struct world *w, double kappa)
{
	const struct hd_rounds_setting setting = { .round_s = 60, .kappa = kappa };
	struct hd_rounds *r = open_world(w, &setting, NULL);
	struct hd_round round;
	uint32_t n = 0;

	for (uint32_t k = 0; k < 100; k++) {
		assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
		for (uint32_t i = 0; i < round.nruns; i++) {
			n += round.run[i].kind != HD_RUN_SAME;
			hd_rounds_ran(r, &round.run[i], 60);
		}
	}
	hd_rounds_destroy(r);
	return n;
}

static void hysteresis_changes_less(void **state)
{
	uint32_t with = 0, without = 0;
	(void)state;

	for (uint32_t c = 0; c < 20; c++) {
		struct world w;
		make_world(&w, 12, false);
		with += changes(&w, 3);
		without += changes(&w, -1);
	}
	CHECK(with < without, "%u changes with hysteresis, %u without", with, without);
}

static void between_boundaries_runs_go_on_and_freed_devices_are_given(void **state)
{
	uint32_t given = 0;
	(void)state;

	for (uint32_t c = 0; c < 40; c++) {
		struct world w;
		struct hd_round round;
		struct hd_round_run before[JOBS];
		uint32_t device[64];
		make_world(&w, JOBS, true);
		const struct hd_rounds_setting setting = { .round_s = 60 };
		struct hd_rounds *r = open_world(&w, &setting, NULL);
		assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
		uint32_t n = round.nruns;
		memcpy(before, round.run, n * sizeof *before);
		memcpy(device, round.device, sizeof(uint32_t) * w.ndevices);
		if (!n) {
			hd_rounds_destroy(r);
			continue;
		}
		hd_rounds_leave(r, before[0].id[0]);
		assert_int_equal(hd_rounds_offer(r, &round, NULL), HD_OK);
		check_round(&w, &round, NULL);
		for (uint32_t i = 1; i < n; i++) {
			const struct hd_round_run *now = &round.run[i - 1];
			assert_true(now->id[0] == before[i].id[0] && now->kind == HD_RUN_SAME &&
				now->ndevices == before[i].ndevices);
			assert_memory_equal(&round.device[now->first], &device[before[i].first],
				now->ndevices * sizeof *device);
		}
		for (uint32_t i = 0; i < round.nruns; i++)
			assert_true(round.run[i].id[0] != before[0].id[0]);
		given += round.nruns > n - 1;
		hd_rounds_destroy(r);
	}
	CHECK(given > 10, "somebody new started %u times of 40", given);
}

/* Two gangs of 4 and many single jobs on 4 devices: without its reserve a gang with a small share would
 * wait for its share to lead. */
static void nobody_with_a_share_waits_for_ever(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < 10; c++) {
		struct world w;
		struct hd_round round;
		uint32_t last[JOBS] = { 0 };
		make_world(&w, JOBS, true);
		const struct hd_rounds_setting setting = { .round_s = 60, .kappa = 1 };
		struct hd_rounds *r = open_world(&w, &setting, NULL);
		for (uint32_t k = 1; k <= 300; k++) {
			assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
			for (uint32_t i = 0; i < round.nruns; i++) {
				last[(round.run[i].id[0] - 10) / 3] = k;
				hd_rounds_ran(r, &round.run[i], 60);
			}
		}
		for (uint32_t s = 0; s < w.shares.nshapes; s++)
			CHECK(last[w.shape[s].member[0]] > 100, "world %u: job %u last ran in round %u", c,
				w.shape[s].member[0], last[w.shape[s].member[0]]);
		hd_rounds_destroy(r);
	}
}

/* Two jobs share eight devices; one gives some of its up to the other, then everything back: whoever goes
 * on keeps devices it has. */
static void who_is_resized_keeps_devices_it_has(void **state)
{
	static const uint32_t sizes[][2] = { { 4, 4 }, { 2, 6 }, { 7, 1 }, { 1, 7 }, { 4, 4 }, { 5, 3 } };
	const struct hd_sched_type type = { .name = "v", .n = 8 };
	static const double one[] = { 1 };
	struct hd_sched_job job[2];
	uint32_t before[2][8], nbefore[2] = { 0, 0 };
	struct hd_rounds *r;
	(void)state;

	assert_int_equal(hd_rounds_create(&r, &(struct hd_rounds_setting){ .min_reset_s = 1 }, 1, &type, NULL,
		NULL), HD_OK);
	for (uint32_t i = 0; i < 2; i++) {
		job[i] = (struct hd_sched_job){ .id = i, .scale = 4, .weight = 1, .steps_left = 1,
			.rate = one };
		assert_int_equal(hd_rounds_arrive(r, &job[i], 20, NULL), HD_OK);
	}
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		const struct hd_sched_state s = { .ntypes = 1, .njobs = 2, .types = &type, .jobs = job };
		struct hd_shape shape[2];
		const struct hd_shares shares = { .nshapes = 2, .shape = shape, .x = (double[]){ 1, 1 } };
		struct hd_round round;
		for (uint32_t i = 0; i < 2; i++)
			shape[i] = (struct hd_shape){ .nmembers = 1, .nneeds = 1, .member = { i },
				.rate = { 1 }, .need = { { 0, sizes[k][i] } } };
		assert_int_equal(hd_rounds_adopt(r, 100.0 * (double)k, &s, &shares, NULL), HD_OK);
		assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
		assert_int_equal(round.nruns, 2);
		for (uint32_t n = 0; n < 2; n++) {
			const struct hd_round_run *run = &round.run[n];
			uint32_t i = (uint32_t)run->id[0], same = 0,
				least = nbefore[i] < run->ndevices ? nbefore[i] : run->ndevices;
			for (uint32_t d = 0; d < run->ndevices; d++)
				for (uint32_t b = 0; b < nbefore[i]; b++)
					same += round.device[run->first + d] == before[i][b];
			CHECK(run->ndevices == sizes[k][i] && same == least,
				"change %zu: job %u has %u devices, %u of its %u", k, i, run->ndevices, same,
				nbefore[i]);
			CHECK(run->kind == (k ? HD_RUN_RESIZE : HD_RUN_START), "change %zu: kind %d", k,
				(int)run->kind);
			nbefore[i] = run->ndevices;
			memcpy(before[i], &round.device[run->first], run->ndevices * sizeof *before[i]);
		}
	}
	hd_rounds_destroy(r);
}

static void equal_calls_give_equal_rounds(void **state)
{
	struct world w;
	struct hd_round a, b;
	(void)state;

	make_world(&w, 20, true);
	for (int fidelity = 0; fidelity < 2; fidelity++) {
		const struct hd_rounds_setting setting = { .fidelity = fidelity ? HD_FIDELITY_GAVEL :
			HD_FIDELITY_EXACT, .seed = 4, .blind = true };
		struct hd_rounds *x = open_world(&w, &setting, NULL), *y = open_world(&w, &setting, NULL);
		for (uint32_t k = 0; k < 50; k++) {
			assert_int_equal(hd_rounds_next(x, &a, NULL), HD_OK);
			assert_int_equal(hd_rounds_next(y, &b, NULL), HD_OK);
			assert_int_equal(a.nruns, b.nruns);
			for (uint32_t i = 0; i < a.nruns; i++) {
				assert_true(a.run[i].id[0] == b.run[i].id[0] &&
					a.run[i].kind == b.run[i].kind && a.run[i].first == b.run[i].first);
				assert_memory_equal(&a.device[a.run[i].first], &b.device[b.run[i].first],
					a.run[i].ndevices * sizeof(uint32_t));
				hd_rounds_ran(x, &a.run[i], 60);
				hd_rounds_ran(y, &b.run[i], 60);
			}
		}
		hd_rounds_destroy(x);
		hd_rounds_destroy(y);
	}
}

static void a_cluster_without_devices_is_refused(void **state)
{
	static const struct hd_sched_type none[] = { { .name = "a" } };
	const struct hd_rounds_setting setting = { 0 };
	struct hd_rounds *r = NULL;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_rounds_create(&r, &setting, 1, none, NULL, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "0 devices of 1 types: 1 to 16777216 of 1 to 64");
	assert_null(r);
}

/* Alone, without a share: only its own ways can run it. They have the new size and rate before any policy
 * says so, and the round that goes on has the old one. */
static void a_job_of_another_scale_runs_on_so_many_devices_from_the_next_round_on(void **state)
{
	const struct hd_rounds_setting setting = { .fidelity = HD_FIDELITY_EXACT };
	const struct hd_sched_type type = { .name = "k80", .n = 4 };
	const double rate[2] = { 1, 2.5 };
	const struct hd_sched_job job = { .id = 7, .scale = 1, .weight = 1, .rate = &rate[0] };
	const struct hd_sched_state here = { .ntypes = 1, .njobs = 1, .types = &type, .jobs = &job };
	const struct hd_shares none = { .work_conserving = true };
	struct hd_round round;
	struct hd_rounds *r;

	(void)state;
	assert_int_equal(hd_rounds_create(&r, &setting, 1, &type, NULL, NULL), HD_OK);
	assert_int_equal(hd_rounds_arrive(r, &job, 20, NULL), HD_OK);
	assert_int_equal(hd_rounds_adopt(r, 0, &here, &none, NULL), HD_OK);
	assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
	CHECK(round.nruns == 1 && round.run[0].ndevices == 1, "%u runs", round.nruns);
	hd_rounds_scale(r, 7, 3, &rate[1]);
	CHECK(hd_rounds_due(r, 1e9), "no new shares are asked for");
	assert_int_equal(hd_rounds_offer(r, &round, NULL), HD_OK);
	CHECK(round.nruns == 1 && round.run[0].ndevices == 1, "changed within the round");
	assert_int_equal(hd_rounds_next(r, &round, NULL), HD_OK);
	CHECK(round.nruns == 1 && round.run[0].ndevices == 3 && round.run[0].rate[0] > 2, "%u runs, on %u",
		round.nruns, round.nruns ? round.run[0].ndevices : 0);
	/* a measurement is one of the new size */
	hd_rounds_rate(r, 7, &rate[0]);
	assert_int_equal(hd_rounds_offer(r, &round, NULL), HD_OK);
	CHECK(round.run[0].rate[0] < 2, "the rate of the run stays %g", round.run[0].rate[0]);
	hd_rounds_destroy(r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_of_another_scale_runs_on_so_many_devices_from_the_next_round_on),
		cmocka_unit_test(rounds_keep_to_devices_in_both_fidelities),
		cmocka_unit_test(what_is_received_approaches_the_share),
		cmocka_unit_test(hysteresis_changes_less),
		cmocka_unit_test(between_boundaries_runs_go_on_and_freed_devices_are_given),
		cmocka_unit_test(nobody_with_a_share_waits_for_ever),
		cmocka_unit_test(who_is_resized_keeps_devices_it_has),
		cmocka_unit_test(equal_calls_give_equal_rounds),
		cmocka_unit_test(a_cluster_without_devices_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
