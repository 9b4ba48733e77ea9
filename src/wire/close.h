/* close.h -- why a connection ended: one table for BYE frames, counters and reports.
 *
 * 1. The numbers travel in BYE and are never reused; a number this version does not know reads as OTHER.
 * 2. `blame`: the fault is the peer's (it broke a rule), the path's, or there is none. A peer
 *    that broke a rule is closed without an answer unless it is authenticated; nothing else changes. */
#ifndef HD_WIRE_CLOSE_H
#define HD_WIRE_CLOSE_H

#include <stdint.h>

enum hd_blame { HD_BLAME_NONE, HD_BLAME_PATH, HD_BLAME_PEER };

/*        id        no  blame    text */
#define HD_CLOSES(X)                                                                                        \
	X(DONE,      1, NONE,   "it said good-bye")                                                         \
	X(DROPPED,   2, NONE,   "this side wanted no more of it")                                           \
	X(GONE,      3, PATH,   "the connection ended without a good-bye")                                  \
	X(SILENT,    4, PATH,   "nothing was heard for eight times workers.detect")                         \
	X(STALLED,   5, PATH,   "no byte came inside a frame for workers.detect")                           \
	X(CHECKSUM,  6, PATH,   "the checksum of a payload is wrong")                                       \
	X(LATE,      7, PEER,   "no greeting within five times workers.detect")                             \
	X(CROWDED,   8, PEER,   "too many connections wait to be greeted")                                  \
	X(KEY,       9, PEER,   "it has no right to connect: wrong key, or another user of this machine")   \
	X(VERSION,  10, PEER,   "no protocol version in common; start the same heddle everywhere")          \
	X(JOB,      11, PEER,   "it works on another job")                                                  \
	X(KERNELS,  12, PEER,   "its kernels give other bits; use a like machine, or start with kernels: portable") \
	X(IDENTITY, 13, PEER,   "it calls itself by an id that is not its own")                             \
	X(LIVE,     14, PEER,   "a worker of that id is connected already")                                 \
	X(FRAME,    15, PEER,   "a frame that is malformed")                                                \
	X(ORDER,    16, PEER,   "a frame that may not come here")                                           \
	X(STREAM,   17, PEER,   "a stream that was not announced, or not granted, or of another length")    \
	X(CREDIT,   18, PEER,   "more credit than there can be")                                            \
	X(EPOCH,    19, PEER,   "an unknown epoch")                                                         \
	X(PLAN,     20, PEER,   "it has another plan of the same epoch")                                    \
	X(WORN,     21, NONE,   "the connection's stream numbers are used up; connect again")               \
	X(OTHER,    22, NONE,   "a reason of a later version")

enum hd_close {
	HD_CLOSE_NONE = 0,
#define X(id, no, blame, text) HD_CLOSE_##id = (no),
	HD_CLOSES(X)
#undef X
	HD_CLOSE_COUNT          /* one above the greatest: the size of an array of counters */
};

const char *hd_close_text(enum hd_close why);            /* never NULL */
const char *hd_close_name(enum hd_close why);            /* "CHECKSUM": for counters and logs */
enum hd_blame hd_close_blame(enum hd_close why);
enum hd_close hd_close_from(uint32_t number);            /* of a BYE; OTHER if unknown, also for 0 */

#endif
