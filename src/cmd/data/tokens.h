/* tokens.h -- what verbs of `heddle data` do with a tokenizer.
 *
 * Ownership: the caller destroys a tokenizer. */
#ifndef HD_CMD_DATA_TOKENS_H
#define HD_CMD_DATA_TOKENS_H

#include "base/json_writer.h"
#include "token/tokenizer.h"
#include "cmd/verbs.h"

/* That of --tokenizer. */
HD_MUST_USE enum hd_err hd_cmd_tokenizer(struct hd_cmd *cmd, struct hd_tokenizer **tokenizer);
/* `data cat --tokenizer` of a token file: its first --count tokens (1000), as text. */
HD_MUST_USE enum hd_err hd_tokens_cat(struct hd_cmd *cmd, const char *path);
/* A member of text: what `n` tokens stand for. */
HD_MUST_USE enum hd_err hd_tokens_put(struct hd_cmd *cmd, struct hd_token_work *work,
	struct hd_json_writer *w, const char *key, const uint32_t *ids, uint32_t n);

#endif
