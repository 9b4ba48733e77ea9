#include "job/int.h"

#include <string.h>

#include "base/names.h"
#include "notice/notice.h"
#include "notice/place.h"
#include "plan/comm.h"
#include "pipeline/redundancy.h"

/* Which worker holds what, and what is done when one is lost: `elastic:`, `comm:` and `workers:` together. */

static enum hd_err check_notice(struct hd_job_reader *reader)
{
	const struct hd_job_value *source = &reader->job->value[HD_JOB_NOTICE_SOURCE],
		*base = &reader->job->value[HD_JOB_NOTICE_BASE];
	struct hd_notice_place place;
	struct hd_diag why = { "" };
	char words[256];

	hd_job_at(reader, HD_JOB_NOTICE_SOURCE);
	if (!hd_notice_is_setting(source->text, words))
		return hd_job_refuse(reader, "elastic.notice.source is \"%.40s\"; there are %s", source->text,
		words);
	hd_job_at(reader, HD_JOB_NOTICE_BASE);
	if (!base->is_auto && hd_notice_place(base->text, 0, &place, &why))
		return hd_job_refuse(reader, "elastic.notice.base is %.300s", why.text);
	return HD_OK;
}

/* The word that another key means, as if it had stood in that one's place. */
static void say(struct hd_job_value *v, const struct hd_job_value *as, int64_t i, const char *word)
{
	*v = *as;
	v->i = i;
	v->text = word;
}

/* redundancy: by-notice are two words in one: which redundancy, and by what it is on. */
static void take_by_notice(struct hd_job *job)
{
	struct hd_job_value *mode = &job->value[HD_JOB_REDUNDANCY], *by = &job->value[HD_JOB_RESILIENCE];

	if (mode->i < HD_NREDUNDANCIES)
		return;
	say(by, mode, HD_RESILIENCE_BY_NOTICE, "by-notice");
	say(mode, mode, HD_REDUNDANCY_LAZY, hd_redundancy_names[HD_REDUNDANCY_LAZY]);
}

/* Words that are a redundancy. Of two keys that say different ones the later word counts (file, environment,
 * -s), and both keys are from there: a run keeps what was set. At the same place they contradict each
 * other. */
static enum hd_err take_way(struct hd_job_reader *reader)
{
	static const enum hd_redundancy is[HD_NRESILIENCES] = { [HD_RESILIENCE_LAZY] = HD_REDUNDANCY_LAZY,
		[HD_RESILIENCE_EAGER] = HD_REDUNDANCY_EAGER, [HD_RESILIENCE_FULL] = HD_REDUNDANCY_FULL };
	struct hd_job *job = reader->job;
	struct hd_job_value *mode = &job->value[HD_JOB_REDUNDANCY], *by = &job->value[HD_JOB_RESILIENCE];
	const enum hd_redundancy way = is[by->i];

	if (by->i < HD_RESILIENCE_CHECKPOINT)
		return HD_OK;
	hd_job_at(reader, HD_JOB_RESILIENCE);
	if (by->i == HD_RESILIENCE_REROUTE && !job->value[HD_JOB_PAR_REPLICAS].is_auto &&
		hd_job_int(job, HD_JOB_PAR_REPLICAS) == 1)
		return hd_job_refuse(reader, "elastic.resilience: reroute lets peers in other pipelines go "
			"on, and with parallel.replicas: 1 there is none: write 2 or more, or checkpoint");
	const uint32_t least = hd_job_least_pipelines(job);
	if (least > 1 && !job->value[HD_JOB_PAR_REPLICAS].is_auto &&
		hd_job_int(job, HD_JOB_PAR_REPLICAS) < least)
		return hd_job_refuse(reader, "elastic.resilience: %s keeps %u pipelines, and "
			"parallel.replicas is %lld: write %u or more", by->text, least,
			(long long)hd_job_int(job, HD_JOB_PAR_REPLICAS), least);
	if (least > 1 && !job->value[HD_JOB_PAR_COPIES].is_none)
		return hd_job_refuse(reader, "elastic.resilience: %s keeps %u whole pipelines, and "
			"parallel.copies has stages in other numbers: leave one of them out", by->text,
			least);
	if (mode->i == (int64_t)way)
		return HD_OK;
	if (mode->origin == by->origin)
		return hd_job_refuse(reader, "elastic.resilience: %s is redundancy %s, and "
			"elastic.redundancy is %s: leave one of them out", by->text,
			hd_redundancy_names[way], mode->text);
	if (mode->origin > by->origin)
		say(by, mode, HD_RESILIENCE_GIVEN, "given");
	else
		say(mode, by, way, hd_redundancy_names[way]);
	return HD_OK;
}

/* Of state that every worker holds there is nothing to hold twice. */
static enum hd_err check_redundancy(struct hd_job_reader *reader)
{
	static const char *const why[] = {
		[HD_SYNC_ALLREDUCE] = "every worker holds all of the state, and any may be lost as it is",
		[HD_SYNC_SHARDED] = "comm.copies says how many workers hold each part",
		[HD_SYNC_SERVER] = "comm.copies says how many workers hold each part",
	};
	struct hd_job *job = reader->job;
	const int64_t sync = hd_job_int(job, HD_JOB_SYNC);

	take_by_notice(job);
	const enum hd_err err = take_way(reader);
	if (err)
		return err;
	const int64_t mode = hd_job_int(job, HD_JOB_REDUNDANCY);
	hd_job_at(reader, HD_JOB_RESILIENCE);
	if (hd_job_int(job, HD_JOB_RESILIENCE) != HD_RESILIENCE_GIVEN && sync != HD_SYNC_STAGES)
		return hd_job_refuse(reader, "elastic.resilience: %s turns the redundancy of stages "
			"(comm.sync: stages) on and off; with comm.sync: %s %s: leave it out",
			hd_job_text(job, HD_JOB_RESILIENCE), hd_job_text(job, HD_JOB_SYNC), why[sync]);
	hd_job_at(reader, HD_JOB_REDUNDANCY);
	if (mode != HD_REDUNDANCY_NONE && sync != HD_SYNC_STAGES)
		return hd_job_refuse(reader, "elastic.redundancy: %s holds the state of stages (comm.sync: "
			"stages) at another worker too; with comm.sync: %s %s: leave it out",
			hd_job_text(job, HD_JOB_REDUNDANCY), hd_job_text(job, HD_JOB_SYNC), why[sync]);
	if (mode == HD_REDUNDANCY_NONE || mode == HD_REDUNDANCY_LAZY)
		return HD_OK;
	if (strcmp(hd_job_text(job, HD_JOB_UPDATE), "flush") != 0)
		return hd_job_refuse(reader,
			"elastic.redundancy: %s computes with the parameters of the step alone, and "
			"optim.update: %s reads earlier ones: lazy goes with it",
			hd_job_text(job, HD_JOB_REDUNDANCY), hd_job_text(job, HD_JOB_UPDATE));
	return hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_AUTO ? HD_OK : hd_job_refuse(reader,
		"elastic.redundancy: %s goes with one stage a device, and parallel.mode: auto may choose "
		"otherwise: write parallel.mode: pipeline, or redundancy: lazy",
		hd_job_text(job, HD_JOB_REDUNDANCY));
}

/* Partial sums are added up on their way to the owner: a sum that all get, of whole models. */
static enum hd_err check_primitive(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_COMM_PRIMITIVE);
	if (hd_job_int(job, HD_JOB_COMM_PRIMITIVE) != HD_PRIMITIVE_HALVING)
		return HD_OK;
	if (hd_job_int(job, HD_JOB_SYNC) != HD_SYNC_ALLREDUCE)
		return hd_job_refuse(reader,
			"comm.primitive: halving-doubling goes with state that every worker "
			"holds (comm.sync: allreduce), and comm.sync is %s: leave it out, or write direct",
			hd_job_text(job, HD_JOB_SYNC));
	return hd_job_int(job, HD_JOB_PAR_MODE) != HD_PAR_PIPELINE ? HD_OK : hd_job_refuse(reader,
		"comm.primitive: halving-doubling goes with whole models, and parallel.mode is pipeline: "
		"leave it out, or write direct");
}

/* As of redundancy: a worker that holds everything has nothing to follow. */
static enum hd_err check_standby(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_STANDBY);
	if (hd_job_int(job, HD_JOB_STANDBY) == HD_STANDBY_NONE || hd_job_int(job, HD_JOB_SYNC) ==
		HD_SYNC_STAGES)
		return HD_OK;
	return hd_job_refuse(reader, "elastic.standby: follow has a worker that is left over hold the state "
		"of a stage (comm.sync: stages); with comm.sync: %s it holds what every worker holds: leave "
		"it out", hd_job_text(job, HD_JOB_SYNC));
}

static enum hd_err check_servers(struct hd_job_reader *reader)
{
	const struct hd_job *job = reader->job;

	hd_job_at(reader, HD_JOB_COPIES);
	return hd_job_servers(job) >= hd_job_copies(job) || !hd_job_servers(job) ? HD_OK :
		hd_job_refuse(reader, "comm.servers: %u workers hold no comm.copies: %u of each part of the "
			"slots: write as many servers, or more", hd_job_servers(job), hd_job_copies(job));
}

/* Whether it fits the model is seen where its layout is made (engine/task.h). */
static enum hd_err check_comm(struct hd_job_reader *reader)
{
	const struct hd_job_value *settled = &reader->job->value[HD_JOB_COMM_SETTLED];
	struct hd_diag why = { "" };
	struct hd_comm comm;

	hd_job_at(reader, HD_JOB_COMM_SETTLED);
	const enum hd_err err = settled->is_none ? HD_OK :
		hd_comm_read(&comm, settled->text, reader->arena, &why);
	return err != HD_E_INPUT ? err : hd_job_refuse(reader,
		"comm.settled: %s; a run writes it as ORDER ranks LIST segments LIST: leave it out",
		why.text);
}

static enum hd_err check_zones(struct hd_job_reader *reader)
{
	const struct hd_job_value *zones = &reader->job->value[HD_JOB_ZONES];

	hd_job_at(reader, HD_JOB_ZONES);
	for (uint32_t i = 0; i < zones->nargs; i++)
		if (strlen(zones->arg[i].text) > HD_JOB_ZONE || !hd_name_valid(zones->arg[i].text))
			return hd_job_refuse(reader, "workers.zones: \"%.64s\": use 1 to %d of A-Z a-z 0-9 "
				". _ -, beginning with none of . -", zones->arg[i].text, HD_JOB_ZONE);
	return HD_OK;
}

enum hd_err hd_job_check_workers(struct hd_job_reader *reader)
{
	static hd_job_rule *const checks[] = {
		check_notice, check_redundancy, check_standby, check_primitive, check_comm, check_servers,
		check_zones,
	};

	return hd_job_check_each(reader, checks, sizeof checks / sizeof checks[0]);
}
