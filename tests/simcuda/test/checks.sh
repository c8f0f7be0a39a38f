# SPDX-License-Identifier: MIT
# What the scripts that test the simulated libraries and the programs share. BUILD is their argument.
set -u
B=$(realpath "$1") || exit 1 # the agent loads nothing by a relative LD_LIBRARY_PATH
SIM=$B/simcuda
PROG=$B/programs
passed=0
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# check NAME COMMAND...: passes when the command succeeds
check()
{
	name=$1
	shift
	if "$@" > "$tmp/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
		sed 's/^/    /' "$tmp/out"
	fi
}

# with SHAPE COMMAND...: with that simulated driver
with()
{
	shape=$1
	shift
	LD_LIBRARY_PATH=$SIM/$shape:$SIM timeout 900 env "$@"
}

# status N COMMAND...: the command ends with that status
status()
{
	wanted=$1
	shift
	"$@"
	got=$?
	[ "$got" -eq "$wanted" ] || { echo "status $got instead of $wanted"; return 1; }
}

# counted JQ-FILTER COMMAND...: the program works, and what it counted satisfies the filter
counted()
{
	filter=$1
	shift
	rm -f "$tmp/counts"
	SAMPLE_COUNTS=$tmp/counts "$@" && jq -es "$filter" "$tmp/counts"
}

# cmocka_tests COMMAND...: every test of a cmocka program counts, but for those that it skips, which it names
cmocka_tests()
{
	CMOCKA_MESSAGE_OUTPUT=TAP "$@" > "$tmp/tap" 2>&1
	cmocka_count "$tmp/tap"
}

# cmocka_beside COMMAND...: the same, of one that mostly waits, beside what follows until cmocka_wait
n_beside=0
cmocka_beside()
{
	n_beside=$((n_beside + 1))
	CMOCKA_MESSAGE_OUTPUT=TAP "$@" > "$tmp/tap.$n_beside" 2>&1 &
}

cmocka_wait()
{
	wait
	while [ "$n_beside" -gt 0 ]; do
		cmocka_count "$tmp/tap.$n_beside"
		n_beside=$((n_beside - 1))
	done
}

cmocka_count()
{
	passed=$((passed + $(grep -c '^ok' "$1")))
	bad=$(grep '^not ok' "$1" | grep -cv '# SKIP')
	grep '^not ok.*# SKIP' "$1" | sed 's/^not ok [0-9]* # SKIP/skipped here:/'
	planned=$(sed -n 's/^1\.\.\([0-9][0-9]*\)$/\1/p' "$1" | head -n 1)
	# a program that ended in the middle
	[ "$(grep -cE '^(not )?ok' "$1")" -ge "${planned:-1}" ] || bad=$((bad + 1))
	failed=$((failed + bad))
	[ "$bad" -eq 0 ] || cat "$1"
}

# first_instructions LIBRARY: of all exported functions, by mnemonic and how often
first_instructions()
{
	objdump -d --no-show-raw-insn "$1" |
		awk '/^[0-9a-f]+ <cu(da)?[A-Z][^>]*>:/ { first = 1; next }
		     first { print $2; first = 0 }' | sort | uniq -c
}

# mostly MNEMONIC LIBRARY: at least 97 % of the entries, as of the real libraries
mostly()
{
	first_instructions "$2" | awk -v wanted="$1" '
		{ all += $1; if ($2 == wanted) n = $1; print }
		END { exit !(all > 250 && n >= 0.97 * all) }'
}

# jumps LIBRARY-OR-ARCHIVE: __cudaLaunchKernel does nothing but jump to cudaLaunchKernel
jumps()
{
	objdump -d --no-show-raw-insn "$1" | sed -n '/<__cudaLaunchKernel>:/,/^$/p' | tee "$tmp/jump"
	grep -Eq 'jmp .*<cudaLaunchKernel>' "$tmp/jump" && ! grep -q 'call' "$tmp/jump"
}

exports()
{
	nm -D --defined-only "$1" | grep -q " T $2\$" || { nm -D "$1" | grep "$2"; return 1; }
}

# The closing line, and the script's status.
finish()
{
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}
