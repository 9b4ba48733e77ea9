#include "run/scrape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static double bin_end_s(int i) { return ldexp(1e-3, i); }

void hd_scrape_step_took(struct hd_scrape_numbers *n, double s)
{
	int i = 0;

	while (i < HD_SCRAPE_BINS && s > bin_end_s(i))
		i++;
	if (i < HD_SCRAPE_BINS)
		n->step.n[i]++;
	n->step.count++;
	n->step.sum_s += s;
}

void hd_scrape_event(struct hd_scrape_numbers *n, const char *kind)
{
	uint32_t i = 0;

	while (i < n->nkinds && strncmp(n->kind[i].kind, kind, HD_SCRAPE_KIND - 1) != 0)
		i++;
	if (i == n->nkinds && n->nkinds + 1 < HD_SCRAPE_KINDS)
		snprintf(n->kind[n->nkinds++].kind, HD_SCRAPE_KIND, "%s", kind);
	if (i == n->nkinds) {
		i = HD_SCRAPE_KINDS - 1;
		snprintf(n->kind[i].kind, HD_SCRAPE_KIND, "other");
	}
	n->kind[i].n++;
}

static void head(struct hd_text *t, const char *name, const char *type, const char *help)
{
	hd_text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Words of this program: nothing to escape but what a label may not hold at all. */
static void label(struct hd_text *t, const char *word)
{
	for (; *word; word++)
		hd_text_put(t, *word == '"' || *word == '\\' || *word == '\n' ? "_" : word, 1);
}

static void number(struct hd_text *t, double v)
{
	char room[HD_NUM_CAP];

	if (isnan(v))
		hd_text_add(t, "NaN");
	else if (isinf(v))
		hd_text_add(t, v > 0 ? "+Inf" : "-Inf");
	else
		hd_text_add(t, hd_num_print_f64(room, v));
	hd_text_add(t, "\n");
}

static void print_bins(const struct hd_scrape_bins *b, struct hd_text *t)
{
	uint64_t below = 0;

	head(t, "heddle_step_seconds", "histogram", "Seconds from one committed step to the next.");
	for (int i = 0; i < HD_SCRAPE_BINS; i++) {
		char room[HD_NUM_CAP];
		below += b->n[i];
		hd_text_addf(t, "heddle_step_seconds_bucket{le=\"%s\"} %llu\n",
			hd_num_print_f64(room, bin_end_s(i)), (unsigned long long)below);
	}
	hd_text_addf(t, "heddle_step_seconds_bucket{le=\"+Inf\"} %llu\nheddle_step_seconds_sum ",
		(unsigned long long)b->count);
	number(t, b->sum_s);
	hd_text_addf(t, "heddle_step_seconds_count %llu\n", (unsigned long long)b->count);
}

static void print_plain(const struct hd_scrape_numbers *n, struct hd_text *t)
{
	const struct { const char *name, *type, *help; double v; bool shown; } row[] = {
		{ "heddle_step", "gauge", "Steps committed in the run so far.", (double)n->step_number, true },
		{ "heddle_samples_total", "counter", "Samples that the run has learned from.",
			(double)n->samples, true },
		{ "heddle_workers", "gauge", "Workers of the newest step.", n->workers, true },
		{ "heddle_membership_epoch", "gauge", "Number of the membership.", n->membership, true },
		{ "heddle_plan", "gauge", "Number of the plan in force.", n->plan, true },
		{ "heddle_loss", "gauge", "Training loss of the newest step.", n->loss, true },
		{ "heddle_learning_rate", "gauge", "Learning rate of the newest step.", n->lr, true },
		{ "heddle_gradient_norm", "gauge", "Norm of the newest step's gradient.", n->gnorm, true },
		{ "heddle_evaluation_loss", "gauge", "Loss of the newest evaluation.", n->eval_loss, n->evaluated },
		{ "heddle_evaluation_accuracy", "gauge", "Accuracy of the newest evaluation.", n->eval_accuracy,
			n->evaluated && n->has_accuracy },
		{ "heddle_wire_bytes_total", "counter", "Payload bytes that workers sent.",
			(double)n->wire_bytes, true },
		{ "heddle_preemptions_total", "counter",
			"Times that a transfer went in the midst of another.", (double)n->preempted, true },
		{ "heddle_order_violations_total", "counter",
			"Chunks that went although a more urgent transfer could have.", (double)n->inverted,
			true },
		{ "heddle_read_wait_seconds_total", "counter", "Seconds that steps waited for data.",
			n->read_wait_s, true },
		{ "heddle_redone_virtual_nodes_total", "counter", "Virtual nodes computed again after a loss.",
			(double)n->redone, true },
		{ "heddle_skipped_steps_total", "counter", "Steps without an update: not finite.",
			(double)n->skipped, true },
		{ "heddle_goodput_ratio", "gauge", "Seconds in committed steps over seconds held.",
			n->up_s > 0 ? n->productive_s / n->up_s : 0, true },
		{ "heddle_up_seconds", "gauge", "Seconds since this process holds the run.", n->up_s, true },
		{ "heddle_lines_lost_total", "counter", "Lines of the run's logs that could not be written.",
			(double)n->lines_lost, true },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		if (!row[i].shown)
			continue;
		head(t, row[i].name, row[i].type, row[i].help);
		hd_text_addf(t, "%s ", row[i].name);
		number(t, row[i].v);
	}
}

/* Events that say that members, plan or place of the run changed. */
static bool reconfigures(const char *kind)
{
	static const char *const row[] = { "join", "lost", "leave", "rejoin", "notice", "scale", "plan",
		"redo", "moves", "resync", "failover", "stands_in" };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(kind, row[i]))
			return true;
	return false;
}

static void print_kinds(const struct hd_scrape_numbers *n, struct hd_text *t, const char *name,
	const char *key, bool all)
{
	for (uint32_t i = 0; i < HD_SCRAPE_KINDS; i++) {
		if (!n->kind[i].n || (!all && !reconfigures(n->kind[i].kind)))
			continue;
		hd_text_addf(t, "%s{%s=\"", name, key);
		label(t, n->kind[i].kind);
		hd_text_addf(t, "\"} %llu\n", (unsigned long long)n->kind[i].n);
	}
}

void hd_scrape_print(const struct hd_scrape_numbers *n, struct hd_text *t)
{
	print_bins(&n->step, t);
	print_plain(n, t);
	head(t, "heddle_wait_seconds_total", "counter", "Seconds that devices waited in committed steps.");
	hd_text_add(t, "heddle_wait_seconds_total{reason=\"data\"} ");
	number(t, n->read_wait_s);
	hd_text_add(t, "heddle_wait_seconds_total{reason=\"peers\"} ");
	number(t, n->wait_s);
	head(t, "heddle_reconfigurations_total", "counter", "Changes of members, plan or place, by event.");
	print_kinds(n, t, "heddle_reconfigurations_total", "reason", false);
	head(t, "heddle_events_total", "counter", "Lines of events.ndjson, by kind.");
	print_kinds(n, t, "heddle_events_total", "kind", true);
}
