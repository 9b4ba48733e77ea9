#define _GNU_SOURCE        /* of the C library: what Linux has beyond POSIX */
#include "sys/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/failpoint.h"
#include "sys/file.h"

#ifndef STATX_DIOALIGN     /* of Linux 6.1; the library's header may be older than the kernel */
#define STATX_DIOALIGN 0x2000U
#endif

/* Word 38 of struct statx: memory alignment, then that of offsets. */
static uint32_t align_of(int id)
{
	union { struct statx x; uint32_t word[64]; } at = { .word = { 0 } };
	uint32_t memory, offset;

	if (statx(id, "", AT_EMPTY_PATH, STATX_DIOALIGN, &at.x) || !(at.x.stx_mask & STATX_DIOALIGN))
		return HD_DIRECT_ALIGN;
	memory = at.word[38];
	offset = at.word[39];
	if (!memory || !offset)
		return 0;                 /* the file system says: none */
	uint32_t most = memory > offset ? memory : offset;
	return most > HD_DIRECT_ALIGN ? most : HD_DIRECT_ALIGN;
}

/* Some file systems take the flag and refuse the read. */
static bool reads_directly(int id, uint32_t align)
{
	_Alignas(HD_DIRECT_ALIGN) char block[HD_DIRECT_ALIGN];

	return align && (align > HD_DIRECT_ALIGN || pread(id, block, sizeof block, 0) >= 0);
}

enum hd_err hd_direct_open(const char *path, bool direct, bool must, struct hd_direct *file,
	struct hd_diag *diag)
{
	struct stat st;
	uint32_t align = 0;
	int id = direct ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_DIRECT) : -1;

	*file = (struct hd_direct){ .id = -1 };
	if (id >= 0 && !reads_directly(id, align = align_of(id))) {
		close(id);
		id = -1;
		errno = EINVAL;
	}
	if (direct && id < 0 && must && errno == EINVAL)
		return hd_fail(diag, HD_E_REFUSED, "%s lies on a file system without direct reads: set "
			"data.direct to auto or never", path);
	if (id < 0) {
		align = 0;
		id = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	}
	if (id < 0)
		return hd_fail_errno(diag, errno, "open", path);
	if (fstat(id, &st) || !S_ISREG(st.st_mode)) {
		close(id);
		return hd_fail(diag, HD_E_INPUT, "%s is not a regular file: name a file", path);
	}
	*file = (struct hd_direct){ .id = id, .align = align, .size_bytes = st.st_size, .inode = st.st_ino,
		.changed_wall_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
	return HD_OK;
}

enum hd_err hd_direct_read(const struct hd_direct *file, const char *path, void *into, size_t len,
	int64_t offset, size_t *got, struct hd_diag *diag)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(file->id, (char *)into + done, len - done, offset + (int64_t)done);
		const int error = HD_FAILPOINT(BLOB_READ);
		if (error) {
			n = -1;
			errno = error;
		}
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return hd_fail_errno(diag, errno, "read", path);
		done += (size_t)n;
		if (!n || (file->align && n % file->align))
			break;            /* the end: a direct read is not whole blocks there alone */
	}
	*got = done;
	return HD_OK;
}

bool hd_direct_read_here(const struct hd_direct *file, void *into, size_t len, int64_t offset)
{
#ifdef RWF_NOWAIT
	struct iovec part = { into, len };

	return !HD_FAILPOINT(BLOB_READ) && preadv2(file->id, &part, 1, offset, RWF_NOWAIT) == (ssize_t)len;
#else
	(void)file, (void)into, (void)len, (void)offset;
	return false;
#endif
}

void hd_direct_close(struct hd_direct *file)
{
	if (file->id >= 0)
		close(file->id);
	file->id = -1;
}
