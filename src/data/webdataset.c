/* Samples as members of tar files (WebDataset): neighbours whose names are the same up to the first dot of
 * the last
 * part are one sample. "KEY.npy" or "KEY.raw" are the numbers, or "KEY.jpg", "KEY.jpeg" or "KEY.png" the
 * image, "KEY.cls" the label; others are passed by, but for images of other forms, whose samples would have
 * no numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "data/image_view.h"
#include "data/npy.h"
#include "data/shards_int.h"
#include "data/tar.h"

enum form { FORM_NPY, FORM_RAW, FORM_IMAGE };
enum part { PART_OTHER, PART_DATA, PART_LABEL };

/* The member at hand, and the sample that it is of. */
/* The view is there where the model takes images. */
struct tar_set { struct hd_shard_set set; struct hd_image_view view; };

struct tar_samples {
	const char *name;                 /* of the shard */
	struct hd_shard_list *list;
	struct hd_tar tar;
	char key[HD_TAR_NAME];
	bool any, has_data, has_label;
	struct hd_shard_sample sample;
	enum part part;
	char label[24]; size_t nlabel;
};

static const struct { const char *end; enum part part; enum form form; } ends[] = {
	{ "npy", PART_DATA, FORM_NPY }, { "raw", PART_DATA, FORM_RAW }, { "cls", PART_LABEL, 0 },
	{ "jpg", PART_DATA, FORM_IMAGE }, { "jpeg", PART_DATA, FORM_IMAGE }, { "png", PART_DATA, FORM_IMAGE },
};
static const char *const images[] = { "ppm", "webp", "bmp", "gif", "tif", "tiff", "jp2", "avif", "heic" };

static enum hd_err end_sample(struct tar_samples *m, struct hd_diag *diag)
{
	if (!m->any)
		return HD_OK;
	m->any = false;
	if (!m->has_data && !m->has_label)
		return HD_OK;             /* notes beside the samples */
	if (!m->has_data || !m->has_label)
		return hd_fail(diag, HD_E_INPUT, "%s: sample %.200s has no member %s: each has %s", m->name,
			m->key,
			m->has_data ? ".cls" : ".npy, .raw, .jpg or .png", m->has_data ? "a label" :
				"numbers");
	return hd_shard_list_add(m->list, &m->sample, diag);
}

/* What stands behind the dot, in small letters; "" where it is longer than any that is known. */
static void take_end(const char *from, char end[8])
{
	size_t n = 0;

	for (from += *from != '\0'; n < 7 && from[n]; n++)
		end[n] = (char)(from[n] >= 'A' && from[n] <= 'Z' ? from[n] + ('a' - 'A') : from[n]);
	end[from[n] ? 0 : n] = '\0';
}

static enum hd_err begin_member(void *user, const struct hd_tar_member *member, struct hd_diag *diag)
{
	struct tar_samples *m = user;
	const size_t len = hd_tar_key(member->name);
	char end[8];
	enum hd_err err = HD_OK;

	take_end(member->name + len, end);
	if (m->any && (strlen(m->key) != len || memcmp(m->key, member->name, len) != 0))
		err = end_sample(m, diag);
	if (err)
		return err;
	if (!m->any) {
		memcpy(m->key, member->name, len);
		m->key[len] = '\0';
		m->any = true;
		m->has_data = m->has_label = false;
	}
	m->part = PART_OTHER;
	for (size_t i = 0; i < sizeof images / sizeof *images; i++)
		if (!strcmp(end, images[i]))
			return hd_fail(diag, HD_E_INPUT,
				"%s: %.200s is an image of a form that is not read: store JPEG or "
				"PNG, or its numbers as .npy", m->name, member->name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		if (strcmp(end, ends[i].end) != 0)
			continue;
		bool *has = ends[i].part == PART_DATA ? &m->has_data : &m->has_label;
		if (*has)
			return hd_fail(diag, HD_E_INPUT,
				"%s: sample %.200s has two members of one kind: .%s is the "
				"second", m->name, m->key, end);
		*has = true;
		m->part = ends[i].part;
		m->nlabel = 0;
		if (m->part == PART_DATA)
			m->sample = (struct hd_shard_sample){ .offset = member->offset, .len = member->len,
				.form = ends[i].form, .label = m->sample.label };
	}
	return HD_OK;
}

static enum hd_err take_bytes(void *user, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct tar_samples *m = user;

	if (m->part == PART_DATA)
		m->sample.crc = hd_crc32c(m->sample.crc, bytes, len);
	if (m->part != PART_LABEL)
		return HD_OK;
	if (len >= sizeof m->label - m->nlabel)
		return hd_fail(diag, HD_E_INPUT, "%s: the label of sample %.200s is longer than a number",
			m->name,
			m->key);
	memcpy(m->label + m->nlabel, bytes, len);
	m->nlabel += len;
	return HD_OK;
}

static enum hd_err end_bytes(void *user, struct hd_diag *diag)
{
	struct tar_samples *m = user;
	int32_t v = 0;
	size_t i = 0;

	if (m->part != PART_LABEL)
		return HD_OK;
	while (m->nlabel && strchr(" \t\r\n", m->label[m->nlabel - 1]))
		m->nlabel--;
	for (; i < m->nlabel && i < 9 && m->label[i] >= '0' && m->label[i] <= '9'; i++)
		v = v * 10 + (m->label[i] - '0');
	if (!i || i < m->nlabel)
		return hd_fail(diag, HD_E_INPUT, "%s: the label of sample %.200s is no number from 0 on",
			m->name,
			m->key);
	m->sample.label = v;
	return HD_OK;
}

static enum hd_err feed(void *self, const uint8_t *bytes, size_t len, struct hd_diag *diag)
{
	struct tar_samples *m = self;
	const struct hd_tar_sink sink = { m, begin_member, take_bytes, end_bytes };

	return hd_tar_feed(&m->tar, bytes, len, m->name, &sink, diag);
}

static enum hd_err finish(void *self, struct hd_diag *diag)
{
	struct tar_samples *m = self;
	enum hd_err err = hd_tar_finish(&m->tar, m->name, diag);

	return err ? err : end_sample(m, diag);
}

static void make(void *state, const char *name, const struct hd_data_spec *spec, struct hd_shard_list *list,
	struct hd_shard_maker *maker)
{
	struct tar_samples *m = state;

	(void)spec;
	memset(m, 0, sizeof *m);
	m->name = name;
	m->list = list;
	hd_tar_init(&m->tar);
	*maker = (struct hd_shard_maker){ m, feed, finish };
}

/* ---- samples ---- */

static bool is_float(enum hd_dtype dtype) { return dtype == HD_F32 || dtype == HD_F64; }

/* One number of an array as "x" has it. */
static enum hd_err put_number(const struct hd_shard_set *set, const struct hd_npy *npy, uint64_t i, void *out,
	const char *name, struct hd_diag *diag)
{
	const uint8_t *at = npy->at + i * hd_dtype_bytes(npy->dtype);
	int64_t whole = npy->dtype == HD_U8 ? *at : 0;
	double real = 0;
	float single;
	uint32_t word;
	uint64_t wide;

	if (npy->dtype == HD_I32)
		whole = (int32_t)hd_get32(at);
	if (npy->dtype == HD_F32) {
		word = hd_get32(at);
		memcpy(&single, &word, sizeof single);
		real = (double)single;
	}
	if (hd_dtype_bytes(npy->dtype) == 8) {
		wide = hd_get64(at);
		memcpy(&real, &wide, sizeof real);
		whole = (int64_t)wide;
	}
	if (set->reader.set.field[0].dtype == HD_F32) {
		((float *)out)[i] = is_float(npy->dtype) ? (float)real : (float)whole;
		return HD_OK;
	}
	if (is_float(npy->dtype) || whole < (set->bound ? 0 : INT32_MIN) ||
		whole >= (set->bound ? set->bound : (int64_t)INT32_MAX + 1))
		return hd_fail(diag, HD_E_INPUT,
			"%s: a sample holds a number that is no token of the model (0 to %"
			PRId64 ")", name, set->bound - 1);
	((int32_t *)out)[i] = (int32_t)whole;
	return HD_OK;
}

/* As put_number() has each: a NaN that signals comes out quiet. */
static void put_floats(const uint8_t *from, uint64_t n, uint8_t *to)
{
	for (uint64_t i = 0; i < n; i++) {
		uint32_t word = hd_get32(from + 4 * i);
		word |= (word & 0x7fffffff) > 0x7f800000 ? 0x400000 : 0;
		memcpy(to + 4 * i, &word, sizeof word);
	}
}

static enum hd_err decode(const struct hd_shard_set *set, const struct hd_shard_sample *s,
	const uint8_t *bytes,
	void *const *out, const char *name, struct hd_diag *diag)
{
	const struct hd_field *x = &set->reader.set.field[0];
	struct hd_npy npy = { .dtype = (enum hd_dtype)x->dtype, .nelems = s->len / sizeof(float), .at =
		bytes };
	enum hd_err err = s->form == FORM_NPY ? hd_npy_parse(bytes, s->len, name, &npy, diag) :
		s->len % sizeof(float) ? HD_E_INPUT : HD_OK;

	if (s->form == FORM_NPY && err)
		return err;
	if (err || npy.nelems != x->sample_bytes / sizeof(float))
		return hd_fail(diag, HD_E_INPUT,
			"%s: the sample at byte %" PRIu64 " has %" PRIu64 " numbers, the "
			"model takes %" PRIu64, name, s->offset, npy.nelems,
				x->sample_bytes / (uint64_t)sizeof(float));
	const bool floats = npy.dtype == HD_F32 && x->dtype == HD_F32;
	if (floats)
		put_floats(npy.at, npy.nelems, out[0]);
	for (uint64_t i = 0; i < npy.nelems && !floats && !err; i++)
		err = put_number(set, &npy, i, out[0], name, diag);
	*(int32_t *)out[1] = s->label;
	return err;
}

/* Images come at any size and are brought to the model's. */
static enum hd_err decode_image(const struct hd_shard_set *set, const struct hd_shard_sample *s,
	const uint8_t *bytes, const struct hd_ask *ask, const char *name, struct hd_diag *diag)
{
	const struct tar_set *tar = (const struct tar_set *)set;
	const struct hd_augment_draw draw = { set->reader.set.augment, ask->index, ask->epoch };
	char place[HD_BLOB_NAME + 40];

	(void)snprintf(place, sizeof place, "%s: the image at byte %" PRIu64, name, s->offset);
	*(int32_t *)ask->out[1] = s->label;
	return hd_image_view_read(&tar->view, bytes, s->len, place, hd_augment_takes_part(&draw) ? &draw :
		NULL,
		ask->out[0], diag);
}

static enum hd_err decode_sample(const struct hd_shard_set *set, const struct hd_shard_sample *s,
	const uint8_t *bytes, const struct hd_ask *ask, const char *name, struct hd_diag *diag)
{
	return s->form == FORM_IMAGE ? decode_image(set, s, bytes, ask, name, diag) :
		decode(set, s, bytes, ask->out, name, diag);
}

/* A part of an image (resized_crop) is drawn where it is read: all samples are images, or none is. */
static enum hd_err look_for_images(struct tar_set *tar, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_shard_set *set = &tar->set;
	uint64_t n = 0;

	for (uint32_t k = 0; k < set->nshards; k++)
		for (uint64_t i = 0; i < set->shard[k].index.n; i++)
			n += set->shard[k].index.sample[i].form == FORM_IMAGE;
	if (n && n < set->reader.set.count)
		return hd_fail(diag, HD_E_INPUT, "%s: %" PRIu64 " of %" PRIu64
			" samples are images, the others numbers: "
			"they must be all of one form", spec->path, n, set->reader.set.count);
	if (!n && (spec->size || spec->stretch))
		return hd_fail(diag, HD_E_INVAL, "%s holds no images: leave out data.size and data.fit",
			spec->path);
	set->reader.set.takes_part = set->reader.set.decodes = n > 0;
	return n ? hd_image_view_make(&tar->view, spec, diag) : HD_OK;
}

static enum hd_err check_labels(const struct hd_shard_set *set, struct hd_diag *diag)
{
	for (uint32_t k = 0; k < set->nshards && set->classes; k++)
		for (uint64_t i = 0; i < set->shard[k].index.n; i++)
			if (set->shard[k].index.sample[i].label >= (int64_t)set->classes)
				return hd_fail(diag, HD_E_INPUT,
					"%s: label %d of sample %" PRIu64 " is out of range: the "
					"model has the classes 0 to %u", set->shard[k].blob->name,
					set->shard[k].index.sample[i].label, i, set->classes - 1);
	return HD_OK;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const struct hd_shard_kind kind = { "webdataset", sizeof(struct tar_samples), make };
	struct hd_shard_set *set = (struct hd_shard_set *)reader;

	if (spec->float_target || !spec->rank)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind webdataset has one class for a sample, the loss wants "
			"numbers: use records, or model.loss cross-entropy");
	set->decode = decode_sample;
	set->classes = spec->classes;
	set->bound = spec->context ? hd_token_bound(spec) : 0;
	enum hd_err err = hd_shards_open(set, spec, &kind, diag);
	if (!err)
		err = check_labels(set, diag);
	if (!err)
		err = look_for_images((struct tar_set *)set, spec, diag);
	if (!err)
		err = hd_field_add(reader, "x", spec->context ? HD_I32 : HD_F32, spec->rank, spec->dim, diag);
	if (!err)
		err = hd_field_add(reader, "y", HD_I32, 0, NULL, diag);
	hd_reader_about(reader, "%" PRIu64 " samples in %u shard%s, %.60s", reader->set.count, set->nshards,
		set->nshards == 1 ? "" : "s", spec->path);
	return err ? err : hd_shards_ready(set, spec, diag);
}

static enum hd_err webdataset_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct tar_set), &hd_reader_webdataset, fs, fill, spec, diag);
}

const struct hd_reader_ops hd_reader_webdataset = {
	.name = "webdataset", .about =
		"tar files of samples: KEY.npy, KEY.raw, KEY.jpg or KEY.png, and KEY.cls",
	.open = webdataset_open, .read = hd_shards_read, .destroy = hd_shards_destroy, .of_classes = true,
};
