/* Made-up samples that a net can learn from, each a function of (seed, split, index):
 *   classes  x = prototype of the class + noise; a prototype is a few bumps (1 / (1 + d^2))
 *            at drawn places of the last two extents, so that convolutions see shapes
 *   numbers  x is noise, y = W x / sqrt(n) + noise / 10, W drawn once
 *   tokens   a walk: each token has two drawn successors, taken with 9/16 and 5/16; the rest
 *            (2/16) jumps anywhere. The best loss is far below log(vocabulary).
 *   texts    tokens with one label: each class has four drawn words; a token is one of these
 *            with 8/16, else any
 * Where a model of tokens reads a mask or kinds of tokens (named.h): a text has a drawn length, of 1 on, and
 * a drawn place where its second part begins; tokens behind the length are drawn like all others.
 * Drawing a picture costs more than a small net's step on it, so those of a small training split
 * are kept once they are made, as a data set in memory would be. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "sys/memory.h"
#include "data/named.h"
#include "data/reader_int.h"

enum {
	WORDS = 4,
	DEFAULT_COUNT = 4096,
	DEFAULT_CLASSES = 10,
	DEFAULT_VOCABULARY = 256,
	BUMPS = 3,
	KEEP_BYTES = 128 << 20,
	TABLE_CAP = 1 << 26,               /* elements of prototypes or weights: 256 MiB */
};

struct synthetic {
	struct hd_reader reader;
	uint64_t seed, nelems;                           /* nelems: of "x" */
	uint32_t classes, context, tokens;               /* tokens: how many there are */
	const float *table;                              /* [classes, nelems]; NULL: tokens */
	bool numbers, texts;
	uint32_t mask, types;                            /* fields; 0: not read */
	/* "x" of samples [0, nkept) of "train", then a state for each */
	struct hd_memory kept;
	atomic_uchar *state;
	uint64_t nkept;
};

/* of a sample that may be kept: the thread that fills it makes it KEPT */
enum { EMPTY, FILLING, KEPT };

/* Standard normals of one purpose: element i is half of a pair, four to a draw. */
struct normals { uint64_t seed; enum hd_data_use use; uint32_t split; uint64_t index; float have[4];
	uint64_t block; };

static float normal_at(struct normals *normals, uint64_t i)
{
	if (i / 4 != normals->block) {
		normals->block = i / 4;
		struct hd_philox drawn = hd_data_draw(normals->seed, normals->use, normals->split,
			normals->index, (uint32_t)normals->block);
		hd_normal2(drawn.word[0], drawn.word[1], normals->have);
		hd_normal2(drawn.word[2], drawn.word[3], normals->have + 2);
	}
	return normals->have[i % 4];
}

static struct normals normals_of(uint64_t seed, enum hd_data_use use, uint32_t split, uint64_t index)
{
	return (struct normals){ .seed = seed, .use = use, .split = split, .index = index,
		.block = UINT64_MAX };
}

/* Bumps over the last two extents (one row if there is but one); the other extents repeat them, shifted. */
static void draw_prototype(const struct synthetic *set, const struct hd_field *x, uint32_t class, float *out)
{
	uint64_t width = x->rank ? (uint64_t)x->dim[x->rank - 1] : 1,
		height = x->rank > 1 ? (uint64_t)x->dim[x->rank - 2] : 1;
	uint64_t plane = width * height;
	double radius = 1.0 + (double)(width > height ? width : height) / 8.0;

	for (uint64_t at = 0; at < set->nelems; at += plane)
		for (uint32_t bump = 0; bump < BUMPS; bump++) {
			struct hd_philox drawn = hd_data_draw(set->seed, HD_USE_CLASS, bump, class,
				(uint32_t)(at / plane));
			double row = (double)hd_uniform(drawn.word[0]) * (double)height,
				column = (double)hd_uniform(drawn.word[1]) * (double)width;
			for (uint64_t i = 0; i < plane; i++) {
				double dr = ((double)(i / width) - row) / radius,
					dc = ((double)(i % width) - column) / radius;
				out[at + i] += (float)(1.0 / (1.0 + dr * dr + dc * dc));
			}
		}
}

static enum hd_err make_table(struct synthetic *set, struct hd_diag *diag)
{
	const struct hd_field *x = &set->reader.set.field[0];
	float *table;

	if (set->nelems > TABLE_CAP / set->classes)
		return hd_fail(diag, HD_E_INVAL,
			"synthetic data of %" PRIu64 " numbers in %u classes are too large: %d in all at "
			"most", set->nelems,
			set->classes, TABLE_CAP);
	table = hd_arena_take(&set->reader.arena, set->classes * set->nelems, sizeof *table);
	if (!table)
		return hd_fail(diag, HD_E_NOMEM,
			"no memory for synthetic data of %" PRIu64 " numbers in %u classes", set->nelems,
			set->classes);
	for (uint32_t c = 0; c < set->classes; c++) {
		struct normals normals = normals_of(set->seed, HD_USE_CLASS, 0, c);
		if (!set->numbers)
			draw_prototype(set, x, c, table + c * set->nelems);
		for (uint64_t i = 0; set->numbers && i < set->nelems; i++)
			table[c * set->nelems + i] = normal_at(&normals, i);
	}
	set->table = table;
	return HD_OK;
}

static enum hd_err add_fields(struct synthetic *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const int64_t image[] = { 1, 28, 28 };
	struct hd_reader *reader = &set->reader;
	const int64_t context = spec->context, outputs = set->classes;
	enum hd_err err;

	if (spec->context)
		err = hd_field_add(reader, "x", HD_I32, 1, &context, diag);
	else if (spec->rank)
		err = hd_field_add(reader, "x", HD_F32, spec->rank, spec->dim, diag);
	else
		err = hd_field_add(reader, "x", HD_F32, 3, image, diag);
	if (err != HD_OK)
		return err;
	if (spec->context && !set->numbers)
		return hd_field_add(reader, "y", HD_I32, set->texts ? 0 : 1, &context, diag);
	return set->numbers ? hd_field_add(reader, "y", HD_F32, 1, &outputs, diag) : hd_field_add(reader, "y",
		HD_I32, 0, NULL, diag);
}

static enum hd_err add_wanted(struct synthetic *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < spec->nwant && spec->context && !err; i++) {
		const struct hd_data_want *want = &spec->want[i];
		const bool mask = hd_want_is_mask(want);
		if ((!mask && strcmp(want->name, HD_TYPES_NAME) != 0) || want->dtype != HD_I32 ||
			hd_want_elems(want) != spec->context)
			continue;
		*(mask ? &set->mask : &set->types) = reader->set.nfields;
		err = hd_field_add(reader, want->name, HD_I32, want->rank, want->dim, diag);
	}
	return err;
}

/* The content is a function of the seed and the shapes, so these are what is hashed. */
static struct hd_hash content_hash(const struct synthetic *set, uint64_t count)
{
	char text[256], texts[64] = "";
	const struct hd_field *x = &set->reader.set.field[0];

	if (set->texts)
		(void)snprintf(texts, sizeof texts, " texts of %u", set->tokens);
	if (set->mask || set->types)
		(void)snprintf(texts + strlen(texts), sizeof texts - strlen(texts), " named %d%d",
			set->mask > 0, set->types > 0);
	int len = snprintf(text, sizeof text,
		"synthetic 1 seed %" PRIu64 " count %" PRIu64 " x %s %s classes %u numbers %d%s", set->seed,
		count,
		hd_dtype_text((enum hd_dtype)x->dtype), hd_dims_text(x->rank, x->dim).at, set->classes,
		set->numbers, texts);

	return hd_hash(text, (size_t)len);
}

static enum hd_err make_room(struct synthetic *set, uint64_t count, struct hd_diag *diag)
{
	uint64_t bytes = set->nelems * sizeof(float) + 1;

	if (bytes > KEEP_BYTES || count > KEEP_BYTES / bytes)
		return HD_OK;
	enum hd_err err = hd_memory_take(count * bytes, HD_MEMORY_LAZY, &set->kept, diag);
	set->nkept = err ? 0 : count;
	set->reader.set.kept_bytes = err ? 0 : count * bytes;
	set->state = err ? NULL : (atomic_uchar *)set->kept.at + count * set->nelems * sizeof(float);
	return err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct synthetic *set = (struct synthetic *)reader;
	uint64_t count = spec->count ? spec->count : DEFAULT_COUNT, held_out = count / 8 ? count / 8 : 1;

	if (count >> 44)
		return hd_fail(diag, HD_E_INVAL,
			"data.count is %" PRIu64 "; at most 2^44 - 1 synthetic samples", count);
	set->seed = spec->seed;
	set->context = spec->context;
	set->numbers = spec->float_target;
	set->texts = spec->context && spec->one_label;
	set->classes = spec->classes ? spec->classes : spec->context &&
		!set->texts ? DEFAULT_VOCABULARY : DEFAULT_CLASSES;
	set->tokens = spec->tokens ? spec->tokens : set->texts ? DEFAULT_VOCABULARY : set->classes;
	enum hd_err err = add_fields(set, spec, diag);
	if (err != HD_OK || (err = add_wanted(set, spec, diag)) != HD_OK)
		return err;
	set->nelems = reader->set.field[0].sample_bytes / 4;
	if (!set->context && (err = make_table(set, diag)) != HD_OK)
		return err;
	if (!set->context && (err = make_room(set, count, diag)) != HD_OK)
		return err;
	hd_split_add(reader, "train", 0, count);
	hd_split_add(reader, "valid", 0, held_out);
	hd_split_add(reader, "test", 0, held_out);
	reader->set.count = count + 2 * held_out;
	reader->set.hash = content_hash(set, count);
	hd_reader_about(reader, "%" PRIu64 " made-up samples %s, %u %s, seed %" PRIu64, count,
		hd_dims_text(reader->set.field[0].rank, reader->set.field[0].dim).at, set->classes,
		set->context && !set->texts ? "tokens" : set->numbers ? "targets" : "classes", set->seed);
	return HD_OK;
}

static enum hd_err synthetic_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct synthetic), &hd_reader_synthetic, fs, fill, spec, diag);
}

static void read_tokens(const struct synthetic *set, uint32_t split, uint64_t index, int32_t *x, int32_t *y)
{
	uint32_t token = hd_data_draw(set->seed, HD_USE_LABEL, split, index, 0).word[0] % set->tokens;

	for (uint32_t j = 0; j < set->context; j++) {
		struct hd_philox walk = hd_data_draw(set->seed, HD_USE_WALK, split, index, j);
		struct hd_philox next = hd_data_draw(set->seed, HD_USE_NEXT, 0, token, 0);
		uint32_t way = walk.word[0] >> 28;
		x[j] = (int32_t)token;
		token = (way < 9 ? next.word[0] : way < 14 ? next.word[1] : walk.word[1]) % set->tokens;
		y[j] = (int32_t)token;
	}
}

/* y: the class, or numbers that follow from it. */
static void read_text(const struct synthetic *set, uint32_t split, uint64_t index, int32_t *x, void *y)
{
	uint32_t class = hd_data_draw(set->seed, HD_USE_LABEL, split, index,
		0).word[0] % (set->numbers ? DEFAULT_CLASSES : set->classes);
	struct hd_philox words = hd_data_draw(set->seed, HD_USE_CLASS, 0, class, 0);

	for (uint32_t j = 0; j < set->context; j++) {
		struct hd_philox walk = hd_data_draw(set->seed, HD_USE_WALK, split, index, j);
		uint32_t way = walk.word[0] >> 28;
		x[j] = (int32_t)((way < 8 ? words.word[way % WORDS] : walk.word[1]) % set->tokens);
	}
	for (uint32_t k = 0; set->numbers && k < set->classes; k++)
		((float *)y)[k] = 2 * hd_uniform(hd_data_draw(set->seed, HD_USE_CLASS, 1, class,
			k / 4).word[k % 4]) - 1;
	if (!set->numbers)
		*(int32_t *)y = (int32_t)class;
}

static void read_named(const struct synthetic *set, uint32_t split, uint64_t index, void *const *out)
{
	const struct hd_philox draw = hd_data_draw(set->seed, HD_USE_LENGTH, split, index, 0);
	const uint32_t len = 1 + draw.word[0] % set->context, second = 1 + draw.word[1] % set->context;

	for (uint32_t j = 0; j < set->context; j++) {
		if (set->mask)
			((int32_t *)out[set->mask])[j] = j < len;
		if (set->types)
			((int32_t *)out[set->types])[j] = j >= second;
	}
}

static void draw_class(const struct synthetic *set, uint32_t split, uint64_t index, uint32_t class, float *x)
{
	struct normals noise = normals_of(set->seed, HD_USE_NOISE, split, index);
	const float *prototype = set->table + class * set->nelems;

	for (uint64_t i = 0; i < set->nelems; i++)
		x[i] = prototype[i] + 0.25f * normal_at(&noise, i);
}

/* Two readers may meet at a sample: the second draws for itself. */
static void read_class(const struct synthetic *set, uint32_t split, uint64_t index, float *x, int32_t *y)
{
	size_t bytes = set->nelems * sizeof *x;
	bool kept = split == 0 && index < set->nkept;
	float *place = kept ? (float *)set->kept.at + index * set->nelems : NULL;
	unsigned char empty = EMPTY;

	*y = (int32_t)(hd_data_draw(set->seed, HD_USE_LABEL, split, index, 0).word[0] % set->classes);
	if (kept && atomic_load_explicit(&set->state[index], memory_order_acquire) == KEPT) {
		memcpy(x, place, bytes);
		return;
	}
	draw_class(set, split, index, (uint32_t)*y, x);
	if (kept && atomic_compare_exchange_strong(&set->state[index], &empty, FILLING)) {
		memcpy(place, x, bytes);
		atomic_store_explicit(&set->state[index], KEPT, memory_order_release);
	}
}

static void read_numbers(const struct synthetic *set, uint32_t split, uint64_t index, float *x, float *y)
{
	struct normals draw = normals_of(set->seed, HD_USE_NOISE, split, index),
		noise = normals_of(set->seed, HD_USE_LABEL, split, index);
	double scale = 1.0 / sqrt((double)set->nelems);

	for (uint64_t i = 0; i < set->nelems; i++)
		x[i] = normal_at(&draw, i);
	for (uint32_t c = 0; c < set->classes; c++) {
		double sum = 0;
		for (uint64_t i = 0; i < set->nelems; i++)
			sum += (double)set->table[c * set->nelems + i] * (double)x[i];
		y[c] = (float)(sum * scale) + 0.1f * normal_at(&noise, c);
	}
}

static enum hd_err synthetic_read(const struct hd_dataset *set, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	const struct synthetic *made = (const struct synthetic *)set;

	(void)diag;
	if (made->texts)
		read_text(made, split, index, out[0], out[1]);
	else if (made->context)
		read_tokens(made, split, index, out[0], out[1]);
	else if (made->numbers)
		read_numbers(made, split, index, out[0], out[1]);
	else
		read_class(made, split, index, out[0], out[1]);
	if (made->mask || made->types)
		read_named(made, split, index, out);
	return HD_OK;
}

static void synthetic_destroy(struct hd_dataset *set)
{
	if (set)
		hd_memory_give(&((struct synthetic *)set)->kept);
	hd_reader_destroy(set);
}

const struct hd_reader_ops hd_reader_synthetic = {
	.name = "synthetic",
		.about = "made-up images, numbers, tokens, or tokens with a label, drawn from the seed",
	.open = synthetic_open, .read = synthetic_read, .destroy = synthetic_destroy,
};
