#include "data/dataset.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/near.h"
#include "data/named.h"
#include "data/reader_int.h"

enum { HD_PROOF_BLOCKS = 64, HD_PROOF_BYTES = 4096 };

const struct hd_reader_ops *const hd_readers[] = {
#define X(name) &hd_reader_##name,
	HD_READERS(X)
#undef X
	NULL,
};

static enum hd_err unknown_kind(const char *kind, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(kind);
	char names[128] = "";

	for (size_t i = 0; hd_readers[i]; i++) {
		size_t len = strlen(names);
		hd_near_offer(&near, hd_readers[i]->name);
		(void)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "", hd_readers[i]->name);
	}
	return hd_fail(diag, HD_E_INVAL, "data.kind is '%s'%s%s%s; known: %s", kind,
		near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "", names);
}

static enum hd_err open_named(const struct hd_reader_ops *ops, struct hd_dataset **set,
	const struct hd_data_spec *spec, struct hd_fs *fs, struct hd_diag *diag)
{
	struct hd_dataset *opened = NULL;
	struct hd_data_spec asked = *spec;

	asked.float_target = spec->float_target && !(spec->shares && ops->of_classes);
	enum hd_err err = ops->open(&opened, &asked, fs, diag);
	if (err == HD_OK && spec->shares)
		hd_shares_complete(opened, spec->classes);
	if (err == HD_OK)
		err = hd_named_complete(opened, spec, diag);
	if (err == HD_OK)
		*set = opened;
	else
		hd_dataset_destroy(opened);
	return err;
}

enum hd_err hd_dataset_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	/* the negated forms refuse NaN too; the slack lets 0.9 + 0.1 and thirds add up */
	if (!(spec->train > 0) || !(spec->valid >= 0) || !(spec->train + spec->valid <= 1 + 1e-9))
		return hd_fail(diag, HD_E_INVAL,
			"data.split has train %g and valid %g: train must be above 0, valid not below, both "
			"together at most 1",
			spec->train, spec->valid);
	for (size_t i = 0; hd_readers[i]; i++)
		if (strcmp(hd_readers[i]->name, spec->kind) == 0)
			return open_named(hd_readers[i], set, spec, fs, diag);
	return unknown_kind(spec->kind, diag);
}

void hd_dataset_destroy(struct hd_dataset *set)
{
	if (set)
		set->ops->destroy(set);
}

uint32_t hd_dataset_split(const struct hd_dataset *set, const char *name)
{
	for (uint32_t i = 0; i < set->nsplits; i++)
		if (strcmp(set->split[i].name, name) == 0)
			return i;
	return HD_NONE;
}

/* Blocks drawn from the seed; a file that is not much longer is taken whole. */
static struct hd_hash sample_of(const struct hd_source *source, uint64_t seed, uint32_t file)
{
	size_t len = source->bytes ? source->len : 0;
	struct hd_hasher hasher;

	if (len <= HD_PROOF_BLOCKS * HD_PROOF_BYTES)
		return hd_hash(source->bytes, len);
	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < HD_PROOF_BLOCKS; i++) {
		struct hd_philox draw = hd_data_draw(seed, HD_USE_PROOF, 0, file, i);
		uint64_t at = ((uint64_t)draw.word[0] << 32 | draw.word[1]) % (len - HD_PROOF_BYTES + 1);
		hd_hasher_add(&hasher, source->bytes + at, HD_PROOF_BYTES);
	}
	return hd_hasher_end(&hasher);
}

static enum hd_err take_files(struct hd_reader *reader, uint64_t seed, struct hd_diag *diag)
{
	struct hd_data_file *file = hd_arena_take(&reader->arena, reader->nsources ? reader->nsources : 1,
		sizeof *file);

	if (!file)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the list of %u data files", reader->nsources);
	for (uint32_t i = 0; i < reader->nsources; i++) {
		const struct hd_source *s = &reader->source[i];
		file[i] = (struct hd_data_file){ .name = s->name, .size_bytes = s->stat.size_bytes,
			.changed_wall_ns = s->stat.changed_wall_ns,
			.inode = s->stat.inode, .sample = sample_of(s, seed, i),
			.mapped = s->bytes == s->map.bytes };
	}
	reader->set.file = file;
	reader->set.nfiles = reader->nsources;
	return HD_OK;
}

/* Another file in the place of one that is mapped changes nothing here: the map is of the old one. */
static bool was_written_to(struct hd_fs *fs, struct hd_data_file *file)
{
	struct hd_stat now;

	if (!file->mapped || hd_fs_stat(fs, file->name, &now, NULL) || now.inode != file->inode ||
	    (now.size_bytes == file->size_bytes && now.changed_wall_ns == file->changed_wall_ns))
		return false;
	file->size_bytes = now.size_bytes;
	file->changed_wall_ns = now.changed_wall_ns;
	return true;
}

enum hd_err hd_dataset_look(struct hd_dataset *set, struct hd_fs *fs, struct hd_diag *diag)
{
	const struct hd_data_file *written = NULL;

	for (uint32_t i = 0; i < set->nfiles; i++)
		if (was_written_to(fs, &set->file[i]))
			written = &set->file[i];
	if (!written || hd_hash_same(hd_sources_hash((const struct hd_reader *)set), set->hash))
		return HD_OK;
	return hd_fail(diag, HD_E_INTEGRITY,
		"%s was written to while it is in use and has other content now: put the old one "
		"back and go on with `heddle resume`, or begin another run with the new one", written->name);
}

static uint64_t bytes_of_files(const struct hd_reader *reader)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < reader->nsources; i++)
		total += reader->source[i].len;
	return total;
}

enum hd_err hd_reader_open(struct hd_dataset **set, size_t bytes, const struct hd_reader_ops *ops,
	struct hd_fs *fs,
	hd_reader_fill *fill, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	assert(bytes >= sizeof(struct hd_reader));
	struct hd_reader *reader = hd_alloc(bytes);

	if (!reader)
		return hd_fail(diag, HD_E_NOMEM, "no memory to open %s data", ops->name);
	memset(reader, 0, bytes);
	reader->set.ops = ops;
	reader->fs = fs;
	reader->rules = spec->store;
	hd_arena_init(&reader->arena, 0);
	enum hd_err err = fill(reader, spec, diag);
	reader->rules = NULL;
	if (err == HD_OK)
		err = take_files(reader, spec->seed, diag);
	if (err != HD_OK) {
		ops->destroy(&reader->set);
		return err;
	}
	reader->set.at_hand = !reader->set.read_many && bytes_of_files(reader) <= HD_AT_HAND_BYTES;
	*set = &reader->set;
	return HD_OK;
}

void hd_reader_destroy(struct hd_dataset *set)
{
	struct hd_reader *reader = (struct hd_reader *)set;

	if (!reader)
		return;
	for (uint32_t i = 0; i < reader->nsources; i++)
		hd_file_unmap(reader->fs, &reader->source[i].map);
	hd_arena_finish(&reader->arena);
	hd_free(reader);
}

void hd_reader_about(struct hd_reader *reader, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(reader->set.about, sizeof reader->set.about, fmt, args);
	va_end(args);
}

struct hd_dims_text hd_dims_text(uint32_t rank, const int64_t *dim)
{
	struct hd_dims_text text = { "[" };
	size_t len = 1;

	for (uint32_t i = 0; i < rank && len < sizeof text.at - 24; i++)
		len += (size_t)snprintf(text.at + len, sizeof text.at - len, "%s%" PRId64, i ? "," : "",
			dim[i]);
	text.at[len] = ']';
	return text;
}

enum hd_err hd_field_add(struct hd_reader *reader, const char *name, enum hd_dtype dtype, uint32_t rank,
	const int64_t *dim,
	struct hd_diag *diag)
{
	struct hd_dataset *set = &reader->set;
	struct hd_field *field = &set->field[set->nfields];
	uint64_t bytes = hd_dtype_bytes(dtype);

	assert(set->nfields < HD_MAX_FIELDS);
	if (rank > HD_MAX_DIMS)
		return hd_fail(diag, HD_E_INPUT,
			"a sample's \"%s\" would have the shape %s: at most %d extents", name,
			hd_dims_text(rank, dim).at, HD_MAX_DIMS);
	for (uint32_t i = 0; i < rank; i++)
		if (dim[i] < 1 || !hd_mul_u64(bytes, (uint64_t)dim[i], &bytes) || bytes > HD_MAX_SAMPLE_BYTES)
			return hd_fail(diag, HD_E_INPUT,
				"a sample's \"%s\" would have the shape %s: extents must be above 0 and a "
				"sample at most %d MiB",
				name, hd_dims_text(rank, dim).at, HD_MAX_SAMPLE_BYTES >> 20);
	*field = (struct hd_field){ .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .sample_bytes = bytes };
	assert(strlen(name) < sizeof field->name);
	(void)snprintf(field->name, sizeof field->name, "%s", name);
	if (rank)
		memcpy(field->dim, dim, rank * sizeof *dim);
	set->nfields++;
	return HD_OK;
}

enum hd_err hd_field_add_x(struct hd_reader *reader, const struct hd_data_spec *spec, enum hd_dtype dtype,
	uint32_t rank,
	const int64_t *dim, const char *name, struct hd_diag *diag)
{
	int64_t have = hd_dims_product(dim, rank), want = hd_dims_product(spec->dim, spec->rank);

	if (spec->rank == 0)
		return hd_field_add(reader, "x", dtype, rank, dim, diag);
	if (have != want)
		return hd_fail(diag, HD_E_INPUT,
			"%s: samples have the shape %s (%" PRId64 " numbers), the model takes %s "
			"(%" PRId64 "): change model.args or data.path",
			name, hd_dims_text(rank, dim).at, have, hd_dims_text(spec->rank, spec->dim).at, want);
	return hd_field_add(reader, "x", dtype, spec->rank, spec->dim, diag);
}

struct hd_philox hd_data_draw(uint64_t seed, enum hd_data_use use, uint32_t split, uint64_t index,
	uint32_t block)
{
	const uint32_t counter[4] = { block, (uint32_t)index, (uint32_t)(index >> 32 & 0xffff) | split << 16,
		(uint32_t)use };
	return hd_philox(counter, hd_philox_key(seed, HD_RNG_USER));
}
