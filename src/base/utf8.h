/* utf8.h -- the one definition of valid UTF-8 (Unicode 15, table 3-7: no overlong forms,
 * no surrogates, nothing above U+10FFFF). Readers refuse by it, writers replace by it. */
#ifndef HD_BASE_UTF8_H
#define HD_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character at `at`, 1 to 4; 0 where no valid one starts. len > 0. */
size_t hd_utf8_len(const char *at, size_t len);

#endif
