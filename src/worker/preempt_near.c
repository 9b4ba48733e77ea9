/* The end that sends, and measures. */
#include <string.h>

#include "worker/preempt_int.h"

enum { RECORDS = IDS * STEPS };

/* A transfer or an answer that went, as inversions are counted by. */
struct preempt_record { uint8_t class; int32_t urgency; int64_t gate_ns, first_ns; };

struct preempt_near {
	struct preempt *p;
	struct hd_end *e;
	const struct preempt_bytes *b;
	struct preempt_figures *figures;
	uint32_t play;                    /* of all rounds */
	uint64_t ready, steps;            /* that the far end has said: plays, steps of this one */
	uint32_t nunsent;
	bool up, over;
	struct preempt_record record[RECORDS];
	uint32_t nrecords;
	int64_t alone_ns;                 /* what the play before, of the bulk or a step alone, took */
};

static void failed(struct preempt_near *n, enum hd_err err) { hd_ends_failed(&n->p->ends, NEAR_ID, err); }
static struct play play_of(const struct preempt_near *n) { return preempt_plays[n->play % PLAYS]; }
static int64_t now_ns(const struct preempt_near *n) { return hd_clock_now_ns(n->p->ends.clock); }
static int64_t arrived_ns(const struct preempt_near *n, uint32_t id)
{
	return atomic_load(&n->p->arrived_ns[id]);
}

/* ---- what the hub says ---- */

static void on_up(void *self, const struct hd_peer_info *peer)
{
	struct preempt_near *n = self;
	struct hd_transfer row[IDS];

	for (uint32_t id = 0; id < IDS; id++)
		row[id] = (struct hd_transfer){ id, 1, preempt_len(n->p->spec, id) };
	failed(n, hd_hub_channel(&n->e->hub, peer->worker, NULL, 0, row, IDS, &n->e->diag));
	n->up = true;
}

static void on_lost(void *self, uint32_t worker, enum hd_close why, const char *text)
{
	struct preempt_near *n = self;

	(void)worker;
	(void)why;
	if (!n->over)
		failed(n, hd_fail(&n->e->diag, HD_E_PEERLOST, "the sender lost the receiver: %s", text));
}

static void on_message(void *self, const struct hd_message *message)
{
	struct preempt_near *n = self;

	if (message->id == SAYS_READY)
		n->ready = message->step + 1;
	else if (message->id == SAYS_STEP)
		n->steps = message->step;
}

static void on_sent(void *self, const struct hd_sent *sent)
{
	struct preempt_near *n = self;
	const uint32_t id = (uint32_t)sent->token;

	n->nunsent--;
	if (sent->first_ns && n->nrecords < RECORDS)
		n->record[n->nrecords++] = (struct preempt_record){ sent->kind == HD_KIND_BULK,
			preempt_urgency(id), sent->gate_ns, sent->first_ns };
}

/* ---- what is sent ---- */

static void send(struct preempt_near *n, uint32_t id, enum how how)
{
	n->nunsent++;
	failed(n, hd_hub_send(&n->e->hub, FAR_ID, &(struct hd_send){ .transfer = id, .token = id,
		.priority = how == FIFO ? 0 : preempt_urgency(id), .bytes = n->b->at[id],
		.len = preempt_len(n->p->spec, id) }, &n->e->diag));
}

static void answer(struct preempt_near *n)
{
	n->nunsent++;
	failed(n, hd_hub_answer(&n->e->hub, FAR_ID, &(struct hd_answer){ .request = n->play, .token = ID_BULK,
		.bytes = n->b->at[ID_BULK], .len = preempt_len(n->p->spec, ID_BULK) }, &n->e->diag));
}

struct preempt_waits { const struct preempt_near *n; uint64_t least; };

static bool is_ready(const void *waits)
{
	const struct preempt_waits *w = waits;
	return w->n->ready > w->least;
}

static bool has_step(const void *waits)
{
	const struct preempt_waits *w = waits;
	return w->n->steps >= w->least;
}

static bool all_sent(const void *n) { return !((const struct preempt_near *)n)->nunsent; }
static bool never(const void *n) { return (void)n, false; }

static void until(struct preempt_near *n, int64_t at_ns)
{
	enum hd_err err = hd_ends_wait(&n->p->ends, NEAR_ID, never, n, at_ns, "its time");

	failed(n, err == HD_E_AGAIN ? HD_OK : err);
}

static void await(struct preempt_near *n, bool (*is)(const void *w), uint64_t least, const char *what)
{
	failed(n, hd_ends_wait(&n->p->ends, NEAR_ID, is, &(struct preempt_waits){ n, least }, INT64_MAX,
		what));
}

/* ---- plays: each leaves what took how long in *urgent_ns and *whole_ns ---- */

struct took { int64_t urgent_ns, whole_ns; double share; };

/* The far end is ready for the next play: all of this one is there. */
static void over(struct preempt_near *n) { await(n, is_ready, n->play + 1, "the bytes of a measurement"); }

static struct took play_bulk(struct preempt_near *n, struct play play)
{
	const int64_t began = now_ns(n);
	int64_t asked = began;

	if (play.what == HD_PREEMPT_ANSWER)
		answer(n);
	else
		send(n, ID_BULK, play.how);
	if (play.how != ALONE) {
		until(n, began + n->alone_ns / 5);
		asked = now_ns(n);
		send(n, ID_URGENT, play.how);
	}
	over(n);
	struct took took = { arrived_ns(n, ID_URGENT) - asked, arrived_ns(n, ID_BULK) - began, 0 };
	if (play.how == ALONE)
		n->alone_ns = took.whole_ns;
	return took;
}

/* As backward makes them: twice as fast as the link takes them, the most urgent last. */
static struct took play_order(struct preempt_near *n, struct play play)
{
	const int64_t began = now_ns(n), gap = (int64_t)((double)n->alone_ns *
		(double)preempt_layers(n->p->spec) / (double)preempt_len(n->p->spec, ID_BULK)) / (2 * LAYERS);
	int64_t asked = began, last = began;

	for (uint32_t i = 0; i < LAYERS; i++) {
		until(n, began + i * gap);
		asked = now_ns(n);
		send(n, IDS - 1 - i, play.how);
	}
	over(n);
	for (uint32_t id = ID_LAYERS; id < IDS; id++)
		last = arrived_ns(n, id) > last ? arrived_ns(n, id) : last;
	return (struct took){ arrived_ns(n, ID_LAYERS) - asked, last - began, 0 };
}

static uint64_t sent_bytes(const struct preempt_near *n)
{
	struct hd_hub_stats stats;

	hd_hub_stats(&n->e->hub, &stats);
	return stats.bytes_sent;
}

/* whole: the mean of the steps, without their pauses; share: of the answer in the bytes from the first step's
 * begin to the last one's end. */
static struct took play_steps(struct preempt_near *n, struct play play)
{
	const uint64_t before = sent_bytes(n);
	int64_t busy = 0;

	if (play.how == TIMED)
		answer(n);
	for (uint32_t step = 1; step <= STEPS; step++) {
		const int64_t began = now_ns(n);
		for (uint32_t id = ID_LAYERS; id < IDS; id++)
			send(n, id, play.how);
		await(n, has_step, step, "the bytes of a step");
		const int64_t took = now_ns(n) - began;
		busy += took;
		if (play.what == HD_PREEMPT_GAPS && step < STEPS)
			until(n, now_ns(n) + (play.how == ALONE ? took : n->alone_ns));
	}
	const double all = (double)(sent_bytes(n) - before),
		ours = (double)(STEPS * preempt_layers(n->p->spec));
	hd_hub_cancel(&n->e->hub, FAR_ID, ID_BULK);
	over(n);
	if (play.how == ALONE)
		n->alone_ns = busy / STEPS;
	return (struct took){ 0, busy / STEPS, all > ours ? (all - ours) / all : 0 };
}

static struct took (*const cases[HD_PREEMPT_CASES])(struct preempt_near *n, struct play play) = {
	[HD_PREEMPT_PLANNED] = play_bulk, [HD_PREEMPT_ANSWER] = play_bulk, [HD_PREEMPT_ORDER] = play_order,
	[HD_PREEMPT_STATE] = play_steps, [HD_PREEMPT_GAPS] = play_steps,
};

static bool more_urgent(const struct preempt_record *x, const struct preempt_record *y)
{
	return x->class != y->class ? x->class < y->class : x->urgency < y->urgency;
}

static uint64_t inversions(const struct preempt_near *n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n->nrecords; i++)
		for (uint32_t k = 0; k < n->nrecords; k++) {
			const struct preempt_record *x = &n->record[i], *y = &n->record[k];
			/* an answer may begin because it is old */
			sum += !y->class && more_urgent(x, y) && x->gate_ns < y->first_ns &&
				y->first_ns < x->first_ns;
		}
	return sum;
}

static void one_play(struct preempt_near *n)
{
	const uint32_t i = n->play % PLAYS, round = n->play / PLAYS;
	struct preempt_figures *f = n->figures;
	struct hd_hub_stats before, after;

	n->nrecords = 0;
	n->steps = 0;
	hd_hub_stats(&n->e->hub, &before);
	const struct took took = cases[play_of(n).what](n, play_of(n));
	failed(n, hd_ends_wait(&n->p->ends, NEAR_ID, all_sent, n, INT64_MAX, "the last bytes to go"));
	hd_hub_stats(&n->e->hub, &after);
	f->urgent[i][round] = (double)took.urgent_ns * 1e-6;
	f->whole[i][round] = (double)took.whole_ns * 1e-6;
	f->share[i] += took.share;
	f->inversions[i] += inversions(n) + after.inverted - before.inverted;
	f->preempted[i] += after.preempted - before.preempted;
	f->aged[i] += after.aged - before.aged;
	n->play++;
}

/* ---- life ---- */

static void make_bytes(struct preempt_near *n)
{
	const struct hd_memory *all = &n->p->bytes[NEAR_ID].all;

	failed(n, preempt_take_bytes(n->p, NEAR_ID));
	for (uint64_t k = 0; k < all->len_bytes && !n->e->err; k++)
		((uint8_t *)all->at)[k] = (uint8_t)(k * 31 + (k >> 8) * 7 + (k >> 16) * 3 + 1);
}

void preempt_near(void *user)
{
	struct preempt *p = user;
	struct hd_wire_events events;
	struct hd_memory room = { .at = NULL };
	struct hd_end *e = &p->ends.end[NEAR_ID];

	hd_ends_hear_nothing(&events);
	hd_ends_failed(&p->ends, NEAR_ID, hd_memory_take(sizeof(struct preempt_near), HD_MEMORY_LAZY, &room,
		&e->diag));
	struct preempt_near *n = room.at;
	if (n) {
		*n = (struct preempt_near){ .p = p, .e = e, .b = &p->bytes[NEAR_ID], .figures = p->figures };
		events.self = n;
		events.up = on_up;
		events.lost = on_lost;
		events.message = on_message;
		events.sent = on_sent;
		make_bytes(n);
		if (!e->err)
			failed(n, hd_ends_begin(&p->ends, NEAR_ID, &events));
		if (!e->err)
			failed(n, hd_ends_meet(&p->ends, &n->up));
		if (!e->err)
			await(n, is_ready, 0, "the first buffers");
		while (!e->err && n->play < p->spec->rounds * PLAYS)
			one_play(n);
		if (!e->err)
			failed(n, hd_hub_tell(&e->hub, FAR_ID, SAYS_OVER, 0, NULL, 0, &e->diag));
		n->over = true;
		if (!e->err)
			failed(n, hd_ends_wait_far(&p->ends));
	}
	hd_ends_finish(&p->ends, NEAR_ID);
	hd_memory_give(&room);
}
