#include "timeline/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/le.h"
#include "timeline/write_int.h"

/* A section's header has the hash of what follows: each is made twice by the same calls, first for that. */
struct merge_out {
	const struct hd_tl_lives *lives;
	const struct hd_tl_clock *clock;
	const struct hd_text *meta;
	struct hd_tl_out *out;
	bool hashes; uint64_t len; struct hd_hasher hasher;    /* of the section at hand */
	/* what it is of: a life, or a plan; a ring, or a window; pieces [piece, end) that adjoin */
	uint32_t i, k, piece, end;
	uint64_t gap, nlost;              /* before the pieces; so far */
};

static void put(struct merge_out *o, const void *bytes, size_t len)
{
	if (!o->hashes) {
		hd_tl_out_put(o->out, bytes, len);
		return;
	}
	hd_hasher_add(&o->hasher, bytes, len);
	o->len += len;
}

static void section(struct merge_out *o, enum hd_hdt_type type, void (*body)(struct merge_out *o))
{
	uint8_t head[HD_HDT_SECTION_BYTES];

	o->hashes = true;
	o->len = 0;
	hd_hasher_init(&o->hasher);
	body(o);
	o->hashes = false;
	hd_hdt_section_of(head, type, o->len, hd_hasher_end64(&o->hasher));
	put(o, head, sizeof head);
	body(o);
}

static void put_meta(struct merge_out *o) { put(o, o->meta->at, o->meta->len); }

static void put_process(struct merge_out *o)
{
	uint8_t process[HD_HDT_PROCESS_BYTES];

	hd_hdt_process(process, o->i, o->lives->life[o->i]->header);
	put(o, process, sizeof process);
}

static void put_names(struct merge_out *o)
{
	const struct hd_tl_life *life = o->lives->life[o->i];
	uint8_t names[HD_HDT_NAMES_BYTES];

	hd_hdt_names(names, o->i, 0);
	put(o, names, sizeof names);
	put(o, life->names, life->names_used);
}

static void put_plan(struct merge_out *o)
{
	const struct hd_tl_text *plan = &o->lives->plan[o->i];

	put(o, plan->hash, sizeof plan->hash);
	put(o, plan->text, plan->len);
}

/* A gap is said by the slot LOST in the place of the last that was missed. */
static void put_pieces(struct merge_out *o)
{
	const struct hd_tl_ring *from = &o->lives->life[o->i]->ring[o->k];
	const bool lost = o->piece;
	struct hd_hdt_rings rings = { .process = o->i, .ring = o->k,
		.first = from->piece[o->piece].first - lost, .nlost = o->nlost };
	uint8_t head[HD_HDT_RINGS_BYTES], slot[HD_SLOT_BYTES];

	hd_hdt_rings(head, &rings);
	put(o, head, sizeof head);
	if (lost) {
		hd_event_put(slot, &(struct hd_event){ .arg = o->gap, .kind = HD_EVENT_LOST });
		put(o, slot, sizeof slot);
	}
	for (uint32_t k = o->piece; k < o->end; k++)
		put(o, from->piece[k].slot, from->piece[k].nslots * HD_SLOT_BYTES);
}

/* Pieces that adjoin are one section, however they were cut where they come from. */
static void put_ring(struct merge_out *o)
{
	const struct hd_tl_ring *from = &o->lives->life[o->i]->ring[o->k];
	uint64_t end = 0;                 /* of the pieces before */

	o->nlost = 0;
	for (o->piece = 0; o->piece < from->npieces; o->piece = o->end) {
		const struct hd_tl_piece *piece = &from->piece[o->piece];
		o->gap = o->piece ? piece->first - end : from->lead;
		o->nlost += o->gap;
		for (o->end = o->piece; o->end < from->npieces && (o->end == o->piece ||
			from->piece[o->end].first == end); o->end++)
			end = from->piece[o->end].first + from->piece[o->end].nslots;
		section(o, HD_HDT_RINGS, put_pieces);
	}
}

static void put_f64(struct merge_out *o, double v)
{
	uint8_t to[8];
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	hd_put64(to, bits);
	put(o, to, sizeof to);
}

static void put_window(struct merge_out *o)
{
	const struct hd_tl_clock *clock = &o->clock[o->i];
	const struct hd_tl_window *w = &clock->window[o->k];
	uint8_t head[32];

	hd_put32(head, o->i);
	hd_put32(head + 4, w->ncorners);
	hd_put64(head + 8, (uint64_t)w->from);
	hd_put64(head + 16, (uint64_t)w->to);
	hd_put64(head + 24, (uint64_t)w->centre);
	put(o, head, sizeof head);
	for (uint32_t i = 0; i < w->ncorners; i++) {
		put_f64(o, (double)clock->offset + w->corner[i].a);
		put_f64(o, w->corner[i].b);
	}
}

/* Steps of one ring: a begin and the end of the same number after it. */
static void put_index_of(struct merge_out *o, uint32_t process, const struct hd_tl_ring *ring)
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

static void put_index(struct merge_out *o)
{
	for (uint32_t i = 0; i < o->lives->n; i++)
		for (uint32_t r = 0; r < o->lives->life[i]->info.nrings; r++)
			put_index_of(o, i, &o->lives->life[i]->ring[r]);
}

static void put_all(struct merge_out *o)
{
	const struct hd_tl_lives *lives = o->lives;
	uint8_t magic[HD_HDT_MAGIC_BYTES];

	hd_hdt_magic(magic);
	put(o, magic, sizeof magic);
	section(o, HD_HDT_META, put_meta);
	for (o->i = 0; o->i < lives->n; o->i++) {
		section(o, HD_HDT_PROCESS, put_process);
		section(o, HD_HDT_NAMES, put_names);
	}
	for (o->i = 0; o->i < lives->nplans; o->i++)
		section(o, HD_HDT_PLANS, put_plan);
	for (o->i = 0; o->i < lives->n; o->i++)
		for (o->k = 0; o->k < o->clock[o->i].nwindows; o->k++)
			section(o, HD_HDT_ALIGNMENT, put_window);
	section(o, HD_HDT_INDEX, put_index);
	for (o->i = 0; o->i < lives->n; o->i++)
		for (o->k = 0; o->k < lives->life[o->i]->info.nrings; o->k++)
			put_ring(o);
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
	const struct hd_tl_clock *clock, const struct hd_tl_sink *sink, struct hd_diag *diag)
{
	struct merge_out *o = hd_arena_take(arena, 1, sizeof *o);
	struct hd_text meta;

	hd_text_init(&meta, arena);
	enum hd_err err = o ? write_meta(lives, clock, &meta, diag) :
		hd_fail(diag, HD_E_NOMEM, "no memory to merge recordings");
	if (err)
		return err;
	*o = (struct merge_out){ .lives = lives, .clock = clock, .meta = &meta,
		.out = hd_tl_out_new(sink, arena, diag) };
	if (!o->out)
		return HD_E_NOMEM;
	put_all(o);
	return hd_tl_out_end(o->out);
}
