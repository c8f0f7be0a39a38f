// SPDX-License-Identifier: MIT
/*
 * Any bytes as a trace file. A first byte of 'F' or 'f' is followed by a file as it is; else the
 * rest is taken for unpacked chunks, which are packed here, so that the fuzzer reaches what is
 * inside: type, events, announced, two bytes of length, then the payload. With a small letter only
 * a part of the file is read. Checksums are not looked at: fuzz_chunks is for what has good ones.
 */
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/looker.h"
#include "trace/chunk.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pack(const uint8_t *data, size_t size, struct buf *file)
{
	static const uint8_t header[FORMAT_HEADER_BYTES] = FORMAT_MAGIC "\x01";
	struct packer *packer = packer_new();

	buf_add(file, header, sizeof(header));
	while (size >= 5) {
		struct chunk_head head = { .type = data[0],
			                   .events = data[1],
			                   .announced = data[2] };
		size_t len = data[3] | (size_t)data[4] << 8;

		data += 5;
		size -= 5;
		len = len < size ? len : size;
		packer_add(packer, &head, data, len, file);
		data += len;
		size -= len;
	}
	packer_free(packer);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	chunk_any_checksum = true;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = { 0 };

	if (!size)
		return 0;
	if ((data[0] | 0x20) == 'f')
		buf_add(&file, data + 1, size - 1);
	else
		pack(data + 1, size - 1, &file);
	look_at_file(file.data, file.len, data[0] & 0x20);
	buf_free(&file);
	return 0;
}
