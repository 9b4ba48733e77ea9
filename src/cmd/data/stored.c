#include "cmd/data/stored.h"

#include "base/hash.h"
#include "base/json_writer.h"
#include "data/blob.h"
#include "cmd/data/contents.h"

enum { PIECE = 8 << 20, LISTED = 1000 };

/* What it holds, then length, version, content hash, and what reading took. */
static enum hd_err print_whole(struct hd_cmd *cmd, struct hd_blob *blob)
{
	const struct hd_ranges_knobs knobs = hd_blob_knobs(blob);
	uint8_t *piece = hd_arena_take(&cmd->arena, PIECE, 1);
	struct hd_contents contents;
	struct hd_hasher hasher;
	struct hd_json_writer w;
	struct hd_text text;
	char hex[HD_HASH_HEX];
	enum hd_err err = piece ? HD_OK : hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to read %s", blob->name);

	hd_hasher_init(&hasher);
	hd_contents_begin(&contents, blob->name, 0, false, NULL, 0);
	for (uint64_t at = 0; at < blob->size_bytes && !err; at += PIECE) {
		const uint64_t left = blob->size_bytes - at;
		const struct hd_range range = { at, left < PIECE ? left : PIECE, piece };
		err = hd_blob_read(blob, &range, 1, &knobs, &cmd->diag);
		if (err)
			return err;
		if (!at)
			hd_contents_begin(&contents, blob->name, hd_args_count(&cmd->args, HD_OPT_COUNT_,
				LISTED), cmd->args.has[HD_OPT_JSON], piece, range.len);
		hd_contents_feed(&contents, piece, range.len);
		hd_hasher_add(&hasher, piece, range.len);
	}
	if (err)
		return err;
	hd_hash_hex(hd_hasher_end(&hasher), hex);
	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "name", blob->name);
	hd_json_put_i64(&w, "bytes", (int64_t)blob->size_bytes);
	hd_json_put_text(&w, "version", blob->version);
	hd_json_put_text(&w, "hash", hex);
	hd_contents_put(&contents, &w);
	hd_json_put_text(&w, "store", blob->ops->name);
	hd_json_put_i64(&w, "requests", (int64_t)hd_blob_count(blob).requests);
	hd_json_put_i64(&w, "retries", (int64_t)hd_blob_count(blob).retries);
	hd_json_close(&w);
	printf("%s\n", text.at);
	return hd_contents_end(&contents, &cmd->diag);
}

enum hd_err hd_stored_cat(struct hd_cmd *cmd, const char *name)
{
	struct hd_blob *blob = NULL;
	enum hd_err err = hd_blob_open(&blob, name, NULL, &cmd->diag);

	if (!err)
		err = print_whole(cmd, blob);
	hd_blob_close(blob);
	return err;
}
