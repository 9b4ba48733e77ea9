/* testing_learner.h -- a worker that comes to the state of others while these step, bucket by bucket:
 * included by tests of several workers (testing_dist.h).
 *
 * Ownership: the worker is the caller's. */
#ifndef HD_ENGINE_TESTING_LEARNER_H
#define HD_ENGINE_TESTING_LEARNER_H

#include "engine/testing_dist.h"

/* What a learner has; versions are those of the donor's boundaries. */
struct learner { struct hd_worker *worker; bool has[MOST_BUCKETS]; uint32_t nfrozen; bool rest; };

static inline void follow(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
{
	uint8_t scalars[HD_DIST_SCALARS_BYTES], *bytes = malloc(hd_dist_rest_bytes(donor));
	uint32_t bucket[MOST_BUCKETS], n = 0;
	struct hd_diag diag = { "" };

	hd_dist_scalars_get(donor, scalars);
	for (uint32_t b = 0; b < c->nbuckets; b++)
		if (l->has[b]) {
			memcpy(hd_dist_sum_at(l->worker, b), hd_dist_sum_at(donor, b), bytes_of(c, b));
			bucket[n++] = b;
		}
	CHECK(hd_dist_apply(l->worker, bucket, n, scalars, &diag) == HD_OK, "%s", diag.text);
	hd_dist_rest_get(donor, bytes);
	CHECK(hd_dist_rest_put(l->worker, bytes, hd_dist_rest_bytes(donor), &diag) == HD_OK, "%s",
		diag.text);
	free(bytes);
}

/* Some snaps at this boundary; true: all are there. */
static inline bool learn(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
{
	uint32_t order[MOST_BUCKETS + 8], n = hd_dist_nsnaps(donor), left = 0;
	struct hd_diag diag = { "" };

	assert_true(n <= MOST_BUCKETS + 8);
	shuffle(order, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = order[i], end;
		if (s < c->nbuckets && l->has[s])
			continue;
		if (draw(2)) {
			left++;
			continue;
		}
		for (uint32_t first = 0; first <= s; first = end) {
			end = hd_dist_snap_end(donor, first);
			if (s < end) {
				s = first;
				break;
			}
		}
		for (; s < end; s++) {
			uint8_t *bytes = malloc(hd_dist_snap_bytes(donor, s));
			hd_dist_snap_get(donor, s, bytes);
			CHECK(hd_dist_snap_put(l->worker, s, bytes, hd_dist_snap_bytes(donor, s),
				&diag) == HD_OK, "%s", diag.text);
			if (s < c->nbuckets)
				l->has[s] = true;
			free(bytes);
		}
	}
	return left == 0;
}

/* Without a part of any plan. */
static inline void open_learner(struct learner *l, const struct cluster *c, uint32_t ndevices)
{
	struct hd_diag diag = { "" };

	*l = (struct learner){ .worker = worker_of(c, ndevices, 1, 0) };
	CHECK(hd_dist_prepare(l->worker, &(struct hd_dist_view){ .worker = HD_DIST_NOBODY },
		&diag) == HD_OK, "%s", diag.text);
	hd_dist_adopt(l->worker);
}

/* All is there, of the step of the others: it is one of them, under another map. */
static inline void join(struct cluster *c, const struct learner *l, uint32_t ndevices, const char *what)
{
	struct hd_diag diag = { "" };

	assert_int_equal(hd_worker_at(l->worker), hd_worker_at(c->at[0].worker));
	CHECK(hd_hash_same(hd_worker_digest(l->worker), c->want.digest), "%s: what was learned differs",
		what);
	assert_int_equal(hd_dist_learned(l->worker, &diag), HD_OK);
	c->at[c->n++] = (struct dist_member){ l->worker, c->next_id++, ndevices };
	prepare(c, plan_of(c));
	adopt(c);
}

#endif
