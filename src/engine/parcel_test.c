/* Ranks whose devices lie on several workers: groups. The oracle is one device with the whole model; bits are
 * compared, under the simulated wire of testing_net.h, which delivers in any order and fences anywhere. */
#include "engine/parcel.h"

#include "engine/post.h"
#include "engine/testing_net.h"
#include "engine/testing_stages.h"

#define GPT(shards, more) \
	"model: {use: builtin:gpt, shards: " shards more ", " \
	"args: {layers: 2, width: 16, heads: 4, context: 8, dropout: 0.1}}\n" \
	"data: {kind: synthetic, count: 61}\n"
#define ALONG ", sequence_shards: true"
#define MLP(shards) \
	"model: {use: builtin:mlp, args: {hidden: [32, 16]}, shards: " shards "}\n" \
	"data: {kind: synthetic, count: 61}\n"

/* p v d keeps t; one set for each number of groups */
static const struct hd_rig_kind of_two[] = {
	{ "1f1b", 1, 1, 1, 0, 2 }, { "1f1b", 1, 1, 2, 0, 2 }, { "1f1b", 2, 1, 1, 0, 2 },
	{ "1f1b", 1, 1, 1, 0, 4 }, { "1f1b", 2, 1, 1, 0, 4 }, { "1f1b", 1, 1, 2, 0, 4 },
};
static const struct hd_rig_kind orders[] = {
	{ "zb-h1", 2, 1, 1, 0, 2 }, { "zb-v", 2, 2, 1, 0, 2 }, { "gpipe", 2, 1, 1, HD_KEEPS_INPUT, 2 },
	{ "gpipe", 2, 1, 1, HD_KEEPS_AWAY, 2 }, { "interleaved", 2, 2, 1, HD_KEEPS_INPUT, 2 },
};
static const struct hd_rig_kind of_four[] = { { "1f1b", 1, 1, 1, 0, 4 }, { "zb-h1", 2, 1, 1, 0, 4 } };
enum { NTWO = 6, NORDERS = 5, NFOUR = 2 };

/* ---- one worker with all groups ---- */

static void groups_of_one_worker_have_the_bits_of_one_device(void **state)
{
	(void)state;
	hd_rig_groups = 2;
	hd_rig_compare(GPT("2", ""), 13, 7, "optim: {kind: adamw, clip: 0.5}\n", of_two, 3);
	hd_rig_compare(GPT("4", ALONG), 16, 8, "optim: {kind: lamb}\n", of_two, NTWO);
	hd_rig_compare(GPT("2", ""), 16, 8, NULL, orders, NORDERS);
	hd_rig_groups = 4;
	hd_rig_compare(GPT("4", ALONG), 13, 7, NULL, of_four, NFOUR);
	hd_rig_compare(MLP("4"), 26, 13, "optim: {kind: sgd, momentum: 0.9}\n", of_four, NFOUR);
}

/* ---- several workers ---- */

static void open_net(struct net *net, const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kind, uint32_t each)
{
	struct hd_diag diag = { "" };

	memset(net, 0, sizeof *net);
	hd_rig_open(&net->one, model, batch, vns, more, 1);
	net->nbuckets = hd_layout_nbuckets(&net->one.task->layout);
	CHECK(hd_rig_staged(net->one.worker, net->one.task, kind, &net->one.arena, &net->plan,
		&diag) == HD_OK,
		"%s: %s", kind->name, diag.text);
	add_workers(net, net->plan.nranks, each, kind->name);
}

static void compare(const char *model, uint32_t batch, uint32_t vns, const char *more,
	const struct hd_rig_kind *kinds, size_t n, uint32_t fences)
{
	struct net *net = malloc(sizeof *net);
	uint32_t stale = 0, nets = 0;

	assert_non_null(net);
	for (size_t k = 0; k < n; k++)
		for (uint32_t each = 1; each <= 2; each++) {
			const uint32_t nranks = kinds[k].p * kinds[k].d * hd_rig_groups;
			char what[96];
			if (nranks > MOST * each || nranks == each)
				continue;
			snprintf(what, sizeof what, "%s p %u v %u d %u t %u groups %u%s, %u a worker",
				kinds[k].name, kinds[k].p, kinds[k].v, kinds[k].d, kinds[k].t, hd_rig_groups,
				hd_rig_keeps[kinds[k].keeps], each);
			open_net(net, model, batch, vns, more, &kinds[k], each);
			for (int i = 0; i < STEPS; i++) {
				net->fence_after = fences ? 1 + draw(fences) : 0;
				step(net, what);
			}
			stale += net->stale;
			nets++;
			close_net(net);
		}
	assert_true(!fences || stale > nets);
	free(net);
}

static void groups_of_several_workers_have_the_bits_of_one_device(void **state)
{
	(void)state;
	seed = 1;
	hd_rig_groups = 2;
	compare(GPT("2", ""), 13, 7, "optim: {kind: adamw, clip: 0.5}\n", of_two, 3, 0);
	compare(GPT("4", ALONG), 16, 8, NULL, of_two, NTWO, 0);
	compare(GPT("2", ""), 16, 8, NULL, orders, NORDERS, 0);
	hd_rig_groups = 4;
	compare(GPT("4", ALONG), 13, 7, NULL, of_four, NFOUR, 0);
}

/* 61 samples in batches of 26: the third step has 9 rows, most virtual nodes have none. */
static void ragged_and_empty_virtual_nodes(void **state)
{
	(void)state;
	seed = 2;
	hd_rig_groups = 2;
	compare(GPT("2", ALONG), 26, 13, NULL, of_two, 3, 0);
	hd_rig_groups = 4;
	compare(MLP("4"), 26, 13, NULL, of_four, NFOUR, 0);
}

static void a_fenced_step_ends_and_is_run_again(void **state)
{
	(void)state;
	seed = 3;
	hd_rig_groups = 2;
	compare(GPT("4", ""), 13, 7, NULL, of_two, NTWO, 40);
	compare(GPT("2", ""), 16, 8, NULL, orders, NORDERS, 40);
	hd_rig_groups = 4;
	compare(MLP("4"), 26, 13, NULL, of_four, 1, 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_one_worker_have_the_bits_of_one_device),
		cmocka_unit_test(groups_of_several_workers_have_the_bits_of_one_device),
		cmocka_unit_test(ragged_and_empty_virtual_nodes),
		cmocka_unit_test(a_fenced_step_ends_and_is_run_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
