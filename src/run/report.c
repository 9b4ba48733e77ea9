#include "run/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/page.h"
#include "run/kept_forecast.h"
#include "run/kept_plan.h"
#include "run/report_int.h"
#include "run/run_lines.h"

enum { JOB_BYTES = 1 << 20, PLAN_BYTES = 16 << 20,
	PAGE_BYTES = 16 << 20 };

static void take_time(struct hd_story_time *time, double t_s)
{
	if (t_s < time->last_s)
		time->sum_s += time->last_s;
	time->last_s = t_s;
}

static void cut(struct hd_story *s, uint64_t step)
{
	struct hd_curve *const curves[] = { &s->loss, &s->lr, &s->gnorm, &s->step_ms };

	for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
		hd_curve_cut(curves[i], step);
	for (uint32_t i = 0; i < HD_MODEL_TERMS; i++)
		hd_curve_cut(&s->term[i], step);
}

static void take_workers(struct hd_story *s, uint32_t n)
{
	s->workers_least = !s->workers_least || n < s->workers_least ? n : s->workers_least;
	s->workers_most = n > s->workers_most ? n : s->workers_most;
	s->workers_last = n;
}

static void take_metrics(void *self, const struct hd_json *line)
{
	struct hd_story *s = self;
	const struct { const char *key; struct hd_curve *curve; } curves[] = { { "lr", &s->lr },
		{ "gnorm", &s->gnorm }, { "step_ms", &s->step_ms } };
	const struct hd_json *digest = hd_json_find(line, "digest");
	uint64_t step, workers;
	double loss, value;
	const char *hex;
	char term[] = "loss_1";

	if (hd_json_get_u64(line, "step", INT64_MAX, &step, NULL) ||
		hd_json_get_f64(line, "loss", &loss, NULL)) {
		s->unreadable++;
		return;
	}
	if (s->records && step <= s->last_step)
		cut(s, step);
	if (s->records++ == 0 || step == 0)
		s->first_loss = loss;
	s->last_step = step;
	s->last_loss = loss;
	hd_curve_add(&s->loss, step, loss);
	for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
		if (!hd_json_get_f64(line, curves[i].key, &value, NULL))
			hd_curve_add(curves[i].curve, step, value);
	for (uint32_t i = 0; i < HD_MODEL_TERMS; i++, term[5]++)
		if (!hd_json_get_f64(line, term, &value, NULL))
			hd_curve_add(&s->term[i], step, value);
	if (!hd_json_get_f64(line, "t", &value, NULL))
		take_time(&s->by_steps, value);
	if (!hd_json_get_u64(line, "workers", UINT32_MAX, &workers, NULL))
		take_workers(s, (uint32_t)workers);
	if (digest && !hd_json_as_text(digest, &hex, NULL)) {
		snprintf(s->digest, sizeof s->digest, "%.39s", hex);
		s->digest_step = step;
	}
}

/* An event's own members as "key value, key value". */
static void event_text(const struct hd_json *line, char *out)
{
	static const char *const common[] = { "v", "t", "kind", "step", "membership" };
	struct hd_text text;

	hd_text_fixed(&text, out, HD_STORY_TEXT);
	for (size_t i = 0; i < hd_json_count(line); i++) {
		const struct hd_json *item = hd_json_item(line, i);
		const char *key = hd_json_key(line, i), *string;
		bool skip = false;
		double number;
		for (size_t k = 0; k < sizeof common / sizeof *common; k++)
			skip |= !strcmp(common[k], key);
		if (skip)
			continue;
		const char *comma = text.len ? ", " : "";
		if (!hd_json_as_text(item, &string, NULL))
			hd_text_addf(&text, "%s%s%s%s", comma, strcmp(key, "text") ? key : "",
				strcmp(key, "text") ? " " : "", string);
		else if (!hd_json_as_f64(item, &number, NULL))
			hd_text_addf(&text, "%s%s %.6g", comma, key, number);
	}
}

static void add_dot(struct hd_story_dots *dots, uint64_t step, double value)
{
	/* what was undone by a restart is evaluated once more */
	while (dots->n && dots->dot[(dots->n - 1) % HD_STORY_DOTS].step > step)
		dots->n--;
	if (isfinite(value))
		dots->dot[dots->n++ % HD_STORY_DOTS] = (struct hd_dot){ step, value };
}

static void take_measures(struct hd_story *s, const struct hd_json *line)
{
	struct hd_text text;
	double value;

	hd_text_fixed(&text, s->eval.measures, sizeof s->eval.measures);
	for (int i = 0; i < HD_NMEASURES; i++)
		if (i != HD_MEASURE_ACCURACY && !hd_json_get_f64(line, hd_measures[i].word, &value, NULL))
			hd_text_addf(&text, "%s %.4g, ", hd_measures[i].word, value);
}

static void take_eval(struct hd_story *s, const struct hd_json *line, uint64_t step)
{
	const char *split = "";
	double loss, accuracy = 0, perplexity = 0;

	if (hd_json_get_f64(line, "loss", &loss, NULL))
		return;
	s->nevals++;
	add_dot(&s->eval_loss, step, loss);
	s->eval.step = step;
	s->eval.loss = loss;
	s->eval.has_accuracy = !hd_json_get_f64(line, "accuracy", &accuracy, NULL);
	(void)!hd_json_get_f64(line, "perplexity", &perplexity, NULL);
	(void)!hd_json_get_text(line, "split", &split, NULL);
	s->eval.accuracy = accuracy;
	s->eval.perplexity = perplexity;
	snprintf(s->eval.split, sizeof s->eval.split, "%.15s", split);
	take_measures(s, line);
	if (!s->eval.has_accuracy)
		return;
	hd_curve_cut(&s->accuracy, step);
	hd_curve_add(&s->accuracy, step, 100 * accuracy);
	add_dot(&s->eval_accuracy, step, 100 * accuracy);
}

static void take_event(void *self, const struct hd_json *line)
{
	struct hd_story *s = self;
	struct hd_story_event *row = &s->event[s->nevents % HD_STORY_EVENTS];
	const char *kind;
	uint64_t step;
	double t_s;

	if (hd_json_get_text(line, "kind", &kind, NULL) || hd_json_get_u64(line, "step", INT64_MAX, &step,
		NULL) || hd_json_get_f64(line, "t", &t_s, NULL)) {
		s->unreadable++;
		return;
	}
	*row = (struct hd_story_event){ .t_s = t_s, .step = step };
	snprintf(row->kind, sizeof row->kind, "%.31s", kind);
	event_text(line, row->text);
	s->nevents++;
	take_time(&s->by_events, t_s);
	if (!strcmp(kind, "eval"))
		take_eval(s, line, step);
	if (!strcmp(kind, "paid"))
		(void)hd_paid_read(&s->paid, line, "ms", "nano_usd");   /* only whole */
}

/* ---- the page */

static void print_value(struct hd_text *page, const struct hd_json *json)
{
	const char *string;
	double number;
	int64_t integer;
	bool truth;

	if (!hd_json_as_text(json, &string, NULL))
		hd_page_text(page, string);
	else if (!hd_json_as_i64(json, INT64_MIN, INT64_MAX, &integer, NULL))
		hd_text_addf(page, "%lld", (long long)integer);
	else if (!hd_json_as_f64(json, &number, NULL))
		hd_text_addf(page, "%.9g", number);
	else if (!hd_json_as_bool(json, &truth, NULL))
		hd_text_add(page, truth ? "true" : "false");
	else
		hd_text_add(page, hd_json_kind(json) == HD_JSON_NULL ? "none" : "");
}

/* Rows "table.key", however deep; the parser bounds the depth. */
static void print_members(struct hd_text *page, const struct hd_json *json, const char *prefix)
{
	for (size_t i = 0; i < hd_json_count(json); i++) {
		const struct hd_json *item = hd_json_item(json, i);
		const char *key = hd_json_key(json, i);
		char name[256];
		struct hd_text path;
		hd_text_fixed(&path, name, sizeof name);
		hd_text_addf(&path, "%s%s", prefix, *prefix ? "." : "");
		if (key)
			hd_text_add(&path, key);
		else
			hd_text_addf(&path, "%zu", i);
		if (hd_json_count(item)) {
			print_members(page, item, name);
			continue;
		}
		hd_text_add(page, "<tr><th>");
		hd_page_text(page, name);
		hd_text_add(page, "</th><td>");
		print_value(page, item);
		hd_text_add(page, "</td></tr>\n");
	}
}

static void print_job(struct hd_text *page, const struct hd_rundir *dir, struct hd_arena *arena)
{
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	hd_text_add(page, "<section><h2>Job</h2>");
	if (hd_file_read_all(dir->fs, path, arena, JOB_BYTES, &bytes, &len, NULL) ||
		hd_json_parse(arena, path, (const char *)bytes, len, &json, NULL)) {
		hd_text_add(page, "<p class=\"empty\">job.resolved.json cannot be read</p></section>\n");
		return;
	}
	hd_text_add(page, "<div class=\"wide\"><table>");
	print_members(page, json, "");
	hd_text_add(page, "</table></div></section>\n");
}

static void print_cell(struct hd_text *page, const struct hd_json *row, const char *key)
{
	double ms;

	if (hd_json_get_f64(row, key, &ms, NULL))
		hd_text_add(page, "<td></td>");
	else
		hd_text_addf(page, "<td>%.4f</td>", ms);
}

static void print_times(struct hd_text *page, const char *name, const char *stage, const struct hd_json *row)
{
	static const char *const keys[] = { "predicted_ms", "measured_ms", "processor_ms" };

	hd_text_add(page, "<tr><td>");
	hd_page_text(page, name);
	hd_text_addf(page, "</td><td>%s</td>", stage);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		print_cell(page, row, keys[i]);
	hd_text_add(page, "</tr>\n");
}

static void print_missing(struct hd_text *page, const struct hd_json *workers)
{
	hd_text_add(page, "<p>Nothing is known of the times of workers that were lost, or had no second "
		"step: ");
	for (size_t i = 0; i < hd_json_count(workers); i++) {
		hd_text_add(page, i ? ", " : "");
		print_value(page, hd_json_item(workers, i));
	}
	hd_text_add(page, "</p>");
}

/* What the newest plan that ran was predicted to take, and took (kept_forecast.h); a run that predicted
 * nothing has no such section. */
static void print_forecast(struct hd_text *page, const struct hd_rundir *dir, struct hd_arena *arena)
{
	const struct hd_json *json, *rows, *missing;
	uint64_t number;

	if (hd_forecast_newest(&json, dir, arena, NULL) ||
		hd_json_get(json, "instructions", HD_JSON_ARRAY, &rows, NULL))
		return;
	hd_text_add(page, "<section><h2>Predicted and measured</h2>");
	if (!hd_json_get_u64(json, "plan", UINT32_MAX, &number, NULL))
		hd_text_addf(page, "<p>Plan %llu</p>", (unsigned long long)number);
	hd_text_add(page, "<div class=\"wide\"><table><tr><th>op</th>"
		"<th>stage</th><th>predicted ms</th><th>measured ms</th><th>processor ms</th></tr>\n");
	for (size_t i = 0; i < hd_json_count(rows); i++) {
		const struct hd_json *row = hd_json_item(rows, i);
		const char *op;
		uint64_t stage;
		char text[24] = "all";
		if (hd_json_get_text(row, "op", &op, NULL))
			continue;
		if (!hd_json_get_u64(row, "stage", UINT32_MAX, &stage, NULL))
			snprintf(text, sizeof text, "%llu", (unsigned long long)stage);
		print_times(page, op, text, row);
	}
	print_times(page, "step", "all", json);
	hd_text_add(page, "</table></div>");
	if (!hd_json_get(json, "missing", HD_JSON_ARRAY, &missing, NULL))
		print_missing(page, missing);
	hd_text_add(page, "</section>\n");
}

static uint32_t devices_of(const struct hd_rundir *dir)
{
	char path[HD_PATH_CAP];
	struct hd_plan plan;
	struct hd_arena arena;
	uint32_t number, n = 0;
	uint8_t *bytes;
	size_t len;

	if (hd_plan_newest(&number, dir->fs, dir->path, NULL))
		return 0;
	hd_arena_init(&arena, 0);
	snprintf(path, sizeof path, "%s/" HD_PLAN_FOLDER "/%04u.plan", dir->path, number);
	if (!hd_file_read_all(dir->fs, path, &arena, PLAN_BYTES, &bytes, &len, NULL) &&
		!hd_plan_parse(&plan, (const char *)bytes, len, path, &arena, NULL))
		n = hd_plan_devices(&plan);
	hd_arena_finish(&arena);
	return n;
}

static void print_page(const struct hd_story *s, const struct hd_rundir *dir, struct hd_arena *arena,
	struct hd_text *page)
{
	const char *slash = strrchr(dir->path, '/');

	hd_story_print_head(s, slash ? slash + 1 : dir->path, page);
	if (s->records)
		hd_story_print_charts(s, page);
	print_forecast(page, dir, arena);
	hd_story_print_events(s, page);
	print_job(page, dir, arena);
	hd_page_close(page);
}

enum hd_err hd_report_write(const struct hd_rundir *dir, struct hd_diag *diag)
{
	struct hd_story *s = hd_alloc(sizeof *s);
	struct hd_functions_bill bill;
	struct hd_arena arena;
	struct hd_text page;
	char path[HD_PATH_CAP];

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a report");
	memset(s, 0, sizeof *s);
	hd_arena_init(&arena, 4 * (size_t)PAGE_BYTES);
	hd_text_init(&page, &arena);
	enum hd_err err = hd_run_lines_read(dir, "metrics.ndjson", take_metrics, s, &s->unreadable, diag);
	if (!err)
		err = hd_run_lines_read(dir, "events.ndjson", take_event, s, &s->unreadable, diag);
	if (err)
		goto out;
	if (hd_ending_look(dir->fs, dir->path, &s->ending, NULL))       /* no job.yaml: not said */
		s->ending = (struct hd_ending){ .exit = -1, .began = s->records > 0 };
	s->devices = devices_of(dir);
	hd_functions_bill_sum(&bill, dir->fs, dir->path);
	(void)hd_functions_bill_say(s->functions, &bill);
	print_page(s, dir, &arena, &page);
	hd_rundir_path(dir, "report.html", path, sizeof path);
	err = page.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the report %s", path)
		: hd_file_write_atomic(dir->fs, path, page.at, page.len, diag);
out:
	hd_arena_finish(&arena);
	hd_free(s);
	return err;
}
