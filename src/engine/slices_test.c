/* Tensors in slices are the tensors of the model to whoever names them: initial values, digests, checkpoints,
 * norms of tensors. The oracle is the same model in one shard, or the table read element by element. */
#include "sys/file_sim.h"
#include "checkpoint/ckpt.h"
#include "engine/testing.h"

#define GPT(shards, more) \
	"model: {use: builtin:gpt, shards: " shards more ", args: {layers: 2, width: 24, heads: 4, " \
	"context: 8, vocab: 50}}\ndata: {kind: synthetic, count: 61}\n"
#define LLAMA(shards) \
	"model: {use: builtin:llama, shards: " shards ", args: {layers: 1, width: 24, heads: 4, " \
	"context: 8, hidden: 30, vocab: 41}}\ndata: {kind: synthetic, count: 61}\n"
#define HALVES ", precision: bf16-storage"
#define FROZEN ", freeze: ['h.0.*']"
#define LORA ", lora: {rank: 2, targets: ['h.*.attn.*.weight', h.1.mlp.c_fc.weight]}"

static const struct { const char *one, *many; } models[] = {
	{ GPT("1", ""), GPT("4", "") }, { LLAMA("1"), LLAMA("4") }, { GPT("1", HALVES), GPT("2", HALVES) },
	{ GPT("1", FROZEN), GPT("4", FROZEN) }, { GPT("1", LORA), GPT("2", LORA) },
};
enum { NMODELS = sizeof models / sizeof models[0] };
static const char adamw[] = "optim: {kind: adamw, clip: 0.5}\n";

static void a_run_begins_with_the_bits_of_the_whole_model(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_rig one, many;
		hd_rig_open(&one, models[m].one, 8, 4, adamw, 1);
		hd_rig_open(&many, models[m].many, 8, 4, adamw, 1);
		assert_true(many.task->wholes.sliced && !one.task->wholes.sliced);
		CHECK(hd_hash_same(hd_worker_digest(one.worker), hd_worker_digest(many.worker)),
			"model %d: other initial values", m);
		hd_rig_close(&one);
		hd_rig_close(&many);
	}
}

/* Digests made on the way, by ranks and segments, are those of the table. */
static void a_step_reports_the_digest_of_the_table(void **state)
{
	(void)state;
	for (int m = 0; m < NMODELS; m++) {
		struct hd_rig rig;
		hd_rig_open(&rig, models[m].many, 14, 7, adamw, 1 + (uint32_t)m % 3);
		for (int i = 0; i < 2; i++) {
			const struct hd_step_record r = hd_rig_step(&rig);
			CHECK(hd_hash_same(r.digest, hd_worker_digest(rig.worker)), "model %d, step %d", m,
				i);
		}
		hd_rig_close(&rig);
	}
}

/* Every entry of the table, whatever memory it has, in the order of the model. */
static void same_tables(const struct hd_state *a, const struct hd_state *b, const char *what)
{
	assert_int_equal(a->nentries, b->nentries);
	for (uint32_t i = 0; i < a->nentries; i++) {
		const struct hd_state_entry *x = &a->entry[i], *y = &b->entry[i];
		const uint64_t size = hd_dtype_bytes((enum hd_dtype)x->dtype);
		assert_true(!strcmp(x->name, y->name) && x->len_bytes == y->len_bytes);
		for (uint64_t e = 0; e < x->len_bytes / size; e++) {
			uint8_t p[8], q[8];
			hd_state_get(x, e, 1, p);
			hd_state_get(y, e, 1, q);
			CHECK(!memcmp(p, q, size), "%s: %s[%llu]", what, x->name, (unsigned long long)e);
		}
	}
}

/* Written by a model in shards, read by one in none: files do not say how tensors are stored. */
static void checkpoints_have_the_order_of_the_model(void **state)
{
	struct hd_ckpt_info info = { .step = 3 };
	struct hd_diag diag = { "" };
	struct hd_rig four, one, again;
	struct hd_fs_sim sim;
	struct hd_state file;

	(void)state;
	hd_fs_sim_init(&sim);
	hd_rig_open(&four, GPT("4", ""), 14, 7, adamw, 2);
	hd_rig_open(&one, GPT("1", ""), 14, 7, adamw, 1);
	hd_rig_open(&again, GPT("2", ""), 14, 7, adamw, 1);
	for (int i = 0; i < 3; i++)
		(void)hd_rig_step(&four);
	CHECK(hd_ckpt_write(&sim.fs, "c", hd_worker_state(four.worker), &info, 1, true, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_ckpt_load(&sim.fs, info.folder, &one.arena, &file, &info, &diag) == HD_OK, "%s", diag.text);
	same_tables(hd_worker_state(four.worker), &file, "the file");
	CHECK(hd_ckpt_read(&sim.fs, info.folder, hd_worker_state(one.worker), &info, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_ckpt_read(&sim.fs, info.folder, hd_worker_state(again.worker), &info, &diag) == HD_OK, "%s",
		diag.text);
	same_tables(hd_worker_state(four.worker), hd_worker_state(one.worker), "in no shards");
	same_tables(hd_worker_state(four.worker), hd_worker_state(again.worker), "in two shards");
	hd_fs_sim_finish(&sim);
	hd_rig_close(&four);
	hd_rig_close(&one);
	hd_rig_close(&again);
}

/* LAMB's trust ratio is of the whole tensor. In one step gradients differ by the order of sums alone; a ratio
 * of slices would differ by their spread. */
static void norms_are_of_tensors(void **state)
{
	struct hd_rig one, four;
	double worst = 0;

	(void)state;
	hd_rig_open(&one, LLAMA("1"), 8, 4, "optim: {kind: lamb, lr: 1e-2, weight_decay: 0}\n", 1);
	hd_rig_open(&four, LLAMA("4"), 8, 4, "optim: {kind: lamb, lr: 1e-2, weight_decay: 0}\n", 1);
	(void)hd_rig_step(&one);
	(void)hd_rig_step(&four);
	for (uint32_t i = 0; i < hd_worker_state(one.worker)->nentries; i++) {
		const struct hd_state_entry *x = &hd_worker_state(one.worker)->entry[i],
			*y = &hd_worker_state(four.worker)->entry[i];
		double off = 0, most = 0;
		if (x->group != HD_STATE_MODEL)
			continue;
		for (uint64_t e = 0; e < x->len_bytes / sizeof(float); e++) {
			float p, q;
			hd_state_get(x, e, 1, &p);
			hd_state_get(y, e, 1, &q);
			off += ((double)p - (double)q) * ((double)p - (double)q);
			most += (double)p * (double)p;
		}
		worst = off > worst * most ? off / most : worst;
	}
	/* the step moves a tensor by 1e-2 of its norm; slices of its ratio by some percent of that */
	CHECK(worst < 1e-10, "a tensor is off by %g of its norm, squared", worst);
	hd_rig_close(&one);
	hd_rig_close(&four);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_begins_with_the_bits_of_the_whole_model),
		cmocka_unit_test(a_step_reports_the_digest_of_the_table),
		cmocka_unit_test(checkpoints_have_the_order_of_the_model),
		cmocka_unit_test(norms_are_of_tensors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
