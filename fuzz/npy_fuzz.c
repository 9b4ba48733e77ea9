/* What the parser accepts lies inside its input and fills it to the last byte. */
#include <stdlib.h>

#include "data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_npy npy;
	uint64_t n = 1;

	if (hd_npy_parse(bytes, len, "input", &npy, NULL) != HD_OK)
		return 0;
	for (uint32_t i = 0; i < npy.rank; i++)
		n *= (uint64_t)npy.dim[i];
	if (n != npy.nelems || npy.at + n * hd_dtype_bytes(npy.dtype) != bytes + len)
		abort();
	return 0;
}
