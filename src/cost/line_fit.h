/* line_fit.h -- latency and rate of a link from times of messages: time = latency + bytes / rate.
 *
 * Least squares of the relative errors, so that a message of 1 KiB counts as much as one of 16 MiB. A
 * latency below 0 is 0, and the line then goes through the origin; a line that does not rise has the rate of
 * the largest message.
 *
 * Pure; the sums are in f64 and in the order given. */
#ifndef HD_COST_LINE_FIT_H
#define HD_COST_LINE_FIT_H

#include <stdint.h>

struct hd_line_point { int64_t bytes, ns; };
struct hd_line { int64_t latency_ns; double bytes_per_s; };

/* n >= 1, bytes and ns >= 1 */
struct hd_line hd_line_fit(const struct hd_line_point *point, uint32_t n);

#endif
