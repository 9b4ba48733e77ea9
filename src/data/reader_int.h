/* reader_int.h -- what the readers of this room share: files, splits, shapes, draws.
 *
 * A reader is a private struct whose first member is hd_reader, a row of hd_readers[]
 * and a function that fills it. Parsers take bytes, not files, and trust none of them.
 *
 * 1. hd_reader_open() makes the struct, runs `fill`, and takes all back if that fails;
 *    hd_reader_destroy() is the destroy of every row.
 * 2. Hashed splits: sample id belongs to "train" if u < train, to "valid" if
 *    u < train + valid, else to none; u = hd_uniform(word 0 of the draw (SPLIT, 0, id, 0)).
 * 3. Last-part splits: "valid" is the last round(D * valid) samples (at least 1),
 *    "train" the first round(D * train) of the others.
 * 4. All draws of the room: Philox domain user, counter (block, index low,
 *    (index >> 32 & 0xffff) | split << 16, use).
 *
 * Ownership: everything a reader needs lies in its arena or in its sources. */
#ifndef HD_DATA_READER_INT_H
#define HD_DATA_READER_INT_H

#include "base/le.h"
#include "base/philox.h"
#include "data/dataset.h"

/* A file as bytes: mapped, or unpacked into the arena if its name ends in ".gz"; an object behind http://,
 * https:// or s3:// lies in the arena too, or is a file of the cache (cache.h). The content that is
 * hashed begins after `head` bytes. */
struct hd_source { const uint8_t *bytes; size_t len, head, hashed; struct hd_map map; const char *name;
	struct hd_stat stat; };

enum { HD_SOURCES_CAP = 4096,                        /* files of one set */
       HD_MAX_SAMPLE_BYTES = 1 << 30 };
#define HD_UNPACKED_CAP ((size_t)1 << 34)            /* a larger file is no data set but a bomb */

struct hd_reader {
	struct hd_dataset set;
	struct hd_arena arena;
	struct hd_fs *fs;                            /* borrowed for the life of the set */
	const struct hd_blob_rules *rules;          /* of opening alone; NULL: the defaults */
	struct hd_source *source; uint32_t nsources, source_cap;
	/* sample ids of a split; NULL: id = first[split] + index */
	const uint32_t *pick[HD_MAX_SPLITS];
	uint64_t first[HD_MAX_SPLITS];
};

typedef enum hd_err hd_reader_fill(struct hd_reader *reader, const struct hd_data_spec *spec,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_reader_open(struct hd_dataset **set, size_t bytes, const struct hd_reader_ops *ops,
	struct hd_fs *fs,
	hd_reader_fill *fill, const struct hd_data_spec *spec, struct hd_diag *diag);
void hd_reader_destroy(struct hd_dataset *set);
/* The line for the user; what is too long is cut. */
__attribute__((format(printf, 2, 3))) void hd_reader_about(struct hd_reader *reader, const char *fmt, ...);

/* sources (source.c). An empty or unreadable file is an error; the path is copied. */
HD_MUST_USE enum hd_err hd_source_add(struct hd_reader *reader, const char *path, struct hd_diag *diag);
/* A file, or all files that match '*' and '?' in the last part of the path, by name. */
HD_MUST_USE enum hd_err hd_source_add_glob(struct hd_reader *reader, const char *pattern,
	struct hd_diag *diag);
/* folder/name or folder/name.gz; *found is false, and nothing added, if there is neither. */
HD_MUST_USE enum hd_err hd_source_find(struct hd_reader *reader, const char *folder, const char *name,
	bool *found, struct hd_diag *diag);
/* Of the unpacked bytes of all, so that a set is the same plain and gzipped. */
struct hd_hash hd_sources_hash(const struct hd_reader *reader);
/* a hidden name needs a pattern with the dot; for tests */
bool hd_glob_match(const char *pattern, const char *name);
/* folder/name in the arena. */
HD_MUST_USE enum hd_err hd_path_join(struct hd_reader *reader, const char *folder, const char *name,
	char **path, struct hd_diag *diag);

/* splits (split.c) */
HD_MUST_USE enum hd_err hd_split_hashed(struct hd_reader *reader, const struct hd_data_spec *spec,
	uint64_t count, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_split_last(struct hd_reader *reader, const struct hd_data_spec *spec,
	uint64_t count, struct hd_diag *diag);
uint32_t hd_split_add(struct hd_reader *reader, const char *name, uint64_t first, uint64_t count);
uint64_t hd_split_id(const struct hd_reader *reader, uint32_t split, uint64_t index);

/* 0: none. Where a sample has one label, classes say nothing of tokens. */
static inline uint32_t hd_token_bound(const struct hd_data_spec *spec)
{
	return spec->tokens || spec->one_label ? spec->tokens : spec->classes;
}

/* shapes. The element count is checked against the model's wish (spec->rank 0: none), whose shape then
 * stands. */
HD_MUST_USE enum hd_err hd_field_add(struct hd_reader *reader, const char *name, enum hd_dtype dtype,
	uint32_t rank, const int64_t *dim,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_field_add_x(struct hd_reader *reader, const struct hd_data_spec *spec,
	enum hd_dtype dtype, uint32_t rank,
	const int64_t *dim, const char *name, struct hd_diag *diag);
struct hd_dims_text { char at[96]; };                /* "[28,28]" */
struct hd_dims_text hd_dims_text(uint32_t rank, const int64_t *dim);

enum hd_data_use { HD_USE_SPLIT, HD_USE_LABEL, HD_USE_NOISE, HD_USE_CLASS, HD_USE_WALK, HD_USE_NEXT,
	HD_USE_PROOF, HD_USE_LENGTH };
struct hd_philox hd_data_draw(uint64_t seed, enum hd_data_use use, uint32_t split, uint64_t index,
	uint32_t block);

static inline uint32_t hd_be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	(uint32_t)p[2] << 8 | p[3]; }

/* The readers that there are, in the order of messages: a file defines hd_reader_NAME. */
#define HD_READERS(X) X(idx) X(cifar) X(csv) X(jsonl) X(parquet) X(text) X(tokens) X(npy) X(images) \
	X(webdataset) X(records) X(graph) X(synthetic)
#define X(name) extern const struct hd_reader_ops hd_reader_##name;
HD_READERS(X)
#undef X

#endif
