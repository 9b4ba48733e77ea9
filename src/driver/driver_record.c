#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "sys/thread.h"
#include "checkpoint/ckpt.h"
#include "engine/lockstep.h"
#include "run/kept_plan.h"
#include "run/plan_xfers.h"

enum { RECORD_MEMBERSHIP = 1, RECORD_KERNELS, RECORD_BEGAN, RECORD_POLICY, RECORD_PACES, RECORD_METER };
enum {
	RECORD_HEAD = 8 + 5 * 4 + 2,
	RECORD_TAIL = RECORD_HEAD + HD_MAX_WORKERS * 4,
	RECORD_HALT = RECORD_TAIL + 12,    /* and the bytes that it had before it said what a halt is for */
	RECORD_GOING = RECORD_HALT + 6 + HD_MSG_TEXT,
	RECORD_UNFIT = RECORD_GOING + 4 + HD_MAX_WORKERS * 4,     /* likewise: refusals */
	RECORD_BEFORE = RECORD_HEAD + HD_MAX_MEMBERS * 4, /* bytes that it had before disputes were counted */
};

_Static_assert(DRIVER_RECORD_BYTES == RECORD_UNFIT + 4 + HD_CO_UNFIT * 12, "what driver_int.h says");

void driver_record_put(const struct hd_co_record *r, uint8_t bytes[DRIVER_RECORD_BYTES])
{
	memset(bytes, 0, DRIVER_RECORD_BYTES);
	hd_put64(bytes, r->serial);
	hd_put32(bytes + 8, r->term);
	hd_put32(bytes + 12, r->epoch);
	hd_put32(bytes + 16, r->next_worker);
	hd_put32(bytes + 20, r->target);
	hd_put32(bytes + 24, r->nmembers);
	bytes[28] = r->started;
	bytes[29] = r->halting;
	for (uint32_t i = 0; i < r->nmembers; i++)
		hd_put32(bytes + RECORD_HEAD + 4 * (size_t)i, r->member[i]);
	hd_put32(bytes + RECORD_TAIL, r->mismatches);
	hd_put64(bytes + RECORD_TAIL + 4, r->mismatched);
	hd_put32(bytes + RECORD_HALT, r->halt_code);
	hd_put16(bytes + RECORD_HALT + 4, (uint16_t)strlen(r->halt_why));
	memcpy(bytes + RECORD_HALT + 6, r->halt_why, strlen(r->halt_why));
	hd_put32(bytes + RECORD_GOING, r->ngoing);
	for (uint32_t i = 0; i < r->ngoing; i++)
		hd_put32(bytes + RECORD_GOING + 4 + 4 * (size_t)i, r->going[i]);
	hd_put32(bytes + RECORD_UNFIT, r->nunfit);
	for (uint32_t i = 0; i < r->nunfit; i++) {
		hd_put32(bytes + RECORD_UNFIT + 4 + 12 * (size_t)i, r->unfit[i].worker);
		hd_put64(bytes + RECORD_UNFIT + 8 + 12 * (size_t)i, r->unfit[i].shape);
	}
}

/* Records of earlier programs lack the reason: take that of a stop, a drain or an expired lease. */
static void get_halt_of_before(struct hd_co_record *r)
{
	if (!r->halting)
		return;
	r->halt_code = (uint32_t)hd_err_exit(HD_E_PREEMPTED);
	snprintf(r->halt_why, sizeof r->halt_why, "it was asked to stop");
}

static bool get_halt(struct hd_co_record *r, const uint8_t *bytes)
{
	uint32_t n = hd_get16(bytes + RECORD_HALT + 4);

	r->halt_code = hd_get32(bytes + RECORD_HALT);
	r->ngoing = hd_get32(bytes + RECORD_GOING);
	if (n > HD_MSG_TEXT || r->halt_code > UINT8_MAX || r->ngoing > HD_MAX_WORKERS)
		return false;
	memcpy(r->halt_why, bytes + RECORD_HALT + 6, n);
	for (uint32_t i = 0; i < r->ngoing; i++)
		r->going[i] = hd_get32(bytes + RECORD_GOING + 4 + 4 * (size_t)i);
	return true;
}

static bool get_unfit(struct hd_co_record *r, const uint8_t *bytes)
{
	r->nunfit = hd_get32(bytes + RECORD_UNFIT);
	if (r->nunfit > HD_CO_UNFIT)
		return false;
	for (uint32_t i = 0; i < r->nunfit; i++)
		r->unfit[i] = (struct hd_co_unfit){ hd_get32(bytes + RECORD_UNFIT + 4 + 12 * (size_t)i),
			hd_get64(bytes + RECORD_UNFIT + 8 + 12 * (size_t)i) };
	return true;
}

enum hd_err driver_record_get(struct hd_co_record *r, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	uint32_t most = len > RECORD_BEFORE ? HD_MAX_WORKERS : HD_MAX_MEMBERS;

	if ((len != RECORD_BEFORE && len != RECORD_HALT && len != RECORD_UNFIT &&
		len != DRIVER_RECORD_BYTES) ||
		hd_get32(bytes + 24) > most || bytes[28] > 1 || bytes[29] > 1)
		return hd_fail(diag, HD_E_INTEGRITY, "the coordinator's record is not of this program");
	*r = (struct hd_co_record){ .serial = hd_get64(bytes), .term = hd_get32(bytes + 8),
		.epoch = hd_get32(bytes + 12),
		.next_worker = hd_get32(bytes + 16), .target = hd_get32(bytes + 20),
		.nmembers = hd_get32(bytes + 24), .started = bytes[28],
		.halting = bytes[29] };
	for (uint32_t i = 0; i < r->nmembers; i++)
		r->member[i] = hd_get32(bytes + RECORD_HEAD + 4 * (size_t)i);
	if (len > RECORD_BEFORE) {
		r->mismatches = hd_get32(bytes + RECORD_TAIL);
		r->mismatched = hd_get64(bytes + RECORD_TAIL + 4);
	}
	if (len < RECORD_UNFIT)
		get_halt_of_before(r);
	else if (!get_halt(r, bytes) || (len == DRIVER_RECORD_BYTES && !get_unfit(r, bytes)))
		return hd_fail(diag, HD_E_INTEGRITY, "the coordinator's record is not of this program");
	return HD_OK;
}

void driver_record_resume(struct hd_co_record *r)
{
	r->mismatches = r->nunfit = 0;
	if (!r->halting)
		return;
	r->halting = r->started = false;
	r->halt_code = r->nmembers = r->ngoing = 0;
	r->halt_why[0] = '\0';
}

/* Without it the next coordinator would wait workers.detect for the status of each. */
void driver_keep_end(struct driver *c)
{
	uint8_t bytes[DRIVER_RECORD_BYTES];
	struct hd_co_record r;
	size_t len = 0;

	if (hd_store_get(c->store, RECORD_MEMBERSHIP, bytes, sizeof bytes, &len, NULL) ||
		driver_record_get(&r, bytes, len, NULL) || r.halting)
		return;
	r.started = false;                /* what begins again begins at the newest checkpoint */
	r.nmembers = r.ngoing = 0;
	r.serial++;
	(void)!driver_keep_record(c, &r, NULL);
}

static enum hd_err read_store(struct driver *c, struct hd_diag *diag)
{
	uint8_t bytes[DRIVER_RECORD_BYTES];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, RECORD_MEMBERSHIP, bytes, sizeof bytes, &len, diag);

	if (!err)
		err = driver_record_get(&c->config.record, bytes, len, diag);
	if (!err)
		err = hd_store_get(c->store, RECORD_KERNELS, &c->config.kernels, sizeof c->config.kernels,
			&len, diag);
	c->has_kernels = !err;
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

/* Before a worker starts. A run that has not begun has no state in any worker: it starts from the newest
 * checkpoint. */
static enum hd_err keep_beginning(struct driver *c, struct hd_diag *diag)
{
	struct hd_ckpt_info info;

	if (!c->config.record.started && c->spec->target)
		driver_begins_at(c, c->config.step);
	if (c->config.record.started)
		driver_goes_on_at(c, c->config.step);
	if (c->spec->target) {
		c->config.record.serial++;
		return driver_keep_record(c, &c->config.record, diag);
	}
	if (!c->config.record.serial)
		return hd_fail(diag, HD_E_AGAIN,
			"%s: its coordinator ended before it wrote down how many workers are wanted; "
			"`heddle resume %s --workers N` "
			"begins it", c->spec->dir->path, c->spec->dir->path);
	if (!c->config.record.started && !hd_ckpt_find(c->spec->fs, c->spec->dir->path, UINT64_MAX, &info,
		NULL, NULL, NULL))
		c->config.step = c->end.step = info.step;
	if (!c->config.record.started)
		driver_begins_at(c, c->config.step);
	return HD_OK;
}

/* The zero of "t" is the beginning of the run, whichever driver writes: the first keeps when its own zero
 * was, not this moment, which comes later by what it had to do before. */
enum hd_err driver_set_began(struct driver *c, struct hd_diag *diag)
{
	const int64_t passed = hd_clock_now_ns(c->spec->clock) - c->spec->dir->began_ns;
	const int64_t began = hd_clock_wall_ns(c->spec->clock) - passed;
	int64_t age = 0;
	uint8_t bytes[8];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, RECORD_BEGAN, bytes, sizeof bytes, &len, diag);

	if (err == HD_E_NOTFOUND) {
		hd_put64(bytes, (uint64_t)began);
		return hd_store_put(c->store, RECORD_BEGAN, bytes, sizeof bytes, diag);
	}
	if (!err && len != sizeof bytes)
		err = hd_fail(diag, HD_E_INTEGRITY,
			"the record of when the run began is not of this program");
	if (!err)
		age = began - (int64_t)hd_get64(bytes);
	c->spec->dir->began_ns -= age > 0 ? age : 0;
	c->recorded = hd_rundir_recorded(c->spec->dir);
	c->had_lines = c->recorded;
	c->config.verified = hd_rundir_verified(c->spec->dir);
	return err;
}

/* How fast workers were under the coordinator before: shares need not be even until they are measured
 * again. */
static enum hd_err set_paces(struct driver *c, struct hd_diag *diag)
{
	uint8_t bytes[HD_PACE_BYTES];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, RECORD_PACES, bytes, sizeof bytes, &len, diag);

	if (!err) {
		char text[80];
		hd_pace_take(&c->reshape.pace, bytes, len);
		snprintf(text, sizeof text, "this coordinator goes on with the paces of %zu workers",
			len / HD_PACE_ENTRY);
		driver_note(c, "paces", HD_NOBODY, text);
	}
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

/* Best effort: a store that fails is reported by the records that must be stored. */
void driver_keep_paces(struct driver *c)
{
	uint8_t bytes[HD_PACE_BYTES];
	size_t len = hd_pace_put(&c->reshape.pace, bytes);

	if (len)
		(void)!hd_store_put(c->store, RECORD_PACES, bytes, len, NULL);
}

void driver_keep_meter(struct driver *c, const uint8_t *bytes, size_t len)
{
	(void)!hd_store_put(c->store, RECORD_METER, bytes, len, NULL);
}

static enum hd_err set_meter(struct driver *c, struct hd_diag *diag)
{
	uint8_t bytes[HD_METER_CLOCK_BYTES + HD_METER_BYTES];
	size_t len = 0;
	enum hd_err err = hd_store_get(c->store, RECORD_METER, bytes, sizeof bytes, &len, diag);

	driver_ledger_open(c, bytes, err ? 0 : len);
	return err == HD_E_NOTFOUND ? HD_OK : err;
}

void driver_keep(struct driver *c, enum driver_keeps what, const uint8_t *bytes, size_t len)
{
	if (c->store)
		(void)!hd_store_put(c->store, what, bytes, len, NULL);
}

size_t driver_kept(struct driver *c, enum driver_keeps what, uint8_t *bytes, size_t cap)
{
	size_t len = 0;

	return c->store && !hd_store_get(c->store, what, bytes, cap, &len, NULL) ? len : 0;
}

void driver_keep_plan(struct driver *c)
{
	const struct hd_view *view = hd_coordinator_view(c->machine);
	const struct hd_task *task = c->spec->task;
	char text[700];

	if (!view || view->epoch == c->planned)
		return;
	c->planned = view->epoch;
	if (!hd_pipes_step(&c->pipes.first, view) || hd_view_is_doubled(view))
		return;
	const struct hd_pipes *pipes = NULL;
	struct hd_diag why = { "" };
	enum hd_err err = hd_pipe_set_find(&c->pipes, &view->shape, &pipes, &why);
	if (!err)
		driver_keep_predicted(c, view, pipes);
	if (hd_view_writer(view) != HD_NOBODY)
		return;
	struct hd_plan_job job = hd_plan_job_whole(task->job->nvns, task->layout.nchunks);
	struct hd_arena arena;
	struct hd_plan plan;
	job.lockstep = hd_lockstep_meetings(&task->train) > 0;
	hd_arena_init(&arena, 0);
	err = err ? err : hd_pipes_plan(&plan, pipes, view, &job, task, &arena, &why);
	err = err ? err : hd_plan_xfers(&plan, pipes, view, task, &arena, &why);
	err = err ? err : hd_plan_keep(&plan, c->spec->fs, c->spec->dir->path, &why);
	hd_arena_finish(&arena);
	snprintf(text, sizeof text, "plan %u is not in the run's folder: %s", view->epoch, why.text);
	if (err && !c->unkept)
		driver_note(c, "warning", HD_NOBODY, text);
	c->unkept |= err != HD_OK;
}

/* The job's policy, or what a user said since. */
static enum hd_err set_scaler(struct driver *c, struct hd_diag *diag)
{
	/* words of elastic.autoscale.policy */
	static const char *const row[] = { NULL, "curve", "ae-2020" };
	const struct hd_job *job = c->spec->task->job;
	char kept[32] = "";
	size_t len = 0;

	struct hd_cores cores;
	hd_cores_usable(&cores);
	/* that are started here */
	uint32_t most = cores.n > c->config.target ? cores.n : c->config.target;
	c->scaler = (struct hd_scaler){ .nvns = job->nvns, .min = c->config.min,
		.max = c->config.max < most ? c->config.max : most,
		.objective = hd_job_int(job, HD_JOB_AUTOSCALE_OBJECTIVE) ? HD_OBJECTIVE_COST :
		HD_OBJECTIVE_TIME,
		.every = (uint32_t)hd_job_int(job, HD_JOB_AUTOSCALE_EVERY),
		.price_usd_h = hd_job_num(job, HD_JOB_AUTOSCALE_PRICE),
		.detect_ns = c->detect_ns };
	enum hd_err err = hd_store_get(c->store, RECORD_POLICY, kept, sizeof kept - 1, &len, diag);
	if (err && err != HD_E_NOTFOUND)
		return err;
	const char *policy = err ? row[hd_job_int(job, HD_JOB_AUTOSCALE)] : !strcmp(kept, "off") ? NULL :
		kept;
	return hd_scaler_turn(&c->scaler, policy, diag);
}

static enum hd_err set_straggler(struct driver *c, struct hd_diag *diag)
{
	/* words of elastic.straggler.replace */
	static const char *const rule[] = { NULL, "ours", "ae-2020" };

	return hd_straggler_init(&c->straggler, rule[hd_job_int(c->spec->task->job,
		HD_JOB_STRAGGLER_REPLACE)], diag);
}

/* Epochs number plans in the run's folder, where a run in one process may have left some since: the next
 * is of no plan yet. */
static void pass_plans(struct driver *c)
{
	struct hd_co_record *r = &c->config.record;
	uint32_t newest;

	if (!r->nmembers && !hd_plan_newest(&newest, c->spec->fs, c->spec->dir->path, NULL) &&
		newest > r->epoch && newest < UINT32_MAX / 2)
		r->epoch = newest;
}

/* Devices that have work by one virtual node: each of a pipeline, however few virtual nodes there are. */
static uint64_t devices_of_one(const struct hd_job *job)
{
	const struct hd_job_value *stages = &job->value[HD_JOB_PAR_STAGES], *width =
		&job->value[HD_JOB_PAR_WIDTH];
	struct hd_job_settled s;

	if (hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO)
		return hd_job_has_settled(job, &s) && !hd_job_has_pipes(job) ? 1 : HD_MAX_MEMBERS;
	if (!hd_job_has_stages(job))
		return 1;
	const struct hd_job_value *groups = &job->value[HD_JOB_PAR_GROUPS];
	const uint64_t n = groups->is_auto ? 1 : (uint64_t)groups->i;
	if (!stages->is_auto)
		return (uint64_t)stages->i * n;
	return width->is_auto ? HD_MAX_MEMBERS : (uint64_t)width->i * n;
}

enum hd_err hd_driver_bounds(const struct hd_job *job, uint32_t *min, uint32_t *max, struct hd_diag *diag)
{
	const struct hd_job_value *asked = &job->value[HD_JOB_MAX_WORKERS];
	const uint64_t can = job->nvns * devices_of_one(job);
	const uint32_t most = can < HD_MAX_MEMBERS ? (uint32_t)can : HD_MAX_MEMBERS;

	*min = (uint32_t)hd_job_int(job, HD_JOB_MIN_WORKERS);
	*max = asked->is_auto || asked->i > most ? most : (uint32_t)asked->i;
	return *min <= *max ? HD_OK
		: hd_fail(diag, HD_E_INVAL,
			"workers.min is %u, more than the %u workers that this job can use", *min, *max);
}

enum hd_err hd_driver_takes(const struct hd_job *job, uint32_t nworkers, struct hd_diag *diag)
{
	uint32_t min, max;
	enum hd_err err = hd_job_spreads(job, diag);

	err = err ? err : hd_driver_bounds(job, &min, &max, diag);
	return err || (nworkers >= min && nworkers <= max) ? err
		: hd_fail(diag, HD_E_INVAL,
			"%u workers: this job takes from %u (workers.min) to %u (workers.max, or one a "
			"virtual node)", nworkers, min, max);
}

/* Places may wait in a queue for days; where the job says nothing, so does the run. */
#define DRIVER_QUEUE_NS (INT64_C(31536000) * HD_NS_PER_S)

static int64_t min_wait(const struct driver *c)
{
	const struct hd_job *job = c->spec->task->job;

	return c->spec->launcher && job->value[HD_JOB_MIN_WAIT].is_standard ? DRIVER_QUEUE_NS :
		hd_job_int(job, HD_JOB_MIN_WAIT);
}

enum hd_err driver_configure(struct driver *c, struct hd_diag *diag)
{
	const struct hd_job *job = c->spec->task->job;
	uint32_t min, max;
	enum hd_err err = hd_driver_bounds(job, &min, &max, diag);

	err = err ? err : hd_pipe_set_init(&c->pipes, c->spec->task, diag);
	if (err)
		return err;
	err = driver_has_pipelines(&c->pipes.first, job, diag);
	if (err)
		return err;
	c->detect_ns = hd_job_int(job, HD_JOB_DETECT);
	c->config = (struct hd_co_config){ .job = hd_task_alike(c->spec->task), .nvns = job->nvns,
		.nbuckets = hd_layout_nbuckets(&c->spec->task->layout),
		.copies = hd_job_copies(job), .servers = hd_job_servers(job),
		.bytes = c->spec->task->layout.moved,
		.least = hd_job_least_pipelines(job),
		.shape = c->pipes.first.shape, .pipes = c->pipes.first.most,
		.of_shape = c->pipes.first.shape.nstages ? hd_pipe_set_buckets : NULL,
		.of_shape_self = &c->pipes, .shares = hd_pipe_set_shares,
		.bucket_bytes = c->pipes.first.bytes,
		.whole = c->pipes.first.buckets.whole,
		.goes_on = c->pipes.first.shape.nstages > 1 ? driver_goes_on : NULL, .goes_on_self = c,
		.fewer = c->pipes.first.shape.nstages > 1 ? driver_fewer : NULL, .fewer_self = c,
		.lockstep = hd_lockstep_meetings(&c->spec->task->train) > 0,
		.varies = hd_job_int(job, HD_JOB_MODE) == HD_MODE_BOUNDED,
		.min = min, .max = max,
		.detect_ns = c->detect_ns, .min_wait_ns = min_wait(c),
		.nsteps = c->spec->task->nsteps, .step = c->spec->step };
	hd_reshape_init(&c->reshape, job->nvns, (int64_t)(c->spec->task->layout.elems * sizeof(float)),
		hd_job_int(job, HD_JOB_STRAGGLER_ACT) > 0 && !c->config.shape.nstages);
	hd_fairness_init(&c->fairness, hd_job_int(job, HD_JOB_DATA_WINDOW));
	c->config.plan = hd_reshape_plan;
	c->config.plan_self = &c->reshape;
	err = read_store(c, diag);
	if (!err)
		err = driver_set_began(c, diag);
	if (!err)
		err = set_paces(c, diag);
	if (!err)
		err = set_meter(c, diag);
	driver_saving_begin(c);
	driver_guard_begin(c, job);
	driver_guard_go_on(c);
	driver_notice_go_on(c);
	c->config.target = c->spec->target ? c->spec->target : c->config.record.target;
	c->config.record.target = c->config.target;
	if (!err)
		err = set_scaler(c, diag);
	if (!err)
		err = set_straggler(c, diag);
	if (c->spec->target) {
		driver_record_resume(&c->config.record);
		pass_plans(c);
	}
	if (!err && (c->spec->target || c->config.record.serial))
		err = hd_driver_takes(job, c->config.target, diag);
	return err ? err : keep_beginning(c, diag);
}

enum hd_err driver_keep_policy(struct driver *c, const char *policy, struct hd_diag *diag)
{
	const char *was = c->scaler.policy;
	enum hd_err err = hd_scaler_turn(&c->scaler, policy, diag);

	if (err || was == c->scaler.policy)
		return err;
	driver_note(c, "autoscale", HD_NOBODY, policy ? policy : "off: a number was asked for");
	return hd_store_put(c->store, RECORD_POLICY, policy ? policy : "off", strlen(policy ? policy : "off"),
		diag);
}

enum hd_err driver_keep_record(struct driver *c, const struct hd_co_record *record, struct hd_diag *diag)
{
	uint8_t bytes[DRIVER_RECORD_BYTES];

	driver_record_put(record, bytes);
	return hd_store_put(c->store, RECORD_MEMBERSHIP, bytes, sizeof bytes, diag);
}

/* No worker has connected yet: after a takeover wait for members that may, else end at once. */
enum hd_err driver_halt(struct driver *c, uint32_t code, const char *why, struct hd_diag *diag)
{
	struct hd_co_record *r = &c->config.record;

	if (c->machine) {
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_HALT, .code = code, .text = why });
		return HD_OK;
	}
	r->halting = true;
	r->halt_code = code;
	snprintf(r->halt_why, sizeof r->halt_why, "%s", why);
	r->serial++;
	enum hd_err err = driver_keep_record(c, r, diag);
	if (err || !c->spec->target)
		return err;
	c->exit_code = code;
	snprintf(c->exit_text, sizeof c->exit_text, "%s", why);
	c->over = true;
	return HD_OK;
}

/* The machine that is made later begins with what is in the record. */
enum hd_err driver_scale(struct driver *c, uint32_t target, struct hd_diag *diag)
{
	if (c->machine) {
		driver_guard_scales(c, target);
		driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_SCALE, .n = target });
		return HD_OK;
	}
	c->config.record.target = target;
	c->config.record.serial++;
	driver_resize_start(c);
	return driver_keep_record(c, &c->config.record, diag);
}

enum hd_err driver_keep_kernels(struct driver *c, struct hd_diag *diag)
{
	return hd_store_put(c->store, RECORD_KERNELS, &c->config.kernels, sizeof c->config.kernels, diag);
}
