//! Load what `ipset save` wrote, and print it as `ipset save` does.

use std::error::Error;

use sluicegate_ipset::text::{self, Output};
use sluicegate_ipset::{Client, Exist, Numeric, Style};

const SAVED: &str = "\
create lan hash:net family inet hashsize 1024 maxelem 65536 comment
add lan 10.0.0.0/8 comment \"all of ours\"
create ports bitmap:port range 0-1023
add ports 22
add ports 80-82
";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut client = Client::open()?;
    for line in text::parse(SAVED, &Numeric, |_| None)? {
        client.apply(&line.command, Exist::Fail)?;
    }
    let mut printed = String::new();
    Style::new(Output::Save).write(&mut printed, &client.save(None)?)?;
    // `initval` of a hash is another number each time.
    print!("{}", printed.lines().filter(|line| !line.contains(" hash:")).collect::<Vec<_>>().join("\n"));
    println!();
    Ok(())
}
