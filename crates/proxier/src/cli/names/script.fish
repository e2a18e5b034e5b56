
# The names that there are now.
function __sluicegate_proxier_names
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    command sluicegate-proxier complete $before "$last" 2>/dev/null | string replace -r '^--[^=]*=' ''
end
