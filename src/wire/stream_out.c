#include "wire/stream.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "base/le.h"
#include "wire/stream_int.h"

/* What goes next, as frames, and what has gone. */

enum {
	PIECE_LEAST = 4096,               /* a frame is not filled up with less of a longer stream */
	/* goodput is looked at over this or more, and so many bytes or more */
	SAMPLE_NS = 2000000,
	SAMPLE_BYTES = 64 << 10,
};

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
	s->ring_next = out_ring_after(s, s->ring_next, msg.space);
}

static void commit_job(struct hd_stream *s, uint32_t at, uint64_t space, int64_t now)
{
	struct out_job *job = &s->jobs[at];
	struct out_frame *entry = entry_new(s);
	uint8_t class = out_class_of(job);
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
		out_heap_drop(s, &s->heap[class], at);
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
			out_before(&s->jobs[h->at[i]], &s->jobs[best])))
			best = h->at[i];
	return best;
}

/* Another could have gone that is more urgent. */
static bool is_inverted(const struct hd_stream *s, uint32_t job, bool aged)
{
	const uint8_t class = out_class_of(&s->jobs[job]);

	return out_before(&s->jobs[s->heap[class].at[0]], &s->jobs[job]) ||
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
		out_ring_drop(s);
	if (entry->job == NONE32)
		return;
	struct out_job *job = &s->jobs[entry->job];
	if (--job->committed || job->state != JOB_SPENT)
		return;
	job->sent.end_ns = now;
	job->state = JOB_STOPPED;        /* whole: its err is HD_OK */
	out_queue_put(s, &s->ending, entry->job);
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
