/* counted.h -- what counters, marks and the heartbeat of a process say of a span of time. Private to the
 * analyses.
 *
 * Names of events: a mark by its process, or with its worker as instr; an interval of its heartbeat.
 * Counters: ns since its thread began, since its recording did. Pure. */
#ifndef HD_TIMELINE_ANALYZE_COUNTED_H
#define HD_TIMELINE_ANALYZE_COUNTED_H

#include "timeline/analyze/causes.h"

enum { HD_TL_COUNTED_NS = 1000000 };     /* a counter is written a little after the step that it ends */
#define HD_TL_PREEMPT "preempt"
#define HD_TL_WITHDRAWN "preempt withdrawn"
#define HD_TL_STOPPED "stopped"
/* name of its lane, which is there where it is recorded, stopped or not */
#define HD_TL_HEARTBEAT "heartbeat"
#define HD_TL_PROCESSOR_WAIT "processor wait"
#define HD_TL_QUOTA_WAIT "quota wait"
#define HD_TL_STOPS "stops"

/* ns that its first device waited for a processor: from the counter's last value before the span to its last
 * one inside. -1: not known. */
int64_t hd_tl_starved_ns(const struct hd_tl_causes *causes, uint32_t process, struct hd_tl_span span);
/* ns that quotas held it: between two values the counter grew evenly, outside them it did not. */
int64_t hd_tl_held_ns(const struct hd_tl_causes *causes, uint32_t process, struct hd_tl_span span);
/* ns that its heartbeat woke late by, not for want of a processor, by the same rule: a sample of how much it
 * stood still, in pieces however short. */
int64_t hd_tl_stops_ns(const struct hd_tl_causes *causes, uint32_t process, struct hd_tl_span span);
/* ns that it stood still in long pieces, by its heartbeat. */
int64_t hd_tl_stopped_ns(const struct hd_tl_causes *causes, uint32_t process, struct hd_tl_span span);
bool hd_tl_has_heartbeat(const struct hd_timeline *tl, uint32_t process);
/* How many its devices did. */
uint64_t hd_tl_instructions(const struct hd_tl_causes *causes, uint32_t process, struct hd_tl_span span);
/* By the newest word on it that came until then. */
bool hd_tl_has_notice(const struct hd_tl_causes *causes, uint32_t process, int64_t until);

#endif
