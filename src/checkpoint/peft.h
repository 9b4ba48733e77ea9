/* peft.h -- adapters as the peft package keeps them: adapter_config.json and adapter_model.safetensors.
 *
 * A folder of it becomes a model of ours: the base's weights with the adapters beside them, and a job with
 * model.lora; a run with adapters becomes such a folder again, which PeftModel.from_pretrained() loads.
 *
 * 1. Which matrices have adapters, and of which rank, the tensors say, not the patterns of the file:
 *    lists, regular expressions, all-linear, layers_to_transform, exclude_modules need no rule of ours.
 *    What the file says beside is compared: a rank that is not its tensor's, a target without tensors.
 * 2. Each key of the file is read, has no effect on outputs, or must be empty: what is set and none of
 *    these is refused by name (DoRA, adapters of embeddings, PiSSA and others that change the base).
 * 3. Patterns of ranks and alphas mean what they mean there: regular expressions for the end of a module's
 *    name; the first that matches counts.
 * 4. Tensors beside the adapters (biases, modules_to_save) take the base's place; they are trained if
 *    `bias` or modules_to_save names them, else only kept.
 * 5. What goes out names each module in full. Trained parameters that peft has no word for are refused:
 *    parts of a module that are not all biases or all biases of adapted modules, tied tables.
 *
 * Ownership: texts lie in the arena. Threads: one. */
#ifndef HD_CHECKPOINT_PEFT_H
#define HD_CHECKPOINT_PEFT_H

#include "base/json.h"
#include "graph/lora.h"
#include "checkpoint/adopt.h"

enum hd_peft_bias { HD_PEFT_NO_BIAS, HD_PEFT_ALL_BIASES, HD_PEFT_LORA_BIASES, HD_PEFT_NBIASES };
extern const char *const hd_peft_biases[HD_PEFT_NBIASES];         /* none, all, lora_only */

/* adapter_config.json. Tables and lists are the file's own: of numbers, of texts; NULL: none. */
struct hd_peft {
	double rank, alpha, dropout;
	bool root;
	enum hd_peft_bias bias;
	const char *base;                 /* NULL: the file names none */
	const struct hd_json *ranks, *alphas, *save, *targets;
};
/* `name` is the file's, for messages. */
HD_MUST_USE enum hd_err hd_peft_read(struct hd_peft *peft, const struct hd_json *json, const char *name,
	struct hd_diag *diag);

/* Can a job have it? `of` is the module, or "" where it is that of the file. */
HD_MUST_USE enum hd_err hd_peft_check_alpha(double alpha, const char *name, const char *of,
	struct hd_diag *diag);

size_t hd_peft_count(const struct hd_json *list);          /* takes NULL */

/* Is there an adapter_config.json? */
bool hd_peft_is(struct hd_fs *fs, const char *folder);

/* `base`: weights as hd_weights_open() takes them, NULL: the folder that the file names. The others as in
 * hd_adopt_weights(), of the base. */
HD_MUST_USE enum hd_err hd_adopt_peft(struct hd_adopted *adopted, struct hd_fs *fs, const char *source,
	const char *base, const char *folder, const char *model, const struct hd_model_arg *arg,
	uint32_t nargs, struct hd_arena *arena, struct hd_diag *diag);

/* The way out. `graph` is what the job trains; `model` a row of hd_models, `head` its argument, or "". */
struct hd_peft_source {
	const struct hd_state *state;
	const struct hd_graph *graph;
	const struct hd_lora *lora;
	const char *model, *head, *base;
};
HD_MUST_USE enum hd_err hd_peft_export(struct hd_fs *fs, const struct hd_peft_source *source,
	const char *folder, struct hd_diag *diag);

#endif
