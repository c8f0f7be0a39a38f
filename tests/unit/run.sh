#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit test programs given, as many at once as there are CPUs, and sums up. Those of WAITING (names, in one word) run
# beside the others: they wait for most of their time. A program that passed is one line, and one for each
# test that was skipped; of the others all output is shown. A program that died before cmocka's summary counts as one failed test.
passed=0
failed=0
skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export work

# count WORD LOG: the number in cmocka's "[  WORD  ] 3 test(s)"
count() {
	sed -n "s/^\[  *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$2" | tail -n 1
}

# skips LOG: each test that was skipped, with what it printed before it skipped itself
skips() {
	awk '/^\[ RUN / { why = ""; next }
	     /^\[  SKIPPED \] [a-z]/ && !told[$4]++ { print "SKIP: " $4 ": " (why ? why : "no reason is given") }
	     { why = $0 }' "$1"
}

waits() {
	case " ${WAITING-} " in *" $(basename "$1") "*) ;; *) return 1 ;; esac
}

# run_all AT_ONCE < PROGRAMS
run_all() {
	# shellcheck disable=SC2016 # for the other shell
	xargs -r -P "$1" -n 1 sh -c '
		name=$(basename "$1") begin=$(date +%s)
		"$1" >"$work/$name.log" 2>&1
		echo $? >"$work/$name.status"
		seconds=$(($(date +%s) - begin))
		[ "$seconds" -lt 3 ] || echo " ($seconds s)" >"$work/$name.slow"' sh
}

touch "$work/beside" "$work/others"
for program in "$@"; do
	if waits "$program"; then echo "$program" >>"$work/beside"; else echo "$program" >>"$work/others"; fi
done
run_all 1 <"$work/beside" &
run_all "$(nproc)" <"$work/others"
wait
for program in "$@"; do
	log=$work/$(basename "$program").log
	status=$(cat "$work/$(basename "$program").status")
	p=$(count PASSED "$log") f=$(count FAILED "$log") s=$(count SKIPPED "$log")
	p=${p:-0} f=${f:-0} s=${s:-0}
	if [ "${status:-1}" -ne 0 ] && [ "$f" -eq 0 ]; then
		echo "$program: ended with status ${status:-1}"
		f=1
	fi
	[ "$f" -eq 0 ] || cat "$log"
	[ "$s" -eq 0 ] || skips "$log"
	echo "$(basename "$program"): $p passed, $f failed, $s skipped$(cat "$work/$(basename "$program").slow" 2>/dev/null)"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
[ "$failed" -eq 0 ]
