/* testing_stream.h -- two ends of a connection in one epoch, for tests of streams: included by *_test.c
 * only. */
#ifndef HD_WIRE_TESTING_STREAM_H
#define HD_WIRE_TESTING_STREAM_H

#include "wire/testing.h"

__attribute__((unused))
static const struct hd_hash plan_a = { { 1, 2, 3 } }, plan_b = { { 3, 2, 1 } };

/* Both ends in `epoch`, with the same rows each way. */
static inline void enter(struct stream_pair *p, uint32_t epoch, const struct hd_transfer *rows, size_t n)
{
	for (int i = 0; i < 2; i++) {
		hd_stream_epoch(p->stream[i], epoch, plan_a);
		assert_int_equal(hd_stream_channel(p->stream[i], rows, n, rows, n, &p->diag[i]), HD_OK);
	}
}

static inline enum hd_err send(struct stream_pair *p, int from, uint32_t transfer, int32_t priority,
	uint64_t step, const uint8_t *bytes, uint64_t len, uint64_t token)
{
	return hd_stream_send(p->stream[from], &(struct hd_send){ transfer, priority, step, bytes, len,
		token }, p->now, &p->diag[from]);
}

#endif
