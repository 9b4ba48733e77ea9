/* sobol.h -- points of a Sobol sequence.
 *
 * Direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
 * projections", SIAM J. Sci. Comput. 30 (2008), table new-joe-kuo-6.21201, its first HD_SOBOL_DIMENSIONS
 * dimensions. Points come in the order of the Gray code, point 0 is 0 (as SciPy's qmc.Sobol has them).
 *
 * Of the first 2^k points each interval of length 2^-k has one, in each dimension. A shift (exclusive or with
 * one number a dimension) keeps that.
 *
 * Pure. */
#ifndef HD_SWEEP_SOBOL_H
#define HD_SWEEP_SOBOL_H

#include <stdint.h>

enum { HD_SOBOL_DIMENSIONS = 16 };

/* Coordinate of point i, times 2^32. */
uint32_t hd_sobol(uint32_t i, uint32_t dimension);

#endif
