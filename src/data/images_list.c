#include "data/images_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Ends of names, in any case. What is an image of another form is refused: passed by, it would be missing
 * from the data without a word. */
static const char *const ours[] = { ".jpg", ".jpeg", ".png", NULL };
static const char *const others[] = { ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif", ".jp2",
	".avif",
	".heic", NULL };

static bool ends_in(const char *name, const char *const *end)
{
	const size_t len = strlen(name);

	for (; *end; end++)
		if (len > strlen(*end) && !strcasecmp(name + len - strlen(*end), *end))
			return true;
	return false;
}

struct folder { char name[HD_PATH_CAP]; };       /* below the root */

static enum hd_err join(struct folder *to, const char *folder, const char *name, struct hd_diag *diag)
{
	const int n = snprintf(to->name, sizeof to->name, "%s%s%s", folder, *folder ? "/" : "", name);

	return n > 0 && n < HD_PATH_CAP ? HD_OK : hd_fail(diag, HD_E_INPUT,
		"the path ...%.100s/%.100s is longer than %d "
		"bytes", folder, name, HD_PATH_CAP - 1);
}

/* Names in a folder below the root; the root's own with "". */
static enum hd_err list(struct hd_image_set *set, const char *folder, char ***names, size_t *n,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	enum hd_err err = *folder ? hd_images_path(set, folder, path, diag) : HD_OK;

	return err ? err : hd_fs_list(set->reader.fs, *folder ? path : set->root, &set->reader.arena, names,
		n, diag);
}

static enum hd_err is_folder(struct hd_image_set *set, const char *name, bool *is, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	enum hd_err err = hd_images_path(set, name, path, diag);

	if (!err)
		err = hd_fs_stat(set->reader.fs, path, &stat, diag);
	if (!err)
		*is = stat.kind == HD_FILE_FOLDER;
	return err;
}

/* The files of a folder, then those of its folders. */
static enum hd_err add_files(struct hd_image_set *set, const char *folder, int32_t label, int depth,
	struct hd_diag *diag)
{
	char **names;
	struct folder at;
	size_t n;
	enum hd_err err = list(set, folder, &names, &n, diag);

	for (size_t i = 0; i < n * (err == HD_OK) && !err; i++) {
		err = names[i][0] == '.' ? HD_OK : join(&at, folder, names[i], diag);
		if (err || names[i][0] == '.')
			continue;
		if (ends_in(names[i], ours))
			err = hd_images_add(set, at.name, label, diag);
		else if (ends_in(names[i], others))
			err = hd_fail(diag, HD_E_INPUT,
				"%.200s/%s is an image of a form that is not read: make a JPEG or "
				"PNG of it, or take it away", set->root, at.name);
	}
	for (size_t i = 0; i < n * (err == HD_OK) && !err; i++) {
		bool is = false;
		if (names[i][0] == '.' || ends_in(names[i], ours))
			continue;
		err = join(&at, folder, names[i], diag);
		err = err ? err : is_folder(set, at.name, &is, diag);
		if (!err && is && depth == HD_IMAGES_DEPTH)
			err = hd_fail(diag, HD_E_INPUT,
				"%.200s/%s lies deeper than %d folders: is it a loop of links?",
				set->root, at.name, HD_IMAGES_DEPTH);
		else if (!err && is)
			err = add_files(set, at.name, label, depth + 1, diag);
	}
	return err;
}

/* Folders in `folder`, by name. */
static enum hd_err folders_of(struct hd_image_set *set, const char *folder, const char *const **out, uint32_t
	*n,
	struct hd_diag *diag)
{
	char **names;
	struct folder at;
	size_t nnames;
	enum hd_err err = list(set, folder, &names, &nnames, diag);
	const char **kept = err ? NULL : hd_arena_take(&set->reader.arena, nnames ? nnames : 1, sizeof *kept);

	if (err || !kept)
		return err ? err : hd_fail(diag, HD_E_NOMEM, "no memory for the folders of %s", set->root);
	*n = 0;
	for (size_t i = 0; i < nnames && !err; i++) {
		bool is = false;
		err = join(&at, folder, names[i], diag);
		if (!err && names[i][0] != '.')
			err = is_folder(set, at.name, &is, diag);
		if (is)
			kept[(*n)++] = names[i];
	}
	*out = kept;
	return err;
}

static int32_t class_of(const struct hd_image_set *set, const char *name)
{
	for (uint32_t c = 0; c < set->nclasses; c++)
		if (!strcmp(set->class[c], name))
			return (int32_t)c;
	return -1;
}

/* On a file system that does not keep cases apart one of them would be the other. */
static enum hd_err check_names(const struct hd_image_set *set, struct hd_diag *diag)
{
	if (!set->nclasses)
		return hd_fail(diag, HD_E_INPUT,
			"%.200s holds no folder: data.kind images takes a folder with one folder "
			"of images for each class", set->root);
	if (set->nclasses > HD_IMAGES_CLASSES)
		return hd_fail(diag, HD_E_INPUT, "%.200s holds %u folders: classes are at most %d", set->root,
			set->nclasses, HD_IMAGES_CLASSES);
	for (uint32_t a = 0; a < set->nclasses && set->nclasses <= HD_SOURCES_CAP; a++)
		for (uint32_t b = a + 1; b < set->nclasses; b++)
			if (!strcasecmp(set->class[a], set->class[b]))
				return hd_fail(diag, HD_E_INPUT,
					"%.200s: the classes %.60s and %.60s differ by case alone: make "
					"one of them, or other names", set->root, set->class[a],
						set->class[b]);
	return HD_OK;
}

/* The images of all classes below `folder`; in one that is there to evaluate on a class may be missing. */
static enum hd_err add_classes(struct hd_image_set *set, const char *folder, bool all, struct hd_diag *diag)
{
	const char *const *names;
	struct folder at;
	uint32_t n = 0;
	enum hd_err err = folders_of(set, folder, &names, &n, diag);

	for (uint32_t i = 0; i < n && !err; i++) {
		if (class_of(set, names[i]) < 0)
			err = hd_fail(diag, HD_E_INPUT,
				"%.200s/%s%s%.60s is no class that there is to train on", set->root,
				folder, *folder ? "/" : "", names[i]);
	}
	for (uint32_t c = 0; c < set->nclasses && !err; c++) {
		bool is = false;
		const uint64_t before = set->nitems;
		for (uint32_t i = 0; i < n && !is; i++)
			is = !strcmp(names[i], set->class[c]);
		err = is ? join(&at, folder, set->class[c], diag) : HD_OK;
		if (!err && is)
			err = add_files(set, at.name, (int32_t)c, 1, diag);
		if (!err && (all || is) && set->nitems == before)
			err = hd_fail(diag, HD_E_INPUT,
				"%.200s/%s%s%.60s holds no image (.jpg, .jpeg, .png): a class without "
				"images cannot be learnt", set->root, folder, *folder ? "/" : "",
					set->class[c]);
	}
	return err;
}

/* Which folders hold the splits; none: the root's folders are classes. A folder "train" makes splits of
 * itself and its neighbours where all of them have such names. */
static const char *const split_names[HD_IMAGES_SPLITS][3] = { { "train" }, { "val", "valid" }, { "test" } };

static int split_of(const char *name)
{
	for (int s = 0; s < HD_IMAGES_SPLITS; s++)
		for (int k = 0; k < 3 && split_names[s][k]; k++)
			if (!strcmp(split_names[s][k], name))
				return s;
	return -1;
}

static enum hd_err find_splits(struct hd_image_set *set, const char *const *names, uint32_t n,
	const char *split[HD_IMAGES_SPLITS], struct hd_diag *diag)
{
	memset(split, 0, HD_IMAGES_SPLITS * sizeof *split);
	for (uint32_t i = 0; i < n; i++) {
		const int s = split_of(names[i]);
		if (s >= 0 && split[s])
			return hd_fail(diag, HD_E_INPUT,
				"%.200s holds %s and %s: which of them is to evaluate on?",
				set->root, split[s], names[i]);
		if (s >= 0)
			split[s] = names[i];
		else
			break;
	}
	uint32_t found = 0;
	for (int s = 0; s < HD_IMAGES_SPLITS; s++)
		found += split[s] != NULL;
	if (!split[HD_IMAGES_TRAIN] || found < n)
		memset(split, 0, HD_IMAGES_SPLITS * sizeof *split);
	return HD_OK;
}

static enum hd_err take_class_names(struct hd_image_set *set, const struct hd_data_spec *spec,
	const char *const *names, uint32_t n, struct hd_diag *diag)
{
	const char **copy = spec->nclasses ? hd_arena_take(&set->reader.arena, spec->nclasses, sizeof *copy)
		: NULL;

	set->class = names;
	set->nclasses = n;
	if (!spec->nclasses)
		return check_names(set, diag);
	if (!copy)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the names of classes");
	for (uint32_t i = 0; i < spec->nclasses; i++)
		if (!(copy[i] = hd_arena_text(&set->reader.arena, spec->class[i], strlen(spec->class[i]))))
			return hd_fail(diag, HD_E_NOMEM, "no memory for the names of classes");
	set->class = copy;
	set->nclasses = spec->nclasses;
	return check_names(set, diag);
}

static enum hd_err list_folder(struct hd_image_set *set, const struct hd_data_spec *spec, struct hd_diag
	*diag)
{
	const char *const *names, *split[HD_IMAGES_SPLITS];
	uint32_t n = 0;
	enum hd_err err = folders_of(set, "", &names, &n, diag);

	if (!err)
		err = find_splits(set, names, n, split, diag);
	if (!err && split[HD_IMAGES_TRAIN])
		err = folders_of(set, split[HD_IMAGES_TRAIN], &names, &n, diag);
	if (!err)
		err = take_class_names(set, spec, names, n, diag);
	if (!err)
		err = add_classes(set, split[HD_IMAGES_TRAIN] ? split[HD_IMAGES_TRAIN] : "", true, diag);
	for (int s = HD_IMAGES_TRAIN; s < HD_IMAGES_SPLITS && !err; s++) {
		if (s && split[s])
			err = add_classes(set, split[s], false, diag);
		set->end[s] = set->nitems;
	}
	return err;
}

enum hd_err hd_images_list(struct hd_image_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_stat stat;
	enum hd_err err = hd_fs_stat(set->reader.fs, spec->path, &stat, diag);

	set->root = hd_arena_text(&set->reader.arena, spec->path, strlen(spec->path));
	if (!err && !set->root)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the path %s", spec->path);
	if (!err && stat.kind != HD_FILE_FOLDER)
		err = hd_images_rows(set, spec, diag);
	else if (!err)
		err = list_folder(set, spec, diag);
	return err;
}
