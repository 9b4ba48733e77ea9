/* reading_int.h -- the rows of the step at hand: the reader that prefetches them, and their names.
 *
 * If the reader is not at the step of the state, the next step begins with a new reader (step.h, `again`). */
#ifndef HD_ENGINE_READING_INT_H
#define HD_ENGINE_READING_INT_H

#include "data/prefetch.h"

enum { HD_PREFETCH_STEPS = 3,             /* read ahead: cheap; more helps only uneven disks */
	/* of sets that are read by ranges, where steps wait: a far store answers late, however fast */
	HD_PREFETCH_FAR = 24, HD_PREFETCH_READERS = 16,
	HD_PREFETCH_BYTES = 256 << 20 };  /* at most this much of them */

struct hd_reading {
	struct hd_prefetch *prefetch;     /* NULL: none yet, or the last one could not be made */
	/* [nvns][per_vn] names of the rows that were loaded for the step at hand; NULL: the job does not ask
	 * (trace.samples) */
	struct hd_sample *took;
	uint64_t *ntook;                  /* [nvns] */
	_Atomic uint32_t taking;          /* devices that stand still for rows */
	_Atomic bool unread;              /* rows could not be read */
	uint64_t looks;                   /* as hd_reading_waits() knew them */
	bool spare_core;                  /* the threads of all devices leave one of the usable cores */
};

#endif
