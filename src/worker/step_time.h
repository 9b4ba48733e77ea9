/* step_time.h -- what a step took of a worker's compute thread, and what of it was waiting.
 *
 * A step lasts from its BEGIN to its FINISH. What is run of it before its BEGIN (engine/overlap.h, rule 7)
 * belongs to it, too, work and waits for mail alike: the step counts as begun by so much earlier. So
 *
 *	took = computed + waited + what else the thread does
 *
 * holds with a step that was run ahead as without, and no time counts twice or in two steps. Waits inside a
 * step are the engine's (stalled_ns of its record); those before BEGIN are here, since BEGIN sets the
 * engine's to 0. What was run ahead and is not gone on with is of no step.
 *
 * Times are nanoseconds of one clock. Pure. */
#ifndef HD_WORKER_STEP_TIME_H
#define HD_WORKER_STEP_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct hd_step_time {
	int64_t began_ns;
	int64_t waited_ns;                /* without a command, and for mail before BEGIN */
	int64_t computed_ns;              /* of pass 0 of the part */
	struct { int64_t worked_ns, waited_ns; } ahead;       /* of the next step, since the last FINISH */
};

/* `ahead`: what was run ahead counts. */
static inline void hd_step_time_begin(struct hd_step_time *t, bool ahead, int64_t now_ns)
{
	const int64_t worked_ns = ahead ? t->ahead.worked_ns : 0, waited_ns = ahead ? t->ahead.waited_ns : 0;

	*t = (struct hd_step_time){ .began_ns = now_ns - worked_ns - waited_ns, .waited_ns = waited_ns,
		.computed_ns = worked_ns };
}

/* Instructions of the next step took so long, of it waits; `between`: no step is begun, else they count as
 * the one at hand's. */
static inline void hd_step_time_ahead(struct hd_step_time *t, bool between, int64_t took_ns,
	int64_t waited_ns)
{
	if (!between) {
		t->computed_ns += took_ns - waited_ns;
		return;
	}
	t->ahead.worked_ns += took_ns - waited_ns;
	t->ahead.waited_ns += waited_ns;
}

#endif
