#include "device/cpu/cpu_kernels.h"

#include <cpuid.h>
#include <string.h>

#include "sys/thread.h"
#include "device/bf16.h"
#include "device/cpu/bf16_rows.h"
#include "device/cpu/cpu_isa.h"
#include "device/cpu/dnnl.h"
#include "device/kernels_auto.h"

enum hd_err hd_cpu_prepare_none(const struct hd_call *call, void **prepared, struct hd_diag *diag)
{
	(void)call;
	(void)diag;
	*prepared = NULL;
	return HD_OK;
}

void hd_cpu_release_none(void *prepared) { (void)prepared; }

/* Each answer also covers the operating system: it must save the wide registers. */
static bool has_avx512(void)
{
#ifdef __SANITIZE_THREAD__
	return false;                    /* its objects are not instrumented: cmake/kernels.cmake */
#endif
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool has_portable(void) { return true; }

static const struct path { const char *name; bool (*has)(void); const struct hd_cpu_isa *isa; } paths[] = {
#define X(path) { #path, has_##path, &hd_cpu_##path },
	HD_CPU_PATHS(X)
#undef X
};
enum { NPATHS = sizeof paths / sizeof paths[0] };

const char *hd_cpu_path(const char *wanted)
{
	bool any = !wanted || strcmp(wanted, "auto") == 0;

	for (int i = 0; i < NPATHS; i++)
		if ((any || strcmp(wanted, paths[i].name) == 0) && paths[i].has())
			return paths[i].name;
	return NULL;
}

const char *hd_cpu_type(void)
{
	if (!has_avx512())
		return "other";
	return __builtin_cpu_is("amd") ? "amd-avx512" : __builtin_cpu_is("intel") ? "intel-avx512" : "other";
}

const struct hd_cpu_isa *hd_cpu_isa_of(const char *path)
{
	for (int i = 0; i < NPATHS; i++)
		if (strcmp(path, paths[i].name) == 0)
			return paths[i].isa;
	return &hd_cpu_portable;
}

const struct hd_cpu_row *hd_cpu_table(enum hd_kernels kernels, const char *path)
{
	const struct hd_cpu_isa *isa = hd_cpu_isa_of(path);

	if (kernels == HD_KERNELS_BF16 || kernels == HD_KERNELS_BF16_AMX)
		return kernels == HD_KERNELS_BF16 ? isa->bf16_rows : isa->amx_rows;
	return kernels == HD_KERNELS_LIBRARY && hd_dnnl_present() ? isa->library_rows : isa->rows;
}

const struct hd_cpu_vector *hd_cpu_vectors(const char *path) { return hd_cpu_isa_of(path)->vector; }

/* Rounding, ties, subnormals of all kinds, the order of the pair: one answer each that differs from those of
 * other rules. */
static bool pairs_are_as_defined(void)
{
	static const struct { float sum, a[2], b[2]; } asked[] = {
		{ 1, { 0x1p-24f, 0x1p-24f }, { 1, 1 } },                /* rounded after each term */
		{ -1, { 1, 0x1p-25f }, { 1, 1 } },                      /* the odd term first */
		{ 0x1p24f, { 1, 1 }, { 1, 1 } }, { 0, { 0x1p-130f, 0 }, { 0x1p20f, 0 } },
		{ 0, { 0x1p-70f, 0 }, { 0x1p-60f, 0 } }, { 0x1p-130f, { 0, 0 }, { 0, 0 } },
		{ 0x1p-126f, { -0x1p-64f, 0 }, { 0x1p-63f, 0 } }, { 3, { 0x1.02p0f, 7 }, { 0x1.fep9f, -2 } },
	};
	enum { NASKED = sizeof asked / sizeof asked[0] };
	uint32_t a[16] = { 0 }, b[16] = { 0 };
	float sum[16] = { 0 }, got[16], want[16] = { 0 };

	_Static_assert(NASKED <= 16, "a register");
	for (int i = 0; i < NASKED; i++) {
		sum[i] = asked[i].sum;
		a[i] = hd_bits_of_f32(asked[i].a[1]) | hd_bits_of_f32(asked[i].a[0]) >> 16;
		b[i] = hd_bits_of_f32(asked[i].b[1]) | hd_bits_of_f32(asked[i].b[0]) >> 16;
		want[i] = hd_bf16_pair(sum[i], asked[i].a, asked[i].b);
	}
	hd_bf16_unit(sum, a, b, got);
	return memcmp(got, want, sizeof got) == 0;
}

bool hd_cpu_has_bf16(const char *path)
{
	return hd_cpu_isa_of(path)->bf16_rows && has_avx512() && __builtin_cpu_supports("avx512bf16") &&
		pairs_are_as_defined();
}

/* A row of a tile for each question, of two pairs at most: roundings and ties of both chains, which are added
 * before the old sum is; subnormals of all kinds, in what is read, in each chain, in their sum and in the
 * last; and what a pair is to VDPBF16PS. */
static bool tiles_are_as_defined(void)
{
	static const struct { float sum, a[4], b[4]; } asked[] = {
		{ 1, { 0x1p-24f, 0x1p-24f }, { 1, 1 } },                /* 1 + 2^-23 */
		{ 1, { 0x1p-24f, 0, 0x1p-24f }, { 1, 0, 1 } }, { 1, { 0, 0x1p-24f, 0, 0x1p-24f }, { 0, 1, 0, 1 } },
		{ -1, { 1, 0x1p-25f }, { 1, 1 } }, { 0, { 1, -1, 0x1p-24f }, { 1, 1, 1 } },
		{ 0, { 1, 0x1p-24f, -1 }, { 1, 1, 1 } }, { 0x1p24f, { 1, 1 }, { 1, 1 } },
		{ 0, { 0x1.02p0f, 0, 0x1.fep-9f }, { 0x1.fep0f, 0, 0x1.02p-8f } },
		{ 0, { 0x1p-130f }, { 0x1p20f } }, { 0, { 0x1p20f }, { -0x1p-130f } },
		{ 0x1p-130f, { 0 }, { 0 } }, { 0, { 0x1p-70f }, { 0x1p-60f } },
		{ 0x1p-126f, { 0x1p-64f, -0x1p-64f }, { 0x1p-63f, 0x1p-63f } },
		{ 0, { 0x1.8p-63f, -0x1p-63f }, { 0x1p-63f, 0x1p-63f } },
		{ 0x1.8p-126f, { -0x1p-63f }, { 0x1p-63f } }, { -0x1.8p-126f, { 0, 0x1p-63f }, { 0, 0x1p-63f } },
	};
	uint32_t a[16][16] = { { 0 } }, b[16][16] = { { 0 } };
	float sum[16][16] = { { 0 } }, got[16][16];

	_Static_assert(sizeof asked / sizeof asked[0] == 16, "the rows of a tile");
	for (int i = 0; i < 16; i++) {
		sum[i][i] = asked[i].sum;
		for (int k = 0; k < 4; k += 2) {
			a[i][k / 2] = hd_bits_of_f32(asked[i].a[k + 1]) | hd_bits_of_f32(asked[i].a[k]) >> 16;
			b[k / 2][i] = hd_bits_of_f32(asked[i].b[k + 1]) | hd_bits_of_f32(asked[i].b[k]) >> 16;
		}
	}
	hd_amx_unit(sum, a, b, got);
	for (int i = 0; i < 16; i++) {
		float x[HD_BF16_BLOCK] = { 0 }, y[HD_BF16_BLOCK] = { 0 }, want;
		memcpy(x, asked[i].a, sizeof asked[i].a);
		memcpy(y, asked[i].b, sizeof asked[i].b);
		want = hd_bf16_block(asked[i].sum, x, y);
		if (memcmp(&got[i][i], &want, sizeof want) != 0)
			return false;
	}
	return true;
}

static bool has_tiles(void)
{
	const unsigned bf16 = 1u << 22, tile = 1u << 24;         /* of leaf 7, edx */
	unsigned a, b, c, d = 0;

	return has_avx512() && __builtin_cpu_supports("avx512bf16") &&
		__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16) && (d & tile);
}

enum hd_amx_lack hd_cpu_lacks_amx(const char *path)
{
	if (!hd_cpu_isa_of(path)->amx_rows)
		return HD_AMX_NO_KERNELS;
	if (!has_tiles())
		return HD_AMX_NO_PROCESSOR;
	if (!hd_thread_tiles_allowed())
		return HD_AMX_NOT_LENT;
	return hd_cpu_has_bf16(path) && tiles_are_as_defined() ? HD_AMX_COMPLETE : HD_AMX_OTHERWISE;
}

bool hd_cpu_has_amx(const char *path) { return hd_cpu_lacks_amx(path) == HD_AMX_COMPLETE; }

void hd_cpu_thread_init(void) { hd_dnnl_thread_init(); }
bool hd_cpu_has_library(void) { return hd_dnnl_present(); }
