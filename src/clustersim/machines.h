/* machines.h -- which machines a cluster has, and when they came and went: out of files.
 *
 * 1. Events are sorted by time, stably; times are seconds, the first sample of a file with calendar times is
 *    0.
 * 2. Bad input is HD_E_INPUT and says file:line:column and the field.
 *
 * Ownership: all lies in the arena it was read into. Pure. */
#ifndef HD_CLUSTERSIM_MACHINES_H
#define HD_CLUSTERSIM_MACHINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { HD_MACHINES = 1 << 22, HD_MACHINE_DEVICES = 1 << 16 };

struct hd_machine { const char *name, *type; uint32_t devices; };
/* nwithout: machines without devices, left out */
struct hd_machine_list { size_t n; struct hd_machine *at; uint64_t nwithout; };

/* Alibaba's node list: sn,cpu_milli,memory_mib,gpu,model with a header, columns in any order. */
HD_MUST_USE enum hd_err hd_machine_list_csv(struct hd_machine_list *list, const char *name,
	const uint8_t *bytes, size_t len, struct hd_arena *arena,
	struct hd_diag *diag);

/* machines more, or fewer; name "" of counts */
struct hd_machine_event { double at_s; int32_t change; const char *name; };
struct hd_machine_events { size_t n; struct hd_machine_event *at; };

/* One of three forms, which the first line shows:
 *   milliseconds,add|remove,name   a name is added at most once and removed at most once, in that order
 *   YYYY-MM-DD, HH:MM:SS, count    samples of how many run; of samples of one time the last line counts
 *   name,start,stop                a header: columns of these names in any order, between commas or tabs
 * A line of the last is a time that the machine was there; no stop: it still is. Times are seconds or ISO
 * 8601; the first start is 0. What comes again under its name is another machine: "name#2", then "name#3". */
HD_MUST_USE enum hd_err hd_machine_events_csv(struct hd_machine_events *events, const char *name,
	const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag);

#endif
