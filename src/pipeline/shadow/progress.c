#include "pipeline/failover.h"

static bool is_send(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG || op == HD_INS_SHIP; }

/* The span of a send ends where its tensor is used. */
static bool is_done(const struct hd_ins *ins, struct hd_sim_span span, int64_t time)
{
	return is_send(ins->op) ? span.start <= time : span.end <= time;
}

static uint8_t what_arrives(const struct hd_ins *ins)
{
	return ins->op == HD_INS_SA ? HD_ARRIVED_ACT : ins->op != HD_INS_SG ? 0 :
		ins->flags & HD_INS_SHADOW ? HD_ARRIVED_COPY : HD_ARRIVED_GRAD;
}

/* Sums that several ranks make together: once that is over all of them hold it. */
static void note_sums(const struct hd_sim_plan *sim, uint32_t rank, int64_t time, bool *settled)
{
	const struct hd_ilist *list = &sim->ran.list[rank];
	uint32_t nreds = 0, ndone = 0, stage = 0;

	for (uint32_t i = 0; i < list->len; i++)
		if (list->at[i].op == HD_INS_RED) {
			stage = list->at[i].stage;
			nreds++;
			ndone += sim->span[rank][i].end <= time;
		}
	for (uint32_t v = 0; nreds && ndone == nreds && v < sim->ran.nvns; v++)
		settled[(size_t)stage * sim->ran.nvns + v] = true;
}

enum hd_err hd_step_progress_at(struct hd_step_progress *out, const struct hd_sim_plan *sim, int64_t time,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_schedule *s = &sim->ran;
	const size_t cells = (size_t)s->nstages * s->nvns + 1;
	uint32_t *at = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *at);
	uint8_t *arrived = hd_arena_take(arena, cells, 1);
	bool *settled = hd_arena_take(arena, cells, sizeof *settled),
		*shipped = hd_arena_take(arena, (size_t)s->nranks + 1, sizeof *shipped);

	if (!sim->span || sim->steps != 1)
		return hd_fail(diag, HD_E_INVAL, "progress is that of one step, simulated with spans");
	if (!at || !arrived || !settled || !shipped)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the progress of %u ranks", s->nranks);
	for (uint32_t r = 0; r < s->nranks; r++) {
		uint32_t holder = s->nranks;
		bool all = true;
		while (at[r] < s->list[r].len && is_done(&s->list[r].at[at[r]], sim->span[r][at[r]], time))
			at[r]++;
		for (uint32_t i = 0; i < s->list[r].len; i++) {
			const struct hd_ins *ins = &s->list[r].at[i];
			const bool there = i < at[r] && sim->span[r][i].end <= time;
			if (what_arrives(ins) && there)
				arrived[(size_t)ins->stage * s->nvns + ins->vn] |= what_arrives(ins);
			if (ins->op == HD_INS_SHIP) {
				holder = ins->peer;
				all &= there;
			}
		}
		if (holder < s->nranks)
			shipped[holder] = all;
		note_sums(sim, r, time, settled);
	}
	*out = (struct hd_step_progress){ .at = at, .arrived = arrived, .settled = settled,
		.shipped = shipped };
	return HD_OK;
}
