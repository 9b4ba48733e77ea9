/* seal.h -- when a step counts: sealed by a member, committed by all.
 *
 * X_s is all state before step s; X_{s+1} = F(job, X_s, s) is a pure function, so
 * nobody has to agree on a value: commit only says how many copies exist. A member
 * that holds every sum of step s *seals* it and only then changes a parameter; when
 * all members of the view have sealed s with equal digests, s is *committed*. One
 * worker is a view of one member and passes through the same code.
 *
 * Pure state machine: messages in, verdicts out; no clock, no I/O.
 * 1. Members may be at most one step apart (the gate).
 * 2. A seal is counted once per (member, step); one of another epoch is refused.
 * 3. Seals of one step must carry equal digests; the first that differs is named. */
#ifndef HD_EXEC_SEAL_H
#define HD_EXEC_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_MAX_MEMBERS = 64 };

struct hd_seal { uint32_t epoch, member; uint64_t step, sum_digest, state_digest; };     /* digests 0: not a digest step */

struct hd_seals {
	uint32_t epoch, nmembers;
	uint64_t committed;               /* steps committed: s is the next to commit */
	uint64_t sealed[2];               /* member bits for steps committed, committed + 1 */
	struct hd_seal first[2];          /* first seal of each: what the others must equal */
};

void hd_seals_init(struct hd_seals *seals, uint32_t epoch, uint32_t nmembers, uint64_t step);
/* HD_OK; HD_E_STALE: other epoch, or a step already committed (drop it); HD_E_INTEGRITY: digests
 * differ; HD_E_PROTOCOL: no such member, or more than one step ahead. `*committed` tells whether
 * this seal completed one or two steps (how many). */
HD_MUST_USE enum hd_err hd_seals_add(struct hd_seals *seals, const struct hd_seal *seal, uint32_t *committed, struct hd_diag *diag);
/* May `member` write its gradient buffer in step s? Only when every member has sealed s-1. */
bool hd_seals_gate(const struct hd_seals *seals, uint64_t step);

#endif
