/* later.h -- messages that may wait a little, so that many of them cost one wake-up of each end.
 *
 * Records of steps go to the coordinator, and nothing waits for them there: of short steps they are said
 * together, each HD_LATER_NS. Of steps that take longer, each one is said at once.
 *
 *	said at t0 ... kept, kept, kept ... due at t0 + HD_LATER_NS: all are said
 *
 * 1. What is said earlier than others stays so: the owner says what is kept before any other message of the
 *    same link.
 * 2. Within HD_LATER_NS of the last time that something was said, a message is kept if there is space; else
 *    the owner says what is kept, then that one. So a message waits HD_LATER_NS at most, if the owner looks
 *    at hd_later_due_ns().
 *
 * Pure. Ownership: init/finish. Threads: one at a time. */
#ifndef HD_WORKER_LATER_H
#define HD_WORKER_LATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_LATER_NS = 10000000, HD_LATER_BYTES = 64 << 10 };

struct hd_later_message { uint64_t step; uint32_t id, len; const uint8_t *bytes; };

struct hd_later {
	uint8_t *room;                    /* owned: HD_LATER_BYTES; NULL: nothing is kept */
	size_t used, at;                  /* at: of the next one given out */
	int64_t said_ns;                  /* begin of the time in which messages are kept */
};

HD_MUST_USE enum hd_err hd_later_init(struct hd_later *later, struct hd_diag *diag);
void hd_later_finish(struct hd_later *later);              /* takes zeroed ones */

/* False: it is not kept (rule 2). The bytes are copied. */
bool hd_later_keep(struct hd_later *later, const struct hd_later_message *message, int64_t now_ns);
/* The oldest; false: none is left, and the time in which others are kept begins. Its bytes are valid until
 * the next call. */
bool hd_later_take(struct hd_later *later, struct hd_later_message *message, int64_t now_ns);
void hd_later_drop(struct hd_later *later);                /* all of them: the link is gone */
/* When is the owner to look? While messages are kept, what comes may be kept without another look before
 * then. INT64_MAX: never. */
int64_t hd_later_due_ns(const struct hd_later *later, int64_t now_ns);

#endif
