/* names.h -- what may be a name: of a run, a tensor file, a worker.
 *
 * 1. 1 to 128 of [A-Za-z0-9._-], not starting with '.' or '-': so a name is one folder
 *    entry, never hidden, never "..", never an option, and needs no quotes in a shell. */
#ifndef HD_BASE_NAMES_H
#define HD_BASE_NAMES_H

#include <stdbool.h>

enum { HD_NAME_MAX = 128 };                        /* bytes, without the final 0 */

bool hd_name_valid(const char *name);

#endif
