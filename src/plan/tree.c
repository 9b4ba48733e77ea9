#include "plan/tree.h"

#include <assert.h>

#include "base/bits.h"

uint32_t hd_tree_height(uint32_t nvns) { return hd_ceil_log2(nvns); }

/* 64 bits: the first leaf of a name outside the tree may lie beyond 2^32. */
static uint64_t first_leaf(struct hd_tnode node) { return (uint64_t)node.index << node.level; }

static struct hd_tnode left_child(struct hd_tnode node) { return (struct hd_tnode){ node.level - 1,
	node.index * 2 }; }

static struct hd_tnode right_child(struct hd_tnode node) { return (struct hd_tnode){ node.level - 1,
	node.index * 2 + 1 }; }

bool hd_tree_exists(uint32_t nvns, struct hd_tnode node)
{
	return node.level <= hd_tree_height(nvns) && first_leaf(node) < nvns;
}

struct hd_tnode hd_tree_name(uint32_t nvns, struct hd_tnode node)
{
	while (node.level > 0 && !hd_tree_exists(nvns, right_child(node)))
		node = left_child(node);
	return node;
}

/* The highest (h,i) with the cover of this name: where it meets its sibling. */
static struct hd_tnode highest(uint32_t nvns, struct hd_tnode name)
{
	while (name.level < hd_tree_height(nvns) && !(name.index & 1) &&
	       !hd_tree_exists(nvns, (struct hd_tnode){ name.level, name.index + 1 }))
		name = (struct hd_tnode){ name.level + 1, name.index / 2 };
	return name;
}

struct hd_tnode hd_tree_parent(uint32_t nvns, struct hd_tnode name)
{
	struct hd_tnode top = highest(nvns, name);

	return top.level == hd_tree_height(nvns) ? name : (struct hd_tnode){ top.level + 1, top.index / 2 };
}

struct hd_tnode hd_tree_sibling(uint32_t nvns, struct hd_tnode name)
{
	struct hd_tnode top = highest(nvns, name);

	return hd_tree_name(nvns, (struct hd_tnode){ top.level, top.index ^ 1 });
}

bool hd_tree_is_right(uint32_t nvns, struct hd_tnode name) { return highest(nvns, name).index & 1; }

void hd_tree_cover(uint32_t nvns, struct hd_tnode node, uint32_t *first, uint32_t *end)
{
	uint64_t last = first_leaf(node) + (UINT64_C(1) << node.level);

	assert(hd_tree_exists(nvns, node));
	*first = (uint32_t)first_leaf(node);
	*end = last < nvns ? (uint32_t)last : nvns;
}

/* The highest node that begins at `leaf` and ends within the run [leaf, run_end). */
static struct hd_tnode largest_at(uint32_t nvns, uint32_t leaf, uint32_t run_end)
{
	struct hd_tnode node = { 0, leaf };

	while (node.level < hd_tree_height(nvns) && !(node.index & 1)) {
		struct hd_tnode up = { node.level + 1, node.index / 2 };
		uint32_t first, end;
		hd_tree_cover(nvns, up, &first, &end);
		if (end > run_end)
			break;
		node = up;
	}
	return hd_tree_name(nvns, node);
}

enum hd_err hd_tree_roots(uint32_t nvns, const uint8_t *has, struct hd_tnode *out, uint32_t cap,
	uint32_t *nroots)
{
	uint32_t n = 0, end, run_end = 0;

	for (uint32_t leaf = 0; leaf < nvns; leaf = end) {
		end = leaf + 1;
		if (!has[leaf])
			continue;
		if (run_end <= leaf)
			for (run_end = leaf; run_end < nvns && has[run_end]; run_end++)
				;
		struct hd_tnode root = largest_at(nvns, leaf, run_end);
		if (n == cap)
			return HD_E_NOSPACE;
		out[n++] = root;
		hd_tree_cover(nvns, root, &leaf, &end);
	}
	*nroots = n;
	return HD_OK;
}
