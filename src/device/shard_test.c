/* A pair of products in T = 4 shards, on one device and on t = 2 and 4 groups that each have their own shards
 * and graph: partial results are added along the tree by this test, as a collective would. Bits of the
 * result, of its gradient and of the weights' gradients. */
#include <stdio.h>

#include "graph/text.h"
#include "device/testing.h"

enum { ROWS = 3, WIDTH = 8, HIDDEN = 16, OUT = 5, SHARDS = 4 };
/* x -> A -> gelu -> B -> times C: C's gradient is the result */
enum param { P_X, P_A, P_B, P_C, NPARAMS };

struct param_values { float at[NPARAMS][HIDDEN * WIDTH]; };

static void open_pair(struct hd_stage *stage, uint32_t hidden, uint32_t shards)
{
	struct hd_diag diag = { "" };
	char text[600];

	memset(stage, 0, sizeof *stage);
	hd_arena_init(&stage->arena, 0);
	hd_graph_init(&stage->graph, &stage->arena);
	snprintf(text, sizeof text,
		"param x f32 [%d,%d] zeros\nparam a f32 [%d,%u] zeros\nparam b f32 [%u,%d] zeros\nparam c "
		"f32 [%d,%d] zeros\n"
		"%%0 = scale x by=1\n%%1 = matmul %%0 a ta=0 tb=0\n%%2 = act %%1 act=gelu\n%%3 = matmul %%2 "
		"b ta=0 tb=0\n%%4 = mul %%3 c\n%%5 = sum64 %%4\n"
		"output loss %%5\n", ROWS, WIDTH, WIDTH, hidden, hidden, OUT, ROWS, OUT);
	CHECK(hd_graph_parse(&stage->graph, "pair", text, strlen(text), &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_shard(&stage->graph, shards, false, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_optimize(&stage->graph, 1, &diag) == HD_OK &&
		hd_graph_autodiff(&stage->graph, &diag) == HD_OK, "%s", diag.text);
	hd_stage_set(stage, &(uint64_t){ 1 }, 1, 7);
}

static void put(struct hd_stage *stage, uint32_t tensor, const float *natural, uint32_t n)
{
	float *slice[HD_MAX_SHARDS];
	const struct hd_sliced shape = hd_stage_slices(stage, tensor, stage->params, slice);

	assert_int_equal(hd_sliced_elems(&shape), n);
	hd_slices_put(&shape, slice, 0, n, natural);
}

/* Group g of `groups`: its columns of A and rows of B; gradients into `grad`, A's and B's at their places
 * in the whole. */
static void run_group(const char *kind, const struct param_values *params, uint32_t g, uint32_t groups,
	struct param_values *grad)
{
	struct hd_device *device = hd_stage_device(kind, 1);
	uint32_t hidden = HIDDEN / groups, first = g * hidden;
	struct hd_stage stage;

	open_pair(&stage, hidden, SHARDS / groups);
	const uint32_t len[NPARAMS] = { [P_X] = ROWS * WIDTH, [P_C] = ROWS * OUT };
	float columns[WIDTH * HIDDEN];
	float *of[NPARAMS];
	uint64_t n;
	for (uint32_t k = 0; k < WIDTH; k++)
		memcpy(columns + k * hidden, params->at[P_A] + k * HIDDEN + first, sizeof(float) * hidden);
	put(&stage, P_X, params->at[P_X], len[P_X]);
	put(&stage, P_C, params->at[P_C], len[P_C]);
	put(&stage, P_A, columns, WIDTH * hidden);
	put(&stage, P_B, params->at[P_B] + first * OUT, hidden * OUT);
	hd_stage_load(&stage, device);
	hd_stage_run(&stage, device, HD_RUN_F);
	hd_stage_run(&stage, device, HD_RUN_B);
	hd_stage_join(&stage);
	for (uint32_t p = 0; p < NPARAMS; p++)
		of[p] = hd_stage_tensor(&stage, p, stage.grad, &n);
	memcpy(grad->at[P_X], of[P_X], sizeof(float) * ROWS * WIDTH);
	memcpy(grad->at[P_C], of[P_C], sizeof(float) * ROWS * OUT);
	for (uint32_t k = 0; k < WIDTH; k++)
		memcpy(grad->at[P_A] + k * HIDDEN + first, of[P_A] + k * hidden, sizeof(float) * hidden);
	memcpy(grad->at[P_B] + first * OUT, of[P_B], sizeof(float) * hidden * OUT);
	for (uint32_t p = 0; p < NPARAMS; p++)
		free(of[p]);
	hd_device_destroy(device);
	hd_stage_finish(&stage);
}

static void add_up(float *a, const float *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		a[i] += b[i];
}

static void groups_of_shards_give_the_same_bits(void **state)
{
	static const char *const kinds[] = { "reference", "cpu" };

	(void)state;
	for (int k = 0; k < 2; k++) {
		static struct param_values params, whole, part[SHARDS];
		uint32_t other = 0;
		for (uint32_t p = 0; p < NPARAMS; p++)
			for (uint32_t i = 0; i < HIDDEN * WIDTH; i++)
				params.at[p][i] = hd_stage_number(5, p, i);
		run_group(kinds[k], &params, 0, 1, &whole);
		for (uint32_t groups = 2; groups <= SHARDS; groups *= 2) {
			memset(part, 0, sizeof part);
			for (uint32_t g = 0; g < groups; g++) {
				run_group(kinds[k], &params, g, groups, &part[g]);
				if (g) {
					memcpy(part[0].at[P_B] + g * (HIDDEN / groups) * OUT,
						part[g].at[P_B] + g * (HIDDEN / groups) * OUT,
						sizeof(float) * HIDDEN / groups * OUT);
					/* zeros beside its own */
					add_up(part[0].at[P_A], part[g].at[P_A], WIDTH * HIDDEN);
				}
			}
			for (uint32_t step = 1; step < groups; step *= 2)
				for (uint32_t g = 0; g + step < groups; g += 2 * step) {
					add_up(part[g].at[P_X], part[g + step].at[P_X], ROWS * WIDTH);
					add_up(part[g].at[P_C], part[g + step].at[P_C], ROWS * OUT);
				}
			CHECK(!memcmp(part[0].at[P_C], whole.at[P_C], sizeof(float) * ROWS * OUT),
				"%s, %u groups: the result differs", kinds[k], groups);
			CHECK(!memcmp(part[0].at[P_X], whole.at[P_X], sizeof(float) * ROWS * WIDTH),
				"%s, %u groups: the gradient of x differs", kinds[k],
				groups);
			CHECK(!memcmp(part[0].at[P_A], whole.at[P_A], sizeof(float) * WIDTH * HIDDEN),
				"%s, %u groups: that of A differs", kinds[k], groups);
			CHECK(!memcmp(part[0].at[P_B], whole.at[P_B], sizeof(float) * HIDDEN * OUT),
				"%s, %u groups: that of B differs", kinds[k], groups);
		}
		/* in another order, four partial results are another sum: the test can tell */
		for (uint32_t g = 0; g < SHARDS; g++)
			run_group(kinds[k], &params, g, SHARDS, &part[g]);
		for (uint32_t i = 0; i < ROWS * WIDTH; i++)
			other += part[0].at[P_X][i] + part[1].at[P_X][i] + part[2].at[P_X][i] +
				part[3].at[P_X][i] != whole.at[P_X][i];
		CHECK(other > 0, "%s: no sum depends on its order", kinds[k]);
	}
}

enum { POSITIONS = 8, CHANNELS = 7, TOKENS = 9, PARTS = 4, PART = POSITIONS / PARTS };

#define REGION "param g f32 [7] zeros\nparam b f32 [7] zeros\n"
#define ALONG "%1 = dropout %0 p=0.3"
#define END "%2,%3 = layernorm %1 g b eps=1e-05\n%4 = act %2 act=square\n%5 = sum64 %4\noutput loss %5\n"

static void open_region(struct hd_stage *stage, const char *text, uint32_t shards)
{
	struct hd_diag diag = { "" };

	memset(stage, 0, sizeof *stage);
	hd_arena_init(&stage->arena, 0);
	hd_graph_init(&stage->graph, &stage->arena);
	CHECK(hd_graph_parse(&stage->graph, "region", text, strlen(text), &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_shard(&stage->graph, shards, true, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_graph_optimize(&stage->graph, ROWS, &diag) == HD_OK &&
		hd_graph_autodiff(&stage->graph, &diag) == HD_OK, "%s", diag.text);
	hd_stage_set(stage, &(uint64_t){ ROWS }, 1, 11);
	for (uint32_t p = 0; p < 2; p++)
		for (uint32_t i = 0; i < CHANNELS; i++)
			stage->params[stage->layout.at[p] + i] = hd_stage_number(13, p, i);
}

/* Part s of four: its positions of x, gradients of gamma and beta into `grad`; returns its loss. */
static double run_region(struct hd_stage *stage, const char *kind, float grad[2][CHANNELS])
{
	struct hd_device *device = hd_stage_device(kind, 1);

	hd_stage_load(stage, device);
	hd_stage_run(stage, device, HD_RUN_F);
	double loss = *(const double *)hd_program_value(&stage->program, &stage->bind,
		hd_graph_find_output(&stage->graph, "loss"));
	hd_stage_run(stage, device, HD_RUN_B);
	hd_stage_join(stage);
	for (uint32_t p = 0; p < 2; p++)
		memcpy(grad[p], stage->grad + stage->layout.at[p], sizeof grad[p]);
	hd_device_destroy(device);
	return loss;
}

/* Dropout and a norm in four parts of the sequence, in one graph and each in a graph of its own that knows
 * where it lies: the gradients of gamma and beta, added along the tree by this test, have the same bits. */
static void parts_of_a_sequence_give_the_same_bits_wherever_they_run(void **state)
{
	static const char *const kinds[] = { "reference", "cpu" };

	(void)state;
	for (int k = 0; k < 2; k++) {
		float whole[2][CHANNELS], part[PARTS][2][CHANNELS];
		double loss = 0, all;
		struct hd_stage one, own;
		uint32_t other = 0;

		open_region(&one,
			"input x i32 [*,8]\n" REGION "param t f32 [9,7] zeros\n%0 = embed x "
			"t\n" ALONG "\n" END, PARTS);
		all = run_region(&one, kinds[k], whole);
		uint64_t ntable;
		float *table = hd_stage_tensor(&one, 2, one.params, &ntable);
		for (uint32_t s = 0; s < PARTS; s++) {
			char text[400];
			snprintf(text, sizeof text,
				"input z f32 [*,2,7]\n" REGION "%%0 = scale z by=1\n%s from=%u whole=8\n%s",
				ALONG, s * PART, END);
			open_region(&own, text, 1);
			for (uint32_t e = 0; e < ROWS * PART * CHANNELS; e++) {
				uint32_t row = e / CHANNELS / PART, at = s * PART + e / CHANNELS % PART;
				((float *)own.input[0])[e] =
					table[((const int32_t *)one.input[0])[row * POSITIONS + at] *
					CHANNELS + (int32_t)(e % CHANNELS)];
			}
			loss += run_region(&own, kinds[k], part[s]);
			hd_stage_finish(&own);
		}
		for (int p = 0; p < 2; p++)
			for (int i = 0; i < CHANNELS; i++) {
				float tree = (part[0][p][i] + part[1][p][i]) +
					(part[2][p][i] + part[3][p][i]);
				float chain = ((part[0][p][i] + part[1][p][i]) + part[2][p][i]) +
					part[3][p][i];
				CHECK(!memcmp(&tree, &whole[p][i], sizeof tree),
					"%s: gradient %d, element %d: %.9g, by the parts %.9g", kinds[k], p,
					i,
					(double)whole[p][i], (double)tree);
				other += chain != tree;
			}
		CHECK(other > 0, "%s: no sum depends on its order", kinds[k]);
		CHECK(loss - all < 1e-6 * all && all - loss < 1e-6 * all, "%s: loss %.9g, of the parts %.9g",
			kinds[k], all, loss);
		free(table);
		hd_stage_finish(&one);
	}
}

struct step_outputs { double loss, weight, correct; };

static struct step_outputs outputs_of(struct hd_stage_model model, uint32_t shards)
{
	struct hd_device *device = hd_stage_device("cpu", 1);
	struct hd_stage stage;
	struct step_outputs out = { 0 };
	const struct { const char *name; double *to; } read[] = { { "loss", &out.loss },
		{ "weight", &out.weight }, { "correct", &out.correct } };

	model.shards = shards;
	hd_stage_make(&stage, &model, &(uint64_t){ 40 }, 1);
	hd_stage_load(&stage, device);
	hd_stage_run(&stage, device, HD_RUN_F);
	for (int i = 0; i < 3; i++)
		*read[i].to = *(const double *)hd_program_value(&stage.program, &stage.bind,
			hd_graph_find_output(&stage.graph, read[i].name));
	hd_device_destroy(device);
	hd_stage_finish(&stage);
	return out;
}

/* Sums differ by their order alone; what is counted does not. */
static void losses_and_hits_are_those_of_the_whole_model(void **state)
{
	double correct = 0, weight = 0;

	(void)state;
	for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++) {
		if (hd_stage_models[m].shards == 1)
			continue;
		struct step_outputs whole = outputs_of(hd_stage_models[m], 1),
			parts = outputs_of(hd_stage_models[m], hd_stage_models[m].shards);
		double off = whole.loss - parts.loss;
		CHECK(off < 1e-5 * whole.loss && -off < 1e-5 * whole.loss, "%s: loss %.9g, in shards %.9g",
			hd_stage_models[m].name, whole.loss, parts.loss);
		CHECK(whole.weight == parts.weight && whole.correct == parts.correct,
			"%s: %g of %g right, in shards %g of %g", hd_stage_models[m].name,
			whole.correct, whole.weight, parts.correct, parts.weight);
		correct += parts.correct;
		weight += parts.weight;
	}
	CHECK(correct > 20 && correct < weight, "%g of %g right: too tame a test", correct, weight);
}

static void gradients_of(struct hd_stage *stage, struct hd_stage_model model, uint32_t shards)
{
	struct hd_device *device = hd_stage_device("cpu", 1);

	model.shards = shards;
	hd_stage_make(stage, &model, &(uint64_t){ 5 }, 1);
	hd_stage_load(stage, device);
	hd_stage_run(stage, device, HD_RUN_F);
	hd_stage_run(stage, device, HD_RUN_B);
	hd_stage_join(stage);
	hd_device_destroy(device);
}

/* Of the largest of a tensor: single elements may be differences of large sums. */
static void gradients_are_those_of_the_whole_model(void **state)
{
	(void)state;
	for (uint32_t m = 0; m < HD_STAGE_NMODELS; m++) {
		struct hd_stage whole, parts;
		if (hd_stage_models[m].shards == 1)
			continue;
		gradients_of(&whole, hd_stage_models[m], 1);
		gradients_of(&parts, hd_stage_models[m], hd_stage_models[m].shards);
		for (uint32_t p = 0; p < whole.layout.nparams; p++) {
			uint64_t n, m_elems;
			float *a = hd_stage_tensor(&whole, p, whole.grad, &n),
				*b = hd_stage_tensor(&parts, p, parts.grad, &m_elems);
			float most = 0, off = 0;
			assert_int_equal(n, m_elems);
			for (uint64_t i = 0; i < n; i++) {
				most = a[i] > most ? a[i] : -a[i] > most ? -a[i] : most;
				off = a[i] - b[i] > off ? a[i] - b[i] : b[i] - a[i] > off ? b[i] - a[i] : off;
			}
			CHECK(off <= 1e-5f * most + 1e-7f, "%s (model %u), parameter %u: off by %g of %g",
				hd_stage_models[m].name, m, p,
				(double)off, (double)most);
			free(a);
			free(b);
		}
		hd_stage_finish(&whole);
		hd_stage_finish(&parts);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_a_sequence_give_the_same_bits_wherever_they_run),
		cmocka_unit_test(gradients_are_those_of_the_whole_model),
		cmocka_unit_test(groups_of_shards_give_the_same_bits),
		cmocka_unit_test(losses_and_hits_are_those_of_the_whole_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
