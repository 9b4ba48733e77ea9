/* Two rings of bytes in memory that both processes map, one each way.
 *
 *     0      a page of words, each on its own cache lines: ring 0 {head, tail, reader sleeps, writer sleeps},
 *     ring 1 the same
 *     4096   1 MiB of ring 0 (from the connecting end), 1 MiB of ring 1 (to it)
 *
 * head: bytes ever written, tail: bytes ever read; a writer stores head alone, a reader tail alone, and each
 * keeps its own in private: what it reads of the other's is checked against that. The peer can write anywhere
 * at any time, so nothing is used twice from there: bytes are copied out, then looked at. The memory and two
 * bells (one wakes each end) go over a Unix socket that stays: its end is the news of the other's death.
 *
 * Sleeping: an end with nothing to do sets its word, then looks once more; an end that makes work for the
 * other clears the word and rings. Each side stores and then looks at what the other stores, all four with
 * sequential consistency, so in their one order the later look sees the other's store. */
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/bell.h"
#include "sys/memory.h"
#include "wire/transport_int.h"

enum { RING = 1 << 20, PIECE = 64 << 10, WORDS = 4096, BYTES = WORDS + 2 * RING, IDS = 3 };

struct shm_word { _Alignas(128) _Atomic uint64_t v; };
struct ring_words { struct shm_word head, tail, reader_sleeps, writer_sleeps; };

enum stage { BEFORE, GIVEN, DONE };        /* GIVEN: the other side's nod is awaited */

struct shm {
	enum stage stage;
	struct hd_memory memory;
	struct ring_words *in, *out;
	uint8_t *in_bytes, *out_bytes;
	uint64_t in_tail, out_head, out_tail;      /* ours, and the last good tail of the other */
	size_t limit;                     /* so much may lie in the ring unread: it cannot be called back */
	struct hd_bell own, far;
};

static enum hd_err breach(struct hd_conn *conn, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_PROTOCOL, "%s: the other process broke the shared ring", conn->sock.addr);
}

static void lay(struct shm *s, bool outgoing)
{
	struct ring_words *words = s->memory.at;
	uint8_t *bytes = (uint8_t *)s->memory.at + WORDS;

	_Static_assert(2 * sizeof(struct ring_words) <= WORDS, "the words of both rings fit their page");
	s->out = &words[!outgoing];
	s->in = &words[outgoing];
	s->out_bytes = bytes + (outgoing ? 0 : RING);
	s->in_bytes = bytes + (outgoing ? RING : 0);
}

/* The connecting side makes everything and gives it; the bell it watches is the first. */
static enum hd_err make(struct hd_conn *conn, struct shm *s, struct hd_diag *diag)
{
	int memory_id = -1;

	enum hd_err err = hd_memory_pair(BYTES, &s->memory, &memory_id, diag);
	if (!err)
		err = hd_bell_make(&s->own, diag);
	if (!err)
		err = hd_bell_make(&s->far, diag);
	if (!err)
		err = hd_sock_give(&conn->sock, (int[IDS]){ memory_id, s->own.id, s->far.id }, IDS, diag);
	hd_memory_id_close(memory_id);
	return err;
}

static enum hd_err take(struct hd_conn *conn, struct shm *s, struct hd_diag *diag)
{
	int ids[IDS];
	size_t put;

	enum hd_err err = hd_sock_take(&conn->sock, ids, IDS, diag);
	if (err)
		return err;
	s->far.id = ids[1];
	s->own.id = ids[2];
	err = hd_memory_pair_map(ids[0], BYTES, &s->memory, diag);
	hd_memory_id_close(ids[0]);
	return err ? err : hd_sock_write(&conn->sock, "k", 1, &put, diag);
}

static enum hd_err nod(struct hd_conn *conn, struct hd_diag *diag)
{
	char byte;
	size_t got;

	enum hd_err err = hd_sock_read(&conn->sock, &byte, 1, &got, diag);
	if (!err && !got)
		return hd_fail(diag, HD_E_PEERLOST, "%s: the other process ended while connecting",
			conn->sock.addr);
	return err || byte == 'k' ? err : breach(conn, diag);
}

static enum hd_err shm_ready(struct hd_conn *conn, struct hd_diag *diag)
{
	struct shm *s = conn->own;

	if (conn->is_ready)
		return HD_OK;
	enum hd_err err = unix_ready(conn, diag);
	conn->is_ready = false;
	if (!err && !s) {
		s = conn->own = hd_alloc(sizeof *s);
		err = s ? HD_OK : hd_fail(diag, HD_E_NOMEM, "out of memory for a shared ring");
		if (s)
			*s = (struct shm){ .own = { -1 }, .far = { -1 }, .limit = RING };
	}
	if (!err && s->stage == BEFORE)
		err = conn->ids.outgoing ? make(conn, s, diag) : take(conn, s, diag);
	if (!err && s->stage == BEFORE) {
		lay(s, conn->ids.outgoing);
		s->stage = conn->ids.outgoing ? GIVEN : DONE;
	}
	if (!err && s->stage == GIVEN)
		err = nod(conn, diag);
	if (err)
		return err;
	s->stage = DONE;
	conn->is_ready = true;
	conn->second_id = s->own.id;
	return HD_OK;
}

/* ---- bytes ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Says that we sleep; true: there is something after all. */
static bool looks_again(_Atomic uint64_t *sleeps, const _Atomic uint64_t *word, uint64_t seen)
{
	atomic_store_explicit(sleeps, 1, memory_order_seq_cst);
	return atomic_load_explicit(word, memory_order_seq_cst) != seen;
}

/* Bytes read or written before are the other's to use. */
static void pass_on(struct shm *s, _Atomic uint64_t *word, uint64_t at, _Atomic uint64_t *sleeps)
{
	atomic_store_explicit(word, at, memory_order_seq_cst);
	if (atomic_load_explicit(sleeps, memory_order_seq_cst) &&
		atomic_exchange_explicit(sleeps, 0, memory_order_relaxed))
		hd_bell_ring(&s->far);
}

static void copy_out(const uint8_t *ring, uint64_t at, uint8_t *to, size_t len)
{
	size_t from = at % RING, top = least(len, RING - from);

	memcpy(to, ring + from, top);
	memcpy(to + top, ring, len - top);
}

static void copy_in(uint8_t *ring, uint64_t at, const uint8_t *from, size_t len)
{
	size_t to = at % RING, top = least(len, RING - to);

	memcpy(ring + to, from, top);
	memcpy(ring, from + top, len - top);
}

/* The ring is empty: has the other end closed, or said what it may not? Bytes it wrote before come first. */
static enum hd_err empty(struct hd_conn *conn, struct shm *s, size_t *got, struct hd_diag *diag)
{
	char byte;

	if (looks_again(&s->in->reader_sleeps.v, &s->in->head.v, s->in_tail))
		return HD_OK;
	enum hd_err err = hd_sock_read(&conn->sock, &byte, 1, got, diag);
	if (!err && *got)
		return breach(conn, diag);
	if (err == HD_E_AGAIN || atomic_load_explicit(&s->in->head.v, memory_order_acquire) == s->in_tail)
		return err == HD_OK ? HD_E_NOTFOUND : err;
	return HD_OK;
}

static enum hd_err shm_read(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag)
{
	struct shm *s = conn->own;
	size_t done = 0;

	for (size_t i = 0, at = 0; i < n;) {
		uint64_t ready = atomic_load_explicit(&s->in->head.v, memory_order_acquire) - s->in_tail;
		if (ready > RING)
			return breach(conn, diag);
		if (!ready && done)
			break;
		if (!ready) {
			enum hd_err err = empty(conn, s, got, diag);
			if (err == HD_E_NOTFOUND) {
				*got = 0;
				return HD_OK;
			}
			if (err)
				return err;
			continue;
		}
		size_t piece = least(least(ready, vec[i].len - at), PIECE);
		copy_out(s->in_bytes, s->in_tail, (uint8_t *)vec[i].at + at, piece);
		s->in_tail += piece;
		pass_on(s, &s->in->tail.v, s->in_tail, &s->in->writer_sleeps.v);
		done += piece;
		at += piece;
		if (at == vec[i].len) {
			at = 0;
			i++;
		}
	}
	*got = done;
	return HD_OK;
}

static enum hd_err shm_write(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag)
{
	struct shm *s = conn->own;
	size_t done = 0;

	for (size_t i = 0, at = 0; i < n;) {
		uint64_t tail = atomic_load_explicit(&s->out->tail.v, memory_order_acquire),
			used = s->out_head - tail;
		if (used > RING || tail < s->out_tail)
			return breach(conn, diag);
		s->out_tail = tail;
		const bool full = used >= s->limit;
		if (full && !done && !looks_again(&s->out->writer_sleeps.v, &s->out->tail.v, tail))
			return HD_E_AGAIN;
		if (full && done)
			break;
		if (full)
			continue;
		size_t piece = least(least(s->limit - used, vec[i].len - at), PIECE);
		copy_in(s->out_bytes, s->out_head, (const uint8_t *)vec[i].at + at, piece);
		s->out_head += piece;
		pass_on(s, &s->out->head.v, s->out_head, &s->out->reader_sleeps.v);
		done += piece;
		at += piece;
		if (at == vec[i].len) {
			at = 0;
			i++;
		}
	}
	*put = done;
	return HD_OK;
}

/* The other end is to give the memory, or to nod: a socket that is connected may be written to at any time,
 * so whoever asked for that would be woken for ever, and the other end may not get the core that it needs. */
static bool awaits_the_other(const struct hd_conn *conn)
{
	const struct shm *s = conn->own;

	return s && (s->stage == GIVEN || (s->stage == BEFORE && !conn->ids.outgoing));
}

/* The bell tells of bytes and of space; the socket of the end alone. */
static unsigned shm_wants(struct hd_conn *conn, unsigned wanted)
{
	if (!conn->is_ready)
		return HD_LOOP_READ | (awaits_the_other(conn) ? 0u : (unsigned)HD_LOOP_WRITE);
	return wanted ? HD_LOOP_READ : 0;
}

/* Before both rings are looked at, so that no ring of the bell is lost between a look and a sleep. */
static void shm_seen(struct hd_conn *conn)
{
	struct shm *s = conn->own;

	if (conn->is_ready)
		hd_bell_hush(&s->own);
}

/* As much may lie there as may wait in the kernel of a socket: two chunks. */
static void shm_chunk(struct hd_conn *conn, uint32_t bytes)
{
	struct shm *s = conn->own;

	s->limit = least(RING, (size_t)2 * bytes);
}

static bool shm_room(struct hd_conn *conn)
{
	struct shm *s = conn->own;
	const uint64_t tail = atomic_load_explicit(&s->out->tail.v, memory_order_acquire);

	const uint64_t used = s->out_head - tail;

	/* a tail that lies is found by the next write, which there must be */
	return used < s->limit || used > RING ||
		looks_again(&s->out->writer_sleeps.v, &s->out->tail.v, tail);
}

static void shm_close(struct hd_conn *conn)
{
	struct shm *s = conn->own;

	if (s) {
		hd_memory_give(&s->memory);
		hd_bell_close(&s->own);
		hd_bell_close(&s->far);
		hd_free(s);
		conn->own = NULL;
	}
	hd_sock_close(&conn->sock);
}

const struct hd_transport hd_transport_shm = {
	.name = "shm",
	.listen = unix_listen, .ready = shm_ready, .read = shm_read, .write = shm_write,
	.wants = shm_wants, .seen = shm_seen, .chunk = shm_chunk, .room = shm_room, .close = shm_close,
};
