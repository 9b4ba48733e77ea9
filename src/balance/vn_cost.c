#include "balance/vn_cost.h"

#include <inttypes.h>

#include "base/checked.h"

static enum hd_err check(const struct hd_vn_profile *p, uint32_t nvns, struct hd_diag *diag)
{
	int64_t sum;

	if (nvns == 0 || nvns > HD_MAX_VNS || p->nwaves == 0 || p->nwaves > HD_VN_WAVES ||
		p->wave[0].vns != 1 || p->c0_ps < 0)
		return hd_fail(diag, HD_E_INVAL,
			"%.60s: %u virtual nodes (1 to %d), %u waves (1 to %d) of which the first has "
			"1, not %u, %" PRId64 " ps a step", p->type, nvns, HD_MAX_VNS, p->nwaves, HD_VN_WAVES,
			p->nwaves ? p->wave[0].vns : 0, p->c0_ps);
	for (uint32_t i = 0; i < p->nwaves; i++) {
		const struct hd_wave_time *w = &p->wave[i];
		if ((i && w->vns <= w[-1].vns) || w->ps <= 0 || w->back_ps < 0 || w->back_ps > w->ps ||
			w->bytes < 0)
			return hd_fail(diag, HD_E_INVAL,
				"%.60s: a wave of %u takes %" PRId64 " ps, backward %" PRId64 ", and "
				"%" PRId64 " bytes: sizes rise, "
				"times are positive, backward is a part", p->type, w->vns, w->ps, w->back_ps,
				w->bytes);
		if (!hd_mul_i64(w->ps, nvns, &sum) || !hd_add_i64(sum, p->c0_ps, &sum) || sum > HD_VN_PS_MAX)
			return hd_fail(diag, HD_E_INVAL,
				"%.60s: %u waves of %" PRId64 " ps are longer than a plan can tell", p->type,
				nvns, w->ps);
	}
	return HD_OK;
}

static bool fits(const struct hd_vn_profile *p, const struct hd_wave_time *wave) { return !p->limit_bytes ||
	wave->bytes <= p->limit_bytes; }

static const struct hd_wave_time *best_wave(const struct hd_vn_profile *p, const int64_t *f, uint32_t v)
{
	const struct hd_wave_time *best = NULL;
	int64_t least = 0;

	for (uint32_t i = 0; i < p->nwaves; i++) {
		const struct hd_wave_time *w = &p->wave[i];
		if (!fits(p, w))
			continue;
		int64_t time = w->ps + f[v > w->vns ? v - w->vns : 0];
		if (!best || time <= least) {
			best = w;
			least = time;
		}
	}
	return best;
}

enum hd_err hd_vn_cost_make(struct hd_vn_cost *cost, const struct hd_vn_profile *profile, uint32_t nvns,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_vn_cost made = { .type = profile->type, .nvns = nvns };
	enum hd_err err = check(profile, nvns, diag);

	if (err)
		return err;
	made.needs_bytes = profile->wave[0].bytes;
	made.limit_bytes = profile->limit_bytes;
	made.ps = hd_arena_take(arena, (size_t)nvns + 1, sizeof *made.ps);
	made.back_ps = hd_arena_take(arena, (size_t)nvns + 1, sizeof *made.back_ps);
	made.wave = hd_arena_take(arena, (size_t)nvns + 1, sizeof *made.wave);
	if (!made.ps || !made.back_ps || !made.wave)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the costs of %u virtual nodes", nvns);
	for (uint32_t v = 1; v <= nvns; v++) {
		const struct hd_wave_time *w = best_wave(profile, made.ps, v);
		uint32_t rest = w && v > w->vns ? v - w->vns : 0;
		made.ps[v] = w ? w->ps + made.ps[rest] : HD_VN_NEVER;
		made.wave[v] = !w ? 0 : w->vns < v ? w->vns : v;
		made.back_ps[v] = !w ? 0 : rest && made.back_ps[rest] < w->back_ps ? made.back_ps[rest] :
			w->back_ps;
	}
	for (uint32_t v = 1; v <= nvns; v++)
		made.ps[v] += made.ps[v] == HD_VN_NEVER ? 0 : profile->c0_ps;
	*cost = made;
	return HD_OK;
}

uint32_t hd_vn_cost_waves(const struct hd_vn_cost *cost, uint32_t v, uint32_t *size)
{
	uint32_t n = 0;

	for (; v; v -= cost->wave[v]) {
		uint32_t at = n++;
		while (at && size[at - 1] < cost->wave[v]) {
			size[at] = size[at - 1];
			at--;
		}
		size[at] = cost->wave[v];
	}
	return n;
}

uint32_t hd_vn_cost_most(const struct hd_vn_cost *cost, int64_t tau_ps)
{
	uint32_t low = 0, high = cost->nvns;

	while (low < high) {
		uint32_t mid = high - (high - low) / 2;
		if (cost->ps[mid] <= tau_ps)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}
