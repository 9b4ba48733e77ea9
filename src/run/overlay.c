#include "run/overlay_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_lines.h"

enum { JOB_BYTES = 1 << 20, KEY_BYTES = 256, KEYS = 4096 };

/* ---- series ---- */

struct overlay_reading {
	struct hd_overlay *overlay;
	struct hd_overlay_run *run;
	struct hd_arena *arena;
	bool any, full;                   /* a step was read; there is no memory left */
	uint64_t last_step;
	struct hd_overlay_at at;
	double before_s, last_t_s;        /* of processes before; of this one */
};

static bool name_of(struct hd_overlay *o, const char *name, uint32_t *index)
{
	for (*index = 0; *index < o->nnames; (*index)++)
		if (strcmp(o->name[*index], name) == 0)
			return true;
	if (o->nnames == HD_OVERLAY_SERIES) {
		o->left_out++;
		return false;
	}
	snprintf(o->name[o->nnames++], HD_OVERLAY_NAME, "%s", name);
	return true;
}

static struct hd_overlay_series *series_of(struct overlay_reading *r, const char *name)
{
	struct hd_overlay_run *run = r->run;
	uint32_t index;

	if (!name_of(r->overlay, name, &index))
		return NULL;
	for (uint32_t i = 0; i < run->nseries; i++)
		if (run->series[i].name == index)
			return &run->series[i];
	struct hd_overlay_series *s = &run->series[run->nseries];
	*s = (struct hd_overlay_series){ .name = index,
		.bin = hd_arena_take(r->arena, r->overlay->bins, sizeof *s->bin) };
	r->full |= !s->bin;
	if (!s->bin)
		return NULL;
	run->nseries++;
	return s;
}

static void add(struct overlay_reading *r, const char *name, struct hd_overlay_at at,
	const struct hd_json *value)
{
	double number = NAN;

	if (hd_json_kind(value) != HD_JSON_NULL && hd_json_as_f64(value, &number, NULL))
		return;
	struct hd_overlay_series *s = series_of(r, name);
	if (s)
		hd_overlay_add(s, r->overlay->bins, at, number);
}

static bool is_among(const char *const list[], const char *name)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

static void take_step(void *self, const struct hd_json *line)
{
	/* of what a line is, not of how the run fares */
	static const char *const not_series[] = { "v", "step", "t", "samples", "epoch", "membership", "plan",
		"digest", "weight", NULL };
	struct overlay_reading *r = self;
	double t_s = 0;

	if (hd_json_get_u64(line, "step", INT64_MAX, &r->at.step, NULL)) {
		r->run->unreadable++;
		return;
	}
	(void)!hd_json_get_u64(line, "samples", INT64_MAX, &r->at.samples, NULL);
	(void)!hd_json_get_f64(line, "t", &t_s, NULL);
	if (t_s < r->last_t_s)
		r->before_s += r->last_t_s;
	r->last_t_s = t_s;
	r->at.t_s = r->before_s + t_s;
	for (uint32_t i = 0; r->any && r->at.step <= r->last_step && i < r->run->nseries; i++)
		hd_overlay_cut(&r->run->series[i], r->at.step);
	r->any = true;
	r->last_step = r->at.step;
	for (size_t i = 0; i < hd_json_count(line); i++)
		if (!is_among(not_series, hd_json_key(line, i)))
			add(r, hd_json_key(line, i), r->at, hd_json_item(line, i));
	r->run->samples = r->at.samples;
	r->run->t_s = r->at.t_s;
}

/* Samples and time of a step are known by the series of the loss, to a bin's width. */
static struct hd_overlay_at when(const struct hd_overlay_run *run, uint64_t step)
{
	struct hd_overlay_at at = { .step = step };

	for (uint32_t i = 0; i < run->nseries; i++) {
		const struct hd_overlay_series *s = &run->series[i];
		for (uint32_t b = 0; b < s->used; b++) {
			if (!s->bin[b].n)
				continue;
			at.samples = (uint64_t)s->bin[b].samples;
			at.t_s = s->bin[b].t_s;
			if (s->bin[b].step + 1 >= (double)step)
				return at;
		}
		if (s->used)
			return at;
	}
	return at;
}

static void take_event(void *self, const struct hd_json *line)
{
	static const char *const not_series[] = { "v", "t", "kind", "step", "membership", "split", "rows",
		NULL };
	struct overlay_reading *r = self;
	char name[HD_OVERLAY_NAME];
	const char *kind, *split;
	uint64_t step;

	if (hd_json_get_text(line, "kind", &kind, NULL) || strcmp(kind, "eval") != 0 ||
		hd_json_get_u64(line, "step", INT64_MAX, &step, NULL) ||
		hd_json_get_text(line, "split", &split, NULL))
		return;
	const struct hd_overlay_at at = when(r->run, step);
	for (size_t i = 0; i < hd_json_count(line); i++) {
		const char *key = hd_json_key(line, i);
		if (is_among(not_series, key))
			continue;
		snprintf(name, sizeof name, "%.20s %.40s", split, key);
		struct hd_overlay_series *s = series_of(r, name);
		/* what was undone is evaluated once more */
		if (s && s->n && s->last_step >= step)
			hd_overlay_cut(s, step);
		add(r, name, at, hd_json_item(line, i));
	}
}

/* ---- the job ---- */

static const char *value_text(const struct hd_json *json, struct hd_arena *arena)
{
	char text[HD_OVERLAY_VALUE] = "";
	const char *string;
	int64_t integer;
	double number;
	bool truth;

	if (!hd_json_as_text(json, &string, NULL))
		snprintf(text, sizeof text, "%s", string);
	else if (!hd_json_as_i64(json, INT64_MIN, INT64_MAX, &integer, NULL))
		snprintf(text, sizeof text, "%lld", (long long)integer);
	else if (!hd_json_as_f64(json, &number, NULL))
		snprintf(text, sizeof text, "%.9g", number);
	else if (!hd_json_as_bool(json, &truth, NULL))
		snprintf(text, sizeof text, "%s", truth ? "true" : "false");
	else
		snprintf(text, sizeof text, "%s", hd_json_kind(json) == HD_JSON_NULL ? "none" : "(empty)");
	return hd_arena_text(arena, text, strlen(text));
}

/* However deep; the parser bounds the depth. */
static bool flatten(struct hd_overlay_run *run, const struct hd_json *json, const char *prefix,
	struct hd_arena *arena)
{
	bool all = true;

	for (size_t i = 0; i < hd_json_count(json) && all; i++) {
		const struct hd_json *item = hd_json_item(json, i);
		const char *key = hd_json_key(json, i);
		char name[KEY_BYTES], number[24];
		snprintf(number, sizeof number, "%zu", i);
		snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", key ? key : number);
		if (hd_json_count(item)) {
			all = flatten(run, item, name, arena);
			continue;
		}
		if (run->nkeys == KEYS)
			return true;
		struct hd_overlay_key *k = &run->key[run->nkeys++];
		k->key = hd_arena_text(arena, name, strlen(name));
		k->value = value_text(item, arena);
		all = k->key && k->value;
	}
	return all;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct hd_overlay_key *)a)->key, ((const struct hd_overlay_key *)b)->key);
}

static enum hd_err read_job(struct hd_overlay_run *run, const struct hd_rundir *dir, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(dir, HD_RUN_JOB, path, sizeof path);
	run->key = hd_arena_take(arena, KEYS, sizeof *run->key);
	if (!run->key)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the keys of %s", path);
	if (hd_file_read_all(dir->fs, path, arena, JOB_BYTES, &bytes, &len, NULL) ||
		hd_json_parse(arena, path, (const char *)bytes, len, &json, NULL))
		return HD_OK;
	if (!flatten(run, json, "", arena))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the keys of %s", path);
	qsort(run->key, run->nkeys, sizeof *run->key, by_key);
	return HD_OK;
}

/* ---- runs ---- */

static enum hd_err read_run(struct hd_overlay *o, uint32_t i, struct hd_fs *fs, struct hd_clock *clock,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_overlay_run *run = &o->run[i];
	struct overlay_reading r = { .overlay = o, .run = run, .arena = arena };
	struct hd_held held;
	struct hd_rundir dir;
	struct hd_diag why = { "" };

	enum hd_err err = hd_rundir_visit(&dir, fs, clock, run->path, &why);
	if (err)
		return hd_fail(diag, err, "%s: %s", run->path, why.text);
	run->held = !hd_rundir_held(fs, run->path, &held, NULL) && held.hold != HD_HOLD_NONE;
	if (hd_ending_look(fs, run->path, &run->ending, NULL))
		run->ending = (struct hd_ending){ .exit = -1 };
	err = hd_run_lines_read(&dir, "metrics.ndjson", take_step, &r, &run->unreadable, diag);
	if (!err)
		err = hd_run_lines_read(&dir, "events.ndjson", take_event, &r, &run->unreadable, diag);
	if (!err && r.full)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the curves of %s", run->path);
	if (!err)
		err = read_job(run, &dir, arena, diag);
	hd_rundir_close(&dir);
	return err;
}

/* How long the end of a path is that has `n` of its names. */
static const char *end_of(const char *path, uint32_t n)
{
	const char *at = path + strlen(path);

	while (at > path && n) {
		at--;
		n -= at > path && at[-1] == '/';
	}
	return at;
}

static void name_runs(struct hd_overlay *o)
{
	for (uint32_t i = 0; i < o->nruns; i++)
		for (uint32_t n = 1; n < 8; n++) {
			bool alone = true;
			o->run[i].name = end_of(o->run[i].path, n);
			for (uint32_t k = 0; k < o->nruns && alone; k++)
				alone = k == i || strcmp(end_of(o->run[k].path, n), o->run[i].name) != 0;
			if (alone)
				break;
		}
}

static enum hd_err diverge(struct hd_overlay *o, struct hd_fs *fs, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_run_digests first, other;
	enum hd_err err = hd_digests_read(fs, o->run[0].path, arena, &first, diag);

	for (uint32_t i = 1; i < o->nruns && !err; i++) {
		err = hd_digests_read(fs, o->run[i].path, arena, &other, diag);
		if (!err)
			o->run[i].from_first = hd_digests_diverge(&first, &other);
	}
	return err;
}

enum hd_err hd_overlay_read(struct hd_overlay *o, struct hd_fs *fs, struct hd_clock *clock,
	const char *const path[], uint32_t n, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t bins = 12 * HD_OVERLAY_BINS / (n + 1);

	*o = (struct hd_overlay){ .nruns = n, .run = hd_arena_take(arena, (size_t)n + 1, sizeof *o->run) };
	o->bins = bins > HD_OVERLAY_BINS ? HD_OVERLAY_BINS : bins < HD_OVERLAY_LEAST ? HD_OVERLAY_LEAST :
		bins;
	o->bins -= o->bins % 2;           /* neighbours become one in pairs */
	enum hd_err err = o->run ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for %u runs", n);
	for (uint32_t i = 0; i < n && !err; i++) {
		size_t len = strlen(path[i]);
		while (len > 1 && path[i][len - 1] == '/')
			len--;
		o->run[i].path = hd_arena_text(arena, path[i], len);
		err = o->run[i].path ? read_run(o, i, fs, clock, arena, diag) :
			hd_fail(diag, HD_E_NOMEM, "no memory for the name of %s", path[i]);
	}
	if (!err)
		name_runs(o);
	return err ? err : diverge(o, fs, arena, diag);
}

static const char *find_key(const struct hd_overlay_run *run, const char *key)
{
	const struct hd_overlay_key wanted = { key, NULL }, *found = bsearch(&wanted, run->key, run->nkeys,
		sizeof wanted, by_key);

	return found ? found->value : NULL;
}

static bool is_alike(const struct hd_overlay *o, const char *key)
{
	const char *first = find_key(&o->run[0], key);

	for (uint32_t i = 1; i < o->nruns; i++) {
		const char *other = find_key(&o->run[i], key);
		if (!first != !other || (first && strcmp(first, other) != 0))
			return false;
	}
	return true;
}

enum hd_err hd_overlay_differences(const struct hd_overlay *o, struct hd_arena *arena,
	struct hd_overlay_difference **difference, size_t *n, struct hd_diag *diag)
{
	size_t most = 0, all = 0;

	for (uint32_t i = 0; i < o->nruns; i++)
		most += o->run[i].nkeys;
	struct hd_overlay_key *key = hd_arena_take(arena, most + 1, sizeof *key);
	struct hd_overlay_difference *d = hd_arena_take(arena, most + 1, sizeof *d);
	*n = 0;
	*difference = d;
	if (!key || !d)
		return hd_fail(diag, HD_E_NOMEM, "no memory to compare %u jobs", o->nruns);
	for (uint32_t i = 0; i < o->nruns; i++) {
		memcpy(key + all, o->run[i].key, o->run[i].nkeys * sizeof *key);
		all += o->run[i].nkeys;
	}
	qsort(key, all, sizeof *key, by_key);
	for (size_t k = 0; k < all; k++) {
		if ((k && strcmp(key[k - 1].key, key[k].key) == 0) || is_alike(o, key[k].key))
			continue;
		const char **value = hd_arena_take(arena, o->nruns, sizeof *value);
		if (!value)
			return hd_fail(diag, HD_E_NOMEM, "no memory to compare %u jobs", o->nruns);
		for (uint32_t i = 0; i < o->nruns; i++)
			value[i] = find_key(&o->run[i], key[k].key);
		d[(*n)++] = (struct hd_overlay_difference){ key[k].key, value };
	}
	return HD_OK;
}
