#include "functions/link.h"

#include <stdio.h>
#include <string.h>

#include "sys/signal.h"

#define LOOK_NS INT64_C(500000000)        /* between looks at a request to stop */

void hd_fn_identity(const struct hd_fn_ticket *ticket, char identity[HD_TLS_IDENTITY])
{
	char task[HD_HASH_HEX];

	hd_hash_hex(ticket->task, task);
	snprintf(identity, HD_TLS_IDENTITY, "hf1/%s/%u", task, ticket->attempt);
}

bool hd_fn_identity_read(const char *identity, struct hd_hash *task, uint32_t *attempt)
{
	char hex[HD_HASH_HEX], again[HD_TLS_IDENTITY];
	struct hd_fn_ticket ticket = { .attempt = 0 };

	if (sscanf(identity, "hf1/%32[0-9a-f]/%10u", hex, &ticket.attempt) != 2 ||
		!hd_hash_parse(hex, &ticket.task))
		return false;
	hd_fn_identity(&ticket, again);
	*task = ticket.task;
	*attempt = ticket.attempt;
	return !strcmp(identity, again);
}

enum hd_err hd_fn_proof_again(const struct hd_tls *tls, bool secure, const struct hd_sha256 *token,
	struct hd_sha256 *proof, struct hd_diag *diag)
{
	uint8_t binding[HD_TLS_SECRET];

	*proof = *token;
	if (!secure)
		return HD_OK;
	if (!hd_tls_binding(tls, binding))
		return hd_fail(diag, HD_E_REFUSED, "OpenSSL exports no keying material of a connection");
	return hd_hmac_sha256(token->byte, sizeof token->byte, binding, sizeof binding, proof, diag);
}

/* Until the socket is ready for it, or the time came. A request to stop that comes just before the poll ends
 * no poll, so that is short. */
static enum hd_err wait_for(struct hd_fn_link *l, unsigned what, int64_t until_ns, struct hd_diag *diag)
{
	int64_t look_ns = hd_clock_now_ns(l->loop.clock) + LOOK_NS;
	struct hd_loop_event event[4];
	size_t n = 0;

	if (l->stops && hd_signal_stop())
		return HD_E_INTERRUPT;
	enum hd_err err = hd_loop_watch(&l->loop, l->sock.id, what, 1, diag);
	if (!err)
		err = hd_loop_poll(&l->loop, l->stops && look_ns < until_ns ? look_ns : until_ns, event, 4,
			&n, diag);
	if (err)
		return err;
	if (l->stops && hd_signal_stop())
		return HD_E_INTERRUPT;
	return n || hd_clock_now_ns(l->loop.clock) < until_ns ? HD_OK :
		hd_fail(diag, HD_E_AGAIN, "%s does not answer in time", l->sock.addr);
}

static enum hd_err connect_to(struct hd_fn_link *l, const char *addr, int64_t until_ns, struct hd_diag *diag)
{
	enum hd_err err = hd_sock_connect(&l->net, addr, &l->sock, diag);

	while (!err && (err = hd_sock_connected(&l->sock, diag)) == HD_E_AGAIN)
		err = wait_for(l, HD_LOOP_WRITE, until_ns, diag);
	return err;
}

static enum hd_err shake(struct hd_fn_link *l, const struct hd_fn_event *event, struct hd_tls_realm *realm,
	int64_t until_ns, struct hd_diag *diag)
{
	struct hd_tls_config config = { .key = event->token.byte, .key_len = sizeof event->token.byte };

	hd_fn_identity(&event->ticket, config.identity);
	enum hd_err err = hd_tls_make(&l->tls, realm, &config, &l->sock, diag);
	l->secure = !err;
	while (!err && (err = hd_tls_shake(&l->tls, diag)) == HD_E_AGAIN)
		err = wait_for(l, hd_tls_wants(&l->tls), until_ns, diag);
	return err;
}

enum hd_err hd_fn_link_open(struct hd_fn_link *l, struct hd_clock *clock, const char *addr,
	const struct hd_fn_event *event, struct hd_tls_realm *realm, int64_t until_ns, struct hd_diag *diag)
{
	memset(l, 0, sizeof *l);
	hd_net_real(&l->net);
	l->net.world = true;
	enum hd_err err = hd_loop_init(&l->loop, clock, diag);
	if (!err)
		err = connect_to(l, addr, until_ns, diag);
	if (!err && event && event->tls)
		err = shake(l, event, realm, until_ns, diag);
	if (err)
		hd_fn_link_close(l);
	return err;
}

void hd_fn_link_close(struct hd_fn_link *l)
{
	if (l->secure)
		hd_tls_finish(&l->tls);
	if (l->sock.net)
		hd_loop_unwatch(&l->loop, l->sock.id);
	hd_sock_close(&l->sock);
	hd_loop_finish(&l->loop);
	memset(l, 0, sizeof *l);
}

/* A paced link moves a hundredth of a second's bytes at a time, each after those before are through. */
static size_t piece(const struct hd_fn_link *l, size_t len)
{
	const size_t most = (size_t)(l->bytes_s / 100) + 1;

	return l->bytes_s && most < len ? most : len;
}

static void pace(struct hd_fn_link *l, size_t n, int64_t until_ns)
{
	const int64_t now_ns = hd_clock_now_ns(l->loop.clock);

	if (!l->bytes_s)
		return;
	l->free_ns = (l->free_ns > now_ns ? l->free_ns : now_ns) +
		(int64_t)((double)n * 1e9 / (double)l->bytes_s);
	hd_clock_wait_until(l->loop.clock, l->free_ns < until_ns ? l->free_ns : until_ns);
}

enum hd_err hd_fn_link_send(struct hd_fn_link *l, const void *bytes, size_t len, int64_t until_ns,
	struct hd_diag *diag)
{
	const uint8_t *at = bytes;

	while (len) {
		size_t put = 0;
		enum hd_err err = l->secure ? hd_tls_write(&l->tls, at, piece(l, len), &put, diag) :
			hd_sock_write(&l->sock, at, piece(l, len), &put, diag);
		if (err == HD_E_AGAIN)
			err = wait_for(l, l->secure ? hd_tls_wants(&l->tls) : HD_LOOP_WRITE, until_ns, diag);
		if (err)
			return err;
		at += put;
		len -= put;
		pace(l, put, until_ns);
	}
	return HD_OK;
}

enum hd_err hd_fn_link_some(struct hd_fn_link *l, void *bytes, size_t cap, size_t *got, int64_t until_ns,
	struct hd_diag *diag)
{
	for (;;) {
		*got = 0;
		enum hd_err err = l->secure ? hd_tls_read(&l->tls, bytes, piece(l, cap), got, diag) :
			hd_sock_read(&l->sock, bytes, piece(l, cap), got, diag);
		if (!err)
			pace(l, *got, until_ns);
		if (err != HD_E_AGAIN)
			return err;
		err = wait_for(l, l->secure ? hd_tls_wants(&l->tls) : HD_LOOP_READ, until_ns, diag);
		if (err)
			return err;
	}
}

enum hd_err hd_fn_link_recv(struct hd_fn_link *l, void *bytes, size_t len, int64_t until_ns,
	struct hd_diag *diag)
{
	for (size_t done = 0; done < len; ) {
		size_t got = 0;
		enum hd_err err = hd_fn_link_some(l, (uint8_t *)bytes + done, len - done, &got, until_ns,
			diag);
		if (err)
			return err;
		if (!got)
			return hd_fail(diag, HD_E_PEERLOST, "%s ended the connection", l->sock.addr);
		done += got;
	}
	return HD_OK;
}
