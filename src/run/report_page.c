/* What the page says; report.c has read it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/page.h"
#include "run/report_int.h"

enum { SHORT = 32 };

static const char *number(double v, char room[SHORT])
{
	snprintf(room, SHORT, isfinite(v) ? "%.5g" : "not finite", v);
	return room;
}

static const char *duration(double s, char room[SHORT])
{
	unsigned long whole = s < 1e15 ? (unsigned long)s : 0;

	if (s < 60)
		snprintf(room, SHORT, "%.1f s", s);
	else if (whole < 3600)
		snprintf(room, SHORT, "%lu min %02lu s", whole / 60, whole % 60);
	else
		snprintf(room, SHORT, "%lu h %02lu min", whole / 3600, whole / 60 % 60);
	return room;
}

static void open_row(struct hd_text *page, const char *name)
{
	hd_text_addf(page, "<dt>%s</dt><dd>", name);
}

static void close_row(struct hd_text *page) { hd_text_add(page, "</dd>\n"); }

/* How it ended: the word of `heddle status`, its colour, and what that means. */
static void print_end(const struct hd_story *s, struct hd_text *page)
{
	static const struct { const char *state, *look, *words; } rows[] = {
		{ "new", "", "no step was begun" },
		{ "done", "good", "all steps are done" },
		{ "stopped", "", "it was asked to; <code>heddle resume</code> goes on" },
		{ "failed", "bad", "an error ended it" },
		{ "ended", "", "an earlier program, which did not record how" },
		{ "died", "bad", "interrupted, no end is recorded: its processes were killed, or it "
		  "goes on" },
	};
	const struct hd_ending *e = &s->ending;
	const char *state = hd_ending_state(e);

	open_row(page, "end");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].state, state))
			hd_text_addf(page, "<b class=\"%s\">%s</b> (%s)", rows[i].look, state, rows[i].words);
	if (e->ended && e->exit >= 0)
		hd_text_addf(page, ", exit code %d", e->exit);
	if (*e->text) {
		hd_text_add(page, ": ");
		hd_page_text(page, e->text);
	}
	close_row(page);
}

/* The last evaluation; without one the last step. */
static void print_metric(const struct hd_story *s, struct hd_text *page)
{
	char room[SHORT];

	open_row(page, "final metric");
	if (s->nevals && s->eval.has_accuracy)
		hd_text_addf(page, "accuracy %s %%, ", number(100 * s->eval.accuracy, room));
	if (s->nevals) {
		hd_text_add(page, s->eval.measures);
		hd_text_addf(page, "loss %s on split ", number(s->eval.loss, room));
		hd_page_text(page, *s->eval.split ? s->eval.split : "unnamed");
		hd_text_addf(page, " after step %llu", (unsigned long long)s->eval.step);
	} else if (s->records) {
		hd_text_addf(page, "training loss %s; no evaluation recorded", number(s->last_loss, room));
	} else {
		hd_text_add(page, "none");
	}
	close_row(page);
}

static void print_steps(const struct hd_story *s, struct hd_text *page)
{
	open_row(page, "steps");
	hd_text_addf(page, "%llu", (unsigned long long)(s->ending.ended ? s->ending.step :
		s->records ? s->last_step + 1 : 0));
	if (s->ending.steps)
		hd_text_addf(page, " of %llu", (unsigned long long)s->ending.steps);
	close_row(page);
}

static void print_where(const struct hd_story *s, struct hd_text *page)
{
	double a = s->by_steps.sum_s + s->by_steps.last_s, b = s->by_events.sum_s + s->by_events.last_s;
	char room[SHORT];

	open_row(page, "time");
	hd_text_add(page, duration(fmax(a, b), room));
	close_row(page);
	open_row(page, "devices");
	if (s->devices)
		hd_text_addf(page, "%u", s->devices);
	else
		hd_text_add(page, "not recorded");
	if (s->workers_most)
		hd_text_addf(page, ", %u worker%s", s->workers_last, s->workers_last == 1 ? "" : "s");
	if (s->workers_least < s->workers_most)
		hd_text_addf(page, " at the end (from %u to %u)", s->workers_least, s->workers_most);
	close_row(page);
}

/* What machines were paid for, and what went into it: parts of a ledger that sum exactly. */
static void print_paid(const struct hd_story *s, struct hd_text *page)
{
	if (!s->paid.ms)
		return;
	open_row(page, "paid");
	hd_text_addf(page, "%.3f machine hours", (double)s->paid.ms / 3.6e6);
	if (s->paid.nano_usd)
		hd_text_addf(page, ", $%lld.%09lld", (long long)(s->paid.nano_usd / 1000000000),
			(long long)(s->paid.nano_usd % 1000000000));
	for (int p = 0, n = 0; p < HD_NLEDGER; p++)
		if (s->paid.part_ms[p])
			hd_text_addf(page, "%s %s %.1f %%", n++ ? "," : ":", hd_ledger_names[p],
				100 * (double)s->paid.part_ms[p] / (double)s->paid.ms);
	close_row(page);
}

/* What functions did and cost, over all processes of the run. */
static void print_functions(const struct hd_story *s, struct hd_text *page)
{
	if (!s->functions[0] || !strcmp(s->functions, "none"))
		return;
	open_row(page, "functions");
	hd_page_text(page, s->functions);
	close_row(page);
}

void hd_story_print_head(const struct hd_story *s, const char *name, struct hd_text *page)
{
	char a[SHORT], b[SHORT];

	hd_page_open(page, name);
	if (s->unreadable)
		hd_text_addf(page,
			"<section class=\"warn\">%llu line%s of metrics or events could not be read and %s "
			"left out.</section>\n",
			(unsigned long long)s->unreadable, s->unreadable == 1 ? "" : "s",
			s->unreadable == 1 ? "is" : "are");
	hd_text_add(page, "<section><dl>\n");
	print_end(s, page);
	print_metric(s, page);
	print_steps(s, page);
	print_where(s, page);
	print_paid(s, page);
	print_functions(s, page);
	if (s->records) {
		open_row(page, "loss, first to last");
		hd_text_addf(page, "%s &rarr; %s", number(s->first_loss, a), number(s->last_loss, b));
		close_row(page);
	}
	if (*s->digest) {
		open_row(page, "last recorded state digest");
		hd_text_add(page, "<code>");
		hd_page_text(page, s->digest);
		hd_text_addf(page, "</code> <small>after step %llu</small>",
			(unsigned long long)s->digest_step);
		close_row(page);
	}
	hd_text_add(page, "</dl></section>\n");
	if (!s->records)
		hd_text_add(page, "<section class=\"empty\">no steps recorded yet</section>\n");
}

void hd_story_print_charts(const struct hd_story *s, struct hd_text *page)
{
	const struct { const char *title, *unit, *line; const struct hd_curve *curve;
		const struct hd_story_dots *dots; } charts[] = {
		{ "Loss", "per sample or token", "training", &s->loss, &s->eval_loss },
		{ "Loss 1", "not weighted", "training", &s->term[0], NULL },
		{ "Loss 2", "not weighted", "training", &s->term[1], NULL },
		{ "Loss 3", "not weighted", "training", &s->term[2], NULL },
		{ "Loss 4", "not weighted", "training", &s->term[3], NULL },
		{ "Accuracy", "% of an evaluation", "evaluations in order", &s->accuracy,
		  &s->eval_accuracy },
		{ "Learning rate", "of each step", "", &s->lr, NULL },
		{ "Gradient norm", "before clipping", "", &s->gnorm, NULL },
		{ "Step time", "ms", "", &s->step_ms, NULL },
	};

	for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
		uint64_t n = charts[i].dots ? charts[i].dots->n : 0;
		const bool term = charts[i].curve >= s->term && charts[i].curve < s->term + HD_MODEL_TERMS;
		if (term && !charts[i].curve->nbins && !charts[i].curve->nonfinite)
			continue;
		if (charts[i].curve == &s->accuracy && !s->accuracy.nbins && !s->accuracy.nonfinite) {
			hd_text_addf(page, "<section><h2>Accuracy</h2><p class=\"empty\">%s</p></section>\n",
				s->nevals ? "this job's evaluations have no accuracy" :
				"no evaluation recorded");
			continue;
		}
		hd_chart_print(&(struct hd_chart){ charts[i].title, charts[i].unit, charts[i].line,
			"evaluations", charts[i].curve, charts[i].dots ? charts[i].dots->dot : NULL,
			(uint32_t)(n < HD_STORY_DOTS ? n : HD_STORY_DOTS) }, page);
	}
}

void hd_story_print_events(const struct hd_story *s, struct hd_text *page)
{
	uint64_t shown = s->nevents < HD_STORY_EVENTS ? s->nevents : HD_STORY_EVENTS;

	hd_text_add(page, "<section><h2>Events");
	if (shown < s->nevents)
		hd_text_addf(page, " <small>the last %llu of %llu</small>", (unsigned long long)shown,
			(unsigned long long)s->nevents);
	hd_text_add(page, "</h2>");
	if (!shown)
		hd_text_add(page, "<p class=\"empty\">no events recorded</p>");
	else
		hd_text_add(page, "<div class=\"wide\"><table><tr><th>time, s</th><th>step</th><th>kind</th>"
			"<th></th></tr>");
	for (uint64_t i = s->nevents - shown; i < s->nevents; i++) {
		const struct hd_story_event *e = &s->event[i % HD_STORY_EVENTS];
		hd_text_addf(page, "<tr><td class=\"n\">%.1f</td><td class=\"n\">%llu</td><td class=\"k\">",
			e->t_s, (unsigned long long)e->step);
		hd_page_text(page, e->kind);
		hd_text_add(page, "</td><td>");
		hd_page_text(page, e->text);
		hd_text_add(page, "</td></tr>\n");
	}
	hd_text_add(page, shown ? "</table></div></section>\n" : "</section>\n");
}
