/* What the parser accepts is whole records inside its input, with labels in range. */
#include <stdlib.h>

#include "data/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint8_t ends[3][2] = { { 0 }, { 10 }, { 20, 100 } };
	struct hd_cifar cifar;

	for (uint32_t nlabels = 1; nlabels <= 2; nlabels++) {
		if (hd_cifar_parse(bytes, len, "input", nlabels, &cifar, NULL) != HD_OK)
			continue;
		if (cifar.count == 0 || hd_cifar_record(&cifar, cifar.count) != bytes + len)
			abort();
		for (uint64_t i = 0; i < cifar.count; i++)
			for (uint32_t k = 0; k < nlabels; k++)
				if (hd_cifar_record(&cifar, i)[k] >= ends[nlabels][k])
					abort();
	}
	return 0;
}
