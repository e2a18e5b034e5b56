//! `-i`: commands line by line, until `quit` or the end of the input. At a terminal the line is edited, and past
//! lines come back; what stands in a file or comes from another program is read as it is.

use std::io::{BufRead as _, IsTerminal as _};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::arguments::Arguments;
use super::error::CommandError;
use super::run::execute;

pub(crate) fn interactive(arguments: &Arguments) -> Result<(), CommandError> {
    let mut commands = Commands::default();
    if !std::io::stdin().is_terminal() {
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(CommandError::Input)?;
            if !commands.take(&line, arguments) {
                break;
            }
        }
        return Ok(());
    }
    let mut editor = DefaultEditor::new().map_err(CommandError::cause)?;
    loop {
        match editor.readline(if commands.open.is_empty() { "nft> " } else { ".... " }) {
            Ok(line) => {
                // A line that cannot be kept is done all the same.
                let _ = editor.add_history_entry(&line);
                if !commands.take(&line, arguments) {
                    return Ok(());
                }
            }
            Err(ReadlineError::Interrupted) => commands.open.clear(),
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(CommandError::cause(error)),
        }
    }
}

#[derive(Default)]
struct Commands {
    /// A command whose block is not closed yet.
    open: String,
    /// The definitions so far, which the commands behind them may use.
    definitions: String,
}

impl Commands {
    /// Does what a line says; false for the last. What is wrong is told, and the next line is read.
    fn take(&mut self, line: &str, arguments: &Arguments) -> bool {
        if self.open.is_empty() && line.trim() == "quit" {
            return false;
        }
        match line.strip_suffix('\\') {
            Some(line) => {
                self.open.push_str(line);
                return true;
            }
            None => self.open.push_str(line),
        }
        if depth(&self.open) > 0 {
            self.open.push('\n');
            return true;
        }
        let command = std::mem::take(&mut self.open);
        if command.trim().is_empty() {
            return true;
        }
        let is_definition =
            ["define ", "redefine ", "undefine "].iter().any(|word| command.trim_start().starts_with(word));
        if is_definition {
            let definitions = format!("{}{command}\n", self.definitions);
            match execute(&definitions, None, arguments) {
                Ok(()) => self.definitions = definitions,
                Err(message) => crate::output::tell(message),
            }
        } else if let Err(message) = execute(&format!("{}{command}", self.definitions), None, arguments) {
            crate::output::tell(message);
        }
        true
    }
}

/// How many blocks are open at the end of a text.
fn depth(text: &str) -> i32 {
    let (mut depth, mut quoted, mut comment) = (0, false, false);
    for character in text.chars() {
        match character {
            '\n' => comment = false,
            _ if comment => {}
            '"' => quoted = !quoted,
            _ if quoted => {}
            '#' => comment = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    depth
}
