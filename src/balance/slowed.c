#include "balance/solver.h"

/* of the profile; how many steps of rounding its times are multiplied by */
struct slowed_type { uint32_t type, steps; };

static uint32_t rounded(double slow, double step)
{
	double steps = slow / step + 0.5;

	return steps < 1 ? 1 : steps > 1e9 ? 1000000000 : (uint32_t)steps;
}

/* The kinds there are with this rounding; more than fit: HD_SOLVE_TYPES + 1. */
static uint32_t kinds_of(const struct hd_solve_ask *ask, const double *slow, double step,
	struct slowed_type *kind,
	uint32_t *of)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < ask->ndevices; d++) {
		struct slowed_type k = { ask->device[d].type, rounded(slow[d], step) };
		uint32_t i = 0;
		while (i < n && (kind[i].type != k.type || kind[i].steps != k.steps))
			i++;
		if (i == HD_SOLVE_TYPES)
			return HD_SOLVE_TYPES + 1;
		if (i == n)
			kind[n++] = k;
		of[d] = i;
	}
	return n;
}

static int64_t times(int64_t ps, double slow)
{
	double product = (double)ps * slow;

	return ps == HD_VN_NEVER ? ps : product > (double)HD_VN_PS_MAX ? HD_VN_PS_MAX : (int64_t)product;
}

enum hd_err hd_solve_slowed(struct hd_solve_ask *out, const struct hd_solve_ask *ask, const double *slow,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct slowed_type kind[HD_SOLVE_TYPES];
	uint32_t *of = hd_arena_take(arena, ask->ndevices, sizeof *of), n = HD_SOLVE_TYPES + 1;
	struct hd_vn_cost *type = hd_arena_take(arena, HD_SOLVE_TYPES, sizeof *type);
	struct hd_solve_device *device = hd_arena_take(arena, ask->ndevices, sizeof *device);
	double step = 0.01;

	if (!of || !type || !device)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the speeds of %u devices", ask->ndevices);
	for (; (n = kinds_of(ask, slow, step, kind, of)) > HD_SOLVE_TYPES; step *= 2)
		/* with a step above all of them, what is left is one kind a type */
		;
	for (uint32_t i = 0; i < n; i++) {
		double by = kind[i].steps * step;
		type[i] = ask->type[kind[i].type];
		type[i].ps = hd_arena_take(arena, (size_t)ask->nvns + 1, sizeof *type[i].ps);
		type[i].back_ps = hd_arena_take(arena, (size_t)ask->nvns + 1, sizeof *type[i].back_ps);
		if (!type[i].ps || !type[i].back_ps)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the speeds of %u devices",
				ask->ndevices);
		for (uint32_t v = 1; v <= ask->nvns; v++) {
			type[i].ps[v] = times(ask->type[kind[i].type].ps[v], by);
			type[i].back_ps[v] = times(ask->type[kind[i].type].back_ps[v], by);
		}
	}
	for (uint32_t d = 0; d < ask->ndevices; d++)
		device[d] = (struct hd_solve_device){ of[d], ask->device[d].worker };
	*out = *ask;
	out->type = type;
	out->ntypes = n;
	out->device = device;
	return HD_OK;
}
