#include "graph/parcels.h"

#include "graph/op.h"

struct making {
	const struct hd_graph *graph;
	const struct hd_spread_stage *at;
	const struct hd_tensor_list *list;
	uint32_t t, ngroups;
	struct hd_arena *arena;
	uint32_t *parcel;                 /* [nvalues][ngroups] that brings it there; HD_NONE: none */
};

static enum hd_err no_memory(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for what groups of devices send one another");
}

static uint32_t group_of(const struct making *m, uint32_t device) { return device / (m->t / m->ngroups); }

/* Of what a step makes, what group `to` has, too; `value` NULL: how many. */
static uint32_t made_for(const struct making *m, uint32_t device, const struct hd_tensor_step *step,
	uint32_t to, uint32_t *value)
{
	uint32_t n = 0;

	for (uint32_t i = step->from; i < step->to; i++) {
		const struct hd_node *node = &m->graph->node[m->list[device].node[i]];
		for (uint32_t v = node->out; v < node->out + node->nout; v++) {
			if (hd_ops[node->op].class == HD_OP_VIEW || !(m->at->has[v] >> to & 1))
				continue;
			if (value)
				value[n] = v;
			n++;
		}
	}
	return n;
}

static enum hd_err make_parcel(struct hd_parcels *p, struct making *m, uint32_t device, uint32_t step,
	uint32_t to, struct hd_diag *diag)
{
	const struct hd_tensor_step *of = &m->list[device].step[step];
	const uint32_t n = group_of(m, device) == to ? 0 : made_for(m, device, of, to, NULL);
	struct hd_parcel *made = &p->at[p->n];

	if (n == 0)
		return HD_OK;
	*made = (struct hd_parcel){ .device = (uint8_t)device, .to = (uint8_t)to, .step = step, .n = n,
		.value = hd_arena_take(m->arena, n, sizeof *made->value) };
	if (!made->value)
		return no_memory(diag);
	made_for(m, device, of, to, made->value);
	for (uint32_t i = 0; i < n; i++)
		m->parcel[(size_t)made->value[i] * m->ngroups + to] = p->n;
	p->n++;
	return HD_OK;
}

static enum hd_err make_all(struct hd_parcels *p, struct making *m, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t d = 0; d < m->t && !err; d++) {
		const uint32_t nsteps = m->list[d].nsteps;
		p->first[d] = hd_arena_take(m->arena, (size_t)nsteps + 1, sizeof **p->first);
		if (!p->first[d])
			return no_memory(diag);
		for (uint32_t i = 0; i < nsteps && !err; i++) {
			p->first[d][i] = p->n;
			for (uint32_t to = 0; to < m->ngroups && !err; to++)
				err = make_parcel(p, m, d, i, to, diag);
		}
		p->first[d][nsteps] = p->n;
	}
	return err;
}

static void add_need(struct hd_parcel_needs *needs, uint32_t parcel)
{
	for (uint32_t i = 0; i < needs->n; i++)
		if (needs->parcel[i] == parcel)
			return;
	needs->parcel[needs->n++] = parcel;
}

static enum hd_err find_needs(struct hd_parcel_needs *needs, const struct making *m, uint32_t device,
	const struct hd_tensor_step *step, struct hd_diag *diag)
{
	const uint32_t *node = m->list[device].node, group = group_of(m, device);
	uint32_t most = 0;

	for (uint32_t i = step->from; i < step->to; i++)
		most += m->graph->node[node[i]].nin;
	needs->parcel = hd_arena_take(m->arena, (size_t)most + 1, sizeof *needs->parcel);
	if (!needs->parcel)
		return no_memory(diag);
	for (uint32_t i = step->from; i < step->to; i++)
		for (uint8_t k = 0; k < m->graph->node[node[i]].nin; k++) {
			const uint32_t v = m->at->root[m->graph->node[node[i]].in[k]],
				parcel = m->parcel[(size_t)v * m->ngroups + group];
			if (parcel != HD_NONE)
				add_need(needs, parcel);
		}
	return HD_OK;
}

enum hd_err hd_parcels_make(struct hd_parcels *parcels, const struct hd_graph *graph,
	const struct hd_spread_stage *at, const struct hd_tensor_list *list, uint32_t t, uint32_t ngroups,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const size_t nplaces = (size_t)graph->nvalues * ngroups;
	struct hd_parcels made = { .n = 0 };
	struct making m = { graph, at, list, t, ngroups, arena,
		hd_arena_take(arena, nplaces + 1, sizeof *m.parcel) };
	size_t most = 0;

	for (uint32_t d = 0; d < t; d++)
		most += (size_t)list[d].nsteps * (ngroups - 1);
	made.at = hd_arena_take(arena, most + 1, sizeof *made.at);
	made.first = hd_arena_take(arena, t, sizeof *made.first);
	made.needs = hd_arena_take(arena, t, sizeof *made.needs);
	if (!m.parcel || !made.at || !made.first || !made.needs)
		return no_memory(diag);
	for (size_t i = 0; i < nplaces; i++)
		m.parcel[i] = HD_NONE;
	enum hd_err err = make_all(&made, &m, diag);
	for (uint32_t d = 0; d < t && !err; d++) {
		made.needs[d] = hd_arena_take(arena, (size_t)list[d].nsteps + 1, sizeof **made.needs);
		err = made.needs[d] ? HD_OK : no_memory(diag);
		for (uint32_t i = 0; i < list[d].nsteps && !err; i++)
			err = find_needs(&made.needs[d][i], &m, d, &list[d].step[i], diag);
	}
	if (!err)
		*parcels = made;
	return err;
}
