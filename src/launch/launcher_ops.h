/* launcher_ops.h -- for authors of launchers: the rows, and what they share.
 *
 * A launcher is a file with one `const struct hd_launcher_ops hd_launcher_of_<id>` and a row of list.h. */
#ifndef HD_LAUNCH_LAUNCHER_OPS_H
#define HD_LAUNCH_LAUNCHER_OPS_H

#include "base/text.h"
#include "launch/launcher.h"

#define X(id) extern const struct hd_launcher_ops hd_launcher_of_##id;
#include "launch/list.h"
#undef X

/* One word of a POSIX shell that stands for exactly these bytes. */
void hd_launcher_quote(struct hd_text *text, const char *word);
/* All of them, with blanks between. */
void hd_launcher_quote_all(struct hd_text *text, const char *const *argv);
/* Exit codes that are no fault: done, asked to go. */
bool hd_launcher_is_failure(int code);

__attribute__((format(printf, 3, 4)))
void hd_launcher_say(const struct hd_launcher *launcher, const char *kind, const char *fmt, ...);

#endif
