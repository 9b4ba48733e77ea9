#include "run/choose_plan.h"

#include <stdlib.h>
#include <string.h>

#include "graph/tensor.h"
#include "pipeline/lanes.h"
#include "pipeline/redundancy.h"
#include "pipeline/window.h"
#include "planner/partition.h"
#include "planner/planner.h"

static enum hd_err no_memory(struct hd_diag *diag) { return hd_fail(diag, HD_E_NOMEM,
	"no memory to choose a plan"); }

void hd_share_by_speed(uint32_t *count, uint32_t n, uint32_t nvns, const double *speed)
{
	memset(count, 0, n * sizeof *count);
	for (uint32_t v = 0; v < nvns; v++) {
		uint32_t best = 0;
		double best_at = 0;
		for (uint32_t d = 0; d < n; d++) {
			double at = (count[d] + 1) / (speed ? speed[d] : 1);
			if (d == 0 || at < best_at) {
				best = d;
				best_at = at;
			}
		}
		count[best]++;
	}
}

/* ---- the devices, as the planner sees them: memory that all of them share */

static enum hd_err cluster_of(struct hd_cluster *out, const struct hd_choose_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const double per_byte = ask->costs->copy_ns_per_byte, port = ask->costs->port_bytes_per_s;
	/* workers of a device each on machines of their own; ranks of more are judged by the simulation */
	const bool ports = port > 0 && ask->setting.holders.devices == 1;
	const struct hd_cluster_level level = { "memory", ask->ndevices, ports ? port :
		per_byte > 0 ? 1e9 / per_byte : HD_CLUSTER_BYTES_PER_S_MAX,
		(int64_t)((ask->costs->hop_ns + (ports ? ask->costs->port_latency_ns : 0)) * 1000) };
	const struct hd_cluster_kind kind = { "device", 1, (int64_t)ask->memory_bytes };
	enum hd_err err = hd_cluster_make(out, &level, 1, kind, arena, diag);

	if (err || !ask->setting.speed)
		return err;
	if (ask->ndevices > HD_CLUSTER_KINDS)
		return hd_fail(diag, HD_E_INVAL, "%u devices with speeds of their own: at most %d",
			ask->ndevices, HD_CLUSTER_KINDS);
	out->kind = hd_arena_take(arena, ask->ndevices, sizeof *out->kind);
	if (!out->kind)
		return no_memory(diag);
	for (uint32_t d = 0; d < ask->ndevices; d++) {
		out->kind[d] = kind;
		out->kind[d].speed = ask->setting.speed[d];
		out->device_kind[d] = d;
	}
	out->nkinds = ask->ndevices;
	return HD_OK;
}

/* ---- candidates */

struct plan_chooser {
	const struct hd_choose_ask *ask;
	uint32_t groups;                  /* workers on which the devices of a rank lie; 0: one */
	struct hd_cluster cluster;
	struct hd_plan_choices *out;
	uint32_t cap;
	struct hd_arena *arena;
	struct hd_diag first;             /* why the first depth that the planner refused was */
};

static enum hd_err add(struct plan_chooser *c, const struct hd_run_stages *stages, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	struct hd_plan_choice *to = &c->out->at[c->out->n];
	struct hd_diag why = { "" };
	enum hd_err err;

	*to = (struct hd_plan_choice){ .stages = *stages };
	if (stages->p)
		err = hd_run_stages_plan(&to->plan, stages, &ask->job, ask->task, ask->costs, c->arena, &why);
	else {
		uint32_t *count = hd_arena_take(c->arena, ask->ndevices, sizeof *count);
		if (!count)
			return no_memory(diag);
		hd_share_by_speed(count, ask->ndevices, ask->job.nvns, ask->setting.speed);
		err = hd_plan_data(&to->plan, &ask->job, ask->ndevices, ask->setting.speed ? count : NULL,
			c->arena, &why);
	}
	err = err ? err : hd_forecast_make(&to->forecast, &to->plan, ask->costs, &ask->setting, c->arena,
		&why);
	if (err == HD_E_NOMEM || err == HD_E_BUG)
		return hd_fail(diag, err, "%s", why.text);
	if (!err && to->plan.overlap)     /* its last cut may have been moved */
		to->stages.first = to->plan.first;
	c->out->n += !err;                /* what cannot be run is no candidate */
	return HD_OK;
}

static const uint32_t *nodes_of(const struct plan_chooser *c, const uint32_t *cut, uint32_t nstages)
{
	uint32_t *first = hd_arena_take(c->arena, (size_t)nstages + 1, sizeof *first);

	for (uint32_t s = 0; first && s < nstages; s++)
		first[s] = c->ask->costs->line.first[cut[s]];
	return first;
}

/* Pipelines of ranks whose devices are in the order of a run, all devices in use. */
static bool runs(const struct plan_chooser *c, const struct hd_auto_plan *p)
{
	const struct hd_run_stages *shape = c->ask->shape;
	bool same = !shape || (p->shape.p == shape->p && p->shape.d == shape->d && p->shape.v == shape->v &&
		!strcmp(p->shape.schedule, hd_run_stages_drained(shape->schedule)));

	return same && p->first && p->nstages >= 2 && p->shape.d && p->shape.t == 1 &&
		p->shape.p * p->shape.d == c->ask->ndevices &&
		(p->shape.place == HD_AUTO_DEEP || p->shape.d == 1 || !c->ask->setting.speed);
}

static bool has_any(const bool *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (at[i])
			return true;
	return false;
}

/* Why steps are drained whose stages others hold, too; NULL: they need not be. */
static const char *held_twice(const struct hd_choose_ask *ask)
{
	const struct hd_step_holders *holders = &ask->setting.holders;

	if (holders->shadows)
		return "workers hold shadows of stages: elastic.redundancy";
	return holders->devices && hd_job_int(ask->task->job, HD_JOB_STANDBY) != HD_STANDBY_NONE ?
		"workers that are left over follow stages: elastic.standby" : NULL;
}

/* The key's order of delayed updates (rule 9); NULL: it names none. */
static const char *delayed_by_key(const struct hd_job *job)
{
	const struct hd_job_value *key = &job->value[HD_JOB_PAR_SCHEDULE];

	return key->is_auto || hd_run_stages_drained(key->text) == key->text ? NULL : key->text;
}

static struct hd_run_stages delayed_order(const struct plan_chooser *c, const char *schedule, uint32_t p)
{
	const char *held = held_twice(c->ask), *drains = held ? held : hd_task_drains(c->ask->task, p);

	return (struct hd_run_stages){ .schedule = schedule, .delayed = true, .overlap = !drains,
		.drains = drains };
}

/* The order that the shape or the job's key names; where they name none, the one that was found. */
static struct hd_run_stages order_of(const struct plan_chooser *c, const struct hd_auto_plan *p)
{
	const struct hd_run_stages *shape = c->ask->shape;
	const char *delayed = delayed_by_key(c->ask->task->job);

	if (shape)
		return (struct hd_run_stages){ .schedule = shape->schedule, .delayed = shape->delayed,
			.overlap = shape->overlap, .drains = shape->drains };
	return delayed ? delayed_order(c, delayed, p->shape.p) :
		(struct hd_run_stages){ .schedule = p->shape.schedule };
}

static enum hd_err add_found(struct plan_chooser *c, const struct hd_auto_plan *p,
	const struct hd_run_stages order, struct hd_diag *diag)
{
	const struct hd_run_stages *shape = c->ask->shape;
	const bool alike = c->ask->alike;
	const struct hd_run_stages stages = { .schedule = order.schedule, .delayed = order.delayed,
		.overlap = order.overlap, .drains = order.drains, .p = p->shape.p,
		.v = p->shape.v, .d = p->shape.d, .t = c->ask->width, .groups = c->groups,
		.first = nodes_of(c, p->first,
		p->nstages), .share = p->share, .again = alike ? NULL : p->recompute,
		.recompute = alike && has_any(p->recompute, p->nstages),
		.offload = shape && shape->offload };

	return stages.first ? add(c, &stages, diag) : no_memory(diag);
}

static enum hd_auto_recompute recompute_of(const struct hd_choose_ask *ask)
{
	static const enum hd_auto_recompute of[] = { [HD_RECOMPUTE_AUTO] = HD_AUTO_IF_NEEDED,
		[HD_RECOMPUTE_NONE] = HD_AUTO_NEVER, [HD_RECOMPUTE_STAGE] = HD_AUTO_ALWAYS };

	const int64_t key = hd_job_int(ask->task->job, HD_JOB_PAR_RECOMPUTE);

	if (ask->alike && ask->shape)
		return ask->shape->recompute ? HD_AUTO_ALWAYS : HD_AUTO_NEVER;
	/* what is in a file takes no memory that could be saved */
	if (hd_job_int(ask->task->job, HD_JOB_PAR_OFFLOAD) == HD_OFFLOAD_STAGE)
		return HD_AUTO_NEVER;
	return of[ask->again && key == HD_RECOMPUTE_AUTO ? HD_RECOMPUTE_STAGE : key];
}

/* Model chunks of a device as the keys have them; 0: they leave it open. */
static uint32_t chunks_of(const struct hd_job *job, uint32_t p)
{
	const struct hd_job_value *stages = &job->value[HD_JOB_PAR_STAGES],
		*chunks = &job->value[HD_JOB_PAR_CHUNKS];

	return !stages->is_auto ? (uint32_t)stages->i / p : chunks->is_auto ? 0 : (uint32_t)chunks->i;
}

/* Do the keys leave this depth open? */
static bool allows(const struct hd_job *job, uint32_t p, uint32_t d)
{
	const struct hd_job_value *stages = &job->value[HD_JOB_PAR_STAGES],
		*chunks = &job->value[HD_JOB_PAR_CHUNKS], *replicas = &job->value[HD_JOB_PAR_REPLICAS];

	if (!replicas->is_auto && replicas->i != d)
		return false;
	if (stages->is_auto)
		return true;
	return chunks->is_auto ? stages->i % p == 0 : stages->i == chunks->i * p;
}

static enum hd_err of_depth(struct plan_chooser *c, uint32_t p, uint32_t d, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	const struct hd_job *job = ask->task->job;
	const struct hd_job_value *key = &job->value[HD_JOB_PAR_SCHEDULE];
	const char *schedule = ask->shape ? ask->shape->schedule : key->is_auto ? NULL : key->text;
	const struct hd_auto_ask how = { .vns = ask->job.nvns, .t = 1, .p = p, .d = d,
		.v = ask->shape ? ask->shape->v : chunks_of(job, p),
		.schedule = hd_run_stages_drained(schedule),
		.recompute = recompute_of(ask), .clips = hd_job_num(job, HD_JOB_CLIP) > 0 };
	struct hd_diag why = { "" };
	struct hd_auto found;
	enum hd_err err = hd_plan_auto(&found, &ask->costs->sums, &c->cluster, &how, c->arena, &why);
	uint32_t before = c->out->n;

	if (err == HD_E_NOMEM || err == HD_E_BUG)
		return hd_fail(diag, err, "%s", why.text);
	if (err && !*c->first.text)
		c->first = why;
	for (uint32_t i = 0; !err && i < found.nplans && c->out->n - before < HD_CHOOSE_EACH; i++)
		if (runs(c, &found.plan[i]))
			err = add_found(c, &found.plan[i], order_of(c, &found.plan[i]), diag);
	return err == HD_E_NOMEM || err == HD_E_BUG ? err : HD_OK;
}

/* ---- steps that overlap: rule 9 */

/* The order whose steps of one pipeline may overlap; NULL: there is none, and why. */
static const char *overlapping(const struct plan_chooser *c, uint32_t p, const char **why)
{
	const struct hd_choose_ask *ask = c->ask;
	const struct hd_job *job = ask->task->job;
	const struct hd_job_value *key = &job->value[HD_JOB_PAR_SCHEDULE];
	const uint32_t chunks = chunks_of(job, p);
	const struct { bool drains; const char *why; } rows[] = {
		{ !key->is_auto && !delayed_by_key(job), "parallel.schedule names another order" },
		{ !allows(job, p, 1) || chunks > 1, "the keys ask for several pipelines, or chunks" },
		{ c->groups > 1, "the devices of a rank lie on several workers" },
		{ hd_job_int(job, HD_JOB_PAR_OFFLOAD) == HD_OFFLOAD_STAGE, "activations leave to a file" },
		{ true, held_twice(ask) },
		{ key->is_auto && ask->setting.cores, "devices share cores, which are never idle then" },
		{ true, hd_task_drains(ask->task, p) },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].drains && rows[i].why) {
			*why = rows[i].why;
			return NULL;
		}
	return key->is_auto ? hd_update_names[hd_job_int(job, HD_JOB_UPDATE)] : key->text;
}

/* Do steps of one before it overlap with the same cuts, computing the same again? */
static bool is_there(const struct hd_plan_choices *out, uint32_t at)
{
	const struct hd_plan *b = &out->at[at].plan;

	for (uint32_t i = 0; i < at; i++) {
		const struct hd_plan *a = &out->at[i].plan;
		bool same = a->overlap && a->nstages == b->nstages && a->nranks == b->nranks &&
			!strcmp(out->at[i].stages.schedule, out->at[at].stages.schedule) &&
			!memcmp(a->first, b->first, b->nstages * sizeof *b->first);
		for (uint32_t r = 0; r < b->nranks && same; r++)
			same = hd_window_again(a, r) == hd_window_again(b, r);
		if (same)
			return true;
	}
	return false;
}

/* As the planner cuts for one order; of what was added only plans whose steps overlap stay, each once. */
static enum hd_err of_cuts(struct plan_chooser *c, const struct hd_auto_ask *how, const char *schedule,
	struct hd_diag *diag)
{
	const struct hd_run_stages order = delayed_order(c, schedule, how->p);
	const uint32_t before = c->out->n;
	struct hd_diag why = { "" };
	struct hd_auto found;
	enum hd_err err = hd_plan_auto(&found, &c->ask->costs->sums, &c->cluster, how, c->arena, &why);

	for (uint32_t i = 0; !err && i < found.nplans && c->out->n - before < HD_CHOOSE_EACH; i++) {
		const uint32_t at = c->out->n;
		if (!runs(c, &found.plan[i]))
			continue;
		err = add_found(c, &found.plan[i], order, &why);
		if (c->out->n > at && (!c->out->at[at].plan.overlap || is_there(c->out, at)))
			c->out->n = at;
	}
	return err == HD_E_NOMEM || err == HD_E_BUG ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

static enum hd_err of_overlap(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	const struct hd_job *job = ask->task->job;
	const struct hd_auto_ask steady = { .vns = ask->job.nvns, .t = 1, .p = ask->ndevices, .d = 1, .v = 1,
		.update = HD_UPDATE_2BW, .recompute = recompute_of(ask),
		.clips = hd_job_num(job, HD_JOB_CLIP) > 0 };
	const char *schedule = overlapping(c, ask->ndevices, &c->out->drains);
	struct hd_auto_ask filled = steady;

	if (!schedule)
		return HD_OK;
	filled.update = HD_UPDATE_FLUSH;
	filled.schedule = hd_run_stages_drained(schedule);
	enum hd_err err = of_cuts(c, &steady, schedule, diag);
	/* where the key names the order these cuts are there */
	return err || delayed_by_key(job) ? err : of_cuts(c, &filled, schedule, diag);
}

/* A shape that the planner does not know or cannot fit: the slowest stage as fast as can be. */
static enum hd_err of_balance(struct plan_chooser *c, struct hd_diag *diag)
{
	struct hd_run_stages stages = *c->ask->shape;
	const uint32_t n = stages.p * stages.v;
	const struct hd_part_how how = { .variant = HD_PART_PAPER, .level = { { n, 1e18 } }, .nlevels = 1,
		.straight = true };
	uint32_t *cut = hd_arena_take(c->arena, (size_t)n + 1, sizeof *cut);
	struct hd_partition part;
	struct hd_diag why = { "" };

	if (!cut)
		return no_memory(diag);
	if (n > c->ask->costs->cuts.n || hd_part_solve(&part, &c->ask->costs->cuts, &how, c->arena, &why))
		return HD_OK;
	for (uint32_t s = 0; s < n; s++)
		cut[s] = part.top.stage[s].first;
	stages.first = nodes_of(c, cut, n);
	return stages.first ? add(c, &stages, diag) : no_memory(diag);
}

static uint32_t sum_of(const uint32_t *at, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += at[i];
	return sum;
}

/* Stages with copies in different numbers, as many ranks as there are devices. Only of the first plans are
 * the stages said. */
static bool has_copies(const struct plan_chooser *c, const struct hd_auto_plan *p)
{
	if (!p->first || p->shape.d || strcmp(p->shape.schedule, "1f1b-rr") != 0 || p->nstages < 2 ||
		c->ask->ndevices <= p->nstages || c->ask->ndevices > HD_JOB_MAX_STAGES)
		return false;
	const uint32_t lanes = hd_lanes_count(p->replicas, p->nstages);
	return lanes && lanes <= c->ask->job.nvns && sum_of(p->replicas, p->nstages) == c->ask->ndevices;
}

static enum hd_err of_copies(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	const struct hd_auto_ask how = { .vns = ask->job.nvns, .t = 1, .schedule = "1f1b-rr",
		.recompute = recompute_of(ask), .clips = hd_job_num(ask->task->job, HD_JOB_CLIP) > 0 };
	const uint32_t before = c->out->n;
	struct hd_diag why = { "" };
	struct hd_auto found;
	enum hd_err err = hd_plan_auto(&found, &ask->costs->sums, &c->cluster, &how, c->arena, &why);

	for (uint32_t i = 0; !err && i < found.nplans && c->out->n - before < HD_CHOOSE_EACH; i++) {
		const struct hd_auto_plan *p = &found.plan[i];
		if (!has_copies(c, p))
			continue;
		struct hd_run_stages s = { .schedule = "1f1b-rr", .p = ask->ndevices, .v = 1, .d = 1, .t = 1,
			.first = nodes_of(c, p->first, p->nstages), .again = ask->alike ? NULL : p->recompute,
			.recompute = ask->alike && has_any(p->recompute, p->nstages) };
		if (!s.first)
			return no_memory(diag);
		s.ncopies = p->nstages;
		memcpy(s.copies, p->replicas, p->nstages * sizeof *s.copies);
		err = add(c, &s, diag);
	}
	if (err == HD_E_NOMEM || err == HD_E_BUG)
		return hd_fail(diag, err, "%s", *why.text ? why.text : diag->text);
	return HD_OK;
}

/* What the slower of two stages takes of a virtual node, with so many copies each; INT64_MAX: no cut. */
static int64_t slower(const struct plan_chooser *c, uint32_t cut, const uint32_t *copies)
{
	const struct hd_cut_sums *sums = &c->ask->costs->sums;
	const uint32_t ends[] = { 0, cut, sums->cuts->n };
	int64_t most = 0;

	for (int s = 0; s < 2; s++) {
		if (!hd_cut_sums_is_stage(sums, ends[s], ends[s + 1]))
			return INT64_MAX;
		const struct hd_stage_cost cost = hd_cut_sums_range(sums, ends[s], ends[s + 1]);
		const int64_t took = (cost.f + cost.i + cost.w) / copies[s];
		most = took > most ? took : most;
	}
	return most;
}

/* The next cut in the order of slower(), behind `last`; false: there is none. */
static bool next_cut(const struct plan_chooser *c, const uint32_t *copies, uint32_t *last)
{
	const int64_t had = *last ? slower(c, *last, copies) : -1;
	int64_t least = INT64_MAX;
	uint32_t best = 0;

	for (uint32_t k = 1; k < c->ask->costs->sums.cuts->n; k++) {
		const int64_t took = slower(c, k, copies);
		if (took < least && (took > had || (took == had && k > *last))) {
			least = took;
			best = k;
		}
	}
	*last = best;
	return best > 0;
}

/* Two stages with so many copies, cut where the step is predicted fastest: sums of gradients take part in it,
 * which no recurrence over times sees. */
static enum hd_err of_pair(struct plan_chooser *c, uint32_t copies, struct hd_diag *diag)
{
	const uint32_t n = c->ask->ndevices, at = c->out->n;
	struct hd_run_stages s = { .schedule = "1f1b-rr", .p = n, .v = 1, .d = 1, .t = 1, .ncopies = 2,
		.copies = { copies, n - copies }, .recompute = recompute_of(c->ask) == HD_AUTO_ALWAYS };
	uint32_t cut[] = { 0, 0 };
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < HD_CHOOSE_CUTS && !err && next_cut(c, s.copies, &cut[1]); i++) {
		s.first = nodes_of(c, cut, 2);
		err = s.first ? add(c, &s, diag) : no_memory(diag);
		if (!err && c->out->n == at + 2) {
			struct hd_plan_choice *best = &c->out->at[at];
			*best = best[1].forecast.step_ns < best->forecast.step_ns ? best[1] : *best;
			c->out->n = at + 1;
		}
	}
	return err;
}

static enum hd_err of_pairs(struct plan_chooser *c, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t a = 1; a < c->ask->ndevices && c->ask->ndevices <= HD_JOB_MAX_STAGES && !err; a++) {
		const uint32_t copies[] = { a, c->ask->ndevices - a }, lanes = hd_lanes_count(copies, 2);
		if (lanes && a != copies[1] && lanes <= c->ask->job.nvns)
			err = of_pair(c, a, diag);
	}
	return err;
}

/* The keys say them: cut by the FLOPs. */
static enum hd_err of_given_copies(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	struct hd_run_stages s;
	uint32_t *first = hd_arena_take(c->arena, HD_JOB_MAX_STAGES, sizeof *first);
	enum hd_err err = first ? hd_run_stages(&s, ask->task->job, ask->ndevices, 0, diag) : no_memory(diag);

	err = err ? err : hd_graph_stages_share(first, s.copies, s.ncopies, &ask->task->train,
		ask->task->rows[0], c->arena, diag);
	if (err)
		return err;
	s.first = first;
	s.recompute = recompute_of(ask) == HD_AUTO_ALWAYS;
	return add(c, &s, diag);
}

/* Do the keys leave copies open, which are of one pipeline? */
static bool leaves_copies(const struct hd_choose_ask *ask)
{
	static const enum hd_job_key keys[] = { HD_JOB_PAR_STAGES, HD_JOB_PAR_CHUNKS, HD_JOB_PAR_SCHEDULE,
		HD_JOB_PAR_REPLICAS };
	const struct hd_job *job = ask->task->job;
	bool open = ask->width <= 1 && ask->ndevices > 2 && !ask->job.lockstep && !ask->setting.speed &&
		hd_job_int(job, HD_JOB_REDUNDANCY) == HD_REDUNDANCY_NONE;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		open &= job->value[keys[i]].is_auto;
	return open && hd_job_int(job, HD_JOB_PAR_OFFLOAD) != HD_OFFLOAD_STAGE;
}

/* The whole model on ranks of several devices, each with a share of the virtual nodes. */
static enum hd_err of_width(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_run_stages stages = { .schedule = "1f1b", .p = 1, .v = 1, .d = c->ask->ndevices,
		.t = c->ask->width, .groups = c->groups,
		.recompute = recompute_of(c->ask) == HD_AUTO_ALWAYS };

	return stages.d > c->ask->job.nvns ? HD_OK : add(c, &stages, diag);
}

/* ---- their order */

static int faster_first(const void *a, const void *b)
{
	const struct hd_plan_choice *x = a, *y = b;

	if (x->forecast.step_ns != y->forecast.step_ns)
		return x->forecast.step_ns < y->forecast.step_ns ? -1 : 1;
	if (x->stages.p != y->stages.p)
		return x->stages.p < y->stages.p ? -1 : 1;
	if (x->stages.t != y->stages.t)
		return x->stages.t < y->stages.t ? -1 : 1;
	return x->stages.p ? strcmp(x->stages.schedule, y->stages.schedule) : 0;
}

/* ---- cuts over links: rule 8 */

static bool takes_cut(const struct plan_chooser *c, uint32_t begin, uint32_t cut, uint32_t end)
{
	const struct hd_cut_sums *sums = &c->ask->costs->sums;

	return cut > begin && cut < end && hd_cut_sums_is_stage(sums, begin, cut) &&
		hd_cut_sums_is_stage(sums, cut, end);
}

/* The n-th cut around one: the next, the one before, the second next, ... */
static uint32_t around(uint32_t cut, uint32_t n)
{
	return n % 2 ? cut + (n + 1) / 2 : n / 2 < cut ? cut - n / 2 : 0;
}

static enum hd_err move_cut(struct plan_chooser *c, uint32_t at, uint32_t *cut, uint32_t s, uint32_t tries,
	struct hd_diag *diag)
{
	const uint32_t n = c->ask->costs->cuts.n, from = cut[s], last = c->out->n;
	const uint32_t nstages = hd_run_stages_n(&c->out->at[at].stages);
	const uint32_t end = s + 1 < nstages ? cut[s + 1] : n;
	enum hd_err err = HD_OK;

	for (uint32_t i = 1, tried = 0; i <= 2 * n && tried < tries && !err; i++) {
		const uint32_t was = cut[s], k = around(from, i);
		struct hd_run_stages stages = c->out->at[at].stages;
		if (!takes_cut(c, cut[s - 1], k, end))
			continue;
		cut[s] = k;
		tried++;
		stages.first = nodes_of(c, cut, nstages);
		err = stages.first ? add(c, &stages, diag) : no_memory(diag);
		const bool better = !err && c->out->n > last &&
			c->out->at[last].forecast.step_ns < c->out->at[at].forecast.step_ns;
		if (better)
			c->out->at[at] = c->out->at[last];
		else
			cut[s] = was;
		c->out->n = last;
	}
	return err;
}

static enum hd_err move_cuts(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	uint32_t at = 0, *cut;
	enum hd_err err = HD_OK;

	while (at < c->out->n && (!c->out->at[at].stages.p || c->out->at[at].stages.ncopies))
		at++;
	if (ask->costs->port_bytes_per_s <= 0 || ask->memory_bytes || at == c->out->n)
		return HD_OK;
	const struct hd_run_stages *stages = &c->out->at[at].stages;
	const uint32_t n = hd_run_stages_n(stages);
	cut = hd_arena_take(c->arena, (size_t)n + 1, sizeof *cut);
	if (!cut)
		return no_memory(diag);
	if (n < 2 || hd_run_costs_cuts(ask->costs, stages->first, n, cut))
		return HD_OK;
	/* the coordinator of a run that goes on hears no worker meanwhile: as many of all cuts as of one */
	const uint32_t tries = 2 * HD_CHOOSE_CUTS / (ask->shape ? n - 1 : 1);
	for (uint32_t s = 1; s < n && !err; s++)
		err = move_cut(c, at, cut, s, tries, diag);
	return err;
}

/* Rule 2. */
static void prefer_whole(struct hd_plan_choices *out)
{
	for (uint32_t i = 1; i < out->n; i++) {
		const struct hd_plan_choice whole = out->at[i];
		if (whole.stages.p ||
			whole.forecast.step_ns * (1 - HD_CHOOSE_MARGIN) > out->at[0].forecast.step_ns)
			continue;
		memmove(&out->at[1], &out->at[0], i * sizeof *out->at);
		out->at[0] = whole;
		return;
	}
}

void hd_plan_choice_name(const struct hd_plan_choice *c, struct hd_text *text)
{
	const struct hd_run_stages *s = &c->stages;
	bool again = s->recompute;

	if (!s->p) {
		hd_text_add(text, "data parallel");
		return;
	}
	if (s->p * s->v == 1) {
		hd_text_addf(text, "tensor, %u rank%s of %u devices", s->d, s->d == 1 ? "" : "s", s->t);
		if (s->groups > 1)
			hd_text_addf(text, " on %u workers", s->groups);
		return;
	}
	for (uint32_t k = 0; s->again && k < hd_run_stages_n(s); k++)
		again |= s->again[k];
	hd_text_addf(text, "%s, %u stages%s", s->schedule, hd_run_stages_n(s),
		again ? " with recomputation" : "");
	if (s->delayed)
		hd_text_add(text, c->plan.overlap ? ", steps overlap" : ", drained each step");
	for (uint32_t k = 0; k < s->ncopies; k++)
		hd_text_addf(text, "%s%u", k ? "," : " on ranks ", s->copies[k]);
	if (s->d > 1)
		hd_text_addf(text, " in %u pipelines", s->d);
	if (s->t > 1)
		hd_text_addf(text, " of ranks of %u devices", s->t);
	if (s->groups > 1)
		hd_text_addf(text, " on %u workers", s->groups);
}

void hd_plan_choices_drain(const struct hd_plan_choices *choices, const struct hd_task *task,
	struct hd_text *text)
{
	bool overlap = false;

	for (uint32_t i = 0; i < choices->n; i++)
		overlap |= choices->at[i].plan.overlap;
	if (!overlap && choices->drains)
		hd_text_addf(text, "each step is drained, though optim.update: %s lets steps overlap: %s\n",
			hd_job_text(task->job, HD_JOB_UPDATE), choices->drains);
}

static void explain(const struct plan_chooser *c)
{
	const struct hd_choose_ask *ask = c->ask;
	struct hd_plan_choices *out = c->out;

	hd_plan_choice_name(&out->at[0], &out->why);
	hd_text_addf(&out->why, ": %.3f ms a step predicted on %u devices, by ops measured in %.1f s\n",
		out->at[0].forecast.step_ns * 1e-6, ask->ndevices * (ask->width ? ask->width : 1),
		ask->costs->took_s);
	for (uint32_t i = 1; i < out->n && i < HD_CHOICES_SHOWN; i++) {
		hd_plan_choice_name(&out->at[i], &out->why);
		hd_text_addf(&out->why, ": %.3f ms, %.3f times the choice\n",
			out->at[i].forecast.step_ns * 1e-6,
			out->at[i].forecast.step_ns / out->at[0].forecast.step_ns);
	}
	if (out->n > 1 && !out->at[0].stages.p && out->at[1].forecast.step_ns < out->at[0].forecast.step_ns)
		hd_text_addf(&out->why,
			"data parallel is taken unless stages save %.0f %%, which predictions "
			"may err by\n", 100 * HD_CHOOSE_MARGIN);
	hd_plan_choices_drain(out, ask->task, &out->why);
	const uint32_t ndevices = ask->ndevices * (ask->width ? ask->width : 1);
	if (ask->setting.cores && ask->setting.cores < ndevices)
		hd_text_addf(&out->why, "%u devices share %u core%s: what runs at once takes longer, and "
			"stages save memory alone\n", ndevices, ask->setting.cores,
			ask->setting.cores == 1 ? "" : "s");
}

/* All depths of one width. */
static enum hd_err of_depths(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	const struct hd_run_stages *shape = ask->shape, whole = { .p = 0 };
	enum hd_err err = cluster_of(&c->cluster, ask, c->arena, diag);

	if (!err && !shape && !ask->task->job->value[HD_JOB_PAR_COPIES].is_none)
		return of_given_copies(c, diag);
	if (!err && !shape && !ask->again && !hd_job_has_stages(ask->task->job) && ask->width <= 1)
		err = add(c, &whole, diag);
	for (uint32_t p = 2; p <= ask->ndevices && !err && !shape && !ask->job.lockstep; p++)
		if (ask->ndevices % p == 0 && allows(ask->task->job, p, ask->ndevices / p))
			err = of_depth(c, p, ask->ndevices / p, diag);
	if (!err && !shape && !ask->job.lockstep && ask->ndevices > 1 &&
		hd_job_int(ask->task->job, HD_JOB_UPDATE) != HD_UPDATE_FLUSH)
		err = of_overlap(c, diag);
	if (!err && !shape && leaves_copies(ask)) {
		err = of_copies(c, diag);
		err = err ? err : of_pairs(c, diag);
	}
	if (!err && !shape && ask->width > 1 && !hd_job_has_depth(ask->task->job))
		err = of_width(c, diag);
	if (!err && shape)
		err = of_depth(c, shape->p, shape->d, diag);
	if (!err && shape && !c->out->n)
		err = of_balance(c, diag);
	return err;
}

/* Rule 5: ranks of t devices; 0: no worker has a whole group of them. */
static uint32_t groups_of(const struct hd_choose_ask *ask, uint32_t t)
{
	const uint32_t each = ask->each ? ask->each : ask->ndevices;

	return each % t == 0 ? 1 : t % each == 0 ? t / each : 0;
}

static enum hd_err of_widths(struct plan_chooser *c, struct hd_diag *diag)
{
	const struct hd_choose_ask *ask = c->ask;
	const uint32_t n = ask->ndevices, shards = (uint32_t)hd_job_int(ask->task->job, HD_JOB_SHARDS);
	double *speed = hd_arena_take(c->arena, n, sizeof *speed);
	enum hd_err err = speed ? HD_OK : no_memory(diag);

	for (uint32_t t = 1; t <= n && t <= HD_MAX_TENSOR && !err; t++) {
		struct hd_choose_ask one = *ask;
		struct plan_chooser of = *c;
		if (n % t || shards % t || !groups_of(ask, t))
			continue;
		one.width = t;
		one.ndevices = n / t;
		one.memory_bytes *= t;
		for (uint32_t d = 0; d < n && ask->setting.speed; d++)
			speed[d / t] = d % t == 0 || ask->setting.speed[d] < speed[d / t] ?
				ask->setting.speed[d] : speed[d / t];
		one.setting.speed = ask->setting.speed ? speed : NULL;
		of.ask = &one;
		of.groups = groups_of(ask, t) > 1 ? groups_of(ask, t) : 0;
		err = of_depths(&of, diag);
		c->first = of.first;
	}
	return err;
}

enum hd_err hd_choose_plan(struct hd_plan_choices *choices, const struct hd_choose_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_plan_choices out = { .n = 0 };
	struct plan_chooser c = { .ask = ask, .out = &out, .arena = arena };
	const bool open = ask->open && !ask->shape && !ask->job.lockstep;
	const size_t widths = open ? ask->ndevices < HD_MAX_TENSOR ? ask->ndevices : HD_MAX_TENSOR : 1;

	const size_t each = (ask->ndevices + 1) * (HD_CHOOSE_EACH + 1) + 2 * HD_CHOOSE_EACH + 4;
	out.at = hd_arena_take(arena, widths * each,
		sizeof *out.at);
	hd_text_init(&out.why, arena);
	enum hd_err err = !out.at ? no_memory(diag) : open ? of_widths(&c, diag) : of_depths(&c, diag);
	if (!err && !out.n)
		err = hd_fail(diag, HD_E_INVAL, "%s", *c.first.text ? c.first.text :
			"no plan of stages runs on these devices");
	if (err)
		return err;
	qsort(out.at, out.n, sizeof *out.at, faster_first);
	err = move_cuts(&c, diag);
	if (err)
		return err;
	qsort(out.at, out.n, sizeof *out.at, faster_first);
	prefer_whole(&out);
	explain(&c);
	*choices = out;
	return out.why.full ? no_memory(diag) : HD_OK;
}
