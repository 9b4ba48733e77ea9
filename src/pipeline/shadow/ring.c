#include "pipeline/redundancy.h"

const char *const hd_redundancy_names[HD_NREDUNDANCIES] = {
#define X(id, name, about) name,
	HD_REDUNDANCIES(X)
#undef X
};

const char *const hd_shadow_place_names[HD_NSHADOW_PLACES] = {
#define X(id, name) name,
	HD_SHADOW_PLACES(X)
#undef X
};

static bool is_own_forward(const struct hd_ins *ins)
{
	return ins->op == HD_INS_F && !(ins->flags & HD_INS_SHADOW);
}

/* The stage of each rank: that of all its forwards. */
static enum hd_err find_stages(struct hd_shadow_ring *g, const struct hd_schedule *s, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		g->stage[r] = HD_NO_RANK;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			if (!is_own_forward(ins))
				continue;
			if (ins->stage >= s->nstages || ins->vn >= s->nvns)
				return hd_fail(diag, HD_E_BADPLAN, "rank %u, #%u: F%u.%u does not exist", r,
					i, ins->stage, ins->vn);
			if (g->stage[r] != HD_NO_RANK && g->stage[r] != ins->stage)
				return hd_fail(diag, HD_E_INVAL,
					"rank %u runs stages %u and %u: with shadows a rank has one stage, "
					"as in gpipe, 1f1b, zb-h1, zb-h2", r, g->stage[r], ins->stage);
			g->stage[r] = ins->stage;
		}
		if (g->stage[r] == HD_NO_RANK)
			return hd_fail(diag, HD_E_INVAL,
				"rank %u runs no stage: with shadows every rank has one", r);
	}
	return HD_OK;
}

/* Of a rank: how many virtual nodes it runs forward, all of one pipeline. HD_NO_RANK: of several. */
static uint32_t count_forwards(struct hd_shadow_ring *g, const struct hd_ilist *list, uint32_t rank)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->len; i++) {
		if (!is_own_forward(&list->at[i]))
			continue;
		uint32_t k = g->pipeline_of[list->at[i].vn];
		if (n++ == 0)
			g->pipeline[rank] = k;
		if (k != g->pipeline[rank])
			return HD_NO_RANK;
	}
	return n;
}

/* A pipeline are the virtual nodes of one rank of stage 0; the ranks of other stages have the same. */
static enum hd_err find_pipelines(struct hd_shadow_ring *g, const struct hd_schedule *s, struct hd_diag *diag)
{
	for (uint32_t r = 0; r < s->nranks; r++) {
		for (uint32_t i = 0; g->stage[r] == 0 && i < s->list[r].len; i++)
			if (is_own_forward(&s->list[r].at[i]))
				g->pipeline_of[s->list[r].at[i].vn] = g->npipelines;
		g->npipelines += g->stage[r] == 0;
	}
	if ((uint64_t)g->npipelines * g->nstages != g->nranks)
		return hd_fail(diag, HD_E_INVAL,
			"%u ranks are not %u pipelines of %u stages: with shadows each stage has as many "
			"ranks as stage 0", g->nranks, g->npipelines, g->nstages);
	for (uint32_t r = 0; r < s->nranks; r++) {
		uint32_t n = count_forwards(g, &s->list[r], r), *at;
		if (n == HD_NO_RANK)
			return hd_fail(diag, HD_E_INVAL,
				"rank %u runs virtual nodes of several pipelines: with shadows all stages "
				"share them out alike", r);
		at = &g->rank[g->pipeline[r] * g->nstages + g->stage[r]];
		if (*at != HD_NO_RANK)
			return hd_fail(diag, HD_E_INVAL,
				"ranks %u and %u both run stage %u for one pipeline: with shadows all stages "
				"share virtual nodes out alike", *at, r, g->stage[r]);
		*at = r;
	}
	return HD_OK;
}

enum hd_err hd_shadow_ring_of(struct hd_shadow_ring *out, const struct hd_schedule *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_shadow_ring g = { .nranks = s->nranks, .nstages = s->nstages };

	if (s->prologue || s->update != HD_UPDATE_FLUSH)
		return hd_fail(diag, HD_E_INVAL,
			"updates are delayed (%s): with shadows they are those of whole steps",
			hd_update_names[s->update]);
	if (s->nstages < 2)
		return hd_fail(diag, HD_E_INVAL,
			"there is %u stage: a shadow stands on a rank of another stage", s->nstages);
	g.stage = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *g.stage);
	g.pipeline = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *g.pipeline);
	g.rank = hd_arena_take(arena, (size_t)s->nranks + s->nstages, sizeof *g.rank);
	g.pipeline_of = hd_arena_take(arena, (size_t)s->nvns + 1, sizeof *g.pipeline_of);
	if (!g.stage || !g.pipeline || !g.rank || !g.pipeline_of)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the ring of %u ranks", s->nranks);
	for (uint32_t r = 0; r < s->nranks; r++)
		g.rank[r] = HD_NO_RANK;
	enum hd_err err = find_stages(&g, s, diag);
	err = err ? err : find_pipelines(&g, s, diag);
	if (!err)
		*out = g;
	return err;
}
