#include "worker/elastic_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/signal.h"
#include "spot/lead.h"

/* Notices that the machine of this worker will be taken away: each becomes a NOTE, and a preemption that is
 * near a DRAIN, as a user's `stop --worker` would be: the worker ends its step, hands over and leaves. One
 * that leaves no time to end the step (spot/lead.h, LOSE) ends it at once. I/O thread. */

enum { BODY = 600 };

/* The coordinator keeps it beside the worker (driver/driver_notice.c), and writes it down. */
static void say_notice(struct hd_elastic *e, const struct hd_notice_news *news)
{
	char room[BODY];
	struct hd_json_writer w;
	struct hd_text body;

	hd_text_fixed(&body, room, sizeof room);
	hd_json_writer_init(&w, &body);
	hd_json_open_object(&w, NULL);
	if (atomic_load(&e->self) != HD_NOBODY)
		hd_json_put_i64(&w, "worker", (int64_t)atomic_load(&e->self));
	hd_notice_news_put(news, &w);
	hd_json_close(&w);
	if (!body.full)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_NOTE, .name = HD_NOTE_NOTICE,
			.text = room });
}

static void fetch(struct hd_elastic *e)
{
	struct hd_notice_news news;

	while (hd_notice_agent_fetch(e->spec->notices, &news)) {
		if (news.notice.kind != HD_NOTICE_NONE) {
			say_notice(e, &news);
			snprintf(e->notice_why, sizeof e->notice_why, "%s: %s", news.notice.source,
				news.notice.text);
			continue;
		}
		fprintf(stderr, "%s\n", news.line);
		hd_elastic_note(e, "notices", news.line);
	}
}

/* What is left of the step, if it takes as long as the last one; one that takes longer is as good as over. */
static int64_t step_left_ns(const struct hd_elastic *e, int64_t now_ns)
{
	const int64_t left_ns = e->step_from_ns + e->step_took_ns - now_ns;

	return e->step_from_ns && e->step_took_ns && left_ns > 0 ? left_ns : 0;
}

/* Where others could go on. What has to move before it may leave is not known here; that another holds its
 * state is for the coordinator to see. */
static bool gives_up(const struct hd_elastic *e, int64_t left_ns)
{
	const int64_t step_ns = step_left_ns(e, hd_clock_now_ns(e->spec->clock));
	const struct hd_lead_case lead = { .all = e->opened.nmembers <= 1, .left_ms = left_ns / HD_NS_PER_MS,
		.step_ms = (step_ns + HD_NS_PER_MS - 1) / HD_NS_PER_MS };

	return hd_lead_answer(&lead) == HD_LEAD_LOSE;
}

/* As if the machine were gone already: the others do its part while it would still have been computing. */
static void give_up(struct hd_elastic *e, int64_t left_ns)
{
	snprintf(e->exit_text, sizeof e->exit_text,
		"%s in %lld ms, before the end of its step: it counts as lost now", e->notice_why,
		(long long)(left_ns > 0 ? left_ns / HD_NS_PER_MS : 0));
	hd_elastic_note(e, "notices", e->exit_text);
	e->given_up = true;               /* it leaves at the next turn, when the note is on its way */
	hd_hub_wake(&e->hub);
}

void hd_elastic_look_at_notices(struct hd_elastic *e)
{
	int64_t left_ns = 0;

	if (!e->spec->notices)
		return;
	fetch(e);
	e->leaving |= e->given_up;
	if (e->drained || !hd_notice_agent_leaves(e->spec->notices, &left_ns))
		return;
	e->drained = e->noticed = true;
	if (gives_up(e, left_ns)) {
		give_up(e, left_ns);
		return;
	}
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_DRAIN, .code = 0,
		.text = e->notice_why, .left_ns = left_ns > 0 ? left_ns : 1 });
}

/* Whatever sends signals here may send the last one soon. */
static void notice_signal(struct hd_elastic *e)
{
	if (!hd_signal_number())
		return;
	hd_notice_agent_signal(e->spec->notices, hd_signal_number());
	if (e->spec->notices)
		fetch(e);
}

/* Also of a worker that leaves for a notice: it may have less time now. */
void hd_elastic_look_at_stop(struct hd_elastic *e)
{
	enum hd_err stop = e->spec->stop ? e->spec->stop(e->spec->user) : HD_OK;
	int64_t left_ns = 0;

	if (!stop || e->stopped)
		return;
	e->drained = e->stopped = true;
	notice_signal(e);
	if (hd_notice_agent_left(e->spec->notices, &left_ns) && left_ns <= 0)
		left_ns = 1;
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_DRAIN,
		.code = (uint32_t)hd_err_exit(stop), .text = hd_err_text(stop), .left_ns = left_ns });
}

/* It left for a notice that is not true any more, and was not asked to leave beside it: it comes back as a
 * new worker. */
bool hd_elastic_comes_back(const struct hd_elastic *e)
{
	return e->noticed && !e->stopped && !e->exit_code && e->exit_text[0] &&
		!hd_notice_agent_leaves(e->spec->notices, NULL);
}
