#include "base/num.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

struct unit { const char *name; uint64_t times; };

static const struct unit counts[] = { { "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 },
	{ 0 } };
static const struct unit sizes[] = { { "", 1 }, { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 },
	{ 0 } };
static const struct unit times[] = { { "ms", 1 }, { "s", 1000 }, { "min", 60000 }, { "h", 3600000 },
	{ "d", 86400000 }, { 0 } };

enum reading { READ, NO_NUMBER, TOO_LARGE };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *digits(const char *at)
{
	while (is_digit(*at))
		at++;
	return at;
}

/* Digits without a superfluous zero in front, then a unit of the table. */
static enum reading read_scaled(const char *text, const struct unit *unit, uint64_t *out)
{
	const char *end = digits(text);
	uint64_t v = 0;
	bool fits = true;

	if (end == text || (text[0] == '0' && end > text + 1))
		return NO_NUMBER;
	for (const char *at = text; at < end; at++)
		fits = fits && hd_mul_u64(v, 10, &v) && hd_add_u64(v, (uint64_t)(*at - '0'), &v);
	bool bare_zero = fits && v == 0 && *end == '\0';
	while (unit->name && strcmp(unit->name, end) != 0)
		unit++;
	if (!unit->name && !bare_zero)
		return NO_NUMBER;
	if (!fits || (unit->name && !hd_mul_u64(v, unit->times, &v)))
		return TOO_LARGE;
	*out = v;
	return READ;
}

/* Shows at most 40 bytes of what was read: outside text may be long. */
static enum hd_err refuse(struct hd_diag *diag, const char *text, const char *form)
{
	return hd_fail(diag, HD_E_INVAL, "\"%.40s\" is not %s", text, form);
}

enum hd_err hd_num_i64(const char *text, int64_t min, int64_t max, int64_t *out, struct hd_diag *diag)
{
	bool minus = text[0] == '-';
	uint64_t size = 0, most = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	enum reading got = read_scaled(text + minus, counts, &size);

	if (got == NO_NUMBER)
		return refuse(diag, text, "an integer (digits, then nothing or k, M or G)");
	int64_t v = got == READ && size <= most ? (int64_t)(minus ? 0 - size : size) : 0;
	if (got == TOO_LARGE || size > most || v < min || v > max)
		return hd_fail(diag, HD_E_INVAL, "%.40s is not between %" PRId64 " and %" PRId64, text, min,
			max);
	*out = v;
	return HD_OK;
}

static enum hd_err unsigned_in(const char *text, const struct unit *units, uint64_t max, const char *form,
	const char *of,
	uint64_t *out, struct hd_diag *diag)
{
	uint64_t v = 0;
	enum reading got = read_scaled(text, units, &v);

	if (got == NO_NUMBER)
		return refuse(diag, text, form);
	if (got == TOO_LARGE || v > max)
		return hd_fail(diag, HD_E_INVAL, "%.40s is more than %" PRIu64 "%s", text, max, of);
	*out = v;
	return HD_OK;
}

enum hd_err hd_num_u64(const char *text, uint64_t max, uint64_t *out, struct hd_diag *diag)
{
	return unsigned_in(text, counts, max,
		"a whole number of 0 or more (digits, then nothing or k, M or G)", "", out, diag);
}

enum hd_err hd_num_size(const char *text, uint64_t max_bytes, uint64_t *bytes, struct hd_diag *diag)
{
	return unsigned_in(text, sizes, max_bytes, "a size (digits, then nothing, KiB, MiB or GiB)", " bytes",
		bytes, diag);
}

enum hd_err hd_num_duration(const char *text, uint64_t max_ms, uint64_t *ms, struct hd_diag *diag)
{
	return unsigned_in(text, times, max_ms, "a duration (digits, then ms, s, min, h or d)", " ms", ms,
		diag);
}

/* strtod alone would take hex, "nan", leading blanks and a locale's comma. */
static bool is_decimal(const char *at)
{
	const char *from;

	at += *at == '-';
	from = at;
	at = digits(at);
	if (at == from)
		return false;
	if (*at == '.') {
		from = ++at;
		at = digits(at);
		if (at == from)
			return false;
	}
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '-' || *at == '+';
		from = at;
		at = digits(at);
		if (at == from)
			return false;
	}
	return *at == '\0';
}

enum hd_err hd_num_f64(const char *text, double min, double max, double *out, struct hd_diag *diag)
{
	if (!is_decimal(text))
		return refuse(diag, text, "a number (such as 0.1, 3 or 1e-4)");
	double v = strtod(text, NULL);
	if (!isfinite(v) || !(v >= min && v <= max))
		return hd_fail(diag, HD_E_INVAL, "%.40s is not between %.9g and %.9g", text, min, max);
	*out = v;
	return HD_OK;
}

bool hd_num_fits_f32(double v)
{
	return v == 0 || (fabs(v) >= (double)FLT_MIN && fabs(v) <= (double)FLT_MAX);
}

enum hd_err hd_num_real(const char *text, double min, double max, double *out, struct hd_diag *diag)
{
	double v = 0;
	enum hd_err err = hd_num_f64(text, min, max, &v, diag);

	if (!err && !hd_num_fits_f32(v))
		err = hd_fail(diag, HD_E_INVAL, "%.40s has no place in 32-bit floats: beside 0 they go from "
			"1.2e-38 to 3.4e38", text);
	if (!err)
		*out = v;
	return err;
}

/* "-0" would come back from JSON as the integer 0. */
static bool is_word(double v) { return !isfinite(v) || (v == 0 && signbit(v)); }

static const char *print_word(char out[HD_NUM_CAP], double v)
{
	const char *word = v == 0 ? "-0.0" : isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";

	return memcpy(out, word, strlen(word) + 1);
}

/* Digits in front of the point, when they fit in `most`: with fewer, printf would turn
 * 20 into 2e+01. */
static int first_try(double v, int most)
{
	int n = 1;

	for (double power = 10; power <= fabs(v) && n <= most; power *= 10)
		n++;
	return n <= most ? n : 1;
}

const char *hd_num_print_f32(char out[HD_NUM_CAP], float v)
{
	char text[HD_NUM_CAP] = "";

	if (is_word((double)v))
		return print_word(out, (double)v);
	for (int digit = first_try((double)v, 9); digit <= 9; digit++) {
		snprintf(text, sizeof text, "%.*g", digit, (double)v);
		if (strtof(text, NULL) == v)
			break;
	}
	return memcpy(out, text, sizeof text);
}

const char *hd_num_print_f64(char out[HD_NUM_CAP], double v)
{
	char text[HD_NUM_CAP] = "";

	if (is_word(v))
		return print_word(out, v);
	/* most values that people write need few digits, most computed ones 16 or 17 */
	for (int digit = first_try(v, 17); digit <= 17; digit += digit == 9 ? 6 : 1) {
		snprintf(text, sizeof text, "%.*g", digit, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return memcpy(out, text, sizeof text);
}
