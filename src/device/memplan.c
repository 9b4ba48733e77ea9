#include "device/memplan.h"

#include <stdlib.h>

#include "base/checked.h"
#include "graph/op.h"

/* Two orders of execution, one plan. Backward may run as one list (gradients of inputs
 * and weights interleaved as autodiff wrote them) or as two (all I, then all W). A value
 * therefore has one interval per order, and two values may share bytes only if their
 * intervals are apart in both. With a forward-only order the two are the same.
 *
 * "Greedy by size": the largest first, each at the lowest offset that is free of every
 * value it conflicts with. O(n^2) in the number of temporaries: 0.1 s at 10,000. */
enum { ALIGN = 64, NORDERS = 2, NEVER = -1 };

struct life {
	uint32_t value;
	int32_t  first[NORDERS], last[NORDERS];   /* positions in each order; NEVER: not live */
	uint64_t bytes, at;
};

/* What both make and verify need; each computes it for itself. */
struct lives {
	struct life *life;                        /* [nvalues] */
	uint32_t    *root;                        /* [nvalues] the value whose bytes it shows */
	uint32_t    *order[NORDERS];
	const struct hd_memplan_clocks *clocks;   /* NULL: one device runs all */
	/* of them, by order: [nvalues] the device that makes a value and when,
		[nvalues][t] when it is over */
	uint8_t     *maker;
	uint32_t    *made[NORDERS], *over[NORDERS];
};

static bool is_view(const struct hd_node *node) { return hd_ops[node->op].class == HD_OP_VIEW; }

static uint64_t round_up(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* Is b made after all of a is over? */
static bool is_behind(const struct lives *lives, int o, uint32_t a, uint32_t b)
{
	return lives->made[o][b] >= lives->over[o][(size_t)a * lives->clocks->t + lives->maker[b]];
}

static bool meet(const struct lives *lives, const struct life *a, const struct life *b)
{
	for (int o = 0; o < NORDERS; o++)
		if (lives->clocks ? !is_behind(lives, o, a->value, b->value) &&
			!is_behind(lives, o, b->value, a->value) :
			a->first[o] <= b->last[o] && b->first[o] <= a->last[o])
			return true;
	return false;
}

/* The second order: the first, stably sorted by phase. */
static void sort_by_phase(const struct hd_graph *graph, const uint32_t *order, uint32_t norder,
	uint32_t *sorted)
{
	uint32_t n = 0;

	for (uint8_t phase = HD_PHASE_F; phase <= HD_PHASE_W; phase++)
		for (uint32_t i = 0; i < norder; i++)
			if (graph->node[order[i]].phase == phase)
				sorted[n++] = order[i];
}

/* What the node at a place reads or makes is not over before it is done. */
static void read_at(struct lives *lives, int o, uint32_t value, int32_t position)
{
	const struct hd_memplan_clocks *c = lives->clocks;

	for (uint32_t d = 0; c && d < c->t; d++) {
		uint32_t *over = &lives->over[o][(size_t)value * c->t + d];
		const uint32_t until = c->until[o][(size_t)position * c->t + d];
		*over = *over > until ? *over : until;
	}
}

static enum hd_err make_node_live(struct lives *lives, const struct hd_graph *graph, uint32_t inode, int o,
	int32_t position,
	struct hd_diag *diag)
{
	const struct hd_node *node = &graph->node[inode];

	for (uint8_t i = 0; i < node->nin; i++) {
		uint32_t root = lives->root[node->in[i]];
		if (graph->value[root].kind != HD_TEMP)
			continue;
		if (lives->life[root].first[o] == NEVER)
			return hd_fail(diag, HD_E_BUG,
				"node %u (%s) reads value %u before it is made: the order of execution is "
				"wrong",
				inode, hd_ops[node->op].name, node->in[i]);
		lives->life[root].last[o] = position;
		read_at(lives, o, root, position);
	}
	for (uint8_t i = 0; i < node->nout; i++) {
		struct life *life = &lives->life[lives->root[node->out + i]];
		if (!is_view(node))
			life->first[o] = position;
		if (life->last[o] < position)
			life->last[o] = position;
		if (lives->clocks && !is_view(node)) {
			lives->maker[life->value] = lives->clocks->device[inode];
			lives->made[o][life->value] = lives->clocks->clock[o][position];
		}
		read_at(lives, o, life->value, position);
	}
	return HD_OK;
}

static enum hd_err find_lives(struct lives *lives, const struct hd_graph *graph, const uint32_t *order,
	uint32_t norder,
	const uint64_t *bytes, struct hd_arena *arena, struct hd_diag *diag)
{
	lives->life = hd_arena_take(arena, graph->nvalues, sizeof *lives->life);
	lives->root = hd_arena_take(arena, graph->nvalues, sizeof *lives->root);
	lives->order[1] = hd_arena_take(arena, norder, sizeof *order);
	const size_t t = lives->clocks ? lives->clocks->t : 0;
	lives->maker = hd_arena_take(arena, graph->nvalues, sizeof *lives->maker);
	for (int o = 0; o < NORDERS; o++) {
		lives->made[o] = hd_arena_take(arena, graph->nvalues, sizeof *lives->made[o]);
		lives->over[o] = hd_arena_take(arena, graph->nvalues * t + 1, sizeof *lives->over[o]);
	}
	if (!lives->life || !lives->root || !lives->order[1] || !lives->maker || !lives->made[0] ||
		!lives->made[1] || !lives->over[0] || !lives->over[1])
		return hd_fail(diag, HD_E_NOMEM, "memory plan of %u values: out of memory", graph->nvalues);

	for (uint32_t v = 0; v < graph->nvalues; v++) {
		lives->life[v] = (struct life){ v, { NEVER, NEVER }, { NEVER, NEVER }, round_up(bytes[v]),
			0 };
		lives->root[v] = v;
	}
	for (uint32_t i = 0; i < norder; i++) {
		const struct hd_node *node = &graph->node[order[i]];
		if (is_view(node))
			lives->root[node->out] = lives->root[node->in[0]];
	}
	sort_by_phase(graph, order, norder, lives->order[1]);
	for (int o = 0; o < NORDERS; o++)
		for (uint32_t i = 0; i < norder; i++) {
			enum hd_err err = make_node_live(lives, graph, o == 0 ? order[i] : lives->order[1][i],
				o, (int32_t)i, diag);
			if (err)
				return err;
		}
	/* Outputs and folded moments may be read as late as after the last node. */
	for (uint32_t i = 0; i < graph->noutputs + graph->nrunning; i++) {
		uint32_t kept = i < graph->noutputs ? graph->output[i].value :
			graph->running[i - graph->noutputs].moments;
		struct life *life = &lives->life[lives->root[kept]];
		for (int o = 0; o < NORDERS; o++)
			if (life->first[o] != NEVER) {
				life->last[o] = (int32_t)norder - 1;
				for (size_t d = 0; d < t; d++)
					lives->over[o][life->value * t + d] = UINT32_MAX;
			}
	}
	return HD_OK;
}

static int larger_first(const void *left, const void *right)
{
	const struct life *a = *(const struct life *const *)left, *b = *(const struct life *const *)right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

/* `placed` is sorted by offset; puts `life` at the lowest gap and into its place there. */
static bool place(const struct lives *lives, struct life *life, struct life **placed, uint32_t nplaced)
{
	uint64_t at = 0, end;
	uint32_t i;

	for (i = 0; i < nplaced; i++) {
		if (!meet(lives, life, placed[i]))
			continue;
		if (placed[i]->at >= at && placed[i]->at - at >= life->bytes)
			break;
		uint64_t after = placed[i]->at + placed[i]->bytes;
		at = after > at ? after : at;
	}
	life->at = at;
	for (i = nplaced; i > 0 && placed[i - 1]->at > at; i--)
		placed[i] = placed[i - 1];
	placed[i] = life;
	return hd_add_u64(at, life->bytes, &end);
}

static uint64_t live_peak(const struct lives *lives, uint32_t nvalues, uint32_t norder, int64_t *change)
{
	uint64_t peak = 0;

	for (int o = 0; o < NORDERS; o++) {
		int64_t live = 0;
		for (uint32_t i = 0; i <= norder; i++)
			change[i] = 0;
		for (uint32_t v = 0; v < nvalues; v++)
			if (lives->life[v].first[o] != NEVER) {
				change[lives->life[v].first[o]] += (int64_t)lives->life[v].bytes;
				change[lives->life[v].last[o] + 1] -= (int64_t)lives->life[v].bytes;
			}
		for (uint32_t i = 0; i < norder; i++) {
			live += change[i];
			peak = (uint64_t)live > peak ? (uint64_t)live : peak;
		}
	}
	return peak;
}

enum hd_err hd_memplan_make(struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, struct hd_arena *arena,
	struct hd_diag *diag)
{
	return hd_memplan_make_tensor(plan, graph, order, norder, bytes, NULL, arena, diag);
}

enum hd_err hd_memplan_make_tensor(struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, const struct hd_memplan_clocks *clocks,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_memplan made = { 0 };
	struct hd_arena scratch;
	struct lives lives = { .clocks = clocks };
	uint32_t n = 0;
	enum hd_err err;

	hd_arena_init(&scratch, 0);
	err = find_lives(&lives, graph, order, norder, bytes, &scratch, diag);
	if (err)
		goto out;
	struct life **by_size = hd_arena_take(&scratch, graph->nvalues, sizeof *by_size);
	struct life **placed = hd_arena_take(&scratch, graph->nvalues, sizeof *placed);
	int64_t *change = hd_arena_take(&scratch, (size_t)norder + 1, sizeof *change);
	made.at = hd_arena_take(arena, graph->nvalues, sizeof *made.at);
	if (!by_size || !placed || !change || !made.at) {
		err = hd_fail(diag, HD_E_NOMEM, "memory plan of %u values: out of memory", graph->nvalues);
		goto out;
	}
	for (uint32_t v = 0; v < graph->nvalues; v++)
		if (lives.life[v].first[0] != NEVER)
			by_size[n++] = &lives.life[v];
	qsort(by_size, n, sizeof *by_size, larger_first);
	for (uint32_t i = 0; i < n; i++) {
		if (!place(&lives, by_size[i], placed, i)) {
			err = hd_fail(diag, HD_E_INVAL,
				"the temporaries of one call do not fit 64-bit offsets: use a smaller batch");
			goto out;
		}
		uint64_t end = by_size[i]->at + by_size[i]->bytes;
		made.len_bytes = end > made.len_bytes ? end : made.len_bytes;
	}
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct life *life = &lives.life[lives.root[v]];
		made.at[v] = life->first[0] == NEVER ? UINT64_MAX : life->at;
	}
	made.live_peak_bytes = live_peak(&lives, graph->nvalues, norder, change);
	*plan = made;
out:
	hd_arena_finish(&scratch);
	return err;
}

/* Replays each order: which value owns which range now. A node must find
 * in its inputs' ranges the values it reads, and outputs must be there at the end. */
static enum hd_err replay(const struct hd_memplan *plan, const struct hd_graph *graph,
	const struct lives *lives,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, bool *intact, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < norder; i++) {
		const struct hd_node *node = &graph->node[order[i]];
		for (uint8_t k = 0; k < node->nin; k++) {
			uint32_t root = lives->root[node->in[k]];
			if (graph->value[root].kind == HD_TEMP &&
				(!intact[root] || plan->at[node->in[k]] != plan->at[root]))
				return hd_fail(diag, HD_E_BUG,
					"node %u (%s) reads value %u, whose bytes another value has taken",
					order[i], hd_ops[node->op].name, node->in[k]);
		}
		if (is_view(node))
			continue;
		for (uint8_t k = 0; k < node->nout; k++) {
			uint32_t made = node->out + k;
			uint64_t at = plan->at[made], room = bytes[made];
			if (at % ALIGN || at > plan->len_bytes || room > plan->len_bytes - at)
				return hd_fail(diag, HD_E_BUG,
					"value %u lies outside the arena or is not aligned", made);
			for (uint32_t v = 0; v < graph->nvalues; v++) {
				uint64_t len = bytes[v];
				bool apart = !room || !len || at + room <= plan->at[v] ||
					plan->at[v] + len <= at;
				if (!intact[v] || apart)
					continue;
				for (uint8_t j = 0; j < node->nin; j++)
					if (lives->root[node->in[j]] == v)
						return hd_fail(diag, HD_E_BUG,
							"node %u (%s) overwrites value %u while reading it",
							order[i], hd_ops[node->op].name, v);
				for (uint8_t j = 0; j < k; j++)
					if (node->out + j == v)
						return hd_fail(diag, HD_E_BUG,
							"two outputs of node %u (%s) share bytes", order[i],
							hd_ops[node->op].name);
				intact[v] = false;
			}
			intact[made] = true;
		}
	}
	return HD_OK;
}

enum hd_err hd_memplan_verify(const struct hd_memplan *plan, const struct hd_graph *graph,
	const uint32_t *order, uint32_t norder, const uint64_t *bytes, struct hd_diag *diag)
{
	struct hd_arena scratch;
	struct lives lives = { .clocks = NULL };
	enum hd_err err;

	hd_arena_init(&scratch, 0);
	err = find_lives(&lives, graph, order, norder, bytes, &scratch, diag);
	for (int o = 0; o < NORDERS && !err; o++) {
		bool *intact = hd_arena_take(&scratch, graph->nvalues, sizeof *intact);
		if (!intact) {
			err = hd_fail(diag, HD_E_NOMEM, "check of a memory plan of %u values: out of memory",
				graph->nvalues);
			break;
		}
		err = replay(plan, graph, &lives, o == 0 ? order : lives.order[1], norder, bytes, intact,
			diag);
		for (uint32_t i = 0; i < graph->noutputs && !err; i++) {
			uint32_t root = lives.root[graph->output[i].value];
			if (lives.life[root].first[o] != NEVER && !intact[root])
				err = hd_fail(diag, HD_E_BUG, "output %s was overwritten",
					hd_graph_text_of(graph, graph->output[i].name));
		}
	}
	hd_arena_finish(&scratch);
	return err;
}
