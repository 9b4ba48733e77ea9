#include "job/measures.h"

#include <string.h>

#include "job/job.h"
#include "job/lr.h"

const struct hd_measure_row hd_measures[HD_NMEASURES] = {
#define X(id, word, more, of, about) { word, more, HD_OF_##of, about },
	HD_MEASURES(X)
#undef X
};

enum hd_measure hd_measure_find(const char *word, bool val)
{
	static const char prefix[] = "val_";
	int i = 0;

	if (val && strncmp(word, prefix, sizeof prefix - 1) != 0)
		return HD_NMEASURES;
	word += val ? sizeof prefix - 1 : 0;
	while (i < HD_NMEASURES && strcmp(hd_measures[i].word, word) != 0)
		i++;
	return (enum hd_measure)i;
}

bool hd_measure_more(const char *word)
{
	enum hd_measure m = hd_measure_find(word, true);

	m = m == HD_NMEASURES ? hd_measure_find(word, false) : m;
	return m != HD_NMEASURES && hd_measures[m].more;
}

/* The measure that a key goes by; accuracy is one where the model does not count it itself. */
static uint32_t gone_by(const struct hd_job *job, enum hd_job_key key, bool val)
{
	const enum hd_measure m = hd_measure_find(hd_job_text(job, key), val);

	return m == HD_NMEASURES ? 0 : 1u << m;
}

uint32_t hd_job_measures(const struct hd_job *job)
{
	const struct hd_job_value *asked = &job->value[HD_JOB_METRICS];
	const bool plateau = hd_job_int(job, HD_JOB_SCHEDULE) == HD_LR_PLATEAU;
	uint32_t bits = gone_by(job, HD_JOB_METRIC, false) | gone_by(job, HD_JOB_CKPT_BEST, true);

	if (plateau)
		bits |= gone_by(job, HD_JOB_LR_METRIC, true);
	if (!job->value[HD_JOB_STOP_PATIENCE].is_none)
		bits |= gone_by(job, HD_JOB_STOP_METRIC, true);
	for (uint32_t i = 0; i < asked->nargs; i++)
		bits |= 1u << hd_measure_find(asked->arg[i].text, false);
	return bits;
}
