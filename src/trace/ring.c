#include "trace/ring.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

enum { WORDS = HD_SLOT_BYTES / 8 };

_Static_assert(sizeof(struct hd_ring) == HD_RING_HEADER_BYTES, "the header is 64 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a ring lies in memory as it does in the file");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a ring is shared with other processes");

bool hd_ring_slots_ok(uint64_t nslots)
{
	return hd_is_pow2(nslots) && nslots >= HD_RING_SLOTS_LOW && nslots <= HD_RING_SLOTS_HIGH;
}

size_t hd_ring_bytes(uint32_t nslots)
{
	assert(hd_ring_slots_ok(nslots));
	return HD_RING_HEADER_BYTES + (size_t)nslots * HD_SLOT_BYTES;
}

void hd_ring_init(struct hd_ring_writer *writer, void *memory, uint32_t nslots)
{
	assert(hd_ring_slots_ok(nslots) && (uintptr_t)memory % _Alignof(struct hd_ring) == 0);
	*writer = (struct hd_ring_writer){ .ring = memory, .mask = nslots - 1 };
	memset(memory, 0, hd_ring_bytes(nslots));
}

/* Release on each word, not one fence: it costs nothing on x86 and thread checkers understand it. */
static void store_slot(struct hd_ring_writer *writer, uint64_t index, const uint8_t slot[HD_SLOT_BYTES])
{
	_Atomic uint64_t *to = writer->ring->word + (index & writer->mask) * WORDS;
	uint64_t word[WORDS];

	memcpy(word, slot, sizeof word);
	for (int i = 0; i < WORDS; i++)
		atomic_store_explicit(&to[i], word[i], memory_order_release);
}

void hd_ring_put(struct hd_ring_writer *writer, const uint8_t slot[HD_SLOT_BYTES])
{
	store_slot(writer, writer->head, slot);
	writer->head++;
	atomic_store_explicit(&writer->ring->head, writer->head, memory_order_release);
}

void hd_ring_put_event(struct hd_ring_writer *writer, const struct hd_event *event)
{
	_Atomic uint64_t *to = writer->ring->word + (writer->head & writer->mask) * WORDS;
	const uint64_t duration = event->duration < HD_EVENT_DURATION_MAX ? event->duration :
		HD_EVENT_DURATION_MAX;

	assert(event->kind != HD_SLOT_IS_EXT);
	atomic_store_explicit(&to[0], event->t0, memory_order_release);
	atomic_store_explicit(&to[1], duration | (uint64_t)event->flags << 48 | (uint64_t)event->kind << 56,
		memory_order_release);
	atomic_store_explicit(&to[2], event->name | (uint64_t)event->instr << 32, memory_order_release);
	atomic_store_explicit(&to[3], event->arg, memory_order_release);
	writer->head++;
	atomic_store_explicit(&writer->ring->head, writer->head, memory_order_release);
}

void hd_ring_put_pair(struct hd_ring_writer *writer, const uint8_t slot[HD_SLOT_BYTES],
	const uint8_t ext[HD_SLOT_BYTES])
{
	store_slot(writer, writer->head, slot);
	store_slot(writer, writer->head + 1, ext);
	writer->head += 2;
	atomic_store_explicit(&writer->ring->head, writer->head, memory_order_release);
}

void hd_ring_read_begin(struct hd_ring_reader *reader, const void *memory, uint32_t nslots)
{
	assert(hd_ring_slots_ok(nslots) && (uintptr_t)memory % _Alignof(struct hd_ring) == 0);
	*reader = (struct hd_ring_reader){ .ring = memory, .nslots = nslots };
}

/* The oldest index that is whole while head is h and two more may be in the making. */
static uint64_t oldest(uint64_t h, uint64_t nslots)
{
	return h + 2 > nslots ? h + 2 - nslots : 0;
}

static void skip_to(struct hd_ring_reader *reader, uint64_t index)
{
	if (index > reader->next) {
		reader->nlost += index - reader->next;
		reader->next = index;
		reader->gap = true;
	}
}

static void load_slot(const struct hd_ring_reader *reader, uint64_t index, uint8_t slot[HD_SLOT_BYTES])
{
	const _Atomic uint64_t *from = reader->ring->word + (index & (reader->nslots - 1)) * WORDS;
	uint64_t word[WORDS];

	for (int i = 0; i < WORDS; i++)
		word[i] = atomic_load_explicit(&from[i], memory_order_acquire);
	memcpy(slot, word, sizeof word);
}

uint32_t hd_ring_read(struct hd_ring_reader *reader, uint8_t (*slot)[HD_SLOT_BYTES], uint32_t cap)
{
	uint64_t h1 = atomic_load_explicit(&reader->ring->head, memory_order_acquire);

	assert(cap >= 2);
	/* no ring was written 2^63 times: a broken file */
	if (h1 > UINT64_MAX / 2 || h1 <= reader->next)
		return 0;
	skip_to(reader, oldest(h1, reader->nslots));
	uint64_t first = reader->next, n = h1 - first;
	if (h1 <= first)
		return 0;
	if (n > cap)
		n = cap;
	for (uint64_t i = 0; i < n; i++)
		load_slot(reader, first + i, slot[i]);
	uint64_t h2 = atomic_load_explicit(&reader->ring->head, memory_order_acquire);
	if (h2 < h1 || h2 > UINT64_MAX / 2)
		return 0;
	skip_to(reader, oldest(h2, reader->nslots));
	uint64_t drop = reader->next - first;
	/* after a loss the base of a leading extension is gone */
	if (drop < n && reader->gap && hd_slot_is_ext(slot[drop]))
		skip_to(reader, first + ++drop);
	if (drop >= n)
		return 0;
	memmove(slot, slot + drop, (n - drop) * HD_SLOT_BYTES);
	reader->next = first + n;
	reader->gap = false;
	return (uint32_t)(n - drop);
}

void hd_ring_lost_set(struct hd_ring *ring, uint64_t nlost)
{
	atomic_store_explicit(&ring->lost, nlost, memory_order_relaxed);
}
