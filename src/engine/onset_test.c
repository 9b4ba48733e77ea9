#include "engine/onset.h"

#include "sys/thread.h"
#include "engine/testing_dist.h"

/* Several workers in one process. Sums, metrics and new parameters come in any order, and between any two of
 * them workers run what they can of the next step: states, losses and norms are those of one device that runs
 * one step after the other. */

#define NONE "optim: {kind: sgd, lr: 0.1, clip: 0}\n"
#define ADAMW "optim: {kind: adamw, ema: {decay: 0.9}, clip: 0, on_nonfinite: skip}\n"
#define SHARDED "comm: {sync: sharded}\n"
static const struct { const char *model, *more; bool sharded, waits; } cases[] = {
	{ wide,   ADAMW, false, false },
	{ gpt,    "optim: {kind: momentum, lr: 0.05, weight_decay: 0.01, clip: 0}\n", false, false },
	{ resnet, NONE, false, false },
	{ wide,   "optim: {kind: adamw, clip: 0, groups: [{params: ['*weight'], lr_scale: 0.5}]}\n", false, false },
	{ wide,   "optim: {kind: momentum, clip: 0.1}\n", false, true },
	{ wide,   "optim: {kind: lamb, lr: 0.01, clip: 0}\n", false, true },
	{ gpt,    "optim: {kind: adamw, clip: 0.1, no_decay: norms-and-biases}\n" SHARDED, true, false },
	{ resnet, "optim: {kind: momentum, lr: 0.05, ema: {decay: 0.75, every: 2}}\n" SHARDED, true, false },
	{ wide,   ADAMW SHARDED, true, false },
	{ resnet, "optim: {kind: momentum, lr: 0.05, clip: 0}\n" SHARDED, true, false },
	/* norms over the rows of a part, also of one row */
	{ NULL,   ADAMW, false, false },
};
enum { NCASES = sizeof cases / sizeof *cases, MANY_STEPS = 6 };

/* What all runs of a test came to. */
static struct { uint64_t ahead, vain, called, early; } seen;

struct caller { struct hd_worker *worker; uint64_t at; _Atomic bool over; };

/* From another thread, when the worker has done so much. */
static void call(void *user)
{
	struct caller *c = user;

	while (!c->over && atomic_load(&c->worker->progress) < c->at)
		sched_yield();
	hd_dist_call(c->worker);
}

/* As far as can be, or until it is called back. */
static void run_ahead(struct hd_worker *w, bool calls)
{
	struct caller caller = { .worker = w, .at = atomic_load(&w->progress) + draw(6) };
	const uint32_t before = hd_dist_calls(w);
	struct hd_thread thread;
	struct hd_diag diag = { "" };

	if (!hd_dist_has_ahead(w))
		return;
	if (calls)
		CHECK(hd_thread_start(&thread, "caller", -1, call, &caller, &diag) == HD_OK, "%s", diag.text);
	(void)hd_dist_run_ahead(w, before);
	caller.over = true;
	if (calls)
		hd_thread_join(&thread);
	/* rows may have come just now, to each device apart */
	for (int k = 0; !calls && k < 4 && hd_dist_has_ahead(w); k++)
		(void)hd_dist_run_ahead(w, hd_dist_calls(w));
	assert_true(calls || !hd_dist_has_ahead(w));
	seen.called += calls;
}

static void some_run_ahead(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		if (draw(2))
			run_ahead(c->at[m].worker, draw(3) == 0);
}

static bool owns(const struct cluster *c, uint32_t m, uint32_t b)
{
	return b % c->n == m || (b + 1) % c->n == m;
}

static const uint8_t *own_of(const struct cluster *c, uint32_t m, uint8_t own[MOST_BUCKETS])
{
	for (uint32_t b = 0; b < c->nbuckets; b++)
		own[b] = !owns(c, m, b) ? 0 : b % c->n == m ? HD_DIST_SENDS : HD_DIST_BRINGS;
	return own;
}

/* Copies of what may be sent before the update: it is what others get in the end. */
static struct early { uint8_t *at[MOST_BUCKETS]; const struct cluster *c; uint32_t m; } early[MOST];

static void copy_early(void *user, uint32_t b)
{
	struct early *e = user;

	assert_true(b % e->c->n == e->m && !e->at[b]);
	e->at[b] = malloc(bytes_of(e->c, b));
	memcpy(e->at[b], hd_dist_parm_at(e->c->at[e->m].worker, b), bytes_of(e->c, b));
}

static void watch_early(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++) {
		for (uint32_t b = 0; b < c->nbuckets; b++) {
			free(early[m].at[b]);
			early[m].at[b] = NULL;
		}
		early[m].c = c;
		early[m].m = m;
		hd_dist_watch_early(c->at[m].worker, copy_early, &early[m]);
	}
}

static void update_own(const struct cluster *c, uint32_t m)
{
	uint8_t own[MOST_BUCKETS];
	struct hd_diag diag = { "" };

	(void)own_of(c, m, own);
	CHECK(hd_dist_update(c->at[m].worker, own, &diag) == HD_OK, "%s", diag.text);
}

/* One that owns the bucket sends its new parameters to the others. */
static void send_parameters(const struct cluster *c, uint32_t b)
{
	struct hd_worker *from = c->at[b % c->n].worker;
	uint8_t *digest = malloc(hd_dist_digest_bytes(from, b) + 1);

	hd_dist_digest_get(from, b, digest);
	seen.early += early[b % c->n].at[b] != NULL;
	if (early[b % c->n].at[b])
		assert_memory_equal(early[b % c->n].at[b], hd_dist_parm_at(from, b), bytes_of(c, b));
	for (uint32_t m = 0; m < c->n; m++) {
		struct hd_worker *to = c->at[m].worker;
		if (owns(c, m, b))
			continue;
		memcpy(hd_dist_parm_at(to, b), hd_dist_parm_at(from, b), bytes_of(c, b));
		hd_dist_digest_put(to, b, digest);
		hd_dist_readable(to, b);
		if (draw(2))
			run_ahead(to, draw(3) == 0);
	}
	free(digest);
}

static void say_metrics(const struct cluster *c)
{
	uint8_t own[MOST_BUCKETS];

	exchange_leaves(c);
	for (uint32_t m = 0; m < c->n; m++)
		if (hd_dist_sharded(c->at[m].worker))
			hd_dist_brings(c->at[m].worker, own_of(c, m, own));
}

/* Sums bucket by bucket, metrics anywhere between them. `most`: no more sums than that. */
static void exchange(const struct cluster *c, bool sharded, uint32_t most)
{
	uint32_t order[MOST_BUCKETS], metrics = draw(c->nbuckets + 1);

	shuffle(order, c->nbuckets);
	for (uint32_t i = 0; i <= c->nbuckets; i++) {
		if (i == metrics || (most < c->nbuckets && !i))
			say_metrics(c);
		if (i < c->nbuckets && i < most) {
			const uint32_t owner = draw(c->n);
			fold(c, owner, &order[i], 1);
			for (uint32_t m = 0; m < c->n; m++)
				if (m != owner)
					send_sums(c, owner, m, &order[i], 1);
		}
		some_run_ahead(c);
	}
	if (!sharded || most < c->nbuckets || c->n == 1)
		return;
	for (uint32_t m = 0; m < c->n; m++) {
		update_own(c, m);
		run_ahead(c->at[m].worker, false);
	}
	shuffle(order, c->nbuckets);
	for (uint32_t i = 0; i < c->nbuckets; i++)
		send_parameters(c, order[i]);
}

/* Also where no worker has all of the state: its digest is made of what others say of theirs. */
static void compare(const struct cluster *c, const char *what)
{
	struct hd_diag diag = { "" };
	struct hd_step_record r;

	for (uint32_t m = 0; m < c->n; m++) {
		CHECK(hd_dist_finish(c->at[m].worker, &r, &diag) == HD_OK, "%s", diag.text);
		CHECK(hd_hash_same(r.digest, c->want.digest) && memcmp(&r.gnorm, &c->want.gnorm, 8) == 0,
			"%s, step %llu: worker %u has other bits", what, (unsigned long long)r.step, m);
	}
}

static uint64_t nodes_of(const struct cluster *c, bool vain)
{
	uint64_t n = 0;

	for (uint32_t m = 0; m < c->n; m++) {
		const struct hd_onset *o = c->at[m].worker->onset;
		n += vain ? o->nvoid : o->nahead;
	}
	return n;
}

static void begin_all(struct cluster *c, bool ahead, bool again)
{
	struct hd_diag diag = { "" };

	watch_early(c);
	for (uint32_t m = 0; m < c->n; m++)
		CHECK(hd_dist_overlap(c->at[m].worker, ahead, true, &diag) == HD_OK, "%s", diag.text);
	if (!again) {
		begin(c);
		return;
	}
	for (uint32_t m = 0; m < c->n; m++)
		CHECK(hd_dist_begin(c->at[m].worker, true, &diag) == HD_OK, "%s", diag.text);
}

static void compute_all(const struct cluster *c)
{
	for (uint32_t m = 0; m < c->n; m++)
		compute(&c->at[m]);
}

/* Of one worker in the middle: what lay in its activations is gone. */
static void evaluate(const struct cluster *c)
{
	const struct hd_forward_job job = { .split = 0, .count = 7 };
	struct hd_metrics metrics;
	struct hd_diag diag = { "" };

	CHECK(hd_worker_forward(c->at[draw(c->n)].worker, &job, &metrics, &diag) == HD_OK, "%s", diag.text);
}

/* A step, perhaps begun twice; then perhaps another view. */
static void one_step(struct cluster *c, size_t i, bool *ahead, const char *what)
{
	begin_all(c, *ahead, false);
	compute_all(c);
	if (draw(5) == 0) {                       /* a loss: all begin it again */
		exchange(c, false, draw(c->nbuckets));
		for (uint32_t m = 0; m < c->n; m++) {
			hd_dist_abandon(c->at[m].worker);
			assert_false(hd_dist_has_ahead(c->at[m].worker));
		}
		begin_all(c, false, true);
		compute_all(c);
	}
	exchange(c, cases[i].sharded, UINT32_MAX);
	(cases[i].sharded ? compare : finish)(c, what);
	some_run_ahead(c);
	if (draw(4) == 0)
		evaluate(c);
	some_run_ahead(c);
	*ahead = draw(5) != 0;
	if (draw(5) == 0) {
		struct hd_diag diag = { "" };
		for (uint32_t m = 0; m < c->n; m++)
			CHECK(hd_dist_overlap(c->at[m].worker, false, false, &diag) == HD_OK, "%s",
				diag.text);
		prepare(c, plan_of(c));
		adopt(c);
		*ahead = false;
	}
}

static void run_case(size_t i, uint64_t with_seed)
{
	struct cluster *c = calloc(1, sizeof *c);
	char what[80];
	bool ahead = false;

	snprintf(what, sizeof what, "case %zu, seed %llu", i, (unsigned long long)with_seed);
	open_cluster(c, cases[i].model ? cases[i].model : hd_rig_bn(), 26, 7, cases[i].more, with_seed);
	for (uint32_t m = 0, n = 2 + draw(2); m < n; m++)
		add_member(c, 1 + draw(2));
	prepare(c, plan_of(c));
	adopt(c);
	assert_true(cases[i].waits == (hd_job_onset_waits(c->task->job) != NULL));
	for (int s = 0; s < MANY_STEPS; s++)
		one_step(c, i, &ahead, what);
	seen.ahead += nodes_of(c, false);
	seen.vain += nodes_of(c, true);
	close_cluster(c);
	free(c);
}

/* For a hunt: HD_ONSET_RUNS=100. */
static void they_give_the_bits_of_one_device(void **state)
{
	const char *runs = getenv("HD_ONSET_RUNS");

	(void)state;
	memset(&seen, 0, sizeof seen);
	for (int k = 0; k < (runs ? strtol(runs, NULL, 10) : 1); k++)
		for (size_t i = 0; i < NCASES; i++)
			run_case(i, 3 + i + 100 * (uint64_t)k);
	assert_true(seen.ahead > 100 && seen.vain && seen.called && seen.early > 10);
}

/* Two workers of one device, each with half of the virtual nodes. */
static void open_pair(struct cluster *c, const char *model, const char *more)
{
	struct hd_diag diag = { "" };
	uint32_t map[7];

	memset(c, 0, sizeof *c);
	open_cluster(c, model, 26, 7, more, 5);
	for (uint32_t v = 0; v < 7; v++)
		map[v] = v * 2 / 7;
	struct hd_plan_job pj = hd_plan_job_whole(7, c->task->layout.nchunks);
	struct hd_plan *plan = hd_arena_take(&c->arena, 1, sizeof *plan);
	CHECK(hd_plan_of_map(plan, &pj, 2, map, &c->arena, &diag) == HD_OK, "%s", diag.text);
	for (uint16_t m = 0; m < 2; m++)
		plan->worker[m] = add_member(c, 1)->id;
	prepare(c, plan);
	adopt(c);
}

/* By the names of the graph's parameters and the segments that these have. */
static bool all_summed(const struct cluster *c, const struct hd_worker *w, uint32_t place)
{
	const struct hd_program *program = &w->stage->train;
	const struct hd_graph *graph = program->graph;
	const struct hd_node *node = &graph->node[program->order[HD_RUN_F][place]];
	const struct hd_layout *layout = &c->task->layout;
	bool all = true;

	for (uint32_t p = 0; p < graph->nparams; p++)
		for (uint32_t i = 0; i < node->nin; i++)
			for (uint32_t k = layout->first_segment[p]; node->in[i] == graph->param[p].value &&
				k < layout->first_segment[p + 1]; k++)
				all &= hd_dist_summed(w, hd_layout_bucket_of(layout,
					layout->segment[k].chunk));
	return all;
}

/* Nodes before the first that reads what is not here; `none`: nothing is readable. */
static uint32_t possible(const struct cluster *c, const struct hd_worker *w, bool none)
{
	const struct hd_program *program = &w->stage->train;
	uint32_t n = 0;

	while (n < program->norder[HD_RUN_F] && (none ? w->onset->needs[n] == HD_NEEDS_NOTHING :
		all_summed(c, w, n)))
		n++;
	return n;
}

/* The bucket that it names is not here, and the next node reads it. */
static void check_lacks(const struct cluster *c, const struct hd_worker *w, bool none)
{
	const uint32_t b = hd_dist_lacks(w), at = w->onset->rank[0].done;
	bool reads = false;

	if (none || at == w->onset->nnodes) {
		assert_int_equal(b, HD_NONE);
		return;
	}
	for (uint32_t i = w->onset->first[at]; i < w->onset->first[at + 1]; i++)
		reads |= w->onset->bucket[i] == b;
	CHECK(b < c->nbuckets && !hd_dist_summed(w, b) && reads, "node %u lacks bucket %u", at, b);
}

static uint32_t done(const struct hd_worker *w) { return w->onset->rank[0].done; }

/* After each bucket both have run all that may be run, and no more: first none, since no weight is known. */
static void nodes_run_when_all_that_they_read_is_here(void **state)
{
	static const char *const models[] = { wide, gpt, resnet };
	struct cluster *c = calloc(1, sizeof *c);
	uint32_t between = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_pair(c, models[i], NONE);
		struct hd_worker *w = c->at[0].worker;
		begin_all(c, false, false);
		assert_false(hd_dist_has_ahead(w));
		compute_all(c);
		run_ahead(w, false);
		assert_int_equal(done(w), possible(c, w, true));
		for (uint32_t b = 0; b < c->nbuckets; b++) {
			if (b == 1)
				exchange_leaves(c);
			fold(c, 1, &b, 1);
			send_sums(c, 1, 0, &b, 1);
			run_ahead(w, false);
			CHECK(done(w) == possible(c, w, !b), "model %zu, %u buckets: %u nodes of %u", i,
				b + 1, done(w), possible(c, w, !b));
			check_lacks(c, w, !b);
			between += done(w) > 0 && done(w) < w->onset->nnodes;
		}
		assert_int_equal(done(w), w->onset->nnodes);
		finish(c, "needs");
		close_cluster(c);
	}
	assert_true(between > 3);
	free(c);
}

/* Where the norm changes an update nothing is brought on before the end of the step; then all runs. */
static void with_clipping_nothing_is_read_before_the_end(void **state)
{
	struct cluster *c = calloc(1, sizeof *c);

	(void)state;
	open_pair(c, wide, "optim: {kind: sgd, lr: 0.1, clip: 0.1}\n");
	struct hd_worker *w = c->at[0].worker;
	assert_non_null(strstr(hd_job_onset_waits(c->task->job), "optim.clip"));
	begin_all(c, false, false);
	compute_all(c);
	exchange(c, false, UINT32_MAX);
	run_ahead(w, false);
	assert_int_equal(done(w), possible(c, w, true));
	finish(c, "clip");
	run_ahead(w, false);
	assert_int_equal(done(w), w->onset->nnodes);
	close_cluster(c);
	free(c);
}

/* A sample that is no number and whose label does not count: the loss is finite, gradients are not. */
static struct { const struct hd_reader_ops *under; uint64_t at; bool empty; } faulty;
static enum hd_err faulty_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	enum hd_err err = faulty.under->read(set, split, index, out, diag);

	for (uint64_t i = 0; faulty.empty && !err && i < set->field[1].sample_bytes / 4; i++)
		((int32_t *)out[1])[i] = -1;
	if (err || split || index != faulty.at)
		return err;
	*(float *)out[0] = NAN;
	*(int32_t *)out[1] = -1;
	return HD_OK;
}
static void faulty_destroy(struct hd_dataset *set) { faulty.under->destroy(set); }
static const struct hd_reader_ops faults = { .name = "faulty", .about = "another reader, with faults",
	.read = faulty_read, .destroy = faulty_destroy };

static void open_faulty(struct cluster *c, uint64_t at, bool empty, const char *more)
{
	struct hd_diag diag = { "" };

	memset(c, 0, sizeof *c);
	open_cluster(c, empty ? gpt : wide, 26, 7, more, 40 + at);
	hd_reading_close(c->one);
	faulty.under = c->task->data->ops;
	faulty.at = at;
	faulty.empty = empty;
	c->task->data->ops = c->uncut->data->ops = &faults;
	assert_int_equal(hd_worker_rewind(c->one, &diag), HD_OK);
	for (uint32_t m = 0; m < 2; m++)
		add_member(c, 1 + (uint32_t)at % 2);
	prepare(c, plan_of(c));
	adopt(c);
}

/* No label counts: the parameters stay, and what was run on them holds. */
static void an_empty_step_leaves_what_was_begun(void **state)
{
	struct cluster *c = calloc(1, sizeof *c);
	uint64_t before = 0;

	(void)state;
	open_faulty(c, UINT64_MAX - 1, true, ADAMW);
	for (int s = 0; s < MANY_STEPS; s++) {
		begin_all(c, s > 0, false);
		compute_all(c);
		exchange(c, false, UINT32_MAX);
		compare(c, "empty");
		assert_true(c->want.empty);
	}
	before = nodes_of(c, false);
	assert_true(before > 2 * MANY_STEPS && nodes_of(c, true) == 0);
	close_cluster(c);
	free(c);
}

/* Buckets were brought on, and nodes have run on them, before the last sum says that the step is none. */
static void a_skipped_step_leaves_nothing_of_what_was_begun(void **state)
{
	struct cluster *c = calloc(1, sizeof *c);
	uint64_t vain = 0, skipped = 0;

	(void)state;
	for (uint64_t k = 0; k < 6; k++) {
		open_faulty(c, 11 * (k % 3), false, k < 3 ? ADAMW : ADAMW SHARDED);
		for (int s = 0; s < MANY_STEPS; s++) {
			const uint64_t had = nodes_of(c, true);
			begin_all(c, s > 0, false);
			compute_all(c);
			exchange(c, k > 2, UINT32_MAX);
			compare(c, "skipped");
			vain += c->want.skipped ? nodes_of(c, true) - had : 0;
			skipped += c->want.skipped;
		}
		close_cluster(c);
	}
	assert_true(skipped >= 12 && vain > 40);
	free(c);
}

/* Tables and copies of slots: what the arena of a worker has more of than without them, and no less than the
 * copies alone. */
static void its_memory_is_predicted(void **state)
{
	struct cluster *c = calloc(1, sizeof *c);
	struct hd_memory_terms on, off;
	uint64_t arena = 0;

	(void)state;
	open_pair(c, wide, ADAMW);
	const struct hd_worker *w = c->at[0].worker;
	hd_worker_memory(w, &on);
	arena = w->arena.used_bytes;
	const uint64_t slots = w->spec.ndevices * 2 * HD_ONSET_ELEMS * sizeof(float);
	assert_true(hd_onset_bytes(w) > slots);
	close_cluster(c);
	open_pair(c, wide, ADAMW "comm: {overlap: off}\n");
	w = c->at[0].worker;
	hd_worker_memory(w, &off);
	assert_int_equal(hd_onset_bytes(w), 0);
	CHECK(on.own - off.own == arena - w->arena.used_bytes && on.own > off.own + slots,
		"%llu bytes predicted, %llu taken", (unsigned long long)(on.own - off.own),
		(unsigned long long)(arena - w->arena.used_bytes));
	assert_true(on.total - off.total == on.own - off.own);
	close_cluster(c);
	free(c);
}

static void a_job_may_ask_for_none(void **state)
{
	static const struct { const char *more, *why; } rows[] = {
		{ "comm: {overlap: off}\n", "comm.overlap" },
		{ "optim: {update: 2bw}\n", "optim.update" },
		{ "trace: {values: 1}\n", "trace.values" },
	};
	struct cluster *c = calloc(1, sizeof *c);

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		open_pair(c, hd_rig_mlp, rows[i].more);
		assert_non_null(strstr(hd_task_onset(c->task), rows[i].why));
		assert_null(c->at[0].worker->onset);
		begin_all(c, false, false);
		compute_all(c);
		exchange(c, false, UINT32_MAX);
		assert_false(hd_dist_has_ahead(c->at[0].worker));
		finish(c, rows[i].why);
		close_cluster(c);
	}
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_give_the_bits_of_one_device),
		cmocka_unit_test(nodes_run_when_all_that_they_read_is_here),
		cmocka_unit_test(with_clipping_nothing_is_read_before_the_end),
		cmocka_unit_test(a_skipped_step_leaves_nothing_of_what_was_begun),
		cmocka_unit_test(an_empty_step_leaves_what_was_begun),
		cmocka_unit_test(a_job_may_ask_for_none),
		cmocka_unit_test(its_memory_is_predicted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
