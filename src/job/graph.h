/* graph.h -- the table `graph:` of a job file: a short form of model, data and batch for jobs that train on a
 * prepared graph. The room reads no file: whoever parses the job asks for the name of the prepared graph,
 * reads its head, and hands over what it says as rows of the job.
 *
 * 1. A job of the short form is the job of the long one: the same keys with the same values, so the same hash
 *    and the same bits. What is printed and kept is the long form.
 * 2. Beside model, data or batch the table is refused. graph.functions is the table functions: one of the
 *    two. So of price_file, which stands in graph or in functions.
 *
 * Pure. Ownership: rows and texts lie in the arena. */
#ifndef HD_JOB_GRAPH_H
#define HD_JOB_GRAPH_H

#include "job/sets.h"

/* Rows that hd_job_graph_sets() adds. */
enum { HD_JOB_GRAPH_SETS = 4 };

/* What a prepared graph says: its head, and how many rows a step has, those of all intervals of the job
 * (data/graph_layout.h). */
struct hd_job_graph { uint64_t vertices, edges; uint32_t width, classes; uint64_t rows; };

/* The prepared graph that a job file of the short form names, or a row for graph.prepared or data.path does;
 * NULL: it is of the long form, or none that can be read (hd_job_parse() says why). */
const char *hd_job_graph_file(const char *file, const char *bytes, size_t len,
	const struct hd_job_sets *sets);
/* The intervals that such a job is trained in; what is no number is 1 here, and refused by hd_job_parse(). */
uint32_t hd_job_graph_intervals(const char *file, const char *bytes, size_t len,
	const struct hd_job_sets *sets);
/* Places for edges, for each vertex: with one from each vertex to itself. */
uint64_t hd_job_graph_slots(uint64_t vertices, uint64_t edges);
/* Adds the rows, as if the file had them. */
HD_MUST_USE enum hd_err hd_job_graph_sets(struct hd_job_sets *sets, const struct hd_job_graph *graph,
	struct hd_diag *diag);

#endif
