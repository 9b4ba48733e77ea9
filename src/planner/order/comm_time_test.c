#include "planner/comm_time.h"

#include <math.h>

#include "graph/testing.h"
#include "tests/planning.h"

/* Of graphs of real models with drawn times: against closed forms, and against laws that hold of any step. */

enum { NODES = 400, BUCKETS = 64 };

struct timed_model {
	struct hd_subject s;
	struct hd_layout layout;
	int64_t node_ns[NODES];
	uint32_t rank[BUCKETS];
	struct hd_comm_ask ask;
	struct hd_comm comm;
	struct hd_comm_way way;
};

static const struct hd_model_arg mlp[] = { { "input", "[1, 20, 20]" }, { "hidden", "[200, 90, 70]" },
	{ "classes", "4" } };
static const struct hd_model_arg gpt[] = { { "layers", "1" }, { "width", "16" }, { "heads", "2" },
	{ "context", "8" }, { "vocab", "32" }, { "dropout", "0" } };

static void open_model(struct timed_model *m, bool is_gpt, struct hd_dice *d)
{
	struct hd_subject *s = &m->s;

	hd_subject_model(s, is_gpt ? "gpt" : "mlp", is_gpt ? gpt : mlp, is_gpt ? 6 : 3,
		(struct hd_model_opts){ 0 });
	CHECK(s->err == HD_OK, "%s", s->diag.text);
	CHECK(hd_graph_autodiff(&s->graph, &s->diag) == HD_OK, "%s", s->diag.text);
	CHECK(hd_layout_make(&m->layout, &s->graph, &s->arena, &s->diag) == HD_OK, "%s", s->diag.text);
	assert_in_range(s->graph.nnodes, 1, NODES);
	for (uint32_t i = 0; i < s->graph.nnodes; i++)
		m->node_ns[i] = 1000 + hd_roll(d, 30000);
	m->ask = (struct hd_comm_ask){ .graph = &s->graph, .layout = &m->layout, .node_ns = m->node_ns,
		.link = { .bytes_per_s = 1e9 } };
	m->way = (struct hd_comm_way){ .nworkers = 2, .nvns = 1, .wave = 1 };
}

/* Into buckets of so many bytes, or of tensors; the last first, or in the order in which they are read. */
static void cut(struct timed_model *m, int64_t bytes, bool fifo)
{
	struct hd_comm_cut made;

	CHECK(hd_comm_cut(&made, &m->layout, bytes, &m->s.arena, &m->s.diag) == HD_OK, "%s", m->s.diag.text);
	assert_in_range(made.nbuckets, 1, BUCKETS);
	CHECK(hd_layout_cut(&m->layout, made.nbuckets, made.nsegments, &m->s.arena, &m->s.diag) == HD_OK,
		"%s", m->s.diag.text);
	for (uint32_t b = 0; b < made.nbuckets; b++)
		m->rank[b] = fifo ? made.nbuckets - 1 - b : b;
	m->comm = (struct hd_comm){ .order = HD_COMM_FIFO, .nbuckets = made.nbuckets, .rank = m->rank };
}

static struct hd_comm_time took(struct timed_model *m)
{
	struct hd_comm_time t;

	CHECK(hd_comm_step_time(&t, &m->ask, NULL, &m->comm, &m->way, &m->s.arena, &m->s.diag) == HD_OK, "%s",
		m->s.diag.text);
	return t;
}

static double computing(const struct timed_model *m)
{
	double ns = 0;

	for (uint32_t i = 0; i < m->s.graph.nnodes; i++)
		ns += (double)m->node_ns[i];
	return ns;
}

static double all_bytes(const struct timed_model *m)
{
	double bytes = 0;

	for (uint32_t i = 0; i < m->layout.nsegments; i++)
		bytes += (double)m->layout.segment[i].len * sizeof(float);
	return bytes;
}

static bool is_near(double a, double b) { return a - b < 20 && b - a < 20; }

/* What comes before the first node that reads parameters. */
static double leading(const struct timed_model *m)
{
	double ns = 0;

	for (uint32_t i = 0; i < m->s.graph.nforward; i++) {
		for (uint32_t k = 0; k < m->s.graph.node[i].nin; k++)
			if (m->s.graph.value[m->s.graph.node[i].in[k]].kind == HD_PARAM)
				return ns;
		ns += (double)m->node_ns[i];
	}
	return ns;
}

/* The first layer's gradient is the last that is made: then come part, sum, and each a message and a latency.
 * What is computed next and reads any of it waits for it. */
static void one_bucket_takes_all_one_after_another(void **state)
{
	struct hd_dice d = { 3 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		open_model(&m, false, &d);
		cut(&m, INT64_C(1) << 30, i % 2);
		m.ask.link.bytes_per_s = 1e6 * (1 + hd_roll(&d, 5000));
		m.ask.link.latency_ns = hd_roll(&d, 10) * 100000;
		m.way.message_ns = hd_roll(&d, 50000);
		m.way.nworkers = 2 + hd_roll(&d, 6);
		/* all of n - 1 others share the owner's port, in and out */
		const double others = m.way.nworkers - 1, wire = others * (all_bytes(&m) * 1e9 /
			m.ask.link.bytes_per_s + (double)m.way.message_ns), each = wire +
			(double)m.ask.link.latency_ns;
		double forward = -leading(&m);
		for (uint32_t k = 0; k < m.s.graph.nforward; k++)
			forward += (double)m.node_ns[k];
		/* no backward pass begins before all have heard that the step is over */
		const double heard = fmax(0, (double)m.ask.link.latency_ns - forward);
		const double wanted = computing(&m) - fmin(leading(&m), 2 * each) + 2 * each + heard;
		const struct hd_comm_time t = took(&m);
		CHECK(is_near((double)t.step_ns, wanted) && is_near((double)t.computing_ns, computing(&m)),
			"%u workers: %lld, wanted %.0f", m.way.nworkers, (long long)t.step_ns, wanted);
		hd_subject_finish(&m.s);
	}
}

/* A fast link, a worker alone: nothing is waited for. Waves are computed one after another. */
static void what_is_sent_at_once_takes_no_time(void **state)
{
	struct hd_dice d = { 9 };

	(void)state;
	for (uint32_t n = 1; n <= HD_COMM_TIME_WORKERS; n++)
		for (uint32_t copies = 0; copies < 4; copies += 2) {
			struct timed_model m;
			open_model(&m, n % 2, &d);
			cut(&m, n % 3 ? HD_COMM_TENSORS : 100000, false);
			m.ask.link.bytes_per_s = 1e18;
			m.way = (struct hd_comm_way){ .nworkers = n, .copies = copies, .nvns = n,
				.wave = 1 + n / 3 };
			const struct hd_comm_time t = took(&m);
			const double wanted = computing(&m) * n;
			CHECK(is_near((double)t.step_ns, wanted) && t.computing_ns == llround(wanted),
				"%u workers, %u copies: %lld, wanted %.0f", n, copies, (long long)t.step_ns,
				wanted);
			hd_subject_finish(&m.s);
		}
}

/* No step is shorter than its computing, nor than what the ports carry; none is longer than all of it one
 * after another. Norms, latencies and slower links do not shorten it. */
static void steps_keep_their_bounds(void **state)
{
	struct hd_dice d = { 21 };

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct timed_model m;
		open_model(&m, i % 2, &d);
		cut(&m, i % 3 ? 30000 << hd_roll(&d, 5) : HD_COMM_TENSORS, hd_roll(&d, 2));
		m.comm.parts = hd_roll(&d, 2);
		m.ask.link.bytes_per_s = 1e6 * (1 + hd_roll(&d, 3000));
		m.way.nworkers = 2 + hd_roll(&d, 4);
		m.way.copies = hd_roll(&d, 2) ? 2 : 0;
		m.way.servers = m.way.copies ? 2 * hd_roll(&d, 2) : 0;
		const double n = m.way.nworkers, wire = all_bytes(&m) * 1e9 / m.ask.link.bytes_per_s;
		const struct hd_comm_time t = took(&m);
		const double step = (double)t.step_ns;
		CHECK(step > computing(&m) - 20 && step > 2 * wire * (n - 1) / n - 20 &&
			step < computing(&m) + 3 * n * wire, "%d: %lld", i, (long long)t.step_ns);
		m.way.norms = true;       /* of sharded state parameters that go late hold up no sums */
		CHECK(m.way.copies || took(&m).step_ns >= t.step_ns - 20, "%d: norms shorten it", i);
		m.way.norms = false;
		m.ask.link.bytes_per_s /= 2;
		CHECK((double)took(&m).step_ns > step * 0.99, "%d: a slower link is faster", i);
		m.ask.link.bytes_per_s *= 2;
		m.ask.link.latency_ns = 1000000;
		CHECK((double)took(&m).step_ns > step * 0.99, "%d: a delay shortens it", i);
		hd_subject_finish(&m.s);
	}
}

/* Of three workers two hold slots. The third gets parameters no later if they need not wait for metrics. */
static void parameters_that_go_early_shorten_steps(void **state)
{
	struct hd_dice d = { 33 };
	int shorter = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		open_model(&m, i % 2, &d);
		cut(&m, HD_COMM_TENSORS, hd_roll(&d, 2));
		m.ask.link.bytes_per_s = 1e8 * (1 + hd_roll(&d, 30));
		m.way.nworkers = 3;
		m.way.copies = m.way.servers = 2;
		const double late = (double)took(&m).step_ns;
		m.way.early = true;
		const double early = (double)took(&m).step_ns;
		CHECK(early < late * 1.02, "%d: %.0f, early %.0f", i, late, early);
		shorter += early < late - 20;
		m.way.norms = true;               /* an update that needs norms knows them last */
		const double norms = (double)took(&m).step_ns;
		m.way.early = false;
		assert_true(is_near(norms, (double)took(&m).step_ns));
		hd_subject_finish(&m.s);
	}
	CHECK(shorter > 4, "%d of 20 are shorter", shorter);
}

static double forward_of(const struct timed_model *m)
{
	double ns = 0;

	for (uint32_t k = 0; k < m->s.graph.nforward; k++)
		ns += (double)m->node_ns[k];
	return ns;
}

/* Two of some workers hold slots, and an update needs the norms of all sums. Of a single bucket those without
 * get it last, so they send their partial sums last: then come that, the sum, the parameters, and what is
 * computed. Where two are all nothing follows the sum. */
static void one_bucket_with_norms_takes_all_one_after_another(void **state)
{
	struct hd_dice d = { 51 };

	(void)state;
	for (int i = 0; i < 30; i++) {
		struct timed_model m;
		open_model(&m, false, &d);
		cut(&m, INT64_C(1) << 30, true);
		m.way = (struct hd_comm_way){ .nworkers = 2 + (uint32_t)i % 3, .copies = 2, .servers = 2,
			.nvns = 1, .wave = 1, .norms = true };
		const double others = m.way.nworkers - 2.0, each = forward_of(&m) * (1 + hd_roll(&d, 20)) /
			50;
		m.ask.link.bytes_per_s = all_bytes(&m) * 1e9 / each;
		/* a partial sum of each that is late, a sum, parameters for each of them */
		const double waits = (others > 0 ? 2 * others + 1 : 2) * each - leading(&m);
		const double wanted = computing(&m) + fmax(0, waits), said = (double)took(&m).step_ns;
		CHECK(leading(&m) < each ? is_near(said, wanted) : said > wanted - 20 && said < wanted + each,
			"%u workers: %.0f, wanted %.0f", m.way.nworkers, said, wanted);
		hd_subject_finish(&m.s);
	}
}

/* Parameters that come after the norms let the forward pass begin while others are on their way: the order is
 * worth up to that pass, and never more than it. */
static void orders_gain_where_norms_are_waited_for(void **state)
{
	struct hd_dice d = { 52 };
	int shorter = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		double step[2];
		open_model(&m, i % 2, &d);
		m.ask.link.bytes_per_s = all_bytes(&m) * 4e9 / computing(&m);
		m.way = (struct hd_comm_way){ .nworkers = 3 + hd_roll(&d, 3), .copies = 2, .servers = 2,
			.nvns = 1, .wave = 1, .norms = true };
		for (int fifo = 0; fifo < 2; fifo++) {
			cut(&m, HD_COMM_TENSORS, fifo);
			step[fifo] = (double)took(&m).step_ns;
		}
		CHECK(step[0] < step[1] + 20 && step[0] > step[1] - computing(&m), "%d: %.0f, %.0f", i,
			step[0], step[1]);
		shorter += step[0] < step[1] * 0.98;
		hd_subject_finish(&m.s);
	}
	CHECK(shorter >= 10, "%d of 20 are shorter", shorter);
}

/* Random is drawn for each step and each two workers. Of a single bucket it says nothing; of many the mean
 * step is longer than with the order in which they are read, and hardly depends on the seed. */
static void random_is_the_mean_of_many_draws(void **state)
{
	struct hd_dice d = { 53 };
	int longer = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		double step[2];
		open_model(&m, i % 2, &d);
		m.ask.link.bytes_per_s = all_bytes(&m) * 4e9 / computing(&m);
		m.way = (struct hd_comm_way){ .nworkers = 3 + hd_roll(&d, 3), .copies = 2, .servers = 2,
			.nvns = 1, .wave = 1, .norms = true };
		cut(&m, INT64_C(1) << 30, false);
		step[0] = (double)took(&m).step_ns;
		m.comm.order = HD_COMM_RANDOM;
		step[1] = (double)took(&m).step_ns;
		CHECK(fabs(step[1] / step[0] - 1) < 0.01, "%d: one bucket: %.0f, %.0f", i, step[0], step[1]);
		cut(&m, HD_COMM_TENSORS, false);
		m.comm.parts = true;
		const double read = (double)took(&m).step_ns;
		m.comm.order = HD_COMM_RANDOM;
		step[0] = (double)took(&m).step_ns;
		CHECK((double)took(&m).step_ns == step[0], "%d: another step of the same job", i);
		for (uint32_t b = 0; b < m.comm.nbuckets; b++)
			m.rank[b] = (b + 3) % m.comm.nbuckets;
		step[1] = (double)took(&m).step_ns;
		CHECK(fabs(step[1] / step[0] - 1) < 0.05, "%d: seeds: %.0f, %.0f", i, step[0], step[1]);
		longer += step[0] > read * 1.02;
		hd_subject_finish(&m.s);
	}
	CHECK(longer >= 8, "%d of 20 are longer", longer);
}

static void too_much_to_play_is_not_said(void **state)
{
	struct hd_dice d = { 2 };
	struct timed_model m;

	(void)state;
	open_model(&m, false, &d);
	cut(&m, HD_COMM_TENSORS, false);
	m.way.nworkers = HD_COMM_TIME_WORKERS + 1;
	assert_int_equal(took(&m).step_ns, 0);
	m.way.nworkers = HD_COMM_TIME_WORKERS;
	assert_true(took(&m).step_ns > 0);
	hd_subject_finish(&m.s);
}

/* No candidate has a shorter step; where nothing is said the first is kept. */
static void the_fastest_of_some_is_found(void **state)
{
	static const int64_t bytes[] = { 1 << 30, 400000, 100000, HD_COMM_TENSORS };
	struct hd_dice d = { 4 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		struct hd_comm_cut first, best;
		int64_t ns;
		bool parts;
		open_model(&m, i % 2, &d);
		m.ask.link.bytes_per_s = 1e6 * (1 + hd_roll(&d, 3000));
		m.ask.link.latency_ns = hd_roll(&d, 3) * 100000;
		m.ask.order = i % 3 ? HD_COMM_AUTO : HD_COMM_FIFO;
		m.way.message_ns = hd_roll(&d, 20000);
		m.way.nworkers = i == 7 ? 9 : 2 + hd_roll(&d, 3);
		assert_int_equal(hd_comm_cut(&first, &m.layout, 50000, &m.s.arena, NULL), HD_OK);
		CHECK(hd_comm_cut_fastest(&best, &parts, &ns, &m.ask, &m.way, bytes, 4, &first, &m.s.arena,
			&m.s.diag) == HD_OK, "%s", m.s.diag.text);
		if (i == 7) {
			assert_true(!ns && best.nbuckets == first.nbuckets);
			hd_subject_finish(&m.s);
			continue;
		}
		for (uint32_t k = 0; k < 4; k++) {
			struct hd_comm_cut one, same;
			int64_t alone;
			assert_int_equal(hd_comm_cut(&one, &m.layout, bytes[k], &m.s.arena, NULL), HD_OK);
			assert_int_equal(hd_comm_cut_fastest(&same, &parts, &alone, &m.ask, &m.way, NULL, 0,
				&one, &m.s.arena, NULL), HD_OK);
			CHECK((double)ns <= (double)alone * 1.01, "%d: %lld, and of %lld bytes %lld", i,
				(long long)ns, (long long)bytes[k], (long long)alone);
		}
		hd_subject_finish(&m.s);
	}
}

/* Where both are simulated alike, partial sums go by rank. */
static void auto_sends_partial_sums_by_rank_where_it_may(void **state)
{
	struct hd_dice d = { 77 };

	(void)state;
	for (uint32_t n = 2; n <= 4; n++) {
		struct timed_model m;
		struct hd_comm_cut one, best;
		int64_t ns;
		bool parts;
		open_model(&m, false, &d);
		m.ask.link.bytes_per_s = 1e15;
		m.ask.order = HD_COMM_AUTO;
		m.way = (struct hd_comm_way){ .nworkers = n, .copies = 2, .servers = 2, .nvns = 1, .wave = 1,
			.norms = true };
		assert_int_equal(hd_comm_cut(&one, &m.layout, 50000, &m.s.arena, NULL), HD_OK);
		CHECK(hd_comm_cut_fastest(&best, &parts, &ns, &m.ask, &m.way, NULL, 0, &one, &m.s.arena,
			&m.s.diag) == HD_OK, "%s", m.s.diag.text);
		assert_int_equal(parts, n > 2);
		hd_subject_finish(&m.s);
	}
}

/* By rank it is what an order that is named has, up to 2 % longer than the other way; else that is
 * shorter. */
static void auto_goes_by_rank_within_two_hundredths(void **state)
{
	static const int64_t bytes[] = { 400000, 100000, HD_COMM_TENSORS };
	struct hd_dice d = { 78 };
	int by_rank = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct timed_model m;
		struct hd_comm_cut first, best;
		int64_t ns, named;
		bool parts, all;
		open_model(&m, i % 2, &d);
		m.ask.link.bytes_per_s = all_bytes(&m) * 4e9 / computing(&m);
		m.way = (struct hd_comm_way){ .nworkers = 3 + hd_roll(&d, 2), .copies = 2, .servers = 2,
			.nvns = 1, .wave = 1, .norms = i % 3 > 0 };
		assert_int_equal(hd_comm_cut(&first, &m.layout, 50000, &m.s.arena, NULL), HD_OK);
		m.ask.order = HD_COMM_TAC;
		assert_int_equal(hd_comm_cut_fastest(&best, &all, &named, &m.ask, &m.way, bytes, 3, &first,
			&m.s.arena, NULL), HD_OK);
		m.ask.order = HD_COMM_AUTO;
		assert_int_equal(hd_comm_cut_fastest(&best, &parts, &ns, &m.ask, &m.way, bytes, 3, &first,
			&m.s.arena, NULL), HD_OK);
		CHECK(all && (parts ? ns == named : (double)ns * 1.02 < (double)named + 1), "%d: %lld, %lld",
			i, (long long)ns, (long long)named);
		by_rank += parts;
		hd_subject_finish(&m.s);
	}
	CHECK(by_rank > 0 && by_rank < 20, "%d of 20 by rank", by_rank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_bucket_takes_all_one_after_another),
		cmocka_unit_test(what_is_sent_at_once_takes_no_time),
		cmocka_unit_test(steps_keep_their_bounds),
		cmocka_unit_test(parameters_that_go_early_shorten_steps),
		cmocka_unit_test(one_bucket_with_norms_takes_all_one_after_another),
		cmocka_unit_test(orders_gain_where_norms_are_waited_for),
		cmocka_unit_test(random_is_the_mean_of_many_draws),
		cmocka_unit_test(too_much_to_play_is_not_said),
		cmocka_unit_test(the_fastest_of_some_is_found),
		cmocka_unit_test(auto_sends_partial_sums_by_rank_where_it_may),
		cmocka_unit_test(auto_goes_by_rank_within_two_hundredths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
