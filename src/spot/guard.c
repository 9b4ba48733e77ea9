#include "spot/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"

static uint32_t count_in_time(const struct hd_guard *g)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= g->n; i++)
		n += g->in_time[(g->next + HD_GUARD_LOSSES - i) % HD_GUARD_LOSSES];
	return n;
}

static void judge(struct hd_guard *g, bool in_time)
{
	if (g->off && !in_time)
		*g = (struct hd_guard){ .n = 0 };
	else if (!g->off && g->n == HD_GUARD_LOSSES && count_in_time(g) + HD_GUARD_MISSED >= HD_GUARD_LOSSES)
		g->off = true;
}

static void put(struct hd_guard *g, uint32_t worker, bool in_time)
{
	g->worker[g->next] = worker;
	g->in_time[g->next] = in_time;
	g->next = (g->next + 1) % HD_GUARD_LOSSES;
	g->n += g->n < HD_GUARD_LOSSES;
	judge(g, in_time);
}

void hd_guard_left(struct hd_guard *g, uint32_t worker, bool noticed)
{
	if (noticed)
		put(g, worker, true);
}

void hd_guard_lost(struct hd_guard *g, uint32_t worker)
{
	for (uint32_t i = 1; i <= g->n; i++) {
		const uint32_t at = (g->next + HD_GUARD_LOSSES - i) % HD_GUARD_LOSSES;
		if (g->worker[at] != worker)
			continue;
		g->in_time[at] = false;
		judge(g, false);
		return;
	}
	put(g, worker, false);
}

bool hd_guard_wants(const struct hd_guard *g) { return !g->off; }

const char *hd_guard_why(const struct hd_guard *g, char out[HD_GUARD_WORDS])
{
	if (g->off)
		snprintf(out, HD_GUARD_WORDS, "off: %u of the last %u losses were announced in time",
			count_in_time(g), g->n);
	else
		snprintf(out, HD_GUARD_WORDS, "on: %u of %u losses since it is on were announced in time; "
			"off with %d of %d", count_in_time(g), g->n, HD_GUARD_LOSSES - HD_GUARD_MISSED,
			HD_GUARD_LOSSES);
	return out;
}

void hd_guard_put(const struct hd_guard *g, uint8_t bytes[HD_GUARD_BYTES])
{
	for (uint32_t i = 0; i < HD_GUARD_LOSSES; i++) {
		hd_put32(bytes + 5 * i, g->worker[i]);
		bytes[5 * i + 4] = g->in_time[i];
	}
	bytes[5 * HD_GUARD_LOSSES] = (uint8_t)g->next;
	bytes[5 * HD_GUARD_LOSSES + 1] = (uint8_t)g->n;
	bytes[5 * HD_GUARD_LOSSES + 2] = g->off;
}

bool hd_guard_take(struct hd_guard *g, const uint8_t *bytes, size_t len)
{
	struct hd_guard is = { .n = 0 };

	if (len != HD_GUARD_BYTES || bytes[len - 3] >= HD_GUARD_LOSSES || bytes[len - 2] > HD_GUARD_LOSSES ||
		bytes[len - 1] > 1)
		return false;
	for (uint32_t i = 0; i < HD_GUARD_LOSSES; i++) {
		is.worker[i] = hd_get32(bytes + 5 * i);
		is.in_time[i] = bytes[5 * i + 4] == 1;
	}
	is.next = bytes[len - 3];
	is.n = bytes[len - 2];
	is.off = bytes[len - 1];
	*g = is;
	return true;
}
