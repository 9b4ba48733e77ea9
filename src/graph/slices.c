#include "graph/slices.h"

#include <string.h>

static uint64_t begin_of(const struct hd_sliced *x, uint32_t slice) { return x->extent * slice / x->n; }

/* The slice that has step `at` of a block: the last one that does not begin behind it. */
static uint32_t slice_of(const struct hd_sliced *x, uint64_t at)
{
	uint32_t s = (uint32_t)(at * x->n / x->extent);

	while (s + 1 < x->n && begin_of(x, s + 1) <= at)
		s++;
	return s;
}

struct hd_slice_run hd_slice_run(const struct hd_sliced *x, uint64_t element)
{
	const uint64_t step = element / x->inner, block = step / x->extent, at = step % x->extent;
	const uint32_t s = slice_of(x, at);
	const uint64_t from = begin_of(x, s), count = begin_of(x, s + 1) - from;
	const uint64_t within = (at - from) * x->inner + element % x->inner;

	return (struct hd_slice_run){ s, block * count * x->inner + within, count * x->inner - within };
}

void hd_slices_get(const struct hd_sliced *x, float *const *slice, uint64_t first, uint64_t n, float *to)
{
	for (uint64_t done = 0; done < n;) {
		const struct hd_slice_run run = hd_slice_run(x, first + done);
		const uint64_t len = run.len < n - done ? run.len : n - done;
		memcpy(to + done, slice[run.slice] + run.at, len * sizeof *to);
		done += len;
	}
}

void hd_slices_put(const struct hd_sliced *x, float *const *slice, uint64_t first, uint64_t n,
	const float *from)
{
	for (uint64_t done = 0; done < n;) {
		const struct hd_slice_run run = hd_slice_run(x, first + done);
		const uint64_t len = run.len < n - done ? run.len : n - done;
		memcpy(slice[run.slice] + run.at, from + done, len * sizeof *from);
		done += len;
	}
}

/* ---- of a graph ---- */

struct hd_value hd_whole_value(const struct hd_graph *graph, uint32_t param)
{
	const struct hd_slice *slice = &graph->param[param].slice;
	struct hd_value v = graph->value[graph->param[param].value];

	if (slice->n > 1)
		v.dim[slice->axis] = slice->extent;
	return v;
}

struct hd_sliced hd_whole_shape(const struct hd_graph *graph, uint32_t param)
{
	const struct hd_slice *slice = &graph->param[param].slice;
	const struct hd_value v = hd_whole_value(graph, param);
	struct hd_sliced x = { .outer = 1, .inner = 1, .extent = 1, .blocks = 1, .n = 1 };

	if (slice->n == 1) {
		x.inner = hd_value_elems(&v, 1);
		return x;
	}
	for (uint32_t d = 0; d < v.rank; d++)
		*(d < slice->axis ? &x.outer : &x.inner) *= d == slice->axis ? 1 : (uint64_t)v.dim[d];
	x.extent = slice->extent / slice->blocks;
	x.blocks = slice->blocks;
	x.n = slice->n;
	return x;
}

const char *hd_whole_name(const struct hd_graph *graph, uint32_t param)
{
	return hd_graph_text_of(graph, graph->param[param].slice.name);
}

/* A slice has what its number says, and what the first one says of the tensor. */
static bool fits(const struct hd_graph *graph, uint32_t param, uint32_t first)
{
	const struct hd_param *p = &graph->param[param], *f = &graph->param[first];
	const struct hd_slice *slice = &p->slice;
	const struct hd_value v = hd_whole_value(graph, param), whole = hd_whole_value(graph, first);

	if (slice->n == 1)
		return true;
	if (slice->axis >= v.rank || !slice->blocks || slice->extent % slice->blocks ||
		slice->extent / slice->blocks < slice->n)
		return false;
	const struct hd_sliced x = hd_whole_shape(graph, param);
	return hd_dims_same(&v, &whole) && slice->n == f->slice.n && slice->axis == f->slice.axis &&
		slice->blocks == f->slice.blocks && p->frozen == f->frozen && p->init == f->init &&
		(uint64_t)graph->value[p->value].dim[slice->axis] == (begin_of(&x, slice->number + 1u) -
		begin_of(&x, slice->number)) * slice->blocks;
}

enum hd_err hd_wholes_make(struct hd_wholes *wholes, const struct hd_graph *graph, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_wholes w = { 0 };

	for (uint32_t p = 0; p < graph->nparams; p++)
		w.n += graph->param[p].slice.number == 0;
	w.first = hd_arena_take(arena, (size_t)w.n + 2, sizeof *w.first);
	w.param = hd_arena_take(arena, (size_t)graph->nparams + 1, sizeof *w.param);
	if (!w.first || !w.param)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the tensors of %u parameters",
			graph->nparams);
	for (uint32_t p = 0; p < graph->nparams; p++) {
		if (graph->param[p].slice.tensor >= w.n)
			return hd_fail(diag, HD_E_INVAL, "parameter %u is of tensor %u, and there are %u", p,
				graph->param[p].slice.tensor, w.n);
		w.first[graph->param[p].slice.tensor + 2]++;
	}
	for (uint32_t t = 0; t < w.n; t++)
		w.first[t + 2] += w.first[t + 1];
	for (uint32_t p = 0; p < graph->nparams; p++)
		w.param[w.first[graph->param[p].slice.tensor + 1]++] = p;
	for (uint32_t t = 0; t < w.n; t++)
		for (uint32_t k = w.first[t]; k < w.first[t + 1]; k++) {
			const struct hd_slice *slice = &graph->param[w.param[k]].slice;
			w.sliced |= slice->n > 1;
			if (hd_whole_slices(&w, t) != slice->n || slice->number != k - w.first[t] ||
				!fits(graph, w.param[k], w.param[w.first[t]]))
				return hd_fail(diag, HD_E_INVAL, "parameter %u is not slice %u of %u of '%s'",
					w.param[k], slice->number, slice->n,
					hd_whole_name(graph, w.param[k]));
		}
	*wholes = w;
	return HD_OK;
}
