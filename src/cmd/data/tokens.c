#include "cmd/data/tokens.h"

#include "base/alloc.h"
#include "base/le.h"
#include "data/tokens.h"

enum { SHOWN = 1000, SHOWN_CAP = 1 << 24 };

enum hd_err hd_tokens_put(struct hd_cmd *cmd, struct hd_token_work *work, struct hd_json_writer *w,
	const char *key, const uint32_t *ids, uint32_t n)
{
	struct hd_token_text text = { 0 };
	enum hd_err err = hd_tokenizer_decode(work, ids, n, false, &text, &cmd->diag);

	if (!err)
		hd_json_put_bytes(w, key, text.len ? (const char *)text.at : "", text.len);
	hd_free(text.at);
	return err;
}

static enum hd_err print_file(struct hd_cmd *cmd, const char *path, const struct hd_map *map,
	struct hd_token_work *work)
{
	const uint8_t *at;
	uint64_t ntokens, n = hd_args_count(&cmd->args, HD_OPT_COUNT_, SHOWN);
	uint32_t width;
	struct hd_json_writer w;
	struct hd_text text;
	enum hd_err err = hd_tokens_parse(map->bytes, map->len, path, &at, &ntokens, &width, &cmd->diag);

	if (err)
		return err;
	n = n > ntokens ? ntokens : n > SHOWN_CAP ? SHOWN_CAP : n;
	uint32_t *ids = hd_arena_take(&cmd->arena, n + 1, sizeof *ids);
	if (!ids)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %llu tokens", (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = width == 2 ? hd_get16(at + 2 * i) : hd_get32(at + 4 * i);
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "name", path);
	hd_json_put_i64(&w, "tokens", (int64_t)ntokens);
	hd_json_put_i64(&w, "bits", 8 * width);
	hd_json_put_i64(&w, "shown", (int64_t)n);
	err = hd_tokens_put(cmd, work, &w, "text", ids, (uint32_t)n);
	hd_json_close(&w);
	if (!err)
		printf("%s\n", text.at);
	return err;
}

enum hd_err hd_tokens_cat(struct hd_cmd *cmd, const char *path)
{
	struct hd_tokenizer *tokenizer = NULL;
	struct hd_token_work *work = NULL;
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };
	enum hd_err err;

	if (!(err = hd_cmd_tokenizer(cmd, &tokenizer)) && !(err = hd_token_work_create(&work, tokenizer,
		&cmd->diag)) && !(err = hd_file_open(&cmd->fs, path, HD_OPEN_READ, &file, &cmd->diag)) &&
		!(err = hd_file_map(&file, &map, &cmd->diag)))
		err = print_file(cmd, path, &map, work);
	hd_file_unmap(&cmd->fs, &map);
	enum hd_err closed = hd_file_close(&file, err ? NULL : &cmd->diag);
	hd_token_work_destroy(work);
	hd_tokenizer_destroy(tokenizer);
	return err ? err : closed;
}
