#include "cost/profile_graph.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "graph/op.h"
#include "graph/text.h"

const struct hd_profile_rates hd_profile_nominal = { 1e11, 2e10 };

enum { OP_TEXT_PARAMS = 3 };

/* What the maker of a profile looks at; all by index of the graph. */
struct profile_maker {
	const struct hd_graph *graph;
	const struct hd_profile_ask *ask;
	struct hd_arena *arena;
	struct hd_profile *profile;
	/* [nforward] the forward node that this one joined, at last itself */
	uint32_t *root;
	/* [nforward] lists of what joined a root: the next member, the last one */
	uint32_t *next, *last;
	uint32_t *home;                   /* [nnodes] profile node */
	uint32_t *first;                  /* [profile nodes] its forward node */
	uint32_t *shown;                  /* [nvalues] the value whose bytes this one shows */
	/* [nvalues] the same of what nodes make: of views of an input the first */
	uint32_t *tensor;
	/* [nvalues] of a forward tensor: 1 + its place among the outputs of its profile node; 0: not one */
	uint32_t *output;
	/* [nvalues] the profile node at which it counts as saved, or HD_NONE */
	uint32_t *keeper;
};

static bool is_view(const struct hd_node *node) { return hd_ops[node->op].class == HD_OP_VIEW; }

static bool is_temp(const struct profile_maker *m, uint32_t value) { return m->graph->value[value].kind ==
	HD_TEMP; }

static int64_t bytes_of(const struct profile_maker *m,
	uint32_t value) { return (int64_t)hd_value_bytes(&m->graph->value[value], m->ask->rows); }

static bool is_kept_kind(const struct profile_maker *m, uint32_t value)
{
	const struct hd_value *v = &m->graph->value[value];

	return v->kind == HD_INPUT || (v->kind == HD_TEMP && v->node < m->graph->nforward);
}

static enum hd_err no_memory(const struct profile_maker *m, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOMEM, "no memory for a profile of %u nodes", m->graph->nnodes);
}

static bool take_arrays(struct profile_maker *m)
{
	const struct hd_graph *g = m->graph;

	m->root = hd_arena_take(m->arena, (size_t)g->nforward + 1, sizeof *m->root);
	m->next = hd_arena_take(m->arena, (size_t)g->nforward + 1, sizeof *m->next);
	m->last = hd_arena_take(m->arena, (size_t)g->nforward + 1, sizeof *m->last);
	m->home = hd_arena_take(m->arena, (size_t)g->nnodes + 1, sizeof *m->home);
	m->first = hd_arena_take(m->arena, (size_t)g->nforward + 1, sizeof *m->first);
	m->shown = hd_arena_take(m->arena, (size_t)g->nvalues + 1, sizeof *m->shown);
	m->tensor = hd_arena_take(m->arena, (size_t)g->nvalues + 1, sizeof *m->tensor);
	m->output = hd_arena_take(m->arena, (size_t)g->nvalues + 1, sizeof *m->output);
	m->keeper = hd_arena_take(m->arena, (size_t)g->nvalues + 1, sizeof *m->keeper);
	return m->root && m->next && m->last && m->home && m->first && m->shown && m->tensor && m->output &&
		m->keeper;
}

static void find_shown(struct profile_maker *m)
{
	for (uint32_t v = 0; v < m->graph->nvalues; v++)
		m->shown[v] = m->tensor[v] = v;
	for (uint32_t n = 0; n < m->graph->nnodes; n++) {
		const struct hd_node *node = &m->graph->node[n];
		if (!is_view(node))
			continue;
		m->shown[node->out] = m->shown[node->in[0]];
		if (is_temp(m, node->in[0]))
			m->tensor[node->out] = m->tensor[node->in[0]];
	}
}

/* ---- which forward nodes are one (rule 1) */

static uint32_t root_of(const struct profile_maker *m, uint32_t inode)
{
	while (m->root[inode] != inode)
		inode = m->root[inode];
	return inode;
}

static void join(struct profile_maker *m, uint32_t n, uint32_t to)
{
	m->root[n] = to;
	m->next[m->last[to]] = n;
	m->last[to] = m->last[n];
}

#define EACH_MEMBER(m, n, k) for (uint32_t k = (n); k != HD_NONE; k = (m)->next[k])

/* The last root among those whose tensors the members of n read; HD_NONE: they read inputs, parameters and
 * constants alone. */
static uint32_t last_source(const struct profile_maker *m, uint32_t n)
{
	uint32_t last = HD_NONE;

	EACH_MEMBER(m, n, k)
		for (uint8_t i = 0; i < m->graph->node[k].nin; i++) {
			uint32_t value = m->graph->node[k].in[i],
				root = is_temp(m, value) ? root_of(m, m->graph->value[value].node) : n;
			if (root != n && (last == HD_NONE || root > last))
				last = root;
		}
	return last;
}

static void mark_sources(const struct profile_maker *m, uint32_t n, bool *read)
{
	EACH_MEMBER(m, n, k)
		for (uint8_t i = 0; i < m->graph->node[k].nin; i++) {
			uint32_t value = m->graph->node[k].in[i];
			if (is_temp(m, value))
				read[root_of(m, m->graph->value[value].node)] = true;
		}
}

/* Last to first: all readers of a node are handled before it, and none of them has a root before it. Edges
 * lead from smaller roots to larger ones before and after each join, so no cycle can arise. */
static enum hd_err join_ends(struct profile_maker *m, struct hd_diag *diag)
{
	const struct hd_graph *g = m->graph;
	uint32_t loss = hd_graph_find_output(g, "loss");
	bool *read = hd_arena_take(m->arena, (size_t)g->nforward + 1, sizeof *read);

	if (!read)
		return no_memory(m, diag);
	if (loss == HD_NONE || !is_temp(m, loss) || g->value[loss].node >= g->nforward ||
		g->nforward == g->nnodes)
		return hd_fail(diag, HD_E_INVAL,
			"a profile is of a training graph: this one has no loss that a node makes, or no "
			"gradient");
	uint32_t end = root_of(m, g->value[loss].node);
	for (uint32_t n = g->nforward; n-- > 0;) {
		if (m->root[n] != n)
			continue;
		if (n == end || read[n]) {
			mark_sources(m, n, read);
			continue;
		}
		uint32_t to = last_source(m, n);
		join(m, n, to == HD_NONE ? end : to);
	}
	return HD_OK;
}

static void join_views(struct profile_maker *m)
{
	for (uint32_t n = 0; n < m->graph->nforward; n++) {
		m->root[n] = m->last[n] = n;
		m->next[n] = HD_NONE;
		uint32_t shows = is_view(&m->graph->node[n]) ? last_source(m, n) : HD_NONE;
		if (shows != HD_NONE)
			join(m, n, shows);
	}
}

static void number(struct profile_maker *m)
{
	uint32_t *place = m->output;      /* not in use yet */

	for (uint32_t n = 0; n < m->graph->nforward; n++)
		if (m->root[n] == n) {
			m->first[m->profile->nnodes] = n;
			place[n] = m->profile->nnodes++;
		}
	for (uint32_t n = 0; n < m->graph->nnodes; n++)
		m->home[n] = place[root_of(m, n < m->graph->nforward ? n : m->graph->node[n].of)];
	memset(place, 0, m->graph->nvalues * sizeof *place);
}

/* ---- names, parameters */

static bool is_frozen(const struct profile_maker *m,
	uint32_t value) { return m->graph->param[m->graph->value[value].data].frozen; }

/* Does an earlier operand of a member name the same parameter? */
static bool is_named_before(const struct profile_maker *m, uint32_t root, uint32_t inode, uint8_t operand)
{
	uint32_t value = m->graph->node[inode].in[operand];

	EACH_MEMBER(m, root, k)
		for (uint8_t i = 0; i < m->graph->node[k].nin; i++) {
			if (k == inode && i == operand)
				return false;
			if (m->graph->node[k].in[i] == value)
				return true;
		}
	return false;
}

/* Which parameters several profile nodes read. */
static void find_tied(const struct profile_maker *m, uint32_t *reader, bool *tied)
{
	for (uint32_t p = 0; p < m->graph->nparams; p++)
		reader[p] = HD_NONE;
	for (uint32_t n = 0; n < m->graph->nforward; n++)
		for (uint8_t i = 0; i < m->graph->node[n].nin; i++) {
			const struct hd_value *v = &m->graph->value[m->graph->node[n].in[i]];
			if (v->kind != HD_PARAM)
				continue;
			tied[v->data] |= reader[v->data] != HD_NONE && reader[v->data] != m->home[n];
			reader[v->data] = m->home[n];
		}
}

static void add_params(const struct profile_maker *m, struct hd_profile_node *node, uint32_t root,
	const bool *tied,
	struct hd_text *op)
{
	uint32_t named = 0;

	EACH_MEMBER(m, root, k)
		for (uint8_t i = 0; i < m->graph->node[k].nin; i++) {
			uint32_t value = m->graph->node[k].in[i];
			if (m->graph->value[value].kind != HD_PARAM || is_named_before(m, root, k, i))
				continue;
			const char *name = hd_graph_text_of(m->graph, m->graph->value[value].name);
			node->param += bytes_of(m, value);
			node->opt += is_frozen(m, value) ? 0 : m->ask->nslots * bytes_of(m, value);
			if (tied[m->graph->value[value].data] && !*node->tied)
				node->tied = hd_arena_text(m->arena, name, strlen(name));
			if (named++ < OP_TEXT_PARAMS)
				hd_text_addf(op, " %s", name);
		}
}

static enum hd_err name_nodes(struct profile_maker *m, struct hd_diag *diag)
{
	const struct hd_graph *g = m->graph;
	bool *tied = hd_arena_take(m->arena, (size_t)g->nparams + 1, sizeof *tied);
	uint32_t *reader = hd_arena_take(m->arena, (size_t)g->nparams + 1, sizeof *reader), label = 0, v = 0;

	if (!tied || !reader)
		return no_memory(m, diag);
	find_tied(m, reader, tied);
	for (uint32_t i = 0; i < m->profile->nnodes; i++) {
		struct hd_profile_node *node = &m->profile->node[i];
		const struct hd_node *from = &g->node[m->first[i]];
		struct hd_text id, op;
		for (; v < from->out; v++)
			label += is_temp(m, v);
		hd_text_init(&id, m->arena);
		hd_text_init(&op, m->arena);
		hd_text_addf(&id, "%%%u", label);
		hd_text_add(&op, hd_ops[from->op].name);
		*node = (struct hd_profile_node){ .tied = "", .r_ns = -1, .recompute_ok = true };
		add_params(m, node, m->first[i], tied, &op);
		if (id.full || op.full || !node->tied)
			return no_memory(m, diag);
		node->id = id.at;
		node->op = op.at;
	}
	return HD_OK;
}

/* ---- tensors between nodes */

/* Does forward node n read a tensor of another profile node as operand i? */
static bool crosses(const struct profile_maker *m, uint32_t n, uint8_t i)
{
	uint32_t value = m->graph->node[n].in[i];

	return is_temp(m, value) && m->home[m->graph->value[value].node] != m->home[n];
}

/* Outputs of each node, in order of values. */
static enum hd_err list_outputs(struct profile_maker *m, struct hd_diag *diag)
{
	const struct hd_graph *g = m->graph;
	struct hd_profile *p = m->profile;

	for (uint32_t n = 0; n < g->nforward; n++)
		for (uint8_t i = 0; i < g->node[n].nin; i++)
			if (crosses(m, n, i))
				m->output[m->tensor[g->node[n].in[i]]] = 1;
	for (uint32_t v = 0; v < g->nvalues; v++)
		if (m->output[v])
			m->output[v] = ++p->node[m->home[g->value[v].node]].nouts;
	for (uint32_t i = 0; i < p->nnodes; i++) {
		p->node[i].out = hd_arena_take(m->arena, (size_t)p->node[i].nouts + 1,
			sizeof *p->node[i].out);
		if (!p->node[i].out)
			return no_memory(m, diag);
	}
	for (uint32_t v = 0; v < g->nvalues; v++)
		if (m->output[v])
			p->node[m->home[g->value[v].node]].out[m->output[v] - 1] = bytes_of(m, v);
	return HD_OK;
}

static bool is_edge_there(const struct hd_profile *p, uint32_t since, const struct hd_profile_edge *edge)
{
	for (uint32_t e = since; e < p->nedges; e++)
		if (p->edge[e].from == edge->from && p->edge[e].to == edge->to && p->edge[e].out == edge->out)
			return true;
	return false;
}

static void add_edges(const struct profile_maker *m, uint32_t to, uint32_t since)
{
	struct hd_profile *p = m->profile;

	EACH_MEMBER(m, m->first[to], n)
		for (uint8_t i = 0; i < m->graph->node[n].nin; i++) {
			uint32_t value = m->graph->node[n].in[i];
			if (!crosses(m, n, i))
				continue;
			struct hd_profile_edge edge = { m->home[m->graph->value[value].node], to,
				m->output[m->tensor[value]] - 1 };
			if (!is_edge_there(p, since, &edge))
				p->edge[p->nedges++] = edge;
		}
}

static enum hd_err list_edges(struct profile_maker *m, struct hd_diag *diag)
{
	size_t most = 1;

	for (uint32_t n = 0; n < m->graph->nforward; n++)
		most += m->graph->node[n].nin;
	m->profile->edge = hd_arena_take(m->arena, most, sizeof *m->profile->edge);
	if (!m->profile->edge)
		return no_memory(m, diag);
	for (uint32_t to = 0; to < m->profile->nnodes; to++)
		add_edges(m, to, m->profile->nedges);
	if (m->profile->nedges > HD_PROFILE_EDGES)
		return hd_fail(diag, HD_E_INVAL,
			"the graph has more than %d edges between nodes of its profile: it cannot be "
			"planned for", HD_PROFILE_EDGES);
	return HD_OK;
}

/* ---- what is kept (rules 5 to 7) */

/* Of what forward made or the reader gave: the first profile node whose gradient nodes read it. Of what I
 * made for W: the maker's. */
static void find_keepers(struct profile_maker *m)
{
	const struct hd_graph *g = m->graph;

	for (uint32_t v = 0; v < g->nvalues; v++)
		m->keeper[v] = HD_NONE;
	for (uint32_t n = g->nforward; n < g->nnodes; n++)
		for (uint8_t i = 0; i < g->node[n].nin; i++) {
			uint32_t v = m->shown[g->node[n].in[i]], by = g->value[v].node;
			if (is_kept_kind(m, v))
				m->keeper[v] = m->home[n] < m->keeper[v] ? m->home[n] : m->keeper[v];
			else if (is_temp(m, v) && g->node[by].phase == HD_PHASE_I &&
				g->node[n].phase == HD_PHASE_W)
				m->keeper[v] = m->home[by];
		}
}

static bool is_saved(const struct profile_maker *m, uint32_t v) { return m->keeper[v] != HD_NONE &&
	is_kept_kind(m, v); }

/* A tensor counts once in a call however often it is named. */
static int64_t work_of(const struct profile_maker *m, const struct hd_node *node)
{
	uint32_t seen[HD_MAX_IN + HD_MAX_OUT], n = 0;
	int64_t sum = 0;

	for (int i = 0; i < node->nin + node->nout; i++) {
		uint32_t v = m->shown[i < node->nin ? node->in[i] : node->out + (uint32_t)(i - node->nin)],
			k = 0;
		while (k < n && seen[k] != v)
			k++;
		if (k < n || !is_temp(m, v) || is_saved(m, v))
			continue;
		seen[n++] = v;
		sum += bytes_of(m, v);
	}
	return sum;
}

static enum hd_err count_kept(struct profile_maker *m, struct hd_diag *diag)
{
	const struct hd_graph *g = m->graph;
	struct hd_profile_node *node = m->profile->node;
	int64_t *for_w = hd_arena_take(m->arena, (size_t)m->profile->nnodes + 1, sizeof *for_w);
	bool *wanted = hd_arena_take(m->arena, (size_t)g->nvalues + 1, sizeof *wanted);

	if (!for_w || !wanted)
		return no_memory(m, diag);
	find_keepers(m);
	for (uint32_t n = g->nforward; n < g->nnodes; n++)
		for (uint8_t i = 0; i < g->node[n].nin; i++)
			wanted[m->shown[g->node[n].in[i]]] |= g->node[n].phase == HD_PHASE_W;
	for (uint32_t v = 0; v < g->nvalues; v++) {
		if (m->keeper[v] == HD_NONE)
			continue;
		node[m->keeper[v]].saved += is_saved(m, v) ? bytes_of(m, v) : 0;
		for_w[m->keeper[v]] += wanted[v] ? bytes_of(m, v) : 0;
	}
	for (uint32_t n = 0; n < g->nnodes; n++) {
		int64_t work = work_of(m, &g->node[n]);
		node[m->home[n]].work = work > node[m->home[n]].work ? work : node[m->home[n]].work;
	}
	for (uint32_t i = 0; i < m->profile->nnodes; i++) {
		double share = node[i].saved ? (double)for_w[i] / (double)node[i].saved : 0;
		node[i].act_w = share < 1 ? share : 1;
		node[i].work += (int64_t)m->ask->scratch_bytes;
	}
	return HD_OK;
}

enum hd_err hd_profile_of_graph(struct hd_profile *out, uint32_t **home, const struct hd_graph *graph,
	const struct hd_profile_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_profile p = { .method = HD_PROFILE_MODELLED, .device_kind = "", .device_name = "",
		.isa = "", .dtype = "f32", .threads = 1,
		.vn_size = (uint32_t)ask->rows, .tensor_shards = ask->tensor_shards, .ignored = "" };
	struct profile_maker m = { .graph = graph, .ask = ask, .arena = arena, .profile = &p };
	enum hd_err err = hd_profile_hash(graph, &p.graph, diag);

	if (!err && !take_arrays(&m))
		err = no_memory(&m, diag);
	if (err)
		return err;
	find_shown(&m);
	join_views(&m);
	err = join_ends(&m, diag);
	if (err)
		return err;
	number(&m);
	if (p.nnodes > HD_PROFILE_NODES)
		return hd_fail(diag, HD_E_INVAL, "the graph has %u nodes to be profiled, %d are the most",
			p.nnodes, HD_PROFILE_NODES);
	p.node = hd_arena_take(arena, (size_t)p.nnodes + 1, sizeof *p.node);
	err = p.node ? name_nodes(&m, diag) : no_memory(&m, diag);
	err = err ? err : list_outputs(&m, diag);
	err = err ? err : list_edges(&m, diag);
	err = err ? err : count_kept(&m, diag);
	if (err)
		return err;
	*home = m.home;
	*out = p;
	return HD_OK;
}

/* ---- times by counts of operations, and whose profile it is */

static int64_t *time_of(struct hd_profile_node *node, uint8_t phase)
{
	return phase == HD_PHASE_F ? &node->f.p50_ns : phase == HD_PHASE_I ? &node->i.p50_ns :
		&node->w.p50_ns;
}

static void settle(struct hd_profile_cost *cost) { cost->mean_ns = cost->min_ns = cost->p50_ns; }

void hd_profile_model(struct hd_profile *p, const uint32_t *home, const struct hd_graph *graph,
	const struct hd_profile_ask *ask,
	struct hd_profile_rates rates)
{
	for (uint32_t n = 0; n < graph->nnodes; n++) {
		const struct hd_node *node = &graph->node[n];
		struct hd_cost cost = hd_ops[node->op].cost(graph, node, ask->rows);
		double compute = cost.flops / rates.flops_per_s, move = cost.bytes / rates.bytes_per_s;
		if (!is_view(node))
			*time_of(&p->node[home[n]], node->phase) += (int64_t)((compute > move ? compute :
				move) * 1e9 + 0.5);
	}
	for (uint32_t i = 0; i < p->nnodes; i++) {
		settle(&p->node[i].f);
		settle(&p->node[i].i);
		settle(&p->node[i].w);
	}
	p->method = HD_PROFILE_MODELLED;
	p->sum_ns_per_byte = 3e9 / rates.bytes_per_s;      /* two read, one written */
	p->step_ns_per_byte = (3 + 2 * ask->nslots) * 1e9 / rates.bytes_per_s;
}

static void scale(struct hd_profile_cost *to, const struct hd_profile_cost *measured,
	const struct hd_profile_cost *before, double rows)
{
	double by = before->p50_ns > 0 ? (double)to->p50_ns / (double)before->p50_ns : rows;

	*to = (struct hd_profile_cost){ .p50_ns = llround((double)measured->p50_ns * by) };
	settle(to);
}

enum hd_err hd_profile_at(struct hd_profile *out, const struct hd_graph *graph,
	const struct hd_profile *measured, const struct hd_profile_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_profile p, before;
	struct hd_profile_ask then = *ask;
	uint32_t *home;
	enum hd_err err = hd_profile_of_graph(&p, &home, graph, ask, arena, diag);

	if (err)
		return err;
	hd_profile_model(&p, home, graph, ask, hd_profile_nominal);
	*out = p;
	if (!measured)
		return HD_OK;
	if (measured->nnodes != p.nnodes || measured->vn_size == 0)
		return hd_fail(diag, HD_E_INVAL,
			"a profile of %u nodes and virtual nodes of %u samples says nothing of other sizes "
			"of this job's %u nodes",
			measured->nnodes, measured->vn_size, p.nnodes);
	then.rows = measured->vn_size;
	err = hd_profile_of_graph(&before, &home, graph, &then, arena, diag);
	if (err)
		return err;
	hd_profile_model(&before, home, graph, &then, hd_profile_nominal);
	for (uint32_t i = 0; i < p.nnodes; i++) {
		const struct hd_profile_node *m = &measured->node[i], *b = &before.node[i];
		const double rows = (double)ask->rows / (double)then.rows;
		scale(&p.node[i].f, &m->f, &b->f, rows);
		scale(&p.node[i].i, &m->i, &b->i, rows);
		scale(&p.node[i].w, &m->w, &b->w, rows);
		p.node[i].r_ns = -1;
		/* of the device's kernels */
		p.node[i].work += m->work > b->work ? m->work - b->work : 0;
	}
	*out = *measured;
	out->node = p.node;
	out->vn_size = p.vn_size;
	return HD_OK;
}

enum hd_err hd_profile_hash(const struct hd_graph *graph, uint64_t *hash, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_text text;

	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	enum hd_err err = hd_graph_print(graph, &text, diag);
	if (!err) {
		uint64_t h = hd_hash64(text.at, text.len);
		*hash = h ? h : 1;
	}
	hd_arena_finish(&arena);
	return err;
}

#define ALL_THE_SAME "`heddle profile JOB -o FILE` makes one, --force-profile takes it all the same"

enum hd_err hd_profile_fits(const struct hd_profile *p, const char *file, uint64_t graph, uint64_t rows,
	struct hd_diag *diag)
{
	if (p->graph != graph)
		return hd_fail(diag, HD_E_INVAL, "%s is the profile of %s, not of this job's; " ALL_THE_SAME,
			file,
			p->graph ? "another graph" : "no graph of Heddle's");
	if (p->vn_size != rows)
		return hd_fail(diag, HD_E_INVAL,
			"%s is of virtual nodes of %u samples, this job has %llu; " ALL_THE_SAME, file,
			p->vn_size,
			(unsigned long long)rows);
	return HD_OK;
}
