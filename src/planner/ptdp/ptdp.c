#include "planner/ptdp.h"

#include <math.h>

const char *const hd_ptdp_recompute_names[HD_NPTDP_RECOMPUTES] = {
#define X(id, name) name,
	HD_PTDP_RECOMPUTES(X)
#undef X
};

static const struct { double weight, grad, state; } states[HD_NPTDP_STATES] = {
#define X(id, name, weight, grad, state, activation) { weight, grad, state },
	HD_PTDP_STATES(X)
#undef X
};

double hd_ptdp_state_bytes(enum hd_ptdp_state state, uint32_t partials, uint32_t shards)
{
	return states[state].weight + states[state].grad * partials + states[state].state / shards;
}

double hd_ptdp_params(const struct hd_ptdp_model *model)
{
	double l = model->layers, h = model->hidden, y = model->vocab, q = model->seq;

	return 12 * l * h * h * (1 + 13 / (12 * h) + (y + q) / (12 * l * h));
}

double hd_ptdp_layer_params(const struct hd_ptdp_model *model)
{
	double h = model->hidden;

	return 12 * h * h * (1 + 13 / (12 * h));
}

double hd_ptdp_flop(const struct hd_ptdp_model *model, double batch, enum hd_ptdp_recompute recompute)
{
	double l = model->layers, h = model->hidden, y = model->vocab, q = model->seq;

	if (recompute == HD_PTDP_FULL)
		return 96 * batch * q * l * h * h * (1 + q / (6 * h) + y / (16 * l * h));
	return 72 * batch * q * l * h * h * (1 + q / (6 * h) + y / (12 * l * h));
}

double hd_ptdp_days(double tokens, double params, double ndevices, double flop_per_s)
{
	return 8 * tokens * params / (ndevices * flop_per_s) / 86400;
}

double hd_ptdp_slots(double m, uint32_t p, uint32_t v) { return m + (double)(p - 1) / v; }

double hd_ptdp_bubble(double m, uint32_t p, uint32_t v) { return (double)(p - 1) / (v * m); }

struct hd_ptdp_volume hd_ptdp_volume(const struct hd_ptdp_model *model, const struct hd_ptdp_split *split,
	double m, bool scatter)
{
	double tensor = (double)split->b * model->seq * model->hidden, t = split->t, d = split->d;

	return (struct hd_ptdp_volume){
		.tensor = (double)model->layers / split->p * m * 8 * tensor * (t - 1) / t,
		.pipeline = split->p == 1 ? 0 : m * split->v * tensor / (scatter ? t : 1),
		.data = 2 * (d - 1) / d * hd_ptdp_params(model) / (t * split->p),
	};
}

double hd_ptdp_activation_bytes(const struct hd_ptdp_model *model, uint32_t b, uint32_t t, bool sequence,
	enum hd_ptdp_recompute recompute, uint32_t element)
{
	double tensor = (double)model->seq * b * model->hidden, e = element / 2.;
	double scores = (double)model->heads * model->seq / model->hidden * (4 * e + 1) / t;
	/* of 34: what each member of a tensor group holds alike, and its share */
	double whole = 8 * e + 2, split = 24 * e;

	if (recompute == HD_PTDP_FULL)
		return element * tensor / (sequence ? t : 1);
	return tensor * (whole / (sequence ? t : 1) + split / t + (recompute == HD_PTDP_NONE ? scores : 0));
}

uint32_t hd_ptdp_checkpoints(uint32_t layers, double input_bytes, double inside_bytes)
{
	double best = sqrt(layers * inside_bytes / input_bytes);

	if (!(best > 1))
		return 1;
	return best < layers ? (uint32_t)(best + .5) : layers;
}

enum hd_err hd_ptdp_model_check(const struct hd_ptdp_model *model, struct hd_diag *diag)
{
	const struct { const char *name; uint32_t is, max; } extents[] = {
		{ "layers", model->layers, HD_PTDP_LAYERS }, { "hidden width", model->hidden, HD_PTDP_HIDDEN }, { "heads", model->heads, HD_PTDP_HEADS },
		{ "vocabulary", model->vocab, HD_PTDP_VOCAB }, { "sequence", model->seq, HD_PTDP_SEQ },
	};

	for (uint32_t i = 0; i < sizeof extents / sizeof *extents; i++)
		if (extents[i].is < 1 || extents[i].is > extents[i].max)
			return hd_fail(diag, HD_E_INVAL, "%s: %u is not from 1 to %u", extents[i].name,
				extents[i].is, extents[i].max);
	if (model->hidden % model->heads)
		return hd_fail(diag, HD_E_INVAL, "%u heads do not divide a hidden width of %u", model->heads,
			model->hidden);
	return HD_OK;
}
