#include "graph/acts.h"

#include <math.h>
#include <string.h>

#define UNPACK(...) __VA_ARGS__
enum { ROUNDS, EXACT };

const struct hd_act_row hd_acts[HD_NACTS] = {
#define ACT(id, text, nf, use, folds, about, value, slope, lanes, lanes_slope, oracle, onnx, tests) \
	[HD_ACT_##id] = { text, about, nf, folds == EXACT, { UNPACK onnx } },
#include "graph/acts.def"
};

const char *hd_act_text(int act) { return act >= 0 && act < HD_NACTS ? hd_acts[act].text : "?"; }

bool hd_act_parse(const char *text, int *act)
{
	for (int i = 0; i < HD_NACTS; i++)
		if (strcmp(hd_acts[i].text, text) == 0) {
			*act = i;
			return true;
		}
	return false;
}

static double gate(double x) { return 1 / (1 + exp(-x)); }

static double gelu_slope(double x)
{
	const double k = sqrt(2 / M_PI), t = tanh(k * (x + 0.044715 * x * x * x));

	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

double hd_act_value(int act, const float f[2], double x)
{
	const double a = (double)f[0], b = (double)f[1];

	switch ((enum hd_act)act) {
#define ACT(id, text, nf, use, folds, about, value, ...) case HD_ACT_##id: return value;
#include "graph/acts.def"
	case HD_NACTS: break;
	}
	return (double)NAN;
}

double hd_act_slope(int act, const float f[2], double x)
{
	const double a = (double)f[0], b = (double)f[1];

	switch ((enum hd_act)act) {
#define ACT(id, text, nf, use, folds, about, value, slope, ...) case HD_ACT_##id: return slope;
#include "graph/acts.def"
	case HD_NACTS: break;
	}
	return (double)NAN;
}
