/* testing.h -- a job parsed from text, and how it prints (for the room's tests).
 *
 * In the arena of tests/planning.h; the text of `job` is called tiny.yaml. */
#ifndef HD_JOB_TESTING_H
#define HD_JOB_TESTING_H

#include <string.h>

#include "job/job.h"
#include "tests/planning.h"
#include "tests/check.h"

static struct hd_job job;
static struct hd_diag diag;
static struct hd_text warnings;

#define SMALLEST "job: {steps: 10}\nmodel: {use: builtin:mlp}\ndata: {kind: synthetic}\nbatch: {global: 64}\n"

static inline enum hd_err parse_with(const char *text, const struct hd_job_set *set, uint32_t nsets)
{
	diag.text[0] = '\0';
	hd_text_init(&warnings, &arena);
	return hd_job_parse(&job, "tiny.yaml", text, strlen(text), set, nsets, &arena, &diag, &warnings);
}

static inline enum hd_err parse(const char *text) { return parse_with(text, NULL, 0); }

static inline void must(const char *text) { CHECK(parse(text) == HD_OK, "%s\n%s", diag.text, text); }

static inline const char *json_of(const struct hd_job *of)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_job_json(of, false, &text);
	return text.at;
}

static inline const char *canonical_of(const struct hd_job *of)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_job_canonical(of, &text);
	return text.at;
}

#endif
