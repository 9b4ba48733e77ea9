/* dataset.h -- a finite, indexed set of samples, whatever file they come from.
 *
 * `engine` asks for sample indices (sampler.h decides which) and gets fields written
 * into a virtual node's input buffers. Readers are rows of hd_readers[]; adding a
 * format touches its file and its row.
 *
 * 1. Sample i is the same bytes for ever: its content is part of a job's identity
 *    (count and content hash stand in every checkpoint).
 * 2. Fields are named as the graph's inputs ("x", "y", and what it reads beside them: named.h), with shapes
 *    per sample.
 * 3. read() may be called from several threads at once; it does not allocate, but where it decodes images
 *    (`decodes`).
 * 4. Splits are views: a keyed hash of the sample id (images, tables) or the last
 *    part (text, tokens); formats that bring their own test set have a split "test".
 * 5. Everything a file says is checked when the set is opened: sizes, magic,
 *    labels in range; later reads cannot fail but for I/O.
 * 6. A file that is written to while it is mapped is another one from then on: hd_dataset_look() finds out.
 *
 * Ownership: the set is created by open and destroyed by destroy. */
#ifndef HD_DATA_DATASET_H
#define HD_DATA_DATASET_H

#include "base/arena.h"
#include "base/hash.h"
#include "sys/file.h"
#include "graph/ir.h"
#include "data/packing.h"

enum {
	HD_MAX_FIELDS = 16,
	HD_MAX_SPLITS = 4,
	/* of files: opening has read all of them, and so much stays in memory */
	HD_AT_HAND_BYTES = 256 << 20,
};

/* An input of the model beside x and y (named.h), as the model reads it of a sample. `bound`: its integers
 * are 0 to bound - 1; 0: any. */
struct hd_data_want { const char *name; enum hd_dtype dtype; uint8_t rank; int64_t dim[HD_MAX_DIMS];
	int64_t bound; };

/* What a reader needs of the job; all texts borrowed for the call. */
struct hd_data_spec {
	const char *kind;                 /* name of a row of hd_readers */
	/* file, folder or glob, as the kind understands it; NULL: the kind's default */
	const char *path;
	uint64_t seed;                    /* keys synthetic samples */
	uint64_t split_seed;              /* keys hashed splits */
	uint32_t size;                    /* images: of the shorter side; 0: as the model needs it */
	bool     stretch;                 /* images: both sides become the model's */
	uint32_t context;                 /* T of text and tokens, from the model; 0: "x" is numbers */
	uint32_t classes;                 /* bound of labels, from the model; 0: not checked */
	/* npy, csv: a label that counts as none; readers leave it as it is */
	bool     ignores; int32_t ignore;
	uint32_t tokens;                  /* bound of tokens, from the model; 0: that of labels */
	int32_t  pad;                     /* token that fills up a short text, from the model; -1: none */
	/* of tokens: "y" is one label (or numbers) for all of them, not one for each */
	bool     one_label;
	/* "y" is a text of its own: what hides a token of x hides no label */
	bool     apart;
	double   train, valid;            /* fractions; the rest is dropped */
	/* shape per sample the model wants of "x"; synthetic makes it, others check it */
	int64_t  dim[HD_MAX_DIMS]; uint8_t rank;
	bool     float_target;            /* mse: "y" is f32 of `classes` numbers */
	/* float_target: they are shares of classes; a kind that has one class for a sample gives 1 to it and
	 * 0 to the others */
	bool     shares;
	uint64_t count;                   /* synthetic: samples in the training split; 0: its default */
	/* graph: of how many virtual nodes its samples are the rows (graph_layout.h); 0: one */
	uint32_t intervals;
	/* csv, images: the column of "y"; cifar: "fine" or "coarse"; NULL: the kind's default */
	const char *label;
	/* csv: columns of "x", in this order; 0: all but the label */
	const char *const *column; uint32_t ncolumns;
	/* csv, images: what the label's classes are called; 0: they are numbers */
	const char *const *class; uint32_t nclasses;
	/* tokens: how documents are packed into samples, and the file that says where they begin */
	enum hd_packing_how pack; const char *boundaries;
	/* csv, jsonl, parquet: the file that makes tokens of texts (texts.h); NULL: their bytes are tokens */
	const char *tokenizer;
	/* what the model reads beside x and y, in its order */
	const struct hd_data_want *want; uint32_t nwant;
	/* how other places than files are read; NULL: the defaults */
	const struct hd_blob_rules *store;
};

/* `all`: that of every sample of the source, one after another, where it lies so in memory; else NULL. */
struct hd_field { char name[16]; uint8_t dtype, rank; int64_t dim[HD_MAX_DIMS]; uint64_t sample_bytes;
	const void *all; };

struct hd_split { char name[16]; uint64_t count; };

/* A file as it was when the set was opened. Its sample, keyed by the seed, says which of several files has
 * other content. */
struct hd_data_file { const char *name; int64_t size_bytes, changed_wall_ns; uint64_t inode;
	struct hd_hash sample; bool mapped; };

#define HD_NO_EPOCH UINT64_MAX            /* not a row of training */

/* A sample that is wanted, the data epoch of its row, and where its fields go. */
struct hd_ask { uint64_t index, epoch; void *out[HD_MAX_FIELDS];
	float *scratch; };                /* for transforms (augment.h); asks may share one */

struct hd_dataset;
/* What a set that is read by ranges says of its reading, and keeps to. Any thread. */
struct hd_fair_part;                      /* fair.h */
enum { HD_READING_TEXT = 640 };          /* with a URL and what the store said last */
struct hd_reading_ops {
	/* What was read since it was asked last, `seconds` ago, by so many takers at once. One thread at a
	 * time. */
	void (*window)(struct hd_dataset *set, double seconds, uint32_t takers, struct hd_fair_part *part);
	/* So many requests in flight, whatever its tuner finds; 0: as that finds. No bit depends on it. */
	void (*keep_depth)(struct hd_dataset *set, uint32_t depth);
	/* The oldest decision that was not taken yet, a line; false: there is none. */
	bool (*said)(struct hd_dataset *set, char text[HD_READING_TEXT]);
	/* What its reads have been waiting for, for some seconds and since it was asked last, a line; false:
	 * nothing. */
	bool (*waits)(struct hd_dataset *set, char text[HD_READING_TEXT]);
	/* Grows while its reads wait for answers and look for them: they are not stuck (blob.h). */
	uint64_t (*looks)(const struct hd_dataset *set);
	/* Has what it waits for said by `heard`, on any thread, as soon as it is known; `waits` then answers
	 * false. */
	void (*listen)(struct hd_dataset *set, void (*heard)(void *user, const char *text), void *user);
};
struct hd_blob_rules;                    /* blob.h */
struct hd_augment;                        /* augment.h */
struct hd_reader_ops {
	const char *name, *about;
	/* Opens and checks everything; fills fields, splits, hash of *set. */
	enum hd_err (*open)(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
		struct hd_diag *diag);
	/* Writes sample `index` of a split into out[field]; thread-safe, allocates nothing. As the file has
	 * it: what a model sees is hd_dataset_read() (augment.h). */
	enum hd_err (*read)(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
		struct hd_diag *diag);
	void (*destroy)(struct hd_dataset *set);
	bool of_classes;                  /* "y" of a sample is the number of its class, and nothing else */
};
extern const struct hd_reader_ops *const hd_readers[];         /* ends with NULL */

/* Fields that are looked at or made after reading (named.h); 0, which is x: none. `labels`: a y with a label
 * for each token of the mask; `shares`: one that a class is written to, and that becomes shares of classes.
 * */
struct hd_named { uint32_t mask, types, positions, labels, shares; };

/* First member of every reader's private struct. */
struct hd_dataset {
	const struct hd_reader_ops *ops;
	struct hd_field field[HD_MAX_FIELDS]; uint32_t nfields;
	struct hd_split split[HD_MAX_SPLITS]; uint32_t nsplits;        /* 0 is "train" */
	uint64_t count;                   /* of all samples of the source */
	struct hd_hash hash;              /* of the content */
	struct hd_data_file *file; uint32_t nfiles;   /* where it comes from; none: it is made up */
	/* of memory that read() fills little by little; 0: it reads where the files are mapped */
	uint64_t kept_bytes;
	/* of memory that it has taken to be open, where a reader counts it since it grows with the data */
	uint64_t table_bytes;
	/* read() copies or draws: it does not wait for a disk, as far as can be known */
	bool     at_hand;
	/* it computes for long: several threads read ahead */
	bool     decodes;
	/* it draws the part of resized_crop itself, from the image as it is stored (augment.h) */
	bool     takes_part;
	/* Several samples of a split at once, for a set that is read from elsewhere by ranges; NULL: one by
	 * one. As read() otherwise. `ahead`: rows of coming steps, whose waiting is counted (waited_ns):
	 * depth and sizes follow these alone. */
	enum hd_err (*read_many)(const struct hd_dataset *set, uint32_t split, const struct hd_ask *ask,
		uint32_t n, bool ahead, struct hd_diag *diag);
	/* what its depth and sizes of requests follow: how long takers have waited for rows, added up by what
	 * hands them out (prefetch.h); NULL: not counted */
	_Atomic int64_t *waited_ns;
	const struct hd_reading_ops *reading;     /* NULL: it is not read by ranges */
	/* borrowed from the opener of the set, NULL: none; field 0 is what it transforms */
	const struct hd_augment *augment;
	struct hd_named named;
	struct hd_diag warning;           /* what did not end the opening, for a user; "": nothing */
	/* one line for a user: "60000 images 28x28, 10 classes, /usr/share/..." */
	char     about[128];
};

HD_MUST_USE enum hd_err hd_dataset_open(struct hd_dataset **set, const struct hd_data_spec *spec,
	struct hd_fs *fs, struct hd_diag *diag);
void hd_dataset_destroy(struct hd_dataset *set);               /* takes NULL */
/* Looks whether the files that read() reads are what they were; one that was written to is hashed, with all
 * others. A call of the system for each file. HD_E_INTEGRITY: the content is another one. */
HD_MUST_USE enum hd_err hd_dataset_look(struct hd_dataset *set, struct hd_fs *fs, struct hd_diag *diag);
uint32_t hd_dataset_split(const struct hd_dataset *set, const char *name);       /* HD_NONE: no such split */

#endif
