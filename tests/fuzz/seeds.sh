#!/bin/sh
# SPDX-License-Identifier: MIT
# seeds.sh DIR: real input for the fuzzers to start from, in DIR/NAME for fuzz_NAME.c.
set -eu
dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$dir/elf_file" "$dir/kernel_name" "$dir/maps" "$dir/options" "$dir/placement" "$dir/symbols"

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
${CC:-gcc} -w -O1 -nostdlib -shared -fPIC -Wl,-z,max-page-size=64 -Wl,-z,noseparate-code \
	-Wl,--build-id=sha1 -o "$dir/symbols/names" "$work/names.c"
strip -o "$dir/symbols/names-stripped" "$dir/symbols/names"
printf '1000 20 py::train:/app/train.py\n0x2000 0x10 a name\n1000 10 again\n' >"$dir/symbols/perf-map"

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
