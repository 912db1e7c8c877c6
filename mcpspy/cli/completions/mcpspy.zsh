#compdef mcpspy
# Completion of mcpspy for zsh: eval "$(mcpspy completion zsh)" in ~/.zshrc, after compinit
_mcpspy() {
    local -a answer found shown
    local kind
    integer count
    answer=("${(@0)$(command mcpspy __complete zsh "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    kind=$answer[1]
    found=("${(@)answer[2,-2]}") # after the last NUL there is nothing
    case $kind in
        values | terms)
            count=$(($#found / 2))
            shown=("${(@)found[count + 1,-1]}")
            found=("${(@)found[1,count]}")
            if [[ $kind == terms ]]; then
                compadd -S '' -V values -l -d shown -a found
            else
                compadd -V values -l -d shown -a found
            fi
            ;;
        captures)
            compadd -V captures -a found
            # in their directory these are all, the one that was written to last first
            ((compstate[nmatches])) && [[ ${(Q)PREFIX} == "${found[1]:h}"/* ]] && return
            compset -P '--*='
            _files -g '*.jsonl'
            ((compstate[nmatches])) || compadd -V captures -M 'l:|=* r:|=*' -a found # a part of a name is enough
            ;;
        files)
            compset -P '--*='
            _files
            ;;
        directories)
            compset -P '--*='
            _files -/
            ;;
        command)
            count=${words[(i)--]}
            shift $count words
            ((CURRENT -= count))
            _normal
            ;;
    esac
}
if [[ $funcstack[1] == _mcpspy ]]; then
    _mcpspy "$@"
else
    compdef _mcpspy mcpspy
fi
