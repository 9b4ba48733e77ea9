/* terms.h -- terms of an order on the command line: --hold, --after, --array, --time, --expect,
 * --partition, --account.
 *
 * They are checked before anything is sent; names of jobs are the scheduler's to find. */
#ifndef HD_CMD_JOBS_TERMS_H
#define HD_CMD_JOBS_TERMS_H

#include "base/json_writer.h"
#include "cmd/verbs.h"

/* Texts are the command line's; NULL, 0: not said. */
struct hd_order_terms {
	bool held;
	const char *after, *array, *partition, *account;
	double limit_s, expect_s;
};

HD_MUST_USE enum hd_err hd_order_terms_read(struct hd_cmd *cmd, struct hd_order_terms *terms);
/* What is said by -s, as the first task of an array has it, to be checked; the texts lie in the arena of the
 * call. */
HD_MUST_USE enum hd_err hd_order_first_task(struct hd_cmd *cmd, const struct hd_order_terms *terms);
void hd_order_terms_put(const struct hd_order_terms *terms, struct hd_json_writer *w);

#endif
