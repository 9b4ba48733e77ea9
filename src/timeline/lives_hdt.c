#include <string.h>

#include "base/json.h"
#include "timeline/lives_int.h"

enum { PROCESSES = 1 << 16, NAMES_BYTES = 16 << 20, PLAN_HASH = 16, META_TEXT = 1 << 20 };

/* Of one file: its numbers of processes. */
struct hdt_read {
	struct hd_arena *arena;
	const struct hd_tl_input *input;
	struct hd_tl_lives *lives;
	struct hd_tl_life **process; uint32_t nprocesses, cap;
	uint32_t *names_cap, names_caps;
	struct hd_diag *diag, *outer;     /* diag: of a section; outer: of the file */
};

/* The reason is that of the first one. */
static enum hd_err drop(struct hdt_read *r, bool cut)
{
	struct hd_tl_lives *lives = r->lives;
	struct hd_tl_dropped *d = lives->ndropped ? &lives->dropped[lives->ndropped - 1] : NULL;

	if (!d || d->file != r->input->name) {
		enum hd_err err = hd_tl_grow(r->arena, &lives->dropped, &lives->dropped_cap, lives->ndropped +
			1ull, sizeof *lives->dropped, r->outer);
		if (err)
			return err;
		d = &lives->dropped[lives->ndropped++];
		*d = (struct hd_tl_dropped){ .file = r->input->name, .first = *r->diag };
	}
	d->nsections += !cut;
	d->cut |= cut;
	return HD_OK;
}

static enum hd_err damaged(const struct hdt_read *r, const char *section, const char *why)
{
	return hd_fail(r->diag, HD_E_INPUT, "%s: a section %s is damaged: %s", r->input->name, section, why);
}

static enum hd_err find(const struct hdt_read *r, const char *section, uint32_t process,
	struct hd_tl_life **life)
{
	if (process >= r->nprocesses || !r->process[process])
		return hd_fail(r->diag, HD_E_INPUT, "%s: a section %s is of process %u, which has not come "
			"before it", r->input->name, section, process);
	*life = r->process[process];
	return HD_OK;
}

static enum hd_err take_process(struct hdt_read *r, const struct hd_hdt_section *s)
{
	struct hd_flight_info *info = hd_arena_take(r->arena, 1, sizeof *info);
	enum hd_flight_state state;
	struct hd_tl_life *life;
	uint32_t process;

	if (!info)
		return hd_fail(r->diag, HD_E_NOMEM, "%s: no memory for a process", r->input->name);
	enum hd_err err = hd_hdt_process_get(s->stored, s->stored_bytes, r->input->name, &process, info,
		&state, r->diag);
	if (err)
		return err;
	if (process >= PROCESSES)
		return damaged(r, "process", "its number is too high");
	if (process >= r->nprocesses) {
		err = hd_tl_grow(r->arena, &r->process, &r->cap, process + 1ull, sizeof *r->process, r->diag);
		if (!err)
			err = hd_tl_grow(r->arena, &r->names_cap, &r->names_caps, process + 1ull,
				sizeof *r->names_cap, r->diag);
		if (err)
			return err;
		r->nprocesses = process + 1;
	}
	life = r->process[process];
	if (!life && (err = hd_tl_life_add(r->arena, r->lives, r->input->name, &life, r->diag)))
		return err;
	r->process[process] = life;
	life->info = *info;
	life->state = state;
	life->header = s->stored + HD_HDT_PROCESS_BYTES - HD_FLIGHT_HEADER_BYTES;
	return HD_OK;
}

static enum hd_err take_names(struct hdt_read *r, const struct hd_hdt_section *s)
{
	const uint8_t *text = s->stored + HD_HDT_NAMES_BYTES;
	uint32_t process, offset;
	struct hd_tl_life *life = NULL;

	if (!hd_hdt_names_get(s->stored, s->stored_bytes, &process, &offset))
		return damaged(r, "names", "it is too short");
	uint64_t len = s->stored_bytes - HD_HDT_NAMES_BYTES, end = offset + len;
	enum hd_err err = find(r, "names", process, &life);
	if (err)
		return err;
	if (offset > life->names_used || end > NAMES_BYTES)
		return damaged(r, "names", "it does not go on where the names before it end");
	if (!len)
		return HD_OK;
	char *names = (char *)(uintptr_t)life->names;
	err = hd_tl_grow(r->arena, &names, &r->names_cap[process], end, 1, r->diag);
	if (err)
		return err;
	life->names = names;
	memcpy(names + offset, text, len);
	if (end > life->names_used)
		life->names_used = (uint32_t)end;
	return HD_OK;
}

static enum hd_err take_rings(struct hdt_read *r, const struct hd_hdt_section *s)
{
	const uint8_t *slot = s->stored + HD_HDT_RINGS_BYTES;
	struct hd_hdt_rings rings;
	struct hd_tl_life *life = NULL;
	struct hd_event event;
	uint64_t n;

	if (!hd_hdt_rings_get(s->stored, s->stored_bytes, &rings, &n))
		return damaged(r, "rings", "its length is not that of slots");
	enum hd_err err = find(r, "rings", rings.process, &life);
	if (err)
		return err;
	if (rings.ring >= life->info.nrings || rings.first > INT64_MAX || rings.nlost > INT64_MAX)
		return damaged(r, "rings", "there is no such ring, or slot");
	/* LOST stands for the last of those that were missed: the gap says so itself */
	if (n && hd_event_get(slot, &event) && event.kind == HD_EVENT_LOST) {
		slot += HD_SLOT_BYTES;
		rings.first++;
		n--;
	}
	struct hd_tl_ring *ring = &life->ring[rings.ring];
	if (!ring->npieces)
		ring->lead = rings.nlost < rings.first ? rings.nlost : rings.first;
	struct hd_tl_piece *last = ring->npieces ? &ring->piece[ring->npieces - 1] : NULL;
	if (last && rings.first < last->first + last->nslots)
		return damaged(r, "rings", "its slots do not come after those before it");
	return n ? hd_tl_piece_add(r->arena, ring, (struct hd_tl_piece){ rings.first, n, slot }, r->diag) :
		HD_OK;
}

static enum hd_err take_plan(struct hdt_read *r, const struct hd_hdt_section *s)
{
	if (s->stored_bytes < PLAN_HASH)
		return damaged(r, "plans", "it is too short");
	struct hd_tl_lives *lives = r->lives;
	enum hd_err err = hd_tl_grow(r->arena, &lives->plan, &lives->plans_cap, lives->nplans + 1ull,
		sizeof *lives->plan, r->diag);
	if (err)
		return err;
	struct hd_tl_text *plan = &lives->plan[lives->nplans++];
	memcpy(plan->hash, s->stored, PLAN_HASH);
	plan->text = (const char *)s->stored + PLAN_HASH;
	plan->len = (size_t)(s->stored_bytes - PLAN_HASH);
	return HD_OK;
}

/* It is for people; that the clocks were tightened is all that counts here. */
static enum hd_err take_meta(struct hdt_read *r, const struct hd_hdt_section *s)
{
	const struct hd_json *meta, *tightened;
	bool yes = false;

	if (s->stored_bytes > META_TEXT)
		return damaged(r, "meta", "it is too long");
	enum hd_err err = hd_json_parse(r->arena, r->input->name, (const char *)s->stored,
		(size_t)s->stored_bytes, &meta, r->diag);
	if (!err && (tightened = hd_json_find(meta, "tightened")))
		err = hd_json_as_bool(tightened, &yes, r->diag);
	r->lives->tightened |= yes;
	return err;
}

static enum hd_err skip(struct hdt_read *r, const struct hd_hdt_section *s)
{
	(void)r;
	(void)s;
	return HD_OK;
}

/* Alignment and index follow from the slots: they are written for other readers. */
static enum hd_err (*const take[])(struct hdt_read *r, const struct hd_hdt_section *s) = {
	[0] = skip, [HD_HDT_META] = take_meta, [HD_HDT_NAMES] = take_names, [HD_HDT_RINGS] = take_rings,
	[HD_HDT_ALIGNMENT] = skip, [HD_HDT_PLANS] = take_plan, [HD_HDT_INDEX] = skip,
	[HD_HDT_PROCESS] = take_process,
};

static enum hd_err take_section(struct hdt_read *r, const struct hd_hdt_section *s)
{
	if (s->type >= sizeof take / sizeof take[0])
		return HD_OK;
	if (s->flags & HD_HDT_ZSTD)
		return hd_fail(r->diag, HD_E_INPUT, "%s: a section %s is compressed by zstd, which this "
			"version does not read; record it again without", r->input->name,
			hd_hdt_type_text(s->type));
	return take[s->type](r, s);
}

/* What does not fit in memory is no fault of the file's. */
static enum hd_err leave_out(struct hdt_read *r, enum hd_err err, bool cut)
{
	if (err == HD_E_INPUT)
		return drop(r, cut);
	return hd_fail(r->outer, err, "%s", r->diag->text);
}

enum hd_err hd_tl_read_hdt(struct hd_arena *arena, const struct hd_tl_input *input,
	struct hd_tl_lives *lives, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	struct hdt_read r = { .arena = arena, .input = input, .lives = lives, .diag = &why, .outer = diag };
	struct hd_hdt_reader reader;
	struct hd_hdt_section s;
	enum hd_err err = hd_hdt_begin(&reader, input->bytes, input->len, input->name, diag);
	bool more = !err;

	while (!err && more) {
		size_t skipped;
		enum hd_err bad = hd_hdt_next(&reader, &s, &why);
		if (!bad && s.type) {
			bad = take_section(&r, &s);
			err = bad ? leave_out(&r, bad, false) : HD_OK;
			continue;
		}
		const bool cut = !bad && reader.cut;
		more = (bad || cut) && hd_hdt_resume(&reader, &skipped);
		if (cut && more)
			(void)hd_fail(&why, HD_E_INPUT, "%s: a section before byte %zu is damaged: "
				"its length is wrong", input->name, reader.at);
		if (bad || cut)
			err = leave_out(&r, HD_E_INPUT, cut && !more);
	}
	return err;
}
