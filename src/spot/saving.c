#include "spot/saving.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "spot/value.h"

void hd_saving_begin(struct hd_saving *s) { *s = (struct hd_saving){ .every_ms = HD_SAVING_FIRST_MS }; }

void hd_saving_saved(struct hd_saving *s, double took_s)
{
	if (took_s > 0 && isfinite(took_s))
		s->cost_s = s->cost_s > 0 ? 0.75 * s->cost_s + 0.25 * took_s : took_s;
}

bool hd_saving_judge(struct hd_saving *s, double back_h)
{
	if (!(s->cost_s > 0))
		return false;
	const double least_s = fmax(HD_SAVING_LEAST_MS * 1e-3, HD_SAVING_COSTS * s->cost_s),
		best_s = back_h > 0 ? sqrt(2 * s->cost_s * 3600 / back_h) : INFINITY,
		every_s = fmax(least_s, fmin(best_s, HD_SPOT_SAVE_S)),
		is_s = (double)s->every_ms * 1e-3;
	if (every_s < is_s * HD_SAVING_GAIN && every_s * HD_SAVING_GAIN > is_s)
		return false;
	s->every_ms = (uint64_t)llround(every_s * 1e3);
	return true;
}

const char *hd_saving_why(const struct hd_saving *s, double back_h, char out[HD_SAVING_WORDS])
{
	const double every_s = (double)s->every_ms * 1e-3;

	if (s->cost_s > 0)
		snprintf(out, HD_SAVING_WORDS, "%.4g s apart: one takes %.3g s, %.3g losses/h go back to one",
			every_s, s->cost_s, back_h);
	else
		snprintf(out, HD_SAVING_WORDS, "%.4g s apart, until one was saved", every_s);
	return out;
}

/* ---- stored */

size_t hd_saving_put(const struct hd_saving *s, char out[HD_SAVING_TEXT])
{
	const int len = snprintf(out, HD_SAVING_TEXT, "%llu %llu\n", (unsigned long long)s->every_ms,
		(unsigned long long)llround(fmin(s->cost_s, 1e9) * 1e6));

	return len > 0 ? (size_t)len : 0;
}

bool hd_saving_take(struct hd_saving *s, const char *text, size_t len)
{
	char line[HD_SAVING_TEXT];
	uint64_t every_ms, cost_us;

	if (!len || len >= sizeof line || text[len - 1] != '\n')
		return false;
	memcpy(line, text, len);
	line[len - 1] = '\0';
	char *second = strchr(line, ' ');
	if (!second || strlen(line) != len - 1)
		return false;
	*second++ = '\0';
	if (hd_num_u64(line, INT64_MAX / 1000000, &every_ms, NULL) || every_ms < HD_SAVING_LEAST_MS ||
		hd_num_u64(second, UINT64_C(1000000000000000), &cost_us, NULL))
		return false;
	*s = (struct hd_saving){ .every_ms = every_ms, .cost_s = (double)cost_us * 1e-6 };
	return true;
}
