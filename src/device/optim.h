/* optim.h -- optimizers as updates of flat vectors, and the scalars of a step that they
 * read. `job` names optimizers by this table, `engine` fills the scalars, devices update.
 *
 * g = (G * scale) * clip with G the sum of all virtual nodes, then the L2 term
 * g = g + weight_decay * p (once, not per virtual node; not where the decay is decoupled:
 * adamw, lion, lamb), then the rule. Formulas follow the papers and agree with PyTorch,
 * where clipping also comes before the optimizer's own weight decay:
 *   sgd       p -= lr * g
 *   momentum  m = mu*m + g;  p -= lr * m                     (first step: m = g, as 0*mu + g)
 *   nesterov  m = mu*m + g;  p -= lr * (g + mu*m)
 *   adam      m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g;
 *             p -= lr/c1 * m / (sqrt(v)/sqrt(c2) + eps),  c1 = 1-b1^t, c2 = 1-b2^t
 *   adamw     p *= 1 - lr*wd first, then adam (Loshchilov, Hutter 2019)
 *   adagrad   s = s + g*g;  p -= lr * g / (sqrt(s) + eps)    (Duchi, Hazan, Singer 2011)
 *   lion      p *= 1 - lr*wd; p -= lr * sign(b1*m + (1-b1)*g); m = b2*m + (1-b2)*g
 *             (Chen et al. 2023; sign(0) = 0)
 *   lamb      m, v as adam; u = (m/c1) / (sqrt(v)/sqrt(c2) + eps) + wd*p;
 *             p -= lr * ratio * u, ratio = |p| / |u| over the whole tensor, 1 where either
 *             norm is 0 (You et al. 2020, algorithm 2 with phi(z) = z, for every tensor)
 * Means of parameters (optim.ema), after the update, each so many updates:
 *   e += (1 - decay) * (p - e)                               (the first of them: e = p)
 * t counts updates from 1 and is state ("run.updates"). c1, c2 are computed in f64 by
 * squaring and multiplying in the order of t's bits (no libm) and rounded once. Quotients
 * of moments are computed as (lr/c1*sqrt(c2)) * m / (sqrt(v) + eps*sqrt(c2)): the same
 * with one division per element, of which the divider of a core allows few.
 *
 * 1. Unit ELEMENT: any split of the flat vector gives the same bits. Unit TENSOR: two
 *    passes. The first (measure) moves the slots and sums, per segment (layout.h), the
 *    squares of p and of u in the order of lanes.h; hd_optim_ratio() joins the segments of
 *    a tensor by hd_tree_sum(); the second (update) reads the moved slots. So any split of
 *    the segments over devices gives the same bits too.
 * 2. One operation, one rounding, in the order of hd_optim_update_plain(); nothing is contracted.
 *    With `bf16` the device then rounds each updated parameter to the nearest bf16 (half.h), ties to
 *    even: the f32 vector holds numbers of bf16 only. Slots are f32 always.
 * 3. `grad` is read only; slots that the kind has not (hd_optims) are neither read nor written.
 *
 * Threads: pure; calls on disjoint parts of a vector may run at once. Nothing is owned. */
#ifndef HD_DEVICE_OPTIM_H
#define HD_DEVICE_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/*        id        text        unit     slots  slot names */
#define HD_OPTIMS(X)                                            \
	X(SGD,      "sgd",      ELEMENT, 0, "",    "")          \
	X(MOMENTUM, "momentum", ELEMENT, 1, "m",   "")          \
	X(NESTEROV, "nesterov", ELEMENT, 1, "m",   "")          \
	X(ADAM,     "adam",     ELEMENT, 2, "m",   "v")         \
	X(ADAMW,    "adamw",    ELEMENT, 2, "m",   "v")         \
	X(ADAGRAD,  "adagrad",  ELEMENT, 1, "sum", "")          \
	X(LION,     "lion",     ELEMENT, 1, "m",   "")          \
	X(LAMB,     "lamb",     TENSOR,  2, "m",   "v")

enum hd_optim_kind {
#define X(id, text, unit, nslots, s0, s1) HD_OPTIM_##id,
	HD_OPTIMS(X)
#undef X
	HD_NOPTIMS
};

enum hd_optim_unit { HD_UNIT_ELEMENT, HD_UNIT_TENSOR };       /* what must change together */

struct hd_optim_row { const char *name; uint8_t unit, nslots; const char *slot[2]; };
extern const struct hd_optim_row hd_optims[HD_NOPTIMS];

/* average: what a mean takes of the parameters each average_every updates; 0: there are no means. */
struct hd_optim {
	uint32_t kind;
	float momentum, beta1, beta2, eps, weight_decay;
	bool bf16;
	float average;
	uint32_t average_every;
};

/* Slots of the kind, and after them the means. */
static inline uint32_t hd_optim_nslots(const struct hd_optim *optim)
{
	return optim->average > 0 ? hd_optims[optim->kind].nslots + 1u : hd_optims[optim->kind].nslots;
}

/* Everything an update of step s reads besides the vectors (virtual nodes' step scalars). */
struct hd_step_scalars {
	struct hd_optim optim;
	float  lr, scale, clip;           /* scale = (float)(1 / weight); clip factor, 1 = none */
	float  c1, c2;                    /* bias corrections of Adam for t */
	float  average;                   /* what the means take in this update; 0: nothing, 1: all */
	/* unit TENSOR, second pass: hd_optim_ratio() of the tensor at hand */
	float  ratio;
	bool   skip;                      /* an empty or skipped step: nothing changes */
	bool   looks;                     /* unit TENSOR: the first pass only sums, and the slots stay */
};

/* c1, c2 and average for the t-th update (t >= 1). */
void hd_optim_corrections(struct hd_step_scalars *scalars, uint64_t t);
/* The trust ratio of a tensor from the sums of its n segments, in order: f64, rounded once. */
float hd_optim_ratio(const double *param_sumsq, const double *move_sumsq, uint32_t n);

/* The formulas, plainly: the reference device and tests. */
void hd_optim_update_plain(const struct hd_step_scalars *scalars, float *param, const float *grad,
	float *slot0, float *slot1, uint64_t len);
/* mean[i] moves towards param[i] by such a share, 0 to 1: the way that PyTorch's lerp rounds. */
void hd_optim_average(float share, float *mean, const float *param, uint64_t len);
/* The first pass of unit TENSOR over one segment: sums[0] of p*p, sums[1] of u*u. Other units and skipped
 * steps: zeros. */
void hd_optim_measure_plain(const struct hd_step_scalars *scalars, const float *param, const float *grad,
	float *slot0, float *slot1,
	uint64_t len, double sums[2]);

#endif
