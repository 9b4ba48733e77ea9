/* hand.h -- the file by which a user gives notice to all workers of a machine: `heddle stop --local`.
 *
 * One JSON object: {"notice":"preempt","ends_unix_ms":1505722920000}; "withdrawn" takes it back. It counts
 * until KEEP_NS after its end, so that a file that was left there stops no worker of the next day. */
#ifndef HD_NOTICE_HAND_H
#define HD_NOTICE_HAND_H

#include <stddef.h>
#include <stdint.h>

enum { HD_HAND_TEXT = 128 };

/* The file's text. ends_ns: since 1970; 0: withdrawn. Returns its length. */
size_t hd_hand_print(int64_t ends_wall_ns, char text[HD_HAND_TEXT]);

#endif
