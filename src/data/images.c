/* Folders of images: a folder for each class, as torchvision's ImageFolder has them, or a list of files with
 * their labels (images_list.c). What is listed is read once, for its hash and its head; each read compares
 * the CRC-32C of the file with that, so that a file that changed or went away ends the run before it is
 * trained on. */
#include "data/images_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "data/blob.h"

enum { KEEP_BYTES = 256 << 20 };                 /* of pixels that stay once they are decoded */
enum { EMPTY, FILLING, KEPT };

/* ---- opening ---- */

enum hd_err hd_images_add(struct hd_image_set *set, const char *path, int32_t label, struct hd_diag *diag)
{
	struct hd_arena *arena = &set->reader.arena;

	if (set->nitems == set->cap) {
		const uint64_t cap = set->cap ? set->cap * 2 : 1024;
		struct hd_image_item *grown = cap <= HD_IMAGES_CAP ? hd_arena_take(arena, cap, sizeof *grown)
			: NULL;
		if (cap > HD_IMAGES_CAP)
			return hd_fail(diag, HD_E_INPUT,
				"%.200s has more than %d images: make shards of them "
				"(data.kind webdataset)", set->root, HD_IMAGES_CAP);
		if (!grown)
			return hd_fail(diag, HD_E_NOMEM, "no memory for a list of %" PRIu64 " images", cap);
		if (set->nitems)
			memcpy(grown, set->item, set->nitems * sizeof *grown);
		set->item = grown;
		set->cap = cap;
	}
	const char *kept = hd_arena_text(arena, path, strlen(path));
	if (!kept)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the names of images");
	set->item[set->nitems++] = (struct hd_image_item){ .path = kept, .label = label };
	return HD_OK;
}

enum hd_err hd_images_path(const struct hd_image_set *set, const char *name, char path[HD_PATH_CAP],
	struct hd_diag *diag)
{
	const size_t len = strlen(set->root);
	const int n = snprintf(path, HD_PATH_CAP, "%s%s%s", set->root, len && set->root[len - 1] == '/' ? ""
		: "/",
		name);

	return n > 0 && n < HD_PATH_CAP ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"the path %.100s/...%.100s is longer than "
		"%d bytes", set->root, name, HD_PATH_CAP - 1);
}

/* All bytes of an image, and one byte of room behind them to see that there are no more. *bytes: the
 * caller's to free. */
static enum hd_err open_item(const struct hd_image_set *set, const char *name, struct hd_file *file, char
	*path,
	struct hd_diag *diag)
{
	if (set->listed)
		return hd_file_open_beneath(set->reader.fs, set->root, name, HD_OPEN_READ, file, diag);
	return hd_file_open(set->reader.fs, path, HD_OPEN_READ, file, diag);
}

static enum hd_err read_file(const struct hd_image_set *set, const char *name, uint64_t len, uint8_t **bytes,
	uint64_t *got, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_file file = { 0 };
	size_t n = 0;
	enum hd_err err = hd_images_path(set, name, path, diag);

	if (!err)
		err = open_item(set, name, &file, path, diag);
	if (err)
		return err;
	uint8_t *at = hd_alloc(len + 1);
	err = at ? hd_file_pread(&file, at, len + 1, 0, &n, diag) : hd_fail(diag, HD_E_NOMEM,
		"no memory for the %" PRIu64 " bytes of %s", len, path);
	const enum hd_err closed = hd_file_close(&file, err ? NULL : diag);
	if (err || closed) {
		hd_free(at);
		return err ? err : closed;
	}
	*bytes = at;
	*got = n;
	return HD_OK;
}

/* The head of one image, its hash and its check. */
static enum hd_err learn(struct hd_image_set *set, struct hd_image_item *item, struct hd_hasher *hasher,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_image image;
	struct hd_stat stat;
	uint8_t *bytes = NULL, ends[12];
	uint64_t len = 0;
	enum hd_err err = hd_images_path(set, item->path, path, diag);

	if (!err)
		err = hd_fs_stat(set->reader.fs, path, &stat, diag);
	if (!err && stat.kind != HD_FILE_REGULAR)
		err = hd_fail(diag, HD_E_INPUT, "%s is no file", path);
	if (!err && (stat.size_bytes < 1 || stat.size_bytes > HD_IMAGE_FILE))
		err = hd_fail(diag, HD_E_INPUT, "%s has %" PRId64
			" bytes: an image has some, and at most %d MiB", path,
			stat.size_bytes, HD_IMAGE_FILE >> 20);
	if (!err)
		err = read_file(set, item->path, (uint64_t)stat.size_bytes, &bytes, &len, diag);
	if (!err && len != (uint64_t)stat.size_bytes)
		err = hd_fail(diag, HD_E_INPUT, "%s changes while it is read", path);
	if (!err)
		err = hd_image_look(bytes, len, path, &image, diag);
	if (!err)
		err = hd_image_view_fits(&set->view, &image, path, diag);
	if (!err) {
		item->len = len;
		item->crc = hd_crc32c(0, bytes, len);
		hd_put64(ends, len);
		hd_put32(ends + 8, (uint32_t)item->label);
		hd_hasher_add(hasher, ends, sizeof ends);
		hd_hasher_add(hasher, bytes, len);
	}
	hd_free(bytes);
	return err;
}

static enum hd_err learn_all(struct hd_image_set *set, struct hd_diag *diag)
{
	struct hd_hasher hasher;
	enum hd_err err = HD_OK;

	hd_hasher_init(&hasher);
	for (uint64_t i = 0; i < set->nitems && !err; i++)
		err = learn(set, &set->item[i], &hasher, diag);
	set->reader.set.hash = hd_hasher_end(&hasher);
	return err;
}

/* "train", then what a folder has of its own to evaluate on. */
static enum hd_err add_splits(struct hd_image_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	const uint64_t train = set->end[HD_IMAGES_TRAIN], valid = set->end[HD_IMAGES_VALID];
	enum hd_err err = HD_OK;

	if (valid > train) {
		hd_split_add(reader, "train", 0, train);
		hd_split_add(reader, "valid", train, valid - train);
	} else {
		err = hd_split_hashed(reader, spec, train, diag);
	}
	if (!err && set->nitems > valid)
		hd_split_add(reader, "test", valid, set->nitems - valid);
	return err;
}

static enum hd_err keep_pixels(struct hd_image_set *set, struct hd_diag *diag)
{
	const uint64_t bytes = hd_image_view_bytes(&set->view) + 1;

	if (bytes > KEEP_BYTES || set->nitems > KEEP_BYTES / bytes)
		return HD_OK;
	enum hd_err err = hd_memory_take(set->nitems * bytes, HD_MEMORY_LAZY, &set->kept, diag);
	if (err)
		return err;
	set->state = (atomic_uchar *)set->kept.at + set->nitems * (bytes - 1);
	set->reader.set.kept_bytes = set->nitems * bytes;
	return HD_OK;
}

static enum hd_err check_classes(const struct hd_image_set *set, const struct hd_data_spec *spec,
	struct hd_diag *diag)
{
	for (uint64_t i = 0; i < set->nitems && spec->classes; i++)
		if (set->item[i].label >= (int64_t)spec->classes)
			return hd_fail(diag, HD_E_INPUT,
				"%.200s: %s is of class %d, the model has the classes 0 to %u: "
				"give it more (model.args classes)", set->root, set->item[i].path,
					set->item[i].label,
				spec->classes - 1);
	return HD_OK;
}

static enum hd_err read_many(const struct hd_dataset *data, uint32_t split, const struct hd_ask *ask,
	uint32_t n,
	bool ahead, struct hd_diag *diag);

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_image_set *set = (struct hd_image_set *)reader;

	if (!spec->path || hd_blob_is_url(spec->path))
		return hd_fail(diag, HD_E_INVAL,
			"data.kind images needs a folder with a folder for each class, or a list "
			"(.csv, .jsonl) of files and labels: set data.path%s", spec->path ?
			"; of elsewhere images are read from tar files, data.kind webdataset" : "");
	if (spec->float_target)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind images has one class for an image, the loss wants numbers: use "
			"model.loss cross-entropy");
	enum hd_err err = hd_image_view_make(&set->view, spec, diag);
	if (!err)
		err = hd_images_list(set, spec, diag);
	if (!err)
		err = check_classes(set, spec, diag);
	if (!err)
		err = learn_all(set, diag);
	if (!err)
		err = hd_field_add(reader, "x", HD_F32, spec->rank, spec->dim, diag);
	if (!err)
		err = hd_field_add(reader, "y", HD_I32, 0, NULL, diag);
	if (!err)
		err = add_splits(set, spec, diag);
	if (!err)
		err = keep_pixels(set, diag);
	if (err)
		return err;
	reader->set.count = set->nitems;
	reader->set.table_bytes = hd_arena_kept_bytes(&reader->arena);
	reader->set.read_many = read_many;
	reader->set.decodes = reader->set.takes_part = true;
	hd_reader_about(reader, "%" PRIu64 " images of %u classes as %s, %s", set->nitems, set->nclasses,
		hd_dims_text(spec->rank, spec->dim).at, spec->path);
	return HD_OK;
}

static enum hd_err images_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct hd_image_set), &hd_reader_images, fs, fill, spec, diag);
}

/* ---- reading ---- */

static enum hd_err read_bytes(const struct hd_image_set *set, const struct hd_image_item *item, uint8_t
	**bytes,
	struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	uint64_t len = 0;
	enum hd_err err = read_file(set, item->path, item->len, bytes, &len, &why);

	if (err == HD_E_NOTFOUND)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%.200s/%s is gone: it was there when the data were opened; put it "
			"back and go on with `heddle resume`", set->root, item->path);
	if (err)
		return hd_fail(diag, err, "%s", why.text);
	if (len == item->len && hd_crc32c(0, *bytes, len) == item->crc)
		return HD_OK;
	hd_free(*bytes);
	return hd_fail(diag, HD_E_INTEGRITY,
		"%.200s/%s is not what it was when the data were opened: put the old one "
		"back and go on with `heddle resume`, or begin another run with the new one", set->root,
			item->path);
}

static enum hd_err decode(const struct hd_image_set *set, const struct hd_image_item *item,
	const struct hd_augment_draw *part, uint8_t *pixel, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	enum hd_err err = read_bytes(set, item, &bytes, diag);

	if (err)
		return err;
	err = hd_images_path(set, item->path, path, diag);
	if (!err)
		err = hd_image_view_pixels(&set->view, bytes, item->len, path, part, pixel, diag);
	hd_free(bytes);
	return err;
}

/* Two readers may meet at an image: the second decodes for itself. */
static enum hd_err read_whole(const struct hd_image_set *set, uint64_t id, uint8_t *pixel, float *x,
	struct hd_diag *diag)
{
	const size_t n = hd_image_view_bytes(&set->view);
	uint8_t *place = set->state ? (uint8_t *)set->kept.at + id * n : NULL;
	unsigned char empty = EMPTY;

	if (place && atomic_load_explicit(&set->state[id], memory_order_acquire) == KEPT) {
		hd_image_view_numbers(&set->view, place, x);
		return HD_OK;
	}
	enum hd_err err = decode(set, &set->item[id], NULL, pixel, diag);
	if (err)
		return err;
	hd_image_view_numbers(&set->view, pixel, x);
	if (place && atomic_compare_exchange_strong(&set->state[id], &empty, FILLING)) {
		memcpy(place, pixel, n);
		atomic_store_explicit(&set->state[id], KEPT, memory_order_release);
	}
	return HD_OK;
}

static enum hd_err read_many(const struct hd_dataset *data, uint32_t split, const struct hd_ask *ask,
	uint32_t n,
	bool ahead, struct hd_diag *diag)
{
	const struct hd_image_set *set = (const struct hd_image_set *)data;
	uint8_t *pixel = hd_alloc(hd_image_view_bytes(&set->view));
	enum hd_err err = pixel ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the pixels of an image");

	(void)ahead;
	for (uint32_t i = 0; i < n && !err; i++) {
		const uint64_t id = hd_split_id(&set->reader, split, ask[i].index);
		const struct hd_augment_draw draw = { data->augment, ask[i].index, ask[i].epoch };
		if (hd_augment_takes_part(&draw)) {
			err = decode(set, &set->item[id], &draw, pixel, diag);
			if (!err)
				hd_image_view_numbers(&set->view, pixel, ask[i].out[0]);
		} else {
			err = read_whole(set, id, pixel, ask[i].out[0], diag);
		}
		*(int32_t *)ask[i].out[1] = set->item[id].label;
	}
	hd_free(pixel);
	return err;
}

static enum hd_err images_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	struct hd_ask ask = { .index = index, .epoch = HD_NO_EPOCH, .out = { out[0], out[1] } };

	return read_many(set, split, &ask, 1, false, diag);
}

static void images_destroy(struct hd_dataset *set)
{
	if (set)
		hd_memory_give(&((struct hd_image_set *)set)->kept);
	hd_reader_destroy(set);
}

const struct hd_reader_ops hd_reader_images = {
	.name = "images", .about =
		"folder with a folder of JPEG and PNG files for each class, or a list of them",
	.open = images_open, .read = images_read, .destroy = images_destroy, .of_classes = true,
};
