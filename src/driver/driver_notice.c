#include "driver/driver_int.h"

#include <stdio.h>
#include <string.h>

#include "base/le.h"

/* Notices that workers heard: shown by status, and a reason to start no worker where the machine goes. The
 * local workers' machine is this one. What was asked to be started meanwhile is given back afterwards as not
 * started, and the machine asks again for what is missing then. A coordinator that takes over knows them too:
 * workers say each once. */

/* after the end that was announced: a machine that is still there stays */
#define HOLD_NS INT64_C(30000000000)
/* after a notice was withdrawn: the worker that had begun to leave comes back by itself */
#define BACK_NS INT64_C(5000000000)

/* ---- stored, 8 bytes of the end by the wall clock first, which goes on over processes: worker 4, holds 1,
 * preempts 1, text */

enum { TEXT_BYTES = sizeof ((struct driver_notice *)0)->text, ONE_BYTES = 14 + TEXT_BYTES };

static void keep(struct driver *c)
{
	const int64_t now_ns = hd_clock_now_ns(c->spec->clock), wall_ns = hd_clock_wall_ns(c->spec->clock);
	uint8_t bytes[DRIVER_NOTICES * ONE_BYTES], *to = bytes;

	for (uint32_t i = 0; i < DRIVER_NOTICES; i++) {
		const struct driver_notice *n = &c->notice[i];
		if (!n->text[0] && !n->holds)
			continue;
		hd_put64(to, (uint64_t)(wall_ns + (n->ends_ns - now_ns)));
		hd_put32(to + 8, n->worker);
		to[12] = n->holds;
		to[13] = n->preempts;
		memcpy(to + 14, n->text, TEXT_BYTES);
		to += ONE_BYTES;
	}
	driver_keep(c, DRIVER_KEEPS_NOTICES, bytes, (size_t)(to - bytes));
}

/* Whoever resumes a run may be on another machine, with other workers. What is stored is of the run before
 * then: a coordinator that takes this one over is to find nothing of it. */
void driver_notice_go_on(struct driver *c)
{
	const int64_t now_ns = hd_clock_now_ns(c->spec->clock), wall_ns = hd_clock_wall_ns(c->spec->clock);
	uint8_t bytes[DRIVER_NOTICES * ONE_BYTES];
	const size_t len = driver_kept(c, DRIVER_KEEPS_NOTICES, bytes, sizeof bytes);

	if (c->spec->target) {
		if (len)
			keep(c);
		return;
	}
	for (size_t i = 0; !(len % ONE_BYTES) && i < len / ONE_BYTES; i++) {
		const uint8_t *from = bytes + i * ONE_BYTES;
		struct driver_notice *n = &c->notice[i];
		*n = (struct driver_notice){ .ends_ns = now_ns + ((int64_t)hd_get64(from) - wall_ns),
			.worker = hd_get32(from + 8), .holds = from[12] == 1, .preempts = from[13] == 1 };
		memcpy(n->text, from + 14, TEXT_BYTES - 1);
	}
}

/* ---- heard */

static struct driver_notice *place_for(struct driver *c, uint32_t worker)
{
	struct driver_notice *oldest = c->notice;

	for (uint32_t i = 0; i < DRIVER_NOTICES; i++) {
		struct driver_notice *n = &c->notice[i];
		if (n->text[0] && n->worker == worker)
			return n;
		if (!n->text[0] || (oldest->text[0] && n->ends_ns < oldest->ends_ns))
			oldest = n;
	}
	return oldest;
}

void driver_noticed(struct driver *c, uint32_t worker, const char *text)
{
	struct driver_notice *n = place_for(c, worker);
	const char *kind = "", *source = "", *what = "", *deadline = "", *of = "";
	const struct hd_json *json;
	struct hd_arena arena;
	int64_t lead_ms = 0;

	hd_arena_init(&arena, 0);
	if (!hd_json_parse(&arena, "a notice", text, strlen(text), &json, NULL) &&
		!hd_json_get_text(json, "notice", &kind, NULL) &&
		!hd_json_get_text(json, "source", &source, NULL) &&
		!hd_json_get_text(json, "text", &what, NULL)) {
		bool preempt = !strcmp(kind, "preempt") &&
			!hd_json_get_i64(json, "lead_ms", 0, INT64_C(31536000000), &lead_ms, NULL) &&
			!hd_json_get_text(json, "deadline", &deadline, NULL) &&
			!hd_json_get_text(json, "of", &of, NULL);
		bool withdrawn = !strcmp(kind, "withdrawn"),
			known = n->text[0] && n->worker == worker && n->preempts;
		if (preempt || withdrawn || !known)             /* a risk takes back no end */
			*n = (struct driver_notice){ .worker = worker,
			.preempts = preempt,
			.holds = (withdrawn || !strcmp(of, "machine")) && !hd_is_remote(worker),
			.ends_ns = hd_clock_now_ns(c->spec->clock) + (withdrawn ? BACK_NS - HOLD_NS :
				lead_ms * HD_NS_PER_MS) };
		if (preempt || (!withdrawn && !known))
			snprintf(n->text, sizeof n->text, "%.24s: %.60s%s%.28s", source, what,
				preempt ? " at " : " (a risk)", deadline);
		if (preempt)
			hd_recorder_note(c->recorder, "preempt", worker, c->end.step);
		if (withdrawn)
			hd_recorder_note(c->recorder, "preempt withdrawn", worker, c->end.step);
		keep(c);
	}
	hd_arena_finish(&arena);
}

const char *driver_notice_of(const struct driver *c, uint32_t worker)
{
	for (uint32_t i = 0; i < DRIVER_NOTICES; i++)
		if (c->notice[i].text[0] && c->notice[i].worker == worker)
			return c->notice[i].text;
	return "";
}

bool driver_is_announced(const struct driver *c, uint32_t worker)
{
	for (uint32_t i = 0; i < DRIVER_NOTICES; i++)
		if (c->notice[i].text[0] && c->notice[i].worker == worker)
			return c->notice[i].preempts;
	return false;
}

bool driver_may_start(struct driver *c)
{
	int64_t now_ns = hd_clock_now_ns(c->spec->clock);
	bool held = false;

	for (uint32_t i = 0; i < DRIVER_NOTICES; i++)
		held |= c->notice[i].holds && now_ns < c->notice[i].ends_ns + HOLD_NS;
	if (held && c->to_start && !c->held)
		driver_note(c, "held", HD_NOBODY,
		"this machine will be taken away: no worker is started on it");
	if (!held && c->held && c->machine) {
		uint32_t n = c->to_start;
		c->to_start = 0;
		if (n)
			driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_UNSPAWNED, .n = n });
	}
	c->held = held && (c->held || c->to_start);
	return !held;
}
