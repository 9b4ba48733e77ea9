/* What every processor device does besides ops: order of phases, folds, memory, vectors. */
#include "device/grid.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "graph/text.h"
#include "device/optim.h"
#include "device/single.h"
#include "device/testing.h"

static const char *const kinds[] = { "reference", "cpu" };

static void step(struct hd_stage *stage, struct hd_device *device, bool split)
{
	memset(stage->grad, 0, stage->layout.grad_elems * sizeof(float));
	hd_stage_run(stage, device, HD_RUN_F);
	if (split) {
		hd_stage_run(stage, device, HD_RUN_I);
		hd_stage_run(stage, device, HD_RUN_W);
	} else {
		hd_stage_run(stage, device, HD_RUN_B);
	}
}

/* Gradient and outputs of a step. */
static struct hd_hash result(const struct hd_stage *stage)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, stage->grad, stage->layout.grad_elems * sizeof(float));
	for (uint32_t i = 0; i < stage->graph.noutputs; i++) {
		uint32_t v = stage->graph.output[i].value;
		hd_hasher_add(&hasher, hd_program_value(&stage->program, &stage->bind, v),
			hd_value_bytes(&stage->graph.value[v], stage->bind.rows));
	}
	return hd_hasher_end(&hasher);
}

static void models_have_the_same_bits_on_any_number_of_threads_in_one_list_or_two(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++) {
			struct hd_hash first = { { 0 } };
			for (uint32_t nthreads = 1; nthreads <= 4; nthreads++) {
				struct hd_device *device = hd_stage_device(kinds[k], nthreads);
				struct hd_stage stage;
				hd_stage_make(&stage, &hd_stage_models[m], &(uint64_t){ 5 }, 1);
				hd_stage_load(&stage, device);
				for (uint32_t split = 0; split < 2; split++) {
					step(&stage, device, split);
					struct hd_hash hash = result(&stage);
					if (nthreads == 1 && !split)
						first = hash;
					CHECK(hd_hash_same(first, hash), "%s, %s, %u threads, %s", kinds[k],
						hd_stage_models[m].name, nthreads,
						split ? "I then W" : "B");
				}
				hd_device_destroy(device);
				hd_stage_finish(&stage);
			}
		}
}

/* Leaf copied, leaf added to a sum, and a sum added to another: per element what plain loops give. */
static void folds_move_every_gradient_and_nothing_else(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		struct hd_device *device = hd_stage_device(kinds[k], 2);
		struct hd_stage stage;
		hd_stage_make(&stage, hd_stage_model_of("resnet18"), &(uint64_t){ 3 }, 1);
		hd_stage_load(&stage, device);
		step(&stage, device, false);

		const uint64_t n = stage.layout.grad_elems;
		float *copy = calloc(n, sizeof *copy), *sum = calloc(n, sizeof *sum),
			*low = calloc(n, sizeof *low);
		for (uint64_t i = 0; i < n; i++) {
			sum[i] = 0.1f + (float)(i % 7);
			low[i] = 1.0f / (float)(i + 3);
		}
		float *want_sum = calloc(n, sizeof *want_sum), *want_low = calloc(n, sizeof *want_low),
			*want_copy = calloc(n, sizeof *want_copy);
		memcpy(want_sum, sum, n * sizeof *sum);
		memcpy(want_low, low, n * sizeof *low);
		for (uint32_t p = 0; p < stage.layout.ngrads; p++)
			for (uint64_t i = stage.layout.at[p]; i < stage.layout.at[p] + stage.layout.len[p];
				i++) {
				want_copy[i] = stage.grad[i];
				want_sum[i] = sum[i] + stage.grad[i];
				want_low[i] = low[i] + want_sum[i];
			}
		const struct hd_fold copied = { .dst = copy },
			folds[] = { { .dst = sum, .add = true }, { .dst = low, .src = sum, .add = true } };
		stage.bind.fold = &copied;
		stage.bind.nfolds = 1;
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		assert_memory_equal(copy, want_copy, n * sizeof *copy);
		stage.bind.fold = folds;
		stage.bind.nfolds = 2;
		hd_stage_run(&stage, device, HD_RUN_F);
		hd_stage_run(&stage, device, HD_RUN_B);
		assert_memory_equal(low, want_low, n * sizeof *low);
		/* sum held what pended: its value is gone */
		float *all[] = { copy, sum, low, want_copy, want_sum, want_low };
		for (uint32_t i = 0; i < 6; i++)
			free(all[i]);
		hd_device_destroy(device);
		hd_stage_finish(&stage);
	}
}

static void an_empty_slice_runs_nothing_and_an_unprepared_one_is_refused(void **state)
{
	struct hd_device *device = hd_stage_device("reference", 1);
	struct hd_stage stage;
	struct hd_diag diag = { "" };
	uint64_t token = 0;
	(void)state;

	hd_stage_make(&stage, &hd_stage_models[0], (uint64_t[]){ 4, 2 }, 2);
	hd_stage_load(&stage, device);
	stage.bind.rows = 0;
	stage.grad[0] = 42;
	hd_stage_run(&stage, device, HD_RUN_B);
	assert_true(stage.grad[0] == 42.0f);
	stage.bind.rows = 3;
	CHECK(device->ops->run(device, &stage.program, HD_RUN_F, &stage.bind, &token, &diag) == HD_E_BUG,
		"%s", diag.text);
	assert_string_equal(diag.text, "device reference: a slice of 3 rows was not prepared");
	hd_device_destroy(device);
	hd_stage_finish(&stage);
}

/* Two slices of a virtual node draw the same numbers as the whole. */
static void dropout_depends_on_the_place_in_the_virtual_node_only(void **state)
{
	struct hd_device *device = hd_stage_device("cpu", 2);
	struct hd_stage stage;
	uint32_t v = HD_NONE;
	float whole[256], parts[256];
	(void)state;

	hd_stage_make(&stage, hd_stage_model_of("vgg16"), (uint64_t[]){ 4, 3, 1 }, 3);
	hd_stage_load(&stage, device);
	for (uint32_t i = 0; i < stage.graph.nforward && v == HD_NONE; i++)
		if (stage.graph.node[i].op == HD_OP_DROPOUT)
			v = stage.graph.node[i].out;
	assert_true(v != HD_NONE);
	const struct hd_value *value = &stage.graph.value[v];
	const size_t row = hd_value_bytes(value, 1);
	assert_true(4 * row <= sizeof whole * sizeof(float) / 4);
	/* so that it outlives the phase */
	CHECK(hd_graph_output(&stage.graph, "kept", v, NULL) == HD_OK, "output");
	CHECK(hd_program_make(&stage.program, &stage.graph, &stage.layout, true, (uint64_t[]){ 4, 3, 1 }, 3,
		&stage.arena, NULL) == HD_OK, "program");
	free(stage.memory);
	stage.memory = aligned_alloc(64, stage.program.memory.len_bytes);
	stage.bind.arena = stage.memory;
	hd_device_destroy(device);
	device = hd_stage_device("cpu", 2);
	hd_stage_load(&stage, device);
	hd_stage_run(&stage, device, HD_RUN_F);
	memcpy(whole, hd_program_value(&stage.program, &stage.bind, v), 4 * row);
	for (uint32_t part = 0; part < 2; part++) {
		const uint8_t *x = stage.input[0], *y = stage.input[1];
		const void *in[] = { x + part * 3 * hd_value_bytes(&stage.graph.value[stage.graph.input[0]],
			1),
			y + part * 3 * hd_value_bytes(&stage.graph.value[stage.graph.input[1]], 1) };
		stage.bind.input = in;
		stage.bind.rows = part ? 1 : 3;
		stage.bind.draw.row0 = part * 3;
		hd_stage_run(&stage, device, HD_RUN_F);
		memcpy((uint8_t *)parts + part * 3 * row, hd_program_value(&stage.program, &stage.bind, v),
			stage.bind.rows * row);
	}
	assert_memory_equal(whole, parts, 4 * row);
	hd_device_destroy(device);
	hd_stage_finish(&stage);
}

static void a_memory_limit_is_kept_and_told_with_numbers(void **state)
{
	const struct hd_device_spec spec = { .nthreads = 1, .memory_limit_bytes = 3u << 20 };
	struct hd_device *device = NULL;
	struct hd_diag diag = { "" };
	void *a = NULL, *b = NULL;
	(void)state;

	assert_int_equal(hd_device_create(&device, "reference", &spec, &diag), HD_OK);
	assert_int_equal(device->ops->take(device, 2u << 20, &a, &diag), HD_OK);
	for (uint32_t i = 0; i < 2u << 20; i += 4096)
		assert_int_equal(((uint8_t *)a)[i], 0);
	assert_int_equal((uintptr_t)a % 64, 0);
	assert_int_equal(device->ops->take(device, (1u << 20) + 1, &b, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text,
		"1.0 MiB more are needed, 2.0 MiB are in use and the limit is 3.0 MiB"));
	assert_null(b);
	device->ops->give(device, a, 2u << 20);
	assert_int_equal(device->ops->take(device, 3u << 20, &b, &diag), HD_OK);
	hd_device_destroy(device);                  /* gives back b */
}

static void vectors_are_added_squared_and_updated_as_their_headers_say(void **state)
{
	enum { LEN = 70000 };
	static float a[LEN], b[LEN], sum[LEN], param[LEN], plain[LEN];
	const struct hd_segment segment[] = { { 0, 65536, 0, 0 }, { 65536, LEN - 65536, 0, 1 },
		{ 7, 1, 0, 0 } };
	const struct hd_step_scalars scalars = { .optim = { HD_OPTIM_SGD, 0, 0, 0, 0, 0.01f, false },
		.lr = 0.1f, .scale = 0.5f, .clip = 0.75f };
	(void)state;

	for (uint32_t i = 0; i < LEN; i++) {
		a[i] = hd_stage_number(1, 0, i);
		b[i] = hd_stage_number(1, 1, i);
	}
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
			struct hd_device *device = hd_stage_device(kinds[k], nthreads);
			double partial[3];
			uint64_t token = 0, before;
			assert_int_equal(device->ops->add(device, sum, a, b, LEN, &token, NULL), HD_OK);
			before = token;
			for (uint32_t i = 0; i < LEN; i++)
				CHECK(sum[i] == a[i] + b[i], "%s, element %u", kinds[k], i);
			assert_int_equal(device->ops->reduce(device,
				&(struct hd_reduction){ NULL, 0, a, segment, 3, partial }, &token, NULL),
				HD_OK);
			assert_true(token > before);
			for (uint32_t i = 0; i < 3; i++)
				CHECK(partial[i] == hd_lanes_sumsq(a + segment[i].at, segment[i].len),
					"%s, segment %u", kinds[k], i);
			memcpy(param, b, sizeof param);
			memcpy(plain, b, sizeof plain);
			hd_optim_update_plain(&scalars, plain, a, NULL, NULL, LEN);
			const struct hd_update update = { .kind = HD_OPTIM_SGD, .param = param, .grad = a,
				.len = LEN, .scalars = &scalars };
			assert_int_equal(device->ops->update(device, &update, &token, NULL), HD_OK);
			assert_memory_equal(param, plain, sizeof param);
			assert_int_equal(device->ops->wait(device, token, NULL), HD_OK);
			assert_int_equal(device->ops->wait(device, token + 1, NULL), HD_E_BUG);
			hd_device_destroy(device);
		}
}

/* Two joins, the second over the first's place; what lies between the segments stays as it is. */
static void joins_are_made_segment_by_segment_before_the_squares(void **state)
{
	enum { LEN = 70000 };
	static float x[3][LEN], was[LEN];
	const struct hd_segment segment[] = { { 0, 65536, 0, 0 }, { 65552, 4001, 0, 1 }, { 69999, 1, 1, 1 } };
	const struct hd_flat_join join[] = { { x[1], x[1], x[2] }, { x[0], x[0], x[1] } };
	(void)state;

	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
			struct hd_device *device = hd_stage_device(kinds[k], nthreads);
			double partial[3];
			uint64_t token = 0;
			for (uint32_t i = 0; i < 3 * LEN; i++)
				x[i / LEN][i % LEN] = hd_stage_number(1, i / LEN, i % LEN);
			memcpy(was, x[0], sizeof was);
			assert_int_equal(device->ops->reduce(device,
				&(struct hd_reduction){ join, 2, x[0], segment, 3, partial }, &token, NULL),
				HD_OK);
			assert_int_equal(device->ops->wait(device, token, NULL), HD_OK);
			for (uint32_t i = 0, s = 0; i < LEN; i++) {
				s += s < 2 && i >= segment[s + 1].at;
				bool inside = i - segment[s].at < segment[s].len;
				float b = inside ? hd_stage_number(1, 1, i) + hd_stage_number(1, 2, i) :
					hd_stage_number(1, 1, i);
				CHECK(x[1][i] == b && x[0][i] == (inside ? was[i] + b : was[i]),
					"%s, element %u", kinds[k], i);
			}
			for (uint32_t s = 0; s < 3; s++)
				CHECK(partial[s] == hd_lanes_sumsq(x[0] + segment[s].at, segment[s].len),
					"%s, segment %u", kinds[k], s);
			hd_device_destroy(device);
		}
}

/* As a sum of what other workers sent: into the right operand, at any float address, squares not asked
 * for. */
static void a_join_may_end_in_its_right_operand_and_leave_out_the_squares(void **state)
{
	enum { LEN = 70000 };
	static float x[2][LEN + 1];
	const struct hd_segment segment[] = { { 0, 65536, 0, 0 }, { 65552, 4001, 0, 1 } };
	const struct hd_flat_join join = { x[1] + 1, x[0], x[1] + 1 };
	(void)state;

	for (uint32_t k = 0; k < 2; k++) {
		struct hd_device *device = hd_stage_device(kinds[k], 2);
		double partial[2] = { 7, 7 };
		uint64_t token = 0;
		for (uint32_t i = 0; i < LEN; i++) {
			x[0][i] = hd_stage_number(1, 0, i);
			x[1][i + 1] = hd_stage_number(1, 1, i);
		}
		assert_int_equal(device->ops->reduce(device,
			&(struct hd_reduction){ &join, 1, x[1] + 1, segment, 2, NULL }, &token, NULL), HD_OK);
		assert_int_equal(device->ops->wait(device, token, NULL), HD_OK);
		for (uint32_t i = 0; i < LEN; i++) {
			bool inside = i < 65536 || (i >= 65552 && i < 65552 + 4001);
			float b = hd_stage_number(1, 1, i), want = inside ? hd_stage_number(1, 0, i) + b : b;
			CHECK(x[1][i + 1] == want && x[0][i] == hd_stage_number(1, 0, i), "%s, element %u",
				kinds[k], i);
		}
		assert_true(partial[0] == 7 && partial[1] == 7);
		hd_device_destroy(device);
	}
}

static void the_first_pass_of_a_tensor_is_taken_by_segments(void **state)
{
	enum { LEN = 70000 };
	static float param[LEN], grad[LEN], slot[2][LEN], plain[2][LEN];
	const struct hd_segment segment[] = { { 0, 65536, 0, 0 }, { 65536, 4001, 0, 1 }, { 69552, 1, 1, 1 } };
	struct hd_step_scalars scalars = { .optim = { HD_OPTIM_LAMB, 0, 0.9f, 0.99f, 1e-6f, 0.01f, false },
		.lr = 0.1f, .scale = 0.5f, .clip = 0.75f };

	(void)state;
	hd_optim_corrections(&scalars, 2);
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t nthreads = 1; nthreads <= 3; nthreads++) {
			struct hd_device *device = hd_stage_device(kinds[k], nthreads);
			double sums[2][3], want[2];
			uint64_t token = 0;
			for (uint32_t i = 0; i < LEN; i++) {
				param[i] = hd_stage_number(1, 0, i);
				grad[i] = hd_stage_number(1, 1, i);
				slot[0][i] = plain[0][i] = hd_stage_number(1, 2, i);
				slot[1][i] = plain[1][i] = fabsf(hd_stage_number(1, 3, i));
			}
			const struct hd_update update = { .kind = HD_OPTIM_LAMB, .param = param, .grad = grad,
				.slot = { slot[0], slot[1] },
				.len = LEN, .scalars = &scalars };
			assert_int_equal(device->ops->measure(device, &update, segment, 3, sums[0], sums[1],
				&token, NULL), HD_OK);
			assert_int_equal(device->ops->wait(device, token, NULL), HD_OK);
			for (uint32_t i = 0; i < 3; i++) {
				uint64_t at = segment[i].at;
				hd_optim_measure_plain(&scalars, param + at, grad + at, plain[0] + at,
					plain[1] + at, segment[i].len, want);
				CHECK(sums[0][i] == want[0] && sums[1][i] == want[1], "%s, segment %u",
					kinds[k], i);
			}
			/* and nothing between the segments */
			assert_memory_equal(slot, plain, sizeof slot);
			hd_device_destroy(device);
		}
}

/* Code of others in this process that rounds in another way would change bits without a word. */
static void switched_rounding_is_told_by_whatever_computes(void **state)
{
	static float a[64], b[64], slot[2][64];
	static const struct hd_segment segment = { 0, 64, 0, 0 };
	const struct hd_step_scalars scalars = { .optim = { HD_OPTIM_LAMB, 0, 0.9f, 0.99f, 1e-6f, 0, false },
		.lr = 0.1f, .scale = 1, .clip = 1,
		.c1 = 1, .c2 = 1 };
	const struct hd_update update = { HD_OPTIM_LAMB, a, b, { slot[0], slot[1] }, 64, &scalars };
	struct hd_device *device = hd_stage_device("cpu", 1);
	double sums[2];
	const struct hd_reduction reduction = { NULL, 0, a, &segment, 1, sums };
	uint64_t token;
	(void)state;

	for (int which = 0; which < 4; which++) {
		struct hd_diag diag = { "" };
		enum hd_err err = HD_OK;
		fesetround(FE_UPWARD);
		switch (which) {
		case 0: err = device->ops->add(device, a, a, b, 64, &token, &diag); break;
		case 1: err = device->ops->reduce(device, &reduction, &token, &diag); break;
		case 2: err = device->ops->measure(device, &update, &segment, 1, sums, sums + 1, &token,
			&diag); break;
		case 3: err = device->ops->update(device, &update, &token, &diag); break;
		}
		fesetround(FE_TONEAREST);
		CHECK(err == HD_E_BUG &&
			strstr(diag.text, "device cpu: rounding or subnormals were switched"), "%d: %d, '%s'",
			which, err, diag.text);
	}
	hd_device_destroy(device);
}

static void the_null_device_gives_zeros_and_prices(void **state)
{
	struct hd_device *device = hd_stage_device("null", 4);
	struct hd_stage stage;
	(void)state;

	assert_true(device->ops->powers & HD_DEVICE_NO_RESULT);
	hd_stage_make(&stage, hd_stage_model_of("resnet18"), &(uint64_t){ 3 }, 1);
	hd_stage_load(&stage, device);
	memset(stage.grad, 0, stage.layout.grad_elems * sizeof(float));
	hd_stage_run(&stage, device, HD_RUN_F);
	hd_stage_run(&stage, device, HD_RUN_B);
	for (uint64_t i = 0; i < stage.layout.grad_elems; i++)
		assert_true(stage.grad[i] == 0.0f);
	struct hd_cost f = hd_program_cost(&stage.program, HD_RUN_F, 3),
		b = hd_program_cost(&stage.program, HD_RUN_B, 3);
	struct hd_cost i = hd_program_cost(&stage.program, HD_RUN_I, 3),
		w = hd_program_cost(&stage.program, HD_RUN_W, 3);
	assert_true(f.flops > 0 && b.flops == i.flops + w.flops && b.bytes == i.bytes + w.bytes);
	hd_device_destroy(device);
	hd_stage_finish(&stage);
}

static void fingerprints_tell_kernels_and_shapes_apart(void **state)
{
	struct hd_device *cpu = hd_stage_device("cpu", 2), *reference = hd_stage_device("reference", 1);
	struct hd_hash of_cpu, again, of_reference, of_rows;
	struct hd_stage stage;
	(void)state;

	hd_stage_make(&stage, hd_stage_model_of("resnet18"), (uint64_t[]){ 3, 2 }, 2);
	assert_int_equal(hd_device_fingerprint(cpu, &stage.program, &of_cpu, NULL), HD_OK);
	assert_int_equal(hd_device_fingerprint(cpu, &stage.program, &again, NULL), HD_OK);
	assert_int_equal(hd_device_fingerprint(reference, &stage.program, &of_reference, NULL), HD_OK);
	hd_stage_finish(&stage);
	hd_stage_make(&stage, hd_stage_model_of("resnet18"), &(uint64_t){ 3 }, 1);
	assert_int_equal(hd_device_fingerprint(cpu, &stage.program, &of_rows, NULL), HD_OK);
	assert_true(hd_hash_same(of_cpu, again));
	assert_false(hd_hash_same(of_cpu, of_reference));
	assert_false(hd_hash_same(of_cpu, of_rows));
	hd_stage_finish(&stage);
	hd_device_destroy(cpu);
	hd_device_destroy(reference);
}

/* Each element by its number alone, whatever the length. */
static void operands_are_drawn_by_their_elements(void **state)
{
	const uint64_t key = hd_philox_key(3, HD_RNG_USER);
	struct hd_call call = { .op = HD_OP_EMBED, .in = { [0] = { .dtype = HD_I32 }, [1] = { .dtype = HD_F32,
		.dim = { 100 } } } };
	(void)state;

	for (uint64_t n = 0; n <= 9; n++) {
		float number[10];
		int32_t row[10] = { 0 };
		call.in[0].elems = call.in[1].elems = n;
		number[n] = 7;
		row[n] = -7;
		hd_single_fill(&call, 0, 3, row);
		hd_single_fill(&call, 1, 3, number);
		for (uint64_t i = 0; i < n; i++) {
			const uint32_t block = (uint32_t)i / 4;
			const struct hd_philox of_row = hd_philox((const uint32_t[]){ block, 0, 0, 0 }, key),
				of_number = hd_philox((const uint32_t[]){ block, 1, 0, 0 }, key);
			assert_int_equal(row[i], of_row.word[i % 4] % 100);
			assert_true(number[i] == 2.0f * hd_uniform(of_number.word[i % 4]) - 1.0f);
		}
		assert_true(row[n] == -7 && number[n] == 7);
	}
}

/* Gradients of these repeat a number over extents that are written down as multiples of the rows: so many
 * rows, so many answers. */
static const char reductions[] =
	"input x f32 [*,4,6]\nparam w f32 [4,6] zeros\n%0 = mul x w\n%1 = reduce_mean %0 axes=2\n%2 = "
	"reduce_mean %0 axes=6\n"
	"%3 = reduce_mean %0 axes=4 keep=4\n%4 = sub %0 %3\n%5 = mul %4 %4\n%6 = reduce_mean %5 axes=6 "
	"keep=6\n%7 = reduce_max %0 axes=4 keep=4\n"
	"%8 = sub %0 %7\n%9 = act %8 act=exp\n%10 = reduce_sum %9 axes=4\n%11 = act %10 act=log\n%12 = "
	"reduce_prod %0 axes=4\n%13 = reduce_min %0 axes=2\n"
	"%14 = sum64 %1\n%15 = sum64 %2\n%16 = sum64 %6\n%17 = sum64 %11\n%18 = sum64 %12\n%19 = sum64 %13\n"
	"output loss %14\noutput b %15\noutput c %16\noutput d %17\noutput e %18\noutput f %19\n";

static void fingerprints_are_taken_of_what_repeats_over_the_rows(void **state)
{
	static const char *const names[] = { "cpu", "reference" };
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct hd_graph graph;
	struct hd_layout layout;
	struct hd_program program;
	struct hd_hash of[2][2];
	(void)state;

	hd_arena_init(&arena, 0);
	hd_graph_init(&graph, &arena);
	CHECK(hd_graph_parse(&graph, "t.graph", reductions, sizeof reductions - 1, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_graph_optimize(&graph, 3, &diag) == HD_OK && hd_graph_autodiff(&graph, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_layout_make(&layout, &graph, &arena, &diag) == HD_OK, "%s", diag.text);
	for (int d = 0; d < 2; d++) {
		struct hd_device *device = hd_stage_device(names[d], 1);
		for (uint64_t rows = 1; rows <= 2; rows++) {
			CHECK(hd_program_make(&program, &graph, &layout, true, (uint64_t[]){ 2 * rows, rows },
				2, &arena, &diag) == HD_OK, "%s", diag.text);
			CHECK(hd_device_fingerprint(device, &program, &of[d][rows - 1], &diag) == HD_OK,
				"%s, %llu rows: %s", names[d],
				(unsigned long long)rows, diag.text);
		}
		assert_false(hd_hash_same(of[d][0], of[d][1]));
		hd_device_destroy(device);
	}
	hd_arena_finish(&arena);
}

static void an_unknown_device_is_told_the_names(void **state)
{
	struct hd_device *device = NULL;
	struct hd_diag diag = { "" };
	(void)state;

	assert_int_equal(hd_device_create(&device, "gpu", &(struct hd_device_spec){ .nthreads = 1 }, &diag),
		HD_E_INVAL);
	assert_string_equal(diag.text, "there is no device 'gpu': use one of cpu, reference, null");
	assert_null(device);
	diag.text[0] = 0;
	assert_int_equal(hd_device_create(&device, "cpu", &(struct hd_device_spec){ .nthreads = 1,
		.path = "mmx" }, &diag), HD_E_REFUSED);
	hd_device_destroy(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_have_the_same_bits_on_any_number_of_threads_in_one_list_or_two),
		cmocka_unit_test(folds_move_every_gradient_and_nothing_else),
		cmocka_unit_test(an_empty_slice_runs_nothing_and_an_unprepared_one_is_refused),
		cmocka_unit_test(dropout_depends_on_the_place_in_the_virtual_node_only),
		cmocka_unit_test(a_memory_limit_is_kept_and_told_with_numbers),
		cmocka_unit_test(vectors_are_added_squared_and_updated_as_their_headers_say),
		cmocka_unit_test(joins_are_made_segment_by_segment_before_the_squares),
		cmocka_unit_test(a_join_may_end_in_its_right_operand_and_leave_out_the_squares),
		cmocka_unit_test(the_first_pass_of_a_tensor_is_taken_by_segments),
		cmocka_unit_test(switched_rounding_is_told_by_whatever_computes),
		cmocka_unit_test(the_null_device_gives_zeros_and_prices),
		cmocka_unit_test(fingerprints_tell_kernels_and_shapes_apart),
		cmocka_unit_test(operands_are_drawn_by_their_elements),
		cmocka_unit_test(fingerprints_are_taken_of_what_repeats_over_the_rows),
		cmocka_unit_test(an_unknown_device_is_told_the_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
