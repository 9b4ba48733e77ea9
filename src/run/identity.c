#include "run/identity.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"

enum { HD_IDENTITY_BYTES = 8 << 20, HD_IDENTITY_FILES = 4096, NMEMBERS = 3, NDATA_MEMBERS = 3,
	NFILE_MEMBERS = 5 };

struct hd_identity hd_identity_of(const struct hd_task *task)
{
	return (struct hd_identity){ .job = task->job_hash, .data = task->data->hash,
		.count = task->data->count, .file = task->data->file,
		.nfiles = task->data->nfiles };
}

static void put_hash(struct hd_json_writer *w, const char *key, struct hd_hash hash)
{
	char hex[HD_HASH_HEX];

	hd_hash_hex(hash, hex);
	hd_json_put_text(w, key, hex);
}

enum hd_err hd_identity_print(const struct hd_identity *identity, struct hd_text *text, struct hd_diag *diag)
{
	struct hd_json_writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "v", 1);
	put_hash(&w, "job", identity->job);
	hd_json_open_object(&w, "data");
	hd_json_put_u64(&w, "count", identity->count);
	put_hash(&w, "hash", identity->data);
	hd_json_open_array(&w, "files");
	for (uint32_t i = 0; i < identity->nfiles; i++) {
		const struct hd_data_file *f = &identity->file[i];
		hd_json_open_object(&w, NULL);
		hd_json_put_text(&w, "name", f->name);
		hd_json_put_i64(&w, "size", f->size_bytes);
		hd_json_put_i64(&w, "changed", f->changed_wall_ns);
		hd_json_put_u64(&w, "inode", f->inode);
		put_hash(&w, "sample", f->sample);
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	hd_json_close(&w);
	hd_text_add(text, "\n");
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for the identity of a run") : HD_OK;
}

static enum hd_err get_hash(const struct hd_json *object, const char *key, struct hd_hash *hash,
	struct hd_diag *diag)
{
	const char *hex;
	char path[200];
	enum hd_err err = hd_json_get_text(object, key, &hex, diag);

	if (!err && !hd_hash_parse(hex, hash))
		err = hd_fail(diag, HD_E_INPUT, "%s.%s is not a hash of 32 hex digits",
			hd_json_path(object, path, sizeof path), key);
	return err;
}

static enum hd_err members(const struct hd_json *object, size_t n, struct hd_diag *diag)
{
	char path[200];

	return hd_json_count(object) == n ? HD_OK
		: hd_fail(diag, HD_E_INPUT, "%s has %zu members instead of %zu",
			hd_json_path(object, path, sizeof path), hd_json_count(object), n);
}

static enum hd_err parse_file(const struct hd_json *item, struct hd_data_file *file, struct hd_diag *diag)
{
	enum hd_err err = hd_json_as(item, HD_JSON_OBJECT, diag);

	if (!err)
		err = members(item, NFILE_MEMBERS, diag);
	if (!err)
		err = hd_json_get_text(item, "name", &file->name, diag);
	if (!err)
		err = hd_json_get_i64(item, "size", 0, INT64_MAX, &file->size_bytes, diag);
	if (!err)
		err = hd_json_get_i64(item, "changed", INT64_MIN, INT64_MAX, &file->changed_wall_ns, diag);
	if (!err)
		err = hd_json_get_u64(item, "inode", UINT64_MAX, &file->inode, diag);
	return err ? err : get_hash(item, "sample", &file->sample, diag);
}

static enum hd_err parse_data(const struct hd_json *data, struct hd_identity *identity,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_json *files = NULL;
	struct hd_data_file *file = NULL;
	enum hd_err err = members(data, NDATA_MEMBERS, diag);

	if (!err)
		err = hd_json_get_u64(data, "count", INT64_MAX, &identity->count, diag);
	if (!err)
		err = get_hash(data, "hash", &identity->data, diag);
	if (!err)
		err = hd_json_get(data, "files", HD_JSON_ARRAY, &files, diag);
	if (err)
		return err;
	size_t n = hd_json_count(files);
	if (n > HD_IDENTITY_FILES)
		return hd_fail(diag, HD_E_INPUT, "data.files has %zu members, more than %d", n,
			HD_IDENTITY_FILES);
	file = hd_arena_take(arena, n + 1, sizeof *file);
	if (!file)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the list of %zu data files", n);
	memset(file, 0, (n + 1) * sizeof *file);
	for (size_t i = 0; i < n && !err; i++)
		err = parse_file(hd_json_item(files, i), &file[i], diag);
	identity->file = file;
	identity->nfiles = (uint32_t)n;
	return err;
}

enum hd_err hd_identity_parse(struct hd_identity *out, struct hd_arena *arena, const char *name,
	const char *text, size_t len, struct hd_diag *diag)
{
	struct hd_identity identity = { 0 };
	const struct hd_json *root, *data;
	int64_t version = 0;
	enum hd_err err = hd_json_parse(arena, name, text, len, &root, diag);

	if (!err)
		err = hd_json_get_i64(root, "v", 1, INT64_MAX, &version, diag);
	if (!err && version != 1)
		err = hd_fail(diag, HD_E_INPUT,
			"%s: written in format version %lld, this program reads version 1: use the program "
			"that wrote it", name,
			(long long)version);
	if (!err)
		err = members(root, NMEMBERS, diag);
	if (!err)
		err = get_hash(root, "job", &identity.job, diag);
	if (!err)
		err = hd_json_get(root, "data", HD_JSON_OBJECT, &data, diag);
	if (!err)
		err = parse_data(data, &identity, arena, diag);
	if (!err)
		*out = identity;
	return err;
}

/* Which file it is: of several the first that has another size, else another sample, else another time or
 * inode. */
static const struct hd_data_file *culprit(const struct hd_identity *was, const struct hd_identity *is,
	const struct hd_data_file **before)
{
	for (int look = 0; look < 3 && was->nfiles == is->nfiles; look++)
		for (uint32_t i = 0; i < is->nfiles; i++) {
			const struct hd_data_file *a = &was->file[i], *b = &is->file[i];
			bool differs = look == 0 ? a->size_bytes != b->size_bytes : look == 1 ?
				!hd_hash_same(a->sample, b->sample)
				: a->changed_wall_ns != b->changed_wall_ns || a->inode != b->inode;
			*before = a;
			if (differs)
				return b;
		}
	return NULL;
}

#define OTHER    "other data than the run began with: "
#define PUT_BACK "; put the old data back, or begin another run with these (heddle run)"

enum hd_err hd_identity_data(const struct hd_identity *was, const struct hd_identity *is,
	struct hd_diag *diag)
{
	const struct hd_data_file *before;

	if (was->count == is->count && hd_hash_same(was->data, is->data))
		return HD_OK;
	const struct hd_data_file *file = culprit(was, is, &before);
	if (!file)
		return hd_fail(diag, HD_E_INTEGRITY,
			OTHER "%llu samples in %u files instead of %llu in %u, or other content" PUT_BACK,
			(unsigned long long)is->count, is->nfiles, (unsigned long long)was->count,
			was->nfiles);
	if (file->size_bytes != before->size_bytes)
		return hd_fail(diag, HD_E_INTEGRITY, OTHER "%.200s has %lld bytes instead of %lld" PUT_BACK,
			file->name, (long long)file->size_bytes,
			(long long)before->size_bytes);
	return hd_fail(diag, HD_E_INTEGRITY, OTHER "%.200s has as many bytes and other content" PUT_BACK,
		file->name);
}

enum hd_err hd_identity_read(struct hd_identity *identity, struct hd_arena *arena, struct hd_fs *fs,
	const char *run, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_diag why = { "" };
	uint8_t *bytes;
	size_t len;

	snprintf(path, sizeof path, "%s/" HD_IDENTITY_NAME, run);
	enum hd_err err = hd_file_read_all(fs, path, arena, HD_IDENTITY_BYTES, &bytes, &len, &why);
	if (!err)
		err = hd_identity_parse(identity, arena, path, (const char *)bytes, len, &why);
	return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

static enum hd_err put(struct hd_rundir *dir, const struct hd_identity *identity, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text text;

	hd_text_init(&text, arena);
	enum hd_err err = hd_identity_print(identity, &text, diag);
	return err ? err : hd_rundir_put(dir, HD_IDENTITY_NAME, text.at, text.len, diag);
}

enum hd_err hd_identity_keep(struct hd_rundir *dir, const struct hd_task *task, struct hd_diag *diag)
{
	struct hd_identity was = { 0 }, is = hd_identity_of(task);
	struct hd_diag why = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_identity_read(&was, &arena, dir->fs, dir->path, &why);
	bool absent = err == HD_E_NOTFOUND, other = !hd_hash_same(was.job, is.job);
	if (err && !absent)
		err = hd_fail(diag, err, "%s", why.text);
	/* synthetic data follow the job: the reader of the checkpoint judges that */
	else if (!err && !(other && !was.nfiles && !is.nfiles))
		err = hd_identity_data(&was, &is, diag);
	if (absent || (!err && other))
		err = put(dir, &is, &arena, diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err check_job(const struct hd_identity *was, const struct hd_task *task, struct hd_diag *diag)
{
	const struct hd_job_value *weights = &task->job->value[HD_JOB_WEIGHTS];
	const char *use = hd_job_text(task->job, HD_JOB_MODEL);
	bool built_in = !strncmp(use, "builtin:", 8);

	if (hd_hash_same(was->job, task->job_hash))
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"what fixes the result differs from the job that the run began with: leave out -s and "
		"HEDDLE_ variables that change "
		"it%s%.150s%s%.150s", built_in ? "" : "; model.use must be the file that it was, ",
		built_in ? "" : use,
		weights->is_none ? "" : "; model.weights must be the file that it was, ",
		weights->is_none ? "" : weights->text);
}

/* A run of before identities were kept has nothing to prove. */
static enum hd_err proved(enum hd_err err, const struct hd_diag *why, struct hd_diag *diag)
{
	return err && err != HD_E_NOTFOUND ? hd_fail(diag, err, "%s", why->text) : HD_OK;
}

enum hd_err hd_identity_join(struct hd_fs *fs, const char *path, const struct hd_task *task,
	struct hd_diag *diag)
{
	struct hd_identity was, is = hd_identity_of(task);
	struct hd_diag why = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_identity_read(&was, &arena, fs, path, &why);
	if (!err)
		err = check_job(&was, task, &why);
	if (!err)
		err = hd_identity_data(&was, &is, &why);
	hd_arena_finish(&arena);
	return proved(err, &why, diag);
}

enum hd_err hd_identity_take(struct hd_fs *fs, const char *path, struct hd_task *task, struct hd_diag *other,
	struct hd_diag *diag)
{
	struct hd_identity was, is = hd_identity_of(task);
	struct hd_diag why = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_identity_read(&was, &arena, fs, path, &why);
	if (!err)
		err = check_job(&was, task, &why);
	if (!err && hd_identity_data(&was, &is, &why)) {
		*other = why;
		err = was.count == is.count ? HD_OK : HD_E_INTEGRITY;
		task->data->hash = was.data;
	}
	hd_arena_finish(&arena);
	return proved(err, &why, diag);
}
