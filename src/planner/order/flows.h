/* flows.h -- messages between workers that have one port each way (comm_time.h, rule 3): when each has come.
 * Private to the room.
 *
 * Messages become ready at times that are given, also by what follows from others that came: the caller is
 * called back with each arrival, and may add messages that are ready then or later.
 *
 * Ownership: memory is the arena's. Pure. */
#ifndef HD_PLANNER_ORDER_FLOWS_H
#define HD_PLANNER_ORDER_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { HD_FLOW_PORTS = 8 };

struct hd_flow_message {
	double ready_ns, left;            /* left: bytes */
	uint32_t urgency, bucket;
	uint8_t kind, from, to;
};

struct hd_flows {
	double ns_per_byte, late_ns;      /* of a port; from the last byte sent until the message is there */
	double own_bytes;                 /* that a message takes beside its own */
	void (*arrived)(void *user, const struct hd_flow_message *message, double at_ns);
	void *user;
	/* heaps: messages that are not ready by time, the others of each pair of workers by urgency */
	struct hd_flow_heap { struct hd_flow_message *at; uint32_t n, cap; } coming,
		pair[HD_FLOW_PORTS][HD_FLOW_PORTS];
	uint32_t nports;
	double now_ns;
};

/* Of at most so many messages of a pair at a time. False: no memory. */
bool hd_flows_init(struct hd_flows *flows, uint32_t nports, uint32_t messages, struct hd_arena *arena);
void hd_flows_add(struct hd_flows *flows, const struct hd_flow_message *message);
/* Until all have come. */
void hd_flows_run(struct hd_flows *flows);

#endif
