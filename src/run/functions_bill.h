/* functions_bill.h -- what a run's functions did and cost so far, in the run's folder: one file a process,
 * whose sum `heddle status`, the end of a run and its report show.
 *
 * Written by each process that has functions (functions.h), whole and now and then, and at its end. A run
 * that is resumed has files of each process that worked on it. A worker of another machine reaches no folder:
 * it says its bill to the coordinator by notes HD_NOTE_BILL, which writes the file of it.
 *
 * 1. A file that is no line of ours, or has a number above 10^15, counts as none, and `unread` names it.
 * 2. A process writes a file that was its own from the first byte on: HOST-PID-N, of which N is the first
 *    one free. In containers two processes of a run have the same number one after the other, or at once.
 * 3. The file of a worker of another machine is far-NUMBER, by a number that the worker drew: a note that
 *    comes twice, or to the next coordinator, counts once.
 *
 * Plain values. Threads: any; files are replaced whole. */
#ifndef HD_RUN_FUNCTIONS_BILL_H
#define HD_RUN_FUNCTIONS_BILL_H

#include "sys/file.h"

enum { HD_FN_BILL_WORDS = 320, HD_FN_BILL_LINE = 256 };
#define HD_NOTE_BILL "functions_bill"     /* of a worker without the run's folder; its text: of put_far */

/* Sums. nprocesses 0: the run has no functions. */
struct hd_functions_bill {
	uint64_t accepted, here, calls;
	int64_t nano_usd;
	bool pays;
	uint32_t nprocesses;
	char unread[96];                  /* the first file that is none, below the run's folder, or "" */
};

/* Of this process. *number: N of its file, found at the first call, where it is 0. */
HD_MUST_USE enum hd_err hd_functions_bill_put(struct hd_fs *fs, const char *run, uint32_t *number,
	const struct hd_functions_bill *bill, struct hd_diag *diag);
/* What a note says; returns `line`. `from`: drawn by the process. */
const char *hd_functions_bill_note(char line[HD_FN_BILL_LINE], const struct hd_functions_bill *bill,
	uint64_t from);
/* Writes down what a note said. HD_E_PROTOCOL: it is no bill. */
HD_MUST_USE enum hd_err hd_functions_bill_put_far(struct hd_fs *fs, const char *run, const char *note,
	struct hd_diag *diag);
/* Of all. */
void hd_functions_bill_sum(struct hd_functions_bill *bill, struct hd_fs *fs, const char *run);
/* "48 tasks by functions, 2 here, 50 calls, 0.000001234 USD (emulated)"; "none" */
const char *hd_functions_bill_say(char said[HD_FN_BILL_WORDS], const struct hd_functions_bill *bill);

#endif
