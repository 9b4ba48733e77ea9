/* compare.h -- two runs compared: the digests of their steps, and tensors that are near enough.
 *
 * `heddle ckpt diff` uses it beside hd_state_diff() (checkpoint/ckpt.h).
 *
 * Ownership: memory is the arena's. Threads: any. */
#ifndef HD_RUN_COMPARE_H
#define HD_RUN_COMPARE_H

#include "checkpoint/ckpt.h"

/* Digests of metrics.ndjson by step, ascending. A step recorded again (a run that was resumed from an earlier
 * checkpoint) replaces that line and all later ones. */
struct hd_run_digests { uint64_t *step; struct hd_hash *digest; size_t n; };

/* A folder without metrics has none: n = 0. Lines without a digest, or that are no JSON, are passed over. */
HD_MUST_USE enum hd_err hd_digests_read(struct hd_fs *fs, const char *run, struct hd_arena *arena,
	struct hd_run_digests *digests, struct hd_diag *diag);

/* known: at `step` both have a digest, and they differ. Of the steps that both have, `compared` agree before
 * it, the last of them `after`. */
struct hd_divergence { bool known; uint64_t step, after, compared; };
struct hd_divergence hd_digests_diverge(const struct hd_run_digests *a, const struct hd_run_digests *b);

/* What "near enough" is: a greatest distance of at most `ulp`, or every element within `rel` of the larger
 * magnitude. any false: only the same bits are. */
struct hd_slack { uint64_t ulp; double rel; bool any; };

/* Of a tensor that differs (a row of hd_state_diff() over `a` and `b`). One that is in one state alone, or of
 * another type or shape, is not near. */
bool hd_slack_allows(const struct hd_slack *slack, const struct hd_state *a, const struct hd_state *b,
	const struct hd_tensor_diff *diff);

#endif
