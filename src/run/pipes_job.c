#include "run/pipes.h"

#include "pipeline/generate.h"
#include "protocol/passes.h"
#include "run/kept_job.h"
#include "run/pipes_int.h"
#include "run/pipes_listed.h"

/* What a run's job says of its pipelines: settled at a start, changed on the way, kept in its folder. */

static enum hd_err put_number(struct hd_job_value *value, uint32_t n, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	hd_text_addf(&text, "%u", n);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a number of the job");
	value->is_auto = value->is_standard = false;
	value->i = n;
	value->text = text.at;
	return HD_OK;
}

/* Of a mode that leaves it open: the most devices of one worker that the shards can be shared out to. */
static enum hd_err settle_tensor(struct hd_job *job, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *tensor = &job->value[HD_JOB_PAR_TENSOR];
	const uint32_t shards = (uint32_t)hd_job_int(job, HD_JOB_SHARDS);
	uint32_t t = ndevices < HD_MAX_TENSOR ? ndevices : HD_MAX_TENSOR;

	if (!tensor->is_auto || hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_TENSOR)
		return HD_OK;
	while (t > 1 && (shards % t || ndevices % t))
		t--;
	return t > 1 ? put_number(tensor, t, arena, diag) : hd_fail(diag, HD_E_INVAL,
		"parallel.mode: tensor shares %u shards (model.shards) out over the %u device%s of a worker: "
		"no number above 1 divides both; give each worker --devices %u, or another divisor", shards,
		ndevices, ndevices == 1 ? "" : "s", shards);
}

/* On how many workers the devices of a rank lie. */
static enum hd_err settle_groups(struct hd_job *job, uint32_t t, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = &job->value[HD_JOB_PAR_GROUPS];
	const uint32_t n = !value->is_auto ? (uint32_t)value->i : ndevices % t == 0 ? 1 : t / ndevices;

	if (!value->is_auto && t % n)
		return hd_fail(diag, HD_E_INVAL,
			"parallel.groups is %u, which does not divide the %u devices of a rank "
			"(parallel.tensor); give a number that does, or auto", n, t);
	if (!value->is_auto && ndevices % (t / n))
		return hd_fail(diag, HD_E_INVAL,
			"a rank has %u devices on each of %u workers (parallel.tensor, parallel.groups), and "
			"a worker has %u: give each --devices %u or a multiple, or -s parallel.groups=auto",
			t / n, n, ndevices, t / n);
	if (!n || t % n || ndevices % (t / n))
		return hd_fail(diag, HD_E_INVAL,
			"a rank is %u devices (parallel.tensor), and a worker has %u: give each --devices "
			"%u, or a number that divides %u", t, ndevices, (ndevices / t + 1) * t, t);
	return put_number(value, n, arena, diag);
}

static enum hd_err lies_on(uint32_t ranks, uint32_t width, uint32_t most, struct hd_diag *diag)
{
	return (uint64_t)(ranks < width ? ranks : width) * most <= HD_MAX_PASSES ? HD_OK : hd_fail(diag,
		HD_E_INVAL, "%u ranks of a worker with %u stages each: at most %d stages lie on one worker; "
		"give it fewer devices, and the run more workers", ranks, most, HD_MAX_PASSES);
}

/* A run begins with all pipelines of its file; one that is resumed has what is left of its devices. */
static enum hd_err settle_listed(struct hd_job *job, uint32_t nworkers, uint32_t ndevices,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_value *width = &job->value[HD_JOB_PAR_WIDTH];
	struct hd_listed l;
	enum hd_err err = hd_pipes_listed(&l, job, arena, diag);

	if (err)
		return err;
	const uint32_t d = width->is_auto ? l.d : 1, need = d * l.p * l.t;
	if ((uint64_t)nworkers * ndevices < need)
		return hd_fail(diag, HD_E_INVAL,
			"%u pipeline%s of the plan (parallel.plan) %s %u devices, and %u worker%s ha%s %u: "
			"use --workers %u or more (those beyond the plan's %u devices wait), or "
			"parallel.mode: pipeline without a plan", d, d == 1 ? "" : "s",
			d == 1 ? "has" : "have", need, nworkers, nworkers == 1 ? "" : "s",
			nworkers == 1 ? "s" : "ve",
			nworkers * ndevices, (need + ndevices - 1) / ndevices, l.d * l.p * l.t);
	err = settle_groups(job, l.t, ndevices, arena, diag);
	if (err)
		return err;
	const uint32_t n = (uint32_t)job->value[HD_JOB_PAR_GROUPS].i;
	err = lies_on(ndevices / (l.t / n), l.p * n, l.most, diag);
	return err ? err : put_number(width, l.p, arena, diag);
}

/* Devices that have a place at the start. With elastic.standby those that no whole pipeline of the job's
 * stages takes stand by; a job that leaves its stages open has as many as there are devices. */
static enum hd_err count_placed(uint32_t *placed, const struct hd_job *job, uint32_t all,
	struct hd_diag *diag)
{
	const struct hd_job_value *replicas = &job->value[HD_JOB_PAR_REPLICAS];
	struct hd_run_stages s;

	*placed = all;
	if (hd_job_int(job, HD_JOB_STANDBY) == HD_STANDBY_NONE || (job->value[HD_JOB_PAR_STAGES].is_auto &&
		job->value[HD_JOB_PAR_COPIES].is_none))
		return HD_OK;
	enum hd_err err = hd_run_stages(&s, job, 0, all, diag);
	if (err)
		return err;
	const uint32_t each = s.p * s.t, many = all / each, most = replicas->is_auto ? job->nvns :
		(uint32_t)replicas->i;
	const uint32_t used = each * (many < most ? many : most);
	*placed = used ? used : all;
	return HD_OK;
}

enum hd_err hd_pipes_settle(struct hd_job *job, uint32_t nworkers, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *width = &job->value[HD_JOB_PAR_WIDTH];
	struct hd_run_stages s;

	if (!hd_job_has_stages(job))
		return HD_OK;
	if (hd_job_is_listed(job))
		return settle_listed(job, nworkers, ndevices, arena, diag);
	uint32_t all = nworkers * ndevices;
	enum hd_err err = settle_tensor(job, ndevices, arena, diag);
	err = err ? err : count_placed(&all, job, all, diag);
	err = err ? err : hd_run_stages(&s, job, all, all, diag);
	err = err ? err : settle_groups(job, s.t, ndevices, arena, diag);
	if (err)
		return err;
	const uint32_t n = (uint32_t)job->value[HD_JOB_PAR_GROUPS].i;
	err = lies_on(ndevices / (s.t / n), s.p * n, s.v, diag);
	return err ? err : put_number(width, s.p, arena, diag);
}

static bool set(const struct hd_job *job, int key) { return job->value[key].origin == HD_FROM_SET; }

/* Stages with copies that were chosen stay as if the keys asked for them. */
static enum hd_err put_copies(struct hd_job *job, const struct hd_job_settled *s, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_view_shape shape = { .nstages = s->stages, .width = s->width };

	for (uint32_t i = 0, at = 0; i < s->stages; at += s->copies[i++])
		shape.place[i] = (uint8_t)at;
	if (s->recompute && !set(job, HD_JOB_PAR_RECOMPUTE))
		hd_pipes_say_recompute(job, true);
	return hd_pipes_say_copies(job, &shape, arena, diag);
}

/* What was chosen and stays comes from the keys from here on. */
static enum hd_err leave_settled(struct hd_job *job, struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_job_value *settled = &job->value[HD_JOB_PAR_SETTLED];
	const struct hd_schedule_kind *kind = NULL;
	struct hd_job_settled s;

	if (settled->is_none || !hd_job_settled(&s, settled->text) ||
		hd_schedule_kind_find(&kind, s.schedule, NULL))
		return HD_OK;
	settled->is_none = true;
	settled->text = "none";
	/* the shape's keys below are of this order */
	if (s.has_copies && !set(job, HD_JOB_PAR_COPIES) && !set(job, HD_JOB_PAR_STAGES) &&
		!set(job, HD_JOB_PAR_CHUNKS) && !set(job, HD_JOB_PAR_SCHEDULE))
		return put_copies(job, &s, arena, diag);
	if (s.has_copies)
		return HD_OK;
	if (s.recompute && !set(job, HD_JOB_PAR_RECOMPUTE))
		hd_pipes_say_recompute(job, true);
	if (s.tensor && !set(job, HD_JOB_PAR_TENSOR)) {
		hd_pipes_say(job, HD_JOB_PAR_TENSOR, s.tensor);
		if (!set(job, HD_JOB_PAR_GROUPS))
			hd_pipes_say(job, HD_JOB_PAR_GROUPS, s.groups ? s.groups : 1);
	}
	if (s.stages == 1 || set(job, HD_JOB_PAR_SCHEDULE))
		return HD_OK;
	hd_pipes_say(job, HD_JOB_PAR_SCHEDULE, 0);
	job->value[HD_JOB_PAR_SCHEDULE].text = kind->name;
	if (!set(job, HD_JOB_PAR_CHUNKS))
		hd_pipes_say(job, HD_JOB_PAR_CHUNKS, s.stages / s.width);
	return HD_OK;
}

/* Copies give way to other stages, and other stages to copies. */
static void leave_copies(struct hd_job *job)
{
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	struct hd_job_value *value = job->value, *copies = &value[HD_JOB_PAR_COPIES],
		*schedule = &value[HD_JOB_PAR_SCHEDULE];

	if (set(job, HD_JOB_PAR_COPIES)) {
		for (int k = 0; k < 2; k++) {
			const int key = k ? HD_JOB_PAR_CHUNKS : HD_JOB_PAR_SCHEDULE;
			value[key] = set(job, key) ? value[key] : open;
		}
		return;
	}
	if (copies->is_none || !(set(job, HD_JOB_PAR_STAGES) || set(job, HD_JOB_PAR_CHUNKS) ||
		set(job, HD_JOB_PAR_SCHEDULE)))
		return;
	copies->is_none = true;
	copies->text = "none";
	*schedule = set(job, HD_JOB_PAR_SCHEDULE) ? *schedule : open;
}

/* From a plan file to pipelines that the keys ask for; the way back needs the file at every worker. The job
 * keeps the lists: until the next view those that come, or take over, need them. */
static bool leaves_lists(const struct hd_job *job)
{
	return !job->value[HD_JOB_PAR_LISTS].is_none && hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_PIPELINE;
}

static enum hd_err refuse_key(int key, struct hd_diag *diag)
{
	if (key == HD_JOB_SHARDS || key == HD_JOB_SEQUENCE_SHARDS)
		return hd_fail(diag, HD_E_INVAL,
			"%s.%s says in which parts sums are made, and so the bits of the result: it is part "
			"of the job, and another one is another run; parallel.tensor, how many devices "
			"share these parts, changes to any number that divides theirs",
			hd_job_keys[key].table, hd_job_keys[key].key);
	return hd_fail(diag, HD_E_INVAL,
		"%s.%s does not change while a run goes on: stop it and resume it with that; "
		"parallel.stages, chunks, copies, schedule, replicas, tensor, groups and recompute, and "
		"elastic.redundancy do",
		hd_job_keys[key].table, hd_job_keys[key].key);
}

/* With another number of devices in a rank these lie on as few workers as can be. */
static enum hd_err change_tensor(struct hd_job *job, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_job_value *value = job->value, *tensor = &value[HD_JOB_PAR_TENSOR];

	if (!set(job, HD_JOB_PAR_TENSOR) && !set(job, HD_JOB_PAR_GROUPS))
		return HD_OK;
	if (!set(job, HD_JOB_PAR_GROUPS))
		value[HD_JOB_PAR_GROUPS].is_auto = true;
	enum hd_err err = settle_tensor(job, ndevices, arena, diag);
	return err ? err : settle_groups(job, tensor->is_auto ? 1 : (uint32_t)tensor->i, ndevices, arena,
		diag);
}

enum hd_err hd_pipes_change(struct hd_job *job, uint32_t width, uint32_t ndevices, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const enum hd_job_key changes[] = { HD_JOB_PAR_STAGES, HD_JOB_PAR_CHUNKS,
		HD_JOB_PAR_SCHEDULE, HD_JOB_PAR_REPLICAS, HD_JOB_PAR_TENSOR, HD_JOB_PAR_GROUPS,
		HD_JOB_PAR_RECOMPUTE, HD_JOB_PAR_COPIES, HD_JOB_REDUNDANCY };
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	struct hd_job_value *value = job->value;

	const bool leaves = leaves_lists(job);
	for (int key = 0; key < HD_JOB_NKEYS; key++) {
		bool any = !set(job, key) || (leaves && (key == HD_JOB_PAR_MODE || key == HD_JOB_PAR_PLAN));
		for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
			any |= key == (int)changes[i];
		if (!any)
			return refuse_key(key, diag);
	}
	enum hd_err err = change_tensor(job, ndevices, arena, diag);
	if (err)
		return err;
	if (set(job, HD_JOB_PAR_SCHEDULE) && !set(job, HD_JOB_PAR_CHUNKS))
		value[HD_JOB_PAR_CHUNKS] = open;
	leave_copies(job);
	err = leave_settled(job, arena, diag);
	if (err)
		return err;
	if (!value[HD_JOB_PAR_COPIES].is_none) {
		value[HD_JOB_PAR_STAGES] = value[HD_JOB_PAR_WIDTH] = value[HD_JOB_PAR_CHUNKS] = open;
		return HD_OK;
	}
	if (set(job, HD_JOB_PAR_STAGES)) {
		value[HD_JOB_PAR_WIDTH] = open;
		return HD_OK;
	}
	value[HD_JOB_PAR_STAGES] = open;
	return put_number(&value[HD_JOB_PAR_WIDTH], width, arena, diag);
}

enum hd_err hd_pipes_keep_shape(struct hd_rundir *dir, const struct hd_job *job, const struct hd_pipes *pipes,
	struct hd_arena *arena, struct hd_diag *diag)
{
	static const struct hd_job_value open = { .is_auto = true, .text = "auto" };
	enum { STAGES, WIDTH, CHUNKS };
	/* one stage has no order of its own, and a plan file says it by itself */
	const bool staged = hd_run_stages_n(&pipes->stages) > 1 && !pipes->stages.listed;
	struct hd_kept_value value[] = { { HD_JOB_PAR_STAGES, open }, { HD_JOB_PAR_WIDTH, { .i = 0 } },
		{ HD_JOB_PAR_CHUNKS, open },
		{ HD_JOB_PAR_SCHEDULE, staged ? (struct hd_job_value){ .text = pipes->stages.schedule } :
			open },
		{ HD_JOB_PAR_REPLICAS, job->value[HD_JOB_PAR_REPLICAS] },
		{ HD_JOB_PAR_MODE, job->value[HD_JOB_PAR_MODE] },
		{ HD_JOB_PAR_PLAN, job->value[HD_JOB_PAR_PLAN] },
		{ HD_JOB_PAR_LISTS, job->value[HD_JOB_PAR_LISTS] },
		{ HD_JOB_PAR_TENSOR, job->value[HD_JOB_PAR_TENSOR] },
		{ HD_JOB_PAR_GROUPS, job->value[HD_JOB_PAR_GROUPS] },
		{ HD_JOB_PAR_RECOMPUTE, job->value[HD_JOB_PAR_RECOMPUTE] },
		{ HD_JOB_PAR_SETTLED, job->value[HD_JOB_PAR_SETTLED] },
		{ HD_JOB_PAR_COPIES, job->value[HD_JOB_PAR_COPIES] },
		{ HD_JOB_REDUNDANCY, job->value[HD_JOB_REDUNDANCY] },
		{ HD_JOB_RESILIENCE, job->value[HD_JOB_RESILIENCE] } };
	enum hd_err err = put_number(&value[WIDTH].value, pipes->stages.p, arena, diag);

	/* of devices of a rank alone it would follow that there is one */
	if (!err && staged && pipes->stages.t > 1 && hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_GIVEN)
		err = put_number(&value[STAGES].value, hd_run_stages_n(&pipes->stages), arena, diag);
	/* those of the schedule are left open: so another one has its own */
	if (!err && !pipes->stages.listed &&
		pipes->stages.v != hd_schedule_kinds[hd_shape_order(&pipes->shape)].vmin)
		err = put_number(&value[CHUNKS].value, pipes->stages.v, arena, diag);
	for (size_t i = 0; i < sizeof value / sizeof *value; i++)
		value[i].value.type = job->value[value[i].key].type;
	return err ? err : hd_kept_job_put(dir, value, sizeof value / sizeof *value, arena, diag);
}

enum hd_err hd_pipes_keep(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_kept_value value[] = { { HD_JOB_PAR_WIDTH, job->value[HD_JOB_PAR_WIDTH] },
		{ HD_JOB_PAR_LISTS, job->value[HD_JOB_PAR_LISTS] },
		{ HD_JOB_PAR_GROUPS, job->value[HD_JOB_PAR_GROUPS] },
		{ HD_JOB_PAR_TENSOR, job->value[HD_JOB_PAR_TENSOR] } };

	return hd_job_has_stages(job) ? hd_kept_job_put(dir, value, sizeof value / sizeof *value, arena,
		diag) : HD_OK;
}
