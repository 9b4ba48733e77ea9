#include <math.h>
#include <unistd.h>

#include "engine/dist.h"
#include "engine/part_int.h"
#include "engine/worker_int.h"
#include "engine/testing.h"

/* State by stages: two workers that hold parts of the state, drawn again from step to step, and the file of
 * what each has for a while. The oracle is one device that holds all: parameters and slots are equal bit for
 * bit. */

enum { N = 2, STEPS = 4, VNS = 7, ROOTS = 16 };

#define MLP(shards) "model: {use: builtin:mlp, args: {input: [1, 16, 16], hidden: [700, 600, 300], " \
	"classes: 10}" shards "}\ndata: {kind: synthetic, count: 61}\n"
static const char mlp[] = MLP("");
static const char *model = mlp;           /* of the next pair */

static uint64_t seed;
static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

struct pair {
	struct hd_rig one;
	struct hd_worker *at[N];
	struct hd_plan plan;
	uint32_t nbuckets;
	uint8_t holds[N][64];
};

static void open_pair(struct pair *p, const char *more, const char *spill)
{
	struct hd_diag diag = { "" };

	memset(p, 0, sizeof *p);
	hd_rig_open(&p->one, model, 14, VNS, more, 1);
	p->nbuckets = hd_layout_nbuckets(&p->one.task->layout);
	assert_in_range(p->nbuckets, 3, 64);
	const struct hd_plan_job job = hd_worker_plan_job(p->one.worker);
	assert_int_equal(hd_plan_data(&p->plan, &job, N, NULL, &p->one.arena, NULL), HD_OK);
	for (uint16_t m = 0; m < N; m++) {
		const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = 1,
			.kernels = HD_KERNELS_PORTABLE, .by_stage = true, .spill = spill };
		p->plan.worker[m] = m;
		CHECK(hd_worker_create(&p->at[m], p->one.task, &spec, &diag) == HD_OK, "%s", diag.text);
		memset(p->holds[m], 1, sizeof p->holds[m]);       /* X_0 is at all */
	}
	for (uint16_t m = 0; m < N; m++) {
		const struct hd_dist_view view = { .plan = &p->plan, .worker = m, .nplaces = ROOTS };
		CHECK(hd_dist_prepare(p->at[m], &view, &diag) == HD_OK, "%s", diag.text);
		hd_dist_adopt(p->at[m]);
	}
}

static void close_pair(struct pair *p)
{
	for (uint32_t m = 0; m < N; m++)
		hd_worker_destroy(p->at[m]);
	hd_rig_close(&p->one);
}

/* A bucket's state goes from its holder to the other one. */
static void carry(struct pair *p, uint32_t to, uint32_t b, bool borrowed)
{
	const uint64_t n = hd_dist_slot_bytes(p->at[to], b);
	uint8_t *bytes = malloc(n);
	struct hd_diag diag = { "" };

	assert_int_equal(n, hd_layout_bucket(&p->one.task->layout, b).len * sizeof(float) *
		(1 + hd_param_store_nslots(p->one.worker->store) + p->one.task->delays.most));
	hd_dist_slot_get(p->at[1 - to], b, bytes);
	CHECK(hd_dist_slot_put(p->at[to], b, bytes, n, borrowed, &diag) == HD_OK, "%s", diag.text);
	free(bytes);
}

/* Holders of the next step; what is new is fetched. */
static void draw_holders(struct pair *p)
{
	for (uint32_t b = 0; b < p->nbuckets; b++) {
		const uint32_t of = 1 + draw(3);         /* the first, the second, both */
		for (uint32_t m = 0; m < N; m++)
			if (of >> m & 1 && !p->holds[m][b])
				carry(p, m, b, false);
		for (uint32_t m = 0; m < N; m++)
			p->holds[m][b] = of >> m & 1;
	}
}

static void sum(struct pair *p, uint32_t b)
{
	const uint64_t bytes = hd_layout_bucket(&p->one.task->layout, b).len * sizeof(float);
	const uint32_t owner = !p->holds[0][b], other = 1 - owner;
	struct hd_worker *w = p->at[owner];
	struct hd_tnode node[ROOTS];
	const float *operand[ROOTS];
	const struct hd_dist_fold fold = { b, operand };
	struct hd_diag diag = { "" };
	uint32_t n = 0;

	for (uint32_t m = 0; m < N; m++)
		for (uint32_t i = 0; i < hd_dist_nroots(p->at[m], 0); i++, n++) {
			node[n] = hd_dist_root(p->at[m], 0, i);
			operand[n] = hd_dist_root_at(p->at[m], 0, i, b);
			if (m == owner)
				continue;
			memcpy(hd_dist_place(w, n), operand[n], bytes);
			operand[n] = hd_dist_place(w, n);
		}
	CHECK(hd_dist_operands(w, node, NULL, n, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_fold(w, &fold, 1, &diag) == HD_OK, "%s", diag.text);
	if (p->holds[other][b]) {
		memcpy(hd_dist_sum_at(p->at[other], b), hd_dist_sum_at(w, b), bytes);
		assert_int_equal(hd_dist_arrived(p->at[other], &b, 1, &diag), HD_OK);
	} else {
		memcpy(hd_dist_norm_at(p->at[other], b), hd_dist_norm_at(w, b), hd_dist_norm_bytes(w, b));
	}
}

static void exchange_leaves(struct pair *p)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < N; m++) {
		const uint64_t len = hd_dist_leaves_bytes(p->at[m], hd_dist_nleaves(p->at[m], 0));
		uint8_t *bytes = malloc(len);
		hd_dist_leaves_get(p->at[m], 0, bytes);
		assert_int_equal(hd_dist_leaves_put(p->at[1 - m], (uint16_t)m, bytes, len, &diag), HD_OK);
		free(bytes);
	}
}

/* All that the oracle has of a vector, whether it means something or not. */
static void check_held(const struct pair *p, uint32_t m)
{
	const struct hd_param_store *all = p->one.worker->store, *own = p->at[m]->store;

	for (uint32_t b = 0; b < p->nbuckets; b++) {
		const struct hd_chunk run = hd_layout_bucket(&p->one.task->layout, b);
		for (enum hd_vector v = 0; v < HD_VECS && p->holds[m][b]; v++)
			CHECK(v == HD_VEC_BUFFERS || !hd_param_store_elems(all, v) ||
				hd_hash_same(hd_param_store_hash(own, v, run.at, run.len),
				hd_param_store_hash(all, v, run.at, run.len)),
				"worker %u: bucket %u, vector %u", m, b, v);
	}
}

/* Squares of what is held by one alone go to the other. */
static void measure(struct pair *p)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < N; m++)
		CHECK(hd_dist_update(p->at[m], p->holds[m], &diag) == HD_OK, "%s", diag.text);
	for (uint32_t b = 0; b < p->nbuckets; b++) {
		double *of = calloc(2 * hd_layout_bucket(&p->one.task->layout, b).nsegments, sizeof *of);
		for (uint32_t m = 0; m < N; m++)
			if (!p->holds[m][b]) {
				hd_dist_ratio_get(p->at[1 - m], b, of);
				hd_dist_ratio_put(p->at[m], b, of);
			}
		free(of);
	}
}

/* One that lacks the parameters of what it computes would give other bits: all are borrowed for it. */
static void begin(struct pair *p)
{
	struct hd_diag diag = { "" };

	for (uint32_t m = 0; m < N; m++) {
		for (uint32_t b = 0; b < p->nbuckets; b++)
			if (!p->holds[m][b])
				carry(p, m, b, true);
		CHECK(hd_dist_begin(p->at[m], false, &diag) == HD_OK, "%s", diag.text);
	}
	for (uint32_t m = 0; m < N; m++)
		CHECK(hd_dist_compute(p->at[m], &diag) == HD_OK, "%s", diag.text);
	for (uint32_t b = 0; b < p->nbuckets; b++)
		sum(p, b);
	exchange_leaves(p);
	if (hd_dist_measures(p->at[0]))
		measure(p);
}

static uint32_t npads;                    /* elements that belong to no tensor */

/* Pads are of no tensor: what arithmetic leaves there says nothing of the state. */
static void check_pads(struct pair *p, uint32_t m, enum hd_vector v, const uint64_t *want)
{
	const struct hd_segment *s = p->one.task->layout.segment;
	const uint32_t n = p->one.task->layout.nsegments;
	static uint64_t got[64];

	for (uint32_t i = 0; i + 1 < n; i++) {
		const uint32_t bucket = s[i].chunk / HD_BUCKET_CHUNKS;
		for (uint64_t at = s[i].at + s[i].len; p->holds[m][bucket] && at < s[i + 1].at; at++) {
			*hd_param_store_at(p->at[m]->store, v, at, 1) = NAN;
			npads++;
		}
	}
	assert_true(hd_worker_as_reported(p->at[m]));
	hd_dist_held_digests(p->at[m], p->holds[m], got);
	assert_memory_equal(got, want, p->nbuckets * sizeof *want);
	for (uint32_t i = 0; i + 1 < n; i++)
		for (uint64_t at = s[i].at + s[i].len; p->holds[m][s[i].chunk / HD_BUCKET_CHUNKS] &&
			at < s[i + 1].at; at++)
			*hd_param_store_at(p->at[m]->store, v, at, 1) = 0;
}

/* What both hold has one digest; one bit of one element of any vector changes that of its bucket alone. */
static void check_digests(struct pair *p)
{
	static uint64_t of[N][64], other[64];
	const uint32_t b = draw(p->nbuckets), m = !p->holds[0][b];
	const struct hd_chunk run = hd_layout_bucket(&p->one.task->layout, b);
	const enum hd_vector v = (enum hd_vector)(HD_VEC_PARAMS +
		draw(1 + hd_param_store_nslots(p->one.worker->store)));

	for (uint32_t k = 0; k < N; k++)
		hd_dist_held_digests(p->at[k], p->holds[k], of[k]);
	for (uint32_t k = 0; k < p->nbuckets; k++) {
		assert_true(!of[0][k] == !p->holds[0][k] && !of[1][k] == !p->holds[1][k]);
		CHECK(!of[0][k] || !of[1][k] || of[0][k] == of[1][k], "holders of bucket %u differ", k);
	}
	const struct hd_segment *s = &p->one.task->layout.segment[run.first_segment + draw(run.nsegments)];
	uint8_t *at = (uint8_t *)hd_param_store_at(p->at[m]->store, v, s->at + draw((uint32_t)s->len), 1);
	const uint8_t bit = (uint8_t)(1 << draw(8));
	at += draw(4);
	assert_true(hd_worker_as_reported(p->at[m]));
	*at ^= bit;
	assert_false(hd_worker_as_reported(p->at[m]));            /* no checkpoint is written of it */
	hd_dist_held_digests(p->at[m], p->holds[m], other);
	*at ^= bit;
	hd_dist_held_digests(p->at[m], p->holds[m], of[m]);
	for (uint32_t k = 0; k < p->nbuckets; k++)
		CHECK((other[k] != of[m][k]) == (k == b), "bucket %u, of %u that was changed", k, b);
	check_pads(p, m, v, of[m]);
}

/* Every other step is given up when it was measured, and begun again. */
static void step(struct pair *p)
{
	struct hd_step_record want, r;
	struct hd_diag diag = { "" };

	assert_int_equal(hd_worker_step(p->one.worker, true, &want, &diag), HD_OK);
	begin(p);
	if (p->one.worker->count.step % 2) {
		for (uint32_t m = 0; m < N; m++)
			hd_dist_abandon(p->at[m]);
		begin(p);
	}
	for (uint32_t m = 0; m < N; m++) {
		CHECK(hd_dist_hold(p->at[m], p->holds[m], &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_dist_finish(p->at[m], &r, &diag) == HD_OK, "%s", diag.text);
		assert_true(!r.has_digest && !memcmp(&r.loss_sum, &want.loss_sum, 8) &&
			!memcmp(&r.gnorm, &want.gnorm, 8));
		check_held(p, m);
	}
	check_digests(p);
}

static void train(const char *more, const char *spill)
{
	struct pair p;

	open_pair(&p, more, spill);
	for (uint32_t s = 0; s < STEPS; s++) {
		draw_holders(&p);
		step(&p);
	}
	/* a checkpoint writer gathers the rest: all of the state is that of one device; then it is dropped */
	for (uint32_t b = 0; b < p.nbuckets; b++)
		if (!p.holds[0][b])
			carry(&p, 0, b, true);
	assert_true(hd_hash_same(hd_worker_digest(p.at[0]), hd_worker_digest(p.one.worker)));
	hd_dist_drop_slots(p.at[0], p.holds[0]);
	check_held(&p, 0);
	assert_int_equal(hd_hash_same(hd_worker_digest(p.at[0]), hd_worker_digest(p.one.worker)),
		!memchr(p.holds[0], 0, p.nbuckets));
	/* before all is read from disk nothing takes memory */
	struct hd_diag diag = { "" };
	assert_int_equal(hd_dist_lay_aside(p.at[0], &diag), HD_OK);
	for (uint32_t b = 0; b < p.nbuckets; b++)
		assert_int_equal(p.at[0]->parts->spilled[b], spill != NULL);
	close_pair(&p);
}

static void holders_update_what_they_hold_as_one_device_does(void **state)
{
	(void)state;
	for (seed = 1; seed < 4; seed++) {
		train(seed % 2 ? "optim: {kind: adamw, lr: 1e-2, clip: 0.5}\n" : "optim: {kind: adam}\n",
			seed % 2 ? "/tmp" : NULL);
		train("optim: {kind: momentum, lr: 1e-2, clip: 0.5, ema: {decay: 0.9}}\n", "/tmp");
		train("optim: {kind: momentum, lr: 1e-2, clip: 0.5, update: 2bw}\n", "/tmp");
		train("optim: {kind: sgd, lr: 1e-2, update: stash, cuts: auto:2}\n", "/tmp");
	}
	assert_true(npads);
}

/* Holders of parts of a tensor, of its slices too, where either may lack the rest. */
static void holders_of_parts_of_tensors_update_them_as_one_device_does(void **state)
{
	(void)state;
	for (seed = 1; seed < 4; seed++) {
		train("optim: {kind: lamb, lr: 1e-2}\n", seed % 2 ? "/tmp" : NULL);
		train("optim: {kind: lamb, lr: 1e-2, clip: 0.5, update: 2bw}\n", "/tmp");
		model = MLP(", shards: 4");
		train("optim: {kind: lamb, lr: 1e-2, clip: 0.5}\n", "/tmp");
		model = mlp;
	}
}

/* Nothing is measured without its sum; optimizers by element measure nothing. */
static void what_is_measured_has_its_sum(void **state)
{
	struct hd_diag diag = { "" };
	struct pair p;

	(void)state;
	open_pair(&p, "optim: {kind: lamb}\n", NULL);
	assert_int_equal(hd_dist_begin(p.at[0], false, &diag), HD_OK);
	assert_int_equal(hd_dist_update(p.at[0], p.holds[0], &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "bucket 0 of the own ones has no sum"));
	close_pair(&p);
	open_pair(&p, "", NULL);
	assert_false(hd_dist_measures(p.at[0]) || hd_dist_measures(p.one.worker));
	close_pair(&p);
}

static void a_bucket_of_its_own_needs_its_sum(void **state)
{
	struct hd_step_record r;
	struct hd_diag diag = { "" };
	struct pair p;

	(void)state;
	open_pair(&p, "", NULL);
	for (uint32_t m = 0; m < N; m++)
		assert_int_equal(hd_dist_begin(p.at[m], false, &diag), HD_OK);
	for (uint32_t m = 0; m < N; m++)
		assert_int_equal(hd_dist_compute(p.at[m], &diag), HD_OK);
	for (uint32_t b = 1; b < p.nbuckets; b++)
		sum(&p, b);
	exchange_leaves(&p);
	assert_int_equal(hd_dist_hold(p.at[0], p.holds[0], &diag), HD_OK);
	assert_int_equal(hd_dist_finish(p.at[0], &r, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "have no sum"));
	close_pair(&p);
}

/* Of what is not held neither parameters, of two versions here, nor slots count: before there is a plan
 * nothing is held. */
static void memory_is_that_of_what_is_held(void **state)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = 1,
		.kernels = HD_KERNELS_PORTABLE, .by_stage = true, .spill = "/tmp" };
	struct hd_memory_terms all, first, some;
	struct hd_diag diag = { "" };
	uint8_t held[64] = { 1, 0, 1 };
	struct hd_worker *w;
	struct pair p;

	(void)state;
	open_pair(&p, "optim: {kind: adamw, update: 2bw}\n", "/tmp");
	const struct hd_layout *layout = &p.one.task->layout;
	const uint64_t whole = layout->elems * sizeof(float),
		part = (hd_layout_bucket(layout, 0).len + hd_layout_bucket(layout, 2).len) * sizeof(float);
	hd_worker_memory(p.one.worker, &all);
	assert_int_equal(hd_worker_create(&w, p.one.task, &spec, &diag), HD_OK);
	hd_worker_memory(w, &first);
	struct hd_hash bits;
	assert_int_equal(hd_dist_probe(w, 0, &bits, NULL), HD_E_REFUSED);          /* before it has a part */
	assert_true(first.slots == 0 && first.params == all.params - 2 * whole && first.gradients == 0);
	assert_int_equal(hd_dist_memory(w, &(struct hd_dist_view){ .plan = &p.plan, .worker = 0,
		.held = held }, &some, &diag), HD_OK);
	assert_true(all.slots == 2 * whole && some.slots == 2 * part &&
		some.params == all.params - 2 * (whole - part));
	hd_worker_destroy(w);
	close_pair(&p);
}

/* A joiner is sent what no step changes; it fetches the rest. */
static void a_joiner_gets_no_bucket(void **state)
{
	struct pair p;

	(void)state;
	open_pair(&p, "", NULL);
	assert_int_equal(hd_dist_nsnaps(p.at[0]), 0);
	assert_int_equal(hd_dist_nfollowed(p.at[0]), 0);
	assert_int_equal(hd_dist_nfollowed(p.one.worker), p.nbuckets);
	struct hd_diag diag = { "" };
	struct hd_hash bits;
	assert_int_equal(hd_dist_probe(p.at[0], 0, &bits, &diag), HD_E_REFUSED);
	close_pair(&p);
}

static void without_a_folder_for_its_file_there_is_no_worker(void **state)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = 1,
		.kernels = HD_KERNELS_PORTABLE, .by_stage = true, .spill = "/nonexistent/heddle" };
	struct hd_worker *w = NULL;
	struct hd_diag diag = { "" };
	struct hd_rig one;

	(void)state;
	hd_rig_open(&one, mlp, 14, VNS, "", 1);
	assert_true(hd_worker_create(&w, one.task, &spec, &diag) != HD_OK);
	assert_non_null(strstr(diag.text, "/nonexistent/heddle"));
	hd_rig_close(&one);
}

/* Vectors are as long as the model, and what is held takes memory: a limit that suffices for it suffices. */
static void a_limit_is_of_what_is_held(void **state)
{
	struct hd_memory_terms t;
	struct hd_worker *worker = NULL;
	struct hd_diag diag = { "" };
	struct pair p;

	(void)state;
	open_pair(&p, NULL, NULL);
	hd_worker_memory(p.at[0], &t);
	const struct hd_worker_spec spec = { .kind = "cpu", .nthreads = 1, .ndevices = 1,
		.kernels = HD_KERNELS_PORTABLE, .by_stage = true, .memory_limit_bytes = t.held };
	const struct hd_dist_view view = { .plan = &p.plan, .worker = 0, .nplaces = ROOTS };
	CHECK(hd_worker_create(&worker, p.one.task, &spec, &diag) == HD_OK, "%s", diag.text);
	/* a joiner has no part yet */
	CHECK(hd_dist_prepare(worker, &(struct hd_dist_view){ .worker = HD_DIST_NOBODY }, &diag) == HD_OK,
		"%s", diag.text);
	hd_worker_memory(worker, &t);
	assert_true(t.params == 0 && t.slots == 0);
	CHECK(hd_dist_prepare(worker, &view, &diag) == HD_OK, "%s", diag.text);
	hd_worker_destroy(worker);
	close_pair(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(holders_update_what_they_hold_as_one_device_does),
		cmocka_unit_test(holders_of_parts_of_tensors_update_them_as_one_device_does),
		cmocka_unit_test(what_is_measured_has_its_sum),
		cmocka_unit_test(a_bucket_of_its_own_needs_its_sum),
		cmocka_unit_test(memory_is_that_of_what_is_held),
		cmocka_unit_test(a_limit_is_of_what_is_held),
		cmocka_unit_test(a_joiner_gets_no_bucket),
		cmocka_unit_test(without_a_folder_for_its_file_there_is_no_worker),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
