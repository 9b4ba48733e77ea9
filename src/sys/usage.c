#define _GNU_SOURCE        /* of the C library: gettid */
#include "sys/usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

bool hd_usage_read(struct hd_usage *u, uint64_t *ran_ns, uint64_t *waited_ns)
{
	char text[128], *end;

	if (u->fd < 0 || u->tid != gettid()) {
		hd_usage_close(u);
		u->tid = gettid();
		u->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	}
	const ssize_t n = u->fd < 0 ? -1 : pread(u->fd, text, sizeof text - 1, 0);
	if (n <= 0)
		return false;
	text[n] = 0;
	*ran_ns = strtoull(text, &end, 10);
	*waited_ns = strtoull(end, NULL, 10);
	return true;
}

void hd_usage_close(struct hd_usage *u)
{
	if (u->fd >= 0)
		close(u->fd);
	*u = HD_USAGE_CLOSED;
}
