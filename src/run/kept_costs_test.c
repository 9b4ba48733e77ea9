#include "run/kept_costs.h"

#include <math.h>
#include <unistd.h>

#include "run/choose_plan.h"
#include "run/testing_costs.h"

struct desk { struct hd_made made; struct hd_clock clock; struct hd_rundir dir; char parent[64]; };

static void open_desk(struct desk *d)
{
	char folder[80];

	*d = (struct desk){ .parent = "" };
	hd_made_begin(&d->made, hd_made_gpt, "parallel: {mode: auto}\n", 5);
	hd_clock_real(&d->clock);
	snprintf(d->parent, sizeof d->parent, "/tmp/hd_kept_costs_test.%d", (int)getpid());
	snprintf(folder, sizeof folder, "%s/run", d->parent);
	assert_int_equal(hd_fs_mkdirs(&d->made.rig.fs, d->parent, NULL), HD_OK);
	assert_int_equal(hd_rundir_create(&d->dir, &d->made.rig.fs, &d->clock, d->parent, folder, "gpt", "{}",
		2, NULL), HD_OK);
}

static void close_desk(struct desk *d)
{
	hd_rundir_close(&d->dir);
	assert_int_equal(hd_fs_remove_tree(&d->made.rig.fs, d->parent, NULL), HD_OK);
	hd_made_end(&d->made);
}

static const struct hd_worker_spec worker = { .kind = "cpu", .ndevices = 3, .nthreads = 2 };

static enum hd_err get(struct desk *d, struct hd_run_costs **costs, struct hd_worker_spec *as,
	struct hd_diag *diag)
{
	*diag = (struct hd_diag){ "" };
	return hd_kept_costs_get(costs, as, &d->dir, d->made.rig.task, &d->made.rig.arena, diag);
}

/* All that is chosen and predicted by them. */
static struct hd_plan_choices choose(struct desk *d, const struct hd_run_costs *costs)
{
	const struct hd_task *task = d->made.rig.task;
	const struct hd_choose_ask ask = { .task = task, .costs = costs, .ndevices = 4,
		.job = hd_plan_job_whole(task->job->nvns, task->layout.nchunks) };
	struct hd_plan_choices choices;

	CHECK(hd_choose_plan(&choices, &ask, &d->made.rig.arena, &d->made.diag) == HD_OK, "%s",
		d->made.diag.text);
	return choices;
}

static void what_is_kept_predicts_the_same(void **state)
{
	struct hd_worker_spec as = { .kind = "as it was", .memory_limit_bytes = 7 };
	struct hd_run_costs *costs = NULL, *first = NULL;
	struct hd_diag diag;
	struct desk d;

	(void)state;
	open_desk(&d);
	assert_int_equal(get(&d, &costs, &as, &diag), HD_E_NOTFOUND);
	/* with an update, a copy and a wave of their own */
	d.made.costs->line.profile.sum_ns_per_byte = 0.4;
	assert_int_equal(hd_run_costs_again(&first, d.made.rig.task, &d.made.costs->line.profile, 0.875,
		&d.made.rig.arena, NULL), HD_OK);
	assert_true(first->update_ns > 0 && first->copy_ns_per_byte > 0 && first->hop_ns > 0);
	first->took_s = 0.75;
	first->host_ns_per_byte = 0.3;
	first->late_ns = 70000;
	first->hop_ns = 31000;
	first->pace = 2.5;
	first->norm_ns = 410000;
	first->link_ns_per_byte = 0.09;
	first->reuse = (struct hd_reuse){ { { 1, 1.25, 1.5 }, { 1, 1.1, 1.1 }, { 1, 1, 1.0625 },
		{ 1.25, 1.25, 2 }, { 1, 1, 3 } } };
	CHECK(hd_kept_costs_put(&d.dir, first, &worker, &d.made.rig.arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(get(&d, &costs, &as, &diag) == HD_OK, "%s", diag.text);
	assert_true(as.ndevices == 3 && as.nthreads == 2 && as.memory_limit_bytes == 7);
	assert_string_equal(as.kind, "as it was");
	assert_true(!memcmp(&costs->whole, &first->whole, sizeof costs->whole) &&
		!memcmp(&costs->update_ns, &first->update_ns, sizeof costs->update_ns) &&
		!memcmp(&costs->copy_ns_per_byte, &first->copy_ns_per_byte, sizeof costs->copy_ns_per_byte) &&
		!memcmp(&costs->reuse, &first->reuse, sizeof costs->reuse) &&
		!memcmp(&costs->took_s, &first->took_s, sizeof costs->took_s) &&
		!memcmp(&costs->late_ns, &first->late_ns, sizeof costs->late_ns) &&
		costs->hop_ns == 31000 && costs->pace == 2.5 && costs->norm_ns == 410000 &&
		costs->link_ns_per_byte == 0.09 &&
		!memcmp(&costs->host_ns_per_byte, &first->host_ns_per_byte, sizeof costs->host_ns_per_byte));
	const struct hd_plan_choices a = choose(&d, first), b = choose(&d, costs);
	assert_int_equal(a.n, b.n);
	assert_true(a.n > 3);
	for (uint32_t i = 0; i < a.n; i++) {
		assert_memory_equal(&a.at[i].forecast.step_ns, &b.at[i].forecast.step_ns, sizeof(double));
		assert_string_equal(a.at[i].plan.cause ? a.at[i].plan.cause : "", b.at[i].plan.cause ?
			b.at[i].plan.cause : "");
	}
	close_desk(&d);
}

/* By what a cold addition took, where it was measured; else by additions, of which an update of two slots
 * moves seven thirds. */
static void updates_cost_what_was_measured_of_them(void **state)
{
	struct hd_made m;

	(void)state;
	hd_made_begin(&m, hd_made_gpt, "parallel: {mode: auto}\n", 5);
	struct hd_profile profile = m.costs->line.profile;
	const double bytes = (double)m.rig.task->layout.elems * sizeof(float);
	profile.sum_ns_per_byte = 0.3;
	for (int cold = 0; cold < 2; cold++) {
		struct hd_run_costs *costs = NULL;
		profile.step_ns_per_byte = cold ? 2.5 : 0;
		assert_int_equal(hd_run_costs_again(&costs, m.rig.task, &profile, 1, &m.rig.arena, NULL),
			HD_OK);
		CHECK(fabs(costs->update_ns / bytes - (cold ? 2.5 : 0.7)) < 1e-9, "%g ns a byte",
			costs->update_ns / bytes);
	}
	hd_made_end(&m);
}

static void replace(struct desk *d, const char *from, const char *to)
{
	struct hd_arena *arena = &d->made.rig.arena;
	char path[HD_PATH_CAP];
	struct hd_text text;
	uint8_t *bytes;
	size_t len;

	hd_rundir_path(&d->dir, HD_RUN_COSTS, path, sizeof path);
	assert_int_equal(hd_file_read_all(&d->made.rig.fs, path, arena, 1 << 20, &bytes, &len, NULL), HD_OK);
	char *at = strstr((char *)bytes, from);
	CHECK(at != NULL, "no %s in %s", from, (char *)bytes);
	hd_text_init(&text, arena);
	hd_text_addf(&text, "%.*s%s%s", (int)(at - (char *)bytes), (char *)bytes, to, at + strlen(from));
	assert_int_equal(hd_rundir_put(&d->dir, HD_RUN_COSTS, text.at, text.len, NULL), HD_OK);
}

/* A folder of a run that an older program began. */
static void costs_without_distances_know_of_none(void **state)
{
	struct hd_worker_spec as = worker;
	struct hd_run_costs *costs = NULL;
	struct hd_reuse none;
	struct hd_diag diag;
	struct desk d;

	(void)state;
	open_desk(&d);
	d.made.costs->reuse.by[0][2] = 3;
	assert_int_equal(hd_kept_costs_put(&d.dir, d.made.costs, &worker, &d.made.rig.arena, NULL), HD_OK);
	replace(&d, "\"reuse\":", "\"earlier\":");
	CHECK(get(&d, &costs, &as, &diag) == HD_OK, "%s", diag.text);
	hd_reuse_none(&none);
	assert_memory_equal(&costs->reuse, &none, sizeof none);
	close_desk(&d);
}

static void what_is_not_of_the_job_is_refused(void **state)
{
	static const struct { const char *from, *to; enum hd_err err; } rows[] = {
		{ "\"heddle-costs\":1", "\"heddle-costs\":2", HD_E_INPUT },
		{ "\"devices\":3", "\"devices\":0", HD_E_INPUT },
		{ "\"threads\":2", "\"threads\":-1", HD_E_INPUT },
		{ "\"whole\":1", "\"whole\":-1", HD_E_INPUT },
		{ "\"whole\":1", "\"whole\":0", HD_E_INPUT },
		{ "\"reuse\":[1,", "\"reuse\":[0.5,", HD_E_INPUT },
		{ "\"reuse\":[1,1,", "\"reuse\":[1,2,", HD_E_INPUT },
		{ "\"reuse\":[1,", "\"reuse\":[1,1,", HD_E_INPUT },
		{ "\"reuse\":[1,", "\"reuse\":[\"one\",", HD_E_INPUT },
		{ "}\n{", "}{", HD_E_INPUT },
		{ "}\n", "}", HD_E_INPUT },
		/* of another model, or other virtual nodes */
		{ "\"vn_size\":2", "\"vn_size\":4", HD_E_INVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_run_costs *costs = NULL;
		struct hd_worker_spec as = worker;
		struct hd_diag diag = { "" };
		struct desk d;
		open_desk(&d);
		assert_int_equal(hd_kept_costs_put(&d.dir, d.made.costs, &worker, &d.made.rig.arena, NULL),
			HD_OK);
		replace(&d, rows[i].from, rows[i].to);
		const enum hd_err err = get(&d, &costs, &as, &diag);
		CHECK(err == rows[i].err && *diag.text && !costs, "row %zu: %d, %s", i, (int)err, diag.text);
		close_desk(&d);
	}
	struct hd_run_costs *costs = NULL;
	struct desk d;
	open_desk(&d);
	struct hd_profile *profile = &d.made.costs->line.profile;
	const struct hd_profile was = *profile;
	const char *id = profile->node[3].id;
	for (int i = 0; i < 4; i++) {
		profile->nnodes -= i == 0;
		profile->graph += i == 1;
		profile->node[3].id = i == 2 ? "another" : id;
		const enum hd_err err = hd_run_costs_again(&costs, d.made.rig.task, profile, 1,
			&d.made.rig.arena, NULL);
		CHECK(err == (i < 3 ? HD_E_INVAL : HD_OK), "%d: %d", i, (int)err);
		*profile = was;
	}
	close_desk(&d);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_predicts_the_same),
		cmocka_unit_test(updates_cost_what_was_measured_of_them),
		cmocka_unit_test(costs_without_distances_know_of_none),
		cmocka_unit_test(what_is_not_of_the_job_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
