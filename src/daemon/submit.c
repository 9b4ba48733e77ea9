#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/names.h"
#include "base/near.h"
#include "job/job.h"
#include "run/rundir.h"
#include "daemon/daemon_int.h"

/* Submission: the job file becomes the folder of a run that has not begun, and a row in the store. */

enum { HD_SUBMIT_SETS = HD_JOB_NKEYS + 64, HD_SUBMIT_BYTES = 8 << 20 };

/* Files that a job names by relative paths begin where the user stood. */
static enum hd_err find_files(struct hd_job *job, const char *folder, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const int files[] = { HD_JOB_MODEL, HD_JOB_WEIGHTS, HD_JOB_DATA_PATH, HD_JOB_BOUNDARIES,
		HD_JOB_TOKENIZER,
		HD_JOB_NET_KEY, HD_JOB_REPLAY };

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct hd_job_value *v = &job->value[files[i]];
		const char *file = v->text;
		struct hd_text at;
		if (v->is_none || !file || !*file)
			continue;
		if (files[i] == HD_JOB_MODEL) {
			if (strncmp(file, "onnx:", 5) != 0 && strncmp(file, "graph:", 6) != 0)
				continue;
			file = strchr(file, ':') + 1;
		}
		if (*file == '/' || strstr(file, "://"))
			continue;
		hd_text_init(&at, arena);
		hd_text_put(&at, v->text, (size_t)(file - v->text));
		hd_text_addf(&at, "%s/%s", folder, file);
		if (at.full)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the paths of a job");
		v->text = at.at;
	}
	return HD_OK;
}

/* Which of the jobs of an order: a task puts its index into -s and names. */
struct task { bool of_array; uint32_t index, before; };        /* before: tasks of the order */

static const char *for_task(const char *text, const struct task *task, struct hd_arena *arena)
{
	struct hd_text to;

	if (!task->of_array)
		return text;
	hd_text_init(&to, arena);
	hd_tasks_put(text, task->index, &to);
	return to.full ? "" : to.at;
}

static enum hd_err read_sets(const struct hd_json *ask, const struct task *task, struct hd_arena *arena,
	struct hd_job_set *set, uint32_t *n, struct hd_diag *diag)
{
	const struct hd_json *sets = hd_json_find(ask, "set");
	enum hd_err err = sets ? hd_json_as(sets, HD_JSON_ARRAY, diag) : HD_OK;

	*n = 0;
	for (size_t i = 0; sets && !err && i < hd_json_count(sets); i++) {
		const char *text = "";
		err = hd_json_as_text(hd_json_item(sets, i), &text, diag);
		text = for_task(text, task, arena);
		const char *equal = err ? NULL : strchr(text, '=');
		if (!err && (!equal || *n == HD_SUBMIT_SETS))
			return hd_fail(diag, HD_E_INVAL,
				"set: \"%.80s\" is no KEY=VALUE, or there are more than %d", text,
				HD_SUBMIT_SETS);
		if (err)
			break;
		const char *key = hd_arena_text(arena, text, (size_t)(equal - text));
		if (!key)
			return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
		set[(*n)++] = (struct hd_job_set){ key, equal + 1, HD_FROM_SET };
	}
	return err;
}

static enum hd_err read_job(const struct hd_json *ask, const struct task *task, const char *folder,
	struct hd_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_set set[HD_SUBMIT_SETS];
	struct hd_text warnings;
	const char *text = "";
	uint32_t n;

	hd_text_init(&warnings, arena);
	enum hd_err err = hd_json_get_text(ask, "job", &text, diag);
	if (!err && strlen(text) > HD_SUBMIT_BYTES)
		err = hd_fail(diag, HD_E_INVAL, "job: a file of %zu bytes", strlen(text));
	if (!err)
		err = read_sets(ask, task, arena, set, &n, diag);
	if (!err)
		err = hd_job_parse(job, "job", text, strlen(text), set, n, arena, diag, &warnings);
	if (!err)
		err = hd_job_trains(job, diag);
	if (!err)
		err = hd_job_spreads(job, diag);
	if (!err && hd_job_has_stages(job))
		err = hd_fail(diag, HD_E_INVAL,
			"the job asks for stages of a pipeline, which needs a number of workers of its own, "
			"and the scheduler gives and takes them: `heddle run JOB --workers N`, or "
			"parallel.mode: data");
	if (!err && !job->value[HD_JOB_NET_LISTEN].is_none)
		err = hd_fail(diag, HD_E_INVAL,
			"net.listen is %s, but the workers of a scheduler's jobs are on its machine: leave "
			"it out",
			hd_job_text(job, HD_JOB_NET_LISTEN));
	return err ? err : find_files(job, folder, arena, diag);
}

/* ---- whether it is the same order ---- */

static struct hd_hash hash_of(const struct hd_json *json);

/* A sum over members, so that their order does not matter. */
static struct hd_hash hash_members(const struct hd_json *object, const char *without)
{
	uint64_t sum[2] = { 0, 0 }, half[2];

	for (size_t i = 0; i < hd_json_count(object); i++) {
		const char *key = hd_json_key(object, i);
		struct hd_hasher h;
		if (without && !strcmp(key, without))
			continue;
		struct hd_hash value = hash_of(hd_json_item(object, i));
		hd_hasher_init(&h);
		hd_hasher_add(&h, value.byte, sizeof value.byte);
		hd_hasher_add(&h, key, strlen(key));
		value = hd_hasher_end(&h);
		memcpy(half, value.byte, sizeof half);
		sum[0] += half[0];
		sum[1] += half[1];
	}
	return hd_hash(sum, sizeof sum);
}

static struct hd_hash hash_of(const struct hd_json *json)
{
	const char *text = "";
	double number = 0;
	bool truth = false;
	struct hd_hasher h;
	int64_t whole = 0;
	uint8_t kind = (uint8_t)hd_json_kind(json);

	if (kind == HD_JSON_OBJECT)
		return hash_members(json, NULL);
	kind = kind == HD_JSON_INT ? HD_JSON_REAL : kind;     /* 2 is 2.0 */
	hd_hasher_init(&h);
	hd_hasher_add(&h, &kind, 1);
	if (kind == HD_JSON_TEXT && !hd_json_as_text(json, &text, NULL))
		hd_hasher_add(&h, text, strlen(text));
	if (kind == HD_JSON_BOOL && !hd_json_as_bool(json, &truth, NULL))
		hd_hasher_add(&h, &truth, 1);
	if (kind == HD_JSON_REAL && !hd_json_as_f64(json, &number, NULL))
		hd_hasher_add(&h, &number, sizeof number);
	if (kind == HD_JSON_REAL && !hd_json_as_i64(json, INT64_MIN, INT64_MAX, &whole, NULL) &&
		(double)whole != number)
		hd_hasher_add(&h, &whole, sizeof whole);
	for (size_t i = 0; kind == HD_JSON_ARRAY && i < hd_json_count(json); i++) {
		struct hd_hash item = hash_of(hd_json_item(json, i));
		hd_hasher_add(&h, item.byte, sizeof item.byte);
	}
	return hd_hasher_end(&h);
}

struct hd_hash daemon_order_hash(const struct hd_json *ask) { return hash_members(ask, "key"); }

/* ---- its row ---- */

static enum hd_err read_number(const struct hd_json *ask, const char *key, double least, double *value,
	struct hd_diag *diag)
{
	if (!hd_json_find(ask, key))
		return HD_OK;
	enum hd_err err = hd_json_get_f64(ask, key, value, diag);
	return err ? err : *value > least && isfinite(*value) ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%s is %g; it is a number above %g", key, *value, least);
}

static enum hd_err read_count(const struct hd_json *ask, const char *key, uint32_t *value,
	struct hd_diag *diag)
{
	int64_t v = *value;
	enum hd_err err = hd_json_find(ask, key) ? hd_json_get_i64(ask, key, 1, HD_DISPATCH_SET, &v, diag) :
		HD_OK;

	*value = (uint32_t)v;
	return err;
}

static enum hd_err no_type(const struct hd_pools *pools, const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (uint32_t t = 0; t < pools->ntypes; t++)
		hd_near_offer(&near, pools->name[t]);
	return hd_fail(diag, HD_E_INVAL, "rates: there is no type of device \"%.60s\"%s%s%s", name,
		near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_rates(const struct hd_pools *pools, const struct hd_json *ask,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	const struct hd_json *rates = hd_json_find(ask, "rates");
	enum hd_err err = rates ? hd_json_as(rates, HD_JSON_OBJECT, diag) : HD_OK;

	for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++)
		row->rate[t] = (struct hd_dispatch_rate){ -1, -1, HD_RATE_GUESSED };
	for (size_t i = 0; rates && !err && i < hd_json_count(rates); i++) {
		uint32_t t = 0;
		while (t < pools->ntypes && strcmp(pools->name[t], hd_json_key(rates, i)) != 0)
			t++;
		if (t == pools->ntypes)
			return no_type(pools, hd_json_key(rates, i), diag);
		err = hd_json_as_f64(hd_json_item(rates, i), &row->rate[t].steps_s, diag);
		if (!err && !(row->rate[t].steps_s >= 0 && isfinite(row->rate[t].steps_s)))
			err = hd_fail(diag, HD_E_INVAL, "rates: %g steps/s on %s; 0 means never there",
				row->rate[t].steps_s, pools->name[t]);
	}
	return err;
}

/* A job that ends before its last step is done there. */
static enum hd_err read_until(const struct hd_json *ask, const struct hd_job *job, uint64_t *steps,
	struct hd_diag *diag)
{
	int64_t until = 0;
	enum hd_err err = hd_json_find(ask, "until") ? hd_json_get_i64(ask, "until", 1, INT64_MAX, &until,
		diag) : HD_OK;

	if (!err && until && (job->value[HD_JOB_STEPS].is_none || (uint64_t)until < *steps))
		*steps = (uint64_t)until;
	return err;
}

/* Steps of a job that counts epochs are known when its data are open: until then a guess, of which only
 * shares depend. */
enum { HD_SUBMIT_EPOCH_STEPS = 1000 };

enum hd_err daemon_read_row(struct hd_daemon *d, const struct hd_json *ask, const struct hd_job *job,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	const struct hd_job_value *max = &job->value[HD_JOB_MAX_WORKERS];
	uint32_t least = (uint32_t)hd_job_int(job, HD_JOB_MIN_WORKERS),
		most = job->nvns < HD_DISPATCH_SET ? job->nvns : HD_DISPATCH_SET;
	double deadline_s = job->value[HD_JOB_DEADLINE].is_none ? INFINITY : 1e-9 * (double)hd_job_int(job,
		HD_JOB_DEADLINE);

	most = !max->is_auto && max->i < most ? (uint32_t)max->i : most;
	*row = (struct hd_dispatch_job){ .scale = least, .min = least, .max = most, .nvns = job->nvns,
		.weight = hd_job_num(job, HD_JOB_PRIORITY),
		.deadline_s = INFINITY,
		.steps = job->value[HD_JOB_STEPS].is_none ?
		(uint64_t)ceil(hd_job_num(job, HD_JOB_EPOCHS) * HD_SUBMIT_EPOCH_STEPS)
			: (uint64_t)hd_job_int(job, HD_JOB_STEPS) };
	enum hd_err err = read_number(ask, "priority", 0, &row->weight, diag);
	if (!err)
		err = read_number(ask, "deadline_s", 0, &deadline_s, diag);
	if (!err)
		err = read_count(ask, "scale", &row->scale, diag);
	if (!err)
		err = read_count(ask, "min", &row->min, diag);
	if (!err)
		err = read_count(ask, "max", &row->max, diag);
	if (!err)
		err = read_until(ask, job, &row->steps, diag);
	if (row->scale < row->min && !hd_json_find(ask, "scale"))
		row->scale = row->min;
	if (!err && (row->min < least || row->max > most || row->scale < row->min || row->scale > row->max))
		err = hd_fail(diag, HD_E_INVAL,
			"scale %u, min %u, max %u: scale is from min to max, and this job takes %u "
			"(workers.min) to %u devices "
			"(workers.max, or one a virtual node)",
			row->scale, row->min, row->max, least, most);
	if (!err && isfinite(deadline_s))
		row->deadline_s = daemon_now_s(d) + deadline_s;
	if (!job->value[HD_JOB_EXPECT].is_none)
		row->terms.expect_s = 1e-9 * (double)hd_job_int(job, HD_JOB_EXPECT);
	if (!err)
		err = daemon_read_terms(d, ask, &row->terms, diag);
	return err ? err : read_rates(d->spec->pools, ask, row, diag);
}

/* ---- its folder ---- */

/* A process ran there: a folder of a submission that died before it was stored has neither a lease nor a
 * checkpoint. */
static bool is_run(struct hd_daemon *d, const char *run)
{
	char path[HD_PATH_CAP], **name;
	struct hd_arena arena;
	struct hd_stat stat;
	size_t n = 0;

	if ((size_t)snprintf(path, sizeof path, "%s/" HD_RUN_LEASE, run) >= sizeof path ||
		hd_fs_stat(d->fs, path, &stat, NULL) != HD_E_NOTFOUND)
		return true;
	snprintf(path, sizeof path, "%s/ckpt", run);
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_fs_list(d->fs, path, &arena, &name, &n, NULL);
	hd_arena_finish(&arena);
	return n || (err && err != HD_E_NOTFOUND);
}

enum hd_err daemon_find_runs(struct hd_daemon *d, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], **name = NULL;
	struct hd_arena arena;
	size_t n = 0;

	hd_arena_init(&arena, 0);
	d->taken = 0;
	snprintf(path, sizeof path, "%s/runs", d->spec->dir);
	enum hd_err err = hd_fs_list(d->fs, path, &arena, &name, &n, diag);
	for (size_t i = 0; i < n && !err; i++) {
		size_t digits = strspn(name[i], "0123456789");
		uint64_t id = digits && digits < 19 && name[i][digits] == '-' ? strtoull(name[i], NULL, 10) :
			0;
		d->taken = id > d->taken ? id : d->taken;
	}
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err try_run(struct hd_daemon *d, const struct hd_job *job, const char *folder,
	const char *text, uint64_t until, struct hd_jobs_card *card, bool *made,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_rundir dir = { 0 };
	struct hd_text resolved;
	struct hd_stat stat;

	if ((size_t)snprintf(card->run, sizeof card->run, "%s/runs/%llu-%s", d->spec->dir,
		(unsigned long long)card->id,
		hd_job_text(job, HD_JOB_NAME)) >= sizeof card->run)
		return hd_fail(diag, HD_E_INVAL, "the path of the run below %s is longer than %zu bytes",
			d->spec->dir, sizeof card->run - 1);
	struct hd_account account;
	const struct hd_account *as = daemon_account(d, card, &account) ? &account : NULL;
	bool there = !hd_fs_stat(d->fs, card->run, &stat, NULL);
	/* with users it may be what another one's submission left: root takes nothing away there */
	if (there && (d->users || is_run(d, card->run)))
		return hd_fail(diag, HD_E_REFUSED,
			"%s is a run that this scheduler does not know: move it away", card->run);
	enum hd_err err = there ? hd_fs_remove_tree(d->fs, card->run, diag) : HD_OK;
	if (!err && as)
		err = hd_fs_mkdir(d->fs, card->run, diag);
	*made = !err && as;
	if (!err && as)
		err = hd_account_give(card->run, as, 0700, diag);
	if (!err)
		err = daemon_lend(d, as, diag);
	if (!err)
		err = hd_rundir_create(&dir, d->fs, d->clock, d->spec->dir, card->run,
			hd_job_text(job, HD_JOB_NAME), text, strlen(text), diag);
	if (err) {
		daemon_unlend(as);
		return err;
	}
	err = until ? hd_run_until_put(d->fs, card->run, until, diag) : HD_OK;
	hd_text_init(&resolved, arena);
	hd_job_json(job, false, &resolved);
	hd_text_add(&resolved, "\n");
	if (!err)
		err = resolved.full ? hd_fail(diag, HD_E_NOMEM, "no memory for a job") : hd_rundir_put(&dir,
			"job.resolved.json", resolved.at, resolved.len, diag);
	if (!err)
		err = hd_rundir_put(&dir, "job.folder", folder, strlen(folder), diag);
	if (err)
		hd_rundir_discard(&dir);
	hd_rundir_close(&dir);
	daemon_unlend(as);
	return err;
}

/* A folder that its user made unusable must not stay under the next number: others would be refused it. */
static enum hd_err make_run(struct hd_daemon *d, const struct hd_job *job, const char *folder,
	const char *text, uint64_t until, struct hd_jobs_card *card, struct hd_arena *arena,
	struct hd_diag *diag)
{
	bool made = false;
	enum hd_err err = try_run(d, job, folder, text, until, card, &made, arena, diag);

	if (err && made && hd_fs_rmdir(d->fs, card->run, NULL))
		d->taken = card->id;
	return err;
}

static enum hd_err read_text(const struct hd_json *ask, const char *key, char *to, size_t cap,
	struct hd_diag *diag)
{
	const char *text = "";

	if (!hd_json_find(ask, key))
		return HD_OK;
	enum hd_err err = hd_json_get_text(ask, key, &text, diag);
	if (!err && strlen(text) >= cap)
		err = hd_fail(diag, HD_E_INVAL, "%s is longer than %zu bytes", key, cap - 1);
	if (!err)
		snprintf(to, cap, "%s", text);
	return err;
}

enum hd_err daemon_fits(struct hd_daemon *d, const struct hd_dispatch_job *row, struct hd_diag *diag)
{
	enum hd_err err = hd_dispatch_fits(d->dispatch, row, daemon_now_s(d),
		hd_renewer_begin(d->renewer, daemon_answer_ns(d)), diag);

	return hd_renewer_end(d->renewer) && !err ? hd_fail(diag, HD_E_AGAIN,
		"policy %.64s has not said within %.2g s whether it takes such a job: try "
		"again, or choose another policy (POST /v1/policy)", d->policy,
		1e-9 * (double)daemon_answer_ns(d)) :
		err;
}

uint64_t daemon_next_id(const struct hd_daemon *d)
{
	uint64_t last = hd_jobs_last(d->jobs);

	return (d->taken > last ? d->taken : last) + 1;
}

static enum hd_err read_name(const struct hd_json *ask, const struct task *task, const char *standard,
	struct hd_jobs_card *card, struct hd_arena *arena, struct hd_diag *diag)
{
	const char *name = standard;
	enum hd_err err = hd_json_find(ask, "name") ? hd_json_get_text(ask, "name", &name, diag) : HD_OK;

	name = err ? "" : for_task(name, task, arena);
	if (!err && !hd_name_valid(name))
		return hd_fail(diag, HD_E_INVAL, "name \"%.64s\": 1 to 64 of A-Z a-z 0-9 . _ -", name);
	if (!err && strspn(name, "0123456789") == strlen(name))
		return hd_fail(diag, HD_E_INVAL,
			"name \"%.64s\" is a number, which says which job by its id: give it a letter", name);
	if (!err)
		snprintf(card->name, sizeof card->name, "%s", name);
	return err;
}

static enum hd_err take_job(struct hd_daemon *d, const struct hd_json *ask, const struct task *task,
	struct hd_jobs_card *card, struct hd_dispatch_job *row, struct hd_diag *diag)
{
	const char *folder = "", *text = "";
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	struct hd_job *job = hd_arena_take(&arena, 1, sizeof *job);
	enum hd_err err = job ? hd_json_get_text(ask, "folder", &folder, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for a job");
	if (!err && (*folder != '/' || strlen(folder) >= HD_PATH_CAP / 2))
		err = hd_fail(diag, HD_E_INVAL, "folder \"%.80s\" is no absolute path", folder);
	if (!err)
		err = read_job(ask, task, folder, job, &arena, diag);
	if (!err)
		err = daemon_read_row(d, ask, job, row, diag);
	if (!err)
		err = daemon_read_account(d, ask, job, card, diag);
	if (!err)
		err = daemon_check_quota(d, card, row, task->before, diag);
	if (!err)
		err = daemon_read_partition(d, ask, card, diag);
	if (!err)
		err = daemon_check_partition(d, card, row, diag);
	if (!err)
		snprintf(row->partition, sizeof row->partition, "%s", card->partition);
	if (!err)
		err = daemon_fits(d, row, diag);
	if (!err)
		err = read_name(ask, task, hd_job_text(job, HD_JOB_NAME), card, &arena, diag);
	/* with users it is the caller */
	if (!err && !d->users)
		err = read_text(ask, "user", card->user, sizeof card->user, diag);
	if (!err)
		err = hd_json_get_text(ask, "job", &text, diag);
	if (!err)
		err = make_run(d, job, folder, text, hd_json_find(ask, "until") ? row->steps : 0, card,
			&arena, diag);
	row->id = card->id;
	daemon_limit_job(d, card, row);
	if (!err)
		err = daemon_put_in_partition(d, card, row, diag);
	hd_arena_finish(&arena);
	return err;
}

/* Nothing of an order that is refused stays. */
static void drop_runs(struct hd_daemon *d, const struct hd_daemon_taken *taken, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct hd_account account;
		const struct hd_account *as = daemon_account(d, &taken->card[i], &account) ? &account : NULL;
		if (!daemon_lend(d, as, NULL))
			(void)!hd_fs_remove_tree(d->fs, taken->card[i].run, NULL);
		daemon_unlend(as);
		/* the folder lies in one of ours */
		if (as && hd_fs_rmdir(d->fs, taken->card[i].run, NULL) && taken->card[i].id > d->taken)
			d->taken = taken->card[i].id;
	}
}

/* One user fills no queue for all. Its quota may be less, and is looked at for each job. */
enum hd_err daemon_check_queued(struct hd_daemon *d, const struct hd_jobs_card *card, uint32_t more,
	struct hd_diag *diag)
{
	const uint64_t all = hd_dispatch_njobs(d->dispatch);
	struct hd_users_limit limit[HD_USERS_LIMITS];
	uint64_t n = 0;
	bool owner;

	if (all + more > HD_DAEMON_QUEUED)
		return hd_fail(diag, HD_E_REFUSED, "there are %llu jobs that are not over, and there may be "
			"%d: no room for %u more", (unsigned long long)all, HD_DAEMON_QUEUED, more);
	(void)daemon_limits_of(d, card, limit, &owner);
	if (owner)
		return HD_OK;
	enum hd_err err = hd_jobs_count_open(d->jobs, card->uid, &n, diag);
	return err || n + more <= HD_DAEMON_QUEUED_OF_USER ? err : hd_fail(diag, HD_E_REFUSED,
		"user %.64s has %llu jobs that are not over, and a user may have %d: no room for %u more; "
		"submit when some have ended, or cancel some", card->user, (unsigned long long)n,
		HD_DAEMON_QUEUED_OF_USER, more);
}

/* A folder for each task, before any of them is stored. */
static enum hd_err take_each(struct hd_daemon *d, const struct hd_json *ask, const struct hd_tasks *tasks,
	struct hd_daemon_taken *taken, struct hd_diag *diag)
{
	uint64_t first = daemon_next_id(d);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < taken->n && !err; i++) {
		const struct task task = { tasks->n > 0, tasks->index[i], i };
		taken->card[i] = (struct hd_jobs_card){ .id = first + i, .uid = HD_NO_UID };
		err = daemon_job_user(d, ask, &taken->card[i], diag);
		if (!err && !i)
			err = daemon_check_queued(d, &taken->card[i], taken->n, diag);
		if (!err)
			err = take_job(d, ask, &task, &taken->card[i], &taken->row[i], diag);
		if (err) {
			drop_runs(d, taken, i);
			return err;
		}
		d->took_in = i + 1;               /* its folder is made, whatever comes of the order */
		if (tasks->n) {
			taken->row[i].terms.array = first;
			taken->row[i].terms.index = tasks->index[i];
			taken->row[i].terms.at_once = tasks->at_once;
		}
	}
	return err;
}

enum hd_err daemon_take_jobs(struct hd_daemon *d, const struct hd_json *ask, struct hd_arena *arena,
	struct hd_daemon_taken *taken, struct hd_diag *diag)
{
	struct hd_tasks *tasks = hd_arena_take(arena, 1, sizeof *tasks);
	const char *array = "";
	enum hd_err err = tasks ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a job");

	if (!err && hd_json_find(ask, "array"))
		err = hd_json_get_text(ask, "array", &array, diag);
	if (!err && *array)
		err = hd_tasks_read(tasks, array, diag);
	if (err)
		return err;
	*taken = (struct hd_daemon_taken){ tasks->n ? tasks->n : 1, tasks->n, NULL, NULL };
	taken->card = hd_arena_take(arena, taken->n, sizeof *taken->card);
	taken->row = hd_arena_take(arena, taken->n, sizeof *taken->row);
	if (!taken->card || !taken->row)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u jobs", taken->n);
	return take_each(d, ask, tasks, taken, diag);
}
