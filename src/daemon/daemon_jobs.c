#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sys/failpoint.h"
#include "daemon/answers.h"
#include "daemon/daemon_int.h"

/* The questions on jobs (frontend.h): what they are, why they wait, and what changes them. */

/* What a user calls the state of a job. */
static const char *state_of(const struct hd_dispatch_job *row, const struct hd_dispatch_lease *lease)
{
	static const char *const open[HD_LEASE_NSTATES] = { [HD_LEASE_OFFERED] = "starting",
		[HD_LEASE_HELD] = "running", [HD_LEASE_RESIZE] = "running",
		[HD_LEASE_DRAIN] = "draining", [HD_LEASE_EXPIRED] = "draining",
		[HD_LEASE_KILLED] = "draining", [HD_LEASE_RELEASED] = "queued" };

	return row->state == HD_DISPATCH_OPEN ? open[lease->state] : hd_dispatch_state_name(row->state);
}

static const char *const states[] = { "queued", "starting", "running", "draining", "done", "failed",
	"cancelled", "timeout" };
enum { NSTATES = HD_DAEMON_STATES };
_Static_assert(sizeof states / sizeof *states == NSTATES, "a word for each state");

static const struct watch *watched(const struct hd_daemon *d, uint64_t job)
{
	for (uint32_t i = 0; i < d->nwatches; i++)
		if (d->watch[i].job == job)
			return &d->watch[i];
	return NULL;
}

/* Texts that an answer of a job borrows. */
struct job_texts { char type[HD_DISPATCH_TYPES * 65], why[460], after[HD_TERMS_TEXT]; };

static const char *types_of(const struct hd_daemon *d, const struct hd_dispatch_lease *lease,
	struct job_texts *texts)
{
	uint32_t last = UINT32_MAX;
	struct hd_text types;

	texts->type[0] = '\0';
	hd_text_fixed(&types, texts->type, sizeof texts->type);
	for (uint32_t i = 0; i < lease->n; i++) {
		uint32_t t = hd_pools_type(d->spec->pools, lease->device[i]);
		if (t != last)
			hd_text_addf(&types, "%s%s", last == UINT32_MAX ? "" : "+", d->spec->pools->name[t]);
		last = t;
	}
	return texts->type;
}

/* What is on the disk, but for a job that waits in vain. */
static const char *why_of(const struct hd_daemon *d, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct job_texts *texts)
{
	bool waits = row->state == HD_DISPATCH_OPEN && lease->state == HD_LEASE_RELEASED;
	const struct hd_dispatch_job *now = hd_dispatch_job(d->dispatch, row->id);     /* in a partition */
	struct hd_dispatch_why why;

	if (waits && hd_dispatch_unrunnable(d->dispatch, now ? now : row, texts->why))
		return texts->why;
	if (!waits || !hd_dispatch_kept_back(d->dispatch, row->id, &why))
		return row->why;
	snprintf(texts->why, sizeof texts->why, "%s: %s", why.code, why.text);
	return texts->why;
}

static struct hd_answer_job job_of(const struct hd_daemon *d, const struct hd_jobs_card *card,
	const struct hd_dispatch_job *row, const struct hd_dispatch_lease *lease, struct job_texts *texts)
{
	const struct hd_dispatch_job *now = hd_dispatch_job(d->dispatch, row->id);
	const struct watch *seen = watched(d, row->id);
	uint64_t step = now ? now->done : row->done;

	if (seen && lease->state != HD_LEASE_RELEASED && seen->lease == lease->number && seen->step > step)
		step = seen->step;
	hd_terms_put_after(&row->terms, texts->after);
	const double expect_s = row->terms.expect_s, took_s = hd_dispatch_ran_s(row, daemon_now_s(d));
	return (struct hd_answer_job){ .id = (int64_t)card->id, .name = card->name, .user = card->user,
		.partition = now && now->partition[0] ? now->partition : card->partition,
		.state = state_of(row, lease), .step = (int64_t)step, .steps = (int64_t)row->steps,
		.priority = row->weight, .scale = row->scale,
		.devices_n = lease->state == HD_LEASE_RELEASED ? 0 : lease->n,
		.type = types_of(d, lease, texts), .rate = hd_dispatch_rate_now(d->dispatch, row->id),
		.submitted_s = row->submitted_s, .started_s = row->started_s, .ended_s = row->ended_s,
		.deadline_s = isfinite(row->deadline_s) ? row->deadline_s : -1,
		.exit = row->state == HD_DISPATCH_OPEN ? -1 : row->exit,
		.held = row->terms.held, .array = (int64_t)row->terms.array, .index = row->terms.index,
		.after = texts->after, .limit_s = row->terms.limit_s, .expected_s = expect_s,
		.took_s = took_s,
		.expected_error = expect_s > 0 && row->state == HD_DISPATCH_DONE ? took_s / expect_s - 1 :
			NAN,
		.account = now ? now->entity.name : card->account,
		.why = why_of(d, row, lease, texts) };
}

/* The job that an order with this key made before; HD_E_EXISTS if that was another order. */
static enum hd_err same_order(struct hd_daemon *d, const struct hd_json *ask, const char *key, uint64_t id,
	struct hd_diag *diag)
{
	struct hd_jobs_card card;
	char order[HD_HASH_HEX];
	enum hd_err err = hd_jobs_get(d->jobs, id, &card, NULL, NULL, diag);

	hd_hash_hex(daemon_order_hash(ask), order);
	if (!err && card.order[0] && strcmp(card.order, order) != 0)
		err = hd_fail(diag, HD_E_EXISTS,
			"key \"%.64s\" is of job %llu (%s), which has another order: send the same "
			"order to get that job, or draw another key for a new one", key,
				(unsigned long long)id, card.name);
	return err;
}

static enum hd_err count_task(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease, struct hd_diag *diag)
{
	struct hd_answer_submitted *submitted = user;

	(void)card;
	(void)lease;
	(void)diag;
	if (row->terms.array != (uint64_t)submitted->id)
		return HD_E_NOSPACE;              /* enough */
	submitted->tasks++;
	return HD_OK;
}

static enum hd_err put_submitted(struct hd_daemon *d, uint64_t id, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	struct job_texts texts;
	struct hd_answer_submitted tasks = { .id = (int64_t)id };
	enum hd_err err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);

	if (!err && row.terms.array == id)
		err = hd_jobs_list(d->jobs, NULL, id - 1, UINT32_MAX, count_task, &tasks, diag);
	if (err && err != HD_E_NOSPACE)
		return err;
	hd_fields_put(&hd_answer_submitted_fields, 0, &(struct hd_answer_submitted){ .id = (int64_t)id,
		.name = card.name, .run = card.run, .state = state_of(&row, &lease), .tasks = tasks.tasks,
		.account = card.account,
		.why = why_of(d, &row, &lease, &texts) }, w);
	return HD_OK;
}

/* The key of an order is of the one that sends it, whoever's its jobs become: sent again it finds them.
 * own "": it has none. */
static enum hd_err read_key(struct hd_daemon *d, const struct hd_json *ask, char own[HD_JOBS_KEY + 1],
	struct hd_diag *diag)
{
	struct hd_jobs_card whose = { .uid = HD_NO_UID };
	const char *key = "";
	enum hd_err err = hd_json_find(ask, "key") ? hd_json_get_text(ask, "key", &key, diag) : HD_OK;

	if (!err && strlen(key) > HD_USERS_NAME)
		err = hd_fail(diag, HD_E_INVAL, "key is longer than %d bytes", HD_USERS_NAME);
	if (!err)
		err = daemon_job_user(d, ask, &whose, diag);
	own[0] = '\0';
	if (err || !*key)
		return err;
	if (d->users)
		snprintf(own, HD_JOBS_KEY + 1, "%u:%.64s", whose.uid, key);
	else
		snprintf(own, HD_JOBS_KEY + 1, "%.64s", key);
	return HD_OK;
}

/* An order, made jobs by `take`. */
static enum hd_err take_order(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	enum hd_err (*take)(struct hd_daemon *d, const struct hd_json *ask, struct hd_arena *arena,
		struct hd_daemon_taken *taken, struct hd_diag *diag), struct hd_diag *diag)
{
	struct hd_daemon_taken taken = { 0 };
	struct hd_arena arena;
	char key[HD_JOBS_KEY + 1];
	uint64_t id = 0;
	enum hd_err err = read_key(d, ask, key, diag);

	if (!err && *key && !hd_jobs_by_key(d->jobs, key, &id, NULL)) {
		err = same_order(d, ask, key, id, diag);
		return err ? err : put_submitted(d, id, w, diag);
	}
	if (!err && d->draining)
		err = hd_fail(diag, HD_E_AGAIN, "this scheduler is about to end");
	if (err)
		return err;
	hd_arena_init(&arena, 0);
	err = take(d, ask, &arena, &taken, diag);
	(void)HD_FAILPOINT(DAEMON_TAKE);
	if (!err && *key) {
		snprintf(taken.card->key, sizeof taken.card->key, "%s", key);
		hd_hash_hex(daemon_order_hash(ask), taken.card->order);
	}
	if (!err) {
		id = taken.card->id;
		d->took_in = taken.n;
		err = daemon_feed(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_SUBMIT, .job = id,
			.row = taken.row, .n = taken.tasks }, taken.card, NULL, diag);
		if (err)                          /* their folders stay: the next order has other numbers */
			d->taken = taken.card[taken.n - 1].id;
	}
	hd_arena_finish(&arena);
	return err ? err : put_submitted(d, id, w, diag);
}

static enum hd_err take_continued(struct hd_daemon *d, const struct hd_json *ask, struct hd_arena *arena,
	struct hd_daemon_taken *taken, struct hd_diag *diag)
{
	*taken = (struct hd_daemon_taken){ .n = 1, .card = hd_arena_take(arena, 1, sizeof *taken->card),
		.row = hd_arena_take(arena, 1, sizeof *taken->row) };
	if (!taken->card || !taken->row)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	return daemon_continue_job(d, ask, taken->card, taken->row, diag);
}

enum hd_err daemon_answer_submit(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag) { return take_order(d, ask, w, daemon_take_jobs, diag); }
enum hd_err daemon_answer_continue(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag) { return take_order(d, ask, w, take_continued, diag); }

/* Jobs that are written one at a time, as they come from the store. */
struct listing {
	struct hd_daemon *d;
	struct hd_json_writer *w;
	const char *state, *ids;                  /* only these; NULL: all */
	int64_t after, left;
	struct hd_answer_jobs page;               /* `more` is known behind the list */
	struct hd_diag *diag;
	enum hd_err err;                          /* of fill_... */
};

static enum hd_err list_one(void *user, const struct hd_jobs_card *card, const struct hd_dispatch_job *row,
	const struct hd_dispatch_lease *lease,
	struct hd_diag *diag)
{
	struct listing *l = user;

	(void)diag;
	if ((l->state && strcmp(l->state, state_of(row, lease)) != 0) || !daemon_may_of_card(l->d, card) ||
		card->id <= (uint64_t)l->after)
		return HD_OK;
	if (!l->left) {
		l->page.more = true;
		return HD_E_NOSPACE;              /* enough */
	}
	l->left--;
	struct job_texts texts;
	struct hd_answer_job job = job_of(l->d, card, row, lease, &texts);
	hd_fields_put_object(&hd_answer_job_fields, 0, &job, NULL, l->w);
	return HD_OK;
}

static int state_number(const char *state)        /* NSTATES: none */
{
	int of = 0;

	while (of < NSTATES && strcmp(states[of], state) != 0)
		of++;
	return of;
}

static void fill_jobs(void *user, struct hd_json_writer *w)
{
	struct listing *l = user;

	l->w = w;
	l->err = l->ids ? daemon_each_of(l->d, l->ids, HD_ANSWER_LIMIT, list_one, l, l->diag) :
		hd_jobs_list_of(l->d->jobs, daemon_looks_at(l->d), !l->state ? NULL :
		state_number(l->state) < 4 ? "live" : l->state,
		(uint64_t)l->after, UINT32_MAX, list_one, l, l->diag);
	if (l->err == HD_E_NOSPACE)
		l->err = HD_OK;
}

enum hd_err daemon_answer_jobs(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct listing l = { .d = d, .left = HD_ANSWER_STANDARD, .diag = diag };
	enum hd_err err = hd_json_find(ask, "state") ? hd_json_get_text(ask, "state", &l.state, diag) : HD_OK;

	if (!err && l.state && state_number(l.state) == NSTATES)
		err = hd_fail(diag, HD_E_INVAL,
			"state \"%.40s\": queued, starting, running, draining, done, failed, cancelled or "
			"timeout",
			l.state);
	if (!err)
		err = daemon_read_count(ask, "after", 0, INT64_MAX, &l.after, diag);
	if (!err)
		err = daemon_read_count(ask, "limit", 1, HD_ANSWER_LIMIT, &l.left, diag);
	if (!err && hd_json_find(ask, "ids"))
		err = hd_json_get_text(ask, "ids", &l.ids, diag);
	if (!err && l.ids)                        /* all of it, before an answer begins */
		err = daemon_each_of(d, l.ids, HD_ANSWER_LIMIT, NULL, NULL, diag);
	if (err)
		return err;
	l.page.jobs = (struct hd_fields_list){ .fill = fill_jobs, .user = &l };
	hd_fields_put(&hd_answer_jobs_fields, 0, &l.page, w);
	return l.err;
}

enum hd_err daemon_answer_job(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	static const char *const from[] = { [HD_RATE_GUESSED] = "guessed", [HD_RATE_ASKED] = "asked",
		[HD_RATE_MEASURED] = "measured" };
	const struct hd_pools *pools = d->spec->pools;
	struct hd_answer_rate rate[HD_DISPATCH_TYPES];
	char name[HD_DISPATCH_SET][96];
	const char *names[HD_DISPATCH_SET], *on[HD_DISPATCH_SET];
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	struct job_texts texts;
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);
	if (err)
		return err;
	struct hd_answer_job_whole whole = { .job = job_of(d, &card, &row, &lease, &texts),
		.devices.at = names, .on.at = on, .lease = hd_lease_name(lease.state),
		.rates = { .at = rate, .n = pools->ntypes }, .failures = row.failures, .leases = row.leases,
		.run = card.run, .digest = card.digest };
	for (uint32_t i = 0; i < lease.n && lease.state != HD_LEASE_RELEASED; i++) {
		hd_pools_device(pools, lease.device[i], name[i]);
		names[whole.devices.n++] = name[i];
		on[whole.on.n] = daemon_lent_name(d, lease.device[i]);
		whole.on.n += on[whole.on.n] != NULL;
	}
	for (uint32_t t = 0; t < pools->ntypes; t++)
		rate[t] = (struct hd_answer_rate){ pools->name[t], row.rate[t].steps_s,
			from[row.rate[t].from] };
	const struct watch *seen = watched(d, id);
	if (seen)
		whole.paid = seen->paid;
	struct hd_account account;
	const struct hd_account *as = daemon_account(d, &card, &account) ? &account : NULL;
	err = daemon_lend(d, as, diag);
	if (err)
		return err;
	daemon_paid_read(&whole.paid, d->fs, card.run);
	daemon_unlend(as);
	hd_fields_put(&hd_answer_job_whole_fields, 0, &whole, w);
	return HD_OK;
}

enum hd_err daemon_answer_explain(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const struct hd_pools *pools = d->spec->pools;
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	struct hd_dispatch_why why = { .code = "OVER" };
	bool what_if = true;
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err && hd_json_find(ask, "policy"))
		err = hd_json_get_bool(ask, "policy", &what_if, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, &row, &lease, diag);
	if (!err && hd_dispatch_job(d->dispatch, id)) {
		const atomic_bool *stop = hd_renewer_begin(d->renewer, daemon_answer_ns(d));
		err = hd_dispatch_explain(d->dispatch, id, &(struct hd_dispatch_ask){
			.now_s = daemon_now_s(d), .what_if = what_if, .stop = stop,
			.may_see = daemon_may_see, .user = d }, &why, diag);
		/* what would help comes from answers that were not waited for */
		if (hd_renewer_end(d->renewer))
			snprintf(why.more, sizeof why.more,
				"what would help it the policy did not say within %.2g s",
				1e-9 * (double)daemon_answer_ns(d));
	} else if (!err)
		snprintf(why.text, sizeof why.text, "it is %s%s%s", hd_dispatch_state_name(row.state),
			*row.why ? ": " : "", row.why);
	if (err)
		return err;
	const char *more[3];
	char lent[HD_DAEMON_LENT];
	struct hd_answer_job_type type[HD_DISPATCH_TYPES];
	struct hd_answer_why answer = { .id = (int64_t)id, .name = card.name, .state = state_of(&row, &lease),
		.code = why.code, .text = why.text, .more.at = more, .boundary_s = daemon_boundary_s(d),
		.types = { .at = type, .n = why.ntypes } };
	if (*why.more)
		more[answer.more.n++] = why.more;
	if (*row.why && row.state == HD_DISPATCH_OPEN)
		more[answer.more.n++] = row.why;
	if (row.state == HD_DISPATCH_OPEN && *daemon_lent_why(d, id, lent))
		more[answer.more.n++] = lent;
	for (uint32_t t = 0; t < why.ntypes; t++) {
		const struct hd_dispatch_why_type *of = &why.type[t];
		type[t] = (struct hd_answer_job_type){ .type = pools->name[of->type], .devices = of->devices,
			.free = of->free, .steps_s = of->steps_s, .share = of->share,
			.received_s = of->received_s, .due_s = of->due_s, .priority = of->priority };
	}
	hd_fields_put(&hd_answer_why_fields, 0, &answer, w);
	return HD_OK;
}

/* A job that is over is known to the store alone. */
static enum hd_err feed_job(struct hd_daemon *d, struct hd_dispatch_event *event, struct hd_jobs_card *card,
	struct hd_dispatch_job *row,
	struct hd_dispatch_lease *lease, struct hd_diag *diag)
{
	enum hd_err err = hd_jobs_get(d->jobs, event->job, card, row, lease, diag);

	if (!err && row->state != HD_DISPATCH_OPEN)
		err = hd_fail(diag, HD_E_INVAL, "job %llu is %s", (unsigned long long)event->job,
			hd_dispatch_state_name(row->state));
	if (!err)
		err = daemon_feed(d, event, NULL, NULL, diag);
	return err ? err : hd_jobs_get(d->jobs, event->job, card, row, lease, diag);
}

/* All tasks of the job's array: those that are over, or are so already, are passed over. */
static enum hd_err feed_tasks(struct hd_daemon *d, const struct hd_dispatch_event *of, int64_t *n,
	struct hd_diag *diag)
{
	struct hd_dispatch_job row;
	enum hd_err err = hd_jobs_get(d->jobs, of->job, NULL, &row, NULL, diag);
	uint64_t array = err ? 0 : row.terms.array;

	if (!err && !array)
		return hd_fail(diag, HD_E_INVAL, "job %llu is no task of an array",
			(unsigned long long)of->job);
	for (uint64_t id = array; !err && !hd_jobs_get(d->jobs, id, NULL, &row, NULL, NULL) &&
		row.terms.array == array; id++) {
		struct hd_dispatch_event event = *of;
		struct hd_diag why = { "" };
		event.job = id;
		enum hd_err one = row.state == HD_DISPATCH_OPEN ? daemon_feed(d, &event, NULL, NULL, &why) :
			HD_E_INVAL;
		*n += !one;
		d->took_in += !one;
		if (one && one != HD_E_INVAL && one != HD_E_NOTFOUND)
			err = hd_fail(diag, one, "%s", why.text);
	}
	return err;
}

static enum hd_err change_job(struct hd_daemon *d, struct hd_dispatch_event *event, const struct hd_json *ask,
	struct hd_json_writer *w, struct hd_diag *diag)
{
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	bool tasks = false;
	int64_t n = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &event->job, diag);

	if (!err && hd_json_find(ask, "tasks"))
		err = hd_json_get_bool(ask, "tasks", &tasks, diag);
	if (!err && tasks)
		err = feed_tasks(d, event, &n, diag);
	if (!err && tasks)
		err = hd_jobs_get(d->jobs, event->job, &card, &row, &lease, diag);
	else if (!err)
		err = feed_job(d, event, &card, &row, &lease, diag);
	if (err)
		return err;
	hd_fields_put(&hd_answer_state_fields, 0, &(struct hd_answer_state){ .id = (int64_t)event->job,
		.state = state_of(&row, &lease), .tasks = tasks ? n : 1 }, w);
	return HD_OK;
}

enum hd_err daemon_answer_cancel(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	return change_job(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_CANCEL }, ask, w, diag);
}

enum hd_err daemon_answer_hold(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	return change_job(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_HOLD, .ok = true }, ask,
		w, diag);
}

enum hd_err daemon_answer_release(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	return change_job(d, &(struct hd_dispatch_event){ .kind = HD_DISPATCH_IN_HOLD }, ask, w, diag);
}

enum hd_err daemon_answer_prio(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_WEIGHT };
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	enum hd_err err = daemon_find_job(d, ask, "job", &event.job, diag);

	if (!err)
		err = hd_json_get_f64(ask, "priority", &event.value, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, event.job, &card, NULL, NULL, diag);
	if (!err)
		err = daemon_check_priority(d, &card, event.value, diag);
	if (!err)
		err = feed_job(d, &event, &card, &row, &lease, diag);
	if (err)
		return err;
	hd_fields_put(&hd_answer_priority_fields, 0, &(struct hd_answer_priority){ .id = (int64_t)event.job,
		.priority = row.weight }, w);
	return HD_OK;
}

enum hd_err daemon_answer_scale(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_SCALE };
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	struct hd_dispatch_lease lease;
	int64_t scale = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &event.job, diag);

	if (!err)
		err = hd_json_get_i64(ask, "scale", 1, HD_DISPATCH_SET, &scale, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, event.job, &card, &row, &lease, diag);
	if (err)
		return err;
	row.scale = event.n = (uint32_t)scale;
	const bool open = row.state == HD_DISPATCH_OPEN;          /* else the machine says so */
	if (open)
		err = daemon_put_in_partition(d, &card, &row, diag);
	if (!err && open)
		err = daemon_fits(d, &row, diag);
	if (!err && open)
		err = daemon_check_devices(d, &card, &row, diag);
	if (!err && open)
		err = daemon_check_partition_devices(d, &card, &row, diag);
	if (!err)
		err = feed_job(d, &event, &card, &row, &lease, diag);
	if (err)
		return err;
	hd_fields_put(&hd_answer_scale_fields, 0, &(struct hd_answer_scale){ .id = (int64_t)event.job,
		.scale = row.scale }, w);
	return HD_OK;
}

/* Jobs by what a user calls their state. */
void daemon_count_states(const uint64_t n[HD_DISPATCH_NSTATES], const uint64_t leased[HD_LEASE_NSTATES],
	struct hd_fields_count count[NSTATES])
{
	uint64_t queued = n[HD_DISPATCH_OPEN];

	for (int k = 0; k < HD_LEASE_RELEASED; k++)
		queued -= leased[k];
	const uint64_t of[NSTATES] = { queued, leased[HD_LEASE_OFFERED],
		leased[HD_LEASE_HELD] + leased[HD_LEASE_RESIZE],
		leased[HD_LEASE_DRAIN] + leased[HD_LEASE_EXPIRED] + leased[HD_LEASE_KILLED],
		n[HD_DISPATCH_DONE], n[HD_DISPATCH_FAILED], n[HD_DISPATCH_CANCELLED],
		n[HD_DISPATCH_TIMEOUT] };
	for (int k = 0; k < NSTATES; k++)
		count[k] = (struct hd_fields_count){ states[k], (int64_t)of[k] };
}

void daemon_fill_running(void *running, struct hd_json_writer *w)
{
	struct daemon_running *r = running;
	struct listing l = { .d = r->d, .w = w, .state = "running", .left = HD_ANSWER_STANDARD,
		.diag = r->diag };

	for (uint32_t i = 0; i < l.d->nwatches && !l.err && l.left; i++) {
		struct hd_jobs_card card;
		struct hd_dispatch_job row;
		struct hd_dispatch_lease lease;
		l.err = hd_jobs_get(l.d->jobs, l.d->watch[i].job, &card, &row, &lease, l.diag);
		if (!l.err)
			l.err = list_one(&l, &card, &row, &lease, l.diag);
	}
	r->err = l.err;
}
