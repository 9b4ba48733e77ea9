#include "spot/ledger.h"

#include <stdio.h>

#include "base/fields.h"
#include "base/json.h"

__extension__ typedef __int128 wide;

enum { MS_OF_HOUR = 3600000 };

const char *const hd_ledger_names[HD_NLEDGER] = {
#define X(id, name, about, field) [HD_LEDGER_##id] = name,
	HD_LEDGER_PARTS(X)
#undef X
};

/* Programs before these fields sent none of them. */
#define ROW(key, member, about_, ...)                                                                      \
	{ .name = key, .at = offsetof(struct hd_paid, member), .type = HD_FIELDS_I64, .may_lack = true,    \
	  .about = about_, __VA_ARGS__ },
static const struct hd_fields_row paid_rows[] = {
	ROW("paid_ms", ms, "paid time of workers' processes so far, which the next eight sum to; 0: not "
		"known", .unit = "ms")
#define X(id, name, about, field) ROW(name "_ms", part_ms[HD_LEDGER_##id], field, .unit = "ms")
	HD_LEDGER_PARTS(X)
#undef X
	ROW("paid_nano_usd", nano_usd, "what that costs by workers.usd_h, in 1e-9 dollars", .unit = NULL)
};
const struct hd_fields hd_paid_fields = HD_FIELDS("paid", "what was paid for", struct hd_paid, paid_rows);

bool hd_ledger_put(struct hd_spot_ledger *l, enum hd_ledger_part part, int64_t ms, int64_t nano_usd_h)
{
	const wide exact = (wide)l->nano_usd[part] * MS_OF_HOUR + l->rest[part] + (wide)ms * nano_usd_h;

	if (ms > INT64_MAX - l->ms[part] || exact / MS_OF_HOUR > INT64_MAX)
		return false;
	l->ms[part] += ms;
	l->nano_usd[part] = (int64_t)(exact / MS_OF_HOUR);
	l->rest[part] = (int64_t)(exact % MS_OF_HOUR);
	return true;
}

bool hd_ledger_sum(const struct hd_spot_ledger *l, struct hd_ledger_sum *sum)
{
	struct hd_ledger_sum out = { 0 };
	wide exact = 0, ms = 0;

	for (int p = 0; p < HD_NLEDGER; p++) {
		ms += l->ms[p];
		exact += (wide)l->nano_usd[p] * MS_OF_HOUR + l->rest[p];
		if (ms > INT64_MAX || exact / MS_OF_HOUR > INT64_MAX)
			return false;
		out.part[p] = (int64_t)(exact / MS_OF_HOUR) - out.nano_usd;
		out.nano_usd += out.part[p];
	}
	out.ms = (int64_t)ms;
	*sum = out;
	return true;
}

bool hd_paid_read(struct hd_paid *paid, const struct hd_json *json, const char *all, const char *money)
{
	struct hd_paid is = { 0 };
	int64_t sum = 0;
	char key[32];

	if (hd_json_get_i64(json, all, 0, INT64_MAX, &is.ms, NULL) ||
		hd_json_get_i64(json, money, 0, INT64_MAX, &is.nano_usd, NULL))
		return false;
	for (int p = 0; p < HD_NLEDGER; p++) {
		(void)snprintf(key, sizeof key, "%s_ms", hd_ledger_names[p]);
		if (hd_json_get_i64(json, key, 0, is.ms - sum, &is.part_ms[p], NULL))
			return false;
		sum += is.part_ms[p];
	}
	if (sum != is.ms)
		return false;
	*paid = is;
	return true;
}
