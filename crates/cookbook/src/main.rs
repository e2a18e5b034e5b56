//! `cargo run -p sluicegate-cookbook -- NAME` runs a recipe of the guide in a network namespace that it makes;
//! without a name it lists them.
#![forbid(unsafe_code)]

mod namespace;
mod recipes;

use std::io::Write as _;
use std::process::ExitCode;

use recipes::{ALL, Recipe};

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [name] = &names[..] else {
        if let Err(error) = std::io::stdout().write_all(list().as_bytes()) {
            eprintln!("cookbook: standard output: {error}");
            return ExitCode::FAILURE;
        }
        return ExitCode::from(if names.is_empty() { 0 } else { 2 });
    };
    let Some(recipe) = ALL.iter().find(|recipe| recipe.name() == *name) else {
        eprintln!("cookbook: expected the name of a recipe, found `{name}`; without a name they are listed");
        return ExitCode::from(2);
    };
    match run(recipe) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cookbook: {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(recipe: &Recipe) -> Result<(), Box<dyn std::error::Error>> {
    namespace::enter()?;
    (recipe.main)()
}

/// Returns the names of the recipes with what each is for.
fn list() -> String {
    let (mut list, mut area) = (String::new(), "");
    for recipe in ALL {
        if recipe.area != area {
            area = recipe.area;
            list += &format!("{area}:\n");
        }
        list += &format!("  {:<24} {}\n", recipe.name(), recipe.title());
    }
    list
}
