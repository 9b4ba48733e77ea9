/* Losses in the middle of a step, and workers that come to the state of others while these step. */
#include "engine/testing_dist.h"

/* Deals leaves that no member knows to the members, in runs. */
static void repair(const struct cluster *c)
{
	uint32_t lost[64], nlost = 0;
	struct hd_diag diag = { "" };

	for (uint32_t v = 0; v < c->job->nvns; v++) {
		bool has = false;
		for (uint32_t m = 0; m < c->n; m++)
			for (uint32_t p = 0; p < hd_dist_npasses(c->at[m].worker); p++) {
				const struct hd_worker *w = c->at[m].worker;
				has |= hd_dist_nroots(w, p) > 0 &&
					(p ? &w->step->repair[p - 1] : &w->parts->part->work)->has[v];
			}
		if (!has)
			lost[nlost++] = v;
	}
	for (uint32_t m = 0, at = 0, n; m < c->n; m++, at += n) {
		uint32_t before = hd_dist_npasses(c->at[m].worker), pass;
		n = m + 1 == c->n ? nlost - at : draw(nlost - at + 1);
		if (n == 0)
			continue;
		CHECK(hd_dist_repair(c->at[m].worker, lost + at, n, &pass, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(pass, before);
		assert_int_equal(hd_dist_nleaves(c->at[m].worker, pass), n);
	}
}

/* What somebody has summed is handed on; the rest is summed from the roots there are now. */
static void exchange_again(const struct cluster *c)
{
	spoil(c);
	for (uint32_t b = 0; b < c->nbuckets; b++) {
		uint32_t holder = 0;
		while (holder < c->n && !hd_dist_summed(c->at[holder].worker, b))
			holder++;
		if (holder == c->n)
			fold(c, holder = draw(c->n), &b, 1);
		for (uint32_t m = 0; m < c->n; m++)
			if (!hd_dist_summed(c->at[m].worker, b) || draw(2))
				send_sums(c, holder, m, &b, 1);
	}
}

/* A worker is lost before, while or after buckets are summed, and then another one in the repair; some had
 * not begun to compute. */
static void a_loss_in_the_middle_of_a_step_changes_no_bit(void **state)
{
	const char *const models[] = { hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 5 : 14); round++) {
		struct cluster c;
		char what[64];
		size_t k = round % 5;
		open_cluster(&c, models[k], shapes[round % 4].batch, shapes[round % 4].vns,
			optims[round / 2 % 4], 7000 + round);
		for (uint32_t m = 0; m < 2 + round % 4; m++)
			add_member(&c, 1 + draw(2));
		prepare(&c, plan_of(&c));
		adopt(&c);
		snprintf(what, sizeof what, "round %u, model %zu, V %u", round, k, c.job->nvns);
		step(&c, what);
		for (uint32_t losses = 0; c.n > 1 && losses < 2; losses++) {
			bool complete = draw(3) > 0;
			begin(&c);
			for (uint32_t m = 0; m < c.n; m++)
				if (complete || draw(2))
					compute(&c.at[m]);
			if (complete) {
				exchange_leaves(&c);
				exchange_sums(&c, draw(c.nbuckets + 1));
			}
			remove_member(&c, draw(c.n));
			repair(&c);
			if (c.n > 1 && draw(2)) {
				remove_member(&c, draw(c.n));
				repair(&c);
			}
			exchange_leaves(&c);
			exchange_again(&c);
			prepare(&c, plan_of(&c));
			finish(&c, what);
			adopt(&c);
			step(&c, what);
		}
		close_cluster(&c);
	}
}

/* What a learner has; versions are those of the donor's boundaries. */
struct learner { struct hd_worker *worker; bool has[MOST_BUCKETS]; uint32_t nfrozen; bool rest; };

static void follow(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
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
static bool learn(const struct cluster *c, struct learner *l, const struct hd_worker *donor)
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

/* A worker joins with other devices while the others go on; it learns bucket by bucket at different steps. */
static void who_learns_while_others_step_comes_to_the_same_state(void **state)
{
	const char *const models[] = { wide, gpt, resnet };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 3 : 8); round++) {
		struct cluster c;
		struct learner l = { 0 };
		struct hd_diag diag = { "" };
		char what[64];
		open_cluster(&c, models[round % 3], shapes[round % 4].batch, shapes[round % 4].vns,
			optims[round / 3 % 4], 31 * round);
		for (uint32_t m = 0; m < 1 + round % 3; m++)
			add_member(&c, 1 + draw(2));
		prepare(&c, plan_of(&c));
		adopt(&c);
		snprintf(what, sizeof what, "round %u, V %u", round, c.job->nvns);
		step(&c, what);
		step(&c, what);
		l.worker = worker_of(&c, 1 + round % 2, 1, 0);
		CHECK(hd_dist_prepare(l.worker, &(struct hd_dist_view){ NULL, HD_DIST_NOBODY, 0, 0, NULL },
			&diag) == HD_OK, "%s", diag.text);
		hd_dist_adopt(l.worker);
		while (!learn(&c, &l, c.at[0].worker)) {
			step(&c, what);
			follow(&c, &l, c.at[0].worker);
		}
		step(&c, what);
		follow(&c, &l, c.at[0].worker);
		assert_int_equal(hd_worker_at(l.worker), hd_worker_at(c.at[0].worker));
		CHECK(hd_hash_same(hd_worker_digest(l.worker), c.want.digest), "%s: what was learned differs",
			what);
		assert_int_equal(hd_dist_learned(l.worker, &diag), HD_OK);
		c.at[c.n++] = (struct dist_member){ l.worker, c.next_id++, 1 + round % 2 };
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++)
			step(&c, what);
		close_cluster(&c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loss_in_the_middle_of_a_step_changes_no_bit),
		cmocka_unit_test(who_learns_while_others_step_comes_to_the_same_state),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
