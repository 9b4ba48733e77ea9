/* formats.h -- what `heddle trace merge` can write, by the end of the file's name. A format is a row. */
#ifndef HD_CMD_TRACE_FORMATS_H
#define HD_CMD_TRACE_FORMATS_H

#include "cmd/trace/input.h"

struct hd_trace_format {
	const char *suffix, *about;
	enum hd_err (*write)(struct hd_cmd *cmd, const struct hd_trace_input *input, const char *path);
	bool outline;                     /* it is written of slots; of events counts are enough */
};

/* By the suffix of `path`; HD_E_INVAL lists those that there are. */
HD_MUST_USE enum hd_err hd_trace_format_of(const char *path, const struct hd_trace_format **format,
	struct hd_diag *diag);

#endif
