/* recorder.h -- the flight recorder of a worker: its last steps, in a file that survives it.
 *
 * A run opens one in its folder, flight/<number>.hdfr, and hands it to the worker, whose
 * ranks then write an event per instruction. trace/flight.h says what the file holds. The
 * number is the lowest, from the spec's on, that no living recorder of the folder has
 * (<number>.lock): processes that start at the same time do not move each other's away.
 *
 * 1. One ring per rank, written by that rank alone; recording takes no lock, allocates
 *    nothing and makes no system call (the clock is read without one).
 * 2. Events: STEP_BEGIN and STEP_END (rank 0; instr 1: committed, 0: dropped), OP per
 *    instruction (instr: its index in the rank's list; arg: bytes that an F or B touches,
 *    0 for others), WAIT for the reader's rows when it was felt (HD_WAIT_FELT_NS).
 * 3. Older files of the same number become .1 to .3.
 * 4. NULL is a recorder that is off.
 *
 * Ownership: open/close; close says that the process ended by itself. Threads: one per ring. */
#ifndef HD_ENGINE_RECORDER_H
#define HD_ENGINE_RECORDER_H

#include "base/hash.h"
#include "trace/flight.h"
#include "sys/file.h"

enum { HD_RECORDER_KEEP = 3, HD_WAIT_FELT_NS = 1000 };

struct hd_recorder;

struct hd_recorder_spec {
	/* for numbers and older files, until close; the recording itself is always a file of the system */
	struct hd_fs *fs;
	const char *folder;               /* that of the run's flight files */
	uint32_t worker, nranks;          /* 64 rings at most: ranks beyond are not recorded */
	uint64_t nslots;                  /* per ring; raised to a power of two */
	struct hd_hash job;
};

HD_MUST_USE enum hd_err hd_recorder_open(struct hd_recorder **recorder, const struct hd_recorder_spec *spec,
	struct hd_diag *diag);
void hd_recorder_close(struct hd_recorder *recorder);              /* takes NULL */

uint64_t hd_recorder_now(const struct hd_recorder *recorder);      /* ticks of the events; 0 when off */
void hd_recorder_step_begin(struct hd_recorder *recorder, uint64_t step);
void hd_recorder_step_end(struct hd_recorder *recorder, uint64_t step, bool committed);
void hd_recorder_op(struct hd_recorder *recorder, uint32_t rank, uint64_t began, uint8_t op, uint32_t instr,
	uint64_t bytes);
void hd_recorder_wait(struct hd_recorder *recorder, uint32_t rank, uint64_t began, uint64_t waited_ns,
	enum hd_wait reason);

#endif
