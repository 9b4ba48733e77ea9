/* Samples as records of record files (record.h): the numbers of "x", those of "y", then those of whatever
 * else the model reads, in its order; as the model has them, little end first. */
#include <inttypes.h>
#include <string.h>

#include "data/named.h"
#include "data/record.h"
#include "data/shards_int.h"

/* of field f integers are least[f] to bound[f] - 1; bound 0: any */
struct record_set { struct hd_shard_set shards; int64_t bound[HD_MAX_FIELDS]; int8_t least[HD_MAX_FIELDS]; };

struct record_samples { const char *name; struct hd_shard_list *list; struct hd_records records;
	uint64_t want; };

static enum hd_err each(void *user, const struct hd_record *record, struct hd_diag *diag)
{
	const struct record_samples *m = user;

	if (record->len != m->want)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the record at byte %" PRIu64 " has %" PRIu64 " bytes; a sample of "
			"this model has %" PRIu64 ": \"x\", \"y\", what else it reads, four bytes a number",
			m->name,
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

static uint64_t numbers_beside(const struct hd_data_spec *spec)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < spec->nwant; i++)
		n += hd_want_elems(&spec->want[i]);
	return n;
}

static void make(void *state, const char *name, const struct hd_data_spec *spec, struct hd_shard_list *list,
	struct hd_shard_maker *maker)
{
	struct record_samples *m = state;

	*m = (struct record_samples){ .name = name, .list = list,
		.want = 4 * (numbers_of_x(spec) + numbers_of_y(spec) + numbers_beside(spec)) };
	hd_records_init(&m->records);
	*maker = (struct hd_shard_maker){ m, feed, finish };
}

static enum hd_err put(const struct hd_field *field, int64_t bound, int64_t least, const uint8_t *bytes,
	void *out, const char *name, struct hd_diag *diag)
{
	for (uint64_t i = 0; i < field->sample_bytes / 4; i++) {
		uint32_t word = hd_get32(bytes + 4 * i);
		if (field->dtype == HD_I32 && least < 0)
			word = (uint32_t)hd_label((int32_t)word);
		if (field->dtype == HD_I32 && bound && ((int32_t)word < least || (int32_t)word >= bound))
			return hd_fail(diag, HD_E_INPUT,
				"%s: %d is out of range: the model knows 0 to %" PRId64, name,
				(int32_t)word, bound - 1);
		memcpy((uint8_t *)out + 4 * i, &word, sizeof word);
	}
	return HD_OK;
}

static enum hd_err decode(const struct hd_shard_set *set, const struct hd_shard_sample *s,
	const uint8_t *bytes, const struct hd_ask *ask, const char *name, struct hd_diag *diag)
{
	const struct record_set *records = (const struct record_set *)set;
	const struct hd_field *field = set->reader.set.field;
	uint64_t at = 0;
	enum hd_err err = HD_OK;

	for (uint32_t f = 0; f < set->reader.set.nfields; f++)
		at += field[f].sample_bytes;
	if (s->len != at)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the index is of another model's samples: remove it from "
			"data.cache", name);
	at = 0;
	for (uint32_t f = 0; f < set->reader.set.nfields && !err; at += field[f++].sample_bytes)
		err = put(&field[f], records->bound[f], records->least[f], bytes + at, ask->out[f], name,
			diag);
	return err;
}

static enum hd_err add_y(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	const int64_t n = (int64_t)numbers_of_y(spec);
	const bool one = !spec->float_target && n == 1;
	struct record_set *set = (struct record_set *)reader;

	set->bound[1] = spec->float_target ? 0 : spec->classes;
	set->least[1] = one ? 0 : HD_LABEL_NONE;
	return hd_field_add(reader, "y", spec->float_target ? HD_F32 : HD_I32, one ? 0 : 1, &n, diag);
}

static enum hd_err add_wanted(struct record_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->shards.reader;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < spec->nwant && !err; i++) {
		const struct hd_data_want *want = &spec->want[i];
		set->bound[reader->set.nfields] = hd_want_is_mask(want) ? 2 : want->bound;
		err = hd_field_add(reader, want->name, want->dtype, want->rank, want->dim, diag);
	}
	return err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const struct hd_shard_kind kind = { "records", sizeof(struct record_samples), make };
	struct hd_shard_set *set = (struct hd_shard_set *)reader;

	set->decode = decode;
	((struct record_set *)reader)->bound[0] = spec->context ? hd_token_bound(spec) : 0;
	enum hd_err err = hd_shards_open(set, spec, &kind, diag);
	if (!err)
		err = hd_field_add(reader, "x", spec->context ? HD_I32 : HD_F32, spec->rank, spec->dim, diag);
	if (!err)
		err = add_y(reader, spec, diag);
	if (!err)
		err = add_wanted((struct record_set *)reader, spec, diag);
	hd_reader_about(reader, "%" PRIu64 " records in %u shard%s, %.60s", reader->set.count, set->nshards,
		set->nshards == 1 ? "" : "s", spec->path);
	return err ? err : hd_shards_ready(set, spec, diag);
}

static enum hd_err records_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct record_set), &hd_reader_records, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_records = {
	.name = "records", .about =
		"record files (TFRecord's framing): the numbers of a sample, its label, then other inputs",
	.open = records_open, .read = hd_shards_read, .destroy = hd_shards_destroy,
};
