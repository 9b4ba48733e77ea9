/* slurm_way.h -- how Slurm is asked: by its commands, or over the socket of slurmrestd; a row of a table
 * each.
 *
 * 1. One question at a time: begin(), then go_on() until it says true; what it answered is the way's until
 *    its next begin().
 * 2. Nothing blocks but go_on(), no longer than its caller wants. A question that has not been answered for
 *    HD_LAUNCHER_PATIENCE_NS is HD_SLURM_LOST.
 * 3. Every way does the same: a job that has begun is never ended by a question that is for those that wait
 *    (question.running false), even if it began after it was last seen waiting.
 * 4. LOST and UNSAID are not Slurm's word: another way may be asked. REFUSED is: another way would hear it,
 *    too.
 *
 * Ownership: open/close; the spec is borrowed. Threads: one. */
#ifndef HD_LAUNCH_SLURM_WAY_H
#define HD_LAUNCH_SLURM_WAY_H

#include "launch/slurm_jobs.h"

/* id: of TAKE_BACK. running: of TAKE_BACK and CANCEL, those that run, too. */
struct hd_slurm_question {
	enum hd_slurm_ask ask;
	uint32_t n;                       /* jobs of SUBMIT, ids of TAKE_BACK */
	char id[HD_SLURM_IDS][HD_SLURM_ID];
	bool running;
};

enum hd_slurm_outcome {
	HD_SLURM_ANSWERED,
	HD_SLURM_REFUSED,                 /* by Slurm; err HD_E_AGAIN: it may be well later, else for good */
	HD_SLURM_LOST,                    /* no answer, or none that is understood */
	HD_SLURM_UNSAID,                  /* this way has no words for it */
};

struct hd_slurm_answer {
	enum hd_slurm_outcome outcome;
	enum hd_err err;                  /* of REFUSED; of LOST, too */
	struct hd_diag why;               /* of all but ANSWERED; of a LOOK that is not whole, too */
	bool sent;                        /* Slurm may have done it */
	char id[HD_SLURM_ID];             /* of SUBMIT */
	struct hd_slurm_lines lines;      /* of LOOK */
	bool whole;
	struct hd_batch_nodes nodes;      /* of NODES: of the spec's partition, else of all */
};

struct hd_slurm_way { const struct hd_slurm_way_ops *ops; };

struct hd_slurm_way_ops {
	const char *name;
	/* HD_E_NOTFOUND: the settings say that it is not to be used, or its socket is not there. */
	enum hd_err (*open)(const struct hd_launcher_spec *spec, const char *script,
		struct hd_slurm_way **way, struct hd_diag *diag);
	/* What a question is called where its answer is waited for: "squeue". */
	const char *(*word)(const struct hd_slurm_way *way, enum hd_slurm_ask ask);
	enum hd_err (*begin)(struct hd_slurm_way *way, const struct hd_slurm_question *question,
		struct hd_diag *diag);
	/* Waits wait_ns at most. false: it goes on. */
	bool (*go_on)(struct hd_slurm_way *way, int64_t wait_ns, struct hd_slurm_answer *answer);
	void (*give_up)(struct hd_slurm_way *way);        /* of what is under way, if anything is */
	void (*close)(struct hd_slurm_way *way);          /* takes NULL */
};

extern const struct hd_slurm_way_ops hd_slurm_by_commands, hd_slurm_by_socket;

#endif
