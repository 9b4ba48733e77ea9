#include "sys/socket.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static enum hd_err set_addr(struct hd_sock *sock, const char *addr, struct hd_diag *diag)
{
	size_t len = strlen(addr);

	if (len >= sizeof sock->addr)
		return hd_fail(diag, HD_E_INVAL, "address %.60s... is longer than %d bytes; choose a shorter path", addr, HD_ADDR_CAP - 1);
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

enum hd_err hd_sock_connected(struct hd_sock *sock, struct hd_diag *diag) { return sock->net->ops->connected(sock->net, sock, diag); }

enum hd_err hd_sock_read(struct hd_sock *sock, void *bytes, size_t len, size_t *got, struct hd_diag *diag)
{
	assert(len && !sock->listens);
	return sock->net->ops->read(sock->net, sock, bytes, len, got, diag);
}

enum hd_err hd_sock_write(struct hd_sock *sock, const void *bytes, size_t len, size_t *put, struct hd_diag *diag)
{
	assert(len && !sock->listens);
	return sock->net->ops->write(sock->net, sock, bytes, len, put, diag);
}

void hd_sock_close(struct hd_sock *sock)
{
	if (!sock->net)
		return;
	sock->net->ops->close(sock->net, sock);
	sock->net = NULL;
}
