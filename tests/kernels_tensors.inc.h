/* kernels_tensors.inc.h -- examples of src/device/cpu/kernels_test.c for the family of op_tensors.h; lines
 * of its table. */
#define T1(id, at, a, y, n) { HD_OP_##id, at, { { .dim = a } }, { { .dim = y } }, false, n }
#define T2(id, at, a, b, y, n) { HD_OP_##id, at, { { .dim = a }, { .dim = b } }, { { .dim = y } }, false, n }
#define S(...) { __VA_ARGS__ }
#define IDS(n, ...) { .dim = { __VA_ARGS__ }, .ids = n, .masked = true }
	T2(ADD, ATTR(0), S(5, 1, 70), S(3, 1), S(5, 3, 70), 1),
		T2(SUB, ATTR(0), S(33), S(40, 1), S(40, 33), 1),
	T2(MUL, ATTR(0), S(9, 2, 600, 3), S(2, 1, 3), S(9, 2, 600, 3), 1),
	T2(DIV, ATTR(0), S(300, 70), S(70), S(300, 70), 1),
	T2(MAXIMUM, ATTR(0), S(70, 33), S(1), S(70, 33), 1),
	T2(MINIMUM, ATTR(0), S(70, 33), S(70, 33), S(70, 33), 1),
	T2(LESS, ATTR(0), S(70, 33), S(70, 33), S(70, 33), 1),
	T2(LESS_EQ, ATTR(0), S(70, 33), S(70, 1), S(70, 33), 1),
	T2(EQUAL, ATTR(0), S(70, 33), S(33), S(70, 33), 1),
	{ HD_OP_WHERE, ATTR(0), { IDS(2, 70, 1), { .dim = { 33 } }, { .dim = { 70, 33 } } }, { { .dim = { 70, 33 } } }, false, 1 },
	T1(EXPAND, ATTR(7, 5, 600), S(5, 1), S(7, 5, 600), 1),
	T1(REDUCE_SUM, ATTR(2), S(70, 133), S(70), 133), T1(REDUCE_SUM, ATTR(1), S(200, 70), S(70), 200),
	T1(REDUCE_SUM, ATTR(0xa), S(5, 70, 6, 7), S(5, 6), 490),
	T1(REDUCE_SUM, ATTR(5), S(9, 4, 70, 3), S(4, 3), 630),
	T1(REDUCE_MEAN, ATTR(6, 6), S(10, 7, 9, 33), S(10, 1, 1, 33), 63),
	T1(REDUCE_MAX, ATTR(2), S(70, 133), S(70), 1),
	T1(REDUCE_MAX, ATTR(1), S(133, 70), S(70), 1), T1(REDUCE_MIN, ATTR(4), S(7, 5, 33), S(7, 5), 1),
	T1(REDUCE_PROD, ATTR(2), S(70, 33), S(70), 33), T1(REDUCE_PROD, ATTR(1), S(133, 70), S(70), 133),
	T1(SOFTMAX, ATTR(0), S(70, 133), S(70, 133), 133), T2(SOFTMAX_DX, ATTR(0), S(70, 133), S(70, 133),
	S(70, 133), 400),
	T1(LOG_SOFTMAX, ATTR(0), S(70, 133), S(70, 133), 133),
	T2(LOG_SOFTMAX_DX, ATTR(0), S(70, 133), S(70, 133), S(70, 133), 400),
	T1(PERMUTE, ATTR(0, 2, 1, 3), S(9, 40, 4, 33), S(9, 4, 40, 33), 1),
	T1(PERMUTE, ATTR(1, 0), S(133, 300), S(300, 133), 1),
	T1(SLICE, ATTR(1, 3, 2, 40), S(70, 133, 5), S(70, 40, 5), 1),
	T2(SLICE_DX, ATTR(1, 80, -2, 40), S(70, 40, 5), S(70, 133, 5), S(70, 133, 5), 1),
	T2(CONCAT, ATTR(1), S(300, 7, 5), S(300, 20, 5), S(300, 27, 5), 1),
	{ HD_OP_PAD, { .i = { 1, 2, 3 }, .f = { 0.5f } }, { { .dim = { 300, 70 } } }, { { .dim = { 300, 75 } } }, false, 1 },
	{ HD_OP_GATHER, ATTR(1), { { .dim = { 70, 9, 33 } }, IDS(9, 40) }, { { .dim = { 70, 40, 33 } } }, false, 1 },
	{ HD_OP_SCATTER_ADD, ATTR(1), { { .dim = { 7, 40, 133 } }, IDS(9, 40), { .dim = { 7, 9, 133 } } }, { { .dim = { 7, 9, 133 } } }, false, 40 },
	{ HD_OP_ONE_HOT, ATTR(9), { IDS(9, 5000) }, { { .dim = { 5000, 9 } } }, false, 1 },
	{ HD_OP_ARGMAX, ATTR(1), { { .dim = { 300, 133 } } }, { { .dim = { 300 }, .ids = 1 } }, false, 1 },
	{ HD_OP_CAST, ATTR(HD_I32), { { .dim = { 300, 133 } } }, { { .dim = { 300, 133 }, .ids = 1 } }, false, 1 },
	T2(CONTRACT, ATTR(0, 0), S(3, 4, 33, 17), S(4, 17, 50), S(3, 4, 33, 50), 17),
	T2(CONTRACT, ATTR(0, 1), S(5, 7, 64), S(5, 300, 64), S(5, 7, 300), 64),
	T2(CONTRACT, ATTR(1, 0), S(64, 9), S(3, 64, 5), S(3, 9, 5), 64),
	T2(CONTRACT, ATTR(1, 1), S(2, 64, 9), S(2, 5, 64), S(2, 9, 5), 64),
#define OP_EXAMPLES
#include "graph/ops.def"
#undef T1
#undef T2
#undef S
#undef IDS
