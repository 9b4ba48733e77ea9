/* Devices of a simulated cluster: how many of which type, where they stand, what they cost, and how they
 * come and go. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "clustersim/measured.h"
#include "clustersim/slurm_now.h"
#include "cmd/sched/input.h"

static bool has(const struct hd_cmd *cmd, enum hd_opt opt) { return cmd->args.has[opt]; }

/* ---- which devices ---- */

static enum hd_err number_of(struct hd_cmd *cmd, enum hd_opt opt, const char *name, const char *value,
	double most, double *out)
{
	if (!value || hd_num_f64(value, 0, most, out, NULL))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--%s: \"%.60s%s%.40s\" is not TYPE:NUMBER, the number from 0 to %.10g",
			hd_opts[opt].name, name,
			value ? ":" : "", value ? value : "", most);
	return HD_OK;
}

static enum hd_err add_type(struct hd_cmd *cmd, struct hd_sched_input *in, enum hd_opt opt, const char *name,
	uint32_t n, uint32_t *at)
{
	if (in->ntypes == HD_SCHED_TYPES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: more than %d types", hd_opts[opt].name,
			HD_SCHED_TYPES);
	*at = in->ntypes;
	in->type[in->ntypes++] = (struct hd_sched_type){ .name = name, .n = n };
	return HD_OK;
}

static uint32_t find(const struct hd_sched_input *in, const char *name)
{
	for (uint32_t t = 0; t < in->ntypes; t++)
		if (!strcmp(in->type[t].name, name))
			return t;
	return HD_SCHED_NONE;
}

static enum hd_err put_type(struct hd_cmd *cmd, void *to, char *name, char *value)
{
	struct hd_sched_input *in = to;
	double x = 0;
	uint32_t at;
	enum hd_err err = number_of(cmd, HD_OPT_POOL, name, value, HD_SCHED_DEVICES, &x);

	if (err)
		return err;
	if (x != floor(x))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cluster: %s:%g: a whole number of devices", name,
			x);
	if (find(in, name) != HD_SCHED_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--cluster names %s twice", name);
	return add_type(cmd, in, HD_OPT_POOL, name, (uint32_t)x, &at);
}

static int by_name(const void *a, const void *b) { return strcmp(((const struct hd_sched_type *)a)->name,
	((const struct hd_sched_type *)b)->name); }

/* Devices are numbered by type, inside a type by machine as the list has them. */
static enum hd_err set_hosts(struct hd_cmd *cmd, struct hd_sched_input *in,
	const struct hd_machine_list *list)
{
	uint64_t n = 0;
	uint32_t next[HD_SCHED_TYPES] = { 0 };

	for (uint32_t t = 0; t < in->ntypes; t++) {
		next[t] = (uint32_t)n;
		n += in->type[t].n;
	}
	if (n > HD_SCHED_DEVICES || !(in->host = hd_arena_take(&cmd->arena, n + 1, sizeof *in->host)))
		return hd_fail(&cmd->diag, n > HD_SCHED_DEVICES ? HD_E_INPUT : HD_E_NOMEM,
			"--nodes: %llu devices; at most %d", (unsigned long long)n,
			HD_SCHED_DEVICES);
	for (size_t m = 0; m < list->n; m++) {
		uint32_t t = find(in, list->at[m].type);
		for (uint32_t d = 0; d < list->at[m].devices; d++)
			in->host[next[t]++] = (uint32_t)m;
	}
	in->setting.host = in->host;
	return HD_OK;
}

static enum hd_err read_nodes(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_NODES];
	struct hd_machine_list list;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);

	if (!err)
		err = hd_machine_list_csv(&list, path, bytes, len, &cmd->arena, &cmd->diag);
	for (size_t m = 0; !err && m < list.n; m++) {
		uint32_t t = find(in, list.at[m].type);
		if (t == HD_SCHED_NONE)
			err = add_type(cmd, in, HD_OPT_NODES, list.at[m].type, 0, &t);
		if (!err)
			in->type[t].n += list.at[m].devices;
	}
	if (err)
		return err;
	if (!in->ntypes)
		return hd_fail(&cmd->diag, HD_E_INPUT, "%s: no machine in it has devices", path);
	qsort(in->type, in->ntypes, sizeof *in->type, by_name);
	return set_hosts(cmd, in, &list);
}

/* ---- nodes and partitions ---- */

/* Until hd_sched_split() a type is a kind of GPU, wherever it is. */
static enum hd_err read_partitions(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_SINFO_PARTITIONS];
	struct hd_slurm_now *nodes = hd_arena_take(&cmd->arena, 1, sizeof *nodes);
	uint8_t *bytes;
	size_t len;
	enum hd_err err = HD_OK;

	if (!nodes)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for nodes");
	if (has(cmd, HD_OPT_SPOT))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--spot: it is for --cluster and --nodes; nodes of --partitions do not come and go");
	err = hd_sched_file(cmd, path, &bytes, &len);
	if (!err)
		err = hd_slurm_nodes(nodes, path, bytes, len, &cmd->arena, &cmd->diag);
	for (uint32_t k = 0; !err && k < nodes->ntypes; k++) {
		uint32_t t = find(in, nodes->partitions.gpu[k]);
		if (t == HD_SCHED_NONE)
			err = add_type(cmd, in, HD_OPT_SINFO_PARTITIONS, nodes->partitions.gpu[k], 0, &t);
		if (!err)
			in->type[t].n += nodes->type[k].n;
	}
	if (!err)
		qsort(in->type, in->ntypes, sizeof *in->type, by_name);
	in->nodes = nodes;
	return err;
}

/* Jobs of a partition that is not there, and gangs for which no set of like nodes is enough. */
static void tell_partitions(const struct hd_cmd *cmd, const struct hd_sched_input *in)
{
	const struct hd_slurm_partitions *of = &in->nodes->partitions;
	unsigned long long nunknown = 0, nlarge = 0;
	const char *first = NULL;

	for (size_t i = 0; i < in->list.n && !has(cmd, HD_OPT_QUIET); i++) {
		const struct hd_listed_job *job = &in->list.at[i];
		const char *named = job->record ? job->record->partition : "";
		const uint64_t bits = hd_slurm_partitions_of(of, named);
		uint32_t most = 0;
		if (!hd_slurm_partitions_named(of, named)) {
			first = first ? first : named;
			nunknown++;
		}
		for (uint32_t t = 0; t < in->ntypes; t++)
			if (of->in[t] & bits && (!job->type || !strcmp(job->type, of->gpu[t])) &&
				in->type[t].n > most)
				most = in->type[t].n;
		nlarge += job->scale > most;
	}
	if (nunknown)
		fprintf(stderr, "heddle: %s: %llu job%s named no partition of %s (\"%.60s\"...) and may have "
			"all devices\n", cmd->args.text[HD_OPT_JOBS], nunknown, nunknown == 1 ? "" : "s",
			cmd->args.text[HD_OPT_SINFO_PARTITIONS], first);
	if (nlarge)
		fprintf(stderr, "heddle: %s: %llu job%s larger than any set of like GPUs on nodes of the "
			"same partitions: policies never start %s; as-it-was and slurm may\n",
			cmd->args.text[HD_OPT_JOBS], nlarge, nlarge == 1 ? " is" : "s are",
			nlarge == 1 ? "it" : "them");
}

enum hd_err hd_sched_split(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const struct hd_slurm_now *nodes = in->nodes;
	const struct hd_sched_input kinds = *in;
	uint64_t n = 0;
	uint32_t d = 0;

	if (!has(cmd, HD_OPT_SINFO_PARTITIONS))
		return HD_OK;
	in->ntypes = nodes->ntypes;
	for (uint32_t t = 0; t < nodes->ntypes; t++) {
		const uint32_t k = find(&kinds, nodes->partitions.gpu[t]);
		in->type[t] = kinds.type[k];
		in->type[t].name = nodes->type[t].name;
		in->type[t].n = nodes->type[t].n;
		in->speed[t] = kinds.speed[k];
		in->price_type[t] = kinds.price_type[k];
		n += nodes->type[t].n;
	}
	in->setting.partitions = &nodes->partitions;
	tell_partitions(cmd, in);
	if (n > HD_SCHED_DEVICES || !(in->host = hd_arena_take(&cmd->arena, n + 1, sizeof *in->host)))
		return hd_fail(&cmd->diag, n > HD_SCHED_DEVICES ? HD_E_INPUT : HD_E_NOMEM,
			"--partitions: %llu devices; at most %d", (unsigned long long)n, HD_SCHED_DEVICES);
	for (uint32_t k = 0; k < nodes->nnodes; k++)
		for (uint32_t g = 0; g < nodes->node[k].gpus; g++)
			in->host[d++] = k;
	in->setting.host = in->host;
	return in->has_rates ? hd_rates_pick(&in->all, in->ntypes, nodes->partitions.gpu, &cmd->arena,
		&in->rates, &cmd->diag) : HD_OK;
}

/* ---- what is said of a type ---- */

static enum hd_err put_of_type(struct hd_cmd *cmd, struct hd_sched_input *in, enum hd_opt opt,
	const char *name, const char *value, double most, uint32_t *t,
	double *x)
{
	enum hd_err err = number_of(cmd, opt, name, value, most, x);

	if (err)
		return err;
	if ((*t = find(in, name)) == HD_SCHED_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s: the cluster has no type \"%.60s\"",
			hd_opts[opt].name, name);
	return HD_OK;
}

static enum hd_err put_price(struct hd_cmd *cmd, void *to, char *name, char *value)
{
	struct hd_sched_input *in = to;
	double x = 0;
	uint32_t t = 0;
	enum hd_err err = put_of_type(cmd, in, HD_OPT_PRICE, name, value, 1e6, &t, &x);

	if (!err)
		in->type[t].price_usd_h = x;
	return err;
}

static void tell_measured(const struct hd_cmd *cmd, const struct hd_sched_input *in,
	const struct hd_measured *m)
{
	if (has(cmd, HD_OPT_QUIET))
		return;
	for (uint32_t t = 0; t < in->ntypes; t++)
		if (t != m->reference && !isnan(m->of[t].speed))
			fprintf(stderr,
				"heddle: %s is %.3g times as fast as %s: %llu names ran on both, at %.3g to "
				"%.3g times, spread %.3g; %llu jobs of it count\n", in->type[t].name,
				m->of[t].speed, in->type[m->reference].name,
				(unsigned long long)m->of[t].npairs, m->of[t].npairs ? m->of[t].low : NAN,
				m->of[t].npairs ? m->of[t].high : NAN, m->of[t].spread,
				(unsigned long long)m->of[t].njobs);
}

static enum hd_err measure(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct hd_measured m;
	enum hd_err err = in->generates || in->has_rates ? hd_fail(&cmd->diag, HD_E_INVAL,
		"--speed measured: it is for an accounting (--trace), without --throughputs") :
		hd_speeds_measure(&m, &in->list, in->type, in->ntypes, &cmd->arena, &cmd->diag);

	if (err)
		return err;
	tell_measured(cmd, in, &m);
	for (uint32_t t = 0; t < in->ntypes; t++)
		in->speed[t] = m.of[t].speed;
	return HD_OK;
}

/* After all of --speed: a type may be said where it could not be measured. */
static enum hd_err check_measured(struct hd_cmd *cmd, const struct hd_sched_input *in)
{
	for (uint32_t t = 0; t < in->ntypes; t++)
		if (isnan(in->speed[t]))
			return hd_fail(&cmd->diag, HD_E_INPUT,
				"--speed measured: no completed jobs of one user, "
				"name and number of devices ran on %.60s and on others; add %.60s:X",
				in->type[t].name, in->type[t].name);
	return HD_OK;
}

static enum hd_err put_speed(struct hd_cmd *cmd, void *to, char *name, char *value)
{
	struct hd_sched_input *in = to;
	double x = 0;
	uint32_t t = 0;

	if (!strcmp(name, "measured") && !value)
		return measure(cmd, in);
	enum hd_err err = put_of_type(cmd, in, HD_OPT_SPEED, name, value, 1e9, &t, &x);

	if (!err)
		in->speed[t] = x;
	return err;
}

static enum hd_err put_revoked(struct hd_cmd *cmd, void *to, char *name, char *value)
{
	struct hd_sched_input *in = to;
	double x = 0;
	uint32_t t = 0;
	enum hd_err err = put_of_type(cmd, in, HD_OPT_REVOKE, name, value, 1e6, &t, &x);

	if (!err)
		in->type[t].revoked_per_s = x / 3600;
	return err;
}

/* ---- histories of prices ---- */

struct files { uint32_t n; const char *path[HD_SCHED_FILES]; };

static enum hd_err put_file(struct hd_cmd *cmd, void *to, char *path, char *rest)
{
	struct files *f = to;

	(void)rest;
	if (f->n == HD_SCHED_FILES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "more than %d names in one option", HD_SCHED_FILES);
	f->path[f->n++] = path;
	return HD_OK;
}

static enum hd_err read_history(struct hd_cmd *cmd, const char *path, struct hd_prices *out)
{
	const struct hd_json *json;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);

	if (err)
		return err;
	for (size_t i = 0; i < len && strchr(" \t\r\n{", bytes[i]); i++)
		if (bytes[i] == '{') {
			err = hd_json_parse(&cmd->arena, path, (const char *)bytes, len, &json, &cmd->diag);
			return err ? err : hd_prices_json(out, json, &cmd->arena, &cmd->diag);
		}
	return hd_prices_read(out, path, bytes, len, &cmd->arena, &cmd->diag);
}

static enum hd_err put_price_as(struct hd_cmd *cmd, void *to, char *name, char *as)
{
	struct hd_sched_input *in = to;
	uint32_t t = find(in, name);

	if (t == HD_SCHED_NONE || !as)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--price-as: %.60s: it is TYPE=NAME, a type of the cluster and its name in the "
			"prices", name);
	if ((in->price_type[t] = hd_prices_type(&in->prices, as)) == HD_PRICE_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--price-as: the prices have no type \"%.60s\"", as);
	return HD_OK;
}

static enum hd_err read_prices(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	struct files files = { 0 }, zones = { 0 };
	struct hd_prices *part;
	enum hd_err err = hd_sched_each(cmd, HD_OPT_PRICES, "", put_file, &files);
	bool any = false;

	if (!err && has(cmd, HD_OPT_ZONES))
		err = hd_sched_each(cmd, HD_OPT_ZONES, "", put_file, &zones);
	if (err)
		return err;
	if (!(part = hd_arena_take(&cmd->arena, files.n, sizeof *part)))
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u files of prices", files.n);
	for (uint32_t k = 0; k < files.n && !err; k++)
		err = read_history(cmd, files.path[k], &part[k]);
	if (!err)
		err = hd_prices_join(&in->prices, files.n, part, zones.n, zones.path, &cmd->arena,
			&cmd->diag);
	if (err)
		return err;
	for (uint32_t t = 0; t < in->ntypes; t++)
		in->price_type[t] = hd_prices_type(&in->prices, in->type[t].name);
	if (has(cmd, HD_OPT_PRICE_AS) && (err = hd_sched_each(cmd, HD_OPT_PRICE_AS, ":=", put_price_as, in)))
		return err;
	in->setting.prices_from_s = in->prices.start_s;
	if (has(cmd, HD_OPT_PRICES_FROM) && (err = hd_prices_time(cmd->args.text[HD_OPT_PRICES_FROM],
		&in->setting.prices_from_s, &cmd->diag)))
		return err;
	for (uint32_t t = 0; t < in->ntypes; t++)
		any |= in->price_type[t] != HD_PRICE_NONE;
	if (!any)
		return hd_fail(&cmd->diag, HD_E_INPUT,
			"%s: it prices no type of the cluster; its first type is \"%.60s\" (--price-as "
			"TYPE=NAME says which is which)",
			files.path[0], in->prices.type[0]);
	in->setting.prices = &in->prices;
	in->setting.price_type = in->price_type;
	return HD_OK;
}

/* ---- how machines come and go ---- */

static enum hd_err read_spot(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	const char *path = cmd->args.text[HD_OPT_SPOT], *mark = strchr(path, ':');
	char *name = mark ? hd_arena_text(&cmd->arena, path, (size_t)(mark - path)) : NULL;
	uint32_t t = name ? find(in, name) : in->ntypes == 1 ? 0 : HD_SCHED_NONE;
	int64_t there = 0, most = 0;
	uint8_t *bytes;
	size_t len;

	if (t == HD_SCHED_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--spot %.100s: which type is it of? --spot TYPE:FILE, a type of the cluster", path);
	path = mark ? mark + 1 : path;
	enum hd_err err = hd_sched_file(cmd, path, &bytes, &len);
	if (!err)
		err = hd_machine_events_csv(&in->events, path, bytes, len, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	for (size_t i = 0; i < in->events.n; i++) {
		there += in->events.at[i].change;
		most = there > most ? there : most;
	}
	if (most > in->type[t].n)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s: up to %lld machines are there at once; --cluster has %u of %s", path,
			(long long)most,
			in->type[t].n,
			in->type[t].name);
	in->setting.events = &in->events;
	in->setting.event_type = t;
	return HD_OK;
}

enum hd_err hd_sched_pool(struct hd_cmd *cmd, struct hd_sched_input *in)
{
	static const struct { enum hd_opt opt; hd_sched_put *put; } of_types[] = {
		{ HD_OPT_PRICE, put_price }, { HD_OPT_SPEED, put_speed }, { HD_OPT_REVOKE, put_revoked },
	};
	const char *names[HD_SCHED_TYPES];
	enum hd_err err = HD_OK;

	if (has(cmd, HD_OPT_POOL) + has(cmd, HD_OPT_NODES) + has(cmd, HD_OPT_SINFO_PARTITIONS) != 1)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"which devices? --cluster v100:36,p100:36,k80:36, --nodes FILE, or --partitions "
			"FILE");
	if (has(cmd, HD_OPT_NODES))
		err = read_nodes(cmd, in);
	else if (has(cmd, HD_OPT_SINFO_PARTITIONS))
		err = read_partitions(cmd, in);
	else if (!(err = hd_sched_each(cmd, HD_OPT_POOL, ":=", put_type, in)))
		qsort(in->type, in->ntypes, sizeof *in->type, by_name);
	for (uint32_t t = 0; t < in->ntypes && !err; t++) {
		names[t] = in->type[t].name;
		in->speed[t] = 1;
		if (in->has_rates && hd_rates_type(&in->all, names[t]) == HD_RATES_NONE)
			err = hd_fail(&cmd->diag, HD_E_INVAL, "--%s: %s has no type \"%.60s\"",
				hd_opts[has(cmd, HD_OPT_POOL) ? HD_OPT_POOL : has(cmd, HD_OPT_NODES) ?
				HD_OPT_NODES : HD_OPT_SINFO_PARTITIONS].name,
				cmd->args.text[HD_OPT_THROUGHPUTS], names[t]);
	}
	for (size_t k = 0; k < sizeof of_types / sizeof *of_types && !err; k++)
		if (has(cmd, of_types[k].opt))
			err = hd_sched_each(cmd, of_types[k].opt, ":=", of_types[k].put, in);
	if (!err)
		err = check_measured(cmd, in);
	if (!err && has(cmd, HD_OPT_PRICES))
		err = read_prices(cmd, in);
	else if (!err && (has(cmd, HD_OPT_ZONES) || has(cmd, HD_OPT_PRICE_AS) ||
		has(cmd, HD_OPT_PRICES_FROM)))
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--zones, --price-as and --prices-from are of --prices FILE, which is not given");
	if (!err && has(cmd, HD_OPT_SPOT))
		err = read_spot(cmd, in);
	if (!err && in->has_rates)
		err = hd_rates_pick(&in->all, in->ntypes, names, &cmd->arena, &in->rates, &cmd->diag);
	return err;
}
