#include "run/problem.h"

#include <unistd.h>

#include "graph/safetensors.h"
#include "engine/testing.h"

/* The file is read back and compared with what a worker really meets: the rows that its reader hands out,
 * the state it begins with. */

enum { STEPS = 4 };

static void read_back(struct hd_rig *rig, const char *path, struct hd_safetensors *file)
{
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	size_t len;

	CHECK(hd_file_read_all(&rig->fs, path, &rig->arena, 1 << 26, &bytes, &len, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_safetensors_read(file, &rig->arena, path, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static void save(struct hd_rig *rig, struct hd_safetensors *file)
{
	char path[] = "/tmp/hd_problem_XXXXXX";
	struct hd_diag diag = { "" };

	close(mkstemp(path));
	CHECK(hd_problem_write(&rig->fs, rig->task, hd_worker_state(rig->worker), STEPS, path,
		&diag) == HD_OK, "%s", diag.text);
	read_back(rig, path, file);
	unlink(path);
}

/* Rows of all virtual nodes of a step, through the reader that training uses. */
static void rows_are_those_of_training(const struct hd_rig *rig, const struct hd_safetensors *file)
{
	const struct hd_dataset *data = rig->task->data;
	struct hd_prefetch_spec spec = { .set = data, .sampler = &rig->task->sampler, .nvns = rig->job->nvns,
		.per_vn = rig->job->per_vn,
		.end_step = STEPS };
	struct hd_prefetch *prefetch = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_prefetch_create(&prefetch, &spec, &diag) == HD_OK, "%s", diag.text);
	for (uint64_t s = 0; s < STEPS; s++) {
		uint64_t before = 0, rows;
		for (uint32_t v = 0; v < rig->job->nvns; v++, before += rows) {
			const void *input[HD_MAX_FIELDS];
			CHECK(hd_prefetch_take(prefetch, s, v, input, &rows, &diag) == HD_OK, "%s",
				diag.text);
			for (uint32_t f = 0; f < data->nfields; f++) {
				char name[32];
				snprintf(name, sizeof name, "step%u.%s", (unsigned)s, data->field[f].name);
				const struct hd_st_tensor *t = hd_safetensors_find(file, name);
				uint64_t bytes = data->field[f].sample_bytes;
				CHECK(t && t->rank == data->field[f].rank + 1u &&
					t->dim[0] == hd_sampler_rows(&rig->task->sampler, s), "%s", name);
				CHECK(!memcmp((const uint8_t *)t->at + before * bytes, input[f],
					rows * bytes), "%s, virtual node %u", name, v);
			}
			hd_prefetch_done(prefetch, s, v);
		}
		CHECK(before == hd_sampler_rows(&rig->task->sampler, s), "step %u has %u rows", (unsigned)s,
			(unsigned)before);
	}
	hd_prefetch_destroy(prefetch);
}

static void parameters_are_those_it_begins_with(struct hd_rig *rig, const struct hd_safetensors *file)
{
	const struct hd_graph *g = &rig->task->train;

	for (uint32_t p = 0; p < g->nparams; p++) {
		const char *name = hd_graph_text_of(g, g->value[g->param[p].value].name);
		const struct hd_st_tensor *t = hd_safetensors_find(file, name);
		const struct hd_state_entry *e = hd_state_find(hd_worker_state(rig->worker), name);
		CHECK(t && t->len_bytes == e->len_bytes && !memcmp(t->at, e->at, e->len_bytes), "%s", name);
	}
}

static void a_file_holds_what_a_worker_meets(void **state)
{
	static const struct { const char *model, *more; uint32_t ntensors; } cases[] = {
		{ hd_rig_mlp, NULL, 6 + 2 * STEPS },
		{ hd_rig_lenet, NULL, 10 + 2 * STEPS },
		/* under both names, as load_state_dict(strict=True) wants it */
		{ hd_rig_gpt, NULL, 28 + 1 + 2 * STEPS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_safetensors file;
		struct hd_rig rig;
		/* 61 samples: the third step is short */
		hd_rig_open(&rig, cases[i].model, 26, 7, cases[i].more, 1);
		save(&rig, &file);
		CHECK(file.ntensors == cases[i].ntensors, "case %zu: %u tensors", i, file.ntensors);
		parameters_are_those_it_begins_with(&rig, &file);
		rows_are_those_of_training(&rig, &file);
		const char *job = NULL;
		for (uint32_t m = 0; m < file.nmeta; m++)
			job = strcmp(file.meta[m].key, "job") ? job : file.meta[m].value;
		CHECK(job && strstr(job, "weight_decay"), "no job in the metadata: %s", job ? job : "");
		hd_rig_close(&rig);
	}
}

static void batches_beyond_the_bound_are_refused_before_anything_is_written(void **state)
{
	struct hd_diag diag = { "" };
	struct hd_rig rig;

	(void)state;
	hd_rig_open(&rig, hd_rig_lenet, 26, 7, NULL, 1);
	assert_int_equal(hd_problem_write(&rig.fs, rig.task, hd_worker_state(rig.worker), 1 << 24,
		"/nowhere/file", &diag), HD_E_INVAL);
	CHECK(strstr(diag.text, "16777216 steps") && strstr(diag.text, "1024 MiB"), "%s", diag.text);
	hd_rig_close(&rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_holds_what_a_worker_meets),
		cmocka_unit_test(batches_beyond_the_bound_are_refused_before_anything_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
