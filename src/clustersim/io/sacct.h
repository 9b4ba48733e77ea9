/* sacct.h -- rows of an accounting whose cells are parted by a byte of the caller's choice: for the
 * importers of this folder that have them in another form. Rows as hd_job_list_sacct() says. */
#ifndef HD_CLUSTERSIM_IO_SACCT_H
#define HD_CLUSTERSIM_IO_SACCT_H

#include "clustersim/io/table.h"

HD_MUST_USE enum hd_err sacct_rows(struct hd_job_list *list, const char *name, const uint8_t *bytes, size_t
	len,
	char sep, const struct hd_job_table_how *how, struct hd_arena *arena, struct hd_diag *diag);

/* GPUs in a list of resources (gres/gpu:a100=2, gpu:a100:2(IDX:0-1)) and their type, "" of several or of
 * none; below 0: no number. */
double sacct_gpus(const char *tres, char type[64]);
bool sacct_time(const char *text, double *seconds);        /* ISO 8601, or seconds since 1970 */
bool sacct_limit(const char *text, double *seconds);       /* [DD-]HH:MM:SS, MM:SS */

/* GPUs in a list of resources (gres/gpu:a100=2, gpu:a100:2(IDX:0-1)) and their type, "" of several or of
 * none; below 0: no number. */
double sacct_gpus(const char *tres, char type[64]);
bool sacct_time(const char *text, double *seconds);        /* ISO 8601, or seconds since 1970 */
bool sacct_limit(const char *text, double *seconds);       /* [DD-]HH:MM:SS, MM:SS */

#endif
