/* heddle-function: the function worker without the rest of the program, for machines that have nothing but a
 * kernel. AWS Lambda starts it as `bootstrap` (cmake/function.cmake, functions/pack.h); in a container it is
 * the HTTP front end at $PORT, or at its argument HOST:PORT. */
#include <stdio.h>
#include <stdlib.h>

#include "sys/signal.h"
#include "sys/socket.h"
#include "sys/thread.h"
#include "sys/tie.h"
#include "functions/front.h"
#include "functions/worker.h"

static enum hd_err serve_http(const char *listen, struct hd_clock *clock, bool *abandoned,
	struct hd_diag *diag)
{
	const char *port = getenv("PORT");
	char addr[HD_ADDR_CAP];
	const struct hd_fn_front_spec spec = { .clock = clock, .listen = addr, .world = listen != NULL,
		.concurrency = 1, .drain_ns = HD_FN_DRAIN_NS };

	snprintf(addr, sizeof addr, listen ? "tcp:%s" : "tcp:127.0.0.1:%s", listen ? listen : port);
	return hd_fn_serve_http(&spec, abandoned, diag);
}

int main(int argc, char **argv)
{
	const char *api = getenv("AWS_LAMBDA_RUNTIME_API");
	struct hd_diag diag = { "" };
	struct hd_clock clock;
	bool abandoned = false;

	hd_clock_real(&clock);
	hd_thread_arith_set();
	enum hd_err err = hd_tie_follow(&diag);
	if (!err)
		err = hd_signal_install(&diag);
	if (!err && api && *api)
		err = hd_fn_serve_runtime(api, &clock, &diag);
	else if (!err && (argc == 2 || getenv("PORT")))
		err = serve_http(argc == 2 ? argv[1] : NULL, &clock, &abandoned, &diag);
	else if (!err)
		err = hd_fail(&diag, HD_E_INVAL, "nothing says what to serve: AWS Lambda sets "
			"AWS_LAMBDA_RUNTIME_API, Knative PORT; or name HOST:PORT");
	if (err)
		fprintf(stderr, "heddle-function: %s\n", diag.text[0] ? diag.text : hd_err_text(err));
	if (abandoned)
		_Exit(err ? hd_err_exit(err) : 0);
	return err ? hd_err_exit(err) : 0;
}
