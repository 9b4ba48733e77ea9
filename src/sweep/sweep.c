#include "sweep/sweep.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "base/yaml.h"
#include "job/job.h"

struct sweep_reader {
	const char *file;
	struct hd_sweep *sweep;
	const struct hd_yaml_node *trials, *draw, *seed;  /* as they were given, else NULL */
	struct hd_diag *diag;
};

__attribute__((format(printf, 3, 4)))
static enum hd_err refuse(const struct sweep_reader *r, struct hd_yaml_mark at, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(r->diag, HD_E_INPUT, "%.150s:%u:%u: %s", r->file, at.line, at.column, what);
}

static const char *scalar(const struct hd_yaml_node *node)
{
	return node->kind == HD_YAML_SCALAR && node->text_len && strlen(node->text) == node->text_len ?
		node->text : NULL;
}

static enum hd_err read_count(const struct sweep_reader *r, const struct hd_yaml_node *node, uint64_t min,
	uint64_t max, uint64_t *out)
{
	const char *text = scalar(node);
	uint64_t n = 0;

	if (!text || hd_num_u64(text, max, &n, NULL) || n < min)
		return refuse(r, node->at, "%s is a whole number from %llu to %llu%s%.60s", node->key,
			(unsigned long long)min, (unsigned long long)max, text ? ", not " : "",
			text ? text : "");
	*out = n;
	return HD_OK;
}

static enum hd_err read_u32(const struct sweep_reader *r, const struct hd_yaml_node *node, uint32_t min,
	uint32_t max, uint32_t *out)
{
	uint64_t n = 0;
	enum hd_err err = read_count(r, node, min, max, &n);

	if (!err)
		*out = (uint32_t)n;
	return err;
}

/* The place of a word among `n` names; the words that there are, where it is none. */
static enum hd_err read_word(const struct sweep_reader *r, const struct hd_yaml_node *node,
	const char *const *name, uint32_t n, uint32_t *out)
{
	const char *text = scalar(node);
	char words[200] = "";

	for (uint32_t i = 0; i < n; i++) {
		size_t len = strlen(words);
		if (text && !strcmp(text, name[i])) {
			*out = i;
			return HD_OK;
		}
		snprintf(words + len, sizeof words - len, "%s%s", i ? ", " : "", name[i]);
	}
	return refuse(r, node->at, "%s is one of %s%s%.60s", node->key, words, text ? ", not " : "",
		text ? text : "");
}

/* ---- a table: one row for each key ---- */

struct sweep_key {
	const char *name;
	enum hd_err (*read)(struct sweep_reader *r, const struct hd_yaml_node *node);
};

static enum hd_err read_table(struct sweep_reader *r, const struct hd_yaml_node *table, const char *what,
	const struct sweep_key *row, size_t n)
{
	enum hd_err err = HD_OK;

	if (table->kind != HD_YAML_MAP)
		return refuse(r, table->at, "%s is a table, not a %s", what, hd_yaml_kind_name(table->kind));
	for (const struct hd_yaml_node *node = table->first; node && !err; node = node->next) {
		struct hd_near near = hd_near_to(node->key);
		size_t i = 0;
		for (; i < n && strcmp(row[i].name, node->key) != 0; i++)
			hd_near_offer(&near, row[i].name);
		if (i == n)
			return refuse(r, node->key_at, "%s has no %.60s%s%s%s", what, node->key,
				near.best ? "; did you mean " : "", near.best ? near.best : "",
				near.best ? "?" : "");
		err = row[i].read(r, node);
	}
	return err;
}

#define READ(name) static enum hd_err read_##name(struct sweep_reader *r, const struct hd_yaml_node *node)
#define COUNT(array) (sizeof(array) / sizeof *(array))

READ(job)
{
	r->sweep->job = scalar(node);
	return r->sweep->job ? HD_OK : refuse(r, node->at, "job is the path of a job file");
}

static const char *const method_names[] = {
#define X(id, name, draws, halves, about) name,
	HD_SWEEP_METHODS(X)
#undef X
};

READ(method)
{
	uint32_t i = 0;
	enum hd_err err = read_word(r, node, method_names, HD_SWEEP_NMETHODS, &i);

	r->sweep->method = (enum hd_sweep_method)i;
	return err;
}

READ(draw)
{
	uint32_t i = 0;
	enum hd_err err = read_word(r, node, method_names, HD_SWEEP_HALVING, &i);

	r->draw = node;
	r->sweep->draw = (enum hd_sweep_method)i;
	return err;
}

READ(trials)
{
	r->trials = node;
	return read_u32(r, node, 1, HD_SWEEP_TRIALS, &r->sweep->ntrials);
}

READ(seed)
{
	r->seed = node;
	return read_count(r, node, 0, INT64_MAX, &r->sweep->seed);
}

READ(parallel) { return read_u32(r, node, 1, HD_SWEEP_TRIALS, &r->sweep->parallel); }

/* ---- metric, steps ---- */

static const char *const metric_names[] = {
#define X(id, name, max, evaluated, about) name,
	HD_SWEEP_METRICS(X)
#undef X
};
static const bool metric_max[] = {
#define X(id, name, max, evaluated, about) max,
	HD_SWEEP_METRICS(X)
#undef X
}, metric_evaluated[] = {
#define X(id, name, max, evaluated, about) evaluated,
	HD_SWEEP_METRICS(X)
#undef X
}, method_halves[] = {
#define X(id, name, draws, halves, about) halves,
	HD_SWEEP_METHODS(X)
#undef X
}, axis_whole[] = {
#define X(id, word, numbers, whole, about) whole,
	HD_SWEEP_AXIS_KINDS(X)
#undef X
};

READ(metric_name)
{
	uint32_t i = 0;
	enum hd_err err = read_word(r, node, metric_names, HD_SWEEP_NMETRICS, &i);

	r->sweep->metric = (enum hd_sweep_metric)i;
	r->sweep->max = metric_max[i];
	return err;
}

READ(goal)
{
	static const char *const goals[] = { "min", "max" };
	uint32_t i = 0;
	enum hd_err err = read_word(r, node, goals, 2, &i);

	r->sweep->max = i == 1;
	return err;
}

READ(over) { return read_u32(r, node, 1, 1000, &r->sweep->over); }

READ(metric)
{
	static const struct sweep_key row[] = { { "name", read_metric_name }, { "goal", read_goal },
		{ "over", read_over } };
	const struct hd_yaml_node *goal = hd_yaml_find(node, "goal"), *over = hd_yaml_find(node, "over");
	enum hd_err err = read_table(r, node, "metric", row, COUNT(row));

	if (!err && goal)                         /* a name that stands behind it has its own */
		err = read_goal(r, goal);
	if (!err && over && metric_evaluated[r->sweep->metric])
		err = refuse(r, over->at, "over is of the loss of training: %s is of one state",
			metric_names[r->sweep->metric]);
	return err;
}

READ(min_steps) { return read_count(r, node, 1, INT64_MAX / 2, &r->sweep->min_steps); }
READ(max_steps) { return read_count(r, node, 1, INT64_MAX / 2, &r->sweep->max_steps); }
READ(eta) { return read_u32(r, node, 2, 64, &r->sweep->eta); }

READ(steps)
{
	static const struct sweep_key row[] = { { "min", read_min_steps }, { "max", read_max_steps },
		{ "eta", read_eta } };

	return read_table(r, node, "steps", row, COUNT(row));
}

/* ---- the space ---- */

/* Keys that say how long a run is, and not what it does at a step. */
static const char *const lengths[] = { "job.steps", "job.epochs", "eval.target" };

static enum hd_err check_key(const struct sweep_reader *r, const struct hd_yaml_node *node)
{
	struct hd_near near = hd_near_to(node->key);
	char name[HD_JOB_NKEYS][80];      /* what is near is one of them */

	for (size_t i = 0; i < COUNT(lengths); i++)
		if (!strcmp(node->key, lengths[i]))
			return refuse(r, node->key_at,
				"%s says how long a run is, and that is what steps: says",
				node->key);
	if (!strncmp(node->key, "model.args.", 11) || !strncmp(node->key, "graph.", 6))
		return HD_OK;
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		snprintf(name[k], sizeof name[k], "%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
		if (hd_job_keys[k].result)
			hd_near_offer(&near, name[k]);
		if (strcmp(name[k], node->key) != 0)
			continue;
		return hd_job_keys[k].result ? HD_OK : refuse(r, node->key_at,
			"%s does not change what a job computes: all its values have the same result",
			node->key);
	}
	return refuse(r, node->key_at, "a job has no key %.60s%s%s%s", node->key,
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_choices(const struct sweep_reader *r, const struct hd_yaml_node *node,
	struct hd_sweep_axis *axis)
{
	if (node->nchildren < 1 || node->nchildren > HD_SWEEP_CHOICES)
		return refuse(r, node->at, "%s has %u values: from 1 to %d", node->key, node->nchildren,
			HD_SWEEP_CHOICES);
	for (const struct hd_yaml_node *one = node->first; one; one = one->next) {
		const char *text = scalar(one);
		if (!text)
			return refuse(r, one->at, "a value of %s is a number or a text; write a list in "
				"quotes, "
				"as \"[0.9, 0.99]\"", node->key);
		for (uint32_t i = 0; i < axis->n; i++)
			if (!strcmp(axis->choice[i], text))
				return refuse(r, one->at, "%s has the value %.60s twice", node->key, text);
		axis->choice[axis->n++] = text;
	}
	return HD_OK;
}

static const char *const kind_words[] = {
#define X(id, word, numbers, whole, about) word,
	HD_SWEEP_AXIS_KINDS(X)
#undef X
};

static enum hd_err read_bounds(const struct sweep_reader *r, const struct hd_yaml_node *node,
	struct hd_sweep_axis *axis)
{
	const bool log = axis->kind == HD_SWEEP_AXIS_LOG || axis->kind == HD_SWEEP_AXIS_LOGINT;
	double at[2] = { 0, 0 };
	uint32_t n = 0;

	for (const struct hd_yaml_node *one = node->kind == HD_YAML_SEQ ? node->first : NULL; one;
		one = one->next) {
		const char *text = scalar(one);
		if (n == 2 || !text || hd_num_f64(text, -1e15, 1e15, &at[n], NULL))
			return refuse(r, one->at, "%s is two numbers, the less first", node->key);
		n++;
	}
	if (n != 2 || !(at[0] < at[1]))
		return refuse(r, node->at, "%s is two numbers, the less first, as [1e-4, 1e-1]", node->key);
	if (log && !(at[0] > 0))
		return refuse(r, node->at, "%s is of numbers above 0, and %g is not", node->key, at[0]);
	if (axis_whole[axis->kind] && (at[0] != floor(at[0]) || at[1] != floor(at[1])))
		return refuse(r, node->at, "%s is of whole numbers", node->key);
	axis->from = at[0];
	axis->to = at[1];
	return HD_OK;
}

static enum hd_err read_range(const struct sweep_reader *r, const struct hd_yaml_node *node,
	struct hd_sweep_axis *axis)
{
	enum hd_err err = HD_OK;

	for (const struct hd_yaml_node *one = node->first; one && !err; one = one->next) {
		uint32_t kind = 1;
		while (kind < HD_SWEEP_AXIS_NKINDS && strcmp(kind_words[kind], one->key) != 0)
			kind++;
		if (!strcmp(one->key, "n")) {
			err = read_u32(r, one, 1, HD_SWEEP_TRIALS, &axis->n);
		} else if (kind == HD_SWEEP_AXIS_NKINDS || axis->kind != HD_SWEEP_AXIS_CHOICE) {
			return refuse(r, one->key_at,
				"%s is one of linear, log, int, log-int with its two ends, "
				"and n (points of a grid)", node->key);
		} else {
			axis->kind = (enum hd_sweep_axis_kind)kind;
			err = read_bounds(r, one, axis);
		}
	}
	if (!err && axis->kind == HD_SWEEP_AXIS_CHOICE)
		err = refuse(r, node->at, "%s has no ends: linear, log, int or log-int says them", node->key);
	return err;
}

READ(space)
{
	struct hd_sweep *s = r->sweep;
	enum hd_err err = HD_OK;

	if (node->kind != HD_YAML_MAP || !node->nchildren)
		return refuse(r, node->at, "space is a table of job keys and their values");
	for (const struct hd_yaml_node *one = node->first; one && !err; one = one->next) {
		if (s->naxes == HD_SWEEP_AXES)
			return refuse(r, one->key_at, "space has more than %d keys", HD_SWEEP_AXES);
		struct hd_sweep_axis *axis = &s->axis[s->naxes++];
		*axis = (struct hd_sweep_axis){ .key = one->key, .line = one->key_at.line,
			.column = one->key_at.column };
		err = check_key(r, one);
		if (!err && one->kind == HD_YAML_SEQ)
			err = read_choices(r, one, axis);
		else if (!err && one->kind == HD_YAML_MAP)
			err = read_range(r, one, axis);
		else if (!err)
			err = refuse(r, one->at, "%s is a list of values, or a range as {log: [1e-4, 1e-1]}",
				one->key);
	}
	return err;
}

/* ---- what concerns several keys ---- */

/* Each combination once, and each value at least once. */
static enum hd_err count_grid(const struct sweep_reader *r, struct hd_yaml_mark at)
{
	struct hd_sweep *s = r->sweep;
	uint64_t n = 1;

	for (uint32_t a = 0; a < s->naxes; a++) {
		struct hd_sweep_axis *axis = &s->axis[a];
		struct hd_yaml_mark place = { axis->line, axis->column };
		if (!axis->n)
			return refuse(r, place, "%s: a grid needs n, how many points of this range",
				axis->key);
		if (axis_whole[axis->kind] && axis->n - 1.0 > axis->to - axis->from)
			return refuse(r, place, "%s: there are fewer than %u whole numbers from %g to %g",
				axis->key, axis->n, axis->from, axis->to);
		n *= axis->n;
		if (n > HD_SWEEP_TRIALS)
			return refuse(r, at, "the grid has more than %d combinations", HD_SWEEP_TRIALS);
	}
	if (r->trials && s->ntrials != n)
		return refuse(r, r->trials->at, "the grid has %llu combinations, not %u: leave trials out",
			(unsigned long long)n, s->ntrials);
	s->ntrials = (uint32_t)n;
	return HD_OK;
}

static enum hd_err check(const struct sweep_reader *r, const struct hd_yaml_node *root)
{
	struct hd_sweep *s = r->sweep;
	const struct hd_yaml_node *steps = hd_yaml_find(root, "steps"), *min = steps ?
		hd_yaml_find(steps, "min") : NULL, *parallel = hd_yaml_find(root, "parallel");
	const bool halves = method_halves[s->method];

	if (!s->job || !s->naxes)
		return refuse(r, root->at, "%s is missing", s->job ? "space" : "job");
	if (!hd_yaml_find(root, "method"))
		return refuse(r, root->at, "method is missing: grid, random, sobol, halving or asha");
	if (r->draw && !halves && s->draw != s->method)
		return refuse(r, r->draw->at, "method %s draws its own points: leave draw out",
			method_names[s->method]);
	if (!halves)
		s->draw = s->method;
	if (halves && !min)
		return refuse(r, root->at, "method %s needs steps: {min: ...}, the steps of the first rung",
			method_names[s->method]);
	if (!halves && (min || (steps && hd_yaml_find(steps, "eta"))))
		return refuse(r, steps->at, "method %s has one rung: steps.min and steps.eta are of halving "
			"and asha", method_names[s->method]);
	if (parallel && s->method != HD_SWEEP_ASHA)
		return refuse(r, parallel->at, "parallel is of method asha: others hand all trials to the "
			"scheduler");
	if (s->max_steps && s->min_steps > s->max_steps)
		return refuse(r, steps->at, "steps.min %llu is above steps.max %llu",
			(unsigned long long)s->min_steps, (unsigned long long)s->max_steps);
	if (s->draw == HD_SWEEP_GRID)
		return count_grid(r, root->at);
	return r->trials ? HD_OK : refuse(r, root->at, "trials is missing: how many points are drawn");
}

enum hd_err hd_sweep_parse(struct hd_sweep *sweep, const char *file, const char *text, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct sweep_key row[] = { { "job", read_job }, { "method", read_method },
		{ "draw", read_draw }, { "trials", read_trials }, { "seed", read_seed },
		{ "space", read_space }, { "metric", read_metric }, { "steps", read_steps },
		{ "parallel", read_parallel } };
	struct sweep_reader r = { .file = file, .sweep = sweep, .diag = diag };
	const struct hd_yaml_node *root;
	enum hd_err err = hd_yaml_parse(arena, file, text, len, &root, diag);

	if (err)
		return err == HD_E_INVAL ? HD_E_INPUT : err;
	*sweep = (struct hd_sweep){ .file = file, .draw = HD_SWEEP_RANDOM, .over = 1, .eta = 3 };
	err = read_table(&r, root, "a sweep", row, COUNT(row));
	return err ? err : check(&r, root);
}

enum hd_err hd_sweep_rungs(const struct hd_sweep *s, uint64_t steps, uint64_t rung[HD_SWEEP_RUNGS],
	uint32_t *nrungs, struct hd_diag *diag)
{
	const uint64_t last = s->max_steps ? s->max_steps : steps;

	*nrungs = 0;
	if (last > steps)
		return hd_fail(diag, HD_E_INPUT,
			"%.150s: steps.max is %llu, and the job has %llu steps (job.steps): its learning "
			"rate is made for these", s->file, (unsigned long long)last,
			(unsigned long long)steps);
	if (method_halves[s->method] && s->min_steps > last)
		return hd_fail(diag, HD_E_INPUT, "%.150s: steps.min is %llu, and the job has %llu steps",
			s->file,
			(unsigned long long)s->min_steps, (unsigned long long)steps);
	for (uint64_t at = s->min_steps; method_halves[s->method] && at < last; at *= s->eta) {
		if (*nrungs == HD_SWEEP_RUNGS - 1)
			return hd_fail(diag, HD_E_INPUT,
				"%.150s: there are more than %d rungs: begin with more steps, or raise eta",
				s->file, HD_SWEEP_RUNGS);
		rung[(*nrungs)++] = at;
		if (at > last / s->eta)
			break;
	}
	rung[(*nrungs)++] = last;
	return HD_OK;
}

bool hd_sweep_halves(enum hd_sweep_method method) { return method_halves[method]; }
const char *hd_sweep_method_name(enum hd_sweep_method method) { return method_names[method]; }
const char *hd_sweep_metric_name(enum hd_sweep_metric metric) { return metric_names[metric]; }
bool hd_sweep_is_evaluated(enum hd_sweep_metric metric) { return metric_evaluated[metric]; }
bool hd_sweep_axis_is_whole(enum hd_sweep_axis_kind kind) { return axis_whole[kind]; }
