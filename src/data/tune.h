/* tune.h -- how deep and in what pieces a store is read: throughputs of samples in, knobs out.
 *
 * A set that is read by ranges and `heddle data tune` feed it. Samples come from reading that is done
 * anyway.
 *
 * 1. Probes: six pairs of depth and size. A fit t(b) = t0 + b / B1 of those of depth 1 (least squares of
 *    relative errors), and the greatest throughput seen, give X(q, b) = min(q b / (t0 + b / B1), Xmax): its
 *    *guess* is the least q b with X >= 0.95 Xmax. That takes requests for independent, which they are not
 *    where processors copy what they bring: so the search begins at the best probe, and the guess is the
 *    first that it is compared with.
 * 2. Search by coordinates (depth, size, gap): the present knobs and a neighbour are sampled in turns, 3
 *    each where their medians are then more than a factor of 1.5 apart and the intervals [least, most] do not
 *    meet; else 5 each; where the intervals meet, 15 each, and the interval is that of the 4th to the 12th.
 *    Better: the intervals apart, or more in 12 of 15 turns; and the median more than 3 % up. A neighbour of
 *    less q b is taken, too, if its median is not more than 3 % down. Ways up come first. After one that is
 *    taken the next lies twice as far the same way. At most 40 comparisons.
 * 3. Of all that were sampled so, those of the least q b are kept whose median is within 5 % of the best; of
 *    equal ones those of the smaller depth.
 * 4. Kept until three samples in a row are 15 % below with waiting: then it searches again. HD_TUNE_QUIET
 *    samples without waiting: depth one down; waiting after that: one up, and HD_TUNE_HOLD samples without a
 *    change.
 * 5. depth * size <= the memory, always. Equal samples, equal knobs.
 *
 * Pure: no clock, no allocation. */
#ifndef HD_DATA_TUNE_H
#define HD_DATA_TUNE_H

#include <stdbool.h>

#include "data/ranges.h"

enum {
	HD_TUNE_SEEN = 64, HD_TUNE_MORE = 15, HD_TUNE_FEW = 5, HD_TUNE_LEAST = 3, HD_TUNE_WINS = 12,
	HD_TUNE_COMPARISONS = 40, HD_TUNE_QUIET = 50, HD_TUNE_HOLD = 1000, HD_TUNE_TEXT = 160 };

struct hd_tune_seen { struct hd_ranges_knobs knobs; double median; };

/* Two pairs of knobs in turns. */
struct hd_tune_pair { struct hd_ranges_knobs knobs[2]; double value[2][HD_TUNE_MORE]; uint32_t n; };

enum hd_tune_phase { HD_TUNE_PROBE, HD_TUNE_SEARCH, HD_TUNE_KEEP };

struct hd_tune {
	uint64_t memory_bytes;
	bool gaps;                        /* the gap is searched */
	enum hd_tune_phase phase;
	struct hd_ranges_knobs now, kept;
	uint32_t probe; double probed[6];
	struct hd_tune_pair pair;
	/* way: of the neighbour; still: ways without a better one; far: doublings to the neighbour */
	uint32_t way, still, far, comparisons;
	struct hd_tune_seen seen[HD_TUNE_SEEN]; uint32_t nseen;
	double kept_value;
	uint32_t worse, quiet, hold; bool lowered;
	/* what was decided, a line each; NULL: nothing listens */
	void (*say)(void *user, const char *text);
	void *user;
};

void hd_tune_init(struct hd_tune *tune, uint64_t memory_bytes, bool gaps);
/* With these the next sample is to be read. */
struct hd_ranges_knobs hd_tune_knobs(const struct hd_tune *tune);
/* It had this throughput (bytes a second), and whoever takes it has waited. */
void hd_tune_sample(struct hd_tune *tune, double bytes_s, bool waited);
/* Ends a search, after one sample at least: kept as in 3, of what was sampled so far; of probes where nothing
 * was compared yet. */
void hd_tune_stop(struct hd_tune *tune);

#endif
