#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "base/philox.h"
#include "cmd/npy.h"
#include "cmd/session.h"

enum { HD_PREDICT_TOKENS = 200, HD_PREDICT_TOKENS_MOST = 1 << 20, HD_TALLY_CLASSES = 4096 };
static const double standard_temperature = 0.8, hottest = 100;

/* ---- outputs of a split */

struct outputs {
	struct hd_npy_out npy;
	uint32_t nclasses;                /* last extent */
	/* [nclasses] rows whose largest output is this class; NULL: outputs are not one row of classes */
	_Atomic uint64_t *tally;
};

static uint32_t largest(const float *at, uint32_t n)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < n; i++)
		if (at[i] > at[best])
			best = i;
	return best;
}

static void on_logits(void *user, uint64_t first, uint64_t n, const float *logits)
{
	struct outputs *out = user;

	hd_npy_rows(&out->npy, first, n, logits);
	for (uint64_t i = 0; out->tally && i < n; i++)
		atomic_fetch_add(&out->tally[largest(logits + i * out->nclasses, out->nclasses)], 1);
}

/* The rows of the split, then the extents that a row of the graph's output has. */
static uint32_t shape_of(const struct hd_graph *g, uint64_t nrows, int64_t dim[HD_MAX_DIMS])
{
	const struct hd_value *v = &g->value[hd_graph_find_output(g, "logits")];
	uint32_t rank = 0;

	dim[rank++] = (int64_t)nrows;
	if (v->dim[0] < -1)
		dim[rank++] = -v->dim[0];
	for (uint32_t i = 1; i < v->rank && rank < HD_MAX_DIMS; i++)
		dim[rank++] = v->dim[i];
	return rank;
}

static void print_outputs(struct hd_cmd *cmd, const struct hd_session *s, const struct outputs *out,
	const char *split,
	const struct hd_metrics *m, uint32_t rank, const int64_t *dim)
{
	struct hd_json_writer w;
	struct hd_text text;

	if (!cmd->args.has[HD_OPT_JSON]) {
		printf("%s\n", out->npy.path);
		return;
	}
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)s->ckpt.step);
	hd_json_put_text(&w, "split", split);
	hd_json_put_text(&w, "file", out->npy.path);
	hd_json_open_array(&w, "shape");
	for (uint32_t i = 0; i < rank; i++)
		hd_json_put_i64(&w, NULL, dim[i]);
	hd_json_close(&w);
	hd_json_put_i64(&w, "classes", out->nclasses);
	hd_json_put_i64(&w, "rows", (int64_t)m->rows);
	hd_json_put_f64(&w, "loss", hd_metrics_loss(m));
	if (m->has_hits)
		hd_json_put_f64(&w, "accuracy", hd_metrics_accuracy(m));
	if (out->tally) {
		hd_json_open_array(&w, "predicted");
		for (uint32_t c = 0; c < out->nclasses; c++)
			hd_json_put_i64(&w, NULL, (int64_t)atomic_load(&out->tally[c]));
		hd_json_close(&w);
	}
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err write_outputs(struct hd_cmd *cmd, struct hd_session *s, const char *split)
{
	const struct hd_task *task = hd_run_task(s->run);
	struct outputs *out = hd_arena_take(&cmd->arena, 1, sizeof *out);
	uint32_t isplit = hd_dataset_split(task->data, split), rank;
	char path[HD_PATH_CAP];
	int64_t dim[HD_MAX_DIMS];
	struct hd_metrics m;

	if (isplit == HD_NONE || task->data->split[isplit].count == 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the data have no samples in a split \"%s\": %s",
			split, task->data->about);
	if (!out || hd_graph_find_output(&task->infer, "logits") == HD_NONE)
		return hd_fail(&cmd->diag, out ? HD_E_INVAL : HD_E_NOMEM,
			out ? "the graph has no output \"logits\": nothing to predict" : "no memory");
	struct hd_forward_job job = { .split = isplit, .count = task->data->split[isplit].count,
		.logits = on_logits, .user = out };
	rank = shape_of(&task->infer, job.count, dim);
	snprintf(path, sizeof path, "%s/predictions.npy", s->dir);
	enum hd_err err = hd_npy_begin(&out->npy, &cmd->fs,
		cmd->args.has[HD_OPT_OUTPUT] ? cmd->args.text[HD_OPT_OUTPUT] : path, rank, dim, &cmd->diag);
	out->nclasses = (uint32_t)dim[rank - 1];
	if (rank == 2 && out->nclasses <= HD_TALLY_CLASSES &&
		hd_graph_find_output(&task->infer, "correct") != HD_NONE)
		out->tally = hd_arena_take(&cmd->arena, out->nclasses, sizeof *out->tally);
	if (!err)
		err = hd_worker_forward(hd_run_worker(s->run), &job, &m, &cmd->diag);
	enum hd_err ended = hd_npy_end(&out->npy, !err, &cmd->diag);
	err = err ? err : ended;
	if (!err)
		print_outputs(cmd, s, out, split, &m, rank, dim);
	return err;
}

/* ---- sampled text */

struct sampler {
	struct hd_cmd *cmd;
	struct hd_worker *worker;
	const struct hd_dataset *data;
	uint32_t ifield;                  /* of the tokens */
	uint32_t context, vocab;
	bool bytes;                       /* a token is a byte; else numbers are read and printed */
	double temperature;
	uint64_t key;
	void *field[HD_MAX_FIELDS];       /* one row each */
	int32_t *token; uint64_t n;       /* prompt and what was sampled so far */
	double *weight;                   /* [vocab] */
};

static enum hd_err add_token(struct sampler *s, uint64_t token, uint64_t cap)
{
	if (token >= s->vocab)
		return hd_fail(&s->cmd->diag, HD_E_INVAL,
			"--prompt: token %llu is outside the model's vocabulary of %u",
			(unsigned long long)token, s->vocab);
	if (s->n == cap)
		return hd_fail(&s->cmd->diag, HD_E_INVAL, "--prompt is too long");
	s->token[s->n++] = (int32_t)token;
	return HD_OK;
}

/* Text is its bytes; for other token data the prompt is their numbers, with blanks between. */
static enum hd_err read_prompt(struct sampler *s, const char *prompt, uint64_t cap)
{
	enum hd_err err = HD_OK;
	char number[HD_NUM_CAP];
	uint64_t token;

	for (; s->bytes && *prompt && !err; prompt++)
		err = add_token(s, (uint8_t)*prompt, cap);
	while (!s->bytes && !err && *(prompt += strspn(prompt, " "))) {
		size_t len = strcspn(prompt, " ");
		snprintf(number, sizeof number, "%.*s", (int)(len < HD_NUM_CAP ? len : HD_NUM_CAP - 1),
			prompt);
		err = hd_num_u64(number, UINT32_MAX, &token, NULL);
		if (err)
			err = hd_fail(&s->cmd->diag, HD_E_INVAL,
				"--prompt: \"%s\" is no token number (these data have no text)", number);
		else
			err = add_token(s, token, cap);
		prompt += len;
	}
	if (!err && s->n == 0)
		err = hd_fail(&s->cmd->diag, HD_E_INVAL,
			"--prompt is empty: give the model something to continue");
	return err;
}

/* In f64 and in order, so the text depends on the logits and the seed alone: they have the same bits on any
 * devices. Temperature 0 takes the most likely token. */
static uint32_t choose(const struct sampler *s, const float *logits)
{
	const uint32_t counter[4] = { (uint32_t)s->n, (uint32_t)(s->n >> 32), 0, 0 };
	struct hd_philox drawn = hd_philox(counter, s->key);
	uint32_t best = largest(logits, s->vocab);
	double sum = 0;

	if (s->temperature == 0)
		return best;
	for (uint32_t v = 0; v < s->vocab; v++)
		sum += s->weight[v] = exp(((double)logits[v] - (double)logits[best]) / s->temperature);
	double left = (double)(((uint64_t)drawn.word[0] << 32 | drawn.word[1]) >> 11) * 0x1p-53 * sum;
	for (uint32_t v = 0; v < s->vocab; v++)
		if ((left -= s->weight[v]) < 0)
			return v;
	return best;
}

/* The window is the last T tokens. What follows them in the row is not looked at by a causal model. */
static enum hd_err next_token(struct sampler *s)
{
	uint64_t from = s->n > s->context ? s->n - s->context : 0, len = s->n - from;
	const float *logits;

	memcpy(s->field[s->ifield], s->token + from, len * sizeof *s->token);
	enum hd_err err = hd_worker_forward_rows(s->worker, (const void *const *)s->field, 1, &logits,
		&s->cmd->diag);
	if (!err)
		s->token[s->n] = (int32_t)choose(s, logits + (len - 1) * s->vocab);
	s->n += !err;
	return err;
}

static enum hd_err set_up(struct sampler *s, struct hd_cmd *cmd, const struct hd_session *session)
{
	const struct hd_task *task = hd_run_task(session->run);
	const struct hd_graph *g = &task->infer;
	uint32_t logits = hd_graph_find_output(g, "logits");
	const struct hd_field *x = NULL;

	*s = (struct sampler){ .cmd = cmd, .worker = hd_run_worker(session->run), .data = task->data,
		.temperature = standard_temperature };
	for (uint32_t f = 0; f < task->data->nfields; f++)
		if (!strcmp(task->data->field[f].name, "x")) {
			x = &task->data->field[f];
			s->ifield = f;
		}
	if (!x || x->dtype != HD_I32 || x->rank != 1 || logits == HD_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--prompt is for models of text; this one reads %s: leave --prompt out for a .npy "
			"of its outputs", task->data->about);
	if (g->value[logits].rank != 3)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--prompt is for models that predict tokens; this one gives %s for a whole text: "
			"leave --prompt out for "
			"a .npy of its outputs", hd_value_shape(&g->value[logits]).at);
	s->context = (uint32_t)x->dim[0];
	s->vocab = (uint32_t)g->value[logits].dim[g->value[logits].rank - 1];
	s->bytes = !strcmp(hd_job_text(&session->job, HD_JOB_DATA_KIND), "text");
	s->key = hd_philox_key(cmd->args.has[HD_OPT_SEED] ? cmd->args.count[HD_OPT_SEED] : 0, HD_RNG_USER);
	if (cmd->args.has[HD_OPT_TEMPERATURE] && hd_num_f64(cmd->args.text[HD_OPT_TEMPERATURE], 0, hottest,
		&s->temperature, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--temperature %s: write a number from 0 to %.0f",
			cmd->args.text[HD_OPT_TEMPERATURE], hottest);
	s->weight = hd_arena_take(&cmd->arena, s->vocab, sizeof *s->weight);
	bool taken = s->weight != NULL;
	for (uint32_t f = 0; f < task->data->nfields; f++)
		taken &= (s->field[f] = hd_arena_take(&cmd->arena, 1, task->data->field[f].sample_bytes)) !=
			NULL;
	return taken ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a row of tokens");
}

static void print_tokens(const struct sampler *s, uint64_t from)
{
	struct hd_json_writer w;
	struct hd_text text, bytes;

	hd_text_init(&bytes, &s->cmd->arena);
	for (uint64_t i = 0; i < s->n; i++) {
		if (s->bytes)
			hd_text_put(&bytes, &(char){ (char)s->token[i] }, 1);
		else
			hd_text_addf(&bytes, "%s%d", i ? " " : "", s->token[i]);
	}
	if (!s->cmd->args.has[HD_OPT_JSON]) {
		fwrite(bytes.at, 1, bytes.len, stdout);
		fputc('\n', stdout);
		return;
	}
	hd_text_init(&text, &s->cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_bytes(&w, "text", bytes.at, bytes.len);
	hd_json_open_array(&w, "sampled");
	for (uint64_t i = from; i < s->n; i++)
		hd_json_put_i64(&w, NULL, s->token[i]);
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err sample_text(struct hd_cmd *cmd, struct hd_session *session)
{
	const char *prompt = cmd->args.text[HD_OPT_PROMPT];
	uint64_t ntokens = cmd->args.has[HD_OPT_TOKENS] ? cmd->args.count[HD_OPT_TOKENS] : HD_PREDICT_TOKENS,
		cap = strlen(prompt);
	struct sampler s;
	enum hd_err err = set_up(&s, cmd, session);

	if (err)
		return err;
	if (ntokens > HD_PREDICT_TOKENS_MOST)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--tokens is at most %d", HD_PREDICT_TOKENS_MOST);
	s.token = hd_arena_take(&cmd->arena, cap + ntokens + 1, sizeof *s.token);
	if (!s.token)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %llu tokens",
			(unsigned long long)ntokens);
	err = read_prompt(&s, prompt, cap);
	uint64_t given = s.n;
	for (uint64_t i = 0; i < ntokens && !err; i++)
		err = next_token(&s);
	if (!err)
		print_tokens(&s, given);
	return err;
}

enum hd_err hd_cmd_predict(struct hd_cmd *cmd)
{
	struct hd_session *session = hd_arena_take(&cmd->arena, 1, sizeof *session);
	enum hd_err err = session ? hd_session_open(cmd, cmd->args.pos[0], session) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a session");

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_PROMPT])
		err = sample_text(cmd, session);
	else
		err = write_outputs(cmd, session, hd_session_split(cmd, session));
	hd_session_close(session);
	return err;
}
