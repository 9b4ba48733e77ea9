/* adapter_config.json of others: whatever it says, it is refused with a sentence, or gives numbers that a job
 * takes, and lists that hold what they are said to hold. */
#include <stdlib.h>

#include "checkpoint/peft.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 16 << 20 };

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void numbers_of(const struct hd_json *table)
{
	double x;

	for (size_t i = 0; i < hd_peft_count(table); i++)
		must(hd_json_key(table, i) && !hd_json_as_f64(hd_json_item(table, i), &x, NULL));
}

static void texts_of(const struct hd_json *list)
{
	const char *text;

	for (size_t i = 0; i < hd_peft_count(list); i++)
		must(!hd_json_as_text(hd_json_item(list, i), &text, NULL));
}

/* As the keys of model.lora are bounded (job/keys.h), written again. */
static void look(const struct hd_peft *peft)
{
	must(peft->rank >= 1 && peft->rank <= 4096 && peft->rank == (double)(int)peft->rank);
	must(peft->alpha == 0 || (peft->alpha > 1e-38 && peft->alpha <= 1e6));
	must(peft->dropout == 0 || (peft->dropout > 1e-38 && peft->dropout <= 0.95));
	must(peft->bias < HD_PEFT_NBIASES && (!peft->base || *peft->base));
	numbers_of(peft->ranks);
	numbers_of(peft->alphas);
	texts_of(peft->save);
	texts_of(peft->targets);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_diag diag = { "" };
	const struct hd_json *json;
	struct hd_arena arena;
	struct hd_peft peft;

	hd_arena_init(&arena, BUDGET_BYTES);
	if (!hd_json_parse(&arena, "adapter_config.json", (const char *)bytes, len, &json, NULL)) {
		enum hd_err err = hd_peft_read(&peft, json, "adapter_config.json", &diag);
		must((err == HD_OK) != (diag.text[0] != '\0'));
		if (!err)
			look(&peft);
	}
	hd_arena_finish(&arena);
	return 0;
}
