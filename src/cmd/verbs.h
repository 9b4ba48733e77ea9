/* verbs.h -- what the program can do: one row a verb, defined beside its code and listed in cmd/list.h.
 *
 * A verb parses, calls, prints: no logic of training lives here. Data goes to stdout, talk to stderr; an
 * error is one sentence and the exit code of its row in the error table.
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
#include "cmd/list.h"

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
	 * that begins with a blank is an example, kept as it is; NULL: none */
	const char *more;
	/* HD_OPTS(...) of its own; the common ones are understood */
	const enum hd_opt *opts;
	enum hd_err (*run)(struct hd_cmd *cmd);       /* the exit code follows; cmd->diag says why */
	const char *test;                 /* whole-program test that runs it, below tests/ */
};

/* Options of a verb's own: HD_OPTS(HD_OPT_SET, HD_OPT_OUT). */
#define HD_OPTS(...) ((const enum hd_opt[]){ __VA_ARGS__ __VA_OPT__(,) HD_NOPTS })

extern const struct hd_verb *const hd_verbs[];         /* all of cmd/list.h; ends with NULL */
#define X(name) extern const struct hd_verb hd_verb_##name;
HD_VERBS(X)
#undef X

/* The verb that argv[0] (and argv[1]) name; *used is 1 or 2. Unknown: a did-you-mean. */
HD_MUST_USE enum hd_err hd_verb_find(int argc, char **argv, const struct hd_verb **verb, int *used,
	struct hd_diag *diag);
/* Filled to the width of the terminal, or HD_TTY_WIDTH where `to` is none. */
void hd_help_all(FILE *to);
void hd_help_verb(const struct hd_verb *verb, FILE *to);
void hd_help_manual(const struct hd_verb *verb, FILE *to);    /* its page for man(1) */

#endif
