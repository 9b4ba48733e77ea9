#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/philox.h"
#include "sys/memory.h"
#include "data/blob.h"
#include "data/tune.h"
#include "cmd/verbs.h"

/* Half of the memory of requests: places of twice the depth. */
#define TUNED_MEMORY (HD_RANGES_MEMORY / 2)
enum { REQUESTS = 50, SAMPLE_MS = 100, SAMPLE_MOST_MS = 1000, SWEEP_MOST_MS = 300, ROUNDS = 3,
	SLOTS = 2 };

/* A store that is measured. */
struct tuned { struct hd_cmd *cmd; struct hd_blob *blob; struct hd_memory room; uint32_t draws;
	uint32_t nsamples;
	struct hd_text said; struct hd_json_writer decisions; bool explain; };

static void note(void *user, const char *text)
{
	struct tuned *t = user;

	if (t->explain && t->cmd->args.has[HD_OPT_JSON])
		hd_json_put_text(&t->decisions, NULL, text);
	else if (t->explain)
		printf("%s\n", text);
}

/* Requests at places that are drawn, twice as many as may be in flight. */
static enum hd_err read_once(struct tuned *t, struct hd_ranges_knobs k, uint64_t *bytes, uint32_t *n)
{
	struct hd_range range[SLOTS * HD_RANGES_DEPTH];
	const uint64_t size = t->blob->size_bytes < k.size_bytes ? t->blob->size_bytes : k.size_bytes;
	const uint64_t places = t->blob->size_bytes / size;

	for (uint32_t i = 0; i < SLOTS * k.depth; i++) {
		const uint32_t counter[4] = { t->draws++, 0, 0, 1 };
		const struct hd_philox draw = hd_philox(counter, hd_philox_key(0, HD_RNG_NOISE));
		range[i] =
			(struct hd_range){ (((uint64_t)draw.word[0] << 32 | draw.word[1]) % places) * size,
			size,
			(uint8_t *)t->room.at + i * size };
		*bytes += size;
	}
	*n += SLOTS * k.depth;
	hd_ranges_sort(range, SLOTS * k.depth);
	k.gap_bytes = 0;
	return hd_blob_read(t->blob, range, SLOTS * k.depth, &k, &t->cmd->diag);
}

/* At least so many requests and so long, whichever comes later; never longer than most_ms but for one turn.
 * */
static enum hd_err measure(struct tuned *t, struct hd_ranges_knobs k, int64_t most_ms,
	double *bytes_s)
{
	const int64_t since = hd_clock_now_ns(&t->cmd->clock);
	enum hd_err err = HD_OK;
	uint64_t bytes = 0;
	int64_t ns = 0;
	uint32_t n = 0;

	while (!err && (n < REQUESTS || ns < SAMPLE_MS * HD_NS_PER_MS) &&
		ns < most_ms * HD_NS_PER_MS) {
		err = read_once(t, k, &bytes, &n);
		ns = hd_clock_now_ns(&t->cmd->clock) - since;
	}
	t->nsamples++;
	*bytes_s = ns > 0 ? (double)bytes * 1e9 / (double)ns : 0;
	return err;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Depths by 4 and sizes by 8, all in turns; the last row is what the tuner kept. */
static enum hd_err sweep(struct tuned *t, struct hd_ranges_knobs kept, struct hd_json_writer *w)
{
	struct hd_ranges_knobs grid[32];
	double value[32][ROUNDS];
	enum hd_err err = HD_OK;
	uint32_t n = 0;

	for (uint32_t q = 1; q <= HD_RANGES_DEPTH / 4; q *= 4)
		for (uint32_t b = 64 << 10; b <= 4 << 20; b *= 8)
			if ((uint64_t)q * b <= TUNED_MEMORY)
				grid[n++] = (struct hd_ranges_knobs){ q, b, 0 };
	grid[n++] = kept;
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < n && !err; i++)
			err = measure(t, grid[i], SWEEP_MOST_MS, &value[i][round]);
	hd_json_open_array(w, "sweep");
	for (uint32_t i = 0; i < n && !err; i++) {
		qsort(value[i], ROUNDS, sizeof value[i][0], by_value);
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "depth", grid[i].depth);
		hd_json_put_i64(w, "size_bytes", grid[i].size_bytes);
		hd_json_put_f64(w, "bytes_s", value[i][ROUNDS / 2]);
		hd_json_put_f64(w, "least_bytes_s", value[i][0]);
		hd_json_put_f64(w, "most_bytes_s", value[i][ROUNDS - 1]);
		hd_json_close(w);
	}
	hd_json_close(w);
	return err;
}

static enum hd_err tune(struct tuned *t, struct hd_tune *tuner)
{
	enum hd_err err = HD_OK;
	double bytes_s;

	const int64_t since = hd_clock_now_ns(&t->cmd->clock);
	const uint64_t most_ms = hd_args_count(&t->cmd->args, HD_OPT_FOR, UINT64_MAX);

	hd_tune_init(tuner, TUNED_MEMORY, false);
	tuner->say = note;
	tuner->user = t;
	while (tuner->phase != HD_TUNE_KEEP && !err) {
		const int64_t ms = (hd_clock_now_ns(&t->cmd->clock) - since) / HD_NS_PER_MS;
		if (t->nsamples && (uint64_t)ms >= most_ms) {
			hd_tune_stop(tuner);
			break;
		}
		err = measure(t, hd_tune_knobs(tuner), SAMPLE_MOST_MS, &bytes_s);
		if (!err)
			hd_tune_sample(tuner, bytes_s, true);
	}
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
	hd_json_put_f64(w, "bytes_s", tuner.kept_value);
	hd_json_put_i64(w, "samples", t->nsamples);
	hd_json_put_i64(w, "comparisons", tuner.comparisons);
	err = sweeps ? sweep(t, tuner.kept, w) : HD_OK;
	hd_json_close(w);
	if (!err && (json || sweeps))
		printf("%s\n", t->said.at);
	else if (!err)
		printf("%s: depth %u, size %u KiB: %.1f MB/s, by %u samples\n", t->blob->name,
			tuner.kept.depth,
			tuner.kept.size_bytes >> 10, tuner.kept_value / 1e6, t->nsamples);
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
		if (!strcmp(word, "data.plain_http=true"))
			rules->plain = known = true;
		if (!strncmp(word, "data.endpoint=", 14)) {
			rules->endpoint = word + 14;
			known = true;
		}
		if (!known)
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"-s %s: data tune takes data.direct, data.plain_http "
				"and data.endpoint", word);
	}
	return HD_OK;
}

static enum hd_err verb_data_tune(struct hd_cmd *cmd)
{
	struct tuned t = { .cmd = cmd, .explain = cmd->args.has[HD_OPT_EXPLAIN] };
	struct hd_blob_rules rules = { .direct = HD_DIRECT_NEVER };
	enum hd_err err = take_rules(cmd, &rules);

	if (!err)
		err = hd_blob_open(&t.blob, cmd->args.pos[0], &rules, &cmd->diag);
	if (!err && !t.blob->size_bytes)
		err = hd_fail(&cmd->diag, HD_E_INPUT, "%s is empty", cmd->args.pos[0]);
	if (!err)
		err = hd_memory_take(SLOTS * TUNED_MEMORY, HD_MEMORY_LAZY, &t.room, &cmd->diag);
	if (!err)
		err = tune_and_print(&t);
	hd_blob_close(t.blob);
	hd_memory_give(&t.room);
	return err;
}

const struct hd_verb hd_verb_data_tune = {
	.name = "data tune", .args = "FILE|URL", .npos_min = 1, .npos_max = 1,
	.about = "find how deep and in what pieces a store is best read",
	.more =
		"By the tuner that training follows where steps wait: probes, a fit, then comparisons in "
		"turns. The knobs are those of the least memory within 5 % of the best. "
		"-s data.direct=always: past the page cache, without which a file that was read before is "
		"read from memory. --for: after that time it keeps the best that it has seen.",
	.opts = HD_OPTS(HD_OPT_EXPLAIN, HD_OPT_SWEEP, HD_OPT_FOR, HD_OPT_SET),
	.run = verb_data_tune, .test = "program_store.sh",
};
