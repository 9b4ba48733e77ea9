#include "pipeline/reuse.h"

#include <string.h>

#include "graph/ir.h"

/* A place in memory: `used` orders them by their last use. */
struct place { uint64_t used; uint16_t stage; bool open; };

/* A rank walked twice: what the second time finds counts. */
struct reuse_walk {
	const struct hd_plan *plan;
	const double *share;
	const struct hd_reuse *reuse;
	struct place *place;
	uint32_t nplaces, *at;            /* at[stage][2 nvns]: 1 + the place of a virtual node; 0: none */
	uint64_t now;
	bool counts;
	struct hd_stage_reuse *sum;       /* [stage] of all ranks so far ... */
	uint64_t (*n)[3];                 /* ... and of how many */
};

static uint32_t *cell(struct reuse_walk *k, const struct hd_ins *ins)
{
	return &k->at[(size_t)ins->stage * 2 * k->plan->nvns + ins->vn];
}

/* The one that was left last. */
static uint32_t place_for(struct reuse_walk *k, uint16_t stage)
{
	uint32_t best = k->nplaces;

	for (uint32_t i = 0; i < k->nplaces; i++)
		if (!k->place[i].open && k->place[i].stage == stage &&
			(best == k->nplaces || k->place[i].used > k->place[best].used))
			best = i;
	if (best == k->nplaces)
		k->place[k->nplaces++] = (struct place){ .stage = stage };
	k->place[best].open = true;
	return best;
}

static double use(struct reuse_walk *k, uint32_t at)
{
	double far = 0;

	for (uint32_t i = 0; i < k->nplaces; i++)
		far += i == at || k->place[i].used > k->place[at].used ? k->share[k->place[i].stage] : 0;
	k->place[at].used = ++k->now;
	return far;
}

static void count(struct reuse_walk *k, uint16_t stage, enum hd_phase phase, enum hd_reuse_kind kind,
	double distance)
{
	if (!k->counts)
		return;
	k->sum[stage].by[phase] += hd_reuse_at(k->reuse, kind, distance);
	k->n[stage][phase]++;
}

static void leave(struct reuse_walk *k, uint32_t *to)
{
	k->place[*to - 1].open = false;
	*to = 0;
}

static void forward(struct reuse_walk *k, const struct hd_ins *ins)
{
	uint32_t *to = cell(k, ins);

	if (!*to)
		*to = 1 + place_for(k, ins->stage);
	count(k, ins->stage, HD_PHASE_F, HD_REUSE_F, use(k, *to - 1));
	if (ins->op == HD_INS_F && ins->flags & HD_INS_CHECKPOINT)
		leave(k, to);
}

static void backward(struct reuse_walk *k, const struct hd_ins *ins, bool again)
{
	uint32_t *to = cell(k, ins);

	if (!*to)
		return;
	const double distance = use(k, *to - 1);
	const bool both = ins->op == HD_INS_B;
	if (both || ins->op == HD_INS_I)
		count(k, ins->stage, HD_PHASE_I, both ? HD_REUSE_I : HD_REUSE_I_APART, distance);
	if (both || ins->op == HD_INS_W)
		count(k, ins->stage, HD_PHASE_W, both ? HD_REUSE_W : HD_REUSE_W_APART, distance);
	if (!again)
		leave(k, to);
}

/* Does W of it come later in the list? */
static bool comes_again(const struct hd_ilist *list, uint32_t i)
{
	const struct hd_ins *ins = &list->at[i];

	for (uint32_t j = i + 1; ins->op == HD_INS_I && j < list->len; j++)
		if (list->at[j].op == HD_INS_W && list->at[j].stage == ins->stage &&
			list->at[j].vn == ins->vn)
			return true;
	return false;
}

/* The step to come is the one at hand. */
static void next_step(struct reuse_walk *k)
{
	const uint32_t nvns = k->plan->nvns;

	for (uint32_t s = 0; s < k->plan->nstages; s++) {
		uint32_t *at = &k->at[(size_t)s * 2 * nvns];
		for (uint32_t v = 0; v < nvns; v++)
			if (at[v])
				leave(k, &at[v]);
		memcpy(at, at + nvns, nvns * sizeof *at);
		memset(at + nvns, 0, nvns * sizeof *at);
	}
}

static void step(struct reuse_walk *k, const struct hd_ilist *list)
{
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		if (ins->flags & HD_INS_SHADOW)
			continue;
		if (ins->op == HD_INS_F || ins->op == HD_INS_R)
			forward(k, ins);
		else if (ins->op == HD_INS_B || ins->op == HD_INS_I || ins->op == HD_INS_W)
			backward(k, ins, comes_again(list, i));
	}
	next_step(k);
}

static void rank(struct reuse_walk *k, const struct hd_ilist *list)
{
	k->nplaces = 0;
	k->now = 0;
	memset(k->at, 0, (size_t)k->plan->nstages * 2 * k->plan->nvns * sizeof *k->at);
	for (int pass = 0; pass < 2; pass++) {
		k->counts = pass == 1;
		step(k, list);
	}
}

enum hd_err hd_reuse_stages(struct hd_stage_reuse *of, const struct hd_plan *plan, const double *share,
	const struct hd_reuse *reuse, struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t ncells = (size_t)plan->nstages * 2 * plan->nvns;
	struct reuse_walk k = { .plan = plan, .share = share, .reuse = reuse,
		.place = hd_arena_take(arena, ncells + 1, sizeof *k.place),
		.at = hd_arena_take(arena, ncells + 1, sizeof *k.at),
		.sum = hd_arena_take(arena, plan->nstages, sizeof *k.sum),
		.n = hd_arena_take(arena, plan->nstages, sizeof *k.n) };

	if (!k.place || !k.at || !k.sum || !k.n)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the distances of a plan");
	for (uint32_t r = 0; r < plan->nranks; r++)
		rank(&k, &plan->list[r]);
	for (uint32_t s = 0; s < plan->nstages; s++)
		for (int p = 0; p < 3; p++)
			of[s].by[p] = k.n[s][p] ? k.sum[s].by[p] / (double)k.n[s][p] : 1;
	return HD_OK;
}
