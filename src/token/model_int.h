/* model_int.h -- what models share, and the rows of model.c's table. Private to the room. */
#ifndef HD_TOKEN_MODEL_INT_H
#define HD_TOKEN_MODEL_INT_H

#include "token/model.h"
#include "token/read.h"

struct hd_model_kind {
	struct hd_token_kind base;
	/* what is the kind's own: the vocabulary is there, but for Unigram's */
	enum hd_err (*read)(struct hd_model *model, const struct hd_json *json, struct hd_arena *arena,
		struct hd_diag *diag);
	/* a word, into work->ids, which is empty */
	enum hd_err (*encode)(struct hd_model_work *work, const uint8_t *at, size_t len,
		struct hd_diag *diag);
};

extern const struct hd_model_kind hd_model_bpe, hd_model_wordpiece, hd_model_unigram, hd_model_wordlevel;

/* The member "vocab" as an object of numbers. */
HD_MUST_USE enum hd_err hd_model_vocab(struct hd_model *model, const struct hd_json *json,
	struct hd_arena *arena, struct hd_diag *diag);
/* "unk_token": a text, or, where `optional`, null. */
HD_MUST_USE enum hd_err hd_model_unk(struct hd_model *model, const struct hd_json *json, bool optional,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_model_bytes(struct hd_model *model);           /* fills byte_id */
/* The unknown token, for what is not in the vocabulary. HD_E_INPUT: there is none. */
HD_MUST_USE enum hd_err hd_model_unknown(struct hd_model_work *work, const uint8_t *at, size_t len,
	struct hd_diag *diag);

#endif
