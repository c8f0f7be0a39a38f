// SPDX-License-Identifier: MIT
/* The whole life of an elf_file on any bytes: open at any depth, list, read code,
 * name addresses. */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "divert/entry_file.h"
#include "probe/elf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

/* All bytes are read, so that AddressSanitizer sees what was promised and is not there. */
static uint8_t sum(const uint8_t *bytes, size_t len)
{
	uint8_t total = 0;

	for (size_t i = 0; i < len; i++)
		total ^= bytes[i];
	return total;
}

static void use(const struct elf_file *file)
{
	static volatile uint8_t sink;
	const struct elf_function *functions;
	size_t n = elf_file_functions(file, &functions);

	CHECK(elf_file_has_layer(file, LAYER_DRIVER) || elf_file_has_layer(file, LAYER_RUNTIME));
	for (size_t i = 0; i < n; i++) {
		CHECK(api_is_symbol(functions[i].name) && !strchr(functions[i].name, '@'));
		CHECK(!i || functions[i - 1].offset < functions[i].offset);
	}
	for (size_t i = 0; i < n && i < 4; i++) {
		size_t len = 4096;
		const uint8_t *bytes = elf_file_bytes(file, functions[i].offset, &len);

		CHECK(bytes || !len);
		sink = sum(bytes, len);
	}
}

/* Which of them could be diverted: each is answered, and nothing outside of the file is read. */
static void judge(int fd, const struct elf_file *file)
{
	const struct elf_function *listed;
	struct entry_function *functions;
	size_t n = elf_file_functions(file, &listed), count;

	CHECK(entry_module_judge(fd, "input", &functions, &count, NULL) == 0 && count == n);
	for (size_t i = 0; i < n; i++) {
		CHECK(functions[i].offset == listed[i].offset);
		CHECK(functions[i].refusal < ENTRY_REFUSALS);
		CHECK((functions[i].refusal == ENTRY_MOVABLE) == (functions[i].bytes >= 5));
	}
	free(functions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A byte of the header that means nothing chooses the depth; most files need all of it. */
	enum elf_depth depth = size > EI_PAD && data[EI_PAD] < ELF_WHOLE ? data[EI_PAD] : ELF_WHOLE;
	struct elf_file *file = NULL;
	struct err err = { 0 };
	static int fd = -1;
	int rc;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	rc = elf_file_open(fd, "input", depth, &file, &err);
	CHECK((rc == 0) == (file != NULL) && (rc < 0) == (err.text[0] != '\0'));
	if (file)
		use(file);
	if (file && depth == ELF_WHOLE)
		judge(fd, file);
	elf_file_free(file);
	return 0;
}
