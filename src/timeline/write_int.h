/* write_int.h -- what writers of formats share: a buffer before the sink, names made fit (private to the
 * room). */
#ifndef HD_TIMELINE_WRITE_INT_H
#define HD_TIMELINE_WRITE_INT_H

#include "timeline/write.h"

enum { HD_TL_NAME_MAX = 1000, HD_TL_ESCAPED = 6 };         /* bytes of one in JSON: \u0001 */

struct hd_tl_out {
	const struct hd_tl_sink *sink;
	struct hd_diag *diag;
	enum hd_err err;                  /* the first one; later pieces are dropped */
	size_t len;
	uint8_t at[HD_TL_PIECE];
};

/* NULL: no memory, said. */
struct hd_tl_out *hd_tl_out_new(const struct hd_tl_sink *sink, struct hd_arena *arena, struct hd_diag *diag);
void hd_tl_out_put(struct hd_tl_out *out, const void *bytes, size_t len);
HD_MUST_USE enum hd_err hd_tl_out_end(struct hd_tl_out *out);

/* `text` as valid UTF-8 of at most HD_TL_NAME_MAX bytes, ended by 0. */
void hd_tl_name_fit(const char *text, char fit[HD_TL_NAME_MAX + 1]);

#endif
