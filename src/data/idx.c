#include "data/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "data/blob.h"
#include "data/reader_int.h"

#define HOME "/usr/share/datasets/fashion-mnist"

struct part { struct hd_idx image, label; const char *label_name; };

struct idx_set {
	struct hd_reader reader;
	struct part train, test;                         /* test.image.at NULL: none */
	uint32_t split_test, classes;
	float scaled[256];                               /* byte / 255, rounded once */
};

enum hd_err hd_idx_parse(const uint8_t *bytes, size_t len, const char *name, uint32_t rank_low,
	uint32_t rank_high,
	struct hd_idx *idx, struct hd_diag *diag)
{
	struct hd_idx got = { 0 };
	uint64_t need = 1;

	if (len < 4 || bytes[0] || bytes[1])
		return hd_fail(diag, HD_E_INPUT,
			"%s is not an idx file: the magic number is wrong (%zu bytes)", name, len);
	if (bytes[2] != HD_IDX_BYTE)
		return hd_fail(diag, HD_E_INPUT,
			"%s: element type 0x%02x; only unsigned bytes (0x08) are read", name, bytes[2]);
	got.rank = bytes[3];
	if (got.rank < rank_low || got.rank > rank_high || got.rank > HD_IDX_RANK)
		return hd_fail(diag, HD_E_INPUT,
			"%s: the magic number says %u extents, %u to %u are expected here", name, got.rank,
			rank_low, rank_high);
	size_t header = 4 + 4 * (size_t)got.rank;
	if (len < header)
		return hd_fail(diag, HD_E_INPUT, "%s is cut off inside its header: %zu bytes", name, len);
	for (uint32_t i = 0; i < got.rank; i++) {
		got.dim[i] = hd_be32(bytes + 4 + 4 * i);
		if (got.dim[i] == 0 || !hd_mul_u64(need, (uint64_t)got.dim[i], &need))
			return hd_fail(diag, HD_E_INPUT, "%s: impossible extents %s", name,
				hd_dims_text(got.rank, got.dim).at);
	}
	if (need != len - header)
		return hd_fail(diag, HD_E_INPUT,
			"%s is %s: extents %s need %" PRIu64 " bytes after the header, there are %zu", name,
			len - header < need ? "cut off" : "too long", hd_dims_text(got.rank, got.dim).at,
			need, len - header);
	got.at = bytes + header;
	*idx = got;
	return HD_OK;
}

static enum hd_err check_labels(const struct part *part, uint32_t classes, struct hd_diag *diag)
{
	for (int64_t i = 0; classes && i < part->label.dim[0]; i++)
		if (part->label.at[i] >= classes)
			return hd_fail(diag, HD_E_INPUT,
				"%s: label %u of sample %" PRId64 " is out of range: the model has the "
				"classes 0 to %u",
				part->label_name, part->label.at[i], i, classes - 1);
	return HD_OK;
}

/* Images and labels of one part of the set. *found: both are there; one alone is an error. */
static enum hd_err open_part(struct hd_reader *reader, const char *folder, const char *prefix,
	struct part *part, uint32_t classes,
	bool *found, struct hd_diag *diag)
{
	char images[40], labels[40];
	bool has_images, has_labels;

	(void)snprintf(images, sizeof images, "%s-images-idx3-ubyte", prefix);
	(void)snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte", prefix);
	enum hd_err err = hd_source_find(reader, folder, images, &has_images, diag);
	if (err == HD_OK)
		err = hd_source_find(reader, folder, labels, &has_labels, diag);
	if (err != HD_OK)
		return err;
	*found = has_images && has_labels;
	if (has_images != has_labels)
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s has %s but not %s (plain or .gz): images and labels go together", folder,
			has_images ? images : labels, has_images ? labels : images);
	if (!*found)
		return HD_OK;
	const struct hd_source *image = &reader->source[reader->nsources - 2], *label = image + 1;
	part->label_name = label->name;
	if ((err = hd_idx_parse(image->bytes, image->len, image->name, 2, HD_IDX_RANK, &part->image, diag)) !=
		HD_OK
	    || (err = hd_idx_parse(label->bytes, label->len, label->name, 1, 1, &part->label, diag)) != HD_OK)
		return err;
	if (part->image.dim[0] != part->label.dim[0])
		return hd_fail(diag, HD_E_INPUT,
			"%s holds %" PRId64 " images, %s %" PRId64 " labels: they must be as many",
			image->name, part->image.dim[0],
			label->name, part->label.dim[0]);
	return check_labels(part, classes, diag);
}

static enum hd_err find_folder(struct hd_reader *reader, const struct hd_data_spec *spec, const char **folder,
	struct hd_diag *diag)
{
	struct hd_diag ignored = { "" };
	struct hd_stat stat;

	*folder = spec->path ? spec->path : HOME;
	if (hd_blob_is_url(*folder))
		return HD_OK;
	enum hd_err err = hd_fs_stat(reader->fs, *folder, &stat, &ignored);
	if (err == HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_NOTFOUND,
			"the data folder %s does not exist: `apt install dataset-fashion-mnist` makes %s, "
			"or set data.path to a folder with"
			" train-images-idx3-ubyte and train-labels-idx1-ubyte (plain or .gz)", *folder, HOME);
	if (err != HD_OK)
		return hd_fs_stat(reader->fs, *folder, &stat, diag);
	if (stat.kind != HD_FILE_FOLDER)
		return hd_fail(diag, HD_E_INPUT,
			"data.path %s is a file: kind idx reads a folder with train-images-idx3-ubyte and "
			"train-labels-idx1-ubyte (plain or .gz)", *folder);
	return HD_OK;
}

static enum hd_err open_parts(struct idx_set *idx, const char *folder, bool *has_test, struct hd_diag *diag)
{
	bool found;
	enum hd_err err = open_part(&idx->reader, folder, "train", &idx->train, idx->classes, &found, diag);

	if (err == HD_OK && !found)
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s has no train-images-idx3-ubyte (plain or .gz): is data.path right?", folder);
	if (err == HD_OK)
		err = open_part(&idx->reader, folder, "t10k", &idx->test, idx->classes, has_test, diag);
	const struct hd_idx *test = &idx->test.image, *train = &idx->train.image;
	if (err == HD_OK && *has_test && (test->rank != train->rank
	    || memcmp(test->dim + 1, train->dim + 1, (train->rank - 1) * sizeof *train->dim) != 0))
		return hd_fail(diag, HD_E_INPUT,
			"%s: training images are %s, test images %s: the extents after the first must agree",
			folder,
			hd_dims_text(idx->train.image.rank, idx->train.image.dim).at,
			hd_dims_text(idx->test.image.rank, idx->test.image.dim).at);
	return err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct idx_set *idx = (struct idx_set *)reader;
	const struct hd_idx *image = &idx->train.image;
	int64_t dim[HD_IDX_RANK] = { 1 };
	const char *folder;
	bool has_test;

	idx->classes = spec->classes;
	enum hd_err err = find_folder(reader, spec, &folder, diag);
	if (err == HD_OK)
		err = open_parts(idx, folder, &has_test, diag);
	if (err != HD_OK)
		return err;
	if (spec->float_target)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind idx has class labels, the loss wants numbers: use model.loss "
			"cross-entropy");
	/* an image of two extents has one channel */
	bool flat = image->rank <= 3;
	memcpy(dim + flat, image->dim + 1, (image->rank - 1) * sizeof *dim);
	if ((err = hd_field_add_x(reader, spec, HD_F32, image->rank - 1 + flat, dim, reader->source[0].name,
		diag)) != HD_OK
	    || (err = hd_field_add(reader, "y", HD_I32, 0, NULL, diag)) != HD_OK
	    || (err = hd_split_hashed(reader, spec, (uint64_t)image->dim[0], diag)) != HD_OK)
		return err;
	idx->split_test = has_test ? hd_split_add(reader, "test", 0, (uint64_t)idx->test.image.dim[0]) :
		HD_NONE;
	for (int i = 0; i < 256; i++)
		idx->scaled[i] = (float)i / 255.0f;
	reader->set.hash = hd_sources_hash(reader);
	reader->set.count = (uint64_t)image->dim[0] + (has_test ? (uint64_t)idx->test.image.dim[0] : 0);
	hd_reader_about(reader, "%" PRId64 " images %s%s, %s", image->dim[0],
		hd_dims_text(image->rank - 1 + flat, dim).at, has_test ? " and a test set" : "", folder);
	return HD_OK;
}

static enum hd_err idx_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct idx_set), &hd_reader_idx, fs, fill, spec, diag);
}

static enum hd_err idx_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct idx_set *idx = (const struct idx_set *)set;
	const struct part *part = split == idx->split_test ? &idx->test : &idx->train;
	uint64_t id = hd_split_id(&idx->reader, split, index), n = set->field[0].sample_bytes / sizeof(float);
	const uint8_t *from = part->image.at + id * n;
	float *x = out[0];
	uint8_t label = part->label.at[id];

	if (idx->classes && label >= idx->classes)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s was changed while it is in use: label %u of sample %" PRIu64, part->label_name,
			label, id);
	for (uint64_t i = 0; i < n; i++)
		x[i] = idx->scaled[from[i]];
	*(int32_t *)out[1] = label;
	return HD_OK;
}

const struct hd_reader_ops hd_reader_idx = {
	.name = "idx",
		.about =
		"folder of the MNIST family (idx files, plain or gzipped); default: Debian's "
		"dataset-fashion-mnist",
	.open = idx_open, .read = idx_read, .destroy = hd_reader_destroy, .of_classes = true,
};
