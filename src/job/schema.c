#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "job/int.h"

/* What the table of keys says, for editors (JSON Schema, draft 2020-12) and for people (a
 * template). Both are made from the rows alone. */

static void put_words(struct hd_json_writer *w, const char *words)
{
	const char *word;
	size_t len;

	hd_json_open_array(w, "enum");
	for (uint32_t i = 0; (word = hd_job_word(words, i, &len)); i++)
		hd_json_put_bytes(w, NULL, word, len);
	hd_json_close(w);
}

static void put_range(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	if (row->hi <= row->lo)
		return;
	hd_json_put_f64(w, "minimum", row->lo);
	hd_json_put_f64(w, "maximum", row->hi);
}

/* A duration, or one of the words. */
static void put_time(struct hd_json_writer *w, const struct hd_job_key_row *row, const char *pattern)
{
	if (*row->words) {
		hd_json_open_array(w, "anyOf");
		hd_json_open_object(w, NULL);
		put_words(w, row->words);
		hd_json_close(w);
		hd_json_open_object(w, NULL);
	}
	hd_json_put_text(w, "type", "string");
	hd_json_put_text(w, "pattern", pattern);
	if (*row->words) {
		hd_json_close(w);
		hd_json_close(w);
	}
}

/* Numbers may carry a suffix (2k, 256 MiB), which only a string can. */
static void put_scalar(struct hd_json_writer *w, const struct hd_job_key_row *row, const char *type,
	const char *pattern)
{
	hd_json_open_array(w, "anyOf");
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "type", type);
	put_range(w, row);
	hd_json_close(w);
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "type", "string");
	hd_json_put_text(w, "pattern", pattern);
	hd_json_close(w);
	if (*row->words) {
		hd_json_open_object(w, NULL);
		put_words(w, row->words);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_array(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	hd_json_put_text(w, "type", "array");
	hd_json_put_i64(w, "maxItems", row->hi > row->lo ? HD_JOB_MAX_LIST : 0);
	hd_json_open_object(w, "items");
	hd_json_put_text(w, "type", "number");
	put_range(w, row);
	hd_json_close(w);
}

static void put_texts(struct hd_json_writer *w)
{
	hd_json_put_text(w, "type", "array");
	hd_json_put_i64(w, "maxItems", HD_JOB_MAX_NAMES);
	hd_json_open_object(w, "items");
	hd_json_put_text(w, "type", "string");
	hd_json_put_i64(w, "minLength", 1);
	hd_json_close(w);
}

/* A list, or a word that stands for one. */
static void put_names(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	if (!*row->words) {
		put_texts(w);
		return;
	}
	hd_json_open_array(w, "anyOf");
	hd_json_open_object(w, NULL);
	put_texts(w);
	hd_json_close(w);
	hd_json_open_object(w, NULL);
	put_words(w, row->words);
	hd_json_close(w);
	hd_json_close(w);
}

static void put_calls(struct hd_json_writer *w)
{
	hd_json_put_text(w, "type", "array");
	hd_json_put_i64(w, "maxItems", HD_JOB_MAX_CALLS);
	hd_json_open_object(w, "items");
	hd_json_open_array(w, "type");
	hd_json_put_text(w, NULL, "string");
	hd_json_put_text(w, NULL, "object");
	hd_json_close(w);
	hd_json_put_i64(w, "maxProperties", 1);
	hd_json_close(w);
}

static void put_list(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	if (!*row->words) {
		put_array(w, row);
		return;
	}
	hd_json_open_array(w, "anyOf");
	hd_json_open_object(w, NULL);
	put_array(w, row);
	hd_json_close(w);
	hd_json_open_object(w, NULL);
	put_words(w, row->words);
	hd_json_close(w);
	hd_json_close(w);
}

static void put_split(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	char name[HD_DOTTED_CAP];
	const char *word;
	size_t len;

	hd_json_put_text(w, "type", "object");
	hd_json_put_bool(w, "additionalProperties", false);
	hd_json_open_object(w, "properties");
	for (uint32_t i = 0; (word = hd_job_word(row->words, i, &len)); i++) {
		snprintf(name, sizeof name, "%.*s", (int)len, word);
		hd_json_open_object(w, name);
		hd_json_put_text(w, "type", "number");
		put_range(w, row);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_type(struct hd_json_writer *w, const struct hd_job_key_row *row)
{
	switch ((enum hd_job_type)row->type) {
	case HD_T_TEXT: case HD_T_FILE: hd_json_put_text(w, "type", "string"); break;
	case HD_T_WORD:  put_words(w, row->words); break;
	case HD_T_INT:   put_scalar(w, row, "integer", "^-?[0-9]+[kMG]?$"); break;
	case HD_T_NUM:   put_scalar(w, row, "number", "^-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"); break;
	case HD_T_SIZE:  put_scalar(w, row, "integer", "^[0-9]+ ?([KMG]iB)?$"); break;
	case HD_T_EVERY: put_time(w, row, "^[0-9]+[kMG]? ?(ms|s|min|h|d|steps?)$"); break;
	case HD_T_SPAN:  put_time(w, row, "^[0-9]+[kMG]? ?(ms|s|min|h|d)$"); break;
	case HD_T_LIST:  put_list(w, row); break;
	case HD_T_NAMES: put_names(w, row); break;
	case HD_T_GROUPS: hd_job_schema_groups(w); break;
	case HD_T_TERMS: hd_job_schema_terms(w); break;
	case HD_T_CALLS: put_calls(w); break;
	case HD_T_ARGS:  hd_json_put_text(w, "type", "object"); break;
	case HD_T_SPLIT: put_split(w, row); break;
	}
}

static void put_key(struct hd_json_writer *w, const char *name, const struct hd_job_key_row *row)
{
	hd_json_open_object(w, name);
	hd_json_put_text(w, "description", row->about);
	if (row->def)
		hd_json_put_text(w, "x-default", row->def);
	hd_json_put_bool(w, "x-result", row->result != 0);
	put_type(w, row);
	hd_json_close(w);
}

static void open_table(struct hd_json_writer *w, const char *name)
{
	hd_json_open_object(w, name);
	hd_json_put_text(w, "type", "object");
	hd_json_put_bool(w, "additionalProperties", false);
	hd_json_open_object(w, "properties");
}

static void close_table(struct hd_json_writer *w)
{
	hd_json_close(w);
	hd_json_close(w);
}

/* The length of the part before the dot; 0 without one. */
static size_t inside(const struct hd_job_key_row *row)
{
	const char *dot = strchr(row->key, '.');

	return dot ? (size_t)(dot - row->key) : 0;
}

static bool same_inside(const struct hd_job_key_row *a, const struct hd_job_key_row *b)
{
	return inside(a) && inside(a) == inside(b) && !strcmp(a->table, b->table) &&
		!strncmp(a->key, b->key, inside(a));
}

/* The tables without a default, or the one that stands for them. */
static void put_required(struct hd_json_writer *w)
{
	hd_json_open_array(w, "anyOf");
	hd_json_open_object(w, NULL);
	hd_json_open_array(w, "required");
	for (const struct hd_job_key_row *row = hd_job_keys; row < hd_job_keys + HD_JOB_NKEYS; row++)
		if (!row->def)
			hd_json_put_text(w, NULL, row->table);
	hd_json_close(w);
	hd_json_close(w);
	hd_json_open_object(w, NULL);
	hd_json_open_array(w, "required");
	hd_json_put_text(w, NULL, "graph");
	hd_json_close(w);
	hd_json_close(w);
	hd_json_close(w);
}

/* Each key is one value; what it may be the model says, or the reader of graph.c. */
static void put_graph(struct hd_json_writer *w)
{
	static const char *const types[] = { "string", "number", "boolean" };
	const char *name;

	open_table(w, "graph");
	for (uint32_t i = 0; (name = hd_job_graph_key(i)); i++) {
		hd_json_open_object(w, name);
		hd_json_open_array(w, "type");
		for (size_t k = 0; k < sizeof types / sizeof *types; k++)
			hd_json_put_text(w, NULL, types[k]);
		hd_json_close(w);
		hd_json_close(w);
	}
	open_table(w, "close");
	for (const struct hd_job_key_row *row = hd_job_keys; row < hd_job_keys + HD_JOB_NKEYS; row++)
		if (!strcmp(row->table, "batch") && !strncmp(row->key, "close.", 6))
			put_key(w, row->key + 6, row);
	close_table(w);
	open_table(w, "functions");
	for (const struct hd_job_key_row *row = hd_job_keys; row < hd_job_keys + HD_JOB_NKEYS; row++)
		if (!strcmp(row->table, "functions"))
			put_key(w, row->key, row);
	close_table(w);
	close_table(w);
}

/* A key of `elastic` that stands alone, or a table of its keys. */
static void put_bare(struct hd_json_writer *w, const char *name)
{
	bool table = false;

	for (const struct hd_job_key_row *row = hd_job_keys; row < hd_job_keys + HD_JOB_NKEYS; row++) {
		const size_t len = inside(row);
		if (strcmp(row->table, "elastic") != 0)
			continue;
		if (!len && !strcmp(row->key, name))
			put_key(w, name, row);
		if (!len || strlen(name) != len || strncmp(row->key, name, len) != 0)
			continue;
		if (!table)
			open_table(w, name);
		table = true;
		put_key(w, row->key + len + 1, row);
	}
	if (table)
		close_table(w);
}

void hd_job_schema(struct hd_text *text)
{
	struct hd_json_writer w;
	char sub[HD_DOTTED_CAP];

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
	hd_json_put_text(&w, "title", "heddle job");
	hd_json_put_text(&w, "type", "object");
	hd_json_put_bool(&w, "additionalProperties", false);
	put_required(&w);
	hd_json_open_object(&w, "properties");
	for (const struct hd_job_key_row *row = hd_job_keys, *end = row + HD_JOB_NKEYS; row < end; row++) {
		size_t len = inside(row);
		if (row == hd_job_keys || strcmp(row[-1].table, row->table) != 0)
			open_table(&w, row->table);
		if (len && !same_inside(row - 1, row)) {
			snprintf(sub, sizeof sub, "%.*s", (int)len, row->key);
			open_table(&w, sub);
		}
		put_key(&w, row->key + (len ? len + 1 : 0), row);
		if (len && (row + 1 == end || !same_inside(row, row + 1)))
			close_table(&w);
		if (row + 1 == end || strcmp(row[1].table, row->table) != 0)
			close_table(&w);
	}
	for (uint32_t i = 0; hd_job_bare[i]; i++)
		put_bare(&w, hd_job_bare[i]);
	put_graph(&w);
	hd_json_close(&w);
	hd_json_close(&w);
}

/* A template must train at once, so what has no default gets a value here. */
static const char *sample_of(const struct hd_job_key_row *row)
{
	static const struct { enum hd_job_key key; const char *value; } samples[] = {
		{ HD_JOB_MODEL, "builtin:mlp" }, { HD_JOB_DATA_KIND, "synthetic" }, { HD_JOB_GLOBAL, "64" }, { HD_JOB_STEPS, "1000" },
	};

	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
		if (row == &hd_job_keys[samples[i].key])
			return samples[i].value;
	return row->def;
}

static void template_comment(const struct hd_job_key_row *row, struct hd_text *text)
{
	static const char column[] = "                                        ";
	const char *line = strrchr(text->at, '\n');
	size_t width = text->len - (line ? (size_t)(line - text->at) + 1 : 0);

	hd_text_add(text, width < sizeof column - 1 ? column + width : " ");
	hd_text_addf(text, "# %s %s", row->result ? "R" : " ", row->about);
	if (row->type == HD_T_WORD)
		hd_text_addf(text, ": %s", row->words);
	hd_text_add(text, "\n");
}

void hd_job_template(struct hd_text *text)
{
	hd_text_add(text,
		"# A job: what is computed, and never where. Keys marked R fix the result and make the\n"
			  "# job hash; all others may change at any resume. All lines but model, data, "
			  "batch and\n"
			  "# job.steps may be left out.\n");
	for (const struct hd_job_key_row *row = hd_job_keys, *end = row + HD_JOB_NKEYS; row < end; row++) {
		size_t len = inside(row);
		if (row == hd_job_keys || strcmp(row[-1].table, row->table) != 0)
			hd_text_addf(text, "\n%s:\n", row->table);
		if (len && !same_inside(row - 1, row))
			hd_text_addf(text, "  %.*s:\n", (int)len, row->key);
		hd_text_addf(text, "  %s%s: %s", len ? "  " : "", row->key + (len ? len + 1 : 0),
			sample_of(row));
		template_comment(row, text);
	}
}
