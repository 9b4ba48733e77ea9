#include "spot/lead.h"

const char *const hd_lead_names[HD_NLEADS] = {
#define X(id, name, about) [HD_LEAD_##id] = name,
	HD_LEADS(X)
#undef X
};

int64_t hd_lead_usable_ms(int64_t left_ms)
{
	const int64_t margin_ms = left_ms / 10 < HD_LEAD_MARGIN_MS ? left_ms / 10 : HD_LEAD_MARGIN_MS;

	return left_ms > 0 ? left_ms - margin_ms : 0;
}

/* ms is enough for both; neither is negative. */
static bool lasts(int64_t ms, int64_t first_ms, int64_t then_ms)
{
	return ms >= first_ms && ms - first_ms >= then_ms;
}

static bool may_be_taken_back(const struct hd_lead_case *c, int64_t ms)
{
	(void)ms;
	return c->risk || c->left_ms > HD_LEAD_AHEAD_MS;
}

static bool can_be_saved(const struct hd_lead_case *c, int64_t ms) { return c->all && ms >= c->save_ms; }

static bool can_move(const struct hd_lead_case *c, int64_t ms)
{
	return !c->all && lasts(ms, c->step_ms, c->ship_ms);
}

static bool is_held(const struct hd_lead_case *c, int64_t ms)
{
	return !c->all && c->held && ms >= c->step_ms;
}

static bool always(const struct hd_lead_case *c, int64_t ms)
{
	(void)c;
	(void)ms;
	return true;
}

enum hd_lead hd_lead_answer(const struct hd_lead_case *c)
{
	static bool (*const fits[HD_NLEADS])(const struct hd_lead_case *, int64_t ms) = {
		[HD_LEAD_NOTE] = may_be_taken_back, [HD_LEAD_SAVE] = can_be_saved,
		[HD_LEAD_EVACUATE] = can_move, [HD_LEAD_HAND_OVER] = is_held, [HD_LEAD_LOSE] = always };
	const int64_t ms = hd_lead_usable_ms(c->left_ms);
	int lead = 0;

	while (!fits[lead](c, ms))
		lead++;
	return (enum hd_lead)lead;
}
