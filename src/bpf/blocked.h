/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * How long threads of targets are blocked, where, and who wakes them.
 *
 * A stack is walked when its thread is switched away from, with the run queue's lock held: nobody
 * knows then how long it will be. So walks are bounded. A thread has a credit of so many a second,
 * and each process and all together have one of time on each CPU. What is due is chosen by chance,
 * the less likely the less credit is left, so that each stretch of a busy thread is as likely as
 * the others. Where a thread was blocked briefly several times in a row is walked the less likely,
 * once credit is short.
 */
#pragma once

#include "bpf/host_waits.h"
#include "bpf/walk.h"

#define MS 1000000ull

/* Between two of a thread, in the long run: with what it waits for each tells more. */
#define THREAD_WALK_NS   (settings.host_waits ? 2 * MS : 1 * MS)
#define THREAD_CREDIT_NS (64 * THREAD_WALK_NS) /* 64 walks in a row */
#define CPU_SHARE        20                    /* of its time goes to walks at most: 1 / 20 */
#define PROCESS_SHARE    40                    /* to those of one process */
#define CPU_CREDIT_NS    (10 * MS)             /* of walking, in a row */
#define TELL_NS          (100 * MS)            /* between two sums of a thread */
#define TELL_COST_NS     500 /* of a stretch without a stack, from the same credits */
#define BRIEFS_MAX       4
#define BRIEF_NS         100000                 /* shorter ones of a place make its walks rare */
#define THREAD_TELL_NS   (1 * MS)               /* between two of a thread without a stack */
#define THREAD_TELLS_NS  (256 * THREAD_TELL_NS) /* so many in a row */
#define TOLD_NS          (1 * MS)               /* longer ones are told all the same */
#define NAMED_NS         (1 * MS)

struct walk_credit {
	__u64 ns, at_ns;
};

MAP(PERCPU_ARRAY, 1, __u32, struct walk_credit) cpu_credit SEC(".maps");

MAP(LRU_PERCPU_HASH, 1024, __u32 /* tgid */, struct walk_credit) process_credit SEC(".maps");

/* ---- what is due ------------------------------------------------------------------------------
 */

/* What has come since last time; in 1024 parts, how likely a walk is to be. */
static __always_inline __u32 credit_chance(__u64 *credit, __u64 *at, __u64 now, __u64 share,
                                           __u64 most)
{
	__u64 ns = *credit + (now - *at) / share;

	*credit = ns > most ? most : ns;
	*at = now;
	/* not a division, which takes ten times as long: `most` is a constant */
	return ns >= most / 2 ? 1024 : ns * ((2048ull << 26) / most) >> 26;
}

static __always_inline void credit_pay(__u64 *credit, __u64 ns)
{
	*credit -= ns < *credit ? ns : *credit;
}

static __always_inline struct walk_credit *credit_of_process(__u32 tgid)
{
	struct walk_credit full = {}, *credit = bpf_map_lookup_elem(&process_credit, &tgid);

	if (credit)
		return credit;
	bpf_map_update_elem(&process_credit, &tgid, &full, BPF_ANY);
	return bpf_map_lookup_elem(&process_credit, &tgid);
}

/* The same place again and again: by the registers, since no more is known before the walk. */
static __always_inline __u32 place_find(struct wire_blocking *blocking, const struct left_at *left)
{
	__u32 key = (__u32)(left->pc * 31 + left->sp), at = key >> 4 & (WIRE_BLOCKED_PLACES - 1);

	if (blocking->places[at] != key) {
		blocking->places[at] = key;
		blocking->briefs[at] = 0;
	}
	blocking->place = at;
	return blocking->briefs[at];
}

/* The less likely, the more often in a row the thread was blocked briefly there. */
static __always_inline int by_chance(__u32 credit, __u32 briefs)
{
	__u32 chance = credit;

	if (credit >= 1024)
		return 1;
	for (__u32 i = 0; i < BRIEFS_MAX && i < briefs; i++)
		chance = chance * chance >> 10;
	return (bpf_get_prandom_u32() & 1023) < chance;
}

/* The thread's own credit is asked first: those that are blocked most often go no further. */
static __always_inline int walk_is_due(struct wire_blocking *blocking, const struct left_at *left,
                                       __u64 now)
{
	__u32 briefs = place_find(blocking, left);

	return left->pc && !IS_KERNEL_PC(left->pc) &&
	       by_chance(credit_chance(&blocking->credit_ns, &blocking->credited_ns, now, 1,
	                               THREAD_CREDIT_NS),
	                 briefs);
}

static __always_inline int walk_is_paid(struct wire_blocking *blocking, struct walk_credit *cpu,
                                        struct walk_credit *process, __u64 now)
{
	__u32 briefs = blocking->briefs[blocking->place & (WIRE_BLOCKED_PLACES - 1)];
	__u32 all = credit_chance(&cpu->ns, &cpu->at_ns, now, CPU_SHARE, CPU_CREDIT_NS);
	__u32 own =
		credit_chance(&process->ns, &process->at_ns, now, PROCESS_SHARE, CPU_CREDIT_NS / 2);

	return by_chance(all * own >> 10, briefs);
}

/* ---- it is switched away from ----------------------------------------------------------------
 */

/* By its call; a disk's may be for a page that was swapped out, which the kernel's frames tell. */
static __always_inline int wait_is_known(const struct wire_wait *wait)
{
	return settings.bare_waits && settings.host_waits && wait->call >= 0 &&
	       !(wait->flags & WIRE_WAIT_IO);
}

static __attribute__((noinline)) int blocked_walk(void *ctx, struct wire_blocking *blocking,
                                                  __u64 now)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 zero = 0, slot = walk_claim();
	struct walk_credit *cpu = bpf_map_lookup_elem(&cpu_credit, &zero);
	struct walk_credit *process = credit_of_process(id >> 32);
	struct walk *walk = slot < WALK_SLOTS ? walk_of(slot) : 0;
	__u64 spent;

	if (!walk)
		return 0;
	walk_begin(walk, id);
	walk->blocked = 1;
	if (cpu && process && blocking && !walk_from_kernel(walk) &&
	    walk_is_paid(blocking, cpu, process, now)) {
		if (!wait_is_known(&blocking->wait))
			walk_kernel_frames(walk, ctx);
		blocking->stack = walk_all(slot, id, now);
		spent = bpf_ktime_get_ns() - now;
		credit_pay(&cpu->ns, spent);
		credit_pay(&process->ns, spent);
		credit_pay(&blocking->credit_ns, THREAD_WALK_NS);
	}
	buffer_release(&walk->busy);
	return 0;
}

#define TASK_DEAD 0x80

static __always_inline __u64 task_state(struct task_struct *task)
{
	struct task_struct___before *before = (void *)task;

	return bpf_core_field_exists(task->__state) ? task->__state : before->state;
}

static __always_inline void wait_at(void *ctx, struct wire_blocking *blocking,
                                    struct task_struct *task, __u64 state_of, __u64 now)
{
	struct left_at left = {};

	left_at_read(&left, task);
	if (settings.host_waits)
		wait_begun(blocking, &left, task, state_of, now);
	if (settings.walk_blocked && walk_is_due(blocking, &left, now))
		blocked_walk(ctx, blocking, now);
}

/*
 * Who was preempted, or yields, would run on, and is not blocked. But it is known from then on: it
 * was not blocked all the time, as blocked_before() says of others.
 */
static __always_inline void blocked_begun(void *ctx, int preempted, struct task_struct *task,
                                          __u64 now)
{
	__u64 id = (__u64)task->tgid << 32 | (__u32)task->pid, state_of = task_state(task);
	struct wire_thread *thread = id ? thread_seen(id) : 0;

	if (thread && !thread_is_sampled(thread))
		thread = 0;
	if (!id || state_of & TASK_DEAD || task->flags & PF_EXITING ||
	    (!thread && !target_matches(id >> 32) && !process_is_waker(id >> 32)))
		return;
	if (!thread && task->mm) /* threads of the kernel have none */
		thread = thread_sampled(id);
	preempted |= !state_of;
	if (!thread || (preempted && !settings.host_waits))
		return;
	thread->blocking.stack = 0;
	thread->blocking.place = 0;
	thread->blocking.stopped = (state_of & TASK_TRACED) != 0;
	thread->blocking.held = 0;
	thread->blocking.since_ns = now;
	thread->blocking.preempted = preempted;
	if (!preempted)
		wait_at(ctx, &thread->blocking, task, state_of, now);
}

/* ---- it is woken -----------------------------------------------------------------------------
 */

/*
 * The kernel's own count of interrupts is a variable that programs cannot read on each kernel. So
 * their begins and ends are counted. A CPU that switches threads is in none.
 */
MAP(PERCPU_ARRAY, 1, __u32, __u32) interrupts SEC(".maps");

static __always_inline void interrupt_begun(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth)
		++*depth;
}

static __always_inline void interrupt_ended(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth && *depth)
		--*depth;
}

/* A timer's function is counted apart: whom it wakes has waited for a time. */
#define TIMER 0x10000

static __always_inline void timer_begun(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth)
		*depth += TIMER;
}

static __always_inline void timer_ended(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth && *depth >= TIMER)
		*depth -= TIMER;
}

static __always_inline void interrupts_none(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	if (depth)
		*depth = 0;
}

/* How deep, with TIMER's in it; 0: in none. */
static __always_inline __u32 in_interrupt(void)
{
	__u32 zero = 0, *depth = bpf_map_lookup_elem(&interrupts, &zero);

	return depth ? *depth : 0;
}

/* Before it is put on a run queue, so the current thread is the one that does it. */
static __always_inline void blocked_woken(struct task_struct *task)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = task->pid, interrupt;
	struct wire_thread *thread = bpf_map_lookup_elem(&threads, &tid);
	struct wire_blocking *blocking;
	__u64 now;

	if (!thread)
		return;
	now = bpf_ktime_get_ns();
	blocking = &thread->blocking;
	interrupt = in_interrupt();
	tid = interrupt ? 0 : (__u32)id;
	/* who has woken it a moment ago is still called so */
	if (tid && (tid != blocking->waker_tid || now - blocking->woken_ns > NAMED_NS))
		bpf_get_current_comm(blocking->waker, sizeof(blocking->waker));
	blocking->woken_ns = now;
	blocking->timed_out = interrupt >= TIMER;
	blocking->waker_tid = tid;
	blocking->waker_tgid = id >> 32;
	blocking->held = blocking->stopped && id >> 32 == settings.self_tgid;
}

/* ---- it goes on ------------------------------------------------------------------------------
 */

static __always_inline void wait_tell(struct wire_blocked *record,
                                      const struct wire_blocking *blocking, __u64 now)
{
	record->wait = blocking->wait;
	if (blocking->preempted) {
		record->how = WIRE_BLOCKED_PREEMPTED;
		record->runnable_ns = record->weight_ns;
	} else if (blocking->woken_ns >= blocking->since_ns) {
		record->runnable_ns = now - blocking->woken_ns;
		record->wait.flags |= blocking->timed_out ? WIRE_WAIT_TIMED_OUT : 0;
	}
	if (record->runnable_ns)
		rival_tell(record, now);
}

static __attribute__((noinline)) int blocked_tell(struct wire_blocking *blocking, __u64 id,
                                                  __u64 now)
{
	struct wire_blocked record = { .count = 1 };

	if (!blocking)
		return 0;
	record.stack = blocking->stack;
	record.weight_ns = now - blocking->since_ns;
	if (settings.host_waits)
		wait_tell(&record, blocking, now);
	if (record.how != WIRE_BLOCKED_PREEMPTED && blocking->woken_ns >= blocking->since_ns) {
		record.how = blocking->waker_tid ? WIRE_BLOCKED_WOKEN : WIRE_BLOCKED_INTERRUPT;
		record.waker_tid = blocking->waker_tid;
		record.waker_tgid = record.waker_tid ? blocking->waker_tgid : 0;
		if (record.waker_tid)
			__builtin_memcpy(record.waker, blocking->waker, sizeof(record.waker));
	}
	blocked_send(&record, id, now);
	return 0;
}

static __always_inline void sum_add(struct wire_sum *sum, __u64 ns)
{
	sum->ns += ns;
	sum->count++;
}

/*
 * Of a thread that is blocked thousands of times a second, those that are told are chosen by chance
 * as walks are, and the others added up: a record costs as much as all else that is done for it.
 */
static __always_inline int thread_tells(struct wire_blocking *blocking, __u64 ns, __u64 now)
{
	__u32 chance =
		credit_chance(&blocking->tells_ns, &blocking->tells_at_ns, now, 1, THREAD_TELLS_NS);

	if (ns < TOLD_NS && !by_chance(chance, 0))
		return 0;
	credit_pay(&blocking->tells_ns, THREAD_TELL_NS);
	return 1;
}

/*
 * Without a stack that was paid for: telling has to have credit of its own, so that a process whose
 * threads wait all the time cannot fill rings.
 */
static __attribute__((noinline)) int tell_is_due(struct wire_blocking *blocking, __u64 id,
                                                 __u64 now)
{
	__u32 zero = 0;
	struct walk_credit *cpu, *process;

	if (!blocking || !thread_tells(blocking, now - blocking->since_ns, now))
		return 0;
	cpu = bpf_map_lookup_elem(&cpu_credit, &zero);
	process = credit_of_process(id >> 32);
	if (!cpu || !process)
		return 0;
	credit_chance(&cpu->ns, &cpu->at_ns, now, CPU_SHARE, CPU_CREDIT_NS);
	credit_chance(&process->ns, &process->at_ns, now, PROCESS_SHARE, CPU_CREDIT_NS / 2);
	if (cpu->ns < TELL_COST_NS || process->ns < TELL_COST_NS)
		return 0;
	credit_pay(&cpu->ns, TELL_COST_NS);
	credit_pay(&process->ns, TELL_COST_NS);
	return 1;
}

/* Stretches that are not told one by one. */
static __always_inline void blocked_add_up(struct wire_blocking *blocking, struct wire_sum *sum,
                                           __u64 ns)
{
	sum_add(settings.host_waits && blocking->preempted ? &blocking->cpu : sum, ns);
}

static __always_inline void blocked_over(struct wire_blocking *blocking, __u64 id, __u64 now)
{
	__u64 ns = now - blocking->since_ns;
	__u8 *briefs = &blocking->briefs[blocking->place & (WIRE_BLOCKED_PLACES - 1)];

	if (!blocking->preempted && !blocking->held)
		*briefs = ns >= BRIEF_NS ? 0 : *briefs + (*briefs < BRIEFS_MAX);
	if (blocking->held) {
		/* a command while a file is looked into: that is not the program's time */
	} else if (ns < settings.blocked_ns) {
		blocked_add_up(blocking, &blocking->brief, ns);
	} else if (blocking->stack || (settings.host_waits && tell_is_due(blocking, id, now))) {
		blocked_tell(blocking, id, now);
	} else {
		blocked_add_up(blocking, &blocking->skipped, ns);
	}
	blocking->since_ns = 0;
	if (now - blocking->told_ns > TELL_NS)
		blocked_tell_sums(blocking, id, now);
}

/*
 * A thread that nobody has seen yet, though it is older: it was blocked all the time. One that ends
 * may have been forgotten already, and is not made known again: nobody would forget it.
 */
static __attribute__((noinline)) int blocked_before(struct task_struct *task, __u64 id, __u64 now)
{
	struct wire_blocked record = { .weight_ns = now - state.blocked_begin_ns,
		                       .count = 1,
		                       .how = WIRE_BLOCKED_BEFORE };
	struct wire_process born = {};
	__u32 tgid = id >> 32;

	if (!settings.all && !bpf_map_lookup_elem(&targets, &tgid))
		return 0;
	if (tgid == settings.self_tgid || record.weight_ns < settings.blocked_ns ||
	    BPF_CORE_READ(task, start_time) >= state.blocked_begin_ns || !BPF_CORE_READ(task, mm) ||
	    BPF_CORE_READ(task, flags) & PF_EXITING || !thread_make(id, user_of(task)))
		return 0;
	head_fill(&born.head, WIRE_THREAD, id, now);
	BPF_CORE_READ_STR_INTO(&born.comm, task, comm);
	emit(&born, sizeof(born), WAKE_IF_FULL);
	blocked_send(&record, id, now);
	return 0;
}

static __always_inline void blocked_ended(struct task_struct *task, __u64 now)
{
	__u64 id = task->pid;
	struct wire_thread *thread;

	if (!id) /* the idle thread */
		return;
	id |= (__u64)task->tgid << 32;
	thread = thread_seen(id);
	if (!thread)
		blocked_before(task, id, now);
	else if (thread->blocking.since_ns && thread_is_sampled(thread))
		blocked_over(&thread->blocking, id, now);
}

static __always_inline void switched(void *ctx, int preempted, struct task_struct *from,
                                     struct task_struct *to)
{
	__u64 now = bpf_ktime_get_ns();

	interrupts_none();
	blocked_begun(ctx, preempted, from, now);
	if (settings.host_waits)
		runner_leaves(from, now);
	blocked_ended(to, now);
}
