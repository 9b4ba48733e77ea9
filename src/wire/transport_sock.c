#include <string.h>

#include "wire/transport_int.h"

enum hd_err sock_listen(struct hd_net *net, struct hd_sock *sock, const char *addr, struct hd_diag *diag)
{
	return hd_sock_listen(net, addr, sock, diag);
}

enum hd_err sock_ready(struct hd_conn *conn, struct hd_diag *diag)
{
	enum hd_err err = conn->is_ready ? HD_OK : hd_sock_connected(&conn->sock, diag);

	conn->is_ready = err == HD_OK;
	return err;
}

enum hd_err sock_read(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag)
{
	return hd_sock_read_vec(&conn->sock, vec, n, got, diag);
}

enum hd_err sock_write(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag)
{
	return hd_sock_write_vec(&conn->sock, vec, n, put, diag);
}

unsigned sock_wants(struct hd_conn *conn, unsigned wanted)
{
	return conn->is_ready ? wanted : HD_LOOP_READ | HD_LOOP_WRITE;
}

void sock_seen(struct hd_conn *conn) { (void)conn; }

/* Two chunks may wait in the kernel: one goes while the next is chosen. What waits there cannot be
 * overtaken. */
void sock_chunk(struct hd_conn *conn, uint32_t bytes)
{
	conn->unsent_most = 2 * bytes;
	hd_sock_tune(&conn->sock, HD_SOCK_UNSENT_BYTES, conn->unsent_most);
}

bool sock_room(struct hd_conn *conn)
{
	return !conn->unsent_most || hd_sock_unsent(&conn->sock) < conn->unsent_most;
}

void sock_close(struct hd_conn *conn) { hd_sock_close(&conn->sock); }

enum hd_err unix_listen(struct hd_net *net, struct hd_sock *sock, const char *addr, struct hd_diag *diag)
{
	if (strncmp(addr, "unix:", 5) != 0)
		return hd_fail(diag, HD_E_INVAL, "%s is not the address of a Unix socket; write unix:PATH",
			addr);
	if (!hd_sock_is_private(net, addr))
		return hd_fail(diag, HD_E_REFUSED,
			"%s: its folder is not this user's alone; give it the mode 0700", addr);
	return hd_sock_listen(net, addr, sock, diag);
}

enum hd_err unix_ready(struct hd_conn *conn, struct hd_diag *diag)
{
	enum hd_err err = sock_ready(conn, diag);

	if (err || hd_sock_is_same_user(&conn->sock))
		return err;
	conn->is_ready = false;
	return hd_fail(diag, HD_E_REFUSED, "%s: at the other end is a process of another user",
		conn->sock.addr);
}

const struct hd_transport hd_transport_unix = {
	.name = "unix",
	.listen = unix_listen, .ready = unix_ready, .read = sock_read, .write = sock_write,
	.wants = sock_wants, .seen = sock_seen, .chunk = sock_chunk, .room = sock_room, .close = sock_close,
};

const struct hd_transport hd_transport_tcp = {
	.name = "tcp",
	.powers = HD_WIRE_OPEN | HD_WIRE_WORLD,
	.listen = sock_listen, .ready = sock_ready, .read = sock_read, .write = sock_write,
	.wants = sock_wants, .seen = sock_seen, .chunk = sock_chunk, .room = sock_room, .close = sock_close,
};

const struct hd_transport hd_transport_sim = {
	.name = "sim",
	.listen = sock_listen, .ready = sock_ready, .read = sock_read, .write = sock_write,
	.wants = sock_wants, .seen = sock_seen, .chunk = sock_chunk, .room = sock_room, .close = sock_close,
};
