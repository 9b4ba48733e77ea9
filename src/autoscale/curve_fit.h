/* curve_fit.h -- what the exchange of gradients adds to the solver's step time: a + b (k - 1) / k + c (k -
 * 1), none below 0.
 *
 * Read by the policy `curve`. Fitted to measured less computed times, each size weighted by samples /
 * variance.
 *
 * 1. Least squares over a, b, c >= 0: of all subsets of the three the best one whose coefficients are above
 *    0.
 * 2. Fewer than three sizes do not tell the three apart. Then every subset of at most as many coefficients as
 *    sizes counts that explains them within HD_CURVE_CLOSE, or as well as the best does: the truth may be any
 *    of them.
 * 3. `spread` is the largest relative residual of the best.
 *
 * Pure. */
#ifndef HD_AUTOSCALE_CURVE_FIT_H
#define HD_AUTOSCALE_CURVE_FIT_H

#include <stdint.h>

#define HD_CURVE_CLOSE 0.05

struct hd_curve_point { uint32_t size; double compute_s, step_s, weight; };
struct hd_curve_coef { double at[3]; };
struct hd_curve_fit { struct hd_curve_coef may[8]; uint32_t n; double spread; };      /* may[0] is the best */

void hd_curve_fit(struct hd_curve_fit *fit, const struct hd_curve_point *point, uint32_t n);      /* n >= 1 */
double hd_curve_at(const struct hd_curve_coef *coef, uint32_t size, double compute_s);

#endif
