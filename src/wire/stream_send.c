#include "wire/stream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "trace/event.h"
#include "wire/stream_int.h"

/* What is asked of this end: streams, answers, messages; and what of them may go. */

/* ---- queues and heaps of jobs ---- */

void out_queue_put(struct hd_stream *s, struct queue *q, uint32_t job)
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

bool out_before(const struct out_job *a, const struct out_job *b)
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

	for (; at && out_before(&s->jobs[job], &s->jobs[h->at[(at - 1) / 2]]); at = (at - 1) / 2)
		heap_set(s, h, at, h->at[(at - 1) / 2]);
	for (uint32_t child; (child = 2 * at + 1) < h->n; at = child) {
		child += child + 1 < h->n && out_before(&s->jobs[h->at[child + 1]], &s->jobs[h->at[child]]);
		if (!out_before(&s->jobs[h->at[child]], &s->jobs[job]))
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

void out_heap_drop(struct hd_stream *s, struct heap *h, uint32_t job)
{
	uint32_t at = s->jobs[job].heap_at;

	if (at == --h->n)
		return;
	heap_set(s, h, at, h->at[h->n]);
	heap_sift(s, h, at);
}

uint8_t out_class_of(const struct out_job *job)
{
	return job->kind == HD_KIND_PLANNED ? HD_CLASS_PLANNED : HD_CLASS_BULK;
}

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
	heap_put(s, &s->heap[out_class_of(&s->jobs[job])], job);
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
		out_queue_put(s, &s->out_rows[row].waiting, at);
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
		out_heap_drop(s, &s->heap[out_class_of(job)], at);
	job->state = JOB_STOPPED;
	job->sent.err = HD_E_STALE;
	s->last_chunk_of = s->last_chunk_of == at ? NONE32 : s->last_chunk_of;
	out_queue_put(s, &s->ending, at);
	if (!job->stream || !tell)
		return;
	s->n_open[out_class_of(job)]--;
	bool noted = out_note(s, (struct note){ .type = HD_FRAME_CANCELLED, .stream = job->stream,
		.class = out_class_of(job), .sent = job->at });
	assert(noted);        /* no more than HD_STREAMS_OPEN are open, and each is stopped once */
	(void)noted;
}

/* Out of the middle of a row's queue. */
static void unqueue(struct hd_stream *s, struct queue *q, uint32_t gone)
{
	struct queue kept = { NONE32, NONE32 };

	for (uint32_t at; (at = queue_take(s, q)) != NONE32;)
		if (at != gone)
			out_queue_put(s, &kept, at);
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
		heap_sift(s, &s->heap[out_class_of(&s->jobs[at])], s->jobs[at].heap_at);
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
			out_queue_put(s, &later, at);
			continue;
		}
		struct hd_sent sent = s->jobs[at].sent;
		s->jobs[at].state = JOB_FREE;
		s->jobs[at].next = s->free_job;
		s->free_job = at;
		s->events.sent(s->events.self, &sent);
	}
	for (uint32_t at; (at = queue_take(s, &later)) != NONE32;)
		out_queue_put(s, &s->ending, at);
}

void hd_stream_lost(struct hd_stream *s)
{
	s->bye_committed = true;          /* nothing new is taken */
	for (uint32_t i = 0; i < s->fresh_job; i++) {
		struct out_job *job = &s->jobs[i];
		if (job->state == JOB_FREE)
			continue;
		if (job->state != JOB_STOPPED)
			out_queue_put(s, &s->ending, i);
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
			out_before(job, &s->jobs[best])))
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
size_t out_ring_after(const struct hd_stream *s, size_t at, uint32_t space)
{
	at += space;
	return s->ring_wrap && at == s->ring_wrap ? 0 : at;
}

void out_ring_drop(struct hd_stream *s)
{
	struct ring_msg msg;

	memcpy(&msg, s->ring + s->ring_first, sizeof msg);
	size_t after = out_ring_after(s, s->ring_first, msg.space);
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
