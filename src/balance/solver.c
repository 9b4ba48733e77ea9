#include "balance/solver.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

static const char *const verdict_words[] = {
#define X(id, words) words,
	HD_VERDICTS(X)
#undef X
};

const char *hd_verdict_words(enum hd_verdict verdict) { return verdict_words[verdict]; }

/* more devices: runs of equal counts print as count*devices */
enum { PPM = 1000000, COUNTS_SHOWN = 16 };

struct solver_run {
	const struct hd_solve_ask *ask;
	struct hd_solve *solve;
	uint8_t *allowed;                         /* [ndevices] */
	struct hd_arena *arena;
	struct hd_diag *diag;
};

/* rule 6 */
static uint32_t margin_of(const struct hd_solve_ask *ask)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ask->nerrors; i++)
		sum += ask->error_ppm[i];
	uint64_t twice = ask->nerrors ? 2 * sum / ask->nerrors : 2 * HD_SOLVE_ERROR_PPM;
	return twice > HD_SOLVE_MARGIN_PPM ? (uint32_t)twice : HD_SOLVE_MARGIN_PPM;
}

int32_t hd_solve_slower_ppm(int64_t by_ps, int64_t over_ps)
{
	wide ppm = over_ps ? ((wide)by_ps - over_ps) * PPM / over_ps : 0, most = (wide)1000 * PPM;

	return (int32_t)(ppm > most ? most : ppm < -most ? -most : ppm);
}

bool hd_solve_gains(int64_t step_ps, int64_t over_ps, uint32_t margin_ppm)
{
	return (wide)step_ps * PPM < (wide)over_ps * (PPM - (int64_t)margin_ppm);
}

static enum hd_err least_of_type(const struct solver_run *s, struct hd_solve_plan *plan, uint32_t type,
	struct hd_diag *why)
{
	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		s->allowed[d] = s->ask->device[d].type == type;
	return hd_solve_least(plan, s->ask, s->allowed, NULL, s->arena, why);
}

/* ---- the simple plan (rule 6) */

static enum hd_err simple_now(const struct solver_run *s, struct hd_solve_plan *simple)
{
	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		s->allowed[d] = s->ask->now[d] > 0;
	return hd_solve_least(simple, s->ask, s->allowed, NULL, s->arena, s->diag);
}

/* The best of one type; of equal ones fewer members, then the lower type. A type that never fits is passed
 * over. */
static enum hd_err simple_start(const struct solver_run *s, struct hd_solve_plan *simple)
{
	enum hd_err err = HD_E_REFUSED;
	bool found = false;

	for (uint32_t t = 0; t < s->ask->ntypes; t++) {
		struct hd_solve_plan plan;
		struct hd_diag why = { "" };
		err = least_of_type(s, &plan, t, &why);
		if (err && err != HD_E_REFUSED && err != HD_E_INVAL)
			return hd_fail(s->diag, err, "%s", why.text);
		if (!err && (!found || plan.step_ps < simple->step_ps ||
			(plan.step_ps == simple->step_ps && plan.nmembers < simple->nmembers))) {
			*simple = plan;
			found = true;
		}
	}
	return found ? HD_OK : HD_E_REFUSED;
}

static bool adds_nothing(const struct solver_run *s, const struct hd_solve_plan *plan,
	const struct hd_solve_plan *simple)
{
	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		if (plan->count[d] && !(s->ask->now ? s->ask->now[d] : simple->count[d]))
			return false;
	return true;
}

/* ---- rivals */

static uint32_t used_of(const struct solver_run *s, const struct hd_solve_plan *plan, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		n += s->ask->device[d].type == type && plan->count[d];
	return n;
}

static uint32_t all_of(const struct solver_run *s, uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < s->ask->ndevices; d++)
		n += s->ask->device[d].type == type;
	return n;
}

static void put_rival(const struct solver_run *s, struct hd_solve_rival rival)
{
	if (s->solve->nrivals < HD_SOLVE_RIVALS)
		s->solve->rival[s->solve->nrivals++] = rival;
}

static enum hd_verdict judge(const struct solver_run *s, const struct hd_solve_plan *rival, uint32_t type)
{
	const struct hd_solve_plan *plan = &s->solve->plan;

	if (rival->step_ps < plan->step_ps)
		return HD_VERDICT_WITHIN_ERROR;
	if (rival->step_ps == plan->step_ps)
		return HD_VERDICT_NO_GAIN;
	if (s->ask->type[type].ps[1] > plan->step_ps)
		return HD_VERDICT_TOO_SLOW;
	return rival->compute_ps < plan->compute_ps ? HD_VERDICT_EXCHANGE : HD_VERDICT_SLOWER;
}

/* What would be if a type that the plan leaves out were used, or one of several were used alone. */
static enum hd_err rival_of(const struct solver_run *s, uint32_t type)
{
	const struct hd_solve_plan *plan = &s->solve->plan;
	bool alone = used_of(s, plan, type) > 0;
	struct hd_solve_plan rival;
	struct hd_diag why = { "" };
	enum hd_err err;

	if (alone && used_of(s, plan, type) == plan->ndevices)
		return HD_OK;                             /* it is the plan */
	if (!all_of(s, type))
		return HD_OK;
	err = alone ? least_of_type(s, &rival, type, &why) : hd_solve_least(&rival, s->ask, NULL, &type,
		s->arena, &why);
	if (err == HD_E_REFUSED) {
		put_rival(s, (struct hd_solve_rival){ HD_VERDICT_NO_MEMORY, all_of(s, type), type, alone, 0,
			0 });
		return HD_OK;
	}
	if (err)
		return hd_fail(s->diag, err, "%s", why.text);
	put_rival(s, (struct hd_solve_rival){ judge(s, &rival, type), used_of(s, &rival, type), type, alone,
		rival.step_ps,
		hd_solve_slower_ppm(rival.step_ps, plan->step_ps) });
	return HD_OK;
}

enum hd_err hd_solve(struct hd_solve *solve, const struct hd_solve_ask *ask, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_solve made = { .margin_ppm = margin_of(ask) };
	struct solver_run s = { ask, &made, hd_arena_take(arena, ask->ndevices, 1), arena, diag };
	struct hd_solve_plan simple = { 0 };
	enum hd_err err = hd_solve_least(&made.plan, ask, NULL, NULL, arena, diag);

	if (!err && !s.allowed)
		err = hd_fail(diag, HD_E_NOMEM, "no memory to judge %u devices", ask->ndevices);
	if (err)
		return err;
	err = ask->now ? simple_now(&s, &simple) : simple_start(&s, &simple);
	if (!err && !adds_nothing(&s, &made.plan, &simple) &&
		!hd_solve_gains(made.plan.step_ps, simple.step_ps, made.margin_ppm))
		made.plan = simple;
	err = err == HD_E_REFUSED ? HD_OK : err;          /* nothing simple fits: then what does */
	for (uint32_t t = 0; t < ask->ntypes && !err; t++)
		err = rival_of(&s, t);
	if (!err)
		*solve = made;
	return err;
}

/* ---- words */

void hd_solve_map(const struct hd_solve_plan *plan, const struct hd_solve_ask *ask, uint32_t *map)
{
	for (uint32_t d = 0; d < ask->ndevices; d++)
		for (uint32_t v = 0; v < plan->count[d]; v++)
			map[plan->first[d] + v] = d;
}

static double ms(int64_t ps) { return (double)ps * 1e-9; }

static void print_plan(const struct hd_solve *solve, const struct hd_solve_ask *ask, struct hd_text *text)
{
	const struct hd_solve_plan *plan = &solve->plan;

	hd_text_add(text, "virtual nodes ");
	for (uint32_t d = 0, n = 1; d < ask->ndevices; d += n) {
		for (n = 1; ask->ndevices > COUNTS_SHOWN && d + n < ask->ndevices &&
			plan->count[d + n] == plan->count[d];)
			n++;
		hd_text_addf(text, "%s%u", d ? "/" : "", plan->count[d]);
		if (n > 1)
			hd_text_addf(text, "*%u", n);
	}
	hd_text_addf(text,
		": %.3f ms a step, computing %.3f, exchange %.3f of which %.3f shows; %u of %u devices, %u "
		"of %u workers, %u roots, "
		"%u at most%s\n", ms(plan->step_ps), ms(plan->compute_ps), ms(plan->exchange_ps),
		ms(plan->step_ps - plan->compute_ps), plan->ndevices,
		ask->ndevices, plan->nmembers, ask->nworkers, plan->roots, plan->most_roots,
		plan->exact ? "" : "; found by levels, not by trying all");
}

static void print_rival(const struct hd_solve *solve, const struct hd_solve_rival *r,
	const struct hd_solve_ask *ask, struct hd_text *text)
{
	const struct hd_vn_cost *type = &ask->type[r->type];

	hd_text_addf(text, "%s%u x %s: ", r->alone ? "only " : "", r->ndevices, type->type);
	if (r->verdict == HD_VERDICT_NO_MEMORY) {
		hd_text_addf(text, "%s (needs %.1f MiB, has %.1f MiB)\n", hd_verdict_words(r->verdict),
			(double)type->needs_bytes * 0x1p-20,
			(double)type->limit_bytes * 0x1p-20);
		return;
	}
	if (r->slower_ppm)
		hd_text_addf(text, "would be %.1f %% %s: ", abs(r->slower_ppm) * 1e-4,
			r->slower_ppm < 0 ? "faster" : "slower");
	hd_text_add(text, hd_verdict_words(r->verdict));
	if (r->verdict == HD_VERDICT_WITHIN_ERROR)
		hd_text_addf(text, " (%.1f %%)", solve->margin_ppm * 1e-4);
	if (r->verdict == HD_VERDICT_TOO_SLOW)
		hd_text_addf(text, " (%.3f ms)", ms(type->ps[1]));
	hd_text_addf(text, "; %.3f ms\n", ms(r->step_ps));
}

void hd_solve_print(const struct hd_solve *solve, const struct hd_solve_ask *ask, struct hd_text *text)
{
	print_plan(solve, ask, text);
	for (uint32_t i = 0; i < solve->nrivals; i++)
		print_rival(solve, &solve->rival[i], ask, text);
}
