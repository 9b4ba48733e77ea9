/* ring.h -- the newest slots of one thread, in memory that its caller owns.
 *
 * Each thread that records has a ring. It lies in a mapped file (flight.h), so that what
 * was recorded survives the process; a drain or a snapshot reads it while it is written.
 *
 *	byte 0     8      16          64
 *	     head  lost   (reserved)  slot 0, slot 1, ... slot nslots-1         u64, little end first
 *
 * head counts all slots ever written; slot i lies at i mod nslots. lost counts the slots
 * that the drain missed.
 *
 * 1. One writer per ring; recording takes no lock, allocates nothing, calls nothing. nslots
 *    is a power of two in [HD_RING_SLOTS_LOW, HD_RING_SLOTS_HIGH].
 * 2. The writer stores the slot, its extension, then head. A reader takes head (h1), copies,
 *    takes head again (h2), and keeps slots from h2 - nslots + 2 on: two may be in the making.
 * 3. A reader never sees half a slot: every word is stored with release and loaded with
 *    acquire, so a reader that sees a word of slot i sees a head of at least i - 1.
 * 4. What is kept begins with a base slot after a loss: an extension alone is dropped.
 * 5. A reader trusts nothing in the ring: any bytes give some slots, never a wild access.
 *
 * Threads: one writer; readers any, each with a struct of its own. */
#ifndef HD_TRACE_RING_H
#define HD_TRACE_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"

enum { HD_RING_HEADER_BYTES = 64, HD_RING_SLOTS_LOW = 4, HD_RING_SLOTS_HIGH = 1 << 24 };

/* The layout above, as it lies in memory. */
struct hd_ring {
	_Atomic uint64_t head, lost;
	uint64_t reserved[6];
	_Atomic uint64_t word[];          /* [nslots][4] */
};

bool hd_ring_slots_ok(uint64_t nslots);
size_t hd_ring_bytes(uint32_t nslots);

struct hd_ring_writer { struct hd_ring *ring; uint64_t head, mask; };
/* Empties the ring. memory: hd_ring_bytes(nslots), aligned to 8. */
void hd_ring_init(struct hd_ring_writer *writer, void *memory, uint32_t nslots);
void hd_ring_put(struct hd_ring_writer *writer, const uint8_t slot[HD_SLOT_BYTES]);
/* The same slot as of hd_event_put(), made where it lies. */
void hd_ring_put_event(struct hd_ring_writer *writer, const struct hd_event *event);
void hd_ring_put_pair(struct hd_ring_writer *writer, const uint8_t slot[HD_SLOT_BYTES],
	const uint8_t ext[HD_SLOT_BYTES]);

struct hd_ring_reader {
	const struct hd_ring *ring;       /* borrowed */
	uint32_t nslots;
	uint64_t next;                    /* index of the next slot to be read */
	uint64_t nlost;                   /* slots missed so far: overwritten before they were read */
	bool gap;                         /* some were missed since the last one given out */
};
void hd_ring_read_begin(struct hd_ring_reader *reader, const void *memory, uint32_t nslots);
/* Copies the oldest slots not read yet, at most `cap` >= 2; 0: there are none now, or the
 * writer overtook this call. */
uint32_t hd_ring_read(struct hd_ring_reader *reader, uint8_t (*slot)[HD_SLOT_BYTES], uint32_t cap);
void hd_ring_lost_set(struct hd_ring *ring, uint64_t nlost);             /* by the drain */

#endif
