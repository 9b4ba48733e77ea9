/* unicode_int.h -- the sets of unicode_tables.c: ranges, ascending, up to { 0 }. Private to the room. */
#ifndef HD_TOKEN_UNICODE_INT_H
#define HD_TOKEN_UNICODE_INT_H

#include <stdint.h>

struct hd_chars { uint32_t first, last; };

/* of regular expressions: what Oniguruma has beyond PCRE2 */
#define HD_RE_CLASSES(X) X(L) X(Lu) X(Ll) X(Lt) X(Lm) X(Lo) X(M) X(N) X(Nd) X(P) X(S) X(Han) X(w)
#define X(name) extern const struct hd_chars hd_chars_re_##name[];
HD_RE_CLASSES(X)
#undef X

extern const struct hd_chars hd_chars_word[], hd_chars_numeric[], hd_chars_punct[], hd_chars_other[],
	hd_chars_mn[], hd_chars_mark[], hd_chars_later[], hd_chars_glued[];
/* from, to: what utf8proc does not lower */
extern const struct hd_chars hd_chars_lower[];

#endif
