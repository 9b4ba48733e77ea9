/* optim.h -- optimizers as elementwise updates of flat vectors, and the scalars of
 * a step that they read. `plan` names optimizers by this table, `exec` fills the scalars,
 * devices update.
 *
 * One pass: g = (G * scale) * clip with G the sum of all virtual nodes, then the L2
 * term g = g + weight_decay * p (once, not per virtual node; not for adamw), then the
 * rule. Formulas follow the papers and agree with PyTorch, where clipping also
 * comes before the optimizer's own weight decay:
 *   sgd       p -= lr * g
 *   momentum  m = mu*m + g;  p -= lr * m                     (first step: m = g, as 0*mu + g)
 *   nesterov  m = mu*m + g;  p -= lr * (g + mu*m)
 *   adam      L2 in g; m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g;
 *             p -= lr/c1 * m / (sqrt(v)/sqrt(c2) + eps),  c1 = 1-b1^t, c2 = 1-b2^t
 *   adamw     p *= 1 - lr*wd first, then adam without the L2 term (Loshchilov, Hutter 2019)
 * t counts updates from 1 and is state ("optim.t"). c1, c2 are computed in f64 by squaring
 * and multiplying in the order of t's bits (no libm) and rounded once.
 *
 * 1. Every unit is ELEMENT: any split of the flat vector gives the same bits.
 * 2. One operation, one rounding, in the order written above; nothing is contracted.
 * 3. `grad` is read only; slots that the kind has not (hd_optims) are neither read nor written.
 *
 * Threads: pure; calls on disjoint parts of a vector may run at once. Nothing is owned. */
#ifndef HD_DEVICE_OPTIM_H
#define HD_DEVICE_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/*        id        text        slots  slot names */
#define HD_OPTIMS(X)                                   \
	X(SGD,      "sgd",      0, "",  "")            \
	X(MOMENTUM, "momentum", 1, "m", "")            \
	X(NESTEROV, "nesterov", 1, "m", "")            \
	X(ADAM,     "adam",     2, "m", "v")           \
	X(ADAMW,    "adamw",    2, "m", "v")

enum hd_optim_kind {
#define X(id, text, nslots, s0, s1) HD_OPTIM_##id,
	HD_OPTIMS(X)
#undef X
	HD_NOPTIMS
};

struct hd_optim_row { const char *name; uint8_t nslots; const char *slot[2]; };
extern const struct hd_optim_row hd_optims[HD_NOPTIMS];

struct hd_optim { uint32_t kind; float momentum, beta1, beta2, eps, weight_decay; };

/* Everything an update of step s reads besides the vectors (virtual nodes' step scalars). */
struct hd_step_scalars {
	struct hd_optim optim;
	float  lr, scale, clip;           /* scale = (float)(1 / weight); clip factor, 1 = none */
	float  c1, c2;                    /* bias corrections of Adam for t */
	bool   skip;                      /* an empty or skipped step: nothing changes */
};

/* c1 and c2 for the t-th update (t >= 1). */
void hd_optim_corrections(struct hd_step_scalars *scalars, uint64_t t);
/* The formulas, plainly: the reference device and tests. */
void hd_optim_update_plain(const struct hd_step_scalars *scalars, float *param, const float *grad, float *slot0, float *slot1, uint64_t len);

#endif
