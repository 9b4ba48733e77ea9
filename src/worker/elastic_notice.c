#include "worker/elastic_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/signal.h"

/* Notices that the machine of this worker will be taken away: each becomes a NOTE, and a preemption that is
 * near a DRAIN, as a user's `stop --worker` would be: the worker ends its step, hands over and leaves. I/O
 * thread. */

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

void hd_elastic_look_at_notices(struct hd_elastic *e)
{
	if (!e->spec->notices)
		return;
	fetch(e);
	if (e->drained || !hd_notice_agent_leaves(e->spec->notices))
		return;
	e->drained = e->noticed = true;
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_DRAIN, .code = 0,
		.text = e->notice_why });
}

/* Whatever sends signals here may send the last one soon. */
void hd_elastic_notice_signal(struct hd_elastic *e)
{
	if (!hd_signal_number())
		return;
	hd_notice_agent_signal(e->spec->notices, hd_signal_number());
	if (e->spec->notices)
		fetch(e);
}

/* It left for a notice that is not true any more: it comes back as a new worker. */
bool hd_elastic_comes_back(const struct hd_elastic *e)
{
	return e->noticed && !e->exit_code && e->exit_text[0] && !hd_notice_agent_leaves(e->spec->notices);
}
