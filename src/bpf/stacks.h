/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * Walking the stack of the current thread, frame by frame, by the rows that user space has made
 * from .eh_frame. Each step is a global function, which the verifier goes through once and not once
 * for each frame: so a program can take hundreds of steps without tail calls.
 */
#pragma once

#include "bpf/stack_maps.h"
#include "bpf/threads.h"
#include "bpf/trampoline.h"
#include "bpf/unwind_search.h"

#define STACK_BYTES_MAX   (64ull << 20) /* from the first frame to the last */
#define LOWEST_ADDRESS    4096
#define USER_ADDRESS_BITS 56
#define KERNEL_FRAMES_MAX 64

enum { WALK_ON, WALK_OVER };

static __always_inline struct walk *walk_of(__u32 slot)
{
	return bpf_map_lookup_elem(&walks, &slot);
}

static __always_inline int walk_ends(struct walk *walk, __u8 end, __u64 at)
{
	if (end == END_WHOLE && walk->by_pointers)
		end = END_BY_POINTERS;
	walk->out.end = end;
	walk->out.end_at = at;
	return WALK_OVER;
}

/* WALK_OVER where there is no room for more. */
static __always_inline int walk_push(struct walk *walk, enum wire_entry_kind kind, __u64 a, __u64 b)
{
	__u32 n = walk->out.n;
	struct wire_entry *entry = &walk->out.entry[BOUNDED(n, STACK_ENTRIES_MAX - 1)];

	if (n >= STACK_ENTRIES_MAX)
		return WALK_OVER;
	entry->a = a;
	entry->b = (__u64)kind << ENTRY_KIND_AT | (b & ENTRY_VALUE_MASK);
	walk->out.n = n + 1;
	return WALK_ON;
}

/* A native frame, which is as it was interrupted or as it has called. */
static __always_inline int walk_push_native(struct walk *walk, __u64 pc, __u64 cfa)
{
	__u64 exact = (__u64)walk->innermost << ENTRY_EXACT_AT;

	return walk_push(walk, ENTRY_NATIVE, pc, exact | (cfa & ENTRY_CFA_MASK));
}

/* The number of a stack is of the places that it went through, not of where its frames were. */
static __always_inline void walk_number(struct walk *walk, __u64 value)
{
	__u64 hash = (walk->hash ^ value) * 0xff51afd7ed558ccdull;

	walk->hash = hash ^ hash >> 32;
}

static __always_inline int user_read(void *to, __u32 bytes, __u64 from)
{
	return bpf_probe_read_user(to, bytes, (void *)from) != 0;
}

/* ---- native frames --------------------------------------------------------------------------- */

static __always_inline __u32 search_code(const struct wire_code *code, __u64 address)
{
	__u32 low = 0;

#pragma unroll
	for (__u32 step = UNWIND_MAPPINGS_MAX / 2; step; step >>= 1) {
		__u32 at = BOUNDED(low + step, UNWIND_MAPPINGS_MAX - 1);
		__u64 below = address - code->begin[at];

		asm("" : "+r"(below)); /* as in unwind_search.h */
		low += step * (__u32)((below >> 63) ^ 1);
	}
	return BOUNDED(low, UNWIND_MAPPINGS_MAX - 1);
}

/*
 * A return probe puts the kernel's trampoline in the place of the return address, and keeps the
 * address with the thread, the innermost first. Without this 98 % of the samples below a hooked
 * call ended there.
 */
static __always_inline __u64 next_replaced_return(struct walk *walk)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct return_instance *instance = (void *)walk->returns;
	__u64 address = 0;

	if (!walk->returns_known) {
		instance = BPF_CORE_READ(task, utask, return_instances);
		walk->returns_known = 1;
	}
	if (instance) {
		address = BPF_CORE_READ(instance, orig_ret_vaddr);
		walk->returns = (__u64)BPF_CORE_READ(instance, next);
	}
	return address;
}

#define PROBES_PAGE_MASK (~4095ull)

/*
 * The kernel's own page in the process: the trampoline, and copies of instructions under probes,
 * which it executes there. The address in the program that is meant; 0 for other places.
 */
static __always_inline __u64 address_behind_probes(struct walk *walk)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 trampoline = return_trampoline();

	if (!trampoline || (walk->pc & PROBES_PAGE_MASK) != (trampoline & PROBES_PAGE_MASK))
		return 0;
	if (walk->pc == trampoline)
		return next_replaced_return(walk);
	return walk->innermost ? BPF_CORE_READ(task, utask, vaddr) : 0;
}

/*
 * A number of the place in this process as it is mapped now. With a seed that nobody knows, so that
 * no process can choose a place that has the number of another's.
 */
static __always_inline __u64 memo_mark(const struct walk *walk, __u64 place)
{
	__u64 owner = (__u64)walk->tgid << 32 | walk->out.generation;
	__u64 mark = (place ^ settings.stack_seed) * 0xff51afd7ed558ccdull;

	mark = (mark ^ mark >> 32 ^ owner) * 0xc4ceb9fe1a85ec53ull;
	mark = (mark ^ mark >> 29 ^ settings.stack_seed) * 0x9e3779b97f4a7c15ull;
	return mark ^ mark >> 32;
}

static __always_inline __u64 *memo_of(__u64 mark)
{
	__u32 at = mark % MEMO_ENTRIES;

	return bpf_map_lookup_elem(&walk_memo, &at);
}

/* The rule that was found there before; NULL: none that is remembered. */
static __always_inline struct wire_rule *memo_find(__u64 mark)
{
	__u64 *entry = memo_of(mark), kept = entry ? *entry : 0;
	__u32 number = kept & ~MEMO_MARK_MASK;

	return kept && !((kept ^ mark) & MEMO_MARK_MASK)
	               ? bpf_map_lookup_elem(&unwind_rules, &number)
	               : 0;
}

static __always_inline void memo_keep(__u64 mark, __u32 number)
{
	__u64 *entry = memo_of(mark);

	if (entry)
		*entry = (mark & MEMO_MARK_MASK) | number;
}

/* 0: none. */
static __always_inline __u32 find_rule(__u32 file, __u32 address)
{
	void *table = bpf_map_lookup_elem(&unwind_files, &file);
	__u32 number = 0, base = 0, at;
	struct wire_node *node;

	if (!table)
		return 0;
#pragma unroll
	for (int level = 0; level < 2; level++) {
		node = bpf_map_lookup_elem(table, &number);
		if (!node)
			return 0;
		at = BOUNDED(unwind_search(node, address), UNWIND_FAN - 1);
		number = node->row[at].rule;
		base = node->row[at].address;
	}
	node = bpf_map_lookup_elem(table, &number);
	if (!node)
		return 0;
	at = BOUNDED(unwind_search_leaf(&node->leaf, address - base), UNWIND_LEAF_ROWS - 1);
	return node->leaf.rule[at];
}

/* The kernel has put all registers on the stack: struct ucontext is at its top. */
static __always_inline int walk_over_signal(struct walk *walk)
{
#ifdef __TARGET_ARCH_arm64
	/* siginfo of 128 bytes, then the context: regs[31], sp, pc from its 184th byte on */
	__u64 at = walk->sp + 128 + 168 + 8, regs[2], tail[3];

	if (user_read(regs, sizeof(regs), at + 8 * 29) ||
	    user_read(tail, sizeof(tail), at + 8 * 30))
		return walk_ends(walk, END_UNREADABLE, walk->pc);
	walk->fp = regs[0];
	walk->extra = regs[1];
	walk->sp = tail[1];
	walk->pc = tail[2];
#else
	/* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip: not read at once, since all
	 * frames of the programs that walk have 512 bytes together */
	__u64 at = walk->sp + 40, last[2];

	if (user_read(last, sizeof(last), at + 8 * 15) ||
	    user_read(&walk->extra, sizeof(walk->extra), at + 8 * 2) ||
	    user_read(&walk->fp, sizeof(walk->fp), at + 8 * 10))
		return walk_ends(walk, END_UNREADABLE, walk->pc);
	walk->sp = last[0];
	walk->pc = last[1];
#endif
	walk->innermost = 1;
	return WALK_ON;
}

/* The CFA of the frame; 0 where it is not to be had, the walk's end is set then. */
static __always_inline __u64 frame_cfa(struct walk *walk, const struct wire_rule *rule)
{
	__u64 cfa = 0;

	switch (rule->cfa_kind) {
	case CFA_SP:
		return walk->sp + rule->cfa;
	case CFA_FP:
		return walk->fp + rule->cfa;
	case CFA_PLT:
		return walk->sp + 8 + (__u64)((walk->pc & 15) >= (__u32)rule->cfa) * 8;
	case CFA_R10:
		if (walk->innermost)
			return walk->extra + rule->cfa;
		break;
	case CFA_AT_SP:
	case CFA_AT_FP:
		cfa = (rule->cfa_kind == CFA_AT_SP ? walk->sp : walk->fp) + rule->cfa;
		if (!user_read(&cfa, sizeof(cfa), cfa))
			return cfa + rule->add;
		walk_ends(walk, END_UNREADABLE, walk->pc);
		return 0;
	}
	walk_ends(walk, END_NO_RULE, walk->pc);
	return 0;
}

/* The registers as they were before the call of this frame. */
static __always_inline int walk_to_caller(struct walk *walk, const struct wire_rule *rule,
                                          __u64 cfa)
{
	__u64 back = walk->extra, fp = walk->fp;

	if (rule->ra_kind == RA_CFA && user_read(&back, sizeof(back), cfa + rule->ra))
		return walk_ends(walk, END_UNREADABLE, walk->pc);
	if (rule->ra_kind == RA_LR && !walk->innermost)
		return walk_ends(walk, END_NO_RULE, walk->pc);
	if (rule->fp_kind == FP_CFA || rule->fp_kind == FP_AT_FP) {
		if (user_read(&fp, sizeof(fp),
		              (rule->fp_kind == FP_CFA ? cfa : walk->fp) + rule->fp))
			return walk_ends(walk, END_UNREADABLE, walk->pc);
	}
	walk->fp = fp;
	walk->pc = back;
	walk->sp = cfa;
	walk->innermost = 0;
	return back ? WALK_ON : walk_ends(walk, END_WHOLE, 0);
}

enum { POINTERS_BEFORE = 1, POINTERS_LAST };

/*
 * Whether the interrupted function has not yet touched the stack, so that the return address is at
 * its top: at an endbr64, a push of rbp, a jump through a table, a ret, or a probe (int3), which
 * stands at a function's begin.
 */
static __always_inline int is_at_its_begin(const struct walk *walk)
{
#ifdef __TARGET_ARCH_arm64
	return 0;
#else
	__u32 code;

	if (!walk->innermost || user_read(&code, sizeof(code), walk->pc))
		return 0;
	return code == 0xfa1e0ff3 || (code & 0xff) == 0x55 || (code & 0xff) == 0xc3 ||
	       (code & 0xff) == 0xcc || (code & 0xffff) == 0x25ff;
#endif
}

/* Whether a call stands before the address: what else lies on a stack seldom looks so. */
static __always_inline int is_behind_a_call(__u64 address)
{
#ifdef __TARGET_ARCH_arm64
	__u32 code; /* bl, blr */

	return !user_read(&code, sizeof(code), address - 4) &&
	       (code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000);
#else
	__u64 code; /* the last byte is the highest; calls of 5, 2, 3, 6 and 7 bytes */

	if (user_read(&code, sizeof(code), address - 8))
		return address == return_trampoline();
	return (code >> 24 & 0xff) == 0xe8 || (code >> 48 & 0xff) == 0xff ||
	       (code >> 40 & 0xff) == 0xff || (code >> 16 & 0xff) == 0xff ||
	       (code >> 8 & 0xff) == 0xff || address == return_trampoline();
#endif
}

/*
 * The outermost frame pointer is 0, by the calling conventions; a frame that one has led to is in
 * such a chain. Go's begins at no call: the return address of a goroutine is made up.
 */
static __always_inline int walk_ends_chain(struct walk *walk, __u64 cfa)
{
	walk_push_native(walk, walk->pc, cfa);
	return walk_ends(walk, END_WHOLE, 0);
}

/*
 * Code that was made at run time has no rows, nor has what was built without tables; what keeps
 * frame pointers can be followed all the same. Frames of functions that keep none are missing then.
 */
static __always_inline int walk_by_frame_pointer(struct walk *walk, __u8 in_chain)
{
	__u64 pair[2], at = walk->fp;
	int begins = is_at_its_begin(walk);

	if (begins)
		at = walk->sp - 8;
	if (in_chain && !at)
		return walk_ends_chain(walk, 0);
	if (at + 8 * begins < walk->sp || at + 8 - walk->sp > 1 << 20 || at & 7 ||
	    user_read(pair, sizeof(pair), at))
		pair[1] = 0;
	if (in_chain && pair[1] && !pair[0] && !is_behind_a_call(pair[1]))
		return walk_ends_chain(walk, at + 16);
	if (!pair[1] || !is_behind_a_call(pair[1])) {
		walk_push_native(walk, walk->pc, 0);
		return walk_ends(walk, END_NO_TABLE, walk->pc);
	}
	if (walk_push_native(walk, walk->pc, at + 16))
		return walk_ends(walk, END_TOO_DEEP, walk->pc);
	walk->sp = at + 16;
	if (!begins)
		walk->fp = pair[0];
	walk->pc = pair[1];
	walk->innermost = 0;
	walk->by_pointers = POINTERS_LAST;
	return WALK_ON;
}

static __always_inline int step_by_rule(struct walk *walk, const struct wire_rule *rule)
{
	__u64 cfa, place;

	if (rule->cfa_kind == CFA_STOP) {
		walk_push_native(walk, walk->pc, 0);
		return walk_ends(walk, END_WHOLE, 0);
	}
	if (rule->cfa_kind == CFA_SIGNAL) {
		place = walk->pc;
		if (walk_over_signal(walk)) {
			walk_push_native(walk, place, 0);
			return WALK_OVER;
		}
		if (walk_push_native(walk, place, walk->sp))
			return walk_ends(walk, END_TOO_DEEP, place);
		return WALK_ON;
	}
	cfa = frame_cfa(walk, rule);
	if (walk_push_native(walk, walk->pc, cfa))
		return walk_ends(walk, END_TOO_DEEP, walk->pc);
	if (!cfa)
		return WALK_OVER;
	/* the frame of a leaf of AArch64 may be empty */
	if (cfa < walk->sp || cfa - walk->sp > STACK_BYTES_MAX || cfa & 7)
		return walk_ends(walk, END_BAD, walk->pc);
	return walk_to_caller(walk, rule, cfa);
}

/* What a frame pointer led to is no frame then. */
static __always_inline int walk_ends_outside(struct walk *walk, __u8 guessed)
{
	if (guessed)
		return walk_ends(walk, END_NO_TABLE, walk->pc);
	walk_push_native(walk, walk->pc, 0);
	return walk_ends(walk, END_NO_MAPPING, walk->pc);
}

/* One frame. WALK_OVER when the walk is over; why is in walk->out.end. */
__attribute__((noinline)) int walk_step(__u32 slot)
{
	struct walk *walk = walk_of(slot);
	const struct wire_code *code;
	const struct wire_rule *rule;
	__u64 place, replaced, mark;
	__u32 at, tgid, file, number = 0;
	__u8 guessed;

	if (!walk)
		return WALK_OVER;
	guessed = walk->by_pointers == POINTERS_LAST;
	if (guessed)
		walk->by_pointers = POINTERS_BEFORE;
	tgid = walk->tgid;
	place = walk->pc - !walk->innermost; /* of a return address: the call before it */
	mark = memo_mark(walk, place);
	rule = memo_find(mark);
	if (rule) {
		walk_number(walk, walk->pc);
		return step_by_rule(walk, rule);
	}
	code = bpf_map_lookup_elem(&unwind_code, &tgid);
	if (!code) {
		walk_number(walk, walk->pc);
		walk_push_native(walk, walk->pc, 0);
		return walk_ends(walk, END_NO_MAPPING, walk->pc);
	}
	if (walk->pc < LOWEST_ADDRESS || walk->pc >> USER_ADDRESS_BITS)
		return walk_ends(walk, guessed ? END_NO_TABLE : END_BAD, walk->pc);
	at = search_code(code, place);
	if (place < code->begin[BOUNDED(at, UNWIND_MAPPINGS_MAX - 1)] ||
	    place >= code->mapping[BOUNDED(at, UNWIND_MAPPINGS_MAX - 1)].end) {
		replaced = address_behind_probes(walk);
		if (!replaced)
			return walk_ends_outside(walk, guessed);
		walk->pc = replaced; /* a return probe in a return probe: once more */
		return WALK_ON;
	}
	file = code->mapping[BOUNDED(at, UNWIND_MAPPINGS_MAX - 1)].file;
	walk_number(walk, walk->pc);
	place -= code->mapping[BOUNDED(at, UNWIND_MAPPINGS_MAX - 1)].bias;
	if (file > UNWIND_FILE_BARE)
		number = find_rule(file, place);
	rule = file > UNWIND_FILE_BARE ? bpf_map_lookup_elem(&unwind_rules, &number) : 0;
	if (rule && rule->cfa_kind != CFA_NONE) {
		memo_keep(mark, number);
		return step_by_rule(walk, rule);
	}
	if (file)
		return walk_by_frame_pointer(walk, guessed);
	if (walk_push_native(walk, walk->pc, 0))
		return walk_ends(walk, END_TOO_DEEP, walk->pc);
	return walk_ends(walk, rule ? END_NO_RULE : END_NO_TABLE, walk->pc);
}

/* ---- the registers that it begins with ------------------------------------------------------- */

static __always_inline void walk_begin(struct walk *walk, __u64 id)
{
	walk->tgid = id >> 32;
	walk->returns = 0;
	walk->returns_known = 0;
	walk->innermost = 1;
	walk->blocked = 0;
	walk->by_pointers = 0;
	walk->python_frame = 0;
	walk->python_cframe = 0;
	walk->hash = settings.stack_seed ^ walk->tgid;
	walk->out.n = 0;
	walk->out.end = END_TOO_DEEP;
	walk->out.end_at = 0;
	walk->out.python_cut = 0;
}

#ifdef __TARGET_ARCH_arm64
#define USER_REGS        struct user_pt_regs
#define REGS_EXTRA(of)   ((of)->regs[30])
#define IS_KERNEL_PC(pc) ((pc) >> 63)
#define REGS_PC(of)      ((of)->pc)
#define REGS_SP(of)      ((of)->sp)
#define REGS_FP(of)      ((of)->regs[29])
#else
#define USER_REGS        struct pt_regs
#define REGS_EXTRA(of)   ((of)->r10)
#define IS_KERNEL_PC(pc) ((pc) >> 63)
#define REGS_PC(of)      ((of)->rip)
#define REGS_SP(of)      ((of)->rsp)
#define REGS_FP(of)      ((of)->rbp)
#endif

/* The kernel's own, of which only the size is asked: on AArch64 it has more than user programs see.
 */
struct pt_regs___kernel {
	int any;
} __ksym_struct;

#define KERNEL_STACK_BYTES (16 << 10) /* of both architectures, without KASAN */

/* Where the kernel has saved the registers of the current thread's user side. */
static __always_inline void *saved_user_regs(void)
{
	struct task_struct *task;

	/* 5.15; before, there is no padding behind them at the end of the kernel's stack */
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	task = (void *)bpf_get_current_task();
	return (char *)BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES -
	       bpf_core_type_size(struct pt_regs___kernel);
}

/*
 * 0 or not 0: a thread of the kernel, which has no user side. The registers are read to where
 * addresses of the kernel are kept for a moment: the stack of a program is small.
 */
static __always_inline int walk_from_kernel(struct walk *walk)
{
	USER_REGS *regs = (void *)walk->kernel;

	_Static_assert(sizeof(*regs) <= sizeof(walk->kernel), "there is room for registers");
	if (bpf_probe_read_kernel(regs, sizeof(*regs), saved_user_regs()))
		return 1;
	walk->pc = REGS_PC(regs);
	walk->sp = REGS_SP(regs);
	walk->fp = REGS_FP(regs);
	walk->extra = REGS_EXTRA(regs);
	return !walk->pc || IS_KERNEL_PC(walk->pc);
}

static __always_inline void walk_kernel_frames(struct walk *walk, void *ctx)
{
	long bytes = bpf_get_stack(ctx, walk->kernel, sizeof(walk->kernel), 0);

	for (__u32 i = 0; i < KERNEL_FRAMES_MAX; i++) {
		if (bytes <= 0 || i >= (__u32)bytes / 8)
			break;
		walk_number(walk, walk->kernel[i]);
		walk_push(walk, ENTRY_KERNEL, walk->kernel[i], 0);
	}
}
