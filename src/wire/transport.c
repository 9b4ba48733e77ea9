#include "wire/transport.h"

#include <string.h>

#include "wire/transport_int.h"

/* 	name, powers,                         listen,      ready,      read,      write,      wants,      seen,
 * 	chunk,      close */
const struct hd_transport hd_transports[] = {
	{ "unix", 0,                             unix_listen, unix_ready, sock_read, sock_write, sock_wants, sock_seen, sock_chunk, sock_close },
	{ "shm",  0,                             unix_listen, shm_ready,  shm_read,  shm_write,  shm_wants,  shm_seen,  shm_chunk,  shm_close },
	{ "tcp",  HD_WIRE_OPEN | HD_WIRE_WORLD,  sock_listen, sock_ready, sock_read, sock_write, sock_wants, sock_seen, sock_chunk, sock_close },
	{ "tls", HD_WIRE_PROVES | HD_WIRE_WORLD, sock_listen, tls_ready,  tls_read,  tls_write,  tls_wants,  sock_seen, sock_chunk, tls_close },
	{ "sim",  0,                             sock_listen, sock_ready, sock_read, sock_write, sock_wants, sock_seen, sock_chunk, sock_close },
};

const struct hd_transport *hd_transport_find(const char *name)
{
	for (size_t i = 0; i < sizeof hd_transports / sizeof *hd_transports; i++)
		if (!strcmp(hd_transports[i].name, name))
			return &hd_transports[i];
	return NULL;
}
