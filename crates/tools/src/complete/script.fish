# Completion of sluicegate-tools and of the tools whose place it takes, for fish.
function __sluicegate_tools
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l offered (command sluicegate-tools complete $before "$last" 2>/dev/null)
    if set -q offered[1]
        printf '%s\n' $offered
    else
        __fish_complete_path "$last"
    end
end
for tool in TOOLS
    complete -c $tool -f -a '(__sluicegate_tools)'
end
