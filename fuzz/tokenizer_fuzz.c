/* A tokenizer's file, then, behind a 0, a text: what is accepted gives tokens below its size, twice the same,
 * and they decode. Halves of the text make rows of a fixed length, alone and as a pair. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void encode(const struct hd_tokenizer *tokenizer, const uint8_t *text, size_t len)
{
	struct hd_token_work *work;
	struct hd_token_ids ids = { 0 };
	struct hd_token_text back = { 0 };

	if (hd_token_work_create(&work, tokenizer, NULL))
		abort();
	if (!hd_tokenizer_encode(work, "text", text, len, true, &ids, NULL)) {
		const uint32_t n = ids.n;
		if (hd_tokenizer_encode(work, "text", text, len, true, &ids, NULL) || ids.n != 2 * n)
			abort();
		for (uint32_t i = 0; i < n; i++)
			if (ids.at[i] != ids.at[n + i] || ids.at[i] >= hd_tokenizer_size(tokenizer))
				abort();
		enum hd_err err = hd_tokenizer_decode(work, ids.at, n, false, &back, NULL);
		(void)err;
	}
	hd_free(ids.at);
	hd_free(back.at);
	hd_token_work_destroy(work);
}

/* Whatever the file says of cutting and filling up: each place of the row has a token that there is. */
static void make_rows(const struct hd_tokenizer *tokenizer, const char *text, size_t len)
{
	enum { MOST = 8 };
	const char *const texts[2] = { text, text + len / 2 };
	const size_t lens[2] = { len / 2, len - len / 2 };
	const uint32_t found = hd_tokenizer_pad(tokenizer), pad = found == HD_TOKEN_NONE ? 0 : found;
	struct hd_token_work *work;
	uint32_t id[MOST];
	uint8_t kind[MOST];

	if (hd_token_work_create(&work, tokenizer, NULL))
		abort();
	for (uint32_t ntexts = 1; ntexts <= 2; ntexts++) {
		struct hd_token_row row = { .id = id, .kind = kind };
		if (hd_tokenizer_row(work, "text", texts, lens, ntexts, MOST, pad, &row, NULL))
			continue;
		if (row.first + row.n > MOST)
			abort();
		for (uint32_t i = 0; i < MOST; i++)
			if (id[i] >= hd_tokenizer_size(tokenizer) && (found != HD_TOKEN_NONE || id[i]))
				abort();
	}
	hd_token_work_destroy(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *end = len ? memchr(bytes, 0, len) : NULL;
	const size_t n = end ? (size_t)(end - bytes) : len;
	struct hd_tokenizer *tokenizer;

	if (hd_tokenizer_create(&tokenizer, "t", (const char *)bytes, n, NULL))
		return 0;
	encode(tokenizer, end ? end + 1 : bytes, end ? len - n - 1 : len);
	make_rows(tokenizer, (const char *)(end ? end + 1 : bytes), end ? len - n - 1 : len);
	hd_tokenizer_destroy(tokenizer);
	return 0;
}
