/* page.h -- pages of HTML that need nothing, and axes to draw on.
 *
 * Reports are made with it: no script, no network, no other file; they open from file://, light or dark, at
 * any width.
 *
 *	hd_page_open(&page, "run-7");
 *	hd_plot_open(&page, &(struct hd_plot){ .title = "Loss", .x_name = "step", .x_end = 100,
 *		.low = 0, .high = 2 });
 *	hd_plot_line_open(&page, 0);  hd_plot_line_to(&page, &plot, x, y); ...  hd_plot_line_close(&page);
 *	hd_plot_close(&page, &plot, "a note below");
 *	hd_page_close(&page);
 *
 * 1. Texts are escaped, but for notes, which are HTML; whatever comes from outside goes through hd_page_text.
 * 2. Numbers that are not finite are the caller's to leave out.
 *
 * Pure: writes into a text. */
#ifndef HD_BASE_PAGE_H
#define HD_BASE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { HD_PAGE_COLOURS = 8,                       /* series of one plot that stay distinguishable */
       HD_PLOT_WIDTH = 860, HD_PLOT_HEIGHT = 300, HD_PLOT_LEFT = 64, HD_PLOT_RIGHT = 16, HD_PLOT_TOP = 14,
       HD_PLOT_BOTTOM = 44 };

void hd_page_open(struct hd_text *page, const char *title);       /* up to and with the title as a heading */
void hd_page_close(struct hd_text *page);
void hd_page_text(struct hd_text *page, const char *text);

struct hd_plot {
	const char *title, *unit, *x_name;
	double x_end;                             /* from 0 */
	double low, high;                         /* of y; low < high, and above 0 on a logarithmic axis */
	bool log, whole_x;                        /* whole_x: no marks between whole numbers */
	/* above 0: no y axis, but so many rows of equal height (a Gantt chart) */
	uint32_t rows;
	const char *const *row_name;              /* [rows]; shown where they fit */
};

/* section, drawing, axes */
void hd_plot_open(struct hd_text *page, const struct hd_plot *plot);
/* note is HTML */
void hd_plot_close(struct hd_text *page, const struct hd_plot *plot, const char *note);
double hd_plot_x(const struct hd_plot *plot, double x);
double hd_plot_y(const struct hd_plot *plot, double y);
uint32_t hd_plot_height(const struct hd_plot *plot);

/* A line in colour i (modulo HD_PAGE_COLOURS). */
void hd_plot_line_open(struct hd_text *page, uint32_t colour);
void hd_plot_line_to(struct hd_text *page, const struct hd_plot *plot, double x, double y, bool first);
void hd_plot_line_close(struct hd_text *page);
/* Part of a row, from x to x; `title` is its tooltip, escaped. */
void hd_plot_bar(struct hd_text *page, const struct hd_plot *plot, uint32_t row, uint32_t colour, double from,
	double to, const char *title);
/* Names with their colours, below a plot. */
void hd_plot_legend(struct hd_text *page, uint32_t n, const char *const *names);

/* Limits with some room around [low, high]; logarithmic where that spans more than a decade. */
void hd_plot_fit(struct hd_plot *plot, double low, double high);

#endif
