#define _GNU_SOURCE        /* of the C library: gettid, unshare */
#include "sys/netns.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum hd_err hd_netns_own(struct hd_diag *diag)
{
	return unshare(CLONE_NEWNET) ? hd_fail(diag, HD_E_REFUSED, "a network of its own: %s",
		strerror(errno)) : HD_OK;
}

int hd_netns_id(void) { return gettid(); }
