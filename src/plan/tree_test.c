#include "plan/tree.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"

/* The definition, level by level: cover of (h,i) or nothing. Shares no code with tree.c. */
struct span { uint32_t first, end; };

static struct span definition(uint32_t nvns, uint32_t level, uint32_t index)
{
	uint64_t first = (uint64_t)index << level, end = (uint64_t)(index + 1) << level;

	if (first >= nvns)
		return (struct span){ 0, 0 };
	return (struct span){ (uint32_t)first, end < nvns ? (uint32_t)end : nvns };
}

static void both_forms_of_the_definition_give_the_same_tree(void **state)
{
	static struct span work[2 * 4096];

	(void)state;
	/* split at the largest power of two below n, and look each part up in the pairing by levels */
	for (uint32_t nvns = 1; nvns <= 4096; nvns++) {
		uint32_t nwork = 1, nnames = 0;
		work[0] = (struct span){ 0, nvns };
		while (nwork) {
			struct span s = work[--nwork];
			uint32_t n = s.end - s.first, split = 1, level = 0;
			while (1u << level < n)
				level++;
			while (split * 2 < n)
				split *= 2;
			struct hd_tnode node = { level, s.first >> level };
			struct span again = definition(nvns, node.level, node.index);
			CHECK(again.first == s.first && again.end == s.end,
				"V=%u: [%u,%u) is no node by levels", nvns, s.first, s.end);
			CHECK(hd_tnode_same(hd_tree_name(nvns, node), node), "V=%u: [%u,%u) has a lower name",
				nvns, s.first, s.end);
			nnames++;
			if (n > 1) {
				struct span left = { s.first, s.first + split },
					right = { s.first + split, s.end };
				uint32_t first, end;
				hd_tree_cover(nvns, node, &first, &end);
				CHECK(first == s.first && end == s.end, "V=%u: cover [%u,%u)", nvns, first,
					end);
				work[nwork++] = right;
				work[nwork++] = left;
			}
		}
		CHECK(nnames == 2 * nvns - 1, "V=%u has %u names", nvns, nnames);
	}
}

static void every_node_of_small_trees_has_one_name_per_cover(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 130; nvns++) {
		uint32_t nnames = 0, height = hd_tree_height(nvns);
		CHECK(nvns <= 1u << height && (height == 0 || nvns > 1u << (height - 1)), "V=%u: height %u",
			nvns, height);
		for (uint32_t h = 0; h <= height + 1; h++)
			for (uint32_t i = 0; i <= nvns; i++) {
				struct hd_tnode node = { h, i };
				struct span s = definition(nvns, h, i);
				bool is_node = s.end > s.first && h <= height;
				CHECK(hd_tree_exists(nvns, node) == is_node, "V=%u (%u,%u)", nvns, h, i);
				if (!is_node)
					continue;
				struct hd_tnode name = hd_tree_name(nvns, node);
				struct span n = definition(nvns, name.level, name.index);
				CHECK(n.first == s.first && n.end == s.end,
					"V=%u: name of (%u,%u) covers [%u,%u)", nvns, h, i, n.first, n.end);
				nnames += hd_tnode_same(name, node);
			}
		CHECK(nnames == 2 * nvns - 1, "V=%u: %u names", nvns, nnames);
	}
}

static void parent_and_sibling_agree_with_the_covers(void **state)
{
	(void)state;
	for (uint32_t nvns = 2; nvns <= 130; nvns++)
		for (uint32_t h = 0; h <= hd_tree_height(nvns); h++)
			for (uint32_t i = 0; hd_tree_exists(nvns, (struct hd_tnode){ h, i }); i++) {
				struct hd_tnode node = { h, i }, parent = hd_tree_parent(nvns, node), sibling;
				struct span s = definition(nvns, h, i),
					p = definition(nvns, parent.level, parent.index), o;
				if (!hd_tnode_same(hd_tree_name(nvns, node), node))
					continue;
				CHECK(hd_tnode_same(hd_tree_name(nvns, parent), parent),
					"V=%u (%u,%u): the parent is no name", nvns, h, i);
				if (s.end - s.first == nvns) {
					CHECK(hd_tnode_same(parent, node) && !hd_tree_is_right(nvns, node),
						"V=%u: the root", nvns);
					continue;
				}
				sibling = hd_tree_sibling(nvns, node);
				o = definition(nvns, sibling.level, sibling.index);
				CHECK(hd_tnode_same(hd_tree_name(nvns, sibling), sibling),
					"V=%u (%u,%u): the sibling is no name", nvns, h, i);
				bool right = hd_tree_is_right(nvns, node);
				CHECK(right ? o.end == s.first && p.first == o.first && p.end == s.end
					    : s.end == o.first && p.first == s.first && p.end == o.end,
					"V=%u (%u,%u): [%u,%u) and [%u,%u) do not make [%u,%u)", nvns, h, i,
					s.first, s.end, o.first, o.end, p.first, p.end);
				/* the left part is the largest power of two below the whole */
				uint32_t left = right ? o.end - o.first : s.end - s.first,
					n = p.end - p.first;
				CHECK((left & (left - 1)) == 0 && left < n && left * 2 >= n,
					"V=%u: %u leaves split at %u", nvns, n, left);
			}
}

static uint32_t roots_of(uint32_t nvns, uint32_t first, uint32_t end, struct hd_tnode root[HD_MAX_ROOTS])
{
	static uint8_t has[HD_MAX_VNS];
	uint32_t n = 0;

	memset(has, 0, nvns);
	memset(has + first, 1, end - first);
	assert_int_equal(hd_tree_roots(nvns, has, root, HD_MAX_ROOTS, &n), HD_OK);
	return n;
}

static void check_roots(uint32_t nvns, uint32_t first, uint32_t end, uint32_t nroots,
	const struct hd_tnode *want)
{
	struct hd_tnode root[HD_MAX_ROOTS];
	uint32_t n = roots_of(nvns, first, end, root);

	CHECK(n == nroots, "V=%u [%u,%u): %u roots", nvns, first, end, n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(hd_tnode_same(root[i], want[i]), "V=%u [%u,%u): root %u is (%u,%u)", nvns, first, end,
			i, root[i].level, root[i].index);
}

static void the_written_examples_have_the_written_roots(void **state)
{
	(void)state;
	check_roots(16, 0, 6, 2, (struct hd_tnode[]){ { 2, 0 }, { 1, 2 } });
	check_roots(16, 6, 12, 2, (struct hd_tnode[]){ { 1, 3 }, { 2, 2 } });
	check_roots(16, 12, 14, 1, (struct hd_tnode[]){ { 1, 6 } });
	check_roots(16, 14, 16, 1, (struct hd_tnode[]){ { 1, 7 } });
	check_roots(10, 0, 4, 1, (struct hd_tnode[]){ { 2, 0 } });
	check_roots(10, 4, 7, 2, (struct hd_tnode[]){ { 1, 2 }, { 0, 6 } });
	check_roots(10, 7, 10, 2, (struct hd_tnode[]){ { 0, 7 }, { 1, 4 } });
	check_roots(7, 0, 3, 2, (struct hd_tnode[]){ { 1, 0 }, { 0, 2 } });
	check_roots(7, 3, 7, 2, (struct hd_tnode[]){ { 0, 3 }, { 2, 1 } });
	check_roots(1, 0, 1, 1, (struct hd_tnode[]){ { 0, 0 } });
	check_roots(16, 0, 0, 0, NULL);
}

static void a_range_keeps_to_the_bound_and_reaches_it(void **state)
{
	(void)state;
	for (uint32_t nvns = 1; nvns <= 130; nvns++) {
		uint32_t most = 0, log2 = hd_tree_height(nvns), bound = log2 < 2 ? 2 : 2 * log2 - 2;
		struct hd_tnode root[HD_MAX_ROOTS];
		for (uint32_t first = 0; first < nvns; first++)
			for (uint32_t end = first + 1; end <= nvns; end++) {
				uint32_t n = roots_of(nvns, first, end, root);
				most = n > most ? n : most;
			}
		CHECK(most <= bound, "V=%u: %u roots, the bound is %u", nvns, most, bound);
		if (nvns == 16)
			assert_int_equal(most, 6);
	}
	struct hd_tnode root[HD_MAX_ROOTS];
	assert_int_equal(roots_of(1024, 1, 1023, root), 18);
}

/* Top down, as the document says it, with an explicit stack. */
static uint32_t roots_top_down(uint32_t nvns, const uint8_t *has, struct hd_tnode *out)
{
	struct hd_tnode work[64];
	uint32_t nwork = 1, n = 0;

	work[0] = (struct hd_tnode){ hd_tree_height(nvns), 0 };
	while (nwork) {
		struct hd_tnode node = work[--nwork];
		struct span s = definition(nvns, node.level, node.index);
		uint32_t count = 0;
		for (uint32_t v = s.first; v < s.end; v++)
			count += has[v];
		if (count == 0)
			continue;
		struct hd_tnode left = { node.level - 1, node.index * 2 },
			right = { node.level - 1, node.index * 2 + 1 };
		bool promoted = node.level > 0 && definition(nvns, right.level, right.index).end == 0;
		if (promoted) {
			work[nwork++] = left;
		} else if (count == s.end - s.first) {
			out[n++] = node;
		} else {
			work[nwork++] = right;
			work[nwork++] = left;
		}
	}
	return n;
}

static void any_set_has_the_roots_found_from_the_top(void **state)
{
	(void)state;
	srandom(7);
	for (int round = 0; round < 20000; round++) {
		uint32_t nvns = 1 + (uint32_t)random() % 70, n = 0;
		uint8_t has[70];
		struct hd_tnode want[70], got[70];
		long dense = 1 + random() % 8;
		for (uint32_t v = 0; v < nvns; v++)
			has[v] = random() % 8 < dense;
		uint32_t nwant = roots_top_down(nvns, has, want);
		assert_int_equal(hd_tree_roots(nvns, has, got, nwant, &n), HD_OK);
		CHECK(n == nwant, "V=%u: %u roots, want %u", nvns, n, nwant);
		CHECK(n == 0 || memcmp(got, want, n * sizeof *got) == 0, "V=%u: other roots", nvns);
		if (nwant)
			assert_int_equal(hd_tree_roots(nvns, has, got, nwant - 1, &n), HD_E_NOSPACE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_of_the_definition_give_the_same_tree),
		cmocka_unit_test(every_node_of_small_trees_has_one_name_per_cover),
		cmocka_unit_test(parent_and_sibling_agree_with_the_covers),
		cmocka_unit_test(the_written_examples_have_the_written_roots),
		cmocka_unit_test(a_range_keeps_to_the_bound_and_reaches_it),
		cmocka_unit_test(any_set_has_the_roots_found_from_the_top),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
