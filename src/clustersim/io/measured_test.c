/* Speeds from an accounting, by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clustersim/job_input.h"
#include "clustersim/measured.h"
#include "tests/check.h"

static void a_name_ends_before_its_repetition(void **state)
{
	static const struct { const char *name, *is; } cases[] = {
		{ "vit-b-seed3", "vit-b" }, { "vit-b_12", "vit-b" }, { "vit-b", "vit-b" }, { "resnet50", "resnet50" },
		{ "unet run 7", "unet" }, { "unet-3.4", "unet" }, { "7", "7" }, { "-5", "-5" }, { "seed4", "seed4" },
		{ "x-SEED-0012", "x" }, { "birdseed4", "birdseed4" }, { "", "" }, { "a-", "a-" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(hd_measured_name(cases[i].name) == strlen(cases[i].is), "%s: %zu", cases[i].name,
			hd_measured_name(cases[i].name));
}

struct row { const char *name, *user, *state, *type; int n, gpus; double took_s; };

static void measure(struct hd_measured *m, const struct row *rows, size_t n, uint32_t ntypes,
	struct hd_arena *arena)
{
	static const struct hd_sched_type type[] = { { .name = "a" }, { .name = "b" }, { .name = "c" },
		{ .name = "d" } };
	const struct hd_job_table_how how = { .rates = NULL };
	struct hd_diag diag = { "" };
	struct hd_job_list list;
	struct hd_text text;
	int id = 0;

	hd_text_init(&text, arena);
	hd_text_add(&text, "JobID|JobName|User|State|Submit|Start|ElapsedRaw|AllocTRES|\n");
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < rows[i].n; k++)
			hd_text_addf(&text, "%d|%s-seed%d|%s|%s|5|5|%.17g|gres/gpu:%s=%d|\n", ++id,
				rows[i].name, k,
				rows[i].user, rows[i].state, rows[i].took_s, rows[i].type, rows[i].gpus);
	CHECK(!hd_job_list_read(&list, "t", (const uint8_t *)text.at, text.len, &how, arena, &diag), "%s",
		diag.text);
	CHECK(!hd_speeds_measure(m, &list, type, ntypes, arena, &diag), "%s", diag.text);
}

static bool near(double x, double y) { return fabs(x - y) < 1e-9 * fabs(y); }

/* What takes a 100 s takes b 300 s; by another name, of fewer jobs, b is as fast: 1 / (1 / 2 + 1 / 2) = 1
	against
 * 1 / (1 / 1 + 1 / 1) = 1 / 2. Other numbers of devices, states, users and types without partners say
	nothing. */
static void alike_jobs_on_several_types_say_how_fast_these_are(void **state)
{
	static const struct row rows[] = {
		{ "m", "u", "COMPLETED", "a", 2, 1, 100 }, { "m", "u", "COMPLETED", "b", 2, 1, 300 },
		{ "k", "u", "COMPLETED", "a", 1, 1, 50 }, { "k", "u", "COMPLETED", "b", 1, 1, 50 },
		{ "m", "u", "COMPLETED", "b", 3, 2, 7 }, { "m", "v", "COMPLETED", "b", 3, 1, 7 },
		{ "m", "u", "FAILED", "b", 5, 1, 7 }, { "z", "u", "COMPLETED", "c", 5, 1, 7 },
	};
	struct hd_measured m;
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 1 << 24);
	measure(&m, rows, sizeof rows / sizeof *rows, 3, &arena);
	CHECK(m.reference == 0 && near(m.of[0].speed, 1) && near(m.of[1].speed, exp(-log(3) * 2 / 3)) &&
		isnan(m.of[2].speed), "b is %.17g", m.of[1].speed);
	CHECK(m.of[1].npairs == 2 && m.of[1].njobs == 3 && near(m.of[1].low, 1. / 3) && near(m.of[1].high,
		1) &&
		near(m.of[1].spread, exp(log(3) * sqrt(2) / 3)), "spread %g", m.of[1].spread);
	hd_arena_finish(&arena);
}

/* d is known through c alone. Pairs that agree are met exactly, whatever their weights. */
static void a_chain_of_pairs_is_enough(void **state)
{
	static const struct row rows[] = {
		{ "m", "u", "COMPLETED", "a", 4, 1, 100 }, { "m", "u", "COMPLETED", "b", 2, 1, 200 },
		{ "m", "u", "COMPLETED", "c", 1, 1, 400 }, { "k", "u", "COMPLETED", "c", 3, 1, 40 },
		{ "k", "u", "COMPLETED", "d", 1, 1, 10 }, { "n", "u", "COMPLETED", "a", 2, 1, 10 },
		{ "n", "u", "COMPLETED", "b", 2, 1, 20 },
	};
	struct hd_measured m;
	struct hd_arena arena;
	(void)state;

	hd_arena_init(&arena, 1 << 24);
	measure(&m, rows, sizeof rows / sizeof *rows, 4, &arena);
	CHECK(near(m.of[1].speed / m.of[0].speed, 0.5) && near(m.of[2].speed / m.of[0].speed, 0.25) &&
		near(m.of[3].speed / m.of[0].speed, 1), "%g %g %g %g", m.of[0].speed, m.of[1].speed,
		m.of[2].speed, m.of[3].speed);
	CHECK(m.of[3].npairs == 0 && near(m.of[m.reference].speed, 1), "the reference is %u", m.reference);
	hd_arena_finish(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_ends_before_its_repetition),
		cmocka_unit_test(alike_jobs_on_several_types_say_how_fast_these_are),
		cmocka_unit_test(a_chain_of_pairs_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
