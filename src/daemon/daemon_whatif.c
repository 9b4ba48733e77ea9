#include <string.h>

#include "base/near.h"
#include "scheduler/sched_why.h"
#include "daemon/answers.h"
#include "daemon/daemon_int.h"

/* What would be if something were different: a snapshot of the cluster as it is, asked about twice. In the
 * daemon's thread, while leases are kept: for few jobs only, and for daemon_answer_ns(). */

enum { HD_WHATIF_JOBS = 500, HD_WHATIF_BYTES = 1 << 30, HD_WHATIF_CHANGES = 3 + 2 * HD_DISPATCH_TYPES };

struct whatif_question {
	struct hd_arena arena;
	struct hd_policy_setting set, then;
	struct hd_sched_state state;
	struct hd_change change[HD_WHATIF_CHANGES];
	uint32_t nchanges;
	const char *policy;                       /* NULL: the same */
};

static enum hd_err add(struct whatif_question *q, enum hd_change_kind kind, uint32_t at, double value,
	struct hd_diag *diag)
{
	if (q->nchanges == HD_WHATIF_CHANGES)
		return hd_fail(diag, HD_E_INVAL, "more than %d changes", HD_WHATIF_CHANGES);
	q->change[q->nchanges++] = (struct hd_change){ kind, at, value };
	return HD_OK;
}

static enum hd_err find(struct hd_daemon *d, const struct hd_json *ask, const char *key,
	const struct whatif_question *q, uint32_t *at, struct hd_diag *diag)
{
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, key, &id, diag);

	if (!err && (*at = hd_sched_find(&q->state, id)) == HD_SCHED_NONE)
		err = hd_fail(diag, HD_E_INVAL, "job %llu is not there, or over", (unsigned long long)id);
	return err;
}

static enum hd_err read_job(struct hd_daemon *d, const struct hd_json *ask, struct whatif_question *q,
	struct hd_diag *diag)
{
	static const struct { const char *key; enum hd_change_kind kind;
		} of[] = { { "priority", HD_CHANGE_WEIGHT }, { "scale", HD_CHANGE_SCALE } };
	enum hd_err err = HD_OK;
	uint32_t at = 0, n = 0;
	double value = 0;

	for (size_t i = 0; i < sizeof of / sizeof *of && !err; i++) {
		if (!hd_json_find(ask, of[i].key))
			continue;
		err = n++ ? HD_OK : find(d, ask, "job", q, &at, diag);
		if (!err)
			err = hd_json_get_f64(ask, of[i].key, &value, diag);
		if (!err)
			err = add(q, of[i].kind, at, value, diag);
	}
	if (!err && !n && hd_json_find(ask, "job"))
		err = hd_fail(diag, HD_E_INVAL,
			"what if that job had what? priority, scale; or without, if it were not there");
	if (!err && hd_json_find(ask, "without")) {
		err = find(d, ask, "without", q, &at, diag);
		if (!err)
			err = add(q, HD_CHANGE_REMOVE, at, 0, diag);
	}
	return err;
}

static enum hd_err read_types(const struct hd_json *ask, const char *key, enum hd_change_kind kind,
	struct whatif_question *q, struct hd_diag *diag)
{
	const struct hd_json *of = hd_json_find(ask, key);
	enum hd_err err = HD_OK;

	for (size_t i = 0; of && i < hd_json_count(of) && !err; i++) {
		struct hd_near near = hd_near_to(hd_json_key(of, i));
		uint32_t t = 0;
		double value = 0;
		for (; t < q->state.ntypes && strcmp(q->state.types[t].name, near.word) != 0; t++)
			hd_near_offer(&near, q->state.types[t].name);
		if (t == q->state.ntypes)
			return hd_fail(diag, HD_E_INVAL, "%s: there is no type \"%.60s\"%s%s%s", key,
				near.word, near.best ? "; did you mean " : "",
				near.best ? near.best : "", near.best ? "?" : "");
		err = hd_json_as_f64(hd_json_item(of, i), &value, diag);
		if (!err)
			err = add(q, kind, t, value, diag);
	}
	return err;
}

/* That of the job which it is about, the one it names, or the default. */
static enum hd_err find_partition(struct hd_daemon *d, const struct hd_json *ask, const char **name,
	struct hd_diag *diag)
{
	const char *key = hd_json_find(ask, "job") ? "job" : "without";
	struct hd_jobs_card card = { .id = 0 };
	uint64_t id = 0;

	if (!hd_json_find(ask, key)) {
		enum hd_err err = daemon_read_partition(d, ask, &card, diag);
		*name = hd_arena_text(&d->scratch, card.partition, strlen(card.partition));
		return err ? err : *name ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for a question");
	}
	enum hd_err err = daemon_find_job(d, ask, key, &id, diag);
	const struct hd_dispatch_job *row = err ? NULL : hd_dispatch_job(d->dispatch, id);
	*name = row ? row->partition : "";
	return err || row ? err : hd_fail(diag, HD_E_INVAL, "job %llu is not there, or over",
		(unsigned long long)id);
}

static enum hd_err read_question(struct hd_daemon *d, const struct hd_json *ask, struct whatif_question *q,
	struct hd_diag *diag)
{
	const char *partition = "";
	enum hd_err err = find_partition(d, ask, &partition, diag);

	if (!err)
		err = hd_dispatch_snapshot(d->dispatch, partition, daemon_now_s(d), &q->arena, &q->set,
			&q->state, diag);
	if (!err && q->state.njobs > HD_WHATIF_JOBS)
		err = hd_fail(diag, HD_E_INVAL,
			"there are %u jobs, and the scheduler answers this for %d at most; `heddle sched "
			"whatif` for any number",
			q->state.njobs, HD_WHATIF_JOBS);
	if (!err)
		err = read_job(d, ask, q, diag);
	if (!err)
		err = read_types(ask, "add", HD_CHANGE_ADD, q, diag);
	if (!err)
		err = read_types(ask, "price", HD_CHANGE_PRICE, q, diag);
	if (!err && hd_json_find(ask, "policy"))
		err = hd_json_get_text(ask, "policy", &q->policy, diag);
	if (!err && q->policy)
		err = hd_dispatch_policy(q->policy, &q->then, diag);
	if (!err && !q->nchanges && !q->policy)
		err = hd_fail(diag, HD_E_INVAL,
			"what if what? priority or scale of a job, without, add, price, policy");
	return err;
}

static double left_s(const struct hd_sched_job *job, double rate) { return rate > 0 ? job->steps_left / rate :
	-1; }

struct affected { struct hd_daemon *d; const struct whatif_question *q; const struct hd_what_if *row;
	uint32_t n;
	struct hd_diag *diag; enum hd_err err; };

static void fill_affected(void *user, struct hd_json_writer *w)
{
	struct affected *a = user;

	for (uint32_t i = 0; i < a->n && !a->err; i++) {
		const struct hd_what_if *row = &a->row[i];
		const struct hd_sched_job *job = &a->q->state.jobs[row->job];
		struct hd_jobs_card card;
		if (!daemon_may_of_job(a->d, job->id))
			continue;
		a->err = hd_jobs_get(a->d->jobs, job->id, &card, NULL, NULL, a->diag);
		if (!a->err)
			hd_fields_put_object(&hd_answer_affected_fields, 0, &(struct hd_answer_affected){
				.id = (int64_t)job->id, .name = card.name, .share = row->share[0],
				.share_then = row->share[1], .steps_s = row->rate[0],
				.steps_s_then = row->rate[1], .left_s = left_s(job, row->rate[0]),
				.left_s_then = left_s(job, row->rate[1]) }, NULL, w);
	}
}

enum hd_err daemon_answer_whatif(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const struct hd_what_if *rows = NULL;
	struct whatif_question q = { .nchanges = 0 };
	uint32_t n = 0;

	hd_arena_init(&q.arena, HD_WHATIF_BYTES);
	enum hd_err err = read_question(d, ask, &q, diag);
	if (!err) {
		q.set.stop = q.then.stop = hd_renewer_begin(d->renewer, daemon_answer_ns(d));
		err = hd_sched_what_if(&q.set, q.policy ? &q.then : NULL, &q.state, q.change, q.nchanges,
			&q.arena, &rows, &n, diag);
		if (hd_renewer_end(d->renewer)) {
			hd_arena_finish(&q.arena);
			return hd_fail(diag, HD_E_AGAIN,
				"the policy has not answered that within %.2g s: `heddle sched whatif` "
				"waits for as long as it takes",
				1e-9 * (double)daemon_answer_ns(d));
		}
	}
	if (!err) {
		struct affected affected = { .d = d, .q = &q, .row = rows, .n = n, .diag = diag };
		hd_fields_put(&hd_answer_whatif_fields, 0, &(struct hd_answer_whatif){ .policy = d->policy,
			.policy_then = q.policy ? q.policy : d->policy, .jobs = q.state.njobs,
			.affected = { .fill = fill_affected, .user = &affected } }, w);
		err = affected.err;
	}
	hd_arena_finish(&q.arena);
	return err;
}
