/* cifar.h -- the binary files of CIFAR-10 and CIFAR-100: records of fixed size, no header.
 *
 *	CIFAR-10    label (0..9)                                 3072 bytes of image
 *	CIFAR-100   coarse label (0..19)   fine label (0..99)    3072 bytes of image
 *
 * An image is three planes of 32 x 32 bytes, red, green, blue, row by row.
 *
 * 1. Accepted: whole records only, at least one, every label in its range. */
#ifndef HD_DATA_CIFAR_H
#define HD_DATA_CIFAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_CIFAR_SIDE = 32, HD_CIFAR_IMAGE = 3 * HD_CIFAR_SIDE * HD_CIFAR_SIDE };

/* at: the file's bytes; labels come first in a record */
struct hd_cifar { const uint8_t *at; uint64_t count; uint32_t nlabels; };

/* For tests. `nlabels` is 1 (CIFAR-10) or 2 (CIFAR-100); `name` is for messages. */
HD_MUST_USE enum hd_err hd_cifar_parse(const uint8_t *bytes, size_t len, const char *name, uint32_t nlabels,
	struct hd_cifar *cifar,
	struct hd_diag *diag);

static inline const uint8_t *hd_cifar_record(const struct hd_cifar *cifar, uint64_t i)
{
	return cifar->at + i * (cifar->nlabels + HD_CIFAR_IMAGE);
}

#endif
