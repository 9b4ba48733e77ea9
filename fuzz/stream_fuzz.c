/* stream_fuzz -- a greeted connection takes any frames: it closes for a reason, or goes on; whatever came, no
 * byte is written but into what was posted, and a closed one says why. Headers' and payloads' checksums
 * are mended, so that what is behind them is reached. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "wire/frame.h"
#include "wire/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 300 };

static void no_up(void *self, const struct hd_peer_info *peer) { (void)self; (void)peer; }
static void no_lost(void *self, uint32_t worker, enum hd_close why, const char *text) { (void)self;
	(void)worker; (void)why; (void)text; }
static void no_suspect(void *self, uint32_t worker, int64_t silent_ms) { (void)self; (void)worker;
	(void)silent_ms; }
static void no_number(void *self, uint32_t worker, uint32_t epoch) { (void)self; (void)worker; (void)epoch; }
static void no_sent(void *self, const struct hd_sent *sent) { (void)self; (void)sent; }
static void no_probe(void *self, const struct hd_probe *probe) { (void)self; (void)probe; }
static uint64_t no_time(void *self) { (void)self; return 0; }

/* Every byte of a message can be read. */
static void read_message(void *self, const struct hd_message *message)
{
	volatile uint32_t sum = hd_crc32c(0, message->bytes, message->len);

	(void)self;
	(void)sum;
	if (message->len > HD_TELL_MAX || message->id < HD_TELL_FIRST_ID)
		abort();
}

static void read_arrival(void *self, const struct hd_arrival *arrival)
{
	(void)self;
	if (arrival->len > BYTES)
		abort();
}

/* Takes what it wants to write, as a transport would. */
static void drain(struct hd_stream *stream)
{
	struct hd_vec vec[HD_STREAM_VECS];
	size_t n, len;

	while ((n = hd_stream_out(stream, 0, vec))) {
		len = 0;
		for (size_t i = 0; i < n; i++)
			len += vec[i].len;
		hd_stream_wrote(stream, len, 0);
	}
}

static enum hd_close feed(struct hd_stream *stream, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct hd_vec vec[2];
	enum hd_close why = HD_CLOSE_NONE;

	while (len && !why && hd_stream_in(stream, vec)) {
		size_t piece = len < vec[0].len ? len : vec[0].len;
		memcpy(vec[0].at, bytes, piece);
		bytes += piece;
		len -= piece;
		why = hd_stream_read(stream, piece, 0, diag);
	}
	return why;
}

/* What its owner may ask for in between: by a byte of the input that the mended checksum takes. */
static void act(struct hd_stream *stream, uint8_t what)
{
	static const uint8_t bytes[BYTES];

	switch (what & 15) {
	case 1: hd_stream_want(stream, 1); break;
	case 2: hd_stream_want(stream, 5); break;
	case 3: hd_stream_refuse(stream, 7); break;
	case 4: hd_stream_rank(stream, 9, (int8_t)what); break;
	case 5: hd_stream_cancel(stream, 9); break;
	case 6: (void)!hd_stream_send(stream, &(struct hd_send){ .transfer = 1, .bytes = bytes, .len = BYTES,
		.token = 9 }, 0, NULL); break;
	case 7: (void)!hd_stream_answer(stream, &(struct hd_answer){ .request = 3, .bytes = bytes,
		.len = BYTES, .token = 9 }, 0, NULL); break;
	default: break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hd_transfer rows[] = { { 1, 1, BYTES }, { 2, 0, BYTES }, { 5, 2, BYTES } };
	const struct hd_wire_events events = { NULL, no_up, no_lost, no_suspect, read_message, read_arrival,
		no_sent, no_number, no_number, no_probe };
	const struct hd_stream_config config = { .self = 0, .peer = 1, .fenced = true, .payload_crc = true,
		.streams_cap = 4, .stamp = no_time };
	const struct hd_hash plan = { { 0 } };
	uint8_t *posted[5], header[HD_FRAME_HEADER];
	struct hd_stream *stream;
	struct hd_diag diag = { "" };
	enum hd_close why = HD_CLOSE_NONE;

	if (hd_stream_create(&config, &events, &stream, &diag))
		return 0;
	hd_stream_decided(stream, 3);
	hd_stream_epoch(stream, 1, plan);
	if (hd_stream_channel(stream, rows, 3, rows, 3, &diag))
		abort();
	for (int i = 0; i < 5; i++)
		posted[i] = malloc(BYTES);        /* of their own: writing beside one is seen */
	for (uint32_t i = 0; i < 4; i++)
		if (!posted[i] || hd_stream_post(stream, rows[i < 3 ? i : 2].id, posted[i], 0, &diag))
			abort();
	if (!posted[4] || hd_stream_expect(stream, 7, posted[4], BYTES, 0, &diag))
		abort();
	while (size >= HD_FRAME_HEADER && !why) {
		memcpy(header, data, HD_FRAME_HEADER);
		data += HD_FRAME_HEADER;
		size -= HD_FRAME_HEADER;
		act(stream, header[47]);
		uint32_t len = hd_get32(header + 32) < size ? hd_get32(header + 32) : (uint32_t)size;
		hd_put32(header + 32, len);
		if (len)
			header[5] |= HD_FRAME_CRC;
		hd_put32(header + 40, len ? hd_crc32c(0, data, len) : 0);
		hd_put32(header + 44, hd_crc32c(0, header, 44));
		why = feed(stream, header, HD_FRAME_HEADER, &diag);
		if (!why)
			why = feed(stream, data, len, &diag);
		data += len;
		size -= len;
		drain(stream);
		if (!why)
			why = hd_stream_turn(stream, 0, &diag);
	}
	if (why && !diag.text[0])
		abort();
	hd_stream_destroy(stream);
	for (int i = 0; i < 5; i++)
		free(posted[i]);
	return 0;
}
