#include "engine/testing_dist.h"

/* Every few steps another map; prepared while a step is under way or between two. */
static void workers_give_the_bits_of_one_device(void **state)
{
	const char *const models[] = { hd_rig_mlp, hd_rig_lenet, gpt, resnet, wide, hd_rig_bn() };

	(void)state;
	for (size_t k = 0; k < sizeof models / sizeof *models; k++)
		for (uint32_t n = 1 + k % 2; n <= MOST; n += SANITIZED ? 4 : k > 1 ? 2 : 1) {
			struct cluster c;
			char what[64];
			open_cluster(&c, models[k], shapes[(n + k) % 4].batch, shapes[(n + k) % 4].vns,
				optims[(n + 2 * k) % 4], 100 * n + k);
			for (uint32_t m = 0; m < n; m++)
				add_member(&c, 1 + draw(n > 4 ? 2 : MOST_DEVICES));
			prepare(&c, plan_of(&c));
			adopt(&c);
			for (uint32_t s = 0; s < 3; s++) {
				snprintf(what, sizeof what, "model %zu, V %u, %u workers", k, c.job->nvns, n);
				if (s % 2)
					prepare(&c, plan_of(&c));
				step(&c, what);
				if (s % 2)
					adopt(&c);
			}
			close_cluster(&c);
		}
}

/* Two members of one device each, begun; both computed. */
static void open_two(struct cluster *c, const char *model, const char *more)
{
	open_cluster(c, model, 32, 8, more, 5);
	add_member(c, 1);
	add_member(c, 1);
	seed = 0;                                 /* an even map */
	do {
		prepare(c, plan_of(c));
		adopt(c);
	} while (hd_dist_nleaves(c->at[0].worker, 0) != 4);
	begin(c);
	compute(&c->at[0]);
	compute(&c->at[1]);
}

static void entries_that_are_no_leaves_are_refused_and_change_nothing(void **state)
{
	struct cluster c;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, hd_rig_bn(), optims[0]);
	struct hd_worker *a = c.at[0].worker, *b = c.at[1].worker;
	uint64_t len = hd_dist_leaves_bytes(a, 4), entry = (len - 8) / 4;
	uint8_t *bytes = malloc(len + 8);
	for (uint32_t how = 0; how < 8; how++) {
		uint64_t said = len;
		hd_dist_leaves_get(a, 0, bytes);
		switch (how) {
		case 0: said = len - 1; break;
		case 1: said = len + 8; break;
		case 2: said = 7; break;
		case 3: bytes[0]++; break;                        /* another version */
		case 4: bytes[4] = 3; break;                      /* three of four */
		case 5: memcpy(bytes + 8 + entry, bytes + 8, 4); break;  /* a leaf twice */
		case 6: bytes[8 + 3 * entry] = 8; break;          /* there are 8 */
		default: bytes[8 + 2 * entry + 4] = 1; break;     /* what must be 0 */
		}
		diag.text[0] = 0;
		CHECK(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, said, &diag) == HD_E_PROTOCOL,
			"case %u: %s", how,
			diag.text);
		assert_int_equal(hd_dist_leaves_missing(b), 4);
	}
	hd_dist_leaves_get(a, 0, bytes);
	assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, len, &diag), HD_OK);
	assert_int_equal(hd_dist_leaves_missing(b), 0);
	for (uint64_t at = 16; at < entry; at += 8) {     /* any number of an entry that is known already */
		bytes[8 + at] ^= 1;
		assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, len, &diag), HD_E_INTEGRITY);
		bytes[8 + at] ^= 1;
	}
	free(bytes);
	hd_dist_abandon(a);
	hd_dist_abandon(b);
	close_cluster(&c);
}

/* After a step a worker can still tell the table to one that lacks it, and its sums. */
static void what_a_step_summed_can_be_told_after_it(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, resnet, optims[0]);
	struct hd_worker *a = c.at[0].worker, *b = c.at[1].worker;
	uint64_t len = hd_dist_leaves_bytes(a, 4), all = hd_dist_leaves_bytes(a, 8);
	uint8_t *bytes = malloc(all);
	hd_dist_leaves_get(b, 0, bytes);
	assert_int_equal(hd_dist_leaves_put(a, HD_DIST_NOBODY, bytes, len, &diag), HD_OK);
	for (uint32_t k = 0; k < c.nbuckets; k++)
		fold(&c, 0, &k, 1);
	assert_int_equal(hd_dist_finish(a, &r, &diag), HD_OK);
	assert_true(hd_hash_same(r.digest, c.want.digest));
	hd_dist_table_get(a, bytes);
	assert_int_equal(hd_dist_leaves_put(b, HD_DIST_NOBODY, bytes, all, &diag), HD_OK);
	for (uint32_t k = 0; k < c.nbuckets; k++)
		send_sums(&c, 0, 1, &k, 1);
	assert_int_equal(hd_dist_finish(b, &r, &diag), HD_OK);
	assert_true(hd_hash_same(r.digest, c.want.digest));
	free(bytes);
	step(&c, "after it");
	close_cluster(&c);
}

/* What is missing is said; what was begun and given up, or failed before the update, is begun again. */
static void a_step_that_is_not_finished_leaves_the_state_of_its_beginning(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, wide, optims[0]);
	struct hd_hash before = hd_worker_digest(c.at[0].worker);
	exchange_leaves(&c);
	assert_int_equal(hd_dist_finish(c.at[0].worker, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "buckets have no sum, 0 virtual nodes"), "%s", diag.text);
	exchange_sums(&c, 1);
	for (uint32_t m = 0; m < 2; m++) {
		hd_dist_abandon(c.at[m].worker);
		assert_true(hd_hash_same(hd_worker_digest(c.at[m].worker), before));
		assert_int_equal(hd_dist_begin(c.at[m].worker, true, &diag), HD_OK);
		assert_int_equal(hd_dist_unsummed(c.at[m].worker), c.nbuckets);
		assert_int_equal(hd_dist_leaves_missing(c.at[m].worker), 8);
		compute(&c.at[m]);
	}
	exchange_sums(&c, UINT32_MAX);
	diag.text[0] = 0;
	assert_int_equal(hd_dist_finish(c.at[0].worker, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "0 buckets have no sum, 4 virtual nodes"), "%s", diag.text);
	exchange_leaves(&c);
	finish(&c, "begun again");
	begin(&c);
	struct hd_hash bits;
	assert_int_equal(hd_dist_probe(c.at[0].worker, 0, &bits, &diag), HD_E_REFUSED);
	/* a scribe may save before a step that was begun and given up */
	for (uint32_t m = 0; m < 2; m++) {
		float *first = hd_worker_state(c.at[m].worker)->entry[0].at, was = *first;
		CHECK(hd_worker_as_reported(c.at[m].worker), "member %u, in the step", m);
		hd_dist_abandon(c.at[m].worker);
		CHECK(hd_worker_as_reported(c.at[m].worker), "member %u, after it", m);
		*first += 1;
		CHECK(!hd_worker_as_reported(c.at[m].worker), "member %u, a bit flipped", m);
		*first = was;
	}
	close_cluster(&c);
}

/* Each worker ends the step alike; only the one that computed the leaf can name the op. */
static void a_number_that_is_not_finite_ends_the_step_everywhere(void **state)
{
	struct cluster c;
	struct hd_step_record r;
	uint32_t named = 0;

	(void)state;
	open_cluster(&c, hd_rig_mlp, 32, 8, "", 9);
	add_member(&c, 2);
	add_member(&c, 1);
	struct hd_plan *plan = hd_arena_take(&c.arena, 1, sizeof *plan);
	struct hd_plan_job pj = hd_plan_job_whole(8, c.task->layout.nchunks);
	assert_int_equal(hd_plan_data(plan, &pj, 3, (uint32_t[]){ 5, 3, 0 }, &c.arena, NULL), HD_OK);
	plan->worker[2] = 1;
	prepare(&c, plan);
	adopt(&c);
	struct hd_hash before[2];
	for (uint32_t m = 0; m < 2; m++) {
		struct hd_diag diag = { "" };
		hd_param_store_at(c.at[m].worker->store, HD_VEC_PARAMS, 0, 1)[0] = INFINITY;
		before[m] = hd_worker_digest(c.at[m].worker);
		assert_int_equal(hd_dist_begin(c.at[m].worker, true, &diag), HD_OK);
		compute(&c.at[m]);
	}
	exchange_leaves(&c);
	exchange_sums(&c, UINT32_MAX);
	for (uint32_t m = 0; m < 2; m++) {
		struct hd_diag diag = { "" };
		assert_int_equal(hd_dist_finish(c.at[m].worker, &r, &diag), HD_E_DIVERGED);
		named += strstr(diag.text, "made by op") != NULL;
		CHECK(m == 0 ||
			strstr(diag.text,
			"every virtual node of this worker is finite; another one's is not"), "%s",
			diag.text);
		assert_true(hd_hash_same(hd_worker_digest(c.at[m].worker), before[m]));
	}
	assert_int_equal(named, 1);
	close_cluster(&c);
}

static uint64_t places(uint64_t n) { return n * HD_BUCKET_BYTES; }

static void views_that_a_worker_cannot_join_are_refused_by_name(void **state)
{
	struct cluster c;
	struct hd_memory_terms had, has, said;
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	(void)state;
	open_two(&c, wide, optims[0]);
	struct hd_worker *a = c.at[0].worker;
	const struct hd_plan *plan = a->parts->part->plan;
	hd_dist_abandon(a);
	hd_dist_abandon(c.at[1].worker);

	/* a plan with ranks of others is no plan for a worker alone */
	assert_int_equal(hd_worker_adopt(a, plan, &diag), HD_E_BADPLAN);
	diag.text[0] = 0;
	assert_int_equal(hd_worker_step(a, false, &r, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "ranks of other workers"), "%s", diag.text);

	/* other devices than it has */
	plan->worker[1] = c.at[0].id;
	diag.text[0] = 0;
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id }, &diag),
		HD_E_BADPLAN);
	CHECK(strstr(diag.text, "the plan is for 2 devices, the worker has 1"), "%s", diag.text);
	plan->worker[1] = c.at[1].id;
	assert_false(hd_dist_prepared(a));

	/* places are counted before they are taken */
	hd_worker_memory(a, &had);
	assert_int_equal(a->parts->need_links, 2);       /* to the other, and to the coordinator */
	CHECK(had.own >= 2 * HD_LINK_BYTES, "links are not counted: %llu", (unsigned long long)had.own);
	a->spec.memory_limit_bytes = had.held + 10 * HD_BUCKET_BYTES;
	/* those that the caller takes, too, and as long as the part is there */
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .received_bytes = places(11) },
		&diag),
		HD_E_REFUSED);
	assert_int_equal(hd_dist_memory(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .received_bytes = places(11) },
		&said,
		&diag),
		HD_E_REFUSED);
	assert_int_equal(hd_dist_memory(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .received_bytes = places(10) },
		&said,
		&diag),
		HD_OK);
	assert_false(hd_dist_prepared(a));
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .received_bytes = places(10) },
		&diag),
		HD_OK);
	hd_worker_memory(a, &has);
	assert_true(has.total == said.total && has.own == said.own);
	assert_true(has.gradients == had.gradients + 10 * HD_BUCKET_BYTES &&
		has.held == had.held + 10 * HD_BUCKET_BYTES);
	hd_dist_forget(a);
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .nplaces = a->parts->nreceive + 11 },
		&diag), HD_E_REFUSED);
	assert_int_equal(hd_dist_prepare(a, &(struct hd_dist_view){ .plan = plan,
		.worker = c.at[0].id, .nplaces = a->parts->nreceive + 10 },
		&diag), HD_OK);
	hd_worker_memory(a, &has);
	assert_true(has.gradients == had.gradients + 10 * HD_BUCKET_BYTES &&
		has.held == had.held + 10 * HD_BUCKET_BYTES);
	hd_dist_forget(a);
	close_cluster(&c);
}

/* What others expect of a worker is what it has. */
static void roots_follow_from_the_plan(void **state)
{
	struct hd_tnode root[16];
	struct cluster c;
	uint8_t has[16];
	uint32_t n;

	(void)state;
	for (uint32_t k = 0; k < 8; k++) {
		open_cluster(&c, hd_rig_mlp, 46, 16, "", 40 + k);
		for (uint32_t m = 0; m < 3; m++)
			add_member(&c, 1 + draw(3));
		prepare(&c, plan_of(&c));
		adopt(&c);
		begin(&c);
		for (uint32_t m = 0; m < 3; m++) {
			const struct hd_worker *w = c.at[m].worker;
			assert_int_equal(hd_dist_nroots(w, 0), 0);
			compute(&c.at[m]);
			assert_int_equal(hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has, root, 16,
				&n),
				HD_OK);
			assert_int_equal(hd_dist_nroots(w, 0), n);
			for (uint32_t i = 0; i < n; i++)
				assert_true(hd_tnode_same(hd_dist_root(w, 0, i), root[i]));
			assert_true(n < 2 || hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has, root,
				n - 1,
				&n) == HD_E_NOSPACE);
			hd_dist_abandon(c.at[m].worker);
		}
		close_cluster(&c);
	}
}

static void state_that_is_not_this_jobs_is_refused(void **state)
{
	struct cluster c;
	struct hd_diag diag = { "" };
	uint8_t scalars[HD_DIST_SCALARS_BYTES], *bytes;
	uint64_t at;

	(void)state;
	open_two(&c, wide, "optim: {kind: lamb, lr: 0.01}");
	exchange_leaves(&c);
	exchange_sums(&c, UINT32_MAX);
	finish(&c, "before it");
	struct hd_worker *a = c.at[0].worker;
	struct hd_hash before = hd_worker_digest(a);
	bytes = malloc(hd_dist_snap_bytes(a, 0) + hd_dist_rest_bytes(a));
	hd_dist_snap_get(a, 0, bytes);
	assert_int_equal(hd_dist_snap_put(a, 0, bytes, hd_dist_snap_bytes(a, 0) - 4, &diag), HD_E_PROTOCOL);
	assert_int_equal(hd_dist_snap_put(a, hd_dist_nsnaps(a), bytes, 4, &diag), HD_E_PROTOCOL);
	hd_dist_rest_get(a, bytes);
	assert_int_equal(hd_dist_rest_put(a, bytes, hd_dist_rest_bytes(a) + 8, &diag), HD_E_PROTOCOL);
	bytes[0]++;
	assert_int_equal(hd_dist_rest_put(a, bytes, hd_dist_rest_bytes(a), &diag), HD_E_PROTOCOL);
	hd_dist_scalars_get(a, scalars);
	assert_int_equal(hd_dist_scalars_step(scalars, &at, &diag), HD_OK);
	assert_int_equal(at, 0);
	diag.text[0] = 0;
	assert_int_equal(hd_dist_apply(a, (uint32_t[]){ 0 }, 1, scalars, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "optimizer lamb changes whole tensors"), "%s", diag.text);
	assert_int_equal(hd_dist_apply(a, (uint32_t[]){ 0, 0 }, 2, scalars, &diag), HD_E_INVAL);
	scalars[0]++;
	assert_int_equal(hd_dist_scalars_step(scalars, &at, &diag), HD_E_PROTOCOL);
	assert_true(hd_hash_same(hd_worker_digest(a), before));
	free(bytes);
	close_cluster(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_give_the_bits_of_one_device),
		cmocka_unit_test(entries_that_are_no_leaves_are_refused_and_change_nothing),
		cmocka_unit_test(what_a_step_summed_can_be_told_after_it),
		cmocka_unit_test(a_step_that_is_not_finished_leaves_the_state_of_its_beginning),
		cmocka_unit_test(a_number_that_is_not_finite_ends_the_step_everywhere),
		cmocka_unit_test(views_that_a_worker_cannot_join_are_refused_by_name),
		cmocka_unit_test(roots_follow_from_the_plan),
		cmocka_unit_test(state_that_is_not_this_jobs_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
