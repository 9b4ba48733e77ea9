#include "cmd/ledger.h"

#include <stdio.h>

void hd_ledger_put_json(const struct hd_spot_ledger *ledger, const struct hd_ledger_sum *paid,
	struct hd_json_writer *w)
{
	hd_json_open_object(w, "paid");
	hd_json_put_i64(w, "ms", paid->ms);
	hd_json_put_i64(w, "nano_usd", paid->nano_usd);
	for (int p = 0; p < HD_NLEDGER; p++) {
		hd_json_open_object(w, hd_ledger_names[p]);
		hd_json_put_i64(w, "ms", ledger->ms[p]);
		hd_json_put_i64(w, "nano_usd", paid->part[p]);
		hd_json_close(w);
	}
	hd_json_close(w);
}

void hd_ledger_print(const struct hd_spot_ledger *ledger, const struct hd_ledger_sum *paid)
{
	printf("  %-9s %14s %7s %14s\n", "paid", "device hours", "%", "$");
	for (int p = 0; p < HD_NLEDGER; p++)
		printf("  %-9s %14.3f %7.2f %14.4f\n", hd_ledger_names[p], (double)ledger->ms[p] / 3.6e6,
			paid->ms ? 100.0 * (double)ledger->ms[p] / (double)paid->ms : 0,
			(double)paid->part[p] / 1e9);
	printf("  %-9s %14.3f %7.2f %14.4f\n", "all", (double)paid->ms / 3.6e6, 100.0,
		(double)paid->nano_usd / 1e9);
}
