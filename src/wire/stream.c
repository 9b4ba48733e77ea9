#include "wire/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "wire/stream_int.h"

/* The block: what lies in it, in order. Sizes are rounded to cache lines. */
static size_t part(size_t bytes) { return (size_t)hd_round_up(bytes, HD_ALIGN); }

static size_t lay(struct hd_stream *s, uint8_t *block)
{
	uint32_t cap = s->config.streams_cap;
	size_t at = 0;

#define PART(field, n) \
	do { s->field = block ? (void *)(block + at) : NULL; at += part((n) * sizeof *s->field); } while (0)
	PART(jobs, cap);
	PART(heap[HD_CLASS_PLANNED].at, cap);
	PART(heap[HD_CLASS_BULK].at, cap);
	PART(notes, NOTES);
	PART(incoming, HD_STREAMS_OPEN);
	PART(order, HD_STREAMS_OPEN);
	PART(ring, TELL_RING);
	PART(drain, DRAIN_CAP);
	PART(message, HD_TELL_MAX);
#undef PART
	return at;
}

enum hd_err hd_stream_create(const struct hd_stream_config *config, const struct hd_wire_events *events,
	struct hd_stream **stream, struct hd_diag *diag)
{
	assert(config->streams_cap >= 1 && config->streams_cap <= 65536);
	struct hd_stream *s = hd_alloc(sizeof *s);
	if (!s)
		return hd_fail(diag, HD_E_NOMEM, "out of memory for a connection");
	memset(s, 0, sizeof *s);
	s->config = *config;
	s->events = *events;
	/* Lazily: pages that no message ever reached are never there. */
	enum hd_err err = hd_memory_take(lay(s, NULL), HD_MEMORY_SMALL, &s->block, diag);
	if (err) {
		hd_free(s);
		return err;
	}
	lay(s, s->block.at);
	out_init(s);
	in_init(s);
	*stream = s;
	return HD_OK;
}

void hd_stream_destroy(struct hd_stream *s)
{
	if (!s)
		return;
	hd_memory_give(&s->block);
	hd_free(s->out_rows);
	hd_free(s->in_rows);
	hd_free(s->owing_rows);
	hd_free(s);
}

/* ---- epochs ---- */

void hd_stream_decided(struct hd_stream *s, uint32_t next)
{
	s->next = next;
	s->resumes |= s->held == HD_HELD_AHEAD;
}

void hd_stream_epoch(struct hd_stream *s, uint32_t epoch, struct hd_hash plan)
{
	assert(epoch > s->epoch);
	s->epoch = epoch;
	s->next = s->next > epoch ? s->next : epoch;
	s->plan = plan;
	s->open = s->has_channel = s->epoch_due = s->stale_told = false;
	out_epoch(s);
	in_epoch(s);
}

static bool rows_rise(const struct hd_transfer *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].grants > HD_GRANTS_MAX || !rows[i].bytes || rows[i].id == HD_TRANSFER_NONE ||
			(i && rows[i - 1].id >= rows[i].id))
			return false;
	return n < NONE32;
}

enum hd_err hd_stream_channel(struct hd_stream *s, const struct hd_transfer *in, size_t n_in,
	const struct hd_transfer *out, size_t n_out,
			      struct hd_diag *diag)
{
	if (s->has_channel)
		return hd_fail(diag, HD_E_EXISTS, "worker %u has its channel of epoch %u already",
			s->config.peer, s->epoch);
	if (!rows_rise(in, n_in) || !rows_rise(out, n_out))
		return hd_fail(diag, HD_E_INVAL,
			"the transfers with worker %u do not rise by id, or have 0 bytes or more than %d "
			"grants", s->config.peer,
			HD_GRANTS_MAX);
	struct out_row *outs = hd_alloc(n_out * sizeof *outs);
	struct in_row *ins = hd_alloc(n_in * sizeof *ins);
	uint32_t *owing = hd_alloc(n_in * sizeof *owing);
	if (!outs || !ins || !owing) {
		hd_free(outs);
		hd_free(ins);
		hd_free(owing);
		return hd_fail(diag, HD_E_NOMEM, "out of memory for %zu transfers", n_in + n_out);
	}
	/* Grants of `out` are the peer's to give, with its EPOCH: both ends have the rows from one plan. */
	for (size_t i = 0; i < n_out; i++)
		outs[i] = (struct out_row){ .id = out[i].id, .grants = out[i].grants, .bytes = out[i].bytes,
			.waiting = { NONE32, NONE32 } };
	for (size_t i = 0; i < n_in; i++)
		ins[i] = (struct in_row){ .id = in[i].id, .granted = in[i].grants, .bytes = in[i].bytes };
	hd_free(s->out_rows);
	hd_free(s->in_rows);
	hd_free(s->owing_rows);
	s->out_rows = outs;
	s->in_rows = ins;
	s->owing_rows = owing;
	s->n_out_rows = (uint32_t)n_out;
	s->n_in_rows = (uint32_t)n_in;
	s->first_owing = s->n_owing = 0;
	s->has_channel = s->epoch_due = true;
	return HD_OK;
}

enum hd_close hd_stream_turn(struct hd_stream *s, int64_t now, struct hd_diag *diag)
{
	s->now = now;
	s->resumes = false;
	out_report(s);
	enum hd_close why = in_agree(s, diag);
	return why ? why : in_process(s, diag);
}

bool hd_stream_is_due(const struct hd_stream *s)
{
	return s->ending.first != NONE32 || s->doomed || s->resumes ||
		(!s->open && s->has_channel && s->peer_has_epoch && s->peer_epoch == s->epoch);
}

/* ---- looks ---- */

enum hd_held hd_stream_held(const struct hd_stream *s, uint32_t *epoch)
{
	*epoch = s->held_epoch;
	return s->held;
}

bool hd_stream_inside(const struct hd_stream *s) { return !s->held &&
	(s->where != AT_HEADER || s->stage_len > s->stage_at); }
uint32_t hd_stream_chunk(const struct hd_stream *s) { return s->chunk; }
bool hd_stream_is_committed(const struct hd_stream *s) { return s->n_entries > 0; }
bool hd_stream_said_bye(const struct hd_stream *s) { return s->bye_written; }

void hd_stream_stats(const struct hd_stream *s, struct hd_hub_stats *stats)
{
	stats->bytes_sent += s->stats.bytes_sent;
	stats->bytes_received += s->stats.bytes_received;
	stats->frames_sent += s->stats.frames_sent;
	stats->frames_received += s->stats.frames_received;
	stats->dropped_stale += s->stats.dropped_stale;
	stats->dropped_cancelled += s->stats.dropped_cancelled;
	stats->aged += s->stats.aged;
	stats->preempted += s->stats.preempted;
	stats->inverted += s->stats.inverted;
}
