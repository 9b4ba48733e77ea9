/* held.h -- digests of what a worker holds of a state that lies by stages: what a seal says of it, and where
 * two workers differ.
 *
 * Of state by stages no worker has all, so there is no digest of all. Each bucket has several holders where a
 * stage has copies or a shadow, and they have the same bits of it. A *run* is so many neighbouring buckets
 * that a worker holds, with one digest of all their parameters and slots in X_{step+1}.
 *
 * 1. Where runs are cut follows from the holders of the buckets: a run ends where the next bucket has others,
 *    and at multiples of a 32nd of all buckets, rounded up. Holders of the same buckets cut them alike.
 * 2. Runs of the same buckets are compared, others say nothing of one another. So digests of two epochs, with
 *    other holders, are never called different without being so.
 * 3. The digest of a run depends on its buckets' bits alone.
 *
 * Users: member.h, coordinator.h (rules 10 and 12). Plain values. Pure. */
#ifndef HD_PROTOCOL_HELD_H
#define HD_PROTOCOL_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct hd_held_run { uint32_t first, n; uint64_t digest; };          /* buckets first .. first + n - 1 */
enum { HD_SEAL_HELD = 64 };               /* runs of one worker; what it holds beyond is not compared */

/* digest, holders: [nbuckets], a digest of each, 0: it is not held here; its holders as a mask. How many
 * runs; none if no bucket has two holders. */
uint32_t hd_held_make(struct hd_held_run run[HD_SEAL_HELD], const uint64_t *digest, const uint64_t *holders,
	uint32_t nbuckets);
/* The run with these buckets; NULL: there is none. Runs ascend. */
const struct hd_held_run *hd_held_of(const struct hd_held_run *run, uint32_t n, uint32_t first,
	uint32_t nbuckets);
/* Does no run of one lie across one of the other, so that what both hold was compared? *met is set where some
 * was. Runs ascend, and no two of a worker meet. */
bool hd_held_meet(const struct hd_held_run *a, uint32_t na, const struct hd_held_run *b, uint32_t nb,
	bool *met);
/* The first of `a` that `b` has with another digest; NULL: there is none. */
const struct hd_held_run *hd_held_differ(const struct hd_held_run *a, uint32_t na,
	const struct hd_held_run *b, uint32_t nb);

#endif
