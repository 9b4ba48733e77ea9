#include "run/xfer_order.h"

#include <math.h>

#include "run/pipes.h"
#include "run/testing_costs.h"

/* Rows are held against the plan's owners and the layout's bytes, orders against what they mean for a chain
 * of layers: fifo sends the last bucket first, tic+ the first. */

struct ordered { struct hd_made made; struct hd_pipes pipes; struct hd_plan plan; struct hd_view view; };

static const char gpt[] = "model: {use: builtin:gpt, args: {layers: 3, width: 128, heads: 2, context: 8, "
	"vocab: 9000}}\ndata: {kind: synthetic, count: 640}\n";

static void begin(struct ordered *o, uint32_t n, const char *more)
{
	struct hd_diag *diag = &o->made.diag;

	*o = (struct ordered){ .pipes = { .most = 99 } };
	hd_made_begin(&o->made, gpt, more, 0);
	const struct hd_task *task = o->made.rig.task;
	const struct hd_plan_job job = hd_plan_job_whole(8, task->layout.nchunks);
	CHECK(hd_pipes_make(&o->pipes, task, &o->made.rig.arena, diag) == HD_OK, "%s", diag->text);
	hd_pipes_view(&o->view, &o->pipes, n, 1, 8);
	CHECK(hd_pipes_plan(&o->plan, &o->pipes, &o->view, &job, task, &o->made.rig.arena, diag) == HD_OK,
		"%s", diag->text);
}

static void rows_say_what_an_order_sends_first(void **state)
{
	static const enum hd_comm_order by[] = { HD_COMM_FIFO, HD_COMM_TIC_PLUS, HD_COMM_RANDOM };

	(void)state;
	for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
		struct hd_tl_order made;
		struct ordered o;
		uint32_t seen[HD_XFER_KINDS] = { 0 }, rises = 0, falls = 0, last = 0;
		begin(&o, 3, "");
		const struct hd_layout *l = &o.made.rig.task->layout;
		const uint32_t nb = hd_layout_nbuckets(l);
		CHECK(hd_xfer_order(&made, o.made.rig.task, o.made.costs, &o.plan, by[i], &o.made.rig.arena,
			&o.made.diag) == HD_OK, "%s", o.made.diag.text);
		assert_true(made.nbuckets == nb && nb > 4);
		assert_true(made.wants_now == (by[i] == HD_COMM_TIC_PLUS) && made.wants_was);
		for (uint32_t id = 0; id < made.nrows; id++) {
			const struct hd_tl_row *row = &made.row[id];
			assert_true(row->kind < HD_XFER_KINDS && row->bucket < nb);
			seen[row->kind]++;
			if (row->kind != HD_XFER_SUM || (last && made.row[last].bucket == row->bucket))
				continue;
			rises += last && row->now > made.row[last].now;
			falls += last && row->now < made.row[last].now;
			last = id;
		}
		/* a sum may go from each to each other; an owner gets parts of two */
		assert_int_equal(seen[HD_XFER_SUM], nb * 6);
		assert_true(seen[HD_XFER_PARTIAL] >= nb * 2 && seen[HD_XFER_METRICS]);
		CHECK(by[i] != HD_COMM_FIFO || (falls == nb - 1 && !rises), "%u fall, %u rise", falls, rises);
		CHECK(by[i] != HD_COMM_RANDOM || (falls && rises), "%u fall, %u rise", falls, rises);
		CHECK(by[i] != HD_COMM_TIC_PLUS || rises > falls, "%u fall, %u rise", falls, rises);
		hd_made_end(&o.made);
	}
}

/* Every bucket is read, first those of the first layer; the parts add up. */
static void nodes_read_what_they_read(void **state)
{
	struct hd_tl_order made;
	struct ordered o;
	double sum = 0;
	uint64_t read = 0;

	(void)state;
	for (int costs = 0; costs < 2; costs++) {
		begin(&o, 2, "");
		CHECK(hd_xfer_order(&made, o.made.rig.task, costs ? o.made.costs : NULL, &o.plan, HD_COMM_TIC,
			&o.made.rig.arena, &o.made.diag) == HD_OK, "%s", o.made.diag.text);
		sum = 0;
		read = 0;
		assert_true(made.nbuckets < 64 && made.nnodes == o.made.rig.task->train.nforward);
		for (uint32_t i = 0; i < made.nnodes; i++) {
			assert_true(made.node[i].share >= 0);
			sum += made.node[i].share;
			for (uint32_t k = 0; k < made.node[i].n; k++)
				read |= UINT64_C(1) << made.reads[made.node[i].first + k];
		}
		assert_true(fabs(sum - 1) < 1e-9);
		assert_true(read == (UINT64_C(1) << made.nbuckets) - 1);
		hd_made_end(&o.made);
	}
}

static void what_cannot_be_said_is_refused(void **state)
{
	static const struct {
		const char *more;
		uint32_t n;
		enum hd_comm_order by;
		bool costs;
		enum hd_err err;
	} row[] = {
		{ "", 2, HD_COMM_TAC, true, HD_OK }, { "", 2, HD_COMM_TAC, false, HD_E_REFUSED },
		{ "", 2, HD_COMM_AUTO, false, HD_OK }, { "", 1, HD_COMM_FIFO, true, HD_E_REFUSED },
		{ "parallel: {stages: 2}\n", 2, HD_COMM_FIFO, true, HD_E_REFUSED },
		{ "comm: {primitive: halving-doubling}\n", 2, HD_COMM_FIFO, true, HD_E_REFUSED },
		{ "comm: {order: random}\n", 2, HD_COMM_FIFO, true, HD_E_REFUSED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct hd_tl_order made;
		struct ordered o;
		begin(&o, row[i].n, row[i].more);
		const enum hd_err err = hd_xfer_order(&made, o.made.rig.task, row[i].costs ? o.made.costs :
			NULL, &o.plan, row[i].by, &o.made.rig.arena, &o.made.diag);
		CHECK(err == row[i].err, "row %zu: %s", i, o.made.diag.text);
		o.plan.nchunks++;                 /* of another job */
		CHECK(err || hd_xfer_order(&made, o.made.rig.task, o.made.costs, &o.plan, row[i].by,
			&o.made.rig.arena, NULL) == HD_E_INVAL, "row %zu", i);
		hd_made_end(&o.made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_say_what_an_order_sends_first),
		cmocka_unit_test(nodes_read_what_they_read),
		cmocka_unit_test(what_cannot_be_said_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
