#include "engine/judge.h"

#include <math.h>

#include "job/lr.h"
#include "engine/forward.h"
#include "engine/worker_int.h"

static const char split[] = "valid";

/* Where the keys of each judge are; a word of `metric` is enum hd_judge_metric. */
static const struct { enum hd_job_key metric, every, patience, threshold; const char *name; } keys[] = {
	[HD_JUDGE_PLATEAU] = { HD_JOB_LR_METRIC, HD_JOB_EVERY, HD_JOB_LR_PATIENCE, HD_JOB_LR_THRESHOLD,
		"optim.schedule.metric" },
	[HD_JUDGE_STOP] = { HD_JOB_STOP_METRIC, HD_JOB_STOP_EVERY, HD_JOB_STOP_PATIENCE, HD_JOB_STOP_DELTA,
		"stop.metric" },
};

static bool is_wanted(const struct hd_job *job, enum hd_judge_kind kind)
{
	return kind == HD_JUDGE_PLATEAU ? hd_job_int(job, HD_JOB_SCHEDULE) == HD_LR_PLATEAU :
		!job->value[HD_JOB_STOP_PATIENCE].is_none;
}

static bool measures(const struct hd_job *job, enum hd_judge_kind kind)
{
	return is_wanted(job, kind) && hd_job_int(job, keys[kind].metric) != HD_JUDGE_LOSS;
}

bool hd_judges_wanted(const struct hd_job *job)
{
	return is_wanted(job, HD_JUDGE_PLATEAU) || is_wanted(job, HD_JUDGE_STOP);
}

bool hd_judges_measure(const struct hd_job *job)
{
	return measures(job, HD_JUDGE_PLATEAU) || measures(job, HD_JUDGE_STOP);
}

enum hd_err hd_judges_allowed(const struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_job *job = task->job;
	const uint32_t s = hd_dataset_split(task->data, split);

	for (int k = 0; k < HD_NJUDGES; k++) {
		if (!measures(job, (enum hd_judge_kind)k))
			continue;
		const char *word = hd_job_text(job, keys[k].metric);
		if (s == HD_NONE || !task->data->split[s].count)
			return hd_fail(diag, HD_E_INVAL, "%s: %s: the data have no samples in a split "
				"\"valid\": "
				"%s; give data.split some, or take loss, which is that of the training",
				keys[k].name, word, task->data->about);
		if (hd_job_int(job, keys[k].metric) == HD_JUDGE_VAL_ACCURACY &&
			!(task->measured.wanted >> HD_MEASURE_ACCURACY & 1) &&
			hd_graph_find_output(&task->infer, "correct") == HD_NONE)
			return hd_fail(diag, HD_E_INVAL, "%s: %s, which this model does not have; take "
				"val_loss",
				keys[k].name, word);
	}
	return HD_OK;
}

enum hd_err hd_judges_take(struct hd_worker *w, struct hd_diag *diag)
{
	const struct hd_job *job = w->task->job;

	if (!hd_judges_wanted(job))
		return HD_OK;
	w->judges = hd_arena_take(&w->arena, 1, sizeof *w->judges);
	if (!w->judges)
		return hd_fail(diag, HD_E_NOMEM, "no memory for early stopping");
	for (int k = 0; k < HD_NJUDGES; k++) {
		struct hd_judge *j = &w->judges->of[k];
		*j = (struct hd_judge){ .wanted = is_wanted(job, (enum hd_judge_kind)k) };
		if (!j->wanted)
			continue;
		j->metric = (uint8_t)hd_job_int(job, keys[k].metric);
		j->larger = k == HD_JUDGE_STOP && hd_job_int(job, HD_JOB_STOP_MODE) != HD_STOP_AUTO ?
			hd_job_int(job, HD_JOB_STOP_MODE) == HD_STOP_MAX :
			hd_measure_more(hd_job_text(job, keys[k].metric));
		j->every = (uint64_t)hd_job_int(job, keys[k].every);
		j->patience = (uint64_t)hd_job_int(job, keys[k].patience);
		j->threshold = hd_job_num(job, keys[k].threshold);
	}
	return HD_OK;
}

static enum hd_err add(struct hd_worker *w, const char *name, uint8_t dtype, void *at, struct hd_diag *diag)
{
	return hd_state_add(&w->state, &(struct hd_state_entry){ .name = name, .dtype = dtype, .rank = 1,
		.dim = { 1 }, .key = HD_KEY_JOB, .merge = HD_MERGE_NONE, .group = HD_STATE_RUN, .at = at,
		.len_bytes = 8 }, diag);
}

/* Only what the judge reads: a stop has no falls, a measure on split valid no sums. */
enum hd_err hd_judges_table(struct hd_worker *w, struct hd_diag *diag)
{
	struct hd_judged *plateau = w->judges ? &w->judges->of[HD_JUDGE_PLATEAU].state : NULL,
		*stop = w->judges ? &w->judges->of[HD_JUDGE_STOP].state : NULL;
	const struct {
		const char *name; uint8_t dtype; void *at; enum hd_judge_kind kind; bool sums; } row[] = {
		{ "run.plateau.best",   HD_F64, plateau ? &plateau->best : NULL,   HD_JUDGE_PLATEAU, false },
		{ "run.plateau.bad",    HD_I64, plateau ? &plateau->bad : NULL,    HD_JUDGE_PLATEAU, false },
		{ "run.plateau.falls",  HD_I64, plateau ? &plateau->falls : NULL,  HD_JUDGE_PLATEAU, false },
		{ "run.plateau.gains",  HD_I64, plateau ? &plateau->gains : NULL,  HD_JUDGE_PLATEAU, false },
		{ "run.plateau.loss",   HD_F64, plateau ? &plateau->loss : NULL,   HD_JUDGE_PLATEAU, true },
		{ "run.plateau.weight", HD_F64, plateau ? &plateau->weight : NULL, HD_JUDGE_PLATEAU, true },
		{ "run.stop.best",      HD_F64, stop ? &stop->best : NULL,         HD_JUDGE_STOP, false },
		{ "run.stop.bad",       HD_I64, stop ? &stop->bad : NULL,          HD_JUDGE_STOP, false },
		{ "run.stop.gains",     HD_I64, stop ? &stop->gains : NULL,        HD_JUDGE_STOP, false },
		{ "run.stop.loss",      HD_F64, stop ? &stop->loss : NULL,         HD_JUDGE_STOP, true },
		{ "run.stop.weight",    HD_F64, stop ? &stop->weight : NULL,       HD_JUDGE_STOP, true },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; w->judges && i < sizeof row / sizeof *row && !err; i++) {
		const struct hd_judge *j = &w->judges->of[row[i].kind];
		if (j->wanted && (!row[i].sums || j->metric == HD_JUDGE_LOSS))
			err = add(w, row[i].name, row[i].dtype, row[i].at, diag);
	}
	return err;
}

static bool is_better(const struct hd_judge *j, enum hd_judge_kind kind, double measure)
{
	const double by = kind == HD_JUDGE_PLATEAU ? j->threshold * j->state.best : j->threshold;

	if (!isfinite(measure))
		return false;
	return !j->state.gains || !isfinite(j->state.best) ? true :
		j->larger ? measure > j->state.best + by : measure < j->state.best - by;
}

void hd_judge_look(struct hd_judge *j, enum hd_judge_kind kind, double measure)
{
	struct hd_judged *n = &j->next;

	*n = j->state;
	n->loss = n->weight = 0;
	j->measure = measure;
	if (is_better(j, kind, measure)) {
		n->best = measure;
		n->bad = 0;
		n->gains++;
	} else {
		n->bad++;
	}
	if (kind == HD_JUDGE_PLATEAU && (uint64_t)n->bad > j->patience) {
		n->falls++;
		n->bad = 0;
	}
}

/* Once for both of them. */
static enum hd_err measure_valid(struct hd_worker *w, struct hd_metrics *m, bool *has, struct hd_diag *diag)
{
	const uint32_t s = hd_dataset_split(w->task->data, split);
	const struct hd_forward_job all = { .split = s, .count = w->task->data->split[s].count };

	if (*has)
		return HD_OK;
	*has = true;
	return hd_worker_forward(w, &all, m, diag);
}

static double measure_of(const struct hd_judge *j, const struct hd_metrics *m)
{
	switch (j->metric) {
	case HD_JUDGE_VAL_LOSS:     return hd_metrics_loss(m);
	case HD_JUDGE_VAL_ACCURACY: return hd_metrics_accuracy(m);
	case HD_JUDGE_LOSS:         return j->state.weight > 0 ? j->state.loss / j->state.weight : NAN;
	default:                    return m->measure[j->metric - HD_JUDGE_LOSS - 1];
	}
}

static bool is_due(const struct hd_judge *j, uint64_t step)
{
	return j->wanted && step && step % j->every == 0 && j->looked != step + 1;
}

enum hd_err hd_judges_look(struct hd_worker *w, struct hd_diag *diag)
{
	const uint64_t step = (uint64_t)w->count.step;
	struct hd_metrics m = { 0 };
	bool has = false;

	for (int k = 0; w->judges && k < HD_NJUDGES && step < w->task->nsteps; k++) {
		struct hd_judge *j = &w->judges->of[k];
		if (!is_due(j, step))
			continue;
		enum hd_err err = j->metric == HD_JUDGE_LOSS ? HD_OK : measure_valid(w, &m, &has, diag);
		if (err)
			return err;
		hd_judge_look(j, (enum hd_judge_kind)k, measure_of(j, &m));
		j->looked = step + 1;
	}
	return HD_OK;
}

void hd_judges_forget(struct hd_worker *w)
{
	for (int k = 0; w->judges && k < HD_NJUDGES; k++)
		w->judges->of[k].looked = 0;
}

static bool has_looked(const struct hd_worker *w, const struct hd_judge *j)
{
	return j->wanted && j->looked == (uint64_t)w->count.step + 1;
}

void hd_judges_commit(struct hd_worker *w, const struct hd_step_record *r)
{
	for (int k = 0; w->judges && k < HD_NJUDGES; k++) {
		struct hd_judge *j = &w->judges->of[k];
		if (has_looked(w, j))
			j->state = j->next;
		if (j->wanted && j->metric == HD_JUDGE_LOSS && !r->skipped && !r->empty) {
			j->state.loss += r->loss_sum;
			j->state.weight += r->weight;
		}
	}
	hd_judges_forget(w);
}

static const struct hd_judged *now(const struct hd_worker *w, enum hd_judge_kind kind)
{
	const struct hd_judge *j = &w->judges->of[kind];

	return has_looked(w, j) ? &j->next : &j->state;
}

uint64_t hd_judges_falls(const struct hd_worker *w)
{
	return w->judges ? (uint64_t)now(w, HD_JUDGE_PLATEAU)->falls : 0;
}

bool hd_judges_stop(const struct hd_worker *w)
{
	const struct hd_judge *j = w->judges ? &w->judges->of[HD_JUDGE_STOP] : NULL;

	return j && j->wanted && (uint64_t)now(w, HD_JUDGE_STOP)->bad >= j->patience;
}

/* One that stands at its floor falls no more. */
static double rate_of(const struct hd_worker *w, int64_t falls)
{
	return (double)hd_lr_at(w->task->job, (uint64_t)w->count.step, w->task->nsteps, (uint64_t)falls);
}

bool hd_judges_say(const struct hd_worker *w, enum hd_judge_kind kind, struct hd_text *text)
{
	const struct hd_judge *j = w->judges ? &w->judges->of[kind] : NULL;
	const bool says = j && has_looked(w, j) && (kind == HD_JUDGE_STOP ? hd_judges_stop(w) :
		rate_of(w, j->next.falls) != rate_of(w, j->state.falls));

	if (!says)
		return false;
	const uint64_t n = kind == HD_JUDGE_STOP ? j->patience : j->patience + 1;
	hd_text_addf(text, "step %lld: %s %.6g, ", (long long)w->count.step,
		hd_job_text(w->task->job, keys[kind].metric), j->measure);
	if (j->state.gains)
		hd_text_addf(text, "the best was %.6g", j->state.best);
	else
		hd_text_addf(text, "none was finite");
	hd_text_addf(text, "; %llu look%s in a row no better", (unsigned long long)n, n == 1 ? "" : "s");
	return true;
}
