#include "sys/bell.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sys/file.h"

enum hd_err hd_bell_make(struct hd_bell *bell, struct hd_diag *diag)
{
	int id = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (id < 0)
		return hd_fail_errno(diag, errno, "make", "an event counter");
	bell->id = id;
	return HD_OK;
}

/* Another process may have filled the counter, or put something else in its place: both are its own loss. */
void hd_bell_ring(struct hd_bell *bell)
{
	uint64_t one = 1;
	ssize_t r;

	do {
		r = write(bell->id, &one, sizeof one);
	} while (r < 0 && errno == EINTR);
}

void hd_bell_hush(struct hd_bell *bell)
{
	uint64_t rings;
	ssize_t r;

	do {
		r = read(bell->id, &rings, sizeof rings);
	} while (r < 0 && errno == EINTR);
}

void hd_bell_close(struct hd_bell *bell)
{
	if (bell->id >= 0)
		close(bell->id);
	bell->id = -1;
}
