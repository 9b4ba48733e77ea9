#include "job/int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"

const struct hd_job_key_row hd_job_keys[HD_JOB_NKEYS] = {
#define X(id, table, key, type, r, def, words, lo, hi, about) \
	[HD_JOB_##id] = { table, key, HD_T_##type, r, def, words, lo, hi, about },
#include "job/keys.h"
#undef X
};

static const struct { const char *table, *key, *word; } absent[] = {
#define A(table, key, word) { table, key, word },
#include "job/absent.h"
#undef A
};
enum { NABSENT = sizeof absent / sizeof absent[0] };

const char *hd_job_dotted(enum hd_job_key key, char out[HD_DOTTED_CAP])
{
	snprintf(out, HD_DOTTED_CAP, "%s.%s", hd_job_keys[key].table, hd_job_keys[key].key);
	return out;
}

enum hd_err hd_job_refuse(const struct hd_job_reader *reader, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(reader->diag, HD_E_INVAL, "%s: %s", reader->place, what);
}

void hd_job_warn(const struct hd_job_reader *reader, const char *fmt, ...)
{
	char what[400];
	va_list args;

	if (!reader->warnings)
		return;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	hd_text_addf(reader->warnings, "%s: %s\n", reader->place, what);
}

static void set_place(struct hd_job_reader *reader, uint32_t line, uint32_t column)
{
	snprintf(reader->place, sizeof reader->place, "%s:%u:%u", reader->job->file, line, column);
}

void hd_job_place(struct hd_job_reader *reader, const struct hd_yaml_mark *at)
{
	set_place(reader, at->line, at->column);
}

static void set_outside_place(struct hd_job_reader *reader, const char *dotted, const char *text)
{
	char env[HD_DOTTED_CAP];

	if (reader->origin != HD_FROM_ENV) {
		snprintf(reader->place, sizeof reader->place, "%s%.80s=%.80s",
			reader->origin == HD_FROM_SET ? "-s " : "", dotted, text);
		return;
	}
	snprintf(env, sizeof env, "%s", dotted);
	for (char *at = env; *at; at++)
		*at = *at == '.' ? '_' : (char)toupper((unsigned char)*at);
	snprintf(reader->place, sizeof reader->place, "HEDDLE_%s=%.80s", env, text);
}

void hd_job_at(struct hd_job_reader *reader, enum hd_job_key key)
{
	const struct hd_job_value *v = &reader->job->value[key];
	char dotted[HD_DOTTED_CAP];

	reader->origin = v->origin;
	if (v->line)
		set_place(reader, v->line, v->column);
	else if (v->origin == HD_FROM_DEFAULT)            /* a value of the file has its line */
		snprintf(reader->place, sizeof reader->place, "%s", reader->job->file);
	else
		set_outside_place(reader, hd_job_dotted(key, dotted), v->text ? v->text : "...");
}

const char *hd_job_word(const char *words, uint32_t i, size_t *len)
{
	for (; i && words; i--) {
		words = strchr(words, '|');
		words = words ? words + 1 : NULL;
	}
	if (!words || !*words)
		return NULL;
	*len = strcspn(words, "|");
	return words;
}

bool hd_job_has_word(const char *words, const char *word)
{
	const char *at;
	size_t len;

	for (uint32_t i = 0; (at = hd_job_word(words, i, &len)); i++)
		if (strlen(word) == len && memcmp(at, word, len) == 0)
			return true;
	return false;
}

bool hd_job_is_absent(const char *table, const char *key, const char *word)
{
	for (size_t i = 0; i < NABSENT; i++)
		if (strcmp(absent[i].table, table) == 0 && (!absent[i].key ||
			(key && strcmp(absent[i].key, key) == 0)) &&
		    (!absent[i].word || (word && strcmp(absent[i].word, word) == 0)))
			return true;
	return false;
}

static enum hd_err unknown_table(const struct hd_job_reader *reader, const char *name)
{
	struct hd_near near = hd_near_to(name);

	if (hd_job_is_absent(name, NULL, NULL))
		return hd_job_refuse(reader, "%s is not available in this build; leave the table out", name);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		const struct hd_job_key_row *row = &hd_job_keys[k];
		const size_t len = strlen(name);
		if (strcmp(row->key, name) == 0)
			return hd_job_refuse(reader, "there is no table %s; write %s: {%s: ...}", name,
				row->table, name);
		if (strncmp(row->key, name, len) == 0 && row->key[len] == '.')
			return hd_job_refuse(reader, "there is no table %s; write %s: {%s: {%s: ...}}", name,
				row->table, name, row->key + len + 1);
		hd_near_offer(&near, hd_job_keys[k].table);
	}
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		if (hd_job_is_absent(hd_job_keys[k].table, name, NULL))
			return hd_job_refuse(reader, "%s is %s.%s, which is not available in this build; "
				"leave it out", name, hd_job_keys[k].table, name);
	return hd_job_refuse(reader, "there is no table %.60s%s%s%s", name,
		near.best ? "; did you mean " : "", near.best ? near.best : "",
		near.best ? "?" : " (heddle run --new FILE writes all)");
}

static enum hd_err unknown_key(const struct hd_job_reader *reader, const char *table, const char *key)
{
	struct hd_near near = hd_near_to(key);
	const char *home = NULL;

	if (hd_job_is_absent(table, key, NULL))
		return hd_job_refuse(reader, "%s.%s is not available in this build; leave it out", table,
			key);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		if (strcmp(hd_job_keys[k].table, table) == 0)
			hd_near_offer(&near, hd_job_keys[k].key);
		else if (strcmp(hd_job_keys[k].key, key) == 0)
			home = hd_job_keys[k].table;
	}
	if (near.best)
		return hd_job_refuse(reader, "there is no key %s.%.60s; did you mean %s.%s?", table, key,
			table, near.best);
	if (home)
		return hd_job_refuse(reader, "there is no key %s.%.60s; did you mean %s.%.60s?", table, key,
			home, key);
	return hd_job_refuse(reader, "there is no key %s.%.60s (heddle run --new FILE writes all)", table,
		key);
}

static bool is_table(const char *name)
{
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		if (strcmp(hd_job_keys[k].table, name) == 0)
			return true;
	return false;
}

/* `key` within a table: a key of its own, or the first part of dotted ones. */
enum found { NOT_FOUND, IS_KEY, IS_SUBTABLE };

static enum found find_key(const char *table, const char *key, enum hd_job_key *out)
{
	enum found found = NOT_FOUND;
	size_t len = strlen(key);

	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		if (strcmp(hd_job_keys[k].table, table) != 0)
			continue;
		if (strcmp(hd_job_keys[k].key, key) == 0) {
			*out = (enum hd_job_key)k;
			return IS_KEY;
		}
		if (strncmp(hd_job_keys[k].key, key, len) == 0 && hd_job_keys[k].key[len] == '.')
			found = IS_SUBTABLE;
	}
	return found;
}

static enum hd_err read_node(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node)
{
	struct hd_job_value *v = &reader->job->value[key];

	set_place(reader, node->at.line, node->at.column);
	enum hd_err err = hd_job_read(reader, key, node);
	v->line = node->at.line;
	v->column = node->at.column;
	return err;
}

static enum hd_err want_map(struct hd_job_reader *reader, const char *name, const struct hd_yaml_node *node)
{
	if (node->kind == HD_YAML_MAP || (node->kind == HD_YAML_SCALAR && !node->quoted && !node->text_len))
		return HD_OK;
	set_place(reader, node->at.line, node->at.column);
	return hd_job_refuse(reader, "%s is a table: write its keys below it, each as key: value", name);
}

static enum hd_err read_subtable(struct hd_job_reader *reader, const char *table,
	const struct hd_yaml_node *node)
{
	char dotted[HD_DOTTED_CAP];
	enum hd_job_key key = HD_JOB_NKEYS;

	snprintf(dotted, sizeof dotted, "%s.%s", table, node->key);
	enum hd_err err = want_map(reader, dotted, node);
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next) {
		snprintf(dotted, sizeof dotted, "%s.%.60s", node->key, child->key);
		if (find_key(table, dotted, &key) == IS_KEY) {
			err = read_node(reader, key, child);
			continue;
		}
		set_place(reader, child->key_at.line, child->key_at.column);
		err = unknown_key(reader, table, dotted);
	}
	return err;
}

const char *const hd_job_bare[] = { "redundancy", "resilience", "pause_max", "notice", NULL };

static bool is_bare(const char *name)
{
	for (uint32_t i = 0; hd_job_bare[i]; i++)
		if (!strcmp(hd_job_bare[i], name))
			return true;
	return false;
}

static enum hd_err read_bare(struct hd_job_reader *reader, const struct hd_yaml_node *node)
{
	enum hd_job_key key = HD_JOB_NKEYS;

	return find_key("elastic", node->key, &key) == IS_KEY ? read_node(reader, key, node) :
		read_subtable(reader, "elastic", node);
}

enum hd_err hd_job_read_table(struct hd_job_reader *reader, const struct hd_yaml_node *table)
{
	enum hd_err err;

	if (is_bare(table->key))
		return read_bare(reader, table);
	if (!strcmp(table->key, "graph")) {
		err = want_map(reader, table->key, table);
		return err ? err : hd_job_read_graph(reader, table);
	}
	if (!strcmp(table->key, "loss") && table->kind == HD_YAML_SEQ)
		return read_node(reader, HD_JOB_SUM, table);
	if (!is_table(table->key)) {
		set_place(reader, table->key_at.line, table->key_at.column);
		return unknown_table(reader, table->key);
	}
	err = want_map(reader, table->key, table);
	for (const struct hd_yaml_node *node = table->first; node && !err; node = node->next) {
		enum hd_job_key key = HD_JOB_NKEYS;
		enum found found = find_key(table->key, node->key, &key);
		if (found == IS_KEY)
			err = read_node(reader, key, node);
		else if (found == IS_SUBTABLE)
			err = read_subtable(reader, table->key, node);
		else {
			set_place(reader, node->key_at.line, node->key_at.column);
			err = unknown_key(reader, table->key, node->key);
		}
	}
	return err;
}

static enum hd_err read_file(struct hd_job_reader *reader, const char *bytes, size_t len)
{
	const struct hd_yaml_node *root = NULL;
	enum hd_err err = hd_yaml_parse(reader->arena, reader->job->file, bytes, len, &root, reader->diag);

	if (err)
		return err;
	reader->origin = HD_FROM_FILE;
	if (root->kind != HD_YAML_MAP) {
		set_place(reader, root->at.line, root->at.column);
		return hd_job_refuse(reader, "a job file is a list of tables (job, model, data, ...), not %s",
			hd_yaml_kind_name(root->kind));
	}
	err = hd_job_check_graph(reader, root);
	for (const struct hd_yaml_node *table = root->first; table && !err; table = table->next)
		err = hd_job_read_table(reader, table);
	return err;
}

/* Lists and tables are parsed as the file's are; all else is taken as it stands. */
static enum hd_err read_text(struct hd_job_reader *reader, enum hd_job_key key, const char *text)
{
	struct hd_yaml_node scalar = { .kind = HD_YAML_SCALAR, .text = text, .text_len = strlen(text),
		.quoted = true };
	const struct hd_yaml_node *node = &scalar;
	enum hd_job_type type = (enum hd_job_type)hd_job_keys[key].type;

	if ((type == HD_T_LIST || type == HD_T_NAMES || type == HD_T_CALLS || type == HD_T_ARGS ||
		type == HD_T_SPLIT || type == HD_T_GROUPS || type == HD_T_TERMS) && (*text == '[' ||
			*text == '{')) {
		struct hd_diag why = { "" };
		enum hd_err err = hd_yaml_parse(reader->arena, "value", text, strlen(text), &node, &why);
		if (err)
			return err == HD_E_INVAL ? hd_job_refuse(reader, "%.300s", why.text) :
				hd_fail(reader->diag, err, "%s", why.text);
	}
	return hd_job_read(reader, key, node);
}

static enum hd_err read_set(struct hd_job_reader *reader, const struct hd_job_set *set)
{
	char table[HD_DOTTED_CAP];
	const char *dot = strchr(set->key, '.');
	enum hd_job_key key = HD_JOB_NKEYS;

	reader->origin = (uint8_t)set->origin;
	set_outside_place(reader, set->key, set->text);
	snprintf(table, sizeof table, "%.*s", dot ? (int)(dot - set->key) : (int)sizeof table - 1, set->key);
	if (is_bare(table)) {
		char whole[2 * HD_DOTTED_CAP];
		snprintf(whole, sizeof whole, "elastic.%.*s", HD_DOTTED_CAP, set->key);
		return read_set(reader, &(struct hd_job_set){ .key = whole, .text = set->text,
			.origin = set->origin });
	}
	const bool graph = !strcmp(table, "graph");
	if (graph && dot && !strncmp(dot + 1, "functions.", 10))
		return read_set(reader, &(struct hd_job_set){ .key = dot + 1, .text = set->text,
			.origin = set->origin });
	if (graph && dot)
		return hd_job_read_graph_key(reader, dot + 1, set->text);
	if (!graph && !is_table(table))
		return unknown_table(reader, table);
	if (!dot && !strcmp(table, "loss") && *set->text == '[')
		return read_set(reader, &(struct hd_job_set){ .key = "loss.sum", .text = set->text,
			.origin = set->origin });
	if (!dot)
		return hd_job_refuse(reader, "%s is a table; name one of its keys, as %s.KEY=VALUE", table,
			table);
	enum found found = find_key(table, dot + 1, &key);
	const char *sub = strchr(dot + 1, '.');
	if (found == NOT_FOUND && sub) {
		char parent[HD_DOTTED_CAP];
		snprintf(parent, sizeof parent, "%.*s", (int)(sub - dot - 1), dot + 1);
		if (find_key(table, parent, &key) == IS_KEY && hd_job_keys[key].type == HD_T_ARGS)
			return hd_job_read_arg(reader, key, sub + 1, set->text);
	}
	if (found == IS_SUBTABLE)
		return hd_job_refuse(reader, "%s is a table; name one of its keys", set->key);
	if (found == NOT_FOUND)
		return unknown_key(reader, table, dot + 1);
	enum hd_err err = read_text(reader, key, set->text);
	reader->job->value[key].line = reader->job->value[key].column = 0;
	return err;
}

static enum hd_err read_defaults(struct hd_job_reader *reader)
{
	enum hd_err err = HD_OK;

	reader->origin = HD_FROM_DEFAULT;
	for (int k = 0; k < HD_JOB_NKEYS && !err; k++) {
		hd_job_at(reader, (enum hd_job_key)k);
		if (hd_job_keys[k].def)
			err = read_text(reader, (enum hd_job_key)k, hd_job_keys[k].def);
	}
	return err;
}

static enum hd_err check_required(struct hd_job_reader *reader)
{
	char dotted[HD_DOTTED_CAP];

	if (reader->is_graph && reader->job->value[HD_JOB_GLOBAL].origin == HD_FROM_DEFAULT)
		return hd_fail(reader->diag, HD_E_INVAL, "%s: the prepared graph of the table graph is not "
			"read here: write model, data and batch", reader->job->file);
	for (int k = 0; k < HD_JOB_NKEYS; k++)
		if (!hd_job_keys[k].def && reader->job->value[k].origin == HD_FROM_DEFAULT)
			return hd_fail(reader->diag, HD_E_INVAL, "%s: %s is missing (%s); it has no default",
				reader->job->file,
				hd_job_dotted((enum hd_job_key)k, dotted), hd_job_keys[k].about);
	return HD_OK;
}

static enum hd_err read_sets(struct hd_job_reader *reader, const struct hd_job_set *set, uint32_t nsets)
{
	enum hd_err err = HD_OK;

	for (int origin = HD_FROM_FILE; origin <= HD_FROM_OPTION; origin++)
		for (uint32_t i = 0; i < nsets && !err; i++)
			if ((int)set[i].origin == origin)
				err = read_set(reader, &set[i]);
	return err;
}

enum hd_err hd_job_parse(struct hd_job *out, const char *file, const char *bytes, size_t len,
	const struct hd_job_set *set, uint32_t nsets, struct hd_arena *arena, struct hd_diag *diag,
	struct hd_text *warnings)
{
	struct hd_job *job = hd_arena_take(arena, 1, sizeof *job);
	struct hd_text canonical;
	struct hd_job_reader reader = { .job = job, .arena = arena, .diag = diag, .warnings = warnings };

	struct hd_job_value *standard = hd_arena_take(arena, HD_JOB_NKEYS, sizeof *standard);
	if (!job || !standard || !(job->file = hd_arena_text(arena, file, strlen(file))))
		return hd_fail(diag, HD_E_NOMEM, "no memory for a job");
	enum hd_err err = read_defaults(&reader);
	memcpy(standard, job->value, sizeof job->value);
	reader.standard = standard;
	err = err ? err : read_file(&reader, bytes, len);
	err = err ? err : read_sets(&reader, set, nsets);
	err = err ? err : check_required(&reader);
	err = err ? err : hd_job_check(&reader);
	if (err)
		return err;
	hd_text_init(&canonical, arena);
	hd_job_canonical(job, &canonical);
	if (canonical.full)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the canonical form of a job");
	job->hash = hd_hash(canonical.at, canonical.len);
	*out = *job;
	return HD_OK;
}
