#include <string.h>

#include "base/le.h"
#include "spot/meter.h"

enum { NS_PER_MS = 1000000 };

int64_t hd_meter_clock_ms(const struct hd_meter_clock *clock, int64_t monotonic_ns)
{
	return monotonic_ns / NS_PER_MS + clock->more_ms;
}

static void set(struct hd_meter_clock *clock, const uint8_t boot[HD_METER_BOOT], int64_t monotonic_ns,
	int64_t now_ms)
{
	memcpy(clock->boot, boot, sizeof clock->boot);
	clock->more_ms = now_ms - monotonic_ns / NS_PER_MS;
}

void hd_meter_clock_begin(struct hd_meter_clock *clock, const uint8_t boot[HD_METER_BOOT],
	int64_t monotonic_ns)
{
	set(clock, boot, monotonic_ns, 0);
}

void hd_meter_clock_put(const struct hd_meter_clock *clock, uint8_t bytes[HD_METER_CLOCK_BYTES])
{
	memcpy(bytes, clock->boot, sizeof clock->boot);
	hd_put64(bytes + HD_METER_BOOT, (uint64_t)clock->more_ms);
}

void hd_meter_clock_follow(struct hd_meter_clock *clock, const uint8_t bytes[HD_METER_CLOCK_BYTES],
	int64_t at_ms, const uint8_t boot[HD_METER_BOOT], int64_t monotonic_ns)
{
	const int64_t more_ms = bytes ? (int64_t)hd_get64(bytes + HD_METER_BOOT) : 0;

	/* a record of a time that has not come is of a boot without an id, or was changed */
	if (bytes && !memcmp(bytes, boot, HD_METER_BOOT) && more_ms >= at_ms - monotonic_ns / NS_PER_MS &&
		more_ms < INT64_MAX - monotonic_ns / NS_PER_MS)
		*clock = (struct hd_meter_clock){ .more_ms = more_ms };
	else
		set(clock, boot, monotonic_ns, at_ms);
	memcpy(clock->boot, boot, sizeof clock->boot);
}
