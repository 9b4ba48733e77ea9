/* The execution: a rank goes on until something is missing, and is looked at again when that has come. What
 * takes time ends by an entry of the queue; everything of one time happens before time goes on. */
#include <math.h>
#include <string.h>

#include "pipeline/sim/int.h"

enum { TAX_PARTS = 65536 };

/* Whatever begins comes by here: an end beyond LONGEST ends the simulation. What others slow down on its
 * way is seen when it ends. */
static bool lasts(struct plan_sim *x, int64_t from, sim_wide ticks, const char *advice)
{
	if (!x->beyond && from + ticks > SIM_LONGEST)
		x->beyond = advice;
	return !x->beyond;
}

static const char faster_links[] = "raise bytes_per_s or lower latency_ns of the cluster's levels";
static const char cheaper_work[] = "lower the costs, or raise the devices' speed";

static void wake(struct plan_sim *x, uint32_t r)
{
	if (!x->rank[r].computes && !x->rank[r].ended)
		hd_sim_queue_put(&x->queue, (struct queue_event){ x->now, SIM_RANK, r, x->rank[r].serial });
}

/* ---- compute, slowed by transfers (rule 5) and by others on the same cores (rule 8) */

static bool is_taxed(const struct plan_sim *x, const struct sim_rank *r)
{
	return r->nflows && x->set->costs->comm_tax > 1;
}

static bool is_crowded(const struct plan_sim *x, uint32_t ncomputing)
{
	return x->set->cores && ncomputing > x->set->cores;
}

/* Time that `work` takes as things are; and the work that is done in a time. */
static sim_wide stretched(const struct plan_sim *x, const struct sim_rank *r, sim_wide work)
{
	if (is_taxed(x, r))
		work = work * llround(x->set->costs->comm_tax * TAX_PARTS) / TAX_PARTS;
	return is_crowded(x, x->ncomputing) ? (work * x->ncomputing + x->set->cores - 1) / x->set->cores :
		work;
}

static sim_wide done_in(const struct plan_sim *x, const struct sim_rank *r, sim_wide took)
{
	if (is_crowded(x, x->ncomputing))
		took = took * x->set->cores / x->ncomputing;
	return is_taxed(x, r) ? took * TAX_PARTS / llround(x->set->costs->comm_tax * TAX_PARTS) : took;
}

static void plan_end(struct plan_sim *x, struct sim_rank *r)
{
	r->since = x->now;
	hd_sim_queue_put(&x->queue, (struct queue_event){ sim_clip(x->now + stretched(x, r, r->left)),
		SIM_RANK, r->number, ++r->serial });
}

/* What is done so far is counted, before the pace changes. */
static void settle(struct plan_sim *x, struct sim_rank *r)
{
	r->left -= (int64_t)done_in(x, r, x->now - r->since);
	r->left = r->left > 0 ? r->left : 0;
	r->since = x->now;
}

/* A transfer of the rank begins or ends. */
static void touch(struct plan_sim *x, uint32_t rank, int change)
{
	struct sim_rank *r = &x->rank[rank];
	bool changes = r->computes && x->set->costs->comm_tax > 1 &&
		(r->nflows > 0) != (r->nflows + (uint32_t)change > 0);

	if (changes)
		settle(x, r);
	r->nflows += (uint32_t)change;
	if (changes)
		plan_end(x, r);
}

/* One rank more, or one less, computes: the others' pace changes where cores are fewer. */
static void crowd(struct plan_sim *x, int change)
{
	uint32_t n = x->ncomputing + (uint32_t)change;
	bool changes = is_crowded(x, x->ncomputing) || is_crowded(x, n);

	for (uint32_t r = 0; changes && r < x->s->nranks; r++)
		if (x->rank[r].computes)
			settle(x, &x->rank[r]);
	x->ncomputing = n;
	for (uint32_t r = 0; changes && r < x->s->nranks; r++)
		if (x->rank[r].computes)
			plan_end(x, &x->rank[r]);
}

/* ---- transfers */

static void arrive(struct plan_sim *x, struct sim_token *t, int64_t at)
{
	struct sim_rank *to = &x->rank[t->user], *from = &x->rank[t->maker];

	t->there = at;
	if (!to->computes && to->waits == t)
		hd_sim_queue_put(&x->queue, (struct queue_event){ at, SIM_RANK, to->number, to->serial });
	if (!from->computes && from->waits == t)
		hd_sim_queue_put(&x->queue, (struct queue_event){ at, SIM_RANK, from->number, from->serial });
}

static void pump(struct plan_sim *x, uint32_t channel)
{
	struct sim_channel *c = &x->channel[channel];

	while (!c->busy && c->head != SIM_NONE) {
		struct sim_token *t = &x->act[c->head];
		int64_t bytes = sim_bytes(x, t), alone = c->nports ? hd_sim_alone(c->bytes_per_s, bytes,
			x->links.per_ps) : 0;
		if (!lasts(x, x->now, (sim_wide)alone + c->latency, faster_links))
			return;
		if (alone > 0) {
			c->busy = true;
			hd_sim_flow_begin(&x->links, channel, alone, bytes, c->port, c->nports, x->now);
			touch(x, c->from, 1);
			touch(x, c->to, 1);
			return;
		}
		c->head = t->next;
		arrive(x, t, x->now + c->latency);
	}
}

static void hand_over(struct plan_sim *x, struct sim_token *t)
{
	struct sim_channel *c = &x->channel[t->channel];
	uint32_t number = (uint32_t)(t - x->act);

	t->handed = x->now;
	if (c->head == SIM_NONE)
		c->head = number;
	else
		x->act[c->tail].next = number;
	c->tail = number;
	if (!x->transfers || x->transport == HD_TRANSPORT_EAGER || t >= x->sent)
		hd_sim_memory_add(x, &x->rank[c->to], HD_MEMORY_SLOTS, sim_bytes(x, t));
	pump(x, t->channel);
}

static void flow_ends(struct plan_sim *x, uint32_t channel)
{
	struct sim_channel *c = &x->channel[channel];
	struct sim_token *t = &x->act[c->head];

	hd_sim_flow_end(&x->links, channel, x->now);
	touch(x, c->from, -1);
	touch(x, c->to, -1);
	c->busy = false;
	c->head = t->next;
	arrive(x, t, x->now + c->latency);
	pump(x, channel);
}

/* ---- collectives */

static sim_wide cost_of(struct plan_sim *x, const struct sim_rank *r, const struct hd_ins *ins);

static void collective_over(struct plan_sim *x, struct sim_collective *c)
{
	hd_sim_queue_put(&x->queue, (struct queue_event){ x->now + c->latency, SIM_COLLECTIVE_ENDS,
		(uint32_t)(c - x->collective), 0 });
}

/* Rule 4: what goes over the link, and the time beside it. */
static void size_up(const struct plan_sim *x, struct sim_collective *c)
{
	const struct hd_stage_costs *costs = x->set->costs;
	const struct hd_cluster *cluster = x->set->cluster;
	int64_t n = c->nmembers, weights = 0;

	if (c->op == HD_INS_RED) {
		weights = x->cost[c->stage].param / x->nbuckets[c->stage];
		c->latency = sim_clip(c->latency + (sim_wide)(x->cost[c->stage].add / x->nbuckets[c->stage]) *
			(n - 1) / n * c->npartials);
	} else if (c->op == HD_INS_TIE && c->stage < costs->ntied) {
		weights = costs->tied[c->stage].param;
		c->npartials = 1;
	}
	c->bytes = sim_clip((sim_wide)weights * (n - 1) * (c->npartials + 1) / n);
	c->ticks = c->nports ? hd_sim_alone(cluster->level[c->level].bytes_per_s, c->bytes, x->links.per_ps) :
		0;
}

static void begin_collective(struct plan_sim *x, uint32_t number)
{
	struct sim_collective *c = &x->collective[number];

	c->start = x->now;
	size_up(x, c);
	if (!lasts(x, x->now, (sim_wide)c->ticks + c->latency,
		c->ticks > c->latency ? faster_links : cheaper_work))
		return;
	if (c->ticks == 0) {
		collective_over(x, c);
		return;
	}
	hd_sim_flow_begin(&x->links, x->nchannels + number, c->ticks, c->bytes, c->port, c->nports, x->now);
	for (uint32_t k = 0; k < c->nmembers; k++)
		touch(x, x->member[c->first + k], 1);
}

/* `rank` has come to it, or it stood behind another one that has ended (NONE). */
static void is_head(struct plan_sim *x, uint32_t number, uint32_t rank, uint32_t after)
{
	struct sim_collective *c = &x->collective[number];

	if (++c->nheads < c->nmembers)
		return;
	c->last = rank;
	c->after = after;
	begin_collective(x, number);
}

/* The rank has come to its next collective: it stands in the rank's lane. */
static uint32_t issue(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	uint32_t number = r->collective[r->next_collective++];
	struct sim_collective *c = &x->collective[number];

	if (ins->op == HD_INS_RED) {
		struct sim_held *h = hd_sim_held(r, ins->stage);
		h->nsent += h->npartials;
		h->npartials = 0;
		h->npending++;
		h->red = number;
		c->npartials = h->nsent > c->npartials ? h->nsent : c->npartials;
	} else if (ins->op == HD_INS_TIE) {
		r->tie = number;
	} else if (ins->op == HD_INS_FL || ins->op == HD_INS_BL) {
		int64_t took = sim_clip(cost_of(x, r, ins));
		c->latency = took > c->latency ? took : c->latency;
	}
	c->step = r->step;
	r->lane[r->nlane++] = number;
	if (r->nlane - r->at_lane == 1)
		is_head(x, number, r->number, SIM_NONE);
	return number;
}

static void collective_ends(struct plan_sim *x, uint32_t number)
{
	struct sim_collective *c = &x->collective[number];

	c->done = true;
	c->end = x->now;
	for (uint32_t k = 0; k < c->nmembers; k++) {
		struct sim_rank *r = &x->rank[x->member[c->first + k]];
		if (c->op == HD_INS_RED)
			hd_sim_memory_end(x, r, &(struct hd_ins){ .op = c->op, .stage = c->stage });
		if (++r->at_lane < r->nlane)
			is_head(x, r->lane[r->at_lane], r->number, number);
		wake(x, r->number);
	}
	if (x->step_end[c->step] < x->now)
		x->step_end[c->step] = x->now;
}

static void collective_moved(struct plan_sim *x, uint32_t number)
{
	struct sim_collective *c = &x->collective[number];

	hd_sim_flow_end(&x->links, x->nchannels + number, x->now);
	for (uint32_t k = 0; k < c->nmembers; k++)
		touch(x, x->member[c->first + k], -1);
	collective_over(x, c);
}

/* ---- what an instruction waits for: true, it can begin */

static bool is_there(const struct plan_sim *x, struct sim_rank *r, const struct sim_token *t)
{
	if (t->there <= x->now)
		return true;
	r->why = SIM_WHY_TOKEN;
	r->waits = t;
	return false;
}

static bool is_done(const struct plan_sim *x, struct sim_rank *r, uint32_t collective)
{
	if (collective == SIM_NONE || x->collective[collective].done)
		return true;
	r->why = SIM_WHY_COLLECTIVE;
	r->waits_collective = collective;
	return false;
}

/* No ON is under way. */
static bool is_on_device(struct plan_sim *x, struct sim_rank *r, const struct sim_token *t)
{
	if (t->host <= x->now)
		return true;
	r->why = SIM_WHY_TOKEN;
	r->waits = NULL;
	hd_sim_queue_put(&x->queue, (struct queue_event){ t->host, SIM_RANK, r->number, r->serial });
	return false;
}

static bool computed(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	size_t i = sim_index(x, ins->stage, ins->vn);

	if (ins->flags & HD_INS_SHADOW)
		return is_on_device(x, r, sim_saved(x, ins));
	if (ins->op == HD_INS_F)
		return ins->stage == 0 || is_there(x, r, &x->act[i - x->s->nvns]);
	if (ins->op == HD_INS_B || ins->op == HD_INS_I) {
		if (!x->act[i].made && !is_there(x, r, &x->act[i]))
			return false;
		if (ins->stage + 1u < x->s->nstages && !is_there(x, r, &x->grad[i + x->s->nvns]))
			return false;
	}
	if (ins->op == HD_INS_W && !x->grad[i].made)
		return is_there(x, r, &x->grad[i]);
	return is_on_device(x, r, &x->act[i]);
}

static bool has_credit(const struct plan_sim *x, struct sim_rank *r, const struct sim_token *t)
{
	if (x->transport != HD_TRANSPORT_BUFFERED || t->nth - x->channel[t->channel].used < x->credits)
		return true;
	r->why = SIM_WHY_CREDIT;
	r->waits = t;
	return false;
}

/* Both sides have to stand at it; the second to come starts it. */
static void stand_at(struct plan_sim *x, const struct hd_ins *ins)
{
	struct sim_token *t = sim_moved(x, ins);

	if (t->channel == SIM_NONE)
		return;
	if (!sim_is_send(ins->op))
		hd_sim_memory_add(x, &x->rank[t->user], HD_MEMORY_SLOTS, sim_bytes(x, t));
	t->sides |= sim_is_send(ins->op) ? 1 : 2;
	if (t->sides == 3)
		hand_over(x, t);
}

static bool transferred(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins, uint32_t n)
{
	if (x->transport == HD_TRANSPORT_EAGER || x->transport == HD_TRANSPORT_BUFFERED) {
		struct sim_token *t = sim_moved(x, ins);
		return t->channel == SIM_NONE || (sim_is_send(ins->op) ? has_credit(x, r, t) : is_there(x, r,
			t));
	}
	if (!r->posted) {
		r->posted = true;
		for (uint32_t k = 0; k < n; k++)
			stand_at(x, &ins[k]);
	}
	for (uint32_t k = 0; k < n; k++) {
		struct sim_token *t = sim_moved(x, &ins[k]);
		if (t->channel != SIM_NONE && !is_there(x, r, t))
			return false;
	}
	return true;
}

static bool blocks(const struct plan_sim *x, uint8_t op)
{
	return (op != HD_INS_RED && op != HD_INS_TIE) || (x->transport == HD_TRANSPORT_RENDEZVOUS &&
		x->transfers);
}

static bool met(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	if (!r->posted)
		r->waits_collective = issue(x, r, ins);
	r->posted = true;
	return !blocks(x, ins->op) || is_done(x, r, r->waits_collective);
}

/* Rule 9. */
static bool shadow_can_begin(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	const struct sim_held *held = ins->op == HD_INS_SHIP ? hd_sim_held(r, ins->stage) : NULL;

	if (sim_is_shadow_take(ins)) {
		uint32_t t = r->shadow.taken[r->shadow.ntaken];
		if (t != SIM_NONE)
			return is_there(x, r, &x->act[t]);
		r->why = SIM_WHY_TOKEN;
		r->waits = NULL;
		return false;
	}
	return !held || (is_done(x, r, held->red) && is_done(x, r, r->tie));
}

static bool can_begin(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins, uint32_t n)
{
	if (sim_is_shadow_send(ins) || sim_is_shadow_take(ins) ||
		(ins->op == HD_INS_STEP && ins->flags & HD_INS_SHADOW))
		return shadow_can_begin(x, r, ins);
	if (sim_is_transfer(ins->op))
		return transferred(x, r, ins, n);
	if (sim_is_collective(ins->op))
		return met(x, r, ins);
	if (ins->op == HD_INS_STEP)
		return is_done(x, r, hd_sim_held(r, ins->stage)->red) && is_done(x, r, r->tie);
	if (ins->op == HD_INS_LD || ins->op == HD_INS_OFF || ins->op == HD_INS_ON)
		return true;
	for (uint32_t k = 0; k < n; k++)
		if (hd_ins_uses(ins[k].op, 'v') && !computed(x, r, &ins[k]))
			return false;
	return true;
}

/* ---- time */

static sim_wide part_of(struct plan_sim *x, const struct sim_rank *r, uint32_t part, int64_t p50,
	const struct hd_spread *of)
{
	int64_t t = x->set->noise && of->mean ? hd_sim_draw(x->set->seed, r->step, r->number, r->at, part,
		of) : p50;

	double slowed = (double)t / r->speed;

	return r->speed == 1 ? t : slowed < 0x1p62 ? llround(slowed) : INT64_MAX;
}

/* How many virtual nodes a lockstep instruction runs: those that the rank loaded. */
static int64_t loaded(const struct sim_rank *r)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < r->list->len; i++)
		n += r->list->at[i].op == HD_INS_LD;
	return n;
}

static int64_t offloaded(const struct plan_sim *x, const struct sim_token *t)
{
	const struct hd_stage_cost *c = &x->cost[(size_t)(t - (t < x->shadow ? x->act : x->shadow)) /
		x->s->nvns];

	return t->kept ? c->kept : c->saved;
}

static int64_t host_takes(const struct plan_sim *x, const struct sim_token *t)
{
	return x->set->host_bytes_per_s > 0 ? hd_sim_alone(x->set->host_bytes_per_s, offloaded(x, t),
		x->links.per_ps) : 0;
}

static sim_wide cost_of(struct plan_sim *x, const struct sim_rank *r, const struct hd_ins *ins)
{
	const struct hd_stage_cost *c = ins->stage < x->s->nstages ? &x->cost[ins->stage] : NULL;

	switch (ins->op) {
	case HD_INS_F:
		return part_of(x, r, 0, c->f, &c->of_f);
	case HD_INS_B:
		return part_of(x, r, 1, c->i, &c->of_i) + part_of(x, r, 2, c->w, &c->of_w);
	case HD_INS_I:
		return part_of(x, r, 1, c->i, &c->of_i);
	case HD_INS_W:
		return part_of(x, r, 2, c->w, &c->of_w);
	case HD_INS_R:
		return part_of(x, r, 3, c->r, &(struct hd_spread){ 0, 0 });
	case HD_INS_STEP:
		return part_of(x, r, 4, c->step, &(struct hd_spread){ 0, 0 });
	case HD_INS_FL:
		return loaded(r) * part_of(x, r, 0, c->f, &c->of_f);
	case HD_INS_BL:
		return loaded(r) * (part_of(x, r, 1, c->i, &c->of_i) + part_of(x, r, 2, c->w, &c->of_w));
	case HD_INS_OFF: case HD_INS_ON:
		return x->set->host_waits ? host_takes(x, sim_saved(x, ins)) : 0;
	default:
		return 0;
	}
}

/* What the rank stood at last. */
static struct hd_sim_wait waited_for(const struct sim_rank *r)
{
	const struct sim_token *t = r->waits;
	struct hd_sim_wait w = { .at = r->at, .rank = HD_NO_RANK, .meeting = HD_NO_MEETING,
		.since = SIM_NEVER };

	if (r->why == SIM_WHY_COLLECTIVE) {
		w.meeting = r->waits_collective;
	} else if (t) {
		w.rank = r->why == SIM_WHY_CREDIT || t->maker == r->number ? t->user : t->maker;
		w.since = t->handed;
	}
	return w;
}

static void note(struct plan_sim *x, struct sim_rank *r, int64_t start, int64_t end, enum hd_idle_why why)
{
	struct hd_sim_waits *w = r->wait;

	r->out->idle[why] += end - start;
	if (!w || start == end)
		return;
	if (w->n == w->cap) {
		uint32_t cap = w->cap ? 2 * w->cap : 16;
		struct hd_sim_wait *at = hd_arena_take(x->arena, cap, sizeof *at);
		if (!at) {
			x->queue.full = true;
			return;
		}
		if (w->n)
			memcpy(at, w->at, w->n * sizeof *at);
		w->at = at;
		w->cap = cap;
	}
	struct hd_sim_wait *one = &w->at[w->n++];
	*one = waited_for(r);
	one->start = start;
	one->end = end;
	one->why = why;
}

/* Why the rank stood still since it was free. */
static void account(struct plan_sim *x, struct sim_rank *r, bool works)
{
	if (r->out->busy == 0 && works)
		r->out->first = x->now;
	if (x->now == r->free)
		return;
	if (r->out->busy == 0 || r->why == SIM_WHY_CREDIT) {
		note(x, r, r->free, x->now, r->out->busy ? HD_IDLE_CREDIT : HD_IDLE_WARM_UP);
		return;
	}
	int64_t from = x->now;
	if (r->why == SIM_WHY_TOKEN)
		from = r->waits ? r->waits->handed : r->free;
	else if (r->why == SIM_WHY_COLLECTIVE)
		from = x->collective[r->waits_collective].start;
	from = from > r->free ? from : r->free;
	from = from < x->now ? from : x->now;
	note(x, r, r->free, from, HD_IDLE_DEPENDENCY);
	note(x, r, from, x->now, HD_IDLE_TRANSFER);
}

/* All members work from the last one's coming on, and go on with the slowest. */
static void account_lockstep(struct plan_sim *x, struct sim_rank *r, int64_t own)
{
	const struct sim_collective *c = &x->collective[r->waits_collective];

	if (r->out->busy == 0)
		r->out->first = c->start;
	note(x, r, r->free, c->start, r->out->busy ? HD_IDLE_DEPENDENCY : HD_IDLE_WARM_UP);
	note(x, r, c->start + own, x->now, HD_IDLE_DEPENDENCY);
	r->out->busy += own;
}

/* ---- offloading: a lane each way, beside compute; an ON that has to wait for its OFF has its room
 * already. Where the rank waits, all of it is over */

static enum hd_memory_kind kind_of(const struct plan_sim *x, const struct sim_token *t)
{
	return t < x->shadow ? HD_MEMORY_ACTIVATIONS : HD_MEMORY_SHADOWS;
}

/* Bytes that stay on the host until STEP. */
static void keep(struct sim_rank *r, int64_t bytes)
{
	r->shadow.kept += bytes;
	hd_sim_host_add(r, bytes);
}

static void move_host(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_token *t = sim_saved(x, ins);
	bool on = ins->op == HD_INS_ON;
	int64_t bytes = offloaded(x, t);
	int64_t takes = x->set->host_waits ? 0 : host_takes(x, t);
	int64_t begin = r->host_free[on] > x->now ? r->host_free[on] : x->now;

	begin = on && t->host > begin ? t->host : begin;
	if (!lasts(x, begin, takes, "raise the bytes per second between device and host"))
		return;
	r->host_free[on] = t->host = begin + takes;
	if (on) {
		t->live += bytes;
		hd_sim_memory_add(x, r, kind_of(x, t), bytes);
	} else {
		hd_sim_queue_put(&x->queue, (struct queue_event){ t->host, SIM_ON_HOST,
			(uint32_t)(t - x->act),
			0 });
	}
}

static void on_host(struct plan_sim *x, uint32_t token)
{
	struct sim_token *t = &x->act[token];
	int64_t bytes = offloaded(x, t);

	t->live -= bytes;
	hd_sim_memory_add(x, &x->rank[t->maker], kind_of(x, t), -bytes);
	if (t >= x->shadow)
		keep(&x->rank[t->maker], bytes);
}

/* ---- one instruction, a pair, or a group of transfers */

static uint32_t extent(const struct plan_sim *x, const struct sim_rank *r)
{
	const struct hd_ins *ins = &r->list->at[r->at];
	uint32_t n = 1;

	if (ins->flags & HD_INS_PAIR_BEGIN && r->at + 1 < r->list->len)
		return 2;
	if (!sim_is_transfer(ins->op) || ins->flags & HD_INS_SHADOW || x->transport != HD_TRANSPORT_GROUPED)
		return 1;
	while (r->at + n < r->list->len && sim_is_transfer(ins[n].op) && !(ins[n].flags & HD_INS_SHADOW))
		n++;
	return n;
}

static void made(struct plan_sim *x, struct sim_rank *r, struct sim_token *t)
{
	t->made = true;
	if (t->channel != SIM_NONE) {
		if (!x->transfers)
			hand_over(x, t);
	} else if (t->user == UINT16_MAX || t->user == r->number) {
		t->there = x->now;
		t->handed = x->now;
	}
}

static void finish_shadow(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_shadow *h = &r->shadow;

	if (sim_is_shadow_send(ins))
		hand_over(x, &x->act[h->first_sent + h->nsent++]);
	else if (sim_is_shadow_take(ins))
		h->arrived[ins->op == HD_INS_TAKE] += sim_bytes(x, &x->act[h->taken[h->ntaken++]]);
}

static void finish(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	if (hd_ins_redundant(ins))
		finish_shadow(x, r, ins);
	else if (ins->flags & HD_INS_KEEP)
		keep(r, sim_bytes(x, sim_moved(x, ins)));
	if (!hd_ins_redundant(ins) && sim_is_send(ins->op) && (x->transport == HD_TRANSPORT_EAGER ||
		x->transport == HD_TRANSPORT_BUFFERED) && sim_moved(x, ins)->channel != SIM_NONE)
		hand_over(x, sim_moved(x, ins));
	if (ins->op == HD_INS_OFF || ins->op == HD_INS_ON)
		move_host(x, r, ins);
	if (ins->op != HD_INS_RED)
		hd_sim_memory_end(x, r, ins);
	if (!(ins->flags & HD_INS_SHADOW) && (ins->op == HD_INS_F || ins->op == HD_INS_B ||
		ins->op == HD_INS_I)) {
		bool f = ins->op == HD_INS_F;
		uint32_t from = f ? ins->stage - 1u : ins->stage + 1u;
		struct sim_token *in = (f && ins->stage == 0) ||
			(!f && from == x->s->nstages) ? NULL : (f ? x->act : x->grad) + sim_index(x, from,
			ins->vn);
		if (in && in->channel != SIM_NONE && x->transport == HD_TRANSPORT_BUFFERED)
			wake(x, in->maker);
		made(x, r, (f ? x->act : x->grad) + sim_index(x, ins->stage, ins->vn));
	}
	if (hd_ins_uses(ins->op, 'v'))
		r->step = ins->vn / x->step_vns;
	if (x->step_end[r->step] < x->now)
		x->step_end[r->step] = x->now;
}

static void end(struct plan_sim *x, struct sim_rank *r)
{
	uint32_t n = extent(x, r);

	if (r->computes) {
		r->computes = false;
		crowd(x, -1);
	}
	r->out->busy += x->now - r->began;
	r->out->last = x->now;
	r->free = x->now;
	for (uint32_t k = 0; k < n; k++) {
		const struct hd_ins *ins = &r->list->at[r->at + k];
		if (r->span)
			r->span[r->at + k] = (struct hd_sim_span){ r->began, x->now };
		finish(x, r, ins);
	}
	r->at += n;
	r->posted = false;
	r->why = SIM_WHY_NOTHING;
	r->waits = NULL;
}

static sim_wide paired(sim_wide takes, double ovl)
{
	double both = (double)takes * ovl;

	return both < 0x1p62 ? llround(both) : INT64_MAX;
}

/* Begins what the rank stands at, as far as nothing takes time. */
static void go_on(struct plan_sim *x, struct sim_rank *r)
{
	while (r->at < r->list->len && !x->beyond) {
		const struct hd_ins *ins = &r->list->at[r->at];
		uint32_t n = extent(x, r);
		sim_wide takes = 0;

		if (!can_begin(x, r, ins, n)) {
			if (r->why == SIM_WHY_TOKEN && r->waits && r->waits->there != SIM_NEVER)
				hd_sim_queue_put(&x->queue,
					(struct queue_event){ r->waits->there, SIM_RANK, r->number,
					r->serial });
			return;
		}
		bool lockstep = ins->op == HD_INS_FL || ins->op == HD_INS_BL;
		for (uint32_t k = 0; k < n && !lockstep; k++)
			takes += cost_of(x, r, &ins[k]);
		if (n == 2 && ins->flags & HD_INS_PAIR_BEGIN && x->set->costs->ovl != 1)
			takes = paired(takes, x->set->costs->ovl);
		if (!lasts(x, x->now, takes, cheaper_work))
			return;
		if (lockstep)
			account_lockstep(x, r, (int64_t)cost_of(x, r, ins));
		else
			account(x, r, takes > 0);
		for (uint32_t k = 0; k < n; k++)
			hd_sim_memory_begin(x, r, &ins[k]);
		r->began = x->now;
		if (takes == 0) {
			end(x, r);
			continue;
		}
		crowd(x, 1);
		r->computes = true;
		r->left = (int64_t)takes;
		plan_end(x, r);
		return;
	}
	r->ended = !x->beyond;
}

void hd_sim_run(struct plan_sim *x)
{
	struct queue_event e;

	for (uint32_t r = 0; r < x->s->nranks; r++)
		go_on(x, &x->rank[r]);
	while (!x->beyond && !x->queue.full && !x->links.full && hd_sim_queue_take(&x->queue, &e)) {
		struct sim_rank *r = &x->rank[e.kind == SIM_RANK ? e.number : 0];
		if (e.kind == SIM_RANK && (e.serial != r->serial || r->ended))
			continue;
		if (e.kind == SIM_FLOW_ENDS && (e.serial != x->links.flow[e.number].serial ||
			!x->links.flow[e.number].share))
			continue;
		if (!lasts(x, e.at, 0, faster_links))
			break;
		x->now = e.at;
		switch ((enum sim_event_kind)e.kind) {
		case SIM_FLOW_ENDS:
			if (e.number < x->nchannels)
				flow_ends(x, e.number);
			else
				collective_moved(x, e.number - x->nchannels);
			break;
		case SIM_COLLECTIVE_ENDS:
			collective_ends(x, e.number);
			break;
		case SIM_ON_HOST:
			on_host(x, e.number);
			break;
		case SIM_RANK:
			if (r->computes)
				end(x, r);
			go_on(x, r);
			break;
		}
	}
	for (uint32_t r = 0; r < x->s->nranks; r++)
		hd_sim_memory_settle(x, &x->rank[r]);
}
