/* Losses at the end of a model. Each is a sum over the rows: what it is divided by, the weight, comes
 * after the virtual nodes are added. Formulas are PyTorch's, of the function in the comment. */
#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/models/rows.h"

static const struct hd_attr none;

/* What counts rows: of tokens count64 would count each. */
static uint32_t rows_of(const struct hd_maker *m, uint32_t x, uint32_t logits)
{
	return m->err == HD_OK && m->graph->value[x].dtype != HD_F32 ? logits : x;
}

static uint32_t numbers(struct hd_maker *m, uint32_t n, const float *at)
{
	uint32_t value = 0;

	if (m->err == HD_OK)
		m->err = hd_graph_const(m->graph, HD_F32, 1, &(int64_t){ n }, at, &value, m->diag);
	return value;
}

static uint32_t one_id(struct hd_maker *m, int32_t id)
{
	uint32_t value = 0;

	if (m->err == HD_OK)
		m->err = hd_graph_const(m->graph, HD_I32, 1, &(int64_t){ 1 }, &id, &value, m->diag);
	return value;
}

static uint32_t act(struct hd_maker *m, enum hd_act act, uint32_t x)
{
	return hd_make1(m, HD_OP_ACT, x, (struct hd_attr){ .i = { (int32_t)act } });
}

static uint32_t scaled(struct hd_maker *m, uint32_t x, float by)
{
	return hd_make1(m, HD_OP_SCALE, x, (struct hd_attr){ .f = { by } });
}

/* Over the last extent of x [N,C]. */
static uint32_t row_sum(struct hd_maker *m, uint32_t x)
{
	return hd_make1(m, HD_OP_REDUCE_SUM, x, (struct hd_attr){ .i = { 2 } });
}

static uint32_t row_mean(struct hd_maker *m, uint32_t x)
{
	return hd_make1(m, HD_OP_REDUCE_MEAN, x, (struct hd_attr){ .i = { 2 } });
}

static void fits(struct hd_maker *m, const char *key, uint32_t n, int64_t logits)
{
	if (m->err == HD_OK && n != logits)
		m->err = hd_fail(m->diag, HD_E_INVAL,
			"%s has %u numbers, the model %lld outputs: write one for "
			"each", key, n, (long long)logits);
}

static uint32_t fail_term(struct hd_maker *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static uint32_t fail_term(struct hd_maker *m, const char *fmt, ...)
{
	char text[256];
	va_list list;

	va_start(list, fmt);
	vsnprintf(text, sizeof text, fmt, list);
	va_end(list);
	if (m->err == HD_OK)
		m->err = hd_fail(m->diag, HD_E_INVAL, "%s", text);
	return 0;
}

/* ---- classes ---- */

static uint32_t without_ignored(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t labels)
{
	if (!opts->ignores || opts->ignore == -1)
		return labels;
	const uint32_t out = hd_make2(m, HD_OP_EQUAL, labels, one_id(m, opts->ignore), none);

	return hd_make3(m, HD_OP_WHERE, out, one_id(m, -1), labels, none);
}

/* One for each class; without weights of their own all are 1. */
static uint32_t class_weights(struct hd_maker *m, const struct hd_model_opts *opts, int64_t classes)
{
	float *ones = NULL;

	if (opts->nclass_weights) {
		fits(m, "loss.class_weights", opts->nclass_weights, classes);
		return numbers(m, opts->nclass_weights, opts->class_weights);
	}
	if (m->err == HD_OK)
		ones = hd_arena_take(m->graph->arena, (size_t)classes, sizeof *ones);
	if (m->err == HD_OK && !ones)
		m->err = hd_fail(m->diag, HD_E_NOMEM, "no memory for %lld classes", (long long)classes);
	for (int64_t c = 0; c < classes && m->err == HD_OK; c++)
		ones[c] = 1;
	return numbers(m, (uint32_t)classes, ones);
}

/* `more` [N,1] is spread over the positions [N,T] as the weight of a row is: `by` gives it, f32 or labels;
 * HD_NONE: each has the same part. */
static uint32_t with_more(struct hd_maker *m, uint32_t loss, uint32_t more, uint32_t by, float part)
{
	if (by == HD_NONE) {
		by = hd_make1(m, HD_OP_EXPAND, numbers(m, 1, &part), (struct hd_attr){ .i = { 1,
			(int32_t)hd_make_dim(m, loss, 1) } });
	} else if (m->err == HD_OK && m->graph->value[by].dtype != HD_F32) {
		by = hd_make2(m, HD_OP_LESS_EQ, one_id(m, 0), by, none);
	}
	return hd_make2(m, HD_OP_ADD, loss, hd_make2(m, HD_OP_MUL, more, by, none), none);
}

/* cross_entropy(weight, ignore_index, label_smoothing). The losses and hits of a row with several positions
 * weigh 1/positions each, so that a row weighs 1. */
static void make_losses(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t labels,
	uint32_t logits, int64_t positions, uint32_t more)
{
	const int last = m->err == HD_OK ? m->graph->value[logits].rank - 1 : 0;
	const bool samples = opts->normalize == HD_NORMALIZE_SAMPLE, share = samples && positions > 1;
	const bool plain = !opts->nclass_weights && !(opts->smoothing > 0);
	const float part = 1.0f / (float)positions;
	uint32_t counted = without_ignored(m, opts, labels), weight, of = HD_NONE, loss;

	if (opts->nterms)
		(void)fail_term(m,
			"loss: losses that are added are of one prediction for a sample, this model "
			"makes several, or labels of its own: use one loss");
	if (!plain)
		of = class_weights(m, opts, hd_make_dim(m, logits, last));
	loss = plain ? hd_make2(m, HD_OP_SOFTMAX_XENT, logits, counted, none) :
		hd_make3(m, HD_OP_CLASS_XENT, logits, counted, of,
			(struct hd_attr){ .f = { opts->smoothing } });
	uint32_t hit = loss + 2;
	if (opts->nclass_weights)
		weight = hd_make2(m, HD_OP_GATHER, of, counted, none);
	else
		weight = samples && (positions > 1 || !opts->ignores) ? rows_of(m, x, logits) : counted;
	if (share) {
		loss = scaled(m, loss, part);
		hit = scaled(m, hit, part);
		weight = opts->nclass_weights ? scaled(m, weight, part) : weight;
	}
	if (more != HD_NONE)
		loss = with_more(m, loss, more, opts->nclass_weights ? weight : share ? HD_NONE : counted,
			part);
	hd_make_output(m, "loss", hd_make1(m, HD_OP_SUM64, loss, none));
	hd_make_output(m, "weight", hd_make1(m, opts->nclass_weights ? HD_OP_SUM64 : HD_OP_COUNT64, weight,
		none));
	hd_make_output(m, "correct", hd_make1(m, HD_OP_SUM64, hit, none));
	hd_make_output(m, "logits", logits);
}

void hd_make_losses(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t labels,
	uint32_t logits, int64_t positions)
{
	make_losses(m, opts, x, labels, logits, positions, HD_NONE);
}

/* ---- numbers: the losses of the rows of x and y, both [N,C] ---- */

static uint32_t mse(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	(void)opts;
	return hd_make2(m, HD_OP_MSE, x, y, none);
}

/* cross_entropy with probabilities as targets: -sum of w (1 - s) q + s / C) log p */
static uint32_t soft(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	const int64_t classes = hd_make_dim(m, x, 1);
	uint32_t target = y;

	if (opts->smoothing > 0)
		target = hd_make2(m, HD_OP_ADD, scaled(m, y, 1.0f - opts->smoothing),
			numbers(m, 1, &(float){ opts->smoothing / (float)classes }), none);
	if (opts->nclass_weights)
		target = hd_make2(m, HD_OP_MUL, target, class_weights(m, opts, classes), none);
	uint32_t all = hd_make2(m, HD_OP_MUL, target, hd_make1(m, HD_OP_LOG_SOFTMAX, x, none), none);
	return scaled(m, row_sum(m, all), -1.0f);
}

/* kl_div(log_softmax(x), q, reduction batchmean): sum of q (log q - log p); q log q is 0 at 0. */
static uint32_t kl(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	uint32_t above = hd_make2(m, HD_OP_MAXIMUM, y, numbers(m, 1, &(float){ FLT_MIN }), none);
	uint32_t far = hd_make2(m, HD_OP_SUB, act(m, HD_ACT_LOG, above), hd_make1(m, HD_OP_LOG_SOFTMAX, x,
		none),
		none);

	(void)opts;
	return row_sum(m, hd_make2(m, HD_OP_MUL, y, far, none));
}

/* binary_cross_entropy_with_logits(pos_weight): (1 - y) x + (1 + (p - 1) y) softplus(-x) */
static uint32_t bce(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	const uint32_t one = numbers(m, 1, &(float){ 1 });
	uint32_t minus = act(m, HD_ACT_SOFTPLUS, scaled(m, x, -1.0f));

	if (opts->npos_weights) {
		if (opts->npos_weights > 1)
			fits(m, "loss.pos_weight", opts->npos_weights, hd_make_dim(m, x, 1));
		uint32_t more = hd_make2(m, HD_OP_SUB, numbers(m, opts->npos_weights, opts->pos_weights), one,
			none);
		uint32_t by = hd_make2(m, HD_OP_ADD, hd_make2(m, HD_OP_MUL, y, more, none), one, none);
		minus = hd_make2(m, HD_OP_MUL, by, minus, none);
	}
	uint32_t rest = hd_make2(m, HD_OP_MUL, hd_make2(m, HD_OP_SUB, one, y, none), x, none);
	return row_mean(m, hd_make2(m, HD_OP_ADD, rest, minus, none));
}

static uint32_t l1(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	(void)opts;
	return row_mean(m, act(m, HD_ACT_ABS, hd_make2(m, HD_OP_SUB, x, y, none)));
}

static float delta_of(const struct hd_model_opts *opts) { return opts->delta > 0 ? opts->delta : 1.0f; }

/* huber_loss(delta): with a = |x - y| and b the smaller of a and delta, b (a - b / 2) */
static uint32_t huber(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	uint32_t a = act(m, HD_ACT_ABS, hd_make2(m, HD_OP_SUB, x, y, none));
	uint32_t b = hd_make2(m, HD_OP_MINIMUM, a, numbers(m, 1, &(float){ delta_of(opts) }), none);

	return row_mean(m, hd_make2(m, HD_OP_MUL, b, hd_make2(m, HD_OP_SUB, a, scaled(m, b, 0.5f), none),
		none));
}

/* smooth_l1_loss(beta): that of huber over beta */
static uint32_t smooth_l1(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t y)
{
	return scaled(m, huber(m, opts, x, y), 1.0f / delta_of(opts));
}

static uint32_t (*const of_numbers[HD_NLOSSES])(struct hd_maker *m, const struct hd_model_opts *opts,
	uint32_t x,
	uint32_t y) = {
	[HD_LOSS_MSE] = mse, [HD_LOSS_SOFT] = soft, [HD_LOSS_KL] = kl, [HD_LOSS_BCE] = bce, [HD_LOSS_L1] = l1,
	[HD_LOSS_SMOOTH_L1] = smooth_l1, [HD_LOSS_HUBER] = huber,
};

/* Is the largest logit where the largest share of the target is? The first of equals. */
static uint32_t hits(struct hd_maker *m, uint32_t x, uint32_t y)
{
	const struct hd_attr last = { .i = { 1 } };

	return hd_make2(m, HD_OP_EQUAL, hd_make1(m, HD_OP_ARGMAX, x, last), hd_make1(m, HD_OP_ARGMAX, y,
		last), none);
}

/* ---- several ---- */

/* The output that a term judges: [rows, numbers]. */
static uint32_t judged(struct hd_maker *m, const struct hd_loss_term *term, uint32_t logits)
{
	uint32_t of = logits;

	if (m->err != HD_OK)
		return 0;
	if (strcmp(term->of, "logits") != 0) {
		const uint32_t output = hd_graph_find_output(m->graph, term->of);
		if (output == HD_NONE)
			return fail_term(m, "loss: the model has no output \"%.60s\" beside logits",
				term->of);
		of = output;
	}
	const struct hd_value *v = &m->graph->value[of];
	if (v->dtype != HD_F32 || v->rank != 2 || v->dim[0] != -1)
		return fail_term(m,
			"loss: output \"%.60s\" is %s; losses that are added judge [rows, numbers]",
			term->of, hd_value_shape(v).at);
	return of;
}

/* Several terms may read the same field, if they read the same of it. */
static uint32_t target_of(struct hd_maker *m, const struct hd_loss_term *term, uint32_t of)
{
	const bool classes = hd_losses[term->loss].classes;
	const uint8_t rank = classes ? 1 : 2;
	const int64_t dim[2] = { -1, hd_make_dim(m, of, 1) };

	if (m->err != HD_OK)
		return 0;
	const uint32_t input = hd_graph_find_input(m->graph, term->target);
	if (input == HD_NONE)
		return hd_make_input(m, term->target, classes ? HD_I32 : HD_F32, rank, dim);
	const struct hd_value *v = &m->graph->value[m->graph->input[input]];
	if (v->dtype != (classes ? HD_I32 : HD_F32) || v->rank != rank || (rank == 2 && v->dim[1] != dim[1]))
		return fail_term(m,
			"loss: %s would read \"%.60s\" as %s, it is %s already: give one of them a "
			"target of its own", hd_losses[term->loss].name, term->target,
			classes ? "a class" : "numbers", hd_value_shape(v).at);
	return m->graph->input[input];
}

/* One number for each row; `hit` where the loss has hits. */
static uint32_t term_rows(struct hd_maker *m, const struct hd_loss_term *term, uint32_t of, uint32_t *hit)
{
	const struct hd_model_opts opts = { .smoothing = term->smoothing, .delta = term->delta };
	const uint32_t y = target_of(m, term, of);
	uint32_t loss;

	*hit = HD_NONE;
	if (!hd_losses[term->loss].classes) {
		loss = of_numbers[term->loss](m, &opts, of, y);
		*hit = hd_losses[term->loss].hits ? hits(m, of, y) : HD_NONE;
		return loss;
	}
	loss = term->smoothing > 0 ? hd_make3(m, HD_OP_CLASS_XENT, of, y, class_weights(m, &opts,
		hd_make_dim(m, of, 1)), (struct hd_attr){ .f = { term->smoothing } }) :
		hd_make2(m, HD_OP_SOFTMAX_XENT, of, y, none);
	*hit = loss + 2;
	return loss;
}

static void make_sum(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits)
{
	uint32_t all = HD_NONE, hit, first = HD_NONE;

	for (uint32_t i = 0; i < opts->nterms; i++) {
		const struct hd_loss_term *term = &opts->term[i];
		char name[16];
		uint32_t rows = term_rows(m, term, judged(m, term, logits), &hit);
		first = i ? first : hit;
		snprintf(name, sizeof name, "loss_%u", i + 1);
		hd_make_output(m, name, hd_make1(m, HD_OP_SUM64, rows, none));
		rows = term->weight < 1 || term->weight > 1 ? scaled(m, rows, term->weight) : rows;
		all = i ? hd_make2(m, HD_OP_ADD, all, rows, none) : rows;
	}
	hd_make_output(m, "loss", hd_make1(m, HD_OP_SUM64, all, none));
	hd_make_output(m, "weight", hd_make1(m, HD_OP_COUNT64, rows_of(m, x, logits), none));
	if (first != HD_NONE)
		hd_make_output(m, "correct", hd_make1(m, HD_OP_SUM64, first, none));
	hd_make_output(m, "logits", logits);
}

void hd_make_ends_with(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits,
	int64_t positions, uint32_t more)
{
	uint32_t y = hd_make_input(m, "y", HD_I32, positions > 1 ? 2 : 1, (int64_t[]){ -1, positions });

	make_losses(m, opts, x, y, logits, positions, more);
}

void hd_make_ends(struct hd_maker *m, const struct hd_model_opts *opts, uint32_t x, uint32_t logits,
	int64_t positions, int64_t classes)
{
	if (opts->nterms && positions == 1) {
		make_sum(m, opts, x, logits);
		return;
	}
	if (hd_losses[opts->loss].classes) {
		hd_make_ends_with(m, opts, x, logits, positions, HD_NONE);
		return;
	}
	uint32_t y = hd_make_input(m, "y", HD_F32, HD_DIMS(-1, classes));
	uint32_t loss = of_numbers[opts->loss](m, opts, logits, y);
	hd_make_output(m, "loss", hd_make1(m, HD_OP_SUM64, loss, none));
	hd_make_output(m, "weight", hd_make1(m, HD_OP_COUNT64, rows_of(m, x, logits), none));
	if (hd_losses[opts->loss].hits)
		hd_make_output(m, "correct", hd_make1(m, HD_OP_SUM64, hits(m, logits, y), none));
	hd_make_output(m, "logits", logits);
}
