/* testing_said.h -- for tests: all that the checker of schedules says of lists, a line "RULE SENTENCE"
 * each. */
#ifndef HD_PIPELINE_TESTING_SAID_H
#define HD_PIPELINE_TESTING_SAID_H

#include "pipeline/schedule_check.h"
#include "tests/planning.h"

/* "": they are accepted. Lies in the test's arena. */
static inline const char *hd_all_said(const struct hd_schedule *s, const struct hd_schedule_job *job,
	enum hd_transport transport)
{
	struct hd_report report;
	struct hd_text said;
	enum hd_err err = hd_schedule_check_job(s, job, &(struct hd_schedule_rules){ transport, 0 }, &report,
		NULL);

	hd_text_init(&said, &arena);
	hd_text_add(&said, "");
	for (uint32_t k = 0; k < report.len; k++)
		hd_text_addf(&said, "%s %s\n", report.at[k].rule, report.at[k].text);
	CHECK(err == (report.len ? HD_E_BADPLAN : HD_OK), "%d: %s", err, said.at);
	return said.at;
}

#endif
