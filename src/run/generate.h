/* generate.h -- text that a run's model continues, token by token.
 *
 * `heddle predict --prompt` uses it. Each token is drawn (run/sampling.h) from the logits that the model
 * gives after the last `context` tokens.
 *
 * Ownership: all memory is the arena's; worker and task are borrowed. Threads: one. */
#ifndef HD_RUN_GENERATE_H
#define HD_RUN_GENERATE_H

#include "base/text.h"
#include "engine/worker.h"
#include "run/sampling.h"

#define HD_GENERATE_TEMPERATURE 0.8       /* unless another one is asked for */
#define HD_GENERATE_HOTTEST 100.0
enum { HD_GENERATE_MOST = 1 << 20 };      /* tokens of one text */

struct hd_generate {
	struct hd_worker *worker;
	struct hd_sampling sampling;
	uint32_t ifield;                  /* the data's field "x" */
	uint32_t context, vocab;
	bool bytes;                       /* a token is a byte (data.kind text); else tokens are numbers */
	void *field[HD_MAX_FIELDS];       /* one row each */
	int32_t *token;                   /* [cap] prompt, then what was drawn */
	uint64_t n, cap, given;           /* given: tokens of the prompt */
	double *weight;                   /* [vocab] */
};

/* `worker` has the task's parameters. HD_E_INVAL: the model is none of text, predicts no tokens,
 * or does not continue the text that it reads, which two forward passes find out. */
HD_MUST_USE enum hd_err hd_generate_init(struct hd_generate *g, struct hd_worker *worker,
	const struct hd_task *task, const struct hd_sampling *sampling, struct hd_arena *arena,
	struct hd_diag *diag);

/* Takes the prompt (bytes, or numbers of tokens with blanks between) and memory for `ntokens` more.
 * HD_E_INVAL: it is empty, names a token outside the vocabulary, or too many tokens are asked for. */
HD_MUST_USE enum hd_err hd_generate_prompt(struct hd_generate *g, const char *prompt, uint64_t ntokens,
	struct hd_arena *arena, struct hd_diag *diag);

/* Appends one token. Its logits depend on the last `context` tokens alone. */
HD_MUST_USE enum hd_err hd_generate_next(struct hd_generate *g, struct hd_diag *diag);

/* Prompt and drawn tokens as they are written in a prompt. */
void hd_generate_text(const struct hd_generate *g, struct hd_text *text);

#endif
