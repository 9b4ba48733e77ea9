/* draw_time.h -- the timeline of a fully simulated plan, to scale, in so many columns.
 *
 * Where draw.h shows every instruction of a bare schedule, this shows where the time of a plan goes: a line a
 * rank, a column 1/columns of the makespan, in it what the rank does at the column's middle.
 *
 * F B I W R and U (the update) begin with their letter and the virtual node, a letter behind it the model
 * chunk (b, c, ... of the second, third, ...), as far as there is room; = continues them. f and b: those of
 * a shadow stage. r: sums of gradients beside nothing else; . nothing. What is shorter than a column may not
 * be seen.
 *
 * Pure; equal simulations give equal bytes. */
#ifndef HD_PIPELINE_DRAW_TIME_H
#define HD_PIPELINE_DRAW_TIME_H

#include "pipeline/sim_plan.h"

enum { HD_DRAW_TIME_COLUMNS = 4000 };

/* The simulation was asked for spans; 1 <= columns <= HD_DRAW_TIME_COLUMNS. */
HD_MUST_USE enum hd_err hd_draw_time(const struct hd_sim_plan *sim, uint32_t columns, struct hd_text *text,
	struct hd_diag *diag);

#endif
