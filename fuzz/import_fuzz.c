/* The importers of cluster schedulers: the first byte chooses one (r: the written form of recorded jobs, j:
 * sacct --json). Whatever is read keeps the promises of its header; what is written reads back to the same
 * text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "clustersim/availability.h"
#include "clustersim/job_list.h"
#include "clustersim/machines.h"
#include "clustersim/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The written form of jobs with records reads back to the same text. */
static void check_recorded(const struct hd_job_list *list, struct hd_arena *arena)
{
	struct hd_text once, twice;
	struct hd_job_list again;

	if (!list->n || !list->at[0].record)
		return;
	hd_text_init(&once, arena);
	hd_text_init(&twice, arena);
	hd_job_list_print_recorded(list, &once);
	if (once.full)
		return;
	must(hd_job_list_recorded_is((const uint8_t *)once.at, once.len));
	if (hd_job_list_recorded(&again, "again", (const uint8_t *)once.at, once.len, arena, NULL))
		return;                           /* no memory */
	must(again.n == list->n);
	hd_job_list_print_recorded(&again, &twice);
	must(twice.full || !strcmp(once.at, twice.at));
}

static void check_list(const struct hd_job_list *list, struct hd_arena *arena)
{
	struct hd_text once, twice;
	struct hd_job_list again;

	for (size_t i = 0; i < list->n; i++) {
		must(list->at[i].scale >= 1 && list->at[i].weight > 0 && list->at[i].steps >= 0);
		must(!i || list->at[i].arrival_s >= list->at[i - 1].arrival_s);
		const struct hd_job_record *r = list->at[i].record;
		must(!list->at[i].type || *list->at[i].type);
		must(!r || (*r->id && r->account && r->partition && r->qos && r->state && r->type &&
			r->asked &&
			!(r->waited_s < 0) && !(r->limit_s < 0)));
	}
	check_recorded(list, arena);
	for (uint64_t i = 0; i < list->nbad && i < HD_JOB_BAD; i++)
		must(list->bad[i] && *list->bad[i]);
	if (!list->columns)
		return;
	hd_text_init(&once, arena);
	hd_text_init(&twice, arena);
	hd_job_list_print(list, &once);
	if (once.full || hd_job_list_trace(&again, "again", (const uint8_t *)once.at, once.len, arena, NULL))
		/* no memory; or lines longer than may be, once numbers are written out */
		return;
	hd_job_list_print(&again, &twice);
	must(twice.full || !strcmp(once.at, twice.at));
}

static void check_prices(const struct hd_prices *prices)
{
	for (uint32_t t = 0; t < prices->ntypes; t++) {
		double now = prices->start_s;
		must(prices->first[t] < prices->first[t + 1]);
		for (int i = 0; i < 100 && isfinite(now); i++) {
			must(hd_price_at(prices, t, now) > 0);
			must(hd_price_change(prices, t, now) > now);
			now = hd_price_change(prices, t, now);
		}
	}
}

/* The laws of spot/trace.h. */
static void check_availability(const uint8_t *bytes, size_t len, struct hd_arena *arena)
{
	struct hd_spot_trace t;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_availability_read(&t, "t", bytes, len, 1, arena, &diag);

	must(!err == !*diag.text);
	if (err)
		return;
	bool *there = hd_arena_take(arena, (size_t)t.nnodes + 1, 1);
	for (size_t i = 0, next = 0; i < t.n && there; i++) {
		const struct hd_spot_event *e = &t.at[i];
		must(e->at_ms >= 0 && e->node < t.nnodes && *t.name[e->node]);
		must(!i || e->at_ms > t.at[i - 1].at_ms || (e->at_ms == t.at[i - 1].at_ms &&
			e->added <= t.at[i - 1].added));
		must(e->added ? e->node == next : there[e->node]);
		next += e->added;
		there[e->node] = e->added;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct hd_job_table_how how = { .rates = NULL };
	const struct hd_json *json;
	struct hd_machine_events events;
	struct hd_machine_list machines;
	struct hd_job_list list;
	struct hd_prices prices;
	struct hd_rates rates;
	struct hd_arena arena;

	if (!len)
		return 0;
	hd_arena_init(&arena, 64u << 20);
	const uint8_t *at = bytes + 1;
	len--;
	if (bytes[0] == 'r' || bytes[0] == 'j') {
		if (!(bytes[0] == 'r' ? hd_job_list_recorded(&list, "t", at, len, &arena, NULL) :
			hd_job_list_json(&list, "t", at, len, &how, &arena, NULL)))
			check_list(&list, &arena);
		hd_arena_finish(&arena);
		return 0;
	}
	switch (bytes[0] % 8) {
	case 0: if (!hd_job_list_trace(&list, "t", at, len, &arena, NULL)) check_list(&list, &arena); break;
	case 1: if (!hd_job_list_csv(&list, "t", at, len, &how, &arena, NULL)) check_list(&list, &arena);
		break;
	case 2:
		if (!hd_job_list_sacct(&list, "t", at, len, &how, &arena, NULL))
			check_list(&list, &arena);
		break;
	case 3:
		if (!hd_prices_read(&prices, "t", at, len, &arena, NULL))
			check_prices(&prices);
		break;
	case 4:
		if (!hd_json_parse(&arena, "t", (const char *)at, len, &json, NULL) &&
			!hd_prices_json(&prices, json, &arena, NULL))
			check_prices(&prices);
		break;
	case 5:
		if (!hd_machine_list_csv(&machines, "t", at, len, &arena, NULL) && machines.n)
			must(machines.at[0].devices > 0);
		break;
	case 6:
		if (!hd_machine_events_csv(&events, "t", at, len, &arena, NULL) && events.n)
			must(events.at[events.n - 1].at_s >= events.at[0].at_s);
		check_availability(at, len, &arena);
		break;
	case 7:
		if (!hd_json_parse(&arena, "t", (const char *)at, len, &json, NULL) &&
			!hd_rates_read(&rates, json, &arena, NULL))
			must(rates.nkinds == 0 || hd_rates_kind(&rates, rates.kind[0].name,
				rates.kind[0].scale) == 0);
	}
	hd_arena_finish(&arena);
	return 0;
}
