/* seal.h -- when a step counts: sealed by a member, committed by all.
 *
 * X_s is all state before step s. X_{s+1} = F(job, X_s, s) is a pure function, so there is nothing to agree
 * on: a commit only says how many copies exist. A member that holds every sum of step s *seals* it. When
 * all members of the view have sealed s with equal digests, s is *committed*; only then may a member begin
 * s + 1. One worker is a view of one member and runs the same code. Members and the coordinator use the
 * same machine.
 *
 * Pure state machine: messages in, verdicts out; no clock, no I/O.
 * 1. Members are at most one step apart (the gate).
 * 2. A seal counts once per (member, step); one of another epoch is refused.
 * 3. Seals of one step carry equal digests; the first that differs is named. It does not count, but shows
 *    that its sender has sealed all steps before.
 * 4. Members of a decided view may be expected beside the members: their seals are taken under its epoch,
 *    hd_seals_has() knows them, and they gate nothing here.
 * 5. An observer (`observes`: the coordinator, whose links are not those of the gate) takes seals in any
 *    order of members; it compares the digests of steps that it hears of together.
 * 6. A worker whose progress is unknown (HD_SEAL_UNKNOWN) is where its first seal says; until then
 *    nothing commits. */
#ifndef HD_PROTOCOL_SEAL_H
#define HD_PROTOCOL_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_MAX_MEMBERS = 64, HD_MAX_SEALERS = 2 * HD_MAX_MEMBERS };
#define HD_SEAL_UNKNOWN UINT64_MAX

/* digests 0: not a digest step; knows: the newest decided view that its sender is prepared for. */
struct hd_seal { uint32_t epoch, member; uint64_t step, sum_digest, state_digest; uint32_t knows; };

struct hd_sealer {
	uint32_t worker;
	uint64_t next;                    /* it has sealed all steps below */
	/* first step whose seal said that it knows of the view expected; HD_SEAL_UNKNOWN: none yet */
	uint64_t since;
};

struct hd_seals {
	bool observes;
	/* epochs whose seals are taken: of members; of those expected (0: none) */
	uint32_t epoch, also;
	uint32_t nmembers, n;             /* sealers: the members first, then those expected */
	uint64_t committed;               /* steps committed: s is the next to commit */
	/* first seals of steps committed, committed + 1, by parity: what others must equal */
	struct hd_seal first[2];
	bool has_first[2];
	struct hd_sealer by[HD_MAX_SEALERS];
};

/* Members 0 .. nmembers - 1 that have all sealed what is below `step`. */
void hd_seals_init(struct hd_seals *seals, uint32_t epoch, uint32_t nmembers, uint64_t step);
/* Members by worker id and what each has sealed: next[i], or HD_SEAL_UNKNOWN; next NULL: `step` for all. */
void hd_seals_of(struct hd_seals *seals, uint32_t epoch, const uint32_t *worker, const uint64_t *next,
	uint64_t step, uint32_t nmembers);
/* The members of decided view `epoch`: those that are not members now are expected (rule 4). */
void hd_seals_expect(struct hd_seals *seals, uint32_t epoch, const uint32_t *worker, uint32_t n);

/* HD_OK; HD_E_STALE: other epoch, or it was counted already (drop it); HD_E_INTEGRITY: digests
 * differ; HD_E_PROTOCOL: no such member, or more than one step ahead. `*committed` tells how many steps
 * this seal completed. */
HD_MUST_USE enum hd_err hd_seals_add(struct hd_seals *seals, const struct hd_seal *seal, uint32_t *committed,
	struct hd_diag *diag);
/* It is known otherwise that this member has sealed all steps below `next`. */
void hd_seals_reach(struct hd_seals *seals, uint32_t member, uint64_t next);
/* May a member begin `step`? Only when every member has sealed step - 1. */
bool hd_seals_gate(const struct hd_seals *seals, uint64_t step);
/* The first step all of whose seals know of the view expected; HD_SEAL_UNKNOWN: there is none yet. A
 * member that knows goes on knowing, so it is the same wherever all seals are heard, in whatever order. */
uint64_t hd_seals_known_since(const struct hd_seals *seals);
/* Has that worker sealed all steps below `step`? */
bool hd_seals_has(const struct hd_seals *seals, uint32_t worker, uint64_t step);

#endif
