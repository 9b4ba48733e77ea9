#include "run/forecast.h"

#include <math.h>
#include <string.h>

#include "graph/stages.h"
#include "graph/tensor_time.h"
#include "pipeline/plan_schedule.h"
#include "pipeline/reuse.h"
#include "pipeline/sim_plan.h"
#include "pipeline/staged.h"
#include "run/port_forecast.h"
#include "run/steady.h"

#define PS_PER_NS 1000

/* Rows of the table, in the order in which they are printed; `with`: whose time is in it too. */
static const struct { uint8_t op, with; } kinds[] = { { HD_INS_F, HD_INS_SA }, { HD_INS_R, 0 },
	{ HD_INS_B, HD_INS_SG }, { HD_INS_I, HD_INS_SG }, { HD_INS_W, 0 }, { HD_INS_OFF, 0 },
	{ HD_INS_ON, 0 }, { HD_INS_STEP, 0 } };
enum { NKINDS = sizeof kinds / sizeof *kinds };

static bool is_once(uint8_t op) { return op == HD_INS_STEP; }

/* ---- costs of stages */

static int64_t ps(double ns) { return llround(ns * PS_PER_NS); }

static void scale(struct hd_stage_cost *c, double by)
{
	c->f = llround((double)c->f * by);
	c->i = llround((double)c->i * by);
	c->w = llround((double)c->w * by);
	c->r = llround((double)c->r * by);
}

static bool has(const struct hd_plan *plan, uint8_t op, uint16_t stage)
{
	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++)
			if (plan->list[r].at[i].op == op &&
				(plan->list[r].at[i].stage == stage || is_once(op)))
				return true;
	return false;
}

/* Rule 8: an instruction sleeps once; B of a stage without W apart counts as I does. */
static void wake_late(struct hd_stage_costs *s, const struct hd_plan *plan, double late_ns)
{
	for (uint32_t k = 0; k < s->nstages; k++) {
		struct hd_stage_cost *c = &s->stage[k];
		c->f += ps(late_ns);
		c->r += ps(late_ns);
		c->i += ps(late_ns);
		c->w += has(plan, HD_INS_W, (uint16_t)k) ? ps(late_ns) : 0;
	}
}

/* Rule 7. */
static enum hd_err come_back(struct hd_stage_costs *s, const struct hd_plan *plan,
	const struct hd_run_costs *costs, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_stage_reuse *of = hd_arena_take(arena, s->nstages, sizeof *of);
	double *share = hd_arena_take(arena, s->nstages, sizeof *share), whole = 0;

	if (!of || !share)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (uint32_t k = 0; k < s->nstages; k++)
		whole += (double)s->stage[k].saved;
	for (uint32_t k = 0; k < s->nstages; k++)
		share[k] = whole > 0 ? (double)s->stage[k].saved / whole : 0;
	enum hd_err err = hd_reuse_stages(of, plan, share, &costs->reuse, arena, diag);
	for (uint32_t k = 0; k < s->nstages && !err; k++) {
		struct hd_stage_cost *c = &s->stage[k];
		c->f = llround((double)c->f * of[k].by[HD_PHASE_F]);
		c->r = llround((double)c->r * of[k].by[HD_PHASE_F]);
		c->i = llround((double)c->i * of[k].by[HD_PHASE_I]);
		c->w = llround((double)c->w * of[k].by[HD_PHASE_W]);
	}
	return err;
}

/* STEPs of a stage, its shadows' apart; of all stages: HD_NONE. */
static double count_steps(const struct hd_plan *plan, uint32_t stage, bool shadows)
{
	double n = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			n += ins->op == HD_INS_STEP && (stage == HD_NONE || ins->stage == stage) &&
				!(ins->flags & HD_INS_SHADOW) == !shadows;
		}
	return n;
}

/* Rule 2, by stages: what a STEP of a stage takes of the whole update. Shadows without lists are updated by
 * the rank before theirs, with its own stage. */
static double part_of_stage(const struct hd_stage_costs *s, const struct hd_plan *plan,
	const struct hd_step_holders *holders, const uint32_t *makers, uint32_t k)
{
	const bool lists = count_steps(plan, HD_NONE, true) > 0, behind = holders->shadows && !lists;
	const uint32_t next = (k + 1) % s->nstages;
	double bytes = 0;

	for (uint32_t i = 0; i < s->nstages; i++)
		bytes += (double)s->stage[i].param;
	const double own = (double)s->stage[k].param + (behind ? (double)s->stage[next].param : 0),
		nsteps = count_steps(plan, k, false);
	return bytes > 0 && nsteps > 0 ? own / bytes * makers[k] / nsteps : 0;
}

/* The sender copies, in the time of its own rank; ranks of one process, and of workers that hold all, update
 * as evenly as can be. */
static void add_rest(struct hd_stage_costs *s, const struct hd_plan *plan, const struct hd_run_costs *costs,
	const struct hd_step_holders *holders, const uint32_t *cut, const uint32_t *makers)
{
	const double nsteps = count_steps(plan, HD_NONE, false);
	const bool by_stages = holders->devices && !holders->whole && plan->first;

	for (uint32_t k = 0; k < s->nstages; k++) {
		struct hd_stage_cost *c = &s->stage[k];
		if (!plan->first)
			scale(c, costs->whole);
		else {
			c->f += ps((double)c->out * costs->copy_ns_per_byte);
			c->i += ps((double)costs->line.back[cut[k]] * costs->copy_ns_per_byte);
			c->w += c->add;
		}
		const double part = by_stages ? part_of_stage(s, plan, holders, makers, k) :
			nsteps > 0 ? makers[k] / nsteps : 0;
		c->step = ps(costs->update_ns * part / hd_plan_width(plan));
		/* of measured nodes; the copies have none */
		c->of_f = c->of_i = c->of_w = (struct hd_spread){ 0, 0 };
	}
}

/* Until a rank goes on that waits for another one. Workers of several devices have ranks side by side. */
static double hop_of(const struct hd_run_costs *costs, const struct hd_step_holders *holders)
{
	return costs->hop_ns * (holders->devices == 1 ? HD_LETTER_HOPS : 1);
}

/* What the devices of a rank take for a stage: rule 4. */
struct widening {
	const struct hd_run_costs *costs;
	uint32_t t, ngroups;
	double cores;                     /* for a rank */
	struct hd_graph_stages cuts;
	struct hd_graph_spread spread;
	struct hd_arena *arena;
};

/* What groups send one another in one order of nodes. */
static enum hd_err link_of(struct hd_tensor_link *link, const struct widening *w, uint32_t s,
	const struct hd_tensor_list *list, struct hd_diag *diag)
{
	const struct hd_graph *stage = &w->cuts.stage[s].graph;
	struct hd_parcels *parcels = hd_arena_take(w->arena, 1, sizeof *parcels);
	enum hd_err err = parcels ? hd_parcels_make(parcels, stage, &w->spread.at[s], list, w->t, w->ngroups,
		w->arena, diag) : HD_E_NOMEM;
	double *ns = err ? NULL : hd_arena_take(w->arena, (size_t)parcels->n + 1, sizeof *ns);

	if (!ns)
		return err && err != HD_E_NOMEM ? err : hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (uint32_t i = 0; i < parcels->n; i++)
		for (uint32_t k = 0; k < parcels->at[i].n; k++)
			ns[i] += w->costs->copy_ns_per_byte *
				(double)hd_value_bytes(&stage->value[parcels->at[i].value[k]],
				w->costs->rows);
	*link = (struct hd_tensor_link){ w->ngroups, parcels, ns, HD_LETTER_HOPS * w->costs->hop_ns };
	return HD_OK;
}

/* By how much shorter a phase of a stage is. */
static enum hd_err shorter(double *by, const struct widening *w, uint32_t s, uint8_t phase, const double *ns,
	struct hd_diag *diag)
{
	const struct hd_graph *stage = &w->cuts.stage[s].graph;
	const uint32_t t = w->t;
	struct hd_arena *arena = w->arena;
	struct hd_tensor_link link = { .ngroups = 0 };
	struct hd_tensor_list list[HD_MAX_TENSOR];
	uint32_t *order = hd_arena_take(arena, (size_t)stage->nnodes + 1, sizeof *order);
	uint32_t *place = hd_arena_take(arena, (size_t)stage->nnodes + 1, sizeof *place);
	uint32_t *until = hd_arena_take(arena, (size_t)stage->nnodes * t + 1, sizeof *until), n = 0;
	double sum = 0, took = 0;

	if (!order || !place || !until)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (uint32_t i = 0; i < stage->nnodes; i++)
		if (stage->node[i].phase == phase) {
			order[n++] = i;
			sum += ns[i];
		}
	enum hd_err err = hd_tensor_lists(list, place, until, stage, w->spread.at[s].device, t, order, n,
		arena, diag);
	if (!err && w->ngroups > 1)
		err = link_of(&link, w, s, list, diag);
	const struct hd_tensor_wakes wakes = { w->costs->hop_ns, w->costs->late_ns };
	err = err ? err : hd_tensor_time(&took, list, t, ns, wakes, w->ngroups > 1 ? &link : NULL, arena,
		diag);
	if (!err)
		*by = sum <= 0 ? 1 : took < sum / w->cores ? 1 / w->cores : took / sum;
	return err;
}

static uint32_t shards_of(const struct hd_graph *g)
{
	uint32_t n = 1;

	for (uint32_t i = 0; i < g->nnodes; i++)
		n = g->node[i].shard > n ? g->node[i].shard : n;
	return n;
}

static enum hd_err widen_stage(struct hd_stage_cost *c, const struct widening *w, uint32_t s,
	struct hd_diag *diag)
{
	const struct hd_graph *stage = &w->cuts.stage[s].graph;
	double *ns = hd_arena_take(w->arena, (size_t)stage->nnodes + 1, sizeof *ns), by[3] = { 1, 1, 1 };
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	if (!ns)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (uint32_t i = 0; i < w->costs->graph->nnodes; i++)
		if (w->cuts.of_node[i] == s)
			ns[n++] = (double)w->costs->node_ns[i];
	for (uint8_t phase = HD_PHASE_F; phase <= HD_PHASE_W && !err; phase++)
		err = shorter(&by[phase], w, s, phase, ns, diag);
	c->f = llround((double)c->f * by[HD_PHASE_F]);
	c->r = llround((double)c->r * by[HD_PHASE_F]);
	c->i = llround((double)c->i * by[HD_PHASE_I]);
	c->w = llround((double)c->w * by[HD_PHASE_W]);
	c->add = llround((double)c->add * by[HD_PHASE_W]);
	return err;
}

static enum hd_err widen(struct hd_stage_costs *s, const struct hd_plan *plan,
	const struct hd_run_costs *costs, uint32_t ngroups, uint32_t ncores, struct hd_diag *diag)
{
	const uint32_t t = hd_plan_width(plan), each = ncores ? ncores / plan->nranks : t;
	struct hd_arena arena;
	struct widening w = { .costs = costs, .t = t, .ngroups = ngroups, .arena = &arena,
		.cores = each == 0 ? 1 : each < t ? each : t };

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_graph_stages_make(&w.cuts, costs->graph, plan->first, plan->nstages, &arena,
		diag);
	err = err ? err : hd_graph_spread_make(&w.spread, &w.cuts, shards_of(costs->graph), t, ngroups,
		&arena, diag);
	for (uint32_t k = 0; k < plan->nstages && !err; k++)
		err = widen_stage(&s->stage[k], &w, k, diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err stage_costs(struct hd_stage_costs *out, const struct hd_plan *plan,
	const struct hd_run_costs *costs, uint32_t ngroups, const struct hd_forecast_setting *setting,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *cut = hd_arena_take(arena, (size_t)plan->nstages + 1, sizeof *cut);
	uint32_t *makers = hd_arena_take(arena, plan->nstages, sizeof *makers);
	struct hd_step_holders without = setting->holders;
	without.shadows = false;
	enum hd_err err = cut && makers ? hd_step_copies(makers, plan, &without, arena, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");

	if (!err && plan->first)
		err = hd_run_costs_cuts(costs, plan->first, plan->nstages, cut);
	err = err ? err : hd_stage_costs_make(out, &costs->sums, cut, plan->nstages, arena, diag);
	if (!err && plan->first)
		err = come_back(out, plan, costs, arena, diag);
	if (!err && plan->first && costs->late_ns > 0 && hd_plan_width(plan) == 1)
		wake_late(out, plan, costs->late_ns);
	if (!err && hd_plan_width(plan) > 1)
		err = widen(out, plan, costs, ngroups, setting->cores, diag);
	if (!err)
		add_rest(out, plan, costs, &setting->holders, cut, makers);
	return err;
}

/* ---- rows */

static struct hd_forecast_row *row_of(struct hd_forecast *f, uint8_t op, uint16_t stage)
{
	for (uint32_t i = 0; i < f->nrows; i++)
		if (f->row[i].op == op && (is_once(op) || f->row[i].stage == stage))
			return &f->row[i];
	return NULL;
}

static enum hd_err list_rows(struct hd_forecast *f, const struct hd_plan *plan, struct hd_arena *arena,
	struct hd_diag *diag)
{
	f->row = hd_arena_take(arena, (size_t)plan->nstages * NKINDS, sizeof *f->row);
	f->busy_ns = hd_arena_take(arena, plan->nranks, sizeof *f->busy_ns);
	if (!f->row || !f->busy_ns)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	for (size_t k = 0; k < NKINDS; k++)
		for (uint32_t s = 0; s < (is_once(kinds[k].op) ? 1 : plan->nstages); s++)
			if (has(plan, kinds[k].op, (uint16_t)s))
				f->row[f->nrows++] = (struct hd_forecast_row){ .op = kinds[k].op,
					.stage = (uint16_t)s };
	return HD_OK;
}

static void read_spans(struct hd_forecast *f, const struct hd_plan *plan, const struct hd_sim_plan *sim)
{
	const double tick_ns = 1.0 / PS_PER_NS / sim->per_ps;

	for (uint32_t r = 0; r < plan->nranks; r++)
		for (uint32_t i = 0; i < plan->list[r].len; i++) {
			const struct hd_ins *ins = &plan->list[r].at[i];
			struct hd_forecast_row *row = row_of(f, ins->op, ins->stage);
			if (!row)
				continue;
			const double ns = (double)(sim->span[r][i].end - sim->span[r][i].start) * tick_ns;
			row->predicted_ns += ns;
			row->n++;
			f->busy_ns[r] += is_once(ins->op) ? 0 : ns;
		}
	for (uint32_t i = 0; i < f->nrows; i++)
		f->row[i].predicted_ns /= (double)f->row[i].n;
}

/* Rule 5. */
static double overlapped_ns(const struct hd_forecast *f, const struct hd_plan *plan)
{
	double most = 0, step = 0;

	for (uint32_t r = 0; r < plan->nranks; r++)
		most = f->busy_ns[r] > most ? f->busy_ns[r] : most;
	for (uint32_t i = 0; i < f->nrows; i++)
		step = is_once(f->row[i].op) ? f->row[i].predicted_ns : step;
	return most + step;
}

/* Over links stages also wait for tensors. */
static enum hd_err overlap(struct hd_forecast *f, const struct hd_plan *plan,
	const struct hd_sim_setting *set, bool ports, const struct hd_step_holders *holders,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const double busy_ns = overlapped_ns(f, plan);
	/* of the next step, what a worker runs before it needs the end of this one: the first rank the least
	 * (pipeline/window.h, rule 2) */
	const uint32_t fore = plan->nvns - 2 * (plan->nranks - 1);
	const bool hides = holders->devices && hd_plan_width(plan) == 1;
	double steady_ns = 0;
	enum hd_err err = ports ? hd_steady_time(&steady_ns, plan, set, arena, diag) : HD_OK;

	f->step_ns = fmax(busy_ns, steady_ns);
	if (hides)
		f->end_ns = fmax(0, f->end_ns - f->step_ns * fore / plan->nvns);
	return err;
}

/* Gradients that cross a cut may be fewer bytes than the activations that do (cost/profile_line.h). */
static enum hd_err sent_back(struct hd_stage_cost *of, const struct hd_plan *plan,
	const struct hd_run_costs *costs, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *cut = hd_arena_take(arena, (size_t)plan->nstages + 1, sizeof *cut);
	enum hd_err err = cut ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");

	if (!err && plan->first)
		err = hd_run_costs_cuts(costs, plan->first, plan->nstages, cut);
	for (uint32_t k = 1; k < plan->nstages && plan->first && !err; k++)
		of[k].in = costs->line.back[cut[k]];
	return err;
}

/* The cluster of rule 9, and costs whose sums are not simulated: they are in the end of the step. */
static enum hd_err join(struct hd_sim_setting *set, struct hd_cluster *cluster, struct hd_stage_costs *bare,
	const struct hd_plan *plan, const struct hd_run_costs *costs, const struct hd_step_holders *holders,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_stage_cost *of = hd_arena_take(arena, bare->nstages, sizeof *of);

	if (!of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a forecast");
	memcpy(of, bare->stage, bare->nstages * sizeof *of);
	for (uint32_t k = 0; k < bare->nstages; k++)
		of[k].param = 0;
	bare->stage = of;
	set->costs = bare;
	set->cluster = cluster;
	enum hd_err err = sent_back(of, plan, costs, arena, diag);
	return err ? err : hd_port_cluster(cluster, plan, costs, holders, arena, diag);
}

/* What of the exchange is left when all is computed. */
static enum hd_err add_sums(struct hd_forecast *f, const struct hd_plan *plan, const struct hd_sim_plan *sim,
	const struct hd_run_costs *costs, const struct hd_step_holders *holders, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const double all = hd_sim_plan_s(sim, sim->makespan) * 1e9;
	double done = 0;
	enum hd_err err = hd_port_sums(&done, plan, sim, costs, holders, arena, diag);

	f->end_ns += !err && done > all ? done - all : 0;
	return err;
}

/* Of groups the plan of whole ranks is simulated; what its devices take has the link between groups in it. */
enum hd_err hd_forecast_make(struct hd_forecast *forecast, const struct hd_plan *of,
	const struct hd_run_costs *costs, const struct hd_forecast_setting *setting, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_plan folded, *plan = &folded;
	enum hd_err err = hd_plan_fold(plan, of, arena, diag);
	if (err)
		return err;
	struct hd_forecast f = { .cores = setting->cores };
	struct hd_stage_costs stages, bare;
	struct hd_schedule schedule;
	struct hd_cluster cluster;
	struct hd_sim_plan sim;
	const bool ports = hd_has_ports(plan, costs, &setting->holders);
	struct hd_sim_setting set = { .costs = &stages, .hop = ps(hop_of(costs, &setting->holders)),
		.cores = hd_plan_width(plan) > 1 && setting->cores >= plan->nranks ? 0 : setting->cores,
		.speed = setting->speed, .transport = HD_TRANSPORT_BUFFERED, .credits = HD_CREDITS,
		.host_bytes_per_s = costs->host_ns_per_byte > 0 ? 1e9 / costs->host_ns_per_byte : 0,
		.host_waits = true, .spans = true };
	err = stage_costs(&stages, plan, costs, hd_plan_groups(of), setting, arena, diag);
	if (!err && ports) {
		bare = stages;
		err = join(&set, &cluster, &bare, plan, costs, &setting->holders, arena, diag);
	}
	err = err ? err : hd_schedule_of_plan(&schedule, plan, arena, diag);
	err = err ? err : hd_sim_plan(&sim, &schedule, &set, arena, diag);
	err = err ? err : hd_step_end_time(&f.end_ns, plan, &stages, costs, &setting->holders, set.cores,
		arena, diag);
	if (!err && ports)
		err = add_sums(&f, plan, &sim, costs, &setting->holders, arena, diag);
	err = err ? err : list_rows(&f, plan, arena, diag);
	if (err)
		return err;
	read_spans(&f, plan, &sim);
	f.step_ns = hd_sim_plan_s(&sim, sim.makespan) * 1e9;
	if (plan->overlap && !set.cores)
		err = overlap(&f, plan, &set, ports, &setting->holders, arena, diag);
	if (err)
		return err;
	f.step_ns += f.end_ns;
	*forecast = f;
	return HD_OK;
}

void hd_forecast_forget(struct hd_forecast *f, const struct hd_plan *plan)
{
	if (plan->overlap && f->cores)
		f->step_ns = 0;
}

/* ---- what it took */

static void add_spent(struct hd_spent *sum, const struct hd_worker *worker, const struct hd_plan *plan,
	uint8_t op, uint16_t stage)
{
	for (uint32_t r = 0; op && r < plan->nranks; r++)
		for (uint32_t s = is_once(op) ? 0 : stage; s < (is_once(op) ? plan->nstages :
			stage + 1u); s++) {
			const struct hd_spent one = hd_worker_spent(worker, r * hd_plan_width(plan),
				(uint16_t)s, op);
			sum->n += one.n;
			sum->ns += one.ns;
			sum->processor_ns += one.processor_ns;
		}
}

static uint8_t with(uint8_t op)
{
	for (size_t k = 0; k < NKINDS; k++)
		if (kinds[k].op == op)
			return kinds[k].with;
	return 0;
}

static void look(struct hd_spent *own, struct hd_spent *sent, const struct hd_forecast_row *row,
	const struct hd_plan *plan, const struct hd_worker *worker)
{
	*own = *sent = (struct hd_spent){ 0 };
	add_spent(own, worker, plan, row->op, row->stage);
	add_spent(sent, worker, plan, with(row->op), row->stage);
}

bool hd_forecast_counts(uint8_t op)
{
	bool counts = false;

	for (size_t k = 0; k < NKINDS; k++)
		counts |= kinds[k].op == op || (kinds[k].with && kinds[k].with == op);
	return counts;
}

bool hd_forecast_is_busy(uint8_t op)
{
	bool busy = false;

	for (size_t k = 0; k < NKINDS; k++)
		busy |= kinds[k].op == op && !is_once(op);
	return busy;
}

void hd_forecast_begin(struct hd_forecast *f, const struct hd_plan *plan, const struct hd_worker *worker)
{
	for (uint32_t i = 0; i < f->nrows; i++)
		look(&f->row[i].own, &f->row[i].sent, &f->row[i], plan, worker);
}

static double mean_of(uint64_t own, uint64_t own_before, uint64_t sent, uint64_t sent_before, uint64_t n)
{
	return n ? (double)(own - own_before + sent - sent_before) / (double)n : 0;
}

void hd_forecast_measure(struct hd_forecast *f, const struct hd_plan *plan, const struct hd_worker *worker)
{
	for (uint32_t i = 0; i < f->nrows; i++) {
		struct hd_forecast_row *row = &f->row[i];
		const struct hd_spent *was = &row->own, *sent_was = &row->sent;
		struct hd_spent own, sent;
		look(&own, &sent, row, plan, worker);
		const uint64_t n = own.n - was->n;
		row->measured_ns = mean_of(own.ns, was->ns, sent.ns, sent_was->ns, n);
		row->processor_ns = mean_of(own.processor_ns, was->processor_ns, sent.processor_ns,
			sent_was->processor_ns, n);
	}
}

static void add_said(struct hd_spent *sum, const struct hd_forecast_row *row, uint8_t op,
	const struct hd_spent_kind *spent, uint32_t n)
{
	for (uint32_t i = 0; op && i < n; i++)
		if (spent[i].op == op && (is_once(op) || spent[i].stage == row->stage)) {
			sum->n += spent[i].n;
			sum->ns += spent[i].ns;
			sum->processor_ns += spent[i].processor_ns;
		}
}

void hd_forecast_measured(struct hd_forecast *f, const struct hd_spent_kind *spent, uint32_t n)
{
	for (uint32_t i = 0; i < f->nrows; i++) {
		struct hd_forecast_row *row = &f->row[i];
		struct hd_spent own = { 0 }, sent = { 0 };
		add_said(&own, row, row->op, spent, n);
		add_said(&sent, row, with(row->op), spent, n);
		row->measured_ns = mean_of(own.ns, 0, sent.ns, 0, own.n);
		row->processor_ns = mean_of(own.processor_ns, 0, sent.processor_ns, 0, own.n);
	}
}

double hd_forecast_busy_ns(const struct hd_plan *plan, const struct hd_worker *worker, uint32_t r)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < NKINDS; k++)
		for (uint32_t s = 0; s < plan->nstages && !is_once(kinds[k].op); s++)
			sum += hd_worker_spent(worker, r * hd_plan_width(plan), (uint16_t)s, kinds[k].op).ns;
	return (double)sum;
}

/* ---- said */

static void put_ms(struct hd_json_writer *w, const char *name, double ns)
{
	if (ns > 0)
		hd_json_put_f64(w, name, ns * 1e-6);
	else
		hd_json_put_null(w, name);
}

void hd_forecast_put_step(const struct hd_forecast *f, struct hd_json_writer *w)
{
	put_ms(w, "predicted_ms", f->step_ns);
	put_ms(w, "measured_ms", f->measured_ns);
	put_ms(w, "least_ms", f->least_ns);
}

void hd_forecast_put(const struct hd_forecast *f, struct hd_json_writer *w)
{
	hd_forecast_put_step(f, w);
	hd_json_put_i64(w, "cores", f->cores);
	put_ms(w, "end_ms", f->end_ns);
	hd_json_open_array(w, "instructions");
	for (uint32_t i = 0; i < f->nrows; i++) {
		const struct hd_forecast_row *row = &f->row[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "op", hd_ins_row(row->op)->text);
		if (!is_once(row->op))
			hd_json_put_i64(w, "stage", row->stage);
		hd_json_put_i64(w, "count", (int64_t)row->n);
		put_ms(w, "predicted_ms", row->predicted_ns);
		put_ms(w, "measured_ms", row->measured_ns);
		put_ms(w, "processor_ms", row->processor_ns);
		hd_json_close(w);
	}
	hd_json_close(w);
	if (!f->nmissing)
		return;
	hd_json_open_array(w, "missing");
	for (uint32_t i = 0; i < f->nmissing; i++)
		hd_json_put_i64(w, NULL, f->missing[i]);
	hd_json_close(w);
}

static void print_one(struct hd_text *text, double predicted_ns, double measured_ns)
{
	if (measured_ns > 0 && predicted_ns > 0)
		hd_text_addf(text, " %12.4f %+7.1f %%", measured_ns * 1e-6,
			100 * (measured_ns / predicted_ns - 1));
	else
		hd_text_addf(text, " %12s %9s", "-", "");
}

static void print_ms(struct hd_text *text, double predicted_ns, double measured_ns, double processor_ns)
{
	hd_text_addf(text, " %12.4f", predicted_ns * 1e-6);
	print_one(text, predicted_ns, measured_ns);
	print_one(text, predicted_ns, processor_ns);
	hd_text_add(text, "\n");
}

void hd_forecast_print(const struct hd_forecast *f, struct hd_text *text)
{
	hd_text_addf(text, "%-6s %5s %7s %12s %12s %9s %12s\n", "op", "stage", "a step", "predicted ms",
		"measured ms", "", "processor ms");
	for (uint32_t i = 0; i < f->nrows; i++) {
		const struct hd_forecast_row *row = &f->row[i];
		hd_text_addf(text, "%-6s ", hd_ins_row(row->op)->text);
		if (is_once(row->op))
			hd_text_addf(text, "%5s", "all");
		else
			hd_text_addf(text, "%5u", row->stage);
		hd_text_addf(text, " %7llu", (unsigned long long)row->n);
		print_ms(text, row->predicted_ns, row->measured_ns, row->processor_ns);
	}
	if (f->end_ns > 0) {              /* in no instruction of its own */
		hd_text_addf(text, "%-6s %5s %7d", "end", "all", 1);
		print_ms(text, f->end_ns, 0, 0);
	}
	hd_text_addf(text, "%-6s %5s %7d", "step", "all", 1);
	print_ms(text, f->step_ns, f->measured_ns, 0);
	for (uint32_t i = 0; i < f->nmissing; i++)
		hd_text_addf(text, "%s%u", i ? ", " : "nothing was said of their times by workers: ",
			f->missing[i]);
	if (f->nmissing)
		hd_text_add(text, "\n");
}
