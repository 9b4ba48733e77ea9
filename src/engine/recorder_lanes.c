#include "engine/recorder_int.h"

#include <string.h>

/* Lanes of a process that are no device's. */

static void put(struct hd_recorder *r, enum hd_recorder_lane lane, const struct hd_event *event)
{
	hd_ring_put_event(hd_recorder_ring(r, lane), event);
}

static uint64_t ago(uint64_t now, int64_t ns) { return ns > 0 && (uint64_t)ns < now ? now - (uint64_t)ns :
	now; }

static uint32_t between(int64_t began_ago, int64_t then_ago)
{
	return began_ago > then_ago ? hd_span_ns((uint64_t)(began_ago - then_ago)) : 0;
}

static void put_pair(struct hd_recorder *r, enum hd_recorder_lane lane, const struct hd_event *event,
	const uint8_t ext[HD_SLOT_BYTES])
{
	uint8_t slot[HD_SLOT_BYTES];

	hd_event_put(slot, event);
	hd_ring_put_pair(hd_recorder_ring(r, lane), slot, ext);
}

void hd_recorder_transfer(struct hd_recorder *r, const struct hd_recorder_transfer *t)
{
	uint8_t ext[HD_SLOT_BYTES];

	if (!r || !r->nranks)
		return;
	const uint64_t now = hd_recorder_now(r), t0 = ago(now, t->began_ago);
	/* stamps of another clock: what they say must not stop a run */
	const uint64_t end = ago(now, t->end_ago);
	const struct hd_event event = { .t0 = t0, .duration = end > t0 ? end - t0 : 0,
		.arg = t->bytes,
		.name = t->xfer && t->xfer < HD_XFER_KINDS ? r->xfer[t->xfer] :
			r->name[HD_RECORDED_STATE],
		.instr = t->id, .flags = HD_EVENT_FLAG_EXT,
		.kind = t->received ? HD_EVENT_RECV : HD_EVENT_SEND };
	hd_event_put_transfer(ext, &(struct hd_event_transfer){ .flow = t->flow,
		.gate_ns = t->received ? 0 : between(t->began_ago, t->gate_ago),
		.first_ns = between(t->began_ago, t->first_ago), .chunks = t->chunks,
		.peer = (uint16_t)(t->peer < UINT16_MAX ? t->peer : UINT16_MAX),
		.preempted = (uint16_t)(t->preempted < UINT16_MAX ? t->preempted : UINT16_MAX),
		.class = t->class, .primitive = t->primitive });
	put_pair(r, HD_RECORDER_TRANSFER, &event, ext);
}

void hd_recorder_read(struct hd_recorder *r, uint32_t vn, uint64_t began, uint64_t bytes)
{
	uint8_t ext[HD_SLOT_BYTES];

	if (!r || !r->nranks)
		return;
	/* began: by a look of the kernel's clock, the end by the lane's own */
	const uint64_t now = hd_recorder_look(r, r->nranks + HD_RECORDER_READER);
	const struct hd_event event = { .t0 = began, .duration = now > began ? now - began : 0, .arg = bytes,
		.name = r->name[HD_RECORDED_READ], .instr = vn, .flags = HD_EVENT_FLAG_EXT,
		.kind = HD_EVENT_READ };
	hd_event_put_transfer(ext, &(struct hd_event_transfer){ .chunks = 1, .peer = UINT16_MAX });
	put_pair(r, HD_RECORDER_READER, &event, ext);
}

void hd_recorder_mark(struct hd_recorder *r, enum hd_recorder_lane lane, enum hd_recorder_name name,
	uint32_t instr, uint64_t arg)
{
	if (r)
		put(r, lane, &(struct hd_event){ .t0 = hd_recorder_now(r), .arg = arg, .name = r->name[name],
			.instr = instr, .kind = HD_EVENT_MARK });
}

void hd_recorder_note(struct hd_recorder *r, const char *text, uint32_t instr, uint64_t arg)
{
	if (r)
		put(r, HD_RECORDER_CONTROL, &(struct hd_event){ .t0 = hd_recorder_now(r), .arg = arg,
			.name = hd_names_intern(&r->flight.names, text, strlen(text)), .instr = instr,
			.kind = HD_EVENT_MARK });
}

void hd_recorder_epoch(struct hd_recorder *r, uint32_t epoch, const char *plan)
{
	if (r)
		put(r, HD_RECORDER_CONTROL, &(struct hd_event){ .t0 = hd_recorder_now(r), .arg = epoch,
			.name = hd_names_intern(&r->flight.names, plan, strlen(plan)),
			.kind = HD_EVENT_EPOCH });
}

void hd_recorder_span(struct hd_recorder *r, enum hd_recorder_lane lane, enum hd_recorder_name name,
	uint64_t began, uint64_t arg)
{
	if (r)
		put(r, lane, &(struct hd_event){ .t0 = began, .duration = hd_recorder_now(r) - began,
			.arg = arg, .name = r->name[name], .kind = HD_EVENT_OP });
}

void hd_recorder_probe(struct hd_recorder *r, uint32_t peer, const struct hd_burst_probe *p)
{
	uint8_t ext[HD_SLOT_BYTES];

	if (!r)
		return;
	hd_event_put_probe(ext, &(struct hd_event_probe){ .between = p->t3 - p->t2, .peer = peer });
	put_pair(r, HD_RECORDER_CONTROL, &(struct hd_event){ .t0 = p->t1, .duration = p->t4 - p->t1,
		.arg = p->t2, .name = r->name[HD_RECORDED_CLOCK], .flags = HD_EVENT_FLAG_EXT,
		.kind = HD_EVENT_CLOCK }, ext);
}
