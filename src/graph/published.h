/* published.h -- what config.json beside published weights says of the model.
 *
 * Hugging Face's transformers writes one beside each model's weights. `model import` reads
 * it: the file gives the model of ours and its arguments. One table of keys per model type;
 * both majors of the library (4 and 5) write keys of it.
 *
 * 1. Every key of the file is in the table of its type, or the file is refused by the key's
 *    name; so is a key whose value asks for what our model does not compute. A null says
 *    nothing of an unknown key.
 * 2. A key that is read and missing counts as what the library takes for it.
 * 3. What outputs do not depend on (dropout, of which ours has fewer kinds) is noted where it
 *    differs: a line of `notes` each.
 * 4. A file of another model type is refused, whatever model was asked for: equal names of
 *    tensors do not make an equal model.
 *
 * Pure; all memory is the arena's. */
#ifndef HD_GRAPH_PUBLISHED_H
#define HD_GRAPH_PUBLISHED_H

#include "base/json.h"
#include "base/text.h"
#include "graph/model.h"

struct hd_published {
	const char *model;                /* row of hd_models; NULL: the file says nothing of a model */
	uint32_t nargs;
	struct hd_model_arg arg[HD_MAX_ARGS];
	struct hd_text notes;             /* whole lines */
};

/* `name` is the file's, for messages; `asked` the model that the user named, or NULL. */
HD_MUST_USE enum hd_err hd_published_read(struct hd_published *published, const struct hd_json *json,
	const char *name, const char *asked,
	struct hd_arena *arena, struct hd_diag *diag);

/* The other way: the config.json of a model of ours, as both majors read it. `value[i]` belongs to
 * parameter i of
 * its row, complete. HD_E_INVAL: no such model is published. */
HD_MUST_USE enum hd_err hd_published_write(const char *model, const struct hd_model_value *value,
	struct hd_text *out, struct hd_diag *diag);

/* "bert: BertForMaskedLM, ..": the model type of config.json and the classes that a model of ours is;
 * nothing of one
 * that is not published. */
void hd_published_list(const char *model, struct hd_text *out);

#endif
