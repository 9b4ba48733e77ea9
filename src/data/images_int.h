/* images_int.h -- a set of image files: what reads them (images.c) and what lists them (images_list.c) share.
 *
 * 1. Items of "train" come first, then those of "valid", then of "test". In each: by class, then the files
 *    of a folder before those of its folders, by the bytes of their names.
 * 2. Classes are the folders' names, by their bytes, or those of data.classes in its order.
 * 3. A list names files beneath its own folder, and none outside. */
#ifndef HD_DATA_IMAGES_INT_H
#define HD_DATA_IMAGES_INT_H

#include <stdatomic.h>

#include "sys/memory.h"
#include "data/image.h"
#include "data/image_view.h"
#include "data/reader_int.h"

enum { HD_IMAGES_CAP = 1 << 25,                  /* files of a set: more are better kept in shards */
       HD_IMAGES_CLASSES = 1 << 20,
       HD_IMAGES_DEPTH = 8,                       /* folders below a class */
       HD_IMAGE_FILE = 256 << 20 };               /* bytes of a file */

/* path: below the set's root. */
struct hd_image_item { const char *path; uint64_t len; uint32_t crc; int32_t label; };

/* Places in hd_image_set.end. */
enum { HD_IMAGES_TRAIN, HD_IMAGES_VALID, HD_IMAGES_TEST, HD_IMAGES_SPLITS };

struct hd_image_set {
	struct hd_reader reader;
	const char *root;                         /* of all paths; in the arena */
	bool listed;
	struct hd_image_item *item; uint64_t nitems, cap;        /* in the arena */
	uint64_t end[HD_IMAGES_SPLITS];          /* of the items of a split, in `item` */
	const char *const *class; uint32_t nclasses;
	struct hd_image_view view;
	/* pixels of items as rows of evaluations have them, then a state for each; where all of them fit */
	struct hd_memory kept;
	atomic_uchar *state;
};

/* Fills root, item (path and label), end, class. */
HD_MUST_USE enum hd_err hd_images_list(struct hd_image_set *set, const struct hd_data_spec *spec,
	struct hd_diag *diag);

/* images_rows.c: the same of a list. */
HD_MUST_USE enum hd_err hd_images_rows(struct hd_image_set *set, const struct hd_data_spec *spec,
	struct hd_diag *diag);

/* For both. The path is copied. */
HD_MUST_USE enum hd_err hd_images_add(struct hd_image_set *set, const char *path, int32_t label,
	struct hd_diag *diag);
/* root/name */
HD_MUST_USE enum hd_err hd_images_path(const struct hd_image_set *set, const char *name, char
	path[HD_PATH_CAP],
	struct hd_diag *diag);

#endif
