/* Sharing by resize against gangs: 20 jobs on 8 devices, 12 an hour, everyone resizable, and the least that
 * any scheduler needs.
 *
 * HD_SHARING_SEEDS=100 prints the table of docs/results/sharing.md (bench/sharing.sh). Curves are fixed here
 * and nowhere tuned: what ResNet-50 of batch 128 does on 1, 2, 4 and 8 v100 of the published table, straight
 * lines between; and the ideal one. Both times the loss of uneven virtual nodes, 32 of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/lp.h"
#include "clustersim/job_generate.h"
#include "clustersim/sched_sim.h"
#include "tests/check.h"

enum { JOBS = 20, DEVICES = 8, NVNS = 32 };

static struct hd_arena arena;

static const struct { const char *name; double at[4]; } curves[] = {       /* on 1, 2, 4, 8 devices */
	{ "published", { 1, 1.691, 2.815, 4.123 } },
	{ "ideal", { 1, 2, 4, 8 } },
};
static const char *const policies[] = { "priority", "priority-backfill", "fifo", "wfs-2020", "wfs" };
enum { NPOLICIES = sizeof policies / sizeof *policies, PRIORITY = 0, BACKFILL = 1, THEIRS = 3, OURS = 4 };

static void make_curve(const double at[4], double speedup[DEVICES + 1])
{
	speedup[0] = 0;
	for (uint32_t k = 1; k <= DEVICES; k++) {
		uint32_t p = k < 2 ? 0 : k < 4 ? 1 : k < 8 ? 2 : 3, full = (NVNS + k - 1) / k;
		double from = 1u << p, line = p == 3 ? at[3] :
			at[p] + (at[p + 1] - at[p]) * (k - from) / from;
		speedup[k] = line * NVNS / ((double)full * k);
	}
}

/* ---- the bound ---- */

/* Between two arrivals job i spends x[i][m][k] seconds on k devices: within the interval, on all devices
 * together within DEVICES, until its work is done. Devices can be divided without end, nothing costs
 * anything, all arrivals are known: no schedule ends earlier. */
static double least_makespan(const struct hd_job_list *list, const double *speedup)
{
	struct hd_lp *lp = hd_lp_new(false);
	struct hd_lp_result r;
	double lo[JOBS * JOBS + 2 * JOBS], hi[JOBS * JOBS + 2 * JOBS], zero = 0, inf = INFINITY, one = 1;
	uint32_t none[JOBS * JOBS + 2 * JOBS + 1] = { 0 }, n = 0, time[JOBS][JOBS], devices[JOBS], work[JOBS],
		ends[JOBS + 1];
	double ends_by[JOBS + 1], last = list->at[JOBS - 1].arrival_s;

	/* interval m: from the arrival of m to the next one, or to the end */
	for (uint32_t m = 0; m < JOBS; m++) {
		double length = m + 1 < JOBS ? list->at[m + 1].arrival_s - list->at[m].arrival_s : -last;
		for (uint32_t i = 0; i <= m; i++) {
			lo[n] = -INFINITY;
			hi[n] = length;
			time[i][m] = n++;
		}
		lo[n] = -INFINITY;
		hi[n] = DEVICES * length;
		devices[m] = n++;
	}
	for (uint32_t i = 0; i < JOBS; i++) {
		uint32_t scale = list->at[i].scale;
		lo[n] = list->at[i].steps * speedup[scale];
		hi[n] = INFINITY;
		work[i] = n++;
	}
	assert_int_equal(hd_lp_rows(lp, n, lo, hi, none, NULL, NULL), HD_OK);
	for (uint32_t m = 0; m < JOBS; m++)
		for (uint32_t i = 0; i <= m; i++)
			for (uint32_t k = 1; k <= list->at[i].scale; k++)
				assert_int_equal(hd_lp_cols(lp, 1, &zero, &inf, &zero, (uint32_t[]){ 0, 3 },
					(uint32_t[]){ time[i][m], devices[m], work[i] },
					(double[]){ 1, k, speedup[k] }), HD_OK);
	for (uint32_t i = 0; i < JOBS; i++) {             /* the last interval is as long as the end says */
		ends[i] = time[i][JOBS - 1];
		ends_by[i] = -1;
	}
	ends[JOBS] = devices[JOBS - 1];
	ends_by[JOBS] = -DEVICES;
	assert_int_equal(hd_lp_cols(lp, 1, &last, &inf, &one, (uint32_t[]){ 0, JOBS + 1 }, ends, ends_by),
		HD_OK);
	assert_int_equal(hd_lp_solve(lp, NULL, &r), HD_OK);
	CHECK(r.status == HD_LP_OPTIMAL, "%s", hd_lp_status_text(r.status));
	hd_lp_free(lp);
	return r.objective;
}

/* ---- the runs ---- */

struct list_source { const struct hd_job_list *list; size_t at; };

static bool next_job(void *from, struct hd_listed_job *job)
{
	struct list_source *s = from;

	if (s->at == s->list->n)
		return false;
	*job = s->list->at[s->at++];
	return true;
}

struct sim_measured { double makespan, median, mean, waited, computing, over_bound, slowdown;
	uint64_t resizes; };

static int up(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void simulate(const struct hd_job_list *list, const struct hd_sched_elastic *elastic, const char *name,
	struct hd_sched_sim_result *result)
{
	static const struct hd_sched_type type = { .name = "device", .n = DEVICES };
	struct hd_policy_setting policy = { 0 };
	struct list_source source = { list, 0 };
	struct hd_sched_sim_setting set = { .policy = &policy, .ntypes = 1, .types = &type, .next = next_job,
		.source = &source, .costs = HD_SWITCH_COSTS,
		.round_s = 10, .min_reset_s = 5, .elastic = elastic };
	struct hd_diag diag = { "" };

	assert_int_equal(hd_policy_parse(&policy, name, NULL), HD_OK);
	CHECK(hd_sched_sim(result, &set, &arena, &diag) == HD_OK, "%s: %s", name, diag.text);
	CHECK(result->nover == JOBS && !*result->ended, "%s: %s", name, result->ended);
}

/* No job computes faster than its demand allows, none is forgotten, and the devices were enough for what
 * was computed. */
static void check_laws(const struct hd_job_list *list, const double *speedup,
	const struct hd_sched_sim_result *r, const char *name, double bound)
{
	double least_device_s = 0, device_s = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		const struct hd_listed_job *job = &list->at[i];
		CHECK(r->row[i].jct_s >= job->steps + 30 - 1e-6,
			"%s: job %u took %g s, alone it computes %g s", name, i, r->row[i].jct_s, job->steps);
		least_device_s += job->steps * speedup[job->scale];
		device_s += r->row[i].device_s[0];
	}
	CHECK(device_s >= least_device_s && r->utilisation <= 1 + 1e-12,
		"%s: %g device seconds for %g of work", name, device_s, least_device_s);
	CHECK(r->makespan_s + list->at[0].arrival_s >= bound * (1 - 1e-7),
		"%s ends at %g s, the bound is %g s", name, r->makespan_s, bound);
}

static void measure(struct sim_measured *to, const struct hd_sched_sim_result *r,
	const struct hd_sched_sim_result *theirs, double bound)
{
	double waited[JOBS];

	for (uint32_t i = 0; i < JOBS; i++) {
		waited[i] = r->row[i].first_start_s - r->row[i].arrival_s;
		to->slowdown = fmax(to->slowdown, r->row[i].jct_s / theirs->row[i].jct_s);
	}
	qsort(waited, JOBS, sizeof *waited, up);
	to->makespan += r->makespan_s;
	to->median += r->median_jct_s;
	to->mean += r->avg_jct_s;
	to->waited += waited[JOBS / 2 - 1];
	to->computing += r->productive;
	to->resizes += r->resizes;
	to->over_bound += r->makespan_s / bound - 1;
}

/* `bound`: sum over the seeds. */
static void print(const char *curve, struct sim_measured all[NPOLICIES], double bound, uint32_t seeds)
{
	const struct sim_measured *base = &all[PRIORITY];

	for (int p = 0; p < NPOLICIES; p++) {
		const struct sim_measured *m = &all[p];
		print_message("| %s | %s | %.1f | %+.1f | %.1f | %+.1f | %.1f | %+.1f ", curve, policies[p],
			m->makespan / seeds / 60,
			100 * (m->makespan / base->makespan - 1), m->median / seeds / 60,
			100 * (m->median / base->median - 1), m->mean / seeds / 60,
			100 * (m->mean / base->mean - 1));
		print_message("| %.1f | %.1f | %.1f | %.2f | %.1f |\n", m->waited / seeds / 60,
			100 * m->computing / seeds, 100 * m->over_bound / seeds,
			m->slowdown, (double)m->resizes / seeds / JOBS);
	}
	print_message("| %s | *the bound* | %.1f | %+.1f | | | | | | | 0.0 | | |\n", curve,
		bound / seeds / 60, 100 * (bound / base->makespan - 1));
}

static void sharing_by_resize_keeps_the_laws_and_beats_gangs(void **state)
{
	const char *asked = getenv("HD_SHARING_SEEDS");
	uint32_t seeds = asked ? (uint32_t)strtoul(asked, NULL, 10) : 6;
	(void)state;

	if (!hd_policy_has_lp())
		SKIP("no solver of linear programs in this build (coinor-libclp-dev)");
	for (size_t c = 0; c < sizeof curves / sizeof *curves; c++) {
		struct sim_measured all[NPOLICIES] = { 0 };
		double speedup[DEVICES + 1], bounds = 0;
		make_curve(curves[c].at, speedup);
		for (uint32_t seed = 1; seed <= seeds; seed++) {
			const struct hd_sched_elastic elastic = { .min = 1, .max = DEVICES, .nvns = NVNS,
				.speedup = speedup, .resize_s = 1 };
			struct hd_sched_sim_result result[NPOLICIES];
			struct hd_job_list list;
			assert_int_equal(hd_job_share(&list,
				&(struct hd_job_sharing){ seed, JOBS, 12, DEVICES }, &arena, NULL), HD_OK);
			double bound = least_makespan(&list, speedup);
			bounds += bound;
			for (int p = 0; p < NPOLICIES; p++) {
				simulate(&list, &elastic, policies[p], &result[p]);
				check_laws(&list, speedup, &result[p], policies[p], bound);
			}
			for (int p = 0; p < NPOLICIES; p++)
				measure(&all[p], &result[p], &result[THEIRS], bound);
			hd_arena_reset(&arena);
		}
		print(curves[c].name, all, bounds, seeds);
		for (int p = PRIORITY; p <= BACKFILL; p++)
			CHECK(all[OURS].mean < all[p].mean && all[OURS].makespan < all[p].makespan,
				"%s, %s: mean %g and %g s, makespan %g and %g s",
				curves[c].name, policies[p], all[OURS].mean / seeds, all[p].mean / seeds,
				all[OURS].makespan / seeds, all[p].makespan / seeds);
		CHECK(all[OURS].over_bound < 0.1 * seeds, "%s: %g above the bound", curves[c].name,
			all[OURS].over_bound / seeds);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] =
		{ cmocka_unit_test(sharing_by_resize_keeps_the_laws_and_beats_gangs) };

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
