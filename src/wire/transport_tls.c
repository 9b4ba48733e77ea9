/* TLS over TCP. The identity of a connection is "hd1/JOB/CONNECTING/LISTENING" (the job's id in hex, two
 * worker ids in decimals): one secret per ordered pair, so what a worker says cannot be reflected to it,
 * nor used to call another. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sys/crypto_tls.h"
#include "wire/transport_int.h"

enum { RECORD = 16 << 10 };               /* the greatest of TLS */

struct tls {
	struct hd_tls tls;
	/* of `record`: offered once, to be offered again with the same bytes */
	size_t pending;
	uint8_t *record;                  /* owned: RECORD; NULL before the proof */
};

static void name(const struct hd_conn *conn, uint32_t connecting, uint32_t listening,
	char identity[HD_TLS_IDENTITY])
{
	char job[HD_HASH_HEX];

	hd_hash_hex(conn->ids.job, job);
	snprintf(identity, HD_TLS_IDENTITY, "hd1/%s/%u/%u", job, connecting, listening);
}

/* Is it a name that some worker would give itself to call us? Compared whole, so there is one spelling. */
static bool accepts(void *self, const char *identity)
{
	struct hd_conn *conn = self;
	char again[HD_TLS_IDENTITY], job[HD_HASH_HEX];
	unsigned connecting;

	if (sscanf(identity, "hd1/%32[0-9a-f]/%10u/", job, &connecting) != 2 || connecting == conn->ids.self)
		return false;
	name(conn, connecting, conn->ids.self, again);
	if (strcmp(identity, again) != 0)
		return false;
	conn->ids.peer = connecting;
	return true;
}

static enum hd_err begin(struct hd_conn *conn, struct hd_diag *diag)
{
	struct hd_tls_config config = { .key = conn->ids.key, .key_len = conn->ids.key_len,
		.listens = !conn->ids.outgoing, .accept = accepts, .self = conn };
	struct tls *t = hd_alloc(sizeof *t);

	if (!t)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a TLS connection");
	*t = (struct tls){ .record = NULL };
	conn->own = t;
	memcpy(config.salt, conn->ids.job.byte, sizeof config.salt);
	if (conn->ids.outgoing)
		name(conn, conn->ids.self, conn->ids.peer, config.identity);
	return hd_tls_make(&t->tls, conn->ids.realm, &config, &conn->sock, diag);
}

static enum hd_err tls_ready(struct hd_conn *conn, struct hd_diag *diag)
{
	struct tls *t;

	if (conn->is_ready)
		return HD_OK;
	enum hd_err err = conn->own ? HD_OK : hd_sock_connected(&conn->sock, diag);
	if (!err && !conn->own)
		err = begin(conn, diag);
	t = conn->own;
	if (!err)
		err = hd_tls_shake(&t->tls, diag);
	if (!err && !(t->record = hd_alloc(RECORD)))
		err = hd_fail(diag, HD_E_NOMEM, "out of memory for a TLS connection");
	conn->is_ready = err == HD_OK;
	return err;
}

static enum hd_err tls_read(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag)
{
	struct tls *t = conn->own;
	size_t done = 0;

	for (size_t i = 0, at = 0; i < n;) {
		size_t piece = 0;
		enum hd_err err = hd_tls_read(&t->tls, (uint8_t *)vec[i].at + at, vec[i].len - at, &piece,
			diag);
		if ((err || !piece) && done)
			break;            /* said again at the next read */
		if (err)
			return err;
		done += piece;
		at += piece;
		if (!piece)
			break;
		if (at == vec[i].len) {
			at = 0;
			i++;
		}
	}
	*got = done;
	return HD_OK;
}

/* The next record's worth of the pieces, from byte `skip`. */
static size_t gather(const struct hd_vec *vec, size_t n, size_t skip, uint8_t record[RECORD])
{
	size_t len = 0;

	for (size_t i = 0; i < n && len < RECORD; i++) {
		size_t from = skip < vec[i].len ? skip : vec[i].len, piece = vec[i].len - from;
		skip -= from;
		piece = piece < RECORD - len ? piece : RECORD - len;
		if (piece)
			memcpy(record + len, (const uint8_t *)vec[i].at + from, piece);
		len += piece;
	}
	return len;
}

/* Head and payload go in records of 16 KiB: a copy within the first cache, instead of a record for each
 * head. */
static enum hd_err tls_write(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag)
{
	struct tls *t = conn->own;
	size_t done = 0;

	for (;;) {
		size_t piece = 0;
		if (!t->pending)
			t->pending = gather(vec, n, done, t->record);
		if (!t->pending)
			break;
		enum hd_err err = hd_tls_write(&t->tls, t->record, t->pending, &piece, diag);
		if (err && done)
			break;            /* said again at the next write */
		if (err)
			return err;
		memmove(t->record, t->record + piece, t->pending - piece);
		t->pending -= piece;
		done += piece;
	}
	*put = done;
	return HD_OK;
}

static unsigned tls_wants(struct hd_conn *conn, unsigned wanted)
{
	struct tls *t = conn->own;

	if (!t || !t->tls.state)
		return HD_LOOP_READ | HD_LOOP_WRITE;
	return conn->is_ready ? wanted | (hd_tls_wants(&t->tls) & HD_LOOP_WRITE) : hd_tls_wants(&t->tls);
}

static void tls_close(struct hd_conn *conn)
{
	struct tls *t = conn->own;

	if (t) {
		hd_tls_finish(&t->tls);
		hd_free(t->record);
		hd_free(t);
		conn->own = NULL;
	}
	hd_sock_close(&conn->sock);
}

const struct hd_transport hd_transport_tls = {
	.name = "tls",
	.powers = HD_WIRE_PROVES | HD_WIRE_WORLD,
	.listen = sock_listen, .ready = tls_ready, .read = tls_read, .write = tls_write,
	.wants = tls_wants, .seen = sock_seen, .chunk = sock_chunk, .room = sock_room, .close = tls_close,
};
