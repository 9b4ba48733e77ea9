#include "spot/replay.h"

#include <stdlib.h>

#include "spot/lead.h"

static const int64_t NEVER = INT64_MAX;
static const uint32_t NO_PLACE = UINT32_MAX;

enum node_is { GONE, BOOTS, READY };              /* a node that has not come yet is GONE, too */
enum doing { STANDS, MEETS, STEPS, SAVES };

struct spot_node { enum node_is is; uint32_t place; bool doubled, leaves; int64_t ready_ms; };
struct spot_notice { int64_t at_ms, ends_ms; uint32_t node; };

struct spot_sim {
	const struct hd_spot_trace *trace;
	const struct hd_spot_model *model;
	struct hd_spot_way way;
	struct spot_node *node;                   /* in the order in which they were added */
	uint32_t *holder;                         /* of each place, row by row; a node */
	uint32_t nadded, next_ready;              /* those before next_ready have booted */
	struct spot_notice *notice;               /* in the order in which they come */
	uint32_t nnotices, next_notice;
	uint32_t nleaving, nplaced_leaving;       /* ready ones that have notice; of these, with a place */
	uint32_t nboots, nready, nplaced, ndoubled, pipelines;
	enum doing doing;
	int64_t now_ms, meets_ms, until_ms;       /* what a rendezvous takes; its end, or that of the step */
	/* of the step: its begin, its undisturbed end, the pause in it, device time of the three kinds */
	int64_t base_ms, pause_from, pause_to;
	int64_t spent[3], unsaved[3];             /* unsaved: of steps since the last checkpoint */
	uint32_t nunsaved;
	bool slow, begun;
	struct hd_spot_replay out;
};

enum { PLAIN, PAUSED, SLOWED };

/* ---- paid time */

static bool put(struct spot_sim *s, enum hd_ledger_part part, int64_t ms)
{
	return hd_ledger_put(&s->out.ledger, part, ms, s->model->nano_usd_h);
}

/* How much of [from, to) lies in [a, b). */
static int64_t overlap(int64_t from, int64_t to, int64_t a, int64_t b)
{
	int64_t lo = from > a ? from : a, hi = to < b ? to : b;

	return hi > lo ? hi - lo : 0;
}

/* Every node does until `to_ms` what it does now. */
static bool pass(struct spot_sim *s, int64_t to_ms)
{
	const int64_t dt = to_ms - s->now_ms, idle = s->nready - s->nplaced;
	bool fits = put(s, HD_LEDGER_BOOT, s->nboots * dt);

	if (s->doing == MEETS)
		fits &= put(s, HD_LEDGER_REBUILD, s->nready * dt);
	else
		fits &= put(s, HD_LEDGER_WAITING, (s->doing == STANDS ? s->nready : idle) * dt);
	if (s->doing == SAVES)
		fits &= put(s, HD_LEDGER_REDUNDANT, s->nplaced * dt);
	if (s->doing == STEPS) {
		int64_t paused = overlap(s->now_ms, to_ms, s->pause_from, s->pause_to),
			slowed = overlap(s->now_ms, to_ms, s->base_ms, NEVER);
		s->spent[PAUSED] += s->nplaced * paused;
		s->spent[SLOWED] += s->nplaced * slowed;
		s->spent[PLAIN] += s->nplaced * (dt - paused - slowed);
	}
	s->now_ms = to_ms;
	return fits;
}

/* Committed, or lost. */
static bool put_spent(struct spot_sim *s, int64_t spent[3], bool committed)
{
	const int64_t plain = spent[PLAIN], redundant =
		plain / HD_SPOT_PPM * s->model->redundant_ppm +
		plain % HD_SPOT_PPM * s->model->redundant_ppm / HD_SPOT_PPM,
		bubble = plain / HD_SPOT_PPM * s->model->bubble_ppm +
		plain % HD_SPOT_PPM * s->model->bubble_ppm / HD_SPOT_PPM;
	bool fits;

	if (committed)
		fits = put(s, HD_LEDGER_USEFUL, plain - redundant - bubble) &&
			put(s, HD_LEDGER_REDUNDANT, redundant) &&
			put(s, HD_LEDGER_BUBBLE, bubble + spent[SLOWED]) &&
			put(s, HD_LEDGER_PAUSE, spent[PAUSED]);
	else
		fits = put(s, HD_LEDGER_REDO, plain + spent[PAUSED] + spent[SLOWED]);
	spent[PLAIN] = spent[PAUSED] = spent[SLOWED] = 0;
	return fits;
}

/* Losses go back to a checkpoint, so a committed step may be lost yet. */
static bool goes_back(const struct spot_sim *s)
{
	return s->way.strategy == HD_SPOT_CHECKPOINT || s->way.strategy == HD_SPOT_REROUTE ||
		s->way.strategy == HD_SPOT_REPLICA;
}

static bool commit(struct spot_sim *s)
{
	s->out.steps++;
	s->out.last_ms = s->now_ms;
	s->nunsaved++;
	if (!goes_back(s))
		return put_spent(s, s->spent, true);
	for (int k = 0; k < 3; k++) {
		s->unsaved[k] += s->spent[k];
		s->spent[k] = 0;
	}
	return true;
}

static bool go_back(struct spot_sim *s, bool held)
{
	const bool fits = put_spent(s, s->spent, false);

	if (!goes_back(s) || held)
		return fits;
	s->out.steps -= s->nunsaved;
	s->out.again += s->nunsaved;
	s->nunsaved = 0;
	return put_spent(s, s->unsaved, false) && fits;
}

/* ---- what happens */

/* ms of a step, where k more of n devices do what all did. */
static int64_t slower(const struct spot_sim *s, int64_t ms, uint32_t n, uint32_t k)
{
	return s->way.strategy == HD_SPOT_REROUTE ? ms * n / (n - k) :
		s->way.strategy == HD_SPOT_REPLICA ? ms : ms + ms / 2;
}

/* Pipelines that do no part of the work. */
static uint32_t spares_of(const struct spot_sim *s)
{
	return s->way.spares < s->pipelines ? s->way.spares : s->pipelines - 1;
}

static void begin_step(struct spot_sim *s)
{
	const int64_t ms = s->model->step_ms[s->pipelines - spares_of(s) - 1];

	if (!s->begun)
		s->out.first_ms = s->now_ms;
	s->begun = true;
	s->doing = STEPS;
	s->slow = s->ndoubled;
	s->until_ms = s->now_ms + (s->slow ? slower(s, ms, s->nplaced + s->ndoubled, s->ndoubled) : ms);
	/* a device that does a lost one's part is not idle */
	s->base_ms = s->slow && s->way.strategy != HD_SPOT_REROUTE ? s->now_ms + ms : NEVER;
	s->pause_from = s->pause_to = 0;
}

static void meet(struct spot_sim *s, int64_t ms)
{
	s->doing = MEETS;
	s->meets_ms = ms;
	s->until_ms = s->now_ms + ms;
	s->out.rendezvous++;
}

/* Of all machines; with steps to go on with they read a checkpoint, unless they hold all. */
static void meet_again(struct spot_sim *s, bool held)
{
	const bool reads = goes_back(s) && !held && s->out.steps;

	meet(s, s->model->rendezvous_ms + (reads ? s->model->reload_ms : 0));
}

/* No node has a place any more. */
static void leave_places(struct spot_sim *s)
{
	for (uint32_t k = 0; k < s->pipelines * s->model->stages; k++)
		if (s->holder[k] != NO_PLACE) {
			s->node[s->holder[k]].place = NO_PLACE;
			s->node[s->holder[k]].doubled = false;
		}
	s->nplaced = s->ndoubled = s->pipelines = s->nplaced_leaving = 0;
}

static void take_places(struct spot_sim *s)
{
	s->pipelines = hd_spot_pipelines(s->nready - s->nleaving, s->model->stages,
		s->model->npipelines + s->way.spares);
	for (uint32_t i = 0; i < s->nadded && s->nplaced < s->pipelines * s->model->stages; i++)
		if (s->node[i].is == READY && !s->node[i].leaves) {
			s->holder[s->nplaced] = i;
			s->node[i].place = s->nplaced++;
		}
}

/* The holder of the stage before in the ring of its pipeline; NO_PLACE: it was lost. */
static uint32_t ring_predecessor(const struct spot_sim *s, uint32_t place)
{
	const uint32_t stages = s->model->stages, first = place / stages * stages;

	return s->holder[first + (place - first + stages - 1) % stages];
}

static bool held_by_a_peer(const struct spot_sim *s, uint32_t place)
{
	const uint32_t stages = s->model->stages;
	bool held = false;

	for (uint32_t k = place % stages; k < s->pipelines * stages; k += stages)
		held |= s->holder[k] != NO_PLACE;
	return held;
}

/* The device before takes its part, too; one that is doubled already has lost the device after it. */
static bool is_doubled_for(struct spot_sim *s, const struct spot_node *lost, uint32_t place)
{
	const uint32_t by = ring_predecessor(s, place);

	if (lost->doubled || by == NO_PLACE)
		return false;
	s->node[by].doubled = true;
	if (!s->slow && s->doing == STEPS) {
		const int64_t left = s->until_ms - s->now_ms,
			takes = slower(s, left, 0, 0) + s->model->pause_ms;
		s->pause_from = s->now_ms;
		s->pause_to = s->now_ms + takes - left;
		s->until_ms = s->now_ms + takes;
	}
	return true;
}

/* All that are left take it. */
static bool is_shared_out(struct spot_sim *s, uint32_t place)
{
	if (!held_by_a_peer(s, place))
		return false;
	if (s->doing == STEPS) {
		s->until_ms = s->now_ms + slower(s, s->until_ms - s->now_ms, s->nplaced + 1, 1) +
			s->model->pause_ms;
		if (s->pause_to < s->now_ms)
			s->pause_from = s->pause_to = s->now_ms;
		s->pause_to += s->model->pause_ms;
	}
	return true;
}

/* Spare pipelines do what those that are hit did. */
static bool is_spared(struct spot_sim *s)
{
	const uint32_t stages = s->model->stages;
	uint32_t hit = 0;

	for (uint32_t d = 0; d < s->pipelines; d++) {
		bool whole = true;
		for (uint32_t k = d * stages; k < (d + 1) * stages; k++)
			whole &= s->holder[k] != NO_PLACE;
		hit += !whole;
	}
	if (hit > spares_of(s))
		return false;
	if (s->doing == STEPS && !s->slow) {
		s->pause_from = s->now_ms;
		s->pause_to = s->now_ms + s->model->pause_ms;
		s->until_ms += s->model->pause_ms;
	}
	return true;
}

static bool is_absorbed(struct spot_sim *s, const struct spot_node *lost, uint32_t place)
{
	switch (s->way.strategy) {
	case HD_SPOT_REROUTE: return is_shared_out(s, place);
	case HD_SPOT_REPLICA: return is_spared(s);
	case HD_SPOT_LAZY:
	case HD_SPOT_EAGER:
	case HD_SPOT_FULL: return is_doubled_for(s, lost, place);
	case HD_SPOT_CHECKPOINT:
	case HD_NSPOT_STRATEGIES: break;
	}
	return false;
}

static bool lose_placed(struct spot_sim *s, struct spot_node *lost)
{
	const uint32_t place = lost->place;


	s->holder[place] = NO_PLACE;
	s->nplaced--;
	s->nplaced_leaving -= lost->leaves;
	lost->place = NO_PLACE;
	if (is_absorbed(s, lost, place)) {
		s->ndoubled++;
		s->out.absorbed++;
		s->slow = true;
		return true;
	}
	const bool held = s->way.strategy == HD_SPOT_REPLICA && held_by_a_peer(s, place);
	bool fits = go_back(s, held);
	s->out.level2++;
	leave_places(s);
	meet_again(s, held);
	return fits;
}

static void add(struct spot_sim *s, uint32_t node)
{
	s->node[node] = (struct spot_node){ .is = BOOTS, .place = NO_PLACE,
		.ready_ms = s->now_ms + s->model->boot_ms };
	s->nadded = node + 1;
	s->nboots++;
}

static bool drop(struct spot_sim *s, uint32_t node)
{
	struct spot_node *lost = &s->node[node];
	const enum node_is was = lost->is;

	s->out.removals++;
	lost->is = GONE;
	s->nboots -= was == BOOTS;
	s->nready -= was == READY;
	s->nleaving -= was == READY && lost->leaves;
	if (was == READY && s->doing == MEETS && !lost->leaves)
		s->until_ms = s->now_ms + s->meets_ms;
	return lost->place == NO_PLACE ? true : lose_placed(s, lost);
}

static void be_ready(struct spot_sim *s)
{
	struct spot_node *node = &s->node[s->next_ready++];

	node->is = READY;
	s->nboots--;
	s->nready++;
	s->nleaving += node->leaves;
	if (s->doing == STANDS && !node->leaves)
		meet_again(s, false);
}

/* Would its loss be taken by others, as is_doubled_for() and is_shared_out() have it? */
static bool is_held(const struct spot_sim *s, const struct spot_node *node)
{
	const uint32_t stages = s->model->stages;
	uint32_t holders = 0;

	if (s->way.strategy == HD_SPOT_CHECKPOINT)
		return false;
	if (s->way.strategy != HD_SPOT_REROUTE && s->way.strategy != HD_SPOT_REPLICA)
		return !node->doubled && ring_predecessor(s, node->place) != NO_PLACE;
	for (uint32_t k = node->place % stages; k < s->pipelines * stages; k += stages)
		holders += s->holder[k] != NO_PLACE;
	return holders > 1;
}

static bool have_notice(struct spot_sim *s, const struct spot_notice *notice)
{
	struct spot_node *node = &s->node[notice->node];

	if (node->is == GONE)             /* it came and went at once */
		return true;
	node->leaves = true;
	s->nleaving += node->is == READY;
	if (node->place == NO_PLACE)
		return true;
	s->nplaced_leaving++;
	const bool held = is_held(s, node);
	const struct hd_lead_case lead = { .left_ms = notice->ends_ms - s->now_ms,
		.step_ms = s->until_ms - s->now_ms, .held = held,
		.ship_ms = held ? 0 : s->way.strategy == HD_SPOT_CHECKPOINT ? s->model->save_ms :
			s->model->local_ms };
	if (hd_lead_answer(&lead) != HD_LEAD_LOSE)
		return true;
	s->out.given_up++;
	return lose_placed(s, node);
}

static void end_rendezvous(struct spot_sim *s)
{
	take_places(s);
	if (s->pipelines)
		begin_step(s);
	else
		s->doing = STANDS;
}

static void ask_the_rules(struct spot_sim *s, bool saved)
{
	const struct hd_spot_standing standing = { .active = s->nplaced, .leaving = s->nplaced_leaving,
		.waiting = s->nready - s->nplaced - (s->nleaving - s->nplaced_leaving),
		.doubled = s->ndoubled, .pipelines = s->pipelines,
		.most = s->model->npipelines + s->way.spares,
		.stages = s->model->stages, .risk_ppm = HD_RECONFIGURE_RISK_PPM };
	enum hd_reconfigure rule = hd_reconfigure(&standing);
	const bool restarts = s->way.strategy == HD_SPOT_CHECKPOINT;

	if (restarts && !saved)
		rule = HD_RECONFIGURE_GO_ON;
	s->out.asked[rule]++;
	if (rule == HD_RECONFIGURE_GO_ON) {
		begin_step(s);
		return;
	}
	s->out.evacuated += s->nplaced_leaving;
	leave_places(s);
	if (restarts)
		meet_again(s, false);
	else
		meet(s, s->model->local_ms);
}

static bool end_step(struct spot_sim *s)
{
	bool fits = commit(s);

	const bool leaves = s->way.strategy == HD_SPOT_CHECKPOINT && s->nplaced_leaving;
	if (s->way.every && (s->nunsaved >= s->way.every || leaves)) {
		s->doing = SAVES;
		s->until_ms = s->now_ms + s->model->save_ms;
		return fits;
	}
	ask_the_rules(s, false);
	return fits;
}

static bool end_save(struct spot_sim *s)
{
	bool fits = put_spent(s, s->unsaved, true);

	s->out.saves++;
	s->nunsaved = 0;
	ask_the_rules(s, true);
	return fits;
}

/* ---- the run */

static bool play(struct spot_sim *s)
{
	const struct hd_spot_trace *t = s->trace;
	bool fits = true;

	for (size_t at = 0; fits;) {
		while (s->next_ready < s->nadded && s->node[s->next_ready].is == GONE)
			s->next_ready++;
		const int64_t comes = at < t->n ? t->at[at].at_ms : NEVER,
			ready = s->next_ready < s->nadded ? s->node[s->next_ready].ready_ms : NEVER,
			ends = s->doing == STANDS ? NEVER : s->until_ms;
		const struct spot_notice *notice = s->next_notice < s->nnotices ?
			&s->notice[s->next_notice] : NULL;
		int64_t next = comes < ready ? comes : ready;
		next = next < ends ? next : ends;
		next = notice && notice->at_ms < next ? notice->at_ms : next;
		if (next > s->model->end_ms)
			break;
		fits = pass(s, next);
		if (next == comes && t->at[at].added)
			add(s, t->at[at++].node);
		else if (next == comes)
			fits &= drop(s, t->at[at++].node);
		else if (notice && next == notice->at_ms)
			fits &= have_notice(s, &s->notice[s->next_notice++]);
		else if (next == ready)
			be_ready(s);
		else if (s->doing == MEETS)
			end_rendezvous(s);
		else
			fits &= s->doing == SAVES ? end_save(s) : end_step(s);
	}
	s->out.end_ms = s->now_ms;
	return put_spent(s, s->spent, false) && put_spent(s, s->unsaved, true) && fits;
}

static void judge(struct hd_spot_replay *out, const struct hd_spot_model *model)
{
	const double usd_h = (double)model->nano_usd_h / 1e9;

	out->on_demand = hd_spot_model_on_demand(model);
	if (out->end_ms)
		out->usd_per_h = usd_h * (double)out->paid.ms / (double)out->end_ms;
	if (out->steps) {
		out->samples_per_s = (double)out->steps * (double)model->batch * 1000 /
			(double)(out->last_ms - out->first_ms);
		out->value = out->samples_per_s * 3600 / out->usd_per_h;
		out->ratio = out->value / out->on_demand;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct spot_notice *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Of those that are removed and announced; none before its machine is there. */
static bool make_notices(struct spot_sim *s, struct hd_arena *arena)
{
	const struct hd_spot_trace *t = s->trace;
	int64_t *came = hd_arena_take(arena, (size_t)t->nnodes + 1, sizeof *came);

	s->notice = hd_arena_take(arena, (size_t)t->nnodes + 1, sizeof *s->notice);
	if (!came || !s->notice)
		return false;
	for (size_t i = 0; i < t->n && s->model->announced_ppm; i++) {
		const struct hd_spot_event *e = &t->at[i];
		const int64_t at_ms = e->at_ms - s->model->lead_ms;
		if (e->added)
			came[e->node] = e->at_ms;
		else if (hd_spot_model_announces(s->model, e->node))
			s->notice[s->nnotices++] = (struct spot_notice){ .ends_ms = e->at_ms,
				.at_ms = at_ms > came[e->node] ? at_ms : came[e->node], .node = e->node };
	}
	if (s->nnotices)
		qsort(s->notice, s->nnotices, sizeof *s->notice, by_time);
	return true;
}

enum hd_err hd_spot_replay(struct hd_spot_replay *out, const struct hd_spot_trace *trace,
	const struct hd_spot_model *model, const struct hd_spot_way *way, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_spot_trace taken;
	struct spot_sim s = { .trace = trace, .model = model, .way = *way };
	enum hd_err err = HD_OK;

	if (model->wanted) {
		err = hd_spot_trace_at_most(&taken, trace, model->wanted, arena, diag);
		s.trace = &taken;
	}
	if (err)
		return err;
	s.node = hd_arena_take(arena, (size_t)s.trace->nnodes + 1, sizeof *s.node);
	s.holder = hd_arena_take(arena, ((size_t)model->npipelines + way->spares) * model->stages,
		sizeof *s.holder);
	if (!s.node || !s.holder || !make_notices(&s, arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory to play a trace of %u machines",
			s.trace->nnodes);
	if (!play(&s) || !hd_ledger_sum(&s.out.ledger, &s.out.paid))
		return hd_fail(diag, HD_E_INPUT, "%u machines at these prices cost more than can be counted",
			s.trace->nnodes);
	judge(&s.out, model);
	*out = s.out;
	return HD_OK;
}

enum hd_err hd_spot_replay_best(struct hd_spot_replay *out, uint32_t *every, enum hd_spot_strategy strategy,
	const struct hd_spot_trace *trace, const struct hd_spot_model *model, struct hd_diag *diag)
{
	struct hd_spot_replay best = { .value = -1 };
	uint32_t best_every = 0;
	enum hd_err err = HD_OK;
	struct hd_arena own;

	hd_arena_init(&own, 0);
	for (int64_t k = 1; !err && (k == 1 || k * model->step_ms[model->npipelines - 1] <= model->end_ms);
		k += 1 + k / 8) {
		const struct hd_spot_way way = { strategy, (uint32_t)k, 0 };
		struct hd_spot_replay r;
		hd_arena_reset(&own);
		err = hd_spot_replay(&r, trace, model, &way, &own, diag);
		if (!err && r.value > best.value) {
			best = r;
			best_every = way.every;
		}
	}
	hd_arena_finish(&own);
	if (err)
		return err;
	*out = best;
	*every = best_every;
	return HD_OK;
}
