#include "pipeline/sim_trace.h"

#include <stdio.h>
#include <string.h>

#include "trace/flight.h"

struct sim_trace {
	const struct hd_sim_plan *sim;
	const struct hd_sim_setting *set;
	struct hd_flight *flight;
	uint32_t name[HD_INS_END];
};

static uint64_t ns(const struct sim_trace *w, int64_t ticks) { return (uint64_t)ticks / w->sim->per_ps / 1000;
	}
static uint64_t length(const struct sim_trace *w, int64_t start,
	int64_t end) { return ns(w, end) - ns(w, start);
	}

static bool is_send(uint8_t op) { return op == HD_INS_SA || op == HD_INS_SG; }
static bool is_transfer(uint8_t op) { return is_send(op) || op == HD_INS_RA || op == HD_INS_RG; }

static void put(const struct sim_trace *w, uint32_t rank, struct hd_event event)
{
	uint8_t slot[HD_SLOT_BYTES];

	event.flags |= HD_EVENT_FLAG_SIMULATED;
	hd_event_put(slot, &event);
	hd_ring_put(&w->flight->ring[rank], slot);
}

/* Both ends of a transfer compute the same flow id: from producer, value and consumer. */
static void put_transfer(const struct sim_trace *w, uint32_t rank, uint32_t at)
{
	const struct hd_ins *ins = &w->sim->ran.list[rank].at[at];
	const struct hd_sim_span span = w->sim->span[rank][at];
	bool send = is_send(ins->op), grad = ins->op == HD_INS_SG || ins->op == HD_INS_RG;
	uint32_t from = send ? ins->stage : grad ? ins->stage + 1u : ins->stage - 1u,
		source = send ? rank : ins->peer, target = send ? ins->peer : rank;
	const struct hd_stage_cost *cost = &w->set->costs->stage[from];
	uint64_t took = length(w, span.start, span.end);
	struct hd_event event = { .t0 = ns(w, span.start), .duration = took,
		.arg = (uint64_t)(grad ? cost->in : cost->out), .name = w->name[ins->op],
		.instr = at, .flags = HD_EVENT_FLAG_EXT | HD_EVENT_FLAG_SIMULATED,
		.kind = send ? HD_EVENT_SEND : HD_EVENT_RECV };
	const struct hd_event_transfer more = { .flow = hd_event_flow(0, 0,
		((uint64_t)from << 32 | ins->vn) * 2 + grad, source, target),
		.predicted_ns = hd_span_ns(took), .chunks = 1, .peer = (uint16_t)ins->peer };
	uint8_t slot[2][HD_SLOT_BYTES];

	hd_event_put(slot[0], &event);
	hd_event_put_transfer(slot[1], &more);
	hd_ring_put_pair(&w->flight->ring[rank], slot[0], slot[1]);
}

static enum hd_wait reason_of(enum hd_idle_why why)
{
	return why == HD_IDLE_TRANSFER ? HD_WAIT_TRANSFER : why == HD_IDLE_CREDIT ? HD_WAIT_SLOT :
		HD_WAIT_OTHER;
}

static void put_rank(const struct sim_trace *w, uint32_t rank)
{
	const struct hd_ilist *list = &w->sim->ran.list[rank];
	const struct hd_sim_waits *waits = &w->sim->wait[rank];
	uint32_t step_vns = w->sim->ran.nvns / w->sim->steps, step = UINT32_MAX;

	for (uint32_t i = 0, k = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		const struct hd_sim_span span = w->sim->span[rank][i];
		for (; k < waits->n && waits->at[k].at <= i; k++)
			put(w, rank, (struct hd_event){ .t0 = ns(w, waits->at[k].start),
				.duration = length(w, waits->at[k].start, waits->at[k].end),
				.arg = hd_wait_arg(reason_of(waits->at[k].why), i), .kind = HD_EVENT_WAIT });
		if (rank == 0 && hd_ins_uses(ins->op, 'v') &&
			(step == UINT32_MAX || ins->vn / step_vns > step)) {
			if (step != UINT32_MAX)
				put(w, 0, (struct hd_event){ .t0 = ns(w, w->sim->step_end[step]), .arg = step,
					.instr = 1, .kind = HD_EVENT_STEP_END });
			step = ins->vn / step_vns;
			put(w, 0, (struct hd_event){ .t0 = ns(w, span.start), .arg = step,
				.kind = HD_EVENT_STEP_BEGIN });
		}
		if (is_transfer(ins->op) && !(ins->flags & HD_INS_SHADOW))
			put_transfer(w, rank, i);
		else
			put(w, rank, (struct hd_event){ .t0 = ns(w, span.start),
				.duration = length(w, span.start, span.end), .name = w->name[ins->op],
				.flags = hd_ins_redundant(ins) ? HD_EVENT_FLAG_SHADOW : 0,
				.instr = i, .kind = HD_EVENT_OP });
	}
	if (rank == 0 && step != UINT32_MAX)
		put(w, 0, (struct hd_event){ .t0 = ns(w, w->sim->step_end[step]), .arg = step, .instr = 1,
			.kind = HD_EVENT_STEP_END });
}

enum hd_err hd_sim_trace(const struct hd_sim_plan *sim, const struct hd_sim_setting *set, uint8_t **bytes,
	size_t *len, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct sim_trace w = { .sim = sim, .set = set, .flight = hd_arena_take(arena, 1, sizeof *w.flight) };
	struct hd_flight_info info = { .clock = HD_FLIGHT_CLOCK_SIMULATED, .nrings = sim->ran.nranks };
	uint64_t most = 0, nslots = HD_RING_SLOTS_LOW;

	if (sim->ran.nranks > HD_FLIGHT_RINGS)
		return hd_fail(diag, HD_E_INVAL, "a trace of %u ranks: a file has rings for %d",
			sim->ran.nranks, HD_FLIGHT_RINGS);
	for (uint32_t r = 0; r < sim->ran.nranks; r++) {
		uint64_t n = 2 * (uint64_t)sim->ran.list[r].len + sim->wait[r].n + 2 * sim->steps + 2;
		most = n > most ? n : most;
	}
	while (nslots < most)
		nslots *= 2;
	if (nslots > HD_RING_SLOTS_HIGH)
		return hd_fail(diag, HD_E_INVAL, "a trace of %llu events on one rank; a ring holds %d",
			(unsigned long long)most, HD_RING_SLOTS_HIGH);
	*len = hd_flight_bytes(info.nrings, (uint32_t)nslots);
	*bytes = hd_arena_take(arena, *len, 1);
	if (!w.flight || !*bytes)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a trace of %zu bytes", *len);
	info.latest = (struct hd_tick){ ns(&w, sim->makespan), ns(&w, sim->makespan) };
	for (uint32_t r = 0; r < info.nrings; r++) {
		info.lane[r] = (struct hd_flight_lane){ .kind = HD_LANE_DEVICE, .index = (uint16_t)r };
		snprintf(info.lane[r].name, sizeof info.lane[r].name, "rank %u", r);
	}
	hd_flight_format(w.flight, *bytes, &info, (uint32_t)nslots);
	for (uint8_t op = 1; op < HD_INS_END; op++)
		if (hd_ins_row(op))
			w.name[op] = hd_names_intern(&w.flight->names, hd_ins_row(op)->text,
				strlen(hd_ins_row(op)->text));
	for (uint32_t r = 0; r < info.nrings; r++)
		put_rank(&w, r);
	hd_flight_state_set(*bytes, HD_FLIGHT_FINISHED);
	return HD_OK;
}
