#include "graph/models/rows.h"

#include <stdio.h>

enum { INPUT, HIDDEN, CLASSES, FUNCTION };

static const char layers[] = "after each hidden layer, one of:"
#define IF_LAYER(text) " " text
#define IF_NUMBER(text)
#define ACT(id, text, nf, use, ...) IF_##use(text)
#include "graph/acts.def"
	;

const struct hd_model_param hd_mlp_params[] = {
	[INPUT]   = { "input",   HD_ARG_LIST, "[1, 28, 28]",  1, 1 << 20,
		"extents of one sample; flattened" },
	[HIDDEN]  = { "hidden",  HD_ARG_LIST, "[1024, 1024]", 1, 1 << 20, "width of each hidden layer" },
	[CLASSES] = { "classes", HD_ARG_INT,  "10",           1, 1 << 20,
	"outputs: classes, or numbers with mse" },
	[FUNCTION] = { "act",    HD_ARG_WORD, "relu",         0, 0, layers },
	{ 0 },
};

enum hd_err hd_mlp_build(struct hd_graph *graph, const struct hd_model_value *value,
	const struct hd_model_opts *opts,
	struct hd_diag *diag)
{
	struct hd_maker m = { graph, diag, HD_OK };
	const struct hd_model_value *input = &value[INPUT], *hidden = &value[HIDDEN];
	int64_t dim[HD_MAX_DIMS] = { -1 }, width;
	char name[16];
	int act;

	if (!hd_act_parse(value[FUNCTION].word, &act) || hd_acts[act].nf > 0)
		return hd_fail(diag, HD_E_INVAL,
			"argument 'act': '%s' is no activation without numbers; %s", value[FUNCTION].word,
			layers);
	if (input->nlist == 0 || input->nlist >= HD_MAX_DIMS)
		return hd_fail(diag, HD_E_INVAL, "argument 'input': 1 to %d extents", HD_MAX_DIMS - 1);
	for (uint32_t i = 0; i < input->nlist; i++)
		dim[i + 1] = input->list[i];
	width = hd_dims_product(dim + 1, input->nlist);
	if (width == 0 || width > HD_MAX_EXTENT)
		return hd_fail(diag, HD_E_INVAL, "argument 'input': a sample of more than %d elements",
			HD_MAX_EXTENT);
	uint32_t x = hd_make_input(&m, "x", HD_F32, (uint8_t)(input->nlist + 1), dim), h = x;
	if (input->nlist > 1)
		h = hd_make1(&m, HD_OP_RESHAPE, x, (struct hd_attr){ .i = { -1, (int32_t)width } });
	for (uint32_t i = 0; i <= hidden->nlist; i++) {
		int64_t out = i < hidden->nlist ? hidden->list[i] : value[CLASSES].n;
		snprintf(name, sizeof name, "fc%u", i + 1);
		h = hd_make_linear(&m, name, h, width, out);
		if (i < hidden->nlist)
			h = hd_make1(&m, HD_OP_ACT, h, (struct hd_attr){ .i = { act } });
		width = out;
	}
	hd_make_ends(&m, opts, x, h, 1, value[CLASSES].n);
	return m.err;
}
