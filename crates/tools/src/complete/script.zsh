#compdef TOOLS
# Completion of sluicegate-tools and of the tools whose place it takes, for zsh.
_sluicegate-tools() {
    local -a offered
    offered=(${(f)"$(command sluicegate-tools complete "${(@Q)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#offered )); then
        compadd -a offered
    else
        _files
    fi
}
# Loaded from a file of this name it is the function itself, else it is read by `source`.
if [[ $funcstack[1] == _sluicegate-tools ]]; then
    _sluicegate-tools "$@"
else
    compdef _sluicegate-tools TOOLS
fi
