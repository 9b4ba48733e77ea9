#include "run/report.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/page.h"
#include "run/report_int.h"

enum { LINE_CAP = 1 << 16, CHUNK_BYTES = 1 << 16, MAX_EVENTS = 200, MAX_DOTS = 500, EVENT_TEXT = 320,
	JOB_BYTES = 1 << 20, PAGE_BYTES = 16 << 20 };

struct event_row { double t; uint64_t step; char kind[32], text[EVENT_TEXT]; };

/* All of a run that the page shows; of fixed size, whatever the length of the run. */
struct run_story {
	struct hd_curve loss, step_ms;
	struct hd_dot dot[MAX_DOTS];
	struct event_row event[MAX_EVENTS];       /* a ring: the last ones */
	uint64_t nevents, ndots, unreadable, records, last_step;
	double first_loss, last_loss;
	char digest[40];
	uint64_t digest_step;
};

static void take_metrics(struct run_story *s, const struct hd_json *line)
{
	const struct hd_json *digest = hd_json_find(line, "digest");
	uint64_t step;
	double loss, ms;
	const char *hex;

	if (hd_json_get_u64(line, "step", INT64_MAX, &step, NULL) ||
		hd_json_get_f64(line, "loss", &loss, NULL)) {
		s->unreadable++;
		return;
	}
	if (s->records && step <= s->last_step) {
		hd_curve_cut(&s->loss, step);
		hd_curve_cut(&s->step_ms, step);
	}
	if (s->records++ == 0 || step == 0)
		s->first_loss = loss;
	s->last_step = step;
	s->last_loss = loss;
	hd_curve_add(&s->loss, step, loss);
	if (!hd_json_get_f64(line, "step_ms", &ms, NULL))
		hd_curve_add(&s->step_ms, step, ms);
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

	hd_text_fixed(&text, out, EVENT_TEXT);
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

static void take_event(struct run_story *s, const struct hd_json *line)
{
	struct event_row *row = &s->event[s->nevents % MAX_EVENTS];
	const char *kind;
	uint64_t step;
	double t, loss;

	if (hd_json_get_text(line, "kind", &kind, NULL) || hd_json_get_u64(line, "step", INT64_MAX, &step,
		NULL) || hd_json_get_f64(line, "t", &t, NULL)) {
		s->unreadable++;
		return;
	}
	*row = (struct event_row){ .t = t, .step = step };
	snprintf(row->kind, sizeof row->kind, "%.31s", kind);
	event_text(line, row->text);
	s->nevents++;
	if (!strcmp(kind, "eval") && !hd_json_get_f64(line, "loss", &loss, NULL))
		s->dot[s->ndots++ % MAX_DOTS] = (struct hd_dot){ step, loss };
}

struct report_lines {
	char line[LINE_CAP];
	size_t len;
	bool too_long;
	struct hd_arena arena;                    /* of the line */
	struct run_story *story;
	void (*take)(struct run_story *, const struct hd_json *);
};

static void end_line(struct report_lines *l)
{
	const struct hd_json *json;

	if (l->too_long || (l->len && hd_json_parse(&l->arena, "line", l->line, l->len, &json, NULL)))
		l->story->unreadable++;
	else if (l->len)
		l->take(l->story, json);
	hd_arena_reset(&l->arena);
	l->len = 0;
	l->too_long = false;
}

static void feed(struct report_lines *l, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n')
			end_line(l);
		else if (l->len < LINE_CAP)
			l->line[l->len++] = bytes[i];
		else
			l->too_long = true;
	}
}

/* A file that is not there has no lines. */
static enum hd_err read_lines(const struct hd_rundir *dir, const char *name, struct run_story *story,
	void (*take)(struct run_story *, const struct hd_json *), struct hd_diag *diag)
{
	struct report_lines *l = hd_alloc(sizeof *l);
	char path[HD_PATH_CAP], chunk[CHUNK_BYTES];
	struct hd_file file = { 0 };
	size_t got = 0;

	if (!l)
		return hd_fail(diag, HD_E_NOMEM, "no memory to read %s", name);
	memset(l, 0, sizeof *l);
	l->story = story;
	l->take = take;
	hd_arena_init(&l->arena, 0);
	hd_rundir_path(dir, name, path, sizeof path);
	struct hd_diag why = { "" };
	enum hd_err err = hd_file_open(dir->fs, path, HD_OPEN_READ, &file, &why);
	if (err) {
		err = err == HD_E_NOTFOUND ? HD_OK : hd_fail(diag, err, "%s", why.text);
		goto out;
	}
	do {
		err = hd_file_read(&file, chunk, sizeof chunk, &got, diag);
		if (!err)
			feed(l, chunk, got);
	} while (!err && got == sizeof chunk);
	if (!err)
		end_line(l);
	enum hd_err closed = hd_file_close(&file, diag);
	err = err ? err : closed;
out:
	hd_arena_finish(&l->arena);
	hd_free(l);
	return err;
}

/* ---- the page */

static void print_head(struct hd_text *page, const struct hd_rundir *dir, const struct run_story *s)
{
	const char *slash = strrchr(dir->path, '/');

	hd_page_open(page, slash ? slash + 1 : dir->path);
	if (s->unreadable)
		hd_text_addf(page,
			"<section class=\"warn\">%llu line%s of metrics or events could not be read and %s "
			"left out.</section>\n",
			(unsigned long long)s->unreadable, s->unreadable == 1 ? "" : "s",
			s->unreadable == 1 ? "is" : "are");
	if (!s->records) {
		hd_text_add(page, "<section class=\"empty\">no steps recorded yet</section>\n");
		return;
	}
	hd_text_addf(page,
		"<section><dl><dt>steps recorded to</dt><dd>%llu</dd><dt>loss, first to last</dt><dd>%.5g "
		"&rarr; %.5g</dd>",
		(unsigned long long)s->last_step, s->first_loss, s->last_loss);
	if (*s->digest) {
		hd_text_add(page, "<dt>last recorded state digest</dt><dd><code>");
		hd_page_text(page, s->digest);
		hd_text_addf(page, "</code> <small>after step %llu</small></dd>",
			(unsigned long long)s->digest_step);
	}
	hd_text_add(page, "</dl></section>\n");
}

static void print_events(struct hd_text *page, const struct run_story *s)
{
	uint64_t shown = s->nevents < MAX_EVENTS ? s->nevents : MAX_EVENTS;

	hd_text_add(page, "<section><h2>Events");
	if (shown < s->nevents)
		hd_text_addf(page, " <small>the last %llu of %llu</small>", (unsigned long long)shown,
			(unsigned long long)s->nevents);
	hd_text_add(page, "</h2>");
	if (!shown)
		hd_text_add(page, "<p class=\"empty\">no events recorded</p>");
	else
		hd_text_add(page, "<table><tr><th>time, s</th><th>step</th><th>kind</th><th></th></tr>");
	for (uint64_t i = s->nevents - shown; i < s->nevents; i++) {
		const struct event_row *e = &s->event[i % MAX_EVENTS];
		hd_text_addf(page, "<tr><td class=\"n\">%.1f</td><td class=\"n\">%llu</td><td class=\"k\">",
			e->t, (unsigned long long)e->step);
		hd_page_text(page, e->kind);
		hd_text_add(page, "</td><td>");
		hd_page_text(page, e->text);
		hd_text_add(page, "</td></tr>\n");
	}
	hd_text_add(page, shown ? "</table></section>\n" : "</section>\n");
}

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

	hd_rundir_path(dir, "job.resolved.json", path, sizeof path);
	hd_text_add(page, "<section><h2>Job</h2>");
	if (hd_file_read_all(dir->fs, path, arena, JOB_BYTES, &bytes, &len, NULL) ||
		hd_json_parse(arena, path, (const char *)bytes, len, &json, NULL)) {
		hd_text_add(page, "<p class=\"empty\">job.resolved.json cannot be read</p></section>\n");
		return;
	}
	hd_text_add(page, "<table>");
	print_members(page, json, "");
	hd_text_add(page, "</table></section>\n");
}

enum hd_err hd_report_write(const struct hd_rundir *dir, struct hd_diag *diag)
{
	struct run_story *s = hd_alloc(sizeof *s);
	struct hd_arena arena;
	struct hd_text page;
	char path[HD_PATH_CAP];

	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a report");
	memset(s, 0, sizeof *s);
	hd_arena_init(&arena, 4 * (size_t)PAGE_BYTES);
	hd_text_init(&page, &arena);
	enum hd_err err = read_lines(dir, "metrics.ndjson", s, take_metrics, diag);
	if (!err)
		err = read_lines(dir, "events.ndjson", s, take_event, diag);
	if (err)
		goto out;
	print_head(&page, dir, s);
	if (s->records) {
		uint32_t ndots = (uint32_t)(s->ndots < MAX_DOTS ? s->ndots : MAX_DOTS);
		hd_chart_print(&(struct hd_chart){ "Loss", "per sample or token", "evaluations", &s->loss,
			s->dot, ndots }, &page);
		hd_chart_print(&(struct hd_chart){ "Step time", "ms", "", &s->step_ms, NULL, 0 }, &page);
	}
	print_events(&page, s);
	print_job(&page, dir, &arena);
	hd_page_close(&page);
	hd_rundir_path(dir, "report.html", path, sizeof path);
	err = page.full ? hd_fail(diag, HD_E_NOMEM, "no memory for the report %s", path)
		: hd_file_write_atomic(dir->fs, path, page.at, page.len, diag);
out:
	hd_arena_finish(&arena);
	hd_free(s);
	return err;
}
