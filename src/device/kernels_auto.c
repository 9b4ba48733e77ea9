#include "device/kernels_auto.h"

#include <string.h>

#include "device/cpu/cpu_isa.h"
#include "device/program.h"

#define AMD "amd-avx512"
#define INTEL "intel-avx512"

/* Where they come from is in docs/results/step.md. */
static const struct hd_kernels_rate measured[] = {
	/* 2026-11-28, one of two cores of an AMD EPYC whose peak was 118; oneDNN 2.6 */
	{ AMD, HD_OP_MATMUL, 2.1, 108, 98 },
	{ AMD, HD_OP_MATMUL, 8.4, 109, 106 },
	{ AMD, HD_OP_MATMUL, 50, 112, 105 },
	{ AMD, HD_OP_MATMUL, 75, 113, 101 },
	{ AMD, HD_OP_MATMUL, 226, 112, 103 },
	{ AMD, HD_OP_MATMUL, 302, 111, 105 },
	{ AMD, HD_OP_MATMUL, 9881, 81, 86 },
	{ AMD, HD_OP_CONV2D, 4.8, 44, 20 },
	{ AMD, HD_OP_CONV2D_DX, 4.8, 59, 23 },
	{ AMD, HD_OP_CONV2D_DW, 4.8, 31, 21 },
	/* 2026-11-28, one of two cores of a Xeon whose peak was 200 to 226; oneDNN 2.6 */
	{ INTEL, HD_OP_MATMUL, 50, 165, 141 },
	{ INTEL, HD_OP_MATMUL, 67, 157, 156 },
	{ INTEL, HD_OP_MATMUL, 75, 166, 151 },
	{ INTEL, HD_OP_MATMUL, 226, 169, 152 },
	{ INTEL, HD_OP_MATMUL, 302, 166, 145 },
	{ INTEL, HD_OP_MATMUL, 9881, 143, 150 },
};
const struct hd_kernels_rates hd_kernels_measured = { measured, sizeof measured / sizeof measured[0] };

/* How many times as large one is as the other. */
static double apart(double a, double b) { return a > b ? a / b : b / a; }

static const struct hd_kernels_rate *nearest(const struct hd_kernels_rates *rates, const char *cpu,
	uint16_t op, double mflop)
{
	const struct hd_kernels_rate *found = NULL;

	for (uint32_t i = 0; i < rates->n; i++) {
		const struct hd_kernels_rate *r = &rates->at[i];
		if (r->op == op && strcmp(r->cpu, cpu) == 0 &&
			(!found || apart(r->mflop, mflop) < apart(found->mflop, mflop)))
			found = r;
	}
	return found;
}

/* A function of the shape alone: the rows of every path have the same. */
static bool differs(const struct hd_call *call)
{
	const struct hd_cpu_row *row = &hd_cpu_isa_of("portable")->library_rows[call->op];

	return row->takes && row->takes(call);
}

enum hd_kernels hd_kernels_auto(const struct hd_kernels_rates *rates, const char *cpu,
	const struct hd_graph *graph, uint64_t rows)
{
	double own = 0, library = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct hd_node *node = &graph->node[i];
		struct hd_call call = hd_call_of(graph, i, rows);
		double mflop = hd_ops[node->op].cost(graph, node, rows).flops * 1e-6;
		if (!(mflop > 0) || !differs(&call))
			continue;
		const struct hd_kernels_rate *r = nearest(rates, cpu, node->op, mflop);
		own += mflop / (r ? r->own : 1);
		library += mflop / (r ? r->library : 1);
	}
	return own <= HD_OWN_WITHIN * library ? HD_KERNELS_PORTABLE : HD_KERNELS_LIBRARY;
}
