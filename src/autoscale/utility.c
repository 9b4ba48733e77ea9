#include "autoscale/utility.h"

#include <string.h>

#include "base/num.h"

/* One number up to any of `ends`; moves the text on to the character that ended it. */
static enum hd_err number(const char **text, const char *ends, double *out, struct hd_diag *diag)
{
	char room[64];
	size_t len = strcspn(*text, ends);

	if (len == 0 || len >= sizeof room)
		return hd_fail(diag, HD_E_INVAL, "a utility needs a number at \"%.30s\"", *text);
	memcpy(room, *text, len);
	room[len] = 0;
	*text += len;
	return hd_num_f64(room, 0, HD_UTILITY_MAX, out, diag);
}

static enum hd_err parse_line(struct hd_utility *u, const char *text, struct hd_diag *diag)
{
	double y = 0, x = 0;
	enum hd_err err = number(&text, ",", &y, diag);

	if (!err && *text++ != ',')
		return hd_fail(diag, HD_E_INVAL,
			"a linear utility is linear:Y,X: its value at once, and the time at which nothing "
			"is left of it");
	if (!err)
		err = number(&text, "", &x, diag);
	if (!err && (y <= 0 || x <= 0))
		return hd_fail(diag, HD_E_INVAL,
			"a linear utility has a value and a time above 0, not %g and %g", y, x);
	u->is_line = true;
	u->n = 2;
	u->point[0].value = y;
	u->point[1].time_s = x;
	return err;
}

static enum hd_err check_point(const struct hd_utility *u, double value, double time_s, struct hd_diag *diag)
{
	if (u->n && (value > u->point[u->n - 1].value || time_s <= u->point[u->n - 1].time_s))
		return hd_fail(diag, HD_E_INVAL,
			"point %g:%g of a utility follows %g:%g: values never rise, times rise", value,
			time_s,
			u->point[u->n - 1].value, u->point[u->n - 1].time_s);
	if (u->n > HD_UTILITY_POINTS)
		return hd_fail(diag, HD_E_INVAL, "a utility has at most %d points", HD_UTILITY_POINTS);
	return HD_OK;
}

static enum hd_err parse_points(struct hd_utility *u, const char *text, struct hd_diag *diag)
{
	for (;;) {
		double value = 0, time_s = 0;
		enum hd_err err = number(&text, ":,", &value, diag);
		if (!err && *text++ != ':')
			return hd_fail(diag, HD_E_INVAL, "a point of a utility is VALUE:TIME, in seconds");
		err = err ? err : number(&text, ",", &time_s, diag);
		err = err ? err : check_point(u, value, time_s, diag);
		if (err)
			return err;
		if (!u->n && time_s > 0)
			u->point[u->n++].value = value;
		u->point[u->n].value = value;
		u->point[u->n++].time_s = time_s;
		if (!*text)
			return HD_OK;
		text++;
	}
}

enum hd_err hd_utility_parse(struct hd_utility *utility, const char *text, struct hd_diag *diag)
{
	static const struct { const char *prefix; enum hd_err (*parse)(struct hd_utility *, const char *,
		struct hd_diag *); } forms[] = {
		{ "linear:", parse_line }, { "points:", parse_points } };
	struct hd_utility made = { 0 };

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t len = strlen(forms[i].prefix);
		if (strncmp(text, forms[i].prefix, len) != 0)
			continue;
		enum hd_err err = forms[i].parse(&made, text + len, diag);
		if (!err)
			*utility = made;
		return err;
	}
	return hd_fail(diag, HD_E_INVAL, "a utility is linear:Y,X or points:VALUE:TIME,..., not \"%.60s\"",
		text);
}

void hd_utility_close(struct hd_utility *utility, double expected_s)
{
	if (!utility->is_line && !utility->closed && expected_s > utility->point[utility->n - 1].time_s) {
		utility->point[utility->n].value = 0;
		utility->point[utility->n++].time_s = expected_s;
	}
	utility->closed = true;
}

double hd_utility_at(const struct hd_utility *utility, double time_s)
{
	uint32_t i = 1;

	if (utility->n == 1)
		return utility->point[0].value;
	while (i + 1 < utility->n && time_s > utility->point[i].time_s)
		i++;
	double t0 = utility->point[i - 1].time_s, t1 = utility->point[i].time_s,
		v0 = utility->point[i - 1].value, v1 = utility->point[i].value;
	return v0 + (v1 - v0) * (time_s - t0) / (t1 - t0);
}
