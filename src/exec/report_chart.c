#include <math.h>
#include <string.h>

#include "exec/report_int.h"

enum { WIDTH = 860, HEIGHT = 300, LEFT = 64, RIGHT = 16, TOP = 14, BOTTOM = 44 };

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
	*bin = bin->used ? (struct hd_curve_bin){ fmin(bin->low, value), fmax(bin->high, value), true } : (struct hd_curve_bin){ value, value, true };
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

struct axes { double x_end, low, high; bool log; };

static double x_of(const struct axes *a, double step) { return LEFT + (WIDTH - LEFT - RIGHT) * (a->x_end > 0 ? step / a->x_end : 0); }

static double y_of(const struct axes *a, double value)
{
	double low = a->log ? log10(a->low) : a->low, high = a->log ? log10(a->high) : a->high, v = a->log ? log10(value) : value;

	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - low) / (high - low);
}

/* 1, 2 or 5 times a power of ten: at most `most` of them span `range`. */
static double nice(double range, double most)
{
	double base = pow(10, floor(log10(range / most)));

	for (int i = 0; i < 3; i++) {
		static const double factor[] = { 1, 2, 5 };
		if (range / (base * factor[i]) <= most)
			return base * factor[i];
	}
	return base * 10;
}

static struct axes fit(const struct hd_chart *chart, double low, double high)
{
	struct axes a = { .x_end = (double)chart->curve->nbins * (double)chart->curve->width - 1 };

	for (uint32_t i = 0; i < chart->ndots; i++) {
		low = fmin(low, chart->dot[i].value);
		high = fmax(high, chart->dot[i].value);
		a.x_end = fmax(a.x_end, (double)chart->dot[i].step);
	}
	/* a curve over more than a decade is readable only on a log axis */
	a.log = low > 0 && high / low > 10;
	double margin = high > low ? 0.05 * (high - low) : fmax(fabs(high), 1) * 0.1;
	a.low = a.log ? low / 1.1 : low >= 0 && low < margin ? 0 : low - margin;
	a.high = a.log ? high * 1.1 : high + margin;
	return a;
}

static void y_tick(struct hd_text *page, const struct axes *a, double v)
{
	if (v < a->low || v > a->high)
		return;
	hd_text_addf(page, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>", LEFT, y_of(a, v),
		WIDTH - RIGHT, LEFT - 8, y_of(a, v) + 4, v);
}

static void print_axes(struct hd_text *page, const struct axes *a)
{
	if (a->log) {
		bool few = log10(a->high / a->low) < 2.5;
		for (double decade = pow(10, floor(log10(a->low))); decade <= a->high; decade *= 10) {
			y_tick(page, a, decade);
			if (few) {
				y_tick(page, a, 2 * decade);
				y_tick(page, a, 5 * decade);
			}
		}
	} else {
		double by = nice(a->high - a->low, 6);
		for (double v = ceil(a->low / by) * by; v <= a->high; v += by)
			y_tick(page, a, fabs(v) < by * 1e-9 ? 0 : v);
	}
	double by = a->x_end >= 1 ? fmax(nice(a->x_end, 8), 1) : 1;
	for (double s = 0; s <= a->x_end; s += by)
		hd_text_addf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>", x_of(a, s), HEIGHT - BOTTOM + 18, s);
	hd_text_addf(page, "<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
}

static void print_curve(struct hd_text *page, const struct axes *a, const struct hd_curve *c)
{
	char command = 'M';

	hd_text_add(page, "<path class=\"line\" d=\"");
	for (uint32_t i = 0; i < c->nbins; i++) {
		const struct hd_curve_bin *b = &c->bin[i];
		if (!b->used)
			continue;
		double x = x_of(a, (double)i * (double)c->width + (double)(c->width - 1) / 2);
		hd_text_addf(page, "%c%.1f %.1f", command, x, y_of(a, b->high));
		command = 'L';
		if (b->low < b->high)
			hd_text_addf(page, "V%.1f", y_of(a, b->low));
	}
	hd_text_add(page, "\"/>");
}

void hd_html_text(struct hd_text *page, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': hd_text_add(page, "&lt;"); break;
		case '>': hd_text_add(page, "&gt;"); break;
		case '&': hd_text_add(page, "&amp;"); break;
		case '"': hd_text_add(page, "&quot;"); break;
		default:  hd_text_put(page, text, 1);
		}
	}
}

void hd_chart_print(const struct hd_chart *chart, struct hd_text *page)
{
	double low = 0, high = 0;

	hd_text_addf(page, "<section><h2>%s <small>%s</small></h2>", chart->title, chart->unit);
	if (!hd_curve_range(chart->curve, &low, &high)) {
		hd_text_add(page, "<p class=\"empty\">no value that can be drawn</p></section>\n");
		return;
	}
	struct axes a = fit(chart, low, high);
	hd_text_addf(page, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s over steps\">", WIDTH, HEIGHT, chart->title);
	print_axes(page, &a);
	print_curve(page, &a, chart->curve);
	for (uint32_t i = 0; i < chart->ndots; i++)
		hd_text_addf(page, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>step %llu: %.5g</title></circle>",
			x_of(&a, (double)chart->dot[i].step), y_of(&a, chart->dot[i].value), (unsigned long long)chart->dot[i].step, chart->dot[i].value);
	hd_text_addf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text></svg>", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3);
	hd_text_addf(page, "<p class=\"note\">%s%s", chart->ndots ? "line: training; dots: " : "", chart->ndots ? chart->dots_name : "");
	if (chart->curve->width > 1)
		hd_text_addf(page, "%seach mark spans the least and greatest of %llu steps", chart->ndots ? "; " : "", (unsigned long long)chart->curve->width);
	if (a.log)
		hd_text_addf(page, "%slogarithmic axis", chart->ndots || chart->curve->width > 1 ? "; " : "");
	if (chart->curve->nonfinite)
		hd_text_addf(page, "; %llu values were not finite and are not drawn", (unsigned long long)chart->curve->nonfinite);
	hd_text_add(page, "</p></section>\n");
}
