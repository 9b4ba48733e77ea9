#include "run/given_costs.h"

#include <math.h>
#include <unistd.h>

#include "run/pipes_forecast.h"
#include "run/testing_costs.h"

/* Files are those of a job's own costs, changed. */

struct desk { struct hd_made made; char path[64]; };

static void open_desk(struct desk *d, const char *more)
{
	*d = (struct desk){ .path = "" };
	hd_made_begin(&d->made, hd_made_gpt, more, 5);
	snprintf(d->path, sizeof d->path, "/tmp/hd_given_costs_test.%d", (int)getpid());
}

static void close_desk(struct desk *d)
{
	(void)unlink(d->path);
	hd_made_end(&d->made);
}

static enum hd_err given(struct desk *d, const struct hd_profile *profile, double pace,
	struct hd_run_costs **costs)
{
	struct hd_text text;

	hd_text_init(&text, &d->made.rig.arena);
	hd_profile_print(profile, &text);
	assert_int_equal(hd_file_write_atomic(&d->made.rig.fs, d->path, text.at, text.len, NULL), HD_OK);
	d->made.diag = (struct hd_diag){ "" };
	return hd_given_costs(costs, d->made.rig.task, &d->made.rig.fs, d->path, pace, &d->made.rig.arena,
		&d->made.diag);
}

static void devices_wait_what_the_file_says(void **state)
{
	struct hd_profile_link link[] = { { 0, "pcie", 10, 5e9, true }, { 1, "tcp", 70000, 2e7, true } };
	struct hd_run_costs *costs = NULL;
	struct desk d;

	(void)state;
	open_desk(&d, "parallel: {mode: auto}\n");
	struct hd_profile profile = d.made.costs->line.profile;
	profile.sum_ns_per_byte = profile.step_ns_per_byte = 1;
	for (uint32_t n = 0; n <= 2; n++) {
		profile.link = link;
		profile.nlinks = n;
		CHECK(given(&d, &profile, 3, &costs) == HD_OK, "%s", d.made.diag.text);
		for (uint32_t i = 0; i < costs->graph->nnodes; i++)
			assert_true(costs->node_ns[i] == 3 * d.made.costs->node_ns[i]);
		/* they neither add nor update; a link within a machine is none between two */
		assert_true(costs->update_ns == 0 && costs->copy_ns_per_byte == 0 && costs->late_ns > 0);
		assert_true(costs->port_bytes_per_s == (n == 2 ? 2e7 : 0) &&
			costs->port_latency_ns == (n == 2 ? 70000 : 0));
	}
	/* both ways share it */
	link[1].duplex = false;
	CHECK(given(&d, &profile, 3, &costs) == HD_OK && costs->port_bytes_per_s == 1e7, "%g bytes/s, %s",
		costs->port_bytes_per_s, d.made.diag.text);
	/* more than 64 bits of ns, or than sums of a profile */
	static const double pace[] = { 1e13, 1e100, 1e300 };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(given(&d, &profile, pace[i], &costs), HD_E_INVAL);
		CHECK(strstr(d.made.diag.text, "paced:N:X"), "%s", d.made.diag.text);
	}
	profile.vn_size++;
	assert_int_equal(given(&d, &profile, 3, &costs), HD_E_INVAL);
	CHECK(strstr(d.made.diag.text, d.path) && strstr(d.made.diag.text, "other virtual nodes"), "%s",
		d.made.diag.text);
	assert_int_equal(unlink(d.path), 0);
	assert_int_equal(hd_given_costs(&costs, d.made.rig.task, &d.made.rig.fs, d.path, 1,
		&d.made.rig.arena, NULL), HD_E_NOTFOUND);
	close_desk(&d);
}

/* Two workers, so slow a link that a step is what goes over it: with the whole model each half of the
 * gradient as it was made and half as a sum; in stages what is kept of them goes nowhere, and each virtual
 * node's activations go over and as many gradients come back, of which the last one follows alone. With three
 * times as many bytes, or none, of those that come back it is longer, or shorter. */
static void a_slow_link_is_the_step(void **state)
{
	static const char *const more[] = { "parallel: {mode: data}\n",
		"parallel: {mode: pipeline, stages: 2, settled: '1f1b 2 2 0,5'}\ncomm: {sync: stages}\n" };

	(void)state;
	double at_ns[4];
	for (int turn = 0; turn < 4; turn++) {
		static const double times[] = { 1, 1, 0, 3 };
		const bool staged = turn > 0;
		struct hd_profile_link link[] = { { 1, "tcp", 0, 1e5, true } };
		struct hd_pipes_forecast f;
		struct hd_run_costs *costs = NULL;
		struct desk d;
		open_desk(&d, more[staged]);
		struct hd_profile profile = d.made.costs->line.profile;
		profile.link = link;
		profile.nlinks = 1;
		CHECK(given(&d, &profile, 1e-6, &costs) == HD_OK, "%s", d.made.diag.text);
		/* not what this machine is late now: a wake takes ms where others have the cores */
		costs->late_ns = 1;
		costs->hop_ns = 0;
		for (uint32_t k = 0; k < costs->cuts.n; k++)
			costs->line.back[k] = llround((double)costs->line.back[k] * times[turn]);
		CHECK(hd_pipes_forecast(&f, d.made.rig.task, costs, 2, 1, 0, &d.made.rig.arena,
			&d.made.diag) == HD_OK && f.npipes == (staged ? 1 : 2), "%s", d.made.diag.text);
		const struct hd_task *task = d.made.rig.task;
		/* two tensors of 2 rows, 8 positions and width 16 cross; all parameters are in one bucket,
		 * which goes to its owner and back */
		const double bytes = (staged ? (task->job->nvns + 1) * 2048.0 : 0) +
			2 * (double)task->layout.elems * sizeof(float);
		at_ns[turn] = f.step.step_ns;
		CHECK(turn == 3 || fabs(f.step.step_ns * 1e-9 * 1e5 / bytes - 1) < 0.05,
			"turn %d: %g s, %g bytes",
			turn, f.step.step_ns * 1e-9, bytes);
		close_desk(&d);
	}
	CHECK(at_ns[2] < at_ns[1] && at_ns[1] < at_ns[3], "%g, %g, %g", at_ns[2], at_ns[1], at_ns[3]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_wait_what_the_file_says),
		cmocka_unit_test(a_slow_link_is_the_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
