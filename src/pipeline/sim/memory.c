#include <string.h>

#include "pipeline/sim/int.h"

struct sim_held *hd_sim_held(struct sim_rank *r, uint32_t stage)
{
	uint32_t low = 0, high = r->nheld;

	while (low < high) {
		uint32_t mid = (low + high) / 2;
		if (r->held[mid].stage < stage)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->nheld && r->held[low].stage == stage ? &r->held[low] : NULL;
}

/* What the sum is once time goes on: all that changes at one time is one change, so what is released goes
 * first. */
void hd_sim_memory_settle(struct plan_sim *x, struct sim_rank *r)
{
	if (r->total > r->out->peak) {
		r->out->peak = r->total;
		r->out->peak_at = r->changed_at;
		memcpy(r->out->at_peak, r->bytes, sizeof r->bytes);
	}
	r->settled = x->now;
}

void hd_sim_memory_add(struct plan_sim *x, struct sim_rank *r, enum hd_memory_kind kind, int64_t bytes)
{
	if (r->settled != x->now)
		hd_sim_memory_settle(x, r);
	r->bytes[kind] += bytes;
	r->total += bytes;
	if (bytes > 0)
		r->changed_at = r->at;
}

void hd_sim_host_add(struct sim_rank *r, int64_t bytes)
{
	r->shadow.host += bytes;
	if (r->out && r->shadow.host > r->out->host)
		r->out->host = r->shadow.host;
}

/* ---- partial sums of gradients: one buffer a node of the tree, in windows of the virtual nodes of one
 * update */

static void drop_partials(struct plan_sim *x, struct sim_rank *r, const struct sim_held *h, uint32_t *count,
	uint32_t keep)
{
	if (*count > keep) {
		hd_sim_memory_add(x, r, HD_MEMORY_PARTIALS,
			-(int64_t)(*count - keep) * x->cost[h->stage].param);
		*count = keep;
	}
}

/* The sum is spent: what a RED left, or what this rank added up alone. */
static void spend_partials(struct plan_sim *x, struct sim_rank *r, struct sim_held *h)
{
	drop_partials(x, r, h, h->nsent ? &h->nsent : &h->npartials, 0);
}

static void leaf_begins(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_held *h = hd_sim_held(r, ins->stage);
	uint32_t window = ins->vn / x->rule[ins->stage].every;

	if (window != h->window && !x->updates)
		drop_partials(x, r, h, &h->npartials, 0);
	h->window = window;
	h->npartials++;
	hd_sim_memory_add(x, r, HD_MEMORY_PARTIALS, x->cost[ins->stage].param);
}

static void leaf_ends(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_held *h = hd_sim_held(r, ins->stage);
	uint32_t n = x->rule[ins->stage].every, at = ins->vn % n;
	uint16_t *level = x->node[ins->stage] + (size_t)(ins->vn / n) * x->span[ins->stage],
		mine = (uint16_t)(r->number + 1);

	for (;; level += n, n = (n + 1) / 2, at /= 2) {
		level[at] = mine;
		if (n == 1)
			return;
		if ((at ^ 1) >= n)
			continue;                         /* no right one: it goes up as it is */
		if (level[at ^ 1] != mine)
			return;
		h->npartials -= h->npartials > 1;
		hd_sim_memory_add(x, r, HD_MEMORY_PARTIALS, -x->cost[ins->stage].param);
	}
}

/* ---- versions that PINs keep beside the newest */

static int64_t older(const struct sim_held *h)
{
	int64_t n = 0;

	for (uint32_t k = 0; k < h->npins; k++) {
		bool again = h->pin[k] == h->version;
		for (uint32_t j = 0; j < k && !again; j++)
			again = h->pin[j] == h->pin[k];
		n += !again;
	}
	return n;
}

static void change_versions(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_held *h = hd_sim_held(r, ins->stage);
	int64_t before = older(h);

	if (ins->op == HD_INS_STEP) {
		h->version = hd_ins_versioned(ins) ? ins->ver : h->version + 1;
	} else if (ins->op == HD_INS_PIN) {
		if (h->npins == h->pincap) {
			uint32_t cap = h->pincap ? 2 * h->pincap : 4,
				*pin = hd_arena_take(x->arena, cap, sizeof *pin);
			if (!pin) {
				x->queue.full = true;
				return;
			}
			if (h->npins)
				memcpy(pin, h->pin, h->npins * sizeof *pin);
			h->pin = pin;
			h->pincap = cap;
		}
		h->pin[h->npins++] = hd_ins_versioned(ins) ? ins->ver : h->version;
	} else {
		uint32_t at = 0, which = hd_ins_versioned(ins) ? ins->ver : h->version;
		while (at < h->npins && h->pin[at] != which)
			at++;
		if (at < h->npins)
			h->pin[at] = h->pin[--h->npins];
	}
	if (older(h) != before)
		hd_sim_memory_add(x, r, HD_MEMORY_VERSIONS, (older(h) - before) * x->cost[ins->stage].param);
}

/* ---- activations and slots */

static void hold(struct plan_sim *x, struct sim_rank *r, struct sim_token *t, int64_t bytes)
{
	t->live += bytes;
	hd_sim_memory_add(x, r, t >= x->shadow ? HD_MEMORY_SHADOWS : HD_MEMORY_ACTIVATIONS, bytes);
}

static void release(struct plan_sim *x, struct sim_rank *r, struct sim_token *t, int64_t bytes)
{
	hold(x, r, t, -(bytes < t->live ? bytes : t->live));
}

/* ---- shadows (rule 9) */

/* Sums of its gradients: a binary counter over its virtual nodes. */
static void shadow_leaf(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins, bool begins)
{
	struct sim_shadow *h = &r->shadow;
	const int64_t param = x->cost[ins->stage].param;

	h->npartials += begins;
	hd_sim_memory_add(x, r, HD_MEMORY_SHADOWS, begins ? param : 0);
	if (begins)
		return;
	for (uint32_t n = ++h->nleaves; n % 2 == 0; n /= 2) {
		h->npartials--;
		hd_sim_memory_add(x, r, HD_MEMORY_SHADOWS, -param);
	}
	hd_sim_memory_add(x, r, HD_MEMORY_SLOTS, -h->arrived[0]);
	h->arrived[0] = 0;
}

static void shadow_updated(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	struct sim_shadow *h = &r->shadow;

	hd_sim_memory_add(x, r, HD_MEMORY_SHADOWS, -(int64_t)h->npartials * x->cost[ins->stage].param);
	hd_sim_memory_add(x, r, HD_MEMORY_SLOTS, -h->arrived[1]);
	h->npartials = h->nleaves = 0;
	h->arrived[1] = 0;
}

/* The step is over for the rank: what was kept for a loss goes. */
static void drop_kept(struct sim_rank *r)
{
	hd_sim_host_add(r, -r->shadow.kept);
	r->shadow.kept = 0;
}

void hd_sim_memory_begin(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	const struct hd_stage_cost *c = hd_ins_uses(ins->op, 'v') ? &x->cost[ins->stage] : NULL;
	struct sim_token *t = c ? sim_saved(x, ins) : NULL;

	switch (ins->op) {
	case HD_INS_F:
		t->kept = ins->flags & HD_INS_CHECKPOINT;
		hold(x, r, t, t->kept ? c->kept : c->saved);
		break;
	case HD_INS_R:
		hold(x, r, t, c->saved - (c->kept - c->in));
		break;
	case HD_INS_B: case HD_INS_W:
		if (ins->flags & HD_INS_SHADOW)
			shadow_leaf(x, r, ins, true);
		else
			leaf_begins(x, r, ins);
		break;
	default:
		break;
	}
}

/* The tensor that came in over a channel is used up: its slot goes, buffered ones open for the next
 * message in turn. */
static void use_up(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	bool f = ins->op == HD_INS_F;
	uint32_t from = f ? ins->stage - 1u : ins->stage + 1u;

	if ((f && ins->stage == 0) || (!f && from == x->s->nstages) || ins->flags & HD_INS_SHADOW)
		return;
	struct sim_token *t = (f ? x->act : x->grad) + sim_index(x, from, ins->vn);
	if (t->channel == SIM_NONE)
		return;
	struct sim_channel *c = &x->channel[t->channel];
	uint32_t next = c->used++ + x->credits;
	int64_t opened = x->transfers && x->transport == HD_TRANSPORT_BUFFERED &&
		next < c->total ? sim_bytes(x, &x->act[x->order[c->first + next]]) : 0;
	if (opened != sim_bytes(x, t))
		hd_sim_memory_add(x, r, HD_MEMORY_SLOTS, opened - sim_bytes(x, t));
}

void hd_sim_memory_end(struct plan_sim *x, struct sim_rank *r, const struct hd_ins *ins)
{
	const struct hd_stage_cost *c = hd_ins_uses(ins->op, 'v') ? &x->cost[ins->stage] : NULL;
	struct sim_token *t = c ? sim_saved(x, ins) : NULL;

	switch (ins->op) {
	case HD_INS_B: case HD_INS_W:
		if (ins->flags & HD_INS_SHADOW)
			shadow_leaf(x, r, ins, false);
		else
			leaf_ends(x, r, ins);
		release(x, r, t, INT64_MAX);
		break;
	case HD_INS_I:
		release(x, r, t, c->saved - c->saved_w);
		break;
	case HD_INS_STEP:
		if (ins->flags & HD_INS_SHADOW) {
			shadow_updated(x, r, ins);
			break;
		}
		drop_kept(r);
		spend_partials(x, r, hd_sim_held(r, ins->stage));
		change_versions(x, r, ins);
		break;
	case HD_INS_PIN: case HD_INS_REL:
		change_versions(x, r, ins);
		break;
	case HD_INS_RED: {
		struct sim_held *h = hd_sim_held(r, ins->stage);
		if (--h->npending == 0)
			drop_partials(x, r, h, &h->nsent, 1);
		break;
	}
	default:
		break;
	}
	if (ins->op == HD_INS_F || ins->op == HD_INS_B || ins->op == HD_INS_I)
		use_up(x, r, ins);
}
