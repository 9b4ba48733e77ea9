/* bill.h -- what calls of functions cost: price files, and a ledger that is exact to the nano-dollar.
 *
 * The owner of tasks books each call; the emulator and `bench functions` print sums; a log settles what an
 * answer did not say.
 *
 * A price file is JSON. Prices are texts, so that no digit is lost:
 *	{"date":"2025-01-01","region":"us-east-1","functions":[
 *	  {"kind":"lambda-x86_64","granularity_ms":1,"call_usd":"0.0000002",
 *	   "gb_s":[{"usd":"0.0000166667","up_to_gb_s":6000000000},{"usd":"0.000015"}]}]}
 *
 * 1. Amounts are integers: milliseconds x MB, and calls. Money is computed from their sums, exactly, and
 *    rounded down once: the order of calls does not matter. Prices have at most 12 digits behind the point.
 * 2. Billed time is rounded up to the granularity of the price.
 * 3. Tiers go by the amount since the ledger began: it knows of no month.
 * 4. A call whose time is not known is *estimated* by the caller's clock. A line REPORT of the log takes the
 *    place of an estimate; which of several does not matter to the sum.
 * 5. Failed calls, duplicates and starts of instances (init) are in it.
 *
 * Ownership: prices are plain values; a ledger takes its calls from the arena. Pure. */
#ifndef HD_FUNCTIONS_BILL_H
#define HD_FUNCTIONS_BILL_H

#include "base/arena.h"
#include "functions/runtime_api.h"

enum { HD_FN_TIERS = 4, HD_FN_KIND = 32, HD_FN_PRICE_BYTES = 64 << 10 };

/* What functions of one kind cost. `up_to` in GB-s; the last tier has no end. */
struct hd_fn_price {
	char kind[HD_FN_KIND], date[16], region[HD_FN_KIND];
	int64_t granularity_ms, call_pico;        /* 10^-12 dollars */
	uint32_t ntiers;
	struct { int64_t pico, up_to_gb_s; } tier[HD_FN_TIERS];
};

/* Price files that come with the program, by date. */
struct hd_fn_price_file { const char *name, *about, *text; };
/* Ends with a NULL name. */
extern const struct hd_fn_price_file hd_fn_price_files[];

/* HD_E_INPUT: a bad file. HD_E_INVAL: it has no price of that kind. */
HD_MUST_USE enum hd_err hd_fn_price_read(const char *name, const char *text, size_t len, const char *kind,
	struct hd_arena *arena, struct hd_fn_price *price, struct hd_diag *diag);

/* One call. */
struct hd_fn_call_cost { char id[HD_RUNTIME_ID]; int64_t ms, memory_mb; bool estimated; };

/* What was spent. */
struct hd_fn_bill {
	struct hd_fn_price price;
	struct hd_arena *arena;           /* borrowed */
	struct hd_fn_call_cost *call;
	uint64_t ncalls, cap, nestimated;
};

/* Of nothing so far. */
void hd_fn_bill_init(struct hd_fn_bill *bill, const struct hd_fn_price *price, struct hd_arena *arena);
/* Time that is billed for a call that took so long. */
int64_t hd_fn_billed_ms(const struct hd_fn_price *price, int64_t ns);
/* A call with its REPORT. HD_E_INVAL: no amount of anything. */
HD_MUST_USE enum hd_err hd_fn_bill_report(struct hd_fn_bill *bill, const struct hd_lambda_report *report,
	struct hd_diag *diag);
/* A call without one. */
HD_MUST_USE enum hd_err hd_fn_bill_estimate(struct hd_fn_bill *bill, int64_t ns, int64_t memory_mb,
	struct hd_diag *diag);
/* By a log of the function: a REPORT that is booked already stands, each other one takes the place of an
 * estimate or, where there is none, is a call more. `nnew`: how many such there were. */
HD_MUST_USE enum hd_err hd_fn_bill_settle(struct hd_fn_bill *bill, const char *log, size_t len,
	uint64_t *nnew,
	struct hd_diag *diag);
/* Nano-dollars of all of it, rounded down once; -1: it does not fit. */
int64_t hd_fn_bill_nano(const struct hd_fn_bill *bill);
/* The same of some amount: milliseconds x MB, and calls. */
int64_t hd_fn_price_nano(const struct hd_fn_price *price, int64_t ms_mb, int64_t ncalls);

#endif
