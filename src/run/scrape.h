/* scrape.h -- the numbers of a run as Prometheus reads them (text format 0.0.4), and the answerer of GET
 * /metrics.
 *
 * 1. Off by default (log.prometheus). It listens on a Unix socket or on the loopback, nowhere else.
 * 2. Counters count since this process holds the run; labels are words of this program, never names of
 *    tensors, files or users.
 * 3. One request at a time, HD_SCRAPE_PATIENCE_MS each; it answers from a copy, so a slow client keeps no
 *    step waiting.
 *
 * Ownership: open/close; closed ends its thread. Threads: the run's thread adds, the answerer reads, under a
 * lock that is held for a copy. */
#ifndef HD_RUN_SCRAPE_H
#define HD_RUN_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "sys/clock.h"

enum { HD_SCRAPE_PATIENCE_MS = 2000, HD_SCRAPE_TEXT = 1 << 14, HD_SCRAPE_BINS = 18, HD_SCRAPE_KINDS = 48,
       HD_SCRAPE_KIND = 24 };

/* Seconds of a step: up to 1, 2, 4, ... ms, then all. */
struct hd_scrape_bins { uint64_t n[HD_SCRAPE_BINS]; uint64_t count; double sum_s; };

struct hd_scrape_numbers {
	struct hd_scrape_bins step;
	uint64_t begun_step, step_number, samples, wire_bytes, preempted, inverted, redone, skipped;
	double wait_s, read_wait_s, loss, lr, gnorm, productive_s;
	double eval_loss, eval_accuracy;
	bool evaluated, has_accuracy;
	uint32_t workers, membership, plan;
	uint32_t nkinds;
	struct { char kind[HD_SCRAPE_KIND]; uint64_t n; } kind[HD_SCRAPE_KINDS];
	double up_s;
	uint64_t lines_lost;
};

void hd_scrape_step_took(struct hd_scrape_numbers *numbers, double s);
/* Of kinds beyond HD_SCRAPE_KINDS all count as "other". */
void hd_scrape_event(struct hd_scrape_numbers *numbers, const char *kind);
void hd_scrape_print(const struct hd_scrape_numbers *numbers, struct hd_text *text);

struct hd_scrape;
/* `address`: unix:PATH or HOST:PORT of the loopback; port 0: any. *at, a text of `cap` bytes, is where it
 * listens. HD_E_INVAL: no such address; HD_E_REFUSED: not of this machine, or taken. */
HD_MUST_USE enum hd_err hd_scrape_open(struct hd_scrape **scrape, struct hd_clock *clock, const char *address,
	char *at, size_t cap, struct hd_diag *diag);
void hd_scrape_set(struct hd_scrape *scrape, const struct hd_scrape_numbers *numbers);      /* copied */
void hd_scrape_close(struct hd_scrape *scrape);           /* takes NULL */

#endif
