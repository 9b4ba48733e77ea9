#include "protocol/simulation_worker.h"

#include <string.h>

/* What comes in from another worker: for now, for later, or for none. */

/* The rules of the wire: nothing of an earlier epoch; what is of a later one, or of a step not begun,
 * waits. */
static int admit(const struct sim_proc *p, const struct sim_packet *k)
{
	if (k->kind == SIM_SNAP || k->kind == SIM_OVER || k->kind == SIM_WANT || k->kind == SIM_ASK_SLOT ||
		k->kind == SIM_SLOT)
		return 1;
	if (k->kind == SIM_SEND)
		return k->epoch <= p->epoch || k->epoch == p->decided;
	if (k->epoch < p->epoch)
		return -1;
	uint64_t at = hd_member_at(p->m);
	if (k->epoch > p->epoch || k->step > at)
		return 0;
	if (k->step < at)
		return -1;
	return p->posted && p->posted_epoch == k->epoch && p->posted_step == k->step;
}

static void take_message(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k,
	struct hd_member_event *ev)
{
	struct hd_msg msg;

	hd_arena_reset(&s->scratch);
	if (hd_msg_decode(&msg, k->msg_kind, k->bytes, k->len, &s->scratch, NULL)) {
		sim_bad(s, "message", "%s cannot be read", hd_msg_name((enum hd_msg_kind)k->msg_kind));
		return;
	}
	sim_hear(s, &s->proc[slot].heard, &msg);
	ev->kind = HD_IN_MESSAGE;
	ev->msg = &msg;
	ev->worker = from_slot == SIM_CO ? HD_COORDINATOR : k->from;
	sim_member(s, slot, ev);
}

static void take_root(struct sim_proc *p, const struct sim_packet *k)
{
	if (p->nroots >= SIM_ROOTS * SIM_BUCKETS)
		return;
	p->root[p->nroots].worker = k->from;
	p->root[p->nroots].ordinal = k->ordinal;
	p->root[p->nroots].bucket = k->bucket;
	p->root[p->nroots++].val = k->val;
}

static void take_sum(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];

	sim_check_sum(s, p, k->step, k->bucket, k->val);
	p->sum[k->bucket] = k->val;
	p->sum_here[k->bucket] = true;
	p->own_roots[k->bucket] = false;
	sim_after(s, slot, TASK_SQUARED, sim_ms(s, 0, 5), false,
		(struct sim_world_event){ .step = k->step, .bucket = k->bucket });
}

static void take_leaves(struct sim_world *s, struct sim_proc *p, const struct sim_packet *k)
{
	if (!sim_is_tag(s, k->val.tag, k->step))
		sim_bad(s, "once", "table entries of another state from %u", k->from);
	p->table[k->bucket] += k->val.units;
}

static void take_ratio(struct sim_world *s, struct sim_proc *p, const struct sim_packet *k)
{
	if (!sim_is_tag(s, k->val.tag, k->step))
		sim_bad(s, "ratios", "worker %u is sent squares of another state by %u", p->id, k->from);
	p->ratio_here[k->bucket] = true;
}

static void take_parm(struct sim_world *s, struct sim_proc *p, const struct sim_packet *k)
{
	if (hd_exchange_chained(hd_member_exchange(p->m), k->bucket))
		sim_bad(s, "slots", "worker %u is sent bucket %u, which it makes", p->id, k->bucket);
	p->parm_here[k->bucket] = true;
	p->own_roots[k->bucket] = false;
}

/* What is of a step, the member hears of; what is of state, the world brings on by itself. */
static void take(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_member_event ev = { .epoch = k->epoch, .worker = k->from, .step = k->step, .pass = k->pass,
		.ordinal = k->ordinal, .bucket = k->bucket };

	switch (k->kind) {
	case SIM_SEND:   take_message(s, slot, from_slot, k, &ev); return;
	case SIM_ROOT:   take_root(p, k);         ev.kind = HD_IN_ROOT; break;
	case SIM_SUM:    take_sum(s, slot, k);    ev.kind = HD_IN_SUM; break;
	case SIM_LEAVES: take_leaves(s, p, k);    ev.kind = HD_IN_LEAVES; break;
	case SIM_TABLE:  p->table_full = true;    ev.kind = HD_IN_TABLE; break;
	case SIM_NORM:   p->norm_here[k->bucket] = true; ev.kind = HD_IN_NORM; break;
	case SIM_RATIO:  take_ratio(s, p, k);     ev.kind = HD_IN_RATIO; break;
	case SIM_PARM:   take_parm(s, p, k);      ev.kind = HD_IN_PARM; break;
	case SIM_ASK_SLOT: sim_give_slot(s, slot, k); return;
	case SIM_SLOT:   sim_take_slot(s, slot, k); return;
	case SIM_SNAP:   sim_snap(s, slot, from_slot, k); return;
	case SIM_OVER:   sim_over(s, slot, k); return;
	case SIM_WANT:
		p->asked[from_slot] = k->transfer;
		sim_after(s, slot, TASK_FEED, 0, true, (struct sim_world_event){ .step = 0 });
		return;
	}
	sim_member(s, slot, &ev);
	if (k->kind == SIM_SUM || k->kind == SIM_LEAVES)
		sim_may_early(s, slot);
}

void sim_release_waiting(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t gen = p->gen;

	for (uint32_t i = 0; i < p->nwaiting && p->alive && p->gen == gen; ) {
		const struct sim_packet *k = p->waiting[i];
		int go = admit(p, k);
		if (!go) {
			i++;
			continue;
		}
		memmove(p->waiting + i, p->waiting + i + 1, (--p->nwaiting - i) * sizeof *p->waiting);
		uint32_t from = sim_slot(s, k->from);
		if (go > 0 && (from >= SIM_PROCS || sim_up(s, slot, from)))
			take(s, slot, from, k);
		i = 0;                                            /* it may have changed what is waited for */
	}
}

void sim_packet_in(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];

	if (!p->alive || !p->m)
		return;
	int go = from_slot == SIM_CO ? 1 : admit(p, k);
	if (go > 0)
		take(s, slot, from_slot, k);
	else if (go == 0 && p->nwaiting < SIM_WAITING)
		p->waiting[p->nwaiting++] = k;
	else if (go == 0)
		sim_bad(s, "memory", "worker %u holds back more than %d packets", p->id, SIM_WAITING);
}

void sim_peer_up(struct sim_world *s, uint32_t slot, uint32_t other)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from == s->proc[other].id && hd_member_state(p->m) == HD_SYNCING && !p->has_state)
		sim_want(s, slot);
}

/* What waits from a peer whose link closed is gone with it; so is a source's stream, until it is
 * requested again. */
void sim_peer_lost(struct sim_world *s, uint32_t slot, uint32_t worker)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->nwaiting; i++)
		if (p->waiting[i]->from != worker)
			p->waiting[kept++] = p->waiting[i];
	p->nwaiting = kept;
	if (p->m && p->synced_from == worker && hd_member_state(p->m) == HD_SYNCING) {
		p->synced_from = HD_NOBODY - 1;
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNC_LOST,
			.whole = p->has_state });
	}
}
