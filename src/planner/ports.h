/* ports.h -- how messages on their way share the ports of workers: each worker has one each way, of one rate,
 * and shares are max-min fair: the port that is shared most finely sets the rate of its flows, then the next
 * of what is left.
 *
 * Pure. */
#ifndef HD_PLANNER_PORTS_H
#define HD_PLANNER_PORTS_H

#include <stdint.h>

enum { HD_PORTS = 64 };

struct hd_port_flow { uint32_t from, to; double rate; };

/* Fills in the rates. Ends of flows are below nports, which is at most HD_PORTS. */
void hd_ports_share(struct hd_port_flow *flow, uint32_t nflows, uint32_t nports, double rate);

#endif
