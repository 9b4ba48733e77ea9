#include "protocol/simulation_worker.h"

#include <string.h>

/* What a worker computes with: states, partial sums, sums, proofs and checkpoints, as integers. */

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
bool sim_is_tag(struct sim_world *s, uint64_t tag, uint64_t step) { return s->spoiled ||
	tag == sim_tag(s, step);
	}

void sim_hear(struct sim_world *s, struct sim_heard *heard, const struct hd_msg *msg)
{
	const struct hd_msg_seal *seal = &msg->seal;
	const uint64_t next = seal->step + 1, tag = seal->state_digest;
	bool torn = false;

	if (msg->kind != HD_MSG_SEAL || !seal->ran || !(tag || seal->nheld))
		return;
	if (heard->of[next & 1].next < next) {
		memset(&heard->of[next & 1], 0, sizeof heard->of[next & 1]);
		heard->of[next & 1].next = next;
		heard->of[next & 1].tag = tag;
	}
	if (heard->of[next & 1].next == next)
		torn = heard->of[next & 1].tag != tag;
	for (uint32_t i = 0; i < seal->nheld && heard->of[next & 1].next == next; i++) {
		uint64_t *of = &heard->of[next & 1].held[seal->held[i].first];
		if (seal->held[i].n != 1)
			sim_bad(s, "corrupt", "of %u buckets %u have one digest", s->nbuckets,
				seal->held[i].n);
		torn |= *of && *of != seal->held[i].digest;
		*of = seal->held[i].digest;
	}
	if (torn && !heard->torn_ns)
		heard->torn_ns = s->now;
}

uint64_t sim_units(const struct hd_vrange *range, uint32_t n)
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
	return sim_units(&(struct hd_vrange){ first, end - first }, 1);
}

/* Roots of all own passes, in ordinal order. */
static uint32_t roots_of(struct sim_world *s, const struct hd_passes *passes, uint32_t worker,
	struct hd_tnode *root, uint32_t *first)
{
	uint32_t n = 0;

	if (hd_passes_roots(passes, s->nvns, worker, root, HD_VIEW_ROOTS, first, &n))
		sim_bad(s, "roots", "worker %u has too many", worker);
	return n;
}

void sim_final(struct sim_world *s, struct sim_proc *p, uint32_t pass, uint32_t bucket)
{
	(void)s;
	if (p->own_here[pass][bucket])
		return;
	p->own_here[pass][bucket] = true;
	p->own[pass][bucket] = (struct sim_val){ p->pass_units[pass], p->tag };
}

void sim_send_roots(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint32_t first[HD_MAX_PASSES + 1];

	roots_of(s, &hd_member_exchange(p->m)->passes, p->id, root, first);
	const struct hd_exchange *x = hd_member_exchange(p->m);
	if (!p->own_here[a->pass][a->bucket] || !p->own_roots[a->bucket])
		sim_bad(s, "roots", "worker %u sends roots of bucket %u that %s", p->id, a->bucket,
			p->own_roots[a->bucket] ? "are not final" : "the sum overwrote");
	if (x->paired) {
		struct sim_val val = p->own[a->pass][a->bucket];
		for (uint32_t i = 0; i < p->nroots; i++)
			val.units += p->root[i].bucket == a->bucket ? p->root[i].val.units : 0;
		sim_send(s, slot, sim_slot(s, a->worker), &(struct sim_packet){ .kind = SIM_ROOT, .epoch =
			p->epoch,
			.from = p->id, .bucket = a->bucket, .step = a->step, .val = val });
		s->result->paired++;
		return;
	}
	for (uint32_t o = first[a->pass]; o < first[a->pass + 1]; o++)
		sim_send(s, slot, sim_slot(s, a->worker), &(struct sim_packet){ .kind = SIM_ROOT,
			.epoch = p->epoch, .from = p->id, .ordinal = o,
			.bucket = a->bucket,
			.step = a->step, .val = { units_of_root(s, root[o]),
			p->own[a->pass][a->bucket].tag } });
}

void sim_check_sum(struct sim_world *s, const struct sim_proc *p, uint64_t step, uint32_t bucket,
	struct sim_val val)
{
	if (val.units != s->full || !sim_is_tag(s, val.tag, step))
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
void sim_fold(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
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
	sim_check_sum(s, p, a->step, a->bucket, sum.val);
	p->sum[a->bucket] = sum.val;
	sim_after(s, slot, TASK_FOLDED, sim_ms(s, 0, 2), false, (struct sim_world_event){ .bucket = a->bucket,
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
	uint32_t nstages = s->shape.nstages ? hd_member_exchange(p->m)->buckets->nstages : 1;

	for (uint32_t k = 0; k < nstages; k++)
		if (!p->table_full && own_table(p, k) != s->full)
			return false;
	return true;
}

void sim_publish(struct sim_world *s, uint32_t slot, const struct hd_member_action *a, enum sim_kind kind)
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

void sim_send_leaves(struct sim_world *s, uint32_t slot, const struct hd_member_action *a)
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

/* Of its chains, with nothing changed. */
static void measure(struct sim_world *s, struct sim_proc *p, uint64_t step)
{
	for (uint32_t b = 0; b < s->nbuckets; b++) {
		p->measured[b] = hd_exchange_chained(hd_member_exchange(p->m), b);
		if (p->measured[b] && (!p->sum_here[b] || p->slot[b] != step + 1))
			sim_bad(s, "ratios", "worker %u measures bucket %u of X_%lld in step %llu", p->id, b,
				(long long)p->slot[b] - 1, (unsigned long long)step);
	}
}

static bool may_early(const struct sim_proc *p, uint64_t step, uint32_t b)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);

	return x->step == step && p->version == step && p->sum_here[b] && !p->parm_here[b] &&
		p->slot[b] == step + 1 && hd_exchange_chained(x, b);
}

void sim_may_early(struct sim_world *s, uint32_t slot)
{
	struct sim_proc *p = &s->proc[slot];

	for (uint32_t b = 0; b < s->nbuckets && s->copies && p->alive && p->m; b++)
		if (may_early(p, p->version, b) && sim_rnd(s, 2))
			sim_after(s, slot, TASK_EARLY, sim_ms(s, 0, 10), false,
				(struct sim_world_event){ .step = p->version, .bucket = b });
}

/* What the machine does not take was made in vain. */
void sim_new_early(struct sim_world *s, uint32_t slot, uint64_t step, uint32_t bucket)
{
	struct sim_proc *p = &s->proc[slot];

	if (!may_early(p, step, bucket))
		return;
	p->parm_here[bucket] = true;
	const uint32_t gen = p->gen;
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_EARLY, .step = step, .bucket = bucket });
	if (!p->alive || p->gen != gen)           /* it was killed meanwhile */
		return;
	p->parm_here[bucket] = hd_exchange_fresh(hd_member_exchange(p->m), bucket);
	s->result->early += p->parm_here[bucket];
}

void sim_update(struct sim_world *s, uint32_t slot, uint64_t step)
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
		if (!s->copies)
			continue;
		if (!hd_exchange_chained(x, b)) {
			p->slot[b] = 0;
			continue;
		}
		if (!p->sum_here[b])
			sim_bad(s, "slots", "worker %u updates bucket %u in step %llu without its sum", p->id,
				b, (unsigned long long)step);
		sim_check_sum(s, p, step, b, p->sum[b]);
		if (p->slot[b] != step + 1)
			sim_bad(s, "slots", "worker %u brings bucket %u of step %llu on from slots of %llu",
				p->id, b, (unsigned long long)step,
				(unsigned long long)p->slot[b]);
		p->slot[b] = step + 2;
		p->parm_here[b] = true;
	}
	if (!s->copies)
		measure(s, p, step);
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

/* All parts of the tensors of which a bucket has some. */
static void check_ratios(struct sim_world *s, const struct sim_proc *p, uint64_t step, uint32_t bucket)
{
	const struct hd_exchange *x = hd_member_exchange(p->m);
	const struct hd_bucket_tensors *t = &x->buckets->tensors;

	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < 2; k++) {
			const uint32_t other = t->bucket[2 * i + 1 - k];
			if (t->bucket[2 * i + k] == bucket && !hd_exchange_chained(x, other) &&
				!p->ratio_here[other])
				sim_bad(s, "ratios",
					"worker %u updates bucket %u in step %llu without the squares "
					"of %u", p->id, bucket, (unsigned long long)step, other);
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
			p->slot[b] = p->bad[b] = 0;
			continue;
		}
		if (!p->sum_here[b] || p->slot[b] != step + 1)
			sim_bad(s, "stages", "worker %u brings bucket %u of X_%lld to step %llu %s its sum",
				p->id, b, (long long)p->slot[b] - 1, (unsigned long long)step,
				p->sum_here[b] ? "with" : "without");
		sim_check_sum(s, p, step, b, p->sum[b]);
		check_ratios(s, p, step, b);
		p->measured[b] = true;
		p->slot[b] = step + 2;
	}
}

void sim_finish(struct sim_world *s, uint32_t slot, uint64_t step)
{
	struct sim_proc *p = &s->proc[slot];
	struct hd_step_news news = { .loss_sum = (double)step, .samples = 1,
		.has_digest = (step + 1) % s->digest_every == 0, .skipped = sim_skips(s, step) };
	uint64_t foreign = 0;             /* what of the sums came of other states */

	memcpy(p->squared, p->sum_here, sizeof p->squared);
	if (s->copies)
		finish_sharded(s, p, step);
	else if (sim_partial(s))
		finish_stages(s, p, step);
	for (uint32_t b = 0; b < s->nbuckets && !sim_partial(s); b++) {
		if (!p->sum_here[b])
			sim_bad(s, "once", "worker %u finishes step %llu without the sum of bucket %u", p->id,
				(unsigned long long)step, b);
		sim_check_sum(s, p, step, b, p->sum[b]);
		if (p->sum[b].tag != p->tag)
			foreign = mix(foreign + p->sum[b].tag + b);
	}
	if (!has_table(s, p))
		sim_bad(s, "once", "worker %u finishes step %llu with table %016llx", p->id,
			(unsigned long long)step, (unsigned long long)own_table(p, 0));
	if (p->version != step || !sim_is_tag(s, p->tag, step))
		sim_bad(s, "state", "worker %u updates X_%llu in step %llu", p->id,
			(unsigned long long)p->version, (unsigned long long)step);
	p->table_full = true;
	p->version = step + 1;
	p->ran = p->ran ? p->ran : step + 1;
	p->tag = mix(p->tag + s->full + foreign) | 1;
	if (news.skipped && p->ahead == step + 2) {
		p->ahead = 0;
		p->vain_epoch = p->ahead_epoch;
		s->result->vain++;
	}
	p->known_tag = news.has_digest ? p->tag : 0;
	memcpy(&news.digest, &p->known_tag, sizeof p->known_tag);
	/* as in the runtime, of state by stages what is held */
	const uint64_t all = sim_partial(s) && !s->copies ? 0 : p->known_tag;
	uint64_t held[SIM_BUCKETS] = { 0 };
	memcpy(p->bad_said, p->bad, sizeof p->bad);
	p->bad_at = news.has_digest ? step + 1 : 0;
	for (uint32_t b = 0; b < s->nbuckets && p->known_tag && !all; b++)
		held[b] = p->slot[b] ? mix(p->tag + b + (p->bad[b] << 32)) | 1 : 0;
	sim_hear(s, &p->heard, &(struct hd_msg){ .kind = HD_MSG_SEAL,
		.seal = { .step = step, .ran = true, .state_digest = all } });
	sim_member(s, slot, &(struct hd_member_event){ .kind = HD_IN_UPDATED, .step = step, .news = &news,
		.sum_digest = all, .state_digest = all, .held = p->known_tag && !all ? held : NULL });
}
