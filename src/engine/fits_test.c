#include "engine/testing_stages.h"

#include <malloc.h>

#include "engine/pipe.h"
#include "engine/worker_int.h"

/* Refusals of memory: before anything is taken, with numbers, by the plan's own count of buffers. */

#define MIB ((uint64_t)1 << 20)

static void what_fits_neither_the_limit_nor_what_is_free_is_refused_with_numbers(void **state)
{
	static const struct hd_memory_terms need = { .params = 10 * MIB, .slots = 20 * MIB,
		.gradients = 40 * MIB, .arenas = 20 * MIB, .kept = 10 * MIB,
		.held = 90 * MIB, .total = 100 * MIB, .process = 5 * MIB };
	static const struct { struct hd_room room; const char *says, *needs; } cases[] = {
		{ { .limit_bytes = 105 * MIB, .free_bytes = 100 * MIB }, NULL, NULL },
		{ { .limit_bytes = 105 * MIB, .free_bytes = 30 * MIB, .used_bytes = 70 * MIB }, NULL, NULL },
		{ { .limit_bytes = 200 * MIB, .free_bytes = 0, .used_bytes = 170 * MIB }, NULL, NULL },
		/* the limit is one of all that the process takes, lists of edges, too */
		{ { .limit_bytes = 104 * MIB, .free_bytes = 1000 * MIB }, "this process may use 104.0 MiB", "needs 105.0 MiB" },
		{ { .limit_bytes = 1000 * MIB, .free_bytes = 99 * MIB }, "free now would let it have 99.0 MiB", "needs 100.0 MiB" },
		{ { .limit_bytes = 1000 * MIB, .free_bytes = 29 * MIB, .used_bytes = 70 * MIB }, "free now would let it have 99.0 MiB", "needs 100.0 MiB" },
		/* samples that are kept lie in no device */
		{ { .devices_bytes = 90 * MIB, .limit_bytes = 105 * MIB, .free_bytes = 100 * MIB }, NULL, NULL },
		{ { .devices_bytes = 89 * MIB, .limit_bytes = 105 * MIB, .free_bytes = 100 * MIB }, "workers.memory gives 89.0 MiB", "needs 90.0 MiB" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		enum hd_err err = hd_memory_fits(&need, &cases[i].room, 2, &diag);
		CHECK(err == (cases[i].says ? HD_E_REFUSED : HD_OK), "case %zu: %d", i, err);
		if (cases[i].says)
			CHECK(strstr(diag.text, cases[i].says) && strstr(diag.text, cases[i].needs) &&
				strstr(diag.text, "gradients 40.0"), "%s", diag.text);
	}
}

/* Every second virtual node on the other device: each keeps as many roots as it has nodes, so
 * the buffers are many where the even map has few. The limit lies between the two. */
static void a_plan_of_many_buffers_is_refused_before_they_are_taken(void **state)
{
	static const char wide[] =
		"model: {use: builtin:mlp, args: {hidden: [512]}}\ndata: {kind: synthetic, count: 64}\n";
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	struct hd_memory_terms even, terms;
	struct hd_diag diag = { "" };
	struct hd_plan scattered;
	struct hd_rig rig;
	uint32_t map[32];

	(void)state;
	for (uint32_t v = 0; v < 32; v++)
		map[v] = v % 2;
	hd_rig_open_on(&rig, wide, 32, 32, NULL, &spec);
	hd_worker_memory(rig.worker, &even);
	hd_rig_close(&rig);
	spec.memory_limit_bytes = even.held / 2 + 2 * even.params;
	hd_rig_open_on(&rig, wide, 32, 32, NULL, &spec);
	struct hd_plan_job job = hd_plan_job_whole(32, rig.task->layout.nchunks);
	assert_int_equal(hd_plan_of_map(&scattered, &job, 2, map, &rig.arena, &diag), HD_OK);
	uint32_t had = rig.worker->rank[0].pool->cap;
	assert_int_equal(hd_worker_adopt(rig.worker, &scattered, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "the job needs") && strstr(diag.text, "workers.memory"), "%s", diag.text);
	assert_int_equal(rig.worker->rank[0].pool->cap, had);
	hd_rig_step(&rig);                /* under the plan that it had */
	hd_rig_close(&rig);
	/* without the limit: what is predicted is what was taken */
	spec.memory_limit_bytes = 0;
	hd_rig_open_on(&rig, wide, 32, 32, NULL, &spec);
	assert_int_equal(hd_plan_of_map(&scattered, &job, 2, map, &rig.arena, &diag), HD_OK);
	assert_int_equal(hd_worker_adopt(rig.worker, &scattered, &diag), HD_OK);
	hd_worker_memory(rig.worker, &terms);
	assert_true(terms.gradients == (rig.worker->rank[0].pool->cap + rig.worker->rank[1].pool->cap) *
		terms.params);
	assert_true(terms.gradients > even.gradients);
	hd_rig_close(&rig);
}

/* A thread that reads ahead wants a core of its own; without one it is worth its place only where a disk
 * may be waited for. */
static void rows_are_read_ahead_where_a_core_or_a_disk_is_idle_meanwhile(void **state)
{
	static const struct { bool spare_core, at_hand; uint32_t nthreads, depth; } cases[] = {
		{ false, true, 0, 1 }, { false, false, 1, HD_PREFETCH_STEPS }, { true, true, 1, HD_PREFETCH_STEPS }, { true, false, 1, HD_PREFETCH_STEPS },
	};
	struct hd_cores cores;
	struct hd_rig rig;

	(void)state;
	hd_cores_usable(&cores);
	for (uint32_t n = 1; n <= 3; n++) {
		hd_rig_open(&rig, hd_rig_mlp, 12, 6, NULL, n);
		CHECK(rig.worker->reading->spare_core == (n < cores.n), "%u devices on %u cores", n, cores.n);
		hd_rig_close(&rig);
	}
	hd_rig_open(&rig, hd_rig_mlp, 12, 6, NULL, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_memory_terms terms;
		rig.worker->reading->spare_core = cases[i].spare_core;
		rig.task->data->at_hand = cases[i].at_hand;
		const struct hd_prefetch_spec spec = hd_worker_reading(rig.worker);
		CHECK(spec.nthreads == cases[i].nthreads && spec.depth == cases[i].depth,
			"case %zu: %u threads, %u steps", i, spec.nthreads, spec.depth);
		hd_worker_memory(rig.worker, &terms);
		/* a step is 12 rows of 784 numbers and a label; a device keeps 2 more rows for forward
		 * passes */
		assert_int_equal(terms.inputs, (784 + 1) * 4 * (2 + 12 * cases[i].depth));
	}
	/* a set that is read by ranges may be far: more readers and steps, but not at first */
	static const struct hd_reading_ops far = { 0 };
	rig.worker->reading->spare_core = true;
	rig.task->data->reading = &far;
	const struct hd_prefetch_spec spec = hd_worker_reading(rig.worker);
	assert_true(spec.nthreads == HD_PREFETCH_READERS && spec.depth == HD_PREFETCH_FAR);
	assert_true(spec.first_threads == 1 && spec.first_depth == HD_PREFETCH_STEPS);
	rig.task->data->reading = NULL;
	/* a step of more than may be read ahead is held all the same: one */
	const uint64_t sample_bytes = rig.task->data->field[0].sample_bytes, wide = HD_PREFETCH_BYTES / 8;
	struct hd_memory_terms terms;
	rig.task->data->field[0].sample_bytes = wide;
	hd_worker_memory(rig.worker, &terms);
	rig.task->data->field[0].sample_bytes = sample_bytes;
	assert_int_equal(terms.inputs, (wide + 4) * (2 + 12));
	hd_rig_close(&rig);
}

/* Bytes of whole pages of a block of `len` bytes that still hold MARK: huge pages as far as they fit. */
enum { MARK = 0xa5, HUGE = 2 << 20, SMALL = 4096 };
static uint64_t kept_of(const uint8_t *at, uint64_t len)
{
	uint64_t sum = 0;

	for (uint64_t from = 0, n; from < len; from += n) {
		n = len - from >= HUGE ? HUGE : len - from < SMALL ? len - from : SMALL;
		uint64_t i = 0;
		while (i < n && at[from + i] == MARK)
			i++;
		sum += i == n ? n : 0;
	}
	return sum;
}

/* Kernels of ours fold the gradients of the wide layers, those of the reference do not: what the terms call
 * idle is written to by no step, and it is there for the first alone. */
static void what_no_kernel_writes_to_is_predicted_as_idle(void **state)
{
	static const char wide[] =
		"model: {use: builtin:mlp, args: {hidden: [1500, 200]}}\n"
		"data: {kind: synthetic, count: 64}\n";
	static const char *const kinds[] = { "cpu", "reference" };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct hd_worker_spec spec = { .kind = kinds[k], .ndevices = 1, .nthreads = 1,
			.kernels = HD_KERNELS_PORTABLE };
		struct hd_memory_terms t;
		struct hd_rig rig;
		hd_rig_open_on(&rig, wide, 16, 8, NULL, &spec);
		const struct hd_rank *rank = &rig.worker->rank[0];
		const uint64_t arena = hd_worker_activation_bytes(rig.worker);
		hd_worker_memory(rig.worker, &t);
		assert_true(t.total == t.params + t.slots + t.gradients + t.arenas + t.inputs + t.kept +
			t.own);
		assert_true(hd_memory_taken(&t) == t.total - t.idle_gradients - t.idle_arenas);
		CHECK(k ? !t.idle_gradients && !t.idle_arenas : t.idle_gradients > 0 && t.idle_arenas > 0,
			"%s: idle %llu of gradients, %llu of activations", kinds[k],
			(unsigned long long)t.idle_gradients, (unsigned long long)t.idle_arenas);
		memset(rank->activations, MARK, arena);
		memset(rank->pool->temp, MARK, rank->pool->temp_bytes);
		hd_rig_step(&rig);
		hd_rig_step(&rig);
		CHECK(kept_of(rank->activations, arena) >= t.idle_arenas, "activations are written to");
		uint64_t idle = 0, each = rig.worker->stage->train.temp_elems * sizeof(float);
		for (uint32_t i = 0; i < rank->need.ntemps; i++)
			idle += kept_of((const uint8_t *)rank->pool->temp + i * each, each);
		CHECK(idle >= t.idle_gradients, "temporary buffers are written to");
		hd_rig_close(&rig);
	}
}

/* Whole pages of it that do not; a block is of whole pages. */
static uint64_t written_of(const void *at, uint64_t len)
{
	return (len + SMALL - 1) / SMALL * SMALL - kept_of(at, len) -
		(kept_of((const uint8_t *)at + len / SMALL * SMALL, len % SMALL) ? SMALL - len % SMALL : 0);
}

/* Pages of flat vectors and of arenas that a plan of stages writes to, against what is predicted of them. */
static void stages_write_to_the_pages_that_are_predicted(void **state)
{
	static const char *const models[] = {
		"model: {use: builtin:mlp, args: {hidden: [1500, 700, 500]}}\n"
		"data: {kind: synthetic, count: 64}\n",
		"model: {use: builtin:gpt, args: {layers: 3, width: 96, heads: 2, context: 8, vocab: 7000}}\n"
		"data: {kind: synthetic, count: 64}\n",
	};
	static const struct hd_rig_kind ways[] = { { "1f1b", 2, 1, 1, false, 1 },
		{ "gpipe", 2, 1, 2, false, 1 }, { "zb-h1", 3, 1, 1, false, 1 },
		{ "interleaved", 2, 2, 1, true, 1 }, { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 } };
	uint64_t idle = 0;

	(void)state;
	for (size_t m = 0; m < sizeof models / sizeof *models; m++)
		for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
			uint64_t predicted = 0, written = 0, arenas = 0, used = 0;
			struct hd_diag diag = { "" };
			struct hd_plan plan;
			struct hd_rig rig;
			hd_rig_open(&rig, models[m], 8, 8, NULL, ways[k].p * ways[k].d);
			CHECK(hd_rig_staged(rig.worker, rig.task, &ways[k], &rig.arena, &plan, &diag) ==
				HD_OK && hd_worker_adopt(rig.worker, &plan, &diag) == HD_OK, "%s",
				diag.text);
			const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
			const uint64_t flat = rig.worker->stage->flat_bytes;
			for (uint32_t v = 0; v < pipe->nvectors; v++)
				memset(pipe->vector[v], MARK, flat);
			for (uint32_t i = 0; i < pipe->nseats; i++)
				for (uint32_t a = 0; a < pipe->seat[i].arena.cap; a++)
					memset(pipe->seat[i].memory[a], MARK, pipe->seat[i].arena.bytes);
			hd_rig_step(&rig);
			hd_rig_step(&rig);
			for (uint32_t v = 0; v < pipe->nvectors; v++)
				written += written_of(pipe->vector[v], flat);
			for (uint32_t i = 0; i < pipe->nseats; i++)
				for (uint32_t a = 0; a < pipe->seat[i].arena.cap; a++) {
					used += pipe->seat[i].arena.bytes -
						kept_of(pipe->seat[i].memory[a], pipe->seat[i].arena.bytes);
					arenas += pipe->seat[i].arena.bytes;
				}
			for (uint32_t r = 0; r < pipe->ndevices; r++) {
				predicted += hd_pipe_vector_bytes(pipe, r);
				arenas -= hd_pipe_idle_bytes(pipe, r);
				idle += hd_pipe_idle_bytes(pipe, r);
			}
			CHECK(written == predicted, "%s of job %zu: %llu bytes of vectors, predicted %llu",
				ways[k].name, m, (unsigned long long)written, (unsigned long long)predicted);
			CHECK(used <= arenas && (arenas < MIB || used * 100 >= arenas * 97),
				"%s of job %zu: %llu bytes of arenas, predicted %llu", ways[k].name, m,
				(unsigned long long)used, (unsigned long long)arenas);
			hd_rig_close(&rig);
		}
	assert_true(idle > 0);
}

/* What the heap grows by, but for what devices take of it: kernels, and tables of mail. */
static void graphs_and_programs_of_stages_are_predicted(void **state)
{
	static const struct hd_rig_kind k = { "1f1b", 3, 1, 1, false, 1 };
	struct hd_memory_terms before, after;
	struct hd_diag diag = { "" };
	struct hd_plan plan;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, "model: {use: builtin:gpt, args: {layers: 8, width: 16, heads: 2, context: 8}}\n"
		"data: {kind: synthetic, count: 64}\n", 8, 8, NULL, 3);
	CHECK(hd_rig_staged(rig.worker, rig.task, &k, &rig.arena, &plan, &diag) == HD_OK, "%s", diag.text);
	hd_worker_memory(rig.worker, &before);
	const size_t heap = mallinfo2().uordblks;
	if (!heap) {
		hd_rig_close(&rig);
		SKIP("this allocator does not say what it gave");
	}
	CHECK(hd_worker_adopt(rig.worker, &plan, &diag) == HD_OK, "%s", diag.text);
	hd_worker_memory(rig.worker, &after);
	const uint64_t grown = mallinfo2().uordblks - heap, own = after.own - before.own;
	CHECK(own > MIB / 4 && own <= grown && own * 3 > grown, "%llu bytes predicted, the heap grew by %llu",
		(unsigned long long)own, (unsigned long long)grown);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_and_programs_of_stages_are_predicted),
		cmocka_unit_test(stages_write_to_the_pages_that_are_predicted),
		cmocka_unit_test(what_fits_neither_the_limit_nor_what_is_free_is_refused_with_numbers),
		cmocka_unit_test(rows_are_read_ahead_where_a_core_or_a_disk_is_idle_meanwhile),
		cmocka_unit_test(a_plan_of_many_buffers_is_refused_before_they_are_taken),
		cmocka_unit_test(what_no_kernel_writes_to_is_predicted_as_idle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
