/* fair.h -- whether a store serves all workers alike: windows of what each wanted and got in, slow workers
 * and causes out.
 *
 * 1. y = min(1, delivered / demanded) of each worker that demanded anything; J = (sum y)^2 / (n sum y^2) is
 *    Jain's index. All y = 0: the store stands still, and no worker is flagged.
 * 2. A worker is slow in a window if its median service time, or its waiting, is above median + 3 MAD and
 *    above 1.25 medians of all workers; MAD = max(median absolute deviation, 5 % of the median). Of fewer
 *    than four workers: above 1.5 of the least of the others.
 * 3. Flagged: in at least 4 of the last 6 windows J < 0.95 and the worker is slow and has y < 0.95. One
 *    that was flagged before stays so while that holds for 0.98: else answers would stop half-way.
 * 4. The cause: service slow at this one on all files: its path or device; on some files, and there at most
 *    of the workers, in at least half of its time: the server of these; waiting alone: it has fewer requests
 *    in flight than half of the workers have, or else its own processor.
 * 5. One answer in six windows, in this order: the depth of a worker without waiting one down, not below
 *    where it began to wait; that of the flagged one up, not above its knee; then a move of virtual nodes
 *    away from it is proposed. Where its own processor is the cause depths change nothing: a move is all.
 *    After an answer by which the flagged one got not a twentieth more of what it wants, that one is taken
 *    back, and its kind is left out. All depths are as before once J >= 0.98 six times; each time that
 *    answers are needed again after that, twice as many times, HD_FAIR_LONGEST at most.
 *
 * Pure. Medians of an even number are the lower one; ties by index. */
#ifndef HD_DATA_FAIR_H
#define HD_DATA_FAIR_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_FAIR_WORKERS = 64, HD_FAIR_FILES = 8, HD_FAIR_WINDOWS = 6, HD_FAIR_OF = 4,
	HD_FAIR_LONGEST = 96 };

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
	HD_FAIR_PROCESSOR, HD_FAIR_DEPTH };

struct hd_fair_found { bool flagged[HD_FAIR_WORKERS]; enum hd_fair_cause cause[HD_FAIR_WORKERS]; double jain;
	bool stalled; };

double hd_fair_jain(const struct hd_fair_window *window);
/* `window`: the last ones, oldest first, at most HD_FAIR_WINDOWS, all of the same workers. `was`: those that
 * were flagged before; NULL: none. */
void hd_fair_judge(const struct hd_fair_window *window, uint32_t n, const bool *was,
	struct hd_fair_found *found);
const char *hd_fair_cause_text(enum hd_fair_cause cause);

enum hd_fair_act { HD_FAIR_STAY, HD_FAIR_LOWER, HD_FAIR_DEEPEN, HD_FAIR_MOVE, HD_FAIR_BACK, HD_FAIR_UNDO };

/* worker: by its place in the window; of UNDO and STAY none */
struct hd_fair_answer { enum hd_fair_act act; uint32_t worker; };

/* Depths that change. */
/* holds: windows of J >= 0.98 until depths are as before; undone: they were */
struct hd_fair { uint32_t windows, since, good, holds; bool any, undone; uint32_t floor[HD_FAIR_WORKERS],
	before[HD_FAIR_WORKERS];
	struct hd_fair_answer last; uint32_t last_depth; double last_share;       /* of the flagged one */
	bool vain[HD_FAIR_UNDO + 1]; };
void hd_fair_init(struct hd_fair *fair);
/* After each window: depth[i] of the last one is changed in place by all answers but STAY and MOVE. BACK: a
 * lowered worker began to wait, and has the depth before. */
struct hd_fair_answer hd_fair_react(struct hd_fair *fair, const struct hd_fair_window *last,
	const struct hd_fair_found *found, uint32_t depth[HD_FAIR_WORKERS]);

#endif
