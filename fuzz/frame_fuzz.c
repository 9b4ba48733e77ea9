/* frame_fuzz -- any 48 bytes are refused, or are the one spelling of a frame; the same of payloads. The input
 * is tried as it is, and with the header's checksum mended: else nothing behind it would be reached. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define P(name, fields) \
	static void try_##name(const uint8_t *bytes, size_t len) \
	{ \
		struct hd_##name##_payload payload; \
		uint8_t again[hd_##name##_len]; \
		if (len < sizeof again || hd_##name##_get(bytes, &payload, NULL)) \
			return; \
		hd_##name##_put(&payload, again); \
		if (memcmp(again, bytes, sizeof again) != 0) \
			abort(); \
	}
HD_PAYLOADS(P)
#undef P

static void try_header(const uint8_t bytes[HD_FRAME_HEADER])
{
	struct hd_diag diag = { "" };
	struct hd_frame frame;
	uint8_t again[HD_FRAME_HEADER];

	enum hd_err err = hd_frame_get(bytes, &frame, &diag);
	if ((err == HD_OK) == (diag.text[0] != 0) || (err && err != HD_E_PROTOCOL))
		abort();
	if (err)
		return;
	hd_frame_put(&frame, again);
	if (memcmp(again, bytes, sizeof again) != 0 || frame.len > HD_DATA_MAX || frame.class >= HD_CLASSES)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t header[HD_FRAME_HEADER];

	if (size < sizeof header)
		return 0;
	memcpy(header, data, sizeof header);
	try_header(header);
	hd_put32(header + 44, hd_crc32c(0, header, 44));
	try_header(header);
#define P(name, fields) try_##name(data + HD_FRAME_HEADER, size - HD_FRAME_HEADER);
	HD_PAYLOADS(P)
#undef P
	return 0;
}
