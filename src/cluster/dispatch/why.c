#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cluster/dispatch/int.h"
#include "cluster/sched_why.h"

/* Why a job is where it is: first what a lease says, then the shares, then the walk. */

static const char *const codes[] = {
#define X(id, name) name,
	HD_DISPATCH_WHYS(X)
#undef X
};
enum {
#define X(id, name) WHY_##id,
	HD_DISPATCH_WHYS(X)
#undef X
};

static uint32_t free_of(const struct hd_dispatch *d, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t v = d->first_device[type]; v < d->first_device[type + 1]; v++)
		n += d->device[v].usable && !d->device[v].job && !d->device[v].there;
	return n;
}

static void fill_types(const struct hd_dispatch *d, const struct live *j, double now_s, struct hd_dispatch_why *why)
{
	why->ntypes = d->set.ntypes;
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		struct hd_cell_view cell = { 0 };
		bool known = hd_rounds_view(d->rounds, j->row.id, t, &cell);
		why->type[t] = (struct hd_dispatch_why_type){ t, hd_rounds_usable(d->rounds, t), free_of(d, t), j->row.rate[t].steps_s, cell.x,
			known ? fmax(0, cell.t - d->set.round_s / 2) : 0, known ? cell.x * fmax(0, now_s - d->began_s) : 0, cell.priority };
	}
}

static const char *name_of(const struct hd_dispatch *d, uint32_t type) { return d->type[type].name; }

/* Of the types with a share the one on which it leads most. */
static uint32_t best_type(const struct hd_dispatch_why *why)
{
	uint32_t best = HD_SCHED_NONE;

	for (uint32_t t = 0; t < why->ntypes; t++)
		if (why->type[t].share > 0 && (best == HD_SCHED_NONE || why->type[t].priority > why->type[best].priority))
			best = t;
	return best;
}

static void holders(const struct hd_dispatch *d, uint32_t type, struct hd_text *text)
{
	uint32_t n = 0;
	uint64_t last = 0;

	for (uint32_t v = d->first_device[type]; v < d->first_device[type + 1] && n < 3; v++)
		if (d->device[v].job && d->device[v].job != last) {
			struct hd_cell_view cell = { 0 };
			last = d->device[v].job;
			(void)hd_rounds_view(d->rounds, last, type, &cell);
			hd_text_addf(text, "%sjob %llu (priority %.3g)", n++ ? ", " : "", (unsigned long long)last, cell.priority);
		}
}

/* It has a share, and no devices in this round. */
static void explain_walk(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why)
{
	uint32_t t = best_type(why);
	struct hd_text text;
	const struct hd_dispatch_why_type *of = &why->type[t];

	hd_text_fixed(&text, why->text, sizeof why->text);
	if (of->free && of->free < j->row.scale) {
		why->code = codes[WHY_GANG_NO_FIT];
		hd_text_addf(&text, "it needs %u devices at once; %u of %s are free", j->row.scale, of->free, name_of(d, t));
	} else if (of->received_s > of->due_s) {
		why->code = codes[WHY_SHARE_PAID];
		hd_text_addf(&text, "its share of %s is %.3g of the time; it has received %.3g s there and was due %.3g s", name_of(d, t), of->share,
			of->received_s, of->due_s);
	} else {
		why->code = codes[WHY_OUTRANKED];
		hd_text_addf(&text, "its priority on %s is %.3g; the devices went to ", name_of(d, t), of->priority);
		holders(d, t, &text);
	}
}

static enum hd_err explain_share(struct hd_dispatch *d, const struct live *j, bool what_if, struct hd_dispatch_why *why, struct hd_diag *diag)
{
	uint32_t at = hd_sched_find(&d->state, j->row.id);
	struct hd_arena arena;
	struct hd_why said;

	if (at == HD_SCHED_NONE || j->row.id > d->solved) {
		why->code = codes[WHY_QUEUED_NEW];
		snprintf(why->text, sizeof why->text, "it came after the last shares were made; the next are made at %.1f s", d->boundary_s);
		return HD_OK;
	}
	if (best_type(why) != HD_SCHED_NONE) {
		explain_walk(d, j, why);
		return HD_OK;
	}
	hd_arena_init(&arena, 0);
	enum hd_err err = HD_OK;
	if (hd_sched_blocked(&d->state, at) || !what_if) {
		why->code = hd_why_name(hd_sched_blocked(&d->state, at) ? HD_WHY_UNRUNNABLE : HD_WHY_NO_SHARE);
		snprintf(why->text, sizeof why->text, hd_sched_blocked(&d->state, at) ? "no type of device can run it, or none has %u of them" :
			"the policy gives it no share for now (%u devices at once)", j->row.scale);
	} else {
		err = hd_sched_why(&d->policy_set, &d->state, &d->shares, at, &arena, &said, diag);
		if (!err) {
			why->code = hd_why_name(said.code);
			snprintf(why->text, sizeof why->text, "%.300s", said.text);
			if (said.weight > 0)
				snprintf(why->more, sizeof why->more, "with priority %.3g it would have a share now", said.weight);
		}
	}
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_dispatch_explain(struct hd_dispatch *d, uint64_t id, double now_s, bool what_if, struct hd_dispatch_why *why, struct hd_diag *diag)
{
	const struct live *j = dispatch_find(d, id);

	*why = (struct hd_dispatch_why){ .code = "" };
	if (!j)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu that is not over", (unsigned long long)id);
	if (j->row.state != HD_DISPATCH_OPEN) {
		why->code = hd_why_name(HD_WHY_OVER);
		snprintf(why->text, sizeof why->text, "it is %s; its workers leave", hd_dispatch_state_name(j->row.state));
		return HD_OK;
	}
	fill_types(d, j, now_s, why);
	if (dispatch_leased(j) && j->lease.state >= HD_LEASE_DRAIN) {
		why->code = codes[WHY_DRAINING];
		snprintf(why->text, sizeof why->text, "it commits and leaves its %u devices by %.1f s%s", j->lease.n, j->lease.until_s,
			j->again ? ", to go on elsewhere" : "");
		return HD_OK;
	}
	if (dispatch_leased(j)) {
		why->code = hd_why_name(HD_WHY_RUNS);
		snprintf(why->text, sizeof why->text, "it runs on %u devices, its lease is %s until %.1f s", j->lease.n, hd_lease_name(j->lease.state),
			j->lease.until_s);
		return HD_OK;
	}
	if (j->ntarget) {
		why->code = codes[WHY_VACATING];
		snprintf(why->text, sizeof why->text, "%u devices are given to it, and others are about to leave them", j->ntarget);
		return HD_OK;
	}
	return explain_share(d, j, what_if, why, diag);
}
