#include "cost/topology.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "base/yaml.h"

enum { PS_PER_NS = 1000 };

struct cluster_reader {
	const char *file;
	struct hd_cluster *cluster;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

__attribute__((format(printf, 3, 4)))
static enum hd_err refuse(const struct cluster_reader *r, struct hd_yaml_mark at, const char *fmt, ...)
{
	char what[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return hd_fail(r->diag, HD_E_INPUT, "%.150s:%u:%u: %s", r->file, at.line, at.column, what);
}

static enum hd_err no_memory(const struct cluster_reader *r) { return hd_fail(r->diag, HD_E_NOMEM,
	"no memory to read %.150s", r->file); }

static const char *need_scalar(const struct hd_yaml_node *node) { return node->kind == HD_YAML_SCALAR &&
	node->text_len ? node->text : NULL; }

static enum hd_err read_f64(const struct cluster_reader *r, const struct hd_yaml_node *node, double min,
	double max,
	double *out)
{
	const char *text = need_scalar(node);

	if (!text || hd_num_f64(text, min, max, out, NULL))
		return refuse(r, node->at, "%s is a number from %g to %g%s%.60s", node->key, min, max,
			text ? ", not " : "", text ? text : "");
	return HD_OK;
}

static enum hd_err read_count(const struct cluster_reader *r, const struct hd_yaml_node *node, uint32_t max,
	uint32_t *out)
{
	const char *text = need_scalar(node);
	uint64_t n = 0;

	if (!text || hd_num_u64(text, max, &n, NULL) || n == 0)
		return refuse(r, node->at, "%s is a whole number from 1 to %u%s%.60s", node->key, max,
			text ? ", not " : "", text ? text : "");
	*out = (uint32_t)n;
	return HD_OK;
}

static enum hd_err read_memory(const struct cluster_reader *r, const struct hd_yaml_node *node, int64_t *out)
{
	const char *text = need_scalar(node);
	uint64_t n = 0;

	if (!text || hd_num_size(text, HD_CLUSTER_MEMORY_MAX, &n, NULL) || n == 0)
		return refuse(r, node->at,
			"memory is a size of 1 byte or more, as 16GiB%s%.60s; leave it out where there is "
			"no limit",
			text ? ", not " : "", text ? text : "");
	*out = (int64_t)n;
	return HD_OK;
}

static bool is_name(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	for (size_t i = 0; i < len; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
			(text[i] >= '0' && text[i] <= '9') || strchr("_.-", text[i])))
			return false;
	return len > 0 && len <= HD_CLUSTER_NAME && text[0] != '-' && text[0] != '.';
}

static enum hd_err check_name(const struct cluster_reader *r, struct hd_yaml_mark at, const char *what,
	const char *text)
{
	return is_name(text) ? HD_OK : refuse(r, at,
		"the name of a %s has letters, digits, _ . and -, at most %d, the first a letter, a digit "
		"or _", what,
		HD_CLUSTER_NAME);
}

/* A table is a list of keys, some of which must be there. */
struct cluster_key { const char *name; bool must; };

static enum hd_err walk(const struct cluster_reader *r, const struct hd_yaml_node *map, const char *what,
	const struct cluster_key *keys, uint32_t nkeys,
	const struct hd_yaml_node **found)
{
	if (map->kind != HD_YAML_MAP)
		return refuse(r, map->at, "%s is a table of keys, not %s", what,
			hd_yaml_kind_name(map->kind));
	for (const struct hd_yaml_node *node = map->first; node; node = node->next) {
		struct hd_near near = hd_near_to(node->key);
		uint32_t k = 0;
		while (k < nkeys && strcmp(keys[k].name, node->key) != 0)
			hd_near_offer(&near, keys[k++].name);
		if (k == nkeys)
			return refuse(r, node->key_at, "%s has no key %.60s%s%s%s", what, node->key,
				near.best ? "; did you mean " : "",
				near.best ? near.best : "", near.best ? "?" : "");
		found[k] = node;
	}
	for (uint32_t k = 0; k < nkeys; k++)
		if (keys[k].must && !found[k])
			return refuse(r, map->at, "%s needs %s", what, keys[k].name);
	return HD_OK;
}

enum { KIND_SPEED, KIND_MEMORY, KIND_KEYS };
static const struct cluster_key kind_keys[KIND_KEYS] = { [KIND_SPEED] = { "speed", false },
	[KIND_MEMORY] = { "memory", false } };

static enum hd_err read_kind(const struct cluster_reader *r, const struct hd_yaml_node *node,
	struct hd_cluster_kind *kind)
{
	const struct hd_yaml_node *at[KIND_KEYS] = { NULL };
	enum hd_err err = check_name(r, node->key_at, "kind", node->key);

	*kind = (struct hd_cluster_kind){ node->key, 1, 0 };
	if (!err && node->kind == HD_YAML_SCALAR && !node->quoted && !node->text_len)
		return HD_OK;
	if (!err)
		err = walk(r, node, "a kind", kind_keys, KIND_KEYS, at);
	if (!err && at[KIND_SPEED])
		err = read_f64(r, at[KIND_SPEED], HD_CLUSTER_SPEED_MIN, HD_CLUSTER_SPEED_MAX, &kind->speed);
	if (!err && at[KIND_MEMORY])
		err = read_memory(r, at[KIND_MEMORY], &kind->memory);
	return err;
}

static enum hd_err read_kinds(const struct cluster_reader *r, const struct hd_yaml_node *node)
{
	struct hd_cluster *c = r->cluster;
	enum hd_err err = HD_OK;

	if (node->kind != HD_YAML_MAP || !node->nchildren || node->nchildren > HD_CLUSTER_KINDS)
		return refuse(r, node->at, "kinds is a table of 1 to %d names, each with {speed, memory}",
			HD_CLUSTER_KINDS);
	c->kind = hd_arena_take(r->arena, node->nchildren, sizeof *c->kind);
	if (!c->kind)
		return no_memory(r);
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next)
		err = read_kind(r, child, &c->kind[c->nkinds++]);
	return err;
}

enum { LEVEL_NAME, LEVEL_COMPONENTS, LEVEL_BYTES_PER_S, LEVEL_LATENCY, LEVEL_KEYS };
static const struct cluster_key level_keys[LEVEL_KEYS] = { [LEVEL_NAME] = { "name", true },
	[LEVEL_COMPONENTS] = { "components", true },
	[LEVEL_BYTES_PER_S] = { "bytes_per_s", true }, [LEVEL_LATENCY] = { "latency_ns", false } };

static enum hd_err read_latency(const struct cluster_reader *r, const struct hd_yaml_node *node, int64_t *out)
{
	const char *text = need_scalar(node);
	uint64_t ns = 0;

	if (!text || hd_num_u64(text, HD_CLUSTER_LATENCY_MAX_PS / PS_PER_NS, &ns, NULL))
		return refuse(r, node->at,
			"latency_ns is a whole number of nanoseconds up to a minute%s%.60s",
			text ? ", not " : "", text ? text : "");
	*out = (int64_t)ns * PS_PER_NS;
	return HD_OK;
}

static enum hd_err read_level(const struct cluster_reader *r, const struct hd_yaml_node *node,
	struct hd_cluster_level *level)
{
	const struct hd_yaml_node *at[LEVEL_KEYS] = { NULL };
	enum hd_err err = walk(r, node, "a level", level_keys, LEVEL_KEYS, at);

	if (err)
		return err;
	level->name = need_scalar(at[LEVEL_NAME]);
	level->latency_ps = 0;
	err = check_name(r, at[LEVEL_NAME]->at, "level", level->name);
	err = err ? err : read_count(r, at[LEVEL_COMPONENTS], HD_CLUSTER_DEVICES, &level->components);
	err = err ? err : read_f64(r, at[LEVEL_BYTES_PER_S], HD_CLUSTER_BYTES_PER_S_MIN,
		HD_CLUSTER_BYTES_PER_S_MAX, &level->bytes_per_s);
	return err || !at[LEVEL_LATENCY] ? err : read_latency(r, at[LEVEL_LATENCY], &level->latency_ps);
}

static enum hd_err read_levels(const struct cluster_reader *r, const struct hd_yaml_node *node)
{
	struct hd_cluster *c = r->cluster;
	uint64_t devices = 1;

	if (node->kind != HD_YAML_SEQ || !node->nchildren || node->nchildren > HD_CLUSTER_LEVELS)
		return refuse(r, node->at,
			"levels is a list of 1 to %d, innermost first, each {name, components, bytes_per_s, "
			"latency_ns}",
			HD_CLUSTER_LEVELS);
	for (const struct hd_yaml_node *child = node->first; child; child = child->next) {
		enum hd_err err = read_level(r, child, &c->level[c->nlevels]);
		if (err)
			return err;
		devices *= c->level[c->nlevels++].components;
		if (devices > HD_CLUSTER_DEVICES)
			return refuse(r, child->at, "up to this level there are more than %d devices",
				HD_CLUSTER_DEVICES);
	}
	c->ndevices = (uint32_t)devices;
	return HD_OK;
}

enum { RUN_KIND, RUN_COUNT, RUN_KEYS };
static const struct cluster_key run_keys[RUN_KEYS] = { [RUN_KIND] = { "kind", true },
	[RUN_COUNT] = { "count", true } };

static enum hd_err read_run(const struct cluster_reader *r, const struct hd_yaml_node *node, uint32_t *filled)
{
	const struct hd_yaml_node *at[RUN_KEYS] = { NULL };
	const struct hd_cluster *c = r->cluster;
	uint32_t count = 0, k = 0;
	enum hd_err err = walk(r, node, "an item of devices", run_keys, RUN_KEYS, at);

	err = err ? err : read_count(r, at[RUN_COUNT], HD_CLUSTER_DEVICES, &count);
	if (err)
		return err;
	const char *name = need_scalar(at[RUN_KIND]);
	while (k < c->nkinds && (!name || strcmp(c->kind[k].name, name) != 0))
		k++;
	if (k == c->nkinds)
		return refuse(r, at[RUN_KIND]->at, "there is no kind %.60s among kinds",
			name ? name : "without a name");
	if (count > c->ndevices - *filled)
		return refuse(r, at[RUN_COUNT]->at,
			"with these there are more devices than the %u of the levels", c->ndevices);
	while (count--)
		c->device_kind[(*filled)++] = k;
	return HD_OK;
}

static enum hd_err read_devices(const struct cluster_reader *r, const struct hd_yaml_node *node)
{
	struct hd_cluster *c = r->cluster;
	uint32_t filled = 0;
	enum hd_err err = HD_OK;

	if (node->kind != HD_YAML_SEQ || !node->nchildren)
		return refuse(r, node->at, "devices is a list of {kind, count}, in the order of the devices");
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next)
		err = read_run(r, child, &filled);
	if (!err && filled < c->ndevices)
		return refuse(r, node->at, "these are %u devices, the levels have %u", filled, c->ndevices);
	return err;
}

enum { KINDS, LEVELS, DEVICES, KEYS };
static const struct cluster_key root_keys[KEYS] = { [KINDS] = { "kinds", true },
	[LEVELS] = { "levels", true },
	[DEVICES] = { "devices", false } };

enum hd_err hd_cluster_parse(struct hd_cluster *cluster, const char *text, size_t len, const char *file,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_cluster made = { 0 };
	struct cluster_reader r = { file, &made, arena, diag };
	const struct hd_yaml_node *root = NULL, *at[KEYS] = { NULL };
	struct hd_diag why = { "" };
	enum hd_err err = hd_yaml_parse(arena, file, text, len, &root, &why);

	if (err)
		return hd_fail(diag, err == HD_E_INVAL ? HD_E_INPUT : err, "%s", why.text);
	err = walk(&r, root, "a cluster", root_keys, KEYS, at);
	err = err ? err : read_kinds(&r, at[KINDS]);
	err = err ? err : read_levels(&r, at[LEVELS]);
	if (err)
		return err;
	made.device_kind = hd_arena_take(arena, made.ndevices, sizeof *made.device_kind);
	if (!made.device_kind)
		return no_memory(&r);
	if (!at[DEVICES] && made.nkinds > 1)
		return refuse(&r, root->at,
			"of which kind is which device? with several kinds, devices must list them");
	if (at[DEVICES])
		err = read_devices(&r, at[DEVICES]);
	if (!err)
		*cluster = made;
	return err;
}

static uint32_t run_from(const struct hd_cluster *c, uint32_t d)
{
	uint32_t n = 1;

	while (d + n < c->ndevices && c->device_kind[d + n] == c->device_kind[d])
		n++;
	return n;
}

void hd_cluster_print(const struct hd_cluster *cluster, struct hd_text *text)
{
	char number[HD_NUM_CAP];

	hd_text_add(text, "kinds:\n");
	for (uint32_t k = 0; k < cluster->nkinds; k++) {
		hd_text_addf(text, "  \"%s\": {speed: %s", cluster->kind[k].name,
			hd_num_print_f64(number, cluster->kind[k].speed));
		if (cluster->kind[k].memory)
			hd_text_addf(text, ", memory: %" PRId64, cluster->kind[k].memory);
		hd_text_add(text, "}\n");
	}
	hd_text_add(text, "levels:\n");
	for (uint32_t l = 0; l < cluster->nlevels; l++) {
		const struct hd_cluster_level *level = &cluster->level[l];
		hd_text_addf(text,
			"  - {name: \"%s\", components: %u, bytes_per_s: %s, latency_ns: %" PRId64 "}\n",
			level->name, level->components,
			hd_num_print_f64(number, level->bytes_per_s), level->latency_ps / PS_PER_NS);
	}
	hd_text_add(text, "devices:\n");
	for (uint32_t d = 0; d < cluster->ndevices; d += run_from(cluster, d))
		hd_text_addf(text, "  - {kind: \"%s\", count: %u}\n", hd_cluster_kind_of(cluster, d)->name,
			run_from(cluster, d));
}

enum hd_err hd_cluster_make(struct hd_cluster *cluster, const struct hd_cluster_level *level,
	uint32_t nlevels, struct hd_cluster_kind kind,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct hd_cluster made = { .kind = hd_arena_take(arena, 1, sizeof *made.kind), .nkinds = 1,
		.nlevels = nlevels };
	uint64_t devices = 1;

	if (nlevels < 1 || nlevels > HD_CLUSTER_LEVELS)
		return hd_fail(diag, HD_E_INVAL, "devices form from 1 to %d levels, not %u",
			HD_CLUSTER_LEVELS, nlevels);
	for (uint32_t l = 0; l < nlevels; l++) {
		made.level[l] = level[l];
		devices *= level[l].components;
		if (!devices || devices > HD_CLUSTER_DEVICES)
			return hd_fail(diag, HD_E_INVAL, "a cluster has from 1 to %d devices",
				HD_CLUSTER_DEVICES);
		if (!(level[l].bytes_per_s >= HD_CLUSTER_BYTES_PER_S_MIN &&
			level[l].bytes_per_s <= HD_CLUSTER_BYTES_PER_S_MAX) || level[l].latency_ps < 0 ||
		    level[l].latency_ps > HD_CLUSTER_LATENCY_MAX_PS)
			return hd_fail(diag, HD_E_INVAL,
				"links of level %u: %g bytes/s and %" PRId64 " ps are out of range", l,
				level[l].bytes_per_s,
				level[l].latency_ps);
	}
	if (!(kind.speed >= HD_CLUSTER_SPEED_MIN && kind.speed <= HD_CLUSTER_SPEED_MAX) || kind.memory < 0 ||
		kind.memory > HD_CLUSTER_MEMORY_MAX)
		return hd_fail(diag, HD_E_INVAL, "a device of speed %g and %" PRId64 " bytes is out of range",
			kind.speed, kind.memory);
	made.ndevices = (uint32_t)devices;
	made.device_kind = hd_arena_take(arena, made.ndevices, sizeof *made.device_kind);
	if (!made.kind || !made.device_kind)
		return hd_fail(diag, HD_E_NOMEM, "no memory for %u devices", made.ndevices);
	made.kind[0] = kind;
	*cluster = made;
	return HD_OK;
}

uint32_t hd_cluster_between(const struct hd_cluster *cluster, uint32_t a, uint32_t b)
{
	uint32_t l = 0;

	for (; l + 1 < cluster->nlevels; l++) {
		a /= cluster->level[l].components;
		b /= cluster->level[l].components;
		if (a == b)
			return l;
	}
	return l;
}
