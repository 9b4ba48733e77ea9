#include "clustersim/schedsim/story.h"

#include <math.h>
#include <string.h>

#include "tests/check.h"

static struct hd_arena arena;

static struct hd_sched_story *open_story(void)
{
	struct hd_sched_story *s;
	struct hd_sched_sim_setting set = { .first = 0 };

	assert_int_equal(hd_sched_story_open(&s, &set, &arena, NULL), HD_OK);
	return s;
}

static void sums(const struct hd_sched_story *s, double *device_s, double *usd)
{
	*device_s = *usd = 0;
	for (uint32_t i = 0; i < HD_STORY_BINS; i++) {
		*device_s += s->bin[i].device_s;
		*usd += s->bin[i].usd;
	}
}

/* However often bins grow wider, nothing is lost, and each bin holds what a list of all stays says. */
static void bins_hold_what_the_stays_come_to(void **unused)
{
	enum { STAYS = 3000 };
	static struct { double from, to, devices, usd; } stay[STAYS];
	struct hd_sched_story *s = open_story();
	double device_s, usd, want_s = 0, want_usd = 0;
	uint32_t x = 7;

	(void)unused;
	for (uint32_t i = 0; i < STAYS; i++) {
		x = x * 1664525 + 1013904223;
		stay[i].from = 1000 + i * 61.7 + (i ? (x >> 20) % 50 : 0);
		stay[i].to = stay[i].from + 1 + (x >> 8) % 5000;
		stay[i].devices = 0.5 * (1 + x % 7);
		stay[i].usd = stay[i].devices * 0.25;
		s->watch.ran(s, i % 100, i % 3, stay[i].devices, stay[i].usd, stay[i].from, stay[i].to);
		want_s += stay[i].devices * (stay[i].to - stay[i].from);
		want_usd += stay[i].usd;
	}
	sums(s, &device_s, &usd);
	assert_true(fabs(device_s / want_s - 1) < 1e-12 && fabs(usd / want_usd - 1) < 1e-12);
	for (uint32_t b = 0; b < HD_STORY_BINS; b++) {
		double low = s->start_s + b * s->bin_s, high = low + s->bin_s, want = 0;
		for (int i = 0; i < STAYS; i++)
			want += stay[i].devices * fmax(0, fmin(high, stay[i].to) - fmax(low, stay[i].from));
		CHECK(fabs(s->bin[b].device_s - want) <= 1e-9 * (1 + want), "bin %u: %g, not %g", b,
			s->bin[b].device_s, want);
	}
}

static void bars_are_bounded_and_end_where_the_job_did(void **unused)
{
	struct hd_sched_story *s = open_story();

	(void)unused;
	for (uint32_t i = 0; i < 1000; i++)
		s->watch.ran(s, 3, i % 2, 1, 0, i * 100, i * 100 + 60);
	s->watch.ran(s, HD_STORY_JOBS, 0, 1, 0, 0, 1);              /* the first job without bars */
	assert_true(s->job[3].n <= HD_STORY_BARS && s->job[3].joined && !s->job[2].n);
	assert_true(fabs(s->job[3].bar[s->job[3].n - 1].to_s - 99960) < 1e-9 && s->job[3].bar[0].from_s == 0);
	for (uint32_t b = 1; b < s->job[3].n; b++)
		assert_true(s->job[3].bar[b].from_s >= s->job[3].bar[b - 1].to_s);
}

static void one_stay_told_in_parts_is_one_bar(void **unused)
{
	struct hd_sched_story *s = open_story();

	(void)unused;
	for (int i = 0; i < 10; i++)
		s->watch.ran(s, 0, 1, 2, 0, i * 60, (i + 1) * 60);
	assert_true(s->job[0].n == 1 && s->job[0].bar[0].to_s == 600);
	s->watch.ran(s, 0, 1, 4, 0, 600, 660);                      /* more devices */
	s->watch.ran(s, 0, 1, 4, 0, 700, 760);                      /* after a pause */
	assert_int_equal(s->job[0].n, 3);
}

/* ---- the page of a whole simulation ---- */

struct story_source { uint32_t at, n; };

static bool next_job(void *from, struct hd_listed_job *job)
{
	struct story_source *s = from;

	if (s->at == s->n)
		return false;
	*job = (struct hd_listed_job){ .kind = "", .command = "", .folder = "", .steps_arg = "", .user = "",
		.name = "", .scale = 1 + s->at % 2,
		.arrival_s = s->at * 30, .steps = 500 + 100 * (s->at % 5), .weight = 1, .slo = 2,
		.deadline_s = INFINITY };
	s->at++;
	return true;
}

static void a_page_shows_every_run_and_what_the_rows_come_to(void **unused)
{
	static struct hd_sched_sim_result result[2];
	struct hd_sched_report_run runs[2];
	struct hd_sched_type types[] = { { .name = "k80", .n = 2, .price_usd_h = 0.5 },
		{ .name = "v<100", .n = 3, .price_usd_h = 2 } };
	struct hd_text page;

	(void)unused;
	for (int k = 0; k < 2; k++) {
		struct hd_policy_setting policy = { 0 };
		struct story_source source = { .n = 70 };
		struct hd_sched_story *s;
		double device_s, usd, want_s = 0;
		struct hd_sched_sim_setting set = { .fidelity = HD_FIDELITY_EXACT, .policy = &policy,
			.ntypes = 2, .types = types, .next = next_job,
			.source = &source, .costs = HD_SWITCH_COSTS, .speed = (double[]){ 1, 3 } };
		assert_int_equal(hd_policy_parse(&policy, k ? "fifo" : "isolated", NULL), HD_OK);
		assert_int_equal(hd_sched_story_open(&s, &set, &arena, NULL), HD_OK);
		set.watch = hd_sched_story_watch(s);
		assert_int_equal(hd_sched_sim(&result[k], &set, &arena, NULL), HD_OK);
		runs[k] = (struct hd_sched_report_run){ k ? "fi&fo" : "isolated", &result[k], s };
		sums(s, &device_s, &usd);
		for (uint64_t i = 0; i < result[k].nrows; i++)
			want_s += result[k].row[i].device_s[0] + result[k].row[i].device_s[1];
		CHECK(fabs(device_s / want_s - 1) < 1e-9 && fabs(usd / result[k].cost_usd - 1) < 1e-9,
			"run %d: %g of %g, $%g of $%g", k, device_s, want_s, usd,
			result[k].cost_usd);
		if (k) {
			hd_text_init(&page, &arena);
			hd_sched_report_print(&page, "two", &set, runs, 2, &arena);
		}
	}
	assert_false(page.full);
	static const char *const has[] = { "fi&amp;fo", "v&lt;100", "of 70</td>", "the first of them only",
		"Job completion time", "Finish-time fairness",
		"Busy devices", "Cost so far", "</body></html>" };
	for (size_t i = 0; i < sizeof has / sizeof *has; i++)
		CHECK(strstr(page.at, has[i]), "the page does not say %s", has[i]);
	assert_null(strstr(page.at, "nan"));
	assert_null(strstr(page.at, "<script"));
	assert_null(strstr(page.at, "fi&fo"));
}

static void a_run_of_no_job_has_a_page_too(void **unused)
{
	struct hd_sched_type type = { .name = "k80", .n = 1 };
	struct hd_sched_sim_setting set = { .ntypes = 1, .types = &type };
	struct hd_sched_sim_result none = { .ended = "no job <came>", .avg_jct_s = NAN };
	struct hd_sched_report_run run = { "isolated", &none, open_story() };
	struct hd_text page;

	(void)unused;
	hd_text_init(&page, &arena);
	hd_sched_report_print(&page, "none", &set, &run, 1, &arena);
	assert_non_null(strstr(page.at, "no job is over"));
	assert_non_null(strstr(page.at, "no job ran"));
	assert_non_null(strstr(page.at, "no prices are known"));
	assert_non_null(strstr(page.at, "no job &lt;came&gt;"));
	assert_null(strstr(page.at, "nan"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_hold_what_the_stays_come_to),
		cmocka_unit_test(bars_are_bounded_and_end_where_the_job_did),
		cmocka_unit_test(one_stay_told_in_parts_is_one_bar),
		cmocka_unit_test(a_page_shows_every_run_and_what_the_rows_come_to),
		cmocka_unit_test(a_run_of_no_job_has_a_page_too),
	};
	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
