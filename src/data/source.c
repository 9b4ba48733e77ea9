#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "sys/memory.h"
#include "data/blob.h"
#include "data/cache.h"
#include "data/reader_int.h"

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), len_end = strlen(end);
	return len >= len_end && strcmp(text + len - len_end, end) == 0;
}

static enum hd_err room_for(struct hd_reader *reader, uint32_t n, struct hd_diag *diag)
{
	if (n > HD_SOURCES_CAP)
		return hd_fail(diag, HD_E_INPUT,
			"more than %d files for one data set: join them, or narrow data.path",
			HD_SOURCES_CAP);
	if (n <= reader->source_cap)
		return HD_OK;
	uint32_t cap = reader->source_cap ? reader->source_cap * 2 : 8;
	struct hd_source *grown = hd_arena_take(&reader->arena, cap, sizeof *grown);
	if (!grown)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the list of %u data files", n);
	if (reader->nsources)
		memcpy(grown, reader->source, reader->nsources * sizeof *grown);
	reader->source = grown;
	reader->source_cap = cap;
	return HD_OK;
}

/* What is known of the file is older than its bytes: one that changes meanwhile is found to be another. */
static enum hd_err map_file(struct hd_fs *fs, const char *path, struct hd_map *map, struct hd_stat *stat,
	struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	enum hd_err err = hd_fs_stat(fs, path, stat, diag);

	if (err != HD_OK)
		return err;
	if (stat->kind != HD_FILE_REGULAR)
		return hd_fail(diag, HD_E_INPUT, "%s is %s, not a file: name a file%s", path,
			stat->kind == HD_FILE_FOLDER ? "a folder" :
			"a device or a pipe", stat->kind == HD_FILE_FOLDER ?
			", or several as in folder/*.txt" : "");
	err = hd_file_open(fs, path, HD_OPEN_READ, &file, diag);
	if (err != HD_OK)
		return err;
	err = hd_file_map(&file, map, diag);
	enum hd_err closed = hd_file_close(&file, diag);
	if (err == HD_OK && closed != HD_OK)
		hd_file_unmap(fs, map);
	return err != HD_OK ? err : closed;
}

/* All of an object, into the arena. */
static enum hd_err fetch(struct hd_reader *reader, struct hd_source *source, struct hd_blob *blob,
	struct hd_diag *diag)
{
	struct hd_memory_info memory;

	hd_memory_look(&memory);
	if (blob->size_bytes > memory.free_bytes / 2)
		return hd_fail(diag, HD_E_NOMEM, "%s is read whole into memory, and has %llu MiB where %llu "
			"MiB are free, of which it may have half: set data.cache to a folder, whose copy is "
			"mapped, or make shards of it (webdataset, records), which are read by ranges",
			source->name, (unsigned long long)(blob->size_bytes >> 20),
			(unsigned long long)(memory.free_bytes >> 20));
	uint8_t *bytes = blob->size_bytes <= HD_UNPACKED_CAP ? hd_arena_take(&reader->arena,
		blob->size_bytes + 1, 1) : NULL;
	const struct hd_range range = { 0, blob->size_bytes, bytes };
	const struct hd_ranges_knobs knobs = hd_blob_knobs(blob);

	if (!bytes)
		return hd_fail(diag, HD_E_NOMEM,
			"no memory for the %llu bytes of %s: set data.cache to a folder",
			(unsigned long long)blob->size_bytes, source->name);
	source->bytes = bytes;
	source->len = blob->size_bytes;
	reader->set.table_bytes += blob->size_bytes;
	source->stat = (struct hd_stat){ .kind = HD_FILE_REGULAR, .size_bytes = (int64_t)source->len };
	return hd_blob_read(blob, &range, 1, &knobs, diag);
}

static enum hd_err load_file(struct hd_reader *reader, struct hd_source *source, const char *path,
	struct hd_diag *diag)
{
	enum hd_err err = map_file(reader->fs, path, &source->map, &source->stat, diag);

	source->bytes = source->map.bytes;
	source->len = source->map.len;
	return err;
}

static enum hd_err load(struct hd_reader *reader, struct hd_source *source, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_blob *blob;
	bool there;

	if (!hd_blob_is_url(source->name))
		return load_file(reader, source, source->name, diag);
	enum hd_err err = hd_blob_open(&blob, source->name, reader->rules, diag);
	if (err != HD_OK)
		return err;
	err = hd_cache_get(reader->rules, blob, reader->fs, path, &there, &reader->set.warning, diag);
	if (err == HD_OK && there) {
		struct hd_diag gone = { "" };
		err = load_file(reader, source, path, &gone);
		there = err != HD_E_NOTFOUND;         /* else another process made room meanwhile */
		err = !there ? HD_OK : err ? hd_fail(diag, err, "%s", gone.text) : HD_OK;
	}
	if (err == HD_OK && !there)
		err = fetch(reader, source, blob, diag);
	hd_blob_close(blob);
	return err;
}

enum hd_err hd_source_add(struct hd_reader *reader, const char *path, struct hd_diag *diag)
{
	enum hd_err err = room_for(reader, reader->nsources + 1, diag);
	if (err != HD_OK)
		return err;
	struct hd_source *source = &reader->source[reader->nsources];
	*source = (struct hd_source){ .name = hd_arena_text(&reader->arena, path, strlen(path)) };
	if (!source->name)
		return hd_fail(diag, HD_E_NOMEM, "no memory to open %s", path);
	err = load(reader, source, diag);
	if (err != HD_OK)
		return err;
	reader->nsources++;                        /* from here on destroy unmaps it */
	if (source->len && ends_in(path, ".gz")) {
		uint8_t *unpacked;
		err = hd_gzip_unpack(&reader->arena, source->name, source->bytes, source->len,
			HD_UNPACKED_CAP, &unpacked, &source->len, diag);
		if (err != HD_OK)
			return err;
		source->bytes = unpacked;
		hd_file_unmap(reader->fs, &source->map);
	}
	source->hashed = source->len;
	return source->len ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s is empty: there is nothing to train on",
		path);
}

enum hd_err hd_path_join(struct hd_reader *reader, const char *folder, const char *name, char **path,
	struct hd_diag *diag)
{
	size_t len_folder = strlen(folder), len_name = strlen(name);
	char *at;

	while (len_folder > 1 && folder[len_folder - 1] == '/')
		len_folder--;
	if (len_folder + len_name + 2 > HD_PATH_CAP)
		return hd_fail(diag, HD_E_INPUT, "the path %.100s.../%s is longer than %d bytes", folder,
			name, HD_PATH_CAP - 1);
	at = hd_arena_take(&reader->arena, len_folder + len_name + 2, 1);
	if (!at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the path %s/%s", folder, name);
	memcpy(at, folder, len_folder);
	at[len_folder] = '/';
	memcpy(at + len_folder + 1, name, len_name);
	*path = at;
	return HD_OK;
}

/* A '*' is first taken as empty; at a mismatch the last one takes one byte more. */
bool hd_glob_match(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	if (name[0] == '.' && pattern[0] != '.')
		return false;
	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			from = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == 0;
}

enum hd_err hd_source_add_glob(struct hd_reader *reader, const char *pattern, struct hd_diag *diag)
{
	const char *slash = strrchr(pattern, '/'), *last = slash ? slash + 1 : pattern;
	const char *folder = ".";
	char **names, *path;
	size_t nnames;
	enum hd_err err;

	if (!pattern[strcspn(pattern, "*?")] || hd_blob_is_url(pattern))
		return hd_source_add(reader, pattern, diag);
	if (slash) {
		folder = hd_arena_text(&reader->arena, pattern,
			slash == pattern ? 1 : (size_t)(slash - pattern));
		if (!folder)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the path %s", pattern);
	}
	if (folder[strcspn(folder, "*?")])
		return hd_fail(diag, HD_E_INVAL,
			"data.path %s: '*' and '?' may stand in the last part of a path only", pattern);
	err = hd_fs_list(reader->fs, folder, &reader->arena, &names, &nnames, diag);
	if (err != HD_OK)
		return err;
	uint32_t before = reader->nsources;
	for (size_t i = 0; i < nnames; i++) {
		if (!hd_glob_match(last, names[i]))
			continue;
		err = slash ? hd_path_join(reader, folder, names[i], &path, diag) : (path = names[i], HD_OK);
		if (err == HD_OK)
			err = hd_source_add(reader, path, diag);
		if (err != HD_OK)
			return err;
	}
	if (reader->nsources == before)
		return hd_fail(diag, HD_E_NOTFOUND, "no file matches data.path %s (%zu names in the folder)",
			pattern, nnames);
	return HD_OK;
}

enum hd_err hd_source_find(struct hd_reader *reader, const char *folder, const char *name, bool *found,
	struct hd_diag *diag)
{
	static const char *const ends[] = { "", ".gz" };
	char file[64], *path;
	struct hd_stat stat;

	*found = false;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		struct hd_diag ignored = { "" };
		(void)snprintf(file, sizeof file, "%s%s", name, ends[i]);
		enum hd_err err = hd_path_join(reader, folder, file, &path, diag);
		if (err != HD_OK)
			return err;
		err = hd_blob_is_url(path) ? hd_source_add(reader, path, &ignored) :
			hd_fs_stat(reader->fs, path, &stat, &ignored);
		if (err == HD_E_NOTFOUND)
			continue;
		if (hd_blob_is_url(path)) {
			*found = err == HD_OK;
			return err == HD_OK ? HD_OK : hd_fail(diag, err, "%s", ignored.text);
		}
		*found = true;
		return hd_source_add(reader, path, diag);
	}
	return HD_OK;
}

struct hd_hash hd_sources_hash(const struct hd_reader *reader)
{
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < reader->nsources; i++)
		hd_hasher_add(&hasher, reader->source[i].bytes + reader->source[i].head,
			reader->source[i].hashed);
	return hd_hasher_end(&hasher);
}
