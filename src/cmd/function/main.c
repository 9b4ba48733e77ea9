/* heddle-function: the function worker without the rest of the program, for machines that have nothing but a
 * kernel. AWS Lambda starts it as `bootstrap` (cmake/function.cmake, functions/pack.h). */
#include <stdio.h>
#include <stdlib.h>

#include "sys/signal.h"
#include "sys/thread.h"
#include "sys/tie.h"
#include "functions/worker.h"

int main(void)
{
	const char *api = getenv("AWS_LAMBDA_RUNTIME_API");
	struct hd_diag diag = { "" };
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_thread_arith_set();
	enum hd_err err = hd_tie_follow(&diag);
	if (!err && (!api || !*api))
		err = hd_fail(&diag, HD_E_INVAL, "AWS_LAMBDA_RUNTIME_API is not set: AWS Lambda and "
			"`heddle chaos lambda` set it for workers that they start");
	if (!err)
		err = hd_signal_install(&diag);
	if (!err)
		err = hd_fn_serve_runtime(api, &clock, &diag);
	if (err)
		fprintf(stderr, "heddle-function: %s\n", diag.text[0] ? diag.text : hd_err_text(err));
	return err ? hd_err_exit(err) : 0;
}
