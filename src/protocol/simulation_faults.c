/* What befalls the processes of a simulated job, and their links. */
#include <string.h>

#include "protocol/simulation_int.h"

static uint32_t any_worker(struct sim_world *s)
{
	uint32_t from = (uint32_t)sim_rnd(s, SIM_PROCS);

	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (s->proc[(from + i) % SIM_PROCS].alive)
			return (from + i) % SIM_PROCS;
	return SIM_PROCS;
}

/* Nothing of `from` reaches `to` for a while: heard as silence after T, closed after 8 T, or late. */
static void mute(struct sim_world *s, uint32_t from, uint32_t to, int64_t length)
{
	struct sim_link *l = sim_link_of(s, from, to);
	uint32_t dir = from > to;

	if (s->now + length > l->mute_until[dir])
		l->mute_until[dir] = s->now + length;
	if (!l->up)
		return;
	if (length > SIM_T)
		sim_report_lost(s, to, from, s->now + SIM_T, HD_SILENT, l->life);
	if (length > 8 * SIM_T)
		sim_push(s, (struct sim_world_event){ .at = s->now + 8 * SIM_T, .kind = EV_CLOSE, .end = to,
			.other = from, .link = l->life });
	else if (length > SIM_T)
		sim_report_lost(s, to, from, s->now + length + 2 * SIM_MS, HD_HEARD, l->life);
}

static void pause_worker(struct sim_world *s, uint32_t slot, int64_t length)
{
	struct sim_proc *p = &s->proc[slot];
	int64_t from = p->paused_until > s->now ? p->paused_until : s->now, more = s->now + length - from;

	sim_say(s, "worker %u stands still for %.3f s", p->id, (double)length / 1e9);
	p->paused = true;
	if (more > 0) {
		p->busy_until = (p->busy_until > s->now ? p->busy_until : s->now) + more;
		p->paused_until = from + more;
	}
	for (uint32_t i = 0; i < SIM_ENDS; i++)
		if (i != slot && sim_link_of(s, slot, i)->up)
			mute(s, slot, i, length);
}

void sim_scale_again(struct sim_world *s) { sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE,
	.n = s->target }); }

/* When its machine goes; 0: that is not known. */
static int64_t goes_in(struct sim_world *s, uint32_t slot)
{
	if (!(s->seed & HD_SIM_LATE) || sim_rnd(s, 4) == 0)
		return 0;
	const int64_t left_ns = sim_between(s, SIM_T, 16 * SIM_T);
	sim_push(s, (struct sim_world_event){ .at = s->now + left_ns, .kind = EV_GOES, .end = slot,
		.gen = s->proc[slot].gen });
	s->quiet_ns = s->now + left_ns > s->quiet_ns ? s->now + left_ns : s->quiet_ns;
	return left_ns;
}

void sim_goes(struct sim_world *s, uint32_t slot)
{
	s->result->went++;
	s->result->overstayed += hd_member_view(s->proc[slot].m) != NULL;
	sim_kill_worker(s, slot);
}

void sim_fault(struct sim_world *s, enum hd_sim_fault kind)
{
	/* ms, around the limits T and 8 T */
	static const int64_t lengths[] = { 20, 200, 700, 1300, 3000, 9500 };
	uint32_t slot = any_worker(s), other = any_worker(s);
	int64_t length = lengths[sim_rnd(s, 6)] * SIM_MS + sim_between(s, 0, 100 * SIM_MS);
	uint32_t to = sim_rnd(s, 4) ? other : SIM_CO;

	if (slot == SIM_PROCS)
		return;
	sim_say(s, "fault %s at process %u", hd_sim_fault_name(kind), slot);
	switch (kind) {
	case HD_SIM_CRASH:    sim_kill_worker(s, slot); break;
	case HD_SIM_PAUSE:    pause_worker(s, slot, length); break;
	case HD_SIM_CUT:      sim_close(s, slot, to, false); break;
	case HD_SIM_MUTE:
		if (slot != to)
			mute(s, slot, to, length);
		break;
	case HD_SIM_ISLAND:
		for (uint32_t i = 0; i < SIM_ENDS; i++)
			if (i != slot) {
				mute(s, slot, i, length);
				mute(s, i, slot, length);
			}
		break;
	case HD_SIM_CO_CRASH: sim_co_kill(s); break;
	case HD_SIM_STORE:    s->store_bad_until = s->now + length; break;
	case HD_SIM_SLOW:     s->slow_until = s->now + length; break;
	case HD_SIM_SCALE:
		s->target = s->min + (uint32_t)sim_rnd(s, s->max - s->min + 1);
		s->scaled = true;
		sim_scale_again(s);
		break;
	case HD_SIM_DRAIN:
		if (s->proc[slot].paused)
			break;
		s->drained = true;
		if (hd_member_view(s->proc[slot].m) && !s->proc[slot].drained_at)
			s->proc[slot].drained_at = hd_member_at(s->proc[slot].m) + 1;
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_DRAIN, .code = 75,
			.text = "a notice", .left_ns = goes_in(s, slot) });
		break;
	case HD_SIM_JOIN:     sim_come(s, true); break;
	case HD_SIM_HALT:
		if (sim_rnd(s, 4))
			break;
		s->asked_to_halt |= s->co != NULL;
		sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_HALT, .code = 75, .text = "asked" });
		break;
	case HD_SIM_NFAULTS:  break;
	}
}

void sim_replace(struct sim_world *s, bool really)
{
	uint32_t slot = any_worker(s);

	if (slot == SIM_PROCS)
		return;
	sim_say(s, "worker %u is %s", s->proc[slot].id, really ? "to be replaced" : "to stay");
	s->result->being_replaced += really && s->co;
	sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_REPLACE, .worker = s->proc[slot].id,
		.ok = really });
}

/* Of some bucket of the step at hand it alone has the sum, and no worker has the norm. */
static bool has_summed(const struct sim_world *s, const struct sim_proc *p)
{
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		bool alone = p->sum_here[b] && hd_member_exchange(p->m)->step == p->version;
		for (uint32_t i = 0; i < SIM_PROCS && alone; i++) {
			const struct sim_proc *q = &s->proc[i];
			alone = q == p || !q->alive || q->version != p->version ||
				(!q->sum_here[b] && !q->norm_here[b]);
		}
		if (alone)
			return true;
	}
	return false;
}

/* Before the last step is committed: those that leave at the end take the state with them. */
void sim_die(struct sim_world *s, uint32_t end)
{
	if (!s->dies_in || s->committed >= s->nsteps || --s->dies_in)
		return;
	s->result->died++;
	if (end == SIM_CO) {
		sim_co_kill(s);
		return;
	}
	s->result->died_saving += s->proc[end].saving;
	s->result->died_summed += has_summed(s, &s->proc[end]);
	if (sim_loses_zone(s))
		sim_kill_zone(s, s->proc[end].zone);
	else
		sim_kill_worker(s, end);
}

/* What went out may have come in part: those that get it need their own partial sums no more. */
void sim_unchain(struct sim_world *s, uint32_t slot, uint32_t bucket)
{
	const struct hd_exchange *x = hd_member_exchange(s->proc[slot].m);
	const struct hd_view *view = hd_member_view(s->proc[slot].m);
	uint32_t end[HD_MAX_MEMBERS], n = 0;

	if (!s->unchains_in || !hd_exchange_parm_to(x, bucket) ||
		hd_exchange_parm_source(x, bucket) != x->me || --s->unchains_in)
		return;
	for (uint32_t i = 0; i < view->nmembers; i++)
		if (x->chain[bucket] >> i & 1)
			end[n++] = sim_slot(s, view->member[i]);
	s->result->unchained++;
	s->quiet_ns = s->now > s->quiet_ns ? s->now : s->quiet_ns;
	for (uint32_t i = 0; i < n; i++)
		if (end[i] < SIM_PROCS && s->proc[end[i]].alive)
			sim_kill_worker(s, end[i]);
}

void sim_check_covered(struct sim_world *s)
{
	const struct hd_sim_result *r = s->result;

	if (r->rolled || r->given_up)
		sim_bad(s, "covered", "steps are given up, and each stage has a holder");
	/* a skipped step in which others had updated ends its epoch, without any death */
	if (r->again > r->died + r->vain)
		sim_bad(s, "covered", "%u steps were begun again", r->again);
}

/* Stored before it is said. */
void sim_reshape(struct sim_world *s, uint32_t schedule, uint32_t pipes)
{
	s->shape = s->shapes[schedule].shape;
	s->pipes = pipes;
	s->result->reshaped += s->co != NULL;
	sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_RESHAPE, .shape = &s->shape, .n = pipes,
		.least = sim_least(s) });
}

/* A bucket of what it holds. */
static bool corrupt_held(struct sim_world *s, struct sim_proc *p)
{
	const uint32_t first = (uint32_t)sim_rnd(s, s->nbuckets);

	for (uint32_t i = 0; i < s->nbuckets; i++) {
		const uint32_t b = (first + i) % s->nbuckets;
		if (p->slot[b]) {
			sim_say(s, "it is in bucket %u", b);
			p->bad[b] ^= 2;
			s->bad_from = p->version;
			return true;
		}
	}
	return false;
}

/* Mostly where a majority can decide. */
void sim_corrupt(struct sim_world *s)
{
	const struct hd_view *view = s->co ? hd_coordinator_view(s->co) : NULL;
	uint32_t slot = view ? sim_slot(s, view->member[sim_rnd(s, view->nmembers)]) : SIM_ENDS;
	const bool held = sim_partial(s) && !s->copies;

	if (slot >= SIM_PROCS || !s->proc[slot].has_state || (view->nmembers < 3 && sim_rnd(s, 4)))
		return;
	sim_say(s, "bits of the state of worker %u flip", s->proc[slot].id);
	if (held && !corrupt_held(s, &s->proc[slot]))
		return;
	s->proc[slot].tag ^= held ? 0 : 2;
	s->spoiled = true;
	s->result->corrupted++;
}

/* ---- links that flap ---- */

void sim_unheed(struct sim_world *s, uint32_t slot, int64_t until_ns)
{
	struct sim_link *l = sim_link_of(s, slot, SIM_CO);

	sim_close(s, slot, SIM_CO, false);
	for (int dir = 0; dir < 2; dir++)
		l->mute_until[dir] = until_ns > l->mute_until[dir] ? until_ns : l->mute_until[dir];
	s->result->unheeded++;
}

/* The far end reports silence, and takes it back soon: mostly while its link to the coordinator is down. */
void sim_flap(struct sim_world *s)
{
	uint32_t from = any_worker(s), to = any_worker(s);
	int64_t length = SIM_T + sim_between(s, 50 * SIM_MS, 500 * SIM_MS), ends_ns = s->now + length;

	if (from == to || from == SIM_PROCS || !sim_up(s, from, to))
		return;
	sim_say(s, "link of worker %u to %u is silent for %.3f s", s->proc[from].id, s->proc[to].id,
		(double)length / 1e9);
	mute(s, from, to, length);
	s->result->flapped++;
	if (sim_rnd(s, 4))
		sim_push(s, (struct sim_world_event){ .at = ends_ns - sim_between(s, 1, 30 * SIM_MS),
			.kind = EV_UNHEED, .end = to, .gen = s->proc[to].gen,
			.number = (uint64_t)(ends_ns + sim_between(s, 5 * SIM_MS, 60 * SIM_MS)) });
}

/* Nothing of it can have been late for T/3. */
static bool is_clear(struct sim_world *s, uint32_t a, uint32_t b)
{
	const struct sim_link *l = sim_link_of(s, a, b);
	const int64_t since = s->now - SIM_T / 3;

	return l->up && l->up_ns < since && !l->silent[0] && !l->silent[1] && l->mute_until[0] < since &&
		l->mute_until[1] < since;
}

/* Of a process of which a peer could not take back in time what it reported nothing is known. */
static bool may_be_missed(struct sim_world *s, uint32_t slot)
{
	bool missed = s->slow_until > s->now - 2 * SIM_T;

	for (uint32_t i = 0; i < SIM_PROCS && !missed; i++) {
		const struct sim_proc *p = &s->proc[i];
		if (!p->alive || !p->m || i == slot)
			continue;
		missed = p->paused || p->paused_until > s->now - SIM_T / 3 || !is_clear(s, i, slot) ||
			!is_clear(s, i, SIM_CO);
	}
	return missed;
}

void sim_check_expelled(struct sim_world *s, const struct hd_co_action *note)
{
	uint32_t slot = sim_slot(s, note->worker);

	if (strcmp(note->name, "lost") || slot >= SIM_PROCS || s->proc[slot].paused || (strcmp(note->text,
		"its peers do not hear it") && strcmp(note->text, "it does not hear its peers")))
		return;
	if (!may_be_missed(s, slot))
		sim_bad(s, "expelled", "worker %u is given up, and all hear it, and are heard",
			s->proc[slot].id);
}
