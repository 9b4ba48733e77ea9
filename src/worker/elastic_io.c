#include "worker/elastic_int.h"

#include <stdio.h>
#include <string.h>

#include "base/timeouts.h"
#include "sys/failpoint.h"

/* The I/O thread: what comes from outside becomes events of the member machine. */

/* messages are flushed before this process leaves, for at most so long */
#define HD_LAST_FLUSH_NS INT64_C(500000000)

static uint32_t worker_of(uint32_t link) { return link == HD_COORDINATOR_LINK ? HD_COORDINATOR : link; }

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct hd_elastic *e = self;
	struct hd_diag diag = { "" };

	hd_elastic_record_link(e, peer->worker, true);
	/* first the channel of the present epoch: what the machine does now may open that of the next */
	if (peer->worker != HD_COORDINATOR_LINK && hd_relay_up(&e->relay, peer->worker, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_UP, .worker = worker_of(peer->worker) });
	if (peer->worker != HD_COORDINATOR_LINK && !e->leaving)
		hd_elastic_ask(e);
}

/* Where nothing more is known, the text is that of the reason. */
static void say_lost(uint32_t worker, const char *why, const char *text)
{
	bool more = *text && strcmp(text, why) != 0;

	if (worker == HD_COORDINATOR_LINK)
		fprintf(stderr, "link to the coordinator: %s%s%s\n", why, more ? ": " : "", more ? text : "");
	else
		fprintf(stderr, "link to worker %u: %s%s%s\n", worker, why, more ? ": " : "",
			more ? text : "");
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct hd_elastic *e = self;

	hd_elastic_record_link(e, worker, false);
	if (worker == HD_COORDINATOR_LINK)
		hd_later_drop(&e->later);         /* the machine says it again when the link is up */
	if (worker == HD_COORDINATOR_LINK && e->readmit != HD_NOBODY) {
		hd_hub_call_me(&e->hub, e->readmit);
		atomic_store(&e->self, e->readmit);
		e->readmit = HD_NOBODY;
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_LOST, .worker = worker_of(worker),
			.why = HD_CLOSED, .text = "" });
		/* at once, not at the next tick: T/4 is a good part of a start */
		hd_elastic_call(e);
		return;
	}
	if (hd_close_blame(why) != HD_BLAME_NONE)
		say_lost(worker, hd_close_text(why), text ? text : "");
	hd_elastic_peer_lost(e, worker);
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_LOST, .worker = worker_of(worker),
		.why = HD_CLOSED, .text = text ? text : "" });
}

static void on_suspect(void *self, uint32_t worker, int64_t silent_ms)
{
	const struct hd_elastic *e = self;

	hd_recorder_mark(e->recorder, HD_RECORDER_CONTROL, silent_ms ? HD_RECORDED_SILENT :
		HD_RECORDED_HEARD, worker_of(worker), (uint64_t)silent_ms);
	hd_elastic_feed(self, &(struct hd_member_event){ .kind = HD_IN_LOST, .worker = worker_of(worker),
		.why = silent_ms ? HD_SILENT : HD_HEARD, .text = "" });
}

/* Failpoints of messages, by their kind. */
static const uint8_t came[HD_MSG_NKINDS] = { [HD_MSG_SEAL] = 1 + HD_FP_SEAL_HERE,
	[HD_MSG_VIEW] = 1 + HD_FP_CHANGE_VIEW };
/* What a transfer is to the member machine, and its failpoint, by its kind. */
static const struct { enum hd_member_event_kind event; enum hd_failpoint here; } of_kind[HD_XFER_KINDS] = {
	[HD_XFER_PARTIAL]    = { HD_IN_ROOT,   HD_FP_EXCHANGE_ROOT_HERE },
	[HD_XFER_SUM]        = { HD_IN_SUM,    HD_FP_EXCHANGE_SUM_HERE },
	[HD_XFER_NORM]       = { HD_IN_NORM,   HD_FP_NORM_HERE },
	[HD_XFER_PARAMETERS] = { HD_IN_PARM,   HD_FP_PARAMS_HERE },
	[HD_XFER_DIGEST]     = { HD_IN_PARM,   HD_FP_PARAMS_HERE },
	[HD_XFER_RATIO]      = { HD_IN_RATIO,  HD_FP_RATIO_HERE },
	[HD_XFER_METRICS]    = { HD_IN_LEAVES, HD_FP_EXCHANGE_LEAVES_HERE },
	[HD_XFER_TABLE]      = { HD_IN_TABLE,  HD_FP_EXCHANGE_LEAVES_HERE },
};

static void on_message(void *self, const struct hd_message *m)
{
	struct hd_elastic *e = self;
	struct hd_diag diag = { "" };
	struct hd_msg msg;

	if (m->id == HD_ASK_SLOTS_ID) {
		hd_elastic_slots_asked(e, m->worker, m->bytes, m->len);
		return;
	}
	if (m->id == HD_RECORD_ID) {
		hd_elastic_record_asked(e, m);
		return;
	}
	if (m->id == HD_READ_ID) {
		hd_elastic_read_ordered(e, m);
		return;
	}
	if (m->id == HD_ASK_ID) {
		if (m->len)
			hd_elastic_asked(e, m->worker, m->bytes, m->len);
		else
			hd_elastic_invited(e, m->worker);
		return;
	}
	hd_arena_reset(&e->messages);
	enum hd_err err = hd_msg_decode(&msg, m->id, m->bytes, m->len, &e->messages, &diag);
	if (err == HD_E_PROTOCOL) {
		fprintf(stderr, "worker %u: %s\n", m->worker, diag.text);
		hd_hub_drop(&e->hub, m->worker, HD_CLOSE_FRAME, diag.text);
	} else if (err) {
		hd_elastic_fail(e, err, &diag);
	} else {
		if (came[msg.kind])
			(void)HD_FAILPOINT_AT((enum hd_failpoint)(came[msg.kind] - 1));
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_MESSAGE,
			.worker = worker_of(m->worker), .epoch = m->epoch,
			.step = m->step, .msg = &msg });
	}
}

/* Its sums of squares are taken now, or by the compute thread when it is free. The sum itself goes on along
 * its line at once. */
static void sum_here(struct hd_elastic *e, const struct hd_relay_news *news, const struct hd_arrival *a)
{
	const struct hd_member_event sum = { .kind = HD_IN_SUM, .epoch = hd_member_epoch(e->member),
		.worker = a->worker, .step = a->step, .bucket = news->bucket };
	struct hd_diag diag = { "" };
	bool squared = hd_elastic_background_reduce(e, &(struct hd_dist_fold){ .bucket = news->bucket });

	if (!squared && hd_commands_give(&e->commands, &(struct hd_command){ .kind = HD_COMMAND_ARRIVED,
		.step = a->step, .bucket = news->bucket }, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
	hd_elastic_feed(e, &sum);
	if (squared)
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_SQUARED, .step = a->step,
			.bucket = news->bucket });
}

/* What runs ahead on the compute thread may read them; the machine hears of it beside that. */
static void parm_here(struct hd_elastic *e, const struct hd_relay_news *news, const struct hd_arrival *a)
{
	struct hd_diag diag = { "" };

	if (hd_dist_wants(e->worker) & HD_DIST_WANTS_PARAMETERS && hd_commands_give(&e->commands,
		&(struct hd_command){ .kind = HD_COMMAND_READABLE, .step = a->step, .bucket = news->bucket },
		&diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

static void on_arrived(void *self, const struct hd_arrival *a)
{
	struct hd_elastic *e = self;
	struct hd_relay_news news;
	struct hd_diag diag = { "" };

	hd_elastic_record_arrived(e, a);
	if (a->kind == HD_KIND_BULK) {
		if (!hd_elastic_slots_here(e, a))
			hd_elastic_chunk_here(e, a);
		return;
	}
	enum hd_err err = hd_relay_arrived(&e->relay, a, &news, &diag);
	if (err == HD_E_PROTOCOL)
		hd_hub_drop(&e->hub, a->worker, HD_CLOSE_STREAM, diag.text);
	else if (err)
		hd_elastic_fail(e, err, &diag);
	if (err)
		return;
	if (news.kind == HD_XFER_MOMENTS)
		(void)HD_FAILPOINT_KEY(SYNC_HERE, atomic_load(&e->self));
	if (hd_xfer_is_mail(news.kind) ||
		(news.kind == HD_XFER_METRICS && !news.passes) ||
		(news.kind == HD_XFER_PARTIAL && !news.partial_done))
		return;
	(void)HD_FAILPOINT_AT(of_kind[news.kind].here);
	enum hd_member_event_kind what = of_kind[news.kind].event;
	if (what == HD_IN_SUM)
		sum_here(e, &news, a);
	if (what == HD_IN_SUM || (what == HD_IN_PARM && !news.parm_done))
		return;
	if (what == HD_IN_PARM)
		parm_here(e, &news, a);
	struct hd_member_event event = { .kind = what, .epoch = hd_member_epoch(e->member),
		.worker = a->worker, .step = a->step, .ordinal = news.ordinal, .bucket = news.bucket };
	if (what != HD_IN_LEAVES)
		hd_elastic_feed(e, &event);
	for (event.pass = 0; what == HD_IN_LEAVES && event.pass < HD_MAX_PASSES; event.pass++)
		if (news.passes >> event.pass & 1)
			hd_elastic_feed(e, &event);
}

static void on_sent(void *self, const struct hd_sent *sent)
{
	struct hd_elastic *e = self;

	hd_elastic_record_sent(e, sent);
	if (!hd_relay_sent(&e->relay, sent) && !hd_elastic_slots_sent(e, sent))
		hd_elastic_chunk_sent(e, sent);
}

/* The coordinator will say what this worker is. */
static void on_stale(void *self, uint32_t worker, uint32_t epoch)
{
	(void)epoch;
	hd_elastic_slots_again(self, worker);
}

static void on_ahead(void *self, uint32_t worker, uint32_t epoch)
{
	(void)self;
	(void)worker;
	(void)epoch;                      /* the machine asks for what is missing each T */
}

static void on_probed(void *self, const struct hd_probe *probe) { hd_elastic_record_probed(self, probe); }

const struct hd_wire_events hd_elastic_events = { .up = on_up, .lost = on_lost, .suspect = on_suspect,
	.message = on_message, .arrived = on_arrived,
	.sent = on_sent, .stale = on_stale, .ahead = on_ahead, .probed = on_probed };

static void tick(struct hd_elastic *e)
{
	hd_failpoint_look();
	hd_elastic_ask(e);
	hd_elastic_slots_ask(e);
	hd_elastic_send_state_standing(e);
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_TICK,
		.done = atomic_load(&e->commands.progress) + hd_worker_pulse(e->worker),
		.longest_ns = atomic_load(&e->longest_ns), .busy = atomic_load(&e->moving) ||
			(atomic_load(&e->ahead) && hd_commands_wait(&e->commands)) });
}

/* A few turns of the hub, as long as something is sent. */
static void say_last_words(struct hd_elastic *e)
{
	int64_t until = hd_clock_now_ns(e->spec->clock) + HD_LAST_FLUSH_NS;
	struct hd_hub_stats before, after;
	struct hd_loop_event other[4];
	size_t n;

	hd_elastic_say_refused(e);
	hd_elastic_say_later(e);
	do {
		hd_hub_stats(&e->hub, &before);
		if (hd_hub_poll(&e->hub, hd_clock_now_ns(e->spec->clock) + HD_LAST_FLUSH_NS / 20, other, 4,
			&n,
			NULL))
			return;
		hd_hub_stats(&e->hub, &after);
	} while (after.bytes_sent != before.bytes_sent && hd_clock_now_ns(e->spec->clock) < until);
}

static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

void hd_elastic_io(void *elastic)
{
	struct hd_elastic *e = elastic;
	const int64_t beat = HD_TIMEOUT_NS(HEARTBEAT, e->detect_ns);
	int64_t next = hd_clock_now_ns(e->spec->clock), next_beat = next;
	struct hd_loop_event other[4];
	struct hd_diag diag = { "" };
	size_t n;

	hd_lock_take(&e->turn);
	hd_elastic_call(e);
	while (!e->leaving) {
		const int64_t later = hd_later_due_ns(&e->later, hd_clock_now_ns(e->spec->clock));
		enum hd_err err = hd_hub_poll(&e->hub, sooner(next, later), other, 4, &n, &diag);
		if (err)
			hd_elastic_fail(e, err, &diag);
		hd_elastic_probe(e);
		hd_elastic_want(e);
		hd_elastic_go_on(e);
		if (hd_clock_now_ns(e->spec->clock) >= later && e->later.used)
			hd_elastic_say_later(e);
		hd_elastic_look_at_notices(e);
		if (hd_clock_now_ns(e->spec->clock) >= next) {
			hd_elastic_look_at_stop(e);
			hd_elastic_look_at_reading(e);
			if (hd_clock_now_ns(e->spec->clock) >= next_beat) {
				tick(e);
				next_beat = hd_clock_now_ns(e->spec->clock) + beat;
			}
			next = hd_look_at_ns(hd_clock_now_ns(e->spec->clock), next_beat, e->detect_ns);
		}
	}
	say_last_words(e);
	if (e->given_up) {
		hd_hub_close(&e->hub, HD_CLOSE_DONE, e->exit_text);
		say_last_words(e);
	}
	hd_lock_give(&e->turn);
	hd_dist_fence(e->worker, UINT32_MAX);     /* a compute thread that waits for mail is to come */
	if (hd_commands_give(&e->commands, &(struct hd_command){ .kind = HD_COMMAND_QUIT }, &diag))
		fprintf(stderr, "%s\n", diag.text);
}
