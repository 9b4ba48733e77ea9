#include "pipeline/staged.h"

#include <stdio.h>
#include <string.h>

#include "graph/tensor.h"
#include "pipeline/passes.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/window.h"

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory for a plan"); }

static enum hd_err check_pipelines(const struct hd_plan_job *job, const struct hd_schedule *pipeline,
	uint32_t d,
	struct hd_diag *diag)
{
	uint64_t nvns = 0;

	if (d == 0 || (uint64_t)d * pipeline[0].nranks > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_INVAL, "%u pipelines of %u ranks: a plan has 1 to %d ranks", d,
			d ? pipeline[0].nranks : 0, HD_MAX_RANKS);
	if (pipeline[0].nstages < 1)
		return hd_fail(diag, HD_E_INVAL, "a pipeline without stages");
	for (uint32_t k = 0; k < d; k++) {
		if (pipeline[k].nranks != pipeline[0].nranks || pipeline[k].nstages != pipeline[0].nstages)
			return hd_fail(diag, HD_E_INVAL,
				"pipeline %u has %u ranks and %u stages, pipeline 0 has %u and %u", k,
				pipeline[k].nranks, pipeline[k].nstages, pipeline[0].nranks,
				pipeline[0].nstages);
		if (pipeline[k].update != HD_UPDATE_FLUSH || pipeline[k].prologue)
			return hd_fail(diag, HD_E_BADPLAN,
				"pipeline %u delays updates (%s): this build runs flush", k,
				hd_update_names[pipeline[k].update]);
		nvns += pipeline[k].nvns;
	}
	if (nvns != job->nvns)
		return hd_fail(diag, HD_E_INVAL, "the pipelines have %llu virtual nodes, the job has %u",
			(unsigned long long)nvns, job->nvns);
	return HD_OK;
}

/* The list of a rank of one pipeline as that of the whole plan. */
static enum hd_err copy_list(struct hd_ilist *to, const struct hd_ilist *from, uint32_t first_vn,
	uint32_t first_rank, struct hd_arena *arena, struct hd_diag *diag)
{
	*to = (struct hd_ilist){ hd_arena_take(arena, from->len + 1, sizeof *to->at), from->len,
		from->len + 1 };
	if (!to->at)
		return no_memory(diag);
	for (uint32_t i = 0; i < from->len; i++) {
		struct hd_ins *ins = &to->at[i];
		*ins = from->at[i];
		if (hd_ins_uses(ins->op, 'v'))
			ins->vn += first_vn;
		if (hd_ins_uses(ins->op, '>') || hd_ins_uses(ins->op, '<'))
			ins->peer = (uint16_t)(ins->peer + first_rank);
	}
	return HD_OK;
}

static enum hd_err side_by_side(struct hd_schedule *all, const struct hd_plan_job *job,
	const struct hd_schedule *pipeline, uint32_t d, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t p = pipeline[0].nranks;
	struct hd_schedule s = { .heading = pipeline[0].heading, .nranks = p * d, .nvns = job->nvns,
		.nstages = pipeline[0].nstages, .update = HD_UPDATE_FLUSH,
		.place = hd_arena_take(arena, pipeline[0].nstages, sizeof *s.place),
		.list = hd_arena_take(arena, (size_t)p * d, sizeof *s.list) };
	enum hd_err err = s.place && s.list ? HD_OK : no_memory(diag);

	for (uint32_t k = 0, vn = 0; k < d && !err; vn += pipeline[k++].nvns)
		for (uint32_t r = 0; r < p && !err; r++)
			err = copy_list(&s.list[k * p + r], &pipeline[k].list[r], vn, k * p, arena, diag);
	if (!err)
		memcpy(s.place, pipeline[0].place, s.nstages * sizeof *s.place);
	*all = s;
	return err;
}

static enum hd_err complete(struct hd_schedule *out, const struct hd_schedule *all, const uint8_t *keeps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_schedule_job job = { .clips = true };
	bool *of[2] = { NULL, NULL };
	struct hd_pass_options passes = { .job = &job };

	for (uint8_t how = HD_KEEPS_INPUT; how <= HD_KEEPS_AWAY; how++) {
		if (!keeps || !memchr(keeps, how, all->nstages))
			continue;
		bool *is = of[how - HD_KEEPS_INPUT] = hd_arena_take(arena, all->nstages, sizeof *is);
		if (!is)
			return no_memory(diag);
		for (uint32_t s = 0; s < all->nstages; s++)
			is[s] = keeps[s] == how;
	}
	passes.recompute = of[0];
	passes.offload = of[1];
	return hd_schedule_complete(out, all, &passes, arena, diag);
}

static enum hd_err fill(struct hd_plan *plan, const struct hd_schedule *s, const uint32_t *first,
	struct hd_arena *arena, struct hd_diag *diag)
{
	plan->worker = hd_arena_take(arena, plan->nranks, sizeof *plan->worker);
	plan->map = hd_arena_take(arena, plan->nvns, sizeof *plan->map);
	plan->owner = hd_arena_take(arena, (size_t)plan->nchunks + 1, sizeof *plan->owner);
	plan->first = hd_arena_take(arena, plan->nstages, sizeof *plan->first);
	plan->list = s->list;
	if (!plan->worker || !plan->map || !plan->owner || !plan->first)
		return no_memory(diag);
	memcpy(plan->first, first, plan->nstages * sizeof *first);
	for (uint32_t c = 0; c < plan->nchunks; c++)
		plan->owner[c] = (uint32_t)((uint64_t)c * plan->nranks / plan->nchunks);
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (ins->op == HD_INS_F && ins->stage == 0 && ins->vn < plan->nvns)
				plan->map[ins->vn] = r;
		}
	return HD_OK;
}

enum hd_err hd_plan_staged(struct hd_plan *plan, const struct hd_plan_job *job,
	const struct hd_schedule *pipeline, uint32_t d, const uint32_t *first, enum hd_stage_keeps keeps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint8_t *all = d ? hd_arena_take(arena, (size_t)pipeline[0].nstages + 1, sizeof *all) : NULL;

	if (d && !all)
		return no_memory(diag);
	for (uint32_t s = 0; d && s < pipeline[0].nstages; s++)
		all[s] = (uint8_t)keeps;
	return hd_plan_staged_some(plan, job, pipeline, d, first, all, arena, diag);
}

enum hd_err hd_plan_staged_some(struct hd_plan *plan, const struct hd_plan_job *job,
	const struct hd_schedule *pipeline, uint32_t d, const uint32_t *first, const uint8_t *keeps,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule all, whole;
	enum hd_err err = check_pipelines(job, pipeline, d, diag);

	err = err ? err : side_by_side(&all, job, pipeline, d, arena, diag);
	err = err ? err : complete(&whole, &all, keeps, arena, diag);
	if (err)
		return err;
	struct hd_plan made = { .nranks = whole.nranks, .nstages = whole.nstages, .nvns = job->nvns,
		.nchunks = job->nchunks, .cause = "" };
	err = fill(&made, &whole, first, arena, diag);
	err = err ? err : hd_plan_staged_check(&made, job, NULL, diag);
	if (!err)
		*plan = made;
	return err;
}

/* ---- the proof ---- */

/* Of flush updates; what else there is, is refused by name. */
static const uint8_t runs[] = { HD_INS_LD, HD_INS_F, HD_INS_B, HD_INS_I, HD_INS_W, HD_INS_R, HD_INS_OFF,
	HD_INS_ON, HD_INS_SA, HD_INS_SG,
	HD_INS_RA, HD_INS_RG, HD_INS_RED, HD_INS_NORM, HD_INS_STEP, HD_INS_PIN, HD_INS_REL, HD_INS_SHIP,
	HD_INS_TAKE };

static enum hd_err check_runs(const struct hd_plan *plan, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			if (!memchr(runs, ins->op, sizeof runs) || ins->flags & HD_INS_EAGER)
				return hd_fail(diag, HD_E_BADPLAN,
					"plan: rank %u, #%u: this build has no runtime for %s of several "
					"stages", r,
					i, hd_ins_row(ins->op) ? hd_ins_row(ins->op)->text : "?");
		}
	return HD_OK;
}

/* What the rank has of a cell after an instruction of its list. */
static enum hd_err check_moves_of(const struct hd_plan *plan, uint32_t r, uint8_t *has, struct hd_diag *diag)
{
	enum { NOTHING, ALL, INPUT, REMADE, AWAY, LEFTOVERS };

	for (uint32_t i = 0; i < plan->list[r].len; i++) {
		const struct hd_ins *x = &plan->list[r].at[i];
		if (!hd_ins_uses(x->op, 'v') || x->stage >= plan->nstages || x->vn >= plan->nvns ||
			hd_ins_redundant(x))
			continue;
		uint8_t *of = &has[(size_t)x->stage * plan->nvns + x->vn];
		if (x->op == HD_INS_OFF && (*of == INPUT || *of == LEFTOVERS))
			return hd_fail(diag, HD_E_BADPLAN,
				"plan: rank %u, #%u OFF%u.%u: %s; this build moves the activations of a "
				"forward", r, i, x->stage, x->vn, *of == INPUT ?
				"its forward kept its input alone" : "its I has run");
		if (x->op == HD_INS_SA && *of == AWAY)
			return hd_fail(diag, HD_E_BADPLAN, "plan: rank %u, #%u SA%u.%u: what it sends is on "
				"the host: put OFF%u.%u behind it", r, i, x->stage, x->vn, x->stage, x->vn);
		if (x->op == HD_INS_SA && *of == REMADE)
			return hd_fail(diag, HD_E_BADPLAN, "plan: rank %u, #%u SA%u.%u: R%u.%u makes what it "
				"sends once more: put it before R", r, i, x->stage, x->vn, x->stage, x->vn);
		switch (x->op) {
		case HD_INS_F: *of = x->flags & HD_INS_CHECKPOINT ? INPUT : ALL; break;
		case HD_INS_R: *of = REMADE; break;
		case HD_INS_ON: *of = ALL; break;
		case HD_INS_OFF: *of = AWAY; break;
		case HD_INS_I: *of = LEFTOVERS; break;
		default: break;
		}
	}
	return HD_OK;
}

static bool moves_or_makes(const struct hd_plan *plan)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			if (plan->list[r].at[i].op == HD_INS_OFF || plan->list[r].at[i].op == HD_INS_R)
				return true;
	return false;
}

static enum hd_err check_moves(const struct hd_plan *plan, struct hd_arena *arena, struct hd_diag *diag)
{
	if (!moves_or_makes(plan))
		return HD_OK;
	uint8_t *has = hd_arena_take(arena, (size_t)plan->nstages * plan->nvns + 1, 1);
	enum hd_err err = has ? HD_OK : no_memory(diag);

	for (uint32_t r = 0; r < plan->nranks && !err; r++)
		err = check_moves_of(plan, r, has, diag);
	return err;
}

/* A plan file by itself is of no job: its shards are not asked for. */
static enum hd_err check_width(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_diag *diag)
{
	const uint32_t t = hd_plan_width(plan);

	if (t > HD_MAX_TENSOR || (uint64_t)t * plan->nranks > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_BADPLAN,
			"plan: %u ranks of %u devices: a rank has %d at most, a plan %d", plan->nranks, t,
			HD_MAX_TENSOR, HD_MAX_RANKS);
	if (job->nshards && job->nshards % t)
		return hd_fail(diag, HD_E_BADPLAN,
			"plan: %u devices of a rank share the model's shards, and there are %u "
			"(model.shards): the devices must divide them", t, job->nshards);
	return HD_OK;
}

static enum hd_err check_shape(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_diag *diag)
{
	if (plan->nvns != job->nvns || plan->nchunks != job->nchunks)
		return hd_fail(diag, HD_E_BADPLAN,
			"plan: it is for %u virtual nodes and %u chunks, the job has %u and %u", plan->nvns,
			plan->nchunks, job->nvns, job->nchunks);
	if ((uint64_t)plan->nstages * plan->nvns > HD_MAX_CELLS)
		return hd_fail(diag, HD_E_BADPLAN,
			"plan: %u stages of %u virtual nodes: more than %d in all", plan->nstages,
			plan->nvns, HD_MAX_CELLS);
	if (job->lockstep)
		return hd_fail(diag, HD_E_REFUSED,
			"virtual nodes meet inside the model (norms over the global batch, a graph in "
			"several intervals); stages of a pipeline run them one after the other: "
			"parallel.mode: data, or model.bn: ghost, or of a graph batch.virtual_nodes: 1");
	if (!plan->first || plan->nranks == 0 || plan->nranks > HD_MAX_RANKS)
		return hd_fail(diag, HD_E_BADPLAN, "plan: %u stages, and no line cuts says where they begin",
			plan->nstages);
	for (uint32_t c = 0; c < plan->nchunks; c++)
		if (plan->owner[c] >= plan->nranks)
			return hd_fail(diag, HD_E_BADPLAN, "plan: chunk %u is owned by rank %u, there are %u",
			c,
				plan->owner[c], plan->nranks);
	return check_width(plan, job, diag);
}

/* Rule 2; where RED belongs, the checker of schedules knows. */
static enum hd_err check_norms(const struct hd_plan *plan, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < plan->nranks; r++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			n += plan->list[r].at[i].op == HD_INS_NORM;
		if (n != 1)
			return hd_fail(diag, HD_E_BADPLAN,
				"plan: rank %u has NORM %u times: every rank seals the step once", r, n);
	}
	return HD_OK;
}

static enum hd_err check_overlap(const struct hd_plan *plan, struct hd_diag *diag)
{
	if (!plan->overlap || hd_window_straight(plan))
		return HD_OK;
	return hd_fail(diag, HD_E_BADPLAN,
		"plan: steps overlap where rank r runs stage r of every virtual node, F and B whole, "
		"computes all again or nothing, and "
		"there are 2 (p - 1) virtual nodes or more: %u ranks, %u stages, %u virtual nodes; leave out "
		"the line overlap", plan->nranks, plan->nstages, plan->nvns);
}

static enum hd_err check_map(const struct hd_plan *plan, const struct hd_schedule *s, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (ins->op == HD_INS_F && ins->stage == 0 && !hd_ins_redundant(ins) &&
				plan->map[ins->vn] != r)
				return hd_fail(diag, HD_E_BADPLAN,
					"plan: rank %u, #%u F0.%u: virtual node %u is mapped to rank %u", r,
					i,
					ins->vn, ins->vn, plan->map[ins->vn]);
		}
	return HD_OK;
}

/* What the checker of schedules does not know is a finding, too. */
static enum hd_err found(struct hd_report *report, enum hd_err err, const struct hd_diag *why)
{
	if (!err || report->total)
		return err;
	struct hd_finding *f = &report->at[report->len++];
	report->total++;
	f->rule = "RUN";
	snprintf(f->text, sizeof f->text, "%.*s", (int)sizeof f->text - 1, why->text);
	f->fragment[0][0] = f->fragment[1][0] = '\0';
	return err;
}

static enum hd_err check_folded(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_report *report, struct hd_diag *diag)
{
	const struct hd_schedule_job asked = { .clips = true, .whole = true };
	const struct hd_schedule_rules rules = { .transport = HD_TRANSPORT_BUFFERED };
	struct hd_diag why = { "" };
	struct hd_arena arena;
	struct hd_schedule s;
	struct hd_report own;

	if (!report)
		report = &own;
	*report = (struct hd_report){ 0 };
	enum hd_err err = check_shape(plan, job, &why);
	err = err ? err : check_runs(plan, &why);
	hd_arena_init(&arena, 0);
	err = err ? err : check_moves(plan, &arena, &why);
	err = err ? err : hd_schedule_of_plan(&s, plan, &arena, &why);
	err = err ? err : hd_schedule_check_job(&s, &asked, &rules, report, &why);
	err = err ? err : check_map(plan, &s, &why);
	err = err ? err : check_norms(plan, &why);
	err = err ? err : check_overlap(plan, &why);
	hd_arena_finish(&arena);
	err = found(report, err, &why);
	return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

enum hd_err hd_plan_staged_check(const struct hd_plan *plan, const struct hd_plan_job *job,
	struct hd_report *report, struct hd_diag *diag)
{
	struct hd_plan folded;
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_plan_fold(&folded, plan, &arena, diag);
	err = err ? err : check_folded(&folded, job, report, diag);
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_plan_widen(struct hd_plan *plan, const struct hd_plan_job *job, uint32_t t,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	struct hd_plan wide = *plan;

	wide.tensor = t > 1 ? t : 0;
	if (check_width(&wide, job, &why))
		return hd_fail(diag, HD_E_INVAL, "%s", why.text);
	*plan = wide;
	return HD_OK;
}

enum hd_err hd_plan_check_file(const struct hd_plan *plan, struct hd_report *report, struct hd_diag *diag)
{
	const struct hd_plan_job job = { .nvns = plan->nvns, .nchunks = plan->nchunks,
		.nstages = HD_RUN_STAGES };

	return plan->first ? hd_plan_staged_check(plan, &job, report, diag) :
		hd_plan_check_alone(plan, report, diag);
}
