#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/file.h"

enum { HUGE_BYTES = 2 << 20, MEMINFO = 8192, STATUS = 8192, STAT_PATH = 1100 };

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* mmap aligns to a page: take one huge page more and give the ends back. */
static void *map_aligned(size_t len, size_t align)
{
	size_t spare = align > page_bytes() ? align : 0;

	if (len > SIZE_MAX - spare) {
		errno = ENOMEM;
		return NULL;
	}
	char *at = mmap(NULL, len + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	size_t front = spare ? (align - (uintptr_t)at % align) % align : 0;
	if (front)
		munmap(at, front);
	if (spare - front)
		munmap(at + front + len, spare - front);
	return at + front;
}

static void touch(char *at, size_t len)
{
	for (size_t i = 0; i < len; i += page_bytes())
		((volatile char *)at)[i] = 0;        /* volatile: the store is the point */
}

enum hd_err hd_memory_take(size_t bytes, enum hd_memory_how how, struct hd_memory *memory,
	struct hd_diag *diag)
{
	size_t page = page_bytes(), align = page;
	struct hd_memory_info info;

	if (bytes >= HUGE_BYTES && !(how & HD_MEMORY_SMALL))
		align = HUGE_BYTES;
	/* not to whole huge pages: a touched end would then be as resident as all that lies before it */
	size_t len = bytes > SIZE_MAX - page ? SIZE_MAX / page * page : (bytes + page - 1) / page * page;
	len += len == 0 ? page : 0;
	char *at = map_aligned(len, align);
	if (!at) {
		int error = errno;
		hd_memory_look(&info);
		return hd_fail(diag, HD_E_NOMEM,
			"cannot take %zu MiB of memory: %s; %llu MiB are free of %llu MiB allowed",
			bytes >> 20, strerror(error),
			       (unsigned long long)(info.free_bytes >> 20),
			       (unsigned long long)(info.limit_bytes >> 20));
	}
	if (align == HUGE_BYTES)
		/* advice: kernels without huge pages refuse it, to no harm */
		(void)madvise(at, len, MADV_HUGEPAGE);
	if (how & HD_MEMORY_TOUCH)
		touch(at, len);
	*memory = (struct hd_memory){ at, len };
	return HD_OK;
}

static int by_place(const void *a, const void *b)
{
	const struct hd_memory_part *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Where the page begins in which byte `at` lies, and where it ends. */
static uint64_t page_at(uint64_t at, uint64_t len, uint64_t *end)
{
	const uint64_t huge = len / HUGE_BYTES * HUGE_BYTES, page = at < huge ? HUGE_BYTES : page_bytes();
	const uint64_t begin = at / page * page;

	*end = begin + page;
	return begin;
}

uint64_t hd_memory_taken_by(struct hd_memory_part *part, uint32_t n, uint64_t len)
{
	uint64_t sum = 0, upto = 0, end;

	qsort(part, n, sizeof *part, by_place);
	for (uint32_t i = 0; i < n; i++) {
		if (part[i].end <= part[i].at)
			continue;
		uint64_t at = page_at(part[i].at, len, &end);
		(void)page_at(part[i].end - 1, len, &end);
		at = at > upto ? at : upto;
		sum += end > at ? end - at : 0;
		upto = end > upto ? end : upto;
	}
	return sum;
}

enum hd_err hd_memory_share(const char *path, size_t bytes, struct hd_memory *memory, struct hd_diag *diag)
{
	int id = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	void *at = MAP_FAILED;

	if (id < 0)
		return hd_fail_errno(diag, errno, "create", path);
	/* answers the error, and does not set errno */
	int error = posix_fallocate(id, 0, (off_t)bytes);
	if (!error) {
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, id, 0);
		error = at == MAP_FAILED ? errno : 0;
	}
	close(id);                        /* nothing was written through it: the map holds the file */
	if (error) {
		unlink(path);
		return hd_fail_errno(diag, error, "map", path);
	}
	*memory = (struct hd_memory){ at, bytes };
	return HD_OK;
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static enum hd_err map_pair(int id, size_t bytes, struct hd_memory *memory, struct hd_diag *diag)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, id, 0);

	if (at == MAP_FAILED)
		return hd_fail_errno(diag, errno, "map", "memory between processes");
	*memory = (struct hd_memory){ at, bytes };
	return HD_OK;
}

enum hd_err hd_memory_pair(size_t bytes, struct hd_memory *memory, int *id, struct hd_diag *diag)
{
	int fd = memfd_create("heddle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error = fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS) ? errno : 0;

	enum hd_err err = error ? hd_fail_errno(diag, error, "make", "memory between processes") :
		map_pair(fd, bytes, memory, diag);
	if (!err)
		*id = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

enum hd_err hd_memory_pair_map(int id, size_t bytes, struct hd_memory *memory, struct hd_diag *diag)
{
	int seals = fcntl(id, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || (seals & SEALS) != SEALS || seals & ~(SEALS) || fstat(id, &st) ||
		st.st_size != (off_t)bytes)
		return hd_fail(diag, HD_E_PROTOCOL,
			"the other process did not give %zu sealed bytes of memory", bytes);
	return map_pair(id, bytes, memory, diag);
}

void hd_memory_id_close(int id)
{
	if (id >= 0)
		close(id);
}

void hd_memory_give(struct hd_memory *memory)
{
	if (memory->at)
		munmap(memory->at, memory->len_bytes);
	*memory = (struct hd_memory){ 0 };
}

void hd_memory_drop(void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)at + page - 1) / page * page,
		end = ((uintptr_t)at + bytes) / page * page;

	if (first < end)
		/* a kernel that refuses it keeps them, to no harm */
		(void)madvise((void *)first, end - first, MADV_DONTNEED);
}

/* Where files without a name are not known, one is made and unlinked. */
enum hd_err hd_memory_spill_open(const char *folder, uint64_t bytes, int *id, struct hd_diag *diag)
{
	char path[STAT_PATH];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 && snprintf(path, sizeof path, "%s/.spill-XXXXXX", folder) < (int)sizeof path) {
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	int error = fd < 0 || ftruncate(fd, (off_t)bytes) ? errno : 0;
	if (error && fd >= 0)
		close(fd);
	*id = error ? -1 : fd;
	return error ? hd_fail_errno(diag, error, "make a file for spilled memory in", folder) : HD_OK;
}

/* The whole pages of a part; false: there are none. */
static bool pages_of(void *at, size_t bytes, uint64_t *offset, char **first, size_t *len)
{
	const uintptr_t page = page_bytes(), begin = ((uintptr_t)at + page - 1) / page * page,
		end = ((uintptr_t)at + bytes) / page * page;

	if (begin >= end)
		return false;
	*offset += begin - (uintptr_t)at;
	*first = (char *)begin;
	*len = end - begin;
	return true;
}

enum hd_err hd_memory_spill(int id, void *at, size_t bytes, uint64_t offset, struct hd_diag *diag)
{
	char *first;
	size_t len;

	if (!pages_of(at, bytes, &offset, &first, &len))
		return HD_OK;
	return mmap(first, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, id, (off_t)offset) ==
		MAP_FAILED ? hd_fail_errno(diag, errno, "move to a file", "memory") : HD_OK;
}

enum hd_err hd_memory_unspill(int id, void *at, size_t bytes, uint64_t offset, struct hd_diag *diag)
{
	char *first;
	size_t len;

	if (!pages_of(at, bytes, &offset, &first, &len))
		return HD_OK;
	if (mmap(first, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		MAP_FAILED)
		return hd_fail_errno(diag, errno, "take back from a file", "memory");
	/* a file system that cannot keeps them, to no harm */
	(void)fallocate(id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len);
	return HD_OK;
}

/* errno, of the folder that a file without a name lies in: its disk may be the one that is full. */
static enum hd_err fail_nameless(int id, const char *verb, struct hd_diag *diag)
{
	int error = errno;
	char link[40], folder[STAT_PATH];

	snprintf(link, sizeof link, "/proc/self/fd/%d", id);
	ssize_t n = readlink(link, folder, sizeof folder - 1);
	folder[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	return hd_fail_errno(diag, error, verb, *folder ? folder : "memory");
}

enum hd_err hd_memory_put(int id, const void *at, size_t bytes, uint64_t offset, struct hd_diag *diag)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pwrite(id, (const char *)at + done, bytes - done, (off_t)(offset + done));
		if (n < 0 && errno != EINTR)
			return fail_nameless(id, "write to a file without a name in", diag);
		done += n > 0 ? (size_t)n : 0;
	}
	return HD_OK;
}

enum hd_err hd_memory_get(int id, void *at, size_t bytes, uint64_t offset, struct hd_diag *diag)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = pread(id, (char *)at + done, bytes - done, (off_t)(offset + done));
		if (n < 0 && errno != EINTR)
			return fail_nameless(id, "read from a file without a name in", diag);
		if (n == 0)
			return hd_fail(diag, HD_E_IO, "a file without a name ends before byte %llu",
				(unsigned long long)(offset + bytes));
		done += n > 0 ? (size_t)n : 0;
	}
	return HD_OK;
}

uint64_t hd_memory_limit_parse(const char *text)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return UINT64_MAX;
	errno = 0;
	unsigned long long bytes = strtoull(text, &rest, 10);
	return errno || (*rest && *rest != '\n') ? UINT64_MAX : bytes;
}

/* "Name:   123 kB" in the texts of /proc; 0: not there. */
static uint64_t field_bytes(const char *text, const char *name)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t len = strlen(name);
		if (!strncmp(line, name, len) && line[len] == ':')
			return strtoull(line + len + 1, NULL, 10) * 1024;
	}
	return 0;
}

struct bounds { uint64_t limit, space; };

static void tighten(struct bounds *bounds, uint64_t limit, uint64_t used)
{
	if (limit < bounds->limit)
		bounds->limit = limit;
	uint64_t space = limit > used ? limit - used : 0;
	if (limit != UINT64_MAX && space < bounds->space)
		bounds->space = space;
}

/* Pages of files that the group gives up before it runs out: counted as used, and no obstacle. */
static uint64_t reclaimable_bytes(const char *folder, bool v2)
{
	char path[STAT_PATH], text[STATUS];
	const char *name = v2 ? "\ninactive_file " : "\ntotal_inactive_file ";

	if (snprintf(path, sizeof path, "%s/memory.stat", folder) >= (int)sizeof path ||
		!hd_proc_text(path, text, sizeof text))
		return 0;
	const char *line = strstr(text, name);
	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

static void look(void *user, const char *folder, bool v2)
{
	char limit[HD_CGROUP_TEXT], used[HD_CGROUP_TEXT];

	if (!hd_cgroup_text(folder, v2 ? "memory.max" : "memory.limit_in_bytes", limit))
		return;
	bool known = hd_cgroup_text(folder, v2 ? "memory.current" : "memory.usage_in_bytes", used);
	uint64_t used_bytes = known ? hd_memory_limit_parse(used) : 0,
		idle_bytes = known ? reclaimable_bytes(folder, v2) : 0;
	tighten(user, hd_memory_limit_parse(limit), used_bytes > idle_bytes ? used_bytes - idle_bytes : 0);
}

void hd_memory_look(struct hd_memory_info *info)
{
	char text[MEMINFO];
	struct rlimit space;

	*info = (struct hd_memory_info){ 0 };
	if (hd_proc_text("/proc/meminfo", text, sizeof text)) {
		info->machine_bytes = field_bytes(text, "MemTotal");
		info->free_bytes = field_bytes(text, "MemAvailable");
	}
	if (hd_proc_text("/proc/self/status", text, sizeof text)) {
		info->rss_bytes = field_bytes(text, "VmRSS");
		info->rss_peak_bytes = field_bytes(text, "VmHWM");
		info->rss_file_bytes = field_bytes(text, "RssFile");
		info->mapped_bytes = field_bytes(text, "VmSize");
	}
	struct bounds bounds = { info->machine_bytes, info->free_bytes };
	hd_cgroup_walk("memory", look, &bounds);
	uint64_t others = bounds.space;
	if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
		tighten(&bounds, space.rlim_cur, info->mapped_bytes);
	info->free_is_space = bounds.space < others;
	info->limit_bytes = bounds.limit;
	info->free_bytes = bounds.space;
}
