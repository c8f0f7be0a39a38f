// SPDX-License-Identifier: MIT
/*
 * Diverted functions run: random functions, as they were and with their entry diverted, on the same
 * registers and memory. Both end alike, at the exit or in the same fault.
 */
#include "unit.h"

#include "base/array.h"
#include "divert/entry_move.h"
#include "entry_compare.h"
#include "entry_run.h"

#define PAGE     4096
#define FUNCTION 0x100 /* in the first page: the function */
#define BEFORE   0x80  /* a label before it, as far as 8 bits reach */
#define EXIT     0x40  /* the address of the exit */
#define SIZE     112   /* of the function: random instructions, nops, and its labels */
#define RANDOM   40
#define LABELS   64
#define LABEL    16
#define CASES    600
#define STEPPED  120 /* of these, those that threads stand in */

/* Pages of code, original and moved, and the memory that both use. */
struct arena {
	uint8_t *code, *moved, *pad, *memory;
	uint64_t random;
	uint32_t probe; /* where the kernel's may come */
};

static uint64_t next(struct arena *arena)
{
	arena->random ^= arena->random << 13;
	arena->random ^= arena->random >> 7;
	arena->random ^= arena->random << 17;
	return arena->random;
}

static uint64_t below(struct arena *arena, uint64_t limit)
{
	return (next(arena) >> 20) % limit;
}

static void set_writable(const struct arena *arena, bool writable)
{
	assert_int_equal(mprotect(arena->code, 3 * (size_t)PAGE,
	                          writable ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC),
	                 0);
}

/* ---- random instructions --------------------------------------------------------------------- */

static ZydisRegister random_register(struct arena *arena, int *width)
{
	static const ZydisRegisterClass classes[] = { ZYDIS_REGCLASS_GPR8, ZYDIS_REGCLASS_GPR16,
		                                      ZYDIS_REGCLASS_GPR32, ZYDIS_REGCLASS_GPR64 };
	static const int widths[] = { 1, 2, 4, 8 };
	size_t i;

	if (!*width)
		*width = widths[below(arena, 8) < 5 ? 3 : below(arena, 4)];
	for (i = 0; widths[i] != *width;)
		i++;
	/* ids of 8 bits: al cl dl bl ah ch dh bh spl bpl sil dil r8b ... */
	return ZydisRegisterEncode(classes[i], (ZyanU8)below(arena, *width == 1 ? 4 : 16));
}

static void add_register(struct arena *arena, ZydisEncoderRequest *request, int *width)
{
	ZydisEncoderOperand *operand = &request->operands[request->operand_count++];

	operand->type = ZYDIS_OPERAND_TYPE_REGISTER;
	operand->reg.value = random_register(arena, width);
}

/* Half of them relative to the instruction. Registers that are pointers most of the time. */
static void add_memory(struct arena *arena, ZydisEncoderRequest *request, int width)
{
	static const ZydisRegister bases[] = { ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI,
		                               ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP,
		                               ZYDIS_REGISTER_R12 };
	ZydisEncoderOperand *operand = &request->operands[request->operand_count++];

	operand->type = ZYDIS_OPERAND_TYPE_MEMORY;
	operand->mem.size = (ZyanU16)width;
	if (below(arena, 2)) {
		operand->mem.base = ZYDIS_REGISTER_RIP;
		operand->mem.displacement =
			(int64_t)(uintptr_t)arena->memory + (int64_t)below(arena, RUN_MEMORY - 16);
	} else {
		operand->mem.base = bases[below(arena, ARRAY_SIZE(bases))];
		operand->mem.displacement = (int64_t)below(arena, 512) - 256;
	}
}

static void add_immediate(struct arena *arena, ZydisEncoderRequest *request, int bits)
{
	ZydisEncoderOperand *operand = &request->operands[request->operand_count++];

	operand->type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
	operand->imm.s = (int64_t)(next(arena) << (64 - bits)) >> (64 - bits);
}

static void request_two(struct arena *arena, ZydisEncoderRequest *request)
{
	static const ZydisMnemonic mnemonics[] = {
		ZYDIS_MNEMONIC_ADD,   ZYDIS_MNEMONIC_SUB,  ZYDIS_MNEMONIC_XOR,
		ZYDIS_MNEMONIC_AND,   ZYDIS_MNEMONIC_OR,   ZYDIS_MNEMONIC_CMP,
		ZYDIS_MNEMONIC_TEST,  ZYDIS_MNEMONIC_MOV,  ZYDIS_MNEMONIC_ADC,
		ZYDIS_MNEMONIC_SBB,   ZYDIS_MNEMONIC_IMUL, ZYDIS_MNEMONIC_XCHG,
		ZYDIS_MNEMONIC_CMOVB, ZYDIS_MNEMONIC_BT,   ZYDIS_MNEMONIC_BSF,
		ZYDIS_MNEMONIC_XADD,  ZYDIS_MNEMONIC_LEA,  ZYDIS_MNEMONIC_MOV,
		ZYDIS_MNEMONIC_MOV,   ZYDIS_MNEMONIC_LEA,  ZYDIS_MNEMONIC_BTS,
		ZYDIS_MNEMONIC_CMOVS,
	};
	int width = 0;

	request->mnemonic = mnemonics[below(arena, ARRAY_SIZE(mnemonics))];
	switch (below(arena, 4)) {
	case 0:
		random_register(arena, &width);
		add_memory(arena, request, width);
		add_register(arena, request, &width);
		break;
	case 1:
		add_register(arena, request, &width);
		add_memory(arena, request, width);
		break;
	case 2:
		add_register(arena, request, &width);
		add_register(arena, request, &width);
		break;
	default:
		random_register(arena, &width);
		if (below(arena, 2))
			add_memory(arena, request, width);
		else
			add_register(arena, request, &width);
		add_immediate(arena, request,
		              width == 1 || below(arena, 2) ? 8
		              : width == 2                  ? 16
		                                            : 32);
	}
}

static void request_one(struct arena *arena, ZydisEncoderRequest *request)
{
	static const ZydisMnemonic mnemonics[] = {
		ZYDIS_MNEMONIC_PUSH, ZYDIS_MNEMONIC_POP, ZYDIS_MNEMONIC_PUSH, ZYDIS_MNEMONIC_POP,
		ZYDIS_MNEMONIC_INC,  ZYDIS_MNEMONIC_DEC, ZYDIS_MNEMONIC_NEG,  ZYDIS_MNEMONIC_NOT,
		ZYDIS_MNEMONIC_MUL,  ZYDIS_MNEMONIC_DIV, ZYDIS_MNEMONIC_SETZ, ZYDIS_MNEMONIC_BSWAP,
		ZYDIS_MNEMONIC_IDIV,
	};
	int width = 0;

	request->mnemonic = mnemonics[below(arena, ARRAY_SIZE(mnemonics))];
	if (request->mnemonic == ZYDIS_MNEMONIC_SETZ)
		width = 1;
	if (below(arena, 4)) {
		add_register(arena, request, &width);
	} else {
		random_register(arena, &width);
		add_memory(arena, request, width);
	}
}

static void request_vector(struct arena *arena, ZydisEncoderRequest *request)
{
	static const ZydisMnemonic mnemonics[] = { ZYDIS_MNEMONIC_MOVDQU, ZYDIS_MNEMONIC_PXOR,
		                                   ZYDIS_MNEMONIC_PADDD, ZYDIS_MNEMONIC_MOVUPS };
	bool store = below(arena, 3) == 0;

	request->mnemonic = mnemonics[below(arena, ARRAY_SIZE(mnemonics))];
	if (store)
		add_memory(arena, request, 16);
	request->operands[request->operand_count].type = ZYDIS_OPERAND_TYPE_REGISTER;
	request->operands[request->operand_count++].reg.value =
		ZYDIS_REGISTER_XMM0 + (ZydisRegister)below(arena, 16);
	if (!store)
		add_memory(arena, request, 16);
}

/* To one of the labels. */
static void request_branch(struct arena *arena, ZydisEncoderRequest *request)
{
	static const ZydisMnemonic mnemonics[] = {
		ZYDIS_MNEMONIC_JZ,   ZYDIS_MNEMONIC_JNZ,   ZYDIS_MNEMONIC_JB,
		ZYDIS_MNEMONIC_JNLE, ZYDIS_MNEMONIC_JS,    ZYDIS_MNEMONIC_JO,
		ZYDIS_MNEMONIC_JMP,  ZYDIS_MNEMONIC_JRCXZ, ZYDIS_MNEMONIC_JECXZ,
		ZYDIS_MNEMONIC_LOOP, ZYDIS_MNEMONIC_LOOPE, ZYDIS_MNEMONIC_LOOPNE,
		ZYDIS_MNEMONIC_JP,   ZYDIS_MNEMONIC_JBE,
	};
	const uint8_t *labels[] = { arena->code + BEFORE, arena->code + FUNCTION + LABELS,
		                    arena->code + FUNCTION + LABELS + LABEL,
		                    arena->code + FUNCTION + LABELS + 2 * LABEL };

	request->mnemonic = mnemonics[below(arena, ARRAY_SIZE(mnemonics))];
	if (below(arena, 3) == 0)
		request->branch_width = ZYDIS_BRANCH_WIDTH_32;
	request->operands[0].type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
	request->operands[0].imm.u = (uint64_t)(uintptr_t)labels[below(arena, ARRAY_SIZE(labels))];
	request->operand_count = 1;
}

static void request_plain(struct arena *arena, ZydisEncoderRequest *request)
{
	static const ZydisMnemonic mnemonics[] = {
		ZYDIS_MNEMONIC_CDQ, ZYDIS_MNEMONIC_CQO,   ZYDIS_MNEMONIC_CMC, ZYDIS_MNEMONIC_STC,
		ZYDIS_MNEMONIC_CLC, ZYDIS_MNEMONIC_LAHF,  ZYDIS_MNEMONIC_STD, ZYDIS_MNEMONIC_NOP,
		ZYDIS_MNEMONIC_RET, ZYDIS_MNEMONIC_LEAVE,
	};

	request->mnemonic = mnemonics[below(arena, ARRAY_SIZE(mnemonics))];
}

/* One that the encoder knows how to write; how many bytes it has. */
static size_t random_instruction(struct arena *arena, uint8_t *to)
{
	static void (*const requests[])(struct arena *, ZydisEncoderRequest *) = {
		request_two, request_two,    request_two,    request_two,    request_one,
		request_one, request_vector, request_branch, request_branch, request_plain
	};

	for (;;) {
		ZydisEncoderRequest request = { .machine_mode = ZYDIS_MACHINE_MODE_LONG_64 };
		ZyanUSize len = ZYDIS_MAX_INSTRUCTION_LENGTH;

		requests[below(arena, ARRAY_SIZE(requests))](arena, &request);
		if (ZYAN_SUCCESS(ZydisEncoderEncodeInstructionAbsolute(&request, to, &len,
		                                                       (uint64_t)(uintptr_t)to)))
			return len;
	}
}

/* inc %r13 (14, 15, bx for the other labels) and a jump to the exit. */
static void write_label(const struct arena *arena, uint8_t *at, uint8_t which)
{
	const uint8_t inc[] = { 0x49, 0xff, (uint8_t)(0xc4 + which) }, jump[] = { 0xff, 0x25 };
	int32_t distance = (int32_t)(arena->code + EXIT - (at + 9));

	memcpy(at, inc, sizeof(inc));
	memcpy(at + 3, jump, sizeof(jump));
	memcpy(at + 5, &distance, sizeof(distance));
}

/* Instructions that can be begun again, as functions have them before a probe and at it. */
static size_t write_prologue(struct arena *arena, uint8_t *to)
{
	static const struct {
		uint8_t bytes[10], len;
	} all[] = {
		{ { 0x55 }, 1 },                               /* push %rbp */
		{ { 0x41, 0x57 }, 2 },                         /* push %r15 */
		{ { 0x50 }, 1 },                               /* push %rax */
		{ { 0x54 }, 1 },                               /* push %rsp */
		{ { 0x48, 0x83, 0xec, 0x28 }, 4 },             /* sub $40, %rsp */
		{ { 0x48, 0x81, 0xec, 0x88, 0, 0, 0 }, 7 },    /* sub $136, %rsp */
		{ { 0x31, 0xc0 }, 2 },                         /* xor %eax, %eax */
		{ { 0x48, 0x89, 0xf8 }, 3 },                   /* mov %rdi, %rax */
		{ { 0x4c, 0x8d, 0x54, 0x24, 0x08 }, 5 },       /* lea 8(%rsp), %r10 */
		{ { 0x48, 0x89, 0x5c, 0x24, 0xe8 }, 5 },       /* mov %rbx, -24(%rsp) */
		{ { 0x48, 0x85, 0xff }, 3 },                   /* test %rdi, %rdi */
		{ { 0x81, 0xff, 0x10, 0x32, 0x54, 0x76 }, 6 }, /* cmp $0x76543210, %edi */
		{ { 0x66, 0x0f, 0x1f, 0x44, 0, 0 }, 6 },       /* nopw */
	};
	size_t count = 1 + below(arena, 3), at = 0, which;

	while (count--) {
		which = below(arena, ARRAY_SIZE(all));
		memcpy(to + at, all[which].bytes, all[which].len);
		arena->probe = (uint32_t)(to + at - (arena->code + FUNCTION));
		at += all[which].len;
	}
	return at;
}

static void write_function(struct arena *arena)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t *function = arena->code + FUNCTION;
	void (*exit_at)(void) = run_exit;
	size_t at = 0;

	memset(arena->code, 0xcc, PAGE);
	memcpy(arena->code + EXIT, &exit_at, sizeof(exit_at));
	memset(function, 0x90, SIZE);
	if (below(arena, 3) == 0) {
		memcpy(function, endbr64, sizeof(endbr64));
		at = sizeof(endbr64);
	}
	arena->probe = 0;
	if (below(arena, 2))
		at += write_prologue(arena, function + at);
	while (at < RANDOM)
		at += random_instruction(arena, function + at);
	write_label(arena, arena->code + BEFORE, 0);
	for (uint8_t i = 0; i < 3; i++)
		write_label(arena, function + LABELS + i * LABEL, i + 1);
}

/* ---- running them ---------------------------------------------------------------------------- */

static void random_state(struct arena *arena, struct run_state *state)
{
	void (*exit_at)(void) = run_exit;

	memset(state, 0, sizeof(*state));
	for (size_t i = 0; i < RUN_MEMORY; i++)
		state->memory[i] = (uint8_t)next(arena);
	for (size_t i = 0; i < RUN_VECTOR; i++)
		state->vector[i] = (uint8_t)next(arena);
	for (int i = 0; i < RUN_REGISTERS; i++)
		state->reg[i] = below(arena, 2) ? below(arena, 4) : next(arena);
	for (int i = RUN_RSP; i <= RUN_RDI; i++)
		state->reg[i] = (uint64_t)(uintptr_t)arena->memory + 1024 + 8 * below(arena, 512);
	state->reg[RUN_R8 + 4] = (uint64_t)(uintptr_t)arena->memory + RUN_MEMORY / 2;
	state->reg[RUN_RSP] = (uint64_t)(uintptr_t)arena->memory + RUN_MEMORY / 2;
	memcpy(state->memory + RUN_MEMORY / 2, &exit_at, sizeof(exit_at));
	state->flags = 2 | (next(arena) & 0x8d5);
}

/* The fault of moved code is told as of where the function would have been. */
static void expect_alike(const struct arena *arena, const struct entry_move *move,
                         const struct run_state *expected, const struct run_state *got)
{
	uint64_t rip = got->rip, moved = (uint64_t)(uintptr_t)arena->moved;
	int64_t original;

	if (rip >= moved && rip < moved + move->moved_bytes) {
		assert_true(entry_move_backward(move, (uint32_t)(rip - moved), &original));
		rip = (uint64_t)(uintptr_t)arena->code + FUNCTION + (uint64_t)original;
	}
	assert_int_equal(expected->signal, got->signal);
	assert_int_equal(expected->rip, rip);
	for (int i = 0; i < RUN_REGISTERS; i++)
		assert_int_equal(expected->reg[i], got->reg[i]);
	assert_int_equal(expected->flags, got->flags);
	assert_memory_equal(expected->vector, got->vector, RUN_VECTOR);
	assert_memory_equal(expected->memory, got->memory, RUN_MEMORY);
}

static struct entry_code code_of(const struct arena *arena)
{
	const uint8_t *function = arena->code + FUNCTION;

	return (struct entry_code){ .abi = ABI_X86_64,
		                    .memory = function,
		                    .file = function,
		                    .bytes = SIZE,
		                    .size = SIZE,
		                    .address = (uint64_t)(uintptr_t)function,
		                    .next_start = SIZE,
		                    .probed = arena->random & 3,
		                    .probe = arena->probe };
}

/* Moves the function, and puts moved code and pad where they belong. */
static bool move_function(struct arena *arena, struct entry_move *move)
{
	struct entry_code code = code_of(arena);
	uint64_t moved = (uint64_t)(uintptr_t)arena->moved;
	struct entry_places places = { (uint64_t)(uintptr_t)arena->pad, moved, moved };
	const char *why;

	if (!entry_move(&code, &places, move))
		return false;
	why = entry_compare(&code, &places, move);
	if (why)
		fail_msg("%s", why);
	memset(arena->moved, 0xcc, PAGE);
	memcpy(arena->moved, move->moved, move->moved_bytes);
	memcpy(arena->pad, move->pad, move->pad_bytes);
	return true;
}

static void run_at(const struct arena *arena, const uint8_t *entry, run_step step, void *data,
                   struct run_state *state)
{
	const struct run run = { (uint64_t)(uintptr_t)entry, arena->memory, step, data };

	if (step)
		state->flags |= RUN_TRAP;
	set_writable(arena, false);
	assert_true(run_code(&run, state));
	set_writable(arena, true);
}

/* A thread that stands at `from` is put to `to`. */
struct leap {
	uint64_t from, to;
};

static bool leap_there(uint64_t *rip, int step, void *data)
{
	const struct leap *leap = data;

	if (*rip != leap->from)
		return step < 200;
	*rip = leap->to;
	return false;
}

static void leap_and_compare(struct arena *arena, const struct entry_move *move,
                             const struct leap *leap, const uint8_t *entry,
                             const struct run_state *begin, const struct run_state *end)
{
	struct run_state state = *begin;
	struct leap there = *leap;

	run_at(arena, entry, leap_there, &there, &state);
	expect_alike(arena, move, end, &state);
}

/*
 * From each border of the function to where a thread goes when the jump is written, from each of
 * the moved code back, and from the jump into the pad.
 */
static void leap_everywhere(struct arena *arena, const struct entry_move *move,
                            const struct run_state *begin, const struct run_state *end)
{
	uint64_t function = (uint64_t)(uintptr_t)arena->code + FUNCTION;
	uint64_t moved = (uint64_t)(uintptr_t)arena->moved;
	const uint8_t *entry = arena->code + FUNCTION;
	uint32_t at;

	for (uint32_t i = 0; i < move->n_places; i++) {
		uint64_t original = function + (uint64_t)move->place[i].original;
		struct leap into = { original, moved + move->place[i].moved };
		struct leap out = { into.to, into.from };
		enum entry_step step;

		leap_and_compare(arena, move, &out, arena->moved, begin, end);
		if (!move->place[i].first)
			continue;
		leap_and_compare(arena, move, &into, entry, begin, end);
		step = entry_move_step(move, (uint64_t)move->place[i].original, &at);
		assert_int_not_equal(step, ENTRY_BETWEEN);
		into.to = step == ENTRY_MOVES ? moved + at : function + move->skip;
		if (step != ENTRY_STAYS)
			leap_and_compare(arena, move, &into, entry, begin, end);
	}
	if (move->jump == JUMP_BEHIND_PROBE) {
		struct leap back = { function + move->skip, (uint64_t)(uintptr_t)arena->pad };

		assert_true(entry_move_to_pad(move, move->skip));
		leap_and_compare(arena, move, &back, entry, begin, end);
	}
}

static void make_arena(struct arena *arena, uint64_t seed)
{
	uint8_t *at = mmap(NULL, 5 * (size_t)PAGE, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	*arena = (struct arena){ .code = at,
		                 .moved = at + PAGE,
		                 .pad = at + 2 * (size_t)PAGE,
		                 .memory = at + 3 * (size_t)PAGE,
		                 .random = seed };
}

/*
 * A thread whose stack pointer is no address cannot be stepped on processors by AMD: the return
 * from a step faults there (#GP, told as SIGSEGV where the function would go on), on Intel's it
 * does not. Seen with bswap %rsp.
 */
static bool can_be_stepped(const struct run_state *end)
{
	return end->signal != SIGBUS && end->reg[RUN_RSP] >> 47 == 0;
}

static void test_random_functions_end_alike_when_diverted(void **state)
{
	int moved = 0, returned = 0, faulted = 0, jumps[3] = { 0 };
	struct arena arena;

	make_arena(&arena, 0x9e3779b97f4a7c15);
	for (int i = 0; i < CASES; i++) {
		struct run_state begin, original, diverted;
		struct entry_move move;

		write_function(&arena);
		if (!move_function(&arena, &move))
			continue;
		random_state(&arena, &begin);
		original = diverted = begin;
		run_at(&arena, arena.code + FUNCTION, NULL, NULL, &original);
		if (moved < STEPPED && can_be_stepped(&original))
			leap_everywhere(&arena, &move, &begin, &original);
		memcpy(arena.code + FUNCTION + move.skip, move.written, move.bytes);
		run_at(&arena, arena.code + FUNCTION, NULL, NULL, &diverted);
		expect_alike(&arena, &move, &original, &diverted);
		moved++;
		jumps[move.jump]++;
		returned += !original.signal;
		faulted += original.signal != 0;
	}
	print_message(
		"%d of %d functions were moved; %d came to the exit, %d to a fault; %d at the "
		"entry, %d before a probe, %d behind one\n",
		moved, CASES, returned, faulted, jumps[0], jumps[1], jumps[2]);
	assert_true(jumps[JUMP_BEFORE_PROBE] > CASES / 30 && jumps[JUMP_BEHIND_PROBE] > CASES / 5);
	assert_true(moved > CASES / 2 && returned > CASES / 4 && faulted > CASES / 20);
	munmap(arena.code, 5 * (size_t)PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_functions_end_alike_when_diverted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
