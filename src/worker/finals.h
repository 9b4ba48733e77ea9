/* finals.h -- buckets whose roots are final, from device threads to the I/O thread, while a pass is
 * computed.
 *
 * A device that made the last gradient of a bucket notes it (hd_dist_watch) and goes on. The I/O thread
 * fetches the notes and sends the roots. A finished pass needs no notes: its result says that all its
 * buckets are final. So there is space for one pass.
 *
 * 1. Notes of an earlier pass that were not fetched are dropped when the next pass begins.
 * 2. `wake` is called when a note comes and none waited, not for each note.
 * 3. A pass has the number of its round: notes of a pass that was cancelled meanwhile are not fetched.
 *
 * Ownership: init/finish. Threads: begin() compute thread; note() any device between begin() and the end
 * of the pass; fetch() I/O thread. */
#ifndef HD_WORKER_FINALS_H
#define HD_WORKER_FINALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sys/lock.h"

struct hd_finals_pass { uint64_t step; uint32_t pass, round; };

struct hd_finals {
	struct hd_lock lock;
	struct hd_finals_pass of;
	bool some;
	uint32_t words;
	uint64_t *bit;                    /* owned: [words] noted, not fetched */
	uint64_t *fetched;                /* owned: [words] the I/O thread's */
	void (*wake)(void *user);
	void *user;
};

HD_MUST_USE enum hd_err hd_finals_init(struct hd_finals *finals, uint32_t nbuckets, void (*wake)(void *user),
	void *user, struct hd_diag *diag);
void hd_finals_finish(struct hd_finals *finals);          /* takes zeroed ones */

void hd_finals_begin(struct hd_finals *finals, const struct hd_finals_pass *pass);
void hd_finals_note(struct hd_finals *finals, uint32_t bucket);
/* Notes since the last fetch, as bits of buckets, valid until the next fetch; NULL: none, or none of this
 * round. */
const uint64_t *hd_finals_fetch(struct hd_finals *finals, uint32_t round, struct hd_finals_pass *pass);

#endif
