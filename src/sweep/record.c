#include "sweep/record.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"

static void open_line(struct hd_json_writer *w, struct hd_text *line, const char *kind)
{
	hd_json_writer_init(w, line);
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "v", 1);
	hd_json_put_text(w, "kind", kind);
}

static void close_line(struct hd_json_writer *w, struct hd_text *line)
{
	hd_json_close(w);
	hd_text_add(line, "\n");
}

void hd_sweep_record_begin(const struct hd_hash *sweep, uint32_t ntrials, uint32_t parallel,
	struct hd_text *line)
{
	struct hd_json_writer w;
	char hex[HD_HASH_HEX];

	open_line(&w, line, "begin");
	hd_hash_hex(*sweep, hex);
	hd_json_put_text(&w, "sweep", hex);
	hd_json_put_i64(&w, "trials", ntrials);
	hd_json_put_i64(&w, "parallel", parallel);
	close_line(&w, line);
}

void hd_sweep_record_event(const struct hd_trial_event *e, struct hd_text *line)
{
	struct hd_json_writer w;

	open_line(&w, line, e->failed ? "failed" : "report");
	hd_json_put_i64(&w, "trial", e->trial);
	hd_json_put_i64(&w, "rung", e->rung);
	hd_json_put_i64(&w, "step", (int64_t)e->step);
	if (e->failed) {
		hd_json_put_i64(&w, "exit", e->exit);
		hd_json_put_text(&w, "why", e->why ? e->why : "");
	} else {
		hd_json_put_f64(&w, "metric", e->metric);
		hd_json_put_text(&w, "digest", e->digest ? e->digest : "");
	}
	close_line(&w, line);
}

/* ---- again ---- */

static enum hd_err take_begin(const struct hd_json *json, const char *name, const struct hd_hash *sweep,
	const struct hd_sweep *of, int64_t *parallel, struct hd_diag *diag)
{
	const char *was = "";
	char hex[HD_HASH_HEX];
	int64_t trials = 0;
	enum hd_err err = hd_json_get_text(json, "sweep", &was, diag);

	if (!err)
		err = hd_json_get_i64(json, "trials", 1, HD_SWEEP_TRIALS, &trials, diag);
	if (!err)
		err = hd_json_get_i64(json, "parallel", 1, HD_SWEEP_TRIALS, parallel, diag);
	hd_hash_hex(*sweep, hex);
	if (!err && (strcmp(was, hex) != 0 || trials != of->ntrials))
		err = hd_fail(diag, HD_E_EXISTS,
			"%.200s is of another sweep: its file, its job, what sets the job's keys, its "
			"partition or its account was another. "
			"Put them back, or give this sweep another name (--name) or folder", name);
	return err;
}

static enum hd_err take_event(const struct hd_json *json, bool failed, struct hd_trials *t,
	struct hd_diag *diag)
{
	struct hd_trial_event e = { .failed = failed };
	int64_t trial = 0, rung = 0, step = 0, code = 0;
	enum hd_err err = hd_json_get_i64(json, "trial", 0, HD_SWEEP_TRIALS - 1, &trial, diag);

	if (!err)
		err = hd_json_get_i64(json, "rung", 0, HD_SWEEP_RUNGS - 1, &rung, diag);
	if (!err)
		err = hd_json_get_i64(json, "step", 0, INT64_MAX, &step, diag);
	if (!err && failed)
		err = hd_json_get_i64(json, "exit", INT32_MIN, INT32_MAX, &code, diag);
	if (!err && failed)
		err = hd_json_get_text(json, "why", &e.why, diag);
	if (!err && !failed)
		err = hd_json_get_f64(json, "metric", &e.metric, diag);
	if (!err && !failed)
		err = hd_json_get_text(json, "digest", &e.digest, diag);
	if (err)
		return err;
	e.trial = (uint32_t)trial;
	e.rung = (uint32_t)rung;
	e.step = (uint64_t)step;
	e.exit = (int)code;
	return hd_trials_take(t, &e, diag);
}

enum hd_err hd_sweep_replay(const char *name, const char *bytes, size_t len, const struct hd_hash *sweep,
	const struct hd_sweep *of, const uint64_t *rung, uint32_t nrungs, struct hd_trials *t, bool *began,
	struct hd_diag *diag)
{
	struct hd_arena arena;
	enum hd_err err = HD_OK;
	size_t number = 1;

	*began = false;
	hd_arena_init(&arena, 0);
	for (size_t at = 0; at < len && !err; number++) {
		const char *end = memchr(bytes + at, '\n', len - at), *kind = "";
		const struct hd_json *json;
		struct hd_diag why = { "" };
		char where[240];
		int64_t parallel = 0;
		if (!end)
			break;
		size_t n = (size_t)(end - (bytes + at));
		snprintf(where, sizeof where, "%.200s:%zu", name, number);
		hd_arena_reset(&arena);
		err = hd_json_parse(&arena, where, bytes + at, n, &json, &why);
		at += n + 1;
		if (!err)
			err = hd_json_get_text(json, "kind", &kind, &why);
		if (!err && !*began) {
			err = strcmp(kind, "begin") ? hd_fail(&why, HD_E_INPUT,
				"a record begins with \"begin\"") :
				take_begin(json, name, sweep, of, &parallel, &why);
			if (!err)
				hd_trials_begin(t, of, rung, nrungs, (uint32_t)parallel);
			*began = !err;
		} else if (!err) {
			bool failed = !strcmp(kind, "failed");
			err = failed || !strcmp(kind, "report") ? take_event(json, failed, t, &why) :
				hd_fail(&why, HD_E_INPUT, "\"%.40s\" is none of report and failed", kind);
		}
		if (err == HD_E_EXISTS)
			(void)hd_fail(diag, err, "%s", why.text);
		else if (err)
			(void)hd_fail(diag, err, "%s: %.300s", where, why.text);
	}
	hd_arena_finish(&arena);
	return err;
}
