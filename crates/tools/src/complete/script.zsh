#compdef TOOLS
# Completion of sluicegate-tools and of the tools whose place it takes, for zsh.
_sluicegate_tools() {
    local -a offered
    offered=(${(f)"$(command sluicegate-tools complete "${(@Q)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#offered )); then
        compadd -a offered
    else
        _files
    fi
}
# Loaded from a file of this name it is the function itself, else it is read by `source`.
if [[ $funcstack[1] == _sluicegate_tools ]]; then
    _sluicegate_tools "$@"
else
    compdef _sluicegate_tools TOOLS
fi
