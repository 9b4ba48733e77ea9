#include "data/tokens.h"

#include <string.h>

#include "data/named.h"
#include "data/packing.h"
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

/* ---- packed: documents that begin where another file says ---- */

/* mask, positions, documents: fields, where the model reads them; 0: it does not */
struct token_set { struct hd_token_stream stream; struct hd_packing packing;
	uint32_t mask, positions, documents; };

/* The boundaries of each token file (token_write.h), in the order of these, behind one another: where each
 * document begins in the joined tokens. */
static enum hd_err take_boundaries(struct token_set *set, uint32_t nfiles, uint64_t *begin,
	uint64_t *ndocuments,
	struct hd_diag *diag)
{
	const struct hd_source *source = set->stream.reader.source;

	*ndocuments = 0;
	for (uint32_t f = 0; f < nfiles; f++) {
		const struct hd_source *s = &source[nfiles + f];
		const struct hd_piece *piece = &set->stream.piece[f];
		const uint64_t n = s->len / 8 - 1;
		uint64_t before = 0;
		for (uint64_t d = 0; d <= n; d++) {
			const uint64_t at = hd_get64(s->bytes + 8 * d);
			if (at < before || (!d && at) || (d == n ? at != piece->ntokens :
				at > piece->ntokens))
				return hd_fail(diag, HD_E_INPUT,
					"%s: boundary %llu is %llu: they begin with 0, never "
					"fall, and end with the %llu tokens of %s (`heddle data tokenize "
					"--boundaries` "
					"writes both)", s->name, (unsigned long long)d,
					(unsigned long long)at,
					(unsigned long long)piece->ntokens, piece->name);
			begin[*ndocuments + d] = piece->first + at;
			before = at;
		}
		*ndocuments += n;
	}
	return HD_OK;
}

static enum hd_err open_boundaries(struct token_set *set, const struct hd_data_spec *spec, uint64_t **begin,
	uint64_t *ndocuments, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->stream.reader;
	const uint32_t nfiles = reader->nsources;
	uint64_t n = 1;
	enum hd_err err = hd_source_add_glob(reader, spec->boundaries, diag);

	if (err)
		return err;
	if (reader->nsources != 2 * nfiles)
		return hd_fail(diag, HD_E_INPUT, "data.boundaries %s: %u files, data.path %s has %u: one "
			"for each, in the "
			"same order", spec->boundaries, reader->nsources - nfiles, spec->path, nfiles);
	for (uint32_t f = nfiles; f < reader->nsources; f++) {
		if (reader->source[f].len % 8 || reader->source[f].len < 16)
			return hd_fail(diag, HD_E_INPUT, "%s has %zu bytes: boundaries are two or more "
				"numbers of eight",
				reader->source[f].name, reader->source[f].len);
		n += reader->source[f].len / 8 - 1;
	}
	*begin = hd_arena_take(&reader->arena, n, sizeof **begin);
	return *begin ? take_boundaries(set, nfiles, *begin, ndocuments, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory for %llu boundaries", (unsigned long long)n);
}

/* What only the packing knows of a sample: where documents begin again, and what fills it up. */
static enum hd_err add_named(struct token_set *set, const struct hd_data_spec *spec, const char *name,
	uint32_t *field, struct hd_diag *diag)
{
	const struct hd_data_want *want = hd_want_find(spec, name);
	const bool positions = !strcmp(name, HD_POSITIONS_NAME);

	if (!want || want->dtype != HD_I32 || hd_want_elems(want) != spec->context)
		return HD_OK;                                /* named.h refuses it, or makes it */
	if (positions && want->bound && spec->context > want->bound)
		return hd_fail(diag, HD_E_INPUT, "the model knows %lld positions, its samples have %u "
			"tokens: give it more "
			"(model.args positions)", (long long)want->bound, spec->context);
	*field = set->stream.reader.set.nfields;
	return hd_field_add(&set->stream.reader, want->name, HD_I32, want->rank, want->dim, diag);
}

static enum hd_err fill_packed(struct token_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->stream.reader;
	const int64_t dim = spec->context;
	uint64_t *begin = NULL, ndocuments = 0;
	enum hd_err err;

	if (!spec->boundaries)
		return hd_fail(diag, HD_E_INVAL, "data.pack needs to know where documents begin: set "
			"data.boundaries to "
			"what `heddle data tokenize --boundaries` wrote");
	if ((err = hd_token_stream_join(&set->stream, spec, piece_of, diag)) || (err = open_boundaries(set,
		spec,
		&begin, &ndocuments, diag)))
		return err;
	if (spec->context < 2)
		return hd_fail(diag, HD_E_INVAL, "data.pack needs a model that reads two tokens or more");
	if ((err = hd_packing_make(&set->packing, &reader->arena, spec->pack, spec->context, begin,
		ndocuments, diag)) ||
		(err = hd_field_add(reader, "x", HD_I32, 1, &dim, diag)) ||
		(err = hd_field_add(reader, "y", HD_I32, 1, &dim, diag)) ||
		(err = add_named(set, spec, HD_MASK_NAME, &set->mask, diag)) ||
		(err = add_named(set, spec, HD_POSITIONS_NAME, &set->positions, diag)) ||
		(err = add_named(set, spec, HD_DOCUMENTS_NAME, &set->documents, diag)))
		return err;
	reader->set.hash = hd_sources_hash(reader);
	reader->set.count = set->packing.nsamples;
	hd_reader_about(reader, "%llu documents of %llu tokens in %llu samples of %u, %s",
		(unsigned long long)ndocuments, (unsigned long long)set->stream.ntokens,
		(unsigned long long)set->packing.nsamples, spec->context, spec->path);
	return hd_split_last(reader, spec, reader->set.count, diag);
}

/* A token's label is the next one of its document; of the last, and behind all pieces, there is none. */
static enum hd_err read_packed(const struct token_set *set, uint64_t sample, int32_t *x, int32_t *y,
	struct hd_diag *diag)
{
	const struct hd_packing *p = &set->packing;
	uint32_t at = 0;
	enum hd_err err = HD_OK;

	for (uint64_t i = p->first[sample]; i < p->first[sample + 1] && !err; i++) {
		const struct hd_packing_piece *piece = &p->piece[i];
		if ((err = hd_token_stream_take(&set->stream, piece->at, piece->len, x + at, diag)))
			return err;
		memcpy(y + at, x + at + 1, (piece->len - 1) * sizeof *y);
		at += piece->len;
		y[at - 1] = -1;
		if (piece->goes_on)
			err = hd_token_stream_take(&set->stream, piece->at + piece->len, 1, &y[at - 1], diag);
	}
	for (; at < set->stream.context; at++) {
		x[at] = set->stream.pad;
		y[at] = -1;
	}
	return err;
}

/* Positions count from 0 in each piece; pieces from 1, and what fills the sample up is 0. */
static void put_named(const struct token_set *set, uint64_t sample, void *const *out)
{
	const struct hd_packing *p = &set->packing;
	int32_t *mask = set->mask ? out[set->mask] : NULL, *positions = set->positions ? out[set->positions] :
		NULL;
	int32_t *documents = set->documents ? out[set->documents] : NULL;
	uint32_t at = 0;

	for (uint64_t i = p->first[sample]; i < p->first[sample + 1]; i++)
		for (uint32_t j = 0; j < p->piece[i].len; j++, at++) {
			if (mask)
				mask[at] = 1;
			if (positions)
				positions[at] = (int32_t)j;
			if (documents)
				documents[at] = (int32_t)(i - p->first[sample]) + 1;
		}
	for (; at < set->stream.context; at++) {
		if (mask)
			mask[at] = 0;
		if (positions)
			positions[at] = 0;
		if (documents)
			documents[at] = 0;
	}
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct token_set *set = (struct token_set *)reader;

	set->stream.pad = spec->pad < 0 ? 0 : spec->pad;
	if (spec->pack != HD_PACKING_NONE)
		return fill_packed(set, spec, diag);
	return hd_token_stream_make(&set->stream, spec, piece_of, "tokens", diag);
}

static enum hd_err tokens_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct token_set), &hd_reader_tokens, fs, fill, spec, diag);
}

static enum hd_err tokens_read(const struct hd_dataset *dataset, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	const struct token_set *set = (const struct token_set *)dataset;

	if (!set->packing.nsamples)
		return hd_token_stream_read(dataset, split, index, out, diag);
	const uint64_t sample = hd_split_id(&set->stream.reader, split, index);
	put_named(set, sample, out);
	return read_packed(set, sample, out[0], out[1], diag);
}

const struct hd_reader_ops hd_reader_tokens = {
	.name = "tokens", .about = "files of 16-bit and 32-bit tokens as llm.c and `heddle data tokenize` "
		"write them",
	.open = tokens_open, .read = tokens_read, .destroy = hd_reader_destroy,
};
