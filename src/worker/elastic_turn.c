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

	if (rests)
		hd_lock_give(&e->turn);
	else
		hd_lock_take(&e->turn);
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

/* AGAIN waits for folds of the compute thread: it comes of messages, and of a view of several. */
static bool is_alone(const struct hd_elastic *e)
{
	const struct hd_view *view = hd_member_view(e->member);

	if (e->leaving || !view || view->nmembers != 1 || hd_member_state(e->member) != HD_MEMBER)
		return false;
	for (uint32_t i = 0; i < HD_ELASTIC_TRANSFERS; i++)
		if (e->transfer[i].worker != HD_NOBODY)
			return false;
	return true;
}

/* A result that is stored while the other thread has the turn is looked at once more by that one: the wake
 * makes its next wait end at once. */
void hd_elastic_done(void *elastic)
{
	struct hd_elastic *e = elastic;
	bool due = true;

	if (hd_lock_try(&e->turn)) {
		if (is_alone(e)) {
			hd_elastic_go_on(e);
			due = e->leaving || hd_hub_due_ns(&e->hub) <= hd_clock_now_ns(e->spec->clock);
		}
		hd_lock_give(&e->turn);
	}
	if (due)
		hd_hub_wake(&e->hub);
}
