#include "engine/pipe.h"

#include "engine/testing_stages.h"

/* Every list that the checker accepts runs: lists of small pipelines are changed at random; what the checker
 * then accepts, the engine executes, with the bits of one device. A list that makes it wait for ever is a
 * failure by the deadline of the test. HD_DRAWS: how many changed lists; the default is a slice. */

enum { VNS = 4, DRAWS = 4000 };

static const char net[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 32}\n";

/* The lists of steps that overlap are made of numbers alone (pipeline/window.h): nothing of a changed list
 * would be in them. */
static const struct {
	const char *name;
	uint32_t p, v;
	enum hd_stage_keeps keeps;
	enum hd_redundancy mode;
	uint32_t copies[3];               /* of each stage; 0: it has one */
	const char *more;
} kinds[] = {
	{ .name = "gpipe", 2, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "1f1b", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "interleaved", 2, 2, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "zb-h1", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "zb-v", 2, 2, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "dualpipev", 2, 2, HD_KEEPS_ALL, HD_REDUNDANCY_NONE },
	{ .name = "1f1b", 3, 1, HD_KEEPS_AWAY, HD_REDUNDANCY_NONE },
	{ .name = "zb-v", 2, 2, HD_KEEPS_AWAY, HD_REDUNDANCY_NONE },
	{ .name = "1f1b", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_EAGER },
	{ .name = "gpipe", 3, 1, HD_KEEPS_AWAY, HD_REDUNDANCY_FULL },
	{ .name = "zb-h1", 2, 1, HD_KEEPS_ALL, HD_REDUNDANCY_FULL },
	{ .name = "1f1b", 2, 1, HD_KEEPS_INPUT, HD_REDUNDANCY_LAZY },
	{ .name = "1f1b-rr", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE, { 2, 1 } },
	{ .name = "1f1b-rr", 3, 1, HD_KEEPS_INPUT, HD_REDUNDANCY_NONE, { 1, 2 } },
	{ .name = "1f1b-rr", 4, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE, { 1, 2, 1 } },
	{ .name = "1f1b", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE, { 0 }, "optim: {kind: adamw, update: 2bw}\n" },
	{ .name = "1f1b-rr", 3, 1, HD_KEEPS_ALL, HD_REDUNDANCY_NONE, { 2, 1 },
		"optim: {kind: momentum, lr: 0.05, update: stash, cuts: auto:2}\n" },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static uint64_t dice = 1;

static uint32_t roll(uint32_t below)
{
	dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((dice >> 33) % below);
}

/* One instruction goes elsewhere in its list: most changes keep what is done, and alter when. */
static void move_one(struct hd_ilist *list)
{
	uint32_t from = roll(list->len), to = roll(list->len);
	struct hd_ins ins = list->at[from];

	if (roll(3)) {                    /* not far */
		to = from + roll(7);
		to = to < 3 ? 0 : to - 3;
		to = to < list->len ? to : list->len - 1;
	}
	memmove(&list->at[from], &list->at[from + 1], (list->len - from - 1) * sizeof ins);
	memmove(&list->at[to + 1], &list->at[to], (list->len - to - 1) * sizeof ins);
	list->at[to] = ins;
}

static void drop_one(struct hd_ilist *list)
{
	uint32_t at = roll(list->len);

	memmove(&list->at[at], &list->at[at + 1], (list->len - at - 1) * sizeof *list->at);
	list->len--;
}

static void alter_one(struct hd_ilist *list)
{
	struct hd_ins *ins = &list->at[roll(list->len)];

	if (roll(2))
		ins->vn = roll(VNS);
	else
		ins->stage = (uint16_t)roll(4);
}

static void change(struct hd_plan *plan)
{
	for (uint32_t n = 1 + roll(4); n; n--) {
		struct hd_ilist *list = &plan->list[roll(plan->nranks)];
		switch (roll(12)) {
		case 0:  drop_one(list); break;
		case 1:  alter_one(list); break;
		default: move_one(list); break;
		}
	}
}

static void copy_plan(struct hd_plan *to, const struct hd_plan *from, struct hd_arena *arena)
{
	*to = *from;
	to->list = hd_arena_take(arena, from->nranks, sizeof *to->list);
	for (uint32_t r = 0; r < from->nranks; r++) {
		to->list[r] = from->list[r];
		to->list[r].at = hd_arena_take(arena, from->list[r].len + 1, sizeof *to->list[r].at);
		memcpy(to->list[r].at, from->list[r].at, from->list[r].len * sizeof *to->list[r].at);
	}
}

static void plan_of(struct hd_rig *rig, size_t k, struct hd_plan *plan)
{
	const struct hd_plan_job job = hd_worker_plan_job(rig->worker);
	struct hd_schedule_ask ask = { .name = kinds[k].name, .p = kinds[k].p, .v = kinds[k].v, .m = VNS };
	struct hd_schedule s;
	struct hd_diag diag = { "" };
	uint32_t first[8];

	while (ask.nreplicas < 3 && kinds[k].copies[ask.nreplicas])
		ask.nreplicas++;
	ask.replicas = ask.nreplicas ? kinds[k].copies : NULL;
	ask.neighbours = ask.nreplicas > 0;
	CHECK(hd_schedule_make(&s, &ask, &rig->arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_graph_stages_balance(first, s.nstages, &rig->task->train, 2, &rig->arena, &diag),
		HD_OK);
	CHECK(hd_plan_staged(plan, &job, &s, 1, first, kinds[k].keeps, &rig->arena, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(!kinds[k].mode || hd_rig_shadowed(plan, kinds[k].mode, &rig->arena, &diag) == HD_OK, "%s",
		diag.text);
}

static void what_the_checker_accepts_runs(void **state)
{
	const char *draws = getenv("HD_DRAWS");
	const uint32_t n = draws ? (uint32_t)strtoul(draws, NULL, 10) : DRAWS;
	uint32_t accepted = 0, changed = 0;

	(void)state;
	for (size_t k = 0; k < NKINDS; k++) {
		struct hd_rig rig, one;
		struct hd_plan plan;
		hd_rig_open(&one, net, 8, VNS, kinds[k].more, 1);
		hd_rig_open(&rig, net, 8, VNS, kinds[k].more, kinds[k].p);
		const uint32_t changed_before = changed;
		plan_of(&rig, k, &plan);
		const struct hd_plan_job job = hd_worker_plan_job(rig.worker);
		for (uint32_t i = 0; i < n / NKINDS; i++) {
			struct hd_arena arena;
			struct hd_plan mutant;
			struct hd_diag diag = { "" };
			hd_arena_init(&arena, 0);
			copy_plan(&mutant, &plan, &arena);
			change(&mutant);
			if (hd_plan_staged_check(&mutant, &job, NULL, &diag) == HD_OK) {
				accepted++;
				changed += !hd_hash_same(hd_plan_digest(&mutant), hd_plan_digest(&plan));
				CHECK(hd_worker_adopt(rig.worker, &mutant, &diag) == HD_OK, "%s: %s",
					kinds[k].name, diag.text);
				struct hd_step_record a = hd_rig_step(&rig), b = hd_rig_step(&one);
				CHECK(hd_hash_same(a.digest, b.digest), "%s, draw %u: other bits",
					kinds[k].name,
					i);
				CHECK(hd_worker_adopt(rig.worker, &plan, &diag) == HD_OK, "%s", diag.text);
			}
			hd_arena_finish(&arena);
		}
		hd_rig_close(&rig);
		hd_rig_close(&one);
		CHECK(changed > changed_before, "%s %zu: no changed list was accepted", kinds[k].name, k);
	}
	print_message("%u of %u changed lists were accepted, %u of them other lists\n", accepted, n, changed);
	CHECK(changed > n / 40, "only %u of %u changed lists were accepted: nothing is shown", changed, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_the_checker_accepts_runs) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
