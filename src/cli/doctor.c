// SPDX-License-Identifier: MIT
/* `cuscope doctor`: what this machine allows, tried out, and what to do about the rest. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/inject.h"
#include "agent/tick_clock.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "capture/cost.h"
#include "probe/driver_functions.h"
#include "probe/kernel_features.h"
#include "probe/libraries.h"
#include "probe/module.h"
#include "probe/programs.h"
#include "stack/lines/debug_fetch.h"
#include "stack/lines/debug_info.h"

enum verdict { OK, DEGRADED, MISSING };

#define TEXT_AT 29 /* the column that texts begin at */

struct doctor_page {
	struct kernel_features *features;
	bool color;
	size_t width; /* 0: any */
	bool blocked; /* tracing cannot work here */
	size_t libraries;
};

static void line(const struct doctor_page *report, enum verdict verdict, const char *what,
                 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void line(const struct doctor_page *report, enum verdict verdict, const char *what,
                 const char *fmt, ...)
{
	static const char *const names[] = { "ok", "degraded", "missing" };
	static const char *const colors[] = { "\033[32m", "\033[33m", "\033[31m" };
	AT_END(buf_free) struct buf text = { 0 }, safe = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	text_add_safe(&safe, text.data);
	if (report->width > 2 * TEXT_AT)
		text_wrap_lines(&safe, 0, report->width - TEXT_AT);
	printf("%s%-9s%s %-18s ", report->color ? colors[verdict] : "", names[verdict],
	       report->color ? "\033[0m" : "", what);
	for (const char *at = safe.data; *at; at++) {
		putchar(*at);
		if (*at == '\n')
			printf("%*s", TEXT_AT, "");
	}
	putchar('\n');
}

/* ---- privileges ---------------------------------------------------------------------------- */

/*
 * linux/capability.h. Those of packaging/systemd, which the agent works with. Instead of the first
 * two the kernel takes CAP_SYS_ADMIN.
 */
#define SYS_ADMIN 21

static const struct {
	int number;
	const char *name, *use;
	bool required;
} capabilities[] = {
	{ 39, "CAP_BPF", "loads eBPF programs", true },
	{ 38, "CAP_PERFMON", "attaches them, and has them read memory of processes", true },
	{ 19, "CAP_SYS_PTRACE",
	  "sees what other users' processes map, holds commands, and enters programs (--gpu, "
	  "--in-process)",
	  false },
	{ 2, "CAP_DAC_READ_SEARCH", "hooks libraries that only their users may open", false },
	{ 7, "CAP_SETUID",
	  "gives up rights before debug information and files in containers are read", false },
	{ 6, "CAP_SETGID", "gives up the rights of groups before these are read", false },
};

static bool has_capability(unsigned long long mask, size_t i)
{
	return mask >> capabilities[i].number & 1 ||
	       (capabilities[i].required && mask >> SYS_ADMIN & 1);
}

static void check_privileges(struct doctor_page *report)
{
	unsigned long long mask = 0;
	bool all = true;

	process_status(0, 0, "CapEff: %llx", &mask);

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		if (has_capability(mask, i))
			continue;
		all = false;
		report->blocked |= capabilities[i].required;
		line(report, capabilities[i].required ? MISSING : DEGRADED, capabilities[i].name,
		     "lacks; it %s: run as root (sudo), or with it", capabilities[i].use);
	}
	if (all)
		line(report, OK, "privileges", "%s",
		     geteuid() == 0 && mask >> SYS_ADMIN & 1 ? "root"
		                                             : "the capabilities that are needed");
}

/* ---- kernel -------------------------------------------------------------------------------- */

/* A perf event on a user program can want CAP_SYS_ADMIN (6.16, and before 5.8); a link of a file's
 * functions never does. */
static void check_uprobe(struct doctor_page *report)
{
	const struct feature_info *info = feature_info(FEATURE_UPROBE);
	int error = kernel_lacks_because(report->features, FEATURE_UPROBE);
	bool multi = kernel_has(report->features, FEATURE_MULTI);

	if (!error) {
		line(report, OK, info->name, "%s", info->gives);
	} else if (multi) {
		line(report, OK, info->name, "%s, by links alone: perf events want CAP_SYS_ADMIN",
		     info->gives);
	} else {
		report->blocked = true;
		line(report, MISSING, info->name, "%s; required (%s)%s", info->gives,
		     strerror(-error),
		     error == -EACCES ? ": without 'multi' this kernel wants CAP_SYS_ADMIN" : "");
	}
}

static void check_features(struct doctor_page *report)
{
	for (int i = 0; i < FEATURE_COUNT; i++) {
		const struct feature_info *info = feature_info(i);
		bool required = i == FEATURE_BTF || i == FEATURE_PIDS || i == FEATURE_RINGBUF;
		int error;

		if (i == FEATURE_UPROBE) {
			check_uprobe(report);
			continue;
		}
		if (kernel_has(report->features, i)) {
			line(report, OK, info->name, "%s", info->gives);
			continue;
		}
		error = kernel_lacks_because(report->features, i);
		line(report, required ? MISSING : DEGRADED, info->name, "%s; %s%s%s%s%s",
		     info->gives, required ? "" : "used instead: ", info->instead,
		     error ? " (" : "", error ? strerror(-error) : "", error ? ")" : "");
		report->blocked |= required;
	}
}

static void check_load(struct doctor_page *report)
{
	struct programs_options options = { .settings = { .returns = 1 }, .ring_bytes = 1 << 20 };
	struct programs *programs;
	struct hit_cost cost;
	struct err err = { 0 };

	if (report->blocked)
		return;
	options.mechanism = mechanism_best(report->features);
	if (programs_load(&options, &programs, &err)) {
		report->blocked = true;
		line(report, MISSING, "eBPF programs", "%s", err.text);
		return;
	}
	line(report, OK, "eBPF programs", "loaded; hooking by %s",
	     mechanism_name(options.mechanism));
	if (cost_measure(programs, true, &cost, &err))
		line(report, DEGRADED, "cost of a call", "not measured: %s", err.text);
	else
		line(report, OK, "cost of a call",
		     "%.2f us with its return, %.2f us without (measured)", cost.call_ns / 1e3,
		     cost.entry_ns / 1e3);
	programs_free(programs);
}

static void check_hazards(struct doctor_page *report)
{
	char text[256], *mode;

	file_line("/sys/kernel/security/lockdown", text, sizeof(text));
	mode = strchr(text, '[');
	if (mode && strncmp(mode, "[confidentiality", 16) == 0)
		line(report, MISSING, "lockdown",
		     "confidentiality: eBPF may not read memory; boot with "
		     "lockdown=integrity or none");
	else
		line(report, OK, "lockdown", "%s", text[0] ? text : "none");
	if (target_seccomp_mode(getpid()) == 2)
		line(report, DEGRADED, "seccomp",
		     "cuscope itself runs under a filter (a container?), "
		     "which may refuse bpf, perf_event_open and ptrace");
	if (!kernel_has(report->features, FEATURE_SECCOMP_SAFE))
		line(report, DEGRADED, "seccomp targets",
		     "this kernel's return probes kill threads under "
		     "seccomp (6.11 to 6.13): such processes get entries only");
}

/* ---- NVIDIA -------------------------------------------------------------------------------- */

static void check_driver(struct doctor_page *report)
{
	char text[256];
	const char *at;

	file_line("/proc/driver/nvidia/version", text, sizeof(text));
	if (!text[0]) {
		line(report, MISSING, "NVIDIA driver",
		     "not loaded: programs fail with "
		     "CUDA_ERROR_NO_DEVICE, which can be traced; 'sudo ./run demo' uses a "
		     "simulated one");
		return;
	}
	at = strstr(text, "Kernel Module");
	line(report, OK, "NVIDIA driver", "%s, %s kernel module",
	     at ? at + strlen("Kernel Module") + strspn(at + strlen("Kernel Module"), " for x86_64")
	        : text,
	     strstr(text, "Open Kernel Module") ? "open" : "proprietary");
	if (access("/sys/kernel/btf/nvidia", R_OK) == 0)
		line(report, OK, "driver BTF", "nvidia.ko has its types in /sys/kernel/btf");
	else
		line(report, DEGRADED, "driver BTF",
		     "nvidia.ko without types: not needed for tracing CUDA calls");
}

static void say_function(void *data, const struct driver_hook *hook)
{
	static const char *const ways[] = {
		[WAY_TYPES] = "fentry", [WAY_KPROBE] = "kprobe", [WAY_TRACEPOINT] = "trace event"
	};
	const struct doctor_page *report = data;

	if (hook->way == WAY_NONE)
		line(report, DEGRADED, "driver function", "%s (%s): %s", hook->function,
		     hook->gives, hook->why);
	else
		line(report, OK, "driver function", "%s (%s): %s", hook->function, hook->gives,
		     ways[hook->way]);
}

/* What --kernel can hook in the driver's modules, tried out. */
static void check_driver_functions(struct doctor_page *report)
{
	const struct driver_functions_options options = { .targets = -1, .cgroups = -1 };

	for (int i = 0; i < DRIVER_MODULES && !report->blocked; i++) {
		struct driver_functions *functions;
		struct err err = { 0 };

		if (!driver_module_loaded((enum driver_module)i))
			continue;
		if (driver_functions_open((enum driver_module)i, &options, &functions, &err)) {
			line(report, DEGRADED, "driver functions", "%s: %s%s",
			     driver_module_name((enum driver_module)i), err.text,
			     i == DRIVER_UVM ? "; managed memory by the driver's own queues" : "");
			continue;
		}
		driver_functions_each(functions, say_function, report);
		driver_functions_free(functions);
	}
}

static int report_library(void *data, const char *path)
{
	const struct selection selection = { 0 };
	struct doctor_page *report = data;
	struct module *module;
	struct err err = { 0 };
	size_t cheap = 0, hooked = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return 0;
	r = module_open(fd, path, ELF_WHOLE, &selection, &module, &err);
	if (r) {
		if (r < 0)
			line(report, DEGRADED, "library", "%s: %s", path, err.text);
		return 0;
	}
	for (size_t i = 0; i < module->n_hooks; i++) {
		hooked += module->hooks[i].group != HOOK_OFF;
		cheap += module->hooks[i].group != HOOK_OFF && module->hooks[i].placement.emulated;
	}
	line(report, OK, "library",
	     "%s: %s, %zu functions, %zu hooked by default, %zu of them cheap", path,
	     module->has[LAYER_DRIVER] ? "driver" : "runtime", module->n_hooks, hooked, cheap);
	report->libraries++;
	module_free(module);
	return 0;
}

static void check_libraries(struct doctor_page *report)
{
	libraries_each(report_library, report);
	if (!report->libraries)
		line(report, DEGRADED, "libraries",
		     "no libcuda or libcudart in the usual places; those "
		     "that processes load from elsewhere are found all the same");
}

/* ---- GPU times ----------------------------------------------------------------------------- */

static int note_cupti(void *data, const char *path)
{
	char *first = data;

	snprintf(first, PATH_MAX, "%s", path);
	return 1;
}

/* Starting a program needs less than entering one that runs. */
static void check_entering(struct doctor_page *report)
{
	struct err err = { 0 };

	if (inject_allowed(&err))
		line(report, DEGRADED, "entering", "--gpu for programs that run already %s",
		     err.text);
	else
		line(report, OK, "entering", "--gpu works for programs that run already");
}

static void check_gpu_times(struct doctor_page *report)
{
	char path[PATH_MAX] = "";

	libraries_cupti_each(note_cupti, path);
	if (path[0])
		line(report, OK, "libcupti", "%s; where a program brings its own, that is taken",
		     path);
	else
		line(report, DEGRADED, "libcupti",
		     "not in the usual places: --gpu works for programs that bring their own (as "
		     "PyTorch does), or with --cupti PATH; the CUDA toolkit has it "
		     "(cuda-cupti)");
	check_entering(report);
}

/* ---- calls recorded inside of processes ---------------------------------------------------- */

static bool reads_processes(void)
{
	char from = 'x', to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 && to == 'x';
}

static void check_in_process(struct doctor_page *report)
{
	struct err err = { 0 };

#ifndef __x86_64__
	line(report, DEGRADED, "in process", "--in-process is there on x86-64 only");
	return;
#endif
	if (inject_allowed(&err))
		line(report, DEGRADED, "in process",
		     "--in-process needs ptrace, which is refused here: probes tell of all calls");
	else if (!reads_processes())
		line(report, DEGRADED, "in process",
		     "--in-process works, but not for texts and structs of calls: this kernel has "
		     "no process_vm_readv (CONFIG_CROSS_MEMORY_ATTACH)");
	else
		line(report, OK, "in process",
		     "--in-process works, which is the default with --gpu; times are %s",
		     tick_clock_is_usable() ? "the processor's ticks"
		                            : "the kernel's, which takes a little longer");
}

/* ---- the command --------------------------------------------------------------------------- */

/* Whether what is missing can be fetched. */
static void check_fetching(struct doctor_page *report)
{
	bool refused;
	const char *program = debug_fetch_program(&refused);

	if (!program)
		line(report, OK, "debug files",
		     "of this machine only: debuginfod-find is not installed (package debuginfod, "
		     "elfutils-debuginfod-client)");
	else if (refused)
		line(report, OK, "debug files", "of this machine only: " DEBUG_FETCH_REFUSED);
	else if (debug_fetch_is_asked())
		line(report, OK, "debug files",
		     "those that this machine lacks are fetched from DEBUGINFOD_URLS, by %s",
		     program);
	else
		line(report, OK, "debug files",
		     "of this machine only: %s could fetch others, but DEBUGINFOD_URLS is not set",
		     program);
}

static void check_lines(struct doctor_page *report)
{
	const char *version = debug_info_version();

	if (version)
		line(report, OK, "native lines",
		     "profiles have lines and inlined functions of native code, by libdw %s",
		     version);
	else
		line(report, DEGRADED, "native lines",
		     "profiles have no lines of native code: this cuscope was built without libdw "
		     "(libdw-dev)");
	if (version)
		check_fetching(report);
}

static const struct option_row rows[] = {
	{ "without", 0, "LIST", "kernel features to treat as missing (names of the lines)",
	  OPTION_TEXT, .offer = completion_features, .list = true },
};

static const struct option_command options = {
	.group = { OPTION_ROWS(rows) },
	.doc = "Checks what this machine allows: each line is ok, degraded (something else is "
	       "used) or "
	       "missing, with what to do. The status is 0 when tracing works.",
};

int cli_doctor(int argc, char **argv)
{
	struct doctor_page report = { .color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") };
	const char *without = NULL;
	struct utsname name = { 0 };
	struct err err = { 0 };

	option_parse(&options, argc, argv, false, &without);
	if (kernel_features_new(without, &report.features, &err)) {
		cli_say("%s", err.text);
		return EXIT_USAGE;
	}
	report.width = cli_width(stdout);
	uname(&name);
	line(&report, OK, "kernel", "Linux %s, %s", name.release, name.machine);
	check_privileges(&report);
	check_features(&report);
	check_load(&report);
	check_hazards(&report);
	check_driver(&report);
	check_driver_functions(&report);
	check_libraries(&report);
	check_gpu_times(&report);
	check_in_process(&report);
	check_lines(&report);
	printf("\n%s\n", report.blocked
	                         ? "Tracing does not work here: see the lines that say missing."
	                         : "Tracing works here.");
	kernel_features_free(report.features);
	return report.blocked ? EXIT_FAILURE : 0;
}
