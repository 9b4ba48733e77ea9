#include "worker/elastic_int.h"

#include <stdio.h>

#include "base/le.h"
#include "data/fair_text.h"
#include "data/ranges.h"

/* A set that is read by ranges: its windows and decisions for the coordinator, and the depth that this
 * orders. I/O thread. */

static void say_window(struct hd_elastic *e, struct hd_dataset *set, double seconds)
{
	char room[HD_FAIR_TEXT];
	struct hd_fair_part part;
	struct hd_text text;

	set->reading->window(set, seconds, hd_run_spec(e->run)->ndevices, &part);
	hd_text_fixed(&text, room, sizeof room);
	hd_fair_put(&part, &text);
	if (!text.full)
		hd_elastic_note_json(e, HD_NOTE_READING, room);
}

void hd_elastic_look_at_reading(struct hd_elastic *e)
{
	struct hd_dataset *set = e->task->data;
	const int64_t now_ns = hd_clock_now_ns(e->spec->clock);
	const int64_t window_ns = hd_job_int(e->task->job, HD_JOB_DATA_WINDOW);
	struct hd_elastic_reading *r = &e->reading;
	char line[HD_READING_TEXT];

	if (!set->reading || atomic_load(&e->self) == HD_NOBODY)
		return;
	if (set->reading->waits(set, line))
		hd_elastic_note(e, HD_NOTE_WAITS, line);
	if (now_ns < r->next_ns)
		return;
	while (set->reading->said(set, line)) {
		char text[HD_READING_TEXT + 24];
		(void)snprintf(text, sizeof text, "worker %u: %s", atomic_load(&e->self), line);
		hd_elastic_note(e, HD_NOTE_TUNED, text);
	}
	if (r->next_ns)
		say_window(e, set, (double)(now_ns - r->next_ns + window_ns) * 1e-9);
	r->next_ns = now_ns + window_ns;
	if (r->depth && now_ns - r->ordered_ns > HD_ELASTIC_KEEPS * window_ns) {
		r->depth = 0;
		set->reading->keep_depth(set, 0);
	}
}

void hd_elastic_read_ordered(struct hd_elastic *e, const struct hd_message *m)
{
	struct hd_dataset *set = e->task->data;

	if (m->worker != HD_COORDINATOR_LINK || m->len != 4 || !set->reading)
		return;
	const uint32_t depth = hd_get32(m->bytes);
	if (depth > HD_RANGES_DEPTH)
		return;
	if (depth != e->reading.depth)
		set->reading->keep_depth(set, depth);
	e->reading.depth = depth;
	e->reading.ordered_ns = hd_clock_now_ns(e->spec->clock);
}
