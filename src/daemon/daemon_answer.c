#include <math.h>
#include <string.h>

#include "sys/failpoint.h"
#include "daemon/daemon_int.h"

/* The table of all questions (frontend.h), and what of this thread's time each user may take for them. */

enum hd_err daemon_find_job(struct hd_daemon *d, const struct hd_json *ask, const char *key, uint64_t *id,
	struct hd_diag *diag)
{
	const struct hd_json *job = hd_json_find(ask, key);
	const char *name;

	if (!job)
		return hd_fail(diag, HD_E_INVAL, "\"%s\" says which: its id or its name", key);
	if (hd_json_kind(job) == HD_JSON_TEXT) {
		enum hd_err err = hd_json_as_text(job, &name, diag);
		return err ? err : daemon_find_name(d, name, id, diag);
	}
	enum hd_err err = hd_json_as_u64(job, INT64_MAX, id, diag);
	return err || daemon_may_of_job(d, *id) ? err :
		hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu", (unsigned long long)*id);
}

enum hd_err daemon_read_count(const struct hd_json *ask, const char *key, int64_t least, int64_t most,
	int64_t *value, struct hd_diag *diag)
{
	return hd_json_find(ask, key) ? hd_json_get_i64(ask, key, least, most, value, diag) : HD_OK;
}

int64_t daemon_answer_ns(const struct hd_daemon *d)
{
	return d->by && d->answer_ns < HD_DAEMON_ANSWER_NS ? d->answer_ns : HD_DAEMON_ANSWER_NS;
}

/* costly: it may take long in this thread, since it asks a policy, walks a round again, takes in many jobs or
 * changes all tasks of an array. Cancelling ends, and is not waited for. */
struct daemon_question { const char *what; daemon_shows *answer; bool costly; };

static const struct daemon_question questions[] = {
	{ "submit",    daemon_answer_submit,    true },
	{ "continue",  daemon_answer_continue,  true },
	{ "jobs",      daemon_answer_jobs,      false },
	{ "job",       daemon_answer_job,       false },
	{ "explain",   daemon_answer_explain,   true },
	{ "cancel",    daemon_answer_cancel,    false },
	{ "hold",      daemon_answer_hold,      true },
	{ "release",   daemon_answer_release,   true },
	{ "prio",      daemon_answer_prio,      false },
	{ "status",    daemon_answer_status,    false },
	{ "hosts",     daemon_answer_hosts,     false },
	{ "pools",     daemon_answer_pools,     false },
	{ "policy",    daemon_answer_policy,    false },
	{ "device",    daemon_answer_device,    false },
	{ "backup",    daemon_answer_backup,    false },
	{ "stop",      daemon_answer_stop,      false },
	{ "events",    daemon_answer_events,    false },
	{ "whatif",    daemon_answer_whatif,    true },
	{ "scale",     daemon_answer_scale,     true },
	{ "run",       daemon_show_run,         false },
	{ "metrics",   daemon_show_metrics,     false },
	{ "waiting",   daemon_show_waiting,     true },
	{ "ledger",    daemon_show_ledger,      false },
	{ "sweeps",    daemon_show_sweeps,      false },
	{ "sweep",     daemon_show_sweep,       false },
	{ "history",   daemon_show_history,     false },
	{ "windows",   daemon_show_windows,     false },
	{ "reserve",   daemon_make_window,      false },
	{ "unreserve", daemon_drop_window,      false },
	{ "me",        daemon_show_me,          false },
	{ "tokens",    daemon_show_tokens,      false },
	{ "token",     daemon_make_token,       false },
	{ "revoke",    daemon_revoke_token,     false },
};

/* Users without a number share. An owner has no limit. */
static enum hd_err may_take_time(struct hd_daemon *d, const struct hd_caller *by,
	const struct daemon_question *q, struct hd_diag *diag)
{
	const int64_t now_ns = hd_clock_now_ns(d->clock);

	d->answer_ns = INT64_MAX;
	d->took_in = 0;
	if (!d->users || by->owner || !q->costly)
		return HD_OK;
	d->answer_ns = hd_allowance_left(&d->allowance, by->uid, now_ns);
	return d->answer_ns > 0 ? HD_OK : hd_fail(diag, HD_E_AGAIN,
		"your questions have taken what a user may have of this scheduler's time, %.0f s at once and "
		"then 1 s in %d: ask again in %.0f s, or `heddle sched whatif`, which takes your own",
		1e-9 * HD_ALLOWANCE_MOST_NS, HD_ALLOWANCE_PART,
		ceil(1e-9 * (double)hd_allowance_wait(&d->allowance, by->uid, now_ns)));
}

/* Time of a processor: how busy the machine is with others is not the user's. */
static void charge(struct hd_daemon *d, const struct hd_caller *by, const struct daemon_question *q,
	int64_t began_ns)
{
	if (d->users && !by->owner && q->costly)
		hd_allowance_took(&d->allowance, by->uid, hd_clock_now_ns(d->clock),
			hd_allowance_price(hd_thread_cpu_ns() - began_ns, d->took_in));
}

enum hd_err daemon_answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	struct hd_daemon *d = self;
	const struct daemon_question *q = NULL;

	if (d->broken)
		return hd_fail(diag, d->broken, "%s", d->why.text);
	for (size_t i = 0; i < sizeof questions / sizeof *questions && !q; i++)
		if (!strcmp(questions[i].what, what))
			q = &questions[i];
	if (!q)
		return hd_fail(diag, HD_E_INVAL, "a scheduler does not \"%s\"", what);
	const int64_t began_ns = hd_thread_cpu_ns();
	enum hd_err err = may_take_time(d, by, q, diag);
	if (err)
		return err;
	d->by = by;
	d->what = what;
	err = q->answer(d, ask, w, diag);
	d->by = NULL;
	charge(d, by, q, began_ns);
	(void)HD_FAILPOINT(DAEMON_ANSWER);
	return err == HD_E_INPUT && strcmp(what, "submit") != 0 ? HD_E_INVAL : err;
}
