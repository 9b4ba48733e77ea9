/* gradient_batch.inc.h -- cases of src/device/gradient_test.c for the family of op_batch.h; lines of its
 * table. */
/* eps above 1: the running variance is drawn from [-1, 1). */
#define BATCHNORM(axis, infer) { .i = { axis, infer }, .f = { 1.5f } }
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0), 1, { F(3, 2, 2, 3), F(2), F(2), X(2), X(2) } },
	{ HD_OP_BATCHNORM, BATCHNORM(-1, 0), 1, { F(5, 3), F(3), F(3), X(3), X(3) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0), 1, { X(5, 3), F(3), F(3), X(3), X(3) } },
	{ HD_OP_BATCHNORM, BATCHNORM(16, 0), 1, { F(2, 1, 2, 2, 16), F(16), F(16), X(16), X(16) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 1), 1, { F(3, 2, 2, 3), F(2), F(2), X(2), X(2) } },
	{ HD_OP_BATCHNORM, BATCHNORM(1, 0), 1, { F(1, 3), F(3), F(3), X(3), X(3) } },
	{ HD_OP_BATCHNORM_APPLY, { .i = { 1 }, .f = { 1.5f } }, 1, { F(3, 2, 2, 3), F(2), F(2), X(2), X(2) } },
	{ HD_OP_BATCHNORM_APPLY, { .i = { -1 }, .f = { 1.5f } }, 1, { X(5, 3), F(3), F(3), X(3), X(3) } },
#undef BATCHNORM
