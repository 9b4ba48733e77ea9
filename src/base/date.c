#include "base/date.h"

#include <stdio.h>
#include <string.h>

enum { YEAR_MIN = 1970, YEAR_MAX = 2200, S_PER_DAY = 86400 };
#define NS_PER_S INT64_C(1000000000)

static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct",
	"Nov", "Dec" };
/* from 1970-01-01 on */
static const char weekdays[7][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };

static int days_of(int year, int month)
{
	static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month] + (month == 1 && leap);
}

struct reader { const char *at, *end; };

static int number(struct reader *r, int ndigits)
{
	int n = 0;

	for (int i = 0; i < ndigits; i++) {
		if (r->at >= r->end || *r->at < '0' || *r->at > '9')
			return -1;
		n = 10 * n + (*r->at++ - '0');
	}
	return n;
}

static int literal(struct reader *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
		return 0;
	r->at += n;
	return 1;
}

/* Of a second; digits beyond nanoseconds are passed over. */
static int64_t fraction(struct reader *r)
{
	int64_t ns = 0, digit = NS_PER_S;

	if (!literal(r, "."))
		return 0;
	if (r->at >= r->end || *r->at < '0' || *r->at > '9')
		return -1;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
		digit /= 10;
		ns += (*r->at++ - '0') * digit;
	}
	return ns;
}

struct civil { int year, month, day, hour, minute, second; };   /* month from 0 */

static int read_clock(struct reader *r, struct civil *c)
{
	c->hour = number(r, 2);
	int colons = literal(r, ":");
	c->minute = number(r, 2);
	colons += literal(r, ":");
	c->second = number(r, 2);
	return colons == 2;
}

static int read_http(struct reader *r, struct civil *c)
{
	const char *comma = memchr(r->at, ',', (size_t)(r->end - r->at));

	r->at = comma + 1;
	int good = literal(r, " ");
	c->day = number(r, 2);
	good &= literal(r, " ");
	c->month = -1;
	for (int m = 0; m < 12 && c->month < 0; m++)
		if (literal(r, months[m]))
			c->month = m;
	good &= literal(r, " ");
	c->year = number(r, 4);
	good &= literal(r, " ") && read_clock(r, c) && literal(r, " GMT");
	return good;
}

static int read_rfc3339(struct reader *r, struct civil *c, int64_t *ns)
{
	c->year = number(r, 4);
	int good = literal(r, "-");
	c->month = number(r, 2) - 1;
	good &= literal(r, "-");
	c->day = number(r, 2);
	good &= (literal(r, "T") || literal(r, "t") || literal(r, " ")) && read_clock(r, c);
	*ns = fraction(r);
	return good && *ns >= 0 && (literal(r, "Z") || literal(r, "z") || literal(r, "+00:00"));
}

enum hd_err hd_date_read(const char *text, size_t len, int64_t *wall_ns)
{
	struct reader r = { text, text + len };
	struct civil c = { .year = 0 };
	int64_t ns = 0, days = 0;
	int good = len && memchr(text, ',', len) ? read_http(&r, &c) : read_rfc3339(&r, &c, &ns);

	/* second 60: a leap second, taken for the next one */
	if (!good || r.at != r.end || c.year < YEAR_MIN || c.year > YEAR_MAX || c.month < 0 || c.month > 11 ||
		c.day < 1 || c.day > days_of(c.year, c.month) || c.hour < 0 || c.hour > 23 || c.minute < 0 ||
		c.minute > 59 || c.second < 0 || c.second > 60)
		return HD_E_INPUT;
	for (int y = YEAR_MIN; y < c.year; y++)
		days += days_of(y, 1) == 29 ? 366 : 365;
	for (int m = 0; m < c.month; m++)
		days += days_of(c.year, m);
	days += c.day - 1;
	*wall_ns = (days * S_PER_DAY + c.hour * 3600 + c.minute * 60 + c.second) * NS_PER_S + ns;
	return HD_OK;
}

void hd_date_http(int64_t wall_ns, char text[HD_DATE_HTTP])
{
	int64_t s = wall_ns > 0 ? wall_ns / NS_PER_S : 0, days = s / S_PER_DAY;
	int year = YEAR_MIN, month = 0, left = (int)days, second = (int)(s % S_PER_DAY);

	for (; left >= (days_of(year, 1) == 29 ? 366 : 365) && year < YEAR_MAX; year++)
		left -= days_of(year, 1) == 29 ? 366 : 365;
	for (; month < 11 && left >= days_of(year, month); month++)
		left -= days_of(year, month);
	snprintf(text, HD_DATE_HTTP, "%s, %02d %s %04d %02d:%02d:%02d GMT", weekdays[days % 7], left % 31 + 1,
		months[month], year % 10000, second / 3600 % 24, second / 60 % 60, second % 60);
}
