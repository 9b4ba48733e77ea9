#include "daemon/http_frontend.h"

#include <stdio.h>
#include <string.h>

#include "driver/control.h"
#include "daemon/http_client.h"

static enum hd_err draw_token(struct hd_http_frontend *f, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	if ((size_t)snprintf(path, sizeof path, "%s/token", f->dir) >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path %.80s... is too long", f->dir);
	enum hd_err err = hd_fs_stat(&f->fs, path, &stat, NULL) ? HD_OK : hd_fs_unlink(&f->fs, path, diag);
	if (!err)
		err = hd_key_make(path, diag);
	return err ? err : hd_key_read(path, &f->token, diag);
}

static enum hd_err open_port(struct hd_http_frontend *f, struct hd_loop *loop, struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP], url[HD_ADDR_CAP + 8];
	enum hd_err err = hd_http_where(f->where, addr, diag);

	if (!err)
		err = draw_token(f, diag);
	if (!err)
		err = hd_http_open(&f->port, addr, loop, &f->net, diag);
	if (!err && f->opened) {
		snprintf(url, sizeof url, "http://%s", f->port.listener.addr + strlen("tcp:"));
		f->opened(f->user, url);
	}
	return err;
}

static bool has_users(struct hd_http_frontend *f)
{
	char path[HD_PATH_CAP];
	struct hd_stat stat;

	snprintf(path, sizeof path, "%s/" HD_USERS_FILE, f->dir);
	return !hd_fs_stat(&f->fs, path, &stat, NULL);
}

/* Where others can enter the folder, the file says which of them are users. */
static enum hd_err open_other(struct hd_http_frontend *f, struct hd_loop *loop, struct hd_diag *diag)
{
	char addr[HD_ADDR_CAP];

	if (!f->local.shared)
		return hd_fail(diag, HD_E_INVAL, "--socket %.200s: without %.200s/" HD_USERS_FILE
			" a scheduler has one owner, and no socket for others", f->also, f->dir);
	enum hd_err err = hd_control_path(f->also, HD_HTTP_SOCKET, addr, diag);
	return err ? err : hd_http_open(&f->other, addr, loop, &f->net, diag);
}

static enum hd_err frontend_open(void *self, const struct hd_handler *handler, struct hd_loop *loop,
	uint64_t tag, struct hd_diag *diag)
{
	struct hd_http_frontend *f = self;
	char addr[HD_ADDR_CAP], path[HD_PATH_CAP];

	hd_fs_real(&f->fs);
	hd_net_real(&f->net);
	if ((size_t)snprintf(path, sizeof path, "%s/audit.ndjson", f->dir) >= sizeof path)
		return hd_fail(diag, HD_E_INVAL, "the path %.80s... is too long", f->dir);
	enum hd_err err = hd_lines_open(&f->audit, &f->fs, path, diag);
	if (!err)
		err = hd_control_path(f->dir, HD_HTTP_SOCKET, addr, diag);
	if (err)
		return err;
	bool shared = has_users(f);
	f->local = (struct hd_http){ .handler = *handler, .audit = &f->audit, .tag = tag, .shared = shared };
	f->other = (struct hd_http){ .handler = *handler, .audit = &f->audit, .tag = tag + 2 * HD_HTTP_TAGS,
		.shared = shared };
	f->port = (struct hd_http){ .handler = *handler, .audit = &f->audit, .tag = tag + HD_HTTP_TAGS,
		.token = &f->token };
	err = hd_http_open(&f->local, addr, loop, &f->net, diag);
	if (!err && f->also)
		err = open_other(f, loop, diag);
	return err || !f->where ? err : open_port(f, loop, diag);
}

static void frontend_event(void *self, const struct hd_loop_event *event)
{
	struct hd_http_frontend *f = self;
	hd_http_event(event->tag == f->local.tag ? &f->local : event->tag == f->other.tag ? &f->other :
		&f->port, event);
}

static int64_t frontend_tick(void *self, int64_t now_ns)
{
	struct hd_http_frontend *f = self;
	int64_t local = hd_http_tick(&f->local, now_ns), port = hd_http_tick(&f->port, now_ns);
	int64_t other = hd_http_tick(&f->other, now_ns), next = local < port ? local : port;

	return next < other ? next : other;
}

static void frontend_changed(void *self, uint64_t last)
{
	struct hd_http_frontend *f = self;

	(void)last;
	hd_http_changed(&f->local);
	hd_http_changed(&f->port);
	hd_http_changed(&f->other);
}

static void frontend_close(void *self)
{
	struct hd_http_frontend *f = self;

	hd_http_close(&f->local);
	hd_http_close(&f->port);
	hd_http_close(&f->other);
	hd_key_wipe(&f->token);
	(void)!hd_lines_close(&f->audit, NULL);           /* its lines are written one by one */
}

const struct hd_frontend_ops hd_http_frontend_ops = {
	.name = "http", .open = frontend_open, .event = frontend_event, .tick = frontend_tick,
		.changed = frontend_changed, .close = frontend_close,
};
