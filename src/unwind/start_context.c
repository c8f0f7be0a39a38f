// SPDX-License-Identifier: MIT
#include "unwind/start_context.h"

#include <string.h>

#define CODE_MAX  1024 /* of makecontext, which has 450 bytes in glibc 2.36 */
#define LEA_BYTES 7

static bool read_code(const struct elf_image *image, uint64_t address, void *to, size_t bytes)
{
	const Elf64_Phdr *segment = elf_image_segment(image, address, bytes);

	return segment && segment->p_flags & PF_X &&
	       elf_image_read(image, segment->p_offset + address - segment->p_vaddr, to, bytes);
}

/* It takes its stack from rbx: mov %rbx,%rsp; maybe after an endbr64. */
static bool is_start(const struct elf_image *image, uint64_t address)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa }, move[] = { 0x48, 0x89, 0xdc };
	uint8_t code[sizeof(endbr) + sizeof(move)];

	if (!read_code(image, address, code, sizeof(code)))
		return false;
	return !memcmp(code, move, sizeof(move)) ||
	       (!memcmp(code, endbr, sizeof(endbr)) &&
	        !memcmp(code + sizeof(endbr), move, sizeof(move)));
}

/* lea DISTANCE(%rip),REGISTER */
static bool is_lea(const uint8_t *code, int32_t *distance)
{
	memcpy(distance, code + 3, sizeof(*distance));
	return (code[0] & 0xfb) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 0x05;
}

uint64_t start_context_find(const struct elf_image *image)
{
	struct elf_symbols symbols;
	uint8_t code[CODE_MAX];
	Elf64_Sym made;
	int32_t distance;
	size_t bytes;

	if (elf_symbols_dynamic(image, &symbols) ||
	    elf_symbols_find(image, &symbols, "makecontext", false, &made) != 1)
		return 0;
	bytes = made.st_size < sizeof(code) ? made.st_size : sizeof(code);
	if (!read_code(image, made.st_value, code, bytes))
		return 0;
	for (size_t at = 0; at + LEA_BYTES <= bytes; at++) {
		uint64_t target;

		if (!is_lea(code + at, &distance))
			continue;
		target = made.st_value + at + LEA_BYTES + (uint64_t)(int64_t)distance;
		if (is_start(image, target))
			return target;
	}
	return 0;
}
