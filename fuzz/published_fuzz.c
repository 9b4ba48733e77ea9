/* config.json of others: whatever it says, it is refused with a sentence or gives arguments that a model of
 * ours takes or refuses with a sentence. */
#include <stdlib.h>

#include "graph/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 16 << 20 };

static void build(const struct hd_published *p)
{
	const struct hd_model_row *row;
	struct hd_model_value value[HD_MAX_ARGS];
	struct hd_diag diag = { "" };

	if (hd_model_find(p->model, &row, &diag))
		abort();
	enum hd_err err = hd_model_args(row, p->arg, p->nargs, value, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const asked[] = { NULL, "gpt", "llama", "bert", "resnet18" };
	const struct hd_json *json;
	struct hd_arena arena;

	hd_arena_init(&arena, BUDGET_BYTES);
	if (!hd_json_parse(&arena, "config.json", (const char *)bytes, len, &json, NULL))
		for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
			struct hd_published p;
			struct hd_diag diag = { "" };
			enum hd_err err = hd_published_read(&p, json, "config.json", asked[i], &arena, &diag);
			if ((err == HD_OK) == (diag.text[0] != '\0'))
				abort();
			if (!err && p.model)
				build(&p);
		}
	hd_arena_finish(&arena);
	return 0;
}
