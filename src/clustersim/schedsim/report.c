#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/page.h"
#include "clustersim/schedsim/story.h"

enum { CURVE_POINTS = 240 };                      /* of a distribution */

struct sim_report {
	struct hd_text *page;
	const struct hd_sched_sim_setting *set;
	const struct hd_sched_report_run *run;
	uint32_t nruns;
	struct hd_arena *arena;
	const char *name[HD_REPORT_RUNS];
};

static bool wanted(const struct hd_sched_sim_setting *set, uint64_t id) { return !set->end ||
	(id >= set->first && id < set->end); }

/* ---- numbers ---- */

static void put_seconds(struct hd_text *page, double s)
{
	if (!isfinite(s))
		hd_text_add(page, "<td class=\"n\">-</td>");
	else if (s < 7200)
		hd_text_addf(page, "<td class=\"n\">%.1f s</td>", s);
	else
		hd_text_addf(page, "<td class=\"n\">%.2f h</td>", s / 3600);
}

static void put_number(struct hd_text *page, const char *fmt, double x)
{
	char text[40];

	(void)snprintf(text, sizeof text, "%.*f", *fmt - '0', x);
	hd_text_addf(page, "<td class=\"n\">%s%s</td>", isfinite(x) ? text : "-", fmt + 1);
}

static void print_table(const struct sim_report *r)
{
	static const char head[] = "<section><h2>Summary</h2><div class=\"wide\"><table>"
		"<tr><th>policy</th><th>jobs over</th><th>JCT average</th><th>median</th>"
		"<th>95 %</th><th>makespan</th><th>&rho; average</th><th>&rho; "
		"worst</th><th>busy</th><th>computing</th><th>cost, $</th><th>missed</th>"
		"<th>moves</th><th>resizes</th><th>revoked</th><th>extended</th><th>solves</th></tr>\n";

	hd_text_add(r->page, head);
	for (uint32_t i = 0; i < r->nruns; i++) {
		const struct hd_sched_sim_result *s = r->run[i].result;
		hd_text_add(r->page, "<tr><td class=\"k\">");
		hd_page_text(r->page, r->run[i].policy);
		hd_text_addf(r->page, "</td><td class=\"n\">%" PRIu64 " of %" PRIu64 "</td>", s->nover,
			s->njobs);
		put_seconds(r->page, s->avg_jct_s);
		put_seconds(r->page, s->median_jct_s);
		put_seconds(r->page, s->p95_jct_s);
		put_seconds(r->page, s->makespan_s);
		put_number(r->page, "3", s->avg_rho);
		put_number(r->page, "3", s->worst_rho);
		put_number(r->page, "1 %", 100 * s->utilisation);
		put_number(r->page, "1 %", 100 * s->productive);
		put_number(r->page, "2", s->cost_usd);
		hd_text_addf(r->page, s->deadlines ? "<td class=\"n\">%" PRIu64 " of %" PRIu64 "</td>" :
			"<td class=\"n\">-</td>", s->missed, s->deadlines);
		hd_text_addf(r->page,
			"<td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRIu64 "</td><td "
			"class=\"n\">%" PRIu64 "</td>", s->moves, s->resizes,
			s->revoked);
		put_number(r->page, "1 %", 100 * s->extended);
		hd_text_addf(r->page, "<td class=\"n\">%" PRIu64 "</td></tr>\n", s->solves);
	}
	hd_text_add(r->page,
		"</table></div><p class=\"note\">JCT: from arrival to the end. &rho;, finish-time fairness: "
		"JCT over the time alone on an equal part "
		"of the cluster; above 1 the job was worse off. Busy devices are paid; computing leaves out "
		"starts and moves. Extended: leases whose job kept "
		"its devices.</p></section>\n");
	for (uint32_t i = 0; i < r->nruns; i++) {
		if (!*r->run[i].result->ended)
			continue;
		hd_text_add(r->page, "<section class=\"warn\">");
		hd_page_text(r->page, r->run[i].policy);
		hd_text_add(r->page, " ended before all jobs were over: ");
		hd_page_text(r->page, r->run[i].result->ended);
		hd_text_add(r->page, "</section>\n");
	}
}

/* ---- distributions ---- */

static double jct_h(const struct hd_sim_row *row) { return row->jct_s / 3600; }
static double rho(const struct hd_sim_row *row) { return row->rho; }

static int up(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorted finite values of a run's jobs; NULL: no memory. */
static double *values(const struct sim_report *r, uint32_t run, double (*value)(const struct hd_sim_row *),
	size_t *n)
{
	const struct hd_sched_sim_result *s = r->run[run].result;
	double *at = hd_arena_take(r->arena, (size_t)s->nrows + 1, sizeof *at);

	*n = 0;
	for (uint64_t i = 0; at && i < s->nrows; i++)
		if (wanted(r->set, i) && isfinite(value(&s->row[i])))
			at[(*n)++] = value(&s->row[i]);
	if (at)
		qsort(at, *n, sizeof *at, up);
	return at;
}

static void print_distribution(const struct sim_report *r, const char *title, const char *x_name,
	double (*value)(const struct hd_sim_row *))
{
	struct hd_plot p = { .title = title, .unit = "share of the jobs at or below", .x_name = x_name,
		.high = 1 };
	double *at[HD_REPORT_RUNS];
	size_t n[HD_REPORT_RUNS], most = 0;

	for (uint32_t i = 0; i < r->nruns; i++) {
		if (!(at[i] = values(r, i, value, &n[i])))
			n[i] = 0;
		if (n[i])
			p.x_end = fmax(p.x_end, at[i][n[i] - 1]);
		most = n[i] > most ? n[i] : most;
	}
	if (!most || !(p.x_end > 0)) {
		hd_text_addf(r->page, "<section><h2>%s</h2><p class=\"empty\">no job is over</p></section>\n",
			title);
		return;
	}
	hd_plot_open(r->page, &p);
	for (uint32_t i = 0; i < r->nruns; i++) {
		size_t points = n[i] < CURVE_POINTS ? n[i] : CURVE_POINTS;
		hd_plot_line_open(r->page, i);
		hd_plot_line_to(r->page, &p, 0, 0, true);
		for (size_t k = 1; k <= points; k++) {
			size_t upto = n[i] * k / points;
			hd_plot_line_to(r->page, &p, at[i][upto - 1], (double)upto / (double)n[i], false);
		}
		hd_plot_line_close(r->page);
	}
	hd_plot_close(r->page, &p, "");
}

/* ---- over time ---- */

static double busy_of(const struct hd_sched_story *s, uint32_t bin,
	double ndevices) { return 100 * s->bin[bin].device_s / s->bin_s / ndevices; }
static double usd_of(const struct hd_sched_story *s, uint32_t bin, double ndevices) { return (void)ndevices,
	s->bin[bin].usd; }

static uint32_t nbins(const struct hd_sched_story *s)
{
	double n = s->started ? ceil((s->end_s - s->start_s) / s->bin_s) : 0;

	return n < HD_STORY_BINS ? (uint32_t)n : HD_STORY_BINS;
}

static void print_over_time(const struct sim_report *r, const char *title, const char *unit, bool sums,
	double (*value)(const struct hd_sched_story *, uint32_t, double))
{
	struct hd_plot p = { .title = title, .unit = unit, .x_name = "hour" };
	double ndevices = 0, high = 0;

	for (uint32_t t = 0; t < r->set->ntypes; t++)
		ndevices += r->set->types[t].n;
	for (uint32_t i = 0; i < r->nruns; i++) {
		const struct hd_sched_story *s = r->run[i].story;
		double sum = 0;
		for (uint32_t b = 0; b < nbins(s); b++) {
			sum = (sums ? sum : 0) + value(s, b, ndevices);
			high = fmax(high, sum);
		}
		p.x_end = fmax(p.x_end, nbins(s) * s->bin_s / 3600);
	}
	if (!(high > 0) || !(p.x_end > 0)) {
		hd_text_addf(r->page, "<section><h2>%s</h2><p class=\"empty\">%s</p></section>\n", title,
			sums ? "no prices are known" : "no job ran");
		return;
	}
	p.high = sums ? high * 1.05 : fmax(100, high);
	hd_plot_open(r->page, &p);
	for (uint32_t i = 0; i < r->nruns; i++) {
		const struct hd_sched_story *s = r->run[i].story;
		double sum = 0;
		hd_plot_line_open(r->page, i);
		for (uint32_t b = 0; b < nbins(s); b++) {
			sum = (sums ? sum : 0) + value(s, b, ndevices);
			hd_plot_line_to(r->page, &p, (b + (sums ? 1.0 : 0.5)) * s->bin_s / 3600, sum, b == 0);
		}
		hd_plot_line_close(r->page);
	}
	hd_plot_close(r->page, &p, "");
}

/* ---- where each job ran ---- */

static void print_gantt(const struct sim_report *r, uint32_t run)
{
	const struct hd_sched_story *s = r->run[run].story;
	const struct hd_sched_sim_result *result = r->run[run].result;
	uint64_t njobs = result->nrows > s->first ? result->nrows - s->first : 0;
	uint32_t shown = njobs < HD_STORY_JOBS ? (uint32_t)njobs : HD_STORY_JOBS;
	char text[HD_STORY_JOBS][24], note[200];
	const char *row_name[HD_STORY_JOBS], *types[HD_SCHED_TYPES];
	struct hd_plot p = { .title = "Devices of each job", .unit = r->run[run].policy, .x_name = "hour",
		.rows = shown, .row_name = row_name };
	bool joined = false;

	for (uint32_t j = 0; j < shown; j++) {
		(void)snprintf(text[j], sizeof text[j], "%" PRIu64, s->first + j);
		row_name[j] = text[j];
		joined |= s->job[j].joined;
		for (uint32_t b = 0; b < s->job[j].n; b++)
			p.x_end = fmax(p.x_end, (s->job[j].bar[b].to_s - s->start_s) / 3600);
	}
	if (!(p.x_end > 0))
		return;
	for (uint32_t t = 0; t < r->set->ntypes; t++)
		types[t] = r->set->types[t].name;
	hd_plot_open(r->page, &p);
	for (uint32_t j = 0; j < shown; j++)
		for (uint32_t b = 0; b < s->job[j].n; b++) {
			const struct story_bar *bar = &s->job[j].bar[b];
			char title[200];
			(void)snprintf(title, sizeof title, "job %" PRIu64 ": %.9g %.80s, %.3f h to %.3f h",
				s->first + j, bar->devices, types[bar->type],
				(bar->from_s - s->start_s) / 3600, (bar->to_s - s->start_s) / 3600);
			hd_plot_bar(r->page, &p, j, bar->type, (bar->from_s - s->start_s) / 3600,
				(bar->to_s - s->start_s) / 3600, title);
		}
	(void)snprintf(note, sizeof note, "one row a job%s%s",
		shown < njobs ? ", the first of them only" : "",
		joined ? "; where a job changed often, neighbouring stays are drawn as one" : "");
	hd_plot_close(r->page, &p, note);
	hd_plot_legend(r->page, r->set->ntypes, types);
}

void hd_sched_report_print(struct hd_text *page, const char *title, const struct hd_sched_sim_setting *set,
	const struct hd_sched_report_run *run,
	uint32_t nruns, struct hd_arena *arena)
{
	struct sim_report r = { .page = page, .set = set, .run = run,
		.nruns = nruns < HD_REPORT_RUNS ? nruns : HD_REPORT_RUNS, .arena = arena };

	for (uint32_t i = 0; i < r.nruns; i++)
		r.name[i] = run[i].policy;
	hd_page_open(page, title);
	hd_text_add(page, "<p class=\"note\">A simulated cluster of ");
	for (uint32_t t = 0; t < set->ntypes; t++) {
		hd_text_addf(page, "%s%u ", t ? ", " : "", set->types[t].n);
		hd_page_text(page, set->types[t].name);
	}
	hd_text_addf(page, "; %s.</p>\n", set->fidelity == HD_FIDELITY_GAVEL ?
		"the published simulator's rules, its faults included" : "exact rules");
	print_table(&r);
	if (r.nruns > 1)
		hd_plot_legend(page, r.nruns, r.name);
	print_distribution(&r, "Job completion time", "hour", jct_h);
	print_distribution(&r, "Finish-time fairness", "time against an equal part", rho);
	print_over_time(&r, "Busy devices", "%", false, busy_of);
	print_over_time(&r, "Cost so far", "$", true, usd_of);
	for (uint32_t i = 0; i < r.nruns; i++)
		print_gantt(&r, i);
	hd_page_close(page);
}
