/* grow.h -- lists on the heap that grow: a pointer, how many places it has, how many are wanted.
 *
 * Places double, so that n appends copy less than 2 n entries. What a list held stays; new places are not
 * zeroed. The list is the caller's: it begins as NULL with cap 0 and ends in hd_free(). */
#ifndef HD_BASE_GROW_H
#define HD_BASE_GROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* `list` points to the pointer. HD_E_NOMEM: the list is as it was; the message says "no memory for N
 * `what`". */
HD_MUST_USE enum hd_err hd_grow(void *list, uint32_t *cap, uint64_t n, size_t size, const char *what,
	struct hd_diag *diag);

#endif
