/* The shape of PipeDream's published table: which models pipeline, which stay data parallel, and in which
 * split. The profiles are those that were published; the clusters have the published links between
 * servers. Rates are by hand where they can be. */
#include "planner/pipedream.h"

#include <stdio.h>
#include <string.h>

#include "tests/planning.h"
#include "tests/check.h"

static struct hd_profile profile;
static struct hd_cuts cuts;
static struct hd_cut_sums sums;

static void read_text(const char *text)
{
	struct hd_diag diag = { "" };

	CHECK(hd_profile_read(&profile, text, strlen(text), "g", &arena, &diag) == HD_OK, "%s", diag.text);
	hd_sums_of(&sums, &cuts, &profile, (struct hd_cuts_how){ 0 });
}

static struct hd_cluster cluster_of(uint32_t inner, double inner_bps, uint32_t outer, double outer_bps)
{
	const struct hd_cluster_level level[] = { { "server", inner, inner_bps, 0 },
		{ "network", outer, outer_bps, 0 } };
	struct hd_cluster c = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_cluster_make(&c, level, outer > 1 ? 2 : 1, (struct hd_cluster_kind){ "v100", 1, 0 }, &arena,
		&diag) == HD_OK, "%s", diag.text);
	return c;
}

/* A chain of equal layers: 3 ms each, 1e6 bytes out, the given weights. */
static void chain(uint32_t n, const char *weights)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	for (uint32_t i = 0; i < n; i++)
		hd_text_addf(&text,
			"n%u -- Op -- forward_compute_time=1.000, backward_compute_time=2.000, "
			"activation_size=1000000, parameter_size=%s\n", i,
			weights);
	for (uint32_t i = 1; i < n; i++)
		hd_text_addf(&text, "\tn%u -- n%u\n", i - 1, i);
	read_text(text.at);
}

static double rate_of(const struct hd_pd_stage *stage, uint32_t n, const struct hd_cluster *c)
{
	struct hd_pd_run run = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_pd_run(&run, &sums, stage, n, c, &arena, &diag) == HD_OK, "%s", diag.text);
	return run.rate;
}

static uint32_t nbuckets(const struct hd_pd_stage *stage, uint32_t n, const struct hd_cluster *c)
{
	struct hd_pd_run run = { 0 };

	assert_int_equal(hd_pd_run(&run, &sums, stage, n, c, &arena, NULL), HD_OK);
	return run.costs.nstages;
}

static bool near(double a, double b) { return a > 0.999 * b && a < 1.001 * b; }

static void rates_are_those_of_the_slowest_stage_or_link(void **state)
{
	struct hd_cluster one = cluster_of(4, 1e12, 1, 0), slow = cluster_of(4, 1e8, 1, 0),
		two = cluster_of(2, 1e8, 1, 0);
	const struct hd_pd_stage straight[] = { { 0, 1, 1 }, { 1, 2, 1 }, { 2, 3, 1 }, { 3, 4, 1 } };
	const struct hd_pd_stage uneven[] = { { 0, 3, 3 }, { 3, 4, 1 } }, all[] = { { 0, 4, 4 } };

	(void)state;
	chain(4, "0");
	CHECK(near(rate_of(straight, 4, &one), 1000 / 3.0), "straight: %g", rate_of(straight, 4, &one));
	CHECK(near(rate_of(uneven, 2, &one), 1000 / 3.0), "3-1: %g", rate_of(uneven, 2, &one));
	CHECK(near(rate_of(all, 1, &one), 1000 / 3.0), "data parallel: %g", rate_of(all, 1, &one));
	assert_int_equal(nbuckets(all, 1, &slow), 1);                /* fewer than 25 MB of weights */
	assert_int_equal(nbuckets(uneven, 2, &slow), 2);
	CHECK(near(rate_of(all, 1, &slow), 1000 / 3.0), "nothing to send: %g", rate_of(all, 1, &slow));
	/* a megabyte takes 10 ms there and 10 back, two are under way: 10 + 3 + 10 + 2 + 1 ms for both */
	chain(2, "0");
	CHECK(near(rate_of(straight, 2, &two), 2 / 0.026), "slow links: %g", rate_of(straight, 2, &two));
	/* 4 layers of 40 MB: backward of 2 ms a layer hides nothing of four sums of 2 * 3/4 * 400 ms; they
	 * begin after the forwards and one backward */
	chain(4, "40000000");
	assert_int_equal(nbuckets(all, 1, &slow), 4);
	assert_int_equal(nbuckets(straight, 4, &slow), 4);
	CHECK(near(rate_of(all, 1, &slow), 4 / (4 * 0.6 + 0.006)), "sums: %g, %g", rate_of(all, 1, &slow),
		4 / (4 * 0.6 + 0.006));
}

static void what_cannot_be_run_is_refused(void **state)
{
	struct hd_cluster four = cluster_of(4, 1e12, 1, 0);
	const struct hd_pd_stage three[] = { { 0, 2, 2 }, { 2, 4, 1 } };
	struct hd_pd_run run;
	struct hd_diag diag = { "" };

	(void)state;
	chain(4, "0");
	assert_int_equal(hd_pd_run(&run, &sums, three, 2, &four, &arena, &diag), HD_E_INVAL);
	assert_string_equal(diag.text, "a partition over 3 devices, a cluster of 4");
	struct hd_pd_choice choice;
	chain(3, "0");
	assert_int_equal(hd_pd_choose(&choice, &sums, &four, &arena, &diag), HD_OK);
	assert_false(choice.way[HD_PD_STRAIGHT].made);               /* 3 cuts, 4 devices */
	assert_true(*choice.way[HD_PD_STRAIGHT].why);
}

/* One published row. `split`: what is fastest; NULL: not said. */
struct published_row { const char *model; int servers, gpus; double inner, outer; uint32_t share;
	enum hd_pd_way ways[2]; const char *split; double published; };

#define V 12e9      /* PCIe 3 x16 */
#define N 24e9      /* NVLink, a direction */
static const struct published_row rows[] = {
	{ "vgg16",    4, 4, V, 1.25e9,  2, { HD_PD_PAPER, HD_PD_SHARED }, "L1: 0-31 x15 31-40 x1", 5.28 },
	{ "alexnet",  4, 4, V, 1.25e9,  1, { HD_PD_PAPER, HD_PD_SHARED }, "L1: 0-13 x15 13-22 x1", 4.92 },
	{ "gnmt",     4, 4, V, 1.25e9,  1, { HD_PD_STRAIGHT, HD_PD_STRAIGHT }, NULL, 2.34 },
	{ "resnet50", 4, 4, V, 1.25e9,  1, { HD_PD_DATA, HD_PD_PAPER }, "L1: 0-240 x16", 1 },
	{ "vgg16",    2, 8, N, 3.125e9, 2, { HD_PD_PAPER, HD_PD_SHARED }, NULL, 2.98 },
	{ "alexnet",  2, 8, N, 3.125e9, 1, { HD_PD_PAPER, HD_PD_SHARED }, NULL, 2.04 },
	{ "gnmt",     2, 8, N, 3.125e9, 1, { HD_PD_STRAIGHT, HD_PD_STRAIGHT }, NULL, 3.14 },
	{ "resnet50", 2, 8, N, 3.125e9, 1, { HD_PD_DATA, HD_PD_PAPER }, "L1: 0-240 x16", 1 },
	{ "gnmt",     1, 4, V, V,       1, { HD_PD_STRAIGHT, HD_PD_STRAIGHT }, NULL, 1.5 },
};

/* Of a model that was profiled at `share` times the minibatch that the row trained with. */
static bool read_model(const struct published_row *row)
{
	char path[64], *text;

	snprintf(path, sizeof path, "pipedream/%s.graph.txt", row->model);
	if (!(text = hd_shared_text(path)))
		return false;
	read_text(text);
	for (uint32_t v = 0; v < profile.nnodes; v++) {
		struct hd_profile_node *n = &profile.node[v];
		n->f.p50_ns /= row->share;
		n->i.p50_ns /= row->share;
		n->w.p50_ns /= row->share;
		for (uint32_t o = 0; o < n->nouts; o++)
			n->out[o] /= row->share;
	}
	hd_sums_of(&sums, &cuts, &profile, (struct hd_cuts_how){ 0 });
	return true;
}

static void the_published_table_keeps_its_shape(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const struct published_row *row = &rows[k];
		struct hd_pd_choice c;
		struct hd_diag diag = { "" };
		struct hd_text text;
		if (!read_model(row)) {
			SKIP("data/pipedream is neither in HEDDLE_SHARED nor in tests");
		}
		struct hd_cluster cluster = cluster_of((uint32_t)row->gpus, row->inner,
			(uint32_t)row->servers, row->outer);
		CHECK(hd_pd_choose(&c, &sums, &cluster, &arena, &diag) == HD_OK, "%s: %s", row->model,
			diag.text);
		double gain = c.way[c.best].rate / c.way[HD_PD_DATA].rate;
		hd_text_init(&text, &arena);
		hd_part_print(&(struct hd_partition){ .top = c.way[c.best].split }, 1, &text);
		printf("%dx%d %-9s %-14s %.2f (published %.2f)  %s\n", row->servers, row->gpus, row->model,
			hd_pd_way_names[c.best], gain,
			row->published, text.at);
		CHECK(c.best == row->ways[0] || c.best == row->ways[1], "%s %dx%d: %s", row->model,
			row->servers, row->gpus, hd_pd_way_names[c.best]);
		CHECK((row->published > 1) == (gain > 1.1), "%s %dx%d: %.2f, published %.2f", row->model,
			row->servers, row->gpus, gain, row->published);
		CHECK(!row->split || !strcmp(text.at, row->split), "%s %dx%d: %s", row->model, row->servers,
			row->gpus, text.at);
		hd_arena_reset(&arena);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rates_are_those_of_the_slowest_stage_or_link, make_arena,
			drop_arena),
		cmocka_unit_test_setup_teardown(what_cannot_be_run_is_refused, make_arena, drop_arena),
		cmocka_unit_test_setup_teardown(the_published_table_keeps_its_shape, make_arena, drop_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
