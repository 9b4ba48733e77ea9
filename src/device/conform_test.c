/* The conformance suite: op x shape x device row, judged by the reference device, which
 * is judged by an evaluator in f64 that shares no code with it.
 *
 * A result may differ from the reference r by eps * (c + 2 sqrt(K)) * M: eps = 2^-24; K the
 * number of terms summed into an element (rounding errors of a sum grow like sqrt(K) when
 * their signs are mixed; the worst case, K, is never met); M the magnitude of what is summed:
 *   EXACT   0: sums, products, copies have one right answer
 *   LINEAR  the op applied to the absolute values of its operands: sum |a||b|, per element
 *   PEAK    the largest |r| of the output, and the largest operand: functions, norms, softmax
 * and c a few operations per element (column `c`). Threads, and paths of the same kernels,
 * must agree bit for bit.
 *
 * HD_TEST_DEVICE=NAME runs one row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/program.h"
#include "device/single.h"
#include "tests/check.h"
#include "tests/eval64.inc.h"

enum judge { EXACT, LINEAR, PEAK };

struct op_case {
	uint16_t op;
	struct hd_attr attr;
	enum judge judge;
	double c, gain;                   /* operands lie in [-gain, gain) */
	struct hd_value in[HD_MAX_IN];
};

#define RANK(...) (uint8_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define F(...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = HD_F32 }
#define I(...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = HD_I32 }
#define OF(type, ...) { .dim = { __VA_ARGS__ }, .rank = RANK(__VA_ARGS__), .dtype = type }
#define U(...) OF(HD_U8, __VA_ARGS__)
#define A(...) { .i = { __VA_ARGS__ } }

/* a column of several cells of acts.def, behind the id */
#define ACT_UNPACK(...) __VA_ARGS__
#define ACT_CALL(macro, ...) macro(__VA_ARGS__)
#define ACT_ATTR(id, alpha, beta) { .i = { HD_ACT_##id }, .f = { alpha, beta } }

static const struct op_case cases[] = {
	{ HD_OP_MATMUL, A(0, 0), LINEAR, 4, 1, { F(-1, 1), F(1, 1) } },
	{ HD_OP_MATMUL, A(0, 0), LINEAR, 4, 1, { F(-1, 37), F(37, 19) } },
	{ HD_OP_MATMUL, A(0, 0), LINEAR, 4, 1, { F(-1, 3, 64), F(64, 96) } },
	{ HD_OP_MATMUL, A(0, 0), LINEAR, 4, 1, { F(-9, 130), F(130, 259) } },
	{ HD_OP_MATMUL, A(0, 1), LINEAR, 4, 1, { F(-1, 53), F(10, 53) } },
	{ HD_OP_MATMUL, A(0, 1), LINEAR, 4, 1, { F(-2, 5, 48), F(257, 48) } },
	{ HD_OP_MATMUL, A(1, 0), LINEAR, 4, 1, { F(-1, 31), F(-1, 17) } },
	{ HD_OP_MATMUL, A(1, 0), LINEAR, 4, 1, { F(-7, 5, 48), F(-7, 5, 65) } },
	{ HD_OP_MATMUL, A(1, 1), LINEAR, 4, 1, { F(-1, 23), F(29, -1) } },
	{ HD_OP_CONV2D, A(1, 1, 0, 0), LINEAR, 4, 1, { F(-1, 1, 5, 5), F(1, 1, 1, 1) } },
	{ HD_OP_CONV2D, A(1, 1, 2, 2), LINEAR, 4, 1, { F(-1, 1, 28, 28), F(6, 1, 5, 5) } },
	{ HD_OP_CONV2D, A(1, 1, 0, 0), LINEAR, 4, 1, { F(-1, 6, 14, 14), F(16, 6, 5, 5) } },
	{ HD_OP_CONV2D, A(2, 3, 1, 2), LINEAR, 4, 1, { F(-1, 3, 11, 13), F(5, 3, 3, 4) } },
	{ HD_OP_CONV2D, A(1, 1, 4, 1), LINEAR, 4, 1, { F(-1, 9, 3, 35), F(13, 9, 5, 3) } },
	{ HD_OP_CONV2D_DX, A(1, 1, 4, 1), LINEAR, 4, 1, { F(-1, 13, 7, 35), F(13, 9, 5, 3), F(-1, 9, 3, 35) } },
	{ HD_OP_CONV2D_DW, A(1, 1, 4, 1), LINEAR, 4, 1, { F(-1, 13, 7, 35), F(-1, 9, 3, 35), F(13, 9, 5, 3) } },
	{ HD_OP_CONV2D_DX, A(1, 1, 2, 2), LINEAR, 4, 1, { F(-1, 6, 28, 28), F(6, 1, 5, 5), F(-1, 1, 28, 28) } },
	{ HD_OP_CONV2D_DX, A(1, 1, 0, 0), LINEAR, 4, 1, { F(-1, 16, 10, 10), F(16, 6, 5, 5), F(-1, 6, 14, 14) } },
	{ HD_OP_CONV2D_DX, A(2, 3, 1, 2), LINEAR, 4, 1, { F(-1, 5, 6, 5), F(5, 3, 3, 4), F(-1, 3, 11, 13) } },
	{ HD_OP_CONV2D_DW, A(1, 1, 2, 2), LINEAR, 4, 1, { F(-1, 6, 28, 28), F(-1, 1, 28, 28), F(6, 1, 5, 5) } },
	{ HD_OP_CONV2D_DW, A(1, 1, 0, 0), LINEAR, 4, 1, { F(-1, 16, 10, 10), F(-1, 6, 14, 14), F(16, 6, 5, 5) } },
	{ HD_OP_CONV2D_DW, A(2, 3, 1, 2), LINEAR, 4, 1, { F(-1, 5, 6, 5), F(-1, 3, 11, 13), F(5, 3, 3, 4) } },
	{ HD_OP_ATTENTION, A(1, 1), PEAK, 16, 1, { F(-1, 1, 3) } },
	{ HD_OP_ATTENTION, A(3, 1), PEAK, 16, 2, { F(-1, 37, 72) } },
	{ HD_OP_ATTENTION, A(2, 0), PEAK, 16, 4, { F(-1, 17, 78) } },
	{ HD_OP_ATTENTION, A(2, 1), PEAK, 16, 1, { F(-1, 130, 192) } },
	{ HD_OP_ATTENTION_DX, A(1, 1), PEAK, 32, 1, { F(-1, 1, 1), F(-1, 1, 3), F(-1, 1, 1), F(-1, 1, 1) } },
	{ HD_OP_ATTENTION_DX, A(3, 1), PEAK, 32, 1, { F(-1, 37, 24), F(-1, 37, 72), F(-1, 37, 24), F(-1, 3, 37) } },
	{ HD_OP_ATTENTION_DX, A(2, 0), PEAK, 32, 2, { F(-1, 17, 26), F(-1, 17, 78), F(-1, 17, 26), F(-1, 2, 17) } },
	{ HD_OP_ATTENTION_DX, A(2, 1), PEAK, 32, 1, { F(-1, 130, 64), F(-1, 130, 192), F(-1, 130, 64), F(-1, 2, 130) } },
	{ HD_OP_RESHAPE, A(-2, 3), EXACT, 0, 1, { F(-1, 6) } },
	{ HD_OP_ADD, A(0), EXACT, 0, 1, { F(-1, 19), F(-1, 19) } },
	{ HD_OP_ADD, A(0), EXACT, 0, 1, { F(-1, 7, 33), F(7, 33) } },
	{ HD_OP_ADD, A(0), EXACT, 0, 1, { F(-4001), F(-4001) } },
	{ HD_OP_SUB, A(0), EXACT, 0, 1, { F(-1, 19), F(-1, 19) } },
	{ HD_OP_MUL, A(0), EXACT, 0, 1, { F(-1, 1031), F(-1, 1031) } },
	{ HD_OP_SCALE, { .f = { 0.3f } }, EXACT, 0, 1, { F(-1, 1031) } },
	{ HD_OP_BIAS, A(-1), EXACT, 0, 1, { F(-1, 1), F(1) } },
	{ HD_OP_BIAS, A(-1), EXACT, 0, 1, { F(-1, 3, 131), F(131) } },
	{ HD_OP_BIAS, A(1), EXACT, 0, 1, { F(-1, 6, 9, 7), F(6) } },
	{ HD_OP_BIAS_ACT, A(-1, HD_ACT_GELU), PEAK, 8, 4, { F(-1, 3, 131), F(131) } },
	{ HD_OP_BIAS_ACT, A(1, HD_ACT_RELU), PEAK, 8, 1, { F(-1, 6, 9, 7), F(6) } },
#define ACT_CASES(id, alpha, beta, domain, c, gain, c_dx, gain_dx, bits) \
	{ HD_OP_ACT, ACT_ATTR(id, alpha, beta), c ? PEAK : EXACT, c, gain, { F(-1, 1031) } }, \
	{ HD_OP_ACT_DX, ACT_ATTR(id, alpha, beta), c_dx ? PEAK : EXACT, c_dx, gain_dx, \
		{ F(-1, 131), F(-1, 131) } },
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	ACT_CALL(ACT_CASES, id, ACT_UNPACK tests)
#include "graph/acts.def"
	{ HD_OP_MAXPOOL2D, A(2, 2, 2, 2), EXACT, 0, 1, { F(-1, 6, 28, 28) } },
	{ HD_OP_MAXPOOL2D, A(2, 2, 2, 2, 1), EXACT, 0, 1, { F(-1, 2, 9, 71) } },
	{ HD_OP_MAXPOOL2D_DX, A(2, 2, 2, 2, 1), EXACT, 0, 1, { F(-1, 2, 5, 35), F(-1, 2, 9, 71) } },
	{ HD_OP_MAXPOOL2D, A(3, 2, 1, 2), EXACT, 0, 1, { F(-1, 3, 7, 9) } },
	{ HD_OP_MAXPOOL2D_DX, A(2, 2, 2, 2), EXACT, 0, 1, { F(-1, 6, 14, 14), F(-1, 6, 28, 28) } },
	{ HD_OP_MAXPOOL2D_DX, A(3, 2, 1, 2), LINEAR, 8, 1, { F(-1, 3, 5, 4), F(-1, 3, 7, 9) } },
	{ HD_OP_EMBED, A(0), EXACT, 0, 1, { I(-1, 7), F(11, 33) } },
	{ HD_OP_EMBED, A(0), EXACT, 0, 1, { I(-1), F(1, 1) } },
	{ HD_OP_EMBED_DW, A(0), LINEAR, 4, 1, { F(-1, 7, 33), I(-1, 7), F(11, 33) } },
	{ HD_OP_EMBED_DW, A(0), LINEAR, 4, 1, { F(-1, 5, 4), I(-1, 5), F(300, 4) } },
	{ HD_OP_SUM_ROWS, A(-1, 0), LINEAR, 4, 1, { F(-1, 3, 131) } },
	{ HD_OP_SUM_ROWS, A(1, 0), LINEAR, 4, 1, { F(-1, 6, 9, 7) } },
	{ HD_OP_SUM_ROWS, A(0, 2), LINEAR, 4, 1, { F(-1, 7, 33) } },
	{ HD_OP_SUM_ROWS, A(-1, 0), LINEAR, 4, 1, { F(-1, 1) } },
	{ HD_OP_LAYERNORM, { .f = { 1e-5f } }, PEAK, 16, 1, { F(-1, 3, 131), F(131), F(131) } },
	{ HD_OP_LAYERNORM, { .f = { 1e-5f } }, PEAK, 16, 8, { F(-1, 64), F(64), F(64) } },
	{ HD_OP_ADD_LAYERNORM, { .f = { 1e-5f } }, PEAK, 16, 1, { F(-1, 3, 67), F(-1, 3, 67), F(67), F(67) } },
	{ HD_OP_LAYERNORM_DX, A(0), PEAK, 16, 1, { F(-1, 3, 131), F(-1, 3, 131), F(131), F(-1, 3, 2) } },
	{ HD_OP_LAYERNORM_DG, A(0), PEAK, 16, 1, { F(-1, 3, 131), F(-1, 3, 131), F(-1, 3, 2) } },
	{ HD_OP_SOFTMAX_XENT, A(0), PEAK, 16, 1, { F(-1, 10), I(-1) } },
	{ HD_OP_SOFTMAX_XENT, A(0), PEAK, 16, 60, { F(-1, 3, 257), I(-1, 3) } },
	{ HD_OP_SOFTMAX_XENT_DX, A(0), PEAK, 16, 1, { F(-1, 10), I(-1), F(-1) } },
	{ HD_OP_SOFTMAX_XENT_DX, A(0), PEAK, 16, 8, { F(-1, 3, 257), I(-1, 3), F(-1, 3) } },
	{ HD_OP_MSE, A(0), PEAK, 8, 1, { F(-1, 37), F(-1, 37) } },
	{ HD_OP_MSE_DX, A(0), PEAK, 8, 1, { F(-1, 37), F(-1, 37) } },
	{ HD_OP_SUM64, A(0), EXACT, 0, 1, { F(-1, 37) } },
	{ HD_OP_SUM64, A(0), EXACT, 0, 1, { F(-1) } },
	{ HD_OP_COUNT64, A(0), EXACT, 0, 1, { I(-1, 3) } },
	{ HD_OP_COUNT64, A(0), EXACT, 0, 1, { F(-1, 3) } },
	{ HD_OP_DROPOUT, { .f = { 0.1f } }, PEAK, 4, 1, { F(-1, 37) } },
	{ HD_OP_DROPOUT, { .f = { 0.5f } }, PEAK, 4, 1, { F(-3, 1031) } },
	{ HD_OP_DROPOUT, { .f = { 0.0f } }, EXACT, 0, 1, { F(-1, 37) } },
	{ HD_OP_DROPOUT_DX, { .f = { 0.5f } }, PEAK, 4, 1, { F(-1, 1031) } },
	{ HD_OP_DROPOUT, { .i = { 2, 7 }, .f = { 0.5f } }, PEAK, 4, 1, { F(-1, 3, 35) } },
	{ HD_OP_DROPOUT, { .i = { 1, 3 }, .f = { 0.5f } }, PEAK, 4, 1, { F(-1, 2, 1031) } },
	{ HD_OP_DROPOUT_DX, { .i = { 0, 2 }, .f = { 0.5f } }, PEAK, 4, 1, { F(-1, 1) } },
#include "tests/conform_batch.inc.h"
#include "tests/conform_blocked.inc.h"
#include "tests/conform_images.inc.h"
#include "tests/conform_sequences.inc.h"
#include "tests/conform_tensors.inc.h"
#define OP_CASES
#include "graph/ops.def"
};
enum { NCASES = sizeof cases / sizeof cases[0], NROWS = 6, THREADS = 4 };

/* the largest first, as programs want it */
static const uint64_t some_rows[NROWS] = { 16, 13, 7, 3, 2, 1 };
static const struct hd_draw draw = { .seed = 5, .step = 3, .vn = 2, .row0 = 1 };

struct device_row { const char *name, *kind; struct hd_device_spec spec; };
static const struct device_row device_rows[] = {
	{ "reference",    "reference", { .nthreads = 1 } },
	{ "cpu-portable", "cpu", { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE, .path = "portable" } },
	{ "cpu-avx2",     "cpu", { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE, .path = "avx2" } },
	{ "cpu-avx512",   "cpu", { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE, .path = "avx512" } },
	{ "cpu-library",  "cpu", { .nthreads = 1, .kernels = HD_KERNELS_LIBRARY } },
};
enum { NDEVICES = sizeof device_rows / sizeof device_rows[0] };

static bool selected(const struct device_row *row)
{
	const char *only = getenv("HD_TEST_DEVICE");

	return !only || !only[0] || strcmp(only, row->name) == 0;
}

/* NULL: this machine has it not. */
static struct hd_device *open_device(const struct device_row *row, uint32_t nthreads)
{
	struct hd_device_spec spec = row->spec;
	struct hd_device *device = NULL;
	struct hd_diag diag = { "" };

	spec.nthreads = nthreads;
	enum hd_err err = hd_device_create(&device, row->kind, &spec, &diag);
	CHECK(err == HD_OK || err == HD_E_REFUSED, "%s: %s", row->name, diag.text);
	if (err)
		print_message("skipped %s: %s\n", row->name, diag.text);
	return device;
}

/* One case on one number of rows: operands, and outputs by whoever is asked. */
struct conform_call {
	const struct op_case *of;
	const struct hd_single *single;
	const struct hd_call *call;
	uint64_t rows;
	void *in[HD_MAX_IN];
};

static size_t bytes_of(const struct hd_operand *o) { return o->elems *
	hd_dtype_bytes((enum hd_dtype)o->dtype); }

static void run(struct hd_device *device, const struct conform_call *q, void *const *in, void **out)
{
	struct hd_diag diag = { "" };

	for (uint8_t i = 0; i < q->call->nout; i++) {
		out[i] = malloc(bytes_of(&q->call->out[i]) + 1);
		/* not numbers: what is not written shows */
		memset(out[i], 0xFF, bytes_of(&q->call->out[i]));
	}
	enum hd_err err = hd_single_run(device, q->single, q->rows, &draw, (const void *const *)in, out,
		&diag);
	CHECK(err == HD_OK, "%s: %s", hd_ops[q->of->op].name, diag.text);
}

static void drop(const struct conform_call *q, void **out)
{
	for (uint8_t i = 0; i < q->call->nout; i++)
		free(out[i]);
}

/* Operands that other ops made must fit the rest: statistics of x, attention's y and lse. */
static void forward_fill(struct hd_device *reference, const struct conform_call *q, uint16_t forward,
	struct hd_attr attr,
	uint8_t nin, const uint8_t *from, uint8_t nout, const uint8_t *into)
{
	struct hd_value in[HD_MAX_IN] = { 0 };
	void *operand[HD_MAX_IN], *out[HD_MAX_OUT];
	struct hd_arena arena;
	struct hd_single single;
	struct hd_diag diag = { "" };
	float *beta = calloc(4096, sizeof *beta);

	hd_arena_init(&arena, 0);
	for (uint8_t i = 0; i < nin; i++) {
		const struct hd_operand *o = &q->call->in[from[i] == 255 ? 2 : from[i]];
		in[i] = (struct hd_value){ .rank = o->rank, .dtype = o->dtype };
		memcpy(in[i].dim, o->dim, sizeof in[i].dim);
		if (from[i] == 255) {
			in[i].rank = 1;
			in[i].dim[0] = forward == HD_OP_GROUPNORM ? q->call->in[1].dim[1] :
				hd_cols(&q->call->in[1]);
		}
		operand[i] = from[i] == 255 ? beta : q->in[from[i]];
	}
	struct hd_device *own = NULL;
	CHECK(hd_device_create(&own, reference->ops->name, &reference->spec, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_single_make(&single, forward, nin, in, &attr, &(uint64_t){ 1 }, 1, &arena, &diag) == HD_OK,
		"%s", diag.text);
	struct conform_call f = { q->of, &single, &single.program.calls[0][0], 1, { 0 } };
	run(own, &f, operand, out);
	for (uint8_t i = 0; i < nout; i++)
		if (into[i] != 255)
			memcpy(q->in[into[i]], out[i], bytes_of(&q->call->in[into[i]]));
	drop(&f, out);
	hd_device_destroy(own);
	hd_arena_finish(&arena);
	free(beta);
}

static void complete(struct hd_device *reference, const struct conform_call *q)
{
	const struct hd_attr eps = { .f = { 1e-5f } }, groups = { .i = { q->of->attr.i[0] }, .f = { 1e-5f } };

	switch (q->of->op) {
	case HD_OP_ATTENTION_DX:
		forward_fill(reference, q, HD_OP_ATTENTION, q->of->attr, 1, (uint8_t[]){ 1 }, 2,
			(uint8_t[]){ 2, 3 });
		break;
	case HD_OP_ATTEND_DX:
		forward_fill(reference, q, HD_OP_ATTEND, q->of->attr, 3, (uint8_t[]){ 1, 2, 3 }, 2,
			(uint8_t[]){ 4, 5 });
		break;
	case HD_OP_ATTEND_PAD_DX:
		forward_fill(reference, q, HD_OP_ATTEND_PAD, q->of->attr, 4, (uint8_t[]){ 1, 2, 3, 6 }, 2,
			(uint8_t[]){ 4, 5 });
		break;
	case HD_OP_LAYERNORM_DX:
		forward_fill(reference, q, HD_OP_LAYERNORM, eps, 3, (uint8_t[]){ 1, 2, 255 }, 2,
			(uint8_t[]){ 255, 3 });
		break;
	case HD_OP_LAYERNORM_DG:
		forward_fill(reference, q, HD_OP_LAYERNORM, eps, 3, (uint8_t[]){ 1, 255, 255 }, 2,
			(uint8_t[]){ 255, 2 });
		break;
	case HD_OP_BATCHNORM:                                       /* a variance is not negative */
		for (uint64_t e = 0; e < q->call->in[4].elems; e++)
			((float *)q->in[4])[e] = fabsf(((float *)q->in[4])[e]);
		break;
	/* nor a spread; every other channel has too few values */
	case HD_OP_BATCHNORM_APPLY:
		for (uint64_t c = 0, n = q->call->in[5].elems / 3; c < n; c++) {
			double *moments = q->in[5];
			moments[c] = c % 2 ? 40 : 1;
			moments[2 * n + c] = 40 * fabs(moments[2 * n + c]);
		}
		break;
	case HD_OP_GROUPNORM_DX:
		forward_fill(reference, q, HD_OP_GROUPNORM, groups, 3, (uint8_t[]){ 1, 2, 2 }, 2,
			(uint8_t[]){ 255, 3 });
		break;
	case HD_OP_GROUPNORM_DG:
		forward_fill(reference, q, HD_OP_GROUPNORM, groups, 3, (uint8_t[]){ 1, 255, 255 }, 2,
			(uint8_t[]){ 255, 2 });
		break;
	case HD_OP_SOFTMAX_XENT_DX:
		forward_fill(reference, q, HD_OP_SOFTMAX_XENT, q->of->attr, 2, (uint8_t[]){ 0, 1 }, 2,
			(uint8_t[]){ 255, 2 });
		break;
	case HD_OP_CLASS_XENT_DX:
		forward_fill(reference, q, HD_OP_CLASS_XENT, q->of->attr, 3, (uint8_t[]){ 0, 1, 3 }, 2,
			(uint8_t[]){ 255, 2 });
		break;
	default:
		break;
	}
}

static void pose(struct conform_call *q, struct hd_device *reference)
{
	for (uint8_t i = 0; i < q->call->nin; i++) {
		const struct hd_operand *o = &q->call->in[i];
		q->in[i] = malloc(bytes_of(o) + 1);
		hd_single_fill(q->call, i, 11 + q->rows, q->in[i]);
		for (uint64_t e = 0; e < o->elems; e++) {
			if (o->dtype == HD_F32)
				((float *)q->in[i])[e] *= (float)q->of->gain;
			else if (o->dtype == HD_I32 && q->of->op != HD_OP_EMBED &&
				q->of->op != HD_OP_EMBED_DW && e % 5 == 4)
				((int32_t *)q->in[i])[e] = -1;         /* masked */
		}
	}
	complete(reference, q);
}

static double element(const struct hd_operand *o, const void *at, uint64_t e)
{
	switch (o->dtype) {
	case HD_F64: return ((const double *)at)[e];
	case HD_I32: return (double)((const int32_t *)at)[e];
	case HD_I64: return (double)((const int64_t *)at)[e];
	case HD_U8:  return (double)((const uint8_t *)at)[e];
	default:     return (double)((const float *)at)[e];
	}
}

static double magnitude(const struct conform_call *q, const struct hd_operand *o, const void *at)
{
	double most = q->of->gain;

	for (uint64_t e = 0; e < o->elems && (o->dtype == HD_F32 || o->dtype == HD_F64); e++)
		most = fmax(most, fabs(element(o, at, e)));
	return most;
}

static double terms(const struct conform_call *q)
{
	double flops = hd_ops[q->of->op].cost(&q->single->graph, &q->single->graph.node[0], q->rows).flops;
	double most = q->of->judge == LINEAR || hd_ops[q->of->op].class == HD_OP_DENSE ? flops / 2 : 0;

	for (uint8_t i = 0; i < q->call->nin; i++)
		most = fmax(most, (double)q->call->in[i].elems);
	return fmax(1, most / (double)q->call->out[0].elems);
}

static void judge(const struct conform_call *q, const char *device, void **ref, void **got, void **abs_ref)
{
	const struct op_case *c = q->of;

	for (uint8_t k = 0; k < q->call->nout; k++) {
		const struct hd_operand *o = &q->call->out[k];
		double factor = 0x1p-24 * (c->c + 2 * sqrt(terms(q))), peak = magnitude(q, o, ref[k]);
		if (o->dtype != HD_F32 && (o->dtype != HD_F64 || c->judge == EXACT)) {
			CHECK(memcmp(ref[k], got[k], bytes_of(o)) == 0, "%s: %s, %llu rows", device,
				hd_ops[c->op].name, (unsigned long long)q->rows);
			continue;
		}
		for (uint64_t e = 0; e < o->elems; e++) {
			double r = element(o, ref[k], e), g = element(o, got[k], e);
			double m = c->judge == EXACT ? 0 : c->judge == PEAK ? peak :
				(double)((float *)abs_ref[k])[e];
			bool same = fabs(r - g) <= factor * m || (isnan(r) && isnan(g));
			CHECK(same,
				"%s: case %d (%s), %llu rows, output %u, element %llu: %.9g, not %.9g "
				"(tolerance %.3g)",
				device, (int)(c - cases), hd_ops[c->op].name, (unsigned long long)q->rows, k,
				(unsigned long long)e, g, r, factor * m);
		}
	}
}

static void ask_absolute(struct hd_device *reference, const struct conform_call *q, void **out)
{
	struct conform_call absolute = *q;

	for (uint8_t i = 0; i < q->call->nin; i++) {
		absolute.in[i] = malloc(bytes_of(&q->call->in[i]) + 1);
		memcpy(absolute.in[i], q->in[i], bytes_of(&q->call->in[i]));
		bool picks = q->of->op == HD_OP_MAXPOOL2D_DX && i == 1;    /* chooses, is not summed */
		for (uint64_t e = 0; e < q->call->in[i].elems && q->call->in[i].dtype == HD_F32 && !picks;
			e++)
			((float *)absolute.in[i])[e] = fabsf(((float *)absolute.in[i])[e]);
	}
	run(reference, &absolute, absolute.in, out);
	for (uint8_t i = 0; i < q->call->nin; i++)
		free(absolute.in[i]);
}

/* A few cases are so large that the reference and the evaluator would take most of this file's time for them;
 * of these the smaller numbers of rows are asked. What numbers of rows do to a kernel the other cases
 * show. */
static const double MOST_FLOPS = SANITIZED ? 1e6 : 5e7;

/* Calls `see` with every question. Graphs live until the devices that loaded them are gone. */
static void each_question(struct hd_device *reference, struct hd_arena *arena,
	void (*see)(const struct conform_call *q, uint32_t iquestion, void *user), void *user)
{
	for (uint32_t i = 0; i < NCASES; i++) {
		const struct op_case *c = &cases[i];
		struct hd_single *single = hd_arena_take(arena, 1, sizeof *single);
		struct hd_diag diag = { "" };

		if (hd_ops[c->op].class == HD_OP_VIEW)
			/* nothing runs: addresses are program_test's */
			continue;
		enum hd_err err = hd_single_make(single, c->op, hd_ops[c->op].nin, c->in, &c->attr, some_rows,
			NROWS, arena, &diag);
		CHECK(err == HD_OK, "case %u (%s): %s", i, hd_ops[c->op].name, diag.text);
		for (uint32_t r = 0; r < NROWS; r++) {
			struct conform_call q = { c, single, &single->program.calls[r][0], some_rows[r],
				{ 0 } };
			if (r + 1 < NROWS && hd_ops[c->op].cost(&single->graph, &single->graph.node[0],
				q.rows).flops > MOST_FLOPS)
				continue;
			pose(&q, reference);
			see(&q, i * NROWS + r, user);
			for (uint8_t k = 0; k < q.call->nin; k++)
				free(q.in[k]);
		}
	}
}

struct trial {
	/* with 1 to THREADS threads; NULL: not here, or not selected */
	struct hd_device *device[NDEVICES][THREADS];
	struct hd_hash hash[NDEVICES][NCASES * NROWS];    /* of one thread's results */
};

/* Rows that a wave would take together: 16 at once must be 13 and 3, bit for bit (kernel.h, rowwise). */
static void split_rows(const struct device_row *row, struct hd_device *device, const struct conform_call *q,
	void **whole)
{
	static const uint64_t split[] = { 13, 3 };
	bool ours = strcmp(row->kind, "cpu") == 0 && row->spec.kernels == HD_KERNELS_PORTABLE;

	if (q->rows != some_rows[0] || !ours || !q->single->program.together[0] ||
	    !hd_cpu_table(HD_KERNELS_PORTABLE, device->path)[q->of->op].kernel.rowwise)
		return;
	for (uint64_t first = 0, i = 0; i < 2; first += split[i++]) {
		struct conform_call part = *q;
		void *out[HD_MAX_OUT];
		part.rows = split[i];
		part.call = &q->single->program.calls[hd_program_variant(&q->single->program, split[i])][0];
		for (uint8_t k = 0; k < q->call->nin; k++)
			if (q->of->in[k].dim[0] < 0)
				part.in[k] = (uint8_t *)q->in[k] + bytes_of(&q->call->in[k]) / q->rows *
					first;
		run(device, &part, part.in, out);
		for (uint8_t k = 0; k < q->call->nout; k++)
			CHECK(memcmp((uint8_t *)whole[k] + bytes_of(&q->call->out[k]) / q->rows * first,
				out[k], bytes_of(&part.call->out[k])) == 0,
				"%s: case %d (%s): rows %llu and on have other bits alone", row->name,
				(int)(q->of - cases), hd_ops[q->of->op].name,
				(unsigned long long)first);
		drop(&part, out);
	}
}

/* One device's answer against the reference's, and against its own with more threads: each case has more
 * numbers of rows than there are numbers of threads, so it meets all of these. */
static void try_device(struct trial *t, uint32_t d, const struct conform_call *q, uint32_t iquestion,
	void **ref,
	void **absolute)
{
	const struct device_row *row = &device_rows[d];
	uint32_t more = 1 + iquestion % (THREADS - 1);
	void *first[HD_MAX_OUT], *many[HD_MAX_OUT], **one = d ? first : ref;
	struct hd_hasher hasher;

	if (d) {
		run(t->device[d][0], q, q->in, one);
		judge(q, row->name, ref, one, absolute);
	}
	split_rows(row, t->device[d][0], q, one);
	run(t->device[d][more], q, q->in, many);
	hd_hasher_init(&hasher);
	for (uint8_t k = 0; k < q->call->nout; k++) {
		CHECK(memcmp(one[k], many[k], bytes_of(&q->call->out[k])) == 0,
			"%s: case %d (%s), %llu rows: %u threads give other bits",
			row->name, (int)(q->of - cases), hd_ops[q->of->op].name, (unsigned long long)q->rows,
			more + 1);
		hd_hasher_add(&hasher, one[k], bytes_of(&q->call->out[k]));
	}
	t->hash[d][iquestion] = hd_hasher_end(&hasher);
	drop(q, many);
	if (d)
		drop(q, one);
}

static void try_all(const struct conform_call *q, uint32_t iquestion, void *user)
{
	struct trial *t = user;
	void *ref[HD_MAX_OUT], *absolute[HD_MAX_OUT];

	run(t->device[0][0], q, q->in, ref);
	if (q->of->judge == LINEAR)
		ask_absolute(t->device[0][0], q, absolute);
	for (uint32_t d = 0; d < NDEVICES; d++)
		if (t->device[d][1])
			try_device(t, d, q, iquestion, ref, absolute);
	if (q->of->judge == LINEAR)
		drop(q, absolute);
	drop(q, ref);
}

static void every_kernel_agrees_with_the_reference_and_with_itself_on_any_number_of_threads(void **state)
{
	static struct trial t;
	struct hd_arena arena;
	uint32_t ran = 0;
	(void)state;

	hd_arena_init(&arena, 0);
	for (uint32_t d = 0; d < NDEVICES; d++) {
		bool wanted = selected(&device_rows[d]);
		ran += wanted;
		if (!wanted && d > 0)
			continue;
		/* the reference is needed in any case */
		t.device[d][0] = open_device(&device_rows[d], 1);
		for (uint32_t n = 1; n < THREADS && wanted && t.device[d][0]; n++)
			t.device[d][n] = open_device(&device_rows[d], n + 1);
	}
	CHECK(ran > 0, "HD_TEST_DEVICE names no row");
	each_question(t.device[0][0], &arena, try_all, &t);
	for (uint32_t d = 2; d <= 3; d++)
		for (uint32_t i = 0; i < NCASES * NROWS && t.device[1][1] && t.device[d][1]; i++)
			CHECK(hd_hash_same(t.hash[1][i], t.hash[d][i]),
				"case %u (%s), %llu rows: %s and cpu-portable give other bits", i / NROWS,
				hd_ops[cases[i / NROWS].op].name, (unsigned long long)some_rows[i % NROWS],
				device_rows[d].name);
	for (uint32_t d = 0; d < NDEVICES; d++)
		for (uint32_t n = 0; n < THREADS; n++)
			hd_device_destroy(t.device[d][n]);
	hd_arena_finish(&arena);
}

static bool evaluated(uint16_t op)
{
	switch (op) {
	case HD_OP_CONV2D_DX: case HD_OP_CONV2D_DW: case HD_OP_CONV2D_B_DX: case HD_OP_CONV2D_B_DW:
	case HD_OP_ATTENTION_DX: case HD_OP_ACT_DX: case HD_OP_MAXPOOL2D_DX:
	case HD_OP_EMBED_DW: case HD_OP_LAYERNORM_DX: case HD_OP_LAYERNORM_DG: case HD_OP_SOFTMAX_XENT_DX:
	case HD_OP_MSE_DX: case HD_OP_CLASS_XENT_DX:
	case HD_OP_DROPOUT_DX: case HD_OP_BATCHNORM_DX: case HD_OP_BATCHNORM_SUMS: case HD_OP_BATCHNORM_DP:
	case HD_OP_BATCHNORM_APPLY_DX:
	case HD_OP_AVGPOOL2D_DX: case HD_OP_GROUPNORM_DX: case HD_OP_GROUPNORM_DG:
	case HD_OP_RMSNORM_DX: case HD_OP_RMSNORM_DG: case HD_OP_SWIGLU_DX: case HD_OP_ATTEND_DX:
	case HD_OP_ATTEND_PAD_DX: case HD_OP_LSTM_DX:
	case HD_OP_GRU_DX: case HD_OP_RECUR_DW:
	case HD_OP_SLICE_DX: case HD_OP_SOFTMAX_DX: case HD_OP_LOG_SOFTMAX_DX: case HD_OP_EDGE_SOFTMAX_DX:
		return false;
	default:
		return true;
	}
}

/* The reference rounds once, when it stores: one unit in the last place, of the largest for sums that
 * cancel. */
static void evaluate(const struct conform_call *q, uint32_t iquestion, void *user)
{
	struct hd_device *reference = user;
	void *ref[HD_MAX_OUT];
	struct eval64 ev;
	(void)iquestion;

	if (!evaluated(q->of->op))
		return;
	run(reference, q, q->in, ref);
	eval64_make(&ev, &q->single->graph, q->rows);
	ev.draw = draw;
	for (uint8_t i = 0; i < q->call->nin; i++)
		for (uint64_t e = 0; e < q->call->in[i].elems; e++)
			ev.at[q->single->graph.node[0].in[i]][e] = element(&q->call->in[i], q->in[i], e);
	eval64_run(&ev);
	for (uint8_t k = 0; k < q->call->nout; k++) {
		double slack = 0x1p-40 * magnitude(q, &q->call->out[k], ref[k]);
		if (q->of->op == HD_OP_ADD_LAYERNORM || q->of->op == HD_OP_ADD_RMSNORM)
			/* its sum s is stored as f32 before the norm */
			slack = 0x1p-18;
		if (q->of->op == HD_OP_BIAS_ACT || q->of->op == HD_OP_DROPOUT)
			slack = 0x1p-22 * q->of->gain;                     /* computed in f32, as defined */
		for (uint64_t e = 0; e < q->call->out[k].elems; e++) {
			double want = ev.at[q->single->graph.node[0].out + k][e],
				got = element(&q->call->out[k], ref[k], e);
			bool same = fabs(want - got) <= 0x1p-24 * fabs(want) * 1.001 + slack ||
				(isnan(want) && isnan(got));
			CHECK(same, "case %d (%s), %llu rows, output %u, element %llu: %.17g, not %.17g",
				(int)(q->of - cases), hd_ops[q->of->op].name, (unsigned long long)q->rows, k,
				(unsigned long long)e, got, want);
		}
	}
	eval64_finish(&ev);
	drop(q, ref);
}

static void the_reference_agrees_with_the_evaluator_to_one_rounding(void **state)
{
	struct hd_device *reference;
	struct hd_arena arena;
	(void)state;

	if (!selected(&device_rows[0]))
		SKIP("HD_TEST_DEVICE leaves the reference out");
	reference = open_device(&device_rows[0], 1);
	hd_arena_init(&arena, 0);
	each_question(reference, &arena, evaluate, reference);
	hd_device_destroy(reference);
	hd_arena_finish(&arena);
}

static void every_op_has_a_case(void **state)
{
	(void)state;
	for (uint16_t op = 0; op < HD_NOPS; op++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < NCASES; i++)
			n += cases[i].op == op;
		CHECK(n > 0, "op %s has no case: add one to the table of this file", hd_ops[op].name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_has_a_case),
		cmocka_unit_test(the_reference_agrees_with_the_evaluator_to_one_rounding),
		cmocka_unit_test(
			every_kernel_agrees_with_the_reference_and_with_itself_on_any_number_of_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
