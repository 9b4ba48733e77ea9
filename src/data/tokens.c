#include "data/tokens.h"

#include "data/stream_int.h"

enum hd_err hd_tokens_parse(const uint8_t *bytes, size_t len, const char *name, const uint8_t **at,
	uint64_t *ntokens, uint32_t *width_bytes, struct hd_diag *diag)
{
	if (len < HD_TOKENS_HEADER_BYTES)
		return hd_fail(diag, HD_E_INPUT,
			"%s is cut off: %zu bytes, the header of a token file alone has %d", name, len,
			HD_TOKENS_HEADER_BYTES);
	uint32_t magic = hd_get32(bytes), version = hd_get32(bytes + 4), n = hd_get32(bytes + 8);
	const bool wide = magic == HD_TOKENS_MAGIC32;
	if (!wide && magic != HD_TOKENS_MAGIC)
		return hd_fail(diag, HD_E_INPUT,
			"%s is not a token file: it begins with %u, not with %d or %d (for plain text use "
			"data.kind text, or make tokens of it by `heddle data tokenize`)", name,
			magic, HD_TOKENS_MAGIC, HD_TOKENS_MAGIC32);
	if (version != (wide ? HD_TOKENS_VERSION32 : HD_TOKENS_VERSION))
		return hd_fail(diag, HD_E_INPUT,
			"%s is a token file of version %u; known is %d (%d-bit tokens)", name, version,
			wide ? HD_TOKENS_VERSION32 : HD_TOKENS_VERSION, wide ? 32 : 16);
	if (n > INT32_MAX)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the header speaks of %u tokens, above the format's limit", name, n);
	uint64_t want = HD_TOKENS_HEADER_BYTES + (wide ? 4 : 2) * (uint64_t)n;
	if (len != want)
		return hd_fail(diag, HD_E_INPUT, "%s is %s: %u tokens need %llu bytes, it has %zu", name,
			len < want
			? "cut off" : "longer than its header says",
			n, (unsigned long long)want, len);
	*at = bytes + HD_TOKENS_HEADER_BYTES;
	*ntokens = n;
	*width_bytes = wide ? 4 : 2;
	return HD_OK;
}

static enum hd_err piece_of(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag)
{
	return hd_tokens_parse(source->bytes, source->len, source->name, &piece->bytes, &piece->ntokens,
		&piece->width_bytes, diag);
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	return hd_token_stream_make((struct hd_token_stream *)reader, spec, piece_of, "tokens", diag);
}

static enum hd_err tokens_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct hd_token_stream), &hd_reader_tokens, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_tokens = {
	.name = "tokens", .about = "files of 16-bit and 32-bit tokens as llm.c and `heddle data tokenize` "
		"write them",
	.open = tokens_open, .read = hd_token_stream_read, .destroy = hd_reader_destroy,
};
