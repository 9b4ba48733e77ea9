#include "protocol/simulation_worker.h"

#include <string.h>

/* A worker's state on its way: to a joiner, from a source, and the slots that holders keep for others. */

/* As in the runtime: at a boundary, and for the rest of that transfer. */
static bool gives_up(struct sim_world *s, struct sim_proc *p, uint32_t to)
{
	if (!s->gives_up_in || !p->asked[to] || s->now > s->quiet_ns || sim_rnd(s, s->gives_up_in))
		return false;
	sim_say(s, "worker %u aborts the transfer to worker %u", p->id, s->proc[to].id);
	p->over[to] = p->asked[to];
	return true;
}

/* As in the runtime, a joiner that became a member makes its own steps. */
void sim_feed(struct sim_world *s, uint32_t slot, bool boundary)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);

	for (uint32_t i = 0; i < p->nsource_for; i++) {
		uint32_t to = sim_slot(s, p->source_for[i]);
		if (to >= SIM_PROCS || (view && hd_view_has(view, p->source_for[i])) ||
			(p->over[to] && p->over[to] == p->asked[to]))
			continue;
		enum sim_kind kind = boundary && gives_up(s, p, to) ? SIM_OVER : SIM_SNAP;
		sim_send(s, slot, to, &(struct sim_packet){ .kind = kind, .from = p->id, .step = p->version,
			.transfer = p->asked[to], .val = { 0, p->tag } });
	}
}

void sim_send_state_standing(struct sim_world *s, uint32_t slot)
{
	if (hd_member_holds(s->proc[slot].m))
		sim_feed(s, slot, false);
}

void sim_send_part(struct sim_world *s, uint32_t slot, const struct hd_member_action *a,
	enum sim_kind kind)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);

	s->result->ratios += kind == SIM_RATIO;
	if (!(kind == SIM_NORM ? p->squared : kind == SIM_RATIO ? p->measured : p->parm_here)[a->bucket])
		sim_bad(s, "slots", "worker %u sends of bucket %u of step %llu what it has not", p->id,
			a->bucket, (unsigned long long)a->step);
	for (uint32_t i = 0; i < view->nmembers; i++) {
		const uint32_t to = sim_slot(s, view->member[i]);
		if (!(a->mask >> i & 1))
			continue;
		/* the first bytes may come of what never comes as a whole */
		if (kind == SIM_PARM && to < SIM_PROCS && s->proc[to].epoch == p->epoch &&
			s->proc[to].version == a->step)
			s->proc[to].own_roots[a->bucket] = false;
		sim_send(s, slot, to, &(struct sim_packet){ .kind = kind, .epoch = p->epoch, .from = p->id,
			.bucket = a->bucket, .step = a->step, .val = { s->full, sim_tag(s, a->step) } });
	}
}

static void ask_slots(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t worker[HD_MAX_MEMBERS];

	for (uint32_t b = 0; p->alive && p->m && b < s->nbuckets; b++) {
		uint32_t n = p->want >> b & 1 ? hd_member_holders(p->m, b, worker) : 0;
		for (uint32_t i = 0; i < n; i++)
			if (worker[i] != p->id)
				sim_send(s, slot, sim_slot(s, worker[i]),
					&(struct sim_packet){ .kind = SIM_ASK_SLOT, .from = p->id,
					.bucket = b,
					.step = p->want_step });
	}
}

void sim_want_slots(struct sim_world *s, uint32_t slot, uint64_t step, bool all, bool read)
{
	struct sim_proc *p = &s->proc[slot];

	p->want = 0;
	p->want_step = step;
	p->want_epoch = p->epoch;
	p->saving = all;
	p->bad_saved = 0;
	for (uint32_t b = 0; b < s->nbuckets; b++)
		if ((all || hd_exchange_chained(hd_member_exchange(p->m), b)) &&
			(!read || hd_exchange_reads(hd_member_exchange(p->m), b)) &&
			!hd_member_has_slots(p->m, b)) {
			p->want |= 1u << b;
			s->result->fetches++;
		}
	ask_slots(s, slot);
}

void sim_give_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t to = sim_slot(s, k->from);

	if (hd_member_at(p->m) != k->step || !hd_member_has_slots(p->m, k->bucket) || to >= SIM_PROCS)
		return;
	if (p->slot[k->bucket] != k->step + 1)
		sim_bad(s, "slots", "worker %u is to have those of X_%llu of bucket %u, and has of %llu",
			p->id, (unsigned long long)k->step, k->bucket,
			(unsigned long long)p->slot[k->bucket]);
	/* it flipped since it was sealed, and is saved by another: that is not looked at */
	s->escaped |= p->bad[k->bucket] != p->bad_said[k->bucket];
	sim_send(s, slot, to, &(struct sim_packet){ .kind = SIM_SLOT, .from = p->id, .bucket = k->bucket,
		.step = k->step, .val = { 0, p->bad[k->bucket] } });
}

void sim_take_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot], *from = &s->proc[sim_slot(s, k->from) % SIM_PROCS];

	if (!(p->want >> k->bucket & 1) || p->want_step != k->step)
		return;
	/* it is read while it is sent */
	if (from->alive && from->id == k->from && from->epoch == p->epoch &&
		from->slot[k->bucket] != k->step + 1)
		sim_bad(s, "slots", "worker %u changes bucket %u of X_%llu while %u gets it", k->from,
			k->bucket, (unsigned long long)k->step, p->id);
	p->want &= ~(1u << k->bucket);
	if (p->saving)
		p->bad_saved |= k->val.tag;
	if (!p->saving) {
		p->bad[k->bucket] = k->val.tag;
		p->slot[k->bucket] = k->step + 1;
		p->slot_ns[k->bucket] = s->now;
	}
	if (p->want)
		return;
	if (p->saving)
		sim_saved(s, slot);
	else
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FETCHED, .step = p->want_step,
			.epoch = p->want_epoch });
}

void sim_saved(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];
	const struct sim_world_event ev = p->save;
	bool writer = ev.pass, last = ev.bucket;

	const bool flipped = p->bad_at == ev.step && memcmp(p->bad, p->bad_said, sizeof p->bad);
	if (writer && (last || ev.step % 5 == 0) && p->known_tag && (p->tag != p->known_tag || flipped)) {
		sim_say(s, "worker %u is to save another state than it sealed", p->id);
		sim_end(s, slot, true);
		return;
	}
	if (writer && (last || ev.step % 5 == 0) && ev.step > s->ckpt) {
		s->ckpt = ev.step;
		uint64_t bad = p->bad_saved;
		for (uint32_t b = 0; b < s->nbuckets; b++)
			bad |= p->bad[b];
		s->saved_tag[ev.step] = p->tag ^ bad;
	}
	sim_feed(s, slot, true);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_READY, .step = ev.step, .halt = writer &&
		ev.step == s->halt_at });
}

void sim_send_state(struct sim_world *s, struct sim_proc *p, uint32_t slot, uint32_t joiner, bool on)
{
	uint32_t i = 0;

	while (i < p->nsource_for && p->source_for[i] != joiner)
		i++;
	if (!on) {
		if (i < p->nsource_for)
			p->source_for[i] = p->source_for[--p->nsource_for];
		return;
	}
	if (i == SIM_PROCS)
		/* of a coordinator before */
		memmove(p->source_for, p->source_for + 1, --i * sizeof *p->source_for);
	p->source_for[i] = joiner;
	p->nsource_for = i < p->nsource_for ? p->nsource_for : i + 1;
	if (!sim_up(s, slot, sim_slot(s, joiner)))
		return;
	sim_after(s, slot, TASK_FEED, 0, true, (struct sim_world_event){ .step = 0 });
}

/* A joiner asks its source when SYNC comes and when they connect; the source then starts over. */
void sim_want(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];

	sim_send(s, slot, sim_slot(s, p->synced_from), &(struct sim_packet){ .kind = SIM_WANT, .from = p->id,
		.transfer = p->transfer });
}

void sim_sync(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];

	p->has_state = p->saving = false;
	/* as in the runtime: the state comes from elsewhere */
	p->want = 0;
	p->synced_from = a->worker;
	p->transfer = ++s->transfers;
	if (a->worker == HD_NOBODY && p->remote)
		sim_bad(s, "remote", "worker %u is to load X_%llu, and cannot reach the disk", p->id,
			(unsigned long long)a->step);
	if (a->worker == HD_NOBODY)
		sim_after(s, slot, TASK_LOADED, sim_ms(s, 5, 300), true,
			(struct sim_world_event){ .step = a->step });
	else
		sim_want(s, slot);
}

/* Of the requested stream, in order. What is further on is of a source that started over: in the runtime
 * the numbers of chunks show it, and the source closes the link. */
void sim_snap(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from != k->from || p->transfer != k->transfer || hd_member_state(p->m) != HD_SYNCING ||
		(p->has_state && k->step <= p->version))
		return;
	if (p->has_state && k->step > p->version + 1) {
		sim_say(s, "worker %u misses X_%llu", p->id, (unsigned long long)p->version + 1);
		sim_close(s, from_slot, slot, false);
		return;
	}
	p->has_state = true;
	memset(p->slot, 0, sizeof p->slot);
	memset(p->bad, 0, sizeof p->bad);
	p->version = k->step;
	p->tag = p->known_tag = k->val.tag;
	if (!sim_is_tag(s, p->tag, p->version))
		sim_bad(s, "state", "joiner %u has another X_%llu", p->id, (unsigned long long)p->version);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = p->version });
}

/* The piece that says so may change the state, for all that the runtime knows when it comes: it is not
 * whole. */
void sim_over(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from != k->from || p->transfer != k->transfer || hd_member_state(p->m) != HD_SYNCING)
		return;
	p->synced_from = HD_NOBODY - 1;
	s->result->unheard += !p->unheard;
	p->unheard = true;
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNC_LOST, .slow = true });
}

/* Now and then, as the runtime does: what is still wanted. */
void sim_ask_again(struct sim_world *s, uint32_t slot)
{
	const struct sim_proc *p = &s->proc[slot];

	if (p->alive && p->m && sim_partial(s) && p->synced_from < HD_NOBODY - 1 &&
		hd_member_state(p->m) == HD_SYNCING && !p->has_state)
		sim_want(s, slot);
	ask_slots(s, slot);
}
