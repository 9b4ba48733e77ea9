/* status.h -- what the harness looks at of a coordinator's answer to {"do":"status"}.
 *
 * Pure; no text of the answer is kept. */
#ifndef HD_CHAOS_STATUS_H
#define HD_CHAOS_STATUS_H

#include "base/json.h"

enum { HD_STATUS_WORKERS = 128 };         /* further ones are not read */

struct hd_status_worker { int64_t id, pid, virtual_nodes; bool member; };

struct hd_status {
	int64_t coordinator;              /* its process; 0: not of this machine */
	int64_t step, epoch, term;        /* step: committed */
	int64_t members, target;          /* workers; wanted */
	double loss, step_ms;
	uint32_t nworkers;
	struct hd_status_worker worker[HD_STATUS_WORKERS];
};

/* `status` is set where all is there. HD_E_INPUT: a member is missing, or is of another kind. */
HD_MUST_USE enum hd_err hd_status_read(const struct hd_json *answer, struct hd_status *status,
	struct hd_diag *diag);

/* "4/4/4/4/0": virtual nodes of each member, as many as fit. Returns how many members there are by the same
 * list: `members` counts those of the view, of which one may be lost already. */
uint32_t hd_status_split(const struct hd_status *status, char *text, size_t cap);

#endif
