#include "chaos/campaign.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/philox.h"

/* ---- what is to happen ---- */

static int by_step(const void *a, const void *b)
{
	const struct hd_fault *x = a, *y = b;

	return x->step != y->step ? (x->step < y->step ? -1 : 1) : x->part != y->part ?
		(x->part < y->part ? -1 : 1) : (int)x->kind - (int)y->kind;
}

enum hd_err hd_campaign_counts(const char *text, uint32_t kills, uint32_t count[HD_FAULTS],
	struct hd_diag *diag)
{
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		count[k] = text || (hd_fault_orders(k) && !hd_failpoint_built()) ? 0 : kills / 10;
	count[HD_FAULT_KILL] = kills;
	while (text && *text) {
		size_t name = strcspn(text, "=,"), len = strcspn(text, ",");
		char digits[24];
		uint64_t n = 0;
		uint32_t k = HD_FAULT_POINT;
		while (k < HD_FAULTS && (strlen(hd_fault_name[k]) != name ||
			strncmp(hd_fault_name[k], text, name) != 0))
			k++;
		snprintf(digits, sizeof digits, "%.*s", (int)(len > name ? len - name - 1 : 0),
			text + name + (text[name] == '='));
		if (k == HD_FAULTS || text[name] != '=' || hd_num_u64(digits, HD_CAMPAIGN_MOST, &n, NULL))
			return hd_fail(diag, HD_E_INVAL,
				"--faults, at \"%.40s\": write KIND=N,... with point, pause, slow, net, "
				"disk, scale and at most %d", text, HD_CAMPAIGN_MOST);
		count[k] = (uint32_t)n;
		text += len + (text[len] == ',');
	}
	return HD_OK;
}

void hd_campaign_draw(const struct hd_campaign *c, uint32_t i, enum hd_fault_kind kind,
	struct hd_fault *fault)
{
	const uint64_t key = hd_philox_key(c->seed, HD_RNG_USER);
	const struct hd_philox w = hd_philox((const uint32_t[4]){ i, 0, 0, 0 }, key),
		v = hd_philox((const uint32_t[4]){ i, 1, 0, 0 }, key);

	assert(c->nsteps >= 3);
	hd_fault_draw(fault, kind, (const uint32_t[4]){ w.word[2], w.word[1], v.word[0], v.word[1] },
		c->nworkers + 1, c->npoints, c->detect_ns);
	fault->step = 1 + w.word[0] % (c->nsteps - 2 - c->nsteps / 8);
}

uint64_t hd_campaign_pace_ms(const struct hd_campaign *c)
{
	double ms = 1.5e-6 * (double)c->detect_ns * c->nfaults / (double)c->nsteps;

	return ms < HD_CAMPAIGN_PACE_MS ? (uint64_t)ms : HD_CAMPAIGN_PACE_MS;
}

enum hd_err hd_campaign_plan(struct hd_campaign *c, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t i = 0;

	if (c->each_point)
		c->count[HD_FAULT_POINT] = c->each_point * c->npoints;
	c->nfaults = c->next = c->begun = 0;
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		c->nfaults += c->count[k];
	c->fault = hd_arena_take(arena, c->nfaults + 1, sizeof *c->fault);
	if (!c->fault)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u faults", c->nfaults);
	for (uint32_t k = 0; k < HD_FAULTS; k++)
		for (uint32_t n = 0; n < c->count[k]; n++, i++) {
			hd_campaign_draw(c, i, k, &c->fault[i]);
			if (k == HD_FAULT_POINT && c->each_point) {
				c->fault[i].point = n % c->npoints;
				c->fault[i].step = 1 + c->fault[i].step / 2;
			}
		}
	qsort(c->fault, c->nfaults, sizeof *c->fault, by_step);
	assert(i == c->nfaults);
	return HD_OK;
}

/* ---- making it happen ---- */

/* The part of a step to wait for before a fault. A step that was held up is not waited for: others may stand
 * still meanwhile. */
static int64_t part_ns(const struct hd_campaign *c, const struct hd_harness *h, const struct hd_fault *f)
{
	double step_ns = h->live.step_ms * 1e6, most_ns = (double)c->detect_ns / 4;

	return (int64_t)((double)f->part / 0x1p32 * (step_ns < most_ns ? step_ns : most_ns));
}

/* Faults whose time has come, but as many as can be waited for before the next look at the run: it may have
 * ended, or stand still, or a stop is wanted. */
static enum hd_err act(struct hd_campaign *c, struct hd_harness *h, struct hd_faults *faults,
	struct hd_diag *diag)
{
	const int64_t until_ns = hd_clock_now_ns(h->clock) + HD_HARNESS_LOOK_NS;
	bool in_time = true;

	for (uint32_t i = c->next; i < c->nfaults && c->fault[i].step <= hd_harness_step(h) && in_time; i++) {
		struct hd_fault *f = &c->fault[i];
		if (f->begun)
			continue;
		if (!f->tried) {
			hd_clock_wait_until(h->clock, hd_clock_now_ns(h->clock) + part_ns(c, h, f));
			in_time = hd_clock_now_ns(h->clock) < until_ns;
		}
		f->tried = true;
		if (!hd_fault_do(faults, f))
			continue;
		f->begun = true;
		c->begun++;
		while (c->next < c->nfaults && c->fault[c->next].begun)
			c->next++;
		enum hd_err err = hd_harness_look(h, diag);
		if (err)
			return err;
	}
	return HD_OK;
}

enum hd_err hd_campaign_run(struct hd_campaign *c, struct hd_harness *h, struct hd_faults *faults,
	struct hd_diag *diag)
{
	int64_t look = 0, turn = 0;
	enum hd_err err = HD_OK;

	while (!err && !hd_harness_ended(h)) {
		hd_clock_wait_until(h->clock, turn < look ? turn : look);
		if (hd_clock_now_ns(h->clock) >= look) {
			err = hd_harness_look(h, diag);
			if (!err)
				err = act(c, h, faults, diag);
			look = hd_clock_now_ns(h->clock) + HD_HARNESS_LOOK_NS;
		}
		turn = hd_fault_turn(faults);
	}
	hd_fault_end(faults);
	return err;
}

/* ---- one kind, in a run that goes on ---- */

int64_t hd_campaign_gap_ns(uint64_t mtbf_ms, uint32_t word)
{
	return (int64_t)(-log(((double)word + 0.5) * 0x1p-32) * (double)mtbf_ms * 1e6);
}

static void draw_injection(const struct hd_campaign *c, uint32_t i, const struct hd_injection *in,
	struct hd_fault *fault)
{
	hd_campaign_draw(c, i, in->kind, fault);
	fault->target = in->asked.target;
	if (in->asked.by)
		fault->by = in->asked.by;
	if (in->asked.for_ns)
		fault->for_ns = in->asked.for_ns;
	if (in->asked.how != HD_HOWS)
		fault->how = in->asked.how;
}

enum hd_err hd_campaign_inject(struct hd_campaign *c, struct hd_harness *h, struct hd_faults *faults,
	const struct hd_injection *in, struct hd_diag *diag)
{
	int64_t due = 0, look = 0, turn = 0;
	struct hd_fault fault;
	enum hd_err err = HD_OK;

	draw_injection(c, 0, in, &fault);
	while (!err && (c->next < in->times || hd_fault_lasts(faults))) {
		hd_clock_wait_until(h->clock, turn < look ? turn : look);
		int64_t now = hd_clock_now_ns(h->clock);
		if (now >= look) {
			err = hd_harness_look(h, diag);
			look = now + HD_HARNESS_LOOK_NS;
			if (!err && c->next < in->times && now >= due && hd_fault_do(faults, &fault)) {
				draw_injection(c, ++c->next, in, &fault);
				due = now + hd_campaign_gap_ns(in->mtbf_ms, fault.part);
			}
		}
		turn = hd_fault_turn(faults);
	}
	hd_fault_end(faults);
	return err;
}

/* ---- what happened ---- */

uint32_t hd_campaign_killed_in(const struct hd_campaign *c, const struct hd_faults *faults,
	enum hd_fp_phase phase)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < c->npoints; p++)
		n += hd_failpoint_phase(p) == phase ? faults->killed[p] : 0;
	return n;
}

uint32_t hd_campaign_missed(const struct hd_campaign *c, const struct hd_faults *faults,
	enum hd_fault_kind kind)
{
	uint32_t n = 0;

	if (kind == HD_FAULT_POINT)
		return c->count[kind] > faults->done[kind] ? c->count[kind] - faults->done[kind] : 0;
	for (uint32_t i = c->next; i < c->nfaults; i++)
		n += c->fault[i].kind == kind && !c->fault[i].begun;
	return n;
}

uint32_t hd_campaign_missed_all(const struct hd_campaign *c, const struct hd_faults *faults)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < HD_FAULTS; k++)
		n += hd_campaign_missed(c, faults, k);
	return n;
}

enum hd_err hd_campaign_all_places(const struct hd_campaign *c, const struct hd_faults *faults,
	struct hd_diag *diag)
{
	char text[400];
	size_t at = 0;
	uint32_t n = 0;

	for (uint32_t p = 0; p < c->npoints; p++)
		if (faults->killed[p] < c->each_point && ++n && at < sizeof text - 40)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
				hd_failpoint_name(p));
	return !n ? HD_OK : hd_fail(diag, HD_E_INTEGRITY,
		"the run ended before %u of %d places had their %u deaths (%s): give it more --steps", n,
		c->npoints, c->each_point, text);
}
