/* base64.h -- bytes as text of 64 letters (RFC 4648, with padding).
 *
 * Pages carry their data in it, answers of the Invoke API their logs. Pure. */
#ifndef HD_BASE_BASE64_H
#define HD_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http_head.h"
#include "base/text.h"

void hd_base64_write(const void *bytes, size_t len, struct hd_text *text);
/* Into out[0..cap). false: it is none, or does not fit. */
bool hd_base64_read(struct hd_http_span text, uint8_t *out, size_t cap, size_t *len);

#endif
