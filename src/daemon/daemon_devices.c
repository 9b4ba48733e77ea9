#include <stdio.h>
#include <string.h>

#include "sys/crypto_key.h"
#include "daemon/daemon_int.h"

/* What the devices of a scheduler are, and what is said of them: rows of daemon_int.h. */

/* of a run: made for it, where nodes are to reach its coordinator */
#define RUN_KEY "key"

const struct daemon_devices daemon_devices_here = {
	.name = "this machine", .look = daemon_look_here, .work = daemon_work_here, .signal =
		daemon_signal_here,
};

const struct daemon_devices *daemon_devices_of(const struct hd_daemon_spec *spec)
{
	return spec->pilots ? &daemon_devices_pilots : spec->batches ? &daemon_devices_batches :
		&daemon_devices_here;
}

bool daemon_is_lent(const struct hd_daemon *d, uint32_t device)
{
	return !d->devices->is_lent || d->devices->is_lent(d, device);
}

void daemon_feed_process(struct hd_daemon *d, uint32_t device, uint64_t job, bool there, int32_t code)
{
	const struct hd_dispatch_event event = { .kind = HD_DISPATCH_IN_PROCESS, .device = device, .job = job,
		.ok = there, .code = code };
	struct hd_diag diag = { "" };

	if (!d->broken && daemon_feed(d, &event, NULL, NULL, &diag))
		daemon_log(d, "warning", 0, diag.text);
}

enum hd_err daemon_listen(const char *own, const struct watch *w, char listen[HD_ADDR_CAP],
	char key[HD_PATH_CAP], struct hd_diag *diag)
{
	snprintf(listen, HD_ADDR_CAP, strchr(own, ':') && *own != '[' ? "[%.80s]:0" : "%.80s:0", own);
	snprintf(key, HD_PATH_CAP, "%s/" RUN_KEY, w->run);
	struct hd_diag why = { "" };
	enum hd_err err = hd_key_make(key, &why);
	return !err || err == HD_E_EXISTS ? HD_OK : hd_fail(diag, err, "%s", why.text);
}

/* ---- what is shown ---- */

const char *daemon_lent_text(const struct hd_daemon *d, uint32_t device, char text[HD_DAEMON_LENT])
{
	text[0] = '\0';
	if (d->devices->text)
		d->devices->text(d, device, text);
	return text;
}

const char *daemon_lent_name(struct hd_daemon *d, uint32_t device)
{
	char text[HD_DAEMON_LENT];

	return *daemon_lent_text(d, device, text) ? hd_arena_text(&d->scratch, text, strlen(text)) : NULL;
}

void daemon_fill_lent(void *user, struct hd_json_writer *w)
{
	const struct hd_daemon *d = user;
	struct hd_launcher_count count;

	for (uint32_t t = 0; d->devices->lent && t < d->spec->pools->ntypes; t++) {
		const struct hd_answer_lent is = d->devices->lent(d, t, &count);
		hd_fields_put_object(&hd_answer_lent_fields, 0, &is, NULL, w);
	}
}

const char *daemon_lent_why(const struct hd_daemon *d, uint64_t job, char text[HD_DAEMON_LENT])
{
	struct hd_launcher_count count;
	struct hd_text line;

	hd_text_fixed(&line, text, HD_DAEMON_LENT);
	text[0] = '\0';
	if (d->devices->why) {
		d->devices->why(d, job, text);
		return text;
	}
	for (uint32_t t = 0; d->devices->lent && t < d->spec->pools->ntypes &&
		line.len < HD_DAEMON_LENT - 200; t++) {
		const struct hd_answer_lent is = d->devices->lent(d, t, &count);
		if (is.wanted || is.waiting || is.running)
			hd_text_addf(&line, "%s%s: %lld nodes asked for, %lld run, %lld wait%s%.80s",
				line.len ? "; " : "", is.type, (long long)is.wanted, (long long)is.running,
				(long long)is.waiting, *is.why ? ": " : "", is.why);
	}
	return text;
}
