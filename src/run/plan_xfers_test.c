#include "run/plan_xfers.h"

#include <string.h>

#include "engine/testing.h"

/* Rows of kept plans, held against the words of rule 1 and of plan/comm.h: the owner of a bucket is said by
 * the plan's chunks, its bytes by the layout, and nothing of the table that a step sends by is asked. */

static const char gpt[] = "model: {use: builtin:gpt, args: {layers: 3, width: 128, heads: 2, context: 8, "
	"vocab: 9000}}\ndata: {kind: synthetic, count: 640}\n";

struct xfers_made { struct hd_rig rig; struct hd_pipes pipes; struct hd_plan plan; struct hd_view view; };

static void begin(struct xfers_made *m, uint32_t n, const char *more)
{
	struct hd_diag diag = { "" };

	*m = (struct xfers_made){ .pipes = { .most = 99 } };
	hd_rig_begin(&m->rig, gpt, 8, 8, more);
	CHECK(hd_task_create(&m->rig.task, m->rig.job, &m->rig.fs, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_pipes_make(&m->pipes, m->rig.task, &m->rig.arena, &diag) == HD_OK, "%s", diag.text);
	const struct hd_plan_job job = hd_plan_job_whole(8, m->rig.task->layout.nchunks);
	hd_pipes_view(&m->view, &m->pipes, n, 1, 8);
	CHECK(hd_pipes_plan(&m->plan, &m->pipes, &m->view, &job, m->rig.task, &m->rig.arena, &diag) == HD_OK,
		"%s", diag.text);
	assert_int_equal(m->plan.xfers.len, 0);
	CHECK(hd_plan_xfers(&m->plan, &m->pipes, &m->view, m->rig.task, &m->rig.arena, &diag) == HD_OK, "%s",
		diag.text);
}

static void a_bucket_has_a_row_that_says_all_of_it(void **state)
{
	static const struct { const char *more; uint32_t n; enum hd_xfer_kind kind; uint32_t steps;
		} rows[] = {
		{ "", 2, HD_XFER_SUM, 0 }, { "", 5, HD_XFER_SUM, 0 },
		/* owner and next hold slots, and the next sends */
		{ "comm: {sync: sharded}\n", 5, HD_XFER_PARAMETERS, 1 },
		{ "comm: {sync: sharded, copies: 3}\n", 5, HD_XFER_PARAMETERS, 2 },
		/* both hold all slots: sums alone go */
		{ "comm: {sync: sharded}\n", 2, HD_XFER_PARAMETERS, UINT32_MAX },
		{ "", 1, HD_XFER_SUM, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct xfers_made m;
		begin(&m, rows[i].n, rows[i].more);
		const struct hd_layout *l = &m.rig.task->layout;
		const uint32_t n = rows[i].steps == UINT32_MAX ? 0 : hd_layout_nbuckets(l);
		CHECK(m.plan.xfers.len == n && hd_layout_nbuckets(l) > 4, "row %zu: %u rows", i,
			m.plan.xfers.len);
		for (uint32_t b = 0; b < n; b++) {
			const struct hd_xfer *x = &m.plan.xfers.at[b];
			const struct hd_chunk run = hd_layout_bucket(l, b);
			const uint32_t owner = m.plan.worker[m.plan.owner[x->first_chunk]];
			CHECK(x->kind == rows[i].kind && x->class == HD_XFER_PLANNED && x->primitive == 0 &&
				x->bucket == b && x->len_bytes == run.len * 4 &&
				x->first_chunk == hd_layout_first_chunk(l, b) && x->nchunks &&
				x->from == (owner + rows[i].steps) % rows[i].n && x->to != x->from &&
				x->to < rows[i].n && x->predicted_ns == 0, "row %zu, bucket %u: %u>%u", i, b,
				x->from, x->to);
			/* nothing is settled: the last is the most urgent */
			CHECK(!b || x->priority < x[-1].priority, "row %zu, bucket %u", i, b);
		}
		hd_rig_close(&m.rig);
	}
}

/* Priorities by ranks, times by the link; and the file reads back. */
static void what_was_settled_is_in_the_rows(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_plan back;
	struct hd_text text;
	struct xfers_made m;
	uint32_t rank[64];

	(void)state;
	begin(&m, 3, "");
	const uint32_t n = hd_layout_nbuckets(&m.rig.task->layout);
	assert_in_range(n, 5, 64);
	for (uint32_t b = 0; b < n; b++)
		rank[b] = (b + 2) % n;
	m.rig.task->comm = (struct hd_comm){ .order = HD_COMM_TAC, .parts = true, .nbuckets = n, .rank = rank,
		.link = { 1024, 700 } };
	assert_int_equal(hd_plan_xfers(&m.plan, &m.pipes, &m.view, m.rig.task, &m.rig.arena, &diag), HD_OK);
	assert_int_equal(m.plan.xfers.len, n);
	for (uint32_t b = 0; b < n; b++) {
		const struct hd_xfer *x = &m.plan.xfers.at[b];
		const double ns = (double)x->len_bytes * 1e9 / (1 << 20) + 700;
		CHECK((double)x->predicted_ns > ns - 2 && (double)x->predicted_ns < ns + 2, "bucket %u", b);
		for (uint32_t o = 0; o < n; o++)
			assert_int_equal(x->priority < m.plan.xfers.at[o].priority, rank[b] < rank[o]);
	}
	hd_text_init(&text, &m.rig.arena);
	assert_int_equal(hd_plan_print(&m.plan, &text), HD_OK);
	CHECK(hd_plan_parse(&back, text.at, text.len, "t", &m.rig.arena, &diag) == HD_OK, "%s", diag.text);
	assert_true(back.xfers.len == n);
	for (uint32_t b = 0; b < n; b++) {
		const struct hd_xfer *x = &back.xfers.at[b], *is = &m.plan.xfers.at[b];
		assert_true(x->kind == is->kind && x->class == is->class && x->primitive == is->primitive &&
			x->from == is->from && x->to == is->to && x->priority == is->priority &&
			x->bucket == is->bucket && x->first_chunk == is->first_chunk &&
			x->nchunks == is->nchunks && x->len_bytes == is->len_bytes &&
			x->predicted_ns == is->predicted_ns);
	}
	hd_rig_close(&m.rig);
}

/* By stages a bucket that one stage alone holds goes to no other worker. */
static void what_no_other_needs_has_no_row(void **state)
{
	struct xfers_made m;

	(void)state;
	begin(&m, 2, "parallel: {stages: 2}\ncomm: {sync: stages}\n");
	assert_true(m.plan.xfers.len < hd_layout_nbuckets(&m.rig.task->layout));
	hd_rig_close(&m.rig);
	begin(&m, 4, "parallel: {stages: 2}\ncomm: {sync: stages}\n");
	assert_int_equal(m.plan.xfers.len, hd_layout_nbuckets(&m.rig.task->layout));
	for (uint32_t i = 0; i < m.plan.xfers.len; i++)
		assert_true(m.plan.xfers.at[i].kind == HD_XFER_SUM);
	hd_rig_close(&m.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_has_a_row_that_says_all_of_it),
		cmocka_unit_test(what_was_settled_is_in_the_rows),
		cmocka_unit_test(what_no_other_needs_has_no_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
