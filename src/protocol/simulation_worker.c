#include "protocol/simulation_worker.h"

#include <string.h>

/* The runtime's twin of one worker: carries out what its member machine asks for, with integers for
 * gradients. */

void sim_after(struct sim_world *s, uint32_t slot, enum sim_task kind, int64_t in_ns, bool serial,
	struct sim_world_event ev)
{
	struct sim_proc *p = &s->proc[slot];
	int64_t from = serial && p->busy_until > s->now ? p->busy_until : s->now;

	ev.at = from + in_ns;
	ev.kind = EV_TASK;
	ev.end = slot;
	ev.gen = p->gen;
	ev.what = kind;
	ev.run = p->run;
	if (serial)
		p->busy_until = ev.at;
	sim_push(s, ev);
}

int64_t sim_ms(struct sim_world *s, uint32_t from, uint32_t to) { return (int64_t)(from * 1000 + sim_rnd(s,
	(to - from) * 1000 + 1)) * 1000; }

static void compute(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	int64_t length = s->step_ns / 2 + (int64_t)sim_rnd(s, (uint64_t)s->step_ns);

	p->pass_units[a->pass] = sim_units(a->range, a->nranges);
	p->pass_stage[a->pass] = a->stage;
	const struct sim_shape *shape = &s->shapes[hd_member_view(p->m)->shape.schedule];
	for (uint32_t b = 0; b < s->nbuckets && s->shape.nstages && sim_partial(s); b++)
		if (shape->bucket[b].readers >> a->stage & 1 && p->slot[b] != a->step + 1)
			sim_bad(s, "stages",
				"worker %u computes stage %u of step %llu with bucket %u of X_%lld",
				p->id, a->stage, (unsigned long long)a->step, b, (long long)p->slot[b] - 1);
	memset(p->own_here[a->pass], 0, sizeof p->own_here[a->pass]);
	if (!p->has_state || p->version != a->step)
		sim_bad(s, "state", "worker %u computes step %llu from X_%llu", p->id,
			(unsigned long long)a->step, (unsigned long long)p->version);
	if (s->making != a->step) {
		memset(s->maker, 0, sizeof s->maker);
		s->making = a->step;
	}
	for (uint32_t i = 0; i < a->nranges; i++)
		for (uint32_t v = a->range[i].first; v < a->range[i].first + a->range[i].n; v++) {
			const struct sim_proc *had = s->maker[v].gen && !s->shape.nstages && !s->lockstep ?
				&s->proc[s->maker[v].slot] : NULL;
			if (had && s->maker[v].gen == had->gen + 1 && had->alive && had->m && had->run == 0 &&
				hd_member_state(had->m) == HD_MEMBER && a->pass)
				if (s->co && hd_coordinator_view(s->co) &&
					hd_view_has(hd_coordinator_view(s->co), had->id))
					sim_bad(s, "redo",
						"virtual node %u of step %llu again at %u; %u has it", v,
						(unsigned long long)a->step,
						p->id, had->id);
			s->result->redone += had != NULL;
			s->maker[v].gen = p->gen + 1;
			s->maker[v].slot = slot;
		}
	int64_t from = p->busy_until > s->now ? p->busy_until : s->now;
	if (s->lockstep && a->pass)
		sim_bad(s, "lockstep", "worker %u computes pass %u of step %llu alone", p->id, a->pass,
			(unsigned long long)a->step);
	if (sim_meets(s))
		sim_after(s, slot, TASK_BROUGHT, from - s->now + length / 2, false,
			(struct sim_world_event){ .step = a->step, .number = p->epoch });
	for (uint32_t b = 0; b < s->nbuckets && !sim_meets(s); b++)
		if (sim_rnd(s, 4))
			sim_after(s, slot, TASK_FINAL, from - s->now + length *
				(int64_t)(s->nbuckets - b) / (int64_t)(s->nbuckets + 1), false,
				(struct sim_world_event){ .pass = a->pass, .bucket = b, .step = a->step });
	sim_after(s, slot, TASK_COMPUTED, length, true,
		(struct sim_world_event){ .pass = a->pass, .step = a->step, .number = p->epoch });
}

/* In lockstep, and along a pipeline: is here what all others of the step bring? Letters of an earlier epoch
 * come no more. */
static bool has_met(struct sim_world *s, uint32_t slot, uint64_t step, uint32_t epoch)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_passes *all = &hd_member_exchange(p->m)->passes;

	if (p->met == step + 1 && p->met_epoch == epoch)
		return true;
	if (p->epoch != epoch)
		return false;
	for (uint32_t i = 0; i < all->npasses; i++) {
		uint32_t other = sim_slot(s, all->pass[i].worker);
		const struct sim_proc *q = other < SIM_PROCS ? &s->proc[other] : NULL;
		if (!q || !q->alive || q->brought != step + 1 || q->brought_epoch != epoch ||
			(other != slot && !sim_up(s, slot, other)))
			return false;
	}
	p->met = step + 1;
	p->met_epoch = epoch;
	return true;
}

/* The pass ends, or was fenced; else it waits. */
static bool may_end(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	if (!sim_meets(s) || has_met(s, slot, ev->step, (uint32_t)ev->number))
		return true;
	if (s->proc[slot].epoch == ev->number)
		sim_after(s, slot, TASK_COMPUTED, sim_ms(s, 2, 20), true,
			(struct sim_world_event){ .pass = ev->pass, .step = ev->step, .number = ev->number });
	return false;
}

static void boundary(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];
	/* another one saves if it does not any more */
	bool writer = ev->pass && (hd_member_saves(p->m) || ev->bucket), last = ev->bucket;

	if ((p->version != ev->step && hd_member_state(p->m) == HD_SYNCING) || ev->number != p->transfer)
		return;                                           /* the job went on without this joiner */
	if (p->version != ev->step)
		sim_bad(s, "state", "worker %u is at the boundary of step %llu with X_%llu", p->id,
			(unsigned long long)ev->step,
			(unsigned long long)p->version);
	if (writer && p->remote)
		sim_bad(s, "remote", "worker %u is to save X_%llu, and cannot reach the disk", p->id,
			(unsigned long long)ev->step);
	bool saves = writer && (last || ev->step % 5 == 0) && ev->step > s->ckpt;
	p->save = *ev;
	p->save.pass = writer;
	if (saves && sim_partial(s))
		sim_want_slots(s, slot, ev->step, true, false);
	if (!saves || !sim_partial(s) || !p->want)
		sim_saved(s, slot);
}

/* Two members of one epoch: neither overwrites sums that the other still needs. */
static void check_gate(struct sim_world *s, const struct sim_proc *p, uint64_t step)
{
	const struct hd_view *view = hd_member_view(p->m);

	for (uint32_t i = 0; i < SIM_PROCS; i++) {
		const struct sim_proc *q = &s->proc[i];
		if (q != p && q->alive && q->m && hd_view_has(view, q->id) &&
			hd_member_epoch(q->m) == hd_member_epoch(p->m) && hd_member_view(q->m) &&
		    hd_member_view(q->m)->epoch == view->epoch && hd_member_at(q->m) < step)
			sim_bad(s, "gate", "worker %u begins step %llu, %u has not sealed %llu", p->id,
				(unsigned long long)step, q->id,
				(unsigned long long)hd_member_at(q->m));
	}
}

/* With stages, and in lockstep, a step that a member has finished cannot be computed by others any more. */
static void check_fresh(struct sim_world *s, const struct sim_proc *p, uint64_t step)
{
	const struct hd_view *view = hd_member_view(p->m);

	for (uint32_t i = 0; i < SIM_PROCS && (s->shape.nstages || s->lockstep); i++) {
		const struct sim_proc *q = &s->proc[i];
		if (q != p && q->alive && q->m && hd_view_has(view, q->id) && q->epoch == p->epoch &&
			q->has_state && q->version > step &&
			hd_passes_find(&hd_member_exchange(p->m)->passes, p->id, 0))
			sim_bad(s, s->lockstep ? "lockstep" : "stages",
				"worker %u begins step %llu, and %u has finished it", p->id,
				(unsigned long long)step, q->id);
	}
	if (s->shape.nstages && !sim_of_shape(s, &view->shape))
		sim_bad(s, "stages", "worker %u begins step %llu in a view of %u stages", p->id,
			(unsigned long long)step, view->shape.nstages);
}

static void adopt(struct sim_world *s, const struct sim_proc *p, const struct hd_view *view)
{
	struct hd_hash hash = hd_view_hash(view);
	uint32_t i = view->epoch % 256;

	if (s->views[i].epoch == view->epoch && !hd_hash_same(s->views[i].hash, hash))
		sim_bad(s, "epoch", "worker %u adopts another view of epoch %u", p->id, view->epoch);
	if (s->views[i].epoch < view->epoch)
		s->result->epochs++;
	if (s->newest.epoch < view->epoch)
		s->newest = *view;
	s->views[i].epoch = view->epoch;
	s->views[i].hash = hash;
}

/* By the workers of the view's pipelines alone. */
static void check_shadows(struct sim_world *s, const struct sim_proc *p)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);
	const struct hd_view *view = hd_member_view(p->m);
	bool two = false;

	for (uint32_t r = 0; r < view->nranks && view->shape.nstages; r++)
		two |= view->rank[r].worker != view->rank[r - r % view->shape.width].worker;
	two &= s->shapes[view->shape.schedule].buckets.shadows;
	for (uint32_t b = 0; b < s->nbuckets && two; b++)
		if (__builtin_popcountll(x->held.slot[b]) < 2 || x->held.slot[b] != x->held.param[b])
			sim_bad(s, "shadow", "worker %u begins step %llu, and bucket %u has one holder",
				p->id, (unsigned long long)x->step, b);
}

/* Each member without a rank follows a stage, unless it may be about to go, and holds all that this reads. */
static void check_followers(struct sim_world *s, const struct sim_proc *p)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);
	const struct hd_view *view = hd_member_view(p->m);
	const struct sim_shape *shape = &s->shapes[view->shape.schedule];
	const bool goes = s->drained || s->scaled || s->seed & (HD_SIM_REPLACED | HD_SIM_CORRUPT);

	for (uint32_t m = 0; m < view->nmembers && view->shape.nstages && shape->buckets.follows; m++) {
		const uint32_t stage = hd_view_follows(view, view->member[m]);
		const bool ranked = hd_view_stages(view, view->member[m]);
		if (ranked ? stage != HD_NOBODY : stage == HD_NOBODY && !goes && !shape->buckets.whole)
			sim_bad(s, "follow", "worker %u begins step %llu, and %u, %s a rank, follows %d",
				p->id, (unsigned long long)x->step, view->member[m],
				ranked ? "with" : "without", (int)stage);
		for (uint32_t b = 0; b < s->nbuckets && stage != HD_NOBODY; b++)
			if (shape->bucket[b].readers >> stage & 1 && !(x->held.slot[b] >> m & 1))
				sim_bad(s, "follow", "worker %u begins step %llu, and %u lacks bucket %u",
					p->id, (unsigned long long)x->step, view->member[m], b);
	}
}

/* Of a step all members begin the next one or none does; what was begun counts in its own epoch, where its
 * letters are on their way. */
/* A member that knows of the decision says so of the step at hand, unless another view began that. */
static void decided(struct sim_world *s, struct sim_proc *p, uint32_t epoch)
{
	const uint64_t step = hd_member_at(p->m) + !p->begun_here;

	p->decided = epoch;
	if (!hd_member_view(p->m))
		return;
	if (s->seen.epoch != epoch) {
		s->seen.epoch = epoch;
		s->seen.step = 0;
	}
	s->seen.step = step > s->seen.step ? step : s->seen.step;
}

static void check_prompt(struct sim_world *s, const struct sim_proc *p, const struct hd_view *view)
{
	if (view->epoch == s->seen.epoch && hd_member_at(p->m) > s->seen.step + 1)
		sim_bad(s, "prompt", "worker %u enters view %u with step %llu, all knew in step %llu",
			p->id, view->epoch, (unsigned long long)hd_member_at(p->m),
			(unsigned long long)s->seen.step);
}

static void left(struct sim_world *s, const struct sim_proc *p)
{
	const uint64_t more = p->drained_at ? hd_member_at(p->m) - p->drained_at : 0;

	if (p->drained_at)
		s->result->left[more < HD_SIM_LEFT ? more : HD_SIM_LEFT - 1]++;
}

static void check_window(struct sim_world *s, struct sim_proc *p, const struct hd_member_action *a)
{
	const bool has = p->ahead == a->step + 1 && p->ahead_epoch == p->epoch;
	if (p->vain_epoch == p->epoch)
		sim_bad(s, "window", "worker %u begins step %llu in epoch %u, where it began it in vain",
			p->id, (unsigned long long)a->step, p->epoch);
	struct sim_said *said = &s->said[a->step % (sizeof s->said / sizeof *s->said)];

	if (a->ahead != has)
		sim_bad(s, "window", "worker %u begins step %llu in epoch %u, %s", p->id,
			(unsigned long long)a->step, p->epoch, has ?
			"and does not count what it began of it" : "of which it began nothing that counts");
	if (said->step == a->step && said->epoch == p->epoch &&
		(said->ahead != a->ahead || said->goes_on != a->goes_on))
		sim_bad(s, "window", "worker %u begins step %llu in epoch %u other than its peers", p->id,
			(unsigned long long)a->step, p->epoch);
	s->result->again += said->step == a->step && said->epoch && said->epoch != p->epoch;
	*said = (struct sim_said){ a->step, p->epoch, a->ahead, a->goes_on };
	s->result->ahead += a->ahead;
	p->ahead = a->goes_on ? a->step + 2 : 0;
	p->ahead_epoch = p->epoch;
}

static void begin(struct sim_world *s, uint32_t slot, const struct hd_member_action *a, bool again)
{
	struct sim_proc *p = &s->proc[slot];

	p->begun_here = !again && (a->goes_on || a->ahead);
	p->nroots = 0;
	p->posted = true;
	p->posted_epoch = p->epoch;
	p->posted_step = a->step;
	memset(p->norm_here, 0, sizeof p->norm_here);
	memset(p->ratio_here, 0, sizeof p->ratio_here);
	if (!p->saving)
		p->want = 0;
	if (again) {
		if (!hd_member_exchange(p->m)->table)
			memset(p->table, 0, sizeof p->table);
		p->again_epoch = p->epoch;
		return;
	}
	if ((s->shape.nstages || s->lockstep) && p->again_epoch == p->epoch)
		sim_bad(s, "lists", "worker %u begins step %llu in epoch %u, in which it finished one", p->id,
			(unsigned long long)a->step, p->epoch);
	check_window(s, p, a);
	p->stuck = false;
	if (hd_view_is_doubled(hd_member_view(p->m)))
		sim_bad(s, "failover", "worker %u begins step %llu in a view with doubled ranks", p->id,
			(unsigned long long)a->step);
	if (a->fewer && sim_is_unfit(s, slot, hd_member_view(p->m))) {
		p->stuck = true;
		s->result->refused++;
		sim_after(s, slot, TASK_UNFIT, sim_ms(s, 0, 40), false,
			(struct sim_world_event){ .number = hd_member_view(p->m)->epoch });
	}
	check_gate(s, p, a->step);
	check_fresh(s, p, a->step);
	check_shadows(s, p);
	check_followers(s, p);
	memset(p->table, 0, sizeof p->table);
	p->table_full = false;
	memset(p->sum_here, 0, sizeof p->sum_here);
	memset(p->squared, 0, sizeof p->squared);
	memset(p->parm_here, 0, sizeof p->parm_here);
	memset(p->measured, 0, sizeof p->measured);
	memset(p->own_here, 0, sizeof p->own_here);
	memset(p->own_roots, 1, sizeof p->own_roots);
}

/* Of its shape a member says so at once: its devices may be in the middle of a pass. Of other stages it may
 * refuse; a joiner would end. */
static void prepare(struct sim_world *s, uint32_t slot, const struct hd_view *view)
{
	const struct hd_view *now = hd_member_view(s->proc[slot].m);
	const bool same = now && hd_view_same_shape(&now->shape, &view->shape);
	const bool unfit = now && now->shape.nstages && !same && sim_is_unfit(s, slot, view);

	s->result->refused += unfit;
	sim_after(s, slot, unfit ? TASK_UNFIT : TASK_PREPARE, same ? 0 : sim_ms(s, 1, 300), false,
		(struct sim_world_event){ .number = view->epoch });
}

static void take_over(struct sim_world *s)
{
	if (!s->co)
		sim_push(s, (struct sim_world_event){ .at = s->now + sim_ms(s, 10, 200),
			.kind = EV_CO_START, .number = 1 });
}

static void enter(struct sim_world *s, uint32_t slot, uint32_t epoch)
{
	struct sim_proc *p = &s->proc[slot];

	if (epoch <= p->epoch)
		sim_bad(s, "epoch", "worker %u goes from epoch %u to %u", p->id, p->epoch, epoch);
	if (hd_member_exchange(p->m)->table)
		p->table_full = true;
	if (sim_meets(s))
		(void)has_met(s, slot, hd_member_exchange(p->m)->step, p->epoch);
	p->epoch = epoch;
}

static void take_view(struct sim_world *s, struct sim_proc *p, const struct hd_view *view)
{
	check_prompt(s, p, view);
	adopt(s, p, view);
	s->result->heeded += p->unheard;
	p->unheard = false;
}

static void at_boundary(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];

	if (!a->flag && p->saving && p->want) {
		p->want = 0;
		p->saving = false;
		sim_after(s, slot, TASK_BOUNDARY, 0, true, (struct sim_world_event){ .step = a->step,
			.number = p->transfer });
	}
	sim_after(s, slot, TASK_BOUNDARY,
		a->flag && a->step % 5 == 0 ? sim_ms(s, 10, 100) : sim_ms(s, 0, 1), true,
		(struct sim_world_event){ .step = a->step, .pass = a->flag, .bucket = a->final,
		.number = p->transfer });
}

static void leave(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];

	sim_say(s, "worker %u exits with %u: %s", p->id, a->code, a->text);
	p->code = a->code;
	left(s, p);
	sim_end(s, slot, true);
}

/* Another one is started in its place. */
static void fenced(struct sim_world *s, uint32_t slot, const char *why)
{
	sim_say(s, "worker %u is fenced: %s", s->proc[slot].id, why);
	sim_end(s, slot, true);
	sim_start(s, sim_ms(s, 10, 200));
}

static void perform(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	const struct sim_world_event of_step = { .step = a->step };
	struct sim_proc *p = &s->proc[slot];

	if (HD_MEMBER_OF_EXCHANGE >> a->kind & 1 && hd_member_exchange(p->m)->step != a->step)
		sim_bad(s, "exchange", "worker %u: %s of step %llu, the exchange is of step %llu", p->id,
			hd_member_action_name(a->kind),
			(unsigned long long)a->step, (unsigned long long)hd_member_exchange(p->m)->step);
	switch (a->kind) {
	case HD_DO_SEND:
		sim_send_msg(s, slot, a->worker == HD_COORDINATOR ? SIM_CO : sim_slot(s, a->worker), a->msg);
		break;
	case HD_DO_CONNECT:   sim_connect(s, slot, sim_slot(s, a->worker)); break;
	case HD_DO_CALL:      sim_connect(s, slot, SIM_CO); break;
	case HD_DO_TAKE_OVER: take_over(s); break;
	case HD_DO_ADMITTED:
		p->id = a->worker;
		sim_close(s, slot, SIM_CO, true);
		break;
	case HD_DO_WARM_UP:
		sim_after(s, slot, TASK_WARM_UP, sim_ms(s, 10, 1500), true,
			(struct sim_world_event){ .step = 0 });
		break;
	case HD_DO_SYNC:      sim_sync(s, slot, a); break;
	case HD_DO_SEND_STATE: sim_send_state(s, p, slot, a->worker, a->flag); break;
	case HD_DO_PREPARE:   prepare(s, slot, a->view); break;
	case HD_DO_DECIDED:   decided(s, p, a->epoch); break;
	case HD_DO_EPOCH:     enter(s, slot, a->epoch); break;
	case HD_DO_ADOPT:     take_view(s, p, a->view); break;
	case HD_DO_STOP:      sim_stop(s, slot, a->step); break;
	case HD_DO_GO_ON:     sim_go_on(s, slot, a); break;
	case HD_DO_BEGIN:     begin(s, slot, a, false); break;
	case HD_DO_AGAIN:     begin(s, slot, a, true); break;
	case HD_DO_COMPUTE:
		if (!p->stuck)
			compute(s, slot, a);
		break;
	case HD_DO_ROOTS:     sim_send_roots(s, slot, a); break;
	case HD_DO_LEAVES:    sim_send_leaves(s, slot, a); break;
	case HD_DO_FOLD:      sim_fold(s, slot, a); break;
	case HD_DO_PUBLISH:   sim_publish(s, slot, a, SIM_SUM); break;
	case HD_DO_TABLE:     sim_publish(s, slot, a, SIM_TABLE); break;
	case HD_DO_NORM:      sim_send_part(s, slot, a, SIM_NORM); break;
	case HD_DO_PARM:      sim_send_part(s, slot, a, SIM_PARM); break;
	case HD_DO_RATIO:     sim_send_part(s, slot, a, SIM_RATIO); break;
	case HD_DO_FETCH:     sim_want_slots(s, slot, a->step, false, a->flag); break;
	case HD_DO_UPDATE:    sim_after(s, slot, TASK_UPDATE, sim_ms(s, 0, 10), true, of_step); break;
	case HD_DO_FINISH:    sim_after(s, slot, TASK_FINISH, sim_ms(s, 1, 20), true, of_step); break;
	case HD_DO_BOUNDARY:  at_boundary(s, slot, a); break;
	case HD_DO_CANCEL:
		p->run++;
		p->ahead = 0;
		break;
	case HD_DO_EXIT:      leave(s, slot, a); break;
	case HD_DO_FENCED:    fenced(s, slot, a->text); break;
	case HD_DO_NKINDS:    break;
	}
}

void sim_member(struct sim_world *s, uint32_t slot, const struct hd_member_event *event)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t gen = p->gen;

	if (!p->alive || !p->m)
		return;
	uint32_t before = hd_member_epoch(p->m);
	struct hd_member_actions todo = hd_member_step(p->m, event, s->now);
	if (s->line && event->kind != HD_IN_TICK)
		sim_say(s, "  worker %u: %s step %llu pass %u bucket %u from %u %s", p->id,
			hd_member_event_name(event->kind), (unsigned long long)event->step,
			event->pass, event->bucket, event->worker,
			event->msg ? hd_msg_name(event->msg->kind) : "");
	if (hd_member_epoch(p->m) < before)
		sim_bad(s, "epoch", "worker %u falls from epoch %u to %u", p->id, before,
			hd_member_epoch(p->m));
	for (size_t i = 0; i < todo.n && p->alive && p->gen == gen; i++) {
		const struct hd_member_action *a = &todo.at[i];
		if (s->line)
			sim_say(s, "    %s worker %u step %llu pass %u bucket %u epoch %u %s",
				hd_member_action_name(a->kind), a->worker,
				(unsigned long long)a->step,
				a->pass, a->bucket, a->epoch,
				a->msg ? hd_msg_name(a->msg->kind) : a->kind == HD_DO_SEND_STATE &&
				!a->flag ? "no more" : "");
		perform(s, slot, a);
		if (p->alive && p->gen == gen && p->id == s->dying && hd_member_view(p->m))
			sim_die(s, slot);
		if (p->alive && p->gen == gen && a->kind == HD_DO_PARM)
			sim_unchain(s, slot, a->bucket);
	}
	if (p->alive && p->gen == gen)
		sim_release_waiting(s, slot);
}

static void became_final(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->version != ev->step)
		return;
	sim_final(s, p, ev->pass, ev->bucket);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FINAL, .step = ev->step,
		.pass = ev->pass, .bucket = ev->bucket });
}

static void computed(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->version != ev->step || !may_end(s, slot, ev))
		return;
	for (uint32_t b = 0; b < s->nbuckets; b++)
		sim_final(s, p, ev->pass, b);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = ev->step,
		.pass = ev->pass });
}

static void squared(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->version != ev->step || !p->sum_here[ev->bucket])
		return;
	p->squared[ev->bucket] = true;
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SQUARED, .step = ev->step,
		.bucket = ev->bucket });
}

static void folded(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];

	p->sum_here[ev->bucket] = p->squared[ev->bucket] = true;
	p->own_roots[ev->bucket] = false;
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FOLDED, .step = ev->step,
		.bucket = ev->bucket });
	sim_may_early(s, slot);
}

static void loaded(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from != HD_NOBODY || hd_member_state(p->m) != HD_SYNCING)
		return;
	p->has_state = true;
	p->version = ev->step;
	p->tag = s->saved_tag[ev->step] ? s->saved_tag[ev->step] : sim_tag(s, ev->step);
	if (p->tag != sim_tag(s, ev->step) && s->known && !s->escaped)
		sim_bad(s, "corrupt", "worker %u loads an X_%llu that is wrong", p->id,
			(unsigned long long)ev->step);
	s->escaped |= p->tag != sim_tag(s, ev->step);
	p->known_tag = p->tag;
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		p->slot[b] = ev->step + 1;
		p->bad[b] = p->bad_said[b] = 0;
	}
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = ev->step });
}

/* Tasks of a step: void when that is cancelled. */
static bool is_of_step(enum sim_task task)
{
	const uint32_t of_step = 1u << TASK_FINAL | 1u << TASK_BROUGHT | 1u << TASK_COMPUTED |
		1u << TASK_FOLDED | 1u << TASK_SQUARED | 1u << TASK_STOPPED | 1u << TASK_STUCK |
		1u << TASK_EARLY;

	return of_step >> task & 1;
}

void sim_task(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	const enum sim_task task = (enum sim_task)ev->what;
	struct sim_proc *p = &s->proc[slot];

	if (!p->alive || p->gen != ev->gen || (is_of_step(task) && p->run != ev->run))
		return;
	switch (task) {
	case TASK_WARM_UP:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_WARMED_UP });
		break;
	case TASK_FINAL:      became_final(s, slot, ev); break;
	case TASK_BROUGHT:
		p->brought = ev->step + 1;
		p->brought_epoch = (uint32_t)ev->number;
		break;
	case TASK_COMPUTED:   computed(s, slot, ev); break;
	case TASK_SQUARED:    squared(s, slot, ev); break;
	case TASK_FOLDED:     folded(s, slot, ev); break;
	case TASK_EARLY:      sim_new_early(s, slot, ev->step, ev->bucket); break;
	case TASK_STOPPED:    sim_stand(s, slot, ev->step); break;
	case TASK_STUCK:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_STUCK, .step = ev->step });
		break;
	case TASK_UNFIT:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_UNFIT,
			.epoch = (uint32_t)ev->number, .text = "no memory" });
		break;
	case TASK_FEED:       sim_feed(s, slot, false); break;
	case TASK_UPDATE:     sim_update(s, slot, ev->step); break;
	case TASK_FINISH:     sim_finish(s, slot, ev->step); break;
	case TASK_BOUNDARY:   boundary(s, slot, ev); break;
	case TASK_PREPARE:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_PREPARED,
			.epoch = (uint32_t)ev->number });
		break;
	case TASK_LOADED:     loaded(s, slot, ev); break;
	}
}
