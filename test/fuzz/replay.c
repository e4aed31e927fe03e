/* SPDX-License-Identifier: ISC */
/*
 * Runs a fuzz target over its seeds without libFuzzer, so that any compiler can do it in `make
 * check`: fuzz_NAME reads $srcdir/test/fuzz/corpus/NAME, and each seed is one test in TAP. A
 * seed fails by aborting the process; the test driver then reports the missing lines.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_seed(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/*
 * Read the whole file into memory of exactly its size, so that a read past its end is
 * detected.
 */
static uint8_t *read_seed(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long length;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0) {
		rewind(file);
		*size = (size_t)length;
		data = malloc(*size ? *size : 1);
		if (data && fread(data, 1, *size, file) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

static void replay(int number, const char *folder, const char *seed)
{
	char path[4096];
	uint8_t *data;
	size_t size = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, seed);
	data = read_seed(path, &size);
	if (data) {
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	printf("%s %d - seed %s\n", data ? "ok" : "not ok", number, seed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *top = getenv("srcdir");
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;
	struct dirent **seeds;
	char folder[2048];
	int count, i;

	name = name ? name + 1 : argv[0];
	if (strncmp(name, "fuzz_", 5) == 0)
		name += 5;
	snprintf(folder, sizeof(folder), "%s/test/fuzz/corpus/%s", top ? top : ".", name);
	count = scandir(folder, &seeds, is_seed, alphasort);
	if (count <= 0) {
		printf("Bail out! no seeds in %s\n", folder);
		return EXIT_FAILURE;
	}
	printf("1..%d\n", count);
	fflush(stdout);
	for (i = 0; i < count; i++) {
		replay(i + 1, folder, seeds[i]->d_name);
		free(seeds[i]);
	}
	free(seeds);
	return EXIT_SUCCESS;
}
