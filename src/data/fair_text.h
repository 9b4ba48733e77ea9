/* fair_text.h -- a worker's window of reading as JSON, for its coordinator.
 *
 * Numbers are finite and not negative, the depth within those of ranges.h; what else comes is HD_E_PROTOCOL,
 * and there is no window. Pure. */
#ifndef HD_DATA_FAIR_TEXT_H
#define HD_DATA_FAIR_TEXT_H

#include "base/err.h"
#include "base/text.h"
#include "data/fair.h"

enum { HD_FAIR_TEXT = 700 };              /* more than one is long */

void hd_fair_put(const struct hd_fair_part *part, struct hd_text *text);
HD_MUST_USE enum hd_err hd_fair_parse(const char *text, size_t len, struct hd_fair_part *part,
	struct hd_diag *diag);

#endif
