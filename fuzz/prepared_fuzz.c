/* A prepared graph whose digests hold, whatever its content: it is refused, or every place that it names can
 * be read. */
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "data/prepared.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Digests as they must be, or no mutation gets beyond them. */
static void seal(uint8_t *bytes, size_t len)
{
	for (size_t s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		uint8_t *row = bytes + 128 + 32 * s;
		uint64_t at = hd_get64(row + 8), n = hd_get64(row + 16);
		if (n && at <= len && n <= len - at)
			hd_put64(row + 24, hd_hash64(bytes + at, n));
	}
	struct hd_hash hash = hd_hash(bytes, HD_PREPARED_HEAD - 16);
	memcpy(bytes + HD_PREPARED_HEAD - 16, hash.byte, sizeof hash.byte);
}

static uint64_t read_halo(const struct hd_prepared *g, const struct hd_halo *halo, uint32_t *vertex)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < g->head.nintervals; i++)
		for (uint64_t l = halo->offset[i]; l < halo->offset[i + 1]; l++) {
			hd_halo_read(&halo->list[l], halo->bytes, g->interval[i], vertex);
			for (uint32_t c = 0; c < halo->list[l].count; c++) {
				if (vertex[c] < g->interval[i] || vertex[c] >= g->interval[i + 1])
					abort();
				sum += vertex[c];
			}
		}
	return sum;
}

static void read_all(const struct hd_prepared *g)
{
	uint64_t n = g->head.nvertices, sum = 0, count[4];
	uint32_t *vertex = malloc(n * sizeof *vertex);

	for (uint64_t v = 0; v < n && vertex; v++) {
		for (uint64_t e = g->in.offset[v]; e < g->in.offset[v + 1]; e++)
			sum += g->out_degree[g->in.at[e]];
		for (uint64_t e = g->out.offset[v]; e < g->out.offset[v + 1]; e++)
			sum += g->in_degree[g->out.at[e]];
		for (uint64_t f = g->head.sparse ? g->feature_offset[v] : 0; f < (g->head.sparse ?
			g->feature_offset[v + 1] : 0); f++)
			sum += g->feature_column[f] < g->head.width && g->feature[f] > 0;
		sum += g->id[v];
	}
	hd_prepared_count(g, count);
	if (vertex)
		sum += read_halo(g, &g->halo, vertex) + read_halo(g, &g->halo_back, vertex);
	free(vertex);
	if (sum == UINT64_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	size_t room = (len + 64) / 64 * 64;
	uint8_t *copy = aligned_alloc(64, room);
	struct hd_prepared graph;
	struct hd_diag diag = { "" };

	if (!copy)
		return 0;
	memset(copy, 0, room);
	memcpy(copy, bytes, len);
	if (len >= HD_PREPARED_HEAD)
		seal(copy, len);
	if (hd_prepared_view(copy, len, "input", &graph, &diag) == HD_OK &&
		hd_prepared_check(&graph, "input", &diag) == HD_OK)
		read_all(&graph);
	free(copy);
	return 0;
}
