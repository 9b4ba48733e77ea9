/* tar.h -- members of a tar file, as its bytes come by.
 *
 *	block of 512 bytes: name [0,100) size [124,136) checksum [148,156) type [156] magic [257,263) prefix
 * [345,500)
 *	then the member, filled up to whole blocks; two blocks of zeros end the file
 *
 * 1. Accepted: ustar, GNU and old headers with a good checksum; sizes in octal or GNU's base 256; long names
 *    by GNU's 'L' and pax's 'x' (path, size). Folders, links and what else has no bytes are passed by.
 * 2. Pieces of any length give the same members. A file that ends inside a member or a header, or before a
 *    block of zeros, is HD_E_INPUT, with the offset.
 *
 * Pure: no file, no allocation. */
#ifndef HD_DATA_TAR_H
#define HD_DATA_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_TAR_BLOCK = 512, HD_TAR_NAME = 1024 };

struct hd_tar_member { uint64_t offset, len; char name[HD_TAR_NAME]; };

struct hd_tar {
	uint64_t at;                      /* bytes seen */
	uint64_t left;                    /* of the member at hand, with its filling */
	uint64_t body;                    /* of the member at hand, without */
	uint8_t block[HD_TAR_BLOCK]; size_t nblock;
	char extra[4096]; size_t nextra;  /* of a long name, or pax */
	char type;                        /* of the member at hand */
	bool in_member, ended;
	struct hd_tar_member member;
	char name[HD_TAR_NAME];           /* that the next header is overruled by; "": none */
	uint64_t size; bool has_size;
};

/* What is done with a member's beginning, its bytes, in pieces, and its end. */
struct hd_tar_sink {
	void *user;
	enum hd_err (*begin)(void *user, const struct hd_tar_member *member, struct hd_diag *diag);
	enum hd_err (*bytes)(void *user, const uint8_t *bytes, size_t len, struct hd_diag *diag);
	enum hd_err (*end)(void *user, struct hd_diag *diag);
};

void hd_tar_init(struct hd_tar *tar);
HD_MUST_USE enum hd_err hd_tar_feed(struct hd_tar *tar, const uint8_t *bytes, size_t len, const char *name,
	const struct hd_tar_sink *sink, struct hd_diag *diag);
/* How much of a member's name is the key of its sample: up to the first dot of its last part. */
size_t hd_tar_key(const char *name);
/* Whether the first block of a file is a header of a member. */
bool hd_tar_begins(const uint8_t block[HD_TAR_BLOCK]);
/* The file ends here. */
HD_MUST_USE enum hd_err hd_tar_finish(const struct hd_tar *tar, const char *name, struct hd_diag *diag);

#endif
