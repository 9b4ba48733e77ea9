#include "graph/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "graph/names.h"
#include "graph/op.h"
#include "graph/pass.h"

static const char suffix_a[] = ".lora_A", suffix_b[] = ".lora_B";

static bool matches(const char *const *pattern, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (hd_name_matches(pattern[i], name))
			return true;
	return false;
}

static const char *param_name(const struct hd_graph *graph,
	uint32_t p) { return hd_graph_text_of(graph, graph->value[graph->param[p].value].name); }

/* Every pattern names a parameter: one that does not is a slip that would train something else. */
static enum hd_err patterns_hit(const struct hd_graph *graph, const char *key, const char *const *pattern,
	uint32_t n, struct hd_diag *diag)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = 0;
		while (p < graph->nparams && !hd_name_matches(pattern[i], param_name(graph, p)))
			p++;
		if (p == graph->nparams)
			return hd_fail(diag, HD_E_INVAL,
				"%s: \"%s\" names no parameter of the model; `heddle model show` lists them",
				key, pattern[i]);
	}
	return HD_OK;
}

enum hd_err hd_graph_freeze(struct hd_graph *graph, const char *const *pattern, uint32_t n,
	struct hd_diag *diag)
{
	enum hd_err err = patterns_hit(graph, "model.freeze", pattern, n, diag);

	for (uint32_t p = 0; p < graph->nparams && !err; p++)
		graph->param[p].frozen |= matches(pattern, n, param_name(graph, p));
	return err;
}

/* ---- ranks and alphas */

bool hd_lora_split(const char *text, char pattern[HD_MAX_NAME], double *number)
{
	const char *eq = strrchr(text, '=');

	if (!eq || eq == text || (size_t)(eq - text) >= HD_MAX_NAME ||
		hd_num_real(eq + 1, 0, HD_LORA_MAX_ALPHA, number, NULL))
		return false;
	memcpy(pattern, text, (size_t)(eq - text));
	pattern[eq - text] = '\0';
	return true;
}

static double number_of(const char *const *by, uint32_t n, const char *name, double common)
{
	char pattern[HD_MAX_NAME];
	double number;

	for (uint32_t i = 0; i < n; i++)
		if (hd_lora_split(by[i], pattern, &number) && hd_name_matches(pattern, name))
			return number;
	return common;
}

struct hd_lora_of hd_lora_of(const struct hd_lora *lora, const char *name)
{
	struct hd_lora_of of = {
		.rank = (uint32_t)number_of(lora->ranks, lora->nranks, name, lora->rank),
		.alpha = number_of(lora->alphas, lora->nalphas, name, (double)lora->alpha) };

	of.scale = lora->root ? (float)(of.alpha / sqrt(of.rank)) : (float)of.alpha / (float)of.rank;
	return of;
}

/* Each of them says something of a target, or it is a slip. */
static enum hd_err numbers_hit(const struct hd_graph *graph, const struct hd_lora *lora, const char *key,
	const char *const *by, uint32_t n, struct hd_diag *diag)
{
	char pattern[HD_MAX_NAME];
	double number;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = 0;
		if (!hd_lora_split(by[i], pattern, &number))
			return hd_fail(diag, HD_E_INVAL, "%s: \"%s\" is no PATTERN=NUMBER", key, by[i]);
		while (p < graph->nparams && !(hd_name_matches(pattern, param_name(graph, p)) &&
			matches(lora->target, lora->ntargets, param_name(graph, p))))
			p++;
		if (p == graph->nparams)
			return hd_fail(diag, HD_E_INVAL, "%s: \"%s\" names none of model.lora.targets", key,
				pattern);
	}
	return HD_OK;
}

/* ---- adapters. Of parameter p of the old graph, in the new one. */

struct adapter { uint32_t a, b; };      /* HD_NONE: none */

static bool is_product_of(const struct hd_node *node, uint32_t value)
{
	return node->op == HD_OP_MATMUL && node->in[1] == value && node->in[0] != value && !node->attr.i[0];
}

static enum hd_err check_target(const struct hd_graph *graph, uint32_t p, struct hd_diag *diag)
{
	uint32_t value = graph->param[p].value, products = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		for (int k = 0; k < graph->node[i].nin; k++) {
			if (graph->node[i].in[k] != value)
				continue;
			if (!is_product_of(&graph->node[i], value))
				return hd_fail(diag, HD_E_INVAL,
					"model.lora.targets: %s is read by %s too: only a matrix that "
					"products alone read can "
					"have adapters", param_name(graph, p),
					hd_ops[graph->node[i].op].name);
			products++;
		}
	if (!products || graph->value[value].rank != 2)
		return hd_fail(diag, HD_E_INVAL, "model.lora.targets: %s %s is no matrix of a product",
			param_name(graph, p),
			hd_value_shape(&graph->value[value]).at);
	return HD_OK;
}

/* Whether W is stored [out, in] is a matter of its products; they agree, or their shapes would not. */
static bool stored_out_in(const struct hd_graph *graph, uint32_t value)
{
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (is_product_of(&graph->node[i], value))
			return graph->node[i].attr.i[1];
	return false;
}

static enum hd_err add_params(struct hd_rewrite *r, uint32_t p, uint32_t rank, struct adapter *adapter,
	struct hd_diag *diag)
{
	const struct hd_value *w = &r->from->value[r->from->param[p].value];
	bool out_in = stored_out_in(r->from, r->from->param[p].value);
	int64_t in = w->dim[out_in], out = w->dim[!out_in];
	char name[HD_MAX_NAME + sizeof suffix_a];

	snprintf(name, sizeof name, "%s%s", param_name(r->from, p), suffix_a);
	enum hd_err err = hd_graph_param(&r->graph, name, 2, (int64_t[]){ rank, in }, HD_INIT_UNIFORM,
		1.0f / sqrtf((float)in), &adapter->a, diag);
	snprintf(name, sizeof name, "%s%s", param_name(r->from, p), suffix_b);
	return err ? err : hd_graph_param(&r->graph, name, 2, (int64_t[]){ out, rank }, HD_INIT_ZEROS, 0,
		&adapter->b, diag);
}

static enum hd_err add_node(struct hd_rewrite *r, const struct hd_node *like, enum hd_op op, uint32_t a,
	uint32_t b, struct hd_attr attr,
	uint32_t *out, struct hd_diag *diag)
{
	return hd_graph_node(&r->graph, (uint16_t)op, b == HD_NONE ? 1 : 2, (uint32_t[]){ a, b }, &attr,
		like->stage, out, diag);
}

/* The product as it was, then what is added to it. */
static enum hd_err adapt(struct hd_rewrite *r, const struct hd_node *node, const struct adapter *adapter,
	float scale, float dropout, struct hd_diag *diag)
{
	static const struct hd_attr none, turned = { .i = { 0, 1 } };
	uint32_t x, narrow, wide;
	enum hd_err err = hd_rewrite_copy(r, node, diag);

	if (!err)
		err = hd_rewrite_value(r, node->in[0], &x, diag);
	if (!err && dropout > 0)
		err = add_node(r, node, HD_OP_DROPOUT, x, HD_NONE, (struct hd_attr){ .f = { dropout } }, &x,
			diag);
	if (!err)
		err = add_node(r, node, HD_OP_MATMUL, x, adapter->a, turned, &narrow, diag);
	if (!err)
		err = add_node(r, node, HD_OP_MATMUL, narrow, adapter->b, turned, &wide, diag);
	if (!err)
		err = add_node(r, node, HD_OP_SCALE, wide, HD_NONE, (struct hd_attr){ .f = { scale } }, &wide,
			diag);
	return err ? err : add_node(r, node, HD_OP_ADD, r->to[node->out], wide, none, &r->to[node->out],
		diag);
}

static enum hd_err freeze_rest(struct hd_graph *graph, const struct hd_lora *lora)
{
	for (uint32_t p = 0; p < graph->nparams; p++)
		graph->param[p].frozen |= !matches(lora->train, lora->ntrain, param_name(graph, p));
	return HD_OK;
}

/* Keys of random nodes ascend, and adapters stand between those that were there. */
static void number_draws(struct hd_graph *graph)
{
	graph->nrandom = 0;
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (hd_ops[graph->node[i].op].class == HD_OP_RANDOM)
			graph->node[i].key = graph->nrandom++;
}

enum hd_err hd_graph_lora(struct hd_graph *graph, const struct hd_lora *lora, struct hd_diag *diag)
{
	struct adapter *adapter = hd_arena_take(graph->arena, graph->nparams + 1, sizeof *adapter);
	struct hd_rewrite r;
	enum hd_err err = patterns_hit(graph, "model.lora.targets", lora->target, lora->ntargets, diag);

	if (!err)
		err = patterns_hit(graph, "model.lora.train", lora->train, lora->ntrain, diag);
	if (!err)
		err = numbers_hit(graph, lora, "model.lora.ranks", lora->ranks, lora->nranks, diag);
	if (!err)
		err = numbers_hit(graph, lora, "model.lora.alphas", lora->alphas, lora->nalphas, diag);
	if (!err && !adapter)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for adapters");
	if (!err)
		err = freeze_rest(graph, lora);
	if (!err)
		err = hd_rewrite_begin(&r, graph, diag);
	for (uint32_t p = 0; p < graph->nparams && !err; p++) {
		adapter[p] = (struct adapter){ HD_NONE, HD_NONE };
		if (!matches(lora->target, lora->ntargets, param_name(graph, p)))
			continue;
		err = check_target(graph, p, diag);
		if (!err)
			err = add_params(&r, p, hd_lora_of(lora, param_name(graph, p)).rank, &adapter[p],
				diag);
	}
	for (uint32_t i = 0; i < graph->nnodes && !err; i++) {
		const struct hd_node *node = &graph->node[i];
		const struct hd_value *w = node->op == HD_OP_MATMUL ? &graph->value[node->in[1]] : NULL;
		bool adapted = w && w->kind == HD_PARAM && adapter[w->data].a != HD_NONE;
		err = adapted ? adapt(&r, node, &adapter[w->data],
			hd_lora_of(lora, param_name(graph, w->data)).scale, lora->dropout, diag)
			: hd_rewrite_copy(&r, node, diag);
	}
	if (!err)
		err = hd_rewrite_end(&r, graph, diag);
	if (!err && lora->dropout > 0)
		number_draws(graph);
	return err;
}

/* ---- merging */

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

bool hd_lora_is_adapter(const char *name) { return ends_with(name, suffix_a) || ends_with(name, suffix_b); }

bool hd_lora_any(const struct hd_state *state)
{
	for (uint32_t i = 0; i < state->nentries; i++)
		if (state->entry[i].group == HD_STATE_MODEL && hd_lora_is_adapter(state->entry[i].name))
			return true;
	return false;
}

static void add_product(float *w, const float *a, const float *b, uint64_t in, uint64_t out, uint32_t rank,
	double scale, bool out_in)
{
	for (uint64_t o = 0; o < out; o++)
		for (uint64_t i = 0; i < in; i++) {
			float *at = out_in ? &w[o * in + i] : &w[i * out + o];
			double sum = 0;
			for (uint32_t k = 0; k < rank; k++)
				sum += (double)b[o * rank + k] * (double)a[k * in + i];
			*at = (float)((double)*at + scale * sum);
		}
}

static struct hd_state_entry *find_adapter(const struct hd_state *state, const char *name, const char *suffix)
{
	char full[HD_MAX_NAME + sizeof suffix_a];

	snprintf(full, sizeof full, "%s%s", name, suffix);
	return hd_state_find(state, full);
}

enum hd_err hd_lora_merge(struct hd_state *state, const struct hd_graph *graph, const struct hd_lora *lora,
	struct hd_diag *diag)
{
	uint32_t kept = 0;

	for (uint32_t p = 0; p < graph->nparams; p++) {
		const struct hd_state_entry *w = hd_state_find(state, param_name(graph, p)),
			*a = find_adapter(state, param_name(graph, p), suffix_a);
		const struct hd_state_entry *b = find_adapter(state, param_name(graph, p), suffix_b);
		if (!w || !a || !b)
			continue;
		const struct hd_lora_of of = hd_lora_of(lora, w->name);
		uint64_t in = (uint64_t)a->dim[1], out = (uint64_t)b->dim[0];
		if (a->dim[0] != of.rank || b->dim[1] != of.rank ||
			w->len_bytes != in * out * sizeof(float))
			return hd_fail(diag, HD_E_INVAL,
				"%s: its adapters are not of rank %u or not of its shape", w->name,
				of.rank);
		add_product(w->at, a->at, b->at, in, out, of.rank, (double)of.scale,
			stored_out_in(graph, graph->param[p].value));
	}
	for (uint32_t i = 0; i < state->nentries; i++)
		if (!hd_lora_is_adapter(state->entry[i].name))
			state->entry[kept++] = state->entry[i];
	state->nentries = kept;
	return HD_OK;
}
