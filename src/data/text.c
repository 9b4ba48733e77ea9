/* Text as it is: a byte is a token, whatever the encoding. */
#include "data/stream_int.h"

static enum hd_err piece_of(const struct hd_source *source, struct hd_piece *piece, struct hd_diag *diag)
{
	(void)diag;
	piece->bytes = source->bytes;
	piece->ntokens = source->len;
	piece->width_bytes = 1;
	return HD_OK;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	return hd_token_stream_make((struct hd_token_stream *)reader, spec, piece_of, "bytes of text",
		diag);
}

static enum hd_err text_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct hd_token_stream), &hd_reader_text, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_text = {
	.name = "text", .about = "bytes of text files, one token each (vocabulary 256)",
	.open = text_open, .read = hd_token_stream_read, .destroy = hd_reader_destroy,
};
