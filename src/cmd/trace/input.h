/* input.h -- what the verbs of traces read: runs, flight files, traces, in any mix.
 *
 * A run's folder stands for its flight/N.hdfr, N.hdfr.1 and so on, flight/snapshots, and its trace/N.hdt. A
 * file of a folder that is no recording (its process was killed while it made it) is left out with a line;
 * one that was named is an error, and so is a pipe or device, which is never opened.
 * What was cut off, lost or is not aligned is said on stderr.
 *
 * A trace of another program (timeline/import.h) is read alone: its timeline is `foreign`, and it has no
 * lives.
 *
 * Ownership: the call's arena; files stay mapped until the process ends. */
#ifndef HD_CMD_TRACE_INPUT_H
#define HD_CMD_TRACE_INPUT_H

#include "timeline/build.h"
#include "cmd/verbs.h"

struct hd_trace_input {
	struct hd_tl_lives lives;
	struct hd_tl_clock *clock;
	uint32_t reference;
	struct hd_timeline timeline;
	const char *folder;               /* of the run, where one was named; else NULL */
};

HD_MUST_USE enum hd_err hd_trace_read(struct hd_cmd *cmd, const char *const *path, uint32_t n,
	struct hd_trace_input *input);

/* The same with a timeline that has no events (hd_tl_outline_of()); one of another program's has them. */
HD_MUST_USE enum hd_err hd_trace_outline(struct hd_cmd *cmd, const char *const *path, uint32_t n,
	struct hd_trace_input *input);

/* A line of talk on stderr, unless --quiet. */
__attribute__((format(printf, 2, 3))) void hd_trace_say(const struct hd_cmd *cmd, const char *fmt, ...);

#endif
