#include "worker/elastic_int.h"

#include <stdio.h>

#include "base/le.h"

/* What a worker records beside its instructions: transfers, the clock of its coordinator, what became of its
 * links and views. All but hd_elastic_waited() on the I/O thread. */

uint64_t hd_elastic_stamp(void *self)
{
	return hd_recorder_now(((struct hd_elastic *)self)->recorder);
}

/* One look at the clock for all stamps of a transfer: equal ones stay equal. */
static int64_t ago(int64_t now_ns, int64_t at_ns) { return at_ns ? now_ns - at_ns : 0; }

/* What a planned transfer is called; that of an epoch which is over has a row no more. */
static uint8_t kind_of(const struct hd_elastic *e, uint32_t transfer)
{
	struct hd_xfer_name name;

	return e->relay.x && !hd_transfers_name(&e->relay.rows, transfer, &name, NULL) ? (uint8_t)name.kind :
		0;
}

static uint8_t primitive_of(const struct hd_elastic *e, uint32_t transfer)
{
	struct hd_xfer_name name;

	return e->relay.x && !hd_transfers_name(&e->relay.rows, transfer, &name, NULL) ?
		hd_transfers_primitive(&e->relay.rows, &name) : 0;
}

void hd_elastic_record_sent(struct hd_elastic *e, const struct hd_sent *s)
{
	const bool planned = s->kind == HD_KIND_PLANNED;
	const int64_t now = hd_clock_now_ns(e->spec->clock);

	if (!e->recorder || s->err)
		return;
	hd_recorder_transfer(e->recorder, &(struct hd_recorder_transfer){ .flow = s->flow, .bytes = s->len,
		.began_ago = ago(now, s->queued_ns), .gate_ago = ago(now, s->gate_ns),
		.first_ago = ago(now, s->first_ns), .end_ago = ago(now, s->end_ns),
		.id = planned ? s->transfer : UINT32_MAX, .peer = s->worker, .chunks = s->chunks,
		.preempted = s->preempted, .xfer = planned ? kind_of(e, s->transfer) : 0,
		.primitive = planned ? primitive_of(e, s->transfer) : 0,
		.class = planned ? HD_XFER_PLANNED : HD_XFER_BULK });
}

void hd_elastic_record_arrived(struct hd_elastic *e, const struct hd_arrival *a)
{
	const bool planned = a->kind == HD_KIND_PLANNED;
	const int64_t now = hd_clock_now_ns(e->spec->clock);

	if (!e->recorder || a->err)
		return;
	hd_recorder_transfer(e->recorder, &(struct hd_recorder_transfer){ .flow = a->flow, .bytes = a->len,
		.began_ago = ago(now, a->posted_ns), .gate_ago = ago(now, a->posted_ns),
		.first_ago = ago(now, a->first_ns), .end_ago = ago(now, a->end_ns),
		.id = planned ? a->transfer : UINT32_MAX, .peer = a->worker, .chunks = a->chunks,
		.xfer = planned ? kind_of(e, a->transfer) : 0,
		.primitive = planned ? primitive_of(e, a->transfer) : 0,
		.class = planned ? HD_XFER_PLANNED : HD_XFER_BULK, .received = true });
}

/* ---- the clock of the coordinator ---- */

static void keep(struct hd_elastic *e, bool is, const struct hd_burst_probe *kept)
{
	if (is)
		hd_recorder_probe(e->recorder, HD_RECORDER_COORDINATOR, kept);
}

void hd_elastic_record_link(struct hd_elastic *e, uint32_t worker, bool up)
{
	const bool coordinator = worker == HD_COORDINATOR_LINK;

	if (!e->recorder)
		return;
	hd_recorder_mark(e->recorder, HD_RECORDER_CONTROL, up ? HD_RECORDED_UP : HD_RECORDED_LOST,
		coordinator ? HD_RECORDER_COORDINATOR : worker, e->step);
	if (coordinator && up)
		hd_burst_begin(&e->burst, hd_clock_raw_ns());
	else if (coordinator)
		hd_burst_end(&e->burst);
}

void hd_elastic_probe(struct hd_elastic *e)
{
	struct hd_burst_probe kept;
	bool keeps;

	if (!e->recorder || !e->burst.runs)
		return;
	if (hd_burst_due(&e->burst, hd_clock_raw_ns(), &kept, &keeps))
		hd_hub_probe(&e->hub, HD_COORDINATOR_LINK);
	keep(e, keeps, &kept);
}

void hd_elastic_record_probed(struct hd_elastic *e, const struct hd_probe *p)
{
	const struct hd_burst_probe probe = { p->t1, p->t2, p->t3, p->t4 };
	struct hd_burst_probe kept;
	bool keeps;

	if (!e->recorder || p->worker != HD_COORDINATOR_LINK)
		return;
	if (hd_burst_took(&e->burst, &probe, &kept, &keeps))
		hd_hub_probe(&e->hub, HD_COORDINATOR_LINK);
	keep(e, keeps, &kept);
}

/* ---- requests ---- */

void hd_elastic_record_asked(struct hd_elastic *e, const struct hd_message *m)
{
	if (m->worker != HD_COORDINATOR_LINK || m->len != 16)
		return;
	const uint64_t first = hd_get64(m->bytes), n = hd_get64((const uint8_t *)m->bytes + 8);
	if (n)
		hd_recorder_record(e->recorder, first, n);
	else
		hd_recorder_dump(e->recorder);
}

/* ---- views; the compute thread ---- */

void hd_elastic_record_view(struct hd_elastic *e, const struct hd_view *view)
{
	char plan[32];

	snprintf(plan, sizeof plan, "%04u.plan", view->epoch);
	hd_recorder_epoch(e->recorder, view->epoch, plan);
}

/* What the compute thread stood still for is known by what came. */
static enum hd_wait reason_of(enum hd_command_kind came)
{
	static const enum hd_wait reason[HD_COMMAND_NKINDS] = {
		[HD_COMMAND_BEGIN] = HD_WAIT_COMMIT, [HD_COMMAND_FOLD] = HD_WAIT_TRANSFER,
		[HD_COMMAND_ARRIVED] = HD_WAIT_TRANSFER, [HD_COMMAND_UPDATE] = HD_WAIT_TRANSFER,
		[HD_COMMAND_METRICS] = HD_WAIT_TRANSFER, [HD_COMMAND_READABLE] = HD_WAIT_TRANSFER,
		[HD_COMMAND_FINISH] = HD_WAIT_TRANSFER, [HD_COMMAND_PREPARE] = HD_WAIT_PLAN_CHANGE,
		[HD_COMMAND_STOP] = HD_WAIT_PLAN_CHANGE, [HD_COMMAND_REST] = HD_WAIT_PLAN_CHANGE,
		[HD_COMMAND_CANCEL] = HD_WAIT_PLAN_CHANGE, [HD_COMMAND_RESTORE] = HD_WAIT_PLAN_CHANGE,
		[HD_COMMAND_CHUNK] = HD_WAIT_PLAN_CHANGE, [HD_COMMAND_RECORD] = HD_WAIT_PLAN_CHANGE,
	};

	return reason[came] ? reason[came] : HD_WAIT_OTHER;
}

void hd_elastic_waited(struct hd_elastic *e, uint64_t began, enum hd_command_kind came)
{
	const uint32_t awaited = atomic_exchange(&e->awaits, HD_NOBODY);

	atomic_store(&e->lacks, 0);
	if (came != HD_COMMAND_QUIT && awaited != HD_NOBODY && reason_of(came) == HD_WAIT_TRANSFER)
		hd_recorder_wait_for(e->recorder, 0, began, awaited);
	else if (came != HD_COMMAND_QUIT)
		hd_recorder_wait(e->recorder, 0, began, reason_of(came));
}
