/* Schedules against the vectors of the plan documents, character for character, and against laws
 * that are counted here from the lists alone. Closed forms of time: sim/simulate_test.c. */
#include "pipeline/generate.h"

#include <stdio.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

/* "interleaved-v2" is interleaved with two chunks. */
static void lists_equal_the_stored_ones(void **state)
{
	char *text = hd_shared_text("schedules.txt");

	(void)state;
	if (!text) {
		SKIP("data/schedules.txt is neither in HEDDLE_SHARED nor in tests");
	}
	struct hd_schedules all = hd_parsed_schedules(text);
	assert_int_equal(all.len, 9);
	for (uint32_t i = 0; i < all.len; i++) {
		char name[40], *v;
		struct hd_text want, got;
		assert_int_equal(sscanf(all.at[i].heading, "%39s", name), 1);
		if ((v = strstr(name, "-v2")))
			*v = '\0';
		struct hd_schedule s = hd_named_schedule(name, all.at[i].nranks, all.at[i].nvns,
			all.at[i].nstages / all.at[i].nranks);
		s.heading = all.at[i].heading;
		hd_text_init(&want, &arena);
		hd_text_init(&got, &arena);
		hd_schedule_print(&all.at[i], &want);
		hd_schedule_print(&s, &got);
		assert_string_equal(got.at, want.at);
	}
}

/* What the lists of a schedule hold of each (stage, virtual node), in three sections or one. */
struct seen { uint32_t f, b, i, w, rank; };

static void count(const struct hd_schedule *s, const struct hd_ilist *list, uint32_t base, uint32_t total,
	struct seen *seen, const char *name)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t k = 0; k < list[r].len; k++) {
			const struct hd_ins *ins = &list[r].at[k];
			uint32_t vn = base + ins->vn;
			CHECK(vn < total && ins->stage < s->nstages, "%s: %u.%d", name, ins->stage, (int)vn);
			struct seen *x = &seen[ins->stage * total + vn];
			CHECK(x->f + x->b + x->i + x->w == 0 || x->rank == r, "%s: %u.%u on two ranks", name,
				ins->stage, vn);
			x->rank = r;
			x->f += ins->op == HD_INS_F;
			x->b += ins->op == HD_INS_B;
			x->i += ins->op == HD_INS_I;
			x->w += ins->op == HD_INS_W;
			CHECK(ins->op != HD_INS_F || x->b + x->i + x->w == 0,
				"%s: %u.%u backward before forward", name, ins->stage, vn);
			CHECK(ins->op != HD_INS_W || x->i == 1, "%s: %u.%u W before I", name, ins->stage, vn);
		}
}

static void check_complete(const struct hd_schedule *s, const char *name)
{
	uint32_t first = 0, m = s->nvns, steps = 1;

	for (uint32_t k = 0; s->prologue && k < s->prologue[0].len; k++)
		first = s->prologue[0].at[k].vn / m + 1 > first ? s->prologue[0].at[k].vn / m + 1 : first;
	steps = s->prologue ? first + 3 : 1;
	struct seen *seen = hd_arena_take(&arena, (size_t)s->nstages * m * steps, sizeof *seen);
	if (s->prologue)
		count(s, s->prologue, 0, m * steps, seen, name);
	for (uint32_t k = first; k < steps; k++)
		count(s, s->list, k * m, m * steps, seen, name);
	if (s->epilogue)
		count(s, s->epilogue, steps * m, m * steps, seen, name);
	for (uint32_t x = 0; x < s->nstages * m * steps; x++)
		CHECK(seen[x].f == 1 && ((seen[x].b == 1 && !seen[x].i && !seen[x].w) ||
			(!seen[x].b && seen[x].i == 1 && seen[x].w == 1)),
			"%s: %u.%u F %u B %u I %u W %u", name, x / (m * steps), x % (m * steps), seen[x].f,
			seen[x].b, seen[x].i, seen[x].w);
}

/* Of each op of each stage, and of a stage's copies each by itself. */
static void check_ascending(const struct hd_schedule *s, const char *name)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t k = 0; k < s->list[r].len; k++)
			for (uint32_t n = k + 1; n < s->list[r].len; n++) {
				const struct hd_ins *a = &s->list[r].at[k], *b = &s->list[r].at[n];
				bool same = a->op == b->op || (a->op == HD_INS_B && b->op == HD_INS_I);
				if (a->stage != b->stage || !same)
					continue;
				CHECK((int32_t)a->vn < (int32_t)b->vn, "%s: rank %u takes %d before %d", name,
					r, (int32_t)a->vn, (int32_t)b->vn);
				break;
			}
}

static void all_kinds_are_complete_and_ascend(void **state)
{
	(void)state;
	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++)
		for (uint32_t p = 1; p <= 9; p++)
			for (uint32_t m = 1; m <= 20; m++)
				for (uint32_t v = k->vmin; v <= k->vmax && v <= 4; v++) {
					struct hd_schedule s;
					if ((!strcmp(k->limits, "m >= 2p") && m < 2 * p) ||
						(!strcmp(k->limits, "m >= p") && m < p))
						continue;
					s = hd_named_schedule(k->name, p, m, v);
					check_complete(&s, k->name);
					check_ascending(&s, k->name);
					hd_arena_reset(&arena);
				}
}

static void replicated_stages_take_turns(void **state)
{
	static const uint32_t replicas[] = { 2, 1 };
	const struct hd_schedule_ask ask = { .name = "1f1b-rr", .p = 3, .m = 5, .replicas = replicas,
		.nreplicas = 2 };
	struct hd_schedule s;
	struct hd_text text;

	(void)state;
	assert_int_equal(hd_schedule_make(&s, &ask, &arena, NULL), HD_OK);
	hd_text_init(&text, &arena);
	hd_schedule_print(&s, &text);
	assert_string_equal(text.at,
		"## 1f1b-rr p=3 m=5 stages=2\n0: F0.0 F0.2 B0.0 F0.4 B0.2 B0.4\n1: F0.1 F0.3 B0.1 B0.3\n"
		"2: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3 F1.4 B1.4\n");
}

static void delayed_updates_never_drain(void **state)
{
	struct hd_schedule s = hd_named_schedule("2bw", 3, 3, 1);
	struct hd_text text;

	(void)state;
	hd_text_init(&text, &arena);
	hd_schedule_print(&s, &text);
	assert_string_equal(text.at, "## 2bw p=3 m=3 stages=3\nupdate 2bw\n"
		"section prologue\n0: F0.0 F0.1 F0.2 B0.0\n1: F1.0 F1.1 B1.0 F1.2 B1.1\n2: F2.0 B2.0 F2.1 "
		"B2.1 F2.2 B2.2\n"
		"section period\n0: F0.0 B0.-2 F0.1 B0.-1 F0.2 B0.0\n1: F1.0 B1.-1 F1.1 B1.0 F1.2 B1.1\n2: "
		"F2.0 B2.0 F2.1 B2.1 F2.2 B2.2\n"
		"section epilogue\n0: B0.-2 B0.-1\n1: B1.-1\n2:\n");
}

static void what_cannot_work_is_refused_with_what_can(void **state)
{
	static const uint32_t none[] = { 2, 0 }, three[] = { 2, 1 };
	static const struct { struct hd_schedule_ask ask; const char *want; } cases[] = {
		{ { .name = "dualpipev", .p = 2, .m = 3 }, "dualpipev needs m >= 2p: m = 3, p = 2; the nearest that works: -m 4" },
		{ { .name = "2bw", .p = 4, .m = 3 }, "2bw needs m >= p: m = 3, p = 4; the nearest that works: -m 4" },
		{ { .name = "1f1d", .p = 2, .m = 3 }, "there is no schedule \"1f1d\"; did you mean 1f1b?" },
		{ { .name = "chimera", .p = 2, .m = 3 }, "there is no schedule \"chimera\"; there are data-parallel, " },
		{ { .name = "gpipe", .p = 0, .m = 3 }, "gpipe: 0 ranks (-p)" }, { { .name = "gpipe", .p = 5000, .m = 3 }, "gpipe: 5000 ranks (-p)" },
		{ { .name = "gpipe", .p = 2 }, "gpipe: 0 virtual nodes (-m)" },
		{ { .name = "gpipe", .p = 2, .m = 2, .v = 2 }, "gpipe has 1 model chunk a rank, not 2" },
		{ { .name = "interleaved", .p = 2, .m = 2, .v = 1 }, "interleaved has 2 to 64 model chunks a rank, not 1; the nearest that works: --chunks 2" },
		{ { .name = "zb-v", .p = 2, .m = 2, .v = 3 }, "zb-v has 2 model chunks a rank, not 3" },
		{ { .name = "interleaved", .p = 4000, .m = 2, .v = 64 }, "interleaved: 4000 ranks of 64 chunks are more than 65535 stages" },
		{ { .name = "gpipe", .p = 4096, .m = 65536 }, "gpipe: p = 4096, m = 65536, v = 1 make 536870912 instructions" },
		{ { .name = "interleaved", .p = 4, .m = 6, .group = 3 }, "interleaved: a group has at least p virtual nodes and divides m: group = 3, p = 4, m = 6" },
		{ { .name = "1f1b-rr", .p = 2, .m = 6, .replicas = none, .nreplicas = 2 }, "1f1b-rr: stage 1 has no replica" },
		{ { .name = "1f1b-rr", .p = 4, .m = 6, .replicas = three, .nreplicas = 2 }, "1f1b-rr: the replicas of all stages make 3 ranks, not p = 4; the nearest that works: -p 3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		struct hd_schedule s;
		enum hd_err err = hd_schedule_make(&s, &cases[i].ask, &arena, &diag);
		CHECK(err == HD_E_INVAL && !strncmp(diag.text, cases[i].want, strlen(cases[i].want)), "%s",
			diag.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_equal_the_stored_ones),
		cmocka_unit_test(all_kinds_are_complete_and_ascend),
		cmocka_unit_test(replicated_stages_take_turns),
		cmocka_unit_test(delayed_updates_never_drain),
		cmocka_unit_test(what_cannot_work_is_refused_with_what_can),
	};
	return cmocka_run_group_tests(tests, make_arena, drop_arena);
}
