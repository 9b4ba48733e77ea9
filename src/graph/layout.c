#include "graph/layout.h"

#include "base/bits.h"

/* The flat vector is addressed by 64-bit bytes everywhere, so 2^40 elements (4 TiB of f32) is a limit of
 * belief, not of type. */
#define MAX_FLAT_ELEMS ((uint64_t)1 << 40)

static enum hd_err take(struct hd_layout *l, struct hd_arena *arena, struct hd_diag *diag)
{
	l->at = hd_arena_take(arena, l->ngrads, sizeof *l->at);
	l->len = hd_arena_take(arena, l->ngrads, sizeof *l->len);
	l->grad_param = hd_arena_take(arena, l->ngrads, sizeof *l->grad_param);
	l->first_segment = hd_arena_take(arena, l->nparams + 1u, sizeof *l->first_segment);
	l->segment = hd_arena_take(arena, l->nsegments, sizeof *l->segment);
	/* there are never more chunks than segments */
	l->chunk = hd_arena_take(arena, l->nsegments, sizeof *l->chunk);
	l->buffer_at = hd_arena_take(arena, l->nbuffers + 1u, sizeof *l->buffer_at);
	l->buffer_len = hd_arena_take(arena, l->nbuffers + 1u, sizeof *l->buffer_len);
	if (!l->buffer_at || !l->buffer_len || !l->at || !l->len || !l->grad_param || !l->first_segment ||
		!l->segment || !l->chunk)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the layout of %u segments", l->nsegments);
	return HD_OK;
}

static enum hd_err count(struct hd_layout *l, const struct hd_graph *graph, struct hd_diag *diag)
{
	uint64_t nsegments = 0;

	for (uint32_t p = 0; p < graph->nparams; p++) {
		uint64_t elems = hd_value_elems(&graph->value[graph->param[p].value], 1);
		l->params_elems += elems;
		l->held_elems += hd_round_up(elems, HD_FLAT_ALIGN_ELEMS);
		if (!graph->param[p].frozen) {
			l->elems += hd_round_up(elems, HD_FLAT_ALIGN_ELEMS);
			nsegments += hd_ceil_div(elems, HD_SEGMENT_ELEMS);
		}
		if (l->held_elems > MAX_FLAT_ELEMS)
			return hd_fail(diag, HD_E_INVAL, "the model has more than 2^40 parameters (at '%s')",
				hd_graph_text_of(graph, graph->value[graph->param[p].value].name));
	}
	l->grad_elems = l->elems;
	for (uint32_t i = 0; i < graph->nparts; i++) {
		const struct hd_value *v = &graph->value[graph->param[graph->part[i].param].value];
		l->grad_elems += hd_round_up(hd_value_elems(v, 1), HD_FLAT_ALIGN_ELEMS);
		if (l->grad_elems > MAX_FLAT_ELEMS)
			return hd_fail(diag, HD_E_INVAL,
				"the gradients of the model have more than 2^40 elements (at '%s')",
				hd_graph_text_of(graph, v->name));
	}
	if (!nsegments)
		return hd_fail(diag, HD_E_INVAL, "all %u parameters are frozen: there is nothing to train",
			graph->nparams);
	l->nparams = graph->nparams;
	l->ngrads = hd_graph_ngrads(graph);
	l->nbuffers = graph->nbuffers;
	l->nsegments = (uint32_t)nsegments;            /* at most 2^40 / 65536 + one per parameter */
	return HD_OK;
}

static void lay_segments(struct hd_layout *l, const struct hd_graph *graph)
{
	uint64_t learned = 0, frozen = l->elems;
	uint32_t n = 0;

	for (uint32_t p = 0; p < l->nparams; p++) {
		uint64_t len = hd_value_elems(&graph->value[graph->param[p].value], 1);
		uint64_t *next = graph->param[p].frozen ? &frozen : &learned, at = *next;
		*next += hd_round_up(len, HD_FLAT_ALIGN_ELEMS);
		l->at[p] = at;
		l->len[p] = len;
		l->grad_param[p] = p;
		l->first_segment[p] = n;
		for (uint64_t from = 0; from < len && !graph->param[p].frozen; from += HD_SEGMENT_ELEMS) {
			uint64_t left = len - from;
			l->segment[n++] = (struct hd_segment){ .at = at + from,
				.len = left < HD_SEGMENT_ELEMS ? left : HD_SEGMENT_ELEMS, .param = p };
		}
	}
	l->first_segment[l->nparams] = n;
}

static void lay_parts(struct hd_layout *l, const struct hd_graph *graph)
{
	uint64_t at = l->elems;

	for (uint32_t g = l->nparams; g < l->ngrads; g++) {
		uint32_t p = l->grad_param[g] = hd_graph_grad_param(graph, g);
		l->at[g] = at;
		l->len[g] = l->len[p];
		at += hd_round_up(l->len[p], HD_FLAT_ALIGN_ELEMS);
	}
}

/* The pieces of one part in the order of buckets, or, with `piece` NULL, how many there are. */
static uint32_t cut_part(const struct hd_layout *l, uint32_t g, struct hd_grad_piece *piece)
{
	const uint32_t p = l->grad_param[g];
	uint32_t n = 0;

	for (uint32_t s = l->first_segment[p]; s < l->first_segment[p + 1]; s++) {
		const uint32_t bucket = hd_layout_bucket_of(l, l->segment[s].chunk);
		const bool next = s == l->first_segment[p] ||
			bucket != hd_layout_bucket_of(l, l->segment[s - 1].chunk);
		n += next;
		if (piece && next)
			piece[n - 1] = (struct hd_grad_piece){
				.at = l->at[g] + (l->segment[s].at - l->at[p]), .grad = g, .bucket = bucket,
				.first_segment = s };
		if (piece) {
			piece[n - 1].len += l->segment[s].len;
			piece[n - 1].nsegments++;
		}
	}
	return n;
}

/* Sorted by bucket; the order of the parts stays. */
static enum hd_err cut_parts(struct hd_layout *l, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nbuckets = hd_layout_nbuckets(l);
	uint32_t n = 0;

	l->npieces = 0;
	for (uint32_t g = l->nparams; g < l->ngrads; g++)
		l->npieces += cut_part(l, g, NULL);
	struct hd_grad_piece *cut = hd_arena_take(arena, l->npieces + 1u, sizeof *cut);
	uint32_t *next = hd_arena_take(arena, nbuckets + 1u, sizeof *next);
	l->piece = hd_arena_take(arena, l->npieces + 1u, sizeof *l->piece);
	l->first_piece = hd_arena_take(arena, nbuckets + 1u, sizeof *l->first_piece);
	if (!cut || !next || !l->piece || !l->first_piece)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the layout of %u pieces", l->npieces);
	for (uint32_t g = l->nparams; g < l->ngrads; g++)
		n += cut_part(l, g, cut + n);
	for (uint32_t i = 0; i < n; i++)
		l->first_piece[cut[i].bucket + 1]++;
	for (uint32_t b = 0; b < nbuckets; b++)
		l->first_piece[b + 1] += next[b] = l->first_piece[b];
	for (uint32_t i = 0; i < n; i++)
		l->piece[next[cut[i].bucket]++] = cut[i];
	return HD_OK;
}

static enum hd_err weigh(struct hd_layout *l, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nbuckets = hd_layout_nbuckets(l);

	l->moved = hd_arena_take(arena, nbuckets + 1u, sizeof *l->moved);
	if (!l->moved)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the layout of %u buckets", nbuckets);
	for (uint32_t run = 0; run < hd_layout_nruns(l); run++) {
		const struct hd_grad_run is = hd_layout_run(l, run);
		l->moved[is.bucket] += (run < nbuckets ? 2 : 1) * is.len * sizeof(float);
	}
	return HD_OK;
}

static enum hd_err lay_buffers(struct hd_layout *l, const struct hd_graph *graph, struct hd_diag *diag)
{
	for (uint32_t b = 0; b < l->nbuffers; b++) {
		l->buffer_at[b] = l->buffer_elems;
		l->buffer_len[b] = hd_value_elems(&graph->value[graph->buffer[b].value], 1);
		l->buffer_elems += hd_round_up(l->buffer_len[b], HD_FLAT_ALIGN_ELEMS);
		if (l->buffer_elems > MAX_FLAT_ELEMS)
			return hd_fail(diag, HD_E_INVAL,
				"the buffers of the model have more than 2^40 elements (at '%s')",
				hd_graph_text_of(graph, graph->value[graph->buffer[b].value].name));
	}
	return HD_OK;
}

/* A segment counts into its chunk with the pad after it, so that chunks tile the vector;
 * the limit is on that sum too, and a full segment alone always fits. `nsegments`: of each bucket, which
 * begins a chunk; NULL: none does. */
static void close_chunks(struct hd_layout *l, const uint32_t *nsegments)
{
	uint32_t bucket = 0, next = 0;            /* the bucket that begins with segment `next` */

	l->nchunks = 0;
	for (uint32_t s = 0; s < l->nsegments; s++) {
		const bool first = nsegments && s == next;
		struct hd_segment *segment = &l->segment[s];
		uint64_t end = s + 1 < l->nsegments ? l->segment[s + 1].at : l->elems;
		struct hd_chunk *chunk = l->nchunks ? &l->chunk[l->nchunks - 1] : NULL;
		if (first) {
			l->first_chunk[bucket] = l->nchunks;
			next += nsegments[bucket++];
		}
		if (!chunk || first || end - chunk->at > HD_CHUNK_ELEMS) {
			if (nsegments)
				l->bucket_of[l->nchunks] = bucket - 1;
			chunk = &l->chunk[l->nchunks++];
			*chunk = (struct hd_chunk){ .at = segment->at, .first_segment = s };
		}
		chunk->len = end - chunk->at;
		chunk->nsegments++;
		segment->chunk = l->nchunks - 1;
	}
}

enum hd_err hd_layout_make(struct hd_layout *layout, const struct hd_graph *graph, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_layout l = { 0 };
	enum hd_err err;

	if (graph->nparams == 0)
		return hd_fail(diag, HD_E_INVAL, "the graph has no parameters: there is nothing to train");
	err = count(&l, graph, diag);
	if (err == HD_OK)
		err = take(&l, arena, diag);
	if (err == HD_OK)
		err = lay_buffers(&l, graph, diag);
	if (err != HD_OK)
		return err;
	lay_segments(&l, graph);
	close_chunks(&l, NULL);
	lay_parts(&l, graph);
	err = cut_parts(&l, arena, diag);
	if (err == HD_OK)
		err = weigh(&l, arena, diag);
	if (err == HD_OK)
		*layout = l;
	return err;
}

enum hd_err hd_layout_cut(struct hd_layout *layout, uint32_t nbuckets, const uint32_t *nsegments,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_layout l = *layout;
	uint64_t all = 0;
	uint32_t b = 0;

	for (; b < nbuckets && nsegments[b]; b++)
		all += nsegments[b];
	if (nbuckets && (b < nbuckets || all != l.nsegments))
		return hd_fail(diag, HD_E_INVAL, "%u buckets of %llu segments are none of this model, "
			"which has %u: they were cut for another one", nbuckets, (unsigned long long)all,
			l.nsegments);
	l.nbuckets = nbuckets;
	l.first_chunk = nbuckets ? hd_arena_take(arena, nbuckets + 1u, sizeof *l.first_chunk) : NULL;
	l.bucket_of = nbuckets ? hd_arena_take(arena, l.nsegments, sizeof *l.bucket_of) : NULL;
	if (nbuckets && (!l.first_chunk || !l.bucket_of))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u buckets", nbuckets);
	close_chunks(&l, nbuckets ? nsegments : NULL);
	if (nbuckets)
		l.first_chunk[nbuckets] = l.nchunks;
	enum hd_err err = cut_parts(&l, arena, diag);
	err = err ? err : weigh(&l, arena, diag);
	if (!err)
		*layout = l;
	return err;
}

uint32_t hd_layout_nbuckets(const struct hd_layout *l)
{
	return l->first_chunk ? l->nbuckets : (l->nchunks + HD_BUCKET_CHUNKS - 1) / HD_BUCKET_CHUNKS;
}

struct hd_chunk hd_layout_bucket(const struct hd_layout *l, uint32_t bucket)
{
	struct hd_chunk run = l->chunk[hd_layout_first_chunk(l, bucket)];
	const struct hd_chunk *last = &l->chunk[hd_layout_first_chunk(l, bucket + 1) - 1];

	run.len = last->at + last->len - run.at;
	run.nsegments = last->first_segment + last->nsegments - run.first_segment;
	return run;
}

uint64_t hd_layout_most_bytes(const struct hd_layout *l)
{
	uint64_t most = 0;

	for (uint32_t b = 0; b < hd_layout_nbuckets(l); b++) {
		const uint64_t bytes = hd_layout_bucket(l, b).len * sizeof(float);
		most = bytes > most ? bytes : most;
	}
	return most;
}

uint32_t hd_layout_nruns(const struct hd_layout *layout)
{
	return hd_layout_nbuckets(layout) + layout->npieces;
}

struct hd_grad_run hd_layout_run(const struct hd_layout *layout, uint32_t run)
{
	const uint32_t nbuckets = hd_layout_nbuckets(layout);

	if (run < nbuckets) {
		const struct hd_chunk bucket = hd_layout_bucket(layout, run);
		return (struct hd_grad_run){ bucket.at, bucket.len, run };
	}
	const struct hd_grad_piece *piece = &layout->piece[run - nbuckets];
	return (struct hd_grad_run){ piece->at, piece->len, piece->bucket };
}

uint32_t hd_layout_pieces(const struct hd_layout *layout, uint32_t bucket, uint32_t *first)
{
	*first = hd_layout_nbuckets(layout);
	if (!layout->npieces)
		return 0;
	*first += layout->first_piece[bucket];
	return layout->first_piece[bucket + 1] - layout->first_piece[bucket];
}

uint64_t hd_layout_run_room(const struct hd_layout *layout, uint32_t run)
{
	return hd_round_up(hd_layout_run(layout, run).len * sizeof(float), 64);
}
