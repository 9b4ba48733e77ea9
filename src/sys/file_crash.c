#include "sys/file_sim_int.h"

#include <assert.h>
#include <string.h>

/* The s-th sector of what is written differs from the disk's, where missing bytes count as 0. */
static bool sector_is_dirty(const struct hd_fs_node *node, size_t s)
{
	size_t end = (s + 1) * HD_SECTOR_BYTES < node->len ? (s + 1) * HD_SECTOR_BYTES : node->len;

	for (size_t i = s * HD_SECTOR_BYTES; i < end; i++)
		if (node->bytes[i] != (i < node->durable_len ? node->durable[i] : 0))
			return true;
	return false;
}

static size_t sectors_of(const struct hd_fs_node *node) { return (node->len + HD_SECTOR_BYTES -
	1) / HD_SECTOR_BYTES; }

size_t hd_fs_sim_unsynced(const struct hd_fs_sim *sim)
{
	size_t n = sim->n_changes;

	for (size_t i = 0; i < sim->n_nodes; i++) {
		n += sim->nodes[i].len != sim->nodes[i].durable_len;
		for (size_t s = 0; s < sectors_of(&sim->nodes[i]); s++)
			n += sector_is_dirty(&sim->nodes[i], s);
	}
	return n;
}

struct crash_asked { bool (*keep)(void *user, size_t i); void *user; size_t n; };

static bool kept(struct crash_asked *asked)
{
	size_t i = asked->n++;
	return asked->keep && asked->keep(asked->user, i);
}

/* Works in place: sectors that are lost get the disk's bytes, then the disk gets the whole. */
static void crash_node(struct hd_fs_node *node, struct crash_asked *asked)
{
	size_t len = node->len != node->durable_len && !kept(asked) ? node->durable_len : node->len;

	for (size_t s = 0; s < sectors_of(node); s++) {
		if (!sector_is_dirty(node, s) || kept(asked))
			continue;
		for (size_t i = s * HD_SECTOR_BYTES; i < (s + 1) * HD_SECTOR_BYTES && i < node->len; i++)
			node->bytes[i] = i < node->durable_len ? node->durable[i] : 0;
	}
	size_t written = node->len;
	int r = hd_fs_node_resize(node, len);
	if (!r && len > written)        /* the cut is lost: the old end is back */
		memcpy(node->bytes + written, node->durable + written, len - written);
	if (!r)
		r = hd_fs_node_sync(node);
	assert(!r);        /* disarm the trap of allocations before a crash */
	(void)r;
}

static void crash_names(struct hd_fs_sim *sim, struct crash_asked *asked)
{
	/* A folder that lost one change loses the rest: its mark is that the change was kept back. */
	size_t lost = 0;

	for (size_t i = 0; i < sim->n_changes; i++) {
		struct hd_fs_change made = sim->changes[i];
		bool good = kept(asked);
		for (size_t k = 0; k < lost && good; k++) {
			int folder = hd_fs_change_folder(&sim->changes[k]);
			good = folder != hd_fs_change_folder(&made) && folder != made.from.folder;
		}
		if (good)
			hd_fs_tree_apply(&sim->durable, &made);
		else
			sim->changes[lost++] = made;
	}
	sim->n_changes = 0;
}

void hd_fs_sim_crash(struct hd_fs_sim *sim, bool (*keep)(void *user, size_t i), void *user)
{
	struct crash_asked asked = { keep, user, 0 };

	crash_names(sim, &asked);
	for (size_t i = 0; i < sim->n_nodes; i++)
		crash_node(&sim->nodes[i], &asked);
	while (sim->now.cap < sim->durable.n) {
		bool grown = hd_fs_sim_grow(&sim->now.at, sim->now.cap, &sim->now.cap, sizeof *sim->now.at);
		assert(grown);
		(void)grown;
	}
	if (sim->durable.n)
		memcpy(sim->now.at, sim->durable.at, sim->durable.n * sizeof *sim->now.at);
	sim->now.n = sim->durable.n;
	sim->n_handles = 0;
	hd_fs_sim_fail(sim, 0, 0, false);
}
