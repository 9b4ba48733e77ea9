/* A plan or a file of schedules that is read prints to a text that is read again and prints
 * to the same bytes; the checker survives every plan, whatever job it is held against; the
 * simulator survives every schedule and its figures agree with each other; what the checker of schedules
 * accepts, it runs to its end, and the passes complete it to something that is accepted too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plan/check.h"
#include "pipeline/staged.h"
#include "pipeline/passes.h"
#include "pipeline/schedule_check.h"
#include "pipeline/simulate.h"

enum { BUDGET = 64 << 20, PRINT_BUDGET = 512 << 20, JOB_CHUNKS_MAX = 1 << 22 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void same(const struct hd_text *a, const struct hd_text *b)
{
	if (a->full || b->full || a->len != b->len || memcmp(a->at, b->at, a->len) != 0)
		abort();
}

static void check_against_jobs(const struct hd_plan *plan)
{
	struct hd_report report;
	struct hd_diag diag = { "" };
	struct hd_plan_job job = { .nvns = plan->nvns, .nchunks = plan->nchunks, .nstages = plan->nstages };

	/* tokens per (stage, virtual node): keep the fuzzer's memory within reason */
	if ((uint64_t)plan->nvns * plan->nstages > JOB_CHUNKS_MAX)
		job.nstages = plan->nstages + 1;
	enum hd_err err = hd_plan_check(plan, &job, &report, &diag);
	if ((err == HD_OK) != (report.total == 0) || (err && !diag.text[0]))
		abort();
	if (hd_plan_check_alone(plan, NULL, NULL) == HD_E_BADPLAN && err == HD_OK &&
		plan->nstages == HD_RUN_STAGES)
		abort();                              /* less is asked for */
	err = HD_OK;
	diag.text[0] = 0;
	if ((uint64_t)plan->nvns * plan->nstages <= JOB_CHUNKS_MAX)
		err = hd_plan_check_file(plan, &report, &diag);
	if (err && (!diag.text[0] || (err == HD_E_BADPLAN && report.total == 0)))
		abort();
	(void)hd_plan_digest(plan);
}

static void try_plan(const char *text, size_t len, struct hd_arena *arena, struct hd_arena *print)
{
	struct hd_plan plan, again;
	struct hd_text once, twice;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_plan_parse(&plan, text, len, "f", arena, &diag);

	if (err && !diag.text[0])
		abort();
	if (err)
		return;
	hd_text_init(&once, print);
	hd_text_init(&twice, print);
	if (hd_plan_print(&plan, &once) || hd_plan_parse(&again, once.at, once.len, "f", print, NULL) ||
		hd_plan_print(&again, &twice))
		abort();
	same(&once, &twice);
	check_against_jobs(&plan);
}

/* What is accepted can be completed, or the reason is named, and is accepted then; completed, it stays as
 * it is. */
static void complete(const struct hd_schedule *schedule, struct hd_arena *arena)
{
	struct hd_schedule whole, again;
	struct hd_text once, twice;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_schedule_complete(&whole, schedule, &(struct hd_pass_options){ .merge = true },
		arena,
		&diag);

	if (err && !diag.text[0])
		abort();
	if (err)
		return;
	if (hd_schedule_check(&whole, &(struct hd_schedule_rules){ HD_TRANSPORT_EAGER, 0 }, NULL,
		NULL) == HD_E_BADPLAN)
		abort();
	hd_text_init(&once, arena);
	hd_text_init(&twice, arena);
	hd_schedule_print(&whole, &once);
	if (hd_schedule_complete(&again, &whole, &(struct hd_pass_options){ .merge = true }, arena, NULL))
		abort();
	hd_schedule_print(&again, &twice);
	same(&once, &twice);
}

static void simulate(const struct hd_schedule *schedule, struct hd_arena *arena)
{
	struct hd_sim sim;
	struct hd_diag diag = { "" };
	const struct hd_sim_ask ask = { .costs = { 3, 2, 1, 5 }, .spans = true };
	enum hd_err err = hd_simulate(&sim, schedule, &ask, arena, &diag);

	if (err && !diag.text[0])
		abort();
	for (int t = 0; t < HD_NTRANSPORTS && schedule->nranks <= 64; t++) {
		struct hd_report report;
		enum hd_err checked = hd_schedule_check(schedule,
			&(struct hd_schedule_rules){ (enum hd_transport)t, 1 }, &report, NULL);
		if ((checked == HD_E_BADPLAN) != (report.total != 0) ||
			(checked == HD_OK && err == HD_E_BADPLAN))
			abort();
		if (checked == HD_OK && t == HD_TRANSPORT_EAGER)
			complete(schedule, arena);
	}
	for (uint32_t r = 0; !err && r < sim.ran.nranks; r++)
		if (sim.rank[r].busy > sim.busiest || sim.rank[r].last > sim.makespan ||
			sim.rank[r].last - sim.rank[r].first < sim.rank[r].busy)
			abort();
}

static void try_schedules(const char *text, size_t len, struct hd_arena *arena, struct hd_arena *print)
{
	struct hd_schedules all, again;
	struct hd_text once, twice;

	if (hd_schedules_parse(&all, text, len, "f", arena, NULL))
		return;
	hd_text_init(&once, print);
	hd_text_init(&twice, print);
	for (uint32_t i = 0; i < all.len; i++) {
		hd_schedule_print(&all.at[i], &once);
		simulate(&all.at[i], print);
	}
	if (hd_schedules_parse(&again, once.at, once.len, "f", print, NULL))
		abort();
	for (uint32_t i = 0; i < again.len; i++)
		hd_schedule_print(&again.at[i], &twice);
	same(&once, &twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena, print;

	hd_arena_init(&arena, BUDGET);
	hd_arena_init(&print, PRINT_BUDGET);
	try_plan((const char *)bytes, len, &arena, &print);
	try_schedules((const char *)bytes, len, &arena, &print);
	hd_arena_finish(&arena);
	hd_arena_finish(&print);
	return 0;
}
