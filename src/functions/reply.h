/* reply.h -- what an owner says to a COMMIT. */
#ifndef HD_FUNCTIONS_REPLY_H
#define HD_FUNCTIONS_REPLY_H

/*        id        no  name        meaning */
#define HD_FN_REPLIES(X) \
	X(ACCEPTED, 1, "accepted", "the outputs are the task's")                                        \
	X(ALREADY,  2, "already",  "another attempt, or this one, committed before")                    \
	X(STALE,    3, "stale",    "the task is revoked, or no such attempt of it was begun")           \
	X(REFUSED,  4, "refused",  "the token is wrong, too old or used; or digests differ")

/* Numbers of the wire, never reused. */
enum hd_fn_reply {
#define X(id, no, name, about) HD_FN_##id = (no),
	HD_FN_REPLIES(X)
#undef X
};

#endif
