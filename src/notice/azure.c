/* Scheduled events of Azure. The document has all events of all machines of a placement group, so the first
 * request asks for the own name; only events whose Resources have it count, and of several the first to end.
 *
 * Preempt, Terminate, Reboot and Redeploy take the machine away; a Freeze pauses it: from FREEZE_S on that is
 * as good as taken away, a shorter one is nothing, one of unknown length a risk. An event that has Started
 * and is gone later has happened, unless it was a Freeze, after which the machine goes on. NotBefore may be
 * empty of an event that has started. The first call may take two minutes.
 *
 * Approval (POST of StartRequests with the EventId) lets an event begin before its time. */
#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "notice/source.h"

enum { NAME, EVENTS };                    /* `what` */
enum { FREEZE_S = 10 };
#define VERSION "api-version=2020-07-01"

static void ask(const struct hd_notice_memory *m, int64_t now_ns, struct hd_notice_ask *out)
{
	(void)now_ns;
	snprintf(out->lines, sizeof out->lines, "Metadata: true\r\n");
	out->what = *m->self ? EVENTS : NAME;
	snprintf(out->target, sizeof out->target, "%s", *m->self ? "/metadata/scheduledevents?" VERSION :
		"/metadata/instance/compute/name?" VERSION "&format=text");
	out->timeout_ns = (*m->self ? 130 : 2) * HD_NOTICE_S;
}

static bool approve(const struct hd_notice_seen *standing, struct hd_notice_ask *out)
{
	if (!*standing->id)
		return false;
	snprintf(out->target, sizeof out->target, "/metadata/scheduledevents?" VERSION);
	snprintf(out->lines, sizeof out->lines, "Metadata: true\r\nContent-Type: application/json\r\n");
	snprintf(out->body, sizeof out->body, "{\"StartRequests\":[{\"EventId\":\"%s\"}]}", standing->id);
	return true;
}

static bool concerns(const struct hd_json *event, const char *self)
{
	const struct hd_json *list = hd_json_find(event, "Resources");
	const char *name = "";

	for (size_t i = 0; list && hd_json_kind(list) == HD_JSON_ARRAY && i < hd_json_count(list); i++)
		if (hd_json_as_text(hd_json_item(list, i), &name, NULL) == HD_OK && !strcmp(name, self))
			return true;
	return false;
}

/* kind NONE: it takes nothing away. A type that is not known is none of ours to judge: a risk. */
static void read_event(const struct hd_json *event, struct hd_notice_seen *seen)
{
	static const char *const taken[] = { "Preempt", "Terminate", "Reboot", "Redeploy" };
	const char *type = hd_notice_member(event, "EventType"), *at = hd_notice_member(event, "NotBefore"),
		*id = hd_notice_member(event, "EventId");
	bool freeze = !strcmp(type, "Freeze"), started = !strcmp(hd_notice_member(event, "EventStatus"),
		"Started");
	int64_t duration_s = -1;

	*seen = (struct hd_notice_seen){ .kind = HD_NOTICE_RISK };
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (!strcmp(type, taken[i]))
			seen->kind = HD_NOTICE_PREEMPT;
	if (freeze && hd_json_find(event, "DurationInSeconds") && hd_json_get_i64(event, "DurationInSeconds",
		0,
		INT64_MAX, &duration_s, NULL) == HD_OK)
		seen->kind = duration_s < FREEZE_S ? HD_NOTICE_NONE : HD_NOTICE_PREEMPT;
	seen->begun = started && !freeze;
	hd_notice_put(seen->id, sizeof seen->id, id, strlen(id));
	hd_notice_put(seen->text, sizeof seen->text, type, strlen(type));
	if (hd_date_read(at, strlen(at), &seen->end_ns) == HD_OK)
		seen->end = HD_END_WALL;
	else if (started)
		seen->end = HD_END_LEAD;          /* at once */
}

/* Is a before b: one that takes the machine away, then what has begun, what may come at any time, the earlier
 * one. */
static bool is_before(const struct hd_notice_seen *a, const struct hd_notice_seen *b)
{
	static const int rank[] = { [HD_END_LEAD] = 0, [HD_END_USUAL] = 1, [HD_END_WALL] = 2 };

	if (a->kind != b->kind)
		return b->kind == HD_NOTICE_NONE || (a->kind == HD_NOTICE_PREEMPT &&
		b->kind == HD_NOTICE_RISK);
	if (a->end != b->end)
		return rank[a->end] < rank[b->end];
	return a->end == HD_END_WALL && a->end_ns < b->end_ns;
}

static enum hd_notice_verdict read(const char *self, const struct hd_notice_answer *a, struct hd_arena *arena,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	const struct hd_json *object, *events;
	struct hd_notice_seen first = { .kind = HD_NOTICE_NONE }, one;

	if (!hd_notice_object(arena, a, &object, diag) ||
		hd_json_get(object, "Events", HD_JSON_ARRAY, &events, diag))
		return HD_FAILED;
	for (size_t i = 0; i < hd_json_count(events); i++) {
		const struct hd_json *event = hd_json_item(events, i);
		if (hd_json_as(event, HD_JSON_OBJECT, diag))
			return HD_FAILED;
		if (!concerns(event, self))
			continue;
		read_event(event, &one);
		if (one.kind != HD_NOTICE_NONE && is_before(&one, &first))
			first = one;
	}
	*seen = first;
	return HD_KNOWN;
}

static enum hd_notice_verdict take_name(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_diag *diag)
{
	if (a->status != 200)
		return hd_notice_strange(a, diag);
	hd_notice_put(m->self, sizeof m->self, a->body, a->len);
	if (*m->self && strlen(m->self) == a->len)
		return HD_MORE;
	m->self[0] = '\0';
	(void)!hd_fail(diag, HD_E_PROTOCOL, "what it calls the name of this machine is none");
	return HD_FAILED;
}

static enum hd_notice_verdict answer(struct hd_notice_memory *m, const struct hd_notice_answer *a,
	struct hd_notice_seen *seen, struct hd_diag *diag)
{
	struct hd_arena arena;

	if (a->what == NAME)
		return take_name(m, a, diag);
	if (a->status != 200)
		return hd_notice_strange(a, diag);
	hd_arena_init(&arena, 4 << 20);
	enum hd_notice_verdict verdict = read(m->self, a, &arena, seen, diag);
	hd_arena_finish(&arena);
	return verdict;
}

const struct hd_notice_source hd_notice_of_azure = {
	.name = "azure", .cloud = "azure", .about = "scheduled events of an Azure machine",
	.way = HD_NOTICE_BY_HTTP, .base = "http://169.254.169.254", .every_ns = HD_NOTICE_S,
	.lead_ns = 30 * HD_NOTICE_S, .ask = ask, .answer = answer, .approve = approve,
};
