#include "protocol/simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/simulation_int.h"

const char *hd_sim_fault_name(enum hd_sim_fault fault)
{
	static const char *const names[] = {
#define X(id, text) #id,
		HD_SIM_FAULTS(X)
#undef X
	};
	return fault < HD_SIM_NFAULTS ? names[fault] : "unknown";
}

/* splitmix64: one generator for everything that a seed decides. */
uint64_t sim_rnd(struct sim_world *s, uint64_t n)
{
	uint64_t z = s->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return n ? (z ^ z >> 31) % n : 0;
}

void sim_say(struct sim_world *s, const char *fmt, ...)
{
	char line[512];
	va_list args;

	if (!s->line)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	s->line(s->self, s->now, line);
}

void sim_bad(struct sim_world *s, const char *invariant, const char *fmt, ...)
{
	va_list args;

	if (!s->result->ok)
		return;
	s->result->ok = false;
	int n = snprintf(s->result->why, sizeof s->result->why, "%s: at %.3f s ", invariant,
		(double)s->now / 1e9);
	va_start(args, fmt);
	vsnprintf(s->result->why + n, sizeof s->result->why - (size_t)n, fmt, args);
	va_end(args);
	sim_say(s, "VIOLATED %s", s->result->why);
}

/* ---- processes ---- */

void sim_start(struct sim_world *s, int64_t in_ns)
{
	s->nstarting++;
	sim_push(s, (struct sim_world_event){ .at = s->now + in_ns, .kind = EV_START });
}

static void lost(struct sim_world *s, const struct sim_world_event *ev);

/* Of workers that come unasked, half are of other machines. */
void sim_come(struct sim_world *s, bool unasked)
{
	uint32_t slot = 0;

	while (slot < SIM_PROCS && s->proc[slot].alive)
		slot++;
	if (slot == SIM_PROCS || s->over)
		return;
	struct sim_proc *p = &s->proc[slot];
	uint32_t gen = p->gen + 1;
	/* what was not heard yet of the process that was here */
	for (uint32_t i = 0; i < SIM_ENDS; i++) {
		struct sim_link *l = i == slot ? NULL : sim_link_of(s, slot, i);
		if (l && l->up) {
			l->closing[i > slot] = true;
			l->closing_life[i > slot] = l->life;
			l->closing_worker[i > slot] = p->id;
		}
		if (l && l->closing[i > slot])
			lost(s, &(struct sim_world_event){ .end = i, .other = slot, .why = HD_CLOSED,
				.link = l->closing_life[i > slot],
				.number = l->closing_worker[i > slot],
				.gen = i == SIM_CO ? s->co_gen : s->proc[i].gen });
		if (l)
			*l = (struct sim_link){ .life = l->life + 1 };
	}
	s->guest_of[slot] = 0;
	memset(p, 0, sizeof *p);
	p->alive = true;
	p->gen = gen;
	p->id = HD_NOBODY;
	p->nonce = sim_rnd(s, UINT64_MAX);
	p->began_ns = s->now;
	p->synced_from = HD_NOBODY - 1;
	p->remote = unasked && p->nonce & 1;
	struct hd_member_config config = { .nvns = s->nvns, .nbuckets = s->nbuckets, .copies = s->copies,
		.servers = s->servers, .bytes = s->by_bytes ? s->moved : NULL,
		.buckets = s->shape.nstages ? &s->shapes[0].buckets : NULL,
		.of_shape = sim_of_shape, .of_shape_self = s,
		.nsteps = s->nsteps, .detect_ns = SIM_T,
		.goes_on = (s->seed & HD_SIM_GOING_ON) != 0, .pairs = sim_has_pairs(s), .early =
			sim_early(s) ? sim_is_early : NULL,
		.ndevices = (s->seed & (HD_SIM_FIRST | HD_SIM_GOING_ON | HD_SIM_FOLLOWED) ? 1 :
			1 + (uint32_t)sim_rnd(s, 2)) *
			(s->shape.nstages && s->seed & HD_SIM_RESHAPED ? 2 : 1),
		.vn_ps = 1 + sim_rnd(s, 4), .nonce = p->nonce, .takes_over = s->takers && !p->remote };
	snprintf(config.address, sizeof config.address, "%u", slot);
	snprintf(config.host, sizeof config.host, "%u.%u", slot, gen);
	if (s->seed & HD_SIM_ZONED) {
		p->zone = sim_draw_zone(s);
		snprintf(config.zone, sizeof config.zone, "zone-%u", p->zone);
	}
	if (hd_member_create(&p->m, &config, NULL)) {
		s->no_memory = true;
		return;
	}
	s->result->joins++;
	sim_say(s, "process %u starts", slot);
	sim_connect(s, slot, SIM_CO);
	sim_push(s, (struct sim_world_event){ .at = s->now + sim_between(s, 0, SIM_T / 4), .kind = EV_TICK,
		.end = slot,
		.gen = gen });
}

void sim_end(struct sim_world *s, uint32_t slot, bool kindly)
{
	struct sim_proc *p = &s->proc[slot];

	for (uint32_t i = 0; i < SIM_ENDS; i++)
		sim_close(s, slot, i, kindly || sim_rnd(s, 2));
	if (s->co && s->reaper && !p->remote)
		sim_push(s, (struct sim_world_event){ .at = s->now + sim_between(s, 0, 50 * SIM_MS),
			.kind = EV_CO_EVENT, .what = 2, .end = slot, .run = p->gen,
			.gen = s->co_gen });
	p->alive = p->paused = false;
	p->exited = true;
	hd_member_destroy(p->m);
	p->m = NULL;
}

/* X_most, or what makes it. Whoever is to drop it at the end of this step, as what came from disk, holds
 * nothing. */
static bool holds_on(const struct sim_proc *p, uint32_t bucket, uint64_t most)
{
	return p->alive && p->m && hd_member_state(p->m) == HD_MEMBER && p->slot[bucket] &&
		(p->slot[bucket] == most + 1 || p->sum_here[bucket]) &&
		hd_exchange_chained(hd_member_exchange(p->m), bucket);
}

/* Does it alone hold some part of the state, of those that are left? */
static bool alone_holds(const struct sim_world *s, uint32_t slot)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (i != slot && s->proc[i].alive && s->proc[i].has_state && s->proc[i].version > most)
			most = s->proc[i].version;
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		bool others = false;
		for (uint32_t i = 0; i < SIM_PROCS; i++)
			others |= i != slot && holds_on(&s->proc[i], b, most);
		if (s->proc[slot].slot[b] && !others)
			return true;
	}
	return false;
}

void sim_kill_worker(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];

	sim_say(s, "worker %u (process %u) is killed", p->id, slot);
	s->result->crashes++;
	s->result->bared += sim_partial(s) && alone_holds(s, slot);
	sim_end(s, slot, false);
}

/* ---- the coordinator's process ---- */

static void perform(struct sim_world *s, const struct hd_co_action *a);

void sim_co_step(struct sim_world *s, const struct hd_co_event *event)
{
	uint32_t gen = s->co_gen;
	bool holds = false;

	if (!s->co)
		return;
	struct hd_co_actions todo = hd_coordinator_step(s->co, event, s->now);
	for (size_t i = 0; i < todo.n && s->co && s->co_gen == gen; i++) {
		holds |= todo.at[i].kind == HD_CO_DO_SEND && todo.at[i].msg->kind == HD_MSG_VIEW &&
			todo.at[i].msg->view.hold;
		perform(s, &todo.at[i]);
		if (s->dying == HD_SIM_COORDINATOR && s->co && s->co_gen == gen && hd_coordinator_view(s->co))
			sim_die(s, SIM_CO);
	}
	const struct hd_view *view = s->co ? hd_coordinator_view(s->co) : NULL;
	if (view && view->epoch < s->co_epoch)
		sim_bad(s, "epoch", "the coordinator falls from epoch %u to %u", s->co_epoch, view->epoch);
	if (view && view->epoch > s->co_epoch)
		sim_check_zones(s, view);
	if (view)
		s->co_epoch = view->epoch;
	struct hd_co_status status = { .holding = true };
	if (view)
		hd_coordinator_status(s->co, &status);
	if (view && holds)                        /* after the open step */
		s->held_epoch = view->epoch;
	if (view && view->shape.nstages && !status.holding && view->epoch != s->held_epoch &&
		hd_view_pipes(view) < sim_least(s))
		sim_bad(s, "least", "%u pipelines begin a step under epoch %u", hd_view_pipes(view),
			view->epoch);
}

/* hd_shape_shares: of two pipelines any, the same in all of a run. */
static bool sim_shares(void *self, const struct hd_view_shape *shape, uint32_t npipes, uint32_t *share)
{
	const struct sim_world *s = self;

	if (npipes != 2 || s->nvns < 2)
		return false;
	share[0] = 1 + (uint32_t)((s->seed + shape->schedule) % (s->nvns - 1));
	share[1] = s->nvns - share[0];
	return true;
}

static void co_start(struct sim_world *s, bool by_member)
{
	struct hd_co_config config = { .verified = s->verified, .nvns = s->nvns, .nbuckets = s->nbuckets,
		.copies = s->copies, .servers = s->servers, .bytes = s->by_bytes ? s->moved : NULL,
		.min = s->seed & HD_SIM_FEWER ? 1 : s->min,
		.max = s->max, .shape = s->shape, .pipes = s->pipes, .least = sim_least(s),
		.of_shape = s->shape.nstages ? sim_of_shape : NULL, .of_shape_self = s,
		.shares = s->seed & HD_SIM_LISTED ? sim_shares : NULL,
		.whole = !sim_partial(s),
		.goes_on = s->seed & HD_SIM_GOING_ON ? sim_goes_on : NULL, .goes_on_self = s,
		.fewer = s->seed & HD_SIM_FEWER ? sim_fewer : NULL, .fewer_self = s,
		.bucket_bytes = s->bucket_bytes,
		.lockstep = s->lockstep,
		.target = s->target, .detect_ns = SIM_T, .min_wait_ns = 120 * SIM_T, .nsteps = s->nsteps,
		.step = s->store.started ? s->committed : s->ckpt, .record = s->store };

	if (s->co || s->over)
		return;
	if (!s->store.started && s->ckpt > s->committed)
		/* no worker is left that could report the steps before */
		s->committed = s->ckpt;
	if (hd_coordinator_create(&s->co, &config, s->now, NULL)) {
		s->no_memory = true;
		return;
	}
	s->co_gen++;
	s->somebody_ns = s->now;
	s->co_heard = (struct sim_heard){ .torn_ns = 0 };
	s->result->takeovers += s->co_gen > 1;
	sim_check_takeover(s);
	sim_say(s, "a coordinator starts%s", by_member ? ", by a member" : "");
	sim_push(s, (struct sim_world_event){ .at = s->now, .kind = EV_CO_TICK, .gen = s->co_gen });
}

void sim_co_kill(struct sim_world *s)
{
	if (!s->co)
		return;
	sim_say(s, "the coordinator is killed");
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		sim_close(s, SIM_CO, i, sim_rnd(s, 2));
	hd_coordinator_destroy(s->co);
	s->co = NULL;
	sim_store_cut(s);
	s->co_killed_ns = s->now;
	/* else workers have time to take over, if there are any */
	bool soon = !s->takers || sim_rnd(s, 2);
	sim_push(s, (struct sim_world_event){ .at = s->now + (soon ? sim_between(s, SIM_T / 4, 5 * SIM_T) :
		9 * SIM_T),
		.kind = EV_CO_START });
}

static bool is_well(struct sim_world *s, uint32_t i);

/* Somebody knows: the coordinator, or a member whose word of it has had its time. */
static bool is_known(struct sim_world *s)
{
	bool known = s->co_heard.torn_ns != 0;

	for (uint32_t i = 0; i < SIM_PROCS; i++)
		known |= is_well(s, i) && s->proc[i].heard.torn_ns &&
			s->now - s->proc[i].heard.torn_ns > 2 * SIM_T;
	return known;
}

/* Is a bucket of X_{step+1} wrong where a worker holds it that is well? */
static bool holds_wrong(struct sim_world *s, uint64_t step)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		for (uint32_t b = 0; b < s->nbuckets && step >= s->bad_from && is_well(s, i); b++)
			if (s->proc[i].slot[b] && s->proc[i].bad[b])
				return true;
	return false;
}

static void check_digest(struct sim_world *s, const struct hd_co_action *a)
{
	uint64_t tag;

	if (!a->news || !a->news->has_digest)
		return;
	memcpy(&tag, &a->news->digest, sizeof tag);
	s->verified = a->step + 1;
	if ((tag == sim_tag(s, a->step + 1) && !holds_wrong(s, a->step)) || s->escaped)
		return;
	if (is_known(s))
		sim_bad(s, "corrupt", "step %llu is committed with wrong bits", (unsigned long long)a->step);
	s->escaped = true;
	s->result->escaped = 1;
}

/* Of a step that a member has run which is there: it keeps the records of more steps than these runs have. */
static void check_record(struct sim_world *s, uint64_t step)
{
	for (uint32_t i = 0; i < SIM_PROCS && s->nsteps < HD_MEMBER_NEWS && s->committed <= step; i++)
		if (is_well(s, i) && s->proc[i].ran && s->proc[i].ran <= step + 1)
			sim_bad(s, "record", "that of step %llu is lost, and worker %u has it",
				(unsigned long long)step, s->proc[i].id);
}

static void commit(struct sim_world *s, const struct hd_co_action *a)
{
	const struct hd_view *view = hd_coordinator_view(s->co);

	if (a->step > s->committed)
		sim_bad(s, "commit", "step %llu after %llu", (unsigned long long)a->step,
			(unsigned long long)s->committed);
	if (a->news && a->news->loss_sum != (double)a->step)
		sim_bad(s, "commit", "step %llu with the record of step %g", (unsigned long long)a->step,
			a->news->loss_sum);
	check_digest(s, a);
	if (!a->news)
		check_record(s, a->step);
	if (a->step < s->committed)
		/* after a restart of the coordinator or from disk: the same line again */
		return;
	for (uint32_t i = 0; view && i < view->nmembers; i++) {
		uint32_t slot = sim_slot(s, view->member[i]);
		if (slot < SIM_PROCS && s->proc[slot].has_state && s->proc[slot].version <= a->step)
			sim_bad(s, "commit", "step %llu, but worker %u holds X_%llu",
				(unsigned long long)a->step, view->member[i],
				(unsigned long long)s->proc[slot].version);
	}
	s->committed++;
	s->commit_ns = s->now;
}

static bool is_well(struct sim_world *s, uint32_t i)
{
	const struct sim_proc *p = &s->proc[i];

	return p->alive && !p->paused && !p->cut_off && p->m && hd_member_state(p->m) == HD_MEMBER &&
		sim_up(s, i, SIM_CO) &&
		!sim_link_of(s, i, SIM_CO)->silent[0] && !sim_link_of(s, i, SIM_CO)->silent[1] &&
		s->now - sim_link_of(s, i, SIM_CO)->mute_until[0] > 2 * SIM_T &&
		s->now - p->paused_until > 2 * SIM_T;
}

/* A member that another one does not hear, or did not a while ago: one of them has to go. */
static bool is_missed(struct sim_world *s, uint32_t i)
{
	for (uint32_t k = 0; k < SIM_PROCS; k++) {
		const struct sim_link *l = k == i ? NULL : sim_link_of(s, i, k);
		if (!l || !s->proc[k].alive || !s->proc[k].m || hd_member_state(s->proc[k].m) != HD_MEMBER)
			continue;
		if (!l->up || l->silent[0] || l->silent[1] || s->now - l->mute_until[0] < 2 * SIM_T ||
			s->now - l->mute_until[1] < 2 * SIM_T)
			return true;
	}
	return false;
}

/* A member that lives and was never cut off, nor by delays beyond T, holds the state: no worker may
 * begin without it. */
static void check_lost(struct sim_world *s)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (is_well(s, i) && s->now - s->slow_until > 2 * SIM_T)
			sim_bad(s, "lost", "worker %u holds X_%llu, and the job begins from disk",
				s->proc[i].id,
				(unsigned long long)s->proc[i].version);
}

/* Of stages, slots of a step that others have finished are of no use without the sum: what came from disk is
 * held until the first step, by workers that are to have no part of it. Others: all that answered in this
 * epoch, well or not. */
static bool brought_on(struct sim_world *s, uint32_t b, uint64_t most)
{
	bool holder = !s->shape.nstages;

	for (uint32_t i = 0; i < SIM_PROCS; i++)
		holder |= is_well(s, i) && s->proc[i].slot[b] &&
			(s->proc[i].slot[b] == most + 1 || s->proc[i].sum_here[b]);
	return holder;
}

/* Of the open step. One that has not begun it, while others have finished it, still has sums of the step
 * before. */
static bool has_its_sum(struct sim_world *s, uint32_t i, uint32_t b, uint64_t most)
{
	const struct sim_proc *p = &s->proc[i];

	return is_well(s, i) && p->sum_here[b] &&
		(p->version == most || hd_member_exchange(p->m)->step == p->version);
}

/* Slots may be called lost when no healthy holder of some bucket is left that has had them for longer
 * than a message takes. */
static void check_slots_lost(struct sim_world *s)
{
	uint64_t most = 0;

	if (!sim_partial(s))
		sim_bad(s, "slots", "they are given up, and every member has all of them");
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (s->proc[i].alive && s->proc[i].epoch == s->store.epoch && s->proc[i].version > most)
			most = s->proc[i].version;
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		bool slots = false, sum = false, parm = false, spoiled = false;
		for (uint32_t i = 0; i < SIM_PROCS; i++) {
			slots |= is_well(s, i) && s->proc[i].slot[b] &&
				(!s->proc[i].slot_ns[b] || s->now - s->proc[i].slot_ns[b] > 2 * SIM_T);
			sum |= has_its_sum(s, i, b, most);
			parm |= s->proc[i].alive && s->proc[i].parm_here[b];
			/* parameters came over roots, in part: no sum can be made again */
			spoiled |= s->proc[i].alive && s->proc[i].version == most && !s->proc[i].own_roots[b];
		}
		if (!slots || ((parm || spoiled) && !sum) || !brought_on(s, b, most))
			return;
	}
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (is_well(s, i) && s->proc[i].epoch == s->store.epoch) {
			sim_bad(s, "slots", "they are given up, and all of them are there");
			return;
		}
}

/* As of all that is on disk: the newest sound one counts. */
static void invalidate(struct sim_world *s, uint64_t step)
{
	if (!s->spoiled)
		sim_bad(s, "corrupt", "what was saved after X_%llu is distrusted, and all of it is right",
			(unsigned long long)step);
	for (uint64_t i = step + 1; i <= SIM_STEPS; i++)
		s->saved_tag[i] = 0;
	while (s->ckpt > 0 && (s->ckpt > step || !s->saved_tag[s->ckpt]))
		s->ckpt--;
	s->gave_up = true;
}

/* The launcher ends its process. One that is well must stay: with the coordinator gone next, it may be the
 * last. */
static void check_ended(struct sim_world *s, uint32_t slot)
{
	if (slot < SIM_PROCS && s->gave_up && !s->spoiled && is_well(s, slot) && !is_missed(s, slot))
		sim_bad(s, "rejoin", "worker %u is to be ended, and all that it did was to lose the state",
			s->proc[slot].id);
}

static uint32_t end_of_guest(const struct sim_world *s, uint32_t worker)
{
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (s->proc[i].alive && s->guest_of[i] && s->guest_of[i] == worker)
			return i;
	return sim_slot(s, worker);
}

static void over(struct sim_world *s, const struct hd_co_action *a)
{
	sim_say(s, "the run is over with %u: %s", a->code, a->text);
	s->over = true;
	s->over_code = a->code;
	s->result->halted += a->code == 75 && s->asked_to_halt;
	if (a->code == 75 && s->ckpt == s->nsteps && s->committed == s->nsteps)
		sim_bad(s, "end", "it was asked to stop, and had committed and saved all %llu steps",
			(unsigned long long)s->nsteps);
	if (a->code == 75 && (s->drained || s->asked_to_halt))
		return;
	s->result->undecided += a->code == 5 && s->spoiled;
	if (a->code == 5 && s->spoiled)
		return;
	if (a->code)
		sim_bad(s, "live", "the run ends with %u: %s", a->code, a->text);
	else if (s->committed != (s->nsteps < s->halt_at ? s->nsteps : s->halt_at))
		sim_bad(s, "end", "the run ends well after %llu steps", (unsigned long long)s->committed);
}

/* The first ones are there. */
static int64_t comes_in(struct sim_world *s)
{
	const bool late = s->seed & HD_SIM_LATE && s->now < s->quiet_ns && hd_coordinator_view(s->co);

	return late && sim_rnd(s, 4) ? sim_between(s, SIM_T, 20 * SIM_T) :
		sim_between(s, 20 * SIM_MS, 800 * SIM_MS);
}

static void perform(struct sim_world *s, const struct hd_co_action *a)
{
	uint32_t slot;

	if (s->line)
		sim_say(s, "    coordinator: %d worker %u step %llu %s %s %s", (int)a->kind, a->worker,
			(unsigned long long)a->step,
			a->msg ? hd_msg_name(a->msg->kind) : "",
			a->name ? a->name : "", a->text ? a->text : "");
	switch (a->kind) {
	case HD_CO_DO_SEND:
		sim_check_said(s, a->msg);
		sim_send_msg(s, SIM_CO, end_of_guest(s, a->worker), a->msg);
		break;
	case HD_CO_DO_DROP:   sim_close(s, SIM_CO, end_of_guest(s, a->worker), true); break;
	case HD_CO_DO_STORE:
		sim_store(s, a->record, s->now >= s->store_bad_until,
			sim_between(s, SIM_MS / 2, 15 * SIM_MS));
		break;
	case HD_CO_DO_SPAWN:
		for (uint32_t i = 0; i < a->n; i++)
			sim_start(s, comes_in(s));
		break;
	case HD_CO_DO_END:
		slot = sim_slot(s, a->worker);
		check_ended(s, slot);
		if (slot < SIM_PROCS && (!is_well(s, slot) || is_missed(s, slot)))
			/* though its link may be there again before it hears of it */
			s->proc[slot].cut_off = true;
		if (slot < SIM_PROCS && s->spoiled && !s->proc[slot].remote)
			sim_kill_worker(s, slot);                     /* so that it saves nothing any more */
		break;
	case HD_CO_DO_RESTORE:
		if (!s->gave_up)
			check_lost(s);
		s->gave_up = false;
		s->result->restores++;
		s->result->rolled += s->committed > s->ckpt;
		s->committed = s->committed > s->ckpt ? s->committed : s->ckpt;
		sim_push(s, (struct sim_world_event){ .at = s->now + sim_between(s, SIM_MS, 50 * SIM_MS),
			.kind = EV_CO_EVENT, .what = 1, .number = s->ckpt,
			.gen = s->co_gen });
		break;
	case HD_CO_DO_INVALIDATE: invalidate(s, a->step); break;
	case HD_CO_DO_COMMIT: commit(s, a); break;
	case HD_CO_DO_NOTE:
		if (!strcmp(a->name, "rejoin") && !s->gave_up) {
			s->gave_up = true;
			s->result->given_up++;
			check_slots_lost(s);
		}
		sim_check_expelled(s, a);
		s->result->expelled += !strcmp(a->name, "corrupt");
		s->result->gone_on += !strcmp(a->name, "failover");
		s->result->fewer += !strcmp(a->name, "fewer");
		break;
	case HD_CO_DO_EXIT:   over(s, a); break;
	case HD_CO_DO_SPENT: case HD_CO_DO_NKINDS: break;
	}
}

/* To the coordinator. */
static bool is_here(struct sim_world *s, uint32_t worker)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = s->co ? hd_coordinator_workers(s->co, w, HD_MAX_WORKERS) : 0;

	for (uint32_t i = 0; i < n; i++)
		if (w[i].worker == worker)
			return w[i].state != HD_W_LEFT && w[i].state != HD_W_OUT && w[i].up;
	return false;
}

static void co_packet(struct sim_world *s, uint32_t from, const struct sim_packet *k)
{
	struct hd_msg msg;
	struct sim_proc *p = &s->proc[from];
	uint32_t worker = p->id;

	hd_arena_reset(&s->scratch);
	if (hd_msg_decode(&msg, k->msg_kind, k->bytes, k->len, &s->scratch, NULL)) {
		sim_bad(s, "message", "%s cannot be read", hd_msg_name((enum hd_msg_kind)k->msg_kind));
		return;
	}
	if (k->from == HD_NOBODY || (msg.kind == HD_MSG_JOIN && msg.join.worker == HD_NOBODY)) {
		if (!s->guest_of[from])                   /* a connection has one number */
			s->guest_of[from] = UINT32_C(0x80000000) + s->guest++;
		worker = s->guest_of[from];
	} else {
		worker = k->from;
	}
	if (s->spoiled && is_here(s, worker))
		sim_hear(s, &s->co_heard, &msg);
	s->known |= s->co_heard.torn_ns != 0;
	sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_MESSAGE, .worker = worker, .msg = &msg,
		.remote = p->remote });
}

/* A process of that place has ended: of a worker by what it said of itself, as in the runtime; else it had
 * not joined yet, for all that is known. */
static void reap(struct sim_world *s, uint32_t slot, uint32_t gen)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	uint32_t n = hd_coordinator_workers(s->co, w, HD_MAX_WORKERS);
	char host[HD_MSG_KIND_NAME + 1];

	snprintf(host, sizeof host, "%u.%u", slot, gen);
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(w[i].host, host)) {
			sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = w[i].worker,
				.why = HD_EXITED });
			return;
		}
	sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = 1 });
}

/* ---- one event ---- */

static void lost(struct sim_world *s, const struct sim_world_event *ev);

static void up(struct sim_world *s, const struct sim_world_event *ev)
{
	struct sim_link *l = sim_link_of(s, ev->end, ev->other);

	if (l->life != ev->link || !l->opening)
		return;
	l->opening = false;
	if (!sim_end_alive(s, ev->end) || !sim_end_alive(s, ev->other))
		return;
	uint32_t ends[2] = { ev->end, ev->other };
	/* that it closed is heard before that it is there again */
	for (int i = 0; i < 2; i++)
		if (l->closing[ends[i] > ends[1 - i]])
			lost(s, &(struct sim_world_event){ .end = ends[i], .other = ends[1 - i],
			.why = HD_CLOSED,
				.link = l->closing_life[ends[i] > ends[1 - i]],
				.number = l->closing_worker[ends[i] > ends[1 - i]],
				.gen = ends[i] == SIM_CO ? s->co_gen : s->proc[ends[i]].gen });
	if (l->life != ev->link || !sim_end_alive(s, ev->end) || !sim_end_alive(s, ev->other))
		return;
	l->up = true;
	l->up_ns = s->now;
	l->last[0] = l->last[1] = s->now;
	l->silent[0] = l->silent[1] = false;
	for (int i = 0; i < 2; i++)
		if (ends[0] != SIM_CO && ends[1] != SIM_CO)
			sim_peer_up(s, ends[i], ends[1 - i]);
	for (int i = 0; i < 2; i++)
		if (ends[i] != SIM_CO)
			sim_member(s, ends[i], &(struct hd_member_event){ .kind = HD_IN_UP,
				.worker = ends[1 - i] == SIM_CO ? HD_COORDINATOR : s->proc[ends[1 - i]].id });
}

static void missed(struct sim_world *s, const struct sim_world_event *ev)
{
	struct sim_link *l = sim_link_of(s, ev->end, ev->other);

	if (l->life != ev->link || !l->opening)
		return;
	l->opening = false;
	if (sim_end_alive(s, ev->end) && sim_end_alive(s, ev->other))
		sim_member(s, ev->end, &(struct hd_member_event){ .kind = HD_IN_LOST, .why = HD_CLOSED,
			.worker = s->proc[ev->other].id });
}

static void lost(struct sim_world *s, const struct sim_world_event *ev)
{
	struct sim_link *l = sim_link_of(s, ev->end, ev->other);

	/* a closing is heard once, in the life after it; silence in its own */
	if (ev->why == HD_CLOSED && (!l->closing[ev->end > ev->other] ||
		l->closing_life[ev->end > ev->other] != ev->link))
		return;
	if (ev->why == HD_CLOSED)
		l->closing[ev->end > ev->other] = false;
	if (ev->why != HD_CLOSED && (l->life != ev->link || !l->up))
		return;
	if (ev->why != HD_CLOSED)
		l->silent[ev->other > ev->end] = ev->why == HD_SILENT;
	if (ev->end == SIM_CO) {
		uint32_t worker = s->guest_of[ev->other] ? s->guest_of[ev->other] : (uint32_t)ev->number;
		if (ev->gen == s->co_gen && worker != HD_NOBODY)
			sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_LOST, .worker = worker,
				.why = ev->why });
		if (ev->why == HD_CLOSED)
			s->guest_of[ev->other] = 0;
		return;
	}
	if (!s->proc[ev->end].alive || s->proc[ev->end].gen != ev->gen)
		return;
	if (ev->why == HD_CLOSED && ev->other != SIM_CO)
		sim_peer_lost(s, ev->end, (uint32_t)ev->number);
	sim_member(s, ev->end, &(struct hd_member_event){ .kind = HD_IN_LOST, .why = ev->why,
		.worker = (uint32_t)ev->number });
}

/* The far end of a link whose near end is gone already, or silence for 8 T. */
static void closed(struct sim_world *s, const struct sim_world_event *ev)
{
	struct sim_link *l = sim_link_of(s, ev->end, ev->other);

	if (!l->up || l->life != ev->link)
		return;
	l->up = false;
	l->life++;
	sim_report_lost(s, ev->end, ev->other, s->now, HD_CLOSED, l->life);
	if (sim_end_alive(s, ev->other))
		sim_report_lost(s, ev->other, ev->end, s->now, HD_CLOSED, l->life);
}

static void tick(struct sim_world *s, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[ev->end];

	if (!p->alive || p->gen != ev->gen)
		return;
	sim_ask_again(s, ev->end);
	if (!p->alive || p->gen != ev->gen)
		return;
	sim_send_state_standing(s, ev->end);
	sim_member(s, ev->end, &(struct hd_member_event){ .kind = HD_IN_TICK, .done = s->seq,
		.longest_ns = (uint64_t)s->step_ns, .busy = true });
	sim_push(s, (struct sim_world_event){ .at = s->now + SIM_T / 4, .kind = EV_TICK, .end = ev->end,
		.gen = ev->gen });
}

static void handle(struct sim_world *s, struct sim_world_event *ev)
{
	bool of_proc = ev->kind == EV_PACKET || ev->kind == EV_UP || ev->kind == EV_LOST ||
		ev->kind == EV_MISSED || ev->kind == EV_TASK || ev->kind == EV_TICK;

	/* a process that stands still sees it when it goes on */
	for (uint32_t i = 0; i < 2 && of_proc; i++) {
		uint32_t end = i ? ev->other : ev->end;
		if ((i && ev->kind != EV_UP) || end >= SIM_PROCS || !s->proc[end].paused)
			continue;
		if (s->now < s->proc[end].paused_until) {
			ev->at = s->proc[end].paused_until;
			sim_push(s, *ev);
			return;
		}
		s->proc[end].paused = false;
	}
	switch (ev->kind) {
	case EV_PACKET:
		if (sim_link_of(s, ev->end, ev->other)->life != ev->link ||
			!sim_link_of(s, ev->end, ev->other)->up)
			break;
		if (ev->end == SIM_CO)
			co_packet(s, ev->other, ev->packet);
		else
			sim_packet_in(s, ev->end, ev->other, ev->packet);
		break;
	case EV_UP:       up(s, ev); break;
	case EV_MISSED:   missed(s, ev); break;
	case EV_LOST:     lost(s, ev); break;
	case EV_CLOSE:    closed(s, ev); break;
	case EV_TASK:     sim_task(s, ev->end, ev); break;
	case EV_TICK:     tick(s, ev); break;
	case EV_START:
		s->nstarting--;
		sim_come(s, false);
		break;
	case EV_REPLACE:  sim_replace(s, ev->what != 0); break;
	case EV_RESHAPE:  sim_reshape(s, ev->what, ev->end); break;
	case EV_CORRUPT:  sim_corrupt(s); break;
	case EV_FLAP:     sim_flap(s); break;
	case EV_GOES:
		if (s->proc[ev->end].alive && s->proc[ev->end].gen == ev->gen)
			sim_goes(s, ev->end);
		break;
	case EV_UNHEED:
		if (s->proc[ev->end].alive && s->proc[ev->end].gen == ev->gen)
			sim_unheed(s, ev->end, (int64_t)ev->number);
		break;
	case EV_ASK:      sim_scale_again(s); break;
	case EV_FAULT:    sim_fault(s, (enum hd_sim_fault)ev->what); break;
	case EV_STORED:
		if (!s->co || ev->gen != s->co_gen)
			break;
		sim_stored(s);
		sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_STORED, .serial = ev->number,
			.ok = ev->step });
		break;
	case EV_CO_START: co_start(s, ev->number); break;
	case EV_CO_TICK:
		if (s->co && ev->gen == s->co_gen) {
			sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_TICK });
			sim_push(s, (struct sim_world_event){ .at = s->now + SIM_T / 4, .kind = EV_CO_TICK,
				.gen = ev->gen });
		}
		break;
	case EV_CO_EVENT:
		if (s->co && ev->gen == s->co_gen && ev->what == 2)
			reap(s, ev->end, ev->run);
		else if (s->co && ev->gen == s->co_gen)
			sim_co_step(s, &(struct hd_co_event){ .kind = HD_CO_IN_RESTORED,
				.step = ev->number });
		break;
	}
}

/* ---- a run ---- */

/* All workers that could sync have: no source gives up any more. */
static void check_grown(struct sim_world *s)
{
	struct hd_co_status status;
	int64_t since = s->quiet_ns > s->small_ns ? s->quiet_ns : s->small_ns;

	if (!s->co || !s->gives_up_in)
		return;
	hd_coordinator_status(s->co, &status);
	if (status.halting || status.nmembers >= status.target)
		s->small_ns = s->now;
	else if (s->now - since > 45 * SIM_T)
		sim_bad(s, "grown", "%u of %u workers that are wanted are members since %.3f s",
			status.nmembers, status.target, (double)since / 1e9);
}

static void check_live(struct sim_world *s)
{
	int64_t since = s->commit_ns > s->quiet_ns + 12 * SIM_T ? s->commit_ns : s->quiet_ns + 12 * SIM_T;

	if (s->now - since > 60 * SIM_T)
		sim_bad(s, "live", "no step since %.3f s, faults ended at %.3f s, %llu of %llu steps",
			(double)s->commit_ns / 1e9, (double)s->quiet_ns / 1e9,
			(unsigned long long)s->committed, (unsigned long long)s->nsteps);
}

static enum hd_err simulate(uint64_t seed, uint32_t only, const struct hd_sim_death *death, hd_sim_line *line,
	void *self, struct hd_sim_result *result, struct hd_diag *diag)
{
	struct sim_world *s = hd_alloc(sizeof *s);

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a simulation");
	memset(s, 0, sizeof *s);
	*result = (struct hd_sim_result){ .ok = true };
	s->seed = s->rng = seed;
	s->result = result;
	s->line = line;
	s->self = self;
	s->death = death;
	hd_arena_init(&s->arena, (size_t)1 << 30);
	hd_arena_init(&s->scratch, 1 << 24);
	sim_draw(s, only);
	co_start(s, false);
	while (result->ok && !s->over && !s->no_memory) {
		struct sim_world_event ev = sim_pop(s);
		s->now = ev.at > s->now ? ev.at : s->now;
		result->events++;
		handle(s, &ev);
		check_live(s);
		sim_check_taken_over(s);
		sim_check_empty(s);
		sim_check_named(s);
		check_grown(s);
		if (!s->nheap)
			sim_bad(s, "live", "nothing happens any more");
	}
	if (death)
		sim_check_covered(s);
	result->steps = s->committed;
	result->end_ns = s->now;
	bool no_memory = s->no_memory;
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		hd_member_destroy(s->proc[i].m);
	hd_coordinator_destroy(s->co);
	hd_free(s->heap);
	hd_arena_finish(&s->arena);
	hd_arena_finish(&s->scratch);
	hd_free(s);
	return no_memory ? hd_fail(diag, HD_E_NOMEM, "no memory for the simulation of seed %llu",
		(unsigned long long)seed) : HD_OK;
}

enum hd_err hd_simulate_job(uint64_t seed, uint32_t only, hd_sim_line *line, void *self,
	struct hd_sim_result *result, struct hd_diag *diag)
{
	return simulate(seed, only, NULL, line, self, result, diag);
}

enum hd_err hd_simulate_death(uint64_t seed, const struct hd_sim_death *death, hd_sim_line *line, void *self,
	struct hd_sim_result *result, struct hd_diag *diag)
{
	return simulate(seed | HD_SIM_STAGED | HD_SIM_FIRST, 0, death, line, self, result, diag);
}
