# Completion of mcpspy for bash: eval "$(mcpspy completion bash)" in ~/.bashrc
_mcpspy_quote() {
    local index
    for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]=$(printf %q "${COMPREPLY[index]}"); done
}
_mcpspy() {
    local kind='' word index
    COMPREPLY=()
    while IFS= read -r -d '' word; do
        if [[ -z $kind ]]; then kind=$word; else COMPREPLY+=("$word"); fi
    done < <(command mcpspy __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null </dev/null)
    case $kind in
        captures)
            compopt -o filenames 2>/dev/null || _mcpspy_quote # bash 3 has no compopt
            compopt -o nosort 2>/dev/null
            ;;
        terms)
            [[ ${COMP_WORDS[COMP_CWORD]} == [\'\"]* ]] || _mcpspy_quote
            compopt -o nospace 2>/dev/null
            ;;
        files) compopt -o default 2>/dev/null ;;
        directories) compopt -o dirnames 2>/dev/null ;;
        command)
            for index in "${!COMP_WORDS[@]}"; do [[ ${COMP_WORDS[index]} == -- ]] && break; done
            if declare -F _command_offset >/dev/null; then
                _command_offset $((index + 1))
            elif ((COMP_CWORD == index + 1)); then
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
            else
                compopt -o default 2>/dev/null
            fi
            ;;
    esac
    return 0
}
complete -F _mcpspy mcpspy
