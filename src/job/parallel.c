#include <stdio.h>
#include <string.h>

#include "pipeline/generate.h"
#include "job/int.h"

/* `parallel:` says how, never what: no key of it fixes the result, so none enters the hash. Planners take all
 * that is checked here; what of it can be trained is another question (hd_job_trains). */

/* Keys of which a mode knows nothing; given, they would be ignored. An extent of 1 is no wish. */
static const struct { enum hd_job_key key; const char *modes; } needs[] = {
	{ HD_JOB_PAR_STAGES,    "given|auto|pipeline" },
	{ HD_JOB_PAR_SCHEDULE,  "given|auto|pipeline" },
	{ HD_JOB_PAR_CHUNKS,    "given|auto|pipeline" },
	{ HD_JOB_PAR_COPIES,    "given|auto|pipeline" },
	{ HD_JOB_PAR_TENSOR,    "given|auto|pipeline|tensor" },
	{ HD_JOB_PAR_REPLICAS,  "given|auto|pipeline|tensor" },
	{ HD_JOB_PAR_RECOMPUTE, "given|auto|pipeline|tensor" },
	{ HD_JOB_PAR_OFFLOAD,   "given|pipeline|tensor" },
	{ HD_JOB_PAR_PLANNER,   "given|auto|pipeline|tensor" },
};

static const char *mode_name(const struct hd_job *job) { return hd_job_text(job, HD_JOB_PAR_MODE); }

/* auto, none and 1 ask for nothing. */
static bool asks(const struct hd_job *job, enum hd_job_key key)
{
	const struct hd_job_value *v = &job->value[key];

	switch ((enum hd_job_type)v->type) {
	case HD_T_INT:
		return !v->is_auto && v->i > 1;
	case HD_T_WORD:
		return strcmp(v->text, "auto") != 0 && strcmp(v->text, "none") != 0;
	case HD_T_TEXT: case HD_T_FILE: case HD_T_NUM: case HD_T_SIZE: case HD_T_EVERY: case HD_T_SPAN:
	case HD_T_LIST: case HD_T_NAMES: case HD_T_ARGS:
	case HD_T_CALLS: case HD_T_SPLIT: case HD_T_GROUPS: case HD_T_TERMS:
		break;
	}
	return !v->is_auto && !v->is_none;
}

static enum hd_err check_plan(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	bool is_explicit = hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_EXPLICIT,
		given = !job->value[HD_JOB_PAR_PLAN].is_none;

	hd_job_at(reader, is_explicit ? HD_JOB_PAR_MODE : HD_JOB_PAR_PLAN);
	if (is_explicit && !given)
		return hd_job_refuse(reader,
			"parallel.mode explicit needs parallel.plan: a plan file (heddle plan JOB -o FILE "
			"writes one)");
	if (!is_explicit && given)
		return hd_job_refuse(reader,
			"parallel.plan has no meaning with parallel.mode %s; write mode: explicit",
			mode_name(job));
	return HD_OK;
}

static enum hd_err check_schedule(struct hd_job_reader *reader)
{
	const struct hd_job_value *schedule = &reader->job->value[HD_JOB_PAR_SCHEDULE],
		*chunks = &reader->job->value[HD_JOB_PAR_CHUNKS];
	const struct hd_schedule_kind *kind = NULL;
	struct hd_diag why = { "" };

	hd_job_at(reader, HD_JOB_PAR_SCHEDULE);
	if (schedule->is_auto)
		return HD_OK;
	if (hd_schedule_kind_find(&kind, schedule->text, &why))
		return hd_job_refuse(reader, "parallel.schedule: %.300s", why.text);
	if (kind->update != HD_UPDATE_FLUSH &&
		(int64_t)kind->update != hd_job_int(reader->job, HD_JOB_UPDATE))
		return hd_job_refuse(reader,
			"parallel.schedule: %s delays updates, which is another algorithm: with "
			"optim.update: %s it is an order of work, and the job says %s", kind->name,
			hd_update_names[kind->update], hd_job_text(reader->job, HD_JOB_UPDATE));
	hd_job_at(reader, HD_JOB_PAR_CHUNKS);
	if (!chunks->is_auto && ((uint64_t)chunks->i < kind->vmin || (uint64_t)chunks->i > kind->vmax))
		return hd_job_refuse(reader, "parallel.chunks is %lld; %s has %u to %u model chunks a device",
			(long long)chunks->i, kind->name, kind->vmin,
			kind->vmax);
	return HD_OK;
}

static enum hd_err check_settled(struct hd_job_reader *reader)
{
	const struct hd_job_value *value = &reader->job->value[HD_JOB_PAR_SETTLED];
	const struct hd_schedule_kind *kind = NULL;
	struct hd_job_settled settled;

	hd_job_at(reader, HD_JOB_PAR_SETTLED);
	return value->is_none || (hd_job_settled(&settled, value->text) &&
		!hd_schedule_kind_find(&kind, settled.schedule, NULL)) ? HD_OK : hd_job_refuse(reader,
		"parallel.settled is \"%.80s\"; a run writes it as SCHEDULE STAGES DEVICES NODE,NODE,...: "
		"leave it out", value->text);
}

static enum hd_err check_offload(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_PAR_OFFLOAD);
	return hd_job_int(job, HD_JOB_PAR_OFFLOAD) != HD_OFFLOAD_STAGE ||
		hd_job_int(job, HD_JOB_PAR_RECOMPUTE) != HD_RECOMPUTE_STAGE ? HD_OK : hd_job_refuse(reader,
		"parallel.offload: stage moves activations to a file, and parallel.recompute: stage keeps "
		"none; leave one of them out");
}

static enum hd_err check_extents(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	const struct hd_job_value *stages = &job->value[HD_JOB_PAR_STAGES],
		*tensor = &job->value[HD_JOB_PAR_TENSOR], *groups = &job->value[HD_JOB_PAR_GROUPS];
	int64_t shards = hd_job_int(job, HD_JOB_SHARDS);

	hd_job_at(reader, HD_JOB_PAR_STAGES);
	if (hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_PIPELINE && !stages->is_auto && stages->i == 1)
		return hd_job_refuse(reader,
			"parallel.stages is 1, which is no pipeline; use 2 or more, or mode: data");
	hd_job_at(reader, HD_JOB_PAR_MODE);
	if (hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_TENSOR && shards == 1)
		return hd_job_refuse(reader,
			"parallel.mode tensor shares the shards of an op out, and model.shards is 1; give "
			"it more, or another mode");
	hd_job_at(reader, HD_JOB_PAR_TENSOR);
	if (!tensor->is_auto && shards % tensor->i)
		return hd_job_refuse(reader,
			"parallel.tensor is %lld, which does not divide model.shards %lld: the shards are "
			"part of the job and fix its bits, give parallel.tensor one of their divisors",
			(long long)tensor->i, (long long)shards);
	hd_job_at(reader, HD_JOB_PAR_GROUPS);
	if (!groups->is_auto && groups->i > 1 && tensor->is_auto &&
		hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO)
		return hd_job_refuse(reader,
			"parallel.groups is %lld, and parallel.mode: auto finds the devices of a rank and "
			"where they lie; leave it out, or give parallel.tensor with it",
			(long long)groups->i);
	if (!groups->is_auto && !tensor->is_auto && tensor->i % groups->i)
		return hd_job_refuse(reader,
			"parallel.groups is %lld, which does not divide parallel.tensor %lld",
			(long long)groups->i, (long long)tensor->i);
	return HD_OK;
}

/* They follow from parallel.tensor unless they were given with it. */
static void open_groups(struct hd_job *job)
{
	struct hd_job_value *groups = &job->value[HD_JOB_PAR_GROUPS];

	if (job->value[HD_JOB_PAR_TENSOR].origin == HD_FROM_SET && groups->origin != HD_FROM_SET) {
		groups->is_auto = true;
		groups->text = "auto";
	}
}

enum hd_err hd_job_check_parallel(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;
	char dotted[HD_DOTTED_CAP];

	open_groups(reader->job);
	enum hd_err err = check_plan(reader);

	for (size_t i = 0; i < sizeof needs / sizeof needs[0] && !err; i++) {
		hd_job_at(reader, needs[i].key);
		if (asks(job, needs[i].key) && !hd_job_has_word(needs[i].modes, mode_name(job)))
			err = hd_job_refuse(reader,
				"%s has no meaning with parallel.mode %s; leave one of them out",
				hd_job_dotted(needs[i].key, dotted),
				mode_name(job));
	}
	err = err ? err : check_schedule(reader);
	err = err ? err : hd_job_check_copies(reader);
	err = err ? err : check_settled(reader);
	err = err ? err : check_offload(reader);
	return err ? err : check_extents(reader);
}

bool hd_job_has_tensor(const struct hd_job *job)
{
	return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_TENSOR || asks(job, HD_JOB_PAR_TENSOR);
}

bool hd_job_has_depth(const struct hd_job *job)
{
	return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_PIPELINE || asks(job, HD_JOB_PAR_STAGES) ||
		asks(job, HD_JOB_PAR_SCHEDULE) || asks(job, HD_JOB_PAR_CHUNKS) ||
		asks(job, HD_JOB_PAR_COPIES);
}

bool hd_job_is_listed(const struct hd_job *job)
{
	return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_EXPLICIT && !job->value[HD_JOB_PAR_LISTS].is_none;
}

bool hd_job_has_stages(const struct hd_job *job)
{
	static const enum hd_job_key keys[] = { HD_JOB_PAR_STAGES, HD_JOB_PAR_SCHEDULE, HD_JOB_PAR_CHUNKS,
		HD_JOB_PAR_RECOMPUTE, HD_JOB_PAR_OFFLOAD, HD_JOB_PAR_TENSOR, HD_JOB_PAR_COPIES };
	int64_t mode = hd_job_int(job, HD_JOB_PAR_MODE);
	bool any = mode == HD_PAR_PIPELINE || mode == HD_PAR_TENSOR || hd_job_is_listed(job);

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		any |= (mode == HD_PAR_AUTO || mode == HD_PAR_GIVEN) && asks(job, keys[i]);
	return any;
}

bool hd_job_has_settled(const struct hd_job *job, struct hd_job_settled *settled)
{
	const struct hd_job_value *value = &job->value[HD_JOB_PAR_SETTLED];

	return hd_job_int(job, HD_JOB_PAR_MODE) == HD_PAR_AUTO && !value->is_none &&
		hd_job_settled(settled, value->text);
}

bool hd_job_has_pipes(const struct hd_job *job)
{
	struct hd_job_settled s;

	return hd_job_has_stages(job) || (hd_job_has_settled(job, &s) && (s.stages > 1 || s.tensor));
}

bool hd_job_is_whole(const struct hd_job *job)
{
	return hd_job_copies(job) || hd_job_int(job, HD_JOB_SLICES) > 1 ||
		hd_job_int(job, HD_JOB_BN) == HD_BN_GLOBAL;
}

enum hd_err hd_job_trains(const struct hd_job *job, struct hd_diag *diag)
{
	static const enum hd_job_key keys[] = { HD_JOB_PAR_PLANNER };
	struct hd_job copy = *job;
	struct hd_job_reader reader = { .job = &copy, .diag = diag };
	char dotted[HD_DOTTED_CAP];

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		hd_job_at(&reader, keys[i]);
		if (asks(job, keys[i]))
			return hd_job_refuse(&reader,
				"%s: %s can be planned and not yet run: `heddle plan %s` predicts it; to "
				"train now, leave it out", hd_job_dotted(keys[i], dotted),
				job->value[keys[i]].text, job->file);
	}
	return HD_OK;
}

enum hd_err hd_job_spreads(const struct hd_job *job, struct hd_diag *diag)
{
	struct hd_job copy = *job;
	struct hd_job_reader reader = { .job = &copy, .diag = diag };

	hd_job_at(&reader, HD_JOB_PAR_PLAN);
	if (!job->value[HD_JOB_PAR_PLAN].is_none && !hd_job_is_listed(job))
		return hd_job_refuse(&reader,
			"parallel.plan %s is for `heddle run %s`, with --devices N or --workers N; a "
			"scheduler's workers take parallel.mode: data, and no plan",
			hd_job_text(job, HD_JOB_PAR_PLAN), job->file);
	hd_job_at(&reader, HD_JOB_SLICES);
	if (hd_job_has_stages(job) && hd_job_int(job, HD_JOB_SLICES) > 1)
		return hd_job_refuse(&reader,
			"batch.slices cuts a virtual node, and stages take it whole: batch.slices: 1, or "
			"more batch.virtual_nodes");
	hd_job_at(&reader, HD_JOB_SYNC);
	if (hd_job_has_stages(job) && hd_job_copies(job))
		return hd_job_refuse(&reader,
			"stages over workers do not go with comm.sync: %s: use comm.sync: "
			"stages, or allreduce", hd_job_text(job, HD_JOB_SYNC));
	if (!hd_job_has_pipes(job) && hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_AUTO &&
		hd_job_int(job, HD_JOB_SYNC) == HD_SYNC_STAGES)
		return hd_job_refuse(&reader,
			"comm.sync: stages leaves a worker the state of its stages, and the job asks for "
			"none: parallel.mode: pipeline, or another comm.sync");
	return HD_OK;
}
