#include "data/stream_int.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static uint32_t token_at(const struct hd_piece *piece, uint64_t i)
{
	return piece->width_bytes == 1 ? piece->bytes[i] : piece->width_bytes == 2 ? hd_get16(piece->bytes +
		2 * i) : hd_get32(piece->bytes + 4 * i);
}

/* A sample's tokens are int32. */
static uint32_t bound_of(const struct hd_token_stream *stream)
{
	return stream->bound ? stream->bound : (uint32_t)1 << 31;
}

static enum hd_err check_tokens(const struct hd_token_stream *stream, struct hd_diag *diag)
{
	for (uint32_t p = 0; p < stream->npieces; p++) {
		const struct hd_piece *piece = &stream->piece[p];
		const uint64_t all = (uint64_t)1 << 8 * piece->width_bytes;
		const uint32_t bound = bound_of(stream);
		if (bound >= all || (piece->width_bytes < 4 && !stream->bound))
			continue;
		for (uint64_t i = 0; i < piece->ntokens; i++)
			if (token_at(piece, i) >= bound)
				return hd_fail(diag, HD_E_INPUT,
					"%s: token %u at byte %" PRIu64 ", the model knows 0 to %u: give "
					"the model a vocabulary of %u or more",
					piece->name, token_at(piece, i),
						(uint64_t)(piece->bytes - stream->reader.source[p].bytes) +
						i * piece->width_bytes,
					bound - 1, token_at(piece, i) + 1);
	}
	return HD_OK;
}

static enum hd_err join_pieces(struct hd_token_stream *stream,
	enum hd_err (*piece_of)(const struct hd_source *, struct hd_piece *, struct hd_diag *),
	struct hd_diag *diag)
{
	struct hd_reader *reader = &stream->reader;

	stream->piece = hd_arena_take(&reader->arena, reader->nsources, sizeof *stream->piece);
	if (!stream->piece)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the list of %u data files", reader->nsources);
	for (uint32_t i = 0; i < reader->nsources; i++) {
		struct hd_piece *piece = &stream->piece[i];
		enum hd_err err = piece_of(&reader->source[i], piece, diag);
		if (err != HD_OK)
			return err;
		piece->name = reader->source[i].name;
		piece->first = stream->ntokens;
		stream->ntokens += piece->ntokens;
		reader->source[i].head = (size_t)(piece->bytes - reader->source[i].bytes);
		reader->source[i].hashed = piece->ntokens * piece->width_bytes;
	}
	stream->npieces = reader->nsources;
	reader->set.hash = hd_sources_hash(reader);
	return HD_OK;
}

enum hd_err hd_token_stream_join(struct hd_token_stream *stream, const struct hd_data_spec *spec,
	enum hd_err (*piece_of)(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag),
	struct hd_diag *diag)
{
	enum hd_err err;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL, "data.kind %s needs a file: set data.path", spec->kind);
	if (spec->context == 0)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind %s needs a model that reads sequences (model.args context)", spec->kind);
	stream->context = spec->context;
	stream->bound = hd_token_bound(spec);
	err = hd_source_add_glob(&stream->reader, spec->path, diag);
	if (err == HD_OK)
		err = join_pieces(stream, piece_of, diag);
	return err ? err : check_tokens(stream, diag);
}

enum hd_err hd_token_stream_make(struct hd_token_stream *stream, const struct hd_data_spec *spec,
	enum hd_err (*piece_of)(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag),
	const char *what, struct hd_diag *diag)
{
	struct hd_dataset *set = &stream->reader.set;
	const int64_t dim[1] = { spec->context };
	enum hd_err err = hd_token_stream_join(stream, spec, piece_of, diag);

	if (err != HD_OK)
		return err;
	if (stream->ntokens < (uint64_t)spec->context + 1)
		return hd_fail(diag, HD_E_INPUT,
			"%s: %" PRIu64 " %s, one sample needs %u (context + 1): give more data or a shorter "
			"model.args context",
			spec->path, stream->ntokens, what, spec->context + 1);
	if ((err = hd_field_add(&stream->reader, "x", HD_I32, 1, dim, diag)) != HD_OK ||
		(err = hd_field_add(&stream->reader, "y", HD_I32, 1, dim, diag)) != HD_OK)
		return err;
	set->count = (stream->ntokens - 1) / spec->context;
	hd_reader_about(&stream->reader, "%" PRIu64 " %s in %u file%s: %" PRIu64 " samples of %u, %s",
		stream->ntokens, what,
		stream->npieces, stream->npieces == 1 ? "" : "s", set->count, spec->context, spec->path);
	return hd_split_last(&stream->reader, spec, set->count, diag);
}

/* The piece that holds a token: the last that does not begin behind it. */
static uint32_t find_piece(const struct hd_token_stream *stream, uint64_t token)
{
	uint32_t low = 0, high = stream->npieces;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (stream->piece[middle].first <= token)
			low = middle;
		else
			high = middle;
	}
	return low;
}

enum hd_err hd_token_stream_take(const struct hd_token_stream *stream, uint64_t first, uint32_t n,
	int32_t *out,
	struct hd_diag *diag)
{
	uint32_t p = find_piece(stream, first);

	for (uint32_t j = 0; j < n; j++) {
		while (first + j >= stream->piece[p].first + stream->piece[p].ntokens)
			p++;
		const uint32_t token = token_at(&stream->piece[p], first + j - stream->piece[p].first);
		if (token >= bound_of(stream))
			return hd_fail(diag, HD_E_INTEGRITY,
				"%s was changed while it is in use: token %u now stands where all were "
				"below %u", stream->piece[p].name, token, bound_of(stream));
		out[j] = (int32_t)token;
	}
	return HD_OK;
}

enum hd_err hd_token_stream_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	const struct hd_token_stream *stream = (const struct hd_token_stream *)set;
	const uint64_t first = hd_split_id(&stream->reader, split, index) * stream->context;
	int32_t *x = out[0], *y = out[1];
	enum hd_err err = hd_token_stream_take(stream, first, stream->context, x, diag);

	if (err != HD_OK)
		return err;
	memcpy(y, x + 1, (stream->context - 1) * sizeof *y);
	return hd_token_stream_take(stream, first + stream->context, 1, &y[stream->context - 1], diag);
}
