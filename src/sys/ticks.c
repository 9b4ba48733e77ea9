#include "sys/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sys/clock.h"

enum { TRIES = 4, MOST_TICKS = 1 << 24, MOST_NS = 16 };  /* a tick is no longer; products have 24 + 36 bits */
/* Without a rate: of no processor is a tick longer than a ns, and few are shorter than a sixth. */
static const uint64_t most_ticks = 6 * HD_TICKS_OFF_NS;

/* ticks: fewer than MOST_TICKS */
static uint64_t ns_of(uint64_t ticks, uint64_t mult) { return ticks * mult >> 32; }

/* The kernel's time at a tick; false: something came between the looks each time. */
static bool look(uint64_t *tick, uint64_t *ns, uint64_t mult)
{
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = __builtin_ia32_rdtsc();
		*ns = hd_clock_raw_ns();
		const uint64_t took = __builtin_ia32_rdtsc() - before;
		*tick = before + took / 2;
		if (took < MOST_TICKS && (mult ? ns_of(took, mult) <= HD_TICKS_OFF_NS : took <= most_ticks))
			return true;
	}
	return false;
}

/* Once each span: the kernel is asked. */
static uint64_t renew(struct hd_ticks *t, uint64_t mult)
{
	uint64_t tick, ns;

	const bool holds = look(&tick, &ns, mult);
	t->tick = holds && mult ? tick : 0;
	t->ns = ns;
	return ns;
}

uint64_t hd_ticks_ns(struct hd_ticks *t, const struct hd_ticks_rate *rate)
{
	const uint64_t mult = atomic_load_explicit(&rate->mult, memory_order_relaxed),
		gone = __builtin_ia32_rdtsc() - t->tick;
	uint64_t ns;

	if (mult && gone < atomic_load_explicit(&rate->span, memory_order_relaxed))
		ns = t->ns + ns_of(gone, mult);
	else
		ns = renew(t, mult);
	t->last = ns > t->last ? ns : t->last;
	return t->last;
}

bool hd_ticks_usable(void)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char text[16] = "";
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	const ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n == 4 && !memcmp(text, "tsc\n", 4);
}

/* What the counter says of the time since the last measurement, and the kernel's clock, by the known rate. */
static bool agrees(const struct hd_ticks_rate *rate, uint64_t tick, uint64_t ns, uint64_t mult)
{
	const double real = (double)(ns - rate->last_ns),
		said = (double)(tick - rate->last_tick) * (double)mult * 0x1p-32,
		off = said > real ? said - real : real - said;

	return tick > rate->last_tick && off <= 2 * (double)HD_TICKS_OFF_NS + real * HD_TICKS_RATE_OFF;
}

static void begin(struct hd_ticks_rate *rate, uint64_t tick, uint64_t ns)
{
	atomic_store_explicit(&rate->mult, 0, memory_order_relaxed);
	rate->first_tick = tick;
	rate->first_ns = ns;
}

void hd_ticks_measure(struct hd_ticks_rate *rate)
{
	const uint64_t known = atomic_load_explicit(&rate->mult, memory_order_relaxed);
	uint64_t tick, ns;

	if (rate->forgotten || !look(&tick, &ns, known))
		return;
	if (!rate->first_tick || tick <= rate->last_tick || (known && !agrees(rate, tick, ns, known)))
		begin(rate, tick, ns);
	rate->last_tick = tick;
	rate->last_ns = ns;
	if (ns - rate->first_ns < HD_TICKS_KNOWN_NS)
		return;
	const double mult = (double)(ns - rate->first_ns) / (double)(tick - rate->first_tick) * 0x1p32;
	const double span = (double)HD_TICKS_SPAN_NS * 0x1p32 / mult;
	if (mult < 1 || mult > MOST_NS * 0x1p32 || span > MOST_TICKS)
		return;                   /* no counter of a processor */
	atomic_store_explicit(&rate->span, (uint64_t)span, memory_order_relaxed);
	atomic_store_explicit(&rate->mult, (uint64_t)mult, memory_order_relaxed);
}

void hd_ticks_forget(struct hd_ticks_rate *rate)
{
	atomic_store_explicit(&rate->mult, 0, memory_order_relaxed);
	rate->forgotten = true;
}
