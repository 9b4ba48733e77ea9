/* queue.h -- what happens next in a simulation: a heap by (time, kind, number).
 *
 * An entry whose serial is not its owner's any more is out of date; its reader drops it. */
#ifndef HD_PIPELINE_SIM_QUEUE_H
#define HD_PIPELINE_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum sim_event_kind { SIM_FLOW_ENDS, SIM_COLLECTIVE_ENDS, SIM_ON_HOST, SIM_RANK };

struct queue_event { int64_t at; uint32_t kind, number, serial; };
/* full: no memory */
struct sim_queue { struct queue_event *heap; uint32_t n, cap; struct hd_arena *arena; bool full; };

void hd_sim_queue_put(struct sim_queue *queue, struct queue_event event);
bool hd_sim_queue_take(struct sim_queue *queue, struct queue_event *event);      /* false: it is empty */

#endif
