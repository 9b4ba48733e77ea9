/* place.h -- where a service is asked: the base address of sources by HTTP, taken apart.
 *
 * "http://HOST[:PORT][/PATH]", the host as numbers (IPv6 in brackets), so that no name has to be looked up:
 * the services of clouds have one address on all machines. {pid} in the path stands for the number of the
 * process that asks, so that an emulator can tell workers of one machine apart. Pure. */
#ifndef HD_NOTICE_PLACE_H
#define HD_NOTICE_PLACE_H

#include <stdint.h>

#include "base/err.h"

struct hd_notice_place { char addr[96], host[80], path[128]; };   /* "tcp:HOST:PORT", "HOST:PORT",
	"/PATH" or "" */

/* HD_E_INVAL: what is wrong with it, and what would be right. */
HD_MUST_USE enum hd_err hd_notice_place(const char *base, uint32_t pid, struct hd_notice_place *place,
	struct hd_diag *diag);

#endif
