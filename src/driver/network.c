#include "driver/network.h"

#include <stdio.h>
#include <string.h>

#include "sys/process.h"
#include "job/job.h"
#include "run/job_files.h"
#include "run/kept_job.h"
#include "driver/driver.h"

bool hd_network_is_address(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon > text && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == 0 &&
		!strchr(text, '/');
}

/* "tls tcp:HOST:PORT"; a port that is given stands for the one written. */
static enum hd_err spell(const struct hd_network *net, const char *where, const char *port,
	char addr[HD_ELASTIC_ADDR], struct hd_diag *diag)
{
	const char *row = net->has_key ? "tls" : "tcp";
	size_t host = (size_t)(strrchr(where, ':') - where);

	if (hd_sock_is_everywhere(where))
		return hd_fail(diag, HD_E_INVAL,
			"%s is every address of this machine; name the one by which the other machines call "
			"it", where);
	if ((size_t)snprintf(addr, HD_ELASTIC_ADDR, "%s tcp:%.*s:%s", row, (int)host, where,
		port ? port : where + host + 1) >= HD_ADDR_CAP)
		return hd_fail(diag, HD_E_INVAL, "%.60s... is too long for HOST:PORT", where);
	return HD_OK;
}

static enum hd_err not_an_address(const char *what, const char *where, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INVAL,
		"%s %s: write HOST:PORT with the host in numbers, as 10.0.0.1:7000 or [fd00::1]:7000", what,
		where);
}

static enum hd_err take_key(const char *path, struct hd_network *net, struct hd_diag *diag)
{
	enum hd_err err = hd_key_read(path, &net->key, diag);

	if (!err)
		err = hd_key_id(&net->key, &net->realm, diag);
	net->has_key = !err;
	return err;
}

/* A realm without a key is the same for all: what is open needs no name. */
static void go_open(struct hd_network *net)
{
	static const struct hd_hash open = { "open to all" };

	net->plaintext = true;
	net->realm = open;
}

/* Port 0 was chosen once: the coordinators that follow listen at the same one. NULL: there is none yet. */
static const char *port_before(struct hd_fs *fs, struct hd_arena *arena, const char *dir, const char *where)
{
	char path[HD_PATH_CAP];
	size_t len, host = (size_t)(strrchr(where, ':') - where);
	uint8_t *text;

	snprintf(path, sizeof path, "%s/%s", dir, HD_DRIVER_ADDRESS);
	if (strcmp(where + host, ":0") != 0 || hd_file_read_all(fs, path, arena, HD_ADDR_CAP, &text, &len,
		NULL))
		return NULL;
	return !strncmp((const char *)text, where, host + 1) ? (const char *)text + host + 1 : NULL;
}

/* Addresses of a run that listens at `where`, once its key is read. */
static enum hd_err addresses(struct hd_network *net, struct hd_fs *fs, const char *dir, const char *where,
	struct hd_diag *diag)
{
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	enum hd_err err = spell(net, where, port_before(fs, &arena, dir, where), net->coordinator, diag);
	hd_arena_finish(&arena);
	return err ? err : spell(net, where, "0", net->workers, diag);
}

enum hd_err hd_network_of(struct hd_network *net, const struct hd_job *job, struct hd_fs *fs, const char *dir,
	struct hd_diag *diag)
{
	const struct hd_job_value *listen = &job->value[HD_JOB_NET_LISTEN],
		*key = &job->value[HD_JOB_NET_KEY];
	enum hd_err err = HD_OK;

	*net = (struct hd_network){ .listens = !listen->is_none };
	if (!net->listens)
		return HD_OK;
	if (!hd_network_is_address(listen->text))
		return not_an_address("net.listen", listen->text, diag);
	if (!key->is_none)
		err = take_key(key->text, net, diag);
	else if (hd_job_int(job, HD_JOB_NET_PLAIN))
		go_open(net);
	else
		err = hd_fail(diag, HD_E_INVAL,
			"net.listen is %s and there is no key: make one by `heddle serve --new-key FILE`, "
			"give it by --key FILE", listen->text);
	if (!err)
		err = addresses(net, fs, dir, listen->text, diag);
	if (err)
		hd_network_wipe(net);
	return err;
}

/* Other workers call this one at `listen`, or at the address from which it calls the run. */
static enum hd_err own_address(struct hd_network *net, const char *listen, struct hd_diag *diag)
{
	char own[HD_ADDR_CAP];

	if (listen)
		return hd_network_is_address(listen) ? spell(net, listen, NULL, net->workers, diag)
			: not_an_address("--listen", listen, diag);
	enum hd_err err = hd_sock_source(strchr(net->coordinator, ' ') + 1, own, diag);
	return err ? err : spell(net, own + 4, NULL, net->workers, diag);
}

enum hd_err hd_network_join(struct hd_network *net, const struct hd_network_call *call, struct hd_diag *diag)
{
	enum hd_err err = HD_OK;

	*net = (struct hd_network){ .listens = true };
	if (call->key)
		err = take_key(call->key, net, diag);
	else if (call->plaintext)
		go_open(net);
	else
		err = hd_fail(diag, HD_E_INVAL,
			"--join %s needs the run's key: --key FILE, a copy of the file that the run was "
			"started with", call->where);
	if (!err)
		err = spell(net, call->where, NULL, net->coordinator, diag);
	if (!err)
		err = own_address(net, call->listen, diag);
	if (err)
		hd_network_wipe(net);
	return err;
}

enum hd_err hd_network_from_afar(struct hd_network *net, const char *listen, struct hd_diag *diag)
{
	return net->listens ? own_address(net, listen, diag) : hd_fail(diag, HD_E_INVAL,
		"--far: the run listens to no other machine; start it with --listen HOST:PORT --key FILE");
}

void hd_network_wipe(struct hd_network *net)
{
	hd_key_wipe(&net->key);
	net->has_key = false;
}

enum hd_err hd_network_keep(struct hd_rundir *dir, const struct hd_job *job, struct hd_arena *arena,
	struct hd_diag *diag)
{
	static const enum hd_job_key keys[] = { HD_JOB_NET_LISTEN, HD_JOB_NET_KEY, HD_JOB_NET_PLAIN };
	enum { NKEYS = sizeof keys / sizeof *keys };
	struct hd_kept_value kept[NKEYS];
	size_t said = 0;

	for (size_t i = 0; i < NKEYS; i++) {
		kept[i] = (struct hd_kept_value){ keys[i], job->value[keys[i]] };
		said += kept[i].value.origin > HD_FROM_FILE;
		if (keys[i] == HD_JOB_NET_KEY && !kept[i].value.is_none)
			kept[i].value.text = hd_job_file_from_root(kept[i].value.text, arena);
	}
	return said ? hd_kept_job_put(dir, kept, NKEYS, arena, diag) : HD_OK;
}
