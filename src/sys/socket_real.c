#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
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
	if (error == EPIPE || error == ECONNRESET || error == ECONNREFUSED || error == ETIMEDOUT ||
		error == ENOTCONN || error == ENOENT)
		return hd_fail(diag, HD_E_PEERLOST, "cannot %s %s: %s; is the other process alive?", verb,
			addr, strerror(error));
	if (error == EAGAIN || error == EINPROGRESS)
		return HD_E_AGAIN;        /* the everyday answer: no message */
	return hd_fail_errno(diag, error, verb, addr);
}

static enum hd_err bad(const struct hd_net *net, const char *addr, struct hd_diag *diag)
{
	if (net->world)
		return hd_fail(diag, HD_E_INVAL,
			"%s is not an address; write unix:PATH, tcp:A.B.C.D:PORT or tcp:[IPV6]:PORT, hosts "
			"as numbers", addr);
	return hd_fail(diag, HD_E_INVAL,
		"%s is not an address of this machine; write unix:PATH, tcp:127.0.0.1:PORT or tcp:[::1]:PORT",
		addr);
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

void hd_sock_shut(int id) { (void)shutdown(id, SHUT_RDWR); }        /* the peer may have been first */

/* "tcp:HOST:PORT", "tcp:[HOST]:PORT", with a host in numbers. */
static bool parse_tcp(const char *addr, struct address *out)
{
	bool six = addr[4] == '[';
	const char *host = addr + 4 + six, *end = strchr(host, six ? ']' : ':'), *port = end &&
		six ? end + 1 : end;
	char text[INET6_ADDRSTRLEN];
	in_port_t number;

	if (!end || *port != ':' || (size_t)(end - host) >= sizeof text || !parse_port(port + 1, &number))
		return false;
	memcpy(text, host, (size_t)(end - host));
	text[end - host] = 0;
	out->any.sa_family = six ? AF_INET6 : AF_INET;
	out->len = six ? sizeof out->in6 : sizeof out->in;
	*(six ? &out->in6.sin6_port : &out->in.sin_port) = number;
	return inet_pton(out->any.sa_family, text, six ? (void *)&out->in6.sin6_addr :
		(void *)&out->in.sin_addr) == 1;
}

static bool is_loopback(const struct address *a)
{
	return a->any.sa_family == AF_INET ? a->in.sin_addr.s_addr == htonl(INADDR_LOOPBACK) :
		!memcmp(&a->in6.sin6_addr, &in6addr_loopback, sizeof in6addr_loopback);
}

static enum hd_err parse(const struct hd_net *net, const char *addr, struct address *out,
	struct hd_diag *diag)
{
	memset(out, 0, sizeof *out);
	if (!strncmp(addr, "unix:", 5)) {
		size_t len = strlen(addr + 5);
		if (!len || len >= sizeof out->un.sun_path)
			return hd_fail(diag, HD_E_INVAL,
				"%s: the path of a socket has 1 to %zu bytes; choose a shorter one", addr,
				sizeof out->un.sun_path - 1);
		out->un.sun_family = AF_UNIX;
		memcpy(out->un.sun_path, addr + 5, len + 1);
		out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
		return HD_OK;
	}
	if (!strncmp(addr, "tcp:", 4) && parse_tcp(addr, out) && (net->world || is_loopback(out)))
		return HD_OK;
	return bad(net, addr, diag);
}

static int socket_for(const struct address *address) { return socket(address->any.sa_family,
	SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/* Small messages go at once; Unix sockets do not know the option. */
static void no_delay(int fd)
{
	int one = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Over loopback nothing can be congested, and a control that paces (BBR, the default of some machines) makes
 * every sender wait for timers: a sum of 25 MB over 2 processes took 10.6 ms under it and 6.0 without. Reno
 * is in every kernel and open to every user. Before the connection exists: an accepted one has its
 * listener's, and one that was ever paced stays so. */
static void no_pacing(int fd, const struct address *address)
{
	if (address->any.sa_family != AF_UNIX && is_loopback(address))
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
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

/* A Unix address stays as it was given. */
static void print_tcp(const struct address *a, uint16_t port, char addr[HD_ADDR_CAP])
{
	char host[INET6_ADDRSTRLEN];

	if (a->any.sa_family == AF_INET)
		snprintf(addr, HD_ADDR_CAP, "tcp:%s:%u", inet_ntop(AF_INET, &a->in.sin_addr, host,
			sizeof host), port);
	if (a->any.sa_family == AF_INET6)
		snprintf(addr, HD_ADDR_CAP, "tcp:[%s]:%u", inet_ntop(AF_INET6, &a->in6.sin6_addr, host,
			sizeof host), port);
}

static void tell_port(struct hd_sock *sock)
{
	struct address own = { .len = sizeof own.in6 };

	if (!getsockname(sock->id, &own.any, &own.len))
		print_tcp(&own, ntohs(own.any.sa_family == AF_INET ? own.in.sin_port : own.in6.sin6_port),
			sock->addr);
}

bool hd_sock_is_everywhere(const char *where)
{
	char addr[HD_ADDR_CAP];
	struct address a = { .len = 0 };

	if ((size_t)snprintf(addr, sizeof addr, "tcp:%s", where) >= sizeof addr || !parse_tcp(addr, &a))
		return false;
	return a.any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr) :
		a.in.sin_addr.s_addr == INADDR_ANY;
}

/* A datagram socket that is connected knows its own end, and sends nothing. */
enum hd_err hd_sock_source(const char *addr, char own[HD_ADDR_CAP], struct hd_diag *diag)
{
	struct address far = { .len = 0 }, near = { .len = sizeof near.in6 };

	if (strncmp(addr, "tcp:", 4) != 0 || !parse_tcp(addr, &far))
		return hd_fail(diag, HD_E_INVAL,
			"%s is not an address; write tcp:A.B.C.D:PORT or tcp:[IPV6]:PORT, hosts as numbers",
			addr);
	int fd = socket(far.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error = fd < 0 || connect(fd, &far.any, far.len) ||
		getsockname(fd, &near.any, &near.len) ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (error)
		return hd_fail(diag, HD_E_PEERLOST, "no way leads to %s: %s", addr, strerror(error));
	print_tcp(&near, 0, own);
	return HD_OK;
}

enum hd_err hd_sock_lookup(const char *host, char numbers[HD_ADDR_CAP], struct hd_diag *diag)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *all = NULL, *best = NULL;
	const int failed = getaddrinfo(host, NULL, &hints, &all);

	if (failed)
		return hd_fail(diag, HD_E_NOTFOUND, "host %.80s has no address: %s", host,
			gai_strerror(failed));
	for (struct addrinfo *a = all; a; a = a->ai_next)
		if (!best || (best->ai_family != AF_INET && a->ai_family == AF_INET))
			best = a;
	const int unnamed = getnameinfo(best->ai_addr, best->ai_addrlen, numbers, HD_ADDR_CAP, NULL, 0,
		NI_NUMERICHOST);
	freeaddrinfo(all);
	return unnamed ? hd_fail(diag, HD_E_NOTFOUND, "host %.80s has no address: %s", host,
		gai_strerror(unnamed)) : HD_OK;
}

static enum hd_err real_listen(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct address address;
	int one = 1;

	enum hd_err err = parse(net, sock->addr, &address, diag);
	if (err)
		return err;
	int fd = socket_for(&address);
	if (fd < 0)
		return lost(diag, errno, "listen on", sock->addr);
	if (address.any.sa_family != AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	no_pacing(fd, &address);
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

/* An address of IPv4; of IPv6 the network, since one machine may have as many addresses of it as it likes. */
static uint64_t place_of(const struct address *peer)
{
	const uint8_t *six = peer->in6.sin6_addr.s6_addr;
	uint64_t place = 0;

	if (peer->any.sa_family == AF_INET)
		return (UINT64_C(1) << 32) + ntohl(peer->in.sin_addr.s_addr);
	if (peer->any.sa_family != AF_INET6)
		return 0;
	if (IN6_IS_ADDR_V4MAPPED(&peer->in6.sin6_addr))
		return (UINT64_C(1) << 32) + ((uint64_t)six[12] << 24 | (uint64_t)six[13] << 16 |
			(uint64_t)six[14] << 8 | six[15]);
	for (int i = 0; i < 8; i++)
		place = place << 8 | six[i];
	return place ? place : 1;         /* ::1 */
}

static enum hd_err real_accept(struct hd_net *net, struct hd_sock *listener, struct hd_sock *sock,
	struct hd_diag *diag)
{
	struct address peer;
	int fd;

	(void)net;
	do {
		peer = (struct address){ .len = sizeof peer.un };
		fd = accept4(listener->id, &peer.any, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		return lost(diag, errno, "accept on", listener->addr);
	no_delay(fd);
	sock->id = fd;
	sock->from = place_of(&peer);
	/* on one machine the way in says more than the peer's port */
	memcpy(sock->addr, listener->addr, sizeof sock->addr);
	return HD_OK;
}

static enum hd_err real_connect(struct hd_net *net, struct hd_sock *sock, struct hd_diag *diag)
{
	struct address address;

	enum hd_err err = parse(net, sock->addr, &address, diag);
	if (err)
		return err;
	int fd = socket_for(&address);
	if (fd < 0)
		return lost(diag, errno, "connect to", sock->addr);
	no_delay(fd);
	no_pacing(fd, &address);
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

static size_t iovecs(const struct hd_vec *vec, size_t n, struct iovec out[HD_VEC_MAX])
{
	for (size_t i = 0; i < n; i++)
		out[i] = (struct iovec){ vec[i].at, vec[i].len };
	return n;
}

static enum hd_err real_read(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n,
	size_t *got, struct hd_diag *diag)
{
	struct iovec pieces[HD_VEC_MAX];
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = iovecs(vec, n, pieces) };
	ssize_t r;

	(void)net;
	do {
		r = recvmsg(sock->id, &message, 0);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return lost(diag, errno, "read from", sock->addr);
	*got = (size_t)r;
	return HD_OK;
}

static enum hd_err real_write(struct hd_net *net, struct hd_sock *sock, const struct hd_vec *vec, size_t n,
	size_t *put, struct hd_diag *diag)
{
	struct iovec pieces[HD_VEC_MAX];
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = iovecs(vec, n, pieces) };
	ssize_t r;

	(void)net;
	do {
		r = sendmsg(sock->id, &message, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return lost(diag, errno, "write to", sock->addr);
	*put = (size_t)r;
	return HD_OK;
}

/* The folder of a Unix path guards it: without access to the folder no connect, whatever the mode. */
static bool real_is_private(struct hd_net *net, const char *addr)
{
	char folder[HD_ADDR_CAP];
	struct stat st;

	(void)net;
	if (strncmp(addr, "unix:", 5) != 0 || strlen(addr) >= sizeof folder)
		return false;
	memcpy(folder, addr + 5, strlen(addr + 5) + 1);
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	return !stat(!slash ? "." : *folder ? folder : "/", &st) && S_ISDIR(st.st_mode) &&
		st.st_uid == geteuid() && !(st.st_mode & 077);
}

static bool real_is_same_user(struct hd_net *net, struct hd_sock *sock)
{
	struct ucred peer;
	socklen_t len = sizeof peer;

	(void)net;
	return !getsockopt(sock->id, SOL_SOCKET, SO_PEERCRED, &peer, &len) && len == sizeof peer &&
		peer.pid && peer.uid == geteuid();
}

/* Tried on a socket that goes at once: there is no way back to the size that the system chooses. Linux says
 * twice what it was asked for. */
static bool may_keep(uint32_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), is = 0;
	socklen_t len = sizeof is;

	if (fd < 0)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	const bool has = !getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &is, &len) && (uint32_t)is / 2 >= bytes;
	close(fd);
	return has;
}

static void real_tune(struct hd_net *net, struct hd_sock *sock, enum hd_sock_knob knob, uint32_t value)
{
	static const struct { int level, name; } knobs[] = {
		[HD_SOCK_UNSENT_BYTES] = { IPPROTO_TCP, TCP_NOTSENT_LOWAT },
		[HD_SOCK_UNACKED_MS] = { IPPROTO_TCP, TCP_USER_TIMEOUT },
		[HD_SOCK_KEPT_BYTES] = { SOL_SOCKET, SO_RCVBUF },
	};

	(void)net;
	if (knob == HD_SOCK_KEPT_BYTES && (value > INT32_MAX || !may_keep(value)))
		return;
	(void)setsockopt(sock->id, knobs[knob].level, knobs[knob].name, &value, sizeof value);
}

static uint32_t real_unsent(struct hd_net *net, struct hd_sock *sock)
{
	int bytes = 0;

	(void)net;
	return !ioctl(sock->id, SIOCOUTQNSD, &bytes) && bytes > 0 ? (uint32_t)bytes : 0;
}

union ids { struct cmsghdr head; char space[CMSG_SPACE(HD_SOCK_IDS * sizeof(int))]; };

static enum hd_err real_give(struct hd_net *net, struct hd_sock *sock, const int *ids, size_t n,
	struct hd_diag *diag)
{
	char byte = 0;
	struct iovec piece = { &byte, 1 };
	union ids control = { .space = { 0 } };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof *ids) };
	ssize_t r;

	(void)net;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof *ids), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(head), ids, n * sizeof *ids);
	do {
		r = sendmsg(sock->id, &message, MSG_NOSIGNAL);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? lost(diag, errno, "write to", sock->addr) : HD_OK;
}

static enum hd_err real_take(struct hd_net *net, struct hd_sock *sock, int *ids, size_t n,
	struct hd_diag *diag)
{
	char byte;
	struct iovec piece = { &byte, 1 };
	union ids control = { .space = { 0 } };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof control };
	int got[HD_SOCK_IDS];
	size_t n_got = 0;
	ssize_t r;

	(void)net;
	do {
		r = recvmsg(sock->id, &message, MSG_CMSG_CLOEXEC);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return lost(diag, errno, "read from", sock->addr);
	struct cmsghdr *head = r ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		n_got = (head->cmsg_len - CMSG_LEN(0)) / sizeof *got;
		n_got = n_got < HD_SOCK_IDS ? n_got : HD_SOCK_IDS;
		memcpy(got, CMSG_DATA(head), n_got * sizeof *got);
	}
	bool right = n_got == n && !(message.msg_flags & MSG_CTRUNC);
	for (size_t i = 0; i < n_got; i++)
		if (!right || fcntl(got[i], F_SETFL, fcntl(got[i], F_GETFL) | O_NONBLOCK)) {
			right = false;
			close(got[i]);
			got[i] = -1;
		}
	for (size_t i = 0; i < n_got && !right; i++)
		if (got[i] >= 0)
			close(got[i]);
	if (!right)
		return r ? hd_fail(diag, HD_E_PROTOCOL, "%s: the other process did not give %zu descriptors",
			sock->addr, n) :
			hd_fail(diag, HD_E_PEERLOST, "%s: the other process has ended", sock->addr);
	memcpy(ids, got, n * sizeof *ids);
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
	.name = "real", .listen = real_listen, .accept = real_accept, .connect = real_connect,
		.connected = real_connected,
	.read = real_read, .write = real_write, .is_private = real_is_private,
	.is_same_user = real_is_same_user, .tune = real_tune, .unsent = real_unsent,
	.give = real_give, .take = real_take, .close = real_close,
};

void hd_net_real(struct hd_net *net) { *net = (struct hd_net){ &real_ops, false }; }
