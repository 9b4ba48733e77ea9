#include "protocol/simulation_int.h"

#include <string.h>

/* The runtime's twin of one worker: carries out what its member machine asks for, with integers for
 * gradients. */

enum task { TASK_WARM_UP, TASK_FINAL, TASK_BROUGHT, TASK_COMPUTED,
	TASK_FOLDED, TASK_FINISH, TASK_BOUNDARY, TASK_PREPARE,
	TASK_LOADED, TASK_FEED, TASK_UPDATE, TASK_SQUARED };

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/* X_s of this job: a chain, so that a state of another step or of a skipped one has another tag. */
uint64_t sim_tag(struct sim_world *s, uint64_t step)
{
	if (!s->tag[0])
		s->tag[0] = mix(s->seed + 1) | 1;
	if (step > SIM_STEPS) {
		sim_bad(s, "state", "step %llu", (unsigned long long)step);
		return 0;
	}
	for (uint64_t i = 1; i <= step; i++)
		if (!s->tag[i])
			s->tag[i] = mix(s->tag[i - 1] + s->full) | 1;
	return s->tag[step];
}

/* A state that was corrupted is not what it should be; that others see it is what is checked then. */
static bool is_tag(struct sim_world *s, uint64_t tag, uint64_t step) { return s->spoiled ||
	tag == sim_tag(s, step);
	}

void sim_hear(struct sim_world *s, struct sim_heard *heard, const struct hd_msg *msg)
{
	uint64_t next = msg->seal.step + 1, tag = msg->seal.state_digest;

	if (msg->kind != HD_MSG_SEAL || !msg->seal.ran || !tag)
		return;
	if (heard->of[next & 1].next == next && heard->of[next & 1].tag != tag && !heard->torn_ns)
		heard->torn_ns = s->now;
	if (heard->of[next & 1].next < next) {
		heard->of[next & 1].next = next;
		heard->of[next & 1].tag = tag;
	}
}

static uint64_t units_of(const struct hd_vrange *range, uint32_t n)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t v = range[i].first; v < range[i].first + range[i].n; v++)
			units += UINT64_C(1) << 4 * v;
	return units;
}

static uint64_t units_of_root(const struct sim_world *s, struct hd_tnode node)
{
	uint32_t first, end;

	hd_tree_cover(s->nvns, node, &first, &end);
	return units_of(&(struct hd_vrange){ first, end - first }, 1);
}

static void task(struct sim_world *s, uint32_t slot, enum task kind, int64_t in_ns, bool serial,
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

static int64_t ms(struct sim_world *s, uint32_t from, uint32_t to) { return (int64_t)(from * 1000 + sim_rnd(s,
	(to - from) * 1000 + 1)) * 1000; }

/* Roots of all own passes, in ordinal order. */
static uint32_t roots_of(struct sim_world *s, const struct hd_passes *passes, uint32_t worker,
	struct hd_tnode *root, uint32_t *first)
{
	uint32_t n = 0;

	if (hd_passes_roots(passes, s->nvns, worker, root, HD_VIEW_ROOTS, first, &n))
		sim_bad(s, "roots", "worker %u has too many", worker);
	return n;
}

static void compute(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	int64_t length = s->step_ns / 2 + (int64_t)sim_rnd(s, (uint64_t)s->step_ns);

	p->pass_units[a->pass] = units_of(a->range, a->nranges);
	p->pass_stage[a->pass] = a->stage;
	for (uint32_t b = 0; b < s->nbuckets && s->shape.nstages; b++)
		if (s->bucket[b].readers >> a->stage & 1 && p->slot[b] != a->step + 1)
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
	if (s->lockstep)
		task(s, slot, TASK_BROUGHT, from - s->now + length / 2, false,
			(struct sim_world_event){ .step = a->step, .number = p->epoch });
	for (uint32_t b = 0; b < s->nbuckets && !s->lockstep; b++)
		if (sim_rnd(s, 4))
			task(s, slot, TASK_FINAL, from - s->now + length *
				(int64_t)(s->nbuckets - b) / (int64_t)(s->nbuckets + 1), false,
				(struct sim_world_event){ .pass = a->pass, .bucket = b, .step = a->step });
	task(s, slot, TASK_COMPUTED, length, true,
		(struct sim_world_event){ .pass = a->pass, .step = a->step, .number = p->epoch });
}

/* In lockstep: is here what all others of the step bring? Letters of an earlier epoch come no more. */
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
	if (!s->lockstep || has_met(s, slot, ev->step, (uint32_t)ev->number))
		return true;
	if (s->proc[slot].epoch == ev->number)
		task(s, slot, TASK_COMPUTED, ms(s, 2, 20), true,
			(struct sim_world_event){ .pass = ev->pass, .step = ev->step, .number = ev->number });
	return false;
}

static void final(struct sim_world *s, struct sim_proc *p, uint32_t pass, uint32_t bucket)
{
	(void)s;
	if (p->own_here[pass][bucket])
		return;
	p->own_here[pass][bucket] = true;
	p->own[pass][bucket] = (struct sim_val){ p->pass_units[pass], p->tag };
}

static void send_roots(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint32_t first[HD_MAX_PASSES + 1];

	roots_of(s, &hd_member_exchange(p->m)->passes, p->id, root, first);
	if (!p->own_here[a->pass][a->bucket] || !p->own_roots[a->bucket])
		sim_bad(s, "roots", "worker %u sends roots of bucket %u that %s", p->id, a->bucket,
			p->own_roots[a->bucket] ? "are not final" : "the sum overwrote");
	for (uint32_t o = first[a->pass]; o < first[a->pass + 1]; o++)
		sim_send(s, slot, sim_slot(s, a->worker), &(struct sim_packet){ .kind = SIM_ROOT,
			.epoch = p->epoch, .from = p->id, .ordinal = o,
			.bucket = a->bucket,
			.step = a->step, .val = { units_of_root(s, root[o]),
			p->own[a->pass][a->bucket].tag } });
}

static void check_sum(struct sim_world *s, const struct sim_proc *p, uint64_t step, uint32_t bucket,
	struct sim_val val)
{
	if (val.units != s->full || !is_tag(s, val.tag, step))
		sim_bad(s, "once", "worker %u has %016llx of %016llx in bucket %u of step %llu%s", p->id,
			(unsigned long long)val.units,
			(unsigned long long)s->full,
			bucket, (unsigned long long)step, val.tag == sim_tag(s, step) ? "" :
			", of another state");
}

/* Of several states, a sum is of another than all: the same wherever and in whatever parts it is added. */
struct sim_total { struct sim_val val; uint64_t mixed; bool several; };

static void add(struct sim_world *s, const struct sim_proc *p, struct sim_total *sum, struct sim_val val)
{
	sum->val.units += val.units;
	sum->mixed += mix(val.tag) * (uint64_t)__builtin_popcountll(val.units);
	sum->several |= sum->val.tag && sum->val.tag != val.tag;
	if (sum->several && !s->spoiled)
		sim_bad(s, "once", "worker %u adds of two states", p->id);
	sum->val.tag = val.tag;
}

/* Every root by name: own ones are kept per pass, others as they came. */
static void fold(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_exchange *x = hd_member_exchange(p->m);
	struct sim_total sum = { { 0, 0 }, 0, false };

	for (uint32_t i = 0; i < x->passes.npasses; i++) {
		const struct hd_pass *pass = &x->passes.pass[i];
		if (pass->worker == p->id && hd_exchange_makes(x, pass, a->bucket)) {
			if (!p->own_here[pass->pass][a->bucket] || !p->own_roots[a->bucket])
				sim_bad(s, "roots", "worker %u folds bucket %u without its own pass %u",
					p->id, a->bucket, pass->pass);
			add(s, p, &sum, p->own[pass->pass][a->bucket]);
		}
	}
	for (uint32_t i = 0; i < p->nroots; i++)
		if (p->root[i].bucket == a->bucket)
			add(s, p, &sum, p->root[i].val);
	if (sum.several)
		sum.val.tag = mix(sum.mixed) | 1;
	check_sum(s, p, a->step, a->bucket, sum.val);
	p->sum[a->bucket] = sum.val;
	task(s, slot, TASK_FOLDED, ms(s, 0, 2), false, (struct sim_world_event){ .bucket = a->bucket,
		.step = a->step });
}

/* Entries of a stage; are all there of each, once? */
static uint64_t own_table(const struct sim_proc *p, uint32_t stage)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);
	uint64_t units = p->table[stage];

	for (uint32_t i = 0; i < x->passes.npasses; i++)
		if (x->passes.pass[i].worker == p->id && x->passes.pass[i].stage == stage &&
			x->leaf[i / 64] >> i % 64 & 1)
			units += p->pass_units[x->passes.pass[i].pass];
	return units;
}

static bool has_table(const struct sim_world *s, const struct sim_proc *p)
{
	uint32_t nstages = s->shape.nstages ? s->shape.nstages : 1;

	for (uint32_t k = 0; k < nstages; k++)
		if (!p->table_full && own_table(p, k) != s->full)
			return false;
	return true;
}

static void publish(struct sim_world *s, uint32_t slot, const struct hd_member_action *a, enum sim_kind kind)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);

	if (kind == SIM_SUM && !p->sum_here[a->bucket])
		sim_bad(s, "roots", "worker %u publishes bucket %u of step %llu without its sum", p->id,
			a->bucket, (unsigned long long)a->step);
	if (kind == SIM_TABLE && !has_table(s, p))
		sim_bad(s, "roots", "worker %u publishes a table with holes", p->id);
	for (uint32_t i = 0; i < view->nmembers; i++)
		if (a->mask >> i & 1)
			sim_send(s, slot, sim_slot(s, view->member[i]),
				&(struct sim_packet){ .kind = kind, .epoch = p->epoch, .from = p->id,
				.bucket = a->bucket,
				.step = a->step, .val = kind == SIM_SUM ? p->sum[a->bucket] :
				(struct sim_val){ s->full, 0 } });
}

static void send_leaves(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);

	for (uint32_t i = 0; i < view->nmembers; i++)
		if (view->member[i] != p->id)
			sim_send(s, slot, sim_slot(s, view->member[i]),
				&(struct sim_packet){ .kind = SIM_LEAVES, .epoch = p->epoch, .from = p->id,
				.pass = a->pass, .bucket = p->pass_stage[a->pass],
				.step = a->step, .val = { p->pass_units[a->pass], p->tag } });
}

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
static void feed(struct sim_world *s, uint32_t slot, bool boundary)
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
		feed(s, slot, false);
}

/* ---- sharded state ---- */

static void send_part(struct sim_world *s, uint32_t slot, const struct hd_member_action *a,
	enum sim_kind kind)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_view *view = hd_member_view(p->m);

	if (!(kind == SIM_NORM ? p->squared : p->parm_here)[a->bucket])
		sim_bad(s, "slots", "worker %u sends of bucket %u of step %llu what it has not", p->id,
			a->bucket, (unsigned long long)a->step);
	for (uint32_t i = 0; i < view->nmembers; i++)
		if (a->mask >> i & 1)
			sim_send(s, slot, sim_slot(s, view->member[i]),
				&(struct sim_packet){ .kind = kind, .epoch = p->epoch, .from = p->id,
				.bucket = a->bucket, .step = a->step,
				.val = { s->full, sim_tag(s, a->step) } });
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

static void want_slots(struct sim_world *s, uint32_t slot, uint64_t step, bool all)
{
	struct sim_proc *p = &s->proc[slot];

	p->want = 0;
	p->want_step = step;
	p->want_epoch = p->epoch;
	p->saving = all;
	for (uint32_t b = 0; b < s->nbuckets; b++)
		if ((all || hd_exchange_chained(hd_member_exchange(p->m), b)) &&
			!hd_member_has_slots(p->m, b)) {
			p->want |= 1u << b;
			s->result->fetches++;
		}
	ask_slots(s, slot);
}

static void give_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];
	uint32_t to = sim_slot(s, k->from);

	if (hd_member_at(p->m) != k->step || !hd_member_has_slots(p->m, k->bucket) || to >= SIM_PROCS)
		return;
	if (p->slot[k->bucket] != k->step + 1)
		sim_bad(s, "slots", "worker %u is to have those of X_%llu of bucket %u, and has of %llu",
			p->id, (unsigned long long)k->step, k->bucket,
			(unsigned long long)p->slot[k->bucket]);
	sim_send(s, slot, to, &(struct sim_packet){ .kind = SIM_SLOT, .from = p->id, .bucket = k->bucket,
		.step = k->step });
}

static void saved(struct sim_world *s, uint32_t slot);

static void take_slot(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
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
	if (!p->saving) {
		p->slot[k->bucket] = k->step + 1;
		p->slot_ns[k->bucket] = s->now;
	}
	if (p->want)
		return;
	if (p->saving)
		saved(s, slot);
	else
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FETCHED, .step = p->want_step,
			.epoch = p->want_epoch });
}

/* A worker that updates knows that each sum is at all the members that are to have it. */
static void check_proof(struct sim_world *s, const struct sim_proc *p, uint64_t step)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);
	const struct hd_view *view = hd_member_view(p->m);

	for (uint32_t b = 0; b < s->nbuckets; b++)
		for (uint32_t i = 0; i < view->nmembers && x->nmembers == view->nmembers; i++) {
			uint32_t slot = x->chain[b] >> i & 1 ? sim_slot(s, view->member[i]) : SIM_ENDS;
			const struct sim_proc *q = slot < SIM_PROCS ? &s->proc[slot] : NULL;
			if (q && q != p && !p->sum_here[b] && q->epoch == p->epoch && q->version == step &&
				q->m &&
				hd_member_exchange(q->m)->step == step && !q->sum_here[b])
				sim_bad(s, "proof",
					"worker %u updates in step %llu, and %u lacks the sum of bucket %u",
					p->id, (unsigned long long)step, q->id, b);
		}
}

static void update(struct sim_world *s, uint32_t slot, uint64_t step)
{
	struct sim_proc *p = &s->proc[slot];
	const struct hd_exchange *x = hd_member_exchange(p->m);

	check_proof(s, p, step);
	memcpy(p->squared, p->sum_here, sizeof p->squared);
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		if (!p->norm_here[b] && !p->sum_here[b])
			sim_bad(s, "slots",
				"worker %u updates in step %llu without the sums of squares of %u", p->id,
				(unsigned long long)step, b);
		if (!hd_exchange_chained(x, b)) {
			p->slot[b] = 0;
			continue;
		}
		if (!p->sum_here[b])
			sim_bad(s, "slots", "worker %u updates bucket %u in step %llu without its sum", p->id,
				b, (unsigned long long)step);
		check_sum(s, p, step, b, p->sum[b]);
		if (p->slot[b] != step + 1)
			sim_bad(s, "slots", "worker %u brings bucket %u of step %llu on from slots of %llu",
				p->id, b, (unsigned long long)step,
				(unsigned long long)p->slot[b]);
		p->slot[b] = step + 2;
		p->parm_here[b] = true;
	}
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_UPDATED_OWN, .step = step });
}

static void finish_sharded(struct sim_world *s, struct sim_proc *p, uint64_t step)
{
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		const struct hd_exchange *x = hd_member_exchange(p->m);
		bool chained = hd_exchange_chained(x, b), reads = x->held.param[b] >> x->me & 1;
		if ((reads && !p->parm_here[b]) || (chained && p->slot[b] != step + 2))
			sim_bad(s, "slots", "worker %u finishes step %llu without bucket %u", p->id,
				(unsigned long long)step, b);
		if (!chained)
			p->slot[b] = 0;
	}
}

/* Own stages from their sums, with the norms of all others. */
static void finish_stages(struct sim_world *s, struct sim_proc *p, uint64_t step)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);

	check_proof(s, p, step);
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		if (!p->norm_here[b] && !p->sum_here[b])
			sim_bad(s, "stages", "worker %u finishes step %llu without the sums of squares of %u",
				p->id, (unsigned long long)step, b);
		if (!hd_exchange_chained(x, b)) {
			p->slot[b] = 0;
			continue;
		}
		if (!p->sum_here[b] || p->slot[b] != step + 1)
			sim_bad(s, "stages", "worker %u brings bucket %u of X_%lld to step %llu %s its sum",
				p->id, b, (long long)p->slot[b] - 1, (unsigned long long)step,
				p->sum_here[b] ? "with" : "without");
		check_sum(s, p, step, b, p->sum[b]);
		p->slot[b] = step + 2;
	}
}

static void finish(struct sim_world *s, uint32_t slot, uint64_t step)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_step_news news = { .loss_sum = (double)step, .samples = 1,
		.has_digest = (step + 1) % s->digest_every == 0 };
	uint64_t foreign = 0;             /* what of the sums came of other states */

	memcpy(p->squared, p->sum_here, sizeof p->squared);
	if (s->copies)
		finish_sharded(s, p, step);
	else if (s->shape.nstages)
		finish_stages(s, p, step);
	for (uint32_t b = 0; b < s->nbuckets && !sim_partial(s); b++) {
		if (!p->sum_here[b])
			sim_bad(s, "once", "worker %u finishes step %llu without the sum of bucket %u", p->id,
				(unsigned long long)step, b);
		check_sum(s, p, step, b, p->sum[b]);
		if (p->sum[b].tag != p->tag)
			foreign = mix(foreign + p->sum[b].tag + b);
	}
	if (!has_table(s, p))
		sim_bad(s, "once", "worker %u finishes step %llu with table %016llx", p->id,
			(unsigned long long)step, (unsigned long long)own_table(p, 0));
	if (p->version != step || !is_tag(s, p->tag, step))
		sim_bad(s, "state", "worker %u updates X_%llu in step %llu", p->id,
			(unsigned long long)p->version, (unsigned long long)step);
	p->table_full = true;
	p->version = step + 1;
	p->ran = p->ran ? p->ran : step + 1;
	p->tag = mix(p->tag + s->full + foreign) | 1;
	p->known_tag = news.has_digest ? p->tag : 0;
	memcpy(&news.digest, &p->known_tag, sizeof p->known_tag);
	sim_hear(s, &p->heard, &(struct hd_msg){ .kind = HD_MSG_SEAL,
		.seal = { .step = step, .ran = true, .state_digest = p->known_tag } });
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_UPDATED, .step = step, .news = &news,
		.sum_digest = p->known_tag,
		.state_digest = p->known_tag });
}

static void boundary(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];
	bool writer = ev->pass, last = ev->bucket;

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
	if (saves && sim_partial(s))
		want_slots(s, slot, ev->step, true);
	if (!saves || !sim_partial(s) || !p->want)
		saved(s, slot);
}

static void saved(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];
	const struct sim_world_event ev = p->save;
	bool writer = ev.pass, last = ev.bucket;

	if (writer && (last || ev.step % 5 == 0) && p->known_tag && p->tag != p->known_tag) {
		sim_say(s, "worker %u is to save another state than it sealed", p->id);
		sim_end(s, slot, true);
		return;
	}
	if (writer && (last || ev.step % 5 == 0) && ev.step > s->ckpt) {
		s->ckpt = ev.step;
		s->saved_tag[ev.step] = p->tag;
	}
	feed(s, slot, true);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_READY, .step = ev.step, .halt = writer &&
		ev.step == s->halt_at });
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
	if (s->shape.nstages && view->shape.nstages != s->shape.nstages)
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

static void release_waiting(struct sim_world *s, uint32_t slot);

static void begin(struct sim_world *s, uint32_t slot, const struct hd_member_action *a, bool again)
{
	struct sim_proc *p = &s->proc[slot];

	p->nroots = 0;
	p->posted = true;
	p->posted_epoch = p->epoch;
	p->posted_step = a->step;
	memset(p->norm_here, 0, sizeof p->norm_here);
	if (!p->saving)
		p->want = 0;
	if (again) {
		if (!hd_member_exchange(p->m)->table)
			memset(p->table, 0, sizeof p->table);
		return;
	}
	check_gate(s, p, a->step);
	check_fresh(s, p, a->step);
	memset(p->table, 0, sizeof p->table);
	p->table_full = false;
	memset(p->sum_here, 0, sizeof p->sum_here);
	memset(p->squared, 0, sizeof p->squared);
	memset(p->parm_here, 0, sizeof p->parm_here);
	memset(p->own_here, 0, sizeof p->own_here);
	memset(p->own_roots, 1, sizeof p->own_roots);
}

static void send_state(struct sim_world *s, struct sim_proc *p, uint32_t slot, uint32_t joiner, bool on)
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
	task(s, slot, TASK_FEED, 0, true, (struct sim_world_event){ .step = 0 });
}

/* A joiner asks its source when SYNC comes and when they connect; the source then starts over. */
static void want(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];

	sim_send(s, slot, sim_slot(s, p->synced_from), &(struct sim_packet){ .kind = SIM_WANT, .from = p->id,
		.transfer = p->transfer });
}

static void sync(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
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
		task(s, slot, TASK_LOADED, ms(s, 5, 300), true, (struct sim_world_event){ .step = a->step });
	else
		want(s, slot);
}

static void perform(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];

	if (HD_MEMBER_OF_EXCHANGE >> a->kind & 1 && hd_member_exchange(p->m)->step != a->step)
		sim_bad(s, "exchange", "worker %u: %s of step %llu, the exchange is of step %llu", p->id,
			hd_member_action_name(a->kind),
			(unsigned long long)a->step, (unsigned long long)hd_member_exchange(p->m)->step);
	switch (a->kind) {
	case HD_DO_SEND:      sim_send_msg(s, slot, a->worker == HD_COORDINATOR ? SIM_CO :
		sim_slot(s, a->worker),
		a->msg); break;
	case HD_DO_CONNECT:   sim_connect(s, slot, sim_slot(s, a->worker)); break;
	case HD_DO_CALL:      sim_connect(s, slot, SIM_CO); break;
	case HD_DO_TAKE_OVER:
		if (!s->co)
			sim_push(s, (struct sim_world_event){ .at = s->now + ms(s, 10, 200),
			.kind = EV_CO_START,
				.number = 1 });
		break;
	case HD_DO_ADMITTED:
		p->id = a->worker;
		sim_close(s, slot, SIM_CO, true);
		break;
	case HD_DO_WARM_UP:      task(s, slot, TASK_WARM_UP, ms(s, 10, 1500), true,
		(struct sim_world_event){ .step = 0 }); break;
	case HD_DO_SYNC:     sync(s, slot, a); break;
	case HD_DO_SEND_STATE:    send_state(s, p, slot, a->worker, a->flag); break;
	case HD_DO_PREPARE:   task(s, slot, TASK_PREPARE, ms(s, 1, 300), false,
		(struct sim_world_event){ .number = a->view->epoch }); break;
	case HD_DO_DECIDED:   p->decided = a->epoch; break;
	case HD_DO_EPOCH:
		if (a->epoch <= p->epoch)
			sim_bad(s, "epoch", "worker %u goes from epoch %u to %u", p->id, p->epoch, a->epoch);
		if (hd_member_exchange(p->m)->table)
			p->table_full = true;
		if (s->lockstep)
			(void)has_met(s, slot, hd_member_exchange(p->m)->step, p->epoch);
		p->epoch = a->epoch;
		break;
	case HD_DO_ADOPT:
		adopt(s, p, a->view);
		s->result->heeded += p->unheard;
		p->unheard = false;
		break;
	case HD_DO_BEGIN:     begin(s, slot, a, false); break;
	case HD_DO_AGAIN:     begin(s, slot, a, true); break;
	case HD_DO_COMPUTE:   compute(s, slot, a); break;
	case HD_DO_ROOTS:     send_roots(s, slot, a); break;
	case HD_DO_LEAVES:    send_leaves(s, slot, a); break;
	case HD_DO_FOLD:      fold(s, slot, a); break;
	case HD_DO_PUBLISH:   publish(s, slot, a, SIM_SUM); break;
	case HD_DO_TABLE:     publish(s, slot, a, SIM_TABLE); break;
	case HD_DO_NORM:      send_part(s, slot, a, SIM_NORM); break;
	case HD_DO_PARM:      send_part(s, slot, a, SIM_PARM); break;
	case HD_DO_FETCH:     want_slots(s, slot, a->step, false); break;
	case HD_DO_UPDATE:    task(s, slot, TASK_UPDATE, ms(s, 0, 10), true,
		(struct sim_world_event){ .step = a->step }); break;
	case HD_DO_FINISH:    task(s, slot, TASK_FINISH, ms(s, 1, 20), true,
		(struct sim_world_event){ .step = a->step }); break;
	case HD_DO_BOUNDARY:
		task(s, slot, TASK_BOUNDARY, a->flag && a->step % 5 == 0 ? ms(s, 10, 100) : ms(s, 0, 1), true,
			(struct sim_world_event){ .step = a->step, .pass = a->flag, .bucket = a->final,
			.number = p->transfer });
		break;
	case HD_DO_CANCEL:    p->run++; break;
	case HD_DO_EXIT:
		sim_say(s, "worker %u exits with %u: %s", p->id, a->code, a->text);
		p->code = a->code;
		sim_end(s, slot, true);
		break;
	case HD_DO_FENCED:
		sim_say(s, "worker %u is fenced: %s", p->id, a->text);
		sim_end(s, slot, true);
		sim_start(s, ms(s, 10, 200));
		break;
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
	}
	if (p->alive && p->gen == gen)
		release_waiting(s, slot);
}

void sim_task(struct sim_world *s, uint32_t slot, const struct sim_world_event *ev)
{
	struct sim_proc *p = &s->proc[slot];
	bool of_step = ev->what == TASK_FINAL || ev->what == TASK_BROUGHT || ev->what == TASK_COMPUTED ||
		ev->what == TASK_FOLDED || ev->what == TASK_SQUARED;

	if (!p->alive || p->gen != ev->gen || (of_step && p->run != ev->run))
		return;
	switch ((enum task)ev->what) {
	case TASK_WARM_UP:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_WARMED_UP });
		break;
	case TASK_FINAL:
		if (p->version != ev->step)
			break;
		final(s, p, ev->pass, ev->bucket);
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FINAL, .step = ev->step,
			.pass = ev->pass, .bucket = ev->bucket });
		break;
	case TASK_BROUGHT:
		p->brought = ev->step + 1;
		p->brought_epoch = (uint32_t)ev->number;
		break;
	case TASK_COMPUTED:
		if (p->version != ev->step || !may_end(s, slot, ev))
			break;
		for (uint32_t b = 0; b < s->nbuckets; b++)
			final(s, p, ev->pass, b);
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_COMPUTED, .step = ev->step,
			.pass = ev->pass });
		break;
	case TASK_SQUARED:
		if (p->version != ev->step || !p->sum_here[ev->bucket])
			break;
		p->squared[ev->bucket] = true;
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SQUARED, .step = ev->step,
			.bucket = ev->bucket });
		break;
	case TASK_FOLDED:
		p->sum_here[ev->bucket] = p->squared[ev->bucket] = true;
		p->own_roots[ev->bucket] = false;
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_FOLDED, .step = ev->step,
			.bucket = ev->bucket });
		break;
	case TASK_FEED:       feed(s, slot, false); break;
	case TASK_UPDATE:     update(s, slot, ev->step); break;
	case TASK_FINISH:     finish(s, slot, ev->step); break;
	case TASK_BOUNDARY:   boundary(s, slot, ev); break;
	case TASK_PREPARE:
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_PREPARED,
			.epoch = (uint32_t)ev->number });
		break;
	case TASK_LOADED:
		if (p->synced_from != HD_NOBODY || hd_member_state(p->m) != HD_SYNCING)
			break;
		p->has_state = true;
		p->version = ev->step;
		p->tag = s->saved_tag[ev->step] ? s->saved_tag[ev->step] : sim_tag(s, ev->step);
		if (p->tag != sim_tag(s, ev->step) && s->known && !s->escaped)
			sim_bad(s, "corrupt", "worker %u loads an X_%llu that is wrong", p->id,
				(unsigned long long)ev->step);
		s->escaped |= p->tag != sim_tag(s, ev->step);
		p->known_tag = p->tag;
		for (uint32_t b = 0; b < s->nbuckets; b++)
			p->slot[b] = ev->step + 1;
		sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = ev->step });
		break;
	}
}

/* ---- what the wire brings ---- */

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

/* Of the requested stream, in order. What is further on is of a source that started over: in the runtime
 * the numbers of chunks show it, and the source closes the link. */
static void snap(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k)
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
	p->version = k->step;
	p->tag = p->known_tag = k->val.tag;
	if (!is_tag(s, p->tag, p->version))
		sim_bad(s, "state", "joiner %u has another X_%llu", p->id, (unsigned long long)p->version);
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNCED, .step = p->version });
}

/* The piece that says so may change the state, for all that the runtime knows when it comes: it is not
 * whole. */
static void over(struct sim_world *s, uint32_t slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from != k->from || p->transfer != k->transfer || hd_member_state(p->m) != HD_SYNCING)
		return;
	p->synced_from = HD_NOBODY - 1;
	s->result->unheard += !p->unheard;
	p->unheard = true;
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_SYNC_LOST, .slow = true });
}

static void take(struct sim_world *s, uint32_t slot, uint32_t from_slot, const struct sim_packet *k)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_member_event ev = { .epoch = k->epoch, .worker = k->from, .step = k->step, .pass = k->pass,
		.ordinal = k->ordinal, .bucket = k->bucket };
	struct hd_msg msg;

	switch (k->kind) {
	case SIM_SEND:
		hd_arena_reset(&s->scratch);
		if (hd_msg_decode(&msg, k->msg_kind, k->bytes, k->len, &s->scratch, NULL)) {
			sim_bad(s, "message", "%s cannot be read",
				hd_msg_name((enum hd_msg_kind)k->msg_kind));
			return;
		}
		sim_hear(s, &p->heard, &msg);
		ev.kind = HD_IN_MESSAGE;
		ev.msg = &msg;
		ev.worker = from_slot == SIM_CO ? HD_COORDINATOR : k->from;
		sim_member(s, slot, &ev);
		return;
	case SIM_ROOT:
		if (p->nroots < SIM_ROOTS * SIM_BUCKETS) {
			p->root[p->nroots].worker = k->from;
			p->root[p->nroots].ordinal = k->ordinal;
			p->root[p->nroots].bucket = k->bucket;
			p->root[p->nroots++].val = k->val;
		}
		ev.kind = HD_IN_ROOT;
		break;
	case SIM_SUM:
		check_sum(s, p, k->step, k->bucket, k->val);
		p->sum[k->bucket] = k->val;
		p->sum_here[k->bucket] = true;
		p->own_roots[k->bucket] = false;
		ev.kind = HD_IN_SUM;
		task(s, slot, TASK_SQUARED, ms(s, 0, 5), false,
			(struct sim_world_event){ .step = k->step, .bucket = k->bucket });
		break;
	case SIM_LEAVES:
		if (!is_tag(s, k->val.tag, k->step))
			sim_bad(s, "once", "table entries of another state from %u", k->from);
		p->table[k->bucket] += k->val.units;
		ev.kind = HD_IN_LEAVES;
		break;
	case SIM_TABLE:
		p->table_full = true;
		ev.kind = HD_IN_TABLE;
		break;
	case SIM_NORM:
		p->norm_here[k->bucket] = true;
		ev.kind = HD_IN_NORM;
		break;
	case SIM_PARM:
		if (hd_exchange_chained(hd_member_exchange(p->m), k->bucket))
			sim_bad(s, "slots", "worker %u is sent bucket %u, which it makes", p->id, k->bucket);
		p->parm_here[k->bucket] = true;
		p->own_roots[k->bucket] = false;
		ev.kind = HD_IN_PARM;
		break;
	case SIM_ASK_SLOT:
		give_slot(s, slot, k);
		return;
	case SIM_SLOT:
		take_slot(s, slot, k);
		return;
	case SIM_SNAP:
		snap(s, slot, from_slot, k);
		return;
	case SIM_OVER:
		over(s, slot, k);
		return;
	case SIM_WANT:
		p->asked[from_slot] = k->transfer;
		task(s, slot, TASK_FEED, 0, true, (struct sim_world_event){ .step = 0 });
		return;
	}
	sim_member(s, slot, &ev);
}

static void release_waiting(struct sim_world *s, uint32_t slot)
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

/* Now and then, as the runtime does: what is still wanted. */
void sim_ask_again(struct sim_world *s, uint32_t slot)
{
	const struct sim_proc *p = &s->proc[slot];

	if (p->alive && p->m && sim_partial(s) && p->synced_from < HD_NOBODY - 1 &&
		hd_member_state(p->m) == HD_SYNCING && !p->has_state)
		want(s, slot);
	ask_slots(s, slot);
}

void sim_peer_up(struct sim_world *s, uint32_t slot, uint32_t other)
{
	struct sim_proc *p = &s->proc[slot];

	if (p->synced_from == s->proc[other].id && hd_member_state(p->m) == HD_SYNCING && !p->has_state)
		want(s, slot);
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
