#include "data/shards_int.h"

#include <stdio.h>
#include <string.h>

#include "sys/clock.h"

enum { AGAIN_S = 5 };

/* What others learn of a set's reading (dataset.h), and ask of it. */

void hd_shards_say(void *user, const char *text)
{
	struct hd_shard_set *set = user;

	if (set->nsaid == HD_SHARDS_SAID)
		return;
	char *line = set->said[(set->first_said + set->nsaid++) % HD_SHARDS_SAID];
	(void)snprintf(line, HD_READING_TEXT, "%s", text);
	if (set->nsaid == HD_SHARDS_SAID)
		(void)snprintf(line, HD_READING_TEXT, "decisions came faster than they were taken: some are "
			"not here");
}

void hd_shards_waits(void *user, const char *text)
{
	struct hd_shard_set *set = user;

	const int64_t now_ns = (int64_t)hd_clock_raw_ns();

	hd_lock_take(&set->lock);
	/* many reads wait for one server */
	const bool again = set->awaits_ns && now_ns - set->awaits_ns < AGAIN_S * HD_NS_PER_S;
	if (!again) {
		set->awaits_ns = now_ns;
		(void)snprintf(set->awaits, sizeof set->awaits, "%s", text);
	}
	void (*heard)(void *user, const char *text) = again ? NULL : set->heard;
	void *heard_user = set->heard_user;
	hd_lock_give(&set->lock);
	if (heard)
		heard(heard_user, text);
}

static bool waits(struct hd_dataset *data, char text[HD_READING_TEXT])
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	hd_lock_take(&set->lock);
	const bool is = set->awaits[0] && !set->heard;
	if (is)
		memcpy(text, set->awaits, HD_READING_TEXT);
	set->awaits[0] = '\0';
	hd_lock_give(&set->lock);
	return is;
}

static uint64_t looks(const struct hd_dataset *data)
{
	return atomic_load_explicit(&((const struct hd_shard_set *)data)->looks, memory_order_relaxed);
}

static void listen(struct hd_dataset *data, void (*heard)(void *user, const char *text), void *user)
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	hd_lock_take(&set->lock);
	set->heard_user = user;
	set->heard = heard;
	hd_lock_give(&set->lock);
}

static bool said(struct hd_dataset *data, char text[HD_READING_TEXT])
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	hd_lock_take(&set->lock);
	const bool is = set->nsaid > 0;
	if (is) {
		memcpy(text, set->said[set->first_said], HD_READING_TEXT);
		set->first_said = (set->first_said + 1) % HD_SHARDS_SAID;
		set->nsaid--;
	}
	hd_lock_give(&set->lock);
	return is;
}

/* What it would have read without waiting: takers that waited w of a time t took in (t - w) what they did. */
static double demanded(double delivered, double waited_s, double seconds)
{
	const double most = 0.99 * seconds, w = waited_s < most ? waited_s : most;

	return delivered <= 0 ? waited_s > 0 : seconds > 0 ? delivered * seconds / (seconds - w) : delivered;
}

static void window(struct hd_dataset *data, double seconds, uint32_t takers, struct hd_fair_part *part)
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	memset(part, 0, sizeof *part);
	hd_lock_take(&set->lock);
	const int64_t waited_ns = set->waited_ns;
	part->delivered = (double)(set->delivered - set->window_delivered);
	part->waited_s = (double)(waited_ns - set->window_waited_ns) * 1e-9 / (takers ? takers : 1);
	part->depth = set->knobs.depth;
	part->knee = set->tunes && set->tune.phase == HD_TUNE_KEEP ? set->tune.kept.depth : HD_RANGES_DEPTH;
	set->window_delivered = set->delivered;
	set->window_waited_ns = waited_ns;
	hd_served_window(&set->served, &set->seen, part);
	hd_lock_give(&set->lock);
	part->demanded = demanded(part->delivered, part->waited_s, seconds);
}

static void keep_depth(struct hd_dataset *data, uint32_t depth)
{
	struct hd_shard_set *set = (struct hd_shard_set *)data;

	hd_lock_take(&set->lock);
	if (!depth && set->kept_depth)
		set->knobs = set->tunes ? hd_tune_knobs(&set->tune) : hd_shards_knobs(set);
	if (depth)
		set->knobs = hd_ranges_bound((struct hd_ranges_knobs){ depth, set->knobs.size_bytes,
			set->knobs.gap_bytes }, HD_RANGES_MEMORY);
	set->kept_depth = depth;
	set->since_ns = 0;                /* a sample is of one depth */
	hd_lock_give(&set->lock);
}

const struct hd_reading_ops hd_shards_reading = { .window = window, .keep_depth = keep_depth, .said = said,
	.waits = waits, .looks = looks, .listen = listen };
