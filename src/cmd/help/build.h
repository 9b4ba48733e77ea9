/* build.h -- what this program was made of: one set of facts for `version`, `doctor`
 * and whoever reports a bug. Generated headers are included by version.c alone, so
 * that a new commit recompiles one file. */
#ifndef HD_CMD_HELP_BUILD_H
#define HD_CMD_HELP_BUILD_H

#include "base/json_writer.h"
#include "cmd/verbs.h"

/* libraries: "name=yes|absent|off ..." */
struct hd_build { const char *version, *git, *preset, *compiler, *libraries, *rooms; };
extern const struct hd_build hd_build;

void hd_build_json(struct hd_json_writer *w);      /* its members, into an open object */

#endif
