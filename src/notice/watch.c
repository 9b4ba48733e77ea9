#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "notice/source.h"

void hd_notice_watch_init(struct hd_notice_watch *w, const struct hd_notice_source *source,
	const struct hd_notice_settings *settings, int64_t now_ns)
{
	*w = (struct hd_notice_watch){ .source = source, .settings = *settings, .next_ns = now_ns };
	w->off = source->way == HD_NOTICE_BY_SIGNAL;      /* it speaks unasked */
}

bool hd_notice_by_http(const struct hd_notice_watch *w) { return w->source->way == HD_NOTICE_BY_HTTP; }
bool hd_notice_by_file(const struct hd_notice_watch *w) { return w->source->way == HD_NOTICE_BY_FILE; }

int64_t hd_notice_watch_next(const struct hd_notice_watch *w)
{
	return w->off || w->asking ? INT64_MAX : w->next_ns;
}

bool hd_notice_watch_answered(const struct hd_notice_watch *w) { return !w->off && !w->asking && !w->fails; }

void hd_notice_watch_ask(struct hd_notice_watch *w, int64_t now_ns, struct hd_notice_ask *ask)
{
	assert(!w->off && !w->asking);
	*ask = (struct hd_notice_ask){ .method = "GET", .timeout_ns = 2 * HD_NOTICE_S };
	if (w->source->ask)
		w->source->ask(&w->memory, now_ns, ask);
	w->asking = true;
	w->asked_ns = now_ns;
}

static int64_t every_ns(const struct hd_notice_watch *w)
{
	return w->settings.every_ns && hd_notice_by_http(w) ? w->settings.every_ns : w->source->every_ns;
}

/* 1, 2, 4 ... 30 s */
static int64_t pause_ns(uint32_t fails)
{
	int64_t pause = HD_NOTICE_S;

	for (uint32_t i = 1; i < fails && pause < HD_NOTICE_BACKOFF_NS; i++)
		pause *= 2;
	return pause < HD_NOTICE_BACKOFF_NS ? pause : HD_NOTICE_BACKOFF_NS;
}

void hd_notice_watch_failed(struct hd_notice_watch *w, int64_t now_ns, const char *why, struct hd_diag *said)
{
	int64_t pause = 0;

	w->asking = false;
	if (!w->fails++)
		w->failing_ns = now_ns;
	pause = pause_ns(w->fails);
	w->next_ns = now_ns + (pause > every_ns(w) ? pause : every_ns(w));
	if (w->said)
		return;
	w->said = true;
	(void)!hd_fail(said, HD_E_PEERLOST,
		"notices of %s: %s; it is asked again and again, and until it answers nothing is known of "
		"what it announces", w->source->name, why);
}

/* By the service's own clock where it says what that shows. */
static int64_t wall_of(const struct hd_notice_answer *a)
{
	struct hd_http_span date = a->head ? hd_http_find(a->head, "Date") : (struct hd_http_span){ NULL, 0 };
	int64_t wall_ns = 0;

	return date.at && hd_date_read(date.at, date.len, &wall_ns) == HD_OK ? wall_ns : a->wall_ns;
}

static int64_t lead_of(const struct hd_notice_source *s, const struct hd_notice_seen *seen, int64_t wall_ns)
{
	int64_t lead = s->lead_ns;

	if (seen->end == HD_END_LEAD)
		lead = seen->end_ns;
	else if (seen->end == HD_END_WALL)
		lead = seen->end_ns - wall_ns;
	if (s->most_ns && lead > s->most_ns)
		lead = s->lead_ns;
	return lead > 0 ? lead : 0;
}

/* Absolute ends are the same within a second: services round them. */
static bool is_same(const struct hd_notice_seen *a, const struct hd_notice_seen *b)
{
	int64_t apart = a->end_ns - b->end_ns;

	return a->kind == b->kind && a->end == b->end && !strcmp(a->id, b->id) &&
		(a->end != HD_END_WALL || (apart < HD_NOTICE_S && apart > -HD_NOTICE_S));
}

static bool changed(struct hd_notice_watch *w, const struct hd_notice_seen *seen, int64_t now_ns,
	int64_t wall_ns, struct hd_notice *notice)
{
	bool stood = w->standing.kind != HD_NOTICE_NONE;

	if (seen->kind == HD_NOTICE_NONE) {
		if (!stood || w->standing.begun)
			return false;
		*notice = (struct hd_notice){ .kind = HD_NOTICE_WITHDRAWN, .source = w->source->name,
			.ends_ns = INT64_MAX };
		memcpy(notice->text, w->standing.text, sizeof notice->text);
		w->standing = (struct hd_notice_seen){ .kind = HD_NOTICE_NONE };
		return true;
	}
	bool same = stood && is_same(&w->standing, seen);
	/* what begins now may have lost its date: it is still the same */
	bool begins = stood && seen->end == HD_END_LEAD && w->standing.kind == seen->kind && *seen->id &&
		!strcmp(w->standing.id, seen->id);
	if (same || begins) {
		w->standing.begun |= seen->begun;
		return false;
	}
	w->standing = *seen;
	*notice = (struct hd_notice){ .kind = seen->kind, .source = w->source->name,
		.of_process = w->source->way == HD_NOTICE_BY_SIGNAL, .ends_ns = INT64_MAX };
	memcpy(notice->text, seen->text, sizeof notice->text);
	if (seen->kind == HD_NOTICE_PREEMPT)
		notice->ends_ns = now_ns + lead_of(w->source, seen, wall_ns);
	return true;
}

bool hd_notice_watch_answer(struct hd_notice_watch *w, const struct hd_notice_answer *a,
	struct hd_notice *notice, struct hd_diag *said)
{
	struct hd_notice_seen seen = { .kind = HD_NOTICE_NONE };
	struct hd_diag why = { "" };
	int64_t next = w->asked_ns + every_ns(w);

	assert(w->asking && !w->off);
	enum hd_notice_verdict verdict = w->source->answer(&w->memory, a, &seen, &why);
	w->asking = false;
	switch (verdict) {
	case HD_FAILED:
		hd_notice_watch_failed(w, a->now_ns, why.text, said);
		return false;
	case HD_OFF:
		w->off = true;
		(void)!hd_fail(said, HD_E_REFUSED, "notices of %s: %s", w->source->name, why.text);
		return false;
	case HD_MORE:
		w->next_ns = a->now_ns;
		return false;
	case HD_KNOWN:
		break;
	}
	if (w->said)
		(void)!hd_fail(said, HD_OK, "notices of %s: it answers again, after %lld s", w->source->name,
			(long long)((a->now_ns - w->failing_ns) / HD_NOTICE_S));
	w->said = false;
	w->fails = 0;
	w->next_ns = next > a->now_ns ? next : a->now_ns;
	return changed(w, &seen, a->now_ns, wall_of(a), notice);
}

bool hd_notice_watch_signal(struct hd_notice_watch *w, const char *signal, char *const *environment,
	int64_t now_ns, int64_t wall_ns, struct hd_notice *notice)
{
	struct hd_notice_seen seen = { .kind = HD_NOTICE_PREEMPT };

	if (w->source->way != HD_NOTICE_BY_SIGNAL)
		return false;
	hd_notice_put(seen.text, sizeof seen.text, signal, strlen(signal));
	w->source->signal(signal, environment, &seen);
	if (w->settings.grace_ns) {
		seen.end = HD_END_LEAD;
		seen.end_ns = w->settings.grace_ns;
	}
	return changed(w, &seen, now_ns, wall_ns, notice);
}

bool hd_notice_watch_approve(struct hd_notice_watch *w, struct hd_notice_ask *ask)
{
	if (w->off || !w->settings.approve || !w->source->approve || w->standing.kind != HD_NOTICE_PREEMPT ||
		w->standing.begun)
		return false;
	*ask = (struct hd_notice_ask){ .method = "POST", .timeout_ns = 2 * HD_NOTICE_S };
	return w->source->approve(&w->standing, ask);
}
