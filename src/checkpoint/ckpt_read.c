#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "graph/safetensors.h"
#include "checkpoint/ckpt_int.h"

/* Files are read, not mapped: a disk that fails under a mapping kills the process, a
 * read that fails is an error that names the file. */

/* Exactly `len` bytes of a file inside `folder`; a 0 byte is added. */
static enum hd_err read_exactly(struct hd_fs *fs, const char *folder, const char *name, uint64_t len,
	struct hd_arena *arena, uint8_t **out,
	struct hd_diag *diag)
{
	struct hd_file file = { 0 };
	uint8_t *bytes, more;
	size_t got = 0, beyond = 0;
	enum hd_err err = hd_file_open_beneath(fs, folder, name, HD_OPEN_READ, &file, diag);

	if (err)
		return err == HD_E_NOTFOUND ? HD_E_INTEGRITY : err;
	bytes = hd_arena_take(arena, len + 1, 1);
	if (!bytes)
		err = hd_fail(diag, HD_E_NOMEM, "no memory for the %llu bytes of %s/%s",
			(unsigned long long)len, folder, name);
	if (!err)
		err = hd_file_read(&file, bytes, len, &got, diag);
	if (!err && got == len)
		err = hd_file_read(&file, &more, 1, &beyond, diag);
	if (!err && (got != len || beyond))
		err = hd_fail(diag, HD_E_INTEGRITY, "%s/%s: %s %llu bytes, its manifest says %llu", folder,
			name, beyond ? "more than" : "only",
			(unsigned long long)got, (unsigned long long)len);
	enum hd_err closed = hd_file_close(&file, diag);
	*out = bytes;                     /* of no use after an error */
	return err ? err : closed;
}

static enum hd_err read_file(struct hd_fs *fs, const char *folder, int i, const struct hd_ckpt_sum *sum,
	struct hd_arena *arena, uint8_t **bytes,
	struct hd_diag *diag)
{
	struct hd_sha256 found;
	struct hd_stat stat;
	char path[HD_PATH_CAP];
	enum hd_err err;

	/* the size first: a manifest of another checkpoint must not make us ask for its memory */
	hd_ckpt_join(path, sizeof path, folder, hd_ckpt_files[i].name);
	err = hd_fs_stat(fs, path, &stat, diag);
	if (err)
		return err == HD_E_NOTFOUND ? HD_E_INTEGRITY : err;
	if ((uint64_t)stat.size_bytes != sum->len_bytes)
		return hd_fail(diag, HD_E_INTEGRITY, "%s: %lld bytes, its manifest says %llu", path,
			(long long)stat.size_bytes,
			(unsigned long long)sum->len_bytes);
	err = read_exactly(fs, folder, hd_ckpt_files[i].name, sum->len_bytes, arena, bytes, diag);
	if (!err)
		err = hd_sha256(*bytes, sum->len_bytes, &found, diag);
	if (!err && !hd_sha256_same(&found, &sum->sha256))
		err = hd_fail(diag, HD_E_INTEGRITY,
			"%s: its SHA-256 is not that of the manifest: the file was changed after it was "
			"written", path);
	return err;
}

static void widen(const struct hd_st_tensor *t, float *out)
{
	for (uint64_t i = 0; i < t->len_bytes / sizeof(uint16_t); i++) {
		uint16_t half;
		memcpy(&half, (const char *)t->at + i * sizeof half, sizeof half);
		out[i] = hd_f32_of_bf16(half);
	}
}

/* Bytes of a tensor may stand at any address; ours must be aligned to be computed with. */
static enum hd_err add_tensor(struct hd_state *state, const struct hd_st_tensor *t, uint8_t group,
	const char *path, struct hd_diag *diag)
{
	bool bf16 = t->dtype == HD_ST_BF16;
	struct hd_state_entry e = { .name = t->name, .dtype = bf16 ? HD_F32 :
		(uint8_t)hd_st_dtype_ours(t->dtype), .rank = (uint8_t)t->rank,
		.key = HD_KEY_CHUNK, .group = group, .bf16 = bf16,
		.len_bytes = t->len_bytes * (bf16 ? 2 : 1) };

	if (!e.dtype || t->rank > HD_MAX_DIMS || !*t->name)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' has no name, more than %d extents, or a type not computed with",
			path, t->name,
			HD_MAX_DIMS);
	if (hd_state_find(state, t->name))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' stands in another file of the checkpoint too", path, t->name);
	for (uint32_t k = 0; k < t->rank; k++)
		e.dim[k] = (int64_t)t->dim[k];
	e.at = hd_arena_take(state->arena, e.len_bytes + 1, 1);
	if (!e.at)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory for tensor '%s' (%llu bytes)", path, t->name,
			(unsigned long long)t->len_bytes);
	if (bf16)
		widen(t, e.at);
	else if (t->len_bytes)
		memcpy(e.at, t->at, t->len_bytes);
	return hd_state_add(state, &e, diag);
}

static enum hd_err add_file(struct hd_state *state, const char *folder, int i, const uint8_t *bytes,
	uint64_t len, struct hd_arena *scratch,
	struct hd_diag *diag)
{
	struct hd_safetensors file;
	char path[HD_PATH_CAP];
	enum hd_err err;

	hd_ckpt_join(path, sizeof path, folder, hd_ckpt_files[i].name);
	if (hd_ckpt_files[i].group == HD_STATE_RUN)
		return hd_ckpt_state_parse(state, path, (const char *)bytes, len, diag);
	err = hd_safetensors_read(&file, scratch, path, bytes, len, diag);
	for (uint32_t k = 0; !err && k < file.ntensors; k++)
		err = add_tensor(state, &file.tensor[k], hd_ckpt_files[i].group, path, diag);
	return err;
}

enum hd_err hd_ckpt_manifest_read(struct hd_fs *fs, const char *folder, struct hd_arena *arena,
	struct hd_manifest *manifest, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	uint8_t *bytes;
	uint64_t step;
	size_t len;
	bool old;

	if (strlen(folder) >= sizeof manifest->info.folder)
		return hd_fail(diag, HD_E_INVAL, "the path %.100s... is longer than %zu bytes", folder,
			sizeof manifest->info.folder - 1);
	hd_ckpt_join(path, sizeof path, folder, HD_CKPT_MANIFEST);
	enum hd_err err = hd_file_read_all(fs, path, arena, HD_CKPT_MANIFEST_BYTES, &bytes, &len, diag);
	if (!err)
		err = hd_manifest_parse(manifest, arena, path, (const char *)bytes, len, diag);
	if (err)
		return err;
	snprintf(manifest->info.folder, sizeof manifest->info.folder, "%s", folder);
	const char *slash = strrchr(folder, '/');
	if (hd_ckpt_folder_parse(slash ? slash + 1 : folder, &step, &old) && step != manifest->info.step)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: its manifest is of step %llu: the folder was renamed", folder,
			(unsigned long long)manifest->info.step);
	return HD_OK;
}

enum hd_err hd_ckpt_load(struct hd_fs *fs, const char *folder, struct hd_arena *arena, struct hd_state *state,
	struct hd_ckpt_info *info,
	struct hd_diag *diag)
{
	struct hd_manifest manifest;
	struct hd_arena scratch;
	char want[HD_HASH_HEX], found[HD_HASH_HEX];
	enum hd_err err;

	hd_arena_init(&scratch, 0);
	hd_state_init(state, arena);
	err = hd_ckpt_manifest_read(fs, folder, &scratch, &manifest, diag);
	for (int i = 0; i < HD_CKPT_NFILES && !err; i++) {
		uint8_t *bytes = NULL;
		struct hd_arena file;
		hd_arena_init(&file, 0);     /* of one file: at most one of them and its copy are in memory */
		err = read_file(fs, folder, i, &manifest.file[i], &file, &bytes, diag);
		if (!err)
			err = add_file(state, folder, i, bytes, manifest.file[i].len_bytes, &file, diag);
		hd_arena_finish(&file);
	}
	if (!err) {
		struct hd_hash digest = hd_state_digest(state);
		hd_hash_hex(digest, found);
		hd_hash_hex(manifest.info.digest, want);
		if (!hd_hash_same(digest, manifest.info.digest))
			err = hd_fail(diag, HD_E_INTEGRITY,
				"%s: the digest of what it holds is %s, its manifest says %s", folder, found,
				want);
	}
	if (!err)
		*info = manifest.info;
	hd_arena_finish(&scratch);
	return err;
}

enum hd_err hd_ckpt_verify(struct hd_fs *fs, const char *folder, struct hd_ckpt_info *info,
	struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_state state;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_ckpt_load(fs, folder, &arena, &state, info, diag);
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err check_entry(const char *folder, const struct hd_state_entry *from,
	const struct hd_state *to, struct hd_diag *diag)
{
	const struct hd_state_entry *e = hd_state_find(to, from->name);

	if (!e)
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' is not one of this model's: another job's checkpoint?", folder,
			from->name);
	if (e->dtype != from->dtype || e->rank != from->rank || e->group != from->group ||
		memcmp(e->dim, from->dim, e->rank * sizeof *e->dim))
		return hd_fail(diag, HD_E_INTEGRITY,
			"%s: tensor '%s' has another type or shape than this model's: another job's "
			"checkpoint?", folder,
			from->name);
	return HD_OK;
}

enum hd_err hd_ckpt_read(struct hd_fs *fs, const char *folder, struct hd_state *state,
	struct hd_ckpt_info *info, struct hd_diag *diag)
{
	struct hd_ckpt_info read;
	struct hd_arena arena;
	struct hd_state from;
	enum hd_err err;

	hd_arena_init(&arena, 0);
	err = hd_ckpt_load(fs, folder, &arena, &from, &read, diag);
	for (uint32_t i = 0; !err && i < from.nentries; i++)
		err = check_entry(folder, &from.entry[i], state, diag);
	for (uint32_t i = 0; !err && i < state->nentries; i++)
		if (!hd_state_find(&from, state->entry[i].name))
			err = hd_fail(diag, HD_E_INTEGRITY,
				"%s: tensor '%s' is missing: another job's checkpoint?", folder,
				state->entry[i].name);
	if (err)
		goto out;
	for (uint32_t i = 0; i < from.nentries; i++)
		if (from.entry[i].len_bytes)
			memcpy(hd_state_find(state, from.entry[i].name)->at, from.entry[i].at,
				from.entry[i].len_bytes);
	if (!hd_hash_same(hd_state_digest(state), read.digest))
		err = hd_fail(diag, HD_E_INTEGRITY,
			"%s: what was loaded has another digest than its manifest: memory fails?", folder);
	else
		*info = read;
out:
	hd_arena_finish(&arena);
	return err;
}
