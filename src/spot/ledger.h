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
struct hd_fields;

/*        id         name         what the time went into: of a replay; as fields of a run */
#define HD_LEDGER_PARTS(X) \
	X(USEFUL,    "useful",    "work of committed steps",                                                \
		"of that, work of committed steps")                                                         \
	X(REDUNDANT, "redundant", "for the case of a loss: shadow work of committed steps, checkpoints",    \
		"for the case of a loss")                                                                   \
	X(BUBBLE,    "bubble",    "idle in committed steps, or waiting for a device that runs two stages", \
		"idle in committed steps")                                                                  \
	X(PAUSE,     "pause",     "what a loss within a step made it longer",                               \
		"after a loss, until its step went on")                                                     \
	X(REDO,      "redo",      "steps that were lost, or cut off by the end",                            \
		"computed again, or cut off")                                                               \
	X(REBUILD,   "rebuild",   "while a new plan takes its place",                                       \
		"learning the state")                                                                       \
	X(WAITING,   "waiting",   "without a place in the plan",                                            \
		"without a part in the steps")                                                              \
	X(BOOT,      "boot",      "from the start of a machine until it is ready",                          \
		"from a process's start until it is known")

enum hd_ledger_part {
#define X(id, name, about, field) HD_LEDGER_##id,
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
/* As rows of answers: `all` is paid_ms, `money` paid_nano_usd. */
extern const struct hd_fields hd_paid_fields;
/* false: one lacks, or the parts do not sum to all; *paid is as it was. */
bool hd_paid_read(struct hd_paid *paid, const struct hd_json *json, const char *all, const char *money);

#endif
