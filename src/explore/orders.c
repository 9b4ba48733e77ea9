#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/answers.h"
#include "explore/explore_int.h"

/* Trials as jobs: what each is to do, sent; what became of it, taken. */

enum { PAGE = 1000, IDS = 900, SETS = HD_JOB_NKEYS + 64 + HD_SWEEP_AXES };

/* ---- the job of a trial ---- */

static enum hd_err parse_trial(struct explore *x, uint32_t trial, struct hd_job *job, struct hd_diag *diag)
{
	const struct hd_explore_spec *s = x->spec;
	struct hd_job_set set[SETS];
	struct hd_sweep_value room[HD_SWEEP_AXES];
	struct hd_text warnings;
	uint32_t n = 0;

	hd_text_init(&warnings, &x->scratch);
	for (; n < s->nsets && n < SETS - HD_SWEEP_AXES; n++)
		set[n] = s->set[n];
	for (uint32_t a = 0; a < s->sweep->naxes; a++)
		set[n++] = (struct hd_job_set){ s->sweep->axis[a].key,
			hd_sweep_value(s->sweep, trial, a, &room[a]), HD_FROM_SET };
	return hd_job_parse(job, s->job_name, s->job_text, s->job_len, set, n, &x->scratch, diag, &warnings);
}

enum hd_err explore_check(struct explore *x, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < x->spec->sweep->ntrials && !err; i++) {
		struct hd_diag why = { "" };
		hd_arena_reset(&x->scratch);
		struct hd_job *job = hd_arena_take(&x->scratch, 1, sizeof *job);
		err = job ? parse_trial(x, i, job, &why) : hd_fail(diag, HD_E_NOMEM, "no memory for a job");
		if (err)
			(void)hd_fail(diag, err, "trial %u: %.500s", i, why.text);
	}
	return err;
}

/* ---- orders ---- */

static void put_key(const struct explore *x, uint32_t trial, uint32_t rung, struct hd_json_writer *w)
{
	char hex[HD_HASH_HEX], key[64];

	hd_hash_hex(x->id, hex);
	int len = snprintf(key, sizeof key, "sweep-%.24s-%u-%u", hex, trial, rung);
	if (x->of[trial].again)
		snprintf(key + len, sizeof key - (size_t)len, "-%u", x->of[trial].again);
	hd_json_put_text(w, "key", key);
	hd_json_put_i64(w, "until", (int64_t)x->rung[rung]);
}

static void put_sets(const struct explore *x, uint32_t trial, struct hd_json_writer *w,
	struct hd_arena *arena)
{
	const struct hd_explore_spec *s = x->spec;
	struct hd_sweep_value room;

	hd_json_open_array(w, "set");
	for (uint32_t i = 0; i < s->nsets + s->sweep->naxes; i++) {
		const bool given = i < s->nsets;
		const uint32_t a = i - s->nsets;
		struct hd_text one;
		hd_text_init(&one, arena);
		hd_text_addf(&one, "%s=%s", given ? s->set[i].key : s->sweep->axis[a].key,
			given ? s->set[i].text : hd_sweep_value(s->sweep, trial, a, &room));
		hd_json_put_text(w, NULL, one.full ? "" : one.at);
	}
	hd_json_close(w);
}

static void write_order(const struct explore *x, uint32_t trial, uint32_t rung, struct hd_text *body,
	struct hd_arena *arena)
{
	struct hd_json_writer w;
	char name[HD_PATH_CAP];

	hd_text_init(body, arena);
	hd_json_writer_init(&w, body);
	hd_json_open_object(&w, NULL);
	if (!x->of[trial].job) {
		snprintf(name, sizeof name, "%.48s-t%u", x->spec->name, trial);
		hd_json_put_bytes(&w, "job", x->spec->job_text, x->spec->job_len);
		hd_json_put_text(&w, "folder", x->spec->folder);
		hd_json_put_text(&w, "name", name);
		put_sets(x, trial, &w, arena);
		if (x->spec->partition)
			hd_json_put_text(&w, "partition", x->spec->partition);
		if (x->spec->account)
			hd_json_put_text(&w, "account", x->spec->account);
	}
	put_key(x, trial, rung, &w);
	hd_json_close(&w);
}

/* The sweep goes on from what is there: the trial's run is left alone, and another one brings it as far. Its
 * bits are the same. False: that was tried often enough. */
static bool run_again(struct explore *x, uint32_t trial, const char *why)
{
	struct explore_trial *of = &x->of[trial];

	if (of->again == HD_EXPLORE_AGAIN)
		return false;
	*of = (struct explore_trial){ .again = of->again + 1 };
	explore_say(x, trial, "is run again, as another run: %s", why);
	return true;
}

/* The job for the next rung that the trial has none for; of one that is run again, for the one that it is to
 * be at. */
static enum hd_err order(struct explore *x, uint32_t trial, struct hd_diag *diag)
{
	struct explore_trial *of = &x->of[trial];
	const uint32_t rung = of->again && !of->job ? x->trials->trial[trial].target : of->have;
	struct hd_diag why = { "" };
	const struct hd_json *answer;
	char target[64] = "/v1/jobs";
	struct hd_arena arena;
	struct hd_text body;
	int64_t id = 0;

	hd_arena_init(&arena, 0);
	write_order(x, trial, rung, &body, &arena);
	if (of->job)
		snprintf(target, sizeof target, "/v1/jobs/%llu/continue", (unsigned long long)of->job);
	enum hd_err err = body.full ? hd_fail(diag, HD_E_NOMEM, "no memory for an order") :
		explore_ask(x, "POST", target, body.at, &answer, &why);
	if (!err)
		err = hd_json_get_i64(answer, "id", 1, INT64_MAX, &id, &why);
	hd_arena_finish(&arena);
	/* another job went on with its run, or the scheduler knows that one no more */
	if ((err == HD_E_INVAL || err == HD_E_NOTFOUND) && of->job && run_again(x, trial, why.text))
		return HD_OK;
	if (err)
		return hd_fail(diag, err, "%s", why.text);
	of->job = (uint64_t)id;
	of->have = rung + 1;
	of->over = false;
	return HD_OK;
}

/* ---- what became of them ---- */

static enum hd_err take_end(struct explore *x, uint32_t trial, struct hd_diag *diag)
{
	const uint32_t rung = x->of[trial].have - 1;
	struct hd_answer_job_whole whole = { .job.id = 0 };
	const struct hd_json *answer;
	char target[64], run[HD_PATH_CAP], digest[HD_TRIAL_DIGEST];
	double metric = NAN;

	snprintf(target, sizeof target, "/v1/jobs/%llu", (unsigned long long)x->of[trial].job);
	enum hd_err err = explore_ask(x, "GET", target, NULL, &answer, diag);
	if (!err)
		err = hd_fields_read(&hd_answer_job_whole_fields, 0, answer, &whole, diag);
	if (err)
		return err;
	const bool done = !strcmp(whole.job.state, "done");
	struct hd_diag lost = { "" };
	struct hd_trial_event e = { .trial = trial, .rung = rung, .failed = !done,
		.step = (uint64_t)whole.job.step, .exit = (int)whole.job.exit,
		.why = *whole.job.why ? whole.job.why : whole.job.state };
	char beyond[HD_TRIAL_WHY];
	if (done && e.step != x->rung[rung]) {
		/* what does not follow must not get into the record, which would be refused for ever */
		e.failed = true;
		e.exit = hd_err_exit(HD_E_INTEGRITY);
		snprintf(beyond, sizeof beyond,
			"its run is at step %llu, not %llu: another process went on with it",
			(unsigned long long)e.step, (unsigned long long)x->rung[rung]);
		e.why = beyond;
	}
	snprintf(run, sizeof run, "%s", whole.run);
	snprintf(digest, sizeof digest, "%s", whole.digest);
	if (!e.failed)
		err = explore_metric(x, run, e.step, &metric, &lost);
	if (done && e.failed)
		(void)hd_fail(&lost, HD_E_INTEGRITY, "%s", beyond);
	if ((done && e.failed) || err == HD_E_NOTFOUND || err == HD_E_INTEGRITY) {
		if (run_again(x, trial, lost.text))
			return HD_OK;
		e.failed = true;
		e.exit = hd_err_exit(err ? err : HD_E_INTEGRITY);
		snprintf(beyond, sizeof beyond, "%.*s", (int)sizeof beyond - 1, lost.text);
		e.why = beyond;
	} else if (err) {
		return hd_fail(diag, err, "%s", lost.text);
	}
	e.metric = metric;
	e.digest = digest;
	err = explore_take(x, &e, diag);
	if (!err && !e.failed)
		explore_say(x, trial, "%s %.6g at step %llu of %llu",
			hd_sweep_metric_name(x->spec->sweep->metric),
			metric, (unsigned long long)e.step, (unsigned long long)x->rung[x->nrungs - 1]);
	else if (!err)
		explore_say(x, trial, "failed at step %llu: %s", (unsigned long long)e.step, e.why);
	return err;
}

/* A page of states of the jobs of trials that run. */
static enum hd_err look_at(struct explore *x, const char *ids, struct hd_diag *diag)
{
	const struct hd_json *answer, *list = NULL;
	char target[IDS + 80];

	snprintf(target, sizeof target, "/v1/jobs?limit=%d&ids=%s", PAGE, ids);
	enum hd_err err = explore_ask(x, "GET", target, NULL, &answer, diag);
	if (!err)
		err = hd_json_get(answer, "jobs", HD_JSON_ARRAY, &list, diag);
	for (size_t k = 0; !err && k < hd_json_count(list); k++) {
		struct hd_answer_job job = { .id = 0 };
		err = hd_fields_read(&hd_answer_job_fields, 0, hd_json_item(list, k), &job, diag);
		for (uint32_t i = 0; !err && i < x->trials->ntrials; i++)
			if (x->of[i].job == (uint64_t)job.id) {
				x->of[i].over = job.exit >= 0 || !strcmp(job.state, "cancelled");
				x->of[i].step = job.step;
			}
	}
	return err;
}

/* Of its own alone, however many others there are. */
static enum hd_err look(struct explore *x, struct hd_diag *diag)
{
	char ids[IDS];
	uint64_t after = 0;
	enum hd_err err = HD_OK;

	while (!err && explore_ids(x, &after, ids, sizeof ids))
		err = look_at(x, ids, diag);
	return err;
}

enum hd_err explore_turn(struct explore *x, bool *moved, struct hd_diag *diag)
{
	enum hd_err err = look(x, diag);

	*moved = false;
	for (uint32_t i = 0; i < x->trials->ntrials && !err; i++) {
		struct explore_trial *of = &x->of[i];
		const struct hd_trial *trial = &x->trials->trial[i];
		if (trial->state != HD_TRIAL_RUNNING || (of->have && !of->over))
			continue;
		*moved = true;
		err = of->have > trial->target ? take_end(x, i, diag) : order(x, i, diag);
	}
	return err;
}
