
# The names that there are now; the words of above where there are none.
_sluicegate-proxier() {
    local -a offered
    offered=(${(f)"$(command sluicegate-proxier complete "${(@Q)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#offered )); then
        compadd -a offered
    else
        _sluicegate-proxier_words "$@"
    fi
}
