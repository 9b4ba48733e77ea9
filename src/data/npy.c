#include "data/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/named.h"
#include "data/reader_int.h"

/* One array as a field: how its elements become f32 or i32. */
/* bound 0: integers need only fit i32 */
struct npy_column {
	struct hd_npy npy;
	const char *name;
	uint64_t per_sample;
	int64_t bound, least;
	bool of_class;                    /* written as a class, for shares (named.h, rule 4) */
	bool ignores; int32_t ignore;            /* an integer that is right whatever the bounds are */
};

/* column[f] is field f */
struct npy_set { struct hd_reader reader; struct npy_column column[HD_MAX_FIELDS]; };

static double number_at(const struct hd_npy *npy, uint64_t i)
{
	uint32_t word;
	uint64_t wide;
	float f32;
	double f64;

	if (npy->dtype == HD_F32) {
		word = hd_get32(npy->at + 4 * i);
		memcpy(&f32, &word, sizeof f32);
		return (double)f32;
	}
	wide = hd_get64(npy->at + 8 * i);
	memcpy(&f64, &wide, sizeof f64);
	return f64;
}

static int64_t integer_at(const struct hd_npy *npy, uint64_t i)
{
	if (npy->dtype == HD_U8)
		return npy->at[i];
	return npy->dtype == HD_I32 ? (int32_t)hd_get32(npy->at + 4 * i) : (int64_t)hd_get64(npy->at + 8 * i);
}

static bool is_float(const struct hd_npy *npy) { return npy->dtype == HD_F32 || npy->dtype == HD_F64; }

static bool integer_ok(const struct npy_column *column, int64_t v)
{
	if (column->ignores && v == column->ignore)
		return true;
	if (column->least < 0)
		v = hd_label(v);
	return column->bound ? v >= column->least && v < column->bound : v >= INT32_MIN && v <= INT32_MAX;
}

static enum hd_err check_integers(const struct npy_column *column, struct hd_diag *diag)
{
	for (uint64_t i = 0; i < column->npy.nelems; i++) {
		int64_t v = integer_at(&column->npy, i);
		if (integer_ok(column, v))
			continue;
		if (column->bound)
			return hd_fail(diag, HD_E_INPUT,
				"%s: %" PRId64 " in sample %" PRIu64 " is out of range: the model knows 0 "
				"to %" PRId64,
				column->name, v,
				i / column->per_sample, column->bound - 1);
		return hd_fail(diag, HD_E_INPUT, "%s: %" PRId64 " in sample %" PRIu64 " does not fit 32 bits",
			column->name, v, i / column->per_sample);
	}
	return HD_OK;
}

/* Of the source that was added last. */
static enum hd_err parse_column(const struct hd_reader *reader, struct npy_column *column,
	struct hd_diag *diag)
{
	const struct hd_source *source = &reader->source[reader->nsources - 1];
	enum hd_err err = hd_npy_parse(source->bytes, source->len, source->name, &column->npy, diag);

	if (err != HD_OK)
		return err;
	column->name = source->name;
	if (column->npy.rank == 0 || column->npy.nelems == 0)
		return hd_fail(diag, HD_E_INPUT,
			"%s has the shape %s: the first extent counts samples, and there must be some",
				column->name,
			hd_dims_text(column->npy.rank, column->npy.dim).at);
	column->per_sample = column->npy.nelems / (uint64_t)column->npy.dim[0];
	return HD_OK;
}

static enum hd_err open_column(struct npy_set *set, const char *folder, const char *file,
	struct npy_column *column, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	char *path;
	enum hd_err err = hd_path_join(reader, folder, file, &path, diag);

	if (err == HD_OK)
		err = hd_source_add(reader, path, diag);
	return err == HD_OK ? parse_column(reader, column, diag) : err;
}

static enum hd_err add_x(struct npy_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct npy_column *x = &set->column[0];
	bool numbers = is_float(&x->npy) || (x->npy.dtype == HD_U8 && !spec->context);
	enum hd_err err = hd_field_add_x(&set->reader, spec, numbers ? HD_F32 : HD_I32, x->npy.rank - 1,
		x->npy.dim + 1, x->name, diag);

	if (err != HD_OK || numbers)
		return err;
	x->bound = hd_token_bound(spec);
	return check_integers(x, diag);
}

static enum hd_err add_y(struct npy_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct npy_column *y = &set->column[1];
	const int64_t one = 1, *dim = y->npy.rank > 1 ? y->npy.dim + 1 : &one;

	if (!spec->float_target || (spec->shares && !is_float(&y->npy) && y->npy.rank == 1)) {
		if (is_float(&y->npy))
			return hd_fail(diag, HD_E_INPUT,
				"%s holds %s, the loss wants class numbers: save integers, or use "
				"model.loss mse", y->name,
				hd_dtype_text(y->npy.dtype));
		enum hd_err err = hd_field_add(&set->reader, "y", HD_I32, y->npy.rank - 1, y->npy.dim + 1,
			diag);
		y->bound = spec->classes;
		y->of_class = spec->float_target;
		y->ignores = spec->ignores;
		y->ignore = spec->ignore;
		y->least = y->npy.rank > 1 ? -1 : 0;               /* of a row of labels some may be masked */
		return err == HD_OK ? check_integers(y, diag) : err;
	}
	if (!is_float(&y->npy))
		return hd_fail(diag, HD_E_INPUT,
			"%s holds %s, the loss wants numbers: save float32, or use model.loss cross-entropy",
			y->name,
			hd_dtype_text(y->npy.dtype));
	if (spec->classes && y->per_sample != spec->classes)
		return hd_fail(diag, HD_E_INPUT, "%s has %" PRIu64 " numbers per sample, the model gives %u",
			y->name, y->per_sample, spec->classes);
	return hd_field_add(&set->reader, "y", HD_F32, y->npy.rank > 1 ? y->npy.rank - 1 : 1, dim, diag);
}

static enum hd_err check_seen(const struct npy_column *mask, struct hd_diag *diag)
{
	for (uint64_t i = 0; i < mask->npy.nelems; i += mask->per_sample) {
		uint64_t k = 0;
		while (k < mask->per_sample && !integer_at(&mask->npy, i + k))
			k++;
		if (k == mask->per_sample)
			return hd_fail(diag, HD_E_INPUT,
				"%s: sample %" PRIu64 " is all 0: nothing of it would be seen; leave it out",
					mask->name, i / mask->per_sample);
	}
	return HD_OK;
}

/* NAME.npy of what the model reads beside x and y; no file, no field. */
static enum hd_err add_wanted(struct npy_set *set, const struct hd_data_spec *spec,
	const struct hd_data_want *want, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	struct npy_column *c = &set->column[reader->set.nfields];
	char file[32];
	bool found = false;

	(void)snprintf(file, sizeof file, "%s.npy", want->name);
	enum hd_err err = hd_source_find(reader, spec->path, file, &found, diag);
	if (err || !found)
		return err;
	if ((err = parse_column(reader, c, diag)) != HD_OK)
		return err;
	if (c->npy.dim[0] != set->column[0].npy.dim[0] || c->per_sample != hd_want_elems(want))
		return hd_fail(diag, HD_E_INPUT,
			"%s has the shape %s; of %" PRId64 " samples the model reads \"%s\" as %s", c->name,
			hd_dims_text(c->npy.rank, c->npy.dim).at, set->column[0].npy.dim[0], want->name,
			hd_dims_text(want->rank, want->dim).at);
	if (want->dtype != HD_F32 && is_float(&c->npy))
		return hd_fail(diag, HD_E_INPUT, "%s holds %s, the model reads integers: save int64", c->name,
			hd_dtype_text(c->npy.dtype));
	c->bound = hd_want_is_mask(want) ? 2 : want->bound;
	err = hd_field_add(reader, want->name, want->dtype, want->rank, want->dim, diag);
	if (err == HD_OK && want->dtype != HD_F32)
		err = check_integers(c, diag);
	return err == HD_OK && want->dtype != HD_F32 && hd_want_is_mask(want) ? check_seen(c, diag) : err;
}

static enum hd_err fill(struct hd_reader *reader, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct npy_set *set = (struct npy_set *)reader;
	struct npy_column *x = &set->column[0], *y = &set->column[1];
	enum hd_err err;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind npy needs a folder with x.npy and y.npy: set data.path");
	if ((err = open_column(set, spec->path, "x.npy", x, diag)) != HD_OK ||
		(err = open_column(set, spec->path, "y.npy", y, diag)) != HD_OK)
		return err;
	if (x->npy.dim[0] != y->npy.dim[0])
		return hd_fail(diag, HD_E_INPUT,
			"%s has %" PRId64 " samples, %s %" PRId64 ": they must be as many", x->name,
			x->npy.dim[0], y->name,
			y->npy.dim[0]);
	reader->set.count = (uint64_t)x->npy.dim[0];
	if ((err = add_x(set, spec, diag)) != HD_OK || (err = add_y(set, spec, diag)) != HD_OK)
		return err;
	for (uint32_t i = 0; i < spec->nwant && err == HD_OK; i++)
		err = add_wanted(set, spec, &spec->want[i], diag);
	if (err != HD_OK || (err = hd_split_hashed(reader, spec, reader->set.count, diag)) != HD_OK)
		return err;
	reader->set.hash = hd_sources_hash(reader);
	hd_reader_about(reader, "%" PRIu64 " samples of %s %s, %s", reader->set.count,
		hd_dtype_text(x->npy.dtype),
		hd_dims_text(x->npy.rank - 1, x->npy.dim + 1).at, spec->path);
	return HD_OK;
}

static enum hd_err npy_open(struct hd_dataset **set, const struct hd_data_spec *spec, struct hd_fs *fs,
	struct hd_diag *diag)
{
	return hd_reader_open(set, sizeof(struct npy_set), &hd_reader_npy, fs, fill, spec, diag);
}

static enum hd_err read_column(const struct npy_column *column, const struct hd_field *field, uint64_t id,
	void *out, struct hd_diag *diag)
{
	uint64_t n = column->per_sample, first = id * n;
	const struct hd_npy *npy = &column->npy;

	if (field->dtype == HD_F32 && !column->of_class) {
		bool integers = !is_float(npy);
		for (uint64_t i = 0; i < n; i++)
			((float *)out)[i] = integers ? (float)integer_at(npy, first + i) :
				(float)number_at(npy, first + i);
		return HD_OK;
	}
	for (uint64_t i = 0; i < n; i++) {
		int64_t v = integer_at(npy, first + i);
		if (!integer_ok(column, v))
			return hd_fail(diag, HD_E_INTEGRITY,
				"%s was changed while it is in use: %" PRId64 " in sample %" PRIu64,
				column->name, v, id);
		((int32_t *)out)[i] = (int32_t)(column->least < 0 ? hd_label(v) : v);
	}
	return HD_OK;
}

static enum hd_err npy_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	const struct npy_set *npy = (const struct npy_set *)set;
	uint64_t id = hd_split_id(&npy->reader, split, index);
	enum hd_err err = HD_OK;

	/* those behind the last source are made (named.h) */
	for (uint32_t f = 0; f < npy->reader.nsources && err == HD_OK; f++)
		err = read_column(&npy->column[f], &set->field[f], id, out[f], diag);
	return err;
}

const struct hd_reader_ops hd_reader_npy = {
	.name = "npy", .about =
		"folder with x.npy, y.npy, NAME.npy of other inputs (NumPy; f32, f64, u8, bool, i32, i64)",
	.open = npy_open, .read = npy_read, .destroy = hd_reader_destroy,
};
