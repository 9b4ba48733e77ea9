#include <string.h>

#include "base/alloc.h"
#include "sys/signal.h"
#include "daemon/http.h"
#include "chaos/metadata_server.h"
#include "cmd/verbs.h"

/* The metadata services of clouds on a port of the loopback, by a script that may grow while it runs. */

enum { LOOK_NS = 50000000, SCRIPT_BYTES = 1 << 20 };

struct spot_services {
	struct hd_cmd *cmd;
	struct hd_metadata_server *server;
	const char *script;
	size_t taken;                     /* bytes of whole lines */
	uint32_t line;
};

/* New whole lines. What happens is counted from the begin of the server, or for lines that came later and
 * have no time, at once. */
static enum hd_err take_lines(struct spot_services *s)
{
	struct hd_cmd *cmd = s->cmd;
	struct hd_arena arena;
	uint8_t *bytes = NULL;
	size_t len = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(&cmd->fs, s->script, &arena, SCRIPT_BYTES, &bytes, &len,
		&cmd->diag);
	while (!err && s->taken < len) {
		const char *at = (const char *)bytes + s->taken, *end = memchr(at, '\n', len - s->taken);
		struct hd_metadata_event event;
		struct hd_diag why = { "" };
		if (!end)
			break;
		s->line++;
		s->taken += (size_t)(end + 1 - at);
		if (end == at)
			continue;
		err = hd_metadata_read(at, (size_t)(end - at), &event, &why);
		if (err)
			err = hd_fail(&cmd->diag, err, "%s:%u: %s", s->script, s->line, why.text);
		else if (!hd_metadata_add(&s->server->metadata, &event))
			err = hd_fail(&cmd->diag, HD_E_INPUT,
				"%s:%u: more than %d events wait for their time; write fewer at once",
				s->script,
				s->line, HD_METADATA_SCRIPT);
	}
	hd_arena_finish(&arena);
	return err;
}

static enum hd_err serve(struct spot_services *s)
{
	struct hd_cmd *cmd = s->cmd;
	enum hd_err err = HD_OK;

	while (!err && !hd_signal_stop()) {
		err = take_lines(s);
		if (!err)
			err = hd_metadata_poll(s->server, hd_clock_now_ns(&cmd->clock) + LOOK_NS, &cmd->diag);
	}
	return err;
}

static enum hd_err verb_chaos_spot(struct hd_cmd *cmd)
{
	struct spot_services s = { .cmd = cmd, .script = cmd->args.text[HD_OPT_SCRIPT] };
	const char *where = cmd->args.has[HD_OPT_LISTEN] ? cmd->args.text[HD_OPT_LISTEN] : "127.0.0.1:0";
	char addr[HD_ADDR_CAP];

	if (!cmd->args.has[HD_OPT_SCRIPT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
		"--script FILE names the events to play, one JSON object a line");
	enum hd_err err = hd_http_where(where, addr, &cmd->diag);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	s.server = err ? NULL : hd_alloc(sizeof *s.server);
	if (!err && !s.server)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the services");
	if (!err)
		err = hd_metadata_open(s.server, &cmd->clock, addr, &cmd->diag);
	if (!err) {
		s.server->log = stdout;
		printf("http://%s\n", s.server->listener.addr + 4);
		fflush(stdout);
		err = serve(&s);
		hd_metadata_close(s.server);
	}
	hd_free(s.server);
	return err;
}

const struct hd_verb hd_verb_chaos_spot = {
	.name = "chaos spot", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "play the metadata services of EC2, GCE and Azure on this machine, by a script",
	.more =
		"Prints the base address, then each request as a line of JSON; ends at SIGTERM. A node is "
		"served under /NAME: workers hear it with -s elastic.notice.source=ec2 -s "
		"elastic.notice.base=http://127.0.0.1:PORT/NAME, where {pid} stands for their process.\n"
		"--script FILE: one event a line, as {\"t\":30,\"node\":\"n3\",\"do\":\"notice\","
		"\"cloud\":\"ec2\",\"lead\":120}; lines may be added while it runs. t: seconds from the "
		"begin, past or missing: at once. do: notice, rebalance, migrate, withdraw, start, expire, "
		"fail, silence, heal; late: the notice comes so much later; status of fail (0: "
		"garbage); action of ec2.",
	.opts = HD_OPTS(HD_OPT_SCRIPT, HD_OPT_LISTEN),
	.run = verb_chaos_spot, .test = "program_notice.sh",
};
