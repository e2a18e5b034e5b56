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
        let near = ALL.iter().map(|recipe| (strsim::osa_distance(&recipe.name(), name), recipe.name()));
        let meant = near.min().filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3));
        let meant = meant.map(|(_, meant)| format!("; did you mean `{meant}`?")).unwrap_or_default();
        eprintln!(
            "cookbook: expected the name of a recipe, found `{name}`{meant}\nWithout a name they are listed."
        );
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
