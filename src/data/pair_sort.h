/* pair_sort.h -- pairs of 32-bit numbers in ascending order, each once, in bounded memory.
 *
 * Edges come in any order and more than once; a graph needs them sorted (gnn/prepare.h). Up to the limit they
 * are sorted in memory; beyond, sorted runs go to a scratch file and are merged when they are taken.
 *
 * 1. What is taken depends on what was added alone, not on the limit.
 * 2. A pair is one word, first << 32 | second: order of words is order of pairs.
 * 3. The scratch file loses its name as soon as it is open: it goes with the process, whatever ends it.
 *
 * Ownership: the caller's struct, begun by init, ended by end (takes zeroed ones). Threads: one. */
#ifndef HD_DATA_PAIR_SORT_H
#define HD_DATA_PAIR_SORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/file.h"

enum { HD_PAIR_SORT_LEAST = 1 << 20,      /* bytes of memory: less makes too many runs */
       HD_PAIR_SORT_RUNS = 4096 };

struct hd_pair_run { uint64_t first, end, *buffer; uint32_t n, at; };      /* first, end: words of the file */

struct hd_pair_sort {
	struct hd_fs *fs;
	const char *scratch;              /* borrowed: where the scratch file may lie */
	struct hd_file file;
	uint64_t *word, *other;           /* two halves of the memory */
	uint64_t n, cap, most;
	struct hd_pair_run *run; uint32_t nruns, runs_cap;
	uint32_t *heap, nheap;            /* of runs, by their next word */
	uint32_t each;                    /* words of a run's buffer */
	uint64_t written, added, last;
	bool taking, any;
};

HD_MUST_USE enum hd_err hd_pair_sort_init(struct hd_pair_sort *sort, struct hd_fs *fs, const char *scratch,
	uint64_t memory_bytes, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_pair_sort_add(struct hd_pair_sort *sort, uint32_t first, uint32_t second,
	struct hd_diag *diag);
/* The next pair; *more is false, and nothing else set, after the last. After the first call nothing is
 * added. */
HD_MUST_USE enum hd_err hd_pair_sort_next(struct hd_pair_sort *sort, uint32_t *first, uint32_t *second,
	bool *more, struct hd_diag *diag);
void hd_pair_sort_end(struct hd_pair_sort *sort);

#endif
