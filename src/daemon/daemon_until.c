#include <stdio.h>
#include <string.h>

#include "run/rundir.h"
#include "daemon/daemon_int.h"

/* Jobs that end before their last step, and others that go on in their runs. */

enum { HD_UNTIL_BYTES = 128, HD_UNTIL_JOB_BYTES = 8 << 20 };

enum hd_err hd_run_until_put(struct hd_fs *fs, const char *run, uint64_t until, struct hd_diag *diag)
{
	char path[HD_PATH_CAP], text[64];

	snprintf(path, sizeof path, "%s/" HD_RUN_UNTIL, run);
	int len = snprintf(text, sizeof text, "{\"until\":%llu}\n", (unsigned long long)until);
	return hd_file_write_atomic(fs, path, text, (size_t)len, diag);
}

enum hd_err hd_run_until_get(struct hd_fs *fs, const char *run, uint64_t *until, struct hd_diag *diag)
{
	const struct hd_json *json;
	struct hd_diag why = { "" };
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	int64_t step = 0;
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/" HD_RUN_UNTIL, run);
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(fs, path, &arena, HD_UNTIL_BYTES, &bytes, &len, &why);
	bool none = err == HD_E_NOTFOUND;
	if (!err)
		err = hd_json_parse(&arena, path, (const char *)bytes, len, &json, &why);
	if (!err)
		err = hd_json_get_i64(json, "until", 1, INT64_MAX, &step, &why);
	hd_arena_finish(&arena);
	if (err && !none)
		return hd_fail(diag, err, "%s", why.text);
	*until = (uint64_t)step;
	return HD_OK;
}

/* The job that had the run last. It is the one that is named, or went on with its run and was ended, as by
 * its user, before it got there: the run stays where that one left it. */
static enum hd_err last_of_run(struct hd_daemon *d, uint64_t named, struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	struct hd_dispatch_lease lease;
	uint64_t last = 0, done = 0;
	enum hd_err err = hd_jobs_get(d->jobs, named, card, NULL, NULL, diag);

	if (!err)
		err = hd_jobs_by_run(d->jobs, card->run, &last, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, last, card, row, &lease, diag);
	if (err)
		return err;
	if (last != named && (row->state == HD_DISPATCH_OPEN || row->state == HD_DISPATCH_DONE))
		return hd_fail(diag, HD_E_INVAL, "job %llu goes on with the run of job %llu: name that one",
			(unsigned long long)last, (unsigned long long)named);
	if (row->state == HD_DISPATCH_OPEN || hd_jobs_done_of_run(d->jobs, card->run, &done, NULL))
		return hd_fail(diag, HD_E_INVAL,
			"job %llu is %s: only a run whose job is done goes on in another",
			(unsigned long long)last, hd_dispatch_state_name(row->state));
	return row->state == HD_DISPATCH_DONE || lease.state == HD_LEASE_RELEASED ? HD_OK :
		hd_fail(diag, HD_E_AGAIN, "job %llu is %s, and leaves its devices: ask again when it has",
			(unsigned long long)last, hd_dispatch_state_name(row->state));
}

static enum hd_err read_job(struct hd_daemon *d, const char *run, struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text warnings;
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/" HD_RUN_JOB, run);
	hd_text_init(&warnings, arena);
	enum hd_err err = hd_file_read_all(d->fs, path, arena, HD_UNTIL_JOB_BYTES, &bytes, &len, diag);
	return err ? err : hd_job_parse(job, path, (const char *)bytes, len, NULL, 0, arena, diag, &warnings);
}

/* On another number of devices in proportion, as of a job that is given another one. */
static void take_rates(struct hd_dispatch_job *row, const struct hd_dispatch_job *before)
{
	for (uint32_t t = 0; t < HD_DISPATCH_TYPES; t++) {
		struct hd_dispatch_rate rate = before->rate[t];
		if (rate.from == HD_RATE_GUESSED)
			continue;
		if (row->scale != before->scale) {
			rate.steps_s *= (double)row->scale / before->scale;
			rate.outlier = -1;
			rate.from = rate.from == HD_RATE_ASKED ? HD_RATE_ASKED : HD_RATE_GUESSED;
		}
		row->rate[t] = rate;
	}
}

/* What the run is, and what was said and measured of it, stays. */
static enum hd_err make_row(struct hd_daemon *d, const struct hd_json *ask, const struct hd_job *job,
	const char *partition, const struct hd_dispatch_job *before, struct hd_dispatch_job *row,
	struct hd_diag *diag)
{
	enum hd_err err = daemon_read_row(d, ask, job, row, diag);

	if (err)
		return err;
	if (row->steps <= before->done)
		return hd_fail(diag, HD_E_INVAL,
			"job %llu is at its last step, %llu: there is nothing to go on to",
			(unsigned long long)before->id, (unsigned long long)before->done);
	row->done = before->done;
	row->leases = before->leases;
	take_rates(row, before);
	snprintf(row->partition, sizeof row->partition, "%s", partition);
	return daemon_fits(d, row, diag);
}

enum hd_err daemon_continue_job(struct hd_daemon *d, const struct hd_json *ask, struct hd_jobs_card *card,
	struct hd_dispatch_job *row, struct hd_diag *diag)
{
	struct hd_dispatch_job before;
	struct hd_jobs_card of;
	struct hd_arena arena;
	uint64_t id = 0;
	int64_t until = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err)
		err = last_of_run(d, id, &of, &before, diag);
	if (!err)
		err = hd_json_get_i64(ask, "until", 1, INT64_MAX, &until, diag);
	if (!err && (uint64_t)until <= before.done)
		err = hd_fail(diag, HD_E_INVAL,
			"job %llu has %llu steps already: until %llu asks for no more",
			(unsigned long long)before.id, (unsigned long long)before.done,
			(unsigned long long)until);
	if (err)
		return err;
	hd_arena_init(&arena, 0);
	struct hd_job *job = hd_arena_take(&arena, 1, sizeof *job);
	struct hd_account account;
	const struct hd_account *as = daemon_account(d, &of, &account) ? &account : NULL;
	err = job ? daemon_lend(d, as, diag) : hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	if (!err)
		err = read_job(d, of.run, job, &arena, diag);
	daemon_unlend(as);
	if (!err)
		err = make_row(d, ask, job, daemon_partition_of(d, &of), &before, row, diag);
	if (!err)
		err = daemon_check_queued(d, &of, 1, diag);
	if (!err)
		err = daemon_check_quota(d, &of, row, 0, diag);
	if (!err)
		err = daemon_check_partition(d, &of, row, diag);
	if (!err)
		err = daemon_lend(d, as, diag);
	if (!err)
		err = hd_run_until_put(d->fs, of.run, row->steps, diag);
	daemon_unlend(as);
	daemon_limit_job(d, &of, row);
	if (!err)
		err = daemon_put_in_partition(d, &of, row, diag);
	hd_arena_finish(&arena);
	*card = of;
	card->id = row->id = daemon_next_id(d);
	card->digest[0] = card->order[0] = '\0';
	card->key[0] = '\0';
	return err;
}
