#include "wire/transport.h"

#include <string.h>

const struct hd_transport *hd_transport_find(const char *name)
{
	static const struct hd_transport *const all[] = {
#define X(name) &hd_transport_##name,
		HD_WIRE_TRANSPORTS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
