/* named.h -- the fields of a sample beside x and y: a mask of tokens, kinds of tokens, positions, or whatever
 * else a model reads by name.
 *
 * A model says what it reads (hd_data_spec, `want`); a reader adds a field for each of these that its files
 * have; dataset.c completes the set when it is opened, and hd_dataset_read() each sample.
 *
 * 1. Three names mean what they mean in Hugging Face's models. All are of one number for each token of x:
 *      attention_mask  1: the token is seen, 0: it is padding. In each sample at least one is seen.
 *      token_type_ids  of which kind the token is; a set without them has 0
 *      position_ids    where the token stands; a set without them counts: the seen tokens before it, 0
 *                      where it is not seen itself; without a mask all tokens before it
 * 2. Where each token has a label in y, one that is not seen has -1: neither loss nor weight. A y that the
 *    model reads as tokens too (an encoder-decoder) is another text, and keeps its labels.
 * 3. Every other name is the reader's to supply; a set that lacks what the model reads is refused. So is one
 *    without an attention_mask: all ones would be a guess.
 * 4. Where the model reads shares of classes and the data have one class for a sample, y is 1 at the class
 *    and 0 elsewhere; of a sample without one all are 0.
 * 5. The label -100, PyTorch's word for none, is -1 here. Readers translate it (hd_label()).
 *
 * Pure but for the set that is completed. Threads: making is pure. */
#ifndef HD_DATA_NAMED_H
#define HD_DATA_NAMED_H

#include "data/dataset.h"

#define HD_MASK_NAME      "attention_mask"
#define HD_TYPES_NAME     "token_type_ids"
#define HD_POSITIONS_NAME "position_ids"
#define HD_DOCUMENTS_NAME "document_ids"         /* which document of its sample a token is of */

enum { HD_LABEL_NONE = -1, HD_LABEL_IGNORED = -100 };
static inline int64_t hd_label(int64_t v) { return v == HD_LABEL_IGNORED ? HD_LABEL_NONE : v; }

/* The wish of this name; NULL: the model does not read it. */
const struct hd_data_want *hd_want_find(const struct hd_data_spec *spec, const char *name);
bool hd_want_is_mask(const struct hd_data_want *want);
/* Numbers of a sample. */
uint64_t hd_want_elems(const struct hd_data_want *want);

/* Adds the fields that are made, and refuses what nothing supplies. Once, when the reader is done. */
/* A reader's y of one class, where it is that, becomes a field of `classes` shares (4); what was read of a
 * sample becomes them. */
void hd_shares_complete(struct hd_dataset *set, uint32_t classes);
void hd_shares_make(const struct hd_dataset *set, void *const *out);
HD_MUST_USE enum hd_err hd_named_complete(struct hd_dataset *set, const struct hd_data_spec *spec,
	struct hd_diag *diag);
/* Makes of a sample as its reader gave it one as the model reads it. HD_E_INPUT: its mask is none. */
HD_MUST_USE enum hd_err hd_named_make(const struct hd_dataset *set, uint64_t index, void *const *out,
	struct hd_diag *diag);
/* Of a row of tokens that are all seen: mask, kinds and positions. For prompts. */
void hd_named_plain(const struct hd_dataset *set, void *const *out);

#endif
