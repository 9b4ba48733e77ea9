#include <assert.h>
#include <string.h>

#include "base/half.h"
#include "graph/layout.h"
#include "graph/safetensors.h"
#include "checkpoint/ckpt_int.h"

/* Files are read, not mapped: a disk that fails under a mapping kills the process, a
 * read that fails is an error that names the file. */

enum { ELEM_BYTES = 8, SEGMENT_BYTES = HD_SEGMENT_ELEMS * ELEM_BYTES };

/* One file of the folder, hashed on its way. */
struct ckpt_source {
	struct hd_file file;
	struct hd_sha256_stream hash;
	uint64_t len_bytes, got;          /* as the manifest says; read so far */
	enum hd_err err;                  /* of the disk, or a file that is shorter: nothing follows it */
	char path[HD_PATH_CAP];
};

/* A tensor of a file, and what its numbers hash to. */
struct ckpt_part { struct hd_st_tensor tensor; struct hd_state_entry to; struct hd_hash digest; };
struct parts { struct ckpt_part *part; uint32_t n; };

struct stream {
	struct hd_fs *fs;
	const char *folder;
	const struct hd_ckpt_rooms *rooms;
	struct hd_state *table;
	struct hd_arena *arena;           /* until the end of the reading */
	uint8_t *read;                    /* [SEGMENT_BYTES] as the file has it */
	float *wide;                      /* [HD_SEGMENT_ELEMS] of BF16: as memory has it */
	struct parts parts[HD_CKPT_NFILES];
	struct hd_diag *diag;
};

static enum hd_err no_memory(const struct stream *s, const char *path, uint64_t len)
{
	return hd_fail(s->diag, HD_E_NOMEM, "no memory for %llu bytes of %s", (unsigned long long)len, path);
}

/* ---- the bytes of a file, in order ---- */

static enum hd_err source_open(struct ckpt_source *f, const struct stream *s, enum hd_ckpt_file which,
	const struct hd_ckpt_sum *sum)
{
	struct hd_stat stat;

	*f = (struct ckpt_source){ .len_bytes = sum->len_bytes };
	/* the size first: a manifest of another checkpoint must not make us ask for its memory */
	hd_ckpt_join(f->path, sizeof f->path, s->folder, hd_ckpt_files[which].name);
	enum hd_err err = hd_fs_stat(s->fs, f->path, &stat, s->diag);
	if (!err && (uint64_t)stat.size_bytes != sum->len_bytes)
		err = hd_fail(s->diag, HD_E_INTEGRITY, "%s: %lld bytes, its manifest says %llu", f->path,
			(long long)stat.size_bytes, (unsigned long long)sum->len_bytes);
	err = err ? err : hd_file_open_beneath(s->fs, s->folder, hd_ckpt_files[which].name, HD_OPEN_READ,
		&f->file, s->diag);
	err = err ? err : hd_sha256_begin(&f->hash, s->diag);
	return err == HD_E_NOTFOUND ? HD_E_INTEGRITY : err;
}

static enum hd_err take(struct ckpt_source *f, const struct stream *s, void *bytes, uint64_t len)
{
	size_t got = 0;

	assert(!f->err && len <= f->len_bytes - f->got);
	f->err = hd_file_read(&f->file, bytes, (size_t)len, &got, s->diag);
	f->got += got;
	if (!f->err && got < len)
		f->err = hd_fail(s->diag, HD_E_INTEGRITY, "%s: only %llu bytes, its manifest says %llu",
			f->path, (unsigned long long)f->got, (unsigned long long)f->len_bytes);
	if (!f->err)
		f->err = hd_sha256_add(&f->hash, bytes, (size_t)len, s->diag);
	return f->err;
}

/* What the reader of the content left over; then there is no byte more, and the sum is right. */
static enum hd_err source_end(struct ckpt_source *f, const struct stream *s, const struct hd_sha256 *want)
{
	struct hd_sha256 found;
	uint8_t more;
	size_t beyond = 0;

	while (f->got < f->len_bytes) {
		uint64_t left = f->len_bytes - f->got;
		enum hd_err err = take(f, s, s->read, left < SEGMENT_BYTES ? left : SEGMENT_BYTES);
		if (err)
			return err;
	}
	enum hd_err err = hd_file_read(&f->file, &more, 1, &beyond, s->diag);
	if (!err && beyond)
		err = hd_fail(s->diag, HD_E_INTEGRITY, "%s: more than %llu bytes, its manifest says %llu",
			f->path, (unsigned long long)f->len_bytes, (unsigned long long)f->len_bytes);
	err = err ? err : hd_sha256_end(&f->hash, &found, s->diag);
	if (!err && !hd_sha256_same(&found, want))
		err = hd_fail(s->diag, HD_E_INTEGRITY,
			"%s: its SHA-256 is not that of the manifest: the file was changed after it was "
			"written", f->path);
	return err;
}

static enum hd_err source_close(struct ckpt_source *f, struct hd_diag *diag)
{
	hd_sha256_finish(&f->hash);
	return hd_file_close(&f->file, diag);
}

/* ---- tensors ---- */

static enum hd_err add_tensor(const struct stream *s, const char *path, enum hd_ckpt_file which,
	struct ckpt_part *part)
{
	const struct hd_st_tensor *t = &part->tensor;
	const bool bf16 = t->dtype == HD_ST_BF16;
	struct hd_state_entry e = { .name = t->name, .dtype = bf16 ? HD_F32 :
		(uint8_t)hd_st_dtype_ours(t->dtype), .rank = (uint8_t)t->rank, .key = HD_KEY_CHUNK,
		.group = hd_ckpt_files[which].group, .bf16 = bf16,
		.len_bytes = t->len_bytes * (bf16 ? 2 : 1) };

	if (!e.dtype || t->rank > HD_MAX_DIMS || !*t->name)
		return hd_fail(s->diag, HD_E_INTEGRITY,
			"%s: tensor '%s' has no name, more than %d extents, or a type not computed with",
			path, t->name, HD_MAX_DIMS);
	if (hd_state_find(s->table, t->name))
		return hd_fail(s->diag, HD_E_INTEGRITY,
			"%s: tensor '%s' stands in another file of the checkpoint too", path, t->name);
	for (uint32_t k = 0; k < t->rank; k++)
		e.dim[k] = (int64_t)t->dim[k];
	enum hd_err err = s->rooms ? s->rooms->of(s->rooms->user, &e, s->diag) : HD_OK;
	part->to = e;
	return err ? err : hd_state_add(s->table, &e, s->diag);
}

static void widen(const uint8_t *from, float *to, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint16_t half;
		memcpy(&half, from + i * sizeof half, sizeof half);
		to[i] = hd_f32_of_bf16(half);
	}
}

/* Segment by segment, as its digest is made (graph/state.h). */
static enum hd_err read_tensor(struct stream *s, struct ckpt_source *f, struct ckpt_part *part)
{
	const struct hd_st_tensor *t = &part->tensor;
	const bool bf16 = t->dtype == HD_ST_BF16;
	const uint64_t there = bf16 ? sizeof(uint16_t) : hd_dtype_bytes(hd_st_dtype_ours(t->dtype));
	const uint64_t here = bf16 ? sizeof(float) : there, n = t->len_bytes / there;
	struct hd_hasher tensor;

	hd_hasher_init(&tensor);
	for (uint64_t first = 0; first < n; first += HD_SEGMENT_ELEMS) {
		uint64_t elems = n - first < HD_SEGMENT_ELEMS ? n - first : HD_SEGMENT_ELEMS;
		enum hd_err err = take(f, s, s->read, elems * there);
		if (err)
			return err;
		if (bf16)
			widen(s->read, s->wide, elems);
		const void *made = bf16 ? (const void *)s->wide : s->read;
		struct hd_hash segment = hd_hash(made, elems * here);
		hd_hasher_add(&tensor, segment.byte, sizeof segment.byte);
		if (hd_state_lies(&part->to))
			hd_state_put(&part->to, first, elems, made);
	}
	part->digest = hd_hasher_end(&tensor);
	return HD_OK;
}

static enum hd_err read_head(struct stream *s, struct ckpt_source *f, struct hd_safetensors *out)
{
	uint8_t prefix[HD_ST_PREFIX_BYTES], *head;
	uint64_t bytes = 0;

	if (f->len_bytes >= sizeof prefix && take(f, s, prefix, sizeof prefix))
		return f->err;
	enum hd_err err = hd_safetensors_head_bytes(f->path, prefix, f->len_bytes, &bytes, s->diag);
	if (err)
		return err;
	head = hd_arena_take(s->arena, bytes, 1);
	if (!head)
		return no_memory(s, f->path, bytes);
	memcpy(head, prefix, sizeof prefix);
	err = take(f, s, head + sizeof prefix, bytes - sizeof prefix);
	return err ? err : hd_safetensors_head(out, s->arena, f->path, head, bytes, f->len_bytes, s->diag);
}

static enum hd_err read_tensors(struct stream *s, struct ckpt_source *f, enum hd_ckpt_file which)
{
	struct parts *parts = &s->parts[which];
	struct hd_safetensors file;
	enum hd_err err = read_head(s, f, &file);

	if (err)
		return err;
	parts->part = hd_arena_take(s->arena, file.ntensors + 1, sizeof *parts->part);
	if (!parts->part)
		return no_memory(s, f->path, file.ntensors * sizeof *parts->part);
	for (; !err && parts->n < file.ntensors; parts->n++) {
		parts->part[parts->n] = (struct ckpt_part){ .tensor = file.tensor[parts->n] };
		err = add_tensor(s, f->path, which, &parts->part[parts->n]);
	}
	for (uint32_t i = 0; !err && i < parts->n; i++)
		err = read_tensor(s, f, &parts->part[i]);
	return err;
}

static enum hd_err read_counters(const struct stream *s, struct ckpt_source *f)
{
	uint8_t *bytes = hd_arena_take(s->arena, f->len_bytes + 1, 1);

	if (!bytes)
		return no_memory(s, f->path, f->len_bytes);
	bytes[f->len_bytes] = 0;
	enum hd_err err = take(f, s, bytes, f->len_bytes);
	return err ? err : hd_ckpt_state_parse(s->table, f->path, (const char *)bytes, f->len_bytes, s->diag);
}

/* Damage of a file is reported as that, and not as what it looks like. */
static enum hd_err read_file(struct stream *s, enum hd_ckpt_file which, const struct hd_ckpt_sum *sum)
{
	struct hd_diag *diag = s->diag, said = { "" };
	struct ckpt_source f;
	enum hd_err err = source_open(&f, s, which, sum);

	if (!err) {
		s->diag = &said;
		enum hd_err content = hd_ckpt_files[which].group == HD_STATE_RUN ? read_counters(s, &f) :
			read_tensors(s, &f, which);
		s->diag = diag;
		err = f.err ? f.err : source_end(&f, s, &sum->sha256);
		if ((f.err || !err) && content)
			err = hd_fail(diag, content, "%s", said.text);
	}
	enum hd_err closed = source_close(&f, err ? NULL : diag);
	return err ? err : closed;
}

/* ---- the whole ---- */

static enum hd_err check_digest(const struct stream *s, const struct hd_ckpt_info *info)
{
	char want[HD_HASH_HEX], found[HD_HASH_HEX];
	struct hd_hash *tensor = hd_arena_take(s->arena, s->table->nentries + 1, sizeof *tensor);

	if (!tensor)
		return no_memory(s, s->folder, s->table->nentries * sizeof *tensor);
	for (uint32_t i = 0; i < s->table->nentries; i++)
		if (s->table->entry[i].group == HD_STATE_RUN)
			tensor[i] = hd_state_tensor_digest(&s->table->entry[i]);
	for (int i = 0; i < HD_CKPT_NFILES; i++)
		for (uint32_t k = 0; k < s->parts[i].n; k++) {
			const struct ckpt_part *part = &s->parts[i].part[k];
			tensor[hd_state_find(s->table, part->tensor.name) - s->table->entry] = part->digest;
		}
	struct hd_hash digest = hd_state_digest_of(s->table, tensor);
	if (hd_hash_same(digest, info->digest))
		return HD_OK;
	hd_hash_hex(digest, found);
	hd_hash_hex(info->digest, want);
	return hd_fail(s->diag, HD_E_INTEGRITY,
		"%s: the digest of what it holds is %s, its manifest says %s", s->folder, found, want);
}

enum hd_err hd_ckpt_stream(struct hd_fs *fs, const char *folder, const struct hd_ckpt_rooms *rooms,
	struct hd_state *table, struct hd_ckpt_info *info, struct hd_diag *diag)
{
	struct hd_arena arena;
	struct hd_manifest manifest;
	struct stream s = { .fs = fs, .folder = folder, .rooms = rooms, .table = table, .arena = &arena,
		.diag = diag };

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_ckpt_manifest_read(fs, folder, &arena, &manifest, diag);
	if (!err) {
		s.read = hd_arena_take(&arena, SEGMENT_BYTES, 1);
		s.wide = hd_arena_take(&arena, HD_SEGMENT_ELEMS, sizeof *s.wide);
		err = s.read && s.wide ? HD_OK : no_memory(&s, folder, SEGMENT_BYTES);
	}
	for (int i = 0; i < HD_CKPT_NFILES && !err; i++)
		err = read_file(&s, (enum hd_ckpt_file)i, &manifest.file[i]);
	err = err ? err : check_digest(&s, &manifest.info);
	if (!err)
		*info = manifest.info;
	hd_arena_finish(&arena);
	return err;
}
