/* yaml_fuzz -- any bytes are refused with a place inside the text, or read into a tree
 * that, printed as JSON, reads back to the same tree. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_writer.h"
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libfyaml 0.7.12 loses the buffer of a long quoted scalar when the text is refused
 * behind it: 4 KiB for each refused file, harmless to a program that then leaves. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

enum { KEY_MOST = 500 };        /* YAML allows 1024 characters to a key before its colon; escapes need room */

static void print(struct hd_json_writer *w, const struct hd_yaml_node *node)
{
	if (node->kind == HD_YAML_SCALAR) {
		hd_json_put_bytes(w, node->key, node->text, node->text_len);
		return;
	}
	if (node->kind == HD_YAML_MAP)
		hd_json_open_object(w, node->key);
	else
		hd_json_open_array(w, node->key);
	for (const struct hd_yaml_node *child = node->first; child; child = child->next)
		print(w, child);
	hd_json_close(w);
}

/* Other characters are legal text that YAML folds, or wants escaped otherwise than JSON does. */
static bool is_simple(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			return false;
	return true;
}

static bool prints_as_json(const struct hd_yaml_node *node)
{
	if ((node->key && (!is_simple(node->key) || strlen(node->key) > KEY_MOST)) ||
		(node->text && !is_simple(node->text)))
		return false;
	for (const struct hd_yaml_node *child = node->first; child; child = child->next)
		if (!prints_as_json(child))
			return false;
	return true;
}

static struct hd_text printed(struct hd_arena *arena, const struct hd_yaml_node *root)
{
	struct hd_text text;
	struct hd_json_writer w;

	hd_text_init(&text, arena);
	hd_json_writer_init(&w, &text);
	print(&w, root);
	if (!hd_json_done(&w))
		abort();
	return text;
}

static void check_place(const struct hd_diag *diag, size_t size)
{
	unsigned line, column;

	if (sscanf(diag->text, "f:%u:%u: ", &line, &column) != 2 || line == 0 || column == 0 ||
		line > size + 2 || column > size + 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hd_yaml_node *root = NULL, *again = NULL;
	struct hd_arena arena;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_yaml_parse(&arena, "f", (const char *)data, size, &root, &diag);
	if ((err == HD_OK) != (root != NULL))
		abort();
	if (err && size <= HD_YAML_BYTES)
		check_place(&diag, size);
	if (root && prints_as_json(root)) {
		struct hd_text one = printed(&arena, root);
		if (one.len <= HD_YAML_BYTES && hd_yaml_parse(&arena, "f", one.at, one.len, &again, &diag))
			abort();
		if (again) {
			struct hd_text two = printed(&arena, again);
			if (one.len != two.len || memcmp(one.at, two.at, one.len) != 0)
				abort();
		}
	}
	hd_arena_finish(&arena);
	return 0;
}
