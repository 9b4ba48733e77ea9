#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/page.h"
#include "run/report_int.h"

/* ---- curve */

static void join(struct hd_curve *c)
{
	for (uint32_t i = 0; i < HD_CURVE_BINS / 2; i++) {
		struct hd_curve_bin a = c->bin[2 * i], b = c->bin[2 * i + 1];
		if (a.used && b.used)
			a = (struct hd_curve_bin){ fmin(a.low, b.low), fmax(a.high, b.high), true };
		c->bin[i] = a.used ? a : b;
	}
	memset(c->bin + HD_CURVE_BINS / 2, 0, HD_CURVE_BINS / 2 * sizeof *c->bin);
	c->width *= 2;
	c->nbins = (c->nbins + 1) / 2;
}

void hd_curve_add(struct hd_curve *c, uint64_t step, double value)
{
	if (!isfinite(value)) {
		c->nonfinite++;
		return;
	}
	if (c->width == 0)
		c->width = 1;
	while (step / c->width >= HD_CURVE_BINS)
		join(c);
	struct hd_curve_bin *bin = &c->bin[step / c->width];
	*bin = bin->used ? (struct hd_curve_bin){ fmin(bin->low, value), fmax(bin->high, value), true } :
		(struct hd_curve_bin){ value, value, true };
	if (step / c->width >= c->nbins)
		c->nbins = (uint32_t)(step / c->width) + 1;
}

void hd_curve_cut(struct hd_curve *c, uint64_t step)
{
	uint64_t from = c->width ? step / c->width : 0;

	if (from >= c->nbins)
		return;
	/* a bin that begins before the step keeps what it has of both */
	from += step % c->width != 0;
	for (uint64_t i = from; i < c->nbins; i++)
		c->bin[i].used = false;
	c->nbins = (uint32_t)from < c->nbins ? (uint32_t)from : c->nbins;
}

bool hd_curve_range(const struct hd_curve *c, double *low, double *high)
{
	bool any = false;

	for (uint32_t i = 0; i < c->nbins; i++) {
		if (!c->bin[i].used)
			continue;
		*low = any ? fmin(*low, c->bin[i].low) : c->bin[i].low;
		*high = any ? fmax(*high, c->bin[i].high) : c->bin[i].high;
		any = true;
	}
	return any;
}

/* ---- drawing */

static struct hd_plot fit(const struct hd_chart *chart, double low, double high)
{
	struct hd_plot p = { .title = chart->title, .unit = chart->unit, .x_name = "step", .whole_x = true,
		.x_end = (double)chart->curve->nbins * (double)chart->curve->width - 1 };

	for (uint32_t i = 0; i < chart->ndots; i++) {
		low = fmin(low, chart->dot[i].value);
		high = fmax(high, chart->dot[i].value);
		p.x_end = fmax(p.x_end, (double)chart->dot[i].step);
	}
	hd_plot_fit(&p, low, high);
	return p;
}

static void print_curve(struct hd_text *page, const struct hd_plot *p, const struct hd_curve *c)
{
	char command = 'M';

	hd_text_add(page, "<path class=\"line\" d=\"");
	for (uint32_t i = 0; i < c->nbins; i++) {
		const struct hd_curve_bin *b = &c->bin[i];
		if (!b->used)
			continue;
		double x = hd_plot_x(p, (double)i * (double)c->width + (double)(c->width - 1) / 2);
		hd_text_addf(page, "%c%.1f %.1f", command, x, hd_plot_y(p, b->high));
		command = 'L';
		if (b->low < b->high)
			hd_text_addf(page, "V%.1f", hd_plot_y(p, b->low));
	}
	hd_text_add(page, "\"/>");
}

/* A path of one point draws nothing. */
static void print_point(struct hd_text *page, const struct hd_plot *p, const struct hd_curve *c)
{
	uint32_t used = 0, at = 0;

	for (uint32_t i = 0; i < c->nbins; i++)
		if (c->bin[i].used) {
			used++;
			at = i;
		}
	if (used == 1)
		hd_text_addf(page, "<circle class=\"point\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>",
			hd_plot_x(p, (double)at * (double)c->width), hd_plot_y(p, c->bin[at].high));
}

static void add_note(struct hd_text *note, const char *text)
{
	hd_text_addf(note, "%s%s", note->len ? "; " : "", text);
}

static void add_nonfinite(struct hd_text *note, uint64_t n)
{
	char text[80];

	if (!n)
		return;
	snprintf(text, sizeof text, "%llu value%s not finite and %s not drawn", (unsigned long long)n,
		n == 1 ? " was" : "s were", n == 1 ? "is" : "are");
	add_note(note, text);
}

static void print_empty(const struct hd_chart *chart, struct hd_text *page)
{
	char room[100];
	struct hd_text note;

	hd_text_fixed(&note, room, sizeof room);
	add_note(&note, "no value that can be drawn");
	add_nonfinite(&note, chart->curve->nonfinite);
	hd_text_addf(page, "<section><h2>%s <small>%s</small></h2><p class=\"empty\">%s</p></section>\n",
		chart->title, chart->unit, room);
}

void hd_chart_print(const struct hd_chart *chart, struct hd_text *page)
{
	double low = 0, high = 0;
	char room[400], text[120];
	struct hd_text note;

	if (!hd_curve_range(chart->curve, &low, &high)) {
		print_empty(chart, page);
		return;
	}
	struct hd_plot p = fit(chart, low, high);
	hd_plot_open(page, &p);
	print_curve(page, &p, chart->curve);
	print_point(page, &p, chart->curve);
	for (uint32_t i = 0; i < chart->ndots; i++)
		hd_text_addf(page,
			"<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>step %llu: "
			"%.5g</title></circle>",
			hd_plot_x(&p, (double)chart->dot[i].step), hd_plot_y(&p, chart->dot[i].value),
			(unsigned long long)chart->dot[i].step,
			chart->dot[i].value);
	hd_text_fixed(&note, room, sizeof room);
	if (chart->ndots) {
		snprintf(text, sizeof text, "line: %s; dots: %s", chart->line, chart->dots);
		add_note(&note, text);
	}
	if (chart->curve->width > 1) {
		snprintf(text, sizeof text, "each mark spans the least and greatest of %llu steps",
			(unsigned long long)chart->curve->width);
		add_note(&note, text);
	}
	if (p.log)
		add_note(&note, "logarithmic axis");
	add_nonfinite(&note, chart->curve->nonfinite);
	hd_plot_close(page, &p, note.at);
}
