/* verbs.h -- what the program can be told to do: one row a verb.
 *
 * A verb parses, calls, prints: no logic of training lives here. Data goes to
 * stdout, talk to stderr; an error is one sentence and the exit code of its row
 * in the error table.
 *
 * A verb with subverbs ("ckpt ls") has one row for each; `name` holds both words. */
#ifndef HD_CMD_VERBS_H
#define HD_CMD_VERBS_H

#include <stdio.h>

#include "base/arena.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/title.h"
#include "cmd/args.h"

/* What every verb is handed. */
struct hd_cmd {
	struct hd_args  args;
	struct hd_arena arena;            /* of the call */
	struct hd_fs    fs;
	struct hd_clock clock;
	struct hd_diag  diag;
	struct hd_title title;            /* of the process, once it has one */
	bool rewrite, colour;             /* stderr is a terminal that may be rewritten, coloured */
	struct hd_detached detached;      /* with --detach, the part that goes on */
	/* a thread is still at work: the process ends without destructors */
	bool leave_at_once;
};

struct hd_verb {
	const char *name;                 /* "run", "ckpt ls" */
	/* "JOB", "RUN [SPLIT]": shown in help; words in brackets are optional */
	const char *args;
	uint8_t npos_min, npos_max;
	const char *about;                /* one line */
	/* paragraphs of --help, each ended by a line feed but the last: filled when they are printed; a line
	 * that begins with a blank is an example, kept as it is; "": none */
	const char *more;
	/* own options, ends with HD_NOPTS; the common ones are understood */
	const enum hd_opt *opts;
	enum hd_err (*run)(struct hd_cmd *cmd);       /* the exit code follows; cmd->diag says why */
	const char *test;                 /* whole-program test that runs it, below tests/ */
};
extern const struct hd_verb hd_verbs[];       /* ends with name == NULL */

/* The verb that argv[0] (and argv[1]) name; *used is 1 or 2. Unknown: a did-you-mean. */
HD_MUST_USE enum hd_err hd_verb_find(int argc, char **argv, const struct hd_verb **verb, int *used,
	struct hd_diag *diag);
/* Filled to the width of the terminal, or HD_TTY_WIDTH where `to` is none. */
void hd_help_all(FILE *to);
void hd_help_verb(const struct hd_verb *verb, FILE *to);
void hd_help_manual(const struct hd_verb *verb, FILE *to);    /* its page for man(1) */

/* One function a verb: */
#define HD_VERB_FUNCTIONS(X) X(run) X(resume) X(chaos_run) X(chaos_kill) X(chaos_pause) X(chaos_slow) \
	X(chaos_net) X(chaos_disk) \
	X(worker) X(serve) X(scale) X(stop) X(status) X(top) X(submit) X(jobs) X(explain) X(cancel) X(prio) \
	X(eval) X(predict) X(ckpt_ls) X(ckpt_show) X(ckpt_verify) X(ckpt_diff) X(ckpt_digest) \
	X(ckpt_export) X(ckpt_gc) X(data_show) X(data_verify) X(data_order) X(data_cat) X(model_ls) X(model_show) X(model_import) X(model_export) X(config_check)      \
	X(config_show) X(config_schema) X(doctor) X(bench_step) X(bench_op) X(bench_allreduce) X(profile) X(demo) X(plan_show) X(plan_check) X(plan_diff) X(plan_draw) X(plan_partition) X(plan_auto) X(plan_2bw) X(plan_order) X(plan_buckets) X(plan_ptdp) X(plan) X(simulate) X(sim) X(sched_policies) X(sched_solve) X(sched_whatif) X(sched_simulate) X(sched_compare) X(sched_replay) X(sched_bench) X(sched_gen) X(sched_import) \
	X(completion) X(version)
#define X(name) enum hd_err hd_cmd_##name(struct hd_cmd *cmd);
HD_VERB_FUNCTIONS(X)
#undef X

#endif
