#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/reader_int.h"

uint32_t hd_split_add(struct hd_reader *reader, const char *name, uint64_t first, uint64_t count)
{
	struct hd_dataset *set = &reader->set;
	uint32_t at = set->nsplits++;

	assert(at < HD_MAX_SPLITS);
	(void)snprintf(set->split[at].name, sizeof set->split[at].name, "%s", name);
	set->split[at].count = count;
	reader->first[at] = first;
	return at;
}

uint64_t hd_split_id(const struct hd_reader *reader, uint32_t split, uint64_t index)
{
	assert(split < reader->set.nsplits && index < reader->set.split[split].count);
	return reader->pick[split] ? reader->pick[split][index] : reader->first[split] + index;
}

static enum hd_err none_left(const struct hd_data_spec *spec, uint64_t count, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT,
		"of %" PRIu64 " samples none is left to train on with data.split train %g, valid %g: give "
		"more data or another split",
		count, spec->train, spec->valid);
}

enum hd_err hd_split_hashed(struct hd_reader *reader, const struct hd_data_spec *spec, uint64_t count,
	struct hd_diag *diag)
{
	if (spec->train >= 1) {
		hd_split_add(reader, "train", 0, count);
		return count ? HD_OK : none_left(spec, count, diag);
	}
	if (count > UINT32_MAX)
		return hd_fail(diag, HD_E_INPUT,
			"%" PRIu64 " samples are too many to split by hash (2^32 - 1): use data.split "
			"{train: 1}", count);
	/* train grows from the front, valid from the back: one array serves whatever the shares turn out
	 * to be */
	uint32_t *id = hd_arena_take(&reader->arena, count ? count : 1, sizeof *id);
	uint64_t ntrain = 0, nvalid = 0;
	if (!id)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the split of %" PRIu64 " samples", count);
	for (uint64_t i = 0; i < count; i++) {
		double u = (double)hd_uniform(hd_data_draw(spec->split_seed, HD_USE_SPLIT, 0, i, 0).word[0]);
		if (u < spec->train)
			id[ntrain++] = (uint32_t)i;
		else if (u < spec->train + spec->valid)
			id[count - ++nvalid] = (uint32_t)i;
	}
	if (ntrain == 0)
		return none_left(spec, count, diag);
	reader->pick[hd_split_add(reader, "train", 0, ntrain)] = id;
	if (nvalid)
		reader->pick[hd_split_add(reader, "valid", 0, nvalid)] = id + count - nvalid;
	return HD_OK;
}

static uint64_t share(double fraction, uint64_t count)
{
	return (uint64_t)(fraction * (double)count + 0.5);
}

enum hd_err hd_split_last(struct hd_reader *reader, const struct hd_data_spec *spec, uint64_t count,
	struct hd_diag *diag)
{
	uint64_t nvalid = share(spec->valid, count), ntrain = share(spec->train, count);

	if (spec->valid > 0 && nvalid == 0)
		nvalid = 1;
	if (nvalid >= count)
		return none_left(spec, count, diag);
	if (ntrain > count - nvalid)
		ntrain = count - nvalid;
	if (ntrain == 0)
		return none_left(spec, count, diag);
	hd_split_add(reader, "train", 0, ntrain);
	if (nvalid)
		hd_split_add(reader, "valid", count - nvalid, nvalid);
	return HD_OK;
}
