#include "spot/meter.h"

#include <stddef.h>

#include "base/le.h"

enum { NS_PER_MS = 1000000 };

static const enum hd_ledger_part part_of[HD_METER_NDOES] = { [HD_METER_BOOTS] = HD_LEDGER_BOOT,
	[HD_METER_WAITS] = HD_LEDGER_WAITING, [HD_METER_REBUILDS] = HD_LEDGER_REBUILD,
	[HD_METER_PAUSES] = HD_LEDGER_PAUSE, [HD_METER_STEPS] = HD_LEDGER_USEFUL };

/* A ledger that is full counts no more: three hundred million years of machines. */
static void put(struct hd_spot_ledger *ledger, const struct hd_meter_machine *m, enum hd_ledger_part part,
	int64_t ms)
{
	(void)hd_ledger_put(ledger, part, ms, m->nano_usd_h);
}

/* What it did since the last look. */
static int64_t pass(struct hd_meter_machine *m, int64_t now_ms)
{
	const int64_t dt = now_ms > m->since_ms ? now_ms - m->since_ms : 0;

	m->since_ms += dt;
	return dt;
}

static void settle(struct hd_meter *meter, struct hd_meter_machine *m, int64_t now_ms)
{
	const int64_t dt = pass(m, now_ms);

	if (m->does == HD_METER_STEPS)
		m->open_ms += dt;
	else
		put(&meter->ledger, m, part_of[m->does], dt);
}

struct hd_meter_machine *hd_meter_find(struct hd_meter *meter, uint64_t id)
{
	for (uint32_t i = 0; i < meter->n; i++)
		if (meter->machine[i].there && meter->machine[i].id == id)
			return &meter->machine[i];
	return NULL;
}

struct hd_meter_machine *hd_meter_come(struct hd_meter *meter, uint64_t id, int64_t began_ms,
	int64_t nano_usd_h)
{
	struct hd_meter_machine *m = hd_meter_find(meter, id);

	for (uint32_t i = 0; i < meter->n && !m; i++)
		if (!meter->machine[i].there)
			m = &meter->machine[i];
	if (m && m->there)
		return m;
	if (!m && meter->n == HD_METER_MACHINES)
		return NULL;
	m = m ? m : &meter->machine[meter->n++];
	*m = (struct hd_meter_machine){ .id = id, .does = HD_METER_BOOTS, .since_ms = began_ms,
		.nano_usd_h = nano_usd_h, .there = true };
	return m;
}

void hd_meter_does(struct hd_meter *meter, struct hd_meter_machine *m, enum hd_meter_does does,
	int64_t now_ms)
{
	settle(meter, m, now_ms);
	m->does = does;
}

/* Whole milliseconds of that time and what was left over before, and no more than there are. */
static int64_t at_most(uint32_t *rest_ns, uint64_t ns, int64_t ms)
{
	const uint64_t all_ns = ns < UINT64_MAX - *rest_ns ? ns + *rest_ns : ns;
	const bool fits = all_ns / NS_PER_MS < (uint64_t)ms;

	*rest_ns = fits ? (uint32_t)(all_ns % NS_PER_MS) : 0;
	return fits ? (int64_t)(all_ns / NS_PER_MS) : ms;
}

void hd_meter_commit(struct hd_meter *meter, struct hd_meter_machine *m, uint64_t step,
	const struct hd_meter_share *share, int64_t now_ms)
{
	int64_t wait_ms = 0, redundant_ms = 0, redo_ms = 0;

	settle(meter, m, now_ms);
	const int64_t all_ms = m->open_ms;
	m->open_ms = 0;
	if (step < meter->nsteps) {
		put(&meter->ledger, m, HD_LEDGER_REDO, all_ms);
		return;
	}
	if (share && share->step_ns) {
		wait_ms = at_most(&m->rest_ns[0], share->wait_ns, all_ms);
		redundant_ms = at_most(&m->rest_ns[1], share->redundant_ns, all_ms - wait_ms);
	}
	const int64_t work_ms = all_ms - wait_ms - redundant_ms;
	if (share && share->redone)
		redo_ms = (int64_t)((double)work_ms * share->redone / ((double)share->redone + share->own));
	put(&meter->ledger, m, HD_LEDGER_BUBBLE, wait_ms);
	put(&meter->ledger, m, HD_LEDGER_REDUNDANT, redundant_ms);
	put(&meter->ledger, m, HD_LEDGER_REDO, redo_ms);
	put(&meter->ledger, m, HD_LEDGER_USEFUL, work_ms - redo_ms);
}

void hd_meter_committed(struct hd_meter *meter, uint64_t step)
{
	if (step >= meter->nsteps)
		meter->nsteps = step + 1;
}

void hd_meter_rest(struct hd_meter *meter, struct hd_meter_machine *m, int64_t now_ms)
{
	settle(meter, m, now_ms);
	put(&meter->ledger, m, HD_LEDGER_WAITING, m->open_ms);
	m->open_ms = 0;
	m->does = HD_METER_WAITS;
}

void hd_meter_go(struct hd_meter *meter, struct hd_meter_machine *m, int64_t now_ms)
{
	settle(meter, m, now_ms);
	put(&meter->ledger, m, HD_LEDGER_REDO, m->open_ms);
	*m = (struct hd_meter_machine){ .there = false };
}

void hd_meter_now(const struct hd_meter *meter, int64_t now_ms, struct hd_spot_ledger *ledger)
{
	*ledger = meter->ledger;
	for (uint32_t i = 0; i < meter->n; i++) {
		struct hd_meter_machine m = meter->machine[i];
		if (m.there)
			put(ledger, &m, part_of[m.does], pass(&m, now_ms));
		if (m.there)
			put(ledger, &m, HD_LEDGER_USEFUL, m.open_ms);
	}
}

/* ---- bytes */

static uint8_t *put64(uint8_t *at, int64_t x)
{
	hd_put64(at, (uint64_t)x);
	return at + 8;
}

uint32_t hd_meter_put(const struct hd_meter *meter, int64_t now_ms, uint8_t bytes[HD_METER_BYTES])
{
	const struct hd_spot_ledger *l = &meter->ledger;
	uint8_t *at = put64(put64(bytes, now_ms), (int64_t)meter->nsteps), *count;
	uint32_t n = 0;

	for (int p = 0; p < HD_NLEDGER; p++)
		at = put64(put64(put64(at, l->ms[p]), l->nano_usd[p]), l->rest[p]);
	count = at;
	at += 4;
	for (uint32_t i = 0; i < meter->n; i++) {
		const struct hd_meter_machine *m = &meter->machine[i];
		if (!m->there)
			continue;
		at = put64(put64(put64(at, (int64_t)m->id), (int64_t)m->mark), m->since_ms);
		at = put64(put64(at, m->open_ms), m->nano_usd_h);
		hd_put32(at, m->does);
		at += 4;
		n++;
	}
	hd_put32(count, n);
	return (uint32_t)(at - bytes);
}

static int64_t get64(const uint8_t **at)
{
	const int64_t x = (int64_t)hd_get64(*at);

	*at += 8;
	return x;
}

bool hd_meter_get(struct hd_meter *meter, int64_t *at_ms, const uint8_t *bytes, uint64_t len)
{
	struct hd_meter out = { .n = 0 };
	const uint8_t *at = bytes;

	if (len < HD_METER_HEAD)
		return false;
	const int64_t written_ms = get64(&at);
	if (written_ms < 0 || written_ms > HD_METER_MS_MOST)
		return false;
	out.nsteps = (uint64_t)get64(&at);
	for (int p = 0; p < HD_NLEDGER; p++) {
		out.ledger.ms[p] = get64(&at);
		out.ledger.nano_usd[p] = get64(&at);
		out.ledger.rest[p] = get64(&at);
		if (out.ledger.ms[p] < 0 || out.ledger.nano_usd[p] < 0 || out.ledger.rest[p] < 0 ||
			out.ledger.rest[p] >= 3600000)
			return false;
	}
	const uint32_t n = hd_get32(at);
	at += 4;
	if (n > HD_METER_MACHINES || len != HD_METER_HEAD + (uint64_t)n * HD_METER_ENTRY)
		return false;
	for (out.n = 0; out.n < n; out.n++) {
		struct hd_meter_machine *m = &out.machine[out.n];
		m->id = (uint64_t)get64(&at);
		m->mark = (uint64_t)get64(&at);
		m->since_ms = get64(&at);
		m->open_ms = get64(&at);
		m->nano_usd_h = get64(&at);
		m->does = (enum hd_meter_does)hd_get32(at);
		m->there = true;
		at += 4;
		if (m->does >= HD_METER_NDOES || m->open_ms < 0 || m->open_ms > HD_METER_MS_MOST ||
			m->nano_usd_h < 0 || m->since_ms < -HD_METER_MS_MOST ||
			m->since_ms > HD_METER_MS_MOST)
			return false;
	}
	*meter = out;
	*at_ms = written_ms;
	return true;
}
