#include <math.h>

#include "graph/safetensors.h"
#include "engine/testing.h"

/* What people do with PyTorch's optimizers, as tests/torch/habits.py wrote it down: rates, losses, parameters
 * after 50 steps, on one device and on three. Steps are small and eps is not, so that the error of sums in
 * another order does not grow: 1e-6 is some ten roundings of the largest parameter. */

enum { STEPS = 50 };
static const double tolerance = 1e-6;

static const char *const cases[] = {
	"no_decay", "groups_adamw", "groups_momentum", "groups_adagrad", "one_cycle",
	"one_cycle_short", "polynomial", "plateau", "ema", "ema_every",
};
enum { NCASES = sizeof cases / sizeof *cases };

static void path_of(char path[512], const char *file)
{
	const char *source = getenv("SOURCE_DIR");

	snprintf(path, 512, "%s/tests/torch/fixtures/habits/%s", source ? source : ".", file);
}

static void read_tensors(struct hd_rig *rig, const char *file, struct hd_safetensors *st)
{
	struct hd_diag diag = { "" };
	uint8_t *bytes;
	char path[512];
	size_t len;

	path_of(path, file);
	CHECK(hd_file_read_all(&rig->fs, path, &rig->arena, 1 << 24, &bytes, &len, &diag) == HD_OK, "%s",
		diag.text);
	CHECK(hd_safetensors_read(st, &rig->arena, file, bytes, len, &diag) == HD_OK, "%s", diag.text);
}

static void open_case(struct hd_rig *rig, const char *name, uint32_t ndevices)
{
	const struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE };
	struct hd_diag diag = { "" };
	char file[64], path[512];
	uint8_t *bytes;
	size_t len;

	memset(rig, 0, sizeof *rig);
	hd_fs_real(&rig->fs);
	hd_arena_init(&rig->arena, 0);
	rig->job = hd_arena_take(&rig->arena, 1, sizeof *rig->job);
	snprintf(file, sizeof file, "%s.yaml", name);
	path_of(path, file);
	CHECK(hd_file_read_all(&rig->fs, path, &rig->arena, 1 << 20, &bytes, &len, &diag) == HD_OK, "%s",
		diag.text);
	path_of(path, "");
	const struct hd_job_set set = { "data.path", path, HD_FROM_SET };
	CHECK(hd_job_parse(rig->job, file, (const char *)bytes, len, &set, 1, &rig->arena, &diag,
		NULL) == HD_OK, "%s", diag.text);
	hd_rig_go(rig, &spec);
}

static void put_all(struct hd_rig *rig, const struct hd_safetensors *st)
{
	for (uint32_t i = 0; i < st->ntensors; i++) {
		struct hd_state_entry *e = hd_state_find(hd_worker_state(rig->worker), st->tensor[i].name);
		CHECK(e && e->len_bytes == st->tensor[i].len_bytes, "%s", st->tensor[i].name);
		hd_state_put(e, 0, e->len_bytes / 4, st->tensor[i].at);
	}
}

static void check_tensor(const char *name, struct hd_rig *rig, const struct hd_st_tensor *t)
{
	const struct hd_state_entry *e = hd_state_find(hd_worker_state(rig->worker), t->name);
	const float *theirs = t->at;
	float ours[256];

	CHECK(e && e->len_bytes == t->len_bytes && t->len_bytes <= sizeof ours, "%s: %s", name, t->name);
	hd_state_get(e, 0, e->len_bytes / 4, ours);
	for (uint64_t i = 0; i < e->len_bytes / 4; i++)
		CHECK(fabs((double)ours[i] - (double)theirs[i]) <= tolerance,
			"%s: %s[%u] is %.9g, PyTorch has %.9g", name, t->name, (unsigned)i, (double)ours[i],
			(double)theirs[i]);
}

static void agrees(const char *name, uint32_t ndevices)
{
	struct hd_safetensors begin, expect;
	struct hd_rig rig;
	char file[64];

	open_case(&rig, name, ndevices);
	snprintf(file, sizeof file, "%s.safetensors", name);
	read_tensors(&rig, "begin.safetensors", &begin);
	read_tensors(&rig, file, &expect);
	put_all(&rig, &begin);
	const double *rate = hd_safetensors_find(&expect, "rate")->at,
		*loss = hd_safetensors_find(&expect, "loss")->at;
	for (uint32_t s = 0; s < STEPS; s++) {
		const struct hd_step_record r = hd_rig_step(&rig);
		CHECK(fabs((double)r.lr - rate[s]) <= tolerance * fmax(rate[s], 1e-3),
			"%s: the rate of step %u is %.9g, PyTorch has %.9g", name, s, (double)r.lr, rate[s]);
		CHECK(fabs(r.loss_sum / r.weight - loss[s]) <= tolerance * 2,
			"%s: the loss of step %u is %.9g, PyTorch has %.9g", name, s, r.loss_sum / r.weight,
			loss[s]);
	}
	for (uint32_t i = 0; i < expect.ntensors; i++)
		if (strcmp(expect.tensor[i].name, "rate") != 0 && strcmp(expect.tensor[i].name, "loss") != 0)
			check_tensor(name, &rig, &expect.tensor[i]);
	hd_rig_close(&rig);
}

static void fifty_steps_agree_with_pytorch(void **state)
{
	(void)state;
	for (size_t c = 0; c < NCASES; c++) {
		agrees(cases[c], 1);
		agrees(cases[c], 3);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_steps_agree_with_pytorch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
