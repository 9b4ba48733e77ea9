/* transport_int.h -- slots that rows share (private to the room's transports). */
#ifndef HD_WIRE_TRANSPORT_INT_H
#define HD_WIRE_TRANSPORT_INT_H

#include "wire/transport.h"

/* transport_sock.c: rows over a socket of sys */
enum hd_err sock_listen(struct hd_net *net, struct hd_sock *sock, const char *addr, struct hd_diag *diag);
enum hd_err sock_ready(struct hd_conn *conn, struct hd_diag *diag);
enum hd_err sock_read(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *got,
	struct hd_diag *diag);
enum hd_err sock_write(struct hd_conn *conn, const struct hd_vec *vec, size_t n, size_t *put,
	struct hd_diag *diag);
unsigned sock_wants(struct hd_conn *conn, unsigned wanted);
void sock_seen(struct hd_conn *conn);
void sock_chunk(struct hd_conn *conn, uint32_t bytes);
bool sock_room(struct hd_conn *conn);
void sock_close(struct hd_conn *conn);
enum hd_err unix_listen(struct hd_net *net, struct hd_sock *sock, const char *addr, struct hd_diag *diag);
enum hd_err unix_ready(struct hd_conn *conn, struct hd_diag *diag);

#endif
