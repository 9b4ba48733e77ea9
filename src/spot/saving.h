/* saving.h -- how far apart checkpoints are with `checkpoint.every: auto`.
 *
 * The coordinator of a run asks it at commits, a run in one process after each checkpoint.
 *
 * 1. What a checkpoint costs is what training stood for it; each new one is a quarter of the mean.
 * 2. Checkpoints are as far apart as loses least: sqrt(2 cost / losses that go back to one), by which a loss
 *    costs half an interval. At most HD_SPOT_SAVE_S, since not each loss can be foreseen; at least
 *    HD_SAVING_COSTS times the cost and HD_SAVING_LEAST_MS.
 * 3. What is there stays until another interval is HD_SAVING_GAIN times as long, or as short. By then the
 *    wrong one costs less than 3 % of what checkpoints and losses cost together. Before a cost is known it
 *    is HD_SAVING_FIRST_MS.
 *
 * Pure; a plain value. */
#ifndef HD_SPOT_SAVING_H
#define HD_SPOT_SAVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HD_SAVING_FIRST_MS = 60000, HD_SAVING_LEAST_MS = 1000, HD_SAVING_COSTS = 4, HD_SAVING_WORDS = 120,
	HD_SAVING_TEXT = 64 };
#define HD_SAVING_GAIN 1.25

struct hd_saving {
	uint64_t every_ms;                /* in force */
	double cost_s;                    /* 0: not known */
};

void hd_saving_begin(struct hd_saving *saving);         /* nothing is known */
/* A checkpoint was saved, for which training stood so long. */
void hd_saving_saved(struct hd_saving *saving, double took_s);
/* By how many losses go back to a checkpoint in an hour. True: the interval is another one. */
bool hd_saving_judge(struct hd_saving *saving, double back_h);
/* For users: the interval and what it was judged by. Returns `out`. */
const char *hd_saving_why(const struct hd_saving *saving, double back_h, char out[HD_SAVING_WORDS]);
/* As it lies in the run's folder: "MS US\n", the interval and the cost. Returns the length. */
size_t hd_saving_put(const struct hd_saving *saving, char out[HD_SAVING_TEXT]);
/* False, and nothing is taken: this is no such text. */
bool hd_saving_take(struct hd_saving *saving, const char *text, size_t len);

#endif
