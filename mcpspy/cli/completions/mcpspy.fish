# Completion of mcpspy for fish: mcpspy completion fish | source in ~/.config/fish/config.fish
function __mcpspy_complete
    set -l before (commandline -xpc 2>/dev/null; or commandline -opc)
    set -l word (commandline -ct | string unescape; or commandline -ct | string trim -l -c "'\"")
    set -l answer (command mcpspy __complete fish $before "$word" 2>/dev/null </dev/null | string split0)
    for candidate in $answer[2..]
        printf '%s\0' $candidate
    end
    switch "$answer[1]"
        case files
            __fish_complete_path "$word" | string join0
        case directories
            __fish_complete_directories "$word" "" | string join0
        case command
            set -l after (contains -i -- -- $before)
            set -l line (string join ' ' -- (string escape -- $before[(math $after + 1)..]) "$word")
            complete -C "$line" | string join0
    end
end
complete -c mcpspy -f -k -a '(__mcpspy_complete | string split0)'
