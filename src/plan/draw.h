/* draw.h -- the timeline of a simulated schedule, as text for a terminal and as an SVG picture.
 *
 * Time runs to the right, a line a rank. Pure; equal simulations give equal bytes. */
#ifndef HD_PLAN_DRAW_H
#define HD_PLAN_DRAW_H

#include "plan/simulate.h"

enum { HD_DRAW_CELLS = 4000, HD_DRAW_BOXES = 200000 };

/* One cell is the greatest common divisor of all starts and ends: nothing is rounded. HD_E_INVAL if that takes
 * more than HD_DRAW_CELLS cells. The simulation was asked for spans. */
HD_MUST_USE enum hd_err hd_draw_text(const struct hd_sim *sim, struct hd_text *text, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_draw_svg(const struct hd_sim *sim, struct hd_text *text, struct hd_diag *diag);

#endif
