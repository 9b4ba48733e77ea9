/* sets.h -- what environment and command line set in a job, as rows for hd_job_parse().
 *
 * Precedence: default < job file < HEDDLE_<TABLE>_<KEY> < -s key=value < option of a verb. A row carries its
 * origin, so the order in which rows are added does not matter between origins; within one the later counts.
 *
 * Pure: the caller hands the environment over. Ownership: rows and keys lie in the arena; values are borrowed
 * from the environment and the command line. */
#ifndef HD_JOB_SETS_H
#define HD_JOB_SETS_H

#include "job/job.h"

enum { HD_JOB_VARIABLE = 96 };            /* bytes of a variable's name */

struct hd_job_sets {
	struct hd_job_set *set;           /* [cap] */
	uint32_t n, cap;
	struct hd_arena *arena;
};

/* Room for every variable, and `more` rows. */
HD_MUST_USE enum hd_err hd_job_sets_init(struct hd_job_sets *sets, uint32_t more, struct hd_arena *arena,
	struct hd_diag *diag);

/* The variable of a key: optim.schedule.kind -> HEDDLE_OPTIM_SCHEDULE_KIND. */
void hd_job_variable(enum hd_job_key key, char name[HD_JOB_VARIABLE]);

/* `environment`: NAME=VALUE, NULL at its end; all but the variables of keys is passed over. */
HD_MUST_USE enum hd_err hd_job_sets_environment(struct hd_job_sets *sets, char *const *environment,
	struct hd_diag *diag);
/* -s: `word` is KEY=VALUE. HD_E_INVAL: it has no '='. */
HD_MUST_USE enum hd_err hd_job_sets_word(struct hd_job_sets *sets, const char *word, struct hd_diag *diag);
/* An option of a verb that stands for `key`. */
void hd_job_sets_option(struct hd_job_sets *sets, const char *key, const char *value);

/* A line for each variable that begins with HEDDLE_ and a table of the job, but names none of its keys:
 * nearly always a slip. */
void hd_job_sets_warn(char *const *environment, struct hd_text *lines);

#endif
