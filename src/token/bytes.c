#include "token/bytes.h"

#include <string.h>

#include "base/grow.h"

enum hd_err hd_bytes_room(struct hd_bytes *bytes, size_t more, struct hd_diag *diag)
{
	if (bytes->len + more <= bytes->cap)
		return HD_OK;
	if (bytes->len + more > UINT32_MAX / 2)
		return hd_fail(diag, HD_E_INPUT, "a text of more than %u bytes on its way to tokens: split "
			"it",
			UINT32_MAX / 2);
	return hd_grow(&bytes->at, &bytes->cap, bytes->len + more, 1, "bytes of text", diag);
}

void hd_bytes_put(struct hd_bytes *bytes, const void *at, size_t len)
{
	memcpy(bytes->at + bytes->len, at, len);
	bytes->len += len;
}

enum hd_err hd_bytes_add(struct hd_bytes *bytes, const void *at, size_t len, struct hd_diag *diag)
{
	enum hd_err err = hd_bytes_room(bytes, len, diag);

	if (!err && len)
		hd_bytes_put(bytes, at, len);
	return err;
}
