//! Shells whose completion is tested as their users meet it.

use std::path::Path;
use std::process::Command;

/// Returns the command that prints what zsh offers behind a line, each on a line of its own, with the completion that
/// the folder has.
///
/// zsh completes in its line editor only, which wants a terminal: one shell makes it, and types a tab for another,
/// whose `compadd` writes down what would be listed.
///
/// # Panics
/// When the folder cannot be written to.
#[must_use]
pub fn zsh(folder: &Path, line: &str) -> Command {
    std::fs::write(folder.join(".zshrc"), SETTINGS).expect("a file");
    let mut zsh = Command::new("zsh");
    zsh.args(["-f", "-c", DRIVE, "-", line]).env("ZDOTDIR", folder);
    zsh
}

const SETTINGS: &str = r#"
    PROMPT=
    fpath=($ZDOTDIR $fpath)
    autoload -Uz compinit && compinit -u -d $ZDOTDIR/.dump
    compadd() {
        [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
        local -a words
        builtin compadd -A words "$@"
        print -rl -- $words >> $ZDOTDIR/.offered
    }
    # From here on a key is the editor's, no longer the terminal's.
    zle-line-init() print -n READY
    zle -N zle-line-init
    bindkey -e
    bindkey '^I' complete-word
"#;
/// A tab, then the line is deleted, so that it is not run.
const DRIVE: &str = r#"
    : > $ZDOTDIR/.offered
    zmodload zsh/zpty
    zpty inner "zsh -d -i"
    zpty -r inner seen "*READY*"
    zpty -w -n inner "$1"$'\t\C-uexit\n'
    while zpty -r inner seen; do :; done
    cat $ZDOTDIR/.offered"#;
