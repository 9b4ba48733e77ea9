#include "base/page.h"

#include <math.h>

enum { ROW = 14 };                                /* height of a row */

static const char style[] =
	":root{color-scheme:light "
	"dark;--ink:#1b1f24;--soft:#5c6670;--paper:#fff;--card:#f6f7f9;--rule:#dfe3e8;"
	"--line:#1f6feb;--dot:#d9480f;"
	"--good:#1a7f37;--bad:#cf222e}"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;"
	"--soft:#98a2ad;--paper:#14171b;--card:#1c2026;--rule:#303740;--line:#6cb0ff;--dot:#ff9e64;"
	"--good:#57c46c;--bad:#ff7b72}}"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
	"max-width:920px;margin:2rem auto;padding:0 1rem}"
	"h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:0 0 "
	".4rem}small,.note,.empty{color:var(--soft);font-weight:400}"
	".note{font-size:.85rem;margin:.2rem 0 0}"
	"section{background:var(--card);border:1px solid "
	"var(--rule);border-radius:8px;padding:1rem;margin:1rem 0;overflow-x:auto}"
	"svg{width:100%;min-width:34rem;height:auto;display:block}"
	"svg text{font:12px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--rule);fill:none}"
	".axis{stroke:var(--soft);fill:none}.line{stroke:var(--line);fill:none;stroke-width:1.5;"
	"stroke-linejoin:round}.dot{fill:var(--dot)}"
	".c0{--c:var(--line)}.c1{--c:var(--dot)}.c2{--c:#2da44e}.c3{--c:#bf3989}.c4{--c:#9a6700}"
	".c5{--c:#8250df}.c6{--c:#0598a8}.c7{--c:#6e7781}"
	"path.series{stroke:var(--c);fill:none;stroke-width:1.8;stroke-linejoin:round}"
	"rect.series{fill:var(--c)}"
	".legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;font-size:.85rem;color:var(--soft);margin:.2rem "
	"0 0}"
	".legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;background:var(--c);"
	"margin-right:.35em}.wide{overflow-x:auto}"
	"table{border-collapse:collapse;width:100%;font-size:.88rem}td,th{text-align:left;padding:.2rem "
	".8rem .2rem 0;"
	"border-top:1px solid var(--rule);"
	"vertical-align:top;overflow-wrap:anywhere}"
	"th{color:var(--soft);font-weight:500}td.n{text-align:right;"
	"font-variant-numeric:tabular-nums;white-space:nowrap}"
	"th,td.k{white-space:nowrap}"
	"dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:0}"
	"dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}"
	"code{font-family:ui-monospace,monospace}.warn{border-color:var(--dot)}"
	".point{fill:var(--line)}.good{color:var(--good)}.bad{color:var(--bad)}"
	"svg path{vector-effect:non-scaling-stroke}"
	/* a narrow screen: the drawing shrinks with it, so its letters grow; rows of a Gantt chart scroll */
	"@media(max-width:600px){body{margin:.6rem auto;padding:0 .6rem}section{padding:.7rem;margin:.7rem 0}"
	"svg{min-width:0;overflow:visible;padding-left:.9rem;box-sizing:border-box}svg text{font-size:23px}"
	"svg.rows{min-width:34rem;overflow:hidden;padding:0}svg.rows text{font-size:12px}"
	"dl{grid-template-columns:1fr}dt{margin-top:.35rem}dd{padding-left:.6rem}}";

void hd_page_text(struct hd_text *page, const char *text)
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

void hd_page_open(struct hd_text *page, const char *title)
{
	hd_text_add(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
		"'unsafe-inline'\">"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
	hd_page_text(page, title);
	hd_text_addf(page, "</title><style>%s</style></head><body>\n<h1>", style);
	hd_page_text(page, title);
	hd_text_add(page, "</h1>\n");
}

void hd_page_close(struct hd_text *page) { hd_text_add(page, "</body></html>\n"); }

/* ---- axes ---- */

uint32_t hd_plot_height(const struct hd_plot *p) { return p->rows ?
	p->rows * ROW + HD_PLOT_TOP + HD_PLOT_BOTTOM : HD_PLOT_HEIGHT; }

double hd_plot_x(const struct hd_plot *p, double x)
{
	return HD_PLOT_LEFT + (HD_PLOT_WIDTH - HD_PLOT_LEFT - HD_PLOT_RIGHT) * (p->x_end > 0 ? x / p->x_end :
		0);
}

double hd_plot_y(const struct hd_plot *p, double y)
{
	double low = p->log ? log10(p->low) : p->low, high = p->log ? log10(p->high) : p->high,
		v = p->log ? log10(y) : y;

	return HD_PLOT_HEIGHT - HD_PLOT_BOTTOM - (HD_PLOT_HEIGHT - HD_PLOT_TOP - HD_PLOT_BOTTOM) *
		(v - low) / (high - low);
}

void hd_plot_fit(struct hd_plot *p, double low, double high)
{
	double margin = high > low ? 0.05 * (high - low) : fmax(fabs(high), 1) * 0.1;

	/* values over more than a decade are readable only on a log axis */
	p->log = low > 0 && high / low > 10;
	p->low = p->log ? low / 1.1 : low >= 0 && low < margin ? 0 : low - margin;
	p->high = p->log ? high * 1.1 : high + margin;
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

static void y_tick(struct hd_text *page, const struct hd_plot *p, double v)
{
	if (v < p->low || v > p->high)
		return;
	hd_text_addf(page,
		"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
		"text-anchor=\"end\">%.4g</text>", HD_PLOT_LEFT,
		hd_plot_y(p, v), HD_PLOT_WIDTH - HD_PLOT_RIGHT, HD_PLOT_LEFT - 8, hd_plot_y(p, v) + 4, v);
}

static void print_y(struct hd_text *page, const struct hd_plot *p)
{
	if (p->log) {
		bool few = log10(p->high / p->low) < 2.5;
		for (double decade = pow(10, floor(log10(p->low))); decade <= p->high; decade *= 10) {
			y_tick(page, p, decade);
			if (few) {
				y_tick(page, p, 2 * decade);
				y_tick(page, p, 5 * decade);
			}
		}
		return;
	}
	double by = nice(p->high - p->low, 6);
	for (double v = ceil(p->low / by) * by; v <= p->high; v += by)
		y_tick(page, p, fabs(v) < by * 1e-9 ? 0 : v);
}

static void print_rows(struct hd_text *page, const struct hd_plot *p)
{
	for (uint32_t r = 0; r < p->rows && p->row_name; r++) {
		hd_text_addf(page, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">", HD_PLOT_LEFT - 8,
			HD_PLOT_TOP + r * ROW + ROW - 3);
		hd_page_text(page, p->row_name[r]);
		hd_text_add(page, "</text>");
	}
}

void hd_plot_open(struct hd_text *page, const struct hd_plot *p)
{
	uint32_t height = hd_plot_height(p);
	double by = p->whole_x ? p->x_end >= 1 ? fmax(nice(p->x_end, 8), 1) : 1 : p->x_end > 0 ?
		nice(p->x_end, 8) : 1;

	hd_text_add(page, "<section><h2>");
	hd_page_text(page, p->title);
	hd_text_add(page, " <small>");
	hd_page_text(page, p->unit);
	hd_text_addf(page, "</small></h2><svg%s viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"",
		p->rows ? " class=\"rows\"" : "", HD_PLOT_WIDTH, height);
	hd_page_text(page, p->title);
	hd_text_add(page, " over ");
	hd_page_text(page, p->x_name);
	hd_text_add(page, "s\">");
	if (p->rows)
		print_rows(page, p);
	else
		print_y(page, p);
	for (double s = 0; s <= p->x_end * (1 + 1e-9); s += by)
		hd_text_addf(page, "<text x=\"%.1f\" y=\"%u\" text-anchor=\"middle\">%.6g</text>",
			hd_plot_x(p, s), height - HD_PLOT_BOTTOM + 18, s);
	hd_text_addf(page, "<path class=\"axis\" d=\"M%d %uH%d\"/>", HD_PLOT_LEFT, height - HD_PLOT_BOTTOM,
		HD_PLOT_WIDTH - HD_PLOT_RIGHT);
}

void hd_plot_close(struct hd_text *page, const struct hd_plot *p, const char *note)
{
	hd_text_addf(page, "<text x=\"%d\" y=\"%u\" text-anchor=\"middle\">",
		(HD_PLOT_LEFT + HD_PLOT_WIDTH - HD_PLOT_RIGHT) / 2, hd_plot_height(p) - 3);
	hd_page_text(page, p->x_name);
	hd_text_addf(page, "</text></svg><p class=\"note\">%s</p></section>\n", note);
}

void hd_plot_line_open(struct hd_text *page, uint32_t colour)
{
	hd_text_addf(page, "<path class=\"series c%u\" d=\"", colour % HD_PAGE_COLOURS);
}

void hd_plot_line_to(struct hd_text *page, const struct hd_plot *p, double x, double y, bool first)
{
	hd_text_addf(page, "%c%.1f %.1f", first ? 'M' : 'L', hd_plot_x(p, x), hd_plot_y(p, y));
}

void hd_plot_line_close(struct hd_text *page) { hd_text_add(page, "\"/>"); }

void hd_plot_bar(struct hd_text *page, const struct hd_plot *p, uint32_t row, uint32_t colour, double from,
	double to, const char *title)
{
	double x = hd_plot_x(p, from), width = fmax(hd_plot_x(p, to) - x, 0.5);

	hd_text_addf(page,
		"<rect class=\"series c%u\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\"><title>",
		colour % HD_PAGE_COLOURS, x,
		HD_PLOT_TOP + row * ROW + 1, width, ROW - 2);
	hd_page_text(page, title);
	hd_text_add(page, "</title></rect>");
}

void hd_plot_legend(struct hd_text *page, uint32_t n, const char *const *names)
{
	hd_text_add(page, "<p class=\"legend\">");
	for (uint32_t i = 0; i < n; i++) {
		hd_text_addf(page, "<span class=\"c%u\"><i></i>", i % HD_PAGE_COLOURS);
		hd_page_text(page, names[i]);
		hd_text_add(page, "</span>");
	}
	hd_text_add(page, "</p>");
}
