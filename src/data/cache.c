#include "data/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/hash.h"
#include "sys/clock.h"

enum { LENGTH_BYTES = 24 };            /* of KEY.lock: 20 digits and an end of line at most */
enum { PIECE = 8 << 20, OK_BYTES = HD_BLOB_NAME + 128, WAIT_MS = 50 };
#define MAGIC "heddle-cache 1 "

enum hd_err hd_cache_parse(const char *text, size_t len, uint64_t *length, struct hd_hash *hash)
{
	const size_t magic = sizeof MAGIC - 1;
	char hex[HD_HASH_HEX];
	size_t at = magic;
	uint64_t n = 0;

	if (len < magic || memcmp(text, MAGIC, magic) != 0)
		return HD_E_INPUT;
	for (; at < len && text[at] >= '0' && text[at] <= '9'; at++)
		if (!hd_mul_u64(n, 10, &n) || !hd_add_u64(n, (uint64_t)(text[at] - '0'), &n))
			return HD_E_INPUT;
	if (at == magic || len - at < sizeof hex + 1 || text[at] != ' ' || text[at + sizeof hex] != ' ' ||
		text[len - 1] != '\n')
		return HD_E_INPUT;
	memcpy(hex, text + at + 1, sizeof hex - 1);
	hex[sizeof hex - 1] = '\0';
	*length = n;
	return hd_hash_parse(hex, hash) ? HD_OK : HD_E_INPUT;
}

/* An entry of the folder at hand; paths are DIR/KEY and an end. */
struct cache_entry { const struct hd_blob_rules *rules; struct hd_blob *blob; struct hd_fs *fs;
	struct hd_arena arena;
	bool of_store;                    /* what failed is the object's store */
	char key[HD_HASH_HEX]; };

static bool path_of(const struct cache_entry *e, const char *key, const char *end, char path[HD_PATH_CAP])
{
	return snprintf(path, HD_PATH_CAP, "%s/%s%s", e->rules->cache, key, end) < HD_PATH_CAP;
}

static void remove_entry(struct cache_entry *e, const char *key)
{
	char path[HD_PATH_CAP];

	if (path_of(e, key, ".ok", path))
		(void)!hd_fs_unlink(e->fs, path, NULL);
	if (path_of(e, key, ".data", path))
		(void)!hd_fs_unlink(e->fs, path, NULL);
}

static enum hd_err hash_file(struct cache_entry *e, const char *path, uint64_t length, struct hd_hash *hash)
{
	struct hd_file file = { 0 };
	struct hd_map map = { 0 };
	enum hd_err err = hd_file_open(e->fs, path, HD_OPEN_READ, &file, NULL);

	if (err)
		return err;
	err = hd_file_map(&file, &map, NULL);
	(void)!hd_file_close(&file, NULL);
	if (!err && map.len != length)
		err = HD_E_INTEGRITY;
	if (!err)
		*hash = hd_hash(map.bytes, map.len);
	hd_file_unmap(e->fs, &map);
	return err;
}

/* Whether the entry is there and what it says; it is used now. */
static bool is_good(struct cache_entry *e, char path[HD_PATH_CAP])
{
	char ok[HD_PATH_CAP];
	struct hd_hash said, is;
	uint64_t length;
	uint8_t *text;
	size_t len;

	if (!path_of(e, e->key, ".ok", ok) || !path_of(e, e->key, ".data", path) ||
		hd_file_read_all(e->fs, ok, &e->arena, OK_BYTES, &text, &len, NULL))
		return false;
	if (hd_cache_parse((const char *)text, len, &length, &said) || length != e->blob->size_bytes ||
		hash_file(e, path, length, &is) || !hd_hash_same(said, is)) {
		remove_entry(e, e->key);
		return false;
	}
	(void)!hd_file_write_atomic(e->fs, ok, text, len, NULL);
	return true;
}

/* ---- room ---- */

/* Removes a copy that a process began and did not end, and its lock: none holds it. It is held meanwhile, or
 * one that begins it again would lose it. What one that comes will have; 0: it is removed. */
static uint64_t drop_left(struct cache_entry *e, const char *key)
{
	struct hd_file lock = { 0 };
	char path[HD_PATH_CAP], part[HD_PATH_CAP];
	uint64_t length = 0;
	uint8_t *text;
	size_t len;

	if (!path_of(e, key, ".part", part) || !path_of(e, key, ".lock", path) ||
		hd_file_open(e->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &lock, NULL))
		return 0;
	if (hd_file_lock(&lock, NULL) == HD_OK) {
		(void)!hd_fs_unlink(e->fs, part, NULL);
		(void)!hd_fs_unlink(e->fs, path, NULL);
	} else if (!hd_file_read_all(e->fs, path, &e->arena, LENGTH_BYTES, &text, &len, NULL))
		for (size_t i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
			length = 10 * length + (uint64_t)(text[i] - '0');
	(void)!hd_file_close(&lock, NULL);
	return length;
}

/* Sum of all entries, and the one that was not used for longest; one that no KEY.ok speaks for goes before
 * all. What processes that ended in the middle left behind goes here. */
static enum hd_err look_around(struct cache_entry *e, uint64_t *sum, char oldest[HD_HASH_HEX],
	struct hd_diag *diag)
{
	int64_t least = INT64_MAX;
	char path[HD_PATH_CAP];
	struct hd_stat stat;
	char **names;
	size_t n;
	enum hd_err err = hd_fs_list(e->fs, e->rules->cache, &e->arena, &names, &n, diag);

	*sum = 0;
	oldest[0] = '\0';
	for (size_t i = 0; i < n && !err; i++) {
		char key[HD_HASH_HEX] = "";
		if (strlen(names[i]) != HD_HASH_HEX - 1 + 5)
			continue;
		const char *end = names[i] + HD_HASH_HEX - 1;
		const bool part = !strcmp(end, ".part"), lock = !strcmp(end, ".lock");
		if (!part && !lock && strcmp(end, ".data") != 0)
			continue;
		memcpy(key, names[i], HD_HASH_HEX - 1);
		if (!path_of(e, key, end, path))
			continue;
		if ((part || lock) && !strcmp(key, e->key))
			continue;         /* what was left of its own is written again, in the same place */
		if (hd_fs_stat(e->fs, path, &stat, NULL))
			continue;         /* a lock that went with its copy */
		const uint64_t comes = part || lock ? drop_left(e, key) : 0;
		if (lock || hd_fs_stat(e->fs, path, &stat, NULL))
			continue;
		*sum += (uint64_t)stat.size_bytes > comes ? (uint64_t)stat.size_bytes : comes;
		if (part || !path_of(e, key, ".ok", path))
			continue;
		const int64_t used = hd_fs_stat(e->fs, path, &stat, NULL) ? INT64_MIN : stat.changed_wall_ns;
		if (used >= least)
			continue;
		least = used;
		memcpy(oldest, key, sizeof key);
	}
	return err;
}

static enum hd_err make_room(struct cache_entry *e, bool *fits, struct hd_diag *diag)
{
	struct hd_fs_space space = { 0 };
	char oldest[HD_HASH_HEX];
	uint64_t sum, budget = e->rules->cache_bytes;
	enum hd_err err = look_around(e, &sum, oldest, diag);

	if (!budget && !hd_fs_space(e->fs, e->rules->cache, &space))
		budget = (space.free_bytes + sum) / 2;
	*fits = e->blob->size_bytes <= budget;
	while (!err && *fits && sum > budget - e->blob->size_bytes && oldest[0]) {
		const uint64_t before = sum;
		remove_entry(e, oldest);
		err = look_around(e, &sum, oldest, diag);
		*fits = sum < before;     /* else it is not ours to remove: do without */
	}
	*fits = *fits && sum <= budget - e->blob->size_bytes;     /* else what comes takes the room */
	return err;
}

/* ---- fetching ---- */

static enum hd_err copy(struct cache_entry *e, struct hd_file *file, struct hd_hash *hash,
	struct hd_diag *diag)
{
	const struct hd_ranges_knobs knobs = hd_blob_knobs(e->blob);
	uint8_t *piece = hd_arena_take(&e->arena, PIECE, 1);
	struct hd_hasher hasher;
	enum hd_err err = piece ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory to read %s", e->blob->name);

	hd_hasher_init(&hasher);
	for (uint64_t at = 0; at < e->blob->size_bytes && !err; at += PIECE) {
		const uint64_t left = e->blob->size_bytes - at;
		const struct hd_range range = { at, left < PIECE ? left : PIECE, piece };
		err = hd_blob_read(e->blob, &range, 1, &knobs, diag);
		e->of_store = err != HD_OK;
		if (!err)
			err = hd_file_write(file, piece, range.len, diag);
		if (!err)
			hd_hasher_add(&hasher, piece, range.len);
	}
	*hash = hd_hasher_end(&hasher);
	return err ? err : hd_file_sync(file, diag);
}

static enum hd_err fetch(struct cache_entry *e, const char *path, struct hd_diag *diag)
{
	char part[HD_PATH_CAP], ok[HD_PATH_CAP], text[OK_BYTES], hex[HD_HASH_HEX];
	struct hd_file file = { 0 };
	struct hd_hash hash;

	if (!path_of(e, e->key, ".part", part) || !path_of(e, e->key, ".ok", ok))
		return hd_fail(diag, HD_E_INVAL, "data.cache %.100s...: the path is too long",
			e->rules->cache);
	enum hd_err err = hd_file_open(e->fs, part, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		diag);
	if (err)
		return err;
	err = copy(e, &file, &hash, diag);
	enum hd_err closed = hd_file_close(&file, diag);
	err = err ? err : closed;
	if (!err)
		err = hd_fs_rename(e->fs, part, path, diag);
	if (err) {
		(void)!hd_fs_unlink(e->fs, part, NULL);
		return err;
	}
	hd_hash_hex(hash, hex);
	int len = snprintf(text, sizeof text, MAGIC "%" PRIu64 " %s %s\n", e->blob->size_bytes, hex,
		e->blob->name);
	return hd_file_write_atomic(e->fs, ok, text, (size_t)len, diag);
}

/* HD_E_AGAIN: another process has it. */
static enum hd_err try_lock(struct cache_entry *e, const char *name, struct hd_file *lock,
	struct hd_diag *diag)
{
	char path[HD_PATH_CAP];

	if (!path_of(e, name, ".lock", path))
		return hd_fail(diag, HD_E_INVAL, "data.cache %.100s...: the path is too long",
			e->rules->cache);
	enum hd_err err = hd_file_open(e->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, lock, diag);
	if (!err)
		err = hd_file_lock(lock, NULL);
	if (err)
		(void)!hd_file_close(lock, NULL);
	return err;
}

/* The lock of an object is opened, and taken away, by those alone that hold that of the room: a process never
 * gets one that is no longer under its name. */
static enum hd_err try_key(struct cache_entry *e, const char *key, struct hd_file *lock, struct hd_diag *diag)
{
	struct hd_file room = { 0 };
	enum hd_err err = try_lock(e, "room", &room, diag);

	if (!err)
		err = try_lock(e, key, lock, diag);
	(void)!hd_file_close(&room, NULL);
	return err;
}

/* HD_E_AGAIN: another process has been at it for too long. */
static enum hd_err hold(struct cache_entry *e, const char *name, int64_t most_ns, struct hd_file *lock,
	struct hd_diag *diag)
{
	const bool is_room = !strcmp(name, "room");
	struct hd_clock clock;
	enum hd_err err;

	hd_clock_real(&clock);
	const int64_t until = hd_clock_now_ns(&clock) + most_ns;
	while ((err = is_room ? try_lock(e, name, lock, diag) : try_key(e, name, lock, diag)) == HD_E_AGAIN &&
		hd_clock_now_ns(&clock) < until)
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + WAIT_MS * HD_NS_PER_MS);
	return err;
}

/* Where the room is taken for long, or the disk fails, the file stays, for others to take away. */
static void let_go(struct cache_entry *e, struct hd_file *lock)
{
	struct hd_file room = { 0 };
	char path[HD_PATH_CAP];

	if (lock->fs && !hold(e, "room", HD_NS_PER_S, &room, NULL) && path_of(e, e->key, ".lock", path))
		(void)!hd_fs_unlink(e->fs, path, NULL);
	(void)!hd_file_close(lock, NULL);
	(void)!hd_file_close(&room, NULL);
}

/* Room for the object, which other processes see from now on: its length in KEY.lock, its KEY.part. */
static enum hd_err reserve(struct cache_entry *e, const struct hd_file *own, bool *fits, struct hd_diag *diag)
{
	struct hd_file room = { 0 }, part = { 0 };
	char path[HD_PATH_CAP], text[LENGTH_BYTES];
	enum hd_err err = hold(e, "room", HD_CACHE_WAIT_S * HD_NS_PER_S, &room, diag);

	if (!err)
		err = make_room(e, fits, diag);
	if (!err && *fits && path_of(e, e->key, ".part", path)) {
		const int n = snprintf(text, sizeof text, "%020" PRIu64 "\n", e->blob->size_bytes);
		err = hd_file_pwrite(own, text, (size_t)n, 0, diag);
		if (!err)
			err = hd_file_open(e->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE,
				&part, diag);
		(void)!hd_file_close(&part, NULL);
	}
	(void)!hd_file_close(&room, NULL);
	return err;
}

static enum hd_err get(struct cache_entry *e, char path[HD_PATH_CAP], bool *there, struct hd_diag *diag)
{
	struct hd_file lock = { 0 };
	bool fits = false;
	enum hd_err err = hd_fs_mkdirs(e->fs, e->rules->cache, diag);

	if (!err)
		err = hold(e, e->key, HD_CACHE_WAIT_S * HD_NS_PER_S, &lock, diag);
	*there = !err && is_good(e, path);
	if (!err && !*there) {
		err = reserve(e, &lock, &fits, diag);
		if (!err && fits)
			err = fetch(e, path, diag);
		*there = !err && fits;
	}
	let_go(e, &lock);
	return err == HD_E_AGAIN ? HD_OK : err;
}

bool hd_cache_forgives(enum hd_err err, const struct hd_diag *why, const struct hd_blob_rules *rules,
	struct hd_diag *warning)
{
	if (err != HD_E_IO && err != HD_E_REFUSED)
		return false;
	if (!warning->text[0])
		(void)hd_fail(warning, err, "data.cache %.100s keeps no more for now: %.300s; objects "
			"are read where they are", rules->cache, why->text);
	return true;
}

enum hd_err hd_cache_get(const struct hd_blob_rules *rules, struct hd_blob *blob, struct hd_fs *fs,
	char path[HD_PATH_CAP], bool *there, struct hd_diag *warning, struct hd_diag *diag)
{
	struct cache_entry e = { .rules = rules, .blob = blob, .fs = fs };
	struct hd_hasher hasher;
	char size[32];

	*there = false;
	if (!rules || !rules->cache || !blob->version[0])
		return HD_OK;
	(void)snprintf(size, sizeof size, "\n%" PRIu64, blob->size_bytes);
	hd_hasher_init(&hasher);
	hd_hasher_add(&hasher, blob->name, strlen(blob->name) + 1);
	hd_hasher_add(&hasher, blob->version, strlen(blob->version) + 1);
	hd_hasher_add(&hasher, size, strlen(size));
	hd_hash_hex(hd_hasher_end(&hasher), e.key);
	hd_arena_init(&e.arena, 0);
	struct hd_diag why = { "" };
	enum hd_err err = get(&e, path, there, &why);
	hd_arena_finish(&e.arena);
	if (!err || (!e.of_store && hd_cache_forgives(err, &why, rules, warning)))
		return HD_OK;
	return hd_fail(diag, err, "%s", why.text);
}
