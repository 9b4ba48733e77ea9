#include "data/cifar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/reader_int.h"

enum { MAX_TRAIN_FILES = 5, MAX_FILES = MAX_TRAIN_FILES + 1 };

struct cifar_set {
	struct hd_reader reader;
	struct hd_cifar file[MAX_FILES];                 /* those to train on, then that to test */
	/* id of a file's first sample; ids run through all files */
	uint64_t first[MAX_FILES + 1];
	uint32_t nfiles, label, classes;                 /* label: which of a record's */
	float scaled[256];                               /* byte / 255, rounded once */
};

/* What a folder of each kind holds; plain or gzipped. */
static const struct flavour {
	const char *name; uint32_t nlabels, ntrain; const char *train[MAX_TRAIN_FILES], *test;
} flavours[] = {
	{ "CIFAR-10",  1, 5, { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin" }, "test_batch.bin" },
	{ "CIFAR-100", 2, 1, { "train.bin" }, "test.bin" },
};
enum { NFLAVOURS = sizeof flavours / sizeof flavours[0] };

static const uint8_t label_ends[3][2] = { { 0 }, { 10 }, { 20, 100 } };       /* by nlabels */

enum hd_err hd_cifar_parse(const uint8_t *bytes, size_t len, const char *name, uint32_t nlabels,
	struct hd_cifar *cifar, struct hd_diag *diag)
{
	const size_t record = nlabels + HD_CIFAR_IMAGE;
	struct hd_cifar got = { bytes, len / record, nlabels };

	if (len == 0 || len % record)
		return hd_fail(diag, HD_E_INPUT,
			"%s has %zu bytes: records of CIFAR-%s are %zu bytes each, and there must be some",
			name, len,
			nlabels == 1 ? "10" : "100", record);
	for (uint64_t i = 0; i < got.count; i++)
		for (uint32_t k = 0; k < nlabels; k++)
			if (hd_cifar_record(&got, i)[k] >= label_ends[nlabels][k])
				return hd_fail(diag, HD_E_INPUT,
					"%s: label %u of record %" PRIu64 " is out of range, %u is the "
					"last: is it CIFAR-%s?",
					name, hd_cifar_record(&got, i)[k], i, label_ends[nlabels][k] - 1u,
					nlabels == 1 ? "10" : "100");
	*cifar = got;
	return HD_OK;
}

static enum hd_err add_file(struct cifar_set *set, const char *folder, const char *name, uint32_t nlabels,
	bool *found, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	enum hd_err err = hd_source_find(reader, folder, name, found, diag);

	if (err != HD_OK || !*found)
		return err;
	const struct hd_source *source = &reader->source[reader->nsources - 1];
	struct hd_cifar *file = &set->file[set->nfiles];
	err = hd_cifar_parse(source->bytes, source->len, source->name, nlabels, file, diag);
	if (err == HD_OK) {
		set->first[set->nfiles + 1] = set->first[set->nfiles] + file->count;
		set->nfiles++;
	}
	return err;
}

/* The first flavour of which the folder has a file; all of its files to train on must be there. */
static enum hd_err open_files(struct cifar_set *set, const char *folder, const struct flavour **of,
	bool *has_test, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	bool found = false;

	for (const struct flavour *f = flavours; f < flavours + NFLAVOURS && err == HD_OK && set->nfiles == 0;
		f++)
		for (uint32_t i = 0; i < f->ntrain && err == HD_OK && (i == 0 || found); i++) {
			*of = f;
			err = add_file(set, folder, f->train[i], f->nlabels, &found, diag);
		}
	if (err != HD_OK)
		return err;
	if (set->nfiles == 0)
		return hd_fail(diag, HD_E_NOTFOUND,
			"%s holds neither data_batch_1.bin (CIFAR-10, binary version) nor train.bin "
			"(CIFAR-100), plain or .gz: is data.path right?", folder);
	if (set->nfiles < (*of)->ntrain)
		return hd_fail(diag, HD_E_NOTFOUND, "%s has %s but not %s: %s is all of its files", folder,
			(*of)->train[0],
			(*of)->train[set->nfiles], (*of)->name);
	return add_file(set, folder, (*of)->test, (*of)->nlabels, has_test, diag);
}

static enum hd_err choose_label(struct cifar_set *set, const struct hd_data_spec *spec,
	const struct flavour *of, struct hd_diag *diag)
{
	set->classes = spec->classes;
	set->label = of->nlabels - 1;
	if (spec->label && of->nlabels == 1)
		return hd_fail(diag, HD_E_INVAL,
			"data.label is %s, but %s has one label a sample: leave it out", spec->label,
			of->name);
	if (spec->label && strcmp(spec->label, "coarse") != 0 && strcmp(spec->label, "fine") != 0)
		return hd_fail(diag, HD_E_INVAL,
			"data.label is %s; %s has fine (100 classes) and coarse (20)", spec->label, of->name);
	if (spec->label && spec->label[0] == 'c')
		set->label = 0;
	for (uint32_t f = 0; f < set->nfiles && spec->classes; f++)
		for (uint64_t i = 0; i < set->file[f].count; i++)
			if (hd_cifar_record(&set->file[f], i)[set->label] >= spec->classes)
				return hd_fail(diag, HD_E_INPUT,
					"%s: label %u of record %" PRIu64 " is out of range: the model has "
					"the classes 0 to %u",
					set->reader.source[f].name,
					hd_cifar_record(&set->file[f], i)[set->label], i, spec->classes - 1);
	return HD_OK;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	static const int64_t dim[3] = { 3, HD_CIFAR_SIDE, HD_CIFAR_SIDE };
	struct cifar_set *set = (struct cifar_set *)reader;
	const struct flavour *of = NULL;
	bool has_test = false;
	enum hd_err err;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind cifar needs the folder of the binary version: set data.path");
	if (spec->float_target)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind cifar has class labels, the loss wants numbers: use model.loss "
			"cross-entropy");
	if ((err = open_files(set, spec->path, &of, &has_test, diag)) != HD_OK ||
		(err = choose_label(set, spec, of, diag)) != HD_OK)
		return err;
	uint64_t ntrain = set->first[of->ntrain];
	if ((err = hd_field_add_x(reader, spec, HD_F32, 3, dim, reader->source[0].name, diag)) != HD_OK
	    || (err = hd_field_add(reader, "y", HD_I32, 0, NULL, diag)) != HD_OK
	    || (err = hd_split_hashed(reader, spec, ntrain, diag)) != HD_OK)
		return err;
	if (has_test)
		hd_split_add(reader, "test", ntrain, set->first[set->nfiles] - ntrain);
	for (int i = 0; i < 256; i++)
		set->scaled[i] = (float)i / 255.0f;
	reader->set.hash = hd_sources_hash(reader);
	reader->set.count = set->first[set->nfiles];
	hd_reader_about(reader, "%" PRIu64 " images [3,32,32] of %s%s%s, %s", ntrain, of->name,
		of->nlabels == 1 ? "" : set->label ? ", fine labels" : ", coarse labels",
		has_test ? " and a test set" : "", spec->path);
	return HD_OK;
}

static enum hd_err cifar_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct cifar_set), &hd_reader_cifar, fs, fill, spec, diag);
}

static enum hd_err cifar_read(const struct hd_dataset *dataset, uint32_t split, uint64_t index,
	void *const *out, struct hd_diag *diag)
{
	const struct cifar_set *set = (const struct cifar_set *)dataset;
	uint64_t id = hd_split_id(&set->reader, split, index);
	uint32_t f = 0;

	while (id >= set->first[f + 1])
		f++;
	const uint8_t *record = hd_cifar_record(&set->file[f], id - set->first[f]),
		*image = record + set->file[f].nlabels;
	uint8_t label = record[set->label];
	float *x = out[0];

	if (label >= label_ends[set->file[f].nlabels][set->label] || (set->classes && label >= set->classes))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s was changed while it is in use: label %u of record %" PRIu64,
			set->reader.source[f].name, label,
			id - set->first[f]);
	for (uint32_t i = 0; i < HD_CIFAR_IMAGE; i++)
		x[i] = set->scaled[image[i]];
	*(int32_t *)out[1] = label;
	return HD_OK;
}

const struct hd_reader_ops hd_reader_cifar = {
	.name = "cifar", .about = "folder of CIFAR-10 or CIFAR-100, binary version (plain or gzipped)",
	.open = cifar_open, .read = cifar_read, .destroy = hd_reader_destroy, .of_classes = true,
};
