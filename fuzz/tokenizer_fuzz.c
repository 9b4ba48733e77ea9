/* A tokenizer's file, then, behind a 0, a text: what is accepted gives tokens below its size, twice the same,
 * and they decode. */
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *end = len ? memchr(bytes, 0, len) : NULL;
	const size_t n = end ? (size_t)(end - bytes) : len;
	struct hd_tokenizer *tokenizer;

	if (hd_tokenizer_create(&tokenizer, "t", (const char *)bytes, n, NULL))
		return 0;
	encode(tokenizer, end ? end + 1 : bytes, end ? len - n - 1 : len);
	hd_tokenizer_destroy(tokenizer);
	return 0;
}
