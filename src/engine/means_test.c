#include "engine/testing.h"

/* optim.ema: means of parameters are one slot more, and forward passes can read them. That they move as
 * PyTorch's do is a case of habits_test.c. */

static const char ema[] = "optim: {kind: adamw, lr: 1e-2, ema: {decay: 0.75}, schedule: {warmup: 0}}";

static double loss_of(struct hd_rig *rig)
{
	struct hd_metrics m;
	struct hd_diag diag = { "" };
	const struct hd_forward_job job = { .split = 0, .count = rig->task->data->split[0].count };

	CHECK(hd_worker_forward(rig->worker, &job, &m, &diag) == HD_OK, "%s", diag.text);
	return hd_metrics_loss(&m);
}

static void exchange(struct hd_rig *rig)
{
	struct hd_diag diag = { "" };

	CHECK(hd_worker_exchange_means(rig->worker, &diag) == HD_OK, "%s", diag.text);
}

static void a_forward_pass_of_the_means_is_that_of_a_model_of_them(void **state)
{
	struct hd_rig rig, other;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, ema, 2);
	hd_rig_open(&other, hd_rig_mlp, 26, 13, NULL, 1);
	for (int s = 0; s < 5; s++)
		hd_rig_step(&rig);
	const struct hd_hash before = hd_worker_digest(rig.worker);
	const double own = loss_of(&rig);
	exchange(&rig);
	const double means = loss_of(&rig);
	exchange(&rig);
	assert_true(hd_hash_same(hd_worker_digest(rig.worker), before));
	assert_true(loss_of(&rig) == own && means != own);
	for (uint32_t t = 0; t < rig.task->wholes.n; t++) {
		const char *name = hd_whole_name(&rig.task->train, rig.task->wholes.param[t]);
		const struct hd_state_entry *e = hd_state_find(hd_worker_state(rig.worker), name),
			*mean = hd_state_mean(hd_worker_state(rig.worker), e);
		const uint64_t n = mean->len_bytes / sizeof(float);
		float *at = hd_arena_take(&rig.arena, n, sizeof *at);
		hd_state_get(mean, 0, n, at);
		hd_state_put(hd_state_find(hd_worker_state(other.worker), name), 0, n, at);
	}
	assert_true(loss_of(&other) == means);
	/* and the next step is the one that it would have been */
	struct hd_rig plain;
	hd_rig_open(&plain, hd_rig_mlp, 26, 13, ema, 1);
	for (int s = 0; s < 5; s++)
		hd_rig_step(&plain);
	assert_true(hd_hash_same(hd_rig_step(&plain).digest, hd_rig_step(&rig).digest));
	hd_rig_close(&plain);
	hd_rig_close(&other);
	hd_rig_close(&rig);
}

/* Until the first of them they are the initial parameters, then what the parameters were. */
static void means_begin_with_the_parameters(void **state)
{
	struct hd_rig rig;
	float mean[33], initial[33], third[33];

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, "optim: {kind: sgd, lr: 0.1, ema: {decay: 0.75, every: 3}}", 2);
	struct hd_state *s = hd_worker_state(rig.worker);
	const struct hd_state_entry *e = hd_state_find(s, "fc1.weight");
	hd_state_get(e, 0, 33, initial);
	for (int k = 0; k < 4; k++) {
		hd_state_get(hd_state_mean(s, e), 0, 33, mean);
		CHECK(!memcmp(mean, k < 3 ? initial : third, sizeof mean), "after %d steps", k);
		if (k == 3)
			break;
		hd_rig_step(&rig);
		hd_state_get(e, 0, 33, third);
	}
	assert_memory_not_equal(third, initial, sizeof third);
	hd_rig_step(&rig);
	hd_state_get(hd_state_mean(s, e), 0, 33, mean);
	assert_memory_equal(mean, third, sizeof mean);          /* it does not move before the sixth */
	hd_rig_close(&rig);
}

static void what_is_frozen_has_no_mean_of_its_own(void **state)
{
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, "model: {use: builtin:mlp, args: {hidden: [33, 17]}, freeze: [fc1.*]}\n"
		"data: {kind: synthetic, count: 61}\n", 26, 13, ema, 2);
	struct hd_state *s = hd_worker_state(rig.worker);
	assert_null(hd_state_mean(s, hd_state_find(s, "fc1.weight")));
	assert_non_null(hd_state_mean(s, hd_state_find(s, "fc2.weight")));
	hd_rig_step(&rig);
	hd_rig_step(&rig);
	const double own = loss_of(&rig);
	exchange(&rig);
	assert_true(loss_of(&rig) != own);
	exchange(&rig);
	assert_true(loss_of(&rig) == own);
	/* as a file of means has them */
	const void *frozen = hd_state_find(s, "fc1.weight")->at, *mean = hd_state_find(s,
		"fc2.weight.ema")->at;
	assert_int_equal(hd_state_use_means(s), 4);
	assert_ptr_equal(hd_state_find(s, "fc1.weight")->at, frozen);
	assert_ptr_equal(hd_state_find(s, "fc2.weight")->at, mean);
	hd_rig_close(&rig);
}

static void without_means_there_are_none_to_read(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_mlp, 26, 13, NULL, 1);
	assert_int_equal(hd_worker_exchange_means(rig.worker, &diag), HD_E_REFUSED);
	assert_non_null(strstr(diag.text, "optim.ema.decay"));
	assert_int_equal(hd_state_use_means(hd_worker_state(rig.worker)), 0);
	hd_rig_close(&rig);
}

static void means_move_every_so_many_updates(void **state)
{
	struct hd_step_scalars s = { .optim = { .kind = HD_OPTIM_SGD, .average = 0.5f, .average_every = 2 } };

	(void)state;
	const float want[] = { 0, 1, 0, 0.5f, 0, 0.5f };
	for (uint64_t t = 1; t <= 6; t++) {
		hd_optim_corrections(&s, t);
		assert_true(s.average == want[t - 1]);
	}
	s.optim.average_every = 0;
	hd_optim_corrections(&s, 4);
	assert_true(s.average == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forward_pass_of_the_means_is_that_of_a_model_of_them),
		cmocka_unit_test(means_begin_with_the_parameters),
		cmocka_unit_test(what_is_frozen_has_no_mean_of_its_own),
		cmocka_unit_test(without_means_there_are_none_to_read),
		cmocka_unit_test(means_move_every_so_many_updates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
