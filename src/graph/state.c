#include "graph/state.h"

#include <stdio.h>
#include <string.h>

#include "graph/layout.h"

enum { FIRST_CAP = 32 };

void hd_state_init(struct hd_state *state, struct hd_arena *arena) { *state =
	(struct hd_state){ .arena = arena }; }

/* Where `name` is, or where it would go. */
static uint32_t place(const struct hd_state *state, const char *name)
{
	uint32_t low = 0, high = state->nentries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (strcmp(state->entry[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static enum hd_err entry_check(const struct hd_state_entry *entry, struct hd_diag *diag)
{
	uint64_t bytes = hd_dtype_bytes((enum hd_dtype)entry->dtype);

	if (!entry->name || !*entry->name || bytes == 0 || entry->rank > HD_MAX_DIMS)
		return hd_fail(diag, HD_E_BUG, "state entry '%s': no name, no dtype or more than %d extents",
			entry->name ? entry->name : "",
			HD_MAX_DIMS);
	for (int i = 0; i < entry->rank; i++)
		bytes *= (uint64_t)entry->dim[i];
	if (bytes != entry->len_bytes)
		return hd_fail(diag, HD_E_BUG, "state entry '%s': %llu bytes, its shape needs %llu",
			entry->name,
			(unsigned long long)entry->len_bytes, (unsigned long long)bytes);
	return HD_OK;
}

enum hd_err hd_state_add(struct hd_state *state, const struct hd_state_entry *entry, struct hd_diag *diag)
{
	enum hd_err err = entry_check(entry, diag);

	if (err != HD_OK)
		return err;
	uint32_t at = place(state, entry->name);
	if (at < state->nentries && strcmp(state->entry[at].name, entry->name) == 0)
		return hd_fail(diag, HD_E_EXISTS, "state entry '%s' is there already", entry->name);
	if (state->nentries == state->cap) {
		uint32_t cap = state->cap ? 2 * state->cap : FIRST_CAP;
		struct hd_state_entry *grown = hd_arena_take(state->arena, cap, sizeof *grown);
		if (!grown)
			return hd_fail(diag, HD_E_NOMEM, "no memory for %u state entries", cap);
		if (state->nentries)
			memcpy(grown, state->entry, state->nentries * sizeof *grown);
		state->entry = grown;
		state->cap = cap;
	}
	char *name = hd_arena_text(state->arena, entry->name, strlen(entry->name));
	if (!name)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the name of a state entry");
	memmove(state->entry + at + 1, state->entry + at, (state->nentries - at) * sizeof *state->entry);
	state->entry[at] = *entry;
	state->entry[at].name = name;
	state->nentries++;
	return HD_OK;
}

struct hd_state_entry *hd_state_find(const struct hd_state *state, const char *name)
{
	uint32_t at = place(state, name);

	return at < state->nentries && strcmp(state->entry[at].name, name) == 0 ? &state->entry[at] : NULL;
}

struct hd_state_entry *hd_state_mean(const struct hd_state *state, const struct hd_state_entry *param)
{
	char name[HD_MAX_NAME + 8];

	snprintf(name, sizeof name, "%s." HD_STATE_MEAN, param->name);
	struct hd_state_entry *mean = hd_state_find(state, name);
	return mean && mean->group == HD_STATE_OPTIM ? mean : NULL;
}

uint32_t hd_state_use_means(struct hd_state *state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < state->nentries; i++) {
		struct hd_state_entry *e = &state->entry[i], *mean = e->group == HD_STATE_MODEL ?
			hd_state_mean(state, e) : NULL;
		if (!mean)
			continue;
		e->at = mean->at;
		e->slices = mean->slices;
		n++;
	}
	return n;
}

void hd_state_get(const struct hd_state_entry *entry, uint64_t first, uint64_t n, void *to)
{
	const uint64_t size = hd_dtype_bytes((enum hd_dtype)entry->dtype);

	if (entry->slices)
		hd_slices_get(&entry->slices->shape, entry->slices->at, first, n, to);
	else if (n)
		memcpy(to, (const uint8_t *)entry->at + first * size, n * size);
}

void hd_state_put(const struct hd_state_entry *entry, uint64_t first, uint64_t n, const void *from)
{
	const uint64_t size = hd_dtype_bytes((enum hd_dtype)entry->dtype);

	if (entry->slices)
		hd_slices_put(&entry->slices->shape, entry->slices->at, first, n, from);
	else if (n)
		memcpy((uint8_t *)entry->at + first * size, from, n * size);
}

/* Run by run, with no copy. */
static struct hd_hash sliced_segment(const struct hd_state_slices *slices, uint64_t first, uint64_t n)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint64_t done = 0; done < n;) {
		const struct hd_slice_run run = hd_slice_run(&slices->shape, first + done);
		const uint64_t len = run.len < n - done ? run.len : n - done;
		hd_hasher_add(&hasher, slices->at[run.slice] + run.at, len * sizeof(float));
		done += len;
	}
	return hd_hasher_end(&hasher);
}

struct hd_hash hd_state_tensor_digest(const struct hd_state_entry *entry)
{
	const uint64_t size = hd_dtype_bytes((enum hd_dtype)entry->dtype), elems = entry->len_bytes / size;
	struct hd_hasher tensor;

	hd_hasher_init(&tensor);
	for (uint64_t first = 0; first < elems; first += HD_SEGMENT_ELEMS) {
		const uint64_t n = elems - first < HD_SEGMENT_ELEMS ? elems - first : HD_SEGMENT_ELEMS;
		const struct hd_hash segment = entry->slices ? sliced_segment(entry->slices, first, n) :
			hd_hash((const uint8_t *)entry->at + first * size, n * size);
		hd_hasher_add(&tensor, segment.byte, sizeof segment.byte);
	}
	return hd_hasher_end(&tensor);
}

static void add_entry(struct hd_hasher *hasher, const struct hd_state_entry *entry, struct hd_hash tensor)
{
	uint8_t dim[8];

	hd_hasher_add(hasher, entry->name, strlen(entry->name) + 1);
	hd_hasher_add(hasher, (uint8_t[]){ entry->dtype, entry->rank }, 2);
	for (int i = 0; i < entry->rank; i++) {
		for (int k = 0; k < 8; k++)
			dim[k] = (uint8_t)((uint64_t)entry->dim[i] >> 8 * k);
		hd_hasher_add(hasher, dim, sizeof dim);
	}
	hd_hasher_add(hasher, tensor.byte, sizeof tensor.byte);
}

struct hd_hash hd_state_digest(const struct hd_state *state)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < state->nentries; i++)
		add_entry(&hasher, &state->entry[i], hd_state_tensor_digest(&state->entry[i]));
	return hd_hasher_end(&hasher);
}

struct hd_hash hd_state_digest_of(const struct hd_state *state, const struct hd_hash *tensor)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < state->nentries; i++)
		add_entry(&hasher, &state->entry[i], tensor[i]);
	return hd_hasher_end(&hasher);
}
