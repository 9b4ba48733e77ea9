/* meter.h -- the ledger of a run that goes on: what each machine does from when to when, and how the time of
 * a step divides once it is committed.
 *
 * 1. A machine is paid from the time it came until it went; each whole millisecond of that lies in exactly
 *    one
 *    part of the ledger, or in a step that is open. Times that go back count as none.
 * 2. Of a committed step a machine's time since its last one divides by what its worker said of it: waiting
 *    is bubble, then work for redundancy alone redundant, of the rest the share of virtual nodes computed
 *    again for lost workers is redo, and what is left useful. A step that was committed before, and is done
 *    again after all went back to a checkpoint, is all redo. A machine that goes leaves its open step to
 *    redo; of one that rests all since its last committed step is waiting, since it has begun no other.
 * 3. hd_meter_now() is the ledger as if the open steps were useful.
 *
 * Pure; a plain value: zeroed, nothing was paid. */
#ifndef HD_SPOT_METER_H
#define HD_SPOT_METER_H

#include "spot/ledger.h"

enum { HD_METER_MACHINES = 192 };

/* What a machine does: the part of the ledger that its time is, or STEPS. */
enum hd_meter_does { HD_METER_BOOTS, HD_METER_WAITS, HD_METER_REBUILDS, HD_METER_PAUSES, HD_METER_STEPS,
	HD_METER_NDOES };

struct hd_meter_machine {
	uint64_t id, mark;                        /* mark: the owner's */
	enum hd_meter_does does;
	int64_t since_ms, open_ms;                /* open: of the step that is not committed yet */
	int64_t nano_usd_h;
	uint32_t rest_ns[2];                      /* below a millisecond, of waiting, of redundant work */
	bool there;
};

struct hd_meter {
	struct hd_spot_ledger ledger;
	uint64_t nsteps;                          /* those before it were committed once */
	uint32_t n;
	struct hd_meter_machine machine[HD_METER_MACHINES];
};

/* NULL: there are too many, and it is not paid. One that is there already stays as it is. */
struct hd_meter_machine *hd_meter_come(struct hd_meter *meter, uint64_t id, int64_t began_ms,
	int64_t nano_usd_h);
struct hd_meter_machine *hd_meter_find(struct hd_meter *meter, uint64_t id);      /* NULL: not there */
void hd_meter_does(struct hd_meter *meter, struct hd_meter_machine *machine, enum hd_meter_does does,
	int64_t now_ms);
/* Of a machine's time in a step: virtual nodes that it computed for others, and its own. */
struct hd_meter_share { uint64_t step_ns, wait_ns, redundant_ns; uint32_t redone, own; };
/* NULL: nothing is known of it, so it is useful. After that of all machines, hd_meter_committed(). */
void hd_meter_commit(struct hd_meter *meter, struct hd_meter_machine *machine, uint64_t step,
	const struct hd_meter_share *share, int64_t now_ms);
void hd_meter_committed(struct hd_meter *meter, uint64_t step);
/* Its last step is committed, and it begins no other. */
void hd_meter_rest(struct hd_meter *meter, struct hd_meter_machine *machine, int64_t now_ms);
void hd_meter_go(struct hd_meter *meter, struct hd_meter_machine *machine, int64_t now_ms);
void hd_meter_now(const struct hd_meter *meter, int64_t now_ms, struct hd_spot_ledger *ledger);

/* The time of a ledger, milliseconds that never go back: the monotonic clock of this boot, which all
 * processes of the machine have, and so much more. It begins with the run; never the wall clock, which may be
 * set between two coordinators. */
enum { HD_METER_BOOT = 16, HD_METER_CLOCK_BYTES = HD_METER_BOOT + 8 };
struct hd_meter_clock { uint8_t boot[HD_METER_BOOT]; int64_t more_ms; };
int64_t hd_meter_clock_ms(const struct hd_meter_clock *clock, int64_t monotonic_ns);
/* At 0 now. */
void hd_meter_clock_begin(struct hd_meter_clock *clock, const uint8_t boot[HD_METER_BOOT],
	int64_t monotonic_ns);
void hd_meter_clock_put(const struct hd_meter_clock *clock, uint8_t bytes[HD_METER_CLOCK_BYTES]);
/* Of a coordinator that wrote `bytes` (NULL: it kept none) at at_ms, on this boot or another: there nothing
 * is known of the time between, and none has passed. */
void hd_meter_clock_follow(struct hd_meter_clock *clock, const uint8_t bytes[HD_METER_CLOCK_BYTES],
	int64_t at_ms, const uint8_t boot[HD_METER_BOOT], int64_t monotonic_ns);

/* As times go, a coordinator's and a machine's: some 280,000 years. */
#define HD_METER_MS_MOST (INT64_C(1) << 53)

/* As bytes for a coordinator that follows, little end, with the time of writing. get: false, and the meter as
 * it was, where they are not such. */
enum { HD_METER_HEAD = 8 * (2 + 3 * HD_NLEDGER) + 4, HD_METER_ENTRY = 5 * 8 + 4,
	HD_METER_BYTES = HD_METER_HEAD + HD_METER_MACHINES * HD_METER_ENTRY };
uint32_t hd_meter_put(const struct hd_meter *meter, int64_t now_ms, uint8_t bytes[HD_METER_BYTES]);
bool hd_meter_get(struct hd_meter *meter, int64_t *at_ms, const uint8_t *bytes, uint64_t len);

#endif
