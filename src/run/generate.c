#include "run/generate.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "data/named.h"
#include "engine/forward.h"

static const double ROUNDING = 1e-4;              /* of the largest logit: far above what f32 leaves */

static enum hd_err add_token(struct hd_generate *g, uint64_t token, uint64_t cap, struct hd_diag *diag)
{
	if (token >= g->vocab)
		return hd_fail(diag, HD_E_INVAL,
			"--prompt: token %llu is outside the model's vocabulary of %u",
			(unsigned long long)token, g->vocab);
	if (g->n == cap)
		return hd_fail(diag, HD_E_INVAL, "--prompt is too long");
	g->token[g->n++] = (int32_t)token;
	return HD_OK;
}

/* Text is its bytes; for other token data the prompt is their numbers, with blanks between. */
static enum hd_err read_prompt(struct hd_generate *g, const char *prompt, uint64_t cap, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	char number[HD_NUM_CAP];
	uint64_t token;

	for (; g->bytes && *prompt && !err; prompt++)
		err = add_token(g, (uint8_t)*prompt, cap, diag);
	while (!g->bytes && !err && *(prompt += strspn(prompt, " "))) {
		size_t len = strcspn(prompt, " ");
		snprintf(number, sizeof number, "%.*s", (int)(len < HD_NUM_CAP ? len : HD_NUM_CAP - 1),
			prompt);
		err = hd_num_u64(number, UINT32_MAX, &token, NULL);
		if (err)
			err = hd_fail(diag, HD_E_INVAL,
				"--prompt: \"%s\" is no token number (these data have no text)", number);
		else
			err = add_token(g, token, cap, diag);
		prompt += len;
	}
	if (!err && g->n == 0)
		err = hd_fail(diag, HD_E_INVAL, "--prompt is empty: give the model something to continue");
	return err;
}

enum hd_err hd_generate_prompt(struct hd_generate *g, const char *prompt, uint64_t ntokens,
	struct hd_arena *arena, struct hd_diag *diag)
{
	uint64_t most = strlen(prompt);

	if (ntokens > HD_GENERATE_MOST)
		return hd_fail(diag, HD_E_INVAL, "--tokens is at most %d", HD_GENERATE_MOST);
	g->n = 0;
	g->cap = most + ntokens;
	g->token = hd_arena_take(arena, g->cap + 1, sizeof *g->token);
	if (!g->token)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu tokens", (unsigned long long)ntokens);
	enum hd_err err = read_prompt(g, prompt, most, diag);
	g->given = g->n;
	return err;
}

/* The window is the last T tokens. What follows them in the row is not looked at by a causal model. */
enum hd_err hd_generate_next(struct hd_generate *g, struct hd_diag *diag)
{
	uint64_t from = g->n > g->context ? g->n - g->context : 0, len = g->n - from;
	const float *logits;

	assert(g->n > 0 && g->n < g->cap);
	memcpy(g->field[g->ifield], g->token + from, len * sizeof *g->token);
	enum hd_err err = hd_worker_forward_rows(g->worker, (const void *const *)g->field, 1, &logits, diag);
	if (!err)
		g->token[g->n] = (int32_t)hd_sampling_token(&g->sampling, logits + (len - 1) * g->vocab,
			g->vocab, g->n, g->weight);
	g->n += !err;
	return err;
}

/* Logits of the first token of a row that begins with `first` and goes on with `rest`. */
static enum hd_err first_of(struct hd_generate *g, int32_t first, int32_t rest, const float **logits,
	struct hd_diag *diag)
{
	int32_t *token = g->field[g->ifield];

	for (uint32_t i = 0; i < g->context; i++)
		token[i] = i ? rest : first;
	return hd_worker_forward_rows(g->worker, (const void *const *)g->field, 1, logits, diag);
}

/* Experts with little room take first choices of all tokens before any second one, so a token of a mixture
 * that drops some depends on those behind it; it continues a text all the same. */
static bool drops_tokens(const struct hd_job *job)
{
	const struct hd_job_value *args = &job->value[HD_JOB_MODEL_ARGS];
	double capacity = 0;

	for (uint32_t i = 0; i < args->nargs; i++)
		if (!strcmp(args->arg[i].name, "capacity") &&
			hd_num_f64(args->arg[i].text, 0, HUGE_VAL, &capacity, NULL))
			capacity = 1;             /* not a plain number: in doubt it does */
	return capacity > 0;
}

/* Does what the model says of a token depend on those behind it? An encoder's does, which continues no text,
 * and an encoder-decoder's, which continues another one than it reads. Asked with two rows, not of the graph,
 * so of any model. The last tokens are words, not padding, in every vocabulary with some. */
static enum hd_err check_causal(struct hd_generate *g, struct hd_diag *diag)
{
	const int32_t last = (int32_t)(g->vocab < 4 ? g->vocab : 4) - 1;
	const float *logits;
	double off = 0, size = 0;

	if (g->context < 2 || last < 1)
		return HD_OK;
	enum hd_err err = first_of(g, last - 1, last - 1, &logits, diag);
	if (err)
		return err;
	for (uint32_t k = 0; k < g->vocab; k++)
		g->weight[k] = (double)logits[k];
	err = first_of(g, last - 1, last, &logits, diag);
	for (uint32_t k = 0; k < g->vocab && !err; k++) {
		off = fmax(off, fabs((double)logits[k] - g->weight[k]));
		size = fmax(size, fabs(g->weight[k]));
	}
	memset(g->field[g->ifield], 0, g->context * sizeof(int32_t));
	if (!err && off > ROUNDING * size)
		err = hd_fail(diag, HD_E_INVAL, "--prompt is for models that continue a text; what this one "
			"says of a token depends on those behind it, as of an encoder (bert) or an "
			"encoder-decoder (t5): leave --prompt out for a .npy of its outputs, or export it "
			"(heddle model export RUN --names torch -o DIR) and generate with transformers");
	return err;
}

enum hd_err hd_generate_init(struct hd_generate *g, struct hd_worker *worker, const struct hd_task *task,
	const struct hd_sampling *sampling, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_graph *graph = &task->infer;
	uint32_t logits = hd_graph_find_output(graph, "logits");
	const struct hd_field *x = NULL;

	*g = (struct hd_generate){ .worker = worker, .sampling = *sampling };
	for (uint32_t f = 0; f < task->data->nfields; f++)
		if (!strcmp(task->data->field[f].name, "x")) {
			x = &task->data->field[f];
			g->ifield = f;
		}
	if (!x || x->dtype != HD_I32 || x->rank != 1 || logits == HD_NONE)
		return hd_fail(diag, HD_E_INVAL,
			"--prompt is for models of text; this one reads %s: leave --prompt out for a .npy "
			"of its outputs", task->data->about);
	const struct hd_value *out = &graph->value[logits];
	if (out->rank != 3)
		return hd_fail(diag, HD_E_INVAL,
			"--prompt is for models that predict tokens; this one gives %s for a whole text: "
			"leave --prompt out for a .npy of its outputs", hd_value_shape(out).at);
	g->context = (uint32_t)x->dim[0];
	g->vocab = (uint32_t)out->dim[out->rank - 1];
	g->bytes = !strcmp(hd_job_text(task->job, HD_JOB_DATA_KIND), "text");
	g->weight = hd_arena_take(arena, g->vocab, sizeof *g->weight);
	bool taken = g->weight != NULL;
	for (uint32_t f = 0; f < task->data->nfields; f++)
		taken &= (g->field[f] = hd_arena_take(arena, 1, task->data->field[f].sample_bytes)) != NULL;
	if (!taken)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a row of tokens");
	hd_named_plain(task->data, g->field);
	return drops_tokens(task->job) ? HD_OK : check_causal(g, diag);
}

void hd_generate_text(const struct hd_generate *g, struct hd_text *text)
{
	for (uint64_t i = 0; i < g->n; i++) {
		if (g->bytes)
			hd_text_put(text, &(char){ (char)g->token[i] }, 1);
		else
			hd_text_addf(text, "%s%d", i ? " " : "", g->token[i]);
	}
}
