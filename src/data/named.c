#include "data/named.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/reader_int.h"

const struct hd_data_want *hd_want_find(const struct hd_data_spec *spec, const char *name)
{
	for (uint32_t i = 0; i < spec->nwant; i++)
		if (!strcmp(spec->want[i].name, name))
			return &spec->want[i];
	return NULL;
}

bool hd_want_is_mask(const struct hd_data_want *want) { return !strcmp(want->name, HD_MASK_NAME); }

uint64_t hd_want_elems(const struct hd_data_want *want)
{
	return (uint64_t)hd_dims_product(want->dim, want->rank);
}

static uint32_t find_field(const struct hd_dataset *set, const char *name)
{
	for (uint32_t f = 0; f < set->nfields; f++)
		if (!strcmp(set->field[f].name, name))
			return f;
	return HD_NONE;
}

static uint64_t tokens_of(const struct hd_field *field)
{
	return field->sample_bytes / hd_dtype_bytes((enum hd_dtype)field->dtype);
}

/* The names whose fields can be made of the others. */
static bool is_made(const char *name)
{
	return !strcmp(name, HD_TYPES_NAME) || !strcmp(name, HD_POSITIONS_NAME);
}

/* A number for each token of x, as integers: what the rules of these names are about. */
static bool is_of_tokens(const struct hd_dataset *set, const struct hd_data_want *want)
{
	const struct hd_field *x = &set->field[0];

	return x->dtype == HD_I32 && want->dtype == HD_I32 && hd_want_elems(want) == tokens_of(x);
}

static enum hd_err add_made(struct hd_dataset *set, const struct hd_data_want *want, struct hd_diag *diag)
{
	if (!is_of_tokens(set, want))
		return hd_fail(diag, HD_E_INPUT,
			"the model reads \"%s\" as %s %s, the data have none, and make one as i32 for each "
			"token of x alone: %s", want->name, hd_dtype_text(want->dtype),
			hd_dims_text(want->rank, want->dim).at, set->about);
	if (want->bound && !strcmp(want->name, HD_POSITIONS_NAME) &&
		hd_want_elems(want) > (uint64_t)want->bound)
		return hd_fail(diag, HD_E_INPUT,
			"the model knows %" PRId64 " positions, its samples have %" PRIu64 " tokens: give it "
			"more (model.args positions)", want->bound, hd_want_elems(want));
	return hd_field_add((struct hd_reader *)set, want->name, want->dtype, want->rank, want->dim, diag);
}

static enum hd_err refuse(const struct hd_dataset *set, const struct hd_data_want *want, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT,
		"the graph reads an input \"%s\"; the data have no such field: %s", want->name, set->about);
}

enum hd_err hd_named_complete(struct hd_dataset *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const struct hd_data_want *mask = hd_want_find(spec, HD_MASK_NAME);
	enum hd_err err = HD_OK;

	assert(!set->named.mask && set->nfields);
	for (uint32_t i = 0; i < spec->nwant && !err; i++) {
		const struct hd_data_want *want = &spec->want[i];
		if (find_field(set, want->name) != HD_NONE)
			continue;
		uint32_t *made = !strcmp(want->name, HD_TYPES_NAME) ? &set->named.types :
			&set->named.positions;
		err = is_made(want->name) ? add_made(set, want, diag) : refuse(set, want, diag);
		if (!err)
			*made = set->nfields - 1;
	}
	if (err || !mask || !is_of_tokens(set, mask))
		return err;
	uint32_t y = find_field(set, "y");
	set->named.mask = find_field(set, HD_MASK_NAME);
	if (y != HD_NONE && !spec->apart && set->field[y].dtype == HD_I32 && set->field[y].rank &&
		tokens_of(&set->field[y]) == hd_want_elems(mask))
		set->named.labels = y;
	return HD_OK;
}

void hd_shares_complete(struct hd_dataset *set, uint32_t classes)
{
	const uint32_t y = find_field(set, "y");

	if (y == HD_NONE || set->field[y].dtype != HD_I32 || set->field[y].rank)
		return;
	assert(y && classes);
	set->field[y].dtype = HD_F32;
	set->field[y].rank = 1;
	set->field[y].dim[0] = classes;
	set->field[y].sample_bytes = classes * sizeof(float);
	set->field[y].all = NULL;
	set->named.shares = y;
}

void hd_shares_make(const struct hd_dataset *set, void *const *out)
{
	const uint32_t y = set->named.shares;
	int32_t label;

	if (!y)
		return;
	memcpy(&label, out[y], sizeof label);
	memset(out[y], 0, set->field[y].sample_bytes);
	if (label >= 0 && label < set->field[y].dim[0])        /* -1: none */
		((float *)out[y])[label] = 1;
}

static enum hd_err check_mask(const struct hd_dataset *set, const int32_t *mask, uint64_t n, uint64_t index,
	struct hd_diag *diag)
{
	uint64_t nseen = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (mask[i] & ~1)
			return hd_fail(diag, HD_E_INPUT,
				"\"" HD_MASK_NAME "\" of sample %" PRIu64 " has %d: 1 is seen, 0 is not: %s",
					index, mask[i], set->about);
		nseen += (uint64_t)mask[i];
	}
	return nseen ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"\"" HD_MASK_NAME "\" of sample %" PRIu64 " is all 0: nothing of it would be seen; leave the "
		"sample out: %s", index, set->about);
}

static void count_positions(const int32_t *mask, uint64_t n, int32_t *at)
{
	int32_t seen = 0;

	for (uint64_t i = 0; i < n; i++) {
		bool counts = !mask || mask[i];
		at[i] = counts ? seen : 0;
		seen += counts;
	}
}

enum hd_err hd_named_make(const struct hd_dataset *set, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct hd_named *named = &set->named;
	const int32_t *mask = named->mask ? out[named->mask] : NULL;
	const uint64_t n = mask ? tokens_of(&set->field[named->mask]) : 0;
	enum hd_err err = mask ? check_mask(set, mask, n, index, diag) : HD_OK;

	if (err)
		return err;
	hd_shares_make(set, out);
	for (uint64_t i = 0; named->labels && i < n; i++)
		if (!mask[i])
			((int32_t *)out[named->labels])[i] = HD_LABEL_NONE;
	if (named->types)
		memset(out[named->types], 0, set->field[named->types].sample_bytes);
	if (named->positions)
		count_positions(mask, tokens_of(&set->field[named->positions]), out[named->positions]);
	return HD_OK;
}

void hd_named_plain(const struct hd_dataset *set, void *const *out)
{
	for (uint32_t f = 0; f < set->nfields; f++) {
		const uint64_t n = tokens_of(&set->field[f]);
		const char *name = set->field[f].name;
		int32_t *at = out[f];
		if (set->field[f].dtype != HD_I32)
			continue;
		for (uint64_t i = 0; (!strcmp(name, HD_MASK_NAME) || !strcmp(name, HD_DOCUMENTS_NAME)) &&
			i < n;
			i++)
			at[i] = 1;
		if (!strcmp(name, HD_TYPES_NAME))
			memset(at, 0, n * sizeof *at);
		if (!strcmp(name, HD_POSITIONS_NAME))
			count_positions(NULL, n, at);
	}
}
