/* Buckets that are final before the pass is computed: said as they are, and summed meanwhile. */
#include "engine/testing_dist.h"

/* What a watcher saw of one worker's pass: its roots, copied at the moment they were said to be final. */
struct watched {
	struct cluster *c;
	struct hd_worker *worker;
	struct hd_tnode root[16];
	uint32_t nroots, said[MOST_BUCKETS], pass;
	atomic_uint nfirst;                       /* buckets said before the pass was computed */
	bool waits;                               /* when the first was said another one was not final */
	float *copy[16];
};

static void see(void *user, uint32_t pass, uint32_t bucket)
{
	struct watched *seen = user;
	const struct hd_layout *layout = &seen->c->task->layout;
	uint32_t first, n = hd_layout_pieces(layout, bucket, &first);

	assert_int_equal(pass, seen->pass);
	assert_true(hd_dist_final(seen->worker, pass, bucket));
	seen->said[bucket]++;
	if (seen->worker->step->early && atomic_fetch_add(&seen->nfirst, 1) == 0)
		for (uint32_t b = 0; b < seen->c->nbuckets; b++)
			seen->waits |= !hd_dist_final(seen->worker, pass, b);
	for (uint32_t i = 0; i < seen->nroots; i++)
		for (uint32_t k = 0; k <= n; k++) {
			const struct hd_grad_run run = hd_layout_run(layout, k ? first + k - 1 : bucket);
			memcpy(seen->copy[i] + run.at, hd_dist_root_at(seen->worker, pass, i,
				k ? first + k - 1 : bucket), run.len * sizeof(float));
		}
}

static void check_seen(struct watched *seen, const char *what)
{
	assert_int_equal(seen->nroots, hd_dist_nroots(seen->worker, seen->pass));
	for (uint32_t b = 0; b < seen->c->nbuckets; b++)
		CHECK(seen->said[b] == 1, "%s: bucket %u was said %u times", what, b, seen->said[b]);
	for (uint32_t b = 0; b < hd_layout_nruns(&seen->c->task->layout); b++) {
		const struct hd_grad_run run = hd_layout_run(&seen->c->task->layout, b);
		for (uint32_t i = 0; i < seen->nroots; i++)
			CHECK(memcmp(seen->copy[i] + run.at, hd_dist_root_at(seen->worker, seen->pass, i, b),
				run.len * sizeof(float)) == 0, "%s: root %u of run %u was not final", what,
				i, b);
	}
}

static void buckets_are_final_when_they_are_said_to_be(void **state)
{
	const char *const models[] = { wide, gpt, resnet };
	uint32_t nearly = 0;

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 6 : 12); round++) {
		struct cluster c;
		uint8_t has[16];
		char what[64];
		slices = round % 6 == 5 ? 2 : 1;
		open_cluster(&c, models[round % 3], 46, 16, "", 600 + round);
		slices = 1;
		add_member(&c, 1);
		add_member(&c, 1 + round % 2);
		prepare(&c, plan_of(&c));
		adopt(&c);
		struct watched *seen = hd_arena_take(&c.arena, 2, sizeof *seen);
		for (uint32_t s = 0; s < 2; s++) {        /* step 1 has a short batch: parts without rows */
			begin(&c);
			for (uint32_t m = 0; m < 2; m++) {
				struct hd_worker *w = c.at[m].worker;
				memset(&seen[m], 0, sizeof *seen);
				seen[m].c = &c;
				seen[m].worker = w;
				assert_int_equal(hd_dist_roots_of(w->parts->part->plan, c.at[m].id, 0, has,
					seen[m].root, 16, &seen[m].nroots), HD_OK);
				for (uint32_t i = 0; i < seen[m].nroots; i++)
					seen[m].copy[i] = hd_arena_take(&c.arena, c.task->layout.grad_elems,
						sizeof(float));
				assert_false(hd_dist_final(w, 0, 0));
				hd_dist_watch(w, see, &seen[m]);
				compute(&c.at[m]);
				snprintf(what, sizeof what, "round %u, step %u, member %u", round, s, m);
				check_seen(&seen[m], what);
				nearly += seen[m].waits;
				bool must = c.nbuckets > 1 && w->parts->part->work.nleaves &&
					c.at[m].ndevices == 1;
				CHECK(!must || (seen[m].waits && seen[m].nfirst),
					"%s: nothing was said before the end", what);
				hd_dist_watch(w, NULL, NULL);
			}
			exchange_leaves(&c);
			exchange_sums(&c, UINT32_MAX);
			finish(&c, what);
		}
		close_cluster(&c);
	}
	assert_true(nearly > (SANITIZED ? 2 : 4));
}

/* Member 1 is in its pass; member 0 has done its own. */
struct beside { struct cluster *c; struct hd_tnode own[16]; uint32_t nown; atomic_uint taken; };

/* A bucket that is final is summed at once; every other one is then taken for one that arrived. */
static void sum_beside(void *user, uint32_t pass, uint32_t bucket)
{
	struct beside *beside = user;
	struct hd_worker *zero = beside->c->at[0].worker, *one = beside->c->at[1].worker;
	const struct hd_layout *layout = &beside->c->task->layout;
	const struct hd_chunk run = hd_layout_bucket(layout, bucket);
	struct hd_tnode name[MOST_ROOTS];
	const float *operand[(1 + MOST_PIECES) * MOST_ROOTS];
	float *copy[(1 + MOST_PIECES) * MOST_ROOTS];
	struct hd_diag diag = { "" };
	uint32_t n = hd_dist_nroots(zero, 0), ncopies = 0, first, npieces = hd_layout_pieces(layout, bucket,
		&first);
	bool taken;

	for (uint32_t i = 0; i < n; i++)
		name[i] = hd_dist_root(zero, 0, i);
	for (uint32_t i = 0; i < beside->nown; i++)
		name[n + i] = beside->own[i];
	for (uint32_t k = 0; k <= npieces; k++) {
		const uint32_t number = k ? first + k - 1 : bucket;
		const uint64_t len = hd_layout_run(layout, number).len * sizeof(float);
		const float **row = operand + k * (n + beside->nown);
		for (uint32_t i = 0; i < n; i++) {
			copy[ncopies] = malloc(len);
			memcpy(copy[ncopies], hd_dist_root_at(zero, 0, i, number), len);
			row[i] = copy[ncopies++];
		}
		for (uint32_t i = 0; i < beside->nown; i++)
			row[n + i] = hd_dist_root_at(one, pass, i, number);
	}
	struct hd_dist_fold fold = { bucket, operand };
	CHECK(hd_dist_aside(one, name, NULL, n + beside->nown, &fold, &taken, &diag) == HD_OK, "%s",
		diag.text);
	assert_true(taken && hd_dist_summed(one, bucket));
	for (uint32_t i = 0; i < ncopies; i++)
		free(copy[i]);
	if (bucket % 2) {
		for (uint32_t i = run.first_segment; i < run.first_segment + run.nsegments; i++)
			one->stage->segment_sumsq[i] = -1;
		one->step->summed[bucket] = 0;
		one->step->nsummed--;
		fold.operand = NULL;
		CHECK(hd_dist_aside(one, NULL, NULL, 0, &fold, &taken, &diag) == HD_OK && taken, "%s",
			diag.text);
	}
	assert_int_equal(hd_dist_aside(zero, NULL, NULL, 0, &(struct hd_dist_fold){ bucket, NULL }, &taken,
		&diag), HD_OK);
	assert_false(taken || hd_dist_summed(zero, bucket));     /* it is in no pass */
	atomic_fetch_add(&beside->taken, 1);
}

static void buckets_are_summed_while_a_pass_is_computed(void **state)
{
	const char *const models[] = { wide, gpt, resnet };

	(void)state;
	for (uint32_t round = 0; round < (SANITIZED ? 3 : 9); round++) {
		struct cluster c;
		uint8_t has[16];
		char what[64];
		uint32_t all[MOST_BUCKETS];
		struct hd_diag diag = { "" };
		bool taken;
		open_cluster(&c, models[round % 3], 46, 16, optims[round % 4], 800 + round);
		add_member(&c, 1);
		add_member(&c, 1 + round / 6);
		CHECK(hd_dist_aside_open(c.at[0].worker, &diag) == HD_OK &&
			hd_dist_aside_open(c.at[1].worker, &diag) == HD_OK, "%s", diag.text);
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++) {
			struct hd_worker *one = c.at[1].worker;
			struct beside beside = { .c = &c };
			snprintf(what, sizeof what, "round %u, step %u", round, s);
			begin(&c);
			compute(&c.at[0]);
			assert_int_equal(hd_dist_roots_of(one->parts->part->plan, c.at[1].id, 0, has,
				beside.own, 16,
				&beside.nown), HD_OK);
			hd_dist_watch(one, sum_beside, &beside);
			compute(&c.at[1]);
			hd_dist_watch(one, NULL, NULL);
			assert_int_equal(atomic_load(&beside.taken), c.nbuckets);
			assert_int_equal(hd_dist_unsummed(one), 0);
			assert_int_equal(hd_dist_aside(one, NULL, NULL, 0, &(struct hd_dist_fold){ 0, NULL },
				&taken, &diag), HD_OK);
			assert_false(taken);                              /* its pass is over */
			exchange_leaves(&c);
			for (uint32_t b = 0; b < c.nbuckets; b++)
				all[b] = b;
			send_sums(&c, 1, 0, all, c.nbuckets);
			finish(&c, what);
		}
		close_cluster(&c);
	}
}

/* ---- new parameters before the metrics are known ---- */

struct brought { struct beside beside; uint32_t n, tried; float *copy[MOST_BUCKETS]; };

/* At once, and once. */
static void bring_beside(void *user, uint32_t pass, uint32_t bucket)
{
	struct brought *b = user;
	struct hd_worker *one = b->beside.c->at[1].worker;
	struct hd_diag diag = { "" };
	bool brought;

	assert_int_equal(hd_dist_aside_bring(one, bucket, &brought, &diag), HD_OK);
	assert_false(brought);                    /* there is no sum */
	sum_beside(&b->beside, pass, bucket);
	if (bucket % 2)                           /* it was made to be missing, and came */
		one->step->summed[bucket] = 1;
	CHECK(hd_dist_aside_bring(one, bucket, &brought, &diag) == HD_OK, "%s", diag.text);
	b->tried++;
	if (!brought)
		return;
	b->n++;
	b->copy[bucket] = malloc(bytes_of(b->beside.c, bucket));
	memcpy(b->copy[bucket], hd_dist_parm_at(one, bucket), bytes_of(b->beside.c, bucket));
	CHECK(hd_dist_aside_bring(one, bucket, &brought, &diag) == HD_OK && !brought, "%s", diag.text);
}

/* Member 0 brings nothing on before it has all metrics: what member 1 made without them is the same. */
static void check_brought(const struct cluster *c, const struct brought *b, const char *what)
{
	uint8_t own[MOST_BUCKETS];
	struct hd_diag diag = { "" };
	struct hd_step_record r;

	memset(own, HD_DIST_SENDS, sizeof own);
	for (uint32_t m = 0; m < 2; m++)
		CHECK(hd_dist_update(c->at[m].worker, own, &diag) == HD_OK, "%s: %s", what, diag.text);
	for (uint32_t k = 0; k < c->nbuckets; k++) {
		const float *zero = hd_dist_parm_at(c->at[0].worker, k);
		CHECK(!b->copy[k] || !memcmp(b->copy[k], zero, bytes_of(c, k)),
			"%s: bucket %u has other bits before the metrics", what, k);
		assert_memory_equal(hd_dist_parm_at(c->at[1].worker, k), zero, bytes_of(c, k));
		free(b->copy[k]);
	}
	for (uint32_t m = 0; m < 2; m++) {
		CHECK(hd_dist_finish(c->at[m].worker, &r, &diag) == HD_OK, "%s: %s", what, diag.text);
		CHECK(hd_hash_same(r.digest, c->want.digest), "%s: worker %u has other bits", what, m);
	}
}

static void parameters_are_made_while_a_pass_is_computed(void **state)
{
#define SHARDED "comm: {sync: sharded}\n"
	/* early: all buckets; none where labels say what counts, where a norm changes an update */
	static const struct { const char *model, *more; bool early; } rows[] = {
		{ wide, "optim: {kind: adamw, clip: 0}\n" SHARDED, true },
		{ resnet, "optim: {kind: momentum, lr: 0.05, clip: 0}\n" SHARDED, true },
		{ gpt, "optim: {kind: sgd, lr: 0.1, clip: 0}\n" SHARDED, false },
		{ wide, "optim: {kind: momentum, lr: 0.05, clip: 1}\n" SHARDED, false },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cluster c;
		uint8_t has[16];
		uint32_t all[MOST_BUCKETS];
		struct hd_diag diag = { "" };
		bool brought;
		open_cluster(&c, rows[i].model, 46, 16, rows[i].more, 900 + i);
		add_member(&c, 1);
		add_member(&c, 1 + i % 2);
		CHECK(hd_dist_aside_open(c.at[0].worker, &diag) == HD_OK &&
			hd_dist_aside_open(c.at[1].worker, &diag) == HD_OK, "%s", diag.text);
		prepare(&c, plan_of(&c));
		adopt(&c);
		for (uint32_t s = 0; s < 3; s++) {
			struct hd_worker *one = c.at[1].worker;
			struct brought b = { .beside.c = &c };
			char what[64];
			snprintf(what, sizeof what, "row %u, step %u", i, s);
			for (uint32_t m = 0; m < 2; m++)
				assert_int_equal(hd_dist_overlap(c.at[m].worker, s > 0, true, &diag), HD_OK);
			begin(&c);
			compute(&c.at[0]);
			assert_int_equal(hd_dist_roots_of(one->parts->part->plan, c.at[1].id, 0, has,
				b.beside.own, 16, &b.beside.nown), HD_OK);
			hd_dist_watch(one, bring_beside, &b);
			compute(&c.at[1]);
			hd_dist_watch(one, NULL, NULL);
			assert_true(b.tried == c.nbuckets && b.n == (rows[i].early ? c.nbuckets : 0));
			for (uint32_t k = 0; k < c.nbuckets; k++)
				all[k] = k;
			send_sums(&c, 1, 0, all, c.nbuckets);
			assert_int_equal(hd_dist_aside_bring(c.at[0].worker, 0, &brought, &diag), HD_OK);
			assert_false(brought);                    /* its pass is over */
			exchange_leaves(&c);
			check_brought(&c, &b, what);
		}
		close_cluster(&c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_are_final_when_they_are_said_to_be),
		cmocka_unit_test(buckets_are_summed_while_a_pass_is_computed),
		cmocka_unit_test(parameters_are_made_while_a_pass_is_computed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
