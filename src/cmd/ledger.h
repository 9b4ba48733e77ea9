/* ledger.h -- what was paid for (spot/ledger.h), as verbs say it: a member "paid" of their JSON, a table. */
#ifndef HD_CMD_LEDGER_H
#define HD_CMD_LEDGER_H

#include "base/json_writer.h"
#include "spot/ledger.h"

void hd_ledger_put_json(const struct hd_spot_ledger *ledger, const struct hd_ledger_sum *paid,
	struct hd_json_writer *w);
void hd_ledger_print(const struct hd_spot_ledger *ledger, const struct hd_ledger_sum *paid);

#endif
