/* lanes.h -- sums of fixed order in f64: 16 interleaved lanes, then a tree.
 *
 * Lane j adds elements j, j+16, j+32, ... in turn; the 16 lanes are added by the
 * binary tree ((0+1)+(2+3))+... ; several sums are joined by hd_tree_sum(), whose
 * shape is a function of n alone: n is split at the largest power of two below it.
 * The order is that of virtual nodes, segments and norms everywhere, so that any
 * vector width gives the same bits. */
#ifndef HD_BASE_LANES_H
#define HD_BASE_LANES_H

#include <stddef.h>

enum { HD_LANES = 16 };

double hd_lanes_sum(const float *at, size_t n);
double hd_lanes_sumsq(const float *at, size_t n);
double hd_tree_sum(const double *at, size_t n);          /* 0 of nothing */

#endif
