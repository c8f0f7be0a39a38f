# SPDX-License-Identifier: MIT
# Completion of cuscope's command line for fish, which cuscope itself answers: src/cli/completion.c
# To use it:   cuscope completion fish | source

function __cuscope_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -l value (string replace -r -- '^(--[^=]*=)' '' $word)
    set -l start (string sub -l (math (string length -- $word) - (string length -- $value)) -- $word)
    for line in (command $before[1] completion words $before[2..] "$word" 2>/dev/null)
        set -l parts (string split -m 1 \t -- $line)
        switch $parts[1]
            case :files
                for name in (__fish_complete_path "$value" | string replace -r '\t.*' '' | string match -r ".*(?:/|\Q$parts[2]\E)\$")
                    echo -- $start$name
                end
            case :folders
                for name in (__fish_complete_directories "$value" | string replace -r '\t.*' '')
                    echo -- $start$name
                end
            case :users
                for name in (__fish_complete_users | string match -- "$value*" | string replace -r '\t.*' '')
                    echo -- $start$name
                end
            case :command
                # fish counts from 1: cuscope, its command, and so many words
                __fish_complete_subcommand --commandline $before[(math $parts[2] + 3)..] "$word"
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c cuscope -f -a '(__cuscope_complete)'
