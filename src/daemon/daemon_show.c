#include <stdio.h>

#include "run/curve.h"
#include "daemon/daemon_int.h"

/* What the page draws: how devices were used, how a run went and where it stands, which jobs wait and why,
 * what was paid. Each answer has a bound, however many jobs there are and however long they have run. */

enum { WAITING = 50, WAITING_MOST = 100, POINTS = 500 };

static enum hd_err read_count(const struct hd_json *ask, const char *key, int64_t least, int64_t most,
	int64_t *value, struct hd_diag *diag)
{
	return hd_json_find(ask, key) ? hd_json_get_i64(ask, key, least, most, value, diag) : HD_OK;
}

/* ---- devices ---- */

struct hd_answer_type daemon_type(const struct hd_daemon *d, uint32_t t)
{
	const struct hd_pools *pools = d->spec->pools;
	struct hd_answer_type type = { .type = pools->name[t], .devices = pools->type[t].n,
		.price_usd_h = pools->type[t].price_usd_h, .speed = pools->type[t].speed };

	for (uint32_t v = pools->first_device[t]; v < pools->first_device[t + 1]; v++) {
		struct hd_dispatch_device dev = hd_dispatch_device(d->dispatch, v);
		type.busy += dev.job || dev.there;
		type.lost += (!dev.usable || dev.window) && !dev.job && !dev.there;
	}
	type.free = type.devices - type.busy - type.lost;
	return type;
}

void daemon_sample(struct hd_daemon *d)
{
	struct hd_history_count of[HD_DISPATCH_TYPES];
	const double now_s = daemon_now_s(d);

	if (!hd_history_due(&d->history, now_s))
		return;
	for (uint32_t t = 0; t < d->spec->pools->ntypes; t++) {
		const struct hd_answer_type is = daemon_type(d, t);
		of[t] = (struct hd_history_count){ (uint32_t)is.busy, (uint32_t)is.free, (uint32_t)is.lost };
	}
	hd_history_add(&d->history, now_s, of, d->spec->pools->ntypes);
}

struct history_page { struct hd_daemon *d; double after_s; };

static void fill_samples(void *user, struct hd_json_writer *w)
{
	const struct history_page *s = user;
	const struct hd_pools *pools = s->d->spec->pools;

	for (uint32_t i = 0; i < s->d->history.n; i++) {
		const struct hd_history_sample *is = &s->d->history.sample[i];
		for (uint32_t t = 0; t < pools->ntypes && is->at_s > s->after_s; t++)
			hd_fields_put_object(&hd_answer_sample_fields, 0, &(struct hd_answer_sample){
				.at_s = is->at_s, .type = pools->name[t], .busy = is->of[t].busy,
				.free = is->of[t].free, .lost = is->of[t].lost }, NULL, w);
	}
}

enum hd_err daemon_show_history(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct history_page shown = { .d = d, .after_s = -1 };
	enum hd_err err = hd_json_find(ask, "after_s") ? hd_json_get_f64(ask, "after_s", &shown.after_s,
		diag) : HD_OK;

	if (!err)
		hd_fields_put(&hd_answer_history_fields, 0, &(struct hd_answer_history){
			.now_s = daemon_now_s(d), .every_s = d->history.every_s,
			.samples = { .fill = fill_samples, .user = &shown } }, w);
	return err;
}

/* ---- a run ---- */

static struct watch *watched(struct hd_daemon *d, uint64_t job)
{
	for (uint32_t i = 0; i < d->nwatches; i++)
		if (d->watch[i].job == job)
			return &d->watch[i];
	return NULL;
}

/* As its coordinator answers; without an answer the little that is known here, and no workers. To be asked is
 * to have its lease for another while, as with each question. */
enum hd_err daemon_show_run(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const struct hd_json *answer;
	struct hd_jobs_card card;
	struct hd_dispatch_job row;
	char text[64];
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, &row, NULL, diag);
	if (err)
		return err;
	hd_arena_reset(&d->scratch);
	struct hd_live *live = hd_arena_take(&d->scratch, 1, sizeof *live);
	struct watch *seen = watched(d, id);
	if (!live)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the workers of a run");
	snprintf(text, sizeof text, "{\"do\":\"status\",\"for_s\":%.3f}", daemon_lease_s(d));
	if (!seen || !daemon_is_coordinated(d, seen) || daemon_ask_run(d, seen, text, &answer) ||
		hd_live_read(answer, live, NULL))
		*live = (struct hd_live){ .name = card.name, .state = "unknown", .step = (int64_t)row.done,
			.steps = (int64_t)row.steps, .exit = -1,
			.why = "no process coordinates it at the moment", .autoscale = "off",
			.autoscale_why = "", .plan_why = "", .redundancy = "none", .resilience = "given",
			.saving = "given", .best = "none", .functions = "none" };
	hd_live_put(live, 0, w);
	return HD_OK;
}

enum hd_err daemon_show_metrics(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_answer_points points = { 0 };
	struct hd_jobs_card card;
	char path[HD_PATH_CAP];
	int64_t most = POINTS;
	uint64_t id = 0;
	enum hd_err err = daemon_find_job(d, ask, "job", &id, diag);

	if (!err)
		err = read_count(ask, "points", 2, HD_CURVE_POINTS, &most, diag);
	if (!err)
		err = hd_jobs_get(d->jobs, id, &card, NULL, NULL, diag);
	if (err)
		return err;
	hd_arena_reset(&d->scratch);
	snprintf(path, sizeof path, "%s/metrics.ndjson", card.run);
	struct hd_account account;
	const struct hd_account *as = daemon_account(d, &card, &account) ? &account : NULL;
	err = daemon_lend(d, as, diag);
	if (err)
		return err;
	err = hd_curve_read(d->fs, path, (uint32_t)most, &d->scratch, &points.at, &points.n, diag);
	daemon_unlend(as);
	if (err && err != HD_E_NOTFOUND)          /* it has not begun */
		return err;
	hd_fields_put(&hd_answer_curve_fields, 0, &(struct hd_answer_curve){ .id = (int64_t)id,
		.points = { .fill = hd_answer_points_fill, .user = &points } }, w);
	return HD_OK;
}

/* ---- jobs ---- */

struct waiting_page { struct hd_daemon *d; int64_t after, left; struct hd_answer_waitings page;
	struct hd_diag *diag; enum hd_err err; };

static enum hd_err put_waiting(struct waiting_page *l, const struct hd_dispatch_job *row,
	struct hd_json_writer *w)
{
	struct hd_dispatch_why why;
	struct hd_jobs_card card;
	enum hd_err err = hd_jobs_get(l->d->jobs, row->id, &card, NULL, NULL, l->diag);

	if (!err)
		err = hd_dispatch_explain(l->d->dispatch, row->id, &(struct hd_dispatch_ask){
			.now_s = daemon_now_s(l->d), .may_see = daemon_may_see, .user = l->d }, &why,
				l->diag);
	if (!err)
		hd_fields_put_object(&hd_answer_waiting_fields, 0, &(struct hd_answer_waiting){
			.id = (int64_t)row->id, .name = card.name, .user = card.user,
			.priority = row->weight, .scale = row->scale, .submitted_s = row->submitted_s,
			.code = why.code, .text = why.text }, NULL, w);
	return err;
}

static void fill_waiting(void *user, struct hd_json_writer *w)
{
	struct waiting_page *l = user;
	const struct hd_dispatch *machine = l->d->dispatch;

	for (uint32_t i = 0; i < hd_dispatch_njobs(machine) && !l->err && !l->page.more; i++) {
		const struct hd_dispatch_job *row = hd_dispatch_job(machine, hd_dispatch_nth(machine, i));
		if (row->id <= (uint64_t)l->after || row->state != HD_DISPATCH_OPEN ||
			hd_dispatch_lease(machine, row->id) || !daemon_may_of_job(l->d, row->id))
			continue;
		if (l->left-- == 0)
			l->page.more = true;
		else
			l->err = put_waiting(l, row, w);
	}
}

enum hd_err daemon_show_waiting(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct waiting_page l = { .d = d, .left = WAITING, .diag = diag };
	enum hd_err err = read_count(ask, "after", 0, INT64_MAX, &l.after, diag);

	if (!err)
		err = read_count(ask, "limit", 1, WAITING_MOST, &l.left, diag);
	if (err)
		return err;
	l.page.jobs = (struct hd_fields_list){ .fill = fill_waiting, .user = &l };
	hd_fields_put(&hd_answer_waitings_fields, 0, &l.page, w);
	return l.err;
}

static void fill_spent(void *user, struct hd_json_writer *w)
{
	struct hd_daemon *d = user;
	struct hd_jobs_card card;

	for (uint32_t i = 0; i < d->nwatches; i++)
		if (daemon_may_of_job(d, d->watch[i].job) &&
			!hd_jobs_get(d->jobs, d->watch[i].job, &card, NULL, NULL, NULL))
			hd_fields_put_object(&hd_answer_spent_fields, 0, &(struct hd_answer_spent){
				.id = (int64_t)card.id, .name = card.name, .user = card.user,
				.paid = d->watch[i].paid }, NULL, w);
}

enum hd_err daemon_show_ledger(struct hd_daemon *d, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	(void)ask, (void)diag;
	hd_fields_put(&hd_answer_ledger_fields, 0, &(struct hd_answer_ledger){
		.jobs = { .fill = fill_spent, .user = d } }, w);
	return HD_OK;
}
