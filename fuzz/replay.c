/* Runs a fuzz target on every file of the folders given, so that seeds and past
 * findings are tested in builds that have no libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum { MAX_BYTES = 16 << 20 };          /* larger than any seed; longer files are cut */

static int replay(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *bytes = malloc(MAX_BYTES);
	FILE *file;
	size_t len;
	int len_path = snprintf(path, sizeof path, "%s/%s", folder, name);

	if (!bytes || len_path < 0 || (size_t)len_path >= sizeof path || !(file = fopen(path, "rb"))) {
		free(bytes);
		return -1;
	}
	len = fread(bytes, 1, MAX_BYTES, file);
	fclose(file);
	/* exactly as large as the input, so that a sanitizer sees the first byte behind it */
	uint8_t *exact = malloc(len ? len : 1);
	for (size_t i = 0; exact && i < len; i++)
		exact[i] = bytes[i];
	free(bytes);
	if (!exact)
		return -1;
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 0;
}

int main(int argc, char **argv)
{
	int nfiles = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *entry;

		while (folder && (entry = readdir(folder)))
			if (entry->d_name[0] != '.') {
				if (replay(argv[i], entry->d_name) != 0) {
					fprintf(stderr, "cannot read %s/%s\n", argv[i], entry->d_name);
					return 1;
				}
				nfiles++;
			}
		if (folder)
			closedir(folder);
	}
	printf("%d inputs replayed\n", nfiles);
	return nfiles ? 0 : 1;
}
