#include "base/grow.h"

#include <string.h>

#include "base/alloc.h"

enum { LEAST = 16 };

enum hd_err hd_grow(void *list, uint32_t *cap, uint64_t n, size_t size, const char *what,
	struct hd_diag *diag)
{
	uint64_t more = *cap ? *cap : LEAST;
	void *old, *grown = NULL;

	if (n <= *cap)
		return HD_OK;
	while (more < n && more <= UINT32_MAX)
		more *= 2;
	if (more > UINT32_MAX || !(grown = hd_alloc((size_t)more * size)))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu %s", (unsigned long long)n, what);
	memcpy(&old, list, sizeof old);           /* a pointer of any type */
	if (*cap)
		memcpy(grown, old, (size_t)*cap * size);
	hd_free(old);
	memcpy(list, &grown, sizeof grown);
	*cap = (uint32_t)more;
	return HD_OK;
}
