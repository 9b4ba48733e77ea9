/* A simulated trace read back by the reader of recorded ones. */
#include "pipeline/sim_trace.h"

#include <string.h>

#include "trace/flight.h"
#include "tests/planning.h"
#include "tests/check.h"

static const char lists[] =
	"0: F0.0 SA0.0>1 F0.1 SA0.1>1 RG0.0<1 B0.0 RG0.1<1 B0.1\n1: RA1.0<0 F1.0 B1.0 SG1.0>0 RA1.1<0 F1.1 "
	"B1.1 SG1.1>0\n";

static struct hd_sim_plan simulate(struct hd_sim_setting *set, struct hd_stage_costs *costs,
	struct hd_cluster *cluster)
{
	const struct hd_cluster_level level = { "net", 2, 1e12, 0 };
	struct hd_schedules all;
	struct hd_sim_plan sim = { 0 };
	struct hd_diag diag = { "" };

	*costs = (struct hd_stage_costs){ .nstages = 2, .ovl = 1, .comm_tax = 1,
		.stage = hd_arena_take(&arena, 2, sizeof *costs->stage) };
	for (int s = 0; s < 2; s++)
		costs->stage[s] = (struct hd_stage_cost){ .f = 100000, .i = 60000, .w = 40000,
			.in = s ? 30000 : 0, .out = s ? 0 : 30000 };
	CHECK(hd_cluster_make(cluster, &level, 1, (struct hd_cluster_kind){ "any", 1, 0 }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	CHECK(hd_schedules_parse(&all, lists, sizeof lists - 1, "lists", &arena, &diag) == HD_OK, "%s",
		diag.text);
	*set = (struct hd_sim_setting){ .costs = costs, .cluster = cluster, .spans = true };
	CHECK(hd_sim_plan(&sim, &all.at[0], set, &arena, &diag) == HD_OK, "%s", diag.text);
	return sim;
}

struct seen { uint64_t nops, busy, waited, nsends, nrecvs, nbegun, nended, flow[2][8], first_f, upto; };

static void read_ring(const struct hd_flight_view *view, uint32_t r, struct seen *seen)
{
	struct hd_ring_reader reader;
	uint8_t slot[64][HD_SLOT_BYTES];

	hd_ring_read_begin(&reader, view->ring[r].memory, view->ring[r].nslots);
	for (uint32_t n; (n = hd_ring_read(&reader, slot, 64)) > 0;)
		for (uint32_t i = 0; i < n; i++) {
			struct hd_event e;
			struct hd_event_transfer t;
			if (hd_event_get_transfer(slot[i], &t)) {
				seen->flow[r][(seen->nsends + seen->nrecvs - 1) & 7] = t.flow;
				continue;
			}
			assert_true(hd_event_get(slot[i], &e));
			assert_true(e.flags & HD_EVENT_FLAG_SIMULATED);
			const char *name = hd_names_text(view->names, view->names_used, e.name);
			if (e.kind == HD_EVENT_OP || e.kind == HD_EVENT_WAIT) {
				assert_true(e.t0 >= seen->upto);             /* in the order of time */
				seen->upto = e.t0 + e.duration;
			}
			seen->nops += e.kind == HD_EVENT_OP;
			seen->busy += e.kind == HD_EVENT_OP && strchr("FBIW", *name) ? e.duration : 0;
			seen->waited += e.kind == HD_EVENT_WAIT ? e.duration : 0;
			seen->nsends += e.kind == HD_EVENT_SEND && e.arg == 30000;
			seen->nrecvs += e.kind == HD_EVENT_RECV && e.duration == 30;
			seen->nbegun += e.kind == HD_EVENT_STEP_BEGIN;
			seen->nended += e.kind == HD_EVENT_STEP_END;
			if (e.kind == HD_EVENT_OP && !strcmp(name, "F") && r == 1 && !seen->first_f)
				seen->first_f = e.t0;
		}
}

static void it_reads_as_a_recorded_file(void **state)
{
	struct hd_sim_setting set;
	struct hd_stage_costs costs;
	struct hd_cluster cluster;
	struct hd_sim_plan sim = simulate(&set, &costs, &cluster);
	struct seen seen[2] = { 0 };
	struct hd_flight_view view;
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	(void)state;
	CHECK(hd_sim_trace(&sim, &set, &bytes, &len, &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_flight_parse(bytes, len, "trace", &view, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(view.info.clock, HD_FLIGHT_CLOCK_SIMULATED);
	assert_int_equal(view.state, HD_FLIGHT_FINISHED);
	assert_int_equal(view.info.nrings, 2);
	for (uint32_t r = 0; r < 2; r++) {
		read_ring(&view, r, &seen[r]);
		assert_int_equal(seen[r].nops, 4);
		assert_int_equal(seen[r].nsends + seen[r].nrecvs, 4);
		assert_int_equal(seen[r].nsends, 2);
		assert_int_equal(seen[r].busy, 400);
		/* with the drain, which is no wait, all of the makespan */
		assert_int_equal(seen[r].busy + seen[r].waited,
			(sim.makespan - sim.rank[r].idle[HD_IDLE_DRAIN]) / 1000);
	}
	assert_int_equal(seen[1].first_f, 130);
	assert_true(seen[0].nbegun == 1 && seen[0].nended == 1 && seen[1].nbegun == 0);
	/* the two ends of a transfer have one flow: rank 0 sends twice, then receives twice; rank 1 takes
	 * turns */
	assert_true(seen[0].flow[0][0] == seen[1].flow[1][0] && seen[0].flow[0][1] == seen[1].flow[1][2]);
	assert_true(seen[0].flow[0][2] == seen[1].flow[1][1] && seen[0].flow[0][3] == seen[1].flow[1][3]);
	assert_true(seen[0].flow[0][0] != seen[0].flow[0][1]);
}

static void more_ranks_than_rings_are_refused(void **state)
{
	struct hd_sim_setting set;
	struct hd_stage_costs costs;
	struct hd_cluster cluster;
	struct hd_sim_plan sim = simulate(&set, &costs, &cluster);
	struct hd_diag diag = { "" };
	uint8_t *bytes = NULL;
	size_t len;

	(void)state;
	sim.ran.nranks = HD_FLIGHT_RINGS + 1;
	assert_int_equal(hd_sim_trace(&sim, &set, &bytes, &len, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "a trace of 65 ranks: a file has rings for 64");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_reads_as_a_recorded_file, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(more_ranks_than_rings_are_refused, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
