/* tune.h -- how deep and in what pieces a store is read: samples of reading in, knobs out.
 *
 * A set that is read by ranges and `heddle data tune` feed it. Samples come from reading that is done
 * anyway.
 *
 * 1. A *race*: its entrants are sampled in turns, round by round, each round beginning one further on. A
 *    value counts as its part of its round's mean, so that what all share (another load, a slow minute)
 *    cancels; an entrant's mark is the mean of the middle half of these. After each round those leave whose
 *    mark is too far behind the first, by a bound that narrows with the rounds. It ends when one is left, or
 *    after as many as its kind has, HD_TUNE_ROUNDS at most.
 * 2. Start, as TCP does: a sample each with four times as much in flight as the one before, until two in a
 *    row are not 1.1 times the best, which is *the best so far* then. Where latency rules that is most of
 *    what there is, after a second.
 *    Probes: a race of it with depths by 4 and sizes by 8, all of the field, the smaller first; its first is
 *    the best so far. No entrant of any race has more in flight than the fastest brings in
 *    max(HD_TUNE_FLIGHT_MS, 8 times what one small request takes): beyond that requests wait for one
 *    another. None has so little that in proportion to another sample it could not come to 0.4 of the
 *    fastest: c times as much in flight brings c times as much at most.
 *    In a race a sample that is deeper than all before, or has more in flight, is taken once more, and that
 *    counts: connections are opened in the first, and buffers grow.
 * 3. Neighbours: the best so far in a race with the knobs around it, near and two steps off, that were not
 *    judged yet. It changes only for one more than 2 % better, and then its neighbours follow, HD_TUNE_MOVES
 *    times at most.
 * 4. Cheaper: the best so far in a race with those of less depth * size that came near it, and with its own
 *    halves and quarters; the cheapest within 2 % of it is taken; its halves and quarters race against the
 *    same best, until there is nothing cheaper. So losses do not add up.
 * 5. Gap, where it is searched: a race of gaps; the least within 5 % of the first.
 * 6. A budget of time and bytes of samples, 0: none. After six tenths of it (2, 3) give way to (4), at its
 *    end what is best so far is kept; a race that did not end changes it only by three rounds or more.
 * 7. HD_TUNE_CALM samples without waiting in a search: the knobs at hand are good enough, and kept.
 * 8. Kept until three samples in a row are 15 % below with waiting (where a search ended by 7: with waiting):
 *    then it searches again, from (3) on. HD_TUNE_QUIET samples without waiting: depth one down; waiting
 *    after that: one up, and HD_TUNE_HOLD samples without a change.
 * 9. depth * size <= the memory, and size at most `size_most`, always. Equal samples, equal knobs.
 *
 * Pure: no clock, no allocation. */
#ifndef HD_DATA_TUNE_H
#define HD_DATA_TUNE_H

#include <stdbool.h>

#include "data/ranges.h"

enum { HD_TUNE_ENTRANTS = 20, HD_TUNE_ROUNDS = 15, HD_TUNE_MOVES = 8, HD_TUNE_SEEN = 108,
	HD_TUNE_FLIGHT_MS = 500, HD_TUNE_CALM = 5, HD_TUNE_QUIET = 50, HD_TUNE_HOLD = 1000,
	HD_TUNE_TEXT = 160 };

/* mark: beside the best so far; rounds: that it is made of */
struct hd_tune_seen { struct hd_ranges_knobs knobs; double mark; uint32_t rounds; };
struct hd_tune_entrant { struct hd_ranges_knobs knobs; double rate[HD_TUNE_ROUNDS], mark; bool out; };

enum hd_tune_phase { HD_TUNE_START, HD_TUNE_PROBE, HD_TUNE_NEAR, HD_TUNE_CHEAPER, HD_TUNE_GAP, HD_TUNE_KEEP };

struct hd_tune_rules {
	uint64_t memory_bytes;
	uint32_t size_most;               /* 0: HD_RANGES_SIZE_MAX */
	uint32_t request_bytes;           /* none is longer, whatever the size; 0: as the size says */
	uint32_t depth_first;             /* of a start */
	uint32_t depth_least;             /* of probes */
	bool gaps;                        /* the gap is searched */
	uint64_t budget_bytes; int64_t budget_ns;        /* see 6 */
};

struct hd_tune {
	struct hd_tune_rules rules;
	uint64_t spent_bytes; int64_t spent_ns; bool stopped;
	enum hd_tune_phase phase;
	/* the race at hand: `turn` of its round are sampled; entrant 0 stays where it is the best so far */
	struct hd_tune_entrant entrant[HD_TUNE_ENTRANTS];
	uint32_t nentrants, round, turn, races, moves;
	struct hd_ranges_knobs best, cheap;
	double fastest, small_s;          /* bytes a second; what the first sample's requests took */
	double most_part; uint64_t least; /* of all samples: rate / (depth * size), depth * size */
	uint32_t first; bool again;       /* of a start: the best one's turn; its last is sampled twice */
	uint32_t deepest; uint64_t most;  /* of what was sampled: depth, depth * size */
	struct hd_tune_seen seen[HD_TUNE_SEEN]; uint32_t nseen;
	struct hd_ranges_knobs now, kept; /* now: while it keeps */
	double best_rate, kept_value;
	uint32_t worse, quiet, hold; bool lowered, calm; /* calm: see 7 */
	/* what was decided, a line each; NULL: nothing listens */
	void (*say)(void *user, const char *text);
	void *user;
};

void hd_tune_init(struct hd_tune *tune, const struct hd_tune_rules *rules);
/* With these the next sample is to be read. */
struct hd_ranges_knobs hd_tune_knobs(const struct hd_tune *tune);
/* So much was read with them in so long, and whoever takes it has waited. */
void hd_tune_sample(struct hd_tune *tune, uint64_t bytes, int64_t ns, bool waited);
/* Ends a search, after one sample at least: as where its budget ends. */
void hd_tune_stop(struct hd_tune *tune);

#endif
