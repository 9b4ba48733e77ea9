/* packing.h -- documents of tokens in samples of one length: which piece of which document stands where
 * (pure).
 *
 * 1. A document's tokens are cut into pieces of at most T, in their order. What is left of a document as one
 * last
 *    token, and a document of one, are left out: nothing is learned of them.
 * 2. In order: pieces fill each sample to its end, and a document goes on in the next one. First fit: pieces
 * are
 *    T long but the last of a document; each goes into the first sample that has room for it, which closes
 * none.
 * 3. In a sample pieces stand in the order of the documents. Each sample has one at least; what no piece
 * fills
 *    lies at its end.
 *
 * Ownership: all lies in the arena. First fit takes log2 of the samples for each piece, by a tree of the room
 * that
 * is left. */
#ifndef HD_DATA_PACKING_H
#define HD_DATA_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum hd_packing_how { HD_PACKING_NONE, HD_PACKING_ORDER, HD_PACKING_FIT };

/* goes_on: the token behind it is the document's, too. */
struct hd_packing_piece { uint64_t at; uint32_t len; bool goes_on; };

struct hd_packing {
	struct hd_packing_piece *piece; uint64_t npieces;
	uint64_t *first; uint64_t nsamples;      /* [nsamples + 1] its pieces; the last is npieces */
};

/* Document d has the tokens begin[d] to begin[d + 1], of [ndocuments + 1]; T is 2 or more. */
HD_MUST_USE enum hd_err hd_packing_make(struct hd_packing *packing, struct hd_arena *arena,
	enum hd_packing_how how, uint32_t context, const uint64_t *begin, uint64_t ndocuments,
	struct hd_diag *diag);

#endif
