#include "run/comm_settled.h"

#include <stdio.h>

/* Of a link that nothing is known of: orders by times are not made for it. */
static const struct hd_comm_link unknown = { .bytes_per_s = 1e9, .latency_ns = 0 };

bool hd_comm_wants_times(const struct hd_job *job)
{
	const int64_t order = hd_job_int(job, HD_JOB_COMM_ORDER);

	return order == HD_COMM_TAC || order == HD_COMM_SEARCH;
}

struct hd_comm_link hd_comm_link_of(const struct hd_run_costs *costs)
{
	if (!costs)
		return unknown;
	if (costs->port_bytes_per_s > 0)
		return (struct hd_comm_link){ costs->port_bytes_per_s,
			(int64_t)(costs->port_latency_ns + costs->hop_ns) };
	return costs->link_ns_per_byte > 0 ? (struct hd_comm_link){ 1e9 / costs->link_ns_per_byte,
		(int64_t)costs->hop_ns } : unknown;
}

/* 0: nothing is known. */
static struct hd_comm_pace pace_of(const struct hd_run_costs *costs)
{
	const struct hd_comm_link link = hd_comm_link_of(costs);
	const double kib = link.bytes_per_s / 1024, ns = (double)link.latency_ns, most = INT32_MAX;

	if (!costs || (costs->port_bytes_per_s <= 0 && costs->link_ns_per_byte <= 0))
		return (struct hd_comm_pace){ 0, 0 };
	return (struct hd_comm_pace){ (uint32_t)(kib < 1 ? 1 : kib < most ? kib : most),
		(uint32_t)(ns < most ? ns : most) };
}

/* Of a message, in the sender's time and in the receiver's. */
#define MESSAGE_NS INT64_C(10000)

struct hd_comm_way hd_comm_way_of(const struct hd_task *task, const struct hd_run_costs *costs,
	uint32_t nworkers)
{
	const struct hd_job *job = task->job;
	const uint32_t nvns = (job->nvns + nworkers - 1) / nworkers;

	return (struct hd_comm_way){ .nworkers = nworkers, .copies = hd_job_copies(job),
		.servers = hd_job_servers(job), .nvns = nvns, .wave = nvns < HD_MAX_WAVE ? nvns : HD_MAX_WAVE,
		.norms = hd_job_onset_norms(job) != NULL, .early = hd_task_row_weight(task) > 0,
		.message_ns = MESSAGE_NS,
		.hop_ns = (int64_t)costs->hop_ns, .phase_ns = (int64_t)costs->late_ns };
}

/* Rule 1: at least four buckets of an owner, and a segment. */
static int64_t most_bytes(const struct hd_layout *layout, uint32_t nworkers)
{
	const int64_t share = (int64_t)(layout->elems * sizeof(float) / (4 * (uint64_t)nworkers)),
		least = HD_SEGMENT_ELEMS * (int64_t)sizeof(float);

	return share < least ? least : share < HD_COMM_MOST ? share : HD_COMM_MOST;
}

/* Sizes that are tried. */
static const int64_t sizes[] = { 32 << 20, 16 << 20, 8 << 20, 4 << 20, 2 << 20, 1 << 20, 512 << 10, 256 << 10,
	128 << 10, 64 << 10, HD_COMM_TENSORS };

static enum hd_err cut_auto(struct hd_comm_settled *s, struct hd_comm_cut *made, const struct hd_task *task,
	const struct hd_comm_ask *ask, const struct hd_comm_settling *how, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const struct hd_comm_way way = hd_comm_way_of(task, how->costs, how->nworkers);
	struct hd_comm_cut first;
	enum hd_err err = hd_comm_cut_best(&first, ask, how->nworkers, most_bytes(&task->layout,
		how->nworkers), &s->end_ns, arena, diag);

	err = err ? err : hd_comm_cut_fastest(made, &s->parts, &s->step_ns, ask, &way, sizes,
		sizeof sizes / sizeof *sizes, &first, arena, diag);
	s->end_ns = s->step_ns ? 0 : s->end_ns;
	return err;
}

static enum hd_err cut(struct hd_comm_settled *s, struct hd_comm_cut *made, struct hd_task *task,
	const struct hd_comm_ask *ask, const struct hd_comm_settling *how, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const uint32_t nworkers = how->nworkers;
	const struct hd_job_value *bytes = &task->job->value[HD_JOB_COMM_BUCKETS];

	*made = (struct hd_comm_cut){ .nbuckets = 0 };
	if (!task->job->value[HD_JOB_PAR_PLAN].is_none || hd_job_is_listed(task->job)) {
		snprintf(s->why, sizeof s->why, "%s", bytes->is_auto ? "" :
			"comm.buckets: the plan of parallel.plan names chunks, and buckets stay as they are");
		return HD_OK;
	}
	if (bytes->is_none)
		return hd_comm_cut(made, &task->layout, HD_COMM_TENSORS, arena, diag);
	if (!bytes->is_auto)
		return hd_comm_cut(made, &task->layout, bytes->i, arena, diag);
	s->cut = ask->node_ns && nworkers > 1 && !how->uncut;
	return s->cut ? cut_auto(s, made, task, ask, how, arena, diag) : HD_OK;
}

static enum hd_err put(struct hd_comm_settled *s, struct hd_job_value *value, struct hd_arena *arena,
	struct hd_diag *diag)
{
	struct hd_text text;

	value->is_none = true;
	value->text = "none";
	if (!s->comm.nbuckets)
		return HD_OK;
	hd_text_init(&text, arena);
	hd_comm_put(&s->comm, &text);
	if (text.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the order of %u buckets", s->comm.nbuckets);
	if (text.len < HD_COMM_TEXT) {
		value->is_none = false;
		value->text = text.at;
		return HD_OK;
	}
	snprintf(s->why, sizeof s->why, "comm: %u buckets have an order of more than %d bytes: they stay as "
		"they are", s->comm.nbuckets, HD_COMM_TEXT);
	s->comm.nbuckets = 0;
	return HD_OK;
}

enum hd_err hd_comm_settle(struct hd_comm_settled *settled, struct hd_job_value *value, struct hd_task *task,
	const struct hd_comm_settling *how, struct hd_arena *arena, struct hd_diag *diag)
{
	const struct hd_comm_ask ask = { .graph = &task->train, .layout = &task->layout,
		.node_ns = how->costs ? how->costs->node_ns : NULL, .link = hd_comm_link_of(how->costs),
		.order = (enum hd_comm_order)hd_job_int(task->job, HD_JOB_COMM_ORDER),
		.seed = (uint64_t)hd_job_int(task->job, HD_JOB_SEED) };
	struct hd_comm_settled s = { .why = "" };
	struct hd_diag why = { "" };
	struct hd_comm_cut made;
	enum hd_err err = cut(&s, &made, task, &ask, how, arena, diag);

	if (!err && made.nbuckets > HD_ORDER_RECVS) {
		snprintf(s.why, sizeof s.why, "comm.buckets: %u buckets are too many; they stay as they are",
			made.nbuckets);
		made.nbuckets = 0;
	}
	err = err ? err : hd_layout_cut(&task->layout, made.nbuckets, made.nsegments, &task->arena, diag);
	if (err)
		return err;
	err = hd_comm_ranks(&s.comm, &ask, &task->arena, &why);
	if (err == HD_E_INVAL)
		snprintf(s.why, sizeof s.why, "comm.order: %.150s", why.text);
	else if (err)
		return hd_fail(diag, err, "%s", why.text);
	s.comm.link = pace_of(how->costs);
	s.comm.parts |= s.step_ns && s.parts;
	s.comm.nsegments = made.nbuckets && s.comm.nbuckets ? made.nsegments : NULL;
	err = put(&s, value, &task->arena, diag);
	if (!err && !s.comm.nbuckets)     /* nothing that workers could read */
		err = hd_layout_cut(&task->layout, 0, NULL, &task->arena, diag);
	if (err)
		return err;
	task->comm = s.comm;
	*settled = s;
	return HD_OK;
}
