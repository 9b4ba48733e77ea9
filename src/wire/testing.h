/* testing.h -- two streams joined by pipes of bytes, and a record of what their owners heard (for the
 * room's tests). */
#ifndef HD_WIRE_TESTING_H
#define HD_WIRE_TESTING_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "sys/clock.h"
#include "wire/frame.h"
#include "wire/stream.h"
#include "tests/check.h"

enum { HEARD = 4096, PIPE = 1 << 21, KEEP = 64 };

struct heard_message { struct hd_message message; uint8_t first[KEEP]; uint32_t crc; };

struct wire_heard {
	struct heard_message messages[HEARD];
	struct hd_arrival arrivals[HEARD];
	struct hd_sent sents[HEARD];
	uint32_t n_messages, n_arrivals, n_sents, n_stales, n_probes;
	uint32_t stale_epoch, ahead_epoch;
	struct hd_probe probe;
	struct hd_peer_info ups[KEEP];
	struct heard_lost { uint32_t worker; enum hd_close why; char text[200]; int64_t at_ns; } losts[KEEP];
	struct heard_suspect { uint32_t worker; int64_t silent_ms, at_ns; } suspects[KEEP];
	uint32_t n_ups, n_losts, n_suspects, n_aheads;
	struct hd_clock *clock;           /* NULL: none */
	void (*on_arrival)(struct wire_heard *heard);
	void *user;
};

static inline void hear_up(void *self, const struct hd_peer_info *peer)
{
	struct wire_heard *h = self;
	h->ups[h->n_ups++ % KEEP] = *peer;
}
static inline void hear_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct wire_heard *h = self;
	struct heard_lost *at = &h->losts[h->n_losts++ % KEEP];

	*at = (struct heard_lost){ worker, why, "", h->clock ? hd_clock_now_ns(h->clock) : 0 };
	snprintf(at->text, sizeof at->text, "%s", text);
}
static inline void hear_suspect(void *self, uint32_t worker, int64_t ms)
{
	struct wire_heard *h = self;
	h->suspects[h->n_suspects++ % KEEP] = (struct heard_suspect){ worker, ms,
		h->clock ? hd_clock_now_ns(h->clock) : 0 };
}
static inline void hear_ahead(void *self, uint32_t worker, uint32_t epoch)
{
	struct wire_heard *h = self;

	(void)worker;
	h->n_aheads++;
	h->ahead_epoch = epoch;
}
static inline void hear_message(void *self, const struct hd_message *message)
{
	struct wire_heard *h = self;
	struct heard_message *at = &h->messages[h->n_messages++ % HEARD];

	at->message = *message;
	at->crc = hd_crc32c(0, message->bytes, message->len);
	if (message->len)
		memcpy(at->first, message->bytes, message->len < KEEP ? message->len : KEEP);
}
static inline void hear_arrived(void *self, const struct hd_arrival *arrival)
{
	struct wire_heard *h = self;

	h->arrivals[h->n_arrivals++ % HEARD] = *arrival;
	if (h->on_arrival)
		h->on_arrival(h);
}
static inline void hear_sent(void *self, const struct hd_sent *sent)
{
	struct wire_heard *h = self;
	h->sents[h->n_sents++ % HEARD] = *sent;
}
static inline void hear_stale(void *self, uint32_t worker, uint32_t epoch)
{
	struct wire_heard *h = self;

	(void)worker;
	h->n_stales++;
	h->stale_epoch = epoch;
}
static inline void hear_probed(void *self, const struct hd_probe *probe)
{
	struct wire_heard *h = self;
	h->probe = *probe;
	h->n_probes++;
}

static inline struct hd_wire_events hear_with(struct wire_heard *heard)
{
	return (struct hd_wire_events){ heard, hear_up, hear_lost, hear_suspect, hear_message, hear_arrived,
		hear_sent, hear_stale, hear_ahead, hear_probed };
}

struct pipe_end { uint8_t bytes[PIPE]; size_t first, used; };

struct stream_pair {
	struct hd_stream *stream[2];
	struct wire_heard heard[2];
	struct pipe_end to[2];            /* to[i]: bytes on the way to i */
	enum hd_close closed[2];
	struct hd_diag diag[2];
	int64_t now;
	uint64_t random;
	size_t most;                      /* bytes a pipe holds */
};

static inline uint64_t pair_random(struct stream_pair *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random;
}

static inline uint64_t pair_stamp(void *self) { return (uint64_t)((struct stream_pair *)self)->now; }

static inline struct stream_pair *pair_of(uint32_t streams_cap, bool fenced, bool crc, uint64_t seed)
{
	struct stream_pair *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->now = HD_NS_PER_S;
	p->random = seed * 2654435761u + 88172645463325252u;
	p->most = PIPE;
	for (uint32_t i = 0; i < 2; i++) {
		struct hd_stream_config config = { .self = i, .peer = 1 - i, .fenced = fenced,
			.payload_crc = crc, .streams_cap = streams_cap,
			.stamp = pair_stamp, .stamp_self = p };
		struct hd_wire_events events = hear_with(&p->heard[i]);
		assert_int_equal(hd_stream_create(&config, &events, &p->stream[i], &p->diag[i]), HD_OK);
	}
	return p;
}

static inline struct stream_pair *pair_make(bool fenced, bool crc,
	uint64_t seed) { return pair_of(256, fenced, crc, seed); }

static inline void pair_free(struct stream_pair *p)
{
	hd_stream_destroy(p->stream[0]);
	hd_stream_destroy(p->stream[1]);
	free(p);
}

static inline size_t least_of_three(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* At most `most` bytes out of stream i into the pipe. */
static inline size_t pair_write(struct stream_pair *p, int i, size_t most)
{
	struct pipe_end *to = &p->to[1 - i];
	struct hd_vec vec[HD_STREAM_VECS];
	size_t n = hd_stream_out(p->stream[i], p->now, vec), done = 0;

	for (size_t k = 0; k < n; k++)
		for (size_t b = 0; b < vec[k].len && done < most && to->used < p->most;) {
			size_t at = (to->first + to->used) % PIPE;
			size_t piece = least_of_three(vec[k].len - b, most - done,
				least_of_three(p->most - to->used, PIPE - at, SIZE_MAX));
			memcpy(to->bytes + at, (const uint8_t *)vec[k].at + b, piece);
			b += piece, done += piece, to->used += piece;
		}
	if (done)
		hd_stream_wrote(p->stream[i], done, p->now);
	return done;
}

static inline size_t pair_read(struct stream_pair *p, int i, size_t most)
{
	struct pipe_end *from = &p->to[i];
	struct hd_vec vec[2];
	size_t n = hd_stream_in(p->stream[i], vec), done = 0;

	if (p->closed[i])
		return 0;
	for (size_t k = 0; k < n; k++)
		for (size_t b = 0; b < vec[k].len && done < most && from->used;) {
			size_t piece = least_of_three(vec[k].len - b, most - done,
				least_of_three(from->used, PIPE - from->first, SIZE_MAX));
			memcpy((uint8_t *)vec[k].at + b, from->bytes + from->first, piece);
			b += piece, done += piece, from->used -= piece;
			from->first = (from->first + piece) % PIPE;
		}
	if (done)
		p->closed[i] = hd_stream_read(p->stream[i], done, p->now, &p->diag[i]);
	return done;
}

/* Until nothing moves any more. */
static inline void pair_run(struct stream_pair *p)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (int i = 0; i < 2; i++) {
			enum hd_close why = hd_stream_turn(p->stream[i], p->now, &p->diag[i]);
			p->closed[i] = p->closed[i] ? p->closed[i] : why;
			moved |= pair_write(p, i, SIZE_MAX) > 0;
			moved |= pair_read(p, i, SIZE_MAX) > 0;
			p->now += 1000;
		}
	}
}

/* Frames as a hostile peer would make them, into stream i. */
static inline enum hd_close pair_feed(struct stream_pair *p, int i, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len && !p->closed[i]) {
		struct hd_vec vec[2];
		size_t n = hd_stream_in(p->stream[i], vec), done = 0;
		if (!n)
			break;
		for (size_t k = 0; k < n; k++) {
			size_t piece = len < vec[k].len ? len : vec[k].len;
			memcpy(vec[k].at, from, piece);
			from += piece;
			len -= piece;
			done += piece;
			if (piece < vec[k].len)
				break;
		}
		p->closed[i] = hd_stream_read(p->stream[i], done, p->now, &p->diag[i]);
	}
	return p->closed[i];
}

static inline void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((seed * 977 + i * 31 + (i >> 8) * 7) & 255);
}

#endif
