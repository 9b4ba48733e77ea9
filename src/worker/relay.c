#include "worker/relay.h"

#include <string.h>

#include "base/alloc.h"
#include "base/le.h"

/* Ids of transfers: exchange.h names roots and sums; a leaf stands in the place of a bucket. */
enum { HD_LEAF_HEAD = 8 };                /* version and count, before the entries (share.h) */

static uint32_t id_of(enum hd_transfer_kind kind, uint32_t ordinal, uint32_t number)
{
	return (uint32_t)kind << 30 | ordinal << 20 | number;
}

static void *grown(void *old, uint64_t *cap, uint64_t need, size_t size)
{
	if (need <= *cap)
		return old;
	void *new = hd_alloc(need * size);
	if (!new)
		return NULL;
	hd_free(old);
	*cap = need;
	return new;
}

static uint64_t digest_at(const struct hd_relay *r, uint32_t bucket)
{
	uint64_t one = r->nbuckets ? hd_share_digest_bytes(r->worker, 0) / hd_layout_bucket(r->layout,
		0).nsegments : 0;

	return one * (bucket < r->nbuckets ? hd_layout_bucket(r->layout, bucket).first_segment :
		r->layout->nsegments);
}

enum hd_err hd_relay_init(struct hd_relay *r, struct hd_hub *hub, struct hd_worker *worker,
	const struct hd_layout *layout,
	uint32_t nvns, struct hd_diag *diag)
{
	*r = (struct hd_relay){ .hub = hub, .worker = worker, .layout = layout, .nvns = nvns,
		.nbuckets = hd_layout_nbuckets(layout),
		.leaf_len = hd_share_leaves_bytes(worker, 1) };
	const struct { uint8_t **at; uint64_t bytes; } taken[] = {
		{ &r->leaf, nvns * r->leaf_len }, { &r->table, hd_share_leaves_bytes(worker, nvns) }, { &r->own, hd_share_leaves_bytes(worker, nvns) },
		{ &r->leaf_here, nvns }, { &r->digest, digest_at(r, r->nbuckets) + 1 }, { &r->parts, r->nbuckets },
	};
	bool all = (r->norm = hd_alloc((size_t)layout->nsegments * sizeof *r->norm)) != NULL;
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		all &= (*taken[i].at = hd_alloc(taken[i].bytes)) != NULL;
	if (!all)
		return hd_fail(diag, HD_E_NOMEM, "no memory for what %u virtual nodes say", nvns);
	memset(r->leaf_here, 0, nvns);
	return HD_OK;
}

void hd_relay_finish(struct hd_relay *r)
{
	hd_free(r->leaf);
	hd_free(r->table);
	hd_free(r->own);
	hd_free(r->leaf_here);
	hd_free(r->norm);
	hd_free(r->digest);
	hd_free(r->parts);
	hd_free(r->operand);
	hd_free(r->room);
	hd_free(r->rows);
	*r = (struct hd_relay){ 0 };
}

void hd_relay_epoch(struct hd_relay *r, uint32_t epoch) { r->epoch = epoch; }

void hd_relay_view(struct hd_relay *r, const struct hd_view *view, uint32_t self)
{
	r->view = *view;
	r->self = self;
	r->has_view = true;
	r->x = NULL;
	uint32_t me = hd_view_index(view, self);
	r->first_owned = hd_bucket_first(me, r->nbuckets, view->nmembers);
	r->nowned = hd_bucket_first(me + 1, r->nbuckets, view->nmembers) - r->first_owned;
}

/* ---- what there is in a step ---- */

static enum hd_err name_roots(struct hd_relay *r, struct hd_diag *diag)
{
	uint32_t first[HD_MAX_PASSES + 1], npasses;

	r->nroots = 0;
	for (uint32_t m = 0; m < r->view.nmembers; m++) {
		uint32_t worker = r->view.member[m], at = r->nroots;
		enum hd_err err = hd_passes_roots(&r->x->passes, r->nvns, worker, r->root + at,
			HD_VIEW_ROOTS - at, first, &npasses);
		if (err)
			return hd_fail(diag, err, "the roots of step %llu are more than %d",
				(unsigned long long)r->x->step, HD_VIEW_ROOTS);
		for (uint32_t p = 0; p < npasses; p++)
			for (uint32_t i = first[p]; i < first[p + 1]; i++)
				r->of[r->nroots++] = (struct hd_relay_root){ worker, i, p, i - first[p] };
	}
	return HD_OK;
}

static float *place(const struct hd_relay *r, uint32_t bucket, uint32_t foreign)
{
	return r->room + ((uint64_t)foreign * r->nowned + (bucket - r->first_owned)) *
		(HD_BUCKET_BYTES / sizeof(float));
}

/* Every operand of every owned bucket has its address; own roots have theirs when they are computed. */
static enum hd_err make_places(struct hd_relay *r, struct hd_diag *diag)
{
	uint32_t nforeign = 0, at = 0;

	for (uint32_t i = 0; i < r->nroots; i++)
		nforeign += r->of[i].worker != r->self;
	void *room = grown(r->room, &r->room_cap, (uint64_t)nforeign * r->nowned, HD_BUCKET_BYTES);
	if (room)
		r->room = room;
	void *operand = grown(r->operand, &r->operand_cap, (uint64_t)r->nroots * r->nowned,
		sizeof *r->operand);
	if (operand)
		r->operand = operand;
	if ((nforeign && r->nowned && !room) || (r->nroots && r->nowned && !operand))
		return hd_fail(diag, HD_E_NOMEM, "no memory for the roots that others send: %u of %u buckets",
			nforeign, r->nowned);
	for (uint32_t i = 0; i < r->nroots; i++) {
		bool own = r->of[i].worker == r->self;
		for (uint32_t b = 0; b < r->nowned; b++)
			r->operand[(uint64_t)b * r->nroots + i] = own ? NULL : place(r, r->first_owned + b,
				at);
		at += !own;
	}
	return HD_OK;
}

const float *const *hd_relay_operands(struct hd_relay *r, uint32_t bucket)
{
	const float **row = r->operand + (uint64_t)(bucket - r->first_owned) * r->nroots;

	for (uint32_t i = 0; i < r->nroots; i++)
		if (r->of[i].worker == r->self)
			row[i] = hd_share_root_at(r->worker, r->share_pass[r->of[i].pass], r->of[i].index,
				bucket);
	return row;
}

/* ---- channels ---- */

static uint32_t roots_under(const struct hd_relay *r, const struct hd_vrange *range, uint32_t nranges)
{
	struct hd_tnode root[HD_VIEW_ROOTS];
	uint32_t n = 0;

	return hd_ranges_roots(r->nvns, range, nranges, root, HD_VIEW_ROOTS, &n) ? 0 : n;
}

/* The most roots that a worker sends in a step of this epoch: of the step at hand, or of its share of the
 * view. */
static uint32_t most_roots(const struct hd_relay *r, uint32_t worker)
{
	struct hd_vrange range[HD_VIEW_RANKS];
	uint32_t view = roots_under(r, range, hd_view_ranges(&r->view, worker, range)), step = 0;

	for (uint32_t i = 0; i < r->nroots; i++)
		step += r->of[i].worker == worker;
	return view > step ? view : step;
}

static void mark(uint8_t *has, const struct hd_vrange *range, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memset(has + range[i].first, 1, range[i].n);
}

/* Leaves that a worker tells of in this epoch. */
static void mark_leaves(const struct hd_relay *r, uint32_t worker, uint8_t *has)
{
	const struct hd_passes *p = &r->x->passes;
	struct hd_vrange range[HD_VIEW_RANKS];

	memset(has, 0, r->nvns);
	mark(has, range, hd_view_ranges(&r->view, worker, range));
	for (uint32_t i = 0; i < p->npasses; i++)
		if (p->pass[i].worker == worker)
			mark(has, p->range + p->pass[i].first_range, p->pass[i].nranges);
}

static uint64_t bucket_bytes(const struct hd_relay *r, uint32_t b) { return hd_layout_bucket(r->layout,
	b).len * sizeof(float); }

/* The transfers of one part of a bucket between two members: those of the view's steps, and of the step at
 * hand if it is another chain's. */
static bool part_goes(const struct hd_relay *r, enum hd_sum_part part, uint32_t b, uint32_t from, uint32_t to)
{
	uint32_t n = r->view.nmembers, copies = r->x->copies, owner = hd_bucket_owner(b, r->nbuckets, n);
	uint64_t line = hd_bucket_chain(b, r->nbuckets, n, copies) | r->x->chain[b] | r->x->have[b] |
		UINT64_C(1) << owner;

	if (!copies)
		/* there is no other part */
		return owner == from || hd_exchange_source(r->x, b) == from;
	if (part == HD_PART_SUM)
		return line >> from & 1 && line >> to & 1;
	if (part == HD_PART_NORM)
		return owner == from || hd_exchange_source(r->x, b) == from;
	if (part == HD_PART_DIGEST && !hd_share_digest_bytes(r->worker, b))
		return false;
	return from == (owner + (copies < n ? copies : n) - 1) % n ||
		hd_exchange_parm_source(r->x, b) == from;
}

static uint64_t part_bytes(const struct hd_relay *r, enum hd_sum_part part, uint32_t b)
{
	switch (part) {
	case HD_PART_NORM:   return hd_share_norm_bytes(r->worker, b);
	case HD_PART_DIGEST: return hd_share_digest_bytes(r->worker, b);
	case HD_PART_SUM: case HD_PART_PARM: case HD_NPARTS: break;
	}
	return bucket_bytes(r, b);
}

/* Rows of what `from` may send to `to`, indices of members; ids rise. The table's row is there always:
 * whoever needs it. */
static size_t rows_of(struct hd_relay *r, uint32_t from, uint32_t to, struct hd_transfer *row, uint8_t *has)
{
	uint32_t most = most_roots(r, r->view.member[from]), n = r->view.nmembers;
	size_t at = 0;

	for (uint32_t o = 0; o < most; o++)
		for (uint32_t b = hd_bucket_first(to, r->nbuckets, n);
			b < hd_bucket_first(to + 1, r->nbuckets, n); b++)
			row[at++] = (struct hd_transfer){ .id = id_of(HD_TRANSFER_ROOT, o, b),
				.bytes = bucket_bytes(r, b) };
	for (uint32_t part = 0; part < (r->x->copies ? (uint32_t)HD_NPARTS : 1); part++)
		for (uint32_t b = 0; b < r->nbuckets; b++)
			if (part_goes(r, (enum hd_sum_part)part, b, from, to))
				row[at++] = (struct hd_transfer){ .id = id_of(HD_TRANSFER_SUM, part, b),
					.bytes = part_bytes(r, (enum hd_sum_part)part, b) };
	mark_leaves(r, r->view.member[from], has);
	for (uint32_t v = 0; v < r->nvns; v++)
		if (has[v])
			row[at++] = (struct hd_transfer){ .id = id_of(HD_TRANSFER_LEAVES, 0, v),
				.bytes = r->leaf_len };
	row[at++] = (struct hd_transfer){ .id = id_of(HD_TRANSFER_TABLE, 0, 0),
		.bytes = hd_share_leaves_bytes(r->worker, r->nvns) };
	return at;
}

static enum hd_err open_channel(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	uint32_t me = hd_view_index(&r->view, r->self), worker = r->view.member[member];
	uint64_t cap = r->rows_cap, one = (uint64_t)r->nbuckets * (r->x->copies ? HD_NPARTS : 1) + r->nvns +
		1;
	uint32_t most = most_roots(r, worker) > most_roots(r, r->self) ? most_roots(r, worker) : most_roots(r,
		r->self);

	one += (uint64_t)most * r->nbuckets;
	void *rows = grown(r->rows, &cap, 2 * one + r->nvns / sizeof *r->rows + 1, sizeof *r->rows);
	if (!rows)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the transfers with worker %u", worker);
	r->rows = rows;
	r->rows_cap = (size_t)cap;
	uint8_t *has = (uint8_t *)(r->rows + 2 * one);
	size_t n_in = rows_of(r, member, me, r->rows, has),
		n_out = rows_of(r, me, member, r->rows + n_in, has);
	enum hd_err err = hd_hub_channel(r->hub, worker, r->rows, n_in, r->rows + n_in, n_out, diag);
	if (!err)
		r->open_epoch[member] = (uint64_t)r->view.epoch + 1;
	r->served[member] = r->awaited[member] = 0;
	return err;
}

/* ---- posting ---- */

/* Where a transfer of the step at hand goes; NULL: it is none of those that can come. */
static void *place_of(const struct hd_relay *r, uint32_t worker, uint32_t id)
{
	uint32_t ordinal = id >> 20 & 0x3ff, number = id & 0xfffff;

	switch ((enum hd_transfer_kind)(id >> 30)) {
	case HD_TRANSFER_ROOT:
		for (uint32_t i = 0; i < r->nroots && number - r->first_owned < r->nowned; i++)
			if (r->of[i].worker == worker && r->of[i].ordinal == ordinal)
				return (float *)(uintptr_t)r->operand[(uint64_t)(number - r->first_owned) *
					r->nroots + i];
		return NULL;
	case HD_TRANSFER_SUM:
		switch ((enum hd_sum_part)ordinal) {
		case HD_PART_SUM:    return hd_share_sum_at(r->worker, number);
		case HD_PART_NORM:   return r->norm + hd_layout_bucket(r->layout, number).first_segment;
		case HD_PART_PARM:   return hd_share_parm_at(r->worker, number);
		case HD_PART_DIGEST: return r->digest + digest_at(r, number);
		case HD_NPARTS:      break;
		}
		return NULL;
	case HD_TRANSFER_LEAVES: return r->leaf + number * r->leaf_len;
	case HD_TRANSFER_TABLE:  return r->table;
	}
	return NULL;
}

static enum hd_err post(struct hd_relay *r, uint32_t worker, uint32_t id, struct hd_diag *diag)
{
	enum hd_err err = hd_hub_post(r->hub, worker, id, place_of(r, worker, id), diag);

	r->awaited[hd_view_index(&r->view, worker)] += !err;
	return err == HD_E_PEERLOST ? HD_OK : err;         /* the loss is told by itself */
}

static enum hd_err post_roots(struct hd_relay *r, uint32_t worker, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < r->nroots; i++)
		for (uint32_t b = 0; b < r->nowned && !err && r->of[i].worker == worker; b++) {
			uint32_t bucket = r->first_owned + b;
			if (hd_exchange_wants_roots(r->x, bucket) &&
				!hd_exchange_has_root(r->x, worker, r->of[i].ordinal, bucket))
				err = post(r, worker, id_of(HD_TRANSFER_ROOT, r->of[i].ordinal, bucket),
					diag);
		}
	return err;
}

static enum hd_err post_leaves(struct hd_relay *r, uint32_t worker, struct hd_diag *diag)
{
	const struct hd_passes *p = &r->x->passes;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < p->npasses; i++)
		for (uint32_t k = 0; k < p->pass[i].nranges && p->pass[i].worker == worker &&
			!hd_exchange_has_leaves(r->x, i); k++) {
			const struct hd_vrange *range = &p->range[p->pass[i].first_range + k];
			for (uint32_t v = range->first; v < range->first + range->n && !err; v++)
				err = post(r, worker, id_of(HD_TRANSFER_LEAVES, 0, v), diag);
		}
	return err;
}

static bool has_digest(const struct hd_relay *r, uint32_t b)
{
	return r->digest_every && (r->x->step + 1) % r->digest_every == 0 &&
		hd_share_digest_bytes(r->worker, b);
}

/* Of sharded state: what a member sends of a bucket. */
static enum hd_err post_parts(struct hd_relay *r, uint32_t worker, uint32_t member, uint32_t b,
	struct hd_diag *diag)
{
	uint64_t mine = UINT64_C(1) << r->x->me;
	bool parm = hd_exchange_parm_source(r->x, b) == member && hd_exchange_parm_to(r->x, b) & mine &&
		!hd_exchange_fresh(r->x, b);
	enum hd_err err = HD_OK;

	if (hd_exchange_source(r->x, b) == member && !(r->x->done & mine) &&
		!(r->parts[b] & 1u << HD_PART_NORM))
		err = post(r, worker, id_of(HD_TRANSFER_SUM, HD_PART_NORM, b), diag);
	if (parm && !err)
		err = post(r, worker, id_of(HD_TRANSFER_SUM, HD_PART_PARM, b), diag);
	if (parm && !err && has_digest(r, b))
		err = post(r, worker, id_of(HD_TRANSFER_SUM, HD_PART_DIGEST, b), diag);
	return err;
}

/* What the step will bring from one member. */
static enum hd_err post_from(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	uint32_t worker = r->view.member[member], source = hd_exchange_table_source(r->x);
	enum hd_err err = post_roots(r, worker, diag);

	for (uint32_t b = 0; b < r->nbuckets && !err; b++)
		if (hd_exchange_sum_from(r->x, b) == member && !hd_exchange_summed(r->x, b))
			err = post(r, worker, id_of(HD_TRANSFER_SUM, 0, b), diag);
	for (uint32_t b = 0; b < r->nbuckets && !err && r->x->copies; b++)
		err = post_parts(r, worker, member, b, diag);
	if (!err && source == member && !r->x->table)
		err = post(r, worker, id_of(HD_TRANSFER_TABLE, 0, 0), diag);
	if (!err && source == HD_NOBODY && !r->x->table)
		err = post_leaves(r, worker, diag);
	return err;
}

static bool is_open(const struct hd_relay *r, uint32_t member)
{
	return r->open_epoch[member] == (uint64_t)r->view.epoch + 1 &&
		hd_hub_is_up(r->hub, r->view.member[member]);
}

/* Once for each step and channel: a transfer posted twice would be filled twice, the second time by the
 * next step. */
static enum hd_err serve(struct hd_relay *r, uint32_t member, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (r->view.member[member] == r->self || !hd_hub_is_up(r->hub, r->view.member[member]))
		return HD_OK;
	if (!is_open(r, member))
		err = open_channel(r, member, diag);
	if (err || r->served[member] == r->step + 1)
		return err;
	r->served[member] = r->step + 1;
	return post_from(r, member, diag);
}

/* What was posted for the step before has come: its places are free for this one. */
static enum hd_err check_filled(const struct hd_relay *r, uint64_t step, struct hd_diag *diag)
{
	for (uint32_t m = 0; m < r->view.nmembers; m++)
		if (is_open(r, m) && r->awaited[m])
			return hd_fail(diag, HD_E_INTEGRITY,
				"step %llu is begun while %u transfers of step %llu are awaited from worker "
				"%u",
				(unsigned long long)step, r->awaited[m], (unsigned long long)r->step,
				r->view.member[m]);
	return HD_OK;
}

/* An epoch has ended and the view of the next is not here: it opens its own channels, with its own rows. */
static bool is_between(const struct hd_relay *r) { return r->view.epoch != r->epoch; }

/* The first time in this view. A step that begins again keeps what leaves said if all of it was there;
 * else all of it comes again. */
static enum hd_err name_all(struct hd_relay *r, const struct hd_exchange *x, struct hd_diag *diag)
{
	enum hd_err err = check_filled(r, x->step, diag);

	if (err)
		return err;
	if (!x->table)
		memset(r->leaf_here, 0, r->nvns);
	memset(r->parts, 0, r->nbuckets);         /* in another view all parts come again */
	r->step = x->step;
	r->x = x;
	err = name_roots(r, diag);
	return err ? err : make_places(r, diag);
}

enum hd_err hd_relay_open(struct hd_relay *r, const struct hd_exchange *x, struct hd_diag *diag)
{
	if (is_between(r))
		/* a step that was begun just before: it begins again under that view */
		return HD_OK;
	enum hd_err err = r->x && r->step == x->step ? HD_OK : name_all(r, x, diag);
	for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
		err = serve(r, m, diag);
	return err;
}

enum hd_err hd_relay_up(struct hd_relay *r, uint32_t worker, struct hd_diag *diag)
{
	uint32_t member = r->has_view ? hd_view_index(&r->view, worker) : HD_NOBODY;

	if (member == HD_NOBODY || !r->x || is_between(r))
		return HD_OK;
	r->open_epoch[member] = 0;
	/* A step that waits for the hand opens with all who are up then; its roots and places are not
	 * named yet, those of the step before lie. */
	return r->step == r->x->step ? serve(r, member, diag) : HD_OK;
}

/* ---- sending ---- */

static enum hd_err send(struct hd_relay *r, uint32_t worker, uint32_t id, int32_t priority, const void *bytes,
	uint64_t len, struct hd_diag *diag)
{
	struct hd_send s = { .transfer = id, .priority = priority, .step = r->x->step, .bytes = bytes,
		.len = len, .token = id };
	enum hd_err err = hd_hub_send(r->hub, worker, &s, diag);

	return err == HD_E_PEERLOST ? HD_OK : err;
}

enum hd_err hd_relay_roots(struct hd_relay *r, uint32_t pass, uint32_t bucket, uint32_t to,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < r->nroots && !err; i++)
		if (r->of[i].worker == r->self && r->of[i].pass == pass)
			err = send(r, to, id_of(HD_TRANSFER_ROOT, r->of[i].ordinal, bucket), (int32_t)bucket,
				hd_share_root_at(r->worker, r->share_pass[pass], r->of[i].index, bucket),
				bucket_bytes(r, bucket), diag);
	return err;
}

static enum hd_err send_part(struct hd_relay *r, enum hd_sum_part part, uint32_t bucket, uint64_t members,
	int32_t priority, const void *bytes,
	struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
		if (members >> m & 1 && r->view.member[m] != r->self)
			err = send(r, r->view.member[m], id_of(HD_TRANSFER_SUM, part, bucket), priority,
				bytes, part_bytes(r, part, bucket), diag);
	return err;
}

enum hd_err hd_relay_sum(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	return send_part(r, HD_PART_SUM, bucket, members, (int32_t)bucket, hd_share_sum_at(r->worker, bucket),
		diag);
}

/* All wait for them. */
enum hd_err hd_relay_norm(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	return send_part(r, HD_PART_NORM, bucket, members, INT32_MIN, hd_share_norm_at(r->worker, bucket),
		diag);
}

enum hd_err hd_relay_parm(struct hd_relay *r, uint32_t bucket, uint64_t members, struct hd_diag *diag)
{
	enum hd_err err = send_part(r, HD_PART_PARM, bucket, members, (int32_t)bucket,
		hd_share_parm_at(r->worker, bucket), diag);

	return err || !has_digest(r, bucket) ? err : send_part(r, HD_PART_DIGEST, bucket, members,
		(int32_t)bucket, r->digest + digest_at(r, bucket), diag);
}

enum hd_err hd_relay_leaves_out(struct hd_relay *r, uint32_t pass, struct hd_diag *diag)
{
	const struct hd_pass *p = hd_passes_find(&r->x->passes, r->self, pass);
	enum hd_err err = HD_OK;

	for (uint32_t k = 0; p && k < p->nranges; k++)
		for (uint32_t i = 0; i < r->x->passes.range[p->first_range + k].n; i++) {
			uint32_t v = r->x->passes.range[p->first_range + k].first + i;
			for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
				if (r->view.member[m] != r->self)
					err = send(r, r->view.member[m], id_of(HD_TRANSFER_LEAVES, 0, v),
						INT32_MIN, r->leaf + v * r->leaf_len, r->leaf_len,
						diag);
		}
	return err;
}

enum hd_err hd_relay_table(struct hd_relay *r, uint64_t members, struct hd_diag *diag)
{
	uint64_t entry = r->leaf_len - HD_LEAF_HEAD, len = HD_LEAF_HEAD + r->nvns * entry;
	enum hd_err err = HD_OK;

	memcpy(r->table, r->leaf, HD_LEAF_HEAD);
	hd_put32(r->table + 4, r->nvns);
	for (uint32_t v = 0; v < r->nvns; v++)
		memcpy(r->table + HD_LEAF_HEAD + v * entry, r->leaf + v * r->leaf_len + HD_LEAF_HEAD, entry);
	for (uint32_t m = 0; m < r->view.nmembers && !err; m++)
		if (members >> m & 1 && r->view.member[m] != r->self)
			err = send(r, r->view.member[m], id_of(HD_TRANSFER_TABLE, 0, 0), INT32_MIN, r->table,
				len, diag);
	return err;
}

/* ---- arriving ---- */

/* The pass of `worker` that holds leaf v, if all of it is here. */
static uint32_t pass_done(const struct hd_relay *r, uint32_t worker, uint32_t v)
{
	const struct hd_passes *p = &r->x->passes;

	for (uint32_t i = 0; i < p->npasses; i++) {
		bool its = false, all = true;
		for (uint32_t k = 0; k < p->pass[i].nranges && p->pass[i].worker == worker; k++) {
			const struct hd_vrange *range = &p->range[p->pass[i].first_range + k];
			its |= v >= range->first && v < range->first + range->n;
			for (uint32_t u = range->first; u < range->first + range->n; u++)
				all &= r->leaf_here[u] != 0;
		}
		if (its)
			return all ? p->pass[i].pass : HD_NOBODY;
	}
	return HD_NOBODY;
}

static void split_table(struct hd_relay *r)
{
	uint64_t entry = r->leaf_len - HD_LEAF_HEAD;

	for (uint32_t v = 0; v < r->nvns; v++) {
		memcpy(r->leaf + v * r->leaf_len, r->table, HD_LEAF_HEAD);
		hd_put32(r->leaf + v * r->leaf_len + 4, 1);
		memcpy(r->leaf + v * r->leaf_len + HD_LEAF_HEAD, r->table + HD_LEAF_HEAD + v * entry, entry);
		r->leaf_here[v] = 1;
	}
}

enum hd_err hd_relay_arrived(struct hd_relay *r, const struct hd_arrival *arrival, struct hd_relay_news *news,
	struct hd_diag *diag)
{
	uint32_t number = arrival->transfer & 0xfffff, member = hd_view_index(&r->view, arrival->worker);

	if (!r->x || arrival->step != r->x->step || arrival->step != r->step || member == HD_NOBODY)
		return hd_fail(diag, HD_E_PROTOCOL, "worker %u sends of step %llu while step %llu is open",
			arrival->worker, (unsigned long long)arrival->step,
			(unsigned long long)(r->x ? r->x->step : 0));
	if (!r->awaited[member] || arrival->buffer != place_of(r, arrival->worker, arrival->transfer))
		return hd_fail(diag, HD_E_INTEGRITY,
			"step %llu: transfer %08x of worker %u came to a place of another one",
			(unsigned long long)arrival->step,
			arrival->transfer, arrival->worker);
	r->awaited[member]--;
	*news = (struct hd_relay_news){ .kind = (enum hd_transfer_kind)(arrival->transfer >> 30),
		.ordinal = arrival->transfer >> 20 & 0x3ff, .bucket = number };
	switch (news->kind) {
	case HD_TRANSFER_LEAVES:
		r->leaf_here[number] = 1;
		news->pass = pass_done(r, arrival->worker, number);
		news->pass_done = news->pass != HD_NOBODY;
		break;
	case HD_TRANSFER_TABLE:
		split_table(r);
		break;
	case HD_TRANSFER_SUM:
		r->parts[number] |= (uint8_t)(1u << news->ordinal);
		news->parm_done = r->parts[number] & 1u << HD_PART_PARM &&
			(!has_digest(r, number) || r->parts[number] & 1u << HD_PART_DIGEST);
		break;
	case HD_TRANSFER_ROOT:
		break;
	}
	return HD_OK;
}

/* ---- the hand's ---- */

void hd_relay_leaves(struct hd_relay *r, uint32_t pass)
{
	uint32_t n = hd_share_nleaves(r->worker, r->share_pass[pass]);
	uint64_t entry = r->leaf_len - HD_LEAF_HEAD;
	uint8_t *all = r->own;

	hd_share_leaves_get(r->worker, r->share_pass[pass], all);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *from = all + HD_LEAF_HEAD + i * entry;
		uint8_t *to = r->leaf + hd_get32(from) * r->leaf_len;
		memcpy(to, all, HD_LEAF_HEAD);
		hd_put32(to + 4, 1);
		memcpy(to + HD_LEAF_HEAD, from, entry);
	}
}

enum hd_err hd_relay_take(struct hd_relay *r, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t v = 0; v < r->nvns && !err; v++)
		if (r->leaf_here[v])
			err = hd_share_leaves_put(r->worker, r->leaf + v * r->leaf_len, r->leaf_len, diag);
	return err;
}

void hd_relay_take_norms(struct hd_relay *r)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (!hd_share_summed(r->worker, b))
			memcpy(hd_share_norm_at(r->worker, b),
				r->norm + hd_layout_bucket(r->layout, b).first_segment,
				hd_share_norm_bytes(r->worker, b));
}

void hd_relay_own_digests(struct hd_relay *r, const uint8_t *own)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (own[b] && has_digest(r, b))
			hd_share_digest_get(r->worker, b, r->digest + digest_at(r, b));
}

void hd_relay_take_digests(struct hd_relay *r, const uint8_t *own)
{
	for (uint32_t b = 0; b < r->nbuckets; b++)
		if (!own[b] && has_digest(r, b))
			hd_share_digest_put(r->worker, b, r->digest + digest_at(r, b));
}
