# Completion of sluicegate-tools and of the tools whose place it takes, for bash.
_sluicegate_tools() {
    local line=${COMP_LINE:0:COMP_POINT} offered
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # readline replaces what stands behind the last of the characters that it breaks words at.
    local last=${words[-1]} kept=""
    [[ $last == *[:@]* ]] && kept=${last%"${last##*[:@]}"}
    COMPREPLY=()
    while IFS= read -r offered; do
        COMPREPLY+=("${offered#"$kept"}")
    done < <(command sluicegate-tools complete "${words[@]}" 2>/dev/null)
}
complete -o default -F _sluicegate_tools TOOLS
