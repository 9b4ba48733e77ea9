#include "plan/buckets.h"

#include <string.h>

/* What the segments of a parameter have in common. */
struct param_stages { uint32_t stage; uint64_t makers, readers; };

/* Stages, each of one or of several groups. */
struct table { const struct hd_layout *layout; const struct hd_graph_stages *cuts;
	const struct hd_graph_spread *spread; };

static uint32_t nstages(const struct table *t)
{
	return t->cuts ? t->cuts->n * (t->spread ? t->spread->ngroups : 1) : 1;
}

/* That makes a gradient. */
static uint32_t stage_of(const struct table *t, uint32_t grad)
{
	return t->spread ? t->spread->of_grad[grad] : t->cuts ? t->cuts->of_grad[grad] : 0;
}

static uint64_t maker(const struct table *t, uint32_t grad) { return UINT64_C(1) << stage_of(t, grad); }

/* Stages whose nodes read a parameter's value, or a view of it; a gradient node reads it where its product is
 * made. */
static void mark_readers(struct param_stages *of, const struct table *t, uint32_t cut, const uint32_t *root)
{
	const struct hd_graph *g = &t->cuts->stage[cut].graph;

	for (uint32_t i = 0; i < g->nnodes; i++) {
		const uint32_t stage = t->spread ? cut * t->spread->ngroups +
			hd_spread_group(t->spread, cut, i) : cut;
		for (uint8_t k = 0; k < g->node[i].nin; k++)
			for (uint32_t p = 0; p < g->nparams; p++)
				if (g->param[p].value == root[g->node[i].in[k]])
					of[p].readers |= UINT64_C(1) << stage;
	}
}

static enum hd_err stages_of(struct param_stages **out, const struct table *t, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_layout *layout = t->layout;
	struct param_stages *of = hd_arena_take(arena, layout->nparams + 1, sizeof *of);

	if (!of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the stages of %u parameters",
			layout->nparams);
	for (uint32_t p = 0; p < layout->nparams; p++)
		of[p].stage = stage_of(t, p);
	for (uint32_t g = layout->nparams; g < layout->ngrads; g++) {     /* parts of tied ones */
		struct param_stages *is = &of[layout->grad_param[g]];
		is->stage = stage_of(t, g) < is->stage ? stage_of(t, g) : is->stage;
	}
	for (uint32_t g = 0; g < layout->ngrads; g++)
		of[layout->grad_param[g]].makers |= maker(t, g);
	for (uint32_t p = 0; p < layout->nparams; p++)
		of[p].readers = UINT64_C(1) << of[p].stage;
	for (uint32_t s = 0; t->cuts && s < t->cuts->n; s++) {
		const uint32_t *root = t->spread ? t->spread->at[s].root :
			hd_tensor_roots(&t->cuts->stage[s].graph, arena);
		if (!root)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the views of stage %u", s);
		mark_readers(of, t, s, root);
	}
	*out = of;
	return HD_OK;
}

static void find_run_makers(uint64_t *of, const struct table *t)
{
	const struct hd_layout *layout = t->layout;

	for (uint32_t i = 0; i < layout->nsegments; i++)
		of[hd_layout_bucket_of(layout, layout->segment[i].chunk)] |= maker(t,
			layout->segment[i].param);
	for (uint32_t i = 0; i < layout->npieces; i++)
		of[hd_layout_nbuckets(layout) + i] = maker(t, layout->piece[i].grad);
}

enum hd_err hd_stage_buckets_make(struct hd_stage_buckets *buckets, const struct hd_layout *layout,
	const struct hd_graph_stages *cuts, const struct hd_graph_spread *spread, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct table table = { layout, cuts, spread };
	struct hd_stage_buckets made = { .n = hd_layout_nbuckets(layout), .nstages = nstages(&table) };
	struct param_stages *of = NULL;

	if (made.nstages > HD_STAGE_BITS)
		return hd_fail(diag, HD_E_INVAL, "%u stages; at most %d go with workers", made.nstages,
			HD_STAGE_BITS);
	enum hd_err err = stages_of(&of, &table, arena, diag);
	if (err)
		return err;
	made.at = hd_arena_take(arena, made.n + 1, sizeof *made.at);
	made.run_makers = hd_arena_take(arena, hd_layout_nruns(layout) + 1, sizeof *made.run_makers);
	if (!made.at || !made.run_makers)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a table of buckets");
	for (uint32_t b = 0; b < made.n; b++)
		made.at[b].stage = made.nstages - 1;
	for (uint32_t i = 0; i < layout->nsegments; i++) {
		const struct param_stages *is = &of[layout->segment[i].param];
		struct hd_stage_bucket *at = &made.at[hd_layout_bucket_of(layout,
			layout->segment[i].chunk)];
		at->stage = is->stage < at->stage ? is->stage : at->stage;
		at->makers |= is->makers;
		at->readers |= is->readers | is->makers;
	}
	find_run_makers(made.run_makers, &table);
	*buckets = made;
	return HD_OK;
}

/* Buckets of a tensor, ascending, into `to` if it is not NULL; returns how many. */
static uint32_t buckets_of(uint32_t *to, uint8_t *has, const struct hd_layout *layout,
	const struct hd_wholes *wholes, uint32_t tensor)
{
	const uint32_t nbuckets = hd_layout_nbuckets(layout);
	uint32_t n = 0;

	memset(has, 0, nbuckets);
	for (uint32_t k = wholes->first[tensor]; k < wholes->first[tensor + 1]; k++) {
		const uint32_t p = wholes->param[k];
		for (uint32_t i = layout->first_segment[p]; i < layout->first_segment[p + 1]; i++)
			has[hd_layout_bucket_of(layout, layout->segment[i].chunk)] = 1;
	}
	for (uint32_t b = 0; b < nbuckets; b++) {
		if (to && has[b])
			to[n] = b;
		n += has[b];
	}
	return n;
}

enum hd_err hd_bucket_tensors_make(struct hd_bucket_tensors *tensors, const struct hd_layout *layout,
	const struct hd_wholes *wholes, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_bucket_tensors made = { .n = 0 };
	uint8_t *has = hd_arena_take(arena, hd_layout_nbuckets(layout) + 1, sizeof *has);
	uint32_t all = 0;

	for (uint32_t t = 0; has && t < wholes->n; t++)
		all += buckets_of(NULL, has, layout, wholes, t);
	made.first = hd_arena_take(arena, wholes->n + 1, sizeof *made.first);
	made.bucket = hd_arena_take(arena, all + 1, sizeof *made.bucket);
	if (!has || !made.first || !made.bucket)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the buckets of %u tensors", wholes->n);
	made.first[0] = 0;
	for (uint32_t t = 0; t < wholes->n; t++) {
		const uint32_t at = made.first[made.n], n = buckets_of(made.bucket + at, has, layout, wholes,
			t);
		if (n > 1)
			made.first[++made.n] = at + n;
	}
	*tensors = made;
	return HD_OK;
}
