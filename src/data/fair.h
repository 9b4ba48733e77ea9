/* fair.h -- whether a store serves all workers alike: windows of what each wanted and got in, slow workers
 * and causes out.
 *
 * 1. y = min(1, delivered / demanded) of each worker that demanded anything; J = (sum y)^2 / (n sum y^2) is
 *    Jain's index. All y = 0: the store stands still, and no worker is flagged.
 * 2. A worker is slow in a window if its median service time, or its waiting, is above median + 3 MAD and
 *    above 1.25 medians of all workers; MAD = max(median absolute deviation, 5 % of the median). Of fewer
 *    than four workers: above 1.5 of the least of the others.
 * 3. Flagged: in at least 4 of the last 6 windows J < 0.95 and the worker is slow.
 * 4. The cause: service slow at this one on all files: its path or device; on some files, and there at most
 *    of the workers: the server of these; waiting alone: its own processor.
 * 5. One reaction in six windows, in this order: a depth one down of a worker without waiting, not below
 *    where it began to wait; the depth of the flagged one up, not above its knee. Undone once J >= 0.98 six
 *    times.
 *
 * Pure. Medians of an even number are the lower one; ties by index. */
#ifndef HD_DATA_FAIR_H
#define HD_DATA_FAIR_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_FAIR_WORKERS = 64, HD_FAIR_FILES = 8, HD_FAIR_WINDOWS = 6, HD_FAIR_OF = 4 };

/* One worker in one window of ten seconds. */
struct hd_fair_part {
	double demanded, delivered;       /* bytes */
	double waited_s;
	double service_s, service_p99_s;  /* median of its requests; p99 is for reports alone */
	double file_service_s[HD_FAIR_FILES];    /* by group of files; 0: it read none of it */
	uint32_t depth, knee;             /* as it reads, and beyond which nothing is gained */
};

struct hd_fair_window { uint32_t nworkers; struct hd_fair_part part[HD_FAIR_WORKERS]; };

enum hd_fair_cause { HD_FAIR_NONE, HD_FAIR_STALLED, HD_FAIR_DEVICE, HD_FAIR_SERVER,
	HD_FAIR_PROCESSOR };

struct hd_fair_found { bool flagged[HD_FAIR_WORKERS]; enum hd_fair_cause cause[HD_FAIR_WORKERS]; double jain;
	bool stalled; };

double hd_fair_jain(const struct hd_fair_window *window);
/* `window`: the last ones, oldest first, at most HD_FAIR_WINDOWS, all of the same workers. */
void hd_fair_judge(const struct hd_fair_window *window, uint32_t n, struct hd_fair_found *found);
const char *hd_fair_cause_text(enum hd_fair_cause cause);

/* Depths that change. */
struct hd_fair { uint32_t windows, since, good; bool any; uint32_t floor[HD_FAIR_WORKERS],
	before[HD_FAIR_WORKERS]; };
void hd_fair_init(struct hd_fair *fair);
/* After each window: depth[i] of the last one is changed in place; true: one was. */
bool hd_fair_react(struct hd_fair *fair, const struct hd_fair_window *last, const struct hd_fair_found *found,
	uint32_t depth[HD_FAIR_WORKERS]);

#endif
