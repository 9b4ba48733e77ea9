#include "job/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "job/int.h"

/* Keys of the table: arguments of the model, or other keys of the job. */
enum where { ARGUMENT, PREPARED, MODEL, INTERVALS, OF_BATCH, PRICES, TABLE, ONLY, ABSENT };
static const struct { const char *name; enum where where; const char *only; } keys[] = {
	{ "prepared", PREPARED, NULL }, { "model", MODEL, NULL }, { "intervals", INTERVALS, NULL },
	{ "norm", ARGUMENT, NULL }, { "order", ARGUMENT, NULL }, { "hidden", ARGUMENT, NULL },
	{ "layers", ARGUMENT, NULL }, { "heads", ARGUMENT, NULL }, { "out_heads", ARGUMENT, NULL },
	{ "slope", ARGUMENT, NULL }, { "dropout", ARGUMENT, NULL }, { "act", ARGUMENT, NULL },
	{ "bias", ARGUMENT, NULL }, { "rows", ARGUMENT, NULL },
	{ "mode", OF_BATCH, NULL }, { "staleness", OF_BATCH, NULL }, { "cells", OF_BATCH, NULL },
	{ "replay", OF_BATCH, NULL },
	{ "functions", TABLE, NULL }, { "price_file", PRICES, NULL },
	{ "features", ONLY, "fp32" },
	{ "close.metric", OF_BATCH, NULL }, { "close.target", OF_BATCH, NULL },
	{ "close.margin", OF_BATCH, NULL }, { "close.every", OF_BATCH, NULL }, { "close", TABLE, NULL },
	{ "boundary_sample", ABSENT, NULL }, { "skip", ABSENT, NULL },
};
enum { NKEYS = sizeof keys / sizeof *keys };

/* Of a job of the short form: what its table has by that name, or a row by that key or by the one of the long
 * form that it stands for; NULL: it is of the long form, or says nothing. */
static const char *given(const char *file, const char *bytes, size_t len, const struct hd_job_sets *sets,
	const char *name, const char *instead)
{
	const struct hd_yaml_node *root = NULL, *table, *node;
	const char *text;
	char key[64];

	if (hd_yaml_parse(sets->arena, file, bytes, len, &root, NULL) ||
		!(table = hd_yaml_find(root, "graph")))
		return NULL;
	node = hd_yaml_find(table, name);
	text = node ? node->text : NULL;
	snprintf(key, sizeof key, "graph.%s", name);
	for (int origin = HD_FROM_ENV; origin <= HD_FROM_OPTION; origin++)
		for (uint32_t i = 0; i < sets->n; i++)
			if ((int)sets->set[i].origin == origin &&
				(!strcmp(sets->set[i].key, key) || !strcmp(sets->set[i].key, instead)))
				text = sets->set[i].text;
	return text;
}

const char *hd_job_graph_file(const char *file, const char *bytes, size_t len, const struct hd_job_sets *sets)
{
	return given(file, bytes, len, sets, "prepared", "data.path");
}

/* 0: it is no number of intervals. */
static uint32_t intervals_of(const char *text)
{
	char *end = NULL;
	const unsigned long n = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;

	return end && *end == '\0' && n <= INT32_MAX ? (uint32_t)n : 0;
}

uint32_t hd_job_graph_intervals(const char *file, const char *bytes, size_t len,
	const struct hd_job_sets *sets)
{
	const char *text = given(file, bytes, len, sets, "intervals", "batch.virtual_nodes");
	const uint32_t n = text ? intervals_of(text) : 1;

	return n ? n : 1;
}

uint64_t hd_job_graph_slots(uint64_t vertices, uint64_t edges)
{
	return vertices ? (edges + vertices + vertices - 1) / vertices : 0;
}

enum hd_err hd_job_graph_sets(struct hd_job_sets *sets, const struct hd_job_graph *graph,
	struct hd_diag *diag)
{
	const struct { const char *key; uint64_t n; } row[HD_JOB_GRAPH_SETS] = {
		{ "model.args.input", graph->width }, { "model.args.classes", graph->classes },
		{ "model.args.slots", hd_job_graph_slots(graph->vertices, graph->edges) },
		{ "batch.global", graph->rows },
	};

	for (size_t i = 0; i < HD_JOB_GRAPH_SETS; i++) {
		struct hd_text text;
		hd_text_init(&text, sets->arena);
		hd_text_addf(&text, "%" PRIu64, row[i].n);
		if (text.full || sets->n == sets->cap)
			return hd_fail(diag, HD_E_NOMEM, "no memory for what a prepared graph says");
		sets->set[sets->n++] = (struct hd_job_set){ .key = row[i].key, .text = text.at,
			.origin = HD_FROM_FILE };
	}
	return HD_OK;
}

const char *hd_job_graph_key(uint32_t i)
{
	for (size_t k = 0; k < NKEYS; k++)
		if (keys[k].where != ABSENT && keys[k].where != TABLE && !strchr(keys[k].name, '.') &&
			i-- == 0)
			return keys[k].name;
	return NULL;
}

static enum hd_err put(struct hd_job_reader *reader, enum hd_job_key key, const char *text)
{
	return hd_job_read(reader, key, &(struct hd_yaml_node){ .kind = HD_YAML_SCALAR, .text = text,
		.text_len = strlen(text), .quoted = true });
}

/* The key of the same name in the table batch. */
static enum hd_job_key of_batch(const char *name)
{
	enum hd_job_key key = HD_JOB_GLOBAL;

	while (strcmp(hd_job_keys[key].table, "batch") != 0 || strcmp(hd_job_keys[key].key, name) != 0)
		key++;
	return key;
}

/* What steps go back to sync by also ends the run. */
static enum hd_err put_batch(struct hd_job_reader *reader, const char *name, const char *text)
{
	const enum hd_job_key key = of_batch(name);
	enum hd_err err = put(reader, key, text);

	if (!err && key == HD_JOB_CLOSE_METRIC)
		err = put(reader, HD_JOB_METRIC, text);
	if (!err && key == HD_JOB_CLOSE_TARGET)
		err = put(reader, HD_JOB_TARGET, text);
	return err;
}

static enum hd_err unknown(const struct hd_job_reader *reader, const char *name)
{
	struct hd_near near = hd_near_to(name);

	for (size_t i = 0; i < NKEYS; i++)
		if (keys[i].where != ABSENT)
			hd_near_offer(&near, keys[i].name);
	return hd_job_refuse(reader, "there is no key graph.%.60s%s%s%s", name,
		near.best ? "; did you mean graph." : "", near.best ? near.best : "",
		near.best ? "?" : " (docs/graphs.md lists them)");
}

enum hd_err hd_job_read_graph_key(struct hd_job_reader *reader, const char *name, const char *text)
{
	struct hd_text use;
	size_t i = 0;

	while (i < NKEYS && strcmp(keys[i].name, name) != 0)
		i++;
	if (i == NKEYS)
		return unknown(reader, name);
	switch (keys[i].where) {
	case ARGUMENT:
		return hd_job_read_arg(reader, HD_JOB_MODEL_ARGS, keys[i].name, text);
	case PREPARED:
		return put(reader, HD_JOB_DATA_PATH, text);
	case MODEL:
		hd_text_init(&use, reader->arena);
		hd_text_addf(&use, "builtin:%s", text);
		return use.full ? hd_fail(reader->diag, HD_E_NOMEM, "no memory for a job") :
			put(reader, HD_JOB_MODEL, use.at);
	case OF_BATCH:
		return put_batch(reader, name, text);
	case INTERVALS:
		return intervals_of(text) ? put(reader, HD_JOB_VNS, text) : hd_job_refuse(reader,
			"graph.intervals: %.60s is no number of intervals; set it to 1, or to a power of two "
			"up to what the graph was prepared with", text);
	case PRICES:
		return put(reader, HD_JOB_FN_PRICE, text);
	case TABLE:
		return hd_job_refuse(reader, "graph.%s is a table; name one of its keys, as graph.%s.KEY",
			name, name);
	case ONLY:
		return !strcmp(text, keys[i].only) ? HD_OK : hd_job_refuse(reader,
			"graph.%s: %.60s is not there yet; set it to %s, or leave it out", name, text,
			keys[i].only);
	case ABSENT:
	default:
		return hd_job_refuse(reader, "graph.%s is not there yet; leave it out", name);
	}
}

static enum hd_err read_close(struct hd_job_reader *reader, const struct hd_yaml_node *table)
{
	enum hd_err err = HD_OK;
	char name[64];

	for (const struct hd_yaml_node *node = table->first; node && !err; node = node->next) {
		hd_job_place(reader, &node->at);
		snprintf(name, sizeof name, "close.%s", node->key);
		err = node->text ? hd_job_read_graph_key(reader, name, node->text) : hd_job_refuse(reader,
			"graph.%.60s is one value", name);
	}
	return err;
}

enum hd_err hd_job_read_graph(struct hd_job_reader *reader, const struct hd_yaml_node *table)
{
	enum hd_err err = HD_OK;

	reader->is_graph = true;
	err = err ? err : put(reader, HD_JOB_DATA_KIND, "graph");
	err = err ? err : put(reader, HD_JOB_ORDER, "sequential");
	err = err ? err : put(reader, HD_JOB_VNS, "1");
	for (const struct hd_yaml_node *node = table->first; node && !err; node = node->next) {
		hd_job_place(reader, &node->at);
		if (!strcmp(node->key, "functions"))
			err = hd_job_read_table(reader, node);
		else if (!strcmp(node->key, "close") && !node->text)
			err = read_close(reader, node);
		else
			err = node->text ? hd_job_read_graph_key(reader, node->key, node->text) :
				hd_job_refuse(reader, "graph.%.60s is one value", node->key);
	}
	if (!err && (!hd_yaml_find(table, "prepared") || !hd_yaml_find(table, "model"))) {
		hd_job_place(reader, &table->at);
		err = hd_job_refuse(reader,
			"graph needs prepared: FILE (heddle data prepare-graph writes it) and model: gcn, "
			"gat or sage-mean");
	}
	return err;
}

enum hd_err hd_job_check_graph(struct hd_job_reader *reader, const struct hd_yaml_node *root)
{
	static const char *const instead[] = { "model", "data", "batch" };
	const struct hd_yaml_node *table = hd_yaml_find(root, "graph");

	for (size_t i = 0; table && i < sizeof instead / sizeof *instead; i++)
		if (hd_yaml_find(root, instead[i])) {
			hd_job_place(reader, &table->key_at);
			return hd_job_refuse(reader,
				"graph stands for model, data and batch: leave %s out, or write all three in "
				"place of graph", instead[i]);
		}
	const struct hd_yaml_node *beside = table ? hd_yaml_find(table, "functions") : NULL;
	beside = beside || !table ? beside : hd_yaml_find(root, "functions");
	if (beside && hd_yaml_find(table, "price_file") && hd_yaml_find(beside, "price_file")) {
		hd_job_place(reader, &hd_yaml_find(table, "price_file")->key_at);
		return hd_job_refuse(reader, "graph.price_file and functions.price_file are one key: leave "
			"one of them out");
	}
	if (table && hd_yaml_find(table, "functions") && hd_yaml_find(root, "functions")) {
		hd_job_place(reader, &hd_yaml_find(root, "functions")->key_at);
		return hd_job_refuse(reader, "functions and graph.functions are one table: leave one of them "
			"out");
	}
	return HD_OK;
}
