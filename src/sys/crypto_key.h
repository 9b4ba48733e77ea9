/* crypto_key.h -- pre-shared key of a job's processes, in a file of the user.
 *
 * 1. The file holds 64 hexadecimal digits (HD_KEY_BYTES random bytes) and a newline, nothing else.
 * 2. It is refused unless it is a regular file of this user with the mode 0600 or 0400: what others can read
 *    is no secret.
 * 3. The secret goes into no argument, environment variable, log or message. Its id is public: derived one
 *    way (HKDF-SHA256), so that a peer with another key is recognised before the handshake.
 * 4. A process that has read a key leaves no core dump, and other processes of its user cannot look into it.
 *
 * Plain values; the reader of a key wipes it. */
#ifndef HD_SYS_CRYPTO_KEY_H
#define HD_SYS_CRYPTO_KEY_H

#include "base/err.h"
#include "base/hash.h"

enum { HD_KEY_BYTES = 32 };

struct hd_key { uint8_t byte[HD_KEY_BYTES]; };

/* A new file with a new key, mode 0600. HD_E_EXISTS: there is a file of that name, it stays. */
HD_MUST_USE enum hd_err hd_key_make(const char *path, struct hd_diag *diag);
/* HD_E_NOTFOUND; HD_E_REFUSED: others could read it; HD_E_INPUT: it holds something else. */
HD_MUST_USE enum hd_err hd_key_read(const char *path, struct hd_key *key, struct hd_diag *diag);
/* Whether a file of keys of others (of AWS) is its owner's alone, as 2 has it. HD_E_NOTFOUND: there is none.
 * */
HD_MUST_USE enum hd_err hd_key_private(const char *path, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_key_id(const struct hd_key *key, struct hd_hash *id, struct hd_diag *diag);
void hd_key_wipe(struct hd_key *key);

#endif
