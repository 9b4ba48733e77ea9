#include "engine/meeting.h"
#include "engine/stale.h"
#include "engine/stamps.h"
#include "gnn/testing_recursion.h"

/* Rows of earlier epochs (engine/stale.h): the recursion in f64 on the matrix that the graph was made of, by
 * vertices of the input; bits on devices, workers and after the state went through a table. */

static const char rate[] = "optim: {kind: sgd, lr: 0.5, clip: 0, schedule: {kind: constant, warmup: 0}}\n",
	adam[] = "optim: {kind: adamw, lr: 0.01, clip: 0.5, on_nonfinite: skip, schedule: {kind: constant, "
	"warmup: 0}}\n";

/* The oracle of another staleness, or of other bits, is elsewhere: the rows that are late matter. `late`: of
 * the oracle, of the worker. */
static void compare(struct graphs *g, const struct how *how, uint32_t k, const uint32_t *const late[2],
	bool same)
{
	const struct hd_recording recording = { EPOCHS, late[1], 0 };
	static struct oracle o;
	int id[INTERVALS * VERTICES];
	double before[NNAMES][MOST_ELEMS];
	struct hd_rig rig;
	struct how other = *how;

	open_stale(g, &rig, how, 1);
	rig.task->recording = late[1] ? &recording : NULL;
	ids_of_rows(g, how->kind, how->n, rows_of(g, how->kind, how->n), id);
	other.k = k;
	oracle_begin(&o, g->known[how->kind], id, rows_of(g, how->kind, how->n), &other);
	o.late = late[0];
	for (int i = 0; i < NNAMES; i++) {
		read_param(&rig, i, before[i]);
		memcpy(param_of(&o, 0, i), before[i], sizeof(double) * (size_t)read_param(&rig, i,
			before[i]));
	}
	for (uint32_t e = 0; e < EPOCHS; e++) {
		hd_rig_step(&rig);
		oracle_step(&o, e, 0.5);
	}
	for (int i = 0; i < NNAMES; i++) {
		const double off = apart(&o, &rig, before, i);
		CHECK(same ? off < 1e-5 : off > 1e-3, "graph %d, %u intervals, %u cells, k %u, oracle of "
			"%u: %s is off by %g", how->kind, how->n, how->cells, how->k, k, names[i], off);
	}
	hd_rig_close(&rig);
}

static void weights_are_those_of_the_recursion(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int kind = 0; kind < 2; kind++)
		for (uint32_t cells = 2; cells <= INTERVALS; cells *= 2)
			for (uint32_t k = 0; k <= 4; k += 1 + k / 2) {
				const struct how how = { 0, kind, cells == 4 ? 4 : INTERVALS, cells, k,
					HD_MODE_EXACT, "0", rate };
				compare(&g, &how, k, (const uint32_t *[2]){ NULL, NULL }, true);
				compare(&g, &how, k ? k - 1 : 1, (const uint32_t *[2]){ NULL, NULL },
					false);
			}
	drop_graphs(&g);
}

/* Bits of no run; those of a virtual node of its own rows say nothing. */
static void draw_late(uint32_t late[EPOCHS * NSYNCS * INTERVALS], uint32_t n)
{
	for (uint32_t i = 0; i < EPOCHS * NSYNCS * n; i++)
		late[i] = i < NSYNCS * n ? 0 : draw(1u << n) & ~(1u << i % n);
}

static void a_replay_is_the_recursion_of_its_bits(void **state)
{
	uint32_t late[EPOCHS * NSYNCS * INTERVALS], other[EPOCHS * NSYNCS * INTERVALS];
	struct graphs g;

	(void)state;
	make_graphs(&g);
	seed = 21;
	for (int kind = 0; kind < 2; kind++)
		for (uint32_t n = 2; n <= INTERVALS; n *= 2) {
			const struct how how = { 0, kind, n, 1, 0, HD_MODE_REPLAY, "0", rate };
			draw_late(late, n);
			draw_late(other, n);
			compare(&g, &how, 0, (const uint32_t *[2]){ late, late }, true);
			compare(&g, &how, 0, (const uint32_t *[2]){ other, late }, false);
		}
	drop_graphs(&g);
}

/* ---- bits ---- */

static void devices_have_the_bits_of_one(void **state)
{
	static const struct { uint32_t n, cells, k; } kinds[NMODELS] = { { 8, 2, 1 }, { 8, 8, 2 },
		{ 4, 2, 3 }, { 8, 4, 2 } };
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int m = 0; m < NMODELS; m++)
		for (uint32_t d = 2; d <= 3; d++) {
			const struct how how = { m, m % 2, kinds[m].n, kinds[m].cells, kinds[m].k,
				HD_MODE_EXACT, "0.4", adam };
			struct hd_rig one, rig;
			open_stale(&g, &one, &how, 1);
			open_stale(&g, &rig, &how, d);
			for (int s = 0; s < 6; s++) {
				const struct hd_step_record a = hd_rig_step(&one), b = hd_rig_step(&rig);
				CHECK(hd_hash_same(a.digest, b.digest) && a.loss_sum == b.loss_sum,
					"%s on %u devices, step %d", models[m], d, s);
				assert_true(hd_hash_same(b.digest, hd_worker_digest(rig.worker)));
			}
			hd_rig_close(&one);
			hd_rig_close(&rig);
		}
	drop_graphs(&g);
}

static void exact_0_is_in_step(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int m = 0; m < NMODELS; m++) {
		struct how how = { m, m % 2, INTERVALS, 4, 0, HD_MODE_EXACT, "0.4", adam };
		struct hd_rig exact, in_step;
		open_stale(&g, &exact, &how, 2);
		how.mode = HD_MODE_SYNC;
		how.cells = 1;
		open_stale(&g, &in_step, &how, 1);
		for (int s = 0; s < 4; s++)
			assert_true(hd_hash_same(hd_rig_step(&exact).digest, hd_rig_step(&in_step).digest));
		hd_rig_close(&exact);
		hd_rig_close(&in_step);
	}
	drop_graphs(&g);
}

static bool is_rows(const struct hd_rig *rig, uint32_t entry)
{
	return !strncmp(hd_worker_state(rig->worker)->entry[entry].name, "rows.", 5);
}

/* And nothing in it is idle, once all places have been written. */
static void a_fresh_worker_with_the_table_goes_on(void **state)
{
	const struct how how = { 0, 1, INTERVALS, 4, 2, HD_MODE_EXACT, "0.4", adam };
	struct hd_rig_bytes bytes[EPOCHS], none;
	struct hd_hash want[EPOCHS];
	struct hd_rig whole, fresh;
	struct graphs g;
	uint32_t nrows = 0;

	(void)state;
	make_graphs(&g);
	open_stale(&g, &whole, &how, 1);
	for (int s = 0; s < EPOCHS; s++) {
		hd_rig_copy(&whole, &bytes[s], &whole.arena);
		want[s] = hd_rig_step(&whole).digest;
	}
	for (uint32_t s = 0; s < EPOCHS; s++) {
		open_stale(&g, &fresh, &how, 1 + s % 3);
		hd_rig_paste(&fresh, &bytes[s], HD_NONE);
		for (uint32_t at = s; at < EPOCHS; at++)
			CHECK(hd_hash_same(hd_rig_step(&fresh).digest, want[at]),
				"step %u of a worker that began at %u", at, s);
		hd_rig_close(&fresh);
	}
	open_stale(&g, &fresh, &how, 1);
	hd_rig_copy(&fresh, &none, &fresh.arena);
	for (uint32_t i = 0; i < none.n; i++) {
		if (!is_rows(&fresh, i))
			continue;
		hd_rig_paste(&fresh, &none, HD_NONE);
		hd_rig_paste(&fresh, &bytes[3], i);
		nrows++;
		CHECK(!hd_hash_same(hd_rig_step(&fresh).digest, want[3]), "without %s",
			hd_worker_state(fresh.worker)->entry[i].name);
	}
	assert_int_equal(nrows, 4);
	hd_rig_close(&fresh);
	hd_rig_close(&whole);
	drop_graphs(&g);
}

static void skip_step(struct hd_rig *rig)
{
	float *w = hd_state_find(hd_worker_state(rig->worker), "layers.0.weight")->at, had = w[5];

	w[5] = INFINITY;
	assert_true(hd_rig_step(rig).skipped);
	w[5] = had;
}

/* Rows that are not finite would be read k steps later, and make that one such, too; those k steps before
 * would be read later than the mode allows. Place 1 of 2 is that of step 3. */
static void a_step_that_is_skipped_has_the_rows_of_the_one_before(void **state)
{
	const struct how how = { 0, 1, 4, 2, 2, HD_MODE_EXACT, "0", adam };
	struct hd_rig_bytes before, after;
	struct hd_rig rig;
	struct graphs g;

	(void)state;
	make_graphs(&g);
	open_stale(&g, &rig, &how, 2);
	for (int s = 0; s < 3; s++)
		hd_rig_step(&rig);
	hd_rig_copy(&rig, &before, &rig.arena);
	skip_step(&rig);
	hd_rig_copy(&rig, &after, &rig.arena);
	for (uint32_t i = 0; i < before.n; i++) {
		const uint64_t place = hd_worker_state(rig.worker)->entry[i].len_bytes / 2;
		const uint8_t *was = (const uint8_t *)before.at[i], *is = (const uint8_t *)after.at[i];
		if (!is_rows(&rig, i))
			continue;
		assert_true(memcmp(was, was + place, place));
		CHECK(!memcmp(is, was, place) && !memcmp(is + place, was, place), "entry %u", i);
	}
	for (int s = 0; s < 3; s++)
		assert_false(hd_rig_step(&rig).skipped);
	hd_rig_close(&rig);
	drop_graphs(&g);
}

/* A run whose first steps are skipped is the same run some steps later: no step reads rows of steps that
 * never were. The rate is constant and nothing is dropped, so that no number goes by the step. */
static void steps_that_are_skipped_first_count_as_none(void **state)
{
	static const char plain[] = "optim: {kind: sgd, lr: 0.5, clip: 0, on_nonfinite: skip, "
		"schedule: {kind: constant, warmup: 0}}\n";
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (uint32_t k = 1; k <= 3; k++)
		for (uint32_t nskipped = 1; nskipped <= 2; nskipped++) {
			const struct how how = { 0, 1, 4, 2, k, HD_MODE_EXACT, "0", plain };
			struct hd_rig rig, late;
			open_stale(&g, &rig, &how, 1);
			open_stale(&g, &late, &how, 2);
			for (uint32_t s = 0; s < nskipped; s++)
				skip_step(&late);
			for (uint32_t s = 0; s < EPOCHS - nskipped; s++) {
				hd_rig_step(&rig);
				hd_rig_step(&late);
				const struct hd_state_entry *a = hd_state_find(hd_worker_state(rig.worker),
					"layers.0.weight"), *b = hd_state_find(hd_worker_state(late.worker),
					"layers.0.weight");
				CHECK(!memcmp(a->at, b->at, a->len_bytes), "exact %u, %u skipped, step %u", k,
					nskipped, s);
			}
			hd_rig_close(&late);
			hd_rig_close(&rig);
		}
	drop_graphs(&g);
}

/* ---- workers ---- */

static void open_net(struct graphs *g, struct net *net, const struct how *how, uint32_t nranks, uint32_t each)
{
	memset(net, 0, sizeof *net);
	open_stale(g, &net->one, how, 1);
	add_data_parallel(net, nranks, each, "rows that are late");
}

/* With fences at some letter; of the first, and of two of the last, a worker has no virtual node. */
static void workers_have_the_bits_of_one_device(void **state)
{
	static const struct { uint32_t n, nranks, each, k; } kinds[] = { { 2, 3, 1, 1 }, { 4, 3, 1, 1 },
		{ 8, 4, 2, 2 }, { 2, 4, 1, 3 } };
	struct net *net = malloc(sizeof *net);
	struct graphs g;
	uint32_t stale = 0;

	(void)state;
	make_graphs(&g);
	seed = 3;
	for (int x = 0; x < 4; x++)
		for (int fenced = 0; fenced < 2; fenced++) {
			const struct how how = { x % NMODELS, x % 2, kinds[x].n, 2, kinds[x].k,
				HD_MODE_EXACT, "0.4", adam };
			open_net(&g, net, &how, kinds[x].nranks, kinds[x].each);
			for (int i = 0; i < 5; i++) {
				net->fence_after = fenced ? 1 + draw(8) : 0;
				step(net, "rows that are late");
			}
			stale += net->stale;
			close_net(net);
		}
	assert_true(stale > 2);
	drop_graphs(&g);
	free(net);
}

static void abandon(struct net *net)
{
	for (uint32_t m = 0; m < net->n; m++)
		hd_dist_abandon(net->at[m].worker);
}

/* ---- a recording ---- */

static const uint32_t *stamps_of(const struct hd_rig *rig)
{
	return hd_state_find(hd_worker_state(rig->worker), "stamps")->at;
}

static uint32_t bits_in(const uint32_t *late, uint32_t n)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits += (uint32_t)__builtin_popcount(late[i]);
	return bits;
}

/* Of devices that do not wait for one another, on one that has all in order; where one is alone, all rows
 * that it reads are there. */
static void a_replay_has_the_bits_of_the_recorded(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int m = 0; m < NMODELS; m++) {
		struct how how = { m, m % 2, INTERVALS, 1, 0, HD_MODE_BOUNDED, "0.4", adam };
		struct hd_rig rig, one;
		struct hd_hash want[EPOCHS];
		open_stale(&g, &rig, &how, m ? 4 : 1);
		for (int s = 0; s < EPOCHS; s++)
			want[s] = hd_rig_step(&rig).digest;
		const struct hd_recording recording = { EPOCHS, stamps_of(&rig), 0 };
		assert_true(m || !bits_in(recording.late, EPOCHS * NSYNCS * INTERVALS));
		how.mode = HD_MODE_REPLAY;
		open_stale(&g, &one, &how, 1 + (uint32_t)m % 2);
		one.task->recording = &recording;
		for (int s = 0; s < EPOCHS; s++)
			CHECK(hd_hash_same(hd_rig_step(&one).digest, want[s]), "%s, step %d", models[m], s);
		hd_rig_close(&one);
		hd_rig_close(&rig);
	}
	drop_graphs(&g);
}

/* What the workers' virtual nodes say of the step that they have computed. */
static void note_said(const struct net *net, uint32_t *late, uint32_t nsyncs)
{
	for (uint32_t v = 0; v < net->plan.nvns; v++) {
		const struct hd_worker *w = net->at[net->plan.worker[net->plan.map[v]]].worker;
		const struct hd_moments *m = &w->step->moments;
		assert_int_equal(m->elems, nsyncs);
		for (uint32_t k = 0; k < nsyncs; k++)
			late[((uint64_t)w->count.step * nsyncs + k) * net->plan.nvns + v] =
				(uint32_t)m->leaf[v * m->elems + k];
	}
}

/* As a pass that was begun before may leave it. */
static void mark_all(struct net *net, uint32_t nsyncs)
{
	for (uint32_t m = 0; m < net->n; m++)
		for (uint32_t k = 0; k < nsyncs; k++)
			for (uint32_t v = 0; v < net->plan.nvns; v++)
				hd_stamps_mark(net->at[m].worker, &(struct hd_sync){ .number = k }, v,
					(uint64_t)net->at[m].worker->count.step);
}

/* Letters come when the test's wire brings them, and a fence ends a step on its way, with what ran ahead of
 * it: one device that replays what they say has the same bits, with the recording in its state. */
static void workers_that_do_not_wait_are_replayed(void **state)
{
	static const struct { uint32_t n, nranks, each; } kinds[NMODELS] = { { 2, 3, 1 }, { 4, 3, 1 },
		{ 8, 4, 2 }, { 4, 4, 2 } };
	enum { NSTEPS = 6, MOST_SYNCS = 13 };
	static uint32_t late[NSTEPS * MOST_SYNCS * INTERVALS];
	const struct hd_recording recording = { NSTEPS, late, 0 };
	struct net *net = malloc(sizeof *net);
	struct graphs g;

	(void)state;
	make_graphs(&g);
	seed = 13;
	for (int y = 0; y < 4 * NMODELS; y++) {
		const int x = y % (2 * NMODELS);
		const uint32_t n = kinds[x / 2].n, s = (uint32_t)(y / (2 * NMODELS)) * (1 + (uint32_t)x % 2);
		struct how how = { x / 2, x % 2, n, 1, s, HD_MODE_BOUNDED, "0.4", adam };
		struct hd_rig free_rig;
		memset(net, 0, sizeof *net);
		memset(late, 0, sizeof late);
		open_stale(&g, &free_rig, &how, 1);
		const uint32_t nsyncs = hd_lockstep_meetings(&free_rig.task->train) + (s > 0);
		assert_in_range(nsyncs, 1, MOST_SYNCS);
		how.mode = HD_MODE_REPLAY;
		open_stale(&g, &net->one, &how, 1);
		struct hd_task *const task = net->one.task;
		task->recording = &recording;
		net->one.task = free_rig.task;
		add_data_parallel(net, kinds[x / 2].nranks, kinds[x / 2].each, "rows that nothing waits for");
		net->one.task = task;
		for (int i = 0; i < NSTEPS; i++) {
			bool fenced;
			if (!s)
				mark_all(net, nsyncs);
			net->fence_after = x % 2 ? 1 + draw(8) : 0;
			do {
				begin(net);
				fenced = compute_all(net);
				if (fenced && is_stale(net)) {
					abandon(net);
					next_epoch(net);
					net->fence_after = 0;
					continue;
				}
				note_said(net, late, nsyncs);
				end_step(net, "rows that nothing waits for");
				if (fenced)
					next_epoch(net);
				break;
			} while (true);
		}
		assert_int_equal(bits_in(late, nsyncs * n), 0);       /* of step 0 */
		assert_memory_equal(stamps_of(&net->one), late, NSTEPS * nsyncs * n * sizeof *late);
		close_net(net);
		hd_rig_close(&free_rig);
	}
	drop_graphs(&g);
	free(net);
}

/* 256 MiB of recording and no more, also where the product of the three sizes does not fit 64 bits. */
static void a_recording_has_a_size_that_is_allowed(void **state)
{
	static const uint64_t too_many[] = { UINT64_C(1) << 58, UINT64_C(1) << 62, INT64_MAX };
	const struct how how = { 0, 0, INTERVALS, 1, 0, HD_MODE_BOUNDED, "0.4", adam };
	struct hd_diag diag = { "" };
	struct graphs g;
	struct hd_rig rig;

	(void)state;
	make_graphs(&g);
	open_stale(&g, &rig, &how, 1);
	struct hd_task task = *rig.task;
	const uint64_t most = (UINT64_C(1) << 28) / (hd_stamps_bytes(&task) / task.nsteps);
	task.nsteps = most;
	assert_int_equal(hd_stamps_allowed(&task, &diag), HD_OK);
	task.nsteps = most + 1;
	assert_int_equal(hd_stamps_allowed(&task, &diag), HD_E_REFUSED);
	for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++) {
		task.nsteps = too_many[i];
		assert_int_equal(hd_stamps_allowed(&task, &diag), HD_E_REFUSED);
	}
	assert_non_null(strstr(diag.text, "takes more than 256 MiB"));
	hd_rig_close(&rig);
	drop_graphs(&g);
}

/* ---- a worker that is left behind ---- */

/* Worker 2 has no virtual node. True: a fence found it alone in its pass. */
static bool waits_alone(struct net *net)
{
	net->fence_after = 12 + draw(4);
	begin(net);
	const bool fenced = compute_all(net);
	if (fenced && !net->at[0].err && !net->at[1].err && net->at[2].err == HD_E_STALE)
		return true;
	if (is_stale(net))
		abandon(net);
	else
		end_step(net, "two of three");
	if (fenced)
		next_epoch(net);
	return false;
}

static void a_worker_without_rows_does_not_finish(void **state)
{
	const struct how how = { 0, 0, 2, 2, 1, HD_MODE_EXACT, "0.4", adam };
	struct net *net = malloc(sizeof *net);
	struct hd_step_record r;
	struct hd_diag diag = { "" };
	struct roots roots;
	struct graphs g;
	int tries = 0;

	(void)state;
	make_graphs(&g);
	seed = 5;
	open_net(&g, net, &how, 3, 1);
	while (!waits_alone(net))
		assert_true(++tries < 300);
	find_roots(net, &roots);
	for (uint32_t b = 0; b < net->nbuckets; b++)
		sum_bucket(net, &roots, b);
	for (uint16_t m = 0; m < 2; m++) {
		const uint64_t len = hd_dist_leaves_bytes(net->at[m].worker, 1);
		uint8_t *bytes = malloc(len);
		hd_dist_leaves_get(net->at[m].worker, 0, bytes);
		for (uint32_t to = 0; to < 3; to++)
			assert_int_equal(hd_dist_leaves_put(net->at[to].worker, m, bytes, len, &diag), HD_OK);
		free(bytes);
	}
	for (uint32_t m = 0; m < 3; m++)
		CHECK(hd_dist_finish(net->at[m].worker, &r, &diag) == (m < 2 ? HD_OK : HD_E_PEERLOST),
			"worker %u: %s", m, diag.text);
	assert_non_null(strstr(diag.text, "can only join again"));
	abandon(net);
	close_net(net);
	drop_graphs(&g);
	free(net);
}

/* Both virtual nodes are worker 0's. */
static void open_late(struct graphs *g, struct net *net, const struct how *how)
{
	static const uint32_t map[] = { 0, 0 };
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	open_stale(g, &net->one, how, 1);
	const struct hd_plan_job job = hd_worker_plan_job(net->one.worker);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_plan_of_map(&net->plan, &job, 2, map, &net->one.arena, &diag) == HD_OK, "%s", diag.text);
	add_workers(net, 2, 1, "rows that are late");
}

static void sum_and_say(struct net *net)
{
	struct roots roots;

	net->want = hd_rig_step(&net->one);
	find_roots(net, &roots);
	for (uint32_t b = 0; b < net->nbuckets; b++)
		sum_bucket(net, &roots, b);
	for (uint32_t m = 0; m < 2; m++) {
		const uint64_t len = hd_dist_leaves_bytes(net->at[0].worker, 2);
		struct hd_diag diag = { "" };
		uint8_t *bytes = malloc(len);
		hd_dist_leaves_get(net->at[0].worker, 0, bytes);
		CHECK(hd_dist_leaves_put(net->at[m].worker, 0, bytes, len, &diag) == HD_OK, "%s", diag.text);
		free(bytes);
	}
}

static void finish_one(struct net *net, uint32_t m)
{
	struct hd_step_record r;
	struct hd_diag diag = { "" };

	CHECK(hd_dist_finish(net->at[m].worker, &r, &diag) == HD_OK, "worker %u: %s", m, diag.text);
	assert_true(hd_hash_same(r.digest, net->want.digest));
}

/* Worker 0 has ended the step before the wire takes a letter of it. */
static void end_before_letters(struct net *net)
{
	struct hd_diag diag = { "" };

	begin(net);
	CHECK(hd_dist_compute(net->at[0].worker, &diag) == HD_OK, "%s", diag.text);
	sum_and_say(net);
	finish_one(net, 0);
}

static void take_rows_late(struct net *net)
{
	struct hd_diag diag = { "" };

	clear_mail(net);
	for (int i = 0; i < 200; i++)
		(void)take_letters(net);
	assert_int_equal(net->nmail, hd_dist_mail_list(net->at[0].worker, 1, true, NULL));
	net->at[1].done = false;
	CHECK(hd_thread_start(&net->at[1].thread, "member", -1, compute, &net->at[1], &diag) == HD_OK, "%s",
		diag.text);
	while (!net->at[1].done) {
		(void)take_letters(net);
		(void)deliver_some(net);
		sched_yield();
	}
	hd_thread_join(&net->at[1].thread);
	finish_one(net, 1);
}

/* The rows come all the same. If the epoch ends before, they do not, and the sender has its buffers back. */
static void rows_go_out_after_the_step_of_their_sender(void **state)
{
	static const struct how hows[] = { { 0, 0, 2, 2, 1, HD_MODE_EXACT, "0.4", adam },
		{ 0, 0, 2, 1, 0, HD_MODE_BOUNDED, "0.4", adam } };
	struct net *net = malloc(sizeof *net);
	struct hd_dist_letter l;
	struct graphs g;

	(void)state;
	make_graphs(&g);
	seed = 9;
	for (int x = 0; x < 2; x++) {
		open_late(&g, net, &hows[x]);
		for (int s = 0; s < 4; s++) {
			end_before_letters(net);
			take_rows_late(net);
		}
		end_before_letters(net);
		hd_dist_abandon(net->at[1].worker);
		next_epoch(net);
		assert_false(hd_dist_mail_next(net->at[0].worker, &l));
		assert_int_equal(net->at[0].worker->meeting->nborrowed, 0);
		close_net(net);
	}
	drop_graphs(&g);
	free(net);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_those_of_the_recursion),
		cmocka_unit_test(a_replay_is_the_recursion_of_its_bits),
		cmocka_unit_test(devices_have_the_bits_of_one),
		cmocka_unit_test(exact_0_is_in_step),
		cmocka_unit_test(a_fresh_worker_with_the_table_goes_on),
		cmocka_unit_test(a_step_that_is_skipped_has_the_rows_of_the_one_before),
		cmocka_unit_test(steps_that_are_skipped_first_count_as_none),
		cmocka_unit_test(workers_have_the_bits_of_one_device),
		cmocka_unit_test(a_replay_has_the_bits_of_the_recorded),
		cmocka_unit_test(workers_that_do_not_wait_are_replayed),
		cmocka_unit_test(a_recording_has_a_size_that_is_allowed),
		cmocka_unit_test(a_worker_without_rows_does_not_finish),
		cmocka_unit_test(rows_go_out_after_the_step_of_their_sender),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
