#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit test programs given and sums up. A program that passed is one line; of the others
# all output is shown. A program that died before cmocka's summary counts as one failed test.
passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# count WORD: the number in cmocka's "[  WORD  ] 3 test(s)"
count() {
	sed -n "s/^\[  *$1 *\] \([0-9][0-9]*\) test(s).*/\1/p" "$log" | tail -n 1
}

for program in "$@"; do
	"$program" >"$log" 2>&1
	status=$?
	p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
	p=${p:-0} f=${f:-0} s=${s:-0}
	if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
		echo "$program: ended with status $status"
		f=1
	fi
	[ "$f" -eq 0 ] && [ "$s" -eq 0 ] || cat "$log"
	echo "$(basename "$program"): $p passed, $f failed, $s skipped"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
[ "$skipped" -eq 0 ] || echo "$skipped skipped: see above for what they need"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
