/* ledger.h -- what was paid for machines, in parts that sum to all of it.
 *
 * 1. Time is whole milliseconds of devices; money is whole nano-dollars. A part is both.
 * 2. The parts' times sum to the paid time; their money sums to the paid money, which is the exact cost of
 *    all of it, rounded down once: money is dealt out along the table, each part up to the exact sum so far.
 *
 * Pure. Ownership: a plain value; zeroed, nothing was paid. */
#ifndef HD_SPOT_LEDGER_H
#define HD_SPOT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct hd_json;

/*        id         name         what the time went into */
#define HD_LEDGER_PARTS(X) \
	X(USEFUL,    "useful",    "work of committed steps")                                                \
	X(REDUNDANT, "redundant", "for the case of a loss: shadow work of committed steps, checkpoints")    \
	X(BUBBLE,    "bubble",    "idle in committed steps, and waiting for a device that runs two stages") \
	X(PAUSE,     "pause",     "what a loss within a step made it longer")                               \
	X(REDO,      "redo",      "steps that were lost, or cut off by the end")                            \
	X(REBUILD,   "rebuild",   "while a new plan takes its place")                                       \
	X(WAITING,   "waiting",   "without a place in the plan")                                            \
	X(BOOT,      "boot",      "from the start of a machine until it is ready")

enum hd_ledger_part {
#define X(id, name, about) HD_LEDGER_##id,
	HD_LEDGER_PARTS(X)
#undef X
	HD_NLEDGER
};
extern const char *const hd_ledger_names[HD_NLEDGER];

struct hd_spot_ledger {
	int64_t ms[HD_NLEDGER];
	int64_t nano_usd[HD_NLEDGER], rest[HD_NLEDGER];       /* rest: in 1 / 3,600,000 of a nano-dollar */
};

/* So many milliseconds of devices (0 or more) at a price per device and hour. false: it does not fit, and the
 * ledger is as it was. */
bool hd_ledger_put(struct hd_spot_ledger *ledger, enum hd_ledger_part part, int64_t ms, int64_t nano_usd_h);

struct hd_ledger_sum { int64_t ms, nano_usd, part[HD_NLEDGER]; };       /* part: nano-dollars of each */
/* false: it does not fit */
bool hd_ledger_sum(const struct hd_spot_ledger *ledger, struct hd_ledger_sum *sum);

/* A ledger as events and answers have it: the member `all`, `money`, and PART_ms of each part. */
struct hd_paid { int64_t ms, nano_usd, part_ms[HD_NLEDGER]; };
/* false: one lacks, or the parts do not sum to all; *paid is as it was. */
bool hd_paid_read(struct hd_paid *paid, const struct hd_json *json, const char *all, const char *money);

#endif
