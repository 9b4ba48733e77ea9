/* Columns: each of the least width that holds its values. */
#include <assert.h>
#include <string.h>

#include "base/base64.h"
#include "base/checked.h"
#include "base/le.h"
#include "timeline/viewer_int.h"

/* Row i of a table; exact up to 2^53. */
typedef double column_fn(const struct hd_viewer_part *part, uint64_t i);
struct column_row { const char *of, *name; column_fn *get; };

/* ---- events: i is a place ---- */

static const struct hd_tl_event *event_at(const struct hd_viewer_part *p, uint64_t place)
{
	return &p->trace->timeline->event[p->event[place]];
}

/* From the one before it in its lane. */
static double since(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_tl_event *e = event_at(p, i);

	if (p->kept.at[e->lane] == i)
		return 0;
	return (double)(e->t0 - event_at(p, i - 1)->t0);
}

static double optional(uint32_t v) { return v == HD_TL_NONE ? 0 : 1.0 + v; }

static double length(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_tl_event *e = event_at(p, i);

	return (double)(e->t1 - e->t0);
}

static double name_of(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_timeline *t = p->trace->timeline;
	uint32_t name = event_at(p, i)->name;

	return name < t->nnames ? name : 0;
}

static double class_of(const struct hd_viewer_part *p, uint64_t i)
{
	uint8_t class = event_at(p, i)->class;

	return class < HD_TL_CLASS_COUNT ? class : (double)HD_TL_OTHER;
}

static double kind_of(const struct hd_viewer_part *p, uint64_t i) { return event_at(p, i)->kind; }
static double flags_of(const struct hd_viewer_part *p, uint64_t i) { return event_at(p, i)->flags; }
static double instr_of(const struct hd_viewer_part *p, uint64_t i) { return event_at(p, i)->instr; }
static double vn_of(const struct hd_viewer_part *p, uint64_t i) { return optional(event_at(p, i)->vn); }
static double stage_of(const struct hd_viewer_part *p, uint64_t i) { return optional(event_at(p, i)->stage); }
static double predicted_of(const struct hd_viewer_part *p, uint64_t i)
{
	return event_at(p, i)->predicted_ns;
}

/* Its number and 1; 0: none. */
static double step_of(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_timeline *t = p->trace->timeline;
	uint32_t step = event_at(p, i)->step;

	return step < t->nsteps ? 1.0 + (double)t->step[step].number : 0;
}

static double arg_of(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_tl_event *e = event_at(p, i);

	return (double)(e->kind == HD_EVENT_OP ? hd_work_bytes(e->arg) : e->arg);
}

/* ---- transfers and reads: i counts them ---- */

static const struct hd_tl_event *transfer_at(const struct hd_viewer_part *p, uint64_t i)
{
	return event_at(p, p->transfer[i]);
}

static double place_since(const struct hd_viewer_part *p, uint64_t i)
{
	return p->transfer[i] - (i ? p->transfer[i - 1] : 0.0);
}

static double gate_of(const struct hd_viewer_part *p, uint64_t i)
{
	return (double)(transfer_at(p, i)->gate - transfer_at(p, i)->t0);
}

static double first_of(const struct hd_viewer_part *p, uint64_t i)
{
	return (double)(transfer_at(p, i)->first - transfer_at(p, i)->t0);
}

static double chunks_of(const struct hd_viewer_part *p, uint64_t i) { return transfer_at(p, i)->chunks; }
static double preempted_of(const struct hd_viewer_part *p, uint64_t i)
{
	return transfer_at(p, i)->preempted;
}
static double priority_of(const struct hd_viewer_part *p, uint64_t i)
{
	return transfer_at(p, i)->priority_class;
}
static double primitive_of(const struct hd_viewer_part *p, uint64_t i)
{
	return transfer_at(p, i)->primitive;
}
static double peer_of(const struct hd_viewer_part *p, uint64_t i)
{
	uint32_t peer = transfer_at(p, i)->peer;

	return peer < p->trace->timeline->nprocesses ? optional(peer) : 0;
}
static double other_of(const struct hd_viewer_part *p, uint64_t i)
{
	return optional(p->other[p->transfer[i]]);
}

/* ---- bins ---- */

static double bin_since(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_viewer_bins *b = &p->bins;

	for (uint32_t low = 0, high = p->trace->timeline->nlanes; ; ) {         /* the lane of i */
		uint32_t middle = low + (high - low) / 2;
		if (b->at[middle + 1] <= i)
			low = middle + 1;
		else if (b->at[middle] > i)
			high = middle;
		else
			return b->at[middle] == i ? 0 : (double)(b->bin[i].t0 - b->bin[i - 1].t0);
	}
}

static double bin_length(const struct hd_viewer_part *p, uint64_t i)
{
	return (double)(p->bins.bin[i].t1 - p->bins.bin[i].t0);
}

static double bin_busy(const struct hd_viewer_part *p, uint64_t i) { return (double)p->bins.bin[i].busy; }
static double bin_count(const struct hd_viewer_part *p, uint64_t i) { return (double)p->bins.bin[i].count; }
static double bin_class(const struct hd_viewer_part *p, uint64_t i) { return p->bins.bin[i].class; }

/* ---- segments of critical paths ---- */

static double segment_since(const struct hd_viewer_part *p, uint64_t i)
{
	const struct hd_viewer_segment *at = p->paths.segment;

	return i ? (double)(at[i].s.t0 - at[i - 1].s.t0) : 0;
}

static double segment_length(const struct hd_viewer_part *p, uint64_t i)
{
	return (double)(p->paths.segment[i].s.t1 - p->paths.segment[i].s.t0);
}

static double segment_place(const struct hd_viewer_part *p, uint64_t i)
{
	return optional(hd_viewer_place(&p->kept, p->trace->timeline, p->paths.segment[i].s.event));
}

static double segment_lane(const struct hd_viewer_part *p, uint64_t i) { return p->paths.segment[i].s.lane; }
static double segment_part(const struct hd_viewer_part *p, uint64_t i) { return p->paths.segment[i].s.part; }
static double segment_step(const struct hd_viewer_part *p, uint64_t i)
{
	return (double)p->paths.segment[i].step;
}

/* Columns whose rows are 1 more than the value, 0: none, are step, vn, stage, peer, other and a
 * segment's place. */
static const struct column_row rows[] = {
	{ "event", "since", since }, { "event", "length", length }, { "event", "name", name_of },
	{ "event", "class", class_of }, { "event", "kind", kind_of }, { "event", "flags", flags_of },
	{ "event", "instr", instr_of }, { "event", "step", step_of }, { "event", "vn", vn_of },
	{ "event", "stage", stage_of }, { "event", "arg", arg_of }, { "event", "predicted", predicted_of },
	{ "transfer", "place", place_since }, { "transfer", "gate", gate_of },
	{ "transfer", "first", first_of }, { "transfer", "chunks", chunks_of },
	{ "transfer", "preempted", preempted_of }, { "transfer", "priority", priority_of },
	{ "transfer", "primitive", primitive_of }, { "transfer", "peer", peer_of },
	{ "transfer", "other", other_of },
	{ "bin", "since", bin_since }, { "bin", "length", bin_length }, { "bin", "busy", bin_busy },
	{ "bin", "count", bin_count }, { "bin", "class", bin_class },
	{ "path", "since", segment_since }, { "path", "length", segment_length },
	{ "path", "place", segment_place }, { "path", "lane", segment_lane },
	{ "path", "part", segment_part }, { "path", "step", segment_step },
};
_Static_assert(sizeof rows / sizeof *rows <= HD_VIEWER_COLUMNS, "each row has a column");

/* ---- widths ---- */

static const struct { const char *type; double most; uint32_t bytes; } width[] = {
	{ "u8", UINT8_MAX, 1 }, { "u16", UINT16_MAX, 2 }, { "u32", UINT32_MAX, 4 }, { "f64", 0, 8 },
};
enum { WIDEST = sizeof width / sizeof *width - 1 };

static void put_value(uint8_t *at, uint32_t bytes, double v)
{
	uint64_t bits;

	switch (bytes) {
	case 1: *at = (uint8_t)v; break;
	case 2: hd_put16(at, (uint32_t)v); break;
	case 4: hd_put32(at, (uint32_t)v); break;
	default:
		memcpy(&bits, &v, sizeof bits);
		hd_put64(at, bits);
	}
}

/* room: 8 bytes for each of the n rows */
static void put_column(const struct hd_viewer_part *part, const struct column_row *row, uint64_t n,
	uint8_t *room,
	struct hd_viewer_column *column, struct hd_text *page)
{
	double low = n ? row->get(part, 0) : 0, high = low;
	uint32_t w = 0;

	*column = (struct hd_viewer_column){ .of = row->of, .name = row->name, .type = "one", .n = n,
		.at = page->len };
	for (uint64_t i = 0; i < n; i++) {
		double v = row->get(part, i);
		low = v < low ? v : low;
		high = v > high ? v : high;
	}
	column->value = low;
	if (low >= high)
		return;
	while (w < WIDEST && (low < 0 || high > width[w].most))
		w++;
	for (uint64_t i = 0; i < n; i++)
		put_value(room + i * width[w].bytes, width[w].bytes, row->get(part, i));
	hd_base64_write(room, n * width[w].bytes, page);
	column->type = width[w].type;
	column->len = page->len - column->at;
}

static enum hd_err list_places(struct hd_viewer_part *part, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_timeline *t = part->trace->timeline;
	uint64_t n = part->kept.at[t->nlanes];

	part->event = hd_arena_take(arena, n + 1, sizeof *part->event);
	part->transfer = hd_arena_take(arena, n + 1, sizeof *part->transfer);
	if (!part->event || !part->transfer)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %llu events of a page",
			(unsigned long long)n);
	for (uint32_t l = 0; l < t->nlanes; l++)
		for (uint64_t i = part->kept.at[l]; i < part->kept.at[l + 1]; i++) {
			part->event[i] = part->kept.begin[l] + i - part->kept.at[l];
			uint8_t kind = event_at(part, i)->kind;
			if (kind == HD_EVENT_SEND || kind == HD_EVENT_RECV || kind == HD_EVENT_READ)
				part->transfer[part->ntransfers++] = (uint32_t)i;
		}
	return HD_OK;
}

enum hd_err hd_viewer_put_columns(struct hd_viewer_part *part, struct hd_text *page, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_timeline *t = part->trace->timeline;
	uint64_t nevents = part->kept.at[t->nlanes], nbins = part->bins.at ? part->bins.at[t->nlanes] : 0,
		npath = part->paths.n, most = nevents > nbins ? nevents : nbins;
	uint8_t *room = hd_arena_take(arena, (most > npath ? most : npath) + 1, sizeof(double));
	uint64_t origin = page->len;

	if (!room)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a column of a page");
	enum hd_err err = list_places(part, arena, diag);
	for (uint32_t r = 0; r < sizeof rows / sizeof *rows && !err; r++) {
		struct hd_viewer_column *c = &part->columns.column[part->columns.n++];
		const char of = rows[r].of[0];
		put_column(part, &rows[r], of == 'e' ? nevents : of == 't' ? part->ntransfers : of == 'b' ?
			nbins : npath, room, c, page);
		c->at -= origin;
	}
	return err;
}
