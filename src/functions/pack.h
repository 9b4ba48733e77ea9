/* pack.h -- the zip file that AWS Lambda starts function workers from: one executable named `bootstrap`.
 *
 * `heddle worker --pack lambda` is its user.
 *
 * 1. The executable needs nothing but a kernel: it is of 64 bits, of x86-64 or arm64, and names no loader, so
 *    no library of the machine that made it is missed [HD_E_REFUSED]. What is no such executable, or not
 *    all of one, is HD_E_INPUT.
 * 2. Equal executables give equal files (data/zip.h, 3).
 *
 * Ownership: the file lies in the arena. Pure. */
#ifndef HD_FUNCTIONS_PACK_H
#define HD_FUNCTIONS_PACK_H

#include "data/zip.h"

/* Of a file that is sent with the request that makes a function. */
enum { HD_FN_PACK_BYTES = 50 << 20 };

/* `arch`: as AWS spells it, "x86_64" or "arm64". */
struct hd_fn_pack { const char *arch; struct hd_zip_member file; };

/* `name` is the executable's in messages. */
HD_MUST_USE enum hd_err hd_fn_pack(const char *name, const uint8_t *bytes, size_t len, struct hd_arena *arena,
	struct hd_fn_pack *pack, struct hd_diag *diag);

#endif
