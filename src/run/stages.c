#include "run/stages.h"

#include <string.h>

#include "graph/op.h"
#include "graph/stages.h"
#include "graph/tensor.h"
#include "pipeline/lanes.h"
#include "pipeline/staged.h"
#include "run/costs.h"

static uint32_t given(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].is_auto ? 0 : (uint32_t)job->value[key].i;
}

struct hd_schedule_ask hd_run_stages_ask(const struct hd_run_stages *s, uint32_t m)
{
	return (struct hd_schedule_ask){ .name = hd_run_stages_order(s), .p = s->p, .v = s->v, .m = m,
		.replicas = s->ncopies ? s->copies : NULL, .nreplicas = s->ncopies,
		.neighbours = s->ncopies > 0 };
}

static uint32_t lanes_of(const struct hd_run_stages *s)
{
	return s->ncopies ? hd_lanes_count(s->copies, s->ncopies) : 1;
}

/* Kinds whose stages a pipeline of equal devices has. */
static enum hd_err find_kind(const struct hd_schedule_kind **kind, const struct hd_job *job, uint32_t chunks,
	struct hd_diag *diag)
{
	const struct hd_job_value *named = &job->value[HD_JOB_PAR_SCHEDULE];
	const bool copies = !job->value[HD_JOB_PAR_COPIES].is_none;
	enum hd_err err = hd_schedule_kind_find(kind, !named->is_auto ? named->text : copies ? "1f1b-rr" :
		chunks > 1 ? "interleaved" : "1f1b", diag);

	if (err)
		return err;
	if (!strcmp((*kind)->name, "data-parallel"))
		return hd_fail(diag, HD_E_INVAL,
			"parallel.schedule: data-parallel is no order of stages; write parallel.mode: data");
	if (!strcmp((*kind)->name, "1f1b-rr") && !copies)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.schedule: 1f1b-rr has copies of single stages: say how many of each, as "
			"parallel.copies: \"3,1\"; copies of whole pipelines are parallel.replicas");
	return HD_OK;
}

/* Devices of a rank. Those that there are, or the cores, bound what is left open. */
static enum hd_err find_width(struct hd_run_stages *s, const struct hd_job *job, uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag)
{
	const uint32_t shards = (uint32_t)hd_job_int(job, HD_JOB_SHARDS), d = given(job, HD_JOB_PAR_REPLICAS);
	const bool open = hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_TENSOR && !given(job, HD_JOB_PAR_TENSOR);
	const uint32_t most = ndevices ? ndevices / (d ? d : 1) : ncores > 2 ? ncores : 2;

	s->t = given(job, HD_JOB_PAR_TENSOR) ? given(job, HD_JOB_PAR_TENSOR) : 1;
	for (uint32_t t = 2; open && t <= most && t <= HD_MAX_TENSOR; t++)
		if (shards % t == 0 && ndevices % ((d ? d : 1) * t) == 0)
			s->t = t;
	if (open && s->t == 1)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.mode: tensor shares %u shards (model.shards) out over %u device%s%s: no "
			"number above 1 divides both; use as many devices as divide the shards, or a "
			"multiple", shards, ndevices ? ndevices : most, ndevices == 1 ? "" : "s",
			d > 1 ? " of several replicas" : "");
	if (s->t > HD_MAX_TENSOR)
		return hd_fail(diag, HD_E_INVAL, "parallel.tensor is %u; a rank has %d devices at most", s->t,
			HD_MAX_TENSOR);
	return ndevices % s->t == 0 ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%u devices are no ranks of %u (parallel.tensor): use %u, or a multiple of %u", ndevices,
		s->t,
		(ndevices / s->t + 1) * s->t, s->t);
}

/* "4 devices are no ..." */
static enum hd_err refuse_number(const struct hd_run_stages *s, uint32_t ndevices, struct hd_diag *diag)
{
	const char *more = s->d == 1 ? "" : "s";

	if (s->ncopies)
		return hd_fail(diag, HD_E_INVAL,
			"%u devices are no %u pipeline%s of %u: use %u (the sum of parallel.copies, times "
			"parallel.replicas), or parallel.copies: none", ndevices, s->d, more, s->p,
			s->p * s->d);
	return s->t == 1 ? hd_fail(diag, HD_E_INVAL,
		"%u devices are no %u pipeline%s of %u: use %u (parallel.stages over "
		"parallel.chunks, times parallel.replicas)", ndevices, s->d, more, s->p, s->p * s->d) :
		hd_fail(diag, HD_E_INVAL,
		"%u devices are no %u pipeline%s of %u ranks of %u: use %u (parallel.stages over "
		"parallel.chunks, times parallel.replicas, times parallel.tensor)", ndevices, s->d, more,
		s->p,
		s->t, s->p * s->d * s->t);
}

static enum hd_err find_ranks(struct hd_run_stages *s, const struct hd_job *job, uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag)
{
	const uint32_t stages = s->ncopies ? s->p : given(job, HD_JOB_PAR_STAGES),
		replicas = given(job, HD_JOB_PAR_REPLICAS), nranks = ndevices / s->t, most = ncores / s->t;

	if (stages % s->v)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.stages is %u, and parallel.schedule %s puts %u stages on each device: use "
			"a multiple of %u", stages, s->schedule, s->v, s->v);
	s->p = stages ? stages / s->v : s->t > 1 && !hd_job_has_depth(job) ? 1 : 0;
	s->d = replicas ? replicas : s->p && nranks > s->p ? nranks / s->p : 1;
	if (!s->p)
		s->p = ndevices ? nranks / s->d : most / s->d > 2 ? most / s->d : 2;
	if (ndevices && s->p * s->d * s->t != ndevices)
		return refuse_number(s, ndevices, diag);
	if ((ndevices || ncores) && s->p * s->v * s->t < 2)
		return hd_fail(diag, HD_E_INVAL,
			"one device and one stage are no pipeline: use --devices 2 or more, or "
			"parallel.mode: data");
	if (s->d * lanes_of(s) > job->nvns && s->ncopies)
		return hd_fail(diag, HD_E_INVAL,
			"%u pipelines whose stages have up to %u copies (parallel.copies) take %u virtual "
			"nodes, and the job has %u", s->d, lanes_of(s), s->d * lanes_of(s), job->nvns);
	if (s->d > job->nvns)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.replicas is %u, and the job has %u virtual nodes: each pipeline needs one",
			s->d,
			job->nvns);
	return HD_OK;
}

enum hd_err hd_run_stages(struct hd_run_stages *stages, const struct hd_job *job, uint32_t ndevices,
	uint32_t ncores, struct hd_diag *diag)
{
	struct hd_run_stages s = { .recompute = hd_job_int(job, HD_JOB_PAR_RECOMPUTE) == HD_RECOMPUTE_STAGE,
		.offload = hd_job_int(job, HD_JOB_PAR_OFFLOAD) == HD_OFFLOAD_STAGE };
	const struct hd_schedule_kind *kind = NULL;
	const uint32_t chunks = given(job, HD_JOB_PAR_CHUNKS);
	enum hd_err err = find_kind(&kind, job, chunks, diag);

	if (err)
		return err;
	s.schedule = kind->name;
	s.delayed = kind->update != HD_UPDATE_FLUSH;
	s.v = chunks ? chunks : kind->vmin ? kind->vmin : 1;
	if (!job->value[HD_JOB_PAR_COPIES].is_none)
		s.ncopies = hd_job_stage_copies(job->value[HD_JOB_PAR_COPIES].text, s.copies);
	for (uint32_t k = 0; k < s.ncopies; k++)
		s.p += s.copies[k];
	err = find_width(&s, job, ndevices, ncores, diag);
	err = err ? err : find_ranks(&s, job, ndevices, ncores, diag);
	if (!err)
		*stages = s;
	return err;
}

const char *hd_run_stages_drained(const char *schedule)
{
	const struct hd_schedule_kind *kind = NULL;

	return schedule && !hd_schedule_kind_find(&kind, schedule, NULL) && kind->update != HD_UPDATE_FLUSH ?
		"1f1b" : schedule;
}

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for a plan");
}

/* Of forward and backward of each stage: time where it is known (`timed`), else FLOPs. */
static enum hd_err weigh(double *weight, bool *timed, const struct hd_plan *plan,
	const struct hd_graph *graph, uint64_t rows, const struct hd_run_costs *costs, struct hd_arena *arena,
	struct hd_diag *diag)
{
	uint32_t *cut = hd_arena_take(arena, (size_t)plan->nstages + 1, sizeof *cut);
	struct hd_stage_costs stages;

	if (!cut)
		return no_memory(diag);
	*timed = costs && !hd_run_costs_cuts(costs, plan->first, plan->nstages, cut);
	if (*timed) {
		enum hd_err err = hd_stage_costs_make(&stages, &costs->sums, cut, plan->nstages, arena, diag);
		if (err)
			return err;
		for (uint32_t k = 0; k < plan->nstages; k++)
			weight[k] = (double)(stages.stage[k].f + stages.stage[k].i + stages.stage[k].w);
		return HD_OK;
	}
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		uint32_t at = i < graph->nforward ? i : graph->node[i].of, k = plan->nstages - 1;
		while (k && plan->first[k] > at)
			k--;
		weight[k] += hd_ops[graph->node[i].op].cost(graph, &graph->node[i], rows).flops;
	}
	return HD_OK;
}

static bool computes_again(const struct hd_run_stages *s)
{
	bool again = s->recompute;

	for (uint32_t k = 0; s->again && k < hd_run_stages_n(s); k++)
		again |= s->again[k];
	return again;
}

static const char *keeps_text(const struct hd_run_stages *s)
{
	return computes_again(s) ? " with recomputation" : s->offload ? " with offload" : "";
}

/* "1f1b: 3 stages, 1 pipeline of 3 devices; cuts at nodes 12 25, times 34 33 33 %". */
static void say_stages(struct hd_text *text, const struct hd_plan *plan, const struct hd_run_stages *s,
	const double *weight, bool timed)
{
	double all = 0;

	for (uint32_t k = 0; k < plan->nstages; k++)
		all += weight[k];
	hd_text_addf(text, "%s%s%s", s->schedule, !s->delayed ? "" : plan->overlap ?
		" with steps that overlap" : " drained each step", keeps_text(s));
	if (s->delayed && !plan->overlap && s->drains)
		hd_text_addf(text, " (%s)", s->drains);
	if (s->listed && !hd_listed_is_whole(s->listed, s->share, s->d))
		hd_text_addf(text, ", its %u pipelines shared out to %u", s->listed->d, s->d);
	hd_text_addf(text, ": %u stages, %u pipeline%s of %u ", plan->nstages, s->d, s->d == 1 ? "" : "s",
		s->p);
	if (s->t > 1)
		hd_text_addf(text, "ranks of %u devices", s->t);
	else
		hd_text_add(text, "devices");
	for (uint32_t k = 0; k < s->ncopies; k++)
		hd_text_addf(text, "%s%u", k ? "," : ", copies ", s->copies[k]);
	hd_text_add(text, "; cuts at nodes");
	for (uint32_t k = 1; k < plan->nstages; k++)
		hd_text_addf(text, " %u", plan->first[k]);
	hd_text_add(text, timed ? ", times" : ", FLOPs");
	for (uint32_t k = 0; k < plan->nstages; k++)
		hd_text_addf(text, " %.0f", all > 0 ? 100 * weight[k] / all : 0);
	hd_text_add(text, " %");
}

static enum hd_err describe(struct hd_plan *plan, const struct hd_run_stages *s, const struct hd_graph *graph,
	uint64_t rows, const struct hd_run_costs *costs, struct hd_arena *arena, struct hd_diag *diag)
{
	double *weight = hd_arena_take(arena, plan->nstages + 1, sizeof *weight);
	struct hd_text text;
	bool timed = false;

	if (!weight)
		return no_memory(diag);
	enum hd_err err = weigh(weight, &timed, plan, graph, rows, costs, arena, diag);
	if (err)
		return err;
	hd_text_init(&text, arena);
	if (plan->nstages == 1 && s->t == 1)
		hd_text_addf(&text, "one stage%s: %u device%s with the whole model", keeps_text(s), s->d,
			s->d == 1 ? "" : "s");
	else if (plan->nstages == 1)
		hd_text_addf(&text, "tensor%s: %u rank%s of %u devices that share the model's shards",
			keeps_text(s), s->d, s->d == 1 ? "" : "s", s->t);
	else
		say_stages(&text, plan, s, weight, timed);
	plan->cause = text.at;
	return text.full ? no_memory(diag) : HD_OK;
}

static enum hd_err make_pipelines(struct hd_schedule **pipeline, const struct hd_run_stages *s,
	const struct hd_plan_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	*pipeline = hd_arena_take(arena, s->d, sizeof **pipeline);
	if (!*pipeline)
		return no_memory(diag);
	for (uint32_t k = 0; k < s->d; k++) {
		const struct hd_schedule_ask ask = hd_run_stages_ask(s, s->share ? s->share[k] :
			job->nvns / s->d + (k < job->nvns % s->d));
		enum hd_err err = hd_schedule_make(&(*pipeline)[k], &ask, arena, diag);
		if (err)
			return err;
	}
	return HD_OK;
}

/* The plan of one step by its own lists or those of a schedule. */
static enum hd_err make_plan(struct hd_plan *plan, const struct hd_run_stages *s, const uint32_t *first,
	const uint8_t *keeps, const struct hd_plan_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_schedule *pipeline = NULL;

	if (s->listed)
		return hd_listed_plan(plan, s->listed, job, s->share, s->d, arena, diag);
	enum hd_err err = make_pipelines(&pipeline, s, job, arena, diag);
	return err ? err : hd_plan_staged_some(plan, job, pipeline, s->d, first, keeps, arena, diag);
}

static enum hd_err find_cuts(const uint32_t **first, const struct hd_run_stages *s, uint32_t nstages,
	const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	if (s->first) {
		*first = s->first;
		return HD_OK;
	}
	uint32_t *even = hd_arena_take(arena, nstages, sizeof *even);
	if (!even)
		return no_memory(diag);
	*first = even;
	return hd_graph_stages_share(even, s->ncopies ? s->copies : NULL, nstages, &task->train,
		task->rows[0], arena, diag);
}

static enum hd_err find_keeps(uint8_t **keeps, const struct hd_run_stages *s, uint32_t nstages,
	struct hd_arena *arena, struct hd_diag *diag)
{
	*keeps = hd_arena_take(arena, nstages, 1);
	if (!*keeps)
		return no_memory(diag);
	for (uint32_t k = 0; k < nstages; k++)
		(*keeps)[k] = (s->again ? s->again[k] : s->recompute) ? HD_KEEPS_INPUT :
			s->offload ? HD_KEEPS_AWAY : HD_KEEPS_ALL;
	return HD_OK;
}

void hd_run_stages_hold_last(uint32_t *first, uint32_t nstages, const struct hd_task *task)
{
	const uint32_t to = task->delays.early ? task->delays.first[task->delays.nstages - 1] : 0;

	if (to && first[nstages - 1] > to && (nstages == 2 || first[nstages - 2] < to))
		first[nstages - 1] = to;
}

static enum hd_err hold_last(const uint32_t **first, uint32_t nstages, const struct hd_task *task,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *moved = hd_arena_take(arena, nstages, sizeof *moved);

	if (!moved)
		return no_memory(diag);
	memcpy(moved, *first, nstages * sizeof *moved);
	hd_run_stages_hold_last(moved, nstages, task);
	*first = moved;
	return HD_OK;
}

/* Do steps overlap with these stages, or with the last cut moved? Then *first is that. Why not, else. */
static enum hd_err find_overlap(bool *overlap, const uint32_t **first, struct hd_run_stages *s,
	uint32_t nstages, const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t *held = *first;
	struct hd_diag why = { "" };
	struct hd_text text;
	enum hd_err err = HD_OK;

	if (s->overlap)
		s->drains = s->d > 1 ? "there are several pipelines" : s->offload ?
			"activations leave to a file" : s->ncopies ? "stages have copies" : s->groups > 1 ?
			"the devices of a rank lie on several workers" : NULL;
	*overlap = s->overlap && !s->drains && s->p > 1;
	if (*overlap && task->delays.early) {
		err = s->shared ? HD_OK : hold_last(&held, nstages, task, arena, &why);
		err = err ? err : hd_stages_overlap(task, held, nstages, arena, &why);
	}
	*first = err ? *first : held;
	if (err != HD_E_REFUSED)
		return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
	hd_text_init(&text, arena);
	hd_text_add(&text, why.text);
	*overlap = false;
	s->drains = text.at;
	return text.full ? no_memory(diag) : HD_OK;
}

enum hd_err hd_run_stages_plan(struct hd_plan *plan, const struct hd_run_stages *of,
	const struct hd_plan_job *job, const struct hd_task *task, const struct hd_run_costs *costs,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_run_stages shape = *of, *s = &shape;
	const uint32_t n = hd_run_stages_n(s), *first = NULL;
	uint8_t *keeps;
	bool overlap = false;
	enum hd_err err = find_keeps(&keeps, s, n, arena, diag);

	err = err ? err : find_cuts(&first, s, n, task, arena, diag);
	err = err ? err : find_overlap(&overlap, &first, s, n, task, arena, diag);
	err = err ? err : make_plan(plan, s, first, keeps, job, arena, diag);
	if (err)
		return err;
	plan->overlap = overlap;
	err = describe(plan, s, &task->train, task->rows[0], costs, arena, diag);
	return err ? err : hd_plan_spread(plan, job, s->t, s->groups, arena, diag);
}
