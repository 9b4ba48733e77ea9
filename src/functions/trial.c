#include "functions/trial.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "sys/signal.h"
#include "functions/dense.h"

#define LOOK_NS INT64_C(500000000)        /* between looks at a request to stop */
enum { X, W, DY, Y, DW, NTENSORS, TRIPS = 10 };

/* All of a trial. */
struct hd_fn_trying {
	struct hd_arena arena;
	struct hd_dense dense;
	struct hd_fn_work *work;
	void *(*here)[NTENSORS], *(*there)[NTENSORS];
	struct hd_fn_job *job;
	void (*waits)(const char *text);  /* of the spec */
};

static void draw(float *to, uint64_t n, uint64_t seed, uint32_t task, uint32_t tensor)
{
	uint64_t key = hd_philox_key(seed, HD_RNG_USER);

	for (uint64_t i = 0; i < n; i += 4) {
		const uint32_t counter[4] = { (uint32_t)(i / 4), task, tensor, 1 };
		struct hd_philox four = hd_philox(counter, key);
		for (uint64_t k = 0; k < 4 && i + k < n; k++)
			to[i + k] = 2.0f * hd_uniform(four.word[k]) - 1.0f;
	}
}

static enum hd_err make_work(struct hd_fn_trying *t, const struct hd_fn_trial_spec *spec,
	struct hd_clock *clock, struct hd_diag *diag)
{
	struct hd_text text;

	t->work = hd_arena_take(&t->arena, 1, sizeof *t->work);
	if (!t->work || strlen(spec->kernels) >= sizeof t->work->kernels)
		return hd_fail(diag, HD_E_INVAL, "kernels %s: avx512, avx2 and portable are known",
			spec->kernels);
	hd_text_init(&text, &t->arena);
	hd_text_addf(&text,
		"graph trial\ninput x f32 [*,%llu]\ninput w f32 [%llu,%llu]\ninput dy f32 [*,%llu]\n"
		"%%0 = matmul x w\n%%1 = act %%0 act=relu\n%%2 = matmul x dy ta=1\n"
		"output y %%1\noutput dw %%2\n",
		(unsigned long long)spec->in, (unsigned long long)spec->in, (unsigned long long)spec->out,
		(unsigned long long)spec->out);
	memcpy(t->work->kernels, spec->kernels, strlen(spec->kernels) + 1);
	t->work->rows = spec->rows;
	t->work->text = text.at;
	t->work->text_len = text.len;
	enum hd_err err = text.full ? hd_fail(diag, HD_E_NOMEM, "no memory for a task") :
		hd_dense_open(&t->dense, t->work, diag);
	if (!err)
		err = hd_dense_tensors(&t->dense, t->work, diag);
	return err ? err : hd_dense_proof(t->work, clock, INT64_MAX, &t->work->proof, diag);
}

static enum hd_err make_tensors(struct hd_fn_trying *t, const struct hd_fn_trial_spec *spec,
	struct hd_diag *diag)
{
	float *w = NULL;

	t->here = hd_arena_take(&t->arena, spec->ntasks, sizeof *t->here);
	t->there = hd_arena_take(&t->arena, spec->ntasks, sizeof *t->there);
	t->job = hd_arena_take(&t->arena, spec->ntasks, sizeof *t->job);
	bool good = t->here && t->there && t->job;
	for (uint32_t i = 0; i < spec->ntasks && good; i++)
		for (uint32_t k = 0; k < NTENSORS && good; k++) {
			uint64_t bytes = hd_fn_tensor_bytes(&t->work->tensor[k]);
			void *at = k == W && w ? w : hd_arena_take(&t->arena, bytes, 1);
			good = at != NULL;
			t->here[i][k] = t->there[i][k] = at;
			if (good && k == W)
				w = at;
			if (good && k < Y)
				draw(at, bytes / sizeof(float), spec->seed, k == W ? 0 : i, k);
			if (good && k >= Y)
				good = (t->there[i][k] = hd_arena_take(&t->arena, bytes, 1)) != NULL;
			t->job[i] = (struct hd_fn_job){ t->work, t->there[i], 0 };
		}
	if (!good)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u tasks", spec->ntasks);
	t->work->tensor[W].digest = hd_hash(w, hd_fn_tensor_bytes(&t->work->tensor[W]));
	return HD_OK;
}

static enum hd_err run_here(struct hd_fn_trying *t, struct hd_fn_owner *o, uint32_t task,
	struct hd_diag *diag)
{
	int64_t began_ns = hd_clock_now_ns(o->spec.clock);
	enum hd_err err = hd_dense_run(&t->dense, t->work, o->job[task].at, o->spec.clock, INT64_MAX, diag);

	if (!err)
		hd_fn_owner_ran(o, task, o->job[task].at, hd_clock_now_ns(o->spec.clock) - began_ns);
	return err;
}

static enum hd_err stopped(struct hd_diag *diag)
{
	enum hd_stop stop = hd_signal_stop();

	return stop ? hd_fail(diag, hd_stop_err(stop), "stopped by %s before all tasks were done",
		hd_signal_name(hd_signal_number())) : HD_OK;
}

static void say_wait(const struct hd_fn_trying *t, const struct hd_fn_owner *o, int64_t waited_ns)
{
	char text[HD_FN_MESSAGE + 120];

	snprintf(text, sizeof text, "no task was done for %.0f s, %u are left%s%s", (double)waited_ns * 1e-9,
		hd_fn_owner_left(o), o->last_error[0] ? "; the last function that did none says: " : "",
		o->last_error);
	if (t->waits)
		t->waits(text);
}

/* Until all are done, and all calls have ended. */
static enum hd_err finish(struct hd_fn_trying *t, struct hd_fn_owner *o, int64_t until_ns,
	struct hd_diag *diag)
{
	int64_t done_ns = hd_clock_now_ns(o->spec.clock), said_ns = done_ns;
	uint32_t left = hd_fn_owner_left(o);

	while (hd_fn_owner_left(o) || hd_fn_owner_is_calling(o)) {
		int64_t look_ns = hd_clock_now_ns(o->spec.clock) + LOOK_NS;
		uint32_t task = UINT32_MAX;
		enum hd_err err = stopped(diag);
		if (!err)
			err = hd_fn_owner_turn(o, look_ns < until_ns ? look_ns : until_ns, true, &task, diag);
		if (!err && task != UINT32_MAX)
			err = run_here(t, o, task, diag);
		if (err)
			return err;
		int64_t now_ns = hd_clock_now_ns(o->spec.clock);
		if (left != hd_fn_owner_left(o)) {
			left = hd_fn_owner_left(o);
			done_ns = said_ns = now_ns;
		}
		if (now_ns - said_ns >= HD_FN_WAIT_NS) {
			say_wait(t, o, now_ns - done_ns);
			said_ns = now_ns;
		}
		if (now_ns >= until_ns)
			return hd_fail(diag, HD_E_AGAIN, "%u tasks are not done in time%s%s",
				hd_fn_owner_left(o),
				o->last_error[0] ? "; a function says: " : "", o->last_error);
	}
	return HD_OK;
}

static bool is_equal(const struct hd_fn_trying *t, uint32_t task)
{
	for (uint32_t k = Y; k < NTENSORS; k++)
		if (memcmp(t->here[task][k], t->there[task][k], hd_fn_tensor_bytes(&t->work->tensor[k])) != 0)
			return false;
	return true;
}

static enum hd_err try_them(struct hd_fn_trying *t, struct hd_fn_owner *o,
	const struct hd_fn_trial_spec *spec,
	struct hd_fn_trial *trial, struct hd_diag *diag)
{
	struct hd_clock *clock = o->spec.clock;
	int64_t began_ns = hd_clock_now_ns(clock), until_ns = began_ns + spec->patience_ns;
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; i < spec->ntasks && !err; i++) {
		err = stopped(diag);
		if (!err)
			err = hd_dense_run(&t->dense, t->work, t->here[i], clock, INT64_MAX, diag);
	}
	trial->here_ns = hd_clock_now_ns(clock) - began_ns;
	began_ns = hd_clock_now_ns(clock);
	if (!err)
		err = hd_fn_owner_submit(o, t->job, spec->ntasks, diag);
	if (!err)
		err = finish(t, o, until_ns, diag);
	trial->there_ns = hd_clock_now_ns(clock) - began_ns;
	for (uint32_t i = 0; i < spec->ntasks && !err; i++)
		trial->equal += is_equal(t, i);
	for (int i = 0; i < TRIPS && !err; i++) {
		const uint64_t before = o->board.count.accepted;
		began_ns = hd_clock_now_ns(clock);
		err = hd_fn_owner_submit(o, t->job, 1, diag);
		if (!err)
			err = finish(t, o, until_ns, diag);
		int64_t took_ns = hd_clock_now_ns(clock) - began_ns;
		if (o->board.count.accepted > before && (!trial->trip_ns || took_ns < trial->trip_ns))
			trial->trip_ns = took_ns;
	}
	return err;
}

enum hd_err hd_fn_trial_run(struct hd_fn_owner *owner, const struct hd_fn_trial_spec *spec,
	struct hd_fn_trial *trial, struct hd_diag *diag)
{
	struct hd_fn_trying t = { .waits = spec->waits };

	*trial = (struct hd_fn_trial){ .equal = 0 };
	hd_arena_init(&t.arena, 0);
	enum hd_err err = make_work(&t, spec, owner->spec.clock, diag);
	if (!err)
		err = make_tensors(&t, spec, diag);
	if (!err)
		err = try_them(&t, owner, spec, trial, diag);
	hd_dense_close(&t.dense);
	hd_arena_finish(&t.arena);
	return err;
}
