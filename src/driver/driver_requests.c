#include "driver/driver_int.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "run/best.h"
#include "run/functions_bill.h"
#include "driver/live.h"

static enum hd_err turn_auto(struct driver *c, const struct hd_json *ask, const struct hd_co_status *status,
	struct hd_json_writer *w,
	struct hd_diag *diag)
{
	const char *policy = "curve";
	enum hd_err err = hd_json_find(ask, "policy") ? hd_json_get_text(ask, "policy", &policy, diag) :
		HD_OK;

	if (!err)
		err = driver_keep_policy(c, policy, diag);
	if (err)
		return err;
	hd_json_put_i64(w, "asked", status->asked);
	hd_json_put_i64(w, "target", status->target);
	hd_json_put_i64(w, "members", status->nmembers);
	return HD_OK;
}

uint32_t driver_devices(const struct driver *c)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = worker[i].ndevices > most ? worker[i].ndevices : most;
	return most;
}

/* Ranks of a pipeline that workers of other machines can have. */
static uint32_t ranks_of_guests(const struct driver *c)
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < n; i++)
		if (hd_is_remote(worker[i].worker) && worker[i].up && worker[i].state != HD_W_LEFT)
			ranks += worker[i].ndevices / hd_view_each(&c->config.shape);
	return ranks;
}

/* Of a model in stages, beside the workers of other machines: with fewer the run would wait for ever.
 * Workers have as many devices as those that are here; 0: none is, or the model is whole, or the guests are
 * enough. */
static uint32_t least_workers(const struct driver *c)
{
	const uint32_t width = c->config.shape.width, guests = ranks_of_guests(c),
		most = width ? driver_devices(c) / hd_view_each(&c->config.shape) : 0;

	return most && width > guests ? (width - guests + most - 1) / most : 0;
}

static enum hd_err answer_scale(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	struct hd_co_status status = { .asked = c->config.target, .target = c->config.target };
	int64_t n = 0;

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	if (hd_json_find(ask, "auto"))
		return turn_auto(c, ask, &status, w, diag);
	enum hd_err err = hd_json_find(ask, "by") ? hd_json_get_i64(ask, "by", INT32_MIN, INT32_MAX, &n, diag)
		: hd_json_get_i64(ask, "workers", 1, INT32_MAX, &n, diag);
	if (err)
		return err;
	n += hd_json_find(ask, "by") ? (int64_t)status.asked : 0;
	const uint32_t least = least_workers(c);
	if (n >= (int64_t)c->config.min && n < (int64_t)least)
		return hd_fail(diag, HD_E_INVAL,
			"%lld workers: a pipeline of this run has %u devices, for which it takes %u on this "
			"machine", (long long)n, c->config.shape.width * hd_view_each(&c->config.shape),
			least);
	if (n < (int64_t)c->config.min || n > (int64_t)c->config.max)
		return hd_fail(diag, HD_E_INVAL,
			"%lld workers: this job takes from %u (workers.min) to %u (workers.max, or one a "
			"virtual node)", (long long)n,
			c->config.min, c->config.max);
	c->config.target = (uint32_t)n;
	err = driver_keep_policy(c, NULL, diag);         /* a number is a user's word */
	if (err)
		return err;
	err = driver_scale(c, (uint32_t)n, diag);
	if (err)
		return err;
	status.target = (uint32_t)n;
	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	hd_json_put_i64(w, "asked", n);
	hd_json_put_i64(w, "target", status.target);
	hd_json_put_i64(w, "members", status.nmembers);
	return HD_OK;
}

static const char *state_of(const struct driver *c, const struct hd_co_status *s)
{
	if (!c->machine)
		return c->config.record.halting ? "stopping" : "starting";
	return s->halting ? "stopping" : c->evaluating ? "evaluating" : s->holding ? "waiting" : s->nmembers ?
		"running" : "starting";
}

/* A worker's own times of its last step; 0 before it has sealed one. */
static void fill_pace(const struct driver *c, struct hd_live_worker *to)
{
	static const struct hd_pace_worker none;
	uint32_t worker = (uint32_t)to->id;
	const struct hd_pace_worker *p = hd_pace_of(&c->reshape.pace, worker);

	p = p ? p : &none;
	const struct hd_pace_step *s = hd_pace_last(p);
	to->step_ms = (double)s->step_ns * 1e-6;
	to->wait_ms = (double)s->wait_ns * 1e-6;
	to->compute_ms = (double)s->compute_ns * 1e-6;
	to->vn_ms = (double)p->vn_ps * 1e-9;
	to->speed = c->machine ? hd_pace_speed(&c->reshape.pace, worker, hd_coordinator_view(c->machine)) : 0;
	to->redone = (int64_t)p->redone;
	to->sum_steps = (int64_t)p->sums.steps;
	to->sum_vns = (int64_t)p->sums.vns;
	to->sum_compute_ns = (int64_t)p->sums.compute_ns;
	to->sum_read_wait_ns = (int64_t)p->sums.read_wait_ns;
}

/* The whole model is one stage. While a run of stages waits for devices its view has no shape, and no step
 * begins by it. */
static uint32_t stages_of(const struct driver *c, uint32_t worker)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);

	if (!view || !hd_view_has(view, worker))
		return 0;
	return view->shape.nstages ? (uint32_t)__builtin_popcountll(hd_view_stages(view, worker)) :
		!c->config.shape.nstages;
}

enum { FOLLOWS_NAME = 24 };

/* `name`: of what workers follow. */
static void fill_workers(const struct driver *c, struct hd_live *live,
	char name[HD_LIVE_WORKERS][FOLLOWS_NAME])
{
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;

	static_assert((int)HD_LIVE_WORKERS >= (int)HD_MAX_WORKERS, "an answer has room for all workers");
	for (uint32_t i = 0; i < n; i++) {
		const struct hd_co_worker_status *p = &worker[i];
		const uint32_t stage = view ? hd_view_follows(view, p->worker) : HD_NOBODY;
		if (p->state == HD_W_FREE || p->state == HD_W_OUT)
			continue;
		char *follows_name = name[live->nworkers];
		struct hd_live_worker *to = &live->worker[live->nworkers++];
		if (stage != HD_NOBODY)
			snprintf(follows_name, sizeof name[0], "stage %u", stage);
		*to = (struct hd_live_worker){ .id = p->worker, .worker = p->worker,
			.remote = hd_is_remote(p->worker), .state = hd_co_worker_state_name(p->state),
			.pid = driver_pid(p), .devices = p->ndevices, .virtual_nodes = p->nvns,
			.stages = stages_of(c, p->worker),
			.follows = follows_name,
			.notice = driver_notice_of(c, p->worker),
			.zone = p->zone ? p->zone : "", .address = p->address ? p->address : "" };
		fill_pace(c, to);
	}
}

/* Connections that ended by a fault of the other side, by reason. */
static struct hd_fields_counts refusals(struct driver *c, struct hd_fields_count count[HD_CLOSE_COUNT])
{
	struct hd_fields_counts refused = { .at = count };
	struct hd_hub_stats stats;

	hd_hub_stats(&c->hub, &stats);
	for (uint32_t why = 1; why < HD_CLOSE_COUNT; why++)
		if (stats.closed[why] && hd_close_blame((enum hd_close)why) == HD_BLAME_PEER)
			count[refused.n++] = (struct hd_fields_count){ hd_close_name((enum hd_close)why),
				(int64_t)stats.closed[why] };
	return refused;
}

/* Its scheduler asks: the lease holds for so long from now. */
static enum hd_err renew_lease(struct driver *c, const struct hd_json *ask, struct hd_diag *diag)
{
	double for_s = 0;
	enum hd_err err = hd_json_get_f64(ask, "for_s", &for_s, diag);

	if (!err && !(for_s > 0 && for_s < 1e9))
		err = hd_fail(diag, HD_E_INVAL, "for_s is %g: seconds, above 0", for_s);
	if (!err)
		c->until_ns = c->spec->lease_ns ? hd_clock_now_ns(c->spec->clock) + (int64_t)(for_s * 1e9) :
			0;
	return err;
}

/* Of one that waits. */
static const char *what_lacks(const struct driver *c, const struct hd_co_status *s)
{
	return c->config.shape.nstages && s->nmembers >= c->config.min ?
		"fewer devices than its pipelines have ranks" : "fewer workers than workers.min";
}

/* The worker that saves keeps it: what lies on the disk is all that is known of it. */
static const char *best_of(const struct driver *c, char said[HD_BEST_WORDS])
{
	const struct hd_job *job = c->spec->task->job;
	char parent[HD_PATH_CAP];

	if (hd_job_int(job, HD_JOB_CKPT_BEST) == HD_BEST_NONE || hd_ckpt_place(c->spec->fs,
		c->spec->dir->path, hd_job_text(job, HD_JOB_CKPT_DIR), parent, sizeof parent, NULL))
		return "none";
	return hd_best_text(said, c->spec->fs, parent);
}

static enum hd_err answer_status(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	/* of the view in force: what was asked for comes with the next one */
	const struct hd_view *view = c->machine ? hd_coordinator_view(c->machine) : NULL;
	const uint32_t redundancy = hd_shape_redundancy(view && view->shape.nstages ? &view->shape :
		&c->config.shape);
	struct hd_co_status s = { .asked = c->config.target, .target = c->config.target,
		.single = redundancy ? -1 : 0 };
	struct hd_fields_count count[HD_CLOSE_COUNT];
	struct hd_proc_self self;
	char resilience[HD_RESILIENCE_WORDS + 64], saving[HD_SAVING_WORDS + 16], best[HD_BEST_WORDS],
		functions[HD_FN_BILL_WORDS], follows[HD_LIVE_WORKERS][FOLLOWS_NAME] = { "" };
	char places[HD_LAUNCHER_WHY + 64];
	struct hd_functions_bill bill;
	enum hd_err err = hd_json_find(ask, "for_s") ? renew_lease(c, ask, diag) : HD_OK;

	if (err)
		return err;
	if (c->machine)
		hd_coordinator_status(c->machine, &s);
	hd_proc_self(&self);
	driver_places_why(c, places, sizeof places);
	hd_functions_bill_sum(&bill, c->spec->fs, c->spec->dir->path);
	struct hd_live live = { .goes_on = true, .exit = -1, .coordinator = self.pid,
		.protocol = hd_hub_protocol(), .starts = c->spec->worker_argv != NULL,
		.name = hd_job_text(c->spec->task->job, HD_JOB_NAME), .state = state_of(c, &s),
		.why = *places ? places : s.holding ? what_lacks(c, &s) :
			s.changing ? "membership is changing" : "",
		.step = (int64_t)c->end.step, .steps = (int64_t)c->spec->task->nsteps, .loss = c->loss,
		.step_ms = c->step_ms, .wait_ms = c->wait_ms, .epoch = s.epoch, .term = s.term,
		.plan = s.epoch, .members = s.nmembers, .target = s.target, .asked = s.asked,
		.virtual_nodes = c->spec->task->job->nvns, .copies = c->config.copies,
		.redundancy = hd_redundancy_names[redundancy], .single = s.single,
		.resilience = driver_resilience(c, resilience, sizeof resilience),
		.saving = driver_saving(c, saving, sizeof saving), .best = best_of(c, best),
		.functions = hd_functions_bill_say(functions, &bill), .functions_nano_usd = bill.nano_usd,
		.autoscale = c->scaler.policy ? c->scaler.policy : "off", .autoscale_why = c->scaler.why,
		.plan_why = c->reshape.used.why,
		.predicted_ms = (double)c->reshape.used.predicted_ps * 1e-9,
		.unrecorded = (int64_t)(c->end.unrecorded + c->unrecorded), .given_up = c->end.given_up,
		.detect_ms = (double)c->detect_ns * 1e-6, .listen = c->address,
		.refused = refusals(c, count) };
	fill_workers(c, &live, follows);
	driver_ledger_fill(c, &live);
	hd_live_put(&live, HD_LIVE_SOCKET, w);
	return HD_OK;
}

static enum hd_err answer_stop(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	bool now = false;
	enum hd_err err = hd_json_find(ask, "now") ? hd_json_get_bool(ask, "now", &now, diag) : HD_OK;

	(void)w;
	if (!err)
		err = driver_halt(c, (uint32_t)hd_err_exit(HD_E_PREEMPTED), "somebody asked it to stop",
			diag);
	if (!err && now) {
		c->exit_code = (uint32_t)hd_err_exit(HD_E_PREEMPTED);
		snprintf(c->exit_text, sizeof c->exit_text, "stopped at step %llu",
			(unsigned long long)c->end.step);
		c->over = true;
	}
	return err;
}

static enum hd_err answer_drain(struct driver *c, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	int64_t id = 0;
	enum hd_err err = hd_json_get_i64(ask, "worker", 0, INT32_MAX, &id, diag);
	struct hd_co_worker_status worker[HD_MAX_WORKERS];
	uint32_t n = c->machine ? hd_coordinator_workers(c->machine, worker, HD_MAX_WORKERS) : 0;

	(void)w;
	for (uint32_t i = 0; i < n && !err; i++)
		if (worker[i].worker == (uint32_t)id && worker[i].state != HD_W_OUT &&
			worker[i].state != HD_W_FREE) {
			driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_DRAIN, .worker = (uint32_t)id,
				.code = (uint32_t)hd_err_exit(HD_E_PREEMPTED) });
			return HD_OK;
		}
	return err ? err : hd_fail(diag, HD_E_INVAL, "there is no worker %lld; `heddle status` lists them",
		(long long)id);
}

enum hd_err driver_answer(void *self, const char *what, const struct hd_json *ask, struct hd_json_writer *w,
	struct hd_diag *diag)
{
	static const struct {
		const char *what;
		enum hd_err (*answer)(struct driver *, const struct hd_json *, struct hd_json_writer *,
			struct hd_diag *);
	} row[] = {
		{ "status", answer_status }, { "scale", answer_scale }, { "stop", answer_stop }, { "drain", answer_drain },
		{ "become", driver_answer_become }, { "replace", driver_answer_replace },
		{ "shape", driver_answer_shape }, { "record", driver_answer_record }, { "dump", driver_answer_dump },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(row[i].what, what))
			return row[i].answer(self, ask, w, diag);
	return hd_fail(diag, HD_E_INVAL, "unknown request \"%s\"", what);
}
