/* profile.h -- how many devices of a type, or of a node, are free from now on, as far as is known: steps in
 * time. For the simulator's queue and for advice.
 *
 * 1. Times ascend; the first is now, the last holds for ever.
 * 2. What is taken was free: profile_earliest() says when.
 * Room for so many steps is the caller's: one, and one more for each job that ends, two for each that is
 * taken. */
#ifndef HD_CLUSTERSIM_SCHEDSIM_PROFILE_H
#define HD_CLUSTERSIM_SCHEDSIM_PROFILE_H

#include <stdint.h>

struct profile_step { double at_s; uint32_t free; };
struct profile { struct profile_step *step; uint32_t n; };

void profile_open(struct profile *p, struct profile_step *room, double now_s, uint32_t free);
/* So many more from then on; in the order of time. */
void profile_release(struct profile *p, double at_s, uint32_t devices);
/* INFINITY: never so many */
double profile_earliest(const struct profile *p, uint32_t devices, double for_s);
void profile_take(struct profile *p, double at_s, double for_s, uint32_t devices);
/* Taken back: so many more in that time. */
void profile_give(struct profile *p, double at_s, double for_s, uint32_t devices);

/* One of several profiles that a job may have devices of. `room`: as many indices as the profile has steps;
 * the rest is of the search. */
struct profile_window { const struct profile *of; uint32_t *room, head, tail, next, least; };

/* When the profiles have so many together for so long: of each as many as it has free all the time, its
 * `least`. `per` above 0: of each a number that `per` divides, 1 * per or nothing. Profiles begin at one
 * time. INFINITY: never. */
double profile_earliest_of(struct profile_window *window, uint32_t n, uint32_t devices, uint32_t per,
	double for_s);

#endif
