#include <math.h>

#include "gnn/testing_models.h"

/* Attention in several intervals against a dense oracle in f64 that shares no code with it: the matrix that
 * the graph was made of, gradients by central differences. Losses as they are, gradients by what one step of
 * plain descent takes from the parameters. */

enum { WIDEST = 16 };

struct dense {
	const struct known *k;
	const struct hd_task *task;
	double *param, h[VERTICES][WIDEST];
};

static const double *param_of(const struct dense *d, int layer, const char *name)
{
	char text[32];

	snprintf(text, sizeof text, "layers.%d.%s", layer, name);
	return d->param + d->task->layout.at[hd_graph_find_param(&d->task->train, text)];
}

static bool is_edge(const struct known *k, uint32_t from, uint32_t to)
{
	return from == to || k->edge[from][to];
}

/* One head of one target, added to its row. */
static void attend(const struct dense *d, double (*z)[WIDEST], const double *s, const double *t, uint32_t i,
	int first, int width, double *out, double share)
{
	double weight[VERTICES], sum = 0;

	for (uint32_t j = 0; j < VERTICES; j++) {
		double score = 0;
		if (!is_edge(d->k, j, i))
			continue;
		for (int c = first; c < first + width; c++)
			score += s[c] * z[j][c] + t[c] * z[i][c];
		weight[j] = exp(score > 0 ? score : 0.2 * score);
		sum += weight[j];
	}
	for (uint32_t j = 0; j < VERTICES; j++)
		for (int c = 0; c < width && is_edge(d->k, j, i); c++)
			out[c] += share * weight[j] / sum * z[j][first + c];
}

static void layer(struct dense *d, int l, int in, int heads, int width, bool last)
{
	static double z[VERTICES][WIDEST], out[VERTICES][WIDEST];
	const double *w = param_of(d, l, "weight"), *s = param_of(d, l, "source"),
		*t = param_of(d, l, "target"), *bias = param_of(d, l, "bias");

	memset(z, 0, sizeof z), memset(out, 0, sizeof out);
	for (uint32_t i = 0; i < VERTICES; i++)
		for (int k = 0; k < in; k++)
			for (int c = 0; c < heads * width; c++)
				z[i][c] += (l ? d->h[i][k] : (double)d->k->feature[i][k]) *
					w[k * heads * width + c];
	for (uint32_t i = 0; i < VERTICES; i++) {
		for (int head = 0; head < heads; head++)
			attend(d, z, s, t, i, head * width, width, out[i] + (last ? 0 : head * width),
				last ? 1.0 / heads : 1);
		for (int c = 0; c < (last ? width : heads * width); c++) {
			const double y = out[i][c] + bias[c];
			d->h[i][c] = last || y > 0 ? y : expm1(y);
		}
	}
}

/* The mean over the labelled vertices of the training set. */
static double dense_loss(struct dense *d, int layers, int hidden, int heads, int out_heads, double *weight)
{
	double loss = 0;

	for (int l = 0; l < layers; l++)
		layer(d, l, l ? heads * hidden : TG_WIDTH, l + 1 == layers ? out_heads : heads,
			l + 1 == layers ? CLASSES : hidden, l + 1 == layers);
	*weight = 0;
	for (uint32_t i = 0; i < VERTICES; i++) {
		double sum = 0;
		if (d->k->label[i] < 0 || d->k->set[i] != 1)
			continue;
		for (int c = 0; c < CLASSES; c++)
			sum += exp(d->h[i][c]);
		loss += log(sum) - d->h[i][d->k->label[i]];
		++*weight;
	}
	return loss / *weight;
}

static const struct { int model, layers, hidden, heads, out_heads; } cases[] = { { 2, 2, 4, 3, 1 },
	{ 3, 3, 3, 2, 3 } };

/* The gradient that the oracle has, of all parameters; the loss. */
static double oracle(const struct hd_rig *rig, const struct known *k, int c, const float *before,
	double *grad, double *weight)
{
	static struct dense d;
	const struct hd_layout *layout = &rig->task->layout;
	const uint64_t n = layout->elems;

	d = (struct dense){ .k = k, .task = rig->task, .param = calloc(n, sizeof(double)) };
	for (uint64_t i = 0; i < n; i++)
		d.param[i] = (double)before[i];
#define LOSS dense_loss(&d, cases[c].layers, cases[c].hidden, cases[c].heads, cases[c].out_heads, weight)
	const double loss = LOSS;
	for (uint32_t p = 0; p < rig->task->train.nparams; p++)
		for (uint64_t i = layout->at[p]; i < layout->at[p] + layout->len[p]; i++) {
			d.param[i] = (double)before[i] + 1e-6;
			const double above = LOSS;
			d.param[i] = (double)before[i] - 1e-6;
			grad[i] = (above - LOSS) / 2e-6;
			d.param[i] = (double)before[i];
		}
#undef LOSS
	free(d.param);
	return loss;
}

static void compare(const struct hd_rig *rig, const float *before, const double *want, const char *what)
{
	const struct hd_layout *layout = &rig->task->layout;
	const float *after = hd_rig_params(rig);
	double peak = 0, most = 0;

	for (uint64_t i = 0; i < layout->elems; i++)
		peak = fmax(peak, fabs(want[i]));
	for (uint32_t p = 0; p < rig->task->train.nparams; p++) {
		most = 0;
		for (uint64_t i = layout->at[p]; i < layout->at[p] + layout->len[p]; i++) {
			const double got = (double)before[i] - (double)after[i];
			most = fmax(most, fabs(want[i]));
			CHECK(fabs(got - want[i]) <= 1e-4 * peak,
				"%s: gradient %u, element %llu is %.9g, not %.9g", what, p,
				(unsigned long long)(i - layout->at[p]), got, want[i]);
		}
		CHECK(most > 1e-3 * peak, "%s: parameter %u has no gradient to speak of", what, p);
	}
}

static void intervals_agree_with_a_dense_oracle(void **state)
{
	struct graphs g;

	(void)state;
	make_graphs(&g);
	for (int c = 0; c < 2; c++)
		for (int kind = 0; kind < 2; kind++) {
			double loss = 0, weight = 0, *grad = NULL;
			float *before = NULL;
			for (uint32_t n = 1; n <= INTERVALS; n *= 2) {
				struct hd_rig rig;
				char what[64];
				open_rig(&g, &rig, cases[c].model, kind, n, "0", plain, n > 1 ? 2 : 1);
				if (n == 1) {
					const uint64_t elems = rig.task->layout.elems;
					before = malloc(elems * sizeof *before);
					grad = calloc(elems, sizeof *grad);
					memcpy(before, hd_rig_params(&rig), elems * sizeof *before);
					loss = oracle(&rig, g.known[kind], c, before, grad, &weight);
				}
				snprintf(what, sizeof what, "case %d, kind %d, %u intervals", c, kind, n);
				const struct hd_step_record r = hd_rig_step(&rig);
				CHECK(r.weight == weight && fabs(r.loss_sum / weight - loss) <= 1e-5 * loss,
					"%s: loss %.9g, not %.9g", what, r.loss_sum / weight, loss);
				compare(&rig, before, grad, what);
				hd_rig_close(&rig);
			}
			free(before), free(grad);
		}
	drop_graphs(&g);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_agree_with_a_dense_oracle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
