#include "cost/line_fit.h"

/* With weights 1 / ns^2 the normal equations of ns = a + b bytes. */
struct hd_line hd_line_fit(const struct hd_line_point *point, uint32_t n)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
	const struct hd_line_point *largest = &point[0];

	for (uint32_t i = 0; i < n; i++) {
		double x = (double)point[i].bytes, y = (double)point[i].ns, share = 1 / (y * y);
		w += share;
		wx += share * x;
		wy += share * y;
		wxx += share * x * x;
		wxy += share * x * y;
		largest = point[i].bytes > largest->bytes ? &point[i] : largest;
	}
	double below = w * wxx - wx * wx, slope = below > 0 ? (w * wxy - wx * wy) / below : 0;
	double latency = (wy - slope * wx) / w;
	if (latency < 0) {
		latency = 0;
		slope = wxy / wxx;
	}
	if (!(slope > 0))
		slope = (double)largest->ns / (double)largest->bytes;
	return (struct hd_line){ (int64_t)(latency + 0.5), 1e9 / slope };
}
