#include <stdatomic.h>

#include "base/alloc.h"
#include "engine/overlap.h"
#include "engine/testing_stages.h"

/* What an instruction of a pipeline must not leave out, on a net so small that each case takes milliseconds:
 * bits of all kinds of plans, and every call to a device refused once. */

static const char net[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 30}\n";

/* two shards, for ranks of two devices */
static const char wide[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 4], classes: 3}, shards: 2}\n"
	"data: {kind: synthetic, count: 30}\n";
/* what the last stage learns is no one run of the flat vector: its table is the first one's too */
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 1, width: 4, heads: 1, context: 2, vocab: 8}}\n"
	"data: {kind: synthetic, count: 30}\n";

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 2, 1, 1, false, 1 }, { "1f1b", 3, 1, 1, false, 1 }, { "1f1b", 2, 1, 2, true, 1 },
	{ "interleaved", 2, 2, 1, true, 1 }, { "zb-h1", 2, 1, 1, false, 1 }, { "zb-v", 2, 2, 1, true, 1 },
	{ "zb-v", 1, 2, 1, true, 1 }, { "dualpipev", 2, 2, 1, false, 1 },
	{ "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 }, { "zb-v", 1, 2, 1, HD_KEEPS_AWAY, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* 14 rows of 30 on 4 virtual nodes: in the third step two have none. */
static void all_kinds_give_the_bits_of_one_device(void **state)
{
	(void)state;
	hd_rig_compare(net, 14, 4, "optim: {kind: adamw, clip: 0.5}\n", kinds, NKINDS);
	hd_rig_compare(net, 14, 4, "optim: {kind: lamb}\n", kinds, NKINDS);
	hd_rig_compare(hd_rig_bn(), 10, 4, NULL, kinds, 3);
	/* five that have rows before five without */
	hd_rig_compare(net, 20, 10, NULL, kinds, NKINDS);
}

static void ranks_of_two_devices_give_them_too(void **state)
{
	static const struct hd_rig_kind of_two[] = { { "gpipe", 1, 1, 1, false, 2 }, { "1f1b", 2, 1, 1,
		false, 2 } };

	(void)state;
	hd_rig_compare(wide, 14, 4, NULL, of_two, 2);
}

static void steps_that_overlap_give_them_too(void **state)
{
	static const char more[] = "optim: {kind: momentum, lr: 0.05, update: 2bw}\n";
	const struct hd_rig_kind k = { "1f1b", 3, 1, 1, false, 1 };
	struct hd_diag diag = { "" };
	struct hd_rig one, many;

	(void)state;
	for (uint32_t batch = 10; batch <= 14; batch += 4) {
		hd_rig_open(&one, net, batch, 4, more, 1);
		hd_rig_open(&many, net, batch, 4, more, 3);
		CHECK(hd_rig_staged(many.worker, many.task, &k, &many.arena, &many.plan, &diag) == HD_OK,
			"%s", diag.text);
		many.plan.overlap = true;
		CHECK(hd_worker_adopt(many.worker, &many.plan, &diag) == HD_OK, "%s", diag.text);
		for (int s = 0; s < 6; s++) {
			struct hd_step_record a = hd_rig_step(&one), b = hd_rig_step(&many);
			CHECK(hd_hash_same(a.digest, b.digest) && a.loss_sum == b.loss_sum,
				"batch %u, step %d", batch, s);
		}
		hd_rig_close(&one);
		hd_rig_close(&many);
	}
}

/* ---- faults ---- */

enum call { RUN, ADD, REDUCE, TAKE, LOAD };

/* Devices that refuse one call of a sort. */
static struct {
	const struct hd_device_ops *under;
	struct hd_device_ops ops;
	enum call which;
	atomic_int left;                  /* before it */
} refusing;

static bool refuses(enum call which)
{
	return which == refusing.which && atomic_fetch_sub(&refusing.left, 1) == 0;
}

static enum hd_err refused(struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_IO, "the device refuses");
}

static enum hd_err refuse_run(struct hd_device *device, const struct hd_program *program,
	enum hd_run_phase phase, const struct hd_bind *bind, uint64_t *token, struct hd_diag *diag)
{
	return refuses(RUN) ? refused(diag) : refusing.under->run(device, program, phase, bind, token, diag);
}

static enum hd_err refuse_add(struct hd_device *device, float *dst, const float *a, const float *b,
	uint64_t len, uint64_t *token, struct hd_diag *diag)
{
	return refuses(ADD) ? refused(diag) : refusing.under->add(device, dst, a, b, len, token, diag);
}

static enum hd_err refuse_reduce(struct hd_device *device, const struct hd_reduction *reduction,
	uint64_t *token, struct hd_diag *diag)
{
	return refuses(REDUCE) ? refused(diag) : refusing.under->reduce(device, reduction, token, diag);
}

static enum hd_err refuse_take(struct hd_device *device, uint64_t len_bytes, void **at, struct hd_diag *diag)
{
	return refuses(TAKE) ? refused(diag) : refusing.under->take(device, len_bytes, at, diag);
}

static enum hd_err refuse_load(struct hd_device *device, const struct hd_program *program,
	struct hd_diag *diag)
{
	return refuses(LOAD) ? refused(diag) : refusing.under->load(device, program, diag);
}

static void set_ops(struct hd_rig *rig, const struct hd_device_ops *ops)
{
	for (uint32_t d = 0; d < rig->worker->spec.ndevices; d++)
		rig->worker->rank[d].device->ops = ops;
}

static void refuse(struct hd_rig *rig, enum call which, int n)
{
	refusing.under = rig->worker->rank[0].device->ops;
	refusing.ops = *refusing.under;
	refusing.ops.run = refuse_run;
	refusing.ops.add = refuse_add;
	refusing.ops.reduce = refuse_reduce;
	refusing.ops.take = refuse_take;
	refusing.ops.load = refuse_load;
	refusing.which = which;
	atomic_store(&refusing.left, n);
	set_ops(rig, &refusing.ops);
}

/* Was it refused? */
static bool refuse_no_more(struct hd_rig *rig)
{
	set_ops(rig, refusing.under);
	return atomic_load(&refusing.left) < 0;
}

/* A step whose n-th call of a sort is refused says so, changes no state, and is right when it is tried again.
 * Returns whether there was such a call. */
static bool refused_once(struct hd_rig *rig, struct hd_rig *still, enum call which, int n)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_hash before = hd_worker_digest(rig->worker);

	refuse(rig, which, n);
	enum hd_err err = hd_worker_step(rig->worker, true, &record, &diag);
	bool was = refuse_no_more(rig);
	CHECK(was == (err != HD_OK) && (!err || (err == HD_E_IO && strstr(diag.text, "the device refuses"))),
		"call %d of sort %d: %d %s", n, which, (int)err, diag.text);
	if (err) {
		assert_true(hd_hash_same(before, hd_worker_digest(rig->worker)));
		record = hd_rig_step(rig);
	}
	CHECK(hd_hash_same(record.digest, hd_rig_step(still).digest), "call %d of sort %d: other bits", n,
		which);
	return was;
}

/* Of a step that ends with rows that cannot be read nothing remains. */
static void rows_that_cannot_be_read_end_the_step(void **state)
{
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig, still;

	(void)state;
	for (size_t k = 0; k < NKINDS; k++) {
		hd_rig_open(&still, net, 14, 4, NULL, 1);
		hd_rig_open_staged(&rig, net, 14, 4, NULL, &kinds[k]);
		hd_rig_hush(&rig);
		hd_rig_break(&rig, 1, false);
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		assert_int_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_E_IO);
		hd_rig_hush(&rig);
		hd_rig_mend(&rig);
		assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
		assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&still).digest));
		hd_rig_close(&rig);
		hd_rig_close(&still);
	}
}

static void every_call_that_is_refused_ends_the_step(void **state)
{
	(void)state;
	for (size_t k = 1; k < NKINDS; k += 2)
		for (int which = RUN; which <= REDUCE; which++) {
			struct hd_rig rig, still;
			int n = 0;
			hd_rig_open(&still, net, 14, 4, NULL, 1);
			hd_rig_open_staged(&rig, net, 14, 4, NULL, &kinds[k]);
			while (refused_once(&rig, &still, (enum call)which, n))
				n += 1 + n / 3;
			CHECK(which == ADD || n > 1, "%s: only %d calls of sort %d", kinds[k].name, n, which);
			hd_rig_close(&rig);
			hd_rig_close(&still);
		}
}

/* Zeros are added to what a stage learns, run by run: one rank, so the n-th call is always the same. */
static void zeros_that_are_refused_end_the_step(void **state)
{
	static const struct hd_rig_kind k = { "interleaved", 1, 2, 1, false, 1 };
	struct hd_rig rig, still;
	int n = 0;

	(void)state;
	hd_rig_open(&still, tied, 20, 10, NULL, 1);
	hd_rig_open_staged(&rig, tied, 20, 10, NULL, &k);
	hd_rig_step(&still);
	hd_rig_step(&rig);
	/* at the odd steps, which have 10 rows */
	while (refused_once(&rig, &still, ADD, n++)) {
		hd_rig_step(&still);
		hd_rig_step(&rig);
	}
	CHECK(n > 8, "only %d additions", n);
	hd_rig_close(&rig);
	hd_rig_close(&still);
}

/* ---- one instruction alone, as no list that is checked has it ---- */

static enum hd_err alone(struct hd_rig *rig, uint8_t op, uint32_t vn, struct hd_diag *diag)
{
	struct hd_rank *rank = &rig->worker->rank[0];
	const struct hd_ins ins = { .op = op, .vn = vn }, turn = hd_pipe_turn(rank, &ins);

	return hd_pipe_runners[op].run(rank, &turn, diag);
}

static void begin_alone(struct hd_rig *rig)
{
	struct hd_diag diag = { "" };

	CHECK(hd_dist_begin(rig->worker, false, &diag) == HD_OK, "%s", diag.text);
}

/* F reads what no LD has read, and takes no memory for rows that it cannot have. What no stage of the worker
 * needs is not read. */
static void forward_of_rows_that_cannot_be_read_takes_nothing(void **state)
{
	static const struct hd_rig_kind k = { "gpipe", 2, 1, 1, false, 1 };
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;
	struct hd_rig rig;

	(void)state;
	hd_rig_open_staged(&rig, net, 14, 4, NULL, &k);
	hd_rig_hush(&rig);
	hd_rig_break(&rig, 1, false);
	assert_int_equal(hd_worker_rewind(rig.worker, &diag), HD_OK);
	begin_alone(&rig);
	struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
	for (uint32_t vn = 0; vn < 4; vn++) {
		/* as where the stages that read are other workers' */
		const uint32_t nreaders = pipe->readers[vn];
		pipe->readers[vn] = 0;
		assert_int_equal(alone(&rig, HD_INS_LD, vn, &diag), HD_OK);
		pipe->readers[vn] = nreaders;
		pipe->loaded[vn] = HD_ROWS_NONE;
	}
	for (uint32_t vn = 0; vn < 4 && !err; vn++) {
		err = alone(&rig, HD_INS_F, vn, &diag);
		assert_true(!err == !!hd_cell_of(pipe, 0, vn)->arena);
	}
	assert_int_equal(err, HD_E_IO);
	hd_dist_abandon(rig.worker);
	hd_rig_hush(&rig);
	hd_rig_mend(&rig);
	hd_rig_close(&rig);
}

/* How many sums that a leaf goes to have a +0.0 first; all have a -0.0 before zeros are put. */
static uint32_t count_zeros(const struct hd_pipe *pipe, uint32_t vn, bool clear)
{
	const struct hd_cell *cell = hd_cell_of(pipe, 0, vn);
	const struct hd_fold_script *s = &cell->seat->script;
	uint32_t n = 0;

	for (uint32_t i = s->first_move[cell->leaf]; i < s->first_move[cell->leaf + 1]; i++) {
		float *first = cell->seat->vector[s->move[i].dst] + pipe->stage[0].run[0].at;
		*first = clear ? -0.0f : *first;
		n += !signbit(*first);
	}
	return n;
}

/* The third step has two rows: its third virtual node has none. */
static void zeros_are_put_by_w_alone(void **state)
{
	static const struct hd_rig_kind k = { "zb-h1", 2, 1, 1, false, 1 };
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open_staged(&rig, net, 14, 4, NULL, &k);
	hd_rig_step(&rig);
	hd_rig_step(&rig);
	begin_alone(&rig);
	const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
	assert_int_equal(alone(&rig, HD_INS_F, 2, &diag), HD_OK);
	assert_int_equal(pipe->rows[2].rows, 0);
	assert_int_equal(count_zeros(pipe, 2, true), 0);
	assert_int_equal(alone(&rig, HD_INS_I, 2, &diag), HD_OK);
	assert_int_equal(count_zeros(pipe, 2, false), 0);
	assert_int_equal(alone(&rig, HD_INS_W, 2, &diag), HD_OK);
	assert_true(count_zeros(pipe, 2, false) > 0);
	hd_dist_abandon(rig.worker);
	hd_rig_close(&rig);
}

/* What a cell holds stays until its last reader is done: one that failed is not. */
static void backward_that_fails_gives_nothing_back(void **state)
{
	static const struct { struct hd_rig_kind k; uint8_t op; } rows[] = {
		{ { "gpipe", 2, 1, 1, false, 1 }, HD_INS_B }, { { "zb-h1", 2, 1, 1, false, 1 }, HD_INS_W },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_diag diag = { "" };
		struct hd_rig rig;
		hd_rig_open_staged(&rig, net, 14, 4, NULL, &rows[i].k);
		begin_alone(&rig);
		const struct hd_cell *cell = hd_cell_of(hd_worker_work(rig.worker)->pipe, 0, 0);
		const uint32_t left = cell->left;
		assert_int_equal(alone(&rig, HD_INS_F, 0, &diag), HD_OK);
		refuse(&rig, RUN, 0);
		assert_int_equal(alone(&rig, rows[i].op, 0, &diag), HD_E_IO);
		assert_true(refuse_no_more(&rig));
		assert_true(cell->left == left && cell->arena);
		hd_dist_abandon(rig.worker);
		hd_rig_close(&rig);
	}
}

/* As many arenas as virtual nodes are here at once, as many places as are away. */
static void activations_in_the_file_take_no_arena(void **state)
{
	static const struct { struct hd_rig_kind k; uint32_t arenas, away; } rows[] = {
		{ { "gpipe", 2, 1, 1, HD_KEEPS_ALL, 1 }, 4, 0 },
		{ { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 }, 1, 4 },
		{ { "1f1b", 2, 1, 1, HD_KEEPS_ALL, 1 }, 2, 0 },
		{ { "1f1b", 2, 1, 1, HD_KEEPS_AWAY, 1 }, 1, 2 },
	};
	uint64_t predicted[4];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig rig;
		hd_rig_open_staged(&rig, net, 14, 4, NULL, &rows[i].k);
		const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
		for (uint32_t s = 0; s < pipe->nseats; s++)
			if (pipe->seat[s].stage == 0) {
				assert_int_equal(pipe->seat[s].arena.cap, rows[i].arenas);
				assert_int_equal(pipe->seat[s].away.cap, rows[i].away);
			}
		assert_int_equal(pipe->away >= 0, rows[i].away > 0);
		predicted[i] = hd_pipe_bytes(pipe, 0);
		const uint64_t arena = hd_cell_of(pipe, 0, 0)->seat->arena.bytes;
		if (i % 2)
			assert_int_equal(predicted[i - 1] - predicted[i],
				(rows[i - 1].arenas - rows[i].arenas) * arena);
		hd_rig_close(&rig);
	}
}

/* A file that fails ends the step, and nothing has changed; a step after it gives the bits of one device. */
static void a_file_that_fails_ends_the_step(void **state)
{
	static const struct hd_rig_kind k = { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 };
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig, one;

	(void)state;
	hd_rig_open(&one, net, 14, 4, NULL, 1);
	hd_rig_open_staged(&rig, net, 14, 4, NULL, &k);
	struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
	const struct hd_hash before = hd_worker_digest(rig.worker);
	const int away = pipe->away;
	pipe->away = -1;
	assert_int_not_equal(hd_worker_step(rig.worker, true, &record, &diag), HD_OK);
	pipe->away = away;
	CHECK(strstr(diag.text, "a file without a name"), "%s", diag.text);
	assert_true(hd_hash_same(before, hd_worker_digest(rig.worker)));
	assert_true(hd_hash_same(hd_rig_step(&rig).digest, hd_rig_step(&one).digest));
	hd_rig_close(&rig);
	hd_rig_close(&one);
}

/* What is moved: bytes that a forward pass made and a backward pass reads. */
static void all_that_a_backward_pass_reads_is_moved_and_no_more(void **state)
{
	static const struct hd_rig_kind k = { "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 1 };
	struct hd_rig rig;

	(void)state;
	hd_rig_open_staged(&rig, tied, 14, 4, NULL, &k);
	const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
	for (uint32_t s = 0; s < pipe->nstages; s++) {
		const struct hd_pipe_stage *stage = &pipe->stage[s];
		const struct hd_program *p = &stage->tensor.whole;
		uint64_t sum = 0;
		for (uint32_t i = 0; i < stage->nkept; i++) {
			assert_true(stage->kept[i].at < stage->kept[i].end &&
				(!i || stage->kept[i - 1].end < stage->kept[i].at));
			sum += stage->kept[i].end - stage->kept[i].at;
		}
		assert_true(sum == stage->kept_bytes && sum > 0 && sum < p->memory.len_bytes);
		/* read in another way: every operand of a gradient node lies in a span, or was made by one */
		for (uint32_t n = 0; n < p->graph->nnodes; n++) {
			const struct hd_node *node = &p->graph->node[n];
			for (uint32_t j = 0; j < node->nin && node->phase != HD_PHASE_F; j++) {
				const uint32_t v = node->in[j];
				uint64_t at = p->where[v].at_bytes, end = at + hd_program_value_bytes(p, v);
				bool in = p->graph->value[v].kind != HD_TEMP ||
					p->graph->node[p->graph->value[v].node].phase != HD_PHASE_F;
				for (uint32_t i = 0; i < stage->nkept && !in; i++)
					in = stage->kept[i].at <= at && end <= stage->kept[i].end;
				CHECK(in, "stage %u: value %u of node %u", s, v, n);
			}
		}
	}
	hd_rig_close(&rig);
}

/* Ranks that failed meet at NORM; none sums or says what was not computed. */
static void a_step_that_failed_has_no_norm(void **state)
{
	static const struct hd_rig_kind k = { "zb-v", 1, 2, 1, true, 1 };
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open_staged(&rig, net, 14, 4, NULL, &k);
	hd_rig_step(&rig);
	begin_alone(&rig);
	struct hd_rank *rank = &rig.worker->rank[0];
	refuse(&rig, REDUCE, 1000);
	/* nor are sums made twice that other workers have made already */
	rig.worker->step->section = HD_SECTION_FINISH;
	assert_int_equal(alone(&rig, HD_INS_NORM, 0, &diag), HD_OK);
	assert_int_equal(atomic_load(&refusing.left), 1000);
	const struct hd_step_scalars before = rank->scalars = (struct hd_step_scalars){ .lr = -1 };
	rig.worker->step->section = HD_SECTION_ALL;
	hd_rank_fail(rank, HD_E_IO);
	assert_int_equal(alone(&rig, HD_INS_NORM, 0, &diag), HD_OK);
	assert_false(refuse_no_more(&rig));
	assert_int_equal(atomic_load(&refusing.left), 1000);
	assert_memory_equal(&rank->scalars, &before, sizeof before);
	rank->err = HD_OK;
	hd_dist_abandon(rig.worker);
	hd_rig_close(&rig);
}

/* ---- a plan that is not adopted ---- */

/* Adopts the plan with something refused until nothing is; whatever it was, the plan that is there trains on.
 * `which` LOAD + 1: pieces of arenas. */
static uint32_t adopt_in_the_end(struct hd_rig *rig, struct hd_rig *still, const struct hd_plan *plan,
	int which)
{
	struct hd_diag diag = { "" };
	uint32_t nrefused = 0;
	bool was = true;

	for (int n = 0; was; n++) {
		diag.text[0] = 0;
		if (which > LOAD)
			hd_alloc_arm_piece((uint64_t)n + 1);
		else
			refuse(rig, (enum call)which, n);
		enum hd_err err = hd_worker_adopt(rig->worker, plan, &diag);
		was = which > LOAD ? !hd_alloc_arm_piece(0) : refuse_no_more(rig);
		CHECK(which > LOAD ? !err || err == HD_E_NOMEM : was == (err == HD_E_IO),
			"%d of sort %d: %d %s", n, which, (int)err, diag.text);
		nrefused += err != HD_OK;
		if (n % 8 == 0 || !was)
			CHECK(hd_hash_same(hd_rig_step(rig).digest, hd_rig_step(still).digest),
				"%d of sort %d: other bits", n, which);
	}
	return nrefused;
}

static void what_a_plan_is_refused_leaves_the_one_that_is_there(void **state)
{
	static const int64_t at_once[256] = { 0 };
	static const struct { const char *model, *more; struct hd_rig_kind k; bool overlap;
		const int64_t *pace_ns; } rows[] = {
		{ net, NULL, { "interleaved", 2, 2, 1, true, 1 }, false, NULL },
		{ net, "optim: {kind: momentum, lr: 0.05, update: 2bw}\n", { "1f1b", 2, 1, 1, false, 1 },
			true, NULL },
		{ wide, NULL, { "1f1b", 1, 1, 1, false, 2 }, false, NULL },
		{ net, NULL, { "1f1b", 2, 1, 1, false, 1 }, false, at_once },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int which = TAKE; which <= LOAD + 1; which++) {
			struct hd_diag diag = { "" };
			struct hd_rig rig, still;
			struct hd_plan plan;
			hd_rig_open(&still, rows[i].model, 14, 4, rows[i].more, 1);
			const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1,
				.kernels = HD_KERNELS_PORTABLE, .pace_ns = rows[i].pace_ns };
			hd_rig_open_on(&rig, rows[i].model, 14, 4, rows[i].more, &spec);
			assert_true(rig.task->train.nnodes <= 256);
			CHECK(hd_rig_staged(rig.worker, rig.task, &rows[i].k, &rig.arena, &plan,
				&diag) == HD_OK, "%s", diag.text);
			plan.overlap = rows[i].overlap;
			const uint32_t n = adopt_in_the_end(&rig, &still, &plan, which);
			CHECK(n > 0, "row %zu: none of sort %d", i, which);
			hd_rig_close(&rig);
			hd_rig_close(&still);
		}
}

/* ---- what is taken ---- */

/* 8 virtual nodes. gpipe keeps all activations, 1f1b those of the stages behind it and its own, with
 * recomputation of one; a gradient is used at once. Two more for each other rank that sends, none for
 * itself. */
static void a_seat_has_what_its_list_needs_and_no_more(void **state)
{
	enum { C = HD_CREDITS };
	static const struct { struct hd_rig_kind k;
		struct { uint32_t arenas, act, grad; } seat[4]; } rows[] = {
		{ { "gpipe", 2, 1, 1, false, 1 }, { { 8, 0, 1 + C }, { 8, 8 + C, 0 } } },
		{ { "1f1b", 3, 1, 1, false, 1 }, { { 3, 0, 1 + C }, { 2, 2 + C, 1 + C }, { 1, 1 + C, 0 } } },
		{ { "gpipe", 2, 1, 1, true, 1 }, { { 1, 0, 1 + C }, { 1, 8 + C, 0 } } },
		{ { "1f1b", 2, 1, 2, true, 1 }, { { 1, 0, 1 + C }, { 1, 1 + C, 0 }, { 1, 0, 1 + C },
			{ 1, 1 + C, 0 } } },
		{ { "zb-v", 1, 2, 1, true, 1 }, { { 1, 0, 1 }, { 1, 1, 0 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig rig;
		hd_rig_open_staged(&rig, net, 16, 8, NULL, &rows[i].k);
		const struct hd_pipe *pipe = hd_worker_work(rig.worker)->pipe;
		for (uint32_t k = 0; k < pipe->nseats; k++) {
			const struct hd_seat *s = &pipe->seat[k];
			CHECK(s->arena.cap == rows[i].seat[k].arenas && s->mail[HD_MAIL_ACT].cap ==
				rows[i].seat[k].act && s->mail[HD_MAIL_GRAD].cap == rows[i].seat[k].grad,
				"row %zu, seat %u: %u %u %u", i, k, s->arena.cap, s->mail[HD_MAIL_ACT].cap,
				s->mail[HD_MAIL_GRAD].cap);
		}
		hd_rig_close(&rig);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seat_has_what_its_list_needs_and_no_more),
		cmocka_unit_test(all_kinds_give_the_bits_of_one_device),
		cmocka_unit_test(steps_that_overlap_give_them_too),
		cmocka_unit_test(ranks_of_two_devices_give_them_too),
		cmocka_unit_test(rows_that_cannot_be_read_end_the_step),
		cmocka_unit_test(every_call_that_is_refused_ends_the_step),
		cmocka_unit_test(zeros_that_are_refused_end_the_step),
		cmocka_unit_test(forward_of_rows_that_cannot_be_read_takes_nothing),
		cmocka_unit_test(zeros_are_put_by_w_alone),
		cmocka_unit_test(backward_that_fails_gives_nothing_back),
		cmocka_unit_test(activations_in_the_file_take_no_arena),
		cmocka_unit_test(a_file_that_fails_ends_the_step),
		cmocka_unit_test(all_that_a_backward_pass_reads_is_moved_and_no_more),
		cmocka_unit_test(a_step_that_failed_has_no_norm),
		cmocka_unit_test(what_a_plan_is_refused_leaves_the_one_that_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
