#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

/* What the run's machines are paid for (spot/meter.h). A local worker is its process, from its start to its
 * end, a remote one from its first word until it is gone. Written down when one comes or goes, and every few
 * seconds: of what went while there was no coordinator, the time since then is not known, and not paid. */

#define REMOTE (UINT64_C(1) << 32)
#define LOOK_NS INT64_C(100000000)
#define KEEP_NS INT64_C(10000000000)

static int64_t now_ms(const struct driver *c)
{
	return hd_meter_clock_ms(&c->meter_clock, hd_clock_now_ns(c->spec->clock));
}

static int64_t price(const struct driver *c)
{
	return (int64_t)(hd_job_num(c->spec->task->job, HD_JOB_USD_H) * 1e9 + 0.5);
}

static uint64_t key_of(const struct hd_co_worker_status *w)
{
	const int pid = driver_pid(w);

	return pid ? (uint64_t)pid : REMOTE | w->worker;
}

static struct hd_meter_machine *come(struct driver *c, uint64_t key)
{
	const int pid = key < REMOTE ? (int)key : 0;
	struct hd_meter_machine *m = hd_meter_find(&c->meter, key);

	if (m)                            /* of each commit: /proc is read for those that come */
		return m;
	const uint64_t began = pid ? hd_pid_began(pid) : 0;
	if (pid && !began)
		return NULL;
	const int64_t now = now_ms(c), age_ms = pid ? hd_pid_age_ns(pid) / HD_NS_PER_MS : 0;
	m = hd_meter_come(&c->meter, key, now - age_ms, price(c));
	if (m)
		m->mark = began;
	c->unmetered = true;
	return m;
}

/* NULL: nothing is paid for it. A member of the stored record that has not called yet is no machine: its
 * process, if it lives, is another's entry. */
static struct hd_meter_machine *machine_of(struct driver *c, const struct hd_co_worker_status *w)
{
	return w->up || driver_pid(w) ? come(c, key_of(w)) : NULL;
}

static bool is_gone(const struct hd_meter_machine *m)
{
	return m->id >= REMOTE || hd_pid_began((int)m->id) != m->mark;
}

static enum hd_meter_does does_of(const struct driver *c, const struct hd_co_worker_status *w, bool holding)
{
	switch (w->state) {
	case HD_W_ADMITTED: return HD_METER_BOOTS;
	case HD_W_SYNCING:
	case HD_W_READY:    return HD_METER_REBUILDS;
	case HD_W_MEMBER:   return holding ? HD_METER_WAITS : c->halted_by;
	case HD_W_FREE:
	case HD_W_STANDBY:
	case HD_W_BACKOFF:
	case HD_W_LEFT:
	case HD_W_OUT:
	case HD_W_NSTATES:  break;
	}
	return HD_METER_WAITS;
}

static void keep(struct driver *c)
{
	uint8_t bytes[HD_METER_CLOCK_BYTES + HD_METER_BYTES];
	const uint32_t len = HD_METER_CLOCK_BYTES + hd_meter_put(&c->meter, now_ms(c),
		bytes + HD_METER_CLOCK_BYTES);

	hd_meter_clock_put(&c->meter_clock, bytes);
	c->metered_ns = hd_clock_now_ns(c->spec->clock);
	c->unmetered = false;
	driver_keep_meter(c, bytes, len);
}

static void take_workers(struct driver *c, bool *here)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	const uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;
	struct hd_co_status status = { 0 };

	if (c->machine)
		hd_coordinator_status(c->machine, &status);
	for (uint32_t h = 0; h < HD_LOCAL_CHILDREN; h++)
		if (c->local.child[h].proc.host)
			(void)come(c, (uint64_t)c->local.child[h].proc.pid);
	for (uint32_t i = 0; i < n; i++) {
		if (w[i].state == HD_W_FREE || w[i].state == HD_W_OUT)
			continue;
		struct hd_meter_machine *m = machine_of(c, &w[i]);
		if (!m)
			continue;
		here[m - c->meter.machine] = w[i].up;
		if (w[i].state == HD_W_LEFT)      /* between two steps */
			hd_meter_rest(&c->meter, m, now_ms(c));
		else
			hd_meter_does(&c->meter, m, does_of(c, &w[i], status.holding), now_ms(c));
	}
}

static void look(struct driver *c)
{
	bool here[HD_METER_MACHINES] = { false };

	c->ledger_ns = hd_clock_now_ns(c->spec->clock);
	take_workers(c, here);
	for (uint32_t i = 0; i < c->meter.n; i++) {
		struct hd_meter_machine *m = &c->meter.machine[i];
		if (!m->there || !is_gone(m) || (m->id >= REMOTE && here[i]))
			continue;
		hd_meter_go(&c->meter, m, now_ms(c));
		c->unmetered = true;
	}
	if (c->unmetered || hd_clock_now_ns(c->spec->clock) - c->metered_ns > KEEP_NS)
		keep(c);
}

void driver_ledger_look(struct driver *c)
{
	if (hd_clock_now_ns(c->spec->clock) - c->ledger_ns >= LOOK_NS)
		look(c);
}

void driver_ledger_halted(struct driver *c, enum hd_meter_does by)
{
	if (c->halted_by == by)
		return;
	c->halted_by = by;
	for (uint32_t i = 0; i < c->meter.n; i++) {
		struct hd_meter_machine *m = &c->meter.machine[i];
		if (m->there && (m->does == HD_METER_STEPS || m->does == HD_METER_PAUSES))
			hd_meter_does(&c->meter, m, by, now_ms(c));
	}
}

/* A machine that a loss keeps from its step leaves that open. */
void driver_ledger_rest(struct driver *c)
{
	c->halted_by = HD_METER_WAITS;
	for (uint32_t i = 0; i < c->meter.n; i++) {
		struct hd_meter_machine *m = &c->meter.machine[i];
		if (m->there && m->does == HD_METER_STEPS)
			hd_meter_rest(&c->meter, m, now_ms(c));
	}
}

void driver_ledger_commit(struct driver *c, uint64_t step)
{
	struct hd_co_worker_status w[HD_MAX_WORKERS];
	const uint32_t n = c->machine ? hd_coordinator_workers(c->machine, w, HD_MAX_WORKERS) : 0;

	driver_ledger_halted(c, HD_METER_STEPS);
	for (uint32_t i = 0; i < n; i++) {
		struct hd_meter_machine *m = w[i].state == HD_W_MEMBER ? machine_of(c, &w[i]) : NULL;
		const struct hd_pace_worker *p = hd_pace_of(&c->reshape.pace, w[i].worker);
		const struct hd_pace_step *s = p ? hd_pace_at(p, step) : NULL;
		struct hd_meter_share share = { .own = w[i].nvns };
		if (!m)
			continue;
		if (s) {
			share.step_ns = s->step_ns;
			share.wait_ns = s->wait_ns + s->stalled_ns;
			share.redundant_ns = s->redundant_ns;
			share.redone = s->redone;
		}
		hd_meter_commit(&c->meter, m, step, &share, now_ms(c));
		hd_meter_does(&c->meter, m, HD_METER_STEPS, now_ms(c));
	}
	hd_meter_committed(&c->meter, step);
}

void driver_ledger_open(struct driver *c, const uint8_t *bytes, size_t len)
{
	const int64_t now_ns = hd_clock_now_ns(c->spec->clock);
	struct hd_proc_self self;
	int64_t at_ms = 0;

	hd_proc_self(&self);
	hd_meter_clock_begin(&c->meter_clock, self.boot, now_ns);
	c->halted_by = HD_METER_STEPS;
	if (len > HD_METER_CLOCK_BYTES && hd_meter_get(&c->meter, &at_ms, bytes + HD_METER_CLOCK_BYTES,
		len - HD_METER_CLOCK_BYTES))
		hd_meter_clock_follow(&c->meter_clock, bytes, at_ms, self.boot, now_ns);
	else if (len && hd_meter_get(&c->meter, &at_ms, bytes, len))
		hd_meter_clock_follow(&c->meter_clock, NULL, at_ms, self.boot, now_ns);
	else
		return;
	for (uint32_t i = 0; i < c->meter.n; i++) {
		struct hd_meter_machine *m = &c->meter.machine[i];
		if (m->there && is_gone(m))
			hd_meter_go(&c->meter, m, at_ms);
	}
}

void driver_ledger_fill(const struct driver *c, struct hd_live *live)
{
	struct hd_spot_ledger ledger;
	struct hd_ledger_sum sum;
	hd_meter_now(&c->meter, now_ms(c), &ledger);
	if (!hd_ledger_sum(&ledger, &sum))
		return;
	live->paid = (struct hd_paid){ .ms = sum.ms, .nano_usd = sum.nano_usd };
	memcpy(live->paid.part_ms, ledger.ms, sizeof ledger.ms);
}

/* A process that lives on, as a worker of another run or machine, stays in the stored record: the
 * next coordinator goes on paying it from now, not from its start. */
void driver_ledger_close(struct driver *c)
{
	struct hd_meter all;
	struct hd_ledger_sum sum;
	char body[400];

	for (uint32_t i = 0; i < c->meter.n; i++) {
		struct hd_meter_machine *m = &c->meter.machine[i];
		if (m->there && is_gone(m))
			hd_meter_go(&c->meter, m, now_ms(c));
		else if (m->there)
			hd_meter_does(&c->meter, m, HD_METER_WAITS, now_ms(c));
	}
	keep(c);
	all = c->meter;
	for (uint32_t i = 0; i < all.n; i++)
		if (all.machine[i].there)
			hd_meter_go(&all, &all.machine[i], now_ms(c));
	if (!hd_ledger_sum(&all.ledger, &sum))
		return;
	int len = snprintf(body, sizeof body, "\"ms\":%lld,\"nano_usd\":%lld", (long long)sum.ms,
		(long long)sum.nano_usd);
	for (int p = 0; p < HD_NLEDGER; p++)
		len += snprintf(body + len, sizeof body - (size_t)len, ",\"%s_ms\":%lld", hd_ledger_names[p],
			(long long)all.ledger.ms[p]);
	hd_rundir_event(c->spec->dir, "paid", c->end.step, body);
}
