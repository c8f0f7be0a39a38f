// SPDX-License-Identifier: MIT
/*
 * Any bytes as a function. The first bytes are settings: how much of the code is padding, what
 * others know of it, how far away the moved code lies, which byte is another one in memory,
 * where a kernel probe lies. What
 * is moved must be the same instructions to the same addresses; what jumps into it must be refused.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "divert/entry_move.h"
#include "tests/unit/entry_compare.h"

#define SETTINGS 7
#define AT       0x7f0000001000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t endbr(const struct entry_code *code)
{
	return code->size >= 4 && !memcmp(code->file, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;
}

/* Of its own kind, by the decoder alone: whether a branch in the code leads into its first bytes.
 */
static int leads_inside(const struct entry_code *code, const struct entry_move *move)
{
	struct compared one;
	size_t at = 0;

	while (at < code->size) {
		uint64_t target;

		if (!compare_decode(code->file + at, code->size - at, code->address + at, &one)) {
			at++;
			continue;
		}
		at += one.raw.length;
		if (!compare_branches(&one))
			continue;
		target = compare_absolute(&one, 0) - code->address;
		if (target < move->skip + move->bytes &&
		    !(one.raw.mnemonic == ZYDIS_MNEMONIC_CALL &&
		      (target == 0 || target == endbr(code))))
			return 1;
	}
	return 0;
}

static void check(const struct entry_code *code, const struct entry_places *places)
{
	struct entry_move move;
	uint32_t moved;
	uint64_t at;

	if (!entry_move(code, places, &move)) {
		if (move.refusal == ENTRY_MOVABLE || move.refusal >= ENTRY_REFUSALS ||
		    !entry_refusal_text(move.refusal) || move.moved_bytes || move.bytes ||
		    move.n_places)
			abort();
		return;
	}
	if (entry_compare(code, places, &move) || leads_inside(code, &move))
		abort();
	for (at = 0; at < code->size; at++)
		if (code->memory[at] != code->file[at] &&
		    !(code->probed && at == code->probe && code->memory[at] == 0xcc))
			abort();
	for (at = 1; at < move.skip + move.bytes; at++)
		if (at != endbr(code) && code->targets >> at & 1)
			abort();
	for (at = 0; at < 64; at++)
		if (entry_move_step(&move, at, &moved) == ENTRY_MOVES && moved >= move.moved_bytes)
			abort();
	if (code->next_start && code->next_start < move.skip + move.bytes)
		abort();
}

/* Of just its size, for AddressSanitizer. */
static uint8_t *copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size);

	if (size)
		memcpy(bytes, data, size);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct entry_code code = { .abi = ABI_X86_64, .address = AT };
	struct entry_places places = { AT + (1u << 30), AT - (1u << 29) };
	uint8_t *memory, *file;

	if (size < SETTINGS)
		return 0;
	code.bytes = size - SETTINGS;
	code.size = data[0] < 64 && data[0] < code.bytes ? code.bytes - data[0] : code.bytes;
	if (data[0] == 255)
		code.size += 1000;
	code.next_start = data[1];
	code.targets = data[2] ? 1u << (data[2] & 31) : 0;
	places.moved += (uint64_t)(int64_t)(int8_t)data[3] << 24;
	code.address += data[4] & 15;
	memory = copy(data + SETTINGS, code.bytes);
	file = copy(data + SETTINGS, code.bytes);
	if (data[5] && data[5] - 1u < code.bytes)
		memory[data[5] - 1] ^= 0x55;
	code.probed = data[6] < 250;
	code.probe = data[6];
	if (code.probe < code.bytes && data[5] == 0)
		memory[code.probe] = 0xcc;
	code.memory = memory;
	code.file = file;
	check(&code, &places);
	free(memory);
	free(file);
	return 0;
}
