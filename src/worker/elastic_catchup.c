#include "worker/elastic_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/le.h"
#include "sys/failpoint.h"

/* Teaching, the wire's part. A pupil asks for piece after piece, two at a time, and asks again while one does
 * not come: the end of an epoch may cut off a piece, or drop the question. A coordinator that came later, or
 * back, says DONATE again: the teaching goes on. That the link to a pupil closed may be heard after DONATE:
 * who was named is taught when it asks. Whether the pupil goes on, its questions say: piece 0 begins anew,
 * and one beyond what was taught is of a teaching that has ended. */

enum { HD_ASK_BYTES = 16 };               /* u64 number of the piece, u64 request to answer */

/* ---- the member that teaches ---- */

static struct hd_taught *pupil_of(struct hd_elastic *e, uint32_t worker)
{
	for (uint32_t i = 0; i < HD_ELASTIC_PUPILS; i++)
		if (e->taught[i].worker == worker && !e->taught[i].ended)
			return &e->taught[i];
	return NULL;
}

static void give_teach(struct hd_elastic *e, struct hd_taught *t, bool on)
{
	struct hd_diag diag = { "" };
	enum hd_err err = hd_duties_give(&e->duties, &(struct hd_duty){ .kind = HD_DUTY_TEACH,
		.worker = t->worker, .number = (uint32_t)(t - e->taught),
		.flag = on }, &diag);

	if (err)
		hd_elastic_fail(e, err, &diag);
}

static void let_go_of(struct hd_lesson_out *out)
{
	if (!out->sending) {
		hd_teacher_free(out->piece);
		*out = (struct hd_lesson_out){ 0 };
	}
}

static void end(struct hd_elastic *e, struct hd_taught *t)
{
	if (t->made && !t->ended)
		hd_teacher_leave(&t->teacher);
	t->ended = true;
	for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++) {
		t->out[k].asked = false;
		let_go_of(&t->out[k]);
	}
	give_teach(e, t, false);
}

/* A place is free once the hand has let go of it and nothing of it is being sent. */
static bool is_free(const struct hd_taught *t)
{
	for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++)
		if (t->out[k].sending)
			return false;
	return t->worker == HD_NOBODY || (t->ended && t->let_go);
}

static void begin(struct hd_elastic *e, uint32_t learner)
{
	for (uint32_t i = 0; i < HD_ELASTIC_PUPILS; i++) {
		struct hd_taught *t = &e->taught[i];
		if (!is_free(t))
			continue;
		t->worker = learner;
		t->made = t->ended = t->let_go = false;
		t->taken = 0;
		give_teach(e, t, true);
		return;
	}
	/* all places are taken: it asks again, and one becomes free */
}

static bool is_named(const struct hd_elastic *e, uint32_t learner)
{
	for (uint32_t i = 0; i < e->npupils_to_be; i++)
		if (e->pupil_to_be[i] == learner)
			return true;
	return false;
}

/* More of them than a job has members are of coordinators before: the oldest is forgotten. */
static void name(struct hd_elastic *e, uint32_t learner, bool on)
{
	uint32_t *at = e->pupil_to_be, n = 0;
	bool full = on && e->npupils_to_be == HD_MAX_MEMBERS && !is_named(e, learner);

	for (uint32_t i = full; i < e->npupils_to_be; i++)
		if (at[i] != learner)
			at[n++] = at[i];
	if (on)
		at[n++] = learner;
	e->npupils_to_be = n;
}

void hd_elastic_teach(struct hd_elastic *e, uint32_t learner, bool on)
{
	struct hd_taught *t = pupil_of(e, learner);

	name(e, learner, on);
	if (t && !on)
		end(e, t);
	else if (!t && on)
		begin(e, learner);
}

/* Members that stand have no boundaries; whoever they wait for may have to learn from them. */
void hd_elastic_teach_standing(struct hd_elastic *e)
{
	struct hd_diag diag = { "" };
	struct hd_view *view = e->teaching || !hd_member_holds(e->member) ? NULL : hd_alloc(sizeof *view);

	if (!view)
		return;                   /* without memory: the next time */
	*view = *hd_member_view(e->member);
	e->teaching = true;
	if (hd_duties_give(&e->duties, &(struct hd_duty){ .kind = HD_DUTY_TEACH, .worker = HD_NOBODY,
		.flag = true, .view = view }, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

void hd_elastic_taught(struct hd_elastic *e, const struct hd_duty_done *done)
{
	struct hd_taught *t = &e->taught[done->duty.number];

	if (done->duty.worker == HD_NOBODY)
		e->teaching = false;
	else if (done->duty.flag)
		t->made = true;
	else
		t->let_go = true;
	hd_elastic_answer(e);
}

static void answer(struct hd_elastic *e, struct hd_taught *t, struct hd_lesson_out *out)
{
	if (!out->piece && out->number == t->taken && t->made) {
		out->piece = hd_teacher_take(&t->teacher);
		t->taken += out->piece != NULL;
	}
	if (!out->piece)
		return;
	(void)HD_FAILPOINT(TEACH_PIECE);
	const struct hd_answer a = { .request = out->request, .bytes = out->piece->bytes,
		.len = out->piece->len,
		.token = (uint64_t)(uintptr_t)out };
	if (hd_hub_answer(&e->hub, t->worker, &a, NULL))
		return;                   /* it is gone, or will ask again */
	out->asked = false;
	out->sending = true;
}

void hd_elastic_answer(struct hd_elastic *e)
{
	for (uint32_t i = 0; i < HD_ELASTIC_PUPILS; i++) {
		struct hd_taught *t = &e->taught[i];
		for (uint32_t k = 0; k < HD_ELASTIC_ASKED && t->worker != HD_NOBODY && !t->ended; k++) {
			struct hd_lesson_out *out = &t->out[(t->taken + k) % HD_ELASTIC_ASKED];
			if (out->asked && !out->sending)
				answer(e, t, out);
		}
	}
}

void hd_elastic_asked(struct hd_elastic *e, uint32_t learner, const uint8_t *bytes, uint32_t len)
{
	struct hd_taught *t = pupil_of(e, learner);

	if (len != HD_ASK_BYTES)
		return;
	uint64_t number = hd_get64(bytes), request = hd_get64(bytes + 8);
	if (!t) {
		if (number == 0 && is_named(e, learner))
			begin(e, learner);        /* it asks again */
		return;
	}
	struct hd_lesson_out *out = &t->out[number % HD_ELASTIC_ASKED];
	if (number > t->taken + 1) {
		hd_hub_drop(&e->hub, learner, HD_CLOSE_DROPPED, "it goes on with a teaching that has ended");
		return;
	}
	if (number == 0 && t->taken && !(out->piece && out->number == 0)) {
		end(e, t);
		begin(e, learner);
		return;                   /* it asks again */
	}
	if (out->sending || (out->piece && number < out->number))
		return;                   /* on its way, or past: it asks again if it must */
	if (out->piece && number > out->number)
		let_go_of(out);
	out->number = number;
	out->request = request;
	out->asked = true;
	hd_elastic_answer(e);
}

void hd_elastic_piece_sent(struct hd_elastic *e, const struct hd_sent *sent)
{
	for (uint32_t i = 0; i < HD_ELASTIC_PUPILS; i++)
		for (uint32_t k = 0; k < HD_ELASTIC_ASKED; k++) {
			struct hd_taught *t = &e->taught[i];
			struct hd_lesson_out *out = &t->out[k];
			if ((uint64_t)(uintptr_t)out != sent->token || !out->sending)
				continue;
			out->sending = false;
			if (t->ended)
				let_go_of(out);
			return;
		}
}

/* ---- the learner ---- */

/* The buffer of a piece of the present lessons, or a free one to become it. */
static struct hd_lesson *buffer_of(struct hd_elastic *e, uint64_t number)
{
	struct hd_lesson *free = NULL;

	for (uint32_t i = 0; i < HD_ELASTIC_LESSONS; i++) {
		struct hd_lesson *l = &e->lesson[i];
		bool used = l->open || l->here || l->learning;
		if (used && l->lessons == e->lessons && l->number == number)
			return l;
		if (!used)
			free = l;
	}
	return free;
}

static void ask_for(struct hd_elastic *e, uint64_t number, int64_t now)
{
	struct hd_lesson *l = buffer_of(e, number);
	uint8_t bytes[HD_ASK_BYTES];

	if (!l || l->here || l->learning || (l->open && now - l->asked_ns < e->detect_ns))
		return;
	if (!l->open) {
		l->request = ++e->next_request;
		if (hd_hub_expect(&e->hub, e->donor, l->request, l->bytes, HD_TEACH_PIECE, NULL))
			return;
		l->open = true;
		l->number = number;
		l->worker = e->donor;
		l->lessons = e->lessons;
	}
	hd_put64(bytes, l->number);
	hd_put64(bytes + 8, l->request);
	if (!hd_hub_tell(&e->hub, e->donor, HD_ASK_ID, 0, bytes, sizeof bytes, NULL))
		l->asked_ns = now;
}

void hd_elastic_ask(struct hd_elastic *e)
{
	int64_t now = hd_clock_now_ns(e->spec->clock);

	if (e->donor == HD_NOBODY || !hd_hub_is_up(&e->hub, e->donor))
		return;
	for (uint32_t i = 0; i < HD_ELASTIC_ASKED; i++)
		ask_for(e, e->next_lesson + i, now);
}

void hd_elastic_learn(struct hd_elastic *e, uint32_t donor, uint64_t step)
{
	struct hd_diag diag = { "" };

	e->lessons++;
	e->next_lesson = 0;
	e->whole = false;
	e->donor = donor;
	for (uint32_t i = 0; i < HD_ELASTIC_LESSONS; i++)
		e->lesson[i].here = false;
	if (donor != HD_NOBODY)
		hd_elastic_ask(e);
	else if (hd_duties_give(&e->duties, &(struct hd_duty){ .kind = HD_DUTY_RESTORE, .step = step },
		&diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

/* A member makes its own steps: what is still taught is void. */
void hd_elastic_graduate(struct hd_elastic *e)
{
	if (e->donor == HD_NOBODY)
		return;
	e->donor = HD_NOBODY;
	e->lessons++;
}

static void unlearned(struct hd_elastic *e, bool slow)
{
	e->donor = HD_NOBODY;
	e->lessons++;
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_UNLEARNED, .whole = e->whole,
		.slow = slow });
}

/* The next piece in order, if it is here, to the hand. */
static void teach_hand(struct hd_elastic *e)
{
	struct hd_lesson *l = buffer_of(e, e->next_lesson);
	struct hd_diag diag = { "" };

	if (!l || !l->here)
		return;
	l->here = false;
	l->learning = true;
	e->whole = false;
	if (hd_duties_give(&e->duties, &(struct hd_duty){ .kind = HD_DUTY_LESSON, .step = l->number,
		.worker = e->donor, .pass = e->lessons,
		.number = (uint32_t)(l - e->lesson), .bytes = l->bytes, .len = l->len }, &diag))
		hd_elastic_fail(e, HD_E_BUG, &diag);
}

void hd_elastic_piece_here(struct hd_elastic *e, const struct hd_arrival *a)
{
	for (uint32_t i = 0; i < HD_ELASTIC_LESSONS; i++) {
		struct hd_lesson *l = &e->lesson[i];
		if (!l->open || l->request != a->request || l->worker != a->worker)
			continue;
		l->open = false;
		l->here = !a->err && l->lessons == e->lessons;
		l->len = a->len;
		teach_hand(e);
		hd_elastic_ask(e);
		return;
	}
}

/* It says why it goes, if it may go at once; whoever was decided into a view cannot wait for that. */
static void refused(struct hd_elastic *e, const struct hd_diag *diag)
{
	hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_DRAIN,
		.code = (uint32_t)hd_err_exit(HD_E_INTEGRITY), .text = diag->text });
	if (!e->leaving)
		hd_elastic_fail(e, HD_E_INTEGRITY, diag);
}

void hd_elastic_learned(struct hd_elastic *e, const struct hd_duty_done *done)
{
	e->lesson[done->duty.number].learning = false;
	if (done->duty.pass == e->lessons) {      /* else of an earlier donor */
		if (done->err == HD_E_INTEGRITY) {
			refused(e, &done->diag);
			return;
		}
		if (done->err) {
			unlearned(e, done->over);
			return;
		}
		e->next_lesson++;
		e->whole = done->learned;
		if (done->learned)
			hd_elastic_feed(e, &(struct hd_member_event){ .kind = HD_IN_LEARNED,
				.step = done->step });
	}
	teach_hand(e);
	hd_elastic_ask(e);
}

void hd_elastic_peer_lost(struct hd_elastic *e, uint32_t worker)
{
	struct hd_taught *t = pupil_of(e, worker);

	hd_elastic_slots_lost(e, worker);
	if (t)
		end(e, t);
	for (uint32_t i = 0; i < HD_ELASTIC_LESSONS; i++)
		if (e->lesson[i].worker == worker)
			e->lesson[i].open = e->lesson[i].here = false;
	if (worker == e->donor && worker != HD_NOBODY)
		unlearned(e, false);
}
