#define _GNU_SOURCE        /* F_SETSIG, pipe2 */
#include "sys/tie.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"

enum { LEAST = 3 };                       /* 0 to 2 have other uses */

static int above(int fd)
{
	const int moved = fd < 0 || fd >= LEAST ? fd : fcntl(fd, F_DUPFD_CLOEXEC, LEAST);

	if (moved != fd && fd >= 0)
		close(fd);
	return moved;
}

enum hd_err hd_tie_open(struct hd_tie *tie, struct hd_diag *diag)
{
	int ends[2];

	*tie = (struct hd_tie){ 0 };
	if (pipe2(ends, O_CLOEXEC))
		return hd_fail_errno(diag, errno, "open", "a pipe");
	ends[0] = above(ends[0]);
	ends[1] = above(ends[1]);
	if (ends[0] >= 0 && ends[1] >= 0) {
		*tie = (struct hd_tie){ .in = ends[0], .hold = ends[1] };
		return HD_OK;
	}
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return hd_fail(diag, HD_E_REFUSED, "no descriptor is left for a pipe");
}

void hd_tie_cut(struct hd_tie *tie)
{
	if (tie->in)
		close(tie->in);
	if (tie->hold)
		close(tie->hold);
	*tie = (struct hd_tie){ 0 };
}

bool hd_tied(void) { return getenv(HD_TIE_VARIABLE) != NULL; }

/* The kernel sends the signal, so that it comes to a stopped process, too. The input is opened once more:
 * where a signal goes is a matter of the open file, which others share. */
enum hd_err hd_tie_follow(struct hd_diag *diag)
{
	struct stat stat;

	if (!hd_tied())
		return HD_OK;
	if (fstat(0, &stat) || !S_ISFIFO(stat.st_mode))
		return hd_fail(diag, HD_E_INVAL,
			HD_TIE_VARIABLE " is set, and standard input is no pipe: unset it");
	const int fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETSIG, SIGKILL) || fcntl(fd, F_SETOWN, getpid()) ||
		fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC)) {
		const int error = errno;
		if (fd >= 0)
			close(fd);
		return hd_fail_errno(diag, error, "follow", "standard input");
	}
	struct pollfd end = { .fd = fd, .events = POLLIN };
	if (poll(&end, 1, 0) > 0 && (end.revents & POLLHUP))
		raise(SIGKILL);                   /* it was cut before */
	return HD_OK;                             /* the descriptor stays open as long as the process */
}
