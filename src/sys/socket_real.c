#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/file.h"

enum { BACKLOG = 64 };

struct address {
	union { struct sockaddr any; struct sockaddr_un un; struct sockaddr_in in; struct sockaddr_in6 in6; };
	socklen_t len;
};

static enum hd_err lost(struct hd_diag *diag, int error, const char *verb, const char *addr)
{
	if (error == EPIPE || error == ECONNRESET || error == ECONNREFUSED || error == ETIMEDOUT || error == ENOTCONN || error == ENOENT)
		return hd_fail(diag, HD_E_PEERLOST, "cannot %s %s: %s; is the other process alive?", verb, addr, strerror(error));
	if (error == EAGAIN || error == EINPROGRESS)
		return HD_E_AGAIN;        /* the everyday answer: no message */
	return hd_fail_errno(diag, error, verb, addr);
}

static enum hd_err bad(const char *addr, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL, "%s is not an address of this machine; write unix:PATH, tcp:127.0.0.1:PORT or tcp:[::1]:PORT", addr);
}

static bool parse_port(const char *text, in_port_t *port)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	unsigned long n = strtoul(text, &rest, 10);
	*port = htons((uint16_t)n);
	return n <= 65535 && !*rest;
}

static enum hd_err parse(const char *addr, struct address *out, struct hd_diag *diag)
{
	memset(out, 0, sizeof *out);
	if (!strncmp(addr, "unix:", 5)) {
		size_t len = strlen(addr + 5);
		if (!len || len >= sizeof out->un.sun_path)
			return hd_fail(diag, HD_E_INVAL, "%s: the path of a socket has 1 to %zu bytes; choose a shorter one", addr,
				sizeof out->un.sun_path - 1);
		out->un.sun_family = AF_UNIX;
		memcpy(out->un.sun_path, addr + 5, len + 1);
		out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
		return HD_OK;
	}
	if (!strncmp(addr, "tcp:127.0.0.1:", 14) && parse_port(addr + 14, &out->in.sin_port)) {
		out->in.sin_family = AF_INET;
		out->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		out->len = sizeof out->in;
		return HD_OK;
	}
	if (!strncmp(addr, "tcp:[::1]:", 10) && parse_port(addr + 10, &out->in6.sin6_port)) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_addr = in6addr_loopback;
		out->len = sizeof out->in6;
		return HD_OK;
	}
	return bad(addr, diag);
}

static int socket_for(const struct address *address) { return socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/* Small messages go at once; Unix sockets do not know the option. */
static void no_delay(int fd)
{
	int one = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* The path exists: a live listener takes a connection, a dead one's file refuses it and goes. */
static bool is_left_behind(const struct address *address)
{
	struct stat st;

	if (address->any.sa_family != AF_UNIX || lstat(address->un.sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	int fd = socket_for(address);
	bool dead = fd >= 0 && connect(fd, &address->any, address->len) && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return dead && !unlink(address->un.sun_path);
}

static void tell_port(struct hd_sock *sock)
{
	struct address own = { .len = sizeof own.in6 };

	if (getsockname(sock->id, &own.any, &own.len))
		return;
	if (own.any.sa_family == AF_INET)
		snprintf(sock->addr, sizeof sock->addr, "tcp:127.0.0.1:%u", ntohs(own.in.sin_port));
	if (own.any.sa_family == AF_INET6)
		snprintf(sock->addr, sizeof sock->addr, "tcp:[::1]:%u", ntohs(own.in6.sin6_port));
}

static enum hd_err real_listen(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct address address;
	int one = 1;

	(void)net;
	enum hd_err err = parse(sock->addr, &address, diag);
	if (err)
		return err;
	int fd = socket_for(&address);
	if (fd < 0)
		return lost(diag, errno, "listen on", sock->addr);
	if (address.any.sa_family != AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	int r = bind(fd, &address.any, address.len);
	if (r && errno == EADDRINUSE) {
		if (is_left_behind(&address))
			r = bind(fd, &address.any, address.len);
		else
			errno = EADDRINUSE;
	}
	if (r || listen(fd, BACKLOG)) {
		int error = errno;
		close(fd);
		return hd_fail_errno(diag, error, "listen on", sock->addr);
	}
	sock->id = fd;
	tell_port(sock);
	return HD_OK;
}

static enum hd_err real_accept(struct hd_net *net, struct hd_sock *listener, struct hd_sock *sock, struct hd_diag *diag)
{
	int fd;

	(void)net;
	do {
		fd = accept4(listener->id, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return lost(diag, errno, "accept on", listener->addr);
	no_delay(fd);
	sock->id = fd;
	memcpy(sock->addr, listener->addr, sizeof sock->addr);        /* on one machine the way in says more than the peer's port */
	return HD_OK;
}

static enum hd_err real_connect(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct address address;

	(void)net;
	enum hd_err err = parse(sock->addr, &address, diag);
	if (err)
		return err;
	int fd = socket_for(&address);
	if (fd < 0)
		return lost(diag, errno, "connect to", sock->addr);
	no_delay(fd);
	/* An interrupted connect goes on by itself, like one in progress. */
	if (connect(fd, &address.any, address.len) && errno != EINPROGRESS && errno != EINTR) {
		int error = errno;
		close(fd);
		return lost(diag, error, "connect to", sock->addr);
	}
	sock->id = fd;
	return HD_OK;
}

static enum hd_err real_connected(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct address peer = { .len = sizeof peer.un };
	socklen_t len = sizeof(int);
	int error = 0;

	(void)net;
	if (getsockopt(sock->id, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error)
		return lost(diag, error, "connect to", sock->addr);
	if (getpeername(sock->id, &peer.any, &peer.len))
		return errno == ENOTCONN ? HD_E_AGAIN : lost(diag, errno, "connect to", sock->addr);
	return HD_OK;
}

static enum hd_err real_read(struct hd_net *net, struct hd_sock *sock, void *bytes, size_t len, size_t *got, struct hd_diag *diag)
{
	ssize_t n;

	(void)net;
	do {
		n = recv(sock->id, bytes, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return lost(diag, errno, "read from", sock->addr);
	*got = (size_t)n;
	return HD_OK;
}

static enum hd_err real_write(struct hd_net *net, struct hd_sock *sock, const void *bytes, size_t len, size_t *put, struct hd_diag *diag)
{
	ssize_t n;

	(void)net;
	do {
		n = send(sock->id, bytes, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return lost(diag, errno, "write to", sock->addr);
	*put = (size_t)n;
	return HD_OK;
}

static void real_close(struct hd_net *net, struct hd_sock *sock)
{
	(void)net;
	if (sock->listens && !strncmp(sock->addr, "unix:", 5))
		unlink(sock->addr + 5);
	close(sock->id);
}

static const struct hd_net_ops real_ops = {
	.name = "real", .listen = real_listen, .accept = real_accept, .connect = real_connect, .connected = real_connected,
	.read = real_read, .write = real_write, .close = real_close,
};

void hd_net_real(struct hd_net *net) { net->ops = &real_ops; }
