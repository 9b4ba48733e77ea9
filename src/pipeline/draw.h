/* draw.h -- the timeline of a simulated schedule, as text for a terminal and as an SVG picture.
 *
 * Time runs to the right, a line a rank. Pure; equal simulations give equal bytes. */
#ifndef HD_PIPELINE_DRAW_H
#define HD_PIPELINE_DRAW_H

#include "pipeline/sim_plan.h"

enum { HD_DRAW_CELLS = 4000, HD_DRAW_BOXES = 200000 };

/* One cell is the greatest common divisor of all starts and ends: nothing is rounded. HD_E_INVAL if that
 * takes more than HD_DRAW_CELLS cells. The simulation was asked for spans. */
HD_MUST_USE enum hd_err hd_draw_text(const struct hd_sim *sim, struct hd_text *text, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_draw_svg(const struct hd_sim *sim, struct hd_text *text, struct hd_diag *diag);


/* Of the full simulator, asked for spans; why ranks stand still is drawn too. As text: HD_DRAW_COLUMNS
 * columns whatever the time, each showing what the rank does at its middle. */
enum { HD_DRAW_COLUMNS = 120 };
HD_MUST_USE enum hd_err hd_draw_plan_text(const struct hd_sim_plan *sim, struct hd_text *text,
	struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_draw_plan_svg(const struct hd_sim_plan *sim, struct hd_text *text,
	struct hd_diag *diag);

#endif
