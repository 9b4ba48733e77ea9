#define _GNU_SOURCE        /* of the C library: explicit_bzero */
#include "sys/crypto_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crypto.h"
#include "sys/crypto_tls.h"

enum { DIGITS = 2 * HD_KEY_BYTES };

static enum hd_err write_text(int fd, const char *path, const char *text, size_t len, struct hd_diag *diag)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, text + done, len - done);
		if (n < 0 && errno != EINTR)
			return hd_fail_errno(diag, errno, "write", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return fsync(fd) ? hd_fail_errno(diag, errno, "write", path) : HD_OK;
}

enum hd_err hd_key_make(const char *path, struct hd_diag *diag)
{
	char text[DIGITS + 2];
	struct hd_key key;

	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return hd_fail(diag, HD_E_EXISTS, "%s is there already; choose another name, or use that key",
			path);
	if (fd < 0)
		return hd_fail_errno(diag, errno, "create", path);
	enum hd_err err = hd_random_bytes(key.byte, sizeof key.byte, diag);
	for (size_t i = 0; i < HD_KEY_BYTES && !err; i++)
		snprintf(text + 2 * i, 3, "%02x", key.byte[i]);
	text[DIGITS] = '\n';
	if (!err)
		err = write_text(fd, path, text, DIGITS + 1, diag);
	close(fd);
	if (err)
		unlink(path);
	explicit_bzero(text, sizeof text);
	hd_key_wipe(&key);
	return err;
}

static bool digit(char c, uint8_t *value)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	*value = at ? (uint8_t)(at - digits) : 0;
	return at != NULL;
}

static bool parse(const char *text, size_t len, struct hd_key *key)
{
	bool good = len == DIGITS || (len == DIGITS + 1 && text[DIGITS] == '\n');

	for (size_t i = 0; i < HD_KEY_BYTES && good; i++) {
		uint8_t high = 0, low = 0;
		good = digit(text[2 * i], &high) && digit(text[2 * i + 1], &low);
		key->byte[i] = (uint8_t)(high << 4 | low);
	}
	return good;
}

static enum hd_err judge(int fd, const char *path, struct hd_diag *diag)
{
	struct stat st;

	if (fstat(fd, &st))
		return hd_fail_errno(diag, errno, "look at", path);
	if (!S_ISREG(st.st_mode))
		return hd_fail(diag, HD_E_INPUT,
			"%s is not a file; a key is made by `heddle serve --new-key FILE`", path);
	if (st.st_uid != geteuid())
		return hd_fail(diag, HD_E_REFUSED,
			"%s belongs to another user; copy the key to a file of your own, mode 0600", path);
	if ((st.st_mode & 07777) != 0600 && (st.st_mode & 07777) != 0400)
		return hd_fail(diag, HD_E_REFUSED,
			"%s has the mode %04o, others may read the key; make it `chmod 0600 %s`", path,
			(unsigned)(st.st_mode & 07777), path);
	return HD_OK;
}

enum hd_err hd_key_read(const char *path, struct hd_key *key, struct hd_diag *diag)
{
	char text[DIGITS + 2];
	size_t len = 0;
	ssize_t n = 1;

	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return hd_fail_errno(diag, errno, "open the key", path);
	enum hd_err err = judge(fd, path, diag);
	while (!err && n && len < sizeof text) {
		n = read(fd, text + len, sizeof text - len);
		if (n < 0 && errno != EINTR)
			err = hd_fail_errno(diag, errno, "read", path);
		len += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (!err && !parse(text, len, key))
		err = hd_fail(diag, HD_E_INPUT,
			"%s is not a key: it holds %d hexadecimal digits, as `heddle serve --new-key FILE` "
			"writes them", path, DIGITS);
	explicit_bzero(text, sizeof text);
	if (!err && prctl(PR_SET_DUMPABLE, 0))
		err = hd_fail_errno(diag, errno, "keep the key out of core dumps", path);
	if (err)
		hd_key_wipe(key);
	return err;
}

enum hd_err hd_key_private(const char *path, struct hd_diag *diag)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return hd_fail_errno(diag, errno, "open the keys", path);
	enum hd_err err = judge(fd, path, diag);
	close(fd);
	return err;
}

enum hd_err hd_key_id(const struct hd_key *key, struct hd_hash *id, struct hd_diag *diag)
{
	const struct hd_tls_config config = { .key = key->byte, .key_len = sizeof key->byte };
	uint8_t secret[HD_TLS_SECRET];

	if (!hd_tls_secret(&config, "heddle key id", secret))
		return hd_fail(diag, HD_E_REFUSED, "OpenSSL has no HKDF here; install its default provider");
	memcpy(id->byte, secret, sizeof id->byte);
	explicit_bzero(secret, sizeof secret);
	return HD_OK;
}

void hd_key_wipe(struct hd_key *key) { explicit_bzero(key, sizeof *key); }
