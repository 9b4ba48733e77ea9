#include "sys/socket.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static enum hd_err set_addr(struct hd_sock *sock, const char *addr, struct hd_diag *diag)
{
	size_t len = strlen(addr);

	if (len >= sizeof sock->addr)
		return hd_fail(diag, HD_E_INVAL,
			"address %.60s... is longer than %d bytes; choose a shorter path", addr,
			HD_ADDR_CAP - 1);
	memcpy(sock->addr, addr, len + 1);
	return HD_OK;
}

enum hd_err hd_sock_listen(struct hd_net *net, const char *addr, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_sock made = { .net = net, .listens = true };

	enum hd_err err = set_addr(&made, addr, diag);
	if (!err)
		err = net->ops->listen(net, &made, diag);
	if (!err)
		*sock = made;
	return err;
}

enum hd_err hd_sock_accept(struct hd_sock *listener, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_sock made = { .net = listener->net };

	assert(listener->listens);
	enum hd_err err = listener->net->ops->accept(listener->net, listener, &made, diag);
	if (!err)
		*sock = made;
	return err;
}

enum hd_err hd_sock_connect(struct hd_net *net, const char *addr, struct hd_sock *sock, struct hd_diag *diag)
{
	struct hd_sock made = { .net = net };

	enum hd_err err = set_addr(&made, addr, diag);
	if (!err)
		err = net->ops->connect(net, &made, diag);
	if (!err)
		*sock = made;
	return err;
}

enum hd_err hd_sock_connected(struct hd_sock *sock,
	struct hd_diag *diag) { return sock->net->ops->connected(sock->net, sock, diag); }

enum hd_err hd_sock_read_vec(struct hd_sock *sock, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag)
{
	assert(n >= 1 && n <= HD_VEC_MAX && vec[0].len && !sock->listens);
	return sock->net->ops->read(sock->net, sock, vec, n, got, diag);
}

enum hd_err hd_sock_write_vec(struct hd_sock *sock, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag)
{
	assert(n >= 1 && n <= HD_VEC_MAX && vec[0].len && !sock->listens);
	return sock->net->ops->write(sock->net, sock, vec, n, put, diag);
}

enum hd_err hd_sock_read(struct hd_sock *sock, void *bytes, size_t len, size_t *got, struct hd_diag *diag)
{
	return hd_sock_read_vec(sock, &(struct hd_vec){ bytes, len }, 1, got, diag);
}

enum hd_err hd_sock_write(struct hd_sock *sock, const void *bytes, size_t len, size_t *put,
	struct hd_diag *diag)
{
	return hd_sock_write_vec(sock, &(struct hd_vec){ (void *)(uintptr_t)bytes, len }, 1, put, diag);
}

bool hd_sock_is_private(struct hd_net *net, const char *addr) { return net->ops->is_private(net, addr); }
bool hd_sock_is_same_user(struct hd_sock *sock) { return sock->net->ops->is_same_user(sock->net, sock); }
uint32_t hd_sock_unsent(struct hd_sock *sock) { return sock->net->ops->unsent(sock->net, sock); }

void hd_sock_tune(struct hd_sock *sock, enum hd_sock_knob knob,
	uint32_t value) { sock->net->ops->tune(sock->net, sock, knob, value); }

enum hd_err hd_sock_give(struct hd_sock *sock, const int *ids, size_t n, struct hd_diag *diag)
{
	assert(n >= 1 && n <= HD_SOCK_IDS);
	return sock->net->ops->give(sock->net, sock, ids, n, diag);
}

enum hd_err hd_sock_take(struct hd_sock *sock, int *ids, size_t n, struct hd_diag *diag)
{
	assert(n >= 1 && n <= HD_SOCK_IDS);
	return sock->net->ops->take(sock->net, sock, ids, n, diag);
}

void hd_sock_close(struct hd_sock *sock)
{
	if (!sock->net)
		return;
	sock->net->ops->close(sock->net, sock);
	sock->net = NULL;
}
