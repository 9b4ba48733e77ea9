#include "cmd/run/function.h"

#include <string.h>

#include "sys/signal.h"
#include "functions/front.h"
#include "functions/pack.h"
#include "functions/worker.h"
#include "cmd/json_line.h"
#include "cmd/chaos/lambda.h"

static const char *variable(const char *name)
{
	size_t n = strlen(name);

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=')
			return *at + n + 1;
	return NULL;
}

static void say_address(void *self, const char *addr)
{
	(void)self;
	printf("http://%s\n", addr + 4);
	fflush(stdout);
}

/* Where it listens: --listen, or the loopback at the port that the front end names. */
static enum hd_err serve_http(struct hd_cmd *cmd)
{
	const char *listen = cmd->args.text[HD_OPT_LISTEN], *port = variable("PORT");
	char addr[HD_ADDR_CAP];
	struct hd_fn_front_spec spec = { .clock = &cmd->clock, .listen = addr, .world = listen != NULL,
		.drain_ns = HD_FN_DRAIN_NS, .ready = say_address };

	snprintf(addr, sizeof addr, listen ? "tcp:%s" : "tcp:127.0.0.1:%s", listen ? listen : port ? port :
		"8080");
	enum hd_err err = hd_cmd_slots(cmd, 1, &spec.concurrency);
	if (!err)
		err = hd_signal_install(&cmd->diag);
	if (!err && listen && strncmp(listen, "127.", 4) != 0 && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> warning: whatever reaches %s can have tasks computed here; a proxy of "
			"the same machine that knows its callers is right\n", listen);
	return err ? err : hd_fn_serve_http(&spec, &cmd->leave_at_once, &cmd->diag);
}

enum hd_err hd_cmd_function(struct hd_cmd *cmd)
{
	const char *kind = cmd->args.text[HD_OPT_FUNCTION], *api = variable("AWS_LAMBDA_RUNTIME_API");

	if (!strcmp(kind, "http")) {
		hd_title_set(&cmd->title, "heddle fn", "heddle: function worker over HTTP");
		return serve_http(cmd);
	}
	if (!api || !*api)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--function=%s serves what AWS_LAMBDA_RUNTIME_API names, as 127.0.0.1:9001 or "
			"unix:PATH; AWS Lambda and `heddle bench functions` set it for workers that they "
			"start", kind);
	hd_title_set(&cmd->title, "heddle fn", "heddle: function worker of %s", api);
	enum hd_err err = hd_signal_install(&cmd->diag);
	return err ? err : hd_fn_serve_runtime(api, &cmd->clock, &cmd->diag);
}

/* The executable that is packed: beside this program in a build folder, in libexec where it is installed. */
enum hd_err hd_cmd_bootstrap(struct hd_cmd *cmd, char *path, size_t cap, struct hd_diag *diag)
{
	static const char *const places[] = { "heddle-function", "../libexec/heddle/heddle-function" };
	char program[HD_PATH_CAP];
	struct hd_stat stat;

	if (cmd->args.has[HD_OPT_BOOTSTRAP]) {
		snprintf(path, cap, "%s", cmd->args.text[HD_OPT_BOOTSTRAP]);
		return HD_OK;
	}
	enum hd_err err = hd_proc_program(program, sizeof program, diag);
	if (err)
		return err;
	char *slash = strrchr(program, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		int n = snprintf(path, cap, "%.*s/%s", (int)(slash - program), program, places[i]);
		if (n > 0 && (size_t)n < cap && !hd_fs_stat(&cmd->fs, path, &stat, NULL))
			return HD_OK;
	}
	return hd_fail(diag, HD_E_NOTFOUND,
		"this build has no heddle-function, the static executable that is packed; "
		"cmake -DHD_FUNCTION=ON says what it lacks; --bootstrap FILE names another one");
}

enum hd_err hd_cmd_pack(struct hd_cmd *cmd)
{
	const char *to = cmd->args.text[HD_OPT_OUTPUT];
	struct hd_json_line line;
	struct hd_fn_pack pack;
	uint8_t *bytes = NULL;
	char path[HD_PATH_CAP];
	size_t len = 0;

	if (!cmd->args.has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"-o FILE: where the zip file is written, as -o fn.zip");
	enum hd_err err = hd_cmd_bootstrap(cmd, path, sizeof path, &cmd->diag);
	if (!err)
		err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_FN_PACK_BYTES, &bytes, &len,
			&cmd->diag);
	if (!err)
		err = hd_fn_pack(path, bytes, len, &cmd->arena, &pack, &cmd->diag);
	if (!err)
		err = hd_file_write_atomic(&cmd->fs, to, pack.file.bytes, pack.file.len, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_json_writer *w = hd_json_line_open(cmd, &line);
		hd_json_put_text(w, "file", to);
		hd_json_put_text(w, "arch", pack.arch);
		hd_json_put_i64(w, "bytes", (int64_t)pack.file.len);
		hd_json_line_print(&line);
		return HD_OK;
	}
	printf("%s: bootstrap, %s, static, %zu bytes\n", to, pack.arch, len);
	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, ">> aws lambda create-function --function-name heddle --runtime "
			"provided.al2023 --handler bootstrap --architectures %s --memory-size 1769 "
			"--timeout 60 --role ROLE "
			"--zip-file fileb://%s\n", pack.arch, to);
	return HD_OK;
}
