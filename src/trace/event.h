/* event.h -- what happened, in slots of 32 bytes: the one record of all traces.
 *
 * The runtime and the simulator write the same events into rings (ring.h); analyses,
 * viewers and controllers read them.
 *
 *	offset  base slot                         extension of SEND, RECV, READ       extension of CLOCK
 *	 0      u64 t0, ticks                     u32 ns t0 -> gate; u32 t0 -> first  u64 t3 - t2
 *	 8      u48 duration, ticks               u32 predicted ns; u16 peer          u32 peer; u16 0
 *	14      u8 flags                          u8 primitive                        u8 0
 *	15      u8 kind                           u8 255                              u8 255
 *	16      u32 name; u32 instr               u64 flow                            u64 0
 *	24      u64 arg                           u32 chunks; u16 pre-empted; u16 class   u64 0
 *
 * 1. Little end first. The byte at 15 tells what a slot is, so a reader can start anywhere.
 * 2. Only events of the kinds above have an extension; it follows its base at once, and the
 *    base has the flag EXT.
 * 3. Numbers of kinds and flags are never reused. A kind that is not known is kept as it is.
 * 4. A duration saturates at 2^48 - 1 ticks, u32 spans at 2^32 - 1 ns ("at least").
 *
 * Pure: no clock, no memory of its own. */
#ifndef HD_TRACE_EVENT_H
#define HD_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_SLOT_BYTES = 32, HD_SLOT_KIND_AT = 15, HD_SLOT_IS_EXT = 255 };
#define HD_EVENT_DURATION_MAX ((UINT64_C(1) << 48) - 1)

/*        id          number text          ext    meaning of t0, duration, arg */
#define HD_EVENTS(X) \
	X(STEP_BEGIN,  1, "step_begin", false, "instant; arg: step")                                                     \
	X(STEP_END,    2, "step_end",   false, "instant; arg: step; instr: 1 committed, 0 dropped")                      \
	X(OP,          3, "op",         false, "an instruction ran; arg: bytes touched")                                 \
	X(SEND,        4, "send",       true,  "from enqueued to last byte handed to the transport; arg: bytes")         \
	X(RECV,        5, "recv",       true,  "from slot posted to last byte placed; arg: bytes; gate 0")               \
	X(READ,        6, "read",       true,  "from submitted to completed; arg: bytes; instr: file; flow: offset")     \
	X(WAIT,        7, "wait",       false, "a device stood still; arg: reason, and what for << 8")                   \
	X(COUNTER,     8, "counter",    false, "instant; name: the counter; arg: its value")                             \
	X(EPOCH,       9, "epoch",      false, "instant; arg: membership epoch; name: hash of the plan")                 \
	X(CLOCK,      10, "clock",      true,  "a probe: t0 = t1, duration t4 - t1; arg: t2")                            \
	X(MARK,       11, "mark",       false, "instant with a name: a failure, a notice, a change of plan")             \
	X(LOST,       12, "lost",       false, "arg: slots that the drain missed before this one")

enum hd_event_kind {
#define X(id, number, text, ext, about) HD_EVENT_##id = (number),
	HD_EVENTS(X)
#undef X
};

/*        id       bit  text         */
#define HD_EVENT_FLAGS(X)             \
	X(EXT,        1, "extension")  \
	X(OPEN,       2, "end unknown") \
	X(REDONE,     4, "redone work") \
	X(SHADOW,     8, "shadow stage") \
	X(SIMULATED, 16, "simulated")

enum {
#define X(id, bit, text) HD_EVENT_FLAG_##id = (bit),
	HD_EVENT_FLAGS(X)
#undef X
};

/*        id          number text            */
#define HD_WAITS(X)                           \
	X(TRANSFER,    1, "transfer")          \
	X(DATA,        2, "data")              \
	X(SLOT,        3, "slot")              \
	X(COMMIT,      4, "commit")            \
	X(MEMORY,      5, "memory")            \
	X(PLAN_CHANGE, 6, "plan change")       \
	X(OTHER,       7, "other")

enum hd_wait {
#define X(id, number, text) HD_WAIT_##id = (number),
	HD_WAITS(X)
#undef X
};
static inline uint64_t hd_wait_arg(enum hd_wait reason, uint64_t what) { return what << 8 | (uint64_t)reason;
	}

/* arg of OP: bytes touched (saturates at 2^40 - 1), virtual node, stage; all ones: none. */
enum { HD_WORK_NO_VN = 0xffff, HD_WORK_NO_STAGE = 0xff };
#define HD_WORK_BYTES_MAX ((UINT64_C(1) << 40) - 1)
static inline uint64_t hd_work_arg(uint64_t bytes, uint32_t vn, uint32_t stage)
{
	return (bytes < HD_WORK_BYTES_MAX ? bytes : HD_WORK_BYTES_MAX) |
		(uint64_t)(vn < HD_WORK_NO_VN ? vn : HD_WORK_NO_VN) << 40 |
		(uint64_t)(stage < HD_WORK_NO_STAGE ? stage : HD_WORK_NO_STAGE) << 56;
}
static inline uint64_t hd_work_bytes(uint64_t arg) { return arg & HD_WORK_BYTES_MAX; }
static inline uint32_t hd_work_vn(uint64_t arg) { return (uint32_t)(arg >> 40) & HD_WORK_NO_VN; }
static inline uint32_t hd_work_stage(uint64_t arg) { return (uint32_t)(arg >> 56); }

struct hd_event { uint64_t t0, duration, arg; uint32_t name, instr; uint8_t flags, kind; };
struct hd_event_transfer { uint64_t flow; uint32_t gate_ns, first_ns, predicted_ns, chunks; uint16_t peer,
	preempted, class; uint8_t primitive; };
struct hd_event_probe { uint64_t between; uint32_t peer; };        /* between: t3 - t2 */

/* kind is not 255 */
void hd_event_put(uint8_t slot[HD_SLOT_BYTES], const struct hd_event *event);
void hd_event_put_transfer(uint8_t slot[HD_SLOT_BYTES], const struct hd_event_transfer *transfer);
void hd_event_put_probe(uint8_t slot[HD_SLOT_BYTES], const struct hd_event_probe *probe);
/* false, and nothing is set: the slot is of the other sort. */
bool hd_event_get(const uint8_t slot[HD_SLOT_BYTES], struct hd_event *event);
bool hd_event_get_transfer(const uint8_t slot[HD_SLOT_BYTES], struct hd_event_transfer *transfer);
bool hd_event_get_probe(const uint8_t slot[HD_SLOT_BYTES], struct hd_event_probe *probe);

static inline bool hd_slot_is_ext(const uint8_t slot[HD_SLOT_BYTES]) { return slot[HD_SLOT_KIND_AT] ==
	HD_SLOT_IS_EXT; }
static inline uint32_t hd_span_ns(uint64_t ns) { return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX; }

const char *hd_event_text(uint8_t kind);                 /* NULL: unknown */
bool hd_event_has_ext(uint8_t kind);
const char *hd_wait_text(uint8_t reason);                /* NULL: unknown */

/* The id that both ends of a transfer give it without talking: hd_hash64 of the five numbers as u64. */
uint64_t hd_event_flow(uint64_t epoch, uint64_t step, uint64_t transfer, uint64_t source, uint64_t target);

#endif
