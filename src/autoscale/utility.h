/* utility.h -- what it is worth to a user that a job ends at some time.
 *
 * Two forms, as published: a line from (0, y) to (x, 0), and points joined by lines. Read by autoscale.h.
 *
 * 1. Text of a line: "linear:Y,X", both above 0; U(T) = Y - Y / X * T.
 * 2. Text of points: "points:VALUE:TIME,VALUE:TIME,...": values never rise, times rise. A point (first value,
 *    0) is put in front if the first time is not 0. hd_utility_close() appends (0, expected total time) if
 *    that lies beyond the last. Beyond the last point its last slope goes on.
 * 3. What breaks a rule is HD_E_INVAL with the point and the rule.
 *
 * Times in seconds, values in the currency of prices. Pure. */
#ifndef HD_AUTOSCALE_UTILITY_H
#define HD_AUTOSCALE_UTILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_UTILITY_POINTS = 64 };
#define HD_UTILITY_MAX 1e12

struct hd_utility {
	bool is_line, closed;
	uint32_t n;                               /* a line has the points (Y, 0) and (0, X) */
	struct { double value, time_s; } point[HD_UTILITY_POINTS + 2];
};

/* For tests: jobs cannot state one yet. */
HD_MUST_USE enum hd_err hd_utility_parse(struct hd_utility *utility, const char *text, struct hd_diag *diag);
void hd_utility_close(struct hd_utility *utility, double expected_s);      /* once, at the first size */
double hd_utility_at(const struct hd_utility *utility, double time_s);

#endif
