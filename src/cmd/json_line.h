/* json_line.h -- what --json prints: one JSON object on one line of stdout.
 *
 *	struct hd_json_line line;
 *	hd_json_put_i64(hd_json_line_open(cmd, &line), "step", 6);
 *	hd_json_line_print(&line);
 *
 * Everything goes through base's writer, so that a quote in a path or a loss that
 * is not a number leaves the line readable.
 *
 * Ownership: the text lies in the arena of the call. */
#ifndef HD_CMD_JSON_LINE_H
#define HD_CMD_JSON_LINE_H

#include "base/json_writer.h"
#include "cmd/verbs.h"

struct hd_json_line { struct hd_json_writer writer; struct hd_text text; };

/* the object stands open */
struct hd_json_writer *hd_json_line_open(struct hd_cmd *cmd, struct hd_json_line *line);
/* closed, and a line feed */
void hd_json_line_print(struct hd_json_line *line);

#endif
