/* op_batch.h -- normalisation over the batch: moments per virtual node, running statistics.
 * Lines of the op table; op.h joins the families and says what the columns mean.
 *
 * `axis` says where the channels of x stand: -1 the last extent, 1 extent 1, 16 blocked images
 * [N,C/16,H,W,16]. A part is what one call sees: a virtual node, or a slice of one.
 *
 * stats f32 [3,C]: mean, 1/deviation, and 1/n: 0 where the running statistics were used, so that
 * the same gradient serves both. moments f64 [3,C]: n, mean, sum of squared distances from it.
 * A part with fewer than 2 values per channel uses the running statistics and contributes n = 0, as
 * does every part with infer=1.
 *
 * Over the global batch (model.bn: global, hd_graph_globalize()) the op falls into pieces, so that the parts
 * may be summed between them: moments, sync, apply; backward: sums, sync, apply_dx. A device's sync is a
 * copy, which is the answer where one part is the whole batch; engine puts the sum of all parts there
 * otherwise.
 *
 * Variance divides by n (Ioffe and Szegedy, "Batch normalization", 2015). */
#ifndef HD_GRAPH_OP_BATCH_H
#define HD_GRAPH_OP_BATCH_H

#define HD_OPS_BATCH(X) \
	X(BATCHNORM,      "batchnorm",      5, 3, REDUCTION, "axis infer f:eps", "x gamma[C] beta[C] running_mean[C] running_var[C] -> y like x, stats f32 [3,C], moments f64 [3,C]") \
	X(BATCHNORM_DX,   "batchnorm_dx",   4, 2, REDUCTION, "axis", "dy x gamma stats -> dx, sums f64 [2,C] (of dy, and of dy times the normalised x)") \
	X(BATCHNORM_SUMS, "batchnorm_sums", 3, 1, REDUCTION, "axis", "dy x stats -> sums f64 [2,C], as batchnorm_dx") \
	X(BATCHNORM_DP,   "batchnorm_dp",   1, 1, MAP,       "row",  "sums f64 [2,C] -> f32 [C]: row 0 is dbeta, row 1 dgamma") \
	X(BATCHNORM_MOMENTS,  "batchnorm_moments",  1, 1, REDUCTION, "axis", "x -> moments f64 [3,C], of any number of values") \
	X(BATCHNORM_SYNC,     "batchnorm_sync",     1, 1, MAP,       "how",  "v f64 [k,C] of a part -> of all parts; how 0: their sum, 1: moments, merged") \
	X(BATCHNORM_APPLY,    "batchnorm_apply",    6, 2, MAP,       "axis f:eps", "x gamma beta running_mean running_var moments -> y, stats, as batchnorm") \
	X(BATCHNORM_APPLY_DX, "batchnorm_apply_dx", 5, 1, MAP,       "axis", "dy x gamma stats sums -> dx, as batchnorm_dx")

#endif
