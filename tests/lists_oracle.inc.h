/* Runs completed lists on numbers: an oracle for the checker of schedules that shares no code with it.
 *
 * A tensor is a 64-bit hash of what it is made of: the output of F of its input and the weights' version, a
 * gradient of what was kept and what came back, a sum of gradients of its leaves in the order of a binary
 * tree with gaps. Ranks run in turn; sends, receives, buffers, credits, meetings, versions and their pins
 * behave as src/plan/ins.h says. What a rank may not do (use a version that is gone, send what it has not)
 * ends the run; so does standing still. The result is compared with a replay on one device. */
#ifndef HD_TESTS_LISTS_ORACLE_H
#define HD_TESTS_LISTS_ORACLE_H

#include <stdio.h>
#include <string.h>

#include "pipeline/schedule.h"

enum { O_RANKS = 4, O_STAGES = 8, O_VNS = 48, O_VERSIONS = 50, O_SENDS = 96, O_GROUPS = 2, O_BUCKETS = 3,
	O_SLOTS = 4 };

struct o_job {
	uint32_t every[O_STAGES], delay[O_STAGES], buckets[O_STAGES];
	bool clips, loads, holder[O_RANKS][O_STAGES], tied[O_GROUPS][O_STAGES];
	uint32_t ngroups, credits;
};

struct o_tensor { bool here; uint64_t value; };

struct o_stage {                                  /* of a rank */
	struct o_tensor in[O_VNS], out[O_VNS], gin[O_VNS], gout[O_VNS];
	/* 0: own storage; else 1 + slot buffer of the channel from in_peer */
	uint32_t in_slot[O_VNS], gout_slot[O_VNS];
	uint32_t in_peer[O_VNS], gout_peer[O_VNS];
	struct { bool live, input_only, on_host, i_done; uint64_t value, input, gout; } kept[O_VNS];
	bool loaded[O_VNS];
	struct o_tensor leaf[O_VNS];
	struct o_tensor weight[O_VERSIONS];
	int pins[O_VERSIONS];
	uint32_t made;
	bool eager, overridden;
	struct o_tensor reduced[O_BUCKETS];
	uint64_t override, eager_sum;
};

struct o_channel { uint64_t value[O_SENDS]; uint32_t sent, got, used; };

struct o_rank { uint32_t at; bool arrived; struct o_tensor slot[O_RANKS][2][O_SLOTS + 1]; uint32_t nnorms;
	uint64_t norm[O_VERSIONS]; };

struct o_world {
	const struct hd_schedule *s;
	const struct o_job *job;
	uint32_t m;
	struct o_stage at[O_RANKS][O_STAGES];
	struct o_channel channel[O_RANKS][O_RANKS][2];
	struct o_rank rank[O_RANKS];
	struct o_tensor loss[O_VNS];
	uint64_t want_weight[O_STAGES], want_loss[O_VNS];
	char why[160];
};

static uint64_t o_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t o_of(uint64_t what, uint64_t s, uint64_t k, uint64_t a,
	uint64_t b) { return o_mix(o_mix(o_mix(what, s * 1000 + k), a), b); }

static uint64_t o_first_weight(uint32_t s) { return o_mix(77, s); }
static uint64_t o_forward(uint32_t s, uint32_t k, uint64_t in, uint64_t w) { return o_of(1, s, k, in, w); }
static uint64_t o_kept(uint32_t s, uint32_t k, uint64_t in, uint64_t w) { return o_of(2, s, k, in, w); }
static uint64_t o_back(uint32_t s, uint32_t k, uint64_t kept, uint64_t g) { return o_of(3, s, k, kept, g); }
static uint64_t o_weights(uint32_t s, uint32_t k, uint64_t kept, uint64_t g) { return o_of(4, s, k, kept, g);
	}
static uint64_t o_input(uint32_t k) { return o_mix(5, k); }
static uint64_t o_labels(uint64_t loss) { return o_mix(6, loss); }
static uint64_t o_step(uint64_t w, uint64_t sum, uint64_t norm) { return o_of(7, 0, 0, o_mix(w, sum), norm); }

/* Node (l, j) = (l-1, 2j) + (l-1, 2j+1); a gap passes the other through. */
static struct o_tensor o_tree(const struct o_tensor *leaf, uint32_t n)
{
	struct o_tensor level[O_VNS];

	memcpy(level, leaf, n * sizeof *leaf);
	for (; n > 1; n = (n + 1) / 2)
		for (uint32_t j = 0; j < (n + 1) / 2; j++) {
			struct o_tensor a = level[2 * j], b = 2 * j + 1 < n ? level[2 * j + 1] :
				(struct o_tensor){ false, 0 };
			level[j] = a.here && b.here ? (struct o_tensor){ true, o_mix(a.value, b.value) } :
				a.here ? a : b;
		}
	return level[0];
}

static uint64_t o_bucket(uint64_t sum, uint32_t b) { return o_mix(sum, 900 + b); }

/* ---- the replay on one device */

static void o_replay(struct o_world *o)
{
	static uint64_t w[O_STAGES][O_VERSIONS], out[O_STAGES], kept[O_STAGES];
	static struct o_tensor leaf[O_STAGES][O_VNS];
	uint32_t S = o->s->nstages, made[O_STAGES] = { 0 };

	for (uint32_t s = 0; s < S; s++)
		w[s][0] = o_first_weight(s);
	for (uint32_t k = 0; k < o->m; k++) {
		uint64_t g = 0, sum[O_STAGES] = { 0 }, norm = 0;
		bool due[O_STAGES] = { false };
		for (uint32_t s = 0; s < S; s++) {
			uint32_t b = k / o->job->every[s], u = b > o->job->delay[s] ? b - o->job->delay[s] :
				0;
			uint64_t in = s ? out[s - 1] : o_input(k);
			out[s] = o_forward(s, k, in, w[s][u]);
			kept[s] = o_kept(s, k, in, w[s][u]);
		}
		o->want_loss[k] = out[S - 1];
		g = o_labels(out[S - 1]);
		for (uint32_t s = S; s-- > 0;) {
			leaf[s][k] = (struct o_tensor){ true, o_weights(s, k, kept[s], g) };
			g = o_back(s, k, kept[s], g);
		}
		for (uint32_t s = 0; s < S; s++) {
			if ((due[s] = (k + 1) % o->job->every[s] == 0)) {
				uint64_t tree = o_tree(&leaf[s][k + 1 - o->job->every[s]],
					o->job->every[s]).value;
				for (uint32_t b = 0; b < o->job->buckets[s]; b++)
					sum[s] = o_mix(sum[s], o_bucket(tree, b));
			}
		}
		for (uint32_t t = 0; t < o->job->ngroups; t++) {
			uint64_t all = 0;
			for (uint32_t s = 0; s < S; s++)
				all = o->job->tied[t][s] ? o_mix(all, sum[s]) : all;
			for (uint32_t s = 0; s < S; s++)
				sum[s] = o->job->tied[t][s] ? all : sum[s];
		}
		for (uint32_t s = 0; s < S; s++)
			norm = due[s] ? o_mix(norm, sum[s]) : norm;
		for (uint32_t s = 0; s < S; s++)
			if (due[s]) {
				w[s][made[s] + 1] = o_step(w[s][made[s]], sum[s], o->job->clips ? norm : 0);
				made[s]++;
			}
	}
	for (uint32_t s = 0; s < S; s++)
		o->want_weight[s] = w[s][made[s]];
}

/* ---- ranks */

enum o_turn { O_RAN, O_WAITS, O_FAILED };

#define O_FAIL(o, ...) (snprintf((o)->why, sizeof (o)->why, __VA_ARGS__), O_FAILED)

static bool o_there(const struct o_stage *st, int64_t v)
{
	return v >= 0 && v < O_VERSIONS && st->weight[v].here && (v == st->made || st->pins[v] > 0);
}

static int64_t o_version(const struct o_world *o, const struct hd_ins *x)
{
	uint32_t b = x->vn / o->job->every[x->stage];

	if (x->flags & HD_INS_VERSIONED)
		return x->ver <= INT32_MAX ? (int64_t)x->ver : -1;
	return b > o->job->delay[x->stage] ? b - o->job->delay[x->stage] : 0;
}

/* A tensor that came over a channel: its buffer may have been written to since. The channel's credit
 * returns. */
static bool o_take(struct o_world *o, uint32_t r, struct o_tensor *t, uint32_t slot, uint32_t peer, bool grad,
	uint64_t *value)
{
	if (!t->here)
		return false;
	*value = slot ? o->rank[r].slot[peer - 1][grad][slot - 1].value : t->value;
	if (peer)
		o->channel[peer - 1][r][grad].used++;
	t->here = false;
	return true;
}

static enum o_turn o_run_forward(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	struct o_stage *st = &o->at[r][x->stage];
	int64_t v = o_version(o, x);
	uint64_t in;

	if (!o->job->holder[r][x->stage] || !o_there(st, v))
		return O_FAIL(o, "rank %u: F%u.%u: no version %d", r, x->stage, x->vn, (int)v);
	if (st->out[x->vn].here || st->kept[x->vn].live)
		return O_FAIL(o, "forward of %u.%u twice", x->stage, x->vn);
	if (o->job->loads && (x->stage == 0 || x->stage + 1u == o->s->nstages) && !st->loaded[x->vn])
		return O_FAIL(o, "%u.%u is not read", x->stage, x->vn);
	if (x->stage == 0)
		in = o_input(x->vn);
	else if (!o_take(o, r, &st->in[x->vn], st->in_slot[x->vn], st->in_peer[x->vn], false, &in)) {
		if (!o->at[r][x->stage - 1].out[x->vn].here)
			return O_FAIL(o, "rank %u: no input of %u.%u", r, x->stage, x->vn);
		in = o->at[r][x->stage - 1].out[x->vn].value;
	}
	uint64_t w = st->weight[v].value;
	st->out[x->vn] = (struct o_tensor){ true, o_forward(x->stage, x->vn, in, w) };
	st->kept[x->vn].live = true;
	st->kept[x->vn].input_only = x->flags & HD_INS_CHECKPOINT;
	st->kept[x->vn].on_host = st->kept[x->vn].i_done = false;
	st->kept[x->vn].input = in;
	st->kept[x->vn].value = o_kept(x->stage, x->vn, in, w);
	if (x->stage + 1u == o->s->nstages)
		o->loss[x->vn] = st->out[x->vn];
	return O_RAN;
}

static enum o_turn o_run_back(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	struct o_stage *st = &o->at[r][x->stage];
	uint64_t g;

	if (!st->kept[x->vn].live || st->kept[x->vn].input_only || st->kept[x->vn].on_host ||
		st->kept[x->vn].i_done || !o_there(st, o_version(o, x)))
		return O_FAIL(o, "rank %u: %u.%u cannot go back", r, x->stage, x->vn);
	if (x->stage + 1u == o->s->nstages)
		g = o_labels(st->out[x->vn].value);
	else if (!o_take(o, r, &st->gout[x->vn], st->gout_slot[x->vn], st->gout_peer[x->vn], true, &g)) {
		if (!o->at[r][x->stage + 1].gin[x->vn].here)
			return O_FAIL(o, "rank %u: no gradient for %u.%u", r, x->stage, x->vn);
		g = o->at[r][x->stage + 1].gin[x->vn].value;
	}
	st->gin[x->vn] = (struct o_tensor){ true, o_back(x->stage, x->vn, st->kept[x->vn].value, g) };
	st->kept[x->vn].gout = g;
	st->kept[x->vn].i_done = true;
	return O_RAN;
}

static enum o_turn o_run_weights(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	struct o_stage *st = &o->at[r][x->stage];

	if (!st->kept[x->vn].live || st->kept[x->vn].input_only || st->kept[x->vn].on_host ||
		!st->kept[x->vn].i_done || !o_there(st, o_version(o, x)))
		return O_FAIL(o, "rank %u: %u.%u has no weights to differentiate", r, x->stage, x->vn);
	if (st->leaf[x->vn].here)
		return O_FAIL(o, "a second gradient of %u.%u", x->stage, x->vn);
	st->leaf[x->vn] = (struct o_tensor){ true, o_weights(x->stage, x->vn, st->kept[x->vn].value,
		st->kept[x->vn].gout) };
	if (x->vn / o->job->every[x->stage] < st->made)
		st->leaf[x->vn].here = false;             /* too late for its update: lost */
	st->kept[x->vn].live = false;
	return O_RAN;
}

static enum o_turn o_run_move(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	struct o_stage *st = &o->at[r][x->stage];

	switch (x->op) {
	case HD_INS_LD:
		if (st->loaded[x->vn])
			return O_FAIL(o, "LD%u.%u twice", x->stage, x->vn);
		st->loaded[x->vn] = true;
		return O_RAN;
	case HD_INS_R: {
		int64_t v = o_version(o, x);
		if (!st->kept[x->vn].live || !st->kept[x->vn].input_only || st->kept[x->vn].on_host ||
			!o_there(st, v))
			return O_FAIL(o, "rank %u: nothing to recompute of %u.%u", r, x->stage, x->vn);
		st->kept[x->vn].input_only = false;
		st->kept[x->vn].value = o_kept(x->stage, x->vn, st->kept[x->vn].input, st->weight[v].value);
		return O_RAN;
	}
	default:
		if (!st->kept[x->vn].live || st->kept[x->vn].on_host != (x->op == HD_INS_ON))
			return O_FAIL(o, "rank %u: %u.%u is not where it is moved from", r, x->stage, x->vn);
		st->kept[x->vn].on_host = x->op == HD_INS_OFF;
		return O_RAN;
	}
}

static enum o_turn o_run_send(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	bool grad = x->op == HD_INS_SG;
	const struct o_tensor *t = grad ? &o->at[r][x->stage].gin[x->vn] : &o->at[r][x->stage].out[x->vn];
	struct o_channel *c = &o->channel[r][x->peer][grad];

	if (!t->here)
		return O_FAIL(o, "rank %u: %u.%u is sent before it is made", r, x->stage, x->vn);
	if (o->job->credits && c->sent - c->used >= o->job->credits)
		return O_WAITS;
	if (c->sent == O_SENDS)
		return O_FAIL(o, "too many sends");
	c->value[c->sent++] = t->value;
	return O_RAN;
}

static enum o_turn o_run_receive(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	bool grad = x->op == HD_INS_RG;
	struct o_channel *c = &o->channel[x->peer][r][grad];
	struct o_stage *st = &o->at[r][x->stage];
	struct o_tensor *t = grad ? &st->gout[x->vn] : &st->in[x->vn];

	if (c->got == c->sent)
		return O_WAITS;
	if (x->slot > O_SLOTS)
		return O_FAIL(o, "no slot %u", x->slot);
	*t = (struct o_tensor){ true, c->value[c->got++] };
	(grad ? st->gout_peer : st->in_peer)[x->vn] = x->peer + 1u;
	(grad ? st->gout_slot : st->in_slot)[x->vn] = x->slot ? x->slot + 1u : 0;
	if (x->slot)
		o->rank[r].slot[x->peer][grad][x->slot] = *t;
	return O_RAN;
}

/* The gradient of the update to come as rank r knows it. */
static uint64_t o_sum(const struct o_world *o, uint32_t r, uint32_t s)
{
	const struct o_stage *st = &o->at[r][s];
	uint32_t e = o->job->every[s];
	uint64_t sum = 0;

	if (st->overridden)
		return st->override;
	if ((st->made + 1) * e > o->m)
		return 0;
	struct o_tensor own = o_tree(&st->leaf[st->made * e], e);
	for (uint32_t b = 0; b < o->job->buckets[s]; b++)
		sum = o_mix(sum, st->reduced[b].here ? st->reduced[b].value :
			o_bucket(own.here ? own.value : 0, b));
	return sum;
}

static uint32_t o_lowest(const struct o_world *o, uint32_t s)
{
	uint32_t r = 0;

	while (r + 1 < o->s->nranks && !o->job->holder[r][s])
		r++;
	return r;
}

static bool o_meets(const struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	bool any = false;

	for (uint32_t s = 0; s < o->s->nstages; s++)
		if (o->job->holder[r][s])
			any |= x->op == HD_INS_RED ? s == x->stage : x->op == HD_INS_TIE ?
				x->stage < o->job->ngroups && o->job->tied[x->stage][s] : true;
	return any || x->op == HD_INS_BAR;
}

static void o_do_together(struct o_world *o, const struct hd_ins *x)
{
	uint64_t sum[O_STAGES], norm = 0, all = 0;
	struct o_tensor leaf[O_VNS];
	uint32_t S = o->s->nstages;

	for (uint32_t s = 0; s < S; s++)
		sum[s] = o_sum(o, o_lowest(o, s), s);
	if (x->op == HD_INS_RED) {
		uint32_t e = o->job->every[x->stage], u = o->at[o_lowest(o, x->stage)][x->stage].made;
		memset(leaf, 0, sizeof leaf);
		for (uint32_t k = u * e; k < (u + 1) * e && k < o->m; k++)
			for (uint32_t r = 0; r < o->s->nranks; r++)
				if (o->at[r][x->stage].leaf[k].here)
					leaf[k - u * e] = o->at[r][x->stage].leaf[k];
		struct o_tensor tree = o_tree(leaf, e);
		for (uint32_t r = 0; r < o->s->nranks; r++)
			if (o->job->holder[r][x->stage])
				o->at[r][x->stage].reduced[x->slot] = (struct o_tensor){ true,
					o_bucket(tree.here ? tree.value : 0, x->slot) };
	} else if (x->op == HD_INS_TIE) {
		for (uint32_t s = 0; s < S; s++)
			all = o->job->tied[x->stage][s] ? o_mix(all, sum[s]) : all;
		for (uint32_t r = 0; r < o->s->nranks; r++)
			for (uint32_t s = 0; s < S; s++)
				if (o->job->holder[r][s] && o->job->tied[x->stage][s]) {
					o->at[r][s].overridden = true;
					o->at[r][s].override = all;
				}
	} else if (x->op == HD_INS_NORM || x->op == HD_INS_VAL) {
		for (uint32_t s = 0; s < S; s++)
			norm = o_mix(norm, x->op == HD_INS_VAL ? o->at[o_lowest(o, s)][s].eager_sum : sum[s]);
		for (uint32_t r = 0; r < o->s->nranks; r++) {
			if (x->op == HD_INS_NORM && o->rank[r].nnorms + 1 < O_VERSIONS)
				o->rank[r].norm[++o->rank[r].nnorms] = norm;
			for (uint32_t s = 0; s < S && x->op == HD_INS_VAL; s++) {
				struct o_stage *st = &o->at[r][s];
				if (!st->eager)
					continue;
				st->eager = false;
				if (o->job->clips && o_there(st, (int64_t)st->made - 1))
					st->weight[st->made].value = o_step(st->weight[st->made - 1].value,
						st->eager_sum, norm);
				else if (o->job->clips)
					st->weight[st->made].value = 0;
			}
		}
	}
}

/* All that must come have come, at the same instruction. */
static enum o_turn o_run_meeting(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	if (!o_meets(o, r, x) || (x->op == HD_INS_RED && x->slot >= o->job->buckets[x->stage]))
		return O_FAIL(o, "rank %u has no part in it", r);
	for (uint32_t k = 0; k < o->s->nranks; k++) {
		const struct hd_ilist *l = &o->s->list[k];
		const struct hd_ins *y = o->rank[k].at < l->len ? &l->at[o->rank[k].at] : NULL;
		if (o_meets(o, k, x) && (!y || y->op != x->op || y->stage != x->stage || y->slot != x->slot))
			return O_WAITS;
	}
	if (x->op == HD_INS_VAL && x->ver != HD_VER_RULE)
		for (uint32_t k = 0; k < o->s->nranks; k++)
			for (uint32_t s = 0; s < o->s->nstages; s++)
				if (o->at[k][s].eager && o->at[k][s].made != x->ver)
					return O_FAIL(o, "another version is validated");
	o_do_together(o, x);
	for (uint32_t k = 0; k < o->s->nranks; k++)
		o->rank[k].at += k != r && o_meets(o, k, x);
	return O_RAN;
}

static enum o_turn o_run_version(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	struct o_stage *st = &o->at[r][x->stage];
	uint32_t u = st->made + 1;

	if (!o->job->holder[r][x->stage])
		return O_FAIL(o, "rank %u does not hold stage %u", r, x->stage);
	if (x->op != HD_INS_STEP) {
		if (x->ver > INT32_MAX || !o_there(st, x->ver) ||
			(x->op == HD_INS_REL && st->pins[x->ver] == 0))
			return O_FAIL(o, "rank %u: %s of a version that is not there", r,
				hd_ins_row(x->op)->text);
		st->pins[x->ver] += x->op == HD_INS_PIN ? 1 : -1;
		return O_RAN;
	}
	if (u * o->job->every[x->stage] > o->m || (x->ver != HD_VER_RULE && x->ver != u))
		return O_FAIL(o, "rank %u: update %u of stage %u", r, u, x->stage);
	bool eager = x->flags & HD_INS_EAGER;
	if (eager && st->eager)
		return O_FAIL(o, "eager twice");
	st->eager_sum = o_sum(o, r, x->stage);
	uint64_t norm = o->job->clips && !eager ? o->rank[r].nnorms >= u ? o->rank[r].norm[u] : 1 : 0;
	st->weight[u] = (struct o_tensor){ true, o_step(st->weight[u - 1].value, st->eager_sum, norm) };
	st->made = u;
	st->eager = eager;
	st->overridden = false;
	memset(st->reduced, 0, sizeof st->reduced);
	return O_RAN;
}

static enum o_turn o_run_one(struct o_world *o, uint32_t r, const struct hd_ins *x)
{
	enum o_turn turn;

	if (hd_ins_uses(x->op, 'v') && x->vn >= o->m)
		return O_FAIL(o, "no such virtual node");
	if (hd_ins_uses(x->op, 's') && x->op != HD_INS_TIE && x->op != HD_INS_BAR &&
		x->stage >= o->s->nstages)
		return O_FAIL(o, "no such stage");
	if (((hd_ins_uses(x->op, '>') || hd_ins_uses(x->op, '<')) && x->peer >= o->s->nranks) ||
		(x->op == HD_INS_RED && x->slot >= O_BUCKETS))
		return O_FAIL(o, "no such rank or bucket");
	switch (x->op) {
	case HD_INS_F: return o_run_forward(o, r, x);
	case HD_INS_I: return o_run_back(o, r, x);
	case HD_INS_W: return o_run_weights(o, r, x);
	case HD_INS_B: return (turn = o_run_back(o, r, x)) == O_RAN ? o_run_weights(o, r, x) : turn;
	case HD_INS_LD: case HD_INS_R: case HD_INS_OFF: case HD_INS_ON: return o_run_move(o, r, x);
	case HD_INS_SA: case HD_INS_SG: return o_run_send(o, r, x);
	case HD_INS_RA: case HD_INS_RG: return o_run_receive(o, r, x);
	case HD_INS_RED: case HD_INS_TIE: case HD_INS_NORM: case HD_INS_VAL: case HD_INS_BAR:
		return o_run_meeting(o, r, x);
	default: return o_run_version(o, r, x);
	}
}

static bool o_compare(struct o_world *o)
{
	for (uint32_t k = 0; k < o->m; k++)
		if (!o->loss[k].here || o->loss[k].value != o->want_loss[k]) {
			snprintf(o->why, sizeof o->why, "the loss of virtual node %u differs", k);
			return false;
		}
	for (uint32_t r = 0; r < o->s->nranks; r++)
		for (uint32_t s = 0; s < o->s->nstages; s++) {
			const struct o_stage *st = &o->at[r][s];
			if (!o->job->holder[r][s])
				continue;
			if (st->made != o->m / o->job->every[s] || st->eager ||
				st->weight[st->made].value != o->want_weight[s]) {
				snprintf(o->why, sizeof o->why, "rank %u: the weights of stage %u differ", r,
					s);
				return false;
			}
		}
	return true;
}

/* The lists end, and with the replay's numbers; else `why` says what did not. */
static bool o_run(struct o_world *o, const struct hd_schedule *s, const struct o_job *job, uint32_t m)
{
	bool moved = true;

	memset(o, 0, sizeof *o);
	o->s = s;
	o->job = job;
	o->m = m;
	o_replay(o);
	for (uint32_t r = 0; r < s->nranks; r++)
		for (uint32_t k = 0; k < s->nstages; k++)
			o->at[r][k].weight[0] = (struct o_tensor){ job->holder[r][k], o_first_weight(k) };
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < s->nranks; r++)
			for (enum o_turn turn = O_RAN; turn == O_RAN && o->rank[r].at < s->list[r].len; ) {
				turn = o_run_one(o, r, &s->list[r].at[o->rank[r].at]);
				if (turn == O_FAILED)
					return false;
				o->rank[r].at += turn == O_RAN;
				moved |= turn == O_RAN;
			}
	}
	for (uint32_t r = 0; r < s->nranks; r++)
		if (o->rank[r].at < s->list[r].len) {
			snprintf(o->why, sizeof o->why, "rank %u waits for ever at #%u", r, o->rank[r].at);
			return false;
		}
	return o_compare(o);
}

#endif
