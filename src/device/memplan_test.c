#include "device/memplan.h"

#include <string.h>

#include "base/philox.h"
#include "graph/op.h"
#include "tests/check.h"

enum { NODES = 24, ROOM_VALUES = 4 + 2 * NODES, LINE = 64, ROWS = 3 };

struct dice { uint64_t seed; uint32_t n; };

static uint32_t roll(struct dice *dice, uint32_t below)
{
	const uint32_t counter[4] = { dice->n++, 0, 0, 0 };

	return hd_philox(counter, dice->seed).word[0] % below;
}

/* Graphs by hand: the planner reads shapes, operands, phases and which ops are views, nothing else. */
struct case_graph {
	struct hd_graph graph;
	struct hd_value value[ROOM_VALUES];
	struct hd_node node[NODES];
	struct hd_output output[2];
	uint32_t order[NODES];
};

static void begin(struct case_graph *c)
{
	memset(c, 0, sizeof *c);
	c->graph.value = c->value;
	c->graph.node = c->node;
	c->graph.output = c->output;
}

static uint32_t add_value(struct case_graph *c, uint8_t kind, int64_t extent)
{
	c->value[c->graph.nvalues] = (struct hd_value){ .dim = { extent }, .rank = 1, .dtype = HD_F32,
		.kind = kind, .node = HD_NONE };
	return c->graph.nvalues++;
}

static uint32_t add_node(struct case_graph *c, uint16_t op, uint8_t phase, uint8_t nout, uint8_t nin,
	const uint32_t *in, int64_t extent)
{
	uint32_t i = c->graph.nnodes++, out = c->graph.nvalues;

	c->order[i] = i;
	c->node[i] = (struct hd_node){ .op = op, .nin = nin, .nout = nout, .phase = phase, .out = out,
		.of = HD_NONE };
	memcpy(c->node[i].in, in, nin * sizeof *in);
	for (uint8_t k = 0; k < nout; k++)
		c->value[add_value(c, HD_TEMP, extent + k)].node = i;
	return out;
}

static uint8_t phase_of(const struct case_graph *c, uint32_t value)
{
	return c->value[value].kind == HD_TEMP ? c->node[c->value[value].node].phase : HD_PHASE_F;
}

/* An operand that a node of `phase` may read: gradients of inputs never wait for those of weights. */
static uint32_t pick(struct case_graph *c, struct dice *dice, uint8_t phase)
{
	for (;;) {
		uint32_t back = roll(dice, 2) ? 6 : c->graph.nvalues;
		uint32_t v = c->graph.nvalues - 1 - roll(dice,
			back < c->graph.nvalues ? back : c->graph.nvalues);
		if (phase_of(c, v) <= phase)
			return v;
	}
}

static void make_random(struct case_graph *c, struct dice *dice)
{
	uint32_t nnodes = 2 + roll(dice, NODES - 1), nforward = 1 + roll(dice, nnodes);

	begin(c);
	(void)add_value(c, HD_INPUT, -5);
	(void)add_value(c, HD_PARAM, 40);
	for (uint32_t i = 0; i < nnodes; i++) {
		uint8_t phase = i < nforward ? HD_PHASE_F : (uint8_t)(HD_PHASE_I + roll(dice, 2));
		int64_t extent = roll(dice, 2) ? 1 + roll(dice, 90) : -1 - (int64_t)roll(dice, 30);
		uint32_t in[3] = { pick(c, dice, phase), pick(c, dice, phase), pick(c, dice, phase) };
		uint32_t kind = roll(dice, 6);
		if (kind == 0)
			(void)add_node(c, HD_OP_RESHAPE, phase, 1, 1, in, c->value[in[0]].dim[0]);
		else if (kind == 1)
			(void)add_node(c, HD_OP_LAYERNORM, phase, 2, 3, in, extent < 0 ? 1 : extent);
		else
			(void)add_node(c, HD_OP_ADD, phase, 1, 2, in, extent);
	}
	for (uint32_t i = 0; i < 2; i++)
		c->output[i] = (struct hd_output){ HD_NONE, c->node[roll(dice, nnodes)].out };
	c->graph.noutputs = 2;
}

static uint32_t shown(const struct case_graph *c, uint32_t v)
{
	while (c->value[v].kind == HD_TEMP && c->node[c->value[v].node].op == HD_OP_RESHAPE)
		v = c->node[c->value[v].node].in[0];
	return v;
}

static uint64_t lines_of(const struct case_graph *c, uint32_t v)
{
	int64_t extent = c->value[v].dim[0];

	return ((uint64_t)(extent < 0 ? -extent * ROWS : extent) * 4 + LINE - 1) / LINE;
}

enum { LINES = 4096 };

static bool holds(const struct case_graph *c, const struct hd_memplan *plan, const uint32_t *arena,
	uint32_t v)
{
	uint32_t root = shown(c, v);

	if (c->value[root].kind != HD_TEMP)
		return true;
	if (plan->at[v] != plan->at[root])
		return false;
	for (uint64_t i = 0; i < lines_of(c, root); i++)
		if (arena[plan->at[root] / LINE + i] != root + 1)
			return false;
	return true;
}

/* The oracle runs the graph on an arena of labels: which node wrote this line last? A node must find its
 * operands whole both before and after it wrote its results, and its results whole at its end. */
static bool survives(const struct case_graph *c, const struct hd_memplan *plan, const uint32_t *order)
{
	static uint32_t arena[LINES];

	memset(arena, 0, sizeof arena);
	for (uint32_t i = 0; i < c->graph.nnodes; i++) {
		const struct hd_node *node = &c->node[order[i]];
		bool good = true;
		for (int k = 0; k < node->nin; k++)
			good &= holds(c, plan, arena, node->in[k]);
		for (uint32_t k = 0; k < node->nout && node->op != HD_OP_RESHAPE; k++) {
			uint32_t v = node->out + k;
			uint64_t at = plan->at[v] / LINE;
			if (plan->at[v] % LINE || at + lines_of(c, v) > plan->len_bytes / LINE ||
				at + lines_of(c, v) > LINES)
				return false;
			for (uint64_t l = 0; l < lines_of(c, v); l++)
				arena[at + l] = v + 1;
		}
		for (int k = 0; k < node->nin; k++)
			good &= holds(c, plan, arena, node->in[k]);
		for (uint32_t k = 0; k < node->nout; k++)
			good &= holds(c, plan, arena, node->out + k);
		if (!good)
			return false;
	}
	for (uint32_t i = 0; i < c->graph.noutputs; i++)
		if (!holds(c, plan, arena, c->output[i].value))
			return false;
	return true;
}

static bool survives_both(const struct case_graph *c, const struct hd_memplan *plan)
{
	uint32_t split[NODES], n = 0;

	for (int phase = HD_PHASE_F; phase <= HD_PHASE_W; phase++)
		for (uint32_t i = 0; i < c->graph.nnodes; i++)
			if (c->node[i].phase == phase)
				split[n++] = i;
	return survives(c, plan, c->order) && survives(c, plan, split);
}

/* Bytes of every value on ROWS rows; good until the next call. */
static const uint64_t *bytes_of(const struct case_graph *c)
{
	static uint64_t bytes[ROOM_VALUES];

	for (uint32_t v = 0; v < c->graph.nvalues; v++)
		bytes[v] = hd_value_bytes(&c->graph.value[v], ROWS);
	return bytes;
}

static void plan_of(const struct case_graph *c, struct hd_memplan *plan, struct hd_arena *arena)
{
	struct hd_diag diag = { "" };

	hd_arena_init(arena, 0);
	CHECK(hd_memplan_make(plan, &c->graph, c->order, c->graph.nnodes, bytes_of(c), arena, &diag) == HD_OK,
		"%s", diag.text);
}

static void no_value_of_a_random_graph_is_overwritten_while_it_is_needed(void **state)
{
	static struct case_graph c;
	(void)state;

	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct dice dice = { seed, 0 };
		struct hd_memplan plan, again;
		struct hd_arena arena, second;
		struct hd_diag diag = { "" };

		make_random(&c, &dice);
		plan_of(&c, &plan, &arena);
		CHECK(survives_both(&c, &plan), "seed %llu", (unsigned long long)seed);
		CHECK(hd_memplan_verify(&plan, &c.graph, c.order, c.graph.nnodes, bytes_of(&c),
			&diag) == HD_OK, "seed %llu: %s",
			(unsigned long long)seed, diag.text);
		CHECK(plan.len_bytes >= plan.live_peak_bytes, "seed %llu", (unsigned long long)seed);
		plan_of(&c, &again, &second);
		assert_memory_equal(plan.at, again.at, c.graph.nvalues * sizeof *plan.at);
		hd_arena_finish(&arena);
		hd_arena_finish(&second);
	}
}

/* Moves one value (or one view alone) of a good plan and asks the verifier and the oracle. */
static void the_verifier_refuses_exactly_the_plans_that_lose_a_value(void **state)
{
	static struct case_graph c;
	uint32_t refused = 0, kept = 0;
	(void)state;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct dice dice = { seed, 0 };
		struct hd_memplan plan;
		struct hd_arena arena;

		make_random(&c, &dice);
		plan_of(&c, &plan, &arena);
		for (uint32_t v = 0; v < c.graph.nvalues; v++) {
			uint64_t good[ROOM_VALUES], len = plan.len_bytes;
			if (c.value[shown(&c, v)].kind != HD_TEMP)
				continue;
			memcpy(good, plan.at, c.graph.nvalues * sizeof *good);
			uint64_t to = roll(&dice, 2) ? good[2 + roll(&dice, c.graph.nvalues - 2)] :
				good[v] + LINE;
			if (to == UINT64_MAX)
				to = 0;
			for (uint32_t w = 0; w < c.graph.nvalues; w++)
				if (w == v || (shown(&c, v) == v && shown(&c, w) == v))
					plan.at[w] = to;
			bool fine = survives_both(&c, &plan);
			struct hd_diag diag = { "" };
			enum hd_err err = hd_memplan_verify(&plan, &c.graph, c.order, c.graph.nnodes,
				bytes_of(&c), &diag);
			/* a view without a reader may lie anywhere for the verifier */
			if (shown(&c, v) == v)
				CHECK((err == HD_OK) == fine, "seed %llu, value %u at %llu: %s",
					(unsigned long long)seed, v,
					(unsigned long long)to, diag.text);
			refused += err != HD_OK;
			kept += err == HD_OK;
			memcpy(plan.at, good, c.graph.nvalues * sizeof *good);
			plan.len_bytes = len;
		}
		hd_arena_finish(&arena);
	}
	CHECK(refused > 500 && kept > 50, "%u refused, %u kept: the mutants say nothing", refused, kept);
}

static void a_chain_needs_two_buffers(void **state)
{
	struct case_graph c;
	struct hd_memplan plan;
	struct hd_arena arena;
	(void)state;

	begin(&c);
	uint32_t v = add_value(&c, HD_INPUT, -16);
	for (int i = 0; i < 10; i++)
		v = add_node(&c, HD_OP_ACT, HD_PHASE_F, 1, 1, &v, -16);
	plan_of(&c, &plan, &arena);
	assert_int_equal(plan.len_bytes, 2 * 16 * 4 * ROWS);
	assert_int_equal(plan.live_peak_bytes, plan.len_bytes);
	assert_true(plan.at[0] == UINT64_MAX);
	hd_arena_finish(&arena);
}

/* In the order of the list `first` is dead when `later` is made; when all I run before all W,
 * `later` is waiting for its reader while `first` is written. */
static void weight_gradients_run_last_do_not_hit_what_waits_for_them(void **state)
{
	struct case_graph c;
	struct hd_memplan plan;
	struct hd_arena arena;
	(void)state;

	begin(&c);
	uint32_t x = add_value(&c, HD_INPUT, -16);
	uint32_t first = add_node(&c, HD_OP_ACT, HD_PHASE_W, 1, 1, &x, -16);
	uint32_t later = add_node(&c, HD_OP_ACT, HD_PHASE_I, 1, 1, &x, -16);
	uint32_t last = add_node(&c, HD_OP_ACT, HD_PHASE_W, 1, 1, &later, -16);
	plan_of(&c, &plan, &arena);
	assert_true(plan.at[first] != plan.at[later]);
	assert_true(plan.at[last] == plan.at[first]);
	hd_arena_finish(&arena);
}

static void an_order_that_reads_before_it_writes_is_refused(void **state)
{
	struct case_graph c;
	struct hd_memplan plan;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	(void)state;

	begin(&c);
	uint32_t x = add_value(&c, HD_INPUT, 16);
	uint32_t y = add_node(&c, HD_OP_ACT, HD_PHASE_F, 1, 1, &x, 16);
	(void)add_node(&c, HD_OP_ACT, HD_PHASE_F, 1, 1, &y, 16);
	hd_arena_init(&arena, 0);
	CHECK(hd_memplan_make(&plan, &c.graph, (uint32_t[]){ 1, 0 }, 2, bytes_of(&c), &arena,
		&diag) == HD_E_BUG, "%s", diag.text);
	assert_string_equal(diag.text,
		"node 1 (act) reads value 1 before it is made: the order of execution is wrong");
	hd_arena_finish(&arena);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_value_of_a_random_graph_is_overwritten_while_it_is_needed),
		cmocka_unit_test(the_verifier_refuses_exactly_the_plans_that_lose_a_value),
		cmocka_unit_test(a_chain_needs_two_buffers),
		cmocka_unit_test(weight_gradients_run_last_do_not_hit_what_waits_for_them),
		cmocka_unit_test(an_order_that_reads_before_it_writes_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
