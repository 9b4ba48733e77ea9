#include "wire/stream.h"

#include <assert.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/le.h"
#include "wire/stream_int.h"

static enum hd_close breach(struct hd_stream *s, enum hd_close why, struct hd_diag *diag, const char *what)
{
	(void)!hd_fail(diag, HD_E_PROTOCOL, "%s %u (epoch %u): %s", hd_frame_name(s->frame.type),
		s->frame.stream, s->frame.epoch, what);
	return why;
}

static uint64_t stamp(struct hd_stream *s) { return s->config.stamp(s->config.stamp_self); }

/* ---- streams under way, by rising number ---- */

void in_init(struct hd_stream *s)
{
	for (uint16_t i = 0; i < HD_STREAMS_OPEN; i++)
		s->order[i] = i;
	s->window[HD_CLASS_CONTROL] = HD_CREDIT_CONTROL;
	s->window[HD_CLASS_BULK] = HD_CREDIT_BULK;
}

static uint32_t incoming_find(const struct hd_stream *s, uint32_t stream)
{
	uint32_t low = 0, high = s->n_incoming;

	while (low < high) {
		uint32_t mid = (low + high) / 2;
		if (s->incoming[s->order[mid]].stream < stream)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n_incoming && s->incoming[s->order[low]].stream == stream ? low : NONE32;
}

/* The newest has the greatest number: it goes last. */
static struct incoming *incoming_add(struct hd_stream *s)
{
	assert(s->n_incoming < HD_STREAMS_OPEN);
	return &s->incoming[s->order[s->n_incoming++]];
}

static struct incoming incoming_drop(struct hd_stream *s, uint32_t at)
{
	uint16_t place = s->order[at];

	memmove(s->order + at, s->order + at + 1, (s->n_incoming - at - 1) * sizeof *s->order);
	s->order[--s->n_incoming] = place;
	if (s->incoming[place].kind == HD_KIND_PLANNED)
		s->in_rows[s->incoming[place].row].under_way--;
	return s->incoming[place];
}

static void drop_planned(struct hd_stream *s, uint32_t before_epoch)
{
	for (uint32_t i = 0; i < s->n_incoming;)
		if (s->incoming[s->order[i]].kind == HD_KIND_PLANNED &&
			s->incoming[s->order[i]].epoch < before_epoch)
			incoming_drop(s, i);
		else
			i++;
}

void in_epoch(struct hd_stream *s)
{
	drop_planned(s, s->epoch);
	out_forget_advice(s);
	if (s->where == AT_DATA && s->frame.class == HD_CLASS_PLANNED)
		s->drops = true;          /* the rest of that payload: its buffer is the caller's again */
	s->n_in_rows = s->n_owing = 0;
	s->least_priority = INT32_MAX;
	s->resumes |= s->held != HD_HELD_NOT;
	if (s->held_epoch <= s->next)     /* that of HD_HELD_POST, too: it is one of before */
		s->held = HD_HELD_NOT;
}

/* ---- buffers ---- */

void in_owe_slots(struct hd_stream *s, uint32_t at, uint32_t count)
{
	struct in_row *row = &s->in_rows[at];

	row->owed += count;
	if (row->in_owing)
		return;
	row->in_owing = true;
	s->owing_rows[(s->first_owing + s->n_owing++) % s->n_in_rows] = at;
}

enum hd_err hd_stream_post(struct hd_stream *s, uint32_t transfer, void *buffer, int64_t now,
	struct hd_diag *diag)
{
	uint32_t at = s->has_channel ? in_row_find(s->in_rows, s->n_in_rows, transfer) : NONE32;

	if (at == NONE32)
		return hd_fail(diag, HD_E_INVAL, "transfer %u is not one of those from worker %u in epoch %u",
			transfer, s->config.peer, s->epoch);
	struct in_row *row = &s->in_rows[at];
	if (row->n_posts + row->under_way == HD_GRANTS_MAX)
		return HD_E_AGAIN;
	row->posts[row->n_posts++] = (struct posted){ buffer, now };
	if (row->n_posts > row->granted + row->owed)
		in_owe_slots(s, at, 1);
	s->resumes |= s->held == HD_HELD_POST;
	if (s->held == HD_HELD_POST)
		s->held = HD_HELD_NOT;    /* perhaps for this one: hd_stream_turn() looks again */
	return HD_OK;
}

static struct expected *expected_find(struct hd_stream *s, uint64_t request)
{
	for (size_t i = 0; i < HD_EXPECT_MAX; i++)
		if (s->expected[i].used && s->expected[i].request == request)
			return &s->expected[i];
	return NULL;
}

enum hd_err hd_stream_expect(struct hd_stream *s, uint64_t request, void *buffer, uint64_t cap, int64_t now,
	struct hd_diag *diag)
{
	if (!cap || expected_find(s, request))
		return hd_fail(diag, HD_E_INVAL,
			"request %llu of worker %u is expected already, or has no space",
			(unsigned long long)request,
			s->config.peer);
	for (size_t i = 0; i < HD_EXPECT_MAX; i++)
		if (!s->expected[i].used) {
			s->expected[i] = (struct expected){ request, cap, buffer, now, true, false };
			return HD_OK;
		}
	return HD_E_AGAIN;
}

/* Of one that has not begun. It is not said again while nothing else was wanted. */
static void want_next(struct hd_stream *s, uint32_t transfer)
{
	uint32_t at = s->open ? in_row_find(s->in_rows, s->n_in_rows, transfer) : NONE32;

	if (at == NONE32)
		return;
	struct in_row *row = &s->in_rows[at];
	const uint64_t nth = row->opened + 1;
	if ((row->wanted == nth && row->wanted_priority == s->least_priority) ||
		s->least_priority == INT32_MIN)
		return;
	int32_t priority = s->least_priority < INT32_MAX ? s->least_priority - 1 : -1;
	if (out_note(s, (struct note){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
		.transfer = transfer, .nth = nth, .priority = priority })) {
		s->least_priority = row->wanted_priority = priority;
		row->wanted = nth;
	}
}

void hd_stream_want(struct hd_stream *s, uint32_t transfer)
{
	for (uint32_t i = 0; i < s->n_incoming; i++) {
		struct incoming *in = &s->incoming[s->order[i]];
		if (in->kind != HD_KIND_PLANNED || s->in_rows[in->row].id != transfer ||
			in->priority == INT32_MIN)
			continue;
		int32_t priority = s->least_priority > INT32_MIN ? s->least_priority - 1 : INT32_MIN;
		/* An advice: with no space for the note it is not given. */
		if (out_note(s, (struct note){ .type = HD_FRAME_PRIO, .class = HD_CLASS_PLANNED,
			.stream = in->stream, .priority = priority }))
			s->least_priority = in->priority = priority;
		return;
	}
	want_next(s, transfer);
}

/* Still within a payload of this stream? Then the rest of it goes nowhere. */
static void let_go(struct hd_stream *s, uint32_t stream)
{
	s->drops |= s->where == AT_DATA && s->frame.stream == stream;
}

void hd_stream_refuse(struct hd_stream *s, uint64_t request)
{
	struct expected *expected = expected_find(s, request);

	if (!expected)
		return;
	for (uint32_t i = 0; i < s->n_incoming; i++) {
		const struct incoming *in = &s->incoming[s->order[i]];
		if (in->kind != HD_KIND_BULK || in->request != request)
			continue;
		/* Without space for the note the bytes come, and go nowhere. */
		(void)!out_note(s, (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
			.stream = in->stream, .reason = HD_CANCEL_NOT_NEEDED });
		let_go(s, in->stream);
		incoming_drop(s, i);
		expected->used = false;
		return;
	}
	expected->refused = true;
	expected->buffer = NULL;
}

/* ---- what came whole ---- */

static void report(struct hd_stream *s, const struct incoming *in, enum hd_err err)
{
	struct hd_arrival arrival = { .worker = s->config.peer, .err = err, .kind = in->kind,
		.request = in->request, .step = in->step,
		.buffer = in->buffer, .len = err ? 0 : in->total, .flow = in->flow,
		.posted_ns = in->posted_ns, .first_ns = in->first_ns,
		.end_ns = s->now, .chunks = in->chunks };

	if (in->kind == HD_KIND_PLANNED)
		arrival.transfer = s->in_rows[in->row].id;
	else
		expected_find(s, in->request)->used = false;
	s->events.arrived(s->events.self, &arrival);
}

static enum hd_close stale_message(struct hd_stream *s, const struct incoming *in, struct hd_diag *diag)
{
	if (in->control_id != HD_CONTROL_STALE || in->total != 4)
		return breach(s, HD_CLOSE_ORDER, diag, "a control message of the room that is not known");
	uint32_t epoch = hd_get32(s->message);
	s->heard_epoch = epoch > s->heard_epoch ? epoch : s->heard_epoch;
	s->events.stale(s->events.self, s->config.peer, epoch);
	return HD_CLOSE_NONE;
}

static enum hd_close complete(struct hd_stream *s, uint32_t at, struct hd_diag *diag)
{
	struct incoming in = incoming_drop(s, at);

	if (in.kind != HD_KIND_CONTROL) {
		report(s, &in, HD_OK);
		return HD_CLOSE_NONE;
	}
	if (in.control_id < HD_TELL_FIRST_ID)
		return stale_message(s, &in, diag);
	struct hd_message message = { s->config.peer, in.epoch, in.step, in.control_id,
		in.total ? s->message : NULL, (uint32_t)in.total };
	s->events.message(s->events.self, &message);
	return HD_CLOSE_NONE;
}

/* ---- the fence ---- */

enum verdict { ACCEPT, DROP, HOLD };

static enum verdict fence(struct hd_stream *s, const struct hd_frame *frame)
{
	uint8_t epoch[4];

	s->heard_epoch = frame->epoch > s->heard_epoch ? frame->epoch : s->heard_epoch;
	bool fenced = frame->class == HD_CLASS_PLANNED || (s->config.fenced &&
		hd_frame_is_fenced(frame->type));
	if (!fenced || frame->epoch == s->epoch || frame->epoch == s->next)
		return ACCEPT;
	if (frame->epoch > s->next)
		return HOLD;
	s->stats.dropped_stale++;
	hd_put32(epoch, s->epoch);
	/* A ring without space: the next stale frame is answered. */
	if (!s->stale_told)
		s->stale_told = out_tell(s, HD_CONTROL_STALE, 0, epoch, sizeof epoch) == HD_OK;
	return DROP;
}

enum hd_close in_agree(struct hd_stream *s, struct hd_diag *diag)
{
	s->held = HD_HELD_NOT;            /* what holds it does so again when it is looked at */
	if (s->open || !s->has_channel || !s->peer_has_epoch || s->peer_epoch != s->epoch)
		return HD_CLOSE_NONE;
	if (!hd_hash_same(s->plan, s->peer_plan)) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "worker %u runs another plan in epoch %u", s->config.peer,
			s->epoch);
		return HD_CLOSE_PLAN;
	}
	s->open = true;
	out_open(s);
	return HD_CLOSE_NONE;
}

/* ---- frames with a small payload ---- */

static enum hd_close got_epoch(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_epoch_payload epoch;

	if (hd_epoch_get(payload, &epoch, diag))
		return HD_CLOSE_FRAME;
	if (s->peer_has_epoch && s->frame.epoch <= s->peer_epoch)
		return breach(s, HD_CLOSE_ORDER, diag, "an epoch that is not later than the last");
	s->peer_has_epoch = true;
	s->peer_epoch = s->frame.epoch;
	s->peer_plan = epoch.plan;
	drop_planned(s, s->peer_epoch);
	return in_agree(s, diag);
}

/* Which grant, expectation or message an OPEN is for; nothing is changed before all is checked. */
static enum hd_close open_planned(struct hd_stream *s, const struct hd_open_payload *open,
	struct hd_diag *diag)
{
	uint32_t at = s->frame.epoch == s->epoch ? in_row_find(s->in_rows, s->n_in_rows, open->transfer) :
		NONE32;

	if (at == NONE32)
		return breach(s, HD_CLOSE_STREAM, diag, "a transfer that the plan has not");
	struct in_row *row = &s->in_rows[at];
	if (open->total != row->bytes)
		return breach(s, HD_CLOSE_STREAM, diag, "a transfer of another length than the plan's");
	if (!row->granted)
		return breach(s, HD_CLOSE_STREAM, diag, "a transfer without a grant");
	if (!row->n_posts) {
		s->held = HD_HELD_POST;
		return HD_CLOSE_NONE;
	}
	row->granted--;
	row->under_way++;
	row->opened++;
	*incoming_add(s) = (struct incoming){ .stream = s->frame.stream, .kind = HD_KIND_PLANNED,
		.class = HD_CLASS_PLANNED, .row = at,
		.epoch = s->epoch, .total = open->total, .flow = open->flow, .step = s->frame.step,
		.buffer = row->posts[0].buffer,
		.posted_ns = row->posts[0].at_ns, .priority = s->frame.priority };
	memmove(row->posts, row->posts + 1, --row->n_posts * sizeof *row->posts);
	s->least_priority = s->frame.priority < s->least_priority ? s->frame.priority : s->least_priority;
	return HD_CLOSE_NONE;
}

static enum hd_close open_bulk(struct hd_stream *s, const struct hd_open_payload *open, struct hd_diag *diag)
{
	struct expected *expected = expected_find(s, open->request);

	if (!expected)
		return breach(s, HD_CLOSE_STREAM, diag, "an answer that was not asked for");
	if (!open->total || open->total > expected->cap)
		return breach(s, HD_CLOSE_STREAM, diag, "an answer longer than there was asked for");
	for (uint32_t i = 0; i < s->n_incoming; i++)
		if (s->incoming[s->order[i]].kind == HD_KIND_BULK &&
			s->incoming[s->order[i]].request == open->request)
			return breach(s, HD_CLOSE_STREAM, diag, "an answer given twice");
	if (expected->refused) {
		expected->used = false;
		return out_note(s, (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
			.stream = s->frame.stream, .reason = HD_CANCEL_NOT_NEEDED }) ? HD_CLOSE_NONE :
			breach(s, HD_CLOSE_STREAM, diag, "more streams to cancel than may be under way");
	}
	*incoming_add(s) = (struct incoming){ .stream = s->frame.stream, .kind = HD_KIND_BULK,
		.class = HD_CLASS_BULK, .request = open->request,
		.epoch = s->frame.epoch, .total = open->total, .flow = open->flow, .step = s->frame.step,
		.buffer = expected->buffer,
		.posted_ns = expected->at_ns, .priority = s->frame.priority };
	return HD_CLOSE_NONE;
}

static enum hd_close open_control(struct hd_stream *s, const struct hd_open_payload *open,
	struct hd_diag *diag)
{
	if (open->total > HD_TELL_MAX || open->flow > UINT32_MAX)
		return breach(s, HD_CLOSE_STREAM, diag, "a message that is too long");
	for (uint32_t i = 0; i < s->n_incoming; i++)
		if (s->incoming[s->order[i]].kind == HD_KIND_CONTROL)
			return breach(s, HD_CLOSE_STREAM, diag, "a message inside another");
	*incoming_add(s) = (struct incoming){ .stream = s->frame.stream, .kind = HD_KIND_CONTROL,
		.class = HD_CLASS_CONTROL, .epoch = s->frame.epoch,
		.control_id = (uint32_t)open->flow, .total = open->total, .step = s->frame.step,
		.buffer = s->message };
	return open->total ? HD_CLOSE_NONE : complete(s, s->n_incoming - 1, diag);
}

static const struct { uint8_t class; enum hd_close (*open)(struct hd_stream *s,
	const struct hd_open_payload *open, struct hd_diag *diag); } opens[] = {
	[HD_KIND_PLANNED] = { HD_CLASS_PLANNED, open_planned },
	[HD_KIND_CONTROL] = { HD_CLASS_CONTROL, open_control },
	[HD_KIND_BULK] = { HD_CLASS_BULK, open_bulk },
};

static enum hd_close got_open(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_open_payload open;

	if (hd_open_get(payload, &open, diag))
		return HD_CLOSE_FRAME;
	if (s->frame.stream <= s->highest)
		return breach(s, HD_CLOSE_STREAM, diag, "a number that was used before");
	if (s->frame.class != opens[open.kind].class || (open.kind == HD_KIND_PLANNED) !=
		(open.transfer != HD_TRANSFER_NONE) ||
	    (open.request && open.kind != HD_KIND_BULK))
		return breach(s, HD_CLOSE_STREAM, diag, "a kind that does not fit its class");
	if (s->n_incoming == HD_STREAMS_OPEN)
		return breach(s, HD_CLOSE_STREAM, diag, "more streams than may be under way");
	uint32_t was = s->highest;
	s->highest = s->frame.stream;
	enum hd_close why = opens[open.kind].open(s, &open, diag);
	if (s->held)
		s->highest = was;         /* comes here again when it is posted */
	return why;
}

static enum hd_close got_cancel(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_cancel_payload cancel;

	if (hd_cancel_get(payload, &cancel, diag))
		return HD_CLOSE_FRAME;
	out_cancelled_by_peer(s, s->frame.stream);
	return HD_CLOSE_NONE;
}

/* The grant comes back: its buffer is posted again, before the others. */
static void post_again(struct hd_stream *s, const struct incoming *in)
{
	struct in_row *row = &s->in_rows[in->row];

	assert(row->n_posts < HD_GRANTS_MAX);      /* the stream held one of the places */
	memmove(row->posts + 1, row->posts, row->n_posts++ * sizeof *row->posts);
	row->posts[0] = (struct posted){ in->buffer, in->posted_ns };
	if (row->n_posts > row->granted + row->owed)
		in_owe_slots(s, in->row, 1);
}

static enum hd_close got_cancelled(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_cancelled_payload cancelled;
	uint32_t at = incoming_find(s, s->frame.stream);

	if (hd_cancelled_get(payload, &cancelled, diag))
		return HD_CLOSE_FRAME;
	if (s->frame.stream > s->highest)
		return breach(s, HD_CLOSE_STREAM, diag, "a stream that was never opened");
	if (at == NONE32)
		return HD_CLOSE_NONE;
	if (s->incoming[s->order[at]].class != s->frame.class)
		return breach(s, HD_CLOSE_STREAM, diag, "a class that is not the stream's");
	struct incoming in = incoming_drop(s, at);
	if (in.kind == HD_KIND_PLANNED)
		post_again(s, &in);
	else
		report(s, &in, HD_E_STALE);
	return HD_CLOSE_NONE;
}

static enum hd_close got_prio(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	(void)payload;
	if (s->frame.stream ? s->frame.step || s->frame.offset : s->frame.class != HD_CLASS_PLANNED ||
		!s->frame.step)
		return breach(s, HD_CLOSE_FRAME, diag, "advice on a stream and a transfer, or on neither");
	if (!s->frame.stream)
		return s->frame.epoch == s->epoch && s->has_channel ? out_prio_of(s, s->frame.offset,
			s->frame.step, s->frame.priority, diag) : HD_CLOSE_NONE;
	out_prio(s, s->frame.stream, s->frame.priority);
	return HD_CLOSE_NONE;
}

static enum hd_close got_grant(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_grant_payload grant;

	if (hd_grant_get(payload, &grant, diag))
		return HD_CLOSE_FRAME;
	if (!s->open || s->frame.epoch != s->epoch)
		return breach(s, HD_CLOSE_ORDER, diag, "a grant before both ends are in the epoch");
	return out_grant(s, &grant, diag);
}

static enum hd_close got_credit(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_credit_payload credit;

	if (hd_credit_get(payload, &credit, diag))
		return HD_CLOSE_FRAME;
	return out_credit(s, s->frame.class, credit.bytes, diag);
}

static enum hd_close got_ping(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_ping_payload ping;

	if (hd_ping_get(payload, &ping, diag))
		return HD_CLOSE_FRAME;
	s->pong_due = true;               /* of several unanswered ones the last is answered */
	s->pong_t1 = ping.t1;
	s->pong_t2 = stamp(s);
	return HD_CLOSE_NONE;
}

static enum hd_close got_pong(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_pong_payload pong;

	if (hd_pong_get(payload, &pong, diag))
		return HD_CLOSE_FRAME;
	struct hd_probe probe = { s->config.peer, pong.t1, pong.t2, pong.t3, stamp(s) };
	s->events.probed(s->events.self, &probe);
	return HD_CLOSE_NONE;
}

static enum hd_close got_bye(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	char text[HD_BYE_TEXT + 1] = "";

	/* What a peer says is shown to people: only what prints. */
	for (uint32_t i = 4; i < s->frame.len; i++)
		text[i - 4] = payload[i] >= ' ' && payload[i] < 127 ? (char)payload[i] : '?';
	enum hd_close why = hd_close_from(hd_get32(payload));
	(void)!hd_fail(diag, HD_E_PEERLOST, "worker %u closed: %s%s%s", s->config.peer, hd_close_text(why),
		*text ? ": " : "", text);
	return why;
}

static enum hd_close got_greeting(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	(void)payload;
	return breach(s, HD_CLOSE_ORDER, diag, "a second greeting");
}

static enum hd_close (*const handlers[])(struct hd_stream *s, const uint8_t *payload,
	struct hd_diag *diag) = {
	[HD_FRAME_HELLO] = got_greeting, [HD_FRAME_WELCOME] = got_greeting, [HD_FRAME_EPOCH] = got_epoch,
		[HD_FRAME_OPEN] = got_open,
	[HD_FRAME_CANCEL] = got_cancel, [HD_FRAME_CANCELLED] = got_cancelled, [HD_FRAME_PRIO] = got_prio,
	[HD_FRAME_GRANT] = got_grant,
	[HD_FRAME_CREDIT] = got_credit, [HD_FRAME_PING] = got_ping, [HD_FRAME_PONG] = got_pong,
	[HD_FRAME_BYE] = got_bye,
};

/* A stale OPEN: its number counts, and if it answers a request, that one fails. */
static enum hd_close drop_small(struct hd_stream *s, const uint8_t *payload, struct hd_diag *diag)
{
	struct hd_open_payload open;

	if (s->frame.type != HD_FRAME_OPEN)
		return HD_CLOSE_NONE;
	if (hd_open_get(payload, &open, diag))
		return HD_CLOSE_FRAME;
	if (s->frame.stream <= s->highest)
		return breach(s, HD_CLOSE_STREAM, diag, "a number that was used before");
	s->highest = s->frame.stream;
	struct expected *expected = open.kind == HD_KIND_BULK ? expected_find(s, open.request) : NULL;
	if (!expected)
		return HD_CLOSE_NONE;
	if (!out_note(s, (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
		.stream = s->frame.stream, .reason = HD_CANCEL_EPOCH }))
		return breach(s, HD_CLOSE_STREAM, diag, "more streams to cancel than may be under way");
	if (expected->refused) {
		expected->used = false;
		return HD_CLOSE_NONE;
	}
	report(s, &(struct incoming){ .kind = HD_KIND_BULK, .request = open.request, .step = s->frame.step,
		.buffer = expected->buffer,
		.posted_ns = expected->at_ns }, HD_E_STALE);
	return HD_CLOSE_NONE;
}

/* ---- DATA ---- */

static enum hd_close judge_data(struct hd_stream *s, const struct incoming *in, struct hd_diag *diag)
{
	const struct hd_frame *frame = &s->frame;

	if (frame->class != in->class || frame->step != in->step ||
		(in->kind == HD_KIND_PLANNED && frame->epoch != in->epoch))
		return breach(s, HD_CLOSE_STREAM, diag, "a class, step or epoch that is not the stream's");
	if (frame->offset != in->got)
		return breach(s, HD_CLOSE_STREAM, diag, "bytes that are not the next ones");
	if (frame->len > in->total - in->got)
		return breach(s, HD_CLOSE_STREAM, diag, "more bytes than were announced");
	if (!(frame->flags & HD_FRAME_LAST) != (frame->len != in->total - in->got))
		return breach(s, HD_CLOSE_STREAM, diag, "the mark of the last bytes at the wrong place");
	return HD_CLOSE_NONE;
}

/* Bulk that the fence cuts off: its sender stops, its request fails. */
static enum hd_close cut_off(struct hd_stream *s, uint32_t at, struct hd_diag *diag)
{
	struct incoming in = incoming_drop(s, at);

	if (in.kind != HD_KIND_BULK)
		return HD_CLOSE_NONE;
	if (!out_note(s, (struct note){ .type = HD_FRAME_CANCEL, .class = HD_CLASS_BULK,
		.stream = in.stream, .reason = HD_CANCEL_EPOCH }))
		return breach(s, HD_CLOSE_STREAM, diag, "more streams to cancel than may be under way");
	report(s, &in, HD_E_STALE);
	return HD_CLOSE_NONE;
}

static enum hd_close begin_data(struct hd_stream *s, bool stale, struct hd_diag *diag)
{
	uint32_t at = incoming_find(s, s->frame.stream);

	if (s->frame.stream > s->highest && !stale)
		return breach(s, HD_CLOSE_STREAM, diag, "a stream that was never opened");
	if (s->frame.class != HD_CLASS_PLANNED) {
		if (s->frame.len > s->window[s->frame.class])
			return breach(s, HD_CLOSE_CREDIT, diag, "more bytes than there was credit for");
		s->window[s->frame.class] -= s->frame.len;
	}
	s->where = AT_DATA;
	s->left = s->frame.len;
	s->crc = 0;
	s->drops = stale || at == NONE32;
	s->stats.dropped_cancelled += !stale && at == NONE32;
	if (s->drops)
		return at == NONE32 ? HD_CLOSE_NONE : cut_off(s, at, diag);
	struct incoming *in = &s->incoming[s->order[at]];
	enum hd_close why = judge_data(s, in, diag);
	if (why)
		return why;
	if (!in->got)
		in->first_ns = s->now;
	s->dest = in->buffer + in->got;
	return HD_CLOSE_NONE;
}

/* n bytes of the payload have reached `dest`, or nothing. */
static void data_came(struct hd_stream *s, size_t n, const uint8_t *bytes)
{
	if (s->frame.flags & HD_FRAME_CRC)
		s->crc = hd_crc32c(s->crc, bytes, n);
	s->owed_credit[s->frame.class] += n;      /* planned ones need none: they have grants */
	s->stats.bytes_received += n;
	s->left -= (uint32_t)n;
}

static enum hd_close end_data(struct hd_stream *s, struct hd_diag *diag)
{
	s->where = AT_HEADER;
	if (s->crc != s->frame.payload_crc)       /* 0 both, where none belongs */
		return breach(s, HD_CLOSE_CHECKSUM, diag, "the checksum of the payload is wrong");
	if (s->drops)
		return HD_CLOSE_NONE;
	uint32_t at = incoming_find(s, s->frame.stream);
	struct incoming *in = &s->incoming[s->order[at]];
	in->got += s->frame.len;
	in->chunks++;
	return in->got == in->total ? complete(s, at, diag) : HD_CLOSE_NONE;
}

/* ---- bytes ---- */

size_t hd_stream_in(struct hd_stream *s, struct hd_vec vec[2])
{
	if (s->held || s->doomed)
		return 0;
	if (s->left) {                    /* of DATA alone */
		vec[0] = s->drops ? (struct hd_vec){ s->drain, s->left < DRAIN_CAP ? s->left : DRAIN_CAP } :
			(struct hd_vec){ s->dest, s->left };
		vec[1] = (struct hd_vec){ s->stage, STAGE_BESIDE };
		s->stage_at = s->stage_len = 0;
		return 2;
	}
	memmove(s->stage, s->stage + s->stage_at, s->stage_len - s->stage_at);
	s->stage_len -= s->stage_at;
	s->stage_at = 0;
	vec[0] = (struct hd_vec){ s->stage + s->stage_len, STAGE_CAP - s->stage_len };
	return 1;
}

static enum hd_close at_header(struct hd_stream *s, bool *more, struct hd_diag *diag)
{
	if (s->stage_len - s->stage_at < HD_FRAME_HEADER) {
		*more = false;
		return HD_CLOSE_NONE;
	}
	if (hd_frame_get(s->stage + s->stage_at, &s->frame, diag))
		return HD_CLOSE_FRAME;
	if (s->frame.len && s->config.payload_crc != !!(s->frame.flags & HD_FRAME_CRC))
		return breach(s, HD_CLOSE_FRAME, diag,
			"a payload with a checksum where none belongs, or without");
	enum verdict verdict = fence(s, &s->frame);
	if (verdict == HOLD) {
		s->held = HD_HELD_AHEAD;
		s->held_epoch = s->frame.epoch;
		*more = false;
		return HD_CLOSE_NONE;
	}
	s->stage_at += HD_FRAME_HEADER;
	s->stats.frames_received++;
	if (s->frame.type == HD_FRAME_DATA)
		return begin_data(s, verdict == DROP, diag);
	s->where = AT_SMALL;
	s->drops = verdict == DROP;
	return HD_CLOSE_NONE;
}

static enum hd_close at_small(struct hd_stream *s, bool *more, struct hd_diag *diag)
{
	const uint8_t *payload = s->stage + s->stage_at;

	if (s->stage_len - s->stage_at < s->frame.len) {
		*more = false;
		return HD_CLOSE_NONE;
	}
	if (s->frame.flags & HD_FRAME_CRC && hd_crc32c(0, payload, s->frame.len) != s->frame.payload_crc)
		return breach(s, HD_CLOSE_CHECKSUM, diag, "the checksum of the payload is wrong");
	/* Between header and payload the epoch may have changed here. */
	s->drops = s->drops || fence(s, &s->frame) == DROP;
	s->stage_at += s->frame.len;
	s->where = AT_HEADER;
	enum hd_close why = s->drops ? drop_small(s, payload, diag) : handlers[s->frame.type](s, payload,
		diag);
	if (s->held == HD_HELD_POST) {    /* by this very frame, and for nothing else */
		assert(!why);
		s->stage_at -= s->frame.len;
		s->where = AT_SMALL;
		*more = false;
	}
	return why;
}

static enum hd_close at_data(struct hd_stream *s, bool *more, struct hd_diag *diag)
{
	size_t here = s->stage_len - s->stage_at, n = here < s->left ? here : s->left;

	if (!s->drops) {
		memcpy(s->dest, s->stage + s->stage_at, n);
		s->dest += n;
	}
	data_came(s, n, s->stage + s->stage_at);
	s->stage_at += n;
	if (!s->left)
		return end_data(s, diag);
	*more = false;
	return HD_CLOSE_NONE;
}

enum hd_close in_process(struct hd_stream *s, struct hd_diag *diag)
{
	static enum hd_close (*const steps[])(struct hd_stream *s, bool *more, struct hd_diag *diag) = {
		[AT_HEADER] = at_header, [AT_SMALL] = at_small, [AT_DATA] = at_data };
	enum hd_close why = HD_CLOSE_NONE;

	for (bool more = !s->held; more && !why && !s->doomed;)
		why = steps[s->where](s, &more, diag);
	return why ? why : s->doomed;
}

enum hd_close hd_stream_read(struct hd_stream *s, size_t len, int64_t now, struct hd_diag *diag)
{
	s->now = now;
	if (s->left) {
		size_t most = s->drops && s->left > DRAIN_CAP ? DRAIN_CAP : s->left,
			n = len < most ? len : most;
		data_came(s, n, s->drops ? s->drain : s->dest);
		if (!s->drops)
			s->dest += n;
		s->stage_len = len - n;
	} else
		s->stage_len += len;
	assert(s->stage_len <= STAGE_CAP);
	return in_process(s, diag);
}
