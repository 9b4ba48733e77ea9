#include <math.h>
#include <string.h>

#include "pipeline/sim/int.h"

enum { NKINDS = HD_INS_END };

static bool all_taken(void *const *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!p[i])
			return false;
	return true;
}

/* ---- producers and consumers */

/* Shadow copies take their time and make nothing. */
static struct sim_token *made_by(const struct plan_sim *x, const struct hd_ins *ins)
{
	if (ins->flags & HD_INS_SHADOW)
		return NULL;
	return ins->op == HD_INS_F ? &x->act[sim_index(x, ins->stage, ins->vn)] :
		ins->op == HD_INS_B || ins->op == HD_INS_I ? &x->grad[sim_index(x, ins->stage, ins->vn)] :
		NULL;
}

static struct sim_token *used_by(const struct plan_sim *x, const struct hd_ins *ins)
{
	if (ins->flags & HD_INS_SHADOW)
		return NULL;
	if (ins->op == HD_INS_F)
		return ins->stage ? &x->act[sim_index(x, ins->stage - 1u, ins->vn)] : NULL;
	if (ins->op == HD_INS_B || ins->op == HD_INS_I)
		return ins->stage + 1u < x->s->nstages ? &x->grad[sim_index(x, ins->stage + 1u, ins->vn)] :
			NULL;
	return NULL;
}

static enum hd_err check(struct plan_sim *x, struct hd_diag *diag)
{
	const struct hd_schedule *s = x->s;

	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (hd_ins_uses(ins->op, 'v') && (ins->vn >= s->nvns || ins->stage >= s->nstages))
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: virtual node %d of stage %u does not exist in this "
					"step (m = %u)", r, i,
					(int32_t)ins->vn, ins->stage, s->nvns);
			if (hd_ins_uses(ins->op, 's') && ins->op != HD_INS_BAR && ins->op != HD_INS_TIE &&
				ins->stage >= s->nstages)
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: stage %u does not exist (there are %u)", r, i,
					ins->stage, s->nstages);
			if ((ins->op == HD_INS_RA && ins->stage == 0) ||
				(ins->op == HD_INS_RG && ins->stage + 1u == s->nstages))
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: stage %u has nothing to receive", r, i, ins->stage);
			if (ins->op == HD_INS_RSG || ((sim_is_shadow_send(ins) || sim_is_shadow_take(ins)) &&
				ins->peer >= s->nranks))
				return hd_fail(diag, HD_E_BADPLAN,
					"rank %u, #%u: %s is of the rest of a step after a loss, or to a "
					"rank that does not exist", r, i, hd_ins_row(ins->op)->text);
			x->nsent += sim_is_shadow_send(ins);
			x->transfers |= sim_is_transfer(ins->op) && !(ins->flags & HD_INS_SHADOW);
			x->updates |= ins->op == HD_INS_STEP;
			x->pins |= ins->op == HD_INS_PIN;
			x->nins++;
		}
	if ((uint64_t)s->nstages * s->nvns > x->nins)
		return hd_fail(diag, HD_E_BADPLAN,
			"%u stages of %u virtual nodes need more than its %llu instructions", s->nstages,
			s->nvns,
			(unsigned long long)x->nins);
	return HD_OK;
}

static enum hd_err tokens(struct plan_sim *x, struct hd_diag *diag)
{
	const struct hd_schedule *s = x->s;
	size_t n = (size_t)s->nstages * s->nvns;

	x->act = hd_arena_take(x->arena, 3 * n + x->nsent + 1, sizeof *x->act);
	if (!x->act)
		return HD_E_NOMEM;
	x->grad = x->act + n;
	x->shadow = x->act + 2 * n;
	x->sent = x->act + 3 * n;
	for (size_t i = 0; i < 3 * n + x->nsent; i++)
		x->act[i] = (struct sim_token){ .there = SIM_NEVER, .handed = SIM_NEVER, .channel = SIM_NONE,
			.next = SIM_NONE, .maker = UINT16_MAX,
			.user = UINT16_MAX };
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			struct sim_token *t = made_by(x, ins);
			if (t && t->maker != UINT16_MAX)
				return hd_fail(diag, HD_E_BADPLAN,
					"%s of stage %u, virtual node %u stands twice, on ranks %u and %u",
					ins->op == HD_INS_F ? "forward" : "backward", ins->stage, ins->vn,
					t->maker, r);
			if (t)
				t->maker = (uint16_t)r;
			if ((t = used_by(x, ins)))
				t->user = (uint16_t)r;
			if (ins->op == HD_INS_F && ins->flags & HD_INS_SHADOW)
				x->shadow[sim_index(x, ins->stage, ins->vn)].maker = (uint16_t)r;
		}
	return HD_OK;
}

/* ---- what shadows are sent: the nth of a kind from one rank to another is the nth that is taken */

static enum sim_channel_kind kind_of(const struct hd_ins *ins)
{
	return ins->op == HD_INS_SHIP || ins->op == HD_INS_TAKE ? SIM_SHIPS : SIM_SHADOW_GRADS;
}

static void number_sent(struct plan_sim *x)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < x->s->nranks; r++) {
		x->rank[r].shadow.first_sent = (uint32_t)(x->sent - x->act) + n;
		for (uint32_t i = 0; i < x->s->list[r].len; i++) {
			const struct hd_ins *ins = &x->s->list[r].at[i];
			if (!sim_is_shadow_send(ins))
				continue;
			const struct hd_stage_cost *c = &x->cost[ins->stage];
			x->sent[n].maker = (uint16_t)r;
			x->sent[n].user = ins->peer;
			x->sent[n].nth = kind_of(ins);    /* until channels are numbered */
			x->sent[n++].bytes = ins->op == HD_INS_SG ? c->in : c->param /
				(x->nbuckets[ins->stage] ? x->nbuckets[ins->stage] : 1);
		}
	}
}

/* `next`: of each sender and kind, the first token that may be the receiver's. */
static bool match_taken(struct plan_sim *x)
{
	uint32_t *next = hd_arena_take(x->arena, 2 * (size_t)x->s->nranks + 1, sizeof *next);

	for (uint32_t r = 0; next && r < x->s->nranks; r++) {
		struct sim_shadow *h = &x->rank[r].shadow;
		const struct hd_ilist *list = &x->s->list[r];
		for (uint32_t i = 0; i < list->len; i++) {
			h->ntaken += sim_is_shadow_take(&list->at[i]);
			h->computes |= list->at[i].op == HD_INS_F && list->at[i].flags & HD_INS_SHADOW;
		}
		if (!(h->taken = hd_arena_take(x->arena, (size_t)h->ntaken + 1, sizeof *h->taken)))
			return false;
		for (uint32_t k = 0; h->ntaken && k < 2 * x->s->nranks; k++)
			next[k] = 0;
		h->ntaken = 0;
		for (uint32_t i = 0; i < list->len; i++) {
			const struct hd_ins *ins = &list->at[i];
			if (!sim_is_shadow_take(ins))
				continue;
			const enum sim_channel_kind kind = kind_of(ins);
			const struct sim_shadow *from = &x->rank[ins->peer].shadow;
			const uint32_t end = ins->peer + 1u < x->s->nranks ?
				x->rank[ins->peer + 1].shadow.first_sent :
				(uint32_t)(x->sent - x->act) + x->nsent;
			uint32_t *at = &next[2 * ins->peer + (kind == SIM_SHIPS)], t = from->first_sent + *at;
			while (t < end && (x->act[t].user != r || x->act[t].nth != (uint32_t)kind))
				t++;
			*at = t + (t < end) - from->first_sent;
			h->taken[h->ntaken++] = t < end ? t : SIM_NONE;
		}
		h->ntaken = 0;                    /* from here on: how many it has come to */
	}
	return next != NULL;
}

/* ---- channels: found by sender, filled in the order of sending */

static bool path(struct plan_sim *x, struct sim_channel *c)
{
	const struct hd_cluster *cluster = x->set->cluster;
	uint32_t a = x->rank[c->from].device, b = x->rank[c->to].device;

	c->latency = x->hop;
	if (!cluster || a == b) {
		c->latency = cluster ? 0 : x->hop;
		return true;
	}
	uint32_t level = hd_cluster_between(cluster, a, b);
	c->latency = sim_clip((sim_wide)cluster->level[level].latency_ps * x->links.per_ps);
	c->bytes_per_s = cluster->level[level].bytes_per_s;
	c->port[0] = hd_sim_port(&x->links, level, a, false);
	c->port[1] = hd_sim_port(&x->links, level, b, true);
	c->nports = 2;
	return true;
}

static struct sim_token *sent_by(const struct plan_sim *x, const struct hd_ins *ins)
{
	if (ins->flags & HD_INS_SHADOW)
		return NULL;
	struct sim_token *t = x->transfers ? sim_is_send(ins->op) ? sim_moved(x, ins) : NULL : made_by(x,
		ins);

	return t && t->user != UINT16_MAX && t->maker != UINT16_MAX && t->user != t->maker ? t : NULL;
}

/* Two rounds: how many there are and how much they carry; then their tokens in order. */
static bool channels(struct plan_sim *x)
{
	const struct hd_schedule *s = x->s;
	uint32_t *head = hd_arena_take(x->arena, (size_t)s->nranks + 1, sizeof *head), *next = NULL, cap = 0,
		total = 0;

	if (!head)
		return false;
	for (uint32_t r = 0; r < s->nranks; r++) {
		uint32_t sent = x->rank[r].shadow.first_sent;
		head[r] = SIM_NONE;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const bool shadows = sim_is_shadow_send(&s->list[r].at[i]);
			struct sim_token *t = shadows ? &x->act[sent++] : sent_by(x, &s->list[r].at[i]);
			if (!t || t->channel != SIM_NONE)
				continue;
			uint32_t c = head[r];
			const enum sim_channel_kind kind = shadows ? kind_of(&s->list[r].at[i]) :
				sim_is_act(x, t) ? SIM_ACTS : SIM_GRADS;
			while (c != SIM_NONE && (x->channel[c].to != t->user || x->channel[c].kind != kind))
				c = next[c];
			if (c == SIM_NONE) {
				if (x->nchannels == cap) {
					uint32_t more = cap ? 2 * cap : 16,
						*links = hd_arena_take(x->arena, more, sizeof *links);
					struct sim_channel *all = hd_arena_take(x->arena, more, sizeof *all);
					if (!links || !all)
						return false;
					if (cap) {
						memcpy(links, next, cap * sizeof *links);
						memcpy(all, x->channel, cap * sizeof *all);
					}
					next = links;
					x->channel = all;
					cap = more;
				}
				c = x->nchannels++;
				x->channel[c] = (struct sim_channel){ .from = r, .to = t->user,
					.head = SIM_NONE, .tail = SIM_NONE, .kind = (uint8_t)kind };
				next[c] = head[r];
				head[r] = c;
			}
			t->channel = c;
			t->nth = x->channel[c].total++;
			total++;
		}
	}
	x->order = hd_arena_take(x->arena, (size_t)total + 1, sizeof *x->order);
	if (!x->order)
		return false;
	for (uint32_t c = 0, at = 0; c < x->nchannels; c++) {
		x->channel[c].first = at;
		at += x->channel[c].total;
	}
	for (size_t i = 0; i < 3 * (size_t)s->nstages * s->nvns + x->nsent; i++)
		if (x->act[i].channel != SIM_NONE)
			x->order[x->channel[x->act[i].channel].first + x->act[i].nth] = (uint32_t)i;
	return true;
}

/* ---- collectives */

/* of an (op, number): the first; the last that `rank` has come to */
struct met { uint32_t first, now, rank; };

static bool collectives(struct plan_sim *x)
{
	const struct hd_schedule *s = x->s;
	uint32_t total = 0, stages = 1, buckets = 1, at = 0;

	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t i = 0; i < s->list[r].len; i++)
			if (sim_is_collective(s->list[r].at[i].op)) {
				x->rank[r].ncollectives++;
				total++;
				stages = s->list[r].at[i].stage >= stages ? s->list[r].at[i].stage + 1u :
					stages;
				buckets = s->list[r].at[i].slot >= buckets ? s->list[r].at[i].slot + 1u :
					buckets;
			}
	size_t numbers = (size_t)stages * buckets;
	struct met *met = total ? hd_arena_take(x->arena, numbers * NKINDS, sizeof *met) : NULL;
	x->nbuckets = hd_arena_take(x->arena, (size_t)s->nstages + 1, sizeof *x->nbuckets);
	uint32_t *next = hd_arena_take(x->arena, (size_t)total + 1, sizeof *next);
	x->collective = hd_arena_take(x->arena, (size_t)total + 1, sizeof *x->collective);
	x->member = hd_arena_take(x->arena, (size_t)total + 1, sizeof *x->member);
	if ((total && !met) || !x->nbuckets || !next || !x->collective || !x->member)
		return false;
	for (size_t k = 0; total && k < numbers * NKINDS; k++)
		met[k] = (struct met){ SIM_NONE, SIM_NONE, SIM_NONE };
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct sim_rank *rank = &x->rank[r];
		rank->collective = hd_arena_take(x->arena, (size_t)rank->ncollectives + 1,
			sizeof *rank->collective);
		rank->lane = hd_arena_take(x->arena, (size_t)rank->ncollectives + 1, sizeof *rank->lane);
		if (!rank->collective || !rank->lane)
			return false;
		rank->ncollectives = 0;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (!sim_is_collective(ins->op))
				continue;
			struct met *m = &met[ins->op * numbers + (size_t)ins->stage * buckets + ins->slot];
			uint32_t *link = m->rank == r ? &next[m->now] : &m->first;
			if (*link == SIM_NONE) {
				uint32_t nth = m->rank == r ? x->collective[m->now].nth + 1 : 0;
				*link = x->ncollectives++;
				next[*link] = SIM_NONE;
				x->collective[*link] = (struct sim_collective){ .op = ins->op,
					.stage = ins->stage, .bucket = ins->slot, .nth = nth };
				if (ins->op == HD_INS_RED && ins->slot > x->nbuckets[ins->stage])
					x->nbuckets[ins->stage] = ins->slot;
			}
			m->now = *link;
			m->rank = r;
			x->collective[m->now].nmembers++;
			rank->collective[rank->ncollectives++] = m->now;
		}
	}
	for (uint32_t k = 0; k < s->nstages; k++)
		x->nbuckets[k] = x->nbuckets[k] ? x->nbuckets[k] : 1;
	for (uint32_t c = 0; c < x->ncollectives; c++) {
		x->collective[c].first = at;
		at += x->collective[c].nmembers;
		x->collective[c].nmembers = 0;
	}
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t k = 0; k < x->rank[r].ncollectives; k++) {
			struct sim_collective *c = &x->collective[x->rank[r].collective[k]];
			x->member[c->first + c->nmembers++] = (uint16_t)r;
		}
	return true;
}

static uint32_t log2_up(uint32_t n)
{
	uint32_t h = 0;

	while (UINT32_C(1) << h < n)
		h++;
	return h;
}

/* The ring of the members in the order of their devices: its slowest level carries it, over a port out and
 * a port in of each component. */
static bool route(struct plan_sim *x, struct sim_collective *c)
{
	const struct hd_cluster *cluster = x->set->cluster;
	uint32_t n = c->nmembers, far = 0, slow = 0;

	if (n < 2)
		return true;
	if (!cluster) {
		c->latency = 2 * (int64_t)log2_up(n) * x->hop;
		return true;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t a = x->rank[x->member[c->first + k]].device,
			b = x->rank[x->member[c->first + (k + 1) % n]].device;
		uint32_t level = a == b ? 0 : hd_cluster_between(cluster, a, b);
		far = level > far ? level : far;
		slow = cluster->level[level].bytes_per_s < cluster->level[slow].bytes_per_s ||
			(k == 0 && a != b) ? level : slow;
	}
	c->level = slow;
	c->latency = sim_clip((sim_wide)cluster->level[far].latency_ps * 2 * log2_up(n) * x->links.per_ps);
	c->port = hd_arena_take(x->arena, 2 * (size_t)n, sizeof *c->port);
	if (!c->port)
		return false;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t out = hd_sim_port(&x->links, slow, x->rank[x->member[c->first + k]].device, false),
			seen = 0;
		while (seen < c->nports && c->port[seen] != out)
			seen++;
		if (seen == c->nports) {
			c->port[c->nports++] = out;
			c->port[c->nports++] = out + 1;
		}
	}
	return true;
}

/* ---- what ranks hold */

/* Nodes of all levels of a tree over n leaves (memory.c walks them). */
static uint32_t nodes_of(uint32_t n)
{
	uint32_t all = n;

	for (; n > 1; all += n)
		n = (n + 1) / 2;
	return all;
}

/* Weights and optimizer state of what the rank updates as a shadow. */
static void hold_shadow(const struct plan_sim *x, struct sim_rank *r)
{
	uint32_t last = SIM_NONE;

	for (uint32_t i = 0; i < r->list->len; i++) {
		const struct hd_ins *ins = &r->list->at[i];
		if (ins->op != HD_INS_STEP || !(ins->flags & HD_INS_SHADOW) || ins->stage == last)
			continue;
		last = ins->stage;
		const int64_t bytes = x->cost[last].param + x->cost[last].opt;
		if (r->shadow.computes)
			r->bytes[HD_MEMORY_SHADOWS] += bytes;
		else
			hd_sim_host_add(r, bytes);
	}
}

static bool holdings(struct plan_sim *x)
{
	const struct hd_schedule *s = x->s;
	uint32_t *stamp = hd_arena_take(x->arena, s->nstages, sizeof *stamp);

	x->span = hd_arena_take(x->arena, s->nstages, sizeof *x->span);
	x->node = hd_arena_take(x->arena, s->nstages, sizeof *x->node);
	if (!stamp || !x->span || !x->node)
		return false;
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct sim_rank *rank = &x->rank[r];
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			bool holds = (hd_ins_uses(ins->op, 's') && ins->op != HD_INS_BAR &&
				ins->op != HD_INS_TIE && ins->op != HD_INS_LD && !hd_ins_redundant(ins));
			if (!holds || stamp[ins->stage] == r + 1)
				continue;
			stamp[ins->stage] = r + 1;
			rank->nheld++;
		}
		if (!(rank->held = hd_arena_take(x->arena, (size_t)rank->nheld + 1, sizeof *rank->held)))
			return false;
		for (uint32_t k = 0, n = 0; k < s->nstages; k++)
			if (stamp[k] == r + 1)
				rank->held[n++] = (struct sim_held){ .stage = (uint16_t)k, .red = SIM_NONE,
					.window = SIM_NONE };
	}
	for (uint32_t k = 0; k < s->nstages; k++) {
		x->span[k] = nodes_of(x->rule[k].every);
		if (!(x->node[k] = hd_arena_take(x->arena, (size_t)(s->nvns / x->rule[k].every + 1) *
			x->span[k], sizeof **x->node)))
			return false;
	}
	for (uint32_t r = 0; r < s->nranks; r++) {
		struct sim_rank *rank = &x->rank[r];
		for (uint32_t k = 0; k < rank->nheld; k++) {
			const struct hd_stage_cost *c = &x->cost[rank->held[k].stage];
			rank->bytes[HD_MEMORY_WEIGHTS] += c->param;
			rank->bytes[HD_MEMORY_OPTIMIZER] += c->opt;
			if (c->work > rank->bytes[HD_MEMORY_WORKSPACE])
				rank->bytes[HD_MEMORY_WORKSPACE] = c->work;
			if (!x->pins)
				rank->bytes[HD_MEMORY_VERSIONS] += x->rule[rank->held[k].stage].delay *
					c->param;
		}
		hold_shadow(x, rank);
		for (int k = 0; k < HD_NMEMORIES; k++)
			rank->total += rank->bytes[k];
	}
	return true;
}

/* Receive buffers that are open from the start. */
static void open_slots(struct plan_sim *x)
{
	if (!x->transfers || x->transport != HD_TRANSPORT_BUFFERED)
		return;
	for (uint32_t c = 0; c < x->nchannels; c++)
		for (uint32_t k = 0; x->channel[c].kind <= SIM_GRADS && k < x->credits &&
			k < x->channel[c].total; k++) {
			struct sim_rank *to = &x->rank[x->channel[c].to];
			int64_t bytes = sim_bytes(x, &x->act[x->order[x->channel[c].first + k]]);
			to->bytes[HD_MEMORY_SLOTS] += bytes;
			to->total += bytes;
		}
}

static enum hd_err ranks(struct plan_sim *x, struct hd_diag *diag)
{
	const struct hd_cluster *cluster = x->set->cluster;
	uint32_t p = x->s->nranks;

	x->rank = hd_arena_take(x->arena, (size_t)p + 1, sizeof *x->rank);
	x->ready = hd_arena_take(x->arena, (size_t)p + 1, sizeof *x->ready);
	void *const got[] = { x->rank, x->ready };
	if (!all_taken(got, 2))
		return HD_E_NOMEM;
	for (uint32_t r = 0; r < p; r++) {
		uint32_t device = x->set->device ? x->set->device[r] : r;
		if (cluster && device >= cluster->ndevices)
			return hd_fail(diag, HD_E_INVAL, "rank %u is on device %u; the cluster has %u", r,
				device, cluster->ndevices);
		x->rank[r] = (struct sim_rank){ .list = &x->s->list[r], .number = r, .device = device,
			.tie = SIM_NONE, .waits_collective = SIM_NONE,
			.speed = (cluster ? hd_cluster_kind_of(cluster, device)->speed : 1) * (x->set->speed ?
			x->set->speed[r] : 1) };
		if (!(x->rank[r].speed > 0))
			return hd_fail(diag, HD_E_INVAL, "rank %u has speed %g; it is above 0", r,
				x->rank[r].speed);
	}
	return HD_OK;
}

enum hd_err hd_sim_build(struct plan_sim *x, struct hd_diag *diag)
{
	enum hd_err err = check(x, diag);

	err = err ? err : ranks(x, diag);
	err = err ? err : tokens(x, diag);
	if (!err && !collectives(x))
		err = HD_E_NOMEM;
	if (!err)
		number_sent(x);
	if (!err && (!match_taken(x) || !channels(x) || !holdings(x) ||
	    !hd_sim_links_make(&x->links, x->set->cluster, x->nchannels + x->ncollectives, x->arena)))
		err = HD_E_NOMEM;
	for (uint32_t c = 0; c < x->nchannels && !err; c++)
		err = path(x, &x->channel[c]) ? HD_OK : HD_E_NOMEM;
	for (uint32_t c = 0; c < x->ncollectives && !err; c++)
		err = route(x, &x->collective[c]) ? HD_OK : HD_E_NOMEM;
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "no memory to simulate %llu instructions",
			(unsigned long long)x->nins);
	if (!err)
		open_slots(x);
	return err;
}
