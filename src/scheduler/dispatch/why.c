#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/dispatch/int.h"
#include "scheduler/rounds_why.h"

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

static uint32_t free_of(const struct hd_dispatch *d, const struct live_part *p, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t v = d->first_device[type]; v < d->first_device[type + 1]; v++)
		n += p->has[v] && d->device[v].usable && !d->device[v].job && !d->device[v].there;
	return n;
}

static void fill_types(const struct hd_dispatch *d, const struct live *j, double now_s,
	struct hd_dispatch_why *why)
{
	const struct live_part *p = dispatch_part(d, j);

	why->ntypes = d->set.ntypes;
	for (uint32_t t = 0; t < d->set.ntypes; t++) {
		struct hd_cell_view cell = { 0 };
		bool known = hd_rounds_view(p->rounds, j->row.id, t, &cell);
		why->type[t] = (struct hd_dispatch_why_type){ t, hd_rounds_usable(p->rounds, t),
			free_of(d, p, t), j->row.rate[t].steps_s, cell.x,
			known ? fmax(0, cell.t - d->set.round_s / 2) : 0,
			known ? cell.x * fmax(0, now_s - d->began_s) : 0, cell.priority };
	}
}

/* with more the policy is not asked for ways out: it would be, a dozen times, while leases wait */
enum { ASK_JOBS = 500 };

/* What its terms say (rule 12); false: nothing. */
static bool explain_terms(const struct live *j, struct hd_dispatch_why *why)
{
	const struct hd_job_terms *t = &j->row.terms;
	const struct hd_after *waits = NULL;

	for (uint32_t i = 0; i < t->nafter && !waits; i++)
		waits = t->after[i].now == HD_AFTER_WAITS ? &t->after[i] : NULL;
	if (j->admitted)
		return false;
	if (t->held) {
		why->code = codes[WHY_HELD];
		snprintf(why->text, sizeof why->text, "it is held; `heddle release %llu` lets it go on",
			(unsigned long long)j->row.id);
	} else if (waits) {
		why->code = codes[WHY_DEPENDS];
		snprintf(why->text, sizeof why->text, "it runs after %llu:%s, and job %llu is not over",
			(unsigned long long)waits->job, hd_after_name(waits->kind),
				(unsigned long long)waits->job);
	} else if (t->at_once) {
		why->code = codes[WHY_ARRAY_FULL];
		snprintf(why->text, sizeof why->text, "%u tasks of array %llu run, which is as many as may "
			"at once",
			t->at_once, (unsigned long long)t->array);
	}
	return why->code[0];
}

bool hd_dispatch_kept_back(const struct hd_dispatch *d, uint64_t id, struct hd_dispatch_why *why)
{
	const struct live *j = dispatch_find(d, id);

	*why = (struct hd_dispatch_why){ .code = "" };
	return j && j->row.state == HD_DISPATCH_OPEN && !j->row.cancel && explain_terms(j, why);
}

/* Shares and walk: the rounds tell. */
static enum hd_err explain_share(struct hd_dispatch *d, const struct live *j,
	const struct hd_dispatch_ask *ask, struct hd_dispatch_why *why, struct hd_diag *diag)
{
	struct hd_policy_setting set = d->policy_set;
	const struct live_part *p = dispatch_part(d, j);
	const struct hd_explain explain = { &set, &p->state, &p->shares, p->rounds, ask->now_s, d->boundary_s,
		ask->what_if && p->state.njobs <= ASK_JOBS, ask->may_see, ask->user };
	struct hd_arena arena;
	struct hd_why said;

	if (hd_sched_find(&p->state, j->row.id) == HD_SCHED_NONE || j->row.id > p->solved) {
		why->code = hd_why_name(HD_WHY_QUEUED_NEW);
		snprintf(why->text, sizeof why->text,
			"it came after the last shares were made; the next are made at %.1f s",
			d->boundary_s);
		return HD_OK;
	}
	set.stop = ask->stop;
	hd_arena_init(&arena, 0);
	enum hd_err err = hd_rounds_explain(&explain, j->row.id, &arena, &said, diag);
	if (!err) {
		why->code = hd_why_name(said.code);
		snprintf(why->text, sizeof why->text, "%s", said.text);
		snprintf(why->more, sizeof why->more, "%s", said.help);
	}
	if (!err && said.code == HD_WHY_RUNS) {
		why->code = codes[WHY_VACATING];
		snprintf(why->text, sizeof why->text,
			"the round gives it devices, and they are not free yet");
	}
	hd_arena_finish(&arena);
	return err;
}

enum hd_err hd_dispatch_explain(struct hd_dispatch *d, uint64_t id, const struct hd_dispatch_ask *ask,
	struct hd_dispatch_why *why, struct hd_diag *diag)
{
	const struct live *j = dispatch_find(d, id);
	char never[HD_DISPATCH_WHY];

	*why = (struct hd_dispatch_why){ .code = "" };
	if (!j)
		return hd_fail(diag, HD_E_NOTFOUND, "there is no job %llu that is not over",
			(unsigned long long)id);
	if (j->row.state != HD_DISPATCH_OPEN) {
		why->code = hd_why_name(HD_WHY_OVER);
		snprintf(why->text, sizeof why->text, "it is %s; its workers leave",
			hd_dispatch_state_name(j->row.state));
		return HD_OK;
	}
	fill_types(d, j, ask->now_s, why);
	if (dispatch_leased(j) && j->lease.state >= HD_LEASE_DRAIN) {
		why->code = hd_why_name(HD_WHY_DRAINING);
		snprintf(why->text, sizeof why->text, "it commits and leaves its %u devices by %.1f s%s",
			j->lease.n, j->lease.until_s,
			j->again ? ", to go on elsewhere" : "");
		return HD_OK;
	}
	if (dispatch_leased(j)) {
		why->code = hd_why_name(HD_WHY_RUNS);
		snprintf(why->text, sizeof why->text, "it runs on %u devices, its lease is %s until %.1f s",
			j->lease.n, hd_lease_name(j->lease.state),
			j->lease.until_s);
		return HD_OK;
	}
	if (explain_terms(j, why))
		return HD_OK;
	/* what no type can run waits for no quota */
	if (!hd_dispatch_unrunnable(d, &j->row, never) && dispatch_quota_why(d, j, why)) {
		why->code = codes[WHY_QUOTA];
		return HD_OK;
	}
	if (j->ntarget) {
		why->code = codes[WHY_VACATING];
		snprintf(why->text, sizeof why->text,
			"%u devices are given to it, and others are about to leave them", j->ntarget);
		return HD_OK;
	}
	if (explain_terms(j, why))
		return HD_OK;
	if (dispatch_window_why(d, j, why)) {
		why->code = codes[WHY_RESERVED];
		return HD_OK;
	}
	if (dispatch_part_why(d, j, why)) {
		why->code = codes[WHY_PARTITION];
		return HD_OK;
	}
	return explain_share(d, j, ask, why, diag);
}
