
# The names that there are now; the words of above where there are none.
_sluicegate_proxier_names() {
    local line=${COMP_LINE:0:COMP_POINT} offered
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    # readline replaces what stands behind the last of the characters that it breaks words at.
    local last=${words[-1]} kept=""
    [[ $last == *[:=@]* ]] && kept=${last%"${last##*[:=@]}"}
    COMPREPLY=()
    while IFS= read -r offered; do
        COMPREPLY+=("${offered#"$kept"}")
    done < <(command sluicegate-proxier complete "${words[@]}" 2>/dev/null)
    (( ${#COMPREPLY[@]} )) || _sluicegate__proxier "$@"
}
complete -o bashdefault -o default -F _sluicegate_proxier_names sluicegate-proxier
