/* Samples as records of record files (record.h): the numbers of "x", then those of "y", as the model has
 * them, little
 * end first. */
#include <inttypes.h>
#include <string.h>

#include "data/record.h"
#include "data/shards_int.h"

struct record_samples { const char *name; struct hd_shard_list *list; struct hd_records records;
	uint64_t want; };

static enum hd_err each(void *user, const struct hd_record *record, struct hd_diag *diag)
{
	const struct record_samples *m = user;

	if (record->len != m->want)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the record at byte %" PRIu64 " has %" PRIu64 " bytes; a sample of "
			"this model has %" PRIu64 ": \"x\", then \"y\", four bytes a number", m->name,
				record->offset,
			record->len, m->want);
	return hd_shard_list_add(m->list, &(struct hd_shard_sample){ .offset = record->offset,
		.len = record->len, .crc = record->crc }, diag);
}

static enum hd_err feed(void *self, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct record_samples *m = self;

	return hd_records_feed(&m->records, bytes, len, m->name, each, m, diag);
}

static enum hd_err finish(void *self, struct hd_diag *diag)
{
	struct record_samples *m = self;

	return hd_records_finish(&m->records, m->name, diag);
}

static uint64_t numbers_of_x(const struct hd_data_spec *spec)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < spec->rank; i++)
		n *= (uint64_t)spec->dim[i];
	return n;
}

/* A label, a label a token, or numbers. */
static uint64_t numbers_of_y(const struct hd_data_spec *spec)
{
	return spec->float_target ? spec->classes : spec->context && !spec->one_label ? spec->context : 1;
}

static void make(void *state, const char *name, const struct hd_data_spec *spec, struct hd_shard_list *list,
	struct hd_shard_maker *maker)
{
	struct record_samples *m = state;

	*m = (struct record_samples){ .name = name, .list = list,
		.want = 4 * (numbers_of_x(spec) + numbers_of_y(spec)) };
	hd_records_init(&m->records);
	*maker = (struct hd_shard_maker){ m, feed, finish };
}

static enum hd_err put(const struct hd_field *field, int64_t bound, int64_t least, const uint8_t *bytes,
	void *out, const char *name, struct hd_diag *diag)
{
	for (uint64_t i = 0; i < field->sample_bytes / 4; i++) {
		const uint32_t word = hd_get32(bytes + 4 * i);
		if (field->dtype == HD_I32 && bound && ((int32_t)word < least || (int32_t)word >= bound))
			return hd_fail(diag, HD_E_INPUT,
				"%s: %d is out of range: the model knows 0 to %" PRId64, name,
				(int32_t)word, bound - 1);
		memcpy((uint8_t *)out + 4 * i, &word, sizeof word);
	}
	return HD_OK;
}

static enum hd_err decode(const struct hd_shard_set *set, const struct hd_shard_sample *s,
	const uint8_t *bytes,
	void *const *out, const char *name, struct hd_diag *diag)
{
	const struct hd_field *x = &set->reader.set.field[0], *y = &set->reader.set.field[1];

	if (s->len != x->sample_bytes + y->sample_bytes)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the index is of another model's samples: remove it from "
			"data.cache", name);
	enum hd_err err = put(x, set->bound, 0, bytes, out[0], name, diag);
	return err ? err : put(y, set->classes, y->rank ? -1 : 0, bytes + x->sample_bytes, out[1], name,
		diag);
}

static enum hd_err add_y(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const int64_t n = (int64_t)numbers_of_y(spec);
	const bool one = !spec->float_target && n == 1;

	return hd_field_add(reader, "y", spec->float_target ? HD_F32 : HD_I32, one ? 0 : 1, &n, diag);
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const struct hd_shard_kind kind = { "records", sizeof(struct record_samples), make };
	struct hd_shard_set *set = (struct hd_shard_set *)reader;

	set->decode = decode;
	set->classes = spec->float_target ? 0 : spec->classes;
	set->bound = spec->context ? hd_token_bound(spec) : 0;
	enum hd_err err = hd_shards_open(set, spec, &kind, diag);
	if (!err)
		err = hd_field_add(reader, "x", spec->context ? HD_I32 : HD_F32, spec->rank, spec->dim, diag);
	if (!err)
		err = add_y(reader, spec, diag);
	hd_reader_about(reader, "%" PRIu64 " records in %u shard%s, %.60s", reader->set.count, set->nshards,
		set->nshards == 1 ? "" : "s", spec->path);
	return err ? err : hd_shards_ready(set, spec, diag);
}

static enum hd_err records_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct hd_shard_set), &hd_reader_records, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_records = {
	.name = "records", .about =
		"record files (TFRecord's framing): the numbers of a sample, then its label",
	.open = records_open, .read = hd_shards_read, .destroy = hd_shards_destroy,
};
