#!/bin/sh
# SPDX-License-Identifier: MIT
# seeds.sh DIR: real input for the fuzzers to start from, in DIR/NAME for fuzz_NAME.c. Inputs that a bug was found by are in
# tests/fuzz/found/NAME and are tried first each time.
set -eu
dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$dir/elf_file" "$dir/kernel_name" "$dir/maps" "$dir/options" "$dir/placement" "$dir/entry_move" "$dir/symbols" "$dir/frame_rows" "$dir/lines" "$dir/process_identity"

# Small libraries and programs of every shape that is told apart: driver or runtime, kind of hash
# table, stripped or not. Little alignment keeps them at 2 to 4 KiB, which matters for the speed.
small="-w -O1 -nostdlib -Wl,-z,max-page-size=64 -Wl,-z,noseparate-code -Wl,--build-id=none"
cat >"$work/driver.c" <<'C'
int cuInit(int n) { return n; }
int cuMemAlloc_v2(int n) { return n + 2; }
int cuLaunchKernel(int n) { return n + 3; }
int start(void) { return cuInit(1); }
C
cat >"$work/runtime.c" <<'C'
int cudaMalloc(int n) { return n; }
int cudaLaunchKernel(int n) { return n + 1; }
int __cudaRegisterFunction(int n) { return n + 2; }
int start(void) { return cudaMalloc(1); }
C
echo 'libcudart.so.13 { cuda*; __cuda*; };' >"$work/map"
for source in driver runtime; do
	for hash in gnu sysv both; do
		${CC:-gcc} $small -shared -fPIC -Wl,--hash-style=$hash \
			-o "$dir/elf_file/$source-$hash" "$work/$source.c"
		strip -o "$dir/elf_file/$source-$hash-stripped" "$dir/elf_file/$source-$hash"
	done
	${CC:-gcc} $small -static -Wl,-e,start -o "$dir/elf_file/$source-static" "$work/$source.c"
	${CC:-gcc} $small -fPIE -pie -Wl,-e,start -o "$dir/elf_file/$source-pie" "$work/$source.c"
done
${CC:-gcc} $small -shared -fPIC -Wl,--version-script="$work/map" \
	-o "$dir/elf_file/versioned" "$work/runtime.c"

# For the names that stacks want: the same, with a build id, a debug file and names of C++ and Rust.
cp "$dir"/elf_file/* "$dir/symbols/"
cat >"$work/names.c" <<'C'
int _ZN5leaky5Model10grow_cacheEm(int n) { return n; }
int _ZN4leak5Model10grow_cache17h0123456789abcdefE(int n) { return n + 1; }
int _RNvNtCs1234_4leak5model10grow_cache(int n) { return n + 2; }
C
# And one that a demangler does not get through.
printf 'int %s(int n) { return n + 3; }\n' "$(cat "$(dirname "$0")/found/kernel_name/doubling")" >>"$work/names.c"
${CC:-gcc} -w -O1 -nostdlib -shared -fPIC -Wl,-z,max-page-size=64 -Wl,-z,noseparate-code \
	-Wl,--build-id=sha1 -o "$dir/symbols/names" "$work/names.c"
strip -o "$dir/symbols/names-stripped" "$dir/symbols/names"
printf '1000 20 py::train:/app/train.py\n0x2000 0x10 a name\n1000 10 again\n' >"$dir/symbols/perf-map"

# For rows that stacks are walked by: the same, assembly code, and .eh_frame alone after a byte of settings. There is one of a real
# program, cut short, and one of AArch64.
cp "$dir"/elf_file/* "$dir/frame_rows/"
cat >"$work/frames.S" <<'S'
.globl start
start: .cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
.cfi_offset %rbp, -16
mov %rsp, %rbp
.cfi_def_cfa_register %rbp
.cfi_remember_state
leave
.cfi_def_cfa %rsp, 8
.cfi_restore %rbp
ret
.cfi_restore_state
.cfi_escape 0x0f, 5, 0x77, 24, 0x06, 0x23, 8
.cfi_escape 0x10, 6, 2, 0x76, 0x70
nop
.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
nop
.cfi_undefined %rip
ret
.cfi_endproc
.fill 32, 1, 0x90
back: .cfi_startproc
.cfi_signal_frame
.cfi_def_cfa %r10, 0
nop
.cfi_endproc
S
frames=$dir/frame_rows
for sections in .eh_frame .debug_frame; do
	{ echo ".cfi_sections $sections" && cat "$work/frames.S"; } >"$work/one.S"
	${CC:-gcc} $small -shared -o "$frames/assembly$sections" "$work/one.S"
done
objcopy -O binary --only-section=.eh_frame "$frames/assembly.eh_frame" "$work/frames"
{ printf '\000' && cat "$work/frames"; } >"$frames/section"
{ printf '\032' && cat "$work/frames"; } >"$frames/section-poor"
objcopy -O binary --only-section=.debug_frame --set-section-flags .debug_frame=alloc "$frames/assembly.debug_frame" "$work/frames"
{ printf '\001' && cat "$work/frames"; } >"$frames/section-debug"
objcopy -O binary --only-section=.eh_frame "$(readlink -f /bin/sh)" "$work/frames"
{ printf '\000' && head -c 4000 "$work/frames"; } >"$frames/section-real"
{ printf '\004\020\0\0\0\0\0\0\0\1zR\0\1\170\036\1\003\014\037\0' &&
	printf '\036\0\0\0\030\0\0\0\0\020\0\0\040\0\0\0\0' &&
	printf '\101\055\101\016\040\235\004\236\003\101\336\335\016\0\055\0\0'; } >"$frames/section-aarch64"

# One line a file, from a process that is at hand.
split -l 1 -a 4 /proc/self/maps "$dir/maps/line-"
printf '1000-2000 r-xp 0 fe:01 12 /tmp/a b\\012c (deleted)\n' >"$dir/maps/odd"

# Entries as compilers write them, after a byte of settings.
octal() { printf "$2" >"$dir/placement/$1"; }
octal push '\0\125\110\211\345\303'
octal endbr64 '\0\363\017\036\372\125\110\211\345\303'
octal cmpl-je '\0\201\075\020\040\060\0\001\0\0\0\164\006\377\045\020\040\060\0\303'
octal nop5 '\1\017\037\104\0\0\125\303'
octal jump-back '\0\363\017\036\372\125\061\300\353\373\303'
octal call '\0\350\0\020\0\0\303'
octal aarch64 '\2\077\043\003\325'
octal unknown-size '\4\363\017\036\372\101\124\303'

# Entries to divert, after seven bytes of settings: the last one is where the probe lies.
entry() { printf "\0\0\0\0\0\0${3:-\\0}$2" >"$dir/entry_move/$1"; }
entry push '\125\110\211\345\101\127\061\300\303'
entry endbr64 '\363\017\036\372\125\110\211\345\101\127\303'
entry cmpl-je '\201\075\020\040\060\0\001\0\0\0\164\006\377\045\020\040\060\0\303'
entry jmp-pointer '\377\045\020\040\060\0'
entry mov-test-jmp '\110\213\005\020\040\060\0\110\205\300\164\002\377\340\303'
entry loop '\110\205\300\342\004\270\001\0\0\0\303\303'
entry jcc '\110\205\300\164\001\220\303'
entry table '\270\001\0\0\0\110\213\004\302\377\340'
entry jump-back '\125\110\211\345\101\127\353\374'
entry cmpl-je-probed '\201\075\020\040\060\0\001\0\0\0\164\006\377\045\020\040\060\0\303' '\012'
entry endbr64-probed '\363\017\036\372\125\110\211\345\101\127\303' '\004'
entry vector '\304\342\175\030\005\020\040\060\0\303'
entry tls '\270\001\0\0\0\146\146\110\350\0\020\0\0\303'

# Command lines, a word a line, after a byte of settings.
words() {
	name=$1 setting=$2
	shift 2
	printf "$setting%s" "$(printf '%s\n' "$@")" >"$dir/options/$name"
}
words command 1 -p 123,456 --duration=1.5ms -- ./app --verbose
words first-word 1 --all ./app --its-own
words targets 0 -vp 12 --name 'python*' --cgroup /a --no-follow --user me -o a.jsonl
words functions 0 --only 'cu*' '--sk=cudaGet*' --class memory,launch --layer both --all-calls
words values 0 10us 2.5% 64KiB 1e3 7min 0x1 --durration 3 --help

mangled() { printf '%s' "$2" >"$dir/kernel_name/$1"; }
mangled plain _Z9vectorAddPKfPfi
mangled template _ZN7cutlass13device_kernelINS_4gemm6kernelIN4cute5tupleIJiEEEEEEEvT_
mangled stub _ZL35__device_stub__Z9vectorAddPKfS0_PfiPKfS0_Pfi
mangled back-references _Z1fSt6vectorIS_IS_IiSaIiEESaIS1_EESaIS3_EE

# Answers and sections of debug files: "main" at line 7, inlined into nothing; a name and its sum; a path and a build id.
printf '\0\0\0\0\1\0\0\0\7\0\0\0\5\0\0\0\4\0\0\0\3\0\0\0maina.c' >"$dir/lines/answer"
printf 'a.debug\0\1\2\3\4' >"$dir/lines/link"
printf '/usr/lib/debug/.dwz/a.debug\0\1\2\3\4\5\6\7\10' >"$dir/lines/altlink"

# Cgroups of a pod, a job and a machine; variables; a command line.
identity() { printf "$2" >"$dir/process_identity/$1"; }
id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
pod=0a1b2c3d_1111_2222_3333_444455556666
identity pod "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$pod.slice/cri-containerd-$id.scope"
identity others '5:a:/slurm/uid_1/job_1/step_batch\n0::/machine.slice/machine-a\\x2db.scope/payload\n1:x:/lxc.payload.a/b'
identity variables 'RANK=3\0A=b\0'
identity command '/usr/bin/python3\0-m\0torch.x\0'

# Hooks of one's own.
mkdir -p "$dir/hooks"
cp src/hooks/files/*.hooks "$dir/hooks/"
printf 'uprobe:a:f(x=arg1+16:u32, *arg2:u64@return, arg5:char[9]) as b if (x > 1KiB or duration > 5ms) and not ret == 1' >"$dir/hooks/uprobe"
printf 'table t = 1 2 4\ndriver 515-544\n?kprobe:nvidia:nv_*[a-z](n=arg0*t(arg1):bytes)\n' >"$dir/hooks/table"
printf 'tracepoint:sched:sched_switch(prev_pid, c=next_comm:str) if prev_pid != 0' >"$dir/hooks/tracepoint"
printf 'kentry:f(s=arg1+8->8:kstr, n=arg2+4:u32@user, t=*arg8:hex) if n & 4 or !(arg3 <= 0x10)' >"$dir/hooks/kernel"
printf 'kprobe:m:f*[a-c]?(n=arg2+4:i32@user@return) as k if n != -7 and duration > 1us' >"$dir/hooks/span"
printf 'uretprobe:/a/*.so:_ZN[!a]?\\*(ret:kchar[300])' >"$dir/hooks/mistake"

# Records of the kernel's log, and what the driver's trace event has.
mkdir -p "$dir/ras"
printf 'SERVER PROTOCOL 2\nOK\nOK\n{ "communicators": [ { "hash": "0x87cd2ae5bd9fc42a", "secondary_hash": "0xc7f9:0x73bb", "size": 2, "ranks": [ { "rank": 0, "host": "h", "pid": 4, "cuda_dev": 0, "nvml_dev": 1, "status": { "async_error": 0, "abort_flag": false }, "collective_counts": { "AllReduce": 9 } } ], "missing_ranks": [ { "rank": 1, "pid": 5 "status": { "considered_dead": true } } ] } ] }' >"$dir/ras/answer"
mkdir -p "$dir/xid"
printf '4,1234,5678,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=train, Ch 00000010, intr 10000000.\n SUBSYSTEM=pci' >"$dir/xid/record"
printf '12,1,2,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.' >"$dir/xid/user"
printf "NVRM: Xid (PCI:0000:18:00): 154, pid='<unknown>', name=<unknown>, GPU recovery action changed" >"$dir/xid/line"
printf 'pid=1, name=a b, Channel 00000021' >"$dir/xid/text"
