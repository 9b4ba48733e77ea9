#include "timeline/merge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/le.h"

/* Two passes with the same calls: the first counts (at NULL), the second writes. */
struct merge_out { uint8_t *at; size_t len, section; };

static void put(struct merge_out *o, const void *bytes, size_t len)
{
	if (o->at && len)
		memcpy(o->at + o->len, bytes, len);
	o->len += len;
}

static void open_section(struct merge_out *o)
{
	o->section = o->len;
	o->len += HD_HDT_SECTION_BYTES;
}

static void close_section(struct merge_out *o, enum hd_hdt_type type)
{
	size_t begin = o->section + HD_HDT_SECTION_BYTES;

	if (o->at)
		hd_hdt_section(o->at + o->section, type, 0, o->at + begin, o->len - begin, o->len - begin);
}

static void put_process(struct merge_out *o, const struct hd_tl_life *life, uint32_t i)
{
	uint8_t process[HD_HDT_PROCESS_BYTES], names[HD_HDT_NAMES_BYTES];

	open_section(o);
	hd_hdt_process(process, i, life->header);
	put(o, process, sizeof process);
	close_section(o, HD_HDT_PROCESS);
	open_section(o);
	hd_hdt_names(names, i, 0);
	put(o, names, sizeof names);
	put(o, life->names, life->names_used);
	close_section(o, HD_HDT_NAMES);
}

/* A gap is said by the slot LOST in the place of the last that was missed. nlost: before this piece. */
static void put_piece(struct merge_out *o, uint32_t process, uint32_t ring, const struct hd_tl_ring *from,
	uint32_t k, uint64_t *nlost)
{
	const struct hd_tl_piece *piece = &from->piece[k];
	const uint64_t gap = k ? piece->first - piece[-1].first - piece[-1].nslots : from->lead;
	struct hd_hdt_rings rings = { .process = process, .ring = ring, .first = piece->first - (k > 0),
		.nlost = *nlost += gap };
	uint8_t head[HD_HDT_RINGS_BYTES], slot[HD_SLOT_BYTES];

	open_section(o);
	hd_hdt_rings(head, &rings);
	put(o, head, sizeof head);
	if (k) {
		hd_event_put(slot, &(struct hd_event){ .arg = gap, .kind = HD_EVENT_LOST });
		put(o, slot, sizeof slot);
	}
	put(o, piece->slot, piece->nslots * HD_SLOT_BYTES);
	close_section(o, HD_HDT_RINGS);
}

static void put_f64(struct merge_out *o, double v)
{
	uint8_t to[8];
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	hd_put64(to, bits);
	put(o, to, sizeof to);
}

static void put_window(struct merge_out *o, uint32_t process, const struct hd_tl_clock *clock,
	const struct hd_tl_window *w)
{
	uint8_t head[32];

	open_section(o);
	hd_put32(head, process);
	hd_put32(head + 4, w->ncorners);
	hd_put64(head + 8, (uint64_t)w->from);
	hd_put64(head + 16, (uint64_t)w->to);
	hd_put64(head + 24, (uint64_t)w->centre);
	put(o, head, sizeof head);
	for (uint32_t i = 0; i < w->ncorners; i++) {
		put_f64(o, (double)clock->offset + w->corner[i].a);
		put_f64(o, w->corner[i].b);
	}
	close_section(o, HD_HDT_ALIGNMENT);
}

/* Steps of one ring: a begin and the end of the same number after it. */
static void put_index(struct merge_out *o, uint32_t process, const struct hd_tl_ring *ring)
{
	uint64_t step = 0, index = 0;
	bool open = false;

	for (uint32_t k = 0; k < ring->npieces; k++)
		for (uint64_t i = 0; i < ring->piece[k].nslots; i++) {
			struct hd_event e;
			uint8_t row[24];
			if (!hd_event_get(ring->piece[k].slot + i * HD_SLOT_BYTES, &e))
				continue;
			if (e.kind == HD_EVENT_STEP_BEGIN) {
				step = e.arg;
				index = ring->piece[k].first + i;
				open = true;
			}
			if (e.kind != HD_EVENT_STEP_END || !open || e.arg != step)
				continue;
			hd_put64(row, step);
			hd_put64(row + 8, index);
			hd_put32(row + 16, process);
			hd_put32(row + 20, e.instr == 1);
			put(o, row, sizeof row);
			open = false;
		}
}

static void put_all(struct merge_out *o, const struct hd_tl_lives *lives, const struct hd_tl_clock *clock,
	const struct hd_text *meta)
{
	uint8_t magic[HD_HDT_MAGIC_BYTES];

	hd_hdt_magic(magic);
	put(o, magic, sizeof magic);
	open_section(o);
	put(o, meta->at, meta->len);
	close_section(o, HD_HDT_META);
	for (uint32_t i = 0; i < lives->n; i++)
		put_process(o, lives->life[i], i);
	for (uint32_t i = 0; i < lives->nplans; i++) {
		open_section(o);
		put(o, lives->plan[i].hash, sizeof lives->plan[i].hash);
		put(o, lives->plan[i].text, lives->plan[i].len);
		close_section(o, HD_HDT_PLANS);
	}
	for (uint32_t i = 0; i < lives->n; i++)
		for (uint32_t w = 0; w < clock[i].nwindows; w++)
			put_window(o, i, &clock[i], &clock[i].window[w]);
	open_section(o);
	for (uint32_t i = 0; i < lives->n; i++)
		for (uint32_t r = 0; r < lives->life[i]->info.nrings; r++)
			put_index(o, i, &lives->life[i]->ring[r]);
	close_section(o, HD_HDT_INDEX);
	for (uint32_t i = 0; i < lives->n; i++)
		for (uint32_t r = 0; r < lives->life[i]->info.nrings; r++) {
			uint64_t nlost = 0;
			for (uint32_t k = 0; k < lives->life[i]->ring[r].npieces; k++)
				put_piece(o, i, r, &lives->life[i]->ring[r], k, &nlost);
		}
}

static enum hd_err write_meta(const struct hd_tl_lives *lives, const struct hd_tl_clock *clock,
	struct hd_text *text, struct hd_diag *diag)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "version", 1);
	hd_json_put_bool(&w, "merged", true);
	hd_json_put_bool(&w, "tightened", lives->tightened);
	hd_json_open_array(&w, "processes");
	for (uint32_t i = 0; i < lives->n; i++) {
		const struct hd_flight_info *info = &lives->life[i]->info;
		hd_json_open_object(&w, NULL);
		hd_json_put_i64(&w, "worker", info->worker == UINT32_MAX ? -1 : (int64_t)info->worker);
		hd_json_put_i64(&w, "pid", info->pid);
		hd_json_put_bool(&w, "aligned", clock[i].aligned);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	return hd_json_done(&w) ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory to merge recordings");
}

enum hd_err hd_tl_merge(struct hd_arena *arena, const struct hd_tl_lives *lives,
	const struct hd_tl_clock *clock, uint8_t **bytes, size_t *len, struct hd_diag *diag)
{
	struct merge_out counted = { 0 }, out = { 0 };
	struct hd_text meta;

	hd_text_init(&meta, arena);
	enum hd_err err = write_meta(lives, clock, &meta, diag);
	if (err)
		return err;
	put_all(&counted, lives, clock, &meta);
	out.at = hd_arena_take(arena, counted.len, 1);
	if (!out.at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a merged file of %zu bytes", counted.len);
	put_all(&out, lives, clock, &meta);
	assert(out.len == counted.len);
	*bytes = out.at;
	*len = out.len;
	return HD_OK;
}
