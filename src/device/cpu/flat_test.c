/* Optimizers and loops over flat vectors: the bits of the plain formulas, for every length
 * around a vector and any split. */
#include <stdlib.h>
#include <string.h>

#include "base/lanes.h"
#include "device/cpu/cpu_isa.h"
#include "tests/check.h"

enum { LEN = 1000, NPATHS = 3 };
static const char *const path[NPATHS] = { "avx512", "avx2", "portable" };

struct vectors { float param[LEN], grad[LEN], slot0[LEN], slot1[LEN]; };

static void fill(struct vectors *v)
{
	float *at = v->param;
	uint32_t seed = 12345;

	for (size_t i = 0; i < sizeof *v / sizeof(float); i++) {
		seed = seed * 1664525u + 1013904223u;
		at[i] = (float)(int32_t)seed * 0x1p-30f;
	}
	for (int i = 0; i < LEN; i++)
		v->slot1[i] *= v->slot1[i];
}

static struct hd_step_scalars scalars_of(uint32_t kind)
{
	struct hd_step_scalars s = { .optim = { kind, 0.9f, 0.9f, 0.95f, 1e-8f, 0.1f, false }, .lr = 0.003f,
		.scale = 1.0f / 48, .clip = 0.7f, .ratio = 1.75f };

	hd_optim_corrections(&s, 3);
	return s;
}

static void updates_have_the_bits_of_the_plain_formulas(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++)
		for (int p = 0; p < NPATHS; p++)
			for (uint64_t len = 0; hd_cpu_path(path[p]) && len <= 40; len++) {
				struct vectors plain, ours;
				struct hd_step_scalars s = scalars_of(kind);
				fill(&plain);
				fill(&ours);
				hd_optim_update_plain(&s, plain.param, plain.grad, plain.slot0, plain.slot1,
					len);
				hd_cpu_vectors(path[p])->update(&s, ours.param, ours.grad, ours.slot0,
					ours.slot1, len);
				CHECK(memcmp(&plain, &ours, sizeof plain) == 0, "%s on %s, length %d",
					hd_optims[kind].name, path[p], (int)len);
			}
}

/* Lengths around a vector and around the blocks in which directions are kept. */
static void the_first_pass_has_the_bits_of_the_plain_formulas(void **state)
{
	static struct long_vectors { float param[2200], grad[2200], slot0[2200], slot1[2200]; } plain, ours;
	const struct hd_step_scalars s = scalars_of(HD_OPTIM_LAMB);
	float *at = plain.param;

	(void)state;
	for (int p = 0; p < NPATHS; p++)
		for (uint64_t len = 0; hd_cpu_path(path[p]) && len <= 2200; len += len < 40 ||
			(len > 1010 && len < 1040) ? 1 : 39) {
			double want[2], got[2];
			for (size_t i = 0; i < sizeof plain / sizeof *at; i++)
				at[i] = (float)((i * 7919) % 1009 + 1) * 0x1p-9f;
			memcpy(&ours, &plain, sizeof plain);
			hd_optim_measure_plain(&s, plain.param, plain.grad, plain.slot0, plain.slot1, len,
				want);
			hd_cpu_vectors(path[p])->measure(&s, ours.param, ours.grad, ours.slot0, ours.slot1,
				len, got);
			CHECK(memcmp(&plain, &ours, sizeof plain) == 0, "%s, length %d", path[p], (int)len);
			CHECK(memcmp(want, got, sizeof want) == 0, "%s, length %d: %.17g and %.17g", path[p],
				(int)len, got[0], got[1]);
			/* a look sees the same, and slots stay */
			struct hd_step_scalars looks = s;
			looks.looks = true;
			for (int plainly = 0; plainly < 2; plainly++) {
				double seen[2];
				for (size_t i = 0; i < sizeof plain / sizeof *at; i++)
					at[i] = (float)((i * 7919) % 1009 + 1) * 0x1p-9f;
				memcpy(&ours, &plain, sizeof plain);
				if (plainly)
					hd_optim_measure_plain(&looks, ours.param, ours.grad, ours.slot0,
						ours.slot1, len, seen);
				else
					hd_cpu_vectors(path[p])->measure(&looks, ours.param, ours.grad,
						ours.slot0, ours.slot1, len, seen);
				CHECK(!memcmp(&plain, &ours, sizeof plain) && !memcmp(want, seen,
					sizeof want),
					"a look of %s, length %d", path[p], (int)len);
			}
			CHECK((len == 0) == (got[0] == 0) && (len == 0) == (got[1] == 0), "length %d",
				(int)len);
		}
}

static void a_split_update_is_the_whole_one(void **state)
{
	const struct hd_cpu_vector *v = hd_cpu_vectors(hd_cpu_path(NULL));

	(void)state;
	for (uint32_t kind = 0; kind < HD_NOPTIMS; kind++) {
		struct vectors whole, parts;
		struct hd_step_scalars s = scalars_of(kind);
		fill(&whole);
		fill(&parts);
		v->update(&s, whole.param, whole.grad, whole.slot0, whole.slot1, LEN);
		for (uint64_t at = 0, n; at < LEN; at += n) {
			n = LEN - at < 37 ? LEN - at : 37;
			v->update(&s, parts.param + at, parts.grad + at, parts.slot0 + at, parts.slot1 + at,
				n);
		}
		CHECK(memcmp(&whole, &parts, sizeof whole) == 0, "%s", hd_optims[kind].name);
	}
}

static void a_skipped_step_changes_nothing(void **state)
{
	struct vectors before, after;
	struct hd_step_scalars s = scalars_of(HD_OPTIM_ADAMW);

	(void)state;
	fill(&before);
	fill(&after);
	s.skip = true;
	hd_cpu_vectors(hd_cpu_path(NULL))->update(&s, after.param, after.grad, after.slot0, after.slot1, LEN);
	assert_memory_equal(&before, &after, sizeof before);
}

static void sums_have_the_order_of_lanes(void **state)
{
	struct vectors v;

	(void)state;
	fill(&v);
	for (int p = 0; p < NPATHS; p++)
		for (uint64_t len = 0; hd_cpu_path(path[p]) && len <= LEN; len += len < 40 ? 1 : 97) {
			double want = hd_lanes_sumsq(v.param, len),
				got = hd_cpu_vectors(path[p])->sumsq(v.param, len);
			CHECK(memcmp(&want, &got, sizeof want) == 0, "%s, length %d", path[p], (int)len);
		}
}

static void addition_may_overwrite_either_operand(void **state)
{
	struct vectors v, w;

	(void)state;
	for (int p = 0; p < NPATHS; p++)
		for (uint64_t len = 0; hd_cpu_path(path[p]) && len <= 50; len++) {
			const struct hd_cpu_vector *ops = hd_cpu_vectors(path[p]);
			fill(&v);
			fill(&w);
			ops->add(v.param, v.param, v.grad, len);
			ops->add(w.grad, w.param, w.grad, len);
			assert_memory_equal(v.param, w.grad, len * sizeof(float));
			for (uint64_t i = 0; i < LEN; i++)
				CHECK(v.param[i] == (i < len ? w.param[i] + v.grad[i] : w.param[i]),
					"%s, length %d, element %d", path[p], (int)len, (int)i);
			ops->copy(v.slot0, v.slot1, len);
			assert_memory_equal(v.slot0, v.slot1, len * sizeof(float));
			assert_memory_equal(v.slot0 + len, w.slot0 + len, (LEN - len) * sizeof(float));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(updates_have_the_bits_of_the_plain_formulas),
		cmocka_unit_test(the_first_pass_has_the_bits_of_the_plain_formulas),
		cmocka_unit_test(a_split_update_is_the_whole_one),
		cmocka_unit_test(a_skipped_step_changes_nothing),
		cmocka_unit_test(sums_have_the_order_of_lanes),
		cmocka_unit_test(addition_may_overwrite_either_operand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
