#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "checkpoint/ckpt_int.h"

#define FORMAT "heddle-checkpoint"
#define BEST   "best"            /* of one that was kept for its evaluation */
#define SEAL   ",\"sha256\":\""

enum { SEAL_LEN = sizeof SEAL - 1 + HD_SHA256_HEX - 1 + sizeof "\"}\n" - 1,
       NMEMBERS = 15, NFILE_MEMBERS = 3, NDATA_MEMBERS = 2, NBEST_MEMBERS = 2 };

const struct hd_ckpt_file_row hd_ckpt_files[HD_CKPT_NFILES] = {
#define X(id, name, group) [HD_CKPT_##id] = { name, group },
	HD_CKPT_FILES(X)
#undef X
};

static const struct { const char *key, *value, *what; } orders[HD_CKPT_NORDERS] = {
#define X(id, key, value, what) { key, value, what },
	HD_CKPT_ORDERS(X)
#undef X
};

const char *hd_ckpt_order_what(enum hd_ckpt_order order) { return orders[order].what; }

static void put_hash(struct hd_json_writer *w, const char *key, struct hd_hash hash)
{
	char hex[HD_HASH_HEX];

	hd_hash_hex(hash, hex);
	hd_json_put_text(w, key, hex);
}

static void put_files(struct hd_json_writer *w, const struct hd_manifest *m)
{
	char hex[HD_SHA256_HEX];

	hd_json_open_array(w, "files");
	for (int i = 0; i < HD_CKPT_NFILES; i++) {
		hd_sha256_hex(&m->file[i].sha256, hex);
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "name", hd_ckpt_files[i].name);
		hd_json_put_i64(w, "bytes", (int64_t)m->file[i].len_bytes);
		hd_json_put_text(w, "sha256", hex);
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* `"sha256":"..."}` and a line feed: what must follow the first `len` bytes. */
static enum hd_err make_seal(const char *bytes, size_t len, char seal[SEAL_LEN + 1], struct hd_diag *diag)
{
	char hex[HD_SHA256_HEX];
	struct hd_sha256 sum;
	enum hd_err err = hd_sha256(bytes, len, &sum, diag);

	if (err)
		return err;
	hd_sha256_hex(&sum, hex);
	snprintf(seal, SEAL_LEN + 1, SEAL "%s\"}\n", hex);
	return HD_OK;
}

enum hd_err hd_manifest_print(const struct hd_manifest *m, struct hd_text *text, struct hd_diag *diag)
{
	const struct hd_ckpt_info *info = &m->info;
	struct hd_json_writer w;
	char seal[SEAL_LEN + 1];
	size_t from = text->len;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "format", FORMAT);
	hd_json_put_i64(&w, "version", HD_CKPT_VERSION);
	hd_json_put_text(&w, "program", info->program);
	hd_json_put_text(&w, "model", info->model);
	put_hash(&w, "job_hash", info->job_hash);
	hd_json_put_u64(&w, "step", info->step);
	hd_json_put_u64(&w, "samples", info->samples);
	hd_json_open_object(&w, "data");
	hd_json_put_u64(&w, "count", info->data_count);
	put_hash(&w, "hash", info->data_hash);
	hd_json_close(&w);
	hd_json_put_text(&w, "kernels", info->kernels);
	put_hash(&w, "kernel_fingerprint", info->fingerprint);
	hd_json_put_i64(&w, "lineage", info->lineage);
	for (int i = 0; i < HD_CKPT_NORDERS; i++)
		if (info->order[i])
			hd_json_put_text(&w, orders[i].key, orders[i].value);
	if (*info->best_by) {
		hd_json_open_object(&w, BEST);
		hd_json_put_text(&w, "by", info->best_by);
		hd_json_put_f64(&w, "value", info->best);
		hd_json_close(&w);
	}
	put_hash(&w, "state_digest", info->digest);
	hd_json_put_u64(&w, "bytes", info->len_bytes);
	put_files(&w, m);
	enum hd_err err = make_seal(text->at + from, text->len - from, seal, diag);
	if (err)
		return err;
	hd_text_add(text, seal);
	return text->full ? hd_fail(diag, HD_E_NOMEM, "no memory for the manifest of a checkpoint") : HD_OK;
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

static enum hd_err get_text(const struct hd_json *object, const char *key, char *out, size_t cap,
	struct hd_diag *diag)
{
	const char *text;
	char path[200];
	enum hd_err err = hd_json_get_text(object, key, &text, diag);

	if (err)
		return err;
	if (strlen(text) >= cap)
		return hd_fail(diag, HD_E_INPUT, "%s.%s is longer than %zu bytes",
			hd_json_path(object, path, sizeof path), key, cap - 1);
	memcpy(out, text, strlen(text) + 1);
	return HD_OK;
}

static enum hd_err members(const struct hd_json *object, size_t n, struct hd_diag *diag)
{
	char path[200];

	if (hd_json_count(object) == n)
		return HD_OK;
	return hd_fail(diag, HD_E_INPUT, "%s has %zu members instead of %zu",
		hd_json_path(object, path, sizeof path), hd_json_count(object), n);
}

static enum hd_err parse_file(const struct hd_json *item, int i, struct hd_ckpt_sum *sum,
	struct hd_diag *diag)
{
	const char *name, *hex;
	char path[200];
	enum hd_err err = hd_json_as(item, HD_JSON_OBJECT, diag);

	if (!err)
		err = members(item, NFILE_MEMBERS, diag);
	if (!err)
		err = hd_json_get_text(item, "name", &name, diag);
	if (!err && strcmp(name, hd_ckpt_files[i].name))
		err = hd_fail(diag, HD_E_INPUT, "%s.name is \"%.64s\" instead of \"%s\"",
			hd_json_path(item, path, sizeof path), name, hd_ckpt_files[i].name);
	if (!err)
		err = hd_json_get_u64(item, "bytes", INT64_MAX, &sum->len_bytes, diag);
	if (!err)
		err = hd_json_get_text(item, "sha256", &hex, diag);
	if (!err && !hd_sha256_parse(hex, &sum->sha256))
		err = hd_fail(diag, HD_E_INPUT, "%s.sha256 is not 64 hex digits",
			hd_json_path(item, path, sizeof path));
	return err;
}

static enum hd_err parse_files(const struct hd_json *root, struct hd_manifest *m, struct hd_diag *diag)
{
	const struct hd_json *files;
	uint64_t total = 0;
	enum hd_err err = hd_json_get(root, "files", HD_JSON_ARRAY, &files, diag);

	if (!err)
		err = members(files, HD_CKPT_NFILES, diag);
	for (int i = 0; i < HD_CKPT_NFILES && !err; i++) {
		err = parse_file(hd_json_item(files, (size_t)i), i, &m->file[i], diag);
		total += m->file[i].len_bytes;
	}
	if (!err && total != m->info.len_bytes)
		err = hd_fail(diag, HD_E_INPUT, "the sizes of its files are not the %llu bytes it claims",
			(unsigned long long)m->info.len_bytes);
	return err;
}

/* Those that are there; *n counts them. */
static enum hd_err get_orders(const struct hd_json *root, bool *order, size_t *n, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (int i = 0; i < HD_CKPT_NORDERS && !err; i++) {
		const char *text;
		order[i] = hd_json_find(root, orders[i].key) != NULL;
		*n += order[i];
		err = order[i] ? hd_json_get_text(root, orders[i].key, &text, diag) : HD_OK;
		if (!err && order[i] && strcmp(text, orders[i].value))
			err = hd_fail(diag, HD_E_INPUT, "%s is \"%.64s\", this program knows \"%s\"",
				orders[i].key, text, orders[i].value);
	}
	return err;
}

/* Only one that was kept for it has it; *n counts it. */
static enum hd_err get_best(const struct hd_json *root, struct hd_ckpt_info *info, size_t *n,
	struct hd_diag *diag)
{
	const struct hd_json *best;

	if (!hd_json_find(root, BEST))
		return HD_OK;
	++*n;
	enum hd_err err = hd_json_get(root, BEST, HD_JSON_OBJECT, &best, diag);
	if (!err)
		err = members(best, NBEST_MEMBERS, diag);
	if (!err)
		err = get_text(best, "by", info->best_by, sizeof info->best_by, diag);
	if (!err && !*info->best_by)
		err = hd_fail(diag, HD_E_INPUT, BEST ".by is empty");
	if (!err)
		err = hd_json_get_f64(best, "value", &info->best, diag);
	if (!err && !isfinite(info->best))
		err = hd_fail(diag, HD_E_INPUT, BEST ".value is not a finite number");
	return err;
}

static enum hd_err parse_info(const struct hd_json *root, struct hd_ckpt_info *info, struct hd_diag *diag)
{
	const struct hd_json *data;
	uint64_t lineage = 0;
	size_t nmore = 0;
	enum hd_err err = get_orders(root, info->order, &nmore, diag);

	/* each takes the next only while all went well; the first to fail has spoken */
#define STEP(call) do { if (!err) err = (call); } while (0)
	STEP(get_best(root, info, &nmore, diag));
	STEP(members(root, NMEMBERS + nmore, diag));
	STEP(get_text(root, "program", info->program, sizeof info->program, diag));
	STEP(get_text(root, "model", info->model, sizeof info->model, diag));
	STEP(get_hash(root, "job_hash", &info->job_hash, diag));
	STEP(hd_json_get_u64(root, "step", INT64_MAX, &info->step, diag));
	STEP(hd_json_get_u64(root, "samples", INT64_MAX, &info->samples, diag));
	STEP(hd_json_get(root, "data", HD_JSON_OBJECT, &data, diag));
	STEP(members(data, NDATA_MEMBERS, diag));
	STEP(hd_json_get_u64(data, "count", INT64_MAX, &info->data_count, diag));
	STEP(get_hash(data, "hash", &info->data_hash, diag));
	STEP(get_text(root, "kernels", info->kernels, sizeof info->kernels, diag));
	STEP(get_hash(root, "kernel_fingerprint", &info->fingerprint, diag));
	STEP(hd_json_get_u64(root, "lineage", UINT32_MAX, &lineage, diag));
	STEP(get_hash(root, "state_digest", &info->digest, diag));
	STEP(hd_json_get_u64(root, "bytes", INT64_MAX, &info->len_bytes, diag));
#undef STEP
	info->lineage = (uint32_t)lineage;
	return err;
}

/* Another version may have other members: said first, whatever else differs. */
static enum hd_err check_version(const struct hd_json *root, const char *name, struct hd_diag *diag)
{
	const char *format;
	int64_t version;
	enum hd_err err = hd_json_get_text(root, "format", &format, diag);

	if (!err && strcmp(format, FORMAT))
		err = hd_fail(diag, HD_E_INPUT, "%s: its format is \"%.64s\", not \"" FORMAT "\"", name,
			format);
	if (!err)
		err = hd_json_get_i64(root, "version", 1, INT64_MAX, &version, diag);
	if (!err && version != HD_CKPT_VERSION)
		err = hd_fail(diag, HD_E_INPUT,
			"%s: written in format version %lld, this program reads version %d: use the program "
			"that wrote it",
			name, (long long)version, HD_CKPT_VERSION);
	return err;
}

enum hd_err hd_manifest_parse(struct hd_manifest *out, struct hd_arena *arena, const char *name,
	const char *bytes, size_t len,
	struct hd_diag *diag)
{
	struct hd_manifest m = { 0 };
	const struct hd_json *root;
	char seal[SEAL_LEN + 1];
	enum hd_err err = hd_json_parse(arena, name, bytes, len, &root, diag);

	if (!err)
		err = check_version(root, name, diag);
	if (!err && len <= SEAL_LEN)
		err = hd_fail(diag, HD_E_INTEGRITY, "%s: %zu bytes: cut short", name, len);
	if (!err)
		err = make_seal(bytes, len - SEAL_LEN, seal, diag);
	if (!err && memcmp(bytes + len - SEAL_LEN, seal, SEAL_LEN))
		err = hd_fail(diag, HD_E_INTEGRITY,
			"%s: its SHA-256 does not match its content: it was changed after it was written",
			name);
	if (!err)
		err = parse_info(root, &m.info, diag);
	if (!err)
		err = parse_files(root, &m, diag);
	if (!err)
		*out = m;
	return err;
}
