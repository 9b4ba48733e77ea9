#include "timeline/viewer.h"

#include <assert.h>
#include <string.h>

#include "hd_viewer_page.h"
#include "base/page.h"
#include "timeline/viewer_int.h"

/* ---- tables that the page needs to say things ---- */

static void put_class(struct hd_json_writer *w, uint8_t class)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "text", hd_tl_class_text(class));
	hd_json_put_text(w, "colour", hd_tl_class_colour(class));
	hd_json_close(w);
}

static void put_numbered(struct hd_json_writer *w, uint32_t number, const char *text)
{
	hd_json_open_array(w, NULL);
	hd_json_put_i64(w, NULL, number);
	hd_json_put_text(w, NULL, text);
	hd_json_close(w);
}

static void put_tables(struct hd_json_writer *w)
{
	hd_json_open_array(w, "classes");
	for (uint8_t c = 0; c < HD_TL_CLASS_COUNT; c++)
		put_class(w, c);
	hd_json_close(w);
	hd_json_open_array(w, "parts");
	for (int p = 0; p < HD_TL_NPARTS; p++)
		hd_json_put_text(w, NULL, hd_tl_part_text((enum hd_tl_part)p));
	hd_json_close(w);
	hd_json_open_array(w, "kinds");
#define X(id, number, text, ext, about) put_numbered(w, number, text);
	HD_EVENTS(X)
#undef X
	hd_json_close(w);
	hd_json_open_array(w, "flags");
#define X(id, bit, text) put_numbered(w, bit, text);
	HD_EVENT_FLAGS(X)
#undef X
	hd_json_close(w);
	hd_json_open_array(w, "waits");
#define X(id, number, text) put_numbered(w, number, text);
	HD_WAITS(X)
#undef X
	hd_json_close(w);
}

/* ---- one timeline ---- */

static double optional(uint32_t v) { return v == HD_TL_NONE ? -1.0 : (double)v; }

static void put_processes(struct hd_json_writer *w, const struct hd_timeline *t)
{
	hd_json_open_array(w, "processes");
	for (uint32_t i = 0; i < t->nprocesses; i++) {
		const struct hd_tl_process *p = &t->process[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", p->name);
		hd_json_put_text(w, "host", p->host ? p->host : "");
		hd_json_put_f64(w, "worker", optional(p->worker));
		hd_json_put_i64(w, "pid", p->pid);
		hd_json_put_i64(w, "state", p->state);
		hd_json_put_bool(w, "aligned", p->aligned);
		hd_json_put_i64(w, "error_ns", p->error_ns);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_lanes(struct hd_json_writer *w, const struct hd_viewer_part *part)
{
	const struct hd_timeline *t = part->trace->timeline;

	hd_json_open_array(w, "lanes");
	for (uint32_t l = 0; l < t->nlanes; l++) {
		const struct hd_tl_lane *lane = &t->lane[l];
		const uint64_t *at = part->kept.at, *bin = part->bins.at;
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "process", lane->process);
		hd_json_put_i64(w, "kind", lane->kind);
		hd_json_put_text(w, "name", lane->name);
		hd_json_put_i64(w, "begin", (int64_t)at[l]);
		hd_json_put_i64(w, "end", (int64_t)at[l + 1]);
		hd_json_put_i64(w, "t0", at[l] < at[l + 1] ? t->event[part->kept.begin[l]].t0 : 0);
		hd_json_put_i64(w, "bin_begin", bin ? (int64_t)bin[l] : 0);
		hd_json_put_i64(w, "bin_end", bin ? (int64_t)bin[l + 1] : 0);
		hd_json_put_i64(w, "bin_t0", bin && bin[l] < bin[l + 1] ? part->bins.bin[bin[l]].t0 : 0);
		hd_json_put_f64(w, "lost", (double)lane->nlost);
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* Rows [process, number, begin, end, committed]. */
static void put_steps(struct hd_json_writer *w, const struct hd_timeline *t)
{
	hd_json_open_array(w, "steps");
	for (uint32_t i = 0; i < t->nsteps; i++) {
		const struct hd_tl_step *s = &t->step[i];
		hd_json_open_array(w, NULL);
		hd_json_put_i64(w, NULL, s->process);
		hd_json_put_f64(w, NULL, (double)s->number);
		hd_json_put_i64(w, NULL, s->begin);
		hd_json_put_i64(w, NULL, s->end);
		hd_json_put_i64(w, NULL, s->committed);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_columns(struct hd_json_writer *w, const struct hd_viewer_columns *columns)
{
	hd_json_open_array(w, "columns");
	for (uint32_t i = 0; i < columns->n; i++) {
		const struct hd_viewer_column *c = &columns->column[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "of", c->of);
		hd_json_put_text(w, "name", c->name);
		hd_json_put_text(w, "type", c->type);
		hd_json_put_i64(w, "n", (int64_t)c->n);
		hd_json_put_i64(w, "at", (int64_t)c->at);
		hd_json_put_i64(w, "len", (int64_t)c->len);
		hd_json_put_f64(w, "value", c->value);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_timeline(struct hd_json_writer *w, const struct hd_viewer_part *part)
{
	const struct hd_timeline *t = part->trace->timeline;

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "title", part->trace->title);
	hd_json_put_text(w, "job", t->job ? t->job : "");
	hd_json_put_bool(w, "foreign", t->foreign);
	hd_json_put_f64(w, "realtime_ms", (double)t->realtime_ns / 1e6);
	hd_json_put_i64(w, "begin", t->begin);
	hd_json_put_i64(w, "end", t->end);
	hd_json_put_f64(w, "events", (double)t->nevents);
	hd_json_put_f64(w, "lost", (double)t->nlost);
	hd_json_put_f64(w, "unknown", (double)t->nunknown);
	hd_json_put_bool(w, "all", part->kept.all);
	hd_json_put_f64(w, "step_from", (double)part->kept.step_from);
	hd_json_put_f64(w, "step_to", (double)part->kept.step_to);
	hd_json_open_array(w, "names");
	for (uint32_t i = 0; i < t->nnames; i++)
		hd_json_put_text(w, NULL, t->name[i]);
	hd_json_close(w);
	put_processes(w, t);
	put_lanes(w, part);
	put_steps(w, t);
	hd_json_put_i64(w, "path_t0", part->paths.n ? part->paths.segment[0].s.t0 : 0);
	put_columns(w, &part->columns);
	hd_json_close(w);
}

/* ---- the page ---- */

static enum hd_err put_data(const struct hd_viewer_trace *trace, uint64_t budget, uint32_t number,
	struct hd_text *page, struct hd_arena *arena, struct hd_viewer_part *part, struct hd_diag *diag)
{
	*part = (struct hd_viewer_part){ .trace = trace };
	enum hd_err err = hd_viewer_keep(trace, budget, arena, &part->kept, diag);
	if (!err)
		err = hd_viewer_pair(trace->timeline, &part->kept, arena, &part->other, diag);
	if (!err && !part->kept.all)
		err = hd_viewer_bin(trace->timeline, arena, &part->bins, diag);
	if (!err)
		err = hd_viewer_walk(trace->timeline, &part->kept, arena, &part->paths, diag);
	if (err)
		return err;
	hd_text_addf(page, "<script type=\"application/octet-stream\" id=\"data%u\">", number);
	err = hd_viewer_put_columns(part, page, arena, diag);
	hd_text_add(page, "</script>\n");
	return err;
}

static void open_page(struct hd_text *page, const char *title)
{
	hd_text_add(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'sha256-" HD_VIEWER_STYLE_HASH "'; script-src 'sha256-" HD_VIEWER_SCRIPT_HASH
		"'; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
	hd_page_text(page, title);
	hd_text_add(page, "</title>\n<style>");
	hd_text_add(page, hd_viewer_style);
	hd_text_add(page, "</style></head>\n");
	hd_text_add(page, hd_viewer_body);
}

enum hd_err hd_viewer_write(const struct hd_viewer_trace *trace, uint32_t n, const char *title,
	struct hd_text *page, struct hd_diag *diag)
{
	struct hd_viewer_part part[HD_VIEWER_TIMELINES];
	struct hd_arena arena;
	struct hd_json_writer w;
	uint64_t events = 0;
	enum hd_err err = HD_OK;

	assert(n >= 1 && n <= HD_VIEWER_TIMELINES);
	for (uint32_t i = 0; i < n; i++)
		events += trace[i].timeline->nevents;
	hd_arena_init(&arena, 0);
	open_page(page, title);
	for (uint32_t i = 0; i < n && !err; i++)
		err = put_data(&trace[i], events <= HD_VIEWER_EVENTS ? events : HD_VIEWER_EVENTS / n, i, page,
			&arena, &part[i], diag);
	if (!err) {
		hd_text_add(page, "<script type=\"application/json\" id=\"head\">");
		hd_json_writer_init(&w, page);
		hd_json_open_object(&w, NULL);
		hd_json_put_i64(&w, "version", 1);
		hd_json_put_text(&w, "title", title);
		put_tables(&w);
		hd_json_open_array(&w, "timelines");
		for (uint32_t i = 0; i < n; i++)
			put_timeline(&w, &part[i]);
		hd_json_close(&w);
		hd_json_close(&w);
		hd_text_add(page, "</script>\n<script>");
		hd_text_add(page, hd_viewer_script);
		hd_text_add(page, "</script></body></html>\n");
	}
	hd_arena_finish(&arena);
	if (!err && page->full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a page of %llu events",
			(unsigned long long)events);
	return err;
}

enum hd_err hd_tl_write_html(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const char *title = timeline->job && *timeline->job ? timeline->job : "timeline";
	const struct hd_viewer_trace trace = { .timeline = timeline, .title = title, .step_from = 1 };
	struct hd_text page;

	hd_text_init(&page, arena);
	enum hd_err err = hd_viewer_write(&trace, 1, title, &page, diag);
	for (size_t at = 0; at < page.len && !err; at += HD_TL_PIECE)
		err = sink->put(sink->self, page.at + at, page.len - at < HD_TL_PIECE ? page.len - at :
			HD_TL_PIECE, diag);
	return err;
}
