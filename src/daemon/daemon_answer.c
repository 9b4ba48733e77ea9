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

/* Those that may take long in this thread: they ask a policy, walk a round again, take in many jobs, change
 * all tasks of an array. Cancelling ends, and is not waited for. */
static bool is_costly(const char *what)
{
	static const char *const costly[] = { "explain", "waiting", "whatif", "submit", "continue", "scale",
		"hold", "release" };
	bool any = false;

	for (size_t i = 0; i < sizeof costly / sizeof *costly; i++)
		any |= !strcmp(what, costly[i]);
	return any;
}

/* Users without a number share. An owner has no limit. */
static enum hd_err may_take_time(struct hd_daemon *d, const struct hd_caller *by, const char *what,
	struct hd_diag *diag)
{
	const int64_t now_ns = hd_clock_now_ns(d->clock);

	d->answer_ns = INT64_MAX;
	d->took_in = 0;
	if (!d->users || by->owner || !is_costly(what))
		return HD_OK;
	d->answer_ns = hd_allowance_left(&d->allowance, by->uid, now_ns);
	return d->answer_ns > 0 ? HD_OK : hd_fail(diag, HD_E_AGAIN,
		"your questions have taken what a user may have of this scheduler's time, %.0f s at once and "
		"then 1 s in %d: ask again in %.0f s, or `heddle sched whatif`, which takes your own",
		1e-9 * HD_ALLOWANCE_MOST_NS, HD_ALLOWANCE_PART,
		ceil(1e-9 * (double)hd_allowance_wait(&d->allowance, by->uid, now_ns)));
}

/* Time of a processor: how busy the machine is with others is not the user's. */
static void charge(struct hd_daemon *d, const struct hd_caller *by, const char *what, int64_t began_ns)
{
	if (d->users && !by->owner && is_costly(what))
		hd_allowance_took(&d->allowance, by->uid, hd_clock_now_ns(d->clock),
			hd_allowance_price(hd_thread_cpu_ns() - began_ns, d->took_in));
}

enum hd_err daemon_answer(void *self, const struct hd_caller *by, const char *what, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	static const struct {
		const char *what;
		enum hd_err (*answer)(struct hd_daemon *, const struct hd_json *, struct hd_json_writer *,
			struct hd_diag *);
	} row[] = {
		{ "submit", daemon_answer_submit }, { "continue", daemon_answer_continue }, { "jobs", daemon_answer_jobs }, { "job", daemon_answer_job }, { "explain", daemon_answer_explain }, { "cancel", daemon_answer_cancel },
		{ "hold", daemon_answer_hold }, { "release", daemon_answer_release },
		{ "prio", daemon_answer_prio }, { "status", daemon_answer_status }, { "hosts", daemon_answer_hosts }, { "pools", daemon_answer_pools }, { "policy", daemon_answer_policy }, { "device", daemon_answer_device },
		{ "backup", daemon_answer_backup }, { "stop", daemon_answer_stop }, { "events", daemon_answer_events }, { "whatif", daemon_answer_whatif },
		{ "scale", daemon_answer_scale }, { "run", daemon_show_run }, { "metrics", daemon_show_metrics },
		{ "waiting", daemon_show_waiting }, { "ledger", daemon_show_ledger },
		{ "sweeps", daemon_show_sweeps }, { "sweep", daemon_show_sweep },
		{ "history", daemon_show_history }, { "windows", daemon_show_windows },
		{ "reserve", daemon_make_window }, { "unreserve", daemon_drop_window }, { "me", daemon_show_me }, { "tokens", daemon_show_tokens },
		{ "token", daemon_make_token }, { "revoke", daemon_revoke_token },
	};
	struct hd_daemon *d = self;

	if (d->broken)
		return hd_fail(diag, d->broken, "%s", d->why.text);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(row[i].what, what)) {
			const int64_t began_ns = hd_thread_cpu_ns();
			enum hd_err err = may_take_time(d, by, what, diag);
			if (err)
				return err;
			d->by = by;
			d->what = what;
			err = row[i].answer(d, ask, w, diag);
			d->by = NULL;
			charge(d, by, what, began_ns);
			(void)HD_FAILPOINT(DAEMON_ANSWER);
			return err == HD_E_INPUT && strcmp(what, "submit") != 0 ? HD_E_INVAL : err;
		}
	return hd_fail(diag, HD_E_INVAL, "a scheduler does not \"%s\"", what);
}
