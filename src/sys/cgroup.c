#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 1024, MEMBERSHIP = 8192 };

bool hd_proc_text(const char *path, char *text, unsigned cap)
{
	unsigned len = 0;
	ssize_t n = 0;

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < cap) {
		n = read(fd, text + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (unsigned)n;
	}
	close(fd);
	if (n < 0 || len == cap)
		return false;
	text[len] = 0;
	return true;
}

bool hd_cgroup_text(const char *folder, const char *file, char text[HD_CGROUP_TEXT])
{
	char path[PATH + 64];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	return hd_proc_text(path, text, HD_CGROUP_TEXT);
}

/* Visits mount + group, then each folder above it, down to the mount. */
static void walk_up(const char *mount, const char *group, bool v2,
	void (*visit)(void *user, const char *folder, bool v2), void *user)
{
	char path[PATH];

	if (snprintf(path, sizeof path, "%s%s", mount, group) >= (int)sizeof path)
		return;
	size_t base = strlen(mount), len = strlen(path);
	while (len > base) {
		visit(user, path, v2);
		while (len > base && path[len - 1] != '/')
			len--;
		len -= len > base;
		path[len] = 0;
	}
	visit(user, mount, v2);
}

static bool lists(const char *controllers, size_t len, const char *controller)
{
	size_t want = strlen(controller);

	for (size_t at = 0; at < len; ) {
		size_t n = strcspn(controllers + at, ",:");
		if (n == want && !memcmp(controllers + at, controller, n))
			return true;
		at += n + 1;
	}
	return false;
}

/* One line: "hierarchy:controllers:path"; of v2 "0::path". */
static void walk_line(const char *root, const char *line, const char *controller,
		      void (*visit)(void *user, const char *folder, bool v2), void *user)
{
	char mount[PATH], group[PATH];

	const char *names = strchr(line, ':');
	const char *path = names ? strchr(names + 1, ':') : NULL;
	if (!path)
		return;
	names++;
	size_t n_names = (size_t)(path - names);
	bool v2 = n_names == 0;
	if (!v2 && !lists(names, n_names, controller))
		return;
	snprintf(mount, sizeof mount, v2 ? "%s" : "%s/%.*s", root, (int)n_names, names);
	snprintf(group, sizeof group, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
	if (!strcmp(group, "/"))        /* the mount itself */
		group[0] = 0;
	walk_up(mount, group, v2, visit, user);
	if (!v2) {        /* "cpu,cpuacct" is often mounted as "cpu" */
		snprintf(mount, sizeof mount, "%s/%s", root, controller);
		walk_up(mount, group, v2, visit, user);
	}
}

void hd_cgroup_walk_text(const char *root, const char *membership, const char *controller,
			 void (*visit)(void *user, const char *folder, bool v2), void *user)
{
	for (const char *line = membership; *line; ) {
		walk_line(root, line, controller, visit, user);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
}

void hd_cgroup_walk(const char *controller, void (*visit)(void *user, const char *folder, bool v2),
	void *user)
{
	char membership[MEMBERSHIP];

	if (hd_proc_text("/proc/self/cgroup", membership, sizeof membership))
		hd_cgroup_walk_text("/sys/fs/cgroup", membership, controller, visit, user);
}
