#compdef cuscope
# SPDX-License-Identifier: MIT
# Completion of cuscope's command line for zsh, which cuscope itself answers: src/cli/completion.c
# To use it:   source <(cuscope completion zsh)   after compinit, or as a file _cuscope in a folder of $fpath

_cuscope() {
	local -a asked values options
	local line what rest
	asked=("${(@Q)words[2,CURRENT]}")
	for line in "${(@f)$(command -- ${(Q)words[1]} completion words "${asked[@]}" 2>/dev/null)}"; do
		what=${line%%$'\t'*} rest=${${line#"$what"}#$'\t'}
		case $what in
		(:command)
			shift $((rest + 2)) words
			((CURRENT -= rest + 2))
			_normal
			return
			;;
		(:*) [[ $PREFIX == --*=* ]] && compset -P '--*=' ;|
		(:files) _files -g "*$rest(-.)" ; return ;;
		(:folders) _files -/ ; return ;;
		(:users) _users ; return ;;
		('') ;;
		(*=) options+=("${what//:/\\:}${rest:+:$rest}") ;;
		(*) values+=("${what//:/\\:}${rest:+:$rest}") ;;
		esac
	done
	(($#options)) && _describe -o option options -S ''
	(($#values)) && _describe value values
}

if [[ $funcstack[1] == _cuscope ]]; then
	_cuscope "$@"
else
	compdef _cuscope cuscope
fi
