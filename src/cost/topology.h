/* topology.h -- the devices that a plan may use: their kinds, and how far they are from one another.
 *
 * Read from a cluster file (YAML) or made of counts; the planner places ranks on it, the full
 * simulator takes speeds, memory and links from it.
 *
 *	kinds:
 *	  fast: {speed: 1, memory: 16GiB}
 *	  slow: {speed: 0.5}
 *	levels:                                   # innermost first
 *	  - {name: server, components: 4, bytes_per_s: 12e9, latency_ns: 5000}
 *	  - {name: rack, components: 2, bytes_per_s: 1.25e9, latency_ns: 20000}
 *	devices:                                  # in their order; left out: all are of the only kind
 *	  - {kind: fast, count: 4}
 *	  - {kind: slow, count: 4}
 *
 * 1. Components of level k - 1 joined by the links of level k make one component of level k; level -1 is
 *    a device. Devices are numbered innermost first: d is in component d / (components of the levels up to
 *    k, multiplied) of level k. There are as many devices as that product over all levels.
 * 2. Two devices talk over the innermost level that holds both.
 * 3. A time of the profile takes 1/speed of it on a device: speed 1 is the device that was profiled.
 *    Memory 0: no limit is known.
 * 4. A cluster prints to a text that reads back to the same cluster and prints to the same bytes.
 * 5. What a file breaks is HD_E_INPUT with file:line:column and the sentence.
 *
 * Ownership: everything lies in the arena given. Pure. */
#ifndef HD_COST_TOPOLOGY_H
#define HD_COST_TOPOLOGY_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

enum {
	HD_CLUSTER_LEVELS = 4,                    /* memory, server, rack, hall */
	HD_CLUSTER_KINDS = 64,
	HD_CLUSTER_DEVICES = 65536,               /* ranks are numbered in 16 bits (ins.h) */
	HD_CLUSTER_NAME = 64,                     /* characters */
};
#define HD_CLUSTER_BYTES_PER_S_MAX 1e15
#define HD_CLUSTER_BYTES_PER_S_MIN 1.0
#define HD_CLUSTER_SPEED_MAX 1e6
#define HD_CLUSTER_SPEED_MIN 1e-6
#define HD_CLUSTER_LATENCY_MAX_PS INT64_C(60000000000000)      /* a minute */
#define HD_CLUSTER_MEMORY_MAX (INT64_C(1) << 53)

struct hd_cluster_kind { const char *name; double speed; int64_t memory; };
struct hd_cluster_level { const char *name; uint32_t components; double bytes_per_s; int64_t latency_ps; };

struct hd_cluster {
	struct hd_cluster_kind *kind; uint32_t nkinds;
	struct hd_cluster_level level[HD_CLUSTER_LEVELS]; uint32_t nlevels;      /* innermost first */
	uint32_t *device_kind; uint32_t ndevices;
};

HD_MUST_USE enum hd_err hd_cluster_parse(struct hd_cluster *cluster, const char *text, size_t len,
	const char *file,
	struct hd_arena *arena, struct hd_diag *diag);
void hd_cluster_print(const struct hd_cluster *cluster, struct hd_text *text);         /* for tests */
/* Equal devices in these levels: nlevels and level are filled in, with names that stay. HD_E_INVAL. */
HD_MUST_USE enum hd_err hd_cluster_make(struct hd_cluster *cluster, const struct hd_cluster_level *level,
	uint32_t nlevels,
	struct hd_cluster_kind kind, struct hd_arena *arena, struct hd_diag *diag);

/* The level over which a and b talk; a and b differ. */
uint32_t hd_cluster_between(const struct hd_cluster *cluster, uint32_t a, uint32_t b);
/* The innermost level with a component that holds devices first .. first + n - 1; n >= 2. */
static inline uint32_t hd_cluster_span(const struct hd_cluster *cluster, uint32_t first, uint32_t n)
{
	return hd_cluster_between(cluster, first, first + n - 1);
}

static inline const struct hd_cluster_kind *hd_cluster_kind_of(const struct hd_cluster *cluster,
	uint32_t device)
{
	return &cluster->kind[cluster->device_kind[device]];
}

#endif
