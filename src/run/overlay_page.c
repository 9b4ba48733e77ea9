#include <math.h>
#include <string.h>

#include "hd_report_page.h"
#include "base/json_writer.h"
#include "base/page.h"
#include "run/overlay.h"

/* The page is data and a script that draws it: what stands in a run's folder is only ever a text node. */

static const char *state_of(const struct hd_overlay_run *run)
{
	return run->held ? "goes on" : hd_ending_state(&run->ending);
}

static void put_values(struct hd_json_writer *w, const struct hd_overlay *o, const struct hd_overlay_run *run)
{
	hd_json_open_array(w, "values");
	for (uint32_t i = 0; i < run->nseries; i++) {
		const struct hd_overlay_series *s = &run->series[i];
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "series", o->name[s->name]);
		hd_json_put_i64(w, "n", (int64_t)s->n);
		if (s->n) {
			hd_json_put_f64(w, "last", s->last);
			hd_json_put_i64(w, "last_step", (int64_t)s->last_step);
			hd_json_put_f64(w, "least", s->least);
			hd_json_put_i64(w, "least_step", (int64_t)s->least_step);
			hd_json_put_f64(w, "greatest", s->greatest);
			hd_json_put_i64(w, "greatest_step", (int64_t)s->greatest_step);
		}
		hd_json_put_i64(w, "not_finite", (int64_t)s->nonfinite);
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* Of the bins that have a value: member `at` bytes into a bin, or the mean. */
static void put_bins(struct hd_json_writer *w, const char *key, const struct hd_overlay_series *s, size_t at)
{
	hd_json_open_array(w, key);
	for (uint32_t b = 0; b < s->used; b++) {
		double value;
		if (!s->bin[b].n)
			continue;
		memcpy(&value, (const char *)&s->bin[b] + at, sizeof value);
		hd_json_put_f32(w, NULL, (float)(at == offsetof(struct hd_overlay_bin, sum) ?
			value / (double)s->bin[b].n : value));
	}
	hd_json_close(w);
}

static void put_curves(struct hd_json_writer *w, const struct hd_overlay_run *run)
{
	static const struct { const char *key; size_t at; bool wide; } part[] = {
		{ "step", offsetof(struct hd_overlay_bin, step), false },
		{ "samples", offsetof(struct hd_overlay_bin, samples), false },
		{ "t", offsetof(struct hd_overlay_bin, t_s), false },
		{ "mean", offsetof(struct hd_overlay_bin, sum), false },
		{ "low", offsetof(struct hd_overlay_bin, low), true },
		{ "high", offsetof(struct hd_overlay_bin, high), true },
	};

	hd_json_open_array(w, "curves");
	for (uint32_t i = 0; i < run->nseries; i++) {
		const struct hd_overlay_series *s = &run->series[i];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "series", (int64_t)s->name);
		for (size_t k = 0; k < sizeof part / sizeof part[0]; k++)
			if (!part[k].wide || s->width > 1)
				put_bins(w, part[k].key, s, part[k].at);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_run(struct hd_json_writer *w, const struct hd_overlay *o, const struct hd_overlay_run *run,
	bool curves)
{
	const struct hd_divergence *d = &run->from_first;

	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", run->name);
	hd_json_put_text(w, "path", run->path);
	hd_json_put_text(w, "state", state_of(run));
	hd_json_put_text(w, "why", run->held ? "" : run->ending.text);
	hd_json_put_i64(w, "step", (int64_t)run->ending.step);
	hd_json_put_i64(w, "steps", (int64_t)run->ending.steps);
	hd_json_put_i64(w, "samples", (int64_t)run->samples);
	hd_json_put_f64(w, "seconds", run->t_s);
	hd_json_put_i64(w, "unreadable_lines", (int64_t)run->unreadable);
	hd_json_open_object(w, "digests");        /* beside those of the first run */
	hd_json_put_i64(w, "alike", (int64_t)d->compared);
	if (d->compared)
		hd_json_put_i64(w, "alike_until", (int64_t)d->after);
	if (d->known)
		hd_json_put_i64(w, "differ_at", (int64_t)d->step);
	hd_json_close(w);
	put_values(w, o, run);
	if (curves)
		put_curves(w, run);
	hd_json_close(w);
}

static void put_differences(struct hd_json_writer *w, const struct hd_overlay *o,
	const struct hd_overlay_difference *d, size_t n)
{
	hd_json_open_array(w, "differences");
	for (size_t i = 0; i < n; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "key", d[i].key);
		hd_json_open_array(w, "values");
		for (uint32_t r = 0; r < o->nruns; r++)
			if (d[i].value[r])
				hd_json_put_text(w, NULL, d[i].value[r]);
			else
				hd_json_put_null(w, NULL);
		hd_json_close(w);
		hd_json_close(w);
	}
	hd_json_close(w);
}

enum hd_err hd_overlay_json(const struct hd_overlay *o, bool curves, struct hd_text *text,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_overlay_difference *difference;
	struct hd_json_writer w;
	size_t n;

	enum hd_err err = hd_overlay_differences(o, arena, &difference, &n, diag);
	if (err)
		return err;
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "version", 1);
	hd_json_open_array(&w, "series");
	for (uint32_t i = 0; i < o->nnames; i++)
		hd_json_put_text(&w, NULL, o->name[i]);
	hd_json_close(&w);
	hd_json_put_i64(&w, "left_out", (int64_t)o->left_out);
	put_differences(&w, o, difference, n);
	hd_json_open_array(&w, "runs");
	for (uint32_t r = 0; r < o->nruns; r++)
		put_run(&w, o, &o->run[r], curves);
	hd_json_close(&w);
	hd_json_close(&w);
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for the curves of %u runs", o->nruns) :
		HD_OK;
}

static void put_title(const struct hd_overlay *o, struct hd_text *page)
{
	for (uint32_t i = 0; i < o->nruns && i < 3; i++) {
		hd_text_add(page, i ? ", " : "");
		hd_page_text(page, o->run[i].name);
	}
	if (o->nruns > 3)
		hd_text_addf(page, " and %u more", o->nruns - 3);
}

enum hd_err hd_overlay_page(const struct hd_overlay *o, struct hd_text *page, struct hd_arena *arena,
	struct hd_diag *diag)
{
	hd_text_add(page, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'sha256-" HD_REPORT_STYLE_HASH "'; script-src 'sha256-" HD_REPORT_SCRIPT_HASH
		"'; base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>");
	put_title(o, page);
	hd_text_add(page, "</title>\n<style>");
	hd_text_add(page, hd_report_style);
	hd_text_add(page, "</style></head>\n");
	hd_text_add(page, hd_report_body);
	hd_text_add(page, "<script type=\"application/json\" id=\"data\">");
	enum hd_err err = hd_overlay_json(o, true, page, arena, diag);
	hd_text_add(page, "</script>\n<script>");
	hd_text_add(page, hd_report_script);
	hd_text_add(page, "</script></body></html>\n");
	if (!err && page->full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for a page of %u runs", o->nruns);
	return err;
}
