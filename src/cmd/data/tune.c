#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/philox.h"
#include "sys/memory.h"
#include "data/blob.h"
#include "data/tune.h"
#include "cmd/session.h"

/* Half of the memory of requests: places of twice the depth. */
#define TUNED_MEMORY (HD_RANGES_MEMORY / 2)
enum { REQUESTS = 16, SAMPLE_MS = 100, BRIEF_MS = 30, SAMPLE_MOST_MS = 300, ROUNDS = 3, TURNS = 15, SLOTS = 2,
	SWEPT = 90 };                     /* 9 depths, 10 sizes */
enum { SEARCH_MS = 30000 };
#define SEARCH_BYTES (UINT64_C(16) << 30)         /* of objects, which may have to be paid for */
enum { TRIES = 3 };
enum { PIECE = 16 << 10, GAPS = 7, GAP_MOST = 256 << 10 };    /* 4 to 256 KiB */
#define GAP_LEAST (UINT64_C(4) << 10)

/* A store that is measured. */
struct tuned { struct hd_cmd *cmd; struct hd_blob *blob; struct hd_memory room; uint32_t draws;
	uint32_t nsamples;
	struct hd_text said; struct hd_json_writer decisions; bool explain;
	bool pairs;                       /* neighbours are read, at distances that are drawn */
};

static void note(void *user, const char *text)
{
	struct tuned *t = user;

	if (t->explain && t->cmd->args.has[HD_OPT_JSON])
		hd_json_put_text(&t->decisions, NULL, text);
	else if (t->explain)
		printf("%s\n", text);
}

/* Two pieces with a gap of 4 to 256 KiB between them, as neighbours of a shard lie. */
static enum hd_err read_pairs(struct tuned *t, struct hd_ranges_knobs k, uint64_t *bytes, uint32_t *n)
{
	struct hd_range range[SLOTS * HD_RANGES_DEPTH];
	const uint32_t npairs = k.depth;

	for (uint32_t i = 0; i < npairs; i++) {
		const uint32_t counter[4] = { t->draws++, 0, 0, 2 };
		const struct hd_philox draw = hd_philox(counter, hd_philox_key(0, HD_RNG_NOISE));
		const uint64_t gap = GAP_LEAST << draw.word[2] % GAPS;
		const uint64_t room = t->blob->size_bytes - 2 * PIECE - gap;
		const uint64_t at = ((uint64_t)draw.word[0] << 32 | draw.word[1]) % (room + 1);
		uint8_t *into = (uint8_t *)t->room.at + 2 * i * PIECE;
		range[2 * i] = (struct hd_range){ at, PIECE, into };
		range[2 * i + 1] = (struct hd_range){ at + PIECE + gap, PIECE, into + PIECE };
	}
	*bytes += 2 * npairs * PIECE;
	*n += 2 * npairs;
	hd_ranges_sort(range, 2 * npairs);
	return hd_blob_read(t->blob, range, 2 * npairs, &k, &t->cmd->diag);
}

/* Requests at places that are drawn, twice as many as may be in flight, or all there are. No place twice: one
 * request would bring both, and a short object would seem fast by many. */
static enum hd_err read_once(struct tuned *t, struct hd_ranges_knobs k, uint64_t *bytes, uint32_t *n)
{
	static const uint32_t primes[] = { 7919, 104729 };
	struct hd_range range[SLOTS * HD_RANGES_DEPTH];
	const uint64_t size = t->blob->size_bytes < k.size_bytes ? t->blob->size_bytes : k.size_bytes;
	const uint64_t places = t->blob->size_bytes / size, most = SLOTS * k.depth;
	const uint32_t nranges = (uint32_t)(most < places ? most : places);
	const uint64_t stride = primes[places % primes[0] == 0];

	if (t->pairs)
		return read_pairs(t, k, bytes, n);
	const uint32_t counter[4] = { t->draws++, 0, 0, 1 };
	const struct hd_philox draw = hd_philox(counter, hd_philox_key(0, HD_RNG_NOISE));
	const uint64_t first = ((uint64_t)draw.word[0] << 32 | draw.word[1]) % places;
	for (uint32_t i = 0; i < nranges; i++)
		range[i] = (struct hd_range){ (first + i * stride) % places * size, size,
			(uint8_t *)t->room.at + i * size };
	*bytes += nranges * size;
	*n += nranges;
	hd_ranges_sort(range, nranges);
	k.gap_bytes = 0;
	return hd_blob_read(t->blob, range, nranges, &k, &t->cmd->diag);
}

/* At least so many requests and so long, whichever comes later; never longer than SAMPLE_MOST_MS but for one
 * turn. `brief`: how it grows is all that is asked. */
static enum hd_err measure(struct tuned *t, struct hd_ranges_knobs k, bool brief, uint64_t *bytes,
	int64_t *took_ns)
{
	const int64_t least_ns = (brief ? BRIEF_MS : SAMPLE_MS) * HD_NS_PER_MS;
	const uint32_t requests = brief ? 1 : REQUESTS;
	const int64_t since = hd_clock_now_ns(&t->cmd->clock);
	enum hd_err err = HD_OK;
	int64_t ns = 0;
	uint32_t n = 0;

	*bytes = 0;
	while (!err && (n < requests || ns < least_ns) &&
		ns < SAMPLE_MOST_MS * HD_NS_PER_MS) {
		err = read_once(t, k, bytes, &n);
		ns = hd_clock_now_ns(&t->cmd->clock) - since;
	}
	t->nsamples++;
	*took_ns = ns > 0 ? ns : 1;
	return err;
}

static enum hd_err measure_rate(struct tuned *t, struct hd_ranges_knobs k, double *bytes_s)
{
	uint64_t bytes;
	int64_t ns;
	enum hd_err err = measure(t, k, false, &bytes, &ns);

	*bytes_s = (double)bytes * 1e9 / (double)ns;
	return err;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void put_row(struct hd_json_writer *w, const char *name, struct hd_ranges_knobs k, double *value,
	uint32_t n)
{
	qsort(value, n, sizeof *value, by_value);
	hd_json_open_object(w, name);
	hd_json_put_i64(w, "depth", k.depth);
	hd_json_put_i64(w, "size_bytes", k.size_bytes);
	hd_json_put_f64(w, "bytes_s", value[n / 2]);
	hd_json_put_f64(w, "least_bytes_s", value[0]);
	hd_json_put_f64(w, "most_bytes_s", value[n - 1]);
	hd_json_close(w);
}

/* Two pairs of knobs in turns, the first first in every other turn. The most of many medians is more than
 * what it is of: so what was best in the sweep is measured once more, beside what was kept. */
static enum hd_err duel(struct tuned *t, const struct hd_ranges_knobs k[2], struct hd_json_writer *w)
{
	double value[2][TURNS], ratio[TURNS];
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < TURNS && !err; i++) {
		for (uint32_t j = 0; j < 2 && !err; j++)
			err = measure_rate(t, k[(i + j) % 2], &value[(i + j) % 2][i]);
		ratio[i] = err || value[1][i] <= 0 ? 0 : value[0][i] / value[1][i];
	}
	if (err)
		return err;
	qsort(ratio, TURNS, sizeof *ratio, by_value);
	hd_json_open_object(w, "duel");
	put_row(w, "kept", k[0], value[0], TURNS);
	put_row(w, "best", k[1], value[1], TURNS);
	hd_json_put_f64(w, "ratio", ratio[TURNS / 2]);
	hd_json_put_f64(w, "low", ratio[TURNS / 4]);
	hd_json_put_f64(w, "high", ratio[TURNS - 1 - TURNS / 4]);
	hd_json_close(w);
	return HD_OK;
}

/* All depths, and sizes from 16 KiB on, in turns; then the best of them beside what the tuner kept. */
static enum hd_err sweep(struct tuned *t, struct hd_ranges_knobs kept, struct hd_json_writer *w)
{
	struct hd_ranges_knobs grid[SWEPT], pair[2] = { kept };
	double value[SWEPT][ROUNDS], most = -1;
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	for (uint32_t q = 1; q <= HD_RANGES_DEPTH; q *= 2)
		for (uint32_t b = PIECE; b <= HD_RANGES_SIZE_MAX; b *= 2)
			if ((uint64_t)q * b <= TUNED_MEMORY)
				grid[n++] = (struct hd_ranges_knobs){ q, b, 0 };
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < n && !err; i++)
			err = measure_rate(t, grid[i], &value[i][round]);
	if (err)
		return err;
	hd_json_open_array(w, "sweep");
	for (uint32_t i = 0; i < n; i++) {
		put_row(w, NULL, grid[i], value[i], ROUNDS);
		if (value[i][ROUNDS / 2] > most) {
			most = value[i][ROUNDS / 2];
			pair[1] = grid[i];
		}
	}
	hd_json_close(w);
	return duel(t, pair, w);
}

static enum hd_err tune(struct tuned *t, struct hd_tune *tuner)
{
	const bool far = hd_blob_is_url(t->blob->name), bound = t->cmd->args.has[HD_OPT_FOR];
	const bool gaps = t->blob->size_bytes >= 2 * PIECE + GAP_MOST;
	const int64_t since = hd_clock_now_ns(&t->cmd->clock);
	const uint64_t most_ms = hd_args_count(&t->cmd->args, HD_OPT_FOR, SEARCH_MS);
	enum hd_err err = HD_OK;
	uint64_t bytes;
	int64_t ns;

	const struct hd_tune_rules rules = { .memory_bytes = TUNED_MEMORY, .gaps = gaps,
		.budget_ns = (int64_t)(most_ms < INT32_MAX ? most_ms : INT32_MAX) * HD_NS_PER_MS,
		.budget_bytes = far && !bound ? SEARCH_BYTES : 0 };
	hd_tune_init(tuner, &rules);
	tuner->say = note;
	tuner->user = t;
	while (tuner->phase != HD_TUNE_KEEP && !err) {
		if (t->nsamples && hd_clock_now_ns(&t->cmd->clock) - since >= rules.budget_ns) {
			hd_tune_stop(tuner);
			break;
		}
		t->pairs = tuner->phase == HD_TUNE_GAP;
		err = measure(t, hd_tune_knobs(tuner), tuner->phase == HD_TUNE_START, &bytes, &ns);
		if (!err)
			hd_tune_sample(tuner, bytes, ns, true);
	}
	t->pairs = false;
	if (!gaps)
		tuner->kept.gap_bytes = hd_blob_knobs(t->blob).gap_bytes;
	return err;
}

static enum hd_err tune_and_print(struct tuned *t)
{
	const bool json = t->cmd->args.has[HD_OPT_JSON], sweeps = t->cmd->args.has[HD_OPT_SWEEP];
	struct hd_json_writer *w = &t->decisions;
	struct hd_tune tuner;

	hd_text_init(&t->said, &t->cmd->arena);
	hd_json_writer_init(w, &t->said);
	hd_json_open_object(w, NULL);
	if (t->explain && json)
		hd_json_open_array(w, "decisions");
	enum hd_err err = tune(t, &tuner);
	if (err)
		return err;
	if (t->explain && json)
		hd_json_close(w);
	hd_json_put_text(w, "name", t->blob->name);
	hd_json_put_text(w, "store", t->blob->ops->name);
	if (t->blob->by)
		hd_json_put_text(w, "by", t->blob->by);
	hd_json_put_i64(w, "depth", tuner.kept.depth);
	hd_json_put_i64(w, "size_bytes", tuner.kept.size_bytes);
	hd_json_put_i64(w, "gap_bytes", tuner.kept.gap_bytes);
	hd_json_put_f64(w, "bytes_s", tuner.kept_value);
	hd_json_put_i64(w, "samples", t->nsamples);
	hd_json_put_i64(w, "races", tuner.races);
	err = sweeps ? sweep(t, tuner.kept, w) : HD_OK;
	hd_json_close(w);
	if (!err && (json || sweeps))
		printf("%s\n", t->said.at);
	else if (!err)
		printf("%s: depth %u, size %u KiB, gap %u KiB: %.1f MB/s, by %u samples\n", t->blob->name,
			tuner.kept.depth, tuner.kept.size_bytes >> 10, tuner.kept.gap_bytes >> 10,
			tuner.kept_value / 1e6, t->nsamples);
	return err;
}

/* Of the job's keys those that say how a store is read. */
static enum hd_err take_rules(struct hd_cmd *cmd, struct hd_blob_rules *rules)
{
	static const struct { const char *word; enum hd_blob_direct direct; } directs[] = {
		{ "data.direct=auto", HD_DIRECT_AUTO }, { "data.direct=always", HD_DIRECT_ALWAYS },
		{ "data.direct=never", HD_DIRECT_NEVER },
	};
	bool known = true;

	for (uint32_t i = 0; i < cmd->args.nsets && known; i++) {
		const char *word = cmd->args.set[i];
		known = false;
		for (size_t k = 0; k < sizeof directs / sizeof *directs; k++)
			if (!strcmp(word, directs[k].word)) {
				rules->direct = directs[k].direct;
				known = true;
			}
		static const char *const api[] = { "data.api=auto", "data.api=uring", "data.api=threads" };
		for (size_t k = 0; k < sizeof api / sizeof *api; k++)
			if (!strcmp(word, api[k])) {
				rules->api = (enum hd_blob_api)k;
				known = true;
			}
		if (!strcmp(word, "data.plain_http=true"))
			rules->plain = known = true;
		if (!strncmp(word, "data.endpoint=", 14)) {
			rules->endpoint = word + 14;
			known = true;
		}
		if (!known)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"-s %s: data tune takes data.direct, data.plain_http, data.api "
				"and data.endpoint", word);
	}
	return HD_OK;
}

static bool is_job(const char *name)
{
	static const char *const ends[] = { ".yaml", ".yml", ".json" };
	const size_t len = strlen(name);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (len > strlen(ends[i]) && !strcmp(name + len - strlen(ends[i]), ends[i]))
			return !hd_blob_is_url(name);
	return false;
}

/* The first shard of numbers in braces, else the path as it is. */
static enum hd_err first_shard(struct hd_cmd *cmd, const char *path, const char **name)
{
	const char *open = strchr(path, '{'), *dots = open ? strstr(open, "..") : NULL;
	const char *close = dots ? strchr(dots, '}') : NULL;
	char *text = hd_arena_take(&cmd->arena, strlen(path) + 1, 1);

	if (!text)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the name of a shard");
	*name = text;
	if (close)
		(void)snprintf(text, strlen(path) + 1, "%.*s%.*s%s", (int)(open - path), path,
			(int)(dots - open - 1), open + 1, close + 1);
	else
		(void)snprintf(text, strlen(path) + 1, "%s", path);
	return hd_blob_is_url(text) || !strpbrk(text, "*?") ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"%s is a glob: name one of its files", path);
}

static const char *text_of(const struct hd_job *job, enum hd_job_key key)
{
	return job->value[key].is_none ? NULL : hd_job_text(job, key);
}

/* The store of a job's data, read as the job says. */
static enum hd_err take_job(struct hd_cmd *cmd, struct hd_blob_rules *rules, const char **name)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	enum hd_err err = job ? hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL) :
		hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a job");

	if (err)
		return err;
	if (!text_of(job, HD_JOB_DATA_PATH))
		return hd_fail(&cmd->diag, HD_E_INVAL, "%s names no data.path: there is no store to tune for",
			cmd->args.pos[0]);
	rules->endpoint = text_of(job, HD_JOB_DATA_ENDPOINT);
	rules->region = text_of(job, HD_JOB_DATA_REGION);
	rules->plain = hd_job_int(job, HD_JOB_DATA_PLAIN) != 0;
	rules->direct = (enum hd_blob_direct)hd_job_int(job, HD_JOB_DATA_DIRECT);
	rules->api = (enum hd_blob_api)hd_job_int(job, HD_JOB_DATA_API);
	return first_shard(cmd, hd_job_text(job, HD_JOB_DATA_PATH), name);
}

static void say_waits(void *user, const char *text)
{
	(void)user;
	fprintf(stderr, "waiting: %s\n", text);
}

static enum hd_err verb_data_tune(struct hd_cmd *cmd)
{
	struct tuned t = { .cmd = cmd, .explain = cmd->args.has[HD_OPT_EXPLAIN] };
	struct hd_blob_rules rules = { .direct = HD_DIRECT_NEVER, .tries = TRIES, .waits = say_waits };
	const char *name = cmd->args.pos[0];
	enum hd_err err = is_job(name) ? take_job(cmd, &rules, &name) : take_rules(cmd, &rules);

	if (!err)
		err = hd_blob_open(&t.blob, name, &rules, &cmd->diag);
	if (!err && !t.blob->size_bytes)
		err = hd_fail(&cmd->diag, HD_E_INPUT, "%s is empty", cmd->args.pos[0]);
	if (!err)
		err = hd_memory_take(SLOTS * TUNED_MEMORY, HD_MEMORY_LAZY, &t.room, &cmd->diag);
	if (!err)                         /* pages are there before a sample is: large ones would seem slow */
		memset(t.room.at, 0, t.blob->size_bytes < SLOTS * TUNED_MEMORY ? t.blob->size_bytes :
			SLOTS * TUNED_MEMORY);
	if (!err)
		err = tune_and_print(&t);
	hd_blob_close(t.blob);
	hd_memory_give(&t.room);
	return err;
}

const struct hd_verb hd_verb_data_tune = {
	.name = "data tune", .args = "FILE|URL|JOB", .npos_min = 1, .npos_max = 1,
	.about = "find how deep and in what pieces a store is best read",
	.more =
		"By the tuner that training follows where steps wait: more in flight until that brings no "
		"more, then probes, their neighbours, and what is cheaper, in races of many turns. The knobs "
		"are those of the least memory within 2 % of the best. "
		"-s data.direct=always: past the page cache, without which a file that was read before is "
		"read from memory. Of a JOB (a file that ends in .yaml or .json) it is the first shard of "
		"its data, read as its keys say. The gap is that of neighbours which are better read on to "
		"than asked for apart. A server that is silent for 3 s is named; after three tries of a "
		"request it ends. --for: after that time it keeps the best that it has seen; without it "
		"after 30 s, or, of an object, 16 GiB. --sweep: all depths and sizes in turns, then "
		"the best of these beside what was kept, in 15 turns.",
	.opts = HD_OPTS(HD_OPT_EXPLAIN, HD_OPT_SWEEP, HD_OPT_FOR, HD_OPT_SET),
	.run = verb_data_tune, .test = "program_store.sh",
};
