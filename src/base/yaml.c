#include "base/yaml.h"

#include <libfyaml.h>
#include <string.h>

#include "base/utf8.h"

/* We take the library's events, not its documents: it would accept aliases, anchors,
 * tags and further documents there and drop some of them silently, while as events all
 * are seen, with their marks, in the order of the text, and without its recursion. */

struct level {
	struct hd_yaml_node *node, *last;         /* the open collection; its newest child */
	struct hd_yaml_node *pending;             /* a member whose key is known and whose value is not */
};

struct build {
	struct hd_arena *arena;
	const char *name;
	struct hd_diag *diag;
	struct hd_yaml_node *root;
	struct level level[HD_YAML_DEPTH];
	uint32_t depth, ndocuments;
	struct hd_yaml_mark read_to;              /* the end of the newest event */
};

static enum hd_err refuse(const struct build *build, struct hd_yaml_mark at, const char *what)
{
	return hd_fail(build->diag, HD_E_INVAL, "%s:%u:%u: %s", build->name, at.line, at.column, what);
}

static enum hd_err no_memory(const struct build *build)
{
	return hd_fail(build->diag, HD_E_NOMEM, "%s: out of memory while reading YAML", build->name);
}

static struct hd_yaml_mark counted_from_1(const struct fy_mark *mark, uint32_t back)
{
	if (!mark)
		return (struct hd_yaml_mark){ 1, 1 };
	uint32_t column = (uint32_t)mark->column + 1;
	return (struct hd_yaml_mark){ (uint32_t)mark->line + 1, column > back ? column - back : 1 };
}

/* Where a value left out is missed: at its key, or at the list it is an item of. */
static struct hd_yaml_mark missing_at(const struct build *build)
{
	const struct level *level = &build->level[build->depth - 1];

	return level->pending ? level->pending->key_at : level->node->at;
}

/* The library marks what follows a quote, a '&' or a '*'; a reader looks for the sign itself. */
static struct hd_yaml_mark mark_of(struct fy_token *token)
{
	if (!token)
		return (struct hd_yaml_mark){ 1, 1 };
	enum fy_token_type type = fy_token_get_type(token);
	enum fy_scalar_style style = type == FYTT_SCALAR ? fy_token_scalar_style(token) : FYSS_PLAIN;
	bool sign = type == FYTT_ANCHOR || type == FYTT_ALIAS || style == FYSS_SINGLE_QUOTED ||
		style == FYSS_DOUBLE_QUOTED;
	return counted_from_1(fy_token_start_mark(token), sign);
}

/* What the library would guess at (encodings, NUL), word badly (tabs) or not survive is
 * settled here: a tab behind ':' can make libfyaml 0.7 lose its indentation and write
 * through NULL. Quotes and comments make no exception, since to know them is to parse. */
static enum hd_err check_bytes(const struct build *build, const char *text, size_t len)
{
	struct hd_yaml_mark at = { 1, 1 };
	bool indent = true, tab = false;
	char sign = '\n';                         /* the newest byte that is no blank */

	for (size_t i = 0, n; i < len; i += n, at.column++) {
		n = hd_utf8_len(text + i, len - i);
		char c = text[i];
		if (n == 0)
			return refuse(build, at, "this byte is not UTF-8");
		if (((unsigned char)c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return refuse(build, at,
				"control characters are not allowed; in quotes write \\n, \\t or \\x..");
		if (c == '%' && at.column == 1)
			return refuse(build, at, "directives (%) are not allowed");
		if (c == '\n') {
			at = (struct hd_yaml_mark){ at.line + 1, 0 };
			indent = true;
			tab = false;
			sign = c;
			continue;
		}
		if (sign == ':' && c == '\t')
			return refuse(build, at, "a tab behind ':'; use spaces");
		sign = c == ' ' || c == '\t' ? sign : c;
		tab = tab || (indent && c == '\t');
		indent = indent && (c == ' ' || c == '\t' || c == '\r');
		if (tab && !indent)
			return refuse(build, (struct hd_yaml_mark){ at.line, 1 },
				"indented by a tab; use spaces");
	}
	return HD_OK;
}

static bool is_plain(struct fy_token *value) { return !value || fy_token_scalar_style(value) == FYSS_PLAIN; }

static enum hd_err take_text(const struct build *build, struct fy_token *value, const char **text,
	size_t *text_len)
{
	size_t len = 0;
	const char *at = value ? fy_token_get_text(value, &len) : "";

	if (!at)
		return no_memory(build);
	if (memchr(at, '\0', len))
		return refuse(build, mark_of(value), "\\0 is not allowed");
	char *copy = hd_arena_text(build->arena, at, len);
	if (!copy)
		return no_memory(build);
	*text = copy;
	*text_len = len;
	return HD_OK;
}

static struct hd_yaml_node *append(struct build *build, struct level *level)
{
	struct hd_yaml_node *node = hd_arena_take(build->arena, 1, sizeof *node);

	if (!node)
		return NULL;
	if (level->last)
		level->last->next = node;
	else
		level->node->first = node;
	level->last = node;
	level->node->nchildren++;
	return node;
}

/* A scalar where a mapping expects a key opens a member; its value comes next. */
static enum hd_err on_key(struct build *build, struct level *level, struct fy_token *value)
{
	struct hd_yaml_mark at = mark_of(value);
	const char *key = NULL;
	size_t len;
	enum hd_err err = take_text(build, value, &key, &len);

	if (err)
		return err;
	if (len == 0)
		return refuse(build, at, "empty key");
	if (is_plain(value) && strcmp(key, "<<") == 0)
		return refuse(build, at, "merge keys are not allowed; write the keys out");
	if (level->node->nchildren >= HD_YAML_KEYS)
		return refuse(build, at, "too many keys in one table");
	const struct hd_yaml_node *twin = hd_yaml_find(level->node, key);
	if (twin)
		return hd_fail(build->diag, HD_E_INVAL, "%s:%u:%u: key \"%.60s\" stands already in line %u",
			build->name, at.line, at.column, key, twin->key_at.line);
	level->pending = append(build, level);
	if (!level->pending)
		return no_memory(build);
	level->pending->key = key;
	level->pending->key_at = at;
	return HD_OK;
}

/* Where the next value goes: a pending member, a new item, or the root. */
static struct hd_yaml_node *place(struct build *build)
{
	if (build->depth == 0)
		return build->root = hd_arena_take(build->arena, 1, sizeof *build->root);
	struct level *level = &build->level[build->depth - 1];
	if (level->node->kind == HD_YAML_SEQ)
		return append(build, level);
	struct hd_yaml_node *node = level->pending;
	level->pending = NULL;
	return node;
}

static bool expects_key(const struct build *build)
{
	const struct level *level = build->depth ? &build->level[build->depth - 1] : NULL;

	return level && level->node->kind == HD_YAML_MAP && !level->pending;
}

static enum hd_err on_scalar(struct build *build, struct fy_token *value)
{
	if (build->depth == 0)
		return refuse(build, mark_of(value), "a table of keys is needed here (key: value)");
	if (expects_key(build))
		return on_key(build, &build->level[build->depth - 1], value);
	struct hd_yaml_mark at = value && fy_token_start_mark(value) ? mark_of(value) : missing_at(build);
	struct hd_yaml_node *node = place(build);
	if (!node)
		return no_memory(build);
	node->kind = HD_YAML_SCALAR;
	node->quoted = !is_plain(value);
	node->at = at;
	return take_text(build, value, &node->text, &node->text_len);
}

static enum hd_err on_open(struct build *build, enum hd_yaml_kind kind, struct fy_token *start)
{
	struct hd_yaml_mark at = mark_of(start);

	if (expects_key(build))
		return refuse(build, at, "a key must be plain text");
	if (build->depth == HD_YAML_DEPTH)
		return refuse(build, at, "nested deeper than 16");
	struct hd_yaml_node *node = place(build);
	if (!node)
		return no_memory(build);
	node->kind = kind;
	node->at = at;
	build->level[build->depth++] = (struct level){ .node = node };
	return HD_OK;
}

static enum hd_err check_marks(const struct build *build, struct fy_token *anchor, struct fy_token *tag)
{
	if (anchor)
		return refuse(build, mark_of(anchor), "anchors are not allowed; write the value out");
	if (tag)
		return refuse(build, mark_of(tag), "tags are not allowed; types come from the key");
	return HD_OK;
}

static enum hd_err on_document(struct build *build, const struct fy_event_document_start_data *start)
{
	const struct fy_mark *mark = start->document_state ?
		fy_document_state_start_mark(start->document_state) : NULL;

	if (build->ndocuments++)
		return refuse(build, counted_from_1(mark, 0), "a second document; one file holds one");
	return HD_OK;
}

static enum hd_err on_event(struct build *build, const struct fy_event *event)
{
	enum hd_err err;

	switch (event->type) {
	case FYET_DOCUMENT_START:
		return on_document(build, &event->document_start);
	case FYET_ALIAS:
		return refuse(build, mark_of(event->alias.anchor),
			"aliases are not allowed; write the value out");
	case FYET_SCALAR:
		err = check_marks(build, event->scalar.anchor, event->scalar.tag);
		return err ? err : on_scalar(build, event->scalar.value);
	case FYET_SEQUENCE_START:
		err = check_marks(build, event->sequence_start.anchor, event->sequence_start.tag);
		return err ? err : on_open(build, HD_YAML_SEQ, event->sequence_start.sequence_start);
	case FYET_MAPPING_START:
		err = check_marks(build, event->mapping_start.anchor, event->mapping_start.tag);
		return err ? err : on_open(build, HD_YAML_MAP, event->mapping_start.mapping_start);
	case FYET_SEQUENCE_END:
	case FYET_MAPPING_END:
		build->depth--;
		return HD_OK;
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
		return HD_OK;
	}
	return hd_fail(build->diag, HD_E_BUG, "%s: unknown YAML event %d", build->name, (int)event->type);
}

/* The library's own complaint: the first is the cause, the rest are its echoes. Some
 * faults, such as the block scalar head "|0", it refuses without a word. */
static enum hd_err syntax_error(const struct build *build, struct fy_diag *fy)
{
	void *iter = NULL;
	const struct fy_diag_error *error = fy_diag_errors_iterate(fy, &iter);

	if (!error)
		return refuse(build, build->read_to, "what follows is not YAML");
	return hd_fail(build->diag, HD_E_INVAL, "%s:%d:%d: %s", build->name,
		error->line > 0 ? error->line : 1,
		error->column > 0 ? error->column : 1, error->msg);
}

static enum hd_err run(struct build *build, struct fy_parser *parser, struct fy_diag *fy)
{
	enum hd_err err = HD_OK;
	bool ended = false;

	while (!err && !ended) {
		struct fy_event *event = fy_parser_parse(parser);
		if (!event)
			return syntax_error(build, fy);
		ended = event->type == FYET_STREAM_END;
		const struct fy_mark *end = fy_event_end_mark(event);
		build->read_to = end ? counted_from_1(end, 0) : build->read_to;
		err = on_event(build, event);
		fy_parser_event_free(parser, event);
	}
	if (!err && fy_parser_get_stream_error(parser))
		return syntax_error(build, fy);
	return err;
}

static void say_nothing(struct fy_diag *fy, void *user, const char *text, size_t len)
{
	(void)fy, (void)user, (void)text, (void)len;
}

enum hd_err hd_yaml_parse(struct hd_arena *arena, const char *name, const char *text, size_t len,
	const struct hd_yaml_node **root, struct hd_diag *diag)
{
	struct build build = { .arena = arena, .name = name, .diag = diag, .read_to = { 1, 1 } };
	const struct fy_diag_cfg quiet = { .output_fn = say_nothing, .level = FYET_ERROR,
		.module_mask = ~0u };

	if (len > HD_YAML_BYTES)
		return hd_fail(diag, HD_E_INVAL, "%s: %zu bytes, more than %d", name, len, HD_YAML_BYTES);
	enum hd_err err = check_bytes(&build, text, len);
	if (err)
		return err;

	struct fy_diag *fy = fy_diag_create(&quiet);
	struct fy_parser *parser = NULL;
	if (!fy) {
		err = no_memory(&build);
		goto out;
	}
	fy_diag_set_collect_errors(fy, true);
	parser = fy_parser_create(&(struct fy_parse_cfg){ .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG,
		.diag = fy });
	if (!parser || fy_parser_set_string(parser, text, len) != 0) {
		err = no_memory(&build);
		goto out;
	}
	err = run(&build, parser, fy);
	if (!err && !build.root)
		err = refuse(&build, (struct hd_yaml_mark){ 1, 1 },
			"the file is empty; a table of keys is needed");
	if (!err)
		*root = build.root;
out:
	fy_parser_destroy(parser);
	if (fy)
		fy_diag_destroy(fy);
	return err;
}

const struct hd_yaml_node *hd_yaml_find(const struct hd_yaml_node *map, const char *key)
{
	if (map->kind != HD_YAML_MAP)
		return NULL;
	for (const struct hd_yaml_node *node = map->first; node; node = node->next)
		if (strcmp(node->key, key) == 0)
			return node;
	return NULL;
}

const char *hd_yaml_kind_name(enum hd_yaml_kind kind)
{
	static const char *const names[] = { "a value", "a list", "a table" };
	return names[kind];
}
