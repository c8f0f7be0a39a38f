# SPDX-License-Identifier: MIT
# Completion of cuscope's command line for bash, which cuscope itself answers: src/cli/completion.c
# To use it:   source <(cuscope completion bash)

# The words up to the cursor, as cuscope gets them: bash has split them at '=' and ':', too.
_cuscope_words() {
	local rest=${COMP_LINE:0:COMP_POINT} trimmed i
	words=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		trimmed=${rest#"${rest%%[![:space:]]*}"}
		local word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$trimmed
		if ((i > 0)) && [[ -n $rest && $trimmed == "$rest" ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		rest=${trimmed#"$word"}
	done
}

_cuscope_command() { # INDEX: of the word that begins another command
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		mapfile -t COMPREPLY < <(compgen -c -- "${words[${#words[@]} - 1]}")
	fi
}

_cuscope_files() { # ENDING VALUE: names of files that end so, and folders
	local name
	compopt -o filenames 2>/dev/null
	while IFS= read -r name; do
		[[ -d $name || $name == *"$1" ]] && COMPREPLY+=("$name")
	done < <(compgen -f -- "$2")
}

_cuscope() {
	local words word value line what rest i
	COMPREPLY=()
	_cuscope_words
	word=${words[${#words[@]} - 1]} value=$word
	[[ $word == --*=* ]] && value=${word#--*=}
	while IFS= read -r line; do
		what=${line%%$'\t'*} rest=${line#"$what"} rest=${rest#$'\t'}
		case $what in
		:files) _cuscope_files "$rest" "$value" ;;
		:folders)
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -d -- "$value")
			;;
		:users) mapfile -t COMPREPLY < <(compgen -u -- "$value") ;;
		:command)
			_cuscope_command $((rest + 2))
			return
			;;
		*) COMPREPLY+=("$what") ;;
		esac
	done < <(command -- "$1" completion words "${words[@]:1}" 2>/dev/null)

	# What stands before the last '=' or ':' of the word stays as it is, and is not said again.
	rest=
	for ((i = 0; i < ${#word}; i++)); do
		line=${word:i:1}
		[[ $line == [=:] && $COMP_WORDBREAKS == *"$line"* ]] && rest=${word:0:i+1}
	done
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$rest"}
	done
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}

complete -F _cuscope cuscope
