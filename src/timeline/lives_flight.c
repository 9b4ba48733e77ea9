#include <string.h>

#include "timeline/lives_int.h"

enum { CHUNK = 4096 };         /* slots copied at a time, so that a living writer rarely overtakes */

/* Copies what the ring holds now; a writer that overtakes costs the slots that it overwrites. */
static enum hd_err copy_ring(struct hd_arena *arena, const struct hd_flight_view *view, uint32_t i,
	const struct hd_tl_input *input, struct hd_tl_ring *ring, struct hd_diag *diag)
{
	uint32_t nslots = view->ring[i].nslots, used = 0, n;
	uint8_t (*slot)[HD_SLOT_BYTES];
	struct hd_ring_reader reader;
	enum hd_err err = HD_OK;

	hd_ring_read_begin(&reader, view->ring[i].memory, nslots);
	uint64_t head = atomic_load_explicit(&reader.ring->head, memory_order_acquire);
	uint64_t cap = head < nslots ? head + 2 : nslots;
	if (!head)
		return HD_OK;
	slot = hd_arena_take(arena, cap, sizeof *slot);
	if (!slot)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %llu slots", input->name,
			(unsigned long long)cap);
	while (cap - used >= 2 && (n = hd_ring_read(&reader, slot + used,
		cap - used < CHUNK ? (uint32_t)(cap - used) : CHUNK))) {
		uint64_t first = reader.next - n;
		struct hd_tl_piece *last = ring->npieces ? &ring->piece[ring->npieces - 1] : NULL;
		if (last && last->first + last->nslots == first)
			last->nslots += n;
		else
			err = hd_tl_piece_add(arena, ring, (struct hd_tl_piece){ first, n, slot[used] },
				diag);
		if (err)
			return err;
		used += n;
	}
	ring->lead = ring->npieces ? ring->piece[0].first : 0;
	return HD_OK;
}

static enum hd_err copy_bytes(struct hd_arena *arena, const void *from, size_t len, const char *name,
	const void **to, struct hd_diag *diag)
{
	void *copy = hd_arena_take(arena, len ? len : 1, 1);

	if (!copy)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for %zu bytes", name, len);
	memcpy(copy, from, len);
	*to = copy;
	return HD_OK;
}

enum hd_err hd_tl_read_flight(struct hd_arena *arena, const struct hd_tl_input *input,
	struct hd_tl_lives *lives, struct hd_diag *diag)
{
	struct hd_flight_view *view = hd_arena_take(arena, 1, sizeof *view);
	struct hd_tl_life *life;
	const void *at = NULL;

	if (!view)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", input->name);
	enum hd_err err = hd_flight_parse(input->bytes, input->len, input->name, view, diag);
	if (!err)
		err = hd_tl_life_add(arena, lives, input->name, &life, diag);
	if (err)
		return err;
	life->info = view->info;
	life->state = view->state;
	for (uint32_t i = 0; i < view->info.nrings && !err; i++)
		err = copy_ring(arena, view, i, input, &life->ring[i], diag);
	/* names come after the slots that use them: a name that a slot has was there when it was put */
	if (!err)
		err = hd_flight_parse(input->bytes, input->len, input->name, view, diag);
	if (!err)
		err = copy_bytes(arena, view->names, view->names_used, input->name, &at, diag);
	if (err)
		return err;
	life->names = at;
	life->names_used = view->names_used;
	err = copy_bytes(arena, input->bytes, HD_FLIGHT_HEADER_BYTES, input->name, &at, diag);
	life->header = at;
	return err;
}
