#include "wire/transport.h"

#include <string.h>

#include "wire/transport_int.h"

const struct hd_transport hd_transports[] = {
	{ "unix", 0, unix_listen, unix_ready, sock_read, sock_write, sock_wants, sock_chunk, sock_close },
	{ "tcp", HD_WIRE_OPEN | HD_WIRE_WORLD, sock_listen, sock_ready, sock_read, sock_write, sock_wants, sock_chunk, sock_close },
	{ "sim", 0, sock_listen, sock_ready, sock_read, sock_write, sock_wants, sock_chunk, sock_close },
};

const struct hd_transport *hd_transport_find(const char *name)
{
	for (size_t i = 0; i < sizeof hd_transports / sizeof *hd_transports; i++)
		if (!strcmp(hd_transports[i].name, name))
			return &hd_transports[i];
	return NULL;
}
