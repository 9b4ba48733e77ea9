/* timeouts.h -- how long parts of an elastic run wait for one another: all of it in T = workers.detect.
 *
 * T is the one knob. What a machine waits for is a row here, in eighths of T, and `heddle doctor --limits`
 * lists the rows; a wait without a row is a mistake, and so is one without an end. A wait
 * that follows the work instead says so where it stands: a worker may be busy for 8 times its longest
 * instruction.
 *
 * The values were chosen so that a notice takes at most 2 T. */
#ifndef HD_BASE_TIMEOUTS_H
#define HD_BASE_TIMEOUTS_H

#include <stdint.h>

/*        id           eighths  what waits                                  why as long */
#define HD_TIMEOUTS(X) \
	X(STAGGER,        1,   "between members that would take the coordinator's place",          "one comes first and the others find it") \
	X(SLOW_JOINER,    1,   "a boundary, for a joiner far behind",                              "at least; as long as a step where that is more") \
	X(HEARTBEAT,      2,   "between two signs of life",                                        "four may be missed before silence counts") \
	X(LINKS,          4,   "links of a worker's first view to come up",                       "one that failed is tried again at each sign of life") \
	X(BACKOFF,        16,  "a joiner that was too slow, until it may try again",               "it slows members down; twice as long each further time") \
	X(SILENT,         8,   "silence until a peer counts as lost",                              "the knob itself") \
	X(PROGRESS,       16,  "no progress, the heart beating",                                   "at least; 8 times its longest instruction where that is more") \
	X(TAKE_OVER,      16,  "no coordinator until a member starts one",                         "a restart by whoever started it comes first") \
	X(CALLED_BACK,    32,  "a new coordinator for members to call",                            "they call with each sign of life") \
	X(SHUTDOWN,       32,  "the end of a run for workers to leave",                            "they finish files, then go") \
	X(OTHERS_T,       32,  "what a peer with a larger T may make us wait",                     "it does not say how long we wait") \
	X(SUBSTITUTE,     48,  "a worker that leaves, for one in its place",                       "then the stages are fewer, where the others have the state") \
	X(GREETING,       40,  "a connection accepted that has not identified itself",             "a handshake, the machine being busy") \
	X(ABANDONED,      64,  "silence until the connection itself is closed",                    "a machine that stood still is heard again on it") \
	X(PREPARE,        64,  "a worker asked to prepare a change",                               "it may be within a long step") \
	X(SHORT_HANDED,   64,  "a start, or a restart from disk, for all workers that are wanted", "then as many begin as are enough; the others join later") \
	X(START,          240, "a worker started or come back to be ready",                        "it loads the job and opens its data") \
	X(NO_COORDINATOR, 240, "no coordinator and a member missing",                              "then a checkpoint, and exit 75")

enum {
#define X(id, eighths, what, why) HD_TIMEOUT_##id = (eighths),
	HD_TIMEOUTS(X)
#undef X
};

#define HD_TIMEOUT_NS(id, t_ns) ((t_ns) * HD_TIMEOUT_##id / 8)

/* Between looks at what wakes no loop: processes that ended, requests to stop. As often as signs of life, but
 * no more rarely for a long T. */
static inline int64_t hd_look_ns(int64_t t_ns)
{
	const int64_t beat_ns = HD_TIMEOUT_NS(HEARTBEAT, t_ns), most_ns = 250000000;

	return beat_ns < most_ns ? beat_ns : most_ns;
}

/* When to look next: so often, and when the next sign of life is due, which a T that is no multiple of four
 * looks would have late. */
static inline int64_t hd_look_at_ns(int64_t now_ns, int64_t beat_at_ns, int64_t t_ns)
{
	const int64_t at_ns = now_ns + hd_look_ns(t_ns);

	return beat_at_ns < at_ns ? beat_at_ns : at_ns;
}

#endif
