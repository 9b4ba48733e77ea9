#include "trace/flight.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/le.h"

enum { STATE = 12, JOB = 16, BOOT = 32, WORKER = 48, PID = 52, CLOCK = 56, NRINGS = 60, REALTIME = 64,
	BOOTTIME = 72, TRACE_TIME = 80,
       FIRST = 88, LATEST = 104, WHICH = 136, USED = 140, NAMES = 144, NAMES_SIZE = 152, REFUSED = 156,
       DIRECTORY = 1024, ENTRY = 48, PAIR = 16 };

static const char magic[8] = { 'H', 'D', 'F', 'L', 'I', 'G', 'H', 'T' };

_Static_assert(DIRECTORY + HD_FLIGHT_RINGS * ENTRY == HD_FLIGHT_HEADER_BYTES,
	"the directory ends the header");
_Static_assert(sizeof(_Atomic uint32_t) == 4, "the words that change are words of the file");

static _Atomic uint32_t *word_at(uint8_t *memory, size_t at)
{
	return (_Atomic uint32_t *)(void *)(memory + at);
}

static uint32_t load_word(const uint8_t *bytes, size_t at)
{
	return atomic_load_explicit((const _Atomic uint32_t *)(const void *)(bytes + at),
		memory_order_acquire);
}

static const char *const lanes[] = {
#define X(id, number, text) [HD_LANE_##id] = (text),
	HD_LANES_TABLE(X)
#undef X
};

const char *hd_lane_text(uint16_t kind) { return kind < sizeof lanes / sizeof lanes[0] ? lanes[kind] : NULL; }

size_t hd_flight_bytes(uint32_t nrings, uint32_t nslots)
{
	assert(nrings <= HD_FLIGHT_RINGS);
	return HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES + nrings * hd_ring_bytes(nslots);
}

static uint32_t slots_of(const struct hd_flight_info *info, uint32_t ring, uint32_t nslots)
{
	return info->nslots[ring] ? info->nslots[ring] : nslots;
}

size_t hd_flight_bytes_of(const struct hd_flight_info *info, uint32_t nslots)
{
	size_t bytes = HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES;

	assert(info->nrings <= HD_FLIGHT_RINGS);
	for (uint32_t i = 0; i < info->nrings; i++)
		bytes += hd_ring_bytes(slots_of(info, i, nslots));
	return bytes;
}

static void put_tick(uint8_t *at, struct hd_tick tick)
{
	hd_put64(at, tick.tick);
	hd_put64(at + 8, tick.ns);
}

static struct hd_tick get_tick(const uint8_t *at) { return (struct hd_tick){ hd_get64(at), hd_get64(at + 8) };
	}

static void put_header(uint8_t *memory, const struct hd_flight_info *info)
{
	hd_put32(memory + 8, HD_FLIGHT_VERSION);
	memcpy(memory + JOB, info->job, sizeof info->job);
	memcpy(memory + BOOT, info->boot, sizeof info->boot);
	hd_put32(memory + WORKER, info->worker);
	hd_put32(memory + PID, info->pid);
	hd_put32(memory + CLOCK, info->clock);
	hd_put32(memory + NRINGS, info->nrings);
	hd_put64(memory + REALTIME, (uint64_t)info->realtime_ns);
	hd_put64(memory + BOOTTIME, (uint64_t)info->boottime_ns);
	hd_put64(memory + TRACE_TIME, info->trace_time);
	put_tick(memory + FIRST, info->first);
	put_tick(memory + LATEST, info->latest);
	put_tick(memory + LATEST + PAIR, info->latest);
	hd_put64(memory + NAMES, HD_FLIGHT_HEADER_BYTES);
	hd_put32(memory + NAMES_SIZE, HD_NAMES_BYTES);
}

static void put_lane(uint8_t *entry, const struct hd_flight_lane *lane, uint64_t offset, uint32_t nslots)
{
	hd_put64(entry, offset);
	hd_put32(entry + 8, nslots);
	hd_put16(entry + 12, lane->kind);
	hd_put16(entry + 14, lane->index);
	memcpy(entry + 16, lane->name, strnlen(lane->name, HD_FLIGHT_LANE_NAME));
}

void hd_flight_format(struct hd_flight *flight, void *memory, const struct hd_flight_info *info,
	uint32_t nslots)
{
	uint64_t offset = HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES;

	assert((uintptr_t)memory % 64 == 0 && info->nrings <= HD_FLIGHT_RINGS);
	flight->memory = memory;
	memset(memory, 0, HD_FLIGHT_HEADER_BYTES);
	put_header(memory, info);
	hd_names_init(&flight->names, (char *)memory + HD_FLIGHT_HEADER_BYTES, HD_NAMES_BYTES,
		word_at(memory, USED));
	for (uint32_t i = 0; i < info->nrings; i++) {
		const uint32_t n = slots_of(info, i, nslots);
		hd_ring_init(&flight->ring[i], (uint8_t *)memory + offset, n);
		put_lane((uint8_t *)memory + DIRECTORY + i * ENTRY, &info->lane[i], offset, n);
		offset += hd_ring_bytes(n);
	}
	/* nothing above may sink below the magic, in the program or in the file's pages */
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(memory, magic, sizeof magic);
}

void hd_flight_tick(struct hd_flight *flight, struct hd_tick latest)
{
	uint32_t other = !atomic_load_explicit(word_at(flight->memory, WHICH), memory_order_relaxed);

	put_tick(flight->memory + LATEST + other * PAIR, latest);
	hd_put32(flight->memory + REFUSED, flight->names.nrefused);
	atomic_store_explicit(word_at(flight->memory, WHICH), other, memory_order_release);
}

void hd_flight_worker_set(void *memory, uint32_t worker)
{
	atomic_store_explicit(word_at(memory, WORKER), worker, memory_order_release);
}

void hd_flight_state_set(void *memory, enum hd_flight_state state)
{
	atomic_store_explicit(word_at(memory, STATE), (uint32_t)state, memory_order_release);
}

uint32_t hd_flight_names_used(const void *memory) { return load_word(memory, USED); }

void hd_flight_header_update(uint8_t header[HD_FLIGHT_HEADER_BYTES], uint32_t worker,
	enum hd_flight_state state, struct hd_tick latest, uint32_t names_used)
{
	hd_put32(header + WORKER, worker);
	hd_put32(header + STATE, (uint32_t)state);
	hd_put32(header + USED, names_used);
	put_tick(header + LATEST, latest);
	put_tick(header + LATEST + PAIR, latest);
}

static enum hd_err parse_header(const uint8_t *bytes, const char *name, struct hd_flight_view *view,
	struct hd_diag *diag)
{
	struct hd_flight_info *info = &view->info;
	uint32_t version = hd_get32(bytes + 8), state = load_word(bytes, STATE),
		clock = hd_get32(bytes + CLOCK), which = load_word(bytes, WHICH);

	if (version != HD_FLIGHT_VERSION)
		return hd_fail(diag, HD_E_INPUT, "%s is a flight file of version %u; known is %d", name,
			version, HD_FLIGHT_VERSION);
	if (state > HD_FLIGHT_SIGNAL || clock < HD_FLIGHT_CLOCK_MONOTONIC_RAW ||
		clock > HD_FLIGHT_CLOCK_SIMULATED || which > 1)
		return hd_fail(diag, HD_E_INPUT, "%s: the header is damaged (state %u, clock %u, pair %u)",
			name, state, clock, which);
	info->nrings = hd_get32(bytes + NRINGS);
	if (info->nrings > HD_FLIGHT_RINGS)
		return hd_fail(diag, HD_E_INPUT, "%s: %u rings, at most %d are possible", name, info->nrings,
			HD_FLIGHT_RINGS);
	memcpy(info->job, bytes + JOB, sizeof info->job);
	memcpy(info->boot, bytes + BOOT, sizeof info->boot);
	info->worker = load_word(bytes, WORKER);
	info->pid = hd_get32(bytes + PID);
	info->clock = (enum hd_flight_clock)clock;
	info->realtime_ns = (int64_t)hd_get64(bytes + REALTIME);
	info->boottime_ns = (int64_t)hd_get64(bytes + BOOTTIME);
	info->trace_time = hd_get64(bytes + TRACE_TIME);
	info->first = get_tick(bytes + FIRST);
	info->latest = get_tick(bytes + LATEST + which * PAIR);
	view->state = (enum hd_flight_state)state;
	return HD_OK;
}

static enum hd_err parse_names(const uint8_t *bytes, size_t len, const char *name,
	struct hd_flight_view *view, struct hd_diag *diag)
{
	uint64_t at = hd_get64(bytes + NAMES), size = hd_get32(bytes + NAMES_SIZE);
	uint32_t used = load_word(bytes, USED);

	if (at < HD_FLIGHT_HEADER_BYTES || at > len || size > len - at || used > size)
		return hd_fail(diag, HD_E_INPUT,
			"%s: names at byte %" PRIu64 " (%u of %" PRIu64 " used) do not lie in its %zu bytes",
			name, at, used,
			size, len);
	view->names = (const char *)bytes + at;
	view->names_used = used;
	view->names_refused = hd_get32(bytes + REFUSED);
	return HD_OK;
}

static void get_lane(const uint8_t *entry, struct hd_flight_lane *lane)
{
	lane->kind = (uint16_t)hd_get16(entry + 12);
	lane->index = (uint16_t)hd_get16(entry + 14);
	memcpy(lane->name, entry + 16, HD_FLIGHT_LANE_NAME);
	lane->name[HD_FLIGHT_LANE_NAME] = 0;
}

static enum hd_err parse_ring(const uint8_t *bytes, size_t len, const char *name, uint32_t i,
	struct hd_flight_view *view, struct hd_diag *diag)
{
	const uint8_t *entry = bytes + DIRECTORY + i * ENTRY;
	uint64_t at = hd_get64(entry);
	uint32_t nslots = hd_get32(entry + 8);

	if (!hd_ring_slots_ok(nslots))
		return hd_fail(diag, HD_E_INPUT, "%s: ring %u has %u slots, no power of two from %d to %d",
			name, i, nslots, HD_RING_SLOTS_LOW,
			HD_RING_SLOTS_HIGH);
	if (at < HD_FLIGHT_HEADER_BYTES || at % 64 || at > len || hd_ring_bytes(nslots) > len - at)
		return hd_fail(diag, HD_E_INPUT,
			"%s: ring %u of %u slots at byte %" PRIu64 " does not lie in its %zu bytes: the "
			"file is cut off or damaged", name, i, nslots, at, len);
	get_lane(entry, &view->info.lane[i]);
	view->info.nslots[i] = nslots;
	view->ring[i].memory = bytes + at;
	view->ring[i].nslots = nslots;
	return HD_OK;
}

enum hd_err hd_flight_parse(const uint8_t *bytes, size_t len, const char *name, struct hd_flight_view *view,
	struct hd_diag *diag)
{
	struct hd_flight_view got = { 0 };

	assert((uintptr_t)bytes % 8 == 0);
	if (len < HD_FLIGHT_HEADER_BYTES)
		return hd_fail(diag, HD_E_INPUT,
			"%s is cut off: %zu bytes, the header of a flight file alone has %d", name, len,
			HD_FLIGHT_HEADER_BYTES);
	if (memcmp(bytes, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is not a flight file: the magic is wrong", name);
	enum hd_err err = parse_header(bytes, name, &got, diag);
	if (err == HD_OK)
		err = parse_names(bytes, len, name, &got, diag);
	for (uint32_t i = 0; err == HD_OK && i < got.info.nrings; i++)
		err = parse_ring(bytes, len, name, i, &got, diag);
	if (err == HD_OK)
		*view = got;
	return err;
}

enum hd_err hd_flight_parse_info(const uint8_t header[HD_FLIGHT_HEADER_BYTES], const char *name,
	struct hd_flight_info *info, enum hd_flight_state *state, struct hd_diag *diag)
{
	struct hd_flight_view got = { 0 };

	if (memcmp(header, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s: a process without a flight file's header", name);
	enum hd_err err = parse_header(header, name, &got, diag);
	if (err)
		return err;
	for (uint32_t i = 0; i < got.info.nrings; i++) {
		get_lane(header + DIRECTORY + i * ENTRY, &got.info.lane[i]);
		got.info.nslots[i] = hd_get32(header + DIRECTORY + i * ENTRY + 8);
	}
	*info = got.info;
	*state = got.state;
	return HD_OK;
}
