#include "device/idle.h"

#include <assert.h>

#include "base/alloc.h"
#include "sys/memory.h"

/* Bytes of a block of `len` in pages that are not touched. */
static uint64_t left_of(struct hd_memory_part *part, uint32_t n, uint64_t len)
{
	const uint64_t taken = hd_memory_taken_by(part, n, len);

	return len > taken ? len - taken : 0;
}

static bool folds(struct hd_device *device, const struct hd_program *program, uint32_t v)
{
	return program->grad_of_value[v] != HD_NONE && device->ops->folds &&
		device->ops->folds(device, program, program->graph->value[v].node);
}

enum hd_err hd_program_idle(struct hd_idle *idle, const struct hd_program *program, struct hd_device *device,
	uint64_t len_bytes, uint64_t other_bytes, struct hd_diag *diag)
{
	const struct hd_graph *graph = program->graph;
	struct hd_memory_part *span = hd_alloc(((size_t)graph->nvalues + 1) * sizeof *span);
	uint64_t most = 0;
	uint32_t n = 0;

	assert(program->training && len_bytes >= program->memory.len_bytes && other_bytes <= len_bytes);
	if (!span)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the places of %u values", graph->nvalues);
	span[n++] = (struct hd_memory_part){ 0, other_bytes };
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct hd_where *where = &program->where[v];
		if (folds(device, program, v))
			continue;
		if (program->grad_of_value[v] != HD_NONE) {
			uint64_t bytes = program->layout->len[program->grad_of_value[v]] * sizeof(float);
			most = bytes > most ? bytes : most;
		}
		if (where->space == HD_IN_ARENA && where->at_bytes != UINT64_MAX)
			span[n++] = (struct hd_memory_part){ where->at_bytes,
				where->at_bytes + hd_program_value_bytes(program, v) };
	}
	*idle = (struct hd_idle){ .arena_bytes = left_of(span, n, len_bytes) };
	*span = (struct hd_memory_part){ 0, most };
	idle->temp_bytes = left_of(span, 1, program->temp_elems * sizeof(float));
	hd_free(span);
	return HD_OK;
}
