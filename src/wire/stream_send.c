#include "wire/stream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "base/le.h"
#include "trace/event.h"
#include "wire/stream_int.h"

enum {
	PIECE_LEAST = 4096,               /* a frame is not filled up with less of a longer stream */
	/* goodput is looked at over this or more, and so many bytes or more */
	SAMPLE_NS = 2000000,
	SAMPLE_BYTES = 64 << 10,
};

/* ---- queues and heaps of jobs ---- */

static void queue_put(struct hd_stream *s, struct queue *q, uint32_t job)
{
	s->jobs[job].next = NONE32;
	if (q->first == NONE32)
		q->first = job;
	else
		s->jobs[q->last].next = job;
	q->last = job;
}

static uint32_t queue_take(struct hd_stream *s, struct queue *q)
{
	uint32_t job = q->first;

	if (job != NONE32)
		q->first = s->jobs[job].next;
	return job;
}

static bool before(const struct out_job *a, const struct out_job *b)
{
	return a->priority != b->priority ? a->priority < b->priority : a->arrival < b->arrival;
}

static void heap_set(struct hd_stream *s, struct heap *h, uint32_t at, uint32_t job)
{
	h->at[at] = job;
	s->jobs[job].heap_at = at;
}

static void heap_sift(struct hd_stream *s, struct heap *h, uint32_t at)
{
	uint32_t job = h->at[at];

	for (; at && before(&s->jobs[job], &s->jobs[h->at[(at - 1) / 2]]); at = (at - 1) / 2)
		heap_set(s, h, at, h->at[(at - 1) / 2]);
	for (uint32_t child; (child = 2 * at + 1) < h->n; at = child) {
		child += child + 1 < h->n && before(&s->jobs[h->at[child + 1]], &s->jobs[h->at[child]]);
		if (!before(&s->jobs[h->at[child]], &s->jobs[job]))
			break;
		heap_set(s, h, at, h->at[child]);
	}
	heap_set(s, h, at, job);
}

static void heap_put(struct hd_stream *s, struct heap *h, uint32_t job)
{
	heap_set(s, h, h->n++, job);
	heap_sift(s, h, h->n - 1);
}

static void heap_drop(struct hd_stream *s, struct heap *h, uint32_t job)
{
	uint32_t at = s->jobs[job].heap_at;

	if (at == --h->n)
		return;
	heap_set(s, h, at, h->at[h->n]);
	heap_sift(s, h, at);
}

static uint8_t class_of(const struct out_job *job) { return job->kind == HD_KIND_PLANNED ? HD_CLASS_PLANNED :
	HD_CLASS_BULK; }

/* ---- jobs ---- */

void out_init(struct hd_stream *s)
{
	s->free_job = NONE32;
	s->ending = (struct queue){ NONE32, NONE32 };
	s->last_chunk_of = NONE32;
	s->credit[HD_CLASS_CONTROL] = HD_CREDIT_CONTROL;
	s->credit[HD_CLASS_BULK] = HD_CREDIT_BULK;
	s->chunk = HD_CHUNK_FIRST;
}

/* Nothing more is taken. */
static bool says_bye(const struct hd_stream *s) { return s->bye_due || s->bye_committed; }

static enum hd_err job_new(struct hd_stream *s, struct out_job made, int64_t now, uint32_t *at,
	struct hd_diag *diag)
{
	if (s->free_job == NONE32 && s->fresh_job == s->config.streams_cap)
		return HD_E_AGAIN;
	if (says_bye(s))
		return hd_fail(diag, HD_E_PEERLOST, "the connection to worker %u is being closed",
			s->config.peer);
	if (s->free_job != NONE32) {
		*at = s->free_job;
		s->free_job = s->jobs[*at].next;
	} else
		*at = s->fresh_job++;
	made.arrival = ++s->arrivals;
	made.sent.worker = s->config.peer;
	made.sent.len = made.len;
	made.sent.queued_ns = now;
	s->jobs[*at] = made;
	return HD_OK;
}

static void make_ready(struct hd_stream *s, uint32_t job, int64_t now)
{
	s->jobs[job].state = JOB_READY;
	s->jobs[job].sent.gate_ns = now;
	heap_put(s, &s->heap[class_of(&s->jobs[job])], job);
}

enum hd_err hd_stream_send(struct hd_stream *s, const struct hd_send *send, int64_t now, struct hd_diag *diag)
{
	uint32_t row = s->has_channel ? out_row_find(s->out_rows, s->n_out_rows, send->transfer) : NONE32,
		at = NONE32;

	if (row == NONE32)
		return hd_fail(diag, HD_E_INVAL, "transfer %u is not one of those to worker %u in epoch %u",
			send->transfer, s->config.peer, s->epoch);
	if (send->len != s->out_rows[row].bytes)
		return hd_fail(diag, HD_E_INVAL,
			"transfer %u to worker %u has %llu bytes in the plan, %llu here", send->transfer,
			s->config.peer,
			(unsigned long long)s->out_rows[row].bytes, (unsigned long long)send->len);
	enum hd_err err = job_new(s, (struct out_job){ .state = JOB_WAITING, .kind = HD_KIND_PLANNED,
		.priority = send->priority, .row = row,
		.transfer = send->transfer, .len = send->len, .step = send->step, .bytes = send->bytes,
		.sent = { .token = send->token, .kind = HD_KIND_PLANNED, .transfer = send->transfer,
		.flow = hd_event_flow(s->epoch, send->step, send->transfer, s->config.self,
		s->config.peer) } },
		now, &at, diag);
	if (err)
		return err;
	if (s->out_rows[row].wanted)
		s->jobs[at].priority = s->out_rows[row].wanted_priority;
	s->out_rows[row].wanted = false;
	if (s->out_rows[row].granted) {
		s->out_rows[row].granted--;
		make_ready(s, at, now);
	} else
		queue_put(s, &s->out_rows[row].waiting, at);
	return HD_OK;
}

enum hd_err hd_stream_answer(struct hd_stream *s, const struct hd_answer *answer, int64_t now,
	struct hd_diag *diag)
{
	uint32_t at = NONE32;

	if (!answer->len)
		return hd_fail(diag, HD_E_INVAL, "an answer to worker %u has 0 bytes; say so by a message",
			s->config.peer);
	enum hd_err err = job_new(s, (struct out_job){ .kind = HD_KIND_BULK, .priority = answer->priority,
		.transfer = HD_TRANSFER_NONE, .len = answer->len,
		.step = answer->step, .request = answer->request, .bytes = answer->bytes,
		.sent = { .token = answer->token, .kind = HD_KIND_BULK,
		.flow = hd_event_flow(s->epoch, answer->step, answer->request, s->config.self,
		s->config.peer) } },
		now, &at, diag);
	if (!err)
		make_ready(s, at, now);
	return err;
}

/* Ends a job that waits or is ready. The receiver hears of it, unless an EPOCH frame will say the same. */
static void stop(struct hd_stream *s, uint32_t at, bool tell)
{
	struct out_job *job = &s->jobs[at];

	if (job->state == JOB_READY)
		heap_drop(s, &s->heap[class_of(job)], at);
	job->state = JOB_STOPPED;
	job->sent.err = HD_E_STALE;
	s->last_chunk_of = s->last_chunk_of == at ? NONE32 : s->last_chunk_of;
	queue_put(s, &s->ending, at);
	if (!job->stream || !tell)
		return;
	s->n_open[class_of(job)]--;
	bool noted = out_note(s, (struct note){ .type = HD_FRAME_CANCELLED, .stream = job->stream,
		.class = class_of(job), .sent = job->at });
	assert(noted);        /* no more than HD_STREAMS_OPEN are open, and each is stopped once */
	(void)noted;
}

/* Out of the middle of a row's queue. */
static void unqueue(struct hd_stream *s, struct queue *q, uint32_t gone)
{
	struct queue kept = { NONE32, NONE32 };

	for (uint32_t at; (at = queue_take(s, q)) != NONE32;)
		if (at != gone)
			queue_put(s, &kept, at);
	*q = kept;
}

void hd_stream_cancel(struct hd_stream *s, uint64_t token)
{
	for (uint32_t i = 0; i < s->fresh_job; i++) {
		struct out_job *job = &s->jobs[i];
		if ((job->state != JOB_WAITING && job->state != JOB_READY) || job->sent.token != token)
			continue;
		if (job->state == JOB_WAITING)
			unqueue(s, &s->out_rows[job->row].waiting, i);
		else if (job->kind == HD_KIND_PLANNED && !job->stream)
			/* its grant was not used; a waiting job gets it below */
			s->out_rows[job->row].granted++;
		stop(s, i, true);
		if (job->kind == HD_KIND_PLANNED)
			while (s->out_rows[job->row].granted &&
				s->out_rows[job->row].waiting.first != NONE32) {
				s->out_rows[job->row].granted--;
				make_ready(s, queue_take(s, &s->out_rows[job->row].waiting), s->now);
			}
	}
}

static void set_priority(struct hd_stream *s, uint32_t at, int32_t priority)
{
	s->jobs[at].priority = priority;
	if (s->jobs[at].state == JOB_READY)
		heap_sift(s, &s->heap[class_of(&s->jobs[at])], s->jobs[at].heap_at);
}

void hd_stream_rank(struct hd_stream *s, uint64_t token, int32_t priority)
{
	for (uint32_t i = 0; i < s->fresh_job; i++)
		if ((s->jobs[i].state == JOB_WAITING || s->jobs[i].state == JOB_READY) &&
			s->jobs[i].sent.token == token)
			set_priority(s, i, priority);
}

/* The job whose stream has this number and goes on; 0 is the number of none. */
static uint32_t begun(const struct hd_stream *s, uint32_t stream)
{
	for (uint32_t i = 0; stream && i < s->fresh_job; i++)
		if (s->jobs[i].state == JOB_READY && s->jobs[i].stream == stream)
			return i;
	return NONE32;
}

void out_cancelled_by_peer(struct hd_stream *s, uint32_t stream)
{
	uint32_t at = begun(s, stream);

	if (at != NONE32)
		stop(s, at, true);
}

void out_epoch(struct hd_stream *s)
{
	for (uint32_t i = 0; i < s->fresh_job; i++)
		if ((s->jobs[i].state == JOB_WAITING || s->jobs[i].state == JOB_READY) &&
			s->jobs[i].kind == HD_KIND_PLANNED)
			stop(s, i, false);
	s->n_out_rows = 0;
}

void out_report(struct hd_stream *s)
{
	struct queue later = { NONE32, NONE32 }, now = s->ending;

	s->ending = later;        /* callbacks may stop more */
	for (uint32_t at; (at = queue_take(s, &now)) != NONE32;) {
		if (s->jobs[at].committed) {
			queue_put(s, &later, at);
			continue;
		}
		struct hd_sent sent = s->jobs[at].sent;
		s->jobs[at].state = JOB_FREE;
		s->jobs[at].next = s->free_job;
		s->free_job = at;
		s->events.sent(s->events.self, &sent);
	}
	for (uint32_t at; (at = queue_take(s, &later)) != NONE32;)
		queue_put(s, &s->ending, at);
}

void hd_stream_lost(struct hd_stream *s)
{
	s->bye_committed = true;          /* nothing new is taken */
	for (uint32_t i = 0; i < s->fresh_job; i++) {
		struct out_job *job = &s->jobs[i];
		if (job->state == JOB_FREE)
			continue;
		if (job->state != JOB_STOPPED)
			queue_put(s, &s->ending, i);
		job->sent.err = job->state == JOB_STOPPED ? job->sent.err : HD_E_PEERLOST;
		job->state = JOB_STOPPED;
		job->committed = 0;
	}
	out_report(s);
}

/* ---- grants ---- */

static void add_grants(struct hd_stream *s, struct out_row *row, uint32_t count)
{
	row->granted += count;
	while (row->granted && row->waiting.first != NONE32) {
		row->granted--;
		make_ready(s, queue_take(s, &row->waiting), s->now);
	}
}

void out_open(struct hd_stream *s)
{
	for (uint32_t i = 0; i < s->n_out_rows; i++)
		add_grants(s, &s->out_rows[i], s->out_rows[i].grants);
}

enum hd_close out_grant(struct hd_stream *s, const struct hd_grant_payload *grant, struct hd_diag *diag)
{
	uint32_t row = out_row_find(s->out_rows, s->n_out_rows, grant->transfer);

	if (row == NONE32) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "a grant of transfer %u, which the plan has not",
			grant->transfer);
		return HD_CLOSE_STREAM;
	}
	if (grant->count > HD_GRANTS_MAX - s->out_rows[row].granted) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "%u more grants of transfer %u", grant->count,
			grant->transfer);
		return HD_CLOSE_CREDIT;
	}
	add_grants(s, &s->out_rows[row], grant->count);
	return HD_CLOSE_NONE;
}

enum hd_close out_credit(struct hd_stream *s, uint8_t class, uint64_t bytes, struct hd_diag *diag)
{
	uint64_t most = class == HD_CLASS_CONTROL ? HD_CREDIT_CONTROL : HD_CREDIT_BULK;

	if (bytes > most - s->credit[class]) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "%llu more bytes of credit", (unsigned long long)bytes);
		return HD_CLOSE_CREDIT;
	}
	s->credit[class] += bytes;
	return HD_CLOSE_NONE;
}

void out_prio(struct hd_stream *s, uint32_t stream, int32_t priority)
{
	uint32_t at = begun(s, stream);

	if (at != NONE32)
		set_priority(s, at, priority);
}

/* The job of a row that is its nth to be opened in this epoch; NONE32: none is queued. */
static uint32_t nth_of_row(const struct hd_stream *s, uint32_t row, uint64_t nth)
{
	uint32_t best = NONE32;

	for (uint32_t i = 0; i < s->fresh_job; i++) {
		const struct out_job *job = &s->jobs[i];
		if (job->state != JOB_READY || job->kind != HD_KIND_PLANNED || job->row != row)
			continue;
		if (job->stream ? job->nth == nth : s->out_rows[row].opened + 1 == nth && (best == NONE32 ||
			before(job, &s->jobs[best])))
			best = i;
	}
	return best != NONE32 || s->out_rows[row].opened + 1 != nth ? best : s->out_rows[row].waiting.first;
}

enum hd_close out_prio_of(struct hd_stream *s, uint64_t transfer, uint64_t nth, int32_t priority,
	struct hd_diag *diag)
{
	uint32_t row = transfer < NONE32 ? out_row_find(s->out_rows, s->n_out_rows, (uint32_t)transfer) :
		NONE32;

	if (row == NONE32 || nth > s->out_rows[row].opened + 1) {
		(void)!hd_fail(diag, HD_E_PROTOCOL, "advice on transfer %llu, which the plan has not, or not "
			"%llu times", (unsigned long long)transfer, (unsigned long long)nth);
		return HD_CLOSE_STREAM;
	}
	uint32_t at = nth_of_row(s, row, nth);
	if (at != NONE32)
		set_priority(s, at, priority);
	else if (nth == s->out_rows[row].opened + 1) {
		s->out_rows[row].wanted = true;
		s->out_rows[row].wanted_priority = priority;
	}
	return HD_CLOSE_NONE;
}

void out_forget_advice(struct hd_stream *s)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->n_notes; i++) {
		const struct note note = s->notes[(s->first_note + i) % NOTES];
		if (note.type != HD_FRAME_PRIO || note.stream)
			s->notes[(s->first_note + kept++) % NOTES] = note;
	}
	s->n_notes = kept;
}

bool out_note(struct hd_stream *s, struct note note)
{
	/* Advice leaves space for CANCEL, both for CANCELLED, which must find it. */
	uint32_t most = note.type == HD_FRAME_PRIO ? 1 : note.type == HD_FRAME_CANCEL ? 2 : NOTE_TYPES;

	if (s->n_notes >= most * HD_STREAMS_OPEN)
		return false;
	s->notes[(s->first_note + s->n_notes++) % NOTES] = note;
	return true;
}

/* ---- control messages ---- */

enum hd_err out_tell(struct hd_stream *s, uint32_t id, uint64_t step, const void *bytes, size_t len)
{
	struct ring_msg msg = { step, id, (uint32_t)len, (uint32_t)hd_round_up(sizeof msg + len,
		sizeof(uint64_t)) };

	if (!s->n_ring)
		s->ring_first = s->ring_end = s->ring_next = s->ring_wrap = 0;
	bool wrapped = s->ring_wrap != 0;
	if (!wrapped && TELL_RING - s->ring_end < msg.space) {
		if (s->ring_first < msg.space)
			return HD_E_AGAIN;
		s->ring_wrap = s->ring_end;
		if (s->ring_next == s->ring_end)
			s->ring_next = 0;
		s->ring_end = 0;
	} else if (wrapped && s->ring_first - s->ring_end < msg.space)
		return HD_E_AGAIN;
	memcpy(s->ring + s->ring_end, &msg, sizeof msg);
	if (len)
		memcpy(s->ring + s->ring_end + sizeof msg, bytes, len);
	s->ring_end += msg.space;
	s->n_ring++;
	s->n_msgs++;
	return HD_OK;
}

/* The next message of the ring after the one at `at`. */
static size_t ring_after(const struct hd_stream *s, size_t at, uint32_t space)
{
	at += space;
	return s->ring_wrap && at == s->ring_wrap ? 0 : at;
}

static void ring_drop(struct hd_stream *s)
{
	struct ring_msg msg;

	memcpy(&msg, s->ring + s->ring_first, sizeof msg);
	size_t after = ring_after(s, s->ring_first, msg.space);
	if (!after)
		s->ring_wrap = 0;
	s->ring_first = after;
	s->n_ring--;
}

enum hd_err hd_stream_tell(struct hd_stream *s, uint32_t id, uint64_t step, const void *bytes, size_t len,
	struct hd_diag *diag)
{
	if (id < HD_TELL_FIRST_ID || len > HD_TELL_MAX)
		return hd_fail(diag, HD_E_INVAL,
			"message %u of %zu bytes to worker %u; ids begin at %d and %d bytes are the most", id,
			len, s->config.peer,
			HD_TELL_FIRST_ID, HD_TELL_MAX);
	if (says_bye(s))
		return hd_fail(diag, HD_E_PEERLOST, "the connection to worker %u is being closed",
			s->config.peer);
	return out_tell(s, id, step, bytes, len);
}

void hd_stream_ping(struct hd_stream *s) { s->ping_due = true; }

void hd_stream_bye(struct hd_stream *s, enum hd_close why, const char *text)
{
	if (says_bye(s))
		return;
	s->bye_due = true;
	s->bye_why = why;
	snprintf(s->bye_text, sizeof s->bye_text, "%s", text);
}

/* ---- what goes next ---- */

static uint64_t stamp(struct hd_stream *s) { return s->config.stamp(s->config.stamp_self); }

/* Of bulk, and of what asks for it: a peer that has gone on to the decided epoch would drop what is said
 * in the present one. */
static uint32_t bulk_epoch(const struct hd_stream *s)
{
	return s->heard_epoch > s->epoch && s->heard_epoch <= s->next ? s->heard_epoch : s->epoch;
}

/* Adds a frame to an entry's head; its payload is `small` (of frame.len bytes, if not NULL) or lies in
 * bytes. */
static void put_frame(struct hd_stream *s, struct out_frame *entry, struct hd_frame frame,
	const uint8_t *small, const uint8_t *bytes)
{
	assert(entry->head_len + HD_FRAME_HEADER + (small ? frame.len : 0) <= HEAD_CAP);
	frame.epoch = frame.epoch ? frame.epoch : s->epoch;
	if (s->config.payload_crc && frame.len) {
		frame.flags |= HD_FRAME_CRC;
		frame.payload_crc = hd_crc32c(0, small ? small : bytes, frame.len);
	}
	hd_frame_put(&frame, entry->head + entry->head_len);
	entry->head_len += HD_FRAME_HEADER;
	if (small) {
		memcpy(entry->head + entry->head_len, small, frame.len);
		entry->head_len += frame.len;
	} else {
		entry->bytes = bytes;
		entry->len = frame.len;
	}
	s->stats.frames_sent++;
	s->stats.bytes_sent += frame.type == HD_FRAME_DATA ? frame.len : 0;
}

static struct out_frame *entry_new(struct hd_stream *s)
{
	assert(s->n_entries < ENTRIES);
	struct out_frame *entry = &s->entries[(s->first_entry + s->n_entries++) % ENTRIES];
	entry->bytes = NULL;
	entry->head_len = entry->len = entry->gone = 0;
	entry->job = NONE32;
	entry->ends_msg = entry->bye = false;
	return entry;
}

static void put_small(struct hd_stream *s, enum hd_frame_type type, uint8_t class, const uint8_t *payload,
	uint32_t len)
{
	put_frame(s, entry_new(s), (struct hd_frame){ .type = type, .class = class, .len = len }, payload,
		NULL);
}

static bool put_pong(struct hd_stream *s)
{
	uint8_t bytes[hd_pong_len];

	if (!s->pong_due)
		return false;
	s->pong_due = false;
	hd_pong_put(&(struct hd_pong_payload){ s->pong_t1, s->pong_t2, stamp(s) }, bytes);
	put_small(s, HD_FRAME_PONG, HD_CLASS_CONTROL, bytes, sizeof bytes);
	return true;
}

static bool put_ping(struct hd_stream *s)
{
	uint8_t bytes[hd_ping_len];

	if (!s->ping_due)
		return false;
	s->ping_due = false;
	hd_ping_put(&(struct hd_ping_payload){ stamp(s) }, bytes);
	put_small(s, HD_FRAME_PING, HD_CLASS_CONTROL, bytes, sizeof bytes);
	return true;
}

static bool put_epoch(struct hd_stream *s)
{
	uint8_t bytes[hd_epoch_len];

	if (!s->epoch_due)
		return false;
	s->epoch_due = false;
	s->n_open[HD_CLASS_PLANNED] = 0;
	hd_epoch_put(&(struct hd_epoch_payload){ s->plan }, bytes);
	put_small(s, HD_FRAME_EPOCH, HD_CLASS_CONTROL, bytes, sizeof bytes);
	return true;
}

static bool owes_credit(const struct hd_stream *s, uint8_t class)
{
	return s->owed_credit[class] >= (class == HD_CLASS_CONTROL ? HD_CREDIT_CONTROL : HD_CREDIT_BULK) / 4;
}

static bool put_credit(struct hd_stream *s)
{
	static const uint8_t classes[] = { HD_CLASS_CONTROL, HD_CLASS_BULK };
	uint8_t bytes[hd_credit_len];

	for (size_t i = 0; i < sizeof classes; i++)
		if (owes_credit(s, classes[i])) {
			hd_credit_put(&(struct hd_credit_payload){ s->owed_credit[classes[i]] }, bytes);
			s->window[classes[i]] += s->owed_credit[classes[i]];
			s->owed_credit[classes[i]] = 0;
			put_small(s, HD_FRAME_CREDIT, classes[i], bytes, sizeof bytes);
			return true;
		}
	return false;
}

static bool put_slot(struct hd_stream *s)
{
	uint8_t bytes[hd_grant_len];

	if (!s->open || !s->n_owing)
		return false;
	struct in_row *row = &s->in_rows[s->owing_rows[s->first_owing]];
	s->first_owing = (s->first_owing + 1) % s->n_in_rows;
	s->n_owing--;
	row->in_owing = false;
	hd_grant_put(&(struct hd_grant_payload){ row->id, row->owed }, bytes);
	row->granted += row->owed;
	row->owed = 0;
	put_small(s, HD_FRAME_GRANT, HD_CLASS_PLANNED, bytes, sizeof bytes);
	return true;
}

static bool put_note(struct hd_stream *s)
{
	uint8_t bytes[hd_cancelled_len];

	if (!s->n_notes)
		return false;
	struct note note = s->notes[s->first_note];
	s->first_note = (s->first_note + 1) % NOTES;
	s->n_notes--;
	struct hd_frame frame = { .type = note.type, .class = note.class, .stream = note.stream,
		.priority = note.priority, .step = note.nth, .offset = note.transfer };
	if (note.type != HD_FRAME_CANCELLED)
		frame.flags = HD_FRAME_MINE;
	if (note.type == HD_FRAME_CANCELLED) {
		hd_cancelled_put(&(struct hd_cancelled_payload){ note.sent }, bytes);
		frame.len = hd_cancelled_len;
	}
	if (note.type == HD_FRAME_CANCEL) {
		hd_cancel_put(&(struct hd_cancel_payload){ (uint32_t)note.reason }, bytes);
		frame.len = hd_cancel_len;
	}
	put_frame(s, entry_new(s), frame, bytes, NULL);
	return true;
}

static bool put_bye(struct hd_stream *s)
{
	uint8_t bytes[4 + HD_BYE_TEXT];
	size_t len = strlen(s->bye_text);

	if (!s->bye_due || s->n_msgs)
		return false;
	s->bye_due = false;
	s->bye_committed = true;
	hd_put32(bytes, (uint32_t)s->bye_why);
	memcpy(bytes + 4, s->bye_text, len);
	put_small(s, HD_FRAME_BYE, HD_CLASS_CONTROL, bytes, (uint32_t)(4 + len));
	s->entries[(s->first_entry + s->n_entries - 1) % ENTRIES].bye = true;
	return true;
}

/* Small frames go before everything, the first of this list first. */
static bool put_next_small(struct hd_stream *s)
{
	static bool (*const puts[])(struct hd_stream *s) = { put_pong, put_ping, put_epoch, put_credit,
		put_note, put_slot, put_bye };

	for (size_t i = 0; i < sizeof puts / sizeof *puts; i++)
		if (puts[i](s))
			return true;
	return false;
}

/* `frame`: all but type and length. */
static void put_open(struct hd_stream *s, struct out_frame *entry, struct hd_frame frame,
	const struct hd_open_payload *open)
{
	uint8_t bytes[hd_open_len];

	hd_open_put(open, bytes);
	frame.type = HD_FRAME_OPEN;
	frame.len = hd_open_len;
	put_frame(s, entry, frame, bytes, NULL);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void commit_msg(struct hd_stream *s, uint64_t space)
{
	struct out_frame *entry = entry_new(s);
	struct ring_msg msg;
	const uint8_t *at = s->ring + s->ring_next;

	memcpy(&msg, at, sizeof msg);
	if (!s->msg_at) {
		s->msg_stream = ++s->last_stream;
		s->msg_epoch = msg.id >= HD_TELL_ASKS ? bulk_epoch(s) : 0;
		put_open(s, entry, (struct hd_frame){ .class = HD_CLASS_CONTROL, .epoch = s->msg_epoch,
			.stream = s->msg_stream, .step = msg.step },
			&(struct hd_open_payload){ HD_TRANSFER_NONE, HD_KIND_CONTROL, msg.len, msg.id, 0 });
	}
	uint32_t piece = (uint32_t)least(msg.len - s->msg_at, least(space, s->credit[HD_CLASS_CONTROL]));
	bool last = s->msg_at + piece == msg.len;
	if (piece)
		put_frame(s, entry, (struct hd_frame){ .type = HD_FRAME_DATA, .class = HD_CLASS_CONTROL,
			.flags = last ? HD_FRAME_LAST : 0,
			.epoch = s->msg_epoch, .stream = s->msg_stream, .step = msg.step,
			.offset = s->msg_at, .len = piece }, NULL,
			at + sizeof msg + s->msg_at);
	s->credit[HD_CLASS_CONTROL] -= piece;
	s->committed_bytes += piece;
	s->msg_at += piece;
	if (!last)
		return;
	entry->ends_msg = true;
	s->n_msgs--;
	s->msg_at = 0;
	s->ring_next = ring_after(s, s->ring_next, msg.space);
}

static void commit_job(struct hd_stream *s, uint32_t at, uint64_t space, int64_t now)
{
	struct out_job *job = &s->jobs[at];
	struct out_frame *entry = entry_new(s);
	uint8_t class = class_of(job);
	uint32_t epoch = class == HD_CLASS_BULK ? bulk_epoch(s) : 0;

	if (!job->stream) {
		job->stream = ++s->last_stream;
		job->sent.first_ns = now;
		s->n_open[class]++;
		if (class == HD_CLASS_PLANNED)
			job->nth = ++s->out_rows[job->row].opened;
		put_open(s, entry, (struct hd_frame){ .class = class, .epoch = epoch, .stream = job->stream,
			.step = job->step, .priority = job->priority },
			&(struct hd_open_payload){ job->transfer, (uint32_t)job->kind, job->len,
			job->sent.flow, job->request });
	}
	uint32_t piece = (uint32_t)least(job->len - job->at,
		class == HD_CLASS_BULK ? least(space, s->credit[class]) : space);
	bool last = job->at + piece == job->len;
	put_frame(s, entry, (struct hd_frame){ .type = HD_FRAME_DATA, .class = class,
		.flags = last ? HD_FRAME_LAST : 0, .epoch = epoch, .stream = job->stream,
		.step = job->step, .offset = job->at, .priority = job->priority, .len = piece }, NULL,
		job->bytes + job->at);
	entry->job = at;
	job->committed++;
	job->sent.chunks++;
	job->at += piece;
	s->committed_bytes += piece;
	if (class == HD_CLASS_BULK)
		s->credit[class] -= piece;
	if (s->last_chunk_of != NONE32 && s->last_chunk_of != at) {
		/* its end forgets it here */
		assert(s->jobs[s->last_chunk_of].state == JOB_READY);
		s->jobs[s->last_chunk_of].sent.preempted++;
		s->stats.preempted++;
	}
	s->last_chunk_of = at;
	if (last) {
		heap_drop(s, &s->heap[class], at);
		job->state = JOB_SPENT;
		s->n_open[class]--;
		s->last_chunk_of = NONE32;
	}
}

/* The most urgent that may go: with as many streams under way as there can be (one place is kept for
 * messages), one of those. */
static uint32_t most_urgent(const struct hd_stream *s, const struct heap *h)
{
	uint32_t best = NONE32;

	if (!h->n || s->jobs[h->at[0]].stream || s->n_open[HD_CLASS_PLANNED] + s->n_open[HD_CLASS_BULK] + 1 <
		HD_STREAMS_OPEN)
		return h->n ? h->at[0] : NONE32;
	for (uint32_t i = 0; i < h->n; i++)
		if (s->jobs[h->at[i]].stream && (best == NONE32 ||
			before(&s->jobs[h->at[i]], &s->jobs[best])))
			best = h->at[i];
	return best;
}

/* Another could have gone that is more urgent. */
static bool is_inverted(const struct hd_stream *s, uint32_t job, bool aged)
{
	const uint8_t class = class_of(&s->jobs[job]);

	return before(&s->jobs[s->heap[class].at[0]], &s->jobs[job]) ||
		(class == HD_CLASS_BULK && s->heap[HD_CLASS_PLANNED].n && !aged);
}

/* A message of no bytes needs no credit. */
static bool may_tell(const struct hd_stream *s)
{
	struct ring_msg next;

	if (!s->n_msgs)
		return false;
	memcpy(&next, s->ring + s->ring_next, sizeof next);
	return s->credit[HD_CLASS_CONTROL] || !next.len;
}

static bool commit_next(struct hd_stream *s, int64_t now)
{
	uint64_t space = s->chunk - s->committed_bytes;

	if (s->bye_committed)
		return false;
	if (put_next_small(s))
		return true;
	if (s->last_stream == UINT32_MAX) {
		s->doomed = HD_CLOSE_WORN;
		return false;
	}
	if (may_tell(s)) {
		commit_msg(s, space);
		return true;
	}
	uint32_t planned = most_urgent(s, &s->heap[HD_CLASS_PLANNED]);
	uint32_t bulk = s->credit[HD_CLASS_BULK] ? most_urgent(s, &s->heap[HD_CLASS_BULK]) : NONE32;
	bool aged = planned != NONE32 && bulk != NONE32 && s->debt >= (uint64_t)HD_AGE_SHARE * s->chunk;
	uint32_t job = planned == NONE32 || aged ? bulk : planned;
	if (job == NONE32)
		return false;
	uint64_t rest = s->jobs[job].len - s->jobs[job].at;
	if (rest > space && space < PIECE_LEAST)
		return false;
	s->stats.inverted += is_inverted(s, job, aged);
	if (bulk == NONE32)
		s->debt = 0;
	else if (aged) {
		s->debt -= HD_AGE_SHARE * least(least(rest, space), s->credit[HD_CLASS_BULK]);
		s->stats.aged++;
	} else if (job == planned)
		s->debt += least(rest, space);
	commit_job(s, job, space, now);
	return true;
}

bool hd_stream_has_out(const struct hd_stream *s)
{
	return s->n_entries || (!s->bye_committed && (s->pong_due || s->ping_due || s->epoch_due ||
		owes_credit(s, HD_CLASS_CONTROL) ||
		owes_credit(s, HD_CLASS_BULK) || s->n_notes || (s->open && s->n_owing) ||
		(s->bye_due && !s->n_msgs) ||
		may_tell(s) || s->heap[HD_CLASS_PLANNED].n ||
		(s->heap[HD_CLASS_BULK].n && s->credit[HD_CLASS_BULK])));
}

size_t hd_stream_out(struct hd_stream *s, int64_t now, struct hd_vec vec[HD_STREAM_VECS])
{
	size_t n = 0;

	while (s->n_entries < ENTRIES && s->committed_bytes < s->chunk && commit_next(s, now))
		;
	if (!s->n_entries)
		s->busy = false;
	else if (!s->busy) {
		s->busy = true;
		s->busy_ns = now;
		s->busy_bytes = 0;
	}
	for (uint32_t i = 0; i < s->n_entries; i++) {
		struct out_frame *entry = &s->entries[(s->first_entry + i) % ENTRIES];
		size_t head = entry->gone < entry->head_len ? entry->head_len - entry->gone : 0;
		size_t body = entry->head_len + entry->len - entry->gone - head;
		if (head)
			vec[n++] = (struct hd_vec){ entry->head + entry->gone, head };
		if (body)
			vec[n++] = (struct hd_vec){ (void *)(entry->bytes + (entry->len - body)), body };
	}
	return n;
}

/* ---- what went ---- */

/* c = 2^floor(log2(B x 1 ms)), within its bounds. */
static void sample_goodput(struct hd_stream *s, size_t len, int64_t now)
{
	int64_t ns = now - s->busy_ns;

	s->busy_bytes += len;
	if (ns < SAMPLE_NS || s->busy_bytes < SAMPLE_BYTES)
		return;
	uint64_t per_ms = s->busy_bytes * 1000000 / (uint64_t)ns;
	s->goodput = s->goodput ? (4 * s->goodput + per_ms) / 5 : per_ms;
	s->busy_ns = now;
	s->busy_bytes = 0;
	uint64_t within = s->goodput < HD_CHUNK_LEAST ? HD_CHUNK_LEAST : s->goodput > HD_CHUNK_MOST ?
		HD_CHUNK_MOST : s->goodput;
	s->chunk = UINT32_C(1) << hd_floor_log2(within);
}

static void entry_written(struct hd_stream *s, const struct out_frame *entry, int64_t now)
{
	if (entry->bye)
		s->bye_written = true;
	if (entry->ends_msg)
		ring_drop(s);
	if (entry->job == NONE32)
		return;
	struct out_job *job = &s->jobs[entry->job];
	if (--job->committed || job->state != JOB_SPENT)
		return;
	job->sent.end_ns = now;
	job->state = JOB_STOPPED;        /* whole: its err is HD_OK */
	queue_put(s, &s->ending, entry->job);
}

void hd_stream_wrote(struct hd_stream *s, size_t len, int64_t now)
{
	s->now = now;
	sample_goodput(s, len, now);
	while (len) {
		assert(s->n_entries);
		struct out_frame *entry = &s->entries[s->first_entry];
		size_t left = entry->head_len + entry->len - entry->gone, n = len < left ? len : left;
		size_t head = entry->gone < entry->head_len ? entry->head_len - entry->gone : 0;
		s->committed_bytes -= n > head ? n - head : 0;
		entry->gone += n;
		len -= n;
		if (n < left)
			return;
		s->first_entry = (s->first_entry + 1) % ENTRIES;
		s->n_entries--;
		entry_written(s, entry, now);
	}
	out_report(s);
}
