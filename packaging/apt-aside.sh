# SPDX-License-Identifier: MIT
# For sourcing by sh. An apt that leaves the machine's own alone: its lists, cache and sources are in a directory of
# its own, root is not needed, and it can look into suites that the machine does not use. The mirrors are those of the
# machine's own apt configuration (no address stands in this repository).
#
#	aside_begin DIR                  first
#	aside_suite deb|deb-src SUITE... from now on it sees these suites only; 1 and a sentence in $aside_why if it cannot
#	aside apt-get download PACKAGE   run an apt command
#
# Of Debian it sees main alone, and what $aside_also names.
# shellcheck shell=sh disable=SC2034

aside_begin() {
	aside_dir=$1 aside_why=
	mkdir -p "$aside_dir/state/lists/partial" "$aside_dir/cache/archives/partial" "$aside_dir/etc"
	aside_dir=$(cd "$aside_dir" && pwd)
}

aside() {
	aside_command=$1
	shift
	"$aside_command" -q -o Dir::State="$aside_dir/state" -o Dir::Cache="$aside_dir/cache" \
		-o Dir::State::status=/var/lib/dpkg/status \
		-o Dir::Etc::SourceList="$aside_dir/etc/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@"
}

# aside_suite deb|deb-src SUITE...
aside_suite() {
	aside_kind=$1
	shift
	: >"$aside_dir/etc/sources.list"
	for aside_suite; do
		aside_source "$aside_kind" "$aside_suite" >>"$aside_dir/etc/sources.list" || {
			aside_why="apt on this machine names no mirror for $aside_suite"
			return 1
		}
	done
	# apt-get update succeeds with a warning when a mirror does not answer
	aside apt-get update >"$aside_dir/update.log" 2>&1 && ! grep -q '^[EW]: Failed' "$aside_dir/update.log" && return
	aside_why="$* cannot be fetched: $(grep -m 1 '^[EW]: ' "$aside_dir/update.log" | cut -c 1-200)"
	return 1
}

# aside_source deb|deb-src SUITE: its line in sources.list; 1 where no mirror is known
aside_source() {
	aside_url=$(aside_mirror "$2")
	[ -n "$aside_url" ] || return
	case $(aside_family "$2") in
	ubuntu) aside_components='main universe' ;;
	*) aside_components="main ${aside_also:-}" ;;
	esac
	# Without the file apt uses the keys that it trusts for every source.
	aside_keys=/usr/share/keyrings/$(aside_family "$2" | sed s,-security,,)-archive-keyring.gpg
	[ -e "$aside_keys" ] && aside_keys="[signed-by=$aside_keys] " || aside_keys=
	echo "$1 $aside_keys$aside_url $2 $aside_components"
}

# aside_mirror SUITE: of the mirrors that the machine uses, one that should hold the suite. Debian's security updates
# have their own.
aside_mirror() {
	# 'http://mirror/debian/dists/bookworm/InRelease' ...: printed from the configuration alone, without the network
	apt-get update --print-uris 2>/dev/null | sed -n "s|^'\(.*\)/dists/\(.*\)/InRelease'.*|\1 \2|p" |
		while read -r url suite; do
			if [ "$(aside_family "$suite")" = "$(aside_family "$1")" ]; then
				echo "$url"
				break
			fi
		done
}

aside_family() {
	case $1 in
	bullseye-security | bookworm-security | trixie-security | forky-security | stable-security) echo debian-security ;;
	bullseye* | bookworm* | trixie* | forky* | sid | unstable | testing | stable*) echo debian ;;
	jammy* | noble* | plucky* | questing* | resolute*) echo ubuntu ;;
	esac
}
