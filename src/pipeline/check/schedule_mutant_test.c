/* Random changes of legal, completed lists: each is refused, or an executor that shares no code with the
 * checker (tests/lists_oracle.inc.h) computes with it what one device computes, under the transport that was
 * checked.
 *
 * HD_MUTANTS: how many; HD_MUTANT: only this one, printed. */
#include "pipeline/schedule_check.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/generate.h"
#include "pipeline/passes.h"
#include "pipeline/simulate.h"
#include "tests/planning.h"
#include "tests/check.h"
#include "tests/lists_oracle.inc.h"

enum { A_PLAN = 40 };             /* mutants of one plan */

static struct o_world *world;
static uint32_t seed;

static int make_world(void **state)
{
	world = malloc(sizeof *world);
	return !world || make_arena(state);
}

static int drop_world(void **state)
{
	free(world);
	return drop_arena(state);
}

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(seed >> 4) * n) >> 28);
}

/* A legal plan, and the oracle's view of its job. */
struct legal_plan {
	struct hd_schedule s;
	struct hd_schedule_job job;
	struct o_job o;
	uint32_t steps;
	struct hd_tied_group tied[1];
	bool holds[O_STAGES];
	uint16_t buckets[O_STAGES];
};

static const struct { const char *name; uint32_t v; } kinds[] = {
	{ "1f1b", 1 }, { "gpipe", 1 }, { "interleaved", 2 }, { "zb-h1", 1 }, { "zb-h2", 1 }, { "zb-v", 2 }, { "v-half", 2 }, { "v-min", 2 },
	{ "dualpipev", 2 }, { "data-parallel", 1 }, { "1f1b-rr", 1 }, { "2bw", 1 }, { "stash", 1 }, { "vsync", 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static void tell_oracle(struct legal_plan *plan, uint32_t m)
{
	const struct hd_schedule *s = &plan->s;

	plan->o.clips = plan->job.clips;
	plan->o.loads = true;
	plan->o.credits = 2;
	plan->o.ngroups = plan->job.ntied;
	for (uint32_t k = 0; k < s->nstages; k++) {
		plan->o.every[k] = s->update == HD_UPDATE_STASH || s->update == HD_UPDATE_VSYNC ? 1 : m;
		plan->o.delay[k] = s->update == HD_UPDATE_2BW ? 1 : s->update == HD_UPDATE_VSYNC ?
			s->nranks - 1 :
			s->update == HD_UPDATE_STASH ? s->nranks - 1 - k : 0;
		plan->o.buckets[k] = plan->buckets[k];
		plan->o.tied[0][k] = plan->holds[k];
	}
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (s->list[r].at[i].op == HD_INS_F)
				plan->o.holder[r][s->list[r].at[i].stage] = true;
}

static void make_plan(struct legal_plan *plan)
{
	static bool recompute[O_STAGES], offload[O_STAGES];
	uint32_t kind = draw(NKINDS), p = 1 + draw(O_RANKS), m = p + draw(3), more = draw(8);
	struct hd_schedule_ask ask = { .name = kinds[kind].name, .p = p,
		.m = !strcmp(kinds[kind].name, "dualpipev") ? 2 * p : m, .v = kinds[kind].v };
	struct hd_schedule bare;
	struct hd_diag diag = { "" };

	*plan = (struct legal_plan){ .steps = 1 };
	const uint32_t replicas[] = { 2, p - 2 };
	if (!strcmp(ask.name, "1f1b-rr") && p > 1) {
		ask.replicas = replicas;
		ask.nreplicas = p > 2 ? 2 : 1;
	}
	CHECK(hd_schedule_make(&bare, &ask, &arena, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t k = 0; k < O_STAGES; k++) {
		recompute[k] = more & 1 && draw(2);
		offload[k] = more & 2 && draw(2);
		plan->buckets[k] = (uint16_t)(1 + draw(2));
		plan->holds[k] = k == 0 || k + 1 == bare.nstages;
	}
	plan->tied[0] = (struct hd_tied_group){ .name = "embedding", .nstages = bare.nstages,
		.holds = plan->holds };
	plan->job = (struct hd_schedule_job){ .whole = true, .clips = draw(2), .slots = draw(3),
		.buckets = plan->buckets, .tied = plan->tied,
		.ntied = bare.nstages > 1 ? draw(2) : 0 };
	plan->job.eager = !bare.prologue && draw(3) == 0;
	CHECK(hd_schedule_complete(&plan->s, &bare, &(struct hd_pass_options){ more & 4, recompute, offload,
		&plan->job }, &arena, &diag) == HD_OK, "%s", diag.text);
	if (bare.prologue)
		plan->steps = 5 + (p - 1 + ask.m - 1) / ask.m;
	tell_oracle(plan, ask.m);
}

static struct hd_ilist *copy_lists(const struct hd_ilist *from, uint32_t n)
{
	struct hd_ilist *to = from ? hd_arena_take(&arena, n, sizeof *to) : NULL;

	for (uint32_t r = 0; from && r < n; r++) {
		to[r] = (struct hd_ilist){ hd_arena_take(&arena, from[r].len + 2, sizeof *to[r].at),
			from[r].len, from[r].len + 2 };
		memcpy(to[r].at, from[r].at, from[r].len * sizeof *to[r].at);
	}
	return to;
}

static struct hd_schedule copy_of(const struct hd_schedule *s)
{
	struct hd_schedule c = *s;

	c.prologue = copy_lists(s->prologue, s->nranks);
	c.list = copy_lists(s->list, s->nranks);
	c.epilogue = copy_lists(s->epilogue, s->nranks);
	return c;
}

static struct hd_ilist *any_list(struct hd_schedule *s)
{
	struct hd_ilist *sections[] = { s->list, s->prologue, s->epilogue };
	struct hd_ilist *l;

	do
		l = sections[s->prologue ? draw(3) : 0] + draw(s->nranks);
	while (!l->len);
	return l;
}

static void forget(struct hd_schedule *s, uint8_t op)
{
	struct hd_ilist *sections[] = { s->prologue, s->list, s->epilogue };

	for (int k = 0; k < 3; k++)
		for (uint32_t r = 0; sections[k] && r < s->nranks; r++) {
			uint32_t n = 0;
			for (uint32_t i = 0; i < sections[k][r].len; i++)
				if (sections[k][r].at[i].op != op)
					sections[k][r].at[n++] = sections[k][r].at[i];
			sections[k][r].len = n;
		}
}

/* The next instruction of the same op, for exchanging two sends. */
static uint32_t next_like(const struct hd_ilist *l, uint32_t at)
{
	for (uint32_t k = 1; k < l->len; k++)
		if (l->at[(at + k) % l->len].op == l->at[at].op)
			return (at + k) % l->len;
	return at;
}

static void exchange(struct hd_ilist *l, uint32_t a, uint32_t b)
{
	struct hd_ins kept = l->at[a];

	l->at[a] = l->at[b];
	l->at[b] = kept;
}

static void insert(struct hd_ilist *l, uint32_t at, struct hd_ins x)
{
	if (l->len == l->cap)
		return;
	memmove(&l->at[at + 1], &l->at[at], (l->len - at) * sizeof x);
	l->at[at] = x;
	l->len++;
}

static void mutate(struct hd_schedule *s)
{
	static const uint8_t kinds_to_forget[] = { HD_INS_TIE, HD_INS_NORM, HD_INS_REL, HD_INS_PIN,
		HD_INS_RED, HD_INS_VAL, HD_INS_LD, HD_INS_STEP };
	struct hd_ilist *l = any_list(s), *other = any_list(s);
	uint32_t a = draw(l->len), b = draw(l->len);
	struct hd_ins *x = &l->at[a];

	switch (draw(14)) {
	case 0: memmove(x, x + 1, (l->len - a - 1) * sizeof *x); l->len--; break;
	case 1: insert(l, b, *x); break;
	case 2: exchange(l, a, a ? a - 1 : 0); break;
	case 3: exchange(l, a, b); break;
	case 4: x->stage = (uint16_t)draw(s->nstages + 1); break;
	case 5: x->vn = hd_ins_uses(x->op, 'v') ? draw(s->nvns + 1) : x->vn; break;
	case 6: x->ver = hd_ins_versioned(x) ? hd_ver_of(hd_ver_value(x->ver) + (int32_t)draw(3) - 1) :
		x->ver; break;
	case 7: x->peer = x->peer || hd_ins_uses(x->op, '>') ||
		hd_ins_uses(x->op, '<') ? (uint16_t)draw(s->nranks + 1) : 0; break;
	case 8: x->slot = hd_ins_uses(x->op, '#') ? (uint16_t)draw(4) : 0; break;
	case 9: exchange(l, a, next_like(l, a)); break;
	case 10: forget(s, kinds_to_forget[draw(8)]); break;
	case 11: insert(other, draw(other->len + 1), *x); memmove(x, x + 1,
		(l->len - (uint32_t)(x - l->at) - 1) * sizeof *x); l->len--; break;
	case 12: x->op = (uint8_t)(HD_INS_LD + draw(HD_INS_BAR)); break;
	default: x->flags ^= (uint8_t)(1u << draw(6)); break;
	}
}

/* What the lists do over all steps, on numbers. */
static bool harmless(const struct legal_plan *plan, const struct hd_schedule *s)
{
	struct hd_schedule run = *s;

	if (s->prologue && hd_schedule_unroll(&run, s, plan->steps, &arena, NULL))
		return false;
	if (run.nstages != plan->s.nstages || run.nvns != plan->s.nvns * plan->steps)
		return false;
	return o_run(world, &run, &plan->o, plan->s.nvns * plan->steps);
}

static const struct hd_schedule_rules two = { HD_TRANSPORT_BUFFERED, 2 };

static void completed_lists_compute_what_one_device_does(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < DRAWS(1000); n++) {
		struct legal_plan plan;
		struct hd_report report;
		seed = n * 2654435761u + 99;
		make_plan(&plan);
		CHECK(hd_schedule_check_job(&plan.s, &plan.job, &two, &report, NULL) == HD_OK,
			"plan %u: %s\n%s", n, report.at[0].text,
			hd_printed_schedule(&plan.s));
		CHECK(harmless(&plan, &plan.s), "plan %u: %s\n%s", n, world->why,
			hd_printed_schedule(&plan.s));
		hd_arena_reset(&arena);
	}
}

static void mutants_are_refused_or_compute_the_same(void **state)
{
	const char *asked = getenv("HD_MUTANTS"), *only = getenv("HD_MUTANT");
	uint32_t n = asked ? (uint32_t)strtoul(asked, NULL, 10) : DRAWS(100000), refused = 0, same = 0,
		tried = 0, strict = 0;
	struct legal_plan plan = { .steps = 0 };

	(void)state;
	for (uint32_t k = only ? (uint32_t)strtoul(only, NULL, 10) : 0; k < n; k++) {
		struct hd_report report;
		struct hd_diag diag = { "" };
		if (k % A_PLAN == 0 || !plan.steps) {
			hd_arena_reset(&arena);
			seed = k / A_PLAN * 2654435761u + 12345u;
			make_plan(&plan);
		}
		seed = k * 2246822519u + 7;
		struct hd_schedule s = copy_of(&plan.s);
		for (uint32_t i = 1 + draw(4) / 3; i > 0; i--)
			mutate(&s);
		if (only)
			printf("%s\nbecame\n%s\n", hd_printed_schedule(&plan.s), hd_printed_schedule(&s));
		enum hd_err err = hd_schedule_check_job(&s, &plan.job, &two, &report, &diag);
		CHECK(err == HD_OK || (err == HD_E_BADPLAN && report.total && diag.text[0]), "mutant %u", k);
		bool fine = err == HD_OK || k % 8 == 0 ? harmless(&plan, &s) : false;
		CHECK(err || fine, "mutant %u is accepted: %s", k, world->why);
		if (only)
			printf("%s, %s\n", err ? report.at[0].text : "accepted",
				fine ? "harmless" : world->why);
		refused += err != HD_OK;
		same += err == HD_OK;
		tried += err != HD_OK && k % 8 == 0;
		strict += err != HD_OK && k % 8 == 0 && fine;
		if (only)
			break;
	}
	print_message("%u mutants: %u refused, %u accepted and equal to the replay; of %u refused ones "
		"tried, %u were harmless\n",
		n, refused, same, tried, strict);
	assert_true(only || (refused > n / 2 && same > 0 && strict < tried / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completed_lists_compute_what_one_device_does),
		cmocka_unit_test(mutants_are_refused_or_compute_the_same),
	};
	return cmocka_run_group_tests(tests, make_world, drop_world);
}
