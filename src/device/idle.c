#include "device/idle.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

struct span { uint64_t at, end; };

static int by_place(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static uint64_t page_down(uint64_t at) { return at / HD_IDLE_PAGE_BYTES * HD_IDLE_PAGE_BYTES; }

static uint64_t page_up(uint64_t at) { return page_down(at + HD_IDLE_PAGE_BYTES - 1); }

/* Bytes of whole pages that the spans touch, of an arena of `len` bytes. */
static uint64_t written(struct span *span, uint32_t n, uint64_t len)
{
	uint64_t sum = 0, upto = 0;

	qsort(span, n, sizeof *span, by_place);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = page_down(span[i].at), end = page_up(span[i].end);
		at = at > upto ? at : upto;
		end = end < len ? end : len;
		sum += end > at ? end - at : 0;
		upto = end > upto ? end : upto;
	}
	return sum;
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
	struct span *span = hd_alloc(((size_t)graph->nvalues + 1) * sizeof *span);
	uint64_t most = 0;
	uint32_t n = 0;

	assert(program->training && len_bytes >= program->memory.len_bytes && other_bytes <= len_bytes);
	if (!span)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the places of %u values", graph->nvalues);
	span[n++] = (struct span){ 0, other_bytes };
	for (uint32_t v = 0; v < graph->nvalues; v++) {
		const struct hd_where *where = &program->where[v];
		if (folds(device, program, v))
			continue;
		if (program->grad_of_value[v] != HD_NONE) {
			uint64_t bytes = program->layout->len[program->grad_of_value[v]] * sizeof(float);
			most = bytes > most ? bytes : most;
		}
		if (where->space == HD_IN_ARENA && where->at_bytes != UINT64_MAX)
			span[n++] = (struct span){ where->at_bytes,
				where->at_bytes + hd_program_value_bytes(program, v) };
	}
	uint64_t temp = program->temp_elems * sizeof(float), used = page_up(most);
	*idle = (struct hd_idle){ len_bytes - written(span, n, len_bytes), temp > used ? temp - used : 0 };
	hd_free(span);
	return HD_OK;
}
