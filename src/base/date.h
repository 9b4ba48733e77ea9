/* date.h -- points in time as texts of other programs have them.
 *
 * Two forms: RFC 3339 in UTC ("2017-09-18T08:22:00Z", also with a fraction of a second) and the date of
 * HTTP ("Mon, 19 Sep 2016 18:29:47 GMT"; the day of the week is not looked at). The whole text is one date
 * of the years 1970 to 2200, or it is refused: HD_E_INPUT. Pure; no time zone, no locale. */
#ifndef HD_BASE_DATE_H
#define HD_BASE_DATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HD_DATE_HTTP = 64 };               /* space for any date of HTTP, with the final 0 */

/* Nanoseconds since 1970. */
HD_MUST_USE enum hd_err hd_date_read(const char *text, size_t len, int64_t *wall_ns);
/* As HTTP writes it; seconds are rounded down. 1970 to 2200. */
void hd_date_http(int64_t wall_ns, char text[HD_DATE_HTTP]);

#endif
