/* What the parser accepts lies inside its input and fills it to the last byte. */
#include <stdlib.h>

#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_idx idx;
	uint64_t n = 1, sum = 0;

	if (hd_idx_parse(bytes, len, "input", 1, HD_IDX_RANK, &idx, NULL) != HD_OK)
		return 0;
	for (uint32_t i = 0; i < idx.rank; i++)
		n *= (uint64_t)idx.dim[i];
	for (uint64_t i = 0; i < n; i++)
		sum += idx.at[i];
	if (idx.at + n != bytes + len || sum > n * 255)
		abort();
	return 0;
}
