#include <stdlib.h>
#include <string.h>

#include "timeline/lives_int.h"

#define ORDER(a, b) do { if ((a) != (b)) return (a) < (b) ? -1 : 1; } while (0)

static bool simulated(const struct hd_tl_life *life) { return life->info.clock == HD_FLIGHT_CLOCK_SIMULATED; }

/* Of one process is what is equal here; the coordinator first, then by start. */
static int compare(const struct hd_tl_life *a, const struct hd_tl_life *b)
{
	const struct hd_flight_info *x = &a->info, *y = &b->info;

	ORDER(x->realtime_ns, y->realtime_ns);
	ORDER(x->trace_time, y->trace_time);
	ORDER(x->boottime_ns, y->boottime_ns);
	ORDER(x->pid, y->pid);
	ORDER(x->clock, y->clock);
	int by = memcmp(x->boot, y->boot, sizeof x->boot);
	if (!by)
		by = memcmp(x->job, y->job, sizeof x->job);
	return by ? by : memcmp(a->content.byte, b->content.byte, sizeof a->content.byte);
}

static int by_process(const void *a, const void *b)
{
	return compare(*(struct hd_tl_life *const *)a, *(struct hd_tl_life *const *)b);
}

static int by_worker(const void *a, const void *b)
{
	const struct hd_tl_life *x = *(struct hd_tl_life *const *)a, *y = *(struct hd_tl_life *const *)b;
	uint32_t first = x->info.worker + 1, second = y->info.worker + 1;

	if (!first != !second)
		return first ? 1 : -1;
	if (x->info.realtime_ns == y->info.realtime_ns)
		ORDER(first, second);
	return compare(x, y);
}

static int by_first(const void *a, const void *b)
{
	const struct hd_tl_piece *x = a, *y = b;

	ORDER(x->first, y->first);
	ORDER(y->nslots, x->nslots);
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	const struct hd_tl_text *x = a, *y = b;
	int by = memcmp(x->hash, y->hash, sizeof x->hash);

	if (by)
		return by;
	ORDER(x->len, y->len);
	return memcmp(x->text, y->text, x->len);
}

static void mark(struct hd_tl_life *life)
{
	struct hd_hasher hasher;

	if (!simulated(life))
		return;
	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, life->header, HD_FLIGHT_HEADER_BYTES);
	hd_hasher_add(&hasher, life->names, life->names_used);
	for (uint32_t i = 0; i < life->info.nrings; i++)
		for (uint32_t k = 0; k < life->ring[i].npieces; k++) {
			const struct hd_tl_piece *piece = &life->ring[i].piece[k];
			hd_hasher_add(&hasher, &piece->first, sizeof piece->first);
			hd_hasher_add(&hasher, piece->slot, piece->nslots * HD_SLOT_BYTES);
		}
	life->content = hd_hasher_end(&hasher);
}

/* Of two headers of one process the later: a time, or a worker's number, was set meanwhile. */
static bool is_later(const struct hd_tl_life *a, const struct hd_tl_life *b)
{
	if (a->info.latest.ns != b->info.latest.ns)
		return a->info.latest.ns > b->info.latest.ns;
	if (a->state != b->state)
		return a->state > b->state;
	return memcmp(a->header, b->header, HD_FLIGHT_HEADER_BYTES) > 0;
}

static enum hd_err two_things(const struct hd_tl_life *a, const struct hd_tl_life *b, const char *what,
	struct hd_diag *diag)
{
	bool first = strcmp(a->file, b->file) < 0;

	return hd_fail(diag, HD_E_INPUT, "%s and %s are of one process (pid %u), but their %s differ: one of "
		"them is damaged, or of another run; leave it out", first ? a->file : b->file,
		first ? b->file : a->file, a->info.pid, what);
}

/* The slots of both, sorted; what both have must be equal. */
static enum hd_err join_ring(struct hd_arena *arena, const struct hd_tl_life *to,
	const struct hd_tl_life *from, uint32_t i, struct hd_tl_ring *joined, struct hd_diag *diag)
{
	const struct hd_tl_ring *a = &to->ring[i], *b = &from->ring[i];
	uint32_t n = a->npieces + b->npieces;
	struct hd_tl_piece *all = hd_arena_take(arena, n ? n : 1, sizeof *all);
	struct hd_tl_ring out = { .lead = !a->npieces ? b->lead : !b->npieces ? a->lead :
		a->piece[0].first < b->piece[0].first ? a->lead :
		a->piece[0].first > b->piece[0].first ? b->lead : a->lead < b->lead ? a->lead : b->lead };
	enum hd_err err = HD_OK;

	if (!all)
		return hd_fail(diag, HD_E_NOMEM, "no memory to join %s and %s", to->file, from->file);
	if (a->npieces)
		memcpy(all, a->piece, a->npieces * sizeof *all);
	if (b->npieces)
		memcpy(all + a->npieces, b->piece, b->npieces * sizeof *all);
	qsort(all, n, sizeof *all, by_first);
	for (uint32_t k = 0; k < n && !err; k++) {
		struct hd_tl_piece piece = all[k];
		for (uint32_t j = out.npieces; j-- > 0;) {
			const struct hd_tl_piece *seen = &out.piece[j];
			uint64_t end = seen->first + seen->nslots, same;
			if (end <= piece.first)
				break;
			same = end - piece.first < piece.nslots ? end - piece.first : piece.nslots;
			if (memcmp(seen->slot + (piece.first - seen->first) * HD_SLOT_BYTES, piece.slot,
				same * HD_SLOT_BYTES) != 0)
				return two_things(to, from, "events", diag);
			piece.first += same;
			piece.nslots -= same;
			piece.slot += same * HD_SLOT_BYTES;
		}
		if (piece.nslots)
			err = hd_tl_piece_add(arena, &out, piece, diag);
	}
	*joined = out;
	return err;
}

static enum hd_err join_two(struct hd_arena *arena, struct hd_tl_life *to, const struct hd_tl_life *from,
	struct hd_diag *diag)
{
	uint32_t both = to->names_used < from->names_used ? to->names_used : from->names_used;

	if (to->info.nrings != from->info.nrings)
		return two_things(to, from, "lanes", diag);
	if (both && memcmp(to->names, from->names, both) != 0)
		return two_things(to, from, "names", diag);
	for (uint32_t i = 0; i < to->info.nrings; i++) {
		struct hd_tl_ring joined;
		enum hd_err err = join_ring(arena, to, from, i, &joined, diag);
		if (err)
			return err;
		to->ring[i] = joined;
	}
	if (from->names_used > to->names_used) {
		to->names = from->names;
		to->names_used = from->names_used;
	}
	if (is_later(from, to)) {
		to->info = from->info;
		to->state = from->state;
		to->header = from->header;
	}
	return HD_OK;
}

static void join_plans(struct hd_tl_lives *lives)
{
	uint32_t kept = 0;

	if (lives->nplans)
		qsort(lives->plan, lives->nplans, sizeof *lives->plan, by_hash);
	for (uint32_t i = 0; i < lives->nplans; i++)
		if (!kept || memcmp(lives->plan[kept - 1].hash, lives->plan[i].hash,
			sizeof lives->plan[i].hash) != 0)
			lives->plan[kept++] = lives->plan[i];
	lives->nplans = kept;
}

enum hd_err hd_tl_join(struct hd_arena *arena, struct hd_tl_lives *lives, struct hd_diag *diag)
{
	uint32_t kept = 0;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < lives->n; i++)
		mark(lives->life[i]);
	if (lives->n)
		qsort(lives->life, lives->n, sizeof *lives->life, by_process);
	for (uint32_t i = 0; i < lives->n && !err; i++)
		if (kept && !compare(lives->life[kept - 1], lives->life[i]))
			err = join_two(arena, lives->life[kept - 1], lives->life[i], diag);
		else
			lives->life[kept++] = lives->life[i];
	if (err)
		return err;
	lives->n = kept;
	if (kept)
		qsort(lives->life, kept, sizeof *lives->life, by_worker);
	join_plans(lives);
	return err;
}
