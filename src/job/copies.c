#include <string.h>

#include "job/int.h"

/* parallel.copies: "3,1", the ranks of each stage. Each cause of a refusal has a sentence of its own. */

enum fault { NO_FAULT, NO_NUMBERS, ONE_STAGE, NO_RANK, TOO_MANY, ALL_ONE, NO_DIVISOR };

/* The first n numbers and their sum; `stage`: the one at fault, `other`: one before it whose number does not
 * go with its own. */
struct found { enum fault fault; uint32_t n, sum, stage, other; };

static bool divide(uint32_t a, uint32_t b) { return a % b == 0 || b % a == 0; }

static enum fault find_fault(struct found *f, const uint32_t *copies)
{
	f->stage = f->n - 1;
	if (!copies[f->stage])
		return NO_RANK;
	f->sum += copies[f->stage] < HD_JOB_MAX_STAGES ? copies[f->stage] : HD_JOB_MAX_STAGES + 1;
	if (f->sum > HD_JOB_MAX_STAGES)
		return TOO_MANY;
	for (f->other = 0; f->other < f->stage; f->other++)
		if (!divide(copies[f->other], copies[f->stage]))
			return NO_DIVISOR;
	return NO_FAULT;
}

static struct found take(const char **at, uint32_t *copies)
{
	struct found f = { .fault = NO_FAULT };

	do {
		if (f.n == HD_JOB_MAX_STAGES)
			f.fault = TOO_MANY;
		else if (!hd_job_take_number(at, &copies[f.n]))
			f.fault = NO_NUMBERS;
		else {
			f.n++;
			f.fault = find_fault(&f, copies);
		}
	} while (!f.fault && **at == ',' && (*at)++);
	return f;
}

/* Of numbers that are each right. */
static enum fault of_all(const struct found *f)
{
	return f->n < 2 ? ONE_STAGE : f->sum == f->n ? ALL_ONE : NO_FAULT;
}

uint32_t hd_job_take_copies(const char **at, uint32_t *copies)
{
	const char *text = *at;
	const struct found f = take(&text, copies);

	if (f.fault || of_all(&f))
		return 0;
	*at = text;
	return f.n;
}

uint32_t hd_job_stage_copies(const char *text, uint32_t copies[HD_JOB_MAX_STAGES])
{
	const uint32_t n = hd_job_take_copies(&text, copies);

	return *text ? 0 : n;
}

static enum hd_err check_text(struct hd_job_reader *reader, const char *text, uint32_t *n)
{
	uint32_t copies[HD_JOB_MAX_STAGES];
	const char *end = text;
	const struct found f = take(&end, copies);

	*n = f.n;
	switch (f.fault ? f.fault : *end ? NO_NUMBERS : of_all(&f)) {
	case NO_FAULT:
		return HD_OK;
	case NO_NUMBERS:
		return hd_job_refuse(reader,
			"parallel.copies is \"%.80s\": write the ranks of each stage with commas between "
			"them, as 3,1", text);
	case ONE_STAGE:
		return hd_job_refuse(reader,
			"parallel.copies %.80s is of one stage: write a number for each of two stages or "
			"more, as %u,1; copies of the whole model are parallel.mode: data", text, copies[0]);
	case NO_RANK:
		return hd_job_refuse(reader,
			"parallel.copies %.80s leaves stage %u without a rank: write 1 or more in its place",
			text, f.stage);
	case TOO_MANY:
		return hd_job_refuse(reader,
			"parallel.copies %.80s asks for more than the %d ranks that a pipeline has at most: "
			"write smaller numbers", text, HD_JOB_MAX_STAGES);
	case ALL_ONE:
		return hd_job_refuse(reader,
			"parallel.copies %.80s gives each stage one rank, as a pipeline without copies has: "
			"write parallel.stages: %u in its place", text, f.n);
	case NO_DIVISOR:
		return hd_job_refuse(reader,
			"parallel.copies %.80s has stages of %u and of %u ranks, which cannot take turns "
			"since neither number divides the other: write a divisor or a multiple of %u in "
			"place of %u", text, copies[f.other], copies[f.stage], copies[f.other],
			copies[f.stage]);
	}
	return HD_OK;
}

enum hd_err hd_job_check_copies(struct hd_job_reader *reader)
{
	const struct hd_job_value *value = reader->job->value, *stages = &value[HD_JOB_PAR_STAGES];
	const struct hd_job_value *schedule = &value[HD_JOB_PAR_SCHEDULE];
	const struct hd_job_value *tensor = &value[HD_JOB_PAR_TENSOR], *chunks = &value[HD_JOB_PAR_CHUNKS];
	const char *text = value[HD_JOB_PAR_COPIES].text;
	uint32_t n;

	hd_job_at(reader, HD_JOB_PAR_COPIES);
	if (value[HD_JOB_PAR_COPIES].is_none)
		return HD_OK;
	enum hd_err err = check_text(reader, text, &n);
	if (err)
		return err;
	if (!schedule->is_auto && strcmp(schedule->text, "1f1b-rr") != 0)
		return hd_job_refuse(reader,
			"parallel.copies %s has the order 1f1b-rr, and parallel.schedule is %s: leave "
			"parallel.schedule out, or write 1f1b-rr", text, schedule->text);
	if (!stages->is_auto && stages->i != n)
		return hd_job_refuse(reader,
			"parallel.copies %s is of %u stages, and parallel.stages is %lld: leave "
			"parallel.stages out", text, n, (long long)stages->i);
	if (!tensor->is_auto && tensor->i > 1)
		return hd_job_refuse(reader,
			"parallel.copies %s has ranks of one device, and parallel.tensor is %lld: leave one "
			"of them out", text, (long long)tensor->i);
	if (!chunks->is_auto && chunks->i > 1)
		return hd_job_refuse(reader,
			"parallel.copies %s has one stage a rank, and parallel.chunks is %lld: leave one of "
			"them out", text, (long long)chunks->i);
	return HD_OK;
}
