/* mt19937.h -- the random streams of the published scheduler: 32-bit Mersenne Twister, seeded and drawn from
 * as Python does.
 *
 * For answers equal to the published ones and for nothing else: what is ours draws from Philox
 * (base/philox.h), where adding a job does not shift the others.
 *
 * Matsumoto, Nishimura: "Mersenne Twister", TOMACS 1998; the key is [seed] by init_by_array. Pure. */
#ifndef HD_SCHEDULER_MT19937_H
#define HD_SCHEDULER_MT19937_H

#include <stdint.h>

struct hd_mt { uint32_t word[624]; uint32_t next; };

void hd_mt_init(struct hd_mt *mt, uint32_t seed);
uint32_t hd_mt_word(struct hd_mt *mt);         /* for tests */
double hd_mt_random(struct hd_mt *mt);                                /* [0, 1), 53 bits of two words */
double hd_mt_uniform(struct hd_mt *mt, double from, double to);       /* from + (to - from) random() */
/* n >= 1; choice and randrange are this one */
uint32_t hd_mt_below(struct hd_mt *mt, uint32_t n);
void hd_mt_shuffle(struct hd_mt *mt, uint32_t *at, uint32_t n);
/* n >= 2: two different indices below n, in order of drawing */
void hd_mt_sample2(struct hd_mt *mt, uint32_t n, uint32_t out[2]);

#endif
