/* table.h -- a table of jobs while it is read: what its rows become, whatever the form of the file. For
 * the importers of this folder. */
#ifndef HD_CLUSTERSIM_IO_TABLE_H
#define HD_CLUSTERSIM_IO_TABLE_H

#include "scheduler/sched_state.h"
#include "clustersim/io/jobs.h"

enum { TABLE_NONE = -1 };                         /* no such column */

struct job_table {
	struct jobs jobs;
	const struct hd_job_table_how *how;
	uint32_t reference;                       /* of how->rates; HD_RATES_NONE: each kind's fastest */
	uint32_t *choice;                         /* [nkinds] room for the draw */
	const char *last_user;
};

HD_MUST_USE enum hd_err table_open(struct job_table *t, const char *name, const struct hd_job_table_how *how,
	struct hd_arena *arena, struct hd_diag *diag);
/* `type_cell` TABLE_NONE: the kind is drawn. Rows that are no work are counted and forgotten. */
HD_MUST_USE enum hd_err table_add(struct job_table *t, const struct cells *c, int type_cell,
	struct hd_listed_job *job, double gpus, struct hd_diag *diag);
/* The earliest arrival becomes 0; sorted stably. */
HD_MUST_USE enum hd_err table_close(struct job_table *t, const char *name, struct hd_job_list *list,
	struct hd_diag *diag);

/* of a header, whatever its case; TABLE_NONE: none is called so */
int table_cell(const struct cells *c, const char *name);
/* A cell of column `at`; `otherwise` where there is no such column or nothing in it. */
HD_MUST_USE enum hd_err table_number(const struct cells *c, int at, const char *what, double otherwise,
	double *out, struct hd_diag *diag);

#endif
