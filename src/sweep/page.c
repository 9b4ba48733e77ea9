#include "sweep/page.h"

#include <math.h>
#include <string.h>

#include "base/page.h"

/* Classes of trials, drawn in this order, so that the best lies on top; colours of base/page.h.
 *        id      colour  name */
#define LOOKS(X) \
	X(OTHERS, 5, "others")             \
	X(LAST,   1, "at the last rung")   \
	X(BEST,   0, "the best")

enum look {
#define X(id, colour, name) LOOK_##id,
	LOOKS(X)
#undef X
	NLOOKS
};

static const uint32_t colour_of[] = {
#define X(id, colour, name) colour,
	LOOKS(X)
#undef X
};

struct sheet {
	const struct hd_sweep_table *table;
	const struct hd_sweep *sweep;
	const struct hd_trials *t;
	struct hd_text *page;
	double low, high;                 /* of all metrics */
	bool any;
};

static enum look look_of(const struct sheet *s, uint32_t i)
{
	return (int64_t)i == s->table->best ? LOOK_BEST : s->t->trial[i].state == HD_TRIAL_DONE ? LOOK_LAST :
		LOOK_OTHERS;
}

static void find_range(struct sheet *s)
{
	for (uint32_t i = 0; i < s->t->ntrials; i++)
		for (uint32_t k = 0; k < s->t->trial[i].reached; k++) {
			const double v = s->t->trial[i].metric[k];
			if (!isfinite(v))
				continue;
			s->low = s->any ? fmin(s->low, v) : v;
			s->high = s->any ? fmax(s->high, v) : v;
			s->any = true;
		}
}

/* In [0, 1]. */
static double height(const struct sheet *s, uint32_t trial, uint32_t a)
{
	const struct hd_sweep_axis *axis = &s->sweep->axis[a];
	struct hd_sweep_value room;
	const char *text = hd_sweep_value(s->sweep, trial, a, &room);
	double v = axis->from;
	uint32_t at = 0;

	if (axis->kind == HD_SWEEP_AXIS_CHOICE) {
		while (at + 1 < axis->n && strcmp(axis->choice[at], text) != 0)
			at++;
		return axis->n > 1 ? at / (axis->n - 1.0) : 0.5;
	}
	(void)!hd_num_f64(text, axis->from, axis->to, &v, NULL);
	if (axis->kind == HD_SWEEP_AXIS_LOG || axis->kind == HD_SWEEP_AXIS_LOGINT)
		return (log(v) - log(axis->from)) / (log(axis->to) - log(axis->from));
	return (v - axis->from) / (axis->to - axis->from);
}

static double metric_height(const struct sheet *s, double v)
{
	return s->high > s->low ? (v - s->low) / (s->high - s->low) : 0.5;
}

static void put_axis(const struct sheet *s, const struct hd_plot *p, uint32_t x, const char *name,
	const char *top, const char *bottom)
{
	hd_text_addf(s->page, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>", hd_plot_x(p, x), hd_plot_y(p,
		0),
		hd_plot_y(p, 1));
	const struct { double y; const char *text; } label[] = { { hd_plot_y(p, 1) - 4, top },
		{ hd_plot_y(p, 0) + 14, bottom }, { hd_plot_y(p, 0) + 30, name } };
	for (size_t i = 0; i < 3; i++) {
		hd_text_addf(s->page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", hd_plot_x(p, x),
			label[i].y);
		hd_page_text(s->page, label[i].text);
		hd_text_add(s->page, "</text>");
	}
}

static const char *end_text(const struct hd_sweep_axis *axis, bool top, char room[HD_NUM_CAP])
{
	if (axis->kind == HD_SWEEP_AXIS_CHOICE)
		return axis->choice[top ? axis->n - 1 : 0];
	return hd_num_print_f64(room, top ? axis->to : axis->from);
}

static void put_lines(const struct sheet *s, const struct hd_plot *p, enum look look)
{
	for (uint32_t i = 0; i < s->t->ntrials; i++) {
		const struct hd_trial *of = &s->t->trial[i];
		if (!of->reached || look_of(s, i) != look || !isfinite(of->metric[of->reached - 1]))
			continue;
		hd_plot_line_open(s->page, colour_of[look]);
		for (uint32_t a = 0; a < s->sweep->naxes; a++)
			hd_plot_line_to(s->page, p, a, height(s, i, a), a == 0);
		hd_plot_line_to(s->page, p, s->sweep->naxes, metric_height(s, of->metric[of->reached - 1]),
			false);
		hd_plot_line_close(s->page);
	}
}

static void put_coordinates(const struct sheet *s)
{
	/* no marks of its own: each axis has its ends */
	const struct hd_plot p = { .title = "Values", .unit = "a line a trial", .x_name = "",
		.x_end = s->sweep->naxes, .low = 0, .high = 1, .rows = 0, .whole_x = true };
	char top[HD_NUM_CAP], bottom[HD_NUM_CAP];

	hd_text_addf(s->page, "<section><h2>Values <small>a line a trial</small></h2><svg viewBox=\"0 0 %d "
		"%u\" "
		"role=\"img\" aria-label=\"Values of each trial and its metric\">", HD_PLOT_WIDTH,
		hd_plot_height(&p));
	for (enum look look = 0; look < NLOOKS; look++)
		put_lines(s, &p, look);
	for (uint32_t a = 0; a < s->sweep->naxes; a++)
		put_axis(s, &p, a, s->sweep->axis[a].key, end_text(&s->sweep->axis[a], true, top),
			end_text(&s->sweep->axis[a], false, bottom));
	put_axis(s, &p, s->sweep->naxes, s->table->metric, hd_num_print_f64(top, s->high),
		hd_num_print_f64(bottom, s->low));
	hd_plot_close(s->page, &p, "The metric is that of the last rung that a trial reported at.");
}

static void put_curves(const struct sheet *s)
{
	struct hd_plot p = { .title = "Metric", .unit = s->table->metric, .x_name = "step",
		.x_end = (double)s->t->rung[s->t->nrungs - 1], .whole_x = true };

	hd_plot_fit(&p, s->low, s->high);
	hd_plot_open(s->page, &p);
	for (enum look look = 0; look < NLOOKS; look++)
		for (uint32_t i = 0; i < s->t->ntrials; i++) {
			const struct hd_trial *of = &s->t->trial[i];
			bool first = true;
			if (!of->reached || look_of(s, i) != look)
				continue;
			hd_plot_line_open(s->page, colour_of[look]);
			for (uint32_t k = 0; k < of->reached; k++) {
				const double x = (double)s->t->rung[k];
				if (!isfinite(of->metric[k]))
					break;
				/* one report alone is a dash */
				hd_plot_line_to(s->page, &p, first && of->reached == 1 ? x * 0.98 : x,
					of->metric[k], first);
				if (first && of->reached == 1)
					hd_plot_line_to(s->page, &p, x, of->metric[k], false);
				first = false;
			}
			hd_plot_line_close(s->page);
		}
	hd_plot_close(s->page, &p, "Rungs are joined by straight lines.");
}

static void put_table(const struct sheet *s)
{
	const struct hd_sweep_row *row = s->table->trials.at;
	char number[HD_NUM_CAP];

	hd_text_add(s->page, "<section><h2>Trials</h2><table><tr><th>trial</th><th>state</th><th>steps</th>"
		"<th>metric</th><th>values</th><th>digest</th><th>why</th></tr>\n");
	for (uint32_t i = 0; i < s->table->trials.n; i++) {
		hd_text_addf(s->page, "<tr><td>%s%lld%s</td><td>%s</td><td>%lld</td><td>%s</td><td>",
			(int64_t)i == s->table->best ? "<b>" : "", (long long)row[i].trial,
			(int64_t)i == s->table->best ? "</b>" : "", row[i].state, (long long)row[i].steps,
			s->t->trial[i].reached ? hd_num_print_f64(number, row[i].metric) : "");
		hd_page_text(s->page, row[i].values);
		hd_text_add(s->page, "</td><td><code>");
		hd_page_text(s->page, row[i].digest);
		hd_text_add(s->page, "</code></td><td>");
		hd_page_text(s->page, row[i].why);
		hd_text_add(s->page, "</td></tr>\n");
	}
	hd_text_add(s->page, "</table></section>\n");
}

void hd_sweep_page(const struct hd_sweep_table *table, const struct hd_sweep *sweep,
	const struct hd_trials *t,
	struct hd_text *page)
{
	struct sheet s = { .table = table, .sweep = sweep, .t = t, .page = page };

	find_range(&s);
	hd_page_open(page, table->name);
	hd_text_addf(page, "<p>%s of %u trials, %s %s; %lld steps, %.1f %% of the %lld that all trials would "
		"take to the last rung; %s.</p>\n", table->method, t->ntrials, table->goal, table->metric,
		(long long)table->steps, 100.0 * (double)table->steps / (double)table->exhaustive,
		(long long)table->exhaustive, table->over ? "it is over" : "it goes on");
	if (s.any) {
		put_coordinates(&s);
		put_curves(&s);
	}
	put_table(&s);
	hd_page_close(page);
}
