#include "run/plan_xfers.h"

#include "protocol/transfers.h"

/* The last member of a bucket's chain: its sum comes to it at last. */
static uint32_t last_of_chain(const struct hd_holding *held, uint32_t bucket, uint32_t nmembers)
{
	const uint64_t chain = held->slot[bucket];
	struct hd_sum_line line;
	uint32_t last = held->owner[bucket];

	hd_line_make(&line, held->owner[bucket], 0, chain, held->spare[bucket], nmembers);
	for (uint32_t i = 0; i < line.n; i++)
		if (chain >> line.at[i] & 1)
			last = line.at[i];
	return last;
}

/* Rule 1. False: it has no row. */
static bool name_row(struct hd_xfer_name *name, const struct hd_holding *held, uint32_t bucket,
	uint32_t nmembers, bool sharded)
{
	const uint64_t slot = held->slot[bucket], param = held->param[bucket];
	const uint32_t from = sharded ? last_of_chain(held, bucket, nmembers) : held->owner[bucket];
	const uint64_t to = (sharded ? param & ~slot : param | slot) & ~(UINT64_C(1) << from);
	struct hd_sum_line line;

	if (!to)
		return false;
	/* a sum goes from each of its line to the next, unless all members hold the bucket */
	hd_line_make(&line, held->owner[bucket], 0, slot, held->spare[bucket], nmembers);
	*name = (struct hd_xfer_name){ .kind = sharded ? HD_XFER_PARAMETERS : HD_XFER_SUM, .from = from,
		.to = sharded || line.all ? hd_members_nth(to, 0) : line.at[1], .number = bucket };
	return true;
}

enum hd_err hd_plan_xfers(struct hd_plan *plan, const struct hd_pipes *pipes, const struct hd_view *view,
	const struct hd_task *task, struct hd_arena *arena, struct hd_diag *diag)
{
	const uint32_t nbuckets = hd_layout_nbuckets(&task->layout), copies = hd_job_copies(task->job);
	struct hd_xfers rows = { .at = hd_arena_take(arena, nbuckets + 1u, sizeof *rows.at),
		.cap = nbuckets };
	struct hd_holding held;
	struct hd_transfers table;
	struct hd_xfer_name name;

	if (!rows.at)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the transfers of %u buckets", nbuckets);
	enum hd_err err = hd_holding_init(&held, nbuckets, diag);
	if (err)
		return err;
	held.bytes = task->layout.moved;
	hd_view_holding(&held, view, view->shape.nstages ? &pipes->buckets : NULL, copies,
		hd_job_servers(task->job));
	hd_transfers_init(&table, &(struct hd_transfers_spec){ .nmembers = view->nmembers,
		.nvns = task->job->nvns, .nbuckets = nbuckets, .copies = copies, .layout = &task->layout,
		.owner = held.owner, .comm = &task->comm });
	for (uint32_t b = 0; b < nbuckets; b++) {
		if (!name_row(&name, &held, b, view->nmembers, copies > 0))
			continue;
		struct hd_xfer row = hd_transfers_row(&table, &name);
		row.predicted_ns = hd_comm_takes_ns(&task->comm, row.len_bytes);
		rows.at[rows.len++] = row;
	}
	hd_holding_finish(&held);
	plan->xfers = rows;
	return HD_OK;
}
