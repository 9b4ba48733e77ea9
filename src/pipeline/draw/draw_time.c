#include "pipeline/draw_time.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Letter of what stands still beside it; 0: not drawn. */
static const struct { uint8_t op; char letter; bool compute; } drawn[] = {
	{ HD_INS_F, 'F', true }, { HD_INS_B, 'B', true }, { HD_INS_I, 'I', true }, { HD_INS_W, 'W', true }, { HD_INS_R, 'R', true },
	{ HD_INS_STEP, 'U', true }, { HD_INS_RED, 'r', false }, { HD_INS_TIE, 'r', false },
};

static char letter_of(uint8_t op, bool compute)
{
	for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
		if (drawn[i].op == op && drawn[i].compute == compute)
			return drawn[i].letter;
	return 0;
}

/* Columns whose middle lies in the span: [*from, *to). */
static void columns_of(const struct hd_sim_span *span, int64_t makespan, uint32_t columns, uint32_t *from,
	uint32_t *to)
{
	double scale = (double)columns / (double)makespan;

	*from = (uint32_t)ceil((double)span->start * scale - 0.5);
	*to = (uint32_t)ceil((double)span->end * scale - 0.5);
	*to = *to < columns ? *to : columns;
}

/* chunk[s]: which of the rank's stages, in ascending order, s is. */
static void number_chunks(const struct hd_schedule *s, uint32_t r, uint32_t *chunk)
{
	uint32_t n = 0;

	memset(chunk, 0, s->nstages * sizeof *chunk);
	for (uint32_t i = 0; i < s->list[r].len; i++)
		if (s->list[r].at[i].op == HD_INS_F && !(s->list[r].at[i].flags & HD_INS_SHADOW))
			chunk[s->list[r].at[i].stage] = 1;
	for (uint32_t k = 0; k < s->nstages; k++)
		if (chunk[k])
			chunk[k] = n++;
}

static void put(char *row, uint32_t from, uint32_t to, const char *word)
{
	memset(row + from, '=', to - from);
	for (uint32_t c = from; c < to && *word; c++)
		row[c] = *word++;
}

static void draw_rank(const struct hd_sim_plan *sim, uint32_t r, const uint32_t *chunks, char *row,
	uint32_t columns)
{
	const struct hd_ilist *list = &sim->ran.list[r];
	char word[24];
	uint32_t from, to;

	memset(row, '.', columns);
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		char letter = letter_of(ins->op, false);
		columns_of(&sim->span[r][i], sim->makespan, columns, &from, &to);
		if (letter && from < to)
			memset(row + from, letter, to - from);
	}
	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		char letter = letter_of(ins->op, true);
		columns_of(&sim->span[r][i], sim->makespan, columns, &from, &to);
		if (!letter || from >= to)
			continue;
		const bool shadow = ins->flags & HD_INS_SHADOW;
		uint32_t chunk = shadow ? 0 : chunks[ins->stage];
		if (ins->op == HD_INS_STEP)
			snprintf(word, sizeof word, "%c", letter);
		else
			snprintf(word, sizeof word, "%c%d%.1s", shadow ? letter - 'A' + 'a' : letter,
				(int32_t)ins->vn,
				chunk ? (char[2]){ (char)('a' + chunk % 26), 0 } : "");
		put(row, from, to, word);
	}
}

enum hd_err hd_draw_time(const struct hd_sim_plan *sim, uint32_t columns, struct hd_text *text,
	struct hd_diag *diag)
{
	char *row = hd_arena_take(text->arena, (size_t)columns + 1, 1);
	uint32_t *chunks = hd_arena_take(text->arena, (size_t)sim->ran.nstages + 1, sizeof *chunks);

	if (!sim->span || !columns || columns > HD_DRAW_TIME_COLUMNS || sim->makespan <= 0)
		return hd_fail(diag, HD_E_INVAL,
			"a timeline needs a simulation with spans, and from 1 to %d columns, not %u",
			HD_DRAW_TIME_COLUMNS, columns);
	if (!row || !chunks)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a drawing");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		number_chunks(&sim->ran, r, chunks);
		draw_rank(sim, r, chunks, row, columns);
		hd_text_addf(text, "%5u |%s|\n", r, row);
	}
	hd_text_addf(text, "      one column is %.4g ms\n",
		hd_sim_plan_s(sim, sim->makespan) / columns * 1e3);
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a drawing") : HD_OK;
}
