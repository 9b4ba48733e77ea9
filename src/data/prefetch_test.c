#include "data/prefetch.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "tests/check.h"

/* A data set without a file: sample i is the number i, and a byte of it; it can fail or block. */
struct made { struct hd_dataset set; _Atomic uint64_t nreads; uint64_t fail_at; struct hd_lock *gate; };

static enum hd_err made_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	struct made *made = (struct made *)(uintptr_t)set;

	(void)split;
	if (made->gate) {
		hd_lock_take(made->gate);
		hd_lock_give(made->gate);
	}
	atomic_fetch_add(&made->nreads, 1);
	if (index == made->fail_at)
		return hd_fail(diag, HD_E_IO, "cannot read sample %llu", (unsigned long long)index);
	memcpy(out[0], &index, sizeof index);
	memcpy((uint8_t *)out[0] + sizeof index, &index, sizeof index);
	*(uint8_t *)out[1] = (uint8_t)(index * 3);
	return HD_OK;
}

static const struct hd_reader_ops made_ops = { .name = "made", .about = "for tests", .read = made_read };

static void make(struct made *made, uint64_t count)
{
	memset(made, 0, sizeof *made);
	made->set = (struct hd_dataset){ .ops = &made_ops, .nfields = 2, .nsplits = 1, .count = count };
	made->set.field[0] = (struct hd_field){ .name = "x", .sample_bytes = 16 };
	made->set.field[1] = (struct hd_field){ .name = "y", .sample_bytes = 1 };
	made->set.split[0] = (struct hd_split){ .name = "train", .count = count };
	made->fail_at = UINT64_MAX;
}

struct prefetch_run {
	struct hd_prefetch *prefetch;
	const struct hd_sampler *sampler;
	uint64_t first, end, per_vn;
	uint32_t nvns;
	_Atomic uint32_t next_vn;
	_Atomic uint64_t wrong, nrows;
};

/* A row's name is what the data set was asked for: its bytes say so. */
static bool is_named(const struct prefetch_run *run, uint64_t step, uint32_t vn, uint64_t row, const void *x)
{
	const struct hd_sample *name = hd_prefetch_names(run->prefetch, step, vn);

	return name && !memcmp(&name[row].index, (const uint8_t *)x + 16 * row, 8) &&
		name[row].epoch == hd_sampler_epoch_at(run->sampler, step,
		row + vn * run->per_vn);
}

/* A consumer owns some virtual nodes and walks all steps with them, as a device does. */
static void consume(void *user)
{
	struct prefetch_run *run = user;
	uint32_t vn = atomic_fetch_add(&run->next_vn, 1);

	for (uint64_t step = run->first; step < run->end; step++) {
		const void *input[HD_MAX_FIELDS];
		uint64_t nrows = 99, first, end;
		struct hd_diag diag = { "" };
		if (hd_prefetch_take(run->prefetch, step, vn, input, &nrows, &diag) != HD_OK) {
			atomic_fetch_add(&run->wrong, 1);
			return;
		}
		hd_vn_rows(run->per_vn, hd_sampler_rows(run->sampler, step), vn, &first, &end);
		uint64_t wrong = nrows != end - first;
		for (uint64_t row = 0; row < end - first && !wrong; row++) {
			uint64_t want = hd_sampler_at(run->sampler, step, first + row);
			wrong += memcmp((const uint8_t *)input[0] + 16 * row, &want, 8) != 0 ||
				((const uint8_t *)input[1])[row] != (uint8_t)(want * 3)
				|| (vn == 0 && ((uintptr_t)input[0] % 64 || (uintptr_t)input[1] % 64))
				|| !is_named(run, step, vn, row, input[0]);
		}
		hd_prefetch_done(run->prefetch, step, vn);
		atomic_fetch_add(&run->wrong, wrong);
		atomic_fetch_add(&run->nrows, nrows);
	}
}

static void check_run(uint32_t nvns, uint32_t depth, uint32_t nthreads, uint64_t first, enum hd_last last)
{
	enum { D = 53, B = 14, STEPS = 9 };
	struct made made;
	struct hd_sampler sampler;
	struct hd_thread thread[16] = { 0 };
	struct hd_diag diag = { "" };
	uint64_t want = 0;

	make(&made, D);
	assert_int_equal(hd_sampler_init(&sampler, 3, D, B, HD_ORDER_SHUFFLE, last, &diag), HD_OK);
	struct prefetch_run run = { .sampler = &sampler, .first = first, .end = first + STEPS,
		.per_vn = (B + nvns - 1) / nvns, .nvns = nvns };
	struct hd_prefetch_spec spec = {
		.set = &made.set, .sampler = &sampler, .nvns = nvns, .per_vn = run.per_vn,
			.first_step = first, .end_step = run.end,
		.depth = depth, .nthreads = nthreads, .named = true,
	};
	CHECK(hd_prefetch_create(&run.prefetch, &spec, &diag) == HD_OK, "%s", diag.text);
	for (uint32_t i = 0; i < nvns; i++)
		assert_int_equal(hd_thread_start(&thread[i], "consumer", -1, consume, &run, &diag), HD_OK);
	for (uint32_t i = 0; i < nvns; i++)
		hd_thread_join(&thread[i]);
	hd_prefetch_destroy(run.prefetch);
	for (uint64_t step = first; step < run.end; step++)
		want += hd_sampler_rows(&sampler, step);
	CHECK(run.wrong == 0 && run.nrows == want && made.nreads == want,
		"V=%u depth %u threads %u first %llu last %d: %llu wrong, %llu rows", nvns, depth,
		nthreads, (unsigned long long)first, (int)last, (unsigned long long)run.wrong,
		(unsigned long long)run.nrows);
}

static void every_virtual_node_gets_its_rows_whatever_depth_and_threads(void **state)
{
	static const uint32_t nvns[] = { 1, 2, 3, 7, 16 };
	(void)state;

	for (size_t v = 0; v < sizeof nvns / sizeof nvns[0]; v++)
		for (uint32_t depth = 0; depth <= 3; depth++)
			for (uint32_t nthreads = 0; nthreads <= 3; nthreads++)
				for (int last = HD_LAST_RAGGED; last <= HD_LAST_WRAP; last++)
					check_run(nvns[v], depth, nthreads, nthreads * 5, (enum hd_last)last);
}

static void set_up_run(struct made *made, struct hd_sampler *sampler, struct hd_prefetch_spec *spec)
{
	make(made, 100);
	assert_int_equal(hd_sampler_init(sampler, 3, 100, 10, HD_ORDER_SEQUENTIAL, HD_LAST_RAGGED, NULL),
		HD_OK);
	*spec = (struct hd_prefetch_spec){ .set = &made->set, .sampler = sampler, .nvns = 2, .per_vn = 5,
		.depth = 3, .nthreads = 1 };
}

static void reading_never_runs_further_ahead_than_the_depth(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	spec.look_ms = UINT32_MAX;                /* a reader that sleeps looks when it is woken, or never */
	spec.first_threads = 8;                   /* more than there are: a probe has fewer (engine/pass.c) */
	spec.first_depth = 9;
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	assert_int_equal(hd_prefetch_depth(p), 3);
	hd_alloc_arm(0);
	/* all places are full then, so the count stands still */
	for (uint64_t step = 0; step < 3; step++)
		for (uint32_t vn = 0; vn < 2; vn++)
			assert_int_equal(hd_prefetch_take(p, step, vn, input, &nrows, NULL), HD_OK);
	assert_int_equal(made.nreads, 30);
	hd_prefetch_done(p, 0, 0);
	assert_int_equal(hd_prefetch_take(p, 3, 0, input, &nrows, NULL), HD_OK);
	assert_int_equal(made.nreads, 35);
	assert_int_equal(hd_alloc_count(), 0);
	hd_prefetch_destroy(p);
}

static void without_threads_rows_are_read_when_they_are_taken(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	spec.nthreads = 0;
	spec.depth = 1;
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	hd_alloc_arm(0);
	for (uint64_t step = 0; step < 3; step++)
		for (uint32_t vn = 0; vn < 2; vn++) {
			assert_int_equal(made.nreads, step * 10 + vn * 5);
			assert_int_equal(hd_prefetch_take(p, step, vn, input, &nrows, NULL), HD_OK);
			assert_int_equal(made.nreads, step * 10 + (vn + 1) * 5);
			assert_memory_equal(input[0], &(uint64_t){ step * 10 + vn * 5 }, 8);
			hd_prefetch_done(p, step, vn);
		}
	assert_int_equal(hd_alloc_count(), 0);
	hd_prefetch_close(p);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_prefetch_take(p, 3, 0, input, &nrows, &diag), HD_E_INTERRUPT);
	assert_int_equal(made.nreads, 30);
	hd_prefetch_destroy(p);
}

struct taker { struct hd_prefetch *prefetch; _Atomic int began, taken; };

static void take_step_1(void *user)
{
	struct taker *taker = user;
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;

	atomic_store(&taker->began, 1);
	enum hd_err err = hd_prefetch_take(taker->prefetch, 1, 0, input, &nrows, NULL);
	atomic_store(&taker->taken, err == HD_OK && memcmp(input[0], &(uint64_t){ 10 }, 8) == 0 ? 1 : 2);
}

/* The reader was woken once as the taker began to wait, and found nothing free: the place that is given back
 * then is read, though most places are held. */
static void what_is_given_back_while_a_taker_waits_is_read(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_thread thread = { 0 };
	struct taker taker = { 0 };
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	spec.nvns = 5;
	spec.per_vn = 2;
	spec.depth = 1;
	spec.look_ms = UINT32_MAX;                /* it looks when it is woken, or never */
	spec.limit_ms = 20000;
	assert_int_equal(hd_prefetch_create(&taker.prefetch, &spec, NULL), HD_OK);
	for (uint32_t vn = 0; vn < spec.nvns; vn++)
		assert_int_equal(hd_prefetch_take(taker.prefetch, 0, vn, input, &nrows, NULL), HD_OK);
	assert_int_equal(hd_thread_start(&thread, "takes", -1, take_step_1, &taker, NULL), HD_OK);
	while (!atomic_load(&taker.began))
		;
	/* long enough for it to come to its wait, and the reader back to its own */
	for (int i = 0; i < 100000; i++)
		assert_false(hd_prefetch_ready(taker.prefetch, 1, 0));
	hd_prefetch_done(taker.prefetch, 0, 0);
	hd_thread_join(&thread);
	assert_int_equal(taker.taken, 1);
	hd_prefetch_destroy(taker.prefetch);
}

/* No thread writes into rows that another one has not given back. */
static void without_threads_a_taker_waits_for_the_place(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_thread thread = { 0 };
	struct taker taker = { 0 };
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	spec.nthreads = 0;
	spec.nvns = 5;
	spec.per_vn = 2;
	spec.depth = 1;
	spec.limit_ms = UINT32_MAX;               /* a wake that is missing is a test that does not end */
	assert_int_equal(hd_prefetch_create(&taker.prefetch, &spec, NULL), HD_OK);
	for (uint32_t vn = spec.nvns; vn-- > 0;)
		assert_int_equal(hd_prefetch_take(taker.prefetch, 0, vn, input, &nrows, NULL), HD_OK);
	assert_int_equal(hd_thread_start(&thread, "takes", -1, take_step_1, &taker, NULL), HD_OK);
	while (!atomic_load(&taker.began))
		;
	/* long enough for it to come to its wait, or to write where it must not */
	for (int i = 0; i < 100000; i++)
		assert_memory_equal(input[0], &(uint64_t){ 0 }, 8);
	assert_int_equal(taker.taken, 0);
	hd_prefetch_done(taker.prefetch, 0, 0);
	hd_thread_join(&thread);
	assert_int_equal(taker.taken, 1);
	hd_prefetch_destroy(taker.prefetch);
}

static void a_failed_read_reaches_every_taker_with_its_message(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	for (uint32_t nthreads = 0; nthreads <= 3; nthreads++) {
		set_up_run(&made, &sampler, &spec);
		spec.nthreads = nthreads;
		made.fail_at = 17;                     /* step 1, virtual node 1 */
		assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
		for (int again = 0; again < 2; again++) {
			struct hd_diag diag = { "" };
			assert_int_equal(hd_prefetch_take(p, 1, 1, input, &nrows, &diag), HD_E_IO);
			assert_string_equal(diag.text, "cannot read sample 17");
		}
		struct hd_diag diag = { "" };
		assert_int_equal(hd_prefetch_take(p, 7, 0, input, &nrows, &diag), HD_E_IO);
		hd_prefetch_destroy(p);
	}
}

/* The samples of virtual node 0 cannot be read, and are not asked for. */
static void what_nobody_wants_is_not_read(void **state)
{
	static const uint8_t second[] = { 0, 1 }, none[] = { 0, 0 };
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	const void *input[HD_MAX_FIELDS];
	struct hd_diag diag = { "" };
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	spec.wanted = second;
	made.fail_at = 10;                        /* step 1, virtual node 0 */
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	for (uint64_t step = 0; step < 8; step++) {
		CHECK(hd_prefetch_take(p, step, 1, input, &nrows, &diag) == HD_OK, "%s", diag.text);
		assert_int_equal(*(const uint64_t *)input[0], step * 10 + 5);
		hd_prefetch_done(p, step, 1);
	}
	hd_prefetch_want(p, 8, none);
	hd_prefetch_want(p, 0, NULL);
	assert_int_equal(hd_prefetch_take(p, 0, 1, input, &nrows, &diag), HD_OK);
	assert_int_equal(hd_prefetch_take(p, 1, 0, input, &nrows, &diag), HD_E_IO);
	assert_int_equal(hd_prefetch_take(p, 0, 0, input, &nrows, &diag), HD_OK);
	hd_prefetch_destroy(p);
}

/* Between two steps any others may be wanted, while readers are at work on what was wanted before. */
static void wants_may_change_between_any_two_steps(void **state)
{
	enum { NVNS = 5, STEPS = 400 };
	(void)state;

	for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
		struct made made;
		struct hd_sampler sampler;
		struct hd_prefetch *p;
		uint8_t wanted[NVNS] = { 1, 1, 0, 0, 1 };
		make(&made, 53);
		assert_int_equal(hd_sampler_init(&sampler, 3, 53, 14, HD_ORDER_SHUFFLE, HD_LAST_RAGGED, NULL),
			HD_OK);
		struct hd_prefetch_spec spec = { .set = &made.set, .sampler = &sampler, .nvns = NVNS,
			.wanted = wanted, .per_vn = 3,
			.depth = 1 + nthreads, .nthreads = nthreads, .named = true };
		assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
		for (uint64_t step = 0; step < STEPS; step++) {
			struct prefetch_run run = { .prefetch = p, .sampler = &sampler, .first = step,
				.end = step + 1,
				.per_vn = 3 };
			for (uint32_t v = 0; v < NVNS; v++) {
				run.next_vn = v;
				/* now and then a step goes by untaken */
				if (wanted[v] && step % 7 != 6)
					consume(&run);
			}
			CHECK(run.wrong == 0, "step %llu, %u threads", (unsigned long long)step, nthreads);
			for (uint32_t v = 0; v < NVNS && step % 3 == 0; v++)
				wanted[v] = (step * 7 + v * v + nthreads) % (2 + step % 5) != 0;
			if (step % 3 == 0 || step % 7 == 6)
				hd_prefetch_want(p, step + 1, wanted);
		}
		hd_prefetch_destroy(p);
	}
}

static void take_of_a_step_beyond_the_ring(void *user)
{
	struct prefetch_run *run = user;
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;

	atomic_store(&run->next_vn, 1);
	run->wrong = hd_prefetch_take(run->prefetch, 5, 0, input, &nrows, NULL) != HD_E_INTERRUPT;
}

static void close_wakes_who_waits(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct prefetch_run run = { 0 };
	struct hd_thread thread = { 0 };
	(void)state;

	set_up_run(&made, &sampler, &spec);
	assert_int_equal(hd_prefetch_create(&run.prefetch, &spec, NULL), HD_OK);
	assert_int_equal(hd_thread_start(&thread, "waits", -1, take_of_a_step_beyond_the_ring, &run, NULL),
		HD_OK);
	while (!atomic_load(&run.next_vn))
		;
	hd_prefetch_close(run.prefetch);
	hd_prefetch_close(run.prefetch);
	hd_thread_join(&thread);
	assert_int_equal(run.wrong, 0);
	hd_prefetch_destroy(run.prefetch);
}

static void a_stuck_reader_is_an_error_after_the_limit(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	struct hd_lock gate;
	struct hd_diag diag = { "" };
	const void *input[HD_MAX_FIELDS];
	uint64_t nrows;
	(void)state;

	hd_lock_init(&gate);
	set_up_run(&made, &sampler, &spec);
	made.gate = &gate;
	spec.limit_ms = 1;
	hd_lock_take(&gate);
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	assert_int_equal(hd_prefetch_take(p, 0, 1, input, &nrows, &diag), HD_E_IO);
	assert_non_null(strstr(diag.text, "step 0, virtual node 1"));
	hd_lock_give(&gate);
	hd_prefetch_destroy(p);
	hd_lock_finish(&gate);
}

static void memory_bounds_the_depth_but_one_step_is_held(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p = NULL;
	struct hd_diag diag = { "" };
	(void)state;

	set_up_run(&made, &sampler, &spec);
	/* two virtual nodes of 5 rows: of 16 bytes 160, rounded 192; of 1 byte 10, rounded 64 */
	assert_int_equal(hd_prefetch_bytes(&spec), 192 + 64);
	spec.memory_bytes = 2 * 256 + 255;
	assert_int_equal(hd_prefetch_create(&p, &spec, &diag), HD_OK);
	assert_int_equal(hd_prefetch_depth(p), 2);
	hd_prefetch_destroy(p);
	spec.memory_bytes = 255;
	/* one step is held though it is larger: that of a whole graph is */
	assert_int_equal(hd_prefetch_create(&p, &spec, &diag), HD_OK);
	assert_int_equal(hd_prefetch_depth(p), 1);
	hd_prefetch_destroy(p);
	made.set.field[0].sample_bytes = UINT64_MAX / 3;
	assert_true(hd_prefetch_bytes(&spec) == UINT64_MAX);
	assert_int_equal(hd_prefetch_create(&p, &spec, &diag), HD_E_INVAL);
}

static void memory_that_cannot_be_had_is_reported(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p = NULL;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	for (uint64_t n = 1; n <= 2; n++) {
		hd_alloc_arm(n);
		assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_E_NOMEM);
		hd_alloc_arm(0);
	}
}

/* A worker reads the rows of its own virtual nodes: those of others, between them, take no memory. */
static void rows_of_others_take_no_memory(void **state)
{
	enum { VNS = 256, ROWS = 64, BYTES = 4096, EVERY = 8 };
	struct hd_memory_info before, after;
	struct hd_sampler sampler;
	struct hd_diag diag = { "" };
	struct made made;
	uint8_t wanted[VNS];

	(void)state;
	make(&made, VNS * ROWS);
	made.set.field[0].sample_bytes = BYTES;   /* 64 MiB a step, of which an eighth is wanted */
	for (uint32_t v = 0; v < VNS; v++)
		wanted[v] = v % EVERY == 3;
	assert_int_equal(hd_sampler_init(&sampler, 3, VNS * ROWS, VNS * ROWS, HD_ORDER_SEQUENTIAL,
		HD_LAST_RAGGED, &diag), HD_OK);
	const struct hd_prefetch_spec spec = { .set = &made.set, .sampler = &sampler, .nvns = VNS,
		.per_vn = ROWS, .depth = 1, .wanted = wanted };
	struct hd_prefetch *prefetch;
	hd_memory_look(&before);
	assert_int_equal(hd_prefetch_create(&prefetch, &spec, &diag), HD_OK);
	for (uint32_t v = 3; v < VNS; v += EVERY) {
		const void *input[HD_MAX_FIELDS];
		uint64_t nrows;
		assert_int_equal(hd_prefetch_take(prefetch, 0, v, input, &nrows, &diag), HD_OK);
		assert_int_equal(nrows, ROWS);
		hd_prefetch_done(prefetch, 0, v);
	}
	hd_memory_look(&after);
	const uint64_t took = (after.rss_bytes - before.rss_bytes) >> 20;
	/* ThreadSanitizer has words of its own for each that is touched */
	CHECK(RACES || took < 16, "%llu MiB for 8", (unsigned long long)took);
	hd_prefetch_destroy(prefetch);
}

/* A far store: each read takes 2 ms, and from step 1 on none ends before `need` are under way at once. */
struct far { struct hd_dataset set; struct hd_lock lock; struct hd_cond change; uint32_t inside, most, need;
	bool until_waited; };             /* the first sample is not there before a wait is counted */

static enum hd_err far_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	struct far *far = (struct far *)(uintptr_t)set;
	struct hd_clock clock;

	(void)split, (void)diag;
	hd_clock_real(&clock);
	hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 2 * HD_PREFETCH_FAR_NS);
	hd_lock_take(&far->lock);
	far->inside++;
	far->most = far->inside > far->most ? far->inside : far->most;
	hd_cond_wake(&far->change);
	while ((index >= 10 && far->most < far->need) || (!index && far->until_waited && !*set->waited_ns))
		(void)hd_cond_wait(&far->change, &far->lock, hd_clock_now_ns(&clock) + 10 * HD_NS_PER_MS);
	far->inside--;
	hd_lock_give(&far->lock);
	memset(out[0], 0, 16);
	memset(out[1], 0, 1);
	return HD_OK;
}

static const struct hd_reader_ops far_ops = { .name = "far", .about = "for tests", .read = far_read };

/* One reader where nothing waits; each wait doubles them and how far they go, up to what there may be. */
static void readers_and_steps_ahead_grow_where_takers_wait(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	struct far far = { .need = 4 };
	const void *input[HD_MAX_FIELDS];
	_Atomic int64_t waited_ns = 0;
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	far.set = made.set;
	far.set.ops = &far_ops;
	far.set.waited_ns = &waited_ns;
	hd_lock_init(&far.lock);
	hd_cond_init(&far.change);
	spec.set = &far.set;
	spec.nthreads = 4;
	spec.limit_ms = 20000;
	spec.first_threads = 1;
	spec.depth = 8;
	spec.first_depth = 1;
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	hd_alloc_arm(0);
	for (uint64_t step = 0; step < 9; step++)
		for (uint32_t vn = 0; vn < 2; vn++) {
			struct hd_diag diag = { "" };
			const enum hd_err err = hd_prefetch_take(p, step, vn, input, &nrows, &diag);
			CHECK(!err, "step %d: %s", (int)step, diag.text);
			hd_prefetch_done(p, step, vn);
		}
	assert_int_equal(hd_alloc_count(), 0);
	hd_prefetch_destroy(p);
	assert_true(far.most >= 4 && waited_ns > 0);
	assert_int_equal(far.inside, 0);
	hd_cond_finish(&far.change);
	hd_lock_finish(&far.lock);
}

/* What reads sees that it is waited for before the wait is over: rows that come meanwhile count it. */
static void a_wait_is_counted_while_it_lasts(void **state)
{
	struct made made;
	struct hd_sampler sampler;
	struct hd_prefetch_spec spec;
	struct hd_prefetch *p;
	struct far far = { .until_waited = true };
	const void *input[HD_MAX_FIELDS];
	_Atomic int64_t waited_ns = 0;
	uint64_t nrows;
	(void)state;

	set_up_run(&made, &sampler, &spec);
	far.set = made.set;
	far.set.ops = &far_ops;
	far.set.waited_ns = &waited_ns;
	hd_lock_init(&far.lock);
	hd_cond_init(&far.change);
	spec.set = &far.set;
	spec.nthreads = 2;
	spec.limit_ms = 20000;
	assert_int_equal(hd_prefetch_create(&p, &spec, NULL), HD_OK);
	assert_int_equal(hd_prefetch_take(p, 0, 0, input, &nrows, NULL), HD_OK);
	hd_prefetch_destroy(p);
	hd_cond_finish(&far.change);
	hd_lock_finish(&far.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_virtual_node_gets_its_rows_whatever_depth_and_threads),
		cmocka_unit_test(reading_never_runs_further_ahead_than_the_depth),
		cmocka_unit_test(without_threads_rows_are_read_when_they_are_taken),
		cmocka_unit_test(without_threads_a_taker_waits_for_the_place),
		cmocka_unit_test(what_is_given_back_while_a_taker_waits_is_read),
		cmocka_unit_test(a_failed_read_reaches_every_taker_with_its_message),
		cmocka_unit_test(what_nobody_wants_is_not_read),
		cmocka_unit_test(wants_may_change_between_any_two_steps),
		cmocka_unit_test(close_wakes_who_waits),
		cmocka_unit_test(a_stuck_reader_is_an_error_after_the_limit),
		cmocka_unit_test(memory_bounds_the_depth_but_one_step_is_held),
		cmocka_unit_test(rows_of_others_take_no_memory),
		cmocka_unit_test(readers_and_steps_ahead_grow_where_takers_wait),
		cmocka_unit_test(a_wait_is_counted_while_it_lasts),
		cmocka_unit_test(memory_that_cannot_be_had_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
