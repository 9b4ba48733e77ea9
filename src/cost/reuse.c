#include "cost/reuse.h"

void hd_reuse_none(struct hd_reuse *reuse)
{
	for (unsigned p = 0; p < HD_REUSE_KINDS; p++)
		for (unsigned k = 0; k < HD_REUSE_POINTS; k++)
			reuse->by[p][k] = 1;
}

double hd_reuse_at(const struct hd_reuse *reuse, enum hd_reuse_kind kind, double distance)
{
	const double *by = reuse->by[kind];

	for (unsigned k = 1; k < HD_REUSE_POINTS; k++) {
		const double from = hd_reuse_distance(k - 1), to = hd_reuse_distance(k);
		if (distance <= from)
			return by[k - 1];
		if (distance < to)
			return by[k - 1] + (by[k] - by[k - 1]) * (distance - from) / (to - from);
	}
	return by[HD_REUSE_POINTS - 1];
}

/* Whose time at distance 1 is 1. */
static enum hd_reuse_kind measured_as(enum hd_reuse_kind kind)
{
	return kind == HD_REUSE_I_APART ? HD_REUSE_I : kind == HD_REUSE_W_APART ? HD_REUSE_W : kind;
}

void hd_reuse_settle(struct hd_reuse *reuse)
{
	const struct hd_reuse ns = *reuse;

	for (unsigned p = 0; p < HD_REUSE_KINDS; p++) {
		const double unit = ns.by[measured_as((enum hd_reuse_kind)p)][0];
		double least = 1;
		for (unsigned k = 0; k < HD_REUSE_POINTS; k++) {
			const double by = unit > 0 ? ns.by[p][k] / unit : 1;
			reuse->by[p][k] = least = by > least ? by : least;
		}
	}
}
