/* Workers of a simulated job that are lost by zones. */
#include "protocol/simulation_int.h"

enum { SIM_ZONES = 3 };

uint32_t sim_draw_zone(struct sim_world *s)
{
	const uint32_t left = s->zone_left[0] + s->zone_left[1];

	if (!left)
		return (uint32_t)sim_rnd(s, sim_loses_zone(s) ? 2 : SIM_ZONES);
	const uint32_t zone = sim_rnd(s, left) >= s->zone_left[0];
	s->zone_left[zone]--;
	return zone;
}

void sim_kill_zone(struct sim_world *s, uint32_t zone)
{
	sim_say(s, "zone %u is lost", zone);
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		if (s->proc[i].alive && s->proc[i].zone == zone)
			sim_kill_worker(s, i);
}

void sim_check_zones(struct sim_world *s, const struct hd_view *view)
{
	const uint32_t width = view->shape.width;
	uint32_t zone[HD_VIEW_RANKS], of[SIM_ZONES] = { 0 };

	if (!sim_loses_zone(s) || !width || width % 2 || view->nmembers != view->nranks ||
		hd_view_is_doubled(view))
		return;
	for (uint32_t r = 0; r < view->nranks; r++) {
		const uint32_t slot = sim_slot(s, view->rank[r].worker);
		if (slot >= SIM_PROCS)
			return;
		of[zone[r] = s->proc[slot].zone]++;
	}
	if (of[0] != of[1])
		return;
	s->result->parted++;
	for (uint32_t r = 0; r < view->nranks; r++)
		if (zone[r] == zone[r - r % width + (r + 1) % width])
			sim_bad(s, "zones", "ranks %u and the next one of a pipeline of %u are both in zone "
				"%u, as half of the workers are", r, width, zone[r]);
}
