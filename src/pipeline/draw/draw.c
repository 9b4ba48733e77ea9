#include "pipeline/draw.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/redundancy.h"

static bool shown(const struct hd_ins *ins) { return ins->op >= HD_INS_F && ins->op <= HD_INS_R; }

static int64_t divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* "F12", of the second chunk "F12b". */
static int label(const struct hd_sim *sim, const struct hd_ins *ins, char out[24])
{
	uint32_t chunk = ins->stage / (sim->ran.nranks ? sim->ran.nranks : 1);
	char letter[2] = { (char)('a' + chunk % 26), 0 };

	return snprintf(out, 24, "%s%s%d%s", hd_ins_row(ins->op)->text, ins->flags & HD_INS_SHADOW ? "x" : "",
		(int32_t)ins->vn, chunk ? letter : "");
}

struct frame { int64_t cell; size_t width; };

static struct frame frame_of(const struct hd_sim *sim)
{
	struct frame f = { 0, 1 };
	char word[24];

	for (uint32_t r = 0; r < sim->ran.nranks; r++)
		for (uint32_t i = 0; i < sim->ran.list[r].len; i++) {
			const struct hd_sim_span *span = &sim->span[r][i];
			if (!shown(&sim->ran.list[r].at[i]) || span->end == span->start)
				continue;
			f.cell = divisor(divisor(f.cell, span->start), span->end);
			size_t len = (size_t)label(sim, &sim->ran.list[r].at[i], word);
			f.width = len > f.width ? len : f.width;
		}
	f.width++;                                /* a blank before the next one */
	return f;
}

/* An instruction over n cells: its name, then = (& where it is half of a pair). */
static void put_span(char *row, size_t cells, size_t width, const char *word, bool pair)
{
	size_t len = strlen(word);

	memset(row, pair ? '&' : '=', cells * width - 1);
	memcpy(row, word, len < cells * width - 1 ? len : cells * width - 1);
}

enum hd_err hd_draw_text(const struct hd_sim *sim, struct hd_text *text, struct hd_diag *diag)
{
	struct frame f = frame_of(sim);
	int64_t cells = f.cell ? sim->makespan / f.cell : 0;
	char word[24];

	if (cells == 0 || cells > HD_DRAW_CELLS)
		return hd_fail(diag, HD_E_INVAL,
			"as text it is %lld cells wide; %d are the most: draw a picture (-o FILE.svg) or "
			"fewer virtual nodes",
			(long long)cells, HD_DRAW_CELLS);
	char *row = hd_arena_take(text->arena, (size_t)cells * f.width + 1, 1);
	if (!row)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a drawing");
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		memset(row, ' ', (size_t)cells * f.width);
		for (uint32_t i = 0; i < sim->ran.list[r].len; i++) {
			const struct hd_ins *ins = &sim->ran.list[r].at[i];
			const struct hd_sim_span span = sim->span[r][i];
			if (!shown(ins) || span.start == span.end)
				continue;
			/* a pair shows its forward first, its backward over the second half */
			bool half = ins->flags & HD_INS_PAIR_END;
			size_t n = (size_t)((span.end - span.start) / f.cell), skip = half ? n / 2 : 0;
			label(sim, ins, word);
			put_span(row + ((size_t)(span.start / f.cell) + skip) * f.width, n - skip, f.width,
				word, ins->flags & HD_INS_PAIR);
		}
		hd_text_addf(text, "%4u |%.*s|\n", r, (int)((size_t)cells * f.width), row);
	}
	hd_text_addf(text, "     one cell is %g\n", hd_sim_units(sim, f.cell));
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a drawing") : HD_OK;
}

/* ---- SVG */

static const struct { uint8_t op; const char *fill, *name; } fills[] = {
	{ HD_INS_F, "#4e79a7", "forward" }, { HD_INS_B, "#59a14f", "backward" }, { HD_INS_I, "#76b7b2", "input gradient" }, { HD_INS_W, "#edc948", "weight gradient" },
	{ HD_INS_R, "#b07aa1", "recompute" },
};
enum { NFILLS = sizeof fills / sizeof fills[0], LINE = 28, LEFT = 60, TOP = 40, WIDE = 1600 };

static void put_box(const struct hd_sim *sim, uint32_t r, const struct hd_ins *ins, struct hd_sim_span span,
	double scale, struct hd_text *text)
{
	bool first = ins->flags & HD_INS_PAIR_BEGIN, second = ins->flags & HD_INS_PAIR_END;
	double x = LEFT + (double)span.start * scale, w = (double)(span.end - span.start) * scale,
		h = LINE - 4;
	double y = TOP + (double)r * LINE + (second ? h / 2 : 0);
	const char *fill = "#bab0ac";
	char word[24];

	for (int i = 0; i < NFILLS; i++)
		if (fills[i].op == ins->op)
			fill = fills[i].fill;
	label(sim, ins, word);
	h = first || second ? h / 2 : h;
	hd_text_addf(text,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"#fff\" "
		"stroke-width=\"0.5\""
		" fill-opacity=\"%s\"><title>rank %u %s, %g to %g</title></rect>\n", x, y, w, h, fill,
		ins->flags & HD_INS_SHADOW ? "0.4" : ins->stage >= sim->ran.nranks ? "0.65" : "1", r, word,
		hd_sim_units(sim, span.start), hd_sim_units(sim, span.end));
	if (w > 14)
		hd_text_addf(text, "<text x=\"%.2f\" y=\"%.2f\">%d</text>\n", x + w / 2, y + h / 2 + 3.5,
			(int32_t)ins->vn);
}

/* Why a rank stands still, as letters and as pale boxes behind the instructions. The drain is what is
 * left. */
static const struct { char letter; const char *fill; } idles[HD_NIDLES] = {
	[HD_IDLE_WARM_UP] = { 'w', "#f2f2f2" }, [HD_IDLE_DRAIN] = { ' ', "#f2f2f2" },
		[HD_IDLE_DEPENDENCY] = { '.', "#e0e0e0" },
	[HD_IDLE_TRANSFER] = { 't', "#f6c6c7" }, [HD_IDLE_CREDIT] = { 'c', "#d4a6c8" },
};

static void put_waits(const struct hd_sim *sim, uint32_t r, const struct hd_sim_waits *waits, double scale,
	struct hd_text *text)
{
	for (uint32_t k = 0; k < waits->n; k++) {
		const struct hd_sim_wait *w = &waits->at[k];
		hd_text_addf(text,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>rank "
			"%u waits: %s, %g to %g</title></rect>\n",
			LEFT + (double)w->start * scale, TOP + (double)r * LINE,
			(double)(w->end - w->start) * scale, (double)LINE - 4, idles[w->why].fill, r,
			hd_idle_names[w->why], hd_sim_units(sim, w->start), hd_sim_units(sim, w->end));
	}
}

static enum hd_err draw_svg(const struct hd_sim *sim, const struct hd_sim_waits *waits, struct hd_text *text,
	struct hd_diag *diag)
{
	double scale = sim->makespan ? (double)WIDE / (double)sim->makespan : 0;
	int height = TOP + (int)sim->ran.nranks * LINE + 10;

	if (sim->nins > HD_DRAW_BOXES)
		return hd_fail(diag, HD_E_INVAL, "a picture of %llu instructions: %d are the most",
			(unsigned long long)sim->nins, HD_DRAW_BOXES);
	hd_text_addf(text,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"10\""
		" text-anchor=\"middle\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", LEFT + WIDE + 20, height);
	for (int i = 0; i < NFILLS; i++)
		hd_text_addf(text,
			"<rect x=\"%d\" y=\"12\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" "
			"y=\"22\" text-anchor=\"start\">%s</text>\n",
			LEFT + 130 * i, fills[i].fill, LEFT + 130 * i + 16, fills[i].name);
	hd_text_addf(text,
		"<text x=\"%d\" y=\"22\" text-anchor=\"start\">makespan %g, bubble over ideal %.4f</text>\n",
		LEFT + 130 * NFILLS,
		hd_sim_units(sim, sim->makespan), hd_sim_bubble(sim));
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		hd_text_addf(text, "<text x=\"%d\" y=\"%d\">rank %u</text>\n", LEFT / 2,
			TOP + (int)r * LINE + LINE / 2 + 2, r);
		if (waits)
			put_waits(sim, r, &waits[r], scale, text);
		for (uint32_t i = 0; i < sim->ran.list[r].len; i++)
			if (shown(&sim->ran.list[r].at[i]))
				put_box(sim, r, &sim->ran.list[r].at[i], sim->span[r][i], scale, text);
	}
	hd_text_add(text, "</svg>\n");
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a drawing") : HD_OK;
}

enum hd_err hd_draw_svg(const struct hd_sim *sim, struct hd_text *text,
	struct hd_diag *diag) { return draw_svg(sim, NULL, text, diag); }

enum hd_err hd_draw_plan_svg(const struct hd_sim_plan *sim, struct hd_text *text, struct hd_diag *diag)
{
	const struct hd_sim view = { .ran = sim->ran, .per_ps = sim->per_ps, .per_rank = 1,
		.makespan = sim->makespan, .busiest = sim->busiest,
		.span_idle = sim->span_idle, .nins = sim->nins, .span = sim->span };

	return draw_svg(&view, sim->wait, text, diag);
}

/* Of shadows the small one. */
static char letter_of(const struct hd_ins *ins)
{
	const char letter = *hd_ins_row(ins->op)->text;

	return ins->flags & HD_INS_SHADOW ? (char)(letter - 'A' + 'a') : letter;
}

enum hd_err hd_draw_plan_text(const struct hd_sim_plan *sim, struct hd_text *text, struct hd_diag *diag)
{
	char row[HD_DRAW_COLUMNS + 1];

	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		const struct hd_ilist *list = &sim->ran.list[r];
		const struct hd_sim_waits *waits = &sim->wait[r];
		uint32_t i = 0, k = 0;
		for (int c = 0; c < HD_DRAW_COLUMNS; c++) {
			double at = ((double)c + 0.5) / HD_DRAW_COLUMNS * (double)sim->makespan;
			while (i < list->len && (!shown(&list->at[i]) || (double)sim->span[r][i].end <= at))
				i++;
			while (k < waits->n && (double)waits->at[k].end <= at)
				k++;
			row[c] = idles[HD_IDLE_DRAIN].letter;
			if (i < list->len && (double)sim->span[r][i].start <= at)
				row[c] = letter_of(&list->at[i]);
			else if (k < waits->n && (double)waits->at[k].start <= at)
				row[c] = idles[waits->at[k].why].letter;
		}
		row[HD_DRAW_COLUMNS] = '\0';
		hd_text_addf(text, "%4u |%s|\n", r, row);
	}
	hd_text_addf(text,
		"     F B I W R as instructions%s; w warm-up, . dependency, t transfer, c credit; a column "
		"is "
		"%g s\n", hd_redundancy_in(&sim->ran) ? ", f b those of shadows" : "",
		hd_sim_plan_s(sim, sim->makespan) / HD_DRAW_COLUMNS);
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for a drawing") : HD_OK;
}
