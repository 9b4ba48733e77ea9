#include "pipeline/generate.h"

#include <string.h>

#include "base/near.h"
#include "pipeline/schedule/kind.h"

const struct hd_schedule_kind hd_schedule_kinds[] = {
#define X(maker, ...) { __VA_ARGS__, &hd_make_##maker },
	HD_SCHEDULES(X)
#undef X
	{ 0 },
};

static bool named(const struct hd_schedule_kind *k, const char *name) { return !strcmp(k->name, name) ||
	(k->other && !strcmp(k->other, name)); }

static enum hd_err there_is_none(const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);
	char all[320] = "";

	for (const struct hd_schedule_kind *k = hd_schedule_kinds; k->name; k++) {
		hd_near_offer(&near, k->name);
		if (k->other)
			hd_near_offer(&near, k->other);
		strncat(all, *all ? ", " : "", sizeof all - strlen(all) - 1);
		strncat(all, k->name, sizeof all - strlen(all) - 1);
	}
	return hd_fail(diag, HD_E_INVAL, "there is no schedule \"%.40s\"%s%s%s there are %s", name,
		near.best ? "; did you mean " : ";", near.best ? near.best : "", near.best ? "?" : "", all);
}

enum hd_err hd_schedule_kind_find(const struct hd_schedule_kind **kind, const char *name,
	struct hd_diag *diag)
{
	const struct hd_schedule_kind *k = hd_schedule_kinds;

	while (k->name && !named(k, name))
		k++;
	if (!k->name)
		return there_is_none(name, diag);
	*kind = k;
	return HD_OK;
}

enum hd_err hd_no_limits(const struct hd_emit *e)
{
	(void)e;
	return HD_OK;
}

enum hd_err hd_limit(const struct hd_emit *e, const char *needs, uint32_t m_works)
{
	return hd_fail(e->diag, HD_E_INVAL, "%s needs %s: m = %u, p = %u; the nearest that works: -m %u",
		e->ask->name, needs, e->m, e->p, m_works);
}

static enum hd_err no_memory(const struct hd_emit *e)
{
	return hd_fail(e->diag, HD_E_NOMEM, "no memory for a schedule of %u ranks and %u virtual nodes", e->p,
		e->m);
}

static enum hd_err check_ask(const struct hd_schedule_kind *k, struct hd_emit *e)
{
	const struct hd_schedule_ask *ask = e->ask;
	uint64_t nins;

	if (e->p == 0 || e->p > HD_MAX_RANKS)
		return hd_fail(e->diag, HD_E_INVAL, "%s: %u ranks (-p); 1 to %d are possible", ask->name,
			e->p, HD_MAX_RANKS);
	if (e->m == 0 || e->m > HD_MAX_VNS)
		return hd_fail(e->diag, HD_E_INVAL, "%s: %u virtual nodes (-m); 1 to %u are possible",
			ask->name, e->m, (unsigned)HD_MAX_VNS);
	if (e->v < k->vmin || e->v > k->vmax)
		return k->vmin == k->vmax ?
			hd_fail(e->diag, HD_E_INVAL,
			"%s has %u model chunk%s a rank, not %u; for more there is interleaved", ask->name,
			k->vmin,
				k->vmin > 1 ? "s" : "", e->v) :
			hd_fail(e->diag, HD_E_INVAL,
			"%s has %u to %u model chunks a rank, not %u; the nearest that works: --chunks %u",
			ask->name,
				k->vmin, k->vmax, e->v, e->v < k->vmin ? k->vmin : k->vmax);
	if ((uint64_t)e->p * e->v > HD_SCHEDULE_STAGES)
		return hd_fail(e->diag, HD_E_INVAL, "%s: %u ranks of %u chunks are more than %d stages",
			ask->name, e->p, e->v, HD_SCHEDULE_STAGES);
	nins = (uint64_t)e->m * e->v * (k->maker->place == HD_PLACE_REPLICAS &&
		!ask->replicas ? 1 : e->p) * (k->maker->split ? 3 : 2);
	if (nins > HD_MAX_INS)
		return hd_fail(e->diag, HD_E_INVAL,
			"%s: p = %u, m = %u, v = %u make %llu instructions; %d are the most", ask->name, e->p,
			e->m, e->v,
			(unsigned long long)nins, HD_MAX_INS);
	return k->maker->limits(e);
}

static enum hd_err take_lists(const struct hd_schedule_kind *k, struct hd_emit *e)
{
	struct hd_schedule *s = e->schedule;
	uint64_t cap = (uint64_t)e->m * e->v * (k->maker->split ? 3 : 2);

	if (k->maker == &hd_make_data)
		cap = 2 * (uint64_t)(e->m / e->p + 1);
	s->list = hd_arena_take(e->arena, e->p, sizeof *s->list);
	for (uint32_t r = 0; s->list && r < e->p; r++) {
		s->list[r].cap = (uint32_t)cap;
		if (!(s->list[r].at = hd_arena_take(e->arena, s->list[r].cap, sizeof *s->list[r].at)))
			return no_memory(e);
	}
	return s->list ? HD_OK : no_memory(e);
}

static enum hd_err write_lists(const struct hd_schedule_kind *k, struct hd_emit *e)
{
	if (k->maker->all)
		return k->maker->all(e);
	for (e->r = 0; e->r < e->p; e->r++) {
		e->list = &e->schedule->list[e->r];
		k->maker->list(e);
	}
	return HD_OK;
}

enum hd_err hd_schedule_make(struct hd_schedule *out, const struct hd_schedule_ask *ask,
	struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_schedule_kind *kind = NULL;
	struct hd_schedule s = { .nranks = ask->p, .nvns = ask->m };
	struct hd_emit e = { .ask = ask, .p = ask->p, .m = ask->m, .schedule = &s, .arena = arena,
		.diag = diag };
	enum hd_err err = hd_schedule_kind_find(&kind, ask->name, diag);

	if (err)
		return err;
	e.v = ask->v ? ask->v : kind->vmin;
	s.update = kind->update;
	err = check_ask(kind, &e);
	err = err ? err : take_lists(kind, &e);
	err = err ? err : write_lists(kind, &e);
	err = err ? err : hd_schedule_infer(&s, arena, diag);
	struct hd_text heading;
	hd_text_init(&heading, arena);
	hd_text_addf(&heading, "%s p=%u m=%u stages=%u", kind->name, s.nranks, s.nvns, s.nstages);
	s.heading = heading.at;
	if (!err && (heading.full || s.nvns != ask->m))
		err = heading.full ? no_memory(&e) : hd_fail(diag, HD_E_BUG,
			"the schedule %s has %u virtual nodes, not %u", kind->name, s.nvns, ask->m);
	if (!err)
		*out = s;
	return err;
}
