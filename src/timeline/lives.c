#include "timeline/lives_int.h"

#include <string.h>

#include "base/checked.h"

enum { FIRST_CAP = 8 };

enum hd_err hd_tl_grow(struct hd_arena *arena, void *list, uint32_t *cap, uint64_t n, size_t size,
	struct hd_diag *diag)
{
	uint64_t wanted = *cap ? *cap : FIRST_CAP;
	void *old, *grown;

	if (n <= *cap)
		return HD_OK;
	while (wanted < n)
		wanted *= 2;
	grown = wanted <= UINT32_MAX ? hd_arena_take(arena, wanted, size) : NULL;
	if (!grown)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a list of %llu entries of a recording",
			(unsigned long long)n);
	memcpy(&old, list, sizeof old);
	if (*cap)
		memcpy(grown, old, *cap * size);
	memcpy(list, &grown, sizeof grown);
	*cap = (uint32_t)wanted;
	return HD_OK;
}

enum hd_err hd_tl_life_add(struct hd_arena *arena, struct hd_tl_lives *lives, const char *file,
	struct hd_tl_life **life, struct hd_diag *diag)
{
	enum hd_err err = hd_tl_grow(arena, &lives->life, &lives->cap, lives->n + 1ull, sizeof *lives->life,
		diag);

	if (err)
		return err;
	*life = hd_arena_take(arena, 1, sizeof **life);
	if (!*life)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for a process", file);
	(*life)->file = file;
	lives->life[lives->n++] = *life;
	return HD_OK;
}

enum hd_err hd_tl_piece_add(struct hd_arena *arena, struct hd_tl_ring *ring, struct hd_tl_piece piece,
	struct hd_diag *diag)
{
	enum hd_err err = hd_tl_grow(arena, &ring->piece, &ring->cap, ring->npieces + 1ull,
		sizeof *ring->piece, diag);

	if (!err)
		ring->piece[ring->npieces++] = piece;
	return err;
}

const uint8_t *hd_tl_slot_after(const struct hd_tl_ring *ring, uint32_t k, uint64_t i)
{
	const struct hd_tl_piece *piece = &ring->piece[k];

	if (i + 1 < piece->nslots)
		return piece->slot + (i + 1) * HD_SLOT_BYTES;
	return k + 1 < ring->npieces && piece[1].first == piece->first + piece->nslots ? piece[1].slot : NULL;
}

uint64_t hd_tl_ring_slots(const struct hd_tl_ring *ring)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < ring->npieces; i++)
		n += ring->piece[i].nslots;
	return n;
}

uint64_t hd_tl_ring_lost(const struct hd_tl_ring *ring)
{
	uint64_t lost = ring->lead;

	for (uint32_t i = 1; i < ring->npieces; i++)
		lost += ring->piece[i].first - ring->piece[i - 1].first - ring->piece[i - 1].nslots;
	return lost;
}

static bool begins(const uint8_t *bytes, size_t len, const char *magic)
{
	return len >= 8 && !memcmp(bytes, magic, 8);
}

bool hd_tl_is_recording(const uint8_t *bytes, size_t len)
{
	return begins(bytes, len, "HDFLIGHT") || begins(bytes, len, "HDTRACE1");
}

enum hd_err hd_tl_collect(struct hd_arena *arena, const struct hd_tl_input *input, uint32_t n,
	struct hd_tl_lives *lives, struct hd_diag *diag)
{
	struct hd_tl_lives got = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		enum hd_err err = begins(input[i].bytes, input[i].len, "HDTRACE1") ?
			hd_tl_read_hdt(arena, &input[i], &got, diag) :
			hd_tl_read_flight(arena, &input[i], &got, diag);
		if (err)
			return err;
	}
	enum hd_err err = hd_tl_join(arena, &got, diag);
	if (!err)
		*lives = got;
	return err;
}
