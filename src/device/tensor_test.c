/* Programs that several devices run together, in one arena. The oracle knows the steps and where values lie,
 * and nothing of how they were found: devices begin and end nodes in a random order, as far as their steps
 * let them, and a node must find what it reads where it was put, from its beginning to its end. */
#include "graph/shard.h"
#include "graph/testing.h"
#include "graph/tensor_time.h"
#include "device/program.h"
#include "device/testing.h"

enum { MAX_T = 4, ROUNDS = 40 };

struct world {
	struct hd_subject s;
	struct hd_layout layout;
	struct hd_program_tensor tensor;
	uint32_t *root;                   /* [nvalues] the value whose bytes it shows */
	bool *intact;                     /* [nvalues] its bytes are its own */
	uint32_t *order;                  /* what has begun, in order */
};

static void open_world(struct world *w, uint32_t nshards, bool sequence, uint32_t t)
{
	static const struct hd_model_arg arg[] = { { "layers", "2" }, { "width", "16" }, { "heads", "4" },
		{ "context", "8" }, { "vocab", "12" }, { "dropout", "0.1" } };
	struct hd_diag diag = { "" };

	hd_subject_model(&w->s, "gpt", arg, 6, (struct hd_model_opts){ 0 });
	struct hd_graph *g = &w->s.graph;
	CHECK(w->s.err == HD_OK && hd_graph_shard(g, nshards, sequence, &diag) == HD_OK &&
		hd_graph_optimize(g, 2, &diag) == HD_OK && hd_graph_autodiff(g, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_layout_make(&w->layout, g, &w->s.arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_program_make_tensor(&w->tensor, g, &w->layout, &(uint64_t){ 2 }, 1, nshards, t,
		NULL, &w->s.arena, &diag) == HD_OK, "%s", diag.text);
	w->root = hd_arena_take(&w->s.arena, g->nvalues, sizeof *w->root);
	w->intact = hd_arena_take(&w->s.arena, g->nvalues, sizeof *w->intact);
	for (uint32_t v = 0; v < g->nvalues; v++)
		w->root[v] = v;
	for (uint32_t i = 0; i < g->nnodes; i++)
		if (hd_ops[g->node[i].op].class == HD_OP_VIEW)
			w->root[g->node[i].out] = w->root[g->node[i].in[0]];
}

static const struct hd_node *node_of(const struct world *w, uint32_t i) { return &w->s.graph.node[i]; }

static void check_there(const struct world *w, uint32_t i, uint32_t value, const char *when)
{
	const uint32_t v = w->root[value];

	CHECK(w->s.graph.value[v].kind != HD_TEMP || w->intact[v],
		"node %u (%s): value %u is not there at its %s",
		i, hd_ops[node_of(w, i)->op].name, value, when);
}

/* Its results take their bytes from whatever lies there. */
static void begin(struct world *w, uint32_t i)
{
	const struct hd_node *n = node_of(w, i);
	const struct hd_program *p = &w->tensor.whole;

	for (uint8_t k = 0; k < n->nin; k++)
		check_there(w, i, n->in[k], "beginning");
	for (uint32_t v = n->out; v < n->out + n->nout && hd_ops[n->op].class != HD_OP_VIEW; v++) {
		const uint64_t at = p->memory.at[v], end = at + hd_program_value_bytes(p, v);
		for (uint32_t o = 0; o < w->s.graph.nvalues; o++)
			if (w->intact[o] && p->memory.at[o] < end &&
			at < p->memory.at[o] + hd_program_value_bytes(p, o))
				w->intact[o] = false;
		w->intact[v] = true;
	}
}

static void end(struct world *w, uint32_t i)
{
	const struct hd_node *n = node_of(w, i);

	for (uint8_t k = 0; k < n->nin; k++)
		check_there(w, i, n->in[k], "end");
	for (uint32_t v = n->out; v < n->out + n->nout; v++)
		check_there(w, i, v, "end");
}

struct walker { uint32_t step, place; bool within; };

static bool may_begin(const struct world *w, enum hd_run_phase phase, const struct walker *at, uint32_t j,
	const uint32_t *done)
{
	const struct hd_tensor_step *s = &w->tensor.list[phase][j].step[at[j].step];
	bool may = true;

	for (uint32_t k = 0; k < w->tensor.t; k++)
		may &= at[j].place > s->from || s->after[k] <= done[k];
	return may;
}

/* Devices go on at random until none can. */
static void run(struct world *w, enum hd_run_phase phase, uint32_t *seed)
{
	struct walker at[MAX_T] = { 0 };
	uint32_t done[MAX_T] = { 0 }, n = 0, idle = 0;

	while (idle < 64 * w->tensor.t) {
		*seed = *seed * 1664525 + 1013904223;
		const uint32_t j = (*seed >> 16) % w->tensor.t;
		const struct hd_tensor_list *list = &w->tensor.list[phase][j];
		idle++;
		if (at[j].step == list->nsteps || (!at[j].within && !may_begin(w, phase, at, j, done)))
			continue;
		idle = 0;
		if (!at[j].within)
			begin(w, list->node[at[j].place]);
		else {
			end(w, list->node[at[j].place++]);
			n++;
			if (at[j].place == list->step[at[j].step].to)
				done[j] = list->step[at[j].step++].to;
		}
		at[j].within = !at[j].within;
	}
	CHECK(n == w->tensor.whole.norder[phase], "%u of %u nodes of phase %d ran", n,
		w->tensor.whole.norder[phase], phase);
}

static void whatever_device_is_ahead_values_lie_where_they_are_read(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (uint32_t t = 2; t <= MAX_T; t *= 2)
		for (int sequence = 0; sequence < 2; sequence++) {
			struct world w;
			open_world(&w, 4, sequence, t);
			for (int round = 0; round < ROUNDS; round++) {
				memset(w.intact, 0, w.s.graph.nvalues * sizeof *w.intact);
				run(&w, HD_RUN_F, &seed);
				run(&w, round % 2 ? HD_RUN_B : HD_RUN_I, &seed);
				if (round % 2 == 0)
					run(&w, HD_RUN_W, &seed);
				for (uint32_t o = 0; o < w.s.graph.noutputs; o++)
					CHECK(w.intact[w.root[w.s.graph.output[o].value]], "output %u", o);
			}
			hd_subject_finish(&w.s);
		}
}

/* Each node on one device, in its order; of one shard on the shard's device; memory near that of one
 * device. */
static void shards_are_shared_out_evenly(void **state)
{
	(void)state;
	for (uint32_t t = 2; t <= MAX_T; t *= 2) {
		struct world w, one;
		open_world(&w, 4, true, t);
		open_world(&one, 4, true, 1);
		assert_int_equal(one.tensor.part[0].norder[HD_RUN_F], w.tensor.whole.norder[HD_RUN_F]);
		for (int phase = HD_RUN_F; phase <= HD_RUN_W; phase++) {
			uint32_t n = 0;
			for (uint32_t j = 0; j < t; j++) {
				const struct hd_tensor_list *list = &w.tensor.list[phase][j];
				n += list->n;
				assert_int_equal(w.tensor.part[j].norder[phase], list->n);
				for (uint32_t i = 0; i < list->n; i++) {
					const struct hd_node *node = node_of(&w, list->node[i]);
					assert_true(i == 0 || list->node[i] > list->node[i - 1]);
					assert_true(w.tensor.part[j].runs[list->node[i]]);
					if (node->shard && hd_ops[node->op].class != HD_OP_VIEW)
						assert_int_equal((node->shard - 1u) * t / 4, j);
				}
			}
			assert_int_equal(n, w.tensor.whole.norder[phase]);
		}
		CHECK(w.tensor.whole.memory.len_bytes < one.tensor.whole.memory.len_bytes * 3 / 2,
			"%u devices take %llu bytes, one %llu", t,
			(unsigned long long)w.tensor.whole.memory.len_bytes,
			(unsigned long long)one.tensor.whole.memory.len_bytes);
		hd_subject_finish(&w.s);
		hd_subject_finish(&one.s);
	}
}

/* Steps of a list in which a node takes time. */
static uint32_t sleeps_of(const struct hd_tensor_list *list, const double *ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list->nsteps; i++) {
		double sum = 0;
		for (uint32_t k = list->step[i].from; k < list->step[i].to; k++)
			sum += ns[list->node[k]];
		n += sum > 0;
	}
	return n;
}

/* All of a node's time on one device; none twice; less than one after the other. */
static void devices_save_time(void **state)
{
	struct hd_diag diag = { "" };

	(void)state;
	for (uint32_t t = 2; t <= MAX_T; t *= 2) {
		struct world w;
		double took, slow, late, sum = 0, least = 0, latest = 0;
		uint32_t nsleeps = 0;
		open_world(&w, 4, true, t);
		double *ns = hd_arena_take(&w.s.arena, w.s.graph.nnodes, sizeof *ns);
		for (uint32_t i = 0; i < w.s.graph.nnodes; i++)
			ns[i] = hd_ops[node_of(&w, i)->op].class == HD_OP_VIEW ? 0 : 100;
		for (uint32_t j = 0; j < t; j++) {
			const struct hd_tensor_list *list = &w.tensor.list[HD_RUN_F][j];
			double own = 0;
			for (uint32_t i = 0; i < list->n; i++)
				own += ns[list->node[i]];
			sum += own;
			least = own > least ? own : least;
			const uint32_t n = sleeps_of(list, ns);
			nsleeps += n;
			latest = own + 1000.0 * n > latest ? own + 1000.0 * n : latest;
		}
		const struct hd_tensor_list *lists = w.tensor.list[HD_RUN_F];
		assert_int_equal(hd_tensor_time(&took, lists, t, ns, (struct hd_tensor_wakes){ 0, 0 }, NULL,
			&w.s.arena, &diag), HD_OK);
		assert_int_equal(hd_tensor_time(&slow, lists, t, ns, (struct hd_tensor_wakes){ 50, 0 }, NULL,
			&w.s.arena, &diag), HD_OK);
		assert_int_equal(hd_tensor_time(&late, lists, t, ns, (struct hd_tensor_wakes){ 0, 1000 },
			NULL, &w.s.arena, &diag), HD_OK);
		CHECK(late >= latest && late <= took + 1000.0 * nsleeps, "%u devices: %g, late %g, %g of one",
			t, took, late, latest);
		CHECK(took >= least && took < sum && slow >= took,
			"%u devices: %g, with hops %g; %g in all, %g of one",
			t, took, slow, sum, least);
		hd_subject_finish(&w.s);
	}
}

static void a_number_that_does_not_divide_the_shards_is_refused(void **state)
{
	struct hd_diag diag = { "" };
	uint8_t device[1];
	struct hd_graph none = { .nnodes = 0 };

	(void)state;
	assert_int_equal(hd_tensor_place(device, &none, 4, 3, &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "3 devices share the ops of a rank, and the model is in 4 shards"), "%s",
		diag.text);
	assert_int_equal(hd_tensor_place(device, &none, 4, 0, &diag), HD_E_INVAL);
	assert_int_equal(hd_tensor_place(device, &none, 1024, HD_MAX_TENSOR + 1, &diag), HD_E_INVAL);
	assert_int_equal(hd_tensor_place(device, &none, 1024, HD_MAX_TENSOR, &diag), HD_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_device_is_ahead_values_lie_where_they_are_read),
		cmocka_unit_test(shards_are_shared_out_evenly),
		cmocka_unit_test(devices_save_time),
		cmocka_unit_test(a_number_that_does_not_divide_the_shards_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
