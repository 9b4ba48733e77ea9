/* Delayed updates over several workers: what steps to come read is with the parameters, at all of them, and
 * goes to one that joins. */
#include "engine/testing_learner.h"

static const char lora[] = "model: {use: builtin:mlp, args: {hidden: [70, 40]}, lora: {rank: 2, targets: "
	"[fc*.weight]}}\ndata: {kind: synthetic, count: 61}\n";

#define IN_VAIN ", on_nonfinite: skip}"
/* `most`: steps that some parameter is late; `least`: steps that another one is. */
static const struct { const char *model, *optim; uint32_t batch, vns, most, least; } rows[] = {
	{ wide, "optim: {kind: adamw, update: 2bw, clip: 0.1" IN_VAIN, 26, 7, 1, 1 },
	{ wide, "optim: {kind: momentum, lr: 0.05, update: stash, cuts: auto:2" IN_VAIN, 26, 2, 1, 0 },
	{ gpt, "optim: {kind: lamb, lr: 0.01, update: stash, cuts: auto:9" IN_VAIN, 26, 4, 2, 1 },
	{ wide, "optim: {kind: sgd, lr: 0.1, update: vsync, cuts: auto:7" IN_VAIN, 26, 2, 3, 3 },
	{ lora, "optim: {kind: sgd, lr: 0.1, update: 2bw" IN_VAIN, 26, 4, 1, 1 },
};
enum { NROWS = sizeof rows / sizeof *rows };

/* Frozen parameters are not those that a joiner begins with. */
static void come_from_elsewhere(struct hd_worker *w)
{
	const struct hd_layout *layout = &w->task->layout;
	const uint64_t n = layout->held_elems - layout->elems;
	struct hd_diag diag = { "" };

	if (!n)
		return;
	hd_param_store_at(w->store, HD_VEC_PARAMS, layout->elems, n)[n / 2] += 0.5f;
	CHECK(hd_worker_rewind(w, &diag) == HD_OK, "%s", diag.text);
}

static void open_row(struct cluster *c, size_t i, uint32_t nmembers)
{
	open_cluster(c, rows[i].model, rows[i].batch, rows[i].vns, rows[i].optim, 50 + i);
	uint32_t least = HD_MAX_DELAY;
	for (uint32_t p = 0; p < c->task->layout.nparams; p++)
		if (!c->task->train.param[p].frozen && c->task->delays.of_param[p] < least)
			least = c->task->delays.of_param[p];
	assert_int_equal(c->task->delays.most, rows[i].most);
	assert_int_equal(least, rows[i].least);
	for (uint32_t m = 0; m < nmembers; m++)
		add_member(c, 1 + draw(2));
	prepare(c, plan_of(c));
	adopt(c);
	come_from_elsewhere(c->one);
	for (uint32_t m = 0; m < nmembers; m++)
		come_from_elsewhere(c->at[m].worker);
}

static void workers_read_the_versions_that_one_device_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		struct cluster c;
		open_row(&c, i, 2 + i % 2);
		for (uint32_t s = 0; s < 3 + rows[i].most; s++) {
			prepare(&c, plan_of(&c));
			step(&c, rows[i].optim);
			adopt(&c);
		}
		close_cluster(&c);
	}
}

/* What the step at hand reads of a bias becomes infinite, at all: the step is skipped, and forgets it. */
static void step_in_vain(struct cluster *c, const char *what)
{
	const struct hd_layout *layout = &c->task->layout;
	uint32_t p = 0;

	while (c->task->delays.of_param[p] != c->task->delays.most)
		p++;
	hd_param_store_at(c->one->store, HD_VEC_EARLIER, layout->at[p], 1)[0] = INFINITY;
	for (uint32_t m = 0; m < c->n; m++)
		hd_param_store_at(c->at[m].worker->store, HD_VEC_EARLIER, layout->at[p], 1)[0] = INFINITY;
	step(c, what);
	assert_true(c->want.skipped);
}

/* Before it is a member, it computes what the others compute. */
static void prove(const struct cluster *c, const struct learner *l)
{
	struct hd_hash bits[2];
	struct hd_diag diag = { "" };

	CHECK(hd_dist_probe(c->one, 1, &bits[0], &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_dist_probe(l->worker, 1, &bits[1], &diag) == HD_OK, "%s", diag.text);
	assert_true(hd_hash_same(bits[0], bits[1]));
}

/* The last step before it is a member changes no parameter, and what steps to come read moves on. */
static void a_joiner_has_what_steps_to_come_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		struct cluster c;
		struct learner l;
		open_row(&c, i, 1 + i % 2);
		for (uint32_t s = 0; s < rows[i].most; s++)
			step(&c, rows[i].optim);
		open_learner(&l, &c, 1 + i % 2);
		while (!learn(&c, &l, c.at[0].worker)) {
			step(&c, rows[i].optim);
			follow(&c, &l, c.at[0].worker);
		}
		step(&c, rows[i].optim);
		follow(&c, &l, c.at[0].worker);
		step_in_vain(&c, rows[i].optim);
		follow(&c, &l, c.at[0].worker);
		prove(&c, &l);
		join(&c, &l, 1 + i % 2, rows[i].optim);
		for (uint32_t s = 0; s < 1 + rows[i].most; s++)
			step(&c, rows[i].optim);
		close_cluster(&c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_read_the_versions_that_one_device_reads),
		cmocka_unit_test(a_joiner_has_what_steps_to_come_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
