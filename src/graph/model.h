/* model.h -- the built-in models: graphs made from a few arguments.
 *
 * A job names one (`model.use: builtin:gpt`) and gives arguments; `heddle model ls`
 * prints the table. Adding a model is a file in models/ and a row of hd_models.
 *
 * 1. Arguments come as text, are checked against the model's own table (kind, range)
 *    and completed by its defaults; a name that it does not have is an error.
 * 2. Every model has the inputs x and y and the outputs loss (sum over the rows),
 *    weight (what the sum is divided by) and logits; with cross-entropy also correct.
 *    With several losses loss is their weighted sum, and loss_1, loss_2, ... are what each was.
 * 3. normalize `sample`: the weight of a sample is 1; `token`: it is the number of its
 *    labels that are not -1. With weights of classes a label counts as its class does, in loss, weight and
 *    correct alike; with a label to ignore what counts is what is left.
 * 4. The same arguments make the same graph, byte for byte in its text form.
 *
 * Stages are 0; hd_graph_cut() cuts. Pure; all memory is the graph's arena. */
#ifndef HD_GRAPH_MODEL_H
#define HD_GRAPH_MODEL_H

#include "base/text.h"
#include "graph/ir.h"

enum { HD_MAX_ARGS = 48, HD_MAX_ARG_LIST = 16, HD_MAX_ARG_REALS = 128 };

/* LIST: of integers, "[512, 256]", "[]". REALS: of real numbers. SET: some words of a closed set, in any
 * order */
enum hd_arg_kind { HD_ARG_INT, HD_ARG_REAL, HD_ARG_WORD, HD_ARG_LIST, HD_ARG_REALS, HD_ARG_SET };

struct hd_model_param {
	const char *name;
	enum hd_arg_kind kind;
	const char *standard;             /* the default, as text */
	double min, max;                  /* of the number, or of each of the list */
	const char *about;
	const char *words;                /* SET: "a|b|c", at most 32 */
	/* it came after the first hashes: jobs do not list it while it is the default */
	bool late;
};

struct hd_model_arg { const char *name, *value; };

struct hd_model_value {
	int64_t n;                        /* SET: bit i is word i */
	double real;
	char word[32];
	int64_t list[HD_MAX_ARG_LIST];
	double reals[HD_MAX_ARG_REALS];
	uint32_t nlist;                   /* of list, or of reals */
};

enum hd_normalize { HD_NORMALIZE_SAMPLE, HD_NORMALIZE_TOKEN };
bool hd_normalize_parse(const char *text, enum hd_normalize *normalize);      /* "sample", "token" */

/* Losses, in the order of hd_losses[]. Means of PyTorch: over the counted labels, or over the numbers of
 * a row and the rows; kl: over the rows (batchmean). */
enum hd_loss { HD_LOSS_CROSS_ENTROPY, HD_LOSS_MSE, HD_LOSS_SOFT, HD_LOSS_KL, HD_LOSS_BCE, HD_LOSS_L1,
	HD_LOSS_SMOOTH_L1, HD_LOSS_HUBER, HD_NLOSSES };
/* classes: "y" is a class for each prediction, i32; else f32 numbers, as many as there are logits. */
struct hd_loss_row { const char *name; bool classes, hits; };
extern const struct hd_loss_row hd_losses[HD_NLOSSES];
bool hd_loss_parse(const char *text, enum hd_loss *loss);                     /* "cross-entropy", "mse" */

/* A loss among several: `of` an output, against the input `target`. */
enum { HD_MODEL_TERMS = 4 };
struct hd_loss_term { enum hd_loss loss; float weight, smoothing, delta; const char *of, *target; };

/* What of it is 0 is the loss without it. Weights are borrowed for the call; their number must be that of the
 * logits: HD_E_INVAL. */
struct hd_model_opts {
	enum hd_loss loss;
	enum hd_normalize normalize;
	float smoothing;                  /* share of a label spread over all classes */
	float delta;                      /* smooth-l1 (beta), huber; 0: 1 */
	uint32_t nclass_weights; const float *class_weights;
	uint32_t npos_weights; const float *pos_weights;          /* bce; one is for all */
	bool ignores; int32_t ignore;     /* a label that counts as none, beside -1 */
	/* several, whose sum is the loss; `loss` is that of the first. Rows weigh alike: nothing else but
	 * normalize is looked at. Outputs loss_1, loss_2, ...: the sum over the rows of each, not weighted.
	 * */
	uint32_t nterms; const struct hd_loss_term *term;
};

struct hd_model_row {
	const char *name, *about;
	const struct hd_model_param *param;       /* ends with name == NULL */
	enum hd_err (*build)(struct hd_graph *graph, const struct hd_model_value *value,
		const struct hd_model_opts *opts, struct hd_diag *diag);
};
extern const struct hd_model_row hd_models[];     /* ends with name == NULL */

HD_MUST_USE enum hd_err hd_model_find(const char *name, const struct hd_model_row **row,
	struct hd_diag *diag);
/* Checks the arguments and fills in defaults; value[i] belongs to param[i]. */
HD_MUST_USE enum hd_err hd_model_args(const struct hd_model_row *row, const struct hd_model_arg *arg,
	uint32_t nargs,
	struct hd_model_value value[HD_MAX_ARGS], struct hd_diag *diag);
/* One completed argument as JSON text ("4", "0.1", "\"relu\"", "[512,256]"), for the job's resolved form;
 * the words of a set have no quotes ("[a,b]"). */
/* false: late, and the default */
bool hd_model_arg_listed(const struct hd_model_param *param, const struct hd_model_value *value);
void hd_model_arg_print(struct hd_text *text, const struct hd_model_param *param,
	const struct hd_model_value *value);
/* All of it: an empty graph becomes the model, verified by the rules of its ops. */
HD_MUST_USE enum hd_err hd_model_build(struct hd_graph *graph, const char *name,
	const struct hd_model_arg *arg,
	uint32_t nargs, const struct hd_model_opts *opts, struct hd_diag *diag);

#endif
