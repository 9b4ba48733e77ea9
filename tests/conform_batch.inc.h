/* conform_batch.inc.h -- cases of src/device/conform_test.c for the family of op_batch.h; lines of its
 * table. */
#define BATCHNORM(axis, infer, eps) { .i = { axis, infer }, .f = { eps } }
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0, 1e-5f), PEAK, 16, 1, { F(-1, 5, 7, 9), F(5), F(5), F(5), F(5) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0, 1e-5f), PEAK, 16, 8, { F(-1, 3, 4, 8), F(3), F(3), F(3), F(3) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 1, 1e-5f), PEAK, 16, 1, { F(-1, 5, 7, 9), F(5), F(5), F(5), F(5) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0, 1e-5f), PEAK, 16, 1, { F(-1, 37), F(37), F(37), F(37), F(37) } },
	{ HD_OP_BATCHNORM, BATCHNORM(-1, 0, 1e-3f), PEAK, 16, 1, { F(-3, 19), F(19), F(19), F(19), F(19) } },
	{ HD_OP_BATCHNORM, BATCHNORM(-1, 0, 1e-5f), PEAK, 16, 1, { F(-1, 3, 131), F(131), F(131), F(131), F(131) } },
	{ HD_OP_BATCHNORM, BATCHNORM(16, 0, 1e-5f), PEAK, 16, 1, { F(-1, 2, 5, 3, 16), F(32), F(32), F(32), F(32) } },
	{ HD_OP_BATCHNORM_DX, A(1), PEAK, 16, 1, { F(-1, 5, 7, 9), F(-1, 5, 7, 9), F(5), F(3, 5) } },
	{ HD_OP_BATCHNORM_DX, A(-1), PEAK, 16, 1, { F(-1, 3, 131), F(-1, 3, 131), F(131), F(3, 131) } },
	{ HD_OP_BATCHNORM_DX, A(16), PEAK, 16, 1, { F(-1, 2, 5, 3, 16), F(-1, 2, 5, 3, 16), F(32), F(3, 32) } },
	{ HD_OP_BATCHNORM_SUMS, A(1), PEAK, 16, 1, { F(-1, 5, 4, 8), F(-1, 5, 4, 8), F(3, 5) } },
	{ HD_OP_BATCHNORM_SUMS, A(1), PEAK, 16, 1, { F(-1, 37), F(-1, 37), F(3, 37) } },
	{ HD_OP_BATCHNORM_DP, A(0), EXACT, 0, 1, { { .dim = { 2, 37 }, .rank = 2, .dtype = HD_F64 } } },
	{ HD_OP_BATCHNORM_DP, A(1), EXACT, 0, 1, { { .dim = { 2, 5 }, .rank = 2, .dtype = HD_F64 } } },
#define D(rows, cols) { .dim = { rows, cols }, .rank = 2, .dtype = HD_F64 }
	{ HD_OP_BATCHNORM_MOMENTS, A(1), PEAK, 4, 1, { F(-1, 5, 7, 9) } },
	{ HD_OP_BATCHNORM_MOMENTS, A(-1), PEAK, 4, 1, { F(-1, 37) } },
	{ HD_OP_BATCHNORM_SYNC, A(0), EXACT, 0, 1, { D(2, 37) } },
	{ HD_OP_BATCHNORM_SYNC, A(1), EXACT, 0, 1, { D(3, 5) } },
	{ HD_OP_BATCHNORM_APPLY, { .i = { 1 }, .f = { 1.5f } }, PEAK, 16, 4, { F(-1, 5, 7, 9), F(5), F(5), F(5), F(5), D(3, 5) } },
	{ HD_OP_BATCHNORM_APPLY, { .i = { 16 }, .f = { 1.5f } }, PEAK, 16, 1, { F(-1, 2, 5, 3, 16), F(32), F(32), F(32), F(32), D(3, 32) } },
	{ HD_OP_BATCHNORM_APPLY_DX, A(1), PEAK, 16, 1, { F(-1, 5, 7, 9), F(-1, 5, 7, 9), F(5), F(3, 5), D(2, 5) } },
	{ HD_OP_BATCHNORM_APPLY_DX, A(-1), PEAK, 16, 1, { F(-1, 3, 131), F(-1, 3, 131), F(131), F(3, 131), D(2, 131) } },
#undef D
#undef BATCHNORM
