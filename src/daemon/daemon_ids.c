#include <string.h>

#include "base/num.h"
#include "daemon/daemon_int.h"

/* Jobs by their numbers: what asks for few of them again and again need not read all that there are. */

enum { HD_IDS_DIGITS = 19 };

/* "7-9" or "7" up to the next dot; NULL: it is neither. */
static const char *read_range(const char *at, uint64_t *from, uint64_t *to)
{
	uint64_t *const end[] = { from, to };
	char digits[HD_IDS_DIGITS + 1];
	size_t n = 0;

	for (; n < 2; n++) {
		size_t len = strspn(at, "0123456789");
		if (!len || len > HD_IDS_DIGITS)
			return NULL;
		memcpy(digits, at, len);
		digits[len] = '\0';
		if (hd_num_u64(digits, INT64_MAX, end[n], NULL))
			return NULL;
		at += len;
		if (n || *at != '-')
			break;
		at++;
	}
	*to = n ? *to : *from;
	return *from <= *to && (!*at || (*at == '.' && at[1])) ? at + (*at == '.') : NULL;
}

enum hd_err daemon_each_of(struct hd_daemon *d, const char *ids, uint32_t most, hd_jobs_each *each,
	void *user,
	struct hd_diag *diag)
{
	struct hd_dispatch_lease lease;
	struct hd_dispatch_job row;
	struct hd_jobs_card card;
	uint64_t from = 0, to = 0, last = 0, n = 0;
	enum hd_err err = HD_OK;

	for (const char *at = ids; *at && !err;) {
		at = read_range(at, &from, &to);
		if (!at || from <= last || (n += to - from + 1) > most)
			return hd_fail(diag, HD_E_INVAL,
				"ids \"%.60s\": numbers and ranges of them, ascending, "
				"as 3.7-9, of %u jobs at most", ids, most);
		last = to;
		for (uint64_t id = from; id <= to && each && !err; id++) {
			err = hd_jobs_get(d->jobs, id, &card, &row, &lease, NULL);
			err = err == HD_E_NOTFOUND ? HD_OK : err ? err : each(user, &card, &row, &lease,
				diag);
		}
	}
	return err;
}
