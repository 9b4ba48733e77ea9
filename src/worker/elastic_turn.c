#include "worker/elastic_int.h"

#include <string.h>

/* Which thread runs the machine. It is the I/O thread; while that rests in its loop, the compute thread takes
 * the turn for what comes of its own result, where the worker is alone: a step of one member has four
 * commands, and waking the other thread for each result, to be woken for the next command, costs more than a
 * short step. What a member of several does next depends on what its peers say, which the I/O thread hears.
 *
 * What is said meanwhile goes out with the I/O thread's next poll; it is woken where that is due. */

void hd_elastic_yield(void *elastic, bool rests)
{
	struct hd_elastic *e = elastic;

	if (rests) {
		hd_lock_give(&e->turn);
		return;
	}
	atomic_store(&e->comes_back, true);
	hd_lock_take(&e->turn);
	atomic_store(&e->comes_back, false);
}

static void send_notes(struct hd_elastic *e)
{
	for (;;) {
		struct hd_note note;
		hd_lock_take(&e->notes_lock);
		bool some = e->nnotes > 0;
		if (some) {
			note = e->note[0];
			memmove(e->note, e->note + 1, --e->nnotes * sizeof *e->note);
		}
		hd_lock_give(&e->notes_lock);
		if (!some)
			return;
		hd_recorder_note(e->recorder, note.kind, atomic_load(&e->self), e->step);
		hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_NOTE, .name = note.kind,
			.text = note.json });
	}
}

/* Between the stages of a pipeline. */
static void carry_mail(struct hd_elastic *e)
{
	struct hd_diag diag = { "" };
	enum hd_err err = e->open_pending ? HD_OK : hd_relay_mail(&e->relay, &diag);

	if (err)
		hd_elastic_fail(e, err, &diag);
}

void hd_elastic_go_on(struct hd_elastic *e)
{
	hd_elastic_results(e);
	carry_mail(e);
	hd_elastic_slots_later(e);
	send_notes(e);
}

static bool is_alone(const struct hd_elastic *e)
{
	const struct hd_view *view = hd_member_view(e->member);

	if (e->leaving || e->stepping || !view || view->nmembers != 1 ||
		hd_member_state(e->member) != HD_MEMBER)
		return false;
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (e->transfer[i].worker != HD_NOBODY)
			return false;
	return true;
}

/* The other thread comes first: of short steps the turn is taken again before a thread that waits for it gets
 * a processor, and signs of life would not go out. Alone, the compute thread has nothing to do before its
 * result is taken up: it waits for the turn, or both threads would wake each other once a command until one
 * is quicker. Of several members it goes on with what is queued; the wake makes the other thread's next wait
 * end at once, so that a result is not overlooked. */
static bool takes_turn(struct hd_elastic *e)
{
	if (atomic_load(&e->comes_back))
		return false;
	if (!atomic_load(&e->alone))
		return hd_lock_try(&e->turn);
	hd_lock_take(&e->turn);
	return true;
}

void hd_elastic_done(void *elastic)
{
	struct hd_elastic *e = elastic;
	bool due = true;

	if (takes_turn(e)) {
		const bool alone = is_alone(e);
		atomic_store(&e->alone, alone);
		if (alone) {
			hd_elastic_go_on(e);
			due = e->leaving ||
				hd_hub_due_ns(&e->hub) <= hd_clock_now_ns(e->spec->clock);
		}
		hd_lock_give(&e->turn);
	}
	if (due)
		hd_hub_wake(&e->hub);
}
