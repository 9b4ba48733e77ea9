/* finals.h -- buckets whose roots are final, from the threads of the devices to the wire's, while a pass is
 * computed.
 *
 * A device that has made the last gradient of a bucket notes it (hd_share_watch) and goes on; the wire's
 * thread fetches what was noted and lets the roots go out. A pass that is over needs no notes: its result
 * says that all its buckets are final. So there is room for one pass.
 *
 * 1. What was noted of an earlier pass, and not fetched, is forgotten when the next one begins.
 * 2. `wake` comes when something is noted and nothing waited, not for each note.
 * 3. A pass has the number of its round: of one that was cancelled meanwhile nothing is fetched.
 *
 * Ownership: init/finish. Threads: begin is the hand's, note any device's between begin and the end of the
 * pass, fetch the wire's. */
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
	uint64_t *fetched;                /* owned: [words] the wire's */
	void (*wake)(void *user);
	void *user;
};

HD_MUST_USE enum hd_err hd_finals_init(struct hd_finals *finals, uint32_t nbuckets, void (*wake)(void *user),
	void *user, struct hd_diag *diag);
void hd_finals_finish(struct hd_finals *finals);          /* takes zeroed ones */

void hd_finals_begin(struct hd_finals *finals, const struct hd_finals_pass *pass);
void hd_finals_note(struct hd_finals *finals, uint32_t bucket);
/* What was noted since, as bits of buckets that hold until the next fetch; NULL: nothing, or nothing of
 * this round. */
const uint64_t *hd_finals_fetch(struct hd_finals *finals, uint32_t round, struct hd_finals_pass *pass);

#endif
