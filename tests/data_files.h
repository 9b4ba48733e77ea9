/* data_files.h -- small data files made by code, in a simulated file system. */
#ifndef HD_TESTS_DATA_FILES_H
#define HD_TESTS_DATA_FILES_H

#include <stdio.h>
#include <string.h>

#include "sys/file_sim.h"
#include "data/dataset.h"
#include "tests/check.h"

static inline void put_file(struct hd_fs *fs, const char *path, const void *bytes, size_t len)
{
	struct hd_file file = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_file_open(fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, &file,
		&diag) == HD_OK, "%s", diag.text);
	CHECK(len == 0 || hd_file_write(&file, bytes, len, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_file_close(&file, &diag) == HD_OK, "%s", diag.text);
}

static inline void put_text(struct hd_fs *fs, const char *path, const char *text)
{
	put_file(fs, path, text, strlen(text));
}

static inline void put_folder(struct hd_fs *fs, const char *path)
{
	struct hd_diag diag = { "" };
	CHECK(hd_fs_mkdirs(fs, path, &diag) == HD_OK, "%s", diag.text);
}

static inline size_t store_be32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
	return 4;
}

static inline size_t store_le(uint8_t *at, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> 8 * i);
	return bytes;
}

/* An idx file of the given extents whose byte i is byte_of(i). Returns its length. */
static inline size_t make_idx(uint8_t *at, uint32_t rank, const uint32_t *dim, uint8_t (*byte_of)(size_t i))
{
	size_t len = 4, n = 1;

	at[0] = at[1] = 0;
	at[2] = 0x08;
	at[3] = (uint8_t)rank;
	for (uint32_t i = 0; i < rank; i++) {
		len += store_be32(at + len, dim[i]);
		n *= dim[i];
	}
	for (size_t i = 0; i < n; i++)
		at[len + i] = byte_of(i);
	return len + n;
}

/* The header of an .npy file of version 1.0, then the bytes. */
static inline size_t make_npy(uint8_t *at, const char *dict, const void *bytes, size_t len)
{
	size_t dict_len = strlen(dict);

	memcpy(at, "\x93NUMPY\x01\x00", 8);
	store_le(at + 8, dict_len, 2);
	memcpy(at + 10, dict, dict_len);
	if (len)
		memcpy(at + 10 + dict_len, bytes, len);
	return 10 + dict_len + len;
}

/* A token file; token i is token_of(i). */
static inline size_t make_tokens(uint8_t *at, uint32_t n, uint16_t (*token_of)(uint32_t i))
{
	memset(at, 0, 1024);
	store_le(at, 20240520, 4);
	store_le(at + 4, 1, 4);
	store_le(at + 8, n, 4);
	for (uint32_t i = 0; i < n; i++)
		store_le(at + 1024 + 2 * i, token_of(i), 2);
	return 1024 + 2 * (size_t)n;
}

/* A gzip file of one stored block (RFC 1952, 1951): no library needed. len < 65536. */
static inline size_t make_gzip(uint8_t *at, const uint8_t *bytes, size_t len)
{
	static const uint8_t head[11] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1 };
	uint32_t crc = ~0u;
	size_t n = sizeof head;

	memcpy(at, head, n);
	n += store_le(at + n, len, 2);
	n += store_le(at + n, ~len, 2);
	memcpy(at + n, bytes, len);
	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	n += len;
	n += store_le(at + n, ~crc, 4);
	return n + store_le(at + n, len, 4);
}

static inline struct hd_dataset *open_set(struct hd_fs *fs, struct hd_data_spec spec)
{
	struct hd_dataset *set = NULL;
	struct hd_diag diag = { "" };

	CHECK(hd_dataset_open(&set, &spec, fs, &diag) == HD_OK, "%s", diag.text);
	return set;
}

/* Opening must fail with this code and a message that holds `says`. */
static inline void check_refused(struct hd_fs *fs, struct hd_data_spec spec, enum hd_err want,
	const char *says)
{
	struct hd_dataset *set = NULL;
	struct hd_diag diag = { "" };
	enum hd_err err = hd_dataset_open(&set, &spec, fs, &diag);

	CHECK(err == want && strstr(diag.text, says) && !set, "%d, not %d; '%s' should hold '%s'", (int)err,
		(int)want, diag.text, says);
}

static inline void read_sample(const struct hd_dataset *set, uint32_t split, uint64_t index, void *x, void *y)
{
	void *out[] = { x, y };
	struct hd_diag diag = { "" };

	CHECK(set->ops->read(set, split, index, out, &diag) == HD_OK, "%s", diag.text);
}

#endif
