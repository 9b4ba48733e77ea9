#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/yaml.h"
#include "job/int.h"
#include "job/testing.h"

/* The schema as an editor takes it: jobs are compared with it by the rules of JSON Schema, in plain C. */

static char where[96];                    /* the member that did not fit */

static bool fits(const struct hd_yaml_node *n, const struct hd_json *schema);

static bool is_type(const struct hd_yaml_node *n, const char *type)
{
	char *end = NULL;

	if (n->kind != HD_YAML_SCALAR)
		return !strcmp(type, n->kind == HD_YAML_SEQ ? "array" : "object");
	const double number = strtod(n->text, &end);
	const bool numeric = !n->quoted && n->text_len && !*end, logic = !n->quoted &&
		(!strcmp(n->text, "true") || !strcmp(n->text, "false"));
	return !strcmp(type, "integer") ? numeric && number == (double)(long long)number :
		!strcmp(type, "number") ? numeric : !strcmp(type, "boolean") ? logic :
		!strcmp(type, "string") && !numeric && !logic;
}

static bool one_of(const struct hd_yaml_node *n, const struct hd_json *list, bool types)
{
	const char *text;

	for (size_t i = 0; i < hd_json_count(list); i++) {
		assert_int_equal(hd_json_as_text(hd_json_item(list, i), &text, &diag), HD_OK);
		if (types ? is_type(n, text) : n->kind == HD_YAML_SCALAR && !strcmp(n->text, text))
			return true;
	}
	return false;
}

static bool any_of(const struct hd_yaml_node *n, const struct hd_json *list)
{
	for (size_t i = 0; i < hd_json_count(list); i++)
		if (fits(n, hd_json_item(list, i)))
			return true;
	return false;
}

static bool matches(const struct hd_yaml_node *n, const struct hd_json *pattern)
{
	const char *text;
	regex_t regex;

	assert_int_equal(hd_json_as_text(pattern, &text, &diag), HD_OK);
	assert_int_equal(regcomp(&regex, text, REG_EXTENDED | REG_NOSUB), 0);
	const bool ok = n->kind != HD_YAML_SCALAR || regexec(&regex, n->text, 0, NULL, 0) == 0;
	regfree(&regex);
	return ok;
}

static bool beyond(const struct hd_yaml_node *n, const struct hd_json *bound, double sign)
{
	double most;

	assert_int_equal(hd_json_as_f64(bound, &most, &diag), HD_OK);
	return is_type(n, "number") && sign * strtod(n->text, NULL) > sign * most;
}

static bool members_fit(const struct hd_yaml_node *n, const struct hd_json *schema)
{
	const struct hd_json *properties = hd_json_find(schema, "properties");

	for (const struct hd_yaml_node *c = n->first; c && n->kind == HD_YAML_MAP; c = c->next) {
		const struct hd_json *member = properties ? hd_json_find(properties, c->key) : NULL;
		if (member ? !fits(c, member) : hd_json_find(schema, "additionalProperties") != NULL) {
			snprintf(where, sizeof where, "%s, line %u", c->key, c->key_at.line);
			return false;
		}
	}
	return true;
}

static bool has_all(const struct hd_yaml_node *n, const struct hd_json *required)
{
	const char *key;

	for (size_t i = 0; i < hd_json_count(required); i++) {
		assert_int_equal(hd_json_as_text(hd_json_item(required, i), &key, &diag), HD_OK);
		if (!hd_yaml_find(n, key))
			return false;
	}
	return true;
}

static bool fits(const struct hd_yaml_node *n, const struct hd_json *schema)
{
	const struct hd_json *at;
	const char *type;

	if ((at = hd_json_find(schema, "type")) && hd_json_kind(at) == HD_JSON_TEXT) {
		assert_int_equal(hd_json_as_text(at, &type, &diag), HD_OK);
		if (!is_type(n, type))
			return false;
	} else if (at && !one_of(n, at, true)) {
		return false;
	}
	if (((at = hd_json_find(schema, "enum")) && !one_of(n, at, false)) ||
		((at = hd_json_find(schema, "anyOf")) && !any_of(n, at)) ||
		((at = hd_json_find(schema, "pattern")) && !matches(n, at)) ||
		((at = hd_json_find(schema, "minimum")) && beyond(n, at, -1)) ||
		((at = hd_json_find(schema, "maximum")) && beyond(n, at, 1)) ||
		((at = hd_json_find(schema, "required")) && !has_all(n, at)))
		return false;
	for (const struct hd_yaml_node *c = n->first; c && n->kind == HD_YAML_SEQ; c = c->next)
		if ((at = hd_json_find(schema, "items")) && !fits(c, at))
			return false;
	return members_fit(n, schema);
}

static const struct hd_json *schema(void)
{
	const struct hd_json *root;
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_job_schema(&text);
	CHECK(hd_json_parse(&arena, "schema", text.at, text.len, &root, &diag) == HD_OK, "%s", diag.text);
	return root;
}

static const struct hd_yaml_node *yaml(const char *name, const char *text, size_t len)
{
	const struct hd_yaml_node *root = NULL;

	CHECK(hd_yaml_parse(&arena, name, text, len, &root, &diag) == HD_OK, "%s", diag.text);
	where[0] = '\0';
	return root;
}

static void every_example_fits(void **state)
{
	const char *source = getenv("SOURCE_DIR");
	const struct hd_json *root = schema();
	char path[512], text[8192];
	size_t njobs = 0;
	glob_t files;

	(void)state;
	if (!source)
		SKIP("SOURCE_DIR does not say where the examples are");
	snprintf(path, sizeof path, "%s/examples/*.yaml", source);
	assert_int_equal(glob(path, 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		FILE *file = fopen(files.gl_pathv[i], "r");
		assert_non_null(file);
		const size_t len = fread(text, 1, sizeof text, file);
		fclose(file);
		CHECK(len < sizeof text, "%s is longer", files.gl_pathv[i]);
		const struct hd_yaml_node *job_of = yaml(files.gl_pathv[i], text, len);
		const struct hd_yaml_node *keys = hd_yaml_find(job_of, "job");
		if (!keys || keys->kind != HD_YAML_MAP)
			continue;         /* a cluster, or a sweep, which names its job's file */
		CHECK(fits(job_of, root), "%s: %s", files.gl_pathv[i], where);
		njobs++;
	}
	assert_true(njobs > 8);
	globfree(&files);
}

static void a_job_fits_or_does_not(void **state)
{
	static const struct { const char *text; bool fits; } cases[] = {
		{ SMALLEST, true }, { SMALLEST "checkpoint: {every: auto}\n", true },
		{ SMALLEST "checkpoint: {every: 200 steps}\n", true },
		{ SMALLEST "checkpoint: {every: never}\n", false },
		{ SMALLEST "elastic: {notice: {every: auto}}\n", true },
		/* keys of elastic that stand alone, too */
		{ SMALLEST "redundancy: lazy\nresilience: auto\npause_max: 2 s\n", true },
		{ SMALLEST "notice: {source: ec2, approve: true}\n", true },
		{ SMALLEST "redundancy: lasy\n", false }, { SMALLEST "pause_max: soon\n", false },
		{ SMALLEST "notice: ec2\n", false }, { SMALLEST "notice: {sourc: ec2}\n", false },
		{ SMALLEST "min: 2\n", false },
		{ SMALLEST "optim: {groups: [{params: [a], lr: 1e-3, freeze: true}]}\n", true },
		{ SMALLEST "optim: {groups: [{decay: 0}]}\n", false },
		{ SMALLEST "optim: {groups: [{params: [a], decya: 0}]}\n", false },
		{ SMALLEST "optim: {groups: [{params: [a], decay: -1}]}\n", false },
		{ SMALLEST "optim: {no_decay: norms-and-biases}\n", true },
		{ SMALLEST "optim: {no_decay: [\"*.bias\"]}\n", true }, { SMALLEST "optim: {no_decay: norms}\n", false },
		{ "graph: {prepared: g, model: gat, intervals: 1, hidden: 8, bias: false}\n", true },
		{ "graph: {prepared: g, model: gat, hiden: 8}\n", false },
		{ "graph: {prepared: g, model: gat, staleness: 2}\n", true },
		{ "graph: {prepared: g, model: gat, functions: {kind: pool, size: 2}}\n", true },
		{ "graph: {prepared: g, model: gat, functions: {kinds: pool}}\n", false },
		{ "graph: {prepared: g, model: gat, functions: pool}\n", false },
		{ "graph: {prepared: [g], model: gat}\n", false },
		{ "job: {steps: 10}\nmodel: {use: builtin:mlp}\n", false }, { "grap: {prepared: g}\n", false },
	};
	const struct hd_json *root = schema();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK(fits(yaml("case", cases[i].text, strlen(cases[i].text)), root) == cases[i].fits,
			"%s (%s)", cases[i].text, where);
}

/* What the reader takes bare is in the schema, whichever key becomes one. */
static void every_key_that_stands_alone_is_in_it(void **state)
{
	const struct hd_json *properties = hd_json_find(schema(), "properties");

	(void)state;
	for (uint32_t i = 0; hd_job_bare[i]; i++)
		CHECK(hd_json_find(properties, hd_job_bare[i]), "%s", hd_job_bare[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_example_fits),
		cmocka_unit_test(a_job_fits_or_does_not),
		cmocka_unit_test(every_key_that_stands_alone_is_in_it),
	};

	hd_arena_init(&arena, 0);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hd_arena_finish(&arena);
	return failed;
}
