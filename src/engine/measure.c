#include "engine/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/model.h"
#include "engine/task.h"

static bool wants(const struct hd_measuring *of, enum hd_measure m) { return of->wanted >> m & 1; }

/* ---- what a model has ---- */

static enum hd_err check_wanted(const struct hd_measuring *of, struct hd_diag *diag)
{
	static const uint8_t bit[] = { [HD_MEASURED_CLASSES] = HD_OF_CLASSES,
		[HD_MEASURED_LABELS] = HD_OF_LABELS,
		[HD_MEASURED_NUMBERS] = HD_OF_NUMBERS };
	static const char *const says[] = { [HD_MEASURED_CLASSES] = "a class for each row",
		[HD_MEASURED_LABELS] = "several labels of each row", [HD_MEASURED_NUMBERS] = "numbers" };
	const uint32_t binary = 1u << HD_MEASURE_PRECISION_BINARY | 1u << HD_MEASURE_RECALL_BINARY |
		1u << HD_MEASURE_F1_BINARY;

	for (int m = 0; m < HD_NMEASURES; m++) {
		if (!(of->wanted >> m & 1))
			continue;
		if (!(hd_measures[m].of & bit[of->kind]))
			return hd_fail(diag, HD_E_INVAL, "metrics: %s is none of this model, which tells %s",
				hd_measures[m].word, says[of->kind]);
		if (binary >> m & 1 && !of->one && of->cols != 2)
			return hd_fail(diag, HD_E_INVAL,
				"metrics: %s is of two classes, the model tells %llu; "
				"take -macro or -micro", hd_measures[m].word, (unsigned long long)of->cols);
	}
	return HD_OK;
}

static bool keeps_scores(const struct hd_measuring *of)
{
	return of->kind != HD_MEASURED_CLASSES || wants(of, HD_MEASURE_AUROC);
}

/* Scores of two classes are those of class 1. */
static uint64_t score_cols(const struct hd_measuring *of)
{
	return of->kind == HD_MEASURED_CLASSES && of->cols <= 2 ? 1 : of->cols;
}

static uint64_t bytes_of(const struct hd_measuring *of, uint64_t n)
{
	const uint64_t classes = of->kind == HD_MEASURED_CLASSES ? 3 : 0,
		scores = keeps_scores(of) ? score_cols(of) : 0;

	return 4 * n * (classes + scores + (of->kind == HD_MEASURED_CLASSES ? 0 : of->cols));
}

static enum hd_err check_bytes(const struct hd_measuring *of, const struct hd_task *task,
	struct hd_diag *diag)
{
	for (uint32_t s = 0; s < task->data->nsplits; s++) {
		const uint64_t bytes = bytes_of(of, task->data->split[s].count * of->per_row);
		if (bytes > HD_MEASURE_BYTES && strcmp(task->data->split[s].name, "train") != 0)
			return hd_fail(diag, HD_E_INVAL,
				"metrics: they would keep %llu MB of split %s, %d are the "
				"most; leave out auroc, or make the split smaller",
					(unsigned long long)(bytes >> 20),
				task->data->split[s].name, HD_MEASURE_BYTES >> 20);
	}
	return HD_OK;
}

static enum hd_measuring_kind kind_of(const struct hd_task *task, const struct hd_measuring *of)
{
	const char *loss = hd_job_text(task->job, HD_JOB_LOSS);

	if (!of->is_f32 || !strcmp(loss, "soft-cross-entropy") || !strcmp(loss, "kl") || of->one)
		return HD_MEASURED_CLASSES;
	return !strcmp(loss, "bce") ? HD_MEASURED_LABELS : HD_MEASURED_NUMBERS;
}

static uint64_t per_sample(const struct hd_value *v)
{
	uint64_t n = 1;

	for (uint32_t d = 1; d < v->rank; d++)
		n *= (uint64_t)v->dim[d];
	return n;
}

enum hd_err hd_measuring_make(struct hd_measuring *of, const struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_graph *g = &task->infer;
	const uint32_t logits = hd_graph_find_output(g, "logits"), y = hd_graph_find_input(g, "y");
	const bool counts = hd_graph_find_output(g, "correct") != HD_NONE;
	const bool weighs = task->job->value[HD_JOB_CLASS_WEIGHTS].nlist > 0;

	*of = (struct hd_measuring){ .wanted = hd_job_measures(task->job), .field = HD_NONE };
	/* weights of classes count in what the model itself counts; else that is the same */
	if (counts && weighs && y != HD_NONE)
		of->wanted |= 1u << HD_MEASURE_ACCURACY;
	else if (counts)
		of->wanted &= ~(1u << HD_MEASURE_ACCURACY);
	if (!of->wanted)
		return HD_OK;
	for (uint32_t f = 0; f < task->data->nfields; f++)
		of->field = strcmp(task->data->field[f].name, "y") == 0 ? f : of->field;
	if (logits == HD_NONE || y == HD_NONE || of->field == HD_NONE)
		return hd_fail(diag, HD_E_INVAL,
			"metrics: this model has no output \"logits\" or no input \"y\" to "
			"compare it with; leave them out");
	const struct hd_value *out = &g->value[logits], *target = &g->value[g->input[y]];
	of->is_f32 = target->dtype == HD_F32;
	of->cols = (uint64_t)out->dim[out->rank - 1];
	of->one = of->is_f32 && of->cols == 1 && !strcmp(hd_job_text(task->job, HD_JOB_LOSS), "bce");
	of->per_row = per_sample(out) / of->cols;
	of->ignore = (int32_t)hd_job_int(task->job, HD_JOB_IGNORE);
	of->ignores = of->ignore != -1;
	of->kind = kind_of(task, of);
	if (per_sample(target) != (of->is_f32 ? per_sample(out) : of->per_row))
		return hd_fail(diag, HD_E_INVAL,
			"metrics: \"y\" is %s, \"logits\" %s: they are not of the same rows; "
			"leave them out", hd_value_shape(target).at, hd_value_shape(out).at);
	enum hd_err err = check_wanted(of, diag);
	return err ? err : check_bytes(of, task, diag);
}

/* ---- what is kept ---- */

static void *take(struct hd_arena *arena, uint64_t n, bool wanted, bool *full)
{
	void *at = wanted ? hd_arena_take(arena, (size_t)n + 1, 4) : NULL;

	*full |= wanted && !at;
	return at;
}

enum hd_err hd_measures_begin(struct hd_measures *m, const struct hd_measuring *of, uint64_t rows,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const uint64_t n = rows * of->per_row;
	const bool classes = of->kind == HD_MEASURED_CLASSES;
	bool full = false;

	*m = (struct hd_measures){ .of = *of, .n = n };
	if (!of->wanted)
		return HD_OK;
	m->label = take(arena, n, classes, &full);
	m->foreseen = take(arena, n, classes, &full);
	m->above = take(arena, n, classes, &full);
	m->score = take(arena, n * score_cols(of), keeps_scores(of), &full);
	m->target = take(arena, n * of->cols, !classes, &full);
	return full ? hd_fail(diag, HD_E_NOMEM, "no memory for measures of %llu rows",
		(unsigned long long)rows) :
		HD_OK;
}

/* e^x for x <= 0: x = k log 2 + r, a polynomial of r, and the exponent. Within 2^-50. */
static double e_to(double x)
{
	static const double log2_hi = 0x1.62e42fee00000p-1, log2_lo = 0x1.a39ef35793c76p-33;
	double k, r, sum = 1;

	if (!(x > -700))
		return isnan(x) ? x : 0;
	k = floor(x / (log2_hi + log2_lo) + 0.5);
	r = x - k * log2_hi - k * log2_lo;
	for (int i = 13; i >= 1; i--)
		sum = 1 + sum * r / i;
	return ldexp(sum, (int)k);
}

static void probabilities(const float *x, uint64_t n, uint64_t most, float *p)
{
	double sum = 0;

	for (uint64_t c = 0; c < n; c++)
		sum += e_to((double)x[c] - (double)x[most]);
	for (uint64_t c = n == 2 ? 1 : 0; c < n; c++)
		p[n == 2 ? 0 : c] = (float)(e_to((double)x[c] - (double)x[most]) / sum);
}

static uint64_t largest(const float *x, uint64_t n)
{
	uint64_t at = 0;

	for (uint64_t c = 1; c < n; c++)
		at = x[c] > x[at] ? c : at;
	return at;
}

static bool has_nan(const float *x, uint64_t n)
{
	for (uint64_t c = 0; c < n; c++)
		if (isnan(x[c]))
			return true;
	return false;
}

enum { NO_NUMBER = -2 };                  /* foreseen: the logits are none */

static void take_class(struct hd_measures *m, uint64_t at, const float *x, int64_t label)
{
	const uint64_t cols = m->of.cols, most = largest(x, cols);
	uint32_t above = 0;

	if (label < 0 || label >= (int64_t)cols || (m->of.ignores && label == m->of.ignore)) {
		m->label[at] = -1;
		return;
	}
	m->label[at] = (int32_t)label;
	m->foreseen[at] = has_nan(x, cols) ? NO_NUMBER : (int32_t)most;
	for (uint64_t c = 0; c < cols; c++)
		above += x[c] > x[label] || (x[c] == x[label] && (int64_t)c < label);
	m->above[at] = above;
	if (m->score)
		probabilities(x, cols, most, m->score + at * score_cols(&m->of));
}

/* One output, two classes. */
static void take_one(struct hd_measures *m, uint64_t at, float x, float y)
{
	m->label[at] = y > 0.5f;
	m->foreseen[at] = isnan(x) ? NO_NUMBER : x > 0;
	m->above[at] = m->label[at] != m->foreseen[at];
	if (m->score)
		m->score[at] = x;
}

void hd_measures_take(struct hd_measures *m, uint64_t first, uint64_t n, const float *outputs,
	const void *targets)
{
	const uint64_t cols = m->of.cols, from = first * m->of.per_row, count = n * m->of.per_row;

	for (uint64_t i = 0; i < count && m->of.wanted; i++) {
		const float *x = outputs + i * cols, *y = (const float *)targets + i * cols;
		if (m->of.kind != HD_MEASURED_CLASSES) {
			memcpy(m->score + (from + i) * cols, x, cols * sizeof *x);
			memcpy(m->target + (from + i) * cols, y, cols * sizeof *y);
		} else if (m->of.one) {
			take_one(m, from + i, *x, *y);
		} else {
			take_class(m, from + i, x, m->of.is_f32 ? (int64_t)largest(y, cols) :
				((const int32_t *)targets)[i]);
		}
	}
}

/* ---- classes and labels ---- */

struct tally { uint64_t hit, foreseen, there; };       /* of a class: true positives, positives, labels */

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 0; }

/* which: 0 precision, 1 recall, 2 F1 */
static double score_of(const struct tally *t, int which)
{
	if (which == 2)
		return ratio(2 * t->hit, t->foreseen + t->there);
	return ratio(t->hit, which ? t->there : t->foreseen);
}

static void put_scores(const struct tally *t, uint64_t cols, bool absent_count,
	double value[HD_NMEASURES])
{
	static const enum hd_measure macro[] = { HD_MEASURE_PRECISION_MACRO, HD_MEASURE_RECALL_MACRO,
		HD_MEASURE_F1_MACRO };
	struct tally all = { 0 };

	for (uint64_t c = 0; c < cols; c++) {
		all.hit += t[c].hit;
		all.foreseen += t[c].foreseen;
		all.there += t[c].there;
	}
	for (int w = 0; w < 3; w++) {
		uint64_t n = 0;
		double sum = 0;
		for (uint64_t c = 0; c < cols; c++) {
			if (!absent_count && !t[c].foreseen && !t[c].there)
				continue;
			sum += score_of(&t[c], w);
			n++;
		}
		value[macro[w]] = n ? sum / (double)n : NAN;
		value[macro[w] + 1] = score_of(&all, w);
		value[macro[w] + 2] = cols == 2 ? score_of(&t[1], w) : NAN;
	}
}

struct ranked { float score; bool there; };

static int by_score(const void *a, const void *b)
{
	const float x = ((const struct ranked *)a)->score, y = ((const struct ranked *)b)->score;

	return (x > y) - (x < y);
}

/* Twice the pairs in which the row that has it is above the one that has not, ties once, over all pairs. */
static double area(struct ranked *at, uint64_t n)
{
	uint64_t twice = 0, below = 0, there = 0;

	qsort(at, n, sizeof *at, by_score);
	for (uint64_t i = 0, j; i < n; i = j) {
		uint64_t with = 0;
		for (j = i; j < n && at[j].score == at[i].score; j++)
			with += at[j].there;
		twice += with * (2 * below + (j - i - with));
		below += j - i - with;
		there += with;
	}
	return there && below ? (double)twice / (2.0 * (double)there * (double)below) : NAN;
}

/* Column c of the scores against the rows that have it. */
static double area_of(const struct hd_measures *m, uint64_t c, struct ranked *room)
{
	const bool classes = m->of.kind == HD_MEASURED_CLASSES;
	const uint64_t cols = score_cols(&m->of);
	const int64_t class = classes && cols == 1 ? 1 : (int64_t)c;
	uint64_t n = 0;

	for (uint64_t i = 0; i < m->n; i++) {
		if (classes && m->label[i] < 0)
			continue;
		room[n].score = m->score[i * cols + c];
		room[n++].there = classes ? m->label[i] == class : m->target[i * cols + c] > 0.5f;
		if (isnan(room[n - 1].score))
			return NAN;
	}
	return area(room, n);
}

static enum hd_err count_areas(const struct hd_measures *m, double value[HD_NMEASURES],
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct ranked *room = hd_arena_take(arena, (size_t)m->n + 1, sizeof *room);
	uint64_t n = 0;
	double sum = 0;

	if (!room)
		return hd_fail(diag, HD_E_NOMEM, "no memory to sort %llu scores", (unsigned long long)m->n);
	for (uint64_t c = 0; c < score_cols(&m->of); c++) {
		const double one = area_of(m, c, room);
		sum += isnan(one) ? 0 : one;
		n += isnan(one) ? 0 : 1;
	}
	value[HD_MEASURE_AUROC] = n ? sum / (double)n : NAN;
	return HD_OK;
}

static enum hd_err count_classes(const struct hd_measures *m, double value[HD_NMEASURES],
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const uint32_t top[] = { 2, 3, 5, 10 };
	const uint64_t cols = m->of.one ? 2 : m->of.cols;
	struct tally *t = hd_arena_take(arena, (size_t)cols, sizeof *t);
	uint64_t n = 0, right = 0, among[4] = { 0 };
	bool numbers = true;

	if (!t)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu classes", (unsigned long long)cols);
	memset(t, 0, cols * sizeof *t);
	for (uint64_t i = 0; i < m->n; i++) {
		if (m->label[i] < 0)
			continue;
		numbers &= m->foreseen[i] != NO_NUMBER;
		if (!numbers)
			break;
		t[m->label[i]].there++;
		t[m->foreseen[i]].foreseen++;
		t[m->label[i]].hit += m->label[i] == m->foreseen[i];
		right += m->above[i] == 0;
		for (int k = 0; k < 4; k++)
			among[k] += m->above[i] < top[k];
		n++;
	}
	if (!n || !numbers)
		return HD_OK;
	put_scores(t, cols, false, value);
	value[HD_MEASURE_ACCURACY] = ratio(right, n);
	for (int k = 0; k < 4; k++)
		value[HD_MEASURE_TOP2 + k] = ratio(among[k], n);
	return wants(&m->of, HD_MEASURE_AUROC) ? count_areas(m, value, arena, diag) : HD_OK;
}

static enum hd_err count_labels(const struct hd_measures *m, double value[HD_NMEASURES],
	struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint64_t cols = m->of.cols;
	struct tally *t = hd_arena_take(arena, (size_t)cols, sizeof *t);
	uint64_t right = 0;

	if (!t)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu labels", (unsigned long long)cols);
	memset(t, 0, cols * sizeof *t);
	if (!m->n || has_nan(m->score, m->n * cols))
		return HD_OK;
	for (uint64_t i = 0; i < m->n; i++) {
		bool all = true;
		for (uint64_t c = 0; c < cols; c++) {
			const bool there = m->target[i * cols + c] > 0.5f,
				foreseen = m->score[i * cols + c] > 0;
			t[c].there += there;
			t[c].foreseen += foreseen;
			t[c].hit += there && foreseen;
			all &= there == foreseen;
		}
		right += all;
	}
	put_scores(t, cols, true, value);
	value[HD_MEASURE_ACCURACY] = ratio(right, m->n);
	return wants(&m->of, HD_MEASURE_AUROC) ? count_areas(m, value, arena, diag) : HD_OK;
}

/* ---- numbers ---- */

static double r2_of(const struct hd_measures *m, uint64_t c)
{
	const uint64_t cols = m->of.cols;
	double mean = 0, far = 0, missed = 0;

	for (uint64_t i = 0; i < m->n; i++)
		mean += (double)m->target[i * cols + c];
	mean /= (double)m->n;
	for (uint64_t i = 0; i < m->n; i++) {
		const double y = (double)m->target[i * cols + c], gap = y - (double)m->score[i * cols + c];
		far += (y - mean) * (y - mean);
		missed += gap * gap;
	}
	return far > 0 ? 1 - missed / far : missed == 0 ? 1 : isnan(missed) ? NAN : 0;
}

static void count_numbers(const struct hd_measures *m, double value[HD_NMEASURES])
{
	const uint64_t cols = m->of.cols, n = m->n * cols;
	double mae = 0, mse = 0, r2 = 0;

	if (!n)
		return;
	for (uint64_t i = 0; i < n; i++) {
		const double gap = (double)m->score[i] - (double)m->target[i];
		mae += fabs(gap);
		mse += gap * gap;
	}
	for (uint64_t c = 0; c < cols; c++)
		r2 += r2_of(m, c);
	value[HD_MEASURE_MAE] = mae / (double)n;
	value[HD_MEASURE_MSE] = mse / (double)n;
	value[HD_MEASURE_R2] = r2 / (double)cols;
}

enum hd_err hd_measures_count(const struct hd_measures *m, double value[HD_NMEASURES], struct hd_arena *arena,
	struct hd_diag *diag)
{
	for (int i = 0; i < HD_NMEASURES; i++)
		value[i] = NAN;
	if (!m->of.wanted)
		return HD_OK;
	switch (m->of.kind) {
	case HD_MEASURED_CLASSES: return count_classes(m, value, arena, diag);
	case HD_MEASURED_LABELS:  return count_labels(m, value, arena, diag);
	case HD_MEASURED_NUMBERS: break;
	}
	count_numbers(m, value);
	return HD_OK;
}
