#include "functions/service.h"

#include <stdio.h>
#include <string.h>

#include "sys/process.h"
#include "functions/emulator.h"
#include "functions/folder.h"

/* ---- prices ---- */

enum hd_err hd_fn_price_named(struct hd_fs *fs, const char *name, struct hd_arena *arena,
	struct hd_fn_price *price, struct hd_diag *diag)
{
	const char *kind = "lambda-x86_64";
	const struct hd_fn_price_file *file = hd_fn_price_files;
	struct hd_diag why = { "" };
	uint8_t *bytes = NULL;
	size_t len = 0;

	name = name ? name : "2025";
	while (file->name && strcmp(file->name, name) != 0)
		file++;
	if (file->name)
		return hd_fn_price_read(name, file->text, strlen(file->text), kind, arena, price, diag);
	enum hd_err err = hd_file_read_all(fs, name, arena, HD_FN_PRICE_BYTES, &bytes, &len, &why);
	if (err == HD_E_NOTFOUND)
		return hd_fail(diag, err, "prices %s: 2020, 2021 and 2025 come with this program, and there "
			"is no such file", name);
	return err ? hd_fail(diag, err, "%s", why.text) :
		hd_fn_price_read(name, (const char *)bytes, len, kind, arena, price, diag);
}

/* ---- keys ---- */

static const char *variable(const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=' && (*at)[n + 1])
			return *at + n + 1;
	return otherwise;
}

/* Of AWS's own keys one alone is a mistake: those of the file would be another account's. */
static enum hd_err check_variables(struct hd_diag *diag)
{
	bool id = variable("AWS_ACCESS_KEY_ID", NULL), secret = variable("AWS_SECRET_ACCESS_KEY", NULL);

	return id == secret ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"AWS_%s is set, AWS_%s is not: set both, or none to use the keys of the shared file",
		id ? "ACCESS_KEY_ID" : "SECRET_ACCESS_KEY", id ? "SECRET_ACCESS_KEY" : "ACCESS_KEY_ID");
}

static enum hd_err read_keys(struct hd_fn_service *s, struct hd_diag *diag)
{
	const char *home = variable("HOME", ""), *named = variable("AWS_SHARED_CREDENTIALS_FILE", NULL);
	struct hd_fn_lambda *l = &s->lambda;
	char path[HD_PATH_CAP];
	uint8_t *bytes = NULL;
	size_t len = 0;

	snprintf(path, sizeof path, named ? "%s" : "%s/.aws/credentials", named ? named : home);
	if (hd_file_read_all(s->spec.fs, path, &s->arena, HD_AWS_FILE_BYTES, &bytes, &len, NULL))
		return hd_fail(diag, HD_E_INVAL, "no keys for %s: set AWS_ACCESS_KEY_ID and "
			"AWS_SECRET_ACCESS_KEY, or write them to %s", s->spec.endpoint, path);
	enum hd_err err = hd_aws_credentials_read(path, (const char *)bytes, len,
		variable("AWS_PROFILE", "default"), &s->keys, diag);
	l->rights.key_id = s->keys.key_id;
	l->rights.secret = s->keys.secret;
	l->session = s->keys.token[0] ? s->keys.token : NULL;
	return err;
}

/* Whose right: AWS's own variables, else the shared file; the emulator has keys of its own. */
static enum hd_err find_keys(struct hd_fn_service *s, struct hd_diag *diag)
{
	struct hd_fn_lambda *l = &s->lambda;
	bool web = s->pays;
	const char *region = variable("AWS_REGION", variable("AWS_DEFAULT_REGION",
		s->region[0] ? s->region : web ? NULL : "us-east-1"));

	l->rights = (struct hd_sigv4_rights){ variable("AWS_ACCESS_KEY_ID", web ? NULL : HD_EMULATED_ID),
		variable("AWS_SECRET_ACCESS_KEY", web ? NULL : HD_EMULATED_SECRET),
		region, "lambda" };
	l->session = variable("AWS_SESSION_TOKEN", NULL);
	enum hd_err err = web ? check_variables(diag) : HD_OK;
	if (!err && !region)
		err = hd_fail(diag, HD_E_INVAL,
			"%s names no region: set AWS_REGION to the one of the function", s->spec.endpoint);
	return err || (l->rights.key_id && l->rights.secret) ? err : read_keys(s, diag);
}

/* ---- ways to call ---- */

static enum hd_err open_pool(struct hd_fn_service *s, struct hd_diag *diag)
{
	const struct hd_fn_instances_spec spec = { .argv = s->spec.argv, .dir = s->dir,
		.slots = s->spec.slots, .memory_mb = s->spec.memory_mb, .share = 1,
		.faults = s->spec.faults, .log = s->log, .tag = HD_FN_OWNER_TAGS };
	const struct hd_fn_invoker invoker = { &hd_fn_pool_ops, &s->pool };

	enum hd_err err = hd_fn_instances_open(&s->pool, &spec, &s->owner.loop, diag);
	if (!err)
		hd_fn_owner_calls(&s->owner, &invoker);
	return err;
}

static enum hd_err open_lambda(struct hd_fn_service *s, struct hd_diag *diag)
{
	const struct hd_fn_invoker invoker = { &hd_fn_lambda_ops, &s->lambda };

	s->lambda = (struct hd_fn_lambda){ .function = s->spec.name,
		.ca = variable("AWS_CA_BUNDLE", NULL) };
	hd_aws_region_of(s->spec.endpoint, s->region);
	enum hd_err err = find_keys(s, diag);
	if (!err)
		err = hd_fn_lambda_open(&s->lambda, s->spec.endpoint, HD_FN_OWNER_TAGS, &s->owner.loop, diag);
	if (!err)
		hd_fn_owner_calls(&s->owner, &invoker);
	return err;
}

static enum hd_err open_http(struct hd_fn_service *s, struct hd_diag *diag)
{
	const struct hd_fn_invoker invoker = { &hd_fn_http_ops, &s->http };
	enum hd_err err = hd_fn_http_open(&s->http, s->spec.endpoint, variable("AWS_CA_BUNDLE", NULL),
		HD_FN_OWNER_TAGS, &s->owner.loop, diag);

	if (!err)
		hd_fn_owner_calls(&s->owner, &invoker);
	return err;
}

static const struct { const char *name; bool serves; enum hd_err (*open)(struct hd_fn_service *service,
	struct hd_diag *diag); } kinds[] = {
	{ "pool", false, open_pool }, { "lambda", true, open_lambda }, { "http", true, open_http } };
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* ---- life ---- */

/* Where workers call, and where a pool lives. */
static enum hd_err find_place(struct hd_fn_service *s, bool serves, struct hd_diag *diag)
{
	if (serves && s->spec.listen && hd_sock_is_everywhere(s->spec.listen))
		return hd_fail(diag, HD_E_INVAL, "%s is every address of this machine; name the one by which "
			"function workers call it", s->spec.listen);
	if (serves) {
		snprintf(s->listen, sizeof s->listen, "tcp:%.80s", s->spec.listen ? s->spec.listen :
			"127.0.0.1:0");
		return HD_OK;
	}
	enum hd_err err = hd_fn_folder_make(s->spec.fs, s->dir, diag);
	if (err)
		return err;
	snprintf(s->listen, sizeof s->listen, "unix:%s/owner", s->dir);
	snprintf(s->log_name, sizeof s->log_name, "%s/log", s->dir);
	s->log = fopen(s->spec.log ? s->spec.log : s->log_name, "w");
	return s->log ? HD_OK : hd_fail(diag, HD_E_IO, "cannot write %s", s->spec.log ? s->spec.log :
		s->log_name);
}

/* HOST:PORT further by `by`; false: beyond the last port. */
static bool move_port(const char *listen, uint32_t by, char *out, size_t cap)
{
	const char *colon = strrchr(listen, ':');
	unsigned port = 0;

	if (!colon || sscanf(colon + 1, "%5u", &port) != 1 || !port || port + by > UINT16_MAX)
		return false;
	const int len = (int)(colon - listen < 80 ? colon - listen : 80);
	snprintf(out, cap, "tcp:%.*s:%u", len, listen, port + by);
	return true;
}

static enum hd_err open_owner(struct hd_fn_service *s, bool serves, struct hd_diag *diag)
{
	const struct hd_fn_service_spec *spec = &s->spec;
	const struct hd_fn_owner_spec owner = { .clock = spec->clock, .listen = s->listen,
		.ntasks = spec->ntasks, .tls = serves, .slots = spec->slots,
		.lease_ns = spec->lease_ns, .memory_mb = spec->memory_mb, .seed = spec->faults.seed,
		.price = s->price };
	struct hd_diag why = { "" };
	enum hd_err err = hd_fn_owner_open(&s->owner, &owner, &why);

	for (uint32_t i = 1; err == HD_E_REFUSED && i < spec->nports && serves && spec->listen &&
		move_port(spec->listen, i, s->listen, sizeof s->listen); i++)
		err = hd_fn_owner_open(&s->owner, &owner, &why);
	return err ? hd_fail(diag, err, "%s", why.text) : HD_OK;
}

enum hd_err hd_fn_service_open(struct hd_fn_service *s, const struct hd_fn_service_spec *spec,
	struct hd_diag *diag)
{
	size_t k = 0;

	memset(s, 0, sizeof *s);
	s->spec = *spec;
	hd_arena_init(&s->arena, 0);
	while (k < NKINDS && strcmp(kinds[k].name, spec->kind) != 0)
		k++;
	if (k == NKINDS)
		return hd_fail(diag, HD_E_INVAL, "functions of kind %s: pool, lambda and http are known",
			spec->kind);
	if (kinds[k].serves != (spec->endpoint != NULL))
		return hd_fail(diag, HD_E_INVAL, kinds[k].serves ? "functions of kind %s need an endpoint" :
			"functions of kind %s have no endpoint", spec->kind);
	s->pays = spec->endpoint && !strncmp(spec->endpoint, "https://", 8);
	enum hd_err err = hd_fn_price_named(spec->fs, spec->price, &s->arena, &s->price, diag);
	if (!err)
		err = find_place(s, kinds[k].serves, diag);
	if (!err)
		err = open_owner(s, kinds[k].serves, diag);
	if (!err && spec->slots)
		err = kinds[k].open(s, diag);
	if (err)
		hd_fn_service_close(s);
	return err;
}

void hd_fn_service_stop(struct hd_fn_service *s)
{
	s->owner.invoker = (struct hd_fn_invoker){ NULL, NULL };
	hd_fn_instances_close(&s->pool);
	hd_fn_lambda_close(&s->lambda);
	hd_fn_calls_close(&s->http);
	if (s->log)
		fclose(s->log);
	s->log = NULL;
}

void hd_fn_service_close(struct hd_fn_service *s)
{
	hd_fn_service_stop(s);
	hd_fn_owner_close(&s->owner);
	if (s->spec.fs)
		hd_fn_folder_remove(s->spec.fs, s->dir);
	hd_arena_finish(&s->arena);
	memset(s, 0, sizeof *s);
}
