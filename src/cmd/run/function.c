#include "cmd/run/function.h"

#include <string.h>

#include "sys/signal.h"
#include "functions/worker.h"

static const char *variable(const char *name)
{
	size_t n = strlen(name);

	for (char *const *at = hd_proc_environment(); *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=')
			return *at + n + 1;
	return NULL;
}

enum hd_err hd_cmd_function(struct hd_cmd *cmd)
{
	const char *kind = cmd->args.text[HD_OPT_FUNCTION], *api = variable("AWS_LAMBDA_RUNTIME_API");

	if (!api || !*api)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--function=%s serves what AWS_LAMBDA_RUNTIME_API names, as 127.0.0.1:9001 or "
			"unix:PATH; AWS Lambda and `heddle bench functions` set it for workers that they "
			"start", kind);
	hd_title_set(&cmd->title, "heddle fn", "heddle: function worker of %s", api);
	enum hd_err err = hd_signal_install(&cmd->diag);
	return err ? err : hd_fn_serve_runtime(api, &cmd->clock, &cmd->diag);
}
