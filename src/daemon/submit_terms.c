#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_int.h"

/* On what terms an order wants its job to run (scheduler/terms.h). */

static enum hd_err read_seconds(const struct hd_json *ask, const char *key, double *value,
	struct hd_diag *diag)
{
	if (!hd_json_find(ask, key))
		return HD_OK;
	enum hd_err err = hd_json_get_f64(ask, key, value, diag);
	return err ? err : *value > 0 && isfinite(*value) ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"%s is %g; it is a number of seconds above 0", key, *value);
}

/* ---- after other jobs ---- */

struct others { uint64_t id; bool any_open, any_failed; };

/* Jobs from one on, as long as they are tasks of the array that it begins. */
static enum hd_err look_at(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct hd_diag *diag)
{
	struct others *o = user;

	(void)card;
	(void)lease;
	(void)diag;
	if (row->id != o->id && row->terms.array != o->id)
		return HD_E_NOSPACE;              /* enough */
	o->any_open |= row->state == HD_DISPATCH_OPEN;
	o->any_failed |= row->state != HD_DISPATCH_OPEN && row->state != HD_DISPATCH_DONE;
	return HD_OK;
}

/* What is over already decides now; a job that could never run is refused. */
static enum hd_err judge(struct hd_daemon *d, struct hd_after *after, struct hd_diag *diag)
{
	struct others o = { .id = after->job };
	enum hd_err err = hd_jobs_list(d->jobs, NULL, after->job - 1, UINT32_MAX, look_at, &o, diag);

	if (err && err != HD_E_NOSPACE)
		return err;
	/* one task that failed decides, as the machine would have */
	after->now = o.any_failed ? hd_after_judge(after->kind, false, !o.any_open) :
		o.any_open ? HD_AFTER_WAITS : hd_after_judge(after->kind, true, true);
	return after->now != HD_AFTER_BROKEN ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"after %llu:%s: job %llu ended otherwise, so the new one would never run; leave it out, or "
			"see "
		"`heddle explain %llu`", (unsigned long long)after->job, hd_after_name(after->kind),
		(unsigned long long)after->job, (unsigned long long)after->job);
}

/* "7", "7:any", "name:fail" */
static enum hd_err read_after(struct hd_daemon *d, const char *text, struct hd_after *after,
	struct hd_diag *diag)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	char job[HD_JOBS_NAME + 1];

	*after = (struct hd_after){ 0 };
	if (!len || len >= sizeof job || (colon && !hd_after_kind_of(colon + 1, &after->kind)))
		return hd_fail(diag, HD_E_INVAL, "after \"%.80s\": a job by id or name, then :ok, :any or "
			":fail (:ok "
			"if nothing stands there)", text);
	snprintf(job, sizeof job, "%.*s", (int)len, text);
	enum hd_err err = HD_OK;
	if (strspn(job, "0123456789") == len)
		after->job = strtoull(job, NULL, 10);
	else
		err = daemon_find_name(d, job, &after->job, diag);
	if (!err && !daemon_may_of_job(d, after->job))
		err = hd_fail(diag, HD_E_NOTFOUND, "there is no job %s", job);
	if (!err)
		err = hd_jobs_get(d->jobs, after->job, NULL, NULL, NULL, diag);
	return err ? err : judge(d, after, diag);
}

static enum hd_err read_afters(struct hd_daemon *d, const struct hd_json *list, struct hd_job_terms *terms,
	struct hd_diag *diag)
{
	enum hd_err err = hd_json_as(list, HD_JSON_ARRAY, diag);

	if (!err && hd_json_count(list) > HD_TERMS_AFTER)
		return hd_fail(diag, HD_E_INVAL, "after: %zu jobs, at most %d", hd_json_count(list),
			HD_TERMS_AFTER);
	for (size_t i = 0; !err && i < hd_json_count(list); i++) {
		const char *text = "";
		err = hd_json_as_text(hd_json_item(list, i), &text, diag);
		if (!err)
			err = read_after(d, text, &terms->after[terms->nafter++], diag);
	}
	return err;
}

enum hd_err daemon_read_terms(struct hd_daemon *d, const struct hd_json *ask, struct hd_job_terms *terms,
	struct hd_diag *diag)
{
	enum hd_err err = hd_json_find(ask, "held") ? hd_json_get_bool(ask, "held", &terms->held, diag) :
		HD_OK;

	if (!err)
		err = read_seconds(ask, "limit_s", &terms->limit_s, diag);
	if (!err)
		err = read_seconds(ask, "expect_s", &terms->expect_s, diag);
	if (!err && hd_json_find(ask, "after"))
		err = read_afters(d, hd_json_find(ask, "after"), terms, diag);
	return err;
}
