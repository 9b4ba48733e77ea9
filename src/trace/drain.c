#include "trace/drain.h"

#include <string.h>

#include "base/le.h"

/* The payload lies behind its head. */
static enum hd_err put(struct hd_drain *d, uint8_t *at, enum hd_hdt_type type, uint64_t len,
	struct hd_diag *diag)
{
	hd_hdt_section(at, type, 0, at + HD_HDT_SECTION_BYTES, len, len);
	return d->sink.put(d->sink.self, at, HD_HDT_SECTION_BYTES + len, diag);
}

enum hd_err hd_drain_head(const struct hd_drain_sink *sink, const char *meta, struct hd_diag *diag)
{
	uint8_t head[HD_HDT_MAGIC_BYTES + HD_HDT_SECTION_BYTES];
	const size_t len = strlen(meta);

	hd_hdt_magic(head);
	hd_hdt_section(head + HD_HDT_MAGIC_BYTES, HD_HDT_META, 0, meta, len, len);
	enum hd_err err = sink->put(sink->self, head, sizeof head, diag);
	return err ? err : sink->put(sink->self, meta, len, diag);
}

enum hd_err hd_drain_process(struct hd_drain *d, const uint8_t header[HD_FLIGHT_HEADER_BYTES],
	struct hd_diag *diag)
{
	hd_hdt_process(d->buffer + HD_HDT_SECTION_BYTES, d->process, header);
	return put(d, d->buffer, HD_HDT_PROCESS, HD_HDT_PROCESS_BYTES, diag);
}

enum hd_err hd_drain_begin(struct hd_drain *d, const struct hd_drain_sink *sink,
	const void *memory, const struct hd_flight_view *view, const uint8_t header[HD_FLIGHT_HEADER_BYTES],
	uint32_t process, struct hd_diag *diag)
{
	memset(d, 0, sizeof *d);
	d->sink = *sink;
	d->memory = memory;
	d->table = view->names;
	d->nrings = view->info.nrings;
	d->process = process;
	for (uint32_t i = 0; i < d->nrings; i++)
		hd_ring_read_begin(&d->ring[i].reader, view->ring[i].memory, view->ring[i].nslots);
	return hd_drain_process(d, header, diag);
}

static enum hd_err put_names(struct hd_drain *d, struct hd_diag *diag)
{
	const uint32_t used = hd_flight_names_used(d->memory);
	enum hd_err err = HD_OK;

	while (!err && d->names < used) {
		const uint32_t n = used - d->names < HD_DRAIN_NAMES ? used - d->names : HD_DRAIN_NAMES;
		uint8_t *to = d->text + HD_HDT_SECTION_BYTES;
		hd_hdt_names(to, d->process, d->names);
		memcpy(to + HD_HDT_NAMES_BYTES, d->table + d->names, n);
		err = put(d, d->text, HD_HDT_NAMES, HD_HDT_NAMES_BYTES + n, diag);
		d->names += n;
	}
	return err;
}

/* Slots that lie wholly before `from`, from the first on; an extension goes with its event. */
static uint32_t too_early(uint8_t (*slot)[HD_SLOT_BYTES], uint32_t n, uint64_t from)
{
	struct hd_event event;
	uint32_t i = 0;

	while (i < n && (!hd_event_get(slot[i], &event) || event.t0 + event.duration < from))
		i++;
	return i;
}

/* How many are left without those at the end that begin after `to`. */
static uint32_t in_time(uint8_t (*slot)[HD_SLOT_BYTES], uint32_t n, uint64_t to)
{
	uint32_t kept = 0;
	bool keeps = true;                /* the extension of an event that was kept may come first */

	for (uint32_t i = 0; i < n && to; i++) {
		struct hd_event event;
		if (hd_event_get(slot[i], &event))
			keeps = event.t0 <= to;
		if (keeps)
			kept = i + 1;
	}
	return to ? kept : n;
}

/* `first`: index of the first of them. */
static enum hd_err put_slots(struct hd_drain *d, uint32_t ring, uint64_t first, uint8_t *slot, uint32_t n,
	uint64_t missed, struct hd_diag *diag)
{
	uint8_t *to = d->buffer + HD_HDT_SECTION_BYTES + HD_HDT_RINGS_BYTES;
	const bool lost = missed > d->ring[ring].missed;

	if (lost)
		hd_event_put(to, &(struct hd_event){ .arg = missed - d->ring[ring].missed,
			.t0 = hd_get64(slot), .kind = HD_EVENT_LOST });
	memmove(to + (lost ? HD_SLOT_BYTES : 0), slot, (size_t)n * HD_SLOT_BYTES);
	d->ring[ring].missed = missed;
	hd_hdt_rings(d->buffer + HD_HDT_SECTION_BYTES, &(struct hd_hdt_rings){ .process = d->process,
		.ring = ring, .first = first - lost, .nlost = missed });
	return put(d, d->buffer, HD_HDT_RINGS, HD_HDT_RINGS_BYTES + ((uint64_t)n + lost) * HD_SLOT_BYTES,
		diag);
}

static enum hd_err pass_ring(struct hd_drain *d, uint32_t i, uint64_t from, const _Atomic uint64_t *to,
	struct hd_diag *diag)
{
	uint8_t *at = d->buffer + HD_HDT_SECTION_BYTES + HD_HDT_RINGS_BYTES + HD_SLOT_BYTES;
	uint8_t (*slot)[HD_SLOT_BYTES] = (uint8_t (*)[HD_SLOT_BYTES])(void *)at;
	struct hd_ring_reader *reader = &d->ring[i].reader;
	enum hd_err err = HD_OK;
	uint32_t n;

	while (!err && (n = hd_ring_read(reader, slot, HD_DRAIN_SLOTS))) {
		const uint64_t first = reader->next - n;
		const uint32_t early = d->ring[i].began ? 0 : too_early(slot, n, from);
		const uint64_t end = atomic_load_explicit(to, memory_order_acquire);
		if (early == n)
			continue;
		/* what lies before the first that counts was not asked for, and is not missed */
		if (!d->ring[i].began)
			d->ring[i].before = reader->nlost - d->ring[i].missed;
		d->ring[i].began = true;
		const uint32_t left = in_time(slot + early, n - early, end);
		err = put_names(d, diag);         /* that the slots may refer to */
		if (!err && left)
			err = put_slots(d, i, first + early, slot[early], left,
				reader->nlost - d->ring[i].before, diag);
		if (left < n - early)
			break;
	}
	return err;
}

enum hd_err hd_drain_pass(struct hd_drain *d, uint64_t from, const _Atomic uint64_t *to,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < d->nrings && !err; i++)
		err = pass_ring(d, i, from, to, diag);
	return err;
}

void hd_drain_again(struct hd_drain *d)
{
	for (uint32_t i = 0; i < d->nrings; i++)
		d->ring[i].began = false;
}

uint64_t hd_drain_lost(const struct hd_drain *d)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < d->nrings; i++)
		lost += d->ring[i].missed;
	return lost;
}
