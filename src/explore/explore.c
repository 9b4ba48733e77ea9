#include "explore/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "explore/explore_int.h"

void explore_say(struct explore *x, uint32_t trial, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	x->said_ns = hd_clock_now_ns(x->spec->clock);
	if (x->spec->say)
		x->spec->say(x->spec->user, trial, text);
}

/* Where its jobs go: an order that is sent again is the same order. */
static void add_where(struct hd_hasher *h, const char *what, const char *name)
{
	if (!name)
		return;
	hd_hasher_add(h, what, strlen(what) + 1);
	hd_hasher_add(h, name, strlen(name) + 1);
}

/* What a sweep is: all that its trials' bits and its decisions depend on, and what else its orders say. */
static struct hd_hash identity(const struct hd_explore_spec *s)
{
	struct hd_hasher h;

	hd_hasher_init(&h);
	hd_hasher_add(&h, s->name, strlen(s->name) + 1);
	hd_hasher_add(&h, s->sweep_text, s->sweep_len);
	hd_hasher_add(&h, "", 1);
	hd_hasher_add(&h, s->job_text, s->job_len);
	hd_hasher_add(&h, "", 1);
	hd_hasher_add(&h, s->folder, strlen(s->folder) + 1);
	for (uint32_t i = 0; i < s->nsets; i++) {
		hd_hasher_add(&h, s->set[i].key, strlen(s->set[i].key) + 1);
		hd_hasher_add(&h, s->set[i].text, strlen(s->set[i].text) + 1);
	}
	add_where(&h, "partition", s->partition);
	add_where(&h, "account", s->account);
	return hd_hasher_end(&h);
}

/* Of the job as it is without a trial's values. */
static enum hd_err find_rungs(struct explore *x, struct hd_diag *diag)
{
	const struct hd_explore_spec *s = x->spec;
	struct hd_text warnings;

	hd_arena_reset(&x->scratch);
	hd_text_init(&warnings, &x->scratch);
	struct hd_job *job = hd_arena_take(&x->scratch, 1, sizeof *job);
	enum hd_err err = job ? hd_job_parse(job, s->job_name, s->job_text, s->job_len, s->set, s->nsets,
		&x->scratch, diag, &warnings) : hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	if (err)
		return err;
	if (job->value[HD_JOB_STEPS].is_none)
		return hd_fail(diag, HD_E_INPUT, "%s: a sweep counts steps, and the job counts epochs: "
			"give it "
			"job.steps", s->job_name);
	if (hd_job_ends_early(job))
		return hd_fail(diag, HD_E_INPUT, "%s: %s ends a trial at any step: leave it out",
			s->job_name, job->value[HD_JOB_TARGET].is_none ? "stop.patience" : "eval.target");
	if (!hd_sweep_is_evaluated(s->sweep->metric) && hd_job_int(job, HD_JOB_METRICS_EVERY) != 1)
		return hd_fail(diag, HD_E_INPUT, "%s: log.metrics_every is not 1, and a sweep reads the "
			"loss of "
			"single steps: leave it out", s->job_name);
	return hd_sweep_rungs(s->sweep, (uint64_t)hd_job_int(job, HD_JOB_STEPS), x->rung, &x->nrungs, diag);
}

static void say_waiting(struct explore *x)
{
	uint32_t queued = 0, going = 0;

	if (hd_clock_now_ns(x->spec->clock) < x->said_ns + HD_EXPLORE_PATIENCE_NS)
		return;
	for (uint32_t i = 0; i < x->trials->ntrials; i++)
		if (x->trials->trial[i].state == HD_TRIAL_RUNNING) {
			queued += !x->of[i].have || !x->of[i].step;
			going += x->of[i].have && x->of[i].step;
		}
	explore_say(x, UINT32_MAX, "waits for %u trials, of which %u have not begun; `heddle jobs --dir "
		"%s` shows "
		"them", queued + going, queued, x->spec->dir);
}

static enum hd_err drive(struct explore *x, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool moved = true;

	while (!err && !hd_trials_is_over(x->trials)) {
		if ((err = x->spec->stop(x->spec->user)))
			break;
		err = explore_turn(x, &moved, diag);
		if (err == HD_E_AGAIN) {
			err = HD_OK;
			moved = false;
		}
		if (!err && moved)
			err = explore_write(x, diag);
		say_waiting(x);
		if (!err && !moved)
			hd_clock_wait_until(x->spec->clock,
				hd_clock_now_ns(x->spec->clock) + HD_EXPLORE_LOOK_NS);
	}
	return err;
}

/* A scheduler that has died since it was met is waited for, as later. */
static enum hd_err count_devices(struct explore *x, uint32_t *devices, struct hd_diag *diag)
{
	enum hd_err err;

	while ((err = explore_devices(x, devices, diag)) == HD_E_AGAIN) {
		if ((err = x->spec->stop(x->spec->user)))
			return err;
		hd_clock_wait_until(x->spec->clock, hd_clock_now_ns(x->spec->clock) + HD_EXPLORE_LOOK_NS);
	}
	return err;
}

static enum hd_err begin(struct explore *x, bool began, struct hd_diag *diag)
{
	uint32_t devices = x->spec->sweep->parallel;
	enum hd_err err = explore_meet(x, diag);

	if (err || began)
		return err;
	if (!devices)
		err = count_devices(x, &devices, diag);
	return err ? err : explore_begin(x, devices > HD_SWEEP_TRIALS ? HD_SWEEP_TRIALS : devices, diag);
}

static enum hd_err run(struct explore *x, struct hd_diag *diag)
{
	bool began = false;
	enum hd_err err = find_rungs(x, diag);

	if (!err)
		err = explore_check(x, diag);
	if (!err)
		err = explore_open(x, &began, diag);
	/* one that is over needs no scheduler */
	if (!err && !(began && hd_trials_is_over(x->trials))) {
		err = begin(x, began, diag);
		if (!err)
			err = drive(x, diag);
		explore_part(x, err != HD_OK);
	}
	if (!err)
		err = explore_write(x, diag);
	return err;
}

enum hd_err hd_explore(const struct hd_explore_spec *spec, struct hd_arena *arena,
	struct hd_sweep_table *table,
	struct hd_diag *diag)
{
	struct explore x = { .spec = spec, .id = identity(spec),
		.said_ns = hd_clock_now_ns(spec->clock) };

	*table = (struct hd_sweep_table){ .name = spec->name, .best = -1 };
	hd_host_real(&x.host);
	hd_arena_init(&x.scratch, 0);
	x.trials = hd_arena_take(arena, 1, sizeof *x.trials);
	x.of = hd_arena_take(arena, spec->sweep->ntrials, sizeof *x.of);
	enum hd_err err = x.trials && x.of ? run(&x, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for a sweep");
	if (x.trials && x.trials->ntrials) {
		enum hd_err made = hd_sweep_table_make(table, spec->name, spec->sweep, x.trials, arena, diag);
		err = err ? err : made;
	}
	explore_close(&x);
	hd_arena_finish(&x.scratch);
	return err;
}
