// SPDX-License-Identifier: MIT
#include "probe/kernel_features.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/later.h"
#include "base/parse.h"
#include "base/process.h"
#include "base/xalloc.h"
#include "probe/bpf_call.h"

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl self_target\n"
        ".type self_target, @function\n"
        "self_target:\n"
        "	push %rbp\n"
        "	mov %rsp, %rbp\n"
        "	xor %eax, %eax\n"
        "	pop %rbp\n"
        "	ret\n"
        ".size self_target, . - self_target\n"
        ".popsection\n");
#else
__attribute__((noinline, noclone)) long self_target(long a, long b)
{
	__asm__ volatile("" ::"r"(a), "r"(b));
	return 0;
}
#endif

/* The first object that dl_iterate_phdr reports is the program itself. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t address = (uint64_t)&self_target - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && address - ph->p_vaddr < ph->p_filesz)
			*(uint64_t *)data = address - ph->p_vaddr + ph->p_offset;
	}
	return 1;
}

uint64_t self_target_offset(void)
{
	uint64_t offset = 0;

	dl_iterate_phdr(find_offset, &offset);
	return offset;
}

struct kernel_features {
	bool tried[FEATURE_COUNT];
	bool has[FEATURE_COUNT];
	int error[FEATURE_COUNT];
};

static const struct feature_info infos[FEATURE_COUNT] = {
	[FEATURE_BTF] = { "btf", "the kernel's own types (CO-RE)", "required" },
	[FEATURE_PIDS] = { "pids", "process ids are those that the kernel reports",
	                   "required: run on the host, or in a container with --pid=host" },
	[FEATURE_RINGBUF] = { "ringbuf", "ring buffers (5.8)", "required" },
	[FEATURE_UPROBE] = { "uprobe", "probes in user programs", "required" },
	[FEATURE_COOKIE] = { "cookie", "one program for all functions (5.15)",
	                     "one small program a function" },
	[FEATURE_MULTI] = { "multi", "one link for all functions of a file (6.6)",
	                    "a perf event a function: slower to attach" },
	[FEATURE_SESSION] = { "session", "entry and return in one program (6.13)",
	                      "two programs: nested calls pay for their returns" },
	[FEATURE_SECCOMP_SAFE] = { "seccomp", "returns of processes under seccomp",
	                           "entries only for such processes" },
	[FEATURE_TRACEFS] = { "tracefs", "libraries loaded later are seen at once",
	                      "a look at /proc every 100 ms" },
};

const struct feature_info *feature_info(enum feature feature)
{
	return &infos[feature];
}

#define INSN(op, d, s, o, i)                                                                       \
	{                                                                                          \
		.code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)               \
	}
#define RETURN_0 INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int load_empty(unsigned attach_type)
{
	const struct bpf_insn insns[] = { RETURN_0 };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "cuscope_try", "GPL", insns, 2, &opts);
}

static int try_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) ? -errno : 0;
}

/* The first pid namespace has a fixed inode: PROC_PID_INIT_INO. */
static int try_pids(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return -errno;
	return st.st_ino == 0xEFFFFFFCu ? 0 : -ENOTSUP;
}

static int try_ringbuf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "cuscope_try", 0, 0, getpagesize(), NULL);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* A probe on cuscope's own function, in the way that `attach_type` names; 0: a perf event. */
static int hook_self(unsigned attach_type, bool returns)
{
	uint64_t offset = self_target_offset();
	int prog = load_empty(attach_type), fd, link = 0;

	if (prog < 0)
		return prog;
	if (attach_type) {
		fd = bpf_link_uprobe_multi(prog, attach_type, "/proc/self/exe", &offset, NULL, NULL,
		                           1, returns && attach_type == ATTACH_UPROBE_MULTI);
	} else {
		fd = perf_uprobe_open("/proc/self/exe", offset, 0, returns);
		if (fd >= 0)
			link = perf_event_attach(fd, prog, false, 0);
		if (link < 0) {
			close(fd);
			fd = link;
		}
	}
	close(prog);
	return fd;
}

static int try_hook(unsigned attach_type)
{
	int fd = hook_self(attach_type, false);

	if (fd >= 0)
		close_later(fd);
	return fd < 0 ? fd : 0;
}

static int try_uprobe(void)
{
	return try_hook(0);
}

static int try_multi(void)
{
	return try_hook(ATTACH_UPROBE_MULTI);
}

static int try_session(void)
{
	return try_hook(ATTACH_UPROBE_SESSION);
}

static int try_cookie(void)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, 174 /* BPF_FUNC_get_attach_cookie */),
		RETURN_0,
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "cuscope_try", "GPL", insns, 3, NULL);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Runs in a child: every system call is allowed but those by which probes enter the kernel. */
static void call_under_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 335 /* x86-64 uretprobe */, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
	self_target(1, 2);
	_exit(0);
}

static int try_seccomp(void)
{
	int link = hook_self(ATTACH_UPROBE_MULTI, true), status = 0;
	pid_t child;

	if (link < 0)
		link = hook_self(0, true);
	if (link < 0)
		return link;
	child = fork();
	if (child == 0)
		call_under_seccomp();
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = -1;
	close_later(link);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int try_tracefs(void)
{
	int fd = tracefs_open("events/syscalls/sys_enter_mmap/id");

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int (*const attempts[FEATURE_COUNT])(void) = {
	[FEATURE_BTF] = try_btf,         [FEATURE_PIDS] = try_pids,
	[FEATURE_RINGBUF] = try_ringbuf, [FEATURE_UPROBE] = try_uprobe,
	[FEATURE_COOKIE] = try_cookie,   [FEATURE_MULTI] = try_multi,
	[FEATURE_SESSION] = try_session, [FEATURE_SECCOMP_SAFE] = try_seccomp,
	[FEATURE_TRACEFS] = try_tracefs,
};

static int hide(struct kernel_features *features, const char *without, struct err *err)
{
	char *list = xstrdup(without), *rest = list;
	const char *name;
	int result = 0;

	while ((name = strsep(&rest, ","))) {
		const char *names[FEATURE_COUNT];
		size_t i = 0;

		for (size_t k = 0; k < FEATURE_COUNT; k++)
			names[k] = infos[k].name;
		while (i < FEATURE_COUNT && strcmp(name, names[i]))
			i++;
		if (i == FEATURE_COUNT) {
			const char *near = suggest(name, names, FEATURE_COUNT);

			result = err_set(err, EINVAL, "--without: no feature '%s'%s%s%s", name,
			                 near ? "; did you mean '" : "", near ? near : "",
			                 near ? "'?" : "");
			break;
		}
		features->tried[i] = true;
	}
	free(list);
	return result;
}

int kernel_features_new(const char *without, struct kernel_features **features, struct err *err)
{
	struct kernel_features *made = xcalloc(1, sizeof(*made));

	if (without && hide(made, without, err)) {
		free(made);
		return err->code;
	}
	*features = made;
	return 0;
}

void kernel_features_free(struct kernel_features *features)
{
	free(features);
}

bool kernel_has(struct kernel_features *features, enum feature feature)
{
	if (!features->tried[feature]) {
		features->error[feature] = attempts[feature]();
		features->has[feature] = features->error[feature] == 0;
		features->tried[feature] = true;
	}
	return features->has[feature];
}

/* CAP_SYS_ADMIN, or CAP_PERFMON, which attaching takes: trying that would cost a grace period. */
static bool may_attach(void)
{
	unsigned long long mask = 0;

	return !process_status(0, 0, "CapEff: %llx", &mask) || mask >> 21 & 1 || mask >> 38 & 1;
}

bool kernel_refuses(struct kernel_features *features)
{
	int because = kernel_lacks_because(features, FEATURE_RINGBUF);

	return because == -EPERM || because == -EACCES || !may_attach();
}

int kernel_lacks_because(struct kernel_features *features, enum feature feature)
{
	return kernel_has(features, feature) ? 0 : features->error[feature];
}
