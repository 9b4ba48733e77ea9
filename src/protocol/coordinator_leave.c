#include "protocol/coordinator_int.h"

#include <assert.h>
#include <string.h>

/* Requests to leave: for one worker (DRAIN), or all of them (HALT). Both are in the record: rule 14. */

bool hd_co_is_going(const struct hd_coordinator *co, uint32_t worker)
{
	for (uint32_t i = 0; i < co->record.ngoing; i++)
		if (co->record.going[i] == worker)
			return true;
	return false;
}

/* It is gone: stored with the next record, since its id is not used again. */
void hd_co_forget_going(struct hd_coordinator *co, uint32_t worker)
{
	struct hd_co_record *r = &co->record;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->ngoing; i++)
		if (r->going[i] != worker)
			r->going[n++] = r->going[i];
	assert(n <= r->ngoing);
	r->ngoing = n;
}

/* A worker that leaves on its own says so to each coordinator; one that was asked to, here, does not
 * know. */
void hd_co_on_drain(struct hd_coordinator *co, uint32_t worker)
{
	struct hd_co_worker *w = hd_co_find(co, worker);
	struct hd_co_record *r = &co->record;

	if (!w || !hd_co_is_here(w) || w->draining)
		return;
	w->draining = true;
	if (r->ngoing == HD_MAX_WORKERS)
		memmove(r->going, r->going + 1, --r->ngoing * sizeof *r->going);
	assert(r->ngoing < HD_MAX_WORKERS && !hd_co_is_going(co, worker));
	r->going[r->ngoing++] = worker;
	hd_co_store(co);
}

void hd_co_halt(struct hd_coordinator *co, uint32_t code, const char *why)
{
	size_t n = strnlen(why, HD_MSG_TEXT);

	if (co->halting)
		return;
	assert(co->phase != HD_CO_OVER);
	co->halting = true;
	co->halt_code = code;
	memcpy(co->halt_why, why, n);
	co->halt_why[n] = '\0';
	for (uint32_t i = 0; i < HD_MAX_WORKERS; i++)
		hd_co_change_again(co, &co->worker[i]);
}

void hd_co_on_halt(struct hd_coordinator *co, uint32_t code, const char *why)
{
	size_t n = why ? strnlen(why, HD_MSG_TEXT) : 0;

	if (co->record.halting)
		return;
	co->record.halting = true;
	co->record.halt_code = code;
	memcpy(co->record.halt_why, why ? why : "", n);
	co->record.halt_why[n] = '\0';
	hd_co_store(co);
	hd_co_halt(co, code, co->record.halt_why);
}

void hd_co_end_halted(struct hd_coordinator *co, uint64_t step)
{
	bool all = co->config.nsteps && step >= co->config.nsteps;

	hd_co_end(co, co->halting && !all ? co->halt_code : 0, co->halting && !all ? co->halt_why : "");
}
