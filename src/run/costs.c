#include "run/costs.h"

#include <string.h>

#include "base/crc32c.h"
#include "sys/clock.h"
#include "pipeline/generate.h"
#include "engine/profile.h"

/* An addition of two flat vectors moves three bytes for two that a copy moves. */
static const double copy_of_add = 2.0 / 3;
/* A thread is woken: a system call on the one side, a switch of the core on the other. Of costs that no
 * machine was measured for. */
static const double wake_ns = 20000;
enum { CHECKED = 1 << 20 };               /* bytes of a chunk on its way */

static enum hd_err cut(struct hd_run_costs *c, const struct hd_profile *profile, const uint32_t *home,
	const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = hd_profile_line(&c->line, profile, home, graph, rows, arena, diag);

	err = err ? err : hd_cuts_make(&c->cuts, &c->line.profile,
		(struct hd_cuts_how){ .max = HD_CUTS_CAP }, "the job's profile", arena, diag);
	return err ? err : hd_cut_sums_make(&c->sums, &c->line.profile, &c->cuts, arena, diag);
}

/* The time of a profile node at one graph node of it in each phase. */
static enum hd_err share_out(struct hd_run_costs *c, const uint32_t *home, const struct hd_graph *graph,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_profile *p = &c->line.profile;
	bool *done = hd_arena_take(arena, (size_t)p->nnodes * 3 + 1, sizeof *done);

	c->node_ns = hd_arena_take(arena, (size_t)graph->nnodes + 1, sizeof *c->node_ns);
	if (!c->node_ns || !done)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of a job");
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_profile_node *node = &p->node[home[i]];
		const int64_t ns[] = { [HD_PHASE_F] = node->f.p50_ns, [HD_PHASE_I] = node->i.p50_ns,
			[HD_PHASE_W] = node->w.p50_ns };
		bool *at = &done[home[i] * 3 + graph->node[i].phase];
		c->node_ns[i] = *at || (i < graph->nforward && i < c->line.first[home[i]]) ? 0 :
			ns[graph->node[i].phase];
		*at |= c->node_ns[i] > 0;
	}
	return HD_OK;
}

enum hd_err hd_run_costs_of(struct hd_run_costs **costs, const struct hd_profile *profile,
	const uint32_t *home, const struct hd_graph *graph, uint64_t rows, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_run_costs *c = hd_arena_take(arena, 1, sizeof *c);

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of a job");
	c->whole = c->pace = 1;
	hd_reuse_none(&c->reuse);
	c->graph = graph;
	c->rows = rows;
	enum hd_err err = cut(c, profile, home, graph, rows, arena, diag);
	err = err ? err : share_out(c, home, graph, arena, diag);
	if (!err)
		*costs = c;
	return err;
}

/* A worker of one device under the plan of one rank. */
static enum hd_err open_one(struct hd_worker **worker, struct hd_plan *plan, const struct hd_task *task,
	const struct hd_worker_spec *spec, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_worker_spec one = *spec;

	one.ndevices = 1;
	one.nthreads = spec->nthreads ? spec->nthreads : 1;
	one.recorder = NULL;
	one.pace_ns = NULL;
	one.speed = NULL;
	one.functions = NULL;
	one.kind = !strcmp(spec->kind, "null") ? "cpu" : spec->kind;
	enum hd_err err = hd_worker_create(worker, task, &one, diag);
	if (err)
		return err;
	const struct hd_plan_job job = hd_worker_plan_job(*worker);
	err = hd_plan_data(plan, &job, 1, NULL, arena, diag);
	return err ? err : hd_worker_adopt(*worker, plan, diag);
}

static double nodes_ns(const struct hd_profile *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->nnodes; i++)
		sum += (double)hd_profile_node_ns(&p->node[i]);
	return sum;
}

/* What of it plans of the job can need: waves of a whole model, and activations that lie far back. */
struct wanted { bool waves, reuse, apart; };

/* Virtual nodes one by one, then as many together as a whole model's plan takes; additions; the same virtual
 * node in several places. */
static enum hd_err time_ops(struct hd_worker *worker, bool one_thread, struct wanted wanted,
	struct hd_profile *p, double *whole, struct hd_reuse *reuse, double *norm_s, struct hd_arena *arena,
	struct hd_arena *scratch, struct hd_diag *diag)
{
	const struct hd_profile_how alone = { .samples = HD_COSTS_PASSES, .budget_ns = HD_COSTS_BUDGET_NS,
		.processor = one_thread }, far = { .budget_ns = HD_COSTS_REUSE_NS, .processor = one_thread,
		.joined = !wanted.apart };
	struct hd_profile_how wave = alone;
	struct hd_profile together;
	struct hd_fold_times folds, cold[2];

	wave.together = hd_worker_wave(worker);
	hd_reuse_none(reuse);
	enum hd_err err = hd_worker_profile(worker, &alone, arena, p, diag);
	*whole = 1;
	if (!err && wanted.waves) {
		err = hd_worker_profile(worker, &wave, scratch, &together, diag);
		*whole = !err && nodes_ns(p) > 0 ? nodes_ns(&together) / nodes_ns(p) : 1;
	}
	err = err ? err : hd_worker_fold_times(worker, 1, &cold[0], diag);
	err = err ? err : hd_worker_fold_times(worker, HD_COSTS_FOLDS, &folds, diag);
	if (!err && wanted.reuse)
		err = hd_worker_profile_reuse(worker, &far, reuse, diag);
	err = err ? err : hd_worker_fold_times(worker, 1, &cold[1], diag);
	if (err)
		return err;
	err = hd_worker_norm_time(worker, HD_COSTS_FOLDS, norm_s, diag);
	if (err)
		return err;
	p->step_ns_per_byte = (cold[0].best_s < cold[1].best_s ? cold[0].best_s : cold[1].best_s) * 1e9;
	p->sum_ns_per_byte = folds.best_s * 1e9;
	return HD_OK;
}

/* What others do to a thread is not in it: the median of so few is theirs when they have the cores. */
static double late_ns(struct hd_clock *clock)
{
	int64_t ns[HD_COSTS_SLEEPS];

	for (int i = 0; i < HD_COSTS_SLEEPS; i++) {
		const int64_t until_ns = hd_clock_now_ns(clock) + HD_COSTS_SLEEP_NS;
		hd_clock_wait_until(clock, until_ns);
		ns[i] = hd_clock_now_ns(clock) - until_ns;
	}
	return (double)hd_profile_undisturbed(ns, HD_COSTS_SLEEPS);
}

/* Waiting takes a multiple of computing; nothing is added. All nodes together take what a profile can. */
static enum hd_err stretch(struct hd_profile *p, double pace, struct hd_diag *diag)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < p->nnodes; i++) {
		struct hd_profile_cost *cost[] = { &p->node[i].f, &p->node[i].i, &p->node[i].w };
		for (int k = 0; k < 3; k++) {
			const double ns = (double)cost[k]->p50_ns * pace;
			if ((sum_ns += ns) > (double)HD_PROFILE_SUM_MAX)
				return hd_fail(diag, HD_E_INVAL, "%g times as long a virtual node takes more "
					"than %g s: a shorter wait is X of --devices paced:N:X", pace,
					(double)HD_PROFILE_SUM_MAX * 1e-9);
			cost[k]->p50_ns = (int64_t)ns;
		}
	}
	p->sum_ns_per_byte = p->step_ns_per_byte = 0;
	return HD_OK;
}

/* A step reads parameter, gradient and slots, and writes all but the gradient; an addition moves three. */
static double moved_by_update(const struct hd_task *task)
{
	return (3 + 2 * hd_optim_nslots(&task->optim)) / 3.0;
}

static void read_off(struct hd_run_costs *c, const struct hd_task *task, double copy_ns_per_byte)
{
	const struct hd_profile *p = &c->line.profile;
	const double bytes = (double)task->layout.elems * sizeof(float);

	c->update_ns = bytes * (p->step_ns_per_byte > 0 ? p->step_ns_per_byte :
		p->sum_ns_per_byte * moved_by_update(task));
	c->copy_ns_per_byte = copy_ns_per_byte;
	c->hop_ns = wake_ns;
}

/* The first that is none within a machine. Where both ways share it each has half: sums and activations go
 * both ways. */
static void take_link(struct hd_run_costs *c)
{
	const struct hd_profile *p = &c->line.profile;

	for (uint32_t i = 0; i < p->nlinks && !(c->port_bytes_per_s > 0); i++)
		if (p->link[i].level && strcmp(p->link[i].kind, "memory") != 0 &&
			p->link[i].bytes_per_s > 0) {
			c->port_bytes_per_s = p->link[i].bytes_per_s / (p->link[i].duplex ? 1 : 2);
			c->port_latency_ns = (double)p->link[i].latency_ns;
		}
}

/* The same nodes, and as many rows in each. */
static bool is_of(const struct hd_profile *p, const struct hd_profile *bare)
{
	bool same = p->nnodes == bare->nnodes && p->graph == bare->graph && p->vn_size == bare->vn_size;

	for (uint32_t i = 0; same && i < p->nnodes; i++)
		same = !strcmp(p->node[i].id, bare->node[i].id);
	return same;
}

static enum hd_err complete(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_profile *profile, double copy_ns_per_byte, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_profile_ask ask = { .rows = task->job->per_vn,
		.nslots = hd_optim_nslots(&task->optim), .tensor_shards = 1 };
	struct hd_arena scratch;
	struct hd_profile bare;
	uint32_t *home;

	hd_arena_init(&scratch, 0);
	enum hd_err err = hd_profile_of_graph(&bare, &home, &task->train, &ask, &scratch, diag);
	if (!err && !is_of(profile, &bare))
		err = hd_fail(diag, HD_E_INVAL,
			"these costs were measured of another model, or of other virtual nodes");
	err = err ? err : hd_run_costs_of(costs, profile, home, &task->train, task->job->per_vn, arena, diag);
	hd_arena_finish(&scratch);
	if (!err) {
		read_off(*costs, task, copy_ns_per_byte);
		take_link(*costs);
	}
	return err;
}

enum hd_err hd_run_costs_again(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_profile *profile, double whole, struct hd_arena *arena, struct hd_diag *diag)
{
	enum hd_err err = complete(costs, task, profile, profile->sum_ns_per_byte * copy_of_add, arena, diag);

	if (!err)
		(*costs)->whole = whole;
	return err;
}

enum hd_err hd_run_costs_waiting(struct hd_run_costs **costs, const struct hd_task *task,
	struct hd_profile *profile, double pace, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_clock clock;

	enum hd_err err = stretch(profile, pace, diag);
	err = err ? err : complete(costs, task, profile, 0, arena, diag);
	if (err)
		return err;
	hd_clock_real(&clock);
	(*costs)->late_ns = late_ns(&clock);
	(*costs)->pace = pace;
	return hd_profile_wake(&clock, &(*costs)->hop_ns, diag);
}

/* Of additions of whole vectors, warm and cold. */
static void share_of_bytes(struct hd_profile *p, const struct hd_task *task)
{
	const double bytes = (double)task->layout.elems * sizeof(float);

	p->sum_ns_per_byte /= bytes;
	p->step_ns_per_byte *= moved_by_update(task) / bytes;
}

/* 0: there is no memory to see. */
static double check_ns_per_byte(struct hd_clock *clock, struct hd_arena *arena)
{
	const uint8_t *bytes = hd_arena_take(arena, CHECKED, 1);
	int64_t best = INT64_MAX;
	volatile uint32_t sink = 0;

	for (int i = 0; i < HD_COSTS_FOLDS && bytes; i++) {
		const int64_t began_ns = hd_clock_now_ns(clock);
		sink = hd_crc32c(sink, bytes, CHECKED);
		const int64_t took = hd_clock_now_ns(clock) - began_ns;
		best = took < best ? took : best;
	}
	return bytes ? (double)best / CHECKED : 0;
}

/* Has the schedule that the keys name W of its own? What they leave open has it not, but for auto. */
static bool splits_backward(const struct hd_job *job, struct hd_arena *arena)
{
	const char *name = hd_job_text(job, HD_JOB_PAR_SCHEDULE);
	const struct hd_schedule_ask ask = { .name = name, .p = 2, .m = 8 };
	struct hd_schedule made;
	const struct hd_schedule_kind *kind;

	if (hd_schedule_kind_find(&kind, name, NULL) || hd_schedule_make(&made, &ask, arena, NULL))
		return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO;
	for (uint32_t r = 0; r < made.nranks; r++)
		for (uint32_t i = 0; i < made.list[r].len; i++)
			if (made.list[r].at[i].op == HD_INS_W)
				return true;
	return false;
}

/* Where the keys ask for stages no plan has the whole model; devices that wait have no caches. */
static struct wanted wanted_of(const struct hd_task *task, double pace, struct hd_arena *arena)
{
	const bool waits = pace > 0;

	return (struct wanted){ .waves = !waits && hd_job_int(task->job, HD_JOB_PAR_MODE) == HD_PAR_AUTO,
		.reuse = !waits, .apart = splits_backward(task->job, arena) };
}

/* `scratch`: what is of no use once it was measured. */
static enum hd_err measure(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_worker_spec *spec, double pace, struct hd_arena *arena, struct hd_arena *scratch,
	struct hd_diag *diag)
{
	struct hd_profile profile = { 0 };
	struct hd_worker *worker = NULL;
	struct hd_plan plan;
	struct hd_clock clock;
	struct hd_reuse reuse;
	double whole = 1, host = 0, norm_s = 0;

	hd_clock_real(&clock);
	const int64_t began_ns = hd_clock_now_ns(&clock);
	enum hd_err err = open_one(&worker, &plan, task, spec, scratch, diag);
	err = err ? err : time_ops(worker, spec->nthreads <= 1, wanted_of(task, pace, scratch), &profile,
		&whole, &reuse, &norm_s, arena, scratch, diag);
	hd_worker_destroy(worker);
	if (!err && hd_job_int(task->job, HD_JOB_PAR_OFFLOAD) == HD_OFFLOAD_STAGE)
		err = hd_profile_file_link(&clock, spec->spill ? spec->spill : "/var/tmp", &host, diag);
	if (!err && task->layout.elems)
		share_of_bytes(&profile, task);
	const double copy = profile.sum_ns_per_byte * copy_of_add, link = copy_of_add *
		profile.step_ns_per_byte / moved_by_update(task) + check_ns_per_byte(&clock, scratch);
	err = err ? err : pace > 0 ? hd_run_costs_waiting(costs, task, &profile, pace, arena, diag) :
		complete(costs, task, &profile, copy, arena, diag);
	if (!err && pace <= 0)
		err = hd_profile_wake(&clock, &(*costs)->hop_ns, diag);
	if (err)
		return err;
	if (pace <= 0) {
		(*costs)->whole = whole;
		(*costs)->reuse = reuse;
		(*costs)->norm_ns = norm_s * 1e9;
		(*costs)->link_ns_per_byte = link;
	}
	(*costs)->host_ns_per_byte = host;
	(*costs)->took_s = (double)(hd_clock_now_ns(&clock) - began_ns) * 1e-9;
	return HD_OK;
}

enum hd_err hd_run_costs_measure(struct hd_run_costs **costs, const struct hd_task *task,
	const struct hd_worker_spec *spec, double pace, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_arena scratch;

	hd_arena_init(&scratch, 0);
	enum hd_err err = measure(costs, task, spec, pace, arena, &scratch, diag);
	hd_arena_finish(&scratch);
	return err;
}

enum hd_err hd_run_costs_cuts(const struct hd_run_costs *costs, const uint32_t *first, uint32_t nstages,
	uint32_t *cut)
{
	uint32_t k = 0;

	for (uint32_t s = 0; s < nstages; s++) {
		while (k < costs->line.profile.nnodes && costs->line.first[k] != first[s])
			k++;
		if (k == costs->line.profile.nnodes)
			return HD_E_NOTFOUND;
		cut[s] = k;
	}
	return HD_OK;
}
