/* int.h -- what the autoscaling policies share; private to the folder. */
#ifndef HD_AUTOSCALE_INT_H
#define HD_AUTOSCALE_INT_H

#include "autoscale/autoscale.h"

/* J of running what is left at `size` with steps of step_s; of efficiency the time. */
double hd_scale_objective(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size,
	double step_s);
double hd_scale_sd_of_mean(const struct hd_scale_known *known);     /* 0 of fewer than 2 samples */
/* of `size` workers */
double hd_scale_money(const struct hd_scale *scale, uint32_t size, double seconds);
/* Did size j gain more over size i than theta of what ideal scaling would have? */
bool hd_scale_efficient(uint32_t i, double step_i, uint32_t j, double step_j, double theta);
__attribute__((format(printf, 2, 3))) void hd_scale_why(struct hd_scale_answer *answer, const char *fmt, ...);

void hd_ae_2020_sample(struct hd_scale *scale, uint32_t size, double step_s);
void hd_ae_2020_propose(struct hd_scale *scale, const struct hd_scale_now *now,
	struct hd_scale_answer *answer);
double hd_ae_2020_cost(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size);
void hd_curve_sample(struct hd_scale *scale, uint32_t size, double step_s);
void hd_curve_propose(struct hd_scale *scale, const struct hd_scale_now *now, struct hd_scale_answer *answer);
double hd_curve_cost(const struct hd_scale *scale, const struct hd_scale_now *now, uint32_t size);

#endif
