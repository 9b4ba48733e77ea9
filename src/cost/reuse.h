/* reuse.h -- how much longer work takes whose activations were last used long ago.
 *
 * An op is measured on one virtual node after the other in the same memory (engine/profile.h), so that
 * between two uses of a byte lie the activations of one virtual node of the whole model: distance 1. A rank
 * of a pipeline that keeps more of them alive comes back to each after a longer way, and what a cache held is
 * gone. So is it where the gradients of weights are computed apart from those of inputs, which read the same.
 * Measured at HD_REUSE_POINTS distances, as multiples of the time that was measured at distance 1 within B.
 *
 * 1. by[kind][0] is 1 of F, and of I and W within B. No other factor is below 1 or the one before: a longer
 *    way saves nothing, and what seems so is noise.
 * 2. Between two points a line; below the first and above the last the same as there.
 *
 * Used by the forecast of a step (run/forecast.h). Pure. */
#ifndef HD_COST_REUSE_H
#define HD_COST_REUSE_H

enum { HD_REUSE_POINTS = 3 };
/* The first three as enum hd_phase; I and W of instructions of their own. */
enum hd_reuse_kind { HD_REUSE_F, HD_REUSE_I, HD_REUSE_W, HD_REUSE_I_APART, HD_REUSE_W_APART, HD_REUSE_KINDS };

/* Point k is at this distance. */
static inline unsigned hd_reuse_distance(unsigned k) { return 1u << k; }

struct hd_reuse { double by[HD_REUSE_KINDS][HD_REUSE_POINTS]; };

/* No cache makes a difference. */
void hd_reuse_none(struct hd_reuse *reuse);
/* Rule 2; distance >= 0. */
double hd_reuse_at(const struct hd_reuse *reuse, enum hd_reuse_kind kind, double distance);
/* Of times as measured; 0: nothing is known of that kind. Rule 1. */
void hd_reuse_settle(struct hd_reuse *reuse);

#endif
