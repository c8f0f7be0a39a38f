// SPDX-License-Identifier: MIT
#include "divert/entry_move.h"

#include <string.h>

#include "divert/entry_body.h"

#define ENDBR_BYTES   4
#define NOP           0x90
#define PADDING_ALIGN 16
#define ADDRESSES_END (1ull << 47) /* of user space */
#define WIDENED       4            /* bytes that a branch grows by */
#define EACH_MAX      32           /* bytes that one moved instruction becomes, at most */
#define EACH_PLACES   3            /* and instructions */
#define TAKEN_MAX     16
#define KNOWN_BYTES   31 /* of the first bytes, those of which entry_code.targets tells */
#define INT3          0xcc

_Static_assert(ENDBR_BYTES + ENTRY_WRITTEN_MAX <= KNOWN_BYTES, "each has its bit");

static const uint8_t endbr64[ENDBR_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa };

static const char *const texts[ENTRY_REFUSALS] = {
	[ENTRY_MOVABLE] = "can be diverted",
	[ENTRY_OTHER_MACHINE] = "not done on this machine",
	[ENTRY_NO_SIZE] = "its size is not known",
	[ENTRY_TOO_LARGE] = "it is too large to be looked through",
	[ENTRY_NOT_READ] = "not all of its code could be read",
	[ENTRY_CHANGED] = "its code in memory is not that of its file",
	[ENTRY_TOO_SHORT] = "it is too short for a jump",
	[ENTRY_ENDS_EARLY] = "a return or jump ends its first bytes",
	[ENTRY_SHARED] = "another function begins in its first bytes",
	[ENTRY_JUMPED_INTO] = "a jump leads into its first bytes",
	[ENTRY_TABLE_JUMP] = "it jumps through a table that may lead into its first bytes",
	[ENTRY_READS_ITSELF] = "it uses its first bytes as data",
	[ENTRY_HAS_CALL] = "it calls within its first bytes",
	[ENTRY_CANNOT_MOVE] = "an instruction of its first bytes depends on its place",
	[ENTRY_UNDECODABLE] = "its code cannot be decoded",
	[ENTRY_OUT_OF_REACH] = "what its first bytes refer to is out of reach",
	[ENTRY_PROBED] = "a kernel probe has to lie among its first bytes",
	[ENTRY_TWO_PAGES] = "its first bytes lie in two pages",
};

const char *entry_refusal_text(enum entry_refusal refusal)
{
	return refusal < ENTRY_REFUSALS ? texts[refusal] : "";
}

/* What is being moved. */
struct mover {
	const struct entry_code *code;
	ZydisDecoder decoder;
	uint32_t endbr; /* bytes of a leading endbr64, which stays */
	struct entry_instruction taken[TAKEN_MAX];
	size_t n_taken;
	size_t written; /* offset of what follows the written bytes, */
	size_t end;     /* and of what follows those taken */
	uint32_t undone;
};

static enum entry_refusal refuse(struct entry_move *move, size_t at, enum entry_refusal refusal)
{
	move->refused_at = (uint32_t)at;
	return refusal;
}

/* ---- which instructions ---------------------------------------------------------------------- */

/* What a copy elsewhere would not do as the original does, whatever is put right in it. */
static bool depends_on_place(const struct entry_instruction *instruction)
{
	const ZydisDecodedInstruction *raw = &instruction->raw;

	if (raw->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || instruction->unclear)
		return true;
	/* of 32 bits: right in the low 4 GiB only */
	if (instruction->has_operand && raw->attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE)
		return true;
	if (instruction->has_operand && raw->raw.disp.size != 32)
		return true;
	if (instruction->has_target && raw->raw.imm[0].size != 8 && raw->raw.imm[0].size != 32)
		return true;
	/* with so many prefixes that the wider one would have more than 15 bytes */
	if (instruction->has_target && raw->raw.imm[0].size == 8 &&
	    raw->length + WIDENED > ZYDIS_MAX_INSTRUCTION_LENGTH)
		return true;
	switch (raw->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
	case ZYDIS_MNEMONIC_XABORT: /* goes back to where the transaction began */
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0: /* handlers of such traps look where they are */
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_FNSTENV: /* these tell where the last x87 instruction was */
	case ZYDIS_MNEMONIC_FNSAVE:
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
		return true;
	default:
		break;
	}
	switch (raw->meta.category) {
	case ZYDIS_CATEGORY_INTERRUPT: /* int3, which may be a breakpoint, among them */
	case ZYDIS_CATEGORY_SYSCALL:   /* leaves the address in rcx */
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
		return true;
	case ZYDIS_CATEGORY_RET:
		return raw->mnemonic != ZYDIS_MNEMONIC_RET;
	default:
		return false;
	}
}

static bool ends_flow(const struct entry_instruction *instruction)
{
	return instruction->flow == FLOW_JUMPS || instruction->flow == FLOW_BY_VALUE ||
	       instruction->flow == FLOW_ENDS;
}

static bool is_padding(const ZydisDecodedInstruction *raw)
{
	return raw->mnemonic == ZYDIS_MNEMONIC_NOP || raw->mnemonic == ZYDIS_MNEMONIC_INT3;
}

/*
 * Whether the function is followed by padding alone, up to the next function or border of 16
 * bytes, and at least up to offset `need`.
 */
static bool is_padded(const struct mover *mover, size_t need)
{
	const struct entry_code *code = mover->code;
	uint64_t misaligned = (code->address + code->size) % PADDING_ALIGN;
	uint64_t end = code->size + (misaligned ? PADDING_ALIGN - misaligned : 0);
	struct entry_instruction instruction;

	if (code->next_start && code->next_start < end)
		end = code->next_start;
	if (end < need || end > code->bytes)
		return false;
	for (size_t at = code->size; at < end; at += instruction.raw.length)
		if (!entry_decode(&mover->decoder, code->file, end, at, &instruction) ||
		    !is_padding(&instruction.raw))
			return false;
	return true;
}

/* The next one, at `at`. */
static enum entry_refusal take_one(struct mover *mover, struct entry_move *move, size_t at)
{
	const struct entry_code *code = mover->code;
	struct entry_instruction *instruction = &mover->taken[mover->n_taken];

	if (at >= code->size)
		return refuse(move, at, ENTRY_TOO_SHORT);
	if (mover->n_taken == TAKEN_MAX)
		return refuse(move, at, ENTRY_CANNOT_MOVE);
	if (!entry_decode(&mover->decoder, code->file, code->size, at, instruction))
		return refuse(move, at, ENTRY_UNDECODABLE);
	if (instruction->flow == FLOW_CALLS)
		return refuse(move, at, ENTRY_HAS_CALL);
	if (depends_on_place(instruction))
		return refuse(move, at, ENTRY_CANNOT_MOVE);
	mover->end = at + instruction->raw.length;
	mover->n_taken++;
	return ENTRY_MOVABLE;
}

/* Since Linux 6.18 the kernel may make five bytes of a probed nop of five bytes into a call. */
static bool becomes_call(const struct entry_code *code, size_t at, size_t bytes)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return bytes == sizeof(nop5) && !memcmp(code->file + at, nop5, sizeof(nop5));
}

/* The first border behind what a jump at `from` needs. */
static size_t border_behind(const struct mover *mover, size_t from)
{
	for (size_t i = 0; i < mover->n_taken; i++)
		if (mover->taken[i].at >= from + ENTRY_JUMP_BYTES)
			return mover->taken[i].at;
	return mover->end;
}

/*
 * From the entry to the probed instruction, with it. What has run before the jump lies is to be
 * such that the function can be begun again.
 */
static enum entry_refusal take_probed(struct mover *mover, struct entry_move *move)
{
	const struct entry_code *code = mover->code;
	bool before = code->probe >= mover->endbr + ENTRY_JUMP_BYTES;
	size_t last = 0;
	struct entry_undo undo = { 0 };
	enum entry_refusal refusal;

	for (size_t at = mover->endbr; at <= code->probe; at = mover->end) {
		refusal = take_one(mover, move, at);
		if (refusal)
			return refusal;
		last = at;
		if (before && at == code->probe)
			break;
		if (!entry_undo_add(&undo, &mover->decoder, code->file + at, mover->end - at) ||
		    (at == code->probe && becomes_call(code, at, mover->end - at)))
			return refuse(move, at, ENTRY_PROBED);
	}
	if (last != code->probe || (before && undo.stack))
		return refuse(move, code->probe, ENTRY_PROBED);
	move->jump = before ? JUMP_BEFORE_PROBE : JUMP_BEHIND_PROBE;
	move->probe = code->probe;
	move->skip = (uint32_t)(before ? mover->endbr : mover->end);
	mover->undone = undo.stack;
	return ENTRY_MOVABLE;
}

/* Whole instructions of at least the jump's length, or a shorter function with its padding. */
static enum entry_refusal take(struct mover *mover, struct entry_move *move)
{
	const struct entry_code *code = mover->code;
	size_t need = move->skip + ENTRY_JUMP_BYTES;

	while (mover->end < need) {
		enum entry_refusal refusal = take_one(mover, move, mover->end);

		if (refusal)
			return refusal;
		if (!ends_flow(&mover->taken[mover->n_taken - 1]) || mover->end >= need)
			continue;
		if (mover->end < code->size)
			return refuse(move, mover->end, ENTRY_ENDS_EARLY);
		if (!is_padded(mover, need))
			return refuse(move, mover->end, ENTRY_TOO_SHORT);
		mover->end = need;
	}
	mover->written = border_behind(mover, move->skip);
	return mover->written > KNOWN_BYTES ? refuse(move, move->skip, ENTRY_PROBED)
	                                    : ENTRY_MOVABLE;
}

static enum entry_refusal take_all(struct mover *mover, struct entry_move *move)
{
	enum entry_refusal refusal = ENTRY_MOVABLE;

	move->skip = mover->endbr;
	mover->end = mover->endbr;
	/* A probe at an endbr64: nothing but that stays before the jump. */
	if (mover->code->probed && mover->endbr && !mover->code->probe)
		move->jump = JUMP_BEHIND_PROBE;
	else if (mover->code->probed)
		refusal = take_probed(mover, move);
	return refusal ? refusal : take(mover, move);
}

/* ---- the moved code -------------------------------------------------------------------------- */

/* False where it cannot be reached by 32 bits. */
static bool put_distance(uint8_t *to, uint64_t target, uint64_t next)
{
	int64_t distance = (int64_t)(target - next);
	int32_t near = (int32_t)distance;

	if (near != distance)
		return false;
	memcpy(to, &near, sizeof(near));
	return true;
}

static void note_place(struct entry_move *move, int64_t original, bool first)
{
	move->place[move->n_places++] = (struct entry_place){ move->moved_bytes, original, first };
}

static bool put_jump(struct entry_move *move, uint64_t base, uint64_t target)
{
	uint8_t *to = move->moved + move->moved_bytes;

	to[0] = 0xe9;
	move->moved_bytes += ENTRY_JUMP_BYTES;
	return put_distance(to + 1, target, base + move->moved_bytes);
}

/* loop, loope, loopne and jrcxz reach 127 bytes: they become three. */
static bool put_short_loop(struct entry_move *move, const struct entry_instruction *instruction,
                           uint64_t base, uint64_t target)
{
	size_t next = instruction->at + instruction->raw.length;

	move->moved[move->moved_bytes - 1] = 2; /* over the next one */
	note_place(move, (int64_t)next, false);
	move->moved[move->moved_bytes++] = 0xeb;
	move->moved[move->moved_bytes++] = ENTRY_JUMP_BYTES;
	note_place(move, instruction->target, false);
	return put_jump(move, base, target);
}

/* The instruction has been copied, with its 8 bits of distance. */
static bool widen(struct entry_move *move, const struct entry_instruction *instruction,
                  uint64_t base, uint64_t target)
{
	uint8_t *opcode = move->moved + move->moved_bytes - 2, short_opcode = *opcode;

	if (short_opcode == 0xeb) {
		*opcode = 0xe9;
		move->moved_bytes += 3;
	} else if (short_opcode >= 0x70 && short_opcode <= 0x7f) {
		opcode[0] = 0x0f;
		opcode[1] = short_opcode + 0x10;
		move->moved_bytes += 4;
	} else {
		return put_short_loop(move, instruction, base, target);
	}
	return put_distance(move->moved + move->moved_bytes - 4, target, base + move->moved_bytes);
}

static enum entry_refusal put(struct entry_move *move, const struct entry_code *code,
                              const struct entry_instruction *instruction, uint64_t base)
{
	const ZydisDecodedInstruction *raw = &instruction->raw;
	uint64_t target = code->address + (uint64_t)instruction->target;
	uint8_t *to = move->moved + move->moved_bytes;
	bool reached = true;

	if (sizeof(move->moved) - move->moved_bytes < EACH_MAX ||
	    ENTRY_PLACES_MAX - move->n_places < EACH_PLACES + 1)
		return ENTRY_CANNOT_MOVE;
	note_place(move, (int64_t)instruction->at, true);
	memcpy(to, code->file + instruction->at, raw->length);
	move->moved_bytes += raw->length;
	if (instruction->has_operand)
		reached = put_distance(to + raw->raw.disp.offset, target, base + move->moved_bytes);
	else if (instruction->has_target && raw->raw.imm[0].size == 32)
		reached =
			put_distance(to + raw->raw.imm[0].offset, target, base + move->moved_bytes);
	else if (instruction->has_target)
		reached = widen(move, instruction, base, target);
	return reached ? ENTRY_MOVABLE : ENTRY_OUT_OF_REACH;
}

/* An indirect call leads to it: where the function has an endbr64, so has the moved code. */
static enum entry_refusal put_all(const struct mover *mover, const struct entry_places *places,
                                  struct entry_move *move)
{
	const struct entry_code *code = mover->code;
	const struct entry_instruction *last = &mover->taken[mover->n_taken - 1];

	if (mover->endbr) {
		note_place(move, 0, true);
		memcpy(move->moved, endbr64, sizeof(endbr64));
		move->moved_bytes = sizeof(endbr64);
	}
	for (size_t i = 0; i < mover->n_taken; i++) {
		enum entry_refusal refusal = put(move, code, &mover->taken[i], places->moved);

		if (refusal)
			return refuse(move, mover->taken[i].at, refusal);
	}
	if (ends_flow(last))
		return ENTRY_MOVABLE;
	note_place(move, (int64_t)mover->end, true);
	if (!put_jump(move, places->moved, code->address + mover->end))
		return refuse(move, move->skip, ENTRY_OUT_OF_REACH);
	return ENTRY_MOVABLE;
}

static enum entry_refusal write_entry(const struct mover *mover, const struct entry_places *places,
                                      struct entry_move *move)
{
	uint64_t from = mover->code->address + move->skip;

	move->bytes = (uint32_t)(mover->written - move->skip);
	memset(move->written, NOP, move->bytes);
	move->written[0] = 0xe9;
	if (!put_distance(move->written + 1, places->pad, from + ENTRY_JUMP_BYTES))
		return refuse(move, move->skip, ENTRY_OUT_OF_REACH);
	return ENTRY_MOVABLE;
}

/* No flag and no register but the stack pointer changes in it. */
static void write_pad(struct entry_move *move, uint32_t undone, uint64_t thunk)
{
	static const uint8_t near[] = { 0x48, 0x8d, 0x64, 0x24 }, /* lea n(%rsp), %rsp */
		far[] = { 0x48, 0x8d, 0xa4, 0x24 }, jump[] = { 0xff, 0x25, 0, 0, 0, 0 };
	uint8_t *to = move->pad;

	if (undone && undone < 128) {
		memcpy(to, near, sizeof(near));
		to[sizeof(near)] = (uint8_t)undone;
		to += sizeof(near) + 1;
	} else if (undone) {
		memcpy(to, far, sizeof(far));
		memcpy(to + sizeof(far), &undone, sizeof(undone));
		to += sizeof(far) + sizeof(undone);
	}
	memcpy(to, jump, sizeof(jump));
	memcpy(to + sizeof(jump), &thunk, sizeof(thunk));
	move->pad_bytes = (uint32_t)(to + sizeof(jump) + sizeof(thunk) - move->pad);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static bool is_address(uint64_t address)
{
	return address < ADDRESSES_END - ENTRY_FUNCTION_MAX;
}

static enum entry_refusal check_input(const struct entry_code *code,
                                      const struct entry_places *places)
{
	if (code->abi != ABI_X86_64)
		return ENTRY_OTHER_MACHINE;
	if (!code->size)
		return ENTRY_NO_SIZE;
	if (code->size > ENTRY_FUNCTION_MAX)
		return ENTRY_TOO_LARGE;
	if (!code->memory || !code->file || code->bytes < code->size)
		return ENTRY_NOT_READ;
	if (!is_address(code->address) || !is_address(places->pad) || !is_address(places->moved) ||
	    !is_address(places->thunk))
		return ENTRY_OUT_OF_REACH;
	return ENTRY_MOVABLE;
}

static enum entry_refusal compare(const struct entry_code *code, size_t from, size_t end,
                                  struct entry_move *move)
{
	for (size_t at = from; at < end; at++)
		if (code->memory[at] != code->file[at] &&
		    !(code->probed && at == code->probe && code->memory[at] == INT3))
			return refuse(move, at, ENTRY_CHANGED);
	return ENTRY_MOVABLE;
}

/* Of what others know of the first bytes. What they call behind the endbr64 is the function. */
static enum entry_refusal check_others(const struct mover *mover, struct entry_move *move)
{
	const struct entry_code *code = mover->code;

	if (code->next_start && code->next_start < mover->end)
		return refuse(move, code->next_start, ENTRY_SHARED);
	for (uint32_t at = 1; at < mover->written; at++)
		if (at != mover->endbr && code->targets >> at & 1)
			return refuse(move, at, ENTRY_JUMPED_INTO);
	return ENTRY_MOVABLE;
}

static enum entry_refusal decide(struct mover *mover, const struct entry_places *places,
                                 struct entry_move *move)
{
	const struct entry_code *code = mover->code;
	enum entry_refusal refusal = check_input(code, places);

	if (refusal)
		return refusal;
	if (code->size >= ENDBR_BYTES && !memcmp(code->file, endbr64, ENDBR_BYTES))
		mover->endbr = ENDBR_BYTES;
	refusal = compare(code, 0, code->size, move);
	if (!refusal)
		refusal = take_all(mover, move);
	if (!refusal) /* padding that is written to */
		refusal = compare(code, code->size, mover->end, move);
	if (!refusal)
		refusal = check_others(mover, move);
	if (!refusal && !code->known)
		refusal = entry_body_check(code->file, code->size, mover->endbr,
		                           (uint32_t)mover->written, &move->refused_at);
	if (!refusal)
		refusal = put_all(mover, places, move);
	if (!refusal)
		refusal = write_entry(mover, places, move);
	if (!refusal)
		write_pad(move, mover->undone, places->thunk);
	return refusal;
}

bool entry_move(const struct entry_code *code, const struct entry_places *places,
                struct entry_move *move)
{
	struct mover mover = { .code = code };
	enum entry_refusal refusal;

	memset(move, 0, sizeof(*move));
	entry_decoder_init(&mover.decoder);
	refusal = decide(&mover, places, move);
	if (refusal)
		*move = (struct entry_move){ .refusal = refusal, .refused_at = move->refused_at };
	else
		move->refused_at = 0;
	return !refusal;
}

static bool has_place(const struct entry_move *move, uint64_t offset, uint32_t *moved)
{
	for (uint32_t i = 0; i < move->n_places; i++) {
		if (move->place[i].first && move->place[i].original == (int64_t)offset) {
			*moved = move->place[i].moved;
			return true;
		}
	}
	return false;
}

enum entry_step entry_move_step(const struct entry_move *move, uint64_t offset, uint32_t *moved)
{
	bool written = offset >= move->skip && offset < move->skip + move->bytes;
	bool border = has_place(move, offset, moved);

	if (offset == move->skip && move->jump != JUMP_BEHIND_PROBE)
		return ENTRY_STAYS;
	if (move->jump == JUMP_BEFORE_PROBE && border && offset > move->skip &&
	    offset <= move->probe)
		return ENTRY_AGAIN;
	if (!written)
		return ENTRY_STAYS;
	return border && move->jump != JUMP_BEFORE_PROBE ? ENTRY_MOVES : ENTRY_BETWEEN;
}

bool entry_move_to_pad(const struct entry_move *move, uint64_t offset)
{
	return move->jump == JUMP_BEHIND_PROBE && offset == move->skip;
}

bool entry_move_backward(const struct entry_move *move, uint32_t moved, int64_t *original)
{
	for (uint32_t i = 0; i < move->n_places; i++) {
		if (move->place[i].moved == moved) {
			*original = move->place[i].original;
			return true;
		}
	}
	return false;
}
