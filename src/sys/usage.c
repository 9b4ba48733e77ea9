#define _GNU_SOURCE        /* of the C library: gettid */
#include "sys/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/cgroup.h"

/* A period is far shorter: what is owed for longer is the past of a group that the process came to. */
enum { OWED_NS = 1000000000, STAT = 2048, GROUPS = 32 };

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

struct held_sum { uint64_t ns; struct stat seen[GROUPS]; unsigned nseen; };

/* Of v1 one folder may be mounted under two names. */
static bool is_new(struct held_sum *sum, const char *path)
{
	struct stat *at = &sum->seen[sum->nseen];

	if (sum->nseen == GROUPS || stat(path, at))
		return false;
	for (unsigned i = 0; i < sum->nseen; i++)
		if (sum->seen[i].st_dev == at->st_dev && sum->seen[i].st_ino == at->st_ino)
			return false;
	return true;
}

static void add_held(void *user, const char *folder, bool v2)
{
	struct held_sum *sum = user;
	const char *const key = v2 ? "throttled_usec " : "throttled_time ", *at;
	char path[1100], text[STAT];

	snprintf(path, sizeof path, "%.1000s/cpu.stat", folder);
	if (!is_new(sum, path) || !hd_proc_text(path, text, sizeof text - 1) || !(at = strstr(text, key)))
		return;
	sum->ns += strtoull(at + strlen(key), NULL, 10) * (v2 ? 1000 : 1);
	sum->nseen++;
}

bool hd_throttle_read(uint64_t *held_ns)
{
	struct held_sum sum = { .nseen = 0 };

	hd_cgroup_walk("cpu", add_held, &sum);
	*held_ns = sum.ns;
	return sum.nseen > 0;
}

void hd_throttle_grow(struct hd_throttle *h, uint64_t said, uint64_t now)
{
	if (h->first && said > h->said)
		h->owed += said - h->said;
	h->owed = h->owed < OWED_NS ? h->owed : OWED_NS;
	const uint64_t went = h->first && now > h->at ? now - h->at : 0;
	const uint64_t more = h->owed < went ? h->owed : went;
	h->ns += more;
	h->owed -= more;
	h->said = said;
	h->at = now;
	h->first = true;
}
