/* testing_train.h -- a little training of three processes or of two, made forwards from its costs, for tests
 * of analyses. Not for the program.
 *
 * Each step they compute, send to all others, wait for all, and meet at the commit. The truth of a what-if is
 * the same run made with other costs. */
#ifndef HD_TIMELINE_ANALYZE_TESTING_TRAIN_H
#define HD_TIMELINE_ANALYZE_TESTING_TRAIN_H

#include "base/philox.h"
#include "timeline/analyze/testing.h"

enum { HD_TL_TRAIN_PROCESSES = 3, HD_TL_TRAIN_STEPS = 20 };

struct hd_tl_train {
	int64_t work[HD_TL_TRAIN_STEPS][HD_TL_TRAIN_PROCESSES],
		data[HD_TL_TRAIN_STEPS][HD_TL_TRAIN_PROCESSES], gate, queue,
			wire[HD_TL_TRAIN_PROCESSES][HD_TL_TRAIN_PROCESSES], delivery,
		commit;
	int64_t late[HD_TL_TRAIN_STEPS];  /* more than wire, of all transfers of a step */
	/* of a transfer; 0: 64 */
	uint64_t bytes[HD_TL_TRAIN_PROCESSES][HD_TL_TRAIN_PROCESSES];
	uint32_t n;               /* processes; at most HD_TL_TRAIN_PROCESSES */
	/* instructions that a step's work is in, of each process; 0: one */
	uint32_t ops[HD_TL_TRAIN_STEPS][HD_TL_TRAIN_PROCESSES];
};

static inline uint32_t hd_tl_train_draw(uint64_t seed, uint32_t *i, uint32_t below)
{
	return hd_philox((uint32_t[4]){ (*i)++, 0, 0, 0 }, hd_philox_key(seed, HD_RNG_USER)).word[0] % below;
}

static inline struct hd_tl_train hd_tl_train_of(uint64_t seed)
{
	struct hd_tl_train c = { .gate = 5, .queue = 7, .delivery = 11, .commit = 50,
		.n = HD_TL_TRAIN_PROCESSES };
	uint32_t i = 0;

	for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
		for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++) {
			c.work[s][p] = 1000 + hd_tl_train_draw(seed, &i, 1000);
			c.data[s][p] = 10 + hd_tl_train_draw(seed, &i, 500);
		}
	for (int p = 0; p < HD_TL_TRAIN_PROCESSES; p++)
		for (int q = 0; q < HD_TL_TRAIN_PROCESSES; q++)
			c.wire[p][q] = 100 + hd_tl_train_draw(seed, &i, 400);
	return c;
}

/* ns that it takes */
static inline int64_t hd_tl_train_record(const struct hd_tl_train *c, struct hd_tl_hand *h)
{
	int64_t now[HD_TL_TRAIN_PROCESSES] = { 0 }, begin = 0, ends[HD_TL_TRAIN_STEPS];

	hd_tl_hand_init(h, c->n);
	for (int s = 0; s < HD_TL_TRAIN_STEPS; s++) {
		int64_t sent[HD_TL_TRAIN_PROCESSES], last = 0;
		for (uint32_t p = 0; p < c->n; p++) {
			hd_tl_hand_wait(h, p, HD_WAIT_DATA, begin, begin + c->data[s][p]);
			sent[p] = begin + c->data[s][p] + c->work[s][p];
			now[p] = begin + c->data[s][p];
			for (uint32_t left = c->ops[s][p] ? c->ops[s][p] : 1; left; left--) {
				const int64_t t = now[p];
				now[p] += (sent[p] - t) / left;
				hd_tl_hand_op(h, p, 1, t, now[p]);
			}
		}
		for (uint32_t p = 0; p < c->n; p++) {
			for (uint32_t q = 0; q < c->n; q++) {
				if (p == q)
					continue;
				const int64_t gate = sent[q] + c->gate, first = gate + c->queue, in = first +
					c->wire[q][p] + c->late[s];
				const uint64_t id = 1 + (uint64_t)s * 16 + q * 4 + p, n = h->tl.nevents;
				hd_tl_hand_move(h, q, p, id, c->bytes[q][p] ? c->bytes[q][p] : 64,
					(int64_t[]){ sent[q], gate, first, in - 1, in });
				h->event[n].instr = h->event[n + 1].instr = (uint32_t)id;
				if (in > now[p]) {
					hd_tl_hand_add(h, 2 * p, HD_EVENT_WAIT, now[p], in + c->delivery)->arg
						=
						hd_wait_arg(HD_WAIT_TRANSFER, id);
					now[p] = in + c->delivery;
				}
			}
			last = now[p] > last ? now[p] : last;
		}
		for (uint32_t p = 0; p < c->n; p++)
			hd_tl_hand_wait(h, p, HD_WAIT_COMMIT, now[p], last + c->commit);
		begin = ends[s] = last + c->commit;
	}
	for (uint32_t p = 0; p < c->n; p++)
		for (int s = 0; s < HD_TL_TRAIN_STEPS; s++)
			hd_tl_hand_step(h, p, (uint64_t)s, s ? ends[s - 1] : 0, ends[s]);
	return begin;
}

#endif
