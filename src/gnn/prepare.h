/* prepare.h -- edges, features and a split become a prepared graph (data/prepared.h).
 *
 * `heddle data prepare-graph` is its user.
 *
 * 1. Edges are cleaned: both directions unless `directed`, sorted, doubles and loops left out and counted.
 * 2. Equal input and equal options but `memory_bytes` give equal bytes; so does METIS of one version.
 * 3. Sorting takes `memory_bytes`; beyond it scratch files beside the output. Cutting takes, besides,
 *    12 bytes an edge and direction and 60 a vertex, METIS about 60 an edge and direction more.
 * 4. The file appears under its name when it is complete and synced, or not at all: what lay there before
 *    stays until then. Meanwhile it is OUT.tmp, which is removed where the call fails; a process that is
 *    killed leaves it, and the next one takes it. Scratch files lose their names as soon as they are open.
 * 5. OUT.tmp is locked from the first step to the last: HD_E_AGAIN, another process prepares the same file.
 * 6. Features are read twice: HD_E_INTEGRITY where the file is not the same one before and after.
 * 7. What can be refused without reading is refused first: options, the splitter, the output's folder.
 *
 * Ownership: texts are borrowed for the call. Threads: one. */
#ifndef HD_GNN_PREPARE_H
#define HD_GNN_PREPARE_H

#include "sys/file.h"
#include "gnn/split.h"

struct hd_prepare {
	const char *edges, *features, *split, *out;
	const char *labels;               /* NULL: they stand with the features */
	bool directed;
	uint32_t nintervals;              /* 0: hd_split_intervals() */
	uint32_t nclasses;                /* 0: one more than the highest label */
	uint64_t memory_bytes;            /* at least HD_PAIR_SORT_LEAST */
	uint64_t seed;
	enum hd_split_with with;
	/* `all` 0: not known yet; NULL: none */
	void (*progress)(void *user, const char *what, uint64_t done, uint64_t all);
	void *user;
};

struct hd_prepared_report {
	struct hd_prepared_head head;
	struct hd_hash digest;
	uint64_t set[4];                  /* vertices by enum hd_graph_mask; of train those with a label */
	uint64_t ncut;                    /* edges between two intervals, as directed ones */
	uint64_t most_vertices, most_edges;       /* of an interval: vertices, edges into it */
	uint64_t nscratch_bytes;          /* of sorted runs: 0 where memory sufficed */
};

HD_MUST_USE enum hd_err hd_prepare_graph(const struct hd_prepare *how, struct hd_fs *fs,
	struct hd_prepared_report *report, struct hd_diag *diag);
/* The figures of a prepared graph that is there (nscratch_bytes 0). */
void hd_prepared_figures(const struct hd_prepared *graph, struct hd_prepared_report *report);

#endif
