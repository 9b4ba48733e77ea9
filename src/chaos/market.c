#include "chaos/market.h"

#include <stdio.h>
#include <string.h>

enum { METRICS_BYTES = 1 << 30 };

/* ---- play */

static enum hd_err do_due(struct hd_market *m, int64_t now_ns, struct hd_diag *diag)
{
	const struct hd_harness *t = m->harness;
	enum hd_err err = HD_OK;

	while (!err && m->next < m->script->n) {
		const struct hd_metadata_event *e = &m->script->at[m->next];
		if (m->began_ns + e->at_ns > now_ns || (int64_t)hd_harness_step(t) < e->step ||
			(e->members && (!t->heard || t->live.members != e->members)) ||
			(e->starved && t->run.host))
			break;
		m->next++;
		err = hd_cloud_do(&m->cloud, e, diag);
	}
	return err;
}

/* When a machine's worker is a member for the first time, its boot is over. */
static void look_at_boots(struct hd_market *m, int64_t now_ns)
{
	const struct hd_status *live = &m->harness->live;

	for (size_t i = 0; i < HD_MACHINES_MOST; i++) {
		struct hd_cloud_machine *machine = &m->cloud.machine[i];
		if (!machine->name[0] || machine->booted || !machine->proc.host)
			continue;
		for (uint32_t k = 0; k < live->nworkers; k++)
			machine->booted |= live->worker[k].member && live->worker[k].pid == machine->proc.pid;
		if (machine->booted) {
			m->boots++;
			m->boot_ms += (uint64_t)((now_ns - machine->began_ns) / HD_NS_PER_MS);
		}
	}
}

/* As many workers are wanted as there are machines: a start waits for no more, and a joiner for nothing.
 * Fewer
 * only once the run has noticed: else it would let one go that is there. */
static void want(struct hd_market *m)
{
	const struct hd_status *live = &m->harness->live;
	const int64_t n = m->cloud.n ? m->cloud.n : 1;
	char ask[64];

	if (!m->harness->heard || live->target == n || (n < live->target && live->members > n))
		return;
	(void)snprintf(ask, sizeof ask, "{\"do\":\"scale\",\"workers\":%lld}", (long long)n);
	(void)!hd_harness_ask(m->harness, ask);           /* else at the next look */
}

static enum hd_err look(struct hd_market *m, struct hd_diag *diag)
{
	struct hd_harness *t = m->harness;

	t->holds = m->cloud.n == 0;
	if (t->holds)
		t->still_ns = 0;          /* no machine, no step */
	enum hd_err err = hd_harness_look(t, diag);
	if (!err)
		err = hd_cloud_look(&m->cloud, t->heard, diag);
	if (!err && t->heard)
		look_at_boots(m, hd_clock_now_ns(t->clock));
	if (!err)
		want(m);
	return err;
}

static int64_t due_ns(const struct hd_market *m)
{
	return m->next < m->script->n ? m->began_ns + m->script->at[m->next].at_ns : INT64_MAX;
}

/* Asked again and again: a coordinator that has just begun may not answer yet. The machines are this
 * process's
 * children, so only it knows that they have ended. */
static enum hd_err stop(struct hd_market *m, struct hd_diag *diag)
{
	struct hd_harness *t = m->harness;
	enum hd_err err = HD_OK;

	t->stopping = true;
	while (!err && (t->run.host || t->heard)) {
		(void)!hd_harness_ask(t, "{\"do\":\"stop\"}");
		hd_clock_wait_until(t->clock, hd_clock_now_ns(t->clock) + HD_HARNESS_LOOK_NS);
		err = hd_harness_look(t, diag);
		err = err ? err : hd_cloud_look(&m->cloud, false, diag);
	}
	return err ? err : hd_harness_take_end(t, diag);
}

static bool any_machine(const struct hd_market *m)
{
	for (size_t i = 0; i < HD_MACHINES_MOST; i++)
		if (m->cloud.machine[i].name[0] && m->cloud.machine[i].proc.host)
			return true;
	return false;
}

/* A job that ended by its steps: its last checkpoint is whole before its coordinator has written what was
 * paid, and that it ended. Its processes leave by themselves; after the limit of a hang they are killed. */
static enum hd_err leave(struct hd_market *m, struct hd_diag *diag)
{
	struct hd_harness *t = m->harness;
	const int64_t until_ns = hd_clock_now_ns(t->clock) + HD_HARNESS_STILL_NS;
	enum hd_err err = HD_OK;

	while (!err && (t->run.host || t->heard || any_machine(m)) &&
		hd_clock_now_ns(t->clock) < until_ns) {
		hd_clock_wait_until(t->clock, hd_clock_now_ns(t->clock) + HD_HARNESS_LOOK_NS);
		err = hd_harness_look(t, diag);
		err = err ? err : hd_cloud_look(&m->cloud, false, diag);
	}
	return err;
}

/* Machines that are there from the begin: what waits for a step, for workers or for an end is behind it. */
static uint32_t first_machines(const struct hd_market *m)
{
	uint32_t n = 0;

	for (size_t i = 0; i < m->script->n && m->script->at[i].at_ns == m->script->at[0].at_ns; i++) {
		const struct hd_metadata_event *e = &m->script->at[i];
		if (e->step || e->members || e->starved)
			break;
		n += e->what == HD_METADATA_ADD;
	}
	return n ? n : 1;
}

enum hd_err hd_market_play(struct hd_market *m, struct hd_diag *diag)
{
	struct hd_harness *t = m->harness;
	enum hd_err err = hd_harness_start(t, first_machines(m), m->cloud.spec.devices, diag);

	t->may_starve = true;
	m->began_ns = hd_clock_now_ns(t->clock);
	while (!err && m->next < m->script->n && !hd_harness_ended(t)) {
		const int64_t now_ns = hd_clock_now_ns(t->clock), look_ns = now_ns + HD_HARNESS_LOOK_NS;
		err = do_due(m, now_ns, diag);
		if (!err)
			err = hd_metadata_poll(m->cloud.spec.services, look_ns < due_ns(m) ? look_ns :
				due_ns(m), diag);
		if (!err)
			err = look(m, diag);
	}
	m->played_ns = hd_clock_now_ns(t->clock) - m->began_ns;
	if (!err)
		err = hd_harness_ended(t) ? leave(m, diag) : stop(m, diag);
	hd_cloud_finish(&m->cloud);
	return err;
}

/* ---- measure */

struct metrics_line { int64_t step, workers, membership, redone; double t; };

static bool read_line(struct hd_arena *arena, const char *text, size_t len, struct metrics_line *line)
{
	const struct hd_json *json;

	return !hd_json_parse(arena, "line", text, len, &json, NULL) &&
		!hd_json_get_i64(json, "step", 0, INT64_MAX, &line->step, NULL) &&
		!hd_json_get_i64(json, "workers", 0, INT32_MAX, &line->workers, NULL) &&
		!hd_json_get_i64(json, "membership", 0, INT64_MAX, &line->membership, NULL) &&
		!hd_json_get_i64(json, "redone_vn", 0, INT64_MAX, &line->redone, NULL) &&
		!hd_json_get_f64(json, "t", &line->t, NULL);
}

enum hd_err hd_market_measure(const struct hd_market *m, uint32_t per, struct hd_spot_measured *measured,
	struct hd_diag *diag)
{
	const struct hd_harness *t = m->harness;
	struct metrics_line last = { .step = -2 }, line;
	struct hd_arena arena, lines;
	char path[HD_HARNESS_PATH + 20];
	uint8_t *bytes = NULL;
	size_t len = 0;

	*measured = (struct hd_spot_measured){ 0 };
	hd_arena_init(&arena, 0);
	hd_arena_init(&lines, 0);
	(void)snprintf(path, sizeof path, "%s/metrics.ndjson", t->dir);
	enum hd_err err = hd_file_read_all(t->fs, path, &arena, METRICS_BYTES, &bytes, &len, diag);
	const char *at = (const char *)bytes, *end = err ? at : at + len;
	while (!err && at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const size_t n = (size_t)((nl ? nl : end) - at);
		hd_arena_reset(&lines);
		if (read_line(&lines, at, n, &line)) {
			if (line.step == last.step + 1 && line.membership == last.membership &&
				line.workers == last.workers && !line.redone && line.t >= last.t)
				hd_spot_measured_step(measured, (uint32_t)line.workers / per,
					(uint64_t)((line.t - last.t) * 1e6));
			last = line;
		}
		at += n + 1;
	}
	hd_arena_finish(&lines);
	hd_arena_finish(&arena);
	return err;
}
