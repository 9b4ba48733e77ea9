/* What the parser accepts lies inside its input and fills it to the last byte. */
#include <stdlib.h>

#include "data/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *at;
	uint64_t n;
	uint32_t width;

	if (hd_tokens_parse(bytes, len, "input", &at, &n, &width, NULL) == HD_OK &&
		at + width * n != bytes + len)
		abort();
	return 0;
}
