/* slurm_rest.h -- what is said to slurmrestd and what it answers, as values (pure).
 *
 * Versions of its interface differ in how they write values: up to v0.0.38 numbers and words as they are;
 * from v0.0.39 on numbers as {set, infinite, number}; from v0.0.40 on states as lists and exit codes as
 * objects. An answer is read by its form, whatever version it claims to be; a request is written in that of
 * the version that answers.
 *
 * 1. What is not understood as a whole is refused: HD_E_INPUT, and what, in the message. Texts of Slurm that
 *    are kept are printable.
 * 2. Of a list of jobs only those of the given name are read as JSON: a cluster has many.
 * 3. A request says all that the batch script's #SBATCH lines say, which slurmrestd does not read; what a
 *    version has no field for is HD_E_NOTFOUND, and the message names it.
 *
 * Recorded answers: tests/data/slurm/rest. Source: OpenAPI of slurmrestd 22.05 (v0.0.38), 23.02 (v0.0.39),
 * 23.11 (v0.0.40) and later. Plain values; threads: any. */
#ifndef HD_LAUNCH_SLURM_REST_H
#define HD_LAUNCH_SLURM_REST_H

#include "launch/slurm_text.h"

enum { HD_SLURM_VERSIONS = 6, HD_SLURM_SCRIPT = 1 << 20 };
/* The newest first. */
struct hd_slurm_version { const char *name; bool wraps, lists; };
extern const struct hd_slurm_version hd_slurm_versions[HD_SLURM_VERSIONS];

/* `n` places in `folder`. script: the batch script. environment: "NAME=value" each, ends with NULL; left out
 * is SLURM_JWT, and what is no UTF-8. */
struct hd_slurm_submission {
	const struct hd_launcher_spec *spec;
	uint32_t n;
	const char *folder, *script;
	char *const *environment;
};
HD_MUST_USE enum hd_err hd_slurm_rest_submission(const struct hd_slurm_version *version,
	const struct hd_slurm_submission *what, struct hd_text *text, struct hd_diag *diag);
/* An update that keeps a job that waits from beginning. Of one that has begun it is refused. */
void hd_slurm_rest_hold(const struct hd_slurm_version *version, struct hd_text *text);

/* What an answer says went wrong. */
enum hd_slurm_error {
	HD_SLURM_NO_ERROR, HD_SLURM_ERROR,
	HD_SLURM_HAS_BEGUN,               /* it does not wait any more */
	HD_SLURM_IS_OVER,                 /* it is over, or unknown */
};
/* text: in Slurm's words; "" without an error. HD_E_INPUT: the body is no answer of slurmrestd. */
HD_MUST_USE enum hd_err hd_slurm_rest_error(const char *body, size_t len, struct hd_arena *arena,
	enum hd_slurm_error *error, const char **text, struct hd_diag *diag);

/* The answers themselves; all of them in the arena. */
HD_MUST_USE enum hd_err hd_slurm_rest_id(const char *body, size_t len, struct hd_arena *arena,
	char id[HD_SLURM_ID], struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_slurm_rest_jobs(const char *body, size_t len, const char *name,
	struct hd_arena *arena, struct hd_slurm_lines *lines, struct hd_diag *diag);
/* `partition` "": of all, and usual is true where usual_of names a partition of it, else of every one. */
HD_MUST_USE enum hd_err hd_slurm_rest_nodes(const char *body, size_t len, const char *partition,
	const char *usual_of, struct hd_arena *arena, struct hd_batch_nodes *nodes, struct hd_diag *diag);
/* The name of the default partition; "": the answer does not say. */
HD_MUST_USE enum hd_err hd_slurm_rest_usual(const char *body, size_t len, struct hd_arena *arena,
	const char **name, struct hd_diag *diag);

#endif
