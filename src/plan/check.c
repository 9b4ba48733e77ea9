#include "plan/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Each rank's list is walked once with a token per (stage, virtual node). Ranks meet only
 * at RED and NORM, which stand in the same order on all, so walking them one after the
 * other proves as much as walking them together. */

/* Ids of the plan documents; RUN and MEET are ours: what this build's runtime asks for. */
#define RULES(X) X(K1) X(K2) X(K3) X(K4) X(K6) X(K7) X(K12) X(K16) X(K17) X(K18) X(K20) X(K28) X(RUN) X(MEET)
enum rule {
#define X(id) id,
	RULES(X)
#undef X
};
static const char *const rule_names[] = {
#define X(id) #id,
	RULES(X)
#undef X
};

/* What engine interprets; everything else is refused by name. */
static const uint8_t runs[] = { HD_INS_LD, HD_INS_F, HD_INS_B, HD_INS_FL, HD_INS_BL, HD_INS_RED, HD_INS_NORM,
	HD_INS_STEP };

enum { LOADED = 1, FORWARD = 2, FULL = 4, INPUT = 8, WEIGHTS = 16 };

struct done_token { uint32_t rank, at; uint8_t done; };    /* rank and place of F */

/* A rank's own progress in each stage. */
struct stage_progress { bool reduced, updated; uint32_t ngrads; };

struct plan_walk {
	const struct hd_plan *plan;
	const struct hd_plan_job *job;
	struct hd_report *report;
	struct done_token *token;              /* [nstages * nvns] */
	struct stage_progress *stage;              /* [nstages], of the rank at hand */
	uint32_t *count;                  /* [nranks] virtual nodes of each */
	uint32_t rank, at, nhere;         /* nhere: virtual nodes of the rank */
	/* the wave begun and not finished: virtual nodes [open, open_end); open NO_VN: none */
	uint32_t open, open_end;
	uint32_t nback, last;             /* backwards of that wave; the last virtual node begun */
	bool     normed;
};
#define NO_VN UINT32_MAX

void hd_fragment_draw(char *out, size_t cap, const struct hd_ilist *list, uint32_t rank, uint32_t at)
{
	enum { AROUND = 5 };
	uint32_t first = at > AROUND ? at - AROUND : 0;
	struct hd_text text;

	hd_text_fixed(&text, out, cap);
	hd_text_addf(&text, "rank %u from #%u:", rank, first);
	for (uint32_t i = first; i < list->len && i <= at + AROUND; i++) {
		hd_text_add(&text, i == at ? " [" : " ");
		hd_ins_print(&list->at[i], &text);
		hd_text_add(&text, i == at ? "]" : "");
	}
}

static void put_finding(struct hd_report *report, enum rule rule, const char *place, const char *fmt,
	va_list args)
{
	if (report->total++ >= HD_MAX_FINDINGS)
		return;
	struct hd_finding *f = &report->at[report->len++];
	f->rule = rule_names[rule];
	f->fragment[0][0] = f->fragment[1][0] = '\0';
	int n = snprintf(f->text, sizeof f->text, "plan: %s", place);
	vsnprintf(f->text + n, sizeof f->text - (size_t)n, fmt, args);
}

/* About the plan, or (with a walk that stands on an instruction) about that instruction. */
__attribute__((format(printf, 3, 4)))
static void say(struct hd_report *report, enum rule rule, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_finding(report, rule, "", fmt, args);
	va_end(args);
}

__attribute__((format(printf, 3, 4)))
static void say_here(const struct plan_walk *w, enum rule rule, const char *fmt, ...)
{
	char place[96], word[48];
	struct hd_text text;
	va_list args;

	hd_text_fixed(&text, word, sizeof word);
	hd_ins_print(&w->plan->list[w->rank].at[w->at], &text);
	snprintf(place, sizeof place, "rank %u, #%u %s: ", w->rank, w->at, word);
	va_start(args, fmt);
	put_finding(w->report, rule, place, fmt, args);
	va_end(args);
	if (w->report->total <= HD_MAX_FINDINGS)
		hd_fragment_draw(w->report->at[w->report->len - 1].fragment[0],
			sizeof w->report->at[0].fragment[0], &w->plan->list[w->rank], w->rank, w->at);
}

__attribute__((format(printf, 3, 4)))
static void say_rank(const struct plan_walk *w, enum rule rule, const char *fmt, ...)
{
	char place[32];
	va_list args;

	snprintf(place, sizeof place, "rank %u: ", w->rank);
	va_start(args, fmt);
	put_finding(w->report, rule, place, fmt, args);
	va_end(args);
}

static struct done_token *token_of(const struct plan_walk *w, uint32_t stage,
	uint32_t vn) { return &w->token[(size_t)stage * w->plan->nvns + vn]; }

/* K4 and K28 for what is no instruction. Nothing else can be asked of a plan of another shape. */
static bool check_shape(const struct hd_plan *p, const struct hd_plan_job *job, struct hd_report *report)
{
	uint64_t nins = 0;

	if (p->nranks == 0 || p->nranks > HD_MAX_RANKS)
		say(report, K4, "it is for %u ranks; 1 to %d are possible", p->nranks, HD_MAX_RANKS);
	if (p->nvns != job->nvns || p->nvns == 0 || p->nvns > HD_MAX_VNS)
		say(report, K4, "it has %u virtual nodes, the job has %u", p->nvns, job->nvns);
	if (p->nstages != job->nstages || p->nstages == 0)
		say(report, K4, "it has %u stages, a run has %u", p->nstages, job->nstages);
	if (p->nchunks != job->nchunks)
		say(report, K4, "it gives owners to %u chunks, the job has %u", p->nchunks, job->nchunks);
	for (uint32_t r = 0; !report->total && r < p->nranks; r++)
		nins += p->list[r].len;
	if (nins > HD_MAX_INS)
		say(report, K4, "it has %llu instructions; %d are the most", (unsigned long long)nins,
			HD_MAX_INS);
	if (report->total)
		return false;
	for (uint32_t v = 0; v < p->nvns; v++)
		if (p->map[v] >= p->nranks)
			say(report, K28, "virtual node %u is assigned to no pipeline: there is no rank %u", v,
				p->map[v]);
	for (uint32_t c = 0; c < p->nchunks; c++)
		if (p->owner[c] >= p->nranks)
			say(report, K4, "chunk %u is owned by rank %u, there are %u", c, p->owner[c],
				p->nranks);
	return true;
}

/* Of one that verifies: fields that it does not use are 0. The number of a BAR is no stage. */
static bool in_range(const struct plan_walk *w, const struct hd_ins *ins)
{
	bool fine = true;

	if (ins->op != HD_INS_BAR && ins->stage >= w->plan->nstages) {
		say_here(w, K4, "stage %u does not exist (there are %u)", ins->stage, w->plan->nstages);
		fine = false;
	}
	if (ins->vn >= w->plan->nvns) {
		say_here(w, K4, "virtual node %d does not exist in this step (m = %u)", (int32_t)ins->vn,
			w->plan->nvns);
		fine = false;
	}
	return fine;
}

static bool has_runtime(const struct plan_walk *w, const struct hd_ins *ins)
{
	if (ins->flags) {
		say_here(w, RUN, "flags have no runtime in this build");
		return false;
	}
	if (ins->slot) {
		say_here(w, RUN, "buckets and slots have no runtime in this build");
		return false;
	}
	bool one = ins->op == HD_INS_F || ins->op == HD_INS_B, all = ins->op == HD_INS_FL ||
		ins->op == HD_INS_BL;
	if (w->job->lockstep ? one : all) {
		say_here(w, RUN,
			w->job->lockstep ?
			"norms over the global batch and graphs in several intervals need all virtual nodes "
			"in lockstep (FL, BL)" :
			"only norms over the global batch and graphs in several intervals need lockstep; "
			"this job has neither");
		return false;
	}
	for (size_t i = 0; i < sizeof runs; i++)
		if (runs[i] == ins->op)
			return true;
	say_here(w, RUN, "%s has no runtime in this build", hd_ins_row(ins->op)->text);
	return false;
}

/* The runtime keeps the samples and activations of one wave, neighbours that are begun before the first of
 * them goes back, and folds in ascending order. */
static void check_open(struct plan_walk *w, uint32_t vn)
{
	uint32_t most = w->job->wave ? w->job->wave : 1;

	if (w->job->lockstep) {
		if (w->last != NO_VN && vn < w->last)
			say_here(w, RUN,
				"virtual node %u comes after %u; a rank runs its virtual nodes in ascending "
				"order", vn, w->last);
		w->last = vn;
		return;
	}
	if (vn >= w->open && vn < w->open_end)            /* never of NO_VN */
		return;
	if (w->open != NO_VN && vn == w->open_end && w->nback == 0 && vn - w->open < most) {
		w->last = vn;
		w->open_end++;
		return;
	}
	if (w->open != NO_VN)
		say_here(w, RUN,
			"virtual node %u is begun before %u is finished; a rank keeps the activations of %u",
			vn, w->open, most);
	else if (w->last != NO_VN && vn <= w->last)
		say_here(w, RUN,
			"virtual node %u comes after %u; a rank runs its virtual nodes in ascending order",
			vn, w->last);
	w->open = w->last = vn;
	w->open_end = vn + 1;
	w->nback = 0;
}

static void one_back(struct plan_walk *w, uint32_t stage)
{
	w->stage[stage].ngrads++;
	if (++w->nback == w->plan->nstages * (w->open_end - w->open))
		w->open = NO_VN;
}

/* Samples of stage 0 and labels of the last stage. */
static void load(struct plan_walk *w, const struct hd_ins *ins, struct done_token *t)
{
	if (ins->stage != 0 && ins->stage + 1u != w->plan->nstages)
		say_here(w, K4, "stage %u takes nothing from the reader", ins->stage);
	if (t->done & LOADED)
		say_here(w, K7, "LD%u.%u appears twice", ins->stage, ins->vn);
	t->done |= LOADED;
}

static void forward(struct plan_walk *w, const struct hd_ins *ins, struct done_token *t)
{
	bool reads = ins->stage == 0 || ins->stage + 1u == w->plan->nstages;

	if (t->done & FORWARD)
		say_here(w, K1, "forward of %u.%u appears twice (ranks %u #%u and %u #%u)", ins->stage,
			ins->vn, t->rank, t->at, w->rank, w->at);
	if (reads && !(t->done & LOADED))
		say_here(w, K7, "it needs LD%u.%u before it", ins->stage, ins->vn);
	if (ins->stage && !(token_of(w, ins->stage - 1u, ins->vn)->done & FORWARD))
		say_here(w, K7, "it needs F%u.%u before it", ins->stage - 1u, ins->vn);
	t->done |= FORWARD;
	t->rank = w->rank;
	t->at = w->at;
}

static void check_back(const struct plan_walk *w, const struct hd_ins *ins, const struct done_token *t)
{
	if (!(t->done & FORWARD))
		say_here(w, K6, "backward before forward");
	if (ins->stage + 1u < w->plan->nstages && !(token_of(w, ins->stage + 1u,
		ins->vn)->done & (FULL | INPUT)))
		say_here(w, K7, "it needs the input gradient of %u.%u before it", ins->stage + 1u, ins->vn);
}

static void back(struct plan_walk *w, const struct hd_ins *ins, struct done_token *t)
{
	check_back(w, ins, t);
	if (t->done & FULL)
		say_here(w, K2, "%u.%u has two backwards", ins->stage, ins->vn);
	if (t->done & (INPUT | WEIGHTS))
		say_here(w, K2, "%u.%u has both a full and a split backward", ins->stage, ins->vn);
	t->done |= FULL;
	one_back(w, ins->stage);
}

static void back_input(struct plan_walk *w, const struct hd_ins *ins, struct done_token *t)
{
	check_back(w, ins, t);
	if (t->done & INPUT)
		say_here(w, K2, "%u.%u has I twice", ins->stage, ins->vn);
	if (t->done & FULL)
		say_here(w, K2, "%u.%u has both a full and a split backward", ins->stage, ins->vn);
	t->done |= INPUT;
}

static void back_weights(struct plan_walk *w, const struct hd_ins *ins, struct done_token *t)
{
	if (!(t->done & INPUT))
		say_here(w, K6, "W before I");
	if (t->done & WEIGHTS)
		say_here(w, K2, "%u.%u has W twice", ins->stage, ins->vn);
	t->done |= WEIGHTS;
	one_back(w, ins->stage);
}

/* The stage on every virtual node of the rank. */
static void forward_all(struct plan_walk *w, const struct hd_ins *ins)
{
	for (uint32_t v = 0; v < w->plan->nvns; v++)
		if (w->plan->map[v] == w->rank)
			forward(w, &(struct hd_ins){ .op = HD_INS_F, .stage = ins->stage, .vn = v },
				token_of(w, ins->stage, v));
}

static void back_all(struct plan_walk *w, const struct hd_ins *ins)
{
	for (uint32_t v = 0; v < w->plan->nvns; v++)
		if (w->plan->map[v] == w->rank)
			back(w, &(struct hd_ins){ .op = HD_INS_B, .stage = ins->stage, .vn = v },
				token_of(w, ins->stage, v));
}

/* The first virtual node of the rank whose gradient of the stage is not there yet. */
static uint32_t first_missing(const struct plan_walk *w, uint32_t stage)
{
	for (uint32_t v = 0; v < w->plan->nvns; v++)
		if (w->plan->map[v] == w->rank && !(token_of(w, stage, v)->done & (FULL | WEIGHTS)))
			return v;
	return NO_VN;
}

static void reduce(struct plan_walk *w, const struct hd_ins *ins)
{
	struct stage_progress *s = &w->stage[ins->stage];

	if (s->reduced)
		say_here(w, K18, "stage %u is reduced twice", ins->stage);
	if (s->ngrads < w->nhere)
		say_here(w, K16, "the reduction of stage %u happens before the gradient of virtual node %u",
			ins->stage, first_missing(w, ins->stage));
	if (w->normed)
		say_here(w, K20, "NORM happens before the reduction of stage %u", ins->stage);
	s->reduced = true;
}

static void norm(struct plan_walk *w)
{
	if (w->normed)
		say_here(w, K20, "NORM appears twice");
	for (uint32_t s = 0; s < w->plan->nstages; s++)
		if (!w->stage[s].reduced)
			say_here(w, K20, "NORM happens before the reduction of stage %u", s);
	w->normed = true;
}

static void step(struct plan_walk *w, const struct hd_ins *ins)
{
	struct stage_progress *s = &w->stage[ins->stage];

	if (ins->ver != HD_VER_RULE && ins->ver != 1)
		say_here(w, K17, hd_ver_value(ins->ver) > 0 ? "version %d is made before version %d" :
			"version %d was there before the step (%d)",
			hd_ver_value(ins->ver), hd_ver_value(ins->ver) - (hd_ver_value(ins->ver) > 0));
	if (s->updated)
		say_here(w, K16, "update 1 of stage %u happens twice", ins->stage);
	if (s->ngrads < w->nhere)
		say_here(w, K16, "update 1 of stage %u happens before the gradient of virtual node %u",
			ins->stage, first_missing(w, ins->stage));
	else if (!s->reduced)
		say_here(w, K16, "update 1 of stage %u happens before its reduction", ins->stage);
	if (!w->normed)
		say_here(w, K20,
			"no NORM precedes it: NORM seals the step and makes the scale of its update, "
			"whether the job clips or not");
	s->updated = true;
}

static void compute(struct plan_walk *w, const struct hd_ins *ins)
{
	struct done_token *t = token_of(w, ins->stage, ins->vn);

	if (w->plan->map[ins->vn] != w->rank) {
		say_here(w, K3, "virtual node %u lives on rank %u, not here", ins->vn, w->plan->map[ins->vn]);
		return;
	}
	if (w->stage[ins->stage].updated)
		say_here(w, K12, "virtual node %u must use version 0 of stage %u, the list uses 1", ins->vn,
			ins->stage);
	else if (w->normed && !w->stage[ins->stage].reduced)
		say_here(w, K20, "NORM happens before the gradient of virtual node %u", ins->vn);
	else if (w->stage[ins->stage].reduced)
		say_here(w, K16, "the reduction of stage %u happens before the gradient of virtual node %u",
			ins->stage, ins->vn);
	check_open(w, ins->vn);
	switch (ins->op) {
	case HD_INS_LD: load(w, ins, t); break;
	case HD_INS_F:  forward(w, ins, t); break;
	case HD_INS_B:  back(w, ins, t); break;
	case HD_INS_I:  back_input(w, ins, t); break;
	case HD_INS_W:  back_weights(w, ins, t); break;
	default:        break;
	}
}

static void visit(struct plan_walk *w, const struct hd_ins *ins)
{
	struct hd_diag why = { "" };

	if (hd_ins_verify(ins, &why)) {
		say(w->report, K4, "rank %u, #%u: %.160s", w->rank, w->at, why.text);
		return;
	}
	bool fine = in_range(w, ins);
	(void)has_runtime(w, ins);
	if (!fine)
		return;
	switch (ins->op) {
	case HD_INS_LD: case HD_INS_F: case HD_INS_B: case HD_INS_I: case HD_INS_W: compute(w, ins); break;
	case HD_INS_FL:   forward_all(w, ins); break;
	case HD_INS_BL:   back_all(w, ins); break;
	case HD_INS_RED:  reduce(w, ins); break;
	case HD_INS_NORM: norm(w); break;
	case HD_INS_STEP: step(w, ins); break;
	default:          break;          /* refused above */
	}
}

/* What a rank leaves undone in each stage. */
static void check_end(struct plan_walk *w)
{
	for (uint32_t s = 0; s < w->plan->nstages; s++) {
		if (!w->stage[s].reduced)
			say_rank(w, K18, "stage %u has no RED: its gradient is never summed", s);
		if (!w->stage[s].updated)
			say_rank(w, K16, "update 1 of stage %u never happens", s);
	}
}

static void check_tokens(const struct plan_walk *w)
{
	for (uint32_t s = 0; s < w->plan->nstages; s++)
		for (uint32_t v = 0; v < w->plan->nvns; v++) {
			uint8_t done = token_of(w, s, v)->done;
			if (!(done & FORWARD))
				say(w->report, K1, "stage %u never runs forward for virtual node %u", s, v);
			if (!(done & (FULL | INPUT | WEIGHTS)))
				say(w->report, K2, "%u.%u has no backward", s, v);
			else if ((done & INPUT) && !(done & WEIGHTS))
				say(w->report, K2, "%u.%u has I but no W: its weights would miss a gradient",
					s, v);
			else if ((done & WEIGHTS) && !(done & INPUT))
				say(w->report, K2, "%u.%u has W without I", s, v);
		}
}

/* The first instruction of a list that computes: one virtual node (all: every one of the rank). */
static const struct hd_ins *first_compute(const struct hd_ilist *list, bool all)
{
	for (uint32_t i = 0; i < list->len; i++) {
		uint8_t op = list->at[i].op;
		if (all ? op == HD_INS_FL || op == HD_INS_BL : op == HD_INS_F || op == HD_INS_B)
			return &list->at[i];
	}
	return NULL;
}

static bool any_lockstep(const struct hd_plan *p)
{
	for (uint32_t r = 0; r < p->nranks; r++)
		if (first_compute(&p->list[r], true))
			return true;
	return false;
}

/* Whether virtual nodes advance together is a property of the whole plan. */
static void check_one_way(const struct hd_plan *p, struct hd_report *report)
{
	uint32_t nranks = any_lockstep(p) ? p->nranks : 0;

	for (uint32_t r = 0; r < nranks; r++) {
		const struct hd_ins *one = first_compute(&p->list[r], false);
		if (!one)
			continue;
		say(report, RUN,
			"rank %u runs %s%u.%u by itself, others all virtual nodes in lockstep (FL, BL); a "
			"step is one or the other", r,
			hd_ins_row(one->op)->text, one->stage, one->vn);
		return;
	}
}

static const struct hd_ins *next_meeting(const struct hd_ilist *list, uint32_t *at)
{
	while (*at < list->len) {
		const struct hd_ins *ins = &list->at[(*at)++];
		if (ins->op == HD_INS_RED || ins->op == HD_INS_NORM || ins->op == HD_INS_FL ||
			ins->op == HD_INS_BL)
			return ins;
	}
	return NULL;
}

/* Every rank waits for all others at each RED and NORM: the same ones in the same order. */
static void check_meetings(struct plan_walk *w)
{
	for (w->rank = 1; w->rank < w->plan->nranks; w->rank++) {
		const struct hd_ins *mine, *first;
		uint32_t at = 0, first_at = 0;
		do {
			first = next_meeting(&w->plan->list[0], &first_at);
			mine = next_meeting(&w->plan->list[w->rank], &at);
		} while (first && mine && first->op == mine->op && first->stage == mine->stage);
		if (!first && !mine)
			continue;
		char words[2][48] = { "its end", "its end" };
		const struct hd_ins *which[2] = { first, mine };
		for (int i = 0; i < 2; i++) {
			struct hd_text text;
			hd_text_fixed(&text, words[i], sizeof words[i]);
			if (which[i])
				hd_ins_print(which[i], &text);
			else
				hd_text_add(&text, "its end");
		}
		say_rank(w, MEET, "replicas meet in different order: rank 0 is at %s, rank %u at %s",
			words[0], w->rank, words[1]);
	}
}

static void walk_ranks(struct plan_walk *w)
{
	for (uint32_t v = 0; v < w->plan->nvns; v++)
		if (w->plan->map[v] < w->plan->nranks)
			w->count[w->plan->map[v]]++;
	for (w->rank = 0; w->rank < w->plan->nranks; w->rank++) {
		const struct hd_ilist *list = &w->plan->list[w->rank];
		memset(w->stage, 0, w->plan->nstages * sizeof *w->stage);
		w->open = w->last = NO_VN;
		w->normed = false;
		w->nhere = w->count[w->rank];
		for (w->at = 0; w->at < list->len; w->at++)
			visit(w, &list->at[w->at]);
		check_end(w);
	}
	check_tokens(w);
	check_meetings(w);
}

enum hd_err hd_plan_check(const struct hd_plan *plan, const struct hd_plan_job *job, struct hd_report *report,
	struct hd_diag *diag)
{
	struct hd_report own;
	struct hd_arena arena;
	struct plan_walk w = { .plan = plan, .job = job, .report = report ? report : &own };

	w.report->len = 0;
	w.report->total = 0;
	if (check_shape(plan, job, w.report)) {
		hd_arena_init(&arena, 0);
		w.token = hd_arena_take(&arena, (size_t)plan->nstages * plan->nvns, sizeof *w.token);
		w.stage = hd_arena_take(&arena, plan->nstages, sizeof *w.stage);
		w.count = hd_arena_take(&arena, plan->nranks, sizeof *w.count);
		bool room = w.token && w.stage && w.count;
		if (room) {
			check_one_way(plan, w.report);
			walk_ranks(&w);
		}
		hd_arena_finish(&arena);
		if (!room)
			return hd_fail(diag, HD_E_NOMEM,
				"no memory to check a plan of %u stages and %u virtual nodes", plan->nstages,
				plan->nvns);
	}
	return w.report->total ? hd_fail(diag, HD_E_BADPLAN, "%s", w.report->at[0].text) : HD_OK;
}

enum hd_err hd_plan_check_alone(const struct hd_plan *plan, struct hd_report *report, struct hd_diag *diag)
{
	const struct hd_plan_job job = { .nvns = plan->nvns, .nchunks = plan->nchunks,
		.nstages = HD_RUN_STAGES, .wave = plan->nvns,
		.lockstep = any_lockstep(plan) };

	return hd_plan_check(plan, &job, report, diag);
}
