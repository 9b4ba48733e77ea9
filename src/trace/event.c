#include "trace/event.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"

void hd_event_put(uint8_t slot[HD_SLOT_BYTES], const struct hd_event *event)
{
	uint64_t duration = event->duration < HD_EVENT_DURATION_MAX ? event->duration : HD_EVENT_DURATION_MAX;

	assert(event->kind != HD_SLOT_IS_EXT);
	hd_put64(slot, event->t0);
	hd_put64(slot + 8, duration | (uint64_t)event->flags << 48 | (uint64_t)event->kind << 56);
	hd_put32(slot + 16, event->name);
	hd_put32(slot + 20, event->instr);
	hd_put64(slot + 24, event->arg);
}

bool hd_event_get(const uint8_t slot[HD_SLOT_BYTES], struct hd_event *event)
{
	uint64_t word = hd_get64(slot + 8);

	if (hd_slot_is_ext(slot))
		return false;
	*event = (struct hd_event){
		.t0 = hd_get64(slot), .duration = word & HD_EVENT_DURATION_MAX,
			.flags = (uint8_t)(word >> 48), .kind = (uint8_t)(word >> 56),
		.name = hd_get32(slot + 16), .instr = hd_get32(slot + 20), .arg = hd_get64(slot + 24),
	};
	return true;
}

void hd_event_put_transfer(uint8_t slot[HD_SLOT_BYTES], const struct hd_event_transfer *transfer)
{
	hd_put32(slot, transfer->gate_ns);
	hd_put32(slot + 4, transfer->first_ns);
	hd_put32(slot + 8, transfer->predicted_ns);
	hd_put16(slot + 12, transfer->peer);
	slot[14] = transfer->primitive;
	slot[HD_SLOT_KIND_AT] = HD_SLOT_IS_EXT;
	hd_put64(slot + 16, transfer->flow);
	hd_put32(slot + 24, transfer->chunks);
	hd_put16(slot + 28, transfer->preempted);
	hd_put16(slot + 30, transfer->class);
}

bool hd_event_get_transfer(const uint8_t slot[HD_SLOT_BYTES], struct hd_event_transfer *transfer)
{
	if (!hd_slot_is_ext(slot))
		return false;
	*transfer = (struct hd_event_transfer){
		.gate_ns = hd_get32(slot), .first_ns = hd_get32(slot + 4), .predicted_ns = hd_get32(slot + 8),
		.peer = (uint16_t)hd_get16(slot + 12), .primitive = slot[14], .flow = hd_get64(slot + 16),
		.chunks = hd_get32(slot + 24),
		.preempted = (uint16_t)hd_get16(slot + 28), .class = (uint16_t)hd_get16(slot + 30),
	};
	return true;
}

void hd_event_put_probe(uint8_t slot[HD_SLOT_BYTES], const struct hd_event_probe *probe)
{
	memset(slot, 0, HD_SLOT_BYTES);
	hd_put64(slot, probe->between);
	hd_put32(slot + 8, probe->peer);
	slot[HD_SLOT_KIND_AT] = HD_SLOT_IS_EXT;
}

bool hd_event_get_probe(const uint8_t slot[HD_SLOT_BYTES], struct hd_event_probe *probe)
{
	if (!hd_slot_is_ext(slot))
		return false;
	*probe = (struct hd_event_probe){ .between = hd_get64(slot), .peer = hd_get32(slot + 8) };
	return true;
}

static const struct { const char *text; bool ext; } kinds[] = {
#define X(id, number, text, ext, about) [HD_EVENT_##id] = { text, ext },
	HD_EVENTS(X)
#undef X
};

static const char *const waits[] = {
#define X(id, number, text) [HD_WAIT_##id] = (text),
	HD_WAITS(X)
#undef X
};

const char *hd_event_text(uint8_t kind) { return kind < sizeof kinds / sizeof kinds[0] ? kinds[kind].text :
	NULL; }
bool hd_event_has_ext(uint8_t kind) { return kind < sizeof kinds / sizeof kinds[0] && kinds[kind].ext; }
const char *hd_wait_text(uint8_t reason) { return reason < sizeof waits / sizeof waits[0] ? waits[reason] :
	NULL; }

uint64_t hd_event_flow(uint64_t epoch, uint64_t step, uint64_t transfer, uint64_t source, uint64_t target)
{
	const uint64_t part[5] = { epoch, step, transfer, source, target };
	uint8_t bytes[sizeof part];

	for (int i = 0; i < 5; i++)
		hd_put64(bytes + 8 * i, part[i]);
	return hd_hash64(bytes, sizeof bytes);
}
