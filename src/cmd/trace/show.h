/* show.h -- the words and objects in which analyses of recordings are printed. Private to the verbs of trace.
 * */
#ifndef HD_CMD_TRACE_SHOW_H
#define HD_CMD_TRACE_SHOW_H

#include "base/json_writer.h"
#include "timeline/analyze/summary.h"

/* `now` is the stragglers, breakdown, critical_path, bubbles, predicted, lost, unaligned and more. */
void hd_trace_put_summary(struct hd_json_writer *w, const struct hd_tl_summary *summary);
void hd_trace_print_summary(const struct hd_tl_summary *summary);

/* `text` for a terminal, in `room`, cut to it: a name of a file's may hold anything, and control characters
 * (C0, DEL, C1) and bytes that are no UTF-8 are '?'. */
enum { HD_TRACE_SHOWN = 256 };
const char *hd_trace_shown(const char *text, char *room, size_t cap);

#endif
