/* Losses in the middle of a step, and workers that come to the state of others while these step. */
#include "engine/testing_learner.h"

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

/* A worker joins with other devices while the others go on; it learns bucket by bucket at different steps. */
static void who_learns_while_others_step_comes_to_the_same_state(void **state)
{
	const char *const models[] = { wide, gpt, resnet };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 3 : 8); round++) {
		struct cluster c;
		struct learner l;
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
		open_learner(&l, &c, 1 + round % 2);
		while (!learn(&c, &l, c.at[0].worker)) {
			step(&c, what);
			follow(&c, &l, c.at[0].worker);
		}
		step(&c, what);
		follow(&c, &l, c.at[0].worker);
		join(&c, &l, 1 + round % 2, what);
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
