/* safetensors: what is accepted tiles its bytes, can be read in full, and what we write
 * of it is accepted again with the same tensors. */
#include <stdlib.h>
#include <string.h>

#include "graph/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { BUDGET_BYTES = 64 << 20 };

struct copy { uint8_t *at; size_t len, cap; };

static enum hd_err put(void *context, const void *at, uint64_t len, struct hd_diag *diag)
{
	struct copy *c = context;

	if (len > c->cap - c->len)
		return hd_fail(diag, HD_E_NOSPACE, "full");
	memcpy(c->at + c->len, at, len);
	c->len += len;
	return HD_OK;
}

static void rewrite(const struct hd_safetensors *file, struct hd_arena *arena, size_t len)
{
	struct copy c = { .cap = 16 * len + 4096 };
	struct hd_safetensors again;
	enum hd_err err;

	c.at = malloc(c.cap);
	if (!c.at)
		return;
	err = hd_safetensors_write(file->tensor, file->ntensors, file->meta, file->nmeta, arena, put, &c,
		NULL);
	if (err == HD_OK) {
		err = hd_safetensors_read(&again, arena, "again", c.at, c.len, NULL);
		if (err != HD_OK && err != HD_E_NOMEM)
			abort();
		if (err == HD_OK && (again.ntensors != file->ntensors || again.nmeta != file->nmeta))
			abort();
		for (uint32_t i = 0; err == HD_OK && i < file->ntensors; i++) {
			const struct hd_st_tensor *a = &file->tensor[i],
				*b = hd_safetensors_find(&again, a->name);
			if (!b || b->len_bytes != a->len_bytes || b->dtype != a->dtype ||
			    (a->len_bytes && memcmp(a->at, b->at, a->len_bytes) != 0))
				abort();
		}
	}
	free(c.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;
	struct hd_safetensors file;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, BUDGET_BYTES);
	enum hd_err err = hd_safetensors_read(&file, &arena, "fuzz", bytes, len, &diag);
	if ((err == HD_OK) == (diag.text[0] != '\0'))
		abort();
	if (err == HD_OK)
		rewrite(&file, &arena, len);
	hd_arena_finish(&arena);
	return 0;
}
