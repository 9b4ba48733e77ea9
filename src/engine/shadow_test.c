#include "engine/shadow.h"

#include "engine/testing_stages.h"

/* Lists with shadows of stages, in one process: the step has the bits of one device, each forward of a shadow
 * those of its owner's, and owner and shadow are equal after every commit. */

static const char net[] =
	"model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 3, 5], classes: 3}}\n"
	"data: {kind: synthetic, count: 30}\n";
/* its table is read by the first stage and by the last */
static const char tied[] =
	"model: {use: builtin:gpt, args: {layers: 2, width: 4, heads: 1, context: 2, vocab: 8, "
	"dropout: 0.1}}\n"
	"data: {kind: synthetic, count: 30}\n";

static const struct hd_rig_kind kinds[] = {
	{ "gpipe", 2, 1, 1, HD_KEEPS_ALL, 1 }, { "gpipe", 4, 1, 1, HD_KEEPS_ALL, 1 },
	{ "1f1b", 3, 1, 1, HD_KEEPS_ALL, 1 }, { "1f1b", 4, 1, 1, HD_KEEPS_ALL, 1 },
	{ "1f1b", 2, 1, 2, HD_KEEPS_ALL, 1 }, { "zb-h1", 3, 1, 1, HD_KEEPS_ALL, 1 },
	{ "zb-h1", 2, 1, 1, HD_KEEPS_ALL, 1 }, { "gpipe", 3, 1, 2, HD_KEEPS_ALL, 1 },
	{ "1f1b", 3, 1, 2, HD_KEEPS_ALL, 1 }, { "zb-h1", 4, 1, 2, HD_KEEPS_ALL, 1 },
	{ "1f1b", 3, 1, 1, HD_KEEPS_INPUT, 1 }, { "gpipe", 3, 1, 1, HD_KEEPS_AWAY, 1 },
};
enum { NKINDS = sizeof kinds / sizeof *kinds, STAGES = 4 };

static void open_shadowed(struct hd_rig *rig, const char *model, uint32_t batch, uint32_t vns,
	const char *more, const struct hd_rig_kind *k, enum hd_redundancy mode)
{
	struct hd_diag diag = { "" };

	hd_rig_open(rig, model, batch, vns, more, k->p * k->d);
	CHECK(hd_rig_staged(rig->worker, rig->task, k, &rig->arena, &rig->plan, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_rig_shadowed(&rig->plan, mode, &rig->arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_worker_adopt(rig->worker, &rig->plan, &diag) == HD_OK, "%s p %u d %u %s: %s", k->name, k->p,
		k->d, hd_redundancy_names[mode], diag.text);
}

static struct hd_pipe *pipe_of(const struct hd_rig *rig) { return hd_worker_work(rig->worker)->pipe; }

/* ---- what forwards leave */

static struct hd_hash left[2][STAGES][HD_RIG_VNS];

static void look(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind)
{
	const struct hd_pipe_stage *stage = &rank->pipe->stage[ins->stage];
	const struct hd_graph *graph = &stage->cut->graph;
	struct hd_hasher hasher;

	hd_hasher_init(&hasher);
	for (uint32_t i = 0; bind->rows && ins->stage + 1u < rank->pipe->nstages &&
		i < rank->pipe->stage[ins->stage + 1].act.n; i++) {
		const uint32_t out = stage->cut->act_out[i];
		hd_hasher_add(&hasher, hd_program_value(&stage->tensor.whole, bind, out),
			hd_value_bytes(&graph->value[out], bind->rows));
	}
	if (bind->rows && stage->out.loss != HD_NONE)
		hd_hasher_add(&hasher, hd_program_value(&stage->tensor.whole, bind, stage->out.loss),
			sizeof(double));
	left[!!(ins->flags & HD_INS_SHADOW)][ins->stage][ins->vn] = hd_hasher_end(&hasher);
}

static void check_forwards(const struct hd_rig *rig, enum hd_redundancy mode, const char *what)
{
	const struct hd_hash none = { 0 };

	for (uint32_t s = 0; s < rig->plan.nstages; s++)
		for (uint32_t v = 0; v < rig->plan.nvns; v++)
			CHECK(hd_hash_same(left[1][s][v], mode == HD_REDUNDANCY_LAZY ? none : left[0][s][v]),
				"%s: the shadow's forward of %u.%u leaves something else", what, s, v);
}

/* ---- owners and shadows */

static void check_states(const struct hd_rig *rig, const char *what)
{
	const struct hd_pipe *pipe = pipe_of(rig);
	const struct hd_layout *layout = &rig->task->layout;
	const struct hd_param_store *own = rig->worker->store;
	uint32_t nparams = 0;

	assert_int_equal(pipe->nshadows, rig->plan.nranks);
	for (uint32_t i = 0; i < pipe->nshadows; i++) {
		const struct hd_shadow *s = &pipe->shadow[i];
		CHECK(s->ncopies == 1, "%s: the shadow of stage %u was copied %llu times", what, s->stage,
			(unsigned long long)s->ncopies);
		nparams += s->nparams;
		for (uint32_t k = 0; k < s->nparams; k++)
			for (uint32_t v = HD_VEC_PARAMS; v <= hd_param_store_nslots(own); v++) {
				const uint64_t at = layout->at[s->param[k]], len = layout->len[s->param[k]];
				CHECK(memcmp(hd_param_store_at(own, (enum hd_vector)v, at, len),
					hd_param_store_at(s->store, (enum hd_vector)v, at, len),
					len * sizeof(float)) == 0,
					"%s: parameter %u of stage %u, vector %u: owner and shadow differ",
					what, s->param[k], s->stage, v);
			}
	}
	/* a tied one is read twice */
	assert_true(nparams >= rig->plan.nranks / rig->plan.nstages * layout->nparams);
}

/* What a shadow's backward makes is what its owner's makes. */
static void check_gradients(const struct hd_rig *rig, const char *what)
{
	const struct hd_pipe *pipe = pipe_of(rig);

	for (uint32_t s = 1; s < pipe->nstages; s++)
		for (uint32_t v = 0; v < pipe->nvns; v++) {
			const struct hd_cell *own = hd_cell_of(pipe, s, v),
				*shadow = hd_cell_of(pipe, pipe->nstages + s, v);
			if (own->kept[HD_MAIL_GRAD] && pipe->rows[v].rows == rig->job->per_vn)
				CHECK(shadow->kept[HD_MAIL_GRAD] && memcmp(own->kept[HD_MAIL_GRAD],
					shadow->kept[HD_MAIL_GRAD], pipe->stage[s - 1].grad.bytes) == 0,
					"%s: the shadow's gradient of %u.%u is another", what, s, v);
		}
}

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *k, enum hd_redundancy mode, const struct hd_rig_said *one)
{
	struct hd_rig_said many = { 0 };
	struct hd_rig rig;
	char what[160];

	snprintf(what, sizeof what, "%.30s %.30s: %s p %u d %u %s", model + 8, more ? more : "", k->name,
		k->p, k->d, hd_redundancy_names[mode]);
	open_shadowed(&rig, model, batch, vns, more, k, mode);
	pipe_of(&rig)->watch = look;
	for (int i = 0; i < HD_RIG_STEPS; i++) {
		memset(left, 0, sizeof left);
		struct hd_step_record r = hd_rig_step(&rig);
		many.digest[i] = r.digest;
		many.gnorm[i] = r.gnorm;
		memcpy(many.leaf[i], rig.worker->step->leaf, rig.job->nvns * sizeof **many.leaf);
		check_forwards(&rig, mode, what);
		check_states(&rig, what);
		if (mode == HD_REDUNDANCY_FULL)
			check_gradients(&rig, what);
	}
	CHECK(memcmp(one, &many, sizeof many) == 0, "%s: other bits", what);
	hd_rig_close(&rig);
}

static void compare_all(const char *model, uint32_t batch, uint32_t vns, const char *more, size_t nkinds)
{
	struct hd_rig_said one;
	struct hd_rig rig;

	hd_rig_open(&rig, model, batch, vns, more, 1);
	hd_rig_steps(&rig, &one);
	hd_rig_close(&rig);
	for (size_t i = 0; i < nkinds; i++)
		for (int mode = HD_REDUNDANCY_LAZY; mode < HD_NREDUNDANCIES; mode++)
			compare(model, batch, vns, more, &kinds[i], (enum hd_redundancy)mode, &one);
}

static void shadows_are_their_owners_after_every_step(void **state)
{
	(void)state;
	compare_all(net, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", NKINDS);
	compare_all(tied, 16, 8, "optim: {kind: adamw, clip: 0.5}\n", NKINDS);
}

static void of_every_optimizer(void **state)
{
	(void)state;
	compare_all(net, 16, 8, "optim: {kind: sgd}\n", 4);
	compare_all(net, 16, 8, "optim: {kind: momentum, lr: 0.05, clip: 0.1}\n", 4);
	compare_all(net, 16, 8, "optim: {kind: adam, ema: {decay: 0.9}}\n", 4);
	compare_all(tied, 16, 8, "optim: {kind: lamb, no_decay: norms-and-biases}\n", 4);
	compare_all(net, 16, 8, "optim: {kind: lion}\n", 4);
}

/* 14 rows of 30 on 4 virtual nodes: in the third step two have none. */
static void of_steps_with_empty_virtual_nodes(void **state)
{
	(void)state;
	compare_all(net, 14, 4, "optim: {kind: momentum, lr: 0.05}\n", 4);
	compare_all(tied, 13, 13, NULL, 4);
}

static void of_norms_with_running_statistics(void **state)
{
	(void)state;
	compare_all(hd_rig_bn(), 16, 8, NULL, 3);
}

/* Forwards of a shadow that are neither gone back over nor moved away. */
static uint32_t most_at_once(const struct hd_ilist *list)
{
	uint32_t now = 0, most = 0;

	for (uint32_t i = 0; i < list->len; i++) {
		const struct hd_ins *ins = &list->at[i];
		if (!(ins->flags & HD_INS_SHADOW))
			continue;
		now += ins->op == HD_INS_F;
		most = now > most ? now : most;
		now -= ins->op == HD_INS_B || ins->op == HD_INS_OFF;
	}
	return most;
}

/* Kept sends and mail of shadows by virtual node; of activations that leave for the file one is here. */
static void a_seat_has_what_shadows_need_and_no_more(void **state)
{
	static const struct { enum hd_redundancy mode; uint32_t away, mail, grads; } rows[] = {
		{ HD_REDUNDANCY_EAGER, 8, 0, 0 }, { HD_REDUNDANCY_FULL, 0, 8, 8 },
	};
	const struct hd_rig_kind k = { "gpipe", 3, 1, 1, HD_KEEPS_ALL, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct hd_rig rig, bare;
		hd_rig_open_staged(&bare, net, 16, 8, NULL, &k);
		open_shadowed(&rig, net, 16, 8, NULL, &k, rows[i].mode);
		struct hd_pipe *pipe = pipe_of(&rig);
		uint64_t more = 0;
		for (uint32_t n = 0; n < pipe->nseats; n++) {
			const struct hd_seat *s = &pipe->seat[n];
			const bool last = s->stage == 2;
			for (int kind = 0; kind < HD_MAILS; kind++)
				more += s->kept[kind].cap * s->kept[kind].bytes +
					(s->shadow ? s->mail[kind].cap * s->mail[kind].bytes : 0);
			more += s->shadow ? s->arena.cap * s->arena.bytes : 0;
			CHECK(s->kept[HD_MAIL_ACT].cap == (s->shadow || last ? 0 : 8) &&
				s->kept[HD_MAIL_GRAD].cap == (s->stage == 0 ? 0 : s->shadow ? rows[i].grads :
				8), "row %zu, seat %u: %u and %u are kept", i, n, s->kept[HD_MAIL_ACT].cap,
				s->kept[HD_MAIL_GRAD].cap);
			CHECK(!s->shadow || (s->arena.cap == most_at_once(&rig.plan.list[s->rank]) &&
				s->away.cap == rows[i].away &&
				s->mail[HD_MAIL_GRAD].cap == (last ? 0 : rows[i].mail)),
				"row %zu, seat %u: %u arenas, %u away, %u gradients", i, n, s->arena.cap,
				s->away.cap, s->mail[HD_MAIL_GRAD].cap);
		}
		/* each parameter once, with two slots and its gradient */
		more += rig.task->layout.params_elems * 4 * sizeof(float);
		for (uint32_t d = 0; d < 3; d++)
			more += hd_pipe_bytes(pipe_of(&bare), d) - hd_pipe_bytes(pipe, d);
		CHECK(more == 0, "row %zu: %lld bytes are not counted", i, (long long)more);
		hd_rig_close(&rig);
		hd_rig_close(&bare);
	}
}

/* Shadows begin as copies, and become ones again when the state comes from outside. */
static void a_shadow_is_copied_after_the_state_was_replaced(void **state)
{
	struct hd_arena arena;
	struct hd_rig_bytes bytes;
	struct hd_rig rig;

	(void)state;
	hd_arena_init(&arena, 0);
	open_shadowed(&rig, net, 16, 8, NULL, &kinds[3], HD_REDUNDANCY_EAGER);
	hd_rig_copy(&rig, &bytes, &arena);
	struct hd_step_record a = hd_rig_step(&rig);
	hd_rig_paste(&rig, &bytes, HD_NONE);
	memset(left, 0, sizeof left);
	pipe_of(&rig)->watch = look;
	struct hd_step_record b = hd_rig_step(&rig);
	assert_true(hd_hash_same(a.digest, b.digest));
	check_forwards(&rig, HD_REDUNDANCY_EAGER, "again");
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(pipe_of(&rig)->shadow[i].ncopies, 2);
	hd_rig_close(&rig);
	hd_arena_finish(&arena);
}

static void what_shadows_cannot_follow_is_refused(void **state)
{
	const struct hd_rig_kind k = { "gpipe", 2, 1, 1, HD_KEEPS_ALL, 1 };
	struct hd_diag diag = { "" };
	struct hd_plan plan;
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, net, 16, 8, "optim: {update: 2bw}\n", 2);
	CHECK(hd_rig_staged(rig.worker, rig.task, &k, &rig.arena, &plan, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_rig_shadowed(&plan, HD_REDUNDANCY_LAZY, &rig.arena, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_worker_adopt(rig.worker, &plan, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "optim.update: flush"), "%s", diag.text);
	hd_rig_close(&rig);
	diag.text[0] = '\0';
	hd_rig_open(&rig, "model: {use: builtin:mlp, args: {input: [1, 2, 2], hidden: [4, 4], classes: 3}, "
		"shards: 2}\ndata: {kind: synthetic, count: 30}\n", 16, 8, NULL, 4);
	CHECK(hd_rig_staged(rig.worker, rig.task, &k, &rig.arena, &plan, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_rig_shadowed(&plan, HD_REDUNDANCY_LAZY, &rig.arena, &diag) == HD_OK, "%s", diag.text);
	const struct hd_plan_job job = hd_worker_plan_job(rig.worker);
	CHECK(hd_plan_widen(&plan, &job, 2, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_worker_adopt(rig.worker, &plan, &diag), HD_E_REFUSED);
	CHECK(strstr(diag.text, "2 devices share"), "%s", diag.text);
	hd_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seat_has_what_shadows_need_and_no_more),
		cmocka_unit_test(a_shadow_is_copied_after_the_state_was_replaced),
		cmocka_unit_test(what_shadows_cannot_follow_is_refused),
		cmocka_unit_test(shadows_are_their_owners_after_every_step),
		cmocka_unit_test(of_every_optimizer),
		cmocka_unit_test(of_steps_with_empty_virtual_nodes),
		cmocka_unit_test(of_norms_with_running_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
