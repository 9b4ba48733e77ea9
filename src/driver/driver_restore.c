#include "driver/driver_int.h"

#include <stdio.h>

#include "sys/failpoint.h"
#include "checkpoint/ckpt.h"

/* A checkpoint of many GiB takes as many seconds to read: the loop goes on meanwhile, and says what it waits
 * for from so long on, as often. */
#define SAY_NS INT64_C(5000000000)
#define LOOK_NS INT64_C(50000000)         /* at its end */

static void search(void *user)
{
	struct driver_search *s = user;
	struct hd_ckpt_info info;

	(void)HD_FAILPOINT(CO_RESTORE);
	s->step = hd_ckpt_find(s->fs, s->dir, UINT64_MAX, &info, NULL, NULL, NULL) ? HD_NO_STEP : info.step;
	atomic_store(&s->ended, true);
	hd_hub_wake(s->hub);
}

static void found(struct driver *c, uint64_t step)
{
	if (step == HD_NO_STEP && (c->end.commits == 0 || !c->config.record.started || c->spec->step == 0))
		step = c->spec->step;     /* nothing was saved yet: from where the run began */
	if (step != HD_NO_STEP)
		driver_begins_at(c, step);
	driver_feed(c, &(struct hd_co_event){ .kind = HD_CO_IN_RESTORED, .step = step });
}

void driver_restore(struct driver *c)
{
	struct driver_search *s = &c->search;
	struct hd_diag diag = { "" };

	if (s->running) {
		s->again = true;
		return;
	}
	*s = (struct driver_search){ .hub = &c->hub, .fs = c->spec->fs, .dir = c->spec->dir->path,
		.running = true, .began_ns = hd_clock_now_ns(c->spec->clock) };
	s->said_ns = s->began_ns;
	if (hd_thread_start(&s->thread, "search", -1, search, s, &diag))
		driver_fail(c, HD_E_NOMEM, &diag);
}

static void say_now_and_then(struct driver *c, int64_t now)
{
	struct driver_search *s = &c->search;
	char text[120];

	if (now - s->said_ns < SAY_NS)
		return;
	s->said_ns = now;
	snprintf(text, sizeof text, "the newest checkpoint is read and verified: %lld s so far",
		(long long)((now - s->began_ns) / 1000000000));
	driver_note(c, "waits", HD_NOBODY, text);
}

void driver_look_at_restore(struct driver *c)
{
	struct driver_search *s = &c->search;

	if (!s->running)
		return;
	if (atomic_load(&s->ended)) {
		hd_thread_join(&s->thread);
		s->running = false;
		if (s->again)
			driver_restore(c);
		else
			found(c, s->step);
	} else {
		say_now_and_then(c, hd_clock_now_ns(c->spec->clock));
	}
}

/* A run may be stopped while it reads, which nothing ends before its time. */
void driver_restore_finish(struct driver *c)
{
	struct driver_search *s = &c->search;

	while (s->running && !atomic_load(&s->ended)) {
		const int64_t now = hd_clock_now_ns(c->spec->clock);
		say_now_and_then(c, now);
		hd_clock_wait_until(c->spec->clock, now + LOOK_NS);
	}
	hd_thread_join(&s->thread);
}
