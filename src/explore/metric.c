#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/rundir.h"
#include "explore/explore_int.h"

/* What a run says of the state at a rung. */

enum { TAIL_BYTES = 8 << 20, EVAL_BYTES = 64 << 10 };
#define EVAL_NS INT64_C(100000000)

/* The end of a file, from the beginning of a line. */
static enum hd_err read_tail(struct explore *x, const char *path, const char **text, size_t *len,
	struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	struct hd_stat stat;
	size_t got = 0;
	enum hd_err err = hd_fs_stat(x->spec->fs, path, &stat, diag);

	if (!err)
		err = hd_file_open(x->spec->fs, path, HD_OPEN_READ, &file, diag);
	if (err)
		return err;
	const int64_t from = stat.size_bytes > TAIL_BYTES ? stat.size_bytes - TAIL_BYTES : 0;
	const size_t n = (size_t)(stat.size_bytes - from);
	char *at = hd_arena_take(&x->scratch, n + 1, 1);
	err = at ? hd_file_pread(&file, at, n, from, &got, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory to read %s", path);
	(void)!hd_file_close(&file, NULL);
	const char *begin = err || !from ? at : memchr(at, '\n', got);
	*text = begin ? begin : "";
	*len = begin && !err ? got - (size_t)(begin - at) : 0;
	return err;
}

/* The last record of a step counts; steps are numbered from 0. */
static enum hd_err of_training(struct explore *x, const char *run, uint64_t step, double *metric,
	struct hd_diag *diag)
{
	const uint32_t over = x->spec->sweep->over < step ? x->spec->sweep->over : (uint32_t)step;
	double *loss = hd_arena_take(&x->scratch, over, sizeof *loss), sum = 0;
	bool *has = hd_arena_take(&x->scratch, over, sizeof *has);
	char path[HD_PATH_CAP];
	const char *text = "";
	size_t len = 0;

	if ((size_t)snprintf(path, sizeof path, "%s/metrics.ndjson", run) >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path of %.80s is too long", run);
	enum hd_err err = loss && has ? read_tail(x, path, &text, &len, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for %u losses", over);
	while (!err && len) {
		const char *end = memchr(text, '\n', len);
		const size_t n = end ? (size_t)(end - text) : len;
		const struct hd_json *json;
		int64_t at = 0;
		double v = 0;
		if (n && !hd_json_parse(&x->scratch, path, text, n, &json, NULL) &&
			!hd_json_get_i64(json, "step", 0, INT64_MAX, &at, NULL) &&
			!hd_json_get_f64(json, "loss", &v, NULL) && (uint64_t)at < step &&
			(uint64_t)at + over >= step) {
			loss[(uint64_t)at + over - step] = v;
			has[(uint64_t)at + over - step] = true;
		}
		len -= end ? n + 1 : n;
		text += end ? n + 1 : n;
	}
	for (uint32_t i = 0; !err && i < over; i++) {
		if (!has[i])
			return hd_fail(diag, HD_E_NOTFOUND,
				"%s has no loss of step %llu (a disk that was full loses lines)", path,
				(unsigned long long)(step - over + i));
		sum += loss[i];
	}
	*metric = over ? sum / over : NAN;
	return err;
}

static enum hd_err run_eval(struct explore *x, const char *run, const char *to, struct hd_diag *diag)
{
	const char *argv[] = { "/proc/self/exe", "eval", run, "--split", "valid", "--devices", "1",
		"--json", "-q",
		NULL };
	struct hd_file out = { 0 };
	struct hd_proc proc = { 0 };
	int code = 0;
	enum hd_err err = hd_file_open(x->spec->fs, to, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE,
		&out,
		diag);

	if (!err)
		err = hd_proc_spawn(&x->host, &(struct hd_spawn){ .argv = argv, .in = -1, .out = out.id,
			.err = -1 },
			&proc, diag);
	while (!err && hd_proc_wait(&proc, EVAL_NS, &code, NULL) == HD_E_AGAIN)
		err = x->spec->stop(x->spec->user);
	hd_proc_finish(&proc);
	(void)!hd_file_close(&out, NULL);
	if (!err && code)
		err = hd_fail(diag, hd_err_of_exit(code),
			"`heddle eval %s --split valid` ended with exit code %d",
			run, code);
	return err;
}

static enum hd_err of_state(struct explore *x, const char *run, uint64_t step, double *metric,
	struct hd_diag *diag)
{
	const bool accuracy = x->spec->sweep->metric == HD_SWEEP_METRIC_VAL_ACC;
	const struct hd_json *json;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	int64_t at = 0;
	size_t len;

	snprintf(path, sizeof path, "%s/eval.json", x->path);
	enum hd_err err = run_eval(x, run, path, diag);
	if (!err)
		err = hd_file_read_all(x->spec->fs, path, &x->scratch, EVAL_BYTES, &bytes, &len, diag);
	if (!err)
		err = hd_json_parse(&x->scratch, path, (const char *)bytes, len, &json, diag);
	if (!err)
		err = hd_json_get_i64(json, "step", 0, INT64_MAX, &at, diag);
	if (!err && (uint64_t)at != step)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s was evaluated at step %lld, not %llu", run,
			(long long)at,
			(unsigned long long)step);
	return err ? err : hd_json_get_f64(json, accuracy ? "accuracy" : "loss", metric, diag);
}

enum hd_err explore_metric(struct explore *x, const char *run, uint64_t step, double *metric,
	struct hd_diag *diag)
{
	return hd_sweep_is_evaluated(x->spec->sweep->metric) ? of_state(x, run, step, metric, diag) :
		of_training(x, run, step, metric, diag);
}
