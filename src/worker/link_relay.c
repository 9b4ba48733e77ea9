#include "worker/link_relay.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
	KEPT = 64 << 10,                  /* bytes that a socket of the relay takes before they are read */
	PIECE = 16 << 10,
	PIECES = 4096,                    /* of one way, under way */
	LEAST_BURST = 16 << 10,
	LEAST_READ = 2048,                /* tokens are gathered for so many bytes */
	NAP_NS = 100000,
};

/* Bytes that have passed the bucket and are due later, in a ring of pieces. */
struct relay_piece { int64_t due_ns; uint32_t len, gone; uint8_t bytes[PIECE]; };
struct way { struct hd_sock *from, *to; struct relay_piece *piece; uint32_t first, n; double tokens;
	int64_t at_ns; };

static double bytes_per_ns(const struct hd_link *link) { return link->spec.rate_mbit / 8000.0; }

enum hd_err link_relay_listen(struct hd_link *link, struct hd_diag *diag)
{
	enum hd_err err = hd_sock_listen(&link->net, "tcp:127.0.0.1:0", &link->door, diag);

	if (!err)
		hd_sock_tune(&link->door, HD_SOCK_KEPT_BYTES, KEPT);
	return err;
}

/* Tokens of the time since; of 2 ms at most, so that a late thread does not pass a burst on. */
static void fill(const struct hd_link *link, struct way *w, int64_t now)
{
	const double rate = bytes_per_ns(link), most = rate * 2e6 > LEAST_BURST ? rate * 2e6 : LEAST_BURST;

	w->tokens += rate * (double)(now - w->at_ns);
	w->tokens = w->tokens < most ? w->tokens : most;
	w->at_ns = now;
}

/* False: the connection is over. *moved: something was read. */
static bool take(const struct hd_link *link, struct way *w, int64_t now, bool *moved)
{
	fill(link, w, now);
	while (w->n < PIECES && w->tokens >= LEAST_READ) {
		struct relay_piece *p = &w->piece[(w->first + w->n) % PIECES];
		size_t got, most = w->tokens < PIECE ? (size_t)w->tokens : PIECE;
		enum hd_err err = hd_sock_read(w->from, p->bytes, most, &got, NULL);
		if (err == HD_E_AGAIN)
			return true;
		if (err || !got)
			return false;
		p->len = (uint32_t)got;
		p->gone = 0;
		p->due_ns = now + link->spec.delay_ms * HD_NS_PER_MS;
		w->tokens -= (double)got;
		w->n++;
		*moved = true;
	}
	return true;
}

static bool pass(struct way *w, int64_t now, bool *moved)
{
	while (w->n && w->piece[w->first].due_ns <= now) {
		struct relay_piece *p = &w->piece[w->first];
		size_t put;
		enum hd_err err = hd_sock_write(w->to, p->bytes + p->gone, p->len - p->gone, &put, NULL);
		if (err == HD_E_AGAIN)
			return true;
		if (err)
			return false;
		*moved = true;
		p->gone += (uint32_t)put;
		if (p->gone < p->len)
			continue;
		w->first = (w->first + 1) % PIECES;
		w->n--;
	}
	return true;
}

static void nap(const struct hd_link *link)
{
	hd_clock_wait_until(link->spec.clock, hd_clock_now_ns(link->spec.clock) + NAP_NS);
}

/* Both ways until either end is over. */
static void carry(struct hd_link *link, struct way way[2])
{
	for (bool lives = true; lives && !atomic_load(&link->ends);) {
		const int64_t now = hd_clock_now_ns(link->spec.clock);
		bool moved = false;
		for (int i = 0; i < 2; i++)
			lives = lives && take(link, &way[i], now, &moved) && pass(&way[i], now, &moved);
		if (!moved)
			nap(link);
	}
}

static bool connects(struct hd_link *link, struct hd_sock *far)
{
	enum hd_err err = hd_sock_connect(&link->net, link->addr, far, NULL);

	if (err)
		return false;
	while ((err = hd_sock_connected(far, NULL)) == HD_E_AGAIN && !atomic_load(&link->ends))
		nap(link);
	return !err;
}

static void serve(struct hd_link *link, struct hd_sock *near, struct relay_piece *pieces)
{
	const int64_t now = hd_clock_now_ns(link->spec.clock);
	struct hd_sock far = { .net = NULL };

	if (connects(link, &far)) {
		hd_sock_tune(&far, HD_SOCK_KEPT_BYTES, KEPT);
		struct way way[2] = { { .from = near, .to = &far, .piece = pieces, .at_ns = now },
			{ .from = &far, .to = near, .piece = pieces + PIECES, .at_ns = now } };
		carry(link, way);
	}
	hd_sock_close(&far);
}

void link_relay_run(void *user)
{
	struct hd_link *link = user;
	struct relay_piece *pieces = hd_alloc(2 * PIECES * sizeof *pieces);

	while (pieces && !atomic_load(&link->ends)) {
		struct hd_sock near = { .net = NULL };
		if (hd_sock_accept(&link->door, &near, NULL)) {
			nap(link);
			continue;
		}
		serve(link, &near, pieces);
		hd_sock_close(&near);
	}
	hd_free(pieces);
}
