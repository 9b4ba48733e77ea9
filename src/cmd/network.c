#include "cmd/network.h"

#include <stdio.h>
#include <string.h>

#include "run/rundir.h"
#include "driver/driver.h"

bool hd_network_is_address(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon > text && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == 0 &&
		!strchr(text, '/');
}

/* "tls tcp:HOST:PORT"; a port that is given stands for the one written. */
static enum hd_err spell(struct hd_cmd *cmd, const struct hd_network *net, const char *where,
	const char *port, char addr[HD_ELASTIC_ADDR])
{
	const char *row = net->has_key ? "tls" : "tcp";
	size_t host = (size_t)(strrchr(where, ':') - where);

	if (hd_sock_is_everywhere(where))
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"%s is every address of this machine; name the one by which the other machines call "
			"it", where);
	if ((size_t)snprintf(addr, HD_ELASTIC_ADDR, "%s tcp:%.*s:%s", row, (int)host, where,
		port ? port : where + host + 1) >= HD_ADDR_CAP)
		return hd_fail(&cmd->diag, HD_E_INVAL, "%.60s... is too long for HOST:PORT", where);
	return HD_OK;
}

static enum hd_err not_an_address(struct hd_cmd *cmd, const char *what, const char *where)
{
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"%s %s: write HOST:PORT with the host in numbers, as 10.0.0.1:7000 or [fd00::1]:7000", what,
		where);
}

static enum hd_err take_key(struct hd_cmd *cmd, const char *path, struct hd_network *net)
{
	enum hd_err err = hd_key_read(path, &net->key, &cmd->diag);

	if (!err)
		err = hd_key_id(&net->key, &net->realm, &cmd->diag);
	net->has_key = !err;
	return err;
}

/* A realm without a key is the same for all: what is open needs no name. */
static void go_open(struct hd_network *net)
{
	static const struct hd_hash open = { "open to all" };

	net->plaintext = true;
	net->realm = open;
	fprintf(stderr,
		"!! net.insecure_plaintext: whoever reaches the port can read and change this run; --key "
		"FILE protects it\n");
}

/* Port 0 was chosen once: who coordinates the run later listens at the same one. */
static const char *port_before(struct hd_cmd *cmd, const char *dir, const char *where)
{
	char path[HD_PATH_CAP];
	size_t len, host = (size_t)(strrchr(where, ':') - where);
	uint8_t *text;

	snprintf(path, sizeof path, "%s/%s", dir, HD_DRIVER_ADDRESS);
	if (strcmp(where + host, ":0") != 0 || hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_ADDR_CAP,
		&text, &len, NULL))
		return NULL;
	return !strncmp((const char *)text, where, host + 1) ? (const char *)text + host + 1 : NULL;
}

enum hd_err hd_network_of(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_network *net)
{
	const struct hd_job_value *listen = &job->value[HD_JOB_NET_LISTEN],
		*key = &job->value[HD_JOB_NET_KEY];
	enum hd_err err = HD_OK;

	*net = (struct hd_network){ .listens = !listen->is_none };
	if (!net->listens && cmd->args.has[HD_OPT_KEY])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--key is for machines that come over the network, and this run listens to none; "
			"add --listen HOST:PORT");
	if (!net->listens)
		return HD_OK;
	if (!hd_network_is_address(listen->text))
		return not_an_address(cmd, "net.listen", listen->text);
	if (!key->is_none)
		err = take_key(cmd, key->text, net);
	else if (hd_job_int(job, HD_JOB_NET_PLAIN))
		go_open(net);
	else
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"net.listen is %s and there is no key: make one by `heddle serve --new-key FILE`, "
			"give it by --key FILE", listen->text);
	if (!err)
		err = spell(cmd, net, listen->text, port_before(cmd, dir, listen->text), net->coordinator);
	if (!err)
		err = spell(cmd, net, listen->text, "0", net->workers);
	if (err)
		hd_network_give(net);
	return err;
}

static bool asks_for_plaintext(const struct hd_cmd *cmd)
{
	bool open = false;

	for (uint32_t i = 0; i < cmd->args.nsets; i++)
		open |= !strcmp(cmd->args.set[i], "net.insecure_plaintext=true");
	return open;
}

/* Other workers call this one at --listen, or at the address from which it calls the run. */
static enum hd_err own_place(struct hd_cmd *cmd, struct hd_network *net)
{
	char own[HD_ADDR_CAP];

	if (cmd->args.has[HD_OPT_LISTEN])
		return hd_network_is_address(cmd->args.text[HD_OPT_LISTEN]) ? spell(cmd, net,
			cmd->args.text[HD_OPT_LISTEN], NULL, net->workers)
			: not_an_address(cmd, "--listen", cmd->args.text[HD_OPT_LISTEN]);
	enum hd_err err = hd_sock_source(strchr(net->coordinator, ' ') + 1, own, &cmd->diag);
	return err ? err : spell(cmd, net, own + 4, NULL, net->workers);
}

enum hd_err hd_network_join(struct hd_cmd *cmd, const char *where, struct hd_network *net)
{
	enum hd_err err = HD_OK;

	*net = (struct hd_network){ .listens = true };
	if (cmd->args.has[HD_OPT_KEY])
		err = take_key(cmd, cmd->args.text[HD_OPT_KEY], net);
	else if (asks_for_plaintext(cmd))
		go_open(net);
	else
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--join %s needs the run's key: --key FILE, a copy of the file that the run was "
			"started with", where);
	if (!err)
		err = spell(cmd, net, where, NULL, net->coordinator);
	if (!err)
		err = own_place(cmd, net);
	if (err)
		hd_network_give(net);
	return err;
}

void hd_network_give(struct hd_network *net)
{
	hd_key_wipe(&net->key);
	net->has_key = false;
}
