/* jobs.h -- a list of jobs while it is read: for the importers of this folder. */
#ifndef HD_CLUSTERSIM_IO_JOBS_H
#define HD_CLUSTERSIM_IO_JOBS_H

#include "clustersim/io/cells.h"
#include "clustersim/job_list.h"

struct jobs { struct hd_job_list list; size_t cap; struct hd_arena *arena; };

HD_MUST_USE enum hd_err jobs_add(struct jobs *jobs, const struct hd_listed_job *job, struct hd_diag *diag);
/* a copy, or *last if it is the same; NULL: no memory */
const char *jobs_text(struct jobs *jobs, const char *text, const char **last);

#endif
