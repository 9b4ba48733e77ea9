/* The end that receives: it has a buffer posted for every transfer, compares what comes and posts again. */
#include <string.h>

#include "worker/preempt_int.h"

struct preempt_far {
	struct preempt *p;
	struct hd_end *e;
	const struct preempt_bytes *b;
	uint32_t play;                    /* of all rounds */
	uint32_t layers, steps;           /* of the step at hand; whole ones of the play */
	bool bulk, urgent, over;          /* of the play: here, or not awaited */
	bool whole;                       /* the bulk is: to be compared */
};

static void failed(struct preempt_far *f, enum hd_err err) { hd_ends_failed(&f->p->ends, FAR_ID, err); }
static struct play play_of(const struct preempt_far *f) { return preempt_plays[f->play % PLAYS]; }
static bool steps_in(enum hd_preempt_case what)
{
	return what == HD_PREEMPT_STATE || what == HD_PREEMPT_GAPS;
}

static void post(struct preempt_far *f, uint32_t id)
{
	memset(f->b->at[id], 0, preempt_len(f->p->spec, id));
	failed(f, hd_hub_post(&f->e->hub, NEAR_ID, id, f->b->at[id], &f->e->diag));
}

static void compare(struct preempt_far *f, uint32_t id)
{
	if (memcmp(f->b->at[id], f->p->bytes[NEAR_ID].at[id], preempt_len(f->p->spec, id)) != 0)
		failed(f, hd_fail(&f->e->diag, HD_E_INTEGRITY,
			"transfer %u did not bring the bytes that were sent; the transport is wrong: "
			"tell us of it", id));
}

static void tell(struct preempt_far *f, uint32_t id, uint64_t step)
{
	failed(f, hd_hub_tell(&f->e->hub, NEAR_ID, id, step, NULL, 0, &f->e->diag));
}

/* The play at hand may begin: buffers of transfers are posted always, that of an answer if one comes. */
static void ready(struct preempt_far *f)
{
	const struct play play = play_of(f);
	const bool answered = play.what == HD_PREEMPT_ANSWER || (steps_in(play.what) && play.how == TIMED);

	f->layers = f->steps = 0;
	f->whole = false;
	f->bulk = !answered && play.what != HD_PREEMPT_PLANNED;
	f->urgent = play.how == ALONE || (play.what != HD_PREEMPT_PLANNED && play.what != HD_PREEMPT_ANSWER);
	if (answered) {
		memset(f->b->at[ID_BULK], 0, preempt_len(f->p->spec, ID_BULK));
		failed(f, hd_hub_expect(&f->e->hub, NEAR_ID, f->play, f->b->at[ID_BULK],
			preempt_len(f->p->spec, ID_BULK), &f->e->diag));
	}
	tell(f, SAYS_READY, f->play);
}

/* The bulk is compared when nothing else is awaited: that takes long. */
static void end_play(struct preempt_far *f)
{
	const enum hd_preempt_case what = play_of(f).what;

	if (!f->bulk || !f->urgent || f->steps < (steps_in(what) ? STEPS : what == HD_PREEMPT_ORDER))
		return;
	if (f->whole)
		compare(f, ID_BULK);
	if (f->whole && what == HD_PREEMPT_PLANNED)
		post(f, ID_BULK);
	f->play++;
	ready(f);
}

static void on_arrived(void *self, const struct hd_arrival *a)
{
	struct preempt_far *f = self;
	const uint32_t id = a->kind == HD_KIND_BULK ? (uint32_t)ID_BULK : a->transfer;

	atomic_store(&f->p->arrived_ns[id], a->end_ns);
	if (id == ID_BULK) {
		f->bulk = true;
		f->whole = !a->err;
	} else {
		compare(f, id);
		post(f, id);
		f->urgent |= id == ID_URGENT;
	}
	if (id >= ID_LAYERS && ++f->layers == LAYERS) {
		f->layers = 0;
		tell(f, SAYS_STEP, ++f->steps);
	}
	end_play(f);
}

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct preempt_far *f = self;
	struct hd_transfer row[IDS];

	for (uint32_t id = 0; id < IDS; id++)
		row[id] = (struct hd_transfer){ id, 1, preempt_len(f->p->spec, id) };
	failed(f, hd_hub_channel(&f->e->hub, peer->worker, row, IDS, NULL, 0, &f->e->diag));
	for (uint32_t id = 0; id < IDS; id++)
		post(f, id);
	ready(f);
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct preempt_far *f = self;

	(void)worker;
	(void)why;
	if (!f->over)
		failed(f, hd_fail(&f->e->diag, HD_E_PEERLOST, "the receiver lost the sender: %s", text));
}

static void on_message(void *self, const struct hd_message *message)
{
	struct preempt_far *f = self;
	f->over |= message->id == SAYS_OVER;
}

static bool is_over(const void *far) { return ((const struct preempt_far *)far)->over; }

/* Until the end; patience is for one measurement. */
static void be_there(struct preempt_far *f)
{
	const int64_t half = f->p->ends.patience_ns / 2;
	enum hd_err err = HD_E_AGAIN;

	for (uint32_t was = UINT32_MAX, idle = 0; err == HD_E_AGAIN; was = f->play) {
		idle = f->play == was ? idle + 1 : 0;
		err = hd_ends_wait(&f->p->ends, FAR_ID, is_over, f, idle > 1 ? INT64_MAX :
			hd_clock_now_ns(f->p->ends.clock) + half, "the end");
	}
	failed(f, err);
}

void preempt_far(void *user)
{
	struct preempt *p = user;
	struct preempt_far f = { .p = p, .e = &p->ends.end[FAR_ID], .b = &p->bytes[FAR_ID] };
	struct hd_wire_events events;

	hd_ends_hear_nothing(&events);
	events.self = &f;
	events.up = on_up;
	events.lost = on_lost;
	events.arrived = on_arrived;
	events.message = on_message;
	failed(&f, preempt_take_bytes(p, FAR_ID));
	if (!f.e->err)
		failed(&f, hd_ends_join(&p->ends, &events));
	if (!f.e->err)
		be_there(&f);
	hd_ends_finish(&p->ends, FAR_ID);
}
