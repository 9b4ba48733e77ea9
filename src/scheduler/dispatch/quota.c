#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "scheduler/dispatch/int.h"
#include "scheduler/rounds_why.h"

/* What several jobs together may have at once. The rounds pick no more; and since a job may still hold
 * devices that it is to leave, a lease begins or grows only when all leases together stay within. */

static enum hd_err join(struct hd_dispatch *d, const struct hd_dispatch_limit *limit, uint32_t *at,
	struct hd_diag *diag)
{
	for (*at = 0; *at < d->nquotas && strcmp(d->quota[*at].name, limit->name) != 0; ++*at)
		;
	enum hd_err err = *at < d->nquotas ? HD_OK : hd_grow(&d->quota, &d->quotas_cap,
		(uint64_t)d->nquotas + 1, sizeof *d->quota, "quotas", diag);
	if (err)
		return err;
	d->quota[*at] = *limit;
	d->nquotas += *at == d->nquotas;
	return HD_OK;
}

static enum hd_err join_entity(struct hd_dispatch *d, const struct hd_dispatch_entity *entity,
	uint32_t within, uint32_t *at, struct hd_diag *diag)
{
	for (*at = 0; *at < d->nentities && strcmp(d->entity[*at].is.name, entity->name) != 0; ++*at)
		;
	enum hd_err err = *at < d->nentities ? HD_OK : hd_grow(&d->entity, &d->entities_cap,
		(uint64_t)d->nentities + 1, sizeof *d->entity, "accounts", diag);
	if (err)
		return err;
	d->entity[*at] = (struct live_entity){ *entity, within };
	d->nentities += *at == d->nentities;
	return HD_OK;
}

bool dispatch_good_entities(const struct hd_dispatch_job *row)
{
	bool good = row->nwithin <= HD_DISPATCH_WITHIN && (!row->nwithin || row->entity.name[0]) &&
		(!row->entity.name[0] || (row->entity.weight > 0 && isfinite(row->entity.weight)));

	for (uint32_t i = 0; i < row->nwithin && good; i++) {
		const struct hd_dispatch_entity *e = &row->within[i];
		good = e->name[0] && e->weight > 0 && isfinite(e->weight) &&
			strcmp(e->name, row->entity.name) != 0;
		for (uint32_t k = 0; k < i; k++)
			good &= strcmp(e->name, row->within[k].name) != 0;
	}
	return good;
}

enum hd_err dispatch_join_quotas(struct hd_dispatch *d, struct live *j, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;
	uint32_t at = 0, within = 0;

	j->entity = HD_SCHED_NONE;
	for (uint32_t i = 0; i < j->row.nlimits && !err; i++)
		err = join(d, &j->row.limit[i], &j->quota[i], diag);
	for (uint32_t i = 0; i < j->row.nwithin && !err; i++, within = at + 1)
		err = join_entity(d, &j->row.within[i], within, &at, diag);
	if (!err && j->row.entity.name[0])
		err = join_entity(d, &j->row.entity, within, &j->entity, diag);
	return err;
}

enum hd_err dispatch_tell_quotas(struct hd_dispatch *d, const struct live *j, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < j->row.nlimits && !err; i++)
		err = hd_rounds_limit(dispatch_part(d, j)->rounds, j->quota[i], d->quota[j->quota[i]].devices,
			d->quota[j->quota[i]].running, diag);
	if (!err)
		hd_rounds_limit_job(dispatch_part(d, j)->rounds, j->row.id, j->quota, j->row.nlimits);
	return err;
}

static uint32_t less(uint32_t most, uint32_t by)
{
	return most == UINT32_MAX ? most : most > by ? most - by : 0;
}

struct quota_share { uint32_t devices, running; };

static void add_share(const struct live *j, struct quota_share *share)
{
	uint32_t held = dispatch_leased(j) ? j->lease.n : 0;

	for (uint32_t k = 0; k < j->row.nlimits; k++) {
		share[j->quota[k]].devices += held > j->ntarget ? held : j->ntarget;
		share[j->quota[k]].running += held || j->ntarget;
	}
}

/* A walk knows the jobs of its own part alone: so those of others count as they are, or are meant to be. Once
 * over the jobs, of which there may be as many thousands as there are quotas. */
enum hd_err dispatch_share_quotas(struct hd_dispatch *d, const struct live_part *p, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	if (d->nparts == 1 || !d->nquotas)
		return HD_OK;
	struct quota_share *others = hd_alloc(d->nquotas * sizeof *others);
	if (!others)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u quotas", d->nquotas);
	memset(others, 0, d->nquotas * sizeof *others);
	for (uint32_t i = 0; i < d->njobs; i++)
		if (dispatch_part(d, d->job[i]) != p)
			add_share(d->job[i], others);
	for (uint32_t q = 0; q < d->nquotas && !err; q++) {
		const struct hd_dispatch_limit *most = &d->quota[q];
		if (most->devices != UINT32_MAX || most->running != UINT32_MAX)
			err = hd_rounds_limit(p->rounds, q, less(most->devices, others[q].devices),
				less(most->running, others[q].running), diag);
	}
	hd_free(others);
	return err;
}

/* What the jobs of a quota hold, whether they are about to leave it or not. */
static struct hd_dispatch_limit held(const struct hd_dispatch *d, uint32_t quota)
{
	struct hd_dispatch_limit sum = { .devices = 0 };

	for (uint32_t i = 0; i < d->njobs; i++) {
		const struct live *j = d->job[i];
		for (uint32_t k = 0; k < j->row.nlimits && dispatch_leased(j); k++)
			if (j->quota[k] == quota) {
				sum.devices += j->lease.n;
				sum.running++;
			}
	}
	return sum;
}

uint32_t dispatch_quota_room(const struct hd_dispatch *d, const struct live *j)
{
	uint32_t room = UINT32_MAX;

	for (uint32_t k = 0; k < j->row.nlimits; k++) {
		const struct hd_dispatch_limit *most = &d->quota[j->quota[k]];
		if (most->devices == UINT32_MAX && most->running == UINT32_MAX)
			continue;
		struct hd_dispatch_limit is = held(d, j->quota[k]);
		uint32_t left = most->devices == UINT32_MAX ? UINT32_MAX :
			most->devices > is.devices ? most->devices - is.devices : 0;
		if (!dispatch_leased(j) && is.running >= most->running)
			left = 0;
		room = left < room ? left : room;
	}
	return room;
}

uint32_t dispatch_least(const struct hd_dispatch *d, const struct hd_dispatch_job *row)
{
	return row->max && d->policy_set.policy->powers & HD_POLICY_ELASTIC ? row->min : row->scale;
}

static bool take_room(const struct hd_dispatch *d, struct hd_dispatch_limit *left, const struct live *j)
{
	uint32_t need = dispatch_least(d, &j->row);

	for (uint32_t k = 0; k < j->row.nlimits; k++)
		if (left[j->quota[k]].devices < need || !left[j->quota[k]].running)
			return false;
	for (uint32_t k = 0; k < j->row.nlimits; k++) {
		struct hd_dispatch_limit *l = &left[j->quota[k]];
		l->devices -= l->devices == UINT32_MAX ? 0 : need;
		l->running -= l->running != UINT32_MAX;
	}
	return true;
}

/* Of a type there are as many devices in service as it needs at once. */
static bool fits_some_type(const struct hd_dispatch *d, const struct live *j)
{
	bool fits = false;

	for (uint32_t t = 0; t < d->set.ntypes; t++)
		fits |= j->row.rate[t].steps_s > 0 &&
			hd_rounds_usable(dispatch_part(d, j)->rounds, t) >= dispatch_least(d, &j->row);
	return fits;
}

/* Those that run first, then by id: a queue that gave a share to more would keep devices for them. What waits
 * for devices of other parts, or for ones that there are not, takes no room from what can run here. */
bool *dispatch_quota_queue(const struct hd_dispatch *d, const struct live_part *p, struct hd_arena *arena)
{
	bool *in = hd_arena_take(arena, d->njobs + 1, sizeof *in);
	struct hd_dispatch_limit *left = hd_arena_take(arena, d->nquotas + 1, sizeof *left);

	if (!in || !left)
		return NULL;
	memcpy(left, d->quota, d->nquotas * sizeof *left);
	for (int runs = 1; runs >= 0; runs--)
		for (uint32_t i = 0; i < d->njobs; i++) {
			const struct live *j = d->job[i];
			bool here = dispatch_part(d, j) == p;
			bool has = dispatch_leased(j) || (!here && j->ntarget);
			if (has == runs && (has || here))
				in[i] = dispatch_is_here(j) && ((!has && !fits_some_type(d, j)) ||
					take_room(d, left, j));
		}
	return in;
}

uint32_t dispatch_quota_most(const struct hd_dispatch_job *row)
{
	uint32_t most = UINT32_MAX;

	for (uint32_t k = 0; k < row->nlimits; k++)
		most = row->limit[k].devices < most ? row->limit[k].devices : most;
	return most;
}

bool dispatch_quota_why(const struct hd_dispatch *d, const struct live *j, struct hd_dispatch_why *why)
{
	uint32_t over = hd_rounds_over(dispatch_part(d, j)->rounds, j->row.id);
	uint32_t need = dispatch_least(d, &j->row);

	for (uint32_t k = 0; k < j->row.nlimits && over == UINT32_MAX; k++) {
		struct hd_dispatch_limit is = held(d, j->quota[k]);
		const struct hd_dispatch_limit *most = &d->quota[j->quota[k]];
		if (is.running >= most->running || (most->devices != UINT32_MAX &&
			(uint64_t)is.devices + need > most->devices))
			over = j->quota[k];
	}
	if (over == UINT32_MAX)
		return false;
	struct hd_dispatch_limit is = held(d, over);
	const struct hd_dispatch_limit *most = &d->quota[over];
	if (is.running >= most->running)
		snprintf(why->text, sizeof why->text,
			"%s may have %u jobs with devices at once, and has %u: it waits for one to end",
			most->name, most->running, is.running);
	else if (need > most->devices)
		snprintf(why->text, sizeof why->text,
			"%s may have %u devices at once, and this job needs %u: it waits until it wants "
			"fewer or may have more", most->name, most->devices, need);
	else
		snprintf(why->text, sizeof why->text,
			"%s may have %u devices at once and has %u, and this job needs %u: it waits for "
			"jobs of that quota to end", most->name, most->devices, is.devices, need);
	return true;
}
