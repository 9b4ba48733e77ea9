/* A timeline as Perfetto's trace: packets of Protocol Buffers, by the numbers of the public schema.
 *
 * Each line (a lane's sub-lane) is a packet sequence of its own: its track and its clock stand once, as
 * defaults, and its times are differences, so a slice takes two short packets. Names are interned by
 * sequence. An end goes before a begin of the same time, what lasts nothing is an instant. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/le.h"
#include "base/protobuf.h"
#include "timeline/pack.h"
#include "timeline/write_int.h"

/* Numbers of fields in the public schema, by message. */
enum { TRACE_PACKET = 1 };
enum { PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11,
       PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_DEFAULTS = 59, PACKET_TRACK = 60 };
enum { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58, DEFAULTS_TRACK = 11 };
enum { SNAPSHOT_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2, CLOCK_INCREMENTAL = 3 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { EVENT_CATEGORY = 3, EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11,
       EVENT_COUNTER = 30, EVENT_FLOW = 47, EVENT_FLOW_ENDS = 48 };
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3 };
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_ANNOTATION = 3, ENTRY_ID = 1, ENTRY_NAME = 2 };

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER };
enum { FLAG_CLEARED = 1, FLAG_NEEDS = 2 };
enum { REALTIME = 1, BOOTTIME = 6, INCREMENTAL = 64 };     /* clocks */
enum { FIRST_PID = 1000, SCRATCH = 1 << 13, META = 1,       /* META: the sequence of tracks */
       STAGES = 256,                                       /* of more, those beyond are in no name */
       FELT_NS = 1000 };                                   /* what is shorter is not worth its bytes */

/*        id       number text */
#define NOTES(X)                     \
	X(VN,      1, "virtual node") \
	X(BYTES,   2, "bytes")        \
	X(PREDICT, 3, "predicted ns") \
	X(GATE,    4, "gate ns")      \
	X(FIRST,   5, "first byte ns") \
	X(ARG,     6, "value")

enum note {
#define X(id, number, text) NOTE_##id = (number),
	NOTES(X)
#undef X
	NOTE_END
};
static const char *const note_text[NOTE_END] = {
#define X(id, number, text) [NOTE_##id] = text,
	NOTES(X)
#undef X
};

struct writer {
	const struct hd_timeline *t;
	struct hd_tl_out *out;
	struct hd_arena *arena;
	struct hd_pb pb;
	uint32_t nstages;                 /* names by stage where there are several */
	uint32_t sequence;
	bool begun;                       /* the sequence of tracks */
	uint32_t lane, line;
	uint64_t zero, now;               /* time of the timeline's 0; of the sequence */
	uint8_t *known;                   /* [names * (stages + 1)] interned in this sequence */
	uint8_t *counted;                 /* [names] counters of this lane that have a track */
	bool category[HD_TL_CLASS_COUNT], note[NOTE_END];
	int64_t *end; uint32_t nopen, end_cap;                 /* open slices, outermost first */
	size_t packet;
};

static uint64_t uuid_of(uint64_t process, uint64_t lane, uint64_t line)
{
	uint8_t key[24];

	hd_put64(key, process);
	hd_put64(key + 8, lane);
	hd_put64(key + 16, line);
	uint64_t id = hd_hash64(key, sizeof key);
	return id ? id : 1;
}

static void open_packet(struct writer *w)
{
	w->pb.len = 0;
	w->packet = hd_pb_begin(&w->pb, TRACE_PACKET);
}

static void close_packet(struct writer *w, uint32_t sequence, uint32_t flags)
{
	hd_pb_varint(&w->pb, PACKET_SEQUENCE, sequence);
	flags |= sequence == META && !w->begun ? FLAG_CLEARED : 0;
	if (flags)
		hd_pb_varint(&w->pb, PACKET_FLAGS, flags);
	w->begun |= sequence == META;
	hd_pb_end(&w->pb, w->packet);
	assert(!w->pb.full);
	hd_tl_out_put(w->out, w->pb.at, w->pb.len);
}

static uint64_t time_of(const struct writer *w, int64_t t) { return w->zero + (uint64_t)t; }

static void put_clock(struct writer *w, uint64_t id, uint64_t time, bool incremental)
{
	size_t clock = hd_pb_begin(&w->pb, SNAPSHOT_CLOCK);

	hd_pb_varint(&w->pb, CLOCK_ID, id);
	hd_pb_varint(&w->pb, CLOCK_TIME, time);
	if (incremental)
		hd_pb_varint(&w->pb, CLOCK_INCREMENTAL, 1);
	hd_pb_end(&w->pb, clock);
}

static void put_real_time(struct writer *w)
{
	const struct hd_timeline *t = w->t;

	if (t->realtime_ns <= 0 || t->realtime_ns + t->begin <= 0)
		return;
	open_packet(w);
	size_t snapshot = hd_pb_begin(&w->pb, PACKET_CLOCK_SNAPSHOT);
	put_clock(w, BOOTTIME, time_of(w, t->begin), false);
	put_clock(w, REALTIME, (uint64_t)(t->realtime_ns + t->begin), false);
	hd_pb_end(&w->pb, snapshot);
	close_packet(w, META, FLAG_NEEDS);
}

static void put_name(struct writer *w, const char *name)
{
	char fit[HD_TL_NAME_MAX + 1];

	hd_tl_name_fit(name, fit);
	hd_pb_text(&w->pb, TRACK_NAME, fit);
}

static void put_process(struct writer *w, uint32_t p)
{
	const struct hd_tl_process *process = &w->t->process[p];
	char name[HD_TL_NAME_MAX + 1], fit[HD_TL_NAME_MAX + 1];

	snprintf(name, sizeof name, "%.400s%s%.200s%s", process->name, *process->host ? " on " : "",
		process->host, process->aligned ? "" : " (clock not aligned)");
	hd_tl_name_fit(name, fit);
	open_packet(w);
	size_t track = hd_pb_begin(&w->pb, PACKET_TRACK);
	hd_pb_varint(&w->pb, TRACK_UUID, uuid_of(p, UINT64_MAX, 0));
	size_t about = hd_pb_begin(&w->pb, TRACK_PROCESS);
	hd_pb_varint(&w->pb, PROCESS_PID, FIRST_PID + p);
	hd_pb_text(&w->pb, PROCESS_NAME, fit);
	hd_pb_end(&w->pb, about);
	hd_pb_end(&w->pb, track);
	close_packet(w, META, FLAG_NEEDS);
}

static void put_track(struct writer *w, uint64_t uuid, const char *name, bool counter)
{
	open_packet(w);
	size_t track = hd_pb_begin(&w->pb, PACKET_TRACK);
	hd_pb_varint(&w->pb, TRACK_UUID, uuid);
	put_name(w, name);
	hd_pb_varint(&w->pb, TRACK_PARENT, uuid_of(w->t->lane[w->lane].process, UINT64_MAX, 0));
	if (counter)
		hd_pb_bytes(&w->pb, TRACK_COUNTER, "", 0);
	hd_pb_end(&w->pb, track);
	close_packet(w, META, FLAG_NEEDS);
}

/* The first packet of a line says its track, its clock, and that times are differences. */
static void begin_sequence(struct writer *w)
{
	const struct hd_tl_lane *lane = &w->t->lane[w->lane];
	uint64_t track = uuid_of(lane->process, w->lane, w->line);
	char name[HD_TL_NAME_MAX + 1];

	snprintf(name, sizeof name, w->line ? "%.900s (%u)" : "%.900s", lane->name, w->line + 1);
	put_track(w, track, name, false);
	w->now = time_of(w, w->t->begin);
	open_packet(w);
	size_t snapshot = hd_pb_begin(&w->pb, PACKET_CLOCK_SNAPSHOT);
	put_clock(w, BOOTTIME, w->now, false);
	put_clock(w, INCREMENTAL, w->now, true);
	hd_pb_end(&w->pb, snapshot);
	size_t defaults = hd_pb_begin(&w->pb, PACKET_DEFAULTS), event = hd_pb_begin(&w->pb, DEFAULTS_EVENT);
	hd_pb_varint(&w->pb, DEFAULTS_TRACK, track);
	hd_pb_end(&w->pb, event);
	hd_pb_varint(&w->pb, DEFAULTS_CLOCK, INCREMENTAL);
	hd_pb_end(&w->pb, defaults);
	close_packet(w, ++w->sequence, FLAG_CLEARED | FLAG_NEEDS);
	memset(w->known, 0, (size_t)w->t->nnames * (w->nstages + 1));
	memset(w->category, 0, sizeof w->category);
	memset(w->note, 0, sizeof w->note);
}

static void put_time(struct writer *w, int64_t at)
{
	uint64_t now = time_of(w, at);

	assert(now >= w->now);
	hd_pb_varint(&w->pb, PACKET_TIMESTAMP, now - w->now);
	w->now = now;
}

static void put_entry(struct writer *w, uint32_t table, uint64_t id, const char *name)
{
	size_t entry = hd_pb_begin(&w->pb, table);

	hd_pb_varint(&w->pb, ENTRY_ID, id);
	hd_pb_text(&w->pb, ENTRY_NAME, name);
	hd_pb_end(&w->pb, entry);
}

static uint64_t name_id(const struct writer *w, const struct hd_tl_event *e)
{
	uint32_t stage = w->nstages && e->stage < w->nstages ? e->stage + 1 : 0;

	return (uint64_t)e->name * (w->nstages + 1) + stage + 1;
}

static void intern(struct writer *w, const struct hd_tl_event *e, uint32_t notes)
{
	uint64_t id = name_id(w, e);
	bool name = !w->known[id - 1], category = !w->category[e->class];
	uint32_t fresh = 0;
	char fit[HD_TL_NAME_MAX + 1], full[HD_TL_NAME_MAX + 24];

	for (uint32_t n = 1; n < NOTE_END; n++)
		fresh |= notes >> n & 1 && !w->note[n] ? 1u << n : 0;
	if (!name && !category && !fresh)
		return;
	size_t data = hd_pb_begin(&w->pb, PACKET_INTERNED);
	if (category)
		put_entry(w, INTERNED_CATEGORY, e->class + 1u, hd_tl_class_text(e->class));
	if (name) {
		hd_tl_name_fit(w->t->name[e->name], fit);
		uint64_t stage = (id - 1) % (w->nstages + 1);
		snprintf(full, sizeof full, stage ? "%s stage %u" : "%s", fit, (unsigned)(stage - 1));
		put_entry(w, INTERNED_NAME, id, full);
	}
	for (uint32_t n = 1; n < NOTE_END; n++)
		if (fresh >> n & 1)
			put_entry(w, INTERNED_ANNOTATION, n, note_text[n]);
	hd_pb_end(&w->pb, data);
	w->known[id - 1] = 1;
	w->category[e->class] = true;
	for (uint32_t n = 1; n < NOTE_END; n++)
		w->note[n] |= notes >> n & 1;
}

static uint32_t notes_of(const struct hd_tl_event *e, uint64_t value[NOTE_END])
{
	uint32_t notes = 0;

#define NOTE(id, cond, v) do { if (cond) { notes |= 1u << NOTE_##id; value[NOTE_##id] = (v); } } while (0)
	bool transfer = hd_event_has_ext(e->kind) && e->kind != HD_EVENT_CLOCK;

	NOTE(VN, e->kind == HD_EVENT_OP && e->vn != HD_TL_NONE, e->vn);
	NOTE(BYTES, transfer, e->arg);
	NOTE(PREDICT, e->predicted_ns, e->predicted_ns);
	NOTE(GATE, transfer && e->gate - e->t0 >= FELT_NS, (uint64_t)(e->gate - e->t0));
	NOTE(FIRST, transfer && e->first - e->t0 >= FELT_NS, (uint64_t)(e->first - e->t0));
	NOTE(ARG, e->kind == HD_EVENT_STEP_BEGIN || e->kind == HD_EVENT_STEP_END || e->kind == HD_EVENT_EPOCH,
		e->arg);
#undef NOTE
	return notes;
}

static void put_event(struct writer *w, const struct hd_tl_event *e, int type)
{
	uint64_t value[NOTE_END];
	uint32_t notes = notes_of(e, value);

	open_packet(w);
	put_time(w, e->t0);
	intern(w, e, notes);
	size_t event = hd_pb_begin(&w->pb, PACKET_EVENT);
	hd_pb_varint(&w->pb, EVENT_CATEGORY, e->class + 1u);
	for (uint32_t n = 1; n < NOTE_END; n++) {
		if (!(notes >> n & 1))
			continue;
		size_t note = hd_pb_begin(&w->pb, EVENT_ANNOTATION);
		hd_pb_varint(&w->pb, ANNOTATION_NAME, n);
		hd_pb_varint(&w->pb, ANNOTATION_UINT, value[n]);
		hd_pb_end(&w->pb, note);
	}
	hd_pb_varint(&w->pb, EVENT_TYPE, (uint64_t)type);
	hd_pb_varint(&w->pb, EVENT_NAME, name_id(w, e));
	if (e->flow)
		hd_pb_fixed64(&w->pb, e->kind == HD_EVENT_RECV ? EVENT_FLOW_ENDS : EVENT_FLOW, e->flow);
	hd_pb_end(&w->pb, event);
	close_packet(w, w->sequence, FLAG_NEEDS);
}

static void put_counter(struct writer *w, const struct hd_tl_event *e)
{
	uint64_t track = uuid_of(w->t->lane[w->lane].process, w->lane, (uint64_t)1 << 32 | e->name);

	if (!w->counted[e->name])
		put_track(w, track, w->t->name[e->name], true);
	w->counted[e->name] = 1;
	open_packet(w);
	put_time(w, e->t0);
	size_t event = hd_pb_begin(&w->pb, PACKET_EVENT);
	hd_pb_varint(&w->pb, EVENT_TYPE, TYPE_COUNTER);
	hd_pb_varint(&w->pb, EVENT_TRACK, track);
	hd_pb_varint(&w->pb, EVENT_COUNTER, e->arg);
	hd_pb_end(&w->pb, event);
	close_packet(w, w->sequence, FLAG_NEEDS);
}

static void end_slices(struct writer *w, int64_t until)
{
	while (w->nopen && w->end[w->nopen - 1] <= until) {
		open_packet(w);
		put_time(w, w->end[--w->nopen]);
		size_t event = hd_pb_begin(&w->pb, PACKET_EVENT);
		hd_pb_varint(&w->pb, EVENT_TYPE, TYPE_END);
		hd_pb_end(&w->pb, event);
		close_packet(w, w->sequence, 0);             /* names nothing that is interned */
	}
}

static enum hd_err begin_slice(struct writer *w, const struct hd_tl_event *e)
{
	if (w->nopen == w->end_cap) {
		uint32_t cap = w->end_cap ? w->end_cap * 2 : 16;
		int64_t *end = hd_arena_take(w->arena, cap, sizeof *end);

		if (!end)
			return hd_fail(w->out->diag, HD_E_NOMEM, "no memory for %u nested slices", cap);
		if (w->nopen)
			memcpy(end, w->end, w->nopen * sizeof *end);
		w->end = end;
		w->end_cap = cap;
	}
	/* what its maker did not nest ends with what is around it */
	int64_t end = w->nopen && w->end[w->nopen - 1] < e->t1 ? w->end[w->nopen - 1] : e->t1;
	put_event(w, e, TYPE_BEGIN);
	w->end[w->nopen++] = end;
	return HD_OK;
}

static enum hd_err put_line(struct writer *w, const struct hd_tl_lines *lines)
{
	const struct hd_tl_lane *lane = &w->t->lane[w->lane];

	begin_sequence(w);
	w->nopen = 0;
	for (uint64_t i = lines->begin[w->line]; i < lines->begin[w->line + 1]; i++) {
		const struct hd_tl_event *e = &w->t->event[lane->begin + lines->event[i]];
		enum hd_err err = HD_OK;

		end_slices(w, e->t0);
		if (e->kind == HD_EVENT_COUNTER)
			put_counter(w, e);
		else if (e->t0 == e->t1)
			put_event(w, e, TYPE_INSTANT);
		else
			err = begin_slice(w, e);
		if (err)
			return err;
	}
	end_slices(w, INT64_MAX);
	return HD_OK;
}

static enum hd_err start(struct writer *w)
{
	const struct hd_timeline *t = w->t;
	int64_t first = t->base_ns + t->begin;

	for (uint64_t i = 0; i < t->nevents; i++)
		if (t->event[i].stage < STAGES && t->event[i].stage >= w->nstages)
			w->nstages = t->event[i].stage + 1;
	if (w->nstages == 1)
		w->nstages = 0;
	w->zero = first >= 0 ? (uint64_t)t->base_ns : (uint64_t)-t->begin;
	w->pb.at = hd_arena_take(w->arena, SCRATCH, 1);
	w->pb.cap = SCRATCH;
	w->known = hd_arena_take(w->arena, (size_t)t->nnames + 1, w->nstages + 1);
	w->counted = hd_arena_take(w->arena, (size_t)t->nnames + 1, 1);
	if (!w->pb.at || !w->known || !w->counted)
		return hd_fail(w->out->diag, HD_E_NOMEM, "no memory for %u names of a trace", t->nnames);
	return HD_OK;
}

enum hd_err hd_tl_write_perfetto(const struct hd_timeline *timeline, const struct hd_tl_sink *sink,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct writer w = { .t = timeline, .out = hd_tl_out_new(sink, arena, diag), .arena = arena,
		.sequence = META };

	if (!w.out || start(&w))
		return HD_E_NOMEM;
	put_real_time(&w);
	for (uint32_t p = 0; p < timeline->nprocesses; p++)
		put_process(&w, p);
	for (w.lane = 0; w.lane < timeline->nlanes && !w.out->err; w.lane++) {
		struct hd_tl_lines lines;
		enum hd_err err = hd_tl_pack(timeline, w.lane, &lines, arena, diag);

		memset(w.counted, 0, timeline->nnames);
		for (w.line = 0; !err && w.line < lines.nlines; w.line++)
			err = put_line(&w, &lines);
		if (err)
			return err;
	}
	return hd_tl_out_end(w.out);
}
