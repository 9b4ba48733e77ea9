#include "data/shards_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "sys/clock.h"
#include "data/cache.h"

enum { PIECE = 8 << 20, LOOK_MS = 1000, INDEX_CAP = 1 << 30 };
enum { SAMPLE_REQUESTS = 50, SAMPLE_MS = 100, SAMPLE_MOST_MS = 1000, SEARCH_S = 60,
	WAITING = 50, /* less than this part of the time is none */
	FAR = 4, SIZE_LEAST = 64 << 10, NEIGHBOURS = 4 };

/* ---- opening ---- */

enum hd_err hd_shard_list_add(struct hd_shard_list *list, const struct hd_shard_sample *sample,
	struct hd_diag *diag)
{
	if (list->n == list->cap) {
		const uint64_t cap = list->cap ? list->cap * 2 : 1024;
		struct hd_shard_sample *grown = hd_arena_take(list->arena, cap, sizeof *grown);
		if (!grown)
			return hd_fail(diag, HD_E_NOMEM, "no memory for an index of %" PRIu64 " samples",
				cap);
		if (list->n)
			memcpy(grown, list->sample, list->n * sizeof *grown);
		list->sample = grown;
		list->cap = cap;
	}
	list->sample[list->n++] = *sample;
	return HD_OK;
}

/* All bytes of a shard through its maker. */
static enum hd_err make_index(struct hd_blob *blob, const struct hd_data_spec *spec,
	const struct hd_shard_kind *kind, struct hd_arena *arena, struct hd_shard_index *index,
	struct hd_diag *diag)
{
	const struct hd_ranges_knobs knobs = hd_blob_knobs(blob);
	struct hd_shard_list list = { .arena = arena };
	struct hd_shard_maker maker;
	struct hd_hasher hasher;
	enum hd_err err = HD_OK;
	uint8_t *piece = hd_alloc(PIECE);
	void *state = hd_alloc(kind->state_bytes);

	if (!piece || !state)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to read %s", blob->name);
	else
		kind->make(state, blob->name, spec, &list, &maker);
	hd_hasher_init(&hasher);
	for (uint64_t at = 0; at < blob->size_bytes && !err; at += PIECE) {
		const uint64_t left = blob->size_bytes - at;
		const struct hd_range range = { at, left < PIECE ? left : PIECE, piece };
		err = hd_blob_read(blob, &range, 1, &knobs, diag);
		if (!err)
			err = maker.feed(maker.self, piece, range.len, diag);
		if (!err)
			hd_hasher_add(&hasher, piece, range.len);
	}
	if (!err)
		err = maker.finish(maker.self, diag);
	*index = (struct hd_shard_index){ hd_hasher_end(&hasher), list.n, list.sample };
	hd_free(state);
	hd_free(piece);
	return err;
}

/* Where the index of a shard is kept; false: it is not. */
static bool index_path(const struct hd_blob_rules *rules, const struct hd_blob *blob, const char *what,
	char path[HD_PATH_CAP])
{
	char hex[HD_HASH_HEX], text[HD_BLOB_NAME + HD_BLOB_VERSION + 64];

	if (!rules || !rules->cache || !blob->version[0])
		return false;
	int n = snprintf(text, sizeof text, "%s\n%s\n%" PRIu64 "\n%s", blob->name, blob->version,
		blob->size_bytes, what);
	hd_hash_hex(hd_hash(text, (size_t)n), hex);
	return snprintf(path, HD_PATH_CAP, "%s/%s.index", rules->cache, hex) < HD_PATH_CAP;
}

/* The index that is kept for the shard, or one that is made of it, or of its copy. */
static enum hd_err find_index(struct hd_shard_set *set, struct hd_shard *shard, struct hd_blob *copy,
	const struct hd_data_spec *spec,
	const struct hd_shard_kind *kind, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	const bool keeps = spec->store && spec->store->cache;
	char path[HD_PATH_CAP];
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	const bool kept = keeps && index_path(spec->store, shard->blob, kind->what, path);
	enum hd_err err = !kept ? HD_E_NOTFOUND : hd_file_read_all(reader->fs, path, &arena, INDEX_CAP,
		&bytes, &len,
		NULL);
	if (!err)
		err = hd_shard_index_parse(bytes, len, shard->blob->size_bytes, &reader->arena,
			&shard->index);
	if (err) {                        /* none, or one that is damaged: it is made */
		err = make_index(copy ? copy : shard->blob, spec, kind, &reader->arena, &shard->index, diag);
		if (!err && kept && (bytes = hd_shard_index_print(&shard->index, &arena, &len))) {
			struct hd_diag why = { "" };
			err = hd_fs_mkdirs(reader->fs, spec->store->cache, &why);
			err = err ? err : hd_file_write_atomic(reader->fs, path, bytes, len, &why);
			if (err && !hd_cache_forgives(err, &why, spec->store, &reader->set.warning))
				(void)hd_fail(diag, err, "%s", why.text);
			else
				err = HD_OK;
		}
	}
	hd_arena_finish(&arena);
	return err;
}

/* Before its index is made: a ring that was kept for that would stay open as long as the shard. */
static void share_rings(const struct hd_shard_set *set, const struct hd_shard *shard, struct hd_blob *blob)
{
	struct hd_blob *first = set->shard[0].blob;

	if (shard != &set->shard[0] && blob && blob->by && first->by)
		blob->rings = first;
}

/* A shard of elsewhere is read from its copy where the cache has one; what it is does not change by that. */
static enum hd_err open_shard(struct hd_shard_set *set, struct hd_shard *shard, const char *name,
	const struct hd_data_spec *spec, const struct hd_shard_kind *kind, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_diag gone = { "" };
	struct hd_blob *copy = NULL;
	bool there = false;
	enum hd_err err = hd_blob_open(&shard->blob, name, spec->store, diag);

	if (!err && !shard->blob->size_bytes)
		err = hd_fail(diag, HD_E_INPUT, "%s is empty: there is nothing to train on", name);
	if (!err && hd_blob_is_url(name))
		err = hd_cache_get(spec->store, shard->blob, set->reader.fs, path, &there,
			&set->reader.set.warning, diag);
	if (!err && there)
		err = hd_blob_open(&copy, path, spec->store, &gone);
	if (there && err == HD_E_NOTFOUND)
		err = HD_OK;              /* another process made room meanwhile */
	else if (there && err)
		(void)!hd_fail(diag, err, "%s", gone.text);
	if (!err) {
		share_rings(set, shard, shard->blob);
		share_rings(set, shard, copy);
		err = find_index(set, shard, copy, spec, kind, diag);
	}
	if (!copy)
		return err;
	hd_blob_close(shard->blob);
	shard->blob = copy;
	return err;
}

/* The next "{A..B}" of a path: numbers with the digits of A. */
struct shard_braces { size_t begin, end; uint64_t first, last; int digits; };

static bool find_braces(const char *path, struct shard_braces *b)
{
	const char *open = strchr(path, '{');
	int n = 0;
	unsigned long long first, last;

	if (!open || sscanf(open, "{%18llu..%18llu}%n", &first, &last, &n) != 2 || !n || last < first)
		return false;
	*b = (struct shard_braces){ (size_t)(open - path), (size_t)(open - path) + (size_t)n, first, last,
		(int)strspn(open + 1, "0123456789") };
	return true;
}

/* Names of shards, as sources without bytes: of braces, of a glob, or one. */
static enum hd_err add_name(struct hd_shard_set *set, char ***name, uint32_t *n, const char *text,
	struct hd_diag *diag)
{
	char *kept = hd_arena_text(&set->reader.arena, text, strlen(text));

	if (*n == HD_SOURCES_CAP)
		return hd_fail(diag, HD_E_INPUT, "more than %d shards for one data set: join them",
			HD_SOURCES_CAP);
	if (!kept)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the names of shards");
	(*name)[(*n)++] = kept;
	return HD_OK;
}

static enum hd_err add_glob(struct hd_shard_set *set, char ***name, uint32_t *n, const char *pattern,
	struct hd_diag *diag)
{
	const char *slash = strrchr(pattern, '/');
	char folder[HD_PATH_CAP], path[HD_PATH_CAP], **names;
	size_t nnames;

	if (hd_blob_is_url(pattern) || !pattern[strcspn(pattern, "*?")])
		return add_name(set, name, n, pattern, diag);
	(void)snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - pattern + (slash == pattern)) : 1,
		slash ? pattern : ".");
	enum hd_err err = hd_fs_list(set->reader.fs, folder, &set->reader.arena, &names, &nnames, diag);
	const uint32_t before = *n;
	for (size_t i = 0; i < nnames && !err; i++) {
		if (!hd_glob_match(slash ? slash + 1 : pattern, names[i]))
			continue;
		if (snprintf(path, sizeof path, "%s%s%s", slash ? folder : "", slash ? "/" : "", names[i]) >=
			(int)sizeof path)
			err = hd_fail(diag, HD_E_INPUT, "the path %.100s.../%.100s is too long", folder,
				names[i]);
		else
			err = add_name(set, name, n, path, diag);
	}
	return err || *n > before ? err : hd_fail(diag, HD_E_NOTFOUND, "no file matches data.path %s",
		pattern);
}

static enum hd_err add_names(struct hd_shard_set *set, char ***name, uint32_t *n, const char *path,
	struct hd_diag *diag)
{
	char text[HD_BLOB_NAME];
	enum hd_err err = HD_OK;
	struct shard_braces b;

	if (!find_braces(path, &b))
		return add_glob(set, name, n, path, diag);
	for (uint64_t i = b.first; i <= b.last && !err; i++)
		if (snprintf(text, sizeof text, "%.*s%0*" PRIu64 "%s", (int)b.begin, path, b.digits, i,
			path + b.end) >= (int)sizeof text)
			err = hd_fail(diag, HD_E_INPUT, "data.path %.100s... is too long", path);
		else
			err = add_name(set, name, n, text, diag);
	return err;
}

static uint64_t count_samples(struct hd_shard_set *set)
{
	uint64_t n = 0;

	for (uint32_t s = 0; s < set->nshards; s++) {
		struct hd_shard *shard = &set->shard[s];
		shard->first = n;
		n += shard->index.n;
		for (uint64_t i = 0; i < shard->index.n; i++)
			if (shard->index.sample[i].len > set->most_bytes)
				set->most_bytes = shard->index.sample[i].len;
	}
	return n;
}

enum hd_err hd_shards_open(struct hd_shard_set *set, const struct hd_data_spec *spec,
	const struct hd_shard_kind *kind, struct hd_diag *diag)
{
	char **name = hd_arena_take(&set->reader.arena, HD_SOURCES_CAP, sizeof *name);
	uint32_t n = 0;

	if (!spec->path)
		return hd_fail(diag, HD_E_INVAL,
			"data.kind %s needs shards: set data.path to a file, a glob, "
			"PATH{000..099}.tar, or a URL", spec->kind);
	enum hd_err err = name ? add_names(set, &name, &n, spec->path, diag) : HD_E_NOMEM;
	set->shard = err ? NULL : hd_arena_take(&set->reader.arena, n, sizeof *set->shard);
	if (!err && !set->shard)
		err = HD_E_NOMEM;
	if (err == HD_E_NOMEM)
		return hd_fail(diag, err, "no memory for the list of shards");
	for (uint32_t i = 0; i < n && !err; i++) {
		set->shard[i] = (struct hd_shard){ 0 };
		set->nshards++;
		err = open_shard(set, &set->shard[i], name[i], spec, kind, diag);
	}
	if (err)
		return err;
	set->reader.set.count = count_samples(set);
	if (!set->reader.set.count)
		return hd_fail(diag, HD_E_INPUT, "%s holds no sample", spec->path);
	return set->most_bytes <= HD_MAX_SAMPLE_BYTES ? HD_OK : hd_fail(diag, HD_E_INPUT, "%s: a sample has %"
		PRIu64 " bytes, above the limit of %d", spec->path, set->most_bytes, HD_MAX_SAMPLE_BYTES);
}

/* ---- reading ---- */

static uint32_t shard_of(const struct hd_shard_set *set, uint64_t id)
{
	uint32_t low = 0, high = set->nshards;

	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;
		if (set->shard[middle].first <= id)
			low = middle;
		else
			high = middle;
	}
	while (set->shard[low].index.n <= id - set->shard[low].first)
		low++;                    /* past shards that hold nothing */
	return low;
}

/* Under the lock, which it gives meanwhile. */
static void do_job(struct hd_shard_set *set, struct hd_shard_job *job)
{
	struct hd_ranges_knobs knobs = set->knobs;

	knobs.depth = job->depth;
	hd_lock_give(&set->lock);
	enum hd_err err = hd_blob_read(job->shard->blob, job->range, job->nranges, &knobs, &job->diag);
	hd_lock_take(&set->lock);
	job->err = err;
	job->shard = NULL;                /* done */
	hd_cond_wake(&set->change);
}

static void read_for_others(void *user)
{
	struct hd_shard_set *set = user;
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_lock_take(&set->lock);
	while (!set->closed)
		if (set->njobs)
			do_job(set, set->job[--set->njobs]);
		else
			(void)hd_cond_wait(&set->change, &set->lock,
				hd_clock_now_ns(&clock) + LOOK_MS * HD_NS_PER_MS);
	hd_lock_give(&set->lock);
}

/* Jobs of a call, at once as far as the depth goes: crew threads take them, and the caller what is left. */
static enum hd_err do_jobs(struct hd_shard_set *set, struct hd_shard_job *job, uint32_t n,
	struct hd_diag *diag)
{
	struct hd_clock clock;
	enum hd_err err = HD_OK;
	uint32_t next = 0;
	bool all = false;

	hd_clock_real(&clock);
	hd_lock_take(&set->lock);
	const uint32_t depth = set->knobs.depth, wide = n < depth ? n : depth;
	while (set->ncrew + 1 < wide && set->ncrew < HD_SHARDS_CREW) {
		if (hd_thread_start(&set->crew[set->ncrew], "hd-shard", -1, read_for_others, set, NULL))
			break;
		set->ncrew++;
	}
	const uint32_t lanes = set->ncrew + 1 < wide ? set->ncrew + 1 : wide;
	for (uint32_t i = 0; i < n; i++)
		job[i].depth = depth / lanes ? depth / lanes : 1;
	while (next + 1 < n && depth > 1 && set->njobs < sizeof set->job / sizeof *set->job && set->ncrew)
		set->job[set->njobs++] = &job[next++];
	if (next)
		hd_cond_wake(&set->change);
	while (next < n)
		do_job(set, &job[next++]);
	while (!all) {
		all = true;
		for (uint32_t i = 0; i < n; i++)
			all = all && !job[i].shard;
		if (!all && set->njobs)           /* nothing takes it sooner than this thread */
			do_job(set, set->job[--set->njobs]);
		else if (!all)
			(void)hd_cond_wait(&set->change, &set->lock,
				hd_clock_now_ns(&clock) + LOOK_MS * HD_NS_PER_MS);
	}
	hd_lock_give(&set->lock);
	for (uint32_t i = 0; i < n && !err; i++)
		if (job[i].err)
			err = hd_fail(diag, job[i].err, "%s", job[i].diag.text);
	return err;
}

/* Whether a call of n samples may begin: those of all calls at once are as many as the depth says, or one
 * call. In the order in which they came, or what is needed first would wait for what is read ahead. Under the
 * lock. */
static bool fits(const struct hd_shard_set *set, uint32_t n)
{
	return !set->in_flight || set->in_flight + n <= set->knobs.depth;
}

static struct hd_shard_room *take_room(struct hd_shard_set *set, uint32_t n)
{
	struct hd_shard_room *room = NULL;
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_lock_take(&set->lock);
	const uint64_t ticket = set->ntickets++;
	while (!room) {
		const bool may = ticket == set->nserved && fits(set, n);
		for (uint32_t i = 0; i < set->nrooms && !room && may; i++)
			room = set->room[i].taken ? NULL : &set->room[i];
		if (!room)
			(void)hd_cond_wait(&set->change, &set->lock,
				hd_clock_now_ns(&clock) + LOOK_MS * HD_NS_PER_MS);
	}
	room->taken = true;
	set->in_flight += n;
	set->nserved++;
	if (set->nserved < set->ntickets)
		hd_cond_wake(&set->change);
	hd_lock_give(&set->lock);
	return room;
}

static void give_room(struct hd_shard_set *set, struct hd_shard_room *room, uint32_t n)
{
	hd_lock_take(&set->lock);
	set->in_flight -= n;
	room->taken = false;
	hd_cond_wake(&set->change);
	hd_lock_give(&set->lock);
}

/* Wanted ranges by shard; places in the room by the number in the call. */
struct wanted_sample { uint32_t shard; const struct hd_shard_sample *sample; };

static enum hd_err fetch(struct hd_shard_set *set, struct wanted_sample *want, uint32_t n, uint8_t *room,
	struct hd_diag *diag)
{
	struct hd_range range[HD_SHARDS_TOGETHER];
	struct hd_shard_job job[HD_SHARDS_TOGETHER];
	bool taken[HD_SHARDS_TOGETHER] = { 0 };
	uint32_t njobs = 0, at = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (taken[i])
			continue;
		const uint32_t first = at;
		for (uint32_t k = i; k < n; k++) {
			if (want[k].shard != want[i].shard)
				continue;
			taken[k] = true;
			range[at++] = (struct hd_range){ want[k].sample->offset, want[k].sample->len,
				room + k * set->most_bytes };
		}
		hd_ranges_sort(range + first, at - first);
		job[njobs] = (struct hd_shard_job){ .shard = &set->shard[want[i].shard], .range =
			range + first,
			.nranges = at - first };
		if (!hd_blob_read_here(set->shard[want[i].shard].blob, range + first, at - first))
			job[njobs++].diag.text[0] = '\0';
	}
	return njobs ? do_jobs(set, job, njobs, diag) : HD_OK;
}

/* What was read goes to the tuner, a sample at a time: with waiting it searches, without it only gives back.
 * A
 * sample is 50 requests or 100 ms, whichever is later, and a second at most. */
static void steer(struct hd_shard_set *set, const struct wanted_sample *want, uint32_t n)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	const int64_t now = hd_clock_now_ns(&clock);
	hd_lock_take(&set->lock);
	for (uint32_t i = 0; i < n; i++) {
		set->sample_bytes += want[i].sample->len;
		set->delivered += want[i].sample->len;
	}
	set->sample_requests += n;
	const int64_t ns = now - set->since_ns, waited_ns = set->waited_ns;
	if (set->since_ns && (ns < SAMPLE_MS * HD_NS_PER_MS || set->sample_requests < SAMPLE_REQUESTS) &&
		ns < SAMPLE_MOST_MS * HD_NS_PER_MS) {
		hd_lock_give(&set->lock);
		return;
	}
	const bool waited = waited_ns - set->waited_before_ns > ns / WAITING;
	if (set->since_ns && set->tunes && !set->kept_depth)
		hd_tune_sample(&set->tune, set->sample_bytes, ns, waited);
	set->tunes = set->tunes || (set->since_ns && waited && set->waited);
	set->waited = set->since_ns && waited;
	if (set->tunes)
		set->knobs = hd_tune_knobs(&set->tune);
	if (set->kept_depth)
		set->knobs = hd_ranges_bound((struct hd_ranges_knobs){ set->kept_depth,
			set->knobs.size_bytes, set->knobs.gap_bytes }, HD_RANGES_MEMORY);
	set->since_ns = now;
	set->waited_before_ns = waited_ns;
	set->sample_bytes = set->sample_requests = 0;
	hd_lock_give(&set->lock);
}

static enum hd_err read_some(const struct hd_dataset *data, uint32_t split, const struct hd_ask *ask,
	uint32_t n, bool ahead, struct hd_diag *diag)
{
	struct hd_shard_set *set = (struct hd_shard_set *)(uintptr_t)data;
	struct wanted_sample want[HD_SHARDS_TOGETHER];
	struct hd_shard_room *room = take_room(set, n);
	const uint8_t *bytes = room->memory.at;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t id = hd_split_id(&set->reader, split, ask[i].index);
		want[i].shard = shard_of(set, id);
		want[i].sample =
			&set->shard[want[i].shard].index.sample[id - set->shard[want[i].shard].first];
	}
	enum hd_err err = fetch(set, want, n, room->memory.at, diag);
	for (uint32_t i = 0; i < n && !err; i++, bytes += set->most_bytes) {
		const char *name = set->shard[want[i].shard].blob->name;
		if (hd_crc32c(0, bytes, want[i].sample->len) != want[i].sample->crc)
			err = hd_fail(diag, HD_E_INTEGRITY,
				"%s: the sample at byte %" PRIu64 " is not what it was "
				"when the shard was opened: it was written to, or damaged on its way", name,
				want[i].sample->offset);
		else
			err = set->decode(set, want[i].sample, bytes, &ask[i], name, diag);
	}
	give_room(set, room, n);
	if (ahead)
		steer(set, want, n);
	return err;
}

static enum hd_err read_many(const struct hd_dataset *set, uint32_t split, const struct hd_ask *ask,
	uint32_t n, bool ahead, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < n && !err; i += HD_SHARDS_TOGETHER)
		err = read_some(set, split, ask + i, n - i < HD_SHARDS_TOGETHER ? n - i : HD_SHARDS_TOGETHER,
			ahead, diag);
	return err;
}

enum hd_err hd_shards_read(const struct hd_dataset *set, uint32_t split, uint64_t index, void *const *out,
	struct hd_diag *diag)
{
	struct hd_ask ask = { .index = index, .epoch = HD_NO_EPOCH };

	memcpy(ask.out, out, set->nfields * sizeof *out);
	return read_some(set, split, &ask, 1, false, diag);
}

/* ---- life ---- */

static enum hd_err take_rooms(struct hd_shard_set *set, struct hd_diag *diag)
{
	const uint64_t bytes = HD_SHARDS_TOGETHER * set->most_bytes + 1;
	enum hd_err err = HD_OK;

	while (!err && set->nrooms < HD_SHARDS_ROOMS && (set->nrooms < HD_SHARDS_ROOMS_LEAST ||
		(set->nrooms + 1) * bytes <= HD_RANGES_MEMORY)) {
		err = hd_memory_take((size_t)bytes, HD_MEMORY_LAZY, &set->room[set->nrooms].memory, diag);
		set->nrooms += !err;
	}
	return err;
}

/* Of requests: a few neighbours at most. */
static uint32_t size_most(const struct hd_shard_set *set)
{
	uint32_t size = SIZE_LEAST;

	while (size < HD_RANGES_SIZE_MAX && size < NEIGHBOURS * set->most_bytes)
		size *= 2;
	return size;
}

/* Samples are many and short: of objects far more are in flight than of a stream. */
struct hd_ranges_knobs hd_shards_knobs(const struct hd_shard_set *set)
{
	const struct hd_blob *blob = set->shard[0].blob;
	struct hd_ranges_knobs knobs = hd_blob_knobs(blob);

	if (hd_blob_is_url(blob->name)) {
		knobs.depth *= FAR;
		knobs.size_bytes /= FAR;
	}
	return hd_ranges_bound(knobs, HD_RANGES_MEMORY);
}

enum hd_err hd_shards_ready(struct hd_shard_set *set, const struct hd_data_spec *spec, struct hd_diag *diag)
{
	struct hd_reader *reader = &set->reader;
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; i < set->nshards; i++)
		hd_hasher_add(&hasher, &set->shard[i].index.hash, sizeof set->shard[i].index.hash);
	reader->set.hash = hd_hasher_end(&hasher);
	reader->set.read_many = read_many;
	set->knobs = hd_shards_knobs(set);
	hd_tune_init(&set->tune, &(struct hd_tune_rules){ .memory_bytes = HD_RANGES_MEMORY,
		.size_most = size_most(set),
		.request_bytes = (uint32_t)set->most_bytes, .depth_first = set->knobs.depth,
		.depth_least = hd_blob_knobs(set->shard[0].blob).depth / 2, .gaps = true,
		.budget_ns = SEARCH_S * HD_NS_PER_S });
	set->tune.say = hd_shards_say;
	set->tune.user = set;
	reader->set.waited_ns = &set->waited_ns;
	reader->set.reading = &hd_shards_reading;
	for (uint32_t i = 0; i < set->nshards; i++) {
		set->shard[i].blob->served = &set->served;
		set->shard[i].blob->waits = hd_shards_waits;
		set->shard[i].blob->waits_user = set;
		set->shard[i].blob->looks = &set->looks;
		set->shard[i].blob->group = (uint32_t)((uint64_t)i * HD_FAIR_FILES / set->nshards);
	}
	if (set->shard[0].blob->by_why.text[0])
		hd_shards_say(set, set->shard[0].blob->by_why.text);
	hd_lock_init(&set->lock);
	hd_cond_init(&set->change);
	set->locked = true;
	enum hd_err err = take_rooms(set, diag);
	return err ? err : hd_split_hashed(reader, spec, reader->set.count, diag);
}

void hd_shards_destroy(struct hd_dataset *data)
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	if (!set)
		return;
	if (set->locked) {
		hd_lock_take(&set->lock);
		set->closed = true;
		hd_cond_wake(&set->change);
		hd_lock_give(&set->lock);
		for (uint32_t i = 0; i < set->ncrew; i++)
			hd_thread_join(&set->crew[i]);
		hd_cond_finish(&set->change);
		hd_lock_finish(&set->lock);
	}
	for (uint32_t i = 0; i < HD_SHARDS_ROOMS; i++)
		hd_memory_give(&set->room[i].memory);
	for (uint32_t i = 0; i < set->nshards; i++)
		hd_blob_close(set->shard[i].blob);
	hd_reader_destroy(data);
}
